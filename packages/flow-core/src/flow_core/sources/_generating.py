"""Sources that call a function for each item."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import repeat
from typing import ClassVar, Generic, TypeVar, cast, final

from typing_extensions import override

from flow_core import hooks
from flow_core.errors import NoneItemError, ProtocolViolationError, throw_if_fatal
from flow_core.flow import Flow
from flow_core.protocols import IterableSource
from flow_core.stages._sink import SingleSink
from flow_core.stages._template import UNSET, describe

__all__ = ["generate", "repeat_callable", "repeat_value"]

T = TypeVar("T")
S = TypeVar("S")


@final
class GenerateSource(IterableSource[T], Generic[S, T]):
    """The items that a step function sends, one call after the other."""

    __slots__ = ("_on_end", "_state", "_step")

    none_free: ClassVar[bool] = True
    calls_user_code = True

    def __init__(
        self,
        state: Callable[[], S],
        step: Callable[[S, SingleSink[T]], S],
        on_end: Callable[[S], object] | None,
    ) -> None:
        self._state = state
        self._step = step
        self._on_end = on_end

    @override
    def iterate(self) -> Iterator[T]:
        step, state = self._step, self._state()
        try:
            # Here: CPython 3.11 takes the jump to a loop that begins a `try` to be outside of it.
            sink = SingleSink[T]("generate")
            while True:
                state = step(state, sink)
                item = sink.taken()
                if item is not UNSET:
                    yield cast("T", item)  # it is not UNSET
                    del item
                elif not sink.done:
                    raise ProtocolViolationError(
                        f"{self!r}: a call of the step gave neither an item nor an end; call "
                        "sink.next(item), sink.complete() or sink.error(error) in each"
                    )
                if not sink.done:
                    continue
                sink.rethrow()
                return
        finally:
            self._ended(state)

    def _ended(self, state: S) -> None:
        if self._on_end is not None:
            try:
                self._on_end(state)
            except Exception as error:
                throw_if_fatal(error)
                hooks.drop_error(error)

    def __repr__(self) -> str:
        return f"generate({describe(self._state)}, {describe(self._step)})"


@final
class RepeatedSource(IterableSource[T]):
    """One constant item, again and again."""

    __slots__ = ("_count", "_item")

    none_free: ClassVar[bool] = True

    def __init__(self, item: T, count: int | None) -> None:
        self._item = item
        self._count = count

    @override
    def iterate(self) -> Iterator[T]:
        return repeat(self._item) if self._count is None else repeat(self._item, self._count)

    def __repr__(self) -> str:
        return f"repeat_value({describe(self._item)}{_times(self._count)})"


@final
class RepeatedCallSource(IterableSource[T]):
    """The result of a function, again and again."""

    __slots__ = ("_count", "_function")

    calls_user_code = True

    def __init__(self, function: Callable[[], T], count: int | None) -> None:
        self._function = function
        self._count = count

    @override
    def iterate(self) -> Iterator[T]:
        function, count = self._function, self._count
        # A generator, not an iterator of builtins: a StopIteration of the function must not end it.
        for _ in repeat(None) if count is None else repeat(None, count):
            yield function()

    def __repr__(self) -> str:
        return f"repeat_callable({describe(self._function)}{_times(self._count)})"


def generate(
    state: Callable[[], S],
    step: Callable[[S, SingleSink[T]], S],
    *,
    on_end: Callable[[S], object] | None = None,
) -> Flow[T]:
    """Items that `step` sends one at a time, each when it is requested.

    >>> def fibonacci(pair: tuple[int, int], sink: SingleSink[int]) -> tuple[int, int]:
    ...     sink.next(pair[0])
    ...     return pair[1], pair[0] + pair[1]
    >>> list(generate(lambda: (0, 1), fibonacci).take(8))
    [0, 1, 1, 2, 3, 5, 8, 13]

    Demand: exact; `step` is called once for each item that can be delivered. Thread: the
    requester's. Fusion: SYNC, but not across threads, because the functions would move to the other
    thread.

    Args:
        state: returns the first state; called once per subscriber, when the first item is
            requested.
        step: ``(state, sink) -> state``. Each call uses at least one of ``sink.next(item)``, at
            most once, ``sink.complete()`` and ``sink.error(error)``; an item that is sent before
            one of the latter two is delivered. If `step` raises an error, the flow fails with it.
        on_end: called once with the last state, however the flow ends: completed, failed or
            cancelled; not called if there was no first state. An error raised by `on_end` goes to
            the dropped-errors hook.

    Returns:
        A flow. It fails with ProtocolViolationError if a call of `step` sends too much, or nothing.
    """
    return Flow(GenerateSource(state, step, on_end))


def repeat_value(item: T, count: int | None = None) -> Flow[T]:
    """The same item again and again.

    >>> list(repeat_value("a", 3))
    ['a', 'a', 'a']

    Demand: exact. Thread: the requester's. Fusion: SYNC, also across threads.

    Args:
        item: the item; not None.
        count: how many times, at least 0; None for ever.

    Raises:
        NoneItemError: if the item is None.
        TypeError: if `count` is not an int.
        ValueError: if `count` is negative.
    """
    if item is None:
        raise NoneItemError("repeat_value(None): None is not an item")
    return Flow(RepeatedSource(item, _checked("repeat_value", count)))


def repeat_callable(function: Callable[[], T], count: int | None = None) -> Flow[T]:
    """The result of `function`, called again for each item.

    >>> from itertools import count
    >>> list(repeat_callable(count(1).__next__, 3))
    [1, 2, 3]

    Demand: exact; the function is called when its item can be delivered. Thread: the requester's.
    Fusion: SYNC, but not across threads, because the function would move to the other thread.

    Args:
        function: called for each item; must not return None. If it raises an error, the flow fails
            with it. A StopIteration is an error like any other: it does not end the flow (PEP 479).
        count: how many times, at least 0; None for ever.

    Raises:
        TypeError: if `count` is not an int.
        ValueError: if `count` is negative.
    """
    return Flow(RepeatedCallSource(function, _checked("repeat_callable", count)))


def _checked(source: str, count: int | None) -> int | None:
    if count is None:
        return None
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"{source}(count=) takes an int or None, not {count!r}")
    if count < 0:
        raise ValueError(f"{source}(count=) takes 0 or more items, not {count}")
    return count


def _times(count: int | None) -> str:
    return "" if count is None else f", {count}"
