"""Time cases on each Python in one run, and put a row for each into the report.

    nox -s bench_pythons          makes an environment for each that is installed, and runs this

In each round each Python has a process of its own, which runs all cases; who goes first changes
from round to round. A process times each case beside its floor, in turn, as the report does. What
is kept is the median of all rounds, of the ratio and of the time of an item.
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

ROUNDS = 5
"""Processes of each Python."""

Found = dict[str, dict[str, list[dict[str, Any]]]]  # Any: rows of a table; rounds.py says what
"""The rows of each case, of all rounds, by the name of the Python and the key of the case."""


def main(arguments: list[str] | None = None) -> int:
    """See the module."""
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
    trees = {name: tree_of(name, Path(folder)) for name, folder in options.python}
    found = measure(trees, [key for key, _ in pages.ON_EACH_PYTHON], options.rounds)
    recorded = options.output / "results.json"
    results = json.loads(recorded.read_text("utf-8"))
    results["pythons"] = {name: medians(rows) for name, rows in found.items()}
    report.write(results, options.output)
    return 0


def tree_of(name: str, environment: Path) -> Tree:
    """The packages of an environment, and its interpreter."""
    env = {"PYTHON_JIT": "1"} if "JIT" in name else {}
    return Tree(environment, str(environment / "bin" / "python"), env)


def measure(trees: dict[str, Tree], keys: Sequence[str], rounds: int) -> Found:
    """Run each case on each Python, `rounds` times."""
    found: Found = {name: {key: [] for key in keys} for name in trees}
    start = time.monotonic()
    names = list(trees)
    for number in range(rounds):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            for key in found[name]:
                found[name][key] += trees[name].run(key, number)["rows"]
            trees[name].end()
        passed = time.monotonic() - start
        left = passed / (number + 1) * (rounds - number - 1)
        progress = f"round {number + 1} of {rounds}: {passed:.0f} s, about {left:.0f} s left"
        print(progress, file=sys.stderr, flush=True)
    return found


def medians(found: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """What the report shows: the ratio of a way to its floor, and the nanoseconds of an item."""
    return [
        {
            "case": key,
            "way": way,
            **{
                figure: statistics.median(row[figure] for row in found[key] if row["name"] == way)
                for figure in ("ratio", "ns")
            },
        }
        for key, way in pages.ON_EACH_PYTHON
    ]


if __name__ == "__main__":
    sys.exit(main())
