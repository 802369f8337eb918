"""Many subscribers: the cost of each, of their coming and going, and the memory of a replay."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import reactivex
from reactivex.subject import ReplaySubject, Subject
from rich.console import Console
from rich.table import Table
from streamz import Stream

import flow_core as flow
from flow_multicast import (
    DirectProcessor,
    MulticastProcessor,
    ReplayProcessor,
    publish,
)
from flow_multicast.processors._hot import HotProcessor
from rounds import Case, Pair, compare, peer, python, versus

ITEMS = 20_000
ATTACHED = 100_000
REPLAYED = 20_000
FLAT = ("MulticastProcessor", "publish", "DirectProcessor")
"""Cases in which an item costs the same for each further subscriber; a replay also keeps items."""

AnyProcessor = HotProcessor[int] | MulticastProcessor[int]


def ignore(_: object) -> None:
    pass


def adding(subscribers: int) -> tuple[list[int], list[Callable[[int], None]]]:
    """Return the totals that the callbacks update, and the callbacks, which do a little work."""
    totals = [0] * subscribers

    def callback(index: int) -> Callable[[int], None]:
        def on_next(n: int) -> None:
            totals[index] += n

        return on_next

    return totals, [callback(index) for index in range(subscribers)]


def by_hand(subscribers: int, items: int) -> int:
    totals, callbacks = adding(subscribers)
    for item in range(items):
        for callback in callbacks:
            callback(item)
    return sum(totals)


def through(make: Callable[[], AnyProcessor], subscribers: int, items: int) -> int:
    totals, callbacks = adding(subscribers)
    processor = make()
    for callback in callbacks:
        processor.flow.subscribe(callback)
    flow.range(items).subscribe(processor)
    return sum(totals)


def published(subscribers: int, items: int) -> int:
    totals, callbacks = adding(subscribers)
    numbers = flow.range(items).pipe(publish())
    for callback in callbacks:
        numbers.flow.subscribe(callback)
    numbers.connect()
    return sum(totals)


def by_reactivex(subscribers: int, items: int) -> int:
    totals, callbacks = adding(subscribers)
    subject = Subject[int]()
    for callback in callbacks:
        subject.subscribe(callback)
    reactivex.from_iterable(range(items)).subscribe(subject)
    return sum(totals)


def by_streamz(subscribers: int, items: int) -> int:
    totals, callbacks = adding(subscribers)
    source = Stream()
    for callback in callbacks:
        source.sink(callback)
    for item in range(items):
        source.emit(item)
    return sum(totals)


def many(subscribers: int, work: int = ITEMS) -> dict[str, float]:
    """Time one item for one subscriber, in units of the loop's cost; the mark for 16 is 1.5."""
    items = max(1_000, work * 4 // (subscribers + 3))
    return compare(
        f"Every item to {subscribers} subscribers",
        python("a loop over callbacks", lambda: by_hand(subscribers, items)),
        Case(
            "MulticastProcessor",
            lambda: through(MulticastProcessor[int], subscribers, items),
            1.5 if subscribers >= 16 else None,
        ),
        Case("publish", lambda: published(subscribers, items)),
        Case("DirectProcessor", lambda: through(DirectProcessor[int], subscribers, items)),
        Case(
            "ReplayProcessor(16)",
            lambda: through(partial(ReplayProcessor[int], 16), subscribers, items),
        ),
        peer("reactivex, Subject", lambda: by_reactivex(subscribers, items)),
        peer("streamz", lambda: by_streamz(subscribers, items)),
        items=items * subscribers,
        key=f"multicast-{subscribers}",
    )


def further(sizes: tuple[int, ...]) -> None:
    """Time an item for each subscriber after the first: flat, within 20 % of the mean.

    The first one pays for the item's way from the source, which all of them share. The unit is the
    loop's cost at the same size, because the loop's cost per callback also falls with their number.
    """
    costs = {size: many(size) for size in sizes}
    first, *larger = sizes
    table = Table(title="Each subscriber after the first, a loop = 1", title_justify="left")
    for heading in ("case", *(f"of {size:,}" for size in larger), "from the mean", "mark"):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    for name in costs[first]:
        each = [
            (costs[size][name] * size - costs[first][name] * first) / (size - first)
            for size in larger
        ]
        mean = sum(each) / len(each)
        apart = max(abs(cost / mean - 1) for cost in each)
        marked = f"{'≤' if apart <= 0.2 else '>'} 20 %" if name in FLAT else ""
        table.add_row(name, *(f"{cost:.2f}" for cost in each), f"{apart:.0%}", marked)
    Console(width=100).print(table)


def attached(make: Callable[[], AnyProcessor], subscribers: int, times: int = 1) -> tuple[int, int]:
    """Return the number of subscribers, and the number that remain after all are disposed."""
    came = stayed = 0
    for _ in range(times):
        processor = make()
        handles = [processor.flow.subscribe(ignore) for _ in range(subscribers)]
        came += processor.statistics().subscribers
        for handle in handles:
            handle.dispose()
        stayed += processor.statistics().subscribers
    return came, stayed


class Bare:
    """Objects that do nothing, as many as a subscriber and its subscription consist of."""

    __slots__ = ("callback", "permit", "place", "roster", "subscription")

    def __init__(self, roster: dict[Bare, None] | None, subscription: Bare | None) -> None:
        self.callback = ignore
        self.permit = {0: True}
        self.place = (self.permit, 1)
        self.roster = roster
        self.subscription = subscription


def remembered(objects: int, times: int = 1) -> tuple[int, int]:
    """Put objects on a roster and remove each again, to measure what Python itself takes."""
    came = stayed = 0
    for _ in range(times):
        roster: dict[Bare, None] = {}

        def join(roster: dict[Bare, None] = roster) -> Bare:
            subscription = Bare(roster, None)
            roster[subscription] = None
            return Bare(None, subscription)

        handles = [join() for _ in range(objects)]
        came += len(roster)
        for handle in handles:
            subscription = handle.subscription
            if subscription is not None:
                del roster[subscription]
                handle.subscription = subscription.roster = None
        stayed += len(roster)
    return came, stayed


def attaching() -> None:
    """Check that a tenth of the subscribers cost a tenth, apart from the interpreter's share.

    Its collector and memory make many objects dearer per object: the first pair is that floor.
    """
    ways: dict[str, Callable[..., object]] = {
        "bare objects": remembered,
        "MulticastProcessor": partial(attached, MulticastProcessor[int]),
        "DirectProcessor": partial(attached, DirectProcessor[int]),
        "ReplayProcessor": partial(attached, ReplayProcessor[int]),
    }
    few = ATTACHED // 10
    ratios = versus(
        "Subscribe, all of them, and leave again, each on its own",
        *(Pair(name, partial(way, ATTACHED), partial(way, few, 10)) for name, way in ways.items()),
        items=ATTACHED,
        ways=(f"{ATTACHED:,} at once", f"{few:,}, ten times"),
    )
    floor = ratios.pop("bare objects")
    against = ", ".join(
        f"{name} {ratio / floor:.2f} {'≤' if ratio <= 1.2 * floor else '>'} 1.2"
        for name, ratio in ratios.items()
    )
    Console(width=100).print(f"[dim]Against the bare objects: {against}[/dim]\n")


def replay_of_16() -> ReplayProcessor[int]:
    return ReplayProcessor[int](16)


def churn() -> None:
    """Time subscribers that come and go while items flow."""
    rounds = 20_000

    def by_list() -> list[int]:
        stable: list[int] = []
        callbacks: list[Callable[[int], None]] = [stable.append]
        for item in range(rounds):
            callbacks.append(ignore)
            for callback in callbacks:
                callback(item)
            callbacks.remove(ignore)
        return stable

    def coming_and_going(make: Callable[[], AnyProcessor]) -> list[int]:
        processor = make()
        stable: list[int] = []
        processor.flow.subscribe(stable.append)
        for item in range(rounds):
            handle = processor.flow.subscribe(ignore)
            processor.on_next(item)
            handle.dispose()
        return stable

    compare(
        "One comes, an item comes, it goes",
        python("a list of callbacks", by_list),
        *(
            Case(getattr(make, "__name__", ""), partial(coming_and_going, make))
            for make in (MulticastProcessor[int], DirectProcessor[int], replay_of_16)
        ),
        items=rounds,
        unit="round",
    )


def replaying(items: int = REPLAYED) -> None:
    kept, kept_by_reactivex = ReplayProcessor[int](), ReplaySubject[int]()
    listed = list(range(items))
    for item in listed:
        kept.on_next(item)
        kept_by_reactivex.on_next(item)
    kept.on_complete()
    kept_by_reactivex.on_completed()
    total = 0

    def on_next(n: int) -> None:
        nonlocal total
        total += n

    def summed(work: Callable[[], object]) -> Callable[[], int]:
        def run() -> int:
            nonlocal total
            total = 0
            work()
            return total

        return run

    def looped() -> None:
        for item in listed:
            on_next(item)

    compare(
        "A late subscriber to all that was",
        python("a loop over a list", summed(looped)),
        Case("ReplayProcessor", summed(lambda: kept.flow.subscribe(on_next)), 3.0),
        peer("reactivex, ReplaySubject", summed(lambda: kept_by_reactivex.subscribe(on_next))),
        items=items,
        key="replay",
    )


def main() -> None:
    many(4)
    further((1, 16, 1_000))
    attaching()
    churn()
    replaying()


if __name__ == "__main__":
    main()
