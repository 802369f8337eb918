"""Synchronous chains: this library beside hand-written loops, builtins and other libraries."""

from __future__ import annotations

import asyncio
import functools
import itertools
from collections.abc import AsyncIterator, Callable, Iterable

import reactivex
from aiostream import pipe
from aiostream import stream as aio
from aiostream.core import Stream as BaseStream
from reactivex import operators as rx
from streamable import stream
from streamz import Stream

import flow_core as flow
from by_hand import Gate, Just, push, receiver
from flow_core import Flow
from peers import consumed, loose
from rounds import MANY, Case, compare, peer, python

CHAIN_WORK = 60_000
"""Items times function calls of a chain in one round."""
REDUCED = 30_000
CUT = 30_000
AWAITED = 10_000
RUNS = 2_000


def increment(n: int) -> int:
    return n + 1


def is_even(n: int) -> bool:
    return n % 2 == 0


def is_positive(n: int) -> bool:
    return n > 0


def add(total: int, n: int) -> int:
    return total + n


# -- an item through many stages, to a callback


class Sum:
    """A callback that adds up, made again for each run."""

    def __init__(self) -> None:
        self.total = 0

    def callback(self) -> Callable[[int], None]:
        def on_next(n: int) -> None:
            self.total += n

        return on_next


def summed(run: Callable[[Callable[[int], None]], object]) -> Callable[[], int]:
    """Return work that adds up what `run` passes to a callback."""

    def work() -> int:
        total = Sum()
        run(total.callback())
        return total.total

    return work


def hand_written(stages: int) -> Callable[[int, Callable[[int], None]], None]:
    """Return the loop that a person would write to call that many functions.

    def loop(items, on_next):
        for n in range(items):
            n = increment(n)
            if not is_positive(n):
                continue
            ...
            on_next(n)
    """
    lines = ["def loop(items, on_next):", "    for n in range(items):"]
    for index in range(stages):
        if index % 2:
            lines += ["        if not is_positive(n):", "            continue"]
        else:
            lines += ["        n = increment(n)"]
    lines += ["        on_next(n)"]
    names = dict(globals())
    exec("\n".join(lines), names)
    loop: Callable[[int, Callable[[int], None]], None] = names["loop"]
    return loop


def pushed_by_hand(items: int, stages: int, on_next: Callable[[int], None]) -> None:
    """Do the same work by one call for each item."""
    turns = [
        "if not is_positive(x): return" if n % 2 else "x = increment(x)" for n in range(stages)
    ]
    names = {**globals(), "on_next": on_next}
    push(range(items), receiver([*turns, "on_next(x)"], names), Gate())


def chain(stages: int, work: int = CHAIN_WORK) -> None:
    """Time a chain of `stages` alternating maps and filters, and a callback for each item."""
    items = work // (stages + 1)
    loop = hand_written(stages)
    turns = [index % 2 == 0 for index in range(stages)]

    def made(source: Flow[int]) -> Flow[int]:
        for maps in turns:
            source = source.map(increment) if maps else source.filter(is_positive)
        return source

    def iterated(on_next: Callable[[int], None]) -> None:
        for n in made(flow.range(items)):
            on_next(n)

    def by_builtins(on_next: Callable[[int], None]) -> None:
        chained: Iterable[int] = range(items)
        for maps in turns:
            chained = map(increment, chained) if maps else filter(is_positive, chained)
        for n in chained:
            on_next(n)

    def by_streamable(on_next: Callable[[int], None]) -> None:
        chained = stream(range(items))
        for maps in turns:
            chained = chained.map(increment) if maps else chained.filter(is_positive)
        for n in chained:
            on_next(n)

    def by_reactivex(on_next: Callable[[int], None]) -> None:
        operators = [rx.map(increment) if maps else rx.filter(is_positive) for maps in turns]
        reactivex.from_iterable(range(items)).pipe(*operators).subscribe(on_next)

    def by_streamz(on_next: Callable[[int], None]) -> None:
        source = last = Stream()
        for maps in turns:
            last = last.map(increment) if maps else last.filter(is_positive)
        last.sink(on_next)
        for n in range(items):
            source.emit(n)

    def by_aiostream(on_next: Callable[[int], None]) -> None:
        chained = aio.range(items)
        for maps in turns:
            chained |= pipe.map(loose(increment)) if maps else pipe.filter(is_positive)
        consumed(chained, on_next)

    compare(
        f"A chain of {stages}, map and filter in turn, each item to a callback",
        python("hand-written loop", summed(lambda on_next: loop(items, on_next))),
        Case("iterated", summed(iterated), 1.15),
        Case(
            "subscribed",
            summed(lambda on_next: made(flow.range(items)).subscribe(on_next)),
            1.15,
        ),
        Case(
            "subscribed, source hidden",
            summed(lambda on_next: made(flow.range(items).hide()).subscribe(on_next)),
            1.5,
        ),
        python(
            "a function of each item, by hand",
            summed(lambda on_next: pushed_by_hand(items, stages, on_next)),
        ),
        python("builtin map and filter", summed(by_builtins)),
        peer("streamable", summed(by_streamable)),
        peer("reactivex", summed(by_reactivex)),
        peer("streamz", summed(by_streamz)),
        peer("aiostream", summed(by_aiostream)),
        items=items,
        rounds=MANY,
        key=f"chain-{stages}",
    )


def reduced(items: int = REDUCED) -> None:
    """Time a chain that ends in one item."""

    def by_hand() -> int:
        total = 0
        for n in range(items):
            y = increment(n)
            if is_even(y):
                total = add(total, y)
        return total

    def by_function() -> int:
        lines = ["x = increment(x)", "if is_even(x): total[0] = add(total[0], x)"]
        names = {**globals(), "total": [0]}
        push(range(items), receiver(lines, names), Gate())
        found: int = names["total"][0]
        return found

    def made(source: Flow[int]) -> Flow[int]:
        return source.map(increment).filter(is_even).reduce(add, 0)

    def subscribed(source: Flow[int]) -> int:
        return _only(made(source).subscribe)

    def by_reactivex() -> int:
        operators = (rx.map(increment), rx.filter(is_even), rx.reduce(add, 0))
        return _only(reactivex.from_iterable(range(items)).pipe(*operators).subscribe)

    async def by_aiostream() -> int:
        chained = aio.range(items) | pipe.map(loose(increment)) | pipe.filter(is_even)
        return await (chained | pipe.reduce(add, initializer=0))

    compare(
        "range | map | filter | reduce",
        python("hand-written loop", by_hand),
        Case("iterated", lambda: next(iter(made(flow.range(items)))), 1.2),
        Case("subscribed", lambda: subscribed(flow.range(items)), 1.5),
        Case("subscribed, source hidden", lambda: subscribed(flow.range(items).hide()), 1.5),
        python("a function of each item, by hand", by_function),
        python(
            "builtin map and filter, functools.reduce",
            lambda: functools.reduce(add, filter(is_even, map(increment, range(items))), 0),
        ),
        peer(
            "streamable, functools.reduce",
            lambda: functools.reduce(add, stream(range(items)).map(increment).filter(is_even), 0),
        ),
        peer("reactivex", by_reactivex),
        peer("aiostream", lambda: asyncio.run(by_aiostream())),
        items=items,
        rounds=MANY,
        key="reduce",
    )


def _only(subscribe: Callable[[Callable[[int], None]], object]) -> int:
    seen: list[int] = []
    subscribe(seen.append)
    [only] = seen
    return only


def cut(items: int = CUT) -> None:
    """Time a chain that cuts the first and the last tenth."""
    first, kept = items // 10, items * 8 // 10

    def by_hand(on_next: Callable[[int], None]) -> None:
        skipped = taken = 0
        for n in range(items):
            if skipped < first:
                skipped += 1
            else:
                on_next(n)
                taken += 1
                if taken == kept:
                    break

    def made() -> Flow[int]:
        return flow.range(items).skip(first).take(kept)

    def each(made: Iterable[int]) -> Callable[[Callable[[int], None]], None]:
        def run(on_next: Callable[[int], None]) -> None:
            for n in made:
                on_next(n)

        return run

    def by_aiostream(on_next: Callable[[int], None]) -> None:
        consumed(aio.range(items) | pipe.skip(first) | pipe.take(kept), on_next)

    def by_streamz(on_next: Callable[[int], None]) -> None:
        source = Stream()
        source.slice(first, first + kept).sink(on_next)
        for n in range(items):
            source.emit(n)

    compare(
        "skip and take, each item to a callback",
        python("hand-written loop", summed(by_hand)),
        Case("iterated", summed(lambda on_next: each(made())(on_next)), 1.2),
        Case("subscribed", summed(lambda on_next: made().subscribe(on_next)), 1.5),
        python(
            "itertools.islice",
            summed(
                lambda on_next: each(itertools.islice(range(items), first, first + kept))(on_next)
            ),
        ),
        peer(
            "streamable",
            summed(lambda on_next: each(stream(range(items)).skip(first).take(kept))(on_next)),
        ),
        peer(
            "reactivex",
            summed(
                lambda on_next: (
                    reactivex.from_iterable(range(items))
                    .pipe(rx.skip(first), rx.take(kept))
                    .subscribe(on_next)
                )
            ),
        ),
        peer("streamz, slice", summed(by_streamz)),
        peer("aiostream", summed(by_aiostream)),
        items=items,
        rounds=MANY,
        key="take-skip",
    )


# -- a coroutine that takes the items


def alone(items: int = AWAITED) -> None:
    """Time `async for` itself, and items that come through a queue there."""

    async def generated() -> AsyncIterator[int]:
        for n in range(items):
            yield n

    async def last(made: AsyncIterator[int]) -> int:
        n = 0
        async for n in made:  # noqa: B007 - the last one is what counts
            pass
        return n

    async def over_queue() -> int:
        waiting: asyncio.Queue[int] = asyncio.Queue(128)

        async def produce() -> None:
            for n in range(items):
                await waiting.put(n)

        producer = asyncio.create_task(produce())
        while (n := await waiting.get()) < items - 1:
            pass
        await producer
        return n

    compare(
        "async for over range, and nothing else",
        python("an asynchronous generator", lambda: asyncio.run(last(generated()))),
        Case("async for", lambda: asyncio.run(last(aiter(flow.range(items)))), 1.1),
        Case(
            "async for, source hidden",
            lambda: asyncio.run(last(aiter(flow.range(items).hide()))),
            0.5,
            beside="asyncio.Queue(128)",
        ),
        python("asyncio.Queue(128)", lambda: asyncio.run(over_queue())),
        items=items,
        rounds=MANY,
        key="async-for-alone",
    )


def awaited(items: int = AWAITED) -> None:
    """Time the items that a coroutine receives by `async for`."""

    async def generated() -> AsyncIterator[int]:
        for n in range(items):
            yield increment(n)

    async def each(made: AsyncIterator[int], on_next: Callable[[int], None]) -> None:
        async for n in made:
            on_next(n)

    def run(make: Callable[[], AsyncIterator[int]]) -> Callable[[], int]:
        return summed(lambda on_next: asyncio.run(each(make(), on_next)))

    async def over_queue(on_next: Callable[[int], None]) -> None:
        waiting: asyncio.Queue[int | None] = asyncio.Queue(128)

        async def produce() -> None:
            for n in range(items):
                await waiting.put(increment(n))
            await waiting.put(None)

        producer = asyncio.create_task(produce())
        while (item := await waiting.get()) is not None:
            on_next(item)
        await producer

    def by_aiostream(on_next: Callable[[int], None]) -> None:
        consumed(aio.range(items) | pipe.map(loose(increment)), on_next)

    def by_reactivex(on_next: Callable[[int], None]) -> None:
        """Put an unbounded queue between, as users of ReactiveX do: it has no `async for`."""

        async def consume() -> None:
            waiting: asyncio.Queue[int | None] = asyncio.Queue()
            observable = reactivex.from_iterable(range(items)).pipe(rx.map(increment))
            observable.subscribe(waiting.put_nowait, on_completed=lambda: waiting.put_nowait(None))
            while (item := await waiting.get()) is not None:
                on_next(item)

        asyncio.run(consume())

    alone(items)
    compare(
        "async for over range | map, each item to a callback",
        python("an asynchronous generator", run(generated)),
        Case("async for", run(lambda: aiter(flow.range(items).map(increment)))),
        Case(
            "async for, source hidden", run(lambda: aiter(flow.range(items).hide().map(increment)))
        ),
        python("asyncio.Queue(128)", summed(lambda on_next: asyncio.run(over_queue(on_next)))),
        peer("streamable", run(lambda: aiter(stream(range(items)).map(increment)))),
        peer("reactivex, asyncio.Queue()", summed(by_reactivex)),
        peer("aiostream", summed(by_aiostream)),
        items=items,
        key="async-for",
    )


# -- one element


def repeated(
    runs: int, make: Callable[[Callable[[int], None]], Callable[[], object]]
) -> Callable[[], list[int]]:
    """Return work that runs what `make` returns `runs` times, and gives the items received."""
    seen: list[int] = []
    work = make(seen.append)

    def run() -> list[int]:
        seen.clear()
        for _ in range(runs):
            work()
        return seen

    return run


def in_one_loop(runs: int, make: Callable[[], BaseStream[int]]) -> Callable[[], list[int]]:
    """Return the same work for streams of aiostream, all of them in the same event loop."""

    async def consume() -> list[int]:
        seen: list[int] = []
        for _ in range(runs):
            async with make().stream() as streamer:
                seen.extend([n async for n in streamer])
        return seen

    return lambda: asyncio.run(consume())


def called(on_next: Callable[[int], None]) -> Callable[[], object]:
    return lambda: on_next(increment(1))


def one_alone(runs: int = RUNS) -> None:
    """Time one element: its flow is made, subscribed to, and completed."""

    def subscribed(on_next: Callable[[int], None]) -> Callable[[], object]:
        return lambda: flow.just(1).subscribe(on_next)

    def by_streamable(on_next: Callable[[int], None]) -> Callable[[], object]:
        def work() -> None:
            for n in stream((1,)):
                on_next(n)

        return work

    def by_reactivex(on_next: Callable[[int], None]) -> Callable[[], object]:
        return lambda: reactivex.just(1).subscribe(on_next)

    def by_streamz(on_next: Callable[[int], None]) -> Callable[[], object]:
        def work() -> None:
            source = Stream()
            source.sink(on_next)
            source.emit(1)

        return work

    compare(
        "just(1) to a callback: assembly, subscription and completion",
        python("an append", repeated(runs, lambda on_next: lambda: on_next(1))),
        Case("subscribed", repeated(runs, subscribed), mark_us=4.0),
        python(
            "a subscription, by hand",
            repeated(runs, lambda on_next: lambda: Just(1).subscribe(on_next)),
        ),
        peer("streamable", repeated(runs, by_streamable)),
        peer("reactivex", repeated(runs, by_reactivex)),
        peer("streamz", repeated(runs, by_streamz)),
        peer("aiostream", in_one_loop(runs, lambda: aio.just(1))),
        items=runs,
        unit="subscription",
        key="one-element-alone",
    )


def one(runs: int = RUNS) -> None:
    """Time the same with a stage."""

    def subscribed(on_next: Callable[[int], None]) -> Callable[[], object]:
        return lambda: flow.just(1).map(increment).subscribe(on_next)

    def by_streamable(on_next: Callable[[int], None]) -> Callable[[], object]:
        def work() -> None:
            for n in stream((1,)).map(increment):
                on_next(n)

        return work

    def by_reactivex(on_next: Callable[[int], None]) -> Callable[[], object]:
        return lambda: reactivex.just(1).pipe(rx.map(increment)).subscribe(on_next)

    def by_streamz(on_next: Callable[[int], None]) -> Callable[[], object]:
        def work() -> None:
            source = Stream()
            source.map(increment).sink(on_next)
            source.emit(1)

        return work

    compare(
        "just(1) | map to a callback: assembly, subscription and completion",
        python("a call and an append", repeated(runs, called)),
        Case("subscribed", repeated(runs, subscribed), mark_us=4.0),
        peer("streamable", repeated(runs, by_streamable)),
        peer("reactivex", repeated(runs, by_reactivex)),
        peer("streamz", repeated(runs, by_streamz)),
        peer("aiostream", in_one_loop(runs, lambda: aio.just(1) | pipe.map(loose(increment)))),
        items=runs,
        unit="subscription",
        key="one-element",
    )


def one_assembled(runs: int = RUNS) -> None:
    """Time the same with a flow that was assembled before."""
    flowed = flow.just(1).map(increment)
    observable = reactivex.just(1).pipe(rx.map(increment))
    streamed = aio.just(1) | pipe.map(loose(increment))

    def iterated(on_next: Callable[[int], None]) -> Callable[[], object]:
        def work() -> None:
            for n in flowed:
                on_next(n)

        return work

    def subscribed(on_next: Callable[[int], None]) -> Callable[[], object]:
        return lambda: flowed.subscribe(on_next)

    def by_reactivex(on_next: Callable[[int], None]) -> Callable[[], object]:
        return lambda: observable.subscribe(on_next)

    compare(
        "just(1) | map to a callback, assembled once: subscription and completion",
        python("a call and an append", repeated(runs, called)),
        Case("subscribed", repeated(runs, subscribed), mark_us=4.0),
        Case("iterated", repeated(runs, iterated)),
        peer("reactivex", repeated(runs, by_reactivex)),
        peer("aiostream", in_one_loop(runs, lambda: streamed)),
        items=runs,
        unit="subscription",
        key="one-element-assembled",
    )


def firsts(runs: int = RUNS) -> None:
    """Time short flows of a few items that result in one."""
    words = ["a", "flow", "of", "words"]
    flowed = flow.from_iterable(words).map(len).filter(odd)

    def by_hand(on_next: Callable[[int], None]) -> Callable[[], object]:
        return lambda: on_next(next(filter(odd, map(len, words))))

    def assembled(on_next: Callable[[int], None]) -> Callable[[], object]:
        return lambda: on_next(flow.from_iterable(words).map(len).filter(odd).first())

    def known(on_next: Callable[[int], None]) -> Callable[[], object]:
        return lambda: on_next(flowed.first())

    def by_streamable(on_next: Callable[[int], None]) -> Callable[[], object]:
        return lambda: on_next(next(iter(stream(words).map(len).filter(odd))))

    def by_reactivex(on_next: Callable[[int], None]) -> Callable[[], object]:
        return lambda: (
            reactivex.from_iterable(words)
            .pipe(rx.map(len), rx.filter(odd), rx.first())
            .subscribe(on_next)
        )

    compare(
        "the first item of four words | map | filter",
        python("next(filter(map))", repeated(runs, by_hand)),
        Case("assembled each time", repeated(runs, assembled)),
        Case("assembled once", repeated(runs, known)),
        peer("streamable", repeated(runs, by_streamable)),
        peer("reactivex", repeated(runs, by_reactivex)),
        items=runs,
        unit="flow",
        key="first",
    )


def odd(n: int) -> bool:
    return n % 2 == 1


def main() -> None:
    for stages in (1, 3, 5, 20):
        chain(stages)
    reduced()
    cut()
    awaited()
    one_alone()
    one()
    one_assembled()
    firsts()


if __name__ == "__main__":
    main()
