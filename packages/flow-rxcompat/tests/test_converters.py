"""Agera, signals and flows, each into each other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flow_core as flow
from flow_core import Flow
from flow_core.errors import MissingBackpressureError, NoneItemError
from flow_core.plugins import plugin_host
from flow_core.protocols import Subscriber
from flow_multicast import BehaviorProcessor, DirectProcessor
from flow_rxcompat.agera import (
    BaseObservable,
    IllegalStateError,
    Observable,
    TestLoop,
    Updatable,
    observables,
    repositories,
    reservoirs,
)
from flow_rxcompat.converters import (
    agera_to_signals,
    from_agera,
    from_repository,
    from_reservoir,
    from_signals,
    to_agera,
    to_repository,
    to_reservoir,
    to_signals,
    to_subscriber,
    to_update_dispatcher,
)
from flow_rxcompat.signals import UPDATE, Dispatcher, MutableRepository, Signal
from flow_testing import Drops, TestPublisher, TestSubscriber


class Source(BaseObservable):
    """An observable that says whether it has updatables."""

    def __init__(self) -> None:
        super().__init__()
        self.active = 0

    def observable_activated(self) -> None:
        self.active += 1

    def observable_deactivated(self) -> None:
        self.active -= 1


class Link:
    """A subscription that counts."""

    requested = cancelled = 0

    def request(self, n: int, /) -> None:
        self.requested += n

    def cancel(self) -> None:
        self.cancelled += 1


class Doubled(BaseObservable):
    """A third-party repository: an update is all that it shows."""

    def __init__(self, value: int) -> None:
        super().__init__()
        self.value = value
        self.gets = 0

    def get(self) -> int:
        self.gets += 1
        if self.value < 0:
            raise LookupError("negative")
        return 2 * self.value

    def set(self, value: int) -> None:
        self.value = value
        self.dispatch_update()


# -- Agera to Flow


@pytest.mark.checklist("A22")
def test_updates_are_signals_and_one_waits() -> None:
    with TestLoop() as loop:
        source, subscriber = Source(), TestSubscriber[Signal](0)
        from_agera(source).subscribe(subscriber)
        assert source.active == 1
        for _ in range(3):
            source.dispatch_update()
            loop.drain()
        assert subscriber.items == []
        subscriber.request(5)
        assert subscriber.items == [UPDATE]
        source.dispatch_update()
        loop.drain()
        assert subscriber.items == [UPDATE, UPDATE]
        subscriber.cancel()
        subscriber.cancel()
        loop.drain()
        assert source.active == 0
        subscriber.assert_not_terminated()


def test_a_cancel_on_another_thread_removes_on_the_loop_once() -> None:
    with TestLoop() as loop:
        source, subscriber = Source(), TestSubscriber[Signal]()
        from_agera(source).subscribe(subscriber)
    thread = threading.Thread(target=subscriber.cancel)
    thread.start()
    thread.join()
    assert source.active == 1
    loop.drain()
    assert source.active == 0
    loop.drain()


@pytest.mark.checklist("A04", "A08")
def test_a_cancel_before_it_was_added_leaves_nothing_registered() -> None:
    with TestLoop() as loop:
        source = Source()
    subscriber = TestSubscriber[Signal]()
    from_agera(source, loop=loop).subscribe(subscriber)  # a message: this thread has no loop
    subscriber.cancel()
    loop.drain()
    assert (source.active, source.is_active) == (0, False)


@pytest.mark.checklist("A04", "A08")
def test_a_cancel_on_the_loop_comes_before_the_message_that_adds() -> None:
    with TestLoop() as loop:
        source = Source()
    subscriber = TestSubscriber[Signal]()
    from_agera(source, loop=loop).subscribe(subscriber)
    with loop:
        subscriber.cancel()  # at once, and the adding is still on its way
    loop.drain()
    assert (source.active, source.is_active) == (0, False)


def test_the_loop_is_that_of_the_observable_if_nothing_else_is_said() -> None:
    with TestLoop() as loop:
        source, subscriber = Source(), TestSubscriber[Signal]()
    from_agera(source).subscribe(subscriber)
    assert source.active == 0
    loop.drain()
    assert source.active == 1
    source.dispatch_update()
    loop.drain()
    assert subscriber.items == [UPDATE]
    subscriber.cancel()
    loop.drain()


def test_without_a_loop_it_fails() -> None:
    class Foreign:
        def add_updatable(self, updatable: object, /) -> None: ...

        def remove_updatable(self, updatable: object, /) -> None: ...

    subscriber = TestSubscriber[Signal]()
    from_agera(Foreign()).subscribe(subscriber)
    subscriber.assert_failure(IllegalStateError)
    subscriber.assert_error_message("loop=")


def test_an_observable_that_refuses_fails_it() -> None:
    class Refusing:
        def add_updatable(self, updatable: object, /) -> None:
            raise LookupError("refused")

        def remove_updatable(self, updatable: object, /) -> None:
            raise AssertionError

    with TestLoop():
        subscriber = TestSubscriber[Signal]()
        from_agera(Refusing()).subscribe(subscriber)
    subscriber.assert_failure(LookupError)


@pytest.mark.parametrize(
    ("strategy", "items"), [("buffer", [0, 1, 2, 3]), ("latest", [3]), ("drop", [])]
)
def test_a_mutable_repository_shows_each_value_as_the_strategy_says(
    strategy: str, items: list[int]
) -> None:
    with TestLoop() as loop:
        numbers, subscriber = repositories.mutable_repository(0), TestSubscriber[int](0)
        from_repository(numbers, strategy=strategy).subscribe(subscriber)  # type: ignore[arg-type]
        for n in (1, 2, 3):
            numbers.accept(n)
        loop.drain()
        subscriber.request(10)
        subscriber.assert_items(*items)
        subscriber.cancel()
        loop.drain()
        numbers.accept(4)
        loop.drain()
        subscriber.assert_items(*items)


@pytest.mark.parametrize("strategy", ["error", "buffer"])
def test_too_many_values_fail_it_and_leave_the_repository(strategy: str) -> None:
    with TestLoop() as loop:
        numbers, subscriber = repositories.mutable_repository(0), TestSubscriber[int](1)
        from_repository(numbers, strategy=strategy, capacity=2).subscribe(subscriber)  # type: ignore[arg-type]
        for n in range(1, 5):
            numbers.accept(n)
        subscriber.request(10)
        loop.drain()
        subscriber.assert_failure(
            MissingBackpressureError, *([0] if strategy == "error" else [0, 1, 2])
        )
        assert isinstance(numbers, BaseObservable)
        assert not numbers.is_active


def test_the_current_value_is_left_out_on_request() -> None:
    with TestLoop():
        numbers, subscriber = repositories.mutable_repository(0), TestSubscriber[int]()
        from_repository(numbers, current=False).subscribe(subscriber)
        subscriber.assert_no_items()
        numbers.accept(1)
        subscriber.assert_items(1)


def test_the_value_of_another_repository_is_asked_for_when_it_is_requested() -> None:
    with TestLoop() as loop:
        doubled, subscriber = Doubled(1), TestSubscriber[int](0)
        from_repository(doubled).subscribe(subscriber)
        doubled.set(2)
        loop.drain()
        assert doubled.gets == 0
        subscriber.request(10)
        subscriber.assert_items(4)
        doubled.set(3)
        loop.drain()
        subscriber.assert_items(4, 6)
        doubled.set(-1)
        loop.drain()
        subscriber.assert_failure(LookupError, 4, 6)
        loop.drain()
        assert not doubled.is_active


def test_or_at_each_update_with_another_strategy() -> None:
    with TestLoop() as loop:
        doubled, subscriber = Doubled(1), TestSubscriber[int](0)
        from_repository(doubled, strategy="buffer").subscribe(subscriber)
        doubled.set(2)
        loop.drain()
        doubled.set(3)
        doubled.set(4)
        loop.drain()
        doubled.set(-1)
        loop.drain()
        subscriber.request(10)
        subscriber.assert_failure(LookupError, 2, 4, 8)
        loop.drain()
        assert not doubled.is_active


def test_a_compiled_repository_runs_while_there_is_a_subscriber() -> None:
    with TestLoop() as loop:
        celsius = repositories.mutable_repository(20)
        text = (
            repositories.repository_with_initial_value("?")
            .observe(celsius)
            .on_updates_per_loop()
            .get_from(celsius)
            .then_transform(str)
            .compile()
        )
        seen: list[str] = []
        handle = from_repository(text).subscribe(seen.append)
        loop.drain()
        celsius.accept(21)
        loop.drain()
        handle.dispose()
        loop.drain()
        celsius.accept(22)
        loop.drain()
        assert seen[-1] == "21"
        assert text.get() == "21"


def test_a_reservoir_is_taken_from_as_it_is_requested() -> None:
    with TestLoop() as loop:
        numbers, subscriber = reservoirs.reservoir_of(int), TestSubscriber[int](2)
        for n in range(3):
            numbers.accept(n)
        from_reservoir(numbers).subscribe(subscriber)
        loop.drain()
        subscriber.assert_items(0, 1)
        assert numbers.get().get() == 2
        numbers.accept(3)
        loop.drain()
        subscriber.request(5)
        subscriber.assert_items(0, 1, 3)
        numbers.accept(4)
        loop.drain()
        subscriber.assert_items(0, 1, 3, 4)


def test_an_empty_reservoir_uses_no_demand_up() -> None:
    with TestLoop() as loop:
        numbers, subscriber = reservoirs.reservoir_of(int), TestSubscriber[int](1)
        from_reservoir(numbers).subscribe(subscriber)
        loop.drain()
        numbers.accept(1)
        loop.drain()
        subscriber.assert_items(1)
        numbers.accept(2)
        loop.drain()
        subscriber.assert_items(1)


@pytest.mark.parametrize(
    ("capacity", "strategy", "error"),
    [(0, "buffer", ValueError), ("1", "buffer", TypeError), (1, "queue", ValueError)],
)
def test_a_strategy_is_looked_at_at_once(
    capacity: int, strategy: str, error: type[Exception]
) -> None:
    with TestLoop(), pytest.raises(error):
        from_repository(repositories.repository(0), strategy=strategy, capacity=capacity)  # type: ignore[arg-type]
    with pytest.raises(error):
        MutableRepository(0).values(strategy=strategy, capacity=capacity)  # type: ignore[arg-type]


# -- Flow to Agera


def test_a_flow_runs_once_for_all_updatables_while_there_are_any() -> None:
    with TestLoop() as loop:
        upstream, updates = TestPublisher[int](), list[str]()
        shared = to_agera(Flow(upstream))

        def one() -> None:
            updates.append("one")

        shared.add_updatable(one)
        shared.add_updatable(lambda: updates.append("other"))
        upstream.assert_subscribed()
        upstream.next(1)
        upstream.next(2)
        loop.drain()
        assert updates == ["one", "other"]
        assert (shared.changes, shared.terminated) == (2, False)


def test_removing_the_last_one_cancels_the_flow() -> None:
    with TestLoop() as loop:
        upstream = TestPublisher[int]()
        shared = to_agera(Flow(upstream))

        def update() -> None: ...

        shared.add_updatable(update)
        assert not upstream.cancelled
        shared.remove_updatable(update)
        loop.drain()
        assert upstream.cancelled


def test_the_end_is_visible_and_an_error_is_the_identical_object() -> None:
    error = LookupError("why")
    heard: list[object] = []
    with TestLoop() as loop:
        failing = to_agera(flow.error(error), on_error=heard.append)
        failing.add_updatable(lambda: heard.append("update"))
        loop.drain()
        assert heard == [error, "update"]
        assert (failing.terminated, failing.failure) == (True, error)


def test_an_error_of_on_error_goes_to_the_hook_and_the_end_is_still_notified(drops: Drops) -> None:
    updates, raised = list[str](), RuntimeError("the log is full")

    def fail(_: BaseException) -> None:
        raise raised

    with TestLoop() as loop:
        failing = to_agera(flow.error(ERROR), on_error=fail)
        failing.add_updatable(lambda: updates.append("observable"))
        flow.error(ERROR).subscribe(
            to_subscriber(lambda: updates.append("subscriber"), on_error=fail)
        )
        loop.drain()
        assert sorted(updates) == ["observable", "subscriber"]
        assert (failing.terminated, failing.failure) == (True, ERROR)
    assert drops.take_errors() == [raised, raised]


def test_a_new_activation_runs_the_flow_again() -> None:
    runs: list[int] = []
    with TestLoop() as loop:
        counted = to_repository(flow.defer(lambda: flow.just(runs.append(1) or len(runs))), 0)

        def update() -> None: ...

        for expected in (1, 2):
            counted.add_updatable(update)
            assert (counted.get(), counted.terminated) == (expected, True)
            counted.remove_updatable(update)
            loop.drain()


def test_a_flow_as_a_repository_holds_the_newest_item() -> None:
    with TestLoop() as loop:
        upstream = TestPublisher[int]()
        numbers, updates = to_repository(Flow(upstream), 0), list[int]()
        assert numbers.get() == 0
        numbers.add_updatable(lambda: updates.append(numbers.get()))
        upstream.next(1)
        upstream.next(2)
        loop.drain()
        upstream.next(2)
        loop.drain()
        assert (updates, numbers.get()) == ([2], 2)
        with pytest.raises(NoneItemError):
            to_repository(flow.just(1), None)


def test_items_whose_equality_raises_fail_it() -> None:
    class Odd:
        def __eq__(self, other: object) -> bool:
            raise LookupError("no equality")

        __hash__ = None  # type: ignore[assignment]

    with TestLoop():
        odd = to_repository(flow.just(Odd(), Odd()), Odd())
        odd.add_updatable(lambda: None)
        assert isinstance(odd.failure, LookupError)


def test_a_flow_as_a_reservoir_is_requested_as_it_is_got() -> None:
    with TestLoop() as loop:
        asked: list[int] = []
        items = flow.range(100).do_on_request(asked.append)
        numbers, got = to_reservoir(items.hide(), prefetch=4), list[int]()
        numbers.add_updatable(lambda: got.append(numbers.get().get()))
        assert asked == [4]
        loop.drain()
        assert got == list(range(100))
        assert set(asked[1:]) == {3}
        assert numbers.terminated
        assert numbers.get().is_absent
        with pytest.raises(ValueError, match="prefetch"):
            to_reservoir(items, prefetch=0)


def test_no_more_than_the_prefetch_waits_in_a_reservoir_however_often_it_is_activated() -> None:
    with TestLoop() as loop:
        asked: list[int] = []
        items = flow.range(100).hide().do_on_request(asked.append)
        numbers = to_reservoir(items, prefetch=4)

        def update() -> None: ...

        def activated() -> None:
            numbers.add_updatable(update)
            loop.drain()
            numbers.remove_updatable(update)
            loop.drain()

        numbers.accept(7)  # not of the flow
        for _ in range(3):
            activated()
        assert asked == [4]
        assert [numbers.get().get() for _ in range(3)] == [7, 0, 1]
        activated()
        assert asked == [4, 2]
        numbers.add_updatable(update)
        # What waits is of three runs, and three of it make room for three.
        assert [numbers.get().get() for _ in range(7)] == [2, 3, 0, 1, 0, 1, 2]
        assert asked == [4, 2, 3, 3]


def test_a_reservoir_asks_later_if_the_flow_comes_later() -> None:
    class Late:
        def subscribe(self, subscriber: Subscriber[int], /) -> None:
            self.subscriber = subscriber

    with TestLoop() as loop:
        late = Late()
        sources = iter([flow.range(100), flow.from_(late)])
        numbers, link = to_reservoir(flow.defer(lambda: next(sources)), prefetch=4), Link()

        def update() -> None: ...

        numbers.add_updatable(update)
        numbers.remove_updatable(update)
        loop.drain()
        numbers.add_updatable(update)
        assert [numbers.get().get() for _ in range(4)] == [0, 1, 2, 3]
        late.subscriber.on_subscribe(link)
        assert link.requested == 3


def test_a_reservoir_takes_other_values_as_well() -> None:
    with TestLoop() as loop:
        numbers, got = to_reservoir(flow.range(2)), list[int]()
        numbers.accept(7)
        numbers.add_updatable(lambda: got.append(numbers.get().get()))
        loop.drain()
        assert got == [7, 0, 1]


# -- round trips


ERROR = LookupError("why")


def failing(*items: int) -> Flow[int]:
    def generate() -> Iterator[int]:
        yield from items
        raise ERROR

    return flow.defer(lambda: flow.from_iterable(generate()))


def back(items: Flow[int], way: str) -> Flow[int]:
    if way == "repository":
        return from_repository(
            to_repository(items, -1), strategy="buffer", capacity=1000, current=False
        )
    return from_reservoir(to_reservoir(items, prefetch=3))


@pytest.mark.checklist("A22")
@pytest.mark.parametrize("way", ["repository", "reservoir"])
@given(items=st.lists(st.integers(0, 3)), fails=st.booleans())
@settings(deadline=None)  # the first call looks for plugins
def test_flow_to_agera_and_back_keeps_items_order_error_and_end(
    way: str, items: list[int], fails: bool
) -> None:
    subscriber = TestSubscriber[int]()
    with TestLoop() as loop:
        source = failing(*items) if fails else flow.from_iterable(items)
        back(source, way).subscribe(subscriber)
        loop.drain()
    if fails:
        subscriber.assert_failure(ERROR, *items)
    else:
        subscriber.assert_result(*items)


@pytest.mark.checklist("A22")
@pytest.mark.parametrize("way", ["repository", "reservoir"])
@pytest.mark.parametrize("count", [0, 1, 3, 10])
def test_the_end_comes_with_the_last_item_whether_more_was_requested_or_not(
    way: str, count: int
) -> None:
    subscriber = TestSubscriber[int](count)
    with TestLoop() as loop:
        back(flow.range(count), way).subscribe(subscriber)
        loop.drain()
    subscriber.assert_result(*range(count))


@pytest.mark.checklist("A22")
@pytest.mark.parametrize("way", ["repository", "reservoir", "agera", "signals"])
def test_a_cancel_crosses_both_ways(way: str) -> None:
    upstream, subscriber = TestPublisher[int](), TestSubscriber[object]()
    source = Flow(upstream)
    with TestLoop() as loop:
        made: Flow[object]
        if way == "agera":
            made = from_agera(to_agera(source))
        elif way == "signals":
            made = from_signals(to_signals(source))
        else:
            made = back(source, way)
        made.subscribe(subscriber)
        upstream.next(1)
        loop.drain()
        assert len(subscriber.items) == 1
        subscriber.cancel()
        loop.drain()
        assert upstream.cancelled


@pytest.mark.checklist("A22")
@pytest.mark.parametrize("fails", [False, True])
def test_updates_of_a_flow_coalesce_but_its_end_comes(fails: bool) -> None:
    source = failing(0, 1) if fails else flow.range(5)
    subscriber = TestSubscriber[Signal]()
    with TestLoop() as loop:
        from_agera(to_agera(source)).subscribe(subscriber)
        loop.drain()
    if fails:
        subscriber.assert_failure(ERROR, UPDATE)
    else:
        subscriber.assert_result(UPDATE)


def test_two_subscribers_share_one_run_of_a_flow_as_a_repository() -> None:
    runs: list[int] = []
    with TestLoop() as loop:
        upstream = TestPublisher[int]()
        numbers = to_repository(flow.defer(lambda: runs.append(1) or Flow(upstream)), 0)
        one, other = TestSubscriber[int](), TestSubscriber[int]()
        from_repository(numbers, strategy="buffer").subscribe(one)
        upstream.next(1)
        from_repository(numbers, strategy="buffer").subscribe(other)
        upstream.next(2)
        upstream.complete()
        loop.drain()
        one.assert_result(0, 1, 2)
        other.assert_result(1, 2)
        assert runs == [1]


def test_a_subscriber_that_comes_after_the_end_while_others_stay_gets_the_end() -> None:
    with TestLoop() as loop:
        numbers = to_repository(flow.range(3), -1)
        numbers.add_updatable(lambda: None)
        late, signals = TestSubscriber[int](), TestSubscriber[Signal]()
        from_repository(numbers, strategy="buffer").subscribe(late)
        from_agera(numbers).subscribe(signals)
        loop.drain()
        late.assert_result()
        signals.assert_result()


def test_after_the_end_a_new_subscriber_gets_a_separate_run() -> None:
    with TestLoop() as loop:
        numbers = to_repository(flow.range(3), -1)
        for _ in range(2):
            subscriber = TestSubscriber[int]()
            from_repository(numbers, strategy="buffer", current=False).subscribe(subscriber)
            loop.drain()
            subscriber.assert_result(0, 1, 2)


@pytest.mark.parametrize("way", ["agera", "repository", "reservoir"])
def test_and_so_does_one_on_another_loop(way: str) -> None:
    own, other = TestLoop(), TestLoop()
    with own:
        updates, numbers = to_agera(flow.range(3)), to_repository(flow.range(3), -1)
        items = to_reservoir(flow.range(3))
    with other:
        made: Flow[object] = {
            "agera": from_agera(updates),
            "repository": from_repository(numbers, strategy="buffer", current=False),
            "reservoir": from_reservoir(items),
        }[way]
    for _ in range(3):
        subscriber = TestSubscriber[object]()
        made.subscribe(subscriber)
        for _ in range(4):
            own.drain()
            other.drain()
        subscriber.assert_result(*([UPDATE] if way == "agera" else [0, 1, 2]))


def test_a_subscriber_that_comes_in_the_second_run_gets_the_rest_of_it() -> None:
    with TestLoop() as loop:
        upstream = TestPublisher[int]()
        sources = iter([flow.just(1), Flow(upstream)])
        numbers = to_repository(flow.defer(lambda: next(sources)), 0)

        def update() -> None: ...

        numbers.add_updatable(update)
        numbers.remove_updatable(update)
        loop.drain()
        numbers.add_updatable(update)
        subscriber = TestSubscriber[int]()
        from_repository(numbers, strategy="buffer").subscribe(subscriber)
        upstream.next(2)
        subscriber.assert_items(1, 2)


def test_a_subscription_that_comes_after_the_deactivation_is_cancelled() -> None:
    class Late:
        def subscribe(self, subscriber: Subscriber[int], /) -> None:
            self.subscriber = subscriber

    with TestLoop() as loop:
        late, link = Late(), Link()
        numbers = to_repository(late, 0)

        def update() -> None: ...

        numbers.add_updatable(update)
        numbers.remove_updatable(update)
        loop.drain()
        late.subscriber.on_subscribe(link)
        assert (link.requested, bool(link.cancelled)) == (0, True)


def test_a_reservoir_of_a_flow_tells_of_what_is_there_when_it_is_activated() -> None:
    with TestLoop() as loop:
        numbers, got = to_reservoir(flow.never()), list[object]()
        filled = to_reservoir(Flow(TestPublisher[int]()))
        filled.accept(7)
        loop.drain()
        filled.add_updatable(lambda: got.append(filled.get().get()))
        numbers.add_updatable(lambda: got.append("never"))
        loop.drain()
        assert got == [7]


# -- signals


@pytest.mark.checklist("A22")
def test_agera_to_signals_and_back() -> None:
    with TestLoop() as loop:
        source, heard = Source(), list[str]()
        handle = agera_to_signals(source).register(lambda: heard.append("signal"))
        again = to_agera(agera_to_signals(source))
        again.add_updatable(lambda: heard.append("agera"))
        source.dispatch_update()
        loop.drain()
        assert sorted(heard) == ["agera", "signal"]
        handle.remove()
        source.dispatch_update()
        loop.drain()
        assert sorted(heard) == ["agera", "agera", "signal"]


@pytest.mark.checklist("A22")
def test_a_flow_as_signals_keeps_demand_count_and_error() -> None:
    subscriber = TestSubscriber[Signal](2)
    to_signals(failing(0, 1, 2)).subscribe(subscriber)
    subscriber.assert_items(UPDATE, UPDATE)
    subscriber.request(5)
    subscriber.assert_failure(ERROR, UPDATE, UPDATE, UPDATE)


def test_signals_are_a_flow() -> None:
    dispatcher, subscriber = Dispatcher(), TestSubscriber[Signal]()
    from_signals(dispatcher).subscribe(subscriber)
    dispatcher.update()
    dispatcher.complete()
    subscriber.assert_result(UPDATE)


@pytest.mark.checklist("A22")
@pytest.mark.parametrize("fails", [False, True])
def test_a_flow_feeds_a_repository_of_signals_by_its_methods(fails: bool) -> None:
    numbers, subscriber = MutableRepository(-1), TestSubscriber[int]()
    numbers.values(strategy="buffer", current=False).subscribe(subscriber)
    source = failing(0, 1) if fails else flow.range(2)
    source.subscribe(numbers.accept, numbers.error, numbers.complete)
    if fails:
        subscriber.assert_failure(ERROR, 0, 1)
    else:
        subscriber.assert_result(0, 1)
    assert numbers.get() == 1


# -- dispatchers and processors


def test_a_processor_is_a_dispatcher() -> None:
    with TestLoop() as loop:
        processor, updates, items = DirectProcessor[Signal](), list[int](), list[Signal]()
        dispatcher = to_update_dispatcher(processor)

        def update() -> None:
            updates.append(1)

        dispatcher.add_updatable(update)
        processor.flow.subscribe(items.append)
        dispatcher.update()
        dispatcher.update()
        loop.drain()
        assert (updates, items) == ([1], [UPDATE, UPDATE])
        dispatcher.remove_updatable(update)
        loop.drain()
        dispatcher.update()
        loop.drain()
        assert updates == [1]


def test_an_updatable_is_a_subscriber_and_each_signal_an_update(drops: Drops) -> None:
    updates, errors = list[int](), list[BaseException]()
    flow.range(3).subscribe(to_subscriber(lambda: updates.append(1)))
    assert len(updates) == 4
    flow.error(ERROR).subscribe(to_subscriber(lambda: updates.append(1), on_error=errors.append))
    assert (len(updates), errors) == (5, [ERROR])
    flow.error(ERROR).subscribe(to_subscriber(lambda: updates.append(1)))
    assert (len(updates), drops.take_errors()) == (6, [ERROR])


def test_a_dispatcher_of_agera_listens_to_a_flow() -> None:
    with TestLoop() as loop:
        dispatcher, updates = observables.update_dispatcher(), list[int]()
        dispatcher.add_updatable(lambda: updates.append(1))
        level = BehaviorProcessor(1)
        level.flow.subscribe(to_subscriber(dispatcher))
        loop.drain()
        level.on_next(2)
        level.on_next(3)
        loop.drain()
        assert updates == [1, 1]


# -- the registry


def test_from_knows_what_gives_a_flow() -> None:
    with TestLoop() as loop:
        updates = list[object]()
        source = Source()
        flow.from_(source).subscribe(updates.append)
        source.dispatch_update()
        numbers = list[object]()
        flow.from_(repositories.mutable_repository(7)).subscribe(numbers.append)
        flow.from_(to_repository(flow.just(9), 8)).subscribe(numbers.append)
        reservoir, got = reservoirs.reservoir_of(int), list[object]()
        reservoir.accept(5)
        flow.from_(reservoir).subscribe(got.append)
        flow.from_(to_reservoir(flow.range(2))).subscribe(got.append)
        signals, heard = Dispatcher(), list[object]()
        flow.from_(signals).subscribe(heard.append)
        signals.update()
        loop.drain()
        assert (updates, numbers, got, heard) == ([UPDATE], [7, 8, 9], [5, 0, 1], [UPDATE])


@pytest.mark.parametrize(
    "name", ["agera-observable", "agera-repository", "agera-reservoir", "signals"]
)
def test_the_records_can_be_loaded(name: str) -> None:
    assert callable(plugin_host().converters[name].spec.load())


def test_a_third_party_class_that_derives_from_observable_is_accepted() -> None:
    class Mine(Observable):
        def add_updatable(self, updatable: object, /) -> None: ...

        def remove_updatable(self, updatable: object, /) -> None: ...

    assert isinstance(flow.from_(Mine()), Flow)


def test_and_so_is_one_that_only_looks_like_it() -> None:
    class Alike:
        def __init__(self) -> None:
            self.there: list[Callable[[], object]] = []

        def add_updatable(self, updatable: Updatable, /) -> None:
            self.there.append(updatable.update)

        def remove_updatable(self, updatable: Updatable, /) -> None:
            self.there.remove(updatable.update)

    class AlikeToo(Alike):
        def get(self) -> int:
            return 7

    with TestLoop():
        signals, values = TestSubscriber[object](), TestSubscriber[object]()
        observable, repository = Alike(), AlikeToo()
        flow.from_(observable).subscribe(signals)
        flow.from_(repository).subscribe(values)
        observable.there[0]()
        signals.assert_items(UPDATE)
        values.assert_items(7)
        for subscriber in (signals, values):
            subscriber.cancel()
        assert observable.there == repository.there == []
