"""``flow.subscribe(on_next, ...)``: functions as a subscriber, and a handle to stop the flow."""

from __future__ import annotations

import atexit
import gc
import logging
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.demand import UNBOUNDED, check_prefetch, replenish_limit
from flow_core.errors import FlowError, OnErrorNotImplementedError, none_given, throw_if_fatal
from flow_core.homes import Home, current_home
from flow_core.introspection import Scannable, Statistics
from flow_core.protocols import EMPTY, CoreSubscriber, Subscription
from flow_core.protocols import Empty as NoItem
from flow_core.stored import release_frames
from flow_core.subscribers._blocking import check_may_block, wait_for

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from flow_core.flow import Flow

__all__ = ["CallbackSubscriber"]

T = TypeVar("T")

_waiting: Final = RLock()
"""Held while a subscriber gets its bell, so that all waiting threads use the same bell. A signal
handler in the thread that holds the lock may take it, too."""


_outlived: Final = [False]
"""True if there was a flow that still ran when `subscribe` had returned."""
_FEW: Final = 3
_log: Final = logging.getLogger("flow_core")


@atexit.register
def _tell_running() -> None:
    """Report the flows that still run, and end with the program."""
    if not _outlived[0]:
        return
    # Looking for them only now costs nothing for flows that have ended.
    told = [one._told() for one in filter(_is_one, gc.get_objects()) if not one.disposed]
    if told:
        more = f"; and {len(told) - _FEW} more" if len(told) > _FEW else ""
        _log.warning(
            "the program ends, and %d of its flows with it: %s%s; wait for the end of a flow by "
            "handle.wait(), or run it by run()",
            len(told),
            "; ".join(told[:_FEW]),
            more,
        )


def _is_one(thing: object) -> TypeIs[CallbackSubscriber[Any]]:  # Any: items of any type
    return type(thing) is CallbackSubscriber


def _ignore(_: object) -> None:
    pass


@final
class CallbackSubscriber(CoreSubscriber[T], Scannable, Generic[T]):
    """Calls functions for the signals. This is also the `Disposable` that stops the flow.

    Args:
        on_next: called with each item.
        on_error: called with the error; without it, the error goes to the dropped-errors hook, in
            an `OnErrorNotImplementedError`.
        on_complete: called when the flow has completed.
        prefetch: how many items to request at a time, refilled at 75 %; None to request without
            bound.
        flow: the flow that is subscribed to, for messages.
        home: the home of the subscription, if the caller knows it; EMPTY to find it in this thread.
    """

    __slots__ = (
        "__weakref__",
        "_bell",
        "_consumed",
        "_ended",
        "_flow",
        "_home",
        "_limit",
        "_on_complete",
        "_on_error",
        "_on_next",
        "_prefetch",
        "_subscription",
        "_trace",
        "error",
    )

    def __init__(  # noqa: PLR0917 - by name, they would cost a short flow a frame each
        self,
        on_next: Callable[[T], object] | None = None,
        on_error: Callable[[BaseException], object] | None = None,
        on_complete: Callable[[], object] | None = None,
        prefetch: int | None = None,
        flow: Flow[T] | None = None,
        home: Home | NoItem | None = EMPTY,
    ) -> None:
        self._flow = flow
        self.error: BaseException | None = None
        """The error with which the flow has failed; None if it has not failed."""
        self._trace: TracebackType | None = None
        self._on_next = on_next or _ignore
        self._on_error = on_error
        self._on_complete = on_complete
        self._subscription: Subscription | None = None
        self._prefetch = UNBOUNDED
        self._consumed = self._limit = 0
        if prefetch is not None:
            self._prefetch = check_prefetch(prefetch)
            self._limit = replenish_limit(prefetch)
        self._ended = False
        self._home = current_home() if home is EMPTY else home
        self._bell: SimpleQueue[None] | None = None
        """A bell that rings at the end for a waiting thread, which then rings it again for the next
        one."""

    @override
    def home(self) -> Home | None:
        """The home of the thread in which this subscriber was made."""
        return self._home

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        if subscription is None:
            raise none_given("on_subscribe")
        if self._subscription is not None or self._ended:
            subscription.cancel()  # §2.5, or it was disposed of before it began
            return
        self._subscription = subscription
        if self._ended:  # disposed of meanwhile, by a thread that saw no subscription yet
            self._subscription = None
            subscription.cancel()
        else:
            subscription.request(self._prefetch)

    @override
    def receiver(self) -> Callable[[T], object]:
        """Return the user's own `on_next` if demand is unbounded, which saves a frame."""
        return self._on_next if self._prefetch == UNBOUNDED else self.on_next

    @override
    def on_next(self, item: T, /) -> None:
        if item is None:
            raise none_given("on_next")
        if self._ended:
            hooks.drop_item(item)
            return
        self._on_next(item)
        if self._prefetch == UNBOUNDED:
            return
        self._consumed += 1
        if self._consumed == self._limit:
            self._consumed = 0
            subscription = self._subscription
            if subscription is not None:
                subscription.request(self._limit)

    @override
    def on_error(self, error: BaseException, /) -> None:
        """Handle the error. If this has ended already, or was disposed of, drop the error."""
        if error is None:
            raise none_given("on_error")
        if self._ended:
            hooks.drop_error(error)
            return
        self._subscription = None
        self.error = error
        if self._on_error is None:
            missing = OnErrorNotImplementedError(
                f"{self._told()}: failed with {error!r}, and subscribe() was given no on_error"
            )
            missing.__cause__ = error
            try:
                hooks.drop_error(missing)
            finally:
                del missing
                self._trace = release_frames(error)
                self._end()
            return
        try:
            self._on_error(error)
        except BaseException as raised:
            throw_if_fatal(raised)
            hooks.drop_error(raised)
        finally:
            self._trace = release_frames(error)
            self._end()

    @override
    def on_complete(self) -> None:
        if self._ended:
            return
        self._subscription = None
        try:
            if self._on_complete is not None:
                self._on_complete()
        except BaseException as raised:
            throw_if_fatal(raised)
            hooks.drop_error(raised)
        finally:
            self._ended = True  # `_end`, written out: a call would cost
            self._flow = None
            if self._bell is not None:
                self._bell.put(None)

    @override
    def on_next_raised(self, error: BaseException, /) -> bool:
        """End the flow, because the user's function has failed."""
        self.on_error(error)
        return True

    @property
    def disposed(self) -> bool:
        """True if the flow has ended or was disposed of."""
        return self._ended

    def dispose(self) -> None:
        """Cancel the flow. Further calls have no effect. Callable from any thread."""
        self._end()
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            hooks.cancel(subscription)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Block until the flow has ended or was disposed of. An interrupt cancels the flow.

        >>> import flow_core as flow
        >>> handle = flow.error(LookupError("no such page")).subscribe(print, lambda error: None)
        >>> handle.wait()
        Traceback (most recent call last):
        LookupError: no such page

        Returns:
            True if the flow has ended; False if `timeout_s` seconds passed before.

        Raises:
            Exception: the error with which the flow has failed; the attribute `error` has it, too.
            BlockingInEventLoopError: if this has to wait in the thread of a running event loop, or
                of a clock.
            FlowError: if this has to wait in a finaliser while the interpreter is shutting down.
        """
        if not self._ended and timeout_s != 0:
            check_may_block("waiting for the end of this flow")
        try:
            if not self._rang(timeout_s):
                return False
        except FlowError:
            raise
        except BaseException:  # Ctrl-C, or an error of another signal handler
            self.dispose()
            raise
        error = self.error
        if error is not None:
            error.__traceback__ = self._trace  # raising it before has added to it (X14)
            try:
                raise error
            finally:
                # Otherwise they would be part of a cycle, with the frame in the traceback.
                del error, self
        return True

    def _rang(self, timeout_s: float | None) -> bool:
        """Wait for the bell. Return False if the flow has not ended after `timeout_s` seconds."""
        with _waiting:
            if self._bell is None:
                self._bell = SimpleQueue()
        # The flag is set before the bell is looked for, and read after the bell is there. Ringing
        # takes no lock: a signal handler may dispose of this at any point of the wait.
        bell = self._bell
        if not self._ended:
            try:
                wait_for(bell, None if timeout_s is None else max(0, timeout_s))
            except Empty:
                return self._ended
            bell.put(None)
        return True

    @override
    def statistics(self) -> Statistics:
        prefetch, subscription = self._prefetch, self._subscription
        if subscription is None:
            requested = 0
        else:
            requested = prefetch if prefetch == UNBOUNDED else prefetch - self._consumed
        return Statistics(
            operator="subscriber",
            requested=requested,
            capacity=prefetch,
            terminated=self._ended,
            flow=None if (flow := self._flow) is None else repr(flow),
            upstream=subscription,
        )

    def watch(self) -> None:
        """Have a flow reported that still runs when the program ends."""
        _outlived[0] = True

    def __repr__(self) -> str:
        state = "ended" if self._ended else "running"
        return f"<{state} subscription of {self._told()}>"

    def _told(self) -> str:
        flow = self._flow
        return "the flow" if flow is None else flow._told()

    def _end(self) -> None:
        self._ended = True
        self._flow = None
        if self._bell is not None:
            self._bell.put(None)

    def __enter__(self) -> CallbackSubscriber[T]:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.dispose()
