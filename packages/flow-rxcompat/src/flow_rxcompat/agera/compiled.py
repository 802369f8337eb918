"""`CompiledRepository`: runs a flow of directives to compute its value."""

from __future__ import annotations

import enum
import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any, Final, Generic, TypeVar, final

from typing_extensions import override

from flow_core.executors import Executor, as_runner
from flow_rxcompat.agera.config import RepositoryConfig
from flow_rxcompat.agera.errors import check_state, not_none
from flow_rxcompat.agera.handlers import Message
from flow_rxcompat.agera.observables import BaseObservable
from flow_rxcompat.agera.protocols import Observable, Repository, Updatable
from flow_rxcompat.agera.result import Result

__all__ = [
    "BindWith",
    "Check",
    "CompiledRepository",
    "Directive",
    "End",
    "FilterFailure",
    "FilterSuccess",
    "GetFrom",
    "GoLazy",
    "GoTo",
    "MergeIn",
    "RunState",
    "SendTo",
    "Transform",
    "interrupted",
]

V = TypeVar("V")

_Call = Callable[..., Any]  # Any: the builder's types say which directives fit each other


class _Running(threading.local):
    """The flag by which the flow that this thread runs is interrupted; None without a flow."""

    def __init__(self) -> None:
        self.interruption: threading.Event | None = None


_running: Final = _Running()


def interrupted() -> bool:
    """Return whether the flow that this thread runs was interrupted since the last call.

    Python cannot interrupt a thread: a directive that takes long calls this, and ends early. See
    `RepositoryConfig.SEND_INTERRUPT`.
    """
    interruption = _running.interruption
    if interruption is None or not interruption.is_set():
        return False
    interruption.clear()
    return True


class RunState(enum.Enum):
    """The state of a compiled repository."""

    IDLE = "idle"
    RUNNING = "running"
    CANCEL_REQUESTED = "cancelled, and the directive that runs has not ended yet"
    PAUSED_AT_GO_TO = "waits for an executor"
    PAUSED_AT_GO_LAZY = "waits for get()"
    RUNNING_LAZILY = "running within get()"


class Directive:
    """One step of a flow."""

    __slots__ = ()

    @abstractmethod
    def run(self, flow: CompiledRepository[Any]) -> bool:  # Any: see _Call
        """Run this step; return whether the flow continues with the next one."""


@final
class GetFrom(Directive):
    """Replaces the value by the value of a supplier."""

    __slots__ = ("_get",)

    def __init__(self, get: _Call) -> None:
        self._get = get

    @override
    def run(self, flow: CompiledRepository[Any]) -> bool:
        flow.intermediate = not_none(self._get(), "get_from()")
        return True


@final
class MergeIn(Directive):
    """Merges the value with the value of a supplier."""

    __slots__ = ("_get", "_merge")

    def __init__(self, get: _Call, merge: _Call) -> None:
        self._get = get
        self._merge = merge

    @override
    def run(self, flow: CompiledRepository[Any]) -> bool:
        flow.intermediate = not_none(self._merge(flow.intermediate, self._get()), "merge_in()")
        return True


@final
class Transform(Directive):
    """Applies a function to the value."""

    __slots__ = ("_apply",)

    def __init__(self, apply: _Call) -> None:
        self._apply = apply

    @override
    def run(self, flow: CompiledRepository[Any]) -> bool:
        flow.intermediate = not_none(self._apply(flow.intermediate), "transform()")
        return True


@final
class Check(Directive):
    """Ends the flow unless a predicate holds for a case of the value."""

    __slots__ = ("_case", "_end_with", "_holds")

    def __init__(self, case: _Call, holds: _Call, end_with: _Call | None) -> None:
        self._case = case
        self._holds = holds
        self._end_with = end_with

    @override
    def run(self, flow: CompiledRepository[Any]) -> bool:
        case = self._case(flow.intermediate)
        return bool(self._holds(case)) or flow.terminate(case, self._end_with)


@final
class GoTo(Directive):
    """Continues in an executor."""

    __slots__ = ("_runner",)

    def __init__(self, executor: Executor) -> None:
        self._runner = as_runner(executor)

    @override
    def run(self, flow: CompiledRepository[Any]) -> bool:
        self._runner.execute(flow.resume)
        return False


@final
class GoLazy(Directive):
    """Announces an update; the rest runs within ``get()``."""

    __slots__ = ()

    @override
    def run(self, flow: CompiledRepository[Any]) -> bool:
        """Let the flow announce the update, under its lock."""
        return False


@final
class SendTo(Directive):
    """Passes the value to a receiver."""

    __slots__ = ("_accept",)

    def __init__(self, accept: _Call) -> None:
        self._accept = accept

    @override
    def run(self, flow: CompiledRepository[Any]) -> bool:
        self._accept(flow.intermediate)
        return True


@final
class BindWith(Directive):
    """Passes the value and the value of a supplier to a binder."""

    __slots__ = ("_bind", "_get")

    def __init__(self, get: _Call, bind: _Call) -> None:
        self._get = get
        self._bind = bind

    @override
    def run(self, flow: CompiledRepository[Any]) -> bool:
        self._bind(flow.intermediate, self._get())
        return True


@final
class FilterSuccess(Directive):
    """Continues with the value of a result; ends the flow with its failure."""

    __slots__ = ("_end_with",)

    def __init__(self, end_with: _Call | None) -> None:
        self._end_with = end_with

    @override
    def run(self, flow: CompiledRepository[Any]) -> bool:
        attempt: Result[Any] = flow.intermediate
        if attempt.succeeded:
            flow.intermediate = attempt.get()
            return True
        return flow.terminate(attempt.get_failure(), self._end_with)


@final
class FilterFailure(Directive):
    """Continues with the failure of a result; ends the flow with its value."""

    __slots__ = ()

    @override
    def run(self, flow: CompiledRepository[Any]) -> bool:
        attempt: Result[Any] = flow.intermediate
        if attempt.succeeded:
            return flow.end_with(attempt.get())
        flow.intermediate = attempt.get_failure()
        return True


@final
class End(Directive):
    """Ends the flow."""

    __slots__ = ("_skip",)

    def __init__(self, *, skip: bool) -> None:
        self._skip = skip

    @override
    def run(self, flow: CompiledRepository[Any]) -> bool:
        return flow.skip() if self._skip else flow.end_with(flow.intermediate)


@final
class CompiledRepository(BaseObservable, Repository[V], Updatable, Generic[V]):
    """A repository whose value a flow of directives computes, while it is active.

    A flow begins on the loop that made this: when it is activated, and when its event source
    updates. An error of a directive propagates in the thread that runs it, and the repository stays
    RUNNING: it never starts a flow again. Agera does so, too (G8).
    """

    __slots__ = (
        "_deactivation",
        "_directives",
        "_discard",
        "_event_source",
        "_initial",
        "_interruption",
        "_notify",
        "_on_concurrent",
        "_restart_needed",
        "_resume_at",
        "_state",
        "_state_lock",
        "_value",
        "intermediate",
    )

    def __init__(
        self,
        initial: V,
        event_source: Observable,
        directives: Sequence[Directive],
        *,
        notify: _Call,
        deactivation: RepositoryConfig,
        on_concurrent: RepositoryConfig,
        discard: _Call,
    ) -> None:
        super().__init__()
        self._initial = initial
        self._value = initial
        self._event_source = event_source
        self._directives = tuple(directives)
        self._notify = notify
        self._deactivation = deactivation
        self._on_concurrent = on_concurrent
        self._discard = discard
        # Re-entrant, and held while get() runs the lazy part: other callers of get() wait for it.
        self._state_lock = RLock()
        self._state = RunState.IDLE
        self._restart_needed = False
        self._resume_at = -1
        self._interruption: threading.Event | None = None
        self.intermediate: Any = initial  # Any: the results of the directives so far

    @property
    def state(self) -> RunState:
        """The state of the repository."""
        return self._state

    # -- beginning and cancelling, on the loop

    @override
    def observable_activated(self) -> None:
        """Listen to the event source, and begin a flow."""
        self._event_source.add_updatable(self)
        self._maybe_start()

    @override
    def observable_deactivated(self) -> None:
        self._event_source.remove_updatable(self)
        self._maybe_cancel(self._deactivation, restart=False)

    @override
    def update(self) -> None:
        """Handle a change of the event source."""
        self._maybe_cancel(self._on_concurrent, restart=True)
        self._maybe_start()

    def _maybe_start(self) -> None:
        with self._state_lock:
            if self._state not in (RunState.IDLE, RunState.PAUSED_AT_GO_LAZY):
                if self._state is RunState.CANCEL_REQUESTED:
                    self._restart_needed = True
                return
            self._state = RunState.RUNNING
            self._resume_at = -1
            self._restart_needed = False
        self.intermediate = self._value
        self._run_from(0, asynchronously=False)

    def _maybe_cancel(self, config: RepositoryConfig, *, restart: bool) -> None:
        with self._state_lock:
            if self._state in (RunState.RUNNING, RunState.PAUSED_AT_GO_TO):
                self._restart_needed = restart
                if not config & RepositoryConfig.CANCEL_FLOW:
                    return
                self._state = RunState.CANCEL_REQUESTED
                interrupt = RepositoryConfig.SEND_INTERRUPT
                if config & interrupt == interrupt and self._interruption is not None:
                    self._interruption.set()
            reset = RepositoryConfig.RESET_TO_INITIAL_VALUE
            if not restart and config & reset == reset:
                self._set(self._initial)

    # -- acknowledging; locked, on any thread

    def _check_cancelled(self) -> bool:
        if self._state is not RunState.CANCEL_REQUESTED:
            return False
        self._handler.send(Message.ACKNOWLEDGE_CANCEL, self, self._acknowledge)
        return True

    def _acknowledge(self) -> None:
        start = False
        discarded: Any = None
        with self._state_lock:
            if self._state is RunState.CANCEL_REQUESTED:
                self._state = RunState.IDLE
                discarded = self._replaced(self._value)
                start = self._restart_needed
        if discarded is not None:
            self._discard(discarded)
        if start:
            self._maybe_start()

    def _check_restart(self) -> None:
        if self._restart_needed:
            self._handler.send(Message.MAYBE_START_FLOW, self, self._maybe_start)

    def _replaced(self, value: Any) -> Any:
        """Return the intermediate value that `value` replaces, if it is discarded, or None."""
        discarded = self.intermediate
        if discarded is value:
            return None
        self.intermediate = value
        return discarded

    # -- running

    def _run_from(self, index: int, *, asynchronously: bool) -> None:
        directives = self._directives
        while index < len(directives):
            directive = directives[index]
            pausing = isinstance(directive, (GoTo, GoLazy))
            if asynchronously or pausing:
                with self._state_lock:
                    if self._check_cancelled():
                        return
                    if pausing:
                        self._resume_at = index + 1
                        if isinstance(directive, GoLazy):
                            self._state = RunState.PAUSED_AT_GO_LAZY
                            self.dispatch_update()
                            self._check_restart()
                            return
                        self._state = RunState.PAUSED_AT_GO_TO
            if not directive.run(self):
                return
            index += 1

    def resume(self) -> None:
        """Continue after a ``go_to``; its executor calls this."""
        with self._state_lock:
            index, self._resume_at = self._resume_at, -1
            check_state(
                self._state in (RunState.PAUSED_AT_GO_TO, RunState.CANCEL_REQUESTED),
                "Illegal call of Runnable.run()",
            )
            if self._check_cancelled():
                return
            self._state = RunState.RUNNING
            interruption = self._interruption = threading.Event()
        before, _running.interruption = _running.interruption, interruption
        try:
            self._run_from(index, asynchronously=True)
        finally:
            _running.interruption = before
        with self._state_lock:
            # The flow may have continued in another thread by now, which has its own flag.
            if self._interruption is interruption:
                self._interruption = None

    def get(self) -> V:
        """Return the value; run the directives after a ``go_lazy``, once."""
        with self._state_lock:
            if self._state is RunState.PAUSED_AT_GO_LAZY:
                index = self._resume_at
                self._state = RunState.RUNNING_LAZILY
                self._run_from(index, asynchronously=False)
            return self._value

    # -- ending

    def terminate(self, case: object, end_with: _Call | None) -> bool:
        """End the flow with the result of `end_with` for `case`, or without a value."""
        if end_with is None:
            return self.skip()
        return self.end_with(not_none(end_with(case), "or_end()"))

    def skip(self) -> bool:
        """End the flow without a value."""
        with self._state_lock:
            self._state = RunState.IDLE
            discarded = self._replaced(self._value)
            self._check_restart()
        if discarded is not None:
            self._discard(discarded)
        return False

    def end_with(self, value: Any) -> bool:
        """End the flow with `value`."""
        with self._state_lock:
            lazily = self._state is RunState.RUNNING_LAZILY
            self._state = RunState.IDLE
            discarded = self._replaced(value)
            if lazily:
                self._value = value  # go_lazy has announced it
            else:
                self._set(value)
            self._check_restart()
        if discarded is not None:
            self._discard(discarded)
        return False

    def _set(self, value: V) -> None:
        tell = bool(self._notify(self._value, value))
        self._value = value
        if tell:
            self.dispatch_update()
