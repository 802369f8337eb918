"""observe_on: what arrives, in which order, and on which thread."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow, Operator
from flow_core.errors import FlowTimeoutError
from flow_core.serial import SerialDrain
from flow_ops import observe_on, ordered_merge, timeout
from flow_ops.threads.observe_on import ObserveOnSubscriber
from flow_testing import TestSubscriber, VirtualClock

Upstream = Callable[[int], Flow[Any]]

UPSTREAMS: dict[str, Upstream] = {
    "fused": flow.range,
    "mapped": lambda count: flow.range(count).map(lambda n: n),
    "hidden": lambda count: flow.range(count).hide(),
}


@pytest.fixture(params=list(UPSTREAMS))
def numbers(request: pytest.FixtureRequest) -> Upstream:
    """The same ints through SYNC fusion, through a loop of stages, and with nothing to fuse."""
    return UPSTREAMS[request.param]


@pytest.mark.checklist("O03")
def test_observe_on_is_an_operator_factory_with_named_options():
    operator = observe_on(lambda task: task())
    assert isinstance(operator, Operator)
    assert isinstance(flow.range(3).pipe(operator), Flow)
    parameters = inspect.signature(observe_on).parameters
    assert [name for name, p in parameters.items() if p.kind is not p.KEYWORD_ONLY] == ["executor"]
    assert (parameters["prefetch"].default, parameters["delay_error"].default) == (128, True)


@pytest.mark.checklist("O02", "O10", "O23", "O33")
def test_items_and_the_end_arrive_in_order_on_the_executor(place, numbers, record):
    seen = record(here=place.is_here)
    numbers(1000).pipe(observe_on(place.executor)).subscribe(seen)
    assert seen.wait().items == list(range(1000))
    assert seen.error is None


@pytest.mark.checklist("O02", "O10")
def test_an_error_arrives_on_the_executor_as_the_identical_object(place, record, source):
    error = ValueError("upstream")
    seen = record(here=place.is_here)
    source.flow.pipe(observe_on(place.executor)).subscribe(seen)
    source.send(1, 2)
    source.fail(error)
    assert seen.wait().items == [1, 2]
    assert seen.error is error


@pytest.mark.checklist("O01")
def test_composes_so_that_each_part_of_a_flow_has_its_thread(record):
    threads: dict[str, set[str]] = {"first": set(), "second": set()}

    def note(part: str) -> Callable[[int], int]:
        def mapper(n: int) -> int:
            threads[part].add(threading.current_thread().name)
            return n

        return mapper

    with ThreadPoolExecutor(1, "one") as one, ThreadPoolExecutor(1, "two") as two:
        seen = record(here=lambda: threading.current_thread().name == "two_0")
        (
            flow.range(1000)
            .pipe(observe_on(one, prefetch=8))
            .map(note("first"))
            .pipe(observe_on(two, prefetch=8))
            .map(note("second"))
            .subscribe(seen)
        )
        assert seen.wait().items == list(range(1000))
    assert threads["second"] == {"two_0"}
    # Its loop is fed by the first executor, and by requests of the second for what waited.
    assert "one_0" in threads["first"]


@pytest.mark.checklist("O01", "F39")
def test_a_mapper_of_the_upstream_stays_on_the_thread_of_its_source(elsewhere, record, source):
    threads = set()
    seen = record(here=elsewhere.is_here)
    mapped = source.flow.map(lambda n: threads.add(threading.get_ident()) or n)
    mapped.pipe(observe_on(elsewhere.executor)).subscribe(seen)
    source.send(*range(100))
    source.complete()
    assert seen.wait().items == list(range(100))
    assert threads == {threading.get_ident()}


@pytest.mark.checklist("O10", "O18")
def test_an_error_waits_for_the_items_before_it(place, record, source):
    seen = record(request=0, here=place.is_here)
    source.flow.pipe(observe_on(place.executor)).subscribe(seen)
    source.send(1, 2, 3)
    source.fail(error := ValueError())
    place.settle()
    assert (seen.items, seen.ends) == ([], [])
    seen.subscription.request(2)
    seen.wait_items(2)
    place.settle()
    assert seen.ends == []
    seen.subscription.request(1)
    assert seen.wait().items == [1, 2, 3]
    assert seen.error is error


@pytest.mark.checklist("O18")
def test_without_delay_an_error_overtakes_the_items_that_wait(place, record, source, dropped):
    seen = record(request=1, here=place.is_here)
    source.flow.pipe(observe_on(place.executor, delay_error=False)).subscribe(seen)
    source.send(1, 2, 3)
    seen.wait_items(1)
    source.fail(error := ValueError())
    assert seen.wait().items == [1]
    assert seen.error is error
    assert dropped.items == [2, 3]


@pytest.mark.checklist("O18")
def test_without_delay_the_running_drain_stops_for_an_error(pool, record, source, dropped):
    entered, go = threading.Event(), threading.Event()

    def hold(_: int) -> None:
        entered.set()
        assert go.wait(20)

    seen = record(on_item=hold)
    source.flow.pipe(observe_on(pool, delay_error=False)).subscribe(seen)
    source.send(1, 2, 3)
    assert entered.wait(20)
    source.fail(error := ValueError())
    go.set()
    assert seen.wait().items == [1]
    assert seen.error is error
    assert dropped.items == [2, 3]


@pytest.mark.checklist("O17")
@pytest.mark.parametrize("request_", [0, 1])
def test_the_end_needs_no_demand(place, numbers, record, request_):
    seen = record(request=request_, here=place.is_here)
    numbers(request_).pipe(observe_on(place.executor)).subscribe(seen)
    assert seen.wait().items == list(range(request_))
    assert seen.error is None


@pytest.mark.checklist("O17")
def test_an_error_needs_no_demand(place, record):
    seen = record(request=0, here=place.is_here)
    flow.error(error := ValueError()).pipe(observe_on(place.executor)).subscribe(seen)
    assert seen.wait().error is error


@pytest.mark.checklist("O08")
def test_the_downstream_is_subscribed_before_the_upstream_is_requested(steps, source):
    order = []

    class Ordered(flow.CoreSubscriber[int]):
        def on_subscribe(self, subscription):
            order.append(("on_subscribe", list(source.requests)))
            subscription.request(2)
            order.append(("requested", list(source.requests)))

        def on_next(self, item):
            order.append(item)

        def on_error(self, error):
            raise error

        def on_complete(self):
            order.append("end")

    source.flow.pipe(observe_on(steps)).subscribe(Ordered())
    assert order == [("on_subscribe", []), ("requested", [])]
    assert source.requests == [128]
    source.send(1, 2)
    source.complete()
    steps.run()
    assert order[2:] == [1, 2, "end"]


@pytest.mark.checklist("O08")
def test_items_requested_in_on_subscribe_wait_until_it_has_returned(place, numbers, record):
    seen = record(request=5, here=place.is_here)
    numbers(5).pipe(observe_on(place.executor)).subscribe(seen)
    assert seen.wait().items == [0, 1, 2, 3, 4]  # the recorder notices a signal that is too early


@pytest.mark.checklist("O08")
def test_a_second_subscription_is_cancelled_and_the_first_continues(steps, record, source):
    class Link:
        cancels = 0

        def request(self, n):
            raise AssertionError("requested")

        def cancel(self):
            self.cancels += 1

    seen = record()
    source.flow.pipe(observe_on(steps)).subscribe(seen)
    second = Link()
    source.subscriber.on_subscribe(second)
    assert (second.cancels, source.cancels) == (1, 0)
    source.send(1)
    source.complete()
    steps.run()
    assert seen.wait().items == [1]


@pytest.mark.checklist("O14")
def test_tasks_are_submitted_only_when_none_is_pending_or_running(steps, record, source):
    seen = record()
    source.flow.pipe(observe_on(steps)).subscribe(seen)
    assert steps.submitted == 0  # there is nothing to deliver yet
    source.send(1, 2, 3)
    assert steps.submitted == 1
    seen.subscription.request(1)
    assert steps.submitted == 1
    steps.run()
    assert seen.items == [1, 2, 3]
    source.send(4)
    assert steps.submitted == 2
    seen.on_item = lambda _: source.send(6) if seen.items[-1] == 5 else None
    source.send(5)
    steps.run()
    assert seen.items == [1, 2, 3, 4, 5, 6]
    assert steps.submitted == 2


@pytest.mark.checklist("O06", "O07", "O14")
def test_serialisation_is_the_primitive_of_the_core():
    assert issubclass(ObserveOnSubscriber, SerialDrain)


@pytest.mark.checklist("O16")
def test_items_that_came_just_before_the_end_are_not_lost(steps, record, source):
    """The end is looked at before the queue, so what is queued before the end is delivered."""
    seen = record()

    def finish(item: int) -> None:
        if item == 1:
            source.send(2)
            source.complete()

    seen.on_item = finish
    source.flow.pipe(observe_on(steps)).subscribe(seen)
    source.send(1)
    steps.run()
    assert seen.wait().items == [1, 2]


@pytest.mark.checklist("O15", "O16")
def test_an_item_and_the_end_that_come_as_the_queue_is_found_empty_are_not_lost(
    steps, record, source
):
    source.flow.pipe(observe_on(steps)).subscribe(seen := record())
    operator = source.subscriber
    late = [2]

    class Racing(type(operator._queue)):
        def popleft(self):
            try:
                return super().popleft()
            finally:
                if len(self) == 0 and seen.items == [1] and late:
                    source.send(late.pop())
                    source.complete()

    operator._queue = Racing()
    source.send(1)
    steps.run()
    assert seen.wait().items == [1, 2]


@pytest.mark.checklist("O19", "O31")
def test_signals_after_the_end_are_dropped_and_submit_nothing(steps, record, source, dropped):
    seen = record()
    source.flow.pipe(observe_on(steps)).subscribe(seen)
    source.send(1)
    source.complete()
    source.send(2)  # the end is not delivered yet
    steps.run()
    submitted = steps.submitted
    source.send(3)
    source.complete()
    source.fail(late := ValueError("late"))
    seen.subscription.request(1)
    seen.subscription.cancel()
    assert steps.submitted == submitted
    assert seen.wait().items == [1]
    assert dropped.items == [2, 3]
    assert dropped.errors == [late]


@pytest.mark.checklist("O19")
def test_an_error_after_the_end_was_signalled_is_dropped(steps, record, source, dropped):
    seen = record()
    source.flow.pipe(observe_on(steps)).subscribe(seen)
    source.complete()
    source.fail(late := ValueError("late"))
    steps.run()
    assert seen.wait().error is None
    assert dropped.errors == [late]


def test_none_is_refused_at_once(steps, record, source):
    source.flow.pipe(observe_on(steps)).subscribe(seen := record())
    with pytest.raises(TypeError, match="None"):
        source.send(None)
    with pytest.raises(TypeError, match="None"):
        source.fail(None)
    with pytest.raises(TypeError, match="None"):
        source.subscriber.on_subscribe(None)
    with pytest.raises(TypeError, match="subscriber"):
        flow.range(3).pipe(observe_on(steps)).subscribe(None)
    source.send(1)
    source.complete()
    steps.run()
    assert seen.wait().items == [1]


@pytest.mark.checklist("O33")
def test_an_inline_executor_gives_the_same_sequence_as_no_executor(numbers):
    there = numbers(500).filter(lambda n: n % 3)
    assert list(there.pipe(observe_on(lambda task: task()))) == list(there)


@pytest.mark.checklist("O33")
@pytest.mark.parametrize(
    ("prefetch", "total"),
    [(1, 100_000), (128, 100_000), pytest.param(128, 1_000_000, marks=pytest.mark.nightly)],
)
def test_a_million_items_inline_need_no_stack(prefetch, total):
    """Neither the executor inside on_next nor request(1) inside it recurses."""
    count = 0

    class OneByOne(flow.CoreSubscriber[int]):
        def on_subscribe(self, subscription):
            self.subscription = subscription
            subscription.request(1)

        def on_next(self, item):
            nonlocal count
            count += 1
            self.subscription.request(1)

        def on_error(self, error):
            raise error

        def on_complete(self):
            nonlocal count
            count = -count

    hop = observe_on(lambda task: task(), prefetch=prefetch)
    flow.range(total).hide().pipe(hop).subscribe(OneByOne())
    assert count == -total


def test_async_iteration_takes_the_items_in_the_loop():
    async def main() -> list[int]:
        loop = asyncio.get_running_loop()
        return [n async for n in flow.range(1000).pipe(observe_on(loop.call_soon_threadsafe))]

    assert asyncio.run(main()) == list(range(1000))


def test_each_subscriber_has_a_separate_run(place):
    hop = flow.range(300).map(str).pipe(observe_on(place.executor))
    if place.name == "loop":
        seen = [[], []]
        handles = [hop.subscribe(items.append) for items in seen]
        assert all(handle.wait(20) for handle in handles)
    else:
        seen = [list(hop), list(hop)]
    assert seen == [[str(n) for n in range(300)]] * 2


@pytest.mark.checklist("O01", "O20", "O35")
def test_ordered_merge_drains_on_its_executor(place, record):
    recorder = record(here=place.is_here)
    evens, odds = flow.range(0, 1_000, 2), flow.range(1, 1_000, 2).hide()
    ordered_merge(evens, odds, executor=place.executor).subscribe(recorder)
    assert recorder.wait().items == [*range(1_000)]


@pytest.mark.checklist("O35")
def test_handle_maps_filters_and_ends_behind_a_boundary(place):
    def handle(n, sink):
        if n % 2:
            sink.next(10 * n)
        if n == 7:
            sink.complete()

    made = flow.range(10**9).pipe(observe_on(place.executor)).handle(handle)
    subscriber = TestSubscriber()
    made.subscribe(subscriber)
    subscriber.await_terminal(20).assert_result(10, 30, 50, 70)


@pytest.mark.checklist("O34")
@pytest.mark.parametrize("fallback", [None, flow.just("instead")])
def test_timeout_stops_a_flow_whose_items_do_not_arrive(place, source, record, fallback):
    clock = VirtualClock()
    made = source.flow.pipe(observe_on(place.executor))
    seen = record()
    made.pipe(timeout(1, fallback=fallback, clock=clock)).subscribe(seen)
    source.send("in time")
    seen.wait_items(1)
    place.settle()
    clock.advance_by(1)
    seen.wait()
    assert source.cancels == 1
    if fallback is None:
        assert isinstance(seen.error, FlowTimeoutError)
        assert seen.items == ["in time"]
    else:
        assert seen.items == ["in time", "instead"]
    assert clock.pending == 0


def test_in_an_event_loop_the_functions_of_subscribe_run_where_observe_on_says(pool) -> None:
    async def main() -> None:
        ended = threading.Event()
        threads: set[int] = set()
        flow.range(3).hide().observe_on(pool).map(abs).subscribe(
            lambda _: threads.add(threading.get_ident()), on_complete=ended.set
        )
        assert await asyncio.to_thread(ended.wait, 20)
        assert threads == {pool.submit(threading.get_ident).result()}

    asyncio.run(main())


def test_in_an_event_loop_the_functions_of_subscribe_run_there_behind_subscribe_on(pool) -> None:
    async def main() -> None:
        ended = asyncio.get_running_loop().create_future()
        threads: set[int] = set()
        flow.range(3).subscribe_on(pool).subscribe(
            lambda _: threads.add(threading.get_ident()),
            on_complete=lambda: ended.set_result(None),
        )
        await ended
        assert threads == {threading.get_ident()}

    asyncio.run(main())
