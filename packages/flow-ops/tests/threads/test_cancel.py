"""observe_on: cancel, before a task has started, while it runs, and what is kept afterwards."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref

import pytest

import flow_core as flow
from flow_ops import observe_on


class Thing:
    """An item that can be looked for."""


def send_thing(source) -> weakref.ref[Thing]:
    thing = Thing()
    source.send(thing)
    return weakref.ref(thing)


@pytest.mark.checklist("O13")
def test_cancel_reaches_the_upstream_once(place, record, source):
    seen = record(here=place.is_here)
    source.flow.pipe(observe_on(place.executor)).subscribe(seen)
    seen.subscription.cancel()
    seen.subscription.cancel()
    place.settle()
    assert source.cancels == 1
    assert (seen.items, seen.ends, seen.wrong) == ([], [], [])


@pytest.mark.checklist("O13", "O22")
def test_nothing_follows_a_cancel_from_on_next(place, record, source, dropped):
    seen = record(here=place.is_here)
    seen.on_item = lambda item: seen.subscription.cancel() if item == 2 else None
    source.flow.pipe(observe_on(place.executor)).subscribe(seen)
    source.send(1, 2, 3)
    seen.wait_items(2)
    source.complete()
    place.settle()
    assert (seen.items, seen.ends, seen.wrong) == ([1, 2], [], [])
    assert source.cancels == 1
    assert dropped.items == [3]


@pytest.mark.checklist("O13")
def test_cancel_when_idle_empties_the_queue(place, record, source):
    seen = record(request=0)
    source.flow.pipe(observe_on(place.executor)).subscribe(seen)
    ref = send_thing(source)
    place.settle()
    assert ref() is not None
    seen.subscription.cancel()
    assert ref() is None


@pytest.mark.checklist("O13", "O22")
def test_cancel_while_on_next_runs_stops_before_the_next_item(elsewhere, record, source):
    entered, go = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        entered.set()
        assert go.wait(20)

    seen = record(on_item=hold)
    source.flow.pipe(observe_on(elsewhere.executor)).subscribe(seen)
    source.send("first")
    ref = send_thing(source)
    assert entered.wait(20)
    seen.subscription.cancel()
    assert source.cancels == 1
    go.set()
    elsewhere.settle()
    assert (seen.items, seen.ends) == (["first"], [])
    assert ref() is None


@pytest.mark.checklist("O22", "O24", "O27")
def test_cancel_before_the_task_has_started_keeps_it_from_running(
    counting, pool, blocker, record, source
):
    seen = record()
    source.flow.pipe(observe_on(counting)).subscribe(seen)
    ref = send_thing(source)
    (future,) = counting.futures
    seen.subscription.cancel()
    assert future.cancelled()
    assert ref() is None, "nobody else would empty the queue: its task never runs"
    blocker.release()
    assert (seen.items, seen.ends) == ([], [])


@pytest.mark.checklist("O22", "O27")
def test_cancel_before_the_task_has_started_works_without_futures(steps, record, source):
    source.flow.pipe(observe_on(steps)).subscribe(seen := record())
    ref = send_thing(source)
    seen.subscription.cancel()
    assert ref() is None
    steps.run()
    assert (seen.items, seen.ends) == ([], [])


@pytest.mark.checklist("O19", "O28")
def test_items_that_arrive_after_cancel_are_dropped_and_submit_nothing(
    steps, record, source, dropped
):
    source.flow.pipe(observe_on(steps)).subscribe(seen := record())
    seen.subscription.cancel()
    source.send(1)
    source.complete()
    seen.subscription.request(1)
    assert (steps.submitted, dropped.items) == (0, [1])


@pytest.mark.checklist("O24", "O28")
def test_a_cancel_that_overtakes_the_submission_cancels_the_task(record, source):
    """The executor has the task, but the operator has not seen its handle yet."""
    seen = record()
    tasks = []

    def slow(task):
        tasks.append(task)
        seen.subscription.cancel()

    source.flow.pipe(observe_on(slow)).subscribe(seen)
    ref = send_thing(source)
    assert ref() is None
    for task in tasks:
        task()
    assert (seen.items, seen.ends, source.cancels) == ([], [], 1)


@pytest.mark.checklist("O28")
def test_a_schedule_that_meets_the_cancelled_state_empties_the_queue(record, source, dropped):
    """Between the look at the room and the signal, in on_next, the flow is cancelled."""
    seen = record()
    executed = []
    source.flow.pipe(observe_on(executed.append)).subscribe(seen)
    operator = source.subscriber
    queue = operator._queue

    class Cancelling(type(queue)):
        def append(self, item):
            seen.subscription.cancel()
            super().append(item)

    operator._queue = Cancelling(queue)
    ref = send_thing(source)
    dropped.items.clear()
    assert ref() is None
    assert executed == []


@pytest.mark.checklist("O29")
def test_no_finished_future_is_kept(pool, record, source):
    refs = []

    class Weakly:
        def submit(self, fn):
            future = pool.submit(fn)
            refs.append(weakref.ref(future))
            return future

    seen = record()
    source.flow.pipe(observe_on(Weakly())).subscribe(seen)
    gc.disable()
    try:
        for n in range(5):
            source.send(n)
            seen.wait_items(n + 1)
            pool.submit(int).result(20)
        pool.submit(int).result(20)
        assert refs
        assert [ref() for ref in refs] == [None] * len(refs)
    finally:
        gc.enable()


@pytest.mark.checklist("O29")
def test_a_handle_is_kept_only_until_its_task_begins(steps, record, source):
    seen = record()
    source.flow.pipe(observe_on(steps)).subscribe(seen)
    operator = source.subscriber
    during = []
    seen.on_item = lambda _: during.append(operator._handle)
    source.send(1)
    assert operator._handle is not None
    steps.run()
    assert (during, operator._handle) == ([None], None)


def test_cancel_lets_the_subscriber_go(place, record, source):
    """§3.13, while the upstream still holds the operator."""
    seen = record(request=1)
    source.flow.pipe(observe_on(place.executor)).subscribe(seen)
    source.send(1, 2)
    seen.wait_items(1)
    place.settle()
    subscription = seen.subscription
    ref = weakref.ref(seen)
    del seen
    subscription.cancel()
    place.settle()
    gc.collect()
    assert ref() is None
    assert source.subscriber is not None


@pytest.mark.checklist("O22")
def test_cancel_lets_the_subscriber_go_although_the_executor_holds_the_task(steps, record, source):
    source.flow.pipe(observe_on(steps)).subscribe(seen := record())
    source.send(1)
    subscription, ref = seen.subscription, weakref.ref(seen)
    del seen
    subscription.cancel()
    gc.collect()
    assert steps.tasks
    assert ref() is None


@pytest.mark.checklist("O26")
def test_a_blocking_on_next_on_a_thread_is_not_interrupted(pool, counting, record, source):
    entered, go, returned = threading.Event(), threading.Event(), threading.Event()

    def block(_: int) -> None:
        entered.set()
        assert go.wait(20)
        returned.set()

    seen = record(on_item=block)
    source.flow.pipe(observe_on(counting)).subscribe(seen)
    source.send(1, 2)
    assert entered.wait(20)
    seen.subscription.cancel()
    assert not counting.futures[0].cancelled()
    go.set()
    pool.submit(int).result(20)
    assert returned.is_set()
    assert (seen.items, seen.ends) == ([1], [])


@pytest.mark.checklist("O26")
def test_cancelling_an_asyncio_task_that_consumes_cancels_the_flow(source):
    async def main() -> None:
        loop = asyncio.get_running_loop()
        taken: list[int] = []
        first = asyncio.Event()

        async def consume() -> None:
            async for item in source.flow.pipe(observe_on(loop.call_soon_threadsafe)):
                taken.append(item)
                first.set()

        task = loop.create_task(consume())
        await asyncio.sleep(0)  # it subscribes
        source.send(1)
        await asyncio.wait_for(first.wait(), 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert taken == [1]

    asyncio.run(main())
    assert source.cancelled.wait(20)


@pytest.mark.checklist("O13")
def test_cancel_from_on_subscribe_starts_nothing(steps, record, source):
    class Leaving(record):
        def on_subscribe(self, subscription):
            subscription.cancel()

    source.flow.pipe(observe_on(steps)).subscribe(Leaving())
    assert (source.requests, source.cancels, steps.submitted) == ([], 1, 0)


@pytest.mark.checklist("O13")
def test_cancel_of_a_fused_flow_stops_polling(elsewhere, record, fused):
    upstream = fused(*range(1000))
    seen = record()
    seen.on_item = lambda item: seen.subscription.cancel() if item == 9 else None
    upstream.flow.pipe(observe_on(elsewhere.executor)).subscribe(seen)
    seen.wait_items(10)
    elsewhere.settle()
    assert (seen.items, seen.ends) == (list(range(10)), [])
    assert (upstream.cancels, upstream.clears) == (1, 1)


def test_disposing_closes_the_generator_of_the_source(place):
    closed = threading.Event()

    def endless():
        try:
            n = 0
            while True:
                yield (n := n + 1)
        finally:
            closed.set()

    seen = threading.Event()
    hop = flow.from_iterable(endless()).pipe(observe_on(place.executor, prefetch=4))
    if place.name == "inline":
        handle = hop.take(10).subscribe(lambda _: seen.set())
    else:
        handle = hop.subscribe(lambda _: seen.set(), prefetch=2)
    assert seen.wait(20)
    handle.dispose()
    assert closed.wait(20)
