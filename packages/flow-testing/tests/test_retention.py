"""A flow that has ended keeps nothing alive; the check for that finds what is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flow_core as flow
from flow_core import CoreSubscriber, Flow
from flow_core.structure import source_of
from flow_testing import (
    ENDINGS,
    STAGE_CASES,
    Ending,
    Payload,
    Payloads,
    StageCase,
    assert_released,
)

Make = Callable[[Payloads], Flow[Any]]

UPSTREAMS: dict[str, Make] = {
    "iterable": flow.from_iterable,
    "hidden": lambda payloads: flow.from_iterable(payloads).hide(),
    "flow": lambda payloads: Flow(flow.from_iterable(payloads)),
    "publisher": Payloads.pushed,
    "foreign publisher": lambda payloads: flow.from_publisher(source_of(payloads.pushed())),
}
SOURCES: dict[str, Make] = {
    **UPSTREAMS,
    "just": lambda payloads: flow.just(payloads.item(1), payloads.item(2)),
    "just one": lambda payloads: flow.just(payloads.item(1)),
    "from_callable": lambda payloads: flow.from_callable(payloads.item),
    "defer": lambda payloads: flow.defer(lambda: flow.from_iterable(payloads)),
    "error": lambda payloads: flow.error(payloads.error()),
    "never": lambda _: flow.never(),
}
FAILING = {*UPSTREAMS, "defer", "error"}


def only(ending: Ending) -> Callable[[str], bool]:
    return lambda name: name == ending.name


def stage_params() -> list[Any]:
    return [
        pytest.param(upstream, ending, id=f"{upstream}-{ending.name}")
        for upstream in UPSTREAMS
        for ending in ENDINGS
    ]


@pytest.mark.parametrize(("upstream", "ending"), stage_params())
def test_every_stage_lets_go_of_everything(upstream: str, ending: Ending) -> None:
    kept: dict[str, str] = {}
    for case in STAGE_CASES:
        source = flow.range(3)
        if source_of(case.apply(source)) is not source_of(source):
            continue  # take(0) has a source of its own

        def make(payloads: Payloads, case: StageCase = case) -> Flow[Any]:
            return case.apply(UPSTREAMS[upstream](payloads))

        try:
            assert_released(make, only=only(ending))
        except AssertionError as failure:
            kept[case.name] = str(failure)
    assert kept == {}


def source_params() -> list[Any]:
    params = []
    for source in SOURCES:
        for ending in ENDINGS:
            ends = {"failed"} if source == "error" else {"cancelled", "a wrong request"}
            if source in FAILING:
                ends |= {"failed"}
            if source not in {"error", "never"}:
                ends |= {"completed"}
            if not ending.name.startswith(tuple(ends)):
                continue
            if source == "never" and ending.name == "cancelled in on_next":
                continue
            params.append(pytest.param(source, ending, id=f"{source}-{ending.name}"))
    return params


@pytest.mark.parametrize(("source", "ending"), source_params())
def test_a_source_lets_go_of_everything(source: str, ending: Ending) -> None:
    assert_released(SOURCES[source], only=only(ending))


# -- the check itself


def ended(ending: str) -> Callable[[str], bool]:
    return lambda name: name == ending


class Keeping:
    """A publisher whose subscription keeps what it should not."""

    def __init__(self, payloads: Payloads, what: str) -> None:
        self.payloads = payloads
        self.what = what

    def subscribe(self, subscriber: Any, /) -> None:
        subscriber.on_subscribe(KeepingSubscription(self, subscriber))


class KeepingSubscription:
    def __init__(self, publisher: Keeping, subscriber: CoreSubscriber[Payload]) -> None:
        self.what = publisher.what
        self.items = iter(publisher.payloads)
        self.subscriber: CoreSubscriber[Payload] | None = subscriber
        self.kept: list[object] = []
        if self.what == "publisher":
            publisher.kept = subscriber  # type: ignore[attr-defined]  # kept for good

    def request(self, n: int, /) -> None:
        subscriber = self.subscriber
        assert subscriber is not None
        for item in self.items:
            if self.what == "item":
                self.kept.append(item)
            subscriber.on_next(item)
        if self.what != "subscriber":
            self.subscriber = None
        if self.what == "cycle":
            self.kept.append(self)
        subscriber.on_complete()

    def cancel(self) -> None:
        pass


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("subscriber", "its subscriber lives on while the flow and its subscription are held"),
        ("publisher", "its subscriber lives on .* referred to by .*Keeping"),
        ("item", r"Payload\(0\) and 5 more lives on while its subscription is held"),
        ("cycle", "the iterator of its items lives on though its subscription was released"),
    ],
)
def test_a_kept_object_is_found(what: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message) as raised:
        assert_released(lambda payloads: Flow(Keeping(payloads, what)), only=ended("completed"))
    assert raised.value.__notes__ == ["the flow was completed"]


def test_a_flow_that_keeps_nothing_passes() -> None:
    assert_released(lambda payloads: Flow(Keeping(payloads, "")), only=ended("completed"))


def test_an_item_that_a_hook_has_kept_is_not_the_flow_s() -> None:
    assert_released(
        lambda payloads: payloads.pushed().buffer_with_count(4), only=ended("cancelled in on_next")
    )


def test_a_payload_is_an_int_in_arithmetic() -> None:
    five = Payload(5)
    assert (five + 1, 1 + five, five - 1, 6 - five, five * 2, 2 * five) == (6, 6, 4, 1, 10, 10)
    assert (five % 3, five // 2, five > 4, five <= 5, five == 5, hash(five)) == (
        *(2, 2),
        *(True, True, True),
        hash(5),
    )
    assert five != "5"
    assert "abcdefg"[five] == "f"
    assert repr(five) == "Payload(5)"
