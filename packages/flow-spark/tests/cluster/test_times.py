"""Times mean the same on every mode of Spark, in whatever zone its session is."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import pytest

import flow_core as flow
from flow_spark import SchemaMismatchError, from_dataframe
from flow_spark.items.zones import zone_of

from ..infrastructure.places import Place

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.timeout(300)]

ZONE = "spark.sql.session.timeZone"
NOON = datetime.datetime(2024, 7, 1, 12)  # noqa: DTZ001 - of no zone


@pytest.fixture(params=["Z", "PST", "UTC-0130", "+8", "Europe/Berlin", "SystemV/PST8PDT"])
def zoned(place: Place, request: pytest.FixtureRequest) -> Iterator[tuple[Place, str]]:
    before = place.spark.conf.get(ZONE)
    assert before is not None
    place.spark.conf.set(ZONE, request.param)
    yield place, request.param
    place.spark.conf.set(ZONE, before)


def test_a_time_is_read_and_written_in_the_zone_of_the_session(zoned: tuple[Place, str]) -> None:
    place, name = zoned
    here = NOON.replace(tzinfo=zone_of(name))
    rows = place.spark.sql(
        "SELECT TIMESTAMP '2024-07-01 12:00:00' AS t, TIMESTAMP_NTZ '2024-07-01 12:00:00' AS n, "
        "map('a', array(TIMESTAMP '2024-07-01 12:00:00')) AS nested"
    )
    want = (here, NOON, {"a": [here]})

    for there in (from_dataframe(rows), from_dataframe(rows).map(lambda row: row)):
        (found,) = there
        assert found == want
        assert found[0].tzinfo == found[2]["a"][0].tzinfo == here.tzinfo
        made = there.to_dataframe(schema=rows.schema)
        assert made.selectExpr("string(t)", "string(n)", "string(nested)").collect() == (
            rows.selectExpr("string(t)", "string(n)", "string(nested)").collect()
        )


def test_a_time_without_a_zone_is_refused_by_a_task(zoned: tuple[Place, str]) -> None:
    place, _ = zoned
    made = flow.just(1).on_spark(place.spark).map(lambda _: NOON).to_dataframe(schema="t timestamp")

    with pytest.raises(Exception, match="has no time zone") as caught:
        made.collect()

    assert SchemaMismatchError.__name__ in str(caught.value)
