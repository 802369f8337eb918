"""The test subscriber notices what a publisher does wrong."""

from __future__ import annotations

import subprocess
import sys
from collections import deque
from collections.abc import Callable
from threading import Event, Thread, current_thread, get_ident
from typing import Any

import pytest

import flow_core as flow
from flow_core import EMPTY, UNBOUNDED, Empty, Fusion, NoneItemError, QueueSubscription
from flow_testing import (
    TIMEOUT_S,
    ConditionalTestSubscriber,
    TestSubscriber,
    observe,
    race,
)


class Recording:
    """A subscription that does nothing."""

    def __init__(self) -> None:
        self.requests: list[int] = []
        self.cancels = 0

    def request(self, n: int, /) -> None:
        self.requests.append(n)

    def cancel(self) -> None:
        self.cancels += 1


def subscribed(request: int = UNBOUNDED, **options: Any) -> tuple[TestSubscriber[Any], Recording]:
    subscriber, subscription = TestSubscriber[Any](request, **options), Recording()
    subscriber.on_subscribe(subscription)
    return subscriber, subscription


def test_it_requests_the_given_amounts_and_those_asked_before_the_subscription() -> None:
    subscriber, subscription = subscribed(3)
    subscriber.request(2)
    assert subscription.requests == [3, 2]
    early, subscription = TestSubscriber[int](0), Recording()
    early.request(4)
    early.on_subscribe(subscription)
    assert subscription.requests == [4]
    none, subscription = subscribed(0)
    assert subscription.requests == []
    assert none.items == []


def test_a_cancel_before_on_subscribe_is_remembered() -> None:
    subscriber, subscription = TestSubscriber[int](), Recording()
    subscriber.cancel()
    subscriber.on_subscribe(subscription)
    assert (subscription.cancels, subscription.requests) == (1, [])


@pytest.mark.parametrize(
    ("signals", "rule"),
    [
        (lambda s: s.on_next(1), None),
        (lambda s: s.on_subscribe(Recording()), "§2.12"),
        (lambda s: (s.on_next(1), s.on_next(2), s.on_next(3)), "§1.1: item 3, but 2"),
        (lambda s: (s.on_complete(), s.on_next(1)), "§1.7: on_next.1. came after the terminal"),
        (lambda s: (s.on_complete(), s.on_complete()), "§1.7"),
        (lambda s: (s.on_complete(), s.on_error(ValueError())), "§1.7"),
        (lambda s: (s.on_error(ValueError()), s.on_complete()), "§1.7"),
    ],
)
def test_a_broken_rule_fails_every_assertion(
    signals: Callable[[TestSubscriber[Any]], object], rule: str | None
) -> None:
    subscriber, _ = subscribed(2)
    signals(subscriber)
    if rule is None:
        subscriber.assert_rules_kept()
        return
    for assertion in (
        subscriber.assert_rules_kept,
        lambda: subscriber.assert_items(*subscriber.items),
    ):
        with pytest.raises(AssertionError, match=rule):
            assertion()


def test_signals_before_on_subscribe_are_noticed() -> None:
    subscriber = TestSubscriber[int]()
    subscriber.on_complete()
    with pytest.raises(AssertionError, match=r"§1.9: on_complete\(\) came before on_subscribe"):
        subscriber.assert_rules_kept()


def test_a_signal_within_on_subscribe_is_noticed() -> None:
    class Hasty(Recording):
        def request(self, n: int, /) -> None:
            subscriber.on_next(1)

    subscriber = TestSubscriber[int]()
    subscriber.on_subscribe(Hasty())
    with pytest.raises(AssertionError, match=r"§1\.3: .*came while on_subscribe was running"):
        subscriber.assert_rules_kept()


def test_signals_of_two_threads_at_once_are_noticed() -> None:
    entered, go_on = Event(), Event()

    def block(*_: object) -> None:
        entered.set()
        assert go_on.wait(TIMEOUT_S)

    subscriber, _ = subscribed(on_item=block)
    thread = Thread(target=lambda: subscriber.on_next(1))
    thread.start()
    assert entered.wait(TIMEOUT_S)
    subscriber.on_complete()
    go_on.set()
    thread.join(TIMEOUT_S)
    with pytest.raises(AssertionError, match=r"§1\.3: on_complete.* while on_next was running"):
        subscriber.assert_rules_kept()
    assert subscriber.signals[1].thread == thread.ident
    assert subscriber.threads == {thread.ident}
    assert subscriber.signals[2].thread == get_ident()


def test_none_is_refused_and_noticed() -> None:
    for signal in ("on_next", "on_error"):
        subscriber, _ = subscribed()
        with pytest.raises(NoneItemError):
            getattr(subscriber, signal)(None)
        with pytest.raises(AssertionError, match=r"§2\.13"):
            subscriber.assert_rules_kept()


def test_assertions_say_what_was_expected_and_what_was_seen() -> None:
    subscriber, _ = subscribed()
    subscriber.on_next(1)
    for assertion, message in (
        (lambda: subscriber.assert_items(2), r"expected the items \[2\], got \[1\]"),
        (lambda: subscriber.assert_result(1), "expected completion, got none yet"),
        (lambda: subscriber.assert_failure(ValueError, 1), "got no error"),
    ):
        with pytest.raises(AssertionError, match=message) as raised:
            assertion()
        assert "on_subscribe() on_next(1)" in str(raised.value)
    error = ValueError("reason")
    subscriber.on_error(error)
    for assertion in (
        lambda: subscriber.assert_result(1),
        lambda: subscriber.assert_failure(KeyError, 1),
        lambda: subscriber.assert_failure(ValueError("reason"), 1),
        subscriber.assert_not_terminated,
    ):
        with pytest.raises(AssertionError) as raised:
            assertion()
        assert raised.value.__cause__ is error
    subscriber.assert_failure(error, 1).assert_failure(ValueError, 1)
    with pytest.raises(AssertionError, match="no on_subscribe"):
        TestSubscriber[int]().subscription  # noqa: B018 - the property raises


def test_long_histories_are_shortened() -> None:
    subscriber, _ = subscribed()
    for n in range(100):
        subscriber.on_next(n)
    assert "… 77 more …" in repr(subscriber)
    assert len(repr(subscriber)) < 600


def test_it_notices_what_comes_after_cancel() -> None:
    subscriber, _ = subscribed()
    subscriber.cancel()
    subscriber.assert_silent_after_cancel()
    subscriber.on_next(1)
    with pytest.raises(AssertionError, match=r"nothing after cancel.*on_next\(1\)"):
        subscriber.assert_silent_after_cancel()


def test_it_waits_for_items_and_the_end() -> None:
    subscriber, _ = subscribed()

    def send() -> None:
        subscriber.on_next(1)
        subscriber.on_next(2)
        subscriber.on_complete()

    thread = Thread(target=send)
    thread.start()
    subscriber.await_items(2).await_terminal().assert_result(1, 2)
    thread.join(TIMEOUT_S)
    waiting, _ = subscribed()
    for wait in (lambda: waiting.await_terminal(0.01), lambda: waiting.await_items(1, 0.01)):
        with pytest.raises(AssertionError, match=r"within 0.01 s"):
            wait()


def test_a_fused_subscriber_polls_as_many_items_as_are_requested() -> None:
    subscriber = TestSubscriber[int](2, fusion=Fusion.SYNC)
    flow.range(4).subscribe(subscriber)
    assert subscriber.fused is Fusion.SYNC
    subscriber.assert_items(0, 1).request(1)
    subscriber.assert_items(0, 1, 2).assert_not_terminated().request(9)
    subscriber.assert_result(0, 1, 2, 3)
    plain = TestSubscriber[int](fusion=Fusion.SYNC)
    flow.range(4).hide().subscribe(plain)
    assert plain.fused is Fusion.NONE
    plain.assert_result(0, 1, 2, 3)


def test_a_conditional_one_takes_what_it_accepts() -> None:
    subscriber, subscription = ConditionalTestSubscriber[int](lambda n: n > 1, 2), Recording()
    subscriber.on_subscribe(subscription)
    assert [subscriber.try_on_next(n) for n in (1, 2)] == [False, True]
    subscriber.on_next(0)
    subscriber.assert_items(2)
    assert subscriber.rejected == [1, 0]
    assert subscriber.offered == 2
    assert subscription.requests == [2, 1]


# -- what it asserts besides


def test_it_says_whether_it_was_subscribed() -> None:
    waiting = TestSubscriber[int]()
    waiting.assert_not_subscribed()
    with pytest.raises(AssertionError, match="expected an on_subscribe"):
        waiting.assert_subscribed()
    subscriber, _ = subscribed()
    subscriber.assert_subscribed().assert_no_items()
    with pytest.raises(AssertionError, match="expected no on_subscribe"):
        subscriber.assert_not_subscribed()
    subscriber.on_next(1)
    with pytest.raises(AssertionError, match=r"expected the items \[\], got \[1\]"):
        subscriber.assert_no_items()


def test_it_knows_the_demand_that_is_left() -> None:
    subscriber, _ = subscribed(2)
    subscriber.on_next(1)
    subscriber.assert_demand(1).request(3)
    subscriber.assert_demand(4)
    with pytest.raises(AssertionError, match="expected a demand of 1 more items, it is 4"):
        subscriber.assert_demand(1)
    subscribed()[0].assert_demand(UNBOUNDED)


def test_it_compares_what_an_error_says() -> None:
    subscriber, _ = subscribed()
    with pytest.raises(AssertionError, match="'reason', got none"):
        subscriber.assert_error_message("reason")
    subscriber.on_error(ValueError("the reason why"))
    subscriber.assert_error_message("reason")
    with pytest.raises(AssertionError, match="it says the reason why"):
        subscriber.assert_error_message("excuse")


def test_it_says_on_which_threads_it_was_signalled() -> None:
    subscriber, _ = subscribed()
    with pytest.raises(AssertionError, match="got None"):
        subscriber.assert_on_thread(current_thread())
    threads = [
        Thread(target=subscriber.on_next, args=(1,), name="worker_1"),
        Thread(target=subscriber.on_complete, name="worker_2"),
    ]
    for thread in threads:
        thread.start()
        thread.join(TIMEOUT_S)
    subscriber.assert_on_thread("worker").assert_not_on_thread("MainThread")
    subscriber.assert_not_on_thread(current_thread())
    with pytest.raises(AssertionError, match=r"on worker_1…, got on_complete\(\) on 'worker_2'"):
        subscriber.assert_on_thread("worker_1")
    with pytest.raises(AssertionError, match=r"no signal on worker_2, got on_complete\(\)"):
        subscriber.assert_not_on_thread(threads[1])


def test_it_says_what_fusion_was_granted() -> None:
    observe(flow.range(3), fusion=Fusion.SYNC).assert_fusion(Fusion.SYNC).assert_result(0, 1, 2)
    refused = observe(flow.range(3).hide(), fusion=Fusion.ANY).assert_fusion(Fusion.NONE)
    with pytest.raises(AssertionError, match=r"expected <Fusion\.SYNC: 1>, was granted"):
        refused.assert_fusion(Fusion.SYNC)
    with pytest.raises(AssertionError, match="not told to ask"):
        observe(flow.range(3)).assert_fusion(Fusion.NONE)


def test_observe_subscribes_a_new_one() -> None:
    observe(flow.range(5), 2).assert_items(0, 1).assert_demand(0)
    observe(flow.range(5), on_item=lambda it, _: it.cancel()).assert_items(0)


def test_an_amount_that_another_thread_requests_meanwhile_is_requested_once() -> None:
    class Slow(Recording, QueueSubscription[int]):
        def request_fusion(self, mode: Fusion, /) -> Fusion:
            thread = Thread(target=subscriber.request, args=(2,))
            thread.start()
            thread.join(TIMEOUT_S)
            return Fusion.NONE

        def poll(self) -> int | Empty:
            return EMPTY

        def is_empty(self) -> bool:
            return True

        def clear(self) -> None: ...

    subscriber, subscription = TestSubscriber[int](1, fusion=Fusion.ANY), Slow()
    subscriber.on_subscribe(subscription)
    assert sum(subscription.requests) == subscriber.outstanding == 3


# -- fused in ASYNC mode


class SharedQueue(Recording, QueueSubscription[int]):
    """An upstream that shares its queue, as a unicast processor does."""

    def __init__(self, *items: int) -> None:
        super().__init__()
        self.queue = deque(items)
        self.polls: list[object] = []
        self.fails: Exception | None = None

    def request_fusion(self, mode: Fusion, /) -> Fusion:
        assert self.requests == []
        return mode & Fusion.ASYNC

    def poll(self) -> int | Empty:
        if self.fails is not None:
            raise self.fails
        polled = self.queue.popleft() if self.queue else EMPTY
        self.polls.append(polled)
        return polled

    def is_empty(self) -> bool:
        return not self.queue

    def clear(self) -> None:
        self.queue.clear()


def woken(request: int = UNBOUNDED) -> tuple[TestSubscriber[Any], SharedQueue]:
    subscriber, queue = TestSubscriber[Any](request, fusion=Fusion.ANY), SharedQueue()
    subscriber.on_subscribe(queue)
    subscriber.assert_fusion(Fusion.ASYNC)
    return subscriber, queue


def test_fused_async_it_requests_and_polls_when_it_is_woken() -> None:
    subscriber, queue = woken(2)
    assert queue.requests == [2]
    queue.queue.extend((1, 2, 3))
    subscriber.assert_no_items()
    subscriber.on_next(EMPTY)
    subscriber.assert_items(1, 2).request(5)
    assert queue.requests == [2, 5]
    subscriber.assert_items(1, 2, 3).assert_demand(4)
    queue.queue.append(4)
    subscriber.on_next(EMPTY)
    subscriber.assert_items(1, 2, 3, 4).assert_not_terminated()


@pytest.mark.parametrize("error", [None, ValueError()])
def test_fused_async_what_is_left_is_polled_before_the_end(error: Exception | None) -> None:
    subscriber, queue = woken(1)
    queue.queue.extend((1, 2))
    subscriber.on_next(EMPTY)
    if error is None:
        subscriber.on_complete()
    else:
        subscriber.on_error(error)
    subscriber.assert_items(1).assert_not_terminated().request(1)
    if error is None:
        subscriber.assert_result(1, 2)
    else:
        subscriber.assert_failure(error, 1, 2)


def test_fused_async_an_end_without_items_needs_no_demand() -> None:
    subscriber, _ = woken(0)
    subscriber.on_complete()
    subscriber.assert_result()


def test_fused_async_a_signal_after_the_end_is_noticed_though_items_are_left() -> None:
    subscriber, queue = woken(0)
    queue.queue.append(1)
    subscriber.on_complete()
    subscriber.on_next(EMPTY)
    with pytest.raises(AssertionError, match=r"§1\.7"):
        subscriber.assert_rules_kept()


def test_fused_async_an_item_that_is_pushed_is_noticed() -> None:
    subscriber, _ = woken()
    subscriber.on_next(1)
    with pytest.raises(AssertionError, match="on_next is only a wake-up, got 1"):
        subscriber.assert_rules_kept()


def test_fused_async_what_poll_raises_is_the_end() -> None:
    subscriber, queue = woken()
    queue.fails = ValueError()
    subscriber.on_next(EMPTY)
    subscriber.assert_failure(queue.fails)


def test_fused_async_a_cancel_stops_the_polling() -> None:
    subscriber, queue = woken(1)
    queue.queue.extend((1, 2))
    subscriber.on_next(EMPTY)
    subscriber.cancel()
    subscriber.request(1)
    subscriber.on_next(EMPTY)
    subscriber.assert_items(1)
    assert queue.cancels == 1


def test_fused_async_two_threads_never_poll_at_once() -> None:
    for _ in range(50):
        subscriber, queue = woken(0)
        queue.queue.extend(range(40))

        def wake(subscriber: TestSubscriber[Any] = subscriber) -> None:
            for _ in range(20):
                subscriber.on_next(EMPTY)

        def ask(subscriber: TestSubscriber[Any] = subscriber) -> None:
            for _ in range(20):
                subscriber.request(1)

        race(wake, ask, ask)
        subscriber.assert_items(*range(40))


def test_fused_async_a_request_while_it_polls_does_not_end_it_early() -> None:
    subscriber, queue = woken(1)
    subscriber.on_next(EMPTY)
    queue.queue.extend((1, 2, 3))
    take = queue.poll

    def polled() -> int | Empty:
        queue.poll = take  # type: ignore[method-assign]
        subscriber.request(1)
        return take()

    queue.poll = polled  # type: ignore[method-assign]
    subscriber.on_complete()
    subscriber.assert_items(1, 2).assert_not_terminated().request(1)
    subscriber.assert_result(1, 2, 3)


def test_fused_async_the_end_comes_too_late_for_one_that_has_cancelled() -> None:
    subscriber, queue = woken(1)
    queue.queue.extend((1, 2))
    subscriber.on_next(EMPTY)
    subscriber.cancel()
    subscriber.on_complete()
    subscriber.assert_items(1).assert_not_terminated()
    assert [signal.name for signal in subscriber.late] == ["on_complete"]


def test_fused_async_a_conditional_one_is_woken_too() -> None:
    subscriber, queue = ConditionalTestSubscriber[Any](fusion=Fusion.ASYNC), SharedQueue(1, 2)
    subscriber.on_subscribe(queue)
    assert subscriber.try_on_next(EMPTY)
    subscriber.on_complete()
    subscriber.assert_result(1, 2)


@pytest.mark.parametrize(("patience", "seconds"), [("1", "5.0"), ("4", "20.0"), ("2.5", "12.5")])
def test_a_busy_machine_gets_more_time(
    patience: str, seconds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOW_PATIENCE", patience)
    script = "from flow_testing import TIMEOUT_S; print(TIMEOUT_S)"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == seconds


@pytest.mark.parametrize("patience", ["0.5", "inf", "nan", "long", ""])
def test_an_invalid_patience_is_refused(patience: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOW_PATIENCE", patience)
    command = [sys.executable, "-c", "import flow_testing"]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    assert f"FLOW_PATIENCE={patience!r} is not a number of at least 1" in said
