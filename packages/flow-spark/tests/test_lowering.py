"""Which stages run in each partition, and which in one place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import flow_core as flow
from flow_core.stages import Program, Stage, Template
from flow_core.testing import STAGE_CASES, StageCase
from flow_spark.errors import OrderedOperatorError
from flow_spark.jobs.lowering import Split, split

F = flow.range(10)


def parts(flow_: flow.Flow[Any], *, ordered: bool = False) -> Split:
    return split(flow_.stages, ordered=ordered, ways_out="ask the oracle")


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
        (F.map(str).collect(set, set.add), "map", "collect"),
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
    if case.apply(source).source is not source.source:
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
        F.buffer_with_count(2),
        F.map(str).filter(bool).pairwise(),
        F.take(3).pairwise(),
        F.distinct().skip(1),
        F.do_on_next(print).skip(1),
    ],
    ids=repr,
)
def test_what_depends_on_an_order_is_refused_with_ways_out(made: flow.Flow[Any]) -> None:
    with pytest.raises(OrderedOperatorError) as caught:
        parts(made)

    text = str(caught.value)
    assert text.startswith(made.stages[-1].name)
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

    assert found == Split(made.stages, ())


def test_effects_stay_in_this_process_even_on_a_declared_order() -> None:
    found = parts(F.map(str).do_on_next(print).skip(1), ordered=True)

    assert (names(found.remote), names(found.local)) == ("map", "do_on_next skip")


def test_one_item_is_in_order() -> None:
    """Behind an aggregate there is nothing to be put in order."""
    found = parts(F.to_list().map(sorted).pairwise())

    assert names(found.local) == "to_list map pairwise"


def test_a_foreign_stage_with_a_memory_stays_in_this_process() -> None:
    every = Template("every_other", state="i = 0", on_item="i += 1\nif i % 2:\n    EMIT")

    found = parts(F.map(str).then(Stage(every)).map(int))

    assert (names(found.remote), names(found.local)) == ("map", "every_other map")


def test_a_foreign_stage_without_a_memory_runs_where_the_rows_are() -> None:
    negate = Template("negate", on_item="x = -x\nEMIT")

    found = parts(F.then(Stage(negate)).map(str))

    assert (names(found.remote), names(found.local)) == ("negate map", "")
