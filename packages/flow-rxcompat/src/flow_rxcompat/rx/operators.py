"""`rx` and `via_flow`: operators of one library in a pipeline of the other."""

from __future__ import annotations

from collections.abc import Callable
from types import CellType
from typing import Any, Generic, TypeVar, final

from reactivex import Observable
from reactivex.abc import DisposableBase, ObservableBase, ObserverBase, SchedulerBase
from typing_extensions import override

from flow_core import Flow, Operator
from flow_core.demand import DEFAULT_PREFETCH, UNBOUNDED, check_prefetch
from flow_core.errors import throw_if_fatal
from flow_core.homes import Home
from flow_core.protocols import Publisher, Subscriber
from flow_core.sources import EmitterSubscription, Overflow
from flow_core.stages import describe
from flow_core.subscribers import core_subscriber
from flow_rxcompat.rx.feeding import DirectFeed
from flow_rxcompat.rx.flows import check_scheduler, connect_feed, to_rx
from flow_rxcompat.rx.observables import check_strategy, from_rx, receive

__all__ = ["rx", "via_flow"]

T = TypeVar("T")
R = TypeVar("R")


def rx(
    operator: Callable[[Observable[T]], Observable[R]],
    /,
    *,
    strategy: Overflow = "buffer",
    capacity: int = UNBOUNDED,
    prefetch: int = DEFAULT_PREFETCH,
    scheduler: SchedulerBase | None = None,
) -> Operator[T, Flow[R]]:
    """An operator of `reactivex` as an operator of a flow.

    >>> import flow_core as flow
    >>> import reactivex
    >>> from reactivex import operators as ops
    >>> list(flow.range(6).pipe(rx(ops.pairwise())).filter(lambda pair: sum(pair) > 5))
    [(3, 4), (4, 5)]
    >>> list(flow.range(6).pipe(rx(reactivex.compose(ops.skip(2), ops.pairwise(), ops.take(1)))))
    [(2, 3)]

    The operator is applied again for each subscriber: ``ops.share()`` has nothing to share here.

    Demand: with ``buffer``, `prefetch` items are requested of the upstream at a time, and only as
    long as the downstream wants more results than have come out. So only the results for items that
    were already requested wait. An operator that sends its results at once therefore respects
    back-pressure; an operator that keeps items, such as ``ops.delay``, gets items as fast as they
    come. With another strategy, everything is requested, and the strategy decides; see `from_rx`.
    Thread: that of the upstream, or where the operator changes it. Fusion: ``buffer`` grants ASYNC,
    also across threads.
    Errors: those of the upstream and of the operator, as the same objects; and an error that
    `operator` itself raises.

    Args:
        operator: an operator, as ``Observable.pipe`` takes it; ``reactivex.compose`` makes one
            operator of several.
        strategy: what happens to results that are not requested when they come out; see `from_rx`.
        capacity: the most results that wait, at least 1.
        prefetch: how many items to request at a time, with ``buffer``.
        scheduler: the scheduler for the subscription, which the operator uses by default. The
            upstream is first requested there, too.

    Raises:
        TypeError: if `operator` cannot be called, or a number is not an int.
        ValueError: if a number is less than 1, or there is no such strategy.
    """
    if not callable(operator):
        raise TypeError(
            f"rx() takes an operator of reactivex, such as ops.pairwise(), not {operator!r}"
        )
    check_strategy("rx", strategy, capacity)
    check_prefetch(prefetch)
    check_scheduler("rx", scheduler)
    detail = _name(operator)

    def apply(flow: Flow[T]) -> Flow[R]:
        return Flow(
            OperatorSource(
                flow,
                operator,
                strategy=strategy,
                capacity=capacity,
                prefetch=prefetch,
                scheduler=scheduler,
                detail=detail,
            )
        )

    return Operator("rx", apply, detail)


def _name(operator: object) -> str:
    """Return the name of the function that made an operator of `reactivex`, or its own name."""
    if not _module(operator).startswith("reactivex."):
        return describe(operator)
    # Some releases return the maker itself, others a function that has it in a cell.
    cells: tuple[CellType, ...] = getattr(operator, "__closure__", None) or ()
    for function in (operator, *(cell.cell_contents for cell in cells)):
        if _module(function).startswith("reactivex.operators."):
            return describe(function).strip("_")
    return describe(operator).strip("_")


def _module(value: object) -> str:
    name: object = getattr(value, "__module__", None)
    return name if isinstance(name, str) else ""


@final
class OperatorSource(Publisher[R], Generic[T, R]):
    """The results of an operator of `reactivex` for `upstream`.

    Args:
        upstream: the flow with the items.
        operator: applied to an Observable of the flow, for each subscriber.
        strategy: what happens to results that are not requested.
        capacity: how many results may wait.
        prefetch: how many items to request at a time.
        scheduler: the scheduler for the subscription.
        detail: the operator, for messages.
    """

    __slots__ = (
        "_capacity",
        "_detail",
        "_operator",
        "_prefetch",
        "_scheduler",
        "_strategy",
        "_upstream",
    )

    def __init__(
        self,
        upstream: Publisher[T],
        operator: Callable[[Observable[T]], Observable[R]],
        *,
        strategy: Overflow,
        capacity: int,
        prefetch: int,
        scheduler: SchedulerBase | None,
        detail: str,
    ) -> None:
        self._upstream = upstream
        self._operator = operator
        self._strategy: Overflow = strategy
        self._capacity = capacity
        self._prefetch = prefetch
        self._scheduler = scheduler
        self._detail = detail

    @override
    def subscribe(self, subscriber: Subscriber[R], /) -> None:
        downstream = core_subscriber(subscriber)
        emitter: EmitterSubscription[R] = EmitterSubscription(
            downstream, self._strategy, self._capacity, repr(self)
        )
        emitter.start()
        if emitter.cancelled:
            return
        prefetch = self._prefetch if self._strategy == "buffer" else None
        upstream = observed(self._upstream, emitter, prefetch, downstream.home())
        try:
            made = self._operator(upstream)
            if not isinstance(made, ObservableBase):
                raise TypeError(f"{self!r}: the operator gave {made!r}, not an Observable")
        except Exception as error:
            throw_if_fatal(error)
            emitter.error(error)
            return
        receive(made, emitter, self._scheduler)

    def __repr__(self) -> str:
        return f"rx({self._detail})"


def observed(
    publisher: Publisher[T],
    emitter: EmitterSubscription[Any],
    prefetch: int | None,
    home: Home | None,
) -> Observable[T]:
    """Do the same as `to_rx`, but request nothing while the emitter's downstream has no demand.

    Args:
        publisher: the publisher of the items.
        emitter: where the results finally go, as items of any type.
        prefetch: how many items to request at a time; None for all, with or without demand.
        home: the home of the flow.
    """
    feeds: dict[DirectFeed[T], None] = {}
    """The running feeds: operators may subscribe more than once."""

    def wanted() -> bool:
        return prefetch is None or emitter.requested > 0

    def requested(_: int) -> None:
        for feed in [*feeds]:
            feed.signal()

    def subscribe(
        observer: ObserverBase[T], scheduler: SchedulerBase | None = None
    ) -> DisposableBase:
        feed = DirectFeed(
            observer, prefetch or UNBOUNDED, wanted, lambda: feeds.pop(feed, None), home
        )
        feeds[feed] = None
        return connect_feed(publisher, feed, scheduler)

    emitter.on_request(requested)
    return Observable(subscribe)


def via_flow(
    operator: Operator[T, Flow[R]] | Callable[[Flow[T]], Publisher[R]],
    *,
    strategy: Overflow = "buffer",
    capacity: int = UNBOUNDED,
    scheduler: SchedulerBase | None = None,
) -> Callable[[Observable[T]], Observable[R]]:
    """Operators of flows as one operator of `reactivex`.

    >>> import reactivex
    >>> reactivex.range(5).pipe(
    ...     via_flow(lambda numbers: numbers.filter(lambda n: n % 2 == 0).pairwise())
    ... ).run()
    (2, 4)

    Args:
        operator: an operator as `Flow.pipe` takes it, or a function that returns a flow, or any
            publisher, for a flow.
        strategy: what happens to items that the operators have not requested; see `from_rx`.
        capacity: the most items that wait, at least 1.
        scheduler: runs what follows; see `to_rx`.

    Raises:
        TypeError: if `operator` is not one of these, or `capacity` is not an int.
        ValueError: if `capacity` is less than 1, or there is no such strategy.
    """
    if not isinstance(operator, Operator) and not callable(operator):
        raise TypeError(f"via_flow() takes an Operator or a function of a flow, not {operator!r}")
    check_strategy("via_flow", strategy, capacity)
    check_scheduler("via_flow", scheduler)

    def apply(observable: Observable[T]) -> Observable[R]:
        items = from_rx(observable, strategy=strategy, capacity=capacity)
        made = items.pipe(operator) if isinstance(operator, Operator) else operator(items)
        return to_rx(made, scheduler)

    return apply
