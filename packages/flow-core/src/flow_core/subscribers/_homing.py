"""Brings signals of other threads into the event loop in which a flow was subscribed to."""

from __future__ import annotations

from collections import deque
from threading import get_ident
from typing import Final, Generic, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.errors import none_given, throw_if_fatal
from flow_core.homes import Home
from flow_core.introspection import Scannable, Statistics
from flow_core.protocols import CoreSubscriber, Subscription
from flow_core.sources._loops import LoopWatch, closed_loop

__all__ = ["HomingSubscriber"]

T = TypeVar("T")


@final
class _End:
    """Stands for the end of the flow among the signals."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException | None) -> None:
        self.error: Final = error


@final
class HomingSubscriber(CoreSubscriber[T], Subscription, Scannable, Generic[T]):
    """Calls its downstream in the thread of the home's loop, whichever thread signals.

    Signals that come in the loop's own thread pass at once, unless others wait. Signals of other
    threads wait in a queue, whose length only the demand bounds. When the loop is closed, the flow
    is cancelled, and the downstream gets a FlowError, necessarily in another thread.

    It is made in the loop's thread.

    Args:
        downstream: gets the signals.
        home: the home of the subscription.
    """

    __slots__ = (
        "__weakref__",
        "_coming",
        "_downstream",
        "_home",
        "_open",
        "_signals",
        "_thread",
        "_upstream",
        "_watch",
    )

    def __init__(self, downstream: CoreSubscriber[T], home: Home) -> None:
        self._downstream: Final = downstream
        self._home: Final = home
        self._thread = get_ident()
        self._upstream: Subscription | None = None
        self._signals: deque[T | _End] = deque()
        self._coming = False
        """True if the loop is about to look at the waiting signals."""
        self._open = [True]
        """Not empty until the end. The thread that pops the entry may send the end, or cancel."""
        self._watch: LoopWatch | None = None

    @override
    def home(self) -> Home | None:
        return self._home

    # -- from the downstream

    @override
    def request(self, n: int, /) -> None:
        upstream = self._upstream
        if upstream is not None:
            upstream.request(n)

    @override
    def cancel(self) -> None:
        if self._close():
            self._drop()

    def _close(self) -> bool:
        """Cancel the upstream, unless it has ended by itself.

        Return True for the first caller only.
        """
        try:
            self._open.pop()
        except IndexError:
            return False
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.end()
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            hooks.cancel(upstream)
        return True

    def _drop(self) -> None:
        signals = self._signals
        while signals:
            try:
                signal = signals.popleft()
            except IndexError:  # another thread was faster
                return
            if not isinstance(signal, _End):
                hooks.drop_item(signal)
            elif signal.error is not None:
                hooks.drop_error(signal.error)

    # -- from the upstream

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Take the subscription in whichever thread it comes: only requests follow."""
        if subscription is None:
            raise none_given("on_subscribe")
        if self._upstream is not None or not self._open:
            subscription.cancel()  # §2.5
            return
        self._upstream = subscription
        self._watch = LoopWatch(self._home.loop, self._lost)
        self._downstream.on_subscribe(self)

    @override
    def on_next(self, item: T, /) -> None:
        if item is None:
            raise none_given("on_next")
        if get_ident() == self._thread and not self._signals:
            self._downstream.on_next(item)
        else:
            self._later(item)

    @override
    def on_error(self, error: BaseException, /) -> None:
        if error is None:
            raise none_given("on_error")
        self._ends(_End(error))

    @override
    def on_complete(self) -> None:
        self._ends(_End(None))

    @override
    def on_next_raised(self, error: BaseException, /) -> bool:
        self._upstream = None  # it has cancelled itself
        return self._close() and self._downstream.on_next_raised(error)

    def _ends(self, end: _End) -> None:
        self._upstream = None  # it is not called any more (§2.4)
        if get_ident() == self._thread and not self._signals:
            self._tell(end)
        else:
            self._later(end)

    def _later(self, signal: T | _End) -> None:
        self._signals.append(signal)
        if not self._open:
            self._drop()
        elif not self._coming:
            self._coming = True
            try:
                home = self._home
                home.loop.call_soon_threadsafe(self._come, context=home.context.copy())
            except RuntimeError:  # it is closed
                self._lost()

    def _lost(self) -> None:
        """End the flow, because the loop is closed. Called in any thread."""
        if self._close():
            self._drop()
            self._downstream.on_error(closed_loop("subscribe()", None))

    # -- in the loop's thread

    def _come(self) -> None:
        self._coming = False
        signals = self._signals
        for _ in range(len(signals)):  # signals that come meanwhile wait their turn
            try:
                signal = signals.popleft()
            except IndexError:  # it was cancelled
                return
            if isinstance(signal, _End):
                self._tell(signal)
            elif self._open:
                self._give(signal)
            else:
                hooks.drop_item(signal)
        if signals and not self._coming:
            self._coming = True
            self._home.loop.call_soon(self._come)

    def _give(self, item: T) -> None:
        try:
            self._downstream.on_next(item)
        except BaseException as error:
            # No caller is left that could handle it.
            closed = self._close()
            throw_if_fatal(error)
            if not closed or not self._downstream.on_next_raised(error):
                hooks.drop_error(error)

    def _tell(self, end: _End) -> None:
        error = end.error
        if not self._close():
            if error is not None:
                hooks.drop_error(error)
        elif error is None:
            self._downstream.on_complete()
        else:
            self._downstream.on_error(error)

    @override
    def statistics(self) -> Statistics:
        return Statistics(
            operator="brings signals into the loop",
            buffered=len(self._signals),
            terminated=not self._open,
            upstream=self._upstream,
        )
