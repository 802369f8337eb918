"""Modules that are brought along to executors go by name, and no other that is not installed."""

from __future__ import annotations

import importlib.util
import sys
import types
import zipfile
from pathlib import Path

import pytest

from flow_spark.driver.shipping import packed
from flow_spark.pickling.modules import SHIPPED, importable


def test_all_that_goes_by_its_name_though_it_may_not_be_there_is_shipped(tmp_path: Path) -> None:
    installed = {name for name in SHIPPED if importlib.util.find_spec(name) is not None}

    with zipfile.ZipFile(packed(tmp_path)) as archive:
        found = {name.partition("/")[0].removesuffix(".py") for name in archive.namelist()}

    assert found == installed
    assert {"flow_core", "flow_spark"} <= found


@pytest.mark.parametrize("name", ["flow_jobs", "flow_", "flow_core_jobs", "__main__"])
def test_a_module_with_a_similar_name_goes_by_value(name: str, tmp_path: Path) -> None:
    module = types.ModuleType(name)
    module.__file__ = str(tmp_path / f"{name}.py")

    assert not importable(module)


@pytest.mark.parametrize("folder", ["airflow/dags", "src/app", "."])
def test_a_program_in_a_folder_of_the_interpreter_is_not_installed_there(folder: str) -> None:
    """As /usr/src/app is in /usr, and a project in the virtual environment that it was made of."""
    module = types.ModuleType("orders")
    module.__file__ = str(Path(sys.prefix, folder, "orders.py"))

    assert not importable(module)


def test_an_installed_module_goes_by_its_name() -> None:
    assert importable(types)
    assert importable(pytest)
