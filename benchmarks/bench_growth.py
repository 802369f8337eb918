"""How time grows with items, stages, sources, keys and subscribers: it has to be in proportion.

Each work gives the number of items that its callbacks got, which is the same in all cases.
"""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import final

import flow_core as flow
from flow_core import Flow, Subscriber, Subscription
from flow_multicast import DirectProcessor, MulticastProcessor, ReplayProcessor, publish
from flow_ops import GroupedFlow, concat, concat_map, flat_map, group_by, merge, observe_on, zip
from rounds import Curve, grow

LINEAR = 1.05
ITEMS = (300, 1_000, 3_000, 10_000, 30_000)
MANY = (10, 30, 100, 300, 1_000)
"""How many stages, sources, keys and subscribers."""
EACH = 30
"""The items of each of them."""
THROUGH = 100
"""The items that go through many stages."""


def increment(n: int) -> int:
    return n + 1


def is_positive(n: int) -> bool:
    return n > 0


@final
class Counting:
    """A callback that counts."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, _: object) -> None:
        self.count += 1


def pushed(make: Callable[[int], Flow[object]]) -> Callable[[int], int]:
    """How many items a subscriber gets."""

    def work(size: int) -> int:
        counting = Counting()
        make(size).subscribe(counting).wait()
        return counting.count

    return work


def pulled(make: Callable[[int], Flow[object]]) -> Callable[[int], int]:
    """How many items iterating gives."""

    def work(size: int) -> int:
        counting = Counting()
        for item in make(size):
            counting(item)
        return counting.count

    return work


# -- items


def by_loop(size: int) -> int:
    counting = Counting()
    for n in range(size):
        if is_positive(increment(n)):
            counting(n)
    return counting.count


def chain(size: int) -> Flow[int]:
    return flow.range(size).map(increment).filter(is_positive)


def hidden_chain(size: int) -> Flow[int]:
    return flow.range(size).hide().map(increment).filter(is_positive)


def hidden_just(n: int) -> Flow[int]:
    return flow.just(n).hide()


def awaited(size: int) -> int:
    counting = Counting()

    async def consume() -> None:
        async for n in chain(size):
            counting(n)

    asyncio.run(consume())
    return counting.count


def hopped(size: int) -> int:
    with ThreadPoolExecutor(1) as pool:
        return pushed(lambda size: flow.range(size).hide().pipe(observe_on(pool)))(size)


def ten_keys(n: int) -> int:
    return n % 10


def ten_groups(size: int) -> int:
    return grouped(size, ten_keys, 10)


def grouped(size: int, key: Callable[[int], int], keys: int) -> int:
    counting = Counting()

    def on_group(group: GroupedFlow[int, int]) -> None:
        group.flow.subscribe(counting)

    flow.range(size).pipe(group_by(key, max_groups=keys)).subscribe(on_group)
    return counting.count


def replayed(size: int) -> int:
    processor: ReplayProcessor[int] = ReplayProcessor()
    for n in range(size):
        processor.on_next(n)
    processor.on_complete()
    counting = Counting()
    processor.flow.subscribe(counting)
    return counting.count


def items() -> None:
    grow(
        "More items",
        Curve("a loop", by_loop),
        Curve("map and filter, iterated", pulled(chain), LINEAR),
        Curve("map and filter, subscribed", pushed(chain), LINEAR),
        Curve("map and filter, source hidden", pushed(hidden_chain), LINEAR),
        Curve("async for", awaited, LINEAR),
        Curve(
            "concat_map to just",
            pushed(lambda size: flow.range(size).pipe(concat_map(flow.just))),
            LINEAR,
        ),
        Curve(
            "flat_map to just",
            pushed(lambda size: flow.range(size).pipe(flat_map(flow.just))),
            LINEAR,
        ),
        Curve(
            "flat_map to hidden just",
            pushed(lambda size: flow.range(size).pipe(flat_map(hidden_just))),
            LINEAR,
        ),
        Curve(
            "zip of hidden flows",
            pushed(lambda size: zip(flow.range(size).hide(), flow.range(size).hide())),
            LINEAR,
        ),
        Curve(
            "merge of hidden flows",
            pushed(lambda size: merge(flow.range(size // 2).hide(), flow.range(size // 2).hide())),
            LINEAR,
        ),
        Curve("group_by, 10 keys", ten_groups, LINEAR),
        Curve("observe_on", hopped, LINEAR),
        Curve("ReplayProcessor, a late subscriber", replayed, LINEAR),
        axis="items",
        sizes=ITEMS,
        rounds=5,
    )


# -- stages


def maps(stages: int) -> Flow[int]:
    made = flow.range(THROUGH)
    for _ in range(stages):
        made = made.map(increment)
    return made


def nested_loops(stages: int) -> int:
    counting = Counting()
    for n in range(THROUGH):
        item = n
        for _ in range(stages):
            item = increment(item)
        counting(item)
    return counting.count


def assembled(stages: int) -> int:
    maps(stages)
    return THROUGH


def stages() -> None:
    grow(
        f"More stages, {THROUGH} items",
        Curve("nested loops", nested_loops),
        Curve("assembled only", assembled, LINEAR),
        Curve("assembled, compiled and iterated", pulled(maps), LINEAR),
        Curve("assembled, compiled and subscribed", pushed(maps), LINEAR),
        axis="stages",
        sizes=MANY,
        rounds=5,
    )


# -- sources


def parts(sources: int) -> list[Flow[int]]:
    return [flow.range(EACH).hide() for _ in range(sources)]


def loops_in_turn(sources: int) -> int:
    counting = Counting()
    for _ in range(sources):
        for n in range(EACH):
            counting(n)
    return counting.count


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


def merged_in_turn(sources: int) -> int:
    """The sources send one item each, again and again."""
    counting = Counting()
    links = [InTurn() for _ in range(sources)]
    merge(*links, max_concurrency=sources).subscribe(counting)
    for n in range(EACH):
        for link in links:
            link.send(n)
    return counting.count


def zipped(sources: int) -> int:
    counting = Counting()

    def on_next(together: tuple[int, ...]) -> None:
        for n in together:
            counting(n)

    zip(*parts(sources), combiner=lambda *together: together).subscribe(on_next)
    return counting.count


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
        rounds=5,
    )


# -- keys


def grouped_by_dict(keys: int) -> int:
    consumers: dict[int, Counting] = {}
    for n in range(keys * EACH):
        consumers.setdefault(n % keys, Counting())(n)
    return builtins.sum(consumer.count for consumer in consumers.values())


def keys() -> None:
    grow(
        f"More keys, {EACH} items of each",
        Curve("a dict of callbacks", grouped_by_dict),
        Curve(
            "group_by",
            lambda keys: grouped(keys * EACH, lambda n: n % keys, keys),
            LINEAR,
        ),
        axis="keys",
        sizes=MANY,
        rounds=5,
    )


# -- subscribers


def callbacks_by_loop(subscribers: int) -> int:
    counters = [Counting() for _ in range(subscribers)]
    for n in range(EACH):
        for counter in counters:
            counter(n)
    return sum(counter.count for counter in counters)


def through(
    make: Callable[[], DirectProcessor[int] | MulticastProcessor[int] | ReplayProcessor[int]],
    subscribers: int,
) -> int:
    processor = make()
    counters = [Counting() for _ in range(subscribers)]
    for counter in counters:
        processor.flow.subscribe(counter)
    flow.range(EACH).subscribe(processor)
    return sum(counter.count for counter in counters)


def published(subscribers: int) -> int:
    numbers = flow.range(EACH).pipe(publish())
    counters = [Counting() for _ in range(subscribers)]
    for counter in counters:
        numbers.flow.subscribe(counter)
    numbers.connect()
    return sum(counter.count for counter in counters)


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
        rounds=5,
    )


def main() -> None:
    items()
    stages()
    sources()
    keys()
    subscribers()


if __name__ == "__main__":
    main()
