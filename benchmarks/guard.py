"""Fail if a ratio to the floor is half as bad again as the recorded one.

    python benchmarks/guard.py             compare, in less than a minute
    python benchmarks/guard.py --record    record the ratios as the new measure for this Python
    python benchmarks/guard.py --once      run each case once, and compare no ratios

It compares ratios, never seconds: the floor is timed beside each case, round by round, on the same
machine. A case beyond its limit is timed once more, with more rounds, because a shared machine has
bad moments.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import rounds
from cases import CASES, chosen

RECORDED = Path(__file__).with_name("recorded.json")
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
WORSE = 1.5
ROUNDS, ROUNDS_AGAIN = 7, 21

Ratios = dict[str, dict[str, float]]
"""Ratios by the key of a table, and the name of a case of this library."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command; see the module's docstring."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("keys", nargs="*", metavar="key", help="tables of the report; all if none")
    parser.add_argument("--record", action="store_true", help="record the ratios found")
    parser.add_argument("--once", action="store_true", help="run each case once, check no limit")
    options = parser.parse_args(arguments)
    try:
        keys = chosen(options.keys)
    except ValueError as error:
        parser.error(str(error))
    rounds.settings.peers = False
    rounds.settings.quiet = True
    start = time.monotonic()
    if options.record:
        record(measure(keys, ROUNDS_AGAIN))
        return 0
    worse, count = (math.inf, 1) if options.once else (WORSE, ROUNDS)
    limits = {key: {name: worse * ratio for name, ratio in recorded(key).items()} for key in keys}
    found = measure(keys, count)
    again = [key for key in keys if over(found[key], limits[key])]
    found |= measure(again, ROUNDS_AGAIN)
    bad = [key for key in keys if over(found[key], limits[key])]
    if not options.once:
        show(found, limits, again)
    print(f"{len(keys)} cases, {len(again)} timed again, {time.monotonic() - start:.0f} s")
    for key in bad:
        for name in over(found[key], limits[key]):
            print(f"{key}, {name}: {problem(found[key].get(name), limits[key].get(name))}")
    return 1 if bad else 0


def measure(keys: list[str], count: int) -> Ratios:
    """Time cases, and return the ratios of this library."""
    rounds.settings.rounds = count
    found: Ratios = {}
    for key in keys:
        rounds.tables.clear()
        CASES[key].load()()
        [table] = (table for table in rounds.tables if table["key"] == key)
        rows: Any = table["rows"]  # Any: rounds.py says what it is
        found[key] = {row["name"]: row["ratio"] for row in rows if row["by"] == "flow"}
    return found


def recorded(key: str) -> dict[str, float]:
    """Return the recorded ratios: those of this Python, or the worst of all others."""
    all_of_them: dict[str, Ratios] = json.loads(RECORDED.read_text("utf-8"))
    if PYTHON in all_of_them:
        return all_of_them[PYTHON].get(key, {})
    worst: dict[str, float] = {}
    for ratios in all_of_them.values():
        for name, ratio in ratios.get(key, {}).items():
            worst[name] = max(ratio, worst.get(name, 0))
    return worst


def record(found: Ratios) -> None:
    """Write ratios to the file, for this Python."""
    kept: dict[str, Ratios] = json.loads(RECORDED.read_text("utf-8")) if RECORDED.exists() else {}
    for key, ratios in found.items():
        kept.setdefault(PYTHON, {})[key] = {name: round(ratio, 2) for name, ratio in ratios.items()}
    RECORDED.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n", "utf-8")


def over(found: dict[str, float], limits: dict[str, float]) -> list[str]:
    """Return the cases that exceed their limit, have none, or were not found."""
    return [
        name
        for name in {**found, **limits}
        if name not in limits or name not in found or found[name] > limits[name]
    ]


def problem(ratio: float | None, limit: float | None) -> str:
    """Describe the problem with a ratio, in words."""
    if limit is None:
        return "nothing is recorded for it; if it is new: guard.py --record"
    if ratio is None:
        return "it is recorded, but is not there any more; if that is meant: guard.py --record"
    was = limit / WORSE
    return f"{ratio:.2f} times its floor, and was {was:.2f}: {ratio / was:.1f} times as bad"


def show(found: Ratios, limits: Ratios, again: list[str]) -> None:
    """Print a row for each case."""
    table = Table(title=f"Ratios to the floor, limits {WORSE} times the recorded ones")
    for heading in ("case", "way", "recorded", "now", "now / recorded", ""):
        table.add_column(heading, justify="left" if heading in ("case", "way") else "right")
    for key, ratios in found.items():
        for name, ratio in ratios.items():
            limit = limits[key].get(name)
            was = "" if limit is None else f"{limit / WORSE:.2f}"
            share = "" if limit is None else f"{ratio / limit * WORSE:.2f}"
            worse = limit is None or ratio > limit
            verdict = "worse" if worse else "timed again" if key in again else ""
            table.add_row(key, name, was, f"{ratio:.2f}", share, verdict)
    Console(width=120).print(table)


if __name__ == "__main__":
    sys.exit(main())
