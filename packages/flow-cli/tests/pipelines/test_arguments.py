"""The values of a file that fit each annotation."""

from __future__ import annotations

import datetime
import enum
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NewType, Optional, Protocol, TypedDict, TypeVar

import pytest

import flow_core
from flow_cli.pipelines import PipelineError
from flow_cli.pipelines._arguments import Context, Given, Misfit, Nested, bind, fitted
from flow_cli.pipelines._document import Place, Step
from flow_cli.pipelines._functions import function_of

T = TypeVar("T")
Seconds = NewType("Seconds", float)
PLACE = Place("job.toml", "[source]", 3)
FOLDER = Path("/folder")


class Color(enum.Enum):
    RED = 1
    DARK_BLUE = 2


class Options(TypedDict):
    a: int


class Key(Protocol):
    def __call__(self, item: object) -> object: ...


class Closable(Protocol):
    def close(self) -> None: ...


def no_flow(place: Place, table: Mapping[str, object], category: str = "") -> Nested:
    return Nested(lambda: flow_core.just(str(place), dict(table)))


CONTEXT = Context(
    FOLDER, {"n": Given(5, Path("/here")), "p": Given("x", Path("/here"))}, no_flow, no_flow
)


def fit(value: object, kind: object) -> Any:
    return fitted(value, kind, CONTEXT, PLACE)


@pytest.mark.parametrize(
    ("value", "kind", "made"),
    [
        (1, int, 1),
        (1, float, 1.0),
        (1.5, float, 1.5),
        (True, bool, True),
        ("a", str, "a"),
        ("a", str | None, "a"),
        ("a", Optional[str], "a"),  # noqa: UP045 - as older code has it
        (2, int | str, 2),
        ("a", Annotated[str, "note"], "a"),
        (2, Seconds, 2.0),
        ("a", Literal["a", "b"], "a"),
        ([1, 2], list[int], [1, 2]),
        ([1, 2], Sequence[float], [1.0, 2.0]),
        ([1, "a"], Iterable[T], [1, "a"]),
        ([1, 2], tuple[int, ...], (1, 2)),
        ([1, "a"], tuple[int, str], (1, "a")),
        ([1, 1], set[int], {1}),
        ({"a": 1}, Mapping[str, int], {"a": 1}),
        ({"a": 1}, dict, {"a": 1}),
        ({"a": 1}, Options, {"a": 1}),
        ({"item": "a"}, dict[str, str], {"item": "a"}),
        ({"item": "a"}, object, {"item": "a"}),
        ("red", Color, Color.RED),
        ("Dark_Blue", Color, Color.DARK_BLUE),
        (datetime.date(2013, 1, 1), datetime.date, datetime.date(2013, 1, 1)),
        ("a/b", Path, "/folder/a/b"),
        ("a/b", str | os.PathLike[str], "/folder/a/b"),
        ("/a/b", str | os.PathLike[str], "/a/b"),
        ({"parameter": "n"}, int, 5),
        ({"parameter": "n"}, float, 5.0),
        ([{"parameter": "n"}, 1], list[int], [5, 1]),
        ({"a": {"parameter": "n"}}, dict[str, int], {"a": 5}),
        ({"deep": [{"parameter": "n"}]}, object, {"deep": [5]}),
        ({"parameter": "p"}, str | os.PathLike[str], "/here/x"),
        ({"parameter": "p"}, str, "x"),
        ({"object": "math:pi"}, float, 3.141592653589793),
        ({"object": "builtins:len"}, Callable[..., object], len),
        ({"object": "builtins:len"}, Key, len),
        ({"object": "builtins:int"}, type[int], int),
        ({"object": "builtins:len"}, object, len),
        ("whatever", "OnlyForTypeCheckers", "whatever"),
    ],
)
def test_a_value_fits(value: object, kind: object, made: object) -> None:
    result = fit(value, kind)
    assert result == made
    assert type(result) is type(made)


@pytest.mark.parametrize(
    ("value", "kind", "says"),
    [
        (True, int, "True, where it takes an int"),
        (1, bool, "1, where it takes true or false"),
        (1, str, "1, where it takes a text"),
        ("1", float, "'1', where it takes a number"),
        (1.0, int, "1.0, where it takes an int"),
        (1, str | None, "1, where it takes a text"),
        ([1], int | str, "[1], where it takes an int or a text"),
        ("c", Literal["a", "b"], "'c', where it takes 'a' or 'b'"),
        (True, Literal[1], "True, where it takes 1"),
        ([1, "x"], list[int], "'x', where it takes an int"),
        ("ab", Iterable[str], "'ab', where it takes a list"),
        ([1], tuple[int, int], "[1], where it takes a list of 2"),
        ("green", Color, "'green', where it takes 'red' or 'dark_blue'"),
        ("len", Callable[..., object], "'len', where it takes a function, written as { object ="),
        ("len", Key, "'len', where it takes a function"),
        ("x", Closable, 'it takes a Closable, written as { object = "package.module:name" }'),
        ("int", type[int], "'int', where it takes a class, written as"),
        ({"object": "sys:path"}, Key, "it takes a function"),
        ({"object": "sys:path"}, int, "it takes <class 'int'>"),
        ({"object": "os.system('x')"}, object, "it takes the name of an object"),
        ({"object": "os"}, object, "it takes the name of an object"),
        ({"object": ["os:path"]}, object, "it takes the name of an object"),
        ({"object": "nowhere_x:a"}, object, "nowhere_x:a cannot be imported: ModuleNotFoundError"),
        ({"parameter": "m"}, int, "there is no parameter 'm'; there is n, p"),
        (datetime.datetime(2013, 1, 1), datetime.date, "where it takes a date"),  # noqa: DTZ001
    ],
)
def test_the_error_for_a_value_that_does_not_fit_says_which_would(
    value: object, kind: object, says: str
) -> None:
    with pytest.raises(Misfit) as caught:
        fit(value, kind)
    assert says in str(caught.value)


def test_a_table_with_a_source_is_a_flow_where_one_is_taken() -> None:
    table = {"source": "range"}
    for kind in (flow_core.Flow[int], flow_core.Publisher[int], Iterable[int]):
        made = fit(table, kind)
        assert isinstance(made, Nested)
        assert list(made.make()) == ["job.toml:3: [source]", table]
    assert fit(table, dict[str, str]) == table


def called(function: Callable[..., Any], *args: object, **arguments: object) -> Any:
    step = Step(PLACE, "it", "", args, arguments)
    problems: list[str] = []
    bound = bind(function, step, CONTEXT, problems)
    if problems:
        raise PipelineError(problems)
    return bound()


def test_every_kind_of_parameter_can_be_given() -> None:
    def function(a: int, /, b: int = 2, *rest: int, c: int = 3, **others: int) -> tuple[Any, ...]:
        return a, b, rest, c, others

    assert called(function, 1) == (1, 2, (), 3, {})
    assert called(function, a=1, c=4) == (1, 2, (), 4, {})
    assert called(function, 1, 5, 6, 7, d=8) == (1, 5, (6, 7), 3, {"d": 8})


def test_flows_among_the_arguments_are_assembled_with_the_rest() -> None:
    def merged(*flows: flow_core.Flow[Any]) -> list[object]:
        return [list(flow)[1] for flow in flows]

    assert called(merged, {"source": "a"}, {"source": "b"}) == [{"source": "a"}, {"source": "b"}]


@pytest.mark.parametrize("module", ["as text", "late"])
def test_an_argument_is_taken_for_what_only_a_type_checker_can_evaluate(module: str) -> None:
    if module == "late" and sys.version_info < (3, 14):
        pytest.skip("for Python 3.14, which evaluates annotations late")
    future = "from __future__ import annotations\n" if module == "as text" else ""
    code = f"{future}def scaled(start: int = 0, scale: Decimal | None = None): return start, scale"
    names: dict[str, Any] = {}
    exec(compile(code, "late", "exec", dont_inherit=True), names)
    assert called(names["scaled"], start=3, scale=5) == (3, 5)


def test_a_callable_without_a_signature_is_called_as_the_file_says() -> None:
    assert called(dict, a=1) == {"a": 1}


def test_each_wrong_argument_is_reported() -> None:
    def function(count: int, *, name: str) -> None: ...

    with pytest.raises(PipelineError) as caught:
        called(function, "x", nam="y")
    assert caught.value.problems == (
        "job.toml:3: [source] args[0]: 'x', where it takes an int",
        "job.toml:3: [source] nam: it has no such parameter; did you mean 'name'?",
        "job.toml:3: [source] name: it needs it: a text",
    )


def test_a_predicate_of_a_file_needs_nothing_but_the_core_where_it_is_sent() -> None:
    late = pickle.dumps(function_of({"item": "delay", "at_least": 15}))
    code = (
        "import pickle, sys; sys.modules['flow_cli'] = sys.modules['pluggy'] = None\n"
        "late = pickle.loads(sys.stdin.buffer.read())\n"
        "print([late({'delay': minutes}) for minutes in (3, 15, None)])"
    )
    command = (sys.executable, "-c", code)
    done = subprocess.run(command, input=late, capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[False, True, False]"
