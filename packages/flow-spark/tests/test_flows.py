"""Flows on Spark: the same operators, the same results."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import Row

import flow_core as flow
from flow_cli.explain import explain
from flow_core.engine import EngineOptions
from flow_core.flow import Flow
from flow_core.structure import source_of
from flow_spark import (
    NotPicklableError,
    OrderedOperatorError,
    SchemaMismatchError,
    SparkJobError,
    UnsupportedTypeError,
    from_dataframe,
    on_spark,
    to_dataframe,
)
from flow_spark.engine import SparkEngine
from flow_testing import assert_result

from .tried import FLOWS, Half, Pair, halved, in_any_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TIMEOUT_S = 30.0


@flow.prepare
def total(numbers: Flow[int]) -> Flow[int]:
    return numbers.map(lambda n: n + 1).sum()


ALL: dict[str, Callable[[Flow[int]], Flow[Any]]] = {
    **FLOWS,
    "prepared, an operator": lambda f: f.pipe(total),
    "prepared, run in tasks": lambda f: f.map(lambda n: range(n % 5)).map(total.first),
    "prepared, a flow for each": lambda f: f.map(lambda n: range(n % 5)).flat_map_iterable(total),
    "distinct by key": lambda f: f.distinct(lambda n: n % 10).map(lambda n: n % 10),
    "reduce, seeded": lambda f: f.reduce(lambda a, b: a + b, 1000),
    "collect": lambda f: f.map(lambda n: n % 5).collect(set, set.add).map(sorted),
    "count of nothing": lambda f: f.filter(lambda n: False).count(),
}


@pytest.mark.essential
@pytest.mark.parametrize("name", ALL)
def test_a_flow_gives_the_same_on_spark_as_here(spark: SparkSession, name: str) -> None:
    build = ALL[name]

    there = build(flow.range(100).pipe(on_spark(spark, partitions=3)))

    assert in_any_order(there) == in_any_order(build(flow.range(100)))


FORMS = {
    f"source as it is, {form}"
    for form in (
        "iterated partly",
        "async for",
        "requested one by one",
        "conditional, every other item",
        "fused across threads",
        "cancelled in on_next",
    )
}
"""The rest of them runs without Spark, in test_subscription."""


@pytest.mark.essential
def test_a_flow_on_spark_gives_the_same_in_many_forms(spark: SparkSession) -> None:
    assert_result(
        lambda: flow.range(3).pipe(on_spark(spark, partitions=1)).map(halved),
        [halved(number) for number in range(3)],
        only=lambda form: form in FORMS,
    )


@pytest.mark.essential
def test_take_gives_the_number_of_items_and_ends_the_job(spark: SparkSession) -> None:
    endless = flow.range(10**12).pipe(on_spark(spark, partitions=4))

    found = list(endless.map(lambda n: n + 1).take(5))

    assert len(found) == 5


@pytest.mark.parametrize(
    "items",
    [
        [3, 1, 2],
        ["a", "b"],
        [("a", None, 1.5), ("b", [1], 2.5)],
        [Half(1, 0.5), Half(2, 1.0)],
        [Pair(1, "a")],
        [{"a": 1}, [2], "three"],
    ],
    ids=lambda items: type(items[0]).__name__,
)
def test_any_items_can_be_sent_to_spark(spark: SparkSession, items: list[Any]) -> None:
    found = list(flow.from_iterable(items).pipe(on_spark(spark)).map(lambda item: (item,)))

    assert sorted(found, key=repr) == sorted([(item,) for item in items], key=repr)
    assert {type(item) for (item,) in found} == {type(item) for item in items}


def test_items_of_a_flow_with_stages_and_boundaries_are_sent(spark: SparkSession) -> None:
    source = flow.range(10).map(lambda n: n * 2).hide().filter(lambda n: n % 3 == 0)

    assert sorted(source.pipe(on_spark(spark)).map(str)) == ["0", "12", "18", "6"]


def test_many_items_are_divided_into_partitions(spark: SparkSession) -> None:
    import os

    there = flow.from_iterable(range(50_000)).pipe(on_spark(spark, partitions=4))

    assert there.count().single() == 50_000
    assert there.map(lambda n: os.getpid()).distinct().count().single() == 2


def test_one_partition_keeps_the_order_so_that_it_may_matter(spark: SparkSession) -> None:
    there = flow.from_iterable(range(20_000)).pipe(on_spark(spark, partitions=1))
    assert list(there) == list(range(20_000))
    assert list(there.skip(19_997).scan(lambda a, b: a + b)) == [19997, 39995, 59994]

    counted = flow.range(20_000).pipe(on_spark(spark, partitions=1))
    assert list(counted.pairwise().skip(19_998)) == [(19998, 19999)]


def test_an_error_of_the_source_here_reaches_the_subscriber(spark: SparkSession) -> None:
    error = KeyError("identical")

    def items() -> Any:
        yield 1
        raise error

    with pytest.raises(KeyError) as caught:
        list(flow.from_iterable(items()).pipe(on_spark(spark)).map(str))

    assert caught.value is error


def test_a_flow_that_is_on_spark_already_stays_there(spark: SparkSession) -> None:
    there = from_dataframe(spark.range(3)).map(str)

    again = there.pipe(on_spark(spark))

    assert source_of(again) is source_of(there)
    assert sorted(again) == ["0", "1", "2"]


def test_partitions_are_at_least_one(spark: SparkSession) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        on_spark(spark, partitions=0)


@pytest.mark.essential
def test_rows_of_a_dataframe_are_what_was_asked_for(spark: SparkSession) -> None:
    df = spark.range(3).selectExpr("id as number", "cast(id / 2 as double) as half", "'x' as rest")

    halves = [Half(0, 0.0), Half(1, 0.5), Half(2, 1.0)]
    assert sorted(from_dataframe(df, as_=Half), key=lambda h: h.number) == halves
    assert sorted(from_dataframe(df, as_=Half).map(lambda h: h.half)) == [0.0, 0.5, 1.0]
    assert sorted(from_dataframe(df).map(lambda row: row[2])) == ["x"] * 3
    assert sorted(from_dataframe(df.select("number"))) == [0, 1, 2]
    assert sorted(from_dataframe(df, as_=Row).map(lambda row: row.number)) == [0, 1, 2]


def test_columns_that_do_not_fit_are_refused_when_the_flow_is_made(spark: SparkSession) -> None:
    with pytest.raises(SchemaMismatchError, match="Half needs the columns number, half"):
        from_dataframe(spark.range(3), as_=Half)


def test_a_declared_order_is_kept(spark: SparkSession) -> None:
    df = spark.range(0, 1000, 1, 7).orderBy("id", ascending=False)

    found = list(from_dataframe(df, ordered=True).pairwise().map(lambda pair: pair[0] - pair[1]))

    assert found == [1] * 999


def test_an_order_that_was_not_declared_does_not_count(spark: SparkSession) -> None:
    with pytest.raises(OrderedOperatorError, match=r"(?s)^pairwise\(\).*ordered=True"):
        list(from_dataframe(spark.range(3)).map(str).pairwise())


def test_behind_a_boundary_items_come_as_they_arrive(spark: SparkSession) -> None:
    there = flow.range(100).pipe(on_spark(spark, partitions=1)).map(lambda n: n + 1)

    assert list(there.hide().pairwise().take(2)) == [(1, 2), (2, 3)]


def process(_: object) -> int:
    return os.getpid()


@pytest.mark.essential
@pytest.mark.parametrize("way", ["iterated", "subscribed", "batches", "an only row"])
def test_stages_behind_local_run_in_this_process(spark: SparkSession, way: str) -> None:
    there = from_dataframe(spark.range(50), as_=dict)
    if way == "batches":
        (count,) = there.local().buffer_with_count(50).map(len)
        assert count == 50
        return
    if way == "an only row":
        assert there.map(process).local().map(lambda pid: pid == os.getpid()).first() is False
        return
    made = there.map(process).local().map(lambda pid: (pid, os.getpid()))
    found = list(made) if way == "iterated" else made.to_list().to_future().result(TIMEOUT_S)
    assert {here for _, here in found} == {os.getpid()}
    assert os.getpid() not in {pid for pid, _ in found}
    assert len(found) == 50


def test_explain_shows_where_local_brings_a_flow(spark: SparkSession) -> None:
    made = from_dataframe(spark.range(5)).map(process).local().map(process)
    told = explain(made)
    there, _, here = told.partition("boundary local()")
    assert "map(process)" in there
    assert "in this process" in here


@pytest.mark.parametrize("local", [False, True])
def test_a_row_without_names_says_how_it_gets_them(spark: SparkSession, local: bool) -> None:
    rows = from_dataframe(spark.createDataFrame([(1, 2.5)], "id int, amount double"))
    made: Flow[Any] = (rows.local() if local else rows).map(lambda row: row.amount)
    with pytest.raises((AttributeError, SparkJobError)) as caught:
        list(made)
    told = "".join(traceback.format_exception(caught.value))
    assert "from_dataframe(df, as_=pyspark.sql.Row) gives it names" in told
    assert "a dataclass with 'amount'" in told


def test_effects_happen_in_this_process(spark: SparkSession) -> None:
    seen: list[int] = []

    found = list(flow.range(10).pipe(on_spark(spark)).map(lambda n: n * 2).do_on_next(seen.append))

    assert sorted(seen) == sorted(found) == list(range(0, 20, 2))


def inverse(n: int) -> float:
    return 1 / (n - 7)


@pytest.mark.parametrize(
    "there",
    [
        lambda made: made.map(str),
        lambda made: made.sum(),
        lambda made: made.count_by_key(str),
    ],
    ids=["as it is", "in parts", "behind a shuffle"],
)
def test_an_error_says_in_which_stage_and_at_which_item_of_which_partition(
    spark: SparkSession, there: Callable[[Flow[float]], Flow[Any]]
) -> None:
    made = there(flow.range(10).pipe(on_spark(spark, partitions=2)).map(inverse))

    with pytest.raises((ZeroDivisionError, SparkJobError)) as caught:
        list(made)

    told = "".join(traceback.format_exception_only(caught.value)).splitlines()
    raised = next(at for at, line in enumerate(told) if "ZeroDivisionError: " in line)
    assert raised == 0
    assert told[1].startswith("in stage 1 of ")
    assert "map(inverse), assembled at " in told[1]
    assert told[2] == "at item 2 of partition 1: 7"


def test_a_subscriber_that_requests_little_by_little_gets_everything(spark: SparkSession) -> None:
    found: list[int] = []
    failed: list[BaseException] = []
    ended = threading.Event()
    there = flow.range(20_000).pipe(on_spark(spark, partitions=2)).map(lambda n: n)

    there.subscribe(found.append, failed.append, ended.set, prefetch=1000)

    assert ended.wait(TIMEOUT_S)
    assert not failed
    assert sorted(found) == list(range(20_000))


def test_functions_that_cannot_be_sent_fail_the_flow_with_their_name(spark: SparkSession) -> None:
    lock = threading.Lock()
    there = flow.range(3).pipe(on_spark(spark)).map(lambda n: (lock, n))
    failed: list[BaseException] = []

    with pytest.raises(NotPicklableError, match="captures the variable 'lock'"):
        list(there)
    there.subscribe(print, failed.append)
    assert [type(error) for error in failed] == [NotPicklableError]


def test_async_for_does_not_stop_the_event_loop(spark: SparkSession) -> None:
    there = flow.range(1000).pipe(on_spark(spark)).map(lambda n: n + 1)

    async def run() -> tuple[int, int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.001)
                ticks += 1

        ticking = asyncio.create_task(tick())
        total = 0
        async for number in there:
            total += number
        ticking.cancel()
        return total, ticks

    total, ticks = asyncio.run(run())

    assert total == sum(range(1, 1001))
    assert ticks > 0


def test_a_flow_ends_as_a_dataframe_that_stays_lazy(spark: SparkSession) -> None:
    there = flow.range(10).pipe(on_spark(spark, partitions=2))

    df = there.filter(lambda n: n % 2).map(halved).pipe(to_dataframe())

    assert df.columns == ["number", "half"]
    assert df.orderBy("number").first() == Row(number=1, half=0.5)
    assert df.where("half > 2").count() == 3


@pytest.mark.parametrize(
    ("build", "schema", "rows"),
    [
        (lambda f: f.count(), None, [(10,)]),
        (lambda f: f.map(lambda n: n % 2).distinct(), "n int", [(0,), (1,)]),
        (lambda f: f.map(halved).take(100).count(), None, [(10,)]),
        (lambda f: f.reduce(lambda a, b: a + b), None, [(45,)]),
        (lambda f: f.map(lambda n: n % 2).collect(set, set.add), list[int], [([0, 1],)]),
        (lambda f: f.map(lambda n: (n, "x")), "n bigint, s string", [(n, "x") for n in range(10)]),
    ],
)
def test_stages_that_need_all_items_run_in_one_place_of_the_cluster(
    spark: SparkSession, build: Any, schema: Any, rows: list[Any]
) -> None:
    there = flow.range(10).pipe(on_spark(spark, partitions=3))

    df = build(there).pipe(to_dataframe(schema=schema))

    assert sorted(tuple(row) for row in df.collect()) == rows


def test_a_flow_of_this_process_ends_as_a_dataframe(spark: SparkSession) -> None:
    df = flow.range(3).map(halved).pipe(to_dataframe(spark))

    assert [tuple(row) for row in df.collect()] == [(0, 0.0), (1, 0.5), (2, 1.0)]


def test_sent_items_end_as_a_dataframe(spark: SparkSession) -> None:
    there = flow.from_iterable([Pair(1, "a"), Pair(2, "b")]).pipe(on_spark(spark))

    df = there.filter(lambda pair: pair.number > 1).pipe(to_dataframe(schema=Pair))

    assert [tuple(row) for row in df.collect()] == [(2, "b")]


def test_a_dataframe_without_stages_is_itself(spark: SparkSession) -> None:
    df = spark.range(3)

    assert from_dataframe(df).pipe(to_dataframe()) is df


def test_columns_that_are_not_known_are_asked_for(spark: SparkSession) -> None:
    there = flow.range(3).pipe(on_spark(spark)).map(lambda n: n)

    with pytest.raises(UnsupportedTypeError, match=r"no return annotation.*schema="):
        there.pipe(to_dataframe())


def test_an_item_that_does_not_fit_is_named_by_whatever_runs_the_dataframe(
    spark: SparkSession,
) -> None:
    df = flow.range(3).pipe(on_spark(spark)).map(str).pipe(to_dataframe(schema="n bigint"))

    with pytest.raises(Exception, match=r"SchemaMismatchError: item 0, '\d': field 'n'"):
        df.count()


def test_an_engine_moves_the_first_source_of_a_flow(spark: SparkSession) -> None:
    engine = SparkEngine(spark, "local[2]")
    here = flow.range(50).map(halved).filter(lambda h: h.number % 5 == 0).hide().to_list()

    there = engine.place(here)

    assert engine.name == "spark"
    assert engine.facts["master"] == "local[2]"
    assert engine.facts["version"].startswith("4.")
    assert sorted(there.single(), key=repr) == sorted(here.single(), key=repr)


def test_options_of_an_engine_have_defaults() -> None:
    assert EngineOptions().master is None


def test_items_get_their_times_where_they_are_and_a_memory_of_the_last_one_needs_their_order(
    spark: SparkSession,
) -> None:
    flow_ops = pytest.importorskip("flow_ops", reason="needs flow-ops beside it")
    before_s = time.monotonic()

    stamped = list(flow.range(20).pipe(on_spark(spark, partitions=2)).pipe(flow_ops.timestamp()))

    assert sorted(stamp.item for stamp in stamped) == list(range(20))
    assert all(before_s <= stamp.time_s <= time.monotonic() for stamp in stamped)  # one machine
    in_order = flow.range(20).pipe(on_spark(spark, partitions=1))
    assert [one.item for one in in_order.pipe(flow_ops.time_interval())] == list(range(20))
    assert list(in_order.pipe(flow_ops.throttle_first(3600))) == [0]
    for operator in (flow_ops.time_interval(), flow_ops.throttle_first(3600)):
        with pytest.raises(OrderedOperatorError, match=operator.name):
            list(flow.range(20).pipe(on_spark(spark, partitions=2)).pipe(operator))


def test_an_executor_can_poll_the_job(spark: SparkSession) -> None:
    flow_ops = pytest.importorskip("flow_ops", reason="needs flow-ops beside it")
    there = flow.range(5000).pipe(on_spark(spark, partitions=3)).map(lambda n: n + 1)

    with ThreadPoolExecutor(1) as pool:
        found = there.pipe(flow_ops.observe_on(pool)).to_list().to_future().result(TIMEOUT_S)

    assert sorted(found) == list(range(1, 5001))


@pytest.mark.parametrize("shuffled", [False, True])
def test_names_of_columns_may_have_dots_and_backticks(spark: SparkSession, shuffled: bool) -> None:
    df = spark.range(3).selectExpr("id AS `a.b`", "id * 2 AS `c``d`")
    df = df.repartition(2) if shuffled else df

    items = from_dataframe(df, as_=dict).filter(lambda row: row["a.b"] > 0)

    assert sorted(items.map(lambda row: (row["a.b"], row["c`d"]))) == [(1, 2), (2, 4)]
    out = items.pipe(to_dataframe(schema="`a.b` bigint, `c``d` bigint"))
    assert sorted(map(tuple, out.collect())) == [(1, 2), (2, 4)]
