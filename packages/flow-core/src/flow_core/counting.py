"""Show the progress of something: a count, and the displays of the installed packages."""

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
    """A count: one thread increases it, and the thread of a display reads it now and then.

    Attributes:
        count: how many there are so far.
        total: the expected count; None if it is not known. It may change.
        unit: the name of what is counted, in the plural.
        note: a text that is shown after the count; it may change.
        shown: whether a display shows this count.
        stopped: whether the count was asked to end early; an error that ends it is not a failure
            then.
    """

    __slots__ = ("count", "note", "shown", "stopped", "total", "unit")

    def __init__(self, total: int | None = None, unit: str = "rows") -> None:
        self.count = 0
        self.total = total
        self.unit: Final = unit
        self.note = ""
        self.shown = self.stopped = False


class Outcome(enum.Enum):
    """The ways in which a count can end."""

    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


@runtime_checkable
class Display(Protocol):
    """Shows the structure and the progress of a flow to a user: on a terminal, in a notebook.

    flow-cli has one. Another package registers its own display as a
    `flow_core.plugins.DisplaySpec`.
    """

    @abstractmethod
    def add(self, counter: Counter, label: str) -> None:
        """Show `counter` until it ends, and set its attribute ``shown``.

        Do nothing if no person would see it.

        Thread: any; `end` may also be called in any thread.

        Args:
            counter: the count; it continues while it is shown.
            label: the name of the count.
        """

    @abstractmethod
    def end(self, counter: Counter, outcome: Outcome) -> None:
        """Show the count for the last time. Further calls have no effect.

        Args:
            counter: the count; it may be one that is not shown.
            outcome: how the count has ended.
        """

    @abstractmethod
    def drawn(self, flow: Flow[Any]) -> Mapping[str, str]:  # Any: items of any type
        """Return drawings of a flow by their MIME types, for a notebook.

        This does not run the flow.

        Args:
            flow: any flow.
        """


@contextlib.contextmanager
def counting(
    label: str, total: int | None = None, *, unit: str = "rows"
) -> Generator[Counter, None, None]:
    """Show a count that a ``with`` block increases, if there is a display.

    >>> with counting("rows") as rows:
    ...     for row in "abc":
    ...         rows.count += 1
    >>> rows.count
    3

    The display of flow-cli is a bar with the count and the speed, on a terminal or below a
    notebook's cell. To count the items of a flow, use `flow_cli.progress.progress`.

    Args:
        label: the name of the count.
        total: the expected count; None if it is not known.
        unit: the name of what is counted, in the plural.
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
