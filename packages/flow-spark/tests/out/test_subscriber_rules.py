"""The rules of the protocol, for the subscribers of this package; nothing here needs Spark."""

from __future__ import annotations

import threading
from typing import Any, cast

import flow_core as flow
from flow_core.flow import Flow
from flow_core.protocols import Subscriber
from flow_spark import WriteSubscriber
from flow_spark.streams.stream_source import _Intake
from flow_testing import TestPublisher
from flow_testing.tck import SubscriberVerification

NO_SESSION = cast("Any", None)
TIMEOUT_S = 20.0


class TestWriteSubscriber(SubscriberVerification[int]):
    def create_subscriber(self) -> Subscriber[int]:
        return WriteSubscriber(NO_SESSION, "noop", "nowhere", schema=int)

    def create_item(self, n: int) -> int:
        return n


class TestWriteSubscriberThatRequestsOften(SubscriberVerification[int]):
    def create_subscriber(self) -> Subscriber[int]:
        return WriteSubscriber(NO_SESSION, "noop", "nowhere", schema=int, prefetch=1)

    def create_item(self, n: int) -> int:
        return n


class TestIntake:
    """The subscriber that takes the items of a flow for the spool."""

    def started(self, items: Flow[int], prefetch: int) -> tuple[_Intake, threading.Thread]:
        intake = _Intake(prefetch)
        thread = threading.Thread(target=intake.run, args=(items,))
        thread.start()
        return intake, thread

    def taken(self, intake: _Intake, most: int) -> list[list[int]]:
        found = []
        while not intake.ended():
            if items := intake.take(most, TIMEOUT_S):
                found.append(items)
        return found

    def test_items_come_in_full_portions_and_in_order(self) -> None:
        intake, thread = self.started(flow.range(25), 10)

        assert self.taken(intake, 10) == [
            list(range(10)),
            list(range(10, 20)),
            list(range(20, 25)),
        ]
        thread.join(TIMEOUT_S)
        assert not thread.is_alive()
        assert intake.told() is None

    def test_no_more_is_requested_than_is_taken(self) -> None:
        publisher = TestPublisher[int]()
        intake, thread = self.started(Flow(publisher), 4)
        for _ in range(1000):
            if publisher.requested == 4:
                break
            threading.Event().wait(0.01)

        publisher.next(1, 2)
        assert intake.take(4, 0.0) == [1, 2]
        for _ in range(1000):
            if publisher.requested == 6:
                break
            threading.Event().wait(0.01)
        intake.cancel()
        thread.join(TIMEOUT_S)

        assert publisher.requests == [4, 2]
        assert publisher.cancelled

    def test_an_error_comes_behind_the_items(self) -> None:
        intake, thread = self.started(flow.range(5).map(lambda n: 1 // (3 - n)), 10)

        assert [item for items in self.taken(intake, 10) for item in items] == [0, 0, 1]
        thread.join(TIMEOUT_S)
        assert (intake.told() or "").startswith("ZeroDivisionError")

    def test_cancelling_ends_a_waiting_thread(self) -> None:
        intake, thread = self.started(flow.never(), 10)

        intake.cancel()
        thread.join(TIMEOUT_S)

        assert not thread.is_alive()
        assert intake.take(10, TIMEOUT_S) == []
