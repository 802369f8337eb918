"""The stages that run in each partition, and those that run in one place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import flow_core as flow
from flow_core.errors import NoItemError
from flow_core.stages import Program, Stage, Template
from flow_core.structure import source_of, stages_of
from flow_spark.errors import OrderedOperatorError
from flow_spark.jobs.lowering import Split, split
from flow_testing import STAGE_CASES, StageCase

F = flow.range(10)


def parts(flow_: flow.Flow[Any], *, ordered: bool = False) -> Split:
    return split(stages_of(flow_), ordered=ordered, ways_out="ask the oracle")


def names(stages: tuple[Stage[Any, Any], ...]) -> str:
    return " ".join(stage.name for stage in stages)


@pytest.mark.parametrize(
    ("made", "remote", "local"),
    [
        (F.map(str), "map", ""),
        (F.map(str).filter(bool).flat_map_iterable(list), "map filter flat_map_iterable", ""),
        (F.take(3), "take", "take"),
        (F.take(3).map(str), "take", "take map"),
        (F.distinct().map(str), "distinct", "distinct map"),
        (F.distinct(str), "distinct", "distinct"),
        (F.map(str).count(), "map count", "reduce"),
        (F.map(str).reduce(max), "map reduce", "reduce"),
        (F.map(str).reduce(lambda a, b: a + b, ""), "map", "reduce"),
        (F.map(str).collect(set, set.add), "map distinct", "collect"),
        (F.map(str).collect(list, list.append), "map", "collect"),
        (F.collect(list, list.append, list.extend).map(len), "collect", "collect map"),
        (F.to_set(), "distinct", "to_set"),
        (F.to_dict(str), "reduce_by_key", "to_dict"),
        (F.to_dict(str, str).map(len), "reduce_by_key", "to_dict map"),
        (F.to_multidict(str), "", "to_multidict"),
        (F.average(), "average", "average"),
        (F.sum(), "sum", "sum"),
        (F.sum(5), "reduce", "sum"),
        (F.min(str).map(str), "min", "min map"),
        (F.max(str), "max", "max"),
        (F.is_empty(), "is_empty", "all"),
        (F.contains(3), "contains", "some"),
        (F.sort(), "sort", "sort"),
        (F.sort(str, reverse=True).take(3).map(str), "sort take", "sort take map"),
        (F.sort().map(str).take(3), "sort", "sort map take"),
        (F.reduce_by_key(str, max).map(len), "reduce_by_key", "reduce_by_key map"),
        (F.reduce_by_key(str, max, str), "reduce_by_key", "reduce_by_key"),
        (F.count_by_key(str), "count_by_key", "reduce_by_key"),
        (F.map(str).to_list(), "map", "to_list"),
        (F.map(str).do_on_next(print).map(int), "map", "do_on_next map"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_stages_go_where_they_keep_their_meaning(
    made: flow.Flow[Any], remote: str, local: str
) -> None:
    found = parts(made)

    assert names(found.remote) == remote
    assert names(found.local) == local


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("case", STAGE_CASES, ids=lambda case: case.name)
def test_every_stage_over_partitions_means_what_it_means_over_the_whole(
    case: StageCase, ordered: bool
) -> None:
    items = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]
    source = flow.from_iterable(items)
    if source_of(case.apply(source)) is not source_of(source):
        return  # take(0) is empty()
    try:
        found = parts(case.apply(flow.from_iterable(items)), ordered=ordered)
    except OrderedOperatorError:
        assert not ordered
        return
    remote: Program[int, Any] = Program(found.remote)
    local: Program[Any, Any] = Program(found.local)
    shares = [items] if ordered else [items[:5], [], items[5:]]

    def arriving() -> Iterator[Any]:
        for share in shares:
            yield from remote.iterate(iter(share))

    here = list(local.iterate(arriving()))
    if "take" in case.name and not ordered:  # any of them
        assert len(here) == len(case.model(items))
    else:
        assert sorted(map(repr, here)) == sorted(map(repr, case.model(items)))


def test_counting_partitions_and_adding_up_counts_the_whole() -> None:
    found = parts(F.count())

    (combine,) = found.local
    accumulator, seed = combine.args
    assert accumulator(accumulator(seed, 2), 3) == 5
    assert combine.assembled_at == found.remote[0].assembled_at


@pytest.mark.parametrize(
    "made",
    [
        F.scan(lambda a, b: a + b),
        F.skip(1),
        F.take_while(bool),
        F.skip_while(bool),
        F.pairwise(),
        F.distinct_until_changed(),
        F.buffer_with_count(2, 1),
        F.map(str).filter(bool).pairwise(),
        F.take(3).pairwise(),
        F.distinct().skip(1),
        F.do_on_next(print).skip(1),
        F.count_by_key(str).pairwise(),
        F.reduce_by_key(str, max).map(len).skip(1),
    ],
    ids=repr,
)
def test_a_stage_that_depends_on_an_order_is_refused_with_ways_out(made: flow.Flow[Any]) -> None:
    with pytest.raises(OrderedOperatorError) as caught:
        parts(made)

    text = str(caught.value)
    assert text.startswith(stages_of(made)[-1].name)
    assert "assembled at" in text
    assert "test_lowering.py:" in text
    assert "ask the oracle" in text
    assert "observe_on" in text


@pytest.mark.parametrize(
    "made",
    [
        F.scan(lambda a, b: a + b).skip(1).pairwise().to_list(),
        F.take(3).distinct().count().map(str),
    ],
    ids=repr,
)
def test_everything_runs_on_a_declared_order(made: flow.Flow[Any]) -> None:
    found = parts(made, ordered=True)

    assert found == Split(found.remote, ())
    assert [*map(repr, found.remote)] == [*map(repr, stages_of(made))]


def test_effects_stay_in_this_process_even_on_a_declared_order() -> None:
    found = parts(F.map(str).do_on_next(print).skip(1), ordered=True)

    assert (names(found.remote), names(found.local)) == ("map", "do_on_next skip")


def test_a_sorted_flow_is_in_order() -> None:
    found = parts(F.sort().pairwise())

    assert (names(found.remote), names(found.local)) == ("sort", "sort pairwise")


@pytest.mark.parametrize(
    ("made", "item", "key"),
    [
        (F.distinct(), 3, 3),
        (F.distinct(str), 3, "3"),
        (F.count_by_key(str), ("3", 1), "3"),
        (F.reduce_by_key(str, max), ("3", 9), "3"),
    ],
    ids=repr,
)
def test_items_with_the_same_key_may_meet_anywhere(
    made: flow.Flow[Any], item: object, key: object
) -> None:
    found = parts(made.map(str))

    assert found.by is not None
    assert found.by(item) == key
    assert found.combine == 1


@pytest.mark.parametrize(
    "made", [F.count(), F.take(2), F.sort(), F.map(str), F.to_list()], ids=repr
)
def test_there_is_not_always_a_key(made: flow.Flow[Any]) -> None:
    assert parts(made).by is None


@pytest.mark.parametrize(
    ("made", "waits"), [(F.count_by_key(str), True), (F.distinct(), False), (F.sort(), True)]
)
def test_some_partitions_have_nothing_to_give_before_their_end(
    made: flow.Flow[Any], waits: bool
) -> None:
    assert parts(made).waits is waits


def test_the_parts_of_a_stage_know_where_the_user_has_put_it() -> None:
    found = parts(F.average())

    (stage,), (partial,), (combine,) = stages_of(F.average()), found.remote, found.local
    assert stage.assembled_at is not None
    for part in (partial, combine):
        assert part.assembled_at is not None
        assert "test_lowering.py:" in part.assembled_at


def test_the_mean_of_nothing_fails_as_ever() -> None:
    found = parts(F.average())

    assert list(Program[Any, Any](found.remote).iterate(iter(()))) == []
    with pytest.raises(NoItemError, match="average"):
        list(Program[Any, Any](found.local).iterate(iter(())))


def test_one_item_is_in_order() -> None:
    """Behind an aggregate there is nothing to be put in order."""
    found = parts(F.to_list().map(sorted).pairwise())

    assert names(found.local) == "to_list map pairwise"


def test_a_foreign_stage_with_a_memory_stays_in_this_process() -> None:
    every = Template("every_other", state="i = 0", on_item="i += 1\nif i % 2:\n    EMIT")

    found = parts(F.map(str).pipe(Stage(every)).map(int))

    assert (names(found.remote), names(found.local)) == ("map", "every_other map")


def test_a_foreign_stage_without_a_memory_runs_where_the_rows_are() -> None:
    negate = Template("negate", on_item="x = -x\nEMIT")

    found = parts(F.pipe(Stage(negate)).map(str))

    assert (names(found.remote), names(found.local)) == ("negate map", "")
