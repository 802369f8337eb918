"""The end of the loops of a flow: gates that stop them, and iterators that they close."""

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
    """An iterator that raises the error of a source that failed to start, without demand.

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
"""Types that are certainly iterables, and need no closing."""


class Gate:
    """Flags that a running loop reads and others may set. It refers to neither."""

    __slots__ = ("cancelled", "closers")

    def __init__(self) -> None:
        self.cancelled = False
        self.closers: list[Callable[[], object]] | None = None
        """The functions of the stages that are called at the end, downstream first."""

    def opened(self) -> list[Callable[[], object]]:
        """Return the list `closers`, to which a loop that starts adds its functions."""
        if self.closers is None:
            self.closers = []
        return self.closers

    def close(self) -> None:
        """Call `closers`, each once, whichever threads call this; drop their errors."""
        if self.closers is not None:
            close_all(self.closers)


@final
class FeedGate(Gate):
    """A `Gate` for a loop that gets its items one by one, by ``send``."""

    __slots__ = ("done", "ending")

    def __init__(self) -> None:
        super().__init__()
        self.done = False
        """True when the upstream has completed, and no item waits to be sent to the loop."""
        self.ending = False
        """True when the loop takes no more items, and only emits what the stages still hold."""


def exhausted(iterator: object) -> bool:
    """Return whether `iterator` certainly has no more items, without asking it for one."""
    return type(iterator) in PLAIN and length_hint(iterator, 1) == 0


def close_iterator(iterator: object) -> None:
    """Close a generator, so that its ``finally`` blocks run; other iterators stay open.

    Args:
        iterator: any iterator.
    """
    close = closer_of(iterator)
    if close is not None:
        close()


def close_loop(loop: GeneratorType[Any, Any, None], gate: Gate) -> None:  # Any: of any form
    """Close the loop of a cancelled flow. The loop must not be running.

    A loop that never ran is started first, so that its stages learn of the end; the gate keeps it
    from taking an item.
    """
    if gate.cancelled and loop.gi_frame is not None and not loop.gi_suspended:
        next(loop, None)
    loop.close()


def overlapped(error: BaseException) -> bool:
    """Return whether `error` says that a loop could not be entered, as another thread runs it.

    If the error came from within the loop, it has passed a frame of the loop. The present state of
    the loop proves nothing: the loop may have paused since.
    """
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_flags & CO_GENERATOR:
            return False
        trace = trace.tb_next
    return isinstance(error, ValueError)


def close_part(loop: GeneratorType[Any, Any, None], gate: Gate) -> None:  # Any: see close_loop
    """Close a loop that feeds another loop of the same program. It must not be running.

    A loop that never ran is started first, so that its stages learn of the end.
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
    """Call and remove each of `closers`, in order; their errors go to the dropped-errors hook."""
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
