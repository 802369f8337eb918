"""The turn to read a channel."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final, final

__all__ = ["Turn"]


@final
class Turn:
    """Lets one thread at a time read: the consumer, or another thread while the consumer is away.

    The consumer comes first: when it calls `ask`, another thread that is reading is woken, and
    stops. The two locks are only tried, never waited for, so a signal handler or a finaliser may
    call any method.

    Args:
        wake: interrupts a thread that waits for something to read; any thread may call it.
    """

    __slots__ = ("_asking", "_given", "_left_at", "_reading", "_wake")

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake: Final = wake
        self._asking: Final = threading.Lock()
        self._reading: Final = threading.Lock()
        self._given: Final[SimpleQueue[None]] = SimpleQueue()
        self._left_at = time.monotonic()

    def ask(self) -> bool:
        """Note that the consumer is here; return False if there is one already."""
        return self._asking.acquire(blocking=False)

    def leave(self) -> None:
        """Note that the consumer is away again."""
        self._left_at = time.monotonic()
        self._asking.release()

    def is_asked(self) -> bool:
        """Return whether the consumer is here."""
        return self._asking.locked()

    def silence_s(self) -> float:
        """Return for how many seconds the consumer has been away; 0 while it is here."""
        left_at = self._left_at
        return 0.0 if self._asking.locked() else time.monotonic() - left_at

    def take(self) -> bool:
        """Begin to read; return False if another thread reads."""
        return self._reading.acquire(blocking=False)

    def give(self, *, tell: bool = True) -> None:
        """Stop reading.

        Args:
            tell: whether to wake the consumer if it is here. The consumer itself passes False.
        """
        self._reading.release()
        if tell and self._asking.locked():
            self._given.put(None)

    def wait(self, timeout_s: float | None) -> None:
        """Wait until the turn may be free for the consumer, which could not `take` it.

        This may return too early, so call `take` again.

        Args:
            timeout_s: how long to wait at most, in seconds; None for no limit.
        """
        self._wake()
        with contextlib.suppress(Empty):
            self._given.get(timeout=timeout_s)
