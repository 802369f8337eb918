"""The type of the items of a flow, as far as its stages declare it."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterable
from inspect import Signature
from typing import Any, cast

from flow_core.signatures import resolved, signature_of
from flow_core.stages import (
    ALL,
    AVERAGE,
    BUFFER_WITH_COUNT,
    BUFFER_WITH_COUNT_SKIP,
    COLLECT,
    COLLECT_PARTS,
    CONTAINS,
    COUNT,
    COUNT_BY_KEY,
    FLAT_MAP_ITERABLE,
    IS_EMPTY,
    MAP,
    PAIRWISE,
    REDUCE,
    REDUCE_BY_KEY,
    REDUCE_BY_KEY_OF,
    REDUCE_FROM,
    SCAN,
    SOME,
    TO_LIST,
    UNSET,
    Stage,
)

__all__ = ["item_type"]

_KEEP: typing.Final = frozenset(
    {
        "distinct",
        "distinct_until_changed",
        "do_on_next",
        "filter",
        "max",
        "min",
        "skip",
        "skip_while",
        "sort",
        "sum",
        "take",
        "take_while",
    }
)
"""Names of stages that pass items on unchanged."""

_RESULTS: typing.Final = {
    ALL: bool,
    AVERAGE: float,
    CONTAINS: bool,
    COUNT: int,
    IS_EMPTY: bool,
    SOME: bool,
}
"""The result types of stages that do not depend on their input."""


def item_type(stages: tuple[Stage[Any, Any], ...], source: object) -> object:
    """Return the type of the results of `stages`, or None if nothing declares that.

    Args:
        stages: the stages that follow the source.
        source: the type of the source's items, or None.
    """
    if not stages:
        return source
    *before, last = stages
    template = last.template
    if template is MAP:
        return _returned(last.args[0])
    if template is FLAT_MAP_ITERABLE:
        return _element(_returned(last.args[0]))
    if template in _RESULTS:
        return _RESULTS[template]
    if template in (COLLECT, COLLECT_PARTS):
        return _returned(last.args[0])
    if template is COUNT_BY_KEY:
        return _pair(_returned(last.args[0]), int)
    if template is REDUCE_BY_KEY_OF:
        return _pair(_returned(last.args[0]), _returned(last.args[2]))
    if template is REDUCE_FROM or (template is SCAN and last.args[1] is not UNSET):
        return _returned(last.args[0]) or _kind(last.args[1])
    inner = item_type(tuple(before), source)
    if inner is None:
        return None
    if template is REDUCE_BY_KEY:
        return _pair(_returned(last.args[0]), inner)
    if template is PAIRWISE:
        return tuple[inner, inner]  # type: ignore[valid-type]  # made at run time
    if template in (TO_LIST, BUFFER_WITH_COUNT, BUFFER_WITH_COUNT_SKIP):
        return list[inner]  # type: ignore[valid-type]  # made at run time
    return inner if template.name in _KEEP or template in (REDUCE, SCAN) else None


def _pair(key: object, value: object) -> object:
    if key is None or value is None:
        return None
    return tuple[key, value]  # type: ignore[valid-type]  # made at run time


def _returned(function: object) -> object:
    """Return the return type that `function` declares, or None."""
    if isinstance(function, type):
        return function
    try:
        return typing.get_type_hints(function, include_extras=True).get("return")
    except Exception:  # annotations may name anything, even what does not exist
        pass
    called = cast("Callable[..., object]", function)
    try:
        returned = resolved(signature_of(called).return_annotation, called)
    except Exception:  # not all that can be called have a signature
        return None
    return None if isinstance(returned, str) or returned is Signature.empty else returned


def _element(hint: object) -> object:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(origin, type) and issubclass(origin, Iterable) and parts:
        return parts[0]
    return str if hint is str else None


def _kind(value: object) -> object:
    """Return the type of a seed, if that is specific enough."""
    return type(value) if isinstance(value, (bool, int, float, str, bytes)) else None
