"""The rules for processors: as publishers, as subscribers, and for the items that they pass on."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, TypeVar

from typing_extensions import override

from flow_core import sources
from flow_core.demand import UNBOUNDED
from flow_core.protocols import Processor, Publisher, Subscriber
from flow_testing.drops import recorded_drops
from flow_testing.publisher import TestPublisher
from flow_testing.subscriber import TestSubscriber
from flow_testing.tck.publisher import PublisherVerification
from flow_testing.tck.rules import check, rule
from flow_testing.tck.subscriber import Link, SubscriberVerification

__all__ = ["ProcessorVerification"]

T = TypeVar("T")


class ProcessorVerification(PublisherVerification[T], SubscriberVerification[T], Generic[T]):
    """The duties of a processor that passes items on as they are, to one or more subscribers.

    To test a processor, subclass it, and override `create_processor`. The rules are checked with
    the processor as a publisher, fed by a range of ints; as a subscriber; and as both.

    Attributes:
        requests_alone: whether the processor requests of its upstream before it has a subscriber.
        leaves_with_the_last: whether the processor cancels its upstream when its last subscriber
            cancels.
    """

    cold: bool = False
    failure: BaseException | None = LookupError("the upstream's error")
    requests_alone: bool = True
    leaves_with_the_last: bool = False

    @abstractmethod
    def create_processor(self) -> Processor[T, T]:
        """Return a new processor without upstream and without subscribers."""
        raise NotImplementedError(f"{type(self).__name__} must have create_processor()")

    @override
    def create_publisher(self, count: int) -> Publisher[T]:
        """Return a new processor that a range of ints feeds."""
        processor = self.create_processor()
        _items(self, count).subscribe(processor)
        return processor

    @override
    def create_failed_publisher(self) -> Publisher[T] | None:
        """Return a new processor whose first signal was ``on_error``."""
        if self.failure is None:
            return None
        processor = self.create_processor()
        processor.on_error(self.failure)
        return processor

    def create_subscriber(self) -> Subscriber[T]:
        """Return a new processor, as the subscriber to check."""
        processor = self.create_processor()
        if not self.requests_alone:
            processor.subscribe(TestSubscriber[T]())
        return processor

    @rule(items=100)
    def test_spec401_passes_items_on_as_they_are(self) -> None:
        """§4.1: the same item objects pass, in order, and then the end."""
        processor, upstream = self._fed()
        subscriber = self._start(processor, UNBOUNDED)
        items = [self.create_item(n) for n in range(100)]
        for item in items:
            self._await_demand(upstream)
            upstream.next(item)
        upstream.complete()
        got = self._completes(subscriber, 100)
        check(all(a is b for a, b in zip(items, got, strict=True)), f"sent {items}, got {got}")

    @rule(subscribers=2)
    def test_spec401_two_subscribers_get_the_same_items(self) -> None:
        """§1.11, §4.1: all subscribers get each item, in the same order, and the end."""
        processor, upstream = self._fed()
        first, second = self._start(processor, UNBOUNDED), self._start(processor, UNBOUNDED)
        items = [self.create_item(n) for n in range(3)]
        for item in items:
            self._await_demand(upstream)
            upstream.next(item)
        upstream.complete()
        for subscriber in (first, second):
            got = self._completes(subscriber, 3)
            check(all(a is b for a, b in zip(items, got, strict=True)), f"sent {items}, got {got}")

    @rule()
    def test_spec402_passes_the_error_on(self) -> None:
        """§4.2, §1.4: an error of the upstream reaches the subscriber, as the same object."""
        self._sends_the_error_to(1)

    @rule(subscribers=2)
    def test_spec104_passes_the_error_on_to_all_subscribers(self) -> None:
        """§1.4: an error of the upstream reaches all subscribers."""
        self._sends_the_error_to(2)

    @rule()
    def test_spec402_passes_the_error_on_without_demand(self) -> None:
        """§4.2: an error needs no demand, when no items wait before it."""
        error = LookupError("the upstream's error")
        processor, upstream = self._fed()
        subscriber = self._start(processor, 0)
        upstream.error(error)
        subscriber.await_terminal(self.timeout_s).assert_failure(error)

    @rule(subscribers=2)
    def test_a_late_subscriber_hears_of_the_end(self) -> None:
        """§1.4, §1.5: after the end, a new subscriber gets ``on_subscribe`` and the terminal."""
        error = LookupError("the upstream's error")
        processor, upstream = self._fed()
        self._start(processor, UNBOUNDED)
        upstream.error(error)
        late = self._start(processor, UNBOUNDED)
        late.await_terminal(self.timeout_s).assert_failure(error)
        processor, upstream = self._fed()
        self._start(processor, UNBOUNDED)
        upstream.complete()
        self._start(processor, UNBOUNDED).await_terminal(self.timeout_s).assert_result()

    @rule()
    def test_spec107_signals_after_the_end_are_not_passed_on(self) -> None:
        """§1.7: whatever an upstream signals after a terminal, a subscriber gets one terminal."""
        processor, upstream = self._fed()
        subscriber = self._start(processor, UNBOUNDED)
        upstream.complete()
        with recorded_drops():
            processor.on_next(self.create_item(0))
            processor.on_error(LookupError("too late"))
            processor.on_complete()
        self._completes(subscriber, 0)

    @rule()
    def test_spec201_requests_for_demand_of_long_ago(self) -> None:
        """§2.1: it continues to request as long as its subscriber has demand left."""
        processor, upstream = self._fed()
        subscriber = self._start(processor, 1_000)
        for n in range(1_000):
            self._await_demand(upstream)
            upstream.next(self.create_item(n))
        subscriber.await_items(1_000, self.timeout_s)
        self._expect(subscriber, 1_000)
        subscriber.cancel()

    @rule(subscribers=2)
    def test_spec206_the_upstream_is_cancelled_when_the_last_subscriber_leaves(self) -> None:
        """§2.6: checked if `leaves_with_the_last`; the upstream is never cancelled before that."""
        processor, upstream = self._fed()
        first, second = self._start(processor, 1), self._start(processor, 1)
        first.cancel()
        self.settle()
        upstream.assert_not_cancelled()
        second.cancel()
        if self.leaves_with_the_last:
            self.eventually(lambda: upstream.cancelled, lambda: "the upstream was not cancelled")
        else:
            self.settle()
            upstream.assert_not_cancelled()

    @rule(subscribers=2)
    def test_spec111_lock_step_is_what_coordinated_says(self) -> None:
        """§1.11: a subscriber without demand holds the others back only if `coordinated`."""
        processor, upstream = self._fed()
        eager, slow = self._start(processor, UNBOUNDED), self._start(processor, 0)
        self._await_demand(upstream)
        upstream.next(self.create_item(0))
        self._expect(slow, 0)
        self._expect(eager, 0 if self.coordinated else 1)
        slow.cancel()
        self._expect(eager, 1)

    @rule()
    def test_spec205_a_second_upstream_is_cancelled(self) -> None:
        """§2.5: a processor takes one upstream, and its subscribers get no signals of another."""
        processor, upstream = self._fed()
        subscriber = self._start(processor, UNBOUNDED)
        second = Link()
        processor.on_subscribe(second)
        self.eventually(lambda: second.cancels, lambda: "the second subscription was not cancelled")
        upstream.assert_not_cancelled()
        subscriber.assert_not_terminated()

    def _sends_the_error_to(self, subscribers: int) -> None:
        error = LookupError("the upstream's error")
        processor, upstream = self._fed()
        all_of_them = [self._start(processor, UNBOUNDED) for _ in range(subscribers)]
        self._await_demand(upstream)
        upstream.next(self.create_item(0))
        upstream.error(error)
        for subscriber in all_of_them:
            subscriber.await_terminal(self.timeout_s)
            check(subscriber.error is error, f"expected {error!r} itself; seen: {subscriber!r}")
            self._expect(subscriber, 1)

    def _fed(self) -> tuple[Processor[T, T], TestPublisher[T]]:
        """Return a new processor, and the upstream that it is subscribed to."""
        processor, upstream = self.create_processor(), TestPublisher[T]()
        upstream.subscribe(processor)
        return processor, upstream

    def _await_demand(self, upstream: TestPublisher[T]) -> None:
        if not upstream.outstanding:
            self.eventually(
                lambda: upstream.outstanding,
                lambda: f"it requested {upstream.requests}, and no more",
            )


def _items(verification: ProcessorVerification[T], count: int) -> Any:  # Any: see create_item
    return sources.range(count).map(verification.create_item)
