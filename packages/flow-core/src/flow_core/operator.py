"""`Operator`: what `Flow.pipe` takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, final

if TYPE_CHECKING:
    from flow_core.flow import Flow

__all__ = ["Operator"]

T = TypeVar("T")
In_contra = TypeVar("In_contra", contravariant=True)
Result_co = TypeVar("Result_co", covariant=True)


@final
class Operator(Generic[In_contra, Result_co]):
    """A step that a flow is piped into; its result is a flow, a connectable or a DataFrame.

    To write an operator of your own, write a plain function that returns one:

    >>> from flow_core import Flow, Operator
    >>> def doubled() -> Operator[int, Flow[int]]:
    ...     return Operator("doubled", lambda flow: flow.map(lambda n: 2 * n))
    >>> import flow_core
    >>> list(flow_core.range(3).pipe(doubled()))
    [0, 2, 4]

    Args:
        name: the operator's name in messages and in `flow explain`.
        apply: returns the result for a flow.
        detail: the arguments of the operator, for messages.
        moves: whether the operator decides in which thread the rest of the flow runs, as
            ``observe_on`` does. If so, functions that are given to `Flow.subscribe` are called in
            that thread; otherwise, in an event loop, they are called in the loop.
    """

    __slots__ = ("_apply", "detail", "moves", "name")

    def __init__(
        self,
        name: str,
        apply: Callable[[Flow[In_contra]], Result_co],
        detail: str = "",
        *,
        moves: bool = False,
    ) -> None:
        self.name = name
        self.detail = detail
        self.moves = moves
        self._apply: Callable[[Flow[Any]], Result_co] = apply  # Any: In, which a slot cannot be

    def apply(self, flow: Flow[In_contra]) -> Result_co:
        """Return the result of this operator for `flow`."""
        return self._apply(flow)

    def __repr__(self) -> str:
        return f"{self.name}({self.detail})"
