"""``flow[start:stop:step]``: a slice as the stages that it means."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from flow_core.stages import filtering
from flow_core.stages.fluent import Fluent, count_of

if TYPE_CHECKING:
    from flow_core.flow import Flow

__all__ = ["sliced"]

T = TypeVar("T")


def sliced(flow: Fluent[T], start: int | None, stop: int | None, step: int) -> Flow[T]:
    """`flow` with the stages of a slice behind it; see `Filtering.slice`."""
    count_of("slice", step, 1, "step")
    for name, bound in (("start", start), ("stop", stop)):
        if bound is not None:
            count_of("slice", abs(bound) if isinstance(bound, int) else bound, 0, name)
    begin = start or 0
    whole = flow._whole()
    if begin < 0 and stop is not None and stop >= 0:
        # Which of the last items lie before `stop` is known by their index.
        made = (
            whole.map_indexed(lambda item, index: (index, item))
            .take_last(-begin)
            .take_while(lambda pair: pair[0] < stop)
            .map(lambda pair: pair[1])
        )
    else:
        made = whole
        if stop is not None and stop >= 0:
            made = made.take(stop if stop > begin else 0)
        if begin > 0:
            made = made.skip(begin)
        elif begin < 0:
            made = made.take_last(-begin)
        if stop is not None and stop < 0:
            made = made.skip_last(-stop)
    return made if step == 1 else made._add(filtering.SLICE, step)
