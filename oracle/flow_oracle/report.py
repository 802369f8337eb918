"""The output: the progress, what was compared, and the differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import zip_longest
from time import monotonic
from typing import Final, final

from rich.progress import TimeRemainingColumn
from rich.table import Table

from flow_oracle.compare import Oracle
from flow_oracle.decisions import DECISIONS, Kind, names
from flow_oracle.language import Node, text
from flow_oracle.orders import Order
from flow_oracle.reducing import reduced
from flow_progress import WithProgress

__all__ = ["Report"]

MOST_SHOWN: Final = 12
"""The number of differences that are reduced and shown, the smallest first."""

_KNOWN: Final = {
    Order.FIXED: "the items in order",
    Order.ANY: "the items in any order",
    Order.COUNT: "how many items",
    Order.UNKNOWN: "the rules alone",
}
"""The properties of a case that are compared when a changed version is compared in full."""


@final
class Report(WithProgress):
    """Checks cases and shows the progress while the context is open; `conclude` shows the rest.

    Args:
        oracle: compares the cases.
        total: the expected number of cases.
    """

    def __init__(self, oracle: Oracle, total: int) -> None:
        super().__init__(total, TimeRemainingColumn())
        self._oracle = oracle
        self._total = total
        self._different: list[Node] = []
        self._counts = Counter[str]()
        self._decided = Counter[str]()
        self._drawn = Counter[str]()
        self._known = Counter[Order]()
        self._begun = monotonic()

    def check(self, case: Node) -> None:
        """Compare a case, and record the result."""
        made = self._oracle.compare(case)
        drawn = names(case[1])
        self._drawn.update(drawn)
        self._decided.update(made.decided)
        self._decided.update(
            name
            for name, decision in DECISIONS.items()
            if decision.kind is Kind.REFERENCE and drawn & decision.operators
        )
        self._counts["pipelines"] += 1
        self._counts["without end"] += made.endless
        self._counts["event by event"] += made.exact
        if made.known is not None:
            self._known[made.known] += 1
        if made.difference:
            self._different.append(case)
        count = len(self._different)
        self.advance()
        self.describe(f"[red]{count} differ" if count else "")

    def conclude(self, wanted: Iterable[str]) -> int:
        """Print what was compared, and what differs.

        Args:
            wanted: names that must have been drawn.

        Returns:
            The exit code: 1 if something differs, if one of these was not drawn, or if there were
            not as many cases as there should be.
        """
        seconds = monotonic() - self._begun
        self.console.print(self._table())
        for case in sorted(self._different, key=lambda case: len(text(case)))[:MOST_SHOWN]:
            self._show(reduced(case, lambda part: bool(self._oracle.compare(part).difference)))
        missing = sorted(set(wanted) - set(self._drawn))
        for name in missing:
            self.console.print(f"never drawn: {name}", style="red", markup=False)
        made = self._counts["pipelines"]
        if made != self._total:
            self.console.print(
                f"{self._total} pipelines were asked for, {made} were drawn", style="red"
            )
        count = len(self._different)
        wrong = bool(count or missing or made != self._total)
        self.console.print(
            f"{made} pipelines of {len(self._drawn)} operators and sources in "
            f"{seconds:.0f} s: {count} unexplained differences",
            style="red" if wrong else "green",
            highlight=False,
        )
        return 1 if wrong else 0

    def _table(self) -> Table:
        table = Table("compared", title="This library and RxJava 3", title_justify="left")
        table.add_column("pipelines", justify="right")
        counts = self._counts
        table.add_row("all", str(counts["pipelines"]))
        table.add_row("event by event, with what sources see", str(counts["event by event"]))
        table.add_row("too long on both sides, not compared", str(counts["without end"]))
        for known, what in _KNOWN.items():
            table.add_row(f"as another run, and also {what}", str(self._known[known]))
        table.add_section()
        for name, decision in DECISIONS.items():
            table.add_row(f"{name} ({decision.kind.value})", str(self._decided[name]))
        return table

    def _show(self, case: Node) -> None:
        made = self._oracle.compare(case)
        self.console.rule(f"{made.difference}", align="left", style="red")
        self.console.print(text(case), markup=False, highlight=False, soft_wrap=True)
        for ours, theirs in zip_longest(made.ours, made.theirs, fillvalue=""):
            mark = "" if ours == theirs else " <"
            self.console.print(f"  {ours:40} {theirs:40}{mark}", markup=False, highlight=False)
