"""What crosses threads and joins flows: each operator beside the least that could do its work."""

from __future__ import annotations

import builtins
import itertools
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import final

import reactivex
from reactivex import operators as rx
from reactivex.scheduler import ThreadPoolScheduler

import flow_core as flow
from flow_core import Subscriber, Subscription
from flow_ops import concat, concat_map, flat_map, merge, observe_on, zip
from rounds import Case, compare

HOPS = 200_000
PEER_HOPS = 5_000
"""As many as ReactiveX can be asked for, which starts a task for each."""
ITEMS = 100_000
THREADS = 4


@final
class Summing:
    """A callback that adds up."""

    def __init__(self) -> None:
        self.total = 0

    def __call__(self, n: int) -> None:
        self.total += n


def summed(made: flow.Flow[int]) -> int:
    """What a callback sees of a flow, added up."""
    total = Summing()
    made.subscribe(total).wait()
    return total.total


# -- a hop between threads


@final
class CreditHop:
    """The least that a bounded hop can be: a deque, credits, and a task that drains.

    Its source works when it is given credit, as `flow.range(…).hide()` does. There are no rules:
    nothing can fail, be cancelled, be requested twice, or come from two threads.
    """

    def __init__(self, pool: ThreadPoolExecutor, items: int, on_next: Callable[[int], None]):
        self._pool = pool
        self._source = iter(range(items))
        self._on_next = on_next
        self._items: deque[int] = deque()
        self._lock = threading.Lock()
        self._busy = False
        self._ended = False
        self.done = threading.Event()

    def grant(self, credit: int) -> None:
        """Have `credit` items produced, by the thread that calls."""
        items = self._items
        for n in itertools.islice(self._source, credit):
            items.append(n)
            if not self._busy:
                self._schedule()
            credit -= 1
        if credit:
            self._ended = True
            self._schedule()

    def _schedule(self) -> None:
        with self._lock:
            if self._busy:
                return
            self._busy = True
        self._pool.submit(self._drain)

    def _drain(self) -> None:
        items, on_next, consumed = self._items, self._on_next, 0
        while True:
            try:
                item = items.popleft()
            except IndexError:
                if self._ended and not items:
                    self.done.set()
                    return
                self._busy = False
                if not items and not self._ended:
                    return
                with self._lock:
                    if self._busy:
                        return
                    self._busy = True
                continue
            on_next(item)
            consumed += 1
            if consumed == 96:
                consumed = 0
                self.grant(96)


def hop_by_credit(items: int) -> int:
    total = Summing()
    with ThreadPoolExecutor(1) as pool:
        hop = CreditHop(pool, items, total)
        hop.grant(128)
        hop.done.wait()
    return total.total


def hop_over_queue(items: int) -> int:
    """What people write: a bounded queue, and a thread at its other end."""
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


def hops() -> None:
    """`observe_on` beside its floor, the queue that people write, and ReactiveX."""
    compare(
        "A hop to another thread, wall time",
        Case("deque, credits and a task: the floor", partial(hop_by_credit, HOPS)),
        Case("observe_on, prefetch 16", partial(hop_by_observe_on, HOPS, 16)),
        Case("observe_on, prefetch 128", partial(hop_by_observe_on, HOPS), 1.6),
        Case("observe_on, prefetch 1024", partial(hop_by_observe_on, HOPS, 1024)),
        Case("observe_on, fused source", partial(hop_by_observe_on, HOPS, hidden=False)),
        Case("queue.Queue(128)", partial(hop_over_queue, HOPS)),
        items=HOPS,
        clock=time.perf_counter,
    )
    compare(
        "A hop to another thread, beside ReactiveX, wall time",
        Case("reactivex 6.1, observe_on", partial(hop_by_reactivex, PEER_HOPS)),
        Case("observe_on, prefetch 128", partial(hop_by_observe_on, PEER_HOPS), 1 / 25),
        items=PEER_HOPS,
        clock=time.perf_counter,
    )


# -- several threads


@final
class OwnThread:
    """A source with a thread of its own, which sends what is requested."""

    def __init__(self, items: int) -> None:
        self._items = items
        self._requested = 0
        self._lock = threading.Lock()
        self._more = threading.Semaphore(0)
        self._subscriber: Subscriber[int] | None = None

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        self._subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None:
        with self._lock:
            self._requested += n
        self._more.release()

    def cancel(self) -> None:
        raise AssertionError("nobody cancels here")

    def run(self) -> None:
        subscriber = self._subscriber
        assert subscriber is not None
        on_next = subscriber.on_next
        for n in range(self._items):
            while n >= self._requested:
                self._more.acquire()
            on_next(n)
        subscriber.on_complete()


def at_once(*work: Callable[[], None]) -> None:
    """Run each in a thread of its own, and return when all have ended."""
    threads = [threading.Thread(target=each) for each in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def four_by_lock() -> int:
    """Four loops that take a lock for each item."""
    total = Summing()
    lock = threading.Lock()

    def send() -> None:
        for n in range(ITEMS // THREADS):
            with lock:
                total(n)

    at_once(*[send] * THREADS)
    return total.total


def four_by_merge(prefetch: int) -> int:
    total = Summing()
    sources = [OwnThread(ITEMS // THREADS) for _ in range(THREADS)]
    merge(*sources, prefetch=prefetch).subscribe(total)
    at_once(*(source.run for source in sources))
    return total.total


def merging() -> None:
    """`merge` of sources with threads of their own beside loops that share a lock."""
    compare(
        f"{THREADS} threads into one callback, wall time",
        Case("a lock for each item", four_by_lock),
        Case("merge, prefetch 128", partial(four_by_merge, 128), 2.0),
        Case("merge, prefetch 1024", partial(four_by_merge, 1024)),
        items=ITEMS,
        clock=time.perf_counter,
    )


# -- flows that are joined


def mapped_by_loop() -> int:
    """A loop that makes the same inner flows, and takes their item out by `call`."""
    total = Summing()
    for n in range(ITEMS):
        source = flow.just(n).source
        if isinstance(source, flow.CallableSource):
            total(source.call() or 0)
    return total.total


def mapping() -> None:
    """Flows of one item each, which all operators that map to flows take out at once."""
    compare(
        "range | just of each, to a callback",
        Case("a loop that calls just", mapped_by_loop),
        Case("flat_map", lambda: summed(flow.range(ITEMS).pipe(flat_map(flow.just))), None, 1.5),
        Case(
            "flat_map of hidden flows",
            lambda: summed(flow.range(ITEMS).pipe(flat_map(lambda n: flow.just(n).hide()))),
        ),
        Case(
            "concat_map", lambda: summed(flow.range(ITEMS).pipe(concat_map(flow.just))), None, 1.5
        ),
        items=ITEMS,
    )


def zip_builtin() -> int:
    total, combine = Summing(), lambda a, b: a + b
    for a, b in builtins.zip(range(ITEMS), range(ITEMS), strict=True):
        total(combine(a, b))
    return total.total


def zip_flows(*, hidden: bool) -> int:
    one, two = flow.range(ITEMS), flow.range(ITEMS)
    if hidden:
        one, two = one.hide(), two.hide()
    return summed(zip(one, two, combiner=lambda a, b: a + b))


def zipping() -> None:
    """`zip` beside the builtin."""
    compare(
        "pairs and a lambda, to a callback",
        Case("builtin zip", zip_builtin),
        Case("zip", partial(zip_flows, hidden=False), 4.0),
        Case("zip of hidden flows", partial(zip_flows, hidden=True)),
        items=ITEMS,
    )


def chain_builtin(sources: int) -> int:
    total = Summing()
    for n in itertools.chain(*(range(ITEMS // sources) for _ in range(sources))):
        total(n)
    return total.total


def concatenated(sources: int) -> int:
    return summed(concat(*(flow.range(ITEMS // sources) for _ in range(sources))))


def chaining() -> None:
    """`concat` beside `itertools.chain`."""
    compare(
        "10 ranges, one after the other, to a callback",
        Case("itertools.chain", partial(chain_builtin, 10)),
        Case("concat", partial(concatenated, 10), 3.0),
        items=ITEMS,
    )


# -- many sources


def merged(sources: int) -> int:
    return summed(merge(*(flow.range(ITEMS // sources).hide() for _ in range(sources))))


def merged_in_turn(sources: int) -> int:
    """The sources send one item each, again and again."""
    total = Summing()
    links: list[InTurn] = [InTurn() for _ in range(sources)]
    merge(*links, max_concurrency=sources).subscribe(total)
    for n in range(ITEMS // sources):
        for link in links:
            link.send(n)
    return total.total


@final
class InTurn:
    """A source that sends when it is told to; its subscriber requests enough."""

    def __init__(self) -> None:
        self._subscriber: Subscriber[int] | None = None

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        self._subscriber = subscriber
        link: Subscription = self
        subscriber.on_subscribe(link)

    def request(self, n: int, /) -> None:
        pass

    def cancel(self) -> None:
        pass

    def send(self, n: int) -> None:
        if self._subscriber is not None:
            self._subscriber.on_next(n)


def zipped(sources: int) -> int:
    size = ITEMS // sources
    flows = [flow.range(size) for _ in range(sources)]
    return summed(zip(*flows, combiner=lambda *items: sum(items)))


def growing() -> None:
    """The same number of items from 1 to 1000 sources: the cost of an item must not grow."""
    for name, work in (
        ("concat", concatenated),
        ("merge, one after the other", merged),
        ("merge, in turn", merged_in_turn),
        ("zip", zipped),
    ):
        compare(
            f"{name}: the same items from more and more sources",
            *(
                Case(f"{sources:,} sources", partial(work, sources), 2.0 if sources > 10 else None)
                for sources in (10, 1, 100, 1_000)
            ),
            items=ITEMS,
            rounds=5,
            same=lambda _: None,
        )


def main() -> None:
    hops()
    merging()
    mapping()
    zipping()
    chaining()
    growing()


if __name__ == "__main__":
    main()
