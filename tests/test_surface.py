"""The methods that other packages execute are what their records and factories say."""

from __future__ import annotations

import doctest
import importlib.util
import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import flow_core
from flow_core import Flow
from flow_core.plugins import OperatorSpec, SinkSpec, SourceSpec, plugin_host
from flow_core.surface import functions
from flow_core.surface.multicast import MulticastMethods
from flow_core.surface.ops import OpsMethods
from flow_core.surface.rails import RailMethods
from flow_core.surface.spark import SparkMethods, SparkWords

SCRIPT = Path(__file__).parent.parent / "tools" / "surface.py"


def _load() -> Any:  # Any: a script, not a module of a package
    spec = importlib.util.spec_from_file_location("tools_surface", SCRIPT)
    if spec is None or spec.loader is None:
        raise ImportError("tools/surface.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


surface = _load()

METHODS = (MulticastMethods, OpsMethods, SparkMethods)
HOST = plugin_host()
SPECS: list[OperatorSpec | SinkSpec] = [
    *(found.spec for found in HOST.operators.values() if found.spec.method),
    *(found.spec for found in HOST.sinks.values() if found.spec.method),
]
OF_SEVERAL = [found.spec for found in HOST.sources.values() if found.spec.method]
PLUGGED = [spec for spec in [*SPECS, *OF_SEVERAL] if not spec.target.startswith("flow_core.")]

HEAD = """
from __future__ import annotations
from collections.abc import Callable
from typing import Any, Literal, TypeVar
from concurrent.futures import Executor
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import Publisher
from flow_core.executors import Executor as Place
T = TypeVar("T")
R = TypeVar("R")
"""


def method_of(
    root: Path, factory: str, name: str = "sample", also: str = "", spec: str = "OperatorSpec"
) -> str:
    """Return the text written of a factory, from its first line to its last."""
    source = root / "packages" / "flow-multicast" / "src" / "flow_multicast"
    core = root / "packages" / "flow-core" / "src" / "flow_core"
    source.mkdir(parents=True)
    core.mkdir(parents=True)
    core.joinpath("flow.py").write_text("class Flow: ...\n", "utf-8")
    core.joinpath("operator.py").write_text("class Operator: ...\n", "utf-8")
    core.joinpath("protocols.py").write_text("class Publisher: ...\n", "utf-8")
    core.joinpath("executors.py").write_text("class Executor: ...\n", "utf-8")
    source.joinpath("_plugin.py").write_text(
        f'{spec}("{name}", "flow_multicast.one:{name}", method="{name}")', "utf-8"
    )
    source.joinpath("one.py").write_text(f"{HEAD}{also}\n{factory}", "utf-8")
    text = surface.pages(root)[f"{surface.FOLDER}/multicast.py"]
    return str(text).partition("__slots__ = ()\n")[2].replace("    ", "", 1)


def signature_of(root: Path, factory: str, also: str = "", spec: str = "OperatorSpec") -> str:
    return method_of(root, factory, also=also, spec=spec).partition("\n")[0].strip()


def test_the_items_of_the_flow_are_those_of_the_class(tmp_path: Path) -> None:
    factory = "def sample(f: Callable[[T], R], n: int = 3) -> Operator[T, Flow[R]]: ..."
    assert (
        signature_of(tmp_path, factory)
        == "def sample(self, f: Callable[[T_co], R], n: int=3) -> Flow[R]:"
    )


def test_an_item_argument_has_a_separate_type_variable(tmp_path: Path) -> None:
    factory = "def sample(item: T) -> Operator[T, Flow[T]]: ..."
    assert signature_of(tmp_path, factory) == "def sample(self, item: D) -> Flow[T_co | D]:"


def test_an_operator_of_flows_says_so_of_self(tmp_path: Path) -> None:
    factory = "def sample() -> Operator[Flow[T], Flow[T]]: ..."
    assert (
        signature_of(tmp_path, factory) == "def sample(self: MulticastMethods[Flow[T]]) -> Flow[T]:"
    )


def test_an_alias_of_the_package_is_written_out(tmp_path: Path) -> None:
    factory = "def sample(mode: _Mode) -> Operator[Any, Flow[int]]: ..."
    assert (
        signature_of(tmp_path, factory, also='_Mode = Literal["a", "b"]')
        == "def sample(self, mode: Literal['a', 'b']) -> Flow[int]:"
    )


def test_a_named_default_is_its_value_in_overloads_too(tmp_path: Path) -> None:
    factory = """
@overload
def sample(*, prefetch: int = ...) -> Operator[T, Flow[T]]: ...
@overload
def sample(f: Callable[[T], R], *, prefetch: int = ...) -> Operator[T, Flow[R]]: ...
def sample(f: Any = None, *, prefetch: int = MOST) -> Operator[Any, Flow[Any]]:
    '''Some.'''
"""
    written = method_of(tmp_path, factory, also="MOST = 128")
    assert written.count("prefetch: int=128") == 3
    assert written.count("@overload") == 2
    assert 'self._plugged("flow_multicast.one:sample", f, prefetch=prefetch)' in written


def test_items_that_can_be_compared_are_said_of_self(tmp_path: Path) -> None:
    factory = "def sample(other: Flow[S]) -> Operator[S, Flow[S]]: ..."
    assert (
        signature_of(tmp_path, factory, also='S = TypeVar("S", bound=int)')
        == "def sample(self: MulticastMethods[int], other: Flow[T_co]) -> Flow[T_co]:"
    )


def test_a_record_may_name_another_name_of_a_function(tmp_path: Path) -> None:
    factory = "def other(n: int) -> Operator[T, Flow[T]]: ...\nsample = other"
    assert signature_of(tmp_path, factory) == "def sample(self, n: int) -> Flow[T_co]:"


def test_a_method_under_another_name_names_the_original(tmp_path: Path) -> None:
    factory = (
        "def other() -> Operator[T, Flow[T]]: 'One.\\n\\nAlso called `sample`.'\nsample = other"
    )
    assert "Another name of `other`." in method_of(tmp_path, factory)


def test_an_overload_that_another_one_has_in_it_is_left_out(tmp_path: Path) -> None:
    factory = """
@overload
def sample(other: Flow[T]) -> Operator[T, Flow[T]]: ...
@overload
def sample(other: Publisher[D]) -> Operator[T, Flow[T | D]]: ...
def sample(other: Any) -> Operator[Any, Flow[Any]]: ...
"""
    written = method_of(tmp_path, factory, also='D = TypeVar("D")')
    assert "@overload" not in written
    assert written.startswith("def sample(self, other: Publisher[D]) -> Flow[T_co | D]:")


SEVERAL = """
def sample(*sources: Publisher[T], key: Callable[[T], int]) -> Flow[T]:
    '''Some.

    >>> list(flow.sample(flow.range(2), flow.just(7), key=len))

    It takes one of the `sources`. Without flows it is empty.

    Args:
        sources: what to take; also one iterable of flows.
        key: what of them.
    '''
"""


def test_a_source_of_several_flows_is_a_method_of_the_first(tmp_path: Path) -> None:
    assert signature_of(tmp_path, SEVERAL, spec="SourceSpec") == (
        "def sample(self, *others: Publisher[D], key: Callable[[T_co | D], int]) -> Flow[T_co | D]:"
    )


def test_the_text_of_a_source_of_several_flows_is_said_of_others(tmp_path: Path) -> None:
    written = method_of(tmp_path, SEVERAL, spec="SourceSpec")
    assert ">>> list(flow.range(2).sample(flow.just(7), key=len))" in written
    assert "It takes one of the `others`.\n" in written
    assert "others: what to take.\n" in written
    assert 'return self._combined("flow_multicast.one:sample", *others, key=key)' in written


def test_a_method_with_a_dot_is_found_under_the_name_of_its_package(tmp_path: Path) -> None:
    source = tmp_path / "packages" / "flow-spark" / "src" / "flow_spark"
    source.mkdir(parents=True)
    method_of(tmp_path, "def sample() -> Operator[T, Flow[T]]: ...")
    source.joinpath("_plugin.py").write_text(
        'SinkSpec("keep", "flow_spark.one:keep", method="spark.keep")', "utf-8"
    )
    source.joinpath("one.py").write_text(
        f"{HEAD}def keep(f: Callable[[T], int]) -> Operator[T, None]: ...", "utf-8"
    )
    written = surface.pages(tmp_path)[f"{surface.FOLDER}/spark.py"]
    assert "    def spark(self) -> SparkWords[T_co]:" in written
    words = written.partition("class SparkWords(Words[T_co], Generic[T_co]):")[2]
    assert "    def keep(self, f: Callable[[T_co], int]) -> None:" in words


def test_a_source_is_a_function_with_the_same_signature(tmp_path: Path) -> None:
    method_of(tmp_path, SEVERAL, spec="SourceSpec")
    written = surface.pages(tmp_path)[f"{surface.FOLDER}/functions.py"]
    assert "def sample(*sources: Publisher[T], key: Callable[[T], int]) -> Flow[T]:" in written
    assert 'return factory_of("flow_multicast.one:sample")(*sources, key=key)' in written
    assert "Executed by flow-multicast: `flow_multicast.sample`." in written


def test_an_overload_of_one_flow_is_not_a_method(tmp_path: Path) -> None:
    factory = """
@overload
def sample(a: Publisher[T], /) -> Flow[T]: ...
@overload
def sample(a: Publisher[T], b: Publisher[R], /) -> Flow[tuple[T, R]]: ...
@overload
def sample(*sources: Publisher[T]) -> Flow[tuple[T, ...]]: ...
def sample(*sources: Publisher[Any]) -> Flow[Any]: ...
"""
    written = method_of(tmp_path, factory, spec="SourceSpec")
    assert written.count("@overload") == 2
    assert "def sample(self, b: Publisher[R], /) -> Flow[tuple[T_co, R]]: ..." in written
    assert "def sample(self, *others: Publisher[D]) -> Flow[tuple[T_co | D, ...]]: ..." in written


def test_a_flow_that_fails_is_said_of_the_result(tmp_path: Path) -> None:
    factory = """
def sample() -> Operator[T, Flow[T]]:
    '''Some.

    Returns:
        An operator for `Flow.pipe`. Its flow fails with OSError.
    '''
"""
    assert "A flow that fails with OSError." in method_of(tmp_path, factory)


@pytest.mark.parametrize(
    ("factory", "why"),
    [
        ("def other() -> Operator[T, Flow[T]]: ...", "is not a function of the packages"),
        ("def sample() -> Flow[int]: ...", "does not say that it returns an Operator"),
        ("def sample(n) -> Operator[T, Flow[T]]: ...", "n has no type"),
        ("def sample(n: Mine) -> Operator[T, Flow[T]]: ...", "names Mine of flow_multicast.one"),
        ("def sample(n: Nobody) -> Operator[T, Flow[T]]: ...", "names Nobody, which is nowhere"),
        (
            "def sample(a: Executor, b: Place) -> Operator[T, Flow[T]]: ...",
            "Executor is flow_core.executors.Executor there, and concurrent.futures.Executor else",
        ),
        (
            "def sample(n: int) -> Operator[T, Flow[T]]: 'One.\\n\\nArgs:\\n    m: many.'",
            "takes n, and its text tells of m",
        ),
        (
            "def sample() -> Operator[T, Flow[T]]: 'One.\\n\\n>>> flow.range(3).pipe(sample())'",
            "has an example with the factory",
        ),
        (
            "def sample() -> Operator[T, Flow[T]]: 'One, and none more (F39).'",
            r"names a rule, \(F39\)",
        ),
    ],
)
def test_a_factory_that_cannot_be_a_method_is_refused(
    tmp_path: Path, factory: str, why: str
) -> None:
    with pytest.raises(surface.RefusedError, match=why):
        method_of(tmp_path, factory, also="class Mine: ...")


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_a_method_takes_what_its_factory_takes(spec: OperatorSpec | SinkSpec) -> None:
    assert spec.method is not None
    factory = spec.load()
    assert callable(factory)
    words, _, name = spec.method.rpartition(".")
    method = getattr(SparkWords if words else Flow, name)
    assert taken(method) == taken(factory)
    assert [spec.summary] == (method.__doc__ or "").replace("``", "`").splitlines()[:1]


@pytest.mark.parametrize("spec", OF_SEVERAL, ids=lambda spec: spec.name)
def test_a_method_takes_what_a_source_of_several_takes_after_the_first(spec: SourceSpec) -> None:
    assert spec.method is not None
    factory = spec.load()
    assert callable(factory)
    first, *more = taken(factory)
    if first[1] is inspect.Parameter.VAR_POSITIONAL:
        more = [("others", *first[1:]), *more]
    assert taken(getattr(Flow, spec.method)) == more


def taken(function: Callable[..., object]) -> list[tuple[object, ...]]:
    parameters = inspect.signature(function).parameters.values()
    return [(each.name, each.kind, each.default) for each in parameters if each.name != "self"]


SOURCES = [found.spec for found in HOST.sources.values() if found.spec.target[:9] == "flow_ops."]


@pytest.mark.parametrize("spec", SOURCES, ids=lambda spec: spec.name)
def test_a_source_of_a_package_is_a_function_of_the_core(spec: SourceSpec) -> None:
    factory = spec.load()
    assert callable(factory)
    assert taken(getattr(flow_core, spec.name)) == taken(factory)


def test_each_function_of_a_package_has_a_record() -> None:
    assert sorted(functions.PACKAGES) == sorted(spec.name for spec in SOURCES)
    assert set(functions.PACKAGES) < set(flow_core.__all__)


def test_each_method_of_a_package_has_a_record() -> None:
    methods = [name for cls in METHODS for name in vars(cls) if not name.startswith("_")]
    words = [f"spark.{name}" for name in vars(SparkWords) if not name.startswith("_")]
    found = [*methods, *words]
    assert sorted(found) == sorted(["spark", *(str(spec.method) for spec in PLUGGED)])


RAIL_METHODS = sorted(name for name in vars(RailMethods) if not name.startswith("_"))


@pytest.mark.parametrize("name", RAIL_METHODS)
def test_a_method_of_rails_takes_what_the_method_of_a_flow_takes(name: str) -> None:
    assert taken(getattr(RailMethods, name)) == taken(getattr(Flow, name))


@pytest.mark.parametrize("name", RAIL_METHODS)
def test_a_method_of_rails_is_called_on_each(name: str) -> None:
    class Spy(RailMethods[Any]):
        def _each(self, name: str, /, *args: object, **options: object) -> Any:
            return name, args, options

    method: Callable[..., object] = getattr(Spy(), name)
    signature = inspect.signature(method)
    given = signature.bind(
        *(object() for each in signature.parameters.values() if each.kind not in BY_NAME),
        **{key: object() for key, each in signature.parameters.items() if each.kind in BY_NAME},
    )
    assert method(*given.args, **given.kwargs) == (name, given.args, given.kwargs)


BY_NAME = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)


def test_rails_have_the_methods_that_give_a_flow_but_for_those_that_subscribe_again() -> None:
    assert {"take", "scan", "flat_map", "delay", "group_by", "map_concurrent"} < set(RAIL_METHODS)
    assert not surface.NOT_OF_RAILS & set(RAIL_METHODS)
    assert set(dir(Flow)) > surface.NOT_OF_RAILS
    assert not {"merge", "zip", "share", "to_future", "sorted"} & set(RAIL_METHODS)


@pytest.mark.parametrize(
    "name",
    [
        "flow_core.parallel",
        "flow_core.surface.functions",
        "flow_core.surface.multicast",
        "flow_core.surface.ops",
        "flow_core.surface.spark",
    ],
)
def test_the_examples_of_the_methods_run(name: str) -> None:
    module = import_module(name)
    failed, tried = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert (failed, tried > 0) == (0, True)
