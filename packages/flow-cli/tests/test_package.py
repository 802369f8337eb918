"""The promises of the package as a whole."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import subprocess
import sys

import pytest

import flow_cli
import flow_core
from flow_cli.progress import display, progress
from flow_core import hints
from flow_core.plugins import plugin_host

MODULES = [found.name for found in pkgutil.walk_packages(flow_cli.__path__, "flow_cli.")]
RUN = "flow_cli.__main__"


@pytest.mark.parametrize("name", ["flow_cli", *(name for name in MODULES if name != RUN)])
def test_the_examples_of_a_module_run(name: str) -> None:
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("cli", "it is the package flow_cli"),
        ("pipelines", "it is the module flow_cli.pipelines"),
        ("progress", "it is the module flow_cli.progress"),
    ],
)
def test_the_core_says_where_it_is(name: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AttributeError) as raised:
        getattr(flow_core, name)
    assert str(raised.value) == f"flow_core has no {name!r}; {says}"
    monkeypatch.setattr(hints, "find_spec", lambda name: None)
    with pytest.raises(AttributeError) as raised:
        getattr(flow_core, name)
    assert str(raised.value) == f"flow_core has no {name!r}; {says} (pip install flow-cli)"


def test_python_m_flow_core_says_what_the_command_is(monkeypatch: pytest.MonkeyPatch) -> None:
    command = (sys.executable, "-W", "error", "-m", "flow_core", "plugins")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "flow-core has no command: it is `flow`\n")
    monkeypatch.setattr(hints, "find_spec", lambda name: None)
    assert hints.command("plugins") == "`flow plugins` (pip install flow-cli)"


def test_the_operator_and_the_display_are_registered() -> None:
    host = plugin_host()
    assert host.operator("progress") is progress
    assert host.display("rich")() is display()


def test_the_command_loads_rich_only_to_draw() -> None:
    code = "import sys, flow_cli; flow_cli.main(['--version']); print('rich' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("False\n")
