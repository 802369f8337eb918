"""The rules for operators: those of publishers, and their duties towards their upstream."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Generic, TypeVar, final

from typing_extensions import override

from flow_core import sources
from flow_core.demand import UNBOUNDED
from flow_core.flow import Flow
from flow_core.homes import Home
from flow_core.protocols import CoreSubscriber, Publisher, Subscriber
from flow_testing.drops import recorded_drops
from flow_testing.publisher import TestPublisher, Violation
from flow_testing.subscriber import TestSubscriber
from flow_testing.tck.publisher import PublisherVerification
from flow_testing.tck.rules import check, rule

__all__ = ["OperatorVerification"]

R = TypeVar("R")


class OperatorVerification(PublisherVerification[R], Generic[R]):
    """The duties of every operator. To test an operator, subclass it, and override `apply`.

    >>> class TestPlusOne(OperatorVerification[int]):
    ...     def apply(self, flow: Flow[int]) -> Flow[int]:
    ...         return flow.map(lambda n: n + 1)
    >>> TestPlusOne().test_spec103_signals_never_overlap()

    Attributes:
        passes_errors: whether the operator fails with the same error object as its upstream.
        goes_on: whether the operator continues without subscribers, so that no cancel reaches its
            upstream.
    """

    passes_errors: bool = True
    goes_on: bool = False
    failure: BaseException | None = LookupError("the upstream's error")

    @abstractmethod
    def apply(self, flow: Flow[int]) -> Flow[R]:
        """Return the flow of the operator behind a flow of ints."""
        raise NotImplementedError(f"{type(self).__name__} must have apply(flow)")

    def upstream(self, count: int) -> Flow[int]:
        """Return a flow of ints from which the operator makes `count` items.

        By default, it is a flow of `count` ints.
        """
        return sources.range(count)

    @override
    def create_publisher(self, count: int) -> Publisher[R]:
        return self.apply(self.upstream(count))

    @override
    def create_failed_publisher(self) -> Publisher[R] | None:
        error = self.failure
        if error is None or not self.passes_errors:
            return None
        return self.apply(sources.error(error))

    @rule(items=-1)
    def test_spec205_a_second_upstream_is_cancelled(self) -> None:
        """§2.5: a second ``on_subscribe`` cancels its subscription, and sends nothing."""
        upstream = TestPublisher[int]()
        subscriber = self._start(self.apply(Flow(upstream)), 1)
        if not upstream.subscribed:
            return  # like take(0), it has not subscribed to its upstream
        second = upstream.subscribe_again()
        self.eventually(
            lambda: second.cancelled, lambda: "the second subscription was not cancelled"
        )
        subscriber.assert_rules_kept()
        subscriber.cancel()

    @rule(items=1)
    def test_spec213_none_of_the_upstream_is_no_item(self) -> None:
        """§2.13: an upstream that sends None gets a TypeError, or the flow fails with one."""
        upstream = TestPublisher[Any](Violation.NONE_ITEM | Violation.OVERFLOW)
        with recorded_drops():
            subscriber = self._start(self.apply(Flow(upstream)), UNBOUNDED)
            if not upstream.subscribed or upstream.cancelled:
                return
            try:
                upstream.next(None)
            except TypeError:
                pass  # refused at once
            else:
                self.eventually(
                    lambda: isinstance(subscriber.error, TypeError),
                    lambda: f"None got through; seen: {subscriber!r}",
                )
        subscriber.assert_rules_kept()

    @rule(items=-1)
    def test_spec203_a_terminal_calls_nothing_of_the_upstream(self) -> None:
        """§2.3: when its upstream has ended, an operator neither requests nor cancels it."""
        for end in ("complete", "error"):
            upstream = TestPublisher[int]()
            with recorded_drops():
                self._start(self.apply(Flow(upstream)), UNBOUNDED)
                self.settle()
                if not upstream.subscribed or upstream.cancelled:
                    return
                requests, cancels = upstream.requests.copy(), upstream.cancels
                if end == "complete":
                    upstream.complete()
                else:
                    upstream.error(LookupError("the end"))
                self.settle()
            check(upstream.requests == requests, f"on_{end} requested {upstream.requests}")
            check(upstream.cancels == cancels, f"on_{end} cancelled")

    @rule(items=-1)
    def test_spec206_a_cancel_reaches_the_upstream(self) -> None:
        """§2.6: a subscriber that cancels makes the operator cancel its upstream."""
        upstream = TestPublisher[int]()
        subscriber = self._start(self.apply(Flow(upstream)), 1)
        self.settle()
        if not upstream.subscribed or subscriber.terminated:
            return
        subscriber.cancel()
        if self.goes_on:
            self.settle()
            upstream.assert_not_cancelled()
        else:
            self.eventually(lambda: upstream.cancelled, lambda: "the upstream was not cancelled")

    @rule(items=1)
    def test_spec309_what_is_requested_of_the_upstream_is_a_demand(self) -> None:
        """§3.9: an operator requests ints from 1 to 2**63 - 1 of its upstream."""
        sent = iter(range(1_000))

        def answer(publisher: TestPublisher[int], n: int) -> None:
            for _ in range(min(n, 10)):
                item = next(sent, None)
                if item is not None and not publisher.cancelled:
                    publisher.next(item)

        upstream = TestPublisher[int](Violation.IGNORED_CANCEL, on_request=answer)
        subscriber = self._start(self.apply(Flow(upstream)), 3)
        self.settle()
        subscriber.request(UNBOUNDED)
        self.settle()
        wrong = [n for n in upstream.requests if not 1 <= n <= UNBOUNDED]
        check(not wrong, f"it requested {wrong}")
        subscriber.cancel()

    @rule(items=1)
    def test_a_generator_is_closed_on_cancel(self) -> None:
        """A generator that feeds the flow is closed when the subscriber cancels (X09)."""
        closed: list[bool] = []
        publisher = self.apply(sources.from_iterable(_closing(closed)))
        subscriber = self._start(publisher, 1)
        self.settle()
        if subscriber.items or not subscriber.terminated:
            subscriber.cancel()
        self.eventually(lambda: closed, lambda: "the generator was not closed")
        check(closed == [True], f"the generator was closed {len(closed)} times")

    @rule(items=-1)
    def test_the_upstream_is_at_home_where_the_subscriber_is(self) -> None:
        """The loop of `CoreSubscriber.home` is passed on.

        With several subscribers, the loop of the first one is passed on.
        """
        upstream = _Visited()
        loop = asyncio.new_event_loop()
        try:
            subscriber = _AtHome[R](Home(loop))
            self.apply(Flow(upstream)).subscribe(subscriber)
            self.eventually(lambda: upstream.homes, lambda: "it did not subscribe to its upstream")
            subscriber.cancel()
            strange = [home for home in upstream.homes if home is None or home.loop is not loop]
            check(not strange, f"it told its upstream of {strange}, not of {subscriber.at}")
        finally:
            loop.close()

    @rule(failing=True, synchronous=True)
    def test_fatal_errors_of_the_upstream_propagate(self) -> None:
        """KeyboardInterrupt and its like leave `subscribe`; they are not sent (X10)."""
        for fatal in (KeyboardInterrupt(), SystemExit(1), MemoryError()):
            subscriber = TestSubscriber[R]()
            try:
                self.apply(sources.from_iterable(_raising(fatal))).subscribe(subscriber)
            except BaseException as error:  # compared below
                check(error is fatal, f"{error!r} came out instead of {fatal!r}")
            else:
                raise AssertionError(f"{fatal!r} was swallowed; seen: {subscriber!r}")
            check(not subscriber.terminated, f"a fatal error was signalled: {subscriber!r}")


@final
class _Visited(Publisher[int]):
    """Sends nothing, and records the homes of its subscribers."""

    def __init__(self) -> None:
        self.homes: list[Home | None] = []

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        home = subscriber.home() if isinstance(subscriber, CoreSubscriber) else None
        self.homes.append(home)
        sources.never().subscribe(subscriber)


class _AtHome(TestSubscriber[R]):
    """A subscriber that belongs to a loop which does not run in the subscriber's thread."""

    def __init__(self, at: Home) -> None:
        super().__init__()
        self.at = at

    def home(self) -> Home | None:
        return self.at


def _closing(closed: list[bool]) -> Iterator[int]:
    try:
        yield from range(100)
    finally:
        closed.append(True)


def _raising(error: BaseException) -> Iterator[int]:
    raise error
    yield 0  # this makes it a generator
