"""Groups and windows that are not read: their items count for nothing, or the flow says so."""

from __future__ import annotations

import gc
import itertools
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from threading import get_ident
from typing import Any

import pytest

import flow_core as flow
import flow_ops
from flow_core import Flow, hooks
from flow_core.errors import MissingBackpressureError
from flow_core.serial import HAS_GIL
from flow_ops import GroupedFlow
from flow_ops.group import _splitting, _standstill
from flow_ops.group._standstill import PATIENCE_S
from flow_testing import TestPublisher, TestSubscriber, VirtualClock

Groups = Flow[GroupedFlow[int, int]]


def fours(items: int = 600, **more: Any) -> Groups:
    return flow.range(items).group_by(lambda n: n % 4, **more)


UNWANTED: dict[str, tuple[Callable[[], Flow[Any]], list[Any]]] = {
    "how many groups": (lambda: fours().count(), [4]),
    "their keys": (lambda: fours().map(lambda group: group.key), [0, 1, 2, 3]),
    "only the first one": (
        lambda: fours().take(1).flat_map(lambda group: group.count()),
        [150],
    ),
    "one of them": (
        lambda: fours().filter(lambda group: group.key == 1).flat_map(lambda g: g.count()),
        [150],
    ),
    "groups that end": (
        lambda: flow.range(600).group_by_until(lambda n: n % 4, lambda _: flow.never()).count(),
        [4],
    ),
    "windows": (lambda: flow.range(6000).window_with_count(10).count(), [600]),
    "windows that overlap": (lambda: flow.range(6000).window_with_count(10, 5).count(), [1200]),
    "windows with gaps": (lambda: flow.range(6000).window_with_count(5, 10).count(), [600]),
    "every other window": (
        lambda: (
            flow.range(6000)
            .window_with_count(10)
            .zip_with_iterable(itertools.count())
            .filter(lambda pair: pair[1] % 2 == 0)
            .flat_map(lambda pair: pair[0].count())
            .sum()
        ),
        [3000],
    ),
    "windows of time or count": (
        lambda: flow.range(6000).window_with_time_or_count(60, 10).count(),
        [601],  # the last one begins when the sixth hundredth is full, and stays empty
    ),
    "windows of time": (lambda: flow.range(600).window_with_time(60).count(), [1]),
    "sessions": (lambda: flow.range(600).session_window(1).count(), [1]),
    "windows between items": (
        lambda: flow.range(600).window_boundary(flow.never()).count(),
        [1],
    ),
    "windows of a function": (lambda: flow.range(600).window_when(flow.never).count(), [1]),
    "windows that are opened": (
        lambda: flow.range(600).window_toggle(flow.just(1), lambda _: flow.never()).count(),
        [1],
    ),
}


@pytest.mark.parametrize(("make", "expected"), UNWANTED.values(), ids=UNWANTED)
def test_unreferenced_parts_hold_nothing_up(
    make: Callable[[], Flow[Any]], expected: list[Any]
) -> None:
    assert list(make()) == expected


@pytest.mark.parametrize(("make", "expected"), UNWANTED.values(), ids=UNWANTED)
def test_so_it_is_where_another_thread_drops_them(
    make: Callable[[], Flow[Any]], expected: list[Any]
) -> None:
    with ThreadPoolExecutor(2) as pool:
        assert list(make().subscribe_on(pool).observe_on(pool)) == expected


def test_groups_that_cross_a_thread_before_they_are_dropped_hold_nothing_up() -> None:
    with ThreadPoolExecutor(1) as pool:
        keys = fours().observe_on(pool).map(lambda group: group.key)
        assert list(keys) == [0, 1, 2, 3]
        windows = flow.range(6000).window_with_count(10).observe_on(pool)
        assert windows.count().first() == 600


def test_items_of_an_unreferenced_part_are_dropped() -> None:
    dropped: list[object] = []
    with hooks.dropped_items.scoped("test", dropped.append):
        assert fours(10).map(lambda group: group.key).to_list().first() == [0, 1, 2, 3]
    assert dropped == list(range(10))


def test_a_group_that_was_dropped_does_not_begin_again() -> None:
    seen = TestSubscriber[int]()
    source = TestPublisher[int]()
    Flow(source).group_by(lambda n: n % 2).map(lambda group: group.key).subscribe(seen)
    source.next(0, 1, 2, 3, 4)
    seen.assert_items(0, 1)


@pytest.fixture
def asking() -> tuple[TestPublisher[int], SimpleQueue[int]]:
    """A source, and the threads in which it is asked for items."""
    threads = SimpleQueue[int]()
    return TestPublisher[int](on_request=lambda _, __: threads.put(get_ident())), threads


Asking = tuple[TestPublisher[int], SimpleQueue[int]]


def asked_again(threads: SimpleQueue[int]) -> None:
    """A part is seen to be dropped: at once, or when a watch looks, without the GIL."""
    threads.get(not HAS_GIL, 10)


def test_waiting_items_are_requested_again_when_a_part_is_dropped(asking: Asking) -> None:
    source, threads = asking
    held: list[GroupedFlow[int, int]] = []
    handle = Flow(source).group_by(lambda _: 0, prefetch=4).subscribe(held.append)
    threads.get_nowait()
    source.next(1, 2, 3, 4)
    assert source.outstanding == 0
    held.clear()
    asked_again(threads)
    assert source.outstanding == 4
    source.next(5)
    source.complete()
    assert handle.disposed


def test_a_part_is_held_by_the_flows_that_are_made_of_it() -> None:
    source = TestPublisher[int]()
    made: list[Flow[str]] = []
    Flow(source).group_by(lambda _: 0).map(lambda group: group.map(str)).subscribe(made.append)
    source.next(1, 2)
    gc.collect()
    seen = TestSubscriber[str]()
    made.pop().subscribe(seen)
    source.next(3)
    seen.assert_items("1", "2", "3")


def test_without_the_gil_no_finaliser_asks_for_items_where_it_runs(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its thread may hold the lock of an executor, and the source submit its answer there."""
    monkeypatch.setattr(_splitting, "HAS_GIL", False)
    monkeypatch.setattr(_standstill, "_LOOKS_S", 0.05)
    source, threads = asking
    held: list[GroupedFlow[int, int]] = []
    Flow(source).group_by(lambda _: 0, prefetch=2).subscribe(held.append)
    assert threads.get_nowait() == get_ident()
    source.next(1, 2)
    held.clear()
    assert threads.get(timeout=10) != get_ident()


def test_the_collector_may_find_the_last_reference_to_a_part(asking: Asking) -> None:
    source, threads = asking
    held: list[object] = []
    Flow(source).group_by(lambda _: 0, prefetch=2).subscribe(held.append)
    threads.get_nowait()
    source.next(1, 2)
    circle: list[object] = [held.pop()]
    circle.append(circle)
    del circle
    gc.collect()
    asked_again(threads)
    assert source.outstanding


def test_a_flow_whose_parts_are_all_dropped_ends_with_its_downstream() -> None:
    source = TestPublisher[int]()
    keys = Flow(source).group_by(lambda n: n).map(lambda group: group.key).take(2)
    seen = TestSubscriber[int]()
    keys.subscribe(seen)
    source.next(5, 6)
    seen.assert_result(5, 6)
    source.assert_cancelled()


# -- parts that are held


@pytest.fixture
def clock() -> Iterator[VirtualClock]:
    with VirtualClock() as clock:
        yield clock


STILL: dict[str, tuple[Callable[[], Flow[Any]], str]] = {
    "groups one after the other": (
        lambda: fours(1032).concat_map(lambda group: group.count()),
        "3 unread groups hold all 128 items",
    ),
    "fewer at a time than there are": (
        lambda: fours().flat_map(lambda group: group.count(), concurrency=3),
        "1 unread group holds all 128 items",
    ),
    "with errors that wait": (
        lambda: fours(delay_error=True).flat_map(lambda group: group.count(), concurrency=3),
        "1 unread group holds all 128 items",
    ),
    "all groups first": (
        lambda: fours().to_list(),
        "4 unread groups hold all 128 items",
    ),
    "all windows first": (
        lambda: flow.range(6000).window_with_count(10).to_list(),
        "13 unread windows hold all 128 items",
    ),
    "long windows that overlap": (
        lambda: flow.range(6000).window_with_count(1000, 500).concat_map(lambda w: w.count()),
        "1 unread window holds all 128 items",
    ),
    "sessions": (
        lambda: flow.range(600).session_window(3600).to_list(),
        "1 unread window holds all 128 items",
    ),
}


@pytest.mark.parametrize(("make", "why"), STILL.values(), ids=STILL)
def test_parts_that_are_held_and_not_read_fail_the_flow_when_nothing_else_can_move(
    clock: VirtualClock, make: Callable[[], Flow[Any]], why: str
) -> None:
    seen = TestSubscriber[Any]()
    make().subscribe(seen)
    clock.advance_by(PATIENCE_S * 0.999)
    seen.assert_not_terminated()
    clock.advance_by(PATIENCE_S * 0.001)
    seen.assert_failure(MissingBackpressureError)
    assert why in str(seen.error)
    for way in ("flat_map()", "keep no reference", "raise prefetch"):
        assert way in str(seen.error)
    assert not clock.pending


@pytest.mark.slow
def test_a_thread_that_blocks_for_an_unread_part_gets_an_error() -> None:
    with pytest.raises(MissingBackpressureError, match="unread group"):
        fours().concat_map(lambda group: group.count()).to_list().first()
    with pytest.raises(MissingBackpressureError, match="unread group"):
        for group in fours():
            list(group)


def test_groups_that_threads_read_some_time_later_continue() -> None:
    with ThreadPoolExecutor(4) as pool:
        counts = fours(4000).flat_map(lambda group: group.count().subscribe_on(pool))
        assert list(counts) == [1000] * 4
        totals = [pool.submit(group.count().first) for group in fours(100)]
        assert [total.result(10) for total in totals] == [25] * 4


@pytest.mark.slow
def test_windows_that_are_read_one_after_the_other_may_take_their_time(
    clock: VirtualClock,
) -> None:
    slow = (
        flow.range(1000)
        .window_with_count(100)
        .concat_map(lambda window: window.count().delay(3600, clock=clock))
    )
    seen = TestSubscriber[int]()
    slow.subscribe(seen)
    clock.advance_by(11 * 3600)
    seen.assert_result(*[100] * 10)


def test_a_downstream_that_asks_for_no_more_windows_may_take_its_time(
    clock: VirtualClock,
) -> None:
    seen = TestSubscriber[Flow[int]](1)
    flow.range(1000).window_with_count(10).subscribe(seen)
    clock.advance_by(3600)
    seen.assert_not_terminated()
    for _ in range(100):
        window = TestSubscriber[int]()
        seen.items[-1].subscribe(window)
        assert len(window.items) == 10
        seen.request(1)
    assert seen.terminated
    assert seen.error is None


def test_a_group_that_ends_later_lets_the_others_continue_and_that_is_logged(
    clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    lasting = flow.range(400).group_by_until(lambda n: n % 4, lambda _: flow.timer(60, clock=clock))
    seen = TestSubscriber[int]()
    with caplog.at_level(logging.WARNING, "flow_ops"):
        lasting.concat_map(lambda group: group.count()).subscribe(seen)
        clock.advance_by(59)
    seen.assert_not_terminated()
    (record,) = caplog.records
    assert "3 unread groups hold all 128 items" in record.getMessage()
    clock.advance_by(3600)
    assert seen.terminated
    assert seen.error is None
    assert sum(seen.items) == 400


@pytest.mark.parametrize(
    "operator",
    [
        flow_ops.group_by,
        flow_ops.group_by_until,
        flow_ops.session_window,
        flow_ops.window_boundary,
        flow_ops.window_toggle,
        flow_ops.window_when,
        flow_ops.window_with_count,
        flow_ops.window_with_time,
        flow_ops.window_with_time_or_count,
    ],
)
def test_each_operator_that_gives_flows_says_so_in_the_same_words(
    operator: Callable[..., object],
) -> None:
    said = " ".join((operator.__doc__ or "").split())
    name = "group" if "group" in operator.__name__ else "window"
    assert (
        f"When there is no reference to a {name} any more, its items are dropped. When there are "
        f"references to {name}s that are not read, these {name}s hold all of the prefetch, and "
        "nothing has moved for a second, the flow fails with `MissingBackpressureError`."
    ) in said
