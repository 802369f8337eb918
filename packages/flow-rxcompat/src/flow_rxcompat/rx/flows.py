"""`to_rx`: an Observable of the items of a flow."""

from __future__ import annotations

from typing import TypeVar

from reactivex import Observable
from reactivex.abc import DisposableBase, ObserverBase, SchedulerBase
from reactivex.disposable import Disposable
from reactivex.scheduler import CurrentThreadScheduler

from flow_core.demand import DEFAULT_PREFETCH, UNBOUNDED, check_prefetch
from flow_core.protocols import Publisher
from flow_rxcompat.rx.feeding import DirectFeed, Feed, ScheduledFeed

__all__ = ["check_publisher", "check_scheduler", "connect_feed", "make_feed", "to_rx"]

T = TypeVar("T")


def to_rx(
    publisher: Publisher[T],
    scheduler: SchedulerBase | None = None,
    *,
    prefetch: int | None = None,
) -> Observable[T]:
    """An Observable that subscribes to a flow, or to any publisher, for each of its observers.

    >>> import flow_core as flow
    >>> from reactivex import operators as ops
    >>> squares = to_rx(flow.range(1_000_000)).pipe(ops.map(lambda n: n * n), ops.take(3))
    >>> handle = squares.subscribe(print)
    0
    1
    4

    Disposing cancels the flow, once; even within ``on_next``, or while ``subscribe`` has not
    returned yet, as the three items above show.

    Demand: an Observable has no demand, so everything is requested at once; with a `prefetch`, that
    many items at a time, and 75 % of that again when as many were delivered. The first request is
    an action of the scheduler that is given to ``subscribe``, by default the one of the current
    thread: a flow that works in the requesting thread works in that action.
    Thread: that of the flow. With `scheduler`, the observer gets everything in the scheduler's
    actions, in order and one at a time; at most `prefetch` items, by default 128, wait for them,
    and the flow is requested from there.
    Errors: the flow's, as the same object, after the items that came before it. An observer that
    raises fails with that error, as for the cold sources of `reactivex`. If no ``on_error`` was
    given, the error propagates out of ``subscribe`` if it happens there, and otherwise goes to the
    dropped-errors hook. If a scheduler takes no more actions, the observer fails with
    RejectedExecutionError.

    Args:
        publisher: a flow, a processor, a connectable, or a publisher of another library.
        scheduler: runs the observer; None for the thread that the items come on.
        prefetch: items to request ahead, at least 1; None for all, and with a scheduler for 128.

    Raises:
        TypeError: if `publisher` is not a publisher, `scheduler` is not a scheduler, or `prefetch`
            is not an int.
        ValueError: if `prefetch` is less than 1.
    """
    check_publisher("to_rx", publisher)
    check_scheduler("to_rx", scheduler)
    if prefetch is None:
        prefetch = UNBOUNDED if scheduler is None else DEFAULT_PREFETCH
    items = check_prefetch(prefetch)

    def subscribe(
        observer: ObserverBase[T], subscribed_on: SchedulerBase | None = None
    ) -> DisposableBase:
        return connect_feed(publisher, make_feed(observer, scheduler, items), subscribed_on)

    return Observable(subscribe)


def make_feed(observer: ObserverBase[T], scheduler: SchedulerBase | None, prefetch: int) -> Feed[T]:
    """Return the subscriber that feeds `observer`, in the flow's thread or on `scheduler`."""
    if scheduler is None:
        return DirectFeed(observer, prefetch)
    return ScheduledFeed(observer, prefetch, scheduler)


def connect_feed(
    publisher: Publisher[T], feed: Feed[T], scheduler: SchedulerBase | None, *, now: bool = False
) -> DisposableBase:
    """Subscribe `feed`, and let it request when the caller of ``subscribe`` has the disposable.

    Args:
        publisher: the publisher of the items.
        feed: gets the items.
        scheduler: runs the first request; None for the current thread.
        now: whether the first request is made in place.
    """

    def start(_: SchedulerBase, __: object) -> None:
        feed.start()

    trampoline = CurrentThreadScheduler.singleton()
    # Of several in a row, the last one requests first: its action is put before those of the
    # others, which are scheduled while it subscribes. Otherwise, items would come before demand.
    ahead = not now and scheduler is None and not trampoline.schedule_required()
    if ahead:
        trampoline.schedule(start)
    feed.subscribe_to(publisher)
    if now:
        feed.start()
    elif not ahead:
        try:
            (scheduler or trampoline).schedule(start)
        except BaseException:
            feed.dispose()  # no other object can cancel the flow
            raise
    return Disposable(feed.dispose)


def check_publisher(function: str, publisher: object) -> None:
    """Refuse an object that cannot be subscribed to.

    Raises:
        TypeError: if it has no ``subscribe``, or is an Observable.
    """
    if isinstance(publisher, Observable):
        raise TypeError(f"{function}() takes a flow; {publisher!r} is an Observable already")
    if not callable(getattr(publisher, "subscribe", None)):
        raise TypeError(f"{function}() takes a flow or another publisher, not {publisher!r}")


def check_scheduler(function: str, scheduler: object) -> None:
    """Refuse an object that is not a scheduler of `reactivex`.

    Raises:
        TypeError: if it is neither a scheduler nor None.
    """
    if scheduler is not None and not isinstance(scheduler, SchedulerBase):
        raise TypeError(
            f"{function}(scheduler=) takes a scheduler of reactivex, not {scheduler!r}; "
            "flow_ops.observe_on() takes an executor"
        )
