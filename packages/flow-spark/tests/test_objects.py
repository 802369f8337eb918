"""Values that are objects of PySpark's classes or of the user's arrive and leave as such."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from pyspark.ml.linalg import DenseVector, SparseVector, Vectors, VectorUDT
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    DoubleType,
    Geography,
    GeographyType,
    Geometry,
    GeometryType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    UserDefinedType,
    VariantType,
    VariantVal,
)

import flow_core as flow
from flow_core import Flow
from flow_spark import SchemaMismatchError, UnsupportedTypeError, from_dataframe, union
from flow_spark.items.columns import to_batches
from flow_spark.items.rows import RowReader
from flow_spark.items.schema import ItemSchema, schema_of

WKB = bytes.fromhex("0101000000000000000000F03F0000000000000040")
NOON = datetime.datetime(2024, 7, 1, 12, tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Stop:
    """The place of a bus stop, and its time."""

    x: float
    times: tuple[datetime.datetime, ...]
    tags: dict[str, Row]


class StopUDT(UserDefinedType):
    """Takes rows, as PySpark gives them to a user-defined type."""

    @classmethod
    def sqlType(cls) -> StructType:  # noqa: N802 - PySpark's name
        tag = StructType([StructField("n", IntegerType())])
        return (
            StructType()
            .add("x", DoubleType())
            .add("times", ArrayType(TimestampType()))
            .add("tags", MapType(StringType(), tag))
        )

    @classmethod
    def module(cls) -> str:
        return cls.__module__

    def serialize(self, obj: Stop) -> tuple[object, ...]:
        return (obj.x, list(obj.times), obj.tags)

    def deserialize(self, datum: Row) -> Stop:
        return Stop(datum.x, tuple(datum.times), datum.tags)


Stop.__UDT__ = StopUDT()  # type: ignore[attr-defined]  # as PySpark wants it


STOP = Stop(1.5, (NOON,), {"a": Row(n=1)})
JSON = VariantVal(b"\x0c\x01", b"\x01\x00\x00")
SPARSE = Vectors.sparse(3, {1: 2.0})

CASES = [
    pytest.param(VariantType(), JSON, id="variant"),
    pytest.param(GeometryType(0), Geometry(WKB, 0), id="geometry"),
    pytest.param(GeometryType("ANY"), Geometry(WKB, 4326), id="geometry of any coordinates"),
    pytest.param(GeographyType(4326), Geography(WKB, 4326), id="geography"),
    pytest.param(VectorUDT(), Vectors.dense(1.0, 2.0), id="dense vector"),
    pytest.param(VectorUDT(), SPARSE, id="sparse vector"),
]
OF_SPARK = tuple(CASES)
"""The packages whose classes are on a cluster without being brought there."""
CASES.append(pytest.param(StopUDT(), STOP, id="of the user"))


def content(value: Any) -> object:
    """The comparable part of a value: a VariantVal equals only itself."""
    if isinstance(value, VariantVal):
        return ("variant", value.toJson())
    if isinstance(value, (Geometry, Geography)):
        return (type(value), bytes(value.getBytes()), value.getSrid())
    if isinstance(value, Stop):
        return ("stop", value.x, [time.timestamp() for time in value.times], value.tags)
    if isinstance(value, dict):
        return {key: content(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [content(part) for part in value]
    return value


def nested(kind: Any) -> StructType:
    return (
        StructType()
        .add("plain", kind)
        .add("missing", kind)
        .add("many", ArrayType(kind))
        .add("named", MapType(StringType(), kind))
        .add("inner", StructType().add("deep", ArrayType(kind)))
    )


def row_of(value: object) -> tuple[object, ...]:
    return (value, None, [value, None], {"k": value}, {"deep": [value]})


@pytest.mark.parametrize(("kind", "value"), CASES)
def test_an_object_is_taken_apart_and_made_again(kind: Any, value: object) -> None:
    schema = ItemSchema.of(nested(kind))
    rows = [row_of(value)] * 3

    (batch,) = to_batches(rows, schema)
    found = list(RowReader(schema.arrow)(batch))

    assert content(found) == content(rows)
    assert schema.spark() == nested(kind)
    assert ItemSchema.of(schema.arrow).spark() == nested(kind)


@pytest.mark.parametrize(("kind", "value"), CASES)
def test_a_value_that_is_not_such_an_object_is_refused(kind: Any, value: object) -> None:
    schema = ItemSchema.of(StructType().add("a", ArrayType(kind)))
    with pytest.raises(SchemaMismatchError, match=r"item 1, .*field 'a' is \['no'\]"):
        list(to_batches([([value],), (["no"],)], schema))


@pytest.mark.parametrize(
    ("hint", "kind"),
    [
        (VariantVal, VariantType()),
        (Geometry, GeometryType("ANY")),
        (Geography, GeographyType("ANY")),
        (DenseVector, VectorUDT()),
        (Stop, StopUDT()),
    ],
)
def test_a_class_of_objects_is_the_type_of_a_column(hint: type[Any], kind: Any) -> None:
    made = schema_of(tuple[hint, list[hint | None], dict[str, hint]]).spark()  # type: ignore[valid-type]

    assert made["_1"].dataType == kind
    assert made["_2"].dataType == ArrayType(kind)
    assert made["_3"].dataType == MapType(StringType(), kind, valueContainsNull=False)
    if hint is not Stop:  # a record that is an item is a row
        assert schema_of(hint).spark()["value"].dataType == kind


def test_the_same_columns_of_other_objects_are_other_columns() -> None:
    """Arrow compares schemas without what is noted in them."""
    raw = {"value": JSON.value, "metadata": JSON.metadata}
    variants = ItemSchema.of(StructType().add("v", VariantType(), False))
    plain = ItemSchema(pa.schema([pa.field("v", schema_of(Raw).arrow.field("raw").type, False)]))
    assert variants.arrow == plain.arrow

    assert [batch.to_pylist() for batch in to_batches([(JSON,)], variants)] == [[{"v": raw}]]
    assert [batch.to_pylist() for batch in to_batches([(raw,)], plain)] == [[{"v": raw}]]


@pytest.mark.spark
def test_objects_and_times_are_read_in_the_order_of_partitions(spark: SparkSession) -> None:
    """The zone is learnt from batches, which have a column more."""
    schema = StructType().add("stop", StopUDT()).add("n", IntegerType())
    rows = flow.just((STOP, 1)).to_dataframe(spark, schema=schema)
    zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        (found,) = from_dataframe(rows, ordered=True).map(_itself)
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert content(found) == content((STOP, 1))
    assert str(found[0].times[0].tzinfo) == "Europe/Berlin"


@pytest.mark.spark
def test_a_missing_struct_has_neither_times_nor_what_is_never_missing(spark: SparkSession) -> None:
    noon = "TIMESTAMP '2024-07-01 12:00:00Z'"
    rows = spark.sql(
        f"SELECT if(n = 0, NULL, named_struct('n', n, 'at', {noon})) AS s, "
        f"if(n = 0, NULL, struct(map(n, struct(n, {noon})))) AS m FROM range(2) AS t(n)"
    )
    found = sorted(from_dataframe(rows), key=str)
    named = {"n": 1, "at": NOON}
    assert found == [(None, None), (named, {"col1": {1: {"n": 1, "col2": NOON}}})]


@pytest.mark.spark
def test_void_beside_times_is_refused(spark: SparkSession) -> None:
    rows = spark.sql("SELECT struct(array(NULL) AS a, now() AS t) AS s, array(NULL) AS a")
    assert list(from_dataframe(rows.select("a"))) == [[None]]
    with pytest.raises(UnsupportedTypeError, match="column 's' has times, and void beside them"):
        from_dataframe(rows)


@dataclass
class RawVariant:
    value: bytes
    metadata: bytes


@dataclass
class Raw:
    raw: RawVariant


@pytest.mark.spark
@pytest.mark.parametrize(("kind", "value"), CASES)
def test_objects_are_read_written_and_in_stages_what_collect_gives(
    spark: SparkSession, kind: Any, value: object
) -> None:
    rows = flow.just(row_of(value)).to_dataframe(spark, schema=nested(kind))
    (want,) = rows.collect()
    assert content(want) == content([*row_of(value)[:-1], [[value]]])

    for items in (from_dataframe(rows), from_dataframe(rows).map(_itself)):
        (found,) = items
        assert content(found) == content(row_of(value))
        made = items.to_dataframe(schema=nested(kind))
        assert made.schema == nested(kind)
        assert content(made.collect()) == content([want])


def _itself(row: Any) -> Any:
    return row


@pytest.mark.spark
@pytest.mark.parametrize(("kind", "value"), CASES)
def test_a_bare_object_is_an_item(spark: SparkSession, kind: Any, value: object) -> None:
    rows = flow.just(value).to_dataframe(spark, schema=StructType().add("value", kind))
    (found,) = from_dataframe(rows)
    assert content(found) == content(value)
    (made,) = from_dataframe(rows).map(_itself)
    assert content(made) == content(value)


@pytest.mark.spark
@pytest.mark.parametrize(("kind", "value"), CASES)
def test_a_frame_of_pandas_holds_objects(spark: SparkSession, kind: Any, value: object) -> None:
    row = row_of(value)
    schema = nested(kind).add("n", IntegerType())
    here = flow.just((*row, 1), (*row, None))
    there = from_dataframe(here.to_dataframe(spark, schema=schema))
    for made in (here.to_pandas(schema=schema), there.to_pandas()):
        assert list(made.columns) == schema.names
        assert content(list(made.iloc[1, :4])) == content(row[:4])
        assert str(made["n"].dtype) == "Int32"


@pytest.mark.spark
def test_a_table_holds_structs_that_are_missing(spark: SparkSession) -> None:
    rows = spark.sql(
        """SELECT id, if(id > 0, struct(1 AS a, timestamp_seconds(id) AS t), NULL) AS `s.x`,
        if(id > 1, array(struct(1 AS a), NULL), NULL) AS l, map('k', parse_json(NULL)) AS m
        FROM range(3) ORDER BY id DESC"""
    )
    found = from_dataframe(rows).to_arrow()
    assert found.column("id").to_pylist() == [2, 1, 0]
    one = {"a": 1, "t": datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.UTC)}
    assert found.column("s.x").to_pylist()[1:] == [one, None]
    assert found.column("l").to_pylist() == [[{"a": 1}, None], None, None]
    assert found.column("m").to_pylist() == [[("k", None)]] * 3
    assert found.schema == from_dataframe(rows.where("id > 7")).to_arrow().schema


@pytest.mark.spark
def test_a_table_says_nothing_that_only_flow_understands(spark: SparkSession) -> None:
    schema = nested(VectorUDT())
    here = flow.just(row_of(Vectors.dense(1)))
    for made in (here, from_dataframe(here.to_dataframe(spark, schema=schema))):
        assert "flow:" not in made.to_arrow(schema=schema).schema.to_string()
        assert "flow:" in ItemSchema.of(schema).arrow.to_string()


@pytest.mark.spark
def test_a_frame_of_pandas_holds_maps_by_structs(spark: SparkSession) -> None:
    rows = spark.sql("SELECT map(struct(1 AS a), 2) AS m")
    made = from_dataframe(rows).to_pandas()
    assert made["m"].tolist() == [{Row(a=1): 2}]


@dataclass
class Parsed:
    json: VariantVal
    vectors: list[DenseVector | SparseVector]
    stop: Stop | None


@dataclass
class Misread:
    json: dict[str, bytes]


@dataclass
class MisreadVector:
    vectors: list[list[float]]


@dataclass
class NoVariant:
    text: VariantVal


@dataclass
class NoVector:
    text: DenseVector


@pytest.fixture
def parsed(spark: SparkSession) -> DataFrame:
    items: Flow[Any] = flow.just((JSON, [SPARSE], STOP, "x"))
    schema = StructType().add("json", VariantType()).add("vectors", ArrayType(VectorUDT()))
    return items.to_dataframe(spark, schema=schema.add("stop", StopUDT()).add("text", "string"))


@pytest.mark.spark
def test_records_have_objects_in_their_fields(parsed: DataFrame) -> None:
    for items in (
        from_dataframe(parsed, as_=Parsed),
        from_dataframe(parsed, as_=Parsed).map(_itself),
    ):
        (found,) = items
        assert content((found.json, found.vectors, found.stop)) == content((JSON, [SPARSE], STOP))
        assert type(found.stop) is Stop


@pytest.mark.spark
@pytest.mark.parametrize(
    ("record", "message"),
    [
        (Misread, "Misread.json is dict[str, bytes], and the column is of type variant"),
        (MisreadVector, "MisreadVector.vectors, elements is list[float], and what is there in"),
        (NoVariant, "NoVariant.text is VariantVal, and the column is of type string"),
        (NoVector, "NoVector.text is DenseVector, and the column is of type string"),
    ],
)
def test_a_record_that_says_otherwise_is_refused(
    parsed: DataFrame, record: type[Any], message: str
) -> None:
    with pytest.raises(SchemaMismatchError, match=re.escape(message)):
        from_dataframe(parsed, as_=record)


@pytest.mark.spark
def test_rows_of_objects_are_united(parsed: DataFrame) -> None:
    vectors = from_dataframe(parsed.select(sql.element_at("vectors", 1)))
    stops = from_dataframe(parsed.select("stop"))
    assert list(union(vectors, vectors)) == [SPARSE, SPARSE]
    assert content(sorted(union(vectors, stops), key=str)) == content([SPARSE, STOP])


@pytest.mark.spark
@pytest.mark.parametrize(
    "kind", ["INTERVAL '1-2' YEAR TO MONTH", "make_interval(1, 2)"], ids=["months", "calendar"]
)
def test_a_type_that_cannot_come_is_refused_with_the_cast(spark: SparkSession, kind: str) -> None:
    rows = spark.sql(f"SELECT 1 AS a, named_struct('x', {kind}) AS b, {kind} AS c")
    with pytest.raises(UnsupportedTypeError, match=r"column 'b'.*df\[\"b\"\].cast\(\"string\"\)"):
        from_dataframe(rows)
    assert len(list(from_dataframe(rows.select("a", rows.c.cast("string"))))) == 1
