"""The base of subscribers that leave the end of their upstream to a drain."""

from __future__ import annotations

from typing import Generic, TypeVar

from typing_extensions import override

from flow_core import hooks
from flow_core.errors import is_fatal, none_given
from flow_core.protocols import CoreSubscriber
from flow_core.serial import SerialDrain

__all__ = ["EndsInDrain"]

T = TypeVar("T")


class EndsInDrain(SerialDrain, CoreSubscriber[T], Generic[T]):
    """A subscriber that keeps the end of its upstream until `drain` handles it in its turn."""

    __slots__ = ("_done", "_error")

    def __init__(self) -> None:
        super().__init__()
        self._done = False
        """True when the upstream has ended. `_error` is set first, and no item is queued
        afterwards."""
        self._error: BaseException | None = None

    @property
    def _is_deaf(self) -> bool:
        """Return whether on_error and on_complete are ignored now, though neither has come."""
        return False

    @override
    def on_error(self, error: BaseException, /) -> None:
        """Keep the error; it is reported after the items that wait."""
        if error is None:
            raise none_given("on_error")
        if self._done or self._is_deaf:
            if is_fatal(error):
                self.signal()  # its permit may have kept the end from being drained
            hooks.drop_error(error)
            return
        self._error = error
        self._done = True
        self.signal()

    @override
    def on_complete(self) -> None:
        self._done = True
        self.signal()

    @override
    def on_next_raised(self, error: BaseException, /) -> bool:
        if self._done or self._is_deaf:
            return False
        self.on_error(error)
        return True
