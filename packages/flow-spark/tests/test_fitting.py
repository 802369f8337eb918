"""Columns fit the fields of a record, or are refused."""

from __future__ import annotations

import datetime
import decimal
import enum
import itertools
import pickle
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, NewType, TypedDict

import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.functions import lit

from flow_spark import from_dataframe, from_stream, select
from flow_spark.errors import SchemaMismatchError
from flow_spark.items.fitting import check_fit
from flow_spark.items.nulls import Nulls
from flow_spark.items.rows import RowReader

Minutes = NewType("Minutes", int)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(NamedTuple):
    x: int
    y: int | None = None


class Named(TypedDict):
    name: str


@dataclass
class Place:
    name: str
    at: Point
    known: bool = field(init=False, default=True)


LISTS = (pa.list_, pa.large_list, pa.list_view, pa.large_list_view)
POINT = pa.struct([("x", pa.int64()), ("y", pa.int64())])
PLACE = pa.struct([("name", pa.string()), ("at", POINT), ("further", pa.binary())])


def record(hint: object) -> Any:  # Any: a class that is made here
    """A record whose only field is of a type."""
    return dataclass(type("Made", (), {"__annotations__": {"value": hint}}))


def schema(kind: pa.DataType) -> Any:  # Any: Arrow has no types
    return pa.schema([("value", kind)])


FITTING: list[tuple[object, pa.DataType]] = [
    (bool, pa.bool_()),
    (int, pa.int8()),
    (int, pa.int64()),
    (float, pa.float32()),
    (float, pa.int64()),
    (str, pa.string()),
    (str, pa.large_string()),
    (str, pa.string_view()),
    (str, pa.dictionary(pa.int32(), pa.string())),
    (bytes, pa.binary()),
    (bytes, pa.binary(4)),
    (bytearray, pa.binary()),
    (decimal.Decimal, pa.decimal128(10, 2)),
    (datetime.datetime, pa.timestamp("us", tz="UTC")),
    (datetime.datetime, pa.timestamp("us")),
    (datetime.date, pa.date32()),
    (datetime.time, pa.time64("ns")),
    (datetime.timedelta, pa.duration("us")),
    (int | None, pa.int64()),
    (int | str, pa.string()),
    (Any, pa.string()),
    (object, pa.binary()),
    (Minutes, pa.int32()),
    (Annotated[int, "minutes"], pa.int32()),
    (Literal["a", "b"], pa.string()),
    (Literal[1, "b"], pa.int32()),
    (Color, pa.string()),
    *((list[int], make(pa.int64())) for make in LISTS),
    (list[Any], pa.list_(pa.int64())),
    (list, pa.list_(pa.int64())),
    (Sequence[float], pa.list_(pa.float64())),
    (Iterable[float], pa.list_(pa.int32())),
    (tuple[int, ...], pa.list_(pa.int64(), 3)),
    (set[str], pa.list_(pa.string())),
    (frozenset[str], pa.list_(pa.string())),
    (tuple[int, str], pa.struct([("a", pa.int64()), ("b", pa.string())])),
    (dict[str, int], pa.map_(pa.string(), pa.int64())),
    (Mapping[str, list[float]], pa.map_(pa.string(), pa.list_(pa.float32()))),
    (dict[str, int], POINT),
    (dict, POINT),
    (Row, POINT),
    (Point, POINT),
    (Point, pa.struct([("x", pa.int64())])),
    (Place, PLACE),
    (Named, PLACE),
    (list[Point | None], pa.list_(POINT)),
    (dict[str, Point], pa.map_(pa.string(), POINT)),
]


@pytest.mark.parametrize(("hint", "kind"), FITTING, ids=str)
def test_a_column_of_the_type_that_a_field_says_fits(hint: object, kind: pa.DataType) -> None:
    check_fit(schema(kind), record(hint))


UNFIT: list[tuple[object, pa.DataType, str]] = [
    (int, pa.string(), "Made.value is int, and the column is of type string"),
    (int, pa.float64(), "the column is of type double"),
    (int, pa.bool_(), "the column is of type boolean"),
    (bool, pa.int64(), "Made.value is bool, and the column is of type bigint"),
    (str, pa.binary(), "the column is of type binary"),
    (str, pa.int64(), "the column is of type bigint"),
    (float, pa.decimal128(10, 2), r"the column is of type decimal\(10,2\)"),
    (float, pa.string(), "the column is of type string"),
    (bytes, pa.string(), "Made.value is bytes"),
    (decimal.Decimal, pa.float64(), "Made.value is Decimal"),
    (datetime.datetime, pa.date32(), "the column is of type date"),
    (datetime.date, pa.timestamp("us", tz="UTC"), "the column is of type timestamp"),
    (int | None, pa.string(), "Made.value is int"),
    (int | bytes, pa.string(), r"Made.value is int \| bytes"),
    (Minutes, pa.string(), "Made.value is int"),
    (Annotated[int, "minutes"], pa.string(), "Made.value is int"),
    (Literal["a"], pa.int64(), "Made.value is typing.Literal"),
    (Color, pa.int64(), "Made.value is Color"),
    (list[int], pa.string(), r"Made.value is list\[int\]"),
    (list[int], pa.list_(pa.string()), "Made.value, elements is int, and what is there in column"),
    (list[list[int]], pa.list_(pa.list_(pa.bool_())), "Made.value, elements, elements is int"),
    (tuple[int, ...], pa.list_(pa.string()), "Made.value, elements is int"),
    (set[int], pa.list_(pa.string()), "Made.value, elements is int"),
    (tuple[int, str], pa.struct([("a", pa.int64())]), r"is tuple\[int, str\]"),
    (tuple[int, str], pa.struct([("a", pa.int64()), ("b", pa.int64())]), "Made.value.b is str"),
    (dict[str, int], pa.map_(pa.string(), pa.string()), "Made.value, values is int"),
    (dict[str, int], pa.map_(pa.int64(), pa.int64()), "Made.value, keys is str"),
    (dict[str, int], pa.struct([("a", pa.string())]), "Made.value.a is int"),
    (dict[str, int], pa.list_(pa.int64()), r"Made.value is dict\[str, int\]"),
    (Point, pa.string(), "Made.value is Point"),
    (Point, pa.struct([("y", pa.int64())]), "Made.value needs a field 'x', and there is none"),
    (Point, pa.struct([("x", pa.int64()), ("y", pa.string())]), "Made.value.y is int"),
    (Place, pa.struct([("name", pa.string()), ("at", pa.int64())]), "Made.value.at is Point"),
    (list[Point], pa.list_(pa.struct([("x", pa.string())])), r"Made.value, elements.x is int"),
    (complex, pa.float64(), "is complex, which no column gives; make it of one in map()"),
]


@pytest.mark.parametrize(("hint", "kind", "told"), UNFIT, ids=str)
def test_a_column_of_another_type_than_a_field_says_is_refused_by_its_place(
    hint: object, kind: pa.DataType, told: str
) -> None:
    with pytest.raises(SchemaMismatchError, match=told) as caught:
        check_fit(schema(kind), record(hint))
    assert caught.value.field == "value"


def test_a_class_that_checks_and_converts_by_itself_is_left_to_it() -> None:
    checking = record(int)
    checking.__pydantic_validator__ = object()
    check_fit(schema(pa.string()), checking)
    check_fit(schema(pa.struct([("value", pa.string())])), record(checking))


def test_fields_without_a_column_and_those_that_a_record_fills_itself_are_not_looked_for() -> None:
    check_fit(pa.schema([("x", pa.int64()), ("known", pa.string())]), Point)
    check_fit(
        pa.schema([("name", pa.string()), ("at", POINT), ("known", pa.string())]),
        Place,
    )


@pytest.mark.parametrize("as_", [None, tuple, dict, Row, "scalar"])
def test_only_records_say_types(as_: object) -> None:
    check_fit(schema(pa.string()), as_)


def read(value: object, kind: pa.DataType, hint: object) -> Any:  # Any: of the type of `hint`
    rows = pa.RecordBatch.from_arrays([pa.array([value], kind)], schema=schema(kind))
    (item,) = RowReader(rows.schema, record(hint))(rows)
    return item.value


@pytest.mark.parametrize(
    ("value", "kind", "hint", "expected"),
    [
        (3, pa.int32(), float, 3.0),
        (None, pa.int32(), float | None, None),
        ([1, None], pa.list_(pa.int64()), list[float | None], [1.0, None]),
        (b"a", pa.binary(), bytearray, bytearray(b"a")),
        ("red", pa.string(), Color, Color.RED),
        ([1, 2], pa.list_(pa.int64()), tuple[int, ...], (1, 2)),
        ([1, 2], pa.large_list(pa.int64()), tuple, (1, 2)),
        ([1, 1], pa.list_view(pa.int64()), set[int], {1}),
        ([1, 1], pa.list_(pa.int64()), frozenset[float], frozenset({1.0})),
        ([["red"]], pa.list_(pa.list_(pa.string())), list[tuple[Color, ...]], [(Color.RED,)]),
        ({"x": 1, "y": 2}, POINT, dict[str, float], {"x": 1.0, "y": 2.0}),
        ({"x": 1, "y": 2}, POINT, tuple, (1, 2)),
        ({"x": 1, "y": 2}, POINT, Row, Row(x=1, y=2)),
        ({"x": 1}, pa.struct([("x", pa.int64())]), Point, Point(1)),
        ("a", pa.string(), int | str, "a"),
        (2, pa.int64(), str | float, 2.0),
        ({"name": "a", "further": b""}, PLACE, Named, {"name": "a"}),
        ([("k", 1)], pa.map_(pa.string(), pa.int8()), dict[str, float], {"k": 1.0}),
    ],
    ids=str,
)
def test_a_value_becomes_what_the_field_says(
    value: object, kind: pa.DataType, hint: object, expected: object
) -> None:
    found = read(value, kind, hint)
    assert (found, type(found)) == (expected, type(expected))
    assert repr(found) == repr(expected)  # 1 == 1.0


def test_values_of_a_struct_beside_the_fields_of_a_record_are_left_out() -> None:
    place = {"name": "Oslo", "at": {"x": 1, "y": None}, "further": b"?"}
    assert read(place, PLACE, Place) == Place("Oslo", Point(1))


def test_a_value_that_no_float_holds_is_refused() -> None:
    with pytest.raises(SchemaMismatchError, match="9007199254740993 is not a float"):
        read(2**53 + 1, pa.int64(), float)


def test_a_value_that_is_not_a_member_of_an_enum_is_refused() -> None:
    with pytest.raises(SchemaMismatchError, match="'green' is not of type Color"):
        read("green", pa.string(), Color)


@dataclass
class Trip:
    origin: str
    minutes: int


def test_columns_of_other_types_are_refused_before_a_job(spark: SparkSession) -> None:
    df = spark.sql("select 'JFK' as origin, '40' as minutes")
    with pytest.raises(SchemaMismatchError, match=r"Trip\.minutes is int, and the column is of"):
        from_dataframe(df, as_=Trip)
    fitting = df.withColumn("minutes", df.minutes.cast("int"))
    assert from_dataframe(fitting, as_=Trip).first() == Trip("JFK", 40)
    with pytest.raises(SchemaMismatchError, match=r"Trip\.minutes is int"):
        from_dataframe(fitting).pipe(select("origin", lit(0.5).alias("minutes"), as_=Trip))
    stream = (
        spark.readStream.format("rate").load().selectExpr("'a' as origin", "timestamp as minutes")
    )
    with pytest.raises(SchemaMismatchError, match="type timestamp"):
        from_stream(stream, as_=Trip)


def test_rows_without_a_check_have_the_values_that_are_there(spark: SparkSession) -> None:
    df = spark.sql("select 'JFK' as origin, '40' as minutes")
    lax: Any = Trip("JFK", "40")  # type: ignore[arg-type]  # what is there
    unchecked = from_dataframe(df, as_=Trip, verify_schema=False)
    assert unchecked.first() == lax
    assert unchecked.pipe(select("origin", "minutes", as_=Trip)).first() == lax


@dataclass
class Delay:
    minutes: int = 0
    at: list[Point] = field(default_factory=list)


SHOUTED = "select 40 as MINUTES, array(named_struct('X', 1L, 'Y', 2L)) as At, 1 as other"


def test_names_differ_in_case_where_the_session_ignores_it(spark: SparkSession) -> None:
    df = spark.sql(SHOUTED)
    assert from_dataframe(df, as_=Delay).first() == Delay(40, [Point(1, 2)])
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(SchemaMismatchError, match="takes none of the columns MINUTES, At"):
            from_dataframe(df, as_=Delay)
        exact = spark.sql("select 1 as minutes, 2 as MINUTES")
        assert from_dataframe(exact, as_=Delay).first() == Delay(1)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_columns_that_differ_in_case_only_are_refused_where_a_field_may_be_each(
    spark: SparkSession,
) -> None:
    df = spark.sql("select 1 as MINUTES, 2 as minutes")
    with pytest.raises(SchemaMismatchError, match="may be MINUTES or minutes: rename one"):
        from_dataframe(df, as_=Delay)


NULLS: list[tuple[object, pa.DataType, list[object], int, str]] = [
    (int, pa.int64(), [1, 2, None, 4, None], 2, "Made.value is int, and here it is None"),
    (str, pa.string(), [None], 0, "Made.value is str"),
    (list[int], pa.list_(pa.int64()), [[1], [], [1, None]], 2, "Made.value, elements is int"),
    (list[int] | None, pa.list_(pa.int64()), [None, [None]], 1, "Made.value, elements is int"),
    (tuple[int, ...], pa.large_list(pa.int64()), [[1], [None]], 1, "Made.value, elements"),
    (set[int], pa.list_view(pa.int64()), [[1], [None]], 1, "Made.value, elements"),
    (list[int], pa.list_(pa.int64(), 2), [[1, 2], [None, 2]], 1, "Made.value, elements"),
    (Point, POINT, [{"x": 1}, {"y": 1}], 1, "Made.value.x is int"),
    (Point | None, POINT, [None, {"x": 1}, {"y": 1}], 2, "Made.value.x is int"),
    (list[Point], pa.list_(POINT), [[], [{"x": 1}, {"y": 1}]], 1, "Made.value, elements.x is int"),
    (dict[str, int], pa.map_(pa.string(), pa.int64()), [[("a", 1)], [("b", None)]], 1, ", values"),
    (dict[str, int], POINT, [{"x": 1, "y": 1}, {"x": 1}], 1, "Made.value.y is int"),
    (tuple[int, int], POINT, [{"x": 1, "y": 1}, {"x": 1}], 1, "Made.value.y is int"),
    (Color, pa.string(), ["red", None], 1, "Made.value is Color"),
    (int | str, pa.string(), ["red", None], 1, "Made.value is str"),
]


def batch_of(kind: pa.DataType, values: list[object], *, nullable: bool = True) -> Any:
    field = pa.field("value", kind, nullable=nullable)
    return pa.RecordBatch.from_arrays([pa.array(values, kind)], schema=pa.schema([field]))


@pytest.mark.parametrize(("hint", "kind", "values", "row", "told"), NULLS, ids=str)
def test_a_null_that_a_field_does_not_allow_is_reported_behind_the_items_before_it(
    hint: object, kind: pa.DataType, values: list[object], row: int, told: str
) -> None:
    rows = batch_of(kind, [values[0], *values]).slice(1)  # Arrow counts in slices, too
    if values[0] is None and row == 0:
        rows = batch_of(kind, values)
    made = record(hint)
    items = iter(RowReader(rows.schema, made, verify=True)(rows))
    taken = list(itertools.islice(items, row))
    assert taken == list(RowReader(rows.schema, made)(rows.slice(0, row)))
    with pytest.raises(SchemaMismatchError, match=re.escape(told)) as caught:
        next(items)
    assert caught.value.field == "value"


@pytest.mark.parametrize(
    ("hint", "kind"),
    [
        (int | None, pa.int64()),
        (int | str | None, pa.string()),
        (Any, pa.int64()),
        (object, pa.int64()),
        (Literal["a"] | None, pa.string()),
        (list[int | None] | None, pa.list_(pa.int64())),
        (list[Any] | None, pa.list_(pa.int64())),
        (list | None, pa.list_(pa.int64())),
        (Point | None, pa.struct([("x", pa.int64(), False), ("y", pa.int64())])),
    ],
    ids=str,
)
def test_none_comes_where_a_field_says_it(hint: object, kind: pa.DataType) -> None:
    values: list[object] = [None]
    if pa.types.is_list(kind):
        values = [None, [], [None]]
    rows = batch_of(kind, values)
    found = list(RowReader(rows.schema, record(hint), verify=True)(rows))
    assert [item.value for item in found] == [None, [], [None]][: len(values)]


def test_a_field_that_is_none_by_default_may_be_none() -> None:
    made: Any = dataclass(type("Made", (), {"__annotations__": {"value": int}, "value": None}))
    rows = batch_of(pa.int64(), [None])
    assert list(RowReader(rows.schema, made, verify=True)(rows)) == [made(None)]


def test_a_reader_looks_for_nulls_in_another_process_as_here() -> None:
    rows = pa.RecordBatch.from_pydict({"x": [1, None]})
    reader = pickle.loads(pickle.dumps(RowReader(rows.schema, Point, verify=True)))
    with pytest.raises(SchemaMismatchError, match=r"Point\.x is int"):
        list(reader(rows))


def test_a_column_that_spark_knows_to_have_no_nulls_is_not_asked() -> None:
    rows = batch_of(pa.int64(), [1], nullable=False)
    assert not Nulls(rows.schema, record(int), ["value"]).looks
    assert Nulls(batch_of(pa.int64(), [1]).schema, record(int), ["value"]).looks


@pytest.mark.parametrize("program", ["none", "a stage", "the first rows"])
def test_a_null_is_reported_with_its_row_and_partition(spark: SparkSession, program: str) -> None:
    df = spark.range(6, numPartitions=2).selectExpr(
        "'JFK' as origin", "if(id = 4, null, cast(id as int)) as minutes"
    )
    trips = from_dataframe(df, as_=Trip)
    if program == "a stage":
        trips = trips.filter(lambda trip: trip.minutes >= 0)
    if program == "the first rows":
        trips = trips.take(6)
    seen: list[Trip] = []
    with pytest.raises(
        SchemaMismatchError, match=r"Trip\.minutes is int, and here it is"
    ) as caught:
        trips.for_each(seen.append)
    if program != "the first rows":
        told = "at item 1 of partition 1, made of {'origin': 'JFK', 'minutes': None}"
        assert any(told in note for note in caught.value.__notes__)
    assert {trip.minutes for trip in seen} <= {0, 1, 2, 3, 5}
    assert from_dataframe(df.dropna(), as_=Trip).count().first() == 5
    lax = from_dataframe(df, as_=Trip, verify_schema=False)
    assert lax.count().first() == 6
