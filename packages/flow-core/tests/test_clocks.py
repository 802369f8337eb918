"""Clocks run tasks at their time, and let go of them."""

from __future__ import annotations

import asyncio
import gc
import math
import pickle
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Coroutine
from datetime import timedelta
from itertools import count
from threading import Event, Thread, get_ident
from types import FrameType
from typing import Any

import pytest

from flow_core import RejectedExecutionError
from flow_core.clocks import (
    AsyncioClock,
    Clock,
    SystemClock,
    _LoopTimer,
    _Timed,
    check_delay,
    check_period,
    in_seconds,
    system_clock,
)
from flow_testing import TIMEOUT_S, Drops, VirtualClock, race

FOREVER_S = 3600.0


class Task:
    """A task that can be watched and waited for."""

    def __init__(self, raises: BaseException | None = None) -> None:
        self.ran = Event()
        self.raises = raises
        self.runs = 0
        self.thread = 0
        self.at_s = 0.0

    def __call__(self) -> None:
        self.runs += 1
        self.thread = get_ident()
        self.at_s = time.monotonic()
        self.ran.set()
        if self.raises is not None:
            raise self.raises

    def await_run(self) -> None:
        assert self.ran.wait(TIMEOUT_S)


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock(keep_alive=1)


def await_thread_end(clock: SystemClock) -> None:
    thread = clock._thread
    if thread is not None:
        thread.join(TIMEOUT_S)
        assert not thread.is_alive()


# -- what all clocks have in common


def on_system(use: Callable[[Clock, Callable[[], None]], None]) -> None:
    clock, done = SystemClock(keep_alive=1), Event()
    # In the clock's own thread, so that nothing runs before `use` has returned.
    clock.schedule(0, lambda: use(clock, done.set))
    assert done.wait(TIMEOUT_S)


def on_loop(use: Callable[[Clock, Callable[[], None]], None]) -> None:
    async def main() -> None:
        done = asyncio.Event()
        use(AsyncioClock(asyncio.get_running_loop()), done.set)
        await asyncio.wait_for(done.wait(), TIMEOUT_S)

    asyncio.run(main())


def on_virtual(use: Callable[[Clock, Callable[[], None]], None]) -> None:
    clock, done = VirtualClock(), Event()
    use(clock, done.set)
    clock.run()
    assert done.is_set()


on_each_clock = pytest.mark.parametrize("run", [on_system, on_loop, on_virtual])
Run = Callable[[Callable[[Clock, Callable[[], None]], None]], None]


@on_each_clock
def test_tasks_run_in_the_order_of_their_times(run: Run) -> None:
    seen: list[int] = []

    def use(clock: Clock, done: Callable[[], None]) -> None:
        for delay_ms in (30, 10, 20, 0):
            clock.schedule(delay_ms / 1000, lambda ms=delay_ms: seen.append(ms))
        assert seen == []  # not even what is due at once
        clock.schedule(0.04, done)

    run(use)
    assert seen == [0, 10, 20, 30]


@on_each_clock
def test_a_task_never_runs_before_its_time(run: Run) -> None:
    early: list[float] = []

    def use(clock: Clock, done: Callable[[], None]) -> None:
        for delay_s in (0.0, 0.001, 0.01):
            due = clock.now() + delay_s
            clock.schedule(delay_s, lambda due=due: early.append(min(0, clock.now() - due + 1e-9)))
        clock.schedule(0.02, done)

    run(use)
    assert early == [0, 0, 0]


@on_each_clock
def test_a_disposed_task_never_runs(run: Run) -> None:
    task = Task()

    def use(clock: Clock, done: Callable[[], None]) -> None:
        handle = clock.schedule(0.005, task)
        periodic = clock.schedule_periodically(0.005, 0.005, task)
        assert (handle.disposed, periodic.disposed) == (False, False)
        for disposable in (handle, handle, periodic):
            disposable.dispose()
            assert disposable.disposed
        clock.schedule(0.02, done)

    run(use)
    assert task.runs == 0


@on_each_clock
def test_a_handle_is_disposed_once_its_task_has_run(run: Run) -> None:
    seen: list[bool] = []

    def use(clock: Clock, done: Callable[[], None]) -> None:
        handle = clock.schedule(0, lambda: None)
        clock.schedule(0.01, lambda: (seen.append(handle.disposed), done()))

    run(use)
    assert seen == [True]


@on_each_clock
def test_a_periodic_task_runs_until_it_is_disposed_of_even_by_itself(run: Run) -> None:
    runs: list[float] = []
    start: list[float] = []

    def use(clock: Clock, done: Callable[[], None]) -> None:
        start.append(clock.now())

        def task() -> None:
            runs.append(clock.now())
            if len(runs) == 4:
                handle.dispose()
                clock.schedule(0.01, done)

        handle = clock.schedule_periodically(0.004, 0.002, task)

    run(use)
    assert len(runs) == 4
    for n, at_s in enumerate(runs):
        assert at_s >= start[0] + 0.004 + n * 0.002 - 1e-9


@on_each_clock
def test_a_task_may_schedule_the_next_one(run: Run) -> None:
    def use(clock: Clock, done: Callable[[], None]) -> None:
        clock.schedule(0.001, lambda: clock.schedule(0.001, lambda: clock.schedule(0, done)))

    run(use)


@on_each_clock
def test_delays_and_periods_that_make_no_sense_are_refused(run: Run) -> None:
    def use(clock: Clock, done: Callable[[], None]) -> None:
        never: Any = "soon"
        for delay in (never, None, True):
            with pytest.raises(TypeError, match="number of seconds"):
                clock.schedule(delay, lambda: None)
            with pytest.raises(TypeError, match="number of seconds"):
                clock.schedule_periodically(0, delay, lambda: None)
        with pytest.raises(ValueError, match="NaN"):
            clock.schedule(math.nan, lambda: None)
        for period in (0, -1, math.nan, math.inf):
            with pytest.raises(ValueError, match="above 0 and finite"):
                clock.schedule_periodically(0, period, lambda: None)
        clock.schedule(-5, done)  # overdue: as soon as possible

    run(use)


@on_each_clock
def test_an_infinite_delay_is_never(run: Run) -> None:
    def use(clock: Clock, done: Callable[[], None]) -> None:
        handle = clock.schedule(math.inf, lambda: pytest.fail("never has come"))
        clock.schedule(0.005, lambda: (handle.dispose(), done()))

    run(use)


@on_each_clock
def test_a_task_is_let_go_of_when_it_has_run_and_when_it_is_disposed_of(run: Run) -> None:
    alive: list[weakref.ref[Task]] = []
    seen: list[bool] = []

    def use(clock: Clock, done: Callable[[], None]) -> None:
        handles = []
        for delay_s in (0, FOREVER_S):
            task = Task()
            alive.append(weakref.ref(task))
            handles.append(clock.schedule(delay_s, task))
        handles.append(clock.schedule_periodically(FOREVER_S, 1, task))
        del task
        handles[1].dispose()
        handles[2].dispose()
        seen.append(alive[1]() is None)

        def look() -> None:
            seen.append(alive[0]() is None and len(handles) == 3)
            done()

        clock.schedule(0.005, look)

    gc.disable()
    try:
        run(use)
    finally:
        gc.enable()
    assert seen == [True, True]


def test_a_length_of_time_is_a_number_of_seconds_or_a_timedelta() -> None:
    assert in_seconds(timedelta(minutes=1, milliseconds=500)) == 60.5
    assert in_seconds(2) == 2.0
    assert (check_delay(timedelta(seconds=-1)), check_period(timedelta(days=1))) == (0.0, 86_400.0)
    with pytest.raises(
        TypeError, match="the pause must be a number of seconds or a timedelta, not '1'"
    ):
        in_seconds("1", "the pause")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="above 0 and finite"):
        check_period(timedelta(0))


# -- the system clock


def test_there_is_one_clock_for_the_process() -> None:
    assert system_clock() is system_clock()
    assert repr(system_clock()) == "SystemClock()"
    task = Task()
    system_clock().schedule(0, task)
    task.await_run()
    thread = system_clock()._thread
    assert thread is not None
    assert thread.daemon
    assert thread.ident == task.thread


def test_in_another_process_it_is_the_clock_of_that_one(clock: SystemClock) -> None:
    clock.schedule(3600, print)

    same, another = pickle.loads(pickle.dumps((system_clock(), clock)))

    assert same is system_clock()
    assert another is not clock
    assert another.pending == 0


def test_all_tasks_share_one_thread(clock: SystemClock) -> None:
    tasks = [Task() for _ in range(20)]
    for n, task in enumerate(tasks):
        clock.schedule(n / 1000, task)
    for task in tasks:
        task.await_run()
    assert len({task.thread for task in tasks}) == 1
    assert tasks[0].thread != get_ident()


def test_an_earlier_task_overtakes_what_the_thread_waits_for(clock: SystemClock) -> None:
    later, earlier = Task(), Task()
    handle = clock.schedule(FOREVER_S, later)
    clock.schedule(0.001, earlier)
    earlier.await_run()
    assert clock.pending == 1
    handle.dispose()
    assert (later.runs, clock.pending) == (0, 0)


def test_the_thread_ends_when_it_is_idle_and_comes_back() -> None:
    clock = SystemClock(keep_alive=0.01)
    first, second = Task(), Task()
    clock.schedule(0, first)
    first.await_run()
    await_thread_end(clock)
    assert clock._thread is None
    clock.schedule(0, second)
    second.await_run()


def test_the_thread_survives_a_task_that_raises(clock: SystemClock, drops: Drops) -> None:
    errors = [ValueError(), SystemExit(), KeyboardInterrupt()]
    failing, last = [Task(error) for error in errors], Task()
    for task in (*failing, last):
        clock.schedule(0, task)
    last.await_run()
    assert drops.take_errors() == errors
    assert {task.thread for task in failing} == {last.thread}


def test_a_periodic_task_ends_when_it_raises(clock: SystemClock, drops: Drops) -> None:
    failing, last = Task(ValueError()), Task()
    handle = clock.schedule_periodically(0, 0.001, failing)
    clock.schedule(0.02, last)
    last.await_run()
    assert (failing.runs, handle.disposed) == (1, True)
    assert drops.take_errors() == [failing.raises]


def test_even_a_hook_that_raises_does_not_end_the_thread(
    clock: SystemClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flow_core import hooks

    reported: list[object] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: reported.append(args.exc_value))
    error, last = MemoryError("of the hook"), Task()

    def hook(_: BaseException) -> None:
        raise error

    with hooks.dropped_errors.scoped("flow_testing", hook):
        clock.schedule(0, Task(KeyError()))
        clock.schedule(0, last)
        last.await_run()
    assert reported == [error]


def test_the_next_run_of_a_periodic_task_is_due_without_drift() -> None:
    timed = _Timed(10.0, 0.1, lambda: None)
    for _ in range(1000):
        assert timed.run()
    assert timed.due == 10.0 + 1000 * 0.1


def test_overdue_runs_follow_at_once_and_none_is_left_out(clock: SystemClock) -> None:
    """The first run takes five periods; those that were due meanwhile come right after it."""
    runs: list[float] = []
    done = Event()
    start = clock.now()

    def task() -> None:
        while not runs and clock.now() < start + 0.01:
            pass
        runs.append(clock.now())
        if len(runs) == 8:
            handle.dispose()
            done.set()

    handle = clock.schedule_periodically(0, 0.002, task)
    assert done.wait(TIMEOUT_S)
    assert all(at_s >= start + n * 0.002 for n, at_s in enumerate(runs))
    assert len(runs) == 8


def test_a_periodic_task_that_is_always_overdue_leaves_its_turn_to_others(
    clock: SystemClock,
) -> None:
    busy = clock.schedule_periodically(0, 1e-9, lambda: None)  # each run takes longer
    task = Task()
    clock.schedule(0.01, task)
    task.await_run()
    busy.dispose()


def test_disposed_tasks_do_not_pile_up(clock: SystemClock) -> None:
    for _ in range(10_000):
        clock.schedule(FOREVER_S, Task()).dispose()
        assert len(clock._heap) <= 65
    kept = [clock.schedule(FOREVER_S, Task()) for _ in range(1000)]
    for _ in range(10_000):
        clock.schedule(FOREVER_S, Task()).dispose()
    assert len(clock._heap) <= 2 * len(kept) + 65
    assert clock.pending == len(kept)
    for handle in kept:
        handle.dispose()


def traced(within: Callable[[_Timed], bool], do: Callable[[], object]) -> Callable[..., Any]:
    """A trace function that calls `do` once, in the midst of the clock's own work.

    So does a finaliser or a signal handler, at any point of it: when the clock looks whether a task
    was disposed of, and `within` says that it is this one.
    """
    looks_at = _Timed.disposed.fget
    pending = [do]

    def trace(frame: FrameType, event: str, _: object) -> None:
        looking = looks_at is not None and frame.f_code is looks_at.__code__
        if event == "call" and looking and pending and within(frame.f_locals["self"]):
            sys.settrace(None)  # or the clock's thread is traced, and all others slow, for good
            pending.pop()()

    return trace


def test_a_task_scheduled_while_empty_places_are_cleared_away_is_not_lost(
    clock: SystemClock,
) -> None:
    handles = [clock.schedule(FOREVER_S, Task()) for _ in range(64)]
    meanwhile, looked_at = Task(), count()
    before = sys.gettrace()
    sys.settrace(traced(lambda _: next(looked_at) == 40, lambda: clock.schedule(0, meanwhile)))
    try:
        handles.append(clock.schedule(FOREVER_S, Task()))
    finally:
        sys.settrace(before)
    meanwhile.await_run()
    assert clock.pending == len(handles)
    for handle in handles:
        handle.dispose()


def test_a_task_scheduled_while_a_disposed_task_is_taken_away_is_not_lost(
    clock: SystemClock,
) -> None:
    first, meanwhile = Task(), Task()
    before = threading.gettrace()
    threading.settrace(traced(lambda timed: timed.disposed, lambda: clock.schedule(0, meanwhile)))
    try:
        clock.schedule(FOREVER_S, Task()).dispose()
        clock.schedule(0, first)
    finally:
        threading.settrace(before)
    first.await_run()
    meanwhile.await_run()


def test_threads_may_schedule_and_dispose_at_once(clock: SystemClock) -> None:
    tasks = [[Task() for _ in range(100)] for _ in range(4)]
    unwanted = Task()

    def schedule(own: list[Task]) -> None:
        for n, task in enumerate(own):
            with clock.schedule(FOREVER_S, unwanted):
                clock.schedule(n % 7 / 1000, task)

    race(*(lambda own=own: schedule(own) for own in tasks))
    last = Task()
    clock.schedule(0.06, last)
    last.await_run()
    for task in (task for own in tasks for task in own):
        task.await_run()
        assert task.runs == 1
    assert unwanted.runs == 0


def test_a_thread_that_cannot_be_started_is_a_rejected_task(
    clock: SystemClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(Thread, "start", refuse)
        with pytest.raises(RejectedExecutionError, match="can't start new thread"):
            clock.schedule(0, Task())
    assert clock.pending == 0
    task = Task()
    clock.schedule(0, task)
    task.await_run()


def in_a_process(script: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        timeout=12 * TIMEOUT_S,
        check=False,
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_program_ends_though_tasks_wait() -> None:
    in_a_process("from flow_core.clocks import *; system_clock().schedule(3600, print)")


@pytest.mark.skipif(sys.platform == "win32", reason="the platform has no os.fork")
def test_a_forked_process_has_a_separate_clock_without_the_tasks_of_its_parent() -> None:
    in_a_process(
        """
import os, sys, threading
from flow_core.clocks import system_clock
clock = system_clock()
ran, of_the_parent = threading.Event(), threading.Event()
clock.schedule(0, ran.set)
ran.wait(5)
waiting = clock.schedule(3600, of_the_parent.set)
with clock._changed:  # as if its thread were just now at work
    child = os.fork()
    if child == 0:
        os._exit(99) if clock.pending else None
        done = threading.Event()
        clock.schedule(0.001, done.set)
        os._exit(0 if done.wait(5) else 98)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status) or (clock.pending != 1))
"""
    )


# -- the clock of an event loop


def with_a_loop(main: Callable[[AsyncioClock], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        await main(AsyncioClock(asyncio.get_running_loop()))

    asyncio.run(run())


def test_its_tasks_run_in_the_thread_of_the_loop_from_whichever_thread_they_come() -> None:
    async def main(clock: AsyncioClock) -> None:
        here, there = Task(), Task()
        clock.schedule(0, here)
        await asyncio.to_thread(clock.schedule, 0, there)
        await asyncio.to_thread(there.await_run)
        assert here.thread == there.thread == get_ident()

    with_a_loop(main)


class CoarseLoop(asyncio.SelectorEventLoop):
    """A loop with a clock as some systems have it: it stands still for a while, and then jumps."""

    def time(self) -> float:
        return super().time() // 0.05 * 0.05


def test_its_tasks_keep_their_order_though_the_clock_of_the_loop_is_coarse() -> None:
    seen: list[int] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        clock, done = AsyncioClock(loop), asyncio.Event()
        loop.call_later(0.05, int)  # not a timer of ours
        for n in range(20):
            clock.schedule(0.05, lambda n=n: seen.append(n))
        clock.schedule(0.2, done.set)
        async with asyncio.timeout(TIMEOUT_S):
            await done.wait()

    with asyncio.Runner(loop_factory=CoarseLoop) as runner:
        runner.run(main())
    assert seen == list(range(20))


def test_another_thread_may_dispose_of_its_tasks() -> None:
    async def main(clock: AsyncioClock) -> None:
        task = Task()
        timer = clock.schedule(FOREVER_S, task)
        assert isinstance(timer, _LoopTimer)
        handle = timer._handle
        assert handle is not None
        await asyncio.to_thread(timer.dispose)
        await asyncio.to_thread(lambda: clock.schedule(0, task).dispose())
        await asyncio.sleep(0.01)
        assert handle.cancelled()
        assert timer.disposed

    with_a_loop(main)


def test_errors_of_its_tasks_go_to_the_hook_and_end_a_periodic_one(drops: Drops) -> None:
    once, periodic = Task(ValueError()), Task(KeyError())

    async def main(clock: AsyncioClock) -> None:
        clock.schedule(0, once)
        handle = clock.schedule_periodically(0, 0.001, periodic)
        await asyncio.sleep(0.02)
        assert handle.disposed

    with_a_loop(main)
    assert drops.take_errors() == [once.raises, periodic.raises]
    assert periodic.runs == 1


def test_a_fatal_error_of_a_task_stops_its_loop() -> None:
    async def main(clock: AsyncioClock) -> None:
        clock.schedule(0, Task(SystemExit(3)))
        await asyncio.sleep(TIMEOUT_S)

    with pytest.raises(SystemExit):
        with_a_loop(main)


def test_a_closed_loop_takes_no_tasks_and_forgives_a_dispose() -> None:
    loop = asyncio.new_event_loop()
    clock = AsyncioClock(loop)
    handle = clock.schedule(FOREVER_S, Task())
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    handle.dispose()
    with pytest.raises(RejectedExecutionError, match="closed"):
        clock.schedule(0, Task())


def test_it_takes_a_loop() -> None:
    no_loop: Any = object()
    with pytest.raises(TypeError, match="takes an event loop"):
        AsyncioClock(no_loop)


# -- Ctrl-C


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("period_s", [None, 0.001], ids=["once", "again and again"])
def test_a_task_interrupted_while_it_was_scheduled_never_runs(
    period_s: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, task, after = SystemClock(), Task(), Task()
    with monkeypatch.context() as interrupted:
        calls = iter([interrupt, clock._changed.notify])
        interrupted.setattr(clock._changed, "notify", lambda: next(calls)())
        with pytest.raises(KeyboardInterrupt):
            if period_s is None:
                clock.schedule(0, task)
            else:
                clock.schedule_periodically(0, period_s, task)
    assert clock.pending == 0
    clock.schedule(0.001, after)
    after.await_run()
    assert task.runs == 0


def test_a_task_interrupted_while_a_loop_was_notified_never_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    armed: list[_LoopTimer] = []
    monkeypatch.setattr(_LoopTimer, "arm", lambda timer: armed.append(timer))
    loop = asyncio.new_event_loop()
    tell = loop.call_soon_threadsafe

    def told(action: Callable[[], object]) -> None:
        tell(action)
        interrupt()

    monkeypatch.setattr(loop, "call_soon_threadsafe", told)
    with pytest.raises(KeyboardInterrupt):
        AsyncioClock(loop).schedule(0, Task())
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert [timer.disposed for timer in armed] == [True]
