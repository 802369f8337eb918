"""The public face keeps its promises: documented, typed, final, and the same in every form."""

from __future__ import annotations

import ast
import enum
import inspect
import itertools
import pkgutil
import re
import textwrap
import typing
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

import pytest

import flow_core
from flow_core import Flow, operators
from flow_core.plugins import Kind, PluginHost, _builtin
from flow_core.protocols import CoreSubscriber, Fusion, QueueSubscription
from flow_core.testing import STAGE_CASES

TYPING_TESTS = Path(__file__).parent.parent / "typing_tests"
HOST = PluginHost({"FLOW_DISABLE_PLUGINS": "*"})
STAGES = sorted(name for name, found in HOST.operators.items() if found.spec.kind is Kind.STAGE)
METHODS = sorted(
    name for name in dir(Flow) if not name.startswith("_") and name not in {"source", "stages"}
)


def _modules() -> Iterator[ModuleType]:
    yield flow_core
    for module in pkgutil.walk_packages(flow_core.__path__, "flow_core."):
        if not module.name.endswith("__main__"):
            yield import_module(module.name)


MODULES = list(_modules())


def _is_public(module: ModuleType) -> bool:
    """What users import from: the modules of flow_core, and packages, which say what of them is."""
    _, *path = module.__name__.split(".")
    private = any(part.startswith("_") for part in path)
    return hasattr(module, "__all__") and not private and (len(path) < 2 or _is_package(module))


def _is_package(module: ModuleType) -> bool:
    return hasattr(module, "__path__")


PUBLIC = [module for module in MODULES if _is_public(module)]


class Documented(NamedTuple):
    """A public function, class, method or property."""

    path: str
    thing: Any
    owner: type | None = None

    @property
    def text(self) -> str:
        return inspect.getdoc(self.thing) or ""


def _members(path: str, cls: type) -> Iterator[Documented]:
    for name, member in vars(cls).items():
        function = getattr(member, "__func__", getattr(member, "fget", member))
        is_field = name in getattr(cls, "__dataclass_fields__", ())
        if not name.startswith("_") and isinstance(function, FunctionType) and not is_field:
            yield Documented(f"{path}.{name}", function, cls)


def _documented() -> Iterator[Documented]:
    seen: set[int] = set()
    for module in PUBLIC:
        for name in module.__all__:
            thing = getattr(module, name)
            if id(thing) in seen or not getattr(thing, "__module__", "").startswith("flow_core"):
                continue
            if not isinstance(thing, FunctionType | type):
                continue  # a constant; its text is not there at run time
            seen.add(id(thing))
            path = f"{thing.__module__}.{thing.__qualname__}"
            yield Documented(path, thing)
            if isinstance(thing, type):
                yield from _members(path, thing)
    for theme in Flow.__mro__:
        if theme.__module__.startswith("flow_core.stages"):
            yield from _members(f"{theme.__module__}.{theme.__qualname__}", theme)


THINGS = list({found.path: found for found in _documented()}.values())
each_thing = pytest.mark.parametrize("found", THINGS, ids=lambda found: found.path)


def parameters(thing: Any) -> list[inspect.Parameter]:
    try:
        found = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return []
    return [
        each
        for each in found
        # One that has no name for the caller is told by the words of the text.
        if each.kind in {each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY}
        and each.name != "self"
        and each.name[0] != "_"
    ]


# -- documentation


@each_thing
def test_a_public_thing_says_in_one_line_what_it_is_for(found: Documented) -> None:
    first = found.text.partition("\n")[0]
    assert len(first) > 10, "it has no docstring"
    assert re.search(r"[.:?]$", first), f"its first line is no sentence: {first!r}"


@each_thing
def test_a_public_thing_speaks_of_each_of_its_parameters(found: Documented) -> None:
    """Under ``Args:``, or by its name in the text, where that says all there is to say."""
    assert untold(found) == []


def untold(found: Documented) -> list[str]:
    """The parameters of which the documentation does not speak."""
    text = found.text
    if re.match(r"(As|See) `|`Flow", text):
        return []  # told by what it names
    told = [text]
    if isinstance(found.thing, type):
        if issubclass(found.thing, enum.Enum | BaseException) or is_protocol(found.thing):
            return []
        bases = [base for base in found.thing.__mro__ if base.__module__.startswith("flow_core")]
        told += [base.__doc__ or "" for base in bases]
        told += described_fields(found.thing)
    elif found.owner is not None:
        told.append(inspect.getdoc(found.owner) or "")
    return [
        each.name
        for each in parameters(found.thing)
        if not any(re.search(rf"\b{each.name}\b", said) for said in told)
    ]


def described_fields(cls: type) -> list[str]:
    """The names of fields that have a docstring of their own beneath them."""
    body = getattr(source_of(cls), "body", [])
    return [
        ast.unparse(field)
        for field, text in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
    ]


def source_of(thing: type | FunctionType) -> ast.stmt | None:
    """The parsed source of a class or function, if there is one."""
    try:
        source = inspect.getsource(thing)
    except OSError:
        return None  # of a dataclass's own methods
    return ast.parse(textwrap.dedent(source)).body[0]


def is_protocol(cls: type) -> bool:
    return bool(getattr(cls, "_is_protocol", False))


def raised(function: FunctionType) -> set[str]:
    """The names of the errors that a function raises itself, but for those it hands on."""
    own = source_of(function)
    if own is None:
        return set()
    inner = [
        node
        for node in ast.walk(own)
        if node is not own and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    ]
    nested = {id(part) for function_ in inner for part in ast.walk(function_)}
    return {
        node.exc.func.id
        for node in ast.walk(own)
        if isinstance(node, ast.Raise)
        and id(node) not in nested
        and isinstance(node.exc, ast.Call)
        and isinstance(node.exc.func, ast.Name)
    }


@each_thing
def test_a_public_function_names_the_errors_that_it_raises(found: Documented) -> None:
    """Not a TypeError, which the types tell, nor what the testing kit is there to raise."""
    if not isinstance(found.thing, FunctionType) or re.match(r"(As|See) `", found.text):
        return
    if found.thing.__name__.startswith("test_"):
        return  # of the kit
    owner = inspect.getdoc(found.owner) if found.owner else ""
    text = f"{found.text}\n{owner}"
    errors = raised(found.thing) - {"TypeError", "AssertionError", "NotImplementedError"}
    assert {error for error in errors if error[0].isupper() and error not in text} == set()


def test_what_is_the_same_for_all_stages_is_said_once() -> None:
    text = inspect.getdoc(flow_core.stages) or ""
    for word in ("Demand:", "Thread:", "Fusion:", "Errors:"):
        assert word in text


ABOUT = {"demand": r"demand|request", "thread": r"thread|loop", "fusion": r"fus(e|ion)"}


def silent_on(told: object) -> list[str]:
    """Of what the documentation says nothing."""
    text = (inspect.getdoc(told) or "").lower()
    return [what for what, words in ABOUT.items() if not re.search(words, text)]


@pytest.mark.parametrize("name", sorted(set(HOST.operators) - set(STAGES)))
def test_an_operator_that_is_no_stage_speaks_of_demand_threads_and_fusion(name: str) -> None:
    assert silent_on(getattr(Flow, name, None) or HOST.operators[name].spec.load()) == []


@pytest.mark.parametrize(
    "name",
    sorted(
        name
        for name, found in HOST.sources.items()
        if found.spec.answers != Fusion.SYNC | Fusion.THREAD_BOUNDARY
    ),
)
def test_a_source_that_is_no_mere_iterator_speaks_of_demand_threads_and_fusion(name: str) -> None:
    """An item of an iterator is made when it is requested, by the thread that requests it."""
    assert silent_on(HOST.sources[name].spec.load()) == []


# -- one operator, several forms


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_is_a_method_and_a_function_and_has_cases(name: str) -> None:
    assert isinstance(inspect.getattr_static(Flow, name), FunctionType)
    assert name in operators.__all__
    assert any(case.name.split()[0].rstrip(",") == name for case in STAGE_CASES)
    assert HOST.operators[name].spec.target == f"flow_core.operators:{name}"
    assert _builtin.stage_templates()[name]


@pytest.mark.parametrize("name", sorted(set(operators.__all__) & set(METHODS)))
def test_a_function_of_operators_takes_what_the_method_of_its_name_takes(name: str) -> None:
    method = inspect.signature(getattr(Flow, name))
    function = inspect.signature(getattr(operators, name))

    def taken(signature: inspect.Signature) -> list[tuple[object, ...]]:
        return [
            (each.name, each.kind, each.default)
            for each in signature.parameters.values()
            if each.name != "self"
        ]

    assert taken(method) == taken(function)
    assert len(overloads(getattr(Flow, name))) == len(overloads(getattr(operators, name))) or (
        # Of a method `self` says which items there are; of a function a type variable does.
        name == "sum"
    )
    asked = "do_action" if name == "tap" else name
    assert inspect.getdoc(getattr(operators, name)) == f"`Flow.{asked}` as an operator."


def overloads(function: Callable[..., object]) -> list[str]:
    """The signatures that type checkers choose from."""
    return [str(inspect.signature(each)) for each in typing.get_overloads(function)]


def test_every_method_that_gives_a_flow_is_a_function_too() -> None:
    gives_flow = {
        name
        for name in METHODS
        if str(getattr(getattr(Flow, name), "__annotations__", {}).get("return", "")).startswith(
            "Flow["
        )
    }
    assert gives_flow - {"then", "moved"} == set(operators.__all__) & set(METHODS)


def test_what_is_a_function_only_is_a_boundary() -> None:
    """It is no step of a loop, so that `Flow` need not have a method for it."""
    only = set(operators.__all__) - set(METHODS) - {"stage"}
    assert {name for name in only if HOST.operators[name].spec.kind is not Kind.BOUNDARY} == set()


# -- typing tests


def asserted(file: str) -> tuple[set[str], set[str]]:
    """The names used under assert_type: as an attribute of a flow, and of ``op``."""
    fluent: set[str] = set()
    piped: set[str] = set()
    for node in ast.walk(ast.parse((TYPING_TESTS / file).read_text("utf-8"))):
        if not (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "assert_type"):
            continue
        for part in ast.walk(node.args[0]):
            if isinstance(part, ast.Attribute):
                of_op = isinstance(part.value, ast.Name) and part.value.id == "op"
                (piped if of_op else fluent).add(part.attr)
    return fluent, piped


def test_the_type_of_every_method_is_asserted() -> None:
    fluent, _ = asserted("stages.py")
    assert {*METHODS, "source", "stages"} - fluent == set()


def test_the_type_of_every_operator_is_asserted() -> None:
    _, piped = asserted("operators.py")
    assert set(operators.__all__) - piped == set()


def test_the_typing_tests_hold_the_same_mistakes_for_both_forms() -> None:
    def mistakes(file: str) -> set[str]:
        text = (TYPING_TESTS / file).read_text("utf-8").partition("def mistakes(")[2]
        lines = [line for line in text.splitlines() if line.startswith("    ")]
        assert all("# type: ignore[" in line and "# pyright: ignore[" in line for line in lines)
        found = (re.match(r"    \w+(?:\.pipe\(op)?\.(\w+)", line) for line in lines)
        return {match[1] for match in found if match}

    assert mistakes("stages.py") & set(operators.__all__) == mistakes("operators.py") & set(METHODS)


# -- what exists per subscription


def per_subscription() -> list[type]:
    """The library's own classes of subscribers and subscriptions that instances are made of."""
    found: dict[str, type] = {}
    for module in MODULES:
        if module.__name__.startswith("flow_core.testing"):
            continue  # made to be extended
        for value in vars(module).values():
            if not isinstance(value, type) or value.__module__ != module.__name__:
                continue
            takes_part = (
                issubclass(value, CoreSubscriber | QueueSubscription)
                or {"request", "cancel"} <= set(dir(value))
                or {"on_next", "on_error"} <= set(dir(value))
                or {"dispose", "disposed"} <= set(dir(value))
            )
            abstract = any(
                getattr(inspect.getattr_static(value, name), "__isabstractmethod__", False)
                for name in dir(value)
            )
            if takes_part and not abstract and not is_protocol(value):
                found[f"{value.__module__}.{value.__qualname__}"] = value
    return list(found.values())


PER_SUBSCRIPTION = per_subscription()


def test_the_classes_that_exist_per_subscription_are_found() -> None:
    names = {cls.__name__ for cls in PER_SUBSCRIPTION}
    assert {"StageSubscriber", "IteratorSubscription", "CallbackSubscriber", "_Hidden"} <= names


@pytest.mark.parametrize("cls", PER_SUBSCRIPTION, ids=lambda cls: cls.__qualname__)
def test_a_class_that_exists_per_subscription_is_final_and_has_only_slots(cls: type) -> None:
    bases = [base for base in cls.__mro__ if base.__module__.startswith("flow_core")]
    assert [base.__name__ for base in bases if "__slots__" not in vars(base)] == []
    assert cls.__dictoffset__ == 0, "its instances have a __dict__"
    assert getattr(cls, "__final__", False), "it is not @final"
