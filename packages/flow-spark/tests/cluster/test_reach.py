"""Tasks connect to the driver, at the address that the session says."""

from __future__ import annotations

import pytest

import flow_core as flow
from flow_spark import on_spark
from flow_spark.errors import SparkJobError

from ..infrastructure.places import Place

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    pytest.mark.parametrize(
        "place",
        [
            "connect",
            pytest.param("standalone", marks=pytest.mark.cluster),
            pytest.param("connect-standalone", marks=pytest.mark.cluster),
        ],
        indirect=True,
    ),
]

HOST = "spark.flow.driver.host"


def test_tasks_find_the_driver_where_the_session_says_or_tell_what_to_set(place: Place) -> None:
    there = flow.range(10).pipe(on_spark(place.spark)).map(str)
    try:
        place.spark.conf.set(HOST, "flow.invalid")
        with pytest.raises(SparkJobError, match=rf"driver at flow\.invalid:\d+ .*Set {HOST}"):
            list(there)
        place.spark.conf.set(HOST, "localhost")
        assert sorted(there) == sorted(map(str, range(10)))
    finally:
        place.spark.conf.unset(HOST)
