"""Loops: they deliver updates, one message after the other (as a Looper of Android does).

A thread has a loop if it is the thread of a running asyncio loop, of a `ThreadLoop`, or within
``with TestLoop():``. Observables belong to the loop on which they are made.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
import weakref
from abc import abstractmethod
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from threading import Condition, Lock
from typing import ClassVar, Final, final

from typing_extensions import override

from flow_core import hooks
from flow_rxcompat.agera.errors import IllegalStateError

__all__ = [
    "TAKEN_BACK",
    "AsyncioLoop",
    "Loop",
    "TestLoop",
    "ThreadLoop",
    "current_loop",
    "loop_needed",
]

_Task = Callable[[], object]

TAKEN_BACK: Final = object()
"""The result of a task that had nothing left to do."""


class _Current(threading.local):
    """The loops that this thread is in, the innermost last."""

    def __init__(self) -> None:
        self.loops: list[Loop] = []


_current: Final = _Current()


class Loop:
    """Runs tasks one at a time, in the order in which they were posted."""

    __slots__ = ("__weakref__",)

    @abstractmethod
    def post(self, task: _Task, delay_s: float = 0.0) -> None:
        """Run `task` in a later turn. Any thread may call this.

        Args:
            task: called without arguments, on the loop's thread.
            delay_s: the minimum delay, in seconds.
        """

    @abstractmethod
    def now(self) -> float:
        """Return the seconds since some fixed moment."""

    @property
    def is_current(self) -> bool:
        """Return whether the calling thread is just running this loop."""
        return current_loop() is self


def current_loop() -> Loop | None:
    """Return the loop of this thread, or None."""
    loops = _current.loops
    if loops:
        return loops[-1]
    try:
        running = asyncio.get_running_loop()
    except RuntimeError:
        return None
    return AsyncioLoop.of(running)


def loop_needed(action: str) -> Loop:
    """Return the loop of this thread.

    Args:
        action: the action that needs a loop, for the message: created, added, removed.

    Raises:
        IllegalStateError: if there is no loop.
    """
    loop = current_loop()
    if loop is None:
        raise IllegalStateError(
            f"Can only be {action} on a Looper thread: one that runs an asyncio loop or a "
            "ThreadLoop, or is within `with TestLoop():`"
        )
    return loop


@final
class AsyncioLoop(Loop):
    """An asyncio event loop. Errors of messages go to that loop's exception handler.

    A message to a closed loop is lost, like one to an ended thread on Android.
    """

    __slots__ = ("_loop",)

    _known: ClassVar[
        weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, weakref.ref[AsyncioLoop]]
    ] = weakref.WeakKeyDictionary()
    """The loop for each event loop. Both references are weak: an observable keeps its loop, and
    nothing else does."""
    _lock: ClassVar = Lock()

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    @classmethod
    def of(cls, loop: asyncio.AbstractEventLoop) -> AsyncioLoop:
        """Return the `AsyncioLoop` that stands for `loop`."""
        with cls._lock:
            known = cls._known.get(loop)
            made = None if known is None else known()
            if made is None:
                made = cls(loop)
                cls._known[loop] = weakref.ref(made)
            return made

    @override
    def post(self, task: _Task, delay_s: float = 0.0) -> None:
        loop = self._loop
        try:
            if delay_s > 0:
                loop.call_soon_threadsafe(loop.call_later, delay_s, task)
            else:
                loop.call_soon_threadsafe(task)
        except RuntimeError:
            if not loop.is_closed():
                raise

    @override
    def now(self) -> float:
        return self._loop.time()


class _Queue:
    """Tasks in the order in which they are due, and then in which they came.

    It takes no lock.
    """

    __slots__ = ("_heap", "_numbers")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, _Task]] = []
        self._numbers = count()

    def push(self, due: float, task: _Task) -> None:
        heappush(self._heap, (due, next(self._numbers), task))

    def pop(self, now: float) -> _Task | None:
        heap = self._heap
        return heappop(heap)[2] if heap and heap[0][0] <= now else None

    @property
    def due(self) -> float:
        return self._heap[0][0] if self._heap else math.inf

    def __len__(self) -> int:
        return len(self._heap)


@final
class TestLoop(Loop):
    """A loop that a test runs by calling it, in the thread of the calls.

    >>> from flow_rxcompat.agera import TestLoop, repositories
    >>> with TestLoop() as loop:
    ...     numbers = repositories.mutable_repository(0)
    ...     numbers.add_updatable(lambda: print(numbers.get()))
    ...     numbers.accept(1)
    ...     numbers.accept(2)
    ...     loop.drain()
    2

    Several may be used in one thread: the current one is that of the innermost ``with``; a loop
    that is drained is current meanwhile. Time stands still, and only `advance_by` lets it pass.
    """

    __test__: ClassVar[bool] = False

    __slots__ = ("_lock", "_now", "_queue")

    def __init__(self) -> None:
        self._lock = Lock()
        self._queue = _Queue()
        self._now = 0.0

    @override
    def post(self, task: _Task, delay_s: float = 0.0) -> None:
        """Keep `task`; it runs only in a later `turn`, `drain` or `advance_by`."""
        with self._lock:
            self._queue.push(self._now + max(0.0, delay_s), task)

    @override
    def now(self) -> float:
        return self._now

    @property
    def pending(self) -> int:
        """The number of waiting messages, including those with a delay."""
        return len(self._queue)

    def turn(self) -> bool:
        """Run the next message that is due, if there is one; return whether there was.

        Messages that were taken back are skipped.

        Raises:
            BaseException: whatever the message raises.
        """
        while True:
            with self._lock:
                task = self._queue.pop(self._now)
            if task is None:
                return False
            with self:
                if task() is not TAKEN_BACK:
                    return True

    def drain(self) -> None:
        """Run the messages that are due, and those that they post, until none is due.

        Raises:
            BaseException: an error of a message; the messages after it stay for the next call.
        """
        while self.turn():
            pass

    def advance_by(self, seconds: float) -> None:
        """Let `seconds` pass, and run what is due meanwhile.

        Raises:
            ValueError: if `seconds` is less than 0.
        """
        if not 0 <= seconds < math.inf:
            raise ValueError(f"time goes forward, by a finite amount, not by {seconds} s")
        until = self._now + seconds
        while True:
            with self._lock:
                due = self._queue.due
                if due > until:
                    self._now = until
                    return
                self._now = max(self._now, due)
            self.turn()

    def __enter__(self) -> TestLoop:
        _current.loops.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _current.loops.pop()


@final
class ThreadLoop(Loop):
    """A loop with a separate thread (the HandlerThread of Android).

    >>> with ThreadLoop() as loop:
    ...     loop.call(lambda: current_loop() is loop)
    True

    Errors of messages go to the dropped-errors hook; the loop continues.

    Args:
        name: the name of the thread.
    """

    __slots__ = ("_changed", "_queue", "_stopped", "_thread")

    def __init__(self, name: str = "agera-loop") -> None:
        self._changed = Condition()
        self._queue = _Queue()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @override
    def post(self, task: _Task, delay_s: float = 0.0) -> None:
        """Run `task` in a later turn; a task that is posted after `stop` never runs."""
        with self._changed:
            if self._stopped:
                return
            self._queue.push(self.now() + max(0.0, delay_s), task)
            self._changed.notify()

    @override
    def now(self) -> float:
        return time.monotonic()

    def call(self, function: Callable[[], object]) -> object:
        """Run `function` on the loop, wait for its result, and return it.

        Raises:
            BaseException: the error that the function raises.
            IllegalStateError: if the loop has stopped, or this is called on the loop's own thread.
        """
        if threading.current_thread() is self._thread:
            raise IllegalStateError("ThreadLoop.call() waits for the loop, and this is its thread")
        outcome: list[tuple[object, BaseException | None]] = []
        done = threading.Event()

        def run() -> None:
            try:
                outcome.append((function(), None))
            except BaseException as error:
                outcome.append((None, error))
            finally:
                done.set()

        self.post(run)
        while not done.wait(0.05):
            if not self._thread.is_alive() and not done.is_set():
                raise IllegalStateError("the loop has stopped")
        returned, error = outcome[0]
        if error is not None:
            raise error
        return returned

    def stop(self) -> None:
        """Run what is due now, end the loop, and wait for that. Calling this twice is harmless."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _run(self) -> None:
        _current.loops.append(self)
        while True:
            with self._changed:
                task = self._queue.pop(self.now())
                if task is None:
                    if self._stopped:
                        return
                    due = self._queue.due
                    self._changed.wait(None if due == math.inf else max(0.0, due - self.now()))
                    continue
            try:
                task()
            except BaseException as error:
                hooks.drop_error(error)
            task = None

    def __enter__(self) -> ThreadLoop:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
