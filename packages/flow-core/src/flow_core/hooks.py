"""What happens to signals that have no receiver any more, and on assembly.

A hook is a set of functions under keys. It is folded into one module-level callable (or None) when
it changes, so that a flow pays one None check for a hook that nobody uses.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Lock
from typing import Final, Generic, TypeVar, final

__all__ = ["Hook", "drop_error", "drop_item", "dropped_errors", "dropped_items"]

T = TypeVar("T")

_log: Final = logging.getLogger("flow")


@final
class Hook(Generic[T]):
    """Functions that are called, in the order of their keys' insertion, with each dropped value.

    >>> seen = []
    >>> with dropped_items.scoped("doc", seen.append):
    ...     drop_item(42)
    >>> seen
    [42]
    """

    __slots__ = ("_functions", "_lock", "call", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.call: Callable[[T], object] | None = None
        """All functions folded into one, or None when there are none."""
        self._functions: dict[str, Callable[[T], object]] = {}
        self._lock = Lock()

    def add(self, key: str, function: Callable[[T], object]) -> None:
        """Call `function` too, from now on; one function a key, the last one wins."""
        with self._lock:
            self._functions[key] = function
            self._fold()

    def remove(self, key: str) -> None:
        """Forget the function under `key`, if there is one."""
        with self._lock:
            self._functions.pop(key, None)
            self._fold()

    @contextmanager
    def scoped(self, key: str, function: Callable[[T], object]) -> Generator[None]:
        """Add `function` under `key` for the length of a ``with`` block, then restore."""
        with self._lock:
            before = self._functions.get(key)
            self._functions[key] = function
            self._fold()
        try:
            yield
        finally:
            with self._lock:
                if before is None:
                    self._functions.pop(key, None)
                else:
                    self._functions[key] = before
                self._fold()

    def _fold(self) -> None:
        functions = tuple(self._functions.values())
        if len(functions) < 2:
            self.call = functions[0] if functions else None
            return

        def call_all(value: T) -> None:
            for function in functions:
                function(value)

        self.call = call_all


dropped_errors: Final[Hook[BaseException]] = Hook("dropped_errors")
"""Errors that no subscriber can get: after a terminal or cancel, or raised by a subscriber."""

dropped_items: Final[Hook[object]] = Hook("dropped_items")
"""Items that no subscriber will get: after a terminal, or discarded from a queue."""


def drop_error(error: BaseException) -> None:
    """Hand `error` to the `dropped_errors` hook; without one it is logged, never lost."""
    call = dropped_errors.call
    if call is not None:
        call(error)
    else:
        _log.error("an error that no subscriber could receive: %s", error, exc_info=error)


def drop_item(item: object) -> None:
    """Hand `item` to the `dropped_items` hook; without one it is only logged for debugging."""
    call = dropped_items.call
    if call is not None:
        call(item)
    else:
        _log.debug("an item that no subscriber will receive: %r", item)
