"""The universal check finds what is wrong in one form only."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow
from flow_core.protocols import (
    ConditionalSubscriber,
    Fusion,
    QueueSubscription,
    Subscriber,
)
from flow_core.serial import SerialDrain
from flow_testing import DOWNSTREAMS, UPSTREAMS, assert_result


class FailureError(Exception):
    pass


def failing_forms(make: Callable[[], Flow[Any]], *args: Any) -> set[str]:
    failed = set()
    for upstream in UPSTREAMS:
        for downstream in DOWNSTREAMS:
            name = f"{upstream.name}, {downstream.name}"
            try:
                assert_result(make, *args, only=name.__eq__, timeout_s=0.05)
            except AssertionError as failure:
                if any(name in note for note in failure.__notes__):
                    failed.add(downstream.name)
    return failed


CANCELLING = {downstream.name for downstream in DOWNSTREAMS if downstream.cancels}
ALL = {downstream.name for downstream in DOWNSTREAMS}


def test_it_fails_in_every_form_for_wrong_items() -> None:
    failed = failing_forms(lambda: flow.range(3), [0, 1, 7])
    assert failed >= ALL - CANCELLING


def test_it_fails_in_every_form_for_a_missing_or_wrong_error() -> None:
    error = FailureError()
    assert failing_forms(lambda: flow.range(3), [0, 1, 2], FailureError) >= ALL - CANCELLING
    assert failing_forms(lambda: flow.error(error), []) >= ALL - CANCELLING
    assert failing_forms(lambda: flow.error(error), [], KeyError) >= ALL - CANCELLING
    assert failing_forms(lambda: flow.error(error), [], FailureError()) >= ALL - CANCELLING
    assert failing_forms(lambda: flow.error(error), [], error) == set()


class Source:
    """A publisher of a few ints, with one mistake."""

    def __init__(self, mistake: str) -> None:
        self.mistake = mistake

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        Running(self.mistake, subscriber).start()


class Running(SerialDrain, QueueSubscription[int]):
    def __init__(self, mistake: str, subscriber: Any) -> None:
        super().__init__()
        self.mistake = mistake
        self.subscriber = subscriber
        self.items = iter(range(4))
        self.requested: deque[int] = deque()
        self.demand = 0
        self.cancelled = False

    def start(self) -> None:
        assert self.try_enter()
        self.subscriber.on_subscribe(self)
        self.run_entered()

    def request(self, n: int, /) -> None:
        self.requested.append(n if self.mistake != "overflow" else n + 1)
        if self.mistake == "recursion":
            self.drain()
        else:
            self.signal()

    def drain(self) -> None:
        while self.requested:
            self.demand += self.requested.popleft()
            while self.demand > 0 and not self.cancelled:
                self.demand -= 1
                item = next(self.items, None)
                if item is None:
                    self.cancelled = True
                    self.subscriber.on_complete()
                    if self.mistake == "two terminals":
                        self.subscriber.on_complete()
                elif isinstance(self.subscriber, ConditionalSubscriber):
                    used = self.subscriber.try_on_next(item)
                    self.demand += not used and self.mistake != "conditional"
                else:
                    self.subscriber.on_next(item)

    def cancel(self) -> None:
        if self.mistake != "cancel":
            self.cancelled = True

    def request_fusion(self, mode: Fusion, /) -> Fusion:
        return mode & Fusion.SYNC

    def poll(self) -> Any:
        return next(self.items, flow.EMPTY)

    def is_empty(self) -> bool:
        return self.mistake == "is_empty"

    def clear(self) -> None:
        pass


@pytest.mark.parametrize(
    ("mistake", "seen_in"),
    [
        ("", set[str]()),
        ("overflow", {"requested one by one", "requested in steps", "requested by two threads"}),
        ("recursion", {"requested one by one in on_next"}),
        ("two terminals", {"requested at once", "requested one by one", "conditional"}),
        ("conditional", {"conditional, every other item"}),
        ("cancel", {"cancelled in on_next"}),
        ("is_empty", {"fused", "fused in any mode"}),
    ],
)
def test_it_finds_the_mistakes_of_a_publisher(mistake: str, seen_in: set[str]) -> None:
    failed = failing_forms(lambda: Flow(Source(mistake)), [0, 1, 2, 3])
    if mistake:
        assert seen_in <= failed
    else:
        assert failed == set()


def test_it_makes_a_new_flow_for_every_run() -> None:
    made = 0

    def make() -> Flow[int]:
        nonlocal made

        def items() -> Iterator[int]:
            yield 1

        made += 1
        return flow.from_iterable(items())

    assert_result(make, [1])
    assert made > len(DOWNSTREAMS) * 2


def test_a_failure_says_in_which_form_of_which_flow() -> None:
    with pytest.raises(AssertionError) as raised:
        assert_result(lambda: flow.range(3).map(str), [0])
    assert "in the form 'source as it is, iterated' of range(0, 3) | map(str)" in (
        raised.value.__notes__
    )


def test_the_subscription_is_a_queue_to_a_fused_form_only() -> None:
    asked: list[Fusion] = []

    class Spy(Running):
        def request_fusion(self, mode: Fusion, /) -> Fusion:
            asked.append(mode)
            return super().request_fusion(mode)

    class Spied:
        def subscribe(self, subscriber: Subscriber[int], /) -> None:
            Spy("", subscriber).start()

    assert_result(lambda: Flow(Spied()), [0, 1, 2, 3])
    assert set(asked) == {Fusion.SYNC, Fusion.ANY, Fusion.SYNC | Fusion.THREAD_BOUNDARY}
