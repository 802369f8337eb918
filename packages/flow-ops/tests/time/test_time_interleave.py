"""Operators with a clock under every schedule within the bound: timers against everything else."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any

import pytest

import flow_core as flow
from flow_core.errors import FlowTimeoutError
from flow_core.flow import Flow
from flow_core.protocols import CoreSubscriber, Subscription
from flow_ops import (
    debounce,
    delay,
    delay_subscription,
    interval,
    rate_limit,
    sample,
    skip_last_with_time,
    take_last_with_time,
    take_with_time,
    throttle_latest,
    timeout,
    timer,
)
from flow_testing import TestPublisher, TestSubscriber, Violation, VirtualClock
from flow_testing.interleave import Body, Report, Scenario, explore_all

pytestmark = [pytest.mark.interleave, pytest.mark.usefixtures("dropped")]

LATE = Violation.IGNORED_CANCEL | Violation.OVERFLOW
"""A source that has an item on its way when it is cancelled."""


def exhaust(body: Body, expect: Collection[Hashable] | None = None) -> Report:
    return explore_all(body, modules=["flow_core.serial", "flow_ops", __name__], expect=expect)


class Setting:
    """A flow with an operator, all played by the test."""

    def __init__(self, request: int = 10) -> None:
        self.clock = VirtualClock()
        self.source = TestPublisher[int](LATE)
        self.other = TestPublisher[int](LATE)
        self.seen = TestSubscriber[int](request)
        self.late: list[int] = []

    def run(self, operator: Any) -> Setting:
        Flow(self.source).pipe(operator).subscribe(self.seen)
        return self

    def send_late(self) -> None:
        """Send 2, if it is on its way when the source is cancelled, or before."""
        self.late.append(2)
        self.source.next(2)

    def pass_time(self) -> None:
        self.clock.advance_by(1)

    def over(self) -> None:
        """Nothing is left, and nothing is stuck."""
        self.seen.assert_rules_kept()
        assert self.clock.pending == 0, "a timer is left"
        subscription: Any = self.seen.subscription
        assert subscription._permit, "the permit is lost"
        assert not subscription._tasks


# -- timeout


def late(request: int = 10, fallback: bool = True) -> Setting:
    setting = Setting(request)
    other = Flow(setting.other) if fallback else None
    return setting.run(timeout(1, fallback=other, clock=setting.clock))


@pytest.mark.checklist("O34")
def test_an_item_against_the_switch_to_the_fallback() -> None:
    def body() -> Scenario:
        setting = late(2)

        def outcome() -> str:
            seen = setting.seen.assert_rules_kept()
            if not setting.other.subscribed:
                seen.assert_items(1)
                assert not setting.source.cancelled
                assert setting.clock.pending == 1
                setting.pass_time()  # now it is late
                assert setting.other.requests == [1]
                return "item"
            before = tuple(seen.items)
            assert before in {(), (1,)}
            assert setting.source.cancelled
            assert setting.other.requests == [2 - len(before)]
            setting.other.next(5)
            seen.assert_items(*before, 5)
            return f"late after {len(before)}"

        return Scenario(lambda: setting.source.next(1), setting.pass_time, outcome=outcome)

    exhaust(body, {"item", "late after 0", "late after 1"})


@pytest.mark.checklist("O34")
def test_an_item_against_the_timeout_error() -> None:
    def body() -> Scenario:
        setting = late(fallback=False)

        def outcome() -> str:
            setting.seen.assert_rules_kept()
            if setting.seen.items:
                setting.pass_time()
            assert isinstance(setting.seen.error, FlowTimeoutError)
            setting.over()
            return f"{len(setting.seen.items)} items"

        return Scenario(
            lambda: setting.source.next(1),
            setting.pass_time,
            outcome=outcome,
        )

    exhaust(body, {"0 items", "1 items"})


@pytest.mark.checklist("O34")
def test_no_request_is_lost_between_the_upstream_and_the_fallback() -> None:
    def body() -> Scenario:
        setting = late(2)

        def check() -> None:
            setting.seen.assert_rules_kept()
            assert sum(setting.other.requests) == 5
            setting.other.next(1, 2, 3, 4, 5)
            setting.seen.assert_items(1, 2, 3, 4, 5)

        return Scenario(lambda: setting.seen.request(3), setting.pass_time, check=check)

    exhaust(body)


@pytest.mark.checklist("O34")
def test_the_end_against_the_timeout() -> None:
    def body() -> Scenario:
        setting = late()

        def outcome() -> str:
            if setting.other.subscribed:
                setting.seen.assert_not_terminated()
                setting.other.complete()
                setting.seen.assert_result()
                setting.over()
                return "late"
            setting.seen.assert_result()
            setting.over()
            return "end"

        return Scenario(setting.source.complete, setting.pass_time, outcome=outcome)

    exhaust(body, {"late", "end"})


@pytest.mark.checklist("O34")
def test_a_cancel_against_the_switch_to_the_fallback() -> None:
    def body() -> Scenario:
        setting = late()

        def check() -> None:
            setting.over()
            setting.source.assert_cancelled()
            assert not setting.other.subscribed or setting.other.cancelled

        return Scenario(setting.seen.cancel, setting.pass_time, check=check)

    exhaust(body)


@pytest.mark.checklist("O34")
def test_an_item_against_the_flow_of_the_selector() -> None:
    def body() -> Scenario:
        setting = Setting(3)
        limits = [TestPublisher[int](LATE), TestPublisher[int](LATE)]
        flows = iter(limits)
        fallback = Flow(setting.other)
        setting.run(timeout(selector=lambda _: Flow(next(flows)), fallback=fallback))
        setting.source.next(1)

        def outcome() -> str:
            setting.seen.assert_rules_kept()
            limits[0].assert_cancelled()
            if setting.other.subscribed:
                assert setting.other.requests == [2]
                setting.seen.assert_items(1)
                assert not limits[1].subscribed or limits[1].cancelled
                return "late"
            setting.seen.assert_items(1, 2)
            assert limits[1].subscribed
            assert not limits[1].cancelled
            return "item"

        return Scenario(lambda: setting.source.next(2), lambda: limits[0].next(0), outcome=outcome)

    exhaust(body, {"late", "item"})


# -- items at their own times


def test_an_item_against_the_timer_of_debounce() -> None:
    def body() -> Scenario:
        setting = Setting()
        setting.run(debounce(1, clock=setting.clock))
        setting.source.next(1)

        def outcome() -> tuple[int, ...]:
            setting.source.complete()
            setting.seen.assert_result(*setting.seen.items)
            setting.over()
            return tuple(setting.seen.items)

        return Scenario(lambda: setting.source.next(2), setting.pass_time, outcome=outcome)

    exhaust(body, {(1, 2), (2,)})


def test_a_cancel_against_the_timer_of_debounce() -> None:
    def body() -> Scenario:
        setting = Setting()
        setting.run(debounce(1, clock=setting.clock))
        setting.source.next(1)
        return Scenario(setting.seen.cancel, setting.pass_time, check=setting.over)

    exhaust(body)


def test_an_item_against_the_flow_of_debounce() -> None:
    def body() -> Scenario:
        setting = Setting()
        quiet = [TestPublisher[int](LATE), TestPublisher[int](LATE)]
        flows = iter(quiet)
        setting.run(debounce(lambda _: Flow(next(flows))))
        setting.source.next(1)

        def outcome() -> tuple[int, ...]:
            setting.seen.assert_rules_kept()
            quiet[0].assert_cancelled()
            assert quiet[1].outstanding == 1
            quiet[1].complete()
            return tuple(setting.seen.items)

        return Scenario(lambda: setting.source.next(2), lambda: quiet[0].next(0), outcome=outcome)

    exhaust(body, {(1, 2), (2,)})


@pytest.mark.parametrize("what", ["an item", "a request", "the end"])
def test_a_sample_against(what: str) -> None:
    def body() -> Scenario:
        setting = Setting(0)
        setting.run(sample(1, emit_last=True, clock=setting.clock))
        setting.source.next(1)

        def outcome() -> tuple[int, ...]:
            setting.seen.assert_rules_kept()
            if what != "the end":
                setting.source.complete()
            setting.seen.request(5)
            setting.seen.assert_result(*setting.seen.items)
            setting.over()
            return tuple(setting.seen.items)

        against = {
            "an item": lambda: setting.source.next(2),
            "a request": lambda: setting.seen.request(1),
            "the end": setting.source.complete,
        }
        return Scenario(against[what], setting.pass_time, outcome=outcome)

    # Without demand the newer sample takes the place of the one that waits.
    exhaust(body, {(2,)} if what == "an item" else {(1,)})


def test_both_ends_of_a_sample_by_a_flow() -> None:
    def body() -> Scenario:
        setting = Setting()
        setting.run(sample(Flow(setting.other), emit_last=True))
        setting.source.next(1)

        def check() -> None:
            setting.seen.assert_result(1)
            setting.over()

        return Scenario(setting.source.complete, setting.other.complete, check=check)

    exhaust(body)


def test_a_cancel_against_a_sample() -> None:
    def body() -> Scenario:
        setting = Setting()
        setting.run(sample(1, clock=setting.clock))
        setting.source.next(1)
        return Scenario(setting.seen.cancel, setting.pass_time, check=setting.over)

    exhaust(body)


def test_items_against_the_timer_of_throttle_latest() -> None:
    def body() -> Scenario:
        setting = Setting()
        setting.run(throttle_latest(1, emit_last=True, clock=setting.clock))
        setting.source.next(1)

        def outcome() -> tuple[int, ...]:
            setting.source.complete()
            setting.seen.assert_result(*setting.seen.items)
            setting.over()
            return tuple(setting.seen.items)

        return Scenario(
            lambda: (setting.source.next(2), setting.source.next(3)),
            setting.pass_time,
            outcome=outcome,
        )

    exhaust(body, {(1, 2, 3), (1, 3)})


# -- delays


def test_items_and_the_end_against_the_timer_of_delay() -> None:
    def body() -> Scenario:
        setting = Setting(2)
        setting.run(delay(1, clock=setting.clock))
        setting.source.next(1)

        def check() -> None:
            setting.clock.run()
            setting.seen.assert_result(1, 2)
            setting.over()

        return Scenario(
            lambda: (setting.source.next(2), setting.source.complete()),
            setting.pass_time,
            check=check,
        )

    exhaust(body)


def test_an_error_against_the_timer_of_delay() -> None:
    def body() -> Scenario:
        setting = Setting()
        setting.run(delay(1, clock=setting.clock))
        setting.source.next(1)
        error = LookupError("no")

        def outcome() -> int:
            setting.seen.assert_failure(error, *setting.seen.items)
            setting.over()
            return len(setting.seen.items)

        return Scenario(lambda: setting.source.error(error), setting.pass_time, outcome=outcome)

    exhaust(body, {0, 1})


@pytest.mark.parametrize("what", ["an item", "the timer"])
def test_a_cancel_of_delay_against(what: str, dropped: Any) -> None:
    def body() -> Scenario:
        dropped.items.clear()
        setting = Setting()
        setting.run(delay(1, clock=setting.clock))
        setting.source.next(1)

        def check() -> None:
            setting.over()
            sent = [1, *setting.late]
            assert sorted([*setting.seen.items, *dropped.items]) == sent

        against = {"an item": setting.send_late, "the timer": setting.pass_time}
        return Scenario(setting.seen.cancel, against[what], check=check)

    exhaust(body)


def test_a_request_against_the_late_subscription() -> None:
    def body() -> Scenario:
        setting = Setting(2)
        setting.run(delay_subscription(1, clock=setting.clock))

        def check() -> None:
            assert sum(setting.source.requests) == 5
            setting.seen.assert_rules_kept()

        return Scenario(lambda: setting.seen.request(3), setting.pass_time, check=check)

    exhaust(body)


@pytest.mark.parametrize("by", ["time", "item", "end"])
def test_a_cancel_against_the_late_subscription(by: str) -> None:
    def body() -> Scenario:
        setting = Setting()
        if by == "time":
            setting.run(delay_subscription(1, clock=setting.clock))
            comes: Any = setting.pass_time
        else:
            setting.run(delay_subscription(Flow(setting.other)))
            comes = setting.other.complete if by == "end" else lambda: setting.other.next(1)

        def check() -> None:
            setting.over()
            assert not setting.source.subscribed or setting.source.cancelled

        return Scenario(setting.seen.cancel, comes, check=check)

    exhaust(body)


# -- sources


@pytest.mark.parametrize("overflow", ["buffer", "drop"])
def test_a_request_against_the_ticks_of_interval(overflow: Any) -> None:
    def body() -> Scenario:
        clock = VirtualClock()
        seen = TestSubscriber[int](0)
        interval(1, overflow=overflow, clock=clock).subscribe(seen)

        def outcome() -> tuple[int, ...]:
            items = tuple(seen.assert_rules_kept().items)
            seen.request(5)
            clock.advance_by(1)
            if overflow == "buffer":
                seen.assert_items(0, 1, 2)
            else:
                seen.assert_items(*items, 2)
            seen.cancel()
            assert clock.pending == 0
            return items

        return Scenario(lambda: seen.request(1), lambda: clock.advance_by(2), outcome=outcome)

    exhaust(body, {(0,)} if overflow == "buffer" else {(0,), (1,), ()})


def test_a_cancel_against_the_ticks_of_interval() -> None:
    def body() -> Scenario:
        clock = VirtualClock()
        seen = TestSubscriber[int]()
        interval(1, clock=clock).subscribe(seen)

        def check() -> None:
            seen.assert_rules_kept().assert_not_terminated()
            assert clock.pending == 0

        return Scenario(seen.cancel, lambda: clock.advance_by(2), check=check)

    exhaust(body)


def test_a_request_against_the_timer() -> None:
    def body() -> Scenario:
        clock = VirtualClock()
        seen = TestSubscriber[int](0)
        timer(1, clock=clock).subscribe(seen)

        def check() -> None:
            seen.assert_result(0)
            assert clock.pending == 0

        return Scenario(lambda: seen.request(1), lambda: clock.advance_by(1), check=check)

    exhaust(body)


@pytest.mark.parametrize("name", ["interval", "timeout"])
def test_a_subscription_against_a_cancel_leaves_no_timer(name: str) -> None:
    """The timer is made with the permit, so that a thread that closes sees it."""

    def body() -> Scenario:
        clock = VirtualClock()
        seen = Introduced()
        made: Flow[int] = interval(1, clock=clock)
        if name == "timeout":
            made = flow.never().pipe(timeout(1, clock=clock))

        def cancel() -> None:
            if seen.subscriptions:
                seen.subscriptions[0].cancel()

        def check() -> None:
            if not seen.cancelled:
                seen.subscriptions[0].cancel()
            assert clock.pending == 0

        def leave() -> None:
            seen.cancelled = bool(seen.subscriptions)
            cancel()

        return Scenario(lambda: made.subscribe(seen), leave, check=check)

    exhaust(body)


class Introduced(CoreSubscriber[int]):
    """Keeps its subscription, and does not care for signals."""

    def __init__(self) -> None:
        self.subscriptions: list[Subscription] = []
        self.cancelled = False

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscriptions.append(subscription)

    def on_next(self, item: int, /) -> None: ...

    def on_error(self, error: BaseException, /) -> None: ...

    def on_complete(self) -> None: ...


# -- limits


def test_an_item_against_the_end_of_the_first_while() -> None:
    def body() -> Scenario:
        setting = Setting()
        setting.run(take_with_time(1, clock=setting.clock))

        def outcome() -> int:
            setting.seen.assert_result(*setting.seen.items)
            setting.source.assert_cancelled()
            setting.over()
            return len(setting.seen.items)

        return Scenario(lambda: setting.source.next(1), setting.pass_time, outcome=outcome)

    exhaust(body, {0, 1})


def test_a_request_against_the_end_of_take_last() -> None:
    def body() -> Scenario:
        setting = Setting(1)
        setting.run(take_last_with_time(1, clock=setting.clock))
        setting.source.next(1)

        def check() -> None:
            setting.seen.assert_result(1, 2)
            setting.over()

        return Scenario(
            lambda: (setting.source.next(2), setting.source.complete()),
            lambda: setting.seen.request(1),
            check=check,
        )

    exhaust(body)


def test_a_request_against_an_item_of_skip_last() -> None:
    def body() -> Scenario:
        setting = Setting(1)
        setting.run(skip_last_with_time(1, clock=setting.clock))
        setting.source.next(1)

        def check() -> None:
            setting.seen.assert_rules_kept()
            assert setting.seen.outstanding == 2
            assert setting.source.outstanding >= 2
            setting.pass_time()
            setting.source.next(3)
            setting.seen.assert_items(1, 2)

        return Scenario(
            lambda: setting.source.next(2), lambda: setting.seen.request(1), check=check
        )

    exhaust(body)


# -- rate_limit


def limited(clock: VirtualClock, request: int) -> tuple[TestPublisher[int], TestSubscriber[int]]:
    source, seen = TestPublisher[int](), TestSubscriber[int](request)
    flow.Flow(source).pipe(rate_limit(1, clock=clock)).subscribe(seen)
    return source, seen


def test_an_item_against_the_time_when_it_is_due() -> None:
    def body() -> Scenario:
        clock = VirtualClock()
        source, seen = limited(clock, 9)
        source.next(0)

        def check() -> None:
            clock.run()
            seen.assert_items(0, 1)

        return Scenario(lambda: source.next(1), lambda: clock.advance_to(1), check=check)

    exhaust(body)


def test_the_time_of_an_item_against_a_request() -> None:
    def body() -> Scenario:
        clock = VirtualClock()
        source, seen = limited(clock, 1)
        source.next(0)
        source.next(1)

        def check() -> None:
            clock.run()
            seen.assert_items(0, 1)

        return Scenario(lambda: seen.request(1), lambda: clock.advance_to(1), check=check)

    exhaust(body)


def test_the_time_of_an_item_against_a_cancel() -> None:
    def body() -> Scenario:
        clock = VirtualClock()
        source, seen = limited(clock, 9)
        source.next(0)
        source.next(1)

        def check() -> None:
            assert clock.pending == 0
            source.assert_cancelled()
            seen.assert_rules_kept().assert_not_terminated()

        return Scenario(lambda: clock.advance_to(1), seen.cancel, check=check)

    exhaust(body)
