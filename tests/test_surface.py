"""The methods that other packages execute are what their records and factories say."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flow_core import Flow
from flow_core.plugins import OperatorSpec, plugin_host
from flow_core.surface.multicast import MulticastMethods

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

SPECS = [found.spec for found in plugin_host().operators.values() if found.spec.method]
PLUGGED = [spec for spec in SPECS if not spec.target.startswith("flow_core.")]

HEAD = """
from __future__ import annotations
from collections.abc import Callable
from typing import Any, Literal, TypeVar
from flow_core.flow import Flow
from flow_core.operator import Operator
T = TypeVar("T")
R = TypeVar("R")
"""


def method_of(root: Path, factory: str, name: str = "sample", also: str = "") -> str:
    """What is written of a factory, from its first line to its last."""
    source = root / "packages" / "flow-multicast" / "src" / "flow_multicast"
    core = root / "packages" / "flow-core" / "src" / "flow_core"
    source.mkdir(parents=True)
    core.mkdir(parents=True)
    core.joinpath("flow.py").write_text("class Flow: ...\n", "utf-8")
    core.joinpath("operator.py").write_text("class Operator: ...\n", "utf-8")
    source.joinpath("_plugin.py").write_text(
        f'OperatorSpec("{name}", "flow_multicast.one:{name}", method="{name}")', "utf-8"
    )
    source.joinpath("one.py").write_text(f"{HEAD}{also}\n{factory}", "utf-8")
    (text,) = surface.pages(root).values()
    return str(text).partition("__slots__ = ()\n")[2].replace("    ", "", 1)


def signature_of(root: Path, factory: str, also: str = "") -> str:
    return method_of(root, factory, also=also).partition("\n")[0].strip()


def test_the_items_of_the_flow_are_those_of_the_class(tmp_path: Path) -> None:
    factory = "def sample(f: Callable[[T], R], n: int = 3) -> Operator[T, Flow[R]]: ..."
    assert (
        signature_of(tmp_path, factory)
        == "def sample(self, f: Callable[[T_co], R], n: int=3) -> Flow[R]:"
    )


def test_an_item_that_is_given_is_of_a_type_of_its_own(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("factory", "why"),
    [
        ("def other() -> Operator[T, Flow[T]]: ...", "is no function of the packages"),
        ("def sample() -> Flow[int]: ...", "does not say that it returns an Operator"),
        ("def sample(n) -> Operator[T, Flow[T]]: ...", "n has no type"),
        ("def sample(n: Mine) -> Operator[T, Flow[T]]: ...", "names Mine of flow_multicast.one"),
        ("def sample(n: Nobody) -> Operator[T, Flow[T]]: ...", "names Nobody, which is nowhere"),
        (
            "def sample(n: int) -> Operator[T, Flow[T]]: 'One.\\n\\nArgs:\\n    m: many.'",
            "takes n, and its text tells of m",
        ),
        (
            "def sample() -> Operator[T, Flow[T]]: 'One.\\n\\n>>> flow.range(3).pipe(sample())'",
            "has an example with pipe",
        ),
    ],
)
def test_a_factory_that_is_no_method_is_refused(tmp_path: Path, factory: str, why: str) -> None:
    with pytest.raises(surface.RefusedError, match=why):
        method_of(tmp_path, factory, also="class Mine: ...")


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_a_method_takes_what_its_factory_takes(spec: OperatorSpec) -> None:
    assert spec.method is not None
    factory = spec.load()
    assert callable(factory)
    assert taken(getattr(Flow, spec.method)) == taken(factory)


def taken(function: Callable[..., object]) -> list[tuple[object, ...]]:
    parameters = inspect.signature(function).parameters.values()
    return [(each.name, each.kind, each.default) for each in parameters if each.name != "self"]


def test_each_method_of_a_package_has_a_record() -> None:
    methods = {name for name in vars(MulticastMethods) if not name.startswith("_")}
    assert methods == {spec.method for spec in PLUGGED}
