"""The structure of a flow, for engines, operators and `flow explain`.

>>> import flow_core as flow
>>> made = flow.range(9).map(str).take(2)
>>> [stage.name for stage in stages_of(made)]
['map', 'take']
>>> source_of(made)
range(0, 9)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, final

from flow_core.protocols import CallableSource, IterableSource, Publisher, Subscriber
from flow_core.stages._template import Stage, line_of

if TYPE_CHECKING:
    from flow_core.flow import Flow
    from flow_core.operator import Operator

__all__ = [
    "AbsorbingSource",
    "DeferredSource",
    "Place",
    "boundary_of",
    "call_of",
    "inside_of",
    "made_at",
    "moved",
    "placed",
    "source_of",
    "stages_of",
    "upstreams_of",
]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class AbsorbingSource(Generic[T_co]):
    """A publisher that can run stages where its items are, such as on a cluster (macro-fusion)."""

    __slots__ = ()

    @abstractmethod
    def subscribe(self, subscriber: Subscriber[T_co], /) -> None:
        """See `Publisher.subscribe`."""

    def absorb(
        self,
        stages: tuple[Stage[Any, Any], ...],
        # Any: the type of the last absorbed stage.
    ) -> tuple[Publisher[Any], tuple[Stage[Any, Any], ...]]:
        """Take over as many of the first `stages` as it can run itself.

        Returns:
            A publisher of the results of the absorbed stages, and the stages that are left.

        Raises:
            FlowError: if a stage has no meaning at the place of the items; the text names the
                stage, and the ways out.
        """
        return self, stages

    def check(self, stages: tuple[Stage[Any, Any], ...], behind: str | None = None) -> None:
        """Refuse stages that have no meaning at the place of the items; called at assembly.

        Args:
            stages: the stages that follow this source.
            behind: an operator behind these stages that is not a stage, and depends on the order of
                the items, with its place in the user's code; None if there is no such operator.

        Raises:
            FlowError: if a stage or the operator is refused; the text lists the ways out.
        """

    def united(
        self, flows: tuple[Publisher[Any], ...]
    ) -> Flow[Any] | None:  # Any: the items that the flows have in common
        """Return one flow of the items of several flows, in no order, at the place of the items.

        Args:
            flows: the flows to merge; the first of them has this source.

        Returns:
            The flow; None if the items of the flows are not in one place, or have to be merged in
            this process.
        """
        return None

    def places(self, stages: tuple[Stage[Any, Any], ...]) -> tuple[Place, ...]:
        """Return the places where the stages run that `absorb` would take over.

        This runs nothing.

        Raises:
            FlowError: in the cases in which `absorb` raises it.
        """
        publisher, left = self.absorb(stages)
        absorbed = stages[: len(stages) - len(left)]
        return (Place(repr(publisher), absorbed),) if absorbed else ()

    def plan(self, stages: tuple[Stage[Any, Any], ...]) -> str | None:
        """Describe how the place of the items will run the `stages` that it absorbs.

        Returns:
            The description; None if the place of the items makes no plans. This runs nothing.

        Raises:
            FlowError: in the cases in which `absorb` raises it.
        """
        return None


@final
@dataclass(frozen=True, slots=True)
class Place:
    """Some absorbed stages, and the place where they run.

    Attributes:
        where: the place, for a reader.
        stages: the stages there, upstream first; they may be parts of the user's stages.
    """

    where: str
    stages: tuple[Stage[Any, Any], ...]


class DeferredSource(Generic[T_co]):
    """A publisher that stands for a flow that is known only when it is subscribed to."""

    __slots__ = ()

    @abstractmethod
    def subscribe(self, subscriber: Subscriber[T_co], /) -> None:
        """See `Publisher.subscribe`."""

    @abstractmethod
    def resolve(self) -> Flow[T_co]:
        """Return the flow for one subscriber."""


def source_of(flow: Flow[Any]) -> Publisher[Any] | IterableSource[Any]:
    """Return the source before the last run of stages (those since the last boundary).

    Args:
        flow: any flow.
    """
    return flow._source


def upstreams_of(flow: Flow[Any]) -> tuple[object, ...]:
    """Return the upstreams of that source (see `source_of`), if it has an attribute `upstreams`.

    >>> import flow_core as flow
    >>> upstreams_of(flow.just(1).map(str))
    ()

    Args:
        flow: any flow.
    """
    named: tuple[object, ...] = getattr(flow._source, "upstreams", ())
    return named


def inside_of(flow: Flow[Any]) -> tuple[tuple[str, Flow[Any]], ...]:
    """Return the flows that run within that source, if it has an attribute `inside`.

    >>> import flow_core as flow
    >>> inside_of(flow.just(1).map(str))
    ()

    Args:
        flow: any flow.

    Returns:
        Pairs of what a flow is to the source, in a few words, and the flow.
    """
    named: tuple[tuple[str, Flow[Any]], ...] = getattr(flow._source, "inside", ())
    return named


def stages_of(flow: Flow[Any]) -> tuple[Stage[Any, Any], ...]:
    """Return the stages since the last boundary, upstream first.

    Args:
        flow: any flow.
    """
    return flow._stages()


def boundary_of(flow: Flow[Any]) -> tuple[Flow[Any], Operator[Any, Any]] | None:
    """Return the flow before the last boundary, and the operator there.

    The result is None if there is no boundary.

    Args:
        flow: any flow.
    """
    while flow._boundary is None and flow._parent is not None:
        flow = flow._parent
    return None if flow._boundary is None else flow._boundary[:2]


def made_at(flow: Flow[Any]) -> str | None:
    """Return the place where that source, or the last boundary, was assembled, as ``file:line``.

    Args:
        flow: any flow.
    """
    while flow._boundary is None and flow._parent is not None:
        flow = flow._parent
    return line_of(flow._site if flow._boundary is None else flow._boundary[2])


def call_of(flow: Flow[T]) -> CallableSource[T] | None:
    """Return the source if one call of it computes the whole flow, of at most one item; or None.

    Args:
        flow: any flow.
    """
    source = flow._source
    if flow._args is None and isinstance(source, CallableSource):
        return source
    return None


def moved(flow: Flow[T], move: Callable[[Flow[Any]], Flow[Any]]) -> Flow[T]:
    """Return the same flow over another first source. Engines use this to run a flow elsewhere.

    Args:
        flow: any flow; it does not change.
        move: called with the first source as a flow without stages; returns its replacement.
    """
    steps: list[Stage[Any, Any] | Operator[Any, Any]] = []
    before: Flow[Any] = flow
    source = flow._source
    while True:
        if before._boundary is not None:
            before, operator, _ = before._boundary
            source = before._source
            steps.append(operator)
        elif (stage := before._stage) is not None and before._parent is not None:
            steps.append(stage)
            before = before._parent
        else:
            break
    made = move(before if before._source is source else before._over(source))
    for step in reversed(steps):
        made = made._then(step) if isinstance(step, Stage) else made.pipe(step)
    return made


def placed(flow: Flow[Any], called: str, file: str, line: int, *, since: int = 0) -> None:
    """Set the place where stages were assembled to a line of a file that is not Python code.

    Args:
        flow: the flow that has these stages at its end.
        called: the place where the stages seem to have been assembled, as ``file:line``; stages
            with another place do not change.
        file: the file to name instead.
        line: the line in that file.
        since: how many stages at the beginning of the flow do not change in any case.
    """
    steps: list[Flow[Any]] = []
    step: Flow[Any] | None = flow
    while step is not None and step._args is not None:
        steps.append(step)
        step = step._parent
    for step in steps[: len(steps) - since]:
        if line_of(step._site) == called:
            step._code, step._at = file, line
