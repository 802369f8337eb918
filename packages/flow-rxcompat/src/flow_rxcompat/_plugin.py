"""The records of converters that this package registers; see `flow_core.plugins`."""

from __future__ import annotations

from collections.abc import Iterator

from flow_core.plugins import ConverterSpec, hookimpl

__all__ = ["flow_converters"]


@hookimpl
def flow_converters() -> Iterator[ConverterSpec]:
    """Yield the converters of this package.

    The classes are given by name, which imports nothing, so this works without `reactivex`
    installed.
    """
    yield ConverterSpec(
        "agera-observable",
        "flow_rxcompat.converters:from_agera",
        summary="The updates of an Observable of Agera; those that come while one waits are one.",
        accepts="flow_rxcompat.agera.protocols:Observable",
    )
    yield ConverterSpec(
        "agera-repository",
        "flow_rxcompat.converters:from_repository",
        summary="The values of a Repository of Agera; the newest one waits.",
        accepts="flow_rxcompat.agera.protocols:Repository",
    )
    yield ConverterSpec(
        "agera-reservoir",
        "flow_rxcompat.converters:from_reservoir",
        summary="The values of a Reservoir of Agera, taken as they are requested.",
        accepts="flow_rxcompat.agera.reservoirs:Reservoir",
    )
    yield ConverterSpec(
        "signals",
        "flow_rxcompat.converters:from_signals",
        summary="The signals of an Observable; what is not requested waits as a number.",
        accepts="flow_rxcompat.signals.observable:Observable",
    )
    yield ConverterSpec(
        "reactivex-observable",
        "flow_rxcompat.rx:from_rx",
        summary="What an Observable of reactivex pushes; items that are not requested wait.",
        accepts="reactivex.observable.observable:Observable",
    )
