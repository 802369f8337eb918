"""Executors that reject tasks, and threads of executors that die: one error, nothing left."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.thread import BrokenThreadPool
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow, FlowError, RejectedExecutionError
from flow_ops import flat_map, map_concurrent, observe_on, subscribe_on
from flow_testing import TestPublisher, TestSubscriber, VirtualClock

pytestmark = pytest.mark.usefixtures("nothing_left")

WAIT_S = 20
COUNT = 400
RUNS_LATER = {"cancel_on"}
"""Need the executor only when they are cancelled."""


class Rejecting:
    """A pool that takes some tasks and then no more, as one that is shut down."""

    def __init__(self, pool: ThreadPoolExecutor | None, takes: int) -> None:
        self.pool = pool
        self.takes = takes
        self.refused = 0
        self._lock = threading.Lock()

    def submit(self, task: Callable[[], object]) -> Future[Any]:
        with self._lock:
            self.takes -= 1
            if self.takes < 0:
                self.refused += 1
                raise RuntimeError("cannot schedule new futures after shutdown")
        if self.pool is not None:
            return self.pool.submit(task)
        future: Future[Any] = Future()
        future.set_result(task())
        return future


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as made:
        yield made


def test_the_list_of_operators_that_take_an_executor_is_complete(every_tried: Any) -> None:
    assert {str(one) for one in every_tried if "executor" in one.kinds} == {
        "cancel_on",
        "map_concurrent, in threads",
        "observe_on",
        "observe_on, errors overtake",
        "observe_on, prefetch 1",
        "ordered_merge, on an executor",
        "parallel, one rail",
        "parallel, run_on",
        "subscribe_on",
    }


def rejecting(test: Any) -> Any:
    test.kinds = {"executor"}
    return test


@rejecting
@pytest.mark.parametrize("inline", [True, False], ids=["inline", "pool"])
@pytest.mark.parametrize("takes", [0, 1, 2, 3, 5, 9])
def test_an_executor_that_rejects_fails_the_flow_once(
    tried: Any, takes: int, inline: bool, pool: ThreadPoolExecutor, drops: Any
) -> None:
    """Items that came before are there, in order and once; the rest is dropped in sight."""
    executor = Rejecting(None if inline else pool, takes)
    items = iter(range(COUNT))
    made = tried.make(flow.from_iterable(items).hide(), executor, VirtualClock())
    subscriber = TestSubscriber[Any](1, on_item=lambda self, _: self.request(1))
    made.subscribe(subscriber)
    subscriber.await_terminal(WAIT_S).assert_rules_kept()
    assert len(set(subscriber.items)) == len(subscriber.items)
    assert "parallel" in tried.name or subscriber.items == sorted(subscriber.items)
    if not executor.refused:
        assert subscriber.completed
        assert sorted(subscriber.items) == list(range(COUNT))
        return
    if subscriber.error is None:  # what was refused was a cancel, after the end
        assert sorted(subscriber.items) == list(range(COUNT))
    else:
        assert isinstance(subscriber.error, RejectedExecutionError)
        assert isinstance(subscriber.error.__cause__, RuntimeError)
    assert all(isinstance(error, RejectedExecutionError) for error in drops.errors)
    asked = next(items, COUNT)
    assert sorted([*subscriber.items, *drops.items]) == list(range(asked))


@pytest.mark.parametrize("takes", [0, 1, 4])
def test_inner_flows_on_an_executor_that_rejects_fail_the_flow_once(
    takes: int, pool: ThreadPoolExecutor, drops: Any
) -> None:
    """``flat_map`` with each inner flow on a pool."""
    executor = Rejecting(pool, takes)
    source = TestPublisher[int]()
    made = Flow(source).pipe(flat_map(lambda n: flow.just(n).pipe(subscribe_on(executor))))
    subscriber = TestSubscriber[int]()
    made.subscribe(subscriber)
    for n in range(takes + 1):
        source.next(n)
    subscriber.await_terminal(WAIT_S).assert_rules_kept()
    assert isinstance(subscriber.error, RejectedExecutionError)
    assert sorted(subscriber.items) == sorted(set(subscriber.items) & set(range(takes)))
    source.assert_cancelled()
    assert len(drops.items) + len(subscriber.items) <= takes


def test_map_concurrent_in_a_loop_that_rejects_fails_the_flow_once(drops: Any) -> None:
    async def same(n: int) -> int:
        return n

    loop = asyncio.new_event_loop()
    loop.close()
    source = TestPublisher[int]()
    subscriber = TestSubscriber[int]()
    Flow(source).pipe(map_concurrent(same, 1, loop=loop)).subscribe(subscriber)
    subscriber.await_terminal(WAIT_S)
    assert isinstance(subscriber.error, flow.FlowError)
    subscriber.assert_error_message("event loop is closed")
    assert source.cancelled or not source.subscribed
    assert drops.errors == []


# -- threads that die


class Worker:
    """An executor of one's own: a thread that takes tasks out of a queue until one raises."""

    def __init__(self) -> None:
        self.tasks: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self.died_of: list[BaseException] = []
        self.thread = threading.Thread(target=self._work, name="worker")
        self.thread.start()

    def __call__(self, task: Callable[[], object]) -> None:
        if not self.thread.is_alive():
            raise RuntimeError("the worker is dead")
        self.tasks.put(task)

    def _work(self) -> None:
        try:
            while (task := self.tasks.get()) is not None:
                task()
                del task
        except BaseException as error:
            self.died_of.append(error)


@pytest.mark.parametrize("fatal", [SystemExit, MemoryError, KeyboardInterrupt])
def test_a_thread_that_a_fatal_error_kills_ends_its_flow_and_says_so(
    fatal: type[BaseException], drops: Any
) -> None:
    worker = Worker()
    source = TestPublisher[int]()

    def fail(_: Any, n: int) -> None:
        if n == 2:
            raise fatal

    subscriber = TestSubscriber[int](on_item=fail)
    Flow(source).pipe(observe_on(worker)).subscribe(subscriber)
    source.next(1, 2)
    worker.thread.join(WAIT_S)
    assert [type(error) for error in worker.died_of] == [fatal]
    source.assert_cancelled()
    subscriber.assert_items(1, 2)
    assert isinstance(subscriber.error, FlowError)  # it may be waited for
    assert subscriber.error.__cause__ is worker.died_of[0]
    worker.died_of[0].__traceback__ = None

    # Another flow finds out with its first task.
    other = TestSubscriber[int]()
    flow.range(3).hide().pipe(observe_on(worker)).subscribe(other)
    other.await_terminal(WAIT_S).assert_failure(RejectedExecutionError)
    assert drops.errors == []


def test_a_pool_whose_threads_die_fails_the_flows_on_it(drops: Any) -> None:
    """Its initializer fails: the pool is broken, and has dropped what it had taken."""
    gate = threading.Event()

    def broken() -> None:
        gate.wait(WAIT_S)
        raise OSError("no thread for you")

    log = logging.getLogger("concurrent.futures")
    was, log.disabled = log.disabled, True
    try:
        with ThreadPoolExecutor(1, initializer=broken) as pool:
            subscribers = [TestSubscriber[int]() for _ in range(3)]
            for subscriber in subscribers:
                flow.range(3).hide().pipe(observe_on(pool)).subscribe(subscriber)
            gate.set()
            for subscriber in subscribers:
                subscriber.await_terminal(WAIT_S).assert_failure(RejectedExecutionError)
                assert isinstance(subscriber.error, RejectedExecutionError)
                assert isinstance(subscriber.error.__cause__, BrokenThreadPool)
    finally:
        log.disabled = was
    assert drops.errors == []


def test_a_pool_continues_with_other_flows_when_one_has_killed_its_task(
    pool: ThreadPoolExecutor, drops: Any
) -> None:
    """A pool keeps a fatal error in a future that is not read: it goes to the hook."""

    def exits(_: Any, __: int) -> None:
        raise SystemExit(3)

    flow.range(3).hide().pipe(observe_on(pool)).subscribe(TestSubscriber[int](on_item=exits))
    after = TestSubscriber[int]()
    flow.range(3).hide().pipe(observe_on(pool)).subscribe(after)
    after.await_terminal(WAIT_S).assert_result(0, 1, 2)
    pool.shutdown()
    assert [type(error) for error in drops.errors] == [SystemExit]
    drops.errors[0].__traceback__ = None
