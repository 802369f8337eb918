"""Stages that run in other processes: real ones, and a pool that the test plays."""

from __future__ import annotations

import importlib
import math
import multiprocessing
import operator
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import flow_core as flow
from flow_core.errors import FlowError, RejectedExecutionError
from flow_ops import (
    FailureHandling,
    observe_on,
    on_error_resume,
    on_processes,
    parallel,
    retry,
)
from flow_testing import (
    ENDINGS,
    TIMEOUT_S,
    Ending,
    Payloads,
    TestPublisher,
    TestSubscriber,
    assert_released,
    assert_result,
    observe,
)


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    # Not forked: this process has threads.
    with ProcessPoolExecutor(2, multiprocessing.get_context("forkserver")) as pool:
        pool.submit(int).result()
        yield pool


WALKS = """
import flow_core as flow

@flow.prepare
def distance(steps):
    return steps.map(abs).sum()
"""


@pytest.mark.slow
def test_a_prepared_flow_runs_in_other_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "walks_x.py").write_text(WALKS)
    monkeypatch.syspath_prepend(tmp_path)  # a worker gets this path when it begins
    distance = importlib.import_module("walks_x").distance
    with ProcessPoolExecutor(1, multiprocessing.get_context("forkserver")) as pool:
        walks = flow.from_iterable([[1, -2], [3], []]).pipe(on_processes(pool))
        assert list(walks.map(distance.first)) == [3, 3, 0]
        assert list(walks.flat_map_iterable(distance)) == [3, 3, 0]


class Played(Executor):
    """A pool whose batches run when the test says so."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Future[Any], Callable[[], Any]]] = []
        self.refuses: Exception | None = None

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        if self.refuses is not None:
            raise self.refuses
        future: Future[Any] = Future()
        self.waiting.append((future, partial(fn, *args, **kwargs)))
        return future

    def run(self, index: int = 0) -> None:
        """Run one of the batches that wait."""
        future, task = self.waiting.pop(index)
        if future.set_running_or_notify_cancel():
            future.set_result(task())

    def fail(self, error: BaseException) -> None:
        """Fail all batches that wait."""
        waiting, self.waiting = self.waiting, []
        for future, _ in waiting:
            if not future.cancelled():
                future.set_exception(error)


@pytest.fixture
def played() -> Played:
    return Played()


PID = "__import__('os').getpid()"
"""The items of some tests are evaluated in the worker, which knows no function of a test."""


# -- results


@pytest.mark.slow
def test_stages_run_in_other_processes(processes: ProcessPoolExecutor) -> None:
    pids = list(flow.just(*[PID] * 20).pipe(on_processes(processes)).map(eval))
    assert len(pids) == 20
    assert os.getpid() not in pids
    names = flow.just("__import__('threading').current_thread().name").map(str)
    assert list(names.pipe(on_processes(processes)).map(eval)) == ["MainThread"]


@pytest.mark.parametrize("batch", [1, 3, 64])
def test_results_keep_the_order(processes: ProcessPoolExecutor, batch: int) -> None:
    made = flow.range(200).pipe(on_processes(processes, batch=batch)).map(math.factorial)
    assert list(made.map(str).map(len)) == [len(str(math.factorial(n))) for n in range(200)]


def test_stages_of_every_stateless_kind_run_there(processes: ProcessPoolExecutor) -> None:
    made = flow.range(6).pipe(on_processes(processes)).map(operator.neg)
    assert list(made.filter(partial(operator.ne, -3)).map(abs)) == [0, 1, 2, 4, 5]
    words = flow.just("a b", "", "c").pipe(on_processes(processes))
    assert list(words.flat_map_iterable(str.split).map(str.upper)) == ["A", "B", "C"]


def test_stages_that_keep_a_state_run_here_on_all_items(processes: ProcessPoolExecutor) -> None:
    made = flow.range(50).pipe(on_processes(processes, batch=4)).map(operator.neg)
    assert list(made.scan(lambda a, b: a + b).take(4)) == [0, -1, -3, -6]
    assert list(made.reduce(lambda a, b: a + b)) == [-1225]


@pytest.mark.slow
def test_every_form_gives_the_same(processes: ProcessPoolExecutor) -> None:
    assert_result(
        lambda: flow.range(7).pipe(on_processes(processes, prefetch=3)).map(str), list("0123456")
    )
    assert_result(lambda: flow.empty().pipe(on_processes(processes)).map(str), [])
    error = ValueError("upstream")
    assert_result(lambda: flow.error(error).pipe(on_processes(processes)).map(str), [], error)


def test_rails_run_in_processes(processes: ProcessPoolExecutor) -> None:
    rails = flow.range(100).pipe(parallel(2)).run_on(processes).map(operator.neg)
    assert sorted(rails.sequential()) == list(range(-99, 1))
    assert list(rails.reduce(operator.add)) == [-4950]
    skipped = flow.just("1", "1/0", "3").pipe(parallel(2)).run_on(processes)
    made = skipped.map(eval, on_error=FailureHandling.SKIP).sequential()
    assert sorted(made) == [1, 3]


# -- errors


def test_an_error_of_a_stage_comes_after_the_results_before_it(
    processes: ProcessPoolExecutor,
) -> None:
    source = flow.just("1", "2", "1/0", "4")
    subscriber = observe(source.pipe(on_processes(processes)).map(eval)).await_terminal()
    subscriber.assert_failure(ZeroDivisionError, 1, 2)
    notes = "\n".join(subscriber.error.__notes__)
    assert "map(eval)" in notes
    assert "in a worker of the pool" in notes
    assert __file__ in notes


def test_an_error_that_cannot_be_pickled_fails_the_flow_with_its_text(
    processes: ProcessPoolExecutor,
) -> None:
    source = flow.just("(_ for _ in ()).throw(ValueError('lost', lambda: 0))")
    subscriber = observe(source.pipe(on_processes(processes)).map(eval)).await_terminal()
    subscriber.assert_failure(FlowError).assert_error_message("ValueError: ('lost'")


def test_a_worker_whose_task_calls_exit_continues(processes: ProcessPoolExecutor) -> None:
    source = flow.just("1", "__import__('sys').exit(3)")
    subscriber = observe(source.pipe(on_processes(processes)).map(eval)).await_terminal()
    subscriber.assert_failure(FlowError, 1).assert_error_message("SystemExit: 3")
    assert list(flow.just(1).pipe(on_processes(processes)).map(str)) == ["1"]


def test_a_result_that_cannot_be_pickled_fails_the_flow(processes: ProcessPoolExecutor) -> None:
    source = flow.just("1", "2", "lambda: 0", "4")
    for batch in (1, 4):
        made = source.pipe(on_processes(processes, batch=batch)).map(eval)
        subscriber = observe(made).await_terminal()
        assert subscriber.items == [1, 2]
        assert any("sent back" in note for note in subscriber.error.__notes__)


def test_none_is_not_a_result(processes: ProcessPoolExecutor) -> None:
    subscriber = observe(flow.just("None").pipe(on_processes(processes)).map(eval)).await_terminal()
    subscriber.assert_failure(flow.NoneItemError)


def test_an_item_that_cannot_be_pickled_fails_the_flow(
    processes: ProcessPoolExecutor, dropped: Any
) -> None:
    made = flow.just(threading.Lock()).pipe(on_processes(processes)).map(str)
    subscriber = observe(made).await_terminal()
    subscriber.assert_failure(TypeError).assert_error_message("pickle")
    assert len(dropped.items) == 1


@pytest.mark.parametrize("batch", [1, 2, 64])
def test_an_item_that_cannot_be_pickled_comes_after_the_results_before_it(
    batch: int, played: Played, dropped: Any
) -> None:
    items = [0, 1, 2, 3, threading.Lock(), 5, 6]
    made = flow.from_iterable(items).pipe(on_processes(played, batch=batch, concurrency=9))
    subscriber = observe(made.map(str))
    while played.waiting:
        subscriber.assert_not_terminated()
        played.run()
    subscriber.assert_failure(TypeError, "0", "1", "2", "3")
    assert any("type lock" in note for note in subscriber.error.__notes__)
    assert dropped.items[0] is items[4]


def test_a_function_that_cannot_be_pickled_is_named(processes: ProcessPoolExecutor) -> None:
    made = flow.range(3).pipe(on_processes(processes)).map(abs).filter(lambda n: n)
    subscriber = observe(made)
    subscriber.assert_failure(FlowError).assert_error_message("filter(<lambda test_on_processes")
    with pytest.raises(FlowError, match="cannot be sent to another process"):
        list(made)


@pytest.mark.parametrize(
    "apply",
    [
        lambda made: made,
        lambda made: made.scan(operator.add),
        lambda made: made.pipe(observe_on(lambda task: task())),
        lambda made: made.hide(),
    ],
)
def test_without_a_stage_to_run_there_it_fails(
    processes: ProcessPoolExecutor, apply: Callable[[Any], Any]
) -> None:
    observe(apply(flow.range(3).pipe(on_processes(processes)))).assert_failure(FlowError)


def test_observe_on_refuses_a_pool_of_processes(processes: ProcessPoolExecutor) -> None:
    with pytest.raises(TypeError, match="on_processes"):
        observe_on(processes)


def test_arguments_are_checked(played: Played) -> None:
    for wrong in (None, ProcessPoolExecutor, len):
        with pytest.raises(TypeError, match="ProcessPoolExecutor"):
            on_processes(wrong)  # type: ignore[arg-type]
    for name in ("concurrency", "batch", "prefetch"):
        wrong_number: Any = {name: 0}
        with pytest.raises(ValueError, match=name):
            on_processes(played, **wrong_number)
        wrong_number = {name: "1"}
        with pytest.raises(TypeError, match=name):
            on_processes(played, **wrong_number)


# -- pools that end


@pytest.mark.slow
def test_a_worker_that_dies_fails_the_flow_once() -> None:
    with ProcessPoolExecutor(2, multiprocessing.get_context("forkserver")) as pool:
        source = flow.just("1", "__import__('os')._exit(1)", *["3"] * 50)
        subscriber = observe(source.pipe(on_processes(pool, batch=1)).map(eval)).await_terminal()
        assert isinstance(subscriber.error, BrokenProcessPool)
        subscriber.assert_rules_kept()
        again = observe(source.pipe(on_processes(pool)).map(eval)).await_terminal()
        again.assert_failure(BrokenProcessPool)


def test_a_pool_that_was_shut_down_fails_the_flow() -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    observe(flow.range(3).pipe(on_processes(pool)).map(str)).assert_failure(RejectedExecutionError)


class Locking(Played):
    """A pool that holds its lock while it fails and cancels batches, as that of Python 3.12."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        assert self.lock.acquire(timeout=TIMEOUT_S), "deadlock"
        try:
            return super().submit(fn, *args, **kwargs)
        finally:
            self.lock.release()

    def break_down(self) -> None:
        with self.lock:
            self.refuses = BrokenProcessPool("again")
            self.fail(BrokenProcessPool("died"))

    def cancel_all(self) -> None:
        with self.lock:
            self.refuses = RuntimeError("cannot schedule new futures after shutdown")
            for future, _ in self.waiting:
                future.cancel()


@pytest.mark.parametrize("end", [Locking.break_down, Locking.cancel_all])
@pytest.mark.parametrize("again", ["retry", "on_error_resume"])
def test_a_flow_may_continue_with_the_pool_that_fails_it(
    end: Callable[[Locking], None], again: str
) -> None:
    pool, seen = Locking(), TestSubscriber[str]()
    work = flow.range(9).pipe(on_processes(pool, batch=1, concurrency=4)).map(str)
    flow_again = work.pipe(retry(1) if again == "retry" else on_error_resume(lambda _: work))
    flow_again.subscribe(seen)
    pool.run()
    end(pool)
    seen.await_terminal()
    assert seen.items == ["0"]
    assert isinstance(seen.error, (BrokenProcessPool, RejectedExecutionError))


def test_batches_that_the_pool_drops_fail_the_flow(played: Played) -> None:
    subscriber = observe(flow.range(3).pipe(on_processes(played)).map(str))
    for future, _ in played.waiting:
        assert future.cancel()
    subscriber.await_terminal().assert_failure(RejectedExecutionError)


# -- demand


def test_no_more_batches_are_under_way_than_allowed(played: Played) -> None:
    source = TestPublisher[int]()
    subscriber = TestSubscriber[str](0)
    made = flow.Flow(source).pipe(on_processes(played, concurrency=2, batch=4, prefetch=4))
    made.map(str).subscribe(subscriber)
    source.assert_requests(4)
    source.next(0, 1, 2, 3)
    assert len(played.waiting) == 2  # of one item each
    played.run()
    played.run()
    assert not played.waiting  # their results wait for demand
    subscriber.request(1)
    subscriber.assert_items("0")
    assert len(played.waiting) == 1  # the next one has two items, as the first was quick
    subscriber.request(1)
    subscriber.assert_items("0", "1")
    played.run()
    source.complete()
    subscriber.request(9)
    subscriber.assert_result("0", "1", "2", "3")


def test_results_wait_for_those_before_them(played: Played) -> None:
    subscriber = observe(flow.range(3).pipe(on_processes(played, batch=1)).map(str))
    played.run(1)
    subscriber.assert_no_items()
    played.run(0)
    subscriber.assert_items("0", "1")
    played.run(0)
    subscriber.assert_result("0", "1", "2")


def test_a_cancel_cancels_the_batches_that_wait(played: Played, dropped: Any) -> None:
    source = TestPublisher[int]()
    subscriber = TestSubscriber[str](1)
    flow.Flow(source).pipe(on_processes(played, concurrency=3)).map(str).subscribe(subscriber)
    source.next(0, 1, 2, 3)
    futures = [future for future, _ in played.waiting]
    played.run(0)
    played.run(0)
    subscriber.cancel()
    source.assert_cancelled()
    assert not futures[0].cancelled()
    assert futures[2].cancelled()
    subscriber.assert_items("0")
    assert dropped.items


def test_an_error_of_the_upstream_comes_after_the_results(played: Played) -> None:
    source = TestPublisher[int]()
    error = ValueError("upstream")
    subscriber = observe(flow.Flow(source).pipe(on_processes(played)).map(str))
    source.next(0)
    source.error(error)
    subscriber.assert_not_terminated()
    played.run()
    subscriber.assert_failure(error, "0")


def test_a_pool_that_breaks_under_way_is_one_error(played: Played) -> None:
    subscriber = observe(flow.range(9).pipe(on_processes(played, concurrency=3)).map(str))
    broken = BrokenProcessPool("died")
    played.fail(broken)
    subscriber.await_terminal().assert_failure(broken)


def test_batches_grow_while_they_are_quick(played: Played) -> None:
    made = flow.range(100).pipe(on_processes(played, concurrency=1, batch=8))
    sizes: list[int] = []
    subscriber = TestSubscriber[str](0)
    made.map(str).subscribe(subscriber)
    while played.waiting:
        before = len(subscriber.items)
        played.run()
        subscriber.request(100)
        sizes.append(len(subscriber.items) - before)
    assert sizes[:5] == [1, 2, 4, 8, 8]
    assert sum(sizes) == 100


# -- retention


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
def test_it_lets_go_of_everything(ending: Ending) -> None:
    with ThreadPoolExecutor(1) as pool:

        def make(payloads: Payloads) -> flow.Flow[Any]:
            made: flow.Flow[Any] = (
                flow.from_iterable(payloads).pipe(on_processes(pool, prefetch=2)).map(repr)
            )
            return made

        def settle() -> None:
            for _ in range(4):
                pool.submit(int).result()

        assert_released(make, settle=settle, only=lambda name: name == ending.name)


def test_stages_behind_local_run_in_this_process(processes: ProcessPoolExecutor) -> None:
    there = flow.repeat_value(PID).take(20).on_processes(processes).map(eval)
    found = list(there.local().map(lambda pid: (pid, os.getpid())))
    assert len(found) == 20
    assert {here for _, here in found} == {os.getpid()}
    assert os.getpid() not in {pid for pid, _ in found}
    with pytest.raises(FlowError, match="no stage follows"):
        list(flow.range(3).on_processes(processes).local().map(str))
