"""An object that cannot go to a worker is refused before a job, wherever Spark runs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

import flow_core as flow
from flow_spark import NotPicklableError, from_dataframe, on_spark

from ..infrastructure.places import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

Function = Callable[[int], object]


@dataclass
class Store:
    """An object that holds the session, as programs have one."""

    spark: SparkSession

    def rows_up_to(self, n: int) -> int:
        return self.spark.range(n).count()


def functions(spark: SparkSession) -> dict[str, Function]:
    """Functions that take along what is of use in this process only, by what that is."""
    frame, store = spark.range(3), Store(spark)
    numbers = from_dataframe(frame)
    counted = numbers.map(lambda n: n + 1).count()
    groups, reader, frames = frame.groupBy("id"), spark.read, {"all": [frame]}
    return {
        "a session": lambda n: spark.range(n).count(),
        "a frame": lambda n: frame.count() + n,
        "a flow": lambda n: numbers.count().single() + n,
        "a flow with stages": lambda n: counted.single() + n,
        "an object": lambda n: store.rows_up_to(n),
        "a method": store.rows_up_to,
        "a partial": functools.partial(lambda held, n: held.range(n).count(), spark),
        "groups": lambda n: groups.count().count() + n,
        "a reader": lambda n: reader.table(str(n)),
        "a frame in a dict": lambda n: len(frames) + n,
    }


def test_a_function_that_holds_a_session_is_refused_with_what_holds_it(place: Place) -> None:
    numbers = flow.from_([0, 1]).pipe(on_spark(place.spark))
    for name, function in functions(place.spark).items():
        for taken in (from_dataframe(place.spark.range(2)), numbers):
            with pytest.raises(NotPicklableError) as caught:
                list(taken.map(function))
            said = str(caught.value)
            assert said.startswith("the stages of this flow cannot be sent to Spark:"), name
            assert "a pyspark.sql." in said, name
            assert "test_closures.py" in said, name


def test_an_item_that_holds_a_session_is_refused(place: Place) -> None:
    with pytest.raises(NotPicklableError, match="SparkSession"):
        list(flow.from_([place.spark.range(3)]).pipe(on_spark(place.spark)).map(lambda df: df))


def test_a_flow_of_plain_items_goes_along(place: Place) -> None:
    hundreds = flow.from_([100, 200])

    told = from_dataframe(place.spark.range(2)).map(lambda n: n + hundreds.max().single())

    assert sorted(told) == [200, 201]
