"""The rows that filters may keep or fail for, as a condition for Spark.

All other rows are certainly dropped by a filter. The filters still run over the rows that are left,
so that results stay the same.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from flow_core.stages import Stage, Template
from flow_spark.narrowing.conditions import FALSE, TRUE, Conditions, Kind, Where, all_of, any_of
from flow_spark.narrowing.decisions import Field, decisions
from flow_spark.narrowing.fields_read import GivenUpError, Record

__all__ = ["Kept", "rows_kept"]

_LONGEST: Final = 4096
"""The length of a condition, in characters."""


class Kept(NamedTuple):
    """The rows to read.

    Attributes:
        where: the condition for them; None for all rows.
        why_all: the reason why no filter leaves a row out, for a user; None if there is no filter,
            or a condition.
    """

    where: str | None
    why_all: str | None


def rows_kept(
    stages: Iterable[Stage[Any, Any]],  # Any: items of any type
    item: Record | Field,
    kinds: Mapping[str, Kind],
) -> Kept:
    """Return the rows that the filters at the begin of `stages` may keep or fail for.

    Args:
        stages: the stages, upstream first.
        item: what the item is.
        kinds: the types of the columns whose values items have as they are.
    """
    kept: Where = TRUE
    raises: Where = FALSE
    why: str | None = None
    for stage in stages:
        predicate = _predicate_of(stage.template)
        if predicate is None:
            break
        if predicate < 0:
            continue
        said = Conditions(kinds)
        try:
            holds, more_raises = said.of_tree(decisions(stage.args[predicate], item))
        except GivenUpError as error:
            why = why or f"{stage!r}: {error}"
            break
        more = all_of(kept, any_of(raises, holds))
        if len(str(more)) > _LONGEST:
            why = why or f"{stage!r}: the condition would have more than {_LONGEST} characters"
            break
        if holds == TRUE and said.why:
            why = why or f"{stage!r}: {said.why[0]}"
        kept, raises = more, any_of(raises, more_raises)
    return Kept(None, why) if kept == TRUE else Kept(str(kept), None)


@cache
def _predicate_of(template: Template) -> int | None:
    """Return the position of the argument that says whether an item passes.

    The result is -1 if all items pass and nothing is done with them; None if the stage does
    anything else.
    """
    if template.state or template.on_start or template.on_close:
        return None
    text = textwrap.dedent(template.on_item).strip()
    for index, name in enumerate(template.params):
        if text == f"if {name}(x):\n    EMIT":
            return index
    return -1 if text == "EMIT" else None
