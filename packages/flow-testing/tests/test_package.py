"""The promises of the package as a whole."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import sys

import pytest

import flow_core
import flow_testing
from flow_core import hints
from flow_core.hooks import drop_error
from flow_testing import Drops, VirtualClock

MODULES = [found.name for found in pkgutil.walk_packages(flow_testing.__path__, "flow_testing.")]


@pytest.mark.parametrize("name", ["flow_testing", *MODULES])
def test_the_examples_of_a_module_run(name: str) -> None:
    module = importlib.import_module(name)
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


def test_each_public_name_exists() -> None:
    for name in flow_testing.__all__:
        assert getattr(flow_testing, name) is not None


SAID = {
    "from flow_core.testing import hot": "flow_core.testing has no 'hot'; it is flow_testing.hot",
    "flow_core.testing": "flow_core has no 'testing'; it is the package flow_testing",
}


@pytest.mark.parametrize("line", SAID)
def test_the_core_says_where_the_kit_is(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(flow_core, "testing", raising=False)  # as another test may have imported it
    monkeypatch.delitem(sys.modules, "flow_core.testing", raising=False)
    with pytest.raises((ImportError, AttributeError)) as raised:
        exec(line)
    assert str(raised.value) == SAID[line]
    monkeypatch.setattr(hints, "find_spec", lambda name: None if name == "flow_testing" else name)
    monkeypatch.delattr(flow_core, "testing", raising=False)
    with pytest.raises((ImportError, AttributeError)) as raised:
        exec(line)
    assert str(raised.value) == f"{SAID[line]} (pip install flow-testing)"


def test_fixtures_are_there_without_an_import(
    drops: Drops, virtual_clock: VirtualClock, frequent_switches: None
) -> None:
    error = ValueError("nobody gets it")
    drop_error(error)
    assert drops.take_errors() == [error]
    assert virtual_clock.now() == 0
