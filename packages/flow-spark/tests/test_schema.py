"""Schemas from Python types."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional, TypedDict

import pyarrow as pa
import pytest

from flow_spark.errors import UnsupportedTypeError
from flow_spark.items.schema import ItemSchema, schema_of

Minutes = NewType("Minutes", int)


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


def test_an_arrow_schema_is_taken_as_it_is() -> None:
    given = pa.schema([("a", pa.int32())])

    assert ItemSchema.of(given).arrow is given


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


def test_a_record_without_fields_has_no_columns() -> None:
    @dataclass
    class Nothing:
        pass

    with pytest.raises(UnsupportedTypeError, match="no fields"):
        schema_of(Nothing)
