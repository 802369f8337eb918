"""`Observable`: one way to register, one handle to remove, errors and an end.

A publisher underneath.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, final

from typing_extensions import override

from flow_core import Flow, hooks
from flow_core.demand import UNBOUNDED
from flow_core.errors import none_given, throw_if_fatal
from flow_core.executors import Executor
from flow_core.protocols import CoreSubscriber, Publisher, Subscriber, Subscription
from flow_rxcompat.agera.protocols import ConditionLike, called
from flow_rxcompat.signals.handles import Removable
from flow_rxcompat.signals.joining import (
    flat_mapped,
    merged,
    observed_on,
    subscribed_on,
    until,
)
from flow_rxcompat.signals.updatables import Signal, Updatable

__all__ = ["Observable", "merge"]

R = TypeVar("R")


class Observable(Publisher[Signal]):
    """Announces changes: what Agera's observable could have been.

    >>> from flow_rxcompat.signals import Dispatcher
    >>> dispatcher = Dispatcher()
    >>> with dispatcher.take(2).register(
    ...     lambda: print("changed"), on_complete=lambda: print("over")
    ... ):
    ...     dispatcher.update()
    ...     dispatcher.update()
    ...     dispatcher.update()
    changed
    changed
    over

    It is a ``Publisher[Signal]``: `flow` has the operators of a `Flow`, and `subscribe` takes any
    subscriber. Stages keep no map from one updatable to another. The same updatable may be
    registered twice, and removing it twice is harmless.

    Demand: an updatable takes all updates. Thread: that of the source; `observe_on` and
    `subscribe_on` change it.

    Args:
        source: the publisher of the signals.
    """

    __slots__ = ("__weakref__", "_flow")

    def __init__(self, source: Publisher[Signal]) -> None:
        self._flow: Flow[Signal] = source if isinstance(source, Flow) else Flow(source)

    @property
    def flow(self) -> Flow[Signal]:
        """The same signals as a flow."""
        return self._flow

    @override
    def subscribe(self, subscriber: Subscriber[Signal], /) -> None:
        if subscriber is None:
            raise none_given("subscribe")
        self._flow.subscribe(subscriber)

    def register(
        self,
        update: Updatable | Callable[[], object],
        *,
        on_error: Callable[[BaseException], object] | None = None,
        on_complete: Callable[[], object] | None = None,
    ) -> Removable:
        """Call `update` for each change from now on (R1).

        Args:
            update: an `Updatable`, or a function.
            on_error: if `update` is a function: called with the error; without it, the
                dropped-errors hook gets the error.
            on_complete: if `update` is a function: called at the end.

        Returns:
            The handle that ends the registration. When the source has ended, the handle has ended,
            too.

        Raises:
            TypeError: if `update` is neither an `Updatable` nor a function, or if functions are
                given together with an `Updatable`.
        """
        if isinstance(update, Updatable):
            if on_error is not None or on_complete is not None:
                raise TypeError(
                    "register(updatable) tells its methods error() and complete(); on_error= and "
                    "on_complete= go with a function"
                )
            registration = _Registration(update.update, update.error, update.complete)
            update.on_register(registration.handle)
        else:
            registration = _Registration(called(update, "update"), on_error, on_complete)
        return self._registered(registration)

    def register_with_remover(
        self,
        update: Callable[[Removable], object],
        *,
        on_error: Callable[[BaseException], object] | None = None,
        on_complete: Callable[[], object] | None = None,
    ) -> Removable:
        """Do the same as `register`, with a function that gets the handle with each update (R2).

        >>> from flow_rxcompat.signals import Dispatcher
        >>> dispatcher = Dispatcher()
        >>> handle = dispatcher.register_with_remover(lambda remover: remover.remove())
        >>> dispatcher.update()
        >>> handle.removed
        True
        """
        function = called(update, "update")
        handle = Removable()
        registration = _Registration(lambda: function(handle), on_error, on_complete, handle)
        return self._registered(registration)

    def _registered(self, registration: _Registration) -> Removable:
        handle = registration.handle
        if not handle.removed:
            self._flow.subscribe(registration)
        return handle

    # -- operators

    def take(self, count: int) -> Observable:
        """The first updates, then the end; the source is cancelled at that point.

        Args:
            count: how many updates to take.
        """
        return Observable(self._flow.take(count))

    def skip(self, count: int) -> Observable:
        """All updates but the first ones.

        Args:
            count: how many updates to skip.
        """
        return Observable(self._flow.skip(count))

    def filter(self, condition: ConditionLike) -> Observable:
        """The updates that come while `condition` applies."""
        applies = called(condition, "applies")
        return Observable(self._flow.filter(lambda _: bool(applies())))

    def take_while(self, condition: ConditionLike) -> Observable:
        """The updates up to the first one that comes when `condition` does not apply."""
        applies = called(condition, "applies")
        return Observable(self._flow.take_while(lambda _: bool(applies())))

    def do_on_update(self, action: Callable[[], object]) -> Observable:
        """Call `action` before each update, on the thread of the source."""
        return Observable(self._flow.do_on_next(lambda _: action()))

    def map(self, function: Callable[[], R]) -> Flow[R]:
        """The results of `function`, called at each update: from signals to values."""
        return self._flow.map(lambda _: function())

    def take_until(self, other: Publisher[object]) -> Observable:
        """The updates until `other` emits an item or completes."""
        return Observable(until(self, other))

    def flat_map(
        self, function: Callable[[], Publisher[Signal]], *, concurrency: int = 128
    ) -> Observable:
        """The updates of all observables that `function` returns, which is called at each update.

        Args:
            function: returns an observable.
            concurrency: how many of these observables run at a time; updates that come when that
                many run wait, and are only counted.
        """
        return Observable(flat_mapped(self, function, concurrency))

    def merge_with(self, *others: Publisher[Signal]) -> Observable:
        """The updates of this observable and of `others`; ends with the last of them."""
        return merge(self, *others)

    def observe_on(self, executor: Executor, *, coalesce: bool = False) -> Observable:
        """Deliver the updates on `executor` (R4).

        Updates that wait are only counted: none is lost, and nothing grows.

        Args:
            executor: a pool, or a callable that gets a task to run.
            coalesce: whether updates that come while another update waits are merged with it, as in
                Agera.
        """
        return Observable(observed_on(self, executor, coalesce=coalesce))

    def subscribe_on(self, executor: Executor) -> Observable:
        """Register with the source on `executor`: for sources that work within `register` (R4)."""
        return Observable(subscribed_on(self, executor))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._flow!r})"


@final
class _Registration(CoreSubscriber[Signal]):
    """One updatable, registered once.

    It keeps its subscription itself, so no map is needed to find the subscription.
    """

    __slots__ = ("_complete", "_error", "_subscription", "_update", "handle")

    def __init__(
        self,
        update: Callable[[], object],
        error: Callable[[BaseException], object] | None,
        complete: Callable[[], object] | None,
        handle: Removable | None = None,
    ) -> None:
        self._update = update
        self._error = error
        self._complete = complete
        self._subscription: Subscription | None = None
        self.handle = Removable() if handle is None else handle

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Register the updatable, unless it was removed already."""
        if self._subscription is not None:
            subscription.cancel()  # §2.5
            return
        self._subscription = subscription
        self.handle.attach(subscription.cancel)
        if not self.handle.removed:
            subscription.request(UNBOUNDED)

    @override
    def on_next(self, item: Signal, /) -> None:
        if not self.handle.removed:
            self._update()

    @override
    def on_next_raised(self, error: BaseException, /) -> bool:
        """Pass to the updatable the error that it has raised."""
        if self.handle.removed:
            return False
        self.on_error(error)
        return True

    @override
    def on_error(self, error: BaseException, /) -> None:
        removed = self._ended()
        if removed or self._error is None:
            hooks.drop_error(error)
            return
        try:
            self._error(error)
        except BaseException as raised:
            throw_if_fatal(raised)
            hooks.drop_error(raised)

    @override
    def on_complete(self) -> None:
        if self._ended() or self._complete is None:
            return
        try:
            self._complete()
        except BaseException as raised:
            throw_if_fatal(raised)
            hooks.drop_error(raised)

    def _ended(self) -> bool:
        """End the handle, which has nothing to cancel any more.

        The result is whether the handle was removed before.
        """
        removed = self.handle.removed
        self.handle.attach(_nothing)
        self.handle.remove()
        return removed


def merge(*sources: Publisher[Signal]) -> Observable:
    """The updates of all `sources`; ends with the last of them, fails with the first that fails."""
    return Observable(merged(*sources))


def _nothing() -> None:
    """Do nothing: there is no subscription any more (§3.13)."""
