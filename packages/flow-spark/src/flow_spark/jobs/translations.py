"""Translations of the core's stages for partitions: a part for each, and a part that combines.

The stages of other packages have their translations in the registry
(`flow_core.plugins.TranslationSpec`).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, cast

from flow_core.plugins import plugin_host
from flow_core.stages import (
    ALL,
    AVERAGE,
    BUFFER_WITH_COUNT,
    COLLECT,
    COLLECT_PARTS,
    CONTAINS,
    COUNT,
    COUNT_BY_KEY,
    DISTINCT,
    DISTINCT_BY,
    IS_EMPTY,
    MAX,
    MAX_BY,
    MIN,
    MIN_BY,
    REDUCE,
    REDUCE_BY_KEY,
    REDUCE_BY_KEY_OF,
    REDUCE_FROM,
    SOME,
    SORT,
    SORT_BY,
    SUM,
    TAKE,
    TO_DICT,
    TO_DICT_OF,
    TO_SET,
    Stage,
    Template,
    Translation,
    identity,
)

__all__ = ["ORDER_IS_NO_MATTER", "SORTS", "UNORDERED", "bounded", "translated"]

_AnyStage = Stage[Any, Any]  # Any: the types of neighbouring stages need only fit each other

ORDER_IS_NO_MATTER: Final = frozenset(
    {TAKE, REDUCE, REDUCE_FROM, COLLECT, COLLECT_PARTS, TO_DICT, TO_DICT_OF, BUFFER_WITH_COUNT}
)
"""Stages that have a meaning on an unordered flow, too: they take any items of the given number (a
buffer does so again and again), combine items in any order, or keep any of the items with a key."""

SORTS: Final = frozenset({SORT, SORT_BY})
"""Stages that sort all items."""

UNORDERED: Final = frozenset({REDUCE_BY_KEY, REDUCE_BY_KEY_OF, COUNT_BY_KEY})
"""Stages that emit several items at the end, in the order in which the keys came."""

_PART_OF_AVERAGE: Final = Template(
    "average",
    state=AVERAGE.state,
    on_item=AVERAGE.on_item,
    on_end="""
    if seen:
        x = total, seen
        EMIT
    """,
)

_AVERAGE_OF_PARTS: Final = Template(
    "average",
    state=AVERAGE.state,
    on_item="""
    total = total + x[0]
    seen += x[1]
    """,
    on_end=AVERAGE.on_end,
    helpers=AVERAGE.helpers,
)


# What a stage does with an item if it holds something for each key or item, and begins again when
# that is very much. Not with an argument: messages show those.

_TOTALS: Final = """
k = key(x)
if k in totals:
    totals[k] = {more}
else:
    totals[k] = {first}
    if len(totals) == {most}:
        for x in totals.items():
            EMIT
        totals.clear()
"""

_SEEN: Final = """
k = {key}
if k not in seen:
    if len(seen) == {most}:
        seen.clear()
    seen.add(k)
    EMIT
"""

_ITEMS: Final = """
items.append(x)
if len(items) == {most}:
    for x in {sorted}:
        EMIT
    items.clear()
"""

_BOUNDED: Final[Mapping[Template, Callable[..., str]]] = MappingProxyType(
    {
        REDUCE_BY_KEY: functools.partial(
            _TOTALS.format, first="x", more="accumulator(totals[k], x)"
        ),
        REDUCE_BY_KEY_OF: functools.partial(
            _TOTALS.format, first="value(x)", more="accumulator(totals[k], value(x))"
        ),
        COUNT_BY_KEY: functools.partial(_TOTALS.format, first="1", more="totals[k] + 1"),
        DISTINCT: functools.partial(_SEEN.format, key="x"),
        DISTINCT_BY: functools.partial(_SEEN.format, key="key(x)"),
        SORT: functools.partial(_ITEMS.format, sorted="sorted(items, reverse=reverse)"),
        SORT_BY: functools.partial(_ITEMS.format, sorted="in_order(items, key, reverse=reverse)"),
    }
)
"""For each stage that `bounded` replaces: the code that its replacement runs for an item."""

_INTO_A_SET: Final[tuple[object, object]] = (set, vars(set)["add"])

_key_of: Final = operator.itemgetter(0)
_value_of: Final = operator.itemgetter(1)


def translated(stage: _AnyStage) -> Translation | None:
    """Return the translation of `stage`; None if it needs all items in one place.

    Raises:
        PluginError: if the translation of a plugin cannot be imported, or is not a `Translation`.
    """
    translate = _TRANSLATIONS.get(stage.template)
    found = plugin_host().translate(stage) if translate is None else translate(stage)
    if found is not None:
        for part in (*found.partial, *found.combine):
            part.site = part.site or stage.site
    return found


def bounded(stage: _AnyStage, most: int) -> _AnyStage:
    """Return a replacement for `stage` that holds at most `most` keys or items.

    When there are more, it begins again: its results are those for several parts of the items.
    """
    if stage.template not in _BOUNDED:
        return stage
    made: _AnyStage = Stage(_bounded(stage.template, most), *stage.args)
    made.site = stage.site
    return made


@functools.cache
def _bounded(template: Template, most: int) -> Template:
    return replace(template, on_item=_BOUNDED[template](most=most))


def _twice(stage: _AnyStage) -> Translation:
    return Translation((stage,), (stage,))


def _distinct(stage: _AnyStage) -> Translation:
    (key,) = stage.args or (identity,)
    return Translation((stage,), (stage,), by=cast("Callable[[Any], object]", key))  # as declared


def _count(stage: _AnyStage) -> Translation:
    return Translation((stage,), (Stage(REDUCE_FROM, operator.add, 0),))


def _reduce_from(_: _AnyStage) -> None:
    """Return None: the stage's accumulator cannot combine two accumulated values."""


def _sum(stage: _AnyStage) -> Translation:
    (start,) = stage.args
    if isinstance(start, (int, float)) and start == 0:
        return _twice(stage)
    # Any other start would be added once per partition.
    return Translation((Stage(REDUCE, operator.add),), (stage,))


def _average(stage: _AnyStage) -> Translation:
    return Translation((Stage(_PART_OF_AVERAGE),), (Stage(_AVERAGE_OF_PARTS),))


def _over_answers(template: Template) -> Callable[[_AnyStage], Translation]:
    """Return a function that translates a stage: `template` combines the partitions' answers."""
    return lambda stage: Translation((stage,), (Stage(template, bool),))


def _collect(stage: _AnyStage) -> Translation | None:
    # A collector does not say how two containers become one; that of a set is known.
    if stage.args == _INTO_A_SET:
        return Translation((Stage(DISTINCT),), (stage,))
    return None


def _collect_parts(stage: _AnyStage) -> Translation:
    supplier, collector, combiner = stage.args
    combine: _AnyStage = Stage(COLLECT, supplier, combiner)
    return Translation((Stage(COLLECT, supplier, collector),), (combine,))


def _to_set(stage: _AnyStage) -> Translation:
    return Translation((Stage(DISTINCT),), (stage,))


def _to_dict(stage: _AnyStage) -> Translation:
    key, *values = stage.args
    template = REDUCE_BY_KEY_OF if values else REDUCE_BY_KEY
    partial: _AnyStage = Stage(template, key, _latter, *values)
    return Translation((partial,), (Stage(TO_DICT_OF, _key_of, _value_of),))


def _latter(_: object, latter: object) -> object:
    return latter


def _reduce_by_key(stage: _AnyStage) -> Translation:
    return Translation((stage,), (_of_pairs(stage.args[1]),), by=_key_of)


def _count_by_key(stage: _AnyStage) -> Translation:
    return Translation((stage,), (_of_pairs(operator.add),), by=_key_of)


def _of_pairs(accumulator: object) -> _AnyStage:
    return Stage(REDUCE_BY_KEY_OF, _key_of, accumulator, _value_of)


_TRANSLATIONS: Final[Mapping[Template, Callable[[_AnyStage], Translation | None]]] = (
    MappingProxyType(
        {
            TAKE: _twice,
            DISTINCT: _distinct,
            DISTINCT_BY: _distinct,
            COUNT: _count,
            REDUCE: _twice,
            REDUCE_FROM: _reduce_from,
            SUM: _sum,
            AVERAGE: _average,
            MIN: _twice,
            MIN_BY: _twice,
            MAX: _twice,
            MAX_BY: _twice,
            ALL: _over_answers(ALL),
            IS_EMPTY: _over_answers(ALL),
            SOME: _over_answers(SOME),
            CONTAINS: _over_answers(SOME),
            COLLECT: _collect,
            COLLECT_PARTS: _collect_parts,
            TO_SET: _to_set,
            TO_DICT: _to_dict,
            TO_DICT_OF: _to_dict,
            SORT: _twice,
            SORT_BY: _twice,
            REDUCE_BY_KEY: _reduce_by_key,
            REDUCE_BY_KEY_OF: _reduce_by_key,
            COUNT_BY_KEY: _count_by_key,
        }
    )
)
