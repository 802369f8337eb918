"""Stages that let some items pass: their errors, the demand they need, and odd arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flow_core as flow
from flow_core import UNBOUNDED, Flow, NoItemError, NoneItemError, TooManyItemsError, structure
from flow_testing import TestPublisher, TestSubscriber, assert_result

Stages = Callable[[Flow[Any]], Flow[Any]]


# -- items that are missing, or too many


@pytest.mark.parametrize(
    ("stages", "items", "expected"),
    [
        (lambda f: f.first_or_error(), [], NoItemError),
        (lambda f: f.first_or_error(), [1, 2], [1]),
        (lambda f: f.first_or_default(9), [], [9]),
        (lambda f: f.first_or_default(9), [1, 2], [1]),
        (lambda f: f.last_or_error(), [], NoItemError),
        (lambda f: f.last_or_error(), [1, 2], [2]),
        (lambda f: f.last_or_default(9), [], [9]),
        (lambda f: f.last_or_default(9), [1, 2], [2]),
        (lambda f: f.single_or_error(), [], NoItemError),
        (lambda f: f.single_or_error(), [1], [1]),
        (lambda f: f.single_or_error(), [1, 2], TooManyItemsError),
        (lambda f: f.single_or_default(9), [], [9]),
        (lambda f: f.single_or_default(9), [1], [1]),
        (lambda f: f.single_or_default(9), [1, 2], TooManyItemsError),
        (lambda f: f.element_at(0), [], NoItemError),
        (lambda f: f.element_at(2), [1, 2], NoItemError),
        (lambda f: f.element_at(1), [1, 2, 3], [2]),
        (lambda f: f.element_at_or_default(2, 9), [1, 2], [9]),
        (lambda f: f.element_at_or_default(1, 9), [1, 2, 3], [2]),
        (lambda f: f.filter(lambda n: n > 5).first_or_error(), [1, 2], NoItemError),
        (lambda f: f.cast(int), [1, 2], [1, 2]),
        (lambda f: f.cast(str), [1, 2], TypeError),
        (lambda f: f.of_type(str), [1, 2], []),
        (lambda f: f.of_type(int), [1, "a", 2], [1, 2]),
    ],
)
def test_a_missing_or_surplus_item_fails_unless_there_is_a_default(
    stages: Stages, items: list[Any], expected: Any
) -> None:
    fails = isinstance(expected, type)
    assert_result(
        lambda: stages(flow.from_iterable(items)),
        [] if fails else expected,
        expected if fails else None,
    )


def test_an_item_of_another_class_fails_a_cast_after_those_before_it() -> None:
    made = flow.from_iterable([1, "a", 2]).cast(int)
    assert_result(lambda: made, [1], TypeError)
    with pytest.raises(TypeError, match=r"cast\(int\): got 'a', which is of str; of_type\(\)"):
        list(made)
    assert_result(lambda: flow.just(True).cast(int), [True])


def test_an_error_says_which_operator_it_is_of() -> None:
    for name, made in (
        ("first_or_error()", flow.empty().first_or_error()),
        ("last_or_error()", flow.empty().last_or_error()),
        ("single_or_error()", flow.empty().single_or_error()),
        ("single_or_error()", flow.range(2).single_or_error()),
        ("single_or_default()", flow.range(2).single_or_default(1)),
        ("element_at(3)", flow.range(2).element_at(3)),
    ):
        with pytest.raises(LookupError) as raised:
            list(made)
        assert str(raised.value).startswith(name)


def test_a_second_item_fails_at_once_and_cancels() -> None:
    for stages in (lambda f: f.single_or_error(), lambda f: f.single_or_default(9)):
        publisher = TestPublisher[int]()
        subscriber = TestSubscriber[int]()
        stages(Flow(publisher)).subscribe(subscriber)
        publisher.next(1, 2)
        assert isinstance(subscriber.error, TooManyItemsError)
        publisher.assert_cancelled()


# -- what is refused when the flow is made


@pytest.mark.parametrize("name", ["take", "take_last", "skip", "skip_last", "element_at"])
def test_counts_are_ints_and_not_negative(name: str) -> None:
    method = getattr(flow.range(3), name)
    with pytest.raises(ValueError, match=f"{name}"):
        method(-1)
    for wrong in (1.0, "1", None, True):
        with pytest.raises(TypeError, match=f"{name}"):
            method(wrong)


def test_an_index_with_a_default_is_checked_too() -> None:
    with pytest.raises(ValueError, match="index"):
        flow.range(3).element_at_or_default(-1, 9)
    with pytest.raises(TypeError, match="index"):
        flow.range(3).element_at_or_default("0", 9)  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize(
    "call",
    [
        lambda f: f.first_or_default(None),
        lambda f: f.last_or_default(None),
        lambda f: f.single_or_default(None),
        lambda f: f.element_at_or_default(0, None),
        lambda f: f.default_if_empty(None),
        lambda f: f.start_with(None),
        lambda f: f.end_with(1, None),
        lambda f: f.on_error_return(None),
    ],
)
def test_a_default_of_none_is_refused(call: Stages) -> None:
    with pytest.raises(NoneItemError):
        call(flow.range(3))


# -- counts at their borders


@pytest.mark.parametrize("items", [[], [1], [1, 2, 3]], ids=str)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 2**31, 2**70])
def test_counts_from_nothing_to_huge(count: int, items: list[int]) -> None:
    def source() -> Flow[int]:
        return flow.from_iterable(items)

    for made, expected in (
        (source().take_last(count), items[-count:] if count else []),
        (source().take(count), items[:count]),
        (source().skip(count), items[count:]),
        (source().skip_last(count), items[: max(0, len(items) - count)]),
        (source().element_at_or_default(count, 9), [*items[count : count + 1], 9][:1]),
    ):
        assert list(made) == expected
        for hidden in (made, structure.moved(made, lambda s: s.hide())):
            subscriber = TestSubscriber[int]()
            hidden.subscribe(subscriber)
            subscriber.assert_result(*expected)


def test_the_last_of_more_than_memory_can_hold_are_all() -> None:
    assert_result(lambda: flow.range(3).take_last(2**70), [0, 1, 2])


def test_taking_and_skipping_nothing_at_the_end_in_every_form() -> None:
    assert_result(lambda: flow.range(3).take_last(0), [])
    assert_result(lambda: flow.range(3).skip_last(0), [0, 1, 2])


# -- demand


@pytest.mark.parametrize(
    ("stages", "asked", "sent", "expected"),
    [
        (lambda f: f.first_or_error(), [1], [5], [5]),
        (lambda f: f.first_or_default(9), [1], [5], [5]),
        (lambda f: f.is_empty(), [1], [5], [False]),
        (lambda f: f.take(2).last_or_error(), [2], [5, 6], [6]),
        (lambda f: f.map(str).first_or_error(), [1], [5], ["5"]),
        (lambda f: f.take(2).contains(7), [2], [5, 6], [False]),
    ],
)
def test_no_more_is_requested_than_is_needed(
    stages: Stages, asked: list[int], sent: list[int], expected: list[Any]
) -> None:
    publisher = TestPublisher[int]()
    subscriber = TestSubscriber[Any]()
    stages(Flow(publisher)).subscribe(subscriber)
    publisher.assert_requests(*asked)
    publisher.next(*sent)
    subscriber.assert_result(*expected)
    publisher.assert_cancelled()
    publisher.assert_requests(*asked)


def test_element_at_asks_for_one_item_at_a_time_if_one_is_wanted() -> None:
    publisher = TestPublisher[int]()
    subscriber = TestSubscriber[int](1)
    Flow(publisher).element_at(2).subscribe(subscriber)
    publisher.next(5)
    publisher.next(6)
    publisher.assert_requests(1, 1, 1)
    publisher.next(7)
    subscriber.assert_result(7)
    publisher.assert_cancelled()
    publisher.assert_requests(1, 1, 1)


@pytest.mark.parametrize("demand", [1, UNBOUNDED])
@pytest.mark.parametrize(
    ("stages", "expected"),
    [
        (lambda f: f.contains(1), [True]),
        (lambda f: f.some(lambda n: n == 1), [True]),
        (lambda f: f.all(lambda n: n != 1), [False]),
        (lambda f: f.skip(1).is_empty(), [False]),
    ],
)
def test_a_result_that_is_known_early_cancels_at_once(
    stages: Stages, expected: list[Any], demand: int
) -> None:
    publisher = TestPublisher[int]()
    subscriber = TestSubscriber[Any](demand)
    stages(Flow(publisher)).subscribe(subscriber)
    publisher.next(0)
    publisher.assert_not_cancelled()
    publisher.next(1)
    publisher.assert_cancelled()
    subscriber.assert_result(*expected)


def test_a_result_that_is_known_early_cancels_even_before_it_is_requested() -> None:
    for stages in (lambda f: f.contains(1), lambda f: f.some(bool), lambda f: f.is_empty()):
        publisher = TestPublisher[int]()
        subscriber = TestSubscriber[Any](0)
        stages(Flow(publisher)).subscribe(subscriber)
        publisher.next(1)
        publisher.assert_cancelled()
        assert not subscriber.terminated
        subscriber.request(1)
        assert subscriber.completed
        assert len(subscriber.items) == 1


def test_take_until_gives_the_item_and_cancels() -> None:
    publisher = TestPublisher[int]()
    subscriber = TestSubscriber[int]()
    Flow(publisher).take_until(lambda n: n == 2).subscribe(subscriber)
    publisher.next(1, 2)
    subscriber.assert_result(1, 2)
    publisher.assert_cancelled()


def test_the_last_items_are_asked_for_all_at_once_and_given_as_demanded() -> None:
    publisher = TestPublisher[int]()
    subscriber = TestSubscriber[int](1)
    Flow(publisher).take_last(2).subscribe(subscriber)
    publisher.assert_requests(UNBOUNDED)
    publisher.next(1, 2, 3).complete()
    subscriber.assert_items(2)
    assert not subscriber.terminated
    subscriber.request(1)
    subscriber.assert_result(2, 3)


# -- items that cannot be compared


class Odd:
    """An object whose comparison fails."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        raise ZeroDivisionError

    def __ne__(self, other: object) -> bool:
        raise ZeroDivisionError

    def __bool__(self) -> bool:
        raise ZeroDivisionError


@pytest.mark.checklist("X13")
@pytest.mark.parametrize(
    "stages",
    [
        lambda f: f.first_or_error(),
        lambda f: f.first_or_default(0),
        lambda f: f.last_or_error(),
        lambda f: f.last_or_default(0),
        lambda f: f.take(1).single_or_error(),
        lambda f: f.take(1).single_or_default(0),
        lambda f: f.element_at(1),
        lambda f: f.element_at_or_default(1, 0),
        lambda f: f.take_last(1),
        lambda f: f.skip_last(1),
        lambda f: f.slice(-2, 1),
        lambda f: f.default_if_empty(0),
        lambda f: f.reduce(lambda a, _: a),
        lambda f: f.scan(lambda a, _: a),
        lambda f: f.pairwise(),
        lambda f: f.to_list(),
        lambda f: f.to_dict(id),
        lambda f: f.to_multidict(id),
        lambda f: f.count(),
        lambda f: f.is_empty(),
        lambda f: f.min(id),
        lambda f: f.max(id),
        lambda f: f.sort(id),
        lambda f: f.distinct(id),
        lambda f: f.distinct_until_changed(id),
        lambda f: f.buffer_until_changed(id),
        lambda f: f.buffer_with_count(2),
        lambda f: f.zip_with_iterable([Odd(), Odd()]),
        lambda f: f.start_with(Odd()).end_with(Odd()),
        lambda f: f.materialize(),
        lambda f: f.materialize().dematerialize(),
        lambda f: f.on_error_return(Odd()),
        lambda f: f.map(lambda _: 1 // 0).on_error_return(Odd()),
        lambda f: f.map_optional(lambda x: x),
        lambda f: f.reduce(lambda a, _: a, Odd()),
    ],
)
def test_items_are_not_compared(stages: Stages) -> None:
    for source in (flow.just(Odd(), Odd()), flow.just(Odd(), Odd()).hide()):
        assert len(list(stages(source))) > 0
        subscriber = TestSubscriber[Any]()
        stages(source).subscribe(subscriber)
        assert subscriber.completed


@pytest.mark.checklist("X13")
def test_contains_says_that_it_compares_and_begins_with_identity() -> None:
    item = Odd()
    assert list(flow.just(item).contains(item)) == [True]
    assert_result(lambda: flow.just(Odd()).contains(item), [], ZeroDivisionError)


class NoLength:
    """A function that counts as false."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any) -> Any:
        return self._function(*args)

    def __len__(self) -> int:
        return 0


def test_a_function_that_counts_as_false_is_one_all_the_same() -> None:
    half, near = NoLength(lambda n: n // 2), NoLength(lambda left, right: right - left < 3)
    assert_result(lambda: flow.range(6).distinct_until_changed(half), [0, 2, 4])
    assert_result(lambda: flow.range(6).distinct_until_changed(same=near), [0, 3])
    assert_result(lambda: flow.range(4).buffer_until_changed(half), [[0, 1], [2, 3]])
