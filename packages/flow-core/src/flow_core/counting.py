"""Show how far something is: a count, and the displays of the installed packages that show it."""

from __future__ import annotations

import contextlib
import enum
from abc import abstractmethod
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from flow_core import late

if TYPE_CHECKING:
    from flow_core.flow import Flow

__all__ = ["Counter", "Display", "Outcome", "counting"]


class Counter:
    """What is counted: raised by one thread, and read now and then by that of a display.

    Attributes:
        count: how much there has been.
        total: how much is expected; None if it is not known. It may change.
        unit: what one of them is called, in the plural.
        note: what stands behind the count; it may change.
        shown: whether a display shows it.
        stopped: whether it was told to end early, so that an error that ends it is not a failure.
    """

    __slots__ = ("count", "note", "shown", "stopped", "total", "unit")

    def __init__(self, total: int | None = None, unit: str = "rows") -> None:
        self.count = 0
        self.total = total
        self.unit: Final = unit
        self.note = ""
        self.shown = self.stopped = False


class Outcome(enum.Enum):
    """How something that was counted has ended."""

    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


@runtime_checkable
class Display(Protocol):
    """Shows people what a flow is, and how far it is: on a terminal, in a notebook.

    flow-cli brings one. A package registers its own as a `flow_core.plugins.DisplaySpec`.
    """

    @abstractmethod
    def add(self, counter: Counter, label: str) -> None:
        """Show a count until it ends, and set its ``shown``; do nothing where nobody would see it.

        Thread: any, as `end`.

        Args:
            counter: the count, which goes on.
            label: what is counted.
        """

    @abstractmethod
    def end(self, counter: Counter, outcome: Outcome) -> None:
        """Show the last count, and no more of it. Idempotent.

        Args:
            counter: the count; it may be one that is not shown.
            outcome: how it has ended.
        """

    @abstractmethod
    def drawn(self, flow: Flow[Any]) -> Mapping[str, str]:  # Any: of whatever items
        """Return drawings of a flow by their MIME types, for a notebook. Nothing of it runs.

        Args:
            flow: any flow.
        """


@contextlib.contextmanager
def counting(
    label: str, total: int | None = None, *, unit: str = "rows"
) -> Generator[Counter, None, None]:
    """Show a count that a ``with`` block raises, if there is a display.

    >>> with counting("rows") as rows:
    ...     for row in "abc":
    ...         rows.count += 1
    >>> rows.count
    3

    The display of flow-cli is a bar with the count and its speed, on a terminal or below a
    notebook's cell. `flow_cli.progress.progress` counts the items of a flow.

    Args:
        label: what is counted.
        total: how many are expected; None if it is not known.
        unit: what one of them is called, in the plural.
    """
    counter = Counter(total, unit)
    outcome, used = Outcome.STOPPED, [*late.plugin_host().each_display()]
    try:
        for display in used:
            display.add(counter, label)
        yield counter
        outcome = Outcome.DONE
    except Exception:
        outcome = Outcome.STOPPED if counter.stopped else Outcome.FAILED
        raise
    finally:
        for display in used:
            display.end(counter, outcome)
