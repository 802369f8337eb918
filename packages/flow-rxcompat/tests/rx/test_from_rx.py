"""`from_rx`: what an Observable pushes, as a flow."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from threading import Barrier, Event, Thread
from typing import Any

import pytest
import reactivex
from reactivex import Observable
from reactivex import operators as ops
from reactivex.abc import ObserverBase, SchedulerBase
from reactivex.disposable import Disposable
from reactivex.scheduler import NewThreadScheduler
from reactivex.subject import BehaviorSubject, ReplaySubject, Subject

import flow_core as flow
from flow_core.errors import FlowError, MissingBackpressureError, NoneItemError
from flow_core.structure import source_of
from flow_rxcompat.rx import from_rx
from flow_testing import Drops, TestSubscriber, assert_result

Pushing = Callable[[ObserverBase[Any]], object]


def pushing(push: Pushing, on_dispose: Callable[[], None] = lambda: None) -> Observable[Any]:
    """An Observable that pushes in its subscribe function."""

    def subscribe(observer: ObserverBase[Any], _: SchedulerBase | None = None) -> Disposable:
        push(observer)
        return Disposable(on_dispose)

    return Observable(subscribe)


# -- results


@pytest.mark.parametrize("count", [0, 1, 2, 5, 300])
def test_gives_what_the_observable_pushes_in_every_form(count: int) -> None:
    assert_result(lambda: from_rx(reactivex.range(count)), [*range(count)])


def test_gives_the_error_after_the_items_as_the_identical_object() -> None:
    error = LookupError("theirs")
    failing = reactivex.of(1, 2).pipe(ops.concat(reactivex.throw(error)))
    assert_result(lambda: from_rx(failing), [1, 2], error)


def test_each_subscriber_runs_a_cold_observable_again() -> None:
    runs: list[int] = []
    numbers = from_rx(reactivex.defer(lambda _: reactivex.of(runs.append(1) or len(runs))))
    assert [*numbers, *numbers] == [1, 2]


def test_it_continues_with_the_operators_of_a_flow() -> None:
    assert list(from_rx(reactivex.range(10)).filter(lambda n: n % 2 == 0).pairwise()) == [
        (0, 2),
        (2, 4),
        (4, 6),
        (6, 8),
    ]


@pytest.mark.checklist("A22")
def test_the_registry_makes_a_flow_of_an_observable() -> None:
    assert list(flow.from_(reactivex.of(1, 2))) == [1, 2]


def test_the_registry_makes_a_flow_of_a_subject_and_of_a_connectable() -> None:
    subject = BehaviorSubject(1)
    assert flow.from_(subject).first() == 1
    connectable = reactivex.of(1, 2).pipe(ops.publish())
    subscriber = TestSubscriber[object]()
    flow.from_(connectable).subscribe(subscriber)
    subscriber.assert_no_items()
    connectable.connect()
    subscriber.assert_result(1, 2)


# -- what is not requested


def test_buffer_keeps_everything_without_loss() -> None:
    subscriber = TestSubscriber[int](0)
    from_rx(reactivex.range(1_000)).subscribe(subscriber)
    subscriber.assert_no_items()
    subscriber.request(400)
    subscriber.assert_items(*range(400)).assert_not_terminated()
    subscriber.request(600)
    subscriber.assert_result(*range(1_000))


def test_buffer_with_a_capacity_fails_after_waiting_items(drops: Drops) -> None:
    subscriber = TestSubscriber[int](0)
    disposed: list[int] = []
    numbers = reactivex.range(10).pipe(ops.finally_action(lambda: disposed.append(1)))
    from_rx(numbers, capacity=3).subscribe(subscriber)
    subscriber.request(10)
    subscriber.assert_failure(MissingBackpressureError, 0, 1, 2)
    assert drops.take_items()[0] == 3
    assert disposed == [1]


def test_latest_gives_the_last_item_for_sure(drops: Drops) -> None:
    subscriber = TestSubscriber[int](1)
    from_rx(reactivex.range(10), strategy="latest").subscribe(subscriber)
    subscriber.assert_items(0)
    subscriber.request(5)
    subscriber.assert_result(0, 9)
    assert drops.take_items() == list(range(1, 9))


def test_drop_sends_the_items_that_are_requested_when_they_come(drops: Drops) -> None:
    subscriber = TestSubscriber[int](2)
    from_rx(reactivex.range(5), strategy="drop").subscribe(subscriber)
    subscriber.assert_result(0, 1)
    assert drops.take_items() == [2, 3, 4]


def test_error_fails_when_an_item_is_not_requested(drops: Drops) -> None:
    subscriber = TestSubscriber[int](2)
    from_rx(reactivex.range(5), strategy="error").subscribe(subscriber)
    subscriber.assert_failure(MissingBackpressureError, 0, 1)
    subscriber.assert_error_message("from_rx")
    drops.take_items()


# -- subjects and connectables


def test_a_subject_gives_what_comes_from_then_on() -> None:
    subject = Subject[int]()
    subscriber = TestSubscriber[int]()
    subject.on_next(0)
    from_rx(subject).subscribe(subscriber)
    subject.on_next(1)
    subject.on_next(2)
    subject.on_completed()
    subscriber.assert_result(1, 2)
    assert subject.observers == []


def test_a_replay_subject_gives_what_was_before() -> None:
    subject = ReplaySubject[int]()
    subject.on_next(1)
    subject.on_next(2)
    assert list(from_rx(subject).take(2)) == [1, 2]
    assert subject.observers == []


def test_a_subject_that_was_disposed_of_fails_the_flow() -> None:
    subject = Subject[int]()
    subject.dispose()
    subscriber = TestSubscriber[int]()
    from_rx(subject).subscribe(subscriber)
    assert subscriber.error is not None
    assert "Disposed" in type(subscriber.error).__name__


def test_pushing_from_within_on_next_keeps_the_order() -> None:
    subject = Subject[int]()
    seen: list[int] = []

    def on_next(n: int) -> None:
        if n < 3:
            subject.on_next(n + 1)
        seen.append(n)

    from_rx(subject).subscribe(on_next)
    subject.on_next(1)
    assert seen == [1, 2, 3]


# -- the end


@pytest.mark.parametrize("taken", [1, 3])
def test_a_cancel_from_within_on_next_stops_a_source_that_does_not_return(taken: int) -> None:
    disposed: list[int] = []
    endless = reactivex.from_iterable(itertools.count()).pipe(
        ops.finally_action(lambda: disposed.append(1))
    )
    assert list(from_rx(endless).take(taken)) == list(range(taken))
    assert disposed == [1]


def test_a_cancel_disposes_once() -> None:
    disposed: list[int] = []
    subscriber = TestSubscriber[int]()
    never: Observable[int] = reactivex.never().pipe(ops.finally_action(lambda: disposed.append(1)))
    from_rx(never).subscribe(subscriber)
    assert disposed == []
    subscriber.cancel()
    subscriber.cancel()
    assert disposed == [1]


def test_a_cancel_before_the_disposable_is_there_disposes_of_it() -> None:
    disposed: list[int] = []

    def push(observer: ObserverBase[int]) -> None:
        for n in range(5):
            observer.on_next(n)

    made = pushing(push, lambda: disposed.append(1))
    assert list(from_rx(made).take(2)) == [0, 1]
    assert disposed == [1]


def test_an_end_before_the_disposable_is_there_disposes_of_it() -> None:
    disposed: list[int] = []
    made = pushing(lambda observer: observer.on_completed(), lambda: disposed.append(1))
    assert list(from_rx(made)) == []
    assert disposed == [1]


def test_a_subscriber_that_cancels_in_on_subscribe_does_not_start_it() -> None:
    runs: list[int] = []

    class Leaving(TestSubscriber[int]):
        def on_subscribe(self, subscription: flow.Subscription, /) -> None:
            super().on_subscribe(subscription)
            self.cancel()

    from_rx(pushing(lambda _: runs.append(1))).subscribe(Leaving())
    assert runs == []


def test_an_error_of_the_subscriber_stops_the_observable(drops: Drops) -> None:
    subject = Subject[int]()
    error = ValueError("mine")
    seen: list[BaseException] = []

    def fail(_: int) -> None:
        raise error

    from_rx(subject).subscribe(fail, seen.append)
    subject.on_next(1)
    assert seen == [error]
    assert subject.observers == []


def test_an_error_of_a_dispose_goes_to_the_hook(drops: Drops) -> None:
    error = ValueError("theirs")

    def fail() -> None:
        raise error

    subscriber = TestSubscriber[int]()
    from_rx(pushing(lambda _: None, fail)).subscribe(subscriber)
    subscriber.cancel()
    assert drops.take_errors() == [error]


# -- mistakes


def test_an_error_of_the_subscribe_function_fails_the_flow() -> None:
    error = ValueError("theirs")

    def push(_: ObserverBase[int]) -> None:
        raise error

    assert_result(lambda: from_rx(pushing(push)), [], error)


def test_none_fails_the_flow_and_disposes() -> None:
    disposed: list[int] = []
    numbers = reactivex.of(1, None, 2).pipe(ops.finally_action(lambda: disposed.append(1)))
    subscriber = TestSubscriber[int | None]()
    from_rx(numbers).subscribe(subscriber)
    subscriber.assert_failure(NoneItemError, 1)
    assert disposed == [1]


def test_an_error_that_is_not_an_exception_becomes_one() -> None:
    def push(observer: ObserverBase[int]) -> None:
        observer.on_error("text")  # type: ignore[arg-type]  # what some sources do

    subscriber = TestSubscriber[int]()
    from_rx(pushing(push)).subscribe(subscriber)
    subscriber.assert_failure(TypeError).assert_error_message("'text'")


def test_a_fatal_error_that_was_caught_becomes_the_cause() -> None:
    error = MemoryError()

    def fail(_: int) -> int:
        raise error

    subscriber = TestSubscriber[int]()
    from_rx(reactivex.of(1).pipe(ops.map(fail))).subscribe(subscriber)
    subscriber.assert_failure(FlowError)
    assert subscriber.error is not None
    assert subscriber.error.__cause__ is error


def test_a_second_error_goes_to_the_hook(drops: Drops) -> None:
    emitted: list[ObserverBase[int]] = []
    late = LookupError("late")

    class Careless(Observable[int]):
        """Calls observers without the guard that `reactivex` puts before them."""

        def subscribe(self, on_next: Any = None, *_: Any, **__: Any) -> Disposable:
            emitted.append(on_next)
            return Disposable()

    subscriber = TestSubscriber[int]()
    from_rx(Careless()).subscribe(subscriber)
    emitted[0].on_completed()
    emitted[0].on_error(late)
    emitted[0].on_next(7)
    subscriber.assert_result()
    assert drops.take_errors() == [late]
    assert drops.take_items() == [7]


@pytest.mark.parametrize(
    "wrong", [{"strategy": "keep"}, {"capacity": 0}, {"capacity": -1}], ids=str
)
def test_from_rx_refuses_an_invalid_strategy_or_capacity(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        from_rx(reactivex.empty(), **wrong)


@pytest.mark.parametrize("wrong", [None, [1, 2], flow.just(1)], ids=["None", "list", "flow"])
def test_from_rx_refuses_a_value_that_is_not_an_observable(wrong: Any) -> None:
    with pytest.raises(TypeError, match="from_rx"):
        from_rx(wrong)


def test_messages_name_it() -> None:
    assert repr(source_of(from_rx(Subject[int]()))) == "from_rx(Subject)"


# -- threads


def test_items_that_several_threads_push_at_once_come_one_by_one() -> None:
    subject = Subject[tuple[int, int]]()
    subscriber = TestSubscriber[tuple[int, int]]()
    from_rx(subject).subscribe(subscriber)
    together = Barrier(4)

    def push(who: int) -> None:
        together.wait()
        for n in range(500):
            subject.on_next((who, n))

    threads = [Thread(target=push, args=(who,)) for who in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    subject.on_completed()
    subscriber.assert_rules_kept()
    assert len(subscriber.items) == 2_000
    for who in range(4):
        assert [n for one, n in subscriber.items if one == who] == list(range(500))


@pytest.mark.checklist("A14")
@pytest.mark.parametrize(
    ("strategy", "all_of_them"), [("buffer", True), ("latest", False)], ids=str
)
def test_a_hundred_thousand_items_against_a_slow_thread(
    strategy: Any, all_of_them: bool, drops: Drops
) -> None:
    subject = Subject[int]()
    pushed = Event()
    seen: list[int] = []

    def consume() -> None:
        for n in numbers:
            if not seen:
                subscribed.set()
                pushed.wait(30)
            seen.append(n)

    numbers = from_rx(subject, strategy=strategy).hide()
    subscribed = Event()
    consumer = Thread(target=consume)
    consumer.start()
    while not subject.observers:
        pass
    for n in range(100_000):
        subject.on_next(n)
    subject.on_completed()
    pushed.set()
    consumer.join(30)
    if all_of_them:
        assert seen == list(range(100_000))
    else:
        assert seen[-1] == 99_999
        assert seen == sorted(set(seen))
        assert len(seen) + len(drops.take_items()) == 100_000


def test_the_scheduler_is_what_the_observable_works_on() -> None:
    subscriber = TestSubscriber[int]()
    from_rx(reactivex.range(3), scheduler=NewThreadScheduler()).subscribe(subscriber)
    subscriber.await_terminal().assert_result(0, 1, 2)
    subscriber.assert_not_on_thread("MainThread")


def test_within_an_action_of_reactivex_it_can_be_waited_for_on_another_thread() -> None:
    inner = from_rx(reactivex.of(1, 2), scheduler=NewThreadScheduler())
    seen: list[list[int]] = []
    reactivex.of("a", "b").subscribe(lambda _: seen.append(list(inner)))
    assert seen == [[1, 2], [1, 2]]


def test_within_an_action_of_reactivex_it_comes_after_that_action() -> None:
    seen: list[object] = []

    def on_next(name: str) -> None:
        from_rx(reactivex.of(name)).subscribe(seen.append)
        seen.append(name.upper())

    reactivex.of("a", "b").subscribe(on_next)
    assert seen == ["A", "B", "a", "b"]
