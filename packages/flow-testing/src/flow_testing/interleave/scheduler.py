"""Runs one thread at a time: real threads that take over at steps which other threads can see."""

from __future__ import annotations

import _thread
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread, get_ident
from types import FrameType, FunctionType, MemberDescriptorType, MethodType
from typing import Final, TypeAlias, final

from flow_testing.interleave.report import Deviations, Kind, TraceLine

__all__ = ["Choice", "Chooser", "Location", "Plan", "Point", "Run", "Scheduler", "Task", "Waiters"]

_HERE: Final = str(Path(__file__).parent)
_QUIET: Final = (_HERE, str(Path(_HERE).parent))
_STDLIB: Final = str(Path(traceback.__file__).parent)
_STDLIB_THREADING: Final = (sys.modules["threading"].__file__ or "", _HERE)

_PLAIN: Final = frozenset(
    {bool, int, float, str, bytes, tuple, frozenset, range, FunctionType, MethodType}
)

# The originals: the scheduler itself must not use its replacements.
_allocate: Final = _thread.allocate_lock


@final
class Location:
    """Something that threads share, found by a key, with the threads that read and write it.

    Args:
        name: the name in traces.
        container: whether this stands for all containers of a kind, such as all deques.
    """

    __slots__ = ("conflict", "container", "name", "readers", "writers")

    def __init__(self, name: str, *, container: bool = False) -> None:
        self.name = name
        self.container = container
        self.readers = 0
        self.writers = 0
        self.conflict = False
        """True if a thread writes it, and is not the only thread that uses it."""


@final
class Point:
    """An operation in the code that other threads can see.

    Args:
        operation: the name in traces.
        location: what the operation reads or writes.
        writes: whether the operation writes.
        operand: the path from a local variable to the possible container, if it is known.
    """

    __slots__ = ("location", "operand", "operation", "seen", "writes")

    def __init__(
        self, operation: str, location: Location, *, writes: bool, operand: tuple[str, ...] = ()
    ) -> None:
        self.operation = operation
        self.operand = operand
        self.location = location
        self.writes = writes
        self.seen = 0


def _is_container(operand: tuple[str, ...]) -> bool:
    frame = sys._getframe(3)  # of the code under test: see Tracer
    value: object = frame.f_locals.get(operand[0])
    for name in operand[1:]:
        field = getattr(type(value), name, None)
        if not isinstance(field, MemberDescriptorType):
            return True  # not known: getting it could run code
        try:
            value = field.__get__(value)
        except AttributeError:
            return True
    return not (value is None or type(value) in _PLAIN)


@final
class Task:
    """A thread of a scenario.

    Args:
        index: the number of the thread, from 0.
        fn: the function that the thread runs.
        name: the name of the thread in reports.
        daemon: whether the run may end before this thread does.
    """

    __slots__ = (
        "daemon",
        "deadline",
        "error",
        "fn",
        "index",
        "joiners",
        "name",
        "over",
        "waits",
        "wakeable",
        "worker",
    )

    def __init__(self, index: int, fn: Callable[[], object], name: str, *, daemon: bool) -> None:
        self.index = index
        self.fn = fn
        self.name = name
        self.daemon = daemon
        self.error: BaseException | None = None
        self.over = False
        self.waits = ""
        self.wakeable = False
        self.deadline: float | None = None
        self.joiners: Waiters = []
        self.worker: _Worker | None = None


Waiters: TypeAlias = list[Task]
"""The threads that wait for something, in the order in which they came."""

Chooser: TypeAlias = Callable[[int, Task | None, list[Task]], Task]
"""Chooses the next thread. It gets the step, the running thread (None if it cannot continue), and
the threads that are ready."""


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a run: departures from the default, or a function that chooses at each step.

    Args:
        deviations: the departures from the default. By default, the running thread continues; if it
            cannot, the first thread that can.
        preemptions: how many of the deviations stop a thread that could continue.
        budget: how many more preemptions may follow; alternatives that cost more are not recorded.
        chooser: used instead of the default after the last deviation.
        every_step: whether to record also the steps at which a switch cannot make a difference.
    """

    deviations: Deviations = ()
    preemptions: int = 0
    budget: int = 0
    chooser: Chooser | None = None
    every_step: bool = False


Choice: TypeAlias = tuple[int, list[int], bool]
"""A step; the threads that could have continued there; and whether that is a preemption."""


@final
@dataclass(slots=True)
class Run:
    """The course that a run has taken.

    Args:
        plan: the plan of the run.
        deviations: where the run has departed from the default.
        choices: the threads that were ready, at each step where there was a choice.
        steps: how many steps the run had.
        kind: how the run failed; None if it did not.
        message: describes the failure, for people.
        error: the error that was raised; None if there was none.
        diverged: why the run did not follow its plan; empty if it did.
        conflicts_grew: whether the run has shown a conflict of operations that was not known yet.
        resumed: see below.
        trace: the steps of the run, if they were requested.
    """

    plan: Plan
    deviations: Deviations = ()
    choices: list[Choice] = field(default_factory=list[Choice])
    steps: int = 0
    kind: Kind | None = None
    message: str = ""
    error: BaseException | None = None
    diverged: str = ""
    conflicts_grew: bool = False
    resumed: tuple[int, int] | None = None
    """The preempted thread, and the step at which it continued. Set if the steps that the others
    took in between would have had the same effect one step later."""
    trace: tuple[TraceLine, ...] = ()


class _Abandon(BaseException):
    """Unwinds the thread of a run that has ended."""


@final
class _Worker:
    """A real thread that runs one thread of a scenario after the other."""

    __slots__ = ("baton", "ident", "scheduler", "task")

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.baton = _allocate()
        self.baton.acquire()
        self.task: Task | None = None
        self.ident = 0
        # During its construction, threads and events are replaced by those of a scenario.
        scheduler.making = True
        try:
            thread = Thread(target=self._work, name="flow-interleave", daemon=True)
            thread.start()
        finally:
            scheduler.making = False
        self.ident = thread.ident or 0

    def _work(self) -> None:
        scheduler = self.scheduler
        while True:
            self.baton.acquire()
            task = self.task
            if task is None:
                return
            if not scheduler.aborting:
                try:
                    task.fn()
                except _Abandon:
                    pass
                except BaseException as error:
                    task.error = error
            self.task = None
            scheduler.finished(task)
            del task


@final
class Scheduler:
    """Runs scenarios, one thread at a time. It serves one exploration, and one thread uses it.

    Args:
        max_steps: the number of steps after which a run counts as a livelock.
        stuck_s: the number of seconds of real time after which a run counts as stuck.
    """

    def __init__(self, max_steps: int, stuck_s: float) -> None:
        self.max_steps = max_steps
        self.stuck_s = stuck_s
        self.main = get_ident()
        self.ident = 0
        """The real thread that may run now; 0 between runs."""
        self.aborting = False
        self.making = False
        """True while a real thread is being made, during which nothing is replaced."""
        self.clock = 0.0
        """The virtual time in seconds; it passes only when no thread can run."""
        self._idle: list[_Worker] = []
        self._done = _allocate()
        self._done.acquire()
        self._locations: dict[object, Location] = {}
        self._containers = Location("containers", container=True)
        self._dynamic: dict[tuple[str, Location], Point] = {}
        self._sites: dict[tuple[str, str, int], tuple[Point, Point] | None] = {}
        self._free = Point("step()", Location("step"), writes=True)
        self._free.location.conflict = True
        self._tracing = False
        self._pending: list[Task] = []
        self.tasks: list[Task] = []
        self._reset(Plan())

    def _reset(self, plan: Plan) -> None:
        self.aborting = False
        self.clock = 0.0
        self.tasks = []
        self._runnable: list[Task] = []
        self._current: Task | None = None
        self._bit = 0
        self._steps = 0
        self._limit = self.max_steps
        self._plan = plan
        self._run = Run(plan)
        deviations = plan.deviations
        self._next = 0
        self._at = deviations[0][0] if deviations else -1
        self._last = deviations[-1][0] if deviations else -1
        self._record_preemptions = plan.budget > 0
        self._every_step = plan.every_step
        self._gap: Point | None = None
        self._gap_of: Task | None = None
        self._choices: list[Choice] = []
        self._made: list[tuple[int, int]] = []
        self._trace: list[TraceLine] = []

    # -- places that threads share

    def location(self, key: object, name: str, *, container: bool = False) -> Location:
        """Return the location with this `key`, which is the same throughout an exploration."""
        found = self._locations.get(key)
        if found is None:
            found = self._locations[key] = Location(name, container=container)
        return found

    @property
    def containers(self) -> Location:
        """Return the location that stands for any container, for instructions on an unknown one."""
        return self._containers

    def _accessed(self, point: Point, bit: int) -> None:
        """Note the first access of a thread at a point; accesses by one thread do not conflict."""
        point.seen |= bit
        location = point.location
        if point.writes:
            location.writers |= bit
        else:
            location.readers |= bit
        if not location.container:
            self._compare(location, location.readers, location.writers)
            return
        # An instruction may work on any kind of container: it conflicts with all of them.
        whole = self._containers
        readers = writers = 0
        for kind in self._locations.values():
            if kind.container:
                readers |= kind.readers
                writers |= kind.writers
                self._compare(kind, kind.readers | whole.readers, kind.writers | whole.writers)
        self._compare(whole, readers | whole.readers, writers | whole.writers)

    def _compare(self, location: Location, readers: int, writers: int) -> None:
        everybody = readers | writers
        if not location.conflict and writers and everybody & (everybody - 1):
            location.conflict = True
            self._run.conflicts_grew = True

    def dynamic(self, operation: str, location: Location, *, writes: bool) -> Point:
        """Return the point for an operation that becomes known only when it happens."""
        key = (operation, location)
        point = self._dynamic.get(key)
        if point is None:
            point = self._dynamic[key] = Point(operation, location, writes=writes)
        return point

    def site(self, kind: str) -> tuple[Point, Point] | None:
        """Return the points for a new primitive; the place of its construction identifies it.

        Returns:
            One point for reads and one for changes. None if the testing kit or the standard library
            makes the primitive: their own accesses are not decision points; only blocking on the
            primitive is one.
        """
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename.startswith(_HERE):
            frame = frame.f_back
        if frame is None:
            return None
        file, line = frame.f_code.co_filename, frame.f_lineno
        key = (kind, file, line)
        if key not in self._sites:
            standard = file.startswith(_STDLIB) and "site-packages" not in file
            if standard or file.startswith(_QUIET):
                self._sites[key] = None
            else:
                location = self.location(key, f"{kind} of {Path(file).name}:{line}")
                self._sites[key] = (
                    Point(f"look at {location.name}", location, writes=False),
                    Point(f"change {location.name}", location, writes=True),
                )
        return self._sites[key]

    # -- a run

    def run(self, plan: Plan, body: Callable[[Scheduler], None], *, traced: bool = False) -> Run:
        """Run the tasks that `body` spawns, by `plan`; return when all threads have ended."""
        self._reset(plan)
        self._tracing = traced
        body(self)
        first = self._go_on_with()
        if first is not None:
            self._give(first)
            if not self._done.acquire(timeout=self.stuck_s):
                self._stuck()
        self.ident = 0
        self._current = None
        run = self._run
        if run.kind is None and not run.diverged and self._next < len(plan.deviations):
            run.diverged = f"it ended before step {plan.deviations[self._next][0]}"
        run.steps = self._steps
        run.choices = self._choices
        run.deviations = tuple(self._made)
        run.trace = tuple(self._trace)
        self._tracing = False
        return run

    def spawn(self, fn: Callable[[], object], name: str = "", *, daemon: bool = False) -> Task:
        """Add a thread to the run; it can run from now on."""
        index = len(self.tasks)
        task = Task(index, fn, name or f"T{index}", daemon=daemon)
        task.worker = worker = self._idle.pop() if self._idle else _Worker(self)
        worker.task = task
        self.tasks.append(task)
        self._runnable.append(task)
        return task

    def close(self) -> None:
        """End the real threads."""
        for worker in self._idle:
            worker.task = None
            worker.baton.release()
        self._idle.clear()

    def managed(self) -> bool:
        """Return whether the calling thread belongs to a run, or is the explorer's."""
        return not self.making and get_ident() in (self.ident, self.main)

    @property
    def task(self) -> Task | None:
        """Return the thread of the scenario that calls this; None if it belongs to no run."""
        return self._current if get_ident() == self.ident else None

    # -- steps

    def point(self, point: Point) -> None:
        """Take a step of the running thread, right before the operation of `point`."""
        step = self._steps
        self._steps = step + 1
        if step >= self._limit:
            self._too_long()
        if not point.seen & self._bit and not self.aborting:
            self._accessed(point, self._bit)
        gap = self._gap
        if gap is not None and (point.writes or gap.writes) and self._gap_of is not self._current:
            here, there = point.location, gap.location
            if here is there or (
                here.container
                and there.container
                and (here is self._containers or there is self._containers)
            ):
                self._gap = None
        if step == self._at:
            self._deviate(step, point)
        elif step > self._last and (point.location.conflict or self._every_step):
            runnable = self._runnable
            if (
                len(runnable) > 1
                and not self.aborting
                and (self._every_step or not point.operand or _is_container(point.operand))
            ):
                task = self._current
                chooser = self._plan.chooser
                if chooser is not None:
                    chosen = chooser(step, task, runnable)
                    if chosen is not task:
                        self._made.append((step, chosen.index))
                        self._switch(chosen, step)
                elif self._record_preemptions:
                    self._choices.append((step, [t.index for t in runnable if t is not task], True))
        if self._tracing:
            self._note(step, point.operation)

    def free_point(self) -> None:
        """Take a step that always counts as one that other threads can see."""
        if get_ident() == self.ident:
            self.point(self._free)

    def _deviate(self, step: int, point: Point) -> None:
        chosen = self._planned(step)
        if chosen is None:
            raise _Abandon
        task = self._current
        if chosen is task:
            self._run.diverged = f"at step {step}, {chosen.name} should take over, and runs already"
        else:
            if step == self._last and point is not self._free:
                self._gap, self._gap_of = point, task
            self._switch(chosen, step)
            if self._gap_of is task and task is not None:
                if self._gap is not None:
                    self._run.resumed = (task.index, self._steps)
                self._gap = self._gap_of = None

    def _planned(self, step: int) -> Task | None:
        deviations = self._plan.deviations
        index = deviations[self._next][1]
        self._next += 1
        self._at = deviations[self._next][0] if self._next < len(deviations) else -1
        for task in self._runnable:
            if task.index == index:
                self._made.append((step, index))
                return task
        self._run.diverged = f"at step {step}, thread {index} should continue, and cannot"
        self._abort()
        return None

    def _go_on_with(self) -> Task | None:
        """Return the next thread when the running one cannot continue; None if no thread can."""
        runnable = self._runnable
        if not runnable and not self._let_time_pass():
            return None
        runnable = self._runnable
        step = self._steps
        self._steps = step + 1
        if step >= self._limit:
            self._too_long()
        if step == self._at:
            return self._planned(step) or runnable[0]
        if len(runnable) > 1 and step > self._last:
            if self._plan.chooser is not None:
                chosen = self._plan.chooser(step, None, runnable)
                if chosen is not runnable[0]:
                    self._made.append((step, chosen.index))
                return chosen
            self._choices.append((step, [t.index for t in runnable[1:]], False))
        return runnable[0]

    def _let_time_pass(self) -> bool:
        """Let time pass up to the earliest time for which a thread waits, and wake those threads.

        Return False if no thread waits for a time that matters.
        """
        waiting = [task for task in self.tasks if not task.over and task.deadline is not None]
        if not waiting or all(task.daemon or task.over for task in self.tasks):
            return False
        earliest = min(task.deadline or 0.0 for task in waiting)
        self.clock = max(self.clock, earliest)
        for task in waiting:
            if (task.deadline or 0.0) <= earliest:
                self._wake(task)
        return True

    def _switch(self, chosen: Task, step: int) -> None:
        task = self._current
        if task is None or task.worker is None:
            return
        if self._tracing:
            self._mark(step, f"{chosen.name} takes over from {task.name}")
        self._give(chosen)
        task.worker.baton.acquire()
        if self.aborting:
            raise _Abandon

    def _give(self, task: Task) -> None:
        worker = task.worker
        if worker is None:
            return
        self._current = task
        self._bit = 1 << task.index
        self.ident = worker.ident
        worker.baton.release()

    # -- blocking

    def block(
        self, waiters: Waiters, what: str, timeout_s: float | None = None, *, wakeable: bool = False
    ) -> bool:
        """Wait until another thread wakes those in `waiters`, or for `timeout_s` virtual seconds.

        Args:
            waiters: the list to wait in.
            what: what the thread waits for, for messages.
            timeout_s: how long to wait, in virtual seconds; None for ever.
            wakeable: whether the thread waits for a notification, which can get lost, and not for a
                release.

        Returns:
            False if the time was up first.
        """
        task = self.task
        if self.aborting:
            raise _Abandon
        if task is None:
            # The body or the check: no other thread runs, so no thread can wake it.
            if timeout_s is not None:
                self.clock += timeout_s
                return False
            raise RuntimeError(f"outside of the scenario's threads, {what} would wait for ever")
        task.waits = what
        task.wakeable = wakeable
        task.deadline = None if timeout_s is None else self.clock + max(timeout_s, 0.0)
        waiters.append(task)
        self._runnable.remove(task)
        if self._tracing:
            self._note(self._steps, f"waits: {what}")
        chosen = self._go_on_with()
        if chosen is None:
            self._nobody_can_run()
            raise _Abandon
        if chosen is not task:
            self._switch(chosen, self._steps - 1)
        elif self.aborting:
            raise _Abandon
        timed_out = task in waiters
        if timed_out:
            waiters.remove(task)
        task.deadline = None
        task.waits = ""
        return not timed_out

    def wake_all(self, waiters: Waiters) -> None:
        """Wake all threads in `waiters`."""
        while waiters:
            self._wake(waiters.pop(0))

    def _wake(self, task: Task) -> None:
        runnable = self._runnable
        if task.over or task in runnable:
            return
        index = task.index
        position = 0
        while position < len(runnable) and runnable[position].index < index:
            position += 1
        runnable.insert(position, task)

    def finished(self, task: Task) -> None:
        """End the calling thread: this is its last step."""
        task.over = True
        worker, task.worker = task.worker, None
        if task in self._runnable:
            self._runnable.remove(task)
        error = task.error
        if error is not None and not self.aborting:
            self._failed(Kind.RAISED, f"{task.name} raised {type(error).__name__}: {error}", error)
        self.wake_all(task.joiners)
        chosen: Task | None = None
        if not self.aborting:
            try:
                chosen = self._go_on_with()
            except _Abandon:
                pass  # too many steps
            if self.aborting:
                pass
            elif chosen is None and any(not other.over for other in self.tasks):
                self._nobody_can_run()
            elif chosen is not None and self._tracing:
                self._mark(self._steps - 1, f"{task.name} has ended, {chosen.name} continues")
        if self.aborting:
            chosen = next((other for other in self.tasks if not other.over), None)
        if worker is not None:
            self._idle.append(worker)
        if chosen is None:
            self.ident = 0
            self._done.release()
        else:
            self._give(chosen)

    # -- ends

    def _nobody_can_run(self) -> None:
        blocked = [task for task in self.tasks if not task.over and not task.daemon]
        if blocked:
            lost = any(task.wakeable for task in blocked)
            waits = ", ".join(f"{task.name} waits for {task.waits}" for task in blocked)
            self._failed(
                Kind.LOST_WAKE_UP if lost else Kind.DEADLOCK,
                f"no thread can continue: {waits}\n{self._stacks()}",
            )
        else:
            self._abort()  # daemons that wait for ever

    def _too_long(self) -> None:
        if self.aborting:
            # Some code may catch the error that unwinds the threads.
            self._limit = self._steps + 1000
            raise _Abandon
        self._failed(Kind.LIVELOCK, f"no end after {self.max_steps} steps\n{self._stacks()}")
        raise _Abandon

    def _failed(self, kind: Kind, message: str, error: BaseException | None = None) -> None:
        run = self._run
        if run.kind is None:
            run.kind, run.message, run.error = kind, message, error
        self._abort()

    def _abort(self) -> None:
        """Unwind all threads; what they do meanwhile is not part of the run."""
        self.aborting = True
        self._at = -1
        self._limit = self._steps + 1000

    def _stuck(self) -> None:
        stacks = self._stacks()
        self._failed(
            Kind.STUCK,
            f"no progress for {self.stuck_s} s: a lock that was made before the exploration, or a "
            f"call that blocks by itself\n{stacks}",
        )
        # Its threads cannot be recovered. They are left alone, and new ones are made.
        self._idle = []
        self._done = _allocate()
        self._done.acquire()

    def _stacks(self) -> str:
        frames = sys._current_frames()
        parts: list[str] = []
        for task in self.tasks:
            worker = task.worker
            frame = None if worker is None or task.over else frames.get(worker.ident)
            if frame is None:
                continue
            found = traceback.extract_stack(frame)
            kept = [entry for entry in found if not entry.filename.startswith(_HERE)]
            stack = traceback.format_list(kept)
            doing = f"waits for {task.waits}" if task.waits else "can run"
            parts.append(f"{task.name} ({doing}):\n" + ("".join(stack) or "  has not begun\n"))
        return "".join(parts).rstrip()

    # -- traces

    def _note(self, step: int, operation: str) -> None:
        task = self._current
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename.startswith(_STDLIB_THREADING):
            frame = frame.f_back
        if frame is None or task is None:
            return
        import linecache

        file, line = frame.f_code.co_filename, frame.f_lineno
        source = linecache.getline(file, line).strip()
        place = file if file.startswith("<") else Path(file).name
        self._trace.append(TraceLine(step, task.name, place, line, source, operation))

    def _mark(self, step: int, what: str) -> None:
        self._trace.append(TraceLine(step, "", "", 0, "", what))
