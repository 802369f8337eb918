"""The records that acme-flow registers."""

from collections.abc import Iterator

from flow_core.plugins import (
    ConverterSpec,
    EngineSpec,
    Kind,
    NamespaceSpec,
    OperatorSpec,
    SinkSpec,
    SourceSpec,
    hookimpl,
)
from flow_core.protocols import Fusion


@hookimpl
def flow_operators() -> Iterator[OperatorSpec]:
    yield OperatorSpec(
        "every",
        "acme_flow.operators:every",
        summary="Each n-th item.",
        kind=Kind.STAGE,
        asks=Fusion.ANY,
        answers=Fusion.ANY | Fusion.THREAD_BOUNDARY,
        conditional=True,
    )
    yield OperatorSpec("append", "acme_flow.operators:append", summary="Then another flow's items.")


@hookimpl
def flow_namespaces() -> Iterator[NamespaceSpec]:
    yield NamespaceSpec("acme", "acme_flow.namespace:Acme", summary="Each n-th item; means.")


@hookimpl
def flow_sources() -> Iterator[SourceSpec]:
    yield SourceSpec("countdown", "acme_flow.operators:countdown", summary="From n down to 1.")


@hookimpl
def flow_sinks() -> Iterator[SinkSpec]:
    yield SinkSpec("tally", "acme_flow.ledger:tally", summary="Adds up, and prints the sum.")


@hookimpl
def flow_converters() -> Iterator[ConverterSpec]:
    yield ConverterSpec(
        "ledger",
        "acme_flow.ledger:entries",
        accepts="acme_flow.ledger:Ledger",
        summary="The entries of a ledger.",
    )


@hookimpl
def flow_engines() -> Iterator[EngineSpec]:
    yield EngineSpec(
        "acme", "acme_flow.engine:open_engine", summary="Tenfold numbers.", options=("master",)
    )
