"""Pipelines drawn at random give the same on Spark as here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flow_core as flow
from flow_core.flow import Flow
from flow_spark import on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

Step = Callable[[Flow[int]], Flow[int]]


def add(a: int, b: int) -> int:
    return a + b


# Each takes ints and gives ints, the same ones in whatever order theirs come.
STEPS: dict[str, Step] = {
    "map": lambda f: f.map(lambda n: 3 * n + 1),
    "filter": lambda f: f.filter(lambda n: n % 2),
    "flat_map_iterable": lambda f: f.flat_map_iterable(lambda n: range(n % 4)),
    "distinct": lambda f: f.map(lambda n: n % 5).distinct(),
    "count": lambda f: f.count(),
    "sum": lambda f: f.sum(),
    "min": lambda f: f.min(),
    "max": lambda f: f.max(lambda n: -n),
    "reduce": lambda f: f.reduce(add),
    "to_set": lambda f: f.to_set().map(sum),
    "to_dict": lambda f: f.to_dict(lambda n: n).map(len),
    "to_list": lambda f: f.to_list().map(len),
    "collect": lambda f: f.collect(list, list.append, list.extend).map(sum),
    "average": lambda f: f.end_with(6).average().map(round),
    "some": lambda f: f.some(lambda n: n > 9).map(int),
    "contains": lambda f: f.contains(4).map(int),
    "is_empty": lambda f: f.is_empty().map(int),
    "sort, take": lambda f: f.sort(reverse=True).take(3),
    "count_by_key": lambda f: f.count_by_key(lambda n: str(n % 3)).map(lambda p: p[1]),
    "reduce_by_key": lambda f: f.reduce_by_key(lambda n: n % 4, add).map(lambda p: p[0] + p[1]),
}
ORDERED: dict[str, Step] = {
    "scan": lambda f: f.scan(add),
    "skip": lambda f: f.skip(2),
    "pairwise": lambda f: f.pairwise().map(sum),
    "take": lambda f: f.take(4),
    "distinct_until_changed": lambda f: f.distinct_until_changed(lambda n: n // 3),
}

few = settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def pipelines(*tables: dict[str, Step]) -> st.SearchStrategy[list[str]]:
    return st.lists(
        st.sampled_from([name for table in tables for name in table]), min_size=1, max_size=4
    )


def built(names: list[str], source: Flow[int]) -> Flow[Any]:
    steps = {**STEPS, **ORDERED}
    return reduce(lambda made, name: steps[name](made), names, source)


@few
@given(names=pipelines(STEPS), count=st.integers(0, 40), partitions=st.integers(2, 4))
def test_the_same_items(spark: SparkSession, names: list[str], count: int, partitions: int) -> None:
    here = list(built(names, flow.range(count)))

    there = list(built(names, flow.range(count).pipe(on_spark(spark, partitions=partitions))))

    assert Counter(there) == Counter(here)


@few
@given(names=pipelines(STEPS, ORDERED), count=st.integers(0, 40))
def test_the_same_list_when_it_is_ordered(
    spark: SparkSession, names: list[str], count: int
) -> None:
    here = list(built(names, flow.range(count)))

    there = list(built(names, flow.range(count).pipe(on_spark(spark, partitions=1))))

    assert there == here
