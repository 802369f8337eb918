"""Time cases with the packages of this tree and with those of another commit, in one run.

    nox -s compare -- REF [case …]      installs both, and runs this

In each round, each commit has its own process. The two take turns, case by case, and the one that
goes first changes from round to round. A ratio is the seconds here divided by the seconds there,
both the best of 15 runs in a row: other programs can only make a run slower, so on a shared machine
the best run varies less than the median. A process is also lucky or unlucky with its memory for its
whole life, so the table shows the median of the ratios of all rounds, and their quartiles.

Seconds are CPU time where one thread does the work, and wall time where threads wait for others.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from cases import CASES, chosen

ROUNDS = 11
REPEATS = 15
"""The timed runs of each way of a case in a turn; one more goes first."""
SAME = 1.01
"""Equal code has ratios up to this; README.md says what was measured."""


class Way(NamedTuple):
    """One row of a case's table."""

    case: str
    name: str


Seconds = dict[Way, list[tuple[float, float]]]
"""The best run of each way, here and there, round by round."""


class Spread(NamedTuple):
    """The median of some ratios, and their quartiles."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, ratios: Sequence[float]) -> Spread:
        """Return the spread of at least two ratios."""
        return cls(*statistics.quantiles(ratios, n=4, method="inclusive"))

    @property
    def verdict(self) -> str:
        """Return the meaning of the ratios, in words."""
        if self.low > SAME:
            return "slower"
        return "no slower" if self.median <= SAME else "within the spread"


class CaseError(Exception):
    """The error of a case that cannot run; the message says why."""


class Tree:
    """The packages of one commit, and the process that uses them.

    Args:
        folder: the folder of the packages.
        python: the interpreter to run them.
        env: additional environment variables of the process.
    """

    def __init__(
        self, folder: Path, python: str = sys.executable, env: Mapping[str, str] | None = None
    ) -> None:
        self._folder = folder.resolve()
        self._python, self._env = python, env or {}
        self._process: subprocess.Popen[str] | None = None

    def run(self, case: str, number: int) -> dict[str, Any]:  # Any: rounds.py says what it is
        """Run a case in this round's process, and start the process for the first case.

        Args:
            case: its name.
            number: the number of the round; strings have different hashes in each round.

        Returns:
            The case's table.

        Raises:
            CaseError: if the case raises an error, or ends the process.
        """
        process = self._process or self._start(number)
        assert process.stdin
        assert process.stdout
        process.stdin.write(f"{case}\n")
        process.stdin.flush()
        if not (line := process.stdout.readline()):
            self.end()
            raise CaseError(f"its process ended with code {process.returncode}")
        answer: dict[str, Any] = json.loads(line)  # Any: what `serve` prints
        if "error" in answer:
            raise CaseError(answer["error"])
        table: dict[str, Any] = answer["table"]
        return table

    def end(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def _start(self, number: int) -> subprocess.Popen[str]:
        self._process = process = subprocess.Popen(
            (self._python, __file__, "--serve"),
            env={
                **os.environ,
                **self._env,
                "PYTHONPATH": str(self._folder),
                "PYTHONHASHSEED": str(number),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout
        origin = process.stdout.readline().strip()
        if not Path(origin).is_relative_to(self._folder):
            raise SystemExit(f"flow_core should come from {self._folder}, not from {origin!r}")
        return process


def serve() -> None:
    """Print the location of flow_core, then the table of each case that is named on stdin."""
    import rounds

    rounds.settings.rounds, rounds.settings.peers, rounds.settings.quiet = REPEATS, False, True
    spec = importlib.util.find_spec("flow_core")
    print(spec and spec.origin, flush=True)
    for line in sys.stdin:
        rounds.tables.clear()
        answer: dict[str, object]
        key = line.strip()
        try:
            run = CASES[key].load()
            gc.collect()
            gc.freeze()  # otherwise collecting what the libraries made takes most of the time
            run()
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        else:
            [table] = (table for table in rounds.tables if table["key"] == key)
            answer = {"table": table}
        print(json.dumps(answer), flush=True)


def seconds_of(table: dict[str, Any]) -> dict[str, float]:  # Any: rounds.py says what it is
    """Return the seconds of the best run of each of this library's ways."""
    return {
        row["name"]: row["best_ns"] * table["items"] / 1e9
        for row in table["rows"]
        if row["by"] == "flow"
    }


def in_turn(here: Tree, there: Tree, number: int) -> tuple[Tree, Tree]:
    """Return the trees in the order in which they run in a round."""
    return (there, here) if number % 2 else (here, there)


def measure(
    here: Tree, there: Tree, cases: Sequence[str], rounds: int
) -> tuple[Seconds, dict[str, str], dict[str, str]]:
    """Time cases on both trees, and skip a case from then on if it cannot run on one of them.

    Returns:
        The seconds, and the reasons why cases cannot run: on this tree, and on the other.
    """
    seconds: Seconds = {}
    failed: dict[Tree, dict[str, str]] = {here: {}, there: {}}
    start = time.monotonic()
    for number in range(rounds):
        for case in cases:
            if any(case in each for each in failed.values()):
                continue
            found: dict[Tree, dict[str, float]] = {}
            for tree in in_turn(here, there, number):
                try:
                    found[tree] = seconds_of(tree.run(case, number))
                except CaseError as error:
                    failed[tree][case] = str(error)
            if len(found) == 2:
                for name, second in found[here].items():
                    both = second, found[there][name]
                    seconds.setdefault(Way(case, name), []).append(both)
        here.end()
        there.end()
        passed = time.monotonic() - start
        left = passed / (number + 1) * (rounds - number - 1)
        progress = f"round {number + 1} of {rounds}: {passed:.0f} s, about {left:.0f} s left"
        print(progress, file=sys.stderr, flush=True)
    broken = failed[here].keys() | failed[there].keys()
    kept = {way: of for way, of in seconds.items() if way.case not in broken}
    return kept, failed[here], failed[there]


def show(spreads: dict[Way, Spread], seconds: Seconds, ref: str) -> None:
    """Print a row for each way."""
    table = Table(title=f"Time here / at {ref}", title_justify="left")
    for heading in ("case", "way", "ms here", "ms there", "ratio", "quartiles", "verdict"):
        left = heading in ("case", "way", "verdict")
        table.add_column(heading, justify="left" if left else "right", no_wrap=True)
    previous = ""
    for way, spread in spreads.items():
        here, there = (statistics.median(each) for each in zip(*seconds[way], strict=True))
        table.add_row(
            way.case if way.case != previous else "",
            way.name,
            f"{here * 1e3:.2f}",
            f"{there * 1e3:.2f}",
            f"{spread.median:.3f}",
            f"{spread.low:.3f}–{spread.high:.3f}",
            spread.verdict,
        )
        previous = way.case
    Console(width=140).print(table)


def main(arguments: list[str]) -> int:
    """Run the command; see the module's docstring."""
    parser = argparse.ArgumentParser(
        prog="nox -s compare --",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("ref", metavar="REF", help="the other commit")
    parser.add_argument("cases", nargs="*", metavar="case", help="what to time; all if none")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"{ROUNDS}, if not given")
    parser.add_argument("--limit", type=float, help="fail if a lower quartile is more than this")
    parser.add_argument("--here", type=Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--there", type=Path, required=True, help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args(arguments)
    if options.rounds < 2:
        parser.error("quartiles take at least two rounds")
    try:
        cases = chosen(options.cases)
    except ValueError as error:
        parser.error(str(error))
    here, there = Tree(options.here), Tree(options.there)
    seconds, failed_here, failed_there = measure(here, there, cases, options.rounds)
    spreads = {way: Spread.of([one / other for one, other in of]) for way, of in seconds.items()}
    show(spreads, seconds, options.ref)
    for case, why in failed_there.items():
        print(f"{case} cannot run at {options.ref}: {why}")
    for case, why in failed_here.items():
        print(f"{case} cannot run here: {why}")
    over = [
        f"{way.case}, {way.name}: the lower quartile is {spread.low:.3f}, over {options.limit}"
        for way, spread in spreads.items()
        if options.limit is not None and spread.low > options.limit
    ]
    print(*over, sep="\n", end="\n" if over else "")
    return 1 if over or failed_here or not seconds else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        serve()
    else:
        sys.exit(main(sys.argv[1:]))
