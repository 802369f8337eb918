"""Each rule of publishers is caught by the test that is named after it, when it is broken."""

from __future__ import annotations

from threading import RLock
from typing import Any

import pytest

from flow_core import UNBOUNDED
from flow_core.demand import add_demand, bad_request
from flow_core.errors import ProtocolViolationError, is_fatal
from flow_core.protocols import EMPTY, ConditionalSubscriber, Fusion, QueueSubscription
from flow_testing import TestPublisher, Violation
from flow_testing.tck import PublisherVerification

pytestmark = pytest.mark.tck


class Breakable:
    """Sends 0, 1, 2, …, and grants every fusion.

    Args:
        count: how many.
        breaks: which rule to break; none by default.
        error: what it fails with instead, at once.
    """

    def __init__(self, count: int, breaks: str = "", error: BaseException | None = None) -> None:
        self.count = count
        self.breaks = breaks
        self.error = error
        self.kept: list[Any] = []
        self.links: list[Link] = []

    def subscribe(self, subscriber: Any, /) -> None:
        if subscriber is None:
            if self.breaks == "takes None for a subscriber":
                return
            raise TypeError("None is not a subscriber")
        if self.breaks == "keeps its subscribers":
            self.kept.append(subscriber)
        if self.breaks == "fails before on_subscribe" and self.error is not None:
            subscriber.on_error(self.error)
            return
        link = Link(self, subscriber)
        if self.breaks == "serves one subscriber only" and self.links:
            link.next = self.count
        self.links.append(link)
        link.start()


class Link(QueueSubscription[int]):
    def __init__(self, publisher: Breakable, subscriber: Any) -> None:
        self.publisher = publisher
        self.breaks = publisher.breaks
        self.subscriber: Any = subscriber
        self.demand = 0
        self.next = 0
        self.emitting = True
        self.cancelled = self.ended = self.requested = False
        self.wanted = 0
        self.cancels = 0
        self.bad: ValueError | None = None
        self.fused = Fusion.NONE
        self.lock = RLock()

    def start(self) -> None:
        if self.breaks == "signals within on_subscribe":
            self.emitting = False
        self.subscriber.on_subscribe(self)
        if self.breaks == "calls on_subscribe twice" and self.subscriber is not None:
            self.subscriber.on_subscribe(Link(self.publisher, None))
        if self.breaks == "ignores requests of on_subscribe":
            self.demand = 0
        if self.breaks == "sends ahead of demand":
            self.demand += 1
        self.emitting = False
        self.emit()

    # -- from the subscriber

    def request(self, n: int, /) -> None:
        if self.breaks == "takes anything for a demand" and not isinstance(n, int):
            return
        bad = bad_request(n)
        if self.ended:
            self.request_after_the_end(bad)
            return
        if self.cancelled and self.breaks not in {"ignores cancel", "heeds requests after cancel"}:
            return
        if bad is not None:
            self.bad_request(bad)
            return
        self.requested = True
        if self.breaks == "takes an unbounded demand for a mistake" and n == UNBOUNDED:
            self.bad = ValueError("too much")
        elif self.breaks == "overflows" and self.demand + n + self.next > UNBOUNDED:
            self.bad = ValueError("too much in sum")
        elif self.breaks == "forgets earlier demand":
            self.demand = n
        elif self.breaks == "ignores requests of on_next" and self.emitting:
            return
        elif self.breaks == "sends twice what is requested":
            self.demand += 2 * n
        elif self.breaks == "shares the demand":
            for link in self.publisher.links:
                link.demand = add_demand(link.demand, n)
                if link is not self:
                    link.emit()
        else:
            self.demand = add_demand(self.demand, n)
        if self.breaks == "holds a lock while it calls":
            with self.lock:
                pass
        self.emit()

    def request_after_the_end(self, bad: ValueError | None) -> None:
        if self.subscriber is None:
            return
        if self.breaks == "sends an item after the end" and bad is None:
            self.subscriber.on_next(self.next)
        elif self.breaks == "ends twice" and bad is None:
            self.subscriber.on_complete()
        elif self.breaks == "fails after the end" and bad is not None:
            self.subscriber.on_error(bad)

    def bad_request(self, bad: ValueError) -> None:
        match self.breaks:
            case "raises for a bad request":
                raise bad
            case "ignores a bad request":
                return
            case "answers a bad request at once":
                self.ended = True
                self.subscriber.on_error(bad)
            case "does not name the rule":
                self.bad = ValueError("no")
                self.emit()
            case "goes on after a bad request":
                self.subscriber.on_error(bad)
            case _:
                self.bad = bad
                self.emit()

    def cancel(self) -> None:
        self.cancels += 1
        if self.breaks == "holds a lock while it calls":
            with self.lock:
                pass
        if self.breaks == "completes when it is cancelled again" and self.cancels == 2:
            self.publisher.kept[0].on_complete()
        if self.breaks == "ignores cancel":
            return
        if self.breaks == "cancels all subscribers":
            for link in self.publisher.links:
                link.cancelled = True
                link.subscriber = None
        self.cancelled = True
        if self.breaks == "completes when it is cancelled again":
            self.publisher.kept.append(self.subscriber)
        if self.breaks not in {"heeds requests after cancel", "keeps its subscribers"}:
            self.subscriber = None

    # -- to the subscriber

    def emit(self) -> None:
        if self.fused is Fusion.SYNC:
            return
        if self.emitting and self.breaks not in {"emits anywhere", "recurses"}:
            return
        self.emitting = True
        try:
            self.send()
        finally:
            self.emitting = False

    def send(self) -> None:
        publisher = self.publisher
        if publisher.error is not None:
            self.fail(publisher.error)
            return
        while not self.ended:
            subscriber = self.subscriber
            if subscriber is None:
                return
            if self.bad is not None:
                self.end()
                subscriber.on_error(self.bad)
                return
            if self.next >= publisher.count:
                if self.breaks != "never completes":
                    self.end()
                    subscriber.on_complete()
                return
            if not self.demand:
                return
            item: Any = self.next
            self.next += 1
            self.demand -= self.demand != UNBOUNDED
            self.give(subscriber, item)
            if self.cancelled and self.breaks == "heeds requests after cancel":
                return

    def give(self, subscriber: Any, item: Any) -> None:
        match self.breaks:
            case "sends None":
                item = None
            case "loses an item" if item == 1:
                return
            case "sends other items to others" if self is not self.publisher.links[0]:
                item = -item
        if self.breaks == "holds a lock while it calls":
            with self.lock:
                subscriber.on_next(item)
            return
        if self.fused is Fusion.ASYNC:
            self.next -= 1
            self.wanted = self.next + self.demand + 1
            self.demand = self.demand if self.demand == UNBOUNDED else 0
            subscriber.on_next(EMPTY)
            return
        try:
            if not isinstance(subscriber, ConditionalSubscriber):
                subscriber.on_next(item)
            elif not subscriber.try_on_next(item) and self.breaks != "counts refused items":
                self.demand = add_demand(self.demand, 1)
        except BaseException as error:
            self.raised(subscriber, error)

    def raised(self, subscriber: Any, error: BaseException) -> None:
        self.end()
        if self.breaks == "tells a subscriber what it has raised":
            subscriber.on_error(error)
        elif self.breaks == "recurses" or (
            is_fatal(error) and self.breaks != "swallows fatal errors"
        ):
            raise error

    def fail(self, error: BaseException) -> None:
        subscriber = self.subscriber
        if self.ended or subscriber is None:
            return
        self.end()
        match self.breaks:
            case "completes instead of failing":
                subscriber.on_complete()
            case "wraps errors":
                subscriber.on_error(RuntimeError(str(error)))
            case _:
                subscriber.on_error(error)

    def end(self) -> None:
        self.ended = True

    # -- fusion

    def request_fusion(self, mode: Fusion, /) -> Fusion:
        if self.fused and self.breaks != "negotiates twice":
            raise ProtocolViolationError("request_fusion comes once")
        if self.requested and self.breaks != "negotiates late":
            raise ProtocolViolationError("request_fusion comes before requests")
        if self.publisher.error is not None and self.breaks != "polls a wrapped error":
            return Fusion.NONE
        if self.breaks == "grants what nobody asked":
            return Fusion.SYNC
        if self.breaks == "grants two modes":
            return mode & Fusion.ANY
        self.fused = Fusion.SYNC if mode & Fusion.SYNC else mode & Fusion.ASYNC
        return self.fused

    def poll(self) -> Any:
        if self.publisher.error is not None:
            raise RuntimeError("wrapped")
        if self.cancelled and self.breaks != "cancel leaves the queue":
            return EMPTY
        if self.next >= self.publisher.count or (
            self.fused is Fusion.ASYNC and self.next >= self.wanted
        ):
            return 0 if self.breaks == "polls for ever" else EMPTY
        self.next += 1
        return self.next - (1 if self.breaks != "polls other items" else 2)

    def is_empty(self) -> bool:
        return self.next >= self.publisher.count

    def clear(self) -> None:
        if self.breaks != "clears nothing":
            self.next = self.publisher.count


class Tried(PublisherVerification[int]):
    timeout_s = 0.1
    quiet_s = 0
    refcounted = True
    chain = 1_000
    conditional = True
    fusable = Fusion.ANY | Fusion.THREAD_BOUNDARY
    failure = LookupError("failed")

    def __init__(self, breaks: str = "") -> None:
        self.breaks = breaks

    def create_publisher(self, count: int) -> Any:
        return Breakable(count, self.breaks)

    def create_failed_publisher(self) -> Any:
        return Breakable(0, self.breaks, self.failure)


RULES = [name for name in dir(PublisherVerification) if name.startswith("test_")]

BROKEN = [
    ("spec101_sends_nothing_without_demand", "sends ahead of demand"),
    ("spec101_never_sends_more_than_requested", "sends twice what is requested"),
    ("spec101_sends_no_more_than_requested_from_within_on_next", "sends twice what is requested"),
    ("spec102_may_send_fewer_items_than_requested_and_then_terminates", "never completes"),
    ("spec103_signals_never_overlap", "emits anywhere"),
    ("spec103_signals_never_overlap", "holds a lock while it calls"),
    ("spec103_requests_of_two_threads_race", "loses an item"),
    ("spec104_signals_failure_by_on_error", "completes instead of failing"),
    ("spec104_every_subscriber_gets_the_identical_error", "wraps errors"),
    ("spec105_completes_after_the_last_item", "never completes"),
    ("spec105_completes_after_a_single_item", "never completes"),
    ("spec105_completes_without_items", "never completes"),
    ("spec106_a_terminated_subscription_is_cancelled", "sends an item after the end"),
    ("spec106_a_failed_subscription_is_cancelled", "ends twice"),
    ("spec107_nothing_follows_on_complete", "ends twice"),
    ("spec107_a_bad_request_after_on_complete_is_no_second_terminal", "fails after the end"),
    ("spec107_nothing_follows_on_error", "fails after the end"),
    ("spec108_a_cancel_within_on_next_stops_the_signals", "ignores cancel"),
    ("spec108_a_cancel_with_the_last_item_stops_the_end_too", "ignores cancel"),
    ("spec108_a_cancel_within_on_subscribe_stops_all_signals", "ignores cancel"),
    ("spec108_a_cancel_within_on_subscribe_stops_the_error_too", "ignores cancel"),
    ("spec109_on_subscribe_comes_first_and_once", "calls on_subscribe twice"),
    ("spec109_on_subscribe_comes_first_and_once", "signals within on_subscribe"),
    ("spec109_on_subscribe_comes_before_on_error", "fails before on_subscribe"),
    ("spec109_subscribe_none_raises", "takes None for a subscriber"),
    ("spec109_subscribe_none_raises_if_it_fails", "takes None for a subscriber"),
    ("spec110_a_publisher_can_be_subscribed_again", "serves one subscriber only"),
    ("spec111_subscribers_have_demand_of_their_own", "shares the demand"),
    ("spec111_subscribers_get_the_same_items", "sends other items to others"),
    ("spec111_a_cancel_concerns_no_other_subscriber", "cancels all subscribers"),
    ("spec213_no_item_is_none", "sends None"),
    (
        "spec213_a_subscriber_that_raises_counts_as_cancelled",
        "tells a subscriber what it has raised",
    ),
    ("fatal_errors_of_a_subscriber_propagate", "swallows fatal errors"),
    ("spec302_request_may_be_called_in_on_subscribe", "ignores requests of on_subscribe"),
    ("spec302_request_may_be_called_in_on_next", "ignores requests of on_next"),
    ("spec303_requests_within_on_next_take_constant_stack", "recurses"),
    ("spec304_request_does_not_wait_for_on_next", "holds a lock while it calls"),
    ("spec305_cancel_does_not_wait_for_on_next", "holds a lock while it calls"),
    ("spec306_requests_after_cancel_do_nothing", "heeds requests after cancel"),
    ("spec307_cancels_after_cancel_do_nothing", "completes when it is cancelled again"),
    ("spec308_demand_adds_up", "forgets earlier demand"),
    ("spec309_request_0_fails_the_flow", "ignores a bad request"),
    ("spec309_request_0_fails_the_flow", "does not name the rule"),
    ("spec309_a_negative_request_fails_the_flow", "ignores a bad request"),
    ("spec309_a_bad_request_in_mid_flow_is_the_end", "goes on after a bad request"),
    ("spec309_a_bad_request_within_on_next_is_answered_after_it", "answers a bad request at once"),
    (
        "spec309_a_bad_request_within_on_subscribe_is_answered_after_it",
        "answers a bad request at once",
    ),
    ("spec309_a_request_of_no_int_raises", "takes anything for a demand"),
    ("spec312_a_cancel_from_another_thread_stops_the_signals", "ignores cancel"),
    ("spec312_cancels_and_requests_race", "ignores cancel"),
    ("spec313_cancel_lets_go_of_the_subscriber", "keeps its subscribers"),
    ("spec313_cancel_without_demand_lets_go_of_the_subscriber", "keeps its subscribers"),
    ("spec317_demand_may_be_unbounded", "takes an unbounded demand for a mistake"),
    ("spec317_demand_is_capped", "overflows"),
    ("spec317_demand_is_capped_within_on_next", "overflows"),
    ("f12_an_item_that_was_refused_costs_no_demand", "counts refused items"),
    ("f23_fusion_is_granted_within_what_was_asked", "grants what nobody asked"),
    ("f23_fusion_is_granted_within_what_was_asked", "grants two modes"),
    ("f24_fusion_is_negotiated_once", "negotiates twice"),
    ("f24_fusion_is_negotiated_before_requests", "negotiates late"),
    ("f25_sync_fusion_polls_what_would_be_pushed", "polls other items"),
    ("f25_sync_fusion_polls_what_would_be_pushed", "polls for ever"),
    ("f25_sync_fusion_is_emptied_by_clear", "clears nothing"),
    ("f25_sync_fusion_is_emptied_by_cancel", "cancel leaves the queue"),
    ("f25_sync_fusion_raises_the_error", "polls a wrapped error"),
    ("f26_async_fusion_polls_what_would_be_pushed", "polls other items"),
]


@pytest.mark.parametrize("name", RULES)
def test_a_publisher_that_keeps_all_rules_passes(name: str) -> None:
    getattr(Tried(), name)()


@pytest.mark.parametrize(("name", "breaks"), BROKEN, ids=[f"{n}-{b}" for n, b in BROKEN])
def test_a_broken_rule_is_caught_by_the_test_that_is_named_after_it(name: str, breaks: str) -> None:
    with pytest.raises(AssertionError):
        getattr(Tried(breaks), f"test_{name}")()


def test_every_rule_is_broken_here() -> None:
    assert [name for name in RULES if name not in {f"test_{rule}" for rule, _ in BROKEN}] == []


# -- the testing kit's own publisher, as a stranger to the library


class Violating(PublisherVerification[int]):
    timeout_s = 0.1
    quiet_s = 0

    def __init__(self, violations: Violation) -> None:
        self.violations = violations

    def create_publisher(self, count: int) -> Any:
        sent = iter(range(count))

        def answer(publisher: TestPublisher[int], n: int) -> None:
            many = n + 1 if Violation.OVERFLOW in self.violations else n
            for _ in range(min(many, count + 1)):
                item = next(sent, None)
                if item is None and Violation.NONE_ITEM not in self.violations:
                    publisher.complete()
                    return
                publisher.next(item)  # type: ignore[arg-type] - None, on purpose

        return TestPublisher[int](self.violations, on_request=answer)


@pytest.mark.parametrize(
    ("name", "violation"),
    [
        ("spec101_never_sends_more_than_requested", Violation.OVERFLOW),
        ("spec107_nothing_follows_on_complete", Violation.AFTER_TERMINAL),
        ("spec108_a_cancel_within_on_next_stops_the_signals", Violation.IGNORED_CANCEL),
        ("spec213_no_item_is_none", Violation.NONE_ITEM),
    ],
)
def test_a_violation_of_a_test_publisher_is_caught(name: str, violation: Violation) -> None:
    with pytest.raises(AssertionError):
        getattr(Violating(violation), f"test_{name}")()
