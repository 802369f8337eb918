"""Results that are combined in the driver while they are few: two jobs over rows made once."""

from __future__ import annotations

import contextlib
import itertools
import pickle
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from typing_extensions import override

from flow_spark.jobs import unshuffled
from flow_spark.jobs.intake import Stop
from flow_spark.jobs.origin import Job, Opened
from flow_spark.jobs.unshuffled import DistinctFirst, FewFirst, Shared

ROWS: Any = Opened("a DataFrame", "a reader")  # type: ignore[arg-type]  # nobody reads them


@dataclass
class Made:
    """Makes rows, and notes when they are made and removed."""

    rows: Opened = ROWS
    log: list[str] = field(default_factory=list)

    @contextmanager
    def __call__(self, stop: Stop) -> Generator[Opened | None, None, None]:
        self.log.append("made")
        try:
            yield self.rows
        finally:
            self.log.append("removed")


@dataclass
class Given(Job):
    """A job that uses rows and gives batches."""

    open: Callable[[Stop], contextlib.AbstractContextManager[Opened | None]]
    batches: Iterable[list[Any]]
    stop: Stop = field(default_factory=Stop)
    received: int = 0

    @override
    def __iter__(self) -> Iterator[list[Any]]:
        with self.open(self.stop) as opened:
            if opened is None:
                return
            for batch in self.batches:
                if self.stop():
                    return
                self.received += len(pickle.dumps(batch))
                yield batch

    @override
    def cancel(self) -> None:
        self.stop.set()


def few_first(
    made: Made, first: Iterable[list[Any]], then: Iterable[list[Any]], most: int = 10
) -> FewFirst:
    rows = Shared(made)
    return FewFirst(
        Given(rows.small, first), Given(rows.opened, then), rows, lambda few: iter([sum(few)]), most
    )


def items_of(job: Job) -> list[Any]:
    return list(itertools.chain.from_iterable(job))


@pytest.fixture(autouse=True)
def all_are_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unshuffled, "size_of", lambda _: 1)


def test_few_results_are_combined_here() -> None:
    made = Made()

    assert items_of(few_first(made, [[1, 2], [3]], [["never"]])) == [6]
    assert made.log == ["made", "removed"]


def test_no_results_are_combined_too() -> None:
    assert items_of(few_first(Made(), [], [["never"]])) == [0]


def test_many_results_come_from_the_other_job_over_the_same_rows() -> None:
    made = Made()
    taken: list[int] = []

    def first() -> Iterator[list[int]]:
        for n in itertools.count():
            taken.append(n)
            yield [n]

    assert items_of(few_first(made, first(), [["all"], ["of them"]], most=3)) == ["all", "of them"]
    assert taken == [0, 1, 2, 3]
    assert made.log == ["made", "removed"]


def test_large_results_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unshuffled, "_MOST_BYTES", 1000)

    assert items_of(few_first(Made(), [["x" * 1000]], [["all"]])) == ["all"]
    assert items_of(distinct_first(Made(), [[10**3000], [1]], [[2], [10**3000]])) == [10**3000, 2]


@pytest.mark.parametrize("size", [None, 10**9])
def test_rows_that_may_be_many_are_shuffled_at_once(
    monkeypatch: pytest.MonkeyPatch, size: int | None
) -> None:
    monkeypatch.setattr(unshuffled, "size_of", lambda _: size)
    made = Made()

    assert items_of(few_first(made, [["never"]], [["all"]])) == ["all"]
    assert made.log == ["made", "removed"]


def test_the_sizes_of_united_rows_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unshuffled, "size_of", lambda _: 40 * 2**20)
    united = Made(Opened(ROWS.df, ROWS.reader, (ROWS,)))

    assert items_of(few_first(united, [["never"]], [["all"]])) == ["all"]
    assert items_of(few_first(Made(), [[1]], [["never"]])) == [1]


@pytest.mark.parametrize("taken", [0, 1, 2])
def test_rows_are_removed_when_the_iteration_is_left(taken: int) -> None:
    made = Made()
    items = iter(few_first(made, [[1], [2]], [["a"], ["b"], ["c"]], most=1))

    assert [*itertools.islice(items, taken)] == [["a"], ["b"]][:taken]
    items.close()  # type: ignore[attr-defined]  # it is a generator

    assert made.log == (["made", "removed"] if taken else [])


def test_an_error_of_the_first_job_is_that_of_all() -> None:
    made = Made()

    def first() -> Iterator[list[int]]:
        yield [1]
        raise ValueError("of a stage")

    with pytest.raises(ValueError, match="of a stage"):
        items_of(few_first(made, first(), [["never"]]))
    assert made.log == ["made", "removed"]


def test_an_error_of_making_the_rows_is_raised() -> None:
    @contextmanager
    def failing(stop: Stop) -> Generator[Opened | None, None, None]:
        raise ValueError("of the flow that gives the rows")
        yield None

    rows = Shared(failing)
    job = FewFirst(Given(rows.small, [[1]]), Given(rows.opened, [[2]]), rows, iter, 1)

    with pytest.raises(ValueError, match="of the flow that gives the rows"):
        items_of(job)


@pytest.mark.parametrize("before", [True, False])
def test_a_cancelled_job_gives_nothing(before: bool) -> None:
    made = Made()

    def first() -> Iterator[list[int]]:
        yield [1]
        job.cancel()
        yield [2]

    job = few_first(made, first(), [["never"]])
    if before:
        job.cancel()

    assert items_of(job) == []
    assert made.log == ["made", "removed"]


def test_rows_are_there_until_the_last_of_those_who_use_them_has_left() -> None:
    made = Made()
    rows = Shared(made)

    with rows.opened(Stop()) as opened:
        assert opened is ROWS
        rows.release()
        assert made.log == ["made"]

    assert made.log == ["made", "removed"]


def test_rows_that_were_never_used_are_not_made() -> None:
    made = Made()

    Shared(made).release()

    assert made.log == []


def distinct_first(
    made: Made, first: Iterable[list[Any]], then: Iterable[list[Any]], *, repeats: bool = True
) -> DistinctFirst:
    rows = Shared(made)
    return DistinctFirst(
        Given(rows.opened, first), Given(rows.opened, then), rows, abs, lambda: repeats
    )


def test_one_item_for_each_key_comes_as_soon_as_it_is_there() -> None:
    def endless() -> Iterator[list[int]]:
        yield [1, -1, 2]
        for n in itertools.count():
            yield [n]

    items = itertools.chain.from_iterable(distinct_first(Made(), endless(), []))

    assert list(itertools.islice(items, 5)) == [1, 2, 0, 3, 4]


def test_behind_very_many_keys_only_the_other_items_of_the_other_job_are_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unshuffled, "_MOST_KEYS", 3)
    made = Made()
    taken: list[int] = []

    def first() -> Iterator[list[int]]:
        for n in range(1, 100):
            taken.append(n)
            yield [n, -n]

    job = distinct_first(made, first(), [[-9, 4], [-1, 2], [8, 3]])

    assert items_of(job) == [1, 2, 3, 4, -9, 8]
    assert taken == [1, 2, 3, 4]
    assert made.log == ["made", "removed"]


def test_where_another_reading_may_give_other_rows_all_keys_are_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(unshuffled, "_MOST_KEYS", 3)

    job = distinct_first(Made(), ([n, n] for n in range(9)), [["never"]], repeats=False)

    assert items_of(job) == list(range(9))
