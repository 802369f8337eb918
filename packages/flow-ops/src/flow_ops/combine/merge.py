"""`merge` and its relatives: the items of several flows, as they come, or in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, ClassVar, TypeVar, cast, final, overload

from typing_extensions import override

from flow_core.assembly import labelled
from flow_core.demand import DEFAULT_PREFETCH
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import IterableSource, Publisher
from flow_core.sources import from_iterable
from flow_core.structure import AbsorbingSource, source_of, stages_of
from flow_ops.combine._sources import check_sources
from flow_ops.coordination import Mapper, itself
from flow_ops.transform._flat import FlatMap
from flow_ops.transform._mapping import (
    DEFAULT_CONCURRENCY,
    Limits,
    Mapped,
    mapped,
    mapping_operator,
)
from flow_ops.transform.concat_map_eager import ConcatMapEager

__all__ = ["merge", "merge_all", "merge_sequential", "merge_with"]

T = TypeVar("T")


@overload
def merge(
    *sources: Publisher[T],
    concurrency: int = ...,
    prefetch: int = ...,
    delay_error: bool = ...,
) -> Flow[T]: ...


@overload
def merge(
    sources: Iterable[Publisher[T]],
    /,
    *,
    concurrency: int = ...,
    prefetch: int = ...,
    delay_error: bool = ...,
) -> Flow[T]: ...


def merge(
    *sources: Publisher[Any] | Iterable[Publisher[Any]],  # Any: the overloads say more
    concurrency: int = DEFAULT_CONCURRENCY,
    prefetch: int = DEFAULT_PREFETCH,
    delay_error: bool = False,
) -> Flow[Any]:
    """The items of several flows, as they come. The result completes when all flows have.

    >>> import flow_core as flow
    >>> list(flow.merge(flow.range(2), flow.just("a")))
    [0, 1, 'a']

    Demand: exact; `prefetch` items are requested of each source, and 75 % of them again whenever as
    many were taken. Items that wait come in the order in which they arrived.
    Thread: items come on the threads of the sources, one at a time; an item that waited for demand,
    or while another item was sent, comes on whichever thread is at work.
    Fusion: none: an iterator that blocks would stop the other sources. A source that is a constant
    or a function is called instead of subscribed to. Merges within merges, with the same options,
    are flattened: their depth costs nothing. Flows on one cluster are united there.
    Errors: the first one cancels the others, and overtakes the items that wait.

    Args:
        sources: flows to merge, subscribed in this order; or one iterable of flows, which is asked
            for the next flow only when that can run.
        concurrency: how many of the flows run at a time; the others follow as these complete.
        prefetch: items to request of each ahead, and the most of each that wait.
        delay_error: whether errors come when all sources have ended; several are raised as an
            ExceptionGroup.

    Raises:
        TypeError: if a source is not a publisher, or a number is not an int.
        ValueError: if `concurrency` or `prefetch` is less than 1.
    """
    return _together("merge", sources, Limits(concurrency, prefetch, delay_error), FlatMap)


def merge_with(
    *others: Publisher[T],
    concurrency: int = DEFAULT_CONCURRENCY,
    prefetch: int = DEFAULT_PREFETCH,
    delay_error: bool = False,
) -> Operator[T, Flow[T]]:
    """The items of the flow and of others, as they come.

    >>> import flow_core as flow
    >>> from flow_ops import merge_with
    >>> list(flow.range(2).pipe(merge_with(flow.just(7))))
    [0, 1, 7]

    Demand, thread, fusion and errors are those of `merge`.

    Args:
        others: the flows to merge with, subscribed after this flow.
        concurrency: see `merge`.
        prefetch: see `merge`.
        delay_error: see `merge`.

    Raises:
        TypeError: if one of `others` is not a publisher, or a number is not an int.
        ValueError: if `concurrency` or `prefetch` is less than 1.
    """
    limits = Limits(concurrency, prefetch, delay_error)
    check_sources("merge_with", others)
    detail = limits.told(f"{len(others)} flows")
    label = labelled("merge_with", detail)

    def apply(flow: Flow[T]) -> Flow[T]:
        return _mapped((flow, *others), label, limits, FlatMap)

    return Operator("merge_with", apply, detail)


def merge_all(
    *,
    concurrency: int = DEFAULT_CONCURRENCY,
    prefetch: int = DEFAULT_PREFETCH,
    delay_error: bool = False,
) -> Operator[Flow[T], Flow[T]]:
    """The items of the flows that a flow emits, as they come.

    >>> import flow_core as flow
    >>> list(flow.just(flow.range(2), flow.just(7)).merge_all())
    [0, 1, 7]

    Demand, thread, fusion and errors are those of `flat_map`.

    Args:
        concurrency: how many of the flows run at a time; with 1, one runs after the other.
        prefetch: items to request of each flow ahead, and the most of each that wait.
        delay_error: whether errors come when all flows have ended; several are raised as an
            ExceptionGroup.

    Raises:
        TypeError: if a number is not an int.
        ValueError: if `concurrency` or `prefetch` is less than 1.
    """
    limits = Limits(concurrency, prefetch, delay_error)
    return mapping_operator("merge_all", itself, limits, FlatMap)


@overload
def merge_sequential(
    *sources: Publisher[T],
    concurrency: int = ...,
    prefetch: int = ...,
    delay_error: bool = ...,
) -> Flow[T]: ...


@overload
def merge_sequential(
    sources: Iterable[Publisher[T]],
    /,
    *,
    concurrency: int = ...,
    prefetch: int = ...,
    delay_error: bool = ...,
) -> Flow[T]: ...


def merge_sequential(
    *sources: Publisher[Any] | Iterable[Publisher[Any]],  # Any: the overloads say more
    concurrency: int = DEFAULT_CONCURRENCY,
    prefetch: int = DEFAULT_PREFETCH,
    delay_error: bool = False,
) -> Flow[Any]:
    """The items of several flows that run at once, but all of one before those of the next.

    >>> import flow_core as flow
    >>> list(flow.merge_sequential(flow.range(2), flow.just("a")))
    [0, 1, 'a']

    Other libraries call it concat_eager. See `concat_map_eager` for demand, thread, fusion and
    errors.

    Args:
        sources: flows to run; or one iterable of flows, which is asked for the next flow only when
            that can run.
        concurrency: how many of them are subscribed at a time, including the one whose items are
            sent.
        prefetch: items to request of each ahead, and the most of each that wait.
        delay_error: whether errors come when all sources have ended; several are raised as an
            ExceptionGroup.

    Raises:
        TypeError: if a source is not a publisher, or a number is not an int.
        ValueError: if `concurrency` or `prefetch` is less than 1.
    """
    return _together(
        "merge_sequential",
        sources,
        Limits(concurrency, prefetch, delay_error),
        ConcatMapEager,
    )


_Kind = type[FlatMap[Any, Any]] | type[ConcatMapEager[Any, Any]]  # Any: of the sources


def _together(
    name: str, sources: tuple[Any, ...], limits: Limits, kind: _Kind
) -> Flow[Any]:  # Any: here and above, see the overloads
    flows: Iterable[Any] = sources
    detail = f"{len(sources)} flows"
    if len(sources) == 1 and not hasattr(sources[0], "subscribe"):
        flows = sources[0]
        if not isinstance(flows, Iterable):
            raise TypeError(f"{name}() takes flows, or one iterable of flows, not {flows!r}")
        detail = "an iterable of flows"
    else:
        check_sources(name, sources)
    return _mapped(flows, labelled(name, limits.told(detail)), limits, kind)


def _mapped(flows: Iterable[Publisher[T]], label: str, limits: Limits, kind: _Kind) -> Flow[T]:
    mapper: Mapper[Publisher[T], T] = Mapper(itself, label)
    if not isinstance(flows, tuple):
        return mapped(from_iterable(flows), mapper, limits, kind)
    if kind is FlatMap and len(flows) <= limits.concurrency and not limits.delay_error:
        united = _united(flows)
        if united is not None:
            return united
    sources = SourcesSource[T](flows, limits, kind)
    if sources.count > limits.concurrency >= len(flows):
        limits = replace(limits, concurrency=sources.count)  # as each by itself
    return mapped(Flow(sources), mapper, limits, kind)


def _united(flows: tuple[Publisher[T], ...]) -> Flow[T] | None:
    """Return `flows` as one flow on the cluster; None if the first source cannot do that."""
    first = flows[0] if len(flows) > 1 else None
    source: object = source_of(first) if isinstance(first, Flow) else None
    if not isinstance(source, AbsorbingSource):
        return None
    absorbing: AbsorbingSource[T] = source  # pyright: ignore[reportUnknownVariableType]  # as said
    return absorbing.united(flows)


@final
class SourcesSource(IterableSource[Publisher[T]]):
    """Flows that are known beforehand, as the source of a merge.

    A flow that merges others in the same way is replaced by the flows that it merges.

    Use this only without a limit: all of the flows run at a time, merged at once or one by one.

    Args:
        sources: the sources, in order.
        limits: how many run at a time, and how much they prefetch.
        kind: the operator that merges them.
    """

    __slots__ = ("_flat", "_kind", "_limits", "count", "inners")

    none_free: ClassVar[bool] = True

    def __init__(self, sources: tuple[Publisher[T], ...], limits: Limits, kind: _Kind) -> None:
        self.inners = sources
        self._limits = limits
        self._kind = kind
        self._flat: tuple[Publisher[T], ...] | None = None
        parts = map(self._stands_for, sources)
        self.count: int = sum(1 if part is None else part.count for part in parts)
        """The number of sources, after those that merge others were replaced by these others."""

    @override
    def iterate(self) -> Iterator[Publisher[T]]:
        flat = self._flat
        if flat is None:
            # Flatten only when needed: otherwise each step of a long chain would copy all steps
            # before it.
            flat = self._flat = tuple(self._flatten())
        return iter(flat)

    def _flatten(self) -> Iterator[Publisher[T]]:
        waiting = list(reversed(self.inners))
        while waiting:
            source = waiting.pop()
            part = self._stands_for(source)
            if part is None:
                yield source
            else:
                waiting.extend(reversed(part.inners))

    def _stands_for(self, flow: Publisher[T]) -> SourcesSource[T] | None:
        if not isinstance(flow, Flow) or stages_of(flow):
            return None
        merged, own = source_of(flow), self._limits
        if not isinstance(merged, Mapped) or merged.make is not self._kind:
            return None
        part: object = source_of(merged.upstream)
        if (
            not isinstance(part, SourcesSource)
            or (merged.limits.prefetch, merged.limits.delay_error)
            != (own.prefetch, own.delay_error)
            or merged.limits.concurrency < part.count
            or own.concurrency < len(self.inners)
        ):
            return None
        return cast("SourcesSource[T]", part)  # not a stage: its items have the same type

    def __repr__(self) -> str:
        return f"{len(self.inners)} flows"
