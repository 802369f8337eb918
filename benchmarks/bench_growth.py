"""The growth of time with items, stages, sources, keys and subscribers: it must be linear.

Each piece of work returns the sum of what its callbacks received, which is the same in all cases.
"""

from __future__ import annotations

import asyncio
import builtins
import math
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import final

import flow_core as flow
from bench_ops import (
    Summing,
    four_by_lock,
    four_by_merge,
    hop_by_credit,
    hop_by_observe_on,
    summed,
)
from flow_core import Flow, Subscriber, Subscription
from flow_core.structure import stages_of
from flow_multicast import DirectProcessor, MulticastProcessor, ReplayProcessor, publish
from flow_ops import GroupedFlow, concat, concat_map, flat_map, group_by, merge, zip
from rounds import Curve, grow

LINEAR = 1.05
ITEMS = (300, 1_000, 3_000, 10_000, 30_000)
MANY = (10, 30, 100, 300, 1_000)
"""The numbers of stages, sources, keys and subscribers."""
SQUARES = tuple(size * size for size in (10, 17, 32, 56, 100, 173))
"""Total numbers of items, all squares: n inner flows of n items each."""
ACROSS = (1_000, 3_000, 10_000, 30_000, 100_000)
"""Numbers of items that go to another thread, which has to be started for the first."""
AGAIN = 3
"""Runs with the most items per round for work on a thread, which may have to wait its turn."""
EACH = 30
"""The items of each source."""
THROUGH = 100
"""The number of items that go through many stages."""


def increment(n: int) -> int:
    return n + 1


def is_positive(n: int) -> bool:
    return n > 0


def add(total: int, n: int) -> int:
    return total + n


def second(_: int, n: int) -> int:
    return n


def pushed(make: Callable[[int], Flow[int]]) -> Callable[[int], int]:
    """Return work that sums the items that a subscriber receives."""
    return lambda size: summed(make(size))


def pulled(make: Callable[[int], Iterable[int]]) -> Callable[[int], int]:
    """Return work that sums the items of an iteration."""

    def work(size: int) -> int:
        total = Summing()
        for item in make(size):
            total(item)
        return total.total

    return work


# -- items: from 1 on, so that the sum is the same whether they are mapped or filtered


def upward(size: int) -> Flow[int]:
    return flow.range(1, size + 1)


def by_loop(size: int) -> int:
    total = Summing()
    for each in range(size):
        n = increment(each)
        if is_positive(n):
            total(n)
    return total.total


def chain(size: int) -> Flow[int]:
    return flow.range(size).map(increment).filter(is_positive)


def hidden_chain(size: int) -> Flow[int]:
    return flow.range(size).hide().map(increment).filter(is_positive)


def hidden_just(n: int) -> Flow[int]:
    return flow.just(n).hide()


def cut(size: int) -> Flow[int]:
    return flow.range(1 - size // 10, 2 * size).skip(size // 10).take(size)


def awaited(size: int) -> int:
    total = Summing()

    async def consume() -> None:
        async for n in chain(size):
            total(n)

    asyncio.run(consume())
    return total.total


def halves(size: int) -> tuple[Flow[int], Flow[int]]:
    return flow.range(1, size // 2 + 1), flow.range(size // 2 + 1, size + 1)


def hidden_halves(size: int) -> list[Flow[int]]:
    return [half.hide() for half in halves(size)]


def ten_keys(n: int) -> int:
    return n % 10


def ten_groups(size: int) -> int:
    return grouped(upward(size), ten_keys, 10)


def grouped(source: Flow[int], key: Callable[[int], int], keys: int) -> int:
    total = Summing()

    def on_group(group: GroupedFlow[int, int]) -> None:
        group.subscribe(total)

    source.pipe(group_by(key, max_groups=keys)).subscribe(on_group)
    return total.total


def multicast(size: int) -> int:
    total = Summing()
    processor: MulticastProcessor[int] = MulticastProcessor()
    processor.flow.subscribe(total)
    upward(size).subscribe(processor)
    return total.total


def replayed(size: int) -> int:
    processor: ReplayProcessor[int] = ReplayProcessor()
    for n in range(1, size + 1):
        processor.on_next(n)
    processor.on_complete()
    return summed(processor.flow)


def items() -> None:
    grow(
        "More items",
        Curve("a loop", by_loop),
        Curve("map and filter, iterated", pulled(chain), LINEAR),
        Curve("map and filter, subscribed", pushed(chain), LINEAR),
        Curve("map and filter, source hidden", pushed(hidden_chain), LINEAR),
        Curve("map, filter and reduce", pushed(lambda size: chain(size).reduce(add, 0)), LINEAR),
        Curve("skip and take, iterated", pulled(cut), LINEAR),
        Curve("skip and take, subscribed", pushed(cut), LINEAR),
        Curve("async for", awaited, LINEAR),
        Curve(
            "concat_map to just",
            pushed(lambda size: upward(size).pipe(concat_map(flow.just))),
            LINEAR,
        ),
        Curve(
            "flat_map to just",
            pushed(lambda size: upward(size).pipe(flat_map(flow.just))),
            LINEAR,
        ),
        Curve(
            "flat_map to hidden just",
            pushed(lambda size: upward(size).pipe(flat_map(hidden_just))),
            LINEAR,
        ),
        Curve(
            "zip of hidden flows",
            pushed(lambda size: zip(upward(size).hide(), upward(size).hide()).starmap(second)),
            LINEAR,
        ),
        Curve("concat", pushed(lambda size: concat(*halves(size))), LINEAR),
        Curve("concat of hidden flows", pushed(lambda size: concat(*hidden_halves(size))), LINEAR),
        Curve("merge of hidden flows", pushed(lambda size: merge(*hidden_halves(size))), LINEAR),
        Curve("group_by, 10 keys", ten_groups, LINEAR),
        Curve("MulticastProcessor, a subscriber", multicast, LINEAR),
        Curve("ReplayProcessor, a late subscriber", replayed, LINEAR),
        axis="items",
        sizes=ITEMS,
    )


def nested_loop(size: int) -> int:
    total, side = Summing(), math.isqrt(size)
    for _ in range(side):
        for n in range(side):
            total(n)
    return total.total


def crossed(size: int, *, hidden: bool = False) -> tuple[Flow[int], Callable[[int], Flow[int]]]:
    """Return a range, and a function that makes a range of the same length from each item."""
    side = math.isqrt(size)

    def inner(_: int) -> Flow[int]:
        made = flow.range(side)
        return made.hide() if hidden else made

    return flow.range(side), inner


def concatenated(size: int) -> Flow[int]:
    outer, inner = crossed(size)
    return outer.pipe(concat_map(inner))


def flattened(size: int, *, hidden: bool = False) -> Flow[int]:
    outer, inner = crossed(size, hidden=hidden)
    return outer.pipe(flat_map(inner))


def squares() -> None:
    grow(
        "More items, as many inner flows as each has items",
        Curve("nested loops", nested_loop),
        Curve("concat_map, iterated", pulled(concatenated), LINEAR),
        Curve("concat_map, subscribed", pushed(concatenated), LINEAR),
        Curve("flat_map, subscribed", pushed(flattened), LINEAR),
        Curve(
            "flat_map of hidden flows, subscribed", pushed(partial(flattened, hidden=True)), LINEAR
        ),
        axis="items",
        sizes=SQUARES,
    )


def across() -> None:
    grow(
        "More items, to another thread",
        Curve("deque, 128 credits and a task", hop_by_credit),
        Curve("observe_on", hop_by_observe_on, LINEAR),
        Curve("observe_on, fused source", partial(hop_by_observe_on, hidden=False), LINEAR),
        axis="items",
        sizes=ACROSS,
        times=AGAIN,
        clock=time.perf_counter,
    )
    grow(
        "More items, from four threads",
        Curve("a lock for each item", four_by_lock),
        Curve("merge", partial(four_by_merge, prefetch=128), LINEAR),
        axis="items",
        sizes=ACROSS,
        times=AGAIN,
        clock=time.perf_counter,
    )


# -- stages


def maps(stages: int) -> Flow[int]:
    made = flow.range(THROUGH)
    for _ in range(stages):
        made = made.map(increment)
    return made


def nested_loops(stages: int) -> int:
    total = Summing()
    for n in range(THROUGH):
        item = n
        for _ in range(stages):
            item = increment(item)
        total(item)
    return total.total


def stages() -> None:
    grow(
        f"More stages, {THROUGH} items",
        Curve("nested loops", nested_loops),
        Curve("assembled, compiled and iterated", pulled(maps), LINEAR),
        Curve("assembled, compiled and subscribed", pushed(maps), LINEAR),
        axis="stages",
        sizes=MANY,
    )


def appended(stages: int) -> int:
    made: list[Callable[[int], int]] = []
    for _ in range(stages):
        made.append(increment)  # noqa: PERF401 - as many calls as there are stages
    return len(made)


def assembled(stages: int) -> int:
    return len(stages_of(maps(stages)))


def assembly() -> None:
    grow(
        "More stages, assembled only",
        Curve("a list of functions", appended),
        Curve("map", assembled, LINEAR),
        axis="stages",
        sizes=MANY,
        times=10,
    )


# -- sources


def parts(sources: int) -> list[Flow[int]]:
    return [flow.range(EACH).hide() for _ in range(sources)]


def loops_in_turn(sources: int) -> int:
    total = Summing()
    for _ in range(sources):
        for n in range(EACH):
            total(n)
    return total.total


@final
class InTurn:
    """A source that sends when the benchmark says so; its subscriber requests enough."""

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


def merged_in_turn(sources: int) -> int:
    """Let the sources send one item each, again and again."""
    total = Summing()
    links = [InTurn() for _ in range(sources)]
    merge(*links, concurrency=sources).subscribe(total)
    for n in range(EACH):
        for link in links:
            link.send(n)
    return total.total


def zipped(sources: int) -> int:
    total = Summing()

    def on_next(together: tuple[int, ...]) -> None:
        for n in together:
            total(n)

    zip(*parts(sources)).starmap(lambda *together: together).subscribe(on_next)
    return total.total


def sources() -> None:
    grow(
        f"More sources, {EACH} items of each",
        Curve("nested loops", loops_in_turn),
        Curve("concat", pushed(lambda sources: concat(*parts(sources))), LINEAR),
        Curve("merge, one after the other", pushed(lambda sources: merge(*parts(sources))), LINEAR),
        Curve("merge, in turn", merged_in_turn, LINEAR),
        Curve("zip", zipped, LINEAR),
        axis="sources",
        sizes=MANY,
    )


# -- keys


def grouped_by_dict(keys: int) -> int:
    consumers: dict[int, Summing] = {}
    for n in range(keys * EACH):
        consumers.setdefault(n % keys, Summing())(n)
    return builtins.sum(consumer.total for consumer in consumers.values())


def keys() -> None:
    grow(
        f"More keys, {EACH} items of each",
        Curve("a dict of callbacks", grouped_by_dict),
        Curve(
            "group_by",
            lambda keys: grouped(flow.range(keys * EACH), lambda n: n % keys, keys),
            LINEAR,
        ),
        axis="keys",
        sizes=MANY,
    )


# -- subscribers


def callbacks_by_loop(subscribers: int) -> int:
    totals = [Summing() for _ in range(subscribers)]
    for n in range(EACH):
        for total in totals:
            total(n)
    return sum(total.total for total in totals)


def through(
    make: Callable[[], DirectProcessor[int] | MulticastProcessor[int] | ReplayProcessor[int]],
    subscribers: int,
) -> int:
    processor = make()
    totals = [Summing() for _ in range(subscribers)]
    for total in totals:
        processor.flow.subscribe(total)
    flow.range(EACH).subscribe(processor)
    return sum(total.total for total in totals)


def published(subscribers: int) -> int:
    numbers = flow.range(EACH).pipe(publish())
    totals = [Summing() for _ in range(subscribers)]
    for total in totals:
        numbers.flow.subscribe(total)
    numbers.connect()
    return sum(total.total for total in totals)


def subscribers() -> None:
    grow(
        f"More subscribers, {EACH} items to each",
        Curve("a loop over callbacks", callbacks_by_loop),
        Curve("MulticastProcessor", partial(through, MulticastProcessor[int]), LINEAR),
        Curve("publish", published, LINEAR),
        Curve("DirectProcessor", partial(through, DirectProcessor[int]), LINEAR),
        Curve("ReplayProcessor", partial(through, ReplayProcessor[int]), LINEAR),
        axis="subscribers",
        sizes=MANY,
    )


def main() -> None:
    items()
    squares()
    across()
    stages()
    assembly()
    sources()
    keys()
    subscribers()


if __name__ == "__main__":
    main()
