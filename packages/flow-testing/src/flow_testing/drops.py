"""Records signals that no subscriber has received, which a test must not overlook."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import final

from flow_core import hooks

__all__ = ["Drops", "recorded_drops"]


@final
class Drops:
    """The errors and items that went to the hooks for dropped errors and items."""

    __slots__ = ("errors", "items")

    def __init__(self) -> None:
        self.errors: list[BaseException] = []
        self.items: list[object] = []

    def take_errors(self) -> list[BaseException]:
        """Return the errors that were dropped so far; they then count as expected."""
        errors = self.errors.copy()
        self.errors.clear()
        return errors

    def take_items(self) -> list[object]:
        """Return the items that were dropped so far; they then count as expected."""
        items = self.items.copy()
        self.items.clear()
        return items

    def assert_no_errors(self) -> None:
        """Assert that no error was dropped, except those that were taken."""
        if self.errors:
            raise AssertionError(
                f"errors that no subscriber could receive: {self.errors!r}"
            ) from self.errors[0]


@contextmanager
def recorded_drops() -> Generator[Drops, None, None]:
    """Record dropped errors and items within a ``with`` block, instead of logging them.

    >>> import flow_core as flow
    >>> with recorded_drops() as drops:
    ...     handle = flow.error(ValueError("lost")).subscribe(print)
    >>> [type(error).__name__ for error in drops.take_errors()]
    ['OnErrorNotImplementedError']
    """
    drops = Drops()
    # One key for all: within another block of this kind, this one alone records.
    with (
        hooks.dropped_errors.scoped("flow_testing", drops.errors.append),
        hooks.dropped_items.scoped("flow_testing", drops.items.append),
    ):
        yield drops
