"""What is kept for an item while it waits, beside the item itself, in every place where items wait.

All items are the same integer, so that it weighs nothing. Nobody requests what waits.
"""

from __future__ import annotations

import asyncio
import queue
from collections import deque
from collections.abc import Callable
from typing import final

import reactivex
from reactivex import operators as rx
from reactivex.scheduler import VirtualTimeScheduler
from reactivex.subject import ReplaySubject, Subject

import flow_core as flow
from flow_core import Flow, Subscription
from flow_core.testing import VirtualClock
from flow_multicast import MulticastProcessor, ReplayProcessor, UnicastProcessor
from flow_ops import (
    concat,
    concat_map_eager,
    delay,
    flat_map,
    group_by,
    merge,
    observe_on,
    on_backpressure_buffer,
    window_with_count,
    zip,
)
from rounds import Store, weigh

MARK = 64
"""Bytes for an item that is kept."""


@final
class Stalled:
    """A subscriber that requests as many as it is told to, and keeps what holds the others."""

    def __init__(self, requested: int = 0) -> None:
        self.requested = requested
        self.kept: list[object] = []

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.kept.append(subscription)
        if self.requested:
            subscription.request(self.requested)

    def on_next(self, item: object, /) -> None:
        if not isinstance(item, int):
            self.kept.append(item)  # a group or a window, in which items wait

    def on_error(self, error: BaseException, /) -> None:
        raise error

    def on_complete(self) -> None:
        pass


def one(_: int) -> int:
    return 1


def ones(items: int) -> Flow[int]:
    """So many, and no end, from a source that is not fused."""
    return concat(flow.range(items).map(one), flow.never()).hide()


def inline(task: Callable[[], object]) -> None:
    """An executor that runs a task at once."""
    task()


def stalled(made: Flow[object], requested: int = 0) -> object:
    """What holds all that waits in a flow."""
    subscriber = Stalled(requested)
    made.subscribe(subscriber)
    return subscriber


def waiting() -> None:
    """The queues between a source and who requests nothing."""

    def emitted(items: int) -> Flow[int]:
        def emit(emitter: flow.Emitter[int]) -> None:
            for _ in range(items):
                emitter.next(1)

        return flow.create(emit, capacity=items)

    def multicast(items: int) -> object:
        processor: MulticastProcessor[int] = MulticastProcessor(items)
        ones(items).subscribe(processor)
        return processor

    def unicast(items: int) -> object:
        processor: UnicastProcessor[int] = UnicastProcessor(items)
        for _ in range(items):
            processor.offer(1)
        return processor

    def in_queue(items: int) -> object:
        found: queue.Queue[int] = queue.Queue(items)
        for _ in range(items):
            found.put(1)
        return found

    def in_asyncio_queue(items: int) -> object:
        found: asyncio.Queue[int] = asyncio.Queue(items)
        for _ in range(items):
            found.put_nowait(1)
        return found

    def in_observe_on_of_reactivex(items: int) -> object:
        subject = Subject[int]()
        subject.pipe(rx.observe_on(VirtualTimeScheduler())).subscribe()
        for _ in range(items):
            subject.on_next(1)
        return subject

    def in_zip_of_reactivex(items: int) -> object:
        subject = Subject[int]()
        reactivex.zip(subject, reactivex.never()).subscribe()
        for _ in range(items):
            subject.on_next(1)
        return subject

    weigh(
        "Bytes for an item that waits",
        Store("collections.deque", lambda items: deque([1] * items), by="python"),
        Store("queue.Queue", in_queue, by="python"),
        Store("asyncio.Queue", in_asyncio_queue, by="python"),
        Store(
            "observe_on",
            lambda items: stalled(ones(items).pipe(observe_on(inline, prefetch=items))),
        ),
        Store(
            "merge",
            lambda items: stalled(merge(ones(items), flow.never(), prefetch=items)),
        ),
        Store(
            "flat_map",
            lambda items: stalled(
                flow.range(2).pipe(
                    flat_map(lambda n: ones(items) if n else flow.never(), prefetch=items)
                )
            ),
        ),
        Store(
            "concat_map_eager",
            lambda items: stalled(
                flow.range(2).pipe(
                    concat_map_eager(lambda n: ones(items) if n else flow.never(), prefetch=items)
                )
            ),
        ),
        Store(
            "zip",
            lambda items: stalled(zip(ones(items), flow.never(), prefetch=items)),
        ),
        Store(
            "on_backpressure_buffer",
            lambda items: stalled(ones(items).pipe(on_backpressure_buffer(items))),
        ),
        Store(
            "group_by",
            lambda items: stalled(ones(items).pipe(group_by(one, prefetch=items)), 1),
        ),
        Store(
            "window_with_count",
            lambda items: stalled(ones(items).pipe(window_with_count(items, prefetch=items)), 1),
        ),
        Store(
            "delay",
            lambda items: stalled(ones(items).pipe(delay(3600, clock=VirtualClock())), items),
        ),
        Store("create", lambda items: stalled(emitted(items))),
        Store("MulticastProcessor", multicast),
        Store("UnicastProcessor", unicast),
        Store("reactivex, observe_on", in_observe_on_of_reactivex, by="reactivex"),
        Store("reactivex, zip", in_zip_of_reactivex, by="reactivex"),
    )


def kept() -> None:
    """What is kept because somebody wants it so."""

    def replaying(make: Callable[[int], ReplayProcessor[int]]) -> Callable[[int], object]:
        def fill(items: int) -> object:
            processor = make(items)
            for _ in range(items):
                processor.on_next(1)
            return processor

        return fill

    def by_reactivex(items: int) -> object:
        subject = ReplaySubject[int]()
        for _ in range(items):
            subject.on_next(1)
        return subject

    def buffered(items: int) -> object:
        return stalled(ones(items).buffer_with_count(items + 1), 1)

    weigh(
        "Bytes for an item that is kept",
        Store("list", lambda items: [1 for _ in range(items)], by="python"),
        Store("ReplayProcessor()", replaying(lambda _: ReplayProcessor()), MARK),
        Store("ReplayProcessor(size)", replaying(lambda size: ReplayProcessor(size)), MARK),
        Store("ReplayProcessor(ttl_s)", replaying(lambda _: ReplayProcessor(ttl_s=3600)), MARK),
        Store("to_list", lambda items: stalled(ones(items).to_list(), 1)),
        Store("buffer_with_count", buffered),
        Store("take_last", lambda items: stalled(ones(items).take_last(items), 1)),
        Store(
            "distinct",
            lambda items: stalled(concat(flow.range(items), flow.never()).hide().distinct(), items),
        ),
        Store("set", lambda items: set(range(items)), by="python"),
        Store("reactivex, ReplaySubject()", by_reactivex, by="reactivex"),
    )


def main() -> None:
    waiting()
    kept()


if __name__ == "__main__":
    main()
