"""Combines more and more items on Spark, and measures the memory of its processes.

* `reduce`: `reduce_by_key`, to columns; every number is a key, or one of `--keys`.
* `distinct`, `sort`: items that are iterated; all of them differ.

The memory is what only a process itself has (`RssAnon`), sampled four times a second; its peak
counts: of all Python workers together, and of this process. From the first number of rows to the
last each may grow by half, or the process ends with an error once everything is measured.

    python benchmarks/bench_spark_keys.py [reduce|distinct|sort] [--rows N ...] [--keys N]
"""

from __future__ import annotations

import argparse
import itertools
import operator
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.table import Table

from flow_core.flow import Flow
from flow_spark import from_dataframe, session, to_dataframe

MIB_OF_KIB = 1024
GROWTH = 0.5


def own_memory(process: Path) -> float:
    """Return the MiB that only a process itself has; 0 for one that has ended."""
    with suppress(OSError):
        for line in (process / "status").read_text().splitlines():
            if line.startswith("RssAnon"):
                return int(line.split()[1]) / MIB_OF_KIB
    return 0.0


def is_worker(process: Path) -> bool:
    with suppress(OSError):
        return b"flow_spark.jobs.daemon" in (process / "cmdline").read_bytes()
    return False


class Peak:
    """Watches the workers and this process, and keeps the most memory that they had."""

    def __init__(self) -> None:
        self.of_all = self.of_one = self.here = 0.0
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
            found = [own_memory(p) for p in Path("/proc").glob("[0-9]*") if is_worker(p)]
            self.of_all = max(self.of_all, sum(found))
            self.of_one = max(self.of_one, *found, 0)
            self.here = max(self.here, own_memory(Path("/proc/self")))


def reduced(numbers: Flow[int], keys: int) -> int:
    pairs = numbers.map(lambda n: (n * 2_654_435_761 % keys, n))
    totals = pairs.reduce_by_key(lambda t: t[0], operator.add, lambda t: t[1])
    return totals.pipe(to_dataframe(schema="k bigint, v bigint")).count()


def distinct(numbers: Flow[int], keys: int) -> int:
    return sum(1 for _ in numbers.map(lambda n: n * 2_654_435_761 % keys).distinct())


def sorted_(numbers: Flow[int], keys: int) -> int:
    items = numbers.map(lambda n: n * 2_654_435_761 % keys).sort()
    return sum(1 for one, other in itertools.pairwise(items) if one <= other) + 1


WAYS = {"reduce": reduced, "distinct": distinct, "sort": sorted_}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("way", nargs="?", choices=WAYS, default="reduce")
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000_000, 4_000_000, 10_000_000])
    parser.add_argument("--keys", type=int, default=2**31)
    options = parser.parse_args()
    keys: int = options.keys
    name: str = options.way
    table = Table(title=f"{name}, in 4 partitions and 8", title_justify="left")
    for heading in ("rows", "results", "s", "MiB of all workers", "of one", "here"):
        table.add_column(heading, justify="right")
    peaks: list[tuple[float, float]] = []
    conf = {"spark.sql.shuffle.partitions": "8", "spark.driver.memory": "2g"}
    for rows in options.rows:
        # A separate session for each, with new workers.
        with session("local[2]", conf=conf) as spark, Peak() as peak:
            start = time.perf_counter()
            found = WAYS[name](from_dataframe(spark.range(0, rows, 1, 4)), keys)
            seconds = time.perf_counter() - start
        memory = (f"{size:.0f}" for size in (peak.of_all, peak.of_one, peak.here))
        table.add_row(f"{rows:,}", f"{found:,}", f"{seconds:.0f}", *memory)
        peaks.append((peak.of_all, peak.here))
    Console(width=100).print(table)
    for first, last in zip(peaks[0], peaks[-1], strict=True):
        if last > first * (1 + GROWTH):
            sys.exit(f"memory grows: {first:.0f} MiB, then {last:.0f}")


if __name__ == "__main__":
    main()
