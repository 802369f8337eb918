"""The structure of a flow as data: its sources, the loops of its stages, its boundaries."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, final

from flow_cli._listing import fusion_text
from flow_cli._targets import as_flow
from flow_core.assembly import operator_of
from flow_core.demand import DEFAULT_PREFETCH
from flow_core.errors import FlowError
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.plugins import OperatorSpec, Placement, SourceSpec, Thread, plugin_host
from flow_core.protocols import CallableSource, Fusion, IterableSource, ScalarSource
from flow_core.stages import Form, Program, Stage, generated_source, labels
from flow_core.structure import (
    AbsorbingSource,
    DeferredSource,
    boundary_of,
    inside_of,
    made_at,
    source_of,
    stages_of,
    upstreams_of,
)

__all__ = ["Branch", "Kind", "Part", "Step", "parts_of", "refused", "with_sink"]

FROM: Final = "from"
ALSO_FROM: Final = "also from"
"""The labels of flows that a part reads; others run within it."""

_ON_CLUSTER: Final = frozenset({Placement.CLUSTER, Placement.SHUFFLE})

_THREADS: Final = {
    Thread.EXECUTOR: "on the executor of {}",
    Thread.CLOCK: "on the clock of {}",
    Thread.LOOP: "in the event loop of {}",
    Thread.WORKERS: "on the workers of {}",
}

# Any: an explanation takes flows and stages of any items.
_AnyFlow = Flow[Any]
_AnyStage = Stage[Any, Any]


@final
class Kind(enum.Enum):
    """The kinds of parts."""

    SOURCE = "source"
    BOUNDARY = "boundary"
    LOOP = "loop"
    """Stages that are compiled into one function."""
    ABSORBED = "absorbed"
    """Stages that run where the source has its items, such as on a cluster."""
    REFUSED = "refused"
    """Stages that the source refuses: the flow cannot run."""
    PLAN = "plan"
    """The engine's own words for the way in which it will run the stages that it absorbs."""
    SHARED = "shared"
    """A part that runs once for all its subscribers, and was shown before."""
    SINK = "sink"


@final
@dataclass(frozen=True, slots=True)
class Step:
    """A stage of a loop, and the place where it was assembled, as ``file:line``."""

    text: str
    place: str | None


@final
@dataclass(frozen=True, slots=True)
class Branch:
    """Another flow that a part reads or runs: what it is to the part, and its own parts."""

    label: str
    parts: tuple[Part, ...]

    @property
    def is_read(self) -> bool:
        """True if the part reads it; otherwise it runs within the part."""
        return self.label in {FROM, ALSO_FROM}


@final
@dataclass(frozen=True, slots=True)
class Part:
    """A part of a flow; the parts of a flow follow one another, upstream first.

    Attributes:
        id: a number that no other part of the same flow has.
        kind: what it is.
        text: the source, the operator, or the names of the stages; of a plan or a refusal, its
            text.
        how: how it runs; of a source, what it is.
        where: the place where absorbed stages run, or the source that an absorbed operator makes.
        facts: more about it, each a few words.
        number: the number of a loop, from 1.
        pieces: the number of functions that a loop is divided into.
        thread: on which thread it runs, where that is known beforehand.
        place: where it was assembled, as ``file:line``.
        steps: the stages.
        inner: where the flows come from that it makes of its items.
        branches: the other flows that it reads.
        code: the code that was generated for a loop, if it was asked for.
        same: the id of the part that is meant, if the part was shown before.
    """

    id: int
    kind: Kind
    text: str
    how: str = ""
    where: str = ""
    facts: tuple[str, ...] = ()
    number: int = 0
    pieces: int = 1
    thread: str = ""
    place: str | None = None
    steps: tuple[Step, ...] = ()
    inner: str = ""
    branches: tuple[Branch, ...] = ()
    code: str = ""
    same: int | None = None


def parts_of(flow: _AnyFlow, *, source: bool = False, plan: bool = False) -> tuple[Part, ...]:
    """Return the parts of a flow, upstream first. This does not run the flow.

    Args:
        flow: any flow.
        source: whether to generate the code of the loops.
        plan: whether to ask the engine how it will run the stages that it absorbs.
    """
    return _Reader(source, plan).read(flow)


def refused(parts: tuple[Part, ...]) -> bool:
    """Return whether something in the flow is refused, so that it cannot run."""
    return any(
        part.kind is Kind.REFUSED or any(refused(branch.parts) for branch in part.branches)
        for part in parts
    )


def with_sink(parts: tuple[Part, ...], sink: str) -> tuple[Part, ...]:
    """Return the parts of a flow with a sink behind them.

    Args:
        parts: the parts of a flow.
        sink: the sink, for a reader.
    """
    return (*parts, Part(1 + _last_id(parts), Kind.SINK, sink))


def _last_id(parts: tuple[Part, ...]) -> int:
    inner = [_last_id(branch.parts) for part in parts for branch in part.branches]
    return max([part.id for part in parts] + inner, default=0)


@final
@dataclass(frozen=True)
class _Run:
    """The stages between two boundaries, or between a boundary and the end.

    Args:
        flow: the flow whose last stages these are.
        entry: the operator that has made the source of these stages; None at the first source.
        exit: the operator behind these stages; None at the end of the flow.
        pulled: whether the operator behind these stages iterates over this flow, and is an iterator
            itself.
    """

    flow: _AnyFlow
    entry: Operator[Any, Any] | None
    exit: Operator[Any, Any] | None
    pulled: bool


def _runs(flow: _AnyFlow) -> list[_Run]:
    runs: list[_Run] = []
    behind: Operator[Any, Any] | None = None
    pulled = False
    while True:
        boundary = boundary_of(flow)
        if boundary is None:
            runs.append(_Run(flow, None, behind, pulled))
            return runs[::-1]
        runs.append(_Run(flow, boundary[1], behind, pulled))
        pulled = isinstance(source_of(flow), IterableSource)
        flow, behind = boundary


@final
@dataclass
class _Reader:
    """Reads the parts of one flow, and of the flows that it reads.

    Args:
        source: whether to generate the code of the loops.
        plan: whether to ask the engine for its plan.
    """

    source: bool
    plan: bool
    ids: Iterator[int] = field(default_factory=lambda: count(1))
    loops: Iterator[int] = field(default_factory=lambda: count(1))
    shared: dict[int, tuple[Part, object]] = field(default_factory=dict[int, tuple[Part, object]])
    """The parts that run once for all, by the identity of what runs, which is kept alive."""

    def read(self, flow: _AnyFlow, reader: str = "") -> tuple[Part, ...]:
        """Return the parts of a flow.

        Args:
            flow: the flow.
            reader: the name of what reads it, if it is one of several that are read together.
        """
        runs = _runs(flow)
        known = [n for n, run in enumerate(runs) if id(_shared(run)) in self.shared]
        parts: list[Part] = []
        thread = _subscribed_on(runs)
        for run in runs[known[-1] if known else 0 :]:
            shared = self.shared.get(id(_shared(run)))
            part = self._entry(run) if shared is None else self._again(shared[0])
            parts.append(part)
            own = _thread_behind(run)
            if own is not None or part.branches or shared is not None:
                thread = own or ""
            stages = stages_of(run.flow)
            absorbing = _absorbing(source_of(run.flow))
            if absorbing is not None:
                stages = self._absorbed(absorbing, stages, parts)
            if stages:
                parts.append(self._loop(run, stages, thread, reader))
        return tuple(parts)

    def _again(self, part: Part) -> Part:
        return Part(next(self.ids), Kind.SHARED, part.text, same=part.id)

    def _entry(self, run: _Run) -> Part:
        """Return the source or the boundary at the beginning of a run."""
        made, branches = next(self.ids), tuple(self._branches(run))
        place, source, operator = _short(made_at(run.flow)), source_of(run.flow), run.entry
        if operator is None:
            said = _said_of(_spec_of_source(source))
            text = repr(source)
            name = operator_of(text)
            part = Part(
                made,
                Kind.SOURCE,
                name,
                _source_kind(source),
                facts=(said,) if said else (),
                place=place if name == text else _short(text),
                branches=branches,
            )
        elif _moves_there(run, operator):
            how, text = "absorbed, which makes", repr(operator)
            part = Part(made, Kind.ABSORBED, text, how, repr(source), place=place)
        else:
            inner: object = getattr(source, "inner_flows", None)
            part = Part(
                made,
                Kind.BOUNDARY,
                repr(operator),
                facts=tuple(_facts(_spec(operator), source)),
                place=place,
                inner=inner if isinstance(inner, str) else "",
                branches=branches,
            )
        if (shared := _shared(run)) is not None:
            self.shared[id(shared)] = part, shared
        return part

    def _branches(self, run: _Run) -> Iterator[Branch]:
        """Yield the other flows that the source of a run reads or runs."""
        before, source = boundary_of(run.flow), source_of(run.flow)
        label = FROM if run.entry is None else ALSO_FROM
        reader = repr(source).partition("(")[0]
        others = [flow for flow in map(as_flow, upstreams_of(run.flow)) if flow is not None]
        if before is not None:
            trunk = next((n for n, flow in enumerate(others) if flow is before[0]), None)
            if trunk is not None:
                del others[trunk]
        for flow in others:
            yield Branch(label, self.read(flow, reader))
        for told, inner in inside_of(run.flow):
            yield Branch(told, self.read(inner, reader))

    def _absorbed(
        self, source: AbsorbingSource[Any], stages: tuple[_AnyStage, ...], parts: list[Part]
    ) -> tuple[_AnyStage, ...]:
        """Add the stages that the source absorbs, and return those that are left to this process.

        If the source refuses the stages, the refusal is added, and none are left.
        """
        try:
            _, left = source.absorb(stages)
            places = source.places(stages)
            planned = source.plan(stages) if self.plan else None
        except FlowError as error:
            steps = _steps(stages)
            parts.append(Part(next(self.ids), Kind.REFUSED, str(error), steps=steps))
            return ()
        for place in places:
            steps, names = _steps(place.stages), _names(place.stages)
            parts.append(
                Part(next(self.ids), Kind.ABSORBED, names, "absorbed by", place.where, steps=steps)
            )
        if planned is not None:
            parts.append(Part(next(self.ids), Kind.PLAN, planned.rstrip()))
        return left

    def _loop(self, run: _Run, stages: tuple[_AnyStage, ...], thread: str, reader: str) -> Part:
        program, form, how, elsewhere = _compiled(run, stages, reader)
        facts: list[str] = []
        if program.shape.absorbs:
            facts.append("requests everything at once")
        elif program.shape.accounts and form in (Form.FEED, Form.FEED_IF):
            facts.append(f"an inbox of {min(DEFAULT_PREFETCH, program.limit)} items")
        name, tags = labels(stages)
        if name is not None:
            facts.append(f"named {name!r}")
        if tags:
            facts.append(", ".join(f"{key}={value}" for key, value in tags))
        return Part(
            next(self.ids),
            Kind.LOOP,
            _names(stages),
            how,
            facts=tuple(facts),
            number=next(self.loops),
            pieces=len(program.segments),
            thread=elsewhere or thread,
            steps=_steps(stages),
            code=generated_source(form, program).rstrip() if self.source else "",
        )


def _shared(run: _Run) -> object:
    """Return what runs once for all that subscribe to the source of a run; None if nothing does."""
    shared: object = getattr(source_of(run.flow), "shared", None)
    return shared


def _moves_there(run: _Run, operator: Operator[Any, Any]) -> bool:
    """Return whether an operator runs where the source before it has its items."""
    spec, before = _spec(operator), boundary_of(run.flow)
    if not isinstance(spec, OperatorSpec) or spec.placement not in _ON_CLUSTER or before is None:
        return False
    return bool(_absorbing(source_of(before[0])) and _absorbing(source_of(run.flow)))


def _source_kind(source: object) -> str:
    match source:
        case ScalarSource():
            return "a constant"
        case CallableSource():
            return "a function that gives one item or none"
        case IterableSource():
            return "an iterator"
        case AbsorbingSource():
            return "absorbs stages and runs them where its items are"
        case DeferredSource():
            return "a flow that is made when it is subscribed, and fuses with what follows"
        case _:
            return "a publisher"


def _facts(spec: OperatorSpec | SourceSpec | None, source: object) -> Iterator[str]:
    """Yield what is known of a boundary."""
    if spec is None:
        yield "registered by no plugin"
        return
    yield spec.backpressure.value
    asks = _asks(spec)
    if asks:
        yield f"asks {fusion_text(asks)}"
    if spec.answers:
        yield f"answers {fusion_text(spec.answers)}"
    if not asks and not spec.answers:
        yield "no fusion"
    prefetch: object = getattr(source, "prefetch", None)
    if isinstance(prefetch, int):
        yield f"prefetch {prefetch}"
    if said := _said_of(spec):
        yield said


def _said_of(spec: OperatorSpec | SourceSpec | None) -> str:
    return "" if spec is None or spec.thread is Thread.SAME else spec.thread.value


def _thread_behind(run: _Run) -> str | None:
    """Return the thread on which a run begins; None if it is the one before."""
    entry = run.entry
    spec = _spec_of_source(source_of(run.flow)) if entry is None else _spec(entry)
    return None if spec is None else _THREADS.get(spec.thread, "").format(spec.name) or None


def _subscribed_on(runs: list[_Run]) -> str:
    """Return the thread on which the first source of a flow works, if an operator moves it."""
    for run in runs[1:]:
        spec = None if run.entry is None else _spec(run.entry)
        if spec is not None and spec.thread is Thread.UPSTREAM:
            return _THREADS[Thread.EXECUTOR].format(spec.name)
        if spec is None or spec.thread is not Thread.SAME:
            break  # it may request on other threads
    return ""


def _absorbing(source: object) -> AbsorbingSource[Any] | None:
    if not isinstance(source, AbsorbingSource):
        return None
    absorbing: AbsorbingSource[Any] = source  # pyright: ignore[reportUnknownVariableType]  # any items
    return absorbing


def _compiled(
    run: _Run, stages: tuple[_AnyStage, ...], reader: str
) -> tuple[Program[Any, Any], Form, str, str]:
    """Return the program of a loop, its form, that form in words, and the thread that it sets."""
    source = source_of(run.flow)
    synchronous = isinstance(source, (IterableSource, DeferredSource))
    if isinstance(source, (AbsorbingSource, DeferredSource)):
        program: Program[Any, Any] = Program(stages)
    else:
        program = run.flow._compiled()[1]  # with the check for None, if the source needs it
    if not synchronous:
        absorbing = isinstance(source, AbsorbingSource)
        form = Form.RECEIVE if program.receives(everything=False) else Form.FEED
        return program, form, "in this process, fed" if absorbing else "fed", ""
    if run.exit is None:
        by = f"{reader}, or pushed to it" if reader else "iteration, or pushed to a subscriber"
        return program, Form.PULL, f"pulled by {by}", ""
    if run.pulled:
        return program, Form.PULL, f"pulled by {run.exit.name}", ""
    spec = _spec(run.exit)
    asks = _asks(spec)
    if Fusion.SYNC in asks and not (Fusion.THREAD_BOUNDARY in asks and program.calls_user_code):
        thread = "" if spec is None else _THREADS.get(spec.thread, "").format(spec.name)
        return program, Form.POLL, f"polled by {run.exit.name} (SYNC fusion)", thread
    return program, Form.PUSH, "pushed", ""


def _steps(stages: tuple[_AnyStage, ...]) -> tuple[Step, ...]:
    return tuple(Step(repr(stage), _short(stage.assembled_at)) for stage in stages)


def _short(place: str | None) -> str | None:
    return None if place is None else place.replace("\\", "/").rpartition("/")[2]


def _names(stages: tuple[_AnyStage, ...]) -> str:
    names = [stage.name for stage in stages[:8]]
    if len(stages) > len(names):
        names.append(f"… {len(stages)} stages")
    return " | ".join(names)


def _asks(spec: OperatorSpec | SourceSpec | None) -> Fusion:
    return spec.asks if isinstance(spec, OperatorSpec) else Fusion.NONE


def _spec(operator: Operator[Any, Any]) -> OperatorSpec | SourceSpec | None:
    """Return the record of an operator, or of the source that does the same."""
    host = plugin_host()
    found = host.operators.get(operator.name) or host.sources.get(operator.name)
    return None if found is None else found.spec


def _spec_of_source(source: object) -> SourceSpec | None:
    found = plugin_host().sources.get(repr(source).partition("(")[0])
    return None if found is None else found.spec
