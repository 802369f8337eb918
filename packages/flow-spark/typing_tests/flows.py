"""What type checkers infer of flows on Spark; checked by mypy and pyright, never run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, assert_type

from pyspark.sql import DataFrame, SparkSession

import flow_core as flow
from flow_core import Flow
from flow_core.engine import Engine
from flow_spark import from_dataframe, on_spark, session, to_dataframe


@dataclass
class Trip:
    origin: str
    minutes: int


class Pair(NamedTuple):
    left: int
    right: int


def sources(df: DataFrame) -> None:
    assert_type(from_dataframe(df), Flow[Any])
    assert_type(from_dataframe(df, as_=Trip), Flow[Trip])
    assert_type(from_dataframe(df, as_=Trip).map(lambda trip: trip.minutes), Flow[int])
    assert_type(from_dataframe(df, as_=Pair, ordered=True), Flow[Pair])


def moved(spark: SparkSession) -> None:
    there = flow.range(10).pipe(on_spark(spark))
    assert_type(there, Flow[int])
    assert_type(there.map(lambda n: n / 2).filter(lambda half: half > 1), Flow[float])


def sinks(spark: SparkSession) -> None:
    pairs = flow.range(10).map(lambda n: Pair(n, n + 1))
    assert_type(pairs.pipe(to_dataframe(spark, schema=Pair)), DataFrame)


def sessions() -> None:
    with session("local[2]") as spark:
        assert_type(spark, SparkSession)


def engines(engine: Engine) -> None:
    assert_type(engine.place(flow.range(3)).map(str), Flow[str])
