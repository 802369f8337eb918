"""What is done with each item, how often it is tried, and how many are worked on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Generic, TypeVar, final

from flow_core.backoff import Backoff
from flow_core.clocks import Clock
from flow_core.executors import Runner
from flow_core.stages import matches

__all__ = ["Plan"]

T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True)
class Plan(Generic[T]):
    """The arguments of an operator that works on many items at a time.

    Args:
        function: the user's, which gives a result, or a coroutine.
        concurrency: how many items are worked on at a time.
        prefetch: how many may be worked on, or have results that wait, if there is demand.
        ordered: whether results keep the order of the items.
        retries: how often an item is tried again at once; see also `backoff`.
        backoff: says when it is tried again, in the place of `retries`.
        timeout_s: how long each try may take, in seconds; None for any time.
        fallback: makes an item of the one that failed, and of the error.
        keeps: whether items go on, and not what `function` made of them.
        clock: tells the time; None for that of where the flow runs.
        loop: where coroutines run; None for that of where the flow runs.
        runner: where functions run; None for threads of the flow's own.
        by_loop: whether `function` gives coroutines, and so runs in the loop.
    """

    function: Callable[[T], Any]  # Any: a result, or a coroutine for it
    concurrency: int
    prefetch: int
    ordered: bool
    retries: int = 0
    backoff: Backoff | None = None
    timeout_s: float | None = None
    fallback: Callable[[T, Exception], Any] | None = None  # Any: becomes an item
    keeps: bool = False
    clock: Clock | None = None
    loop: asyncio.AbstractEventLoop | None = None
    runner: Runner | None = None
    by_loop: bool = True

    @property
    def is_plain(self) -> bool:
        """Whether nothing is done but to call the function."""
        tried = self.retries or self.backoff or self.timeout_s is not None
        return not (tried or self.fallback or self.keeps)

    def random(self) -> Random | None:
        """Where the chance of the back-off comes from, for one subscriber."""
        return None if self.backoff is None else Random(self.backoff.seed)

    def delay_s(self, error: Exception, tries: int, random: Random | None) -> float | None:
        """Seconds until the item is tried again; None if it is not.

        Args:
            error: what the last try has failed with.
            tries: how many retries there were.
            random: see `random`.
        """
        backoff = self.backoff
        if backoff is None or random is None:
            return 0.0 if tries < self.retries else None
        if tries == backoff.max_attempts or not matches(backoff.when, error):
            return None
        return backoff.delay_s(tries, random)
