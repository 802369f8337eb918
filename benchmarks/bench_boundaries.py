"""Boundaries: a hop between threads, and one flow for many subscribers."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import flow_core as flow
from flow_multicast import MulticastProcessor
from flow_ops import observe_on
from rounds import Case, compare

HOPS = 200_000
SHARED = 50_000


def hop_over_queue() -> int:
    """What people write: a bounded queue, and a thread at its other end."""
    items: queue.Queue[int | None] = queue.Queue(128)
    total = 0

    def consume() -> None:
        nonlocal total
        while (item := items.get()) is not None:
            total += item

    consumer = threading.Thread(target=consume)
    consumer.start()
    for n in range(HOPS):
        items.put(n)
    items.put(None)
    consumer.join()
    return total


def hop_over_credits() -> int:
    """The least that a bounded hop can be: a deque, and credits that are given back in batches."""
    items: deque[int] = deque()
    credit = threading.Semaphore(0)
    ready = threading.Event()
    done = threading.Event()
    total = 0
    batch = 96

    def consume() -> None:
        nonlocal total
        consumed = 0
        while True:
            try:
                item = items.popleft()
            except IndexError:
                if done.is_set() and not items:
                    return
                ready.wait()
                ready.clear()
                continue
            total += item
            consumed += 1
            if consumed == batch:
                consumed = 0
                credit.release()

    consumer = threading.Thread(target=consume)
    consumer.start()
    left = 128
    for n in range(HOPS):
        if left == 0:
            credit.acquire()
            left = batch
        items.append(n)
        left -= 1
        if not ready.is_set():
            ready.set()
    done.set()
    ready.set()
    consumer.join()
    return total


def hop_by_observe_on(prefetch: int) -> Callable[[], int]:
    def run() -> int:
        total = 0

        def on_next(n: int) -> None:
            nonlocal total
            total += n

        with ThreadPoolExecutor(1) as pool:
            flow.range(HOPS).hide().pipe(observe_on(pool, prefetch=prefetch)).subscribe(
                on_next
            ).wait()
        return total

    return run


def hop_fused() -> int:
    total = 0

    def on_next(n: int) -> None:
        nonlocal total
        total += n

    with ThreadPoolExecutor(1) as pool:
        flow.range(HOPS).pipe(observe_on(pool)).subscribe(on_next).wait()
    return total


def shared_by_loop(subscribers: int) -> Callable[[], int]:
    def run() -> int:
        totals = [0] * subscribers

        def callback(index: int) -> Callable[[int], None]:
            def on_next(n: int) -> None:
                totals[index] += n

            return on_next

        callbacks = [callback(index) for index in range(subscribers)]
        for n in range(SHARED * 16 // subscribers):
            for on_next in callbacks:
                on_next(n)
        return sum(totals)

    return run


def shared_by_processor(subscribers: int) -> Callable[[], int]:
    def run() -> int:
        totals = [0] * subscribers

        def callback(index: int) -> Callable[[int], None]:
            def on_next(n: int) -> None:
                totals[index] += n

            return on_next

        processor: MulticastProcessor[int] = MulticastProcessor(128)
        published = processor.flow
        for index in range(subscribers):
            published.subscribe(callback(index))
        flow.range(SHARED * 16 // subscribers).subscribe(processor)
        return sum(totals)

    return run


def main() -> None:
    ratios = compare(
        "A hop to another thread, wall time",
        Case("queue.Queue(128)", hop_over_queue),
        Case("deque with credits, the floor", hop_over_credits),
        Case("observe_on, prefetch 16", hop_by_observe_on(16)),
        Case("observe_on, prefetch 128", hop_by_observe_on(128), 0.2),
        Case("observe_on, prefetch 1024", hop_by_observe_on(1024)),
        Case("observe_on, prefetch 128, fused source", hop_fused),
        items=HOPS,
        clock=time.perf_counter,
    )
    print(f"observe_on(128): {1 / ratios['observe_on, prefetch 128']:.1f} times the queue's rate\n")
    for subscribers in (1, 4, 16, 1_000):
        compare(
            f"One flow, {subscribers:,} subscribers: per item and subscriber",
            Case("a loop over callbacks", shared_by_loop(subscribers)),
            Case(
                "MulticastProcessor",
                shared_by_processor(subscribers),
                2.0 if subscribers == 16 else None,
            ),
            items=SHARED * 16,
        )


if __name__ == "__main__":
    main()
