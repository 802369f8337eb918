"""Stages of other packages on a cluster: a package brings a stage and its translation."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import flow_core as flow
from flow_core.errors import PluginError
from flow_core.plugins import PluginHost
from flow_core.stages import Program
from flow_core.structure import stages_of
from flow_spark import on_spark, to_dataframe
from flow_spark.jobs.lowering import split

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLUGIN = '''
"""A package of somebody else: the span of all items, from the least to the greatest."""

from flow_core import Operator
from flow_core.plugins import TranslationSpec, hookimpl
from flow_core.stages import Stage, Template, Translation

SPAN = Template(
    "span",
    state="ends = None",
    on_item="ends = (x, x) if ends is None else (min(ends[0], x), max(ends[1], x))",
    on_end="""
    if ends is not None:
        x = ends
        EMIT
    """,
)

SPAN_OF_SPANS = Template(
    "span",
    state="ends = None",
    on_item="""
    if ends is None:
        ends = x
    else:
        ends = min(ends[0], x[0]), max(ends[1], x[1])
    """,
    on_end=SPAN.on_end,
)


def span():
    return Operator("span", lambda flow: flow.pipe(Stage(SPAN)))


def in_parts(stage):
    return Translation((stage,), (Stage(SPAN_OF_SPANS),))


def not_at_all(stage):
    return None


def wrong(stage):
    return 42


@hookimpl
def flow_translations():
    yield TranslationSpec("span", "acme_span:{target}", template="acme_span:SPAN")
'''


Install = Callable[..., Any]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs the package, with one of its functions as the translation."""

    def installed(target: str = "in_parts") -> Any:  # Any: a module without types
        (tmp_path / "acme_span.py").write_text(PLUGIN.replace("{target}", target))
        monkeypatch.syspath_prepend(str(tmp_path))
        host = PluginHost({"FLOW_DISABLE_PLUGINS": "*", "FLOW_LOAD_PLUGINS": "acme_span"})
        monkeypatch.setattr("flow_core.plugins.host._host", host)
        assert not host.problems
        return sys.modules["acme_span"]

    yield installed
    sys.modules.pop("acme_span", None)


def names(made: flow.Flow[Any]) -> tuple[str, str]:
    found = split(stages_of(made), ordered=False, ways_out="")
    return (
        " ".join(stage.name for stage in found.remote),
        " ".join(stage.name for stage in found.local),
    )


def test_a_stage_of_a_third_party_runs_in_parts_by_its_translation(install: Install) -> None:
    made = flow.range(10).map(abs).pipe(install().span()).map(str)

    assert names(made) == ("map span", "span map")


def test_its_parts_over_partitions_give_what_it_gives_over_the_whole(install: Install) -> None:
    found = split(stages_of(flow.range(10).pipe(install().span())), ordered=False, ways_out="")
    remote, local = Program[Any, Any](found.remote), Program[Any, Any](found.local)

    def arriving() -> Iterator[Any]:
        for share in ([4, 2], [], [9, 3]):
            yield from remote.iterate(iter(share))

    assert list(local.iterate(arriving())) == [(2, 9)]
    assert found.local[0].assembled_at == found.remote[0].assembled_at is not None


def test_a_translation_may_leave_a_stage_to_one_place(install: Install) -> None:
    made = flow.range(10).map(abs).pipe(install("not_at_all").span())

    assert names(made) == ("map", "span")


def test_without_a_translation_it_runs_in_one_place(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = flow.range(10).pipe(install().span())
    monkeypatch.setattr("flow_core.plugins.host._host", PluginHost({"FLOW_DISABLE_PLUGINS": "*"}))

    assert names(made) == ("", "span")


def test_an_invalid_translation_is_refused_with_its_origin(install: Install) -> None:
    made = flow.range(10).pipe(install("wrong").span())

    with pytest.raises(PluginError, match=r"'span' of acme_span made no Translation .* but 42"):
        names(made)


@pytest.mark.spark
def test_it_runs_on_spark(install: Install, spark: SparkSession) -> None:
    acme = install()
    there = flow.range(100).pipe(on_spark(spark, partitions=3)).map(lambda n: n - 50)

    assert there.pipe(acme.span()).single() == (-50, 49)
    df = there.pipe(acme.span()).pipe(to_dataframe(schema="least int, most int"))
    assert [tuple(row) for row in df.collect()] == [(-50, 49)]
