"""The core's own plugin, with the objects of `flow_core` itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from flow_core import operators, sinks, sources
from flow_core.flow import Flow
from flow_core.plugins.hookspecs import hookimpl
from flow_core.plugins.records import (
    Backpressure,
    ClockSpec,
    ConverterSpec,
    EngineSpec,
    ExecutorSpec,
    Kind,
    OperatorSpec,
    Placement,
    SinkSpec,
    SourceSpec,
    Thread,
)
from flow_core.protocols import Fusion
from flow_core.sources import files
from flow_core.stages import (
    Template,
)
from flow_core.stages import (
    _aggregate as aggregate,
)
from flow_core.stages import (
    _combining as combining,
)
from flow_core.stages import (
    _effects as effects,
)
from flow_core.stages import (
    _filtering as filtering,
)
from flow_core.stages import (
    _recovery as recovery,
)
from flow_core.stages import (
    _transform as transform,
)

_ACROSS: Final = Fusion.SYNC | Fusion.THREAD_BOUNDARY

_IN_A_LOOP: Final = frozenset({"from_async_iterable", "from_future", "using_when"})

_EFFECTS: Final = frozenset({"do_on_next", "do_after_next"})
"""Operators with effects in the process that runs the flow: on a cluster, these effects would be
lost."""
_ANY_ITEMS: Final = frozenset({"buffer_with_count"})
"""Operators that may take any of the items if the items have no order, in the process that runs the
flow."""
_SHUFFLED: Final = frozenset({"distinct", "reduce_by_key", "count_by_key"})
_COMBINED: Final = frozenset(
    {"all", "average", "collect", "contains", "count", "is_empty", "max", "min", "reduce", "some"}
    | {"sort", "sum", "take", "to_dict", "to_set", "checkpoint"}
)
"""Operators that a cluster runs in parts; and `checkpoint`, whose note travels with the error."""


@hookimpl
def flow_operators() -> Iterator[OperatorSpec]:
    """Yield the records of the stages, made from their templates, and of the core's boundaries."""
    for name, templates in stage_templates().items():
        modes = Fusion.ANY if any(map(_shares_a_queue, templates)) else Fusion.SYNC
        yield OperatorSpec.of(
            getattr(Flow, name),
            target=f"flow_core.flow:Flow.{name}",
            kind=Kind.STAGE,
            backpressure=_backpressure(templates),
            asks=modes,
            answers=modes if any(part.calls_user_code for part in templates) else modes | _ACROSS,
            conditional=True,
            placement=_placement(name, templates),
            method=name,
        )
    for name in ("hide", "do_on_request", "context_capture", "context_write"):
        yield OperatorSpec.of(
            getattr(Flow, name),
            target=f"flow_core.flow:Flow.{name}",
            backpressure=Backpressure.PASS,
            conditional=name.startswith("context"),
            method=name,
        )
    yield OperatorSpec.of(
        getattr(Flow, "local"),  # noqa: B009 - its type says too little
        target="flow_core.flow:Flow.local",
        backpressure=Backpressure.PASS,
        asks=Fusion.ANY,
        answers=Fusion.ANY | Fusion.THREAD_BOUNDARY,
        method="local",
    )
    for name, backpressure in (
        ("lift", Backpressure.PASS),
        ("serialize", Backpressure.FULL),
    ):
        yield OperatorSpec.of(
            getattr(operators, name),
            target=f"flow_core.operators:{name}",
            backpressure=backpressure,
        )


def stage_templates() -> dict[str, list[Template]]:
    """Return the templates of the core's stages, by the name of the operator."""
    themes = (transform, filtering, aggregate, combining, recovery, effects)
    by_name: dict[str, list[Template]] = {}
    for theme in themes:
        for value in vars(theme).values():
            if isinstance(value, Template) and value is not filtering.CHECK:
                by_name.setdefault(value.name, []).append(value)
    return by_name


@hookimpl
def flow_sources() -> Iterator[SourceSpec]:
    """Yield the records of the functions of `flow_core.sources`."""
    iterators = ("range", "just", "empty", "from_iterable", "repeat_value")
    shared = Fusion.ASYNC | Fusion.THREAD_BOUNDARY
    answers = {
        **dict.fromkeys((*iterators, "from_callable", "defer"), _ACROSS),
        **dict.fromkeys(("generate", "repeat_callable", "using"), Fusion.SYNC),
        **dict.fromkeys(("create", "from_future"), shared),
    }
    for name in sources.FUNCTIONS:
        yield SourceSpec.of(
            getattr(sources, name),
            target=f"flow_core.sources:{name}",
            answers=answers.get(name, Fusion.NONE),
            thread=Thread.LOOP if name in _IN_A_LOOP else Thread.SAME,
        )
    yield from _reading()


@hookimpl
def flow_engines() -> Iterator[EngineSpec]:
    """Yield the record of this process as an engine."""
    yield EngineSpec(
        "local", "flow_core.engine:local_engine", summary="This process, in the calling thread."
    )


@hookimpl
def flow_executors() -> Iterator[ExecutorSpec]:
    """Yield the records of Python's own executors."""
    yield ExecutorSpec(
        "threads",
        "concurrent.futures:ThreadPoolExecutor",
        summary="A pool of threads: max_workers says how many.",
    )
    yield ExecutorSpec(
        "processes",
        "concurrent.futures:ProcessPoolExecutor",
        summary="A pool of processes, for on_processes: max_workers says how many.",
    )


@hookimpl
def flow_clocks() -> Iterator[ClockSpec]:
    """Yield the record of the clock of the process."""
    yield ClockSpec("system", "flow_core.clocks:system_clock", summary="The time of the process.")


@hookimpl
def flow_sinks() -> Iterator[SinkSpec]:
    """Yield the records of the functions of `flow_core.sinks`."""
    yield SinkSpec("print", "flow_core.sinks:print_items", summary="Prints each item on a line.")
    for name in ("write_lines", "write_json_lines", "write_csv"):
        yield SinkSpec.of(getattr(sinks, name), target=f"flow_core.sinks:{name}")


@hookimpl
def flow_converters() -> Iterator[ConverterSpec]:
    """Yield the records of converters for Python's own types; the first match is used."""
    for name, source, accepts, summary in (
        ("flow", "from_publisher", "flow_core.flow:Flow", "A flow as it is."),
        ("future", "from_future", "concurrent.futures:Future", "The result of a future."),
        ("asyncio-future", "from_future", "asyncio:Future", "The result of a task or future."),
        (
            "async-iterable",
            "from_async_iterable",
            "collections.abc:AsyncIterable",
            "The items of any async iterable.",
        ),
        ("awaitable", "from_future", "collections.abc:Awaitable", "The result of an awaitable."),
        ("iterable", "from_iterable", "collections.abc:Iterable", "The items of any iterable."),
        (
            "publisher",
            "from_publisher",
            "flow_core.protocols:Publisher",
            "The items of whatever has subscribe(subscriber), if nothing else fits.",
        ),
    ):
        yield ConverterSpec(name, f"flow_core.sources:{source}", accepts=accepts, summary=summary)


def _reading() -> Iterator[SourceSpec]:
    """Yield the records of the functions of `flow_core.sources.files`."""
    for name in files.__all__:
        if name.startswith("read_"):
            yield SourceSpec.of(
                getattr(files, name), target=f"flow_core.sources.files:{name}", answers=_ACROSS
            )


def _backpressure(templates: Iterable[Template]) -> Backpressure:
    """Return how a `StageSubscriber` treats demand for stages with these templates."""
    found = list(templates)
    if any(template.absorbs and not template.at_most for template in found):
        return Backpressure.UNBOUNDED_IN
    if any(
        template.expands or template.emits_at_start or template.emits_at_end for template in found
    ):
        return Backpressure.FULL
    return Backpressure.PASS


def _placement(name: str, templates: list[Template]) -> Placement:
    if name in _SHUFFLED:
        return Placement.SHUFFLE
    if name in _COMBINED:
        return Placement.CLUSTER
    if name in _ANY_ITEMS:
        return Placement.DRIVER
    if name not in _EFFECTS and all(template.alone for template in templates):
        return Placement.CLUSTER
    ordered = any(template.ordered for template in templates)
    return Placement.REFUSED if ordered else Placement.DRIVER


def _shares_a_queue(template: Template) -> bool:
    """Return whether the stage can be polled with ASYNC: each item becomes at most one item."""
    lines = template.lines
    others = (lines.on_start, lines.on_end, lines.on_error, lines.on_close)
    return not (template.expands or template.absorbs or template.stops or any(others))
