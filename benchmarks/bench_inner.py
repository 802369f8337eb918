"""Flows that items become: operators that map to flows beside loops and ReactiveX."""

from __future__ import annotations

from collections.abc import Callable

import reactivex
from reactivex import operators as rx

import flow_core as flow
from flow_core.operator import Operator
from flow_core.protocols import CoreSubscriber, Subscription
from flow_ops import concat_map, concat_map_eager, flat_map, switch_map
from rounds import Case, compare

ITEMS = 100_000
PEER_ITEMS = 2_000
"""As many as the slowest of all can be asked for."""


def counted(run: Callable[[Callable[[object], None]], object]) -> Callable[[], int]:
    """`run` given a callback, as work whose result is how often that was called."""

    def work() -> int:
        count = 0

        def on_next(_: object) -> None:
            nonlocal count
            count += 1

        run(on_next)
        return count

    return work


def just_by_hand(items: int) -> Callable[[Callable[[object], None]], object]:
    """A loop that makes the same inner flows, and takes their item out by `call`."""

    def run(on_next: Callable[[object], None]) -> None:
        for n in range(items):
            source = flow.just(n).source
            if isinstance(source, flow.CallableSource):
                on_next(source.call())

    return run


def concatenated(source: flow.Flow[int]) -> flow.Flow[int]:
    return source.pipe(concat_map(flow.just))


def scalars() -> None:
    """Inner flows of one constant."""

    def pulled(on_next: Callable[[object], None]) -> None:
        for n in concatenated(flow.range(ITEMS)):
            on_next(n)

    def pulled_stage(on_next: Callable[[object], None]) -> None:
        for n in flow.range(ITEMS).flat_map_iterable(flow.just):
            on_next(n)

    compare(
        "range | just of each, to a callback",
        Case("a loop that calls just", counted(just_by_hand(ITEMS))),
        Case("concat_map, iterated", counted(pulled), 1.6),
        Case(
            "concat_map, subscribed",
            counted(lambda on_next: concatenated(flow.range(ITEMS)).subscribe(on_next)),
            1.6,
        ),
        Case(
            "concat_map, subscribed, prefetch 128",
            counted(
                lambda on_next: concatenated(flow.range(ITEMS)).subscribe(on_next, prefetch=128)
            ),
        ),
        Case(
            "concat_map behind a hidden source",
            counted(lambda on_next: concatenated(flow.range(ITEMS).hide()).subscribe(on_next)),
        ),
        Case(
            "flat_map, subscribed",
            counted(lambda on_next: flow.range(ITEMS).pipe(flat_map(flow.just)).subscribe(on_next)),
            mark_us=1.5,
        ),
        Case("flat_map_iterable, iterated", counted(pulled_stage)),
        Case(
            "flat_map_iterable, subscribed",
            counted(
                lambda on_next: flow.range(ITEMS).flat_map_iterable(flow.just).subscribe(on_next)
            ),
        ),
        items=ITEMS,
    )


def peers() -> None:
    """The same, few enough for ReactiveX."""
    compare(
        "range | just of each, beside ReactiveX",
        Case("a loop that calls just", counted(just_by_hand(PEER_ITEMS))),
        Case(
            "concat_map, subscribed",
            counted(lambda on_next: concatenated(flow.range(PEER_ITEMS)).subscribe(on_next)),
        ),
        Case(
            "concat_map of hidden flows, subscribed",
            counted(
                lambda on_next: (
                    flow.range(PEER_ITEMS)
                    .pipe(concat_map(lambda n: flow.just(n).hide()))
                    .subscribe(on_next)
                )
            ),
        ),
        Case(
            "reactivex 6.1, concat_map",
            counted(
                lambda on_next: (
                    reactivex.range(PEER_ITEMS)
                    .pipe(rx.concat_map(reactivex.just))
                    .subscribe(on_next)
                )
            ),
        ),
        items=PEER_ITEMS,
    )


def ranges(size: int) -> None:
    """Inner flows of many items."""
    count = ITEMS // size

    def by_hand(on_next: Callable[[object], None]) -> None:
        for _ in range(count):
            for n in range(size):
                on_next(n)

    def inner(_: int) -> flow.Flow[int]:
        return flow.range(size)

    def hidden(_: int) -> flow.Flow[int]:
        return flow.range(size).hide()

    def run(
        mapper: Callable[[int], flow.Flow[int]],
    ) -> Callable[[Callable[[object], None]], object]:
        return lambda on_next: flow.range(count).pipe(concat_map(mapper)).subscribe(on_next)

    compare(
        f"range | a range of {size} of each, to a callback",
        Case("nested loops", counted(by_hand)),
        Case("concat_map, subscribed", counted(run(inner))),
        Case("concat_map of hidden flows", counted(run(hidden))),
        items=ITEMS,
    )


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


def hidden() -> None:
    """Inner flows that have to be subscribed to, of one item each."""
    count = ITEMS // 10

    def made(n: int) -> flow.Flow[int]:
        return flow.just(n).hide()

    def by_hand(on_next: Callable[[object], None]) -> None:
        for n in range(count):
            made(n).subscribe(Counting(on_next))

    def run(
        operator: Operator[int, flow.Flow[int]],
    ) -> Callable[[Callable[[object], None]], object]:
        return lambda on_next: flow.range(count).pipe(operator).subscribe(on_next)

    compare(
        "range | a hidden just of each, to a callback",
        Case("a loop that makes and subscribes to each", counted(by_hand)),
        Case("flat_map", counted(run(flat_map(made))), 2.0),
        Case("concat_map", counted(run(concat_map(made))), 2.0),
        Case("switch_map", counted(run(switch_map(made))), 2.5),
        Case("concat_map_eager", counted(run(concat_map_eager(made)))),
        items=count,
        unit="inner flow",
    )


def main() -> None:
    scalars()
    hidden()
    peers()
    ranges(100)


if __name__ == "__main__":
    main()
