"""Operators of one library in a pipeline of the other."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import reactivex
from reactivex import Observable, compose
from reactivex import operators as ops
from reactivex.scheduler import NewThreadScheduler, VirtualTimeScheduler

import flow_core as flow
from flow_core.errors import MissingBackpressureError, NoneItemError
from flow_core.structure import source_of
from flow_rxcompat.rx import rx, via_flow
from flow_testing import Drops, TestPublisher, TestSubscriber, assert_result


def counted(taken: list[int], stop: int | None = None) -> Iterator[int]:
    for n in itertools.count() if stop is None else range(stop):
        taken.append(n)
        yield n


# -- rx: theirs in ours


@pytest.mark.parametrize("count", [0, 1, 3, 300])
def test_gives_what_the_operators_make(count: int) -> None:
    assert_result(
        lambda: flow.range(count).pipe(rx(compose(ops.filter(lambda n: n % 2 == 0), ops.map(str)))),
        [str(n) for n in range(count) if n % 2 == 0],
    )


def test_one_item_may_become_many() -> None:
    def many(n: int) -> Observable[int]:
        return reactivex.from_iterable(range(n * 100))

    assert_result(
        lambda: flow.range(4).pipe(rx(ops.flat_map(many))),
        [m for n in range(4) for m in range(n * 100)],
    )


def test_many_items_may_become_one() -> None:
    assert_result(lambda: flow.range(1_000).pipe(rx(ops.sum())), [499_500])


def test_errors_of_the_upstream_are_the_identical_object() -> None:
    error = LookupError("theirs")

    def items() -> Iterator[int]:
        yield 1
        raise error

    assert_result(
        lambda: flow.defer(lambda: flow.from_iterable(items())).pipe(rx(ops.map(str))), ["1"], error
    )


def test_an_error_that_a_function_raises_fails_the_flow() -> None:
    assert_result(
        lambda: flow.just(1, 0).pipe(rx(ops.map(lambda n: 1 // n))), [1], ZeroDivisionError
    )


def test_their_operators_recover_from_our_errors() -> None:
    failing = flow.just(1, 0).map(lambda n: 1 // n)
    assert_result(lambda: failing.pipe(rx(ops.catch(reactivex.of(7)))), [1, 7])
    assert list(failing.pipe(rx(compose(ops.retry(2), ops.catch(reactivex.of(7)))))) == [1, 1, 7]


def test_debounce_in_virtual_time() -> None:
    scheduler = VirtualTimeScheduler()
    publisher = TestPublisher[int]()
    subscriber = TestSubscriber[int]()
    flow.Flow(publisher).pipe(rx(ops.debounce(5.0, scheduler))).subscribe(subscriber)
    publisher.next(1, 2)
    scheduler.advance_by(6.0)
    publisher.next(3)
    publisher.complete()
    scheduler.advance_by(6.0)
    subscriber.assert_result(2, 3)


def test_buffer_with_time_in_virtual_time() -> None:
    scheduler = VirtualTimeScheduler()
    publisher = TestPublisher[int]()
    subscriber = TestSubscriber[list[int]]()
    flow.Flow(publisher).pipe(rx(ops.buffer_with_time(5.0, scheduler=scheduler))).subscribe(
        subscriber
    )
    publisher.next(1, 2)
    scheduler.advance_by(5.0)
    publisher.next(3)
    publisher.complete()
    subscriber.assert_result([1, 2], [3])


def test_an_operator_that_cancels_cancels_the_upstream() -> None:
    publisher = TestPublisher[int]()
    subscriber = TestSubscriber[int]()
    flow.Flow(publisher).pipe(rx(ops.take(1))).subscribe(subscriber)
    publisher.next(1)
    subscriber.assert_result(1)
    assert publisher.cancels == 1


def test_a_cancel_cancels_the_upstream_once() -> None:
    publisher = TestPublisher[int]()
    subscriber = TestSubscriber[int]()
    flow.Flow(publisher).pipe(rx(ops.map(str))).subscribe(subscriber)  # type: ignore[arg-type]
    subscriber.cancel()
    subscriber.cancel()
    assert publisher.cancels == 1


# -- demand


def test_an_endless_source_is_not_asked_for_more_than_is_wanted() -> None:
    taken: list[int] = []
    numbers = flow.from_iterable(counted(taken)).pipe(rx(ops.map(lambda n: n + 1)))
    assert list(itertools.islice(numbers, 1_000)) == list(range(1, 1_001))
    assert len(taken) <= 1_000 + 3 * 128


def test_without_demand_nothing_is_requested() -> None:
    publisher = TestPublisher[int]()
    subscriber = TestSubscriber[int](0)
    flow.Flow(publisher).pipe(rx(ops.map(lambda n: n + 1), prefetch=4)).subscribe(subscriber)
    assert publisher.requests == []
    subscriber.request(1)
    assert publisher.requests == [4]
    publisher.next(0, 1, 2, 3)
    subscriber.assert_items(1)
    assert publisher.requests == [4]
    subscriber.request(3)
    subscriber.assert_items(1, 2, 3, 4)
    assert publisher.requests == [4]
    subscriber.request(1)
    assert publisher.requests == [4, 4]


def test_an_operator_that_sends_nothing_is_fed_until_it_sends_something() -> None:
    taken: list[int] = []
    subscriber = TestSubscriber[int](1)
    flow.from_iterable(counted(taken)).pipe(rx(ops.filter(lambda n: n == 5_000))).subscribe(
        subscriber
    )
    subscriber.assert_items(5_000).assert_not_terminated()
    assert len(taken) <= 5_000 + 2 * 128
    subscriber.cancel()


def test_operators_that_subscribe_twice_feed_both() -> None:
    def doubled(source: Observable[int]) -> Observable[int]:
        return reactivex.concat(source, source)

    assert_result(lambda: flow.range(300).pipe(rx(doubled)), [*range(300), *range(300)])


@pytest.mark.parametrize(
    ("strategy", "expected", "dropped"),
    [("latest", [0, 9], 8), ("drop", [0], 9)],
    ids=["latest", "drop"],
)
def test_other_strategies_request_everything(
    strategy: Any, expected: list[int], dropped: int, drops: Drops
) -> None:
    subscriber = TestSubscriber[int](1)
    flow.range(10).pipe(rx(ops.map(lambda n: n), strategy=strategy)).subscribe(subscriber)
    subscriber.request(5)
    subscriber.assert_result(*expected)
    assert len(drops.take_items()) == dropped


def test_a_capacity_may_be_exceeded(drops: Drops) -> None:
    subscriber = TestSubscriber[int](1)
    flow.just(1).pipe(rx(ops.flat_map(lambda _: reactivex.range(10)), capacity=2)).subscribe(
        subscriber
    )
    subscriber.request(9)
    subscriber.assert_failure(MissingBackpressureError, 0, 1, 2)
    drops.take_items()


# -- threads


def test_operators_may_change_the_thread() -> None:
    assert list(flow.range(500).pipe(rx(ops.observe_on(NewThreadScheduler())))) == list(range(500))


def test_a_scheduler_is_where_the_upstream_is_requested() -> None:
    subscriber = TestSubscriber[int]()
    flow.range(3).pipe(rx(ops.map(lambda n: n), scheduler=NewThreadScheduler())).subscribe(
        subscriber
    )
    subscriber.await_terminal().assert_result(0, 1, 2)
    subscriber.assert_not_on_thread("MainThread")


@pytest.mark.parametrize("strategy", ["buffer", "drop"])
def test_the_upstream_is_at_home_where_the_subscriber_is(strategy: Any) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()

        async def where() -> AsyncIterator[bool]:
            for _ in range(3):
                yield asyncio.get_running_loop() is loop

        delayed = ops.delay_subscription(0.001)
        theirs = rx(delayed, strategy=strategy, scheduler=NewThreadScheduler())
        assert await flow.from_async_iterable(where()).pipe(theirs).to_list() == [True] * 3

    asyncio.run(main())


def test_it_can_be_nested() -> None:
    inner = rx(ops.map(lambda n: n + 1))
    theirs = ops.flat_map(lambda n: via_inner(n))

    def via_inner(n: int) -> Observable[int]:
        return reactivex.of(n).pipe(via_flow(inner))

    assert list(flow.range(3).pipe(inner).pipe(rx(theirs)).pipe(inner)) == [3, 4, 5]


def test_messages_name_the_operator() -> None:
    def doubled(numbers: Observable[int]) -> Observable[int]:
        return numbers.pipe(ops.map(lambda n: 2 * n))

    named = {"map": ops.map(str), "take": ops.take(1), "doubled": doubled}
    for name, operator in named.items():
        assert repr(source_of(flow.range(3).pipe(rx(operator)))) == f"rx({name})"
    assert repr(source_of(flow.range(3).pipe(rx(compose(ops.skip(1), doubled))))) == "rx(compose)"


# -- mistakes


def test_a_function_that_makes_no_observable_fails_the_flow() -> None:
    wrong: Any = lambda _: 7  # noqa: E731
    subscriber = TestSubscriber[int]()
    flow.just(1).pipe(rx(wrong)).subscribe(subscriber)
    subscriber.assert_failure(TypeError).assert_error_message("7")


def test_an_error_while_the_observable_is_made_fails_the_flow() -> None:
    error = ValueError("mine")

    def wrong(_: Observable[int]) -> Observable[int]:
        raise error

    assert_result(lambda: flow.just(1).pipe(rx(wrong)), [], error)


def test_none_fails_the_flow() -> None:
    nothing: Any = ops.map(lambda _: None)
    assert_result(lambda: flow.just(1).pipe(rx(nothing)), [], NoneItemError)


@pytest.mark.parametrize("wrong", [None, 7, "map"], ids=str)
def test_rx_refuses_a_value_that_cannot_be_an_operator(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"rx\(\)"):
        rx(wrong)


@pytest.mark.parametrize("wrong", [{"strategy": "keep"}, {"capacity": 0}, {"prefetch": 0}], ids=str)
def test_refuses_wrong_options(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        rx(ops.map(str), **wrong)


# -- via_flow: ours in theirs


def test_a_function_of_a_flow_is_an_operator_of_theirs() -> None:
    pairs = reactivex.range(5).pipe(
        ops.map(lambda n: n + 1),
        via_flow(lambda numbers: numbers.filter(lambda n: n != 3).pairwise()),
        ops.map(sum),
        ops.to_list(),
    )
    assert pairs.run() == [3, 6, 9]


def test_an_operator_of_ours_is_one_of_theirs() -> None:
    squares: flow.Operator[int, flow.Flow[int]] = flow.Operator(
        "squares", lambda ours: ours.map(lambda n: n * n)
    )
    numbers = reactivex.range(5).pipe(via_flow(squares), ops.to_list())
    assert numbers.run() == [0, 1, 4, 9, 16]


def test_errors_go_through_and_are_the_identical_object() -> None:
    error = LookupError("theirs")
    seen: list[BaseException] = []
    reactivex.throw(error).pipe(via_flow(lambda items: items.map(str))).subscribe(
        on_error=seen.append
    )
    assert seen == [error]


def test_a_dispose_goes_through() -> None:
    disposed: list[int] = []
    never: Observable[int] = reactivex.never().pipe(ops.finally_action(lambda: disposed.append(1)))
    handle = never.pipe(via_flow(lambda items: items.map(str))).subscribe()
    handle.dispose()
    assert disposed == [1]


def test_an_endless_source_of_theirs_is_stopped_by_ours() -> None:
    endless = reactivex.from_iterable(itertools.count())
    assert endless.pipe(via_flow(lambda items: items.take(3)), ops.to_list()).run() == [0, 1, 2]


def test_a_scheduler_is_where_the_rest_gets_its_items() -> None:
    with ThreadPoolExecutor(1):
        numbers = reactivex.range(100).pipe(
            via_flow(lambda items: items.map(str), scheduler=NewThreadScheduler()), ops.to_list()
        )
        assert numbers.run() == [str(n) for n in range(100)]


@pytest.mark.parametrize("wrong", [None, 7, "map"], ids=str)
def test_via_flow_refuses_a_value_that_is_not_an_operator(wrong: Any) -> None:
    with pytest.raises(TypeError, match="via_flow"):
        via_flow(wrong)
