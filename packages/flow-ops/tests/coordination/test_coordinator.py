"""The behaviour of coordinators and their inputs, in one thread."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow
from flow_core.errors import MissingBackpressureError, NoneItemError
from flow_core.protocols import EMPTY, CoreSubscriber, Publisher, Subscription
from flow_ops import observe_on
from flow_ops.coordination import BufferedInput, Coordinated, Coordinator, Input, Listener
from flow_testing import (
    ConditionalTestSubscriber,
    Payloads,
    TestPublisher,
    TestSubscriber,
    Violation,
    assert_released,
)

Made = list[Any]


def coordinated(kind: Any, *sources: Any, made: Made | None = None, **more: Any) -> Flow[Any]:
    def make(downstream: Any, label: str) -> Coordinator[Any]:
        coordinator: Coordinator[Any] = kind(downstream, label, *sources, **more)
        if made is not None:
            made.append(coordinator)
        return coordinator

    return Flow(Coordinated(make, "tried"))


class Passing(Coordinator[Any]):
    """Passes on what its sources send; ends with the first."""

    __slots__ = ("inputs", "sources")

    def __init__(self, downstream: Any, label: str, *sources: Publisher[Any]) -> None:
        super().__init__(downstream, label)
        self.sources = sources
        self.inputs: tuple[Input[Any], ...] = tuple(self.input() for _ in sources)

    def input(self) -> Input[Any]:
        return Listener(self, self.emit, self.ended)

    def open(self) -> None:
        for source, to in zip(self.sources, self.inputs, strict=False):
            self.connect(source, to)

    def requested(self, n: int) -> None:
        for one in self.inputs:
            one.request(n)

    def closed(self) -> None:
        self.inputs = ()

    def ended(self, error: BaseException | None) -> None:
        if error is None:
            self.complete()
        else:
            self.fail(error)


class Buffering(Coordinator[Any]):
    """Emits what waits as far as there is demand."""

    __slots__ = ("input", "source")

    def __init__(
        self, downstream: Any, label: str, source: Publisher[Any], prefetch: int = 4
    ) -> None:
        super().__init__(downstream, label)
        self.source = source
        self.input: BufferedInput[Any] = BufferedInput(self, prefetch)

    def open(self) -> None:
        self.connect(self.source, self.input)

    def step(self) -> None:
        one = self.input
        while not self.over:
            if one.ended():
                error, one.error = one.error, None
                if error is None:
                    self.complete()
                else:
                    self.fail(error)
                return
            if not self.demand:
                return
            item = one.poll()
            if item is EMPTY:
                if one.ended():
                    continue
                return
            self.emit(item)

    def closed(self) -> None:
        self.input.close()


class Repeating(Passing):
    """Its first source again and again, by `connect_later` or by `connect`."""

    __slots__ = ("left",)

    later = True

    def __init__(self, downstream: Any, label: str, *sources: Any, times: int) -> None:
        super().__init__(downstream, label, *sources)
        self.left = times - 1

    def requested(self, n: int) -> None:
        self.inputs[0].request(n)

    def ended(self, error: BaseException | None) -> None:
        if error is not None or not self.left:
            super().ended(error)
            return
        self.left -= 1
        again = Listener(self, self.emit, self.ended, self.demand)
        self.inputs = (again,)
        (self.connect_later if self.later else self.connect)(self.sources[0], again)


class RepeatingAtOnce(Repeating):
    __slots__ = ()
    later = False


# -- Listener


def test_a_source_keeps_the_order_of_its_items_when_it_is_requested_within_on_next() -> None:
    """The item that is being handled is not overtaken by what its own request brings."""
    source: TestPublisher[int] = TestPublisher(
        on_request=lambda publisher, _: publisher.outstanding and publisher.next(count.pop(0))
    )
    count = list(range(10))
    subscriber = TestSubscriber[int](1, on_item=lambda who, n: n < 9 and who.request(1))
    coordinated(Passing, source).subscribe(subscriber)
    subscriber.assert_items(*range(10))


def test_an_item_a_conditional_downstream_drops_is_requested_again() -> None:
    source = TestPublisher[int]()
    subscriber = ConditionalTestSubscriber[int](lambda n: n % 2 == 0, 1)
    coordinated(Passing, source).subscribe(subscriber)
    source.next(1)
    source.assert_requests(1, 1)
    source.next(2)
    source.assert_requests(1, 1)
    subscriber.assert_items(2)


def test_a_conditional_upstream_learns_that_an_item_was_dropped() -> None:
    source = TestPublisher[int](conditional=True)
    subscriber = ConditionalTestSubscriber[int](lambda n: n % 2 == 0, 1)
    coordinated(Passing, source).subscribe(subscriber)
    source.next(1, 3, 4)
    source.assert_requests(1)
    subscriber.assert_items(4)


@pytest.mark.parametrize("when", ["on_subscribe", "on_next"])
def test_a_downstream_that_cancels_gets_nothing_more(when: str, dropped: Any) -> None:
    source = TestPublisher[int](Violation.IGNORED_CANCEL)

    class Cancelling(TestSubscriber[int]):
        def on_subscribe(self, subscription: Subscription, /) -> None:
            super().on_subscribe(subscription)
            if when == "on_subscribe":
                self.cancel()

    made: Made = []
    subscriber = Cancelling(9, on_item=lambda who, _: who.cancel())
    coordinated(Passing, source, made=made).subscribe(subscriber)
    if when == "on_subscribe":
        source.assert_not_subscribed()
        subscriber.assert_items()
    else:
        source.next(1, 2)
        source.assert_cancelled()
        subscriber.assert_items(1)
        assert dropped.items == [2]
    assert made[0].inputs == ()


def test_a_downstream_that_raises_in_on_subscribe_is_not_connected() -> None:
    class Raising(TestSubscriber[int]):
        def on_subscribe(self, subscription: Subscription, /) -> None:
            raise LookupError

    source = TestPublisher[int]()
    made: Made = []
    with pytest.raises(LookupError):
        coordinated(Passing, source, made=made).subscribe(Raising())
    source.assert_not_subscribed()
    assert made[0].over
    assert made[0]._permit


def test_a_bad_request_in_on_subscribe_comes_after_it() -> None:
    source = TestPublisher[int]()
    subscriber = TestSubscriber[int](-1)
    coordinated(Passing, source).subscribe(subscriber)
    subscriber.assert_failure(ValueError)
    source.assert_not_subscribed()


def test_a_fatal_error_of_a_downstream_propagates_and_ends_the_flow() -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    source = TestPublisher[int]()
    made: Made = []
    coordinated(Passing, source, made=made).subscribe(TestSubscriber[int](9, on_item=interrupt))
    with pytest.raises(KeyboardInterrupt):
        source.next(1)
    source.assert_cancelled()
    assert made[0]._permit
    assert made[0]._downstream is None


def test_open_that_raises_fails_the_flow_and_cancels_the_connected_sources() -> None:
    class Broken(Passing):
        __slots__ = ()

        def open(self) -> None:
            super().open()
            raise LookupError

    source = TestPublisher[int]()
    subscriber = TestSubscriber[int]()
    coordinated(Broken, source).subscribe(subscriber)
    subscriber.assert_failure(LookupError)
    source.assert_cancelled()


def test_a_source_that_raises_in_subscribe_fails_the_flow() -> None:
    class Broken(Publisher[int]):
        def subscribe(self, subscriber: Any, /) -> None:
            raise LookupError

    subscriber = TestSubscriber[int]()
    coordinated(Passing, Broken()).subscribe(subscriber)
    subscriber.assert_failure(LookupError)
    subscriber = TestSubscriber[int]()
    coordinated(Buffering, Broken()).subscribe(subscriber)
    subscriber.assert_failure(LookupError)


def test_step_that_raises_fails_the_flow_with_a_note_of_its_place() -> None:
    class Broken(Buffering):
        __slots__ = ()

        def step(self) -> None:
            if self.input.waiting:
                raise LookupError("step")

    source = TestPublisher[int]()
    subscriber = TestSubscriber[int]()
    coordinated(Broken, source).subscribe(subscriber)
    source.next(1)
    subscriber.assert_failure(LookupError)
    assert subscriber.error is not None
    assert subscriber.error.__notes__ == ["in tried"]
    source.assert_cancelled()


def test_a_handler_that_raises_stop_iteration_fails_the_flow() -> None:
    class Broken(Passing):
        __slots__ = ()

        def input(self) -> Input[Any]:
            return Listener(self, self.stop, self.ended)

        def stop(self, _: object) -> None:
            raise StopIteration

    source = TestPublisher[int]()
    subscriber = TestSubscriber[int]()
    coordinated(Broken, source).subscribe(subscriber)
    source.next(1)
    subscriber.assert_failure(RuntimeError)


@pytest.mark.parametrize("kind", [Passing, Buffering])
@pytest.mark.parametrize("end", ["complete", "error"])
def test_signals_after_the_end_go_to_the_hooks(kind: Any, end: str, dropped: Any) -> None:
    source = TestPublisher[int](Violation.AFTER_TERMINAL | Violation.OVERFLOW)
    subscriber = TestSubscriber[int](0)
    coordinated(kind, source).subscribe(subscriber)
    error = ValueError()
    late = LookupError()
    source.complete() if end == "complete" else source.error(error)
    source.next(1)
    source.error(late)
    source.complete()
    if end == "complete":
        subscriber.assert_result()
    else:
        subscriber.assert_failure(error)
    assert dropped.items == [1]
    assert dropped.errors == [late]


@pytest.mark.parametrize("kind", [Passing, Buffering])
def test_a_second_subscription_is_cancelled(kind: Any) -> None:
    source = TestPublisher[int]()
    subscriber = TestSubscriber[int]()
    coordinated(kind, source).subscribe(subscriber)
    second = source.subscribe_again()
    assert second.cancelled
    source.assert_not_cancelled().next(1)
    source.complete()
    subscriber.assert_result(1)


class Keeping(Publisher[int]):
    """Keeps its subscriber, and gives it no subscription."""

    def __init__(self) -> None:
        self.subscriber: Any = None

    def subscribe(self, subscriber: Any, /) -> None:
        self.subscriber = subscriber


class Link:
    """Writes down what it is asked."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def request(self, n: int, /) -> None:
        self.calls.append(n)

    def cancel(self) -> None:
        self.calls.append("cancel")


@pytest.mark.parametrize("kind", [Passing, Buffering])
def test_a_late_on_subscribe_after_a_cancel_is_cancelled(kind: Any) -> None:
    source = Keeping()
    subscriber = TestSubscriber[int]()
    coordinated(kind, source).subscribe(subscriber)
    subscriber.cancel()
    link = Link()
    source.subscriber.on_subscribe(link)
    assert link.calls == ["cancel"]


@pytest.mark.parametrize("kind", [Passing, Buffering])
def test_a_late_on_subscribe_after_a_disconnect_is_cancelled(kind: Any) -> None:
    source, made = Keeping(), Made()
    coordinated(kind, source, made=made).subscribe(TestSubscriber[int]())
    made[0].disconnect(source.subscriber)
    link = Link()
    source.subscriber.on_subscribe(link)
    assert link.calls == ["cancel"]
    assert made[0].active == 0


@pytest.mark.parametrize("kind", [Passing, Buffering])
@pytest.mark.parametrize("end", ["complete", "error"])
def test_a_terminal_calls_nothing_of_the_subscription(kind: Any, end: str) -> None:
    """§2.3: nor what it makes the coordinator do; §2.4: nor what comes later."""
    source, link = Keeping(), Link()
    subscriber = TestSubscriber[int](0)
    coordinated(kind, source).subscribe(subscriber)
    source.subscriber.on_subscribe(link)
    if kind is Buffering:
        for n in range(4):
            source.subscriber.on_next(n)
    before = list(link.calls)
    if end == "complete":
        source.subscriber.on_complete()
    else:
        source.subscriber.on_error(ValueError())
    subscriber.request(3)
    subscriber.request(9)
    assert subscriber.terminated
    assert link.calls == before


@pytest.mark.parametrize("kind", [Passing, Buffering])
def test_none_is_refused(kind: Any) -> None:
    source = Keeping()
    coordinated(kind, source).subscribe(TestSubscriber[int]())
    to: CoreSubscriber[Any] = source.subscriber
    for call in (to.on_subscribe, to.on_next, to.on_error):
        refused: Callable[[Any], object] = call
        with pytest.raises(NoneItemError):
            refused(None)


def test_a_handler_that_is_posted_after_the_end_gives_its_argument_to_the_hook(
    dropped: Any,
) -> None:
    made: Made = []
    coordinated(Passing, flow.never(), made=made).subscribe(subscriber := TestSubscriber[int]())
    subscriber.cancel()
    made[0].post(lambda _: pytest.fail("it is over"), 7, flow.hooks.drop_item)
    assert dropped.items == [7]
    assert not made[0]._tasks


# -- BufferedInput


def test_the_prefetch_is_requested_and_three_quarters_of_it_again() -> None:
    source = TestPublisher[int]()
    subscriber = TestSubscriber[int](0)
    coordinated(Buffering, source, prefetch=4).subscribe(subscriber)
    source.next(1, 2, 3, 4).assert_requests(4)
    subscriber.request(2)
    source.assert_requests(4)
    subscriber.request(1)
    source.assert_requests(4, 3)
    subscriber.assert_items(1, 2, 3)


def test_more_than_was_requested_is_an_error_behind_waiting_items(dropped: Any) -> None:
    source = TestPublisher[int](Violation.OVERFLOW)
    subscriber = TestSubscriber[int](0)
    coordinated(Buffering, source, prefetch=2).subscribe(subscriber)
    source.next(1, 2, 3, 4)
    source.assert_cancelled()
    subscriber.request(2)
    subscriber.assert_failure(MissingBackpressureError, 1, 2)
    assert dropped.items == [3]


def fused(*items: Any) -> Flow[Any]:
    return flow.from_iterable(items)


def shared(*items: Any) -> Flow[Any]:
    return flow.from_iterable(items).hide().pipe(observe_on(lambda task: task()))


@pytest.mark.parametrize("source", [fused, shared], ids=["SYNC", "ASYNC"])
def test_a_queue_of_the_upstream_is_polled_on_demand(source: Any) -> None:
    made: Made = []
    subscriber = TestSubscriber[int](1)
    coordinated(Buffering, source(1, 2, 3), made=made).subscribe(subscriber)
    one = made[0].input
    assert (one._synchronous, one._asynchronous) == (source is fused, source is shared)
    subscriber.assert_items(1)
    subscriber.request(1)
    subscriber.assert_items(1, 2).assert_not_terminated()
    subscriber.request(1)
    subscriber.assert_result(1, 2, 3)
    assert one.waiting == 0


@pytest.mark.parametrize("source", [fused, shared], ids=["SYNC", "ASYNC"])
def test_a_queue_that_raises_fails_the_flow_with_the_same_error(source: Any) -> None:
    error = LookupError()

    def items() -> Iterator[int]:
        yield 1
        raise error

    subscriber = TestSubscriber[int]()
    upstream = flow.from_iterable(items())
    if source is shared:
        upstream = upstream.hide().pipe(observe_on(lambda task: task()))
    coordinated(Buffering, upstream).subscribe(subscriber)
    subscriber.assert_failure(error, 1)


def test_a_generator_that_is_polled_is_closed_by_a_cancel() -> None:
    closed = []

    def items() -> Iterator[int]:
        try:
            yield from range(9)
        finally:
            closed.append(True)

    subscriber = TestSubscriber[int](2)
    coordinated(Buffering, flow.from_iterable(items())).subscribe(subscriber)
    subscriber.assert_items(0, 1)
    assert not closed
    subscriber.cancel()
    assert closed == [True]


# -- connect_later


@pytest.mark.slow
@pytest.mark.parametrize("demand", ["unbounded", "one by one"])
def test_many_sources_that_follow_each_other_need_no_recursion(demand: str) -> None:
    times = 20_000
    if demand == "unbounded":
        subscriber = TestSubscriber[int]()
    else:
        subscriber = TestSubscriber[int](1, on_item=lambda who, _: who.request(1))
    coordinated(Repeating, flow.just(1), times=times).subscribe(subscriber)
    assert len(subscriber.items) == times
    subscriber.assert_result(*subscriber.items)


@pytest.mark.slow
def test_many_empty_sources_need_no_recursion() -> None:
    subscriber = TestSubscriber[int](0)
    coordinated(Repeating, flow.empty(), times=20_000).subscribe(subscriber)
    subscriber.assert_result()


@pytest.mark.slow
def test_many_sources_connected_with_the_permit_need_no_recursion() -> None:
    subscriber = TestSubscriber[int]()
    coordinated(RepeatingAtOnce, flow.just(1), times=20_000).subscribe(subscriber)
    assert len(subscriber.items) == 20_000


def test_items_of_a_later_source_do_not_wait() -> None:
    """With `connect` under the permit, all of it would wait in the queue of handlers."""
    items = 50_000
    most = 0
    made: Made = []

    def seen(_: object) -> None:
        nonlocal most
        most = max(most, len(made[0]._tasks))

    tracemalloc.start()
    try:
        coordinated(Repeating, flow.range(items), times=2, made=made).subscribe(seen).wait()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most <= 1
    assert peak < 500_000


# -- what it keeps


@pytest.mark.parametrize(
    "make",
    [
        lambda payloads: coordinated(Passing, payloads.pushed()),
        lambda payloads: coordinated(Passing, payloads.pushed(), flow.never()),
        lambda payloads: coordinated(Buffering, payloads.pushed()),
        lambda payloads: coordinated(Buffering, flow.from_iterable(payloads)),
        lambda payloads: coordinated(Repeating, payloads.pushed(), times=3),
    ],
    ids=["Listener", "two Listeners", "BufferedInput", "BufferedInput, SYNC", "connect_later"],
)
def test_it_lets_go_of_everything(make: Callable[[Payloads], Flow[Any]]) -> None:
    assert_released(make)
