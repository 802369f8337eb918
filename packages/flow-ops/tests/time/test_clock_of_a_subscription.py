"""The clock of an operator that waits: its own, that of a test, of the loop, of the process."""

from __future__ import annotations

import asyncio
import inspect
import selectors
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import get_ident
from typing import Any

import pytest

import flow_core as flow
import flow_ops
from flow_core.backoff import Backoff
from flow_core.clocks import AsyncioClock, Clock, SystemClock
from flow_core.errors import FlowError
from flow_ops import TimeInterval, Timestamped
from flow_testing import TIMEOUT_S, TestSubscriber, VirtualClock

HOUR_S = 3600.0
"""No test waits that long: the time of the clock has to be another one than that of the process."""

Made = Callable[[flow.Flow[int]], flow.Flow[Any]]


def failing_once() -> flow.Flow[str]:
    left = [OSError("not yet")]
    return flow.defer(lambda: flow.error(left.pop()) if left else flow.just("again"))


def fails_once() -> Callable[[int], int]:
    left = [OSError("not yet")]

    def function(n: int) -> int:
        if left:
            raise left.pop()
        return n

    return function


def inline(task: Callable[[], object]) -> None:
    task()


AGAIN = Backoff(HOUR_S, jitter=0)

# The source has items after 1, 2, 3 and 4 hours, and its end with the last one.
WAITING: dict[str, tuple[Made, list[Any]]] = {
    "batch": (lambda f: f.batch(within=1.5 * HOUR_S), [[0, 1], [2, 3]]),
    "buffer_with_time": (lambda f: f.buffer_with_time(2.5 * HOUR_S), [[0, 1], [2, 3]]),
    "buffer_with_time_or_count": (
        lambda f: f.buffer_with_time_or_count(2.5 * HOUR_S, 3),
        [[0, 1], [2, 3]],
    ),
    "debounce": (lambda f: f.debounce(0.5 * HOUR_S), [0, 1, 2, 3]),
    "delay": (lambda f: f.delay(HOUR_S), [0, 1, 2, 3]),
    "delay_elements": (lambda f: f.delay_elements(HOUR_S), [0, 1, 2, 3]),
    "delay_subscription": (lambda f: f.delay_subscription(HOUR_S), [0, 1, 2, 3]),
    "do_concurrent": (
        lambda f: f.do_concurrent(fails_once(), 1, executor=inline, retry=AGAIN),
        [0, 1, 2, 3],
    ),
    "interval": (lambda f: flow.interval(HOUR_S).take(2), [0, 1]),
    "interval_range": (lambda f: flow.interval_range(5, 2, HOUR_S), [5, 6]),
    "map_concurrent": (
        lambda f: f.map_concurrent(fails_once(), 1, executor=inline, retry=AGAIN),
        [0, 1, 2, 3],
    ),
    "on_backpressure_buffer": (
        lambda f: f.on_backpressure_buffer(9, timeout=1.2 * HOUR_S).concat_map(
            lambda n: flow.timer(2.5 * HOUR_S).map(lambda _: n), prefetch=1
        ),
        [0, 1, 2],
    ),
    "rate_limit": (lambda f: f.rate_limit(1, 1.25 * HOUR_S), [0, 1, 2, 3]),
    "retry_when": (lambda f: failing_once().retry_when(Backoff(HOUR_S)), ["again"]),
    "sample": (lambda f: f.sample(1.6 * HOUR_S), [0, 2]),
    "session_buffer": (lambda f: f.session_buffer(1.5 * HOUR_S), [[0, 1, 2, 3]]),
    "session_window": (
        lambda f: f.session_window(0.5 * HOUR_S).concat_map(lambda window: window.to_list()),
        [[0], [1], [2], [3]],
    ),
    "skip_last_with_time": (lambda f: f.skip_last_with_time(1.5 * HOUR_S), [0, 1]),
    "skip_until_with_time": (lambda f: f.skip_until_with_time(2.5 * HOUR_S), [2, 3]),
    "skip_with_time": (lambda f: f.skip_with_time(2.5 * HOUR_S), [2, 3]),
    "take_last_with_time": (lambda f: f.take_last_with_time(1.5 * HOUR_S), [2, 3]),
    "take_until_with_time": (lambda f: f.take_until_with_time(2.5 * HOUR_S), [0, 1]),
    "take_with_time": (lambda f: f.take_with_time(2.5 * HOUR_S), [0, 1]),
    "throttle_last": (lambda f: f.throttle_last(1.6 * HOUR_S), [0, 2]),
    "throttle_latest": (lambda f: f.throttle_latest(1.4 * HOUR_S), [0, 1, 2]),
    "timeout": (lambda f: f.timeout(0.5 * HOUR_S, fallback=flow.just(9)), [9]),
    "timer": (lambda f: flow.timer(HOUR_S), [0]),
    "window_with_time": (
        lambda f: f.window_with_time(2.5 * HOUR_S).flat_map(lambda window: window.to_list()),
        [[0, 1], [2, 3]],
    ),
    "window_with_time_or_count": (
        lambda f: f.window_with_time_or_count(2.5 * HOUR_S, 3).flat_map(
            lambda window: window.to_list()
        ),
        [[0, 1], [2, 3]],
    ),
}

# Stages that read the time and never wait have no subscription to ask which loop is theirs.
READING: dict[str, tuple[Made, list[Any]]] = {
    "throttle_first": (lambda f: f.throttle_first(1.5 * HOUR_S), [0, 2]),
    "time_interval": (
        lambda f: f.time_interval(),
        [TimeInterval(n, HOUR_S) for n in range(4)],
    ),
    "timestamp": (
        lambda f: f.timestamp(),
        [Timestamped(n, (n + 1) * HOUR_S) for n in range(4)],
    ),
}


class JumpingLoop(asyncio.SelectorEventLoop):
    """Begins at time 0; where others wait for the next timer, its time jumps there."""

    def __init__(self) -> None:
        self.time_s = 0.0
        super().__init__(_Jumping(self))

    def time(self) -> float:
        return self.time_s


class _Jumping(selectors.SelectSelector):
    def __init__(self, loop: JumpingLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0 if timeout is not None else TIMEOUT_S)
        if not ready:
            assert timeout is not None, "nobody wakes the loop"
            self._loop.time_s += timeout
        return ready


def run(main: Any) -> Any:
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(main)


@pytest.fixture
def process_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail each task that is scheduled with the clock of the process."""
    for name in ("schedule", "schedule_periodically"):
        monkeypatch.delattr(SystemClock, name)


def test_every_operator_with_a_clock_is_looked_at() -> None:
    exported = {name: getattr(flow_ops, name) for name in flow_ops.__all__}
    timed = {
        name
        for name, value in exported.items()
        if inspect.isfunction(value) and "clock" in inspect.signature(value).parameters
    }
    assert timed | {"retry_when"} == {*WAITING, *READING}


@pytest.mark.usefixtures("process_stands_still")
@pytest.mark.parametrize("name", [*WAITING, *READING])
def test_in_the_block_of_a_virtual_clock_it_is_in_force(name: str) -> None:
    made, items = {**WAITING, **READING}[name]
    subscriber = TestSubscriber[Any]()
    applied = made(flow.interval(HOUR_S).take(4))  # also what was put together before
    with VirtualClock() as clock:
        applied.subscribe(subscriber)
        clock.advance_by(12 * HOUR_S)
    subscriber.assert_result(*items)


@pytest.mark.usefixtures("process_stands_still")
@pytest.mark.parametrize("name", WAITING)
def test_in_an_event_loop_it_is_that_of_the_loop(name: str) -> None:
    made, items = WAITING[name]

    async def main() -> None:
        threads: set[int] = set()
        applied = made(flow.interval(HOUR_S).take(4)).map(lambda item: (get_ident(), item))
        found = []
        async for thread, item in applied:
            threads.add(thread)
            found.append(item)
        assert (found, threads) == (items, {get_ident()})

    run(main())


@pytest.mark.parametrize("name", WAITING)
def test_when_the_loop_is_closed_the_flow_fails(name: str, dropped: Any) -> None:
    made, _ = WAITING[name]
    subscriber = TestSubscriber[Any]()

    async def main() -> None:
        made(flow.just(1).concat(flow.never())).subscribe(subscriber)

    run(main())
    subscriber.await_terminal()
    for thread in threading.enumerate():
        if thread.name == "flow-dropped-task":  # which tells the others, too
            thread.join(TIMEOUT_S)
    with pytest.raises(FlowError, match=r"event loop is closed.*by clock=…"):
        raise subscriber.error or AssertionError("it has not failed")
    for error in dropped.errors:  # of others that waited there
        assert "event loop is closed" in str(error)


def test_a_thread_that_iterates_fails_when_the_loop_of_its_clock_is_closed() -> None:
    async def main() -> None:
        ticks = flow.interval(HOUR_S, clock=AsyncioClock(asyncio.get_running_loop()))
        subscribed = threading.Event()
        told.append(pool.submit(list, ticks.do_on_subscribe(subscribed.set)))
        await asyncio.to_thread(subscribed.wait, TIMEOUT_S)

    with ThreadPoolExecutor(1) as pool:
        told: list[Future[Any]] = []
        asyncio.run(main())
        assert isinstance(told[0].exception(TIMEOUT_S), FlowError)


def test_outside_of_both_it_is_that_of_the_process() -> None:
    thread = flow.timer(0.001).map(lambda _: threading.current_thread().name).single()
    assert thread == "flow-clock"


def test_an_explicit_clock_takes_precedence() -> None:
    async def main() -> None:
        own, subscriber = VirtualClock(), TestSubscriber[int]()
        with VirtualClock() as clock:
            flow.timer(HOUR_S, clock=own).subscribe(subscriber)
            clock.advance_by(2 * HOUR_S)
            subscriber.assert_no_items()
            own.advance_by(HOUR_S)
        subscriber.assert_result(0)

    asyncio.run(main())


def test_the_clock_of_a_test_comes_before_that_of_the_loop() -> None:
    async def main() -> None:
        subscriber = TestSubscriber[int]()
        with VirtualClock() as clock:
            flow.timer(HOUR_S).subscribe(subscriber)
            clock.advance_by(HOUR_S)
        subscriber.assert_result(0)

    asyncio.run(main())


def test_a_running_flow_keeps_its_clock_when_the_block_ends() -> None:
    before, within = TestSubscriber[int](), TestSubscriber[int]()
    flow.timer(0.001).subscribe(before)
    with VirtualClock() as clock:
        flow.timer(HOUR_S).subscribe(within)
        before.await_terminal().assert_result(0)
    within.assert_no_items()
    clock.advance_by(HOUR_S)
    within.assert_result(0)


def test_of_two_blocks_the_inner_one_counts() -> None:
    def timed() -> Clock:
        subscriber = TestSubscriber[int]()
        flow.timer(HOUR_S).subscribe(subscriber)
        found = next(clock for clock in (outer, inner) if clock.pending)
        subscriber.cancel()
        return found

    with VirtualClock() as outer:
        with VirtualClock() as inner:
            assert timed() is inner
        assert timed() is outer


def test_in_the_block_it_is_in_force_in_every_thread() -> None:
    subscriber = TestSubscriber[int]()
    with VirtualClock() as clock, ThreadPoolExecutor(1) as pool:
        pool.submit(flow.timer(HOUR_S).subscribe, subscriber).result(TIMEOUT_S)
        clock.advance_by(HOUR_S)
    subscriber.assert_result(0)


def test_a_block_that_fails_ends_it() -> None:
    with pytest.raises(OSError), VirtualClock():  # any will do
        raise OSError
    assert list(flow.timer(0.001)) == [0]


@pytest.mark.slow
def test_an_inner_flow_on_another_thread_waits_in_the_loop_that_runs_the_flow() -> None:
    async def main() -> None:
        with ThreadPoolExecutor(1) as pool:
            moved = flow.range(2).hide().observe_on(pool)
            # Long enough for the pool's thread to be done: what it finds due, it gives itself.
            made = moved.concat_map(lambda n: flow.timer(0.2).map(lambda _: get_ident()))
            assert {thread async for thread in made} == {get_ident()}

    asyncio.run(main())


@pytest.mark.usefixtures("process_stands_still")
@pytest.mark.parametrize("way", ["async for", "await", "callbacks", "future"])
def test_functions_behind_an_interval_run_in_the_loop(way: str) -> None:
    async def main() -> None:
        loop, threads = asyncio.get_running_loop(), set[int]()
        made = flow.interval(0.001).take(3).map(lambda _: threads.add(get_ident()) or 1)
        if way == "async for":
            assert [item async for item in made] == [1, 1, 1]
        elif way == "await":
            assert await made.to_list() == [1, 1, 1]
        elif way == "future":
            assert await asyncio.wrap_future(made.to_list().to_future()) == [1, 1, 1]
        else:
            ended = loop.create_future()
            made.subscribe(lambda _: None, on_complete=lambda: ended.set_result(None))
            await ended
        assert threads == {get_ident()}

    asyncio.run(main())
