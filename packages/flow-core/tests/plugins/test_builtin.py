"""All that the core has is registered; `docs/generate.py` tries whether the records are true."""

from __future__ import annotations

import pytest

import flow_core as flow
from flow_core import Flow, sinks
from flow_core.engine import EngineOptions
from flow_core.plugins import Kind, OperatorSpec, PluginHost, _builtin
from flow_core.sources import files

HOST = PluginHost({"FLOW_DISABLE_PLUGINS": "*"})

each_operator = pytest.mark.parametrize("name", sorted(HOST.operators))


def spec(name: str) -> OperatorSpec:
    return HOST.operators[name].spec


def test_every_template_of_the_core_is_registered_under_its_name() -> None:
    templates = set(_builtin.stage_templates())
    stages = {name for name in HOST.operators if spec(name).kind is Kind.STAGE}
    assert stages == templates


def test_every_method_of_flow_that_adds_something_is_registered() -> None:
    returns_flow = {
        name
        for name, method in vars(Flow).items()
        if not name.startswith("_")
        and str(getattr(method, "__annotations__", {}).get("return", "")).startswith("Flow[")
    }
    assert returns_flow - {"then", "moved"} <= set(HOST.operators)


@each_operator
def test_an_operator_is_there_and_says_what_it_does(name: str) -> None:
    assert callable(HOST.operator(name))
    assert len(spec(name).summary) > 10
    assert "``" not in spec(name).summary


def test_every_source_function_of_the_core_is_registered() -> None:
    reading = {name for name in files.__all__ if name.startswith("read_")}
    assert set(HOST.sources) == set(flow.sources.FUNCTIONS) | reading
    for name, found in HOST.sources.items():
        assert len(found.spec.summary) > 10
        assert callable(HOST.source(name))


def test_every_sink_of_the_core_is_registered_and_says_what_it_does() -> None:
    targets = {found.spec.target for found in HOST.sinks.values()}
    assert targets == {f"flow_core.sinks:{name}" for name in sinks.__all__}
    for name, found in HOST.sinks.items():
        assert len(found.spec.summary) > 10
        assert callable(HOST.sink(name))


def test_the_local_engine_leaves_a_flow_where_it_is() -> None:
    numbers = flow.range(3)
    with HOST.engine("local")(EngineOptions()) as engine:
        assert engine.place(numbers) is numbers
        assert engine.name == "local"
        assert dict(engine.facts) == {}
