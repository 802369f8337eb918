"""Flows whose items are on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar, final, overload

from typing_extensions import TypeIs

from flow_core.flow import AbsorbingSource, Flow
from flow_core.operator import Operator
from flow_core.protocols import Publisher, Subscriber
from flow_core.stages import Program, Stage
from flow_spark.jobs.lowering import Split, split
from flow_spark.jobs.origin import FlowOrigin, FrameOrigin, Origin
from flow_spark.jobs.publisher import JobSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkSource", "from_dataframe", "is_on_spark", "on_spark"]

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
        parts = self.split(stages)
        return JobSource[Any](self.origin, Program(parts.remote)), parts.local

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


def is_on_spark(source: object) -> TypeIs[SparkSource[Any]]:  # Any: items of any type
    """Whether the items of `source` are on a cluster."""
    return isinstance(source, SparkSource)


@overload
def from_dataframe(df: DataFrame, *, as_: type[R], ordered: bool = False) -> Flow[R]: ...


@overload
def from_dataframe(
    df: DataFrame, *, as_: str | None = None, ordered: bool = False
) -> Flow[Any]: ...  # Any: what the columns hold is not known to a type checker


def from_dataframe(
    df: DataFrame, *, as_: type[R] | str | None = None, ordered: bool = False
) -> Flow[R] | Flow[Any]:
    """The rows of a Spark DataFrame.

    The stages that follow run where the rows are, compiled into one function for all of them;
    behind the first boundary, the flow goes on in this process. Each subscriber starts a job.

    Args:
        df: any DataFrame, classic or of Spark Connect.
        as_: what an item is. None: the bare value of an only column, or a tuple of the columns.
            `tuple`, `dict` or ``pyspark.sql.Row``. A dataclass or NamedTuple, made of the columns
            that are named as its fields; the others are not even read. ``"scalar"``: the bare
            value, and an error if there are several columns.
        ordered: whether the order of `df` counts. It is then read as one partition, by one task,
            and operators that depend on the order (scan, skip, pairwise …) are allowed.

    Returns:
        A flow with back-pressure: while nothing is requested, the tasks block. Items of one
        partition come in order, the partitions take turns. Timestamps are aware, of the session's
        time zone. Thread: iterating reads in the thread that iterates; subscribers get their items
        from a thread of the subscription. Fusion: absorbs stages; SYNC towards executors.

    Raises:
        SchemaMismatchError: if the columns do not fit `as_`.
    """
    return Flow(SparkSource[Any](FrameOrigin(df, as_, ordered=ordered)))


def on_spark(session: SparkSession, *, partitions: int | None = None) -> Operator[T, Flow[T]]:
    """Move what comes before to Spark, so that the stages that follow run there.

    A range is made by Spark itself. Any other flow runs in this process when the job starts, and
    its items are sent: they must be finite in number and picklable.

    >>> import flow_core as flow
    >>> flow.range(10).pipe(on_spark(session)).map(lambda n: n * n).count()  # doctest: +SKIP

    Args:
        session: where to.
        partitions: into how many parts the items are divided; None leaves it to Spark. With 1 the
            order is kept, and operators that depend on it are allowed.

    Raises:
        ValueError: if `partitions` is less than 1.
    """
    if partitions is not None and partitions < 1:
        raise ValueError(f"partitions must be at least 1, not {partitions}")
    detail = "session" if partitions is None else f"session, partitions={partitions}"

    def apply(flow: Flow[T]) -> Flow[T]:
        if is_on_spark(flow.source):
            return flow  # its items are there already
        return Flow(SparkSource[T](FlowOrigin(flow, session, partitions)))

    return Operator("on_spark", apply, detail)
