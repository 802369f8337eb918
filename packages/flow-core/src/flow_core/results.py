"""What operators of other packages give and take: the types are here, so that all can name them."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Generic, NamedTuple, TypeAlias, TypeVar, final

__all__ = ["FailureHandling", "FailurePolicy", "TimeInterval", "Timestamped"]

T = TypeVar("T")


class Timestamped(NamedTuple, Generic[T]):
    """An item, and when it came."""

    item: T
    time_s: float
    """The time of the operator's clock. That of the process counts from a moment of its machine."""


class TimeInterval(NamedTuple, Generic[T]):
    """An item, and how long after the one before it came."""

    item: T
    interval_s: float
    """Seconds since the item before, or since the subscription."""


@final
class FailureHandling(Enum):
    """What a rail of a `ParallelFlow` does when the function of `map` or `filter` raises."""

    ERROR = auto()
    """The rail fails."""
    STOP = auto()
    """The rail completes; the other rails get what still comes."""
    SKIP = auto()
    """The item is left out."""
    RETRY = auto()
    """The function is called again with the same item; without bound, if it always raises."""


FailurePolicy: TypeAlias = FailureHandling | Callable[[int, BaseException], FailureHandling]
"""One of them; or a function of how often it has been tried with this item, and of the error."""
