"""`concat` and its kin: flows that follow one another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, TypeVar, cast, final, overload

from typing_extensions import override

from flow_core.assembly import labelled
from flow_core.demand import DEFAULT_PREFETCH
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import IterableSource, Publisher
from flow_core.sources import from_publisher
from flow_core.structure import source_of, stages_of
from flow_ops.coordination import Mapper, itself
from flow_ops.transform.concat_map import IterableConcatMap

__all__ = [
    "FlowsSource",
    "concat",
    "concat_with",
    "concatenated",
    "follow_one_another",
    "told",
]

T = TypeVar("T")
D = TypeVar("D")


def concat(*sources: Publisher[T], delay_error: bool = False) -> Flow[T]:
    """The items of several flows, one flow after the other; completes with the last.

    >>> import flow_core as flow
    >>> list(flow.concat(flow.range(2), flow.just("a")))
    [0, 1, 'a']

    This is a `concat_map` over the flows; `concat_map` itself takes a flow of flows.

    Demand: exact; the next flow gets the demand that the previous one has not used. A flow is
    subscribed when the one before has ended, even without demand.
    Thread: each flow's own. A flow that is an iterator or a function runs where the one before has
    ended, or where items are requested. Iteration: one loop over all flows.
    Fusion: none. A chain of concatenations is flattened when it is assembled, so its length costs
    nothing.
    Errors: the first one ends the flow, and the flows after it are not started.

    Args:
        sources: the flows to concatenate.
        delay_error: whether the other flows still follow when a flow fails; its error comes at the
            end, several errors as an ExceptionGroup.

    Raises:
        TypeError: if one of `sources` is not a publisher.
    """
    return concatenated(labelled("concat", told(sources, delay_error)), sources, delay_error)


# Two overloads: mypy finds the union of both types only by the second one, pyright only by the
# first. Any: the overloads give its type.


@overload
def concat_with(*others: Flow[T], delay_error: bool = ...) -> Operator[T, Flow[T]]: ...


@overload
def concat_with(*others: Publisher[D], delay_error: bool = ...) -> Operator[T, Flow[T | D]]: ...


def concat_with(*others: Publisher[Any], delay_error: bool = False) -> Operator[Any, Flow[Any]]:
    """The items of this flow, then those of the others.

    >>> import flow_core as flow
    >>> list(flow.range(2).pipe(concat_with(flow.just("a"), flow.just("b"))))
    [0, 1, 'a', 'b']

    Otherwise it is like `concat`. (`Flow.end_with` takes items instead of flows.)

    Args:
        others: the flows that follow.
        delay_error: see `concat`.

    Raises:
        TypeError: if one of `others` is not a publisher.
    """
    detail = told(others, delay_error)
    label = labelled("concat_with", detail)
    following = tuple(from_publisher(other) for other in others)

    def apply(flow: Flow[Any]) -> Flow[Any]:
        return concatenated(label, (flow, *following), delay_error)

    return Operator("concat_with", apply, detail)


def told(sources: tuple[Publisher[Any], ...], delay_error: bool) -> str:
    """Describe the sources, for a label."""
    # Without their repr: otherwise each step would write a long chain out again.
    detail = f"{len(sources)} flows"
    return f"{detail}, delay_error=True" if delay_error else detail


def concatenated(label: str, sources: tuple[Publisher[T], ...], delay_error: bool) -> Flow[T]:
    """The items of `sources`, one after the other; see `follow_one_another`."""
    flows = tuple(from_publisher(source) for source in sources)
    return follow_one_another(label, FlowsSource(flows, delay_error), delay_error=delay_error)


def follow_one_another(
    label: str, flows: IterableSource[Flow[T]], *, delay_error: bool = False
) -> Flow[T]:
    """The items of `flows`, one flow after the other.

    Args:
        label: the operator and its place, for messages.
        flows: the flows to concatenate.
        delay_error: see `concat`.
    """
    mapper = Mapper[Flow[T], T](itself, label)
    return Flow(IterableConcatMap(Flow(flows), mapper, DEFAULT_PREFETCH, delay_error, eager=True))


@final
class FlowsSource(IterableSource[Flow[T]]):
    """Flows that are known beforehand, as the source of a concatenation.

    A flow that concatenates others is replaced by these others.

    Args:
        flows: in order.
        delay_error: how their errors are treated; a flow is only replaced if it treats errors in
            the same way.
    """

    __slots__ = ("_delay_error", "_flat", "inners")

    none_free: ClassVar[bool] = True

    def __init__(self, flows: tuple[Flow[T], ...], delay_error: bool) -> None:
        self.inners = flows
        self._delay_error = delay_error
        self._flat: tuple[Flow[T], ...] | None = None

    @override
    def iterate(self) -> Iterator[Flow[T]]:
        flat = self._flat
        if flat is None:
            # Flatten only when needed: otherwise each step of a long chain would copy all steps
            # before it.
            flat = self._flat = tuple(self._flatten())
        return iter(flat)

    def _flatten(self) -> Iterator[Flow[T]]:
        waiting = list(reversed(self.inners))
        while waiting:
            flow = waiting.pop()
            flows = self._stands_for(flow)
            if flows is None:
                yield flow
            else:
                waiting.extend(reversed(flows))

    def _stands_for(self, flow: Flow[T]) -> tuple[Flow[T], ...] | None:
        source = source_of(flow)
        if not isinstance(source, IterableConcatMap) or stages_of(flow):
            return None
        # Not a stage: it has its own items.
        inner = source_of(cast("IterableConcatMap[T]", source).upstream)
        if isinstance(inner, FlowsSource) and inner._delay_error == self._delay_error:
            return cast("FlowsSource[T]", inner).inners
        return None

    def __repr__(self) -> str:
        return f"{len(self.inners)} flows"
