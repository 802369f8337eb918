"""The migration guide: each row of its tables runs in both libraries, and gives what it says."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import reactivex
from reactivex.scheduler import VirtualTimeScheduler

import flow_core as flow
from flow_rxcompat import agera
from flow_rxcompat.agera import TestLoop
from flow_testing import VirtualClock, cold

GUIDE = Path(__file__).parent.parent / "docs" / "migration.md"
TEXT = GUIDE.read_text("utf-8")
LONG_S = 1_000.0
"""Seconds of virtual time that each row gets."""


@dataclass(frozen=True)
class Row:
    """A row of a table whose columns are named by `head`."""

    head: tuple[str, ...]
    cells: dict[str, str]
    gives: tuple[str, ...]
    """Return the cells of the columns named `gives`, from left to right."""

    def __str__(self) -> str:
        return next(iter(self.cells.values()))


def rows() -> Iterator[Row]:
    """Yield the rows of all tables whose first column holds code."""
    head: list[str] = []
    for line in TEXT.splitlines():
        if not line.startswith("|"):
            head = []
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not head:
            head = cells
        elif not set(line) <= set("|- :"):
            pairs = list(zip(head, map(code, cells), strict=True))
            yield Row(
                tuple(head),
                {name: cell for name, cell in pairs if name != "gives"},
                tuple(cell for name, cell in pairs if name == "gives"),
            )


def code(cell: str) -> str:
    return cell.strip("`").replace("\\|", "|")


ROWS = list(rows())


def rows_of(*head: str) -> pytest.MarkDecorator:
    found = [row for row in ROWS if row.head[: len(head)] == head]
    assert found, f"no table begins with {head}"
    return pytest.mark.parametrize("row", found, ids=str)


# -- running


def prepared() -> dict[str, Any]:
    """The names that the blocks of the guide define."""
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE):
        exec(compile(block, str(GUIDE), "exec"), names)
    return names


NAMES = prepared()


@dataclass
class Outcome:
    """The result of a row: items with the time of each, and the end."""

    items: list[tuple[float, Any]] = field(default_factory=list)
    end: str = "never"

    def completed(self) -> None:
        self.end = "completed"

    def failed(self, error: BaseException) -> None:
        self.end = type(error).__name__

    def check(self, gives: str) -> None:
        """It is what the guide says: a list, a list and an error, or items by their time."""
        said = eval(gives, NAMES)
        end = "completed"
        if isinstance(said, tuple):
            said, ended = said
            end = ended if isinstance(ended, str) else ended.__name__
        if isinstance(said, dict):
            got: object = dict(self.items)
        else:
            got = [item for _, item in self.items]
        assert (got, self.end) == (said, end)


def run(snippet: str) -> Outcome:
    """Run a snippet, which makes an Observable, a flow or a plain value, in virtual time.

    Statements before the last expression end with a semicolon. What it raises is its end.
    """
    scheduler, clock, loop = VirtualTimeScheduler(), VirtualClock(), TestLoop()
    names = NAMES | {
        "scheduler": scheduler,
        "clock": clock,
        "loop": loop,
        "rx_ticks": reactivex.from_marbles("-1-2---3-4|", 1.0, scheduler),
        "ticks": cold("-1-2---3-4|", clock=clock).flow,
    }
    outcome = Outcome()

    def rx_next(item: object) -> None:
        outcome.items.append((round(scheduler.to_seconds(scheduler.now), 3), item))

    def flow_next(item: object) -> None:
        outcome.items.append((round(clock.now(), 3), item))

    *statements, last = [part.strip() for part in snippet.split(";")]
    with loop:
        try:
            for statement in statements:
                exec(statement, names)
            made = eval(last, names)
        except Exception as error:
            outcome.failed(error)
            return outcome
        if isinstance(made, reactivex.Observable):
            made.subscribe(rx_next, outcome.failed, outcome.completed)
            scheduler.advance_to(LONG_S)
        elif isinstance(made, flow.Flow):
            made.subscribe(flow_next, outcome.failed, outcome.completed)
            clock.advance_by(LONG_S)
        else:
            outcome.items.append((0.0, made))
            outcome.completed()
    return outcome


# -- the tables


@pytest.mark.parametrize("module", ["reactivex", "reactivex.operators"])
def test_the_guide_has_every_name_of_theirs(module: str) -> None:
    found = importlib.import_module(module)
    known = set(re.findall(r"\w+", TEXT))
    names = {name for name in found.__all__ if name[0].islower()} - {"abc", "typing", "pipe"}
    assert sorted(names - known) == []


def test_most_of_their_methods_are_methods_here() -> None:
    theirs, ours = (
        {name for name in dir(cls) if not name.startswith("_")}
        for cls in (reactivex.Observable, flow.Flow)
    )
    assert len(theirs & ours) >= 95


AGERA = (
    agera.binders,
    agera.conditions,
    agera.functions,
    agera.mergers,
    agera.observables,
    agera.predicates,
    agera.receivers,
    agera.repositories,
    agera.reservoirs,
    agera.suppliers,
    agera.ActivationHandler,
    agera.Observable,
    agera.MutableRepository,
    agera.RepositoryConfig,
    agera.Result,
    agera.functions.FItem,
    agera.functions.FList,
    agera.REventSource,
    agera.RFrequency,
    agera.RFlow,
    agera.RSyncFlow,
    agera.RTermination,
    agera.RTerminationOrContinue,
    agera.RConfig,
)
"""Modules and classes: what code that uses Agera calls."""


@pytest.mark.parametrize("holder", AGERA, ids=lambda holder: holder.__name__)
def test_the_guide_has_every_name_of_agera(holder: Any) -> None:
    section = TEXT[TEXT.index("## From Agera") :]
    names = {name for name in getattr(holder, "__all__", vars(holder)) if name[0] != "_"}
    types = {name for name in names if isinstance(getattr(holder, name), type)}
    assert sorted(names - types - set(re.findall(r"\w+", section))) == []


@rows_of("RxPY", "Flow")
def test_both_give_the_same_at_the_same_time(row: Row) -> None:
    theirs, ours = run(row.cells["RxPY"]), run(row.cells["Flow"])
    assert theirs == ours
    assert theirs.items or "empty" in str(row) or "never" in str(row) or theirs.end != "completed"


@rows_of("RxPY", "gives", "Flow", "gives")
def test_both_give_what_is_said_and_differ(row: Row) -> None:
    run(row.cells["RxPY"]).check(row.gives[0])
    run(row.cells["Flow"]).check(row.gives[1])
    assert row.gives[0] != row.gives[1]


@rows_of("RxJava", "Flow", "gives")
def test_the_python_of_a_java_row_gives_what_is_said(row: Row) -> None:
    run(row.cells["Flow"]).check(row.gives[0])


@rows_of("Java Flow", "Flow", "gives")
def test_the_python_of_a_row_of_java_flow_gives_what_is_said(row: Row) -> None:
    run(row.cells["Flow"]).check(row.gives[0])


@rows_of("Java", "Python")
def test_the_python_name_exists(row: Row) -> None:
    assert eval(row.cells["Python"], NAMES) is not None


@rows_of("Agera", "Flow", "gives")
def test_agera_and_flow_give_what_is_said(row: Row) -> None:
    run(row.cells["Agera"]).check(row.gives[0])
    run(row.cells["Flow"]).check(row.gives[0])


@rows_of("Agera", "gives", "Flow", "gives")
def test_agera_and_flow_give_what_is_said_and_differ(row: Row) -> None:
    run(row.cells["Agera"]).check(row.gives[0])
    run(row.cells["Flow"]).check(row.gives[1])
    assert row.gives[0] != row.gives[1]
