"""A waiting subscriber is notified: the end comes, whatever fails around a stage."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import flow_core as flow
from flow_core import FlowError, hooks
from flow_core.executors import as_runner
from flow_testing import STAGE_CASES, TIMEOUT_S, Drops, StageCase, TestPublisher
from flow_testing import TestSubscriber as Seen

each_case = pytest.mark.parametrize("case", STAGE_CASES, ids=lambda case: case.name)


class Uncancellable:
    """A publisher of someone else, whose `cancel` raises."""

    def __init__(self) -> None:
        self.error = RuntimeError("of cancel")
        self.cancels = 0
        self.sent = 0
        self.subscriber: Any = None

    def subscribe(self, subscriber: Any) -> None:
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int) -> None:
        while n > 0 and self.sent < 9 and not self.cancels:
            n, self.sent = n - 1, self.sent + 1
            self.subscriber.on_next(self.sent)

    def cancel(self) -> None:
        self.cancels += 1
        raise self.error


@each_case
@pytest.mark.parametrize("leave", ["cancels", "requests badly"])
def test_the_cancel_of_the_upstream_raises(case: StageCase, leave: str, drops: Drops) -> None:
    source, seen = Uncancellable(), Seen[Any](1)
    case.apply(flow.from_publisher(source)).subscribe(seen)
    if leave == "cancels":
        seen.cancel()
    elif not seen.terminated:
        seen.request(-1)
        assert isinstance(seen.error, ValueError)
    assert source.cancels <= 1
    assert drops.take_errors() == [source.error] * source.cancels


@each_case
def test_the_downstream_raises_a_fatal_error_on_a_worker(case: StageCase, drops: Drops) -> None:
    fatal = MemoryError("too much")

    def fail(_: object) -> int:
        raise fatal

    source = TestPublisher[int]()
    try:
        future = case.apply(flow.Flow(source)).map(fail).count().to_future()
    except MemoryError:  # it gives an item before the source does: who subscribes hears of it
        return

    def send() -> None:
        for item in range(9):
            if source.outstanding and not source.cancelled:
                source.next(item)
        if source.subscribed and not source.cancelled:
            source.complete()

    with ThreadPoolExecutor(1) as pool:
        as_runner(pool).execute(send)
        told = future.exception(TIMEOUT_S)
    if told is None:  # it gives no item
        assert future.result() == 0
    else:
        assert isinstance(told, FlowError)
        assert told.__cause__ is fatal
    assert set(drops.take_errors()) <= {fatal}


@each_case
@pytest.mark.parametrize("leave", ["fails", "completes", "is cancelled"])
def test_the_hook_of_dropped_items_raises(case: StageCase, leave: str, drops: Drops) -> None:
    def fail(item: object) -> None:
        raise OSError("cannot close", item)

    source, seen = TestPublisher[int](), Seen[Any](1)
    with hooks.dropped_items.scoped("test", fail):
        case.apply(flow.Flow(source)).subscribe(seen)
        if source.outstanding and not source.cancelled:
            source.next(1)
        if leave == "is cancelled":
            seen.cancel()
            assert source.cancelled or not source.subscribed
        else:
            if source.subscribed and not source.cancelled:
                source.error(ValueError()) if leave == "fails" else source.complete()
            if not seen.terminated:
                seen.request(1000)
            assert seen.terminated
    drops.take_errors()
