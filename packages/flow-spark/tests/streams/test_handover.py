"""The handover of a micro-batch: the ends that may take part, and the loss of one of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import pytest

from flow_spark.channel.handover import BatchListener, Handover, label_of
from flow_spark.channel.receiver import PartitionResult
from flow_spark.errors import ChannelError

HOST = "127.0.0.1"
TIMEOUT_S = 30.0


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as pool:
        yield pool


@pytest.fixture
def listener() -> Iterator[BatchListener]:
    listener = BatchListener(HOST, HOST)
    yield listener
    listener.close()


def test_a_micro_batch_is_handed_over_reported_and_acknowledged(
    pool: ThreadPoolExecutor, listener: BatchListener
) -> None:
    released = threading.Event()

    def query() -> int:
        handover = Handover(listener.target, 7)
        handover.finish([(0, 1, 2, 3)])
        assert released.is_set()
        handover.close()
        return handover.target.port

    running: Future[int] = pool.submit(query)
    line = listener.next_line()
    assert line is not None
    line.start(1234)
    results = line.outcome()
    released.set()
    line.acknowledge()

    assert running.result(TIMEOUT_S) == 1234
    assert (line.batch_id, results) == (7, [PartitionResult(0, 1, 2, 3)])
    assert (line.acknowledged, line.wait(0)) == (True, True)
    line.close()


def test_a_micro_batch_that_is_closed_is_not_acknowledged_any_more(
    pool: ThreadPoolExecutor, listener: BatchListener
) -> None:
    query: Future[Handover] = pool.submit(Handover, listener.target, 7)
    line = listener.next_line()
    assert line is not None
    line.start(1234)
    finishing = pool.submit(query.result(TIMEOUT_S).finish, [])
    line.outcome()
    assert not line.wait(0)

    line.close()
    line.acknowledge()

    with pytest.raises(ChannelError, match="micro-batch 7 has no consumer"):
        finishing.result(TIMEOUT_S)
    assert (line.acknowledged, line.wait(0)) == (False, True)
    query.result().close()


def test_both_ends_work_out_the_same_secrets_and_each_micro_batch_has_its_own(
    listener: BatchListener,
) -> None:
    one, same, other = (listener.target.derived(1, label_of(number)) for number in (1, 1, 2))

    assert one == same
    assert len({one.token, other.token, listener.target.token}) == 3
    assert len(one.query) == len(listener.target.query)


def test_a_connection_that_cannot_prove_to_be_of_the_query_is_refused(
    pool: ThreadPoolExecutor, listener: BatchListener
) -> None:
    def strangers() -> list[str]:
        said: list[str] = []
        for change in ({"token": b"x" * 32}, {"query": b"x" * 16}):
            with pytest.raises(ChannelError) as caught:
                Handover(replace(listener.target, **change), 1)
            said.append(str(caught.value))
        Handover(listener.target, 2).close()
        return said

    running = pool.submit(strangers)
    line = listener.next_line()

    assert line is not None
    assert line.batch_id == 2
    line.start(1)
    assert len(running.result(TIMEOUT_S)) == 2
    line.close()


@pytest.mark.parametrize("reported", [False, True])
def test_a_query_whose_subscriber_leaves_learns_that_its_micro_batch_has_no_consumer(
    pool: ThreadPoolExecutor, listener: BatchListener, reported: bool
) -> None:
    def query() -> None:
        handover = Handover(listener.target, 5)
        try:
            handover.finish([])
        finally:
            handover.close()

    running = pool.submit(query)
    line = listener.next_line()
    assert line is not None
    line.start(1)
    if reported:
        assert line.outcome() == []
    line.close()

    with pytest.raises(ChannelError, match="micro-batch 5 has no consumer"):
        running.result(TIMEOUT_S)


def test_a_subscriber_is_notified_when_its_query_leaves(
    pool: ThreadPoolExecutor, listener: BatchListener
) -> None:
    running = pool.submit(lambda: Handover(listener.target, 5).close())
    line = listener.next_line()
    assert line is not None
    line.start(1)
    running.result(TIMEOUT_S)

    with pytest.raises(OSError, match="closed"):
        line.outcome()
    line.close()


def test_closing_wakes_a_thread_that_waits_for_a_micro_batch(pool: ThreadPoolExecutor) -> None:
    listener = BatchListener(HOST, HOST)
    waiting = pool.submit(listener.next_line)

    listener.close()

    assert waiting.result(TIMEOUT_S) is None
    with pytest.raises(ChannelError):
        Handover(listener.target, 1)
