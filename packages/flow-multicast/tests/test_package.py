"""The promises of the package as a whole."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import flow_multicast
from flow_core.plugins import PluginHost
from flow_core.protocols import Processor
from flow_multicast.processors._hot import HotProcessor

NAMED_IN_THE_CORE = {"Connectable"}  # so that every package can name them


def modules(package: ModuleType) -> Iterator[ModuleType]:
    yield package
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(found.name)


@pytest.mark.parametrize("module", list(modules(flow_multicast)), ids=lambda m: m.__name__)
def test_the_examples_in_the_documentation_are_true(module: ModuleType) -> None:
    assert doctest.testmod(module).failed == 0


def test_the_readme_is_true() -> None:
    text = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
    blocks = [part.partition("```")[0] for part in text.split("```python\n")[1:]]
    assert blocks
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)


@pytest.mark.checklist("M48")
def test_operators_are_not_processors() -> None:
    imported = [
        module
        for name, module in sys.modules.items()
        if name.partition(".")[0] in {"flow_core", "flow_multicast"}
    ]
    both_roles = {
        value
        for module in imported
        for value in vars(module).values()
        if inspect.isclass(value) and hasattr(value, "subscribe") and hasattr(value, "on_next")
    }
    names = [name for name in flow_multicast.__all__ if name.endswith("Processor")]
    processors = {getattr(flow_multicast, name) for name in names}
    assert both_roles == {Processor, HotProcessor} | processors


def test_the_plugin_loads_without_a_complaint() -> None:
    host = PluginHost({"FLOW_DISABLE_PLUGINS": "*", "FLOW_LOAD_PLUGINS": "flow_multicast._plugin"})
    assert host.problems == ()
    assert "flow_multicast._plugin" in [plugin.module for plugin in host.plugins]


def test_public_names_exist_in_their_modules() -> None:
    for name in flow_multicast.__all__:
        where = "flow_core." if name in NAMED_IN_THE_CORE else "flow_multicast."
        assert getattr(flow_multicast, name).__module__.startswith(where)
