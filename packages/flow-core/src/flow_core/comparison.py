"""A predicate as data: it compares an item, or a part of the item, with a value.

Pipelines use it. It is in the core, because a cluster's workers have no other package of the
library.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, final

__all__ = ["RELATIONS", "Comparison"]


def _one_of(item: object, values: Sequence[object]) -> object:
    return item in values


_Relation = Callable[[Any, Any], object]  # Any: an item and a value of any type
RELATIONS: Final = MappingProxyType[str, _Relation](
    {
        "equals": operator.eq,
        "not_equals": operator.ne,
        "less_than": operator.lt,
        "at_most": operator.le,
        "greater_than": operator.gt,
        "at_least": operator.ge,
        "one_of": _one_of,
    }
)
"""The functions that compare an item and a value, by their names."""

_ORDERED: Final = frozenset({"less_than", "at_most", "greater_than", "at_least"})


@final
@dataclass(frozen=True)
class Comparison:
    """A predicate that compares an item, or a part of it, with a value.

    None is neither less nor greater than anything: an empty field fails each comparison by order.

    Args:
        relation: a name in `RELATIONS`, such as ``at_least``.
        value: the value to compare with.
        part: returns the part of the item to compare; None to compare the item itself.
        part_name: the name of that part, for messages.
    """

    relation: str
    value: object
    part: Callable[[object], object] | None = None
    part_name: str = ""

    def __call__(self, item: object) -> bool:
        """Return True if `item` passes the comparison."""
        found = item if self.part is None else self.part(item)
        if found is None and self.relation in _ORDERED:
            return False
        return bool(RELATIONS[self.relation](found, self.value))

    @property
    def __name__(self) -> str:
        return f"{self.part_name} {self.relation} {self.value!r}".lstrip()
