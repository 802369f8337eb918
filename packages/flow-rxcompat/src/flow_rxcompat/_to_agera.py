"""Flows as observables, repositories and reservoirs of Agera."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Final, Generic, TypeVar, final

from typing_extensions import override

from flow_core import from_, hooks
from flow_core.demand import DEFAULT_PREFETCH, UNBOUNDED, check_prefetch, replenish_limit
from flow_core.errors import none_given, throw_if_fatal
from flow_core.protocols import CoreSubscriber, Processor, Publisher, Subscription
from flow_rxcompat._outlets import Lines, Outlet
from flow_rxcompat.agera.errors import not_none
from flow_rxcompat.agera.observables import BaseObservable
from flow_rxcompat.agera.protocols import (
    Repository,
    UpdatableLike,
    UpdateDispatcher,
    called,
)
from flow_rxcompat.agera.reservoirs import Reservoir
from flow_rxcompat.agera.result import Result
from flow_rxcompat.signals.updatables import UPDATE, Signal

__all__ = [
    "FlowObservable",
    "FlowRepository",
    "FlowReservoir",
    "to_agera",
    "to_repository",
    "to_reservoir",
    "to_subscriber",
    "to_update_dispatcher",
]

T = TypeVar("T")

_NO_END: Final[tuple[int, BaseException | None]] = (-1, None)
"""Stands for "no run has ended", in place of the number of an activation and the error of its
run."""


def _call(on_error: Callable[[BaseException], object], error: BaseException) -> None:
    """Call `on_error`. An error that it raises goes to the dropped-errors hook."""
    try:
        on_error(error)
    except BaseException as raised:
        throw_if_fatal(raised)
        hooks.drop_error(raised)


@final
class _Run(CoreSubscriber[T]):
    """The subscriber of one activation. Its owner decides whether its signals still count."""

    __slots__ = ("_asked", "_lock", "_over", "_owner", "_subscription", "activation")

    def __init__(self, owner: _FlowHolder[T], activation: int, asked: int) -> None:
        self._owner = owner
        self.activation = activation
        self._asked = asked
        """The number of items to request when there is a subscription."""
        self._lock = Lock()
        self._over = False
        self._subscription: Subscription | None = None

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        with self._lock:
            refused = self._over or self._subscription is not None
            if not refused:
                self._subscription = subscription
        if refused:
            subscription.cancel()
        elif self._asked:
            subscription.request(self._asked)

    def request(self, n: int) -> None:
        """Request `n` more items, now or when there is a subscription."""
        with self._lock:
            subscription = self._subscription
            if subscription is None:
                self._asked += n
        if subscription is not None:
            subscription.request(n)

    def stop(self) -> None:
        """Cancel the flow."""
        with self._lock:
            self._over = True
            subscription = self._subscription
        if subscription is not None:
            subscription.cancel()

    @override
    def on_next(self, item: T, /) -> None:
        self._owner.came(item, self)

    @override
    def on_next_raised(self, error: BaseException, /) -> bool:
        """Handle an error that an item has raised, such as one of its ``==``."""
        self.on_error(error)
        return True

    @override
    def on_error(self, error: BaseException, /) -> None:
        self._owner.finished(error, self)

    @override
    def on_complete(self) -> None:
        self._owner.finished(None, self)


class _FlowHolder(BaseObservable, Generic[T]):
    """Runs a flow while this is active, once for each activation.

    After the end of the flow, this is `terminated`, and has its `failure`. The flow runs again only
    with the next activation.

    Args:
        flow: the flow to run.
        prefetch: how many items are requested at first.
        on_error: called with the error of the flow, if not None.
    """

    __slots__ = (
        "_changes",
        "_end",
        "_flow",
        "_on_error",
        "_prefetch",
        "_run",
        "_state",
    )

    def __init__(
        self,
        flow: Publisher[T],
        prefetch: int,
        on_error: Callable[[BaseException], object] | None,
    ) -> None:
        super().__init__()
        self._flow = from_(flow)
        self._prefetch = prefetch
        self._on_error = on_error
        self._state = Lock()
        """Guards `_run` and its results. Never held while calling out."""
        self._run: _Run[T] | None = None
        self._changes = 0
        self._end = _NO_END

    @property
    def terminated(self) -> bool:
        """True if the flow has ended; an update has announced it.

        A new activation makes it False, even while the message about it is still on its way.
        """
        return self._end[0] == self._activations

    @property
    def failure(self) -> BaseException | None:
        """The error of the flow, as the same object; None if there is none."""
        activation, error = self._end
        return error if activation == self._activations else None

    @property
    def changes(self) -> int:
        """The number of items that have come."""
        return self._changes

    @override
    def observable_activated(self) -> None:
        """Subscribe to the flow."""
        with self._state:
            self._end = _NO_END
            run = self._run = _Run(self, self._activations, self._room_locked())
        self._flow.subscribe(run)

    @override
    def observable_deactivated(self) -> None:
        """Cancel the flow."""
        with self._state:
            run, self._run = self._run, None
        if run is not None:
            run.stop()

    def _room_locked(self) -> int:
        """Return how many items a run requests at first."""
        return self._prefetch

    @abstractmethod
    def came(self, item: T, run: _Run[T]) -> None:
        """Take `item` of `run`; if that was stopped, `item` goes to the dropped-items hook."""

    def finished(self, error: BaseException | None, run: _Run[T]) -> None:
        """Take the end of `run`, with `error` if it is not None.

        The end counts if the run was not stopped.
        """
        outlets: tuple[Outlet[T], ...] | None = None
        with self._state:
            if run is self._run and self._end is _NO_END:
                self._end = run.activation, error
                outlets = self._end_locked(error)
        if outlets is None:
            if error is not None:
                hooks.drop_error(error)
            return
        for outlet in outlets:
            outlet.end(error)
        if error is not None and self._on_error is not None:
            _call(self._on_error, error)
        self.dispatch_update()

    def _end_locked(self, error: BaseException | None) -> tuple[Outlet[T], ...]:
        """End the flow, under the lock.

        The result is the outlets to signal when the lock is released, before the updatables.
        """
        return ()


@final
class FlowObservable(_FlowHolder[T]):
    """An observable of Agera that updates for each item of a flow, and for its end.

    See `to_agera`.
    """

    __slots__ = ()

    @override
    def came(self, item: T, run: _Run[T]) -> None:
        with self._state:
            late = run is not self._run
            if not late:
                self._changes += 1
        if late:
            hooks.drop_item(item)
        else:
            self.dispatch_update()


@final
class FlowRepository(_FlowHolder[T], Repository[T]):
    """A repository of Agera that holds the newest item of a flow; see `to_repository`."""

    __slots__ = ("_lines", "_value")

    def __init__(
        self,
        flow: Publisher[T],
        initial: T,
        on_error: Callable[[BaseException], object] | None,
    ) -> None:
        super().__init__(flow, UNBOUNDED, on_error)
        self._value = not_none(initial, "to_repository()")
        self._lines: Lines[T] = Lines()

    @override
    def get(self) -> T:
        return self._value

    @override
    def came(self, item: T, run: _Run[T]) -> None:
        """Take an item: taps get each item.

        Updatables are not updated for an item that equals the one before it.
        """
        changed = not self._value == item  # noqa: SIM201 - equality is asked, as Agera does
        outlets: tuple[Outlet[T], ...] | None = None
        with self._state:
            if run is self._run:
                lines = self._lines
                with lines.lock:
                    self._value = item
                    outlets = lines.put_locked(item)
                self._changes += changed
        if outlets is None:
            hooks.drop_item(item)
            return
        for outlet in outlets:
            outlet.signal()
        if changed:
            self.dispatch_update()

    def _end_locked(self, error: BaseException | None) -> tuple[Outlet[T], ...]:
        lines = self._lines
        with lines.lock:
            return lines.end_locked(error)

    @override
    def observable_activated(self) -> None:
        self._next_lines()
        super().observable_activated()

    def tap(self, tap: Outlet[T], *, current: bool) -> None:
        """See `Tapped.tap`: each value goes to `tap` from now on."""
        self._next_lines().join(tap, self.get if current else None)

    def _next_lines(self) -> Lines[T]:
        """Return the lines of the present run, or else of the run that an updatable will begin."""
        with self._state:
            if self._lines.ended and self._run is None:
                self._lines = Lines()
            return self._lines

    def untap(self, tap: Outlet[T]) -> None:
        """See `Tapped.untap`: no more values go to `tap`."""
        self._lines.part(tap)


@final
class FlowReservoir(_FlowHolder[T], Reservoir[T]):
    """A reservoir of Agera that a flow fills; see `to_reservoir`."""

    __slots__ = ("_consumed", "_items", "_limit")

    def __init__(
        self,
        flow: Publisher[T],
        prefetch: int,
        on_error: Callable[[BaseException], object] | None,
    ) -> None:
        super().__init__(flow, check_prefetch(prefetch), on_error)
        self._limit = replenish_limit(prefetch)
        self._items: deque[tuple[T, bool]] = deque()
        """The items that wait, each with whether it comes from the flow."""
        self._consumed = 0

    @property
    def waiting(self) -> int:
        """The number of items that wait."""
        return len(self._items)

    @override
    def accept(self, value: T, /) -> None:
        """Take a value that does not come from the flow."""
        self._add(not_none(value, "accept()"), None)

    @override
    def came(self, item: T, run: _Run[T]) -> None:
        self._add(item, run)

    def _add(self, item: T, run: _Run[T] | None) -> None:
        with self._state:
            late = run is not None and run is not self._run
            first = not self._items
            if not late:
                self._items.append((item, run is not None))
                self._changes += 1
        if late:
            hooks.drop_item(item)
        elif first:
            self.dispatch_update()

    @override
    def get(self) -> Result[T]:
        """Return the next item, and make room for more."""
        more: _Run[T] | None = None
        with self._state:
            if not self._items:
                return Result.absent()
            item, flowed = self._items.popleft()
            left = bool(self._items)
            if flowed and self._run is not None:
                self._consumed += 1  # from any run: it makes room for an item of this run
                if self._consumed == self._limit:
                    self._consumed = 0
                    more = self._run
        if more is not None and not self.terminated:
            more.request(self._limit)
        if left:
            self.dispatch_update()
        return Result.success(item)

    @override
    def observable_activated(self) -> None:
        if self._items:
            self.dispatch_update()
        super().observable_activated()

    def _room_locked(self) -> int:
        self._consumed = 0
        return max(0, self._prefetch - sum(flowed for _, flowed in self._items))


def to_agera(
    flow: Publisher[object], *, on_error: Callable[[BaseException], object] | None = None
) -> FlowObservable[object]:
    """A flow, or signals, as an observable of Agera: it updates for each item, and for the end.

    The flow is shared: it runs once for all updatables, while there are any. Removing the last
    updatable cancels the flow.

    Demand: everything is requested; updates coalesce. Thread: updatables are called on the loops
    from which they were added.

    Args:
        flow: an object with ``subscribe``, or anything else that `flow_core.from_` converts.
        on_error: called with the error of the flow, which Agera cannot pass on; the observable also
            has the error as `failure`.

    Raises:
        IllegalStateError: if this thread has no loop.
    """
    return FlowObservable(flow, UNBOUNDED, on_error)


def to_repository(
    flow: Publisher[T],
    initial: T,
    *,
    on_error: Callable[[BaseException], object] | None = None,
) -> FlowRepository[T]:
    """The newest item of a flow as a repository of Agera.

    The flow is shared, as by `to_agera`. `from_repository` makes a flow of the result again, with
    all items and their end.

    Demand: everything is requested; only the newest item is kept.

    Args:
        flow: an object with ``subscribe``, or anything else that `flow_core.from_` converts.
        initial: the value before the first item.
        on_error: called with the error of the flow; the repository also has the error as `failure`.

    Raises:
        IllegalStateError: if this thread has no loop.
        NoneItemError: if `initial` is None.
    """
    return FlowRepository(flow, initial, on_error)


def to_reservoir(
    flow: Publisher[T],
    *,
    prefetch: int = DEFAULT_PREFETCH,
    on_error: Callable[[BaseException], object] | None = None,
) -> FlowReservoir[T]:
    """All items of a flow as a reservoir of Agera, which loses none of them.

    The flow is shared, as by `to_agera`; each item can be taken from the reservoir once.

    Demand: `prefetch` items are requested, minus the items that still wait from an earlier run;
    more are requested as items are taken. At most `prefetch` items wait.

    Args:
        flow: an object with ``subscribe``, or anything else that `flow_core.from_` converts.
        prefetch: how many items wait at most.
        on_error: called with the error of the flow; the reservoir also has the error as `failure`.

    Raises:
        IllegalStateError: if this thread has no loop.
        ValueError: if `prefetch` is less than 1.
    """
    return FlowReservoir(flow, prefetch, on_error)


@final
class _ProcessorDispatcher(UpdateDispatcher):
    """Passes updates through a processor; the items of its flow are the updates that come out."""

    __slots__ = ("_observable", "_processor")

    def __init__(self, processor: Processor[Signal, object]) -> None:
        self._processor = processor
        self._observable = to_agera(processor)

    def add_updatable(self, updatable: UpdatableLike, /) -> None:
        self._observable.add_updatable(updatable)

    def remove_updatable(self, updatable: UpdatableLike, /) -> None:
        self._observable.remove_updatable(updatable)

    def update(self) -> None:
        self._processor.on_next(UPDATE)


def to_update_dispatcher(processor: Processor[Signal, object]) -> UpdateDispatcher:
    """A processor as a dispatcher of Agera: ``update()`` is ``on_next(UPDATE)``.

    Args:
        processor: its ``on_next`` is called on the threads that call ``update``.

    Raises:
        IllegalStateError: if this thread has no loop.
    """
    return _ProcessorDispatcher(processor)


@final
class _UpdatableSubscriber(CoreSubscriber[object]):
    __slots__ = ("_on_error", "_subscription", "_update")

    def __init__(
        self, updatable: UpdatableLike, on_error: Callable[[BaseException], object] | None
    ) -> None:
        self._update = called(updatable, "update")
        self._on_error = on_error
        self._subscription: Subscription | None = None

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if subscription is None:
            raise none_given("on_subscribe")
        if self._subscription is not None:
            subscription.cancel()  # §2.5
            return
        self._subscription = subscription
        subscription.request(UNBOUNDED)

    def on_next(self, item: object, /) -> None:
        if item is None:
            raise none_given("on_next")
        self._update()

    def on_error(self, error: BaseException, /) -> None:
        if error is None:
            raise none_given("on_error")
        if self._on_error is None:
            hooks.drop_error(error)
        else:
            _call(self._on_error, error)
        self._update()

    def on_complete(self) -> None:
        self._update()


def to_subscriber(
    updatable: UpdatableLike, *, on_error: Callable[[BaseException], object] | None = None
) -> CoreSubscriber[object]:
    """An updatable of Agera, such as a dispatcher, as a subscriber.

    Each signal is an update, even the end and an error: Agera has nothing else for them.

    Args:
        updatable: called on the thread of the flow.
        on_error: called with the error of the flow; without this function, the dropped-errors hook
            gets the error.
    """
    return _UpdatableSubscriber(updatable, on_error)
