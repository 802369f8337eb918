"""Cases that are timed in turn, round by round: a machine that slows down slows all of them.

A figure is the median over the rounds. What is compared is a ratio to the case that is the floor:
the median of the ratios of each round, so that what slowed down both of them is in neither.
What is printed is also recorded, a line of JSON for each table, in the file that the environment
names by `FLOW_BENCH_RECORD`: `report.py` makes its pages of that.
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

PEERS = ("reactivex", "aiostream", "streamable", "streamz")
ENOUGH = 7
"""How many rounds a figure takes at least."""
MANY = 21
"""How many it takes where work is short and its mark is near to what it takes."""
LAST = 3
"""How many of the largest sizes say how something grows at its end."""
BEND = 0.05
"""How much the slope at the end may be above the floor's."""
ITEM = int("1000000007")
"""The one item that fills a store. A small integer may be immortal, and then nobody counts it."""


@dataclass
class Settings:
    """What a caller of whole scripts may change; see `guard.py`."""

    rounds: int | None = None
    """How many rounds all tables take, or None for what each says. For a quick look, the
    environment has `FLOW_BENCH_ROUNDS`."""
    peers: bool = True
    """Whether other libraries are timed."""
    quiet: bool = False
    """Whether tables are not printed."""


settings = Settings(int(os.environ.get("FLOW_BENCH_ROUNDS", "0")) or None)

tables: list[dict[str, object]] = []
"""What was recorded in this process."""


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
    by: str = "flow"
    """Whose it is: "flow", "python", "pyspark", or one of `PEERS`."""
    beside: str | None = None
    """The name of the case that is its floor, or None if that is the floor of all."""
    every: int = 1
    """In how many rounds it is timed once: more for what is slow and has no mark."""

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    def marks(self, ratio: float, items: int) -> list[dict[str, object]]:
        """What it is held to: the mark, the value, the unit of both, and whether it was met."""
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
        """Its marks, each with whether it was met."""
        return ", ".join(
            f"{'≤' if mark['met'] else '>'} {mark['mark']}{'' if mark['unit'] == '×' else ' µs'}"
            for mark in self.marks(ratio, items)
        )


def floor_of(case: Case, cases: Sequence[Case]) -> Case:
    """What a case is compared with: the one that it names, or the first."""
    if case.beside is None:
        return cases[0]
    return next(each for each in cases if each.name == case.beside)


def by_round(case: Case, cases: Sequence[Case]) -> list[float]:
    """The ratio of a case to its floor, in each round that both were timed in."""
    return ratios(case.times, floor_of(case, cases).times, case.every)


def ratios(times: Sequence[float], of_floor: Sequence[float], every: int = 1) -> list[float]:
    """What `times` are of those of a floor that were taken in the same rounds.

    Args:
        times: of a case.
        of_floor: of its floor, in each round.
        every: in how many rounds the case was timed once.
    """
    return [one / other for one, other in zip(times, of_floor[::every], strict=True)]


def python(name: str, work: Callable[[], object]) -> Case:
    """A case that needs no library."""
    return Case(name, work, by="python")


def peer(name: str, work: Callable[[], object]) -> Case:
    """A case of the library that the name begins with."""
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
    plural: str | None = None,
    key: str | None = None,
) -> dict[str, float]:
    """Time the cases in turn and print a table; the first case is the floor.

    Args:
        title: what all cases do.
        cases: the first is the floor, 1.0 by definition, of all that name no other.
        items: how many items one run handles.
        rounds: how often each case is timed; one more round goes first and is not counted. Other
            libraries, which are slow, are timed in as many as are `ENOUGH`.
        clock: CPU seconds of the process by default; `time.perf_counter` where work waits.
        same: what of a result must be equal in all cases, in each round.
        unit: what an item is called in the table.
        plural: what several are called, if an s is not all it takes.
        key: what the report and the guard know the table by; None leaves it to the details.

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
    _print(table, items, rounds, plural or f"{unit}s")
    record_cases(title, key, cases, unit=unit, items=items, rounds=rounds, clock=clock)
    return found


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
    rounds: int = ENOUGH,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, float]:
    """Time pairs in turn and print a row for each.

    Args:
        title: what all of them do; in each round all results must be equal.
        pairs: each has its own ratio.
        items: how many items one run handles.
        ways: what the first and the second of each pair are called.
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
    """Work that comes in sizes."""

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

    A small size is run so often that it handles as much as the largest: noise is the same for all.
    Who has a mark for its slope has one for the end of it, too: a line through all sizes does not
    show that the last ones bend upwards. What the floor's line does there is taken off, since more
    items than a cache holds make anything slower.

    Args:
        title: what all of them do.
        curves: their results must be equal, size by size, each time; the first is the floor.
        axis: what there are more and more of.
        sizes: how many, from few to many.
        rounds: as in `compare`.
        times: how often the largest size is run in a round; more where single runs differ.
        clock: as in `compare`.

    Returns:
        The slope of each curve by name: that of the straight line nearest to its points, in the
        middle of those of all rounds.
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
    table = Table(title=f"{title}: µs for so many {axis}", title_justify="left")
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
    """Given a number of items, keep so many, and give what holds them."""
    mark: float | None = None
    """The bytes per item that it must not exceed, or None."""
    by: str = "flow"
    """As in `Case`."""
    of: Sequence[object] = (ITEM,)
    """What it is filled with: the same one again and again, or as many as it is to keep."""
    free: Callable[[Any], object] = lambda _: None
    """What ends it, given what `fill` gave, if it does not end when nobody holds it."""


def weigh(title: str, *stores: Store, items: int = 50_000, unit: str = "item") -> dict[str, float]:
    """Print how many bytes are kept for each item beside the item itself.

    The references to what a store is filled with are counted: an empty one weighs little.

    Args:
        title: what all of them do.
        stores: each is filled once.
        items: how many are kept.
        unit: what holds an item, where that is what weighs.

    Returns:
        The bytes for each item, by name.

    Raises:
        AssertionError: if a store does not hold as many as it was told to keep.
    """
    table = Table(title=title, title_justify="left")
    for heading in ("case", f"bytes / {unit}", "mark"):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    found: dict[str, float] = {}
    rows: list[dict[str, object]] = []
    for store in stores:
        store.free(store.fill(10))  # what is made once, for all
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
    """How often all of them are referred to, from anywhere."""
    return sum(map(sys.getrefcount, items))


def _medians(of: Sequence[Sequence[float]]) -> list[float]:
    return [statistics.median(each) for each in of]


def _end(sizes: Sequence[int], seconds: Sequence[float], floor: Sequence[float]) -> float:
    """How much steeper than the floor something is at its end."""
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
    """Run each case once, then all of them `rounds` times in turn; compare what each round gave."""
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
    """Add a table of cases that were timed; see `compare` for the arguments."""
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
    """Add a table to the file that the environment names, if it names one.

    Args:
        kind: the function that has printed it.
        title: its title.
        key: as in `compare`.
        rows: what `report.py` reads: a name, whose it is, figures, and marks.
        clock: what was timed.
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
