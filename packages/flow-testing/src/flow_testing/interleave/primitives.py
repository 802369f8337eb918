"""Locks, events and the like, with which the threads of a scenario block and wake each other.

Any: they stand for objects of many kinds, and hold items and locks of the user's.

They replace those in `threading`, `_thread`, `queue` and `time`, and those that the modules under
test have imported from there by name. A thread outside of the exploration gets the originals.
"""

from __future__ import annotations

import _thread
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from types import ModuleType, TracebackType
from typing import Any, Final, final

from typing_extensions import override

from flow_testing.interleave.scheduler import Point, Scheduler, Task, Waiters

__all__ = ["cooperative", "step", "thread_per_task"]

_ORIGINALS: Final[dict[str, Any]] = {  # Any: classes and factories of many kinds
    "Lock": threading.Lock,
    "allocate_lock": _thread.allocate_lock,
    "RLock": threading.RLock,
    "CRLock": _thread.RLock,
    "Event": threading.Event,
    "Condition": threading.Condition,
    "Semaphore": threading.Semaphore,
    "BoundedSemaphore": threading.BoundedSemaphore,
    "SimpleQueue": queue.SimpleQueue,
    "sleep": time.sleep,
    "monotonic": time.monotonic,
}
_LOCK_TYPE: Final = type(_thread.allocate_lock())
_RLOCK_TYPE: Final = type(threading.RLock())
_STDLIB: Final = (
    "threading",
    "_thread",
    "queue",
    "time",
    "concurrent.futures._base",
    "concurrent.futures.thread",
)

_scheduler: Scheduler | None = None
"""The scheduler of the running exploration."""


def _managed() -> Scheduler | None:
    scheduler = _scheduler
    return scheduler if scheduler is not None and scheduler.managed() else None


@final
class _Steps:
    """The points at which threads may be switched, for one primitive."""

    __slots__ = ("read", "scheduler", "write")

    def __init__(self, kind: str, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        site = scheduler.site(kind)
        self.read: Point | None = None
        self.write: Point | None = None
        if site is not None:
            self.read, self.write = site

    def step(self, *, writes: bool = True) -> None:
        """Let other threads go first, if the schedule says so."""
        point = self.write if writes else self.read
        if point is not None and self.scheduler.task is not None:
            self.scheduler.point(point)


class _Primitive:
    """The base class of the replacements: threads outside the exploration get the original.

    Threads are switched only where a replacement calls `_Steps.step` or waits, not between other
    lines of its code.
    """

    __slots__ = ("_scheduler", "_steps", "_waiters")

    _original: str = ""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:  # Any: the original's own arguments
        """Return a replacement in the exploration's threads, and the original elsewhere."""
        if _managed() is None:
            return _ORIGINALS[cls._original](*args, **kwargs)
        return super().__new__(cls)

    def _begin(self) -> None:
        scheduler = _scheduler
        if scheduler is None:
            raise RuntimeError("there is no exploration")
        self._scheduler = scheduler
        self._steps = _Steps(type(self).__name__, scheduler)
        self._waiters: Waiters = []

    def _wait(self, timeout_s: float | None, *, wakeable: bool, waiters: Waiters) -> bool:
        point = self._steps.write
        what = f"a {type(self).__name__}" if point is None else point.location.name
        return self._scheduler.block(waiters, what, timeout_s, wakeable=wakeable)

    def _at_fork_reinit(self) -> None:
        """Do nothing: a scenario does not fork."""


def _deadline(blocking: bool, timeout: float | None) -> float | None:
    """Return how many seconds to wait: 0 for not at all, None for ever."""
    if not blocking:
        return 0.0
    return None if timeout is None or timeout < 0 else timeout


class Lock(_Primitive):
    """Replaces `threading.Lock`."""

    __slots__ = ("_held",)

    _original = "Lock"

    def __init__(self) -> None:
        self._begin()
        self._held = False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock; wait while another thread holds it."""
        self._steps.step()
        seconds = _deadline(blocking, timeout)
        while self._held:
            if seconds == 0.0 or not self._wait(seconds, wakeable=False, waiters=self._waiters):
                return False
        self._held = True
        return True

    def release(self) -> None:
        """Release the lock, and wake the threads that wait for it."""
        if not self._held:
            raise RuntimeError("release unlocked lock")
        self._steps.step()
        self._held = False
        self._scheduler.wake_all(self._waiters)

    def locked(self) -> bool:
        """Return whether a thread holds the lock."""
        self._steps.step(writes=False)
        return self._held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


class RLock(_Primitive):
    """Replaces `threading.RLock`."""

    __slots__ = ("_count", "_owner")

    _original = "RLock"

    def __init__(self) -> None:
        self._begin()
        self._owner: Task | None = None
        self._count = 0

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock; if this thread holds it, acquire it once more."""
        me = self._scheduler.task
        if self._count and self._owner is me:
            self._count += 1
            return True
        self._steps.step()
        seconds = _deadline(blocking, timeout)
        while self._count:
            if seconds == 0.0 or not self._wait(seconds, wakeable=False, waiters=self._waiters):
                return False
        self._owner = me
        self._count = 1
        return True

    def release(self) -> None:
        """Release the lock; if it was the last time, wake the threads that wait for it."""
        if not self._is_owned():
            raise RuntimeError("cannot release un-acquired lock")
        if self._count == 1:
            self._release_save()
        else:
            self._count -= 1

    def locked(self) -> bool:
        """Return whether a thread holds the lock."""
        self._steps.step(writes=False)
        return self._count > 0

    def _is_owned(self) -> bool:
        return self._count > 0 and self._owner is self._scheduler.task

    def _release_save(self) -> int:
        self._steps.step()
        count, self._count = self._count, 0
        self._owner = None
        self._scheduler.wake_all(self._waiters)
        return count

    def _acquire_restore(self, count: int) -> None:
        self.acquire()
        self._count = count

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


class Event(_Primitive):
    """Replaces `threading.Event`."""

    __slots__ = ("_flag",)

    _original = "Event"

    def __init__(self) -> None:
        self._begin()
        self._flag = False

    def is_set(self) -> bool:
        """Return the flag."""
        self._steps.step(writes=False)
        return self._flag

    def set(self) -> None:
        """Set the flag, and wake all threads that wait for it."""
        self._steps.step()
        self._flag = True
        self._scheduler.wake_all(self._waiters)

    def clear(self) -> None:
        """Clear the flag."""
        self._steps.step()
        self._flag = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the flag.

        A thread that was woken has seen the flag set, even if it is cleared.
        """
        self._steps.step(writes=False)
        return self._flag or self._wait(timeout, wakeable=True, waiters=self._waiters)


class Condition(_Primitive):
    """Replaces `threading.Condition`."""

    __slots__ = ("_lock", "_queue", "acquire", "release")

    _original = "Condition"

    def __init__(self, lock: Any = None) -> None:  # Any: any lock, also of the user's
        self._begin()
        self._lock = RLock() if lock is None else lock
        self._queue: deque[Waiters] = deque()
        self.acquire: Callable[..., bool] = self._lock.acquire
        self.release: Callable[[], None] = self._lock.release

    def __enter__(self) -> bool:
        return bool(self._lock.__enter__())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.__exit__(kind, error, trace)

    def locked(self) -> bool:
        """Return whether a thread holds the condition's lock."""
        return bool(self._lock.locked())

    def _check_owned(self, what: str) -> None:
        lock = self._lock
        owned = lock._is_owned() if isinstance(lock, RLock) else getattr(lock, "_held", True)
        if not owned:
            raise RuntimeError(f"cannot {what} on un-acquired lock")

    def wait(self, timeout: float | None = None) -> bool:
        """Release the lock, and wait. This ends only by a notification, or when the time is up."""
        self._check_owned("wait")
        lock, scheduler = self._lock, self._scheduler
        entry: Waiters = []
        self._queue.append(entry)
        # The entry is queued before the lock is released, so a notification in between removes it.
        saved: Any = lock._release_save() if isinstance(lock, RLock) else lock.release()
        notified = not self._queued(entry)
        try:
            if not notified:
                notified = self._wait(timeout, wakeable=True, waiters=entry)
        finally:
            if self._queued(entry):
                self._queue = deque(other for other in self._queue if other is not entry)
            if not scheduler.aborting:
                if isinstance(lock, RLock):
                    lock._acquire_restore(saved)
                else:
                    lock.acquire()
        return notified

    def _queued(self, entry: Waiters) -> bool:
        return any(other is entry for other in self._queue)

    def wait_for(self, predicate: Callable[[], Any], timeout: float | None = None) -> Any:
        """Wait until `predicate` is true."""
        scheduler = self._scheduler
        end = None if timeout is None else scheduler.clock + timeout
        result = predicate()
        while not result:
            left = None if end is None else end - scheduler.clock
            if left is not None and left <= 0:
                break
            self.wait(left)
            result = predicate()
        return result

    def notify(self, n: int = 1) -> None:
        """Wake `n` of the threads that wait."""
        self._check_owned("notify")
        while n > 0 and self._queue:
            self._scheduler.wake_all(self._queue.popleft())
            n -= 1

    def notify_all(self) -> None:
        """Wake all threads that wait."""
        self.notify(len(self._queue))


class Semaphore(_Primitive):
    """Replaces `threading.Semaphore`."""

    __slots__ = ("_initial", "_value")

    _original = "Semaphore"

    def __init__(self, value: int = 1) -> None:
        if value < 0:
            raise ValueError("semaphore initial value must be >= 0")
        self._begin()
        self._initial = self._value = value

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Take one permission; wait if there is none."""
        self._steps.step()
        seconds = _deadline(blocking, timeout)
        while not self._value:
            if seconds == 0.0 or not self._wait(seconds, wakeable=True, waiters=self._waiters):
                return False
        self._value -= 1
        return True

    def release(self, n: int = 1) -> None:
        """Give `n` permissions back, and wake as many threads."""
        if n < 1:
            raise ValueError("n must be one or more")
        self._steps.step()
        self._value += n
        self._scheduler.wake_all(self._waiters)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


class BoundedSemaphore(Semaphore):
    """Replaces `threading.BoundedSemaphore`."""

    __slots__ = ()

    _original = "BoundedSemaphore"

    @override
    def release(self, n: int = 1) -> None:
        if self._value + n > self._initial:
            raise ValueError("Semaphore released too many times")
        super().release(n)


class SimpleQueue(_Primitive):
    """Replaces `queue.SimpleQueue`."""

    __slots__ = ("_items",)

    _original = "SimpleQueue"

    def __init__(self) -> None:
        self._begin()
        self._items: deque[Any] = deque()

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Append an item, and wake a thread that waits for one."""
        self._steps.step()
        self._items.append(item)
        self._scheduler.wake_all(self._waiters)

    def put_nowait(self, item: Any) -> None:
        """Append an item, as `put` does."""
        self.put(item)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Take the first item; wait if there is none."""
        self._steps.step()
        seconds = _deadline(block, timeout)
        while not self._items:
            if seconds == 0.0 or not self._wait(seconds, wakeable=True, waiters=self._waiters):
                raise queue.Empty
        return self._items.popleft()

    def get_nowait(self) -> Any:
        """Take the first item; do not wait."""
        return self.get(block=False)

    def empty(self) -> bool:
        """Return whether there is no item."""
        self._steps.step(writes=False)
        return not self._items

    def qsize(self) -> int:
        """Return how many items there are."""
        self._steps.step(writes=False)
        return len(self._items)

    def __class_getitem__(cls, item: object) -> type[SimpleQueue]:
        return cls


def step() -> None:
    """Let any other thread of the scenario go first; without an exploration, do nothing.

    It is for functions of a test that stand for slow user code, such as an ``on_item``: the test
    then shows what can overlap that code.
    """
    scheduler = _scheduler
    if scheduler is not None:
        scheduler.free_point()


def thread_per_task(task: Callable[[], object]) -> None:
    """Run `task` in a new thread; an executor for scenarios."""
    scheduler = _managed()
    if scheduler is None:
        threading.Thread(target=task).start()
    else:
        scheduler.spawn(task)


def _sleep(seconds: float, /) -> None:
    scheduler = _managed()
    if scheduler is None:
        _ORIGINALS["sleep"](seconds)
    else:
        scheduler.block([], f"{seconds} s to pass", seconds)


def _monotonic() -> float:
    scheduler = _managed()
    return float(_ORIGINALS["monotonic"]()) if scheduler is None else scheduler.clock


_REPLACEMENTS: Final[dict[str, Any]] = {
    "Lock": Lock,
    "allocate_lock": Lock,
    "RLock": RLock,
    "CRLock": RLock,
    "Event": Event,
    "Condition": Condition,
    "Semaphore": Semaphore,
    "BoundedSemaphore": BoundedSemaphore,
    "SimpleQueue": SimpleQueue,
    "sleep": _sleep,
    "monotonic": _monotonic,
}
_BY_ID: Final = {id(original): _REPLACEMENTS[name] for name, original in _ORIGINALS.items()}


# -- threads

_thread_start: Final = threading.Thread.start
_thread_join: Final = threading.Thread.join
_thread_is_alive: Final = threading.Thread.is_alive
_TASK: Final = "_flow_interleave_task"


def _start(self: threading.Thread) -> None:
    scheduler = _managed()
    if scheduler is None:
        _thread_start(self)
        return
    if _TASK in self.__dict__:
        raise RuntimeError("threads can only be started once")
    # Default names count up from run to run.
    name = "" if self.name.startswith("Thread-") else self.name
    self.__dict__[_TASK] = scheduler.spawn(self.run, name, daemon=self.daemon)
    # For a join after the exploration, as of a pool when the process ends.
    self.__dict__["join"] = partial(_join, self)
    self.__dict__["is_alive"] = partial(_is_alive, self)


def _join(self: threading.Thread, timeout: float | None = None) -> None:
    task: Task | None = self.__dict__.get(_TASK)
    scheduler = _managed()
    if task is None:
        _thread_join(self, timeout)
    elif scheduler is not None and not task.over:
        scheduler.block(task.joiners, f"the end of {task.name}", timeout)


def _is_alive(self: threading.Thread) -> bool:
    task: Task | None = self.__dict__.get(_TASK)
    return _thread_is_alive(self) if task is None else not task.over


@contextmanager
def cooperative(scheduler: Scheduler, modules: Iterable[ModuleType]) -> Generator[None]:
    """Replace blocking primitives in the standard library and `modules`, for a ``with`` block.

    A lock that a module has made when it was imported is replaced, too.
    """
    global _scheduler
    if _scheduler is not None:
        raise RuntimeError("an exploration runs already; they cannot be nested")
    # If these modules were first imported during a run, they would make their locks there.
    for name in _STDLIB:
        import_module(name)

    _scheduler = scheduler
    replaced: list[tuple[ModuleType, str, Any, Any]] = []
    known = set(sys.modules)
    try:
        for module in [*(sys.modules[name] for name in _STDLIB), *modules]:
            for name, value in list(vars(module).items()):
                if module.__name__ == __name__:
                    continue
                replacement = _BY_ID.get(id(value))
                # Real threads, even the explorer's, need those of `threading` itself.
                if replacement is None and module is not threading:
                    if type(value) is _LOCK_TYPE and not value.locked():
                        replacement = Lock()
                    elif type(value) is _RLOCK_TYPE:
                        replacement = RLock()
                if replacement is not None:
                    replaced.append((module, name, value, replacement))
                    setattr(module, name, replacement)
        # The checkers do not expect a class to change; it is restored below.
        threading.Thread.start = _start  # type: ignore[method-assign]
        threading.Thread.join = _join  # type: ignore[method-assign]
        threading.Thread.is_alive = _is_alive  # type: ignore[method-assign]
        yield
    finally:
        threading.Thread.start = _thread_start  # type: ignore[method-assign]
        threading.Thread.join = _thread_join  # type: ignore[method-assign]
        threading.Thread.is_alive = _thread_is_alive  # type: ignore[method-assign]
        for module, name, value, _ in reversed(replaced):
            setattr(module, name, value)
        _scheduler = None
        for name in set(sys.modules) - known:
            _restore_new(sys.modules[name])


def _restore_new(module: ModuleType) -> None:
    """Put real locks into a module that was imported during a run, and so has replacements."""
    originals = {id(new): _ORIGINALS[name] for name, new in _REPLACEMENTS.items()}
    for name, value in list(getattr(module, "__dict__", {}).items()):
        original = originals.get(id(value))
        if original is not None:
            setattr(module, name, original)
        elif isinstance(value, _Primitive) and type(value) in {Lock, RLock}:
            setattr(module, name, _ORIGINALS[type(value).__name__]())
