"""`from_future`: a flow of the result of a future, a task or a coroutine."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from contextvars import copy_context
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar, final, overload

from typing_extensions import override

from flow_core import hooks
from flow_core.errors import FlowError, is_fatal
from flow_core.flow import Flow
from flow_core.held import watched
from flow_core.homes import home_loop
from flow_core.late import later
from flow_core.protocols import CoreSubscriber, Publisher, Subscriber
from flow_core.sources._emitter import EmitterSubscription
from flow_core.sources._idle import fail
from flow_core.sources._loops import LoopWatch, closed_loop, in_loop
from flow_core.subscribers._strict import core_subscriber

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = later("asyncio", globals())

__all__ = ["from_future"]

T = TypeVar("T")


class _AnyFuture(Protocol):
    """The methods that both kinds of futures have."""

    def cancel(self) -> bool: ...

    def done(self) -> bool: ...

    def exception(self) -> BaseException | None: ...

    def result(self) -> Any: ...  # Any: the item's type, as the user has declared it

    def add_done_callback(
        self,
        fn: Callable[[Any], object],  # Any: the future itself
        /,
    ) -> object: ...


_WAITING: Final = "__flow_waiting__"
"""The attribute under which a future keeps its `_Waiting`."""


@final
class _Waiting:
    """The callbacks that wait for a future; each can be removed again.

    A `concurrent.futures` future cannot remove a callback, so it gets a single one, which calls all
    of these. No callback is lost: it is added before the future is checked, and a future that is
    done later calls all callbacks that were added.
    """

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: dict[object, Callable[[object], object]] = {}

    def add(self, key: object, resolved: Callable[[object], object], future: _AnyFuture) -> None:
        """Call `resolved` when `future` is done: at once if it is done already."""
        self._waiting[key] = resolved
        if future.done():
            self.tell(future)

    def remove(self, key: object) -> None:
        """Remove the callback under `key`, unless it was called."""
        self._waiting.pop(key, None)

    def tell(self, future: object) -> None:
        """Call all callbacks, because the future is done."""
        for key in list(self._waiting):
            resolved = self._waiting.pop(key, None)
            if resolved is not None:
                try:
                    resolved(future)
                except BaseException:
                    self.tell(future)  # the others do not depend on it
                    raise


def _waiting_for(future: _AnyFuture) -> _Waiting:
    """Return the `_Waiting` of `future`, or a separate one if `future` takes no attributes."""
    waiting = made = _Waiting()
    with suppress(TypeError):
        waiting = vars(future).setdefault(_WAITING, made)  # an atomic step: one of several wins
    if waiting is made:
        future.add_done_callback(made.tell)
    return waiting


@final
class FutureSource(Publisher[T], Generic[T]):
    """The result of a future, for each subscriber.

    Args:
        future: a future of either kind, or an awaitable that becomes a future at the first
            subscription.
        loop: the loop that runs the awaitable; None for the loop of its first subscriber's home, or
            else the library's own loop.
        cancel: whether a subscriber that cancels the flow cancels the future.
    """

    __slots__ = ("_awaitable", "_cancel", "_future", "_lock", "_loop", "_name", "_trace", "_waited")

    def __init__(
        self,
        future: _AnyFuture | Awaitable[object],
        loop: asyncio.AbstractEventLoop | None,
        cancel: bool,
    ) -> None:
        self._name = type(future).__name__
        self._cancel = cancel
        self._lock = RLock()
        """Held while the awaitable is started. There is one moment when the awaitable is already
        taken and the future does not exist yet: a finaliser that subscribes within that moment gets
        an error."""
        self._trace: TracebackType | None = None
        self._loop = loop
        self._future: _AnyFuture | None = None
        self._awaitable: Awaitable[object] | None = None
        self._waited: asyncio.Future[Any] | None = None  # Any: see _AnyFuture
        if isinstance(future, asyncio.Future):
            self._future = self._waited = future
            self._loop = future.get_loop()
        elif isinstance(future, Future) or not isinstance(future, Awaitable):
            self._future = future
            self._loop = None
        else:
            self._awaitable = future
            if inspect.iscoroutine(future):
                self._name = future.__name__

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        downstream = core_subscriber(subscriber)
        try:
            future, loop = self._started(downstream)
        except FlowError as error:
            fail(downstream, error)
            return
        emitter: EmitterSubscription[T] = EmitterSubscription(downstream, "buffer", 1, repr(self))
        emitter.start()
        waited = self._waited
        # Only an asyncio future belongs to its loop's thread.
        home = None if waited is None else loop
        if self._cancel:
            emitter.on_cancel(lambda: in_loop(home, future.cancel))
        if emitter.cancelled:
            return
        if future.done():
            self._resolve(emitter, future)
            return

        def resolved(_: object) -> None:
            self._resolve(emitter, future)

        def lost() -> None:
            if future.done():
                self._resolve(emitter, future)
            elif not emitter.cancelled:
                emitter.error(closed_loop(repr(self)))

        def watch() -> None:
            if loop is not None:
                watched = LoopWatch(loop, lost)
                emitter.on_dispose(lambda: in_loop(loop, watched.end))

        if not in_loop(loop, watch, lost):
            lost()
            return
        if waited is not None:
            emitter.on_cancel(lambda: in_loop(home, lambda: waited.remove_done_callback(resolved)))
            in_loop(home, lambda: waited.add_done_callback(resolved))
        else:
            waiting = _waiting_for(future)
            context = copy_context()
            waiting.add(emitter, lambda done: context.run(resolved, done), future)
            emitter.on_cancel(lambda: waiting.remove(emitter))

    def _started(
        self, downstream: CoreSubscriber[T]
    ) -> tuple[_AnyFuture, asyncio.AbstractEventLoop | None]:
        """Return the future, and the loop in which it is awaited, if there is such a loop.

        The awaitable runs once, for all subscribers.
        """
        place = None if self._awaitable is None else self._loop or home_loop(downstream.home())
        with self._lock:
            awaitable, loop = self._awaitable, self._loop
            if self._future is not None:
                return self._future, loop
            if awaitable is None:
                raise FlowError(f"{self!r}: the coroutine could not be started before")
            if place is None or place.is_closed():
                raise closed_loop(repr(self))
            self._awaitable, self._loop = None, place
            # The future of another thread's loop, in this thread's loop, too: any thread may wait.
            awaited = _awaited(awaitable)
            if hooks.debugging:
                awaited = watched(awaited, repr(self))
            self._future = asyncio.run_coroutine_threadsafe(awaited, place)
            return self._future, place

    def _resolve(self, emitter: EmitterSubscription[T], future: _AnyFuture) -> None:
        if emitter.cancelled:
            return  # the future still has its result, or its error, for others
        try:
            error = future.exception()
        except (CancelledError, asyncio.CancelledError) as cancelled:
            error = cancelled.with_traceback(None)
        else:
            if error is not None:
                # Shared by all subscribers: without the frames that it passed for others (X14).
                self._trace = self._trace or error.__traceback__
                error.with_traceback(self._trace)
        if error is None:
            item = future.result()
            if item is not None:
                emitter.next(item)
            emitter.complete()
        elif is_fatal(error):
            # It has ended the task, and may have ended its thread. Waiting subscribers get an
            # error, too.
            failure = FlowError(f"{self!r}: its task was ended by {type(error).__name__}")
            failure.__cause__ = error
            emitter.error(failure)
        else:
            emitter.error(error)

    def __repr__(self) -> str:
        return f"from_future({self._name})"


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable


@overload
def from_future(
    future: Future[T | None] | Awaitable[T | None],
    *,
    loop: asyncio.AbstractEventLoop | None = ...,
    cancel: bool = ...,
) -> Flow[T]: ...


@overload
def from_future(
    future: Future[T], *, loop: asyncio.AbstractEventLoop | None = ..., cancel: bool = ...
) -> Flow[T]: ...


def from_future(
    future: Future[Any] | Awaitable[Any],  # Any: see the overloads
    *,
    loop: asyncio.AbstractEventLoop | None = None,
    cancel: bool = False,
) -> Flow[Any]:
    """The result of a future: one item, or no item if the result is None.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(1) as pool:
    ...     list(from_future(pool.submit(pow, 2, 10)).map(lambda n: n + 1))
    [1025]

    Each subscriber gets the result, which is computed only once. If the future fails, the flow
    fails with the same error object; if the future is cancelled, the flow fails with a
    CancelledError of the future's kind. A fatal error that ended the task, such as SystemExit, is
    the cause of a FlowError.

    Demand: the item waits until it is requested. Thread: the one that completes the future (for
    asyncio, the loop's); the subscriber's, if the future is done already; or the requester's.
    Fusion: ASYNC, also across threads.

    Args:
        future: a `concurrent.futures` future; or an asyncio future or task, subscribed to from any
            thread; or a coroutine or other awaitable, which is started at the first subscription.
        loop: the loop that runs a coroutine; if it is not given, the loop in which the first
            subscriber runs the flow, or else one loop for the process. Not used for a future, which
            has its own loop.
        cancel: whether a subscriber that cancels the flow cancels the future, for all subscribers.

    Returns:
        A flow. It fails with FlowError if the loop of the coroutine or of the asyncio future is
        closed before the result is there.

    Raises:
    TypeError: if `future` is not one of these.
    """
    if not isinstance(future, (Future, Awaitable)) and not _is_future(future):
        raise TypeError(
            f"from_future() takes a future, a task or an awaitable, not {future!r}; just() takes "
            "an item, and from_callable() a function"
        )
    source: FutureSource[Any] = FutureSource(future, loop, cancel)  # Any: see the overloads
    return Flow(source)


def _is_future(value: object) -> bool:
    return all(
        callable(getattr(value, name, None))
        for name in ("add_done_callback", "cancel", "done", "exception", "result")
    )
