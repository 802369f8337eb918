"""Two threads at one subscription: started together, over and over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event, Thread
from typing import Any

import pytest

import flow_core as flow
from flow_core import UNBOUNDED, Flow
from flow_testing import TIMEOUT_S, TestPublisher, TestSubscriber, Violation, race

pytestmark = pytest.mark.usefixtures("frequent_switches")

ROUNDS = 60

SHAPES: dict[str, Callable[[Flow[int]], Flow[Any]]] = {
    "source": lambda f: f,
    "stages": lambda f: f.filter(lambda n: n >= 0).map(lambda n: n),
    "hidden": lambda f: f.hide(),
    "pushed": lambda f: f.hide().map(lambda n: n),
    "pushed, conditional": lambda f: Flow(f).filter(lambda n: n >= 0),
    "many of one": lambda f: f.hide().flat_map_iterable(lambda n: [n]),
    "a rest": lambda f: f.hide().buffer_with_count(1).map(lambda items: items[0]),
    "aggregate": lambda f: f.hide().to_list().flat_map_iterable(lambda items: items),
}
each_shape = pytest.mark.parametrize("shape", SHAPES)


@each_shape
def test_no_demand_is_lost_when_two_threads_request(shape: str) -> None:
    for _ in range(ROUNDS // 4):
        subscriber = TestSubscriber[int](0)
        SHAPES[shape](flow.range(40)).subscribe(subscriber)

        def request(subscriber: TestSubscriber[int] = subscriber) -> None:
            for _ in range(20):
                subscriber.request(1)

        race(request, request)
        subscriber.assert_result(*range(40))


@each_shape
def test_cancel_and_request_at_once_leave_a_prefix(shape: str) -> None:
    for _ in range(ROUNDS):
        subscriber = TestSubscriber[int](0)
        SHAPES[shape](flow.range(30)).subscribe(subscriber)
        race(lambda s=subscriber: s.request(UNBOUNDED), subscriber.cancel)
        assert subscriber.items == list(range(len(subscriber.items)))
        subscriber.assert_rules_kept()
        seen = len(subscriber.signals)
        subscriber.request(5)
        assert len(subscriber.signals) == seen


@each_shape
def test_two_cancels_at_once_close_a_generator_once(shape: str) -> None:
    for _ in range(ROUNDS):
        closed: list[bool] = []

        def items(closed: list[bool] = closed) -> Iterator[int]:
            try:
                yield from range(30)
            finally:
                closed.append(True)

        subscriber = TestSubscriber[int](2)
        SHAPES[shape](flow.from_iterable(items())).subscribe(subscriber)
        race(subscriber.cancel, subscriber.cancel, lambda s=subscriber: s.request(3))
        assert closed == [True]
        subscriber.assert_rules_kept()


@each_shape
def test_a_bad_request_fails_once_and_never_while_an_item_is_delivered(shape: str) -> None:
    for _ in range(ROUNDS):
        subscriber = TestSubscriber[int](0)
        SHAPES[shape](flow.range(30)).subscribe(subscriber)
        race(
            lambda s=subscriber: s.request(UNBOUNDED),
            lambda s=subscriber: s.subscription.request(-1),
            lambda s=subscriber: s.subscription.request(0),
        )
        subscriber.await_terminal()
        assert subscriber.completed or isinstance(subscriber.error, ValueError)
        assert subscriber.items == list(range(len(subscriber.items)))
        subscriber.assert_rules_kept()


@pytest.mark.parametrize(
    "stages",
    [
        lambda f: f.map(lambda n: n),
        lambda f: f.flat_map_iterable(lambda n: [n]),
        lambda f: f.take(3),
        lambda f: f.to_list(),
    ],
)
def test_a_bad_request_waits_for_an_item_that_is_being_delivered(
    stages: Callable[[Flow[int]], Flow[Any]],
) -> None:
    """§3.9 with §1.3: the error comes after on_next has returned, by the thread that was in it."""
    entered, go_on = Event(), Event()

    def block(subscriber: TestSubscriber[Any], _: object) -> None:
        entered.set()
        assert go_on.wait(TIMEOUT_S)

    publisher = TestPublisher[int](Violation.OVERFLOW)
    subscriber = TestSubscriber[Any](on_item=block)
    stages(Flow(publisher)).subscribe(subscriber)

    def send() -> None:
        publisher.next(1, 2, 3).complete()

    thread = Thread(target=send)
    thread.start()
    assert entered.wait(TIMEOUT_S)
    subscriber.subscription.request(-1)
    subscriber.assert_not_terminated()
    go_on.set()
    thread.join(TIMEOUT_S)
    subscriber.assert_failure(ValueError, *subscriber.items)
    assert len(subscriber.items) == 1


@pytest.mark.parametrize(
    "stages",
    [
        lambda f: f.map(lambda n: n),
        lambda f: f.filter(lambda n: True),
        lambda f: f.flat_map_iterable(lambda n: [n]),
        lambda f: f.on_error_return(0),
    ],
)
def test_a_bad_request_between_items_of_another_thread_is_the_last_signal(
    stages: Callable[[Flow[int]], Flow[Any]],
) -> None:
    """CPython 3.13 would close a loop that has just been entered, and let it continue."""
    for _ in range(ROUNDS // 4):
        publisher = TestPublisher[int](Violation.OVERFLOW | Violation.IGNORED_CANCEL)
        subscriber = TestSubscriber[Any]()
        stages(Flow(publisher)).subscribe(subscriber)

        def send(publisher: Any = publisher, subscriber: Any = subscriber) -> None:
            while not subscriber.terminated:
                publisher.next(0)
            publisher.next(0)

        thread = Thread(target=send, daemon=True)
        thread.start()
        subscriber.await_items(9)
        subscriber.subscription.request(0)
        subscriber.await_terminal()
        thread.join(TIMEOUT_S)
        assert not thread.is_alive()
        subscriber.assert_failure(ValueError, *subscriber.items)


@pytest.mark.parametrize(
    "stages",
    [
        lambda f: f.map(lambda n: n),
        lambda f: f.filter(lambda n: n % 2),
        lambda f: f.flat_map_iterable(lambda n: [n]),
        lambda f: f.buffer_with_count(2),
        lambda f: f.to_list(),
    ],
)
def test_items_and_requests_from_two_threads_meet(
    stages: Callable[[Flow[int]], Flow[Any]],
) -> None:
    for _ in range(ROUNDS):
        publisher = TestPublisher[int](Violation.OVERFLOW)
        subscriber = TestSubscriber[Any](0)
        stages(Flow(publisher)).subscribe(subscriber)
        subscriber.request(20)

        def send(publisher: TestPublisher[int] = publisher) -> None:
            publisher.next(*range(20)).complete()

        def request(subscriber: TestSubscriber[Any] = subscriber) -> None:
            for _ in range(20):
                subscriber.request(1)

        race(send, request)
        subscriber.assert_result(*stages(flow.range(20)))


@pytest.mark.parametrize(
    "stages",
    [
        lambda f: f.map(lambda n: n),
        lambda f: f.flat_map_iterable(lambda n: [n]),
        lambda f: f.to_list(),
        lambda f: f.hide(),
    ],
)
def test_cancel_while_an_upstream_sends_and_completes(
    stages: Callable[[Flow[int]], Flow[Any]],
) -> None:
    for _ in range(ROUNDS):
        publisher = TestPublisher[int](Violation.OVERFLOW | Violation.IGNORED_CANCEL)
        subscriber = TestSubscriber[Any]()
        stages(Flow(publisher)).subscribe(subscriber)

        def send(publisher: TestPublisher[int] = publisher) -> None:
            publisher.next(*range(20)).complete()

        race(send, subscriber.cancel)
        subscriber.assert_rules_kept()
        seen = len(subscriber.signals)
        publisher.requests.clear()
        subscriber.request(1)
        assert len(subscriber.signals) == seen


def test_an_error_and_requests_of_two_threads_give_one_terminal() -> None:
    for _ in range(ROUNDS):
        subscriber = TestSubscriber[int](0)
        error = ValueError()
        holder: list[Any] = []

        class Late(TestSubscriber[int]):
            pass

        late = Late(0)
        flow.error(error).subscribe(subscriber)
        subscriber.assert_failure(error)
        flow.never().subscribe(late)
        holder.append(late)
        race(
            lambda s=late: s.subscription.request(-1),
            lambda s=late: s.subscription.request(-1),
            lambda s=late: s.request(1),
        )
        late.assert_failure(ValueError)


def test_a_fused_flow_that_is_cancelled_by_another_thread_ends_there() -> None:
    for _ in range(ROUNDS):
        closed: list[bool] = []

        def items(closed: list[bool] = closed) -> Iterator[int]:
            try:
                yield from range(200)
            finally:
                closed.append(True)

        subscriber = TestSubscriber[int](1, fusion=flow.Fusion.SYNC)
        flow.from_iterable(items()).map(lambda n: n).subscribe(subscriber)
        assert subscriber.fused
        race(lambda s=subscriber: s.request(UNBOUNDED), subscriber.subscription.cancel)
        assert closed == [True]
        assert subscriber.error is None
        assert subscriber.items == list(range(len(subscriber.items)))
