"""Functions that turn a coordinator into an operator or a source."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, final

from typing_extensions import override

from flow_core.assembly import labelled
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import CoreSubscriber, Publisher, Subscriber
from flow_core.subscribers import core_subscriber
from flow_ops.coordination.coordinator import Coordinator

__all__ = ["Coordinated", "coordinated", "coordinated_source"]

T = TypeVar("T")
R = TypeVar("R")


@final
class Coordinated(Publisher[R]):
    """A publisher that creates a coordinator for each subscriber.

    Args:
        make: creates a coordinator; called with the subscriber and the label.
        label: the operator and where it was assembled, for messages.
        prefetch: items that are requested ahead, for `flow explain`; None for none.
        upstreams: the flows that the publisher reads, for `flow explain`.
    """

    __slots__ = ("_label", "_make", "prefetch", "upstreams")

    def __init__(
        self,
        make: Callable[[CoreSubscriber[R], str], Coordinator[R]],
        label: str,
        prefetch: int | None = None,
        upstreams: tuple[object, ...] = (),
    ) -> None:
        self._make = make
        self._label = label
        self.prefetch = prefetch
        self.upstreams = upstreams

    @override
    def subscribe(self, subscriber: Subscriber[R], /) -> None:
        self._make(core_subscriber(subscriber), self._label).start()

    def __repr__(self) -> str:
        return self._label


def coordinated(
    name: str,
    detail: str,
    make: Callable[[Flow[T], CoreSubscriber[R], str], Coordinator[R]],
    prefetch: int | None = None,
    others: tuple[object, ...] = (),
) -> Operator[T, Flow[R]]:
    """Return an operator whose subscriptions are coordinators.

    Args:
        name: the name of the operator.
        detail: the arguments of the operator, for messages.
        make: creates a coordinator; called with the upstream, the subscriber and the label.
        prefetch: items that are requested ahead, for `flow explain`; None for none.
        others: further flows that the operator reads, for `flow explain`.
    """
    label = labelled(name, detail)

    def apply(flow: Flow[T]) -> Flow[R]:
        def made(downstream: CoreSubscriber[R], label: str) -> Coordinator[R]:
            return make(flow, downstream, label)

        return Flow(Coordinated(made, label, prefetch, others))

    return Operator(name, apply, detail)


def coordinated_source(
    name: str,
    detail: str,
    make: Callable[[CoreSubscriber[R], str], Coordinator[R]],
    prefetch: int | None = None,
    upstreams: tuple[object, ...] = (),
) -> Flow[R]:
    """Return a flow whose subscriptions are coordinators; see `coordinated`.

    Args:
        name: the name of the source.
        detail: the arguments of the source, for messages.
        make: creates a coordinator; called with the subscriber and the label.
        prefetch: items that are requested ahead, for `flow explain`; None for none.
        upstreams: the flows that the source reads, for `flow explain`.
    """
    return Flow(Coordinated(make, labelled(name, detail), prefetch, upstreams))
