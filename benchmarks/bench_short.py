"""Many short flows: one for each word, session or document, beside plain Python and libraries."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import reactivex
from aiostream import pipe
from aiostream import stream as aio
from reactivex import operators as rx
from streamable import stream

import flow_core as flow
from by_hand import described
from flow_core import Flow
from peers import loose
from rounds import Case, compare, peer, python

T = TypeVar("T")
R = TypeVar("R")

FLOWS = 2_000

Entry = dict[str, Any]  # Any: what JSON holds


def add(total: int, n: int) -> int:
    return total + n


def of_each(function: Callable[[T], R], inputs: Sequence[T]) -> Callable[[], list[R]]:
    """Return work that applies `function` to each input, and returns the results."""

    def work() -> list[R]:
        return [function(each) for each in inputs]

    return work


def awaited(function: Callable[[T], Any], inputs: Sequence[T]) -> Callable[[], list[Any]]:
    """Return the same work for a function that returns awaitables, all in one event loop."""

    async def run() -> list[Any]:
        return [await function(each) for each in inputs]

    return lambda: asyncio.run(run())


def observed(observable: reactivex.Observable[R]) -> R:
    """Return the only item of an observable."""
    found: list[R] = []
    observable.subscribe(found.append)
    return found[0]


# -- letters


def count(counts: dict[str, int], letter: str) -> None:
    counts[letter] = counts.get(letter, 0) + 1


def missing(letter: tuple[str, int]) -> int:
    return max(0, letter[1] - 1)


def letters(flows: int = FLOWS) -> None:
    """Count the letters that occur in a word more than once."""
    chance = random.Random(1)
    words = [
        "".join(chance.choices("abcdefghijklm", k=chance.randint(4, 10))) for _ in range(flows)
    ]

    def plainly(word: str) -> int:
        counts: dict[str, int] = {}
        for letter in word:
            count(counts, letter)
        return sum(map(missing, counts.items()))

    def made(of: Flow[str]) -> Flow[int]:
        counts = of.collect(dict[str, int], count)
        return counts.flat_map_iterable(dict[str, int].items).map(missing).reduce(add, 0)

    def counted(counts: dict[str, int], letter: str) -> dict[str, int]:
        count(counts, letter)
        return counts

    def by_streamable(word: str) -> int:
        counts: dict[str, int] = {}
        for letter in stream(word):
            count(counts, letter)
        return sum(stream(counts.items()).map(missing))

    def by_reactivex(word: str) -> int:
        return observed(
            reactivex.from_iterable(word).pipe(
                rx.reduce(counted, {}),
                rx.flat_map(lambda counts: reactivex.from_iterable(counts.items())),
                rx.map(missing),
                rx.sum(),
            )
        )

    _compare(
        "letters of a word that are in it more than once",
        words,
        plainly,
        made,
        by_streamable,
        by_reactivex,
        key="short-letters",
    )


# -- n-grams


def known(gram: str) -> bool:
    return "e" in gram


def ngrams(flows: int = FLOWS) -> None:
    """Count the sequences of three letters in a word that have an e."""
    chance = random.Random(2)
    words = ["".join(chance.choices("abcdefghijklm", k=12)) for _ in range(flows)]

    def plainly(word: str) -> int:
        return sum(map(known, map("".join, zip(word, word[1:], word[2:], strict=False))))

    def made(of: Flow[str]) -> Flow[int]:
        return of.sliding(3).map("".join).filter(known).count()

    def by_streamable(word: str) -> int:
        grams = stream(zip(word, word[1:], word[2:], strict=False)).map("".join)
        return sum(1 for _ in grams.filter(known))

    def by_reactivex(word: str) -> int:
        return observed(
            reactivex.from_iterable(word).pipe(
                rx.buffer_with_count(3, 1),
                rx.filter(lambda letters: len(letters) == 3),
                rx.map("".join),
                rx.filter(known),
                rx.count(),
            )
        )

    _compare(
        "threes of letters in a word that have an e",
        words,
        plainly,
        made,
        by_streamable,
        by_reactivex,
        key="short-ngrams",
    )


# -- sessions


def size(entry: tuple[int, int, float]) -> int:
    return entry[1]


def failed(entry: tuple[int, int, float]) -> bool:
    return entry[0] >= 500


def seconds(entry: tuple[int, int, float]) -> float:
    return entry[2]


def sessions(flows: int = FLOWS // 4) -> None:
    """Compute three figures per session of a log: bytes, failures, and the slowest request."""
    chance = random.Random(3)
    logs = [
        [
            (chance.choice((200, 200, 404, 503)), chance.randint(100, 9_999), chance.random())
            for _ in range(chance.randint(5, 20))
        ]
        for _ in range(flows)
    ]
    Session = list[tuple[int, int, float]]  # noqa: N806 - a type

    def plainly(log: Session) -> tuple[int, int, float]:
        return (
            sum(map(size, log)),
            sum(map(size, filter(failed, log))),
            max(map(seconds, log)),
        )

    def sizes(log: Flow[tuple[int, int, float]]) -> Flow[int]:
        return log.map(size).reduce(add, 0)

    def lost(log: Flow[tuple[int, int, float]]) -> Flow[int]:
        return log.filter(failed).map(size).reduce(add, 0)

    def slowest(log: Flow[tuple[int, int, float]]) -> Flow[float]:
        return log.map(seconds).max()

    makes: list[Callable[[Flow[Any]], Flow[Any]]] = [sizes, lost, slowest]
    first, second, third = map(flow.prepare, makes)

    def assembled(log: Session) -> tuple[int, int, float]:
        of = flow.from_iterable(log)
        return sizes(of).first(), lost(of).first(), slowest(of).first()

    def by_hand(log: Session) -> tuple[int, int, float]:
        of = described(None, log)
        described(described(of, size), add, 0)
        described(described(described(of, failed), size), add, 0)
        described(described(of, seconds), max)
        return plainly(log)

    def prepared(log: Session) -> tuple[int, int, float]:
        return first.first(log), second.first(log), third.first(log)

    def by_streamable(log: Session) -> tuple[int, int, float]:
        return (
            sum(stream(log).map(size)),
            sum(stream(log).filter(failed).map(size)),
            max(stream(log).map(seconds)),
        )

    def by_reactivex(log: Session) -> tuple[int, int, float]:
        of = reactivex.from_iterable(log)
        return (
            observed(of.pipe(rx.map(size), rx.sum())),
            observed(of.pipe(rx.filter(failed), rx.map(size), rx.sum())),
            observed(of.pipe(rx.map(seconds), rx.max())),
        )

    async def by_aiostream(log: Session) -> tuple[int, int, float]:
        return (
            await (aio.iterate(log) | pipe.map(loose(size)) | pipe.reduce(loose(add), 0)),
            await (
                aio.iterate(log)
                | pipe.filter(loose(failed))
                | pipe.map(loose(size))
                | pipe.reduce(loose(add), 0)
            ),
            await (aio.iterate(log) | pipe.map(loose(seconds)) | pipe.reduce(loose(max))),
        )

    compare(
        "three figures of a session of some twelve requests",
        python("sum, max, map, filter", of_each(plainly, logs)),
        Case("assembled each time", of_each(assembled, logs), mark=3.5),
        python("and an object for each operator, by hand", of_each(by_hand, logs)),
        Case("prepared", of_each(prepared, logs), mark=1.0),
        peer("streamable", of_each(by_streamable, logs)),
        peer("reactivex", of_each(by_reactivex, logs)),
        peer("aiostream", awaited(by_aiostream, logs)),
        items=flows,
        unit="session",
        key="short-sessions",
    )


# -- documents


def lines(document: Entry) -> list[Entry]:
    found: list[Entry] = document["lines"]
    return found


def in_stock(line: Entry) -> bool:
    there: bool = line["stock"] > 0
    return there


def price(line: Entry) -> int:
    cents: int = line["price"] * line["count"]
    return cents


def name(line: Entry) -> str:
    text: str = line["name"]
    return text.title()


def documents(flows: int = FLOWS // 4) -> None:
    """Compute the total and the names of each order."""
    chance = random.Random(4)

    def ordered() -> Entry:
        return {
            "name": f"part {chance.randint(1, 99)}",
            "price": chance.randint(1, 10_000),
            "count": chance.randint(1, 9),
            "stock": chance.randint(0, 3),
        }

    orders: list[Entry] = [
        {"id": number, "lines": [ordered() for _ in range(chance.randint(3, 12))]}
        for number in range(flows)
    ]

    def plainly(order: Entry) -> tuple[int, list[str]]:
        of = lines(order)
        return sum(map(price, filter(in_stock, of))), list(map(name, of))

    def total(of: Flow[Entry]) -> Flow[int]:
        return of.filter(in_stock).map(price).reduce(add, 0)

    def names(of: Flow[Entry]) -> Flow[str]:
        return of.map(name)

    prepared_total, prepared_names = flow.prepare(total), flow.prepare(names)

    def assembled(order: Entry) -> tuple[int, list[str]]:
        of = flow.from_iterable(lines(order))
        return total(of).first(), list(names(of))

    def by_hand(order: Entry) -> tuple[int, list[str]]:
        of = described(None, lines(order))
        described(described(described(of, in_stock), price), add, 0)
        described(of, name)
        return plainly(order)

    def prepared(order: Entry) -> tuple[int, list[str]]:
        of = lines(order)
        return prepared_total.first(of), prepared_names.list(of)

    def by_streamable(order: Entry) -> tuple[int, list[str]]:
        of = stream(lines(order))
        return sum(of.filter(in_stock).map(price)), list(of.map(name))

    def by_reactivex(order: Entry) -> tuple[int, list[str]]:
        of = reactivex.from_iterable(lines(order))
        return (
            observed(of.pipe(rx.filter(in_stock), rx.map(price), rx.sum())),
            observed(of.pipe(rx.map(name), rx.to_list())),
        )

    async def by_aiostream(order: Entry) -> tuple[int, list[str]]:
        of = lines(order)
        total = aio.iterate(of) | pipe.filter(loose(in_stock)) | pipe.map(loose(price))
        return (
            await (total | pipe.reduce(loose(add), 0)),
            await (aio.iterate(of) | pipe.map(loose(name)) | pipe.list()),
        )

    compare(
        "the total and the names of an order, as JSON gives it",
        python("sum, map, filter", of_each(plainly, orders)),
        Case("assembled each time", of_each(assembled, orders), mark=2.0),
        python("and an object for each operator, by hand", of_each(by_hand, orders)),
        Case("prepared", of_each(prepared, orders), mark=1.0),
        peer("streamable", of_each(by_streamable, orders)),
        peer("reactivex", of_each(by_reactivex, orders)),
        peer("aiostream", awaited(by_aiostream, orders)),
        items=flows,
        unit="document",
        key="short-documents",
    )


def _compare(
    title: str,
    words: list[str],
    plainly: Callable[[str], int],
    made: Callable[[Flow[str]], Flow[int]],
    by_streamable: Callable[[str], int],
    by_reactivex: Callable[[str], int],
    *,
    key: str,
) -> None:
    prepared = flow.prepare(made)
    compare(
        title,
        python("sum and map", of_each(plainly, words)),
        Case(
            "assembled each time",
            of_each(lambda word: made(flow.from_iterable(word)).first(), words),
            mark=3.5,
        ),
        Case("prepared", of_each(prepared.first, words), mark=1.5),
        peer("streamable", of_each(by_streamable, words)),
        peer("reactivex", of_each(by_reactivex, words)),
        items=len(words),
        unit="word",
        key=key,
    )


def main() -> None:
    letters()
    ngrams()
    sessions()
    documents()


if __name__ == "__main__":
    main()
