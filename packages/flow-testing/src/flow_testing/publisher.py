"""Publishers for tests: one that is driven by hand, and one that watches another."""

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
    """A rule that a `TestPublisher` is allowed to break."""

    NONE = 0
    OVERFLOW = enum.auto()
    """Sends more than was requested (§1.1)."""
    IGNORED_CANCEL = enum.auto()
    """Goes on after cancel (§1.8)."""
    AFTER_TERMINAL = enum.auto()
    """Signals after on_error or on_complete (§1.7)."""
    NONE_ITEM = enum.auto()
    """Sends None (§2.13)."""
    CLEANUP = enum.auto()
    """Takes the subscription for alive after a terminal (§1.6): requests are answered, and a
    cancel is ignored, so that only AFTER_TERMINAL decides whether it goes on."""
    SECOND_SUBSCRIPTION = enum.auto()
    """Calls on_subscribe twice when it is subscribed (§2.12)."""
    CONCURRENCY = enum.auto()
    """Sends items from several threads at once (§1.3), by `TestPublisher.next_at_once`."""


_KEEPING: Final = Violation.IGNORED_CANCEL | Violation.AFTER_TERMINAL | Violation.CLEANUP


class _Record:
    """What a publisher was asked for, and the assertions on that."""

    __slots__ = ("cancels", "requests", "subscribed")

    def __init__(self) -> None:
        self.requests: list[int] = []
        """Each amount that was requested."""
        self.cancels = 0
        """How often it was cancelled."""
        self.subscribed = 0
        """How often it was subscribed."""

    @property
    def cancelled(self) -> bool:
        """Whether its subscriber has cancelled."""
        return self.cancels > 0

    @property
    def requested(self) -> int:
        """The sum of all requests, at most `flow_core.UNBOUNDED`."""
        total = 0
        for n in self.requests:
            total = add_demand(total, max(n, 0))
        return total

    def assert_subscribed(self, times: int = 1) -> Self:
        """It was subscribed exactly `times` times."""
        if self.subscribed != times:
            raise AssertionError(f"expected {times} subscriptions, got {self.subscribed}")
        return self

    def assert_not_subscribed(self) -> Self:
        """Nobody has subscribed."""
        return self.assert_subscribed(0)

    def assert_requests(self, *amounts: int) -> Self:
        """Exactly these amounts were requested, one by one."""
        if self.requests != list(amounts):
            raise AssertionError(f"expected the requests {list(amounts)}, got {self.requests}")
        return self

    def assert_not_requested(self) -> Self:
        """Nothing was requested."""
        return self.assert_requests()

    def assert_cancelled(self) -> Self:
        """Its subscriber has cancelled."""
        if not self.cancels:
            raise AssertionError("expected to be cancelled; was not")
        return self

    def assert_not_cancelled(self) -> Self:
        """Its subscriber has not cancelled."""
        if self.cancels:
            raise AssertionError(f"expected not to be cancelled; was, {self.cancels} times")
        return self


@final
class TestPublisher(_Record, Publisher[T], Generic[T]):
    """Sends what the test says, and records what its subscriber asks.

    It is a stranger to the library: no fusion, no guard. Without an allowed violation it refuses,
    with an AssertionError, to break a rule by mistake.

    >>> from flow_core import Flow
    >>> publisher = TestPublisher[int]()
    >>> seen: list[int] = []
    >>> handle = Flow(publisher).map(lambda n: n + 1).subscribe(seen.append, prefetch=2)
    >>> publisher.next(1, 2).complete()
    >>> seen, publisher.requests
    ([2, 3], [2, 2])

    Args:
        violations: what it may do wrong.
        conditional: whether it asks a `ConditionalSubscriber` by ``try_on_next``.
        on_request: called with this publisher and each valid amount, within ``request``: a
            publisher that answers at once is ``on_request=lambda publisher, n: publisher.next(…)``.
    """

    __test__: ClassVar = False  # no class of tests, whatever its name says to pytest

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
        """What was requested and not yet sent."""
        self.second: _Link[T] | None = None
        """The subscription that SECOND_SUBSCRIPTION has handed over; it has to be cancelled."""
        self._lock = Lock()
        """Guards `outstanding`: requests may come from another thread than items."""
        self._violations = violations
        self._conditional = conditional
        self._on_request = on_request
        self._subscriber: Subscriber[T] | None = None
        self._terminated = False

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """The last subscriber gets the signals, and starts anew."""
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
        """Break §2.12: call ``on_subscribe`` a second time.

        Returns:
            The second subscription, to see whether it was cancelled.
        """
        link = _Link(self)
        self._receiver().on_subscribe(link)
        return link

    def next(self, *items: T) -> TestPublisher[T]:
        """Send items, as far as they are allowed; after a cancel there is nobody to send to."""
        for item in items:
            if item is None and Violation.NONE_ITEM not in self._violations:
                raise AssertionError("next(None): None is not an item; allow Violation.NONE_ITEM")
            subscriber = self._subscriber  # before it is looked at: a cancel lets it go
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
        """Whether it has completed or failed."""
        return self._terminated

    def next_at_once(self, *items: T) -> TestPublisher[T]:
        """Break §1.3: send each of `items` from a thread of its own, all at the same time.

        Raises:
            AssertionError: if `Violation.CONCURRENCY` is not allowed, or a thread does not return.
            BaseExceptionGroup: of what the subscriber raises.
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
        """Fail with `error`: to the last subscriber, as all signals."""
        subscriber = self._subscriber
        if self._allowed("error"):
            self._last(subscriber).on_error(error)

    def complete(self) -> None:
        """Complete: to the last subscriber, as all signals."""
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
        """Let the subscriber go (§3.13), unless it is to be called against the rules."""
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
        raise AssertionError("nobody has subscribed")
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
        """That of an earlier subscriber counts no more."""
        if self._publisher.subscribed == self._number:
            self._publisher._requested(n)

    @override
    def cancel(self) -> None:
        self.cancelled = True
        if self._publisher.subscribed == self._number:
            self._publisher._cancelled()


@final
class PublisherProbe(_Record, Publisher[T], Generic[T]):
    """Passes on what another publisher sends, and records what it is asked for.

    To see whether an operator subscribes, requests and cancels where it should. It is a stranger to
    the library, as `TestPublisher` is: fusion ends here.

    >>> import flow_core as flow
    >>> probe = PublisherProbe(flow.range(10))
    >>> list(probe.flow.take(2)), probe.requests, probe.cancelled
    ([0, 1], [2], True)

    Args:
        publisher: what to watch.
    """

    __slots__ = ("_publisher",)

    def __init__(self, publisher: Publisher[T]) -> None:
        super().__init__()
        self._publisher = publisher

    @property
    def flow(self) -> Flow[T]:
        """This publisher with the operators of a `Flow`."""
        return Flow(self)

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        self.subscribed += 1
        self._publisher.subscribe(_Probed(self, core_subscriber(subscriber)))

    def __repr__(self) -> str:
        return f"PublisherProbe({self._publisher!r})"


@final
class _Probed(CoreSubscriber[T], Generic[T]):
    """Between a publisher and its subscriber."""

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
        """Write a request down."""
        self._record.requests.append(n)

    def cancelled(self) -> None:
        """Write a cancel down, and let the subscriber go (§3.13)."""
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
