"""Flows that items become: operators that map to flows beside loops and other libraries."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

import reactivex
from aiostream import pipe
from aiostream import stream as aio
from aiostream.core import Stream
from reactivex import operators as rx
from streamable import stream

import flow_core as flow
from flow_core import Flow
from flow_core.operator import Operator
from flow_core.protocols import CoreSubscriber, Subscription
from flow_ops import concat_map, concat_map_eager, flat_map, switch_map
from peers import consumed, loose
from rounds import Case, compare, peer, python

JUSTS = 50_000
PEER_JUSTS = 1_000
"""As many as the slowest of all can be asked for."""
HIDDEN = 5_000

Run = Callable[[Callable[[object], None]], object]


def counted(run: Run) -> Callable[[], int]:
    """`run` given a callback, as work whose result is how often that was called."""

    def work() -> int:
        count = 0

        def on_next(_: object) -> None:
            nonlocal count
            count += 1

        run(on_next)
        return count

    return work


def pulled(make: Callable[[], Iterable[object]]) -> Callable[[], int]:
    """What iterating gives, to the callback."""

    def run(on_next: Callable[[object], None]) -> None:
        for n in make():
            on_next(n)

    return counted(run)


def pushed(make: Callable[[], Flow[object]], prefetch: int | None = None) -> Callable[[], int]:
    """What a flow sends to the callback."""
    return counted(lambda on_next: make().subscribe(on_next, prefetch=prefetch))


def observed(make: Callable[[], reactivex.Observable[object]]) -> Callable[[], int]:
    """What an observable sends to the callback."""
    return counted(lambda on_next: make().subscribe(on_next))


# -- inner flows of one constant


def just_by_hand(items: int) -> Callable[[], int]:
    """A loop that makes the same inner flows, and takes their item out by `call`."""

    def run(on_next: Callable[[object], None]) -> None:
        for n in range(items):
            source = flow.just(n).source
            if isinstance(source, flow.CallableSource):
                on_next(source.call())

    return counted(run)


def justs(items: int = JUSTS) -> None:
    """Each item becomes a flow of one."""

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
        Case("concat_map, subscribed, prefetch 128", pushed(concatenated, prefetch=128)),
        Case(
            "concat_map behind a hidden source",
            pushed(lambda: flow.range(items).hide().pipe(concat_map(flow.just))),
        ),
        Case("flat_map, iterated", pulled(flat), mark_us=1.5),
        Case("flat_map, subscribed", pushed(flat), mark_us=1.5),
        Case("flat_map_iterable, iterated", pulled(flattened), mark_us=1.5),
        Case("flat_map_iterable, subscribed", pushed(flattened), mark_us=1.5),
        items=items,
        key="map-just",
    )


def aio_just(n: int) -> Stream[int]:
    """Without a name of its own, mypy takes it to be generic."""
    return aio.just(n)


def few_justs(items: int = PEER_JUSTS) -> None:
    """The same, few enough for all."""

    def by_aiostream(on_next: Callable[[object], None]) -> None:
        consumed(aio.range(items) | pipe.concatmap(loose(aio_just)), on_next)

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
        peer("aiostream, concatmap", counted(by_aiostream)),
        items=items,
        key="map-just-peers",
    )


# -- inner flows of many items


def cross(size: int, *, peers: bool = False) -> None:
    """Each of `size` items becomes as many."""

    def by_hand(on_next: Callable[[object], None]) -> None:
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

    def by_aiostream(on_next: Callable[[object], None]) -> None:
        def inner_stream(_: int) -> Stream[int]:
            return aio.range(size)

        consumed(aio.range(size) | pipe.concatmap(loose(inner_stream)), on_next)

    cases = [
        python("nested loops", counted(by_hand)),
        Case("concat_map, iterated", pulled(mapped(concat_map(inner)))),
        Case("concat_map, subscribed", pushed(mapped(concat_map(inner)))),
        Case("flat_map, subscribed", pushed(mapped(flat_map(inner)))),
        python(
            "itertools.chain.from_iterable",
            pulled(lambda: itertools.chain.from_iterable(range(size) for _ in range(size))),
        ),
    ]
    if peers:
        cases += [
            Case("concat_map of hidden flows, subscribed", pushed(mapped(concat_map(hidden)))),
            Case("flat_map of hidden flows, subscribed", pushed(mapped(flat_map(hidden)))),
            peer(
                "streamable, flatten",
                pulled(lambda: stream(range(size)).map(lambda _: range(size)).flatten()),
            ),
            peer("reactivex, concat_map", by_reactivex(rx.concat_map)),
            peer("reactivex, flat_map", by_reactivex(rx.flat_map)),
            peer("aiostream, concatmap", counted(by_aiostream)),
        ]
    compare(
        f"range({size:,}) | a range({size:,}) of each, to a callback",
        *cases,
        items=size * size,
        key=f"cross-{size}",
    )


# -- inner flows that have to be subscribed to


class Counting(CoreSubscriber[int]):
    """The least that can subscribe to an inner flow: it only passes items on."""

    __slots__ = ("on_item",)

    def __init__(self, on_item: Callable[[object], None]) -> None:
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
    """Inner flows of one item each."""

    def made(n: int) -> Flow[int]:
        return flow.just(n).hide()

    def by_hand(on_next: Callable[[object], None]) -> None:
        for n in range(items):
            made(n).subscribe(Counting(on_next))

    def run(operator: Operator[int, Flow[int]]) -> Callable[[], int]:
        return pushed(lambda: flow.range(items).pipe(operator))

    compare(
        "range | a hidden just of each, to a callback",
        python("a loop that makes and subscribes to each", counted(by_hand)),
        Case("flat_map", run(flat_map(made)), 2.0),
        Case("concat_map", run(concat_map(made)), 2.0),
        Case("switch_map", run(switch_map(made)), 2.5),
        Case("concat_map_eager", run(concat_map_eager(made))),
        items=items,
        unit="inner flow",
    )


def main() -> None:
    cross(1_000)
    cross(100, peers=True)
    justs()
    few_justs()
    hidden()


if __name__ == "__main__":
    main()
