"""Times are of the session's zone, whatever Spark lets it be."""

from __future__ import annotations

import copy
import datetime
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pandas
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import flow_core as flow
from flow_spark import SchemaMismatchError, from_dataframe
from flow_spark.items.columns import to_batches
from flow_spark.items.rows import RowReader
from flow_spark.items.schema import ItemSchema
from flow_spark.items.zones import zone_of

ZONE = "spark.sql.session.timeZone"
NEW_YORK = ZoneInfo("America/New_York")
NOON = datetime.datetime(2024, 7, 1, 12)  # noqa: DTZ001 - of no zone

OFFSETS = {
    "+8": 8 * 3600,
    "-07": -7 * 3600,
    "+0830": 8 * 3600 + 1800,
    "+1:30": 5400,
    "+08:3": 8 * 3600 + 180,
    "+08:30:15": 8 * 3600 + 1815,
    "+083015": 8 * 3600 + 1815,
    "-18:00": -18 * 3600,
    "UTC+1": 3600,
    "UTC-0130": -5400,
    "GMT+8:30": 8 * 3600 + 1800,
    "UT-3": -3 * 3600,
    "EST": -5 * 3600,
    "HST": -10 * 3600,
    "SystemV/YST9": -9 * 3600,
}
REGIONS = {"PST": "America/Los_Angeles", "CST": "America/Chicago", "IST": "Asia/Kolkata"}
OTHERS = ("Etc/GMT+5", "GMT", "America/New_York", "Australia/Lord_Howe", "SystemV/PST8PDT", "Zulu")


@pytest.mark.parametrize(("name", "seconds"), OFFSETS.items())
def test_an_offset_is_read_as_spark_reads_it(name: str, seconds: int) -> None:
    assert zone_of(name) == timezone(timedelta(seconds=seconds))


@pytest.mark.parametrize(("name", "region"), REGIONS.items())
def test_three_letters_are_the_region_that_java_takes_them_for(name: str, region: str) -> None:
    assert zone_of(name) == ZoneInfo(region)


@pytest.mark.parametrize("name", ["Z", "UTC", "UT", "+00:00", "-0"])
def test_names_of_utc_give_the_utc_of_python(name: str) -> None:
    assert zone_of(name) is UTC


def test_a_zone_that_python_has_not_is_refused_with_the_setting() -> None:
    with pytest.raises(ValueError, match=r"'Moon/Sea_of_Tranquility'.*spark\.sql\.session\.timeZ"):
        zone_of("Moon/Sea_of_Tranquility")


@pytest.mark.parametrize(
    ("instant", "hours", "fold"),
    [
        ((1986, 4, 27, 9, 59), -8, 0),
        ((1986, 4, 27, 10), -7, 0),
        ((1986, 10, 26, 8, 59), -7, 0),
        ((1986, 10, 26, 9), -8, 1),
        ((1986, 10, 26, 10), -8, 0),
        ((1974, 1, 6, 10), -7, 0),
        ((1975, 2, 23, 9, 59), -8, 0),
    ],
)
def test_old_american_time_changes_on_the_last_sundays(
    instant: tuple[int, ...], hours: int, fold: int
) -> None:
    when = datetime.datetime(*instant, tzinfo=UTC)  # type: ignore[misc, arg-type]  # its parts

    here = when.astimezone(zone_of("SystemV/PST8PDT"))

    assert (here.utcoffset(), here.fold) == (timedelta(hours=hours), fold)
    assert here.astimezone(UTC) == when
    assert here.tzname() == ("PST" if hours == -8 else "PDT")
    assert here.dst() == timedelta(hours=hours + 8)


def test_a_clock_that_skips_an_hour_reads_as_pep_495_says() -> None:
    zone = zone_of("SystemV/PST8PDT")
    skipped = datetime.datetime(1986, 4, 27, 2, 30, tzinfo=zone)

    assert skipped.utcoffset() == timedelta(hours=-8)
    assert skipped.replace(fold=1).utcoffset() == timedelta(hours=-7)


def test_old_american_time_can_be_pickled_and_copied() -> None:
    zone = zone_of("SystemV/PST8PDT")

    assert pickle.loads(pickle.dumps(zone)) is zone
    assert copy.deepcopy(zone) is zone
    assert zone.utcoffset(None) is zone.tzname(None) is zone.dst(None) is None
    assert repr(zone) == "zone_of('SystemV/PST8PDT')"


def batch_of(kind: pa.DataType, numbers: list[Any]) -> pa.RecordBatch:
    return pa.record_batch([pa.array(numbers, kind)], schema=pa.schema([("v", kind)]))


def seconds_of(*parts: int) -> int:
    return int(datetime.datetime(*parts, tzinfo=UTC).timestamp()) * 10**6  # type: ignore[misc, arg-type]  # as above


@pytest.mark.parametrize("zone", ["PST", "America/Los_Angeles", "SystemV/PST8PDT", "-7", "Z"])
def test_times_in_lists_maps_and_structs_are_of_the_zone_too(zone: str) -> None:
    kind = pa.timestamp("us", tz=zone)
    number = seconds_of(2024, 7, 1, 12)
    nested = pa.list_(pa.struct([("at", kind), ("by", pa.map_(kind, kind))]))
    reader = RowReader(pa.schema([("v", nested)]))

    [[found]] = reader(batch_of(nested, [[{"at": number, "by": [(number, None)]}]]))

    noon = datetime.datetime(2024, 7, 1, 12, tzinfo=UTC)
    assert found == {"at": noon, "by": {noon: None}}
    assert [found["at"].tzinfo, *(key.tzinfo for key in found["by"])] == [zone_of(zone)] * 2


def test_of_two_hours_that_look_alike_the_second_says_so() -> None:
    kind = pa.timestamp("us", tz="America/New_York")
    first = seconds_of(2024, 11, 3, 5, 30)
    numbers = [first, first + 3600 * 10**6, seconds_of(2024, 3, 10, 7), None]

    found = [t for (t,) in RowReader(pa.schema([("v", kind)]), tuple)(batch_of(kind, numbers))]

    assert [t and (t.hour, t.minute, t.fold) for t in found] == [
        (1, 30, 0),
        (1, 30, 1),
        (3, 0, 0),
        None,
    ]


def test_the_zone_is_that_of_the_batch_and_not_that_of_the_plan() -> None:
    reader = RowReader(pa.schema([("v", pa.timestamp("us", tz="UTC"))]))
    kinds = [pa.timestamp("us", tz=zone) for zone in ("UTC", "PST", "+8", "UTC")]

    found = [next(iter(reader(batch_of(kind, [0])))).tzinfo for kind in kinds]

    assert found == [UTC, zone_of("PST"), zone_of("+8"), UTC]


@pytest.mark.parametrize("zone", ["UTC", "+8", "PST"])
@pytest.mark.parametrize("listed", [False, True])
def test_a_year_outside_the_range_of_python_is_reported_with_its_column(
    zone: str, listed: bool
) -> None:
    time = pa.timestamp("us", tz=zone)
    kind, value = (pa.list_(time), [2**62]) if listed else (time, 2**62)

    with pytest.raises(SchemaMismatchError, match=r"'v'.*years 1 to 9999") as caught:
        list(RowReader(pa.schema([("v", kind)]))(batch_of(kind, [value])))

    assert caught.value.field == "v"


@dataclass
class Refusing:
    at: datetime.datetime

    def __post_init__(self) -> None:
        raise OverflowError("its own")


@dataclass
class Holder:
    inner: Refusing


def test_an_error_of_a_record_with_times_is_not_taken_for_one_of_a_time() -> None:
    kind = pa.struct([("at", pa.timestamp("us", tz="UTC"))])
    batch = pa.record_batch([pa.array([{"at": 0}], kind)], ["inner"])

    with pytest.raises(OverflowError, match="its own"):
        list(RowReader(batch.schema, Holder)(batch))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.timestamp("us", tz="UTC"), NOON),
        (pa.timestamp("us", tz="UTC"), pandas.Timestamp(NOON)),
        (pa.list_(pa.timestamp("us", tz="UTC")), [NOON.replace(tzinfo=UTC), NOON]),
        (pa.map_(pa.string(), pa.timestamp("us", tz="UTC")), {"a": NOON}),
        (pa.struct([("at", pa.timestamp("us", tz="UTC"))]), {"at": NOON}),
    ],
    ids=str,
)
def test_a_time_without_a_zone_is_refused_as_a_point_in_time(
    kind: pa.DataType, value: object
) -> None:
    """Only the user knows the zone of a midday: the machine's, the session's or UTC."""
    schema = ItemSchema.of(pa.schema([("at", kind)]))

    with pytest.raises(SchemaMismatchError, match=r"no time zone.*timestamp_ntz") as caught:
        list(to_batches([(value,)], schema))

    assert caught.value.field == "at"


@pytest.fixture
def zoned(spark: SparkSession) -> Iterator[SparkSession]:
    before = spark.conf.get(ZONE)
    assert before is not None
    yield spark
    spark.conf.set(ZONE, before)


@pytest.mark.spark
@pytest.mark.parametrize("name", [*OFFSETS, *REGIONS, *OTHERS, "Z"])
def test_a_time_is_what_the_clock_of_the_session_shows(zoned: SparkSession, name: str) -> None:
    zoned.conf.set(ZONE, name)
    rows = zoned.sql(
        "SELECT t, CAST(t AS string) AS shown, array(t) AS nested FROM VALUES "
        "(TIMESTAMP '2024-07-01 12:00:00Z'), (TIMESTAMP '2024-11-03 05:30:00.000001Z'), "
        "(TIMESTAMP '2024-11-03 06:30:00.000001Z'), (TIMESTAMP '2024-03-10 07:00:00Z') AS s(t)"
    )

    found = from_dataframe(rows).to_list().first()

    assert [str(t.replace(tzinfo=None)) for t, _, _ in found] == [shown for _, shown, _ in found]
    assert {t.tzinfo for t, _, _ in found} == {zone_of(name)}
    assert [nested for _, _, nested in found] == [[t] for t, _, _ in found]
    kept = from_dataframe(rows).map(lambda row: row[0])
    assert sorted(kept) == sorted(t for t, _, _ in found)


@pytest.mark.spark
@pytest.mark.parametrize("name", ["UTC", "PST", "+8", "Europe/Berlin"])
@pytest.mark.parametrize("there", [False, True], ids=["here", "there"])
def test_a_time_comes_back_as_the_same_point(zoned: SparkSession, name: str, there: bool) -> None:
    zoned.conf.set(ZONE, name)
    times = [
        datetime.datetime(2024, 11, 3, 1, 30, tzinfo=NEW_YORK),
        datetime.datetime(2024, 11, 3, 1, 30, tzinfo=NEW_YORK, fold=1),
        datetime.datetime(1, 1, 2, tzinfo=UTC),
        datetime.datetime(2024, 7, 1, 12, 0, 0, 1, tzinfo=timezone(timedelta(hours=-11))),
    ]
    given = flow.from_([(t, t.replace(tzinfo=None)) for t in times])
    if there:
        given = given.on_spark(zoned).map(lambda pair: pair)

    made = given.to_dataframe(zoned, schema="t timestamp, n timestamp_ntz")

    found = from_dataframe(made).to_list().first()
    # Of two zones, no time in an hour that comes twice equals another one (PEP 495).
    assert sorted(t.astimezone(UTC) for t, _ in found) == sorted(t.astimezone(UTC) for t in times)
    assert sorted(n for _, n in found) == sorted(t.replace(tzinfo=None) for t in times)
