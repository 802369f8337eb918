"""Flows that end in files, DataFrames and tables."""

from __future__ import annotations

import dataclasses
import datetime
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import flow_core as flow
from flow_core.flow import Flow
from flow_spark import (
    LimitExceededError,
    SchemaMismatchError,
    SpoolError,
    UnsupportedTypeError,
    WriteSubscriber,
    _spool,
    from_dataframe,
    from_stream,
    on_spark,
    to_arrow,
    to_dataframe,
    to_pandas,
    write,
)
from flow_spark.items.arrow import ArrowBatch
from flow_testing import TestPublisher

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

TIMEOUT_S = 60.0


class Pair(NamedTuple):
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Moment:
    at: datetime.datetime
    took: datetime.timedelta
    tags: list[str]
    counts: dict[str, int]
    note: str | None


def pair(number: int) -> Pair:
    return Pair(number, str(number % 3))


def moment(number: int) -> Moment:
    at = datetime.datetime(2024, 2, 29, 23, 59, 59, number, tzinfo=datetime.UTC)
    return Moment(at, datetime.timedelta(microseconds=number), ["a"], {"b": number}, None)


def here(spark: SparkSession, count: int = 10) -> Flow[int]:
    return flow.range(count)


def there(spark: SparkSession, count: int = 10) -> Flow[int]:
    return flow.range(count).pipe(on_spark(spark))


each_place = pytest.mark.parametrize("numbers", [here, there])


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is too much for the memory."""
    monkeypatch.setattr(_spool, "IN_MEMORY_BYTES", 1)
    monkeypatch.setattr(_spool, "_ROW_GROUP_BYTES", 1)


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.name[0] not in "._" and path.is_file())


@each_place
def test_a_flow_is_written_by_spark(numbers: Any, spark: SparkSession, tmp_path: Path) -> None:
    done = numbers(spark).map(pair).pipe(write("parquet", tmp_path / "out", session=spark))

    assert done is None
    found = spark.read.parquet(str(tmp_path / "out"))
    assert sorted(tuple(row) for row in found.collect()) == [(n, str(n % 3)) for n in range(10)]


@each_place
def test_columns_become_folders(numbers: Any, spark: SparkSession, tmp_path: Path) -> None:
    target = write(
        "csv", tmp_path / "out", partition_by="text", options={"header": True}, session=spark
    )

    numbers(spark).map(pair).pipe(target)

    names = {path.name for path in (tmp_path / "out").iterdir() if path.is_dir()}
    assert names == {"text=0", "text=1", "text=2"}
    assert files(tmp_path)[0].read_text().splitlines()[0] == "number"


@each_place
def test_modes_are_sparks_own(numbers: Any, spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    numbers(spark).pipe(write("json", out, schema="n long", session=spark))

    with pytest.raises(Exception, match="already exists"):
        numbers(spark).pipe(write("json", out, schema="n long", session=spark))
    numbers(spark).pipe(write("json", out, schema="n long", mode="append", session=spark))
    numbers(spark).pipe(write("json", out, schema="n long", mode="ignore", session=spark))
    assert spark.read.json(str(out)).count() == 20
    numbers(spark, 3).pipe(write("json", out, schema="n long", mode="overwrite", session=spark))
    assert spark.read.json(str(out)).count() == 3


def test_an_unknown_mode_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="'replace'"):
        write("csv", "out", mode="replace")  # type: ignore[arg-type]


def test_a_flow_that_fails_writes_nothing_and_leaves_nothing(
    spark: SparkSession, tmp_path: Path, tiny: None
) -> None:
    failing = flow.range(20_000).map(lambda n: 1 // (19_999 - n))

    with pytest.raises(ZeroDivisionError):
        failing.pipe(write("csv", tmp_path / "out", schema="n long", session=spark, spool=tmp_path))

    assert list(tmp_path.iterdir()) == []


def test_an_item_that_does_not_fit_is_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SchemaMismatchError) as caught:
        flow.from_iterable([1, 2, "three"]).pipe(
            write("csv", tmp_path / "out", schema="n long", session=spark)
        )

    assert (caught.value.item_index, caught.value.field) == (2, "n")


def test_a_stream_is_not_written_as_if_it_had_an_end(spark: SparkSession, tmp_path: Path) -> None:
    rows = from_stream(spark.readStream.format("rate").load(), as_=tuple)
    for sink in (write("csv", tmp_path / "out"), to_arrow(), to_pandas()):
        with pytest.raises(UnsupportedTypeError, match="stream"):
            rows.pipe(sink)


def test_rows_that_are_too_many_for_the_memory_go_through_a_private_spool(
    spark: SparkSession, tmp_path: Path, tiny: None
) -> None:
    modes: list[int] = []

    def look(number: int) -> Pair:
        if number == 15_000:
            (folder,) = tmp_path.iterdir()
            modes.extend(stat.S_IMODE(path.stat().st_mode) for path in (folder, *files(folder)))
        return pair(number)

    df = flow.range(25_000).map(look).pipe(to_dataframe(spark, spool=tmp_path))

    assert modes == [0o700, 0o600]
    assert [row.number for row in df.collect()] == list(range(25_000))


def test_a_spool_of_write_is_removed(spark: SparkSession, tmp_path: Path, tiny: None) -> None:
    spool = tmp_path / "spool"

    flow.range(25_000).pipe(
        write("parquet", tmp_path / "out", schema=int, session=spark, spool=spool)
    )

    assert spark.read.parquet(str(tmp_path / "out")).count() == 25_000
    assert list(spool.iterdir()) == []


def test_a_spool_can_be_where_only_spark_writes(
    spark: SparkSession, tmp_path: Path, tiny: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_spool, "local_folder", lambda _: None)

    df = flow.range(25_000).pipe(
        to_dataframe(spark, schema=int, spool=(tmp_path / "spool").as_uri())
    )

    assert df.distinct().count() == 25_000
    (folder,) = (tmp_path / "spool").iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_spool_where_only_spark_writes_is_removed(
    spark: SparkSession, tmp_path: Path, tiny: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_spool, "local_folder", lambda _: None)

    flow.range(25_000).pipe(
        write("csv", tmp_path / "out", schema=int, session=spark, spool=(tmp_path / "in").as_uri())
    )

    assert sum(len(file.read_text().splitlines()) for file in files(tmp_path)) == 25_000
    assert list((tmp_path / "in").iterdir()) == []


def test_items_that_go_to_spark_wait_in_private_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    modes: list[int] = []

    def look(number: int) -> int:
        if number == 15_000:
            (folder,) = tmp_path.glob("flow-spark-*")
            modes.extend(stat.S_IMODE(path.stat().st_mode) for path in (folder, *files(folder)))
            assert folder in _spool._left_behind  # removed, even if this process ends now
        return number

    items = flow.range(25_000).map(look).pipe(on_spark(spark, partitions=2))

    assert items.map(lambda n: n).count().single() == 25_000
    assert modes == [0o700, 0o600, 0o600]
    assert list(tmp_path.glob("flow-spark-*")) == []


def test_without_a_place_for_it_too_much_is_an_error_that_names_the_way_out(
    spark: SparkSession, tiny: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_spool, "shares_disk", lambda _: False)

    with pytest.raises(SpoolError, match="spool="):
        flow.range(25_000).pipe(to_dataframe(spark, schema=int))


@pytest.mark.parametrize("limit", [1, 2**40])
def test_all_types_come_through_memory_and_through_files(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(_spool, "IN_MEMORY_BYTES", limit)

    df = flow.range(3).map(moment).pipe(to_dataframe(spark))

    rows = [dataclasses.astuple(moment(n)) for n in range(3)]
    assert list(from_dataframe(df, as_=tuple, ordered=True)) == rows


@pytest.mark.parametrize(("rows", "in_files"), [(10_000, False), (200_000, True)])
def test_more_than_a_few_thousand_rows_go_through_a_file_if_there_is_a_place(
    spark: SparkSession, tmp_path: Path, rows: int, in_files: bool
) -> None:
    df = flow.range(rows).pipe(to_dataframe(spark, schema=int, spool=tmp_path))

    assert bool(list(tmp_path.rglob("*.parquet"))) is in_files
    assert df.count() == rows


def test_the_parts_of_a_spool_are_of_one_size_so_that_tasks_can_share_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    flow.range(1_700_000).pipe(to_dataframe(spark, schema=int, spool=tmp_path))

    (file,) = tmp_path.rglob("*.parquet")
    found = pq.ParquetFile(file).metadata
    sizes = [found.row_group(part).num_rows for part in range(found.num_row_groups)]
    assert sizes == [530_000, 530_000, 530_000, 110_000]


def test_without_a_place_more_is_sent_in_memory(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_spool, "shares_disk", lambda _: False)

    assert flow.range(200_000).pipe(to_dataframe(spark, schema=int)).count() == 200_000


def test_an_empty_flow_is_a_dataframe_without_rows(spark: SparkSession) -> None:
    assert flow.range(0).pipe(to_dataframe(spark, schema=int)).collect() == []


@each_place
def test_a_flow_becomes_a_table(numbers: Any, spark: SparkSession) -> None:
    table = numbers(spark).map(pair).pipe(to_arrow(limit=10))
    frame = numbers(spark).map(pair).pipe(to_pandas())

    assert sorted(table.column("number").to_pylist()) == list(range(10))
    assert sorted(frame.number) == list(range(10))


def test_pandas_gets_all_digits_of_ints_beside_a_null_and_maps_as_dicts() -> None:
    big = 2**53 + 1
    rows: list[tuple[object, ...]] = [(big, 1, {"k": 1}, [big, None]), (None, 2, {}, [])]
    schema = pa.schema(
        [
            ("n", pa.int64()),
            ("whole", pa.int64()),
            ("m", pa.map_(pa.string(), pa.int64())),
            ("several", pa.list_(pa.int64())),
        ]
    )
    frame = flow.from_iterable(rows).pipe(to_pandas(schema=schema))
    assert int(frame["n"][0]) == big
    assert [str(kind) for kind in frame.dtypes] == ["Int64", "int64", "object", "object"]
    assert frame["m"][0] == {"k": 1}
    assert frame["several"][0][0] == big


@each_place
def test_a_table_has_a_limit_and_says_so(numbers: Any, spark: SparkSession) -> None:
    for sink in (to_arrow(limit=9), to_pandas(limit=9)):
        with pytest.raises(LimitExceededError, match="more than 9"):
            numbers(spark).map(pair).pipe(sink)


@pytest.mark.parametrize("limit", [2**31 - 2, 2**31 - 1, 10**12])
@each_place
def test_a_limit_may_be_more_than_spark_counts_to(
    numbers: Any, limit: int, spark: SparkSession
) -> None:
    assert numbers(spark).map(pair).pipe(to_arrow(limit=limit)).num_rows == 10


def test_no_more_than_the_limit_is_asked_for(spark: SparkSession) -> None:
    asked: list[int] = []

    def items() -> Iterator[int]:
        for number in range(100_000):
            asked.append(number)
            yield number

    with pytest.raises(LimitExceededError):
        flow.from_iterable(items()).pipe(to_arrow(limit=5, schema=int))

    assert len(asked) <= 6


@pytest.mark.parametrize("sink", [to_arrow, to_pandas])
def test_a_limit_is_at_least_one(sink: Any) -> None:
    with pytest.raises(ValueError, match="limit"):
        sink(limit=0)


def test_a_subscriber_writes_what_a_publisher_sends(spark: SparkSession, tmp_path: Path) -> None:
    subscriber = WriteSubscriber(spark, "parquet", tmp_path / "out", schema=Pair)

    flow.range(25_000).map(pair).subscribe(subscriber)

    assert subscriber.done.result(TIMEOUT_S) == 25_000
    assert spark.read.parquet(str(tmp_path / "out")).count() == 25_000


def test_a_subscriber_requests_as_it_writes(spark: SparkSession, tmp_path: Path) -> None:
    publisher = TestPublisher[int]()
    subscriber = WriteSubscriber(spark, "csv", tmp_path / "out", schema=int, prefetch=8)

    publisher.subscribe(subscriber)
    requested = [publisher.requested]
    for number in range(6):
        publisher.next(number)
    requested.append(publisher.requested)
    publisher.complete()

    assert subscriber.done.result(TIMEOUT_S) == 6
    assert requested == [8, 14]


def test_the_batches_of_a_subscriber_are_as_large_as_those_of_a_flow(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[int] = []
    spool = _spool.Spool.write

    def written(self: _spool.Spool, batch: ArrowBatch) -> None:
        rows.append(batch.num_rows)
        spool(self, batch)

    monkeypatch.setattr(_spool.Spool, "write", written)
    subscriber = WriteSubscriber(spark, "csv", tmp_path / "out", schema=int)
    flow.range(25_000).subscribe(subscriber)

    assert subscriber.done.result(TIMEOUT_S) == 25_000
    assert rows == [10_000, 10_000, 5_000]


def test_a_cancelled_subscriber_keeps_no_columns(spark: SparkSession, tmp_path: Path) -> None:
    publisher = TestPublisher[str]()
    subscriber = WriteSubscriber(spark, "csv", tmp_path / "out", schema=str)
    publisher.subscribe(subscriber)
    before = pa.total_allocated_bytes()
    for _ in range(100):
        publisher.next("long" * 10_000)
    held = pa.total_allocated_bytes()

    subscriber.cancel()

    assert held - before > 2**19
    assert pa.total_allocated_bytes() - before < 2**10


def test_a_subscriber_with_a_publisher_that_fails_writes_nothing(
    spark: SparkSession, tmp_path: Path, tiny: None
) -> None:
    failed = ValueError("no")
    subscriber = WriteSubscriber(
        spark, "csv", tmp_path / "out", schema=int, spool=tmp_path, prefetch=4
    )

    publisher = TestPublisher[int]()
    publisher.subscribe(subscriber)
    for number in range(4):
        publisher.next(number)
    publisher.error(failed)

    assert subscriber.done.exception(TIMEOUT_S) is failed
    assert list(tmp_path.iterdir()) == []


def test_a_subscriber_cancels_when_an_item_does_not_fit(
    spark: SparkSession, tmp_path: Path
) -> None:
    publisher = TestPublisher[Any]()
    subscriber = WriteSubscriber(spark, "csv", tmp_path / "out", schema=int, prefetch=1)

    publisher.subscribe(subscriber)
    publisher.next(1)
    publisher.next("two")

    assert publisher.cancelled
    error = subscriber.done.exception(TIMEOUT_S)
    assert isinstance(error, SchemaMismatchError)
    assert error.item_index == 1


def test_a_cancelled_subscriber_writes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    publisher = TestPublisher[int]()
    subscriber = WriteSubscriber(spark, "csv", tmp_path / "out", schema=int)
    publisher.subscribe(subscriber)

    subscriber.cancel()
    subscriber.cancel()

    assert publisher.cancelled
    with pytest.raises(CancelledError):
        subscriber.done.result(TIMEOUT_S)


def test_a_subscriber_that_is_cancelled_while_files_are_made_leaves_none(
    spark: SparkSession, tmp_path: Path, tiny: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, cancelled = threading.Event(), threading.Event()
    make = _spool.private_folder

    def make_late(inside: Path | None = None) -> Path:
        begun.set()
        assert cancelled.wait(TIMEOUT_S)
        return make(inside)

    monkeypatch.setattr(_spool, "private_folder", make_late)
    publisher = TestPublisher[int]()
    subscriber = WriteSubscriber(
        spark, "csv", tmp_path / "out", schema=int, spool=tmp_path, prefetch=1
    )
    publisher.subscribe(subscriber)
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(publisher.next, 1)
        assert begun.wait(TIMEOUT_S)
        subscriber.cancel()
        cancelled.set()
        sent.result(TIMEOUT_S)

    assert isinstance(subscriber.done.exception(TIMEOUT_S), CancelledError)
    assert publisher.cancelled
    assert list(tmp_path.iterdir()) == []


def test_a_second_subscription_is_cancelled(spark: SparkSession, tmp_path: Path) -> None:
    subscriber = WriteSubscriber(spark, "csv", tmp_path / "out", schema=int)
    first, second = TestPublisher[int](), TestPublisher[int]()

    first.subscribe(subscriber)
    second.subscribe(subscriber)

    assert (first.cancelled, second.cancelled) == (False, True)
    subscriber.cancel()


def test_a_flow_that_runs_in_another_thread_is_written_too(
    spark: SparkSession, tmp_path: Path
) -> None:
    subscriber = WriteSubscriber(spark, "csv", tmp_path / "out", schema=int)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(lambda: flow.range(10).subscribe(subscriber)).result(TIMEOUT_S)
        assert subscriber.done.result(TIMEOUT_S) == 10
    assert threading.main_thread().is_alive()
