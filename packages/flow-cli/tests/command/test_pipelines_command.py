"""``flow run pipeline.toml`` and ``flow explain pipeline.toml``."""

from __future__ import annotations

import sys

import pytest

from flow_core.plugins import PluginHost
from flow_testing import TIMEOUT_S

WORDS = """
    description = "Long words of a file."

    [parameters]
    path = "words.txt"
    least = { type = "int", default = 3, help = "letters of the shortest word" }
    loud = false

    [source]
    use = "read_lines"
    path = { parameter = "path" }

    [[operators]]
    use = "map"
    mapper = { object = "builtins:len" }

    [[operators]]
    use = "filter"
    predicate = { at_least = { parameter = "least" } }
"""


@pytest.fixture
def words(write) -> None:
    write("words.txt", "a\nbcd\nefghi\n")
    write("words.toml", WORDS)


@pytest.mark.usefixtures("words")
def test_a_pipeline_without_a_sink_is_printed(flow) -> None:
    done = flow("run", "words.toml")
    assert (done.code, done.out, done.err) == (0, "3\n5\n", "")
    assert flow("run", "words.toml", "--limit", "1").out == "3\n"


@pytest.mark.usefixtures("words")
def test_parameters_are_options_after_the_dashes(flow, write) -> None:
    write("other.txt", "x\n")
    assert flow("run", "words.toml", "--", "--least", "5").out == "5\n"
    assert flow("run", "words.toml", "--", "--path", "other.txt", "--least=0").out == "1\n"
    assert flow("run", "words.toml", "--", "--no-loud").code == 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--lest", "1"), "words.toml has no parameter for '--lest'; did you mean '--least'?"),
        (("--least", "x"), "argument --least: invalid int value: 'x'"),
    ],
)
@pytest.mark.usefixtures("words")
def test_an_option_that_does_not_fit_is_explained(flow, options, says: str) -> None:
    done = flow("run", "words.toml", "--", *options)
    assert (done.code, done.out) == (2, "")
    assert says in done.err


@pytest.mark.usefixtures("words")
def test_help_after_the_dashes_is_about_the_pipeline(flow) -> None:
    done = flow("run", "words.toml", "--", "--help")
    assert done.code == 0
    assert "Long words of a file." in done.out
    assert "letters of the shortest word" in done.out
    assert "default: 3" in done.out


def test_a_parameter_without_a_default_must_be_given(flow, write) -> None:
    write(
        "job.toml",
        """
        [parameters]
        stop = { type = "int" }
        [source]
        use = "range"
        start = { parameter = "stop" }
        """,
    )
    done = flow("run", "job.toml")
    assert done.code == 2
    assert "job.toml needs --stop: flow run ... -- --stop VALUE" in done.err
    assert flow("run", "job.toml", "--", "--stop", "1").out == "0\n"


def test_a_sink_gets_the_items_and_nothing_is_printed(flow, write, project) -> None:
    write(
        "job.toml", 'source = { use = "range", start = 3 }\n[sink]\nuse = "write_lines"\npath="o"'
    )
    done = flow("run", "job.toml")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert (project / "o").read_text() == "0\n1\n2\n"


def test_a_sink_that_only_makes_something_is_noted(flow, write, project, monkeypatch) -> None:
    write(
        "lazy_x.py",
        """
        import flow_core
        from flow_core.plugins import SinkSpec, hookimpl

        def lazy():
            return flow_core.Operator("lazy", lambda flow: {"a": "frame"})

        @hookimpl
        def flow_sinks():
            yield SinkSpec("lazy", "lazy_x:lazy")
        """,
    )
    monkeypatch.syspath_prepend(str(project))
    host = PluginHost({"FLOW_DISABLE_PLUGINS": "*", "FLOW_LOAD_PLUGINS": "lazy_x"})
    monkeypatch.setattr("flow_core.plugins.host._host", host)
    write("job.toml", 'source = "empty"\nsink = "lazy"\n')
    done = flow("run", "job.toml")
    sys.modules.pop("lazy_x")
    assert (done.code, done.out) == (0, "")
    assert "flow: note: the sink 'lazy' gave a dict: {'a': 'frame'}" in done.err


def test_all_problems_of_a_file_are_reported_at_once_and_nothing_runs(flow, write) -> None:
    write("job.toml", '[source]\nuse = "rnge"\n[[operators]]\nuse = "tak"\n[sink]\nuse = "prnt"\n')
    done = flow("run", "job.toml")
    assert (done.code, done.out) == (2, "")
    lines = done.err.splitlines()
    assert lines[0].startswith("flow run: job.toml:1: [source] use: no source 'rnge'")
    assert "job.toml:3: [[operators]] 1 (tak) use: no operator 'tak'" in lines[1]
    assert "job.toml:5: [sink] use: no sink 'prnt'" in lines[2]


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("wrds.toml", "there is no file wrds.toml; did you mean 'words.toml'?"),
        ("no/words.toml", "there is no folder no, and so no file no/words.toml"),
    ],
)
@pytest.mark.usefixtures("words")
def test_the_error_for_a_missing_file_suggests_a_near_name(flow, target: str, says: str) -> None:
    done = flow("run", target)
    assert (done.code, done.out) == (2, "")
    assert says in done.err


def test_a_folder_is_not_a_pipeline(flow, project) -> None:
    (project / "job.toml").mkdir()
    done = flow("run", "job.toml")
    assert done.code == 2
    assert "job.toml cannot be read" in done.err


def test_malformed_input_fails_the_command_with_its_line_after_what_was_good(flow, write) -> None:
    data = write("points.jsonl", "1\n2\nthree\n")
    write("job.toml", 'source = { use = "read_json_lines", path = "points.jsonl" }')
    done = flow("run", "job.toml")
    assert (done.code, done.out) == (1, "1\n2\n")
    assert f"MalformedInputError: {data}:3: no JSON" in done.err


def test_an_engine_that_is_not_installed_is_named_and_can_be_overruled(flow, write) -> None:
    write("job.toml", 'source = { use = "range", start = 1 }\n[engine]\non = "spark"\nmaster = "x"')
    done = flow("run", "job.toml")
    assert done.code == 2
    assert "job.toml:2: [engine] on: no engine 'spark' is installed" in done.err
    assert "pip install flow-spark" in done.err
    assert flow("run", "job.toml", "--on", "local").out == "0\n"


@pytest.mark.usefixtures("words")
def test_a_pipeline_is_drawn_with_its_sink_and_its_places_in_the_file(flow) -> None:
    done = flow("explain", "words.toml", "--", "--least", "4")
    assert done.code == 0
    assert "read_lines(" in done.out
    assert "map | filter" in done.out
    assert "map(len)  words.toml:13" in done.out
    assert "filter(at_least 4)  words.toml:17" in done.out
    assert "sink print()" in done.out


@pytest.mark.usefixtures("words")
def test_drawing_runs_nothing_and_opens_no_file(flow, project) -> None:
    (project / "words.txt").unlink()
    assert flow("explain", "words.toml").code == 0


def test_a_hyphen_is_the_standard_input_and_output(start, write) -> None:
    write(
        "job.toml",
        """
        source = { use = "read_json_lines", path = "-" }
        operators = [{ use = "filter", predicate = { at_least = 2 } }]
        sink = { use = "write_json_lines", path = "-" }
        """,
    )
    with start("run", "job.toml") as running:
        out, err = running.process.communicate("1\n2\n3\n", timeout=6 * TIMEOUT_S)
    assert (running.process.returncode, out, err) == (0, "2\n3\n", "")
