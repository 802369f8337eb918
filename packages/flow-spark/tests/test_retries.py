"""A task that is retried continues where the one before it stopped, or says that it cannot."""

from __future__ import annotations

import pickle
import random
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import closing
from typing import Any, cast

import pytest

import flow_core as flow
from flow_core.stages import Program
from flow_core.structure import stages_of
from flow_spark.channel.push import Push
from flow_spark.channel.receiver import BatchReceiver, PartitionResult
from flow_spark.channel.wire import Target
from flow_spark.errors import PartitionChangedError
from flow_spark.items.arrow import ArrowBatch, pa
from flow_spark.items.rows import RowReader
from flow_spark.jobs import runs
from flow_spark.jobs.merging import MergeReader
from flow_spark.jobs.runs import RunsTask
from flow_spark.jobs.task import ChunkReader, LoweredTask, PushTask, Reader, _Input
from flow_spark.pickling import chunks
from flow_spark.pickling.chunks import FRAME_BYTES
from flow_spark.pickling.codec import Decoder
from flow_spark.pickling.pickles import dumps

TIMEOUT_S = 20.0
SCHEMA = pa.schema([("id", pa.int64())])

Build = Callable[[flow.Flow[Any]], flow.Flow[Any]]


def batch(numbers: Iterable[int]) -> ArrowBatch:
    return pa.record_batch([list(numbers)], schema=SCHEMA)


BATCHES = [batch(range(start, start + 100)) for start in range(0, 1000, 100)]
OTHER = [*BATCHES[:1], BATCHES[2], BATCHES[1], *BATCHES[3:]]


class Killed(BaseException):
    """Stands for the end of an executor."""


class Dying:
    """A connection whose task is killed when it has sent some frames."""

    def __init__(self, push: Push, frames: int) -> None:
        self._push = push
        self._left = frames

    def send(self, *frame: Any) -> None:
        if not self._left:
            raise Killed
        self._left -= 1
        self._push.send(*frame)

    def end(self, skipped: int) -> tuple[int, int]:
        self._push.end(skipped)
        raise Killed  # before Spark hears of it

    def __getattr__(self, name: str) -> Any:
        return getattr(self._push, name)


def program(build: Build) -> bytes:
    return dumps(Program[Any, Any](stages_of(build(flow.range(0)))), "stages")


def attempt(
    target: Target,
    number: int,
    batches: Iterable[ArrowBatch],
    build: Build | None,
    dies_after: int | None = None,
    *,
    reader: Reader | None = None,
) -> Future[tuple[int, int]]:
    """A task of partition 0, in a separate thread."""
    pickled = dumps(reader or RowReader(SCHEMA), "a reader")
    task = PushTask(pickled, None if build is None else program(build), target)
    future: Future[tuple[int, int]] = Future()

    def run() -> None:
        try:
            with closing(Push(target, 0, number)) as push:
                used = push if dies_after is None else Dying(push, dies_after)
                result = task._run(_Input(iter(batches)), cast("Push", used), 0)
            future.set_result(result)
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


@pytest.fixture(autouse=True)
def no_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """The content of a frame depends on the items alone, and not on how fast the machine is."""
    monkeypatch.setattr(chunks, "_PATIENCE_S", TIMEOUT_S)


@pytest.fixture
def receiver() -> Iterator[BatchReceiver]:
    made = BatchReceiver()
    yield made
    made.cancel()


def taken(receiver: BatchReceiver, task: Future[tuple[int, int]]) -> list[Any]:
    """The items that arrive until a task has ended."""
    found: list[Any] = []
    decode = Decoder(None)
    while not (task.done() and not receiver.statistics().connections):
        try:
            arrived = receiver.next_batch(0.05)
        except TimeoutError:
            continue
        assert arrived is not None
        found += decode(arrived)
    return found


def completed(receiver: BatchReceiver, task: Future[tuple[int, int]]) -> list[Any]:
    """The items that arrive of the last attempt, of which the job reports."""
    found = taken(receiver, task)
    number = receiver._partitions[0].task
    receiver.finish([PartitionResult(0, number, *task.result(TIMEOUT_S))])
    assert receiver.next_batch(TIMEOUT_S) is None
    return found


def refused(receiver: BatchReceiver, retry: Future[tuple[int, int]]) -> str:
    """The error at once for an attempt that reads other rows, before Spark has said anything."""
    with pytest.raises(PartitionChangedError) as raised:
        receiver.next_batch(TIMEOUT_S)
    assert isinstance(retry.exception(TIMEOUT_S), PartitionChangedError)
    return str(raised.value)


def mapped(f: flow.Flow[Any]) -> flow.Flow[Any]:
    return f.map(lambda n: n)


@pytest.mark.parametrize("build", [None, mapped], ids=["rows", "stages"])
@pytest.mark.parametrize("frames", range(6))
def test_the_same_rows_again_are_resumed_where_they_stopped(
    receiver: BatchReceiver, build: Build | None, frames: int
) -> None:
    first = attempt(receiver.target, 10, BATCHES, build, dies_after=frames)
    found = taken(receiver, first)
    assert isinstance(first.exception(), Killed)

    found += completed(receiver, attempt(receiver.target, 11, BATCHES, build))

    assert found == list(range(1000))


@pytest.mark.parametrize("build", [None, mapped], ids=["rows", "stages"])
@pytest.mark.parametrize("frames", [3, 4, 5])
def test_rows_in_another_order_are_never_taken_for_the_same(
    receiver: BatchReceiver, build: Build | None, frames: int
) -> None:
    """A shuffle that is read again gives its blocks in any order; their number is the same."""
    found = taken(receiver, attempt(receiver.target, 10, BATCHES, build, dies_after=frames))
    retry = attempt(receiver.target, 11, OTHER, build)

    changed = refused(receiver, retry)
    assert found == list(range(len(found)))
    assert f"Of that one {len(found)} items were taken" in changed
    for way_out in ("sortWithinPartitions", "persist", "seeded"):
        assert way_out in changed


def test_two_rows_that_change_places_within_a_batch_are_noticed(receiver: BatchReceiver) -> None:
    taken(receiver, attempt(receiver.target, 10, BATCHES, mapped, dies_after=1))
    retry = attempt(receiver.target, 11, [batch([1, 0, *range(2, 100)]), *BATCHES[1:]], mapped)

    refused(receiver, retry)


def test_rows_that_were_not_yet_read_may_come_in_another_order(receiver: BatchReceiver) -> None:
    found = taken(receiver, attempt(receiver.target, 10, BATCHES, mapped, dies_after=1))
    found += completed(receiver, attempt(receiver.target, 11, OTHER, mapped))

    assert sorted(found) == list(range(1000))


def test_an_attempt_with_a_cut_input_does_not_spoil_the_next_one(receiver: BatchReceiver) -> None:
    found = taken(receiver, attempt(receiver.target, 10, BATCHES, mapped, dies_after=3))
    taken(receiver, attempt(receiver.target, 11, BATCHES[:1], mapped))
    found += completed(receiver, attempt(receiver.target, 12, BATCHES, mapped))

    assert found == list(range(1000))
    assert receiver.changed() is None


def test_a_retry_with_fewer_rows_than_were_read_fails(receiver: BatchReceiver) -> None:
    """Though it has as many items as were taken."""
    found = taken(receiver, attempt(receiver.target, 10, BATCHES, mapped, dies_after=3))
    fewer = [batch(range(len(found)))]
    retry = attempt(receiver.target, 11, fewer, mapped)

    assert taken(receiver, retry) == []  # an input that was cut looks like this, too
    assert isinstance(retry.exception(TIMEOUT_S), PartitionChangedError)
    assert receiver.changed() is not None


def first_ones(f: flow.Flow[Any]) -> flow.Flow[Any]:
    return f.filter(lambda n: n < 10)


def test_rows_behind_the_last_item_are_read_in_both_attempts(receiver: BatchReceiver) -> None:
    """The last item is sent when the rest, which the filter leaves out, has been read too."""
    first = attempt(receiver.target, 10, BATCHES, first_ones, dies_after=1)
    found = taken(receiver, first)
    assert isinstance(first.exception(), Killed)
    found += completed(receiver, attempt(receiver.target, 11, BATCHES, first_ones))

    assert found == list(range(10))


@pytest.mark.parametrize("frames", range(1, 8))
def test_large_items_that_were_read_ahead_are_sent_once(
    receiver: BatchReceiver, frames: int
) -> None:
    """Items that are too large for one frame are sent in several, all of them read before."""
    size = FRAME_BYTES // 10

    def large(f: flow.Flow[Any]) -> flow.Flow[Any]:
        return f.map(lambda n: (n, bytes(size)))

    small = [batch(range(start, start + 7)) for start in range(0, 140, 7)]
    found = taken(receiver, attempt(receiver.target, 10, small, large, dies_after=frames))
    assert 0 < len(found) < 64
    found += completed(receiver, attempt(receiver.target, 11, small, large))

    assert [number for number, _ in found] == list(range(140))


def test_large_items_of_rows_in_another_order_are_noticed_before_any_is_sent(
    receiver: BatchReceiver,
) -> None:
    """The items taken are of the first batch; the changed one was read for the same frame."""
    size = FRAME_BYTES // 10

    def large(f: flow.Flow[Any]) -> flow.Flow[Any]:
        return f.map(lambda n: (n, bytes(size)))

    small = [batch(range(start, start + 20)) for start in range(0, 140, 20)]
    found = taken(receiver, attempt(receiver.target, 10, small, large, dies_after=1))
    assert 0 < len(found) < 20
    retry = attempt(receiver.target, 11, [small[0], small[2], small[1], *small[3:]], large)

    refused(receiver, retry)


def test_functions_may_give_another_result_each_time(receiver: BatchReceiver) -> None:
    """Times and random numbers: the rows alone are compared."""
    numbers = random.Random(1)

    def drawn(f: flow.Flow[Any]) -> flow.Flow[Any]:
        seed = numbers.random()
        return f.map(lambda n: (n, seed))

    found = taken(receiver, attempt(receiver.target, 10, BATCHES, drawn, dies_after=3))
    found += completed(receiver, attempt(receiver.target, 11, BATCHES, drawn))

    assert [number for number, _ in found] == list(range(1000))
    assert len({seed for _, seed in found}) == 2


def lowered(batches: list[ArrowBatch], build: Build = mapped) -> list[ArrowBatch]:
    """The items that stages leave on the cluster."""
    task = LoweredTask(dumps(RowReader(SCHEMA), "a reader"), program(build), None)
    return list(task(iter(batches)))


def shuffled(batches: list[ArrowBatch]) -> list[ArrowBatch]:
    """The rows that two partitions give to a bucket, in the order in which it is sorted."""
    stages = pickle.loads(program(mapped))
    task = RunsTask(
        dumps(RowReader(SCHEMA), "a reader"), dumps((stages, lambda n: n), "stages"), (0,)
    )
    made = [many for part in (batches[:5], batches[5:]) for many in task(iter(part))]
    rows = [many.slice(index, 1) for many in made for index in range(many.num_rows)]
    return sorted(rows, key=lambda row: row.column("low")[0].as_py())


MERGED = MergeReader(Program(()), ())
Made = Callable[[list[ArrowBatch]], list[ArrowBatch]]


@pytest.mark.parametrize(("made", "reader"), [(lowered, ChunkReader()), (shuffled, MERGED)])
def test_rows_that_another_task_has_read_in_another_order_are_noticed(
    receiver: BatchReceiver, made: Made, reader: Reader
) -> None:
    """The output that an executor had shuffled is lost with it, and made again of re-read rows."""
    first = attempt(receiver.target, 10, made(BATCHES), mapped, dies_after=3, reader=reader)
    taken(receiver, first)
    retry = attempt(receiver.target, 11, made(OTHER), mapped, reader=reader)

    refused(receiver, retry)


def test_items_of_the_same_rows_may_be_in_other_chunks(
    receiver: BatchReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of items in a chunk depends on how fast they come."""
    reader = ChunkReader()
    chunked = lowered(BATCHES)
    first = attempt(receiver.target, 10, chunked, mapped, dies_after=3, reader=reader)
    found = taken(receiver, first)
    monkeypatch.setattr(chunks, "_FIRST_ROWS", 7)
    other = lowered(BATCHES)
    assert len(other) != len(chunked)
    found += completed(receiver, attempt(receiver.target, 11, other, mapped, reader=reader))

    assert found == list(range(1000))


def test_results_by_key_come_in_the_same_order_whatever_their_runs_are(
    receiver: BatchReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another version of a task that was lost may cut its results elsewhere."""
    first = attempt(receiver.target, 10, shuffled(BATCHES), mapped, dies_after=3, reader=MERGED)
    found = taken(receiver, first)
    assert 0 < len(found) < 1000
    monkeypatch.setattr(runs, "_WINDOW_BYTES", 1)
    monkeypatch.setattr(runs, "_ROW_ITEMS", 7)
    other = shuffled(BATCHES)
    found += completed(receiver, attempt(receiver.target, 11, other, mapped, reader=MERGED))

    assert len(found) == 1000
    assert set(found) == set(range(1000))


def test_rows_behind_the_last_chunk_count_as_those_before_it(
    receiver: BatchReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are read with the last items, or after these, as it happens."""
    reader = ChunkReader()
    with_them = lowered(BATCHES, first_ones)
    first = attempt(receiver.target, 10, with_them, mapped, dies_after=1, reader=reader)
    found = taken(receiver, first)
    monkeypatch.setattr(chunks, "_FIRST_ROWS", 10)
    before_them = lowered(BATCHES, first_ones)
    assert len(before_them) == len(with_them) + 1
    found += completed(receiver, attempt(receiver.target, 11, before_them, mapped, reader=reader))

    assert found == list(range(10))


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([[1, 2, None], [None, 2, 1]], id="nulls"),
        pytest.param([["a", "bc"], ["ab", "c"]], id="the lengths of strings"),
        pytest.param([[[1], [2, 3]], [[1, 2], [3]]], id="the lengths of lists"),
        pytest.param([[{"a": 1, "b": 2}], [{"a": 2, "b": 1}]], id="fields of structs"),
        pytest.param([[True, False], [False, True]], id="bits"),
    ],
)
def test_a_checksum_is_of_all_that_makes_a_value(values: list[list[Any]]) -> None:
    found = set[tuple[int, ...]]()
    for each in values:
        kind = pa.array(values[0]).type
        schema = pa.schema([("value", kind)])
        rows = pa.record_batch([each], schema=schema)
        found.add(tuple(RowReader(schema).checksums(rows)))

    assert len(found) == len(values)
