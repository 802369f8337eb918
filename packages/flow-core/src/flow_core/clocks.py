"""Clocks: they tell the time, and run tasks later.

An operator that waits takes a `Clock`. `system_clock` returns the clock of the process,
`AsyncioClock` runs tasks in an event loop, and with a `flow_testing.VirtualClock`, hours pass in no
time.
"""

from __future__ import annotations

import math
import os
import threading
import time
from abc import abstractmethod
from collections.abc import Callable
from contextvars import Context, copy_context
from datetime import timedelta
from heapq import heapify, heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, final
from weakref import WeakSet

from typing_extensions import override

from flow_core import hooks
from flow_core.errors import RejectedExecutionError, tell_left, throw_if_fatal
from flow_core.executors import Task
from flow_core.homes import Home, running_loop
from flow_core.late import later
from flow_core.protocols import Disposable

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = later("asyncio", globals())

__all__ = [
    "AsyncioClock",
    "Clock",
    "Seconds",
    "SystemClock",
    "check_delay",
    "check_period",
    "clocks_in_force",
    "current_time",
    "home_clock",
    "in_seconds",
    "on_clock_thread",
    "run_reported",
    "system_clock",
]

Seconds: TypeAlias = float | timedelta
"""A length of time: a number of seconds, or a timedelta."""

_KEEP_ALIVE_S: Final = 10.0
_LONGEST_WAIT_S: Final = 3600.0
"""The longest single wait, in seconds: a delay may be longer, but the platform limits how long a
thread can wait."""
_FEW: Final = 64


class Clock(Protocol):
    """Tells the time, and runs tasks at a given time.

    A task must not raise and must not block: it shares its thread with all other tasks. If it
    raises, its error goes to the dropped-errors hook, and a periodic task is not run again. A task
    sees the context variables of the code that scheduled it, like the callbacks of an event loop.
    """

    __slots__ = ()

    @abstractmethod
    def now(self) -> float:
        """Seconds since some fixed moment. Never goes back."""

    @abstractmethod
    def schedule(self, delay_s: float, task: Task, /) -> Disposable:
        """Run `task` once, `delay_s` from now. Callable from any thread.

        Tasks that are due at the same time run in the order in which they were scheduled.

        Args:
            delay_s: seconds; 0 or less means as soon as possible, but never before `schedule`
                returns. With an infinite delay, the task never runs.
            task: called without arguments, on the clock's thread.

        Returns:
            A handle that cancels the task, from any thread: its `dispose` drops the task at once. A
            task that already runs is not interrupted.

        Raises:
            ValueError: if the delay is not a number (NaN).
            RejectedExecutionError: if the clock takes no more tasks.
        """

    @abstractmethod
    def schedule_periodically(self, delay_s: float, period_s: float, task: Task, /) -> Disposable:
        """Run `task` again and again, until the returned handle is disposed of.

        Run number `n` is due at ``start + delay_s + n * period_s``, however long or late the
        earlier runs were: delays do not add up. An overdue run follows as soon as the other tasks
        that are due have run; runs never overlap, and none is left out.

        Args:
            delay_s: seconds up to the first run, as in `schedule`.
            period_s: seconds between the starts of two runs, above 0.
            task: see `schedule`.

        Raises:
            ValueError: if the period is not above 0 and finite.
            RejectedExecutionError: if the clock takes no more tasks.
        """


def in_seconds(time: Seconds, name: str = "a time") -> float:
    """Return `time` as a number of seconds.

    Args:
        time: a number of seconds, or a timedelta.
        name: the name of the argument, for the message.

    Raises:
        TypeError: if `time` is neither.
    """
    if isinstance(time, timedelta):
        return time.total_seconds()
    if not isinstance(time, (int, float)) or isinstance(time, bool):
        raise TypeError(f"{name} must be a number of seconds or a timedelta, not {time!r}")
    return float(time)


def check_delay(delay: Seconds) -> float:
    """Return `delay` in seconds, but at least 0.

    Raises:
        TypeError: if `delay` is neither a number of seconds nor a timedelta.
        ValueError: if `delay` is NaN.
    """
    delay_s = in_seconds(delay, "a delay")
    if math.isnan(delay_s):
        raise ValueError("a delay must be a number of seconds, not NaN")
    return max(0.0, delay_s)


def check_period(period: Seconds) -> float:
    """Return `period` in seconds, after checking that something can be done that often.

    Raises:
        TypeError: if `period` is neither a number of seconds nor a timedelta.
        ValueError: if `period` is not above 0, or not finite.
    """
    period_s = in_seconds(period, "a period")
    if not 0 < period_s < math.inf:
        raise ValueError(f"a period must be above 0 and finite, not {period_s} s")
    return period_s


# -- the clock of the process


@final
class _Timed(Disposable):
    """A task with its due time. Setting `task` to None ends it; that needs no lock.

    Only the clock's thread runs the task, so it cannot run twice at the same time.
    """

    __slots__ = ("__weakref__", "context", "due", "first", "period", "runs", "task")

    def __init__(self, due: float, period: float | None, task: Task) -> None:
        self.due = self.first = due
        self.period = period
        self.task: Task | None = task
        self.context: Context | None = copy_context()
        self.runs = 0

    @property
    @override
    def disposed(self) -> bool:
        """True also when the task has run for the last time, or has begun its last run."""
        return self.task is None

    @override
    def dispose(self) -> None:
        self.task = None
        self.context = None

    def __enter__(self) -> _Timed:
        return self

    def __exit__(self, *_: object) -> None:
        self.dispose()

    def run(self) -> bool:
        """Run the task, unless it was disposed of. Return True if it has to run again, at `due`."""
        context, task = self.context, self.task  # `dispose` clears them in the opposite order
        if context is None or task is None:
            return False
        if self.period is None:
            self.dispose()
            run_reported(task, context)
            return False
        if not run_reported(task, context):
            self.dispose()
        self.runs += 1
        self.due = self.first + self.runs * self.period  # a product: sums would drift
        return self.task is not None


def run_reported(task: Task, context: Context | None = None) -> bool:
    """Run `task`, in `context` if one is given; its error goes to the dropped-errors hook.

    Nothing propagates, not even a fatal error: it would end, unnoticed, the thread that runs all
    timers.

    Returns:
        True if the task did not raise.
    """
    try:
        task() if context is None else context.run(task)
    except BaseException as error:
        tell_left(error)
        try:
            hooks.drop_error(error)
        except BaseException as raised:
            threading.excepthook(
                threading.ExceptHookArgs(
                    (type(raised), raised, raised.__traceback__, threading.current_thread())
                )
            )
        return False
    return True


@final
class SystemClock(Clock):
    """The real time, and one daemon thread for all tasks. Use `system_clock`, which returns it.

    >>> from threading import Event
    >>> done = Event()
    >>> handle = system_clock().schedule(0.001, done.set)
    >>> done.wait(5), handle.disposed
    (True, True)

    Time is monotonic: it does not follow changes of the machine's date. The thread starts with the
    first task, and ends when no task was waiting for a while. Scheduling costs O(log n). Disposing
    of a task costs O(1): its place in the heap stays empty, and empty places are removed before
    there are more of them than tasks (or than 64). A forked process starts without tasks; the tasks
    of its parent run only in the parent.

    A task must not block the clock's thread: a flow that would block in that thread (``first()``,
    ``for item in flow``) raises BlockingInEventLoopError.

    If this clock is pickled and sent to another process, it becomes the clock of that process,
    without the tasks.

    Args:
        keep_alive: how long the thread waits for another task before it ends, in seconds.
    """

    __slots__ = (
        "__weakref__",
        "_changed",
        "_heap",
        "_keep_alive_s",
        "_numbers",
        "_room",
        "_thread",
    )

    def __init__(self, keep_alive: Seconds = _KEEP_ALIVE_S) -> None:
        self._keep_alive_s = check_delay(keep_alive)
        self._numbers = count()
        self._reset()
        _clocks.add(self)

    def _reset(self) -> None:
        # With a re-entrant lock: a finaliser or a signal handler may schedule, too.
        self._changed = threading.Condition()
        self._heap: list[tuple[float, int, _Timed]] = []
        self._room = _FEW
        self._thread: _ClockThread | None = None

    @override
    def now(self) -> float:
        return time.monotonic()

    @override
    def schedule(self, delay_s: float, task: Task, /) -> Disposable:
        return self._add(_Timed(self.now() + check_delay(delay_s), None, task))

    @override
    def schedule_periodically(self, delay_s: float, period_s: float, task: Task, /) -> Disposable:
        due = self.now() + check_delay(delay_s)
        return self._add(_Timed(due, check_period(period_s), task))

    @property
    def pending(self) -> int:
        """The number of tasks that wait, at one moment."""
        with self._changed:
            return sum(not timed.disposed for _, _, timed in self._heap)

    def __repr__(self) -> str:
        return "SystemClock()"

    def __reduce__(self) -> tuple[Callable[..., SystemClock], tuple[float, ...]]:
        """Pickle the clock of the process as `system_clock()`, any other by its arguments."""
        return (system_clock, ()) if self is _system_clock else (SystemClock, (self._keep_alive_s,))

    def _add(self, timed: _Timed) -> _Timed:
        try:
            with self._changed:
                if self._thread is None:
                    self._thread = self._started()
                self._push(timed, timed.due)
        except BaseException:
            # Ctrl-C: the code that scheduled it gets no handle, and may be waiting for it.
            timed.dispose()
            if self._changed.acquire(blocking=False):
                self._changed.notify()  # the thread may not know yet that its next task has changed
                self._changed.release()
            raise
        return timed

    def _started(self) -> _ClockThread:
        thread = _ClockThread(self)
        try:
            thread.start()
        except RuntimeError as error:  # the interpreter is ending, or there are too many
            raise RejectedExecutionError(
                f"the clock's thread could not be started: {error}; nothing can be "
                "scheduled any more when the program ends"
            ) from error
        return thread

    def _push(self, timed: _Timed, due: float) -> None:
        """Put the task into the heap, and wake the thread if it now has to wait less time."""
        heap = self._heap
        if len(heap) >= self._room:
            # In steps that each leave a valid heap: a task may be scheduled within any of them.
            entries: list[tuple[float, int, _Timed]] = []
            while heap:
                entries.append(heap.pop())
            heap += [entry for entry in entries if not entry[2].disposed]
            heapify(heap)
            self._room = max(_FEW, 2 * len(heap))
            self._changed.notify()  # also for tasks added while it was not a heap
        heappush(heap, (due, next(self._numbers), timed))
        if heap[0][2] is timed:
            self._changed.notify()

    def _run_next(self) -> bool:
        """Wait for the next task and run it. Return False if the thread has to end."""
        # A separate function: a task that has run must not stay alive while the thread waits.
        timed = self._next()
        if timed is None:
            return False
        if timed.run():
            with self._changed:
                if self._thread is threading.current_thread():
                    # An overdue task waits its turn: otherwise it would be before all others again
                    # and again.
                    self._push(timed, max(timed.due, self.now()))
        return True

    def _next(self) -> _Timed | None:
        """Return the next task as soon as it is due.

        The result is None if there was no task for so long that the thread has to end.
        """
        with self._changed:
            # A task that forks continues in the child, where this thread is not the clock's any
            # more.
            while self._thread is threading.current_thread():
                heap = self._heap
                while heap and (first := heap[0])[2].disposed:
                    if first is heap[0]:  # nothing was scheduled meanwhile, by a finaliser
                        heappop(heap)
                if heap:
                    left = heap[0][0] - self.now()
                    if left <= 0:
                        return heappop(heap)[2]
                    self._changed.wait(min(left, _LONGEST_WAIT_S))
                elif not self._changed.wait(self._keep_alive_s) and not self._heap:
                    self._thread = None
        return None


@final
class _ClockThread(threading.Thread):
    """The thread that runs the tasks of a clock, until there was no task for a while."""

    def __init__(self, clock: SystemClock) -> None:
        super().__init__(name="flow-clock", daemon=True)
        self.clock = clock

    def run(self) -> None:
        while self.clock._run_next():
            pass


def on_clock_thread() -> bool:
    """Return whether this thread runs the tasks of a `SystemClock`, and so must not wait."""
    thread = threading.current_thread()
    # In a process that a task has forked, the clock has no thread, or another one.
    return isinstance(thread, _ClockThread) and thread.clock._thread is thread


_clocks: Final[WeakSet[SystemClock]] = WeakSet()


def _forked() -> None:
    # The thread is not in the child, and its lock may be taken for ever.
    for clock in list(_clocks):
        clock._reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)

_system_clock: Final = SystemClock()


def system_clock() -> SystemClock:
    """Return the clock of this process, for timed operators outside of an event loop."""
    return _system_clock


clocks_in_force: Final[list[Clock]] = []
"""The clocks that tests have set by ``with VirtualClock():``; the innermost is last."""


def current_time() -> float:
    """Return the time of the clock that a test has set, or else of the clock of the process."""
    return home_clock(None, None).now() if clocks_in_force else time.monotonic()


# -- the clock of an event loop

_numbers: Final = count()


@final
class _Due(float):
    """A time of a loop.

    A loop leaves open which of two timers with the same time comes first; those of this class are
    ordered.

    Args:
        time_s: the time.
        number: decides between equal times: the lower number comes first.
    """

    __slots__ = ("_number",)

    _number: int

    def __new__(cls, time_s: float, number: int) -> _Due:
        due = super().__new__(cls, time_s)
        due._number = number
        return due

    def __lt__(self, other: float) -> bool:
        if self == other and isinstance(other, _Due):
            return self._number < other._number
        return super().__lt__(other)

    def __gt__(self, other: float) -> bool:
        if self == other and isinstance(other, _Due):
            return self._number > other._number
        return super().__gt__(other)


@final
class _LoopTimer(Disposable):
    """A task in an event loop. It is armed in the loop's thread; any thread may dispose of it."""

    __slots__ = (
        "__weakref__",
        "_clock",
        "_first",
        "_handle",
        "_number",
        "_period",
        "_runs",
        "_task",
    )

    def __init__(self, clock: AsyncioClock, due: float, period: float | None, task: Task) -> None:
        self._clock = clock
        self._first = due
        self._period = period
        self._task: Task | None = task
        self._handle: asyncio.Handle | None = None
        self._number = next(_numbers)
        self._runs = 0

    @property
    @override
    def disposed(self) -> bool:
        """True also when the task has run for the last time, or has begun its last run."""
        return self._task is None

    @override
    def dispose(self) -> None:
        self._task = None
        # `arm` sets the handle before it looks at the task again: one of the two sees the other.
        handle, self._handle = self._handle, None
        if handle is not None:
            self._clock._in_loop(handle.cancel)

    def __enter__(self) -> _LoopTimer:
        return self

    def __exit__(self, *_: object) -> None:
        self.dispose()

    def arm(self) -> None:
        """Have the loop run the task when it is due. Called in the loop's thread."""
        if self._task is None:
            return
        due = self._first if self._period is None else self._first + self._runs * self._period
        if due == math.inf:
            return
        self._handle = handle = self._clock.loop.call_at(_Due(due, self._number), self._run)
        if self._task is None:
            handle.cancel()
            self._handle = None

    def _run(self) -> None:
        task = self._task
        self._handle = None
        if task is None:
            return
        if self._period is None:
            self._task = None
        try:
            task()
        except BaseException as error:
            self._task = None
            tell_left(error)
            throw_if_fatal(error)
            hooks.drop_error(error)
        self._runs += 1
        self._number = next(_numbers)
        self.arm()


@final
class AsyncioClock(Clock):
    """The time of an event loop. Tasks run in its thread.

    >>> import asyncio
    >>> async def main() -> str:
    ...     loop = asyncio.get_running_loop()
    ...     said = loop.create_future()
    ...     AsyncioClock(loop).schedule(0.001, lambda: said.set_result("later"))
    ...     return await said
    >>> asyncio.run(main())
    'later'

    Scheduling and disposing are allowed in any thread; except in the loop's thread, they use
    ``call_soon_threadsafe``. Errors of tasks go to the dropped-errors hook; a fatal error stops the
    loop, as always in asyncio.

    Args:
        loop: the event loop. Tasks run while the loop runs, and end with it.
    """

    __slots__ = ("loop",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        if not isinstance(loop, asyncio.AbstractEventLoop):
            raise TypeError(f"AsyncioClock takes an event loop, not {loop!r}")
        self.loop: Final = loop

    @override
    def now(self) -> float:
        return self.loop.time()

    @override
    def schedule(self, delay_s: float, task: Task, /) -> Disposable:
        return self._add(_LoopTimer(self, self.now() + check_delay(delay_s), None, task))

    @override
    def schedule_periodically(self, delay_s: float, period_s: float, task: Task, /) -> Disposable:
        due = self.now() + check_delay(delay_s)
        return self._add(_LoopTimer(self, due, check_period(period_s), task))

    def __repr__(self) -> str:
        return "AsyncioClock()"

    def _add(self, timer: _LoopTimer) -> _LoopTimer:
        try:
            possible = self._in_loop(timer.arm)
        except BaseException:
            timer.dispose()  # as a `_Timed`
            raise
        if not possible:
            raise RejectedExecutionError(
                "the event loop of this clock is closed; end the flows that use a clock before it"
            )
        return timer

    def _in_loop(self, action: Task) -> bool:
        """Run `action` in the loop's thread: at once if the caller is in that thread.

        Return False if the loop is closed, and so runs nothing any more.
        """
        if self.loop.is_closed():
            return False
        if running_loop() is self.loop:
            action()
            return True
        try:
            self.loop.call_soon_threadsafe(action)
        except RuntimeError:  # closed meanwhile
            return False
        return True


def home_clock(clock: Clock | None, home: Home | None) -> Clock:
    """Return the clock for one subscription to an operator that waits.

    Args:
        clock: the operator's argument. If it is None, the result is the clock that a test has set
            (see `flow_testing.VirtualClock`), or else the clock of the home's loop, or else the
            clock of the process.
        home: the home of the subscription: the event loop or thread it belongs to, if any.
    """
    if clock is not None:
        return clock
    for forced in clocks_in_force[-1:]:  # read at once: another thread may end the block
        return forced
    return _system_clock if home is None else AsyncioClock(home.loop)
