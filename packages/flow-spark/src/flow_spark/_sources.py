"""Flows whose items are on a cluster."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, final, overload

from typing_extensions import TypeIs

from flow_core.errors import FlowError
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import Publisher, Subscriber
from flow_core.stages import Program, Stage
from flow_core.structure import AbsorbingSource, Place, source_of, stages_of
from flow_spark.errors import SessionConflictError, UnsupportedTypeError
from flow_spark.jobs.frames import plan_of
from flow_spark.jobs.job import lowered_all
from flow_spark.jobs.lowering import Split, effect_in, refuse_behind, split
from flow_spark.jobs.origin import FlowOrigin, FrameOrigin, Origin
from flow_spark.jobs.publisher import JobSource
from flow_spark.jobs.run import explaining
from flow_spark.jobs.shuffling import ShuffledOrigin
from flow_spark.jobs.stream_origin import StreamOrigin
from flow_spark.jobs.united import UnitedOrigin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkSource", "from_dataframe", "is_on_spark", "on_spark", "union"]

T = TypeVar("T")
R = TypeVar("R")


@final
class SparkSource(AbsorbingSource[T]):
    """Items on a cluster, with the stages behind them compiled into one ``mapInArrow``.

    Args:
        origin: the rows.
    """

    __slots__ = ("origin",)

    def __init__(self, origin: Origin) -> None:
        self.origin: Final = origin

    def absorb(
        self, stages: tuple[Stage[Any, Any], ...]
    ) -> tuple[Publisher[Any], tuple[Stage[Any, Any], ...]]:  # Any: as in AbsorbingSource
        """See `AbsorbingSource.absorb`."""
        origin, parts = self.lowered(stages, stays=False)
        return JobSource[Any](origin, Program(parts.remote)), parts.local

    def check(self, stages: tuple[Stage[Any, Any], ...], behind: str | None = None) -> None:
        """See `AbsorbingSource.check`: what depends on an order that there is not."""
        if self.origin.ordered:
            return
        if behind is None:
            self.split(stages)
        else:
            refuse_behind(stages, behind, self.origin.ways_out)

    def united(
        self, flows: tuple[Publisher[Any], ...]
    ) -> Flow[Any] | None:  # Any: as in AbsorbingSource
        """See `AbsorbingSource.united`: what `union` makes of them, if it can."""
        found = [flow for flow in flows if isinstance(flow, Flow)]
        if len(found) < len(flows) or not all(is_on_spark(source_of(flow)) for flow in found):
            return None
        try:
            return union(*found)
        except FlowError:
            return None

    def places(self, stages: tuple[Stage[Any, Any], ...]) -> tuple[Place, ...]:
        """See `AbsorbingSource.places`."""
        steps = self._steps(stages, stays=False)
        return tuple(
            Place(f"{_runner(origin, parts)} over {origin!r}", parts.remote)
            for origin, parts in steps
            if parts.remote
        )

    def plan(self, stages: tuple[Stage[Any, Any], ...]) -> str | None:
        """See `AbsorbingSource.plan`: Spark's physical plan."""
        origin, parts = self.lowered(stages, stays=False)
        if not origin.lazy:
            return "Spark plans it when the items are there: they are sent when it runs"
        opened = origin.kept()
        if _is_direct(origin, parts):
            return plan_of(opened.df).strip()
        return plan_of(lowered_all(opened, Program[Any, Any](parts.remote), None)).strip()

    def lowered(self, stages: tuple[Stage[Any, Any], ...], *, stays: bool) -> tuple[Origin, Split]:
        """The rows and what runs where, with the shuffles that bring items of a key together.

        Args:
            stages: what follows.
            stays: whether what comes of them stays on the cluster. If not, it is shuffled only
                where partitions have nothing to give before their end anyway: otherwise this
                process would wait for all of them.

        Raises:
            NotPicklableError: if the stages before a shuffle cannot be sent to the cluster.
            OrderedOperatorError: if a stage depends on an order that there is not.
        """
        return self._steps(stages, stays=stays)[-1]

    def _steps(
        self, stages: tuple[Stage[Any, Any], ...], *, stays: bool
    ) -> list[tuple[Origin, Split]]:
        """As `lowered`, with all that comes before each shuffle."""
        origin, parts = self.origin, self.split(stages)
        steps = [(origin, parts)]
        endless = isinstance(origin, StreamOrigin)
        while parts.by is not None and not endless and (stays or parts.waits):
            origin = ShuffledOrigin(origin, Program(parts.remote), parts.by)
            combine = parts.local[: parts.combine]
            rest = split(parts.local[parts.combine :], ordered=False, ways_out=origin.ways_out)
            parts = replace(rest, remote=combine + rest.remote)
            steps.append((origin, parts))
        return steps

    def split(self, stages: tuple[Stage[Any, Any], ...]) -> Split:
        """Which of `stages` run where the rows are.

        Raises:
            OrderedOperatorError: if one of them depends on an order that there is not.
        """
        return split(stages, ordered=self.origin.ordered, ways_out=self.origin.ways_out)

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """See `Publisher.subscribe`."""
        JobSource[T](self.origin, Program(())).subscribe(subscriber)

    def __repr__(self) -> str:
        return repr(self.origin)


def _is_direct(origin: Origin, parts: Split) -> bool:
    """Whether Spark gives what the stages give, by itself."""
    program = Program[Any, Any](parts.remote)
    return isinstance(origin, FrameOrigin) and origin.direct(program) is not None


def _runner(origin: Origin, parts: Split) -> str:
    return "Spark itself" if _is_direct(origin, parts) else "one mapInArrow"


def is_on_spark(source: object) -> TypeIs[SparkSource[Any]]:  # Any: items of any type
    """Whether the items of `source` are on a cluster."""
    return isinstance(source, SparkSource)


@overload
def from_dataframe(
    df: DataFrame, *, as_: type[R], ordered: bool = False, verify_schema: bool = True
) -> Flow[R]: ...


@overload
def from_dataframe(
    df: DataFrame, *, as_: str | None = None, ordered: bool = False, verify_schema: bool = True
) -> Flow[Any]: ...  # Any: what the columns hold is not known to a type checker


def from_dataframe(
    df: DataFrame,
    *,
    as_: type[R] | str | None = None,
    ordered: bool = False,
    verify_schema: bool = True,
) -> Flow[R] | Flow[Any]:
    """The rows of a Spark DataFrame.

    The stages that follow run where the rows are, compiled into one function for all of them;
    behind the first boundary, the flow goes on in this process. Each subscriber starts a job.

    Every row arrives once, also if executors are lost: a retried task reads its partition anew, and
    leaves out as many items as have arrived. So the functions of the stages have to be
    deterministic, and so do the rows. Blocks of a shuffle (``repartition``, ``groupBy``, ``join``
    …) arrive in any order, so rows behind one are sorted in each partition by a hash of their
    values, which takes time and gives none before all are there; what ``df.sort(...)`` or
    ``df.sortWithinPartitions(...)`` has put in order stays so, and has to tell all rows apart. A
    retry that finds other rows (random ones, or a JDBC source without an order) notices it by a
    checksum, and the flow fails with a `PartitionChangedError`. Where that must not be, let
    ``df.persist(StorageLevel.DISK_ONLY_2)``, ``df.checkpoint()`` or files keep them.

    Args:
        df: any DataFrame, classic or of Spark Connect.
        as_: what an item is. None: the bare value of an only column, or a tuple of the columns.
            `tuple` or `dict`. ``pyspark.sql.Row``, whose values have names: ``row.amount``. A
            dataclass or NamedTuple, made of the columns that are named as its fields; the others
            are not even read, and structs become records in the same way. ``"scalar"``: the bare
            value, and an error if there are several columns.
        ordered: whether the order of `df` counts. It is then read as one partition, by one task,
            and operators that depend on the order (scan, skip, pairwise …) are allowed.
        verify_schema: whether columns have to be of the types that the fields of `as_` say. A float
            takes integers, too, and gets floats; an Enum takes its values. False makes records of
            whatever is there.

    Returns:
        A flow with back-pressure: while nothing is requested, the tasks block. Items of one
        partition come in order, the partitions take turns. Timestamps are aware, of the session's
        time zone. Thread: iterating reads in the thread that iterates; subscribers get their items
        from a thread of the subscription. Fusion: absorbs stages; SYNC towards executors.

    Raises:
        SchemaMismatchError: if the columns do not fit `as_`.
        PartitionChangedError: when it runs, if a retried task finds other rows, or another order.
    """
    with explaining("from_dataframe()"):
        return Flow(SparkSource[Any](FrameOrigin(df, as_, ordered=ordered, verify=verify_schema)))


def on_spark(
    session: SparkSession,
    *,
    partitions: int | None = None,
    spool: str | os.PathLike[str] | None = None,
) -> Operator[T, Flow[T]]:
    """Move what comes before to Spark, so that the stages that follow run there.

    A range is made by Spark itself. Any other flow runs in this process when the job starts, and
    its items are sent: they must be finite in number and picklable. Memory is bounded: on ``local``
    masters they go through files; to other clusters 32 MiB of them can be sent, pickled, and more
    go through files in `spool`, or fail with a `SpoolError` that asks for it. A Spark Connect
    server on this machine needs no `spool` if its master is local and it sees the files here.

    >>> import flow_core as flow
    >>> flow.range(10).on_spark(session).map(lambda n: n * n).count()  # doctest: +SKIP

    Demand: everything is requested of the flow before it; the flow on Spark heeds demand as that of
    `from_dataframe` does, whose threads and fusion it has, too.

    Args:
        session: where to.
        partitions: into how many parts the items are divided; None leaves it to Spark. With 1 the
            order is kept, and operators that depend on it are allowed.
        spool: a folder that this process and all executors see under this path, or the address of
            one where Spark writes (``hdfs://…``, ``s3a://…``). The files are removed behind a job.

    Raises:
        ValueError: if `partitions` is less than 1.
        SpoolError: when it runs, if there are more items than can be sent.
    """
    if partitions is not None and partitions < 1:
        raise ValueError(f"partitions must be at least 1, not {partitions}")
    detail = "session" if partitions is None else f"session, partitions={partitions}"
    if spool is not None:
        detail += f", spool={os.fspath(spool)!r}"

    def apply(flow: Flow[T]) -> Flow[T]:
        if is_on_spark(source_of(flow)):
            return flow  # its items are there already
        return Flow(SparkSource[T](FlowOrigin(flow, session, partitions, spool)))

    return Operator("on_spark", apply, detail)


def union(*flows: Flow[T]) -> Flow[T]:
    """The items of several flows on Spark, as one flow on Spark, in no order.

    The stages of each run where its rows are, and so do those that follow, in one job; DataFrames
    that are read alike are united by Catalyst.

    >>> everything = union(from_dataframe(old), from_dataframe(new))  # doctest: +SKIP
    >>> everything.distinct().count().single()  # doctest: +SKIP

    Demand, thread and fusion are those of `from_dataframe`.

    Args:
        flows: at least one, whose items are on the same session.

    Raises:
        TypeError: if there is none, or one is no flow on Spark.
        OrderedOperatorError: if a stage of one depends on an order that there is not.
        SessionConflictError: if they are on different sessions.
        UnsupportedTypeError: if one is a stream, or has an effect that is meant for this process.
    """
    if not flows:
        raise TypeError("union() takes at least one flow")
    branches = tuple(map(_branch, flows))
    if any(origin.session is not branches[0][0].session for origin, _ in branches):
        raise SessionConflictError("union() takes flows of one session, and these are of several")
    return Flow(SparkSource[T](UnitedOrigin(branches)))


def _branch(flow: Flow[Any]) -> tuple[Origin, Split]:
    source = source_of(flow) if isinstance(flow, Flow) else None
    if not is_on_spark(source):
        raise TypeError(
            f"union() takes flows on Spark, not {flow!r}: move it there by .on_spark(session)"
            ", or use merge of flow-ops, which unites flows in this process"
        )
    if isinstance(source.origin, StreamOrigin):
        raise UnsupportedTypeError(
            "union() takes flows that end, and a stream does not: unite the DataFrames, "
            "from_stream(df.union(other))"
        )
    origin, parts = source.lowered(stages_of(flow), stays=True)
    effect = effect_in(parts)
    if effect is not None:
        raise UnsupportedTypeError(
            f"{effect!r} is meant for this process, and what is united stays on Spark: put it "
            "behind union()"
        )
    return origin, parts
