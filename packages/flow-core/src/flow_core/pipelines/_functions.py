"""Functions that a pipeline's file can say without naming one: an item's part, and comparisons."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, cast, final

from flow_core.pipelines._document import as_list

__all__ = ["FORMS", "Comparison", "function_of"]

_GETTERS: Final = ("item", "attribute")


def _one_of(item: object, values: Sequence[object]) -> object:
    return item in values


_Relation = Callable[[Any, Any], object]  # Any: an item and a value of whatever types
_COMPARISONS: Final = MappingProxyType[str, _Relation](
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
_ORDERED: Final = frozenset({"less_than", "at_most", "greater_than", "at_least"})

FORMS: Final = (*_GETTERS, *_COMPARISONS)
"""The keys of a table that is a function."""


@final
@dataclass(frozen=True)
class Comparison:
    """A predicate: an item, or a part of it, compared with a value.

    None is neither less nor greater than anything: an empty field passes no comparison of order.

    Args:
        relation: the key of the file, such as ``at_least``.
        value: what is compared with.
        part: what of the item is compared; None for the item itself.
        part_name: that part, for messages.
    """

    relation: str
    value: object
    part: Callable[[object], object] | None = None
    part_name: str = ""

    def __call__(self, item: object) -> bool:
        """Whether `item` passes."""
        found = item if self.part is None else self.part(item)
        if found is None and self.relation in _ORDERED:
            return False
        return bool(_COMPARISONS[self.relation](found, self.value))

    @property
    def __name__(self) -> str:
        return f"{self.part_name} {self.relation} {self.value!r}".lstrip()


def function_of(table: Mapping[str, object]) -> Callable[..., object]:
    """The function that a table of `FORMS` stands for.

    >>> function_of({"item": "delay", "at_least": 15})({"delay": 20})
    True
    >>> function_of({"item": ["a", "b"]})({"a": 1, "b": 2})
    (1, 2)

    Args:
        table: ``item`` or ``attribute``, or one of the comparisons, or one of each.

    Raises:
        ValueError: if it is none; says why.
    """
    unknown = [key for key in table if key not in FORMS]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is no part of a function")
    getters = [key for key in table if key in _GETTERS]
    relations = [key for key in table if key in _COMPARISONS]
    if len(getters) > 1 or len(relations) > 1:
        two = getters if len(getters) > 1 else relations
        raise ValueError(f"{' and '.join(map(repr, two))} cannot be one function")
    if not getters and not relations:
        raise ValueError("an empty table is no function")
    getter = _getter(getters[0], table[getters[0]]) if getters else None
    if not relations:
        return cast("Callable[..., object]", getter)  # one of both is there
    value = table[relations[0]]
    if relations[0] == "one_of" and as_list(value) is None:
        raise ValueError(f"'one_of' takes a list, not {value!r}")
    part_name = f"{getters[0]} {table[getters[0]]!r}" if getters else ""
    return Comparison(relations[0], value, getter, part_name)


def _getter(kind: str, value: object) -> Callable[[object], object]:
    names = as_list(value)
    names = [value] if names is None else names
    if not names:
        raise ValueError(f"{kind!r} takes at least one name")
    if kind == "item":
        # What it takes are items that have keys: the user says so.
        return cast("Callable[[object], object]", operator.itemgetter(*names))
    for name in names:
        if not isinstance(name, str) or any(part.startswith("_") for part in name.split(".")):
            raise ValueError(f"'attribute' takes the name of a public attribute, not {name!r}")
    return operator.attrgetter(*cast("list[str]", names))
