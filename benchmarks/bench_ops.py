"""Operators that cross threads or join flows, each beside the least code that does its work."""

from __future__ import annotations

import builtins
import itertools
import operator
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce
from typing import final

import reactivex
from aiostream import pipe
from aiostream import stream as aio
from aiostream.core import Stream as BaseStream
from reactivex import operators as rx
from reactivex.scheduler import ThreadPoolScheduler
from reactivex.subject import Subject
from streamable import stream
from streamz import Stream

import flow_core as flow
from by_hand import zipped
from flow_core import Subscriber
from flow_ops import GroupedFlow, concat, flat_map, group_by, merge, observe_on, zip
from peers import consumed, loose
from rounds import MANY, Case, compare, peer, python

HOPS = 100_000
PEER_HOPS = 2_000
"""The most items that ReactiveX can process, because it starts a task for each."""
MERGED = 40_000
THREADS = 4
JOINED = 20_000


@final
class Summing:
    """A callback that adds up."""

    def __init__(self) -> None:
        self.total = 0

    def __call__(self, n: int) -> None:
        self.total += n


@final
class Counting:
    """A callback that counts."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, _: object) -> None:
        self.count += 1


def summed(made: flow.Flow[int]) -> int:
    """Return the sum of the items that a flow sends to a callback."""
    total = Summing()
    made.subscribe(total).wait()
    return total.total


# -- a hop between threads


@final
class CreditHop:
    """The smallest bounded hop: a deque, credits, and a task that drains.

    Its source works when it gets credit, as `flow.range(…).hide()` does. It supports no rules:
    nothing can fail, be cancelled, be requested twice, or come from two threads.
    """

    def __init__(
        self, pool: ThreadPoolExecutor, items: int, credit: int, on_next: Callable[[int], None]
    ) -> None:
        self._pool = pool
        self._credit = credit
        self._batch = credit - credit // 4
        self._source = iter(range(items))
        self._on_next = on_next
        self._items: deque[int] = deque()
        self._granted = 0
        self._consumed = 0
        self._lock = threading.Lock()
        self._busy = False
        self._ended = False
        self.done = threading.Event()

    def start(self) -> None:
        """Let the source produce as many items as may wait."""
        self.grant(self._credit)

    def grant(self, credit: int) -> None:
        """Let the calling thread, or one that already produces, produce `credit` items."""
        with self._lock:
            self._granted += credit
            if self._granted > credit:
                return
        items = self._items
        while credit:
            left = credit
            for n in itertools.islice(self._source, credit):
                items.append(n)
                if not self._busy:
                    self._schedule()
                left -= 1
            if left:
                self._ended = True
                self._schedule()
                return
            with self._lock:
                self._granted -= credit
                credit = self._granted

    def _schedule(self) -> None:
        with self._lock:
            if self._busy:
                return
            self._busy = True
        self._pool.submit(self._drain)

    def _drain(self) -> None:
        items, on_next, consumed = self._items, self._on_next, self._consumed
        batch = self._batch
        while True:
            try:
                item = items.popleft()
            except IndexError:
                if self._ended and not items:
                    self.done.set()
                    return
                self._consumed = consumed
                with self._lock:  # without the GIL, neither side might see the other's change
                    self._busy = False
                if not items and not self._ended:
                    return
                with self._lock:
                    if self._busy:
                        return
                    self._busy = True
                consumed = self._consumed
                continue
            on_next(item)
            consumed += 1
            if consumed == batch:
                consumed = 0
                self.grant(batch)


def hop_by_credit(items: int, credit: int = 128) -> int:
    total = Summing()
    with ThreadPoolExecutor(1) as pool:
        hop = CreditHop(pool, items, credit, total)
        hop.start()
        hop.done.wait()
    return total.total


def hop_over_queue(items: int) -> int:
    """Add up items as people write it: a bounded queue, and a thread at its other end."""
    waiting: queue.Queue[int | None] = queue.Queue(128)
    total = Summing()

    def consume() -> None:
        while (item := waiting.get()) is not None:
            total(item)

    consumer = threading.Thread(target=consume)
    consumer.start()
    for n in range(items):
        waiting.put(n)
    waiting.put(None)
    consumer.join()
    return total.total


def hop_by_observe_on(items: int, prefetch: int = 128, *, hidden: bool = True) -> int:
    source = flow.range(items)
    with ThreadPoolExecutor(1) as pool:
        return summed(
            (source.hide() if hidden else source).pipe(observe_on(pool, prefetch=prefetch))
        )


def hop_by_reactivex(items: int) -> int:
    total = Summing()
    done = threading.Event()
    scheduler = ThreadPoolScheduler(1)
    reactivex.range(items).pipe(rx.observe_on(scheduler)).subscribe(total, on_completed=done.set)
    done.wait()
    scheduler.executor.shutdown()
    return total.total


def hops(items: int = HOPS) -> None:
    """Time `observe_on` beside floors with as much credit, and the queue that people write."""

    def by_credit(credit: int) -> Case:
        name = f"deque, {credit} credits and a task"
        return python(name, partial(hop_by_credit, items, credit))

    few, middle, many = by_credit(16), by_credit(128), by_credit(1024)
    prefetch_16 = Case("observe_on, prefetch 16", partial(hop_by_observe_on, items, 16))
    prefetch_1024 = Case("observe_on, prefetch 1024", partial(hop_by_observe_on, items, 1024))
    prefetch_16.beside, prefetch_1024.beside = few.name, many.name
    compare(
        "A hop to another thread, wall time",
        middle,
        Case("observe_on, prefetch 128", partial(hop_by_observe_on, items), 1.6),
        Case("observe_on, fused source", partial(hop_by_observe_on, items, hidden=False)),
        few,
        prefetch_16,
        many,
        prefetch_1024,
        python("queue.Queue(128)", partial(hop_over_queue, items)),
        items=items,
        clock=time.perf_counter,
        rounds=MANY,
        key="observe-on",
    )


def hops_beside_reactivex(items: int = PEER_HOPS) -> None:
    """Time only a few hops, because ReactiveX starts a task for each item."""
    compare(
        "A hop to another thread: few, beside ReactiveX, wall time",
        peer("reactivex, observe_on", partial(hop_by_reactivex, items)),
        Case("observe_on, prefetch 128", partial(hop_by_observe_on, items), 1 / 25),
        items=items,
        clock=time.perf_counter,
        key="observe-on-peers",
    )


# -- several threads


@final
class OwnThread:
    """A source with its own thread, which sends what is requested."""

    def __init__(self, items: int) -> None:
        self._items = items
        self._requested = 0
        self._lock = threading.Lock()
        self._waits = False
        self._more = threading.Semaphore(0)
        self._subscriber: Subscriber[int] | None = None

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        self._subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None:
        with self._lock:
            self._requested += n
            waits, self._waits = self._waits, False
        if waits:  # otherwise each request of the thread itself would pay for it
            self._more.release()

    def cancel(self) -> None:
        raise AssertionError("nothing cancels here")

    def run(self) -> None:
        subscriber = self._subscriber
        assert subscriber is not None
        on_next = subscriber.on_next
        for n in range(self._items):
            if n >= self._requested:
                self._wait(n)
            on_next(n)
        subscriber.on_complete()

    def _wait(self, n: int) -> None:
        while True:
            with self._lock:
                if n < self._requested:
                    return
                self._waits = True
            self._more.acquire()


def at_once(*work: Callable[[], None]) -> None:
    """Run each piece of work in its own thread, and return when all have ended."""
    threads = [threading.Thread(target=each) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def four_by_lock(items: int) -> int:
    """Run four loops that take a lock for each item."""
    total = Summing()
    lock = threading.Lock()

    def send() -> None:
        for n in range(items // THREADS):
            with lock:
                total(n)

    at_once(*[send] * THREADS)
    return total.total


def four_by_deque(items: int) -> int:
    """Run four loops that put items into a deque; one at a time removes what is there."""
    total = Summing()
    waiting: deque[int] = deque()
    permit: list[None] = [None]

    def drain() -> None:
        while waiting:
            try:
                permit.pop()
            except IndexError:
                return
            try:
                while waiting:
                    total(waiting.popleft())
            finally:
                permit.append(None)

    def send() -> None:
        for n in range(items // THREADS):
            waiting.append(n)
            drain()

    at_once(*[send] * THREADS)
    return total.total


def four_by_merge(items: int, prefetch: int) -> int:
    total = Summing()
    sources = [OwnThread(items // THREADS) for _ in range(THREADS)]
    merge(*sources, prefetch=prefetch).subscribe(total)
    at_once(*(source.run for source in sources))
    return total.total


def four_over_queue(items: int) -> int:
    """Merge as people write it: by a bounded queue from many threads to one."""
    total = Summing()
    waiting: queue.Queue[int | None] = queue.Queue(128)

    def send() -> None:
        for n in range(items // THREADS):
            waiting.put(n)
        waiting.put(None)

    def consume() -> None:
        for _ in range(THREADS):
            while (item := waiting.get()) is not None:
                total(item)

    at_once(*[send] * THREADS, consume)
    return total.total


def four_by_reactivex(items: int) -> int:
    """Merge four subjects, each with a thread that feeds it."""
    total = Summing()
    subjects = [Subject[int]() for _ in range(THREADS)]
    reactivex.merge(*subjects).subscribe(total)

    def feed(subject: Subject[int]) -> None:
        for n in range(items // THREADS):
            subject.on_next(n)
        subject.on_completed()

    at_once(*(partial(feed, subject) for subject in subjects))
    return total.total


def merging(items: int = MERGED) -> None:
    """Time `merge` of sources, each with its own thread, beside loops that share a lock."""
    compare(
        f"{THREADS} threads into one callback, wall time",
        python("a lock for each item", partial(four_by_lock, items)),
        Case("merge, prefetch 128", partial(four_by_merge, items, 128), 1.0),
        Case("merge, prefetch 1024", partial(four_by_merge, items, 1024), 1.0),
        python("a deque that one at a time empties", partial(four_by_deque, items)),
        python("queue.Queue(128)", partial(four_over_queue, items)),
        peer("reactivex", partial(four_by_reactivex, items)),
        items=items,
        clock=time.perf_counter,
        rounds=MANY,
        key="merge",
    )


# -- flows that are joined


def added(a: int, b: int) -> int:
    return a + b


def zip_builtin(items: int) -> int:
    total = Summing()
    for a, b in builtins.zip(range(items), range(items), strict=True):
        total(added(a, b))
    return total.total


def zip_flows(items: int, *, hidden: bool) -> int:
    one, two = flow.range(items), flow.range(items)
    if hidden:
        one, two = one.hide(), two.hide()
    return summed(zip(one, two).starmap(added))


def zip_by_hand(items: int) -> int:
    total = Summing()
    zipped(items, lambda pair: total(added(*pair)))
    return total.total


def zip_by_reactivex(items: int) -> int:
    total = Summing()
    one, two = (reactivex.from_iterable(range(items)) for _ in range(2))
    reactivex.zip(one, two).pipe(rx.starmap(added)).subscribe(total)
    return total.total


def zip_by_streamz(items: int) -> int:
    total = Summing()
    one, two = Stream(), Stream()
    one.zip(two).starmap(added).sink(total)
    for n in range(items):
        one.emit(n)
        two.emit(n)
    return total.total


def drained(stream: BaseStream[int]) -> int:
    """Return the sum of a stream of aiostream, added up by a callback."""
    total = Summing()
    consumed(stream, total)
    return total.total


def zip_by_aiostream(items: int) -> int:
    return drained(aio.zip(aio.range(items), aio.range(items)) | pipe.starmap(loose(added)))


def zipping(items: int = JOINED) -> None:
    """Time `zip` beside the builtin."""
    compare(
        "pairs and a function, to a callback",
        python("builtin zip", partial(zip_builtin, items)),
        Case("zip", partial(zip_flows, items, hidden=False), 4.0),
        Case("zip of hidden flows", partial(zip_flows, items, hidden=True), 4.0),
        python("a function of each item, by hand", partial(zip_by_hand, items)),
        peer("reactivex", partial(zip_by_reactivex, items)),
        peer("streamz", partial(zip_by_streamz, items)),
        peer("aiostream", partial(zip_by_aiostream, items)),
        items=items,
        key="zip",
    )


def chain_builtin(items: int, sources: int) -> int:
    total = Summing()
    for n in itertools.chain(*(range(items // sources) for _ in range(sources))):
        total(n)
    return total.total


def concatenated(items: int, sources: int) -> int:
    return summed(concat(*(flow.range(items // sources) for _ in range(sources))))


def concat_by_streamable(items: int, sources: int) -> int:
    total = Summing()
    for n in reduce(operator.add, (stream(range(items // sources)) for _ in range(sources))):
        total(n)
    return total.total


def concat_by_reactivex(items: int, sources: int) -> int:
    total = Summing()
    parts = (reactivex.from_iterable(range(items // sources)) for _ in range(sources))
    reactivex.concat(*parts).subscribe(total)
    return total.total


def concat_by_aiostream(items: int, sources: int) -> int:
    return drained(aio.chain(*(aio.range(items // sources) for _ in range(sources))))


def chaining(items: int = JOINED, sources: int = 10) -> None:
    """Time `concat` beside `itertools.chain`."""
    compare(
        f"{sources} ranges, one after the other, to a callback",
        python("itertools.chain", partial(chain_builtin, items, sources)),
        Case("concat", partial(concatenated, items, sources), 3.0),
        peer("streamable, +", partial(concat_by_streamable, items, sources)),
        peer("reactivex", partial(concat_by_reactivex, items, sources)),
        peer("aiostream, chain", partial(concat_by_aiostream, items, sources)),
        items=items,
        key="concat",
    )


# -- flows that are split


KEYS = 1_000


def key_of(n: int) -> int:
    return n % KEYS


def counted_by_dict(items: int) -> list[int]:
    counts: dict[int, int] = {}
    for n in range(items):
        key = key_of(n)
        counts[key] = counts.get(key, 0) + 1
    return list(counts.values())


def groups_by_callback(items: int) -> list[int]:
    """Give each key its own consumer with the least code: a dict of callbacks."""
    consumers: dict[int, Counting] = {}
    for n in range(items):
        key = key_of(n)
        consumer = consumers.get(key)
        if consumer is None:
            consumer = consumers[key] = Counting()
        consumer(n)
    return [consumer.count for consumer in consumers.values()]


def groups_by_flow(items: int) -> list[int]:
    consumers: list[Counting] = []

    def on_group(group: GroupedFlow[int, int]) -> None:
        consumers.append(Counting())
        group.subscribe(consumers[-1])

    flow.range(items).pipe(group_by(key_of, max_groups=KEYS)).subscribe(on_group)
    return [consumer.count for consumer in consumers]


def counts_by_flow(items: int) -> list[int]:
    """Count the groups by an operator, and merge the counts."""
    grouped = flow.range(items).pipe(group_by(key_of, max_groups=KEYS))
    counts = grouped.pipe(flat_map(lambda group: group.count(), concurrency=KEYS))
    return list(counts)


def groups_by_reactivex(items: int) -> list[int]:
    consumers: list[Counting] = []

    def on_group(group: reactivex.GroupedObservable[int, int]) -> None:
        consumers.append(Counting())
        group.subscribe(consumers[-1])

    reactivex.from_iterable(range(items)).pipe(rx.group_by(key_of)).subscribe(on_group)
    return [consumer.count for consumer in consumers]


def grouping(items: int = JOINED) -> None:
    """Time `group_by` beside a dict."""
    compare(
        f"{KEYS:,} keys, each with a callback of its own",
        python("a dict of callbacks", partial(groups_by_callback, items)),
        Case("group_by, each group subscribed", partial(groups_by_flow, items)),
        Case("group_by, flat_map to count", partial(counts_by_flow, items)),
        python("a dict of counts", partial(counted_by_dict, items)),
        peer("reactivex", partial(groups_by_reactivex, items)),
        items=items,
        key="group-by",
    )


def main() -> None:
    hops()
    hops_beside_reactivex()
    merging()
    zipping()
    chaining()
    grouping()


if __name__ == "__main__":
    main()
