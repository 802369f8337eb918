"""The results of partitions brought together by a key, so that combining them is divided, too."""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, final

from typing_extensions import override

from flow_core.stages import Program, Stage
from flow_spark.items.hashing import partition_values
from flow_spark.jobs.cluster import cluster_of
from flow_spark.jobs.frames import divided
from flow_spark.jobs.intake import Stop
from flow_spark.jobs.job import STAGES, PushedJob
from flow_spark.jobs.merging import MergeReader
from flow_spark.jobs.origin import Job, Opened, Origin
from flow_spark.jobs.runs import MOST_KEYS, RUNS_DDL, RunsTask
from flow_spark.jobs.task import Reader, RemoteProgram
from flow_spark.jobs.translations import bounded, translated
from flow_spark.jobs.unshuffled import FEW, FewFirst, Shared
from flow_spark.pickling.pickles import dumps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ShuffledOrigin"]

_MOST: Final = 4096
"""The number of buckets, at most."""


@final
class ShuffledOrigin(Origin):
    """The results of stages for other rows, in partitions where all results of a key have met.

    Spark sorts and spills the results of the partitions, which are combined as they come. So
    neither side of the shuffle holds a result for each key.

    Args:
        origin: the rows.
        program: the stages that run before. Their results for several parts of a partition may take
            the place of those for the whole.
        combine: the stages that combine the results. They may run over the results of some keys at
            a time.
        by: returns the key of a result.

    Raises:
        NotPicklableError: if the stages cannot be sent to the cluster.
    """

    __slots__ = ("_origin", "_pickled", "_program", "_stages", "combine")

    def __init__(
        self,
        origin: Origin,
        program: Program[Any, Any],
        combine: Program[Any, Any],
        by: Callable[[Any], object],
    ) -> None:
        self._origin: Final = origin
        self._stages: Final = program.stages
        self._program: Final = Program[Any, Any](
            tuple(bounded(stage, MOST_KEYS) for stage in program.stages)
        )
        self.combine: Final = combine
        self._pickled: Final = dumps((self._program, by), STAGES)

    @property
    @override
    def session(self) -> SparkSession:
        return self._origin.session

    @override
    def repeats(self) -> bool:
        return self._origin.repeats()

    @property
    @override
    def ordered(self) -> bool:
        return False

    @property
    @override
    def as_(self) -> object:
        return None

    @property
    @override
    def item_type(self) -> object:
        return None

    @property
    @override
    def ways_out(self) -> str:
        return "sort() puts what there is in order"

    @property
    @override
    def lazy(self) -> bool:
        return self._origin.lazy

    @contextmanager
    @override
    def opened(self, stop: Stop, *, resumed: bool = False) -> Generator[Opened | None, None, None]:
        with self._origin.opened(stop, resumed=resumed) as opened:
            yield None if opened is None else self.shuffled(opened)

    @override
    def kept(self) -> Opened:
        return self.shuffled(self._origin.kept())

    @override
    def job(self, program: RemoteProgram | None, name: str) -> Job:
        """Return a job that does without the shuffle if there are few results."""
        stages = _combining(program)
        if stages is None:
            return PushedJob(self, program, name)
        rows = Shared(functools.partial(self._origin.opened, resumed=True))
        few = Program[Any, Any](tuple(bounded(stage, FEW) for stage in self._stages))
        first = PushedJob(self._origin, few, name, rows.small)
        then = PushedJob(self, program, name, rows.changed(self.shuffled))
        combine = Program[Any, Any]((*self.combine.stages, *stages))
        return FewFirst(first, then, rows, combine.iterate, FEW)

    def shuffled(self, opened: Opened) -> Opened:
        """Return the results for `opened`, the rows."""
        buckets = partition_values(_partitions_behind_a_shuffle(self.session))[:_MOST]
        client = cluster_of(self.session).client()

        def task(reader: Reader, _branch: int, _branches: int) -> RunsTask:
            pickled = dumps(reader, "the class that rows are made into")
            return RunsTask(pickled, self._pickled, buckets, client)

        df = opened.mapped(task, RUNS_DDL)
        # Spark decides the number of partitions when it knows the size. A partition may get several
        # buckets: then the hashes of each are together.
        df = divided(df, "bucket", "low").drop("bucket")
        return Opened(df, MergeReader(self.combine, (self._program, *opened.readers)))

    def __repr__(self) -> str:
        return f"what a shuffle by key gives of {self._origin!r}"


def _combining(program: object) -> tuple[Stage[Any, Any], ...] | None:
    """Return the stages of `program` if they all combine items.

    Others may take long for each item: that is for the cluster.
    """
    if program is None:
        return ()
    stages = program.stages if isinstance(program, Program) else ()
    return stages if stages and all(map(translated, stages)) else None


def _partitions_behind_a_shuffle(session: SparkSession) -> int:
    """Return how many partitions Spark makes, before it joins small ones."""

    def setting(name: str, default: str) -> str:
        return str(session.conf.get(f"spark.sql.{name}", default)).lower()

    many = setting("shuffle.partitions", "200")
    joins = ("adaptive.enabled", "adaptive.coalescePartitions.enabled")
    if all(setting(name, "true") == "true" for name in joins):
        many = setting("adaptive.coalescePartitions.initialPartitionNum", many)
    return int(many)
