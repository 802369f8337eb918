"""Sends 20 million rows through this process, in each direction, and measures the driver's memory.

* in: a DataFrame, pulled by a subscriber that requests 1,000 at a time;
* slow: a DataFrame, read while another job waits for a core eighty times, with room for 64 MiB:
  waiting rows go to files, and tasks leave;
* stream_in: a streaming DataFrame, pulled likewise, in micro-batches of a twentieth of the rows;
* to_dataframe, write, subscriber: a flow of this process, as a DataFrame and written to Parquet;
* stream: a flow of this process as a stream of Spark, through its spool on disk.

At each tenth of the rows, it records the resident memory of the Python process, and what remains
on the JVM's heap after a collection; for `slow` also the memory of the largest worker, and the
size of the files. From the second tenth on, no memory may grow both by a tenth and by 50 MiB, and
the files may not exceed the limit plus one file. If they do, the process ends with an error once
everything is measured.

    python benchmarks/bench_spark_memory.py [DIRECTION ...] [--rows N]
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from stat import S_ISREG
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, concat, lit
from rich.console import Console
from rich.table import Table

import flow_core as flow
from flow_spark import (
    WriteSubscriber,
    from_dataframe,
    from_stream,
    session,
    stream_source,
    to_dataframe,
    write,
)

AT_A_TIME = 1_000
SAMPLES = 10
MICRO_BATCHES = 20
GROWTH = 0.1
GROWTH_MIB = 50
COLUMNS = "id long, text string, third double"
LIMIT, SEGMENT = 64, 64
"""MiB that may wait, and MiB of one file for them."""
MIB = 2**20


class Samples:
    """The memory that the driver holds at each tenth of the rows."""

    def __init__(self, spark: SparkSession, rows: int) -> None:
        self.jvm: Any = spark._jvm
        self.every = rows // SAMPLES
        self.python: list[float] = []
        self.heap: list[float] = []
        self.workers: list[float] = []
        self.files: list[float] = []
        self.start = time.perf_counter()
        self.seconds = 0.0

    def take(self) -> None:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        self.python.append(pages * os.sysconf("SC_PAGE_SIZE") / MIB)
        # Use another thread than the rows': theirs may be in a call to the JVM right now.
        asker = threading.Thread(target=self._ask)
        asker.start()
        asker.join()

    def take_all(self) -> None:
        """Take a sample that includes the workers and the files."""
        self.take()
        self.workers.append(max(map(resident, Path("/proc").glob("[0-9]*")), default=0.0))
        self.files.append(sum(map(nameless, Path("/proc/self/fd").iterdir())))

    def _ask(self) -> None:
        self.jvm.java.lang.System.gc()
        runtime = self.jvm.java.lang.Runtime.getRuntime()
        self.heap.append((runtime.totalMemory() - runtime.freeMemory()) / MIB)

    def made(self, n: int) -> tuple[int, str, float]:
        """Make a row of a flow of this process; take a sample after every tenth of the rows."""
        if n % self.every == 0 and n:
            self.take()
        return n, f"row {n}", n / 3

    def rows(self) -> flow.Flow[tuple[int, str, float]]:
        return flow.range(self.every * SAMPLES).map(self.made)


def resident(process: Path) -> float:
    """Return the MiB of a Python worker; 0 for any other process."""
    try:
        if b"flow_spark.jobs.daemon" not in (process / "cmdline").read_bytes():
            return 0.0
        return int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB
    except OSError:  # it has ended
        return 0.0


def nameless(descriptor: Path) -> float:
    """Return the MiB on disk of a file without a name; 0 for anything else."""
    try:
        found = descriptor.stat()
    except OSError:
        return 0.0
    return 0.0 if found.st_nlink or not S_ISREG(found.st_mode) else found.st_blocks * 512 / MIB


class ByThousands:
    """A subscriber that requests again only when it has received all that it requested."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        self.rows = 0
        self.done = threading.Event()
        self.error: BaseException | None = None

    def on_subscribe(self, subscription: Any) -> None:
        self.subscription = subscription
        subscription.request(AT_A_TIME)

    def on_next(self, _: tuple[int, str, float]) -> None:
        self.rows += 1
        if self.rows % AT_A_TIME == 0:
            if self.rows % self.samples.every == 0:
                self.samples.take()
            self.subscription.request(AT_A_TIME)

    def on_error(self, error: BaseException) -> None:
        self.error = error
        self.done.set()

    def on_complete(self) -> None:
        self.done.set()


def widened(ids: DataFrame) -> DataFrame:
    """Return the columns that all directions use, made from a column of numbers."""
    text, third = concat(lit("row "), col("id")).alias("text"), (col("id") / 3).alias("third")
    return ids.select("id", text, third)


def read(rows: flow.Flow[Any], subscriber: ByThousands) -> int:
    rows.subscribe(subscriber)
    subscriber.done.wait()
    if subscriber.error is not None:
        raise subscriber.error
    return subscriber.rows


def pulled(spark: SparkSession, samples: Samples, _: Path, rows: int) -> int:
    return read(from_dataframe(widened(spark.range(rows))), ByThousands(samples))


def paused(spark: SparkSession, samples: Samples, _: Path, rows: int) -> int:
    spark.conf.set("spark.flow.backlog.limit", f"{LIMIT}m")
    seen = 0
    for _row in from_dataframe(widened(spark.range(0, rows, 1, 16))):
        seen += 1
        if seen % (samples.every // 8) == 0:
            if spark.range(10).count() != 10:
                raise AssertionError
            if seen % samples.every == 0:
                samples.take_all()
    return seen


def pulled_from_a_stream(spark: SparkSession, samples: Samples, folder: Path, rows: int) -> int:
    files = folder / "files"
    # One file is one micro-batch: `rows` is a multiple of their number.
    spark.range(0, rows, 1, MICRO_BATCHES).write.parquet(str(files))
    reader = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1)
    there = widened(reader.parquet(str(files)))
    stream = from_stream(there, checkpoint=folder / "state", trigger="available-now")
    return read(stream, ByThousands(samples))


def framed(spark: SparkSession, samples: Samples, _: Path, rows: int) -> int:
    df = samples.rows().pipe(to_dataframe(spark, schema=COLUMNS))
    samples.take()
    return df.count()


def written(spark: SparkSession, samples: Samples, folder: Path, rows: int) -> int:
    path = folder / "written"
    samples.rows().pipe(write("parquet", path, schema=COLUMNS, session=spark))
    samples.take()
    return spark.read.parquet(str(path)).count()


def subscribed(spark: SparkSession, samples: Samples, folder: Path, rows: int) -> int:
    path = folder / "subscribed"
    subscriber = WriteSubscriber(spark, "parquet", path, schema=COLUMNS)
    samples.rows().subscribe(subscriber)
    subscriber.done.result()
    samples.take()
    return spark.read.parquet(str(path)).count()


def streamed(spark: SparkSession, samples: Samples, folder: Path, rows: int) -> int:
    df = stream_source(
        samples.rows(),
        spark,
        spool=folder / "spool",
        schema=COLUMNS,
        segment_rows=50_000,
        batch_segments=16,
    )
    path = folder / "streamed"
    writer = df.writeStream.format("parquet").option("checkpointLocation", str(folder / "done"))
    query = writer.trigger(availableNow=True).start(str(path))
    query.awaitTermination()
    samples.take()
    return spark.read.parquet(str(path)).count()


Direction = Callable[[SparkSession, Samples, Path, int], int]

DIRECTIONS: dict[str, Direction] = {
    "in": pulled,
    "slow": paused,
    "stream_in": pulled_from_a_stream,
    "to_dataframe": framed,
    "write": written,
    "subscriber": subscribed,
    "stream": streamed,
}


def growth(samples: list[float]) -> tuple[float, bool]:
    """Return the greatest growth since the second tenth in MiB, and whether it is too much."""
    grown = max(samples[1:]) - samples[1]
    return grown, grown >= GROWTH_MIB and grown >= samples[1] * GROWTH


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("directions", nargs="*", help=f"all if none: {', '.join(DIRECTIONS)}")
    parser.add_argument("--rows", type=int, default=20_000_000)
    options = parser.parse_args()
    step = SAMPLES * MICRO_BATCHES * AT_A_TIME
    rows = max(options.rows // step, 1) * step
    table = Table(title=f"{rows:,} rows: MiB that the driver holds", title_justify="left")
    tenths = [f"{tenth * 100 // SAMPLES} %" for tenth in range(1, SAMPLES + 1)]
    for heading in ("direction", "", "s", *tenths, "growth"):
        table.add_column(heading, justify="left" if heading in {"direction", ""} else "right")
    growing: list[str] = []
    for name in options.directions or DIRECTIONS:
        # A separate session for each, so that each begins with an empty heap.
        conf = {"spark.driver.memory": "1g"}
        with session("local[2]", conf=conf) as spark, tempfile.TemporaryDirectory() as folder:
            samples = Samples(spark, rows)
            found = DIRECTIONS[name](spark, samples, Path(folder), rows)
            seconds = time.perf_counter() - samples.start
        if found != rows:
            raise AssertionError(f"{name}: {found:,} rows arrived, not {rows:,}")
        lists = {"Python": samples.python, "JVM heap": samples.heap}
        if samples.files:
            lists |= {"a worker": samples.workers, "files": samples.files}
        for what, held in lists.items():
            texts = [f"{mib:.0f}" for mib in held]
            grown, too_much = growth(held)
            if what == "files":  # a file stays until all of it has been read
                too_much = max(held) > LIMIT + SEGMENT
            verdict = f"+{grown:.0f}{', grows' if too_much else ''}"
            table.add_row(name, what, f"{seconds:.0f}", *texts, verdict)
            if too_much:
                growing.append(f"{name}: {what} +{grown:.0f} MiB")
    Console(width=130).print(table)
    if growing:
        sys.exit(f"memory grows: {'; '.join(growing)}")


if __name__ == "__main__":
    main()
