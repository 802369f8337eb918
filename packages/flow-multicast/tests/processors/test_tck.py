"""The processor against the rules of Reactive Streams, as its compatibility kit checks them.

These are transcriptions of behaviours of the kit's verification of identity processors. It has two
expectations that a processor in lock-step does not meet by itself: that each subscriber's demand
counts by itself (a kit that knows ``doesCoordinatedEmission`` lets all of them request), and that
the upstream is cancelled with the last subscriber (``ref_count`` does).
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from flow_core import UNBOUNDED, Flow, Processor, Publisher
from flow_multicast import MulticastProcessor
from flow_testing import TIMEOUT_S, TestPublisher, TestSubscriber, race

pytestmark = pytest.mark.tck


@dataclass
class Kit:
    """The five methods that a verification of the kit is made of, and its switch."""

    ref_count: bool
    coordinated: bool
    executor: ThreadPoolExecutor

    def create_identity_processor(self, buffer_size: int) -> Processor[int, int]:
        return MulticastProcessor[int](buffer_size, ref_count=self.ref_count)

    def create_failed_publisher(self) -> Publisher[int]:
        processor = MulticastProcessor[int](128, ref_count=self.ref_count)
        processor.on_error(OSError("failed before anybody came"))
        return processor

    def create_element(self, element: int) -> int:
        return element

    def publisher_executor(self) -> ThreadPoolExecutor:
        return self.executor

    def does_coordinated_emission(self) -> bool:
        return self.coordinated


class Stage:
    """A processor between an upstream and subscribers that are driven by hand."""

    def __init__(self, kit: Kit, buffer_size: int = 16) -> None:
        self.kit = kit
        self.processor = kit.create_identity_processor(buffer_size)
        self.upstream = TestPublisher[int]()
        self.upstream.subscribe(self.processor)
        self.sent = 0

    def subscriber(self) -> TestSubscriber[int]:
        subscriber = TestSubscriber[int](0)
        self.processor.subscribe(subscriber)
        return subscriber

    def send_next(self) -> int:
        """An item from the upstream, in one of the kit's threads."""
        assert self.upstream.outstanding, "nothing was requested of the upstream"
        self.sent += 1
        element = self.kit.create_element(self.sent)
        self.kit.publisher_executor().submit(self.upstream.next, element).result(TIMEOUT_S)
        return element


@pytest.fixture(scope="module")
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as pool:
        yield pool


# -- the three that tell processors apart


def on_error_reaches_all_subscribers(kit: Kit) -> None:
    """required_spec104_mustCallOnErrorOnAllItsSubscribersIfItEncountersANonRecoverableError."""
    stage = Stage(kit)
    first, second = stage.subscriber(), stage.subscriber()
    first.request(1)
    if kit.does_coordinated_emission():
        second.request(1)
    element = stage.send_next()
    first.assert_items(element)
    first.request(1)
    error = OSError("upstream")
    stage.upstream.error(error)
    first.assert_failure(error, element)
    second.assert_failure(error, *second.items)


def old_requests_are_honoured(kit: Kit) -> None:
    """required_mustRequestFromUpstreamForElementsThatHaveBeenRequestedLongAgo."""
    stage = Stage(kit, buffer_size=1)
    first = stage.subscriber()
    first.request(20)
    x, y = stage.send_next(), stage.send_next()
    first.assert_items(x, y)
    second = stage.subscriber()
    if kit.does_coordinated_emission():
        second.request(1)
    z = stage.send_next()
    first.assert_items(x, y, z)
    if not kit.does_coordinated_emission():
        second.assert_items()
        second.request(1)
    second.assert_items(z)
    stage.upstream.complete()
    first.assert_result(x, y, z)
    second.assert_result(z)


def cancel_reaches_the_upstream(kit: Kit) -> None:
    """required_exerciseWhiteboxHappyPath."""
    stage = Stage(kit)
    subscriber = stage.subscriber()
    subscriber.request(1)
    subscriber.request(1)
    subscriber.assert_items()
    seen = [stage.send_next()]
    subscriber.assert_items(*seen)
    subscriber.request(1)
    seen.append(stage.send_next())
    subscriber.assert_items(*seen)
    subscriber.cancel()
    stage.upstream.assert_cancelled()


TELLING = [on_error_reaches_all_subscribers, old_requests_are_honoured, cancel_reaches_the_upstream]


@pytest.mark.checklist("M43", "M44", "M45", "M46")
@pytest.mark.parametrize(
    ("ref_count", "coordinated", "fails"),
    [
        pytest.param(False, False, TELLING, id="as it is, three fail"),
        pytest.param(False, True, TELLING[2:], id="coordinated, one fails"),
        pytest.param(True, True, [], id="coordinated and counted, none fails"),
    ],
)
def test_every_processor_does_what_the_kit_expects(
    executor: ThreadPoolExecutor,
    ref_count: bool,
    coordinated: bool,
    fails: list[Callable[[Kit], None]],
) -> None:
    kit = Kit(ref_count, coordinated, executor)
    failed = []
    for behaviour in TELLING:
        try:
            behaviour(kit)
        except AssertionError:
            failed.append(behaviour)
    assert failed == fails


# -- what holds for both


@pytest.fixture(params=[False, True], ids=["plain", "ref_count"])
def kit(request: pytest.FixtureRequest, executor: ThreadPoolExecutor) -> Kit:
    return Kit(request.param, coordinated=True, executor=executor)


@pytest.mark.checklist("M43")
def test_a_failed_publisher_signals_on_subscribe_and_then_the_error(kit: Kit) -> None:
    """optional_spec104_mustSignalOnErrorWhenFails."""
    subscriber = TestSubscriber[int](0)
    kit.create_failed_publisher().subscribe(subscriber)
    subscriber.assert_failure(OSError)
    assert [signal.name for signal in subscriber.signals] == ["on_subscribe", "on_error"]


@pytest.mark.checklist("M43")
def test_several_subscribers_get_the_same_elements_in_the_same_order(kit: Kit) -> None:
    """optional_spec111_multicast_mustProduceTheSameElementsInTheSameSequenceToAllOfIts…"""
    stage = Stage(kit)
    subscribers = [stage.subscriber() for _ in range(3)]
    for amount in (1, 4):
        for subscriber in subscribers:
            subscriber.request(amount)
        for _ in range(amount):
            stage.send_next()
    for subscriber in subscribers:
        subscriber.assert_items(1, 2, 3, 4, 5)
    stage.upstream.complete()
    for subscriber in subscribers:
        subscriber.assert_result(1, 2, 3, 4, 5)


@pytest.mark.checklist("M43")
def test_the_upstream_sees_bounded_requests_and_nothing_after_a_terminal(kit: Kit) -> None:
    """§2.1, §2.3, §2.8: demand is signalled before items are awaited, and none after the end."""
    stage = Stage(kit, buffer_size=4)
    stage.upstream.assert_requests(4)
    subscriber = stage.subscriber()
    subscriber.request(UNBOUNDED)
    for _ in range(20):
        stage.send_next()
    assert stage.upstream.outstanding <= 4
    before = list(stage.upstream.requests)
    stage.upstream.complete()
    subscriber.assert_result(*range(1, 21))
    stage.upstream.assert_requests(*before)
    assert not stage.upstream.cancelled


@pytest.mark.checklist("M43")
def test_a_second_on_subscribe_is_cancelled(kit: Kit) -> None:
    """§2.5, §2.12."""
    stage = Stage(kit)
    second = stage.upstream.subscribe_again()
    assert second.cancelled
    assert not stage.upstream.cancelled


@pytest.mark.checklist("M43")
def test_requests_and_cancels_after_a_cancel_are_nothing(kit: Kit) -> None:
    """§3.6, §3.7."""
    stage = Stage(kit)
    staying, leaving = stage.subscriber(), stage.subscriber()
    staying.request(2)
    leaving.cancel()
    leaving.subscription.cancel()
    leaving.subscription.request(1)
    stage.send_next()
    staying.assert_items(1)
    leaving.assert_items().assert_silent_after_cancel()


@pytest.mark.checklist("M43")
def test_a_cancelled_subscriber_is_let_go(kit: Kit) -> None:
    """required_spec313_cancelMustMakeThePublisherEventuallyDropAllReferencesToTheSubscriber."""
    stage = Stage(kit)
    staying = stage.subscriber()
    leaving = stage.subscriber()
    for subscriber in (staying, leaving):
        subscriber.request(1)
    stage.send_next()
    leaving.cancel()
    gone = weakref.ref(leaving)
    del leaving, subscriber
    gc.collect()
    assert gone() is None
    staying.assert_items(1)


@pytest.mark.checklist("M43")
def test_demand_beyond_the_greatest_is_unbounded(kit: Kit) -> None:
    """required_spec317_mustSupportACumulativePendingElementCountUpToLongMaxValue, and beyond it."""
    stage = Stage(kit)
    subscriber = stage.subscriber()
    for amount in (UNBOUNDED // 2, UNBOUNDED // 2, 1, UNBOUNDED, UNBOUNDED):
        subscriber.subscription.request(amount)
    subscriber.assert_not_terminated()
    subscriber._requested = UNBOUNDED
    for _ in range(30):
        stage.send_next()
    stage.upstream.complete()
    subscriber.assert_result(*range(1, 31))


@pytest.mark.checklist("M43")
def test_signals_are_serial_whatever_the_threads_do(kit: Kit) -> None:
    """§1.3, checked by the subscribers themselves."""
    for _ in range(10):
        stage = Stage(kit, buffer_size=64)
        subscribers = [stage.subscriber() for _ in range(3)]

        def send(stage: Stage = stage) -> None:
            stage.upstream.next(*range(1, 41))
            stage.upstream.complete()

        def ask(subscriber: TestSubscriber[int]) -> None:
            for _ in range(40):
                subscriber.request(1)

        race(send, *(lambda s=s: ask(s) for s in subscribers))
        for subscriber in subscribers:
            subscriber.await_terminal().assert_result(*range(1, 41))


@pytest.mark.checklist("M49")
def test_the_kit_takes_foreign_publishers_through_an_adapter() -> None:
    class Foreign:
        """Knows nothing of this library but the names of the methods."""

        def subscribe(self, subscriber: object) -> None:
            class Link:
                asked = 0

                def request(self, n: int) -> None:
                    if self.asked == 0:
                        self.asked = n
                        subscriber.on_next("foreign")
                        subscriber.on_complete()

                def cancel(self) -> None:
                    self.asked = -1

            subscriber.on_subscribe(Link())

    processor = MulticastProcessor[str]()
    subscribers = [TestSubscriber[str](), TestSubscriber[str](1)]
    for subscriber in subscribers:
        processor.subscribe(subscriber)
    Flow(Foreign()).map(str.upper).subscribe(processor)
    for subscriber in subscribers:
        subscriber.assert_result("FOREIGN")
