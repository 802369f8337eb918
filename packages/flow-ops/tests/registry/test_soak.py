"""Random pipelines, requested and cancelled at random from many threads, for a while.

It runs two seconds, or as long as FLOW_SOAK_S says; ``nox -s soak`` takes its time. The seed is in
the message of what fails; threads are scheduled as they like all the same.
"""

from __future__ import annotations

import gc
import os
import random
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow, hooks
from flow_core.clocks import system_clock
from flow_core.errors import MissingBackpressureError
from flow_core.protocols import Fusion, Subscription
from flow_core.serial import SerialDrain
from flow_core.testing import TestPublisher, TestSubscriber
from flow_ops.coordination import Input

SECONDS = float(os.environ.get("FLOW_SOAK_S", "2"))
SEED = int(os.environ.get("FLOW_SOAK_SEED", "0")) or time.time_ns() % 1_000_000
THREADS = 8
WAIT_S = 30
MOST = 12
"""How many failures to wait for."""

ANSWERS = (ValueError, MissingBackpressureError)
"""What the flows here may fail with: the source's own error, a bad request, an overflow."""


class Foreign:
    """A subscriber that knows nothing of the library, so that a strict guard is put before it."""

    def __init__(self, to: TestSubscriber[Any]) -> None:
        self._to = to

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._to.on_subscribe(subscription)

    def on_next(self, item: Any, /) -> None:
        self._to.on_next(item)

    def on_error(self, error: BaseException, /) -> None:
        self._to.on_error(error)

    def on_complete(self) -> None:
        self._to.on_complete()


class Soak:
    """Runs random pipelines until time is over."""

    def __init__(self, pipelines: Any, surroundings: Any, seconds: float) -> None:
        self.pipelines = pipelines
        self.pool = ThreadPoolExecutor(4, thread_name_prefix="soak-pool")
        self.helpers = ThreadPoolExecutor(THREADS, thread_name_prefix="soak-helper")
        self.at = surroundings(self.pool, system_clock(), 0.001)
        self.until = time.monotonic() + seconds
        self.failures: list[str] = []
        self.runs = 0
        self.lock = threading.Lock()

    def source(self, chance: random.Random) -> Flow[int]:
        count = chance.choice((0, 1, 5, 200, 1000))
        items = flow.range(count)
        kind = chance.randrange(5)
        if kind == 0:
            return items
        if kind == 1:
            return items.hide()
        if kind == 2:
            return items.map(self._fail_at(count // 2))
        if kind == 3:
            return items.filter(lambda n: n % 3 != 0)
        return Flow(self._pushed(count))

    @staticmethod
    def _fail_at(count: int) -> Callable[[int], int]:
        def fail(n: int) -> int:
            if n == count:
                raise ValueError("as planned")
            return n

        return fail

    def _pushed(self, count: int) -> TestPublisher[int]:
        """A stranger that sends from the pool's threads, one request at a time."""
        lock = threading.Lock()
        left = iter(range(count))

        def answer(publisher: TestPublisher[int], _: int) -> None:
            def send() -> None:
                with lock:
                    while publisher.outstanding and not (publisher.terminated or publisher.cancels):
                        n = next(left, None)
                        if n is None:
                            publisher.complete()
                            return
                        publisher.next(n)

            with suppress(RuntimeError):
                self.helpers.submit(send)

        return TestPublisher[int](on_request=answer)

    def flow(self, chance: random.Random) -> tuple[str, Flow[Any]]:
        made: Flow[Any] = self.source(chance)
        names = []
        for _ in range(chance.choice((1, 1, 2, 3))):
            pipeline = chance.choice(self.pipelines)
            names.append(str(pipeline))
            made = pipeline.make(made, self.at)
            if chance.random() < 0.3:
                made = made.hide()
            made = made.map(lambda _: 1)
        return " | ".join(names), made

    def act(self, subscriber: TestSubscriber[Any], chance: random.Random) -> None:
        for _ in range(chance.randrange(6)):
            what = chance.random()
            if what < 0.8:
                subscriber.request(chance.choice((1, 2, 50, 300)))
            elif what < 0.9:
                subscriber.cancel()
            elif what < 0.93 and subscriber._subscription is not None:
                subscriber._subscription.request(0)

    def once(self, chance: random.Random) -> None:
        _, made = self.flow(chance)
        subscriber = TestSubscriber[Any](
            chance.choice((0, 1, 10, flow.UNBOUNDED)),
            fusion=chance.choice((Fusion.NONE, Fusion.NONE, Fusion.ANY)),
        )
        foreign = chance.random() < 0.2
        other = random.Random(chance.random())
        together = self.helpers.submit(self.act, subscriber, other)
        made.subscribe(Foreign(subscriber) if foreign else subscriber)
        self.act(subscriber, chance)
        together.result(WAIT_S)
        if chance.random() < 0.3:
            subscriber.cancel()
        elif not subscriber._cancelled:
            subscriber.request(flow.UNBOUNDED)
            subscriber.await_terminal(WAIT_S)
        subscriber.assert_rules_kept()
        error = subscriber.error
        if error is not None and not isinstance(error, ANSWERS):
            raise AssertionError(f"{error!r}") from error
        with self.lock:
            self.runs += 1

    def work(self, seed: int) -> None:
        chance = random.Random(seed)
        while time.monotonic() < self.until and len(self.failures) < MOST:
            state = chance.getstate()
            try:
                self.once(chance)
            except BaseException as error:
                chance.setstate(state)
                names, _ = self.flow(chance)
                trace = traceback.format_exception(error.__cause__ or error)
                self.failures.append(f"{names}: {error!r}\n{''.join(trace[-4:])}")

    def run(self) -> None:
        workers = [
            threading.Thread(target=self.work, args=(SEED * THREADS + n,), name=f"soak-{n}")
            for n in range(THREADS)
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self.helpers.shutdown()
        self.pool.shutdown()


def living() -> list[object]:
    """What of flows is still there."""
    gc.collect()
    return [one for one in gc.get_objects() if isinstance(one, (SerialDrain, Input))]


@pytest.mark.timeout(SECONDS + 300)
def test_random_pipelines_keep_the_rules_and_leave_nothing(
    pipelines: Any, surroundings: Any, dropped: Any
) -> None:
    del dropped  # what is dropped is looked at here
    unexpected: list[str] = []

    def look(error: BaseException) -> None:
        if not isinstance(error, (*ANSWERS, flow.errors.RejectedExecutionError)):
            unexpected.append(repr(error))

    before = {id(one) for one in living()}
    threads = set(threading.enumerate())
    with (
        hooks.dropped_errors.scoped("test", look),
        hooks.dropped_items.scoped("test", lambda _: None),
    ):
        soak = Soak(pipelines, surroundings, SECONDS)
        soak.run()
        if soak.failures:
            pytest.fail(f"seed {SEED}\n" + "\n".join(soak.failures), pytrace=False)
        assert unexpected == [], f"seed {SEED}"
        assert soak.runs > THREADS
        del soak
        left = [one for one in living() if id(one) not in before]
        for _ in range(50):
            if not left:
                break
            time.sleep(0.02)  # the clock's thread may be at its last timers
            left = [one for one in living() if id(one) not in before]
        assert [type(one).__name__ for one in left] == []
    more = [one.name for one in threading.enumerate() if one not in threads]
    assert [name for name in more if not name.startswith("flow")] == []
