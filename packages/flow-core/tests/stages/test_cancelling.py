"""Cancel: nothing follows, generators are closed in the right thread, nothing is kept alive."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread, get_ident
from typing import Any

import pytest

import flow_core as flow
from flow_core import UNBOUNDED, Flow, Fusion
from flow_testing import (
    STAGE_CASES,
    TIMEOUT_S,
    Drops,
    StageCase,
    TestPublisher,
    TestSubscriber,
    Violation,
)


class Generator:
    """A generator that says when, and in which thread, its ``finally`` block ran."""

    def __init__(self, count: int = 1000) -> None:
        self.closed_in: list[int] = []
        self.items = self._run(count)

    def _run(self, count: int) -> Iterator[int]:
        try:
            yield from range(count)
        finally:
            self.closed_in.append(get_ident())

    def __iter__(self) -> Iterator[int]:
        return self.items


def long(made: Flow[int]) -> Flow[int]:
    for _ in range(130):
        made = made.filter(lambda n: n >= 0)
    return made


SHAPES: dict[str, Callable[[Flow[int]], Flow[Any]]] = {
    "no stage": lambda f: f,
    "stages": lambda f: f.filter(lambda n: n >= 0).map(str),
    "many of one": lambda f: f.flat_map_iterable(lambda n: [n, n]),
    "a rest": lambda f: f.buffer_with_count(2),
    "hidden": lambda f: f.hide(),
    "stages after hidden": lambda f: f.hide().map(str),
    "many of one after hidden": lambda f: f.hide().flat_map_iterable(lambda n: [n, n]),
    "a rest after hidden": lambda f: f.hide().buffer_with_count(2),
    "more than one loop": long,
    "more than one loop after hidden": lambda f: long(f.hide()),
}
each_shape = pytest.mark.parametrize("shape", SHAPES)


# -- generators


@pytest.mark.checklist("X09")
@each_shape
def test_a_generator_is_closed_by_cancel_in_the_cancelling_thread(shape: str) -> None:
    items = Generator()
    subscriber = TestSubscriber[Any](3)
    SHAPES[shape](flow.from_iterable(items)).subscribe(subscriber)
    assert items.closed_in == []
    here: list[int] = []

    def cancel() -> None:
        here.append(get_ident())
        subscriber.cancel()

    thread = Thread(target=cancel)
    thread.start()
    thread.join(TIMEOUT_S)
    assert items.closed_in == here
    subscriber.assert_silent_after_cancel()


@pytest.mark.checklist("X09")
@each_shape
def test_a_generator_is_closed_by_cancel_in_on_next(shape: str) -> None:
    items = Generator()
    subscriber = TestSubscriber[Any](on_item=lambda self, _: self.cancel())
    SHAPES[shape](flow.from_iterable(items)).subscribe(subscriber)
    assert items.closed_in == [get_ident()]
    assert len(subscriber.items) == 1
    subscriber.assert_silent_after_cancel()


@pytest.mark.checklist("X09")
@each_shape
def test_a_generator_that_runs_is_closed_by_the_thread_that_runs_it(shape: str) -> None:
    """A generator cannot be closed while it runs: a cancel leaves that to the runner."""
    items = Generator()
    entered, go_on = Event(), Event()

    def block(subscriber: TestSubscriber[Any], _: object) -> None:
        entered.set()
        assert go_on.wait(TIMEOUT_S)

    subscriber = TestSubscriber[Any](on_item=block)
    made = SHAPES[shape](flow.from_iterable(items))
    runner: list[int] = []

    def run() -> None:
        runner.append(get_ident())
        made.subscribe(subscriber)

    thread = Thread(target=run)
    thread.start()
    assert entered.wait(TIMEOUT_S)
    subscriber.cancel()
    assert items.closed_in == []
    go_on.set()
    thread.join(TIMEOUT_S)
    assert items.closed_in == runner
    assert len(subscriber.items) == 1
    subscriber.assert_rules_kept()


@pytest.mark.checklist("X09")
@each_shape
def test_a_generator_is_closed_when_a_take_has_enough(shape: str) -> None:
    items = Generator()
    subscriber = TestSubscriber[Any]()
    SHAPES[shape](flow.from_iterable(items)).take(2).subscribe(subscriber)
    assert len(subscriber.items) == 2
    assert subscriber.completed
    assert items.closed_in == [get_ident()]


@pytest.mark.checklist("X09")
@each_shape
def test_a_generator_is_closed_when_an_iteration_is_left(shape: str) -> None:
    items = Generator()
    for _ in SHAPES[shape](flow.from_iterable(items)):
        break
    assert items.closed_in == [get_ident()]
    items = Generator()
    assert SHAPES[shape](flow.from_iterable(items)).first() is not None
    assert items.closed_in == [get_ident()]


@pytest.mark.checklist("X09")
@each_shape
def test_a_generator_is_closed_when_a_fused_consumer_cancels(shape: str) -> None:
    items = Generator()
    subscriber = TestSubscriber[Any](2, fusion=Fusion.SYNC)
    SHAPES[shape](flow.from_iterable(items)).subscribe(subscriber)
    subscriber.cancel()
    assert items.closed_in == [get_ident()]


@pytest.mark.checklist("X09")
def test_a_generator_is_closed_when_its_flow_is_cancelled_while_it_is_polled() -> None:
    for made in (lambda f: f.map(cancel), lambda f: Flow(f.map(cancel))):
        items = Generator()
        subscriber = TestSubscriber[Any](0, fusion=Fusion.SYNC)

        def cancel(n: int, subscriber: TestSubscriber[Any] = subscriber) -> int:
            subscriber.cancel()
            return n

        made(flow.from_iterable(items)).subscribe(subscriber)
        assert subscriber.fused is Fusion.SYNC
        subscriber.request(5)
        assert len(subscriber.items) == 1
        assert items.closed_in == [get_ident()]


@pytest.mark.checklist("X09")
@each_shape
@pytest.mark.parametrize("fusion", [Fusion.NONE, Fusion.SYNC], ids=["pushed", "fused"])
def test_a_generator_that_cancels_its_own_flow_is_closed_after_it(
    shape: str, fusion: Fusion
) -> None:
    closed: list[bool] = []
    subscriber = TestSubscriber[Any](0, fusion=fusion)

    def items() -> Iterator[int]:
        try:
            yield 0
            yield 1
            subscriber.cancel()
            assert closed == []
            yield 2
            yield 3
        finally:
            closed.append(True)

    SHAPES[shape](flow.from_iterable(items())).subscribe(subscriber)
    subscriber.request(UNBOUNDED)
    assert closed == [True]
    assert not subscriber.terminated
    subscriber.assert_rules_kept()


@pytest.mark.checklist("X09")
@each_shape
def test_a_generator_is_closed_when_the_subscriber_cancels_before_its_first_item(
    shape: str,
) -> None:
    items = Generator()
    next(items.items)  # Or there is no finally block yet that could run.
    subscriber = TestSubscriber[Any](0)
    SHAPES[shape](flow.from_iterable(items)).subscribe(subscriber)
    subscriber.cancel()
    assert items.closed_in == [get_ident()]


@pytest.mark.checklist("X09")
@each_shape
def test_a_generator_is_closed_for_a_non_positive_request(shape: str) -> None:
    items = Generator()
    subscriber = TestSubscriber[Any](1)
    SHAPES[shape](flow.from_iterable(items)).subscribe(subscriber)
    subscriber.subscription.request(0)
    assert items.closed_in == [get_ident()]
    assert isinstance(subscriber.error, ValueError)


def test_an_inner_generator_is_closed_with_the_flow() -> None:
    for source in (flow.range(3), flow.range(3).hide()):
        inner = [Generator(), Generator(), Generator()]
        subscriber = TestSubscriber[Any](2)
        source.flat_map_iterable(lambda n, inner=inner: inner.pop(0).items).subscribe(subscriber)
        subscriber.cancel()
        assert len(inner) == 2


def test_an_error_of_a_generator_that_is_closed_is_dropped(drops: Drops) -> None:
    error = ValueError("while closing")

    def items() -> Iterator[int]:
        try:
            yield from range(10)
        finally:
            raise error

    subscriber = TestSubscriber[int](1)
    flow.from_iterable(items()).map(str).subscribe(subscriber)
    subscriber.cancel()
    assert drops.take_errors() == [error]
    subscriber.assert_silent_after_cancel()


def test_an_iterator_that_is_not_a_generator_is_left_open() -> None:
    class File:
        closed = False

        def __iter__(self) -> Iterator[int]:
            return self

        def __next__(self) -> int:
            return 1

        def close(self) -> None:
            self.closed = True

    file = File()
    assert list(flow.from_iterable(file).take(2)) == [1, 1]
    assert not file.closed


# -- nothing follows


@each_shape
def test_cancel_is_idempotent_and_requests_after_it_do_nothing(shape: str) -> None:
    subscriber = TestSubscriber[Any](1)
    SHAPES[shape](flow.range(100)).subscribe(subscriber)
    for _ in range(3):
        subscriber.cancel()
        subscriber.subscription.request(5)
        subscriber.subscription.request(UNBOUNDED)
    assert len(subscriber.items) == 1
    subscriber.assert_silent_after_cancel()


@each_shape
def test_cancel_after_the_end_does_nothing(shape: str) -> None:
    subscriber = TestSubscriber[Any]()
    SHAPES[shape](flow.range(3)).subscribe(subscriber)
    seen = len(subscriber.signals)
    subscriber.cancel()
    subscriber.request(1)
    assert len(subscriber.signals) == seen


@each_shape
def test_an_error_of_a_stage_after_cancel_is_dropped(shape: str, drops: Drops) -> None:
    error = ValueError("too late")
    subscriber = TestSubscriber[Any]()

    def cancel_and_fail(n: int) -> int:
        if n == 2:
            subscriber.cancel()
            raise error
        return n

    SHAPES[shape](flow.range(5).map(cancel_and_fail)).subscribe(subscriber)
    subscriber.assert_silent_after_cancel()
    assert drops.take_errors() == [error]


def test_cancel_reaches_the_upstream_once() -> None:
    for stages in (lambda f: f.map(str), lambda f: f.flat_map_iterable(str), lambda f: f.count()):
        publisher = TestPublisher[int]()
        subscriber = TestSubscriber[Any](1)
        stages(Flow(publisher)).subscribe(subscriber)
        subscriber.cancel()
        subscriber.cancel()
        assert publisher.cancels == 1


@pytest.mark.parametrize(
    "stages",
    [
        lambda f: f.map(str),
        lambda f: f.hide(),
        lambda f: f.filter(bool),
        lambda f: f.flat_map_iterable(lambda n: [n]),
        lambda f: f.count(),
        lambda f: f.buffer_with_count(2),
    ],
)
def test_an_upstream_that_ignores_cancel_is_not_heard(
    stages: Callable[[Flow[int]], Flow[Any]], drops: Drops
) -> None:
    for end in ("complete", "error"):
        publisher = TestPublisher[int](Violation.IGNORED_CANCEL | Violation.OVERFLOW)
        subscriber = TestSubscriber[Any](1)
        stages(Flow(publisher)).subscribe(subscriber)
        publisher.next(1)
        subscriber.cancel()
        publisher.next(2, 3)
        if end == "complete":
            publisher.complete()
        else:
            publisher.error(error := ValueError("too late"))
            assert drops.take_errors() == [error]
        subscriber.assert_silent_after_cancel()


@pytest.mark.checklist("F18", "F20")
@pytest.mark.parametrize(
    "stages",
    [
        lambda f: f.map(str).take(2),
        lambda f: f.take_while(lambda n: n < 3),
        lambda f: f.flat_map_iterable(lambda n: [n]).take(2),
        lambda f: f.take(2).to_list(),
        lambda f: f.map(lambda n: 1 // (3 - n)),
        lambda f: f.filter(lambda n: 1 // (3 - n)),
        lambda f: f.flat_map_iterable(lambda n: [1 // (3 - n)]),
    ],
)
@pytest.mark.parametrize("conditional", [False, True])
def test_signals_of_the_upstream_after_a_stage_has_ended_the_flow_are_ignored(
    stages: Callable[[Flow[int]], Flow[Any]], conditional: bool, drops: Drops
) -> None:
    publisher = TestPublisher[int](
        Violation.IGNORED_CANCEL | Violation.OVERFLOW | Violation.AFTER_TERMINAL,
        conditional=conditional,
    )
    subscriber = TestSubscriber[Any]()
    stages(Flow(publisher)).subscribe(subscriber)
    publisher.next(1, 2, 3)
    publisher.assert_cancelled()
    assert subscriber.terminated
    seen, asked = len(subscriber.signals), len(publisher.requests)
    publisher.next(4, 5, 6).complete()
    publisher.error(error := ValueError("too late"))
    assert len(subscriber.signals) == seen
    assert len(publisher.requests) == asked
    assert drops.take_errors() == [error]
    assert {4, 5, 6} <= set(drops.take_items())
    subscriber.assert_rules_kept()


@pytest.mark.parametrize(
    "stages",
    [
        lambda f: f.map(str),
        lambda f: f.hide(),
        lambda f: f.flat_map_iterable(lambda n: [n]),
        lambda f: f.count(),
    ],
)
def test_an_upstream_that_signals_after_its_terminal_is_not_heard(
    stages: Callable[[Flow[int]], Flow[Any]], drops: Drops
) -> None:
    first = ValueError("first")
    for end in (lambda p: p.complete(), lambda p: p.error(first)):
        publisher = TestPublisher[int](Violation.AFTER_TERMINAL | Violation.OVERFLOW)
        subscriber = TestSubscriber[Any]()
        stages(Flow(publisher)).subscribe(subscriber)
        publisher.next(1)
        end(publisher)
        publisher.next(2).complete()
        publisher.error(second := KeyError("second"))
        assert drops.take_errors() == [second]
        assert drops.take_items() == [2]
        assert subscriber.error in (None, first)
        subscriber.assert_rules_kept()


def test_a_second_upstream_is_cancelled_and_the_first_is_unaffected() -> None:
    for stages in (
        lambda f: f.map(str),
        lambda f: f.hide(),
        lambda f: f.flat_map_iterable(lambda n: [str(n)]),
    ):
        publisher = TestPublisher[int]()
        subscriber = TestSubscriber[Any]()
        stages(Flow(publisher)).subscribe(subscriber)
        second = publisher.subscribe_again()
        assert second.cancelled
        publisher.assert_not_cancelled().next(1).complete()
        assert len(subscriber.items) == 1
        assert subscriber.completed
        subscriber.assert_rules_kept()


# -- retention: without the garbage collector


@contextmanager
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Payload:
    """An item whose life is watched."""


each_case = pytest.mark.parametrize("case", STAGE_CASES, ids=lambda case: case.name)


@pytest.mark.parametrize("hidden", [False, True])
@each_case
def test_a_cancelled_subscription_keeps_no_subscriber_alive(case: StageCase, hidden: bool) -> None:
    """§3.13"""
    with without_collector():
        subscriber = TestSubscriber[Any](1)
        source = flow.range(100).hide() if hidden else flow.range(100)
        case.apply(source).subscribe(subscriber)
        subscription = subscriber.subscription
        subscription.cancel()
        alive = weakref.ref(subscriber)
        del subscriber
        assert alive() is None
        subscription.cancel()


@each_shape
def test_everything_dies_by_its_reference_count_after_cancel_completion_and_error(
    shape: str,
) -> None:
    class Source:
        def __init__(self) -> None:
            self.fail = False

        def __iter__(self) -> Iterator[int]:
            yield from range(5)
            if self.fail:
                raise ValueError

    with without_collector():
        for end in ("cancelled", "completed", "failed"):
            source = Source()
            source.fail = end == "failed"
            ended: list[bool] = []
            handle = SHAPES[shape](flow.from_iterable(source)).subscribe(
                lambda _: None,
                lambda _, ended=ended: ended.append(True),
                prefetch=1 if end == "cancelled" else None,
            )
            handle.dispose()
            alive = [weakref.ref(source), weakref.ref(handle)]
            del source, handle
            assert [reference() for reference in alive] == [None, None], end


@pytest.mark.parametrize(
    "ask",
    [
        list,
        Flow.first,
        lambda f: f.for_each(lambda _: None),
        lambda f: f.subscribe(lambda _: None, lambda _: None),
    ],
    ids=["iterated", "first", "for_each", "subscribed"],
)
@each_shape
def test_the_error_of_an_iterable_that_cannot_begin_dies_by_its_reference_count(
    shape: str, ask: Callable[[Flow[Any]], object]
) -> None:
    class CannotBegin(Exception):
        """An error whose life is watched."""

    class Source:
        def __iter__(self) -> Iterator[int]:
            raise CannotBegin

    with without_collector():
        raised: list[weakref.ref[CannotBegin]] = []
        made = SHAPES[shape](flow.from_iterable(Source()))
        try:
            ask(made.do_on_error(lambda error: raised.append(weakref.ref(error))))
        except CannotBegin:
            pass
        try:
            ask(made)
        except CannotBegin as error:
            raised.append(weakref.ref(error))
        assert raised
        assert [reference() for reference in raised] == [None] * len(raised)


def test_a_handle_with_prefetch_dies_by_its_reference_count() -> None:
    with without_collector():
        handle = flow.range(5).subscribe(lambda _: None, prefetch=2)
        alive = weakref.ref(handle)
        del handle
        assert alive() is None
        publisher = TestPublisher[int]()
        handle = Flow(publisher).map(str).subscribe(lambda _: None, prefetch=2)
        handle.dispose()
        alive = weakref.ref(handle)
        del handle
        assert alive() is None


@pytest.mark.parametrize(
    "stages",
    [
        lambda f: f.map(lambda p: p),
        lambda f: f.filter(bool),
        lambda f: f.flat_map_iterable(lambda p: [p, p]),
        lambda f: f.buffer_with_count(3),
        lambda f: f.scan(lambda _, p: p),
        lambda f: f.pairwise(),
        lambda f: f.to_list(),
        lambda f: f.distinct(),
        lambda f: f.reduce(lambda _, p: p),
    ],
)
@pytest.mark.parametrize("hidden", [False, True])
def test_a_cancelled_flow_keeps_no_item_alive(
    stages: Callable[[Flow[Payload]], Flow[Any]], hidden: bool, drops: Drops
) -> None:
    with without_collector():
        alive: list[weakref.ref[Payload]] = []

        def items() -> Iterator[Payload]:
            for _ in range(20):
                payload = Payload()
                alive.append(weakref.ref(payload))
                yield payload
                del payload

        made: Flow[Payload] = flow.from_iterable(items())
        received: list[Any] = []

        class Forgetful(flow.CoreSubscriber[Any]):
            def on_subscribe(self, subscription: Any, /) -> None:
                received.append(subscription)
                subscription.request(1)

            def on_next(self, item: Any, /) -> None:
                pass

            def on_error(self, error: BaseException, /) -> None:
                raise error

            def on_complete(self) -> None:
                pass

        stages(made.hide() if hidden else made).subscribe(Forgetful())
        received[0].cancel()
        drops.take_items()
        assert alive
        assert [reference() for reference in alive if reference() is not None] == []


def test_an_iteration_that_failed_leaves_no_cycle() -> None:
    class FailureError(Exception):
        pass

    def fail(n: int) -> int:
        raise FailureError

    with without_collector():
        for made in (flow.range(5).map(fail), flow.range(5).hide().map(fail)):
            alive: list[weakref.ref[Any]] = []
            try:
                list(made)
            except FailureError as error:
                alive.append(weakref.ref(error))
            assert alive[0]() is None
