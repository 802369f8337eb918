"""Schemas from Python types."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, NewType, Optional, TypedDict

import pyarrow as pa
import pytest
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DayTimeIntervalType,
    MapType,
    StringType,
    StructType,
    VarcharType,
    VariantType,
    VariantVal,
)

import flow_core as flow
from flow_spark import _spool
from flow_spark.errors import UnsupportedTypeError
from flow_spark.items.schema import ItemSchema, schema_of

if TYPE_CHECKING:
    from decimal import Decimal

Minutes = NewType("Minutes", int)
UNITS = ("s", "ms", "us", "ns")
UTC_TIME = pa.timestamp("us", "UTC")
ELEMENTS = pa.list_(pa.field("element", pa.int64()))


@dataclass
class Inner:
    a: int
    b: Optional[str]  # noqa: UP045 - both spellings are meant


class Everything(NamedTuple):
    flag: bool
    number: int
    real: float
    text: str
    data: bytes
    day: datetime.date
    moment: datetime.datetime
    span: datetime.timedelta
    money: decimal.Decimal
    maybe: int | None
    minutes: Minutes
    noted: Annotated[str, "a note"]
    kind: Literal["a", "b"]
    numbers: list[int]
    gaps: Sequence[int | None]
    pair: tuple[int, str]
    many: tuple[int, ...]
    table: dict[str, float]
    lookup: Mapping[str, Inner]
    inner: Inner


class Typed(TypedDict):
    x: int
    y: str


def test_every_supported_type_has_its_spark_type() -> None:
    columns = {part.name: part for part in schema_of(Everything).spark().fields}

    assert {name: part.dataType.simpleString() for name, part in columns.items()} == {
        "flag": "boolean",
        "number": "bigint",
        "real": "double",
        "text": "string",
        "data": "binary",
        "day": "date",
        "moment": "timestamp",
        "span": "interval day to second",
        "money": "decimal(38,18)",
        "maybe": "bigint",
        "minutes": "bigint",
        "noted": "string",
        "kind": "string",
        "numbers": "array<bigint>",
        "gaps": "array<bigint>",
        "pair": "struct<_1:bigint,_2:string>",
        "many": "array<bigint>",
        "table": "map<string,double>",
        "lookup": "map<string,struct<a:bigint,b:string>>",
        "inner": "struct<a:bigint,b:string>",
    }
    assert [name for name, part in columns.items() if part.nullable] == ["maybe"]


@pytest.mark.parametrize(
    ("hint", "columns"),
    [
        (int, "value: int64"),
        (str | None, "value: string"),
        (tuple[int, str], "_1: int64, _2: string"),
        (Inner, "a: int64, b: string"),
        (Typed, "x: int64, y: string"),
        (list[int], "value: list<element: int64 not null>"),
        (tuple[int, ...], "value: list<element: int64 not null>"),
    ],
)
def test_a_type_becomes_columns(hint: Any, columns: str) -> None:
    assert str(schema_of(hint)) == columns
    assert ItemSchema.of(hint) == schema_of(hint)


def test_only_optional_fields_may_be_null() -> None:
    schema = schema_of(Inner)

    assert [part.nullable for part in schema.arrow] == [False, True]


@pytest.mark.parametrize(
    ("kind", "spelled", "name"),
    [
        (pa.int32(), pa.int32(), "int"),
        (pa.dictionary(pa.int32(), pa.string()), pa.string(), "string"),
        (pa.dictionary(pa.int8(), pa.large_binary()), pa.binary(), "binary"),
        (pa.large_string(), pa.string(), "string"),
        (pa.string_view(), pa.string(), "string"),
        (pa.binary_view(), pa.binary(), "binary"),
        (pa.binary(4), pa.binary(), "binary"),
        (pa.large_list(pa.int64()), ELEMENTS, "array<bigint>"),
        (pa.list_(pa.int64(), 2), ELEMENTS, "array<bigint>"),
        (pa.list_view(pa.int64()), ELEMENTS, "array<bigint>"),
        (pa.large_list_view(pa.int64()), ELEMENTS, "array<bigint>"),
        *((pa.timestamp(unit), pa.timestamp("us"), "timestamp_ntz") for unit in UNITS),
        *((pa.timestamp(unit, "Asia/Tokyo"), UTC_TIME, "timestamp") for unit in UNITS),
        *((pa.duration(unit), pa.duration("us"), "interval day to second") for unit in UNITS),
        *((pa.time32(unit), pa.time64("ns"), "time(6)") for unit in UNITS[:2]),
        *((pa.time64(unit), pa.time64("ns"), "time(6)") for unit in UNITS[2:]),
        (pa.date64(), pa.date32(), "date"),
        (
            pa.map_(pa.string_view(), pa.list_view(pa.dictionary(pa.int8(), pa.string()))),
            pa.map_(pa.string(), pa.list_(pa.field("element", pa.string()))),
            "map<string,array<string>>",
        ),
        (
            pa.struct([pa.field("a", pa.large_string(), nullable=False)]),
            pa.struct([pa.field("a", pa.string(), nullable=False)]),
            "struct<a:string>",
        ),
    ],
    ids=str,
)
def test_an_arrow_schema_is_spelled_as_spark_spells_it(
    kind: pa.DataType, spelled: pa.DataType, name: str
) -> None:
    found = ItemSchema.of(pa.schema([pa.field("a", kind, nullable=False)]))

    assert found.arrow == pa.schema([pa.field("a", spelled, nullable=False)])
    assert found.spark().simpleString() == f"struct<a:{name}>"


@pytest.mark.parametrize("kind", [pa.uint64(), pa.decimal256(50, 2), pa.float16()], ids=str)
def test_an_arrow_type_that_spark_has_not_is_refused(kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedTypeError, match=r"a:|column 'a'"):
        ItemSchema.of(pa.schema([("a", kind)]))


def test_a_struct_type_is_kept_as_it_is() -> None:
    given = (
        StructType()
        .add("a", StringType("UTF8_LCASE"), False, {"comment": "what it is"})
        .add("b", ArrayType(VectorUDT()))
    )

    found = ItemSchema.of(given)

    assert found.spark() == given
    assert found.arrow.field("a").type == pa.string()


def test_lengths_of_strings_are_given_as_those_of_a_table() -> None:
    """Spark lets no function of Python give ``char`` or ``varchar``."""
    inner = StructType().add("v", VarcharType(3)).add("w", VectorUDT())
    given = StructType().add("a", CharType(2), True, {"comment": "x"}).add("b", inner)

    found = ItemSchema.of(given).spark()

    assert found["a"].dataType == StringType()
    assert found["a"].metadata == {"comment": "x", "__CHAR_VARCHAR_TYPE_STRING": "char(2)"}
    (told,) = found["b"].metadata.values()
    assert told.startswith("struct<v:varchar(3),w:struct<")


DENSE = Vectors.dense(1.0, 2.0)


@pytest.mark.spark
@pytest.mark.parametrize("route", ["sent", "filed", "made there"])
def test_a_dataframe_has_the_schema_that_was_asked_for(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, route: str
) -> None:
    asked = (
        StructType()
        .add("word", StringType("UTF8_LCASE"), True, {"comment": "what it is"})
        .add("vector", VectorUDT())
        .add("vectors", MapType(StringType(), VectorUDT()))
        .add("json", VariantType())
        .add("day", DayTimeIntervalType(0, 1))
    )
    json = VariantVal(b"\x0c\x01", b"\x01\x00\x00")
    items = flow.just(("A", DENSE, {"k": DENSE}, json, datetime.timedelta(hours=1)))
    if route == "filed":
        monkeypatch.setattr(_spool, "IN_MEMORY_BYTES", 1)
    if route == "made there":
        items = items.on_spark(spark).map(lambda row: row)

    made = items.to_dataframe(spark, schema=asked)

    assert made.schema == asked
    (row,) = made.collect()
    assert row.word == "A"
    assert row.vector == row.vectors["k"] == DENSE
    assert row.json.toJson() == "1"
    assert made.where("word = 'a'").count() == 1


@pytest.mark.spark
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.dictionary(pa.int32(), pa.string()), "x"),
        (pa.large_list(pa.int64()), [1, 2]),
        (pa.list_(pa.float32(), 2), [1.0, 2.0]),
        (pa.list_view(pa.string_view()), ["x", "y"]),
        (pa.timestamp("ns"), datetime.datetime(2024, 1, 1, 12)),  # noqa: DTZ001 - of no zone
        (pa.timestamp("s", "UTC"), datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC)),
        (pa.duration("ns"), datetime.timedelta(1)),
        (pa.binary(4), b"abcd"),
        (pa.struct([("a", pa.dictionary(pa.int8(), pa.string()))]), {"a": "x"}),
    ],
    ids=str,
)
def test_an_arrow_schema_gives_the_same_there_as_here(
    spark: SparkSession, kind: pa.DataType, value: object
) -> None:
    schema = pa.schema([("c", kind)])
    items = flow.just((value,))

    here = items.to_dataframe(spark, schema=schema)
    there = items.on_spark(spark).map(lambda row: row).to_dataframe(schema=schema)

    assert here.collect() == there.collect()
    assert here.schema == there.schema


@dataclass
class Holder:
    inner: list[dict[str, object]]


class Untyped:
    pass


@pytest.mark.parametrize(
    ("hint", "says"),
    [
        (Holder, "Holder.inner, elements, values: object has no counterpart"),
        (Untyped, "Untyped.* has no counterpart in a Spark schema"),
        (int | str, "has no counterpart"),
        (Any, "has no counterpart"),
        (Literal["a", 1], "has no counterpart"),
    ],
)
def test_a_type_without_counterpart_is_named_with_its_place(hint: Any, says: str) -> None:
    with pytest.raises(UnsupportedTypeError, match=says):
        schema_of(hint)


@dataclass
class Priced:
    price: Decimal


class Weighed(TypedDict):
    weight: Decimal


@pytest.mark.parametrize("record", [Priced, Weighed])
def test_a_field_that_only_a_type_checker_understands_is_named(record: type) -> None:
    says = f"{record.__name__}: an annotation needs 'Decimal', which is not defined there; import"
    with pytest.raises(UnsupportedTypeError, match=says):
        schema_of(record)


def test_a_record_without_fields_has_no_columns() -> None:
    @dataclass
    class Nothing:
        pass

    with pytest.raises(UnsupportedTypeError, match="no fields"):
        schema_of(Nothing)
