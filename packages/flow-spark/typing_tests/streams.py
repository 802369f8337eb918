"""What type checkers infer of flows of streams; checked by mypy and pyright, never run."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, assert_type

from pyspark.sql import DataFrame

from flow_core import Flow
from flow_spark import (
    BatchStore,
    MicroBatch,
    SqliteBatchStore,
    for_each_batch,
    for_each_batch_once,
    from_stream,
)


@dataclass
class Trip:
    origin: str
    minutes: int


def sources(df: DataFrame) -> None:
    assert_type(from_stream(df), Flow[Any])
    assert_type(from_stream(df, as_=Trip, trigger=1.5), Flow[Trip])
    assert_type(from_stream(df, as_=Trip).map(lambda trip: trip.minutes), Flow[int])


def batches(df: DataFrame) -> None:
    def save(batch_id: int, trips: Iterator[Trip]) -> None: ...

    def add(batch_id: int, trips: Iterator[Trip], db: sqlite3.Connection) -> None: ...

    rows = from_stream(df, as_=Trip)
    store = SqliteBatchStore("trips.db")
    own: BatchStore[sqlite3.Connection] = store
    assert_type(rows.pipe(for_each_batch(save)), Flow[MicroBatch])
    assert_type(rows.pipe(for_each_batch_once(store, add)), Flow[MicroBatch])
    assert_type(rows.pipe(for_each_batch_once(own, add, subscriber="trips")), Flow[MicroBatch])
