"""Types of the items that operators of other packages emit.

They are defined here, so that all packages can name them.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar, final

from flow_core.flow import Flow
from flow_core.protocols import IterableSource, Publisher

__all__ = ["FailureHandling", "FailurePolicy", "GroupedFlow", "TimeInterval", "Timestamped"]

T = TypeVar("T")
K_co = TypeVar("K_co", covariant=True)
V_co = TypeVar("V_co", covariant=True)


@final
class GroupedFlow(Flow[V_co], Generic[K_co, V_co]):
    """A flow of items that share a key; its operators return a plain `Flow`.

    >>> import flow_core as flow
    >>> group = GroupedFlow("even", flow.just(2, 4))
    >>> group.key, list(group.map(str))
    ('even', ['2', '4'])

    Args:
        key: the key that all items have.
        source: the source of the items; the one that `group_by` passes accepts only one subscriber.
    """

    __slots__ = ("key",)

    def __init__(self, key: K_co, source: Publisher[V_co] | IterableSource[V_co]) -> None:
        super().__init__(source)
        self.key: Final = key

    def __repr__(self) -> str:
        return f"GroupedFlow({self.key!r})"


class Timestamped(NamedTuple, Generic[T]):
    """An item, and the time at which it came."""

    item: T
    time_s: float
    """The time that the operator's clock showed. The clock of the process counts from a moment that
    the machine chooses."""


class TimeInterval(NamedTuple, Generic[T]):
    """An item, and the time since the item before it."""

    item: T
    interval_s: float
    """Seconds since the item before, or since the subscription for the first item."""


@final
class FailureHandling(Enum):
    """The reaction of a rail of a `ParallelFlow` when the function of `map` or `filter` raises."""

    ERROR = auto()
    """The rail fails."""
    STOP = auto()
    """The rail completes; the other rails get the further items."""
    SKIP = auto()
    """The item is left out."""
    RETRY = auto()
    """The function is called again with the same item; if it always raises, this never ends."""


FailurePolicy: TypeAlias = FailureHandling | Callable[[int, BaseException], FailureHandling]
"""A `FailureHandling`, or a function that returns one; it gets the number of tries so far with this
item, and the error."""
