"""The vocabulary: demand, markers, and methods that refuse None."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import flow_core as flow
from flow_core import EMPTY, UNBOUNDED, Empty, Flow, NoneItemError, protocols
from flow_core.demand import add_demand, bad_request, check_prefetch, replenish_limit
from flow_core.stages._program import Program
from flow_core.stages._pushed import subscribe_stages
from flow_core.structure import source_of, stages_of
from flow_core.subscribers import CallbackSubscriber, StrictSubscriber, core_subscriber
from flow_testing import TestPublisher, TestSubscriber


@pytest.mark.checklist("X01", "X04")
def test_the_empty_marker_is_one_object() -> None:
    assert pickle.loads(pickle.dumps(EMPTY)) is EMPTY
    assert copy.deepcopy(EMPTY) is EMPTY
    assert isinstance(EMPTY, Empty)
    assert len(Empty) == 1


@pytest.mark.checklist("X03")
def test_demand_is_capped() -> None:
    assert UNBOUNDED == 2**63 - 1
    assert add_demand(2, 3) == 5
    for a, b in ((UNBOUNDED, 1), (UNBOUNDED, UNBOUNDED), (UNBOUNDED - 1, 1), (1, 2**100)):
        assert add_demand(a, b) == UNBOUNDED


def test_a_request_is_checked() -> None:
    assert bad_request(1) is None
    assert bad_request(UNBOUNDED) is None
    for n in (0, -1):
        error = bad_request(n)
        assert isinstance(error, ValueError)
        assert "3.9" in str(error)
        assert "non-positive subscription request" in str(error)
        assert f"request({n})" in str(error)
    for wrong in (1.0, "1", None, True, False):
        with pytest.raises(TypeError, match="int"):
            bad_request(wrong)  # type: ignore[arg-type]  # the mistake


@pytest.mark.checklist("M05", "O36")
def test_a_prefetch_is_checked() -> None:
    assert check_prefetch(1) == 1
    for wrong in (0, -1):
        with pytest.raises(ValueError, match="prefetch must be at least 1"):
            check_prefetch(wrong)
    for wrong_type in (1.0, None, True):
        with pytest.raises(TypeError, match="concurrency takes an int"):
            check_prefetch(wrong_type, "concurrency")  # type: ignore[arg-type]  # the mistake


@pytest.mark.parametrize(
    ("prefetch", "limit"), [(1, 1), (2, 2), (3, 3), (4, 3), (8, 6), (128, 96), (256, 192)]
)
def test_a_prefetch_is_replenished_at_three_quarters(prefetch: int, limit: int) -> None:
    assert replenish_limit(prefetch) == limit


SUBSCRIBERS: dict[str, Callable[[], Any]] = {
    "stages": lambda: subscribe_stages(
        Program[Any, Any](stages_of(flow.just(1).map(str))), TestSubscriber[Any]()
    ),
    "stages that expand": lambda: subscribe_stages(
        Program[Any, Any](stages_of(flow.just(1).flat_map_iterable(str))), TestSubscriber[Any]()
    ),
    "functions, counted": lambda: CallbackSubscriber[Any](prefetch=1),
    "guard": lambda: StrictSubscriber[Any](TestSubscriber[Any]()),
    "test subscriber": TestSubscriber[Any],
}


class Idle:
    def request(self, n: int, /) -> None:
        pass

    def cancel(self) -> None:
        pass


@pytest.mark.checklist("M28")
@pytest.mark.parametrize("name", SUBSCRIBERS)
def test_a_subscriber_refuses_none_and_continues(name: str) -> None:
    subscriber = SUBSCRIBERS[name]()
    with pytest.raises(NoneItemError, match=r"on_subscribe\(None\)"):
        subscriber.on_subscribe(None)
    subscriber.on_subscribe(Idle())
    if name != "functions, counted":
        with pytest.raises(NoneItemError, match=r"on_next\(None\)"):
            subscriber.on_next(None)
    with pytest.raises(NoneItemError, match=r"on_error\(None\)"):
        subscriber.on_error(None)
    subscriber.on_next(1)
    subscriber.on_complete()


@pytest.mark.checklist("M19")
@pytest.mark.parametrize(
    "make",
    [
        lambda: flow.range(3),
        lambda: flow.range(3).map(str),
        lambda: flow.just(1),
        flow.empty,
        flow.never,
        lambda: flow.error(ValueError()),
        lambda: flow.defer(lambda: flow.range(3)),
        lambda: flow.range(3).hide(),
        lambda: flow.from_publisher(TestPublisher[int]()),
        lambda: source_of(flow.never()),
        lambda: source_of(flow.error(ValueError())),
        lambda: source_of(flow.defer(flow.never)),
        lambda: source_of(flow.range(3).hide()),
        lambda: source_of(flow.from_publisher(TestPublisher[int]())),
    ],
)
def test_subscribing_none_is_a_type_error(make: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match="None"):
        make().subscribe(None)


def test_an_object_that_lacks_a_method_is_refused_as_a_subscriber() -> None:
    class Half:
        def on_subscribe(self, subscription: object) -> None:
            pass

        def on_next(self, item: object) -> None:
            pass

        on_error = 5

    for subscribe in (flow.range(3).subscribe, core_subscriber):
        with pytest.raises(TypeError, match="no on_error, on_complete"):
            subscribe(Half())  # type: ignore[arg-type]  # the mistake


def test_a_core_subscriber_gets_no_guard() -> None:
    subscriber = TestSubscriber[int]()
    assert core_subscriber(subscriber) is subscriber


def test_everything_public_is_there() -> None:
    for module in (flow, protocols):
        missing = [name for name in module.__all__ if not hasattr(module, name)]
        assert missing == []
        assert sorted(set(module.__all__)) == sorted(module.__all__)


def test_a_flow_is_a_publisher() -> None:
    def items(publisher: protocols.Publisher[int]) -> list[int]:
        subscriber = TestSubscriber[int]()
        publisher.subscribe(subscriber)
        return subscriber.items

    assert items(flow.range(3)) == [0, 1, 2]
    assert items(Flow(flow.range(3))) == [0, 1, 2]
