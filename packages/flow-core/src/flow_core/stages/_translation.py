"""The translation of a stage for items in several partitions, each with a separate loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from flow_core.stages._template import Stage

__all__ = ["Translation"]

_AnyStage = Stage[Any, Any]  # Any: the types of neighbouring stages need only fit each other


@final
@dataclass(frozen=True, slots=True)
class Translation:
    """A stage over all items, as stages in each partition and stages over the results of these.

    >>> import operator
    >>> from flow_core.stages import UNSET, Program
    >>> from flow_core.stages._aggregate import COUNT, REDUCE_FROM
    >>> counted = Translation((Stage(COUNT),), (Stage(REDUCE_FROM, operator.add, 0),))
    >>> parts = [Program(counted.partial).iterate(iter(part)) for part in ("abc", "", "d")]
    >>> [list(part) for part in parts]
    [[3], [0], [1]]
    >>> list(Program(counted.combine).iterate(iter([3, 0, 1])))
    [4]

    Attributes:
        partial: the stages in each partition.
        combine: the stages over the results of all partitions, in any order. `partial` and then
            `combine` must have the same result as the stage, however the items are divided.
        by: returns a key for a result of `partial`. With a key, `combine` may also run in several
            places, as long as all results with the same key are in one of them.
    """

    partial: tuple[_AnyStage, ...]
    combine: tuple[_AnyStage, ...]
    by: Callable[[Any], object] | None = None
