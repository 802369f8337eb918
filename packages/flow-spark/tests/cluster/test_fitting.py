"""Columns fit the fields of a record, or are refused, on every mode of Spark."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

import flow_core as flow
from flow_spark import SchemaMismatchError, from_dataframe, from_stream, union

from ..infrastructure.drop import Drop
from ..infrastructure.places import Place

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.timeout(300)]


@dataclass
class Leg:
    minutes: int
    stops: list[str]


@dataclass
class Trip:
    origin: str
    leg: Leg | None


GOOD = "SELECT 'JFK' AS ORIGIN, named_struct('minutes', 40, 'stops', array('a'), 'more', 1) AS leg"
TEXT = "SELECT 'JFK' AS origin, named_struct('minutes', '40', 'stops', array('a')) AS leg"
MISSING = "SELECT 'JFK' AS origin, named_struct('minutes', 40) AS leg"
NULL = (
    "SELECT 'JFK' AS origin, named_struct('minutes', nullif(40, id), 'stops', array('a')) AS leg "
    "FROM range(39, 41, 1, 1)"
)


def test_rows_are_records_with_the_types_of_the_columns(place: Place) -> None:
    rows = from_dataframe(place.spark.sql(GOOD), as_=Trip)
    want = Trip("JFK", Leg(40, ["a"]))

    assert list(rows) == [want]
    assert list(rows.map(lambda trip: trip)) == [want]
    assert list(union(rows, rows).map(lambda trip: trip)) == [want, want]
    assert [from_dataframe(rows.to_dataframe(), as_=Trip).first()] == [want]
    assert flow.just(want).on_spark(place.spark).map(lambda trip: trip).first() == want


@pytest.mark.parametrize(
    ("query", "told"),
    [
        pytest.param(
            TEXT,
            "Trip.leg.minutes is int, and what is there in column 'leg' is of type string",
            id="text",
        ),
        pytest.param(MISSING, "Trip.leg", id="missing"),
    ],
)
def test_columns_of_other_types_are_refused_before_a_job(
    place: Place, query: str, told: str
) -> None:
    with pytest.raises(SchemaMismatchError, match=re.escape(told)):
        from_dataframe(place.spark.sql(query), as_=Trip)


def test_a_stream_with_another_column_is_refused_before_it_starts(place: Place, drop: Drop) -> None:
    with pytest.raises(SchemaMismatchError, match="Trip"):
        from_stream(drop.stream(place.spark), as_=Trip)


@pytest.mark.parametrize("staged", [False, True])
def test_a_null_in_a_field_that_is_not_optional_is_reported_with_its_row(
    place: Place, staged: bool
) -> None:
    rows = from_dataframe(place.spark.sql(NULL), as_=Trip)
    found: list[Trip] = []

    with pytest.raises(SchemaMismatchError, match=r"Trip\.leg\.minutes is int, and here it is No"):
        found.extend(rows.map(lambda trip: trip) if staged else rows)
