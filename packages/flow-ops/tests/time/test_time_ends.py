"""The end of every operator and source that has a clock, and what is left then."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

import flow_core as flow
from flow_core.clocks import AsyncioClock, Clock, system_clock
from flow_core.errors import RejectedExecutionError
from flow_core.flow import Flow
from flow_ops import delay, interval, interval_range, timeout, timer
from flow_ops._plugin import flow_operators, flow_sources
from flow_ops.testing import OPERATOR_CASES
from flow_testing import (
    BAD_SOURCES,
    ENDINGS,
    BadSource,
    Ending,
    HastyClock,
    OperatorCase,
    Payloads,
    Surroundings,
    TestPublisher,
    TestSubscriber,
    VirtualClock,
    assert_released,
    check_bad_source,
)

TIMED = [spec for spec in flow_operators() if spec.target.startswith("flow_ops.time.")]
OPERATORS = {
    case.name: case for spec in TIMED for case in OPERATOR_CASES if case.registered == spec.name
}

OPERATORS["timeout, of a second"] = OperatorCase(
    "timeout, of a second", lambda up, at: up.pipe(timeout(at.period_s, clock=at.clock))
)

WITHOUT_TIMER = {
    "delay, by nothing",
    "delay_subscription, by a flow",
    "delay_with_mapper",
    "skip_last_with_time",
    "take_last_with_time",
    "take_last_with_time, all",
    "throttle_first",
    "throttle_last",
    "time_interval",
    "timestamp",
}

SOURCES: dict[str, Callable[[Clock], Flow[int]]] = {
    "interval": lambda clock: interval(1, clock=clock),
    "interval_range": lambda clock: interval_range(0, 5, 1, clock=clock),
    "timer": lambda clock: timer(1, clock=clock),
}


def behind(upstream: Flow[Any], name: str, clock: Clock) -> Flow[Any]:
    """An operator of time, with times of a second."""
    return OPERATORS[name].apply(upstream, Surroundings(None, clock))


each_operator = pytest.mark.parametrize("name", OPERATORS)
each_source = pytest.mark.parametrize("name", SOURCES)


# -- no timer is left


@each_operator
@pytest.mark.parametrize("end", ["complete", "error", "cancel", "wrong request", "raise"])
@pytest.mark.parametrize("items", [0, 1, 3])
def test_no_timer_is_left_when_it_has_ended(clock, dropped, name, end, items):
    source = TestPublisher()

    def on_item(subscriber, _):
        if end == "raise":
            raise ValueError("no")

    seen = TestSubscriber(on_item=on_item)
    behind(flow.Flow(source), name, clock).subscribe(seen)
    if not source.subscribed:
        clock.advance_by(1)
    source.next(*range(min(items, source.outstanding)))
    if end == "complete":
        source.complete()
        clock.run()
        assert seen.assert_rules_kept().completed
    elif end == "error":
        source.error(LookupError("no"))
        clock.run()
        assert isinstance(seen.assert_rules_kept().error, LookupError)
    elif end == "cancel":
        seen.cancel()
        seen.assert_not_terminated()
        source.assert_cancelled()
    elif end == "wrong request":
        seen.request(0)
        assert isinstance(seen.error, ValueError)
        source.assert_cancelled()
    else:
        clock.advance_by(1)
        if seen.items:
            source.assert_cancelled()
        else:
            seen.cancel()
    assert clock.pending == 0


@each_source
@pytest.mark.parametrize("after_s", [0, 1, 2])
def test_no_timer_of_a_source_is_left(clock, name, after_s):
    for end in ("cancel", "wrong request", "cancel in on_next"):
        seen = TestSubscriber(on_item=lambda self, _, end=end: end[-4:] == "next" and self.cancel())
        SOURCES[name](clock).subscribe(seen)
        clock.advance_by(after_s)
        if end == "wrong request":
            seen.request(0)
        else:
            seen.cancel()
        seen.assert_rules_kept()
        assert clock.pending == 0


# -- a clock that takes no tasks


def _fails_once(made: Flow[Any], dropped: Any) -> TestSubscriber[Any]:
    seen = TestSubscriber[Any]()
    made.subscribe(seen)
    seen.assert_failure(RejectedExecutionError, *seen.items)
    assert dropped.errors == []
    return seen


@pytest.mark.parametrize("name", sorted(OPERATORS.keys() - WITHOUT_TIMER))
def test_a_clock_that_refuses_fails_the_flow_once(name, refusing, dropped):
    clock = refusing()
    seen = TestSubscriber[Any]()
    source = TestPublisher()
    behind(flow.Flow(source), name, clock).subscribe(seen)
    if source.subscribed and not source.cancelled and not seen.terminated:
        source.next(1)
    seen.assert_failure(RejectedExecutionError, *seen.items)
    assert not source.subscribed or source.cancelled
    assert dropped.errors == []
    assert len(getattr(seen.error, "__notes__", ())) >= 1


@pytest.mark.parametrize(
    "name", ["delay", "debounce", "sample", "timeout, of a second", "throttle_latest"]
)
def test_a_clock_that_refuses_later_fails_the_flow_once(name, refusing, dropped):
    clock = refusing(takes=1)
    seen = TestSubscriber[Any]()
    source = TestPublisher()
    behind(flow.Flow(source), name, clock).subscribe(seen)
    for n in range(4):
        if not source.cancelled:
            source.next(n)
            clock.time.advance_by(0.7)
    clock.time.advance_by(1)
    seen.assert_failure(RejectedExecutionError, *seen.items)
    source.assert_cancelled()
    assert clock.time.pending == 0
    assert dropped.errors == []


@each_source
def test_a_clock_that_refuses_fails_the_source_once(name, refusing, dropped):
    seen = _fails_once(SOURCES[name](refusing()), dropped)
    assert any("test_time_ends.py" in note for note in seen.error.__notes__)


# -- other clocks


def test_the_clock_of_an_event_loop_serves_as_well():
    async def main() -> tuple[list[int], list[str]]:
        clock = AsyncioClock(asyncio.get_running_loop())
        made = interval(0.001, overflow="buffer", clock=clock).take(3)
        made = made.pipe(delay(0.001, clock=clock)).pipe(timeout(20, clock=clock))
        late = flow.never().pipe(timeout(0.001, fallback=flow.just("late"), clock=clock))
        return [n async for n in made], [text async for text in late]

    assert asyncio.run(main()) == ([0, 1, 2], ["late"])


def test_the_clock_of_the_process_has_nothing_to_do_afterwards():
    before = system_clock().pending  # other tests may have left something to do
    for name in [name for name in OPERATORS if "skip" not in name]:
        for source in (flow.range(3), flow.empty()):
            made = behind(source, name, system_clock()).take(1)
            made.subscribe(lambda _: None, lambda _: None).dispose()
    assert system_clock().pending <= before


# -- nothing is kept


NEEDS_TIME = {name for name, case in OPERATORS.items() if case.kinds & {"timed", "delayed"}}
WITHOUT_TIME = {
    "cancelled at once",
    "cancelled between items",
    "cancelled, fused",
    "a wrong request",
}


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
@each_operator
def test_lets_everything_go(name: str, ending: Ending) -> None:
    clocks: list[Clock] = [HastyClock()] if name in NEEDS_TIME else [VirtualClock()]
    if name in NEEDS_TIME and ending.name in WITHOUT_TIME:
        clocks.append(VirtualClock())
    for clock in clocks:
        assert_released(
            lambda payloads, clock=clock: behind(payloads.pushed(), name, clock),
            only=lambda each: each == ending.name,
        )


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
def test_timeout_and_its_fallback_let_everything_go(ending: Ending) -> None:
    def make(payloads: Payloads) -> Flow[Any]:
        return flow.never().pipe(timeout(1, fallback=payloads.pushed(), clock=HastyClock()))

    assert_released(make, only=lambda each: each == ending.name)


# -- sources that break the rules


@pytest.mark.parametrize("bad", BAD_SOURCES, ids=lambda bad: bad.name)
@pytest.mark.parametrize(
    "name", ["delay", "sample", "debounce", "throttle_latest", "timeout", "take_last_with_time"]
)
def test_keeps_the_rules_behind_a_bad_source(name: str, bad: BadSource, dropped: object) -> None:
    clock = VirtualClock()
    if bad.name == "two threads at once" and name != "timeout":
        return  # the downstream is called by the clock only
    check_bad_source(
        lambda source: behind(source, name, clock),
        bounded=name == "delay",
        settle=lambda: clock.advance_by(2 if name == "delay" else 0.4),
        only=lambda each: each == bad.name,
    )


def test_all_sources_that_are_registered_are_here() -> None:
    timed = {spec.name for spec in flow_sources() if spec.target.startswith("flow_ops.time.")}
    assert timed == set(SOURCES)
