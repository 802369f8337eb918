"""Every operator keeps the rules towards its subscriber, whatever its source does.

An error of the source is known once: it is raised to the source, or to the thread that subscribed
or requested, or it is the flow's error, or it reaches a hook; never two of these, and never none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow
from flow_core.plugins import Backpressure, plugin_host
from flow_core.protocols import Subscriber
from flow_core.structure import source_of
from flow_testing import BAD_SOURCES, TestSubscriber, VirtualClock, check_bad_source

PASSES_ON = {"hide", "do_on_request", "lift", "context_capture", "context_write"}
"""Links that add nothing to what their source does: strangers belong behind ``from_publisher``."""

GOES_ON = {"cache", "replay"}
"""They stay subscribed when their subscriber leaves: what comes then is kept for the next one."""

HOLDS = "has room for all that comes"
KNOWS = "knows its result before too much has come"
COPIES = "drops more than what has come"
TAKES_ALL = {
    "buffer_boundary": HOLDS,
    "buffer_toggle": HOLDS,
    "buffer_when": HOLDS,
    "buffer_with_time": HOLDS,
    "session_buffer": HOLDS,
    "element_at_or_default": KNOWS,
    "expand": "breadth first, asks for what is requested of it, as `concat` does",
    "first_or_default": KNOWS,
    "is_empty": KNOWS,
    "sequence_equal": KNOWS,
    "single_or_default": KNOWS,
    "single_or_error": "is tried behind `count`, which asks for all",
    "window_with_count, overlapping": COPIES,
    "window_with_count, the first of each": COPIES,
}
"""Operators that bound what they ask for, and here take all that comes, or cannot be counted."""

QUEUES = {"delay, by nothing", "exhaust_map, the only one"}
"""Operators that pass demand on, or request it from another flow, and let the items wait."""


def bounds(tried: Any) -> bool:
    """Return whether the registry says that an operator requests a number of items, and no more."""
    host = plugin_host()
    registered = host.operators if tried.registered in host.operators else host.sources
    backpressure = registered[tried.registered].spec.backpressure
    return backpressure in {Backpressure.FULL, Backpressure.ERROR}


def test_an_operator_keeps_the_rules_behind_each_bad_source(tried: Any, drops: Any) -> None:
    clock = VirtualClock()

    def apply(source: Flow[int]) -> Flow[Any]:
        guarded = flow.from_publisher(source_of(source)) if tried.name in PASSES_ON else source
        made: Flow[Any] = tried.make(guarded, lambda task: task(), clock)
        return made

    failed: dict[str, str] = {}
    for bad in BAD_SOURCES:
        if tried.name in GOES_ON and "after cancel" in bad.name:
            continue
        settle = clock.run if "delayed" in tried.kinds else lambda: None
        try:
            check_bad_source(apply, settle=settle, only=lambda name, bad=bad: name == bad.name)
        except Exception as failure:
            failed[bad.name] = f"{type(failure).__name__}: {failure}"
    assert failed == {}


def test_an_operator_that_requests_a_number_of_items_fails_if_more_come(
    tried: Any, drops: Any
) -> None:
    """With `MissingBackpressureError`. Others pass on what comes, or have asked for all."""
    clock = VirtualClock()

    def fails() -> bool:
        try:
            check_bad_source(
                lambda source: tried.make(source, lambda task: task(), clock),
                bounded=True,
                settle=clock.run if "delayed" in tried.kinds else lambda: None,
                only=lambda name: name == "overflow",
            )
        except AssertionError:
            return False
        return True

    assert fails() == (tried.name in QUEUES or (bounds(tried) and tried.name not in TAKES_ALL))


class Raising:
    """A source one of whose methods raises, against §1.9, §3.15 and §3.16."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.error = ValueError(f"in {where}")
        self.raised = False

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        self._now("subscribe")
        subscriber.on_subscribe(self)
        self._now("subscribe, after on_subscribe")

    def request(self, _: int, /) -> None:
        self._now("request")

    def cancel(self) -> None:
        self._now("cancel")

    def _now(self, where: str) -> None:
        if where == self.where:
            self.raised = True
            raise self.error


@pytest.mark.parametrize("where", ["subscribe", "subscribe, after on_subscribe", "request"])
def test_an_error_that_a_source_raises_is_reported_once(tried: Any, where: str, drops: Any) -> None:
    """It is the flow's error, or it is raised to the thread that subscribed; never both."""
    source = Raising(where)
    subscriber = TestSubscriber[Any]()
    made = tried.inline()(Flow(source))
    raised = _raised_by(lambda: made.subscribe(subscriber))
    assert source.raised
    assert [*raised, *drops.errors, *([subscriber.error] if subscriber.error else [])] == [
        source.error
    ]
    subscriber.assert_rules_kept()
    assert not subscriber.completed


def test_an_error_that_a_cancel_raises_is_reported_once(tried: Any, drops: Any) -> None:
    source = Raising("cancel")
    subscriber = TestSubscriber[Any]()
    tried.inline()(Flow(source)).subscribe(subscriber)
    raised = _raised_by(subscriber.cancel)
    assert [*raised, *drops.errors] == ([source.error] if source.raised else [])
    assert source.raised or tried.name in GOES_ON
    subscriber.assert_rules_kept()
    assert not subscriber.terminated


def _raised_by(action: Callable[[], object]) -> list[BaseException]:
    try:
        action()
    except Exception as error:
        return [error]
    return []


class Silent:
    """A source that sends nothing, not even on_subscribe, until the test says so."""

    def __init__(self) -> None:
        self.subscriber: Subscriber[int] | None = None
        self.cancels = 0

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        self.subscriber = subscriber

    def request(self, _: int, /) -> None:
        """A request is ignored."""

    def cancel(self) -> None:
        self.cancels += 1


def test_a_source_that_is_silent_can_be_left(tried: Any, drops: Any) -> None:
    """Its subscription is cancelled when it comes at last."""
    source = Silent()
    subscriber = TestSubscriber[Any]()
    tried.inline()(Flow(source)).subscribe(subscriber)
    subscriber.request(3)
    subscriber.cancel()
    if source.subscriber is not None:
        source.subscriber.on_subscribe(source)
        assert source.cancels or tried.name in GOES_ON
    subscriber.assert_rules_kept()
    assert drops.errors == []


def test_a_source_that_ignores_requests_makes_nothing_up(tried: Any, drops: Any) -> None:
    """No item, no end and no error comes of a request that is not answered."""
    source = Silent()
    subscriber = TestSubscriber[Any](0)
    tried.inline()(Flow(source)).subscribe(subscriber)
    if source.subscriber is None:
        return  # it needs no source
    source.subscriber.on_subscribe(source)
    subscriber.request(5)
    subscriber.assert_no_items()
    assert not subscriber.terminated
    subscriber.cancel()
    assert drops.errors == []
