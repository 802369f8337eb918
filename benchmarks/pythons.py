"""Time cases on each Python in one run, and add a row for each to the report.

    nox -s bench_pythons          make an environment for each installed Python, and run this

In each round, each Python has its own process. They take turns, case by case, and the one that goes
first changes from round to round. A process times a case beside its floor, in turn, as the report
does; its times are compared with those of the report's Python in the same round. The result is the
median of all rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pages
import report
from compare import Tree

ROUNDS = 7
"""The number of processes of each Python."""

Rows = dict[str, list[dict[str, Any]]]  # Any: rounds.py says what a row is
"""The rows of all rounds, by the key of the case."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command; see the module's docstring."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--python",
        nargs=2,
        action="append",
        required=True,
        metavar=("NAME", "FOLDER"),
        help="an environment with the packages; if its name has JIT in it, the JIT is on",
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"{ROUNDS}, if not given")
    parser.add_argument("--output", type=Path, default=report.DOCS, help="the folder of the pages")
    options = parser.parse_args(arguments)
    keys = list(dict.fromkeys(key for key, _ in pages.ON_EACH_PYTHON))
    trees = {name: tree_of(name, Path(folder)) for name, folder in options.python}
    found = measure(trees, keys, options.rounds)
    recorded = options.output / "results.json"
    results = json.loads(recorded.read_text("utf-8"))
    beside = found[pages.version_of(results)]
    results["pythons"] = {name: medians(rows, beside) for name, rows in found.items()}
    report.write_pages(results, options.output)
    return 0


def tree_of(name: str, environment: Path) -> Tree:
    """Return the packages of an environment, and its interpreter."""
    env = {"PYTHON_JIT": "1"} if "JIT" in name else {}
    return Tree(environment, str(environment / "bin" / "python"), env)


def measure(trees: dict[str, Tree], keys: Sequence[str], rounds: int) -> dict[str, Rows]:
    """Run each case on each Python, `rounds` times."""
    found: dict[str, Rows] = {name: {key: [] for key in keys} for name in trees}
    start = time.monotonic()
    names = list(trees)
    for number in range(rounds):
        first = number % len(names)
        for key in keys:
            for name in names[first:] + names[:first]:
                found[name][key] += trees[name].run(key, number)["rows"]
        for tree in trees.values():
            tree.end()
        passed = time.monotonic() - start
        left = passed / (number + 1) * (rounds - number - 1)
        progress = f"round {number + 1} of {rounds}: {passed:.0f} s, about {left:.0f} s left"
        print(progress, file=sys.stderr, flush=True)
    return found


def medians(found: Rows, beside: Rows) -> list[dict[str, Any]]:
    """Return the ratio of each way to its floor, and its time in units of that of `beside`."""
    of: list[dict[str, Any]] = []
    for key, way in pages.ON_EACH_PYTHON:
        here, there = ([row for row in each[key] if row["name"] == way] for each in (found, beside))
        times = [row["ns"] / other["ns"] for row, other in zip(here, there, strict=True)]
        ratio = statistics.median(row["ratio"] for row in here)
        of.append({"case": key, "way": way, "ratio": ratio, "time": statistics.median(times)})
    return of


if __name__ == "__main__":
    sys.exit(main())
