"""Groups, windows and buffers keep nothing alive when the flow has ended."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import flow_core as flow
from flow_core.structure import source_of
from flow_ops import (
    buffer_boundary,
    buffer_toggle,
    buffer_when,
    buffer_with_time,
    buffer_with_time_or_count,
    concat_map,
    flat_map,
    group_by,
    window_boundary,
    window_toggle,
    window_when,
    window_with_count,
    window_with_time,
    window_with_time_or_count,
)
from flow_testing import (
    ENDINGS,
    Ending,
    TestPublisher,
    TestSubscriber,
    VirtualClock,
    assert_released,
)

CLOCK = VirtualClock()

Make = Callable[[flow.Flow[Any]], flow.Flow[Any]]


def all_of(operator: Any) -> Make:
    return lambda payloads: payloads.pipe(operator).pipe(concat_map(lambda window: window))


OPERATORS: dict[str, Make] = {
    "group_by": lambda payloads: payloads.pipe(group_by(lambda n: int(n) % 2, prefetch=2)).pipe(
        flat_map(lambda group: group)
    ),
    "group_by, the groups": lambda payloads: payloads.pipe(group_by(int)),
    "group_by, delayed": lambda payloads: payloads.pipe(group_by(int, delay_error=True)),
    "group_by, one of each": lambda payloads: payloads.pipe(group_by(int)).pipe(
        flat_map(lambda group: group.take(1))
    ),
    "window_with_count": all_of(window_with_count(2)),
    "window_with_count, overlapping": lambda payloads: payloads.pipe(window_with_count(2, 1)).pipe(
        flat_map(lambda window: window)
    ),
    "window_with_count, the windows": lambda payloads: payloads.pipe(window_with_count(2)),
    "window_with_time": all_of(window_with_time(60, 20, clock=CLOCK)),
    "window_with_time_or_count": all_of(window_with_time_or_count(60, 2, clock=CLOCK)),
    "window_boundary": all_of(window_boundary(flow.never())),
    "window_toggle": all_of(window_toggle(flow.just(1), lambda _: flow.never())),
    "window_when": all_of(window_when(flow.never)),
    "buffer_with_time": lambda payloads: payloads.pipe(buffer_with_time(60, 20, clock=CLOCK)),
    "buffer_with_time_or_count": lambda payloads: payloads.pipe(
        buffer_with_time_or_count(60, 2, clock=CLOCK)
    ),
    "buffer_boundary": lambda payloads: payloads.pipe(buffer_boundary(flow.never())),
    "buffer_toggle": lambda payloads: payloads.pipe(
        buffer_toggle(flow.just(1, 2), lambda _: flow.never())
    ),
    "buffer_when": lambda payloads: payloads.pipe(buffer_when(flow.never)),
}


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
@pytest.mark.parametrize("name", OPERATORS)
def test_all_is_let_go(name: str, ending: Ending) -> None:
    def only(which: str) -> bool:
        return which == ending.name

    assert_released(lambda payloads: OPERATORS[name](payloads.pushed()), only=only)
    assert CLOCK.pending == 0


@pytest.mark.parametrize("ending", ["cancelled", "completed", "failed", "main cancelled first"])
@pytest.mark.parametrize("operator", [group_by(lambda _: 0), window_with_count(99)])
def test_a_subscriber_of_a_part_is_let_go(operator: Any, ending: str, dropped: Any) -> None:
    """While its subscription and the part are still held."""
    gc.disable()
    try:
        source = TestPublisher[Any]()
        main = TestSubscriber[Any]()
        flow.Flow(source).pipe(operator).subscribe(main)
        source.next("item")
        part = main.items[0]
        seen = TestSubscriber[Any]()
        part.subscribe(seen)
        subscription = seen.subscription
        gone = weakref.ref(seen)
        if ending == "main cancelled first":
            main.cancel()
        if ending in {"cancelled", "main cancelled first"}:
            seen.cancel()
        elif ending == "completed":
            source.complete()
        else:
            source.error(ValueError())
            assert seen.error is not None
            seen.error.__traceback__ = None
        del seen
        assert gone() is None
        assert subscription is not None
        hub = weakref.ref(subscription._hub)  # type: ignore[attr-defined]
        main.cancel()
        del subscription, part, main, source
        assert hub() is None
    finally:
        gc.enable()


def test_an_empty_window_without_a_subscriber_is_released_when_it_ends() -> None:
    clock = VirtualClock()
    windows: list[weakref.ref[Any]] = []
    quiet = flow.never().pipe(window_with_time(1, clock=clock))
    handle = quiet.subscribe(lambda window: windows.append(weakref.ref(source_of(window).queue)))
    clock.advance_by(5)
    gc.collect()
    assert [window() is None for window in windows] == [True] * 5 + [False]
    handle.dispose()
