"""Flows that are nested deeper than Python's stack end, or raise to the subscribing thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

import flow_core as flow
import flow_ops as ops
from flow_core import Flow
from flow_core.errors import is_fatal
from flow_testing import OperatorCase, Surroundings, TestSubscriber, VirtualClock

DEEP = 200
"""Operators in a row: for most of them, more than Python's stack holds."""
WAIT_S = 20
SLOW = {"window_with_count, overlapping"}
"""Each level makes more items than the one before."""

pytestmark = pytest.mark.usefixtures("dropped_unseen")


def inline(task: Any) -> None:
    task()


@pytest.fixture
def workers() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def nested(case: OperatorCase, upstream: Flow[Any], at: Any, depth: int = DEEP) -> Flow[Any]:
    for _ in range(depth):
        upstream = case.apply(upstream, at)
    return upstream


def ends_of(
    made: Flow[Any], clock: VirtualClock, wait_s: float = 0
) -> tuple[list[BaseException | None], BaseException | None]:
    """Return the ends that the subscriber got, and the error that was raised to the caller."""
    ends: list[BaseException | None] = []
    ended = threading.Event()

    def end(error: BaseException | None = None) -> None:
        ends.append(error)
        ended.set()

    raised: BaseException | None = None
    try:
        made.subscribe(lambda _: None, end, end)
        for _ in range(DEEP + 30):  # for those that wait for the time to pass, each
            clock.advance_by(1)
        give_up = time.monotonic() + wait_s
        while not ended.wait(0.01) and time.monotonic() < give_up:
            clock.advance_by(1)
    except RecursionError as error:
        raised = error
    return ends, raised


def says_what_to_do(error: BaseException | None) -> bool:
    return error is not None and "observe_on(executor)" in "".join(getattr(error, "__notes__", ()))


@pytest.mark.parametrize("hidden", [False, True], ids=["fused", "hidden"])
def test_an_operator_nested_deep_ends_or_raises(case: OperatorCase, hidden: bool) -> None:
    clock = VirtualClock()
    upstream = flow.range(5).hide() if hidden else flow.range(5)
    ends, raised = ends_of(nested(case, upstream, Surroundings(inline, clock)), clock)
    assert len(ends) == 1 or (not ends and raised is not None)
    for error in (*ends, raised):
        assert error is None or says_what_to_do(error)


@pytest.mark.parametrize("where", ["below", "above"])
def test_on_a_worker_the_subscriber_gets_the_end(
    case: OperatorCase, workers: ThreadPoolExecutor, where: str
) -> None:
    """No thread waits for an error that is raised there."""
    if str(case) in SLOW:
        return
    clock = VirtualClock()
    at = Surroundings(workers, clock)
    if where == "above":
        made = nested(case, flow.range(5), at).pipe(ops.subscribe_on(workers))
    else:
        made = nested(case, flow.range(5).hide().pipe(ops.observe_on(workers)), at, 60)
    ends, raised = ends_of(made, clock, WAIT_S)
    assert len(ends) == 1 or (not ends and raised is not None)


PARTS: dict[str, Callable[[Flow[Any]], Flow[Any]]] = {
    "window_with_count": lambda f: f.pipe(ops.window_with_count(3)),
    "group_by": lambda f: f.pipe(ops.group_by(lambda n: n % 2)),
}


@pytest.mark.slow
@pytest.mark.parametrize("parts", PARTS)
def test_at_every_frame_where_the_stack_ends_the_subscriber_gets_the_end(
    workers: ThreadPoolExecutor, parts: str
) -> None:
    """One frame more or less decides which operator finds no room, and for which of its signals."""

    def deeper(frames: int, task: Callable[[], object]) -> None:
        if frames:
            deeper(frames - 1, task)
        else:
            task()

    for frames in range(24):
        at = partial(workers.submit, deeper, frames)
        made: Flow[Any] = flow.range(5).hide().pipe(ops.observe_on(at))
        for _ in range(50):
            made = PARTS[parts](made).pipe(ops.concat_map(lambda part: part))
        ends, _ = ends_of(made, VirtualClock(), WAIT_S)
        assert len(ends) == 1


@pytest.mark.parametrize("depth", [30, 44, 60, 77, 100, 150, 300])
@pytest.mark.parametrize("name", ["concat_map, hidden flows", "retry", "observe_on", "flat_map"])
def test_however_deep_it_is(cases: Any, workers: ThreadPoolExecutor, name: str, depth: int) -> None:
    case = cases[name]
    for executor in (inline, workers):
        clock = VirtualClock()
        at = Surroundings(executor, clock)
        ends, raised = ends_of(nested(case, flow.range(5), at, depth), clock, WAIT_S)
        assert len(ends) == 1 or (not ends and raised is not None)


@pytest.mark.parametrize("name", ["concat_map, hidden flows", "retry", "observe_on"])
def test_iteration_raises_the_recursion_error(cases: Any, name: str) -> None:
    case = cases[name]
    made = nested(case, flow.range(5).hide(), Surroundings(inline, VirtualClock()))
    with pytest.raises(RecursionError) as raised:
        list(made)
    assert says_what_to_do(raised.value)


def too_deep(_: Any) -> Any:
    return too_deep(_)


def test_a_function_that_is_too_deep_itself_is_an_error_as_any_other() -> None:
    made: Flow[Any] = flow.range(3).map(too_deep)
    subscriber = TestSubscriber[Any]()
    made.hide().pipe(ops.concat_map(flow.just)).subscribe(subscriber)
    subscriber.assert_failure(RecursionError)
    assert subscriber.error is not None
    assert not is_fatal(subscriber.error)
    resumed = made.hide().pipe(ops.on_error_resume(lambda _: flow.just("else")))
    assert list(resumed) == ["else"]
