"""What a test must not overlook: signals that no subscriber could get."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import final

from flow_core import hooks

__all__ = ["Drops", "recorded_drops"]


@final
class Drops:
    """The errors and items that went to the hooks."""

    __slots__ = ("errors", "items")

    def __init__(self) -> None:
        self.errors: list[BaseException] = []
        self.items: list[object] = []

    def take_errors(self) -> list[BaseException]:
        """The dropped errors so far, which then count as expected."""
        errors, self.errors = self.errors, []
        return errors

    def take_items(self) -> list[object]:
        """The dropped items so far, which then count as expected."""
        items, self.items = self.items, []
        return items

    def assert_no_errors(self) -> None:
        """No error was dropped, other than those that were taken."""
        if self.errors:
            raise AssertionError(
                f"errors that no subscriber could receive: {self.errors!r}"
            ) from self.errors[0]


@contextmanager
def recorded_drops() -> Iterator[Drops]:
    """Record dropped errors and items for the length of a ``with`` block, instead of logging them.

    >>> import flow_core as flow
    >>> with recorded_drops() as drops:
    ...     handle = flow.error(ValueError("lost")).subscribe(print)
    >>> drops.take_errors()
    [OnErrorNotImplementedError("the flow failed with ValueError('lost') and subscribe() was given no on_error")]
    """
    drops = Drops()
    key = f"flow_core.testing {id(drops)}"
    with (
        hooks.dropped_errors.scoped(key, lambda error: drops.errors.append(error)),
        hooks.dropped_items.scoped(key, lambda item: drops.items.append(item)),
    ):
        yield drops
