"""Operators keep the rules though their source does not; the check notices those that do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flow_core as flow
from flow_core import CoreSubscriber, Flow, Subscription, hooks
from flow_core.structure import source_of
from flow_testing import BAD_SOURCES, STAGE_CASES, BadSource, check_bad_source

Apply = Callable[[Flow[int]], Flow[Any]]


def each_bad_source() -> list[Any]:
    return [pytest.param(bad, id=bad.name) for bad in BAD_SOURCES]


def only(bad: BadSource) -> Callable[[str], bool]:
    return lambda name: name == bad.name


@pytest.mark.parametrize("bad", each_bad_source())
def test_every_stage_keeps_the_rules_behind_a_bad_source(bad: BadSource) -> None:
    failed: dict[str, str] = {}
    for case in STAGE_CASES:
        try:
            check_bad_source(case.apply, only=only(bad))
        except AssertionError as failure:
            failed[case.name] = str(failure)
    assert failed == {}


@pytest.mark.parametrize("bad", each_bad_source())
def test_from_publisher_keeps_the_rules_behind_a_bad_source(bad: BadSource) -> None:
    check_bad_source(lambda source: flow.from_publisher(source_of(source)), only=only(bad))


def test_an_operator_that_needs_no_source_is_fine() -> None:
    check_bad_source(lambda source: source.take(0))


# -- the check itself


class Naive(CoreSubscriber[int]):
    """An operator's subscriber that passes everything on as it comes."""

    def __init__(self, downstream: CoreSubscriber[int]) -> None:
        self.downstream = downstream

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.downstream.on_subscribe(subscription)

    def on_next(self, item: int, /) -> None:
        self.downstream.on_next(item)

    def on_error(self, error: BaseException, /) -> None:
        self.downstream.on_error(error)

    def on_complete(self) -> None:
        self.downstream.on_complete()


class Swallowing(Naive):
    """Keeps the order of signals, and loses what is too much without a word."""

    done = False

    def on_next(self, item: int, /) -> None:
        if not self.done:
            super().on_next(item)

    def on_error(self, error: BaseException, /) -> None:
        if not self.done:
            self.done = True
            super().on_error(error)

    def on_complete(self) -> None:
        if not self.done:
            self.done = True
            super().on_complete()


class Dropping(Swallowing):
    """Hands over to the hooks what is too much."""

    def on_next(self, item: int, /) -> None:
        if self.done:
            hooks.drop_item(item)
        super().on_next(item)

    def on_error(self, error: BaseException, /) -> None:
        if self.done:
            hooks.drop_error(error)
        super().on_error(error)


def behind(operator: Callable[[Any], CoreSubscriber[int]]) -> Apply:
    class Applied:
        def __init__(self, source: Flow[int]) -> None:
            self.source = source

        def subscribe(self, subscriber: Any, /) -> None:
            self.source.subscribe(operator(subscriber))

    return lambda source: Flow(Applied(source))


def failures(apply: Apply, **options: Any) -> dict[str, str]:
    """The bad sources that the check objects to, and why."""
    failed: dict[str, str] = {}
    for bad in BAD_SOURCES:
        try:
            check_bad_source(apply, timeout_s=0.01, only=only(bad), **options)
        except AssertionError as failure:
            failed[bad.name] = str(failure)
            assert failure.__notes__ == [f"the bad source: {bad.name} ({bad.rule})"]
    return failed


def test_an_operator_that_passes_everything_on_fails() -> None:
    failed = failures(behind(Naive))
    for name, rule in {
        "items after on_complete": "§1.7",
        "items after on_error": "§1.7",
        "a second on_complete": "§1.7",
        "an error after on_complete": "§1.7",
        "a second on_error": "§1.7",
        "a second on_subscribe": "§2.12",
        "an item before on_subscribe": "§1.9",
        "on_complete before on_subscribe": "§1.9",
        "on_error before on_subscribe": "§1.9",
        "two threads at once": "§1.3",
        "signals after cancel": "§1.7",
    }.items():
        assert rule in failed[name]


def test_an_operator_that_loses_items_and_errors_fails() -> None:
    failed = failures(behind(Swallowing))
    assert "dropped-items hook to get [101, 102]" in failed["items after on_complete"]
    assert "dropped-errors hook to get [LateError()]" in failed["an error after on_complete"]
    failed = failures(behind(Dropping))
    assert "items after on_complete" not in failed
    assert "a second on_error" not in failed


def test_an_operator_with_a_queue_must_say_that_it_is_full() -> None:
    assert "overflow" not in failures(behind(Dropping))
    failed = failures(behind(Dropping), bounded=True)
    assert "§1.1" in failed["overflow"]
    asks = failures(lambda source: source.buffer_with_count(2), bounded=True)
    assert "overflow" not in asks
    forgiving = failures(lambda source: source.to_list(), bounded=True)
    assert "expected MissingBackpressureError" in forgiving["overflow"]
