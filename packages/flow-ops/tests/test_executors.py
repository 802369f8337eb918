"""flow_core.executors: what operators build on when they run tasks elsewhere."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

import flow_core as flow
from flow_core import RejectedExecutionError, hooks
from flow_core.executors import as_runner
from flow_ops import observe_on


@pytest.mark.checklist("O02", "O23")
def test_runs_a_task_on_each_kind_of_executor(place):
    done, here = threading.Event(), []
    runner = as_runner(place.executor)
    runner.execute(lambda: (here.append(place.is_here()), done.set()))
    assert done.wait(20)
    assert here == [True]


@pytest.mark.checklist("O22")
def test_a_task_that_was_cancelled_never_runs(pool, blocker):
    ran = []
    handle = as_runner(pool).execute(lambda: ran.append(1))
    assert handle.cancel() is True
    assert handle.cancel() is False
    blocker.release()
    assert ran == []


@pytest.mark.checklist("O22")
def test_a_callable_needs_no_future_to_be_cancelled(steps):
    ran = []
    handle = as_runner(steps).execute(lambda: ran.append(1))
    assert handle.cancel() is True
    steps.run()
    assert ran == []


@pytest.mark.checklist("O26")
def test_a_task_that_runs_or_has_run_cannot_be_cancelled(place):
    entered, go = threading.Event(), threading.Event()
    if place.name == "inline":
        go.set()

    def task() -> None:
        entered.set()
        assert go.wait(20)

    handle = as_runner(place.executor).execute(task)
    assert entered.wait(20)
    assert handle.cancel() is False
    go.set()
    place.settle()
    assert handle.cancel() is False


@pytest.mark.checklist("O22")
def test_a_cancelled_task_is_let_go_while_the_executor_keeps_it(steps):
    class Task:
        def __call__(self) -> None: ...

    ref = weakref.ref(task := Task())
    handle = as_runner(steps).execute(task)
    del task
    assert ref() is not None
    handle.cancel()
    gc.collect()
    assert ref() is None
    assert steps.tasks


def test_a_task_runs_once_however_often_it_is_called():
    ran, tasks = [], []
    as_runner(tasks.append).execute(lambda: ran.append(1))
    tasks[0]()
    tasks[0]()
    assert ran == [1]


@pytest.mark.slow
def test_cancelling_from_another_thread_does_not_disturb_an_event_loop():
    """`asyncio.Handle.cancel` from another thread would."""

    async def main() -> list[str]:
        problems: list[str] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: problems.append(context["message"]))
        runner = as_runner(loop.call_soon_threadsafe)
        for _ in range(1_000):
            handle = runner.execute(lambda: None)
            threads = threading.Thread(target=handle.cancel)
            threads.start()
            await asyncio.sleep(0)
            threads.join()
        return problems

    assert asyncio.run(main()) == []


@pytest.mark.checklist("O30")
def test_a_refusal_is_a_separate_error_with_the_cause():
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(RejectedExecutionError, match="ThreadPoolExecutor took no task") as raised:
        as_runner(pool).execute(int)
    assert isinstance(raised.value.__cause__, RuntimeError)


@pytest.mark.checklist("O30")
def test_an_executor_that_takes_a_task_and_raises_all_the_same_never_runs_it():
    tasks = []

    def odd(task):
        tasks.append(task)
        raise RuntimeError("no")

    ran = []
    with pytest.raises(RejectedExecutionError):
        as_runner(odd).execute(lambda: ran.append(1))
    tasks[0]()
    assert ran == []


def test_an_error_of_an_inline_task_is_not_a_refusal():
    def fail() -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        as_runner(lambda task: task()).execute(fail)


@pytest.mark.parametrize("fatal", [KeyboardInterrupt, MemoryError])
def test_a_fatal_error_of_the_executor_is_not_a_refusal(fatal):
    def broken(_):
        raise fatal

    with pytest.raises(fatal):
        as_runner(broken).execute(int)


def test_an_error_that_a_task_raises_into_a_future_is_reported(pool, dropped):
    error = ValueError("mine")

    def fail() -> None:
        raise error

    as_runner(pool).execute(fail)
    pool.submit(int).result(20)
    assert dropped.errors == [error]


@pytest.mark.checklist("O30")
def test_on_dropped_is_called_on_a_thread_that_holds_no_lock(pool, blocker):
    told: Future[RejectedExecutionError] = Future()

    def on_dropped(error: RejectedExecutionError) -> None:
        with pytest.raises(RuntimeError):  # refused, but not waiting for the pool's lock for ever
            pool.submit(int)
        told.set_result(error)

    as_runner(pool).execute(int, on_dropped)
    pool.shutdown(wait=False, cancel_futures=True)
    assert isinstance(told.result(20), RejectedExecutionError)


@pytest.mark.checklist("O30")
def test_a_dropped_task_without_a_handler_is_reported(pool, blocker, dropped):
    told: Future[BaseException] = Future()
    with hooks.dropped_errors.scoped("told", told.set_result):
        as_runner(pool).execute(int)
        pool.shutdown(wait=False, cancel_futures=True)
        error = told.result(20)
    assert isinstance(error, RejectedExecutionError)


@pytest.mark.checklist("O30")
def test_a_task_that_a_future_fails_without_running_it_was_dropped():
    """As a pool of processes does, which cannot pickle it."""
    told: Future[RejectedExecutionError] = Future()
    failed: Future[object] = Future()

    class Processes:
        def submit(self, fn):
            return failed

    as_runner(Processes()).execute(int, told.set_result)
    failed.set_exception(cause := TypeError("cannot pickle"))
    assert told.result(20).__cause__ is cause
    assert "cannot pickle" in str(told.result(20))


@pytest.mark.checklist("O30")
def test_a_task_that_a_loop_throws_away_was_dropped(dropped):
    loop = asyncio.new_event_loop()
    told: Future[RejectedExecutionError] = Future()
    runner = as_runner(loop.call_soon_threadsafe)
    ran = []
    runner.execute(lambda: ran.append(1))
    runner.execute(int, told.set_result).cancel()
    loop.run_until_complete(asyncio.sleep(0))
    assert ran == [1]
    runner.execute(int, told.set_result)
    loop.close()
    assert "as a closed event loop does" in str(told.result(20))
    assert dropped.errors == []


@pytest.mark.checklist("O30")
def test_a_task_that_ran_or_was_cancelled_was_not_dropped(pool, blocker):
    told = []
    runner = as_runner(pool)
    runner.execute(int, told.append).cancel()
    runner.execute(int, told.append)
    blocker.release()
    pool.shutdown(cancel_futures=True)
    assert told == []


@pytest.mark.checklist("O29")
def test_handle_and_future_leave_no_cycle(pool):
    refs = []

    class Weakly:
        def submit(self, fn):
            future = pool.submit(fn)
            refs.append(weakref.ref(future))
            return future

    gc.disable()
    try:
        as_runner(Weakly()).execute(int)
        pool.submit(int).result(20)
        pool.submit(int).result(20)
        assert refs[0]() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        (None, "neither"),
        (3, "neither"),
        (ThreadPoolExecutor, r"ThreadPoolExecutor\(\.\.\.\)"),
    ],
)
def test_a_value_that_is_not_an_executor_is_refused_with_a_hint(wrong, hint):
    with pytest.raises(TypeError, match=hint):
        as_runner(wrong)


def test_an_event_loop_is_not_an_executor_but_its_method_is():
    loop = asyncio.new_event_loop()
    try:
        with pytest.raises(TypeError, match=r"loop\.call_soon_threadsafe"):
            as_runner(loop)
    finally:
        loop.close()


def test_is_shown_by_the_name_of_the_executor(pool):
    assert repr(as_runner(pool)) == "ThreadPoolExecutor"
    assert "call_soon" in repr(as_runner(asyncio.BaseEventLoop.call_soon_threadsafe))


class Bare:
    """An executor whose ``submit`` returns nothing."""

    def __init__(self) -> None:
        self.tasks = []

    def submit(self, task, /):
        self.tasks.append(task)


def test_an_executor_that_returns_no_future_runs_tasks_all_the_same(record):
    executor, seen = Bare(), record()
    flow.range(10).hide().pipe(observe_on(executor, prefetch=2)).subscribe(seen)
    while executor.tasks:
        executor.tasks.pop()()
    assert (seen.items, seen.ends, seen.wrong) == (list(range(10)), [None], [])


def test_a_task_without_a_future_can_be_cancelled():
    executor, ran = Bare(), []
    handle = as_runner(executor).execute(lambda: ran.append(1))
    assert handle.cancel() is True
    executor.tasks.pop()()
    assert ran == []
