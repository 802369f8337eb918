"""`from_rx`: a flow of the items that an Observable pushes."""

from __future__ import annotations

from typing import Generic, TypeVar, final

from reactivex.abc import ObservableBase, ObserverBase, SchedulerBase
from reactivex.disposable import SingleAssignmentDisposable
from typing_extensions import override

from flow_core import Flow, NoneItemError
from flow_core.demand import UNBOUNDED, check_prefetch
from flow_core.errors import FlowError, is_fatal
from flow_core.protocols import Publisher, Subscriber
from flow_core.sources import OVERFLOWS, Emitter, EmitterSubscription, Overflow
from flow_core.subscribers import core_subscriber
from flow_rxcompat.rx.trampoline import run_trampolined

__all__ = ["EmittingObserver", "check_strategy", "from_rx", "receive"]

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)


def from_rx(
    observable: ObservableBase[T],
    *,
    strategy: Overflow = "buffer",
    capacity: int = UNBOUNDED,
    scheduler: SchedulerBase | None = None,
) -> Flow[T]:
    """The items that an Observable pushes, sent to subscribers on demand.

    >>> import reactivex
    >>> numbers = from_rx(reactivex.range(1_000))
    >>> sum(numbers.filter(lambda n: n % 2 == 1))
    250000
    >>> list(from_rx(reactivex.range(1_000), strategy="latest").take(1))
    [0]

    An Observable cannot wait for demand. `strategy` decides what happens to an item that is not
    requested when it comes:

    =========== ==================================================================================
    `strategy`  treatment of an item that is not requested
    =========== ==================================================================================
    ``buffer``  it waits, as one of at most `capacity`; without room the flow fails with
                MissingBackpressureError, after the items that wait: no item is lost silently
    ``latest``  it replaces the item that waits, if there is one: the last item always comes
    ``drop``    it goes to the dropped-items hook, as the one replaced by ``latest`` does
    ``error``   the flow fails with MissingBackpressureError
    ``missing`` it is delivered all the same, for an operator downstream that deals with it
    =========== ==================================================================================

    Each subscriber subscribes to the Observable, so a cold one runs again for each, and subscribers
    of a subject get the items that come from then on. A connectable Observable waits for its own
    ``connect()``; see `from_rx_connectable`.

    Most cold Observables push everything before ``subscribe`` returns. A loop over the flow has not
    taken any item by then. So for an Observable without an end, subscribe with a `scheduler` that
    has a separate thread, or put ``take`` or another stage that stops behind the Observable.

    Cancelling disposes of the subscription, also from within ``on_next``. An Observable that pushes
    in its own subscribe function without using its scheduler cannot notice that before it returns,
    as in ReactiveX; items that it still pushes are not delivered.

    Demand: treated as the table says; it does not reach the Observable. Thread: items come on the
    one that pushes, or on the requester's if they had to wait. Items that several threads push at
    once, against the rules of ReactiveX, are put in some order and delivered one by one.
    Fusion: ``buffer`` grants ASYNC, also across threads.
    Errors: the Observable's, as the same object. None is not an item: it fails the flow with
    NoneItemError. A fatal error, such as MemoryError, becomes the cause of a FlowError.

    Args:
        observable: an Observable of any kind.
        strategy: what happens to an item that is not requested, as in the table.
        capacity: the most items that wait, at least 1. Without a capacity, memory is the limit: an
            Observable cannot be made to wait.
        scheduler: the scheduler for the subscription, which the Observable uses by default. Without
            a scheduler, the Observable works in the subscribing thread; if this thread is just in
            an action of `reactivex`, after that action. Code that waits for items within that
            action, such as a ``for`` loop, needs a scheduler with another thread: otherwise it
            waits for itself.

    Raises:
        TypeError: if `observable` is not an Observable, or `capacity` is not an int.
        ValueError: if `capacity` is less than 1, or there is no such strategy.
    """
    if not isinstance(observable, ObservableBase):
        raise TypeError(f"from_rx() takes an Observable of reactivex, not {observable!r}")
    check_strategy("from_rx", strategy, capacity)
    return Flow(ObservableSource(observable, strategy, capacity, scheduler))


def check_strategy(function: str, strategy: Overflow, capacity: int) -> None:
    """Refuse an unknown strategy or a wrong capacity.

    Raises:
        TypeError: if `capacity` is not an int.
        ValueError: if `capacity` is less than 1, or there is no such strategy.
    """
    if strategy not in OVERFLOWS:
        raise ValueError(
            f"{function}(strategy=) takes one of {', '.join(OVERFLOWS)}, not {strategy!r}"
        )
    check_prefetch(capacity, "capacity")


@final
class ObservableSource(Publisher[T]):
    """The items that an Observable pushes, for each subscriber again.

    Args:
        observable: the Observable.
        strategy: what happens to items that are not requested.
        capacity: how many of them may wait.
        scheduler: the scheduler for the subscription.
    """

    __slots__ = ("_capacity", "_observable", "_scheduler", "_strategy")

    def __init__(
        self,
        observable: ObservableBase[T],
        strategy: Overflow,
        capacity: int,
        scheduler: SchedulerBase | None,
    ) -> None:
        self._observable = observable
        self._strategy: Overflow = strategy
        self._capacity = capacity
        self._scheduler = scheduler

    @property
    def keeps_latest(self) -> bool:
        """Return whether an item that is not requested in time is replaced by the next one."""
        return self._strategy == "latest"

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        emitter = EmitterSubscription(
            core_subscriber(subscriber), self._strategy, self._capacity, repr(self)
        )
        emitter.start()
        if not emitter.cancelled:
            receive(self._observable, emitter, self._scheduler)

    def __repr__(self) -> str:
        return f"from_rx({type(self._observable).__name__})"


def receive(
    observable: ObservableBase[T],
    emitter: EmitterSubscription[T],
    scheduler: SchedulerBase | None,
) -> None:
    """Subscribe to `observable` for an emitter, whose end disposes of the subscription."""
    upstream = SingleAssignmentDisposable()
    emitter.on_dispose(upstream.dispose)

    def begin() -> None:
        made = observable.subscribe(EmittingObserver(emitter), scheduler=scheduler)
        upstream.disposable = made

    try:
        run_trampolined(begin)
    except BaseException as error:
        if is_fatal(error):
            emitter.cancel()
            raise
        emitter.error(error)


@final
class EmittingObserver(ObserverBase[T_contra], Generic[T_contra]):
    """Passes what an Observable pushes to an emitter, which puts the signals in order."""

    __slots__ = ("_emitter",)

    def __init__(self, emitter: Emitter[T_contra]) -> None:
        self._emitter = emitter

    @override
    def on_next(self, value: T_contra) -> None:
        if value is None:
            self._emitter.error(
                NoneItemError(
                    "the Observable pushed None, which is not an item; filter or map it before"
                )
            )
        else:
            self._emitter.next(value)

    @override
    def on_error(self, error: Exception) -> None:
        self._emitter.error(_signalled(error))

    @override
    def on_completed(self) -> None:
        self._emitter.complete()


def _signalled(error: object) -> BaseException:
    """Return the exception to signal for `error`; observers may get any object."""
    if not isinstance(error, BaseException):
        return TypeError(f"the Observable failed with {error!r}, which is not an exception")
    if is_fatal(error):
        # It was raised and caught already: raising it once more would end another thread.
        failure = FlowError(f"the Observable was ended by {type(error).__name__}")
        failure.__cause__ = error
        return failure
    return error
