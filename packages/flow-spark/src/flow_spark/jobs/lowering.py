"""Which stages run where the rows are, and what is left for the driver.

A partitioned source has no order that its partitions agree on. Stages that treat every item by
itself run in each partition. Some others are translated into a part per partition and a part that
combines. Stages that depend on the order of all items are refused, since each run would give
something else.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, final

from flow_core.stages import UNSET, Stage, Template
from flow_core.stages.aggregate import ALL, COLLECT, COUNT, MAX, MIN, REDUCE, SOME, SUM
from flow_core.stages.effects import CHECKPOINT, DO_AFTER_NEXT, DO_ON_NEXT
from flow_core.stages.filtering import DISTINCT, DISTINCT_BY, TAKE
from flow_spark.errors import OrderedOperatorError

__all__ = ["Split", "split"]

_AnyStage = Stage[Any, Any]  # Any: the types of neighbouring stages only fit each other


@final
@dataclass(frozen=True, slots=True)
class Split:
    """The stages of a run, by where they are executed.

    Attributes:
        remote: in each partition.
        local: in one place, over the items of all partitions.
    """

    remote: tuple[_AnyStage, ...]
    local: tuple[_AnyStage, ...]


def split(stages: tuple[_AnyStage, ...], *, ordered: bool, ways_out: str) -> Split:
    """Decide where `stages` run.

    Args:
        stages: what follows the source, up to the next boundary.
        ordered: whether there is one partition, in the order that the user declared.
        ways_out: what to tell a user whose stage is refused.

    Raises:
        OrderedOperatorError: if a stage depends on an order that there is not.
    """
    remote: list[_AnyStage] = []
    for position, stage in enumerate(stages):
        if stage.template in _EFFECTS or (ordered and _hears_of_ends(stage.template)):
            # An effect is meant for this process: there, nobody would see it.
            return _settle(remote, stages[position:], ordered, ways_out)
        if ordered or _treats_items_alone(stage.template):
            remote.append(stage)
            continue
        translate = _TRANSLATIONS.get(stage.template)
        translated = None if translate is None else translate(stage)
        if translated is None:
            return _settle(remote, stages[position:], ordered, ways_out)
        remote += translated.remote
        rest = _settle([], (*translated.local, *stages[position + 1 :]), ordered, ways_out)
        return Split(tuple(remote), rest.local)
    return Split(tuple(remote), ())


def _settle(
    remote: list[_AnyStage], local: tuple[_AnyStage, ...], ordered: bool, ways_out: str
) -> Split:
    if not ordered:
        _refuse_ordered(local, ways_out)
    return Split(tuple(remote), local)


def _treats_items_alone(template: Template) -> bool:
    """Whether what comes of an item depends on nothing but that item."""
    lines = template.lines
    keeps = lines.state or lines.on_start or lines.on_end or lines.stops
    if template is CHECKPOINT:
        return True  # its note travels with the error
    return not (template.ordered or keeps or _hears_of_ends(template))


def _hears_of_ends(template: Template) -> bool:
    """Whether it has to do with how the whole flow ends, of which a partition knows nothing."""
    if template is CHECKPOINT:
        return False
    return bool(template.lines.on_error or template.lines.on_close)


def _refuse_ordered(stages: tuple[_AnyStage, ...], ways_out: str) -> None:
    for stage in stages:
        if stage.template.ordered and stage.template not in _ORDER_IS_NO_MATTER:
            where = stage.assembled_at
            raise OrderedOperatorError(
                f"{stage!r}{f', assembled at {where},' if where else ''} depends on the order of "
                "all items, and items that are spread over partitions have none. Ways out:\n"
                f"  - {ways_out}\n"
                "  - put a boundary before it, such as .pipe(observe_on(pool)) or .hide(): behind "
                "it, items come in the order of their arrival, another one in each run."
            )
        if stage.template.absorbs:
            return  # one item is left, which is in order


_EFFECTS: Final = frozenset({DO_ON_NEXT, DO_AFTER_NEXT})

_ORDER_IS_NO_MATTER: Final = frozenset({TAKE, REDUCE, COLLECT})
"""On an unordered flow these mean: any so many items, and any order of combining."""


def _count(stage: _AnyStage) -> Split | None:
    combine: _AnyStage = Stage(REDUCE, operator.add, 0)
    combine.site = stage.site
    return Split((stage,), (combine,))


def _reduce(stage: _AnyStage) -> Split | None:
    # With a seed the accumulator takes an accumulation and an item, and cannot combine two
    # accumulations.
    return Split((stage,), (stage,)) if stage.args[1] is UNSET else None


def _sum(stage: _AnyStage) -> Split | None:
    # Any other start would be added once per partition.
    return Split((stage,), (stage,)) if stage.args[0] == 0 else None


def _of_partitions(stage: _AnyStage) -> Split | None:
    return Split((stage,), (stage,))


def _all(stage: _AnyStage) -> Split | None:
    return Split((stage,), (_over_answers(stage),))


def _over_answers(stage: _AnyStage) -> _AnyStage:
    """The same stage over the answers of the partitions."""
    combine: _AnyStage = Stage(stage.template, bool)
    combine.site = stage.site
    return combine


_TRANSLATIONS: Final[Mapping[Template, Callable[[_AnyStage], Split | None]]] = MappingProxyType(
    {
        TAKE: _of_partitions,
        DISTINCT: _of_partitions,
        DISTINCT_BY: _of_partitions,
        COUNT: _count,
        REDUCE: _reduce,
        SUM: _sum,
        MIN: _of_partitions,
        MAX: _of_partitions,
        ALL: _all,
        SOME: _all,
    }
)
