"""An error arrives when a function has raised it, however much of its partition is left."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from flow_core import Flow
from flow_spark import from_dataframe

from ..infrastructure.places import Place

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

LIMIT_S = 60.0
ROWS = 2 * 10**10
"""Spark needs half an hour to send that many."""


def fail(n: int) -> int:
    raise ValueError(f"{n} is wrong")


WAYS: dict[str, Callable[[Flow[int], Path], object]] = {
    "read": lambda flow, _: list(flow),
    "counted by key": lambda flow, _: list(flow.count_by_key(lambda n: n)),
    "written": lambda flow, folder: flow.spark.write(
        "parquet", str(folder / "out"), schema="n long"
    ),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_the_error_of_a_first_row_does_not_wait_for_the_last(
    way: Callable[[Flow[int], Path], object], place: Place, tmp_path: Path
) -> None:
    rows = from_dataframe(place.spark.range(0, ROWS, 1, 2)).map(fail)
    began = time.monotonic()

    with pytest.raises(Exception, match=r"ValueError: |is wrong"):
        way(rows, tmp_path)

    assert time.monotonic() - began < LIMIT_S
