"""Where a subscription is at home: the event loop that runs it."""

from __future__ import annotations

import asyncio
from typing import Final, final

__all__ = ["Home", "current_home"]


@final
class Home:
    """The event loop that a subscription belongs to, whichever thread signals.

    A subscriber has it from where it subscribed, and operators hand it on to what they subscribe
    to, also when they do that later, on another thread. Operators that wait, or run coroutines,
    ask for it.

    Args:
        loop: the loop that ran in the thread that subscribed.
    """

    __slots__ = ("loop",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop: Final = loop

    def __repr__(self) -> str:
        return f"Home({self.loop!r})"


def current_home() -> Home | None:
    """A home in the loop that runs in this thread; None if none does."""
    try:
        return Home(asyncio.get_running_loop())
    except RuntimeError:
        return None
