"""Cases that are timed in turn, round by round: a machine that slows down slows all of them.

A figure is the median over the rounds; what is compared is a ratio to the case that is the floor.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable
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
    times: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return statistics.median(self.times)


def compare(
    title: str,
    *cases: Case,
    items: int,
    rounds: int = 7,
    clock: Callable[[], float] = time.process_time,
    same: Callable[[object], object] = lambda result: result,
) -> dict[str, float]:
    """Time the cases in turn and print a table; the first case is the floor.

    Args:
        title: what all cases do.
        cases: the first is the floor, 1.0 by definition.
        items: how many items one run handles.
        rounds: how often each case is timed; one more round goes first and is not counted.
        clock: CPU seconds of the process by default; `time.perf_counter` where work waits.
        same: what of a result must be equal in all cases.

    Returns:
        The ratio of each case's median to the floor's, by name.
    """
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
    floor = cases[0].median
    table = Table(title=title, title_justify="left")
    for heading in ("case", "ns / item", "ratio", "spread", "mark"):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    for case in cases:
        ratio = case.median / floor
        low, high = min(case.times) / floor, max(case.times) / floor
        met = "" if case.mark is None else f"{'≤' if ratio <= case.mark else '>'} {case.mark}"
        table.add_row(
            case.name,
            f"{case.median / items * 1e9:.0f}",
            f"{ratio:.2f}",
            f"{low:.2f}–{high:.2f}",
            met,
        )
    console = Console(width=100)
    console.print(table)
    python = ".".join(map(str, sys.version_info[:3]))
    console.print(f"[dim]{items:,} items, {rounds} interleaved rounds, CPython {python}[/dim]\n")
    return {case.name: case.median / floor for case in cases}
