"""Publishers for tests: one that the test drives by hand, and one that watches another one."""

from __future__ import annotations

import enum
from collections.abc import Callable
from threading import Lock
from typing import ClassVar, Final, Generic, Self, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.demand import add_demand, bad_request
from flow_core.flow import Flow
from flow_core.protocols import (
    ConditionalSubscriber,
    CoreSubscriber,
    Publisher,
    Subscriber,
    Subscription,
)
from flow_core.subscribers import core_subscriber
from flow_testing.races import race

__all__ = ["PublisherProbe", "TestPublisher", "Violation"]

T = TypeVar("T")


class Violation(enum.Flag):
    """The rules that a `TestPublisher` can be allowed to break."""

    NONE = 0
    OVERFLOW = enum.auto()
    """Sends more than was requested (§1.1)."""
    IGNORED_CANCEL = enum.auto()
    """Continues after a cancel (§1.8)."""
    AFTER_TERMINAL = enum.auto()
    """Signals after on_error or on_complete (§1.7)."""
    NONE_ITEM = enum.auto()
    """Sends None (§2.13)."""
    CLEANUP = enum.auto()
    """Treats the subscription as alive after a terminal (§1.6): requests are answered, and a cancel
    is ignored. Whether signals continue is up to AFTER_TERMINAL."""
    SECOND_SUBSCRIPTION = enum.auto()
    """Calls on_subscribe twice for one subscription (§2.12)."""
    CONCURRENCY = enum.auto()
    """Sends items from several threads at once (§1.3), by `TestPublisher.next_at_once`."""


_KEEPING: Final = Violation.IGNORED_CANCEL | Violation.AFTER_TERMINAL | Violation.CLEANUP


class _Record:
    """The requests and cancels that a publisher got, with assertions on them."""

    __slots__ = ("cancels", "requests", "subscribed")

    def __init__(self) -> None:
        self.requests: list[int] = []
        """The requested amounts, one by one."""
        self.cancels = 0
        """The number of cancels that have come."""
        self.subscribed = 0
        """The number of subscribers that have come so far."""

    @property
    def cancelled(self) -> bool:
        """Return whether the publisher's subscriber has cancelled."""
        return self.cancels > 0

    @property
    def requested(self) -> int:
        """Return the sum of all requests, at most `flow_core.UNBOUNDED`."""
        total = 0
        for n in self.requests:
            total = add_demand(total, max(n, 0))
        return total

    def assert_subscribed(self, times: int = 1) -> Self:
        """Assert that the publisher was subscribed to exactly `times` times."""
        if self.subscribed != times:
            raise AssertionError(f"expected {times} subscriptions, got {self.subscribed}")
        return self

    def assert_not_subscribed(self) -> Self:
        """Assert that the publisher was not subscribed to."""
        return self.assert_subscribed(0)

    def assert_requests(self, *amounts: int) -> Self:
        """Assert that exactly these amounts were requested, one by one."""
        if self.requests != list(amounts):
            raise AssertionError(f"expected the requests {list(amounts)}, got {self.requests}")
        return self

    def assert_not_requested(self) -> Self:
        """Assert that nothing was requested."""
        return self.assert_requests()

    def assert_cancelled(self) -> Self:
        """Assert that the publisher's subscriber has cancelled."""
        if not self.cancels:
            raise AssertionError("expected to be cancelled; was not")
        return self

    def assert_not_cancelled(self) -> Self:
        """Assert that the publisher's subscriber has not cancelled."""
        if self.cancels:
            raise AssertionError(f"expected not to be cancelled; was, {self.cancels} times")
        return self


@final
class TestPublisher(_Record, Publisher[T], Generic[T]):
    """A publisher that sends what the test says, and records what its subscriber calls.

    It does not use the library's internals: it has no fusion and no guard. It refuses, with an
    AssertionError, to break a rule that the test has not allowed it to break.

    >>> from flow_core import Flow
    >>> publisher = TestPublisher[int]()
    >>> seen: list[int] = []
    >>> handle = Flow(publisher).map(lambda n: n + 1).subscribe(seen.append, prefetch=2)
    >>> publisher.next(1, 2).complete()
    >>> seen, publisher.requests
    ([2, 3], [2, 2])

    Args:
        violations: the rules that the publisher may break.
        conditional: whether the publisher calls ``try_on_next`` of a `ConditionalSubscriber`.
        on_request: called with this publisher and each valid amount, within ``request``. To answer
            each request at once, pass ``lambda publisher, n: publisher.next(…)``.
    """

    __test__: ClassVar = False  # no class of tests, although pytest would think so by its name

    __slots__ = (
        "__weakref__",
        "_conditional",
        "_lock",
        "_on_request",
        "_subscriber",
        "_terminated",
        "_violations",
        "outstanding",
        "second",
    )

    def __init__(
        self,
        violations: Violation = Violation.NONE,
        *,
        conditional: bool = False,
        on_request: Callable[[TestPublisher[T], int], object] | None = None,
    ) -> None:
        super().__init__()
        self.outstanding = 0
        """The number of requested items that were not sent yet."""
        self.second: _Link[T] | None = None
        """The second subscription that SECOND_SUBSCRIPTION makes; the subscriber has to cancel
        it."""
        self._lock = Lock()
        """Guards `outstanding`, because requests may come from another thread than items."""
        self._violations = violations
        self._conditional = conditional
        self._on_request = on_request
        self._subscriber: Subscriber[T] | None = None
        self._terminated = False

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """Subscribe `subscriber`. It replaces the previous one, and all counts start again."""
        self.subscribed += 1
        self._subscriber = subscriber
        self._terminated = False
        self.outstanding = self.cancels = 0
        self.requests.clear()
        subscriber.on_subscribe(_Link(self, self.subscribed))
        if Violation.SECOND_SUBSCRIPTION in self._violations:
            self.second = _Link(self)
            subscriber.on_subscribe(self.second)

    def subscribe_again(self) -> _Link[T]:
        """Break §2.12: call ``on_subscribe`` a second time for the same subscriber.

        Returns:
            The second subscription, so that the test can check that it was cancelled.
        """
        link = _Link(self)
        self._receiver().on_subscribe(link)
        return link

    def next(self, *items: T) -> TestPublisher[T]:
        """Send items, as far as the rules and the violations allow; after a cancel, send none."""
        for item in items:
            if item is None and Violation.NONE_ITEM not in self._violations:
                raise AssertionError("next(None): None is not an item; allow Violation.NONE_ITEM")
            subscriber = self._subscriber  # before it is checked: a cancel releases it
            if not self._allowed("next"):
                break
            if not self.outstanding and Violation.OVERFLOW not in self._violations:
                raise AssertionError(
                    f"next({item!r}) without demand; allow Violation.OVERFLOW, or request first"
                )
            subscriber = _known(subscriber)
            # Before the call, which may request more.
            with self._lock:
                self.outstanding = max(0, self.outstanding - 1)
            if self._conditional and isinstance(subscriber, ConditionalSubscriber):
                if not subscriber.try_on_next(item):
                    with self._lock:
                        self.outstanding += 1
            else:
                subscriber.on_next(item)
        return self

    @property
    def terminated(self) -> bool:
        """Return whether the flow has completed or failed."""
        return self._terminated

    def next_at_once(self, *items: T) -> TestPublisher[T]:
        """Break §1.3: send each of `items` from another thread, all at the same time.

        Raises:
            AssertionError: if `Violation.CONCURRENCY` is not allowed, or if a thread does not
                return.
            BaseExceptionGroup: if the subscriber raises errors; contains them.
        """
        if Violation.CONCURRENCY not in self._violations:
            raise AssertionError("next_at_once() breaks §1.3; allow Violation.CONCURRENCY")

        def sender(item: T) -> Callable[[], object]:
            def send() -> None:
                with self._lock:
                    allowed = self._allowed("next_at_once")
                    self.outstanding = max(0, self.outstanding - 1)
                if allowed:
                    self._receiver().on_next(item)

            return send

        race(*map(sender, items))
        return self

    def error(self, error: BaseException) -> None:
        """Send `error` to the subscriber (the last one, which gets all signals)."""
        subscriber = self._subscriber
        if self._allowed("error"):
            self._last(subscriber).on_error(error)

    def complete(self) -> None:
        """Send the completion to the subscriber (the last one, which gets all signals)."""
        subscriber = self._subscriber
        if self._allowed("complete"):
            self._last(subscriber).on_complete()

    def __repr__(self) -> str:
        return "TestPublisher()"

    def _receiver(self) -> Subscriber[T]:
        return _known(self._subscriber)

    def _last(self, subscriber: Subscriber[T] | None) -> Subscriber[T]:
        self._terminated = True
        known = _known(subscriber)
        self._release()
        return known

    def _release(self) -> None:
        """Drop the subscriber (§3.13), unless it is to be called against the rules."""
        if not self._violations & _KEEPING:
            self._subscriber = None

    def _allowed(self, what: str) -> bool:
        if self._terminated and Violation.AFTER_TERMINAL not in self._violations:
            raise AssertionError(f"{what}() after a terminal; allow Violation.AFTER_TERMINAL")
        return not self.cancels or Violation.IGNORED_CANCEL in self._violations

    def _cancelled(self) -> None:
        if not (self._terminated and Violation.CLEANUP in self._violations):
            self.cancels += 1
            self._release()

    def _requested(self, n: int) -> None:
        self.requests.append(n)
        if self._terminated and Violation.CLEANUP not in self._violations:
            return
        if self.cancels and Violation.IGNORED_CANCEL not in self._violations:
            return
        bad = bad_request(n)
        if bad is not None:
            self.error(bad)
            return
        with self._lock:
            self.outstanding = add_demand(self.outstanding, n)
        if self._on_request is not None:
            self._on_request(self, n)


def _known(subscriber: Subscriber[T] | None) -> Subscriber[T]:
    if subscriber is None:
        raise AssertionError("there is no subscriber yet")
    return subscriber


@final
class _Link(Subscription, Generic[T]):
    """The subscription of one subscriber."""

    __slots__ = ("_number", "_publisher", "cancelled")

    def __init__(self, publisher: TestPublisher[T], number: int = 0) -> None:
        self._publisher = publisher
        self._number = number
        self.cancelled = False

    @override
    def request(self, n: int, /) -> None:
        """Request `n` items. A request of an earlier subscriber no longer counts."""
        if self._publisher.subscribed == self._number:
            self._publisher._requested(n)

    @override
    def cancel(self) -> None:
        self.cancelled = True
        if self._publisher.subscribed == self._number:
            self._publisher._cancelled()


@final
class PublisherProbe(_Record, Publisher[T], Generic[T]):
    """Passes on the signals of another publisher, and records the calls to it.

    Use it to check whether an operator subscribes, requests and cancels where it should. Like
    `TestPublisher`, it does not use the library's internals: fusion ends here.

    >>> import flow_core as flow
    >>> probe = PublisherProbe(flow.range(10))
    >>> list(probe.flow.take(2)), probe.requests, probe.cancelled
    ([0, 1], [2], True)

    Args:
        publisher: the publisher to watch.
    """

    __slots__ = ("_publisher",)

    def __init__(self, publisher: Publisher[T]) -> None:
        super().__init__()
        self._publisher = publisher

    @property
    def flow(self) -> Flow[T]:
        """Return this publisher with the operators of a `Flow`."""
        return Flow(self)

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        self.subscribed += 1
        self._publisher.subscribe(_Probed(self, core_subscriber(subscriber)))

    def __repr__(self) -> str:
        return f"PublisherProbe({self._publisher!r})"


@final
class _Probed(CoreSubscriber[T], Generic[T]):
    """A link between a publisher and its subscriber that records."""

    __slots__ = ("_done", "_downstream", "_record")

    def __init__(self, record: _Record, downstream: CoreSubscriber[T]) -> None:
        self._record = record
        self._done = False
        self._downstream: CoreSubscriber[T] | None = downstream

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        downstream = self._downstream
        if downstream is None:
            subscription.cancel()
        else:
            downstream.on_subscribe(_ProbedSubscription(self, subscription))

    @override
    def on_next(self, item: T, /) -> None:
        downstream = self._downstream
        if downstream is None:
            hooks.drop_item(item)
        else:
            downstream.on_next(item)

    @override
    def on_error(self, error: BaseException, /) -> None:
        downstream, self._downstream = self._downstream, None
        self._done = True
        if downstream is None:
            hooks.drop_error(error)
        else:
            downstream.on_error(error)

    @override
    def on_complete(self) -> None:
        downstream, self._downstream = self._downstream, None
        self._done = True
        if downstream is not None:
            downstream.on_complete()

    @override
    def on_next_raised(self, error: BaseException, /) -> bool:
        downstream = self._downstream
        return downstream is not None and downstream.on_next_raised(error)

    def requested(self, n: int) -> None:
        """Record a request."""
        self._record.requests.append(n)

    def cancelled(self) -> None:
        """Record a cancel, and drop the reference to the subscriber (§3.13)."""
        if not self._done:
            self._record.cancels += 1
        self._downstream = None


@final
class _ProbedSubscription(Subscription):
    __slots__ = ("_probed", "_subscription")

    def __init__(self, probed: _Probed[T], subscription: Subscription) -> None:
        self._probed = probed
        self._subscription = subscription

    @override
    def request(self, n: int, /) -> None:
        self._probed.requested(n)
        self._subscription.request(n)

    @override
    def cancel(self) -> None:
        self._probed.cancelled()
        self._subscription.cancel()
