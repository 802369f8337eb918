"""observe_on: executors that refuse, and neighbours that raise."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue

import pytest

import flow_core as flow
from flow_core import FlowError, RejectedExecutionError, hooks
from flow_core.executors import as_runner
from flow_ops import interval, merge, observe_on, parallel, subscribe_on
from flow_ops.threads.observe_on import ObserveOnSource
from flow_testing import TIMEOUT_S


@pytest.mark.checklist("O30")
@pytest.mark.parametrize("upstream", [flow.range, lambda n: flow.range(n).hide()])
def test_a_pool_that_was_shut_down_fails_the_flow_once(record, upstream):
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    seen = record()
    upstream(10).pipe(observe_on(pool)).subscribe(seen)
    error = seen.wait().error
    assert isinstance(error, RejectedExecutionError)
    assert isinstance(error.__cause__, RuntimeError)
    assert "ThreadPoolExecutor" in str(error)
    assert seen.items == []


@pytest.mark.checklist("O30")
def test_a_loop_that_was_closed_fails_the_flow_once(record):
    loop = asyncio.new_event_loop()
    loop.close()
    seen = record()
    flow.range(10).hide().pipe(observe_on(loop.call_soon_threadsafe)).subscribe(seen)
    error = seen.wait().error
    assert isinstance(error, RejectedExecutionError)
    assert isinstance(error.__cause__, RuntimeError)


@pytest.mark.checklist("O30", "O31")
def test_a_rejection_during_the_flow_cancels_the_upstream_and_suppresses_the_rest(
    steps, record, source, dropped
):
    seen = record()
    source.flow.pipe(observe_on(steps)).subscribe(seen)
    source.send(1)
    steps.run()
    steps.refuses = RuntimeError("closed")
    source.send(2)
    assert isinstance(seen.error, RejectedExecutionError)
    assert seen.error.__cause__ is steps.refuses
    assert source.cancels == 1
    # A source that does not listen continues; nothing of that arrives.
    source.send(3)
    source.fail(late := ValueError())
    source.complete()
    seen.subscription.request(1)
    assert (seen.items, seen.wrong) == ([1], [])
    assert dropped.items == [2, 3]
    assert dropped.errors == [late]


@pytest.mark.checklist("O30")
def test_a_rejection_arrives_on_the_thread_that_signalled(steps, record, source):
    """The policy: an executor that refuses has no thread to deliver it on."""
    me = threading.get_ident()
    source.flow.pipe(observe_on(steps)).subscribe(
        seen := record(request=0, here=lambda: threading.get_ident() == me)
    )
    source.send(1)
    steps.run()
    steps.refuses = RuntimeError("closed")
    seen.subscription.request(1)
    assert isinstance(seen.wait().error, RejectedExecutionError)


@pytest.mark.checklist("O30")
def test_an_error_of_the_upstream_that_cannot_be_delivered_is_not_lost(
    steps, record, source, dropped
):
    source.flow.pipe(observe_on(steps)).subscribe(seen := record())
    steps.refuses = RuntimeError("closed")
    source.fail(error := ValueError())
    assert isinstance(seen.error, RejectedExecutionError)
    assert dropped.errors == [error]


@pytest.mark.checklist("O30")
def test_a_rejection_does_not_escape_into_the_upstream(steps, record, source):
    """Rule 2.13."""
    steps.refuses = RuntimeError("closed")
    source.flow.pipe(observe_on(steps)).subscribe(seen := record())
    source.send(1)  # does not raise
    assert isinstance(seen.error, RejectedExecutionError)


@pytest.mark.checklist("O30")
def test_a_task_that_was_taken_and_then_dropped_fails_the_flow(pool, blocker, record, source):
    seen = record()
    source.flow.pipe(observe_on(pool)).subscribe(seen)
    source.send(1)
    pool.shutdown(wait=False, cancel_futures=True)
    error = seen.wait().error
    assert isinstance(error, RejectedExecutionError)
    assert "cancel_futures" in str(error)
    assert source.cancels == 1
    assert seen.items == []


@pytest.mark.checklist("O30")
def test_dropped_tasks_fail_a_flow_with_two_hops_without_a_deadlock(
    pool, blocker, record, source, dropped
):
    """The pool drops tasks with its lock held, which the second hop's submit needs as well."""
    seen = record()
    source.flow.pipe(observe_on(pool)).pipe(observe_on(pool)).subscribe(seen)
    source.send(1)
    pool.shutdown(wait=False, cancel_futures=True)
    assert isinstance(seen.wait().error, RejectedExecutionError)
    # The second hop is refused, too, when it is to deliver the error of the first.
    assert [type(error) for error in dropped.errors] == [RejectedExecutionError]


@pytest.mark.checklist("O30")
def test_a_pool_whose_threads_cannot_start_fails_the_flow(record, source):
    def broken() -> None:
        raise OSError("no thread for you")

    seen = record()
    logging.getLogger("concurrent.futures").disabled = True
    try:
        with ThreadPoolExecutor(1, initializer=broken) as pool:
            source.flow.pipe(observe_on(pool)).subscribe(seen)
            source.send(1)
            assert isinstance(seen.wait().error, RejectedExecutionError)
    finally:
        logging.getLogger("concurrent.futures").disabled = False


@pytest.mark.checklist("O32")
def test_a_downstream_that_raises_ends_the_flow_and_the_executor_continues(
    place, record, source, dropped
):
    error = ValueError("in on_next")

    def fail(item: int) -> None:
        if item == 2:
            raise error

    seen = record(on_item=fail)
    source.flow.pipe(observe_on(place.executor)).subscribe(seen)
    source.send(1, 2, 3)
    assert source.cancelled.wait(20)
    place.settle()
    source.send(4)
    source.complete()
    place.settle()
    assert (seen.items, seen.ends) == ([1, 2], [])
    assert dropped.errors == [error]
    assert set(dropped.items) == {3, 4}
    flow.range(3).pipe(observe_on(place.executor)).subscribe(after := record())
    assert after.wait().items == [0, 1, 2]


@pytest.mark.checklist("O32")
def test_a_function_that_raises_gets_its_error_in_on_error(place):
    error = ValueError("in on_next")

    def fail(_: int) -> None:
        raise error

    errors: list[BaseException] = []
    hop = flow.range(10).pipe(observe_on(place.executor))
    handle = hop.subscribe(fail, errors.append)
    with pytest.raises(ValueError, match="in on_next"):
        handle.wait(20)
    assert errors == [error]


@pytest.mark.checklist("O32")
def test_a_stage_that_raises_after_the_hop_fails_the_flow(place, record):
    seen = record()
    flow.range(10).pipe(observe_on(place.executor)).map(lambda n: 1 // (3 - n)).subscribe(seen)
    assert isinstance(seen.wait().error, ZeroDivisionError)
    assert len(seen.items) == 3


@pytest.mark.checklist("O32")
def test_a_foreign_subscriber_that_raises_cancels_the_upstream(pool, source, dropped):
    error = ValueError()

    class Foreign:
        def on_subscribe(self, subscription):
            subscription.request(10)

        def on_next(self, item):
            raise error

        def on_error(self, error):
            raise AssertionError

        on_complete = on_error

    source.flow.pipe(observe_on(pool)).subscribe(Foreign())
    source.send(1, 2)
    assert source.cancelled.wait(20)
    pool.submit(int).result(20)
    assert dropped.errors == [error]


@pytest.mark.checklist("O32")
@pytest.mark.parametrize("fatal", [KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError])
def test_a_fatal_error_propagates_and_ends_the_flow(steps, record, source, dropped, fatal):
    def fail(_: int) -> None:
        raise fatal

    source.flow.pipe(observe_on(steps)).subscribe(seen := record(on_item=fail))
    source.send(1, 2)
    with pytest.raises(fatal):
        steps.run()
    assert source.cancels == 1
    assert (seen.items, dropped.errors, dropped.items) == ([1], [], [2])
    (told,) = seen.ends
    assert isinstance(told, FlowError)
    assert isinstance(told.__cause__, fatal)
    source.send(3)
    assert steps.run() == 0


@pytest.mark.checklist("O32", "O33")
def test_a_fatal_error_propagates_through_an_inline_executor(record, source, dropped):
    def fail(_: int) -> None:
        raise KeyboardInterrupt

    source.flow.pipe(observe_on(lambda task: task())).subscribe(seen := record(on_item=fail))
    with pytest.raises(KeyboardInterrupt):
        source.send(1)
    assert source.cancels >= 1
    assert (seen.items, seen.ends) == ([1], [])


@pytest.mark.checklist("O32")
def test_a_fatal_error_that_a_future_would_swallow_is_reported(pool, record, source, dropped):
    def fail(_: int) -> None:
        raise SystemExit(3)

    source.flow.pipe(observe_on(pool)).subscribe(seen := record(on_item=fail))
    source.send(1)
    assert source.cancelled.wait(20)
    pool.submit(int).result(20)
    (fatal,) = dropped.errors
    assert isinstance(fatal, SystemExit)
    (told,) = seen.ends
    assert isinstance(told, FlowError)
    assert told.__cause__ is fatal


@pytest.mark.parametrize("fatal", [MemoryError, SystemExit])
@pytest.mark.parametrize(
    "made",
    [
        lambda pool, fail: flow.range(3).pipe(observe_on(pool)).map(fail),
        lambda pool, fail: flow.range(3).pipe(subscribe_on(pool)).map(fail),
        lambda pool, fail: flow.range(3).pipe(parallel(2)).run_on(pool).map(fail).sequential(),
        lambda pool, fail: merge(flow.never(), flow.range(3).pipe(observe_on(pool)).map(fail)),
        lambda _, fail: interval(0.001).map(fail),
    ],
    ids=["observe_on", "subscribe_on", "parallel", "merge", "interval"],
)
def test_a_waiting_thread_gets_the_fatal_error_that_ended_the_task(made, fatal, dropped):
    error = fatal("too much")

    def fail(_: int) -> int:
        raise error

    heard = SimpleQueue()
    with hooks.dropped_errors.scoped("heard", heard.put), ThreadPoolExecutor(2) as pool:
        failure = made(pool, fail).to_future().exception(TIMEOUT_S)
        while heard.get(timeout=TIMEOUT_S) is not error:  # its thread may say so a little later
            pass
    assert isinstance(failure, FlowError)
    assert failure.__cause__ is error
    assert fatal.__name__ in str(failure)


def test_a_downstream_that_raises_in_on_subscribe_cancels_the_upstream(steps, record, source):
    class Broken(record):
        def on_subscribe(self, subscription):
            subscription.request(1)
            raise ValueError("broken")

    publisher = ObserveOnSource(source, as_runner(steps), 4, True, "observe_on()")
    with pytest.raises(ValueError, match="broken"):
        publisher.subscribe(Broken())
    assert (source.requests, source.cancels, steps.submitted) == ([], 1, 0)


def test_an_upstream_that_raises_when_it_is_requested_fails_the_flow(steps, record, source):
    error = ValueError("in request")
    source.flow.pipe(observe_on(steps, prefetch=1)).subscribe(seen := record())

    def request(n: int) -> None:
        raise error

    source.request = request
    source.send(1)
    steps.run()
    assert seen.wait().items == [1]
    assert seen.error is error
    assert source.cancels == 1


@pytest.mark.checklist("O29", "O30")
def test_a_rejected_flow_keeps_neither_items_nor_the_subscriber(steps, record, source):
    class Thing: ...

    seen = record(request=0)
    source.flow.pipe(observe_on(steps)).subscribe(seen)
    refs = [weakref.ref(thing := Thing())]
    source.send(thing)
    del thing
    steps.run()
    steps.refuses = RuntimeError("closed")
    seen.subscription.request(1)
    steps.refuses = None
    refs.append(weakref.ref(seen))
    del seen
    gc.collect()
    assert [ref() for ref in refs] == [None, None]


def test_an_executor_that_returns_a_future_which_is_done_is_an_inline_one(record):
    class Immediately:
        def submit(self, fn):
            future: Future[object] = Future()
            future.set_result(fn())
            return future

    flow.range(10).hide().pipe(observe_on(Immediately())).subscribe(seen := record())
    assert seen.wait().items == list(range(10))
