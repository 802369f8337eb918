"""Errors at `concat_map`: where they come from, and when they arrive."""

from __future__ import annotations

import pytest

import flow_core as flow
from flow_ops import concat, concat_map
from flow_testing import TestPublisher, TestSubscriber, Violation, assert_result

FAILURE = ValueError("no")


def fail_at(n, inner=flow.just):
    def function(item):
        if item == n:
            raise FAILURE
        return inner(item)

    return function


@pytest.fixture(autouse=True)
def _fresh():
    """The one error of all tests keeps no notes from test to test."""
    yield
    FAILURE.__notes__ = []


@pytest.mark.usefixtures("dropped")  # of the forms that cancel
@pytest.mark.parametrize("delay_error", [False, True])
@pytest.mark.parametrize("inner", [flow.just, flow.range, lambda n: flow.range(n).hide()])
def test_an_error_of_the_upstream_comes_in_its_place(inner, delay_error):
    assert_result(
        lambda: (
            flow.range(9)
            .map(fail_at(3, int))
            .pipe(concat_map(inner, prefetch=4, delay_error=delay_error))
        ),
        [m for n in range(3) for m in inner(n)],
        FAILURE,
    )


@pytest.mark.parametrize("delay_error", [False, True])
def test_an_error_of_the_mapper_ends_the_flow(delay_error):
    assert_result(
        lambda: flow.range(9).pipe(concat_map(fail_at(3), delay_error=delay_error)),
        [0, 1, 2],
        FAILURE,
    )


BROKEN = {
    "error": lambda: flow.error(FAILURE),
    "callable": lambda: flow.from_callable(lambda: fail_at(0)(0)),
    "stage": lambda: flow.range(3).map(fail_at(0, int)),
    "stage of a constant": lambda: flow.just(0).map(fail_at(0, int)),
    "deferred": lambda: flow.defer(lambda: fail_at(0)(0)),
    "hidden": lambda: flow.error(FAILURE).hide(),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_an_error_of_an_inner_flow_ends_the_flow(kind):
    assert_result(
        lambda: flow.range(9).pipe(
            concat_map(lambda n: BROKEN[kind]() if n == 2 else flow.range(n + 1))
        ),
        [0, 0, 1],
        FAILURE,
    )


@pytest.mark.usefixtures("dropped")  # of the forms that cancel
@pytest.mark.parametrize("kind", BROKEN)
def test_a_delayed_error_of_an_inner_flow_comes_at_the_end(kind):
    assert_result(
        lambda: flow.range(4).pipe(
            concat_map(lambda n: BROKEN[kind]() if n == 2 else flow.just(n), delay_error=True)
        ),
        [0, 1, 3],
        FAILURE,
    )


@pytest.mark.usefixtures("dropped")  # of the forms that cancel
@pytest.mark.parametrize("inner", [lambda f: f, lambda f: f.hide()], ids=["inline", "subscribed"])
def test_items_before_an_error_are_kept(inner):
    assert_result(
        lambda: flow.just(1, 2).pipe(
            concat_map(lambda _: inner(flow.range(9).map(fail_at(2, int))), delay_error=True)
        ),
        [0, 1, 0, 1],
        ExceptionGroup,
    )


@pytest.mark.parametrize("hide", [False, True])
def test_several_delayed_errors_come_as_a_group(hide):
    errors = [ValueError("a"), ValueError("b"), ValueError("c")]

    def mapper(n):
        made = flow.error(errors[n // 2]) if n % 2 == 0 else flow.just(n)
        return made.hide() if hide else made

    made = flow.range(6).pipe(concat_map(mapper, delay_error=True))
    seen = TestSubscriber()
    made.subscribe(seen)
    seen.assert_failure(ExceptionGroup, 1, 3, 5)
    assert list(seen.error.exceptions) == errors
    assert "concat_map" in str(seen.error)
    with pytest.raises(ExceptionGroup) as raised:
        list(made)
    assert list(raised.value.exceptions) == errors


def test_an_error_of_the_upstream_joins_the_delayed_ones():
    inner = ValueError("inner")
    made = (
        flow.range(3)
        .map(fail_at(2, int))
        .pipe(concat_map(lambda n: flow.error(inner) if n else flow.just(n), delay_error=True))
    )
    seen = TestSubscriber()
    made.subscribe(seen)
    assert list(seen.assert_failure(ExceptionGroup, 0).error.exceptions) == [inner, FAILURE]
    with pytest.raises(ExceptionGroup) as raised:
        list(made)
    assert list(raised.value.exceptions) == [inner, FAILURE]


def test_an_error_of_the_upstream_waits_for_the_inner_flow():
    outer, inner = TestPublisher(), TestPublisher()
    seen = TestSubscriber()
    mapper = {1: flow.Flow(inner), 2: flow.just("b")}.__getitem__
    flow.Flow(outer).pipe(concat_map(mapper)).subscribe(seen)
    outer.next(1, 2).error(FAILURE)
    inner.assert_not_cancelled().next("a")
    seen.assert_items("a").assert_not_terminated()
    inner.complete()
    seen.assert_failure(FAILURE, "a", "b")


def test_an_error_of_an_inner_flow_cancels_the_upstream_and_drops_waiting_items(dropped):
    outer, inner = TestPublisher(), TestPublisher()
    seen = TestSubscriber()
    flow.Flow(outer).pipe(concat_map(lambda _: flow.Flow(inner))).subscribe(seen)
    outer.next(1, 2, 3)
    inner.error(FAILURE)
    seen.assert_failure(FAILURE)
    outer.assert_cancelled()
    assert dropped.items == [2, 3]


def test_an_error_of_the_upstream_that_an_inner_one_overtakes_is_not_lost(dropped):
    outer, inner = TestPublisher(), TestPublisher()
    seen = TestSubscriber()
    flow.Flow(outer).pipe(concat_map(lambda _: flow.Flow(inner))).subscribe(seen)
    outer.next(1)
    outer.error(late := ValueError("outer"))
    inner.error(FAILURE)
    seen.assert_failure(FAILURE)
    assert dropped.errors == [late]


@pytest.mark.parametrize("outer", [flow.range, lambda n: flow.range(n).hide()])
@pytest.mark.parametrize("delay_error", [False, True])
def test_a_mapper_that_gives_none_is_named(outer, delay_error):
    made = outer(3).pipe(
        concat_map(lambda n: flow.just(n) if n < 2 else None, delay_error=delay_error)
    )
    assert_result(lambda: made, [0, 1], flow.NoneItemError)
    with pytest.raises(flow.NoneItemError) as raised:
        list(made)
    assert "mapper gave None" in str(raised.value)
    assert "concat_map(<lambda test_concat_map_errors.py:" in raised.value.__notes__[0]
    assert "assembled at" in raised.value.__notes__[0]


@pytest.mark.checklist("F07")
@pytest.mark.parametrize("wrong", [None, 7, "ab"])
def test_a_mapper_of_a_constant_that_gives_no_flow_is_named(wrong):
    made = flow.just(3).pipe(concat_map(lambda _: wrong))
    seen = TestSubscriber()
    made.subscribe(seen)
    seen.assert_failure(TypeError)
    assert "concat_map" in seen.error.__notes__[0]


def test_a_mapper_that_gives_no_flow_is_named():
    assert_result(lambda: flow.range(3).pipe(concat_map(lambda n: n)), [], TypeError)


@pytest.mark.parametrize("outer", [flow.just(1), flow.range(3), flow.range(3).hide()])
def test_an_error_of_the_mapper_says_where_it_was_assembled(outer):
    def mapper(_):
        raise ValueError("no")

    made = outer.pipe(concat_map(mapper))
    seen = TestSubscriber()
    made.subscribe(seen)
    notes = seen.assert_failure(ValueError).error.__notes__
    assert len(notes) == 1
    assert notes[0].startswith("in concat_map(")
    assert __file__ in notes[0]
    with pytest.raises(ValueError) as raised:
        list(made)
    assert "in concat_map(" in raised.value.__notes__[0]


@pytest.mark.usefixtures("dropped")  # of the forms that cancel
def test_none_from_a_source_is_an_error():
    for outer in (flow.from_iterable([1, None]), flow.from_iterable([1, None]).hide()):
        assert_result(
            lambda outer=outer: outer.pipe(concat_map(flow.just)), [1], flow.NoneItemError
        )
    assert_result(
        lambda: flow.range(2).pipe(concat_map(lambda _: flow.from_iterable([1, None]))),
        [1],
        flow.NoneItemError,
    )


@pytest.mark.usefixtures("dropped")  # of the forms that cancel
def test_none_from_a_source_does_not_reach_the_stages_behind_it():
    with_none = flow.from_iterable([1, None]).map(str)
    assert_result(lambda: with_none.pipe(concat_map(flow.just)), ["1"], flow.NoneItemError)
    assert_result(
        lambda: flow.range(2).pipe(concat_map(lambda _: with_none)), ["1"], flow.NoneItemError
    )


@pytest.mark.parametrize("outer", [flow.just(1), flow.range(3), flow.range(3).hide()])
def test_stop_iteration_is_an_error_and_no_silent_end(outer):
    def mapper(_):
        raise StopIteration

    assert_result(lambda: outer.pipe(concat_map(mapper)), [], RuntimeError)


@pytest.mark.checklist("F09", "X10")
@pytest.mark.parametrize("fatal", [KeyboardInterrupt, SystemExit, MemoryError])
@pytest.mark.parametrize("where", ["mapper", "callable", "iterator", "hidden"])
def test_fatal_errors_propagate(fatal, where):
    def raises(*_):
        raise fatal

    inner = {
        "mapper": raises,
        "callable": lambda _: flow.from_callable(raises),
        "iterator": lambda _: flow.range(2).map(raises),
        "hidden": lambda _: flow.range(2).map(raises).hide(),
    }[where]
    for outer in (flow.range(3), flow.range(3).hide()):
        made = outer.pipe(concat_map(inner, delay_error=True))
        seen = TestSubscriber()
        with pytest.raises(fatal):
            made.subscribe(seen)
        seen.assert_items().assert_not_terminated()
        with pytest.raises(fatal):
            list(made)


@pytest.mark.checklist("X10")
@pytest.mark.parametrize("hide", [False, True])
def test_a_fatal_error_cancels_the_upstream_and_drops_waiting_items(hide, dropped):
    def fatal(_):
        raise KeyboardInterrupt

    outer, first = TestPublisher(), TestPublisher()
    bad = flow.range(3).map(fatal)
    inner = {1: flow.Flow(first), 2: bad.hide() if hide else bad}
    seen = TestSubscriber()
    flow.Flow(outer).pipe(concat_map(inner.__getitem__)).subscribe(seen)
    outer.next(1, 2, 3)
    with pytest.raises(KeyboardInterrupt):
        first.complete()
    outer.assert_cancelled()
    assert dropped.items == [3]
    seen.assert_items().assert_not_terminated()


@pytest.mark.parametrize("inner", [flow.just, flow.range, lambda n: flow.range(n).hide()])
def test_a_subscriber_that_raises_ends_the_flow(inner, dropped):
    def raises(_, item):
        raise FAILURE

    outer = TestPublisher()
    seen = TestSubscriber(on_item=raises)
    flow.Flow(outer).pipe(concat_map(inner)).subscribe(seen)
    outer.next(1, 2, 3)
    outer.assert_cancelled()
    assert len(seen.items) == 1
    assert dropped.errors == [FAILURE]
    assert seen.late == []


@pytest.mark.parametrize("inner", [flow.just, lambda n: flow.range(n).hide()])
def test_a_function_that_raises_gets_its_error(inner):
    errors = []
    handle = flow.range(1, 4).pipe(concat_map(inner)).subscribe(fail_at(0, int), errors.append)
    handle = (
        flow.range(1, 4)
        .pipe(concat_map(inner))
        .map(lambda _: 0)
        .subscribe(fail_at(0), errors.append)
    )
    assert handle.disposed
    assert FAILURE in errors


def test_an_error_after_the_end_is_not_lost(dropped):
    seen = TestSubscriber()
    outer, inner = TestPublisher(Violation.IGNORED_CANCEL), TestPublisher(Violation.IGNORED_CANCEL)
    flow.Flow(outer).pipe(concat_map(lambda _: flow.Flow(inner))).subscribe(seen)
    outer.next(1)
    seen.cancel()
    inner.error(FAILURE)
    outer.error(FAILURE)
    assert dropped.errors == [FAILURE, FAILURE]
    seen.assert_not_terminated()


class Unwilling:
    """An iterable whose iterator cannot be made."""

    def __iter__(self):
        raise FAILURE


def refuse():
    raise FAILURE


@pytest.mark.slow
@pytest.mark.parametrize(
    "inner", [lambda: flow.from_callable(refuse), lambda: flow.from_iterable(Unwilling())]
)
@pytest.mark.parametrize("outer", [flow.just(1), flow.just(1).hide()])
def test_stages_of_an_inner_flow_deal_with_a_source_that_cannot_begin(inner, outer):
    def inners(make):
        return lambda: outer.pipe(concat_map(lambda _: make(inner())))

    other, ended = LookupError(), []
    assert_result(inners(lambda f: f.on_error_return(-1)), [-1])
    assert_result(inners(lambda f: f.on_error_map(lambda _: other)), [], other)
    subscriber = TestSubscriber()
    inners(lambda f: f.finally_action(lambda: ended.append("it")))().subscribe(subscriber)
    subscriber.assert_failure(FAILURE)
    assert ended == ["it"]


def test_stages_before_it_deal_with_an_upstream_that_cannot_begin():
    assert_result(
        lambda: flow.from_callable(refuse).on_error_return(2).pipe(concat_map(flow.range)), [0, 1]
    )


def test_an_inner_flow_and_the_upstream_hear_how_they_have_ended():
    seen = []

    def noted(items, name):
        return items.do_on_cancel(lambda: seen.append(f"{name} cancelled")).finally_action(
            lambda: seen.append(f"{name} over")
        )

    flows = noted(flow.range(2), "outer").pipe(concat_map(lambda n: noted(flow.just(n, n), n)))
    assert_result(lambda: flows, [0, 0, 1, 1])
    assert {"outer over", "0 over", "1 over"} <= {*seen}
    seen.clear()
    subscriber = TestSubscriber(3)
    flows.subscribe(subscriber)
    subscriber.cancel()
    assert sorted(seen) == ["0 over", "1 cancelled", "1 over", "outer over"]
    seen.clear()
    both = TestSubscriber()
    concat(noted(flow.range(2), "first"), noted(flow.just(2), "second")).subscribe(both)
    both.assert_result(0, 1, 2)
    assert seen == ["first over", "second over"]
