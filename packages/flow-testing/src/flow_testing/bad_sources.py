"""Publishers that break the rules, to check that an operator nevertheless keeps them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any, Final, cast, final

from typing_extensions import override

from flow_core.demand import UNBOUNDED
from flow_core.errors import MissingBackpressureError
from flow_core.flow import Flow
from flow_core.protocols import Publisher, Subscriber, Subscription
from flow_testing.drops import Drops, recorded_drops
from flow_testing.subscriber import TIMEOUT_S, TestSubscriber

__all__ = ["BAD_SOURCES", "BadSource", "LateError", "Misbehaving", "check_bad_source"]


class LateError(Exception):
    """The error that a bad source signals too late."""


class _FirstError(Exception):
    """The error with which a source fails within the rules."""


@final
class _RogueLink(Subscription):
    """A subscription that only records the calls to it."""

    __slots__ = ("cancelled", "requested")

    def __init__(self) -> None:
        self.requested = 0
        self.cancelled = Event()

    @override
    def request(self, n: int, /) -> None:
        self.requested += n

    @override
    def cancel(self) -> None:
        self.cancelled.set()


@final
class Misbehaving(Publisher[int]):
    """A publisher that does what a `BadSource` makes it do.

    Args:
        announces: whether it calls ``on_subscribe`` when it is subscribed to, as the rules say.
        request: the first request of the downstream.
    """

    __slots__ = (
        "_announces",
        "_hold",
        "_subscriber",
        "downstream",
        "link",
        "lost",
        "lost_errors",
        "sent",
    )

    def __init__(self, announces: bool = True, request: int = UNBOUNDED) -> None:
        self._announces = announces
        self._hold: tuple[Event, Event] | None = None
        self._subscriber: Subscriber[int] | None = None
        self.link = _RogueLink()
        """The subscription that this publisher passes on."""
        # Any: the operator's items.
        self.downstream: TestSubscriber[Any] = TestSubscriber(request, on_item=self._taken)
        """The subscriber that the operator has put before its downstream."""
        self.sent: list[int] = []
        """The items that the publisher was allowed to send: the operator may pass these on."""
        self.lost: list[int] = []
        """The items that the publisher was not allowed to send: no subscriber may get them."""
        self.lost_errors: list[BaseException] = []
        """The errors that the publisher was not allowed to send."""

    @override
    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        self._subscriber = subscriber
        if self._announces:
            subscriber.on_subscribe(self.link)

    @property
    def subscribed(self) -> bool:
        """Return whether the operator has subscribed; an operator like ``take(0)`` need not."""
        return self._subscriber is not None

    @property
    def subscriber(self) -> Subscriber[Any]:  # Any: it gets wrong signals, too
        """The subscriber that the operator has subscribed."""
        if self._subscriber is None:
            raise AssertionError("there is no subscriber yet")
        return self._subscriber

    def send(self, *items: int) -> None:
        """Send items in order."""
        for item in items:
            self.sent.append(item)
            self.subscriber.on_next(item)

    def send_late(self, *items: int) -> None:
        """Send items that no subscriber may get."""
        for item in items:
            self.lost.append(item)
            self.subscriber.on_next(item)

    def hold(self) -> tuple[Event, Event]:
        """Hold the thread that passes the next item to the downstream, while it does so.

        Returns:
            Two events: the first is set when the thread is held, and setting the second one
            releases the thread.
        """
        self._hold = hold = (Event(), Event())
        return hold

    def _taken(self, _: TestSubscriber[Any], item: object) -> None:
        hold, self._hold = self._hold, None
        if hold is not None:
            entered, go_on = hold
            entered.set()
            go_on.wait(TIMEOUT_S)

    def fail_late(self) -> None:
        """Send an error that no subscriber may get."""
        error = LateError()
        self.lost_errors.append(error)
        self.subscriber.on_error(error)


@final
@dataclass(frozen=True)
class BadSource:
    """One way to break a rule.

    Args:
        name: the name in messages, also useful as a test's id.
        rule: the rule that is broken.
        act: the function that breaks the rule, after the subscription.
        announces: whether ``on_subscribe`` comes before it.
        ends: whether the source sends a terminal that the downstream must get.
        request: the first request of the downstream.
    """

    name: str
    rule: str
    act: Callable[[Misbehaving], object] = field(repr=False)
    announces: bool = True
    ends: bool = True
    request: int = UNBOUNDED


# -- the acts


def _after_complete(source: Misbehaving) -> None:
    source.send(1)
    source.subscriber.on_complete()
    source.send_late(101, 102)
    source.fail_late()
    source.subscriber.on_complete()


def _after_error(source: Misbehaving) -> None:
    source.send(1)
    source.subscriber.on_error(_FirstError())
    source.send_late(101, 102)
    source.fail_late()
    source.subscriber.on_complete()


def _second_complete(source: Misbehaving) -> None:
    source.send(1, 2)
    source.subscriber.on_complete()
    source.subscriber.on_complete()


def _error_after_complete(source: Misbehaving) -> None:
    source.send(1, 2)
    source.subscriber.on_complete()
    source.fail_late()


def _second_error(source: Misbehaving) -> None:
    source.send(1, 2)
    source.subscriber.on_error(_FirstError())
    source.fail_late()


def _second_subscription(source: Misbehaving) -> None:
    second = _RogueLink()
    source.subscriber.on_subscribe(second)
    source.send(1)
    source.subscriber.on_subscribe(second)
    if not second.cancelled.is_set():
        raise AssertionError("the second subscription was not cancelled (§2.5)")
    if second.requested:
        raise AssertionError("the second subscription was requested from (§2.5)")
    source.send(2)
    source.subscriber.on_complete()


def _none_item(source: Misbehaving) -> None:
    source.send(1)
    try:
        source.subscriber.on_next(None)
    except TypeError:
        source.subscriber.on_complete()  # refused at once (§2.13); the flow may continue
        return
    if source.downstream.error is None and not source.downstream.terminated:
        source.subscriber.on_complete()
    if source.downstream.completed and None in source.downstream.items:
        raise AssertionError("None went through as an item (§2.13)")


def _none_error(source: Misbehaving) -> None:
    source.send(1)
    try:
        # This breaks the types, on purpose.
        source.subscriber.on_error(cast("BaseException", None))
    except TypeError:
        source.subscriber.on_complete()


def _overflow(source: Misbehaving) -> None:
    source.send(*range(1, 1001))
    source.subscriber.on_complete()


def _unannounced_item(source: Misbehaving) -> None:
    _quietly(lambda: source.send(1))
    _quietly(lambda: source.subscriber.on_subscribe(source.link))


def _unannounced_complete(source: Misbehaving) -> None:
    _quietly(source.subscriber.on_complete)


def _unannounced_error(source: Misbehaving) -> None:
    _quietly(lambda: source.subscriber.on_error(_FirstError()))


def _quietly(signal: Callable[[], object]) -> None:
    """Ignore errors: an operator may raise one to a source that has not called ``on_subscribe``."""
    try:
        signal()
    except Exception:
        pass


def _after_cancel(source: Misbehaving) -> None:
    source.send(1)
    source.downstream.cancel()
    source.send_late(101, 102)
    source.fail_late()
    source.subscriber.on_complete()


def _complete_after_cancel(source: Misbehaving) -> None:
    source.downstream.cancel()
    source.subscriber.on_complete()
    source.send_late(101)


def _two_threads(source: Misbehaving) -> None:
    """Hold one thread within the downstream, if it gets there, while the other thread signals."""
    entered, go_on = source.hold()
    first = Thread(target=lambda: source.send(1, 2, 3), daemon=True)
    first.start()
    while not entered.wait(0.001) and first.is_alive():
        pass
    second = Thread(target=lambda: source.send(11, 12, 13), daemon=True)
    second.start()
    second.join(0.2)  # It should not wait for the first one; that is not checked here.
    go_on.set()
    for thread in (first, second):
        thread.join(TIMEOUT_S)
        if thread.is_alive():
            raise AssertionError("a thread that has sent an item does not return")
    source.subscriber.on_complete()


OVERFLOW: Final = BadSource("overflow", "§1.1", _overflow, request=1)

BAD_SOURCES: Final[tuple[BadSource, ...]] = (
    BadSource("items after on_complete", "§1.7", _after_complete),
    BadSource("items after on_error", "§1.7", _after_error),
    BadSource("a second on_complete", "§1.7", _second_complete),
    BadSource("an error after on_complete", "§1.7", _error_after_complete),
    BadSource("a second on_error", "§1.7", _second_error),
    BadSource("a second on_subscribe", "§2.12", _second_subscription),
    BadSource("None as an item", "§2.13", _none_item),
    BadSource("None as an error", "§2.13", _none_error),
    OVERFLOW,
    BadSource("an item before on_subscribe", "§1.9", _unannounced_item, False, False),
    BadSource("on_complete before on_subscribe", "§1.9", _unannounced_complete, False, False),
    BadSource("on_error before on_subscribe", "§1.9", _unannounced_error, False, False),
    BadSource("signals after cancel", "§1.8", _after_cancel, ends=False),
    BadSource("on_complete after cancel, and an item", "§1.8", _complete_after_cancel, ends=False),
    BadSource("two threads at once", "§1.3", _two_threads),
)
"""The ways to break the rules, each of them alone."""


def check_bad_source(
    apply: Callable[[Flow[int]], Flow[Any]],  # Any: the operator's items
    *,
    bounded: bool = False,
    settle: Callable[[], object] = lambda: None,
    timeout_s: float = TIMEOUT_S,
    only: Callable[[str], object] = lambda _: True,
) -> None:
    """Check that an operator keeps the rules towards its subscriber, whatever its source does.

    The operator is put behind each of `BAD_SOURCES`. Its downstream must get a legal sequence of
    signals: at most one terminal, and exactly one if the source sends one that counts. Signals that
    come too late must reach the hooks for dropped items and errors: nothing is lost silently.

    >>> check_bad_source(lambda source: source.map(str), only=lambda name: "after" in name)

    Args:
        apply: puts the operator behind a flow.
        bounded: whether the operator has a queue. If it has, a source that sends more than was
            requested must end in `MissingBackpressureError`. An operator without a queue may pass
            such items on: that is the fault of its source.
        settle: a function that returns when other threads have finished their tasks.
        timeout_s: seconds to wait for the terminal.
        only: the name of a single bad source to try, to narrow a failure down.

    Raises:
        AssertionError: if the operator breaks a rule or loses something; a note on the error names
            the bad source.
    """
    for bad in BAD_SOURCES:
        if only(bad.name):
            try:
                source = Misbehaving(bad.announces, bad.request)
                with recorded_drops() as drops:
                    _run(apply, source, bad, settle)
                    if bad.ends and source.subscribed:
                        source.downstream.await_terminal(timeout_s)
                _check(source, bad, bounded, drops)
            except BaseException as failure:
                failure.add_note(f"the bad source: {bad.name} ({bad.rule})")
                raise


def _run(
    apply: Callable[[Flow[int]], Flow[Any]],
    source: Misbehaving,
    bad: BadSource,
    settle: Callable[[], object],
) -> None:
    apply(Flow(source)).subscribe(source.downstream)
    if not source.subscribed:
        return  # like take(0), which needs no source
    settle()
    bad.act(source)
    settle()
    if bad is OVERFLOW:
        source.downstream.request(UNBOUNDED)
        settle()


def _check(source: Misbehaving, bad: BadSource, bounded: bool, drops: Drops) -> None:
    downstream = source.downstream
    if bad is OVERFLOW and not bounded:
        downstream.violations[:] = [r for r in downstream.violations if not r.startswith("§1.1:")]
    downstream.assert_rules_kept()
    if len([signal for signal in downstream.signals if _ends(signal.name)]) > 1:
        raise AssertionError(f"more than one terminal: {downstream!r}")
    if bad is OVERFLOW and bounded and source.subscribed:
        _assert_overflow_fails(source, drops)
    _assert_dropped("items", source.lost, drops.items)
    _assert_dropped("errors", source.lost_errors, drops.errors)


def _ends(name: str) -> bool:
    return name in {"on_error", "on_complete"}


def _assert_overflow_fails(source: Misbehaving, drops: Drops) -> None:
    downstream = source.downstream
    if not isinstance(downstream.error, MissingBackpressureError):
        raise AssertionError(
            f"{len(source.sent)} items were sent, {source.link.requested} were requested: expected "
            f"MissingBackpressureError, got {downstream!r}"
        ) from downstream.error
    if not source.link.cancelled.is_set():
        raise AssertionError("the source that overflows was not cancelled")
    passes_on = all(any(item is sent for sent in source.sent) for item in downstream.items)
    if passes_on and len(downstream.items) + len(drops.items) != len(source.sent):
        raise AssertionError(
            f"{len(source.sent)} items were sent, {len(downstream.items)} came through, and "
            f"{len(drops.items)} were dropped: some are lost"
        )


def _assert_dropped(what: str, lost: list[Any], dropped: list[Any]) -> None:
    missing = [value for value in lost if not any(value is other for other in dropped)]
    if missing:
        raise AssertionError(
            f"expected the dropped-{what} hook to get {missing!r}; it got {dropped!r}"
        )
