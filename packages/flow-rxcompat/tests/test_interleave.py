"""Agera, signals and the converters under every schedule within the bound."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable

import pytest

import flow_core as flow
from flow_core import Flow
from flow_core.executors import Task
from flow_rxcompat._outlets import Counted, Outlet, Queued
from flow_rxcompat.agera import (
    BaseObservable,
    RepositoryConfig,
    TestLoop,
    observables,
    repositories,
    reservoirs,
)
from flow_rxcompat.converters import (
    from_agera,
    from_repository,
    to_agera,
    to_repository,
    to_reservoir,
)
from flow_rxcompat.signals import (
    UPDATE,
    Dispatcher,
    MutableRepository,
    Removable,
    Removables,
    Signal,
    merge,
)
from flow_testing import Drops, TestPublisher, TestSubscriber, recorded_drops
from flow_testing.interleave import Body, Scenario, explore_all, step

pytestmark = [pytest.mark.interleave, pytest.mark.essential]

ERROR = LookupError("why")

OUTLET = ("flow_core.serial", "flow_rxcompat._outlets", __name__)


def exhaust(body: Body, *modules: str, expect: Collection[Hashable] | None = None) -> None:
    explore_all(body, modules=[*modules, __name__], expect=expect, timeout_s=100)


# -- the outlet


def outlet(subscriber: TestSubscriber[int], strategy: str = "buffer") -> Outlet[int]:
    made: Outlet[int] = Outlet(subscriber, Queued(strategy, 8, "test"), "test")  # type: ignore[arg-type]
    made.start()
    return made


def test_an_item_and_a_request_meet() -> None:
    def body() -> Scenario:
        subscriber = TestSubscriber[int](0, on_item=lambda *_: step())
        link = outlet(subscriber)

        def put() -> None:
            link.put(1)
            link.signal()

        def check() -> None:
            subscriber.assert_rules_kept()
            subscriber.assert_items(1)

        return Scenario(put, lambda: subscriber.request(1), check=check)

    exhaust(body, *OUTLET)


def test_items_of_two_threads_and_the_end_come_whole_and_in_turn() -> None:
    def body() -> Scenario:
        subscriber = TestSubscriber[int](on_item=lambda *_: step())
        link = outlet(subscriber)

        def put() -> None:
            link.put(1)
            link.signal()
            link.put(2)
            link.signal()

        def check() -> None:
            subscriber.assert_rules_kept()
            assert subscriber.completed
            assert subscriber.items in ([], [1], [1, 2])

        return Scenario(put, lambda: link.end(None), check=check)

    exhaust(body, *OUTLET)


def test_the_end_comes_after_all_that_was_put_before_it_however_it_is_requested() -> None:
    def body() -> Scenario:
        subscriber = TestSubscriber[int](0)
        link = outlet(subscriber)
        link.put(1)
        link.put(2)

        def request() -> None:
            subscriber.request(1)
            subscriber.request(1)

        return Scenario(
            request, lambda: link.end(None), check=lambda: subscriber.assert_result(1, 2)
        )

    exhaust(body, *OUTLET)


def test_a_cancel_leaves_once_and_nothing_is_kept() -> None:
    def body() -> Scenario:
        subscriber = TestSubscriber[int](on_item=lambda *_: step())
        link, left = outlet(subscriber), list[int]()

        link.attach(lambda: left.append(1))

        def put() -> None:
            link.put(1)
            link.signal()
            link.end(None)

        def check() -> None:
            subscriber.assert_rules_kept()
            assert left == [1]
            assert not link.statistics().buffered
            assert link.statistics().terminated

        return Scenario(put, subscriber.cancel, check=check)

    exhaust(body, *OUTLET)


def test_a_function_that_is_attached_during_a_cancel_is_called_once() -> None:
    def body() -> Scenario:
        subscriber = TestSubscriber[int]()
        link, left = outlet(subscriber), list[int]()

        def check() -> None:
            assert left == [1]

        return Scenario(lambda: link.attach(lambda: left.append(1)), subscriber.cancel, check=check)

    exhaust(body, *OUTLET)


def test_a_bad_request_is_the_only_end() -> None:
    def body() -> Scenario:
        subscriber = TestSubscriber[int](1)
        link = outlet(subscriber)
        raw = subscriber.subscription

        def check() -> None:
            subscriber.assert_rules_kept()
            assert subscriber.terminated

        return Scenario(lambda: raw.request(0), lambda: link.end(None), check=check)

    exhaust(body, *OUTLET)


def test_an_error_that_a_bad_request_comes_before_goes_to_the_hook(drops: Drops) -> None:
    def body() -> Scenario:
        subscriber = TestSubscriber[int](0)
        link = outlet(subscriber)
        raw = subscriber.subscription

        def check() -> None:
            subscriber.assert_rules_kept()
            assert (subscriber.error is ERROR) != (drops.take_errors() == [ERROR])

        return Scenario(lambda: raw.request(0), lambda: link.end(ERROR), check=check)

    exhaust(body, *OUTLET)


def test_latest_has_the_last_one_surely() -> None:
    def body() -> Scenario:
        subscriber = TestSubscriber[int](0)
        link = outlet(subscriber, "latest")

        def put() -> None:
            for n in (1, 2, 3):
                link.put(n)
                link.signal()

        def check() -> None:
            subscriber.request(1)
            assert subscriber.items[-1] == 3
            assert subscriber.items == sorted(subscriber.items)

        return Scenario(put, lambda: subscriber.request(1), check=check)

    exhaust(body, *OUTLET)


def test_no_count_is_lost() -> None:
    def body() -> Scenario:
        subscriber = TestSubscriber[Signal]()
        link: Outlet[Signal] = Outlet(subscriber, Counted(UPDATE), "test")
        link.start()

        def put() -> None:
            link.put(UPDATE)
            link.signal()

        return Scenario(put, put, check=lambda: subscriber.assert_items(UPDATE, UPDATE))

    exhaust(body, *OUTLET)


def test_an_outlet_that_drains_elsewhere_loses_no_wake_up() -> None:
    def body() -> Scenario:
        tasks: deque[Task] = deque()
        subscriber = TestSubscriber[Signal]()
        dispatcher = Dispatcher()
        dispatcher.observe_on(tasks.append).subscribe(subscriber)

        dispatcher.update()

        def run() -> None:
            while tasks:
                tasks.popleft()()

        def check() -> None:
            run()
            subscriber.assert_items(UPDATE, UPDATE)

        return Scenario(dispatcher.update, run, check=check)

    exhaust(body, *OUTLET)


# -- handles


def test_a_handle_acts_once_in_every_order_of_calls() -> None:
    def body() -> Scenario:
        handle, done = Removable(), list[int]()
        return Scenario(
            handle.remove,
            handle.remove,
            lambda: handle.attach(lambda: done.append(1)),
            check=lambda: done == [1] or pytest.fail(str(done)),
        )

    exhaust(body, "flow_rxcompat.signals.handles")


def test_a_handle_that_is_added_while_all_are_removed_is_removed() -> None:
    def body() -> Scenario:
        handles, handle = Removables(), Removable()

        def check() -> None:
            assert handle.removed

        return Scenario(lambda: handles.add(handle), handles.remove, check=check)

    exhaust(body, "flow_rxcompat.signals.handles")


# -- signals


def test_an_updatable_that_registers_while_it_ends_gets_the_end() -> None:
    def body() -> Scenario:
        dispatcher, over = Dispatcher(), list[str]()

        def check() -> None:
            assert over == ["over"]
            assert not dispatcher.has_updatables

        return Scenario(
            lambda: dispatcher.register(lambda: None, on_complete=lambda: over.append("over")),
            dispatcher.complete,
            check=check,
        )

    exhaust(body, *OUTLET, "flow_rxcompat.signals")


def test_two_sources_that_end_at_once_end_their_merge_once() -> None:
    def body() -> Scenario:
        one, other, subscriber = Dispatcher(), Dispatcher(), TestSubscriber[Signal]()
        merge(one, other).subscribe(subscriber)

        def first() -> None:
            one.update()
            one.complete()

        return Scenario(first, other.complete, check=lambda: subscriber.assert_result(UPDATE))

    exhaust(body, "flow_rxcompat.signals.joining")


def test_take_until_releases_both_sources_in_every_order() -> None:
    def body() -> Scenario:
        source, other, subscriber = Dispatcher(), Dispatcher(), TestSubscriber[Signal]()
        source.take_until(other).subscribe(subscriber)

        def check() -> None:
            subscriber.assert_rules_kept()
            assert not source.has_updatables
            assert not other.has_updatables

        return Scenario(other.update, subscriber.cancel, check=check)

    exhaust(body, "flow_rxcompat.signals.joining")


def test_values_come_in_the_order_in_which_they_were_accepted() -> None:
    def body() -> Scenario:
        numbers, subscriber = MutableRepository(0), TestSubscriber[int]()
        numbers.values(strategy="buffer", current=False).subscribe(subscriber)

        def check() -> None:
            assert sorted(subscriber.items) == [1, 2]
            assert subscriber.items[-1] == numbers.get()

        return Scenario(lambda: numbers.accept(1), lambda: numbers.accept(2), check=check)

    exhaust(body, *OUTLET, "flow_rxcompat.signals.sources")


def test_equal_values_of_two_threads_are_one_change() -> None:
    def body() -> Scenario:
        numbers, subscriber = MutableRepository(0), TestSubscriber[int]()
        numbers.values(strategy="buffer", current=False).subscribe(subscriber)
        return Scenario(
            lambda: numbers.accept(1),
            lambda: numbers.accept(1),
            check=lambda: subscriber.assert_items(1),
        )

    exhaust(body, *OUTLET, "flow_rxcompat.signals.sources")


def test_a_value_against_the_end_comes_before_it_or_goes_to_the_hook() -> None:
    def body() -> Scenario:
        numbers, subscriber = MutableRepository(0), TestSubscriber[int]()
        numbers.values(strategy="buffer", current=False).subscribe(subscriber)

        def accept() -> None:
            with recorded_drops() as drops:
                numbers.accept(1)
            dropped.extend(drops.items)

        def check() -> None:
            assert subscriber.completed
            assert [*subscriber.items, *dropped] == [1]

        dropped: list[object] = []
        return Scenario(
            accept, numbers.complete, check=check, outcome=lambda: len(subscriber.items)
        )

    exhaust(body, *OUTLET, "flow_rxcompat.signals.sources", expect={0, 1})


def test_a_subscriber_to_the_values_misses_none_and_gets_none_twice() -> None:
    def body() -> Scenario:
        numbers, subscriber = MutableRepository(0), TestSubscriber[int]()
        return Scenario(
            lambda: numbers.accept(1),
            lambda: numbers.values(strategy="buffer").subscribe(subscriber),
            outcome=lambda: tuple(subscriber.items),
        )

    exhaust(body, *OUTLET, "flow_rxcompat.signals.sources", expect={(0, 1), (1,)})


# -- Agera


class Edges(BaseObservable):
    def __init__(self) -> None:
        super().__init__()
        self.edges: list[str] = []

    def observable_activated(self) -> None:
        self.edges.append("+")

    def observable_deactivated(self) -> None:
        self.edges.append("-")


AGERA = "flow_rxcompat.agera.observables", "flow_rxcompat.agera.handlers"


def test_an_update_is_delivered_once_or_with_the_next_never_lost() -> None:
    def body() -> Scenario:
        loop = TestLoop()
        with loop:
            source, updates = observables.update_dispatcher(), list[int]()
            source.add_updatable(lambda: updates.append(1))

        def update() -> None:
            source.update()
            source.update()

        def check() -> None:
            loop.drain()
            assert 1 <= len(updates) <= 2

        return Scenario(update, loop.drain, check=check, outcome=lambda: len(updates))

    exhaust(body, *AGERA, expect={1, 2})


def test_edges_alternate_when_another_loop_adds_and_removes() -> None:
    def body() -> Scenario:
        own = TestLoop()
        with own:
            source = Edges()

        def other() -> None:
            with TestLoop():
                source.add_updatable(one)
                source.remove_updatable(one)

        def one() -> None: ...

        def check() -> None:
            own.drain()
            assert "".join(source.edges) == "+-"

        return Scenario(other, own.drain, check=check)

    exhaust(body, *AGERA)


def test_an_update_is_not_called_after_its_removal_on_the_same_loop() -> None:
    def body() -> Scenario:
        loop, updates = TestLoop(), list[int]()
        removed: list[bool] = []

        def one() -> None:
            assert not removed
            updates.append(1)

        with loop:
            source = observables.update_dispatcher()
            source.add_updatable(one)

        def consumer() -> None:
            loop.turn()
            loop.turn()
            with loop:
                source.remove_updatable(one)
                removed.append(True)
            loop.drain()

        return Scenario(source.update, consumer, outcome=lambda: len(updates))

    exhaust(body, *AGERA, expect={0, 1})


def test_accepts_of_two_threads_leave_the_value_that_was_notified_last() -> None:
    def body() -> Scenario:
        with TestLoop() as loop:
            numbers, subscriber = repositories.mutable_repository(0), TestSubscriber[int]()
            from_repository(numbers, strategy="buffer", current=False).subscribe(subscriber)

        def check() -> None:
            loop.drain()
            assert subscriber.items[-1] == numbers.get()
            assert sorted(subscriber.items) == [1, 2]

        return Scenario(lambda: numbers.accept(1), lambda: numbers.accept(2), check=check)

    exhaust(body, "flow_rxcompat.agera.repositories", *OUTLET)


def test_a_reservoir_never_forgets_to_tell() -> None:
    def body() -> Scenario:
        with TestLoop() as loop:
            numbers, got = reservoirs.reservoir_of(int), list[int]()
            numbers.add_updatable(lambda: got.extend(numbers.get().as_list()))

        def accept() -> None:
            numbers.accept(1)
            numbers.accept(2)

        def check() -> None:
            loop.drain()
            assert got == [1, 2]

        return Scenario(accept, loop.drain, check=check)

    exhaust(body, "flow_rxcompat.agera.reservoirs", *AGERA)


@pytest.mark.parametrize("config", [RepositoryConfig.CONTINUE_FLOW, RepositoryConfig.CANCEL_FLOW])
def test_an_update_while_a_flow_runs_elsewhere_is_seen_by_a_later_run(
    config: RepositoryConfig,
) -> None:
    def body() -> Scenario:
        loop, tasks = TestLoop(), deque[Task]()
        with loop:
            source, seen = repositories.mutable_repository(1), list[int]()
            numbers = (
                repositories.repository_with_initial_value(0)
                .observe(source)
                .on_updates_per_loop()
                .get_from(source)
                .go_to(tasks.append)
                .then_transform(lambda n: n)
                .on_concurrent_update(config)
                .compile()
            )
            numbers.add_updatable(lambda: seen.append(numbers.get()))

        def run() -> None:
            while tasks:
                tasks.popleft()()

        def update() -> None:
            source.accept(2)
            loop.drain()

        def check() -> None:
            for _ in range(4):
                loop.drain()
                run()
            loop.drain()
            assert numbers.get() == 2
            assert seen[-1] == 2

        return Scenario(run, update, check=check)

    exhaust(body, "flow_rxcompat.agera.compiled")


# -- the converters

BRIDGE = "flow_rxcompat._from_agera", "flow_rxcompat._to_agera"


@pytest.mark.checklist("A04", "A08")
def test_a_cancel_while_it_is_added_leaves_nothing_registered() -> None:
    def body() -> Scenario:
        loop = TestLoop()
        with loop:
            source = Edges()
        subscriber = TestSubscriber[Signal]()
        from_agera(source, loop=loop).subscribe(subscriber)

        def check() -> None:
            loop.drain()
            assert not source.is_active
            assert "".join(source.edges) in {"", "+-"}

        return Scenario(loop.drain, subscriber.cancel, check=check)

    exhaust(body, *BRIDGE)


def test_a_cancel_while_it_listens_to_a_repository_leaves_nothing_there(drops: Drops) -> None:
    def body() -> Scenario:
        loop, subscriber = TestLoop(), TestSubscriber[int](0)
        with loop:
            numbers = repositories.mutable_repository(0)
        values = from_repository(numbers, loop=loop)

        def check() -> None:
            subscriber.cancel()
            loop.drain()
            drops.take_items()
            numbers.accept(1)
            assert not drops.take_items()  # there is no subscriber to lose it

        return Scenario(lambda: values.subscribe(subscriber), subscriber.cancel, check=check)

    exhaust(body, *BRIDGE, *OUTLET, "flow_rxcompat.agera.repositories")


def test_a_subscriber_from_another_loop_gets_the_end_of_its_own_run_only() -> None:
    def body() -> Scenario:
        own, other, runs = TestLoop(), TestLoop(), list[int]()
        subscriber = TestSubscriber[Signal]()

        def one() -> None: ...

        with own:
            shared = to_agera(flow.just(1).do_on_subscribe(lambda: runs.append(1)))
            shared.add_updatable(one)
            shared.remove_updatable(one)

        def check() -> None:
            for _ in range(4):
                own.drain()
                other.drain()
            assert subscriber.completed

        def come() -> None:
            from_agera(shared, loop=other).subscribe(subscriber)
            other.drain()

        return Scenario(
            own.drain,
            come,
            check=check,
            outcome=lambda: (len(runs), len(subscriber.items)),
        )

    # Either the first run continues, which has ended; or there is a second one.
    exhaust(body, *BRIDGE, *AGERA, expect={(1, 0), (2, 1)})


def test_a_flow_that_sends_while_it_is_left_is_cancelled() -> None:
    def body() -> Scenario:
        loop, upstream = TestLoop(), MutableRepository(0)

        def one() -> None: ...

        with loop:
            numbers = to_repository(upstream.values(strategy="buffer", current=False), 0)
            numbers.add_updatable(one)

        def leave() -> None:
            with loop:
                numbers.remove_updatable(one)
            loop.drain()

        def check() -> None:
            upstream.accept(2)
            assert numbers.get() in {0, 1}

        return Scenario(lambda: upstream.accept(1), leave, check=check)

    exhaust(body, *BRIDGE)


@pytest.mark.parametrize("signal", ["item", "error", "end"])
def test_a_run_that_is_left_changes_nothing_of_the_next_one(signal: str, drops: Drops) -> None:
    def body() -> Scenario:
        loop, first, second = TestLoop(), TestPublisher[int](), TestPublisher[int]()
        runs, subscriber = iter([first, second]), TestSubscriber[int]()

        def one() -> None: ...

        with loop:
            numbers = to_repository(flow.defer(lambda: Flow(next(runs))), 0)
            numbers.add_updatable(one)

        def send() -> None:
            if signal == "item":
                first.next(1)
            else:
                first.error(ERROR) if signal == "error" else first.complete()

        def again() -> None:
            with loop:
                numbers.remove_updatable(one)
                loop.drain()
                from_repository(numbers, strategy="buffer", current=False).subscribe(subscriber)
                second.next(2)

        def check() -> None:
            loop.drain()
            drops.take_errors()
            assert (numbers.get(), numbers.terminated, numbers.failure) == (2, False, None)
            subscriber.assert_items(2)
            subscriber.assert_not_terminated()

        return Scenario(send, again, check=check)

    exhaust(body, *BRIDGE, "flow_rxcompat._outlets")


def test_two_that_come_after_the_end_of_a_run_listen_to_the_same_one() -> None:
    def body() -> Scenario:
        own, upstream = TestLoop(), TestPublisher[int]()
        runs, subscribers = (
            iter([flow.empty(), Flow(upstream)]),
            [TestSubscriber[int]() for _ in "ab"],
        )
        with own:
            numbers = to_repository(flow.defer(lambda: next(runs)), 0)
            values = from_repository(numbers, strategy="buffer", current=False)
            values.subscribe(TestSubscriber[int]())
            own.drain()

        def check() -> None:
            own.drain()
            upstream.next(1)
            for subscriber in subscribers:
                subscriber.assert_items(1)

        return Scenario(
            *(lambda each=each: values.subscribe(each) for each in subscribers), check=check
        )

    exhaust(body, *BRIDGE)


def test_no_room_is_lost_in_a_reservoir_that_is_got_from_while_it_is_activated_again() -> None:
    def body() -> Scenario:
        loop, runs, got = TestLoop(), list[TestPublisher[int]](), list[int]()

        def run() -> Flow[int]:
            runs.append(TestPublisher())
            return Flow(runs[-1])

        def one() -> None: ...

        with loop:
            numbers = to_reservoir(flow.defer(run), prefetch=1)
            numbers.add_updatable(one)
            runs[0].next(1)
            numbers.remove_updatable(one)
            loop.drain()

        def get() -> None:
            got.append(numbers.get().get())

        def activate() -> None:
            with loop:
                numbers.add_updatable(one)

        def check() -> None:
            assert got == [1]
            assert runs[1].outstanding == 1

        return Scenario(get, activate, check=check)

    exhaust(body, "flow_rxcompat._to_agera")


def test_a_reservoir_of_a_flow_is_refilled_while_it_is_got_from() -> None:
    def body() -> Scenario:
        loop, upstream = TestLoop(), TestPublisher[int]()
        with loop:
            numbers, got = to_reservoir(Flow(upstream), prefetch=2), list[int]()
            numbers.add_updatable(lambda: got.extend(numbers.get().as_list()))

        def send() -> None:
            upstream.next(1)
            upstream.next(2)
            upstream.complete()

        def check() -> None:
            loop.drain()
            assert got == [1, 2]
            assert numbers.terminated

        return Scenario(send, loop.drain, check=check)

    exhaust(body, *BRIDGE)
