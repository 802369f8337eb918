"""``flow plugins``: what is installed, by whom, and what is wrong with it."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from flow_core.plugins import PluginHost

PLUGIN = """
    from flow_core.plugins import (
        Backpressure, NamespaceSpec, OperatorSpec, SinkSpec, TranslationSpec, hookimpl
    )
    from flow_core.protocols import Fusion

    @hookimpl
    def flow_operators():
        yield OperatorSpec(
            "shout", "shout_x:shout", summary="Louder [bold]items[/].",
            asks=Fusion.ANY, answers=Fusion.ASYNC, backpressure=Backpressure.ERROR,
        )
        yield OperatorSpec("map", "shout_x:map")

    @hookimpl
    def flow_sinks():
        yield SinkSpec("to_nowhere", "shout_x:sink")
        yield "nonsense"

    @hookimpl
    def flow_namespaces():
        yield NamespaceSpec("loud", "shout_x:Loud")

    @hookimpl
    def flow_translations():
        yield TranslationSpec("every", "shout_x:parts_of_every", template="shout_x:EVERY")
"""


@pytest.fixture
def shout(write: Any, project: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    write("shout_x.py", PLUGIN)
    monkeypatch.syspath_prepend(str(project))
    host = PluginHost({"FLOW_DISABLE_PLUGINS": "*", "FLOW_LOAD_PLUGINS": "shout_x"})
    monkeypatch.setattr("flow_core.plugins.host._host", host)
    monkeypatch.delitem(sys.modules, "shout_x")


def row(text: str, name: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(f"{name} "))


def test_every_operator_is_listed_with_its_facts_and_its_distribution(flow: Any) -> None:
    done = flow("plugins")
    assert (done.code, done.err) == (0, "")
    assert "flow-core" in row(done.out, "map")
    assert "stage" in row(done.out, "map")
    assert "passes demand on" in row(done.out, "map")
    assert "SYNC across threads" in row(done.out, "take")
    assert "boundary" in row(done.out, "hide")
    assert "Problems" not in done.out
    for section in ("Plugins", "Operators", "Sources", "Engines", "Converters"):
        assert f"\n{section} " in f"\n{done.out}"


@pytest.mark.usefixtures("shout")
def test_plugins_of_others_are_listed_and_problems_come_at_the_end(flow: Any) -> None:
    done = flow("plugins")
    assert done.code == 0
    assert "SYNC+ASYNC" in row(done.out, "shout")
    assert "fails without demand" in row(done.out, "shout")
    assert "Louder [bold]items[/]." in row(done.out, "shout")
    assert "to_nowhere" in done.out
    assert "shout_x:EVERY" in row(done.out, "every")
    listed, problems = done.out.split("\nProblems\n")
    assert "operator 'map' is registered by flow-core" in problems
    assert "flow_sinks yielded 'nonsense'" in problems
    assert "shout_x" in listed


@pytest.mark.usefixtures("shout")
def test_the_list_is_there_for_programs_too(flow: Any) -> None:
    document = json.loads(flow("plugins", "--json").out)
    operators = {record["name"]: record for record in document["operators"]}
    assert operators["shout"] == {
        "name": "shout",
        "target": "shout_x:shout",
        "summary": "Louder [bold]items[/].",
        "distribution": None,
        "version": None,
        "plugin": "shout_x",
        "kind": "boundary",
        "backpressure": "error",
        "asks": ["SYNC", "ASYNC"],
        "answers": ["ASYNC"],
        "conditional": False,
        "placement": "driver",
        "method": None,
    }
    assert operators["map"]["distribution"] == "flow-core"
    assert document["format"] == 1
    assert {record["name"] for record in document["sinks"]} >= {"print", "to_nowhere"}
    assert {record["name"] for record in document["sinks"] if record["plugin"] == "shout_x"} == {
        "to_nowhere"
    }
    assert {record["name"] for record in document["engines"]} == {"local"}
    assert [problem["plugin"] for problem in document["problems"]] == ["shout_x", "shout_x"]
    assert {plugin["name"] for plugin in document["plugins"]} == {"core", "shout_x"}


COMMON = {"name", "target", "summary", "distribution", "version", "plugin"}
SHAPE = {
    "operators": {"kind", "backpressure", "asks", "answers", "conditional", "placement", "method"},
    "sources": {"backpressure", "answers", "distributed", "method"},
    "sinks": {"backpressure", "method"},
    "engines": {"options"},
    "namespaces": set(),
    "converters": {"accepts"},
    "translations": {"template"},
}


@pytest.mark.usefixtures("shout")
def test_the_documented_keys_are_all_there_in_their_order(flow: Any) -> None:
    document = json.loads(flow("plugins", "--json").out)
    assert list(document) == ["format", "plugins", *SHAPE, "problems"]
    for section, facts in SHAPE.items():
        assert document[section], section
        for record in document[section]:
            assert set(record) == COMMON | facts
    assert set(document["plugins"][0]) == {"name", "module", "distribution", "version"}
    assert set(document["problems"][0]) == {"plugin", "distribution", "version", "message"}
