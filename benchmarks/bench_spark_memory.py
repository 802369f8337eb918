"""Twenty million rows of a DataFrame, pulled by a subscriber that requests 1,000 at a time.

Prints what the driver's Python and its JVM hold while the rows pass. Both have to stay flat.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

from pyspark.sql.functions import col, concat, lit
from rich.console import Console
from rich.table import Table

from flow_spark import from_dataframe, session

ROWS = 20_000_000
AT_A_TIME = 1_000
SAMPLES = 20


def resident_mib(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def jvm_below(pid: int) -> int:
    """The JVM that this process has started."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        name, _, fields = stat.read_text().rpartition(")")
        if "(java" in name and int(fields.split()[1]) == pid:
            return int(stat.parent.name)
    raise RuntimeError("this process has no JVM")


class ByThousands:
    """A subscriber that asks again only when it has got what it asked for."""

    def __init__(self, jvm: int) -> None:
        self.jvm = jvm
        self.rows = 0
        self.samples: list[tuple[int, float, float]] = []
        self.done = threading.Event()
        self.error: BaseException | None = None

    def on_subscribe(self, subscription: Any) -> None:
        self.subscription = subscription
        subscription.request(AT_A_TIME)

    def on_next(self, _: tuple[int, str, float]) -> None:
        self.rows += 1
        if self.rows % AT_A_TIME == 0:
            if self.rows % (ROWS // SAMPLES) == 0:
                sample = (self.rows, resident_mib(os.getpid()), resident_mib(self.jvm))
                self.samples.append(sample)
            self.subscription.request(AT_A_TIME)

    def on_error(self, error: BaseException) -> None:
        self.error = error
        self.done.set()

    def on_complete(self) -> None:
        self.done.set()


def main() -> None:
    with session("local[2]", conf={"spark.driver.memory": "1g"}) as spark:
        df = spark.range(ROWS).select(
            "id", concat(lit("row "), col("id")).alias("text"), (col("id") / 3).alias("third")
        )
        subscriber = ByThousands(jvm_below(os.getpid()))
        start = time.perf_counter()
        from_dataframe(df).subscribe(subscriber)
        subscriber.done.wait()
        seconds = time.perf_counter() - start
    if subscriber.error is not None:
        raise subscriber.error
    if subscriber.rows != ROWS:
        raise AssertionError(f"{subscriber.rows:,} rows arrived, not {ROWS:,}")
    table = Table("rows", "Python, MiB", "JVM, MiB", title=f"{ROWS:,} rows, {seconds:.0f} s")
    for rows, python, java in subscriber.samples:
        table.add_row(f"{rows:,}", f"{python:.0f}", f"{java:.0f}")
    Console(width=100).print(table)
    # The first tenth is left out: what is loaded then is not of the rows.
    for name, column in (("Python", 1), ("JVM", 2)):
        settled = [sample[column] for sample in subscriber.samples[2:]]
        spread = (max(settled) - min(settled)) / 2 / (sum(settled) / len(settled))
        print(f"{name}: ± {spread:.1%}")


if __name__ == "__main__":
    main()
