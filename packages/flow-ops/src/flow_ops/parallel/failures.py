"""The treatment of errors of the user's functions in a rail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar, final

from flow_core.errors import NoneItemError, throw_if_fatal
from flow_core.flow import Flow
from flow_core.results import FailureHandling, FailurePolicy
from flow_core.stages import SingleSink, describe

__all__ = ["filter_rail", "map_rail"]

T = TypeVar("T")
R = TypeVar("R")


def map_rail(flow: Flow[T], mapper: Callable[[T], R], policy: FailurePolicy) -> Flow[R]:
    """Return `flow.map(mapper)` under `policy`."""
    if policy is FailureHandling.ERROR:
        return flow.map(mapper)
    tried = _Tried("map", mapper, policy)
    if isinstance(policy, FailureHandling) and policy is not FailureHandling.STOP:
        return flow.map_optional(tried)  # a stage without a state, which may run anywhere
    return flow.handle(tried.handle)


def filter_rail(flow: Flow[T], predicate: Callable[[T], object], policy: FailurePolicy) -> Flow[T]:
    """Return `flow.filter(predicate)` under `policy`."""
    if policy is FailureHandling.ERROR:
        return flow.filter(predicate)
    tried = _Tried("filter", _Kept(predicate), policy)
    if isinstance(policy, FailureHandling) and policy is not FailureHandling.STOP:
        return flow.filter(tried)
    return flow.handle(tried.handle_if)


@final
class _Kept(Generic[T]):
    """A predicate whose result is never None: as an item, None would be an error."""

    __slots__ = ("_predicate",)

    def __init__(self, predicate: Callable[[T], object]) -> None:
        self._predicate = predicate

    def __call__(self, item: T) -> bool:
        return bool(self._predicate(item))

    def __repr__(self) -> str:
        return describe(self._predicate)


@final
class _Tried(Generic[T, R]):
    """A function that is called as often as the policy says.

    It can be pickled if the function and the policy can.
    """

    __slots__ = ("_function", "_name", "_policy")

    def __init__(self, name: str, function: Callable[[T], R], policy: FailurePolicy) -> None:
        if not callable(function):
            raise TypeError(f"{name}() takes a function, not {function!r}")
        if not isinstance(policy, FailureHandling) and not callable(policy):
            raise TypeError(
                f"on_error takes a FailureHandling or a function that gives one, not {policy!r}"
            )
        self._name = name
        self._function = function
        self._policy = policy

    def __call__(self, item: T) -> R | None:
        """Return the result; None if the item has to be left out."""
        result = self._try(item)
        return None if isinstance(result, FailureHandling) else result[0]

    def handle(self, item: T, sink: SingleSink[R]) -> None:
        """Give the result to `sink`."""
        result = self._try(item)
        if result is FailureHandling.STOP:
            sink.complete()
        elif not isinstance(result, FailureHandling):
            sink.next(result[0])

    def handle_if(self, item: T, sink: SingleSink[T]) -> None:
        """Give the item to `sink`, if the function's result is true."""
        result = self._try(item)
        if result is FailureHandling.STOP:
            sink.complete()
        elif not isinstance(result, FailureHandling) and result[0]:
            sink.next(item)

    def _try(self, item: T) -> tuple[R] | FailureHandling:
        tries = 0
        while True:
            try:
                result = self._function(item)
                if result is None:
                    raise NoneItemError(
                        f"{self._name}({describe(self._function)}) gave None, which is not an item"
                    )
            except BaseException as error:
                throw_if_fatal(error)
                tries += 1
                policy = self._policy
                what = policy if isinstance(policy, FailureHandling) else policy(tries, error)
                if what is FailureHandling.ERROR:
                    raise
                if not isinstance(what, FailureHandling):
                    raise TypeError(
                        f"{describe(policy)} gave {what!r}, not a FailureHandling"
                    ) from error
                if what is not FailureHandling.RETRY:
                    return what
            else:
                return (result,)

    def __repr__(self) -> str:
        return f"{describe(self._function)}, on_error={describe(self._policy)}"
