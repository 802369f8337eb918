"""The verification of what a record says of its operator finds each fact that is not so."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow, Operator
from flow_core.plugins import Backpressure, Kind, OperatorSpec, plugin_host
from flow_core.protocols import Fusion
from flow_testing.facts import assert_facts

TAKE = plugin_host().operators["take"].spec
OWN = OperatorSpec("own", "somewhere:own")


def test_a_true_record_passes() -> None:
    assert_facts(TAKE, lambda made: made.take(2))
    assert_facts(plugin_host().operators["map"].spec, lambda made: made.map(str))
    assert_facts(plugin_host().operators["hide"].spec, lambda made: made.hide())


@pytest.mark.parametrize(
    ("fact", "wrong"),
    [
        ("asks", Fusion.NONE),
        ("answers", Fusion.SYNC),
        ("conditional", False),
        ("backpressure", Backpressure.UNBOUNDED_IN),
        ("kind", Kind.BOUNDARY),
    ],
)
def test_each_fact_that_is_not_so_is_named(fact: str, wrong: Any) -> None:
    lying = dataclasses.replace(TAKE, **{fact: wrong})
    with pytest.raises(AssertionError, match="take: its record says"):
        assert_facts(lying, lambda made: made.take(2))


def test_a_stage_that_is_registered_without_facts_does_not_fit_its_record() -> None:
    """A record without facts says: a boundary that takes no part in fusion."""
    stage: Operator[Any, Flow[Any]] = Operator("own", lambda made: made.map(str))
    with pytest.raises(AssertionError, match=r"own: its record says asks=.*correct the record"):
        assert_facts(OWN, lambda made: made.pipe(stage))
    assert_facts(OWN, lambda made: flow.Flow(made.hide().map(str)).hide().hide())


def test_an_operator_with_arguments_requires_a_function_that_applies_it() -> None:
    with pytest.raises(ValueError, match="how is it put behind a flow"):
        assert_facts(TAKE)
