"""What a stage becomes where the items are in several partitions, each with a loop of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from flow_core.stages._template import Stage

__all__ = ["Translation"]

_AnyStage = Stage[Any, Any]  # Any: the types of neighbouring stages only fit each other


@final
@dataclass(frozen=True, slots=True)
class Translation:
    """A stage over all items, said as stages over parts of them and stages over what these give.

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
        partial: what runs in each partition.
        combine: what then runs over all that the partitions gave, in whatever order; with `partial`
            before it, it must give what the stage gives, for any division of the items.
        by: a key of what `partial` gives. If there is one, `combine` may as well run in many
            places, as long as all that has the same key meets in one of them.
    """

    partial: tuple[_AnyStage, ...]
    combine: tuple[_AnyStage, ...]
    by: Callable[[Any], object] | None = None
