"""Rows keep their order on the way into the memory of this process."""

from __future__ import annotations

import pytest

from flow_spark import from_dataframe

from ..infrastructure.places import Place

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(300)]

ROWS, TRIES = 200, 10


def test_the_table_of_an_ordered_flow_has_its_order(place: Place) -> None:
    wanted = list(range(ROWS))
    numbers = place.spark.createDataFrame([(n,) for n in wanted], "id long")
    flow = from_dataframe(numbers, ordered=True)

    for _ in range(TRIES):
        assert flow.to_arrow()["id"].to_pylist() == wanted
        assert list(flow.to_pandas()["id"]) == wanted
    assert flow.map(lambda n: n).to_arrow(schema="id long")["id"].to_pylist() == wanted
