"""The channel between tasks and the driver, without Spark: threads stand for tasks."""

from __future__ import annotations

import pickle
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import ExitStack, closing, suppress
from typing import TypeVar

import pytest

from flow_core.errors import FlowError
from flow_spark.channel import wire
from flow_spark.channel.push import Push
from flow_spark.channel.receiver import Batch, BatchReceiver, PartitionResult
from flow_spark.channel.wire import FRAME, HELLO, MAGIC, NONCE_SIZE, Kind, Target, sign
from flow_spark.errors import ChannelError, LimitExceededError, PartitionChangedError

T = TypeVar("T")
TIMEOUT_S = 20.0


@pytest.fixture
def receiver() -> Iterator[BatchReceiver]:
    made = BatchReceiver(capacity=2)
    yield made
    made.cancel()


def background(function: Callable[[], T]) -> Future[T]:
    """Run `function` in a separate thread."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def send(push: Push, *items: object) -> None:
    push.send(Kind.PICKLE, len(items), pickle.dumps(list(items)))


def task(
    target: Target, partition: int, attempt: int, batches: list[list[object]]
) -> tuple[int, int]:
    """A task whose partition always gives `batches`; resumes where the driver says."""
    push = Push(target, partition, attempt)
    try:
        items = [item for batch in batches for item in batch]
        skipped = min(push.skip, len(items))
        left = items[skipped:]
        size = max(map(len, batches), default=1)
        for start in range(0, len(left), size):
            send(push, *left[start : start + size])
        return push.end(skipped)
    finally:
        push.close()


def received(receiver: BatchReceiver) -> list[tuple[int, object]]:
    """Everything until the end, as (partition, item)."""
    found: list[tuple[int, object]] = []
    while (batch := receiver.next_batch(TIMEOUT_S)) is not None:
        found += items_of(batch)
    return found


def items_of(batch: Batch | None) -> list[tuple[int, object]]:
    assert batch is not None
    assert batch.kind is Kind.PICKLE
    items = pickle.loads(batch.payload)
    assert len(items) == batch.rows
    return [(batch.partition, item) for item in items]


def pump(receiver: BatchReceiver, until: Callable[[], bool]) -> None:
    """Let the receiver work until something holds, with no batch to come."""
    deadline = time.monotonic() + TIMEOUT_S
    while not until():
        assert time.monotonic() < deadline
        with pytest.raises(TimeoutError):
            receiver.next_batch(0.01)


def idle(receiver: BatchReceiver) -> bool:
    """Return whether no task is connected."""
    return receiver.statistics().connections == 0


def finish(receiver: BatchReceiver, *tasks: tuple[int, int, Future[tuple[int, int]]]) -> None:
    """Report what each task has counted, as the job does when its tasks are through."""

    def job() -> None:
        results = [
            PartitionResult(partition, attempt, *future.result(TIMEOUT_S))
            for partition, attempt, future in tasks
        ]
        receiver.finish(results)

    background(job)


def test_all_items_arrive_in_order_within_their_partition(receiver: BatchReceiver) -> None:
    target = receiver.target
    first = background(lambda: task(target, 0, 10, [[1, 2], [3]]))
    second = background(lambda: task(target, 1, 11, [["a"], ["b"], ["c"]]))
    finish(receiver, (0, 10, first), (1, 11, second))

    found = received(receiver)

    assert [item for partition, item in found if partition == 0] == [1, 2, 3]
    assert [item for partition, item in found if partition == 1] == ["a", "b", "c"]
    assert receiver.next_batch(TIMEOUT_S) is None


def test_partitions_without_items_are_complete_too(receiver: BatchReceiver) -> None:
    target = receiver.target
    empty = background(lambda: task(target, 0, 10, []))
    finish(receiver, (0, 10, empty))

    assert received(receiver) == []
    assert empty.result(TIMEOUT_S) == (0, 0)


def test_a_job_without_partitions_is_complete_at_once(receiver: BatchReceiver) -> None:
    receiver.finish([])

    assert receiver.next_batch(TIMEOUT_S) is None


def test_a_task_that_does_not_know_the_token_is_turned_away(receiver: BatchReceiver) -> None:
    target = receiver.target
    stranger = Target(target.host, target.port, target.query, b"guess")
    intruder = background(lambda: task(stranger, 0, 10, [["evil"]]))
    pump(receiver, intruder.done)

    assert isinstance(intruder.exception(TIMEOUT_S), ChannelError)
    assert receiver.statistics().rejected == 1
    assert receiver.statistics().batches == 0


def test_a_task_of_another_query_is_turned_away(receiver: BatchReceiver) -> None:
    target = receiver.target
    other = Target(target.host, target.port, b"another query...", target.token)
    intruder = background(lambda: task(other, 0, 10, [["lost"]]))
    pump(receiver, intruder.done)

    assert isinstance(intruder.exception(TIMEOUT_S), ChannelError)
    assert receiver.statistics().rejected == 1


def test_a_recorded_hello_cannot_be_replayed(receiver: BatchReceiver) -> None:
    target = receiver.target
    hello = HELLO.pack(MAGIC, target.query, 0, 10)

    def replay(connection: socket.socket) -> bytes:
        connection.recv(NONCE_SIZE)
        connection.sendall(hello + sign(target.token, b"an older nonce..", hello))
        return connection.recv(1)

    with socket.create_connection((target.host, target.port), TIMEOUT_S) as connection:
        answer = background(lambda: replay(connection))
        pump(receiver, answer.done)
        assert answer.result(TIMEOUT_S) == b""
    assert receiver.statistics().rejected == 1


def test_nonsense_after_the_hello_only_costs_that_connection(receiver: BatchReceiver) -> None:
    target = receiver.target

    def babble() -> None:
        with closing(Push(target, 0, 10)) as push:
            push._write(FRAME.pack(99, 1, 4, 0, 0) + b"####")
            with pytest.raises(ChannelError):
                push._received(1)

    babbler = background(babble)
    pump(receiver, babbler.done)
    babbler.result(TIMEOUT_S)

    retry = background(lambda: task(target, 0, 11, [[1, 2]]))
    finish(receiver, (0, 11, retry))
    assert received(receiver) == [(0, 1), (0, 2)]


def test_the_end_of_the_stream_is_not_the_end_of_the_partition(receiver: BatchReceiver) -> None:
    """An executor that is killed closes its sockets just as one that is done (reference B)."""
    target = receiver.target

    def killed() -> None:
        push = Push(target, 0, 10)
        send(push, 1, 2)
        push.close()

    background(killed)
    found = items_of(receiver.next_batch(TIMEOUT_S))
    pump(receiver, lambda: idle(receiver))

    retry = background(lambda: task(target, 0, 11, [[1, 2], [3, 4]]))
    finish(receiver, (0, 11, retry))
    found += received(receiver)

    assert found == [(0, 1), (0, 2), (0, 3), (0, 4)]
    assert retry.result(TIMEOUT_S) == (4, 1)


def test_a_batch_that_was_cut_off_is_not_delivered_and_is_sent_again(
    receiver: BatchReceiver,
) -> None:
    target = receiver.target

    def killed() -> None:
        push = Push(target, 0, 10)
        send(push, 1)
        payload = pickle.dumps([2])
        push._write(FRAME.pack(Kind.PICKLE, 1, len(payload), 0, 0) + payload[:3])
        push.close()

    background(killed)
    found = items_of(receiver.next_batch(TIMEOUT_S))
    pump(receiver, lambda: idle(receiver))
    assert receiver.statistics().partial == 0

    retry = background(lambda: task(target, 0, 11, [[1], [2], [3]]))
    finish(receiver, (0, 11, retry))

    assert found + received(receiver) == [(0, 1), (0, 2), (0, 3)]


def test_a_later_attempt_fences_the_earlier_one(receiver: BatchReceiver) -> None:
    target = receiver.target
    go_on, sent = threading.Event(), threading.Event()

    def orphan() -> None:
        with closing(Push(target, 0, 10)) as push:
            send(push, 1)
            sent.set()
            assert go_on.wait(TIMEOUT_S)
            for _ in range(100):
                push.send(Kind.PICKLE, 1, bytes(100_000))

    old = background(orphan)
    found = items_of(receiver.next_batch(TIMEOUT_S))
    assert sent.wait(TIMEOUT_S)
    new = background(lambda: task(target, 0, 11, [[1, 2, 3]]))
    found += items_of(receiver.next_batch(TIMEOUT_S))
    go_on.set()
    finish(receiver, (0, 11, new))
    found += received(receiver)

    assert found == [(0, 1), (0, 2), (0, 3)]
    assert isinstance(old.exception(TIMEOUT_S), ChannelError)
    assert receiver.statistics().fenced == 1


def killed(target: Target, go_on: threading.Event) -> None:
    """The first attempt at partition 0, which sends 1, and is cut off when `go_on` is set."""
    with closing(Push(target, 0, 10)) as push:
        send(push, 1)
        assert go_on.wait(TIMEOUT_S)


@pytest.fixture
def speculating() -> Iterator[BatchReceiver]:
    made = BatchReceiver(speculation=True)
    yield made
    made.cancel()


def test_a_copy_of_a_slow_task_waits_for_its_end(speculating: BatchReceiver) -> None:
    """Were it let in, each would fail the one before, until Spark gives the job up."""
    target = speculating.target
    go_on = threading.Event()

    def slow() -> tuple[int, int]:
        with closing(Push(target, 0, 10)) as push:
            send(push, 1)
            assert go_on.wait(TIMEOUT_S)
            send(push, 2, 3)
            return push.end(0)

    original = background(slow)
    found = items_of(speculating.next_batch(TIMEOUT_S))
    copy = background(lambda: task(target, 0, 11, [[1], [2, 3]]))
    pump(speculating, lambda: speculating.statistics().connections == 2)
    with pytest.raises(TimeoutError):
        speculating.next_batch(0.2)
    assert not copy.done()
    go_on.set()
    finish(speculating, (0, 10, original))
    found += received(speculating)

    assert found == [(0, 1), (0, 2), (0, 3)]
    assert speculating.statistics().fenced == 0


def test_a_copy_continues_where_the_task_before_it_was_lost(speculating: BatchReceiver) -> None:
    target = speculating.target
    go_on = threading.Event()
    lost = background(lambda: killed(target, go_on))
    found = items_of(speculating.next_batch(TIMEOUT_S))
    copy = background(lambda: task(target, 0, 11, [[1], [2], [3]]))
    pump(speculating, lambda: speculating.statistics().connections == 2)
    go_on.set()
    lost.result(TIMEOUT_S)
    finish(speculating, (0, 11, copy))

    assert found + received(speculating) == [(0, 1), (0, 2), (0, 3)]


def test_a_copy_that_waits_may_be_killed_and_another_one_takes_its_place(
    speculating: BatchReceiver,
) -> None:
    """Spark kills it when the original has ended, or with its executor."""
    target = speculating.target
    go_on = threading.Event()
    lost = background(lambda: killed(target, go_on))
    found = items_of(speculating.next_batch(TIMEOUT_S))
    with socket.create_connection((target.host, target.port), TIMEOUT_S) as waiting:
        greeted = background(lambda: waiting.recv(NONCE_SIZE))
        pump(speculating, greeted.done)
        hello = HELLO.pack(MAGIC, target.query, 0, 11)
        waiting.sendall(hello + sign(target.token, greeted.result(TIMEOUT_S), hello))
        pump(speculating, lambda: bool(speculating._partitions[0].copies))
    pump(speculating, lambda: not speculating._partitions[0].copies)
    another = background(lambda: task(target, 0, 12, [[1], [2]]))
    pump(speculating, lambda: bool(speculating._partitions[0].copies))
    go_on.set()
    lost.result(TIMEOUT_S)
    finish(speculating, (0, 12, another))

    assert found + received(speculating) == [(0, 1), (0, 2)]


def test_a_late_attempt_fails_because_another_has_taken_over(
    receiver: BatchReceiver,
) -> None:
    target = receiver.target
    new = background(lambda: task(target, 0, 11, [[1], [2]]))
    found = items_of(receiver.next_batch(TIMEOUT_S))
    old = background(lambda: task(target, 0, 10, [["stale"]]))
    finish(receiver, (0, 11, new))
    found += received(receiver)

    assert found == [(0, 1), (0, 2)]
    error = old.exception(TIMEOUT_S)
    assert isinstance(error, ChannelError)


def test_a_truncated_end_is_corrected_by_the_retry(receiver: BatchReceiver) -> None:
    """An orphaned worker takes the end of its input for the end of its partition."""
    target = receiver.target
    orphan = background(lambda: task(target, 0, 10, [[1, 2]]))
    found = items_of(receiver.next_batch(TIMEOUT_S))
    pump(receiver, orphan.done)
    assert orphan.result(TIMEOUT_S) == (2, 1)

    retry = background(lambda: task(target, 0, 11, [[1, 2], [3]]))
    finish(receiver, (0, 11, retry))

    assert found + received(receiver) == [(0, 1), (0, 2), (0, 3)]


def test_a_retry_that_gives_fewer_items_is_found_out(receiver: BatchReceiver) -> None:
    target = receiver.target

    def killed() -> None:
        push = Push(target, 3, 10)
        send(push, 1, 2, 3)
        push.close()

    background(killed)
    items_of(receiver.next_batch(TIMEOUT_S))
    retry = background(lambda: task(target, 3, 11, [[1, 2]]))
    pump(receiver, retry.done)

    assert isinstance(retry.exception(TIMEOUT_S), PartitionChangedError)
    changed = receiver.changed()
    assert isinstance(changed, FlowError)
    assert "partition 3 gave 3 items at first and 2 when it was retried" in str(changed)
    assert "deterministic" in str(changed)


def test_a_shorter_retry_is_forgotten_when_another_one_is_complete(
    receiver: BatchReceiver,
) -> None:
    """The short one may itself have been cut off by its executor's end."""
    target = receiver.target

    def killed() -> None:
        push = Push(target, 0, 10)
        send(push, 1, 2, 3)
        push.close()

    background(killed)
    found = items_of(receiver.next_batch(TIMEOUT_S))
    short = background(lambda: task(target, 0, 11, [[1, 2]]))
    pump(receiver, short.done)
    assert isinstance(short.exception(TIMEOUT_S), PartitionChangedError)

    whole = background(lambda: task(target, 0, 12, [[1, 2, 3, 4]]))
    finish(receiver, (0, 12, whole))

    assert found + received(receiver) == [(0, 1), (0, 2), (0, 3), (0, 4)]
    assert receiver.changed() is None


@pytest.mark.parametrize(
    "results",
    [
        pytest.param([PartitionResult(0, 10, 3, 1)], id="more rows than arrived"),
        pytest.param([PartitionResult(0, 10, 1, 1)], id="fewer rows than arrived"),
        pytest.param([], id="a partition that the job does not know"),
        pytest.param(
            [PartitionResult(0, 10, 2, 1), PartitionResult(1, 11, 5, 1)],
            id="a partition that never came",
        ),
        pytest.param([PartitionResult(0, 10, 2, 1), PartitionResult(0, 11, 2, 1)], id="twice"),
    ],
)
def test_only_the_counts_of_the_job_are_believed(
    receiver: BatchReceiver, results: list[PartitionResult]
) -> None:
    target = receiver.target
    done = background(lambda: task(target, 0, 10, [[1, 2]]))
    items_of(receiver.next_batch(TIMEOUT_S))
    pump(receiver, done.done)
    done.result(TIMEOUT_S)
    receiver.finish(results)

    with pytest.raises(ChannelError, match="not what the Spark job reports"):
        receiver.next_batch(TIMEOUT_S)


def test_a_paused_reader_stops_every_task() -> None:
    """A batch that is not read blocks the task in send: reading is the demand (reference B)."""
    receiver = BatchReceiver(capacity=2)
    target = receiver.target
    payload = bytes(256 * 1024)
    tasks, frames = 6, 60
    sent = [0] * tasks

    def run(partition: int) -> tuple[int, int]:
        with closing(Push(target, partition, partition)) as push:
            for _ in range(frames):
                push.send(Kind.PICKLE, 1, payload)
                sent[partition] += 1
            return push.end(0)

    futures = [background(lambda number=number: run(number)) for number in range(tasks)]
    for _ in range(3):
        assert receiver.next_batch(TIMEOUT_S) is not None
    # Nobody reads now. A task that can go on does so within this time.
    for future in futures:
        with pytest.raises(TimeoutError):
            future.result(0.2)

    statistics = receiver.statistics()
    assert statistics.batches == 3
    assert statistics.partial <= 2
    # Beyond what was read, a task fills its two socket buffers and stands still.
    assert sum(sent) <= 3 + tasks * 3

    finish(receiver, *((number, number, future) for number, future in enumerate(futures)))
    rest = 0
    while receiver.next_batch(TIMEOUT_S) is not None:
        rest += 1
        assert receiver.statistics().partial <= 2
    assert rest == tasks * frames - 3


def test_partitions_take_turns() -> None:
    receiver = BatchReceiver(capacity=8)
    target = receiver.target
    payload = bytes(64 * 1024)
    connected, waiting = threading.Barrier(4), [threading.Event() for _ in range(4)]

    def run(partition: int) -> tuple[int, int]:
        with closing(Push(target, partition, partition)) as push:
            for number in range(40):
                push.send(Kind.PICKLE, 1, payload)
                if number == 0:
                    connected.wait(TIMEOUT_S)
                else:
                    waiting[partition].set()
            return push.end(0)

    futures = [background(lambda number=number: run(number)) for number in range(4)]
    finish(receiver, *((number, number, future) for number, future in enumerate(futures)))
    order: list[int] = []
    while (batch := receiver.next_batch(TIMEOUT_S)) is not None:
        order.append(batch.partition)
        if len(order) == 4:  # the first one of each
            assert all(each.wait(TIMEOUT_S) for each in waiting)

    assert len(order) == 160
    # All had something to give: none is left aside for long.
    assert {*order[4:44]} == {0, 1, 2, 3}


def test_cancel_wakes_the_reader_and_fails_the_tasks(receiver: BatchReceiver) -> None:
    target = receiver.target
    reading = threading.Event()

    def endless() -> None:
        with closing(Push(target, 0, 10)) as push:
            while True:
                push.send(Kind.PICKLE, 1, bytes(50_000))

    def read() -> int:
        count = 0
        while receiver.next_batch(TIMEOUT_S) is not None:
            count += 1
            reading.set()
        return count

    producer, reader = background(endless), background(read)
    assert reading.wait(TIMEOUT_S)
    receiver.cancel()
    receiver.cancel()

    assert reader.result(TIMEOUT_S) >= 1
    assert isinstance(producer.exception(TIMEOUT_S), ChannelError)
    assert receiver.statistics().connections == 0
    assert isinstance(background(lambda: Push(target, 1, 11)).exception(TIMEOUT_S), ChannelError)


def test_a_read_while_another_thread_closes_gives_the_end() -> None:
    receiver = BatchReceiver()
    found: list[Batch | None] = []

    class Listener:
        def __init__(self, listener: socket.socket) -> None:
            self._listener = listener

        def close(self) -> None:
            found.append(background(receiver.next_batch).result(TIMEOUT_S))
            self._listener.close()

    reception = receiver._reception
    reception._listener = Listener(reception._listener)  # type: ignore[assignment, misc]  # a spy

    receiver.cancel()

    assert found == [None]


def test_a_missing_driver_is_reported_with_its_address_and_the_setting() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    with pytest.raises(ChannelError, match=rf"(?s)127.0.0.1:{port} .*spark.flow.driver.host"):
        Push(Target("127.0.0.1", port), 0, 10)


def test_a_driver_with_an_unknown_name_is_reported() -> None:
    with pytest.raises(ChannelError, match=r"driver at flow.invalid:7 .*spark.flow.driver.host"):
        Push(Target("flow.invalid", 7), 0, 10)


def test_a_driver_that_does_not_answer_is_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A firewall that drops what comes says nothing."""
    monkeypatch.setattr(wire, "_REACHED_WITHIN_S", 0.2)
    with socket.socket() as full, ExitStack() as stack:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(4):  # nobody accepts them, and no more fit
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        target = Target(*full.getsockname())

        with pytest.raises(ChannelError, match=rf"{target.host}:{target.port} .*timed out"):
            Push(target, 0, 10)


def test_cancel_before_any_reading_turns_tasks_away(receiver: BatchReceiver) -> None:
    waiting = background(lambda: Push(receiver.target, 0, 10))
    with pytest.raises(TimeoutError):
        waiting.result(0.2)
    receiver.cancel()

    assert isinstance(waiting.exception(TIMEOUT_S), ChannelError)
    assert receiver.next_batch(TIMEOUT_S) is None


def test_a_failed_job_raises_the_identical_error_once(receiver: BatchReceiver) -> None:
    error = KeyError("identical")
    reader = background(lambda: receiver.next_batch(TIMEOUT_S))
    receiver.fail(error)

    assert reader.exception(TIMEOUT_S) is error
    assert receiver.next_batch(TIMEOUT_S) is None


def test_a_failure_counts_only_until_another_attempt_begins(receiver: BatchReceiver) -> None:
    target = receiver.target

    def failing() -> None:
        push = Push(target, 0, 10)
        push.fail(b"pickled")
        push.close()

    failed = background(failing)
    pump(receiver, failed.done)
    failed.result(TIMEOUT_S)
    failure = receiver.failure()
    assert failure is not None
    assert (failure.partition, failure.task, failure.payload) == (0, 10, b"pickled")

    retry = background(lambda: task(target, 0, 11, [[1]]))
    finish(receiver, (0, 11, retry))
    assert received(receiver) == [(0, 1)]
    assert receiver.failure() is None


def test_it_has_one_reader_at_a_time(receiver: BatchReceiver) -> None:
    first = background(lambda: receiver.next_batch(TIMEOUT_S))

    def collide() -> None:
        while not first.done():  # until the other thread is in
            with suppress(TimeoutError):
                receiver.next_batch(0.001)

    second = background(collide)
    done = wait([first, second], TIMEOUT_S, FIRST_COMPLETED).done
    receiver.cancel()

    assert len(done) == 1
    error = done.pop().exception()
    assert isinstance(error, ChannelError)
    assert "one reader" in str(error)


def test_capacity_is_at_least_one_batch() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        BatchReceiver(capacity=0)


def test_an_item_longer_than_a_frame_is_refused_and_the_partition_continues(
    receiver: BatchReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flow_spark.channel.push.LONGEST_FRAME", 100)

    def attempt() -> tuple[int, int]:
        with closing(Push(receiver.target, 0, 1)) as push:
            with pytest.raises(LimitExceededError, match=r"1 item of [\d,]+ bytes.*100 at once"):
                send(push, "x" * 100)
            send(push, "x")
            return push.end(0)

    finish(receiver, (0, 1, background(attempt)))

    assert received(receiver) == [(0, "x")]
