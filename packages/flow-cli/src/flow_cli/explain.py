"""Draws the structure of a flow: its sources, the loops of its stages, its boundaries."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, final

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text
from rich.tree import Tree

from flow_cli._listing import fusion_text
from flow_cli._targets import as_flow
from flow_core.demand import DEFAULT_PREFETCH
from flow_core.errors import FlowError
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.plugins import OperatorSpec, Placement, SourceSpec, plugin_host
from flow_core.prepared import Prepared
from flow_core.protocols import CallableSource, Fusion, IterableSource, ScalarSource
from flow_core.stages import Form, Program, Stage, generated_source, labels
from flow_core.structure import (
    AbsorbingSource,
    DeferredSource,
    boundary_of,
    source_of,
    stages_of,
    upstreams_of,
)

__all__ = ["explain", "html", "tree"]

_WIDE: Final = 1000
_ON_CLUSTER: Final = frozenset({Placement.CLUSTER, Placement.SHUFFLE})

# Any: an explanation takes flows and stages of any items.
_AnyFlow = Flow[Any]
_Shown = _AnyFlow | Prepared[Any, Any]
_AnyStage = Stage[Any, Any]


def explain(flow: _Shown, *, source: bool = False, plan: bool = False) -> str:
    """Return a drawing of `flow`, as plain text. This does not run the flow.

    >>> import flow_core
    >>> print(explain(flow_core.range(4).map(str).hide().count()))  # doctest: +ELLIPSIS
    flow
    ├── source range(0, 4): an iterator
    ├── loop 1, pushed: map
    │   └── map(str)  ...
    ├── boundary hide(): passes demand on; no fusion
    └── loop 2, fed: count; requests everything at once
        └── count()  ...

    Args:
        flow: any flow, or a result of `flow_core.prepare`.
        source: whether to show the code that was generated for each loop.
        plan: whether to show, in the engine's own words, how it will run the stages that it
            absorbs.
    """
    console = Console(file=io.StringIO(), width=_WIDE, color_system=None, highlight=False)
    with console.capture() as capture:
        console.print(tree(flow, source=source, plan=plan))
    return "\n".join(line.rstrip() for line in capture.get().splitlines())


def html(flow: _Shown) -> str:
    """Return the drawing as HTML, for notebooks.

    Args:
        flow: any flow, or a result of `flow_core.prepare`.
    """
    console = Console(
        file=io.StringIO(), width=_WIDE, record=True, highlight=False, force_jupyter=False
    )
    console.print(tree(flow, title=type(flow).__name__))
    return console.export_html(inline_styles=True, code_format="<pre>{code}</pre>")


def tree(flow: _Shown, *, title: str = "flow", source: bool = False, plan: bool = False) -> Tree:
    """Return the drawing for a rich console.

    Args:
        flow: any flow, or a result of `flow_core.prepare`.
        title: the text at the root.
        source: whether to show the code that was generated for each loop.
        plan: whether to show, in the engine's own words, how it will run the stages that it
            absorbs.
    """
    return drawn(flow, title, source=source, plan=plan)[0]


def drawn(flow: _Shown, title: str, *, source: bool, plan: bool) -> tuple[Tree, bool]:
    """Return the drawing, and True if something in it is refused, so that the flow cannot run."""
    root = Tree(Text(title, "bold"))
    made = flow.flow if isinstance(flow, Prepared) else flow
    refused = _draw(root, made, source, plan)
    return root, refused


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
        reader: the name of what reads the whole flow, if this flow is one of several that it reads.
    """

    flow: _AnyFlow
    entry: Operator[Any, Any] | None
    exit: Operator[Any, Any] | None
    pulled: bool
    reader: str = ""


def _runs(flow: _AnyFlow, reader: str) -> list[_Run]:
    runs: list[_Run] = []
    behind: Operator[Any, Any] | None = None
    pulled = False
    while True:
        boundary = boundary_of(flow)
        if boundary is None:
            runs.append(_Run(flow, None, behind, pulled, reader))
            return runs[::-1]
        runs.append(_Run(flow, boundary[1], behind, pulled, reader))
        pulled = isinstance(source_of(flow), IterableSource)
        flow, behind = boundary


def _draw(  # noqa: PLR0917 - the last two are of branches
    root: Tree,
    flow: _AnyFlow,
    source: bool,
    plan: bool,
    numbers: Iterator[int] | None = None,
    reader: str = "",
) -> bool:
    """Draw the flow. Return True if something in it is refused."""
    numbers, refused = numbers or count(1), False
    for run in _runs(flow, reader):
        if run.entry is None:
            _draw_source(root, run.flow)
        else:
            _draw_boundary(root, run.entry, run.flow)
        for other in _other_upstreams(run):
            branch = root.add(Text("from" if run.entry is None else "also from", "dim"))
            name = repr(source_of(run.flow)).partition("(")[0]
            refused |= _draw(branch, other, source, plan, numbers, name)
        stages = stages_of(run.flow)
        absorbing = _absorbing(source_of(run.flow))
        if absorbing is not None:
            left = _draw_absorbed(root, absorbing, stages, plan)
            refused |= left is None
            stages = left or ()
        if stages:
            _draw_loop(root, next(numbers), run, stages, source)
    return refused


def _draw_source(root: Tree, flow: _AnyFlow) -> None:
    text = Text.assemble(("source ", "dim"), (repr(source_of(flow)), "bold green"))
    root.add(text.append(f": {_source_kind(flow)}", "dim"))


def _source_kind(flow: _AnyFlow) -> str:
    source = source_of(flow)
    if isinstance(source, ScalarSource):
        return "a constant"
    if isinstance(source, CallableSource):
        return "a function that gives one item or none"
    if isinstance(source, IterableSource):
        return "an iterator"
    if isinstance(source, AbsorbingSource):
        return "absorbs stages and runs them where its items are"
    if isinstance(source, DeferredSource):
        return "a flow that is made when it is subscribed, and fuses with what follows"
    return "a publisher"


def _draw_boundary(root: Tree, operator: Operator[Any, Any], flow: _AnyFlow) -> None:
    before, source, spec = boundary_of(flow), source_of(flow), _spec(operator)
    there = isinstance(spec, OperatorSpec) and spec.placement in _ON_CLUSTER
    if there and before is not None and _absorbing(source_of(before[0])) and _absorbing(source):
        text = Text.assemble(("absorbed, which makes ", "dim"), (repr(source), "bold green"))
        root.add(text.append(f": {operator!r}"))
        return
    text = Text.assemble(("boundary ", "dim"), (repr(operator), "bold yellow"))
    if spec is None:
        text.append(": registered by no plugin", "dim")
    else:
        facts = [spec.backpressure.value]
        asks = _asks(spec)
        if asks:
            facts.append(f"asks {fusion_text(asks)}")
        if spec.answers:
            facts.append(f"answers {fusion_text(spec.answers)}")
        if not asks and not spec.answers:
            facts.append("no fusion")
        prefetch: object = getattr(source, "prefetch", None)
        if isinstance(prefetch, int):
            facts.append(f"prefetch {prefetch}")
        text.append(f": {'; '.join(facts)}", "dim")
    branch = root.add(text)
    inners: object = getattr(source, "inner_flows", None)
    if isinstance(inners, str):
        branch.add(Text.assemble(("inner flows: ", "dim"), inners))


def _draw_absorbed(
    root: Tree, source: AbsorbingSource[Any], stages: tuple[_AnyStage, ...], plan: bool
) -> tuple[_AnyStage, ...] | None:
    """Show the stages that the source absorbs, and return those that are left to this process.

    The result is None if the source refuses the stages.
    """
    try:
        _, left = source.absorb(stages)
        places = source.places(stages)
        planned = source.plan(stages) if plan else None
    except FlowError as error:
        branch = root.add(Text.assemble(("refused ", "bold red"), str(error)))
        _add_stages(branch, stages)
        return None
    for place in places:
        head = Text.assemble(("absorbed by ", "dim"), (place.where, "bold green"))
        _add_stages(root.add(head.append(f": {_names(place.stages)}")), place.stages)
    if planned is not None:
        branch = root.add(Text("plan", "dim"))
        for line in planned.rstrip().splitlines():
            branch.add(Text(line))
    return left


def _absorbing(source: object) -> AbsorbingSource[Any] | None:
    if not isinstance(source, AbsorbingSource):
        return None
    absorbing: AbsorbingSource[Any] = source  # pyright: ignore[reportUnknownVariableType]  # any items
    return absorbing


def _draw_loop(
    root: Tree, number: int, run: _Run, stages: tuple[_AnyStage, ...], source: bool
) -> None:
    program, form, how = _compiled(run, stages)
    parts = len(program.segments)
    loops = f"loop {number}" if parts == 1 else f"loop {number}, in {parts} parts"
    text = Text.assemble((f"{loops}, {how}: ", "dim"), (_names(stages), "bold cyan"))
    if program.shape.absorbs:
        text.append("; requests everything at once", "dim")
    elif program.shape.accounts and form in (Form.FEED, Form.FEED_IF):
        text.append(f"; an inbox of {min(DEFAULT_PREFETCH, program.limit)} items", "dim")
    name, tags = labels(stages)
    if name is not None:
        text.append(f"; named {name!r}", "dim")
    if tags:
        text.append(f"; {', '.join(f'{key}={value}' for key, value in tags)}", "dim")
    branch = root.add(text)
    _add_stages(branch, stages)
    if source:
        code = generated_source(form, program).rstrip()
        branch.add(Syntax(code, "python", background_color="default", line_numbers=True))


def _compiled(run: _Run, stages: tuple[_AnyStage, ...]) -> tuple[Program[Any, Any], Form, str]:
    """Return the program of a loop, its form, and that form in words."""
    source = source_of(run.flow)
    synchronous = isinstance(source, (IterableSource, DeferredSource))
    if isinstance(source, (AbsorbingSource, DeferredSource)):
        program: Program[Any, Any] = Program(stages)
    else:
        program = run.flow._compiled()[1]  # with the check for None, if the source needs it
    if not synchronous:
        absorbing = isinstance(source, AbsorbingSource)
        form = Form.RECEIVE if program.receives(everything=False) else Form.FEED
        return program, form, "in this process, fed" if absorbing else "fed"
    if run.exit is None:
        if run.reader:
            return program, Form.PULL, f"pulled by {run.reader}, or pushed to it"
        return program, Form.PULL, "pulled by iteration, or pushed to a subscriber"
    if run.pulled:
        return program, Form.PULL, f"pulled by {run.exit.name}"
    asks = _asks(_spec(run.exit))
    if Fusion.SYNC in asks and not (Fusion.THREAD_BOUNDARY in asks and program.calls_user_code):
        return program, Form.POLL, f"polled by {run.exit.name} (SYNC fusion)"
    return program, Form.PUSH, "pushed"


def _add_stages(branch: Tree, stages: tuple[_AnyStage, ...]) -> None:
    for stage in stages:
        where = stage.assembled_at
        text = Text(repr(stage))
        if where is not None:
            text.append(f"  {where.replace(chr(92), '/').rpartition('/')[2]}", "dim")
        branch.add(text)


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


def _other_upstreams(run: _Run) -> Iterator[_AnyFlow]:
    """Yield the other flows that a source with several upstreams has in ``upstreams``."""
    before = boundary_of(run.flow)
    for each in upstreams_of(run.flow):
        flow = as_flow(each)
        if flow is not None and (before is None or flow is not before[0]):
            yield flow
