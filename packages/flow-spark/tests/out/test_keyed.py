"""States for each key of a stream."""

from __future__ import annotations

import operator
import pickle
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import flow_core as flow
from flow_spark import (
    NotPicklableError,
    UnsupportedTypeError,
    for_each_batch,
    from_dataframe,
    from_stream,
    scan_by_key,
    stream_source,
)
from flow_spark.streams.scan_by_key import KeyStates
from flow_testing import TestPublisher, TestSubscriber

from ..infrastructure.versions import WITH_LIMITS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TIMEOUT_S = 60.0


def states(**given: Any) -> KeyStates:
    facts: dict[str, Any] = {
        "key": None,
        "accumulate": operator.add,
        "seed": pickle.dumps(0),
        "timeout_ms": None,
        "on_timeout": None,
        "order_by": None,
    }
    return KeyStates(**{**facts, **given})


class Values:
    """The state that Spark keeps for a bucket, and its clock."""

    def __init__(self) -> None:
        self.kept: tuple[bytes] | None = None

    def getValueState(self, *_: object) -> Values:  # noqa: N802 - Spark's
        return self

    def getCurrentProcessingTimeInMs(self) -> int:  # noqa: N802 - Spark's
        return 0

    def get(self) -> tuple[bytes] | None:
        return self.kept

    def update(self, kept: tuple[bytes]) -> None:
        self.kept = kept


class Read(NamedTuple):
    payload: bytes


def read_by(*items: int) -> bytes:
    """The checksums that come with the states of one key, when its items are read in this order."""
    pytest.importorskip("google.protobuf", reason="Spark's processors need protobuf")
    from flow_spark._state_processor import StateProcessor

    values: Any = Values()
    processor = StateProcessor(pickle.dumps((states(), None)))
    processor.init(values)
    rows = [Read(pickle.dumps([("a", item)])) for item in items]
    return b"".join(row.checksums for row in processor.handleInputRows((7,), iter(rows), values))


def test_states_tell_a_retry_in_which_order_their_items_were_read() -> None:
    assert read_by(1, 2) == read_by(1, 2)
    assert read_by(1, 2) != read_by(2, 1)


class TestStates:
    def test_each_item_gives_the_new_state_of_its_key(self) -> None:
        kept: dict[Any, tuple[Any, int]] = {"a": (10, 0)}

        found = list(states().take(kept, [("a", 1), ("b", 2), ("a", 3)], 0))

        assert found == [("a", 11), ("b", 2), ("a", 14)]
        assert kept == {"a": (14, 0), "b": (2, 0)}

    def test_each_key_has_a_separate_seed(self) -> None:
        def append(items: list[int], item: int) -> list[int]:
            items.append(item)
            return items

        kept: dict[Any, tuple[Any, int]] = {}
        own = states(accumulate=append, seed=pickle.dumps([]))
        list(own.take(kept, [("a", 1), ("b", 2)], 0))

        assert kept == {"a": ([1], 0), "b": ([2], 0)}

    def test_items_of_a_micro_batch_can_be_sorted(self) -> None:
        ordered = states(order_by=lambda item: -item)

        assert list(ordered.take({}, [("a", 1), ("a", 3), ("a", 2)], 0)) == [
            ("a", 3),
            ("a", 5),
            ("a", 6),
        ]

    def test_a_key_that_had_no_items_for_too_long_begins_again(self) -> None:
        timed = states(timeout_ms=100, on_timeout=lambda key, state: -state)
        kept: dict[Any, tuple[Any, int]] = {}

        assert list(timed.take(kept, [("a", 1), ("b", 5)], 1000)) == [("a", 1), ("b", 5)]
        assert list(timed.take(kept, [("a", 1)], 1050)) == [("a", 2)]
        assert list(timed.expire(kept, 1099)) == []
        assert list(timed.expire(kept, 1100)) == [("b", -5)]
        assert list(timed.take(kept, [("a", 1)], 1150)) == [("a", -2), ("a", 1)]
        assert kept == {"a": (1, 1250)}

    def test_a_timeout_that_gives_none_sends_nothing(self) -> None:
        for quiet in (states(timeout_ms=1), states(timeout_ms=1, on_timeout=lambda *_: None)):
            kept: dict[Any, tuple[Any, int]] = {"a": (1, 5)}
            assert list(quiet.expire(kept, 5)) == []
            assert kept == {}


class Fact(NamedTuple):
    number: int
    city: str


def fact(number: int) -> Fact:
    return Fact(number, "AB"[number % 2])


@pytest.fixture
def few(spark: SparkSession) -> Iterator[None]:
    """As many parts of the state as one machine needs."""
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    yield
    spark.conf.set("spark.sql.shuffle.partitions", before)


@pytest.fixture
def facts(spark: SparkSession, tmp_path: Path, few: None) -> DataFrame:
    """Facts 0 to 5, two in a micro-batch."""
    return stream_source(
        flow.range(6).map(fact),
        spark,
        spool=tmp_path / "spool",
        segment_rows=2,
        batch_segments=1,
    )


def ended(spark: SparkSession) -> bool:
    for query in spark.streams.active:
        query.awaitTermination(int(TIMEOUT_S))
    return not spark.streams.active


@WITH_LIMITS
@pytest.mark.spark
def test_states_continue_through_micro_batches_and_restarts(
    spark: SparkSession, facts: DataFrame, tmp_path: Path
) -> None:
    found: list[tuple[int, list[Any]]] = []
    stop_after = 1

    def keep(batch_id: int, items: Iterator[tuple[Any, int]]) -> None:
        found.append((batch_id, sorted(items)))
        if batch_id == stop_after:
            raise InterruptedError

    def key(row: Fact) -> tuple[str, None]:
        return row.city, None

    def totals() -> flow.Flow[Any]:
        rows = from_stream(facts, as_=Fact, checkpoint=tmp_path / "state", trigger="available-now")
        return (
            rows.filter(lambda row: row.number != 2)
            .pipe(
                scan_by_key(lambda row: (row.city, None), lambda total, row: total + row.number, 0)
            )
            .map(lambda pair: (pair[0], pair[1] * 10))
            .pipe(for_each_batch(keep))
        )

    with pytest.raises(InterruptedError):
        list(totals())
    assert ended(spark)
    stop_after = -1
    list(totals())

    a, b = ("A", None), ("B", None)
    assert found == [
        (0, [(a, 0), (b, 10)]),
        (1, [(b, 40)]),
        (1, [(b, 40)]),  # the micro-batch that was not committed, from the state before it
        (2, [(a, 40), (b, 90)]),
    ]


@WITH_LIMITS
@pytest.mark.spark
@pytest.mark.cluster
def test_a_key_without_items_is_given_up_in_time(
    spark: SparkSession, tmp_path: Path, few: None
) -> None:
    publisher = TestPublisher[int]()
    df = stream_source(flow.Flow(publisher), spark, schema=int, spool=tmp_path / "spool")
    subscriber = TestSubscriber[tuple[int, int]]()
    from_stream(df, trigger=0.2).pipe(
        scan_by_key(
            lambda n: n % 10,
            lambda count, _: count + 1,
            0,
            timeout=2,
            on_timeout=lambda _, count: -count,
        )
    ).subscribe(subscriber)
    assert until(lambda: publisher.requested > 0)

    publisher.next(1, 11, 2)
    subscriber.await_items(5, TIMEOUT_S)
    publisher.next(21)
    subscriber.await_items(6, TIMEOUT_S)
    subscriber.cancel()

    assert sorted(subscriber.items[:3]) == [(1, 1), (1, 2), (2, 1)]
    assert sorted(subscriber.items[3:5]) == [(1, -2), (2, -1)]
    assert subscriber.items[5] == (1, 1)
    assert ended(spark)


def until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


@WITH_LIMITS
@pytest.mark.spark
@pytest.mark.cluster
def test_an_error_of_a_function_is_named_by_the_error_of_the_query(
    spark: SparkSession, facts: DataFrame
) -> None:
    rows = from_stream(facts, as_=Fact, trigger="available-now")

    with pytest.raises(Exception, match="ZeroDivisionError"):
        list(rows.pipe(scan_by_key(lambda row: row.city, lambda _, row: 1 // row.number, 0)))
    assert ended(spark)
    with pytest.raises(Exception, match="unhashable"):
        list(rows.pipe(scan_by_key(lambda row: [row.city], lambda total, _: total, 0)))
    assert ended(spark)


@WITH_LIMITS
@pytest.mark.spark
def test_a_flow_that_cannot_have_states_is_refused(spark: SparkSession, facts: DataFrame) -> None:
    import threading

    lock = threading.Lock()
    count = scan_by_key(lambda _: 0, lambda total, _: total + 1, 0)
    rows = from_stream(facts, as_=Fact)

    with pytest.raises(ValueError, match="timeout must be"):
        scan_by_key(lambda _: 0, lambda total, _: total, 0, timeout=0)
    with pytest.raises(ValueError, match="on_timeout"):
        scan_by_key(lambda _: 0, lambda total, _: total, 0, on_timeout=lambda *_: None)
    with pytest.raises(UnsupportedTypeError, match="from_stream"):
        from_dataframe(spark.range(3)).pipe(count)
    with pytest.raises(UnsupportedTypeError, match="from_stream"):
        rows.count().pipe(count)
    with pytest.raises(UnsupportedTypeError, match="from_stream"):
        rows.pipe(count).pipe(count)
    with pytest.raises(NotPicklableError, match="lock"):
        rows.pipe(scan_by_key(lambda _: lock, lambda total, _: total, 0))


def test_an_error_says_of_which_key_it_is_and_at_which_item() -> None:
    def refuse(_: int, item: int) -> int:
        raise ValueError(f"{item} is refused")

    def forget(_: str, state: int) -> int:
        raise ValueError(f"{state} is kept")

    with pytest.raises(ValueError, match="7 is refused") as caught:
        list(states(accumulate=refuse).take({}, [("a", 7)], 0))
    assert caught.value.__notes__ == ["in scan_by_key(), refuse of the key 'a', at the item 7"]
    with pytest.raises(ValueError, match="3 is kept") as caught:
        list(states(timeout_ms=1, on_timeout=forget).expire({"a": (3, 0)}, 5))
    assert caught.value.__notes__ == ["in scan_by_key(), forget of the key 'a'"]
