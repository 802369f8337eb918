"""A user's function that returns flows, with its description for messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast, final

from flow_core.conversion import Convertible, as_flow
from flow_core.flow import Flow
from flow_core.once import refuse_again
from flow_core.prepared import Prepared, Spliced
from flow_core.protocols import Publisher
from flow_core.stages import describe
from flow_core.structure import source_of
from flow_ops.coordination.failures import blamed

__all__ = ["Mapper", "itself"]

T = TypeVar("T")
R = TypeVar("R")


@final
class Mapper(Generic[T, R]):
    """The user's function from an item to a flow, with its description for messages.

    Args:
        function: the user's function.
        label: the operator with its arguments, and where it was assembled.
    """

    __slots__ = ("_last", "function", "label")

    def __init__(self, function: Callable[[T], Convertible[R]], label: str) -> None:
        self.function = function
        self.label = label
        self._last: object = None
        """The last result of `function`, if that was an iterator."""

    @property
    def spliced(self) -> Spliced[R] | None:
        """Return the stages of a prepared function, if a loop over its inputs can include them."""
        function: Any = self.function  # Any: a class does not say its parameters
        if not isinstance(function, Prepared):
            return None
        return cast("Prepared[T, R]", function).spliced

    def told(self, upstream: Flow[Any]) -> str | None:  # Any: the type of the mapped items
        """Describe where the inner flows come from, for `flow explain`.

        None if these flows are known.

        Args:
            upstream: the flow whose items are mapped.
        """
        if hasattr(source_of(upstream), "inners"):
            return None
        if self.function is itself:
            return "the items"
        return f"{describe(self.function)} makes one of each item"

    def failed(self, error: BaseException) -> BaseException:
        """Return the error that the flow gets, with the place, when `function` has raised `error`.

        Raises:
            BaseException: `error`, if it is fatal.
        """
        return blamed(error, self.label)

    def flow_of(self, made: Convertible[R]) -> Flow[R]:
        """Return `made`, which `function` has returned, as a flow.

        Raises:
            NoneItemError: if `made` is None.
            FlowError: if `made` is an iterator that `function` has returned for the previous item,
                too.
            TypeError: if `made` is anything else that cannot become a flow.
        """
        given: object = made
        if hasattr(given, "__next__"):
            if given is self._last:
                refuse_again(given, self.function)
            self._last = given
        return as_flow(made, "the mapper")


def itself(source: Publisher[T]) -> Flow[T]:
    """Return `source`: the mapper for items that are flows.

    `Mapper.flow_of` refuses other items.
    """
    return cast("Flow[T]", source)
