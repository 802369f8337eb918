"""``flow plugins``: what is installed, by whom, and what is wrong with it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from flow_core.plugins import PluginHost

PLUGIN = """
    from flow_core.plugins import (
        Backpressure, DisplaySpec, NamespaceSpec, OperatorSpec, SinkSpec, TranslationSpec, hookimpl
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
    def flow_displays():
        yield DisplaySpec("poster", "shout_x:poster")

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


def test_every_operator_is_listed_with_its_distribution_and_what_it_does(flow: Any) -> None:
    done = flow("plugins")
    assert (done.code, done.err) == (0, "")
    assert "flow-core" in row(done.out, "map")
    assert "The result of" in row(done.out, "map")
    assert "Problems" not in done.out
    for section in ("Plugins", "Operators", "Sources", "Engines", "Converters"):
        assert f"\n{section} " in f"\n{done.out}"


@pytest.mark.usefixtures("shout")
def test_plugins_of_others_are_listed_and_problems_come_at_the_end(flow: Any) -> None:
    done = flow("plugins")
    assert done.code == 0
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
        "thread": "same",
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
    "operators": {"kind", "backpressure", "asks", "answers", "conditional", "thread"}
    | {"placement", "method"},
    "sources": {"backpressure", "answers", "thread", "distributed", "method"},
    "sinks": {"backpressure", "method"},
    "engines": {"options"},
    "executors": set(),
    "clocks": set(),
    "displays": set(),
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


def test_the_list_fits_a_terminal(flow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = flow("plugins").out.split("\nProblems\n")[0].splitlines()
    assert len(lines) > 100
    assert max(map(len, lines)) <= 80


def test_words_choose_from_the_list(flow: Any) -> None:
    listed = flow("plugins", "take").out
    assert "take_while" in listed
    assert "filter" not in listed
    assert "Plugins" not in listed
    both = json.loads(flow("plugins", "take", "while", "--json").out)
    assert [record["name"] for record in both["operators"]] == ["take_while"]


def test_a_word_of_another_library_is_answered_in_the_list(flow: Any) -> None:
    done = flow("plugins", "chunk")
    assert done.code == 0
    assert "chunk: here it is batch()" in done.out
    assert "No record has this in its name." in done.out


def test_help_shows_how_an_operator_is_called_and_what_it_does(flow: Any) -> None:
    done = flow("help", "take")
    assert (done.code, done.err) == (0, "")
    first = done.out.splitlines()[0]
    assert first == "flow.take(count: int) -> Flow[T_co]"
    assert ">>> list(flow.range(" in done.out
    for fact in ("kind: stage", "back-pressure: passes demand on", "answers SYNC across threads"):
        assert fact in done.out


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("range", "flow_core.range("),
        ("read_lines", "flow_core.sources.files.read_lines(path: "),
        ("write_lines", "sink of flow-core"),
        ("progress", "flow_cli.progress.progress(label: str, total: int | None = None)"),
    ],
)
def test_help_shows_sources_sinks_and_what_is_for_pipe(flow: Any, name: str, says: str) -> None:
    assert says in flow("help", name).out


def test_help_writes_the_picture_of_an_operator(flow: Any, tmp_path: Path) -> None:
    file = tmp_path / "shown.svg"
    done = flow("help", "take", "--picture", str(file))
    assert (done.code, done.err) == (0, "")
    assert "a.take(2): 1 at 1 s, 2 at 3 s, completes at 3 s." in done.out
    assert file.read_text("utf-8").startswith("<svg ")


def test_help_says_why_there_is_no_picture(flow: Any) -> None:
    done = flow("help", "observe_on", "--picture")
    assert done.code == 2
    assert "observe_on has no picture. The items are the same" in done.err


def test_help_says_what_draws_the_pictures(flow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "flow_testing.pictures", None)
    done = flow("help", "take", "--picture")
    assert done.code != 0
    assert "pip install flow-testing" in done.err


def test_help_for_a_word_of_another_library_says_what_it_is_here(flow: Any) -> None:
    done = flow("help", "batched")
    assert done.code == 2
    assert "no operator 'batched' is installed; here it is batch()" in done.err


def test_a_check_that_finds_nothing_succeeds(flow: Any) -> None:
    done = flow("plugins", "nothing", "--check")
    assert (done.code, done.err) == (0, "")
    assert "Problems" not in done.out


@pytest.mark.usefixtures("shout")
def test_a_check_loads_everything_and_fails_if_something_cannot_be(flow: Any) -> None:
    assert flow("plugins", "shout").code == 0
    done = flow("plugins", "shout", "--check")
    assert done.code == 1
    assert "operator 'shout' cannot be loaded from shout_x:shout" in done.out
    assert "namespace 'loud' cannot be loaded from shout_x:Loud" in done.out


def test_help_knows_a_name_as_java_writes_it(flow: Any) -> None:
    assert flow("help", "flatMapIterable").out == flow("help", "flat_map_iterable").out
    assert flow("help", "fromIterable").out.startswith("flow_core.from_iterable(")
    assert "flat map" in flow("help", "flat map").err
