"""Random schemas of Spark with random rows, and the expected results."""

from __future__ import annotations

import datetime
import decimal
import math
import os
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from pyspark.ml.linalg import Vectors, VectorUDT
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    Geography,
    GeographyType,
    Geometry,
    GeometryType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    Row,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
    VariantType,
    VariantVal,
)

__all__ = ["DEPTH", "SCHEMAS", "ZONES", "normal", "schemas_with_rows"]

SCHEMAS: Final = int(os.environ.get("FLOW_SCHEMAS", "60"))
"""The number of schemas that are drawn."""
AT_ONCE: Final = 20
"""The number of columns of one DataFrame, so that each does not need separate jobs."""
DEPTH: Final = 3
ROWS: Final = 4
ZONES: Final = ("UTC", "Europe/Berlin", "-08:00", "Asia/Kathmandu", "Pacific/Apia", "PST")

# Any: values of whatever type.
Values = SearchStrategy[Any]

_EARLIEST = datetime.datetime(2, 1, 1)  # noqa: DTZ001 - of no zone
_LATEST = datetime.datetime(9998, 12, 31)  # noqa: DTZ001 - of no zone
_POINT = bytes.fromhex("0101000000000000000000F03F0000000000000040")
_JSON = {  # as Spark writes them
    "1": VariantVal(b"\x0c\x01", b"\x01\x00\x00"),
    "true": VariantVal(b"\x04", b"\x01\x00\x00"),
    '{"a":1}': VariantVal(b"\x02\x01\x00\x00\x02\x0c\x01", b"\x01\x01\x00\x01a"),
}
_NAMES = ("a", "B", "c.d", "e f", "cls", "self", "value", "metadata", "key", "wkb", "srid", "`")


def _integers(bits: int) -> Values:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _decimals(precision: int, scale: int) -> Values:
    most, exact = 10**precision - 1, decimal.Context(prec=precision)
    return st.integers(-most, most).map(lambda n: exact.scaleb(decimal.Decimal(n), -scale))


def _values(kind: DataType) -> Values | None:
    """Values of a type that has no others in it."""
    times = st.datetimes(_EARLIEST, _LATEST)
    if isinstance(kind, DecimalType):
        return _decimals(kind.precision, kind.scale)
    if isinstance(kind, (GeometryType, GeographyType)):
        cls = Geometry if isinstance(kind, GeometryType) else Geography
        return st.just(cls(_POINT, 4326))
    found: dict[type[DataType], Values] = {
        BooleanType: st.booleans(),
        ByteType: _integers(8),
        ShortType: _integers(16),
        IntegerType: _integers(32),
        LongType: _integers(64),
        FloatType: st.floats(width=32),
        DoubleType: st.floats(),
        StringType: st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
        BinaryType: st.binary(max_size=5),
        DateType: st.dates(_EARLIEST.date(), _LATEST.date()),
        TimeType: st.times(),
        TimestampType: times.map(lambda time: time.replace(tzinfo=datetime.UTC)),
        TimestampNTZType: times,
        DayTimeIntervalType: st.timedeltas(
            datetime.timedelta(-99_999_999), datetime.timedelta(99_999_999)
        ),
        VariantType: st.sampled_from(list(_JSON.values())),
        VectorUDT: st.sampled_from([Vectors.dense(1.0, 2.0), Vectors.sparse(3, {1: 2.0})]),
        NullType: st.none(),
    }
    return found.get(type(kind))


_KEYS: Final[SearchStrategy[DataType]] = st.one_of(
    st.sampled_from(
        [
            BooleanType(),
            ByteType(),
            IntegerType(),
            LongType(),
            StringType(),
            DateType(),
            DecimalType(9, 3),
            TimestampType(),
            TimestampNTZType(),
        ]
    )
)
_LEAVES: Final[SearchStrategy[DataType]] = st.one_of(
    _KEYS,
    st.sampled_from(
        [
            ShortType(),
            FloatType(),
            DoubleType(),
            DecimalType(38, 18),
            DecimalType(5, 0),
            StringType("UTF8_LCASE"),
            BinaryType(),
            TimeType(),
            DayTimeIntervalType(),
            VariantType(),
            GeometryType(4326),
            GeographyType("ANY"),
            VectorUDT(),
            NullType(),
        ]
    ),
)


def _structs(inner: SearchStrategy[DataType]) -> SearchStrategy[DataType]:
    fields = st.tuples(st.sampled_from(_NAMES), inner, st.booleans())
    return st.lists(fields, min_size=1, max_size=3, unique_by=lambda one: one[0].lower()).map(
        lambda given: StructType(
            [
                StructField(name, kind, nullable or isinstance(kind, NullType))
                for name, kind, nullable in given
            ]
        )
    )


def _lists(inner: SearchStrategy[DataType]) -> SearchStrategy[DataType]:
    return st.tuples(inner, st.booleans()).map(lambda given: ArrayType(given[0], given[1]))


def _maps(inner: SearchStrategy[DataType], depth: int) -> SearchStrategy[DataType]:
    keys = st.one_of(_KEYS, _structs(_KEYS)) if depth > 1 else _KEYS
    return st.tuples(keys, inner, st.booleans()).map(
        lambda given: MapType(given[0], given[1], given[2])
    )


def _kinds(depth: int) -> SearchStrategy[DataType]:
    if depth == 0:
        return _LEAVES
    inner = _kinds(depth - 1)
    held = inner.filter(lambda kind: "void" not in kind.simpleString())
    return st.one_of(_LEAVES, _structs(inner), _lists(held), _maps(held, depth))


def _is_read(kind: DataType) -> bool:
    """Return whether it does not have both void and times, which is refused."""
    text = kind.simpleString().replace("timestamp_ntz", "")
    return "void" not in text or "timestamp" not in text


def _of(kind: DataType, nullable: bool, *, key: bool = False) -> Values:
    """Values as `createDataFrame` takes them."""
    made = _values(kind)
    if isinstance(kind, StructType):
        parts = [_of(field.dataType, field.nullable, key=key) for field in kind]
        make = Row(*kind.names)
        made = st.tuples(*parts).map(lambda values: make(*values))
    elif isinstance(kind, ArrayType):
        made = st.lists(_of(kind.elementType, kind.containsNull), max_size=3)
    elif isinstance(kind, MapType):
        keys = _of(kind.keyType, nullable=False, key=True)
        made = st.dictionaries(keys, _of(kind.valueType, kind.valueContainsNull), max_size=3)
    assert made is not None, kind
    return st.one_of(st.none(), made) if nullable else made


@st.composite
def schemas_with_rows(draw: st.DrawFn) -> tuple[StructType, list[tuple[Any, ...]]]:
    """Some schemas, each as the type of one column, and rows of them."""
    kinds = draw(
        st.lists(_structs(_kinds(DEPTH - 1)).filter(_is_read), min_size=2, max_size=AT_ONCE)
    )
    schema = StructType([StructField(f"c{n}", kind, False) for n, kind in enumerate(kinds)])
    row = st.tuples(*[_of(kind, nullable=False) for kind in kinds])
    return schema, draw(st.lists(row, min_size=1, max_size=ROWS))


def normal(value: Any, kind: DataType) -> object:
    """The comparable part of a value, whether Flow, ``collect()`` or a user has made it."""
    if value is None:
        return None
    if isinstance(kind, StructType):
        values = value.values() if isinstance(value, dict) else value
        parts = zip(kind, values, strict=True)
        return [(field.name, normal(part, field.dataType)) for field, part in parts]
    if isinstance(kind, ArrayType):
        return [normal(part, kind.elementType) for part in value]
    if isinstance(kind, MapType):
        pairs = [(normal(k, kind.keyType), normal(v, kind.valueType)) for k, v in value.items()]
        return sorted(pairs, key=repr)
    if isinstance(kind, TimestampType):  # `collect()` gives the time that the machine's clock shows
        return value.astimezone(datetime.UTC)
    if isinstance(kind, (FloatType, DoubleType)):
        return repr(value) if math.isnan(value) or value == 0 else value
    if isinstance(kind, VariantType):
        return value.toJson()
    if isinstance(kind, (GeometryType, GeographyType)):
        return bytes(value.getBytes()), value.getSrid()
    return bytes(value) if isinstance(kind, BinaryType) else value
