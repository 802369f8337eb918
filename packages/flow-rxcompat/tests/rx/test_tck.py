"""The Reactive Streams rules, tried on what the bridges give."""

from __future__ import annotations

import pytest
import reactivex
from reactivex import operators as ops
from reactivex.scheduler import NewThreadScheduler
from reactivex.subject import ReplaySubject

import flow_core as flow
from flow_core.protocols import Processor, Publisher
from flow_rxcompat.rx import from_rx, from_rx_subject, rx, to_rx
from flow_testing.tck import ProcessorVerification, PublisherVerification

pytestmark = pytest.mark.tck


class Bridge(PublisherVerification[int]):
    quiet_s = 0
    failure = LookupError("theirs")

    def create_failed_publisher(self) -> Publisher[int]:
        assert self.failure is not None
        return from_rx(reactivex.throw(self.failure))


class TestFromRx(Bridge):
    def create_publisher(self, count: int) -> Publisher[int]:
        return from_rx(reactivex.range(count))


class TestThereAndBack(Bridge):
    def create_publisher(self, count: int) -> Publisher[int]:
        return from_rx(to_rx(flow.range(count)))


class TestOperatorsOfTheirs(Bridge):
    def create_publisher(self, count: int) -> Publisher[int]:
        return flow.range(count).pipe(rx(ops.map(lambda n: n)))


class TestOnAnotherThread(Bridge):
    quiet_s = 0.01
    synchronous = False

    def create_publisher(self, count: int) -> Publisher[int]:
        return from_rx(to_rx(flow.range(count), NewThreadScheduler()))


class TestReplaySubject(ProcessorVerification[int]):
    """The kind of subject that keeps what came before its subscribers."""

    quiet_s = 0

    def create_processor(self) -> Processor[int, int]:
        return from_rx_subject(ReplaySubject[int]())
