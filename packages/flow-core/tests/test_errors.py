"""One root for the errors of this library; fatal exceptions are none of its affairs."""

from __future__ import annotations

import asyncio
import sys

import pytest

from flow_core import errors
from flow_core.errors import FlowError, is_fatal, leave, tell_left, throw_if_fatal


def test_every_error_has_one_root() -> None:
    found = [value for value in vars(errors).values() if isinstance(value, type)]
    classes = [value for value in found if issubclass(value, BaseException)]
    assert len(classes) > 10
    assert [value for value in classes if not issubclass(value, FlowError)] == []
    assert [value for value in classes if not value.__doc__] == []


@pytest.mark.checklist("X10")
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError])
def test_fatal_exceptions_are_raised_again(kind: type[BaseException]) -> None:
    error = kind()
    assert is_fatal(error)
    with pytest.raises(kind) as raised:
        throw_if_fatal(error)
    assert raised.value is error


@pytest.mark.parametrize(
    "kind", [ValueError, StopIteration, asyncio.CancelledError, RecursionError]
)
def test_others_are_not(kind: type[BaseException]) -> None:
    assert not is_fatal(kind())
    throw_if_fatal(kind())


# -- the stack is full


def caught(depth: int) -> RecursionError:
    """A RecursionError that was caught `depth` frames further down, and looked at there."""
    if depth:
        return caught(depth - 1)
    error = RecursionError()
    is_fatal(error)
    return error


def test_a_recursion_error_is_fatal_where_the_stack_is_deep() -> None:
    assert not is_fatal(caught(0))
    deep = caught(sys.getrecursionlimit() // 2)
    assert is_fatal(deep), "still, though the stack is shallow again"
    assert "observe_on(executor)" in "".join(deep.__notes__)


def test_one_that_comes_up_in_handling_it_is_fatal_too() -> None:
    deep, next_one = caught(sys.getrecursionlimit() // 2), RecursionError()
    next_one.__context__ = deep
    assert is_fatal(next_one)
    assert next_one.__notes__ == deep.__notes__


class Owned:
    """A subscriber that may be a part of its owner."""

    def __init__(self, owner: object = None) -> None:
        self.owner = owner
        self.errors: list[BaseException] = []

    def on_error(self, error: BaseException, /) -> None:
        self.errors.append(error)


def test_a_subscriber_that_was_left_gets_the_error_once() -> None:
    error, subscriber = RecursionError(), Owned()
    leave(error, subscriber, object())
    tell_left(error)
    tell_left(error)
    assert subscriber.errors == [error]


@pytest.mark.parametrize("innermost_first", [True, False])
def test_of_operators_in_a_row_only_the_downstream_of_the_last_gets_the_error(
    innermost_first: bool,
) -> None:
    first, last = object(), object()
    between, end = Owned(last), Owned()
    error = RecursionError()
    row: list[tuple[Owned, object]] = [(end, last), (between, first)]
    for subscriber, owner in row if innermost_first else reversed(row):
        leave(error, subscriber, owner)
    tell_left(error)
    assert (between.errors, end.errors) == ([], [error])


class Refusing(Owned):
    """Leaves another subscriber, for the error that it gets."""

    def on_error(self, error: BaseException, /) -> None:
        super().on_error(error)
        assert isinstance(self.owner, Owned)
        leave(error, self.owner, self)
        raise error


def test_a_subscriber_that_finds_no_room_leaves_those_after_it() -> None:
    error, end = RecursionError(), Owned()
    leave(error, Refusing(end), object())
    tell_left(error)
    assert end.errors == [error]


@pytest.mark.checklist("X10")
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError])
def test_an_error_that_is_fatal_anywhere_is_the_cause_of_a_flow_error(
    kind: type[BaseException],
) -> None:
    error, subscriber = kind(), Owned()
    leave(error, subscriber, object())
    tell_left(error)
    (told,) = subscriber.errors
    assert isinstance(told, FlowError)
    assert told.__cause__ is error
    assert kind.__name__ in str(told)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError])
def test_no_subscriber_gets_an_error_that_is_heard_elsewhere(kind: type[BaseException]) -> None:
    error, subscriber = kind(), Owned()
    leave(error, subscriber, object())
    tell_left(error, heard=True)
    tell_left(error)
    assert subscriber.errors == []
