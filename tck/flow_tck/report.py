"""The output: the tests that are running, a table, and the differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, final

from rich.markup import escape
from rich.table import Table

from flow_progress import WithProgress
from flow_tck.expected import Result
from flow_tck.subjects import Subject

__all__ = ["Report"]

BORING: Final = ("org.testng.", "java.base/", "jdk.internal.", "jdk.proxy", "org.jpype.")
"""Frames of a Java stack that say nothing about a failure."""


@final
@dataclass
class _Runs:
    """The results of one subject's runs."""

    counts: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    seconds: float = 0.0
    differences: list[str] = field(default_factory=list[str])
    bad: int = 0


@final
class Report(WithProgress):
    """Shows the progress while the context is open, and the results when `conclude` is called.

    Args:
        subjects: the subjects to verify, by name.
        repeat: how many times each is verified.
    """

    def __init__(self, subjects: Mapping[str, Subject], repeat: int) -> None:
        super().__init__(len(subjects) * repeat)
        self._subjects = subjects
        self._repeat = repeat
        self._runs = {name: _Runs() for name in subjects}
        self._unclean: list[str] = []
        self._lock = Lock()

    # -- see workers.Listener

    def running(self, subject: str, test: str) -> None:
        """Show the test that is running."""
        self.describe(escape(f"{subject}: {test}"))

    def repeated(self, subject: str, test: str) -> None:
        """Report it: it does not count as a failure, but should not happen on an idle machine."""
        self.console.print(f"{subject}: {test} is tried again", style="yellow", markup=False)

    def verified(self, subject: str, results: dict[str, Result], seconds: float) -> None:
        """Compare the results with the expected ones."""
        expected = self._subjects[subject].expected
        counted = Counter(result.status for result in results.values())
        differences = [
            "\n".join((difference, *_details(results.get(difference.partition(" ")[0]))))
            for difference in expected.differences(results)
        ]
        counts = counted["passed"], counted["failed"], counted["skipped"]
        self._ended(subject, counts, seconds, differences)

    def crashed(self, subject: str, test: str, log: str, seconds: float) -> None:
        """Count the crash as one failure."""
        text = f"the process has ended in {test}\n{_indented(log)}"
        self._ended(subject, (0, 1, 0), seconds, [text])

    def unclean(self, log: str) -> None:
        """Record it, to be shown at the end; it makes the whole run fail."""
        with self._lock:
            self._unclean.append(log)

    def _ended(
        self,
        subject: str,
        counts: tuple[int, int, int],
        seconds: float,
        differences: Sequence[str],
    ) -> None:
        with self._lock:
            runs = self._runs[subject]
            runs.counts.append(counts)
            runs.seconds += seconds
            runs.bad += bool(differences)
            lines = (text.partition("\n")[0] for text in differences)
            runs.differences += (line for line in lines if line not in runs.differences)
        self.advance()
        if differences:
            self.console.rule(f"{subject}: not as it must be", align="left", style="red")
            for text in differences:
                self.console.print(text, markup=False, highlight=False)
        elif not self.console.is_terminal:
            self.console.print(f"{subject}: as it must be", markup=False)

    # -- the end

    def conclude(self, uncovered: Sequence[str]) -> int:
        """Print the table, and everything that is wrong.

        Args:
            uncovered: the registered names without a subject, one line each.

        Returns:
            The exit code.
        """
        for runs in self._runs.values():
            if len(runs.counts) != self._repeat:
                runs.bad += 1
                runs.differences.append(f"ran {len(runs.counts)} times, not {self._repeat}")
        self.console.print(self._table())
        for name, runs in self._runs.items():
            for line in runs.differences:
                self.console.print(f"{name}: {line}", style="red", markup=False)
        for log in self._unclean:
            self.console.rule("a process has not ended as it should", align="left", style="red")
            self.console.print(log, markup=False, highlight=False)
        for line in uncovered:
            self.console.print(f"not verified: {line}", style="red", markup=False)
        wrong = uncovered or self._unclean or any(runs.bad for runs in self._runs.values())
        bad = sum(runs.bad for runs in self._runs.values())
        total = self._repeat * len(self._runs)
        passed, failed, skipped = (
            sum(counts[i] for runs in self._runs.values() for counts in runs.counts)
            for i in range(3)
        )
        self.console.print(
            f"{total - bad} of {total} subjects are as they must be "
            f"({passed} tests passed, {failed} failed, {skipped} skipped)",
            style="red" if wrong else "green",
        )
        return 1 if wrong else 0

    def _table(self) -> Table:
        table = Table("subject", title="Reactive Streams TCK 1.0.4", title_justify="left")
        for name in ("passed", "failed", "skipped", "seconds"):
            table.add_column(name, justify="right")
        table.add_column("as it must be" if self._repeat == 1 else "as it must be, of")
        for name, runs in self._runs.items():
            good = self._repeat - runs.bad
            table.add_row(
                name,
                *(_range([counts[i] for counts in runs.counts]) for i in range(3)),
                f"{runs.seconds / max(1, len(runs.counts)):.1f}",
                ("no" if runs.bad else "yes") if self._repeat == 1 else f"{good}/{self._repeat}",
                style="red" if runs.bad else None,
            )
        return table


def _range(counts: Sequence[int]) -> str:
    """Return one number if all runs agree, or else the least and the greatest."""
    least, most = min(counts, default=0), max(counts, default=0)
    return str(least) if least == most else f"{least}–{most}"


def _details(result: Result | None) -> list[str]:
    if result is None:
        return []
    stack = [
        line for line in result.stack.splitlines()[1:] if not line.strip()[3:].startswith(BORING)
    ]
    parts = (("Java", result.message), ("in Java", "\n".join(stack)), ("in Python", result.trace))
    return [f"  {title}:\n{_indented(text, 4)}" for title, text in parts if text]


def _indented(text: str, spaces: int = 2) -> str:
    return "\n".join(f"{'':{spaces}}{line.expandtabs(2)}" for line in text.splitlines())
