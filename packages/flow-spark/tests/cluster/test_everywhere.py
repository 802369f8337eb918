"""The same flows on every mode of Spark, with the results that they have here."""

from __future__ import annotations

import functools
import itertools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import Row

import flow_core as flow
from flow_core.flow import Flow
from flow_core.stages import TAKE, Stage, Translation
from flow_core.structure import stages_of
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
from flow_spark.jobs import lowering
from flow_spark.jobs.lowering import Split, split
from flow_spark.jobs.translations import translated
from flow_testing import STAGE_CASES, StageCase

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


def test_a_job_beside_a_flow_that_is_not_read_gets_a_slot(place: Place) -> None:
    items = iter(from_dataframe(place.spark.range(0, 400_000, 1, 4)).hide())
    first = next(items)

    assert place.spark.range(10).count() == 10
    assert sorted([first, *items]) == [*range(400_000)]


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
def test_an_object_that_cannot_be_sent_is_named(place: Place) -> None:
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
def test_an_ordered_flow_that_ends_as_a_dataframe_has_its_end_once(place: Place) -> None:
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

    if place.name.startswith("local") or place.name == "connect":  # they see the files of here
        assert many.count().single() == 100_000
        kept = union(many, many.map(lambda n: -n)).pipe(to_dataframe(schema="n bigint"))
        assert (kept.count(), kept.where("n >= 0").count()) == (200_000, 100_001)
        return
    with pytest.raises(SpoolError, match=r"no place.*on_spark\(session, spool=.*--spool"):
        many.count().single()


# --- Random pipelines -----------------------------------------------------------------------------


def comparable(item: Any) -> str:
    """The same for lists and tuples with the same items."""
    return repr(sorted(item, key=repr) if isinstance(item, (list, tuple, set)) else item)


def multiset(items: list[Any]) -> Counter[str]:
    return Counter(map(comparable, items))


def order_is_no_matter(case: StageCase) -> bool:
    """Return whether it visibly gives the same for the same items in another order."""
    rng = random.Random(case.name)
    # The last one is longer than what any of them takes or skips.
    for size in (*(rng.randint(0, 12) for _ in range(40)), 1100):
        items = [rng.randint(-3, 12) for _ in range(size)]
        expected = multiset(case.model(items))
        if any(multiset(case.model(rng.sample(items, size))) != expected for _ in range(4)):
            return False
    return True


def parts(case: StageCase) -> Split | None:
    """The place where it runs if items have no order; None if it is refused then."""
    try:
        return split(stages_of(case.apply(flow.range(0))), ordered=False, ways_out="")
    except OrderedOperatorError:
        return None


UNORDERED = [case for case in STAGE_CASES if order_is_no_matter(case)]
# What runs in each partition and leaves something for the others.
ALONE = [
    case
    for case in UNORDERED
    if (found := parts(case)) and not found.local and case.model(list(range(20)))
]
COMBINED = [case for case in UNORDERED if (found := parts(case)) and found.combine]

EXAMPLES = 60
PARTITIONS = 3
FEWEST, MOST = 30, 200
AT_LEAST_RUN = 0.7
AT_LEAST_COMBINED = 0.4


def any_of(
    cases: Sequence[StageCase], min_size: int, max_size: int
) -> st.SearchStrategy[list[StageCase]]:
    return st.lists(st.sampled_from(cases), min_size=min_size, max_size=max_size)


def chained(*chosen: list[StageCase]) -> StageCase:
    return functools.reduce(StageCase.then, itertools.chain(*chosen))


ordered_pipelines = st.builds(chained, any_of(STAGE_CASES, 1, 6))
# Every other one has a stage that is combined of what the partitions gave.
unordered_pipelines = st.builds(
    chained,
    any_of(ALONE, 0, 2),
    st.one_of(any_of(COMBINED, 1, 1), any_of(UNORDERED, 1, 1)),
    any_of(UNORDERED, 0, 3),
)
# Derandomized: every mode gets the same ones.
drawn = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)


@dataclass
class Tried:
    """The pipelines that one mode was given, and what has become of them."""

    names: list[str] = field(default_factory=list)
    refused: int = 0
    combined: int = 0

    def __str__(self) -> str:
        return f"{len(self.names)} drawn, {self.refused} refused, {self.combined} combined"

    def are_enough(self) -> None:
        """Enough are neither refused nor run in one place only, and are left to compare."""
        run = len(self.names) - self.refused
        assert run >= AT_LEAST_RUN * len(self.names), self
        assert self.combined >= AT_LEAST_COMBINED * len(self.names), self

    def are_those_of_other_modes(self, kind: str) -> None:
        assert self.names == DRAWN.setdefault(kind, self.names)


DRAWN: dict[str, list[str]] = {}


def numbers(count: int, modulus: int) -> Callable[[Flow[int]], Flow[int]]:
    """Makes of a range what pipelines read: few numbers again and again, or many once."""
    assert count >= FEWEST
    return lambda ints: ints.map(lambda n: n * 7 % modulus - 3)


def placed(place: Place, count: int) -> Flow[int]:
    return flow.range(count).pipe(on_spark(place.spark, partitions=PARTITIONS))


def compare_unordered(place: Place, tried: Tried, only: settings = drawn) -> None:
    """Give the drawn pipelines to Spark and to this process."""

    @only
    @given(
        case=unordered_pipelines,
        count=st.integers(FEWEST, MOST),
        modulus=st.sampled_from([5, 31, 1009]),
    )
    def agree(case: StageCase, count: int, modulus: int) -> None:
        tried.names.append(f"{case.name} of {count}, {modulus}")
        made = numbers(count, modulus)
        found = parts(case)
        try:
            there = list(case.apply(made(placed(place, count))))
        except OrderedOperatorError:
            # It may stand before a take(0), which leaves nothing of it.
            assert found is None or not (found.remote or found.local)
            tried.refused += 1
            return
        assert found is not None, "it is to be refused"
        tried.combined += found.combine > 0
        assert multiset(there) == multiset(list(case.apply(made(flow.range(count)))))

    agree()


def test_there_are_stages_that_do_not_depend_on_the_order() -> None:
    assert len(ALONE) > 5
    assert len(COMBINED) > 10
    assert len(UNORDERED) > len(ALONE) + len(COMBINED)


@pytest.mark.cluster
@pytest.mark.parametrize("count", [FEWEST, MOST])
def test_the_items_that_random_pipelines_read_are_spread_over_all_partitions(
    place: Place, count: int
) -> None:
    def partition_of(_: int) -> int:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        return context.partitionId()

    found = Counter(numbers(count, 5)(placed(place, count)).map(partition_of))

    assert set(found) == set(range(PARTITIONS))
    assert min(found.values()) >= FEWEST // PARTITIONS


@pytest.mark.cluster
@pytest.mark.timeout(900)
def test_random_pipelines_give_the_same_multiset(place: Place) -> None:
    tried = Tried()

    compare_unordered(place, tried)

    print(f"{place.name}: {tried}")
    tried.are_enough()
    tried.are_those_of_other_modes("unordered")


@pytest.mark.cluster
@pytest.mark.timeout(900)
def test_random_pipelines_find_what_combines_only_one_partition(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A defect is put into every translation: what a second partition gave is left out."""

    def of_one_partition(stage: Stage[Any, Any]) -> Translation | None:
        found = translated(stage)
        if found is None or not found.combine:
            return found
        return Translation(found.partial, (Stage(TAKE, 1), *found.combine))

    monkeypatch.setattr(lowering, "translated", of_one_partition)
    first_only = settings(drawn, phases=[Phase.generate], report_multiple_bugs=False)
    tried = Tried()

    with pytest.raises(AssertionError, match="Counter"):
        compare_unordered(place, tried, first_only)

    assert tried.combined


@pytest.mark.cluster
@pytest.mark.timeout(900)
def test_random_pipelines_give_the_same_list_when_it_is_ordered(place: Place) -> None:
    tried = Tried()

    @drawn
    @given(case=ordered_pipelines, items=st.lists(st.integers(-3, 12), max_size=20))
    def agree(case: StageCase, items: list[int]) -> None:
        tried.names.append(f"{case.name} of {items}")
        there = flow.from_iterable(items).pipe(on_spark(place.spark, partitions=1))
        assert list(case.apply(there)) == list(case.apply(flow.from_iterable(items)))

    agree()

    tried.are_those_of_other_modes("ordered")
