"""Hooks: functions for signals without a receiver, and for each assembly and subscription.

A hook is a set of functions under keys. When the set changes, its functions are folded into one
callable of the module (or None), so that a hook that is not used costs a flow only one check for
None.
"""

from __future__ import annotations

import logging
import os
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, final

from flow_core.errors import OnErrorNotImplementedError, throw_if_fatal

if TYPE_CHECKING:
    from flow_core.flow import Flow
    from flow_core.protocols import CoreSubscriber, Subscription

__all__ = [
    "Chain",
    "Hook",
    "cancel",
    "debug",
    "debugging",
    "drop_error",
    "drop_item",
    "drop_waiting",
    "dropped_errors",
    "dropped_items",
    "on_assembly",
    "on_subscribe",
]

T = TypeVar("T")
R = TypeVar("R")

_log: Final = logging.getLogger("flow")


@final
class _Scopes(Generic[T]):
    """Blocks that each set a value, and restore the earlier value, in whatever order they end.

    Blocks of several threads need not be nested. If a block ends before one that began later, the
    later block restores the value that the earlier one would have restored.
    """

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: list[list[T]] = []

    def enter(self, before: T) -> list[T]:
        """Begin a block that has replaced the value `before`."""
        scope = [before]
        self._open.append(scope)
        return scope

    def leave(self, scope: list[T]) -> bool:
        """End a block. Return True if ``scope[0]`` has to be restored now."""
        place = next(index for index, each in enumerate(self._open) if each is scope)
        del self._open[place]
        if place == len(self._open):
            return True
        self._open[place][0] = scope[0]
        return False

    def __bool__(self) -> bool:
        return bool(self._open)


class _Keyed(Generic[T, R]):
    """Functions under keys, folded into one when they change."""

    __slots__ = ("_functions", "_lock", "_scopes", "call", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.call: Callable[[T], R] | None = None
        """All functions folded into one, or None if there are no functions."""
        self._functions: dict[str, Callable[[T], R]] = {}
        self._scopes: dict[str, _Scopes[Callable[[T], R] | None]] = {}
        self._lock = Lock()

    def add(self, key: str, function: Callable[[T], R]) -> None:
        """Call `function` too, from now on.

        There is one function per key: a new one replaces the one before.
        """
        with self._lock:
            self._functions[key] = function
            self._refold()

    def remove(self, key: str) -> None:
        """Remove the function under `key`, if there is one."""
        with self._lock:
            self._functions.pop(key, None)
            self._refold()

    @contextmanager
    def scoped(self, key: str, function: Callable[[T], R]) -> Generator[None]:
        """Add `function` under `key` for a ``with`` block, then restore the earlier one.

        It is called in all threads, not only in that of the block. Blocks of several threads under
        one key may end in any order: the last one that is left restores what was there before the
        first.
        """
        with self._lock:
            scopes = self._scopes.setdefault(key, _Scopes())
            scope = scopes.enter(self._functions.get(key))
            self._functions[key] = function
            self._refold()
        try:
            yield
        finally:
            with self._lock:
                if scopes.leave(scope):
                    before = scope[0]
                    if before is None:
                        self._functions.pop(key, None)
                    else:
                        self._functions[key] = before
                    self._refold()
                if not scopes:
                    self._scopes.pop(key, None)

    def _refold(self) -> None:
        functions = tuple(self._functions.values())
        self.call = self._folded(functions) if functions else None

    @abstractmethod
    def _folded(self, functions: tuple[Callable[[T], R], ...]) -> Callable[[T], R]:
        """Return one function that stands for all `functions`."""


@final
class Hook(_Keyed[T, object]):
    """Functions that are all called with each value, in the order in which their keys were added.

    An error raised by one of the functions is logged, with its traceback, and the next function is
    called: the code that drops something has to continue. A fatal error propagates.

    Args:
        name: the name of the hook in messages.

    >>> seen = []
    >>> with dropped_items.scoped("doc", seen.append):
    ...     drop_item(42)
    >>> seen
    [42]
    """

    __slots__ = ()

    def _folded(self, functions: tuple[Callable[[T], object], ...]) -> Callable[[T], object]:
        name = self.name

        def call_all(value: T) -> None:
            for function in functions:
                try:
                    function(value)
                except BaseException as raised:
                    throw_if_fatal(raised)
                    _log.error(
                        "a function of the hook %s raised: %s", name, raised, exc_info=raised
                    )

        return call_all


@final
class Chain(_Keyed[T, T]):
    """Functions that each get the result of the function before.

    Args:
        name: the name of the chain in messages.

    >>> import flow_core as flow
    >>> from flow_core.structure import stages_of
    >>> def logged(made):
    ...     print(stages_of(made)[-1].name)
    ...     return made
    >>> with on_assembly.scoped("doc", logged):
    ...     evens = flow.range(9).filter(lambda n: n % 2 == 0).take(2)
    filter
    take
    """

    __slots__ = ()

    def _folded(self, functions: tuple[Callable[[T], T], ...]) -> Callable[[T], T]:
        if len(functions) == 1:
            return functions[0]

        def call_each(value: T) -> T:
            for function in functions:
                value = function(value)
            return value

        return call_each


# Any, here and below: hooks serve flows of any type.
on_assembly: Final[Chain[Flow[Any]]] = Chain("on_assembly")
"""Its functions get each flow that a stage or an operator makes, and return the flow that the user
gets.

Flows that such a function assembles itself do not pass this chain again.
"""

on_subscribe: Final[Chain[CoreSubscriber[Any]]] = Chain("on_subscribe")
"""Its functions get each subscriber of a flow, and return the one that is subscribed in its
place."""

debugging: bool = os.environ.get("FLOW_DEBUG", "") not in ("", "0")
"""True if errors get a note of how the flow was assembled; set by ``FLOW_DEBUG=1`` and by
`debug`."""

_debug_scopes: Final[_Scopes[bool]] = _Scopes()
_debug_lock: Final = Lock()


@contextmanager
def debug(*, on: bool = True) -> Generator[None]:
    """Within a ``with`` block, note on each error how the flow was assembled, line by line.

    >>> import flow_core as flow
    >>> with debug():
    ...     try:
    ...         list(flow.just(0).map(lambda n: 1 // n))
    ...     except ZeroDivisionError as error:
    ...         print(error.__notes__[-1].splitlines()[0])
    the flow was assembled from:

    It applies to flows that are subscribed to or iterated over within the block; the place of a
    source is known only if the source was made within the block, too.

    Args:
        on: False switches this debug mode off for the block.
    """
    global debugging
    with _debug_lock:
        scope = _debug_scopes.enter(debugging)
        debugging = on
    try:
        yield
    finally:
        with _debug_lock:
            if _debug_scopes.leave(scope):
                debugging = scope[0]


dropped_errors: Final[Hook[BaseException]] = Hook("dropped_errors")
"""Errors that no subscriber can get: they came after a terminal or cancel, or a subscriber raised
them."""

dropped_items: Final[Hook[object]] = Hook("dropped_items")
"""Items that no subscriber will get: they came after a terminal, or were discarded from a queue."""


def drop_error(error: BaseException) -> None:
    """Pass `error` to the `dropped_errors` hook.

    If the hook has no function, log the error: no error is lost.

    Raises:
        BaseException: a fatal error raised by a function of the hook; `drop_item` raises such an
            error, too.
    """
    call = dropped_errors.call
    if call is not None:
        call(error)
    elif isinstance(error, OnErrorNotImplementedError):
        _log.error("%s", error, exc_info=error.__cause__)  # its text says what was missing
    else:
        _log.error("an error that no subscriber could receive: %s", error, exc_info=error)


def drop_item(item: object) -> None:
    """Pass `item` to the `dropped_items` hook.

    If the hook has no function, log the item at level DEBUG.
    """
    call = dropped_items.call
    if call is not None:
        call(item)
    else:
        _log.debug("an item that no subscriber will receive: %r", item)


def cancel(subscription: Subscription) -> None:
    """Cancel `subscription`.

    If that raises, the error goes to `dropped_errors`, unless it is fatal.

    The error is not raised, because the caller has other upstreams to cancel, and a downstream to
    signal to.
    """
    try:
        subscription.cancel()
    except BaseException as error:
        throw_if_fatal(error)
        drop_error(error)


def drop_waiting(queue: deque[Any]) -> None:
    """Call `drop_item` for all items in `queue`. Other threads may empty it at the same time."""
    while queue:
        try:
            item = queue.popleft()
        except IndexError:  # another thread was faster
            return
        drop_item(item)
