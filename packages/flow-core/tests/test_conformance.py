"""The registry, `Flow`, `operators` and the cases of the testing kit know the same stages."""

from __future__ import annotations

import inspect
from types import FunctionType

import pytest

from flow_core import Flow, operators
from flow_core.plugins import Kind, PluginHost, _builtin
from flow_core.testing import STAGE_CASES

HOST = PluginHost({"FLOW_DISABLE_PLUGINS": "*"})
STAGES = sorted(name for name, found in HOST.operators.items() if found.spec.kind is Kind.STAGE)


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_is_a_method_and_a_function_and_has_cases(name: str) -> None:
    assert isinstance(inspect.getattr_static(Flow, name), FunctionType)
    assert name in operators.__all__
    assert any(case.name.split()[0].rstrip(",") == name for case in STAGE_CASES)
    assert HOST.operators[name].spec.target == f"flow_core.operators:{name}"
    assert _builtin.stage_templates()[name]


def test_what_is_a_function_only_is_a_boundary() -> None:
    """It is no step of a loop, so that `Flow` need not have a method for it."""
    only = set(operators.__all__) - set(dir(Flow)) - {"stage"}
    assert {name for name in only if HOST.operators[name].spec.kind is not Kind.BOUNDARY} == set()
