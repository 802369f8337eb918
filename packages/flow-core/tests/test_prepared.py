"""`prepare` assembles a flow once; each of its runs is as if the flow had been assembled for it."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Iterator
from typing import Any

import cloudpickle
import pytest

import flow_core as flow
from flow_core import Flow, FlowError, NoItemError, Prepared, hooks
from flow_testing import STAGE_CASES, StageCase

STARTS = (range(9), range(0), range(1), (4, 4, -1, 7), (3, 0, 2))


@flow.prepare
def total(numbers: Flow[int]) -> Flow[int]:
    """The sum of the odd ones."""
    return numbers.filter(lambda n: n % 2 == 1).sum()


def doubled(numbers: Flow[int]) -> Flow[int]:
    return numbers.map(lambda n: 2 * n)


twice = flow.prepare(doubled)


def outcome(run: Callable[[], object]) -> object:
    try:
        return run()
    except NoItemError:
        return "no item"
    except Exception as error:
        return type(error), str(error), getattr(error, "__notes__", ())


@pytest.mark.parametrize("case", STAGE_CASES, ids=lambda case: str(case.name))
@pytest.mark.parametrize("make", [lambda items: items, list], ids=["as it is", "list"])
@pytest.mark.parametrize("items", STARTS, ids=str)
def test_it_gives_what_a_flow_assembled_for_these_items_gives(
    case: StageCase, make: Callable[[Any], Any], items: Any
) -> None:
    def made(numbers: Flow[int]) -> Flow[Any]:
        return case.apply(numbers.do_on_next(lambda _: None))

    prepared, given = flow.prepare(made), make(items)
    assembled = made(flow.from_iterable(given))
    assert outcome(lambda: prepared.first(given)) == outcome(assembled.first)
    assert outcome(lambda: prepared.last(given)) == outcome(assembled.last)
    assert outcome(lambda: prepared.single(given)) == outcome(assembled.single)
    everything = outcome(lambda: list(assembled))
    assert outcome(lambda: prepared.list(given)) == everything
    assert outcome(lambda: list(prepared(given))) == everything
    assert outcome(lambda: list(prepared(flow.from_(given)))) == everything


def test_it_may_run_as_often_as_it_likes_over_whatever_can_be_iterated_over() -> None:
    assert [
        total.first(given) for given in ([1, 2, 3], (5,), range(8), {7: 0}, {3}, iter([9]))
    ] == [
        4,
        5,
        16,
        7,
        3,
        9,
    ]
    upper = flow.prepare(lambda letters: letters.map(str.upper))
    assert upper.list("abc") == ["A", "B", "C"]
    assert upper.list(flow.just("a", "b").hide()) == ["A", "B"]
    assert upper.first(letter for letter in "xy") == "X"


def test_it_is_an_operator_and_a_function_that_gives_a_flow() -> None:
    assert list(flow.range(5).pipe(total)) == [4]
    assert list(flow.range(5).pipe(total, twice)) == [8]
    assert flow.just([1, 2], [3, 3]).map(total.first).to_list().first() == [1, 6]
    assert list(flow.just([1], [2]).flat_map_iterable(twice)) == [2, 4]


def test_a_flow_with_operators_of_other_kinds_is_put_together_for_each_run() -> None:
    hidden = flow.prepare(lambda numbers: numbers.map(abs).hide().skip(1))
    assert hidden.list([-1, -2, -3]) == [2, 3]
    assert hidden.first([-1, -2, -3]) == 2
    assert list(hidden(flow.range(3)).take(1)) == [1]


def test_the_function_is_called_once() -> None:
    calls: list[object] = []

    def made(numbers: Flow[int]) -> Flow[int]:
        calls.append(numbers)
        return numbers.map(abs)

    prepared = flow.prepare(made)
    assert prepared.list([-1]) == prepared.list((-1,)) == list(prepared([1])) == [1]
    assert len(calls) == 1


def test_a_flow_of_a_list_runs_again_each_time_and_one_of_an_iterator_once() -> None:
    made = twice([1, 2])
    assert list(made) == list(made) == [2, 4]
    made = twice(iter([1]))
    assert list(made) == [2]
    with pytest.raises(FlowError, match="only once"):
        list(made)


def test_a_flow_of_items_can_be_moved_pickled_and_described_as_any_flow() -> None:
    from flow_core.structure import moved, source_of, stages_of

    made = flow.prepare(lambda numbers: numbers.map(abs).filter(bool))([0, -1])
    assert repr(made) == "from_iterable(list) | map(abs) | filter(bool)"
    assert [stage.name for stage in stages_of(made)] == ["map", "filter"]
    assert list(moved(made, lambda source: source.end_with(-5))) == [1, 5]
    assert list(pickle.loads(pickle.dumps(made))) == [1]
    assert repr(source_of(moved(made, lambda source: source))) == "from_iterable(list)"


def test_an_error_has_the_note_of_its_stage() -> None:
    inverse = flow.prepare(lambda numbers: numbers.map(abs).map(lambda n: 1 // n))
    for run in (inverse.first, inverse.list, inverse.single, lambda items: list(inverse(items))):
        with pytest.raises(ZeroDivisionError) as raised:
            run([0])
        (note,) = raised.value.__notes__
        assert re.fullmatch(r"in stage 2 of 2: map\(<lambda .*>\), assembled at .*:\d+", note)
        assert __file__ in note


def test_none_is_refused_where_it_comes_from() -> None:
    with pytest.raises(flow.NoneItemError, match=r"input of doubled gave None"):
        twice.list([None])  # type: ignore[list-item]
    with pytest.raises(flow.NoneItemError, match=r"from_iterable\(list\) gave None"):
        list(twice([None]))  # type: ignore[list-item]


def test_a_generator_is_closed_when_the_first_item_was_found_and_when_a_stage_fails() -> None:
    closed: list[str] = []

    def numbers(name: str) -> Iterator[int]:
        try:
            yield 1
            yield 0
        finally:
            closed.append(name)

    assert twice.first(numbers("first")) == 2
    with pytest.raises(ZeroDivisionError):
        flow.prepare(lambda items: items.map(lambda n: 1 // n)).list(numbers("fails"))
    assert closed == ["first", "fails"]


def test_an_empty_input_gives_no_item() -> None:
    with pytest.raises(NoItemError, match=r"doubled\.first\(\): the flow has no item"):
        twice.first([])
    assert total.first([]) == 0
    unchanged = flow.prepare(lambda items: items)
    assert unchanged.list([1]) == [1]
    with pytest.raises(NoItemError):
        unchanged.first([])


def test_debug_mode_tells_what_was_assembled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "debugging", True)
    for run in (total.first, total.list):
        with pytest.raises(TypeError) as raised:
            run(["a"])  # type: ignore[list-item]
        assert any("the flow was assembled from" in note for note in raised.value.__notes__)


def test_it_looks_like_the_function() -> None:
    assert total.__name__ == "total"
    assert total.__doc__ == "The sum of the odd ones."
    assert total.__module__ == __name__
    assert repr(twice).startswith(
        "prepare(doubled: input of doubled | map(<lambda test_prepared.py:"
    )


@pytest.mark.parametrize("module", [pickle, cloudpickle], ids=lambda module: str(module.__name__))
@pytest.mark.parametrize("prepared", [total, twice], ids=["decorated", "called"])
def test_it_pickles_as_its_function(module: Any, prepared: Prepared[int, int]) -> None:
    expected = prepared.first([3])
    for _ in range(2):
        assert module.loads(module.dumps(prepared)).first([3]) == expected
    assert module.loads(module.dumps(prepared.first))([3]) == expected
    assert repr(module.loads(module.dumps(prepared))) == repr(prepared)


def test_a_prepared_lambda_pickles_by_value() -> None:
    prepared = flow.prepare(lambda numbers: numbers.map(abs))
    assert pickle.loads(cloudpickle.dumps(prepared)).list([-1]) == [1]


REFUSED: dict[str, tuple[Callable[[Flow[Any]], Any], type[Exception], str]] = {
    "no flow": (lambda _: 3, TypeError, r"it gives 3, not a flow; return what the operators make"),
    "nothing": (lambda _: None, TypeError, r"it gives None, not a flow"),
    "items": (
        lambda numbers: flow.just(numbers.first()),
        FlowError,
        r"there are no items while a flow is prepared; return the flow itself",
    ),
    "a constant": (lambda _: flow.just(1), FlowError, r"just\(1\), which does not begin"),
    "elsewhere": (
        lambda _: flow.just(1).map(abs),
        FlowError,
        rf"just\(1\) \| map\(abs\), assembled at {re.escape(__file__)}:\d+, which does not begin",
    ),
    "within": (
        lambda numbers: numbers.map(lambda _: numbers),
        FlowError,
        rf"its input is used a second time at {re.escape(__file__)}:\d+; publish",
    ),
    "a part of it within": (
        lambda numbers: numbers.filter(numbers.skip(1).__getattr__),
        FlowError,
        rf"its input is used a second time at {re.escape(__file__)}:\d+; publish",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_function_that_cannot_be_prepared_is_refused_at_once(name: str) -> None:
    function, kind, text = REFUSED[name]
    with pytest.raises(kind, match=text):
        flow.prepare(function)


def test_a_coroutine_function_is_refused() -> None:
    async def made(numbers: Flow[int]) -> Flow[int]:
        return numbers

    with pytest.raises(TypeError, match=r"prepare\(\) takes a function that gives its result"):
        flow.prepare(made)  # type: ignore[arg-type]


KEPT: list[Flow[int]] = []


def test_an_input_that_a_global_has_kept_says_so_when_it_runs() -> None:
    def made(numbers: Flow[int]) -> Flow[int]:
        KEPT.append(numbers)
        return numbers.map(lambda _: KEPT[0].first())

    prepared = flow.prepare(made)
    with pytest.raises(FlowError, match=r"prepare\(made\): its input is only a placeholder"):
        prepared.first([1])


def test_errors_of_the_function_come_out_of_prepare() -> None:
    with pytest.raises(TypeError, match="takes a function"):
        flow.prepare(lambda numbers: numbers.map(3))  # type: ignore[arg-type]
