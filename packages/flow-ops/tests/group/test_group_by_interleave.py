"""Groups and windows under every schedule within the bound: nothing is lost, no thread hangs."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from typing import Any

import pytest

import flow_core as flow
from flow_core import hooks
from flow_core.clocks import home_clock
from flow_core.errors import ProtocolViolationError
from flow_core.protocols import Fusion
from flow_core.serial import HAS_GIL
from flow_ops import (
    GroupedFlow,
    buffer_with_time_or_count,
    flat_map,
    group_by,
    window_boundary,
    window_toggle,
    window_with_count,
    window_with_time_or_count,
)
from flow_testing import TestPublisher, TestSubscriber, VirtualClock
from flow_testing.interleave import Body, Report, Scenario, explore_all, step

pytestmark = pytest.mark.interleave

ASYNC = Fusion.ANY | Fusion.THREAD_BOUNDARY

FORMS = pytest.mark.parametrize("fusion", [Fusion.NONE, ASYNC], ids=["pushed", "fused"])


MODULES = ("flow_core.serial", "flow_ops.group", "flow_ops.coordination", __name__)


GROUP = ("flow_core.serial", "flow_ops.group", __name__)
"""Without the coordinator, which has separate tests, where there would be too many schedules."""


def exhaust(
    body: Body,
    expect: Collection[Hashable] | None = None,
    modules: Collection[str] = MODULES,
) -> Report:
    return explore_all(body, modules=modules, expect=expect)


def busy(*_: object) -> None:
    """A subscriber that takes its time."""
    step()


class Grouped:
    """A subscription to the groups of even and odd items."""

    def __init__(self, prefetch: int = 8, demand: int = 9, **more: Any) -> None:
        self.source = TestPublisher[int]()
        self.main = TestSubscriber[GroupedFlow[int, int]](demand, on_item=busy)
        flow.Flow(self.source).pipe(group_by(lambda n: n % 2, prefetch=prefetch, **more)).subscribe(
            self.main
        )

    def group(self, index: int, demand: int, fusion: Fusion = Fusion.NONE) -> TestSubscriber[int]:
        seen = TestSubscriber[int](demand, on_item=busy, fusion=fusion)
        self.main.items[index].subscribe(seen)
        return seen

    def check_permits(self, *groups: TestSubscriber[int]) -> None:
        for each in (self.main, *groups):
            subscription: Any = each.subscription
            assert subscription._permit, "the permit is lost"


@FORMS
def test_items_against_requests_of_a_group(fusion: Fusion) -> None:
    def body() -> Scenario:
        grouped = Grouped(prefetch=2)
        grouped.source.next(0)
        seen = grouped.group(0, 0, fusion)

        def send() -> None:
            grouped.source.next(2)

        def check() -> None:
            grouped.source.complete()
            seen.assert_result(0, 2)
            grouped.check_permits(seen)
            assert grouped.source.requested >= 3

        return Scenario(send, lambda: seen.request(2), check=check)

    exhaust(body)


@FORMS
def test_with_a_prefetch_of_one_consumption_and_the_next_item_never_miss_one_another(
    fusion: Fusion,
) -> None:
    """The thread that receives the last requested item, against the one that consumes it."""

    def body() -> Scenario:
        grouped = Grouped(prefetch=2)
        grouped.source.next(0)
        seen = grouped.group(0, 0, fusion)

        def check() -> None:
            assert grouped.source.outstanding, "nothing is asked for any more"
            assert seen.items == [0]

        return Scenario(lambda: grouped.source.next(1), lambda: seen.request(1), check=check)

    exhaust(body)


@FORMS
def test_an_item_against_the_cancel_of_its_group(fusion: Fusion) -> None:
    def body() -> Scenario:
        grouped = Grouped(prefetch=2)
        grouped.source.next(0)
        seen = grouped.group(0, 1, fusion)

        def send() -> None:
            grouped.source.next(2)

        def check() -> None:
            seen.assert_rules_kept()
            grouped.check_permits(seen)
            new = grouped.main.items[1:]
            assert [group.key for group in new] in ([], [0])
            late = TestSubscriber[int]()
            for group in new:
                group.subscribe(late)
            assert grouped.source.requested - 2 >= 1
            grouped.source.next(4)
            assert grouped.source.outstanding or not new
            hub: Any = grouped.main.subscription
            assert len(hub.hub.groups) == 1
            assert late.items in ([], [2, 4])

        return Scenario(send, seen.cancel, check=check)

    exhaust(body)


@FORMS
def test_a_request_against_a_cancel_of_a_group_loses_no_credit(fusion: Fusion) -> None:
    def body() -> Scenario:
        grouped = Grouped(prefetch=2)
        grouped.source.next(0, 2)
        seen = grouped.group(0, 0, fusion)

        def check() -> None:
            seen.assert_rules_kept()
            assert grouped.source.outstanding
            hub: Any = grouped.main.subscription
            assert hub.hub.buffered == 0
            assert not hub.hub.groups

        return Scenario(lambda: seen.request(2), seen.cancel, check=check)

    exhaust(body)


class Held:
    """A subscriber that holds the groups of even and odd items, and reads none."""

    def __init__(self, prefetch: int) -> None:
        self._clock = home_clock(None, None)
        self.source = TestPublisher[int]()
        self.parts: list[Any] = []
        self.handle = (
            flow.Flow(self.source)
            .pipe(group_by(lambda n: n % 2, prefetch=prefetch))
            .subscribe(self.parts.append)
        )

    def assert_outstanding(self) -> None:
        """Items are asked for: at once, or when a watch looks, without the GIL."""
        if not HAS_GIL and isinstance(self._clock, VirtualClock):
            self._clock.advance_by(0.1)
        assert self.source.outstanding, "what waits in a group that nobody holds blocks others"


def test_an_item_against_the_last_reference_to_its_group() -> None:
    def body() -> Scenario:
        held = Held(prefetch=2)
        held.source.next(0)

        def check() -> None:
            held.assert_outstanding()
            held.source.next(4)
            assert not held.parts, "a group begins again"
            held.assert_outstanding()
            held.handle.dispose()

        return Scenario(lambda: held.source.next(2), held.parts.clear, check=check)

    exhaust(body)


def test_last_references_to_two_groups() -> None:
    def body() -> Scenario:
        held = Held(prefetch=2)
        held.source.next(0, 1)

        def check() -> None:
            held.assert_outstanding()
            held.source.complete()
            assert held.handle.disposed

        return Scenario(
            lambda: held.parts.__delitem__(0), lambda: held.parts.__delitem__(-1), check=check
        )

    exhaust(body)


def test_the_last_reference_to_a_group_against_the_end() -> None:
    def body() -> Scenario:
        held = Held(prefetch=2)
        held.source.next(0, 1)

        def check() -> None:
            assert held.handle.disposed

        return Scenario(held.source.complete, held.parts.clear, check=check)

    exhaust(body)


def test_the_last_reference_to_a_group_against_the_cancel_of_their_flow() -> None:
    def body() -> Scenario:
        held = Held(prefetch=2)
        held.source.next(0, 1)
        return Scenario(held.handle.dispose, held.parts.clear, check=held.source.assert_cancelled)

    exhaust(body)


def test_a_new_group_against_the_cancel_of_their_flow() -> None:
    def body() -> Scenario:
        dropped: list[object] = []
        scope = hooks.dropped_items.scoped("interleave", dropped.append)
        scope.__enter__()
        grouped = Grouped(prefetch=1)

        def check() -> None:
            scope.__exit__(None, None, None)
            grouped.main.assert_rules_kept().assert_not_terminated()
            grouped.source.assert_cancelled()
            assert dropped in ([1], [])  # not sent at all, after a cancel
            for group in grouped.main.items:
                late = TestSubscriber[int]()
                group.subscribe(late)
                late.assert_failure(ProtocolViolationError)

        return Scenario(lambda: grouped.source.next(1), grouped.main.cancel, check=check)

    exhaust(body)


@FORMS
def test_the_cancel_of_the_flow_of_groups_lets_a_running_group_run(fusion: Fusion) -> None:
    def body() -> Scenario:
        grouped = Grouped(prefetch=1)
        grouped.source.next(0)
        seen = grouped.group(0, 5, fusion)

        def check() -> None:
            grouped.source.assert_not_cancelled()
            assert grouped.source.outstanding
            grouped.source.next(3)  # of no group: dropped, and asked for again
            grouped.source.next(4)
            grouped.source.complete()
            seen.assert_result(0, 2, 4)

        return Scenario(lambda: grouped.source.next(2), grouped.main.cancel, check=check)

    exhaust(body)


def test_a_late_subscriber_against_the_cancel_of_the_flow_of_groups() -> None:
    def body() -> Scenario:
        grouped = Grouped(prefetch=1)
        grouped.source.next(0)
        group = grouped.main.items[0]
        seen = TestSubscriber[int](5, on_item=busy)

        def outcome() -> Hashable:
            if seen.terminated:
                seen.assert_failure(ProtocolViolationError)
                grouped.source.assert_cancelled()
                return "too late"
            grouped.source.assert_not_cancelled()
            grouped.source.next(2)
            seen.assert_items(0, 2)
            return "in time"

        return Scenario(lambda: group.subscribe(seen), grouped.main.cancel, outcome=outcome)

    exhaust(body, {"too late", "in time"})


def test_both_cancels_cancel_the_upstream() -> None:
    def body() -> Scenario:
        grouped = Grouped()
        grouped.source.next(0)
        seen = grouped.group(0, 0)

        def check() -> None:
            grouped.source.assert_cancelled()
            grouped.check_permits(seen)
            hub: Any = grouped.main.subscription
            assert hub.hub._main is None
            assert not hub.hub.groups

        return Scenario(seen.cancel, grouped.main.cancel, check=check)

    exhaust(body)


@FORMS
def test_the_end_against_a_request_of_a_group(fusion: Fusion) -> None:
    def body() -> Scenario:
        grouped = Grouped()
        grouped.source.next(0)
        seen = grouped.group(0, 0, fusion)

        def check() -> None:
            seen.assert_result(0)
            grouped.main.assert_result(*grouped.main.items)

        return Scenario(grouped.source.complete, lambda: seen.request(1), check=check)

    exhaust(body)


@FORMS
def test_the_end_against_a_late_subscriber(fusion: Fusion) -> None:
    def body() -> Scenario:
        grouped = Grouped()
        grouped.source.next(0)
        group = grouped.main.items[0]
        seen = TestSubscriber[int](1, on_item=busy, fusion=fusion)
        return Scenario(
            grouped.source.complete,
            lambda: group.subscribe(seen),
            check=lambda: seen.assert_result(0),
        )

    exhaust(body, modules=GROUP)


@FORMS
def test_an_error_against_a_request_of_a_group_comes_once(fusion: Fusion) -> None:
    error = ValueError("upstream")

    def body() -> Scenario:
        grouped = Grouped()
        grouped.source.next(0)
        seen = grouped.group(0, 0, fusion)

        def outcome() -> Hashable:
            seen.assert_failure(error, *seen.items)
            grouped.main.assert_failure(error, *grouped.main.items)
            return tuple(seen.items)

        return Scenario(
            lambda: grouped.source.error(error), lambda: seen.request(1), outcome=outcome
        )

    exhaust(body, {(), (0,)})


@FORMS
def test_the_end_against_the_cancel_of_a_group(fusion: Fusion) -> None:
    def body() -> Scenario:
        grouped = Grouped()
        grouped.source.next(0)
        seen = grouped.group(0, 1, fusion)

        def check() -> None:
            seen.assert_rules_kept()
            grouped.main.assert_result(*grouped.main.items)

        return Scenario(grouped.source.complete, seen.cancel, check=check)

    exhaust(body, modules=GROUP)


@FORMS
def test_a_bad_request_of_a_group_against_an_item(fusion: Fusion) -> None:
    def body() -> Scenario:
        grouped = Grouped(prefetch=2)
        grouped.source.next(0)
        seen = grouped.group(0, 1, fusion)

        def check() -> None:
            seen.assert_failure(ValueError, *seen.items)
            hub: Any = grouped.main.subscription
            waiting = sum(hub.waiting for hub in hub.hub.groups.values())
            assert hub.hub.buffered == waiting

        return Scenario(
            lambda: grouped.source.next(2), lambda: seen.subscription.request(0), check=check
        )

    exhaust(body)


@FORMS
def test_the_upstream_continues_when_two_threads_consume_two_groups(fusion: Fusion) -> None:
    """The items that the two have consumed are added up, however they race for them."""

    def body() -> Scenario:
        grouped = Grouped(prefetch=2)
        grouped.source.next(0, 1)
        even, odd = grouped.group(0, 0, fusion), grouped.group(1, 0, fusion)

        def check() -> None:
            hub: Any = grouped.main.subscription
            assert hub.hub.buffered == 0
            assert grouped.source.outstanding >= 1
            grouped.source.next(2)
            assert grouped.source.outstanding, "a credit is lost"
            even.assert_items(0)

        return Scenario(lambda: even.request(1), lambda: odd.request(1), check=check)

    exhaust(body)


def test_requests_of_the_flow_of_groups_against_a_new_group() -> None:
    def body() -> Scenario:
        grouped = Grouped(prefetch=2, demand=0)

        def send() -> None:
            grouped.source.next(0, 1)

        def check() -> None:
            assert [group.key for group in grouped.main.items] == [0, 1]

        return Scenario(send, lambda: grouped.main.request(2), check=check)

    exhaust(body)


def test_fused_all_the_way_through_flat_map() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        seen = TestSubscriber[int](0, on_item=busy)
        flow.Flow(source).pipe(group_by(lambda n: n % 2, prefetch=2)).pipe(
            flat_map(lambda group: group, prefetch=1)
        ).subscribe(seen)

        def send() -> None:
            source.next(0, 1)

        def check() -> None:
            source.complete()
            assert sorted(seen.items) == [0, 1]
            assert seen.terminated

        return Scenario(send, lambda: seen.request(9), check=check)

    exhaust(body, modules=GROUP)


# -- windows


class Windowed:
    """A subscription to windows, each of which is subscribed to at once."""

    def __init__(self, operator: Any, fusion: Fusion = Fusion.NONE, demand: int = 9) -> None:
        self.source = TestPublisher[int]()
        self.windows: list[TestSubscriber[int]] = []
        self.fusion = fusion
        self.demand = demand
        self.main = TestSubscriber[Any](on_item=self._subscribe)
        flow.Flow(self.source).pipe(operator).subscribe(self.main)

    def _subscribe(self, _: object, window: flow.Flow[int]) -> None:
        seen = TestSubscriber[int](self.demand, on_item=busy, fusion=self.fusion)
        self.windows.append(seen)
        window.subscribe(seen)

    @property
    def items(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(window.items) for window in self.windows)


@FORMS
def test_an_item_against_a_boundary_is_in_one_of_the_two_windows(fusion: Fusion) -> None:
    def body() -> Scenario:
        ends = TestPublisher[str]()
        seen = Windowed(window_boundary(flow.Flow(ends), prefetch=1), fusion)

        def outcome() -> Hashable:
            seen.windows[0].assert_result(*seen.windows[0].items)
            assert seen.source.outstanding
            assert ends.outstanding
            return seen.items

        return Scenario(lambda: seen.source.next(1), lambda: ends.next("now"), outcome=outcome)

    exhaust(body, {((1,), ()), ((), (1,))})


def test_the_end_against_a_boundary_ends_all_windows() -> None:
    def body() -> Scenario:
        ends = TestPublisher[str]()
        seen = Windowed(window_boundary(flow.Flow(ends)))

        def outcome() -> Hashable:
            for window in seen.windows:
                window.assert_result()
            assert seen.main.terminated
            return len(seen.windows)

        return Scenario(seen.source.complete, lambda: ends.next("now"), outcome=outcome)

    exhaust(body, {1, 2}, modules=GROUP)


def test_a_boundary_against_the_cancel_of_the_flow_of_windows() -> None:
    def body() -> Scenario:
        ends = TestPublisher[str]()
        seen = Windowed(window_boundary(flow.Flow(ends)))

        def outcome() -> Hashable:
            seen.windows[0].assert_result()
            for window in seen.windows[1:]:
                window.assert_not_terminated()
                window.cancel()
            seen.source.assert_cancelled()
            ends.assert_cancelled()
            return len(seen.windows)

        return Scenario(lambda: ends.next("now"), seen.main.cancel, outcome=outcome)

    exhaust(body, {1, 2}, modules=GROUP)


@FORMS
def test_overlapping_windows_on_two_threads_lose_no_credit(fusion: Fusion) -> None:
    def body() -> Scenario:
        seen = Windowed(window_with_count(3, 1, prefetch=2), fusion, demand=0)
        seen.source.next(0, 1)
        one, two = seen.windows

        def check() -> None:
            hub: Any = seen.main.subscription
            assert hub.hub.buffered == 0
            assert hub.hub._released == 2
            assert seen.source.outstanding

        return Scenario(lambda: one.request(2), lambda: two.request(1), check=check)

    exhaust(body, modules=GROUP)


@FORMS
def test_an_overlapping_window_that_is_cancelled_against_an_item(fusion: Fusion) -> None:
    def body() -> Scenario:
        seen = Windowed(window_with_count(2, 1, prefetch=2), fusion)
        seen.source.next(0)

        def check() -> None:
            hub: Any = seen.main.subscription
            assert hub.hub.buffered == 0
            seen.source.next(2)
            assert hub.hub.buffered == 0
            assert seen.source.outstanding
            assert seen.windows[1].items == [1, 2]

        return Scenario(lambda: seen.source.next(1), seen.windows[0].cancel, check=check)

    exhaust(body, modules=GROUP)


def test_a_timer_against_the_item_that_fills_a_window() -> None:
    def body() -> Scenario:
        clock = VirtualClock()
        seen = Windowed(window_with_time_or_count(1, 2, clock=clock))
        seen.source.next(0)
        clock.advance_to(0.5)

        def outcome() -> Hashable:
            assert clock.pending == 1
            return seen.items

        return Scenario(
            lambda: seen.source.next(1), lambda: clock.advance_to(1.25), outcome=outcome
        )

    exhaust(body, {((0, 1), ()), ((0,), (1,))})


def test_a_timer_against_a_cancel_leaves_no_timer() -> None:
    def body() -> Scenario:
        clock = VirtualClock()
        source = TestPublisher[int]()
        seen = TestSubscriber[list[int]]()
        operator = buffer_with_time_or_count(1, 2, clock=clock)
        flow.Flow(source).pipe(operator).subscribe(seen)
        source.next(0)

        def check() -> None:
            assert clock.pending == 0
            source.assert_cancelled()
            assert seen.items in ([], [[0]])

        return Scenario(lambda: clock.advance_to(1), seen.cancel, check=check)

    exhaust(body)


def test_a_timer_against_the_end_gives_every_item_once() -> None:
    def body() -> Scenario:
        clock = VirtualClock()
        source = TestPublisher[int]()
        seen = TestSubscriber[list[int]]()
        operator = buffer_with_time_or_count(1, 2, clock=clock)
        flow.Flow(source).pipe(operator).subscribe(seen)
        source.next(0)

        def check() -> None:
            seen.assert_result([0])
            assert clock.pending == 0

        return Scenario(lambda: clock.advance_to(1), source.complete, check=check)

    exhaust(body)


def test_a_buffer_that_is_due_against_a_request() -> None:
    def body() -> Scenario:
        clock = VirtualClock()
        source = TestPublisher[int]()
        seen = TestSubscriber[list[int]](0)
        operator = buffer_with_time_or_count(1, 2, clock=clock)
        flow.Flow(source).pipe(operator).subscribe(seen)

        def send() -> None:
            source.next(0, 1)

        def check() -> None:
            seen.assert_items([0, 1])
            assert source.outstanding == 2

        return Scenario(send, lambda: seen.request(1), check=check)

    exhaust(body)


def test_an_opening_against_the_end_of_another_window() -> None:
    def body() -> Scenario:
        openings = TestPublisher[int]()
        closing = TestPublisher[str]()
        seen = Windowed(window_toggle(flow.Flow(openings), lambda _: flow.Flow(closing)))
        openings.next(1)

        def check() -> None:
            seen.windows[0].assert_result()
            assert seen.main.terminated
            seen.source.assert_cancelled()

        return Scenario(openings.complete, lambda: closing.next("now"), check=check)

    exhaust(body)
