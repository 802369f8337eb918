"""Random pipelines and multicasts, used and left at random by many threads and an asyncio loop.

It runs two seconds, or as long as FLOW_SOAK_S says; ``nox -s soak`` takes its time. The time is
divided into rounds. What fails names the seed, the round and the worker: FLOW_SOAK_SEED and
FLOW_SOAK_ROUND run just that again, on the same pipelines with the same requests; threads are
scheduled as they like all the same.

What comes is compared with what the same pipeline gives alone, in one thread and on a clock of its
own: all of that if it completes, and the beginning of it if it was cancelled or has failed. Where
the order is not kept, it is the same items, or some of them.

A long run crowds the machine in every second round: threads that get little time are switched at
more places. Not so without the GIL, where threads are switched anyway, and each wait for a lock
gives the processor to others forty times before it begins: in a crowd, a millisecond takes 0.14 s.

Multicasts are part of it wherever flow-multicast is installed.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import importlib.util
import os
import random
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
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
from flow_core.serial import HAS_GIL, SerialDrain
from flow_ops.coordination import Input
from flow_testing import (
    OperatorCase,
    Surroundings,
    TestPublisher,
    TestSubscriber,
    VirtualClock,
)

SECONDS = float(os.environ.get("FLOW_SOAK_S", "2"))
SEED = int(os.environ.get("FLOW_SOAK_SEED", "0")) or time.time_ns() % 1_000_000
ONLY = os.environ.get("FLOW_SOAK_ROUND")
THREADS = 8
WAIT_S = 60
"""The time that a flow that has all it needs may take to end on a busy machine."""
MOST = 12
"""The number of failures to wait for."""
# Before the objects are counted: it keeps some of them itself.
MULTICAST: Any = (
    importlib.import_module("flow_multicast")
    if importlib.util.find_spec("flow_multicast") is not None
    else None
)

LONG = SECONDS >= 30 and not ONLY
ROUNDS = 1 if ONLY else max(2, min(60, int(SECONDS / 3)))
CROWD = 3 * (os.cpu_count() or 1) if HAS_GIL else 0
MEASURED = 9
"""Rounds that are needed to say whether memory grows; a long run has them, however slow it is."""
BLOCKS = 8_000
"""Blocks of memory that caches and free lists may take more, from the first third to the last."""
RESIDENT = 32 * 2**20
"""The same of the process, in bytes: an allocator does not give all of it back."""

LOSSY = frozenset(("endless", "selective", "closing"))
"""Kinds of operators of which it depends on threads and time what they give."""
CERTAIN = frozenset(("and_then", "parallel, run_on"))
"""These are of such a kind, and yet always give the same items."""
CUT_BY_TIME = frozenset(("take_with_time", "take_until_with_time"))
UNFIT = frozenset(("delay_elements", "rate_limit", "group_by, the groups"))
"""Some take a period for each item, and groups wait for subscribers."""
REORDER = frozenset(
    ("group_by", "group_by, each item a group", "group_by_until", "parallel", "parallel, run_on")
)
BY_POSITION = frozenset(("window_with_count, overlapping",))
"""Operators with results that depend on the order of the items."""
OVERFLOW = frozenset(
    (
        "batch",
        "batch, of one",
        "buffer_with_time",
        "buffer_with_time_or_count",
        "on_backpressure_error",
        "session_buffer",
        "session_window",
        "window_with_time",
        "window_with_time_or_count",
    )
)
"""These do not wait for demand, and may fail with MissingBackpressureError."""


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


class PlannedError(Exception):
    """The error of a source that fails here."""


@dataclass(frozen=True)
class Drawn:
    """A source and operators that chance has chosen.

    Args:
        count: how many items the source has.
        kind: which source.
        steps: the operators, and whether what each one gives is hidden.
    """

    count: int
    kind: int
    steps: tuple[tuple[Any, bool], ...]

    def __str__(self) -> str:
        steps = [f"{case}{' (hidden)' * hidden}" for case, hidden in self.steps]
        return " | ".join([f"{self.count} items of source {self.kind}", *steps])

    @property
    def names(self) -> list[str]:
        return [str(case) for case, _ in self.steps]

    @property
    def fails(self) -> bool:
        """True if the source fails, in the middle."""
        return self.kind == 2 and self.count > 0

    @property
    def keeps_order(self) -> bool:
        return REORDER.isdisjoint(self.names)

    @property
    def certain(self) -> bool:
        """Return whether it gives the same items each time."""
        return all(
            name in CERTAIN or (name not in CUT_BY_TIME and LOSSY.isdisjoint(case.kinds))
            for (case, _), name in zip(self.steps, self.names, strict=True)
        ) and (self.keeps_order or BY_POSITION.isdisjoint(self.names))

    def flow(self, source: Flow[int], at: Any) -> Flow[int]:
        """The operators behind a source. Each one gets numbers that tell one item from another."""
        made: Flow[Any] = source
        for case, hidden in self.steps:
            made = case.apply(made, at)
            if hidden:
                made = made.hide()
            if case.registered.startswith(("buffer", "batch", "session_buffer")):
                # When one ends is a matter of time.
                made = made.flat_map_iterable(_itself)
            made = made.map(_as_number if self.keeps_order else _number_in)
        return made

    def may_fail_with(self, error: BaseException, *, asked_badly: bool) -> bool:
        """Return whether `error` is one that is due.

        Args:
            asked_badly: whether there was a request for less than one item.
        """
        if isinstance(error, PlannedError):
            return self.fails
        if isinstance(error, MissingBackpressureError):
            return not OVERFLOW.isdisjoint(self.names)
        return asked_badly and _of_bad_request(error)


def _itself(items: Iterable[Any]) -> Iterable[Any]:
    return items


def _as_number(item: Any) -> int:
    """All of the item: pairs that are made of other items than before differ."""
    return item if isinstance(item, int) else hash(item)


def _number_in(item: Any) -> int:
    """Return the number from the upstream. Its partner in a pair depends on the order."""
    return item if isinstance(item, int) else next(n for n in item if isinstance(n, int))


def _of_bad_request(error: BaseException) -> bool:
    return isinstance(error, ValueError) and "§3.9" in str(error)


def difference(got: list[int], alone: list[int], *, completed: bool, in_order: bool) -> str:
    """Compare the items with those of the same pipeline alone; empty if all is well.

    Args:
        completed: whether all has to be there. Otherwise some of it may be missing: the last ones
            if it is `in_order`.
        in_order: whether items have to come in the order of `alone`.
    """
    wrong = []
    if more := Counter(got) - Counter(alone):
        wrong.append(f"too many: {sorted(more.elements())[:9]}")
    if completed and (lost := Counter(alone) - Counter(got)):
        wrong.append(f"lost: {sorted(lost.elements())[:9]}")
    if not wrong and in_order and got != alone[: len(got)]:
        at = next(n for n, (one, other) in enumerate(zip(got, alone, strict=False)) if one != other)
        wrong.append(f"not in order: {got[at : at + 9]} where {alone[at : at + 9]} should be")
    return f"{len(got)} items of {len(alone)}, {'; '.join(wrong)}" if wrong else ""


class Soak:
    """Runs random pipelines until the time has passed."""

    def __init__(self, cases: Any) -> None:
        self.cases = [case for case in cases if case.name not in UNFIT]
        self.pool = ThreadPoolExecutor(4, thread_name_prefix="soak-pool")
        self.helpers = ThreadPoolExecutor(2 * THREADS, thread_name_prefix="soak-helper")
        self.at = Surroundings(self.pool, system_clock(), 0.001)
        self.until = 0.0
        self.failures: list[str] = []
        self.violations: list[str] = []
        self.runs: dict[str, int] = {"subscribed": 0, "awaited": 0, "shared": 0}
        self.compared: dict[str, int] = {"whole": 0, "beginning": 0}
        self.lock = threading.Lock()
        self.of_thread = threading.local()

    # -- pipelines

    def draw(self, chance: random.Random) -> Drawn:
        return Drawn(
            chance.choice((0, 1, 5, 200, 1000)),
            chance.randrange(5),
            tuple(
                (chance.choice(self.cases), chance.random() < 0.3)
                for _ in range(chance.choice((1, 1, 2, 3)))
            ),
        )

    def source(self, drawn: Drawn) -> Flow[int]:
        items = flow.range(drawn.count)
        if drawn.kind == 0:
            return items
        if drawn.kind == 1:
            return items.hide()
        if drawn.kind == 2:
            return items.map(self._fail_at(drawn.count // 2))
        if drawn.kind == 3:
            return items.filter(lambda n: n % 3 != 0)
        return flow.defer(lambda: Flow(self._pushed(drawn.count)))

    def flow(self, drawn: Drawn) -> Flow[int]:
        return drawn.flow(self.source(drawn), self.at)

    def alone(self, drawn: Drawn) -> list[int]:
        """Return the items of the pipeline alone, if its source does not fail after its items.

        In one thread, but for the clock's, which looks after groups that seem to be unread.
        """
        clock = VirtualClock()
        at = type(self.at)(lambda task: task(), clock, self.at.period_s)
        count = drawn.count // 2 if drawn.fails else drawn.count
        source = flow.range(count)
        if drawn.kind == 3:
            source = source.filter(lambda n: n % 3 != 0)
        subscriber = TestSubscriber[int]()
        drawn.flow(source, at).subscribe(subscriber)
        clock.advance_by(3_000 * self.at.period_s)  # for each item one, and more
        if not subscriber.await_terminal(WAIT_S).completed:
            raise AssertionError(f"alone: {subscriber.error!r}") from subscriber.error
        return subscriber.items

    def compare(self, drawn: Drawn, got: list[int], *, completed: bool, in_order: bool) -> None:
        """Look for items that are lost, or came twice, or at the wrong place."""
        if completed and drawn.fails:
            raise AssertionError("it completed, and its source has failed")
        wrong = difference(got, self.alone(drawn), completed=completed, in_order=in_order)
        if wrong:
            raise AssertionError(wrong)
        with self.lock:
            self.compared["whole" if completed else "beginning"] += 1

    @staticmethod
    def _fail_at(count: int) -> Callable[[int], int]:
        def fail(n: int) -> int:
            if n == count:
                raise PlannedError(f"at {n}")
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

    def guarded(self, subscriber: CoreSubscriber[Any]) -> CoreSubscriber[Any]:
        """The hook: some links between operators get a guard; guarded ones cannot be fused."""
        chance = getattr(self.of_thread, "chance", None) or random
        if chance.random() < 0.3:
            return Guard(subscriber, self.violations.append)
        return subscriber

    # -- a subscriber, used by two threads

    def act(self, subscriber: TestSubscriber[Any], chance: random.Random) -> bool:
        """Some calls; whether one was a bad request."""
        asked_badly = False
        for _ in range(chance.randrange(6)):
            what = chance.random()
            if what < 0.8:
                subscriber.request(chance.choice((1, 2, 50, 300)))
            elif what < 0.9:
                subscriber.cancel()
            elif what < 0.93 and subscriber._subscription is not None:
                if subscriber.fused is Fusion.SYNC:
                    continue  # it polls and never requests (F21): the end is what `poll` says
                asked_badly = True
                subscriber._subscription.request(0)
        return asked_badly

    def subscribed(self, chance: random.Random) -> None:
        drawn = self.draw(chance)
        subscriber = TestSubscriber[int](
            chance.choice((0, 1, 10, UNBOUNDED)),
            fusion=chance.choice((Fusion.NONE, Fusion.NONE, Fusion.ANY)),
        )
        foreign = chance.random() < 0.3
        other = random.Random(chance.random())
        together = self.helpers.submit(self.act, subscriber, other)
        self.flow(drawn).subscribe(Foreign(subscriber) if foreign else subscriber)
        asked_badly = self.act(subscriber, chance)
        asked_badly = together.result(WAIT_S) or asked_badly
        if chance.random() < 0.3:
            subscriber.cancel()
        if not subscriber._cancelled:
            subscriber.request(UNBOUNDED)
            subscriber.await_terminal(WAIT_S)
        subscriber.assert_rules_kept()
        completed, error = subscriber.completed, subscriber.error
        if error is not None and not drawn.may_fail_with(error, asked_badly=asked_badly):
            raise AssertionError(f"{error!r}") from error
        if drawn.certain:
            got = list(subscriber.items)
            self.compare(drawn, got, completed=completed, in_order=drawn.keeps_order)

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
        """Check that early subscribers get each item once, while others come and go."""
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
        if subscriber.error is not None:
            raise AssertionError(f"{subscriber.error!r}") from subscriber.error

    # -- an event loop

    async def awaited(self, chance: random.Random) -> None:
        drawn = self.draw(chance)
        made, in_order = self.flow(drawn), drawn.keeps_order
        if chance.random() < 0.5:
            in_order = False
            made = made.pipe(ops.map_concurrent(_same, chance.choice((1, 3, 16)), ordered=False))
        got: list[int] = []
        completed = cancelled = False
        consumer = asyncio.ensure_future(self._take(made, chance.choice((3, 100, 10**9)), got))
        if chance.random() < 0.3:
            for _ in range(chance.randrange(20)):
                await asyncio.sleep(0)
            cancelled = consumer.cancel()
        try:
            async with asyncio.timeout(WAIT_S):
                completed = await consumer
        except asyncio.CancelledError:
            if not cancelled:
                raise
        except Exception as error:
            if not drawn.may_fail_with(error, asked_badly=False):
                raise
        if drawn.certain:
            self.compare(drawn, got, completed=completed, in_order=in_order)

    @staticmethod
    async def _take(made: Flow[int], most: int, got: list[int]) -> bool:
        """Take items, and say whether there were no more."""
        async for item in made:
            got.append(item)
            if len(got) >= most:
                return False
            if len(got) % 50 == 0:
                await asyncio.sleep(0)
        return True

    # -- workers

    def worked(self, seed: str, what: str, once: Callable[[random.Random], object]) -> None:
        """One run; if it fails, it is reported with all that is needed to do it again."""
        chance = random.Random(seed)
        self.of_thread.chance = random.Random(seed)
        state = chance.getstate()
        try:
            once(chance)
        except BaseException as error:
            chance.setstate(state)
            names = "a multicast" if what == "shared" else str(self.draw(chance))
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
    """Return the objects of flows that are still there."""
    gc.collect()
    return [one for one in gc.get_objects() if isinstance(one, (SerialDrain, Input))]


def resident() -> int:
    """Bytes of this process in memory; 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def crowd(programs: int) -> Iterator[None]:
    """So many other programs that want a processor."""
    busy = (sys.executable, "-c", "while True: pass")
    others = [subprocess.Popen(busy) for _ in range(programs)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def growth(samples: list[int]) -> int:
    """From the least of the first third, without the very first, to the least of the last third."""
    third = len(samples) // 3
    return min(samples[-third:]) - min(samples[third // 3 : third + 1])


@contextmanager
def hooks_watched(soak: Soak, unexpected: list[str]) -> Iterator[None]:
    def look(error: BaseException) -> None:
        due = (PlannedError, MissingBackpressureError, RejectedExecutionError)
        if not isinstance(error, due) and not _of_bad_request(error):
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
    cases: Any, dropped: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    del dropped  # what is dropped is looked at here
    unexpected: list[str] = []
    before = {id(one) for one in living()}
    threads = set(threading.enumerate())
    soak = Soak(cases.values())
    blocks: list[int] = []
    memory: list[int] = []
    least = MEASURED if LONG else 2
    begun = time.monotonic()
    with hooks_watched(soak, unexpected):
        for number in [int(ONLY)] if ONLY else range(ROUNDS):
            if number >= least and time.monotonic() - begun > SECONDS:
                break  # the last flows of a round take their time, too
            with crowd(CROWD if LONG and number % 2 else 0):
                soak.round(number, SECONDS / ROUNDS)
            gc.collect()
            blocks.append(sys.getallocatedblocks())
            memory.append(resident())
            if SECONDS >= 30:
                with capsys.disabled():
                    print(
                        f"\rsoak {SEED}: {time.monotonic() - begun:4.0f} of {SECONDS:.0f} s, "
                        f"{sum(soak.runs.values()):,} runs, {sum(soak.compared.values()):,} "
                        f"compared, {len(soak.violations)} violations, "
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
    assert min(soak.compared.values()) > 1
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
    assert [name for name in more if name not in {"flow-clock", "flow-loop"}] == []
    if LONG:
        assert len(blocks) >= MEASURED
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


# -- what is wrong is found


def test_lost_repeated_and_early_items_are_differences() -> None:
    alone = [3, 1, 2]
    whole = {
        (3, 1, 2): "",
        (3, 1): "2 items of 3, lost: [2]",
        (3, 1, 2, 2): "4 items of 3, too many: [2]",
        (3, 1, 1): "3 items of 3, too many: [1]; lost: [2]",
        (3, 2, 1): "3 items of 3, not in order: [2, 1] where [1, 2] should be",
    }
    beginning = {(): "", (3, 1): "", (3, 3): "2 items of 3, too many: [3]"}
    beginning[1,] = "1 items of 3, not in order: [1] where [3, 1, 2] should be"
    for completed, cases in ((True, whole), (False, beginning)):
        for got, wrong in cases.items():
            assert difference(list(got), alone, completed=completed, in_order=True) == wrong
    assert difference([2, 3, 1], alone, completed=True, in_order=False) == ""
    assert difference([2], alone, completed=False, in_order=False) == ""
    assert "lost: [3]" in difference([2, 1], alone, completed=True, in_order=False)


def _raise(_: object) -> int:
    raise ValueError("its own")


PLANTED: dict[str, tuple[Callable[[Flow[int]], Flow[int]], str]] = {
    "loses": (lambda up: up.filter(lambda n: n != 3), "lost: [3]"),
    "doubles": (lambda up: up.flat_map_iterable(lambda n: [n] * (1 + (n == 3))), "too many: [3"),
    "swaps": (lambda up: up.map(lambda n: {3: 4, 4: 3}.get(n, n)), "not in order: [4, 3"),
    "ends early": (lambda up: up.take(3), "lost: ["),
    "hides an error": (
        lambda up: up.pipe(ops.on_error_resume(lambda _: flow.empty())),
        "it completed, and its source has failed",
    ),
    "raises": (lambda up: up.map(_raise), "ValueError('its own')"),
    "overflows": (
        lambda up: up.pipe(ops.on_backpressure_error()),
        "MissingBackpressureError",
    ),
}
"""Defects of an operator, and the text that reports each."""


@pytest.mark.parametrize("what", PLANTED)
def test_planted_defects_of_operators_are_found(
    what: str, cases: Any, dropped_unseen: None
) -> None:
    operator, said = PLANTED[what]

    def make(up: Flow[int], at: Any) -> Flow[int]:
        return operator(up) if at.executor is soak.pool else up  # when alone, all is well

    soak = Soak([OperatorCase("planted", make)])
    try:
        for run in range(60):
            soak.worked(f"{run}", "subscribed", soak.subscribed)
    finally:
        soak.close()
    assert [failure for failure in soak.failures if said in failure]
