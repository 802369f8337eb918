"""Operators over a source that is one call make no operator at all (F06, F07)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast, final

from typing_extensions import override

from flow_core.flow import Flow
from flow_core.protocols import CallableSource, Subscriber
from flow_core.sources import empty
from flow_core.structure import DeferredSource, call_of, source_of, stages_of
from flow_core.subscribers import core_subscriber
from flow_ops.coordination import Mapper

__all__ = ["resolved", "single"]

T = TypeVar("T")
R = TypeVar("R")


def single(
    flow: Flow[T], mapper: Mapper[T, R], apply: Callable[[Flow[T]], Flow[R]]
) -> Flow[R] | None:
    """The flow of the only item of `flow`, if it has no more than one; None if that is not known.

    Args:
        flow: what an operator is put behind.
        mapper: makes flows of its items.
        apply: what the operator makes of a flow, which may be known only when it is subscribed.
    """
    called = call_of(flow)
    if called is not None:
        return Flow(MappedCall(called, mapper))
    if isinstance(source_of(flow), DeferredSource) and not stages_of(flow):
        return Flow(MappedLater(flow, apply, mapper.label))
    return None


def resolved(flow: Flow[T]) -> Flow[T]:
    """`flow`, or what it stands for if its source is deferred.

    Raises:
        BaseException: what the source raises when it is resolved.
    """
    while isinstance(source := source_of(flow), DeferredSource) and not stages_of(flow):
        flow = cast("DeferredSource[T]", source).resolve()  # no stage: of the flow's own items
    return flow


@final
class MappedCall(DeferredSource[R]):
    """The flow that a mapper makes of the one item of a source (F06, F07).

    Args:
        source: of no or one item; called when this is subscribed, never before.
        mapper: makes the flow.
    """

    __slots__ = ("_mapper", "_source")

    # Any: the type of the items is between the source and the mapper.
    def __init__(self, source: CallableSource[Any], mapper: Mapper[Any, R]) -> None:
        self._source = source
        self._mapper = mapper

    @override
    def resolve(self) -> Flow[R]:
        item = self._source.call()
        if item is None:
            return empty()
        mapper = self._mapper
        try:
            made = mapper.function(item)
            return made if isinstance(made, Flow) else mapper.flow_of(made)
        except BaseException as error:
            raise mapper.failed(error)  # noqa: B904 - the same error, with a note

    @override
    def subscribe(self, subscriber: Subscriber[R], /) -> None:
        itself: Flow[R] = Flow(self)
        itself.subscribe(core_subscriber(subscriber))

    def __repr__(self) -> str:
        return self._mapper.label


@final
class MappedLater(DeferredSource[R]):
    """What an operator makes of a flow that is known when this is subscribed.

    Args:
        upstream: has a deferred source, and no stage.
        apply: what the operator makes of a flow.
        label: for messages.
    """

    __slots__ = ("_apply", "_label", "_upstream")

    def __init__(
        self,
        upstream: Flow[Any],  # Any: see MappedCall
        apply: Callable[[Flow[Any]], Flow[R]],
        label: str,
    ) -> None:
        self._upstream = upstream
        self._apply = apply
        self._label = label

    @override
    def resolve(self) -> Flow[R]:
        return self._apply(resolved(self._upstream))

    @override
    def subscribe(self, subscriber: Subscriber[R], /) -> None:
        itself: Flow[R] = Flow(self)
        itself.subscribe(core_subscriber(subscriber))

    def __repr__(self) -> str:
        return self._label
