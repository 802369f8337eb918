"""The records that flow-spark registers, all of whose targets exist."""

from __future__ import annotations

import subprocess
import sys

import pytest

from flow_core.plugins.records import Spec
from flow_spark import _plugin

RECORDS: list[Spec] = [
    *_plugin.flow_sources(),
    *_plugin.flow_operators(),
    *_plugin.flow_sinks(),
    *_plugin.flow_engines(),
    *_plugin.flow_converters(),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_every_record_names_something_that_exists(record: Spec) -> None:
    assert callable(record.load())
    assert record.summary.endswith(".")


def test_the_engine_takes_a_master_and_a_server() -> None:
    (engine,) = _plugin.flow_engines()

    assert engine.name == "spark"
    assert {"master", "remote"} <= set(engine.options)


@pytest.mark.parametrize("module", ["flow_spark", "flow_spark._plugin"])
def test_importing_it_is_cheap(module: str) -> None:
    """Listing plugins is cheap: PySpark and pyarrow are imported when something is used."""
    script = (
        f"import sys, {module}\n"
        "print([name for name in ('pandas', 'pyarrow', 'pyspark') if name in sys.modules])"
    )
    said = subprocess.run(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True
    )

    assert said.stdout.strip() == "[]"


def test_everything_public_is_there() -> None:
    import flow_spark

    for name in flow_spark.__all__:
        assert getattr(flow_spark, name) is not None
    assert set(flow_spark.__all__) <= set(dir(flow_spark))
    with pytest.raises(AttributeError, match="flow_spark has no 'missing'"):
        _ = flow_spark.missing
