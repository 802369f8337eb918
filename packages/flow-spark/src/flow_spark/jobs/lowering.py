"""The stages that run where the rows are, and the stages that are left for the driver.

A partitioned source has no order over all of its partitions. Stages that treat every item by itself
run in each partition. Some others are translated into a part per partition and a part that
combines. Stages that depend on the order of all items are refused, since their result would differ
from run to run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, final

from flow_core.stages import (
    CHECKPOINT,
    DO_AFTER_NEXT,
    DO_ON_NEXT,
    TAKE,
    Stage,
    Template,
)
from flow_spark.errors import OrderedOperatorError
from flow_spark.jobs.translations import ORDER_IS_NO_MATTER, SORTS, UNORDERED, translated

__all__ = ["Split", "effect_in", "has_an_end", "refuse_behind", "split", "treats_items_alone"]

_AnyStage = Stage[Any, Any]  # Any: the types of neighbouring stages need only fit each other


@final
@dataclass(frozen=True, slots=True)
class Split:
    """The stages between two boundaries, by where they are executed.

    Attributes:
        remote: the stages that run in each partition.
        local: the stages that run in one place, over the items of all partitions.
        turn: the user's stage that needs all items; None if there is none.
        combine: how many stages at the beginning of `local` combine the results of the partitions.
        by: if given, the results of `remote` may be brought together by this key, and the first
            `combine` stages of `local` may then run in each partition.
    """

    remote: tuple[_AnyStage, ...]
    local: tuple[_AnyStage, ...]
    turn: _AnyStage | None = None
    combine: int = 0
    by: Callable[[Any], object] | None = None

    @property
    def waits(self) -> bool:
        """Return whether a partition emits nothing before its end."""
        return any(stage.template.absorbs for stage in self.remote)


def split(stages: tuple[_AnyStage, ...], *, ordered: bool, ways_out: str) -> Split:
    """Decide where `stages` run.

    Args:
        stages: the stages after the source, up to the next boundary.
        ordered: whether there is one partition, in the order that the user declared.
        ways_out: says, in the error's message, what the user can do if a stage is refused.

    Raises:
        OrderedOperatorError: if a stage depends on an order, and there is none.
    """
    remote: list[_AnyStage] = []
    for position, stage in enumerate(stages):
        if stage.template in _EFFECTS or (ordered and _hears_of_ends(stage.template)):
            # An effect is meant for this process: on the cluster, it would be lost.
            return _settle(remote, stages[position:], ordered, ways_out)
        if ordered or treats_items_alone(stage.template):
            remote.append(stage)
            continue
        found = translated(stage)
        if found is None:
            return _settle(remote, stages[position:], ordered, ways_out)
        rest = stages[position + 1 :]
        remote += found.partial
        if stage.template in SORTS and rest and rest[0].template is TAKE:
            remote.append(rest[0])  # the first items of all are among the first of each partition
        local = _settle([], (*found.combine, *rest), ordered, ways_out).local
        return Split(tuple(remote), local, stage, len(found.combine), found.by)
    return Split(tuple(remote), ())


def _settle(
    remote: list[_AnyStage], local: tuple[_AnyStage, ...], ordered: bool, ways_out: str
) -> Split:
    if not ordered:
        _refuse_ordered(local, ways_out)
    return Split(tuple(remote), local, local[0] if local else None)


def effect_in(parts: Split) -> _AnyStage | None:
    """Return a stage whose effect is meant for this process, if there is one."""
    return next((stage for stage in parts.local if stage.template in _EFFECTS), None)


def has_an_end(stages: tuple[_AnyStage, ...]) -> bool:
    """Return whether one of `stages` may emit an item, or raise an error, even if no item came."""
    lines = [stage.template.lines for stage in stages]
    return any(line.on_start or line.on_end for line in lines)


def treats_items_alone(template: Template) -> bool:
    """Return whether the result for an item depends on nothing but that item."""
    return template.alone or template is CHECKPOINT  # its note travels with the error


def _hears_of_ends(template: Template) -> bool:
    """Return whether a stage handles the end of the whole flow, which a partition does not see."""
    if template is CHECKPOINT:
        return False
    return bool(template.lines.on_error or template.lines.on_close)


def refuse_behind(stages: tuple[_AnyStage, ...], what: str, ways_out: str) -> None:
    """Refuse an operator that depends on the order of the results of `stages`, unless there is one.

    Args:
        stages: the stages after the source, without an order.
        what: the operator behind these stages, for the message.
        ways_out: says, in the error's message, what the user can do.

    Raises:
        OrderedOperatorError: if the operator is refused.
    """
    if not any(map(_orders, split(stages, ordered=False, ways_out=ways_out).local)):
        raise _out_of_order(what, ways_out)


def _refuse_ordered(stages: tuple[_AnyStage, ...], ways_out: str) -> None:
    for stage in stages:
        if stage.template.ordered and stage.template not in ORDER_IS_NO_MATTER:
            where = f", assembled at {stage.assembled_at}," if stage.assembled_at else ""
            raise _out_of_order(f"{stage!r}{where}", ways_out)
        if _orders(stage):
            return


def _orders(stage: _AnyStage) -> bool:
    """Return whether the results of `stage` are in order: one item only, or all of them sorted."""
    return stage.template.absorbs and stage.template not in UNORDERED


def _out_of_order(what: str, ways_out: str) -> OrderedOperatorError:
    return OrderedOperatorError(
        f"{what} depends on the order of all items, and items that are spread over partitions have "
        "none. Ways out:\n"
        f"  - {ways_out}\n"
        "  - put a boundary before it, such as .observe_on(pool) or .hide(): behind it, "
        "items come in the order of their arrival, another one in each run."
    )


_EFFECTS: Final = frozenset({DO_ON_NEXT, DO_AFTER_NEXT})
