"""Flows that hold slots of a cluster while another job waits for one."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import flow_core as flow
from flow_core.flow import Flow
from flow_spark import from_dataframe, from_stream
from flow_testing import TIMEOUT_S, TestSubscriber

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ALONE", "ROWS", "WAITING", "Combination", "long_flow"]

ROWS = 400_000
PARTITIONS = 4


def long_flow(spark: SparkSession) -> Flow[Any]:
    """A flow whose tasks do not end before it is read: it is more than the sockets hold."""
    return from_dataframe(spark.range(0, ROWS, 1, PARTITIONS)).hide()


def job_in_the_loop(spark: SparkSession) -> None:
    """Another job for some of the items."""
    seen = 0
    for n in long_flow(spark):
        seen += 1
        if n % 100_000 == 50_000:
            assert spark.range(10).count() == 10
    assert seen == ROWS


def flow_in_the_loop(spark: SparkSession) -> None:
    """Another flow on the same cluster, for some of the items."""
    seen = 0
    for n in long_flow(spark):
        seen += 1
        if n % 100_000 == 50_000:
            assert from_dataframe(spark.range(10)).count().to_list().first() == [10]
    assert seen == ROWS


def in_step(spark: SparkSession) -> None:
    """Two flows of which one item each is read at a time."""
    left, right = zip(*zip(long_flow(spark), long_flow(spark), strict=True), strict=True)
    assert sorted(left) == sorted(right) == [*range(ROWS)]


def zipped(spark: SparkSession) -> None:
    """Two flows of which each waits for the items of the other."""
    pairs = flow.zip(long_flow(spark), long_flow(spark)).to_list().first()
    assert pairs is not None
    left, right = zip(*pairs, strict=True)
    assert sorted(left) == sorted(right) == [*range(ROWS)]


def one_for_each(spark: SparkSession) -> None:
    """`concat_map`, whose inner flows run on the cluster, too."""

    def inner(n: int) -> Flow[int]:
        if n % 100_000:
            return flow.just(n)
        return from_dataframe(spark.range(n, n + 2)).hide()

    found = long_flow(spark).concat_map(inner).count().first()
    assert found == ROWS + ROWS // 100_000


def merged(spark: SparkSession) -> None:
    """Two flows whose items come as they are there."""
    assert flow.merge(long_flow(spark), long_flow(spark)).count().first() == 2 * ROWS


def paused(spark: SparkSession) -> None:
    """A subscriber that wants no more for now, beside any other job."""
    some = threading.Event()
    subscriber = TestSubscriber[int](10, on_item=lambda *_: some.set())
    long_flow(spark).subscribe(subscriber)
    assert some.wait(12 * TIMEOUT_S)
    for _ in range(3):
        assert spark.range(10).count() == 10
    subscriber.request(ROWS)
    subscriber.await_terminal(12 * TIMEOUT_S)
    assert sorted(subscriber.items) == [*range(ROWS)]


def paused_stream(spark: SparkSession) -> None:
    """A subscriber to a stream, in the middle of a micro-batch, beside any other job."""
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS)
    stream = from_stream(rows.option("numPartitions", PARTITIONS).load().select("value"))
    some = threading.Event()
    subscriber = TestSubscriber[int](10, on_item=lambda *_: some.set())
    stream.hide().take(2 * ROWS).subscribe(subscriber)
    assert some.wait(12 * TIMEOUT_S)
    for _ in range(3):
        assert spark.range(10).count() == 10
    subscriber.request(2 * ROWS)
    subscriber.await_terminal(12 * TIMEOUT_S)
    assert sorted(subscriber.items) == [*range(2 * ROWS)]


ALONE: dict[str, Callable[[SparkSession], None]] = {
    "a job in the loop": job_in_the_loop,
    "a flow in the loop": flow_in_the_loop,
    "two flows in step": in_step,
    "a paused subscriber": paused,
    "a paused stream": paused_stream,
}
"""Those that need nothing beside this package."""

WAITING: dict[str, Callable[[SparkSession], None]] = {
    **ALONE,
    "zip": zipped,
    "concat_map": one_for_each,
    "merge": merged,
}


class Combination:
    """Flows of one cluster, put together at random, which wait for one another.

    Args:
        spark: the session.
        seed: the same one gives the same combination.
    """

    def __init__(self, spark: SparkSession, seed: int) -> None:
        self._spark = spark
        self._random = random.Random(seed)
        self._first = itertools.count(0, 1_000_000)

    def check(self) -> None:
        """Run it in one of four ways, beside one that pauses or not; its items have to be right."""
        beside = TestSubscriber[int](5)
        others: list[int] = []
        if self._random.random() < 0.4:
            held, others = self._rows()
            held.subscribe(beside)
        made, expected = self._flow(2)
        way = self._random.choice([self._iterated, self._paused, self._cancelled, self._listed])
        way(made, expected)
        if others:
            if self._random.random() < 0.5:
                beside.request(len(others))
                beside.await_terminal(12 * TIMEOUT_S)
                assert sorted(beside.items) == others
            else:
                beside.cancel()

    def _job(self) -> None:
        assert self._spark.range(10).count() == 10

    def _rows(self, count: int | None = None) -> tuple[Flow[int], list[int]]:
        """The rows of a DataFrame, and what they are."""
        if count is None:
            count = self._random.choice([1, 100, 20_000, 100_000, 200_000])
        first = next(self._first)
        rows = self._spark.range(first, first + count, 1, self._random.randint(1, 6))
        return from_dataframe(rows).hide(), [*range(first, first + count)]

    def _flow(self, depth: int) -> tuple[Flow[int], list[int]]:
        if not depth:
            return self._rows()
        kinds = [self._rows, self._zip, self._merge, self._concat_map, self._jobs]
        kind = self._random.choice(kinds)
        return kind(depth) if kind != self._rows else self._rows()

    def _zip(self, _: int) -> tuple[Flow[int], list[int]]:
        count = self._random.choice([100, 100_000])
        (left, some), (right, others) = self._rows(count), self._rows(count)
        return flow.zip(left, right).flat_map_iterable(lambda pair: pair), some + others

    def _merge(self, depth: int) -> tuple[Flow[int], list[int]]:
        made = [self._flow(depth - 1) for _ in range(self._random.randint(2, 3))]
        return flow.merge(*(one for one, _ in made)), [n for _, items in made for n in items]

    def _concat_map(self, depth: int) -> tuple[Flow[int], list[int]]:
        inner = [self._flow(depth - 1) for _ in range(self._random.randint(1, 3))]
        outer = from_dataframe(self._spark.range(0, len(inner), 1, 2)).hide()
        return outer.concat_map(lambda n: inner[n][0]), [n for _, items in inner for n in items]

    def _jobs(self, depth: int) -> tuple[Flow[int], list[int]]:
        """A separate job for some of the items."""
        made, expected = self._flow(depth - 1)

        def mapped(n: int) -> int:
            if n % 50_000 == 0:
                self._job()
            return n

        return made.map(mapped), expected

    def _listed(self, made: Flow[int], expected: list[int]) -> None:
        found = made.to_list().first()
        assert sorted(found or []) == sorted(expected)

    def _iterated(self, made: Flow[int], expected: list[int]) -> None:
        found: list[int] = []
        for n in made:
            if len(found) in {0, len(expected) // 2}:
                self._job()
            found.append(n)
        assert sorted(found) == sorted(expected)

    def _paused(self, made: Flow[int], expected: list[int]) -> None:
        subscriber = TestSubscriber[int](1)
        made.subscribe(subscriber)
        for part in (10, 1 + len(expected) // 2):
            self._job()
            subscriber.request(part)
        self._job()
        subscriber.request(len(expected))
        subscriber.await_terminal(12 * TIMEOUT_S)
        assert sorted(subscriber.items) == sorted(expected)

    def _cancelled(self, made: Flow[int], expected: list[int]) -> None:
        count = self._random.randint(1, len(expected))
        found = made.take(count).to_list().first() or []
        assert len({*found}) == count
        assert {*found} <= {*expected}
        self._job()
