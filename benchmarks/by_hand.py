"""The least code that keeps the rules, written out: what the interpreter alone takes.

A function that receives an item must not be called again before it has finished with that item: a
signal handler or a finaliser may try. Code that pushes items checks, after each of them, whether
the subscription is cancelled. A flow knows where it was assembled.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any, Final, Generic, TypeVar, final

T = TypeVar("T")

BATCH: Final = 96
"""Items that a source sends at a time if 128 are requested and refilled at three quarters."""


@final
class Gate:
    """The flag that says whether the subscription is cancelled."""

    __slots__ = ("cancelled",)

    def __init__(self) -> None:
        self.cancelled = False


def push(items: Iterable[T], receive: Callable[[T], object], gate: Gate) -> None:
    """Pass each item to a function until the gate is cancelled."""
    for item in items:
        receive(item)
        if gate.cancelled:
            return


def receiver(lines: Iterable[str], names: dict[str, Any]) -> Callable[[Any], None]:
    """Return a function for each item that cannot run again while it is busy.

    def receive(x):
        nonlocal busy
        if busy:
            return beside(x)
        busy = True
        try:
            x = increment(x)
            ...
            on_next(x)
        finally:
            busy = False

    Args:
        lines: the statements that it runs for an item ``x``.
        names: the names that they use.
    """
    text = [
        *("def made():", " busy = False", " def receive(x):", "  nonlocal busy", "  if busy:"),
        *("   return beside(x)", "  busy = True", "  try:"),
        *(f"   {line}" for line in lines),
        *("  finally:", "   busy = False", " return receive"),
    ]
    exec("\n".join(text), names)
    receive: Callable[[Any], None] = names["made"]()
    return receive


def zipped(items: int, on_next: Callable[[tuple[int, int]], object]) -> None:
    """Pair what two ranges push, batch by batch: the first range's items wait for the second's."""
    waiting: deque[int] = deque()
    gate = Gate()
    names = {"put": waiting.append, "take": waiting.popleft, "on_next": on_next}
    first = receiver(["put(x)"], dict(names))
    second = receiver(["on_next((take(), x))"], dict(names))
    for start in range(0, items, BATCH):
        batch = range(start, min(start + BATCH, items))
        push(batch, first, gate)
        push(batch, second, gate)


@final
class Described:
    """A flow that knows which operator was applied to which flow, and where."""

    __slots__ = ("arguments", "before", "code", "place")

    def __init__(
        self, before: Described | None, arguments: tuple[object, ...], code: CodeType, place: int
    ) -> None:
        self.before = before
        self.arguments = arguments
        self.code = code
        self.place = place


def described(before: Described | None, *arguments: object) -> Described:
    """Add one more operator to a flow; nothing can run it."""
    caller = sys._getframe(1)
    return Described(before, arguments, caller.f_code, caller.f_lasti)


class Just(Generic[T]):
    """A flow of one item, its subscription, and the rules between them."""

    __slots__ = ("item",)

    def __init__(self, item: T) -> None:
        self.item = item

    def subscribe(self, on_next: Callable[[T], object]) -> Handle[T]:
        """Send the item to a function through a subscription."""
        handle = Handle(on_next)
        handle.on_subscribe(OneItem(self.item, handle))
        return handle


@final
class OneItem(Generic[T]):
    """Sends one item at the first request."""

    __slots__ = ("downstream", "item")

    def __init__(self, item: T, downstream: Handle[T]) -> None:
        self.item = item
        self.downstream: Handle[T] | None = downstream

    def request(self, n: int) -> None:
        """Send the item, and complete."""
        downstream = self.downstream
        if n <= 0 or downstream is None:
            return
        self.downstream = None
        downstream.on_next(self.item)
        downstream.on_complete()

    def cancel(self) -> None:
        """Send nothing from now on."""
        self.downstream = None


@final
class Handle(Generic[T]):
    """The result of `Just.subscribe`: it requests everything, and knows how the flow ended."""

    __slots__ = ("call", "ended", "upstream")

    def __init__(self, call: Callable[[T], object]) -> None:
        self.call = call
        self.ended = False
        self.upstream: OneItem[T] | None = None

    def on_subscribe(self, upstream: OneItem[T]) -> None:
        """Request everything."""
        self.upstream = upstream
        upstream.request(2**63 - 1)

    def on_next(self, item: T) -> None:
        """Pass the item to the function; an error that it raises ends the flow."""
        try:
            self.call(item)
        except BaseException:
            self.ended = True
            if self.upstream is not None:
                self.upstream.cancel()
            raise

    def on_complete(self) -> None:
        """Record that the flow has ended."""
        self.ended = True
        self.upstream = None
