"""The options of concurrent work: the function, the retries, and the limits."""

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
        function: the user's function, which returns a result, or a coroutine.
        concurrency: how many items are worked on at a time.
        prefetch: how many items may be worked on, or have results that wait, if there is demand.
        ordered: whether results keep the order of the items.
        retries: how often an item is tried again at once after it has failed; see also `backoff`.
        backoff: decides when an item is tried again, in place of `retries`.
        timeout_s: how long each try may take, in seconds; None for any time.
        fallback: called with an item that has failed and its error; returns an item to send
            instead.
        keeps: whether the items themselves are sent, and not the results of `function`.
        clock: the clock; None for that of the place where the flow runs.
        loop: the loop for coroutines; None for that in which the flow runs.
        runner: runs functions; None for the flow's own threads.
        by_loop: whether `function` returns coroutines, and so runs in the loop.
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
        """Return whether the function is only called: no retries, no time limit, no fallback."""
        tried = self.retries or self.backoff or self.timeout_s is not None
        return not (tried or self.fallback or self.keeps)

    def random(self) -> Random | None:
        """Return the random generator of the back-off, for one subscriber."""
        return None if self.backoff is None else Random(self.backoff.seed)

    def delay_s(self, error: Exception, tries: int, random: Random | None) -> float | None:
        """Return the seconds until the item is tried again; None if it is not tried again.

        Args:
            error: the error of the last try.
            tries: how many retries the item has had.
            random: see `random`.
        """
        backoff = self.backoff
        if backoff is None or random is None:
            return 0.0 if tries < self.retries else None
        if tries == backoff.max_attempts or not matches(backoff.when, error):
            return None
        return backoff.delay_s(tries, random)
