"""The registry, `Flow` and the cases of the testing kit know the same stages."""

from __future__ import annotations

import inspect
from types import FunctionType

import pytest

import flow_core as flow
from flow_core import Flow, operators
from flow_core.plugins import Kind, PluginHost, _builtin
from flow_testing import STAGE_CASES

HOST = PluginHost({"FLOW_DISABLE_PLUGINS": "*"})
STAGES = sorted(name for name, found in HOST.operators.items() if found.spec.kind is Kind.STAGE)


def test_a_method_is_a_factory_for_pipe_under_its_name() -> None:
    take, scan = HOST.operator("take"), HOST.operator("scan")
    assert list(flow.range(9).pipe(take(2))) == [0, 1]
    assert list(flow.range(4).pipe(scan(max, seed=2))) == [2, 2, 2, 3]
    assert repr(take(2)).startswith("take(")
    assert str(inspect.signature(take)).startswith("(count: 'int')")
    with pytest.raises(TypeError, match="too many positional arguments"):
        take(1, 2)


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_is_a_method_and_has_cases(name: str) -> None:
    assert isinstance(inspect.getattr_static(Flow, name), FunctionType)
    assert any(case.name.split()[0].rstrip(",") == name for case in STAGE_CASES)
    assert HOST.operators[name].spec.target == f"flow_core.flow:Flow.{name}"
    assert _builtin.stage_templates()[name]


def test_an_operator_that_is_only_a_function_is_a_boundary() -> None:
    """It is not a step of a loop, so that `Flow` need not have a method for it."""
    only = set(operators.__all__) - {"stage"}
    assert not only & set(dir(Flow))
    assert {name for name in only if HOST.operators[name].spec.kind is not Kind.BOUNDARY} == set()
