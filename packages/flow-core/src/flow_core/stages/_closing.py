"""The end of the loops of a flow: their gates, and the iterators that they close."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from inspect import CO_GENERATOR
from itertools import repeat
from operator import length_hint
from types import GeneratorType
from typing import Any, Final, final

from flow_core import hooks
from flow_core.errors import throw_if_fatal

__all__ = [
    "ITERATED",
    "PLAIN",
    "Failing",
    "FeedGate",
    "Gate",
    "close_all",
    "close_iterator",
    "close_loop",
    "close_part",
    "closer_of",
    "exhausted",
    "overlapped",
]


@final
class Failing(Iterator[Any]):  # Any: it has no item
    """An iterator that raises the error of a source that failed to start. Errors need no demand.

    Args:
        error: raised instead of the first item.
    """

    __slots__ = ("_error",)

    def __init__(self, error: BaseException) -> None:
        self._error: BaseException | None = error

    def __next__(self) -> Any:
        error, self._error = self._error, None
        if error is None:
            raise StopIteration
        try:
            raise error
        finally:
            del error  # otherwise it would be part of a cycle, with the frame in its traceback

    def __length_hint__(self) -> int:
        return 0


PLAIN: Final = frozenset(
    type(iterator)
    for iterator in (
        *(iter([]), iter(()), iter(range(0)), iter(range(2**70)), iter(""), iter(b"")),
        *(iter(deque[object]()), iter(set[object]()), iter(dict[object, object]())),
        *(repeat(0), Failing(StopIteration())),
    )
)


ITERATED: Final = frozenset[type](
    {str, bytes, list, tuple, range, dict, set, frozenset, deque},
)
"""Types that are iterables beyond doubt, and need no closing."""


class Gate:
    """Flags that a running loop reads and others may set; it holds no reference to either."""

    __slots__ = ("cancelled", "closers")

    def __init__(self) -> None:
        self.cancelled = False
        self.closers: list[Callable[[], object]] | None = None
        """The functions of the stages to call at the end, downstream first."""

    def opened(self) -> list[Callable[[], object]]:
        """Return `closers`, so that a loop that starts adds to them."""
        if self.closers is None:
            self.closers = []
        return self.closers

    def close(self) -> None:
        """Call `closers`, each once, whichever threads come; their errors are dropped."""
        if self.closers is not None:
            close_all(self.closers)


@final
class FeedGate(Gate):
    """A `Gate` for a loop that is fed, item by item."""

    __slots__ = ("done", "ending")

    def __init__(self) -> None:
        super().__init__()
        self.done = False
        """True when the upstream has completed, and no item waits to be fed."""
        self.ending = False
        """True when the loop takes no more items, and only emits the stages' rest."""


def exhausted(iterator: object) -> bool:
    """Return whether it is certain, without asking for an item, that `iterator` has no more."""
    return type(iterator) in PLAIN and length_hint(iterator, 1) == 0


def close_iterator(iterator: object) -> None:
    """Close a generator, whose ``finally`` blocks then run; other iterators stay open.

    Args:
        iterator: any iterator.
    """
    close = closer_of(iterator)
    if close is not None:
        close()


def close_loop(loop: GeneratorType[Any, Any, None], gate: Gate) -> None:  # Any: of any form
    """Close a loop of a cancelled flow that does not run right now.

    A loop that never ran is started first, so that its stages get the end; the gate keeps it from
    taking an item.
    """
    if gate.cancelled and loop.gi_frame is not None and not loop.gi_suspended:
        next(loop, None)
    loop.close()


def overlapped(error: BaseException) -> bool:
    """Return whether `error` says that a loop could not be entered, as another thread runs it.

    An error from within a loop has passed a frame of it. The state of the loop right now proves
    nothing: it may have paused since.
    """
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_flags & CO_GENERATOR:
            return False
        trace = trace.tb_next
    return isinstance(error, ValueError)


def close_part(loop: GeneratorType[Any, Any, None], gate: Gate) -> None:  # Any: see close_loop
    """Close the loop that feeds another one of the same program; it does not run right now.

    A loop that never ran is started first, so that its stages get the end.
    """
    if loop.gi_frame is not None and not loop.gi_suspended and not loop.gi_running:
        # A cancel that comes just now is too late: the loop that closes this one has ended.
        cancelled, gate.cancelled = gate.cancelled, True
        try:
            next(loop, None)
        finally:
            gate.cancelled = cancelled
    loop.close()


def close_all(closers: list[Callable[[], object]]) -> None:
    """Call and remove each of `closers`, in order; their errors go to the hook."""
    while closers:
        try:
            close = closers.pop(0)
        except IndexError:  # another thread closes, too
            return
        try:
            close()
        except BaseException as error:
            throw_if_fatal(error)
            hooks.drop_error(error)


def closer_of(iterator: object) -> Callable[[], object] | None:
    if type(iterator) in PLAIN:
        return None
    if type(iterator) is GeneratorType or isinstance(iterator, Generator):
        return iterator.close
    return None
