"""Cases that are timed in turn, round by round: a machine that slows down slows all of them.

A figure is the median over the rounds; what is compared is a ratio to the case that is the floor.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table


@dataclass
class Case:
    """One way to do the work."""

    name: str
    work: Callable[[], object]
    mark: float | None = None
    """The ratio to the floor that it must not exceed, or None if it is there to compare."""
    mark_us: float | None = None
    """The microseconds per item that it must not exceed, or None."""
    times: list[float] = field(default_factory=list[float])

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    def verdict(self, ratio: float, items: int) -> str:
        """Its marks, each with whether it was met."""
        found = ((ratio, self.mark, ""), (self.median / items * 1e6, self.mark_us, " µs"))
        return ", ".join(
            f"{'≤' if value <= mark else '>'} {mark}{unit}"
            for value, mark, unit in found
            if mark is not None
        )


def compare(
    title: str,
    *cases: Case,
    items: int,
    rounds: int = 7,
    clock: Callable[[], float] = time.process_time,
    same: Callable[[object], object] = lambda result: result,
    unit: str = "item",
    plural: str | None = None,
) -> dict[str, float]:
    """Time the cases in turn and print a table; the first case is the floor.

    Args:
        title: what all cases do.
        cases: the first is the floor, 1.0 by definition.
        items: how many items one run handles.
        rounds: how often each case is timed; one more round goes first and is not counted.
        clock: CPU seconds of the process by default; `time.perf_counter` where work waits.
        same: what of a result must be equal in all cases.
        unit: what an item is called in the table.
        plural: what several are called, if an s is not all it takes.

    Returns:
        The ratio of each case's median to the floor's, by name.
    """
    _time(title, cases, rounds, clock, same)
    floor = cases[0].median
    table = Table(title=title, title_justify="left")
    for heading in ("case", f"ns / {unit}", "ratio", "spread", "mark"):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    for case in cases:
        ratio = case.median / floor
        low, high = min(case.times) / floor, max(case.times) / floor
        table.add_row(
            case.name,
            f"{case.median / items * 1e9:.0f}",
            f"{ratio:.2f}",
            f"{low:.2f}–{high:.2f}",
            case.verdict(ratio, items),
        )
    _print(table, items, rounds, plural or f"{unit}s")
    return {case.name: case.median / floor for case in cases}


@dataclass
class Pair:
    """The same work done in two ways, of which the first must not lose."""

    name: str
    first: Callable[[], object]
    second: Callable[[], object]
    mark: float | None = None
    """The ratio of `first` to `second` that it must not exceed, or None."""


def versus(
    title: str,
    *pairs: Pair,
    items: int,
    ways: tuple[str, str],
    rounds: int = 7,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """Time pairs in turn and print a row for each.

    Args:
        title: what all of them do; every result must be equal to that of the first.
        pairs: each has its own ratio.
        items: how many items one run handles.
        ways: what the first and the second of each pair are called.
        rounds: as in `compare`.
        clock: as in `compare`.

    Returns:
        The ratio of the medians of each pair, by name.
    """
    cases = [
        (Case(f"{pair.name}, {ways[0]}", pair.first, pair.mark), Case(pair.name, pair.second))
        for pair in pairs
    ]
    _time(title, [case for both in cases for case in both], rounds, clock, lambda result: result)
    table = Table(title=f"{title}: ns / item", title_justify="left")
    for heading in ("case", *ways, "ratio", "spread", "mark"):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    ratios: dict[str, float] = {}
    for pair, (first, second) in zip(pairs, cases, strict=True):
        ratios[pair.name] = ratio = first.median / second.median
        by_round = [one / other for one, other in zip(first.times, second.times, strict=True)]
        table.add_row(
            pair.name,
            f"{first.median / items * 1e9:.0f}",
            f"{second.median / items * 1e9:.0f}",
            f"{ratio:.2f}",
            f"{min(by_round):.2f}–{max(by_round):.2f}",
            first.verdict(ratio, items),
        )
    _print(table, items, rounds, "items")
    return ratios


def _time(
    title: str,
    cases: Sequence[Case],
    rounds: int,
    clock: Callable[[], float],
    same: Callable[[object], object],
) -> None:
    """Run each case once to compare the results, then all of them `rounds` times in turn."""
    expected = same(cases[0].work())
    for case in cases[1:]:
        found = same(case.work())
        if found != expected:
            raise AssertionError(f"{title}: {case.name} gave {found!r}, not {expected!r}")
    for _ in range(rounds):
        for case in cases:
            gc.collect()
            start = clock()
            case.work()
            case.times.append(clock() - start)


def _print(table: Table, items: int, rounds: int, things: str) -> None:
    console = Console(width=100)
    console.print(table)
    python = ".".join(map(str, sys.version_info[:3]))
    console.print(f"[dim]{items:,} {things}, {rounds} interleaved rounds, CPython {python}[/dim]\n")
