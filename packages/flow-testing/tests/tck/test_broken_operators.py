"""Each rule of operators and processors is caught by its test, when it is broken."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

import flow_core as flow
from flow_core import UNBOUNDED, Flow
from flow_core.errors import is_fatal, none_given
from flow_core.homes import Home
from flow_core.protocols import CoreSubscriber, Processor, Subscription
from flow_core.sources import fail
from flow_testing.tck import (
    OperatorVerification,
    ProcessorVerification,
    PublisherVerification,
    SubscriberVerification,
)

pytestmark = pytest.mark.tck


# -- an operator


class Identity(CoreSubscriber[int]):
    """Passes everything on, and keeps the rules, except for the one to break."""

    def __init__(self, downstream: CoreSubscriber[int], breaks: str) -> None:
        self.downstream = downstream
        self.breaks = breaks
        self.upstream: Subscription | None = None

    def home(self) -> Home | None:
        return None if self.breaks == "leaves home" else self.downstream.home()

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if self.upstream is not None and self.breaks != "takes a second upstream":
            subscription.cancel()
            return
        self.upstream = subscription
        self.downstream.on_subscribe(self)

    def request(self, n: int, /) -> None:
        assert self.upstream is not None
        self.upstream.request(2 * n if self.breaks == "asks for too much" else n)

    def cancel(self) -> None:
        assert self.upstream is not None
        if self.breaks != "does not pass cancel on":
            self.upstream.cancel()

    def on_next(self, item: int, /) -> None:
        if item is None:
            if self.breaks == "takes None":
                return
            raise none_given("on_next")
        self.downstream.on_next(item)

    def on_error(self, error: BaseException, /) -> None:
        if self.breaks == "cancels in the end":
            self.cancel()
        self.downstream.on_error(error)

    def on_complete(self) -> None:
        if self.breaks == "requests in the end":
            self.request(1)
        self.downstream.on_complete()


class IdentitySource:
    def __init__(self, upstream: Flow[int], breaks: str) -> None:
        self.upstream = upstream
        self.breaks = breaks

    def subscribe(self, subscriber: Any, /) -> None:
        if self.breaks == "makes fatal errors ordinary":
            try:
                self.upstream.subscribe(Identity(subscriber, self.breaks))
            except BaseException as error:
                assert is_fatal(error)
                subscriber.on_error(error)
            return
        self.upstream.subscribe(Identity(subscriber, self.breaks))


class TriedOperator(OperatorVerification[int]):
    timeout_s = 0.1
    quiet_s = 0

    def __init__(self, breaks: str = "") -> None:
        self.breaks = breaks

    def apply(self, upstream: Flow[int]) -> Flow[int]:
        return Flow(IdentitySource(upstream, self.breaks))


def own_rules(verification: type, *inherited: type) -> list[str]:
    return [
        name
        for name in dir(verification)
        if name.startswith("test_")
        and all(getattr(verification, name) is not getattr(base, name, None) for base in inherited)
    ]


OPERATOR_RULES = own_rules(OperatorVerification, PublisherVerification)

BROKEN_OPERATORS = [
    ("spec203_a_terminal_calls_nothing_of_the_upstream", "cancels in the end"),
    ("spec203_a_terminal_calls_nothing_of_the_upstream", "requests in the end"),
    ("spec205_a_second_upstream_is_cancelled", "takes a second upstream"),
    ("spec206_a_cancel_reaches_the_upstream", "does not pass cancel on"),
    ("spec213_none_of_the_upstream_is_no_item", "takes None"),
    ("a_generator_is_closed_on_cancel", "does not pass cancel on"),
    ("fatal_errors_of_the_upstream_propagate", "makes fatal errors ordinary"),
    ("spec309_what_is_requested_of_the_upstream_is_a_demand", "asks for too much"),
    ("the_upstream_is_at_home_where_the_subscriber_is", "leaves home"),
]


@pytest.mark.parametrize("name", OPERATOR_RULES)
def test_an_operator_that_keeps_all_rules_passes(name: str) -> None:
    getattr(TriedOperator(), name)()


@pytest.mark.parametrize(("name", "breaks"), BROKEN_OPERATORS)
def test_a_broken_rule_of_operators_is_caught(name: str, breaks: str) -> None:
    with pytest.raises(AssertionError):
        getattr(TriedOperator(breaks), f"test_{name}")()


def test_every_rule_of_operators_is_broken_here() -> None:
    assert set(OPERATOR_RULES) == {f"test_{name}" for name, _ in BROKEN_OPERATORS}


# -- a processor


class Line:
    def __init__(self, relay: Relay, downstream: Any) -> None:
        self.relay = relay
        self.downstream = downstream
        self.demand = 0
        self.items: deque[Any] = deque()

    def request(self, n: int, /) -> None:
        self.demand = min(self.demand + n, UNBOUNDED)
        self.relay.drain()

    def cancel(self) -> None:
        self.relay.leave(self)


class Relay(CoreSubscriber[Any], Processor[Any, Any]):
    """One upstream and several subscribers, each at its own pace; for one thread."""

    def __init__(self, breaks: str = "") -> None:
        self.breaks = breaks
        self.lines: list[Line] = []
        self.upstream: Subscription | None = None
        self.error: BaseException | None = None
        self.done = False

    # as a publisher

    def subscribe(self, subscriber: Any, /) -> None:
        if self.done:
            if self.breaks == "leaves late subscribers alone":
                subscriber.on_subscribe(Line(self, subscriber))
            elif self.error is not None:
                fail(subscriber, self.error)
            else:
                flow.empty().subscribe(subscriber)
            return
        line = Line(self, subscriber)
        subscriber.on_subscribe(line)
        self.lines.append(line)
        self.drain()

    def leave(self, line: Line) -> None:
        if line in self.lines:
            self.lines.remove(line)
        if self.breaks == "leaves with the first" and self.upstream is not None:
            self.upstream.cancel()

    def drain(self) -> None:
        for line in self.lines.copy():
            while line.items and line.demand:
                line.demand -= 1
                line.downstream.on_next(line.items.popleft())

    # as a subscriber

    def on_subscribe(self, subscription: Subscription, /) -> None:
        if self.upstream is not None:
            if self.breaks != "takes a second upstream":
                subscription.cancel()
            return
        self.upstream = subscription
        subscription.request(1)

    def on_next(self, item: Any, /) -> None:
        if self.done and self.breaks != "passes on what comes after the end":
            return
        lines = self.lines[:1] if self.breaks == "serves the first only" else self.lines
        for line in lines:
            line.items.append([item] if self.breaks == "changes items" else item)
        if not (self.breaks == "waits for all" and any(not line.demand for line in self.lines)):
            self.drain()
        if self.upstream is not None and self.breaks != "requests once":
            self.upstream.request(1)

    def on_error(self, error: BaseException, /) -> None:
        if self.breaks == "wraps errors":
            error = RuntimeError(error)
        if self.end(error):
            lines = self.lines[:1] if self.breaks == "serves the first only" else self.lines
            for line in lines.copy():
                if self.breaks != "waits for demand with the error" or line.demand:
                    line.downstream.on_error(error)

    def on_complete(self) -> None:
        if self.end(None):
            for line in self.lines.copy():
                line.downstream.on_complete()

    def end(self, error: BaseException | None) -> bool:
        if self.done and self.breaks != "passes on what comes after the end":
            return False
        self.done, self.error = True, error
        return True


class TriedProcessor(ProcessorVerification[Any]):
    timeout_s = 0.1
    quiet_s = 0

    def __init__(self, breaks: str = "") -> None:
        self.breaks = breaks

    def create_processor(self) -> Relay:
        return Relay(self.breaks)


PROCESSOR_RULES = own_rules(ProcessorVerification, PublisherVerification, SubscriberVerification)

BROKEN_PROCESSORS = [
    ("spec401_passes_items_on_as_they_are", "changes items"),
    ("spec401_two_subscribers_get_the_same_items", "serves the first only"),
    ("spec402_passes_the_error_on", "wraps errors"),
    ("spec402_passes_the_error_on_without_demand", "waits for demand with the error"),
    ("spec104_passes_the_error_on_to_all_subscribers", "serves the first only"),
    ("a_late_subscriber_hears_of_the_end", "leaves late subscribers alone"),
    ("spec107_signals_after_the_end_are_not_passed_on", "passes on what comes after the end"),
    ("spec201_requests_for_demand_of_long_ago", "requests once"),
    ("spec206_the_upstream_is_cancelled_when_the_last_subscriber_leaves", "leaves with the first"),
    ("spec111_lock_step_is_what_coordinated_says", "waits for all"),
    ("spec205_a_second_upstream_is_cancelled", "takes a second upstream"),
]


@pytest.mark.parametrize("name", PROCESSOR_RULES)
def test_a_processor_that_keeps_all_rules_passes(name: str) -> None:
    getattr(TriedProcessor(), name)()


@pytest.mark.parametrize(("name", "breaks"), BROKEN_PROCESSORS)
def test_a_broken_rule_of_processors_is_caught(name: str, breaks: str) -> None:
    with pytest.raises(AssertionError):
        getattr(TriedProcessor(breaks), f"test_{name}")()


def test_every_rule_of_processors_is_broken_here() -> None:
    assert set(PROCESSOR_RULES) == {f"test_{name}" for name, _ in BROKEN_PROCESSORS}
