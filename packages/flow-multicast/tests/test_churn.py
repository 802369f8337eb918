"""Subscribers come and go while items flow: no other notices, and nothing is left of them."""

from __future__ import annotations

import gc
import itertools
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from flow_core import Flow
from flow_core.demand import UNBOUNDED
from flow_core.operator import Operator
from flow_core.protocols import Subscriber
from flow_multicast import (
    BehaviorProcessor,
    Connectable,
    DirectProcessor,
    MulticastProcessor,
    ReplayProcessor,
    publish,
    replay,
    share,
)
from flow_testing import Drops

ROUNDS = int(os.environ.get("FLOW_SOAK_ROUNDS", "4000"))
"""Of subscribe and cancel; ``nox -s soak`` does more."""
CHURNERS = 4
SLACK = 3_000
"""Blocks of memory that caches and free lists may take."""


class Numbers:
    """Counts up in a separate thread, so that a thread that requests does not become the sender."""

    def __init__(self, over: threading.Event) -> None:
        self._over = over
        self._wanted = threading.Semaphore(0)
        self._unbounded = False

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        subscriber.on_subscribe(self)
        threading.Thread(target=self._count, args=(subscriber,), daemon=True).start()

    def _count(self, subscriber: Subscriber[int]) -> None:
        for n in itertools.count():
            while not (self._unbounded or self._wanted.acquire(timeout=0.1)):
                if self._over.is_set():
                    return
            if self._over.is_set():
                return
            subscriber.on_next(n)

    def request(self, n: int, /) -> None:
        if n >= UNBOUNDED:
            self._unbounded = True
        else:
            self._wanted.release(n)

    def cancel(self) -> None:
        self._over.set()


Start = Callable[[Flow[int]], tuple[Flow[int], Callable[[], object]]]
"""Makes a flow for many of one for a single subscriber, and what makes it run."""


def processor(make: Callable[[], Any]) -> Start:
    def start(source: Flow[int]) -> tuple[Flow[int], Callable[[], object]]:
        made = make()
        return made.flow, lambda: source.subscribe(made)

    return start


def connectable(operator: Operator[int, Connectable[int]]) -> Start:
    def start(source: Flow[int]) -> tuple[Flow[int], Callable[[], object]]:
        made = source.pipe(operator)
        return made.flow, made.connect

    return start


def shared(source: Flow[int]) -> tuple[Flow[int], Callable[[], object]]:
    return source.pipe(share()), lambda: None


STARTS: dict[str, Start] = {
    "MulticastProcessor": processor(MulticastProcessor[int]),
    "DirectProcessor": processor(DirectProcessor[int]),
    "BehaviorProcessor": processor(lambda: BehaviorProcessor(-1)),
    "ReplayProcessor": processor(lambda: ReplayProcessor[int](16)),
    "publish": connectable(publish()),
    "replay": connectable(replay(size=16)),
    "share": shared,
}


def blocks() -> int:
    """Return the number of blocks of memory in use.

    Without the GIL, what a collection frees gives its lists and dicts back at the next one.
    """
    gc.collect()
    gc.collect()
    return sys.getallocatedblocks()


@pytest.mark.parametrize("name", STARTS)
def test_nothing_is_retained_of_subscribers_that_come_and_go_while_one_is_slow(name: str) -> None:
    over, inside, go = threading.Event(), threading.Event(), threading.Event()

    def dawdle(_: int) -> None:
        if threading.current_thread() is not threading.main_thread():  # as a BehaviorProcessor does
            inside.set()
            go.wait()

    made, run = STARTS[name](Flow(Numbers(over)))
    with made.subscribe(dawdle, pytest.fail):
        try:
            run()
            assert inside.wait(60)
            before = blocks()
            for _ in range(ROUNDS):
                made.subscribe(lambda _: None, pytest.fail).dispose()
            grown = blocks() - before
        finally:
            over.set()
            go.set()

    assert grown < ROUNDS // 10, f"{grown} blocks more after {ROUNDS} rounds"


@pytest.mark.parametrize("name", STARTS)
def test_a_staying_subscriber_gets_each_item_once_and_nothing_is_left_of_the_others(
    name: str, drops: Drops
) -> None:
    over = threading.Event()
    seen: list[int] = [0, 0]
    some = threading.Event()

    def check(n: int) -> None:
        if n == -1:  # what a BehaviorProcessor begins with
            return
        seen[1] += n != seen[0]
        seen[0] += 1
        if seen[0] == 1000:
            some.set()

    def churn(rounds: int) -> int:
        ended = 0
        for _ in range(rounds):
            handle = made.subscribe(lambda _: None, pytest.fail)
            ended += handle.disposed
            handle.dispose()
        return ended

    def settled() -> int:
        drops.take_items()  # one that is on its way out may be sent thousands, which are kept there
        return blocks()

    made, run = STARTS[name](Flow(Numbers(over)))
    with made.subscribe(check, pytest.fail), ThreadPoolExecutor(CHURNERS) as pool:
        run()
        try:
            ended = sum(pool.map(churn, [ROUNDS // 20] * CHURNERS))
            before = settled()
            ended += sum(pool.map(churn, [ROUNDS // CHURNERS] * CHURNERS))
            grown = settled() - before
            assert some.wait(60)
        finally:
            over.set()

    assert (seen[1], ended) == (0, 0)
    assert grown < SLACK, f"{grown} blocks more after {ROUNDS} rounds"
