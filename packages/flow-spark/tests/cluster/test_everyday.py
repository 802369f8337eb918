"""Everyday work with rows and streams is the same on classic Spark and Spark Connect."""

from __future__ import annotations

import asyncio
import datetime as dt
import enum
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import flow_core as flow
from flow_spark import (
    RemoteError,
    SqliteBatchStore,
    batch_writer,
    from_dataframe,
    from_stream,
    running_jobs,
    stream_source,
    union,
)
from flow_testing import TestSubscriber

from ..infrastructure.places import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(300)]

TIMEOUT_S = 60.0
SHOP = "customer string, amount long"


@dataclass(frozen=True)
class Order:
    customer: str
    amount: int


class Kind(enum.Enum):
    OPEN = "open"


class ShopError(Exception):
    """One that cannot be made again of its arguments alone."""

    def __init__(self, code: int, *, amount: int) -> None:
        super().__init__(f"shop {code} at {amount}")


def sold(order: Order) -> int:
    if order.amount == 5:
        raise ShopError(7, amount=order.amount)
    return order.amount


def pair(kept: object, n: int) -> tuple[object, int]:
    return kept, n


def orders(spark: SparkSession, count: int) -> flow.Flow[Order]:
    rows = spark.range(count).selectExpr("concat('c', id % 3) customer", "id amount")
    return from_dataframe(rows, as_=Order)


def incoming(spark: SparkSession, folder: Path, *amounts: int, files: int = 1) -> Any:
    """A stream of JSON files, one of them in each micro-batch."""
    folder.mkdir(exist_ok=True)
    for number in range(files):
        lines = (json.dumps({"customer": "a", "amount": n}) for n in amounts[number::files])
        (folder / f"{number}.json").write_text("\n".join(lines))
    reading = spark.readStream.schema(SHOP).option("maxFilesPerTrigger", 1)
    return reading.json(str(folder))


def parquet(spark: SparkSession, folder: Path) -> object:
    path = str(folder / "orders")
    flow.range(9).map(lambda n: Order(f"c{n % 3}", n)).spark.write(
        "parquet", path, schema=Order, session=spark
    )
    read = from_dataframe(spark.read.parquet(path), as_=Order)
    even = read.filter(lambda order: order.amount % 2 == 0)
    by_customer = read.reduce_by_key(lambda o: o.customer, int.__add__, lambda o: o.amount)
    return even.map(lambda order: order.amount).sum().first(), sorted(by_customer)


def written_there(spark: SparkSession, folder: Path) -> object:
    path = str(folder / "there")
    rows = from_dataframe(spark.range(100)).map(lambda n: Order("x", n))
    rows.spark.write("parquet", path, schema=Order)
    return spark.read.parquet(path).count()


def sums(spark: SparkSession, folder: Path) -> object:
    made = from_dataframe(spark.range(100)).map(lambda n: Order(f"c{n % 3}", n))
    rows = made.to_dataframe(schema=Order).groupBy("customer").sum("amount").collect()
    return sorted(map(tuple, rows))


def demand(spark: SparkSession, folder: Path) -> object:
    subscriber = TestSubscriber[int](0)
    from_dataframe(spark.range(100_000)).map(lambda n: n).subscribe(subscriber)
    subscriber.request(3)
    subscriber.await_items(3, TIMEOUT_S)
    subscriber.cancel()
    return len(subscriber.items)


def sent(spark: SparkSession, folder: Path) -> object:
    squares = flow.range(1000).on_spark(spark).map(lambda n: n * n).sum().first()
    large = flow.range(60).map(lambda n: b"x" * 1_000_000).on_spark(spark).map(len)
    return squares, sum(large)


def both(spark: SparkSession, folder: Path) -> object:
    rows = union(orders(spark, 6), orders(spark, 3))
    numbers = union(from_dataframe(spark.range(3)), from_dataframe(spark.range(2)).map(str))
    return sorted(rows.count_by_key(lambda o: o.customer)), sorted(map(str, numbers))


def closure(spark: SparkSession, folder: Path) -> object:
    table = {f"c{n}": n * 10 for n in range(100_000)}
    return sum(from_dataframe(spark.range(100)).map(lambda n: table[f"c{n}"]))


def failure(spark: SparkSession, folder: Path) -> object:
    with pytest.raises(RemoteError, match=r"(?s)ShopError: shop 7 at 5.*map\(sold\)"):
        list(orders(spark, 10).map(sold))
    return "told"


def failures_there(spark: SparkSession, folder: Path) -> object:
    rows = from_dataframe(spark.range(10)).map(lambda n: 1 // (n - 5))
    told = []
    for use in (
        lambda: list(rows),
        lambda: list(rows.count_by_key(lambda n: n)),
        lambda: rows.to_arrow(schema="n long"),
        lambda: rows.spark.write("parquet", str(folder / "never"), schema="n long"),
    ):
        with pytest.raises(Exception, match=r"(?s)division.*zero.*in stage 1 of .: map") as caught:
            use()
        told.append(str(caught.value).count("stacktrace"))
    return told


def once(spark: SparkSession, folder: Path) -> object:
    rows = incoming(spark, folder / "in", *range(20), files=2)

    def add(batch_id: int, items: Iterator[int], db: sqlite3.Connection) -> None:
        db.execute("CREATE TABLE IF NOT EXISTS sums (n INTEGER)")
        db.execute("INSERT INTO sums VALUES (?)", (sum(items),))

    seen = []
    for _ in range(2):
        store = SqliteBatchStore(str(folder / "store"))
        stream = from_stream(
            rows, as_=Order, checkpoint=str(folder / "state"), trigger="available-now"
        )
        done = stream.map(lambda order: order.amount).spark.for_each_batch_once(store, add)
        seen.append([batch.items for batch in done])
        store.close()
    with closing(sqlite3.connect(folder / "store")) as db:
        return seen, db.execute("SELECT sum(n) FROM sums").fetchone()


def left_and_read_again(spark: SparkSession, folder: Path) -> object:
    rows = incoming(spark, folder / "in", *range(20), files=4)

    def amounts() -> flow.Flow[int]:
        where = str(folder / "state")
        stream = from_stream(rows, as_=Order, checkpoint=where, trigger="available-now")
        return stream.map(lambda order: order.amount)

    first = []
    for amount in amounts():
        first.append(amount)
        if len(first) == 7:
            break
    return sorted({*first, *amounts()}) == list(range(20))


def failing_stream(spark: SparkSession, folder: Path) -> object:
    rows = incoming(spark, folder / "in", *range(20))
    where = str(folder / "state")
    stream = from_stream(rows, as_=Order, checkpoint=where, trigger="available-now")
    with pytest.raises(RemoteError, match=r"(?s)ShopError: shop 7 at 5.*map\(sold\)"):
        list(stream.map(sold))
    return "told"


def totals(spark: SparkSession, folder: Path) -> object:
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    rows = incoming(spark, folder / "in", *range(20))
    path, where = str(folder / "out"), str(folder / "state")
    stream = from_stream(rows, as_=Order, checkpoint=where, trigger="available-now")
    states = stream.spark.scan_by_key(lambda o: o.customer, lambda s, o: s + o.amount, 0)
    done = list(states.spark.write_each(batch_writer("parquet", path), schema=SHOP))
    written = spark.read.parquet(path)
    return [batch.items for batch in done], written.agg({"amount": "max"}).collect()[0][0]


def through_a_spool(spark: SparkSession, folder: Path) -> object:
    made = flow.range(10).map(lambda n: Order("x", n))
    rows = stream_source(made, spark, spool=str(folder / "spool"), schema=Order)
    where = str(folder / "state")
    stream = from_stream(rows, as_=Order, checkpoint=where, trigger="available-now")
    return sorted(order.amount for order in stream)


def ends(spark: SparkSession, folder: Path) -> object:
    rows = from_dataframe(spark.range(100)).map(lambda n: n % 7)
    return list(rows.distinct().sort()), rows.count().first(), rows.to_set().first()


def tables(spark: SparkSession, folder: Path) -> object:
    rows = from_dataframe(spark.range(10)).map(lambda n: Order("x", n))
    return rows.to_arrow(schema=Order).num_rows, len(rows.to_pandas(schema=Order))


def of_spark(spark: SparkSession, folder: Path) -> object:
    from pyspark.sql.functions import col, udf

    spark.range(5).createOrReplaceTempView("everyday")
    doubled = spark.range(5).select(udf(lambda n: n * 2, "long")("id"))
    few = from_dataframe(spark.range(10)).spark.where(col("id") > 6).map(lambda n: n)
    return sum(from_dataframe(spark.table("everyday"))), sum(from_dataframe(doubled)), sorted(few)


def in_order(spark: SparkSession, folder: Path) -> object:
    return list(from_dataframe(spark.range(5).orderBy("id"), ordered=True).scan(int.__add__, 0))


def together(spark: SparkSession, folder: Path) -> object:
    rows = from_dataframe(spark.range(20_000)).map(lambda n: n)
    pairs = flow.zip(rows.hide(), rows.hide())
    counts = 0
    for position, _ in enumerate(rows):
        if position in (3, 5000):  # a job of Spark's own within the loop
            counts += spark.range(10).count()
    return pairs.count().first(), counts


def free_again(spark: SparkSession, folder: Path) -> object:
    items = iter(from_dataframe(spark.range(0, 100_000, 1, 8)).map(lambda n: n))
    next(items)
    names = {job.name for job in running_jobs(spark)}
    items.close()  # type: ignore[attr-defined]
    return names <= {"flow | map"}, spark.range(10).repartition(2).count()


def times(spark: SparkSession, folder: Path) -> object:
    texts = "timestamp'2024-07-01 12:00:00' t, timestamp_ntz'2024-07-01 12:00:00' n"
    ((aware, naive),) = from_dataframe(spark.range(1).selectExpr(*texts.split(", ")))
    noon, path = dt.datetime(2024, 7, 1, 12, tzinfo=dt.UTC), str(folder / "times")
    flow.just((noon,)).spark.write("parquet", path, schema="t timestamp", session=spark)
    return (
        aware == noon,
        naive == noon.replace(tzinfo=None),
        *from_dataframe(spark.read.parquet(path)).map(lambda time: time == noon),
    )


def own_classes(spark: SparkSession, folder: Path) -> object:
    class Local:
        def __init__(self, n: int) -> None:
            self.n = n

    rows = from_dataframe(spark.range(3))
    locals_ = sorted(item.n for item in rows.map(lambda n: Local(n + 3)))
    return locals_, {item is Kind.OPEN for item in rows.map(lambda _: Kind.OPEN)}


def refused(spark: SparkSession, folder: Path) -> object:
    told = []
    for kept in (threading.Lock(), spark):
        with pytest.raises(Exception, match="cannot be: create them inside the function") as caught:
            list(from_dataframe(spark.range(2)).map(partial(pair, kept)))
        told.append(type(caught.value).__name__)
    return told


def nothing(spark: SparkSession, folder: Path) -> object:
    none = from_dataframe(spark.range(0))
    return list(none.map(str)), list(flow.empty().on_spark(spark)), none.count().first()


def in_a_loop(spark: SparkSession, folder: Path) -> object:
    async def count() -> int:
        return len([n async for n in from_dataframe(spark.range(1000)).map(lambda n: n)])

    return asyncio.run(count())


JOBS: dict[Callable[[SparkSession, Path], object], object] = {
    parquet: (20, [("c0", 9), ("c1", 12), ("c2", 15)]),
    written_there: 100,
    sums: [("c0", 1683), ("c1", 1617), ("c2", 1650)],
    demand: 3,
    sent: (332_833_500, 60_000_000),
    both: ([("c0", 3), ("c1", 3), ("c2", 3)], ["0", "0", "1", "1", "2"]),
    closure: 49_500,
    failure: "told",
    failures_there: [0, 0, 0, 0],
    once: ([[10, 10], []], (190,)),
    left_and_read_again: True,
    failing_stream: "told",
    totals: ([20], 190),
    through_a_spool: list(range(10)),
    ends: ([0, 1, 2, 3, 4, 5, 6], 100, {0, 1, 2, 3, 4, 5, 6}),
    tables: (10, 10),
    of_spark: (10, 20, [7, 8, 9]),
    in_order: [0, 1, 3, 6, 10],
    together: (20_000, 20),
    free_again: (True, 10),
    times: (True, True, True),
    own_classes: ([3, 4, 5], {True}),
    refused: ["NotPicklableError", "NotPicklableError"],
    nothing: ([], [], 0),
    in_a_loop: 1000,
}


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.__name__)
@pytest.mark.parametrize("place", ["local", "connect"], indirect=True)
def test_a_job_of_every_day_gives_what_it_says(
    place: Place, job: Callable[[SparkSession, Path], object], tmp_path: Path
) -> None:
    assert job(place.spark, tmp_path) == JOBS[job]
