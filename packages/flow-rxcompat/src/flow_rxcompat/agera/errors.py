"""The errors of Agera."""

from __future__ import annotations

from typing import TypeVar

from flow_core.errors import FlowError, NoneItemError

__all__ = [
    "AbsentValueError",
    "AttemptFailedError",
    "FailedResultError",
    "IllegalStateError",
    "check_state",
    "not_none",
]

T = TypeVar("T")


class IllegalStateError(FlowError, RuntimeError):
    """A call came in a state, or on a thread, where it is not allowed."""


class FailedResultError(IllegalStateError):
    """`Result.get` was called for a failed result; the cause is its failure."""


class AttemptFailedError(FlowError):
    """The failure of a result for which no failure was given."""


class AbsentValueError(FlowError, LookupError):
    """The failure of a result that stands for a missing value."""


def check_state(holds: bool, message: str) -> None:
    """Raise IllegalStateError with `message`, unless `holds`."""
    if not holds:
        raise IllegalStateError(message)


def not_none(value: T | None, what: str) -> T:
    """Return `value`, if it is not None.

    Args:
        value: an argument that must not be None in Agera.
        what: the call, for the message.

    Raises:
        NoneItemError: if `value` is None.
    """
    if value is None:
        raise NoneItemError(f"{what}: None is not a value; Result.absent() says that it is missing")
    return value
