"""`Shutdown`: flows take no new items, and get some time to finish the items they have."""

from __future__ import annotations

import _thread
import math
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar, final

from typing_extensions import override

from flow_core.clocks import Seconds, in_seconds
from flow_core.errors import FlowError, FlowTimeoutError
from flow_core.homes import running_loop
from flow_core.late import later
from flow_core.protocols import IterableSource, Publisher, Subscriber
from flow_core.sources._futures import from_future
from flow_core.stages._fluent import Ender
from flow_core.structure import AbsorbingSource, source_of

if TYPE_CHECKING:
    import asyncio

    from flow_core.flow import Flow
else:
    asyncio = later("asyncio", globals())

__all__ = ["LIMIT_S", "Ending", "Shutdown"]

T = TypeVar("T")

LIMIT_S: Final = 8.0
"""The default limit. By default, containers have ten seconds between SIGTERM and their end."""


class _Overdue(KeyboardInterrupt):
    """Raised in the main thread, to interrupt its waiting when the limit has passed.

    It is fatal to flows.
    """


@final
class Shutdown(Ender, Publisher[object]):
    """A kill switch for any number of flows: those that have ``take_until(stop)``.

    >>> import flow_core as flow
    >>> stop = flow.Shutdown()
    >>> seen = []
    >>> for item in flow.range(10).take_until(stop):
    ...     seen.append(item)
    ...     if item == 2:
    ...         stop.begin()
    >>> seen, stop.begun
    ([0, 1, 2, 3], True)

    When it begins, these flows take no new items from their sources, and complete. The items that
    they have already taken are still handled: operators downstream finish their work, and buffers
    send what they hold.

    As a context manager it begins with SIGTERM or Ctrl-C. ``with`` is for a program that waits for
    its flows, ``async with`` for one in an event loop:

    >>> with flow.Shutdown(limit=8) as stop:
    ...     flow.range(3).take_until(stop).run()

    If the block is not left `limit` seconds after it began, the flows in it are cancelled, and the
    block raises FlowTimeoutError. A second signal has the same effect as without the block, at
    once. If another library has installed a handler, as web servers do, that handler is called,
    too. The earlier handlers are restored when the block is left. Signals belong to the main
    thread: in another thread, a block watches no signals and has no limit.

    It is also a publisher, which completes when the shutdown begins.

    Args:
        limit: how long flows may take to end, in seconds; None for no limit.
        signals: the signals with which a block begins the shutdown.
    """

    __slots__ = (
        "_before",
        "_late",
        "_left",
        "_limit_s",
        "_lock",
        "_loop",
        "_may_begin",
        "_overdue",
        "_signalled",
        "_signals",
        "_timeout",
        "_told",
    )

    def __init__(
        self,
        limit: Seconds | None = LIMIT_S,
        *,
        signals: Iterable[int] = (signal.SIGTERM, signal.SIGINT),
    ) -> None:
        limit_s = math.inf if limit is None else in_seconds(limit, "limit")
        if not limit_s >= 0:
            raise ValueError(f"limit must be at least 0 seconds, not {limit_s}")
        self._limit_s: Final = limit_s
        self._signals: Final = tuple(signal.Signals(each) for each in signals)
        self._may_begin = [True]
        """Holds one entry until the shutdown begins: the thread that pops the entry begins it."""
        self._told: Final = Future[None]()
        self._before: dict[int, Any] = {}  # Any: as `signal.signal` returns it
        """The handlers that are restored when the block is left."""
        self._signalled = self._overdue = self._late = False
        """True when the first signal has come; when the limit has passed; when the block was left
        too late."""
        self._lock = threading.Lock()
        """Held while the main thread is interrupted."""
        self._left: threading.Event | None = None
        """Set when the ``with`` block is left; None outside of one."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timeout: asyncio.Timeout | None = None

    @property
    def begun(self) -> bool:
        """True when the shutdown has begun."""
        return not self._may_begin

    @property
    def late(self) -> bool:
        """True if the block was left only because the limit had passed."""
        return self._late

    def begin(self) -> None:
        """Begin the shutdown now, from any thread. A second call does nothing."""
        try:
            self._may_begin.pop()
        except IndexError:
            return
        self._set_limit()  # first: flows may take any time when they complete
        self._told.set_result(None)

    @override
    def subscribe(self, subscriber: Subscriber[object], /) -> None:
        """Subscribe; the subscriber gets the completion when the shutdown begins."""
        from_future(self._told).subscribe(subscriber)

    def _ended(self, flow: Flow[T]) -> Flow[T]:
        source = source_of(flow)
        if isinstance(source, IterableSource) and not isinstance(source, AbsorbingSource):
            return flow.take_until(lambda _: self.begun)
        return flow.take_until_other(self)

    def __repr__(self) -> str:
        return f"Shutdown({'begun' if self.begun else ''})"

    # -- a block

    def __enter__(self) -> Shutdown:
        if running_loop() is not None:
            raise FlowError("an event loop runs here: write async with Shutdown(…), not with")
        self._left = threading.Event()
        self._watch()
        if self.begun:
            self._set_limit()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._left is not None:
            self._left.set()
            # A thread that was about to interrupt has done so, which has no effect now.
            with self._lock:
                pass
        self._unwatch()
        if isinstance(error, _Overdue):
            raise self._too_late() from None

    async def __aenter__(self) -> Shutdown:
        self._loop = asyncio.get_running_loop()
        self._timeout = asyncio.timeout(None)
        await self._timeout.__aenter__()
        self._watch()
        if self.begun:
            self._set_limit()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._unwatch()
        timeout, self._timeout, self._loop = self._timeout, None, None
        if timeout is not None:
            try:
                await timeout.__aexit__(kind, error, trace)
            except TimeoutError:
                raise self._too_late() from None

    # -- the limit

    def _set_limit(self) -> None:
        """Start to count the limit now, if there is a block."""
        loop, left = self._loop, self._left
        if self._limit_s == math.inf:
            return
        if loop is not None:
            with suppress(RuntimeError):  # it is closed, and the block left
                loop.call_soon_threadsafe(self._set_timeout)
        elif left is not None and self._before and not left.is_set():
            wait = partial(self._interrupt_after, left)
            threading.Thread(target=wait, name="flow-shutdown", daemon=True).start()

    def _set_timeout(self) -> None:
        if self._timeout is not None and self._loop is not None:
            self._timeout.reschedule(self._loop.time() + self._limit_s)

    def _interrupt_after(self, left: threading.Event) -> None:
        """Interrupt the main thread after the limit, unless it has left the block by then."""
        left.wait(self._limit_s)
        with self._lock:
            if left.is_set():
                return
            self._overdue = True
            if sys.platform == "win32":
                _thread.interrupt_main(self._signals[0])
            else:
                ident = threading.main_thread().ident
                if ident is not None:
                    signal.pthread_kill(ident, self._signals[0])

    def _too_late(self) -> FlowTimeoutError:
        self._late = True
        return FlowTimeoutError(
            f"items on their way were not done {self._limit_s:g} s after the shutdown began, and "
            "were cancelled; Shutdown(limit=…) gives it more time"
        )

    # -- signals

    def _watch(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for signum in self._signals:
                self._before[signum] = signal.signal(signum, self._handle)

    def _unwatch(self) -> None:
        while self._before:
            signum, handler = self._before.popitem()
            signal.signal(signum, signal.SIG_DFL if handler is None else handler)

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        """Handle a signal, in the main thread."""
        if self._overdue:
            self._overdue = False
            if self._left is not None and not self._left.is_set():
                raise _Overdue
            return
        before = self._before.get(signum)
        if self._signalled:
            _do_as(before, signum, frame)
            return
        self._signalled = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.begin)
        else:
            # In a thread: the one that the signal has interrupted may hold locks of the flows.
            threading.Thread(target=self.begin, name="flow-shutdown", daemon=True).start()
        if callable(before) and not _ends(before):
            before(signum, frame)


class Ending:
    """A class whose handlers end the program at once; a block does not call such handlers."""

    __slots__ = ()


def _ends(handler: Callable[..., object]) -> bool:
    """Return whether `handler` ends the program at once.

    A server's handler only informs the server.
    """
    function = handler.func if isinstance(handler, partial) else handler
    owner = getattr(function, "__self__", None)
    return function is signal.default_int_handler or isinstance(owner, (asyncio.Runner, Ending))


def _do_as(handler: Any, signum: int, frame: FrameType | None) -> None:
    """Do what `handler` says, which `signal.signal` has returned: a function or a constant."""
    if callable(handler):
        handler(signum, frame)
    elif handler != signal.SIG_IGN:
        signal.signal(signum, signal.SIG_DFL)
        signal.raise_signal(signum)
