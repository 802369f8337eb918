"""Failures on their way down: which stages see them, which end them, what is left of them."""

from __future__ import annotations

import asyncio
import gc
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flow_core as flow
from flow_core import (
    Flow,
    Fusion,
    NoneItemError,
    OnComplete,
    OnError,
    OnNext,
    Stage,
    Template,
    structure,
)
from flow_testing import Drops, TestPublisher, TestSubscriber, assert_result

Run = Callable[[Flow[Any]], tuple[list[Any], BaseException | None]]


def pulled(made: Flow[Any]) -> tuple[list[Any], BaseException | None]:
    items: list[Any] = []
    try:
        items.extend(made)
    except Exception as error:
        return items, error
    return items, None


def subscribed(fusion: Fusion, hidden: bool) -> Run:
    def run(made: Flow[Any]) -> tuple[list[Any], BaseException | None]:
        subscriber = TestSubscriber[Any](fusion=fusion)
        (structure.moved(made, lambda source: source.hide()) if hidden else made).subscribe(
            subscriber
        )
        assert subscriber.terminated
        return subscriber.items, subscriber.error

    return run


RUNS: dict[str, Run] = {
    "pulled": pulled,
    "pushed": subscribed(Fusion.NONE, False),
    "fused": subscribed(Fusion.SYNC, False),
    "hidden": subscribed(Fusion.NONE, True),
}
each_run = pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)


def failing(error: BaseException, *items: int) -> Flow[int]:
    """A flow whose source fails with `error` after `items`."""

    def source() -> Iterator[int]:
        yield from items
        raise error

    return flow.from_iterable(_Anew(source))


class _Anew:
    def __init__(self, make: Callable[[], Iterator[int]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[int]:
        return self._make()


def raising(error: BaseException) -> Callable[..., Any]:
    def function(*_: object) -> Any:
        raise error

    return function


def long(made: Flow[Any], count: int = 130) -> Flow[Any]:
    for _ in range(count):
        made = made.filter(lambda n: n is not None)
    return made


# -- recovery


@pytest.mark.slow
def test_an_item_or_completion_stands_for_an_error() -> None:
    error = KeyError(1)
    assert_result(lambda: failing(error, 1, 2).on_error_return(9), [1, 2, 9])
    assert_result(lambda: failing(error, 1, 2).on_error_complete(), [1, 2])
    assert_result(lambda: failing(error).on_error_return(9), [9])
    assert_result(lambda: failing(error, 1).on_error_return(9).map(str), ["1", "9"])
    assert_result(lambda: failing(error, 1).on_error_return(9).take(2), [1, 9])
    assert_result(lambda: failing(error, 1, 2).on_error_return(9).take(2), [1, 2])
    assert_result(lambda: failing(error, 1, 2).on_error_return(9).sum(), [12])
    assert_result(lambda: failing(error, 1, 2).on_error_complete().end_with(3), [1, 2, 3])
    assert_result(lambda: failing(error, 1, 2).buffer_with_count(3).on_error_complete(), [])
    assert_result(lambda: flow.range(3).on_error_return(9), [0, 1, 2])
    assert_result(
        lambda: flow.range(3).map(lambda n: 6 // (2 - n)).on_error_return(0).end_with(1),
        [3, 6, 0, 1],
    )


@pytest.mark.parametrize(
    ("when", "meant"),
    [
        (KeyError, True),
        (LookupError, True),
        (ValueError, False),
        ((ValueError, KeyError), True),
        ((ValueError, TypeError), False),
        ((), False),
        (lambda error: error.args == (1,), True),
        (lambda error: 0, False),
        (BaseException, True),
    ],
)
def test_filters_are_classes_tuples_of_them_or_functions(when: Any, meant: bool) -> None:
    error = KeyError(1)
    other = RuntimeError()
    passed = None if meant else error
    assert_result(
        lambda: failing(error, 1).on_error_return(9, when), [1, 9] if meant else [1], passed
    )
    assert_result(lambda: failing(error, 1).on_error_complete(when), [1], passed)
    assert_result(
        lambda: failing(error, 1).on_error_map(lambda _: other, when),
        [1],
        other if meant else error,
    )


@pytest.mark.parametrize("when", [1, "KeyError", None, int, (KeyError, 1), (int,), [KeyError]])
def test_an_invalid_filter_is_refused_when_the_flow_is_made(when: Any) -> None:
    made = flow.range(3)
    with pytest.raises(TypeError, match="on_error_return"):
        made.on_error_return(1, when)
    with pytest.raises(TypeError, match="on_error_complete"):
        made.on_error_complete(when)
    with pytest.raises(TypeError, match="on_error_map"):
        made.on_error_map(lambda e: e, when)


def test_none_cannot_stand_for_an_error() -> None:
    with pytest.raises(NoneItemError):
        flow.range(3).on_error_return(None)


@each_run
def test_a_filter_or_mapper_that_fails_fails_the_flow_in_the_context_of_the_error(run: Run) -> None:
    error, other = KeyError(1), ZeroDivisionError()
    for made in (
        failing(error).on_error_return(9, raising(other)),
        failing(error).on_error_complete(raising(other)),
        failing(error).on_error_map(raising(other)),
    ):
        other.__context__ = None
        assert run(made) == ([], other)
        assert other.__context__ is error


@each_run
def test_a_mapped_error_has_the_first_one_as_its_cause(run: Run) -> None:
    error, cause = KeyError(1), OSError()
    _, made = run(failing(error).on_error_map(lambda _: ValueError("mapped")))
    assert isinstance(made, ValueError)
    assert made.__cause__ is error
    given = ValueError()
    given.__cause__ = cause
    _, made = run(failing(error).on_error_map(lambda _: given))
    assert made is given
    assert given.__cause__ is cause
    assert run(failing(error).on_error_map(lambda e: e)) == ([], error)
    assert error.__cause__ is None
    _, made = run(failing(error).on_error_map(lambda _: 1))  # type: ignore[arg-type,return-value]
    assert isinstance(made, TypeError)


@pytest.mark.parametrize(
    "make",
    [
        lambda bad: flow.from_callable(bad),
        lambda bad: flow.defer(bad),
        lambda bad: flow.from_iterable(_Anew(bad)),
        lambda bad: flow.just(1).collect(bad, list.append),
        lambda bad: flow.just(1).zip_with_iterable(_Anew(bad)),
        lambda bad: flow.just(1).do_on_subscribe(bad),
        lambda bad: flow.just(1).end_with(2).do_on_complete(bad).skip(2),
    ],
    ids=["call", "defer", "iterable", "state", "state's iterable", "start", "end"],
)
def test_a_failure_before_the_first_item_or_at_the_end_is_recovered_too(make: Any) -> None:
    error = KeyError(1)
    told: list[BaseException] = []
    ended: list[int] = []

    def only(form: str) -> bool:
        return "re-entrant" not in form  # its source iterates before it has a subscription

    assert_result(lambda: make(raising(error)).on_error_return(0), [0], only=only)
    assert_result(lambda: long(make(raising(error))).on_error_return(0), [0], only=only)
    watched = make(raising(error)).do_on_error(told.append).finally_action(lambda: ended.append(1))
    for run in RUNS.values():
        assert run(watched) == ([], error)
    assert told == [error] * len(RUNS)
    assert len(ended) == len(RUNS)


@pytest.mark.parametrize("hidden", [False, True])
def test_a_failure_after_cancel_is_dropped_and_is_not_raised_by_cancel(
    drops: Drops, hidden: bool
) -> None:
    error = KeyError(1)
    source = flow.just(1).hide() if hidden else flow.just(1)
    subscriber = TestSubscriber[int](0)
    subscriber.cancel()
    made = source.finally_action(lambda: None).do_on_subscribe(raising(error))
    made.on_error_return(0).subscribe(subscriber)
    assert drops.take_errors() == []
    subscriber = TestSubscriber[int](0)
    subscriber.cancel()
    made.subscribe(subscriber)
    assert drops.take_errors() == [error]


def test_the_recovered_item_waits_for_demand_and_completion_does_not() -> None:
    for hidden in (False, True):
        source = failing(KeyError(1), 1).hide() if hidden else failing(KeyError(1), 1)
        subscriber = TestSubscriber[int](1)
        source.on_error_return(9).subscribe(subscriber)
        subscriber.assert_items(1)
        assert not subscriber.terminated
        subscriber.request(1)
        subscriber.assert_result(1, 9)
        publisher = TestPublisher[int]()
        subscriber = TestSubscriber[int](0)
        Flow(publisher).on_error_complete().subscribe(subscriber)
        publisher.error(KeyError(1))
        subscriber.assert_result()
        publisher = TestPublisher[int]()
        subscriber = TestSubscriber[int](0)
        Flow(publisher).on_error_return(9).subscribe(subscriber)
        publisher.error(KeyError(1))
        subscriber.assert_not_terminated()
        subscriber.request(1)
        subscriber.assert_result(9)


def test_an_upstream_is_cancelled_when_a_stage_failed_even_if_that_is_recovered() -> None:
    for demand in (1, 100):
        publisher = TestPublisher[int]()
        subscriber = TestSubscriber[int](demand)
        made = Flow(publisher).map(lambda n: 1 // n).on_error_return(9)
        made.subscribe(subscriber)
        publisher.next(0)
        subscriber.request(1)
        subscriber.assert_result(9)
        publisher.assert_cancelled()
    publisher = TestPublisher[int]()
    complete = TestSubscriber[int](1)
    Flow(publisher).map(lambda n: 1 // n).on_error_complete().subscribe(complete)
    publisher.next(0)
    complete.assert_result()
    publisher.assert_cancelled()


def test_cancelling_while_the_recovered_item_waits_gives_nothing() -> None:
    for source in (failing(KeyError(1)), failing(KeyError(1)).hide()):
        ended: list[int] = []
        subscriber = TestSubscriber[int](0)
        made = source.on_error_return(9).finally_action(lambda ended=ended: ended.append(1))
        made.subscribe(subscriber)
        subscriber.cancel()
        subscriber.request(1)
        subscriber.assert_no_items()
        assert ended == [1]


@dataclass(frozen=True)
class FrozenError(Exception):
    code: int


@each_run
@pytest.mark.parametrize(
    "apply",
    [
        lambda f: f,
        lambda f: f.on_error_return(9, KeyError),
        lambda f: f.hide().on_error_return(9, KeyError),
        lambda f: f.checkpoint("here"),
        lambda f: f.on_error_complete(lambda error: error.code == 2),
    ],
)
def test_an_error_that_cannot_be_changed_travels_without_a_note(run: Run, apply: Any) -> None:
    error = FrozenError(1)

    def fail(_: object) -> int:
        raise error

    items, seen = run(apply(flow.range(3).map(fail)))
    assert items == []
    assert seen is error


def test_an_error_that_cannot_be_changed_passes_stages_behind_a_boundary() -> None:
    seen: list[BaseException] = []
    error = FrozenError(1)
    made = flow.error(error).hide().do_on_error(seen.append).on_error_return(9)
    assert list(made) == [9]
    assert seen == [error]


@each_run
def test_an_error_in_a_filter_that_cannot_be_changed_fails_the_flow(run: Run) -> None:
    error = FrozenError(1)

    def fail(_: object) -> bool:
        raise error

    assert run(failing(ValueError()).on_error_complete(fail))[1] is error


class NoErrors(Exception):
    """Counts as false."""

    def __len__(self) -> int:
        return 0


@each_run
def test_an_error_that_counts_as_false_is_one_all_the_same(run: Run) -> None:
    error = NoErrors()
    assert run(failing(error, 1).map(str))[1] is error
    assert run(failing(error, 1).on_error_return(9, NoErrors)) == ([1, 9], None)


AFTER = Template("after", params=("action",), on_item="EMIT\naction()")
ENDLESS = Template(
    "endless", params=("items",), on_error="for x in items:\n    EMIT\nSTOP", on_item="EMIT"
)


@each_run
@pytest.mark.parametrize(
    ("recover", "expected"),
    [
        (lambda f: f.on_error_return(9).take(1), [0]),
        (lambda f: f.on_error_return(9).end_with(8).take(1), [0]),
        (lambda f: f.on_error_complete().take(1).end_with(8), [0, 8]),
        (lambda f: f.on_error_map(lambda _: KeyError(1)).on_error_return(9).take(1), [0]),
        (lambda f: f.on_error_return(9).first_or_default(8).to_list(), [[0]]),
        (lambda f: f.materialize().take(1), [OnNext(0)]),
        (lambda f: f.pipe(Stage(ENDLESS, itertools.count())).take_while(lambda n: n < 0), []),
        (lambda f: f.pipe(Stage(ENDLESS, itertools.count())).take(1), [0]),
        (lambda f: f.on_error_return(9).take(2), [0, 9]),
    ],
)
def test_a_fallback_for_an_error_comes_too_late_for_a_stage_that_has_stopped(
    run: Run, recover: Any, expected: list[Any]
) -> None:
    def fail() -> None:
        raise ValueError

    assert run(recover(flow.range(5).pipe(Stage(AFTER, fail)))) == (expected, None)


@each_run
def test_an_error_that_no_stage_stands_for_fails_the_flow_after_a_stop_too(run: Run) -> None:
    seen: list[BaseException] = []
    error = ValueError()

    def fail(_: object) -> None:
        raise error

    made = flow.range(5).do_after_next(fail).do_on_error(seen.append).on_error_return(9, KeyError)
    assert run(made.take(1)) == ([0], error)
    assert seen == [error]


def test_errors_after_a_stop_are_not_recovered_from() -> None:
    """A flow that has ended does not fail any more; a rest that fails does."""
    error = KeyError(1)
    assert_result(lambda: flow.range(9).take(2).map(str).on_error_return("e"), ["0", "1"])
    assert_result(
        lambda: flow.range(9).take(2).do_on_complete(raising(error)).on_error_return(9), [0, 1, 9]
    )
    assert_result(
        lambda: flow.range(9).take(2).on_error_return(9).do_on_complete(raising(error)),
        [0, 1],
        error,
    )
    assert_result(
        lambda: (
            flow.range(9)
            .take(2)
            .do_on_complete(raising(error))
            .on_error_return(9, ValueError)
            .on_error_return(8)
            .end_with(7)
        ),
        [0, 1, 8, 7],
    )


# -- who sees an error


@each_run
def test_each_handling_stage_on_the_way_sees_an_error_once(run: Run) -> None:
    log: list[object] = []
    error = KeyError(1)
    made = failing(error, 1)
    for index in range(3):
        made = made.do_on_error(lambda e, index=index: log.append((index, e)))
    assert run(made) == ([1], error)
    assert log == [(0, error), (1, error), (2, error)]


@each_run
def test_a_stage_sees_errors_of_those_before_it_only(run: Run) -> None:
    log: list[str] = []

    def at(name: str) -> Callable[[BaseException], object]:
        return lambda _: log.append(name)

    def stages(made: Flow[Any], fails: int) -> Flow[Any]:
        for index in range(4):
            made = made.do_on_error(at(f"error {index}"))
            made = made.map(raising(KeyError(1)) if index == fails else lambda n: n)
        return made

    for fails in range(4):
        log.clear()
        assert isinstance(run(stages(flow.range(2), fails))[1], KeyError)
        assert log == [f"error {index}" for index in range(fails + 1, 4)]


@each_run
@pytest.mark.parametrize("between", [lambda f: f, long, lambda f: f.hide()])
def test_an_error_of_a_handling_stage_is_seen_by_the_next_one(run: Run, between: Any) -> None:
    first, second = KeyError(1), ValueError(2)
    seen: list[BaseException] = []
    made = failing(first).on_error_map(lambda _: second).do_on_error(seen.append)
    made = between(made).on_error_complete(KeyError).do_on_error(seen.append)
    items, error = run(made.on_error_return(9, ValueError).do_on_error(seen.append))
    assert (items, error) == ([9], None)
    assert seen == [second, second]


@each_run
def test_an_action_that_fails_too_is_raised_together_with_the_error(run: Run) -> None:
    first, second = KeyError(1), ValueError(2)
    for made in (
        failing(first).do_on_error(raising(second)),
        failing(first).do_on_terminate(raising(second)),
    ):
        _, error = run(made)
        assert isinstance(error, ExceptionGroup)
        assert error.exceptions == (first, second)
    assert run(failing(first).do_on_error(raising(first))) == ([], first)


def test_an_error_of_a_subscriber_is_never_seen_by_the_stages(drops: Drops) -> None:
    """It is the subscriber's affair, however many stages could deal with errors."""
    for source in (flow.range(3), flow.range(3).hide(), long(flow.range(3))):
        seen: list[BaseException] = []
        error = KeyError(1)
        told: list[BaseException] = []
        made = source.do_on_error(seen.append).on_error_return(9).do_on_error(seen.append)
        made.subscribe(raising(error), told.append)
        assert told == [error]
        assert seen == []

    def consume(made: Flow[int]) -> None:
        for _ in made:
            raise error

    with pytest.raises(KeyError):
        consume(flow.range(3).do_on_error(seen.append).on_error_complete())
    items = iter(flow.range(3).do_on_error(seen.append).on_error_complete())
    next(items)
    throw = getattr(items, "throw")  # noqa: B009 - an Iterator that is a generator
    with pytest.raises(KeyError):
        throw(error)
    assert seen == []
    assert drops.take_errors() == []


@each_run
def test_stop_iteration_is_seen_as_it_would_come_out_of_a_generator(run: Run) -> None:
    seen: list[BaseException] = []
    made = flow.range(3).map(lambda _: next(iter(()))).do_on_error(seen.append)
    items, error = run(made)
    assert items == []
    assert seen == [error]
    assert isinstance(error, RuntimeError)
    assert isinstance(error.__cause__, StopIteration)
    if run is not RUNS["fused"]:
        assert any(note.startswith("in stage 1 of 2: map(") for note in error.__notes__)
    assert run(flow.range(3).map(lambda _: next(iter(()))).on_error_return(7)) == ([7], None)


@pytest.mark.checklist("X10")
@pytest.mark.parametrize("fatal", [KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError])
def test_a_fatal_error_is_never_handled(fatal: type[BaseException]) -> None:
    seen: list[object] = []
    for source in (flow.range(3), flow.range(3).hide()):
        made = source.map(raising(fatal())).do_on_error(seen.append)
        made = made.on_error_return(9, BaseException).materialize()
        with pytest.raises(fatal):
            list(made)
        with pytest.raises(fatal):
            made.subscribe(TestSubscriber[Any]())
    assert seen == []
    with pytest.raises(fatal):
        list(
            flow.range(3).map(raising(KeyError())).on_error_map(raising(fatal())).on_error_return(1)
        )


def test_a_cancelled_error_is_handled_only_by_filters_that_name_it() -> None:
    """`asyncio.CancelledError` is not an Exception: filters leave it alone unless they name it."""
    error = asyncio.CancelledError()
    subscriber = TestSubscriber[int]()
    failing(error, 1).on_error_return(9).subscribe(subscriber)
    subscriber.assert_failure(error, 1)
    assert_result(lambda: failing(error, 1).on_error_return(9, BaseException), [1, 9])


# -- notes


@each_run
def test_no_stage_is_blamed_for_an_error_that_only_passes_it(run: Run) -> None:
    error = KeyError(1)
    made = failing(error, 1).do_on_error(lambda _: None).on_error_complete(ValueError)
    run(long(made).do_on_error(lambda _: None).log())
    assert not hasattr(error, "__notes__")


@pytest.mark.parametrize("run", [pulled, subscribed(Fusion.NONE, False)], ids=["pulled", "pushed"])
@pytest.mark.parametrize("between", [lambda f: f, long], ids=["one loop", "several"])
def test_the_stage_that_failed_is_noted_once_however_many_handle_it(run: Run, between: Any) -> None:
    error = KeyError(1)
    made = flow.range(2).map(raising(error))
    for _ in range(4):
        made = between(made.do_on_error(lambda _: None).on_error_complete(ValueError))
    assert run(made)[1] is error
    (note,) = error.__notes__
    assert "map(" in note
    assert note.startswith("in stage 1 of ")


def test_a_checkpoint_notes_each_error_that_passes_it_once() -> None:
    error = KeyError(1)
    made = failing(error).checkpoint("here")
    for _ in range(3):
        pulled(made)
    made.subscribe(TestSubscriber[int]())
    (note,) = error.__notes__
    assert note.startswith("passed the checkpoint 'here', assembled at ")
    assert "test_recovery.py" in note


class Unprintable:
    def __repr__(self) -> str:
        raise ZeroDivisionError


@each_run
def test_an_argument_without_a_repr_does_not_hide_the_error(run: Run) -> None:
    error = KeyError(1)
    assert run(flow.range(2).scan(raising(error), Unprintable()))[1] is error


class Anything:
    """Has any attribute, as objects have that make functions of what is done to them."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __getattr__(self, _: str) -> Anything:
        return self

    def __call__(self, _: object) -> int:
        raise self._error


@each_run
def test_a_function_with_a_name_that_is_not_text_does_not_hide_the_error(run: Run) -> None:
    error = KeyError(1)
    made = flow.range(2).map(Anything(error))
    assert repr(made) == "range(0, 2) | map(Anything)"
    assert run(made)[1] is error


# -- nothing is left


MAKERS: dict[str, Callable[[], Flow[Any]]] = {
    "passed": lambda: divided().do_on_error(lambda _: None).finally_action(lambda: None),
    "recovered": lambda: divided().on_error_return(9),
    "mapped": lambda: divided().on_error_map(lambda _: ValueError()),
    "mapped badly": lambda: divided().on_error_map(badly),
    "filtered badly": lambda: divided().on_error_complete(badly),
    "both": lambda: divided().do_on_error(badly),
    "dematerialized": lambda: divided().materialize().dematerialize(),
    "a sink's": lambda: flow.just(1).handle(lambda _, sink: sink.error(KeyError(2))),
    "an operator's": lambda: flow.range(3).single_or_error(),
    "of several loops": lambda: long(divided()).on_error_complete(KeyError),
    "across a boundary": lambda: divided().hide().do_on_error(lambda _: None),
    "StopIteration": lambda: (
        flow.range(2).map(lambda _: next(iter(()))).on_error_complete(KeyError)
    ),
    "before the first item": lambda: flow.from_callable(divide).do_on_error(lambda _: None),
}


def divide() -> int:
    return 1 // 0


def badly(_: object) -> Any:
    raise ValueError


def divided() -> Flow[int]:
    return flow.range(3).map(lambda n: 1 // n)


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_an_error_is_not_kept_alive_by_the_loop_that_it_passed(
    make: Callable[[], Flow[Any]], hidden: bool
) -> None:
    def run_all() -> None:
        made = structure.moved(make(), lambda source: source.hide()) if hidden else make()
        try:
            list(made)
        except Exception:
            pass
        made.subscribe(lambda _: None, lambda _: None)

    run_all()  # whatever is compiled and cached is there by now
    gc.collect()
    gc.disable()
    try:
        run_all()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        left = [thing for thing in gc.garbage if isinstance(thing, BaseException)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert left == []


# -- long flows


@each_run
def test_handlers_and_closers_in_every_part_of_a_long_flow(run: Run) -> None:
    seen: list[int] = []
    closed: list[int] = []
    error = KeyError(1)
    made: Flow[int] = failing(error, 1)
    for index in range(12):
        made = made.do_on_error(lambda _, index=index: seen.append(index))
        made = made.finally_action(lambda index=index: closed.append(index))
        for _ in range(100):
            made = made.map(lambda n: n + 1)
    items, raised = run(made)
    assert (items, raised) == ([1201], error)
    assert seen == list(range(12))
    assert closed == list(reversed(range(12))) or (run is RUNS["hidden"] and len(closed) == 12)
    assert run(made.on_error_return(7)) == ([1201, 7], None)


def test_many_failures_in_a_row_are_handled_in_constant_stack() -> None:
    made: Flow[int] = failing(KeyError(0))
    for index in range(300):
        made = made.on_error_map(lambda _, index=index: KeyError(index), KeyError)
        made = made.on_error_complete(ValueError)
    for run in RUNS.values():
        items, error = run(made)
        assert items == []
        assert isinstance(error, KeyError)
        assert error.args == (299,)


# -- materialize


def test_materialize_makes_items_of_all_signals() -> None:
    error = KeyError(1)
    assert_result(lambda: flow.range(2).materialize(), [OnNext(0), OnNext(1), OnComplete()])
    assert_result(lambda: failing(error, 1).materialize(), [OnNext(1), OnError(error)])
    assert_result(lambda: flow.empty().materialize(), [OnComplete()])
    assert_result(lambda: failing(error, 1).materialize().take(1), [OnNext(1)])
    assert_result(lambda: failing(error, 1, 2).materialize().count(), [3])


def test_the_end_that_materialize_makes_an_item_of_waits_for_demand() -> None:
    for source in (flow.range(1), flow.range(1).hide()):
        subscriber = TestSubscriber[Any](1)
        source.materialize().subscribe(subscriber)
        subscriber.assert_items(OnNext(0))
        assert not subscriber.terminated
        subscriber.request(1)
        subscriber.assert_result(OnNext(0), OnComplete())


def test_dematerialize_ends_with_the_first_terminal() -> None:
    error = KeyError(1)
    rest = (OnNext(7), OnComplete(), OnError(ValueError()))
    assert_result(lambda: flow.just(OnNext(1), OnComplete(), *rest).dematerialize(), [1])
    assert_result(lambda: flow.just(OnNext(1), OnError(error), *rest).dematerialize(), [1], error)
    assert_result(lambda: flow.just(OnNext(1)).dematerialize(), [1])
    wrong: Any = flow.just(1)
    assert_result(lambda: wrong.dematerialize(), [], TypeError)
    publisher = TestPublisher[Any]()
    subscriber = TestSubscriber[Any]()
    Flow(publisher).dematerialize().subscribe(subscriber)
    publisher.next(OnNext(1), OnComplete())
    subscriber.assert_result(1)
    publisher.assert_cancelled()


@settings(max_examples=40, deadline=None)
@given(
    items=st.lists(st.integers()),
    fails=st.booleans(),
    times=st.integers(1, 3),
    hidden=st.booleans(),
)
def test_dematerialize_undoes_materialize(
    items: list[int], fails: bool, times: int, hidden: bool
) -> None:
    error = KeyError(1)
    made: Flow[Any] = failing(error, *items) if fails else flow.from_iterable(items)
    for _ in range(times):
        made = made.materialize()
        made = made.hide() if hidden else made
    for _ in range(times):
        made = made.dematerialize()
    expected = (items, error if fails else None)
    for run in (RUNS["pulled"], RUNS["pushed"], RUNS["fused"]):
        assert run(made) == expected


# -- a handling stage of one's own


RETRY_ONCE = Template(
    "replace",
    params=("items",),
    on_error="""
    for x in items:
        NOT_NONE
        EMIT
    if items:
        STOP
    """,
)


@pytest.mark.slow
def test_several_items_may_stand_for_an_error() -> None:
    error = KeyError(1)
    for items in ([7], [7, 8, 9]):
        made = failing(error, 1).pipe(Stage(RETRY_ONCE, items))
        assert_result(lambda made=made: made, [1, *items])
        assert_result(lambda made=made: made.take(2), [1, 7])
        assert_result(
            lambda made=made: made.map(str).to_list(), [[str(item) for item in (1, *items)]]
        )
    assert_result(lambda: failing(error, 1).pipe(Stage(RETRY_ONCE, [])), [1], error)
    assert_result(
        lambda: failing(error, 1).pipe(Stage(RETRY_ONCE, [7, None])), [1, 7], NoneItemError
    )
    again = failing(error, 1).pipe(Stage(RETRY_ONCE, [7, None])).pipe(Stage(RETRY_ONCE, [8, 9]))
    assert_result(lambda: again, [1, 7, 8, 9])


def test_an_error_that_a_handler_raises_after_its_items_follows_them() -> None:
    error, later = KeyError(1), ValueError(2)
    after = Template(
        "after", params=("items", "act"), on_error="for x in items:\n    EMIT\nact(error)"
    )
    assert_result(lambda: failing(error, 1).pipe(Stage(after, [7], raising(later))), [1, 7], later)
    assert_result(lambda: failing(error, 1).pipe(Stage(after, [7], lambda _: None)), [1, 7], error)
    both = failing(error, 1).pipe(Stage(after, [7], raising(later))).on_error_return(8)
    assert_result(lambda: both, [1, 7, 8])
    failing_below = failing(error, 1).pipe(Stage(after, [0, 7], lambda _: None))
    assert_result(lambda: failing_below.map(lambda n: 1 // n).on_error_return(8), [1, 8])
