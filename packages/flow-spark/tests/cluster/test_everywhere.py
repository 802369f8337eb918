"""The same flows on every mode of Spark, with the results that they have here."""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import Row

import flow_core as flow
from flow_core.flow import Flow
from flow_core.testing import STAGE_CASES, StageCase
from flow_spark import (
    NotPicklableError,
    OrderedOperatorError,
    SpoolError,
    _spool,
    from_dataframe,
    on_spark,
    to_dataframe,
    union,
)
from flow_spark.errors import RemoteTracebackError

from ..infrastructure.places import Place
from ..tried import FLOWS, Half, Pair, halved, in_any_order

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The first test of a mode waits for its servers and its session.
pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.mark.cluster
@pytest.mark.parametrize("name", FLOWS)
def test_a_range_gives_the_same_as_here(place: Place, name: str) -> None:
    build = FLOWS[name]

    there = build(flow.range(100).pipe(on_spark(place.spark, partitions=3)))

    assert in_any_order(there) == in_any_order(build(flow.range(100)))


def test_items_of_this_process_are_sent_and_come_back_as_themselves(place: Place) -> None:
    items = [Half(1, 0.5), Pair(2, "b"), {"c": [3]}, "four", 5.0]

    there = flow.from_iterable(items).hide().pipe(on_spark(place.spark)).map(lambda item: [item])

    found = list(there)
    assert sorted(found, key=repr) == sorted(([item] for item in items), key=repr)
    assert {type(item) for (item,) in found} == {type(item) for item in items}


def test_one_partition_keeps_the_order(place: Place) -> None:
    there = flow.from_iterable(range(5000)).pipe(on_spark(place.spark, partitions=1))

    assert list(there.map(lambda n: n + 1).pairwise().skip(4997)) == [(4998, 4999), (4999, 5000)]


@pytest.mark.cluster
def test_rows_of_a_dataframe_are_what_was_asked_for(place: Place) -> None:
    df = place.spark.range(3).selectExpr("id as number", "cast(id / 2 as double) as half")

    halves = [Half(0, 0.0), Half(1, 0.5), Half(2, 1.0)]
    assert sorted(from_dataframe(df, as_=Half), key=lambda h: h.number) == halves
    assert sorted(from_dataframe(df).map(lambda row: row[1])) == [0.0, 0.5, 1.0]
    assert sorted(from_dataframe(df, as_=Row).map(lambda row: row.number)) == [0, 1, 2]
    assert sorted(from_dataframe(df.select("number"))) == [0, 1, 2]


@pytest.mark.cluster
def test_many_rows_arrive_once(place: Place) -> None:
    rows = 200_000

    found = list(from_dataframe(place.spark.range(0, rows, 1, 5)).map(lambda n: n))

    assert len(found) == rows
    assert set(found) == set(range(rows))


def test_a_flow_ends_as_a_dataframe_that_stays_lazy(place: Place) -> None:
    there = flow.range(10).pipe(on_spark(place.spark, partitions=2))

    df = there.filter(lambda n: n % 2).map(halved).pipe(to_dataframe())

    assert df.columns == ["number", "half"]
    assert df.orderBy("number").first() == Row(number=1, half=0.5)
    assert df.where("half > 2").count() == 3


@pytest.mark.cluster
def test_a_flow_of_this_process_ends_as_a_dataframe(place: Place) -> None:
    df = flow.range(3).map(halved).pipe(to_dataframe(place.spark))

    assert [tuple(row) for row in df.collect()] == [(0, 0.0), (1, 0.5), (2, 1.0)]


def test_an_error_arrives_as_itself_with_the_place_where_it_was_raised(place: Place) -> None:
    class OwnError(Exception):
        pass

    def fail(n: int) -> int:
        raise OwnError(n)

    with pytest.raises(OwnError) as caught:
        list(flow.range(3).pipe(on_spark(place.spark, partitions=1)).map(fail))

    assert caught.value.args == (0,)
    assert isinstance(caught.value.__cause__, RemoteTracebackError)
    assert "in fail" in caught.value.__cause__.text


@pytest.mark.cluster
def test_what_cannot_be_sent_is_named(place: Place) -> None:
    import threading

    lock = threading.Lock()

    with pytest.raises(NotPicklableError, match="captures the variable 'lock'"):
        list(flow.range(3).pipe(on_spark(place.spark)).map(lambda n: (lock, n)))


@pytest.mark.cluster
def test_an_item_that_does_not_fit_the_columns_is_named_with_its_field(place: Place) -> None:
    there = flow.range(3).pipe(on_spark(place.spark, partitions=1))
    df = there.map(lambda n: (n, "x" if n == 2 else n)).pipe(to_dataframe(schema="a long, b long"))

    with pytest.raises(Exception, match=r"SchemaMismatchError: item 2, \(2, 'x'\): field 'b'"):
        df.collect()


NOTHING: dict[str, Callable[[SparkSession], Flow[Any]]] = {
    "an empty range": lambda spark: flow.range(0).pipe(on_spark(spark)),
    "an empty range, ordered": lambda spark: flow.range(0).pipe(on_spark(spark, partitions=1)),
    "no items": lambda spark: flow.from_iterable(()).pipe(on_spark(spark)),
    "no items, ordered": lambda spark: flow.from_iterable(()).pipe(on_spark(spark, partitions=1)),
    "no rows": lambda spark: from_dataframe(spark.createDataFrame([], "n bigint")),
    "no rows, ordered": lambda spark: from_dataframe(
        spark.createDataFrame([], "n bigint"), ordered=True
    ),
}


@pytest.mark.cluster
@pytest.mark.parametrize("what", NOTHING)
def test_nothing_is_counted_too(place: Place, what: str) -> None:
    """Spark makes no task of no rows."""
    nothing = NOTHING[what](place.spark)

    assert list(nothing.map(str)) == []
    assert list(nothing.map(str).count()) == [0]
    assert list(nothing.default_if_empty(7)) == [7]


# What gives an item though none came, what gives none, and what raises.
ENDS: dict[str, tuple[Callable[[Flow[Any]], Flow[Any]], list[int] | None]] = {
    "count": (lambda f: f.count(), [0]),
    "default": (lambda f: f.default_if_empty(7).map(lambda n: n + 1), [8]),
    "start and end": (lambda f: f.start_with(1).end_with(2), [1, 2]),
    "sort": (lambda f: f.sort(), []),
    "map": (lambda f: f.map(lambda n: n + 1), []),
    "average": (lambda f: f.average(), None),
}


@pytest.mark.cluster
@pytest.mark.parametrize("what", NOTHING)
def test_nothing_is_counted_on_the_cluster(place: Place, what: str) -> None:
    in_full = what == "an empty range, ordered"
    for build, expected in ENDS.values() if in_full else [ENDS["count"]]:
        df = build(NOTHING[what](place.spark)).pipe(to_dataframe(schema="n bigint"))
        if expected is None:
            with pytest.raises(Exception, match="average"):
                df.collect()
        else:
            assert [row.n for row in df.collect()] == expected


@pytest.mark.cluster
def test_what_is_in_order_and_ends_as_a_dataframe_has_its_end_once(place: Place) -> None:
    def there(count: int) -> Flow[int]:
        return flow.range(count).pipe(on_spark(place.spark, partitions=1))

    some = there(5000).default_if_empty(7).end_with(-1).pipe(to_dataframe(schema="n bigint"))
    none = there(5).filter(lambda n: False).default_if_empty(7).filter(lambda n: n != 7)
    counted = union(there(0).count(), there(3).count(), from_dataframe(place.spark.range(0)))

    assert [row.n for row in some.collect()] == [*range(5000), -1]
    assert none.pipe(to_dataframe(schema="n bigint")).collect() == []
    assert sorted(counted) == [0, 3]


@pytest.mark.cluster
def test_more_items_than_can_be_sent_go_through_files_or_are_refused(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_spool, "IN_MEMORY_BYTES", 10_000)
    many = flow.from_iterable(range(100_000)).hide().pipe(on_spark(place.spark)).map(abs)

    if place.name.startswith("local"):  # the executors see the files of this process
        assert many.count().single() == 100_000
        kept = union(many, many.map(lambda n: -n)).pipe(to_dataframe(schema="n bigint"))
        assert (kept.count(), kept.where("n >= 0").count()) == (200_000, 100_001)
        return
    with pytest.raises(SpoolError, match=r"no place.*from_dataframe\(flow\.pipe\(to_dataframe"):
        many.count().single()


# --- Random pipelines -----------------------------------------------------------------------------


def comparable(item: Any) -> str:
    """The same for lists and tuples with the same items."""
    return repr(sorted(item, key=repr) if isinstance(item, (list, tuple, set)) else item)


def multiset(items: list[Any]) -> Counter[str]:
    return Counter(map(comparable, items))


def order_is_no_matter(case: StageCase) -> bool:
    """Whether it makes the same of the same items in another order, as far as can be seen."""
    rng = random.Random(case.name)
    for _ in range(40):
        items = [rng.randint(-3, 12) for _ in range(rng.randint(0, 12))]
        expected = multiset(case.model(items))
        if any(multiset(case.model(rng.sample(items, len(items)))) != expected for _ in range(4)):
            return False
    return True


UNORDERED = [case for case in STAGE_CASES if order_is_no_matter(case)]


def pipelines(cases: list[StageCase]) -> st.SearchStrategy[StageCase]:
    return st.lists(st.sampled_from(cases), max_size=6).map(
        lambda chosen: functools.reduce(
            StageCase.then, chosen, StageCase("|", lambda f: f, lambda items: items)
        )
    )


inputs = st.lists(st.integers(-3, 12), max_size=20)
some = settings(
    max_examples=10,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
many = settings(some, max_examples=60, derandomize=False)


def ordered_agrees(place: Place, case: StageCase, items: list[int]) -> None:
    there = flow.from_iterable(items).pipe(on_spark(place.spark, partitions=1))

    assert list(case.apply(there)) == list(case.apply(flow.from_iterable(items)))


def unordered_agrees(place: Place, case: StageCase, items: list[int]) -> None:
    there = flow.from_iterable(items).pipe(on_spark(place.spark, partitions=3))
    try:
        found = list(case.apply(there))
    except OrderedOperatorError:
        return  # refused, and so not wrong
    assert multiset(found) == multiset(list(case.apply(flow.from_iterable(items))))


def test_there_are_stages_for_which_the_order_is_no_matter() -> None:
    assert len(UNORDERED) > 20


@pytest.mark.cluster
@some
@given(case=pipelines(list(STAGE_CASES)), items=inputs)
def test_some_random_pipelines_give_the_same_list(
    place: Place, case: StageCase, items: list[int]
) -> None:
    ordered_agrees(place, case, items)


@pytest.mark.cluster
@some
@given(case=pipelines(UNORDERED), items=inputs)
def test_some_random_pipelines_give_the_same_multiset(
    place: Place, case: StageCase, items: list[int]
) -> None:
    unordered_agrees(place, case, items)


@pytest.mark.cluster
@pytest.mark.timeout(900)
@many
@given(case=pipelines(list(STAGE_CASES)), items=inputs)
def test_many_random_pipelines_give_the_same_list(
    place: Place, case: StageCase, items: list[int]
) -> None:
    ordered_agrees(place, case, items)


@pytest.mark.cluster
@pytest.mark.timeout(900)
@many
@given(case=pipelines(UNORDERED), items=inputs)
def test_many_random_pipelines_give_the_same_multiset(
    place: Place, case: StageCase, items: list[int]
) -> None:
    unordered_agrees(place, case, items)
