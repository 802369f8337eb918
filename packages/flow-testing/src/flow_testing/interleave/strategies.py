"""Strategies: which schedules to run, and in which order."""

from __future__ import annotations

import os
import random
from abc import abstractmethod
from dataclasses import dataclass
from typing import Protocol, final

from typing_extensions import override

from flow_testing.interleave.report import Deviations
from flow_testing.interleave.scheduler import Plan, Run, Task

__all__ = ["BOUND_VARIABLE", "PCT", "Exhaustive", "Random", "Search", "Strategy", "bound"]

BOUND_VARIABLE = "FLOW_INTERLEAVE_BOUND"
"""The environment variable that says how many preemptions tests try."""


def bound(default: int = 2) -> int:
    """Return the number of preemptions to try: that of `BOUND_VARIABLE`, or else `default`.

    Raises:
        ValueError: if the variable is not an int of at least 0.
    """
    text = os.environ.get(BOUND_VARIABLE, "")
    if not text:
        return default
    if not text.isdecimal():
        raise ValueError(f"{BOUND_VARIABLE} must be an int of at least 0, not {text!r}")
    return int(text)


class Search(Protocol):
    """A search for a failing schedule: it makes plans, and learns from the runs."""

    @abstractmethod
    def next(self) -> Plan | None:
        """Return the next plan, or None when there are no more."""
        ...

    @abstractmethod
    def done(self, run: Run) -> None:
        """Learn from the run of the last plan."""
        ...

    @property
    @abstractmethod
    def exhausted(self) -> bool:
        """Return whether all schedules within the bounds were run."""
        ...


class Strategy(Protocol):
    """A way to search for a schedule that fails."""

    __slots__ = ()

    @abstractmethod
    def search(self) -> Search:
        """Begin a search."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Exhaustive(Strategy):
    """All schedules with at most a number of preemptions, those with the fewest first.

    A switch when the running thread blocks or ends costs nothing; a switch away from a thread that
    could continue is a preemption. Most bugs need one or two preemptions (iterative context
    bounding: Musuvathi and Qadeer, 2007).

    Args:
        preemptions: the most preemptions in one run; None takes the result of `bound`, which is 2
            by default.
        prune: whether to leave out schedules whose outcome is that of another schedule: switches at
            steps where threads do not conflict, and a preemption that the other threads do not use.
            Without pruning, there are many times more schedules.
    """

    preemptions: int | None = None
    prune: bool = True

    @override
    def search(self) -> Search:
        preemptions = bound() if self.preemptions is None else self.preemptions
        return _ExhaustiveSearch(preemptions, self.prune)


@final
class _ExhaustiveSearch:
    __slots__ = ("_bound", "_prune", "_waiting")

    def __init__(self, preemptions: int, prune: bool) -> None:
        self._bound = preemptions
        self._prune = prune
        self._waiting: list[list[tuple[Deviations, int, int]]] = []
        self._begin()

    def _begin(self) -> None:
        self._waiting = [[] for _ in range(self._bound + 1)]
        self._waiting[0].append(((), -1, -1))

    def next(self) -> Plan | None:
        for preemptions, waiting in enumerate(self._waiting):
            if waiting:
                before, step, thread = waiting.pop()
                deviations = before if step < 0 else (*before, (step, thread))
                budget = self._bound - preemptions
                return Plan(deviations, preemptions, budget, every_step=not self._prune)
        return None

    def done(self, run: Run) -> None:
        if run.conflicts_grew and self._prune:
            # Steps that looked private before were skipped: begin again.
            self._begin()
            return
        plan = run.plan
        deviations, preemptions = plan.deviations, plan.preemptions
        resumed = run.resumed if self._prune else None
        for step, others, preempts in run.choices:
            # Each schedule has one smallest set of deviations, so that it is run once.
            cost = preemptions + preempts
            if cost <= self._bound:
                if resumed is not None:
                    # Preempting one step later has the same effect, and another run does that.
                    if step >= resumed[1]:
                        break
                    others = [thread for thread in others if thread != resumed[0]]  # noqa: PLW2901
                waiting = self._waiting[cost]
                for thread in others:
                    waiting.append((deviations, step, thread))

    @property
    def exhausted(self) -> bool:
        return not any(self._waiting)


@final
@dataclass(frozen=True, slots=True)
class PCT(Strategy):
    """Random priorities of the threads, which change at a few random steps.

    If a bug needs `depth` steps in a certain order, each run finds it with a known probability,
    however many threads there are (Burckhardt, Kothari, Musuvathi and Nagarakatte, 2010).

    Args:
        depth: how many steps have to come in a certain order; at least 1.
        runs: how many runs to make.
        seed: the seed of the random numbers; the same seed gives the same runs.
    """

    depth: int = 3
    runs: int = 1000
    seed: int = 0

    @override
    def search(self) -> Search:
        return _PCTSearch(self)


class _Sampling:
    """A number of runs, each decided at random."""

    __slots__ = ("_left",)

    def __init__(self, runs: int) -> None:
        self._left = runs

    def next(self) -> Plan | None:
        if not self._left:
            return None
        self._left -= 1
        return Plan(chooser=self._choose)

    @abstractmethod
    def _choose(self, step: int, running: Task | None, able: list[Task]) -> Task: ...

    def done(self, run: Run) -> None:
        pass

    @property
    def exhausted(self) -> bool:
        return False


@final
class _PCTSearch(_Sampling):
    __slots__ = ("_changes", "_depth", "_priorities", "_random", "_steps")

    def __init__(self, strategy: PCT) -> None:
        super().__init__(strategy.runs)
        self._depth = strategy.depth
        self._random = random.Random(strategy.seed)
        self._steps = 1
        self._priorities: dict[int, float] = {}
        self._changes: list[int] = []

    def next(self) -> Plan | None:
        self._priorities = {}
        self._changes = sorted(self._random.randrange(self._steps) for _ in range(self._depth - 1))
        return super().next()

    def _choose(self, step: int, running: Task | None, able: list[Task]) -> Task:
        priorities = self._priorities
        for task in able:
            if task.index not in priorities:
                priorities[task.index] = 1 + self._random.random()
        while self._changes and self._changes[0] <= step:
            self._changes.pop(0)
            if running is not None:
                # Below all others, and below those that were lowered before.
                priorities[running.index] = min(0.0, *priorities.values()) - 1
        return max(able, key=lambda task: priorities[task.index])

    def done(self, run: Run) -> None:
        self._steps = max(self._steps, run.steps)


@final
@dataclass(frozen=True, slots=True)
class Random(Strategy):
    """Any of the threads that are ready, at each step.

    Args:
        runs: how many runs to make.
        seed: the seed of the random numbers; the same seed gives the same runs.
        switch: the probability of a switch when the running thread could continue, from 0 to 1.
    """

    runs: int = 1000
    seed: int = 0
    switch: float = 0.3

    @override
    def search(self) -> Search:
        return _RandomSearch(self)


@final
class _RandomSearch(_Sampling):
    __slots__ = ("_random", "_switch")

    def __init__(self, strategy: Random) -> None:
        super().__init__(strategy.runs)
        self._switch = strategy.switch
        self._random = random.Random(strategy.seed)

    def _choose(self, step: int, running: Task | None, able: list[Task]) -> Task:
        if running is not None and self._random.random() >= self._switch:
            return running
        return self._random.choice(able)
