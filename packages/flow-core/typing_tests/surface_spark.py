"""What type checkers infer of the methods that flow-spark executes, with PySpark; never run."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any, assert_type

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

import flow_core as flow
from flow_core import Flow
from flow_core.batches import BatchStore, MicroBatch

numbers = flow.range(3)
words = flow.just("a")


def save(_: int, items: Iterator[str]) -> None:
    print(list(items))


def save_once(_: int, items: Iterator[str], db: sqlite3.Connection) -> None:
    db.executemany("INSERT INTO words VALUES (?)", ((item,) for item in items))


def spark(session: SparkSession, store: BatchStore[sqlite3.Connection]) -> None:
    assert_type(numbers.on_spark(session, partitions=2), Flow[int])
    assert_type(numbers.on_spark(session).map(lambda n: n / 2), Flow[float])
    assert_type(numbers.to_dataframe(schema="n bigint"), DataFrame)
    assert_type(len(numbers.to_pandas(limit=3)), int)
    assert_type(words.to_arrow(schema=str), Any)  # pyarrow has no types
    assert_type(numbers.spark.where(col("n") > 1).map(lambda n: n / 2), Flow[float])
    assert_type(numbers.spark.select("n", as_=str), Flow[str])
    assert_type(words.spark.scan_by_key(len, lambda n, s: n + len(s), 0), Flow[tuple[int, int]])
    assert_type(words.spark.for_each_batch(save), Flow[MicroBatch])
    assert_type(words.spark.for_each_batch_once(store, save_once), Flow[MicroBatch])
    assert_type(words.spark.write_each(lambda df, n: df.count() + n), Flow[MicroBatch])
    words.spark.write("parquet", "words", mode="append")


def mistakes(session: SparkSession) -> None:
    """Each line is one, and both checkers say so."""
    numbers.on_spark("local")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    numbers.on_spark(session, parts=2)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    numbers.to_dataframe(4)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    numbers.to_pandas(limit="all")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    numbers.spark.where(lambda n: n > 1)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType, reportUnknownLambdaType]
    numbers.spark.select(1)  # type: ignore[call-overload] # pyright: ignore[reportArgumentType]
    numbers.spark.wehre("n > 1")  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    numbers.spark.for_each_batch(save)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    words.spark.write("parquet", "words", mode="replace")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
