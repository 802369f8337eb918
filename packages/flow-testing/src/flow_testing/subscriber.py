"""A subscriber that records its signals, and checks that the publisher keeps the rules."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Condition, Thread, current_thread, get_ident
from typing import Any, ClassVar, Final, Generic, Literal, NamedTuple, TypeVar, final

from typing_extensions import TypeIs, override

from flow_core import hooks
from flow_core.demand import UNBOUNDED, add_demand
from flow_core.errors import NoneItemError, is_fatal
from flow_core.protocols import (
    EMPTY,
    ConditionalSubscriber,
    CoreSubscriber,
    Fusion,
    Publisher,
    QueueSubscription,
    Subscription,
)
from flow_core.serial import SerialDrain

__all__ = ["TIMEOUT_S", "ConditionalTestSubscriber", "Signal", "TestSubscriber", "observe"]

T = TypeVar("T")

PATIENCE_VARIABLE: Final = "FLOW_PATIENCE"
"""The environment variable with a factor by which all waits of tests are multiplied, for a busy
machine."""


def _patience() -> float:
    text = os.environ.get(PATIENCE_VARIABLE, "1")
    try:
        patience = float(text)
    except ValueError:
        patience = 0.0
    if not 1 <= patience < float("inf"):
        raise ValueError(f"{PATIENCE_VARIABLE}={text!r} is not a number of at least 1")
    return patience


TIMEOUT_S: Final = 5.0 * _patience()
"""The time that tests wait for an event that should come at once, in seconds; ``FLOW_PATIENCE``
multiplies it."""

SignalName = Literal["on_subscribe", "on_next", "on_error", "on_complete"]


class Signal(NamedTuple):
    """One recorded signal: its name, its argument, and the thread that has sent it."""

    name: SignalName
    value: object
    """The item or the error; None for ``on_subscribe`` and ``on_complete``."""
    thread: int
    """The identifier of the thread, as `threading.get_ident` returns it."""
    thread_name: str = ""
    """The name of the thread, for messages."""

    def __str__(self) -> str:
        return f"{self.name}({'' if self.value is None else repr(self.value)})"


class TestSubscriber(CoreSubscriber[T], Generic[T]):
    """Records signals, controls demand, and notes each rule that its publisher breaks.

    A broken rule does not raise an error at once, because a flow would treat that as the
    subscriber's mistake: it is kept in `violations`, and the next assertion fails with it.

    >>> import flow_core as flow
    >>> subscriber = TestSubscriber[int](2)
    >>> flow.range(3).subscribe(subscriber)
    >>> subscriber.assert_items(0, 1).assert_not_terminated().request(1)
    >>> subscriber.assert_result(0, 1, 2)
    TestSubscriber[on_subscribe() on_next(0) on_next(1) on_next(2) on_complete()]

    Args:
        request: how many items to request in ``on_subscribe``; 0 for none yet.
        fusion: the modes to request of a `QueueSubscription` in ``on_subscribe``; `fused` is the
            answer. With SYNC, `request` polls that many items. With ASYNC, `request` requests, and
            the subscriber polls after each wake-up, as many items as it has requested; after the
            upstream's terminal, it polls the rest before it counts as terminated.
        on_item: called with this subscriber and each item, after the item was recorded. Use it to
            request, to cancel or to raise from within ``on_next``.
    """

    __test__: ClassVar = False  # no class of tests, although pytest would think so by its name

    __slots__ = (
        "__weakref__",
        "_cancelled",
        "_changed",
        "_ended",
        "_fusion",
        "_on_item",
        "_poller",
        "_requested",
        "_running",
        "_subscription",
        "completed",
        "error",
        "fused",
        "items",
        "late",
        "signals",
        "violations",
    )

    def __init__(
        self,
        request: int = UNBOUNDED,
        *,
        fusion: Fusion = Fusion.NONE,
        on_item: Callable[[TestSubscriber[T], T], object] | None = None,
    ) -> None:
        self.items: list[T] = []
        self.error: BaseException | None = None
        self.completed = False
        self.fused = Fusion.NONE
        """The fusion mode that was granted."""
        self.signals: list[Signal] = []
        """All signals, in order."""
        self.late: list[Signal] = []
        """Signals that began after `cancel` had been called. Signals that were already on their way
        are allowed (§2.8)."""
        self.violations: list[str] = []
        self._changed = Condition()
        self._running: list[SignalName] = []
        self._requested = request
        self._fusion = fusion
        self._on_item = on_item
        self._cancelled = False
        self._ended: tuple[BaseException | None] | None = None
        """The terminal of the upstream, as long as items may be left to poll."""
        self._poller: _Poller | None = None
        self._subscription: Subscription | None = None

    # -- signals

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        if subscription is None:
            raise NoneItemError("on_subscribe(None): a subscription is needed (§2.13)")
        self._begin("on_subscribe", None)
        try:
            if self._subscription is not None:
                self._violated("§2.12: a second on_subscribe")
                subscription.cancel()  # §2.5
                return
            queue, poller = _queue_of(subscription), None
            if self._fusion and queue is not None and not self._cancelled:
                self.fused = queue.request_fusion(self._fusion)
                if self.fused & ~self._fusion:
                    self._violated(f"F23: asked for {self._fusion!r}, granted {self.fused!r}")
                if self.fused:
                    poller = _Poller(self._poll_asked)
            # At once: requests of another thread are passed on here, or by that thread.
            with self._changed:
                self._subscription = subscription
                requested, cancelled = self._requested, self._cancelled
                self._poller = None if cancelled else poller
            if cancelled:
                subscription.cancel()
            elif requested:
                self._demand(subscription, requested)
        finally:
            self._end()

    @override
    def on_next(self, item: T, /) -> None:
        if item is None:
            self._violated("§2.13: on_next(None)")
            raise NoneItemError("on_next(None): None is not an item (§2.13)")
        self._begin("on_next", item)
        try:
            if self.fused is Fusion.ASYNC:
                if item is not EMPTY:
                    self._violated(f"F21: fused ASYNC, on_next is only a wake-up, got {item!r}")
                self._poll_serially()
            else:
                self._take(item)
        finally:
            self._end()

    @override
    def on_error(self, error: BaseException, /) -> None:
        if error is None:
            self._violated("§2.13: on_error(None)")
            raise NoneItemError("on_error(None): an error is needed (§2.13)")
        self._begin("on_error", error)
        try:
            self._upstream_ended(error)
        finally:
            self._end()

    @override
    def on_complete(self) -> None:
        self._begin("on_complete", None)
        try:
            self._upstream_ended(None)
        finally:
            self._end()

    # -- control

    def request(self, n: int, /) -> None:
        """Request `n` more items. With SYNC fusion, poll them."""
        with self._changed:
            if n > 0:
                self._requested = add_demand(self._requested, n)
            subscription = self._subscription
        if subscription is not None:
            self._demand(subscription, n)

    def cancel(self) -> None:
        """Cancel; before ``on_subscribe``, remember to cancel then."""
        with self._changed:
            self._cancelled = True
            self._poller = None  # it refers to this subscriber
            subscription = self._subscription
        if subscription is not None:
            subscription.cancel()

    # -- observations

    @property
    def outstanding(self) -> int:
        """Return how many of the requested items have not come yet."""
        if self._requested == UNBOUNDED:
            return UNBOUNDED
        return self._requested - len(self.items)

    @property
    def subscription(self) -> Subscription:
        """Return the subscription that ``on_subscribe`` got."""
        if self._subscription is None:
            raise AssertionError("there was no on_subscribe")
        return self._subscription

    @property
    def terminated(self) -> bool:
        """Return whether the flow has completed or failed."""
        return self.completed or self.error is not None

    @property
    def threads(self) -> set[int]:
        """Return the identifiers of the threads that sent items."""
        return {signal.thread for signal in self.signals if signal.name == "on_next"}

    def await_terminal(self, timeout_s: float = TIMEOUT_S) -> TestSubscriber[T]:
        """Wait until the flow has completed or failed, but at most `timeout_s` seconds."""
        return self._await(lambda: self.terminated, "no terminal", timeout_s)

    def await_items(self, count: int, timeout_s: float = TIMEOUT_S) -> TestSubscriber[T]:
        """Wait until there are `count` items or a terminal, but at most `timeout_s` seconds."""
        return self._await(
            lambda: self.terminated or len(self.items) >= count, f"no {count} items", timeout_s
        )

    # -- assertions

    def assert_subscribed(self) -> TestSubscriber[T]:
        """Assert that ``on_subscribe`` was called."""
        if self._subscription is None:
            self._fail("expected an on_subscribe, got none")
        return self.assert_rules_kept()

    def assert_not_subscribed(self) -> TestSubscriber[T]:
        """Assert that ``on_subscribe`` was not called yet."""
        if self._subscription is not None:
            self._fail("expected no on_subscribe yet")
        return self.assert_rules_kept()

    def assert_demand(self, n: int) -> TestSubscriber[T]:
        """Assert that exactly `n` of the requested items have not come yet."""
        if self.outstanding != n:
            self._fail(f"expected a demand of {n} more items, it is {self.outstanding}")
        return self.assert_rules_kept()

    def assert_fusion(self, mode: Fusion) -> TestSubscriber[T]:
        """Assert that exactly this fusion mode was granted.

        Args:
            mode: the expected value of `fused`; `Fusion.NONE` if fusion was refused or not
                possible.
        """
        self.assert_subscribed()
        if not self._fusion:
            self._fail(f"expected {mode!r}, but this subscriber was not told to ask for fusion")
        if self.fused != mode:
            self._fail(f"asked for {self._fusion!r}: expected {mode!r}, was granted {self.fused!r}")
        return self

    def assert_rules_kept(self) -> TestSubscriber[T]:
        """Assert that the publisher has broken no rule."""
        if self.violations:
            self._fail("the publisher broke rules:\n  " + "\n  ".join(self.violations))
        return self

    def assert_items(self, *items: T) -> TestSubscriber[T]:
        """Assert that exactly these items have come so far."""
        if self.items != list(items):
            self._fail(f"expected the items {list(items)!r}, got {self.items!r}")
        return self.assert_rules_kept()

    def assert_no_items(self) -> TestSubscriber[T]:
        """Assert that no item has come so far."""
        return self.assert_items()

    def assert_result(self, *items: T) -> TestSubscriber[T]:
        """Assert that exactly these items have come, and then the completion."""
        if self.error is not None:
            self._fail(f"expected {list(items)!r} and completion, got an error", self.error)
        self.assert_items(*items)
        if not self.completed:
            self._fail("expected completion, got none yet")
        return self

    def assert_failure(
        self, error: BaseException | type[BaseException], *items: T
    ) -> TestSubscriber[T]:
        """Assert that exactly these items have come, then this very error, or one of the class."""
        if self.error is None:
            self._fail(f"expected {error!r}, got {'completion' if self.completed else 'no error'}")
        matches = isinstance(self.error, error) if isinstance(error, type) else self.error is error
        if not matches:
            self._fail(f"expected {error!r}, got another error", self.error)
        return self.assert_items(*items)

    def assert_error_message(self, part: str) -> TestSubscriber[T]:
        """Assert that the flow has failed, with an error whose text contains `part`."""
        if self.error is None:
            self._fail(f"expected an error that says {part!r}, got none")
        if part not in str(self.error):
            self._fail(f"expected an error that says {part!r}, it says {self.error}", self.error)
        return self.assert_rules_kept()

    def assert_on_thread(self, thread: Thread | str) -> TestSubscriber[T]:
        """Assert that there was a signal, and all but on_subscribe came on this thread.

        Args:
            thread: the thread, or the beginning of its name, such as the prefix of a pool's
                threads.
        """
        seen = self._signals_on_threads()
        others = [
            f"{signal} on {signal.thread_name!r}" for signal in seen if not _came_on(signal, thread)
        ]
        if others or not seen:
            self._fail(f"expected all signals on {_named(thread)}, got {', '.join(others) or None}")
        return self.assert_rules_kept()

    def assert_not_on_thread(self, thread: Thread | str) -> TestSubscriber[T]:
        """Assert that no signal but on_subscribe came on this thread.

        Args:
            thread: as in `assert_on_thread`.
        """
        found = [str(signal) for signal in self._signals_on_threads() if _came_on(signal, thread)]
        if found:
            self._fail(f"expected no signal on {_named(thread)}, got {', '.join(found)}")
        return self.assert_rules_kept()

    def assert_not_terminated(self) -> TestSubscriber[T]:
        """Assert that the flow has not ended."""
        if self.terminated:
            self._fail("expected no terminal yet", self.error)
        return self.assert_rules_kept()

    def assert_silent_after_cancel(self) -> TestSubscriber[T]:
        """Assert that no signal began after `cancel`; only reliable if no other thread signals."""
        if self.late:
            self._fail(f"expected nothing after cancel(), got {' '.join(map(str, self.late))}")
        return self.assert_rules_kept()

    def __repr__(self) -> str:
        seen = [str(signal) for signal in self.signals]
        if len(seen) > 24:
            seen[12:-12] = [f"… {len(seen) - 24} more …"]
        return f"{type(self).__name__}[{' '.join(seen)}]"

    # -- the parts

    def _begin(self, name: SignalName, value: object) -> None:
        signal = Signal(name, value, get_ident(), current_thread().name)
        with self._changed:
            if self._running:
                self._violated(f"§1.3: {signal} came while {self._running[-1]} was running")
            if self._subscription is None and name != "on_subscribe":
                self._violated(f"§1.9: {signal} came before on_subscribe")
            if self.terminated or self._ended is not None:
                self._violated(f"§1.7: {signal} came after the terminal")
            if self._cancelled and name != "on_subscribe":
                self.late.append(signal)
            self._running.append(name)
            self.signals.append(signal)

    def _end(self) -> None:
        with self._changed:
            self._running.pop()
            self._changed.notify_all()

    def _take(self, item: T) -> None:
        self.items.append(item)
        if len(self.items) > self._requested:
            self._violated(f"§1.1: item {len(self.items)}, but {self._requested} were requested")
        if self._on_item is not None:
            self._on_item(self, item)

    def _upstream_ended(self, error: BaseException | None) -> None:
        if self.fused is not Fusion.ASYNC:
            self._terminated(error)
        else:
            self._ended = (error,)
            self._poll_serially()  # nothing, if it was cancelled: items may be left

    def _terminated(self, error: BaseException | None) -> None:
        with self._changed:
            self._poller = None  # it refers to this subscriber
            if error is None:
                self.completed = True
            else:
                self.error = error
            self._changed.notify_all()

    def _demand(self, subscription: Subscription, n: int) -> None:
        if self.fused is not Fusion.SYNC:
            subscription.request(n)
        self._poll_serially()

    def _poll_serially(self) -> None:
        """With fusion, poll on each wake-up and each request, one thread at a time."""
        poller = self._poller
        if poller is not None:
            poller.signal()

    def _poll_asked(self) -> None:
        ended = self._ended  # read before polling: nothing is added to the queue after it
        none_left = self._poll(self.outstanding)
        queue = self._queue
        if ended is None or queue is None or self.terminated or self._cancelled:
            return
        none_left = none_left or queue.is_empty()
        if none_left and not self._cancelled:  # noted before the queue is cleared
            self._terminated(*ended)

    def _poll(self, n: int) -> bool:
        """Take up to `n` items out of the fused subscription; with SYNC, notice the end, too.

        Returns:
            True if nothing is left.
        """
        queue = self._queue
        if queue is None or self.terminated:
            return False
        polled = 0
        while polled < n and not self._cancelled:
            try:
                nothing_left = queue.is_empty()
                item = queue.poll()
            except BaseException as error:
                if is_fatal(error):
                    raise
                if self._cancelled:
                    hooks.drop_error(error)
                else:
                    self._terminated(error)
                return False
            if item is EMPTY:
                if self.fused is Fusion.SYNC and not self._cancelled:
                    self._terminated(None)
                return True
            if nothing_left and self.fused is Fusion.SYNC:  # if ASYNC, the end may have come since
                self._violated(f"F25: is_empty() was True, then poll() gave {item!r}")
            self._take(item)
            polled += 1
        return False

    @property
    def _queue(self) -> QueueSubscription[T] | None:
        return _queue_of(self._subscription)

    def _signals_on_threads(self) -> list[Signal]:
        return [signal for signal in self.signals if signal.name != "on_subscribe"]

    def _violated(self, what: str) -> None:
        self.violations.append(what)

    def _await(
        self, condition: Callable[[], bool], missing: str, timeout_s: float
    ) -> TestSubscriber[T]:
        with self._changed:
            if not self._changed.wait_for(condition, timeout_s):
                self._fail(f"{missing} within {timeout_s} s")
        return self

    def _fail(self, what: str, cause: BaseException | None = None) -> None:
        raise AssertionError(f"{what}\nseen: {self!r}") from cause


@final
class _Poller(SerialDrain):
    """Lets one thread poll at a time. It refers to its subscriber, which drops it at the end."""

    __slots__ = ("_poll",)

    def __init__(self, poll: Callable[[], None]) -> None:
        super().__init__()
        self._poll = poll

    @override
    def drain(self) -> None:
        self._poll()


def _queue_of(subscription: Subscription | None) -> QueueSubscription[Any] | None:
    return subscription if _is_queue(subscription) else None


def _is_queue(subscription: object) -> TypeIs[QueueSubscription[Any]]:
    # Any: a subscription does not know the type of its items, which are the subscriber's.
    return isinstance(subscription, QueueSubscription)


def _came_on(signal: Signal, thread: Thread | str) -> bool:
    if isinstance(thread, str):
        return signal.thread_name.startswith(thread)
    # An ended thread may have had the same ident.
    return (signal.thread, signal.thread_name) == (thread.ident, thread.name)


def _named(thread: Thread | str) -> str:
    return f"{thread}…" if isinstance(thread, str) else thread.name


class ConditionalTestSubscriber(TestSubscriber[T], ConditionalSubscriber[T]):
    """A `TestSubscriber` that accepts only some items, and says so to a conditional upstream.

    Args:
        accept: returns whether an item is accepted; other items are kept in `rejected`.
        request: see `TestSubscriber`.
        fusion: see `TestSubscriber`.
        on_item: see `TestSubscriber`.
    """

    __slots__ = ("_accept", "offered", "rejected")

    def __init__(
        self,
        accept: Callable[[T], object] = lambda _: True,
        request: int = UNBOUNDED,
        *,
        fusion: Fusion = Fusion.NONE,
        on_item: Callable[[TestSubscriber[T], T], object] | None = None,
    ) -> None:
        super().__init__(request, fusion=fusion, on_item=on_item)
        self._accept = accept
        self.rejected: list[T] = []
        self.offered = 0
        """The number of items that came by `try_on_next`."""

    @override
    def on_next(self, item: T, /) -> None:
        """Record an item; if it is rejected, request another one (F19)."""
        if item is None or self._counts(item):
            super().on_next(item)
        else:
            self.rejected.append(item)
            self.subscription.request(1)

    @override
    def try_on_next(self, item: T, /) -> bool:
        self.offered += 1
        if item is None or self._counts(item):
            super().on_next(item)
            return True
        self.rejected.append(item)
        return False

    def _counts(self, item: T) -> bool:
        sent: object = item  # a wake-up is not an item, whatever T is
        return sent is EMPTY or bool(self._accept(item))


def observe(
    publisher: Publisher[T],
    request: int = UNBOUNDED,
    *,
    fusion: Fusion = Fusion.NONE,
    on_item: Callable[[TestSubscriber[T], T], object] | None = None,
) -> TestSubscriber[T]:
    """Subscribe a new `TestSubscriber` to `publisher`, and return it.

    >>> import flow_core as flow
    >>> observe(flow.range(3).map(str)).assert_result("0", "1", "2")
    TestSubscriber[on_subscribe() on_next('0') on_next('1') on_next('2') on_complete()]

    Args:
        publisher: a flow, or any publisher.
        request: see `TestSubscriber`.
        fusion: see `TestSubscriber`.
        on_item: see `TestSubscriber`.
    """
    subscriber = TestSubscriber[T](request, fusion=fusion, on_item=on_item)
    publisher.subscribe(subscriber)
    return subscriber
