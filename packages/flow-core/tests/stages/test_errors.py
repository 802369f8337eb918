"""The way of an exception: of a source, of a stage, of a subscriber; and of a None."""

from __future__ import annotations

import asyncio
import inspect
import linecache
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow, NoneItemError, Stage, Template, structure
from flow_core.plugins import plugin_host
from flow_core.protocols import Fusion
from flow_core.structure import stages_of
from flow_testing import (
    ConditionalTestSubscriber,
    Drops,
    TestPublisher,
    TestSubscriber,
    Violation,
    assert_result,
)


class FailureError(Exception):
    """The exception that user code in these tests raises."""


FATAL = [KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError]


def raising(error: BaseException | type[BaseException], when: int = 2) -> Callable[[Any], Any]:
    """A function that raises for the item `when`, and else returns its argument."""

    def function(item: Any, *_: object) -> Any:
        if item == when:
            raise error
        return item

    return function


# Each stage with a function of the user's that fails, and what came before.
FAILING: dict[str, tuple[Callable[[Flow[int], Callable[..., Any]], Flow[Any]], list[Any]]] = {
    "map": (lambda f, fail: f.map(fail), [0, 1]),
    "filter": (lambda f, fail: f.filter(lambda n: fail(n) >= 0), [0, 1]),
    "flat_map_iterable": (lambda f, fail: f.flat_map_iterable(lambda n: [fail(n)]), [0, 1]),
    "flat_map_iterable, in between": (
        lambda f, fail: f.flat_map_iterable(lambda n: (fail(i) for i in (n + 1, n - 1))),
        [1, -1],
    ),
    "take_while": (lambda f, fail: f.take_while(lambda n: fail(n) >= 0), [0, 1]),
    "skip_while": (lambda f, fail: f.skip_while(lambda n: fail(n) > 5), [0, 1, 2, 3, 4, 5]),
    "scan": (lambda f, fail: f.scan(lambda _, n: fail(n)), [0, 1]),
    "reduce": (lambda f, fail: f.reduce(lambda _, n: fail(n)), []),
    "collect": (lambda f, fail: f.collect(list, lambda _, n: fail(n)), []),
    "distinct": (lambda f, fail: f.distinct(fail), [0, 1]),
    "distinct_until_changed": (lambda f, fail: f.distinct_until_changed(fail), [0, 1]),
    "distinct_until_changed, same": (
        lambda f, fail: f.distinct_until_changed(same=lambda _, n: fail(n) < 0),
        [0, 1],
    ),
    "do_on_next": (lambda f, fail: f.do_on_next(fail), [0, 1]),
    "map behind other stages": (
        lambda f, fail: f.skip(1).filter(lambda _: True).map(fail).take(5),
        [1],
    ),
    "map behind take": (lambda f, fail: f.take(3).map(fail), [0, 1]),
}
each_failing = pytest.mark.parametrize("name", FAILING)


@each_failing
def test_an_error_of_a_stage_travels_as_the_identical_object(name: str) -> None:
    apply, before = FAILING[name]
    error = FailureError("seen by all")
    if name == "skip_while":
        apply, before = (lambda f, fail: f.skip_while(lambda n: fail(n) < 1)), [1, 2, 3, 4, 5]
        assert_result(lambda: apply(flow.range(6), raising(error, when=0)), [], error)
        return
    assert_result(lambda: apply(flow.range(6), raising(error)), before, error)


def notes_of(error: BaseException) -> list[str]:
    return getattr(error, "__notes__", [])


RUNS: dict[str, Callable[[Flow[Any]], None]] = {
    "iterated": lambda made: list(made) and None,
    "pushed": lambda made: made.subscribe(TestSubscriber()),
    "pushed, conditional": lambda made: made.subscribe(ConditionalTestSubscriber()),
    "one by one": lambda made: made.subscribe(
        TestSubscriber(1, on_item=lambda self, _: self.request(1))
    ),
    "fused": lambda made: made.subscribe(TestSubscriber(fusion=Fusion.SYNC)),
    "hidden": lambda made: structure.moved(made, lambda source: source.hide()).subscribe(
        TestSubscriber()
    ),
    "hidden, conditional": lambda made: structure.moved(
        made, lambda source: source.hide()
    ).subscribe(ConditionalTestSubscriber()),
    "pushing, fused": lambda made: structure.moved(made, Flow).subscribe(
        TestSubscriber(fusion=Fusion.SYNC)
    ),
}
each_run = pytest.mark.parametrize("run", RUNS)


def run_failing(run: str, made: Flow[Any], error: BaseException) -> None:
    caught: BaseException | None = None
    try:
        RUNS[run](made)
    except BaseException as raised:
        caught = raised
    assert caught in (None, error)


@each_run
@each_failing
def test_an_error_gets_one_note_with_the_stage_and_where_it_was_assembled(
    name: str, run: str
) -> None:
    apply, _ = FAILING[name]
    error = FailureError()
    when = 0 if name == "skip_while" else 2
    run_failing(run, apply(flow.range(6), raising(error, when)), error)
    (note,) = notes_of(error)
    stage = name.partition(",")[0].partition(" ")[0]
    assert f": {stage}(" in note
    assert note.startswith("in stage ")
    file, _, line = note.partition("assembled at ")[2].rpartition(":")
    assert file == __file__
    assert f"f.{stage}(" in linecache.getline(file, int(line)) or ".map(" in linecache.getline(
        file, int(line)
    )


@each_run
def test_the_note_counts_the_stages_that_the_user_wrote(run: str) -> None:
    error = FailureError()
    made = flow.from_iterable([0, 1, 2]).filter(lambda _: True).map(raising(error)).take(5)
    line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]  # CPython has frames
    run_failing(run, made, error)
    (note,) = notes_of(error)
    assert note.startswith("in stage 2 of 3: map(")
    assert note.endswith(f"assembled at {__file__}:{line}")


def test_the_note_names_the_line_of_a_chain() -> None:
    error = FailureError()
    made = (
        flow.range(5)
        .map(lambda n: n)
        .map(raising(error))  # this line
        .map(lambda n: n)
    )
    run_failing("iterated", made, error)
    file, _, line = notes_of(error)[0].partition("assembled at ")[2].rpartition(":")
    assert "# this line" in linecache.getline(file, int(line))


def test_an_operator_is_assembled_where_it_is_piped() -> None:
    error = FailureError()
    mapped = plugin_host().operator("map")(raising(error))
    made = flow.range(5).pipe(mapped)
    line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]  # CPython has frames
    run_failing("pushed", made, error)
    assert notes_of(error)[0].endswith(f"assembled at {__file__}:{line}")


def test_a_stage_that_is_used_twice_knows_both_places() -> None:
    stage: Stage[int, int] = Stage(Template("again"))
    first = flow.range(1).pipe(stage)
    second = flow.range(1).pipe(stage)
    places = [stages_of(made)[0].assembled_at for made in (first, second)]
    assert places[0] != places[1]
    assert None not in places


@each_run
def test_an_error_raised_again_gets_no_second_note_of_the_same_stage(run: str) -> None:
    error = FailureError()
    made = flow.range(6).map(raising(error))
    for _ in range(3):
        run_failing(run, made, error)
    assert len(notes_of(error)) == 1


@each_run
def test_in_a_long_flow_the_note_names_the_right_one_of_many_equal_stages(run: str) -> None:
    """Several loops of one shape run one behind the other."""
    error = FailureError()
    places = []
    for position in (0, 70, 150):
        made: Flow[int] = flow.range(6)
        for index in range(200):
            if index == position:
                made = made.filter(raising(error, when=2))
                places.append(stages_of(made)[-1].assembled_at)
            else:
                made = made.filter(lambda n: n >= 0)
        run_failing(run, made, error)
        (note,) = notes_of(error)
        assert note.startswith(f"in stage {position + 1} of 200: filter(")
        assert note.endswith(f"assembled at {places[-1]}")
        del error.__notes__


def test_an_error_of_the_source_gets_no_note() -> None:
    error = FailureError()

    def items() -> Iterator[int]:
        yield 1
        raise error

    for run in RUNS:
        run_failing(run, flow.from_iterable(items()).map(str), error)
    assert notes_of(error) == []


def test_a_traceback_shows_the_line_of_the_loop() -> None:
    error = FailureError()
    run_failing("iterated", flow.range(5).map(raising(error)), error)
    text = "".join(traceback.format_exception(error))
    assert "x = mapper_0(x)  # 1 map" in text
    assert "<flow pull: map" in text


# -- None


NONE_MAKERS: dict[str, Callable[[Flow[int]], Flow[Any]]] = {
    "map": lambda f: f.map(lambda n: None if n == 2 else n),
    "flat_map_iterable": lambda f: f.flat_map_iterable(lambda n: [None if n == 2 else n]),
    "scan": lambda f: f.scan(lambda _, n: None if n == 2 else n),
    "reduce": lambda f: f.reduce(lambda _, n: None),
    "reduce with a seed": lambda f: f.reduce(lambda _, n: None, 1),
    "collect": lambda f: f.collect(lambda: None, lambda _, n: None),
}


@pytest.mark.checklist("X04", "F38")
@pytest.mark.parametrize("name", NONE_MAKERS)
def test_a_function_that_gives_none_fails_the_flow_with_its_name(name: str) -> None:
    before = [0, 1] if name in ("map", "flat_map_iterable", "scan") else []
    assert_result(lambda: NONE_MAKERS[name](flow.range(5)), before, NoneItemError)
    subscriber = TestSubscriber[Any]()
    NONE_MAKERS[name](flow.range(5)).subscribe(subscriber)
    message = str(subscriber.error)
    assert message.startswith(f"{name.partition(' ')[0]}(")
    assert "None" in message
    assert "which is not an item; leave such items out" in message
    (note,) = notes_of(subscriber.error)  # type: ignore[arg-type]  # there is an error
    assert "assembled at" in note


@pytest.mark.checklist("X04")
@pytest.mark.parametrize("stages", [lambda f: f, lambda f: f.map(str), lambda f: f.to_list()])
def test_none_from_an_iterable_fails_the_flow(stages: Callable[[Flow[Any]], Flow[Any]]) -> None:
    made = stages(flow.from_iterable([1, None]))  # type: ignore[list-item]  # the mistake
    subscriber = TestSubscriber[Any]()
    made.subscribe(subscriber)
    assert isinstance(subscriber.error, NoneItemError)
    assert "from_iterable(list) gave None" in str(subscriber.error)
    assert len(subscriber.items) == (
        0 if stages_of(made) and stages_of(made)[-1].name == "to_list" else 1
    )
    with pytest.raises(NoneItemError, match="from_iterable\\(list\\) gave None"):
        list(made)


def test_none_from_a_call_is_an_empty_flow() -> None:
    assert_result(lambda: flow.from_callable(lambda: None), [])


def test_just_refuses_none() -> None:
    with pytest.raises(NoneItemError):
        flow.just(None)
    with pytest.raises(NoneItemError):
        flow.just(1, None, 2)


@pytest.mark.parametrize(
    "stages",
    [
        lambda f: f.map(str),
        lambda f: f.filter(bool),
        lambda f: f.flat_map_iterable(lambda n: [n]),
        lambda f: f.count(),
        lambda f: f.buffer_with_count(1),
    ],
)
def test_a_publisher_that_sends_none_gets_a_type_error_and_may_continue(
    stages: Callable[[Flow[Any]], Flow[Any]],
) -> None:
    publisher = TestPublisher[Any](Violation.NONE_ITEM | Violation.OVERFLOW)
    subscriber = TestSubscriber[Any]()
    stages(Flow(publisher)).subscribe(subscriber)
    with pytest.raises(TypeError, match="None"):
        publisher.next(None)
    publisher.next(1)
    with pytest.raises(TypeError, match="None"):
        publisher.error(None)  # type: ignore[arg-type]  # the mistake
    subscriber.assert_not_terminated()


# -- PEP 479


@each_run
@pytest.mark.parametrize(
    "stages",
    [
        lambda f, fail: f.map(fail),
        lambda f, fail: f.filter(fail),
        lambda f, fail: f.flat_map_iterable(fail),
        lambda f, fail: f.scan(lambda _, n: fail(n)),
        lambda f, fail: f.collect(list, lambda _, n: fail(n)),
    ],
)
def test_stop_iteration_of_a_function_is_an_error_and_no_end(
    stages: Callable[[Flow[int], Callable[[int], Any]], Flow[Any]], run: str
) -> None:
    stop = StopIteration()

    def fail(_: int) -> Any:
        raise stop

    made = stages(flow.range(5), fail)
    subscriber = TestSubscriber[Any]()
    if run == "iterated":
        with pytest.raises(RuntimeError) as raised:
            list(made)
        error: BaseException = raised.value
    else:
        made.subscribe(subscriber)
        assert subscriber.error is not None
        error = subscriber.error
    assert isinstance(error, RuntimeError)
    assert error.__cause__ is stop
    assert any("assembled at" in note for note in (*notes_of(error), *notes_of(stop)))


def test_a_runtime_error_of_the_users_own_generator_is_traced_to_its_stage() -> None:
    def generator() -> Iterator[int]:
        next(iter(()))
        yield 1

    subscriber = TestSubscriber[int]()
    flow.range(5).map(lambda _: next(generator())).subscribe(subscriber)
    assert isinstance(subscriber.error, RuntimeError)
    assert "map(" in notes_of(subscriber.error)[0]


def test_stop_iteration_of_a_call_or_a_subscriber_does_not_complete_the_flow() -> None:
    def stop(*_: object) -> Any:
        raise StopIteration

    subscriber = TestSubscriber[int]()
    flow.from_callable(stop).subscribe(subscriber)
    assert isinstance(subscriber.error, StopIteration)
    errors: list[BaseException] = []
    flow.range(3).subscribe(stop, errors.append)
    assert [type(error) for error in errors] == [RuntimeError]


# -- fatal exceptions


@pytest.mark.checklist("X10", "F09")
@pytest.mark.parametrize("fatal", FATAL)
@pytest.mark.parametrize(
    "stages",
    [
        lambda f, fail: f.map(fail),
        lambda f, fail: f.filter(fail),
        lambda f, fail: f.flat_map_iterable(lambda n: [fail(n)]),
        lambda f, fail: f.reduce(lambda _, n: fail(n)),
        lambda f, fail: f.buffer_with_count(1).map(lambda items: fail(items[0])),
    ],
)
@pytest.mark.parametrize("run", [run for run in RUNS if run != "fused"])
def test_a_fatal_exception_of_a_stage_propagates_and_is_not_sent_as_an_error(
    stages: Callable[[Flow[int], Callable[[int], Any]], Flow[Any]],
    fatal: type[BaseException],
    run: str,
) -> None:
    closed: list[bool] = []

    def items() -> Iterator[int]:
        try:
            yield from range(5)
        finally:
            closed.append(True)

    errors: list[BaseException] = []
    made = stages(flow.from_iterable(items()), raising(fatal))
    subscribe = RUNS[run]
    if run == "pushed":
        subscribe = lambda made: made.subscribe(lambda _: None, errors.append) and None  # noqa: E731
    with pytest.raises(fatal):
        subscribe(made)
    assert errors == []
    assert closed == [True]


@pytest.mark.checklist("X10", "F09")
@pytest.mark.parametrize("fatal", FATAL)
@pytest.mark.parametrize(
    "make",
    [
        flow.from_callable,
        flow.defer,
        flow.error,
        lambda fail: flow.from_iterable(Lazy(fail)),
        lambda fail: flow.from_callable(fail).map(str).hide(),
        lambda fail: Flow(flow.defer(fail)).map(str),
    ],
)
def test_a_fatal_exception_of_a_source_propagates_out_of_subscribe(
    make: Callable[[Callable[[], Any]], Flow[Any]], fatal: type[BaseException]
) -> None:
    def fail() -> Any:
        raise fatal

    subscriber = TestSubscriber[Any]()
    with pytest.raises(fatal):
        make(fail).subscribe(subscriber)
    assert not subscriber.terminated


class Lazy:
    """An iterable whose iterator cannot be made."""

    def __init__(self, fail: Callable[[], Any]) -> None:
        self.fail = fail

    def __iter__(self) -> Iterator[Any]:
        return self.fail()  # type: ignore[no-any-return]  # it raises


@pytest.mark.checklist("X10")
@pytest.mark.parametrize("fatal", FATAL)
@pytest.mark.parametrize(
    "stages",
    [
        lambda f: f,
        lambda f: f.map(str),
        lambda f: f.hide(),
        lambda f: f.hide().map(str),
        lambda f: f.hide().flat_map_iterable(lambda n: [n]),
    ],
)
def test_a_fatal_exception_of_a_subscriber_propagates_and_leaves_nothing_stuck(
    stages: Callable[[Flow[int]], Flow[Any]], fatal: type[BaseException]
) -> None:
    def fail(self: TestSubscriber[Any], item: Any) -> None:
        if len(self.items) == 2:
            raise fatal

    subscriber = TestSubscriber[Any](1, on_item=fail)
    stages(flow.range(5)).subscribe(subscriber)
    with pytest.raises(fatal):
        subscriber.request(1)
    # Neither hangs nor goes on: the flow is cancelled, and its permit is free.
    subscriber.request(5)
    subscriber.cancel()
    assert len(subscriber.items) == 2
    assert not subscriber.terminated


def test_a_fatal_exception_in_the_state_of_a_stage_propagates() -> None:
    for made in (flow.range(5), flow.range(5).hide()):
        subscriber = TestSubscriber[Any]()
        with pytest.raises(KeyboardInterrupt):
            made.collect(raising_supplier(KeyboardInterrupt), lambda *_: None).subscribe(subscriber)
        assert not subscriber.terminated


def raising_supplier(error: type[BaseException]) -> Callable[[], Any]:
    def supplier() -> Any:
        raise error

    return supplier


def test_an_error_in_the_state_of_a_stage_follows_on_subscribe() -> None:
    made = flow.range(5).collect(raising_supplier(FailureError), lambda *_: None)
    assert_result(lambda: made, [], FailureError)
    for source in (flow.range(5), flow.range(5).hide()):
        subscriber = TestSubscriber[Any]()
        source.collect(raising_supplier(FailureError), lambda *_: None).subscribe(subscriber)
        assert [signal.name for signal in subscriber.signals] == ["on_subscribe", "on_error"]
        assert "collect(" in notes_of(subscriber.error)[0]  # type: ignore[arg-type]


# -- subscribers that raise


class Stranger:
    """A subscriber that this library does not know, and that raises at a given place."""

    def __init__(self, where: str, error: BaseException) -> None:
        self.where = where
        self.error = error
        self.seen: list[str] = []

    def _signalled(self, name: str) -> None:
        self.seen.append(name)
        if name == self.where:
            raise self.error

    def on_subscribe(self, subscription: Any) -> None:
        self._signalled("on_subscribe")
        subscription.request(10)

    def on_next(self, item: Any) -> None:
        self._signalled("on_next")

    def on_error(self, error: BaseException) -> None:
        self._signalled("on_error")

    def on_complete(self) -> None:
        self._signalled("on_complete")


@pytest.mark.parametrize(
    "stages",
    [lambda f: f, lambda f: f.map(str), lambda f: f.hide(), lambda f: f.hide().map(str)],
)
@pytest.mark.parametrize(
    ("where", "seen"),
    [
        ("on_subscribe", ["on_subscribe"]),
        ("on_next", ["on_subscribe", "on_next"]),
        ("on_error", ["on_subscribe", "on_next", "on_error"]),
        ("on_complete", ["on_subscribe", "on_next", "on_next", "on_complete"]),
    ],
)
def test_an_error_of_a_foreign_subscriber_cancels_the_flow_and_is_dropped(
    where: str, seen: list[str], stages: Callable[[Flow[int]], Flow[Any]], drops: Drops
) -> None:
    closed: list[bool] = []

    def items() -> Iterator[int]:
        try:
            yield 1
            if where == "on_error":
                raise FailureError
            yield 2
        finally:
            closed.append(True)

    error = FailureError("by the subscriber")
    subscriber = Stranger(where, error)
    source = items()
    stages(flow.from_iterable(source)).subscribe(subscriber)
    assert subscriber.seen == seen
    assert drops.take_errors() == [error]
    assert "Stranger" in notes_of(error)[0]
    assert source.gi_frame is None  # type: ignore[attr-defined]  # a generator


@pytest.mark.parametrize(
    "stages",
    [
        lambda f: f,
        lambda f: f.map(str),
        lambda f: f.hide(),
        lambda f: f.hide().map(str),
        lambda f: f.hide().flat_map_iterable(lambda n: [n]),
        lambda f: f.hide().map(str).hide(),
    ],
)
@pytest.mark.parametrize("prefetch", [None, 1])
def test_an_error_of_a_function_as_subscriber_fails_the_flow(
    stages: Callable[[Flow[int]], Flow[Any]], prefetch: int | None
) -> None:
    error = FailureError()

    def fail(_: object) -> None:
        raise error

    errors: list[BaseException] = []
    completed: list[bool] = []
    handle = stages(flow.range(5)).subscribe(
        fail, errors.append, lambda: completed.append(True), prefetch=prefetch
    )
    assert errors == [error]
    assert completed == []
    assert handle.disposed
    assert notes_of(error) == []


@pytest.mark.parametrize("stages", [lambda f: f, lambda f: f.map(str), lambda f: f.hide().map(str)])
def test_an_error_of_a_subscriber_that_has_cancelled_is_dropped(
    stages: Callable[[Flow[int]], Flow[Any]], drops: Drops
) -> None:
    error = FailureError()
    errors: list[BaseException] = []
    handles: list[Any] = []

    def fail(_: object) -> None:
        handles[0].dispose()
        raise error

    class Started(flow.CoreSubscriber[Any]):
        def __init__(self) -> None:
            self.errors = errors

        def on_subscribe(self, subscription: Any, /) -> None:
            handles.append(type("Handle", (), {"dispose": lambda _: subscription.cancel()})())
            subscription.request(5)

        def on_next(self, item: Any, /) -> None:
            fail(item)

        def on_error(self, error: BaseException, /) -> None:
            errors.append(error)

        def on_complete(self) -> None:
            raise AssertionError

    stages(flow.range(5)).subscribe(Started())
    assert errors == []
    assert drops.take_errors() == [error]


def test_functions_that_raise_at_the_end_are_dropped(drops: Drops) -> None:
    error = FailureError()

    def fail(*_: object) -> None:
        raise error

    assert flow.range(1).subscribe(lambda _: None, on_complete=fail).disposed
    assert drops.take_errors() == [error]
    assert flow.error(ValueError()).subscribe(lambda _: None, fail).disposed
    assert drops.take_errors() == [error]


@pytest.mark.checklist("X10")
@pytest.mark.parametrize("fatal", FATAL)
@pytest.mark.parametrize("where", ["on_subscribe", "on_next", "on_complete"])
@pytest.mark.parametrize(
    "stages",
    [lambda f: f, lambda f: f.map(str), lambda f: f.hide(), lambda f: f.hide().map(str)],
)
def test_a_fatal_exception_of_a_strange_subscriber_propagates_and_ends_the_flow(
    stages: Callable[[Flow[int]], Flow[Any]], where: str, fatal: type[BaseException]
) -> None:
    def items() -> Iterator[int]:
        yield from range(3)

    source = items()
    subscriber = Stranger(where, fatal())
    with pytest.raises(fatal):
        stages(flow.from_iterable(source)).subscribe(subscriber)
    assert source.gi_frame is None  # type: ignore[attr-defined]  # a generator
    assert subscriber.seen[-1] == where


@pytest.mark.parametrize("fatal", FATAL)
def test_a_flow_of_a_fatal_exception_raises_it(fatal: type[BaseException]) -> None:
    error = fatal()
    for made in (flow.error(error), flow.error(lambda: error)):
        subscriber = TestSubscriber[Any]()
        with pytest.raises(fatal) as raised:
            made.map(str).subscribe(subscriber)
        assert raised.value is error
        assert not subscriber.terminated


# -- loops within loops


def test_an_error_of_a_flow_within_a_flow_is_noted_for_both() -> None:
    error = FailureError()
    inner = flow.range(3).map(raising(error))
    outer = flow.range(3).map(lambda _: list(inner))
    for run in ("iterated", "pushed", "hidden"):
        run_failing(run, outer, error)
        first, second = notes_of(error)
        assert first.endswith(str(stages_of(inner)[0].assembled_at))
        assert second.endswith(str(stages_of(outer)[0].assembled_at))
        del error.__notes__


def test_an_error_of_a_flow_that_a_subscriber_runs_is_the_subscribers() -> None:
    error = FailureError()
    inner = flow.range(3).map(raising(error))
    errors: list[BaseException] = []
    for made in (flow.range(3).map(lambda n: n), flow.range(3).hide().map(lambda n: n)):
        errors.clear()
        made.subscribe(lambda _: list(inner), errors.append)
        assert errors == [error]
        (note,) = notes_of(error)
        assert note.endswith(str(stages_of(inner)[0].assembled_at))


def test_an_error_of_a_source_that_is_a_flow_of_the_same_shape_is_the_sources() -> None:
    error = FailureError()
    inner = flow.range(3).map(raising(error))
    for run in ("iterated", "pushed", "fused"):
        run_failing(run, flow.from_iterable(inner).map(lambda n: n), error)
        (note,) = notes_of(error)
        assert note.endswith(str(stages_of(inner)[0].assembled_at))


@pytest.mark.parametrize("hidden", [False, True])
def test_stop_async_iteration_of_a_function_says_where_in_an_event_loop_too(hidden: bool) -> None:
    def fail(_: int) -> int:
        raise StopAsyncIteration

    async def consume() -> list[int]:
        source = flow.range(5).hide() if hidden else flow.range(5)
        return [item async for item in source.map(fail)]

    with pytest.raises(RuntimeError, match="raised StopAsyncIteration") as raised:
        asyncio.run(consume())
    assert "in stage 1 of 1: map(" in raised.value.__notes__[0]
