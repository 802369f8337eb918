"""`switch_if_empty`: another flow in place of one without items."""

from __future__ import annotations

from typing import Any, TypeVar, final, overload

from typing_extensions import override

from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import CoreSubscriber, Publisher
from flow_core.sources import from_publisher
from flow_ops.arbiters import SwitchArbiter
from flow_ops.coordination import coordinated

__all__ = ["switch_if_empty"]

T = TypeVar("T")
D = TypeVar("D")


# Two overloads: mypy finds the union of both types only by the second one, pyright only by the
# first.
@overload
def switch_if_empty(other: Flow[T]) -> Operator[T, Flow[T]]: ...


@overload
def switch_if_empty(other: Publisher[D]) -> Operator[T, Flow[T | D]]: ...


# Any: the overloads give its type.
def switch_if_empty(other: Publisher[Any]) -> Operator[Any, Flow[Any]]:
    """The items of this flow or, if it completes without items, the items of `other`.

    >>> import flow_core as flow
    >>> [list(flow.range(n).switch_if_empty(flow.just("none"))) for n in range(3)]
    [['none'], [0], [0, 1]]

    (`Flow.default_if_empty` takes an item instead of a flow.)

    Demand: exact; `other` gets all of it. Thread: that of the flow whose items they are.
    Fusion: none. Errors: an error ends the flow; `other` is not started then.

    Args:
        other: the flow that takes its place.

    Raises:
        TypeError: if `other` is not a publisher.
    """
    instead = from_publisher(other)
    return coordinated(
        "switch_if_empty",
        "",
        lambda flow, downstream, label: SwitchIfEmpty[Any](flow, instead, downstream, label),
        others=(instead,),
    )


@final
class SwitchIfEmpty(SwitchArbiter[T]):
    """Runs `switch_if_empty`."""

    __slots__ = ("_other", "_source")

    def __init__(
        self, source: Publisher[T], other: Publisher[T], downstream: CoreSubscriber[T], label: str
    ) -> None:
        super().__init__(downstream, label)
        self._source = source
        self._other: Publisher[T] | None = other
        """None once an item has come, or once the other flow has started."""

    @override
    def open(self) -> None:
        self.switch_to(self._source)

    @override
    def received(self, item: T) -> bool:
        self._other = None
        return self.emit(item)

    @override
    def ended(self, error: BaseException | None) -> None:
        other, self._other = self._other, None
        if error is None and other is not None:
            self._switch(other)
        else:
            self.end(error)
