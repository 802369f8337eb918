"""The sink with which a user's function says what comes next: at most one item per call."""

from __future__ import annotations

from typing import Generic, TypeVar, final

from flow_core.errors import NoneItemError, ProtocolViolationError
from flow_core.stages._template import UNSET

__all__ = ["SingleSink"]

T = TypeVar("T")


@final
class SingleSink(Generic[T]):
    """The signals that a user's function sends in one call: an item, the end, or both.

    `Flow.handle` and `generate` pass it to the function.

    Args:
        owner: the operator that passes the sink to the function, for messages.
    """

    __slots__ = ("_error", "_item", "_owner", "done")

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._item: T | object = UNSET
        self._error: BaseException | None = None
        self.done = False
        """True if the function has ended the flow."""

    def next(self, item: T, /) -> None:
        """Send `item`; a function may send one item each time it is called.

        Raises:
            NoneItemError: if `item` is None.
            ProtocolViolationError: if the function has already sent an item, or ended the flow,
                since it was called.
        """
        if item is None:
            raise NoneItemError(f"{self._owner}(): sink.next(None), but None is not an item")
        self._check_open("next()")
        if self._item is not UNSET:
            raise ProtocolViolationError(
                f"{self._owner}(): a second item in one call; generate() keeps the rest in the "
                "state, flat_map_iterable() makes several items of one"
            )
        self._item = item

    def complete(self) -> None:
        """Complete the flow, after the item that the function has sent, if there is one.

        Raises:
            ProtocolViolationError: if the function has already ended the flow.
        """
        self._check_open("complete()")
        self.done = True

    def error(self, error: BaseException, /) -> None:
        """Fail the flow, after the item that the function has sent, if there is one.

        Raises:
            ProtocolViolationError: if the function has already ended the flow; `error` is then the
                ``__cause__`` of this error.
            TypeError: if `error` is not an exception.
        """
        if not isinstance(error, BaseException):
            raise TypeError(f"{self._owner}(): sink.error() takes an exception, not {error!r}")
        self._check_open("error()", error)
        self._error = error
        self.done = True

    def _check_open(self, call: str, cause: BaseException | None = None) -> None:
        if self.done:
            raise ProtocolViolationError(
                f"{self._owner}(): sink.{call} after the flow was ended in the same call; return "
                "then"
            ) from cause

    def taken(self) -> T | object:
        """Return the item that the function has sent, and forget it; `UNSET` if there is none."""
        item, self._item = self._item, UNSET
        return item

    def rethrow(self) -> None:
        """Raise the error that the function has sent, if there is one."""
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # otherwise it would be part of a cycle, with the frame in its traceback
