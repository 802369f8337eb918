"""Flows on Spark beside hand-written code for the same work; one table for each question.

* flights: the stages of the flights example, absorbed, and a hand-written `mapInArrow`.
* stages: a map and a filter over rows that Spark makes, of one column and of three, in batches of
  10,000 and of 50,000; counted, and returned to Spark as columns.
* in: the rows of a DataFrame in this process, one by one.
* parts: the same, in 4, 40 and 200 partitions.
* soon: a few rows of 200 partitions, or their number; per job, whatever --rows says.
* out: items of this process as a DataFrame, and written to Parquet.
* columns: one of 19 columns of Parquet, as tuples; 4 % of its rows; and named tuples, summed by a
  key.
* shuffle: a value per key, at several numbers of shuffle partitions.
* growth: the map and the filter, counted, of more and more rows.

The marks are for wall time; next to it is the CPU time of all processes, including Spark's.

    python benchmarks/bench_spark.py [QUESTION ...] [--rows N] [--rounds N]
"""

from __future__ import annotations

import argparse
import functools
import gc
import importlib.util
import itertools
import operator
import os
import queue
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import arrow_udf, col
from pyspark.sql.types import BooleanType, LongType
from rich.console import Console
from rich.table import Table

import flow_core as flow
from flow_core import CoreSubscriber, Subscription
from flow_spark import WriteSubscriber, from_dataframe, session, to_dataframe, write
from rounds import Case, Curve, grow, ratios, record_cases, settings

SMALL, LARGE = 10_000, 50_000
"""The numbers of rows in a batch."""
AT_A_TIME = 500
"""Rows that hand-written code turns into columns at once: the fastest of 250 to 50,000."""
AS_SPARK = 10_000
"""The rows that Spark itself takes at once, the number that most people would write."""
SELDOM = 6
"""The slow ways without a mark are timed once in this many rounds."""
REPEAT = 3
"""Copies of the 336,776 flights in the file, so that Spark's fixed time per job counts less."""


# -- timing


@dataclass
class Way:
    """One way to do the work."""

    name: str
    work: Callable[[], object]
    mark: float | None = None
    """The most wall time that it may take, as a ratio to the floor's."""
    every: int = 1
    """It is timed once in this many rounds: more than 1 if it is slow and has no mark."""
    wall: list[float] = field(default_factory=list[float])
    cpu: list[float] = field(default_factory=list[float])


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and all below it, including ended ones."""
    times: dict[int, int] = {}
    below: defaultdict[int, list[int]] = defaultdict(list)
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        pid = int(stat.parent.name)
        times[pid] = sum(map(int, fields[11:15]))
        below[int(fields[1])].append(pid)
    ticks, waiting = 0, [os.getpid()]
    while waiting:
        pid = waiting.pop()
        ticks += times[pid]
        waiting += below[pid]
    return ticks / os.sysconf("SC_CLK_TCK")


def compare(title: str, groups: dict[str, Sequence[Way]], *, items: int, rounds: int) -> None:
    """Time the ways of all groups in turn, and print one table; the first of a group is its floor.

    The ways of a group have to return equal results in each round. One more round comes first and
    is not counted. Every second round runs in the opposite order, because a way may have to pay for
    collecting the garbage that the way before it left in the JVM.
    """
    rounds = settings.rounds or rounds
    expected: dict[str, object] = {}
    for name, ways in groups.items():
        for way in ways:
            same(name, way, expected, way.work())
    for number in range(rounds):
        for name, ways in groups.items():
            for way in reversed(ways) if number % 2 else ways:
                if number % way.every == 0:
                    gc.collect()
                    cpu, wall = cpu_seconds(), time.perf_counter()
                    result = way.work()
                    way.wall.append(time.perf_counter() - wall)
                    way.cpu.append(cpu_seconds() - cpu)
                    same(name, way, expected, result)
    for name, ways in groups.items():
        record_cases(
            title,
            f"spark: {name}",
            [as_case(way) for way in ways],
            items=items,
            rounds=rounds,
            clock=time.perf_counter,
        )
    table = Table(title=title, title_justify="left")
    for heading in ("case", "wall, ns", "ratio", "spread", "mark", "CPU, ns", "ratio"):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    for name, ways in groups.items():
        table.add_row(f"[bold]{name}[/bold]")
        add_rows(table, ways, items)
        table.add_section()
    console = Console(width=100)
    console.print(table)
    console.print(f"[dim]per item; {items:,} items, {rounds} interleaved rounds[/dim]\n")


def same(name: str, way: Way, expected: dict[str, object], result: object) -> None:
    """Check that a result equals the first one of its group."""
    if result != expected.setdefault(name, result):
        raise AssertionError(f"{name}: {way.name} gave {result}, not {expected[name]}")


def as_case(way: Way) -> Case:
    """Return a way as a case for the report."""
    ours = way.mark is not None or way.name.startswith("from_dataframe")
    by = "flow" if ours else "pyspark"
    return Case(way.name, way.work, way.mark, times=way.wall, by=by, every=way.every)


def add_rows(table: Table, ways: Sequence[Way], items: int) -> None:
    floor = ways[0]
    for way in ways:
        wall, cpu = statistics.median(way.wall), statistics.median(way.cpu)
        by_wall = ratios(way.wall, floor.wall, way.every)
        by_cpu = ratios(way.cpu, floor.cpu, way.every)
        ratio = statistics.median(by_wall)
        rounds = f", {len(way.wall)} rounds" if len(way.wall) != len(floor.wall) else ""
        verdict = ""
        if way.mark is not None:
            verdict = f"{'≤' if ratio <= way.mark else '>'} {way.mark}"
        table.add_row(
            f"  {way.name}{rounds}",
            f"{wall / items * 1e9:.0f}",
            f"{ratio:.2f}",
            f"{min(by_wall):.2f}–{max(by_wall):.2f}",
            verdict,
            f"{cpu / items * 1e9:.0f}",
            f"{statistics.median(by_cpu):.2f}",
        )


# -- flights


def flights_module() -> ModuleType:
    path = Path(__file__).parent.parent / "examples" / "flights.py"
    spec = importlib.util.spec_from_file_location("flights", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["flights"] = module
    spec.loader.exec_module(module)
    # Executors cannot import an example by its name.
    cloudpickle.register_pickle_by_value(module)
    return module


def write_rows(flights: ModuleType, path: Path) -> int:
    rows = list(flights.FlightRows(flights.data_file())) * REPEAT
    numbers, lines = zip(*rows, strict=True)
    table = pa.table({"number": pa.array(numbers, pa.int64()), "line": pa.array(lines)})
    pq.write_table(table, path, row_group_size=50_000)
    return len(rows)


def flights_by_hand(df: DataFrame, flights: ModuleType) -> int:
    parse, departed, delay_of = flights.parse, flights.departed, flights.delay_of

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        total = 0
        for batch in batches:
            for row in zip(*[column.to_pylist() for column in batch.columns], strict=True):
                flight = parse(row)
                if departed(flight) and delay_of(flight):
                    total += 1
        yield pa.RecordBatch.from_arrays([pa.array([total], pa.int64())], ["n"])

    return sum(row[0] for row in df.mapInArrow(count, "n long").collect())


def flights_by_absorption(df: DataFrame, flights: ModuleType) -> int:
    return flights.delays(from_dataframe(df, as_=tuple)).count().single()


def flights_by_rdd(df: DataFrame, flights: ModuleType) -> int:
    parse, departed, delay_of = flights.parse, flights.departed, flights.delay_of
    return df.rdd.map(tuple).map(parse).filter(departed).map(delay_of).count()


def compare_flights(spark: SparkSession, rows: int, rounds: int) -> None:
    flights = flights_module()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        items = write_rows(flights, path)
        df = spark.read.parquet(str(path))
        ways = (
            Way("mapInArrow by hand", lambda: flights_by_hand(df, flights)),
            Way("absorbed stages", lambda: flights_by_absorption(df, flights), 1.05),
            Way("DataFrame.rdd", lambda: flights_by_rdd(df, flights)),
        )
        compare("flights on local[2]", {"parse, filter, derive": ways}, items=items, rounds=rounds)


# -- stages


def grown(n: int) -> int:
    return n * 3 + 1


def kept(n: int) -> bool:
    return n % 2 == 0


def grown_row(row: tuple[int, float, str]) -> tuple[int, str]:
    return row[0] * 3 + 1, row[2]


def kept_row(row: tuple[int, str]) -> bool:
    return row[0] % 2 == 0


def one_and_three(spark: SparkSession, rows: int) -> tuple[DataFrame, DataFrame]:
    one = spark.range(rows)
    half, text = (col("id") / 2).alias("half"), col("id").cast("string").alias("text")
    return one, one.select("id", half, text)


def one_counted_by_hand(df: DataFrame) -> int:
    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        total = 0
        for batch in batches:
            total += len([y for n in batch.column(0).to_pylist() if kept(y := grown(n))])
        yield pa.RecordBatch.from_arrays([pa.array([total], pa.int64())], ["n"])

    return sum(row[0] for row in df.mapInArrow(count, "n long").collect())


def three_counted_by_hand(df: DataFrame) -> int:
    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        total = 0
        for batch in batches:
            for row in zip(*[column.to_pylist() for column in batch.columns], strict=True):
                if kept_row(grown_row(row)):
                    total += 1
        yield pa.RecordBatch.from_arrays([pa.array([total], pa.int64())], ["n"])

    return sum(row[0] for row in df.mapInArrow(count, "n long").collect())


def one_given_by_hand(df: DataFrame) -> tuple[int, int]:
    def given(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            found = [y for n in batch.column(0).to_pylist() if kept(y := grown(n))]
            yield pa.RecordBatch.from_arrays([pa.array(found, pa.int64())], ["n"])

    return summed(df.mapInArrow(given, "n long"))


def three_given_by_hand(df: DataFrame) -> tuple[int, int]:
    def given(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = zip(*[column.to_pylist() for column in batch.columns], strict=True)
            numbers, texts = zip(*[y for row in rows if kept_row(y := grown_row(row))], strict=True)
            columns = [pa.array(numbers, pa.int64()), pa.array(texts, pa.string())]
            yield pa.RecordBatch.from_arrays(columns, ["n", "text"])

    return summed(df.mapInArrow(given, "n long, text string"))


def summed(df: DataFrame) -> tuple[int, int]:
    """Make Spark compute all rows, with a small result: their number and a sum."""
    count, total = df.selectExpr("count(*)", "sum(n)").collect()[0]
    return count, total


@arrow_udf(LongType())
def grown_batch(numbers: pa.Array) -> pa.Array:
    return pa.array([grown(n) for n in numbers.to_pylist()], pa.int64())


@arrow_udf(BooleanType())
def kept_batch(numbers: pa.Array) -> pa.Array:
    return pa.array([kept(n) for n in numbers.to_pylist()], pa.bool_())


def by_udfs(df: DataFrame) -> DataFrame:
    columns = [grown_batch(df.columns[0]).alias("n"), *df.columns[2:]]
    return df.select(*columns).filter(kept_batch("n"))


class Stages:
    """The map and the filter on rows of one column and of three."""

    def __init__(self, spark: SparkSession, rows: int) -> None:
        self.spark = spark
        self.one, self.three = one_and_three(spark, rows)

    def with_batches(self, size: int, work: Callable[[], object]) -> Callable[[], object]:
        def run() -> object:
            self.spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(size))
            return work()

        return run

    def one_flow(self) -> flow.Flow[int]:
        return from_dataframe(self.one).map(grown).filter(kept)

    def three_flow(self) -> flow.Flow[tuple[int, str]]:
        return from_dataframe(self.three, as_=tuple).map(grown_row).filter(kept_row)

    def one_given(self) -> tuple[int, int]:
        return summed(self.one_flow().pipe(to_dataframe(schema="n long")))

    def three_given(self) -> tuple[int, int]:
        return summed(self.three_flow().pipe(to_dataframe(schema="n long, text string")))

    def one_by_rdd(self) -> int:
        return self.one.rdd.map(operator.itemgetter(0)).map(grown).filter(kept).count()

    def three_by_rdd(self) -> int:
        return self.three.rdd.map(tuple).map(grown_row).filter(kept_row).count()


def compare_stages(spark: SparkSession, rows: int, rounds: int) -> None:
    stages = Stages(spark, rows)
    one, three = stages.one, stages.three
    groups: dict[str, Sequence[Way]] = {}
    for size in (SMALL, LARGE):
        at = functools.partial(stages.with_batches, size)
        counted = [
            Way("mapInArrow by hand", at(lambda: one_counted_by_hand(one))),
            Way("absorbed stages", at(lambda: stages.one_flow().count().single()), 1.05),
            Way("scalar Arrow UDFs", at(lambda: by_udfs(one).count()), every=SELDOM),
        ]
        counted_of_three = [
            Way("mapInArrow by hand", at(lambda: three_counted_by_hand(three))),
            Way("absorbed stages", at(lambda: stages.three_flow().count().single()), 1.05),
            Way("scalar Arrow UDFs", at(lambda: by_udfs(three).count()), every=SELDOM),
        ]
        if size == SMALL:  # an RDD has no batches
            counted.append(Way("DataFrame.rdd", stages.one_by_rdd, every=SELDOM))
            counted_of_three.append(Way("DataFrame.rdd", stages.three_by_rdd, every=SELDOM))
        groups[f"counted, 1 column, batches of {size:,}"] = counted
        groups[f"counted, 3 columns, batches of {size:,}"] = counted_of_three
        groups[f"given back, 1 column, batches of {size:,}"] = (
            Way("mapInArrow by hand", at(lambda: one_given_by_hand(one))),
            Way("absorbed stages", at(stages.one_given), 1.05),
        )
        groups[f"given back, 3 columns, batches of {size:,}"] = (
            Way("mapInArrow by hand", at(lambda: three_given_by_hand(three))),
            Way("absorbed stages", at(stages.three_given), 1.05),
        )
    compare("a map and a filter, on local[2]", groups, items=rows, rounds=rounds)


# -- in


def consumed(items: Iterable[Any]) -> tuple[int, int]:
    """Read each row in this process; return their number and the sum of the first column."""
    count = total = 0
    for item in items:
        count += 1
        total += item if type(item) is int else item[0]
    return count, total


def rows_of(batches: Iterable[pa.RecordBatch]) -> Iterator[Any]:
    """Return the rows as cheaply as Python can: no Python frame runs per row."""

    def rows(batch: pa.RecordBatch) -> Iterable[Any]:
        columns = [column.to_pylist() for column in batch.columns]
        return columns[0] if len(columns) == 1 else zip(*columns, strict=True)

    return itertools.chain.from_iterable(map(rows, batches))


def pushing_to(address: tuple[str, int]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the function for ``mapInArrow``, which checks and retries nothing, nor ends early."""

    def push(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = 0
        with socket.create_connection(address) as connection, connection.makefile("wb") as file:
            writer = None
            for batch in batches:
                if writer is None:
                    writer = pa.ipc.new_stream(file, batch.schema)
                writer.write_batch(batch)
                rows += batch.num_rows
            if writer is not None:
                writer.close()
        yield pa.RecordBatch.from_arrays([pa.array([rows], pa.int64())], ["n"])

    return push


def pushed_in_turn(df: DataFrame) -> Iterator[pa.RecordBatch]:
    """Yield batches of more partitions than slots: one thread each reads a few batches ahead."""
    listener = socket.create_server(("127.0.0.1", 0))
    batches: queue.Queue[pa.RecordBatch | None] = queue.Queue(8)

    def read(connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as file:
            for batch in pa.ipc.open_stream(file):
                batches.put(batch)

    def serve() -> None:
        job = threading.Thread(
            target=df.mapInArrow(pushing_to(listener.getsockname()), "n long").collect
        )
        job.start()
        readers = []
        for _ in range(df.rdd.getNumPartitions()):
            readers.append(threading.Thread(target=read, args=[listener.accept()[0]]))
            readers[-1].start()
        for thread in (*readers, job):
            thread.join()
        batches.put(None)

    server = threading.Thread(target=serve)
    server.start()
    yield from iter(batches.get, None)
    server.join()
    listener.close()


def pushed_by_hand(df: DataFrame) -> Iterator[pa.RecordBatch]:
    """Yield batches of as many partitions as there are slots, read in turn."""
    listener = socket.create_server(("127.0.0.1", 0))
    push = pushing_to(listener.getsockname())
    job = threading.Thread(target=df.mapInArrow(push, "n long").collect)
    job.start()
    files = [listener.accept()[0].makefile("rb") for _ in range(df.rdd.getNumPartitions())]
    readers = [iter(pa.ipc.open_stream(file)) for file in files]
    while readers:
        for reader in tuple(readers):
            batch = next(reader, None)
            if batch is None:
                readers.remove(reader)
            else:
                yield batch
    job.join()
    for file in files:
        file.close()
    listener.close()


def told(items: Iterable[Any]) -> tuple[int, int]:
    """Do the same as `consumed` by a function that is called with each item."""
    count = total = 0

    def on_next(item: Any) -> None:
        nonlocal count, total
        count += 1
        total += item if type(item) is int else item[0]

    for item in items:
        on_next(item)
    return count, total


def subscribed(items: flow.Flow[Any]) -> tuple[int, int]:
    """Do the same as `told` by a flow."""
    count = total = 0
    done = threading.Event()
    failed: list[BaseException] = []

    def on_next(item: Any) -> None:
        nonlocal count, total
        count += 1
        total += item if type(item) is int else item[0]

    def on_error(error: BaseException) -> None:
        failed.append(error)
        done.set()

    items.subscribe(on_next, on_error, done.set)
    done.wait()
    if failed:
        raise failed[0]
    return count, total


def compare_in(spark: SparkSession, rows: int, rounds: int) -> None:
    groups: dict[str, Sequence[Way]] = {}
    one, three = one_and_three(spark, rows)
    for name, df in (("1 column", one), ("3 columns", three)):

        def by_hand(df: DataFrame = df) -> tuple[int, int]:
            return consumed(rows_of(pushed_by_hand(df)))

        def by_hand_told(df: DataFrame = df) -> tuple[int, int]:
            return told(rows_of(pushed_by_hand(df)))

        def by_arrow(df: DataFrame = df) -> tuple[int, int]:
            return consumed(rows_of(df.toArrow().to_batches()))

        def by_flow(df: DataFrame = df) -> tuple[int, int]:
            return consumed(from_dataframe(df))

        def by_subscriber(df: DataFrame = df) -> tuple[int, int]:
            return subscribed(from_dataframe(df))

        def by_local_iterator(df: DataFrame = df) -> tuple[int, int]:
            return consumed(df.toLocalIterator())

        groups[name] = (
            Way("pushed over TCP, by hand", by_hand),
            Way("toArrow(), all in memory", by_arrow),
            Way("from_dataframe, iterated", by_flow, 1.1),
        )
        groups[f"{name}, beside what PySpark has for it"] = (
            Way("toLocalIterator()", by_local_iterator),
            Way("from_dataframe, iterated", by_flow, 0.2),
        )
        groups[f"{name}, to a subscriber"] = (
            Way("request(1000), for a thousand items", functools.partial(requesting, df, 1_000)),
            Way("request(1), for each item", functools.partial(requesting, df, 1), 1.3),
        )
        groups[f"{name}, to a function"] = (
            Way("pushed over TCP, by hand", by_hand_told),
            Way("from_dataframe, subscribed", by_subscriber, 1.1),
        )
    compare("rows of a DataFrame, taken one by one", groups, items=rows, rounds=rounds)


def compare_parts(spark: SparkSession, rows: int, rounds: int) -> None:
    groups: dict[str, Sequence[Way]] = {}
    for partitions in (4, 40, 200):
        df = spark.range(0, rows, 1, partitions)

        def by_hand(df: DataFrame = df) -> tuple[int, int]:
            return consumed(rows_of(pushed_in_turn(df)))

        def by_flow(df: DataFrame = df) -> tuple[int, int]:
            return consumed(from_dataframe(df))

        groups[f"{partitions} partitions"] = (
            Way("pushed over TCP, by hand", by_hand),
            Way("from_dataframe, iterated", by_flow, 1.05),
        )
    compare("rows of many partitions, on local[2]", groups, items=rows, rounds=rounds)


def compare_soon(spark: SparkSession, _: int, rounds: int) -> None:
    """Time each way ten times in a round, because one run takes only about 50 ms."""
    times = 10
    df = spark.range(0, 200_000, 1, 200)

    def ten(rows: Iterable[Any]) -> int:
        return len(list(itertools.islice(rows, 10)))

    ways: dict[str, tuple[str, Callable[[], object], str, Callable[[], object]]] = {
        "the first row": (
            "DataFrame.first()",
            lambda: df.take(1)[0][0],
            "first()",
            lambda: from_dataframe(df).first(),
        ),
        "ten rows": (
            "DataFrame.take(10)",
            lambda: len(df.take(10)),
            "take(10)",
            lambda: from_dataframe(df).take(10).count().first(),
        ),
        "how many there are": (
            "DataFrame.count()",
            df.count,
            "count()",
            lambda: from_dataframe(df).count().first(),
        ),
        "an iteration that ends after ten rows": (
            "toLocalIterator()",
            lambda: ten(df.toLocalIterator()),
            "from_dataframe, iterated",
            lambda: ten(from_dataframe(df)),
        ),
        "ten of what a function gives": (
            "DataFrame.rdd.map().take(10)",
            lambda: len(df.rdd.map(lambda row: grown(row[0])).take(10)),
            "map(), take(10)",
            lambda: from_dataframe(df).map(grown).take(10).count().first(),
        ),
    }

    def often(work: Callable[[], object]) -> Callable[[], object]:
        return lambda: [work() for _ in range(times)]

    groups: dict[str, Sequence[Way]] = {
        name: (Way(floor, often(by_spark)), Way(ours, often(by_flow), 1.3))
        for name, (floor, by_spark, ours, by_flow) in ways.items()
    }
    compare("what ends soon, of 200 partitions", groups, items=times, rounds=rounds)


class Requesting(CoreSubscriber[Any]):
    """Adds up its items, and requests that many at a time."""

    def __init__(self, at_a_time: int) -> None:
        self.at_a_time = self.left = at_a_time
        self.count = 0
        self.ended = threading.Event()

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription
        subscription.request(self.at_a_time)

    def on_next(self, item: Any, /) -> None:
        self.count += 1
        self.left -= 1
        if not self.left:
            self.left = self.at_a_time
            self.subscription.request(self.at_a_time)

    def on_error(self, error: BaseException, /) -> None:
        raise error

    def on_complete(self) -> None:
        self.ended.set()


def requesting(df: DataFrame, at_a_time: int) -> int:
    subscriber = Requesting(at_a_time)
    from_dataframe(df).subscribe(subscriber)
    subscriber.ended.wait()
    return subscriber.count


# -- out


def made(n: int) -> tuple[int, float, str]:
    return n, n / 2, str(n)


COLUMNS = "n long, half double, text string"
ROW_GROUP = 500_000
ARROW = pa.schema([("n", pa.int64()), ("half", pa.float64()), ("text", pa.string())])


def batch_by_hand(items: list[tuple[int, float, str]]) -> pa.RecordBatch:
    columns = zip(*items, strict=True)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, ARROW.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW)


def batches_by_hand(rows: int, at_a_time: int = AT_A_TIME) -> Iterator[pa.RecordBatch]:
    items = map(made, range(rows))
    while chunk := list(itertools.islice(items, at_a_time)):
        yield batch_by_hand(chunk)


class HandSpool:
    """A spool of one Parquet file, sufficient for a program that does nothing else."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "spool.parquet"
        self._writer = pq.ParquetWriter(
            self._file, ARROW, compression="none", use_dictionary=False, write_statistics=False
        )
        self._group: list[pa.RecordBatch] = []
        self._rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        self._group.append(batch)
        self._rows += batch.num_rows
        if self._rows >= ROW_GROUP:
            self._flush()

    def _flush(self) -> None:
        self._writer.write_table(pa.Table.from_batches(self._group))
        self._group.clear()
        self._rows = 0

    def frame(self, spark: SparkSession) -> DataFrame:
        if self._group:
            self._flush()
        self._writer.close()
        return spark.read.schema(COLUMNS).parquet(str(self._file))


def spooled_by_hand(
    spark: SparkSession, rows: int, folder: Path, at_a_time: int = AT_A_TIME
) -> DataFrame:
    spool = HandSpool(folder)
    for batch in batches_by_hand(rows, at_a_time):
        spool.write(batch)
    return spool.frame(spark)


def told_by_hand(spark: SparkSession, rows: int, folder: Path) -> DataFrame:
    """Do the same by a function that is called with each item, as a subscriber is."""
    spool, items = HandSpool(folder), list[tuple[int, float, str]]()

    def on_next(item: tuple[int, float, str]) -> None:
        items.append(item)
        if len(items) == AT_A_TIME:
            spool.write(batch_by_hand(items))
            items.clear()

    for n in range(rows):
        on_next(made(n))
    if items:
        spool.write(batch_by_hand(items))
    return spool.frame(spark)


def compare_out(spark: SparkSession, rows: int, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def by_hand() -> tuple[int, int]:
            return summed(spooled_by_hand(spark, rows, folder))

        def by_hand_as_spark() -> tuple[int, int]:
            return summed(spooled_by_hand(spark, rows, folder, AS_SPARK))

        def by_table() -> tuple[int, int]:
            table = pa.Table.from_batches(batches_by_hand(rows)).combine_chunks()
            return summed(spark.createDataFrame(table))

        def by_flow() -> tuple[int, int]:
            items = flow.range(rows).map(made)
            return summed(items.pipe(to_dataframe(spark, schema=COLUMNS)))

        def written(path: Path) -> int:
            return sum(pq.read_metadata(file).num_rows for file in path.glob("*.parquet"))

        def written_by_hand() -> int:
            df = spooled_by_hand(spark, rows, folder)
            df.write.mode("overwrite").parquet(str(folder / "hand"))
            return written(folder / "hand")

        def written_by_function() -> int:
            df = told_by_hand(spark, rows, folder)
            df.write.mode("overwrite").parquet(str(folder / "hand"))
            return written(folder / "hand")

        def written_by_operator() -> int:
            path = folder / "flow"
            items = flow.range(rows).map(made)
            items.pipe(write("parquet", path, mode="overwrite", schema=COLUMNS, session=spark))
            return written(folder / "flow")

        def written_by_subscriber() -> int:
            subscriber = WriteSubscriber(
                spark, "parquet", folder / "subscriber", schema=COLUMNS, mode="overwrite"
            )
            flow.range(rows).map(made).subscribe(subscriber)
            subscriber.done.result()
            return written(folder / "subscriber")

        groups: dict[str, Sequence[Way]] = {
            "a DataFrame, summed": (
                Way("Parquet spool, by hand", by_hand),
                Way(f"Parquet spool, by hand, {AS_SPARK:,} rows at once", by_hand_as_spark),
                Way("createDataFrame(pyarrow.Table)", by_table),
                Way("to_dataframe", by_flow, 1.1),
            ),
            "Parquet files, written by Spark": (
                Way("Parquet spool, by hand", written_by_hand),
                Way("write", written_by_operator, 1.1),
            ),
            "Parquet files, written by Spark, by a function of each item": (
                Way("Parquet spool, by hand", written_by_function),
                Way("WriteSubscriber", written_by_subscriber, 1.1),
            ),
        }
        compare("tuples of this process, sent to Spark", groups, items=rows, rounds=rounds)


# -- shuffle


def compare_shuffle(spark: SparkSession, rows: int, rounds: int) -> None:
    few, many = 1_000, rows // 4

    def at(partitions: int, keys: int) -> Callable[[], object]:
        def run() -> object:
            spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
            pairs = from_dataframe(spark.range(rows)).reduce_by_key(
                lambda n: n % keys, operator.add
            )
            return summed(pairs.map(lambda pair: pair[1]).pipe(to_dataframe(schema="n long")))

        return run

    groups: dict[str, Sequence[Way]] = {
        f"{keys:,} keys": [
            Way(f"{partitions} shuffle partitions", at(partitions, keys))
            for partitions in (200, 32, 8, 4, 2)
        ]
        for keys in (few, many)
    }
    compare("the sum of each key, on local[2]", groups, items=rows, rounds=rounds)


# -- growth


class Keyed(NamedTuple):
    """A row with a key."""

    key: int
    value: int
    text: str


def totals_by_hand(df: DataFrame) -> dict[int, int]:
    """Return the sum of each key: a dict in each partition, and one here."""

    def sums(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        totals: dict[int, int] = {}
        for batch in batches:
            keys, values = batch.column("key").to_pylist(), batch.column("value").to_pylist()
            for key, value in zip(keys, values, strict=True):
                totals[key] = totals.get(key, 0) + value
        yield pa.RecordBatch.from_pydict({"k": list(totals), "v": list(totals.values())})

    found: dict[int, int] = {}
    for key, value in df.select("key", "value").mapInArrow(sums, "k long, v long").collect():
        found[key] = found.get(key, 0) + value
    return found


def compare_columns(spark: SparkSession, rows: int, rounds: int) -> None:
    """Compare flows over Parquet that use few of its columns."""
    with tempfile.TemporaryDirectory() as folder:
        kinds = ("id * {}", "id / {}", "concat('text', id % {})")
        wide = [f"{kinds[i % 3].format(i + 1)} as c{i}" for i in range(19)]
        spark.range(rows).selectExpr(*wide).write.parquet(f"{folder}/wide")
        keyed = ["id % 1000 as key", "id as value", "concat('text', id) as text"]
        spark.range(rows).selectExpr(*keyed).write.parquet(f"{folder}/keyed")
        all_, pairs = spark.read.parquet(f"{folder}/wide"), spark.read.parquet(f"{folder}/keyed")
        one = all_.select("c0")
        limit = rows * 96 // 100

        def few_of(made: flow.Flow[tuple[int]]) -> int:
            return made.filter(lambda t: t[0] >= limit).map(lambda t: t[0] + 1).sum().single()

        def totals_by_flow() -> dict[int, int]:
            named = from_dataframe(pairs, as_=Keyed)
            return dict(named.reduce_by_key(lambda t: t.key, operator.add, lambda t: t.value))

        compare(
            "columns of Parquet, on local[2]",
            {
                "one of 19 columns, as tuples": (
                    Way(
                        "from_dataframe, pruned by hand",
                        lambda: from_dataframe(one, as_=tuple).map(lambda t: t[0]).sum().single(),
                    ),
                    Way(
                        "from_dataframe, narrowed",
                        lambda: from_dataframe(all_).map(lambda t: t[0]).sum().single(),
                        1.15,
                    ),
                    Way(
                        "from_dataframe, all columns",
                        lambda: (
                            from_dataframe(all_, narrow=False).map(lambda t: t[0]).sum().single()
                        ),
                    ),
                ),
                "a filter that keeps 4 %, as tuples": (
                    Way(
                        "from_dataframe, all rows",
                        lambda: few_of(from_dataframe(one, as_=tuple, narrow=False)),
                    ),
                    Way(
                        "from_dataframe, narrowed",
                        lambda: few_of(from_dataframe(one, as_=tuple)),
                        0.15,
                    ),
                ),
                "named tuples, summed by a key": (
                    Way("mapInArrow by hand", lambda: totals_by_hand(pairs)),
                    Way("reduce_by_key", totals_by_flow, 1.2),
                ),
            },
            items=rows,
            rounds=rounds,
        )


def compare_growth(spark: SparkSession, rows: int, rounds: int) -> None:
    def by_hand(size: int) -> int:
        return one_counted_by_hand(spark.range(size))

    def by_flow(size: int) -> int:
        return from_dataframe(spark.range(size)).map(grown).filter(kept).count().single()

    grow(
        "More rows, a map and a filter, counted on local[2]",
        Curve("mapInArrow by hand", by_hand),
        Curve("absorbed stages", by_flow, 1.05),
        axis="rows",
        sizes=tuple(rows // part for part in (8, 4, 2, 1)),
        rounds=rounds,
        clock=time.perf_counter,
    )


QUESTIONS = {
    "flights": compare_flights,
    "stages": compare_stages,
    "in": compare_in,
    "parts": compare_parts,
    "soon": compare_soon,
    "out": compare_out,
    "columns": compare_columns,
    "shuffle": compare_shuffle,
    "growth": compare_growth,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "questions", nargs="*", help=f"all if none is given: {', '.join(QUESTIONS)}"
    )
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--java", default="", help="more options for the JVM")
    options = parser.parse_args()
    conf = {"spark.driver.memory": "4g"}  # toLocalIterator() loses rows that do not fit
    if options.java:
        conf["spark.driver.extraJavaOptions"] = options.java
    with session("local[2]", conf=conf) as spark:
        for name in options.questions or QUESTIONS:
            QUESTIONS[name](spark, options.rows, options.rounds)


if __name__ == "__main__":
    main()
