"""`concat_map`: each item becomes a flow, and these follow one another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from sys import maxsize
from typing import Any, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.assembly import labelled
from flow_core.conversion import Convertible
from flow_core.demand import DEFAULT_PREFETCH, check_prefetch
from flow_core.errors import throw_if_fatal
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import Fusion, IterableSource, Publisher, Subscriber
from flow_core.sources import fail
from flow_core.stages import close_iterator, describe
from flow_core.structure import call_of, source_of
from flow_core.subscribers import core_subscriber
from flow_ops.coordination import Mapper, combined
from flow_ops.transform._concat import ConcatMapSubscriber
from flow_ops.transform._inner import known_inners, none_item, pulled
from flow_ops.transform._single import single

__all__ = ["concat_map"]

T = TypeVar("T")
R = TypeVar("R")


def concat_map(
    mapper: Callable[[T], Convertible[R]],
    *,
    prefetch: int = DEFAULT_PREFETCH,
    delay_error: bool = False,
) -> Operator[T, Flow[R]]:
    """Each item becomes a flow; all items of one come before those of the next.

    >>> import flow_core as flow
    >>> list(flow.range(3).concat_map(lambda n: flow.range(n).map(lambda m: (n, m))))
    [(1, 0), (2, 0), (2, 1)]

    Demand: exact; the next inner flow gets the demand that the previous one has not used. Without
    demand the mapper is not called and no inner flow is started. `prefetch` items are requested of
    an upstream that pushes, and 75 % of that again whenever as many were mapped.
    Thread: the mapper runs where the previous inner flow has ended; if the mapper had to wait for
    demand, where the request came. An inner flow whose source is an iterator or a function runs
    right there, in the operator's own loop; any other is subscribed to, and its items keep its
    thread. Iteration: over a synchronous upstream, ``for`` makes one loop of all flows, in its own
    thread, where it waits for an inner flow that is asynchronous.
    Fusion: an upstream with SYNC or ASYNC is polled; an asynchronous one learns that it may be
    polled on another thread: then it still runs the user's code on its own thread. If the upstream
    is a constant or a function, there is no operator at all: the subscription goes to the mapped
    flow.
    Errors: an error of the upstream comes in its place, after the inner flows of the items before
    it.

    Args:
        mapper: called with an item, when it is that item's turn; returns a flow, not None.
        prefetch: items to request of an upstream that pushes, and the most that wait for their
            turn.
        delay_error: whether the other inner flows still follow when one fails; its error comes at
            the end, several errors as an ExceptionGroup. Otherwise the error ends the flow at once.
            An error of the mapper itself or of the upstream ends the flow, with the errors that
            were delayed.

    Returns:
        An operator for `Flow.pipe`. Its flow fails with NoneItemError if the mapper returns None,
        and with MissingBackpressureError if the upstream sends more than was requested.

    Raises:
        TypeError: if `mapper` cannot be called, or `prefetch` is not an int.
        ValueError: if `prefetch` is less than 1.
    """
    if not callable(mapper):
        raise TypeError(f"concat_map() takes a function from an item to a Flow, not {mapper!r}")
    check_prefetch(prefetch)
    detail = describe(mapper)
    if prefetch != DEFAULT_PREFETCH:
        detail += f", prefetch={prefetch}"
    if delay_error:
        detail += ", delay_error=True"
    mapping = Mapper(mapper, labelled("concat_map", detail))
    return concat_mapped("concat_map", detail, mapping, prefetch, delay_error)


def concat_mapped(
    name: str, detail: str, mapping: Mapper[T, R], prefetch: int, delay_error: bool
) -> Operator[T, Flow[R]]:
    """Return a `concat_map` under another name, for operators that are built on it."""
    apply = partial(_concat_mapped, mapping=mapping, prefetch=prefetch, delay_error=delay_error)
    return Operator(name, apply, detail)


def _concat_mapped(
    flow: Flow[T], *, mapping: Mapper[T, R], prefetch: int, delay_error: bool
) -> Flow[R]:
    # Not a closure that refers to itself: reference counts alone free flows.
    apply = partial(_concat_mapped, mapping=mapping, prefetch=prefetch, delay_error=delay_error)
    mapped = single(flow, mapping, apply)
    if mapped is not None:
        return mapped
    if isinstance(source_of(flow), IterableSource):
        return Flow(IterableConcatMap(flow, mapping, prefetch, delay_error))
    return Flow(ConcatMap(flow, mapping, prefetch, delay_error))


class ConcatMap(Publisher[R]):
    """The inner flows of `upstream`'s items, one after the other.

    Args:
        upstream: the flow whose items are mapped.
        mapper: returns the inner flows.
        prefetch: items to request ahead.
        delay_error: whether errors of inner flows come at the end.
        eager: whether an inner flow is started without demand, so that its end is known.
    """

    __slots__ = ("_delay_error", "_eager", "_mapper", "_prefetch", "_upstream")

    # Any: only the upstream and the mapper know the type of the items.
    def __init__(
        self,
        upstream: Flow[Any],
        mapper: Mapper[Any, R],
        prefetch: int,
        delay_error: bool,
        *,
        eager: bool = False,
    ) -> None:
        self._upstream = upstream
        self._mapper = mapper
        self._prefetch = prefetch
        self._delay_error = delay_error
        self._eager = eager

    @property
    def upstream(self) -> Flow[Any]:
        """The flow whose items are mapped."""
        return self._upstream

    @property
    def prefetch(self) -> int:
        """The number of items that are requested ahead, for `flow explain`."""
        return self._prefetch

    @property
    def upstreams(self) -> tuple[object, ...]:
        """The inner flows, if they are known beforehand; for `flow explain`."""
        return known_inners(self._upstream)

    @property
    def inner_flows(self) -> str | None:
        """Describe where the inner flows come from, for `flow explain`."""
        told = self._mapper.told(self._upstream)
        return told and f"{told}, one after the other"

    @override
    def subscribe(self, subscriber: Subscriber[R], /) -> None:
        downstream = core_subscriber(subscriber)
        concat: ConcatMapSubscriber[Any, R] = ConcatMapSubscriber(
            downstream,
            self._mapper,
            self._prefetch,
            self._delay_error,
            Fusion.ANY | Fusion.THREAD_BOUNDARY,
            eager=self._eager,
        )
        try:
            outer = pulled(self._upstream, concat.gate)
        except BaseException as error:
            throw_if_fatal(error)
            fail(downstream, error)
            return
        if outer is None:
            self._upstream.subscribe(concat)
        else:
            concat.start(outer)

    def __repr__(self) -> str:
        return self._mapper.label


@final
class IterableConcatMap(ConcatMap[R], IterableSource[R]):
    """A `ConcatMap` over a synchronous upstream; iterating over it needs no subscription."""

    __slots__ = ()

    none_free = True

    @override
    def iterate(self) -> Iterator[R]:
        """Iterate; wait for an inner flow that is asynchronous."""
        mapper, delay_error = self._mapper, self._delay_error
        function = mapper.function
        errors: list[BaseException] = []
        outer = self._upstream.iterate()
        values: Iterator[Any] = outer  # Any, here and below: the type that the mapper takes
        others: list[Any] = []
        try:
            spliced = mapper.spliced
            if not (spliced is None or delay_error or hooks.debugging):
                yield from spliced.iterate(outer, maxsize, others)
                if not others:
                    return
                values = chain((others.pop(),), outer)
            for value in values:
                if value is None:
                    raise none_item(mapper.label)
                try:
                    flow = function(value)
                    if not isinstance(flow, Flow):
                        flow = mapper.flow_of(flow)
                except BaseException as error:
                    raise mapper.failed(error)  # noqa: B904 - the same error, with a note
                try:
                    called = call_of(flow)
                    if called is not None:
                        item: R | None = called.call()
                        if item is not None:
                            yield item
                    else:
                        yield from flow  # its own loop checks for None
                except Exception as error:
                    throw_if_fatal(error)
                    errors.append(error)
                    if not delay_error:
                        break
        except Exception as error:
            throw_if_fatal(error)
            errors.append(error)
        except GeneratorExit:
            for delayed in errors:
                hooks.drop_error(delayed)
            raise
        finally:
            close_iterator(outer)
        if errors:
            failure = combined(mapper.label, errors)
            errors.clear()  # so that there is no cycle with this frame, which the traceback keeps
            try:
                raise failure
            finally:
                del failure
