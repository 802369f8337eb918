"""Sorted and distinct items that are iterated: this process holds a bounded number of them."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

import flow_core as flow
from flow_core.flow import Flow
from flow_spark import from_dataframe, on_spark, to_dataframe, union
from flow_spark.jobs import iterated, one_place, sorting, unshuffled

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FLOWS: dict[str, Callable[[Flow[Any]], Flow[Any]]] = {
    "sort": lambda f: f.sort(),
    "sort, the largest first": lambda f: f.sort(reverse=True),
    "sort by a key": lambda f: f.sort(lambda n: (n % 10, n)),
    "stages before and behind": lambda f: f.filter(lambda n: n % 2).sort(lambda n: -n).pairwise(),
    "sort, and a few of them": lambda f: f.sort().skip(10).take(20),
    "sort of nothing": lambda f: f.filter(lambda n: n < 0).sort().count(),
    "distinct, sorted": lambda f: f.map(lambda n: n % 300).distinct().sort(),
    "distinct by a key": lambda f: f.distinct(lambda n: n % 300).map(lambda n: n % 300).sort(),
    "distinct, counted": lambda f: f.map(lambda n: n // 2).distinct().count(),
}


@pytest.fixture(params=["few", "many"])
def limits(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "many":
        monkeypatch.setattr(iterated, "_MOST_SORTED", 100)
        monkeypatch.setattr(unshuffled, "_MOST_KEYS", 100)
        monkeypatch.setattr(one_place, "_RUN", 70)


@pytest.mark.usefixtures("limits")
@pytest.mark.parametrize("name", FLOWS)
def test_items_that_are_iterated_are_the_same_on_spark_as_here(
    spark: SparkSession, name: str
) -> None:
    build, given = FLOWS[name], list[int]()
    items = flow.range(2000).do_on_next(given.append)

    there = list(build(items.pipe(on_spark(spark, partitions=3))))

    assert there == list(build(flow.range(2000)))
    assert len(given) == 2000  # the flow runs once, even if its items are read twice


@pytest.mark.usefixtures("limits")
def test_each_distinct_item_comes_once(spark: SparkSession) -> None:
    rows = from_dataframe(spark.range(0, 3000, 1, 3)).map(lambda n: n % 1000)

    found = list(rows.distinct())

    assert len(found) == len(set(found)) == 1000


def test_many_items_are_sorted_by_a_task(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(iterated, "_MOST_SORTED", 100)
    sorted_here: list[int] = []
    real = unshuffled.FewFirst._few
    monkeypatch.setattr(
        unshuffled.FewFirst,
        "_few",
        lambda job: sorted_here.append(0) if (few := real(job)) is None else few,
    )

    assert list(from_dataframe(spark.range(1000)).sort(operator.neg)) == list(range(999, -1, -1))
    assert sorted_here == [0]


@pytest.mark.parametrize("unite", [False, True], ids=["a DataFrame", "a union"])
def test_sorted_items_that_stay_on_the_cluster_use_a_file(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, unite: bool
) -> None:
    used: list[object] = []
    monkeypatch.setattr(
        one_place, "sorting", lambda stages: used.append(stages) or sorting.sorting(stages)
    )
    rows = from_dataframe(spark.range(100)).sort(operator.neg)

    if unite:
        assert sorted(union(rows, from_dataframe(spark.range(2)))) == [0, 0, 1, *range(1, 100)]
    else:
        df = rows.pipe(to_dataframe(schema="n long"))
        assert [row.n for row in df.collect()] == list(range(99, -1, -1))
    assert used


@pytest.mark.usefixtures("limits")
@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda f: f.sort(lambda n: 1 // (n - 700)), "division"),
        (lambda f: f.distinct(lambda n: 1 // (n - 700)), "division"),
        (lambda f: f.map(lambda n: n if n != 700 else "700").sort(), "not supported between"),
    ],
    ids=["sort", "distinct", "items that cannot be compared"],
)
def test_an_error_says_in_which_stage_it_was(
    spark: SparkSession, build: Callable[[Flow[Any]], Flow[Any]], said: str
) -> None:
    with pytest.raises(Exception, match=said) as caught:
        list(build(from_dataframe(spark.range(0, 1000, 1, 2))))

    told = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", ())])
    assert re.search(r"in stage (1 of 1|2 of 2): (sort\(|distinct\()", told)
    assert "most" not in told
