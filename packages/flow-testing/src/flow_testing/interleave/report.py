"""The result of an exploration, and the token with which a run can be repeated."""

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
"""The departures of a run from the default, in order: the step, and the thread that continued
there."""


class InterleavingUnsupportedError(FlowError, RuntimeError):
    """This Python cannot explore interleavings; the text names the version that can."""


class NondeterminismError(FlowError, RuntimeError):
    """A run has taken another course than an earlier run under the same schedule.

    This means that the body depends on something other than the schedule: the clock, random
    numbers, state that it shares with an earlier run, or a thread that the scheduler does not know.
    """


class Kind(Enum):
    """The ways in which a run can fail."""

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
        step: the number of the step, from 0.
        thread: the name of the thread.
        file: the file whose code was run.
        line: the number of the line.
        source: the text of the line.
        operation: what the step did that other threads can see.
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
        kind: how the run failed.
        message: describes the failure, in one line or with the stacks of all threads.
        token: the name of the schedule, for `replay`.
        trace: the steps of the threads, in order.
        error: the error that a thread or the check has raised; None if there is none.
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
        schedules: how many runs were made.
        steps: how many steps the longest run had.
        exhausted: whether all schedules were run that the strategy allows.
        outcomes: the results of ``outcome()``, each with how often it came.
        unseen: the allowed outcomes that did not come.
        failure: the first run that failed; None if none did.
        elapsed_s: how long the whole exploration took, in seconds.
    """

    schedules: int
    steps: int
    exhausted: bool
    outcomes: Counter[Hashable] = field(default_factory=Counter[Hashable])
    unseen: frozenset[Hashable] = frozenset()
    failure: Failure | None = None
    elapsed_s: float = 0.0

    def assert_holds(self) -> Report:
        """Return this report, after checking that no run has failed.

        Raises:
            InterleavingFailure: if a run has failed; the message has its token and its trace.
        """
        if self.failure is not None:
            raise InterleavingFailure(self) from self.failure.error
        return self


class InterleavingFailure(AssertionError):  # noqa: N818 - an assertion that failed, as others do
    """The body failed under a schedule; the message has the schedule's token and trace."""

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
    """Return a run's token: the Python version, and ``step>thread`` for each departure.

    >>> to_token(((12, 1), (30, 0))).partition(":")[2]
    '12>1,30>0'
    """
    return f"{_version()}:" + ",".join(f"{step}>{thread}" for step, thread in deviations)


def parse_token(token: str) -> Deviations:
    """Return the departures from the default that `token` names.

    Raises:
        ValueError: if `token` is not a token, or is one of another Python version: steps are
            instructions, which differ between versions.
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
