"""The algebra of results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flow_core.errors import NoneItemError
from flow_rxcompat.agera import (
    AbsentValueError,
    AttemptFailedError,
    FailedResultError,
    IllegalStateError,
    Result,
)

ERROR = LookupError("why")
KINDS: dict[str, Result[int]] = {
    "success": Result.success(1),
    "failure": Result.failure(ERROR),
    "generic": Result.failure(),
    "absent": Result.absent(),
}
NOTHING: Any = None


def never(*_: object) -> Any:
    raise AssertionError("it must not be called")


@pytest.mark.parametrize(
    ("kind", "succeeded", "absent", "text"),
    [
        ("success", True, False, "Result{Success; value=1}"),
        ("failure", False, False, "Result{Failure; failure=LookupError('why')}"),
        ("generic", False, False, "Result{Failure}"),
        ("absent", False, True, "Result{Absent}"),
    ],
)
def test_a_result_describes_itself(kind: str, succeeded: bool, absent: bool, text: str) -> None:
    result = KINDS[kind]
    assert result.succeeded is result.is_present is succeeded
    assert result.failed is not succeeded
    assert result.is_absent is absent
    assert repr(result) == text
    assert result.as_list() == ([1] if succeeded else [])
    assert result.or_null() == (1 if succeeded else None)
    assert (result.failure_or_null() is None) is succeeded
    assert result.contains(1) is succeeded
    assert not result.contains(2)


def test_exactly_one_of_value_and_failure() -> None:
    with pytest.raises(ValueError, match="Illegal Result arguments"):
        Result(None, None)
    with pytest.raises(ValueError, match="Illegal Result arguments"):
        Result(1, ERROR)
    with pytest.raises(NoneItemError):
        Result.success(None)
    with pytest.raises(NoneItemError):
        Result.failure(NOTHING)


def test_get_of_a_failure_raises_with_it_as_the_cause() -> None:
    with pytest.raises(FailedResultError) as raised:
        Result.failure(ERROR).get()
    assert raised.value.__cause__ is ERROR
    assert Result.failure(ERROR).get_failure() is ERROR
    with pytest.raises(FailedResultError) as raised:
        Result.absent().get()
    assert isinstance(raised.value.__cause__, AbsentValueError)
    assert str(raised.value.__cause__) == "Value is absent"
    assert isinstance(Result.failure().get_failure(), AttemptFailedError)


def test_a_success_has_no_failure() -> None:
    with pytest.raises(IllegalStateError, match="Not a failure"):
        Result.success(1).get_failure()
    with pytest.raises(IllegalStateError, match="Not a failure"):
        Result.success(1).same_failure()


def test_a_failure_whose_class_says_that_it_is_false_is_that_failure() -> None:
    class Empty(Exception):
        def __bool__(self) -> bool:
            return False

    failure = Empty()
    result = Result.failure(failure)
    assert (result.failed, result.get_failure()) == (True, failure)
    with pytest.raises(FailedResultError) as raised:
        result.get()
    assert raised.value.__cause__ is failure


def test_the_failure_of_absent_makes_absent() -> None:
    assert Result.failure(Result.absent().get_failure()) is Result.absent()
    assert Result.failure() is Result.failure()
    assert Result.failure(Result.failure().get_failure()) is Result.failure()


def test_absent_if_null_and_present() -> None:
    nothing: int | None = None
    assert Result.absent_if_null(nothing) is Result.absent()
    assert Result.absent_if_null(0) == Result.present(0) == Result.success(0)


def test_equality_is_that_of_values_and_failures() -> None:
    assert Result.success([1]) == Result.success([1])
    assert Result.success(1) != Result.success(2)
    assert Result.success(1) != 1
    assert Result.failure(ERROR) == Result.failure(ERROR)
    assert Result.failure(ERROR) != Result.failure(LookupError("why"))
    assert len({Result.success(1), Result.success(1), Result.absent(), Result.failure()}) == 3


CASES = {
    "succeeded": {"success"},
    "failed": {"failure", "generic", "absent"},
    "absent_failure": {"absent"},
    "non_absent_failure": {"failure", "generic"},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", CASES)
def test_the_twelve_side_effects(case: str, kind: str) -> None:
    result = KINDS[kind]
    applies = kind in CASES[case]
    what = 1 if kind == "success" else result.failure_or_null()
    seen: list[object] = []
    send_to: Callable[..., object] = getattr(result, f"if_{case}_send_to")
    bind: Callable[..., object] = getattr(result, f"if_{case}_bind")
    bind_from: Callable[..., object] = getattr(result, f"if_{case}_bind_from")
    assert send_to(seen.append) is result
    assert bind("with", lambda *both: seen.append(both)) is result
    supplier = (lambda: "from") if applies else never
    assert bind_from(supplier, lambda *both: seen.append(both)) is result
    assert seen == ([what, (what, "with"), (what, "from")] if applies else [])


def test_a_success_continues() -> None:
    one = Result.success(1)
    assert one.if_succeeded_map(lambda n: n + 1) == Result.success(2)
    assert one.if_succeeded_attempt_map(lambda n: Result.success(str(n))) == Result.success("1")
    assert one.if_succeeded_attempt_map(lambda _: Result.failure(ERROR)).get_failure() is ERROR
    assert one.if_succeeded_merge(2, lambda a, b: a + b) == Result.success(3)
    assert one.if_succeeded_merge_from(lambda: 2, lambda a, b: a + b) == Result.success(3)
    assert one.if_succeeded_attempt_merge(2, lambda a, b: Result.success(a - b)) == Result.success(
        -1
    )
    assert one.if_succeeded_attempt_merge_from(
        lambda: 2, lambda a, b: Result.success(a - b)
    ) == Result.success(-1)


@pytest.mark.parametrize("kind", ["failure", "generic", "absent"])
def test_a_failure_stays_what_it_is_and_calls_nothing(kind: str) -> None:
    result = KINDS[kind]
    assert result.same_failure() is result
    for made in (
        result.if_succeeded_map(never),
        result.if_succeeded_attempt_map(never),
        result.if_succeeded_merge(2, never),
        result.if_succeeded_attempt_merge(2, never),
        result.if_succeeded_merge_from(never, never),
        result.if_succeeded_attempt_merge_from(never, never),
    ):
        assert made is result


def test_falling_back() -> None:
    failed: Result[int] = Result.failure(ERROR)
    assert failed.or_else(5) == 5
    assert failed.or_get_from(lambda: 5) == 5
    assert failed.or_attempt_get_from(lambda: Result.success(5)) == Result.success(5)
    assert failed.recover(str) == "why"
    assert failed.attempt_recover(lambda error: Result.success(repr(error))).get()
    for call in (
        lambda: failed.or_else(None),
        lambda: failed.or_get_from(lambda: None),
        lambda: failed.or_attempt_get_from(lambda: NOTHING),
    ):
        with pytest.raises(NoneItemError):
            call()


def test_a_success_needs_no_fallback() -> None:
    one = Result.success(1)
    assert one.or_else(5) == 1
    assert one.or_get_from(never) == 1
    assert one.or_attempt_get_from(never) is one
    assert one.recover(never) == 1
    assert one.attempt_recover(never) is one


def test_objects_with_the_method_of_the_interface_do_as_well_as_functions() -> None:
    class Half:
        def apply(self, value: int, /) -> float:
            return value / 2

    class Two:
        def get(self) -> int:
            return 2

    class Sum:
        def merge(self, first: int, second: int, /) -> int:
            return first + second

    one = Result.success(1)
    assert one.if_succeeded_map(Half()) == Result.success(0.5)
    assert one.if_succeeded_merge_from(Two(), Sum()) == Result.success(3)
    with pytest.raises(TypeError, match="apply"):
        one.if_succeeded_map(NOTHING or 42)
