"""The base of operators that work on many items, and send results in order or as they come."""

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
"""The number of errors that a note shows."""


class Work(Protocol):
    """The work on one item: a task of asyncio, or an object like it."""

    def result(self) -> Any:  # Any: the result of the function
        """Return the result of the work."""
        ...


W = TypeVar("W", bound=Work)


class Slots(Coordinator[R], Generic[T, R, W]):
    """Takes items, and sends the results for them. A subclass does the work.

    At most `plan.concurrency` items are worked on at a time. These and the results that wait are
    together at most `plan.concurrency` too, unless more items are requested: then they may be up to
    `plan.prefetch`. So a slow first item does not delay the others, and little work begins without
    demand.

    Args:
        source: the upstream.
        plan: the options.
        downstream: gets the signals.
        label: the operator and where it was assembled, for messages.
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
        """The number of items that are worked on."""
        self.failing = False
        """True when an item has failed, and its error waits for its turn: no more work begins."""
        self.running: dict[W, object] = {}
        """All items whose results were not sent, in order. The value of an entry is None while the
        work runs; when it has ended, it is the error, or True."""
        self.ready: deque[W] = deque()
        """The work that has ended, in the order in which it did; not used if results keep the order
        of the items."""

    def error_of(self, work: W) -> BaseException | None:
        """Return the error of `work`, if it is known already, before it is reported."""
        return None

    @abstractmethod
    def left(self, running: dict[W, object]) -> None:
        """Give up work: its results are no longer wanted. The caller must hold the permit."""

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
        items = self.items  # read once: the end clears it
        waiting = max(len(self.running) - self.working, 0)
        return waiting + (0 if items is None else items.waiting)

    # -- with the permit

    def room(self) -> bool:
        """Return whether the work on one more item may begin."""
        plan = self.plan
        if self.working >= plan.concurrency or self.failing:
            return False
        taken = len(self.running)
        return taken < plan.concurrency or taken < min(plan.prefetch, self.demand)

    def ended(self, work: W, error: BaseException | None) -> None:
        """Note that `work` has ended, and was not given up."""
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
                if is_fatal(state):  # it propagates where the function was called
                    self.fail(ended_by(state, self.label))
                else:
                    error = self.blame(state)
                    self._note_others(error)
                    self.fail(error)
            else:
                return

    def _note_others(self, error: BaseException) -> None:
        """Note in `error` which other items have failed by now: their errors are not sent."""
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
        """End the flow, if the upstream has ended and nothing is left."""
        if items.ended():
            error, items.error = items.error, None
            self.end(error)


def ended_by(error: BaseException, label: str) -> FlowError:
    """Return the error of a flow whose function raised a fatal error, which propagates."""
    told = FlowError(f"{label} was ended by {type(error).__name__}")
    told.__cause__ = error
    return told


def error_of(task: asyncio.Task[Any], label: str) -> BaseException | None:  # Any: not looked at
    """Return the error that the flow gets when its `task` has ended.

    The result is None if the task has a result.
    """
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
    """Return the error for a flow of which a task was cancelled from outside."""
    return LoopEndedError(
        f"{label}: its task was cancelled from outside, as an ending event loop does; end the flow "
        "before its loop"
    )
