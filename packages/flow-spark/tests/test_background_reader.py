"""The reader of what tasks send: the consumer, or the background reader while others want slots."""

from __future__ import annotations

import pickle
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, closing, suppress
from queue import SimpleQueue

import pytest

from flow_spark.channel import background_reader as relieving
from flow_spark.channel import receiver as receiving
from flow_spark.channel.background_reader import BackgroundReader
from flow_spark.channel.backlog import Backlog, Batch
from flow_spark.channel.push import Push
from flow_spark.channel.receiver import BatchReceiver, PartitionResult
from flow_spark.channel.wire import NONCE_SIZE, Kind, Target
from flow_spark.errors import ChannelError
from flow_testing.interleave import Scenario, explore_all

from .infrastructure.processes import wait_until

TIMEOUT_S = 20.0
BLOCK = "x" * 200_000
"""More than the sockets hold, of two of which a task waits for a reader."""


def task(
    target: Target, partition: int, items: list[object], attempt: int = 0
) -> Future[tuple[int, int]]:
    """Sends each of `items` as a separate batch; done when the driver has taken them all."""
    future: Future[tuple[int, int]] = Future()

    def run() -> None:
        try:
            with closing(Push(target, partition, partition + attempt)) as push:
                for item in items[push.skip :]:
                    push.send(Kind.PICKLE, 1, pickle.dumps([item]))
                future.set_result(push.end(push.skip))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


class Job:
    """A receiver with a background reader, and a cluster that says whether others wait."""

    def __init__(self, backlog: Backlog | None = None) -> None:
        self.receiver = BatchReceiver(backlog=backlog)
        self.others_wait = False
        self.asked = 0
        self.gave_up = 0
        self.may_leave = False
        self.left: SimpleQueue[None] = SimpleQueue()
        self.thread = threading.Thread(
            target=BackgroundReader(
                self.receiver, self.wanted, lambda: self.give_up(), leave=self.leave
            ).run,
            daemon=True,
        )
        self.thread.start()

    def wanted(self) -> bool:
        self.asked += 1
        return self.others_wait

    def give_up(self) -> None:
        self.gave_up += 1
        assert self.receiver.abandon(LookupError("given up"))

    def leave(self) -> bool:
        if not self.may_leave:
            return False
        if self.receiver.has_tasks():
            assert self.receiver.let_go(lambda: self.left.put(None))
        return True

    def items(self) -> list[object]:
        found: list[object] = []
        while (batch := self.receiver.next_batch(TIMEOUT_S)) is not None:
            found += pickle.loads(batch.payload)
        return found

    def report(self, *done: Future[tuple[int, int]]) -> None:
        self.receiver.finish(
            [PartitionResult(n, n, *one.result(TIMEOUT_S)) for n, one in enumerate(done)]
        )


@pytest.fixture
def job() -> Iterator[Job]:
    made = Job()
    yield made
    made.receiver.cancel()
    made.thread.join(TIMEOUT_S)
    assert not made.thread.is_alive()


def test_nothing_is_taken_in_while_no_other_job_waits(job: Job) -> None:
    done = task(job.receiver.target, 0, [BLOCK] * 20)
    assert wait_until(lambda: job.asked > 5, TIMEOUT_S)

    assert job.receiver.statistics().batches == 0
    assert not done.done()


def test_tasks_end_without_a_reader_if_others_wait(job: Job) -> None:
    job.others_wait = True
    done = task(job.receiver.target, 0, [f"{n}{BLOCK}" for n in range(100)])
    assert done.result(TIMEOUT_S) == (100, 100)
    assert job.receiver.statistics().waiting > 100 * len(BLOCK)

    job.report(done)
    assert job.items() == [f"{n}{BLOCK}" for n in range(100)]
    assert job.receiver.statistics().waiting == 0


def test_a_consumer_that_comes_back_reads_behind_what_was_taken_in(job: Job) -> None:
    job.others_wait = True
    items = [f"{n}{BLOCK}" for n in range(300)]
    done = task(job.receiver.target, 0, [*items])
    assert wait_until(lambda: job.receiver.statistics().waiting > 10 * len(BLOCK), TIMEOUT_S)
    reader: Future[list[object]] = Future()
    threading.Thread(target=lambda: reader.set_result(job.items()), daemon=True).start()
    job.report(done)

    assert reader.result(TIMEOUT_S) == items


def test_it_stops_when_no_other_job_waits_any_more(job: Job) -> None:
    job.others_wait = True
    target = job.receiver.target
    first = task(target, 0, ["a"])
    first.result(TIMEOUT_S)
    job.others_wait = False
    asked = job.asked
    assert wait_until(lambda: job.asked > asked + 3, TIMEOUT_S)
    second = task(target, 1, [BLOCK] * 20)
    asked = job.asked
    assert wait_until(lambda: job.asked > asked + 3, TIMEOUT_S)

    assert job.receiver.statistics().batches == 1
    assert not second.done()


def test_others_are_looked_for_while_much_is_taken_in(job: Job) -> None:
    def send(push: Push) -> None:
        while True:
            push.send(Kind.PICKLE, 1, pickle.dumps([BLOCK]))

    def endless() -> None:
        with suppress(ChannelError), closing(Push(job.receiver.target, 0, 0)) as push:
            send(push)

    job.others_wait = True
    task = threading.Thread(target=endless, daemon=True)
    task.start()
    assert wait_until(lambda: job.receiver.statistics().waiting > 10 * len(BLOCK), TIMEOUT_S)
    job.others_wait = False
    asked = job.asked
    assert wait_until(lambda: job.asked > asked + 3, TIMEOUT_S)
    batches = job.receiver.statistics().batches
    asked = job.asked
    assert wait_until(lambda: job.asked > asked + 3, TIMEOUT_S)
    assert job.receiver.statistics().batches == batches
    job.receiver.cancel()
    task.join(TIMEOUT_S)


def test_a_consumer_that_comes_back_at_the_last_moment_is_served_as_before(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relieving, "GIVEN_UP_S", 0.0)
    full = [True, True]
    monkeypatch.setattr(BatchReceiver, "is_full", lambda _: bool(full) and full.pop())
    monkeypatch.setattr(job, "give_up", lambda: None)  # the consumer was faster
    job.others_wait = True
    task(job.receiver.target, 0, [BLOCK] * 50).result(TIMEOUT_S)


def test_an_error_comes_behind_the_items_that_came_before_it(job: Job) -> None:
    job.others_wait = True
    task(job.receiver.target, 0, [1, 2, 3]).result(TIMEOUT_S)
    job.receiver.fail(LookupError("the job"))
    found: list[object] = []
    with pytest.raises(LookupError, match="the job"):
        while (batch := job.receiver.next_batch(TIMEOUT_S)) is not None:
            found += pickle.loads(batch.payload)
    assert found == [1, 2, 3]


def test_no_more_is_taken_in_than_there_is_room_and_a_later_consumer_gets_all() -> None:
    job = Job(Backlog(limit=10 * len(BLOCK)))
    job.others_wait = True
    done = task(job.receiver.target, 0, [BLOCK] * 50)
    assert wait_until(job.receiver.is_full, TIMEOUT_S)
    assert job.receiver.statistics().waiting < 12 * len(BLOCK)
    assert not done.done()

    threading.Thread(target=job.report, args=[done], daemon=True).start()
    assert job.items() == [BLOCK] * 50
    assert job.gave_up == 0


def test_a_job_is_given_up_if_there_is_no_room_and_its_consumer_stays_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relieving, "GIVEN_UP_S", 0.5)
    job = Job(Backlog(limit=10 * len(BLOCK)))
    job.others_wait = True
    done = task(job.receiver.target, 0, [BLOCK] * 50)

    assert done.exception(TIMEOUT_S) is not None, "the task was let go"
    job.thread.join(TIMEOUT_S)
    assert job.gave_up == 1
    count = 0
    with pytest.raises(LookupError, match="given up"):
        while job.receiver.next_batch(TIMEOUT_S) is not None:
            count += 1
    assert 10 <= count <= 12, "what was taken in comes first"


def test_tasks_leave_if_there_is_no_room_and_others_continue_behind_them(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(relieving, "LEFT_S", 0.2)
    monkeypatch.setattr(relieving, "GIVEN_UP_S", 0.5)
    job = Job(Backlog(limit=10 * len(BLOCK)))
    job.others_wait = job.may_leave = True
    items = [f"{n}{BLOCK}" for n in range(50)]
    first = task(job.receiver.target, 0, [*items])
    job.left.get(timeout=TIMEOUT_S)
    assert isinstance(first.exception(TIMEOUT_S), ChannelError)
    asked = job.asked
    assert wait_until(lambda: job.asked > asked + 10, TIMEOUT_S)
    assert not job.receiver.knows(0), "its next attempt is waited for"
    assert job.gave_up == 0

    second = task(job.receiver.target, 0, [*items], attempt=1)
    threading.Thread(target=job.report, args=[second], daemon=True).start()
    assert job.items() == items
    assert not caplog.records, "none was lost"


def test_tasks_that_have_not_been_greeted_leave_too(job: Job) -> None:
    """They connected when there was no room, so that they were not looked at."""
    address = (job.receiver.target.host, job.receiver.target.port)
    with socket.create_connection(address) as known, ExitStack() as stack:
        job.receiver.take_in(0.1)
        assert len(known.recv(NONCE_SIZE)) == NONCE_SIZE
        unknown = stack.enter_context(socket.create_connection(address))
        assert job.receiver.let_go(lambda: None)

        for sock in (known, unknown):
            assert sock.recv(1) == b"", "it is let go"


def test_tasks_that_do_not_end_leave_though_there_is_room(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relieving, "GIVEN_UP_S", 0.5)
    job.others_wait = job.may_leave = True
    with closing(Push(job.receiver.target, 0, 0)) as push:
        push.send(Kind.PICKLE, 1, pickle.dumps([1]))
        job.left.get(timeout=TIMEOUT_S)
        assert wait_until(push.is_closed, TIMEOUT_S)
    assert job.receiver.statistics().waiting


def test_tasks_stay_while_a_consumer_asks_or_if_the_job_has_ended(job: Job) -> None:
    def end() -> None:
        raise AssertionError("they are not to leave")

    reader = threading.Thread(target=job.items, daemon=True)
    reader.start()
    assert wait_until(lambda: job.receiver.silence_s() == 0, TIMEOUT_S)
    assert not job.receiver.let_go(end)
    job.receiver.finish([])
    reader.join(TIMEOUT_S)
    assert not job.receiver.let_go(end)


def test_it_ends_with_its_job(job: Job) -> None:
    job.others_wait = True
    task(job.receiver.target, 0, [1]).result(TIMEOUT_S)
    job.receiver.finish([PartitionResult(0, 0, 1, 1)])
    job.thread.join(TIMEOUT_S)

    assert not job.thread.is_alive()
    assert job.items() == [1]


def test_a_cluster_that_does_not_answer_ends_nothing(job: Job) -> None:
    def silent() -> bool:
        job.asked += 1
        raise ConnectionError

    thread = threading.Thread(
        target=BackgroundReader(job.receiver, silent, job.give_up).run, daemon=True
    )
    thread.start()
    assert wait_until(lambda: job.asked > 5, TIMEOUT_S)
    assert thread.is_alive()
    assert not job.receiver.is_over()


def test_a_relief_that_fails_says_so_to_the_consumer(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object, __: Batch) -> None:
        raise OSError("the disk")

    monkeypatch.setattr(Backlog, "put", broken)
    job.others_wait = True
    task(job.receiver.target, 0, [1])
    assert wait_until(job.receiver.is_over, TIMEOUT_S)
    with pytest.raises(OSError, match="the disk"):
        job.receiver.next_batch(TIMEOUT_S)


# -- under every schedule


class Wire:
    """Stands for `Reception`: no task connects, and a thread waits until it is woken."""

    port = 1
    target: object = None
    rejected = 0

    def __init__(self, _: str) -> None:
        self.bell: SimpleQueue[None] = SimpleQueue()
        self.guests: deque[object] = deque()

    def wait(self, _: float | None) -> list[object]:
        self.bell.get()
        return []

    def wake(self) -> None:
        self.bell.put(None)

    def turn_away(self) -> None: ...

    def close(self) -> None: ...


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Callable[..., BatchReceiver]:
    """Receivers with this number of batches to be read, and room for this number of bytes."""
    wires: dict[int, deque[Batch]] = {}
    monkeypatch.setattr(receiving, "Reception", Wire)
    monkeypatch.setattr(
        BatchReceiver,
        "_ready_batch",
        lambda self: wires[id(self)].popleft() if wires[id(self)] else None,
    )

    def made(count: int, room: int = 10_000) -> BatchReceiver:
        backlog = Backlog(memory=0, segment=1, limit=room)
        receiver = BatchReceiver(of=(Target("", 1), b""), backlog=backlog)
        wires[id(receiver)] = deque(numbered(n) for n in range(count))
        return receiver

    return made


def numbered(number: int) -> Batch:
    return Batch(number, 1, Kind.PICKLE, bytearray(1), b"")


MODULES = [f"flow_spark.channel.{name}" for name in ("turn", "receiver", "backlog")] + [__name__]
explored = pytest.mark.interleave


def numbers(receiver: BatchReceiver, most: int = 9) -> Iterator[int]:
    """The batches that come, at most `most`."""
    for _ in range(most):
        batch = receiver.next_batch()
        if batch is None:
            return
        yield batch.partition


@explored
@pytest.mark.essential
def test_a_consumer_gets_all_in_order_whenever_the_relief_reads(
    make: Callable[..., BatchReceiver],
) -> None:
    def body() -> Scenario:
        receiver, seen = make(2), list[int]()

        def consume() -> None:
            seen.extend(numbers(receiver, 2))
            receiver.cancel()

        return Scenario(consume, lambda: receiver.take_in(60), outcome=lambda: tuple(seen))

    explore_all(body, modules=MODULES, expect={(0, 1)})


@explored
@pytest.mark.essential
def test_the_end_comes_to_a_consumer_whenever_the_relief_reads(
    make: Callable[..., BatchReceiver],
) -> None:
    def body() -> Scenario:
        receiver, seen = make(1), list[int]()
        return Scenario(
            lambda: seen.extend(numbers(receiver)),
            lambda: receiver.take_in(60),
            lambda: receiver.finish([]),
            outcome=lambda: tuple(seen),
        )

    explore_all(body, modules=MODULES, expect={(0,)})


@explored
@pytest.mark.essential
def test_a_cancel_ends_both_threads_and_leaves_nothing(
    make: Callable[..., BatchReceiver],
) -> None:
    def body() -> Scenario:
        receiver, seen = make(2), list[int]()

        def check() -> None:
            assert seen == [*range(len(seen))]
            assert receiver.next_batch(0) is None
            assert receiver.take_in(0) is False

        return Scenario(
            lambda: seen.extend(numbers(receiver)),
            lambda: receiver.take_in(60),
            receiver.cancel,
            check=check,
        )

    explore_all(body, modules=MODULES)


@explored
def test_a_job_is_given_up_or_continues_but_never_both(make: Callable[..., BatchReceiver]) -> None:
    def body() -> Scenario:
        receiver, seen = make(1, room=1), list[object]()

        def consume() -> None:
            try:
                seen.extend(numbers(receiver))
            except LookupError:
                seen.append("error")

        def relieve() -> None:
            receiver.take_in(60)
            if not receiver.abandon(LookupError()):
                receiver.finish([])

        return Scenario(consume, relieve, outcome=lambda: tuple(seen))

    explore_all(body, modules=MODULES, expect={(0,), (0, "error")})


@explored
@pytest.mark.essential
def test_a_consumer_gets_all_whenever_tasks_are_let_go(
    make: Callable[..., BatchReceiver],
) -> None:
    def body() -> Scenario:
        receiver, seen = make(1), list[int]()

        def leave() -> None:
            receiver.let_go(lambda: None)
            receiver.finish([])

        return Scenario(lambda: seen.extend(numbers(receiver)), leave, outcome=lambda: tuple(seen))

    explore_all(body, modules=MODULES, expect={(0,)})


@explored
def test_a_cancel_while_tasks_are_let_go_leaves_nothing(
    make: Callable[..., BatchReceiver],
) -> None:
    def body() -> Scenario:
        receiver = make(2, room=1)
        receiver.take_in(60)
        return Scenario(
            lambda: receiver.let_go(lambda: None),
            receiver.cancel,
            outcome=lambda: receiver.statistics().waiting,
        )

    explore_all(body, modules=MODULES, expect={0})


@explored
def test_a_cancel_while_a_job_is_given_up_leaves_nothing(
    make: Callable[..., BatchReceiver],
) -> None:
    def body() -> Scenario:
        receiver = make(2, room=1)
        receiver.take_in(60)
        assert receiver.is_full()

        def check() -> None:
            assert receiver.statistics().waiting == 0
            assert receiver.next_batch(0) is None

        return Scenario(lambda: receiver.abandon(LookupError()), receiver.cancel, check=check)

    explore_all(body, modules=MODULES)


def test_a_consumer_that_reads_is_not_away_and_no_other_thread_may_read() -> None:
    receiver = BatchReceiver()
    reader = threading.Thread(target=receiver.next_batch, daemon=True)
    reader.start()
    try:
        assert wait_until(lambda: receiver.silence_s() == 0, TIMEOUT_S)
        assert not receiver.take_in(0)
    finally:
        receiver.cancel()
    reader.join(TIMEOUT_S)
    assert wait_until(lambda: receiver.silence_s() > 0, TIMEOUT_S)
