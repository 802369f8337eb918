"""`batch`, `session_buffer` and `session_window`: lists and windows that begin with an item."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import flow_core as flow
from flow_core.errors import MissingBackpressureError
from flow_core.structure import stages_of
from flow_ops import batch, session_buffer, session_window
from flow_testing import TestPublisher, TestSubscriber, VirtualClock, assert_result


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    with VirtualClock() as clock:
        yield clock


def at(times: list[float]) -> flow.Flow[float]:
    """Items at these times, in this order."""
    return flow.from_iterable(times).flat_map(lambda time: flow.timer(time).map(lambda _: time))


def seen(made: flow.Flow[Any], clock: VirtualClock) -> list[tuple[float, Any]]:
    """Items, and when they come."""
    found: list[tuple[float, Any]] = []
    made.subscribe(lambda item: found.append((round(clock.now(), 6), item)))
    clock.run()
    return found


# -- batch


def test_a_list_is_sent_when_it_is_full_or_its_first_item_is_old(clock: VirtualClock) -> None:
    times = at([1, 2, 3, 10, 11.5, 20])
    assert seen(times.batch(3, within=2), clock) == [
        (3, [1, 2, 3]),
        (12, [10, 11.5]),
        (20, [20]),
    ]


def test_time_runs_from_the_first_item_of_each_list(clock: VirtualClock) -> None:
    times = at([1, 2, 3, 4, 4.5, 9])
    assert seen(times.batch(2, within=2), clock) == [
        (2, [1, 2]),
        (4, [3, 4]),
        (6.5, [4.5]),
        (9, [9]),
    ]


def test_without_a_size_only_the_time_counts(clock: VirtualClock) -> None:
    assert seen(at([1, 2, 3, 9]).batch(within=5), clock) == [(6, [1, 2, 3]), (9, [9])]


def test_without_items_no_time_runs(clock: VirtualClock) -> None:
    subscriber = TestSubscriber[list[int]]()
    source = TestPublisher[int]()
    flow.Flow(source).batch(3, within=2).subscribe(subscriber)
    assert not clock.pending
    source.next(1, 2)
    assert clock.pending == 1
    source.next(3)
    assert not clock.pending
    subscriber.assert_items([1, 2, 3]).cancel()


def test_without_a_time_it_is_a_stage_of_the_core() -> None:
    assert [stage.template.name for stage in stages_of(flow.range(5).batch(2))] == [
        "buffer_with_count"
    ]
    assert_result(lambda: flow.range(5).pipe(batch(2)), [[0, 1], [2, 3], [4]])


@pytest.mark.parametrize("size", [1, 2, 5])
def test_it_gives_the_same_in_every_form(size: int, clock: VirtualClock) -> None:
    lists = [list(range(n, min(n + size, 5))) for n in range(0, 5, size)]
    assert_result(lambda: flow.range(5).batch(size, within=60), lists)


def test_the_upstream_pauses_when_a_full_list_waits(clock: VirtualClock) -> None:
    source, subscriber = TestPublisher[int](), TestSubscriber[list[int]](0)
    flow.Flow(source).batch(3, within=2).subscribe(subscriber)
    source.assert_requests(3)
    source.next(1, 2, 3)
    assert source.outstanding == 0
    subscriber.request(1)
    subscriber.assert_items([1, 2, 3])
    assert source.outstanding == 3
    subscriber.cancel()


def test_lists_that_are_not_full_wait_up_to_a_number(clock: VirtualClock, dropped: Any) -> None:
    subscriber = TestSubscriber[list[float]](0)
    at([float(n) for n in range(1, 200)]).batch(within=0.5).subscribe(subscriber)
    clock.run()
    subscriber.request(1000)
    subscriber.assert_failure(MissingBackpressureError).assert_error_message("128 buffers wait")
    assert dropped.items


@pytest.mark.slow
@given(
    gaps=st.lists(st.integers(0, 5), max_size=30),
    size=st.one_of(st.none(), st.integers(1, 5)),
    within=st.integers(1, 6),
)
def test_each_item_is_sent_once_in_order_in_time(
    gaps: list[int], size: int | None, within: int
) -> None:
    with VirtualClock() as clock:
        times = [sum(gaps[: n + 1]) + n * 1e-6 + 1 for n in range(len(gaps))]
        found = seen(at(times).batch(size, within=within), clock)
    assert [time for _, some in found for time in some] == times
    for sent, some in found:
        assert some
        assert size is None or len(some) <= size
        assert sent - some[0] <= within + 1e-5


# -- sessions


def test_a_session_ends_when_nothing_has_come_for_a_while(clock: VirtualClock) -> None:
    times = at([1, 2, 3.5, 10, 11, 20])
    assert seen(times.session_buffer(2), clock) == [
        (5.5, [1, 2, 3.5]),
        (13, [10, 11]),
        (20, [20]),
    ]


def test_a_session_takes_no_longer_than_its_limit(clock: VirtualClock) -> None:
    times = at([1, 2, 3, 4, 5, 6, 12])
    assert seen(times.session_buffer(2, limit=3.5), clock) == [
        (4.5, [1, 2, 3, 4]),
        (8, [5, 6]),
        (12, [12]),
    ]


def test_a_limit_that_is_shorter_than_the_gap_ends_a_session_by_itself(clock: VirtualClock) -> None:
    assert seen(at([1, 20]).session_buffer(10, limit=3), clock) == [(4, [1]), (20, [20])]


def test_a_session_without_a_pause_is_cut_when_it_is_as_long_as_may_be(clock: VirtualClock) -> None:
    lists = flow.range(65_537).concat(flow.never()).session_buffer(2)
    subscriber = TestSubscriber[list[int]]()
    lists.subscribe(subscriber)
    assert [len(each) for each in subscriber.items] == [65_536]
    clock.advance_by(2)
    assert [len(each) for each in subscriber.items] == [65_536, 1]
    subscriber.cancel()


def test_items_cost_no_timer_each(clock: VirtualClock) -> None:
    source, subscriber = TestPublisher[int](), TestSubscriber[list[int]]()
    flow.Flow(source).session_buffer(2).subscribe(subscriber)
    for n in range(10):
        source.next(n)
        clock.advance_by(1)
        assert clock.pending == 1
    clock.advance_by(1)
    subscriber.assert_items(list(range(10))).cancel()
    assert not clock.pending


def test_windows_of_sessions_begin_with_an_item(clock: VirtualClock) -> None:
    windows = at([1, 2, 10]).session_window(3)
    begun = seen(windows.flat_map(lambda window: window.first_or_error()), clock)
    assert begun == [(1, 1), (10, 10)]


def test_the_items_of_a_session_are_those_of_its_window(clock: VirtualClock) -> None:
    windows = at([1, 2, 3, 10, 11]).session_window(2, limit=60)
    assert seen(windows.concat_map(lambda window: window.to_list()), clock) == [
        (5, [1, 2, 3]),
        (11, [10, 11]),
    ]


def test_the_rest_of_a_session_whose_window_was_cancelled_is_dropped(clock: VirtualClock) -> None:
    windows = at([1, 2, 3, 10, 11]).session_window(3)
    assert seen(windows.flat_map(lambda window: window.take(1)), clock) == [(1, 1), (10, 10)]


def test_errors_come_at_once(clock: VirtualClock, dropped: Any) -> None:
    error = OSError("gone")
    subscriber = TestSubscriber[list[int]]()
    source = TestPublisher[int]()
    flow.Flow(source).session_buffer(2).subscribe(subscriber)
    source.next(1)
    source.error(error)
    subscriber.assert_failure(error)
    assert dropped.items == [1]
    assert not clock.pending


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: batch(), TypeError, "size, within= or both"),
        (lambda: batch(0), ValueError, "size"),
        (lambda: batch("3"), TypeError, "size"),  # type: ignore[arg-type]
        (lambda: batch(3, within=0), ValueError, "period"),
        (lambda: batch(3, within="1"), TypeError, "period"),  # type: ignore[arg-type]
        (lambda: batch(3, within=1, clock=3), TypeError, "a Clock"),  # type: ignore[arg-type]
        (lambda: session_buffer(0), ValueError, "period"),
        (lambda: session_window(1, limit=0), ValueError, "period"),
        (lambda: session_window(1, clock=3), TypeError, "a Clock"),  # type: ignore[arg-type]
    ],
)
def test_arguments_are_checked(make: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        make()
