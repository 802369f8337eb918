"""Rows that a filter certainly drops are not read, and nothing else changes."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from flow_cli.explain import explain
from flow_core import Flow
from flow_core.stages import Stage
from flow_core.structure import source_of, stages_of
from flow_spark import from_dataframe
from flow_spark.narrowing.conditions import Kind, kinds_of
from flow_spark.narrowing.decisions import Field
from flow_spark.narrowing.fields_read import Record
from flow_spark.narrowing.rows_kept import Kept, rows_kept

from .random_predicates import DDL, SCOPE, Edge, Predicates, edges

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

RECORD = Record(frozenset(Edge._fields), Edge._fields)
KINDS: dict[str, Kind] = {
    **dict.fromkeys(("a", "b", "tiny"), "int"),
    **dict.fromkeys(("f", "g", "single"), "float"),
    **dict.fromkeys(("s", "u"), "str"),
    "flag": "bool",
}
LIMIT = 5
NAMES = {"x", "y"}


def kept(*predicates: Callable[[Any], object], item: Record | Field = RECORD) -> Kept:
    made: Any = filtered(*predicates)
    return rows_kept(stages_of(made), item, KINDS)


def filtered(*predicates: Callable[[Any], object]) -> Flow[Any]:
    import flow_core as flow

    made: Flow[Any] = flow.just(0)
    for predicate in predicates:
        made = made.filter(predicate)
    return made


def unknown(value: object) -> object:
    return value


def in_two_steps(t: Edge) -> bool:
    half = t.f / 2
    if half > 1:
        return t.a is None
    return False


def by_a_global(t: Edge) -> bool:
    return bool(t.a > LIMIT)


CONDITIONS: list[tuple[Callable[[Any], object], str]] = [
    (lambda t: t.a > 2, "`a` > 2 OR `a` IS NULL"),
    (lambda t: 2 < t.a, "`a` > 2 OR `a` IS NULL"),  # noqa: SIM300  # as users write
    (lambda t: t[0] == 2, "`a` = 2"),
    (lambda t: t.a != 2, "`a` != 2 OR `a` IS NULL"),
    (lambda t: t.a == t.b, "`a` <=> `b`"),
    (lambda t: t.a is None, "`a` IS NULL"),
    (lambda t: t.a is not None, "`a` IS NOT NULL"),
    (lambda t: t.flag, "`flag`"),
    (lambda t: not t.flag, "NOT `flag` OR `flag` IS NULL"),
    (lambda t: bool(t.s), "`s` != ''"),
    (lambda t: t.a > LIMIT, "`a` > 5 OR `a` IS NULL"),
    (lambda t, limit=7: t.a > limit, "`a` > 7 OR `a` IS NULL"),
    (lambda t: t.s in NAMES, "`s` IN ('x', 'y')"),
    (lambda t: t.s not in ("x", "y"), "NOT `s` IN ('x', 'y') OR `s` IS NULL"),
    (lambda t: t.s.startswith("x"), "startswith(`s`, 'x') OR `s` IS NULL"),
    (lambda t: "x" in t.s, "contains(`s`, 'x') OR `s` IS NULL"),
    (lambda t: t.s == "it's", "`s` = CAST(X'69742773' AS STRING)"),
    (lambda t: len(t.s) > 3, "char_length(`s`) > 3 OR char_length(`s`) IS NULL"),
    (lambda t: t.f > 2, "`f` > 2.0D OR `f` IS NULL"),
    (lambda t: t.a > 2.5, "`a` > 2 OR `a` IS NULL"),
    (lambda t: t.a >= 2.5, "`a` >= 3 OR `a` IS NULL"),
    (lambda t: not t.f > 2, "`f` <= 2.0D OR isnan(`f`) OR `f` IS NULL"),
    (lambda t: t.a % 10 == 3, "pmod(CAST(`a` AS BIGINT), 10L) = 3"),
    (lambda t: t.a > 2 and t.s == "x", "(`a` > 2 OR `a` IS NULL) AND (`a` IS NULL OR `s` = 'x')"),
    (lambda t: t.a == 2 or t.s == "x", "`a` = 2 OR `s` = 'x'"),
    (lambda t: t.a == 2 and unknown(t.b), "`a` = 2"),
    (lambda t: t.s == "x" if t.flag else t.a == 2, "(NOT `flag` OR `flag` IS NULL OR `s` = 'x')"),
    (in_two_steps, "(`f` / 2.0D)"),
]


@pytest.mark.parametrize("case", range(len(CONDITIONS)))
def test_a_condition_says_where_a_filter_may_keep_a_row_or_fail(case: int) -> None:
    predicate, condition = CONDITIONS[case]
    where = kept(predicate).where
    if case in (22, 26, 27):
        assert where is not None
        assert condition in where.replace("try_divide(CAST(`f` AS DOUBLE), ", "(`f` / ").replace(
            "CAST(2 AS DOUBLE)", "2.0D"
        )
    else:
        assert where == condition


UNKNOWN: list[tuple[Callable[[Any], object], str]] = [
    (lambda t: unknown(t.a), "it uses the function unknown in line"),
    (lambda t: unknown(t.a) and t.b == 2, "it uses the function unknown in line"),
    (lambda t: t.s.upper() == "X", "it takes .upper of a value in line"),
    (lambda t: t.a // 2 == 1, "it does more than compare: // in line"),
    (lambda t: any(t.a == n for n in (1, 2)), ""),
    (lambda t: t.a > 2**63, "it uses 9223372036854775808"),
    (lambda t: t.f != t.f + 2**53 + 1, ""),
    (lambda t: t.s > 1, "it compares str with int"),
    (lambda t: t.flag > 0, "it compares bool with int"),
    (lambda t: t.many, "it takes .many of a value"),
    (by_a_global, "it uses LIMIT, which may have another value where tasks run"),
    (print, "it is not a plain function, but a builtin_function_or_method"),
    (operator.attrgetter("a"), "it is not a plain function"),
]


@pytest.mark.parametrize("case", range(len(UNKNOWN)))
def test_all_rows_are_read_where_it_is_not_known_what_a_filter_does(case: int) -> None:
    predicate, why = UNKNOWN[case]
    found = kept(predicate)
    if found.where is None:
        assert found.why_all is not None
        assert why in found.why_all
    else:
        assert why == ""


def test_a_second_filter_counts_where_the_first_does_not_fail() -> None:
    found = kept(lambda t: t.a == 2, lambda t: t.s == "x")
    assert found.where == "`a` = 2 AND `s` = 'x'"
    found = kept(lambda t: t.a > 2, lambda t: t.s == "x")
    assert found.where == "(`a` > 2 OR `a` IS NULL) AND (`a` IS NULL OR `s` = 'x')"
    assert kept(unknown, lambda t: t.s == "x").where is None


def test_a_filter_behind_a_stage_that_does_something_leaves_all_rows() -> None:
    made = filtered().do_on_next(print).filter(lambda t: t.a == 2)
    assert rows_kept(stages_of(made), RECORD, KINDS) == (None, None)
    made = filtered().map(lambda t: t).filter(lambda t: t.a == 2)
    assert rows_kept(stages_of(made), RECORD, KINDS) == (None, None)
    made = filtered().name("rows").checkpoint("here").filter(lambda t: t.a == 2)
    assert rows_kept(stages_of(made), RECORD, KINDS).where == "`a` = 2"


def test_the_value_of_an_only_column_is_compared_as_well() -> None:
    assert kept(lambda n: n > 2, item=Field("a")).where == "`a` > 2 OR `a` IS NULL"
    assert kept(lambda n: n is None or n == 3, item=Field("a")).where == "`a` IS NULL OR `a` = 3"


def test_a_predicate_of_many_paths_or_long_expressions_is_left_alone() -> None:
    many = " and ".join(f"(t.a == {n} or t.b == {n})" for n in range(9))
    found = kept(eval(f"lambda t: {many}"))
    assert found.where is None or len(found.where) <= 4096
    long = " + ".join(["t.a"] * 40)
    assert kept(eval(f"lambda t: {long} > 3")).where is None
    doubled = "\n".join(["    d = d + d"] * 40)
    scope: dict[str, Any] = {}
    exec(f"def f(t):\n    d = t.a\n{doubled}\n    return d > 3", scope)
    assert kept(scope["f"]).where is None


def test_a_stage_of_another_package_with_such_a_text_counts() -> None:
    from flow_core.stages import Template

    reject = Template("reject", params=("p",), on_item="if not p(x):\n    EMIT")
    keep = Template("keep", params=("p",), on_item="if p(x):\n    EMIT")

    def is_two(t: Any) -> bool:
        return bool(t.a == 2)

    assert rows_kept([Stage(reject, is_two)], RECORD, KINDS).where is None
    assert rows_kept([Stage(keep, is_two)], RECORD, KINDS).where == "`a` = 2"


# -- on Spark


def outcome(predicate: Callable[[Edge], object], row: Edge) -> bool:
    """Return whether the predicate keeps the row or fails."""
    try:
        return bool(predicate(row))
    except Exception:
        return True


def compiled(text: str) -> Callable[[Edge], object]:
    scope: dict[str, Any] = dict(SCOPE)
    if text.startswith("lambda"):
        made: Callable[[Edge], object] = eval(text, scope)
        return made
    exec(text, scope)
    found: Callable[[Edge], object] = scope["f"]
    return found


def check_random_filters(spark: SparkSession, folder: Path, seed: int, count: int) -> None:
    chance = random.Random(seed)
    rows = edges(150, chance)
    given = spark.createDataFrame([(n, *row) for n, row in enumerate(rows)], f"n int, {DDL}")
    given.coalesce(1).write.parquet(str(folder / "rows"))
    df = spark.read.parquet(str(folder / "rows"))
    kinds = kinds_of(df.schema, RECORD.by_name)
    made = Predicates(chance)
    found: list[tuple[str, Callable[[Edge], object], str]] = []
    for _ in range(count):
        text = made.text()
        predicate = compiled(text)
        where = rows_kept(stages_of(filtered(predicate)), RECORD, kinds).where
        if where is not None:
            found.append((text, predicate, where))
    assert len(found) > count / 2, "too few predicates for a test"
    dropped = 0
    for start in range(0, len(found), 50):
        part = found[start : start + 50]
        conditions = [f"coalesce({where}, false) as c{n}" for n, (*_, where) in enumerate(part)]
        for number, *keeps in df.selectExpr("n", *conditions).collect():
            for (text, predicate, where), keep in zip(part, keeps, strict=True):
                assert keep or not outcome(predicate, rows[number]), (text, where, rows[number])
                dropped += not keep
    assert dropped > 10 * count, "too few rows for a test"
    for text, predicate, where in found[:5]:  # pushed down to the file
        left = {row.n for row in df.where(where).select("n").collect()}
        needed = {n for n, row in enumerate(rows) if outcome(predicate, row)}
        assert needed <= left, (text, where)


@pytest.mark.essential
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(100, 108))
def test_no_row_is_left_out_that_one_of_a_few_random_filters_keeps(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    check_random_filters(spark, tmp_path, seed, 40)


@pytest.mark.many
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(84))
def test_no_row_is_left_out_that_one_of_many_random_filters_keeps(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    check_random_filters(spark, tmp_path, seed, 120)


@pytest.fixture(scope="module")
def df(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    rows = spark.range(200).selectExpr(
        "cast(id as int) as number",
        "if(id % 7 = 0, null, concat('t', id)) as text",
        "id / 2 as half",
    )
    rows.write.parquet(str(path))
    return spark.read.parquet(str(path))


def plan_of(made: Flow[Any]) -> str:
    source: Any = source_of(made)
    return str(source.plan(stages_of(made)))


CASES: list[Callable[[Flow[Any]], Flow[Any]]] = [
    lambda rows: rows.filter(lambda t: t[0] > 150).map(lambda t: t[2]),
    lambda rows: rows.filter(lambda t: t[1] is None).count(),
    lambda rows: rows.filter(lambda t: t[1] in ("t3", "t5")),
    lambda rows: rows.filter(lambda t: t[0] > 5).filter(lambda t: t[2] < 50).take(3).count(),
    lambda rows: rows.filter(lambda t: t[0] % 3 == 0).reduce_by_key(
        lambda t: t[0] % 5, lambda a, b: a + b, lambda t: t[2]
    ),
    lambda rows: rows.filter(lambda t: t[0] < 0),
]


@pytest.mark.spark
@pytest.mark.parametrize("case", range(len(CASES)))
def test_a_flow_of_fewer_rows_gives_the_same(df: DataFrame, case: int) -> None:
    change = CASES[case]
    narrow, wide = from_dataframe(df), from_dataframe(df, narrow=False)
    assert sorted(map(repr, change(narrow))) == sorted(map(repr, change(wide)))


@pytest.mark.spark
def test_the_file_is_asked_for_the_rows_that_a_filter_may_keep(df: DataFrame) -> None:
    made = from_dataframe(df).filter(lambda t: t[0] > 150).map(lambda t: t[0])
    assert "PushedFilters: [Or(GreaterThan(number,150),IsNull(number))]" in plan_of(made)
    text = str(explain(made))
    assert "1 of 3 columns, where `number` > 150 OR `number` IS NULL)" in text
    assert "it reads all rows" not in text
    all_rows = from_dataframe(df, narrow=False).filter(lambda t: t[0] > 150)
    assert "PushedFilters: []" in plan_of(all_rows)


@pytest.mark.spark
def test_an_explained_flow_says_why_all_rows_are_read(df: DataFrame) -> None:
    text = str(explain(from_dataframe(df).filter(lambda t: unknown(t[0]))))
    assert "; it reads all rows, since filter(" in text
    assert "it uses the function unknown in line" in text
    assert "it reads all rows" not in str(explain(from_dataframe(df).map(lambda t: t[0])))


@pytest.mark.spark
def test_rows_in_an_order_stay_in_it(df: DataFrame) -> None:
    rows = from_dataframe(df.sort("number", ascending=False), ordered=True)
    made = rows.filter(lambda t: t[0] % 50 == 0).map(lambda t: t[0])
    assert list(made) == [150, 100, 50, 0]
    assert "1 of 3 columns, where " in str(explain(made))


@pytest.mark.spark
def test_a_row_for_which_the_filter_fails_is_read(df: DataFrame) -> None:
    made = from_dataframe(df).filter(lambda t: len(t[1]) > 3).map(lambda t: t[1])
    with pytest.raises(TypeError, match="NoneType"):
        list(made)


@pytest.mark.spark
def test_columns_whose_names_differ_in_case_only_are_all_read(spark: SparkSession) -> None:
    df = spark.range(3).selectExpr("id as n", "id * 2 as N")
    made = from_dataframe(df).filter(lambda t: t[1] > 2).map(lambda t: t[1])
    assert sorted(made) == [4]


@pytest.mark.spark
def test_texts_of_another_collation_are_not_compared_by_spark(spark: SparkSession) -> None:
    df = spark.createDataFrame([("a",), ("A",)], "s string collate UTF8_LCASE")
    assert list(from_dataframe(df).filter(lambda s: s == "a")) == ["a"]
