"""The result of an exploration, and the token by which a run can be repeated."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, TypeAlias, final

from flow_core.errors import FlowError

__all__ = [
    "Deviations",
    "Failure",
    "InterleavingFailure",
    "InterleavingUnsupportedError",
    "Kind",
    "NondeterminismError",
    "Report",
    "TraceLine",
    "parse_token",
    "render_trace",
    "to_token",
]

Deviations: TypeAlias = tuple[tuple[int, int], ...]
"""The departures of a run from the default, in order: the step, and the thread that continued."""


class InterleavingUnsupportedError(FlowError, RuntimeError):
    """This Python cannot explore interleavings; the text names the version that can."""


class NondeterminismError(FlowError, RuntimeError):
    """A run took another course than before, under the same schedule.

    The body depends on something other than the schedule: the clock, random numbers, state that it
    shares with the run before, or a thread that the scheduler does not know.
    """


class Kind(Enum):
    """The ways in which a run fails."""

    RAISED = "a thread raised"
    CHECK = "the check failed"
    OUTCOME = "an outcome that is not allowed"
    DEADLOCK = "deadlock"
    LOST_WAKE_UP = "lost wake-up"
    LIVELOCK = "livelock"
    STUCK = "a thread blocked where the scheduler cannot see it"


class TraceLine(NamedTuple):
    """A step of a run that other threads can see, or a switch between threads.

    Args:
        step: its number, from 0.
        thread: the name of the thread.
        file: the file that was run.
        line: the line in it.
        source: the text of the line.
        operation: its effect that others can see.
    """

    step: int
    thread: str
    file: str
    line: int
    source: str
    operation: str


@final
@dataclass(frozen=True, slots=True)
class Failure:
    """A run that failed.

    Args:
        kind: how it failed.
        message: the failure, in one line or with the stacks of all threads.
        token: for `replay`.
        trace: the steps of the threads, in order.
        error: the error of a thread or the check, if there was one.
    """

    kind: Kind
    message: str
    token: str
    trace: tuple[TraceLine, ...] = ()
    error: BaseException | None = None

    def __str__(self) -> str:
        return (
            f"{self.kind.value}: {self.message}\n"
            f"replay token: {self.token!r}\n{render_trace(self.trace)}"
        )


@final
@dataclass(frozen=True, slots=True)
class Report:
    """The statistics of an exploration.

    Args:
        schedules: how many runs it took.
        steps: the steps of the longest run.
        exhausted: whether every schedule that the strategy knows was run.
        outcomes: the results of ``outcome()``, with their counts.
        unseen: allowed outcomes that did not come.
        failure: the first run that failed, or None.
        elapsed_s: seconds of the whole exploration.
    """

    schedules: int
    steps: int
    exhausted: bool
    outcomes: Counter[Hashable] = field(default_factory=Counter[Hashable])
    unseen: frozenset[Hashable] = frozenset()
    failure: Failure | None = None
    elapsed_s: float = 0.0

    def assert_holds(self) -> Report:
        """Return this report, if no run has failed.

        Raises:
            InterleavingFailure: if one has; the message has its token and its trace.
        """
        if self.failure is not None:
            raise InterleavingFailure(self) from self.failure.error
        return self


class InterleavingFailure(AssertionError):  # noqa: N818 - an assertion that failed, as others do
    """A schedule under which the body fails; the message has its token and its trace."""

    def __init__(self, report: Report) -> None:
        super().__init__(f"after {report.schedules} schedules: {report.failure}")
        self.report = report


def render_trace(trace: tuple[TraceLine, ...]) -> str:
    """Return `trace` as text: a line per step, with a mark where another thread continues."""
    lines: list[str] = []
    width = max((len(f"{entry.file}:{entry.line}") for entry in trace), default=0)
    names = max((len(entry.thread) for entry in trace), default=0)
    for entry in trace:
        if not entry.source and not entry.line:
            lines.append(f"{entry.step:>6} -- {entry.operation}")
            continue
        place = f"{entry.file}:{entry.line}"
        lines.append(
            f"{entry.step:>6} {entry.thread:<{names}}  {place:<{width}}  "
            f"{entry.source}    # {entry.operation}"
        )
    return "\n".join(lines)


def _version() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def to_token(deviations: Deviations) -> str:
    """Return a run's name: the Python version, and ``step>thread`` for each departure.

    >>> to_token(((12, 1), (30, 0))).partition(":")[2]
    '12>1,30>0'
    """
    return f"{_version()}:" + ",".join(f"{step}>{thread}" for step, thread in deviations)


def parse_token(token: str) -> Deviations:
    """Return the departures that `token` names.

    Raises:
        ValueError: if it is not a token, or one of another Python version: steps are instructions,
            and they differ between versions.
    """
    version, colon, rest = token.partition(":")
    if not colon:
        raise ValueError(
            f"{token!r} is not a replay token, which looks like '{_version()}:12>1,30>0'"
        )
    if version != _version():
        raise ValueError(
            f"the token {token!r} belongs to Python {version}, and this is Python {_version()}; "
            "replay it there, or explore here again"
        )
    deviations: list[tuple[int, int]] = []
    for part in filter(None, rest.split(",")):
        step, arrow, thread = part.partition(">")
        if not (arrow and step.isdecimal() and thread.isdecimal()):
            raise ValueError(f"{part!r} in the replay token {token!r} is not of the form 12>1")
        deviations.append((int(step), int(thread)))
    return tuple(deviations)
