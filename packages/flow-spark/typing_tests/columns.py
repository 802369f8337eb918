"""What type checkers infer of columns, unions and aggregations by key; never run."""

from __future__ import annotations

from typing import Any, NamedTuple, assert_type

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

import flow_core as flow
from flow_core import Flow
from flow_spark import from_dataframe, on_spark, select, union, where


class Trip(NamedTuple):
    origin: str
    minutes: int


class Hours(NamedTuple):
    hours: float


def columns(df: DataFrame) -> None:
    trips = from_dataframe(df, as_=Trip)
    assert_type(trips.pipe(where(col("minutes") > 3)), Flow[Trip])
    assert_type(trips.pipe(where("minutes > 3")).map(lambda trip: trip.minutes), Flow[int])
    assert_type(trips.pipe(select("origin")), Flow[Any])
    hours = (col("minutes") / 60).alias("hours")
    assert_type(trips.pipe(select(hours, as_=Hours)), Flow[Hours])
    assert_type(trips.pipe(select(hours, as_=Hours)).map(lambda row: row.hours), Flow[float])


def united(df: DataFrame, spark: SparkSession) -> None:
    trips = from_dataframe(df, as_=Trip)
    assert_type(union(trips, trips), Flow[Trip])
    there = flow.range(10).pipe(on_spark(spark))
    assert_type(union(there, trips.map(lambda trip: trip.minutes)), Flow[int])


def by_key(df: DataFrame) -> None:
    trips = from_dataframe(df, as_=Trip)
    assert_type(trips.count_by_key(lambda trip: trip.origin), Flow[tuple[str, int]])
    assert_type(
        trips.reduce_by_key(lambda trip: trip.origin, int.__add__, lambda trip: trip.minutes),
        Flow[tuple[str, int]],
    )
