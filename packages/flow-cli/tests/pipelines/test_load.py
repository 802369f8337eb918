"""Pipelines as TOML: what a file can say, and what is said of one that is wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import flow_core
from flow_cli import pipelines
from flow_cli.pipelines import PipelineError
from flow_core.structure import stages_of

Write = Callable[[str, str], Path]


@pytest.fixture
def load(write: Write) -> Callable[..., pipelines.Pipeline]:
    """Write a file and load it."""

    def load(text: str, **parameters: object) -> pipelines.Pipeline:
        return pipelines.load(write("job.toml", text), parameters)

    return load


@pytest.fixture
def jobs(write: Write) -> Iterator[None]:
    """A module beside the file."""
    write(
        "jobs_x.py",
        """
        import flow_core

        class Tools:
            @staticmethod
            def double(n):
                return 2 * n

        numbers = flow_core.range(3)
        plain = [1, 2]
        limit = 7

        def double(n):
            return 2 * n

        @flow_core.prepare
        def total(numbers):
            return numbers.map(double).sum()

        def halves(numbers):
            return numbers.map(lambda n: n / 2)

        doubled = flow_core.Operator("doubled", lambda numbers: numbers.map(double))

        def broken():
            raise RuntimeError("boom")
        """,
    )
    yield
    sys.modules.pop("jobs_x", None)


Load = Callable[..., pipelines.Pipeline]
RANGE = '[source]\nuse = "range"\nstart = 10\n'


# --- what a file can say ------------------------------------------------------------------------


def test_a_source_and_operators_are_one_flow(load: Load) -> None:
    pipeline = load(f"""{RANGE}
[[operators]]
use = "skip"
count = 2

[[operators]]
use = "buffer_with_count"
count = 3
""")
    assert list(pipeline.flow()) == [[2, 3, 4], [5, 6, 7], [8, 9]]
    assert list(pipeline.flow()) == [[2, 3, 4], [5, 6, 7], [8, 9]]
    assert (pipeline.engine, pipeline.has_sink) == ("local", False)


def test_names_alone_suffice_without_arguments(load: Load) -> None:
    pipeline = load('source = "empty"\noperators = ["count", "pairwise"]\nsink = "print"\n')
    assert list(pipeline.flow()) == []
    assert pipeline.run() == 0


def test_arguments_may_be_given_by_position(load: Load) -> None:
    pipeline = load("""
source = { use = "just", args = ["a", "b", "c"] }
operators = [{ use = "take", args = [2] }]
""")
    assert list(pipeline.flow()) == ["a", "b"]


@pytest.mark.parametrize(
    ("mapper", "first"),
    [
        ('{ item = "delay" }', 20),
        ('{ item = ["carrier", "delay"] }', ("UA", 20)),
        ('{ object = "builtins:len" }', 2),
        ('{ item = "delay", at_least = 15 }', True),
        ('{ item = "delay", less_than = 15 }', False),
        ('{ item = "carrier", one_of = ["UA", "AA"] }', True),
        ('{ item = "carrier", not_equals = "UA" }', False),
    ],
)
def test_functions_are_objects_parts_of_items_and_comparisons(
    load: Load, write: Write, mapper: str, first: object
) -> None:
    write("delays.csv", "carrier,delay\nUA,20\nB6,\n")
    pipeline = load(f"""
[source]
use = "read_csv"
path = "delays.csv"
types = {{ delay = "int" }}

[[operators]]
use = "map"
mapper = {mapper}
""")
    assert pipeline.flow().first() == first


def test_an_empty_field_passes_no_comparison_of_order(load: Load, write: Write) -> None:
    write("delays.csv", "carrier,delay\nUA,20\nB6,\n")
    for relation in ("at_least", "at_most", "less_than", "greater_than"):
        pipeline = load(f"""
source = {{ use = "read_csv", path = "delays.csv", types = {{ delay = "int" }} }}
operators = [{{ use = "filter", predicate = {{ item = "delay", {relation} = 20 }} }}]
""")
        assert "B6" not in str(list(pipeline.flow()))


@pytest.mark.usefixtures("jobs")
def test_modules_beside_the_file_are_found_and_the_path_is_left_as_it_was(load: Load) -> None:
    before = list(sys.path)
    pipeline = load(f"""{RANGE}
[[operators]]
use = "map"
mapper = {{ object = "jobs_x:Tools.double" }}
""")
    assert pipeline.flow().last() == 18
    assert sys.path == before


@pytest.mark.parametrize(
    ("name", "items"),
    [("total", [90]), ("halves", [n / 2 for n in range(10)]), ("doubled", [*range(0, 20, 2)])],
)
@pytest.mark.usefixtures("jobs")
def test_an_operator_may_be_an_object_that_pipe_takes(
    load: Load, name: str, items: list[object]
) -> None:
    made = load(
        f'[source]\nuse = "range"\nargs = [10]\n[[operators]]\nobject = "jobs_x:{name}"'
    ).flow()
    assert list(made) == items


@pytest.mark.usefixtures("jobs")
def test_a_prepared_flow_may_stand_in_place_of_a_function(load: Load) -> None:
    pipeline = load("""
source = { use = "from_iterable", items = [[1, 2], [3]] }
operators = [{ use = "map", mapper = { object = "jobs_x:total.first" } }]
""")
    assert list(pipeline.flow()) == [6, 6]


@pytest.mark.parametrize(("name", "items"), [("numbers", [0, 1, 2]), ("plain", [1, 2])])
@pytest.mark.usefixtures("jobs")
def test_a_source_may_be_an_object_that_a_converter_accepts(
    load: Load, name: str, items: list[int]
) -> None:
    assert list(load(f'source = {{ object = "jobs_x:{name}" }}').flow()) == items


def test_a_path_in_the_file_begins_beside_it_and_a_given_one_here(
    load: Load, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("words.txt", "beside\n")
    write("here/words.txt", "here\n")
    monkeypatch.chdir(tmp_path / "here")
    text = """
[parameters]
path = "words.txt"

[source]
use = "read_lines"
path = { parameter = "path" }
"""
    assert list(load(text).flow()) == ["beside"]
    assert list(load(text, path="words.txt").flow()) == ["here"]


def test_parameters_have_defaults_types_and_stand_anywhere(load: Load) -> None:
    text = """
[parameters]
letters = ["a", "b"]
least = 1
most = { type = "int", default = 2, help = "how many" }

[source]
use = "from_iterable"
items = { parameter = "letters" }

[[operators]]
use = "take"
count = { parameter = "most" }

[options]
limit = { parameter = "least" }
"""
    assert list(load(text).flow()) == ["a"]
    assert list(load(text, least=5, letters=["x", "y", "z"]).flow()) == ["x", "y"]


def test_the_sink_gets_the_flow_and_what_it_gives_is_returned(load: Load, tmp_path: Path) -> None:
    pipeline = load(f'{RANGE}\n[sink]\nuse = "write_json_lines"\npath = "out.jsonl"\n')
    assert pipeline.has_sink
    assert pipeline.run() == 10
    assert (tmp_path / "out.jsonl").read_text().splitlines()[-1] == "9"


def test_without_a_sink_the_items_are_printed(
    load: Load, capsys: pytest.CaptureFixture[str]
) -> None:
    assert load('source = { use = "range", start = 2 }').run() == 2
    assert capsys.readouterr().out == "0\n1\n"


def test_an_engine_may_be_named_alone_or_with_options(load: Load) -> None:
    pipeline = load(f'engine = "local"\n{RANGE}')
    assert pipeline.engine == "local"
    pipeline = load(f'{RANGE}\n[engine]\non = "local"\nname = "nightly"\n')
    assert (pipeline.engine, pipeline.engine_options.name) == ("local", "nightly")


def test_an_error_of_a_stage_says_where_in_the_file_it_was_assembled(
    load: Load, tmp_path: Path
) -> None:
    pipeline = load(f"""{RANGE}
[[operators]]
use = "map"
mapper = {{ item = "x" }}
""")
    (stage,) = stages_of(pipeline.flow())
    assert stage.assembled_at == f"{tmp_path / 'job.toml'}:5"
    with pytest.raises(TypeError) as caught:
        pipeline.flow().first()
    assert "job.toml:5" in "".join(caught.value.__notes__)


def test_operators_in_one_list_are_at_its_line(load: Load, tmp_path: Path) -> None:
    pipeline = load(f'description = "one"\noperators = ["pairwise", "count"]\n{RANGE}')
    line = f"{tmp_path / 'job.toml'}:2"
    assert [stage.assembled_at for stage in stages_of(pipeline.flow())] == [line, line]
    with pytest.raises(PipelineError, match=r"job.toml:2: .* 1 \(pairwyse\) use: no operator"):
        load(f'description = "one"\noperators = ["pairwyse"]\n{RANGE}')


# --- nothing runs before all is checked ---------------------------------------------------------


@pytest.mark.usefixtures("jobs")
def test_loading_calls_nothing(load: Load) -> None:
    pipeline = load("""
[source]
use = "from_callable"
function = { object = "jobs_x:broken" }
""")
    pipeline.flow()
    with pytest.raises(RuntimeError, match="boom"):
        pipeline.run()


def test_a_sink_is_made_before_the_flow_runs(load: Load) -> None:
    pipeline = load(f'{RANGE}\n[sink]\nuse = "write_csv"\npath = "x.csv"\ncolumns = ["a"]\n')
    assert repr(pipeline.sink()).startswith("write_csv(")


def test_an_error_of_a_factory_has_a_note_with_its_table(load: Load, tmp_path: Path) -> None:
    pipeline = load(f'{RANGE}\n[[operators]]\nuse = "take"\ncount = -1\n')
    with pytest.raises(ValueError, match="take") as caught:
        pipeline.flow()
    assert caught.value.__notes__ == [f"in {tmp_path / 'job.toml'}:5: [[operators]] 1 (take)"]


# --- what is wrong ------------------------------------------------------------------------------


def problems(load: Load, text: str, **parameters: object) -> list[str]:
    with pytest.raises(PipelineError) as caught:
        load(text, **parameters)
    assert str(caught.value) == "\n".join(caught.value.problems)
    return [each.partition("job.toml")[2] for each in caught.value.problems]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("source = [", ": it is not TOML: "),
        ("", ": there is no [source]"),
        ('sorce = "range"', ": [sorce]: there is no such table; did you mean 'source'?"),
        ("[source]\nstart = 1", ':1: [source]: which source? write use = "NAME"'),
        ("source = 3", ": [source]: 3 is neither a name nor a table"),
        ('[source]\nuse = "rnge"', ":1: [source] use: no source 'rnge' is installed; did you"),
        (
            '[source]\nuse = "range"\nstrat = 1',
            ":1: [source] strat: range has no such parameter; did you mean 'start'?",
        ),
        ('[source]\nuse = "range"', ":1: [source] start: range needs it: an int"),
        (
            '[source]\nuse = "range"\nstart = "1"',
            ":1: [source] start: '1', where it takes an int",
        ),
        ('[source]\nuse = "range"\nstart = true', ":1: [source] start: True, where it takes an"),
        ('[source]\nuse = "range"\nargs = [1, 2, 3, 4]', "4 arguments where range takes at most 3"),
        ('[source]\nuse = "range"\nargs = [1]\nstart = 1', "start: it is among args already"),
        ('[source]\nuse = "range"\nargs = 1', "args: 1 is not a list"),
        ('[source]\nuse = "read_csv"\npath = 1', "path: 1, where it takes a path, as text"),
        (
            '[source]\nuse = "read_csv"\npath = "x"\ntypes = { delay = 1 }',
            "types: 1, where it takes a text",
        ),
        (
            '[source]\nuse = "read_csv"\npath = "x"\ntypes = "int"',
            "types: 'int', where it takes a table",
        ),
        ('[source]\nuse = "from_iterable"\nitems = "abc"', "items: 'abc', where it takes a list"),
        ('[source]\nobject = "nowhere_x:thing"', "nowhere_x:thing cannot be imported: Module"),
        ('[source]\nobject = "builtins:lne"', "did you mean 'len'?"),
        ('[source]\nobject = "1 + 1"', "where it takes the name of an object"),
        ('[source]\nobject = "a:b"\nstart = 1', "an object takes no arguments"),
        (f'{RANGE}operators = "count"', "start"),
        (
            f'{RANGE}[[operators]]\nobject = "sys:path"',
            ":4: [[operators]] 1 (sys:path) object: sys:path is [",
        ),
        (
            f'{RANGE}[[operators]]\nobject = "math:sqrt"\nx = 1',
            "an object takes no arguments; name one that does by `use`",
        ),
        (f"{RANGE}[operators]\na = 1", "operators is a list: begin each with [[operators]]"),
        (
            f'{RANGE}[[operators]]\nuse = "count"\n[[operators]]\nuse = "fliter"',
            ":6: [[operators]] 2 (fliter) use: no operator 'fliter' is installed; did you mean",
        ),
        (
            f'{RANGE}[[operators]]\nuse = "map"\nmapper = "lambda n: n"',
            ":4: [[operators]] 1 (map) mapper: 'lambda n: n', where it takes a function, written",
        ),
        (
            f'{RANGE}[[operators]]\nuse = "map"\nmapper = {{ itm = "x" }}',
            "did you mean 'item'?",
        ),
        (
            f'{RANGE}[[operators]]\nuse = "map"\nmapper = {{ equals = 1, at_least = 2 }}',
            "'equals' and 'at_least' cannot be one function",
        ),
        (
            f'{RANGE}[[operators]]\nuse = "map"\nmapper = {{ one_of = 1 }}',
            "'one_of' takes a list, not 1",
        ),
        (
            f'{RANGE}[[operators]]\nuse = "map"\nmapper = {{ attribute = "__class__" }}',
            "takes the name of a public attribute",
        ),
        (
            f'{RANGE}[[operators]]\nuse = "map"\nmapper = {{ object = "sys:path" }}',
            "it takes a function",
        ),
        (f'{RANGE}[sink]\nuse = "prnt"', ":4: [sink] use: no sink 'prnt' is installed; did you"),
        (f'{RANGE}[engine]\non = "spark"', ":4: [engine] on: no engine 'spark'"),
        (f'{RANGE}[engine]\non = "spark"', "pip install flow-spark"),
        (f'{RANGE}[engine]\nmaster = "x"', "master: the engine 'local' takes no master"),
        (f'{RANGE}[engine]\nmster = "x"', "mster: there is no such key; did you mean 'master'?"),
        (f"{RANGE}[options]\nlimit = -1", ":4: [options] limit: -1 is not a number of items"),
        (f"{RANGE}[options]\nlimt = 1", "limt: there is no such key; did you mean 'limit'?"),
        (f"{RANGE}[parameters]\nBig = 1", "Big: a name is lower-case letters"),
        (f"{RANGE}[parameters]\nclass = 1", ":4: [parameters] class: this name is taken"),
        (f"{RANGE}[parameters]\nhelp = 1", "help: this name is taken"),
        (f'{RANGE}[parameters]\nn = {{ type = "integer" }}', "n: type is one of int, float"),
        (f'{RANGE}[parameters]\nn = {{ type = "int" }}', "n: it needs a value: -- --n INT"),
        (
            f'{RANGE}[parameters]\nn = {{ type = "int", default = "x" }}',
            "n: the default 'x' is not of type int",
        ),
        (
            '[parameters]\nlimit = 1\n[source]\nuse = "range"\nstart = { parameter = "limt" }',
            ":3: [source] start: there is no parameter 'limt'; did you mean 'limit'?",
        ),
        (
            '[parameters]\nn = "x"\n[source]\nuse = "range"\nstart = { parameter = "n" }',
            "start: 'x', where it takes an int",
        ),
    ],
)
def test_a_problem_is_reported_by_file_table_and_key(load: Load, text: str, says: str) -> None:
    found = problems(load, text)
    assert any(says in each for each in found), found


def test_all_problems_are_reported_at_once(load: Load) -> None:
    found = problems(
        load,
        """
[source]
use = "range"
start = "x"

[[operators]]
use = "tak"

[[operators]]
use = "skip"
cuont = 1

[sink]
use = "nowhere"
""",
    )
    assert [each.partition(": ")[0] for each in found] == [":2", ":6", ":9", ":9", ":13"]


@pytest.mark.parametrize(
    ("given", "says"),
    [({"n": "x"}, "n: 'x' is not of type int"), ({"m": 1}, "m: there is no such parameter")],
)
def test_a_value_that_a_parameter_does_not_take_is_reported(
    load: Load, given: dict[str, object], says: str
) -> None:
    found = problems(load, f"[parameters]\nn = 1\n{RANGE}", **given)
    assert any(says in each for each in found), found


def test_a_file_that_is_not_there_is_the_usual_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        pipelines.load(tmp_path / "nowhere.toml")


def test_an_operator_that_makes_no_flow_can_only_be_last(
    load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    def total() -> flow_core.Operator[int, int]:
        return flow_core.Operator("total", lambda ints: sum(ints))

    host = flow_core.plugins.plugin_host()  # type: ignore[attr-defined]
    monkeypatch.setattr(type(host), "operator", lambda self, name: total)
    pipeline = load(f'{RANGE}\n[[operators]]\nuse = "total"\n')
    with pytest.raises(
        PipelineError, match=r"\(total\): it did not make a Flow, but 45; it can only be"
    ):
        pipeline.flow()
