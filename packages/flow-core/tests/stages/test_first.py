"""`Flow.first` is what `take(1)` gives, and does: for each stage, without a generator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow, NoItemError
from flow_core.protocols import IterableSource
from flow_testing import STAGE_CASES, StageCase

NOTHING = "nothing"
STARTS = (range(9), range(0), range(1), (4, 4, -1, 7), (3, 0, 2))


class Asked(IterableSource[int]):
    """Writes down what is asked of it, and whether it is closed."""

    def __init__(self, items: Any, log: list[object]) -> None:
        self.items = items
        self.log = log

    def iterate(self) -> Iterator[int]:
        try:
            for item in self.items:
                self.log.append(("asked", item))
                yield item
        finally:
            self.log.append("source closed")


def watched(case: StageCase, items: Any, log: list[object]) -> Flow[Any]:
    """The stage, between others that write down what they hear."""

    def note(place: str, made: Flow[Any]) -> Flow[Any]:
        return made.do_action(
            lambda item: log.append((place, item)),
            lambda error: log.append((place, repr(error))),
            lambda: log.append((place, "complete")),
            on_cancel=lambda: log.append((place, "cancel")),
            on_close=lambda: log.append((place, "close")),
        )

    return note("below", case.apply(note("above", Flow(Asked(items, log)))))


def by_taking_one(made: Flow[Any]) -> object:
    items = iter(made.take(1))
    try:
        return next(items, NOTHING)
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()


def outcome(run: Any, made: Flow[Any]) -> object:
    try:
        return run(made)
    except NoItemError:
        return NOTHING
    except Exception as error:
        return repr(error)


@pytest.mark.parametrize("items", STARTS, ids=str)
@pytest.mark.parametrize("case", STAGE_CASES, ids=lambda case: case.name)
def test_it_gives_and_does_what_taking_one_does(case: StageCase, items: Any) -> None:
    log: list[object] = []
    expected: list[object] = []
    found = outcome(Flow.first, watched(case, items, log))
    assert found == outcome(by_taking_one, watched(case, items, expected))
    assert log == expected


def test_it_takes_no_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Flow, "take", None)
    monkeypatch.setattr(Flow, "__iter__", None)
    assert flow.range(3).map(str).first() == "0"
    assert flow.range(3).first() == 0
    assert flow.just("a", "b").reduce(lambda a, b: a + b).first() == "ab"
    with pytest.raises(NoItemError, match="first_or_default"):
        flow.range(3).filter(lambda n: n > 7).first()


def test_an_error_says_which_stage_it_was() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        flow.range(3).map(lambda n: n).map(lambda n: 1 // n).first()
    (note,) = caught.value.__notes__
    assert note.startswith("in stage 2 of 2: map(")


def test_a_stop_iteration_of_a_function_is_a_runtime_error() -> None:
    def stop(item: int) -> int:
        raise StopIteration

    with pytest.raises(RuntimeError, match="raised StopIteration"):
        flow.range(3).map(stop).first()


def test_a_source_that_cannot_begin_fails_it_after_the_stages_have_heard_of_it() -> None:
    class Broken(IterableSource[int]):
        def iterate(self) -> Iterator[int]:
            raise ValueError("no file")

    with pytest.raises(ValueError, match="no file"):
        Flow(Broken()).map(str).first()
    assert Flow(Broken()).map(str).on_error_return("none").first() == "none"


def test_a_flow_of_more_stages_than_fit_into_a_function_gives_its_first_item() -> None:
    made: Flow[int] = flow.range(3)
    for _ in range(1100):
        made = made.map(lambda n: n + 1)
    assert made.first() == 1100
