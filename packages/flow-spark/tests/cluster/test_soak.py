"""A slow subscriber of a stream holds its micro-batches back, and memory stays as it is.

``FLOW_SOAK_S`` is how long, in seconds.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final, final

import pytest

import flow_spark
from flow_core.protocols import CoreSubscriber, Subscription
from flow_spark import from_stream

from ..infrastructure.processes import ancestors, wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ..infrastructure.sessions import Sessions

SOAK_S = float(os.environ.get("FLOW_SOAK_S", "20"))

pytestmark = [
    pytest.mark.spark,
    pytest.mark.cluster,
    pytest.mark.timeout(SOAK_S + 300),
]

TIMEOUT_S = 120.0
ROWS = 20_000
FAST_BATCHES = 8
MIB = 2**20
LIMITS = {"this process": 3.0, "the heap of the JVM": 6.0, "the Python workers": 3.0}
"""MiB per minute. A program that keeps the rows of each micro-batch is far above."""

# What Spark keeps for its own pages would grow until it has as much as it is told to keep.
FORGETFUL: dict[str, str | int] = {
    "spark.sql.streaming.numRecentProgressUpdates": 5,
    "spark.sql.ui.retainedExecutions": 5,
    "spark.ui.retainedDeadExecutors": 1,
    "spark.ui.retainedJobs": 5,
    "spark.ui.retainedStages": 5,
    "spark.ui.retainedTasks": 50,
    "spark.sql.streaming.minBatchesToRetain": 5,
}


@pytest.fixture(scope="module")
def spark(sessions: Sessions) -> Iterator[SparkSession]:
    """A session that remembers little of what it has done."""
    yield sessions.switch(flow_spark.session("local[2]", conf=FORGETFUL, fast_start=True))
    sessions.close()


@final
class Counting(CoreSubscriber[Any]):
    """Counts, and keeps nothing."""

    def __init__(self) -> None:
        self.count = 0
        self.ended: Final = threading.Event()
        self.error: BaseException | None = None
        self.subscription: Subscription | None = None

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription

    def on_next(self, item: Any, /) -> None:
        self.count += 1

    def on_error(self, error: BaseException, /) -> None:
        self.error = error
        self.ended.set()

    def on_complete(self) -> None:
        self.ended.set()

    def request(self, n: int) -> None:
        assert self.subscription is not None
        self.subscription.request(n)

    def reaches(self, count: int) -> bool:
        wait_until(lambda: self.count >= count or self.ended.is_set(), TIMEOUT_S)
        assert not self.ended.is_set(), self.error
        return self.count == count


def own_memory() -> int:
    """Bytes of this process in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def memory_of_jvm(spark: SparkSession) -> int:
    """Bytes in its heap that something still refers to."""
    jvm: Any = spark._jvm
    runtime = jvm.java.lang.Runtime.getRuntime()
    jvm.java.lang.System.gc()
    return int(runtime.totalMemory() - runtime.freeMemory())


def memory_of_workers() -> int:
    """Bytes of the Python processes that Spark has started, which share what they can."""
    total = 0
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            command = (entry / "cmdline").read_bytes()
            is_python = b"pyspark.daemon" in command or b"flow_spark.jobs.daemon" in command
            if is_python and os.getpid() in ancestors(int(entry.name)):
                lines = (entry / "smaps_rollup").read_text().splitlines()
                total += next(int(line.split()[1]) * 1024 for line in lines if line[:4] == "Pss:")
    return total


def growth(samples: Sequence[tuple[float, float]]) -> float:
    """The growth of a value per minute: the median of the slopes between all pairs.

    Args:
        samples: seconds and values; a few that are far off do not count.
    """
    pairs = itertools.combinations(samples, 2)
    return 60 * median((value - before) / (at - began) for (began, before), (at, value) in pairs)


def planned(state: Path) -> int:
    """The number of micro-batches that Spark has planned."""
    return 1 + max((int(file.name) for file in (state / "offsets").glob("[0-9]*")), default=-1)


def test_a_slow_subscriber_holds_micro_batches_back_and_memory_stays_flat(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS)
    stream = source.option("numPartitions", 2).load().select("value")
    state = tmp_path / "state"
    rows = from_stream(stream, checkpoint=state).map(lambda n: n + 1)
    subscriber = Counting()
    rows.subscribe(subscriber)

    # As fast as it goes, which says what the pace of the slow one is to be.
    subscriber.request(ROWS)
    assert subscriber.reaches(ROWS)
    began = time.monotonic()
    subscriber.request(FAST_BATCHES * ROWS)
    assert subscriber.reaches((1 + FAST_BATCHES) * ROWS)
    fast_s = (time.monotonic() - began) / FAST_BATCHES

    pace_s = 3 * fast_s
    batches = 1 + FAST_BATCHES
    pause = threading.Event()
    samples: list[tuple[float, int, int, int]] = []
    slow_began = time.monotonic()
    slow_batches = 0
    while (now := time.monotonic()) < slow_began + SOAK_S:
        assert planned(state) <= batches + 1  # one that waits, and none behind it
        subscriber.request(ROWS)
        batches += 1
        slow_batches += 1
        assert subscriber.reaches(batches * ROWS)
        heap = memory_of_jvm(spark)
        samples.append((time.monotonic(), own_memory(), heap, memory_of_workers()))
        pause.wait(max(0.0, now + pace_s - time.monotonic()))
    slow_s = (time.monotonic() - slow_began) / slow_batches
    assert subscriber.count == batches * ROWS
    assert subscriber.subscription is not None
    subscriber.subscription.cancel()
    assert wait_until(lambda: not spark.streams.active, TIMEOUT_S)

    times, *held = zip(*samples, strict=True)
    grown = {
        what: growth(list(zip(times, values, strict=True))) / MIB
        for what, values in zip(LIMITS, held, strict=True)
    }
    print(
        f"fast: {1 / fast_s:.2f} micro-batches/s, {ROWS / fast_s:,.0f} rows/s; slow: "
        f"{1 / slow_s:.2f} micro-batches/s for {SOAK_S:.0f} s, at a pace of {1 / pace_s:.2f}"
    )
    for (what, rate), values in zip(grown.items(), held, strict=True):
        first, last = values[0] / MIB, values[-1] / MIB
        print(f"{what}: {first:.1f} -> {last:.1f} MiB, {rate:+.2f} MiB per minute")
    assert slow_s >= 0.9 * pace_s
    assert all(map(min, held)), "nothing is measured of one of them"
    assert {what: rate for what, rate in grown.items() if rate > LIMITS[what]} == {}


def test_growth_is_distinguished_from_ups_and_downs() -> None:
    """300 samples of one second each: as large as what is measured, and as uneven."""
    rng = random.Random(7)
    flat = [(float(at), 100 + rng.gauss(0, 5) + 30 * (at % 50 == 0)) for at in range(300)]
    leaking = [(at, value + 5 * at / 60) for at, value in flat]
    once = [(at, value + 20 * (at > 20)) for at, value in flat]

    assert abs(growth(flat)) < 1
    assert abs(growth(once)) < min(LIMITS.values())
    assert 4 < growth(leaking) < 6
