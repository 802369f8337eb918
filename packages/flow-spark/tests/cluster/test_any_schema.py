"""Whatever schema rows have, they come and go as they are on every mode of Spark."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import StructType

from ..infrastructure.any_schema import ZONES, schemas_with_rows
from ..infrastructure.places import Place
from ..test_any_schema import LAX, in_zone

# `collect()` over Connect asks pytz for the zone, which knows no PST.
KNOWN = [zone for zone in ZONES if zone != "PST"]


@pytest.mark.cluster
@pytest.mark.spark
@pytest.mark.timeout(3000)
@pytest.mark.filterwarnings("ignore:all .* columns are read:RuntimeWarning")  # a wide schema
@given(schemas_with_rows(), st.sampled_from(KNOWN))
@LAX
def test_rows_of_any_schema_come_and_go_as_they_are(
    place: Place, drawn: tuple[StructType, list[tuple[Any, ...]]], zone: str
) -> None:
    in_zone(place.spark, zone, *drawn)
