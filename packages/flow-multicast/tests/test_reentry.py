"""Each call of a processor comes in at each moment of each other call, in the same thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeAlias, TypeVar

import pytest

from flow_core import Fusion
from flow_multicast import (
    AsyncProcessor,
    BehaviorProcessor,
    DirectProcessor,
    MulticastProcessor,
    ReplayProcessor,
    UnicastProcessor,
    serialized,
)
from flow_multicast.processors.serialized import SerializedProcessor
from flow_testing import Drops, TestPublisher, TestSubscriber
from flow_testing.reentry import Reentry, explore_reentry

Hot: TypeAlias = (
    DirectProcessor[int]
    | BehaviorProcessor[int]
    | AsyncProcessor[int]
    | ReplayProcessor[int]
    | SerializedProcessor[int]
)

P = TypeVar("P", MulticastProcessor[int], Hot, UnicastProcessor[int])

MODULES = ["flow_core.serial", "flow_multicast"]


class Fed(Generic[P]):
    """A processor, its sources, and its late subscribers."""

    def __init__(self, processor: P) -> None:
        self.processor = processor
        self.sources: list[TestPublisher[int]] = []
        self.late: list[TestSubscriber[int]] = []
        self.fed: list[int] = []

    def offer(self) -> None:
        item = len(self.fed)
        self.fed.append(item)
        if not self.processor.offer(item):
            self.fed.remove(item)

    def subscribe(self) -> None:
        self.late.append(TestSubscriber(4))
        self.processor.subscribe(self.late[-1])

    def upstream(self) -> None:
        self.sources.append(TestPublisher())
        self.sources[-1].subscribe(self.processor)


class Stage(Fed[MulticastProcessor[int]]):
    """A processor with two subscribers that have demand."""

    def __init__(self) -> None:
        super().__init__(MulticastProcessor(8))
        self.stays, self.goes = TestSubscriber[int](4), TestSubscriber[int](4)
        for subscriber in (self.stays, self.goes):
            self.processor.subscribe(subscriber)

    def send(self, item: int) -> None:
        """Send by the source that feeds the processor."""
        feeding = [source for source in self.sources if not source.cancelled]
        assert len(feeding) == bool(self.sources)
        (feeding[0].next if feeding else self.processor.on_next)(item)
        self.fed.append(item)


Call: TypeAlias = Callable[[Stage], object]

CALLS: dict[str, Call] = {
    "offer": Stage.offer,
    "request": lambda stage: stage.stays.request(4),
    "subscribe": Stage.subscribe,
    "cancel": lambda stage: stage.goes.cancel(),
    "request of nothing": lambda stage: stage.goes.subscription.request(0),
    "complete": lambda stage: stage.processor.on_complete(),
    "error": lambda stage: stage.processor.on_error(ValueError("failed")),
    "upstream": Stage.upstream,
    "statistics": lambda stage: stage.processor.statistics(),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("work", CALLS)
def test_nothing_hangs_or_is_lost_whatever_calls_in(drops: Drops, work: str, call: str) -> None:
    both = {work, call}

    def body() -> Reentry:
        stage = Stage()

        def check() -> None:
            ended = bool(both & {"complete", "error"})
            if not ended:
                stage.send(98)  # to all subscribers
            dropped = [*drops.items]
            drops.items.clear()
            drops.take_errors()  # of two ends, one is sent
            stays = stage.stays.assert_rules_kept()
            assert sorted([*stays.items, *dropped]) == sorted(stage.fed)
            assert (stays.completed or stays.error is not None) == ended
            goes = stage.goes.assert_rules_kept()
            assert goes.items == stays.items[: len(goes.items)]
            if not both & {"cancel", "request of nothing"}:
                assert goes.items == stays.items
                assert (goes.completed or goes.error is not None) == ended
            if "request of nothing" in both and "cancel" not in both:
                assert goes.error is not None or goes.completed
            for late in stage.late:
                late.assert_rules_kept()
                assert (late.completed or late.error is not None) == ended
                assert late.items == stays.items[len(stays.items) - len(late.items) :]
            left = bool(both & {"cancel", "request of nothing"})
            assert stage.processor.statistics().subscribers == (
                0 if ended else 2 + len(stage.late) - left
            )

        return Reentry(lambda: CALLS[work](stage), lambda: CALLS[call](stage), check)

    assert explore_reentry(body, modules=MODULES) > 5


HOT: dict[str, Callable[[], Hot]] = {
    "direct": DirectProcessor[int],
    "behavior": BehaviorProcessor[int],
    "async": AsyncProcessor[int],
    "replay": ReplayProcessor[int],
    "replay, 4": lambda: ReplayProcessor(4),
    "replay, 9 s": lambda: ReplayProcessor(4, ttl=9.0),
    "serialized": lambda: serialized(DirectProcessor[int]()),
}


class HotStage(Fed[Hot]):
    """A processor with two subscribers that request all."""

    def __init__(self, processor: Hot) -> None:
        super().__init__(processor)
        self.stays, self.goes = TestSubscriber[int](), TestSubscriber[int]()
        for subscriber in (self.stays, self.goes):
            self.processor.subscribe(subscriber)

    def feed(self) -> None:
        self.fed.append(len(self.fed))
        self.processor.on_next(self.fed[-1])

    def subscribe(self) -> None:
        self.late.append(TestSubscriber())  # which requests all, too
        self.processor.subscribe(self.late[-1])


HOT_CALLS: dict[str, Callable[[HotStage], object]] = {
    "on_next": HotStage.feed,
    "request": lambda stage: stage.stays.request(4),
    "subscribe": HotStage.subscribe,
    "cancel": lambda stage: stage.goes.cancel(),
    "request of nothing": lambda stage: stage.goes.subscription.request(0),
    "complete": lambda stage: stage.processor.on_complete(),
    "error": lambda stage: stage.processor.on_error(ValueError("failed")),
    "upstream": HotStage.upstream,
    "statistics": lambda stage: stage.processor.statistics(),
}


@pytest.mark.many
@pytest.mark.parametrize("call", HOT_CALLS)
@pytest.mark.parametrize("work", HOT_CALLS)
@pytest.mark.parametrize("name", HOT)
def test_nothing_hangs_or_is_lost_in_a_hot_processor(
    drops: Drops, name: str, work: str, call: str
) -> None:
    both = {work, call}
    ended = bool(both & {"complete", "error"})

    def body() -> Reentry:
        stage = HotStage(HOT[name]())

        def check() -> None:
            if not ended:
                stage.feed()  # to all subscribers
            dropped = [*drops.items]
            drops.items.clear()
            drops.take_errors()  # of two ends, one is sent
            stays, goes = stage.stays.assert_rules_kept(), stage.goes.assert_rules_kept()
            assert (stays.completed or stays.error is not None) == ended
            if name == "async":
                told = [n for n in stage.fed if n not in dropped][-1:] if stays.completed else []
                assert stays.items == told
            else:
                assert sorted([*stays.items, *dropped]) == sorted(stage.fed)
            assert goes.items == stays.items[: len(goes.items)]
            left = bool(both & {"cancel", "request of nothing"})
            if not left:
                assert goes.items == stays.items
                assert (goes.completed or goes.error is not None) == ended
            elif "cancel" not in both:
                assert goes.completed or goes.error is not None
            for late in stage.late:
                late.assert_rules_kept()
                assert (late.completed or late.error is not None) == ended
                if not ended and name != "async":
                    assert late.items[-1] == stage.fed[-1]
            assert stage.processor.statistics().subscribers == (
                0 if ended else 2 + len(stage.late) - left
            )
            feeding = [source for source in stage.sources if not source.cancelled]
            assert len(feeding) <= 1
            assert ended or all(source.outstanding for source in feeding)

        return Reentry(lambda: HOT_CALLS[work](stage), lambda: HOT_CALLS[call](stage), check)

    assert explore_reentry(body, modules=MODULES, timeout_s=1) > 2


class Queue(Fed[UnicastProcessor[int]]):
    """A queue with one subscriber, which has some demand."""

    def __init__(self, mode: Fusion) -> None:
        super().__init__(UnicastProcessor(4))
        self.subscriber = TestSubscriber[int](2, fusion=mode)
        self.processor.subscribe(self.subscriber)


QUEUE_CALLS: dict[str, Callable[[Queue], object]] = {
    "offer": Queue.offer,
    "request": lambda queue: queue.subscriber.request(3),
    "subscribe": Queue.subscribe,
    "cancel": lambda queue: queue.subscriber.cancel(),
    "request of nothing": lambda queue: queue.subscriber.subscription.request(0),
    "complete": lambda queue: queue.processor.on_complete(),
    "error": lambda queue: queue.processor.on_error(ValueError("failed")),
    "upstream": Queue.upstream,
    "statistics": lambda queue: queue.processor.statistics(),
}


@pytest.mark.many
@pytest.mark.parametrize("call", QUEUE_CALLS)
@pytest.mark.parametrize("work", QUEUE_CALLS)
@pytest.mark.parametrize("mode", [Fusion.NONE, Fusion.ASYNC])
def test_nothing_hangs_or_is_lost_in_a_queue(
    drops: Drops, mode: Fusion, work: str, call: str
) -> None:
    both = {work, call}
    over = bool(both & {"complete", "error", "cancel", "request of nothing"})

    def body() -> Reentry:
        queue = Queue(mode)

        def check() -> None:
            feeding = [source for source in queue.sources if not source.cancelled]
            assert len(feeding) <= 1
            while not over and (feeding[0].outstanding if feeding else queue.processor.room()):
                (feeding[0].next if feeding else queue.processor.on_next)(len(queue.fed))
                queue.fed.append(len(queue.fed))
                if len(queue.fed) > 9:
                    break
            one = queue.subscriber.assert_rules_kept()
            if "cancel" not in both:
                queue.subscriber.request(20)
                assert (one.completed or one.error is not None) == over
            dropped = [*drops.items]
            drops.items.clear()
            drops.take_errors()  # of two ends, one is sent
            assert sorted([*one.items, *dropped]) == sorted(queue.fed)
            assert one.items == sorted(one.items) or both == {"offer"}
            if not both & {"cancel", "request of nothing"}:
                assert dropped == []
            for late in queue.late:
                assert late.assert_rules_kept().error is not None

        return Reentry(lambda: QUEUE_CALLS[work](queue), lambda: QUEUE_CALLS[call](queue), check)

    assert explore_reentry(body, modules=MODULES, timeout_s=1) > 2
