"""Inner flows: operators that map items to flows, beside loops and other libraries."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable
from typing import Any

import reactivex
from aiostream import pipe
from aiostream import stream as aio
from aiostream.core import Stream as BaseStream
from reactivex import operators as rx
from streamable import stream
from streamz import Stream

import flow_core as flow
from flow_core import Flow
from flow_core.operator import Operator
from flow_core.protocols import CoreSubscriber, Subscription
from flow_core.structure import source_of
from flow_ops import concat_map, concat_map_eager, flat_map, switch_map
from peers import consumed, loose
from rounds import Case, compare, peer, python

JUSTS = 50_000
PEER_JUSTS = 1_000
"""The most items that the slowest library can process."""
HIDDEN = 5_000
WORDS = 2_000


def code(letter: str) -> int:
    return ord(letter)


def is_odd(n: int) -> bool:
    return n % 2 == 1


Run = Callable[[Callable[[int], None]], object]


def summed(run: Run) -> Callable[[], int]:
    """Return work that gives `run` a callback, and returns the sum of what it receives."""

    def work() -> int:
        total = 0

        def on_next(n: int) -> None:
            nonlocal total
            total += n

        run(on_next)
        return total

    return work


def pulled(make: Callable[[], Iterable[int]]) -> Callable[[], int]:
    """Return work that iterates and passes each item to the callback."""

    def run(on_next: Callable[[int], None]) -> None:
        for n in make():
            on_next(n)

    return summed(run)


def pushed(make: Callable[[], Flow[int]], prefetch: int | None = None) -> Callable[[], int]:
    """Return work in which a flow sends its items to the callback."""
    return summed(lambda on_next: make().subscribe(on_next, prefetch=prefetch))


def observed(make: Callable[[], reactivex.Observable[int]]) -> Callable[[], int]:
    """Return work in which an observable sends its items to the callback."""
    return summed(lambda on_next: make().subscribe(on_next))


def by_streamz(items: int, inner: Callable[[int], Iterable[int]]) -> Callable[[], int]:
    """Return work in which streamz sends the callback the items that each item becomes."""

    def run(on_next: Callable[[int], None]) -> None:
        source = Stream()
        source.map(inner).flatten().sink(on_next)
        for n in range(items):
            source.emit(n)

    return summed(run)


# -- inner flows of one constant


def just_by_hand(items: int) -> Callable[[], int]:
    """Return a loop that makes the same inner flows, and gets their item by `call`."""

    def run(on_next: Callable[[Any], None]) -> None:  # Any: what `call` returns
        for n in range(items):
            source = source_of(flow.just(n))
            if isinstance(source, flow.CallableSource):
                on_next(source.call())

    return summed(run)


def justs(items: int = JUSTS) -> None:
    """Time flows in which each item becomes a flow of one item."""

    def mapped(operator: Operator[int, Flow[int]]) -> Callable[[], Flow[int]]:
        return lambda: flow.range(items).pipe(operator)

    flat, concatenated = mapped(flat_map(flow.just)), mapped(concat_map(flow.just))

    def flattened() -> Flow[int]:
        return flow.range(items).flat_map_iterable(flow.just)

    compare(
        "range | just of each, to a callback",
        python("a loop that calls just", just_by_hand(items)),
        Case("concat_map, iterated", pulled(concatenated), mark_us=1.5),
        Case("concat_map, subscribed", pushed(concatenated), mark_us=1.5),
        Case(
            "concat_map, subscribed, prefetch 128",
            pushed(concatenated, prefetch=128),
            mark_us=1.5,
        ),
        Case(
            "concat_map behind a hidden source",
            pushed(lambda: flow.range(items).hide().pipe(concat_map(flow.just))),
            mark_us=1.5,
        ),
        Case("flat_map, iterated", pulled(flat), mark_us=1.5),
        Case("flat_map, subscribed", pushed(flat), mark_us=1.5),
        Case("flat_map_iterable, iterated", pulled(flattened), mark_us=1.5),
        Case("flat_map_iterable, subscribed", pushed(flattened), mark_us=1.5),
        items=items,
        key="map-just",
    )


def aio_just(n: int) -> BaseStream[int]:
    """Give `aio.just` a type: without a separate function, mypy considers it generic."""
    return aio.just(n)


def few_justs(items: int = PEER_JUSTS) -> None:
    """Time the same work with a number of items that all libraries can process."""

    def by_concatmap(on_next: Callable[[int], None]) -> None:
        consumed(aio.range(items) | pipe.concatmap(loose(aio_just)), on_next)

    def by_flatmap(on_next: Callable[[int], None]) -> None:
        consumed(aio.range(items) | pipe.flatmap(loose(aio_just)), on_next)

    def source() -> reactivex.Observable[int]:
        return reactivex.from_iterable(range(items))

    compare(
        "range | just of each, to a callback: few, beside other libraries",
        python("a loop that calls just", just_by_hand(items)),
        Case("concat_map", pushed(lambda: flow.range(items).pipe(concat_map(flow.just)))),
        Case("flat_map", pushed(lambda: flow.range(items).pipe(flat_map(flow.just)))),
        python(
            "itertools.chain.from_iterable",
            pulled(lambda: itertools.chain.from_iterable((n,) for n in range(items))),
        ),
        peer(
            "streamable, flatten",
            pulled(lambda: stream(range(items)).map(lambda n: (n,)).flatten()),
        ),
        peer(
            "reactivex, concat_map", observed(lambda: source().pipe(rx.concat_map(reactivex.just)))
        ),
        peer("reactivex, flat_map", observed(lambda: source().pipe(rx.flat_map(reactivex.just)))),
        peer("streamz, flatten", by_streamz(items, lambda n: (n,))),
        peer("aiostream, concatmap", summed(by_concatmap)),
        peer("aiostream, flatmap", summed(by_flatmap)),
        items=items,
        key="map-just-peers",
    )


# -- inner flows of many items


def cross(size: int, *, every: bool = False) -> None:
    """Time flows in which each of `size` items becomes `size` items.

    Args:
        size: the number of items, and the number that each of them becomes.
        every: whether to include hidden flows, and libraries that need microseconds per item.
    """

    def by_hand(on_next: Callable[[int], None]) -> None:
        for _ in range(size):
            for n in range(size):
                on_next(n)

    def inner(_: int) -> Flow[int]:
        return flow.range(size)

    def hidden(_: int) -> Flow[int]:
        return flow.range(size).hide()

    def mapped(operator: Operator[int, Flow[int]]) -> Callable[[], Flow[int]]:
        return lambda: flow.range(size).pipe(operator)

    def by_reactivex(
        operator: Callable[
            [Callable[[int], reactivex.Observable[int]]],
            Callable[[reactivex.Observable[int]], reactivex.Observable[int]],
        ],
    ) -> Callable[[], int]:
        return observed(
            lambda: reactivex.from_iterable(range(size)).pipe(
                operator(lambda _: reactivex.from_iterable(range(size)))
            )
        )

    def inner_stream(_: int) -> BaseStream[int]:
        return aio.range(size)

    def by_concatmap(on_next: Callable[[int], None]) -> None:
        consumed(aio.range(size) | pipe.concatmap(loose(inner_stream)), on_next)

    def by_flatmap(on_next: Callable[[int], None]) -> None:
        consumed(aio.range(size) | pipe.flatmap(loose(inner_stream)), on_next)

    cases = [
        python("nested loops", summed(by_hand)),
        Case("concat_map, iterated", pulled(mapped(concat_map(inner)))),
        Case("concat_map, subscribed", pushed(mapped(concat_map(inner)))),
        Case("flat_map, subscribed", pushed(mapped(flat_map(inner)))),
        python(
            "itertools.chain.from_iterable",
            pulled(lambda: itertools.chain.from_iterable(range(size) for _ in range(size))),
        ),
        peer(
            "streamable, flatten",
            pulled(lambda: stream(range(size)).map(lambda _: range(size)).flatten()),
        ),
        peer("reactivex, concat_map", by_reactivex(rx.concat_map)),
        peer("reactivex, flat_map", by_reactivex(rx.flat_map)),
    ]
    if every:
        cases += [
            Case("concat_map of hidden flows, subscribed", pushed(mapped(concat_map(hidden)))),
            Case("flat_map of hidden flows, subscribed", pushed(mapped(flat_map(hidden)))),
            peer("streamz, flatten", by_streamz(size, lambda _: range(size))),
            peer("aiostream, concatmap", summed(by_concatmap)),
            peer("aiostream, flatmap", summed(by_flatmap)),
        ]
    compare(
        f"range({size:,}) | a range({size:,}) of each, to a callback",
        *cases,
        items=size * size,
        key=f"cross-{size}",
    )


def letters(words: int = WORDS) -> None:
    """Time flows in which each word becomes a flow of its letters, mapped and filtered."""
    chance = random.Random(1)
    given = ["".join(chance.choices("abcdefghijklm", k=7)) for _ in range(words)]

    def by_hand(on_next: Callable[[int], None]) -> None:
        for word in given:
            for letter in word:
                n = code(letter)
                if is_odd(n):
                    on_next(n)

    def chained() -> Iterable[int]:
        return itertools.chain.from_iterable(filter(is_odd, map(code, word)) for word in given)

    def inner(word: str) -> Flow[int]:
        return flow.from_iterable(word).map(code).filter(is_odd)

    @flow.prepare
    def prepared(of: Flow[str]) -> Flow[int]:
        return of.map(code).filter(is_odd)

    def mapped(operator: Operator[str, Flow[int]]) -> Callable[[], Flow[int]]:
        return lambda: flow.from_iterable(given).pipe(operator)

    def by_reactivex() -> reactivex.Observable[int]:
        def each(word: str) -> reactivex.Observable[int]:
            return reactivex.from_iterable(word).pipe(rx.map(code), rx.filter(is_odd))

        return reactivex.from_iterable(given).pipe(rx.concat_map(each))

    compare(
        "words | the letters of each, mapped and filtered, to a callback",
        python("nested loops", summed(by_hand)),
        Case("concat_map, iterated", pulled(mapped(concat_map(inner))), 5.0),
        Case("concat_map, subscribed", pushed(mapped(concat_map(inner))), 5.0),
        Case("flat_map, iterated", pulled(mapped(flat_map(inner))), 5.0),
        Case("flat_map, subscribed", pushed(mapped(flat_map(inner))), 5.0),
        Case("flat_map of what is prepared, iterated", pulled(mapped(flat_map(prepared)))),
        Case("flat_map of what is prepared, subscribed", pushed(mapped(flat_map(prepared)))),
        python("chain, map and filter", pulled(chained)),
        peer(
            "streamable, flatten",
            pulled(
                lambda: (
                    stream(given).map(lambda word: stream(word).map(code).filter(is_odd)).flatten()
                )
            ),
        ),
        peer("reactivex, concat_map", observed(by_reactivex)),
        items=words,
        unit="word",
        key="inner-words",
    )


# -- inner flows that have to be subscribed to


class Counting(CoreSubscriber[int]):
    """The smallest subscriber to an inner flow: it only passes items on."""

    __slots__ = ("on_item",)

    def __init__(self, on_item: Callable[[int], None]) -> None:
        self.on_item = on_item

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """See `Subscriber.on_subscribe`."""
        subscription.request(flow.UNBOUNDED)

    def on_next(self, item: int, /) -> None:
        """See `Subscriber.on_next`."""
        self.on_item(item)

    def on_error(self, error: BaseException, /) -> None:
        """See `Subscriber.on_error`."""
        raise error

    def on_complete(self) -> None:
        """See `Subscriber.on_complete`."""


def hidden(items: int = HIDDEN) -> None:
    """Time hidden inner flows of one item each."""

    def made(n: int) -> Flow[int]:
        return flow.just(n).hide()

    def by_hand(on_next: Callable[[int], None]) -> None:
        for n in range(items):
            made(n).subscribe(Counting(on_next))

    def run(operator: Operator[int, Flow[int]]) -> Callable[[], int]:
        return pushed(lambda: flow.range(items).pipe(operator))

    compare(
        "range | a hidden just of each, to a callback",
        python("a loop that makes and subscribes to each", summed(by_hand)),
        Case("flat_map", run(flat_map(made)), 2.0),
        Case("concat_map", run(concat_map(made)), 2.0),
        Case("switch_map", run(switch_map(made)), 2.5),
        Case("concat_map_eager", run(concat_map_eager(made))),
        items=items,
        unit="inner flow",
    )


def main() -> None:
    cross(1_000)
    cross(100, every=True)
    justs()
    few_justs()
    letters()
    hidden()


if __name__ == "__main__":
    main()
