"""Operators without a subscription, over a source that is one call (F06, F07)."""

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
    """Return the flow of the only item of `flow`, if it has at most one; None if it may have more.

    Args:
        flow: the upstream of the operator.
        mapper: returns flows for its items.
        apply: applies the operator to a flow; called at the subscription if `flow` is known only
            then.
    """
    called = call_of(flow)
    if called is not None:
        return Flow(MappedCall(called, mapper))
    if isinstance(source_of(flow), DeferredSource) and not stages_of(flow):
        return Flow(MappedLater(flow, apply, mapper.label))
    return None


def resolved(flow: Flow[T]) -> Flow[T]:
    """Return `flow`, or the flow it stands for if its source is deferred.

    Raises:
        BaseException: an error of the source when it is resolved.
    """
    while isinstance(source := source_of(flow), DeferredSource) and not stages_of(flow):
        flow = cast("DeferredSource[T]", source).resolve()  # not a stage: the flow's own items
    return flow


@final
class MappedCall(DeferredSource[R]):
    """The flow that a mapper makes from the only item of a source (F06, F07).

    Args:
        source: a source of at most one item; called at the subscription, never before.
        mapper: returns the flow.
    """

    __slots__ = ("_mapper", "_source")

    # Any: only the source and the mapper know the type of the items.
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
    """The result of an operator over a flow that is known only at the subscription.

    Args:
        upstream: a flow with a deferred source, and without stages.
        apply: applies the operator to a flow.
        label: the operator, for messages.
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
