"""The examples in the docstrings of the library run."""

from __future__ import annotations

import doctest
import pkgutil
from importlib import import_module

import pytest

import flow_core

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(flow_core.__path__, "flow_core.")
    if not module.name.endswith("__main__")
    and not module.name.startswith(("flow_core.surface.", "flow_core.parallel"))  # need others
)


@pytest.mark.parametrize("name", ["flow_core", *MODULES])
def test_the_examples_of_a_module_run(name: str) -> None:
    failed, _ = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
    assert failed == 0
