"""The events of one run, in order: one line per signal, as ``Trace.java`` writes it."""

from __future__ import annotations

from typing import Any, Final, final

from flow_core import (
    MissingBackpressureError,
    NoItemError,
    NoneItemError,
    ProtocolViolationError,
    TooManyItemsError,
)
from flow_oracle.functions import OracleError

__all__ = ["TooLongError", "Trace", "shown_error", "shown_item"]

LIMIT: Final = 20_000
"""The most events of a run; a run with more is not compared."""


class TooLongError(MemoryError):
    """Ends a run that would fill the memory; it is fatal, so no operator turns it into an item."""


@final
class Trace:
    """The events of one run."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self._probes = 0

    def add(self, event: str) -> None:
        """Add one event."""
        if len(self.events) >= LIMIT:
            raise TooLongError
        self.events.append(event)

    def probe(self) -> int:
        """Return a new number for a source that is subscribed to."""
        self._probes += 1
        return self._probes - 1


def shown_item(item: Any) -> str:  # Any: an int, or a list of items
    """Return an item as text, the same in both languages."""
    if isinstance(item, list | tuple):
        return f"[{','.join(map(shown_item, item))}]"
    return str(item)


def shown_error(error: BaseException) -> str:
    """Return the kind of an error as text, the same in both languages."""
    match error:
        case OracleError(number=number):
            return f"user{number}"
        case BaseExceptionGroup(exceptions=several):
            return f"several({','.join(map(shown_error, several))})"
        case NoneItemError():
            return "null"
        case NoItemError():
            return "no-item"
        case TooManyItemsError():
            return "too-many"
        case MissingBackpressureError():
            return "overflow"
        case ProtocolViolationError() if "serves one subscriber" in str(error):
            return "one-subscriber"
        case ValueError() if "3.9" in str(error):
            return "bad-request"
    return f"{type(error).__name__}:{str(error).partition(chr(10))[0]}"
