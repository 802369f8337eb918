"""Synchronous chains: this library beside a hand-written loop, builtins and ReactiveX."""

from __future__ import annotations

import functools
from collections.abc import Callable

import reactivex
from reactivex import operators as rx

import flow_core as flow
from rounds import Case, compare

ITEMS = 1_000_000


def increment(n: int) -> int:
    return n + 1


def is_even(n: int) -> bool:
    return n % 2 == 0


def add(total: int, n: int) -> int:
    return total + n


def hand_written() -> int:
    total = 0
    for n in range(ITEMS):
        y = increment(n)
        if is_even(y):
            total = add(total, y)
    return total


def builtins() -> int:
    return functools.reduce(add, filter(is_even, map(increment, range(ITEMS))), 0)


def chain() -> flow.Flow[int]:
    return flow.range(ITEMS).map(increment).filter(is_even).reduce(add, 0)


def iterated() -> int:
    return next(iter(chain()))


def subscribed() -> int:
    seen: list[int] = []
    chain().subscribe(seen.append)
    return seen[0]


def hidden() -> int:
    seen: list[int] = []
    flow.range(ITEMS).hide().map(increment).filter(is_even).reduce(add, 0).subscribe(seen.append)
    return seen[0]


def reactive_x() -> int:
    seen: list[int] = []
    reactivex.range(ITEMS).pipe(rx.map(increment), rx.filter(is_even), rx.reduce(add, 0)).subscribe(
        seen.append
    )
    return seen[0]


def per_item() -> None:
    """What each item costs that reaches a subscriber."""
    count = 0

    def on_next(_: int) -> None:
        nonlocal count
        count += 1

    def loop() -> int:
        nonlocal count
        count = 0
        for n in range(ITEMS):
            on_next(increment(n))
        return count

    def pushed() -> int:
        nonlocal count
        count = 0
        flow.range(ITEMS).map(increment).subscribe(on_next)
        return count

    def pulled() -> int:
        nonlocal count
        count = 0
        for n in flow.range(ITEMS).map(increment):
            on_next(n)
        return count

    compare(
        "range | map, each item to a callback",
        Case("hand-written loop", loop),
        Case("flow, iterated", pulled),
        Case("flow, subscribed", pushed),
        items=ITEMS,
    )


def long_chain(stages: int) -> None:
    """A chain of many maps, where the loop is long and the items few."""

    def loop() -> int:
        total = 0
        for n in range(200):
            y = n
            for _ in range(stages):
                y = increment(y)
            total += y
        return total

    def flowed() -> int:
        made = flow.range(200)
        for _ in range(stages):
            made = made.map(increment)
        return sum(made)

    compare(
        f"a chain of {stages:,} maps, assembled, compiled (once) and run",
        Case("nested hand-written loops", loop),
        Case("flow, iterated", flowed),
        items=200 * stages,
    )


def one_element() -> None:
    """Assemble, subscribe and complete a flow of one item."""
    runs = 20_000
    seen: list[int] = []
    on_next = seen.append

    def loop() -> int:
        for _ in range(runs):
            on_next(increment(1))
        return runs

    def flowed() -> int:
        for _ in range(runs):
            flow.just(1).map(increment).subscribe(on_next)
        return runs

    def reactive() -> int:
        for _ in range(runs):
            reactivex.just(1).pipe(rx.map(increment)).subscribe(on_next)
        return runs

    compare(
        "just(1) | map: assembly, subscription and completion",
        Case("a call and an append", loop),
        Case("flow, subscribed", flowed),
        Case("reactivex 6.1", reactive),
        items=runs,
    )


def main() -> None:
    cases: list[tuple[str, Callable[[], int], float | None]] = [
        ("hand-written loop", hand_written, None),
        ("flow, iterated", iterated, 1.25),
        ("flow, subscribed, unbounded", subscribed, 1.7),
        ("flow, subscribed, source hidden", hidden, None),
        ("builtin map, filter, reduce", builtins, None),
        ("reactivex 6.1", reactive_x, None),
    ]
    compare(
        "range | map | filter | reduce",
        *(Case(name, work, mark) for name, work, mark in cases),
        items=ITEMS,
    )
    per_item()
    one_element()
    long_chain(5_000)


if __name__ == "__main__":
    main()
