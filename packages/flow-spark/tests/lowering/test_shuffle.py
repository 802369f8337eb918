"""Items with the same key are reduced where they are, then meet in one partition."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as sql

import flow_core as flow
from flow_core.flow import Flow
from flow_core.structure import source_of, stages_of
from flow_spark import NotPicklableError, OrderedOperatorError, on_spark, to_dataframe
from flow_spark.jobs import unshuffled
from flow_spark.jobs.shuffling import ShuffledOrigin

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Digit:
    """A key of a class that no executor can import."""

    value: int


def digit_of(number: int) -> Digit:
    return Digit(number % 10)


def latest(left: int, right: int) -> int:
    return max(left, right)


FLOWS: dict[str, Callable[[Flow[int]], Flow[Any]]] = {
    "reduce_by_key": lambda f: f.reduce_by_key(lambda n: n % 7, operator.add),
    "with values": lambda f: f.reduce_by_key(str, operator.add, lambda n: -n),
    "of a class of the test": lambda f: f.reduce_by_key(digit_of, latest),
    "count_by_key": lambda f: f.filter(bool).count_by_key(lambda n: str(n)[0]),
    "stages behind it": lambda f: f.count_by_key(lambda n: n % 7).map(lambda p: p[1]).filter(bool),
    "two after each other": lambda f: f.count_by_key(lambda n: str(n)[0]).count_by_key(
        lambda pair: pair[1]
    ),
    "an aggregate behind it": lambda f: f.count_by_key(lambda n: n % 7).count(),
    "sorted behind it": lambda f: f.count_by_key(lambda n: n % 7).sort().take(2),
    "nothing": lambda f: f.filter(lambda n: n < 0).count_by_key(str),
    "more items than wait": lambda f: f.flat_map_iterable(lambda n: range(100)).count_by_key(abs),
}


@pytest.mark.parametrize("small", [2**26, -1], ids=["combined here", "shuffled"])
@pytest.mark.parametrize("name", FLOWS)
def test_a_flow_by_key_gives_the_same_on_spark_as_here(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str, small: int
) -> None:
    monkeypatch.setattr(unshuffled, "_SMALL", small)
    build = FLOWS[name]
    here = list(build(flow.range(100)))

    there = list(build(flow.range(100).pipe(on_spark(spark, partitions=3))))

    assert sorted(there, key=repr) == sorted(here, key=repr)
    assert {type(item) for item in there} == {type(item) for item in here}


@pytest.mark.parametrize(
    ("build", "shuffles"),
    [
        (lambda f: f.count_by_key(lambda n: n % 7), False),
        (lambda f: f.count_by_key(lambda n: n % 7).sort().take(2), False),
        (lambda f: f.count_by_key(lambda n: n % 7).map(str), True),
        (lambda f: f.count_by_key(str), True),
    ],
    ids=["few keys", "sorted behind it", "a function for each behind it", "many keys"],
)
def test_few_results_are_combined_without_a_shuffle(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    build: Callable[[Flow[int]], Flow[Any]],
    shuffles: bool,
) -> None:
    shuffled: list[object] = []
    given: list[int] = []
    monkeypatch.setattr(
        ShuffledOrigin,
        "shuffled",
        lambda origin, opened, real=ShuffledOrigin.shuffled: (
            shuffled.append(opened) or real(origin, opened)
        ),
    )
    items = flow.range(12_000).do_on_next(given.append)

    there = list(build(items.pipe(on_spark(spark, partitions=3))))

    assert sorted(there) == sorted(build(flow.range(12_000)))
    assert bool(shuffled) is shuffles
    assert len(given) == 12_000  # the flow runs once, even if its items are read twice


def test_each_key_comes_once_from_many_partitions(spark: SparkSession) -> None:
    words = flow.range(5000).map(str).pipe(on_spark(spark, partitions=4))

    found = list(words.distinct().count_by_key(len).map(lambda pair: pair))

    assert sorted(found) == [(1, 10), (2, 90), (3, 900), (4, 4000)]


@pytest.mark.parametrize(
    ("build", "schema", "expected"),
    [
        (
            lambda f: f.count_by_key(lambda n: str(n % 3)),
            "key string, count bigint",
            [("0", 34), ("1", 33), ("2", 33)],
        ),
        (lambda f: f.map(lambda n: n % 3).distinct(), "n int", [(0,), (1,), (2,)]),
        (lambda f: f.distinct(lambda n: n % 3).map(lambda n: n % 3), "n int", [(0,), (1,), (2,)]),
        (lambda f: f.map(lambda n: n % 3).distinct().count(), "n int", [(3,)]),
        (lambda f: f.filter(lambda n: n < 0).distinct().count(), "n int", [(0,)]),
    ],
)
def test_a_flow_that_stays_on_the_cluster_stays_divided(
    spark: SparkSession, build: Callable[[Any], Any], schema: str, expected: list[Any]
) -> None:
    there = build(flow.range(100).pipe(on_spark(spark, partitions=3)))

    df = there.pipe(to_dataframe(schema=schema))

    assert sorted(tuple(row) for row in df.collect()) == expected


@contextmanager
def conf(spark: SparkSession, **settings: str) -> Iterator[None]:
    """Set what begins with ``spark.sql.`` for a moment; ``__`` stands for a dot."""
    names = {f"spark.sql.{name.replace('__', '.')}": value for name, value in settings.items()}
    before = {name: spark.conf.get(name, None) for name in names}
    for name, value in names.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def sizes_behind_distinct(spark: SparkSession, items: int, key: Callable[[int], object]) -> Any:
    """Return how many of `items` numbers the partitions behind ``distinct(key)`` hold."""
    there = flow.range(items).pipe(on_spark(spark, partitions=2)).distinct(key)
    df = there.pipe(to_dataframe(schema="n int"))
    return [row["count"] for row in df.groupBy(sql.spark_partition_id()).count().collect()]


KEYS: dict[str, Callable[[int], object]] = {
    "one after the other": lambda n: n,
    "multiples of the partitions": lambda n: n * 200,
    "text": str,
}


@pytest.mark.parametrize("partitions", [8, 32, 200])
@pytest.mark.parametrize("name", KEYS)
def test_the_fullest_partition_behind_a_shuffle_holds_little_more_than_its_share(
    spark: SparkSession, partitions: int, name: str
) -> None:
    joined = {"adaptive__coalescePartitions__enabled": "false"}
    with conf(spark, shuffle__partitions=str(partitions), **joined):
        sizes = sizes_behind_distinct(spark, 500 * partitions, KEYS[name])

    assert len(sizes) == partitions
    assert max(sizes) <= 1.2 * 500


def test_shares_are_even_where_adaptive_execution_begins_with_another_number(
    spark: SparkSession,
) -> None:
    begins = {
        "adaptive__coalescePartitions__initialPartitionNum": "32",
        "adaptive__coalescePartitions__parallelismFirst": "false",
        "adaptive__coalescePartitions__minPartitionSize": "1b",
        "adaptive__advisoryPartitionSizeInBytes": "1b",
    }
    with conf(spark, shuffle__partitions="3", **begins):
        sizes = sizes_behind_distinct(spark, 500 * 32, str)

    assert len(sizes) == 32
    assert max(sizes) <= 1.2 * 500


def test_distinct_items_come_before_the_end_of_all(spark: SparkSession) -> None:
    endless = flow.range(10**12).pipe(on_spark(spark, partitions=2))

    assert len(list(endless.map(lambda n: n % 1000).distinct().take(20))) == 20


def test_the_order_of_keys_does_not_count_as_an_order(spark: SparkSession) -> None:
    counted = flow.range(10).pipe(on_spark(spark)).count_by_key(str)

    with pytest.raises(OrderedOperatorError, match="pairwise"):
        list(counted.pairwise())
    assert list(counted.sort().map(lambda pair: pair[0]).pairwise().take(1)) == [("0", "1")]


def test_on_a_declared_order_nothing_is_shuffled(spark: SparkSession) -> None:
    source = flow.range(100).pipe(on_spark(spark, partitions=1))

    counted = source.count_by_key(lambda n: n % 3).map(lambda pair: pair[0])

    assert list(counted.pairwise()) == [(0, 1), (1, 2)]


def test_an_object_that_cannot_be_sent_is_named(spark: SparkSession) -> None:
    import threading

    lock = threading.Lock()

    def key(n: int) -> object:
        with lock:
            return n

    with pytest.raises(NotPicklableError, match="lock"):
        list(flow.range(10).pipe(on_spark(spark)).count_by_key(key))


def test_an_error_of_a_function_before_the_shuffle_arrives(spark: SparkSession) -> None:
    def key(n: int) -> int:
        return 10 // (n - 5)

    with pytest.raises(Exception, match="division"):
        list(flow.range(10).pipe(on_spark(spark)).count_by_key(key))


def test_it_says_where_it_is(spark: SparkSession) -> None:
    source: Any = source_of(flow.range(10).pipe(on_spark(spark)).count_by_key(str))

    origin, _ = source.lowered(stages_of(flow.range(10).count_by_key(str)), stays=False)

    assert isinstance(origin, ShuffledOrigin)
    assert repr(origin).startswith("what a shuffle by key gives of on_spark(range(0, 10))")
