"""``local()``: the stages behind it run in this process, even if the source could run them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, final

from typing_extensions import override

from flow_core.operator import Operator
from flow_core.protocols import Publisher, Subscriber
from flow_core.stages._template import Stage
from flow_core.structure import AbsorbingSource, Place, source_of, stages_of

if TYPE_CHECKING:
    from flow_core.flow import Flow

__all__ = ["LOCAL"]

T = TypeVar("T")

_Stages = tuple[Stage[Any, Any], ...]  # Any: a run of stages, each with its own type of items


@final
class _LocalSource(AbsorbingSource[T]):
    """The items of a source that absorbs stages; it absorbs none of the stages behind this one.

    Args:
        flow: the flow up to ``local()``.
        source: the source of `flow`.
    """

    __slots__ = ("_flow", "_source")

    def __init__(self, flow: Flow[T], source: AbsorbingSource[Any]) -> None:
        self._flow = flow
        self._source = source

    @override
    def absorb(self, stages: _Stages) -> tuple[Publisher[Any], _Stages]:
        """Have the source absorb what it can of the stages before ``local()``."""
        publisher, left = self._source.absorb(stages_of(self._flow))
        return publisher, (*left, *stages)

    @override
    def places(self, stages: _Stages) -> tuple[Place, ...]:
        return ()

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        self._flow.subscribe(subscriber)

    def __repr__(self) -> str:
        return repr(self._flow)


def _local(flow: Flow[Any]) -> Flow[Any]:
    """Return `flow` itself if it runs in this process in any case."""
    source = source_of(flow)
    if not isinstance(source, AbsorbingSource):
        return flow
    return flow._of(_LocalSource(flow, source))  # pyright: ignore[reportUnknownArgumentType]


LOCAL: Final[Operator[Any, Flow[Any]]] = Operator("local", _local)  # Any: passes any items on
"""See `Flow.local`."""
