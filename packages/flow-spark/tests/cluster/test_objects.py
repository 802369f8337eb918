"""Objects of PySpark's classes and of the user's come and go on every mode of Spark."""

from __future__ import annotations

from typing import Any

import pytest

import flow_core as flow
from flow_spark import from_dataframe

from ..infrastructure.places import Place
from ..test_objects import OF_SPARK, content, nested, row_of

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.mark.parametrize(("kind", "value"), OF_SPARK)
def test_objects_are_read_written_and_in_stages_what_they_are(
    place: Place, kind: Any, value: object
) -> None:
    rows = flow.just(row_of(value)).to_dataframe(place.spark, schema=nested(kind))

    for items in (from_dataframe(rows), from_dataframe(rows).map(lambda row: row)):
        (found,) = items
        assert content(found) == content(row_of(value))
        made = items.to_dataframe(schema=nested(kind))
        assert made.schema == nested(kind)
        (again,) = from_dataframe(made)
        assert content(again) == content(row_of(value))
    (frame,) = from_dataframe(rows).to_pandas().itertuples(index=False, name=None)
    assert content(list(frame)) == content(list(row_of(value)))
