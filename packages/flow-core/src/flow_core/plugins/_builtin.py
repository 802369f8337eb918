"""The core's own plugin: what `flow_core` itself brings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from flow_core import sources
from flow_core.flow import Flow
from flow_core.plugins.hookspecs import hookimpl
from flow_core.plugins.records import (
    Backpressure,
    ConverterSpec,
    EngineSpec,
    Kind,
    OperatorSpec,
    SourceSpec,
)
from flow_core.protocols import Fusion
from flow_core.stages import Template, aggregate, effects, filtering, transform

_ACROSS: Final = Fusion.SYNC | Fusion.THREAD_BOUNDARY


@hookimpl
def flow_operators() -> Iterator[OperatorSpec]:
    """The stages, each described by what its templates reveal, and the core's boundaries."""
    by_name: dict[str, list[Template]] = {}
    for module in (transform, filtering, aggregate, effects):
        for value in vars(module).values():
            if isinstance(value, Template) and value is not filtering.CHECK:
                by_name.setdefault(value.name, []).append(value)
    for name, templates in by_name.items():
        yield OperatorSpec(
            name,
            f"flow_core.flow:Flow.{name}",
            summary=_summary(getattr(Flow, name)),
            kind=Kind.STAGE,
            backpressure=_backpressure(templates),
            asks=Fusion.SYNC,
            answers=Fusion.SYNC if any(part.calls_user_code for part in templates) else _ACROSS,
            conditional=True,
        )
    yield OperatorSpec(
        "hide",
        "flow_core.flow:Flow.hide",
        summary=_summary(vars(Flow)["hide"]),
        backpressure=Backpressure.PASS,
    )
    yield OperatorSpec(
        "progress",
        "flow_core.progress:progress",
        summary="Shows how many items have passed, and how fast, while the flow runs.",
        backpressure=Backpressure.PASS,
        asks=Fusion.SYNC,
        answers=_ACROSS,
        conditional=True,
    )


@hookimpl
def flow_sources() -> Iterator[SourceSpec]:
    """The functions of `flow_core.sources`."""
    iterators = ("range", "just", "empty", "from_iterable", "from_callable", "defer")
    for name in (*iterators, "from_publisher", "never", "error"):
        yield SourceSpec(
            name,
            f"flow_core.sources:{name}",
            summary=_summary(getattr(sources, name)),
            answers=_ACROSS if name in iterators else Fusion.NONE,
        )


@hookimpl
def flow_engines() -> Iterator[EngineSpec]:
    """This process."""
    yield EngineSpec(
        "local", "flow_core.engine:local_engine", summary="This process, in the calling thread."
    )


@hookimpl
def flow_converters() -> Iterator[ConverterSpec]:
    """What Python itself has."""
    yield ConverterSpec(
        "flow",
        "flow_core.sources:from_publisher",
        accepts="flow_core.flow:Flow",
        summary="A flow as it is.",
    )
    yield ConverterSpec(
        "iterable",
        "flow_core.sources:from_iterable",
        accepts="collections.abc:Iterable",
        summary="The items of any iterable.",
    )


def _backpressure(templates: Iterable[Template]) -> Backpressure:
    """What `StageSubscriber` does with demand for stages of these templates."""
    if any(template.absorbs for template in templates):
        return Backpressure.UNBOUNDED_IN
    if any(template.expands or template.emits_at_end for template in templates):
        return Backpressure.FULL
    return Backpressure.PASS


def _summary(function: object) -> str:
    """The first line of its documentation."""
    return (function.__doc__ or "").strip().partition("\n")[0].replace("``", "`")
