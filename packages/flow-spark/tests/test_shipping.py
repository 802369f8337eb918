"""What is brought along to executors goes by its name, and nothing else that is not installed."""

from __future__ import annotations

import importlib.util
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
def test_what_only_looks_like_it_goes_by_value(name: str, tmp_path: Path) -> None:
    module = types.ModuleType(name)
    module.__file__ = str(tmp_path / f"{name}.py")

    assert not importable(module)
