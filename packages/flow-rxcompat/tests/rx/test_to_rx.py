"""`to_rx`: a flow as an Observable."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Thread, current_thread
from typing import Any

import pytest
import reactivex
from reactivex import operators as ops
from reactivex.internal import DisposedException
from reactivex.scheduler import (
    CurrentThreadScheduler,
    EventLoopScheduler,
    ImmediateScheduler,
    NewThreadScheduler,
    VirtualTimeScheduler,
)
from reactivex.scheduler.eventloop import AsyncIOThreadSafeScheduler
from reactivex.testing import TestScheduler

import flow_core as flow
from flow_core.demand import UNBOUNDED
from flow_core.errors import RejectedExecutionError
from flow_rxcompat.rx import to_rx
from flow_testing import Drops, TestPublisher, Violation, race


class Seen:
    """An observer's functions, and what they got."""

    def __init__(self) -> None:
        self.signals: list[object] = []

    def on_next(self, item: object) -> None:
        self.signals.append(item)

    def on_error(self, error: BaseException) -> None:
        self.signals.append(error)

    def on_completed(self) -> None:
        self.signals.append("end")


# -- results


@pytest.mark.parametrize("count", [0, 1, 2, 1_000])
@pytest.mark.parametrize("prefetch", [None, 1, 2, 16])
def test_pushes_what_the_flow_gives(count: int, prefetch: int | None) -> None:
    seen = Seen()
    to_rx(flow.range(count), prefetch=prefetch).subscribe(
        seen.on_next, seen.on_error, seen.on_completed
    )
    assert seen.signals == [*range(count), "end"]


def test_the_error_is_the_identical_object() -> None:
    error = LookupError("theirs")
    seen = Seen()
    to_rx(_failing(error)).subscribe(seen.on_next, seen.on_error, seen.on_completed)
    assert seen.signals == [0, 1, error]
    assert seen.signals[2] is error


def _failing(error: BaseException) -> flow.Flow[int]:
    def items() -> Iterator[int]:
        yield 0
        yield 1
        raise error

    return flow.from_iterable(items())


def test_each_observer_runs_the_flow_again() -> None:
    runs: list[int] = []
    observable = to_rx(flow.defer(lambda: flow.just(runs.append(1) or len(runs))))
    assert (observable.run(), observable.run()) == (1, 2)


def test_takes_part_in_pipelines_of_reactivex() -> None:
    merged = reactivex.merge(to_rx(flow.range(3)), to_rx(flow.range(10, 13)))
    assert sorted(merged.pipe(ops.to_list()).run()) == [0, 1, 2, 10, 11, 12]


def test_any_publisher_will_do() -> None:
    publisher = TestPublisher[int]()
    seen = Seen()
    to_rx(publisher).subscribe(seen.on_next, seen.on_error, seen.on_completed)
    publisher.next(1)
    publisher.complete()
    assert seen.signals == [1, "end"]


# -- demand


def test_everything_is_requested_at_once() -> None:
    publisher = TestPublisher[int]()
    to_rx(publisher).subscribe()
    assert publisher.requested == UNBOUNDED


def test_with_a_prefetch_items_are_requested_in_batches() -> None:
    publisher = TestPublisher[int]()
    to_rx(publisher, prefetch=8).subscribe()
    publisher.next(*range(5)).assert_requests(8)
    publisher.next(5).assert_requests(8, 6)
    publisher.next(*range(8)).assert_requests(8, 6, 6)


# -- dispose


def test_disposing_cancels_once() -> None:
    publisher = TestPublisher[int]()
    handle = to_rx(publisher).subscribe()
    handle.dispose()
    handle.dispose()
    assert publisher.cancels == 1


def test_disposing_after_the_end_does_not_cancel() -> None:
    publisher = TestPublisher[int]()
    handle = to_rx(publisher).subscribe()
    publisher.complete()
    handle.dispose()
    assert publisher.cancels == 0


def test_disposing_from_within_on_next_stops_a_source_that_does_not_return() -> None:
    cancels: list[int] = []
    endless = flow.repeat_value(7).do_on_cancel(lambda: cancels.append(1))
    assert to_rx(endless).pipe(ops.take(3), ops.to_list()).run() == [7, 7, 7]
    seen = Seen()
    to_rx(endless).pipe(ops.take(2)).subscribe(seen.on_next, None, seen.on_completed)
    assert seen.signals == [7, 7, "end"]
    assert cancels == [1, 1]


def test_disposing_before_the_publisher_has_subscribed_cancels_then() -> None:
    late: list[Any] = []

    class Late:
        def subscribe(self, subscriber: Any, /) -> None:
            late.append(subscriber)

    publisher = TestPublisher[int]()
    handle = to_rx(Late()).subscribe()
    handle.dispose()
    publisher.subscribe(late[0])
    assert publisher.cancels == 1
    assert publisher.requested == 0


def test_a_publisher_may_subscribe_later() -> None:
    late: list[Any] = []

    class Late:
        def subscribe(self, subscriber: Any, /) -> None:
            late.append(subscriber)

    seen = Seen()
    to_rx(Late()).subscribe(seen.on_next, seen.on_error, seen.on_completed)
    flow.range(2).subscribe(late[0])
    assert seen.signals == [0, 1, "end"]


def test_a_second_subscription_is_cancelled() -> None:
    first, second = TestPublisher[int](), TestPublisher[int]()

    class Twice:
        def subscribe(self, subscriber: Any, /) -> None:
            first.subscribe(subscriber)
            second.subscribe(subscriber)

    to_rx(Twice()).subscribe()
    assert (first.cancels, second.cancels) == (0, 1)


def test_disposing_against_the_end_cancels_at_most_once() -> None:
    for _ in range(200):
        publisher = TestPublisher[int]()
        seen = Seen()
        handle = to_rx(publisher).subscribe(seen.on_next, seen.on_error, seen.on_completed)
        race(handle.dispose, handle.dispose, publisher.complete)
        assert publisher.cancels <= 1


def test_items_and_errors_after_the_dispose_go_to_the_hook(drops: Drops) -> None:
    publisher = TestPublisher[int](Violation.IGNORED_CANCEL)
    error = LookupError("late")
    to_rx(publisher).subscribe(lambda _: None, lambda _: None).dispose()
    publisher.next(1)
    publisher.error(error)
    assert publisher.cancels == 1
    assert drops.take_items() == [1]
    assert drops.take_errors() == [error]


# -- observers that raise


def test_an_observer_that_raises_gets_the_error_and_the_flow_is_cancelled() -> None:
    error = ValueError("mine")
    publisher = TestPublisher[int]()
    seen = Seen()

    def fail(_: int) -> None:
        raise error

    to_rx(publisher).subscribe(fail, seen.on_error, seen.on_completed)
    publisher.next(1)
    assert seen.signals == [error]
    assert publisher.cancels == 1


def test_that_is_what_the_cold_sources_of_reactivex_do() -> None:
    error = ValueError("mine")

    def fail(_: int) -> None:
        raise error

    for source in (reactivex.of(1, 2), to_rx(flow.just(1, 2))):
        seen = Seen()
        source.subscribe(fail, seen.on_error, seen.on_completed)
        assert seen.signals == [error]


def test_an_error_without_a_function_for_it_comes_out_of_subscribe() -> None:
    for source in (reactivex.throw(KeyError(1)), to_rx(flow.error(KeyError(1)))):
        with pytest.raises(KeyError):
            source.subscribe(lambda _: None)


def test_an_error_without_a_function_for_it_goes_to_the_hook_later(drops: Drops) -> None:
    error = KeyError(1)
    publisher = TestPublisher[int]()
    to_rx(publisher).subscribe(lambda _: None)
    publisher.error(error)
    assert drops.take_errors() == [error]


def test_an_error_that_on_completed_raises_goes_to_the_hook(drops: Drops) -> None:
    error = KeyError(1)
    publisher = TestPublisher[int]()

    def fail() -> None:
        raise error

    to_rx(publisher).subscribe(on_completed=fail)
    publisher.complete()
    assert drops.take_errors() == [error]


def test_an_error_of_an_observer_that_has_left_goes_to_the_hook(drops: Drops) -> None:
    error = ValueError("mine")
    publisher = TestPublisher[int]()
    seen = Seen()

    def fail(_: int) -> None:
        handle.dispose()
        raise error

    handle = to_rx(publisher).subscribe(fail, seen.on_error)
    publisher.next(1)
    assert seen.signals == []
    assert drops.take_errors() == [error]


def test_a_fatal_error_propagates() -> None:
    publisher = TestPublisher[int]()

    def fail(_: int) -> None:
        raise KeyboardInterrupt

    to_rx(publisher).subscribe(fail, lambda _: None)
    with pytest.raises(KeyboardInterrupt):
        publisher.next(1)
    assert publisher.cancels == 1


# -- schedulers


def test_with_a_scheduler_the_observer_gets_everything_there_in_order() -> None:
    scheduler = EventLoopScheduler()
    threads: set[Thread] = set()
    numbers = to_rx(flow.range(5_000), scheduler).pipe(
        ops.do_action(lambda _: threads.add(current_thread())), ops.to_list()
    )
    assert numbers.run() == list(range(5_000))
    scheduler.dispose()
    assert len(threads) == 1
    assert current_thread() not in threads


@pytest.mark.parametrize("prefetch", [None, 1, 3, UNBOUNDED])
def test_a_scheduler_that_starts_a_thread_for_each_action_keeps_the_order(
    prefetch: int | None,
) -> None:
    numbers = to_rx(flow.range(100), NewThreadScheduler(), prefetch=prefetch)
    assert numbers.pipe(ops.to_list()).run() == list(range(100))


@pytest.mark.parametrize("prefetch", [1, 2, None, UNBOUNDED])
@pytest.mark.parametrize(
    "scheduler", [ImmediateScheduler(), CurrentThreadScheduler()], ids=["immediate", "current"]
)
def test_a_scheduler_that_works_in_place_does_not_grow_the_stack(
    scheduler: Any, prefetch: int | None
) -> None:
    seen = Seen()
    to_rx(flow.range(20_000), scheduler, prefetch=prefetch).subscribe(
        seen.on_next, seen.on_error, seen.on_completed
    )
    assert seen.signals == [*range(20_000), "end"]


@pytest.mark.parametrize(
    "scheduler", [ImmediateScheduler(), CurrentThreadScheduler()], ids=["immediate", "current"]
)
def test_items_from_within_on_next_do_not_grow_the_stack(scheduler: Any) -> None:
    publisher = TestPublisher[int]()
    seen: list[int] = []

    def push(n: int) -> None:
        seen.append(n)
        if n < 5_000:
            publisher.next(n + 1)

    to_rx(publisher, scheduler, prefetch=UNBOUNDED).subscribe(push)
    publisher.next(0)
    assert seen == list(range(5_001))


def test_with_a_scheduler_no_more_than_the_prefetch_waits() -> None:
    scheduler = VirtualTimeScheduler()
    publisher = TestPublisher[int]()
    seen = Seen()
    to_rx(publisher, scheduler, prefetch=4).subscribe(
        seen.on_next, seen.on_error, seen.on_completed
    )
    assert publisher.requested == 4
    for n in range(4):
        publisher.next(n)
    assert seen.signals == []
    scheduler.start()
    assert seen.signals == [0, 1, 2, 3]
    assert publisher.requested == 7
    publisher.complete()
    assert seen.signals == [0, 1, 2, 3]
    scheduler.start()
    assert seen.signals == [0, 1, 2, 3, "end"]


def test_an_error_comes_after_the_items_that_wait() -> None:
    scheduler = VirtualTimeScheduler()
    error = LookupError("theirs")
    seen = Seen()
    to_rx(_failing(error), scheduler).subscribe(seen.on_next, seen.on_error, seen.on_completed)
    scheduler.start()
    assert seen.signals == [0, 1, error]


def test_items_that_wait_when_it_is_disposed_of_go_to_the_hook(drops: Drops) -> None:
    scheduler = VirtualTimeScheduler()
    publisher = TestPublisher[int]()
    seen = Seen()
    handle = to_rx(publisher, scheduler).subscribe(seen.on_next)
    publisher.next(1)
    publisher.next(2)
    handle.dispose()
    scheduler.start()
    assert seen.signals == []
    assert publisher.cancels == 1
    assert drops.take_items() == [1, 2]


def test_an_error_that_waits_when_it_is_disposed_of_goes_to_the_hook(drops: Drops) -> None:
    scheduler = VirtualTimeScheduler()
    publisher = TestPublisher[int]()
    error = LookupError("theirs")
    handle = to_rx(publisher, scheduler).subscribe(lambda _: None, lambda _: None)
    publisher.error(error)
    handle.dispose()
    scheduler.start()
    assert drops.take_errors() == [error]


def test_disposing_in_an_action_stops_the_rest(drops: Drops) -> None:
    scheduler = VirtualTimeScheduler()
    publisher = TestPublisher[int]()
    seen = Seen()
    to_rx(publisher, scheduler).pipe(ops.take(1)).subscribe(seen.on_next, None, seen.on_completed)
    for n in range(3):
        publisher.next(n)
    scheduler.start()
    assert seen.signals == [0, "end"]
    assert publisher.cancels == 1
    assert drops.take_items() == [1, 2]


def test_a_scheduler_that_takes_no_more_fails_the_observer(drops: Drops) -> None:
    scheduler = EventLoopScheduler()
    scheduler.dispose()
    publisher = TestPublisher[int]()
    seen = Seen()
    to_rx(publisher, scheduler).subscribe(seen.on_next, seen.on_error)
    publisher.next(1)
    (error,) = seen.signals
    assert isinstance(error, RejectedExecutionError)
    assert publisher.cancels == 1
    assert drops.take_items() == [1]


def test_in_an_event_loop() -> None:
    async def run() -> tuple[list[int], set[str]]:
        loop = asyncio.get_running_loop()
        scheduler = AsyncIOThreadSafeScheduler(loop)
        names: set[str] = set()
        done: asyncio.Future[list[int]] = loop.create_future()
        with ThreadPoolExecutor(1, thread_name_prefix="worker") as pool:
            items = flow.create(lambda emitter: pool.submit(_emit, emitter, 300), capacity=300)
            to_rx(items, scheduler).pipe(
                ops.do_action(lambda _: names.add(current_thread().name)), ops.to_list()
            ).subscribe(done.set_result, done.set_exception)
            return await done, names

    items, names = asyncio.run(run())
    assert items == list(range(300))
    assert names == {"MainThread"}


def _emit(emitter: flow.Emitter[int], count: int) -> None:
    for n in range(count):
        emitter.next(n)
    emitter.complete()


def test_the_scheduler_of_subscribe_is_where_it_is_requested() -> None:
    scheduler = TestScheduler()
    seen = Seen()
    to_rx(flow.range(2)).subscribe(
        seen.on_next, seen.on_error, seen.on_completed, scheduler=scheduler
    )
    assert seen.signals == []
    scheduler.start()
    assert seen.signals == [0, 1, "end"]


def test_if_the_scheduler_of_subscribe_takes_no_more_the_flow_is_left() -> None:
    scheduler, publisher, seen = EventLoopScheduler(), TestPublisher[int](), Seen()
    scheduler.dispose()
    to_rx(publisher).subscribe(seen.on_next, seen.on_error, scheduler=scheduler)
    (error,) = seen.signals
    assert isinstance(error, DisposedException)
    assert publisher.cancels == 1


# -- mistakes


@pytest.mark.parametrize("wrong", [None, [1], reactivex.of(1)], ids=["None", "list", "Observable"])
def test_to_rx_refuses_a_value_that_is_not_a_publisher(wrong: Any) -> None:
    with pytest.raises(TypeError, match="to_rx"):
        to_rx(wrong)


def test_refuses_an_executor_as_scheduler() -> None:
    with ThreadPoolExecutor(1) as pool, pytest.raises(TypeError, match="observe_on"):
        to_rx(flow.just(1), pool)  # type: ignore[arg-type]  # the mistake


@pytest.mark.parametrize("wrong", [0, -1])
def test_refuses_a_prefetch_below_one(wrong: int) -> None:
    with pytest.raises(ValueError):
        to_rx(flow.just(1), prefetch=wrong)
