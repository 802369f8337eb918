"""`from_dataframe`: the rows of a DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from flow_core.flow import Flow
from flow_spark.jobs.origin import FrameOrigin
from flow_spark.jobs.run import explaining
from flow_spark.sources.spark_source import SparkSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["from_dataframe"]

R = TypeVar("R")


@overload
def from_dataframe(
    df: DataFrame,
    *,
    as_: type[R],
    ordered: bool = False,
    verify_schema: bool = True,
    narrow: bool = True,
) -> Flow[R]: ...


@overload
def from_dataframe(
    df: DataFrame,
    *,
    as_: str | None = None,
    ordered: bool = False,
    verify_schema: bool = True,
    narrow: bool = True,
) -> Flow[Any]: ...  # Any: a type checker does not know the columns


def from_dataframe(
    df: DataFrame,
    *,
    as_: type[R] | str | None = None,
    ordered: bool = False,
    verify_schema: bool = True,
    narrow: bool = True,
) -> Flow[R] | Flow[Any]:
    """The rows of a Spark DataFrame.

    The stages that follow run where the rows are, compiled into one function for all of them;
    behind the first boundary, the flow continues in this process. Each subscriber starts a job.

    Every row arrives once, even if executors are lost: a retried task reads its partition again,
    and leaves out as many items as have arrived. So the functions of the stages have to be
    deterministic, and so do the rows. Blocks of a shuffle (``repartition``, ``groupBy``, ``join``
    …) arrive in any order, so rows that come from a shuffle are sorted in each partition by a hash
    of their values, which takes time and sends no row before all rows of the partition are there;
    the order of ``df.sort(...)`` or ``df.sortWithinPartitions(...)`` is kept, and has to be
    complete: no two rows may be equal in it. A retry that finds other rows (random ones, or a JDBC
    source without an order) is detected by a checksum, and the flow fails with a
    `PartitionChangedError`. To avoid that, keep the rows by
    ``df.persist(StorageLevel.DISK_ONLY_2)``, ``df.checkpoint()`` or files.

    Args:
        df: any DataFrame, classic or of Spark Connect.
        as_: the type of an item. None: the bare value of an only column, or a tuple of the columns.
            `tuple` or `dict`. ``pyspark.sql.Row``, whose values have names: ``row.amount``. A
            dataclass or NamedTuple, made of the columns with the names of its fields; the others
            are not even read, and structs become records in the same way. ``"scalar"``: the bare
            value, and an error if there are several columns.
        ordered: whether the order of `df` matters. It is then read as one partition, by one task,
            and operators that depend on the order (scan, skip, pairwise …) are allowed.
        verify_schema: whether columns have to be of the types of the fields of `as_`. A float field
            takes integers, too, which become floats; an Enum field takes the values of the Enum.
            With False, records are made from any columns.
        narrow: whether columns that no stage can read are left out: Spark does not read them, and
            their values are neither converted nor checked for nulls. What the functions of the
            stages can read is found in their byte code, without calling them. It is certain for
            functions that only take fields out of their argument (``row.a``, ``row[0]``); a record
            that goes anywhere else, such as ``f(row)``, has all columns. Rows that the first
            filters certainly drop are left out as well, where these only compare values of columns
            with each other and with constants. The filters still run over all other rows, so that
            results and errors stay the same. The number of an item in a message counts the rows
            that were read.

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
        return Flow(
            SparkSource[Any](
                FrameOrigin(df, as_, ordered=ordered, verify=verify_schema, narrow=narrow)
            )
        )
