"""A stage that depends on an order is refused at assembly where the items have none."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

import flow_core as flow
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.plugins import Kind, OperatorSpec, Placement, plugin_host
from flow_core.stages import UNSET, Stage, Template
from flow_spark import OrderedOperatorError, from_dataframe, on_spark
from flow_spark.engine import SparkEngine
from flow_spark.jobs.lowering import split

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPECS: list[OperatorSpec] = [found.spec for found in plugin_host().operators.values()]


def stages_of(spec: OperatorSpec) -> list[Template]:
    """The templates of an operator of flow-core."""
    from flow_core.plugins._builtin import stage_templates

    return stage_templates()[spec.name]


def place_of(template: Template) -> Placement:
    """The place where a stage runs, by what becomes of it."""
    of_param = {"start": 0, "seed": UNSET}
    stage: Stage[Any, Any] = Stage(template, *(of_param.get(name, str) for name in template.params))
    try:
        parts = split((stage,), ordered=False, ways_out="none")
    except OrderedOperatorError:
        return Placement.REFUSED
    if parts.by is not None:
        return Placement.SHUFFLE
    return Placement.CLUSTER if parts.remote else Placement.DRIVER


@pytest.mark.parametrize(
    "spec",
    [spec for spec in SPECS if spec.target.startswith(("flow_core.flow:", "flow_core.operators:"))],
    ids=lambda spec: spec.name,
)
def test_a_stage_runs_where_its_record_says(spec: OperatorSpec) -> None:
    if spec.kind is Kind.BOUNDARY:
        assert spec.placement is Placement.DRIVER
    elif spec.name in ("collect", "reduce"):  # without a combiner, or with a seed: in one place
        assert {place_of(one) for one in stages_of(spec)} == {Placement.CLUSTER, Placement.DRIVER}
        assert spec.placement is Placement.CLUSTER
    elif spec.name == "buffer_with_count":  # any so many items, but none twice
        assert {place_of(one) for one in stages_of(spec)} == {Placement.DRIVER, Placement.REFUSED}
        assert spec.placement is Placement.DRIVER
    else:
        assert {place_of(template) for template in stages_of(spec)} == {spec.placement}


@pytest.mark.spark
@pytest.mark.parametrize(
    "spec", [spec for spec in SPECS if spec.kind is Kind.BOUNDARY], ids=lambda spec: spec.name
)
def test_an_operator_that_is_not_a_stage_is_refused_where_its_record_says(
    spark: SparkSession, spec: OperatorSpec
) -> None:
    made: Operator[int, Flow[int]] = Operator(spec.name, lambda before: before.hide(), "other")
    there = flow.range(9).pipe(on_spark(spark)).map(abs)

    assert there.sort().pipe(made)
    assert flow.range(9).pipe(on_spark(spark, partitions=1)).map(abs).pipe(made)
    if spec.placement is Placement.REFUSED:
        with pytest.raises(OrderedOperatorError) as caught:
            there.pipe(made)
        text = str(caught.value)
        assert text.startswith(f"{spec.name}(other), assembled at ")
        assert "test_refused.py:" in text
        assert "partitions=1" in text
    else:
        assert there.pipe(made)


@pytest.mark.spark
def test_rows_go_to_a_service_in_batches_many_at_a_time(spark: SparkSession) -> None:
    rows = from_dataframe(spark.range(250).selectExpr("id", "id * 2 as amount"))
    sent: list[int] = []

    def send(batch: list[tuple[int, int]]) -> int:
        sent.extend(amount for _, amount in batch)
        return len(batch)

    assert sorted(rows.batch(100).map_concurrent(send, 10, retry=3)) == [50, 100, 100]
    assert sorted(sent) == [2 * n for n in range(250)]
    sorted_rows = rows.sort().map_concurrent(lambda row: row[0], 4)
    assert list(sorted_rows) == list(range(250))


def zipped(one: Flow[int], other: Flow[int]) -> object:
    import flow_ops

    return flow_ops.zip(one, other)


def zipped_with(one: Flow[int], other: Flow[int]) -> object:
    import flow_ops

    return one.pipe(flow_ops.zip_with(other))


def compared(one: Flow[int], other: Flow[int]) -> object:
    import flow_ops

    return flow_ops.sequence_equal(one, other)


def merged_in_order(one: Flow[int], other: Flow[int]) -> object:
    import flow_ops

    return flow_ops.ordered_merge(one, other)


@pytest.mark.spark
@pytest.mark.parametrize("made", [zipped, zipped_with, compared, merged_in_order])
def test_flows_that_are_looked_at_side_by_side_need_an_order_each(
    spark: SparkSession, made: Callable[[Flow[int], Flow[int]], object]
) -> None:
    pytest.importorskip("flow_ops", reason="needs flow-ops beside it")
    here, there = flow.range(3), flow.range(3).pipe(on_spark(spark))

    for pair in ((here, there), (there, here)):
        with pytest.raises(OrderedOperatorError, match=r"assembled at .*test_refused.py:\d+,"):
            made(*pair)
    assert made(here, there.sort())
    assert made(here, there.hide())


@pytest.mark.spark
def test_a_stage_is_refused_when_it_is_put_behind(spark: SparkSession) -> None:
    there = from_dataframe(spark.range(9)).map(abs)

    with pytest.raises(OrderedOperatorError, match=r"skip\(count=1\), assembled at .*:\d+,"):
        there.skip(1)
    with pytest.raises(OrderedOperatorError, match="pairwise"):
        there.pairwise()
    with pytest.raises(OrderedOperatorError, match="skip"):
        SparkEngine(spark, "local").place(flow.range(9).map(abs).skip(1))
    assert list(there.sort().skip(7)) == [7, 8]
