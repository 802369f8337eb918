"""Arrow batches to items, and items to Arrow batches."""

from __future__ import annotations

import datetime
import decimal
import math
import pickle
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import pandas
import pyarrow as pa
import pytest
from pyspark.sql import Row
from pyspark.sql.types import ArrayType, LongType

from flow_core.errors import NoneItemError
from flow_spark.errors import SchemaMismatchError
from flow_spark.items.columns import BATCH_ROWS, PORTION, to_batches
from flow_spark.items.rows import RowReader
from flow_spark.items.schema import ItemSchema, schema_of

UTC = datetime.UTC


class Point(NamedTuple):
    x: int
    label: str = "?"


@dataclass(frozen=True)
class Inner:
    a: int
    b: str | None


@dataclass
class Outer:
    inner: Inner
    numbers: list[int]
    extra: int = 7


@dataclass(eq=False)
class Held:
    x: int
    label: str


@dataclass(kw_only=True)
class ByKeyword:
    label: str
    x: int


def batch(**columns: list[Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def read(rows: pa.RecordBatch, as_: object = None) -> list[Any]:
    reader = pickle.loads(pickle.dumps(RowReader(rows.schema, as_)))
    return list(reader(rows))


ROWS = batch(x=[1, 2], label=["a", None])


@pytest.mark.parametrize(
    ("as_", "items"),
    [
        (None, [(1, "a"), (2, None)]),
        (tuple, [(1, "a"), (2, None)]),
        (dict, [{"x": 1, "label": "a"}, {"x": 2, "label": None}]),
        (Row, [Row(x=1, label="a"), Row(x=2, label=None)]),
        (Point, [Point(1, "a"), Point(2, None)]),  # type: ignore[arg-type]  # what the data holds
        (ByKeyword, [ByKeyword(x=1, label="a"), ByKeyword(x=2, label=None)]),  # type: ignore[arg-type]  # as above
    ],
)
def test_a_row_becomes_what_was_asked_for(as_: object, items: list[Any]) -> None:
    found = read(ROWS, as_)

    assert found == items
    assert [type(item) for item in found] == [type(item) for item in items]


@pytest.mark.parametrize("as_", [None, "scalar"])
def test_an_only_column_becomes_its_bare_values(as_: str | None) -> None:
    assert read(batch(n=[3, 4]), as_) == [3, 4]


def test_an_only_column_becomes_tuples_if_tuples_were_asked_for() -> None:
    assert read(batch(n=[3, None]), tuple) == [(3,), (None,)]


def test_a_bare_null_is_refused_as_an_item() -> None:
    with pytest.raises(NoneItemError, match=r"column 'n' holds 1 nulls.*dropna.*as_=tuple"):
        read(batch(n=[3, None]))


def test_columns_go_to_fields_by_name_and_the_rest_is_left_out() -> None:
    rows = batch(other=[0], label=["a"], x=[1])

    assert read(rows, Point) == [Point(1, "a")]
    assert RowReader(rows.schema, Point).names == ("x", "label")


def test_a_field_with_a_default_needs_no_column() -> None:
    assert read(batch(x=[1]), Point) == [Point(1, "?")]
    assert read(batch(inner=[{"a": 1, "b": "z"}], numbers=[[1]]), Outer) == [
        Outer(Inner(1, "z"), [1], 7)
    ]


def test_a_missing_column_is_named() -> None:
    with pytest.raises(SchemaMismatchError, match=r"Point needs the columns x,.*only label"):
        RowReader(batch(label=["a"]).schema, Point)


@dataclass
class Defaults:
    a: int = 1


@pytest.mark.parametrize(
    ("schema", "as_", "says"),
    [
        (pa.schema([]), None, "no columns, and Spark hands no rows over"),
        (pa.schema([]), dict, "no columns, and Spark hands no rows over"),
        (pa.schema([("b", pa.int64())]), Defaults, "Defaults takes none of the columns b,"),
    ],
)
def test_rows_of_no_columns_are_refused_and_not_lost(
    schema: pa.Schema, as_: object, says: str
) -> None:
    """Spark says of a batch without columns that it has no rows."""
    with pytest.raises(SchemaMismatchError, match=says):
        RowReader(schema, as_)


def test_scalar_refuses_several_columns() -> None:
    with pytest.raises(SchemaMismatchError, match="needs one column, and there are 2: x, label"):
        RowReader(ROWS.schema, "scalar")


def test_columns_of_the_same_name_are_refused() -> None:
    schema = pa.schema([("x", pa.int64()), ("x", pa.string())])
    with pytest.raises(SchemaMismatchError, match="same name"):
        RowReader(schema)


@pytest.mark.parametrize("as_", [int, "tuple", 3])
def test_a_type_that_cannot_hold_a_row_is_refused(as_: object) -> None:
    with pytest.raises(TypeError, match="as_ takes tuple, dict, Row"):
        RowReader(ROWS.schema, as_)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int64(), [1, -(2**63), None]),
        (pa.float64(), [0.5, float("inf"), None]),
        (pa.bool_(), [True, False, None]),
        (pa.string(), ["", "ä", None]),
        (pa.binary(), [b"", b"\0", None]),
        (pa.date32(), [datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None]),
        (
            pa.timestamp("us", tz="UTC"),
            [
                datetime.datetime(1, 1, 1, tzinfo=UTC),
                datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
                datetime.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
                None,
            ],
        ),
        (pa.timestamp("us"), [datetime.datetime(2013, 1, 1, 5, 15), None]),  # noqa: DTZ001
        (pa.duration("us"), [datetime.timedelta(days=-1, microseconds=1), None]),
        (pa.decimal128(38, 18), [decimal.Decimal("1.500000000000000000"), None]),
        (pa.list_(pa.int64()), [[1, None], [], None]),
        (pa.map_(pa.string(), pa.int64()), [{"a": 1, "b": None}, {}, None]),
        (
            pa.list_(pa.map_(pa.string(), pa.list_(pa.map_(pa.int64(), pa.bool_())))),
            [[{"a": [{1: True}], "b": None}, None], None],
        ),
        (
            pa.struct([("m", pa.map_(pa.string(), pa.int64())), ("n", pa.int64())]),
            [{"m": {"k": 1}, "n": None}, {"m": None, "n": 2}, None],
        ),
    ],
    ids=str,
)
def test_values_survive_the_way_there_and_back(kind: pa.DataType, values: list[Any]) -> None:
    schema = ItemSchema(pa.schema([("v", kind), ("i", pa.int64())]))
    items = [(value, index) for index, value in enumerate(values)]

    found = [item for part in to_batches(items, schema) for item in read(part)]

    assert found == items
    assert [type(value) for value, _ in found] == [type(value) for value in values]


def test_the_keys_of_a_map_can_be_hashed() -> None:
    from pyspark.sql import Row

    place = pa.struct([("cls", pa.string()), ("at.x", pa.list_(pa.list_(pa.int64())))])
    schema = ItemSchema(pa.schema([("v", pa.map_(place, place)), ("i", pa.int64())]))
    here = Row("cls", "at.x")("a", ((1, None), ()))
    items = [({here: {"cls": "b", "at.x": [[1], []]}}, 0), ({}, 1), (None, 2)]

    found = [item for part in to_batches(items, schema) for item in read(part)]

    assert found == items
    assert all(key.cls == "a" for key in found[0][0])


def test_nested_records_become_their_dataclass_again() -> None:
    items = [Outer(Inner(1, None), [1, 2]), Outer(Inner(2, "b"), [], 8)]

    (made,) = to_batches(items, schema_of(Outer))

    assert read(made, Outer) == items


class Celsius(float):
    """A float of a separate class."""


class Moment(datetime.datetime):
    """A datetime of a separate class, as pandas has one."""


@dataclass
class Counted:
    label: str
    length: int = field(init=False)
    inner: Counted | None = None

    def __post_init__(self) -> None:
        self.length = len(self.label)


def test_a_field_that_a_class_fills_itself_is_left_to_it() -> None:
    length = pa.struct([("label", pa.string()), ("length", pa.int64())])
    schema = pa.schema([("label", pa.string()), ("length", pa.int64()), ("inner", length)])
    rows = pa.record_batch([["abc"], [99], [{"label": "ab", "length": 99}]], schema=schema)

    (found,) = read(rows, Counted)

    assert found == Counted("abc", Counted("ab"))
    assert (found.length, found.inner.length) == (3, 2)
    assert RowReader(schema, Counted).names == ("label", "inner")


@dataclass
class Nested:
    perhaps: Inner | None
    several: list[Inner]
    named: dict[str, Inner | None]
    keyed: dict[Inner, int]
    pair: tuple[int, Inner]
    deep: list[dict[str, list[Inner]]] | None


def test_nested_records_become_their_class_again_wherever_they_are() -> None:
    one, two = Inner(1, None), Inner(2, "b")
    items = [
        Nested(
            one, [one, two], {"a": one, "b": None}, {one: 1, two: 2}, (1, two), [{"c": [two]}, {}]
        ),
        Nested(None, [], {}, {}, (2, one), None),
    ]

    (made,) = to_batches(items, schema_of(Nested))

    assert read(made, Nested) == items


@dataclass
class Tagged:
    x: int
    label: str
    tags: list[str] = field(default_factory=list)


SCHEMA = ItemSchema(pa.schema([("x", pa.int64()), ("label", pa.string())]))


class MappingOfRow(Mapping[str, Any]):
    """A mapping that is not a dict."""

    def __getitem__(self, key: str) -> Any:
        return {"x": 1, "label": "a"}[key]

    def __iter__(self) -> Any:
        return iter(("label", "x"))

    def __len__(self) -> int:
        return 2


class Swapped(NamedTuple):
    label: str
    x: int


@pytest.mark.parametrize(
    "item",
    [
        (1, "a"),
        [1, "a"],
        {"label": "a", "x": 1},
        Point(1, "a"),
        Swapped("a", 1),
        ByKeyword(x=1, label="a"),
        Row(label="a", x=1),
        Row(1, "a"),
        MappingOfRow(),
    ],
    ids=lambda item: type(item).__name__,
)
def test_items_of_many_kinds_become_columns(item: object) -> None:
    (made,) = to_batches([item, item], SCHEMA)

    assert made.to_pylist() == [{"x": 1, "label": "a"}] * 2


def test_items_of_several_kinds_may_be_mixed() -> None:
    (made,) = to_batches([(1, "a"), {"x": 1, "label": "a"}, Swapped("a", 1)], SCHEMA)

    assert made.to_pylist() == [{"x": 1, "label": "a"}] * 3


def test_bare_values_become_an_only_column() -> None:
    (made,) = to_batches([1, 2], schema_of(int))

    assert made.to_pydict() == {"value": [1, 2]}


@pytest.mark.parametrize(
    ("kind", "items"),
    [
        (list[int], [[1, 2, 3], [4], []]),
        (list[list[int]], [[[1, 2]], [[3], [4]]]),
        (tuple[int, ...], [(1, 2, 3), (4,)]),
        (dict[str, int], [{"a": 1}, {"b": 2, "c": 3}, {}]),
        (ArrayType(LongType()), [[1, 2, 3], [4]]),
    ],
    ids=str,
)
def test_lists_and_dicts_become_an_only_column_if_they_are_the_items(
    kind: Any, items: list[Any]
) -> None:
    """A row by position and one by name look the same."""
    (made,) = to_batches(items, ItemSchema.of(kind))

    assert read(made) == [dict(item) if type(item) is dict else list(item) for item in items]


def test_batches_are_made_lazily_and_bounded() -> None:
    taken = 0

    def items() -> Any:
        nonlocal taken
        while True:
            taken += 1
            yield taken

    made = to_batches(items(), schema_of(int), rows=10)

    assert next(made).num_rows == 10
    assert taken == 10


def test_a_batch_is_full_though_few_items_are_held_at_once() -> None:
    """Items that are held are gone over by the collector; columns are not."""
    held: set[weakref.ref[Held]] = set()
    most = 0

    def items() -> Iterator[Held]:
        nonlocal most
        for number in range(2 * BATCH_ROWS + 1):
            item = Held(number, str(number))
            held.add(weakref.ref(item, held.discard))
            most = max(most, len(held))
            yield item

    made = list(to_batches(items(), schema_of(Held)))

    assert [batch.num_rows for batch in made] == [BATCH_ROWS, BATCH_ROWS, 1]
    assert most < 2 * PORTION + 10
    numbers = [number for batch in made for number in batch.to_pydict()["x"]]
    assert numbers == list(range(2 * BATCH_ROWS + 1))
    assert made[1].to_pydict()["label"][0] == str(BATCH_ROWS)


def test_a_batch_of_large_items_is_bounded_in_bytes() -> None:
    """Ten thousand of 300 KB would be more than Arrow holds in a column of bytes."""
    taken = 0

    def items() -> Iterator[tuple[int, bytes]]:
        nonlocal taken
        for number in range(500):
            taken += 1
            yield number, bytes(300_000)

    made = to_batches(items(), schema_of(tuple[int, bytes]))

    assert next(made).nbytes < 64 * 2**20
    assert taken < 200
    assert 1 + sum(1 for _ in made) < 10
    assert taken == 500


def test_the_collector_has_nothing_to_do_for_items_that_become_columns(
    collections: Callable[[], int],
) -> None:
    made = list(to_batches(((number, "a") for number in range(20_000)), SCHEMA))

    assert sum(batch.num_rows for batch in made) == 20_000
    assert collections() < 5


@pytest.mark.parametrize("as_", [tuple, dict, Row, Held])
def test_the_collector_has_nothing_to_do_for_rows_that_become_items(
    collections: Callable[[], int], as_: Any
) -> None:
    columns = [pa.array(range(20_000)), pa.array(map(str, range(20_000)))]
    batch = pa.RecordBatch.from_arrays(columns, names=["x", "label"])

    assert sum(1 for _ in RowReader(batch.schema, as_)(batch)) == 20_000
    assert collections() < 5


def test_an_item_far_into_a_batch_is_named_by_its_number() -> None:
    items: list[Any] = [(number, "a") for number in range(2 * PORTION)]
    items[PORTION + 7] = (1.5, "a")

    with pytest.raises(SchemaMismatchError, match=r"field 'x' is 1.5 \(float\)") as caught:
        list(to_batches(items, SCHEMA))

    assert caught.value.item_index == PORTION + 7


NARROW = ItemSchema(pa.schema([pa.field("n", pa.int8(), nullable=True)]))


def test_integers_become_those_of_the_column_if_they_fit() -> None:
    (made,) = to_batches([1, -128, 127], NARROW)

    assert made.schema.field("n").type == pa.int8()
    assert made.to_pydict() == {"n": [1, -128, 127]}


@pytest.mark.parametrize("value", [128, 2**63, 1.0, True, "1"])
def test_a_value_that_is_not_an_integer_or_too_large_is_named(value: object) -> None:
    with pytest.raises(SchemaMismatchError, match="does not fit int8") as caught:
        list(to_batches([1, value], NARROW))

    assert caught.value.item_index == 1


@pytest.mark.parametrize(
    ("item", "field_name", "says"),
    [
        ((1,), "label", "has 1 elements; the schema has 2 columns: x, label"),
        ((1, "a", 2), "label", "has 3 elements"),
        ({"x": 1}, "label", "lacks label"),
        ({"x": 1, "label": "a", "y": 2}, "y", "has y too"),
        (Tagged(1, "a"), "tags", "a Tagged, has tags too"),
        (5, "x", "is a int and cannot become the columns x, label"),
        (("one", "a"), "x", r"field 'x' is 'one' \(str\), which does not fit int64"),
        ((1.5, "a"), "x", r"field 'x' is 1.5 \(float\), which does not fit int64"),
        ((2**63, "a"), "x", "which does not fit int64"),
        ((1, 2), "label", r"field 'label' is 2 \(int\), which does not fit string"),
    ],
)
def test_an_item_that_does_not_fit_is_named_with_its_field(
    item: object, field_name: str, says: str
) -> None:
    good = (1, "a")
    items = [*[good] * 7, item, good]

    with pytest.raises(SchemaMismatchError, match=says) as caught:
        list(to_batches(items, SCHEMA, rows=4))

    assert caught.value.item_index == 7
    assert caught.value.field == field_name
    assert "item 7" in str(caught.value)


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (datetime.date, datetime.datetime(2013, 1, 1, 5, tzinfo=UTC)),
        (datetime.date, 15_000),
        (datetime.datetime, 15_000),
        (datetime.timedelta, 15_000),
        (list[int], [1, 1.5]),
        (dict[str, list[int]], {"a": [1.5]}),
        (Inner, Inner(1.5, None)),  # type: ignore[arg-type]  # that is the point
        (int, decimal.Decimal("1.5")),
        (int, Celsius(1.5)),
        (int, numpy.float32(1.5)),
        (list[int], [numpy.float64(1.5)]),
        (dict[int, str], {1.5: "a"}),
        (datetime.date, Moment(2013, 1, 1, 5, tzinfo=UTC)),
        (datetime.date, numpy.int64(15_000)),
        (list[str], "text"),
        (list[list[str]], ["text"]),
        (list[int], b"bytes"),
        (str, b"text"),
        (list[str], ["a", b"text"]),
        (bytes, "text"),
        (dict[str, bytes], {"a": "text"}),
        (datetime.datetime, pandas.Timestamp("2024-01-01 00:00:00.000000123", tz="UTC")),
        (datetime.timedelta, pandas.Timedelta(numpy.timedelta64(1, "ns"))),
        (datetime.timedelta, numpy.timedelta64(1, "ns")),
        (dict[str, datetime.timedelta], {"a": pandas.Timedelta(numpy.timedelta64(1, "ns"))}),
    ],
)
def test_a_value_is_never_changed_silently(hint: Any, value: object) -> None:
    """Arrow would cut the fraction or the time off, take a number for a date, or text apart."""
    schema = schema_of(tuple[hint, int])

    with pytest.raises(SchemaMismatchError, match="lose something") as caught:
        list(to_batches([(value, 0)], schema))

    assert caught.value.field == "_1"


MICROSECOND = pandas.Timedelta(numpy.timedelta64(1, "us"))
NEW_YORK = datetime.timezone(datetime.timedelta(hours=-4))
NOON = datetime.datetime(2024, 7, 1, 12)  # noqa: DTZ001 - of no zone


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.float32(), 1e40),
        (pa.float32(), -(2.0**128) + 2.0**103),
        (pa.float32(), numpy.float64(1e40)),
        (pa.list_(pa.float32()), [1.0, 1e40]),
        (pa.struct([("x", pa.float32())]), {"x": 1e40}),
        (pa.timestamp("us"), NOON.replace(tzinfo=NEW_YORK)),
        (pa.list_(pa.timestamp("us")), [NOON, NOON.replace(tzinfo=NEW_YORK)]),
        (pa.map_(pa.string(), pa.timestamp("us")), {"a": NOON.replace(tzinfo=NEW_YORK)}),
        (pa.large_string(), b"text"),
        (pa.large_binary(), "text"),
    ],
    ids=str,
)
def test_a_value_that_a_column_of_a_schema_would_change_is_refused(
    kind: pa.DataType, value: object
) -> None:
    schema = ItemSchema.of(pa.schema([("_1", kind)]))
    with pytest.raises(SchemaMismatchError, match="lose something") as caught:
        list(to_batches([(value,)], schema))
    assert caught.value.field == "_1"


@pytest.mark.parametrize(
    ("kind", "value", "found"),
    [
        (pa.float32(), math.inf, math.inf),
        (pa.float32(), 3.4028234663852886e38, 3.4028234663852886e38),
        (pa.float32(), None, None),
        (pa.timestamp("us"), NOON, NOON),
        (pa.timestamp("us"), pandas.Timestamp(NOON), NOON),
        (pa.timestamp("us", tz="UTC"), NOON.replace(tzinfo=UTC), NOON.replace(tzinfo=UTC)),
        (
            pa.duration("us"),
            pandas.Timedelta(numpy.timedelta64(1, "us")),
            datetime.timedelta(microseconds=1),
        ),
        (pa.list_(pa.string()), frozenset({"a"}), ["a"]),
        (pa.list_(pa.string()), {"a": 1}.keys(), ["a"]),
        (pa.list_(pa.int64()), {"a": 1}.values(), [1]),
        (pa.list_(pa.list_(pa.int64())), [frozenset({1})], [[1]]),
        (pa.struct([("x", pa.list_(pa.int64()))]), {"x": frozenset({1})}, {"x": [1]}),
    ],
    ids=str,
)
def test_a_value_that_fits_comes_back_as_it_was(
    kind: pa.DataType, value: object, found: object
) -> None:
    schema = ItemSchema.of(pa.schema([("_1", kind)]))
    (made,) = to_batches([(value,)], schema)
    assert made.column(0).to_pylist() == [found]


def test_none_in_a_field_that_does_not_allow_none_is_named() -> None:
    schema = schema_of(Point)

    with pytest.raises(SchemaMismatchError, match=r"field 'x' is None.*int64 \| None") as caught:
        list(to_batches([(1, "a"), (None, "b")], schema))

    assert caught.value.item_index == 1


@pytest.mark.parametrize(
    ("hint", "good", "bad", "where"),
    [
        (list[int], [1], [1, None], "its element"),
        (dict[str, int], {"a": 1}, {"a": None}, "its value"),
        (Inner, Inner(1, None), Inner(None, None), "its a"),  # type: ignore[arg-type]  # that is the point
        (list[Inner] | None, None, [Inner(None, "b")], "its a of its element"),  # type: ignore[arg-type]  # as above
        (Inner | None, None, (None, "b"), "its a"),
        (dict[str, list[int]], {}, {"a": [1], "b": [2, None]}, "its element of its value"),
    ],
)
def test_none_within_a_value_that_never_holds_it_is_named(
    hint: Any, good: object, bad: object, where: str
) -> None:
    """Arrow takes it, and Spark fails in the midst of its own engine, or reads something else."""
    schema = schema_of(tuple[hint, int])

    with pytest.raises(SchemaMismatchError, match=f"field '_1' has None in {where},") as caught:
        list(to_batches([(good, 0)] * 3 + [(bad, 1), (good, 2)], schema))

    assert caught.value.item_index == 3
    assert caught.value.field == "_1"


SCRIPT = """
from __future__ import annotations
import sys
from dataclasses import dataclass
import pyarrow as pa
from flow_spark.items.rows import RowReader
from flow_spark.pickling.pickles import dumps

@dataclass
class Place:
    name: str

@dataclass
class Visit:
    minutes: int
    place: Place
    others: list[Other]

@dataclass
class Other:
    name: str | None

place = pa.struct([("name", pa.string())])
columns = [("minutes", pa.int64()), ("place", place), ("others", pa.list_(place))]
reader = RowReader(pa.schema(columns), Visit)
sys.stdout.buffer.write(dumps(reader, "the reader"))
"""


def test_a_class_of_a_script_with_annotations_as_text_is_made_elsewhere(tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(SCRIPT)
    pickled = subprocess.run([sys.executable, script], check=True, capture_output=True).stdout

    reader: RowReader = pickle.loads(pickled)

    rows = [[5], [{"name": "JFK"}], [[{"name": "EWR"}]]]
    place = pa.struct([("name", pa.string())])
    schema = pa.schema([("minutes", pa.int64()), ("place", place), ("others", pa.list_(place))])
    (visit,) = reader(pa.record_batch(rows, schema=schema))
    assert (visit.minutes, visit.place.name) == (5, "JFK")
    assert [(type(other).__name__, other.name) for other in visit.others] == [("Other", "EWR")]
