"""Functions that a pipeline's file can write down: a part of an item, and comparisons."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Final, cast

from flow_cli.pipelines._document import as_list
from flow_core.comparison import RELATIONS, Comparison

__all__ = ["FORMS", "function_of"]

_GETTERS: Final = ("item", "attribute")


FORMS: Final = (*_GETTERS, *RELATIONS)
"""The keys of a table that stands for a function."""


def function_of(table: Mapping[str, object]) -> Callable[..., object]:
    """Return the function that a table of `FORMS` stands for.

    >>> function_of({"item": "delay", "at_least": 15})({"delay": 20})
    True
    >>> function_of({"item": ["a", "b"]})({"a": 1, "b": 2})
    (1, 2)

    Args:
        table: it has ``item`` or ``attribute``, or one of the comparisons, or both.

    Raises:
        ValueError: if the table does not stand for a function; the message says why.
    """
    unknown = [key for key in table if key not in FORMS]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not part of a function")
    getters = [key for key in table if key in _GETTERS]
    relations = [key for key in table if key in RELATIONS]
    if len(getters) > 1 or len(relations) > 1:
        two = getters if len(getters) > 1 else relations
        raise ValueError(f"{' and '.join(map(repr, two))} cannot be one function")
    if not getters and not relations:
        raise ValueError("an empty table is not a function")
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
        # It takes items that have keys: the user says so.
        return cast("Callable[[object], object]", operator.itemgetter(*names))
    for name in names:
        if not isinstance(name, str) or any(part.startswith("_") for part in name.split(".")):
            raise ValueError(f"'attribute' takes the name of a public attribute, not {name!r}")
    return operator.attrgetter(*cast("list[str]", names))
