"""Subscribers of flows that feed observers."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from functools import partial
from threading import get_ident
from typing import Generic, TypeVar, final

from reactivex.abc import ObserverBase, SchedulerBase
from typing_extensions import override

from flow_core import hooks
from flow_core.demand import UNBOUNDED, replenish_limit
from flow_core.errors import RejectedExecutionError, none_given, throw_if_fatal
from flow_core.homes import Home, current_home
from flow_core.introspection import Scannable, Statistics
from flow_core.protocols import CoreSubscriber, Publisher, Subscription
from flow_core.serial import SerialDrain

__all__ = ["DirectFeed", "Feed", "ScheduledFeed"]

T = TypeVar("T")


class Feed(SerialDrain, CoreSubscriber[T], Scannable, Generic[T]):
    """Passes the signals of a flow to an observer, until that is disposed of.

    An observer that raises has failed: the flow is cancelled, and the observer gets that error. So
    do ``of``, ``from_iterable``, ``create`` and ``from_callable`` of `reactivex`; with its
    ``range``, ``generate``, ``return_value`` and ``repeat_value``, the error propagates out of
    ``subscribe`` (6.1.0). An error that the observer's ``on_error`` raises (it does if no function
    was given for it) propagates out of `subscribe_to` or `start` if it happened within; otherwise
    it goes to the dropped-errors hook.

    Args:
        observer: gets the signals.
        prefetch: how many items to request at a time.
        home: the home of the flow; None for the loop that runs where the flow is subscribed to.
    """

    __slots__ = (
        "_escaped",
        "_home",
        "_limit",
        "_link",
        "_observer",
        "_over",
        "_prefetch",
        "_ready",
        "_starter",
        "_subscription",
        "_unstarted",
    )

    def __init__(self, observer: ObserverBase[T], prefetch: int, home: Home | None = None) -> None:
        super().__init__()
        self._home = home
        self._observer: ObserverBase[T] | None = observer
        self._prefetch = prefetch
        self._limit = replenish_limit(prefetch)
        self._subscription: Subscription | None = None
        self._link: list[Subscription] = []
        """The subscription. The thread that pops it may cancel it, or handles its end: only one of
        the two happens."""
        self._over = False
        """True when the observer takes no more, or the flow has ended."""
        self._ready = False
        """True when `start` was called."""
        self._unstarted = [True]
        """Not empty until the first request: the thread that pops the entry makes that request."""
        self._starter = 0
        """The thread that is in `start`."""
        self._escaped: BaseException | None = None

    # -- for the observer

    def subscribe_to(self, publisher: Publisher[T]) -> None:
        """Subscribe to a publisher, without requesting anything yet.

        Raises:
            BaseException: an error that the observer's on_error raises meanwhile, in this thread.
        """
        self._raising(partial(publisher.subscribe, self))

    def start(self) -> None:
        """Begin to request, now or when there is a subscription.

        Raises:
            BaseException: an error that the observer's on_error raises meanwhile, in this thread.
        """
        self._ready = True
        if self._subscription is not None:
            self._raising(self._start)
        # Otherwise, on_subscribe reads _ready when that is there.

    def _raising(self, action: Callable[[], object]) -> None:
        self._starter = get_ident()
        try:
            action()
        finally:
            self._starter = 0
        escaped, self._escaped = self._escaped, None
        if escaped is not None:
            raise escaped

    def _start(self) -> None:
        try:
            self._unstarted.pop()
        except IndexError:
            return
        self.begin()

    @abstractmethod
    def begin(self) -> None:
        """Make the first request."""

    def dispose(self) -> None:
        """Cancel the flow, once. Any thread may call this, and more than once."""
        self._over = True
        self._observer = self._subscription = None
        try:
            subscription = self._link.pop()
        except IndexError:
            return
        subscription.cancel()

    # -- for the flow

    @override
    def home(self) -> Home | None:
        return self._home or current_home()

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        if subscription is None:
            raise none_given("on_subscribe")
        if self._subscription is not None or self._over:
            subscription.cancel()  # §2.5, or disposed of before it began
            return
        self._link.append(subscription)
        self._subscription = subscription
        if self._over:  # disposed of meanwhile, by a thread that saw no subscription yet
            self.dispose()
        elif self._ready:
            self._start()

    def _ends(self) -> bool:
        """Return whether a terminal is still expected; only the first caller gets True."""
        try:
            self._link.pop()
        except IndexError:
            return False
        self._subscription = None
        return True

    def request(self, n: int) -> None:
        """Request `n` items, unless the flow has ended."""
        subscription = self._subscription
        if subscription is not None:
            subscription.request(n)

    def deliver(self, item: T) -> None:
        """Pass `item` to the observer."""
        observer = self._observer
        if observer is None:
            hooks.drop_item(item)
            return
        try:
            observer.on_next(item)
        except BaseException as error:
            disposed = self._over
            self.dispose()
            throw_if_fatal(error)
            if disposed:
                hooks.drop_error(error)  # it has left, and gets no more signals
            else:
                self._fail(observer, error)

    def end(self, error: BaseException | None) -> None:
        """Pass the end to the observer."""
        self._over = True
        observer, self._observer = self._observer, None
        if observer is None:
            if error is not None:
                hooks.drop_error(error)
        elif error is not None:
            self._fail(observer, error)
        else:
            try:
                observer.on_completed()
            except BaseException as raised:
                throw_if_fatal(raised)
                self.escape(raised)

    def _fail(self, observer: ObserverBase[T], error: BaseException) -> None:
        try:
            # It is declared to take an Exception, and passes on whatever it gets.
            observer.on_error(error)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        except BaseException as raised:
            throw_if_fatal(raised)
            self.escape(raised)

    def escape(self, error: BaseException) -> None:
        """Handle `error`, which the observer has raised, and which cannot be sent to it."""
        if self._starter == get_ident():
            self._escaped = error
        else:
            hooks.drop_error(error)

    @override
    def statistics(self) -> Statistics:
        return Statistics(
            operator="to_rx",
            capacity=self._prefetch,
            terminated=self._over,
            upstream=self._subscription,
        )


@final
class DirectFeed(Feed[T]):
    """Feeds the observer in the thread that brings the items; no items wait here.

    Demand: `prefetch` items at first; when at least 75 % of them were delivered, as many as were
    delivered are requested again. Nothing is requested while `wanted` returns False. The drain
    makes the requests: if items come within a request, the next one is made when that request has
    returned.

    Args:
        observer: gets the signals.
        prefetch: how many items to request at a time.
        wanted: returns whether to request more now; None to request always. Code that causes it to
            return True has to call `signal` afterwards.
        ended: called when the feed has ended, perhaps twice.
        home: see `Feed`.
    """

    __slots__ = ("_asked", "_ended", "_taken", "_wanted")

    def __init__(
        self,
        observer: ObserverBase[T],
        prefetch: int,
        wanted: Callable[[], bool] | None = None,
        ended: Callable[[], object] | None = None,
        home: Home | None = None,
    ) -> None:
        super().__init__(observer, prefetch, home)
        self._wanted = wanted
        self._ended = ended
        self._asked = 0
        """The number of requested items. Changed only with the permit."""
        self._taken = 0
        """The number of items that came. Changed only by the flow's signals, which come one at a
        time."""

    @override
    def begin(self) -> None:
        self.signal()

    @override
    def dispose(self) -> None:
        super().dispose()
        self._left()

    def _left(self) -> None:
        self._wanted = None
        ended, self._ended = self._ended, None
        if ended is not None:
            ended()

    @override
    def drain(self) -> None:
        """Request as many items as there is room for."""
        wanted = self._wanted
        if self._over or not self._ready or (wanted is not None and not wanted()):
            return
        room = self._prefetch - (self._asked - self._taken)
        if self._asked and room < self._limit:
            return
        self._asked += room
        self.request(room)

    @override
    def on_next(self, item: T, /) -> None:
        if item is None:
            raise none_given("on_next")
        self.deliver(item)
        if self._prefetch != UNBOUNDED:
            self._taken += 1
            if self._asked - self._taken <= self._prefetch - self._limit:
                self.signal()

    @override
    def on_error(self, error: BaseException, /) -> None:
        if error is None:
            raise none_given("on_error")
        if self._ends():
            self._left()
            self.end(error)
        else:
            hooks.drop_error(error)

    @override
    def on_complete(self) -> None:
        if self._ends():
            self._left()
            self.end(None)


@final
class _Turn:
    """One schedule of a `ScheduledFeed`: shows whether the scheduler runs it at once, in place."""

    __slots__ = ("inline", "thread")

    def __init__(self) -> None:
        self.inline = False
        self.thread = get_ident()
        """The scheduling thread; 0 when that is done."""


@final
class ScheduledFeed(Feed[T]):
    """Feeds the observer in actions of a scheduler, one after another.

    An action delivers the items that wait when it begins, and schedules the next one if there are
    more. The permit is held from the first schedule to the last action. Items wait, at most
    `prefetch`.

    Args:
        observer: gets the signals.
        prefetch: how many items to request ahead.
        scheduler: runs the delivery.
    """

    __slots__ = ("_consumed", "_done", "_error", "_queue", "_scheduler")

    def __init__(self, observer: ObserverBase[T], prefetch: int, scheduler: SchedulerBase) -> None:
        super().__init__(observer, prefetch)
        self._scheduler = scheduler
        self._queue: deque[T] = deque()
        self._consumed = 0
        self._done = False
        self._error: list[BaseException] = []
        """At most one error; the thread that pops the error signals it or drops it."""

    @override
    def begin(self) -> None:
        self.request(self._prefetch)

    @override
    def on_next(self, item: T, /) -> None:
        if item is None:
            raise none_given("on_next")
        if self._over:
            hooks.drop_item(item)
            return
        self._queue.append(item)
        self.signal()

    @override
    def on_error(self, error: BaseException, /) -> None:
        """Keep the error; the observer gets it after the items that wait."""
        if error is None:
            raise none_given("on_error")
        if not self._ends():
            hooks.drop_error(error)
            return
        self._error.append(error)
        self._done = True
        self.signal()

    @override
    def on_complete(self) -> None:
        if self._ends():
            self._done = True
            self.signal()

    @override
    def dispose(self) -> None:
        """Cancel; the items that wait are dropped, by this call or by the running action."""
        super().dispose()
        self._clear()

    def _clear(self) -> None:
        hooks.drop_waiting(self._queue)
        try:
            error = self._error.pop()
        except IndexError:
            return
        hooks.drop_error(error)

    @override
    def signal(self) -> None:
        """Drain in an action of the scheduler."""
        if self.try_enter():
            self._schedule()

    @override
    def drain(self) -> None:
        """Deliver the items that are waiting now."""
        for _ in range(len(self._queue)):
            try:
                item = self._queue.popleft()
            except IndexError:
                break  # disposed of
            self.deliver(item)
            self._consumed += 1
            if self._consumed == self._limit and self._prefetch != UNBOUNDED:
                self._consumed = 0
                self.request(self._limit)
        if self._over:
            self._clear()
        elif self._done and not self._queue:
            try:
                error = self._error.pop()
            except IndexError:
                self.end(None)
            else:
                self.end(error)

    def _schedule(self) -> None:
        """Have the scheduler drain. The caller must hold the permit."""
        while True:
            turn = _Turn()

            def run(_: SchedulerBase, __: object, turn: _Turn = turn) -> None:
                if turn.thread == get_ident():
                    turn.inline = True  # no action within an action: the stack would grow
                elif self._drained():
                    self._schedule()

            try:
                self._scheduler.schedule(run)
            except BaseException as error:
                self._refused(error)
                return
            turn.thread = 0
            if not turn.inline or not self._drained():
                return

    def _drained(self) -> bool:
        """Drain once; return whether there is more to do: if so, the permit is kept.

        Otherwise the permit was given back.
        """
        self._missed = False
        try:
            self.drain()
        except BaseException:
            self.leave()
            raise
        if self._queue:
            return True
        self.leave()
        return self._missed and self.try_enter()

    def _refused(self, error: BaseException) -> None:
        """End: the scheduler takes no action, so only this thread can report that (O30)."""
        observer = self._observer
        self.dispose()
        self.leave()
        throw_if_fatal(error)
        refusal = RejectedExecutionError(
            f"{type(self._scheduler).__name__} took no action ({type(error).__name__}: {error}); "
            "dispose of what uses a scheduler before that is shut down"
        )
        refusal.__cause__ = error
        if observer is None:
            hooks.drop_error(refusal)
        else:
            self._fail(observer, refusal)
