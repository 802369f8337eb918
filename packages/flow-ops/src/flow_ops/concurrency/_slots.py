"""Many items that are worked on, and their results, in order or as they come."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import deque
from typing import Any, Final, Generic, Protocol, TypeVar

from typing_extensions import override

from flow_core.errors import FlowError, LoopEndedError, cancelled_inside, is_fatal
from flow_core.flow import Flow
from flow_core.protocols import CoreSubscriber
from flow_ops.concurrency._plan import Plan
from flow_ops.coordination import BufferedInput, Coordinator

__all__ = ["Slots", "Work", "cancelled_outside", "ended_by", "error_of"]

T = TypeVar("T")
R = TypeVar("R")


_SHOWN: Final = 3
"""How many errors a note shows."""


class Work(Protocol):
    """What goes on for one item: a task of asyncio, or what looks like one."""

    def result(self) -> Any:  # Any: what the function made
        """What it made."""
        ...


W = TypeVar("W", bound=Work)


class Slots(Coordinator[R], Generic[T, R, W]):
    """Takes items, and gives what was made of them. A subclass says how that is done.

    At most `plan.concurrency` items are worked on. Those that are, and those whose results wait,
    are not more than that either, but for what the downstream has asked for: up to `plan.prefetch`
    then. So a slow item at the head holds nobody up, and nothing is begun that nobody wants.

    Args:
        source: the upstream.
        plan: see there.
        downstream: gets the signals.
        label: the operator and its place, for messages.
    """

    __slots__ = (
        "failing",
        "items",
        "plan",
        "ready",
        "running",
        "source",
        "working",
    )

    def __init__(
        self, source: Flow[T], plan: Plan[T], downstream: CoreSubscriber[R], label: str
    ) -> None:
        super().__init__(downstream, label)
        self.source: Flow[T] | None = source
        self.plan: Final = plan
        self.items: BufferedInput[T] | None = BufferedInput(self, plan.concurrency)
        self.working = 0
        """How many are worked on."""
        self.failing = False
        """One has failed, which is told when its turn comes: nothing else begins."""
        self.running: dict[W, object] = {}
        """All whose results were not given on, in the order of the items. With each is None; or,
        when it has ended, the error; or else True."""
        self.ready: deque[W] = deque()
        """Those that have ended, in that order, unless that of the items counts."""

    def error_of(self, work: W) -> BaseException | None:
        """What `work` has failed with, if that is known although nobody has told."""
        return None

    @abstractmethod
    def left(self, running: dict[W, object]) -> None:
        """Nobody wants these any more. With the permit."""

    @override
    def open(self) -> None:
        source, self.source = self.source, None
        items = self.items
        if source is not None and items is not None:
            self.connect(source, items)

    @override
    def closed(self) -> None:
        items = self.items
        self.source = None
        if items is not None:
            self.items = None
            items.close()
        running, self.running = self.running, {}
        self.ready.clear()
        if running:
            self.left(running)

    @property
    @override
    def buffered(self) -> int:
        items = self.items  # read once: the end takes it away
        waiting = max(len(self.running) - self.working, 0)
        return waiting + (0 if items is None else items.waiting)

    # -- with the permit

    def room(self) -> bool:
        """Whether one more may begin."""
        plan = self.plan
        if self.working >= plan.concurrency or self.failing:
            return False
        taken = len(self.running)
        return taken < plan.concurrency or taken < min(plan.prefetch, self.demand)

    def ended(self, work: W, error: BaseException | None) -> None:
        """`work` is over, and nobody has left it."""
        self.working -= 1
        if error is None:
            self.running[work] = True
        else:
            self.running[work] = error
            self.failing = True
        if not self.plan.ordered:
            self.ready.append(work)

    def give(self) -> None:
        """Emit results that are ready, as far as there is demand."""
        running, ready, ordered = self.running, self.ready, self.plan.ordered
        while not self.over:
            if ordered:
                if not running:
                    return
                work = next(iter(running))
            elif ready:
                work = ready[0]
            else:
                return
            state = running[work]
            if state is True:
                if self._emitted >= self._requested:  # `demand`, without a call for each item
                    return
                del running[work]
                if not ordered:
                    ready.popleft()
                self.emit(work.result())
            elif isinstance(state, BaseException):
                del running[work]
                if is_fatal(state):  # it goes on where the function was called
                    self.fail(ended_by(state, self.label))
                else:
                    error = self.blame(state)
                    self._note_others(error)
                    self.fail(error)
            else:
                return

    def _note_others(self, error: BaseException) -> None:
        """Say in a note of `error` what else has failed by now, which nobody is told otherwise."""
        others: list[BaseException] = []
        for work, state in list(self.running.items()):
            other = self.error_of(work) if state is None else state
            if isinstance(other, BaseException) and not is_fatal(other):
                del self.running[work]
                others.append(other)
        if others:
            shown = ", ".join(map(repr, others[:_SHOWN]))
            more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
            error.add_note(f"at the same time failed: {shown}{more}")

    def end_with(self, items: BufferedInput[T]) -> None:
        """End, if the upstream has and nothing is left."""
        if items.ended():
            error, items.error = items.error, None
            self.end(error)


def ended_by(error: BaseException, label: str) -> FlowError:
    """What a flow is told whose function has raised a fatal error, which goes on elsewhere."""
    told = FlowError(f"{label} was ended by {type(error).__name__}")
    told.__cause__ = error
    return told


def error_of(task: asyncio.Task[Any], label: str) -> BaseException | None:  # Any: not looked at
    """What the flow fails with since a `task` of it has ended; None if that has a result."""
    if not task.cancelled():
        return task.exception()
    if task.cancelling():
        return cancelled_outside(label)
    try:
        task.result()
    except asyncio.CancelledError as cancelled:
        return cancelled_inside(label, cancelled)
    return None


def cancelled_outside(label: str) -> LoopEndedError:
    """What a flow fails with if somebody else has cancelled a task of it."""
    return LoopEndedError(
        f"{label}: its task was cancelled from outside, as a loop does that ends; end the flow "
        "before its loop"
    )
