"""A worker of a process pool is killed: one error, an ordered prefix, no process left."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import pytest

import flow_core as flow
from flow_ops import on_processes, parallel
from flow_testing import TestSubscriber

WAIT_S = 60
COUNT = 200
DIES_AT = 100


class Deadly:
    """Doubles; at one item, its process is killed, or it ends in another way."""

    def __init__(self, how: str) -> None:
        self.how = how

    def __call__(self, n: int) -> int:
        if n == DIES_AT:
            if self.how == "kill -9":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.how == "os._exit":
                os._exit(7)
            os.kill(os.getpid(), signal.SIGTERM)
        return 2 * n


def double(n: int) -> int:
    return 2 * n


@pytest.fixture
def pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as made:
        yield made


pytestmark = [
    pytest.mark.usefixtures("nothing_left"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]


@pytest.mark.parametrize("how", ["kill -9", "os._exit", "kill"])
def test_a_worker_that_dies_fails_the_flow_once(
    pool: ProcessPoolExecutor, how: str, drops: Any
) -> None:
    made = flow.range(COUNT).pipe(on_processes(pool, batch=5)).map(Deadly(how))
    subscriber = TestSubscriber[int]()
    made.subscribe(subscriber)
    subscriber.await_terminal(WAIT_S).assert_rules_kept()
    assert isinstance(subscriber.error, BrokenProcessPool)
    assert subscriber.items == [2 * n for n in range(len(subscriber.items))]
    assert len(subscriber.items) <= DIES_AT
    assert drops.errors == []

    # The pool is broken for good, which fails the next flow at once; a new one works.
    again = TestSubscriber[int]()
    flow.range(3).pipe(on_processes(pool)).map(double).subscribe(again)
    again.await_terminal(WAIT_S)
    assert isinstance(again.error, BrokenProcessPool)
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as new:
        assert list(flow.range(3).pipe(on_processes(new)).map(double)) == [0, 2, 4]


def test_a_worker_that_dies_under_rails_fails_the_flow_once(
    pool: ProcessPoolExecutor, drops: Any
) -> None:
    rails = flow.range(COUNT).pipe(parallel(2)).run_on(pool).map(Deadly("kill -9"))
    subscriber = TestSubscriber[int]()
    rails.sequential().subscribe(subscriber)
    subscriber.await_terminal(WAIT_S).assert_rules_kept()
    assert isinstance(subscriber.error, BrokenProcessPool)
    assert len(set(subscriber.items)) == len(subscriber.items)
    assert set(subscriber.items) <= {2 * n for n in range(COUNT) if n != DIES_AT}


def test_workers_that_are_killed_between_items_are_found_out_with_the_next(
    pool: ProcessPoolExecutor, drops: Any
) -> None:
    subscriber = TestSubscriber[int](1)
    made = flow.range(COUNT).pipe(on_processes(pool, batch=1, prefetch=1)).map(double)
    made.subscribe(subscriber)
    subscriber.await_items(1, WAIT_S)
    for process in multiprocessing.active_children():
        os.kill(process.pid or 0, signal.SIGKILL)
    while subscriber.error is None:
        count = len(subscriber.items) + 1
        subscriber.request(1)
        subscriber.await_items(count, WAIT_S)
    assert isinstance(subscriber.error, BrokenProcessPool)
    assert subscriber.items == [2 * n for n in range(len(subscriber.items))]
    assert drops.errors == []


def test_a_worker_that_dies_after_a_cancel_is_not_an_error(
    pool: ProcessPoolExecutor, drops: Any
) -> None:
    subscriber = TestSubscriber[int]()
    made = flow.range(COUNT).pipe(on_processes(pool, batch=5)).map(double)
    made.subscribe(subscriber)
    subscriber.await_items(10, WAIT_S)
    subscriber.cancel()
    pool.submit(os.getpid).result(WAIT_S)  # by then the pool has thrown away what was cancelled
    for process in multiprocessing.active_children():
        os.kill(process.pid or 0, signal.SIGKILL)
    pool.shutdown()
    subscriber.assert_rules_kept()
    assert drops.errors == []
