"""Whose turn it is to read a channel."""

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
    """Lets one thread at a time read: the consumer, or another one while the consumer is away.

    The consumer comes first: when it `ask`s, whoever else reads is woken, and gives way. The two
    locks are only tried, never waited for, so that a signal handler or a finaliser may call in.

    Args:
        wake: interrupts whoever waits for something to read; callable from any thread.
    """

    __slots__ = ("_asking", "_given", "_left_at", "_reading", "_wake")

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake: Final = wake
        self._asking: Final = threading.Lock()
        self._reading: Final = threading.Lock()
        self._given: Final[SimpleQueue[None]] = SimpleQueue()
        self._left_at = time.monotonic()

    def ask(self) -> bool:
        """The consumer comes; False if there is one already."""
        return self._asking.acquire(blocking=False)

    def leave(self) -> None:
        """The consumer goes."""
        self._left_at = time.monotonic()
        self._asking.release()

    def is_asked(self) -> bool:
        """Whether the consumer is here."""
        return self._asking.locked()

    def silence_s(self) -> float:
        """For how many seconds the consumer has been away; 0 while it is here."""
        left_at = self._left_at
        return 0.0 if self._asking.locked() else time.monotonic() - left_at

    def take(self) -> bool:
        """Begin to read; False if somebody reads."""
        return self._reading.acquire(blocking=False)

    def give(self, *, tell: bool = True) -> None:
        """End to read.

        Args:
            tell: whether to wake the consumer if it is here; it does not have to tell itself.
        """
        self._reading.release()
        if tell and self._asking.locked():
            self._given.put(None)

    def wait(self, timeout_s: float | None) -> None:
        """Wait until it may be the consumer's turn, which has asked and could not `take` it.

        It may return before, or without. Call `take` again.

        Args:
            timeout_s: how long to wait at most, in seconds; None waits for as long as it takes.
        """
        self._wake()
        with contextlib.suppress(Empty):
            self._given.get(timeout=timeout_s)
