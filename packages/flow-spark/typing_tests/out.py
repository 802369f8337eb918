"""What type checkers infer of sinks and of streams that begin here; checked, never run."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass
from typing import assert_type

from pyspark.sql import DataFrame, SparkSession

import flow_core as flow
from flow_core import Flow
from flow_spark import (
    MicroBatch,
    WriteSubscriber,
    batch_writer,
    from_stream,
    scan_by_key,
    stream_source,
    to_dataframe,
    write,
    write_each,
)


@dataclass
class Trip:
    origin: str
    minutes: int


def sinks(spark: SparkSession, trips: Flow[Trip]) -> None:
    trips.pipe(write("parquet", "out", mode="append", partition_by=["origin"]))
    assert_type(trips.pipe(to_dataframe(spark, spool="spool")), DataFrame)
    subscriber = WriteSubscriber(spark, "csv", "out", schema=Trip)
    assert_type(subscriber.done, Future[int])
    trips.subscribe(subscriber)


def streams(spark: SparkSession) -> None:
    numbers = flow.range(10)
    assert_type(stream_source(numbers, spark, spool="spool"), DataFrame)
    assert_type(
        stream_source(lambda seen: numbers.skip(seen), spark, schema=int, spool="spool"), DataFrame
    )


def fan_out(df: DataFrame) -> None:
    trips = from_stream(df, as_=Trip)
    written = trips.pipe(write_each(batch_writer("csv", "out"), lambda rows, n: rows.show(n)))
    assert_type(written, Flow[MicroBatch])


def states(df: DataFrame) -> None:
    trips = from_stream(df, as_=Trip)
    totals = trips.pipe(
        scan_by_key(lambda trip: trip.origin, lambda total, trip: total + trip.minutes, 0)
    )
    assert_type(totals, Flow[tuple[str, int]])
    timed = trips.pipe(
        scan_by_key(
            lambda trip: trip.origin,
            lambda total, trip: total + trip.minutes,
            0.0,
            timeout=60,
            on_timeout=lambda origin, total: total if origin else None,
            order_by=lambda trip: trip.minutes,
        )
    )
    assert_type(timed, Flow[tuple[str, float]])
