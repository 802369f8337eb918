"""The first rows, or how many there are: Spark computes them by itself, and they are the same."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import flow_core as flow
from flow_core.errors import NoneItemError
from flow_core.flow import Flow
from flow_spark import from_dataframe
from flow_spark.jobs import origin
from flow_spark.jobs.direct import DirectJob
from flow_spark.jobs.job import PushedJob
from flow_testing import TestSubscriber

from .infrastructure.processes import wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

TIMEOUT_S = 30.0

PLAIN = """
    select * from values
    (1Y, 2S, 3, 4L, 1.5f, 2.5d, true, 'a', X'01', date'2024-02-29', 1.25bd, null),
    (null, null, null, null, float('nan'), null, null, '', null, null, null, null),
    (-1Y, -2S, -3, -4L, float('-inf'), 0d, false, 'ü', X'', date'1970-01-01', -0.01bd, null)
"""


class Pair(NamedTuple):
    id: int
    text: str


@dataclass
class Positive:
    id: int

    def __post_init__(self) -> None:
        if not self.id:
            raise ValueError("not positive")


@contextmanager
def pushing(monkeypatch: pytest.MonkeyPatch, *, allowed: bool) -> Iterator[None]:
    """Forbid one of the two ways."""
    with monkeypatch.context() as patch:
        if allowed:
            patch.setattr(origin, "direct", lambda *_: None)
            patch.setattr(origin, "few_rows", lambda *_: None)
        else:
            patch.setattr(PushedJob, "_start", None)
        yield


def both(monkeypatch: pytest.MonkeyPatch, make: Callable[[], Flow[Any]]) -> list[Any]:
    """The result of Spark itself, which is that of tasks."""
    with pushing(monkeypatch, allowed=True):
        pushed = [*make()]
    with pushing(monkeypatch, allowed=False):
        found = [*make()]
    assert repr(found) == repr(pushed)
    assert [type(item) for item in found] == [type(item) for item in pushed]
    return found


@pytest.mark.parametrize("as_", [None, tuple, dict])
def test_rows_of_plain_types_are_the_same(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, as_: Any
) -> None:
    rows = spark.sql(PLAIN).drop("col12").coalesce(1)

    found = both(monkeypatch, lambda: from_dataframe(rows, as_=as_).take(3))

    values = found[0].values() if as_ is dict else found[0]
    day, exact = datetime.date(2024, 2, 29), decimal.Decimal("1.25")
    assert [*values] == [1, 2, 3, 4, 1.5, 2.5, True, "a", b"\1", day, exact]


def test_rows_become_what_the_user_wants(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import Row

    rows = spark.range(3).selectExpr("id", "string(id) as text").coalesce(1)

    assert both(monkeypatch, lambda: from_dataframe(rows, as_=Pair).take(2))[1] == Pair(1, "1")
    assert both(monkeypatch, lambda: from_dataframe(rows, as_=Row).take(1)) == [Row(id=0, text="0")]
    one = rows.select("id")
    assert both(monkeypatch, lambda: from_dataframe(one, as_="scalar").take(1)) == [0]
    assert both(monkeypatch, lambda: from_dataframe(one).take(2)) == [0, 1]


def test_no_rows_give_nothing_and_are_counted(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    none = spark.range(0)

    assert both(monkeypatch, lambda: from_dataframe(none).take(2)) == []
    assert both(monkeypatch, lambda: from_dataframe(none).count()) == [0]


def test_the_first_of_sorted_rows_come_in_their_order(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = spark.range(0, 1_000, 1, 8).selectExpr("(id * 7919) % 1000 as n").sort("n")

    found = both(monkeypatch, lambda: from_dataframe(rows, ordered=True).take(5))

    assert found == [0, 1, 2, 3, 4]


def test_rows_are_counted_by_spark(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = spark.range(0, 5_000, 1, 20)

    assert both(monkeypatch, lambda: from_dataframe(rows).count()) == [5_000]
    nulls = spark.sql(PLAIN)
    assert both(monkeypatch, lambda: from_dataframe(nulls.drop("col12")).count()) == [3]


@pytest.mark.parametrize(
    "make",
    [
        lambda rows: from_dataframe(rows.selectExpr("timestamp_seconds(id)")).take(2),
        lambda rows: from_dataframe(rows.selectExpr("array(id)")).take(2),
        lambda rows: from_dataframe(rows).take(1_001),
        lambda rows: from_dataframe(rows).map(abs).take(2),
        lambda rows: from_dataframe(rows).filter(bool).count(),
        lambda rows: from_dataframe(rows.sort("id"), ordered=True),
        lambda rows: from_dataframe(rows.selectExpr("array(id)")),
    ],
)
def test_all_else_is_pushed_by_tasks(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, make: Callable[[DataFrame], Flow[Any]]
) -> None:
    monkeypatch.setattr(DirectJob, "__iter__", None)

    assert make(spark.range(20)).to_list().first()


def test_a_row_that_is_not_an_item_is_an_error_as_before(spark: SparkSession) -> None:
    nulls = spark.sql("select * from values (1), (null) as t(n)").coalesce(1)

    with pytest.raises(NoneItemError, match="holds 1 nulls"):
        from_dataframe(nulls).count().first()
    with pytest.raises(NoneItemError, match="holds 1 nulls"):
        from_dataframe(nulls).take(2).to_list().first()
    with pytest.raises(ValueError, match="not positive"):
        from_dataframe(spark.range(1), as_=Positive).count().first()


def test_an_error_of_spark_names_the_job(spark: SparkSession) -> None:
    from flow_spark.errors import SparkJobError

    rows = spark.range(1).selectExpr("raise_error('no luck') as n").selectExpr("string(n) as n")

    with pytest.raises(SparkJobError, match=r"the Spark job 'flow \| take' failed: .*no luck"):
        from_dataframe(rows).first()


@pytest.mark.parametrize("count", [0, 1, 1_000])
@pytest.mark.parametrize("as_", [None, tuple, dict, Pair])
def test_few_rows_come_from_spark_itself(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, as_: Any, count: int
) -> None:
    rows = spark.range(0, count, 1, 3).selectExpr("id", "string(id) as text")

    found = both(monkeypatch, lambda: from_dataframe(rows, as_=as_).pipe(in_order))

    assert len(found) == count


def in_order(rows: Flow[Any]) -> Flow[Any]:
    return flow.from_iterable(sorted(rows, key=repr))


@pytest.mark.parametrize(
    "rows",
    [
        lambda spark: spark.range(1_001),
        lambda spark: spark.range(100_000),
        lambda spark: spark.range(2).selectExpr("explode(sequence(1, 1000))"),
    ],
    ids=["one too many", "many as Spark expects", "many that Spark does not expect"],
)
def test_many_rows_are_pushed_by_tasks(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    rows: Callable[[SparkSession], DataFrame],
) -> None:
    df = rows(spark)
    pushed: list[object] = []
    start = PushedJob._start
    monkeypatch.setattr(PushedJob, "_start", lambda job: pushed.append(job) or start(job))

    assert sorted(from_dataframe(df)) == sorted(row[0] for row in df.collect())
    assert len(pushed) == 1


def test_few_rows_end_where_the_iteration_is_left(spark: SparkSession) -> None:
    items = iter(from_dataframe(spark.range(10)))

    assert next(items) in range(10)
    items.close()  # type: ignore[attr-defined]  # as a generator
    assert next(items, None) in {None, *range(10)}


def test_one_of_few_rows_that_is_no_item_is_an_error_as_of_many(spark: SparkSession) -> None:
    nulls = spark.sql("select * from values (1), (null) as t(n)").coalesce(1)

    with pytest.raises(NoneItemError, match="holds 1 nulls"):
        list(from_dataframe(nulls))
    with pytest.raises(ValueError, match="not positive"):
        list(from_dataframe(spark.range(0, 3, 1, 1), as_=Positive))


def test_an_observation_of_few_rows_is_that_of_all(spark: SparkSession) -> None:
    from pyspark.sql import Observation
    from pyspark.sql import functions as sql

    seen = Observation()
    df = spark.range(0, 1_500, 1, 2).observe(seen, sql.count("*").alias("rows"))

    assert len(list(from_dataframe(df))) == 1_500
    assert seen.get == {"rows": 1_500}


@pytest.mark.essential
def test_a_cancel_ends_the_job_of_spark(spark: SparkSession) -> None:
    rows = spark.range(0, 2**40, 1, 4).filter("sin(id) > 2")
    subscriber = TestSubscriber[int](1)
    from_dataframe(rows).count().subscribe(subscriber)
    tracker = spark.sparkContext.statusTracker()
    assert wait_until(lambda: [*tracker.getActiveJobsIds()], TIMEOUT_S)
    subscriber.cancel()

    assert wait_until(lambda: not [*tracker.getActiveJobsIds()], TIMEOUT_S)
    assert not subscriber.items
    assert subscriber.error is None


def test_interrupting_a_tag_ends_a_count_of_its_thread(spark: SparkSession) -> None:
    from flow_spark.errors import SparkJobError

    rows = spark.range(0, 2**40, 1, 4).filter("sin(id) > 2")
    subscriber = TestSubscriber[int](1)
    tracker = spark.sparkContext.statusTracker()
    spark.addTag("a_tag")
    try:
        from_dataframe(rows).count().subscribe(subscriber)
        assert wait_until(lambda: [*tracker.getActiveJobsIds()], TIMEOUT_S)
        spark.interruptTag("a_tag")
        subscriber.await_terminal(TIMEOUT_S)
    finally:
        spark.removeTag("a_tag")

    assert isinstance(subscriber.error, SparkJobError)
