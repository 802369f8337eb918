"""Reduces more and more keys on Spark, and measures the memory of all Python workers together.

Every number is a key, or one of `--keys`. The memory is what only a process itself has (`RssAnon`),
sampled four times a second; its peak counts. From the first number of rows to the last it may grow
by half, or the process ends with an error once everything is measured.

    python benchmarks/bench_spark_keys.py [--rows N ...] [--keys N]
"""

from __future__ import annotations

import argparse
import operator
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.table import Table

from flow_spark import from_dataframe, session, to_dataframe

MIB_OF_KIB = 1024
GROWTH = 0.5


def own_memory(process: Path) -> float:
    """Return the MiB of a Python worker; 0 for any other process, and for one that has ended."""
    with suppress(OSError):
        if b"flow_spark.jobs.daemon" in (process / "cmdline").read_bytes():
            for line in (process / "status").read_text().splitlines():
                if line.startswith("RssAnon"):
                    return int(line.split()[1]) / MIB_OF_KIB
    return 0.0


class Peak:
    """Watches the workers, and keeps the most memory that they had."""

    def __init__(self) -> None:
        self.of_all = self.of_one = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.25):
            found = list(map(own_memory, Path("/proc").glob("[0-9]*")))
            self.of_all = max(self.of_all, sum(found))
            self.of_one = max(self.of_one, *found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000, 4_000_000, 10_000_000])
    parser.add_argument("--keys", type=int, default=2**31)
    options = parser.parse_args()
    keys: int = options.keys
    table = Table(title="reduce_by_key, to columns, in 4 partitions and 8", title_justify="left")
    for heading in ("rows", "keys", "s", "MiB of all workers", "of one"):
        table.add_column(heading, justify="right")
    peaks: list[float] = []
    conf = {"spark.sql.shuffle.partitions": "8", "spark.driver.memory": "2g"}
    for rows in options.rows:
        # A separate session for each, with new workers.
        with session("local[2]", conf=conf) as spark, Peak() as peak:
            start = time.perf_counter()
            numbers = from_dataframe(spark.range(0, rows, 1, 4))
            pairs = numbers.map(lambda n: (n * 2_654_435_761 % keys, n))
            totals = pairs.reduce_by_key(lambda t: t[0], operator.add, lambda t: t[1])
            found = totals.pipe(to_dataframe(schema="k bigint, v bigint")).count()
            seconds = time.perf_counter() - start
        texts = (f"{rows:,}", f"{found:,}", f"{seconds:.0f}", f"{peak.of_all:.0f}")
        table.add_row(*texts, f"{peak.of_one:.0f}")
        peaks.append(peak.of_all)
    Console(width=100).print(table)
    if peaks[-1] > peaks[0] * (1 + GROWTH):
        sys.exit(f"memory grows: {peaks[0]:.0f} MiB, then {peaks[-1]:.0f}")


if __name__ == "__main__":
    main()
