"""All that runs here tells of itself: processors and their lines, connectables and their runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flow_core as flow
import flow_multicast
from flow_core import Flow
from flow_core.introspection import Scannable, Statistics, links, report
from flow_core.plugins import plugin_host
from flow_multicast import (
    AsyncProcessor,
    BehaviorProcessor,
    Connectable,
    DirectProcessor,
    MulticastProcessor,
    ReplayProcessor,
    UnicastProcessor,
    cache,
    multicast,
    publish,
    publish_value,
    replay,
    serialized,
    share,
)
from flow_testing import TestPublisher, TestSubscriber

PROCESSORS: dict[str, Callable[[], Any]] = {
    "AsyncProcessor": AsyncProcessor,
    "BehaviorProcessor": BehaviorProcessor,
    "DirectProcessor": DirectProcessor,
    "MulticastProcessor": MulticastProcessor,
    "ReplayProcessor": ReplayProcessor,
    "SerializedProcessor": lambda: serialized(DirectProcessor()),
    "UnicastProcessor": UnicastProcessor,
}

OPERATORS: dict[str, dict[str, Callable[[], Any]]] = {
    "cache": {"": cache},
    "multicast": {
        **{name: lambda make=make: multicast(make) for name, make in PROCESSORS.items()},
        "one for all": lambda: multicast(DirectProcessor()),
    },
    "publish": {"": publish, "selected": lambda: publish(lambda shared: shared)},
    "publish_value": {"": lambda: publish_value(0)},
    "replay": {
        "": replay,
        "2 items": lambda: replay(size=2),
        "selected": lambda: replay(lambda shared: shared),
    },
    "share": {"": share},
}
"""The ways to make each registered operator."""

each_processor = pytest.mark.parametrize("name", PROCESSORS)
each_operator = pytest.mark.parametrize(
    "make",
    [
        pytest.param(make, id=f"{name} {variant}".strip())
        for name, variants in OPERATORS.items()
        for variant, make in variants.items()
    ],
)


def test_all_that_is_there_is_looked_at() -> None:
    public = {name for name in flow_multicast.__all__ if name.endswith("Processor")}
    assert public == set(PROCESSORS)
    ours = {
        name
        for name, operator in plugin_host().operators.items()
        if operator.spec.target.startswith("flow_multicast.")
    }
    assert ours == set(OPERATORS)


def _ignore(_: object) -> None:
    pass


def told(subscriber: TestSubscriber[Any]) -> Statistics:
    subscription: Any = subscriber.subscription
    assert isinstance(subscription, Scannable)
    found = subscription.statistics()
    return found if isinstance(found, Statistics) else next(links(subscription))


@each_processor
def test_a_processor_reports_its_subscribers_and_waiting_items(name: str) -> None:
    source = TestPublisher[int]()
    processor = PROCESSORS[name]()
    subscriber = TestSubscriber[int](0)
    processor.subscribe(subscriber)
    source.subscribe(processor)
    assert isinstance(processor, Scannable)
    now: Any = processor.statistics()
    assert (now.buffered, now.requested, now.terminated) == (0, 0, False)
    assert now.subscribers == 1
    assert now.held_back_by == (subscriber,)
    assert now.capacity >= now.buffered
    subscriber.request(3)
    assert processor.statistics().requested == 3
    chain = list(links(processor))
    assert len(chain) == 2
    assert name.removesuffix("Processor").lower() in report(processor).lower()
    source.complete()
    now = processor.statistics()
    assert now.terminated
    assert getattr(now, "subscribers", 0) == 0
    assert not list(links(processor))[1:]


@each_processor
def test_a_line_reports_its_demand_and_its_waiting_items(name: str) -> None:
    processor = PROCESSORS[name]()
    subscriber = TestSubscriber[int](2)
    processor.subscribe(subscriber)
    now = told(subscriber)
    assert (now.requested, now.buffered, now.terminated) == (2, 0, False)
    for n in range(2):
        processor.on_next(n)
    assert told(subscriber).requested == (2 if name == "AsyncProcessor" else 0)
    chain = list(links(subscriber.subscription))
    if name != "UnicastProcessor":  # which is its own line
        inner = "DirectProcessor" if name == "SerializedProcessor" else name
        assert [each.operator.partition("(")[0] for each in chain] == ["served", inner]
    processor.on_complete()
    assert subscriber.completed
    now = told(subscriber)
    assert now.terminated
    if name != "UnicastProcessor":
        assert len(list(links(subscriber.subscription))) == 1


@pytest.mark.parametrize(
    ("processor", "waiting"),
    [(ReplayProcessor[int](), 3), (ReplayProcessor[int](2), 2), (BehaviorProcessor[int](), 1)],
    ids=["replay", "replay, 2 items", "behavior"],
)
def test_a_slow_line_says_how_many_items_it_has_still_to_get(processor: Any, waiting: int) -> None:
    for n in range(3):
        processor.on_next(n)
    slow = TestSubscriber[int](0)
    processor.subscribe(slow)
    assert told(slow).buffered == waiting
    slow.request(10)
    assert told(slow).buffered == 0
    slow.assert_items(*range(3 - waiting, 3))


@each_processor
def test_a_line_with_a_bad_request_has_ended(name: str) -> None:
    processor = PROCESSORS[name]()
    subscriber = TestSubscriber[int](0)
    processor.subscribe(subscriber)
    subscription = subscriber.subscription
    subscriber.request(-1)
    subscriber.assert_failure(ValueError)
    assert next(links(subscription)).terminated


@each_operator
def test_a_running_flow_can_be_inspected_from_the_subscriber_to_the_source(
    make: Callable[[], Any],
) -> None:
    made = flow.never().pipe(make())
    connects = isinstance(made, Connectable)
    shared = made.flow if connects else made
    early = shared.subscribe(prefetch=4)
    if connects:
        assert len(made.statistics().waiting) + made.statistics().subscribers == 1
        assert not made.statistics().connected
        made.connect()
        now = made.statistics()
        demand = 3 if "publish_value" in repr(made) else 4  # it has got the first value
        assert (now.connected, now.waiting, now.subscribers, now.requested) == (True, (), 1, demand)
        assert now.capacity >= now.buffered
        assert now.inners
    only_one = "UnicastProcessor" in repr(made)
    late = shared.subscribe(_ignore, _ignore, prefetch=4)
    for handle in (early,) if only_one else (early, late):
        chain = list(links(handle))
        assert chain[0].operator == "subscriber"
        assert chain[-1].operator == "never"
        assert all(not each.terminated for each in chain)
    if connects and not only_one:
        assert made.statistics().subscribers == 2
    early.dispose()
    late.dispose()
    if connects:
        assert made.statistics().subscribers == 0 or only_one


@each_operator
def test_the_subscriber_that_holds_the_others_back_is_named(make: Callable[[], Any]) -> None:
    source = TestPublisher[int]()
    made = Flow(source).pipe(make())
    if not isinstance(made, Connectable) or "UnicastProcessor" in repr(made):
        return
    eager, slow = TestSubscriber[int](10), TestSubscriber[int](0)
    for subscriber in (eager, slow):
        made.subscribe(subscriber)
    made.connect()
    now = made.statistics()
    assert now.requested == 0
    assert now.held_back_by == (slow,)
    slow.request(2)
    assert not made.statistics().held_back_by
