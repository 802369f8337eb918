"""The methods that other packages execute, where such a package is missing or too old."""

from __future__ import annotations

import inspect
import pydoc
import sys
from collections.abc import Callable
from importlib.abc import MetaPathFinder
from operator import attrgetter
from types import ModuleType
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow, FlowError, NotInstalledError
from flow_core.surface import factories, functions
from flow_core.surface.multicast import MulticastMethods
from flow_core.surface.ops import OpsMethods
from flow_core.surface.spark import SparkMethods, SparkWords

PACKAGES = {
    MulticastMethods: "flow-multicast",
    OpsMethods: "flow-ops",
    SparkMethods: "flow-spark",
    SparkWords: "flow-spark",
}
METHODS = [
    (package, f"{'spark.' * (cls is SparkWords)}{name}")
    for cls, package in PACKAGES.items()
    for name in vars(cls)
    if not name.startswith("_") and name != "spark"
]


class Missing(MetaPathFinder):
    """Finds none of the packages, installed or not."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname.partition(".")[0].replace("_", "-") in PACKAGES.values():
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


@pytest.fixture(autouse=True)
def _without_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(factories, "KNOWN", {})
    monkeypatch.setattr("flow_core.flow.KNOWN", factories.KNOWN)
    monkeypatch.setattr(sys, "meta_path", [Missing(), *sys.meta_path])
    for name in list(sys.modules):
        if name.partition(".")[0].replace("_", "-") in PACKAGES.values():
            monkeypatch.delitem(sys.modules, name)


def call(name: str) -> object:
    """Call the method of a flow with some argument for each that it needs."""
    return call_with_objects(attrgetter(name)(flow.range(3)))


def call_with_objects(method: Callable[..., object]) -> object:
    needed: list[Any] = [
        object()
        for each in inspect.signature(method).parameters.values()
        if each.default is each.empty and each.kind is not each.VAR_POSITIONAL
    ]
    return method(*needed)


@pytest.mark.parametrize(("package", "name"), METHODS)
def test_a_method_of_a_package_that_is_missing_says_how_to_install_it(
    package: str, name: str
) -> None:
    with pytest.raises(NotInstalledError) as caught:
        call(name)
    assert isinstance(caught.value, FlowError)
    assert isinstance(caught.value, ModuleNotFoundError)
    assert caught.value.name == package.replace("-", "_")
    assert str(caught.value).endswith(
        f"() comes with the package {package}, which is not installed: pip install {package}"
    )


def test_a_flow_has_the_words_of_a_package_that_is_missing() -> None:
    """So that `hasattr` is true, as for the methods: the call says what is missing."""
    assert hasattr(flow.range(3), "spark")
    assert hasattr(flow.range(3).spark, "where")
    assert not hasattr(flow.range(3).spark, "wehre")


@pytest.mark.parametrize("name", functions.PACKAGES)
def test_a_function_of_a_package_that_is_missing_says_how_to_install_it(name: str) -> None:
    with pytest.raises(NotInstalledError, match=rf"{name}\(\) .*: pip install flow-ops"):
        call_with_objects(getattr(flow, name))


def module(monkeypatch: pytest.MonkeyPatch, name: str, **contents: object) -> None:
    made = ModuleType(name)
    made.__path__ = []  # a package, without modules of its own
    vars(made).update(contents)
    monkeypatch.setitem(sys.modules, name, made)


def test_a_package_without_the_module_of_a_method_is_too_old(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module(monkeypatch, "flow_multicast")
    with pytest.raises(NotInstalledError, match="pip install --upgrade flow-multicast flow-core"):
        call("share")


def test_a_package_without_the_function_of_a_method_is_too_old(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module(monkeypatch, "flow_multicast")
    module(monkeypatch, "flow_multicast.connectables")
    module(monkeypatch, "flow_multicast.connectables.publishing")
    with pytest.raises(
        NotInstalledError,
        match=r"share\(\) is not in the version of flow-multicast that is installed",
    ):
        call("share")


def test_a_missing_dependency_of_a_package_is_reported_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def lacking(name: str) -> object:
        raise ModuleNotFoundError("No module named 'numpy'", name="numpy")

    monkeypatch.setattr(factories, "import_module", lacking)
    with pytest.raises(ModuleNotFoundError, match="No module named 'numpy'") as caught:
        call("share")
    assert not isinstance(caught.value, NotInstalledError)


def test_the_help_of_a_method_has_its_signature_and_its_text() -> None:
    text = pydoc.render_doc(Flow.debounce, renderer=pydoc.plaintext)
    assert "debounce(" in text
    # Before Python 3.14, hints stand in quotes.
    assert "quiet: Seconds | Callable[[T_co], Flow[object]]" in text.replace("'", "")
    assert "Send only items that no other item follows for a while" in text
    assert "Executed by flow-ops: `flow_ops.debounce`." in text
