"""Times cases in turn, round by round, so that a machine that slows down slows all of them.

A figure is the median over the rounds. Comparisons use the ratio to the case that is the floor: the
median of the ratios of each round, so that anything that slows down both cancels out.
Each printed table is also recorded as a line of JSON, in the file that the environment variable
`FLOW_BENCH_RECORD` names: `report.py` makes its pages from that file.
"""

from __future__ import annotations

import gc
import json
import math
import os
import statistics
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from pages import plural

PEERS = ("reactivex", "aiostream", "streamable", "streamz")
ENOUGH = 7
"""The least number of rounds for a figure."""
MANY = 21
"""The rounds for short work whose mark is near to its actual time."""
LAST = 3
"""The number of largest sizes that determine the growth at the end."""
BEND = 0.05
"""The most by which the slope at the end may exceed the floor's."""
ITEM = int("1000000007")
"""The one item that fills a store; a small one may be immortal, without a reference count."""


@dataclass
class Settings:
    """The settings that a caller of whole scripts may change; see `guard.py`."""

    rounds: int | None = None
    """The number of rounds of all tables, or None for each table's own number.

    For a quick look, set the environment variable `FLOW_BENCH_ROUNDS`.
    """
    peers: bool = True
    """True if other libraries are timed."""
    quiet: bool = False
    """True if tables are not printed."""


settings = Settings(int(os.environ.get("FLOW_BENCH_ROUNDS", "0")) or None)

tables: list[dict[str, object]] = []
"""The tables that were recorded in this process."""


@dataclass
class Case:
    """One way to do the work."""

    name: str
    work: Callable[[], object]
    mark: float | None = None
    """The ratio to the floor that it must not exceed, or None if it is only for comparison."""
    mark_us: float | None = None
    """The microseconds per item that it must not exceed, or None."""
    times: list[float] = field(default_factory=list[float])
    by: str = "flow"
    """The owner: "flow", "python", "pyspark", or one of `PEERS`."""
    beside: str | None = None
    """The name of the case that is its floor, or None for the common floor."""
    every: int = 1
    """It is timed once in this many rounds: more than 1 if it is slow and has no mark."""

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    def marks(self, ratio: float, items: int) -> list[dict[str, object]]:
        """Return its marks: each mark, the value, the unit of both, and whether it was met."""
        marks: list[dict[str, object]] = []
        if self.mark is not None:
            met = ratio <= self.mark
            marks.append({"mark": self.mark, "value": ratio, "unit": "×", "met": met})
        if self.mark_us is not None:
            low, value, high = (
                seconds / items * 1e6 for seconds in (min(self.times), self.median, max(self.times))
            )
            met = value <= self.mark_us
            mark = {"mark": self.mark_us, "value": value, "unit": "µs", "met": met}
            marks.append(mark | {"low": low, "high": high})
        return marks

    def verdict(self, ratio: float, items: int) -> str:
        """Return its marks as text, each with a sign that says whether it was met."""
        return ", ".join(
            f"{'≤' if mark['met'] else '>'} {mark['mark']}{'' if mark['unit'] == '×' else ' µs'}"
            for mark in self.marks(ratio, items)
        )


def floor_of(case: Case, cases: Sequence[Case]) -> Case:
    """Return the case that a case is compared with: the one that it names, or the first."""
    if case.beside is None:
        return cases[0]
    return next(each for each in cases if each.name == case.beside)


def by_round(case: Case, cases: Sequence[Case]) -> list[float]:
    """Return the ratio of a case to its floor, in each round in which both were timed."""
    return ratios(case.times, floor_of(case, cases).times, case.every)


def ratios(times: Sequence[float], of_floor: Sequence[float], every: int = 1) -> list[float]:
    """Return the ratios of `times` to those of a floor in the same rounds.

    Args:
        times: the times of a case.
        of_floor: the times of its floor, in each round.
        every: the number of rounds in which the case was timed once.
    """
    return [one / other for one, other in zip(times, of_floor[::every], strict=True)]


def python(name: str, work: Callable[[], object]) -> Case:
    """Return a case that needs no library."""
    return Case(name, work, by="python")


def peer(name: str, work: Callable[[], object]) -> Case:
    """Return a case of the library whose name `name` begins with."""
    by = name.partition(",")[0]
    if by not in PEERS:
        raise ValueError(f"{name} begins with none of {PEERS}")
    return Case(name, work, by=by)


def compare(
    title: str,
    *cases: Case,
    items: int,
    rounds: int = ENOUGH,
    clock: Callable[[], float] = time.process_time,
    same: Callable[[object], object] = lambda result: result,
    unit: str = "item",
    key: str | None = None,
) -> dict[str, float]:
    """Time the cases in turn and print a table; the first case is the floor.

    Args:
        title: the work that all cases do.
        cases: the first is the floor, 1.0 by definition, of all that name no other.
        items: the number of items that one run handles.
        rounds: how often each case is timed; one more round goes first and is not counted. Other
            libraries, which are slow, are timed in `ENOUGH` rounds.
        clock: CPU seconds of the process by default; `time.perf_counter` where work waits.
        same: extracts the part of a result that must be equal in all cases, in each round.
        unit: the name of an item in the table.
        key: the table's name in the report and the guard; None leaves it to the details.

    Returns:
        The ratio of each case to its floor, by name.
    """
    if not settings.peers:
        cases = tuple(case for case in cases if case.by not in PEERS)
    rounds = settings.rounds or rounds
    for case in cases:
        if case.by in PEERS:
            case.every = max(1, rounds // ENOUGH)
    _time(title, cases, rounds, clock, same)
    table = Table(title=title, title_justify="left")
    for heading in ("case", f"ns / {unit}", "ratio", "spread", "mark"):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    found: dict[str, float] = {}
    for case in cases:
        of = by_round(case, cases)
        found[case.name] = ratio = statistics.median(of)
        table.add_row(
            case.name,
            f"{case.median / items * 1e9:.0f}",
            f"{ratio:.2f}",
            f"{min(of):.2f}–{max(of):.2f}",
            case.verdict(ratio, items),
        )
    _print(table, items, rounds, plural(unit))
    record_cases(title, key, cases, unit=unit, items=items, rounds=rounds, clock=clock)
    return found


@dataclass
class Pair:
    """The same work done in two ways, of which the first must not be slower."""

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
    rounds: int = ENOUGH,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """Time pairs in turn and print a row for each.

    Args:
        title: the work that all pairs do; in each round all results must be equal.
        pairs: each has its own ratio.
        items: the number of items that one run handles.
        ways: the names of the first and the second way of each pair.
        rounds: as in `compare`.
        clock: as in `compare`.

    Returns:
        The ratio of each pair, by name.
    """
    rounds = settings.rounds or rounds
    cases = [
        (Case(f"{pair.name}, {ways[0]}", pair.first, pair.mark), Case(pair.name, pair.second))
        for pair in pairs
    ]
    _time(title, [case for both in cases for case in both], rounds, clock, lambda result: result)
    table = Table(title=f"{title}: ns / item", title_justify="left")
    for heading in ("case", *ways, "ratio", "spread", "mark"):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    found: dict[str, float] = {}
    rows: list[dict[str, object]] = []
    for pair, (first, second) in zip(pairs, cases, strict=True):
        of = ratios(first.times, second.times)
        found[pair.name] = ratio = statistics.median(of)
        table.add_row(
            pair.name,
            f"{first.median / items * 1e9:.0f}",
            f"{second.median / items * 1e9:.0f}",
            f"{ratio:.2f}",
            f"{min(of):.2f}–{max(of):.2f}",
            first.verdict(ratio, items),
        )
        rows.append(
            {
                "name": pair.name,
                "by": "flow",
                "ns": first.median / items * 1e9,
                "beside_ns": second.median / items * 1e9,
                "ratio": ratio,
                "low": min(of),
                "high": max(of),
                "rounds": len(of),
                "marks": first.marks(ratio, items),
            }
        )
    _print(table, items, rounds, "items")
    record("versus", title, None, rows, ways=ways, items=items, rounds=rounds, clock=clock)
    return found


@dataclass
class Curve:
    """Work that is done in several sizes."""

    name: str
    work: Callable[[int], object]
    mark: float | None = None
    """The slope on two logarithmic axes that it must not exceed; 1 is linear."""


def grow(
    title: str,
    *curves: Curve,
    axis: str,
    sizes: Sequence[int],
    rounds: int = ENOUGH,
    times: int = 1,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """Time each curve at each size, in turn, and print how the time grows.

    A small size runs so often that it handles as many items as the largest, so that the noise is
    the same for all. A curve with a mark for its slope also has one for its end, because a line
    through all sizes does not show that the last ones bend upwards. The floor's slope at the end is
    subtracted, since more items than a cache holds make any work slower.

    Args:
        title: the work that all curves do.
        curves: their results must be equal, size by size, each time; the first is the floor.
        axis: the thing whose number grows.
        sizes: the numbers of it, ascending.
        rounds: as in `compare`.
        times: how often the largest size is run in a round; more where single runs differ.
        clock: as in `compare`.

    Returns:
        The slope of each curve by name: that of the straight line nearest to its points, as the
        median of all rounds.
    """
    rounds = settings.rounds or rounds
    expected: dict[int, object] = {}
    for size in sizes:
        results = [(each.name, each.work(size)) for each in curves]
        _same(f"{title}, {size:,} {axis}", results)
        expected[size] = results[0][1]
    seconds: dict[tuple[str, int], list[float]] = {}
    for _ in range(rounds):
        for size in sizes:
            repeats = times * max(1, sizes[-1] // size)
            for curve in curves:
                gc.collect()
                start = clock()
                found = [curve.work(size) for _ in range(repeats)]
                seconds.setdefault((curve.name, size), []).append((clock() - start) / repeats)
                results = [("the floor", expected[size]), *((curve.name, each) for each in found)]
                _same(f"{title}, {size:,} {axis}", results)
    table = Table(title=f"{title}: µs by number of {axis}", title_justify="left")
    for heading in ("case", *(f"{size:,}" for size in sizes), "slope", "spread", "mark", "end", ""):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    floor = [seconds[curves[0].name, size] for size in sizes]
    slopes: dict[str, float] = {}
    rows: list[dict[str, object]] = []
    for curve in curves:
        of = [seconds[curve.name, size] for size in sizes]
        each_round = [_slope(sizes, each) for each in zip(*of, strict=True)]
        slopes[curve.name] = slope = statistics.median(each_round)
        ends = [
            _end(sizes, one, other)
            for one, other in zip(zip(*of, strict=True), zip(*floor, strict=True), strict=True)
        ]
        end = statistics.median(ends)
        marks: list[dict[str, object]] = []
        if curve.mark is not None:
            met, straight = slope <= curve.mark, end <= BEND
            spread = {"low": min(ends), "high": max(ends)}
            marks = [
                {"mark": curve.mark, "value": slope, "unit": "slope", "met": met},
                {"mark": BEND, "value": end, "unit": "bend", "met": straight, **spread},
            ]
        table.add_row(
            curve.name,
            *(f"{median * 1e6:,.0f}" for median in _medians(of)),
            f"{slope:.2f}",
            f"{min(each_round):.2f}–{max(each_round):.2f}",
            f"{'≤' if marks[0]['met'] else '>'} {curve.mark}" if marks else "",
            f"{end:+.2f}",
            f"{'≤' if marks[1]['met'] else '>'} {BEND}" if marks else "",
        )
        rows.append(
            {
                "name": curve.name,
                "by": "python" if curve.mark is None else "flow",
                "seconds": _medians(of),
                "ratio": slope,
                "low": min(each_round),
                "high": max(each_round),
                "end": end,
                "rounds": len(each_round),
                "marks": marks,
            }
        )
    _print(table, sizes[-1], rounds, axis)
    record("grow", title, None, rows, axis=axis, sizes=sizes, rounds=rounds, clock=clock)
    return slopes


@dataclass
class Store:
    """Something that keeps items."""

    name: str
    fill: Callable[[int], object]
    """Keeps the given number of items, and returns the object that holds them."""
    mark: float | None = None
    """The bytes per item that it must not exceed, or None."""
    by: str = "flow"
    """As in `Case`."""
    of: Sequence[object] = (ITEM,)
    """The items to fill it with: one for all, or as many as it is to keep."""
    free: Callable[[Any], object] = lambda _: None
    """Ends it, given the result of `fill`, if it does not end when no reference to it remains."""


def weigh(title: str, *stores: Store, items: int = 50_000, unit: str = "item") -> dict[str, float]:
    """Print how many bytes are kept for each item, besides the item itself.

    The function counts the references to the items, because an empty store would weigh little.

    Args:
        title: the work that all stores do.
        stores: each is filled once.
        items: the number of items to keep.
        unit: the name of the object that holds an item, if its weight is what counts.

    Returns:
        The bytes for each item, by name.

    Raises:
        AssertionError: if a store does not hold as many items as it should keep.
    """
    table = Table(title=title, title_justify="left")
    for heading in ("case", f"bytes / {unit}", "mark"):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    found: dict[str, float] = {}
    rows: list[dict[str, object]] = []
    for store in stores:
        store.free(store.fill(10))  # create what all of them share
        gc.collect()
        references = _references(store.of)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        filled = store.fill(items)
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        held = _references(store.of) - references
        if held < items:
            raise AssertionError(f"{title}: {store.name} holds {held:,} of {items:,} items")
        store.free(filled)
        del filled
        found[store.name] = each = (after - before) / items
        met = store.mark is None or each <= store.mark
        verdict = "" if store.mark is None else f"{'≤' if met else '>'} {store.mark:.0f}"
        table.add_row(store.name, f"{each:.1f}", verdict)
        marks = [{"mark": store.mark, "value": each, "unit": "bytes", "met": met}]
        rows.append(
            {
                "name": store.name,
                "by": store.by,
                "ratio": each,
                "marks": marks if store.mark is not None else [],
            }
        )
    _print(table, items, 1, "items")
    record("weigh", title, None, rows, items=items, rounds=1)
    return found


def _references(items: Sequence[object]) -> int:
    """Return the number of references to all items, from anywhere."""
    return sum(map(sys.getrefcount, items))


def _medians(of: Sequence[Sequence[float]]) -> list[float]:
    return [statistics.median(each) for each in of]


def _end(sizes: Sequence[int], seconds: Sequence[float], floor: Sequence[float]) -> float:
    """Return how much steeper a curve is than the floor at its end."""
    return _slope(sizes[-LAST:], seconds[-LAST:]) - _slope(sizes[-LAST:], floor[-LAST:])


def _slope(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    line = statistics.linear_regression(
        [math.log(size) for size in sizes], [math.log(second) for second in seconds]
    )
    return line.slope


def _same(title: str, results: Sequence[tuple[str, object]]) -> None:
    _, expected = results[0]
    for name, found in results[1:]:
        if found != expected:
            raise AssertionError(f"{title}: {name} gave {found!r:.200}, not {expected!r:.200}")


def _time(
    title: str,
    cases: Sequence[Case],
    rounds: int,
    clock: Callable[[], float],
    same: Callable[[object], object],
) -> None:
    """Run each case once, then all of them `rounds` times in turn; compare each round's results."""
    _same(title, [(case.name, same(case.work())) for case in cases])
    for number in range(rounds):
        results: list[tuple[str, object]] = []
        for case in cases:
            if number % case.every:
                continue
            gc.collect()
            start = clock()
            result = case.work()
            case.times.append(clock() - start)
            results.append((case.name, result))
        _same(title, [(name, same(result)) for name, result in results])


def _print(table: Table, items: int, rounds: int, things: str) -> None:
    if settings.quiet:
        return
    console = Console(width=120)
    console.print(table)
    python = ".".join(map(str, sys.version_info[:3]))
    console.print(f"[dim]{items:,} {things}, {rounds} interleaved rounds, CPython {python}[/dim]\n")


def record_cases(
    title: str,
    key: str | None,
    cases: Sequence[Case],
    *,
    items: int,
    rounds: int,
    clock: Callable[[], float],
    unit: str = "item",
) -> None:
    """Record a table of cases that were timed; see `compare` for the arguments."""
    floors = {id(floor_of(case, cases)) for case in cases}
    rows: list[dict[str, object]] = []
    for case in cases:
        of = by_round(case, cases)
        ratio = statistics.median(of)
        rows.append(
            {
                "name": case.name,
                "by": "floor" if id(case) in floors else case.by,
                "beside": floor_of(case, cases).name,
                "ns": case.median / items * 1e9,
                "best_ns": min(case.times) / items * 1e9,
                "ratio": ratio,
                "low": min(of),
                "high": max(of),
                "rounds": len(of),
                "marks": case.marks(ratio, items),
            }
        )
    record("compare", title, key, rows, unit=unit, items=items, rounds=rounds, clock=clock)


def record(
    kind: str,
    title: str,
    key: str | None,
    rows: list[dict[str, object]],
    *,
    clock: Callable[[], float] | None = None,
    **more: object,
) -> None:
    """Record a table, also in the file that the environment names, if it names one.

    Args:
        kind: the function that printed it.
        title: its title.
        key: as in `compare`.
        rows: the rows for `report.py`: a name, an owner, figures, and marks.
        clock: the clock that was used.
        more: anything else that a reader has to know.
    """
    entry: dict[str, object] = {
        "kind": kind,
        "title": title,
        "key": key,
        "clock": "wall" if clock is time.perf_counter else "CPU",
        "rows": rows,
        **more,
    }
    tables.append(entry)
    if path := os.environ.get("FLOW_BENCH_RECORD"):
        with Path(path).open("a", encoding="utf-8") as file:
            print(json.dumps(entry, ensure_ascii=False), file=file)
