"""Random pipelines and multicasts, used and left at random by many threads and an asyncio loop.

It runs two seconds, or as long as FLOW_SOAK_S says; ``nox -s soak`` takes its time. The time is
divided into rounds. What fails names the seed, the round and the worker: FLOW_SOAK_SEED and
FLOW_SOAK_ROUND run just that again, on the same pipelines with the same requests; threads are
scheduled as they like all the same.

Multicasts are part of it wherever flow-multicast is installed.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import importlib.util
import os
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import flow_core as flow
import flow_ops as ops
from flow_core import Flow, hooks
from flow_core.clocks import system_clock
from flow_core.demand import UNBOUNDED
from flow_core.errors import MissingBackpressureError, RejectedExecutionError
from flow_core.protocols import CoreSubscriber, Fusion, Subscription
from flow_core.serial import SerialDrain
from flow_core.testing import TestPublisher, TestSubscriber
from flow_ops.coordination import Input

SECONDS = float(os.environ.get("FLOW_SOAK_S", "2"))
SEED = int(os.environ.get("FLOW_SOAK_SEED", "0")) or time.time_ns() % 1_000_000
ONLY = os.environ.get("FLOW_SOAK_ROUND")
THREADS = 8
WAIT_S = 60
"""How long a flow that has all it needs may take to end on a machine that is busy."""
MOST = 12
"""How many failures to wait for."""
# Before it is looked at what is there: it keeps some objects of its own.
MULTICAST: Any = (
    importlib.import_module("flow_multicast")
    if importlib.util.find_spec("flow_multicast") is not None
    else None
)

ROUNDS = 1 if ONLY else max(2, min(60, int(SECONDS / 3)))
MEASURED = 9
"""Rounds that are needed to say whether memory grows."""
BLOCKS = 8_000
"""Blocks of memory that caches and free lists may take more, from the first third to the last."""
RESIDENT = 32 * 2**20
"""The same of the process, in bytes: an allocator does not give all of it back."""

ANSWERS = (ValueError, MissingBackpressureError)
"""What the flows here may fail with: the source's own error, a bad request, an overflow."""


# -- the strict guards


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


class Guard(CoreSubscriber[Any]):
    """Stands between two operators and notes each rule that the one above breaks."""

    __slots__ = (
        "_busy",
        "_demand",
        "_ended",
        "_lock",
        "_note",
        "_running",
        "_to",
        "_upstream",
        "_what",
    )

    def __init__(self, to: CoreSubscriber[Any], note: Callable[[str], object]) -> None:
        self._to = to
        self._note = note
        self._what = type(to).__qualname__
        self._busy = threading.Lock()
        self._lock = threading.Lock()
        self._running = ""
        self._demand = 0
        self._ended = False
        self._upstream: Subscription | None = None

    @contextmanager
    def _signal(self, name: str) -> Iterator[None]:
        running = self._running
        alone = self._busy.acquire(blocking=False)
        if alone:
            self._running = name
        else:
            self._note(f"§1.3: {name} to {self._what} came while {running} was running")
        if self._ended:
            self._note(f"§1.7: {name} to {self._what} came after the end")
        if self._upstream is None:
            self._note(f"§1.9: {name} to {self._what} came before on_subscribe")
        try:
            yield
        finally:
            if alone:
                self._busy.release()

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if self._upstream is not None:
            self._note(f"§2.12: a second on_subscribe to {self._what}")
            subscription.cancel()
            return
        self._upstream = subscription
        with self._signal("on_subscribe"):
            self._to.on_subscribe(self)

    def on_next(self, item: Any, /) -> None:
        with self._signal("on_next"):
            with self._lock:
                self._demand -= 1
                missing = self._demand < 0
            if missing:
                self._note(f"§1.1: an item too many to {self._what}")
            if item is None:
                self._note(f"§2.13: None to {self._what}")
            self._to.on_next(item)

    def on_error(self, error: BaseException, /) -> None:
        with self._signal("on_error"):
            self._ended = True
            self._to.on_error(error)

    def on_complete(self) -> None:
        with self._signal("on_complete"):
            self._ended = True
            self._to.on_complete()

    def on_next_raised(self, error: BaseException, /) -> bool:
        return self._to.on_next_raised(error)

    def request(self, n: int, /) -> None:
        if n > 0:
            with self._lock:
                self._demand = min(self._demand + n, UNBOUNDED) if n < UNBOUNDED else UNBOUNDED
        upstream = self._upstream
        if upstream is not None:
            upstream.request(n)

    def cancel(self) -> None:
        upstream = self._upstream
        if upstream is not None:
            upstream.cancel()


# -- what is run


class Stranger:
    """Sends nothing before on_subscribe has returned (§1.9)."""

    def __init__(self, source: TestPublisher[int], lock: threading.Lock) -> None:
        self._source = source
        self._lock = lock

    def subscribe(self, subscriber: Any, /) -> None:
        with self._lock:
            self._source.subscribe(subscriber)


class Soak:
    """Runs random pipelines until time is over."""

    def __init__(self, pipelines: Any, surroundings: Any) -> None:
        self.pipelines = pipelines
        self.pool = ThreadPoolExecutor(4, thread_name_prefix="soak-pool")
        self.helpers = ThreadPoolExecutor(2 * THREADS, thread_name_prefix="soak-helper")
        self.at = surroundings(self.pool, system_clock(), 0.001)
        self.until = 0.0
        self.failures: list[str] = []
        self.violations: list[str] = []
        self.runs: dict[str, int] = {"subscribed": 0, "awaited": 0, "shared": 0}
        self.lock = threading.Lock()
        self.of_thread = threading.local()

    # -- pipelines

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

    def _pushed(self, count: int) -> Stranger:
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

        return Stranger(TestPublisher[int](on_request=answer), lock)

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

    def guarded(self, subscriber: CoreSubscriber[Any]) -> CoreSubscriber[Any]:
        """The hook: some links between operators get a guard; guarded ones cannot be fused."""
        chance = getattr(self.of_thread, "chance", None) or random
        if chance.random() < 0.3:
            return Guard(subscriber, self.violations.append)
        return subscriber

    # -- a subscriber, used by two threads

    def act(self, subscriber: TestSubscriber[Any], chance: random.Random) -> None:
        for _ in range(chance.randrange(6)):
            what = chance.random()
            if what < 0.8:
                subscriber.request(chance.choice((1, 2, 50, 300)))
            elif what < 0.9:
                subscriber.cancel()
            elif what < 0.93 and subscriber._subscription is not None:
                subscriber._subscription.request(0)

    def subscribed(self, chance: random.Random) -> None:
        _, made = self.flow(chance)
        subscriber = TestSubscriber[Any](
            chance.choice((0, 1, 10, UNBOUNDED)),
            fusion=chance.choice((Fusion.NONE, Fusion.NONE, Fusion.ANY)),
        )
        foreign = chance.random() < 0.3
        other = random.Random(chance.random())
        together = self.helpers.submit(self.act, subscriber, other)
        made.subscribe(Foreign(subscriber) if foreign else subscriber)
        self.act(subscriber, chance)
        together.result(WAIT_S)
        if chance.random() < 0.3:
            subscriber.cancel()
        self._end(subscriber)

    def _end(self, subscriber: TestSubscriber[Any]) -> None:
        if not subscriber._cancelled:
            subscriber.request(UNBOUNDED)
            subscriber.await_terminal(WAIT_S)
        subscriber.assert_rules_kept()
        error = subscriber.error
        if error is not None and not isinstance(error, ANSWERS):
            raise AssertionError(f"{error!r}") from error

    # -- a multicast: some stay, others come and go, and then all connect again

    def shared(self, chance: random.Random) -> None:
        count = chance.choice((0, 1, 30, 300))
        items = flow.range(count)
        source: Flow[int] = chance.choice(
            (
                lambda: items,
                items.hide,
                lambda: items.pipe(ops.observe_on(self.pool)),
                lambda: flow.defer(lambda: Flow(self._pushed(count))),
                lambda: items.pipe(ops.flat_map(lambda n: flow.just(n).hide())),
            )
        )()
        kind = chance.choice(("publish", "replay", "cache", "share", "ref_count", "auto_connect"))
        prefetch = chance.choice((1, 4, 128))
        if kind in {"publish", "replay"}:
            operator = MULTICAST.publish(prefetch=prefetch)
            if kind == "replay":
                operator = MULTICAST.replay()
            connectable = source.pipe(operator)
            for _ in range(chance.choice((1, 2, 3))):  # reconnected as often
                self._visit(connectable.flow, count, 3, connectable.connect, chance)
                connectable.reset()
            return
        made: Flow[int]
        if kind == "cache":
            made = source.pipe(MULTICAST.cache())
        elif kind == "share":
            made = source.pipe(MULTICAST.share(prefetch=prefetch))
        elif kind == "ref_count":
            made = source.pipe(MULTICAST.publish(prefetch=prefetch)).ref_count(3)
        else:
            made = source.pipe(MULTICAST.replay()).auto_connect(2)
        stay = {"share": 1, "cache": 2, "ref_count": 3, "auto_connect": 3}[kind]
        for _ in range(chance.choice((1, 2)) if kind in {"share", "ref_count"} else 1):
            self._visit(made, count, stay, lambda: None, chance)

    def _visit(
        self,
        made: Flow[int],
        count: int,
        stay: int,
        connect: Callable[[], object],
        chance: random.Random,
    ) -> None:
        """Who has subscribed before it runs gets each item once, whoever comes and goes."""
        stable = [TestSubscriber[int](chance.choice((0, 1, 50))) for _ in range(stay)]
        for subscriber in stable:
            made.subscribe(Foreign(subscriber) if chance.random() < 0.3 else subscriber)
        visitors = [
            self.helpers.submit(self._pass_by, made, random.Random(chance.random()))
            for _ in range(chance.randrange(4))
        ]
        connect()
        for subscriber in stable:
            for _ in range(chance.randrange(4)):
                subscriber.request(chance.choice((1, 7, 100)))
        for subscriber in stable:
            subscriber.request(UNBOUNDED)
        for subscriber in stable:
            subscriber.await_terminal(WAIT_S).assert_result(*range(count))
        for visitor in visitors:
            visitor.result(WAIT_S)

    def _pass_by(self, made: Flow[int], chance: random.Random) -> None:
        subscriber = TestSubscriber[int](chance.choice((0, 1, 10)))
        made.subscribe(subscriber)
        for _ in range(chance.randrange(4)):
            subscriber.request(chance.choice((1, 5, 100)))
        subscriber.cancel()
        subscriber.assert_rules_kept()
        got = list(subscriber.items)
        if got and got != list(range(got[0], got[0] + len(got))):
            raise AssertionError(f"a visitor got {got}")
        if subscriber.error is not None and not isinstance(subscriber.error, ANSWERS):
            raise AssertionError(f"{subscriber.error!r}") from subscriber.error

    # -- an event loop

    async def awaited(self, chance: random.Random) -> None:
        _, made = self.flow(chance)
        if chance.random() < 0.5:
            made = made.pipe(
                ops.map_async(_same, max_concurrency=chance.choice((1, 3, 16)), ordered=False)
            )
        consumer = asyncio.ensure_future(self._take(made, chance.choice((3, 100, 10**9))))
        if chance.random() < 0.3:
            for _ in range(chance.randrange(20)):
                await asyncio.sleep(0)
            consumer.cancel()
        with suppress(asyncio.CancelledError, *ANSWERS):
            async with asyncio.timeout(WAIT_S):
                await consumer

    @staticmethod
    async def _take(made: Flow[Any], most: int) -> None:
        count = 0
        async for _ in made:
            count += 1
            if count >= most:
                break
            if count % 50 == 0:
                await asyncio.sleep(0)

    # -- workers

    def worked(self, seed: str, what: str, once: Callable[[random.Random], object]) -> None:
        """One run; if it fails, it is told with all that is needed to do it again."""
        chance = random.Random(seed)
        self.of_thread.chance = random.Random(seed)
        state = chance.getstate()
        try:
            once(chance)
        except BaseException as error:
            chance.setstate(state)
            names = "a multicast" if what == "shared" else self.flow(chance)[0]
            trace = traceback.format_exception(error.__cause__ or error)
            self.failures.append(f"{seed} {what}: {names}: {error!r}\n{''.join(trace[-4:])}")
        with self.lock:
            self.runs[what] += 1

    @property
    def goes_on(self) -> bool:
        return time.monotonic() < self.until and len(self.failures) < MOST

    def work(self, seed: str) -> None:
        run = 0
        while self.goes_on:
            run += 1
            if MULTICAST is not None and run % 4 == 0:
                self.worked(f"{seed}.{run}", "shared", self.shared)
            else:
                self.worked(f"{seed}.{run}", "subscribed", self.subscribed)

    def work_in_a_loop(self, seed: str) -> None:
        with asyncio.Runner() as runner:
            run = 0
            while self.goes_on:
                run += 1
                self.worked(
                    f"{seed}.{run}", "awaited", lambda chance: runner.run(self.awaited(chance))
                )

    def round(self, number: int, seconds: float) -> None:
        """All workers for a while; nothing runs when this returns."""
        self.until = time.monotonic() + seconds
        works: list[Callable[[str], object]] = [self.work] * THREADS
        workers = [
            threading.Thread(target=work, args=(f"{SEED}.{number}.{n}",), name=f"soak-{n}")
            for n, work in enumerate([*works, self.work_in_a_loop])
        ]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()

    def close(self) -> None:
        self.helpers.shutdown()
        self.pool.shutdown()


async def _same(item: Any) -> Any:
    await asyncio.sleep(0)
    return item


# -- what is left


def living() -> list[object]:
    """What of flows is still there."""
    gc.collect()
    return [one for one in gc.get_objects() if isinstance(one, (SerialDrain, Input))]


def resident() -> int:
    """Bytes of this process in memory; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def growth(samples: list[int]) -> int:
    """From the least of the first third, without the very first, to the least of the last third."""
    third = len(samples) // 3
    return min(samples[-third:]) - min(samples[third // 3 : third + 1])


@contextmanager
def hooks_watched(soak: Soak, unexpected: list[str]) -> Iterator[None]:
    def look(error: BaseException) -> None:
        if not isinstance(error, (*ANSWERS, RejectedExecutionError)):
            unexpected.append(repr(error))

    with (
        hooks.dropped_errors.scoped("test", look),
        hooks.dropped_items.scoped("test", lambda _: None),
        hooks.on_subscribe.scoped("test", soak.guarded),
    ):
        yield


@pytest.mark.soak
@pytest.mark.timeout(SECONDS + 600)
def test_random_flows_keep_the_rules_and_leave_nothing(
    pipelines: Any, surroundings: Any, dropped: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    del dropped  # what is dropped is looked at here
    unexpected: list[str] = []
    before = {id(one) for one in living()}
    threads = set(threading.enumerate())
    soak = Soak(pipelines, surroundings)
    blocks: list[int] = []
    memory: list[int] = []
    begun = time.monotonic()
    with hooks_watched(soak, unexpected):
        for number in [int(ONLY)] if ONLY else range(ROUNDS):
            if number >= 2 and time.monotonic() - begun > SECONDS:
                break  # the last flows of a round take their time, too
            soak.round(number, SECONDS / ROUNDS)
            gc.collect()
            blocks.append(sys.getallocatedblocks())
            memory.append(resident())
            if SECONDS >= 30:
                with capsys.disabled():
                    print(
                        f"\rsoak {SEED}: {time.monotonic() - begun:4.0f} of {SECONDS:.0f} s, "
                        f"{sum(soak.runs.values()):,} runs, {len(soak.violations)} violations, "
                        f"{len(soak.failures)} failures, {memory[-1] >> 20} MiB, "
                        f"{blocks[-1]:,} blocks",
                        end="",
                        flush=True,
                    )
            if soak.failures or soak.violations or unexpected:
                break
        soak.close()
    if SECONDS >= 30:
        with capsys.disabled():
            print()
    told = [*soak.failures, *sorted(set(soak.violations)), *(f"dropped: {e}" for e in unexpected)]
    if told:
        seed = f"FLOW_SOAK_SEED={SEED} FLOW_SOAK_ROUND={number}"
        pytest.fail(f"{seed}\n" + "\n".join(told), pytrace=False)
    assert soak.runs["subscribed"] > 1
    assert soak.runs["awaited"] > 1
    assert soak.runs["shared"] > 1 or MULTICAST is None
    alone = "FLOW_SOAK_S" not in os.environ  # the tests of this package, without the others
    assert MULTICAST is not None or alone, "flow-multicast is not installed"
    del soak
    left = [one for one in living() if id(one) not in before]
    for _ in range(50):
        if not left:
            break
        time.sleep(0.02)  # the clock's thread may be at its last timers
        left = [one for one in living() if id(one) not in before]
    assert [type(one).__name__ for one in left] == []
    more = [one.name for one in threading.enumerate() if one not in threads]
    assert [name for name in more if name != "flow-clock"] == []
    if len(blocks) >= MEASURED:
        assert growth(blocks) < BLOCKS, f"FLOW_SOAK_SEED={SEED}: blocks of memory {blocks}"
        assert growth(memory) < RESIDENT, f"FLOW_SOAK_SEED={SEED}: bytes of memory {memory}"


class Link:
    """A subscription that does nothing."""

    def request(self, n: int, /) -> None: ...

    def cancel(self) -> None: ...


def test_the_guard_notes_each_broken_rule() -> None:
    """Or the soak would say nothing."""
    notes: list[str] = []

    def again(_: Any, item: int) -> None:
        if item == 1:
            guard.on_next(2)

    guard = Guard(TestSubscriber[int](3, on_item=again), notes.append)
    guard.on_next(0)
    guard.on_subscribe(Link())
    guard.on_subscribe(Link())
    guard.on_next(1)
    guard.on_next(3)
    guard.on_complete()
    guard.on_complete()
    rules = [note.partition(":")[0] for note in notes]
    assert rules == ["§1.9", "§1.1", "§2.12", "§1.3", "§1.1", "§1.7"]
