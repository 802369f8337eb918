"""Results that are iterated, and that this process would have to hold: it holds a bounded part."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, final

from typing_extensions import override

from flow_core.stages import DISTINCT, DISTINCT_BY, Program, Stage
from flow_spark.jobs.job import PushedJob
from flow_spark.jobs.lowering import Split
from flow_spark.jobs.one_place import gathered, partial
from flow_spark.jobs.origin import Job, Opened, Origin, Runs
from flow_spark.jobs.shuffling import ShuffledOrigin
from flow_spark.jobs.sorting import sorting
from flow_spark.jobs.stream_origin import StreamOrigin
from flow_spark.jobs.task import RemoteProgram
from flow_spark.jobs.translations import SORTS
from flow_spark.jobs.unshuffled import DistinctFirst, FewFirst, Shared

__all__ = ["iterated"]

_MOST_SORTED: Final = 2**20
"""The most items that are sorted in this process."""

_DISTINCTS: Final = frozenset({DISTINCT, DISTINCT_BY})

_AnyStage = Stage[Any, Any]  # Any: the types of neighbouring stages need only fit each other


def iterated(origin: Origin, parts: Split) -> tuple[Runs, tuple[_AnyStage, ...]]:
    """Return a source of jobs for the stages in each partition, and the stages that are left.

    Args:
        origin: the rows.
        parts: all stages.
    """
    last = parts.remote[-1].template if parts.remote else None
    if parts.combine and not isinstance(origin, StreamOrigin):
        first = Split(parts.remote, parts.local[:1], parts.turn, parts.combine, parts.by)
        if last in SORTS:
            return _SortedRuns(origin, first), parts.local[1:]
        if last in _DISTINCTS and parts.by is not None:
            return _DistinctRuns(origin, first, parts.by), parts.local[1:]
    return origin, parts.local


@final
@dataclass(frozen=True, slots=True)
class _SortedRuns(Runs):
    """Sorts the items of all partitions: here while they are few, else in a task.

    Attributes:
        origin: the rows.
        parts: the stages, up to the one that sorts.
    """

    origin: Origin
    parts: Split

    @override
    def job(self, program: RemoteProgram | None, name: str) -> Job:
        origin, parts = self.origin, self.parts
        rows = Shared(functools.partial(origin.opened, resumed=True))

        def in_one_partition(opened: Opened) -> Opened:
            found, _ = gathered(opened, parts, origin.session)
            return found

        first = PushedJob(origin, partial(parts), name, rows.opened)
        then = PushedJob(origin, sorting(parts.local), name, rows.changed(in_one_partition))
        here = Program[Any, Any](parts.local)
        return FewFirst(first, then, rows, here.iterate, _MOST_SORTED)


@final
@dataclass(frozen=True, slots=True)
class _DistinctRuns(Runs):
    """Gives one item for each key: found here as they come, and behind a shuffle if they are many.

    Attributes:
        origin: the rows.
        parts: the stages, up to the one that leaves items out.
        by: returns the key of an item.
    """

    origin: Origin
    parts: Split
    by: Callable[[Any], object]

    @override
    def job(self, program: RemoteProgram | None, name: str) -> Job:
        origin, remote = self.origin, Program[Any, Any](self.parts.remote)
        rows = Shared(functools.partial(origin.opened, resumed=True))
        shuffled = ShuffledOrigin(origin, remote, Program(self.parts.local), self.by)
        first = PushedJob(origin, remote, name, rows.opened)
        then = PushedJob(origin, None, name, rows.changed(shuffled.shuffled))
        return DistinctFirst(first, then, rows, self.by, origin.repeats)
