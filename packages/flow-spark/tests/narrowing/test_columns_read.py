"""Columns that no stage can read are not read, and nothing else changes."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pytest

import flow_core as flow
from flow_cli.explain import explain
from flow_core import Flow
from flow_core.stages import Stage
from flow_core.structure import source_of, stages_of
from flow_spark import SchemaMismatchError, from_dataframe, union
from flow_spark.items.rows import RowReader
from flow_spark.items.unread import UNREAD, NotReadError
from flow_spark.narrowing.columns_read import columns_read, record_of
from flow_spark.narrowing.fields_read import GivenUpError
from flow_spark.pickling.pickles import dumps, loads_here

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

COLUMNS = ("number", "text", "half", "many")


class Row(NamedTuple):
    number: int
    text: str
    half: float
    many: list[int]


@dataclass
class Open:
    number: int
    text: str
    half: float
    many: list[int]


@dataclass(frozen=True, slots=True)
class Closed:
    number: int
    text: str
    half: float
    many: list[int]


@dataclass
class Checked(Open):
    def __post_init__(self) -> None:
        assert self.text


class Derived(NamedTuple):
    number: int
    text: str
    half: float
    many: list[int]

    @property
    def first(self) -> int:
        return self.many[0]


class Indexed(NamedTuple):
    number: int
    text: str
    half: float
    many: list[int]

    def __getitem__(self, index: Any) -> Any:
        return len(self.text)


@dataclass
class Watched(Open):
    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, "text")


@dataclass
class Closing(Open):
    def __del__(self) -> None:
        assert self.text


@dataclass
class Valued(Open):
    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, f"{value}")


class Overridden(Row):
    @property
    def number(self) -> int:  # type: ignore[override]  # what is tried
        return len(self.text)


CODED = (Checked, Overridden, Indexed, Watched, Closing, Valued)


def read(change: Callable[[Flow[Any]], Flow[Any]], as_: object = None) -> set[str]:
    stages: tuple[Stage[Any, Any], ...] = stages_of(change(flow.range(3)))
    return set(columns_read(stages, COLUMNS, record_of(COLUMNS, as_)))


@pytest.mark.parametrize(
    ("change", "columns"),
    [
        (lambda rows: rows.map(lambda t: t[0]), "number"),
        (lambda rows: rows.filter(lambda t: t[2] > 1).map(lambda t: t[0]), "number half"),
        (lambda rows: rows.filter(lambda t: t[1]).map(str.upper), None),
        (lambda rows: rows.map(lambda t: (t[0], t[1])).map(lambda t: t[9]), "number text"),
        (lambda rows: rows.filter(lambda t: t[1]).count(), "text"),
        (lambda rows: rows.count(), ""),
        (lambda rows: rows.take(3).map(lambda t: t[0]), "number"),
        (lambda rows: rows.flat_map_iterable(lambda t: t[3]), "many"),
        (lambda rows: rows.count_by_key(operator.itemgetter(1)), "text"),
        (lambda rows: rows.reduce_by_key(lambda t: t[1], max, lambda t: t[0]), "number text"),
        (lambda rows: rows.reduce_by_key(lambda t: t[1], max), None),
        (lambda rows: rows.do_on_next(lambda t: print(t[1])).map(lambda t: t[0]), "number text"),
        (lambda rows: rows.do_on_next(print).map(lambda t: t[0]), None),
        (lambda rows: rows.distinct(lambda t: t[0]).map(lambda t: t[2]), "number half"),
        (lambda rows: rows.distinct().map(lambda t: t[2]), None),
        (lambda rows: rows.start_with((1, 2)).map(lambda t: t[0]), "number"),
        (lambda rows: rows.scan(lambda total, t: total + t[0], 0), None),
        (lambda rows: rows.all(lambda t: t[0] > 1), "number"),
        (lambda rows: rows.name("rows").checkpoint("here").map(lambda t: t[0]), "number"),
        (lambda rows: rows.map(lambda t: {"a": t}), None),
    ],
)
def test_the_columns_that_stages_read_are_those_of_their_functions(
    change: Callable[[Flow[Any]], Flow[Any]], columns: str | None
) -> None:
    if columns is None:
        with pytest.raises(GivenUpError):
            read(change)
    else:
        assert read(change) == set(columns.split())


def test_all_columns_are_read_if_the_records_leave_the_stages() -> None:
    assert read(lambda rows: rows.filter(lambda t: t[1])) == set(COLUMNS)
    assert read(lambda rows: rows) == set(COLUMNS)


@pytest.mark.parametrize("as_", [Row, Open, Closed, Derived])
def test_fields_of_records_are_read_by_name(as_: type[Any]) -> None:
    assert read(lambda rows: rows.filter(lambda t: t.half).map(lambda t: t.text), as_) == {
        "half",
        "text",
    }


@pytest.mark.parametrize("as_", [*CODED, dict, type("Odd", (Open,), {})])
def test_all_columns_are_read_for_a_class_with_code_of_the_user(as_: type[Any]) -> None:
    with pytest.raises(GivenUpError, match="may read all columns"):
        read(lambda rows: rows.map(lambda t: t.text), as_)


def test_a_property_of_a_record_reads_all_columns() -> None:
    with pytest.raises(GivenUpError, match=r"map\(.*: it uses t in line"):
        read(lambda rows: rows.map(lambda t: t.first), Derived)


def test_a_value_that_was_not_read_fails_in_every_use_and_prints() -> None:
    value: Any = UNREAD
    assert (
        repr(Row(1, value, value, [2]))
        == "Row(number=1, text=<not read>, half=<not read>, many=[2])"
    )
    uses: list[Callable[[], object]] = [
        lambda: value == 1,
        lambda: value != 1,
        lambda: value < 1,
        lambda: value + 1,
        lambda: "a" + value,
        lambda: value.upper(),
        lambda: value[0],
        lambda: [*value],
        lambda: len(value),
        lambda: bool(value),
        lambda: str(value),
        lambda: f"{value}",
        lambda: hash(value),
        lambda: 1 in value,
        lambda: int(value),
        lambda: value(),
    ]
    for use in uses:
        with pytest.raises(NotReadError, match=r"narrow=False\) reads all columns"):
            use()
    assert loads_here(dumps(UNREAD, "a value")) is UNREAD
    assert not hasattr(value, "__wrapped__"), "doctest looks for it"


@pytest.mark.parametrize("as_", [tuple, Row, Open, Closed])
def test_a_reader_of_some_columns_gives_the_others_as_not_read(as_: Any) -> None:
    rows = pa.RecordBatch.from_pydict(
        {"number": [1, 2], "text": ["a", "b"], "half": [0.5, 1.0], "many": [[1], []]}
    )
    reader = RowReader(rows.schema, as_).reading(["half", "number"])
    reader = loads_here(dumps(reader, "a reader"))
    assert reader.read == ("number", "half")
    found = list(reader(rows.select(["half", "number"])))
    expected = [(1, UNREAD, 0.5, UNREAD), (2, UNREAD, 1.0, UNREAD)]
    assert list(map(repr, found)) == [repr(as_(*v) if as_ is not tuple else v) for v in expected]
    assert not reader.is_like(RowReader(rows.schema, as_))


@pytest.fixture(scope="module")
def df(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    path: Path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    spark.range(200).selectExpr(
        "cast(id as int) as number",
        "if(id % 7 = 0, null, concat('t', id)) as text",
        "id / 2 as half",
        "array(cast(id as int), 1) as many",
    ).write.parquet(str(path))
    return spark.read.parquet(str(path))


def plan_of(made: Flow[Any]) -> str:
    source: Any = source_of(made)
    return str(source.plan(stages_of(made)))


CASES: list[Callable[[Flow[Any]], Flow[Any]]] = [
    lambda rows: rows.filter(lambda t: t[0] % 3 == 0).map(lambda t: (t[0], t[2])),
    lambda rows: rows.map(lambda t: t[3]),
    lambda rows: rows.map(lambda _: 1),
    lambda rows: rows.filter(lambda t: t[1] is None).count(),
    lambda rows: rows.count_by_key(lambda t: t[1]),
    lambda rows: rows.reduce_by_key(lambda t: t[0] % 5, lambda a, b: a + b, lambda t: t[2]),
    lambda rows: rows.map(lambda t: t),
    lambda rows: rows.filter(lambda t: len(t) == 4),
    lambda rows: rows.take(300).map(lambda t: t[0]),
]


@pytest.mark.spark
@pytest.mark.parametrize("case", range(len(CASES)))
def test_a_narrowed_flow_gives_what_it_gives_with_all_columns(df: DataFrame, case: int) -> None:
    change = CASES[case]
    assert sorted(map(repr, change(from_dataframe(df)))) == sorted(
        map(repr, change(from_dataframe(df, narrow=False)))
    )


@pytest.mark.spark
def test_spark_reads_only_the_columns_that_stages_read(df: DataFrame) -> None:
    rows = from_dataframe(df, as_=Row)
    made = rows.filter(lambda t: t.number > 3).map(lambda t: t.half)
    assert "ReadSchema: struct<number:int,half:double>" in plan_of(made)
    assert "from_dataframe(number, half: 2 of 4 columns, where " in str(explain(made))
    assert "it reads all columns" not in str(explain(made))
    wide = from_dataframe(df, as_=Row, narrow=False).map(lambda t: t.half)
    assert "ReadSchema: struct<number:int,text:string,half:double,many" in plan_of(wide)


@pytest.mark.spark
def test_an_explained_flow_says_why_all_columns_are_read(df: DataFrame) -> None:
    made = from_dataframe(df).map(lambda t: t[0]).filter(lambda n: n > 1)
    assert "it reads all columns" not in str(explain(made))
    text = str(explain(from_dataframe(df).map(lambda t: sum(t[:1]))))
    assert "from_dataframe(number, text, half, many); it reads all columns, since map(" in text
    assert "it uses t in line" in text
    assert "it reads all columns" not in str(explain(from_dataframe(df).filter(lambda t: t[0])))
    assert "it reads all columns" not in str(explain(from_dataframe(df.select("half")).map(str)))


@pytest.mark.spark
def test_wide_rows_as_tuples_that_are_passed_on_are_warned_of(spark: SparkSession) -> None:
    df = spark.range(3).selectExpr("id", *(f"id * {n} as c{n}" for n in range(10)))
    with pytest.warns(RuntimeWarning, match=r"11 columns are read, since map\(.*it uses t in line"):
        assert sorted(from_dataframe(df).map(lambda t: sum(t))) == [0, 46, 92]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sorted(from_dataframe(df).map(lambda t: t[2])) == [0, 1, 2]
        assert len(list(from_dataframe(df))) == 3
        assert sorted(from_dataframe(df, narrow=False).map(lambda t: sum(t))) == [0, 46, 92]
        assert sorted(from_dataframe(df.select("id", "c1")).map(lambda t: sum(t))) == [0, 2, 4]


@pytest.mark.spark
def test_a_null_in_a_column_that_is_not_read_is_no_error(df: DataFrame) -> None:
    assert sorted(from_dataframe(df, as_=Row).map(lambda t: t.number)) == list(range(200))
    with pytest.raises(SchemaMismatchError, match=r"Row\.text is str"):
        list(from_dataframe(df, as_=Row, narrow=False).map(lambda t: t.number))


@pytest.mark.spark
def test_an_error_shows_the_record_without_the_values_that_were_not_read(df: DataFrame) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        list(from_dataframe(df, as_=Row).map(lambda t: 1 // (t.number - 5)))
    assert "text=<not read>" in "".join(caught.value.__notes__)


@pytest.mark.spark
def test_united_flows_and_frames_of_flows_read_what_they_need(df: DataFrame) -> None:
    evens = from_dataframe(df).filter(lambda t: t[0] % 2 == 0).map(lambda t: t[0])
    odds = from_dataframe(df, as_=Closed, verify_schema=False)
    both = union(evens, odds.filter(lambda t: t.number % 2).map(lambda t: t.number))
    assert sorted(both) == list(range(200))
    frame = from_dataframe(df).map(lambda t: {"n": t[0]}).to_dataframe(schema="n int")
    assert "ReadSchema: struct<number:int>" in frame._sc._jvm.PythonSQLUtils.explainString(
        frame._jdf.queryExecution(), "formatted"
    )
