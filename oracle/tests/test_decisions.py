"""Each decision is needed, and is enough for its witness."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flow_oracle import pipelines
from flow_oracle.compare import Oracle
from flow_oracle.decisions import DECISIONS, EXACT, Kind, names
from flow_oracle.strategies import NAMES

PAGE = Path(__file__).parents[2] / "docs" / "design" / "oracle.md"
each_decision = pytest.mark.parametrize("name", DECISIONS)


@each_decision
def test_its_witness_differs_without_it(name, there):
    oracle = Oracle(pipelines.run, there, without=frozenset([name]))
    assert oracle.compare(DECISIONS[name].witness).difference


@each_decision
def test_its_witness_does_not_differ_with_it(name, there):
    made = Oracle(pipelines.run, there).compare(DECISIONS[name].witness)
    assert made.difference == ""
    if DECISIONS[name].kind is not Kind.REFERENCE:
        assert name in made.decided


@each_decision
def test_it_is_about_operators_that_are_drawn(name):
    operators = DECISIONS[name].operators
    assert operators <= NAMES | EXACT
    assert not operators or operators & names(DECISIONS[name].witness)


@pytest.mark.parametrize(
    ("operator", "name"),
    [
        (operator, name)
        for name, decision in DECISIONS.items()
        if decision.kind is Kind.REFERENCE
        for operator in sorted(decision.operators)
    ],
)
def test_each_operator_that_it_is_about_needs_it(operator, name, there):
    without = Oracle(pipelines.run, there, without=frozenset([name]))
    assert without.compare(WITNESSES[operator]).difference
    assert Oracle(pipelines.run, there).compare(WITNESSES[operator]).difference == ""


def _probe(*items, end="complete"):
    return ("probe", end, 0, ("items", *items))


def _case(*pipe, demand):
    return ("core", ("pipe", *pipe), ("demand", *demand))


FAILS = ("error", 1)
MOST = 2**63 - 1
WITNESSES = {
    **{
        operator: decision.witness
        for decision in DECISIONS.values()
        if decision.kind is Kind.REFERENCE
        for operator in decision.operators & names(decision.witness)
    },
    "reduce": _case(_probe(1, 3, 1), ("reduce", ("null", 9, 3)), demand=(MOST, 0, 0, "cancel")),
    "concat_map": _case(
        _probe(1, end=FAILS), ("concat_map", 2, ("pipe", _probe(7, 8))), demand=(1, 0, 0, MOST)
    ),
    "flat_map_iterable": _case(
        _probe(3, end=FAILS), ("flat_map_iterable", 2, 4), demand=(1, 0, 0, MOST)
    ),
    "publish": _case(_probe(1, end=FAILS), ("publish", 2), demand=(0, 0, 0, MOST)),
    "on_backpressure_latest": _case(
        _probe(1, end=FAILS), ("on_backpressure_latest",), demand=(0, 0, 0, MOST)
    ),
}


def test_the_page_names_the_same_decisions():
    decided = PAGE.read_text("utf-8").partition("## Decided differences\n")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| `([\w-]+)` \|", decided, flags=re.MULTILINE)
    assert listed == [*DECISIONS]


def test_the_events_of_sources_are_compared_or_the_page_says_why_not():
    demand = PAGE.read_text("utf-8").partition("### Demand\n")[2].partition("\n## ")[0]
    first = re.findall(r"^\| ([^|]+) \|", demand, flags=re.MULTILINE)
    told = {name for cell in first[1:] for name in cell.split(", ")}
    assert told | EXACT >= NAMES
    assert told <= NAMES - EXACT
