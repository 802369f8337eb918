"""The Reactive Streams rules, tried on the processors and on all that this package registers."""

from __future__ import annotations

from typing import Any

import pytest

import flow_core as flow
from flow_core.protocols import Processor, Publisher
from flow_multicast import (
    AsyncProcessor,
    MulticastProcessor,
    ReplayProcessor,
    cache,
    multicast,
    publish,
    replay,
    share,
)
from flow_testing.tck import (
    OperatorRecipe,
    OperatorsAsSubscribersVerification,
    OperatorsVerification,
    ProcessorVerification,
    PublisherVerification,
    without_recipe,
)

pytestmark = pytest.mark.tck

RECIPES = (
    OperatorRecipe("cache", lambda upstream: upstream.pipe(cache()), facts={"goes_on": True}),
    OperatorRecipe(
        "multicast",
        lambda upstream: upstream.pipe(multicast(MulticastProcessor)).ref_count(),
        facts={"coordinated": True},
    ),
    OperatorRecipe(
        "publish",
        lambda upstream: upstream.pipe(publish()).ref_count(),
        facts={"coordinated": True},
    ),
    OperatorRecipe(
        "publish, selected", lambda upstream: upstream.pipe(publish(lambda items: items))
    ),
    OperatorRecipe(
        "replay",
        lambda upstream: upstream.pipe(replay()).auto_connect(),
        facts={"goes_on": True},
    ),
    OperatorRecipe("replay, 4 items", lambda upstream: upstream.pipe(replay(size=4)).ref_count()),
    OperatorRecipe(
        "replay, an hour",
        lambda upstream: upstream.pipe(replay(ttl=3600)).ref_count(),
    ),
    OperatorRecipe("replay, selected", lambda upstream: upstream.pipe(replay(lambda items: items))),
    OperatorRecipe("share", lambda upstream: upstream.pipe(share()), facts={"coordinated": True}),
)
"""One line for each operator of this package."""

EXEMPT = {"publish_value": "it gives the newest value, not all of them"}
"""Operators and sources that need no recipe, each with the reason."""


class LockStep(ProcessorVerification[int]):
    quiet_s = 0
    refcounted = True
    coordinated = True


class TestThatKeepsRunning(LockStep):
    def create_processor(self) -> Processor[int, int]:
        return MulticastProcessor[int]()


class TestThatEndsWithItsLastSubscriber(LockStep):
    leaves_with_the_last = True

    def create_processor(self) -> Processor[int, int]:
        return MulticastProcessor[int](ref_count=True)


class TestThatHoldsOneItem(LockStep):
    def create_processor(self) -> Processor[int, int]:
        return MulticastProcessor[int](prefetch=1)


class TestFedByHand(PublisherVerification[int]):
    quiet_s = 0
    refcounted = True
    cold = False
    coordinated = True
    failure = LookupError("by hand")

    def create_publisher(self, count: int) -> Publisher[int]:
        processor = MulticastProcessor[int]()
        processor.start_unbounded()
        for n in range(count):
            assert processor.offer(n)
        processor.on_complete()
        return processor

    def create_failed_publisher(self) -> Publisher[int]:
        processor = MulticastProcessor[int]()
        processor.start()
        assert self.failure is not None
        processor.on_error(self.failure)
        return processor


class TestFedByAStranger(LockStep):
    """An upstream that is not an iterator: no fusion."""

    def create_processor(self) -> Processor[int, int]:
        return MulticastProcessor[int](prefetch=4)

    def create_publisher(self, count: int) -> Publisher[int]:
        processor = MulticastProcessor[int](prefetch=4)
        flow.range(count).hide().subscribe(processor)
        return processor


class TestBehindItsOperators(LockStep):
    """As a flow, with stages between it and its subscribers."""

    def create_processor(self) -> Processor[int, int]:
        return MulticastProcessor[int]()

    def create_publisher(self, count: int) -> Publisher[Any]:
        processor = MulticastProcessor[int]()
        flow.range(2 * count).subscribe(processor)
        return processor.flow.filter(lambda n: n % 2)


class TestOperators(OperatorsVerification):
    __test__ = bool(RECIPES)
    recipes = RECIPES


class TestOperatorsAsSubscribers(OperatorsAsSubscribersVerification):
    __test__ = bool(RECIPES)
    recipes = RECIPES


def test_every_operator_and_source_is_tried_or_says_why_not() -> None:
    assert without_recipe("flow-multicast", RECIPES, EXEMPT) == [], "add a line to RECIPES"


class Replaying(ProcessorVerification[int]):
    quiet_s = 0
    refcounted = True


class TestReplayOfAll(Replaying):
    def create_processor(self) -> Processor[int, int]:
        return ReplayProcessor[int]()


class TestReplayOfTheLast(Replaying):
    def create_processor(self) -> Processor[int, int]:
        return ReplayProcessor[int](size=200_000)


class TestReplayOfAnHour(Replaying):
    def create_processor(self) -> Processor[int, int]:
        return ReplayProcessor[int](ttl=3600)


class TestTheLastItem(PublisherVerification[int]):
    quiet_s = 0
    refcounted = True
    max_items = 1
    failure = LookupError("by hand")

    def create_publisher(self, count: int) -> Publisher[int]:
        processor = AsyncProcessor[int]()
        for n in range(count):
            processor.on_next(n)
        processor.on_complete()
        return processor

    def create_failed_publisher(self) -> Publisher[int]:
        processor = AsyncProcessor[int]()
        assert self.failure is not None
        processor.on_error(self.failure)
        return processor
