"""Coordinators under every schedule within the bound (two preemptions, or more)."""

from __future__ import annotations

import threading
from collections.abc import Collection, Hashable
from typing import Any

import pytest

import flow_core as flow
from flow_core.protocols import EMPTY, Publisher
from flow_ops import observe_on
from flow_ops.coordination import (
    BufferedInput,
    Coordinated,
    Coordinator,
    Input,
    Listener,
)
from flow_testing import TestPublisher, TestSubscriber, VirtualClock, recorded_drops
from flow_testing.interleave import Body, Report, Scenario, explore_all, step

pytestmark = [
    pytest.mark.interleave,
    pytest.mark.essential,
    pytest.mark.usefixtures("dropped"),  # each scenario looks at what it drops itself
]

MODULES = ["flow_core.serial", "flow_ops.coordination", __name__]


def exhaust(body: Body, expect: Collection[Hashable] | None = None) -> Report:
    return explore_all(body, modules=MODULES, expect=expect, timeout_s=60)


def busy(*_: object) -> None:
    """A subscriber that takes its time."""
    step()


class Both(Coordinator[int]):
    """Passes on what its sources send, as they send it; ends when all have."""

    __slots__ = ("closings", "inputs", "sources")

    def __init__(self, downstream: Any, label: str, *sources: Publisher[int]) -> None:
        super().__init__(downstream, label)
        self.sources = sources
        self.closings = 0
        self.inputs: tuple[Input[int], ...] = tuple(self.listener() for _ in sources)

    def listener(self) -> Input[int]:
        return Listener(self, self.emit, self.ended)

    def open(self) -> None:
        for source, to in zip(self.sources, self.inputs, strict=False):
            self.connect(source, to)

    def requested(self, n: int) -> None:
        for one in self.inputs:
            one.request(n)

    def closed(self) -> None:
        self.inputs = ()
        self.closings += 1

    def ended(self, error: BaseException | None) -> None:
        if error is not None:
            self.fail(error)
        elif not self.active:
            self.complete()


class Pairs(Coordinator[int]):
    """Sums of an item of each source, which wait for each other."""

    __slots__ = ("halves", "one", "sources", "two")

    def __init__(
        self, downstream: Any, label: str, *sources: Publisher[int], prefetch: int = 2
    ) -> None:
        super().__init__(downstream, label)
        self.sources = sources
        self.one: BufferedInput[int] = BufferedInput(self, prefetch)
        self.two: BufferedInput[int] = BufferedInput(self, prefetch)
        self.halves: list[int] = []

    def open(self) -> None:
        for source, to in zip(self.sources, (self.one, self.two), strict=True):
            self.connect(source, to)

    def step(self) -> None:
        while not self.over:
            for one in (self.one, self.two)[len(self.halves) :]:
                if one.ended():
                    if one.error is not None:
                        error, one.error = one.error, None
                        self.fail(error)
                    else:
                        self.complete()
                    return
                if self.demand <= 0:
                    return
                item = one.poll()
                if item is EMPTY:
                    break
                self.halves.append(item)
            if len(self.halves) < 2:
                if one.ended():
                    continue
                return
            left, right = self.halves
            self.halves.clear()
            self.emit(left + right)

    def closed(self) -> None:
        self.one.close()
        self.two.close()
        for half in self.halves:
            flow.hooks.drop_item(half)
        self.halves.clear()


class Setting:
    """A coordinator of a class over sources that the test plays."""

    def __init__(
        self,
        kind: Any = Both,
        count: int = 2,
        request: int = 9,
        on_item: Any = busy,
        wrap: Any = None,
        **more: Any,
    ) -> None:
        self.sources = [TestPublisher[int]() for _ in range(count)]
        flows: list[Any] = [wrap(one) if wrap else one for one in self.sources]
        self.made: list[Any] = []

        def make(downstream: Any, label: str) -> Coordinator[int]:
            coordinator = kind(downstream, label, *flows, **more)
            self.made.append(coordinator)
            return coordinator

        self.publisher = Coordinated(make, "tried")
        self.subscriber = TestSubscriber[int](request, on_item=on_item)

    def subscribe(self) -> Any:
        self.publisher.subscribe(self.subscriber)
        return self

    @property
    def coordinator(self) -> Any:
        return self.made[0]

    def over(self) -> None:
        """Everything is let go, and the permit is there."""
        coordinator = self.coordinator
        self.subscriber.assert_rules_kept()
        assert coordinator.over
        assert coordinator._permit, "the permit is lost"
        assert coordinator._downstream is None
        assert coordinator._receive is flow.hooks.drop_item
        assert not coordinator._tasks
        assert not coordinator._inputs
        for source in self.sources:
            assert not source.subscribed or source.terminated or source.cancelled

    def going(self) -> None:
        coordinator = self.coordinator
        self.subscriber.assert_rules_kept().assert_not_terminated()
        assert not coordinator.over
        assert coordinator._permit, "the permit is lost"
        assert not coordinator._tasks, "a lost wake-up"


def test_items_of_two_sources_come_one_at_a_time_and_none_is_lost() -> None:
    def body() -> Scenario:
        with_two = Setting().subscribe()
        one, two = with_two.sources

        def check() -> None:
            with_two.going()
            assert sorted(with_two.subscriber.items) == [1, 2, 3]
            assert with_two.subscriber.items.index(1) < with_two.subscriber.items.index(2)

        return Scenario(lambda: one.next(1, 2), lambda: two.next(3), check=check)

    exhaust(body)


def test_an_item_against_the_end_of_the_other_source_that_is_the_last_signal() -> None:
    def body() -> Scenario:
        with_two = Setting().subscribe()
        one, two = with_two.sources

        def send() -> None:
            one.next(1)
            one.complete()

        def check() -> None:
            with_two.subscriber.assert_result(1)
            with_two.over()

        return Scenario(send, two.complete, check=check)

    exhaust(body)


def test_an_item_against_an_error_is_given_before_it_or_dropped() -> None:
    def body() -> Scenario:
        with_two = Setting().subscribe()
        one, two = with_two.sources
        error = ValueError()
        drops = recorded_drops()
        record = drops.__enter__()

        def outcome() -> Hashable:
            drops.__exit__(None, None, None)
            with_two.subscriber.assert_failure(error, *with_two.subscriber.items)
            with_two.over()
            # Nothing goes without a trace, unless its source was cancelled before it sent it.
            return (*with_two.subscriber.items, *(f"dropped {n}" for n in record.take_items()))

        return Scenario(lambda: one.next(1), lambda: two.error(error), outcome=outcome)

    exhaust(body, {(), (1,), ("dropped 1",)})


def test_an_item_against_a_request() -> None:
    def body() -> Scenario:
        with_two = Setting(request=1).subscribe()
        one, _ = with_two.sources

        def check() -> None:
            with_two.going()
            with_two.subscriber.assert_items(1)
            assert all(source.requested == 3 for source in with_two.sources)

        return Scenario(lambda: one.next(1), lambda: with_two.subscriber.request(2), check=check)

    exhaust(body)


@pytest.mark.parametrize("errors", [(None, None), (None, ValueError()), (KeyError(), ValueError())])
def test_two_ends_at_once_are_one_end(errors: tuple[Any, Any]) -> None:
    def body() -> Scenario:
        with_two = Setting().subscribe()
        drops = recorded_drops()
        record = drops.__enter__()

        def end(source: TestPublisher[int], error: BaseException | None) -> Any:
            return lambda: source.complete() if error is None else source.error(error)

        def check() -> None:
            drops.__exit__(None, None, None)
            with_two.over()
            failed = [error for error in errors if error is not None]
            if failed:
                seen = with_two.subscriber.error
                assert seen in failed
                # The other one goes to the hook, unless its source was cancelled before.
                assert {*record.take_errors()} <= {*failed} - {seen}
            else:
                with_two.subscriber.assert_result()

        return Scenario(*map(end, with_two.sources, errors), check=check)

    exhaust(body)


def test_an_end_against_a_cancel_lets_everything_go() -> None:
    def body() -> Scenario:
        with_one = Setting(count=1).subscribe()
        (one,) = with_one.sources
        return Scenario(one.complete, with_one.subscriber.cancel, check=with_one.over)

    exhaust(body)


def test_an_item_against_a_cancel_is_given_or_dropped() -> None:
    def body() -> Scenario:
        with_one = Setting(count=1).subscribe()
        (one,) = with_one.sources
        return Scenario(lambda: one.next(1, 2), with_one.subscriber.cancel, check=with_one.over)

    exhaust(body)


class Careful(Both):
    """Has handlers that must not run any more when it was closed."""

    __slots__ = ("missed",)

    def listener(self) -> Input[int]:
        self.missed = 0
        return Listener(self, self.take, self.ended)

    def take(self, item: int) -> bool:
        self.missed += self.closings
        return self.emit(item)

    def ended(self, error: BaseException | None) -> None:
        self.missed += self.closings
        super().ended(error)


@pytest.mark.parametrize("other", ["cancel", "bad"])
def test_no_handler_runs_when_it_was_closed(other: str) -> None:
    def body() -> Scenario:
        with_one = Setting(Careful, count=1).subscribe()
        (one,) = with_one.sources
        subscriber = with_one.subscriber

        def send() -> None:
            one.next(1, 2)
            if not one.cancelled:
                one.complete()

        def check() -> None:
            with_one.over()
            assert not with_one.coordinator.missed

        act = subscriber.cancel if other == "cancel" else lambda: subscriber.subscription.request(0)
        return Scenario(send, act, check=check)

    exhaust(body)


def test_a_cancel_while_the_sources_are_connected_cancels_each() -> None:
    def body() -> Scenario:
        with_two = Setting()

        def check() -> None:
            if with_two.made:
                with_two.over()
                assert with_two.coordinator.inputs == ()
            for source in with_two.sources:
                assert not source.subscribed or source.cancelled

        return Scenario(with_two.subscribe, with_two.subscriber.cancel, check=check)

    exhaust(body)


class Late(Both):
    """Makes its inputs only when it connects them."""

    __slots__ = ()

    def open(self) -> None:
        self.inputs = tuple(self.listener() for _ in self.sources)
        super().open()


def test_inputs_made_while_it_connects_are_released_by_a_simultaneous_cancel() -> None:
    def body() -> Scenario:
        with_one = Setting(Late, count=1)

        def check() -> None:
            with_one.over()
            assert with_one.coordinator.inputs == ()

        return Scenario(with_one.subscribe, with_one.subscriber.cancel, check=check)

    exhaust(body)


def test_an_error_while_the_sources_are_connected_cancels_each() -> None:
    def body() -> Scenario:
        with_two = Setting(request=9)
        error = ValueError()
        one, two = with_two.sources
        ready = threading.Event()
        one._on_request = lambda *_: ready.set()

        def send() -> None:
            ready.wait()
            one.error(error)

        def check() -> None:
            with_two.over()
            with_two.subscriber.assert_failure(error)
            assert not two.subscribed or two.cancelled

        return Scenario(with_two.subscribe, send, check=check)

    exhaust(body)


@pytest.mark.checklist("O12")
def test_a_bad_request_waits_for_a_running_on_next() -> None:
    def body() -> Scenario:
        with_two = Setting().subscribe()
        one, _ = with_two.sources

        def check() -> None:
            with_two.over()
            with_two.subscriber.assert_failure(ValueError, *with_two.subscriber.items)

        return Scenario(
            lambda: one.next(1),
            lambda: with_two.subscriber.subscription.request(0),
            check=check,
        )

    exhaust(body)


def test_a_bad_request_against_a_cancel_is_an_error_or_nothing() -> None:
    def body() -> Scenario:
        with_one = Setting(count=1).subscribe()

        def outcome() -> Hashable:
            with_one.over()
            return type(with_one.subscriber.error).__name__

        return Scenario(
            lambda: with_one.subscriber.subscription.request(-1),
            with_one.subscriber.cancel,
            outcome=outcome,
        )

    exhaust(body, {"ValueError", "NoneType"})


def test_a_bad_request_against_the_end_is_one_end() -> None:
    def body() -> Scenario:
        with_one = Setting(count=1).subscribe()
        (one,) = with_one.sources

        def check() -> None:
            with_one.over()
            assert with_one.subscriber.terminated

        return Scenario(
            lambda: with_one.subscriber.subscription.request(-1), one.complete, check=check
        )

    exhaust(body)


class Switching(Both):
    """Follows its second source once the first one has sent an item."""

    __slots__ = ("old",)

    def open(self) -> None:
        self.old: Input[int] = Listener(self, self.switch, self.ended, 9)
        self.connect(self.sources[0], self.old)

    def requested(self, n: int) -> None:
        pass

    def switch(self, item: int) -> bool:
        self.disconnect(self.old)
        self.connect(self.sources[1], Listener(self, self.emit, self.ended, 9))
        return self.emit(item)


def test_a_source_that_is_connected_by_a_handler_against_a_cancel() -> None:
    def body() -> Scenario:
        switched = Setting(Switching).subscribe()
        one, two = switched.sources

        def check() -> None:
            switched.over()
            assert one.cancelled
            assert not two.subscribed or two.cancelled

        return Scenario(lambda: one.next(1), switched.subscriber.cancel, check=check)

    exhaust(body)


def test_a_handler_connects_and_disconnects_while_the_new_source_sends() -> None:
    def body() -> Scenario:
        switched = Setting(Switching).subscribe()
        one, two = switched.sources
        two_is_there = threading.Event()
        two._on_request = lambda *_: two_is_there.set()

        def send() -> None:
            two_is_there.wait()
            two.next(2)
            two.complete()

        def check() -> None:
            switched.over()
            switched.subscriber.assert_result(1, 2)

        return Scenario(lambda: one.next(1, 7), send, check=check)

    exhaust(body)


class Following(Both):
    """The sources one after the other, each connected when the one before has completed."""

    __slots__ = ("left",)

    def open(self) -> None:
        self.left = list(self.sources)
        self.inputs = (self.listener(),)
        self.connect(self.left.pop(0), self.inputs[0])

    def requested(self, n: int) -> None:
        self.signal()

    def listener(self) -> Input[int]:
        return Listener(self, self.emit, self.ended, 9)

    def ended(self, error: BaseException | None) -> None:
        if error is not None or not self.left:
            super().ended(error)
            return
        self.inputs = (self.listener(),)
        self.connect_later(self.left.pop(0), self.inputs[0])


@pytest.mark.parametrize("ending", ["cancel", "request", "bad"])
def test_a_source_that_is_connected_later_against_the_downstream(ending: str) -> None:
    def body() -> Scenario:
        following = Setting(Following).subscribe()
        one, two = following.sources
        subscriber = following.subscriber

        def act() -> None:
            if ending == "cancel":
                subscriber.cancel()
            else:
                subscriber.subscription.request(2 if ending == "request" else -2)

        def check() -> None:
            assert following.coordinator._later_permit in (None, {0: True})
            assert not following.coordinator._later
            if ending == "request":
                following.going()
                two.next(2)
                two.complete()
                subscriber.assert_result(2)
            following.over()
            assert following.coordinator.inputs == ()

        return Scenario(one.complete, act, check=check)

    exhaust(body)


def test_a_source_that_is_connected_later_may_send_from_another_thread() -> None:
    def body() -> Scenario:
        following = Setting(Following).subscribe()
        one, two = following.sources
        two_is_there = threading.Event()
        two._on_request = lambda *_: two_is_there.set()

        def send() -> None:
            two_is_there.wait()
            two.next(2)
            two.complete()

        def check() -> None:
            following.subscriber.assert_result(1, 2)
            following.over()

        def begin() -> None:
            one.next(1)
            one.complete()

        return Scenario(begin, send, check=check)

    exhaust(body)


class Dropping(Both):
    """Disconnects its first source when the second one sends."""

    __slots__ = ()

    def open(self) -> None:
        one = Listener(self, self.emit, self.ended, 9)
        self.connect(self.sources[0], one)
        two = Listener(self, lambda _: self.disconnect(one), self.ended, 9)
        self.connect(self.sources[1], two)

    def requested(self, n: int) -> None:
        pass


@pytest.mark.parametrize("end", ["items", "complete", "error"])
def test_a_disconnect_against_signals_of_that_source(end: str) -> None:
    def body() -> Scenario:
        dropping = Setting(Dropping).subscribe()
        one, two = dropping.sources
        drops = recorded_drops()
        record = drops.__enter__()
        error = ValueError()

        def send() -> None:
            one.next(1)
            if end == "items":
                one.next(2)
            elif end == "complete":
                one.complete()
            else:
                one.error(error)

        def check() -> None:
            drops.__exit__(None, None, None)
            subscriber = dropping.subscriber
            subscriber.assert_rules_kept()
            assert subscriber.items in ([], [1], [1, 2])
            errors = record.take_errors()
            if subscriber.error is None:
                dropping.going()
                assert errors in ([], [error])
                assert one.cancelled or one.terminated
                assert dropping.coordinator.active == 1
            else:
                assert not errors
                dropping.over()

        return Scenario(send, lambda: two.next(0), check=check)

    exhaust(body)


class Timed(Both):
    """Emits 0 after a second."""

    __slots__ = ("clock", "timer")

    def __init__(self, downstream: Any, label: str, *sources: Any, clock: VirtualClock) -> None:
        super().__init__(downstream, label, *sources)
        self.clock = clock
        self.timer: Any = None

    def open(self) -> None:
        super().open()
        self.timer = self.after(self.clock, 1, self.emit, 0)

    def closed(self) -> None:
        super().closed()
        timer, self.timer = self.timer, None
        if timer is not None:
            timer.dispose()


def test_a_timer_against_an_item() -> None:
    def body() -> Scenario:
        clock = VirtualClock()
        timed = Setting(Timed, count=1, clock=clock).subscribe()
        (one,) = timed.sources

        def check() -> None:
            timed.going()
            assert sorted(timed.subscriber.items) == [0, 1]

        return Scenario(lambda: one.next(1), lambda: clock.advance_by(1), check=check)

    exhaust(body)


def test_a_timer_against_a_cancel() -> None:
    def body() -> Scenario:
        clock = VirtualClock()
        timed = Setting(Timed, count=1, clock=clock).subscribe()

        def check() -> None:
            timed.over()
            assert timed.coordinator.timer is None
            clock.advance_by(2)
            assert timed.subscriber.items in ([], [0])

        return Scenario(lambda: clock.advance_by(1), timed.subscriber.cancel, check=check)

    exhaust(body)


def test_a_timer_that_is_started_against_a_cancel_does_not_stay() -> None:
    def body() -> Scenario:
        timed = Setting(Timed, count=1, clock=VirtualClock())

        def check() -> None:
            timed.over()
            assert timed.coordinator.timer is None

        return Scenario(timed.subscribe, timed.subscriber.cancel, check=check)

    exhaust(body)


class Raising(Both):
    """A handler that raises for 1."""

    __slots__ = ()

    def listener(self) -> Input[int]:
        return Listener(self, self.check, self.ended)

    def check(self, item: int) -> bool:
        if item == 1:
            raise LookupError
        return self.emit(item)


def test_a_handler_that_raises_against_an_item_of_the_other_source() -> None:
    def body() -> Scenario:
        raising = Setting(Raising).subscribe()
        one, two = raising.sources

        def check() -> None:
            raising.over()
            raising.subscriber.assert_failure(LookupError, *raising.subscriber.items)
            assert raising.subscriber.items in ([], [2])
            error = raising.subscriber.error
            assert error is not None
            assert error.__notes__ == ["in tried"]

        return Scenario(lambda: one.next(1), lambda: two.next(2), check=check)

    with recorded_drops():
        exhaust(body)


def test_a_downstream_that_raises_gives_the_permit_back() -> None:
    def raising(_: object, item: int) -> None:
        step()
        if item == 1:
            raise LookupError

    def body() -> Scenario:
        with_two = Setting(on_item=raising).subscribe()
        one, two = with_two.sources

        def check() -> None:
            with_two.over()
            with_two.subscriber.assert_not_terminated()

        return Scenario(lambda: one.next(1), lambda: two.next(2), check=check)

    with recorded_drops():
        exhaust(body)


@pytest.mark.parametrize("what", ["request", "cancel", "bad"])
def test_a_downstream_that_acts_in_on_next_against_the_other_source(what: str) -> None:
    def act(subscriber: TestSubscriber[int], _: object) -> None:
        step()
        if what == "request":
            subscriber.request(1)
        elif what == "cancel":
            subscriber.cancel()
        else:
            subscriber.subscription.request(0)

    def body() -> Scenario:
        with_two = Setting(on_item=act, request=1).subscribe()
        one, two = with_two.sources

        def check() -> None:
            if what == "request":
                with_two.going()
                assert sorted(with_two.subscriber.items) == [1, 2]
                assert one.requested == two.requested == 3
            else:
                with_two.over()
                assert len(with_two.subscriber.items) == 1

        return Scenario(lambda: one.next(1), lambda: two.next(2), check=check)

    with recorded_drops():
        exhaust(body)


class Silent(Publisher[int]):
    """Gives a subscription when the test says so."""

    def __init__(self) -> None:
        self.subscriber: Any = None
        self.publisher = TestPublisher[int]()

    def subscribe(self, subscriber: Any, /) -> None:
        self.subscriber = subscriber

    def introduce(self) -> None:
        self.publisher.subscribe(self.subscriber)


@pytest.mark.parametrize("ending", ["cancel", "request"])
def test_a_late_on_subscribe_against_a_cancel_or_a_request(ending: str) -> None:
    def body() -> Scenario:
        silent = Silent()
        with_one = Setting(count=1, request=2, wrap=lambda _: silent).subscribe()

        def check() -> None:
            if ending == "cancel":
                assert silent.publisher.cancelled
                with_one.over()
            else:
                with_one.going()
                assert silent.publisher.requested == 5

        subscriber = with_one.subscriber
        other = subscriber.cancel if ending == "cancel" else lambda: subscriber.request(3)
        return Scenario(silent.introduce, other, check=check)

    exhaust(body)


# -- inputs whose items wait


def test_pairs_are_complete_when_their_halves_come_at_once() -> None:
    def body() -> Scenario:
        pairs = Setting(Pairs).subscribe()
        one, two = pairs.sources

        def check() -> None:
            pairs.subscriber.assert_result(11)
            pairs.over()

        def send(source: TestPublisher[int], *items: int) -> Any:
            def act() -> None:
                source.next(*items)
                if not source.cancelled:
                    source.complete()

            return act

        return Scenario(send(one, 1), send(two, 10), check=check)

    exhaust(body)


def test_pairs_against_a_request() -> None:
    def body() -> Scenario:
        pairs = Setting(Pairs, request=0).subscribe()
        one, two = pairs.sources
        one.next(1)

        def check() -> None:
            pairs.subscriber.assert_items(11)
            pairs.going()

        return Scenario(lambda: two.next(10), lambda: pairs.subscriber.request(1), check=check)

    exhaust(body)


def test_waiting_items_are_dropped_by_a_cancel_and_never_lost() -> None:
    def body() -> Scenario:
        pairs = Setting(Pairs).subscribe()
        one, _ = pairs.sources
        drops = recorded_drops()
        record = drops.__enter__()

        def outcome() -> Hashable:
            drops.__exit__(None, None, None)
            pairs.over()
            assert pairs.coordinator.one.waiting == 0
            assert not pairs.coordinator.halves
            return tuple(record.take_items())

        return Scenario(lambda: one.next(1, 2), pairs.subscriber.cancel, outcome=outcome)

    exhaust(body, {(), (1,), (1, 2), (2, 1)})


def test_an_error_of_a_source_against_a_cancel_is_dropped_and_never_lost() -> None:
    def body() -> Scenario:
        pairs = Setting(Pairs).subscribe()
        one, _ = pairs.sources
        error = ValueError()
        drops = recorded_drops()
        record = drops.__enter__()

        def outcome() -> Hashable:
            drops.__exit__(None, None, None)
            pairs.over()
            errors = record.take_errors()
            told = pairs.subscriber.error
            cancelled_first = one.cancelled and not one.terminated
            assert len(errors) + (told is not None) == (not cancelled_first)
            return len(errors)

        return Scenario(lambda: one.error(error), pairs.subscriber.cancel, outcome=outcome)

    exhaust(body, {0, 1})


@pytest.mark.parametrize("kind", ["synchronous", "asynchronous", "none"])
def test_queues_of_upstreams_are_polled_under_the_permit(kind: str) -> None:
    def fused(source: TestPublisher[int]) -> Any:
        if kind == "synchronous":
            return flow.range(1, 2)
        if kind == "asynchronous":
            return flow.Flow(source).pipe(observe_on(lambda task: task()))
        return source

    def body() -> Scenario:
        pairs = Setting(Pairs, wrap=fused, request=0)
        pairs.subscribe()
        if kind != "synchronous":
            for source in pairs.sources:
                source.next(1)
                source.complete()

        def check() -> None:
            one = pairs.coordinator.one
            assert (one._synchronous, one._asynchronous) == (
                kind == "synchronous",
                kind == "asynchronous",
            )
            pairs.subscriber.assert_result(2)
            pairs.over()

        return Scenario(
            lambda: pairs.subscriber.request(1), lambda: pairs.subscriber.request(1), check=check
        )

    exhaust(body)
