"""A publisher that a test drives by hand, by the rules or against them."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import ClassVar, Generic, TypeVar, final

from flow_core.demand import add_demand, bad_request
from flow_core.protocols import ConditionalSubscriber, Publisher, Subscriber

__all__ = ["TestPublisher", "Violation"]

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


@final
class TestPublisher(Publisher[T], Generic[T]):
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
        "_link",
        "_on_request",
        "_subscriber",
        "_terminated",
        "_violations",
        "cancels",
        "outstanding",
        "requests",
        "subscribed",
    )

    def __init__(
        self,
        violations: Violation = Violation.NONE,
        *,
        conditional: bool = False,
        on_request: Callable[[TestPublisher[T], int], object] | None = None,
    ) -> None:
        self.requests: list[int] = []
        """Each amount that was requested."""
        self.outstanding = 0
        """What was requested and not yet sent."""
        self.cancels = 0
        """How often it was cancelled."""
        self.subscribed = 0
        """How often it was subscribed."""
        self._violations = violations
        self._conditional = conditional
        self._on_request = on_request
        self._subscriber: Subscriber[T] | None = None
        self._terminated = False
        self._link: _Link[T] | None = None

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """See `Publisher.subscribe`. The last subscriber gets the signals, and starts anew."""
        self.subscribed += 1
        self._subscriber = subscriber
        self._terminated = False
        self.outstanding = self.cancels = 0
        self.requests.clear()
        self._link = _Link(self)
        subscriber.on_subscribe(self._link)

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
                raise AssertionError("next(None): None is no item; allow Violation.NONE_ITEM")
            if not self._allowed("next"):
                break
            if not self.outstanding and Violation.OVERFLOW not in self._violations:
                raise AssertionError(
                    f"next({item!r}) without demand; allow Violation.OVERFLOW, or request first"
                )
            subscriber = self._receiver()
            # Before the call, which may request more.
            self.outstanding = max(0, self.outstanding - 1)
            if self._conditional and isinstance(subscriber, ConditionalSubscriber):
                if not subscriber.try_on_next(item):
                    self.outstanding += 1
            else:
                subscriber.on_next(item)
        return self

    def error(self, error: BaseException) -> None:
        """Fail."""
        if self._allowed("error"):
            self._terminated = True
            self._receiver().on_error(error)

    def complete(self) -> None:
        """Complete."""
        if self._allowed("complete"):
            self._terminated = True
            self._receiver().on_complete()

    @property
    def cancelled(self) -> bool:
        """Whether its subscriber has cancelled."""
        return self.cancels > 0

    def assert_requests(self, *amounts: int) -> TestPublisher[T]:
        """Exactly these amounts were requested, one by one."""
        if self.requests != list(amounts):
            raise AssertionError(f"expected the requests {list(amounts)}, got {self.requests}")
        return self

    def assert_cancelled(self) -> TestPublisher[T]:
        """Its subscriber has cancelled."""
        if not self.cancels:
            raise AssertionError("expected to be cancelled; was not")
        return self

    def assert_not_cancelled(self) -> TestPublisher[T]:
        """Its subscriber has not cancelled."""
        if self.cancels:
            raise AssertionError(f"expected not to be cancelled; was, {self.cancels} times")
        return self

    def __repr__(self) -> str:
        return "TestPublisher()"

    def _receiver(self) -> Subscriber[T]:
        if self._subscriber is None:
            raise AssertionError("nobody has subscribed")
        return self._subscriber

    def _allowed(self, what: str) -> bool:
        if self._terminated and Violation.AFTER_TERMINAL not in self._violations:
            raise AssertionError(f"{what}() after a terminal; allow Violation.AFTER_TERMINAL")
        return not self.cancels or Violation.IGNORED_CANCEL in self._violations

    def _requested(self, n: int) -> None:
        self.requests.append(n)
        if self._terminated or (self.cancels and Violation.IGNORED_CANCEL not in self._violations):
            return
        bad = bad_request(n)
        if bad is not None:
            self.error(bad)
            return
        self.outstanding = add_demand(self.outstanding, n)
        if self._on_request is not None:
            self._on_request(self, n)


@final
class _Link(Generic[T]):
    """The subscription of one subscriber."""

    __slots__ = ("_publisher", "cancelled")

    def __init__(self, publisher: TestPublisher[T]) -> None:
        self._publisher = publisher
        self.cancelled = False

    def request(self, n: int, /) -> None:
        """See `Subscription.request`."""
        if self._publisher._link is self:
            self._publisher._requested(n)

    def cancel(self) -> None:
        """See `Subscription.cancel`."""
        self.cancelled = True
        if self._publisher._link is self:
            self._publisher.cancels += 1
