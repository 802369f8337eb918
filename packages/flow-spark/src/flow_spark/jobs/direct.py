"""Results that Spark computes by itself: a few rows, or their number. No Python runs there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast, final

from flow_core.stages import COUNT, TAKE, Program
from flow_spark.items.arrow import ArrowBatch, ArrowSchema, ArrowTable, pa
from flow_spark.items.schema import ItemSchema
from flow_spark.jobs.cluster import cluster_of
from flow_spark.jobs.frames import is_observed, size_of, table_of
from flow_spark.jobs.intake import Stop
from flow_spark.jobs.job import PushedJob
from flow_spark.jobs.run import StoppedError, run
from flow_spark.jobs.task import Reader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Direct", "DirectJob", "direct", "few_rows"]

_FEW: Final = 1_000
"""The most rows that may come at once, and be held in memory at once."""

_PLAIN: Final = frozenset(
    [
        "binary",
        "boolean",
        "byte",
        "date",
        "decimal",
        "double",
        "float",
        "integer",
        "long",
        "short",
        "string",
    ]
)
"""Types for which PySpark and pyarrow make the same values."""

_WIDTHS: Final = {"binary": 100, "string": 20, "decimal": 16}
"""The bytes that Spark expects of a value, about; 8 for a number."""


@final
@dataclass(frozen=True, slots=True)
class Direct:
    """A result that Spark computes without a Python task.

    Attributes:
        ask: asks Spark for the result, and waits for the answer.
        items: converts the answer to items; returns None if another job has to read the rows.
    """

    ask: Callable[[], Any]
    items: Callable[[Any], Iterable[Any] | None]


@final
class DirectJob:
    """A Spark job with few items, which come all at once.

    The job gets Spark's settings for jobs from the thread that creates this object.

    Args:
        session: the session that the job runs in.
        name: the job's name in Spark's tools.
        direct: the result to get.
        other: makes the job that reads the rows if `direct` has no items; its argument passes
            Spark's settings for jobs on.
    """

    __slots__ = ("_direct", "_name", "_other", "_session", "_stop", "_tell", "_then")

    def __init__(
        self,
        session: SparkSession,
        name: str,
        direct: Direct,
        other: Callable[[Callable[[], None]], PushedJob] | None = None,
    ) -> None:
        self._session: Final = session
        self._name: Final = name
        self._direct: Final = direct
        self._other: Final = other
        self._then: PushedJob | None = None
        self._stop: Final = Stop()
        cluster = cluster_of(session)
        with cluster.answering(f"the Spark job {name!r}"):
            self._tell: Final = cluster.handed_on()

    def __iter__(self) -> Iterator[Iterable[Any]]:  # Any: items of any type
        if self._stop():
            return
        ask, items = self._direct.ask, self._direct.items
        try:
            answer = run(self._session, self._name, ask, tell=self._tell, stop=self._stop)
        except StoppedError:
            return
        found = items(answer)
        if found is not None:
            yield found
        elif self._other is not None:
            self._then = self._other(self._tell)
            if not self._stop():
                yield from self._then

    def cancel(self) -> None:
        """End the job, and return at once. Any thread may call this, and more than once."""
        self._stop.set()
        then = self._then
        if then is not None:
            then.cancel()


def direct(df: DataFrame, reader: Reader, program: object, as_: object) -> Direct | None:
    """Return how to get the results of `program` for `df`, if Spark can compute them itself.

    Args:
        df: the rows.
        reader: converts the rows to items.
        program: the stages.
        as_: the type of an item; see `RowReader`.
    """
    if not isinstance(program, Program) or len(program.stages) != 1:
        return None
    (stage,) = program.stages
    if stage.template is TAKE:
        count = cast("int", stage.args[0])  # as declared
        if 0 < count <= _FEW and _is_plain(df):
            schema = ItemSchema.of(df.schema).arrow
            return Direct(lambda: df.take(count), lambda rows: reader(_batch(rows, schema)))
    # Only if converting the rows to items cannot raise an error: here they are not converted.
    if stage.template is COUNT and as_ in (None, tuple, dict):
        (first, *others) = df.schema
        if as_ is not None or others or not first.nullable:
            return Direct(df.count, lambda count: (count,))
    return None


def few_rows(df: DataFrame, reader: Reader) -> Direct | None:
    """Return how to get all rows, in any order, if they turn out to be few.

    None if that does not work for their types.

    Args:
        df: the rows.
        reader: makes items of the rows.
    """
    if not _is_plain(df):
        return None
    width = sum(_WIDTHS.get(field.dataType.typeName(), 8) for field in df.schema)

    def ask() -> ArrowTable | None:
        size = size_of(df)
        if size is None or size > _FEW * width or is_observed(df):
            return None
        return table_of(df.limit(_FEW + 1))  # in each partition at once, in contrast to take()

    def items(rows: ArrowTable | None) -> list[Any] | None:
        if rows is None or rows.num_rows > _FEW:
            return None
        try:
            return [item for batch in rows.to_batches() for item in reader(batch)]
        except Exception:  # the other job says at which row
            return None

    return Direct(ask, items)


def _is_plain(df: DataFrame) -> bool:
    return all(field.dataType.typeName() in _PLAIN for field in df.schema)


def _batch(rows: list[Any], schema: ArrowSchema) -> ArrowBatch:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in schema.names]
    return pa.record_batch(columns, schema=schema)
