"""Checks whether the results of several threads could come from calls one after the other."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, final

__all__ = ["Call", "History", "Model", "assert_linearizable"]

S = TypeVar("S", bound=Hashable)
R = TypeVar("R")


@final
@dataclass(frozen=True, slots=True)
class Call:
    """An operation, as its caller saw it.

    Args:
        name: the name of the operation.
        arguments: the arguments of the call.
        result: the result, or the exception that was raised.
        began: when the operation was called, as a position in the history.
        ended: when it returned, as a position in the history; None if it has not returned: it may
            then have taken effect or not.
    """

    name: str
    arguments: tuple[object, ...]
    result: object
    began: int
    ended: int | None

    def __str__(self) -> str:
        span = f"[{self.began}, {'...' if self.ended is None else self.ended}]"
        return f"{self.name}({', '.join(map(repr, self.arguments))}) -> {self.result!r} {span}"


@final
class History:
    """Records what operations several threads call, for `assert_linearizable`.

    >>> history = History()
    >>> history.call("add", [].append, 1)
    >>> [str(call) for call in history.calls]
    ['add(1) -> None [0, 1]']
    """

    __slots__ = ("_calls", "_now")

    def __init__(self) -> None:
        self._calls: dict[int, Call] = {}
        self._now = 0

    def call(self, name: str, function: Callable[..., R], *arguments: object) -> R:
        """Call `function`, and record it as the operation `name`.

        Raises:
            Exception: the error of `function`, which is also recorded as the result.
        """
        began = self._tick()
        self._calls[began] = Call(name, arguments, None, began, None)
        try:
            result = function(*arguments)
        except Exception as error:
            self._calls[began] = Call(name, arguments, error, began, self._tick())
            raise
        self._calls[began] = Call(name, arguments, result, began, self._tick())
        return result

    def _tick(self) -> int:
        now = self._now
        self._now = now + 1
        return now

    @property
    def calls(self) -> tuple[Call, ...]:
        """Return the recorded calls, in the order in which they began."""
        return tuple(self._calls[began] for began in sorted(self._calls))


class Model(Protocol[S]):
    """The meaning of the operations when they are called one after the other."""

    @abstractmethod
    def initial(self) -> S:
        """Return the state before the first operation; hashable, and never changed."""
        ...

    @abstractmethod
    def apply(self, state: S, name: str, arguments: tuple[object, ...]) -> tuple[S, object]:
        """Return the state after an operation, and the operation's result or exception.

        Args:
            state: the state before it.
            name: the operation's name, as in the history.
            arguments: the arguments of the operation.
        """
        ...


def assert_linearizable(history: History | Sequence[Call], model: Model[S]) -> list[Call]:
    """Check that the results can be explained by some order of the operations.

    In that order, each operation follows all those that had ended before it began.

    This searches all orders and remembers the states that were tried (Wing and Gong, 1993; Lowe,
    2017). It is meant for histories of up to a few dozen operations.

    Args:
        history: the recorded calls.
        model: says what the operations do one after the other.

    Returns:
        An order that explains the results.

    Raises:
        AssertionError: if there is no such order.
    """
    calls = list(history.calls if isinstance(history, History) else history)
    everything = (1 << len(calls)) - 1
    finished = sum(1 << i for i, call in enumerate(calls) if call.ended is not None)
    tried: set[tuple[int, S]] = set()

    def extend(placed: int, state: S, order: list[Call]) -> list[Call] | None:
        if placed & finished == finished:
            return order
        if (placed, state) in tried:
            return None
        tried.add((placed, state))
        open_ends = [
            ended
            for i, call in enumerate(calls)
            if not placed >> i & 1 and (ended := call.ended) is not None
        ]
        horizon = min(open_ends)
        for i, call in enumerate(calls):
            # No remaining call may have ended before this one began.
            if placed >> i & 1 or call.began > horizon:
                continue
            after, result = model.apply(state, call.name, call.arguments)
            if call.ended is not None and not _same(result, call.result):
                continue
            found = extend(placed | 1 << i, after, [*order, call])
            if found is not None:
                return found
        return None

    found = extend(0, model.initial(), []) if everything else []
    if found is None:
        raise AssertionError(
            "no order of these operations explains their results:\n  "
            + "\n  ".join(map(str, calls))
        )
    return found


def _same(expected: object, result: object) -> bool:
    if isinstance(expected, BaseException) and isinstance(result, BaseException):
        return type(expected) is type(result) and expected.args == result.args
    return expected == result
