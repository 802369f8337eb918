"""The rules for publishers and for their subscriptions."""

from __future__ import annotations

import gc
import weakref
from abc import abstractmethod
from collections.abc import Callable
from threading import Event
from typing import Any, Generic, TypeVar, cast, final

from typing_extensions import override

from flow_core.demand import UNBOUNDED
from flow_core.errors import ProtocolViolationError
from flow_core.protocols import (
    EMPTY,
    CoreSubscriber,
    Fusion,
    Publisher,
    QueueSubscription,
    Subscriber,
    Subscription,
)
from flow_testing.drops import recorded_drops
from flow_testing.races import race
from flow_testing.subscriber import ConditionalTestSubscriber, TestSubscriber
from flow_testing.tck.rules import Needs, Verification, check, rule, stack_depth

__all__ = ["PublisherVerification"]

T = TypeVar("T")

_STACK = 40
"""By how much the stack depth may differ between the items of one flow."""


class PublisherVerification(Verification, Generic[T]):
    """The duties of every publisher. To test one, subclass it, and override `create_publisher`.

    Attributes:
        min_items: the lowest `count` that `create_publisher` takes.
        max_items: the highest `count` that `create_publisher` takes. Rules that need more items are
            skipped.
        max_subscribers: how many subscribers one publisher may have in its life.
        cold: whether every subscriber gets all items, from the first on.
        coordinated: whether an item waits until all subscribers have requested it (lock-step).
        synchronous: whether signals come only on threads that subscribe or request.
        deterministic: whether two publishers with the same `count` emit equal items.
        refcounted: whether a subscriber that has cancelled is released at once, without the garbage
            collector.
        in_flight: how many signals may still come after a cancel from within ``on_next``.
        chain: how many items to request one by one from within ``on_next``; the stack must not grow
            with their number.
        conditional: whether the publisher calls ``try_on_next`` of conditional subscribers; None if
            not known.
        fusable: the fusion modes that the publisher grants, with THREAD_BOUNDARY if it also grants
            them across threads; None if not known. In any case, it has to keep the rules in the
            modes that it grants.
        failure: the error object with which the failed publisher fails; None if not known.
    """

    min_items: int = 0
    max_items: int = UNBOUNDED
    max_subscribers: int = UNBOUNDED
    cold: bool = True
    coordinated: bool = False
    synchronous: bool = True
    deterministic: bool = True
    refcounted: bool = False
    in_flight: int = 0
    chain: int = 100_000
    conditional: bool | None = None
    fusable: Fusion | None = None
    failure: BaseException | None = None

    @abstractmethod
    def create_publisher(self, count: int) -> Publisher[T]:
        """Return a new publisher of exactly `count` items, which completes after them."""
        raise NotImplementedError(f"{type(self).__name__} must have create_publisher(count)")

    def create_failed_publisher(self) -> Publisher[T] | None:
        """Return a new publisher that fails without an item and without demand.

        Return None if such a publisher is not possible.
        """
        return None

    @override
    def lacks(self, needs: Needs) -> str | None:
        least, most = self.min_items, self.max_items
        if needs.items is not None:
            wanted = least if needs.items < 0 else needs.items
            if not least <= wanted <= most:
                return f"create_publisher() gives {least} to {most} items, not {wanted}"
        if needs.failing and self.create_failed_publisher() is None:
            return "create_failed_publisher() gives none"
        if needs.subscribers > self.max_subscribers:
            return f"max_subscribers is {self.max_subscribers}, not {needs.subscribers}"
        if needs.cold and not self.cold:
            return "it is not cold: later subscribers miss items"
        if needs.independent and self.coordinated:
            return "it is coordinated: subscribers wait for each other"
        if needs.synchronous and not self.synchronous:
            return "it signals on other threads"
        return None

    # -- §1: the publisher

    @rule(items=1)
    def test_spec101_sends_nothing_without_demand(self) -> None:
        """§1.1: no more items are sent than were requested, and none were requested at first."""
        self._expect(self._start(self.create_publisher(1), 0), 0)

    @rule(items=3)
    def test_spec101_never_sends_more_than_requested(self) -> None:
        """§1.1: no more items are sent than were requested."""
        subscriber = self._start(self.create_publisher(3), 0)
        subscriber.request(1)
        self._expect(subscriber, 1)
        subscriber.request(2)
        self._expect(subscriber, 3)

    @rule(items=5)
    def test_spec101_sends_no_more_than_requested_from_within_on_next(self) -> None:
        """§1.1: requests from within ``on_next`` add up with the others."""

        def request_at_the_first(subscriber: TestSubscriber[T], item: T) -> None:
            if len(subscriber.items) == 1:
                subscriber.request(1)
                subscriber.request(1)

        subscriber = self._start(self.create_publisher(5), 2, request_at_the_first)
        self._expect(subscriber, 4)

    @rule(items=2)
    def test_spec102_may_send_fewer_items_than_requested_and_then_terminates(self) -> None:
        """§1.2: a publisher may signal less than requested, and end with a terminal."""
        subscriber = self._start(self.create_publisher(2), 10)
        self._completes(subscriber, 2)

    @rule(items=3)
    def test_spec103_signals_never_overlap(self) -> None:
        """§1.3: signals are serial, also when another thread requests while one is running."""
        blocked: list[str] = []

        def request_elsewhere(subscriber: TestSubscriber[T], item: T) -> None:
            if len(subscriber.items) == 1:
                try:
                    self.elsewhere(lambda: subscriber.request(2), "request() (§3.4)")
                except AssertionError as error:
                    blocked.append(str(error))

        subscriber = self._start(self.create_publisher(3), 1, request_elsewhere)
        self._expect(subscriber, 3)
        check(not blocked, "; ".join(blocked))
        self._completes(subscriber, 3)

    @rule(items=200)
    def test_spec103_requests_of_two_threads_race(self) -> None:
        """§1.3, §2.7: if requests race, no item is lost or sent twice, and signals stay serial."""
        subscriber = self._start(self.create_publisher(200), 0)

        def request() -> None:
            for _ in range(100):
                subscriber.request(1)

        race(request, request, timeout_s=self.timeout_s)
        self._completes(subscriber, 200)

    @rule(failing=True)
    def test_spec104_signals_failure_by_on_error(self) -> None:
        """§1.4: a publisher that fails signals ``on_error``; it needs no demand for that."""
        self._fails(self._start(self._failed(), 0))

    @rule(failing=True, subscribers=2)
    def test_spec104_every_subscriber_gets_the_identical_error(self) -> None:
        """§1.4: the error is the object that was raised, unwrapped, for every subscriber."""
        publisher = self._failed()
        first = self._fails(self._start(publisher, 0))
        second = self._fails(self._start(publisher, 0))
        if self.failure is not None:
            check(first is self.failure, f"{first!r} is not {self.failure!r} itself")
            check(second is self.failure, f"{second!r} is not {self.failure!r} itself")

    @rule(items=3)
    def test_spec105_completes_after_the_last_item(self) -> None:
        """§1.5: a finite publisher signals ``on_complete``, at the latest with one more request."""
        subscriber = self._start(self.create_publisher(3), 0)
        for count in (1, 2, 3):
            subscriber.request(1)
            subscriber.await_items(count, self.timeout_s)
        self._completes(subscriber, 3)

    @rule(items=1)
    def test_spec105_completes_after_a_single_item(self) -> None:
        """§1.5: a publisher of one item signals it, and ``on_complete``."""
        self._completes(self._start(self.create_publisher(1), 1), 1)

    @rule(items=0)
    def test_spec105_completes_without_items(self) -> None:
        """§1.5: an empty publisher signals ``on_complete``."""
        self._completes(self._start(self.create_publisher(0), 0), 0)

    @rule(items=-1)
    def test_spec106_a_terminated_subscription_is_cancelled(self) -> None:
        """§1.6: after ``on_complete``, requests and cancels have no effect."""
        subscriber = self._start(self.create_publisher(self.min_items), UNBOUNDED)
        self._completes(subscriber, self.min_items)
        subscriber.request(1)
        subscriber.cancel()
        subscriber.subscription.request(1)
        self.settle()
        self._completes(subscriber, self.min_items)

    @rule(failing=True)
    def test_spec106_a_failed_subscription_is_cancelled(self) -> None:
        """§1.6: after ``on_error``, requests and cancels have no effect."""
        subscriber = self._start(self._failed(), 0)
        self._fails(subscriber)
        subscriber.request(1)
        subscriber.cancel()
        subscriber.subscription.request(1)
        self._fails(subscriber)

    @rule(items=-1)
    def test_spec107_nothing_follows_on_complete(self) -> None:
        """§1.7: no signal follows a terminal, whatever was requested."""
        subscriber = self._start(self.create_publisher(self.min_items), UNBOUNDED)
        self._completes(subscriber, self.min_items)
        subscriber.request(1)
        subscriber.request(UNBOUNDED)
        self.settle()
        self._completes(subscriber, self.min_items)

    @rule(items=-1)
    def test_spec107_a_bad_request_after_on_complete_is_no_second_terminal(self) -> None:
        """§1.7, §3.6: ``request(0)`` after the end signals nothing."""
        subscriber = self._start(self.create_publisher(self.min_items), UNBOUNDED)
        self._completes(subscriber, self.min_items)
        subscriber.request(0)
        subscriber.request(-1)
        self._completes(subscriber, self.min_items)

    @rule(failing=True)
    def test_spec107_nothing_follows_on_error(self) -> None:
        """§1.7: no signal follows a terminal, whatever was requested."""
        subscriber = self._start(self._failed(), 0)
        self._fails(subscriber)
        for amount in (1, UNBOUNDED, 0, -1):
            subscriber.request(amount)
        self._fails(subscriber)

    @rule(items=10)
    def test_spec108_a_cancel_within_on_next_stops_the_signals(self) -> None:
        """§1.8: a cancelled subscriber gets no more signals, although it had demand."""

        def cancel_at_the_second(subscriber: TestSubscriber[T], item: T) -> None:
            if len(subscriber.items) == 2:
                subscriber.cancel()

        subscriber = self._start(self.create_publisher(10), UNBOUNDED, cancel_at_the_second)
        subscriber.await_items(2, self.timeout_s)
        self._silent(subscriber)

    @rule(items=2)
    def test_spec108_a_cancel_with_the_last_item_stops_the_end_too(self) -> None:
        """§1.8: a subscriber that cancels while it has the last item gets no terminal."""

        def cancel_at_the_second(subscriber: TestSubscriber[T], item: T) -> None:
            if len(subscriber.items) == 2:
                subscriber.cancel()

        subscriber = self._start(self.create_publisher(2), UNBOUNDED, cancel_at_the_second)
        subscriber.await_items(2, self.timeout_s)
        self._silent(subscriber)

    @rule(items=-1)
    def test_spec108_a_cancel_within_on_subscribe_stops_all_signals(self) -> None:
        """§1.8: a subscriber that cancels in ``on_subscribe`` gets nothing else."""
        subscriber = TestSubscriber[T](0)
        subscriber.cancel()  # carried out in on_subscribe
        self.create_publisher(self.min_items).subscribe(subscriber)
        self._silent(self._subscribed(subscriber))

    @rule(failing=True)
    def test_spec108_a_cancel_within_on_subscribe_stops_the_error_too(self) -> None:
        """§1.8: a subscriber that cancels in ``on_subscribe`` gets no error."""
        with recorded_drops():
            subscriber = TestSubscriber[T](0)
            subscriber.cancel()
            self._failed().subscribe(subscriber)
            self._silent(self._subscribed(subscriber))

    @rule(items=-1)
    def test_spec109_on_subscribe_comes_first_and_once(self) -> None:
        """§1.9: ``on_subscribe`` comes once, and returns before any other signal comes."""
        subscriber = self._start(self.create_publisher(self.min_items), UNBOUNDED)
        self._completes(subscriber, self.min_items)
        names = [signal.name for signal in subscriber.signals]
        check(names[0] == "on_subscribe", f"the first signal was {names[0]}")
        check(names.count("on_subscribe") == 1, f"on_subscribe came {names.count('on_subscribe')}x")

    @rule(failing=True)
    def test_spec109_on_subscribe_comes_before_on_error(self) -> None:
        """§1.9: a failed publisher, too, signals ``on_subscribe`` first, and does not raise."""
        subscriber = self._start(self._failed(), 0)
        self._fails(subscriber)
        names = [signal.name for signal in subscriber.signals]
        check(names == ["on_subscribe", "on_error"], f"the signals were {names}")

    @rule(items=-1)
    def test_spec109_subscribe_none_raises(self) -> None:
        """§1.9: ``subscribe(None)`` raises TypeError at once."""
        publisher = self.create_publisher(self.min_items)
        try:
            publisher.subscribe(_none())
        except TypeError:
            return
        raise AssertionError("subscribe(None) did not raise TypeError")

    @rule(failing=True)
    def test_spec109_subscribe_none_raises_if_it_fails(self) -> None:
        """§1.9: ``subscribe(None)`` raises TypeError at once, from a failed publisher as well."""
        publisher = self._failed()
        try:
            publisher.subscribe(_none())
        except TypeError:
            return
        raise AssertionError("subscribe(None) did not raise TypeError")

    @rule(items=3, subscribers=2, cold=True)
    def test_spec110_a_publisher_can_be_subscribed_again(self) -> None:
        """§1.10: a publisher serves each new subscriber, even after the end of another one."""
        publisher = self.create_publisher(3)
        self._completes(self._start(publisher, UNBOUNDED), 3)
        self._completes(self._start(publisher, UNBOUNDED), 3)

    @rule(items=3, subscribers=2, cold=True, independent=True)
    def test_spec111_subscribers_have_demand_of_their_own(self) -> None:
        """§1.11: there may be several subscribers at a time, each with its own demand."""
        publisher = self.create_publisher(3)
        first, second = self._start(publisher, 0), self._start(publisher, 0)
        first.request(1)
        self._expect(first, 1)
        self._expect(second, 0)
        second.request(3)
        self._completes(second, 3)
        self._expect(first, 1)
        first.request(2)
        self._completes(first, 3)
        if self.deterministic:
            check(first.items == second.items, f"{first.items} is not {second.items}")

    @rule(items=3, subscribers=2)
    def test_spec111_subscribers_get_the_same_items(self) -> None:
        """§1.11: several subscribers at a time get the same items, in the same order."""
        publisher = self.create_publisher(3)
        first, second = self._start(publisher, 0), self._start(publisher, 0)
        for count in (1, 2, 3):
            first.request(1)
            second.request(1)
            self._expect(first, count)
            self._expect(second, count)
        self._completes(first, 3)
        self._completes(second, 3)
        check(
            not self.deterministic or first.items == second.items,
            f"{first.items} is not {second.items}",
        )

    @rule(items=3, subscribers=2)
    def test_spec111_a_cancel_concerns_no_other_subscriber(self) -> None:
        """§1.11: when a subscriber cancels, no other subscriber loses an item."""
        publisher = self.create_publisher(3)
        first, second = self._start(publisher, 0), self._start(publisher, 0)
        first.cancel()
        second.request(UNBOUNDED)
        self._completes(second, 3)
        self._silent(first)

    # -- §2: acts of a subscriber that a publisher must tolerate

    @rule(items=1)
    def test_spec213_no_item_is_none(self) -> None:
        """§2.13: ``on_next`` is never called with None."""
        subscriber = _Chain[T]()
        self.create_publisher(1).subscribe(subscriber)
        check(subscriber.ended.wait(self.timeout_s), f"no end within {self.timeout_s} s")
        self.settle()
        check(not subscriber.nones, f"on_next(None) came {subscriber.nones} times")

    @rule(items=3)
    def test_spec213_a_subscriber_that_raises_counts_as_cancelled(self) -> None:
        """§2.13: a subscriber that raises gets no more signals, not even the end."""
        subscriber = _Raising[T](LookupError("raised by the subscriber"))
        with recorded_drops():
            try:
                self.create_publisher(3).subscribe(subscriber)
            except LookupError as error:
                check(error is subscriber.error, f"{error!r} is not {subscriber.error!r}")
            self.eventually(
                lambda: len(subscriber.signals) > 1,
                lambda: f"no item within {self.timeout_s} s; it got {subscriber.signals}",
            )
            self.settle()
        check(
            subscriber.signals == ["on_subscribe", "on_next"],
            f"it got {subscriber.signals}, although its on_next had raised",
        )

    @rule(items=3, synchronous=True)
    def test_fatal_errors_of_a_subscriber_propagate(self) -> None:
        """KeyboardInterrupt and its like leave `subscribe`; they are not sent (X10)."""
        for fatal in (KeyboardInterrupt(), SystemExit(1), MemoryError()):
            publisher = self.create_publisher(3)
            subscriber = _Raising[T](fatal)
            with recorded_drops():
                try:
                    publisher.subscribe(subscriber)
                except BaseException as error:  # compared below
                    check(error is fatal, f"{error!r} came out instead of {fatal!r}")
                else:
                    raise AssertionError(f"{fatal!r} was swallowed")
            names = subscriber.signals
            check(names == ["on_subscribe", "on_next"], f"signals after a fatal error: {names}")

    # -- §3: the subscription

    @rule(items=3)
    def test_spec302_request_may_be_called_in_on_subscribe(self) -> None:
        """§3.2: requests from within ``on_subscribe`` are honoured, after it has returned."""
        self._completes(self._start(self.create_publisher(3), 3), 3)

    @rule(items=3)
    def test_spec302_request_may_be_called_in_on_next(self) -> None:
        """§3.2: requests from within ``on_next`` are honoured."""
        subscriber = self._start(self.create_publisher(3), 1, lambda s, _: s.request(1))
        self._completes(subscriber, 3)

    @rule(items=1_000)
    def test_spec303_requests_within_on_next_take_constant_stack(self) -> None:
        """§3.3: a long chain of ``request(1)`` from within ``on_next`` runs in bounded stack."""
        count = min(self.chain, self.max_items)
        subscriber = _Chain[T]()
        try:
            self.create_publisher(count).subscribe(subscriber)
        except RecursionError as error:
            raise AssertionError("request() and on_next() call each other deeper and deeper") from (
                error
            )
        check(
            subscriber.ended.wait(self.timeout_s * 12),
            f"{subscriber.count} of {count} items within {self.timeout_s * 12} s, and no end",
        )
        check(subscriber.deepest <= subscriber.first + _STACK, "the stack grows with the items")
        check(subscriber.error is None, f"it failed with {subscriber.error!r}")
        check(subscriber.count == count, f"{subscriber.count} of {count} items")

    @rule(items=3)
    def test_spec304_request_does_not_wait_for_on_next(self) -> None:
        """§3.4: ``request`` returns while another thread is in ``on_next``."""
        self._returns_while_on_next_runs(lambda subscriber: subscriber.request(1), "request()")

    @rule(items=3)
    def test_spec305_cancel_does_not_wait_for_on_next(self) -> None:
        """§3.5: ``cancel`` returns while another thread is in ``on_next``, and has its effect."""
        subscriber = self._returns_while_on_next_runs(
            lambda subscriber: subscriber.cancel(), "cancel()"
        )
        self._silent(subscriber)

    @rule(items=3)
    def test_spec306_requests_after_cancel_do_nothing(self) -> None:
        """§3.6: after a cancel, requests are no-ops: wrong ones, too."""
        subscriber = self._start(self.create_publisher(3), 1)
        self._expect(subscriber, 1)
        subscriber.cancel()
        for amount in (1, 2, UNBOUNDED, 0, -1):
            subscriber.request(amount)
        self._silent(subscriber)
        self._expect(subscriber, 1)

    @rule(items=3)
    def test_spec307_cancels_after_cancel_do_nothing(self) -> None:
        """§3.7: after a cancel, further cancels are no-ops, on any thread."""
        subscriber = self._start(self.create_publisher(3), 1)
        self._expect(subscriber, 1)
        subscriber.cancel()
        subscriber.cancel()
        self.elsewhere(subscriber.cancel, "cancel()")
        self._silent(subscriber)
        self._expect(subscriber, 1)

    @rule(items=5)
    def test_spec308_demand_adds_up(self) -> None:
        """§3.8: ``request(n)`` adds n items to what was requested before."""

        def ask_at_the_first(subscriber: TestSubscriber[T], item: T) -> None:
            if len(subscriber.items) == 1:
                subscriber.request(1)
                subscriber.request(1)

        subscriber = self._start(self.create_publisher(5), 0, ask_at_the_first)
        subscriber.request(1)
        self._expect(subscriber, 3)
        subscriber.request(1)
        subscriber.request(1)
        self._completes(subscriber, 5)

    @rule(items=1)
    def test_spec309_request_0_fails_the_flow(self) -> None:
        """§3.9: ``request(0)`` signals ``on_error`` with a ValueError that names the rule."""
        self._refuses(self._start(self.create_publisher(1), 0), 0)

    @rule(items=1)
    def test_spec309_a_negative_request_fails_the_flow(self) -> None:
        """§3.9: ``request(-1)`` signals ``on_error`` with a ValueError that names the rule."""
        self._refuses(self._start(self.create_publisher(1), 0), -1)

    @rule(items=3)
    def test_spec309_a_bad_request_in_mid_flow_is_the_end(self) -> None:
        """§3.9: no item follows a wrong request, although there was demand."""
        subscriber = self._start(self.create_publisher(3), 1)
        self._expect(subscriber, 1)
        self._refuses(subscriber, -7)
        subscriber.request(2)
        self._expect(subscriber, 1)

    @rule(items=3)
    def test_spec309_a_bad_request_within_on_next_is_answered_after_it(self) -> None:
        """§3.9, §1.3: the ``on_error`` does not come while ``on_next`` is running."""

        def ask(subscriber: TestSubscriber[T], item: T) -> None:
            subscriber.request(0)

        subscriber = self._start(self.create_publisher(3), UNBOUNDED, ask)
        subscriber.await_terminal(self.timeout_s)
        self._refused(subscriber)
        self._expect(subscriber, 1)

    @rule(items=1)
    def test_spec309_a_bad_request_within_on_subscribe_is_answered_after_it(self) -> None:
        """§3.9, §1.9: the ``on_error`` comes when ``on_subscribe`` has returned."""
        subscriber = self._start(self.create_publisher(1), -1)
        subscriber.await_terminal(self.timeout_s)
        self._refused(subscriber)
        self._expect(subscriber, 0)

    @rule(items=1)
    def test_spec309_a_request_of_no_int_raises(self) -> None:
        """A demand that is not an int is an error in the program: TypeError, and no effect."""
        subscriber = self._start(self.create_publisher(1), 0)
        for amount in ("1", 1.0, None):
            try:
                subscriber.subscription.request(_any(amount))
            except TypeError:
                continue
            raise AssertionError(f"request({amount!r}) did not raise TypeError")
        self._expect(subscriber, 0)
        subscriber.request(1)
        self._completes(subscriber, 1)

    @rule(items=10)
    def test_spec312_a_cancel_from_another_thread_stops_the_signals(self) -> None:
        """§3.12: a cancel makes the publisher stop its signals, even in the middle of them."""
        cancelled = False

        def cancel_elsewhere(subscriber: TestSubscriber[T], item: T) -> None:
            nonlocal cancelled
            if not cancelled:
                cancelled = True
                self.elsewhere(subscriber.cancel, "cancel()")

        subscriber = self._start(self.create_publisher(10), UNBOUNDED, cancel_elsewhere)
        subscriber.await_items(1, self.timeout_s)
        self._silent(subscriber)

    @rule(items=1_000)
    def test_spec312_cancels_and_requests_race(self) -> None:
        """§3.12: whatever comes first, a cancelled subscriber falls silent, and rules are kept."""
        for _ in range(5):
            subscriber = self._start(self.create_publisher(1_000), 0)

            def request(subscriber: TestSubscriber[T] = subscriber) -> None:
                for _ in range(50):
                    subscriber.request(4)

            race(request, subscriber.cancel, timeout_s=self.timeout_s)
            self.settle()
            seen = len(subscriber.signals)
            subscriber.request(1)
            self.settle()
            check(len(subscriber.signals) == seen, "it continued after a cancel")
            subscriber.assert_rules_kept()

    @rule(items=3)
    def test_spec313_cancel_lets_go_of_the_subscriber(self) -> None:
        """§3.13: after a cancel, nothing in the publisher refers to the subscriber."""
        publisher = self.create_publisher(3)
        subscriber = self._start(publisher, 1)
        self._expect(subscriber, 1)
        subscription = subscriber.subscription
        gone = weakref.ref(subscriber)
        subscriber.cancel()
        del subscriber
        self._is_gone(gone, publisher, subscription)

    @rule(items=1)
    def test_spec313_cancel_without_demand_lets_go_of_the_subscriber(self) -> None:
        """§3.13: a subscriber that has requested nothing is released, too."""
        publisher = self.create_publisher(1)
        subscriber = self._start(publisher, 0)
        subscription = subscriber.subscription
        gone = weakref.ref(subscriber)
        subscriber.cancel()
        del subscriber
        self._is_gone(gone, publisher, subscription)

    @rule(items=3)
    def test_spec317_demand_may_be_unbounded(self) -> None:
        """§3.17: ``request(2**63 - 1)`` is a demand without bounds."""
        self._completes(self._start(self.create_publisher(3), UNBOUNDED), 3)

    @rule(items=3)
    def test_spec317_demand_is_capped(self) -> None:
        """§3.17: demand beyond 2**63 - 1, in sum or in one request, is not an error."""
        subscriber = _Greedy[T](0)
        self.create_publisher(3).subscribe(subscriber)
        self._completes(self._subscribed(subscriber), 3)

    @rule(items=3)
    def test_spec317_demand_is_capped_within_on_next(self) -> None:
        """§3.17: sums beyond 2**63 - 1 are not an error within ``on_next``, either."""

        def ask(subscriber: TestSubscriber[T], item: T) -> None:
            subscriber.request(UNBOUNDED)
            subscriber.request(UNBOUNDED)

        self._completes(self._start(self.create_publisher(3), 1, ask), 3)

    # -- conditional subscribers

    @rule(items=6)
    def test_f12_an_item_that_was_refused_costs_no_demand(self) -> None:
        """F12: an item that a conditional subscriber answers with False is not counted."""
        offered = 0

        def every_second(item: T) -> bool:
            nonlocal offered
            offered += 1
            return offered % 2 == 0

        subscriber = ConditionalTestSubscriber[T](every_second, 0)
        self.create_publisher(6).subscribe(subscriber)
        self._subscribed(subscriber).request(2)
        self._expect(subscriber, 2)
        if self.conditional is not None:
            check(bool(subscriber.offered) is self.conditional, f"conditional={self.conditional}")
        subscriber.request(1)
        self._completes(subscriber, 3)

    # -- fusion

    @rule(items=-1)
    def test_f23_fusion_is_granted_within_what_was_asked(self) -> None:
        """F23: for each of the eight requests, the answer is NONE, or a mode that was requested."""
        for bits in range(8):
            asked = Fusion(bits)
            _, granted = self._negotiate(self.create_publisher(self.min_items), asked)
            check(not granted & ~asked, f"asked for {asked!r}, granted {granted!r}")
            check(
                granted in (Fusion.NONE, Fusion.SYNC, Fusion.ASYNC),
                f"granted {granted!r}, which is more than one mode",
            )
            if self.fusable is not None:
                wanted = asked & self.fusable & Fusion.ANY
                if asked & Fusion.THREAD_BOUNDARY and not self.fusable & Fusion.THREAD_BOUNDARY:
                    wanted = Fusion.NONE
                check(
                    bool(granted) is bool(wanted),
                    f"grants {self.fusable!r}; asked for {asked!r}, granted {granted!r}",
                )

    @rule(items=-1)
    def test_f24_fusion_is_negotiated_once(self) -> None:
        """F24, F47: a second ``request_fusion`` raises when a mode was granted."""
        for asked in (Fusion.SYNC, Fusion.ASYNC):
            queue, granted = self._negotiate(self.create_publisher(self.min_items), asked)
            if queue is not None and granted:
                try:
                    queue.request_fusion(asked)
                except ProtocolViolationError:
                    continue
                raise AssertionError("the second request_fusion() did not raise")

    @rule(items=1)
    def test_f24_fusion_is_negotiated_before_requests(self) -> None:
        """F24: ``request_fusion`` after a request raises, or grants nothing."""
        subscriber = self._start(self.create_publisher(1), 1)
        queue = _queue_of(subscriber)
        if queue is None:
            return
        try:
            granted = queue.request_fusion(Fusion.ANY)
        except ProtocolViolationError:
            return
        check(granted is Fusion.NONE, f"granted {granted!r} after a request")

    @rule(items=3)
    def test_f25_sync_fusion_polls_what_would_be_pushed(self) -> None:
        """F25: polling gives the same items in the same order, and then EMPTY for ever."""
        subscriber = self._fused_to(self.create_publisher(3), Fusion.SYNC)
        if subscriber is None:
            return
        subscriber.request(100)
        self._completes(subscriber, 3)
        queue = _queue_of(subscriber)
        for _ in range(3):
            check(queue is not None and queue.poll() is EMPTY, "poll() after the end is not EMPTY")
        if self.deterministic:
            pushed = self._completes(self._start(self.create_publisher(3), UNBOUNDED), 3)
            check(pushed == subscriber.items, f"polled {subscriber.items}, pushed {pushed}")

    @rule(items=3)
    def test_f25_sync_fusion_is_emptied_by_clear(self) -> None:
        """F25: after ``clear`` there is nothing to poll."""
        subscriber = self._fused_to(self.create_publisher(3), Fusion.SYNC)
        queue = None if subscriber is None else _queue_of(subscriber)
        if queue is None:
            return
        check(queue.poll() is not EMPTY, "poll() gave no first item")
        queue.clear()
        check(queue.poll() is EMPTY, "poll() after clear() is not EMPTY")

    @rule(items=3)
    def test_f25_sync_fusion_is_emptied_by_cancel(self) -> None:
        """F25: after ``cancel`` there is nothing to poll."""
        subscriber = self._fused_to(self.create_publisher(3), Fusion.SYNC)
        queue = None if subscriber is None else _queue_of(subscriber)
        if queue is None:
            return
        check(queue.poll() is not EMPTY, "poll() gave no first item")
        queue.cancel()
        check(queue.poll() is EMPTY, "poll() after cancel() is not EMPTY")

    @rule(failing=True)
    def test_f25_sync_fusion_raises_the_error(self) -> None:
        """F25: ``poll`` raises the flow's error, as the same object."""
        subscriber = TestSubscriber[T](0, fusion=Fusion.SYNC)
        self._failed().subscribe(subscriber)
        self._subscribed(subscriber)
        if subscriber.fused:
            subscriber.request(1)
        self._fails(subscriber)

    @rule(items=3)
    def test_f26_async_fusion_polls_what_would_be_pushed(self) -> None:
        """F26: after a wake-up by ``on_next(EMPTY)``, polling gives the same items in order."""
        subscriber = self._fused_to(self.create_publisher(3), Fusion.ASYNC)
        if subscriber is None:
            return
        subscriber.request(100)
        self._completes(subscriber, 3)
        if self.deterministic:
            pushed = self._completes(self._start(self.create_publisher(3), UNBOUNDED), 3)
            check(pushed == subscriber.items, f"polled {subscriber.items}, pushed {pushed}")

    # -- the parts

    def _start(
        self,
        publisher: Publisher[T],
        request: int,
        on_item: Callable[[TestSubscriber[T], T], object] | None = None,
    ) -> TestSubscriber[T]:
        subscriber = TestSubscriber[T](request, on_item=on_item)
        publisher.subscribe(subscriber)
        return self._subscribed(subscriber)

    def _subscribed(self, subscriber: TestSubscriber[T]) -> TestSubscriber[T]:
        # Most publishers call on_subscribe before subscribe returns, but they need not.
        return subscriber._await(
            lambda: bool(subscriber.signals), "no on_subscribe (§1.9)", self.timeout_s
        )

    def _expect(self, subscriber: TestSubscriber[T], count: int) -> None:
        """Check that exactly `count` items come, and no more."""
        subscriber.await_items(count, self.timeout_s)
        self.settle()
        got = len(subscriber.items)
        check(got == count, f"expected {count} items, got {got}; seen: {subscriber!r}")
        subscriber.assert_rules_kept()

    def _completes(self, subscriber: TestSubscriber[T], count: int) -> list[T]:
        """Check that `count` items come, and then the end, after one more request if need be."""
        subscriber.await_items(count, self.timeout_s)
        self.settle()
        if not subscriber.terminated:
            subscriber.request(1)
        subscriber.await_terminal(self.timeout_s)
        check(subscriber.completed, f"it did not complete; seen: {subscriber!r}")
        self._expect(subscriber, count)
        return subscriber.items

    def _fails(self, subscriber: TestSubscriber[T]) -> BaseException | None:
        """Check that the flow fails without an item, and return the error."""
        subscriber.await_terminal(self.timeout_s)
        self.settle()
        expected = BaseException if self.failure is None else self.failure
        subscriber.assert_failure(expected)
        return subscriber.error

    def _silent(self, subscriber: TestSubscriber[T]) -> None:
        """Check that nothing has come since the cancel, except the signals on their way."""
        self.settle()
        late = subscriber.late
        check(
            len(late) <= self.in_flight,
            f"expected nothing after cancel(), got {' '.join(map(str, late))}",
        )
        subscriber.assert_rules_kept()

    def _refuses(self, subscriber: TestSubscriber[T], amount: int) -> None:
        subscriber.request(amount)
        subscriber.await_terminal(self.timeout_s)
        self._refused(subscriber)

    def _refused(self, subscriber: TestSubscriber[T]) -> None:
        self.settle()
        error = subscriber.error
        check(
            isinstance(error, ValueError) and "3.9" in str(error),
            f"expected on_error(ValueError) that names §3.9; seen: {subscriber!r}",
        )
        subscriber.assert_rules_kept()

    def _returns_while_on_next_runs(
        self, call: Callable[[TestSubscriber[T]], None], name: str
    ) -> TestSubscriber[T]:
        blocked: list[str] = []

        def elsewhere(subscriber: TestSubscriber[T], item: T) -> None:
            if len(subscriber.items) == 1:
                try:
                    self.elsewhere(lambda: call(subscriber), name)
                except AssertionError as error:
                    blocked.append(str(error))

        subscriber = self._start(self.create_publisher(3), 1, elsewhere)
        subscriber.await_items(1, self.timeout_s)
        self.settle()
        check(not blocked, "; ".join(blocked))
        subscriber.assert_rules_kept()
        return subscriber

    def _is_gone(self, gone: weakref.ref[TestSubscriber[T]], *kept: object) -> None:
        """Check that the subscriber was released, though `kept` still refers to the rest."""

        def is_gone() -> bool:
            if not self.refcounted:
                gc.collect()
            return gone() is None

        self.eventually(is_gone, lambda: f"{kept!r} still refer to the cancelled subscriber")

    def _failed(self) -> Publisher[T]:
        publisher = self.create_failed_publisher()
        if publisher is None:
            raise AssertionError("create_failed_publisher() gave a publisher, and now None")
        return publisher

    def _negotiate(
        self, publisher: Publisher[T], asked: Fusion
    ) -> tuple[QueueSubscription[T] | None, Fusion]:
        """Return the granted mode for a request of `asked` in ``on_subscribe``."""
        asking = _Asking[T](asked)
        publisher.subscribe(asking)
        return asking.queue, asking.granted

    def _fused_to(self, publisher: Publisher[T], mode: Fusion) -> TestSubscriber[T] | None:
        """Return a subscriber that was granted `mode`; None if `mode` was refused."""
        subscriber = TestSubscriber[T](0, fusion=mode)
        publisher.subscribe(subscriber)
        self._subscribed(subscriber)
        return subscriber if subscriber.fused else None


@final
class _Asking(CoreSubscriber[T]):
    """Requests one mode of fusion, and takes nothing."""

    __slots__ = ("_asked", "granted", "queue")

    def __init__(self, asked: Fusion) -> None:
        self._asked = asked
        self.granted = Fusion.NONE
        self.queue: QueueSubscription[T] | None = None

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        if isinstance(subscription, QueueSubscription):
            self.queue = cast("QueueSubscription[T]", subscription)
            self.granted = self.queue.request_fusion(self._asked)

    @override
    def on_next(self, item: T, /) -> None:
        pass

    @override
    def on_error(self, error: BaseException, /) -> None:
        pass

    @override
    def on_complete(self) -> None:
        pass


@final
class _Raising(Subscriber[T], Generic[T]):
    """A foreign subscriber, not a `CoreSubscriber`: requests everything, raises in ``on_next``."""

    def __init__(self, error: BaseException) -> None:
        self.error = error
        self.signals: list[str] = []

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.signals.append("on_subscribe")
        subscription.request(UNBOUNDED)

    @override
    def on_next(self, item: T, /) -> None:
        self.signals.append("on_next")
        raise self.error

    @override
    def on_error(self, error: BaseException, /) -> None:
        self.signals.append("on_error")

    @override
    def on_complete(self) -> None:
        self.signals.append("on_complete")


@final
class _Greedy(TestSubscriber[T]):
    """Requests more than the greatest demand, before anything can be sent."""

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        super().on_subscribe(subscription)
        for amount in (1, UNBOUNDED - 1, UNBOUNDED, UNBOUNDED, 2**80):
            self.request(amount)


@final
class _Chain(CoreSubscriber[T]):
    """Requests item after item from within ``on_next``, and measures the stack."""

    __slots__ = ("_subscription", "count", "deepest", "ended", "error", "first", "nones")

    def __init__(self) -> None:
        self.count = 0
        self.nones = 0
        self.first = 0
        self.deepest = 0
        self.ended = Event()
        self.error: BaseException | None = None
        self._subscription: Subscription | None = None

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        self._subscription = subscription
        subscription.request(1)

    @override
    def on_next(self, item: T, /) -> None:
        self.count = count = self.count + 1
        self.nones += item is None
        subscription = self._subscription
        if subscription is None:
            return
        # A growing stack shows long before the end, and before Python's own limit.
        if count < 200 or count % 1_000 == 0:
            depth = stack_depth()
            self.first = self.first or depth
            self.deepest = max(self.deepest, depth)
            if depth > self.first + _STACK:
                subscription.cancel()
                self.ended.set()
                return
        subscription.request(1)

    @override
    def on_error(self, error: BaseException, /) -> None:
        self.error = error
        self.ended.set()

    @override
    def on_complete(self) -> None:
        self.ended.set()


def _queue_of(subscriber: TestSubscriber[T]) -> QueueSubscription[T] | None:
    subscription = subscriber.subscription
    # Any: a subscription does not know the type of its items.
    return (
        cast("QueueSubscription[T]", subscription)
        if isinstance(subscription, QueueSubscription)
        else None
    )


def _any(value: object) -> Any:  # Any: a wrong argument, on purpose
    return value


def _none() -> Any:  # Any: a wrong argument, on purpose
    return None
