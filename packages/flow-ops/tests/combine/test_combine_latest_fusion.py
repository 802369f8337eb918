"""`combine_latest` with a downstream that polls: the same items, and one queue less."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import flow_core as flow
from flow_core import EMPTY, Flow, Fusion, QueueSubscription
from flow_core.errors import MissingBackpressureError, ProtocolViolationError
from flow_core.introspection import links
from flow_core.protocols import CoreSubscriber, Subscription
from flow_ops import combine_latest, concat_map, concat_with, observe_on, ordered_merge
from flow_ops import zip as zip_flows
from flow_testing import (
    ENDINGS,
    Payloads,
    TestPublisher,
    TestSubscriber,
    Violation,
    assert_released,
    assert_result,
    observe,
)

pytestmark = pytest.mark.checklist("F50")

MODES = [Fusion(mode) for mode in range(8)]


class Woken(CoreSubscriber[Any]):
    """Asks for ASYNC, writes signals down, and leaves polling to the test."""

    def __init__(self, mode: Fusion = Fusion.ASYNC) -> None:
        self.mode = mode
        self.granted = Fusion.NONE
        self.signals: list[object] = []
        self.queue: QueueSubscription[Any]

    def on_subscribe(self, subscription: Subscription, /) -> None:
        assert isinstance(subscription, QueueSubscription)
        self.queue = subscription
        self.granted = subscription.request_fusion(self.mode)

    def on_next(self, item: Any, /) -> None:
        self.signals.append(item)

    def on_error(self, error: BaseException, /) -> None:
        self.signals.append(error)

    def on_complete(self) -> None:
        self.signals.append("complete")


Two = tuple[TestPublisher[Any], TestPublisher[Any], Any]


def played(subscriber: CoreSubscriber[Any] | None = None, **more: Any) -> Two:
    """A subscriber that polls, and two flows that the test plays."""
    a, b = TestPublisher[Any](), TestPublisher[Any]()
    if subscriber is None:
        subscriber = Woken()
    combine_latest(Flow(a), Flow(b), **more).subscribe(subscriber)
    return a, b, subscriber


def polled(request: int = flow.UNBOUNDED, **more: Any) -> Two:
    """The same with a subscriber that polls what it is woken for."""
    a, b, subscriber = played(TestSubscriber[Any](request, fusion=Fusion.ASYNC), **more)
    assert subscriber.fused is Fusion.ASYNC
    return a, b, subscriber


# -- what is granted


@pytest.mark.checklist("F23", "F39")
@pytest.mark.parametrize("mode", MODES, ids=str)
def test_it_grants_async_and_across_threads(mode: Fusion) -> None:
    _, _, subscriber = played(Woken(mode))
    assert subscriber.granted is mode & Fusion.ASYNC


@pytest.mark.checklist("F24", "F47")
@pytest.mark.parametrize("mode", [Fusion.NONE, Fusion.SYNC, Fusion.ASYNC], ids=str)
def test_it_is_asked_once(mode: Fusion) -> None:
    class Twice(Woken):
        def on_subscribe(self, subscription: Subscription, /) -> None:
            super().on_subscribe(subscription)
            with pytest.raises(ProtocolViolationError):
                self.queue.request_fusion(Fusion.ASYNC)

    played(Twice(mode))


@pytest.mark.checklist("F24")
def test_it_is_asked_before_any_request_and_in_on_subscribe() -> None:
    class Late(Woken):
        def on_subscribe(self, subscription: Subscription, /) -> None:
            subscription.request(1)
            with pytest.raises(ProtocolViolationError):
                super().on_subscribe(subscription)

    played(Late())
    plain = TestSubscriber[Any](0)
    played(plain)
    queue: Any = plain.subscription
    with pytest.raises(ProtocolViolationError):
        queue.request_fusion(Fusion.ASYNC)


@pytest.mark.checklist("F36")
def test_when_hidden_it_is_not_a_queue() -> None:
    made = combine_latest(flow.just(1), flow.just(2)).hide()
    assert observe(made, fusion=Fusion.ANY).fused is Fusion.NONE


# -- items


def test_every_way_to_take_the_items_gives_the_same() -> None:
    assert_result(
        lambda: combine_latest(flow.range(3), flow.range(10, 13), prefetch=2),
        [(2, 10), (2, 11), (2, 12)],
    )
    assert_result(
        lambda: combine_latest(flow.just(1, 2), flow.range(5), flow.just(3)).starmap(
            lambda a, b, c: a * b + c
        ),
        [11],
    )
    assert_result(
        lambda: (
            combine_latest(flow.just(0), flow.range(9), prefetch=4)
            .starmap(lambda _, n: n)
            .filter(lambda n: n % 2)
            .map(str)
        ),
        ["1", "3", "5", "7"],
    )


@pytest.mark.checklist("F26")
def test_it_signals_only_that_an_item_is_available() -> None:
    a, b, woken = played()
    a.next(1)
    assert woken.signals == []
    assert woken.queue.is_empty()
    b.next(10, 20)
    assert woken.signals == [EMPTY, EMPTY]
    assert not woken.queue.is_empty()
    assert woken.queue.poll() == (1, 10)
    a.next(2)
    assert [woken.queue.poll() for _ in range(3)] == [(1, 20), (2, 20), EMPTY]
    assert woken.queue.is_empty()


def test_it_needs_no_demand_to_be_polled() -> None:
    a, b, woken = played()
    a.next(1)
    b.next(2)
    assert woken.queue.poll() == (1, 2)


@pytest.mark.parametrize("prefetch", [1, 4, 128])
def test_polling_requests_three_quarters_of_the_prefetch_again(prefetch: int) -> None:
    a, b, woken = played(prefetch=prefetch)
    limit = max(1, prefetch - prefetch // 4)
    b.next("x")
    a.next(*range(limit))
    a.assert_requests(prefetch)
    for _ in range(limit - 1):
        woken.queue.poll()
    a.assert_requests(prefetch)
    assert woken.queue.poll() == (limit - 1, "x")
    a.assert_requests(prefetch, limit)
    woken.queue.request(5)
    a.assert_requests(prefetch, limit)


def test_a_flow_that_sends_more_than_can_wait_fails_it(dropped: Any) -> None:
    a, b = TestPublisher[int](violations=Violation.OVERFLOW), TestPublisher[int]()
    woken = Woken()
    combine_latest(Flow(b), Flow(a), prefetch=2).subscribe(woken)
    b.next(0)
    a.next(1, 2)
    assert woken.queue.poll() == (0, 1)
    a.next(3, 4)
    assert [type(signal) for signal in woken.signals[3:]] == [MissingBackpressureError]
    assert woken.queue.poll() is EMPTY
    assert sorted(dropped.items) == [(0, 2), (0, 3), (0, 4)]
    b.assert_cancelled()


# -- the end


@pytest.mark.checklist("F33")
def test_it_completes_with_the_last_poll() -> None:
    a, b, woken = played()
    a.next(1)
    b.next(2, 3)
    a.complete()
    b.complete()
    assert woken.signals == [EMPTY, EMPTY]
    assert woken.queue.poll() == (1, 2)
    assert woken.signals == [EMPTY, EMPTY]
    assert woken.queue.poll() == (1, 3)
    assert woken.signals == [EMPTY, EMPTY, "complete"]
    assert woken.queue.poll() is EMPTY


def test_it_completes_at_once_when_all_was_polled() -> None:
    a, b, woken = played()
    a.next(1)
    b.next(2)
    assert woken.queue.poll() == (1, 2)
    a.complete()
    b.complete()
    assert woken.signals == [EMPTY, "complete"]
    a, b, woken = played()
    a.next(1)
    b.complete()
    assert woken.signals == ["complete"]


def test_an_error_overtakes_what_was_not_polled(dropped: Any) -> None:
    a, b, subscriber = polled(1)
    a.next(1)
    b.next(1, 2)
    error = ValueError("a")
    a.error(error)
    subscriber.assert_failure(error, (1, 1))
    b.assert_cancelled()
    assert dropped.items == [(1, 2)]


def test_delayed_errors_come_with_the_last_poll() -> None:
    a, b, subscriber = polled(1, delay_error=True)
    error = ValueError("a")
    a.next(1)
    a.error(error)
    b.next(2, 3)
    b.complete()
    subscriber.assert_items((1, 2)).assert_not_terminated().request(1)
    subscriber.assert_failure(error, (1, 2), (1, 3))


def test_a_downstream_that_raises_when_it_is_woken_ends_it(dropped: Any) -> None:
    class Raising(Woken):
        def on_next(self, item: Any, /) -> None:
            raise KeyError("woken")

    a, b, woken = played(Raising())
    a.next(1)
    b.next(2)
    a.assert_cancelled()
    b.assert_cancelled()
    assert woken.signals == []
    assert woken.queue.is_empty()
    assert [type(error) for error in dropped.errors] == [KeyError]
    assert dropped.items == [(1, 2)]


@pytest.mark.checklist("X08")
def test_a_wrong_request_ends_it(dropped: Any) -> None:
    a, b, woken = played()
    a.next(1)
    b.next(2)
    woken.queue.request(0)
    assert [type(signal) for signal in woken.signals] == [type(EMPTY), ValueError]
    assert woken.queue.poll() is EMPTY
    assert dropped.items == [(1, 2)]
    a.assert_cancelled()


# -- cancel


def test_after_a_cancel_there_is_nothing_to_poll(dropped: Any) -> None:
    a, b, woken = played()
    a.next(1)
    b.next(2, 3)
    woken.queue.cancel()
    assert woken.queue.is_empty()
    assert woken.queue.poll() is EMPTY
    assert dropped.items == [(1, 2), (1, 3)]
    a.assert_cancelled()
    b.assert_cancelled()


def test_a_cancel_takes_effect_at_once_though_the_operator_is_at_work(dropped: Any) -> None:
    class Leaving(Woken):
        def on_next(self, item: Any, /) -> None:
            self.queue.cancel()
            self.signals += [self.queue.is_empty(), self.queue.poll()]

    a, b, woken = played(Leaving())
    a.next(1)
    b.next(2)
    assert woken.signals == [True, EMPTY]
    assert dropped.items == [(1, 2)]


def test_clear_drops_waiting_items(dropped: Any) -> None:
    a, b, woken = played()
    a.next(1)
    b.next(2, 3)
    woken.queue.clear()
    assert woken.queue.is_empty()
    assert dropped.items == [(1, 2), (1, 3)]


# -- neighbours


def test_statistics_tell_of_it() -> None:
    a, b, woken = played()
    a.next(1)
    b.next(2)
    told = woken.queue.statistics()
    assert (told.operator, told.fusion) == ("combine_latest(2 flows)", Fusion.ASYNC)
    assert (told.buffered, told.requested, told.terminated) == (1, None, False)
    plain = TestSubscriber[Any](3)
    _, _, plain = played(plain)
    subscription: Any = plain.subscription
    told = subscription.statistics()
    assert (told.fusion, told.requested) == (Fusion.NONE, 3)


@pytest.mark.checklist("F39", "F43")
@pytest.mark.parametrize("prefetch", [1, 3, 128])
def test_observe_on_polls_it(prefetch: int) -> None:
    a, b = TestPublisher[int](), TestPublisher[int]()
    made = combine_latest(Flow(a), Flow(b), prefetch=prefetch)
    with ThreadPoolExecutor(1, thread_name_prefix="worker") as pool:
        subscriber = observe(made.pipe(observe_on(pool, prefetch=prefetch)))
        polled_, *_ = [
            each.fusion
            for each in links(subscriber.subscription)
            if each.operator.startswith("combine_latest")
        ]
        assert polled_ is Fusion.ASYNC
        b.next(0)
        for n in range(20):
            a.next(n)
            subscriber.await_items(n + 1)  # so that it has requested the next one
        a.complete()
        b.complete()
        subscriber.await_terminal()
    subscriber.assert_result(*[(n, 0) for n in range(20)]).assert_on_thread("worker")


@pytest.mark.parametrize("prefetch", [1, 4, 128])
@pytest.mark.parametrize("threads", [1, 3])
def test_nothing_is_lost_between_threads(threads: int, prefetch: int) -> None:
    with ThreadPoolExecutor(threads) as one, ThreadPoolExecutor(threads) as two:
        fast = flow.range(2_000).pipe(observe_on(one, prefetch=prefetch))
        rows = list(
            combine_latest(flow.just("x"), fast, prefetch=prefetch).pipe(
                observe_on(two, prefetch=prefetch)
            )
        )
    assert rows == [("x", n) for n in range(2_000)]


@pytest.mark.parametrize("delay_error", [False, True])
def test_behind_observe_on_a_failure_arrives(delay_error: bool) -> None:
    error = ValueError("the source")
    with ThreadPoolExecutor(1) as pool:
        made = combine_latest(
            flow.just(0),
            flow.range(5).pipe(concat_with(flow.error(error))),
            delay_error=delay_error,
        )
        subscriber = observe(made.pipe(observe_on(pool)))
        subscriber.await_terminal()
    items = [(0, n) for n in range(5)] if delay_error else subscriber.items
    subscriber.assert_failure(error, *items)


def test_those_that_poll_on_other_threads_poll_it() -> None:
    def letters() -> Flow[tuple[str, str]]:
        return combine_latest(flow.just("a"), flow.just(*"xyz"))

    expected = [("a", "x"), ("a", "y"), ("a", "z")]
    assert_result(lambda: letters().pipe(observe_on(lambda task: task())), expected)
    assert_result(lambda: letters().pipe(concat_map(flow.just)), expected)
    assert_result(lambda: ordered_merge(letters(), flow.empty()), expected)
    assert_result(
        lambda: zip_flows(letters(), flow.just(1, 2).hide()),
        [(expected[0], 1), (expected[1], 2)],
    )


@pytest.mark.checklist("F40")
def test_items_that_a_stage_behind_it_drops_are_replaced() -> None:
    a, b = TestPublisher[int](), TestPublisher[int]()
    subscriber = TestSubscriber[Any](3, fusion=Fusion.ASYNC)
    combine_latest(Flow(a), Flow(b), prefetch=4).starmap(lambda _, n: n).filter(
        lambda n: n % 3 == 0
    ).subscribe(subscriber)
    assert subscriber.fused is Fusion.ASYNC
    a.next(0)
    for n in range(9):
        b.next(n)
    subscriber.assert_items(0, 3, 6).assert_not_terminated()
    a.complete()
    b.complete()
    subscriber.assert_not_terminated().request(1)
    subscriber.assert_result(0, 3, 6)


@pytest.mark.checklist("X14")
@pytest.mark.parametrize("ending", [each.name for each in ENDINGS])
@pytest.mark.parametrize("pushed", [False, True])
def test_it_lets_go_of_everything(pushed: bool, ending: str) -> None:
    def source(payloads: Payloads) -> Flow[Any]:
        return payloads.pushed() if pushed else flow.from_iterable(payloads)

    for make in (
        lambda p: combine_latest(flow.just(0), source(p), prefetch=2),
        lambda p: combine_latest(flow.range(2), source(p), delay_error=True),
        lambda p: combine_latest(flow.just(0), source(p)).pipe(observe_on(lambda task: task())),
    ):
        assert_released(make, only=lambda name: name == ending)
