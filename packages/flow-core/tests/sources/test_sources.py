"""The sources of items."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

import flow_core as flow
from flow_core import UNBOUNDED, Flow
from flow_core.structure import source_of
from flow_testing import (
    Drops,
    TestPublisher,
    TestSubscriber,
    Violation,
    assert_result,
)


class FailureError(Exception):
    pass


# -- range


@pytest.mark.parametrize(
    "args", [(0,), (5,), (2, 5), (5, 2), (0, 10, 3), (10, 0, -3), (-3, 3), (2**64, 2**64 + 3)]
)
def test_range_counts_as_the_builtin_does(args: tuple[int, ...]) -> None:
    assert_result(lambda: flow.range(*args), list(range(*args)))
    assert repr(flow.range(*args)) == repr(range(*args))


def test_range_refuses_what_the_builtin_refuses() -> None:
    with pytest.raises(ValueError, match="zero"):
        flow.range(0, 1, 0)
    with pytest.raises(TypeError):
        flow.range("5")  # type: ignore[arg-type]  # the mistake


def test_an_endless_range_is_bounded_by_demand() -> None:
    subscriber = TestSubscriber[int](3)
    flow.range(2**70).subscribe(subscriber)
    subscriber.assert_items(0, 1, 2).cancel()


# -- items


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([1, 2], [1, 2]),
        ((1, 2), [1, 2]),
        ("añ", ["a", "ñ"]),
        (b"ab", [97, 98]),
        ({1: 2}, [1]),
        ({7}, [7]),
        ({1: 2}.values(), [2]),
        (range(3), [0, 1, 2]),
        ([], []),
        ("", []),
    ],
    ids=repr,
)
def test_from_iterable_gives_the_items_to_each_subscriber(items: Any, expected: list[Any]) -> None:
    assert_result(lambda: flow.from_iterable(items), expected)


def test_a_flow_is_an_iterable() -> None:
    assert_result(lambda: flow.from_iterable(flow.range(3).map(str)), ["0", "1", "2"])
    assert_result(
        lambda: flow.range(3).flat_map_iterable(lambda n: flow.range(n).hide()),
        [0, 0, 1],
        only=lambda form: "async" not in form,  # which would block its loop
    )


def test_items_that_cannot_be_iterated_fail_the_flow_when_it_runs() -> None:
    made = flow.from_iterable(5)  # type: ignore[arg-type]  # the mistake
    subscriber = TestSubscriber[Any]()
    made.subscribe(subscriber)
    subscriber.assert_failure(TypeError)
    with pytest.raises(TypeError, match="not iterable"):
        list(made)


def test_an_error_of_an_iterator_is_the_error_of_the_flow() -> None:
    error = FailureError()

    def items() -> Iterator[int]:
        yield 1
        raise error

    assert_result(lambda: flow.from_iterable(items()), [1], error)


def test_items_are_taken_only_when_they_can_be_delivered() -> None:
    source = count()
    subscriber = TestSubscriber[int](2)
    flow.from_iterable(source).subscribe(subscriber)
    assert next(source) == 2


def test_a_list_that_grows_while_it_is_sent() -> None:
    items = [1, 2]
    subscriber = TestSubscriber[int](1)
    flow.from_iterable(items).subscribe(subscriber)
    items.append(3)
    subscriber.request(5)
    subscriber.assert_result(1, 2, 3)


# -- constants


def test_just() -> None:
    assert_result(lambda: flow.just(1), [1])
    assert_result(lambda: flow.just(1, 2, 1), [1, 2, 1])
    assert_result(flow.just, [])
    assert_result(lambda: flow.just([]), [[]])
    assert_result(lambda: flow.just(0, False, ""), [0, False, ""])
    assert_result(lambda: flow.just(0), [0])
    assert repr(flow.just(7)) == "just(7)"


def test_empty_and_never() -> None:
    assert_result(flow.empty, [])
    subscriber = TestSubscriber[Any]()
    flow.never().map(str).subscribe(subscriber)
    subscriber.assert_items().assert_not_terminated().cancel()
    assert (repr(flow.empty()), repr(flow.never())) == ("empty()", "never()")


# -- calls


@pytest.mark.checklist("F02")
def test_from_callable() -> None:
    assert_result(lambda: flow.from_callable(lambda: 5), [5])
    assert_result(lambda: flow.from_callable(lambda: None), [])
    assert_result(lambda: flow.from_callable(lambda: 0).map(str), ["0"])
    error = FailureError()

    def fail() -> int:
        raise error

    assert_result(lambda: flow.from_callable(fail), [], error)
    assert_result(lambda: flow.from_callable(fail).map(str).take(1), [], error)
    assert repr(flow.from_callable(fail)) == "from_callable(fail)"


def test_a_failing_call_whose_subscriber_cancels_at_once() -> None:
    def fail() -> int:
        raise FailureError

    subscriber = TestSubscriber[int]()
    subscriber.cancel()
    flow.from_callable(fail).subscribe(subscriber)
    assert not subscriber.terminated


# -- defer


def test_defer_makes_a_flow_for_each_subscriber() -> None:
    made = 0

    def factory() -> Flow[int]:
        nonlocal made
        made += 1
        return flow.range(made)

    deferred = flow.defer(factory).map(lambda n: n)
    assert made == 0
    assert [list(deferred), list(deferred)] == [[0], [0, 1]]
    subscriber = TestSubscriber[int]()
    deferred.subscribe(subscriber)
    subscriber.assert_result(0, 1, 2)
    assert made == 3
    assert_result(lambda: flow.defer(lambda: flow.range(5).filter(bool)).take(2), [1, 2])
    assert_result(lambda: flow.defer(lambda: flow.defer(lambda: flow.just(1).hide())), [1])


def test_a_flow_within_defer_deals_with_a_deferred_source_that_fails() -> None:
    error = ValueError()

    def fail() -> Flow[int]:
        raise error

    assert_result(lambda: flow.defer(lambda: flow.defer(fail).on_error_return(1)), [1])
    assert_result(lambda: flow.defer(lambda: flow.defer(fail).start_with(1)), [1], error)
    assert_result(lambda: flow.defer(lambda: flow.defer(fail).map(str)), [], error)


def test_defer_may_be_the_source_of_another_flow() -> None:
    assert_result(
        lambda: Flow(source_of(flow.defer(lambda: flow.range(3)))).map(str), ["0", "1", "2"]
    )
    assert_result(lambda: flow.defer(lambda: flow.range(3)).hide().map(str), ["0", "1", "2"])


def test_an_error_of_the_factory_is_the_error_of_the_flow() -> None:
    error = FailureError()

    def factory() -> Flow[int]:
        raise error

    assert_result(lambda: flow.defer(factory), [], error)
    assert_result(lambda: flow.defer(factory).map(str).hide(), [], error)


def test_a_factory_that_does_not_make_a_flow_is_named_by_the_error() -> None:
    made = flow.defer(lambda: 1)  # type: ignore[arg-type,return-value]  # the mistake
    with pytest.raises(TypeError, match=r"defer\(.*\) gave 1, not a Flow"):
        list(made)
    assert_result(lambda: made, [], TypeError)


# -- error


def test_error_fails_with_the_identical_object_or_a_new_one() -> None:
    error = FailureError()
    assert_result(lambda: flow.error(error), [], error)
    made: list[FailureError] = []

    def factory() -> FailureError:
        made.append(FailureError(len(made)))
        return made[-1]

    first, second = TestSubscriber[Any](), TestSubscriber[Any]()
    failing = flow.error(factory)
    assert made == []
    failing.subscribe(first)
    failing.subscribe(second)
    assert [first.error, second.error] == made
    assert made[0] is not made[1]


def test_error_on_request_waits_for_demand() -> None:
    error = FailureError()
    assert_result(lambda: flow.error(error, when="request"), [], error)
    subscriber = TestSubscriber[Any](0)
    flow.error(error, when="request").subscribe(subscriber)
    subscriber.assert_not_terminated().request(1)
    subscriber.assert_failure(error)
    subscriber.request(1)
    subscriber.assert_rules_kept()


def test_error_on_request_checks_what_is_requested_first() -> None:
    subscriber = TestSubscriber[Any](0)
    flow.error(FailureError(), when="request").subscribe(subscriber)
    subscriber.request(0)
    subscriber.assert_failure(ValueError)


def test_error_on_request_is_silent_after_a_cancel() -> None:
    subscriber = TestSubscriber[Any](0)
    flow.error(FailureError(), when="request").subscribe(subscriber)
    subscriber.cancel()
    subscriber.request(1)
    subscriber.assert_silent_after_cancel()
    assert not subscriber.terminated


def test_error_knows_two_times_to_fail() -> None:
    with pytest.raises(ValueError, match='"subscribe" or "request"'):
        flow.error(FailureError(), when="never")  # type: ignore[arg-type]  # the mistake
    assert repr(flow.error(FailureError, when="request")) == 'error(FailureError, when="request")'


@pytest.mark.parametrize("wrong", [None, "text", FailureError])
def test_a_factory_that_does_not_make_an_exception_fails_with_a_type_error(wrong: Any) -> None:
    assert_result(lambda: flow.error(lambda: wrong), [], TypeError)


def test_a_factory_that_raises_fails_with_that() -> None:
    error = FailureError()

    def factory() -> Exception:
        raise error

    assert_result(lambda: flow.error(factory), [], error)


@pytest.mark.checklist("X14")
def test_the_traceback_of_a_shared_error_does_not_grow() -> None:
    error = FailureError()
    lengths = set()
    for made in (flow.error(error), flow.error(error).map(str)):
        for _ in range(1000):
            with pytest.raises(FailureError):
                list(made)
            lengths.add(len(traceback.extract_tb(error.__traceback__)))
    assert max(lengths) < 10


def test_the_traceback_of_a_failing_call_is_kept() -> None:
    def fail() -> int:
        raise FailureError

    subscriber = TestSubscriber[int]()
    flow.from_callable(fail).subscribe(subscriber)
    assert subscriber.error is not None
    names = [frame.name for frame in traceback.extract_tb(subscriber.error.__traceback__)]
    assert names[-1] == "fail"


def test_a_subscriber_that_cancels_in_on_subscribe_gets_no_error() -> None:
    subscriber = TestSubscriber[Any]()
    subscriber.cancel()
    flow.error(FailureError()).subscribe(subscriber)
    subscriber.assert_silent_after_cancel()
    assert not subscriber.terminated


# -- publishers


def test_from_publisher_gives_a_publisher_the_operators_of_a_flow() -> None:
    publisher = TestPublisher[int]()
    subscriber = TestSubscriber[str](2)
    flow.from_publisher(publisher).map(str).subscribe(subscriber)
    publisher.assert_requests(2).next(1, 2).complete()
    subscriber.assert_result("1", "2")
    made = flow.range(3)
    assert flow.from_publisher(made) is made
    assert repr(flow.from_publisher(publisher)) == "from_publisher(TestPublisher())"


@pytest.mark.parametrize("source", [flow.create, flow.from_callable, flow.defer])
def test_a_source_that_needs_a_function_refuses_anything_else(source: Any) -> None:
    with pytest.raises(TypeError, match=rf"{source.__name__}\(\) takes a function.*, not 3"):
        source(3)


def test_from_publisher_refuses_what_cannot_be_subscribed_to() -> None:
    nothing: Any = [1, 2]
    with pytest.raises(TypeError, match=r"takes what has subscribe\(subscriber\), not \[1, 2\]"):
        flow.from_publisher(nothing)


def subscribed_by_functions(made: Flow[Any], seen: list[Any]) -> None:
    made.subscribe(seen.append, seen.append, lambda: seen.append("|"))


@pytest.mark.parametrize(
    "stages", [lambda f: f, lambda f: f.map(lambda n: n), lambda f: f.hide().hide()]
)
def test_from_publisher_keeps_a_publishers_mistakes_from_the_subscriber(
    stages: Callable[[Flow[Any]], Flow[Any]], drops: Drops
) -> None:
    publisher = TestPublisher[Any](
        Violation.NONE_ITEM | Violation.AFTER_TERMINAL | Violation.OVERFLOW
    )
    seen: list[Any] = []
    subscribed_by_functions(stages(flow.from_publisher(publisher)), seen)
    with pytest.raises(TypeError):
        publisher.next(None)
    publisher.next(1)
    assert publisher.subscribe_again().cancelled
    publisher.complete()
    publisher.next(2).complete()
    publisher.error(error := FailureError())
    assert seen == [1, "|"]
    assert drops.take_errors() == [error]
    assert drops.take_items() == [2]


def test_from_publisher_checks_requests_for_a_publisher_that_does_not() -> None:
    class Careless:
        def __init__(self) -> None:
            self.requests: list[int] = []
            self.cancelled = False

        def subscribe(self, subscriber: Any) -> None:
            subscriber.on_subscribe(self)

        def request(self, n: int, /) -> None:
            self.requests.append(n)

        def cancel(self) -> None:
            self.cancelled = True

    publisher = Careless()
    subscriber = TestSubscriber[Any](0)
    flow.from_publisher(publisher).subscribe(subscriber)
    subscriber.subscription.request(-1)
    subscriber.assert_failure(ValueError)
    assert publisher.requests == []
    assert publisher.cancelled


def test_a_publisher_that_asks_nothing_of_a_conditional_subscriber() -> None:
    publisher = TestPublisher[int](conditional=True)
    subscriber = TestSubscriber[int]()
    flow.from_publisher(publisher).filter(lambda n: n % 2).subscribe(subscriber)
    publisher.assert_requests(UNBOUNDED).next(1, 2, 3).complete()
    subscriber.assert_result(1, 3)
