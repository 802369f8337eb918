"""`BaseObservable`, and observables made of others."""

from __future__ import annotations

import math
from threading import Lock
from typing import final

from typing_extensions import override

from flow_rxcompat.agera.errors import IllegalStateError, not_none
from flow_rxcompat.agera.handlers import Message, WorkerHandler, worker_handler
from flow_rxcompat.agera.loops import Loop, loop_needed
from flow_rxcompat.agera.protocols import (
    ActivationHandler,
    ConditionLike,
    Observable,
    Updatable,
    UpdatableLike,
    UpdateDispatcher,
    called,
)

__all__ = [
    "BaseObservable",
    "composite_observable",
    "conditional_observable",
    "per_loop_observable",
    "per_millisecond_observable",
    "update_dispatcher",
]


class BaseObservable(Observable):
    """Keeps the updatables, and calls each on the loop from which it was added.

    >>> from flow_rxcompat.agera import BaseObservable, TestLoop
    >>> class Door(BaseObservable):
    ...     def opened(self) -> None:
    ...         self.dispatch_update()
    >>> with TestLoop() as loop:
    ...     door = Door()
    ...     door.add_updatable(lambda: print("ding"))
    ...     door.opened()
    ...     door.opened()
    ...     loop.drain()
    ding

    An observable is active while it has an updatable. The first updatable activates it: at once if
    it is added from the loop that made this, else by a message to that loop. The last removal sends
    a message that deactivates it; if an updatable is added before the message arrives, the message
    is taken back.

    Args:
        shortest_update_window_ms: the minimum number of milliseconds between two updates; 0 for one
            update in each turn of the loop.

    Raises:
        IllegalStateError: if the thread that makes the observable has no loop.
    """

    __slots__ = (
        "__weakref__",
        "_activations",
        "_handler",
        "_last_update_s",
        "_lock",
        "_pending_update",
        "_updatables",
        "_window_s",
    )

    def __init__(self, *, shortest_update_window_ms: int = 0) -> None:
        self._handler = worker_handler("created")
        self._window_s = shortest_update_window_ms / 1000
        self._lock = Lock()
        self._updatables: dict[int, tuple[UpdatableLike, WorkerHandler]] = {}
        self._activations = 0
        """The number of activations, and of messages on their way that will activate this."""
        self._last_update_s = -math.inf
        self._pending_update = False

    @property
    def loop(self) -> Loop:
        """The loop on which this was made."""
        return self._handler.loop

    @property
    def is_active(self) -> bool:
        """True if there is an updatable."""
        return bool(self._updatables)

    @property
    def shortest_update_window_ms(self) -> float:
        """The minimum number of milliseconds between two updates."""
        return self._window_s * 1000

    @override
    def add_updatable(self, updatable: UpdatableLike, /) -> None:
        handler = worker_handler("added")
        called(updatable, "update")
        activate = False
        own = self._handler
        with self._lock:
            if id(updatable) in self._updatables:
                raise IllegalStateError("Updatable already added, cannot add.")
            self._updatables[id(updatable)] = (updatable, handler)
            if len(self._updatables) == 1:
                if own.has(Message.LAST_REMOVED, self):
                    own.remove(Message.LAST_REMOVED, self)
                else:
                    self._activations += 1
                    activate = handler.loop is own.loop
                    if not activate:
                        own.send(Message.FIRST_ADDED, self, self.observable_activated)
        if activate:
            self.observable_activated()

    @override
    def remove_updatable(self, updatable: UpdatableLike, /) -> None:
        loop_needed("removed")
        not_none(updatable, "remove_updatable()")
        own = self._handler
        with self._lock:
            known = self._updatables.pop(id(updatable), None)
            if known is None:
                raise IllegalStateError("Updatable not added, cannot remove.")
            known[1].forget(updatable, self)
            if not self._updatables:
                own.send(Message.LAST_REMOVED, self, self.observable_deactivated)
                own.remove(Message.UPDATE, self)
                self._pending_update = False

    def dispatch_update(self) -> None:
        """Update all updatables, once, in a later turn. Any thread may call this."""
        with self._lock:
            if not self._pending_update:
                self._pending_update = True
                self._handler.send(Message.UPDATE, self, self._send_update)

    def _send_update(self) -> None:
        with self._lock:
            if not self._pending_update:
                return
            if self._window_s > 0:
                now = self._handler.loop.now()
                left = self._window_s - (now - self._last_update_s)
                if left > 0:
                    self._handler.send(Message.UPDATE, self, self._send_update, left)
                    return
                self._last_update_s = now
            self._pending_update = False
            for updatable, handler in self._updatables.values():
                handler.update(updatable, self)

    def observable_activated(self) -> None:
        """Called when there is a first updatable, on the loop that made this.

        A subclass overrides it.
        """

    def observable_deactivated(self) -> None:
        """Called when there is no updatable any more, on the loop that made this.

        A subclass overrides it.
        """


@final
class _CompositeObservable(BaseObservable, Updatable):
    __slots__ = ("observables",)

    def __init__(self, window_ms: int, observables: tuple[Observable, ...]) -> None:
        super().__init__(shortest_update_window_ms=window_ms)
        self.observables = observables

    def observable_activated(self) -> None:
        for observable in self.observables:
            observable.add_updatable(self)

    def observable_deactivated(self) -> None:
        for observable in self.observables:
            observable.remove_updatable(self)

    def update(self) -> None:
        self.dispatch_update()


@final
class _ConditionalObservable(BaseObservable, Updatable):
    __slots__ = ("_applies", "_observable")

    def __init__(self, observable: Observable, condition: ConditionLike) -> None:
        super().__init__()
        self._observable = observable
        self._applies = called(condition, "applies")

    def observable_activated(self) -> None:
        self._observable.add_updatable(self)

    def observable_deactivated(self) -> None:
        self._observable.remove_updatable(self)

    def update(self) -> None:
        if self._applies():
            self.dispatch_update()


@final
class _AsyncUpdateDispatcher(BaseObservable, UpdateDispatcher):
    __slots__ = ("_activation_handler",)

    def __init__(self, activation_handler: ActivationHandler | None) -> None:
        super().__init__()
        self._activation_handler = activation_handler

    def observable_activated(self) -> None:
        if self._activation_handler is not None:
            self._activation_handler.observable_activated(self)

    def observable_deactivated(self) -> None:
        if self._activation_handler is not None:
            self._activation_handler.observable_deactivated(self)

    def update(self) -> None:
        self.dispatch_update()


def _composite(window_ms: int, observables: tuple[Observable, ...]) -> BaseObservable:
    flat: dict[int, Observable] = {}
    for observable in observables:
        not_none(observable, "observables")
        if (
            isinstance(observable, _CompositeObservable)
            and not observable.shortest_update_window_ms
        ):
            flat.update((id(each), each) for each in observable.observables)
        else:
            flat.setdefault(id(observable), observable)
    return _CompositeObservable(window_ms, tuple(flat.values()))


def composite_observable(*observables: Observable) -> BaseObservable:
    """Return an observable of the updates of all `observables`.

    Updates that come in one turn are merged.

    Composite observables among them are replaced by their parts, and duplicates are left out.

    Raises:
        IllegalStateError: if this thread has no loop.
    """
    return _composite(0, observables)


def conditional_observable(condition: ConditionLike, *observables: Observable) -> BaseObservable:
    """Return an observable of the updates of `observables` that come while `condition` applies.

    Raises:
        IllegalStateError: if this thread has no loop.
    """
    return _ConditionalObservable(_composite(0, observables), condition)


def per_millisecond_observable(
    shortest_update_window_ms: int, *observables: Observable
) -> BaseObservable:
    """Return an observable that updates at once, and then not again before the window has passed.

    Args:
        shortest_update_window_ms: the window, in milliseconds.
        observables: the observables whose updates pass.

    Raises:
        IllegalStateError: if this thread has no loop.
    """
    return _composite(shortest_update_window_ms, observables)


def per_loop_observable(*observables: Observable) -> BaseObservable:
    """Return an observable that updates once per turn of the loop, as all observables do.

    Raises:
        IllegalStateError: if this thread has no loop.
    """
    return _composite(0, observables)


def update_dispatcher(activation_handler: ActivationHandler | None = None) -> UpdateDispatcher:
    """Return an observable whose `update` updates its updatables; callable from any thread.

    Args:
        activation_handler: called when the first updatable has come, and when the last one has
            left.

    Raises:
        IllegalStateError: if this thread has no loop.
    """
    return _AsyncUpdateDispatcher(activation_handler)
