"""The memory that a waiting item takes, besides itself, in every place where items wait.

All items are the same integer, or integers made before, so that they take no memory. Nothing
requests the waiting items. The script counts the references to the items, so that no place looks
small only because it does not hold them.
"""

from __future__ import annotations

import asyncio
import queue
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import Executor, Future
from typing import Any, final

import reactivex
from reactivex import operators as rx
from reactivex.scheduler import VirtualTimeScheduler
from reactivex.subject import ReplaySubject, Subject

import flow_core as flow
from flow_core import Flow, Subscription
from flow_core.subscribers._awaiting import iterate_async
from flow_multicast import (
    MulticastProcessor,
    ReplayProcessor,
    UnicastProcessor,
    cache,
    replay,
    share,
)
from flow_ops import (
    buffer_boundary,
    buffer_toggle,
    buffer_when,
    buffer_with_time,
    combine_latest,
    concat,
    concat_map,
    concat_map_eager,
    delay,
    delay_with_mapper,
    expand,
    flat_map,
    group_by,
    map_concurrent,
    merge,
    observe_on,
    on_backpressure_buffer,
    on_processes,
    ordered_merge,
    parallel,
    sequence_equal,
    skip_last_with_time,
    take_last_with_time,
    window_boundary,
    window_toggle,
    window_when,
    window_with_count,
    window_with_time,
    zip,
)
from flow_rxcompat.rx import from_rx
from flow_testing import VirtualClock
from rounds import ITEM, Store, weigh

MARK = 64
"""The most bytes for an item that is kept."""
ITEMS = 50_000
HOUR_S = 3600
NUMBERS = tuple(range(1_000_000, 1_000_000 + ITEMS))
"""The items for places that keep each distinct item once."""


@final
class Stalled:
    """A subscriber that requests a given number of items, and keeps items that hold others."""

    def __init__(self, requested: int = 0) -> None:
        self.requested = requested
        self.subscription: Subscription | None = None
        self.kept: list[object] = []

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription
        if self.requested:
            subscription.request(self.requested)

    def on_next(self, item: object, /) -> None:
        if not isinstance(item, int):
            self.kept.append(item)  # a group or a window, in which items wait

    def cancel(self) -> None:
        if self.subscription is not None:
            self.subscription.cancel()

    def on_error(self, error: BaseException, /) -> None:
        raise error

    def on_complete(self) -> None:
        pass


@final
class Stuck(Executor):
    """A pool of processes that never starts a task."""

    # Any: the declared parameters of Executor.submit
    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return Future()


def one(_: object) -> int:
    return ITEM


async def one_later(_: int) -> int:
    return ITEM


def ones(items: int) -> Flow[int]:
    """Return a flow of that many items, without an end, from a source that is not fused."""
    return concat(flow.range(items).map(one), flow.never()).hide()


def inline(task: Callable[[], object]) -> None:
    """Run a task at once, as an executor."""
    task()


def stalled(made: Flow[object], requested: int = 0) -> Stalled:
    """Return a subscriber that holds everything that waits in a flow."""
    subscriber = Stalled(requested)
    made.subscribe(subscriber)
    return subscriber


def waiting() -> None:
    """Weigh the queues between a source and a subscriber that requests nothing.

    Groups and windows have room for one item more: they fail if parts without a reader hold all
    the items that may wait.
    """

    def emitted(items: int) -> Flow[int]:
        def emit(emitter: flow.Emitter[int]) -> None:
            for _ in range(items):
                emitter.next(ITEM)

        return flow.create(emit, capacity=items)

    def multicast(items: int) -> object:
        processor: MulticastProcessor[int] = MulticastProcessor(items)
        ones(items).subscribe(processor)
        return processor

    def unicast(items: int) -> object:
        processor: UnicastProcessor[int] = UnicastProcessor(items)
        for _ in range(items):
            processor.offer(ITEM)
        return processor

    def iterated(items: int) -> object:
        iterator = ones(items + 1).iterate(prefetch=items + 1)
        next(iterator)
        return iterator

    def awaited(items: int) -> AsyncIterator[int]:
        iterator = iterate_async(ones(items + 1), items + 1)
        loop.run_until_complete(anext(iterator))
        return iterator

    def left(iterator: AsyncIterator[int]) -> None:
        if isinstance(iterator, AsyncGenerator):
            loop.run_until_complete(iterator.aclose())

    loop = asyncio.new_event_loop()

    def cancelled(waiting: Stalled) -> None:
        waiting.cancel()
        loop.run_until_complete(asyncio.sleep(0))

    def mapped_later(items: int) -> Stalled:
        made = ones(items).pipe(map_concurrent(one_later, items, loop=loop))
        waiting = stalled(made)
        loop.run_until_complete(asyncio.sleep(0))  # the tasks are created
        loop.run_until_complete(asyncio.sleep(0))  # and finish
        return waiting

    def sent_nowhere(items: int) -> Stalled:
        processes = on_processes(Stuck(), concurrency=1, prefetch=items + 1)
        return stalled(ones(items + 1).pipe(processes).map(one))

    def from_subject(items: int) -> Stalled:
        subject = Subject[int]()
        waiting = stalled(from_rx(subject, capacity=items))
        for _ in range(items):
            subject.on_next(ITEM)
        return waiting

    def in_queue(items: int) -> object:
        found: queue.Queue[int] = queue.Queue(items)
        for _ in range(items):
            found.put(ITEM)
        return found

    def in_asyncio_queue(items: int) -> object:
        found: asyncio.Queue[int] = asyncio.Queue(items)
        for _ in range(items):
            found.put_nowait(ITEM)
        return found

    def in_observe_on_of_reactivex(items: int) -> object:
        subject = Subject[int]()
        subject.pipe(rx.observe_on(VirtualTimeScheduler())).subscribe()
        for _ in range(items):
            subject.on_next(ITEM)
        return subject

    def in_zip_of_reactivex(items: int) -> object:
        subject = Subject[int]()
        reactivex.zip(subject, reactivex.never()).subscribe()
        for _ in range(items):
            subject.on_next(ITEM)
        return subject

    weigh(
        "Bytes for an item that waits",
        Store("collections.deque", lambda items: deque([ITEM] * items), by="python"),
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
            lambda items: stalled(ones(items).pipe(group_by(one, prefetch=items + 1)), 1),
        ),
        Store(
            "window_with_count",
            lambda items: stalled(
                ones(items).pipe(window_with_count(items, prefetch=items + 1)), 1
            ),
        ),
        Store(
            "delay",
            lambda items: stalled(ones(items).pipe(delay(3600, clock=VirtualClock())), items),
        ),
        Store(
            "delay_with_mapper",
            lambda items: stalled(
                ones(items).pipe(delay_with_mapper(lambda _: flow.never(), concurrency=items)),
                items,
            ),
        ),
        Store("map_concurrent", mapped_later, free=cancelled),
        Store(
            "concat_map, outer items",
            lambda items: stalled(
                ones(items + 1).pipe(concat_map(lambda _: flow.never(), prefetch=items + 1)), 1
            ),
        ),
        Store(
            "ordered_merge",
            lambda items: stalled(ordered_merge(ones(items), flow.never(), prefetch=items)),
        ),
        Store(
            "sequence_equal",
            lambda items: stalled(sequence_equal(ones(items), flow.never(), prefetch=items), 1),
        ),
        Store(
            "combine_latest",
            lambda items: stalled(combine_latest(ones(1), ones(items), prefetch=items), 1),
        ),
        Store(
            "parallel",
            lambda items: stalled(
                ones(items).pipe(parallel(1, prefetch=items)).sequential(prefetch=1)
            ),
        ),
        Store(
            "skip_last",
            lambda items: stalled(ones(items).skip_last(items), 1),
        ),
        Store(
            "skip_last_with_time",
            lambda items: stalled(
                ones(items).pipe(skip_last_with_time(HOUR_S, clock=VirtualClock())), items
            ),
        ),
        Store(
            "window_with_time",
            lambda items: stalled(
                ones(items).pipe(
                    window_with_time(HOUR_S, prefetch=items + 1, clock=VirtualClock())
                ),
                1,
            ),
        ),
        Store(
            "window_boundary",
            lambda items: stalled(
                ones(items).pipe(window_boundary(flow.never(), prefetch=items + 1)), 1
            ),
        ),
        Store(
            "expand",
            lambda items: stalled(
                ones(items).pipe(expand(lambda _: flow.empty(), capacity=items)), items
            ),
        ),
        Store(
            "expand, depth first, a level",
            lambda items: stalled(
                flow.just(ITEM)
                .hide()
                .pipe(
                    expand(
                        lambda _: flow.just(ITEM, ITEM).hide(),
                        depth_first=True,
                        capacity=items + 1,
                    )
                ),
                items,
            ),
        ),
        Store(
            "window_toggle",
            lambda items: stalled(
                ones(items).pipe(
                    window_toggle(
                        concat(flow.just(0), flow.never()),
                        lambda _: flow.never(),
                        prefetch=items + 1,
                    )
                ),
                1,
            ),
        ),
        Store(
            "window_when",
            lambda items: stalled(ones(items).pipe(window_when(flow.never, prefetch=items + 1)), 1),
        ),
        Store("on_processes", sent_nowhere),
        Store("from_rx", from_subject),
        Store("for", iterated),
        Store("async for", awaited, free=left),
        Store("share", lambda items: stalled(ones(items).pipe(share(prefetch=items)))),
        Store("create", lambda items: stalled(emitted(items))),
        Store("MulticastProcessor", multicast),
        Store("UnicastProcessor", unicast),
        Store("reactivex, observe_on", in_observe_on_of_reactivex, by="reactivex"),
        Store("reactivex, zip", in_zip_of_reactivex, by="reactivex"),
    )
    loop.close()


def kept() -> None:
    """Weigh operators whose purpose is to keep items."""

    def replaying(make: Callable[[int], ReplayProcessor[int]]) -> Callable[[int], object]:
        def fill(items: int) -> object:
            processor = make(items)
            for _ in range(items):
                processor.on_next(ITEM)
            return processor

        return fill

    def by_reactivex(items: int) -> object:
        subject = ReplaySubject[int]()
        for _ in range(items):
            subject.on_next(ITEM)
        return subject

    def connected(items: int) -> object:
        numbers = ones(items).pipe(replay())
        numbers.connect()
        return numbers

    def buffered(items: int) -> object:
        return stalled(ones(items).buffer_with_count(items + 1), 1)

    weigh(
        "Bytes for an item that is kept",
        Store("list", lambda items: [ITEM for _ in range(items)], by="python"),
        Store("ReplayProcessor()", replaying(lambda _: ReplayProcessor()), MARK),
        Store("ReplayProcessor(size)", replaying(lambda size: ReplayProcessor(size)), MARK),
        Store("ReplayProcessor(ttl)", replaying(lambda _: ReplayProcessor(ttl=3600)), MARK),
        Store("to_list", lambda items: stalled(ones(items).to_list(), 1)),
        Store("buffer_with_count", buffered),
        Store("take_last", lambda items: stalled(ones(items).take_last(items), 1)),
        Store(
            "replay",
            connected,
            MARK,
        ),
        Store("cache", lambda items: stalled(ones(items).pipe(cache()), items), MARK),
        Store(
            "buffer_with_time",
            lambda items: stalled(
                ones(items).pipe(
                    buffer_with_time(HOUR_S, max_size=items + 1, clock=VirtualClock())
                ),
                1,
            ),
        ),
        Store(
            "buffer_boundary",
            lambda items: stalled(
                ones(items).pipe(buffer_boundary(flow.never(), max_size=items + 1)), 1
            ),
        ),
        Store(
            "buffer_toggle",
            lambda items: stalled(
                ones(items).pipe(
                    buffer_toggle(
                        concat(flow.just(0), flow.never()),
                        lambda _: flow.never(),
                        max_size=items + 1,
                    )
                ),
                1,
            ),
        ),
        Store(
            "buffer_when",
            lambda items: stalled(ones(items).pipe(buffer_when(flow.never, max_size=items + 1)), 1),
        ),
        Store(
            "take_last_with_time",
            lambda items: stalled(
                ones(items).pipe(take_last_with_time(HOUR_S, clock=VirtualClock())), 1
            ),
        ),
        Store(
            "distinct",
            lambda items: stalled(
                concat(flow.from_iterable(NUMBERS[:items]), flow.never()).hide().distinct(), items
            ),
            of=NUMBERS,
        ),
        Store("set", lambda items: set(NUMBERS[:items]), by="python", of=NUMBERS),
        Store("reactivex, ReplaySubject()", by_reactivex, by="reactivex"),
    )


def assembled() -> None:
    """Weigh assembled flows that hold one item each."""

    def several(
        make: Callable[[], object], once: Callable[[Any], object] = id
    ) -> Callable[[int], object]:
        def fill(items: int) -> object:
            made = [make() for _ in range(items)]
            for each in made:
                once(each)
            return made

        return fill

    def chain(stages: int) -> Flow[int]:
        made = flow.just(ITEM)
        for _ in range(stages):
            made = made.map(one)
        return made

    def by_reactivex() -> reactivex.Observable[int]:
        return reactivex.just(ITEM).pipe(*[rx.map(one)] * 4)

    mapped: flow.Prepared[int, int] = flow.prepare(
        lambda numbers: numbers.map(one).map(one).map(one).map(one)
    )
    weigh(
        "Bytes for a flow that is put together",
        Store("source", several(lambda: chain(0))),
        Store("source, 1 stage", several(lambda: chain(1))),
        Store("source, 4 stages", several(lambda: chain(4))),
        Store("source, 4 stages, after a run", several(lambda: chain(4), list)),
        Store("source, 4 stages, after a subscription", several(lambda: chain(4), subscribed)),
        Store("source, 20 stages", several(lambda: chain(20))),
        Store("prepared, 4 stages", several(lambda: mapped([ITEM]))),
        Store("map of map …, 4 times", several(lambda: nested(4)), by="python"),
        Store("reactivex, 4 operators", several(by_reactivex), by="reactivex"),
        items=5_000,
        unit="flow",
    )


def subscribed(numbers: Flow[int]) -> None:
    numbers.subscribe(one)


def nested(stages: int) -> object:
    made: Any = (ITEM,)
    for _ in range(stages):
        made = map(one, made)
    return made


def main() -> None:
    waiting()
    kept()
    assembled()


if __name__ == "__main__":
    main()
