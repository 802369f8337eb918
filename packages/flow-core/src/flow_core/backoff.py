"""`Backoff`: how long to wait before a flow that has failed is tried again, and how often."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from random import Random
from typing import final

from flow_core.clocks import Clock, Seconds, in_seconds
from flow_core.errors import FlowError
from flow_core.stages._recovery import ErrorFilter, error_filter

__all__ = ["Backoff", "RetryExhaustedError", "waiting"]


class RetryExhaustedError(FlowError):
    """A flow has failed more often than its `Backoff` allows. The cause is the last failure.

    Args:
        message: says where the flow failed, and how often it was tried.
        retries: how often the flow was tried again.
    """

    def __init__(self, message: str, *, retries: int = 0) -> None:
        super().__init__(message)
        self.retries = retries


@final
@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits longer after each failure, by a partly random time; for `retry_when`.

    >>> from random import Random
    >>> backoff = Backoff(0.1, max=1.0, jitter=0)
    >>> [backoff.delay_s(retries, Random()) for retries in range(5)]
    [0.1, 0.2, 0.4, 0.8, 1.0]

    Args:
        first: the time before the first retry, in seconds; no later time is shorter than this.
        factor: the factor by which the time grows with each retry; 1 for a fixed time.
        max: the longest time, in seconds.
        jitter: the part of the time that is random, from 0 to 1: with 0.5, a time of 2 s is
            anything from 1 s to 3 s. This way, clients that failed at the same time do not all try
            again at the same time.
        max_attempts: the most retries; None for any number. One more failure fails the flow, with
            `RetryExhaustedError`.
        when: selects the errors to retry; other errors fail the flow.
        transient: whether an item that gets through resets the count of failures, for the waiting
            time and for `max_attempts`.
        seed: the seed of the random numbers, which are then the same for each subscriber; None for
            different numbers each time.
        clock: the clock that measures the waiting time; None for the clock of the event loop that
            runs the flow, or of the process if there is no loop.

    Raises:
        TypeError: if one of these arguments is of the wrong type.
        ValueError: if `first` is negative, `factor` is less than 1, `max` less than `first`,
            `jitter` not in [0, 1], or `max_attempts` negative.
    """

    first: Seconds
    factor: float = 2.0
    max: Seconds = math.inf
    jitter: float = 0.5
    max_attempts: int | None = None
    when: ErrorFilter = Exception
    transient: bool = False
    seed: int | None = None
    clock: Clock | None = None

    def __post_init__(self) -> None:
        first_s, max_s = self._times()
        for name in ("factor", "jitter"):
            value: object = getattr(self, name)
            if not isinstance(value, (int, float)) or isinstance(value, bool):
                raise TypeError(f"Backoff({name}=) takes a number, not {value!r}")
        for name in ("max_attempts", "seed"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
                raise TypeError(f"Backoff({name}=) takes an int or None, not {value!r}")
        clock: object = self.clock
        if clock is not None and not callable(getattr(clock, "schedule", None)):
            raise TypeError(f"Backoff(clock=) takes a Clock or None, not {clock!r}")
        error_filter("Backoff", self.when)
        if not 0 <= first_s < math.inf:
            raise ValueError(f"Backoff(first=) takes at least 0 s, not {first_s} s")
        if not 1 <= self.factor < math.inf:
            raise ValueError(f"Backoff(factor=) takes at least 1, not {self.factor}")
        if not max_s >= first_s:
            raise ValueError(f"Backoff(max=) takes at least first, not {max_s} s")
        if not 0 <= self.jitter <= 1:
            raise ValueError(f"Backoff(jitter=) takes 0 to 1, not {self.jitter}")
        if self.max_attempts is not None and self.max_attempts < 0:
            raise ValueError(f"Backoff(max_attempts=) takes at least 0, not {self.max_attempts}")

    def delay_s(self, retries: int, random: Random) -> float:
        """Return the seconds to wait before the next retry.

        Args:
            retries: how many retries there have been already.
            random: the random number generator.
        """
        first_s, max_s = self._times()
        try:
            delay = min(first_s * float(self.factor) ** retries, max_s)
        except OverflowError:
            delay = max_s if first_s else 0.0  # zero does not grow
        if not self.jitter or math.isinf(delay):
            return delay
        spread = delay * self.jitter
        lowest, highest = max(first_s, delay - spread), min(max_s, delay + spread)
        return lowest + (highest - lowest) * random.random()

    def _times(self) -> tuple[float, float]:
        return in_seconds(self.first, "Backoff(first=)"), in_seconds(self.max, "Backoff(max=)")


def waiting(
    name: str, times: int | None, backoff: Backoff | Seconds, when: ErrorFilter = Exception
) -> Backoff:
    """Return the `Backoff` that ``retry=times, backoff=backoff`` stand for.

    Args:
        name: the name of the operator, for messages.
        times: how often to try again; None for the number of the Backoff, or any number if there is
            none.
        backoff: the time before the first retry, in seconds, or a Backoff.
        when: selects the errors to retry; Exception if the Backoff selects them.

    Raises:
        TypeError: if `backoff` is neither a time nor a Backoff.
        ValueError: if the time is less than 0.
    """
    if not isinstance(backoff, Backoff):
        first_s = in_seconds(backoff, f"{name}(backoff=)")
        if not first_s >= 0:
            raise ValueError(f"{name}(backoff=) must be at least 0 seconds, not {first_s:g}")
        backoff = Backoff(first_s)
    return replace(
        backoff,
        max_attempts=backoff.max_attempts if times is None else times,
        when=backoff.when if when is Exception else when,
    )
