"""observe_on under real threads, each for a second or two; the model and the steps prove more."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import flow_core as flow
from flow_ops import observe_on


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.slow
@pytest.mark.checklist("O14")
def test_eight_threads_keep_the_order_and_never_overlap(record, paced):
    count = 100_000
    source = paced(count)
    with ThreadPoolExecutor(8) as pool:
        source.flow.pipe(observe_on(pool)).subscribe(seen := record())
        source.run()
        assert seen.wait().items == list(range(count))


@pytest.mark.checklist("O15")
@pytest.mark.parametrize("prefetch", [1, 3, 128])
def test_no_wake_up_is_lost_between_producer_and_requester(elsewhere, record, paced, prefetch):
    """Three threads: one sends, one requests, the executor delivers. A lost wake-up would hang."""
    count, chance = 5_000, random.Random(42)
    source = paced(count)
    source.flow.pipe(observe_on(elsewhere.executor, prefetch=prefetch)).subscribe(
        seen := record(request=0, here=elsewhere.is_here)
    )
    producer = threading.Thread(target=source.run)
    producer.start()
    requested = 0
    while requested < count:
        n = min(chance.choice((1, 1, 2, 7, 50)), count - requested)
        requested += n
        seen.subscription.request(n)
        if chance.random() < 0.1:
            seen.wait_items(requested)  # the queue runs dry of demand, exactly
            assert len(seen.items) == requested
    assert seen.wait().items == list(range(count))
    producer.join(20)


@pytest.mark.slow
@pytest.mark.checklist("O16")
def test_the_last_items_are_not_lost_in_a_race_with_the_end(pool, record, source):
    for n in range(2_000):
        source.flow.pipe(observe_on(pool)).subscribe(seen := record())
        source.send(*range(n % 4))
        source.complete()
        assert seen.wait().items == list(range(n % 4))


@pytest.mark.slow
@pytest.mark.checklist("O24")
def test_no_task_that_starts_after_cancel_returned_delivers(pool, record, source):
    """10,000 races of schedule and cancel."""
    late: list[int] = []
    rounds = 10_000

    with ThreadPoolExecutor(1) as canceller:
        for n in range(rounds):
            returned = threading.Event()
            seen = record()

            def submit(task, returned=returned, seen=seen, n=n):
                def run() -> None:
                    before = len(seen.items)
                    over = returned.is_set()
                    task()
                    if over and len(seen.items) > before:
                        late.append(n)

                pool.submit(run)

            source.flow.pipe(observe_on(submit)).subscribe(seen)

            def cancel(seen=seen, returned=returned) -> None:
                seen.subscription.cancel()
                returned.set()

            racing = canceller.submit(cancel)
            source.send(1)
            racing.result(20)
            assert len(source.subscriber._queue) == 0 or pool.submit(int).result(20) == 0
            assert len(source.subscriber._queue) == 0
            assert seen.wrong == []
    assert late == []


@pytest.mark.slow
@pytest.mark.checklist("O13")
def test_cancel_in_a_race_with_everything_leaves_an_empty_queue(elsewhere, record, paced):
    for n in range(300):
        source = paced(200)
        source.flow.pipe(observe_on(elsewhere.executor, prefetch=8)).subscribe(seen := record())
        operator = source._subscriber
        producer = threading.Thread(target=source.run)
        producer.start()
        seen.wait_items(n % 20)
        seen.subscription.cancel()
        producer.join(20)
        elsewhere.settle()
        assert len(operator._queue) == 0
        assert seen.items == list(range(len(seen.items)))
        assert (seen.wrong, [end for end in seen.ends if end]) == ([], [])


@pytest.mark.checklist("O30")
def test_a_pool_that_is_shut_down_in_the_middle_ends_the_flow_once(record, paced):
    for _ in range(50):
        pool = ThreadPoolExecutor(2)
        source = paced(10_000)
        source.flow.pipe(observe_on(pool, prefetch=4)).subscribe(seen := record())
        producer = threading.Thread(target=source.run)
        producer.start()
        seen.wait_items(10)
        pool.shutdown(wait=False, cancel_futures=True)
        seen.wait()
        producer.join(20)
        assert len(seen.ends) == 1
        assert seen.items == list(range(len(seen.items)))


def test_many_flows_share_one_pool():
    with ThreadPoolExecutor(4) as pool:
        seen: list[list[int]] = [[] for _ in range(50)]
        handles = [
            flow.range(500).hide().pipe(observe_on(pool, prefetch=8)).subscribe(items.append)
            for items in seen
        ]
        assert all(handle.wait(20) for handle in handles)
    assert seen == [list(range(500))] * 50
