"""``flow run``: what it prints, and what it says when it cannot."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

from flow_testing import Drops

NUMBERS = """
    import flow_core as flow

    numbers = flow.range(6)
"""


# --- flows and functions ------------------------------------------------------------------------


def test_the_items_of_a_flow_are_printed_one_a_line(flow, write) -> None:
    write("jobs.py", NUMBERS)
    done = flow("run", "jobs.py:numbers")
    assert (done.code, done.out, done.err) == (0, "0\n1\n2\n3\n4\n5\n", "")


def test_a_file_may_be_anywhere_and_imports_its_neighbours(flow, write) -> None:
    write("deep/er/neighbour.py", "def twice(n): return 2 * n")
    write(
        "deep/er/jobs.py",
        """
        import flow_core as flow
        from neighbour import twice

        doubled = flow.range(3).map(twice)
        """,
    )
    path = list(sys.path)
    assert flow("run", "deep/er/jobs.py:doubled").out == "0\n2\n4\n"
    assert sys.path == path
    sys.modules.pop("neighbour")


def test_a_module_is_found_from_the_current_folder(flow, write) -> None:
    write("package_x/__init__.py", "")
    write("package_x/jobs.py", NUMBERS)
    assert flow("run", "package_x.jobs:numbers").out.startswith("0\n1\n")


def test_a_file_may_be_called_like_a_module_of_the_standard_library(flow, write) -> None:
    write("queue.py", NUMBERS)
    before = sys.modules.get("queue")
    assert flow("run", "queue.py:numbers").code == 0
    assert sys.modules.get("queue") is before


def test_dataclasses_of_a_file_know_their_annotations(flow, write) -> None:
    write(
        "records.py",
        """
        from __future__ import annotations
        import typing
        from dataclasses import KW_ONLY, dataclass
        import flow_core as flow

        @dataclass
        class Point:
            x: int
            _: KW_ONLY
            y: int = 0

        points = flow.range(1).map(Point).map(lambda p: (p, typing.get_type_hints(Point)["x"]))
        """,
    )
    assert flow("run", "records.py:points").out == "(Point(x=0, y=0), <class 'int'>)\n"


def test_limit_stops_after_the_given_number_of_items(flow, write) -> None:
    write("jobs.py", "import flow_core, itertools\nf = flow_core.from_iterable(itertools.count())")
    assert flow("run", "jobs.py:f", "--limit", "3").out == "0\n1\n2\n"
    assert flow("run", "jobs.py:f", "--limit", "0").out == ""


def test_a_nested_attribute_can_be_named(flow, write) -> None:
    write("jobs.py", "import flow_core\nclass Jobs:\n    one = flow_core.just(1)")
    assert flow("run", "jobs.py:Jobs.one").out == "1\n"


def test_a_function_that_returns_a_flow_has_it_run(flow, write) -> None:
    write("jobs.py", "import flow_core\ndef make(): return flow_core.just('made')")
    assert flow("run", "jobs.py:make").out == "made\n"


def test_a_function_that_returns_none_does_its_own_output(flow, write) -> None:
    write("jobs.py", "def main(): print('own')")
    done = flow("run", "jobs.py:main")
    assert (done.code, done.out, done.err) == (0, "own\n", "")


@pytest.mark.parametrize("annotation", ["Engine", "'Engine'", "Engine | None", "LocalEngine"])
def test_a_function_whose_first_parameter_is_an_engine_gets_the_engine(
    flow, write, annotation: str
) -> None:
    write(
        "jobs.py",
        f"""
        import flow_core
        from flow_core.engine import Engine, LocalEngine

        def main(engine: {annotation}):
            return engine.place(flow_core.just(engine.name))
        """,
    )
    assert flow("run", "jobs.py:main").out == "local\n"


as_text_or_late = pytest.mark.parametrize(
    "future",
    [
        "from __future__ import annotations",
        pytest.param(
            "",
            marks=pytest.mark.skipif(
                sys.version_info < (3, 14), reason="for Python 3.14, which evaluates hints late"
            ),
        ),
    ],
    ids=["as text", "late"],
)


@as_text_or_late
def test_an_annotation_that_only_type_checkers_import_is_understood(
    flow, write, future: str
) -> None:
    write(
        "jobs.py",
        f"""
        {future}
        from typing import TYPE_CHECKING

        if TYPE_CHECKING:
            from pathlib import Path
            from flow_core.engine import Engine

        def main(engine: Engine, path: Path, count: int | None = None):
            print(engine.name, type(path).__name__, count)
        """,
    )
    done = flow("run", "jobs.py:main", "--", "--path", "x", "--count", "3")
    assert done.out.startswith("local ")
    assert done.out.endswith("Path 3\n")


@as_text_or_late
def test_a_function_that_only_a_type_checker_understands_runs(flow, write, future: str) -> None:
    write(
        "jobs.py",
        f"""
        {future}
        from typing import TYPE_CHECKING
        import flow_core as flow

        if TYPE_CHECKING:
            from decimal import Decimal

        def main(start: int = 0, scale: Decimal | None = None) -> flow.Flow[Decimal]:
            return flow.just(start)

        def quiet(scale: Decimal | None = None) -> None:
            print("own")
        """,
    )
    assert flow("run", "jobs.py:main", "--", "--start", "4").out == "4\n"
    assert "--start INT  default: 0" in flow("run", "jobs.py:main", "--", "--help").out
    refused = flow("run", "jobs.py:main", "--", "--scale", "4")
    assert "'scale': Decimal | None, which no option can give" in refused.err
    assert "source just(0)" in flow("explain", "jobs.py:main").out
    assert flow("run", "jobs.py:quiet").out == "own\n"


# --- options of a function ----------------------------------------------------------------------

TYPED = """
    from pathlib import Path
    from typing import Literal, Optional
    from flow_core.engine import Engine

    def main(
        engine: Engine,
        whole: int = 1,
        *,
        part: float = 0.5,
        a_name: str = "n",
        loud: bool = False,
        quiet: bool = True,
        where: Path = Path("."),
        maybe: Optional[int] = None,
        one_of: Literal["a", "b"] = "a",
        bare=7,
    ):
        '''Prints what it gets.'''
        print([whole, part, a_name, loud, quiet, where.name, maybe, one_of, bare])

    def needy(*, much: int, more: str): ...

    def odd(thing: dict): ...

    def lists(*, some_names: list[str] | None = None, n: int = 1): ...
"""


@pytest.mark.parametrize(
    ("options", "printed"),
    [
        ("", "[1, 0.5, 'n', False, True, '', None, 'a', 7]"),
        ("--whole 2 --part 1e3", "[2, 1000.0, 'n', False, True, '', None, 'a', 7]"),
        ("--a-name x --where p/q", "[1, 0.5, 'x', False, True, 'q', None, 'a', 7]"),
        ("--a_name=y --maybe 4", "[1, 0.5, 'y', False, True, '', 4, 'a', 7]"),
        ("--loud --no-quiet", "[1, 0.5, 'n', True, False, '', None, 'a', 7]"),
        ("--loud yes --quiet false", "[1, 0.5, 'n', True, False, '', None, 'a', 7]"),
        ("--one-of b --bare 8", "[1, 0.5, 'n', False, True, '', None, 'b', 8]"),
    ],
)
def test_options_become_arguments_of_their_annotated_types(
    flow, write, options: str, printed: str
) -> None:
    write("jobs.py", TYPED)
    done = flow("run", "jobs.py:main", "--", *options.split())
    assert (done.code, done.err) == (0, "")
    assert done.out == f"{printed}\n"


@pytest.mark.parametrize(
    ("function", "options", "says"),
    [
        ("main", "--whole many", "argument --whole: invalid int value: 'many'"),
        ("main", "--loud perhaps", "'perhaps' is not true or false"),
        ("main", "--one-of c", "invalid choice: 'c'"),
        ("main", "--wohle 3", "no parameter for '--wohle'; did you mean '--whole'?"),
        ("main", "3", "no parameter for '3'"),
        ("needy", "--much 1", "needy() needs --more"),
        ("odd", "", "odd() needs 'thing'"),
        ("lists", "--some_names a", "has 'some_names': list[str] | None, which no option can give"),
        ("lists", "--some-names=a", "has 'some_names': list[str] | None, which no option can give"),
        ("lists", "--some-name a", "lists() has no parameter for '--some-name'; it takes --n"),
    ],
)
def test_an_option_that_does_not_fit_is_explained(
    flow, write, function: str, options: str, says: str
) -> None:
    write("jobs.py", TYPED)
    done = flow("run", f"jobs.py:{function}", "--", *options.split())
    assert done.code == 2
    assert says in done.err
    assert done.err.count("\n") == 1


def test_help_after_the_dashes_is_about_the_function(flow, write) -> None:
    write("jobs.py", TYPED)
    done = flow("run", "jobs.py:main", "--", "--help")
    assert done.code == 0
    assert "Prints what it gets." in done.out
    assert "--part FLOAT" in done.out
    assert "default: 0.5" in done.out


def test_an_option_of_the_function_before_the_dashes_is_explained(flow, write) -> None:
    write("jobs.py", TYPED)
    done = flow("run", "jobs.py:main", "--whole", "3")
    assert done.code == 2
    assert "takes no --whole; options of jobs.py:main itself come after `--`" in done.err


def test_a_flow_takes_no_options(flow, write) -> None:
    write("jobs.py", NUMBERS)
    done = flow("run", "jobs.py:numbers", "--", "--x", "1")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "numbers is a flow and takes no options" in done.err


# --- what cannot be run -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("job.py:numbers", "there is no file job.py; did you mean 'jobs.py'?"),
        ("no/where/jobs.py:numbers", "there is no folder no"),
        ("jobs.py:number", "did you mean 'numbers'?"),
        ("jobs.py:zzz", "jobs.py has no 'zzz'. It has: numbers, helper()"),
        ("jobs.py", "write jobs.py:NAME. It has: numbers, helper()"),
        ("jobs:", "write jobs:NAME"),
        ("jobz:numbers", "there is no module 'jobz'"),
        ("jobs.inner:numbers", "there is no module 'jobs.inner'"),
        ("no_such_package_x.y:z", "there is no module 'no_such_package_x'"),
        ("..:x", ".. is a folder; name a Python file in it"),
        ("jobs.py:constant", "is neither a Flow nor a function, but a int: 42"),
        ("jobs.py:Thing", "is neither a Flow nor a function, but a type"),
        ("jobs.py:helper", "helper() returned a value that is not a Flow: a list: [1, 2]"),
    ],
)
def test_a_target_that_is_not_there_or_no_flow_is_explained(
    flow, write, target: str, says: str
) -> None:
    write(
        "jobs.py",
        """
        import flow_core
        from textwrap import dedent

        numbers = flow_core.range(3)
        constant = 42
        class Thing: ...
        def helper(): return [1, 2]
        def _hidden(): ...
        """,
    )
    done = flow("run", target)
    assert done.code == 2
    assert says in done.err
    assert done.err.startswith("flow run: ")
    assert done.err.count("\n") == 1


def test_a_near_name_of_a_missing_attribute_comes_with_the_candidates(flow, write) -> None:
    write("jobs.py", NUMBERS)
    err = flow("run", "jobs.py:nubmers").err
    assert "did you mean 'numbers'?" in err
    assert "It has: numbers" in err


def test_a_list_that_a_function_returns_comes_with_the_way_out(flow, write) -> None:
    write("jobs.py", "def make(): return [1]")
    assert "flow_core.from_iterable()" in flow("run", "jobs.py:make").err


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import flow_core\n1 / 0\n", "ZeroDivisionError: division by zero"),
        ("import flow_core\ndef broken(:\n", "SyntaxError"),
        ("import flow_core\nimport no_such_module_x\n", "No module named 'no_such_module_x'"),
        ("import flow_core\nraise SystemExit(4)\n", "SystemExit: 4"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_named_with_the_line(
    flow, write, code: str, says: str
) -> None:
    write("jobs.py", code)
    done = flow("run", "jobs.py:x")
    assert done.code == 2
    assert "jobs.py cannot be loaded" in done.err
    assert says in done.err
    assert "jobs.py:2" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("flow.range(3).mapp(str)", "Flow has no 'mapp'; did you mean 'map'?"),
        ("flow.range(3).merge_with(x)", "Flow has no 'merge_with'; instead: merge(*others)"),
        ("flow.range(3).pipe(flow.operators.map(str))", "it is a method of Flow: map(mapper)"),
        ("flow.rnge(3)", "flow_core has no 'rnge'; did you mean 'range'?"),
        ("flow.range(3).progress('x')", "here it is flow_cli.progress.progress, for pipe"),
        ("flow.range(3).lift(list)", "it is an operator for pipe(): flow_core.operators.lift"),
        ("flow.pairwise()", "it is a method of Flow: pairwise()"),
        ("host().operator('fliter')", "no operator 'fliter' is installed; did you mean 'filter'?"),
    ],
)
@pytest.mark.parametrize("where", ["at import", "in a function"])
def test_an_unknown_operator_is_named_with_its_place_and_near_names(
    flow, write, expression: str, says: str, where: str
) -> None:
    text = f"def job(): return {expression}" if "function" in where else f"job = {expression}"
    write(
        "jobs.py",
        f"import flow_core as flow\nfrom flow_core.plugins import plugin_host as host\n{text}\n",
    )
    done = flow("run", "jobs.py:job")
    assert done.code == 2
    assert says in done.err
    if "host" not in expression or "import" in where:
        assert "raised at jobs.py:3" in done.err
    assert "Traceback" not in done.err


def test_the_error_for_importing_a_method_from_the_core_says_that_it_is_a_method(
    flow, write
) -> None:
    write("jobs.py", "from flow_core.operators import filter\n")
    done = flow("run", "jobs.py:x")
    assert done.code == 2
    says = "flow_core.operators has no 'filter'; it is a method of Flow: filter(predicate)"
    assert says in done.err


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--on sprak", "no engine 'sprak' is installed; did you mean 'spark' of the package"),
        ("--on spark", "no engine 'spark' is installed; it comes with the package flow-spark"),
        ("--on loca", "did you mean 'local'?"),
        ("--master local[2]", "the engine 'local' takes no --master"),
        ("--spool .", "the engine 'local' takes no --spool"),
        ("--limit -1", "'-1' is not a number of items"),
        ("--limit many", "'many' is not a number of items"),
        ("--limt 3", "flow run takes no --limt"),
    ],
)
def test_an_engine_or_option_that_does_not_exist_is_explained_before_anything_is_loaded(
    flow, write, options: str, says: str
) -> None:
    write("jobs.py", "print('loaded')")
    done = flow("run", "jobs.py:x", *options.split())
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize("args", [(), ("rnu", "x"), ("run",), ("run", "a:b", "c:d")])
def test_an_invalid_command_line_is_explained_in_one_line(flow, args) -> None:
    done = flow(*args)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)


@pytest.mark.parametrize("args", [("--help",), ("run", "--help"), ("--version",)])
def test_help_and_version_are_printed(flow, args) -> None:
    done = flow(*args)
    assert (done.code, done.err) == (0, "")
    assert "flow" in done.out


# --- what fails while it runs -------------------------------------------------------------------


def test_an_error_of_a_flow_names_the_stage_and_where_it_was_assembled_and_raised(
    flow, write
) -> None:
    path = write(
        "jobs.py",
        """
        import flow_core

        def invert(n):
            return 1 / n

        numbers = flow_core.range(3, -1, -1).filter(lambda n: n < 3).map(invert)
        """,
    )
    done = flow("run", "jobs.py:numbers")
    assert done.code == 1
    assert done.out == "0.5\n1.0\n"
    assert done.err.splitlines() == [
        "flow run: ZeroDivisionError: division by zero",
        "    raised at jobs.py:5, in invert: return 1 / n",
        f"    in stage 2 of 2: map(invert), assembled at {path}:7",
    ]


def test_a_mapper_that_returns_none_is_named(flow, write) -> None:
    write("jobs.py", "import flow_core\nf = flow_core.range(3).map(print)")
    done = flow("run", "jobs.py:f")
    assert done.code == 1
    assert "NoneItemError: map(print) gave None" in done.err


UNENCODABLE = """
import threading
import flow_core as flow

def printed():
    yield from ("one", "two", "half a character: \\ud83d")
    # The printing thread ends when it cannot continue, and not before.
    next(thread for thread in threading.enumerate() if thread.name == "flow-print").join(30)
    yield "four"

while_it_runs = flow.from_iterable(printed())
at_the_end = flow.just("one", "two", "half a character: \\ud83d", "four")
in_a_full_batch = flow.range(600).map(lambda n: "\\ud83d" if n == 511 else n)
"""


@pytest.mark.parametrize(
    ("target", "before"),
    [
        ("while_it_runs", ["one", "two"]),
        ("at_the_end", ["one", "two"]),
        ("in_a_full_batch", [str(n) for n in range(511)]),
    ],
)
def test_an_item_that_cannot_be_encoded_fails_the_command_after_the_items_before(
    flow, write, target: str, before: list[str]
) -> None:
    write("jobs.py", UNENCODABLE)
    done = flow("run", f"jobs.py:{target}")
    assert done.code == 1
    assert done.out.splitlines() == before
    assert done.err.startswith("flow run: UnicodeEncodeError: ")
    assert done.err.count("\n") == 1


def test_causes_and_groups_of_errors_are_printed(flow, write) -> None:
    write(
        "jobs.py",
        """
        def main():
            try:
                int("x")
            except ValueError as error:
                raise RuntimeError("no number") from error

        def group():
            raise ExceptionGroup("both", [KeyError("a"), OSError("b")])
        """,
    )
    err = flow("run", "jobs.py:main").err
    assert "RuntimeError: no number" in err
    assert "caused by ValueError: invalid literal" in err
    done = flow("run", "jobs.py:group")
    assert done.code == 1
    assert "| KeyError: 'a'" in done.err
    assert "| OSError: b" in done.err


def test_a_traceback_inside_a_message_is_cut_to_its_place(flow, write) -> None:
    write(
        "jobs.py",
        """
        import traceback

        def fails():
            return 1 / 0

        def main():
            try:
                fails()
            except ZeroDivisionError as error:
                text = traceback.format_exc()
                raise error from RuntimeError(f"on worker 7:\\n{text}(end)")
        """,
    )
    err = flow("run", "jobs.py:main").err
    assert "caused by RuntimeError: on worker 7:" in err
    assert "Traceback" not in err
    assert "there at jobs.py:5, in fails: return 1 / 0" in err
    assert "Traceback" in flow("run", "jobs.py:main", "--debug").err


@pytest.mark.parametrize("how", ["--debug", "FLOW_DEBUG"])
def test_a_traceback_is_shown_when_it_is_asked_for(
    flow, write, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    write("jobs.py", "import flow_core\nf = flow_core.range(1).map(lambda n: 1 / n)")
    if how == "FLOW_DEBUG":
        monkeypatch.setenv("FLOW_DEBUG", "1")
    done = flow("run", "jobs.py:f", *(["--debug"] if how == "--debug" else []))
    assert done.code == 1
    assert "Traceback (most recent call last)" in done.err
    assert "x = mapper_0(x)" in done.err  # the generated loop's own line


def test_a_flow_that_fails_without_an_error_handler_fails_the_command(
    flow, write, caplog: pytest.LogCaptureFixture, drops: Drops
) -> None:
    write(
        "jobs.py",
        """
        import flow_core

        def main():
            flow_core.range(1).map(lambda n: 1 / n).subscribe(print)
        """,
    )
    with caplog.at_level(logging.DEBUG):
        done = flow("run", "jobs.py:main")
    assert done.code == 1
    assert "flow run: ZeroDivisionError" in done.err
    assert "in stage 1 of 1" in done.err
    assert not caplog.records
    assert len(drops.take_errors()) == 1


def test_other_errors_without_a_subscriber_are_notes(flow, write, drops: Drops) -> None:
    write(
        "jobs.py",
        """
        from flow_core import hooks

        def main():
            for n in range(8):
                hooks.drop_error(ValueError(n))
        """,
    )
    done = flow("run", "jobs.py:main")
    assert done.code == 0
    assert done.err.count("note: an error that no subscriber could receive: ValueError") == 5
    assert "and 3 more" in done.err
    assert len(drops.take_errors()) == 8


def test_the_users_own_exit_code_is_kept(flow, write) -> None:
    write("jobs.py", "import sys\ndef main(): sys.exit(7)\ndef bad(): sys.exit('why')")
    assert flow("run", "jobs.py:main").code == 7
    done = flow("run", "jobs.py:bad")
    assert (done.code, done.err) == (1, "flow run: why\n")


def test_options_that_have_no_effect_are_noted(flow, write) -> None:
    write("jobs.py", "def main(): pass")
    assert "no flow that --limit" in flow("run", "jobs.py:main", "--limit", "2").err


# --- engines of others --------------------------------------------------------------------------

ENGINE_PLUGIN = """
    import contextlib
    from flow_core import structure
    from flow_core.plugins import EngineSpec, hookimpl
    from flow_core.engine import Engine

    class Tenfold(Engine):
        name = "tenfold"
        facts = {}
        def place(self, flow):
            return structure.moved(flow, lambda source: source.map(lambda n: n * 10))

    @contextlib.contextmanager
    def open_engine(options):
        print("open", options.master, options.name, *["brief"] * options.brief)
        try:
            yield Tenfold()
        finally:
            print("close")

    @contextlib.contextmanager
    def fail(options):
        raise RuntimeError("no cluster")
        yield

    @hookimpl
    def flow_engines():
        yield EngineSpec("tenfold", "tenfold_x:open_engine", options=("master",))
        yield EngineSpec("dead", "tenfold_x:fail")
"""


@pytest.fixture
def tenfold(write, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flow_core.plugins import PluginHost

    write("tenfold_x.py", ENGINE_PLUGIN)
    monkeypatch.syspath_prepend(str(project))
    host = PluginHost({"FLOW_DISABLE_PLUGINS": "*", "FLOW_LOAD_PLUGINS": "tenfold_x"})
    assert not host.problems
    monkeypatch.setattr("flow_core.plugins.host._host", host)
    monkeypatch.delitem(sys.modules, "tenfold_x")


@pytest.mark.usefixtures("tenfold")
def test_a_flow_is_placed_on_the_engine_and_its_session_closed(flow, write) -> None:
    write("jobs.py", "import flow_core\nnumbers = flow_core.range(3).map(lambda n: n + 1)")
    done = flow("run", "jobs.py:numbers", "--on", "tenfold", "--master", "m")
    assert done.out == "open m flow run jobs.py:numbers\n1\n11\n21\nclose\n"


@pytest.mark.usefixtures("tenfold")
@pytest.mark.parametrize("command", ["run --brief", "run --limit 9", "explain"])
def test_an_engine_is_informed_of_a_brief_run(flow, write, command: str) -> None:
    write("jobs.py", "import flow_core\nnumbers = flow_core.range(3)")
    verb, *options = command.split()
    done = flow(verb, "jobs.py:numbers", *options, "--on", "tenfold")
    assert done.out.splitlines()[0].endswith(" brief")


@pytest.mark.usefixtures("tenfold")
def test_the_session_is_closed_when_the_flow_fails(flow, write) -> None:
    write("jobs.py", "import flow_core\nnumbers = flow_core.range(3).map(lambda n: 1 / n)")
    done = flow("run", "jobs.py:numbers", "--on", "tenfold")
    assert (done.code, done.out.splitlines()[-1]) == (1, "close")


@pytest.mark.usefixtures("tenfold")
def test_a_function_that_got_the_engine_has_placed_its_flow(flow, write) -> None:
    write(
        "jobs.py",
        """
        import flow_core
        from flow_core.engine import Engine
        def here(engine: Engine): return flow_core.just(1)
        def there(): return flow_core.just(1)
        def nowhere(): pass
        """,
    )
    assert "\n1\n" in flow("run", "jobs.py:here", "--on", "tenfold").out
    assert "\n10\n" in flow("run", "jobs.py:there", "--on", "tenfold").out
    assert "takes no Engine" in flow("run", "jobs.py:nowhere", "--on", "tenfold").err


@pytest.mark.usefixtures("tenfold")
def test_an_engine_that_does_not_start_fails_the_command(flow, write) -> None:
    write("jobs.py", NUMBERS)
    done = flow("run", "jobs.py:numbers", "--on", "dead")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("flow run: RuntimeError: no cluster\n")


@pytest.mark.usefixtures("tenfold")
def test_an_option_of_another_engine_comes_with_that_engine(flow, write) -> None:
    write("jobs.py", NUMBERS)
    err = flow("run", "jobs.py:numbers", "--master", "m").err
    assert "the engine 'local' takes no --master; --on tenfold does" in err
