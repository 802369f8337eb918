"""The items of the back-pressure operators, one by one."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flow_core as flow
from flow_core import Flow
from flow_core.errors import MissingBackpressureError, NoneItemError
from flow_ops import (
    on_backpressure_buffer,
    on_backpressure_drop,
    on_backpressure_error,
    on_backpressure_latest,
    on_backpressure_reduce,
)
from flow_testing import (
    ConditionalTestSubscriber,
    TestPublisher,
    TestSubscriber,
    assert_result,
    observe,
)

Operators = dict[str, Any]

ALL: Operators = {
    "buffer": lambda: on_backpressure_buffer(100),
    "buffer, drop_oldest": lambda: on_backpressure_buffer(100, overflow="drop_oldest"),
    "buffer, drop_latest": lambda: on_backpressure_buffer(100, overflow="drop_latest"),
    "buffer, timed": lambda: on_backpressure_buffer(100, timeout=3600),
    "drop": on_backpressure_drop,
    "error": on_backpressure_error,
    "latest": on_backpressure_latest,
    "reduce": lambda: on_backpressure_reduce(lambda a, b: a + b),
}
LOSSLESS = {name: make for name, make in ALL.items() if name.startswith("buffer")}

each = pytest.mark.parametrize("make", ALL.values(), ids=ALL)
each_lossless = pytest.mark.parametrize("make", LOSSLESS.values(), ids=LOSSLESS)


@each_lossless
@pytest.mark.parametrize("count", [0, 1, 7])
def test_nothing_is_lost_as_long_as_there_is_room(make: Any, count: int) -> None:
    assert_result(lambda: flow.range(count).pipe(make()), list(range(count)))


@each_lossless
def test_stages_before_and_after_change_nothing(make: Any) -> None:
    assert_result(
        lambda: flow.range(9).filter(lambda n: n % 2 == 0).pipe(make()).map(str).take(3),
        ["0", "2", "4"],
    )


@each_lossless
def test_an_error_comes_after_waiting_items(make: Any, dropped: Any) -> None:
    def failing() -> Flow[int]:
        return flow.range(3).map(lambda n: 6 // (2 - n))

    assert_result(lambda: failing().pipe(make()), [3, 6], ZeroDivisionError)


@each
def test_with_unbounded_demand_each_is_a_pipe(make: Any) -> None:
    observe(flow.range(50).pipe(make())).assert_result(*range(50))
    observe(flow.range(50).hide().pipe(make())).assert_result(*range(50))


@each
def test_everything_is_requested_at_once_and_only_once(make: Any) -> None:
    source = TestPublisher[int]()
    subscriber = observe(source_flow(source).pipe(make()), 1)
    subscriber.request(5)
    source.assert_requests(flow.UNBOUNDED)


@each
def test_no_more_comes_than_is_requested(make: Any) -> None:
    source = TestPublisher[int]()
    subscriber = observe(source_flow(source).pipe(make()), 2)
    source.next(1, 2)
    subscriber.assert_items(1, 2).assert_not_terminated()
    subscriber.request(1)
    source.next(3).complete()
    subscriber.assert_result(1, 2, 3)


@each
def test_the_end_needs_no_demand(make: Any) -> None:
    source = TestPublisher[int]()
    subscriber = observe(source_flow(source).pipe(make()), 0)
    source.complete()
    subscriber.assert_result()


@each
def test_an_error_needs_no_demand(make: Any) -> None:
    error = ValueError()
    source = TestPublisher[int]()
    subscriber = observe(source_flow(source).pipe(make()), 0)
    source.error(error)
    subscriber.assert_failure(error)


@each
def test_items_that_a_conditional_downstream_rejects_do_not_count(make: Any) -> None:
    source = TestPublisher[int]()
    subscriber = ConditionalTestSubscriber[int](lambda n: n % 2, 2)
    source_flow(source).pipe(make()).subscribe(subscriber)
    source.next(0, 1, 2, 3).complete()
    subscriber.assert_result(1, 3)
    assert subscriber.rejected == [0, 2]


def source_flow(source: TestPublisher[int]) -> Flow[int]:
    return Flow(source)


# -- what happens without demand


def test_drop_drops_and_tells(dropped: Any) -> None:
    told: list[int] = []
    source = TestPublisher[int]()
    subscriber = observe(source_flow(source).pipe(on_backpressure_drop(told.append)), 1)
    source.next(1, 2, 3)
    subscriber.request(1)
    source.next(4, 5).complete()
    subscriber.assert_result(1, 4)
    assert told == dropped.items == [2, 3, 5]


def test_error_fails_and_cancels(dropped: Any) -> None:
    source = TestPublisher[int]()
    subscriber = observe(source_flow(source).pipe(on_backpressure_error()), 1)
    source.next(1, 2)
    subscriber.assert_failure(MissingBackpressureError, 1)
    assert "on_backpressure_error()" in str(subscriber.error)
    assert __file__ in str(subscriber.error)
    source.assert_cancelled()
    assert dropped.items == [2]


def test_latest_keeps_the_last_one(dropped: Any) -> None:
    source = TestPublisher[int]()
    subscriber = observe(source_flow(source).pipe(on_backpressure_latest()), 1)
    source.next(1, 2, 3, 4)
    subscriber.assert_items(1).request(2)
    subscriber.assert_items(1, 4)
    source.next(5, 6).complete()
    subscriber.assert_not_terminated().request(1)
    subscriber.assert_result(1, 4, 5, 6)
    assert dropped.items == [2, 3]


def test_reduce_makes_one_of_those_that_come_meanwhile() -> None:
    source = TestPublisher[int]()
    subscriber = observe(
        source_flow(source).pipe(on_backpressure_reduce(lambda a, b: 10 * a + b)), 1
    )
    source.next(1, 2, 3, 4)
    subscriber.request(2)
    source.next(5, 6).complete()
    subscriber.assert_items(1, 234, 5).request(1)
    subscriber.assert_result(1, 234, 5, 6)


@pytest.mark.parametrize(
    ("overflow", "items", "lost"),
    [("drop_oldest", [1, 4, 5], [2, 3]), ("drop_latest", [1, 2, 3], [4, 5])],
)
@pytest.mark.parametrize("timeout_s", [None, 60])
def test_a_full_buffer_drops(
    overflow: Any, items: list[int], lost: list[int], timeout_s: float | None, dropped: Any
) -> None:
    told: list[int] = []
    source = TestPublisher[int]()
    operator = on_backpressure_buffer(
        2, overflow=overflow, on_overflow=told.append, timeout=timeout_s
    )
    subscriber = observe(source_flow(source).pipe(operator), 1)
    source.next(1, 2, 3, 4, 5).complete()
    subscriber.assert_items(1).assert_not_terminated().request(1)
    subscriber.assert_not_terminated().request(1)
    subscriber.assert_result(*items)
    assert told == dropped.items == lost


@pytest.mark.parametrize("timeout_s", [None, 60])
def test_a_full_buffer_fails_after_waiting_items(timeout_s: float | None, dropped: Any) -> None:
    told: list[int] = []
    source = TestPublisher[int]()
    operator = on_backpressure_buffer(2, on_overflow=told.append, timeout=timeout_s)
    subscriber = observe(source_flow(source).pipe(operator), 1)
    source.next(1, 2, 3, 4)
    source.assert_cancelled()
    subscriber.assert_items(1).assert_not_terminated().request(1)
    subscriber.assert_items(1, 2).assert_not_terminated().request(1)
    subscriber.assert_failure(MissingBackpressureError, 1, 2, 3)
    assert "2 items wait" in str(subscriber.error)
    assert told == dropped.items == [4]


def test_there_is_room_again_when_items_were_taken() -> None:
    source = TestPublisher[int]()
    subscriber = observe(source_flow(source).pipe(on_backpressure_buffer(2)), 0)
    for n in range(0, 20, 2):
        source.next(n, n + 1)
        subscriber.request(2)
    source.complete()
    subscriber.assert_result(*range(20))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.one_of(st.just("item"), st.integers(1, 3)), max_size=30),
    st.integers(1, 4),
    st.sampled_from(["drop_oldest", "drop_latest", "latest", "drop", "reduce"]),
)
def test_it_does_what_a_plain_queue_does(steps: list[Any], capacity: int, policy: Any) -> None:
    """Compared with a list of the rules, for any sequence of items and requests."""
    operators: Operators = {
        "latest": on_backpressure_latest,
        "drop": on_backpressure_drop,
        "reduce": lambda: on_backpressure_reduce(lambda a, b: a + b),
    }
    make = operators.get(policy, lambda: on_backpressure_buffer(capacity, overflow=policy))
    source = TestPublisher[int]()
    subscriber = observe(source_flow(source).pipe(make()), 0)
    waiting: deque[int] = deque()
    demand, expected = 0, list[int]()
    for number, step in enumerate(steps, 1):
        if step != "item":
            subscriber.request(step)
            demand += step
        else:
            source.next(number)
            if policy == "latest":
                waiting.clear()
            if policy == "reduce" and waiting:
                waiting[0] += number
            elif policy != "drop" or demand:
                waiting.append(number)
            room = demand + (1 if policy in operators else capacity)
            if len(waiting) > room:
                if policy == "drop_oldest":
                    waiting.popleft()
                else:
                    waiting.pop()
        while waiting and demand:
            expected.append(waiting.popleft())
            demand -= 1
        subscriber.assert_items(*expected)
    source.complete()
    subscriber.request(flow.UNBOUNDED)
    subscriber.assert_result(*expected, *waiting)


# -- functions of the user


def test_an_error_that_on_drop_raises_fails_the_flow(dropped: Any) -> None:
    error = KeyError("on_drop")

    def tell(_: int) -> None:
        raise error

    source = TestPublisher[int]()
    subscriber = observe(source_flow(source).pipe(on_backpressure_drop(tell)), 0)
    source.next(1)
    subscriber.assert_failure(error)
    assert error.__notes__[0].startswith("in on_backpressure_drop(")
    source.assert_cancelled()
    assert dropped.items == [1]


@pytest.mark.parametrize("timeout_s", [None, 60])
def test_an_error_that_on_overflow_raises_fails_the_flow_at_once(
    timeout_s: float | None, dropped: Any
) -> None:
    error = KeyError("on_overflow")

    def tell(_: int) -> None:
        raise error

    source = TestPublisher[int]()
    operator = on_backpressure_buffer(1, on_overflow=tell, timeout=timeout_s)
    subscriber = observe(source_flow(source).pipe(operator), 0)
    source.next(1, 2)
    subscriber.assert_failure(error)
    source.assert_cancelled()
    assert sorted(dropped.items) == [1, 2]


def test_an_error_that_a_reducer_raises_fails_the_flow_at_once() -> None:
    error = IndexError("reducer")

    def reduce(_: int, __: int) -> int:
        raise error

    source = TestPublisher[int]()
    subscriber = observe(source_flow(source).pipe(on_backpressure_reduce(reduce)), 0)
    source.next(1, 2)
    subscriber.assert_failure(error)
    source.assert_cancelled()


def test_a_reducer_must_not_give_none() -> None:
    def reduce(_: int, __: int) -> Any:
        return None

    source = TestPublisher[int]()
    subscriber = observe(source_flow(source).pipe(on_backpressure_reduce(reduce)), 0)
    source.next(1, 2)
    subscriber.assert_failure(NoneItemError)


def test_a_fatal_error_of_on_drop_propagates(dropped: Any) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    source = TestPublisher[int]()
    subscriber = observe(source_flow(source).pipe(on_backpressure_drop(interrupt)), 0)
    with pytest.raises(KeyboardInterrupt):
        source.next(1)
    subscriber.assert_not_terminated()
    source.assert_cancelled()


@each
def test_a_downstream_that_raises_cancels_the_upstream(make: Any, dropped: Any) -> None:
    error = ValueError("downstream")

    def fail(_: Any, __: int) -> None:
        raise error

    source = TestPublisher[int]()
    subscriber = TestSubscriber[int](2, on_item=fail)
    source_flow(source).pipe(make()).subscribe(subscriber)
    source.next(1)
    source.assert_cancelled()
    assert dropped.errors == [error]


# -- cancel, and bad requests


@each
def test_a_cancel_drops_waiting_items(make: Any, dropped: Any) -> None:
    source = TestPublisher[int]()
    subscriber = observe(source_flow(source).pipe(make()), 0)
    source.next(1)
    subscriber.cancel()
    subscriber.assert_silent_after_cancel().assert_items()
    source.assert_cancelled()
    assert dropped.items == [1]


@each
def test_a_bad_request_fails_and_cancels(make: Any, dropped: Any) -> None:
    source = TestPublisher[int]()
    subscriber = observe(source_flow(source).pipe(make()), 1)
    subscriber.request(0)
    subscriber.assert_failure(ValueError)
    source.assert_cancelled()


# -- arguments


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_buffer_holds_one_item_at_least(capacity: int) -> None:
    with pytest.raises(ValueError, match="capacity must be at least 1"):
        on_backpressure_buffer(capacity)


@pytest.mark.parametrize("timeout_s", [0, -1.0, float("inf"), float("nan")])
def test_a_timeout_is_above_0_and_finite(timeout_s: float) -> None:
    with pytest.raises(ValueError):
        on_backpressure_buffer(1, timeout=timeout_s)


def test_wrong_arguments_are_refused_when_the_flow_is_assembled() -> None:
    wrong: Any = "wrong"
    with pytest.raises(ValueError, match="error, drop_oldest, drop_latest"):
        on_backpressure_buffer(1, overflow=wrong)
    for make in (
        lambda: on_backpressure_buffer(wrong),
        lambda: on_backpressure_buffer(1, on_overflow=wrong),
        lambda: on_backpressure_buffer(1, timeout=wrong),
        lambda: on_backpressure_buffer(1, timeout=1, clock=wrong),
        lambda: on_backpressure_drop(wrong),
        lambda: on_backpressure_reduce(wrong),
    ):
        with pytest.raises(TypeError):
            make()
