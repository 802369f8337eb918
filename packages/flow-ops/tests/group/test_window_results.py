"""The items of windows and buffers; when they begin and end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flow_core as flow
from flow_core.errors import MissingBackpressureError, NoneItemError, ProtocolViolationError
from flow_core.protocols import Fusion
from flow_ops import (
    buffer_boundary,
    buffer_toggle,
    buffer_when,
    buffer_with_time,
    buffer_with_time_or_count,
    concat_map,
    flat_map,
    window_boundary,
    window_toggle,
    window_when,
    window_with_count,
    window_with_time,
    window_with_time_or_count,
)
from flow_testing import TestPublisher, TestSubscriber, VirtualClock, assert_result

Windows = flow.Flow[flow.Flow[Any]]


class Seen:
    """All windows of a flow, each with a separate subscriber."""

    def __init__(self, windows: flow.Flow[Any], demand: int = 1_000_000) -> None:
        self.windows: list[TestSubscriber[Any]] = []
        self.demand = demand
        self.main = TestSubscriber[Any](on_item=self._subscribe)
        windows.subscribe(self.main)

    def _subscribe(self, _: object, window: flow.Flow[Any]) -> None:
        seen = TestSubscriber[Any](self.demand)
        self.windows.append(seen)
        window.subscribe(seen)

    @property
    def items(self) -> list[list[Any]]:
        return [window.items for window in self.windows]

    @property
    def open(self) -> list[bool]:
        return [not window.terminated for window in self.windows]


def lists(windows: flow.Flow[flow.Flow[int]]) -> flow.Flow[list[int]]:
    return windows.pipe(concat_map(lambda window: window.to_list()))


# -- by count


@pytest.mark.checklist("F56")
@pytest.mark.parametrize("prefetch", [1, 2, 128])
def test_windows_of_a_count(prefetch: int) -> None:
    assert_result(
        lambda: lists(flow.range(7).pipe(window_with_count(3, prefetch=prefetch))),
        [[0, 1, 2], [3, 4, 5], [6]],
    )


@pytest.mark.checklist("F56")
def test_windows_of_a_count_hidden_and_fused() -> None:
    assert_result(
        lambda: (
            flow.range(5)
            .pipe(window_with_count(2, prefetch=2))
            .hide()
            .pipe(concat_map(lambda window: window.hide().pipe(concat_map(flow.just))))
        ),
        list(range(5)),
    )


@given(st.integers(0, 40), st.integers(1, 9), st.integers(1, 12), st.integers(9, 40), st.booleans())
@settings(deadline=None)
def test_windows_of_a_count_are_slices(
    total: int, count: int, skip: int, prefetch: int, hidden: bool
) -> None:
    windows = flow.range(total).pipe(window_with_count(count, skip, prefetch=prefetch))
    slices = windows.pipe(
        flat_map(lambda window: (window.hide() if hidden else window).to_list(), prefetch=1)
    )
    model = [list(range(total))[start : start + count] for start in range(0, total, skip)]
    assert sorted(slices) == model


@given(st.integers(0, 30), st.integers(1, 6), st.integers(1, 6), st.integers(1, 8))
@settings(deadline=None)
def test_overlapping_windows_never_hold_more_than_the_prefetch(
    total: int, count: int, skip: int, prefetch: int
) -> None:
    source = TestPublisher[int]()
    seen = Seen(flow.Flow(source).pipe(window_with_count(count, skip, prefetch=prefetch)))
    for n in range(total):
        assert source.outstanding, "all that came was consumed"
        source.next(n)
    source.complete()
    assert seen.items == [
        list(range(total))[start : start + count] for start in range(0, total, skip)
    ]
    assert all(not is_open for is_open in seen.open)
    seen.main.assert_result(*seen.main.items)
    hub: Any = seen.main.subscription
    assert hub.hub._heads == {}


def test_an_item_of_two_windows_is_requested_again_when_both_have_consumed_it() -> None:
    source = TestPublisher[int]()
    seen = Seen(flow.Flow(source).pipe(window_with_count(2, 1, prefetch=2)), demand=0)
    source.next(0, 1)
    one, two = seen.windows
    one.request(2)
    source.assert_requests(2, 1)
    two.request(1)
    source.assert_requests(2, 1)  # one is to come: no subscriber waits for the other
    source.next(2)
    source.assert_requests(2, 1, 1)
    one.assert_result(0, 1)


def test_windows_wait_for_demand_with_their_items() -> None:
    source = TestPublisher[int]()
    windows = TestSubscriber[flow.Flow[int]](1)
    flow.Flow(source).pipe(window_with_count(1, prefetch=3)).subscribe(windows)
    source.next(0, 1, 2)
    assert len(windows.items) == 1
    windows.request(5)
    assert [list(window) for window in windows.items] == [[0], [1], [2]]
    assert source.outstanding


def test_a_cancelled_window_gets_nothing_and_the_next_one_does() -> None:
    source = TestPublisher[int]()
    seen = Seen(flow.Flow(source).pipe(window_with_count(2, prefetch=1)))
    source.next(0)
    seen.windows[0].cancel()
    source.next(1)
    source.next(2)
    source.next(3)
    assert seen.items[0] == [0]
    assert source.outstanding


@pytest.mark.checklist("M02")
def test_a_window_has_one_subscriber() -> None:
    (window,) = flow.just(1).pipe(window_with_count(2))
    assert list(window) == [1]
    with pytest.raises(ProtocolViolationError, match="a window of window_with_count"):
        list(window)


@pytest.mark.checklist("F56")
def test_a_window_answers_async() -> None:
    (window,) = flow.just(1, 2).pipe(window_with_count(2))
    seen = TestSubscriber[int](fusion=Fusion.ANY | Fusion.THREAD_BOUNDARY)
    window.subscribe(seen)
    seen.assert_fusion(Fusion.ASYNC).assert_result(1, 2)


def test_windows_run_on_when_their_flow_is_cancelled(dropped: Any) -> None:
    source = TestPublisher[int]()
    seen = Seen(flow.Flow(source).pipe(window_with_count(3)))
    source.next(0)
    seen.main.cancel()
    source.assert_not_cancelled()
    source.next(1, 2)
    source.assert_cancelled()
    seen.windows[0].assert_result(0, 1, 2)


def test_windows_without_a_subscriber_do_not_run_on(dropped: Any) -> None:
    source = TestPublisher[int]()
    main = TestSubscriber[flow.Flow[int]]()
    flow.Flow(source).pipe(window_with_count(3)).subscribe(main)
    source.next(0)
    main.cancel()
    source.assert_cancelled()
    assert dropped.items == [0]
    late = TestSubscriber[int]()
    main.items[0].subscribe(late)
    late.assert_failure(ProtocolViolationError)


def test_an_error_comes_after_waiting_items() -> None:
    source = TestPublisher[int]()
    seen = Seen(flow.Flow(source).pipe(window_with_count(3)), demand=0)
    source.next(0)
    error = ValueError("upstream")
    source.error(error)
    seen.main.assert_failure(error, *seen.main.items)
    seen.windows[0].assert_not_terminated()
    seen.windows[0].request(1)
    seen.windows[0].assert_failure(error, 0)


# -- by time


def timeline(
    events: list[tuple[float, int]], make: Callable[[VirtualClock], Any], until: float
) -> Seen:
    clock = VirtualClock()
    source = TestPublisher[int]()
    seen = Seen(flow.Flow(source).pipe(make(clock)))
    for at, item in events:
        clock.advance_to(at)
        source.next(item)
    clock.advance_to(until)
    source.complete()
    assert clock.pending == 0
    seen.main.assert_result(*seen.main.items)
    return seen


EVENTS = st.lists(st.integers(0, 50), max_size=20).map(
    lambda times: [(at + 0.5, n) for n, at in enumerate(sorted(times))]
)
"""Items between ticks, so that there is no tie."""


@pytest.mark.slow
@given(EVENTS, st.integers(1, 12), st.integers(1, 12))
@settings(deadline=None)
def test_windows_of_a_time(events: list[tuple[float, int]], period: int, shift: int) -> None:
    seen = timeline(events, lambda clock: window_with_time(period, shift, clock=clock), 60)
    assert seen.items == [
        [item for at, item in events if start <= at < start + period]
        for start in range(0, 61, shift)
    ]
    assert not any(seen.open)


@pytest.mark.slow
@given(EVENTS, st.integers(1, 12), st.integers(1, 12), st.booleans())
@settings(deadline=None)
def test_buffers_of_a_time(
    events: list[tuple[float, int]], period: int, shift: int, empty: bool
) -> None:
    clock = VirtualClock()
    source = TestPublisher[int]()
    seen = TestSubscriber[list[int]]()
    operator = buffer_with_time(period, shift, empty=empty, clock=clock)
    flow.Flow(source).pipe(operator).subscribe(seen)
    for at, item in events:
        clock.advance_to(at)
        source.next(item)
    clock.advance_to(60)
    source.complete()
    model = [
        (start + period <= 60, [item for at, item in events if start <= at < start + period])
        for start in range(0, 61, shift)
    ]
    seen.assert_result(*(items for full, items in model if (full and empty) or items))
    assert clock.pending == 0


def model_of_time_or_count(
    events: list[tuple[float, int]], period: float, count: int, until: float
) -> list[list[int]]:
    windows: list[list[int]] = [[]]
    begin = 0.0
    for at, item in events:
        while at >= begin + period:
            begin += period
            windows.append([])
        windows[-1].append(item)
        if len(windows[-1]) == count:
            begin = at
            windows.append([])
    while until >= begin + period:
        begin += period
        windows.append([])
    return windows


@pytest.mark.slow
@given(EVENTS, st.integers(1, 12), st.integers(1, 4))
@settings(deadline=None)
def test_windows_of_a_time_or_count(
    events: list[tuple[float, int]], period: int, count: int
) -> None:
    seen = timeline(
        events, lambda clock: window_with_time_or_count(period, count, clock=clock), 60.25
    )
    assert seen.items == model_of_time_or_count(events, period, count, 60.25)
    assert not any(seen.open)


@pytest.mark.slow
@given(EVENTS, st.integers(1, 12), st.integers(1, 4), st.booleans())
@settings(deadline=None)
def test_buffers_of_a_time_or_count(
    events: list[tuple[float, int]], period: int, count: int, empty: bool
) -> None:
    clock = VirtualClock()
    source = TestPublisher[int]()
    seen = TestSubscriber[list[int]]()
    operator = buffer_with_time_or_count(period, count, empty=empty, clock=clock)
    flow.Flow(source).pipe(operator).subscribe(seen)
    for at, item in events:
        clock.advance_to(at)
        source.next(item)
    clock.advance_to(60.25)
    source.complete()
    model = model_of_time_or_count(events, period, count, 60.25)
    if not empty:
        model = [items for items in model if items]
    seen.assert_result(*(model if model and model[-1] else model[:-1]))


def test_open_windows_still_end_in_time_when_their_flow_is_cancelled() -> None:
    clock = VirtualClock()
    source = TestPublisher[int]()
    seen = Seen(flow.Flow(source).pipe(window_with_time(10, clock=clock)))
    source.next(0)
    seen.main.cancel()
    clock.advance_by(9)
    source.next(1)
    seen.windows[0].assert_not_terminated()
    clock.advance_by(1)
    seen.windows[0].assert_result(0, 1)
    source.assert_cancelled()
    assert clock.pending == 0


@pytest.mark.parametrize(
    "operator",
    [
        lambda clock: window_with_time(1, clock=clock, max_waiting=2),
        lambda clock: buffer_with_time(1, empty=True, clock=clock, max_waiting=2),
        lambda clock: window_with_time_or_count(1, 5, clock=clock, max_waiting=2),
        lambda clock: buffer_with_time_or_count(1, 5, empty=True, clock=clock, max_waiting=2),
    ],
)
def test_time_does_not_wait_for_demand(operator: Callable[[VirtualClock], Any]) -> None:
    clock = VirtualClock()
    source = TestPublisher[int]()
    main = TestSubscriber[Any](0)
    flow.Flow(source).pipe(operator(clock)).subscribe(main)
    clock.advance_by(1)
    main.assert_not_terminated()
    clock.advance_by(4)
    main.assert_failure(MissingBackpressureError)
    main.assert_error_message("max_waiting")
    source.assert_cancelled()
    assert clock.pending == 0


def test_a_full_buffer_makes_the_upstream_pause() -> None:
    clock = VirtualClock()
    source = TestPublisher[int]()
    main = TestSubscriber[list[int]](0)
    flow.Flow(source).pipe(buffer_with_time(1, clock=clock, max_size=2)).subscribe(main)
    source.next(0, 1)
    assert not source.outstanding
    clock.advance_by(1)
    assert not source.outstanding
    main.request(1)
    assert source.outstanding == 2
    main.assert_items([0, 1])


def test_a_full_buffer_of_a_count_waits_for_demand() -> None:
    clock = VirtualClock()
    source = TestPublisher[int]()
    main = TestSubscriber[list[int]](0)
    flow.Flow(source).pipe(buffer_with_time_or_count(60, 2, clock=clock)).subscribe(main)
    source.next(0, 1)
    assert not source.outstanding
    main.request(1)
    source.assert_requests(2, 2)


def test_items_of_an_open_buffer_are_dropped_by_an_error(dropped: Any) -> None:
    source = TestPublisher[int]()
    error = ValueError("upstream")
    main = TestSubscriber[list[int]]()
    flow.Flow(source).pipe(buffer_with_time(60, clock=VirtualClock())).subscribe(main)
    source.next(1)
    source.error(error)
    main.assert_failure(error)
    assert dropped.items == [1]


def test_a_cancel_drops_buffers_and_timers(dropped: Any) -> None:
    clock = VirtualClock()
    source = TestPublisher[int]()
    main = TestSubscriber[list[int]](0)
    flow.Flow(source).pipe(buffer_with_time(1, clock=clock)).subscribe(main)
    source.next(1)
    clock.advance_by(1)
    source.next(2)
    main.cancel()
    source.assert_cancelled()
    assert clock.pending == 0
    assert sorted(dropped.items) == [1, 2]


# -- by other flows


@pytest.mark.slow
def test_every_form_of_the_others_gives_the_same() -> None:
    never, now = flow.never, flow.just("now")
    for operator in (
        window_boundary(never()),
        window_when(never),
        window_with_time(60, clock=VirtualClock()),
        window_toggle(now, lambda _: never()),
    ):
        assert_result(lambda operator=operator: lists(flow.range(3).pipe(operator)), [[0, 1, 2]])
    for operator in (
        buffer_boundary(never()),
        buffer_when(never),
        buffer_with_time(60, clock=VirtualClock()),
        buffer_toggle(now, lambda _: never()),
    ):
        assert_result(lambda operator=operator: flow.range(3).pipe(operator), [[0, 1, 2]])


STEPS = st.lists(st.booleans(), max_size=30)
"""True for an item, False for a boundary."""


@pytest.mark.slow
@given(STEPS, st.sampled_from(["boundary", "when"]), st.booleans())
@settings(deadline=None)
def test_boundaries_cut(steps: list[bool], way: str, as_buffers: bool) -> None:
    source, ends = TestPublisher[int](), TestPublisher[str]()
    hub: list[TestPublisher[str]] = []

    def supplier() -> flow.Flow[str]:
        hub.append(TestPublisher())
        return flow.Flow(hub[-1])

    operators: dict[tuple[str, bool], Any] = {
        ("boundary", False): window_boundary(flow.Flow(ends)),
        ("when", False): window_when(supplier),
        ("boundary", True): buffer_boundary(flow.Flow(ends)),
        ("when", True): buffer_when(supplier),
    }
    made: flow.Flow[Any] = flow.Flow(source).pipe(operators[way, as_buffers])
    model: list[list[int]] = [[]]
    seen = Seen(made) if not as_buffers else None
    main = TestSubscriber[Any]() if seen is None else seen.main
    if seen is None:
        made.subscribe(main)
    for n, is_item in enumerate(steps):
        if is_item:
            source.next(n)
            model[-1].append(n)
        else:
            if way == "boundary":
                ends.next("now")
            elif n % 2:
                hub[-1].next("now")
            else:
                hub[-1].complete()
            model.append([])
    source.complete()
    if seen is None:
        main.assert_result(*(model if model[-1] else model[:-1]))
    else:
        assert seen.items == model
        assert not any(seen.open)
    for publisher in (ends, *hub):
        assert not publisher.subscribed or publisher.cancelled or publisher.terminated


@pytest.mark.slow
@given(st.lists(st.sampled_from(["item", "open", "close"]), max_size=30), st.booleans())
@settings(deadline=None)
def test_toggled_segments(steps: list[str], as_buffers: bool) -> None:
    """Segments close in another order than they open: the middle one first."""
    source, openings = TestPublisher[int](), TestPublisher[int]()
    closings: dict[int, TestPublisher[str]] = {}

    def closing(opening: int) -> flow.Flow[str]:
        closings[opening] = TestPublisher()
        return flow.Flow(closings[opening])

    made: flow.Flow[Any]
    if as_buffers:
        made = flow.Flow(source).pipe(buffer_toggle(flow.Flow(openings), closing))
    else:
        made = flow.Flow(source).pipe(window_toggle(flow.Flow(openings), closing))
    seen = None if as_buffers else Seen(made)
    main = TestSubscriber[Any]() if seen is None else seen.main
    if seen is None:
        made.subscribe(main)
    opened: dict[int, list[int]] = {}
    every: list[list[int]] = []
    closed: list[list[int]] = []
    for n, step in enumerate(steps):
        if step == "item":
            source.next(n)
            for segment in opened.values():
                segment.append(n)
        elif step == "open":
            opened[n] = []
            every.append(opened[n])
            openings.next(n)
        elif opened:
            which = sorted(opened)[len(opened) // 2]
            closed.append(opened.pop(which))
            closings[which].next("now")
    source.complete()
    if seen is None:
        main.assert_result(*closed, *(items for items in opened.values() if items))
    else:
        assert seen.items == every
        main.assert_result(*main.items)
    openings.assert_cancelled()
    for publisher in closings.values():
        assert publisher.cancelled or publisher.terminated
    hub: Any = main.subscription
    assert hub.hub._released == hub.hub._received or as_buffers


def test_a_boundary_that_completes_ends_everything() -> None:
    source, ends = TestPublisher[int](), TestPublisher[str]()
    seen = Seen(flow.Flow(source).pipe(window_boundary(flow.Flow(ends))))
    source.next(1)
    ends.complete()
    seen.windows[0].assert_result(1)
    assert seen.main.terminated
    source.assert_cancelled()


@pytest.mark.parametrize("as_buffers", [False, True])
def test_openings_that_have_completed_end_the_flow_with_the_last_segment(as_buffers: bool) -> None:
    source, closing = TestPublisher[int](), TestPublisher[str]()
    made: flow.Flow[Any] = flow.Flow(source).pipe(
        buffer_toggle(flow.just(1), lambda _: flow.Flow(closing))
        if as_buffers
        else window_toggle(flow.just(1), lambda _: flow.Flow(closing))  # type: ignore[arg-type]
    )
    main = TestSubscriber[Any]()
    made.subscribe(main)
    source.next(1)
    main.assert_not_terminated()
    closing.next("now")
    assert main.terminated
    source.assert_cancelled()


@pytest.mark.parametrize("which", ["boundary", "opening", "closing", "closing_mapper", "supplier"])
def test_errors_of_the_others_end_the_windows(which: str) -> None:
    error = ValueError(which)

    def fail(*_: object) -> flow.Flow[object]:
        raise error

    failing: flow.Flow[object] = flow.error(error)
    operators: dict[str, Any] = {
        "boundary": window_boundary(failing),
        "opening": window_toggle(failing, lambda _: flow.never()),
        "closing": window_toggle(flow.just(1), lambda _: failing),
        "closing_mapper": window_toggle(flow.just(1), fail),
        "supplier": window_when(fail),
    }
    source = TestPublisher[int]()
    seen = Seen(flow.Flow(source).pipe(operators[which]))
    seen.main.assert_failure(error, *seen.main.items)
    for window in seen.windows:
        window.assert_failure(error)
    assert not source.subscribed or source.cancelled


def test_a_function_that_makes_no_flow_fails_the_flow() -> None:
    with pytest.raises(NoneItemError, match="closing_supplier"):
        list(flow.never().pipe(window_when(lambda: None)))  # type: ignore[arg-type, return-value]
    with pytest.raises(TypeError, match="closing_mapper gave 3"):
        list(flow.never().pipe(buffer_toggle(flow.just(1), lambda _: 3)))  # type: ignore[arg-type, return-value]


def test_flows_that_end_windows_at_once_fail_for_want_of_demand() -> None:
    main = TestSubscriber[Any](3)
    flow.never().pipe(window_when(lambda: flow.just("now"))).subscribe(main)
    main.assert_failure(MissingBackpressureError, *main.items)
    assert len(main.items) == 3


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: window_with_count(0), ValueError),
        (lambda: window_with_count(1, 0), ValueError),
        (lambda: window_with_time(0), ValueError),
        (lambda: window_with_time(1, -1), ValueError),
        (lambda: window_with_time(1, clock=3), TypeError),
        (lambda: window_with_time_or_count(1, 0), ValueError),
        (lambda: window_boundary(3), TypeError),
        (lambda: window_toggle(3, lambda _: flow.never()), TypeError),
        (lambda: window_toggle(flow.never(), 3), TypeError),
        (lambda: window_when(flow.never()), TypeError),
        (lambda: buffer_with_time("1"), TypeError),
        (lambda: buffer_with_time(1, max_size=0), ValueError),
        (lambda: buffer_with_time_or_count(1, 1, max_waiting=0), ValueError),
        (lambda: buffer_boundary(None), TypeError),
        (lambda: buffer_toggle(flow.never(), None), TypeError),
        (lambda: buffer_when(None), TypeError),
    ],
)
def test_arguments_are_checked_at_once(make: Callable[[], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        make()


def full_buffers(shift_s: float) -> list[list[int]]:
    """Buffers of two seconds that are full at 3 items: that pauses the source until one ends."""
    clock = VirtualClock()
    buffers: list[list[int]] = []
    operator = buffer_with_time(2.0, shift_s, max_size=3, clock=clock)
    flow.range(1, 6).pipe(operator).subscribe(buffers.append)
    clock.advance_by(100)
    return buffers


def test_items_that_the_end_of_a_buffer_asks_for_are_in_the_one_that_begins() -> None:
    assert full_buffers(shift_s=2.0) == [[1, 2, 3], [4, 5]]


def test_items_that_the_end_of_a_buffer_asks_for_are_in_all_that_overlap() -> None:
    buffers = full_buffers(shift_s=1.0)
    assert {4, 5} <= set(buffers[2]), "the one that begins when the first one ends"
    assert {n for buffer in buffers for n in buffer} == {1, 2, 3, 4, 5}
