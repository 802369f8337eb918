"""The functions `explore`, `explore_all`, `search` and `replay`."""

from __future__ import annotations

import gc
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Generator, Hashable, Iterable
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Final, TextIO, TypeAlias, final

import flow_testing as testing
from flow_testing import subscriber
from flow_testing.interleave.names import files_of
from flow_testing.interleave.primitives import cooperative
from flow_testing.interleave.report import (
    Failure,
    Kind,
    NondeterminismError,
    Report,
    parse_token,
    render_trace,
    to_token,
)
from flow_testing.interleave.scheduler import Plan, Run, Scheduler
from flow_testing.interleave.strategies import Exhaustive, Strategy, bound
from flow_testing.interleave.tracing import Tracer, check_supported
from flow_testing.virtual_clock import VirtualClock

__all__ = [
    "LIBRARY",
    "Body",
    "Scenario",
    "explore",
    "explore_all",
    "replay",
    "search",
]

LIBRARY: Final = ("flow_core", "flow_ops", "flow_multicast")
"""The packages that are under test by default, if they are imported."""

KIT: Final = {
    "subscriber.py": frozenset({"_begin", "_end"}),
    "publisher.py": frozenset({"_requested", "_cancelled"}),
}
"""The functions of the testing kit whose calls count as steps: those that record signals."""

MAX_STEPS: Final = 20_000
TIMEOUT_S: Final = 12 * subscriber.TIMEOUT_S
_ALL_TIMEOUT_S: Final = 20 * subscriber.TIMEOUT_S
_COMMON_BOUND: Final = 2
"""The most preemptions for which there is time to run all schedules."""
_STUCK_S: Final = 2 * subscriber.TIMEOUT_S
_COLLECT_EVERY: Final = 512


@final
class Scenario:
    """Threads that run against each other, and the check after they have ended.

    Args:
        threads: the functions, each of which runs in a separate thread. If one raises an error, the
            run fails.
        daemons: like `threads`, but these may wait for ever when all others have ended.
        check: called when all threads have ended; raises an error if the run has failed.
        outcome: called when all threads have ended; the explorer counts its results.
    """

    __slots__ = ("check", "daemons", "outcome", "threads")

    def __init__(
        self,
        *threads: Callable[[], object],
        daemons: Iterable[Callable[[], object]] = (),
        check: Callable[[], object] | None = None,
        outcome: Callable[[], Hashable] | None = None,
    ) -> None:
        self.threads = threads
        self.daemons = tuple(daemons)
        self.check = check
        self.outcome = outcome


Body: TypeAlias = Callable[[], Scenario]
"""A function that makes fresh state, and the threads that work on it. It is called once per run."""


@final
class _Session:
    """One exploration: the body is run again and again."""

    def __init__(
        self,
        body: Body,
        scheduler: Scheduler,
        tracer: Tracer,
        allowed: Collection[Hashable] | None,
    ) -> None:
        self.body = body
        self.scheduler = scheduler
        self.tracer = tracer
        self.allowed = allowed
        self.outcomes: Counter[Hashable] = Counter()
        self.stuck: Run | None = None

    def run(self, plan: Plan, *, traced: bool = False) -> Run:
        """Run the body, check its outcome, and count the outcome.

        A thread that enters a function for the first time may fill a cache, such as that of
        compiled loops, by steps that no later run takes. Such a run is repeated, and only the
        repetition counts.
        """
        self.tracer.entered = False
        run, outcome = self._once(plan, traced=traced)
        follows = plan.chooser is None and run.kind is None and not run.diverged
        if self.tracer.entered and follows:
            grew = run.conflicts_grew
            run, outcome = self._once(plan, traced=traced)
            run.conflicts_grew |= grew
        self.outcomes.update(outcome)
        return run

    def _once(self, plan: Plan, *, traced: bool) -> tuple[Run, tuple[Hashable, ...]]:
        scenario: Scenario | None = None

        def spawn(scheduler: Scheduler) -> None:
            nonlocal scenario
            scenario = self.body()
            for fn in scenario.threads:
                scheduler.spawn(fn)
            for fn in scenario.daemons:
                scheduler.spawn(fn, daemon=True)

        # The thread of the process's clock would outlive the run; this clock stands still.
        with VirtualClock():
            run = self.scheduler.run(plan, spawn, traced=traced)
            if run.kind is None and not run.diverged and scenario is not None:
                return run, self._judge(scenario, run)
        return run, ()

    def _judge(self, scenario: Scenario, run: Run) -> tuple[Hashable, ...]:
        try:
            if scenario.check is not None:
                scenario.check()
            if scenario.outcome is None:
                return ()
            outcome = scenario.outcome()
        except Exception as error:
            run.kind, run.error = Kind.CHECK, error
            run.message = f"{type(error).__name__}: {error}"
            return ()
        if self.allowed is not None and outcome not in self.allowed:
            run.kind = Kind.OUTCOME
            run.message = f"{outcome!r} is not one of {sorted(map(repr, self.allowed))}"
        return (outcome,)


def _modules(names: Iterable[str | ModuleType] | None) -> tuple[str, ...]:
    if names is None:
        return tuple(name for name in LIBRARY if name in sys.modules)
    return tuple(name if isinstance(name, str) else name.__name__ for name in names)


@contextmanager
def _session(
    body: Body,
    modules: Iterable[str | ModuleType] | None,
    max_steps: int,
    stuck_s: float,
    allowed: Collection[Hashable] | None,
) -> Generator[_Session]:
    check_supported()
    names = _modules(modules)
    files = frozenset(file for name in names for file in files_of(name))
    # The kit itself is not under test: its own steps count as one.
    kit = Path(testing.__file__).parent
    scheduler = Scheduler(max_steps, stuck_s)
    entries = {str(kit / file): functions for file, functions in KIT.items()}
    tracer = Tracer(scheduler, files, str(kit), entries)
    # The kit's waits have to yield to the other threads, too.
    whole = (*names, testing.__name__)
    patched = [
        module
        for name, module in list(sys.modules.items())
        if name in whole or name.startswith(tuple(f"{package}." for package in whole))
    ]
    patched = [module for module in patched if f"{testing.__name__}.interleave" not in str(module)]
    collects = gc.isenabled()
    # A finaliser runs at the step at which the collector comes: that step would differ from run to
    # run.
    gc.disable()
    try:
        with cooperative(scheduler, patched):
            session = _Session(body, scheduler, tracer, allowed)
            tracer.start()
            try:
                first = session.run(Plan())  # imports and caches: it differs from all others
                session.stuck = first if first.kind is Kind.STUCK else None
                session.outcomes.clear()
                yield session
            finally:
                tracer.stop()
                scheduler.close()
    finally:
        if collects:
            gc.enable()


def search(
    body: Body,
    *,
    strategy: Strategy | None = None,
    modules: Iterable[str | ModuleType] | None = None,
    expect: Collection[Hashable] | None = None,
    max_schedules: int = 1_000_000,
    max_steps: int = MAX_STEPS,
    timeout_s: float = TIMEOUT_S,
    stuck_s: float = _STUCK_S,
) -> Report:
    """As `explore`, but put a failure into the report instead of raising it."""
    began = time.perf_counter()
    failed: Run | None = None
    schedules = steps = 0
    exhausted = False
    with _session(body, modules, max_steps, stuck_s, expect) as session:
        under_way = (Exhaustive() if strategy is None else strategy).search()
        failed = session.stuck
        while (
            failed is None and schedules < max_schedules and time.perf_counter() - began < timeout_s
        ):
            plan = under_way.next()
            if plan is None:
                exhausted = under_way.exhausted
                break
            run = session.run(plan)
            if run.diverged:
                raise NondeterminismError(
                    f"{run.diverged}, in the run {to_token(plan.deviations)!r}; the body must "
                    "depend on nothing but the schedule"
                )
            schedules += 1
            steps = max(steps, run.steps)
            if run.kind is not None:
                failed = run
                break
            under_way.done(run)
            if schedules % _COLLECT_EVERY == 0:
                gc.collect(0)
        failure = None if failed is None else _failure(session, failed)
    return Report(
        schedules=schedules,
        steps=steps,
        exhausted=exhausted,
        outcomes=session.outcomes,
        unseen=frozenset(expect or ()) - frozenset(session.outcomes),
        failure=failure,
        elapsed_s=time.perf_counter() - began,
    )


def _failure(session: _Session, failed: Run) -> Failure:
    token = to_token(failed.deviations)
    kind = failed.kind or Kind.CHECK
    message = failed.message
    if kind is Kind.STUCK:
        return Failure(kind, message, token, (), failed.error)
    seen = session.outcomes.copy()
    again = session.run(Plan(failed.deviations), traced=True)
    session.outcomes = seen
    if again.kind is not kind:
        message += (
            "\nThe same schedule did not fail again in this way "
            f"({again.diverged or again.kind}): the body depends on something else, too"
        )
    return Failure(kind, message, token, again.trace, failed.error)


def explore(
    body: Body,
    *,
    strategy: Strategy | None = None,
    modules: Iterable[str | ModuleType] | None = None,
    expect: Collection[Hashable] | None = None,
    max_schedules: int = 1_000_000,
    max_steps: int = MAX_STEPS,
    timeout_s: float = TIMEOUT_S,
    stuck_s: float = _STUCK_S,
) -> Report:
    """Run the threads of a scenario under many schedules; none of them may fail.

    Args:
        body: called once per run; it makes fresh state, and returns the `Scenario` that uses this
            state. What it does must depend on nothing but the schedule.
        strategy: chooses the schedules; `Exhaustive` if None.
        modules: the names of the modules under test; a package stands for all of its modules.
            Threads are switched only at instructions of these modules; all other code counts as one
            step. None stands for `LIBRARY`. Generated loops are always included.
        expect: the allowed outcomes; any other is a failure.
        max_schedules: the most runs to make.
        max_steps: the number of steps after which a run counts as a livelock.
        timeout_s: the exploration stops after this number of seconds.
        stuck_s: the exploration fails if no run has finished for this number of seconds of real
            time.

    Returns:
        The report. `Report.exhausted` says whether all schedules were run.

    Raises:
        InterleavingFailure: at the first schedule that fails, with its token and its trace. A
            schedule fails if a thread or the check raises an error, if an outcome is not in
            `expect`, if no thread can continue, or if the threads do not come to an end.
        InterleavingUnsupportedError: before Python 3.12.
        NondeterminismError: if a run takes another course than an earlier run under the same
            schedule.
    """
    return search(
        body,
        strategy=strategy,
        modules=modules,
        expect=expect,
        max_schedules=max_schedules,
        max_steps=max_steps,
        timeout_s=timeout_s,
        stuck_s=stuck_s,
    ).assert_holds()


def explore_all(
    body: Body,
    *,
    strategy: Strategy | None = None,
    modules: Iterable[str | ModuleType] | None = None,
    expect: Collection[Hashable] | None = None,
    timeout_s: float = _ALL_TIMEOUT_S,
) -> Report:
    """Do the same as `explore`, for a scenario so small that all schedules can be run.

    With more than two preemptions (see `bound`), the time may not be enough for all schedules.

    Args:
        body: as for `explore`.
        strategy: as for `explore`.
        modules: as for `explore`.
        expect: as for `explore`; but each of these outcomes has to come.
        timeout_s: as for `explore`.

    Returns:
        The report.

    Raises:
        AssertionError: if not all schedules could be run; if there was only one, which proves
            nothing; if an expected outcome did not come; or as for `explore`.
        InterleavingUnsupportedError: before Python 3.12.
        NondeterminismError: if a run takes another course than an earlier run under the same
            schedule.
    """
    report = explore(body, strategy=strategy, modules=modules, expect=expect, timeout_s=timeout_s)
    if not report.exhausted and bound() <= _COMMON_BOUND:
        raise AssertionError(
            f"{report.schedules} schedules took {report.elapsed_s:.0f} s, and there are more; make "
            "the scenario or the modules under test smaller, or timeout_s larger"
        )
    if report.schedules < 2:
        raise AssertionError("there is only one schedule: no thread runs against another")
    if report.exhausted and report.unseen:
        raise AssertionError(f"no schedule has the outcomes {sorted(map(repr, report.unseen))}")
    return report


def replay(
    body: Body,
    token: str,
    *,
    modules: Iterable[str | ModuleType] | None = None,
    expect: Collection[Hashable] | None = None,
    max_steps: int = MAX_STEPS,
    stuck_s: float = _STUCK_S,
    out: TextIO | None = None,
) -> Report:
    """Run one schedule again, and record the steps of its threads.

    Args:
        body: the same as for `explore`, which has reported the token.
        token: the name of the schedule.
        modules: the same as for `explore`: with other modules, there are other steps.
        expect: as for `explore`.
        max_steps: as for `explore`.
        stuck_s: as for `explore`.
        out: the stream for the trace; standard output if None.

    Returns:
        A report of this single run.

    Raises:
        ValueError: if `token` is not a token, or was made by another version of Python.
        NondeterminismError: if the body has no such schedule.
        InterleavingUnsupportedError: before Python 3.12.
    """
    deviations = parse_token(token)
    began = time.perf_counter()
    with _session(body, modules, max_steps, stuck_s, expect) as session:
        plan = Plan(deviations)
        session.run(plan)  # finds out which steps conflict
        session.outcomes.clear()
        run = session.run(plan, traced=True)
    if run.diverged:
        raise NondeterminismError(f"{run.diverged}: the body has no run {token!r}")
    failure = None
    if run.kind is not None:
        failure = Failure(run.kind, run.message, token, run.trace, run.error)
    report = Report(
        schedules=1,
        steps=run.steps,
        exhausted=False,
        outcomes=session.outcomes,
        failure=failure,
        elapsed_s=time.perf_counter() - began,
    )
    text = render_trace(run.trace) + (
        f"\n{failure.kind.value}: {failure.message}" if failure else ""
    )
    (out or sys.stdout).write(text + "\n")
    return replace(report, unseen=frozenset(expect or ()) - frozenset(session.outcomes))
