"""Operators of signals, without RxAgera's defects: take, flat_map, take_until, termination."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import flow_core as flow
from flow_core.errors import RejectedExecutionError
from flow_core.executors import Task
from flow_rxcompat._outlets import Outlet
from flow_rxcompat.signals import UPDATE, Dispatcher, MutableRepository, Observable, Signal, merge
from flow_testing import Drops, TestSubscriber, assert_result


class Executor:
    def __init__(self) -> None:
        self.tasks: deque[Task] = deque()

    def __call__(self, task: Task) -> None:
        self.tasks.append(task)

    def run(self) -> None:
        while self.tasks:
            self.tasks.popleft()()


class Heard:
    """The signals of an observable."""

    def __init__(self, observable: Observable) -> None:
        self.signals: list[object] = []
        self.handle = observable.register(
            lambda: self.signals.append("u"),
            on_error=self.signals.append,
            on_complete=lambda: self.signals.append("|"),
        )

    @property
    def text(self) -> str:
        return "".join(map(str, self.signals))


def times(n: int) -> Observable:
    return Observable(flow.range(n).map(lambda _: UPDATE))


def test_take_leaves_the_source_and_a_removal_afterwards_does_nothing() -> None:
    source = Dispatcher()
    heard = Heard(source.take(2))
    for _ in range(5):
        source.update()
    assert heard.text == "uu|"
    assert not source.has_updatables
    heard.handle.remove()


def test_flat_map_passes_on_all_of_all() -> None:
    source, inner = Dispatcher(), [Dispatcher(), Dispatcher()]
    opened = iter(inner)
    heard = Heard(source.flat_map(lambda: next(opened)))
    source.update()
    inner[0].update()
    source.update()
    inner[0].update()
    inner[1].update()
    assert heard.text == "uuu"
    source.complete()
    inner[0].complete()
    inner[1].update()
    assert heard.text == "uuuu"
    inner[1].complete()
    assert heard.text == "uuuu|"
    assert Heard(times(3).flat_map(lambda: times(2))).text == "uuuuuu|"


def test_flat_map_registers_with_as_many_at_a_time_as_its_concurrency() -> None:
    opened: list[Dispatcher] = []

    def inner() -> Observable:
        opened.append(Dispatcher())
        return opened[-1]

    heard = Heard(times(5).flat_map(inner, concurrency=2))
    assert len(opened) == 2
    opened[0].complete()
    assert len(opened) == 3
    for one in opened[1:]:
        one.complete()
    for one in opened[3:]:
        one.update()
        one.complete()
    assert (len(opened), heard.text) == (5, "uu|")
    with pytest.raises(ValueError, match="concurrency"):
        times(5).flat_map(inner, concurrency=0)


def test_flat_map_fails_with_any_of_them_and_leaves_the_others() -> None:
    source, inner = Dispatcher(), Dispatcher()
    error = LookupError("why")
    heard = Heard(source.flat_map(lambda: inner))
    source.update()
    inner.error(error)
    assert heard.signals == [error]
    assert not source.has_updatables

    def fails() -> Observable:
        raise error

    source = Dispatcher()
    heard = Heard(source.flat_map(fails))
    source.update()
    assert heard.signals == [error]
    assert not source.has_updatables


@pytest.mark.parametrize("how", ["update", "complete"])
def test_take_until_leaves_both(how: str) -> None:
    source, other = Dispatcher(), Dispatcher()
    heard = Heard(source.take_until(other))
    source.update()
    getattr(other, how)()
    source.update()
    assert heard.text == "u|"
    assert not source.has_updatables
    assert not other.has_updatables


def test_take_until_that_is_removed_leaves_both() -> None:
    source, other = Dispatcher(), Dispatcher()
    heard = Heard(source.take_until(other))
    assert source.has_updatables
    assert other.has_updatables
    heard.handle.remove()
    assert not source.has_updatables
    assert not other.has_updatables


def test_take_until_something_that_is_there_already() -> None:
    source = Dispatcher()
    heard = Heard(source.take_until(flow.just(1)))
    assert heard.text == "|"
    assert not source.has_updatables
    ended = Dispatcher()
    ended.complete()
    assert Heard(ended.take_until(Dispatcher())).text == "|"


def test_merge_ends_with_the_last_and_fails_with_the_first() -> None:
    one, other = Dispatcher(), Dispatcher()
    heard = Heard(merge(one, other))
    one.update()
    other.update()
    one.complete()
    other.update()
    assert heard.text == "uuu"
    other.complete()
    assert heard.text == "uuu|"
    one, other, error = Dispatcher(), Dispatcher(), LookupError()
    heard = Heard(one.merge_with(other))
    one.error(error)
    assert heard.signals == [error]
    assert not other.has_updatables
    assert Heard(merge()).text == "|"
    assert Heard(merge(times(2), times(3))).text == "uuuuu|"


def test_the_simple_ones() -> None:
    source, open_, done = Dispatcher(), [True], list[str]()
    skipped, filtered = Heard(source.skip(1)), Heard(source.filter(lambda: open_[0]))
    while_, seen = (
        Heard(source.take_while(lambda: open_[0])),
        Heard(source.do_on_update(lambda: done.append("did"))),
    )
    values: list[int] = []
    source.map(lambda: len(done)).subscribe(values.append)
    source.update()
    open_[0] = False
    source.update()
    source.complete()
    assert (skipped.text, filtered.text, while_.text, seen.text) == ("u|", "u|", "u|", "uu|")
    assert (done, values) == (["did", "did"], [1, 2])


def test_an_error_in_an_action_is_the_observables() -> None:
    source, error = Dispatcher(), LookupError("in the action")

    def fails() -> None:
        raise error

    heard = Heard(source.do_on_update(fails))
    source.update()
    assert heard.signals == [error]
    assert not source.has_updatables


@pytest.mark.checklist("A21")
def test_the_caller_reacts_first_and_then_the_executor() -> None:
    source, executor, order = Dispatcher(), Executor(), list[str]()
    observed = source.do_on_update(lambda: order.append("caller")).observe_on(executor)
    observed.register(lambda: order.append("executor"), on_complete=lambda: order.append("end"))
    source.update()
    source.update()
    assert order == ["caller", "caller"]
    source.complete()
    executor.run()
    assert order == ["caller", "caller", "executor", "executor", "end"]


@pytest.mark.checklist("A21")
def test_the_consumer_runs_on_its_thread_and_no_update_is_lost() -> None:
    source, threads, done = Dispatcher(), set[str](), threading.Event()
    count = [0]
    with ThreadPoolExecutor(1, thread_name_prefix="consumer") as pool:

        def update() -> None:
            count[0] += 1
            threads.add(threading.current_thread().name)

        source.observe_on(pool).register(update, on_complete=done.set)
        for _ in range(10_000):
            source.update()
        source.complete()
        assert done.wait(30)
    assert (count, threads) == ([10_000], {"consumer_0"})


@pytest.mark.checklist("A21")
def test_coalescing_is_a_choice() -> None:
    source, executor = Dispatcher(), Executor()
    heard = Heard(source.observe_on(executor, coalesce=True))
    for _ in range(10):
        source.update()
    executor.run()
    assert heard.text == "u"


def test_waiting_updates_at_the_end_are_not_lost_by_later_ones() -> None:
    other = Dispatcher()
    count = Dispatcher()
    waiting = TestSubscriber[Signal](0)
    count.take_until(other).subscribe(waiting)
    link = waiting.subscription
    count.update()
    count.update()
    assert isinstance(link, Outlet)
    other.update()
    link.put(UPDATE)  # a source that is not cancelled at once
    link.signal()
    waiting.request(100)
    waiting.assert_result(UPDATE, UPDATE)


def test_leaving_an_executor_that_was_shut_down_is_not_an_error() -> None:
    source, pool = Dispatcher(), ThreadPoolExecutor(1)
    handle = source.observe_on(pool).register(lambda: None)
    pool.shutdown()
    handle.remove()
    assert not source.has_updatables


def test_an_updatable_that_was_removed_is_no_longer_notified_by_the_executor() -> None:
    source, executor = Dispatcher(), Executor()
    heard = Heard(source.observe_on(executor))
    source.update()
    heard.handle.remove()
    executor.run()
    assert heard.text == ""
    assert not source.has_updatables


def test_an_executor_that_takes_no_more_fails_it() -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    source = Dispatcher()
    heard = Heard(source.observe_on(pool))
    source.update()
    assert isinstance(heard.signals[0], RejectedExecutionError)
    heard = Heard(source.subscribe_on(pool))
    assert isinstance(heard.signals[0], RejectedExecutionError)


@pytest.mark.checklist("A21")
def test_subscribe_on_registers_in_the_executor() -> None:
    executor, where = Executor(), list[str]()
    source = Observable(flow.defer(lambda: where.append("subscribed") or flow.just(UPDATE, UPDATE)))
    heard = Heard(source.subscribe_on(executor))
    assert (where, heard.text) == ([], "")
    executor.run()
    assert (where, heard.text) == (["subscribed"], "uu|")


def test_subscribe_on_that_is_removed_before_never_registers() -> None:
    executor, source = Executor(), Dispatcher()
    heard = Heard(source.subscribe_on(executor))
    heard.handle.remove()
    executor.run()
    assert not source.has_updatables
    assert heard.text == ""


@pytest.mark.parametrize("n", [0, -1])
def test_a_bad_request_fails_with_its_rule(n: int) -> None:
    source = Dispatcher()
    subscriber: TestSubscriber[Signal] = TestSubscriber(0)
    merge(source).subscribe(subscriber)
    subscriber.request(n)
    subscriber.assert_failure(ValueError)
    assert not source.has_updatables


def test_an_error_that_waits_when_a_bad_request_comes_goes_to_the_hook(drops: Drops) -> None:
    numbers, subscriber, error = MutableRepository(0), TestSubscriber[int](0), LookupError("why")
    numbers.values(strategy="buffer").subscribe(subscriber)
    numbers.error(error)
    subscriber.request(-1)
    subscriber.assert_failure(ValueError)
    assert (drops.take_items(), drops.take_errors()) == ([0], [error])


def test_an_error_that_waits_when_a_subscriber_raises_goes_to_the_hook(drops: Drops) -> None:
    numbers, error, raised = MutableRepository(0), LookupError("why"), ValueError("mine")

    def fail(*_: object) -> None:
        numbers.error(error)
        raise raised

    numbers.values(strategy="buffer").subscribe(TestSubscriber[int](on_item=fail))
    assert drops.take_errors() == [error, raised]


def test_an_error_that_the_executor_does_not_take_goes_to_the_hook(drops: Drops) -> None:
    source, pool, error = Dispatcher(), ThreadPoolExecutor(1), LookupError("why")
    heard = Heard(source.observe_on(pool))
    pool.shutdown()
    source.error(error)
    assert isinstance(heard.signals[0], RejectedExecutionError)
    assert drops.take_errors() == [error]


# -- the repository


def test_a_repository_tells_of_changes_and_holds_the_value() -> None:
    numbers = MutableRepository(0)
    heard = Heard(numbers)
    numbers.accept(0)
    assert heard.text == ""
    numbers.accept(1)
    assert (heard.text, numbers.get()) == ("u", 1)
    numbers.complete()
    assert heard.text == "u|"


def test_no_lock_is_held_while_equality_is_asked() -> None:
    class Curious:
        def __eq__(self, other: object) -> bool:
            if other == "first":
                values.accept("meanwhile")
            seen.append(values.get())
            return False

        __hash__ = None  # type: ignore[assignment]

    values, seen = MutableRepository[object]("first"), list[object]()
    heard = list[object]()
    values.values(strategy="buffer", current=False).subscribe(heard.append)
    curious = Curious()
    values.accept(curious)
    assert seen == ["meanwhile", "meanwhile"]  # asked again, of what had come between
    assert heard == ["meanwhile", curious]


def test_values_come_as_the_strategy_says() -> None:
    numbers = MutableRepository(0)
    buffered: TestSubscriber[int] = TestSubscriber(0)
    latest: TestSubscriber[int] = TestSubscriber(0)
    dropped: TestSubscriber[int] = TestSubscriber(1)
    numbers.values(strategy="buffer").subscribe(buffered)
    numbers.values(strategy="latest").subscribe(latest)
    numbers.values(strategy="drop", current=False).subscribe(dropped)
    for n in (1, 2, 3):
        numbers.accept(n)
    numbers.complete()
    for subscriber in (buffered, latest, dropped):
        subscriber.request(10)
        assert subscriber.completed
    assert (buffered.items, latest.items, dropped.items) == ([0, 1, 2, 3], [3], [1])


def test_values_end_with_the_error_for_late_subscribers_too() -> None:
    numbers, error = MutableRepository(0), LookupError("why")
    early: TestSubscriber[int] = TestSubscriber()
    numbers.values().subscribe(early)
    numbers.error(error)
    numbers.accept(1)
    late: TestSubscriber[int] = TestSubscriber()
    numbers.values().subscribe(late)
    early.assert_failure(error, 0)
    late.assert_failure(error)
    assert Heard(numbers).signals == [error]


# -- in every form there is


def inline(task: Task) -> None:
    task()


@pytest.mark.parametrize(
    ("make", "count"),
    [
        (lambda: times(3), 3),
        (lambda: times(3).take(2), 2),
        (lambda: times(3).skip(1).filter(lambda: True), 2),
        (lambda: merge(times(2), times(1)), 3),
        (lambda: times(2).flat_map(lambda: times(2)), 4),
        (lambda: times(3).take_until(Dispatcher()), 3),
        (lambda: times(3).observe_on(inline), 3),
        (lambda: times(3).subscribe_on(inline), 3),
    ],
    ids=["all", "take", "stages", "merge", "flat_map", "take_until", "observe_on", "subscribe_on"],
)
def test_the_same_result_however_it_is_run(make: Callable[[], Observable], count: int) -> None:
    assert_result(lambda: make().flow, [UPDATE] * count)


@pytest.mark.parametrize(
    "apply",
    [
        lambda source: source.skip(1),
        merge,
        lambda source: source.flat_map(lambda: times(1)).skip(1),
        lambda source: source.take_until(Dispatcher()).skip(1),
        lambda source: source.observe_on(inline).skip(1),
        lambda source: source.subscribe_on(inline).skip(1),
    ],
    ids=["stages", "merge", "flat_map", "take_until", "observe_on", "subscribe_on"],
)
def test_the_same_error_however_it_is_run(apply: Callable[[Observable], Observable]) -> None:
    error = LookupError("why")

    def generate() -> Iterator[Signal]:
        yield from [UPDATE, UPDATE, UPDATE]
        raise error

    def failing() -> Observable:
        return Observable(flow.defer(lambda: flow.from_iterable(generate())))

    count = 3 if apply is merge else 2
    assert_result(lambda: apply(failing()).flow, [UPDATE] * count, error)
