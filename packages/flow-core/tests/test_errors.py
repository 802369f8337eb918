"""One root for the errors of this library; fatal exceptions are none of its affairs."""

from __future__ import annotations

import asyncio

import pytest

from flow_core import errors
from flow_core.errors import FlowError, is_fatal, throw_if_fatal


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
