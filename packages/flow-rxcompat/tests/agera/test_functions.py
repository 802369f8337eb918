"""Functions, predicates, conditions, suppliers, receivers, mergers and binders."""

from __future__ import annotations

from typing import Any

import pytest

from flow_core.errors import NoneItemError
from flow_rxcompat.agera import (
    Result,
    binders,
    conditions,
    functions,
    mergers,
    predicates,
    receivers,
    suppliers,
)

NOTHING: Any = None


def never(*_: object) -> Any:
    raise AssertionError("it must not be called")


def test_the_simple_functions() -> None:
    assert functions.static_function(7).apply("whatever") == 7
    assert functions.supplier_as_function(lambda: 7).apply("whatever") == 7
    same = object()
    assert functions.identity_function().apply(same) is same
    assert functions.item_as_list().apply(1) == [1]
    assert functions.result_as_list().apply(Result.success(1)) == [1]
    assert functions.result_as_list().apply(Result.absent()) == []
    assert functions.result_list_as_list().apply(Result.success([1, 2])) == [1, 2]
    assert functions.result_list_as_list().apply(Result.failure()) == []
    error = LookupError()
    assert functions.failed_result().apply(error).get_failure() is error
    with pytest.raises(NoneItemError):
        functions.static_function(None)


def test_a_function_of_an_item_and_of_the_list_that_is_made_of_it() -> None:
    words = (
        functions.function_from(str)
        .apply(str.strip)
        .unpack(str.split)
        .filter(lambda word: word != "and")
        .map(len)
        .sort(lambda a, b: b - a)
        .limit(2)
        .then_apply(tuple)
    )
    assert words.apply("  one and three and two ") == (5, 3)


def test_the_ways_to_end_a_list() -> None:
    numbers = functions.function_from_list_of(int)
    assert numbers.then_map(lambda n: n * n).apply([1, 2]) == [1, 4]
    assert numbers.then_filter(lambda n: n > 1).apply([1, 2]) == [2]
    assert numbers.then_limit(1).apply([1, 2]) == [1]
    assert numbers.then_sort(lambda a, b: a - b).apply([2, 1]) == [1, 2]
    assert numbers.then_apply(sum).apply([1, 2]) == 3
    assert numbers.morph(lambda all_: [*all_, 0]).then_map(str).apply([1]) == ["1", "0"]
    assert numbers.apply(sum).then_apply(str).apply([1, 2]) == "3"


@pytest.mark.parametrize(
    ("limit", "gives"), [(-1, []), (0, []), (2, [1, 2]), (3, [1, 2, 3]), (9, [1, 2, 3])]
)
def test_a_limit(limit: int, gives: list[int]) -> None:
    assert functions.function_from_list_of(int).then_limit(limit).apply([1, 2, 3]) == gives


def test_sorting_is_stable_and_leaves_the_list_as_it_is() -> None:
    given = ["bb", "a", "cc", "d"]
    by_length = functions.function_from_list_of(str).then_sort(lambda a, b: len(a) - len(b))
    assert by_length.apply(given) == ["a", "d", "bb", "cc"]
    assert given == ["bb", "a", "cc", "d"]


def test_a_description_may_be_continued_in_several_ways() -> None:
    start = functions.function_from_list_of(int).map(lambda n: n + 1)
    ups, downs = start.then_limit(1), start.then_sort(lambda a, b: b - a)
    assert (ups.apply([1, 2]), downs.apply([1, 2])) == ([2], [3, 2])


def test_steps_that_do_nothing_are_left_out() -> None:
    identity: Any = functions.identity_function()
    assert functions.function_from(int).then_apply(identity) is identity
    assert functions.function_from_list_of(int).then_map(identity) is identity
    assert functions.function_from_list_of(int).then_filter(predicates.true_predicate()) is identity


def test_suppliers_receivers_mergers_and_binders() -> None:
    assert suppliers.static_supplier(1).get() == 1
    calls: list[int] = []

    def counted(n: int) -> int:
        calls.append(n)
        return n + len(calls)

    supplier = suppliers.function_as_supplier(counted, 10)
    assert (supplier.get(), supplier.get()) == (11, 12)
    assert receivers.null_receiver().accept(1) is None
    assert binders.null_binder().bind(1, 2) is None
    assert mergers.static_merger(3).merge(1, 2) == 3
    assert mergers.objects_unequal().merge([1], [2])
    assert not mergers.objects_unequal().merge([1], [1])
    for make in (suppliers.static_supplier, mergers.static_merger):
        with pytest.raises(NoneItemError):
            make(None)
    with pytest.raises(NoneItemError):
        suppliers.function_as_supplier(counted, NOTHING)


def test_simple_predicates() -> None:
    assert predicates.true_predicate().apply(1)
    assert not predicates.false_predicate().apply(1)
    assert predicates.static_predicate(True) is predicates.true_predicate()
    assert predicates.static_predicate(False) is predicates.false_predicate()
    assert predicates.equal_to([1]).apply([1])
    assert not predicates.equal_to([1]).apply([2])
    assert predicates.instance_of(int).apply(True)
    assert not predicates.instance_of(int).apply("1")
    assert predicates.empty_string().apply("")
    assert not predicates.empty_string().apply(" ")
    answer = [False]
    held = predicates.condition_as_predicate(lambda: answer[0])
    assert not held.apply(1)
    answer[0] = True
    assert held.apply(1)
    with pytest.raises(NoneItemError):
        predicates.equal_to(None)


def test_simple_conditions() -> None:
    assert conditions.true_condition().applies()
    assert not conditions.false_condition().applies()
    assert conditions.static_condition(True) is conditions.true_condition()
    assert conditions.static_condition(False) is conditions.false_condition()
    assert conditions.predicate_as_condition(lambda n: n > 1, lambda: 2).applies()
    assert not conditions.predicate_as_condition(lambda n: n > 1, lambda: 1).applies()


def test_constants_are_known_across_both_kinds_and_ask_nothing() -> None:
    true, false = conditions.true_condition(), conditions.false_condition()
    assert conditions.predicate_as_condition(predicates.true_predicate(), never) is true
    assert conditions.predicate_as_condition(predicates.false_predicate(), never) is false
    assert predicates.condition_as_predicate(true) is predicates.true_predicate()
    assert predicates.condition_as_predicate(false) is predicates.false_predicate()


def test_a_double_negation_unwraps() -> None:
    predicate = predicates.equal_to(1)
    negated = predicates.not_(predicate)
    assert negated.apply(2)
    assert not negated.apply(1)
    assert predicates.not_(negated) is predicate
    assert predicates.not_(predicates.true_predicate()) is predicates.false_predicate()
    assert predicates.not_(predicates.false_predicate()) is predicates.true_predicate()
    condition = conditions.predicate_as_condition(lambda n: n > 1, lambda: 2)
    assert not conditions.not_(condition).applies()
    assert conditions.not_(conditions.not_(condition)) is condition
    assert conditions.not_(conditions.true_condition()) is conditions.false_condition()
    assert conditions.not_(conditions.false_condition()) is conditions.true_condition()
    assert conditions.not_(lambda: False).applies()
    is_one = predicates.not_(lambda n: n == 1)
    assert not is_one.apply(1)


def test_any_and_all_of_predicates() -> None:
    small, even = predicates.not_(lambda n: n > 3), predicates.not_(lambda n: n % 2 == 1)
    assert [predicates.any(small, even).apply(n) for n in (1, 4, 5)] == [True, True, False]
    assert [predicates.all(small, even).apply(n) for n in (1, 2, 4)] == [False, True, False]
    assert predicates.any() is predicates.false_predicate()
    assert predicates.all() is predicates.true_predicate()
    assert predicates.any(small, predicates.true_predicate()) is predicates.true_predicate()
    assert predicates.all(small, predicates.false_predicate()) is predicates.false_predicate()
    assert predicates.any(predicates.false_predicate(), small) is small
    assert predicates.all(predicates.true_predicate(), small) is small
    assert predicates.any(lambda n: n == 1, never).apply(1)
    assert not predicates.all(lambda n: n == 1, never).apply(2)


def test_any_and_all_of_conditions() -> None:
    def yes() -> bool:
        return True

    def no() -> bool:
        return False

    one = conditions.predicate_as_condition(lambda n: n > 1, lambda: 2)
    assert conditions.any(no, yes).applies()
    assert not conditions.any(no, no).applies()
    assert conditions.all(yes, yes).applies()
    assert not conditions.all(yes, no).applies()
    assert conditions.any() is conditions.false_condition()
    assert conditions.all() is conditions.true_condition()
    assert conditions.any(one, conditions.true_condition()) is conditions.true_condition()
    assert conditions.all(one, conditions.false_condition()) is conditions.false_condition()
    assert conditions.any(conditions.false_condition(), one) is one
    assert conditions.all(conditions.true_condition(), one) is one
    assert conditions.any(yes, never).applies()
    assert not conditions.all(no, never).applies()
