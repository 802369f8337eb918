"""Observables, repositories and reservoirs of Agera as flows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar, final, runtime_checkable

from typing_extensions import override

from flow_core import Flow
from flow_core.demand import DEFAULT_PREFETCH
from flow_core.errors import throw_if_fatal
from flow_core.protocols import EMPTY, Empty, Publisher, Subscriber
from flow_core.subscribers import core_subscriber
from flow_rxcompat._outlets import (
    Counted,
    Flagged,
    Outlet,
    Polled,
    Queued,
    Store,
    Strategy,
    check_strategy,
)
from flow_rxcompat.agera.errors import IllegalStateError
from flow_rxcompat.agera.loops import Loop, current_loop
from flow_rxcompat.agera.observables import BaseObservable
from flow_rxcompat.agera.protocols import Observable, Repository, Updatable
from flow_rxcompat.agera.reservoirs import Reservoir
from flow_rxcompat.agera.taps import Tapped
from flow_rxcompat.signals.updatables import UPDATE, Signal

__all__ = ["from_agera", "from_repository", "from_reservoir"]

T = TypeVar("T")


@runtime_checkable
class Terminating(Protocol):
    """An observable of `flow_rxcompat.converters`, which can end.

    Agera has no interface for that.
    """

    @property
    def terminated(self) -> bool:
        """True if the flow of the observable has ended."""
        ...

    @property
    def failure(self) -> BaseException | None:
        """The error that the flow has ended with; None otherwise."""
        ...

    @property
    def changes(self) -> int:
        """The number of items that have come."""
        ...


@runtime_checkable
class Filled(Terminating, Protocol):
    """A reservoir of `flow_rxcompat.converters`: ended when its flow has ended and it is empty."""

    @property
    def waiting(self) -> int:
        """The number of items that wait. Reading it takes no lock."""
        ...


def _on(loop: Loop, task: Callable[[], None]) -> None:
    """Run `task` on `loop`: at once, if this thread is in it."""
    if loop.is_current:
        task()
    else:
        loop.post(task)


@final
class _Listener(Updatable, Generic[T]):
    """The updatable of one subscriber. It is added and removed on one loop, each at most once.

    A removal that comes first prevents the adding (A04, A08).
    """

    __slots__ = (
        "_added",
        "_changes",
        "_loop",
        "_observable",
        "_outlet",
        "_stopped",
        "_tapped",
        "_value",
    )

    def __init__(
        self,
        observable: Observable,
        outlet: Outlet[T],
        loop: Loop,
        *,
        value: Callable[[], T] | None,
        tapped: Tapped[T] | None,
    ) -> None:
        self._value = value
        self._observable = observable
        self._outlet = outlet
        self._loop = loop
        self._tapped = tapped
        self._added = False
        self._stopped = False
        self._changes = observable.changes if isinstance(observable, Terminating) else 0

    def start(self, *, current: bool) -> None:
        outlet, tapped = self._outlet, self._tapped
        outlet.attach(self.stop)
        if outlet.over:
            return
        if tapped is not None:
            tapped.tap(outlet, current=current)
            if outlet.over:
                tapped.untap(outlet)  # meanwhile, a cancel may have come before the tap
        _on(self._loop, lambda: self._add(current=current))

    def stop(self) -> None:
        if self._tapped is not None:
            self._tapped.untap(self._outlet)
        _on(self._loop, self._remove)

    def _add(self, *, current: bool) -> None:
        if self._stopped:
            return
        try:
            self._added = True
            self._observable.add_updatable(self)
        except BaseException as error:
            self._added = False
            throw_if_fatal(error)
            self._outlet.end(error)
            return
        self._look(told=current)

    def _remove(self) -> None:
        self._stopped = True
        if self._added:
            self._added = False
            self._observable.remove_updatable(self)

    @override
    def update(self) -> None:
        self._look(told=not isinstance(self._observable, Terminating))

    def _look(self, *, told: bool) -> None:
        """Pass on what has come: an update may stand for values, for the end, or for both."""
        observable = self._observable
        if not isinstance(observable, Terminating):
            if told:
                self._tell()
            return
        # Read first: values from before the end have come by then.
        terminated = observable.terminated
        changes, self._changes = self._changes, observable.changes
        if told or changes != self._changes:
            self._tell()
        if terminated and self._tapped is None:
            self._outlet.end(observable.failure)

    def _tell(self) -> None:
        if self._tapped is not None:
            return
        try:
            value = None if self._value is None else self._value()
        except BaseException as error:
            self.stop()
            throw_if_fatal(error)
            self._outlet.end(error)
            return
        # Without a value, the store asks for it on demand, and None only wakes it up.
        self._outlet.put(value)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        self._outlet.signal()


@final
class _AgeraSource(Publisher[T]):
    """Adds an updatable to an observable for each subscriber."""

    __slots__ = ("_current", "_label", "_loop", "_observable", "_store", "_tapped", "_value")

    def __init__(
        self,
        observable: Observable,
        store: Callable[[], Store[T]],
        label: str,
        loop: Loop | None,
        *,
        value: Callable[[], T] | None = None,
        current: bool = False,
        tapped: Tapped[T] | None = None,
    ) -> None:
        self._value = value
        self._observable = observable
        self._store = store
        self._label = label
        self._loop = loop if loop is not None else current_loop()
        self._current = current
        self._tapped = tapped

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        outlet: Outlet[T] = Outlet(core_subscriber(subscriber), self._store(), self._label)
        outlet.start()
        if outlet.over:
            return
        loop = self._loop or current_loop()
        if loop is None and isinstance(self._observable, BaseObservable):
            loop = self._observable.loop
        if loop is None:
            outlet.end(
                IllegalStateError(
                    f"{self._label}: Can only be added on a Looper thread, and this is not; say "
                    "which one by loop="
                )
            )
            return
        listener = _Listener(self._observable, outlet, loop, value=self._value, tapped=self._tapped)
        listener.start(current=self._current)

    def __repr__(self) -> str:
        return self._label


def from_agera(observable: Observable, *, loop: Loop | None = None) -> Flow[Signal]:
    """The updates of an observable of Agera, as a flow.

    Updates that come while another update waits are merged with it, as between Agera's own parts.
    The flow ends only if the observable was made by one of the converters of this package, such as
    `to_agera`; it fails if that observable has failed.

    Demand: one update waits. Thread: that of the loop, or the requester's. Fusion: none.

    Args:
        observable: gets an updatable for each subscriber; the updatable is removed once, by the
            cancel or the end.
        loop: where the updatable is added and removed. None for the loop of the thread that calls
            this function or subscribes, or else the loop on which the observable was made.
    """
    source: _AgeraSource[Signal] = _AgeraSource(
        observable, lambda: Counted(UPDATE, 1), f"from_agera({type(observable).__name__})", loop
    )
    return Flow(source)


def from_repository(
    repository: Repository[T],
    *,
    strategy: Strategy = "latest",
    capacity: int = DEFAULT_PREFETCH,
    current: bool = True,
    loop: Loop | None = None,
) -> Flow[T]:
    """The values of a repository of Agera, as a flow.

    >>> from flow_rxcompat.agera import TestLoop, repositories
    >>> with TestLoop() as loop:
    ...     numbers = repositories.mutable_repository(0)
    ...     handle = from_repository(numbers, strategy="buffer").subscribe(print)
    ...     numbers.accept(1)
    ...     numbers.accept(2)
    0
    1
    2

    A repository of `mutable_repository` or `to_repository` passes on each of its values as soon as
    it accepts the value, and on the same thread: with ``buffer``, no value is lost; with
    ``latest``, the last value always comes. Other repositories only announce updates: the value is
    read on the loop, and values between two updates are lost.

    Demand: as `strategy` says. Fusion: none.

    Args:
        repository: is active while there is a subscriber.
        strategy: what happens to values that are not requested: ``buffer``, ``latest``, ``drop`` or
            ``error``.
        capacity: how many values wait at most, in ``buffer``.
        current: whether the flow begins with the present value.
        loop: see `from_agera`.

    Raises:
        TypeError: if `capacity` is not an int.
        ValueError: if `capacity` is less than 1, or there is no such strategy.
    """
    check_strategy(strategy, capacity)
    label = f"from_repository({strategy!r})"
    tapped: Tapped[T] | None = repository if isinstance(repository, Tapped) else None
    lazily = tapped is None and strategy == "latest"

    def store() -> Store[T]:
        return Flagged(repository.get) if lazily else Queued(strategy, capacity, label)

    source: _AgeraSource[T] = _AgeraSource(
        repository,
        store,
        label,
        loop,
        value=None if lazily else repository.get,
        current=current,
        tapped=tapped,
    )
    return Flow(source)


def from_reservoir(reservoir: Reservoir[T], *, loop: Loop | None = None) -> Flow[T]:
    """The values of a reservoir of Agera, as a flow: each of them goes to one subscriber.

    Demand: a value is taken from the reservoir when it is requested, and waits there until then.
    Thread: that of the loop, or the requester's. Fusion: none.

    Args:
        reservoir: is active while there is a subscriber.
        loop: see `from_agera`.
    """
    filled = reservoir if isinstance(reservoir, Filled) else None

    def left() -> bool:
        return filled is None or filled.waiting > 0

    def poll() -> T | Empty:
        result = reservoir.get()
        return result.get() if result.succeeded else EMPTY

    source: _AgeraSource[T] = _AgeraSource(
        reservoir, lambda: Polled(poll, left), "from_reservoir()", loop, current=True
    )
    return Flow(source)
