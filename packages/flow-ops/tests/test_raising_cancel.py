"""A foreign publisher whose `Subscription.cancel` raises takes no end away (§3.15)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import flow_core as flow
import flow_ops as ops
from flow_core import Flow, Subscriber
from flow_testing import TestSubscriber, VirtualClock

Made = Callable[[Flow[int], VirtualClock], Flow[Any]]


class Foreign:
    """Sends one item, and raises when it is cancelled."""

    def __init__(self) -> None:
        self.cancels = 0
        self.error = RuntimeError("of cancel")

    def subscribe(self, subscriber: Subscriber[int]) -> None:
        subscriber.on_subscribe(self)
        subscriber.on_next(1)

    def request(self, n: int) -> None:
        pass

    def cancel(self) -> None:
        self.cancels += 1
        raise self.error


def failing() -> Flow[int]:
    failed: Flow[int] = flow.error(ValueError())
    return failed.hide()


SHAPES: dict[str, Made] = {
    "take": lambda source, _: source.take(1),
    "map raises": lambda source, _: source.map(lambda n: n // 0),
    "zip": lambda source, _: ops.zip(flow.range(1).hide(), source),
    "merge": lambda source, _: ops.merge(source, failing()),
    "combine_latest": lambda source, _: ops.combine_latest(source, failing()),
    "amb": lambda source, clock: ops.amb(source.filter(lambda _: False), ops.timer(1, clock=clock)),
    "take_until_other": lambda source, clock: source.pipe(
        ops.take_until_other(ops.timer(1, clock=clock))
    ),
    "switch_map": lambda source, _: (
        flow.range(2).hide().pipe(ops.switch_map(lambda n: flow.just(9) if n else source))
    ),
    "observe_on": lambda source, _: source.pipe(ops.observe_on(lambda task: task())).map(
        lambda n: n // 0
    ),
    "flat_map": lambda source, _: source.pipe(ops.flat_map(lambda _: failing())),
    "concat_map": lambda source, _: source.pipe(ops.concat_map(lambda _: failing())),
    "concat_map_eager": lambda source, _: source.pipe(ops.concat_map_eager(lambda _: failing())),
    "group_by": lambda source, _: source.pipe(ops.group_by(lambda n: n // 0)),
    "with_latest_from": lambda source, _: flow.range(3).hide().pipe(ops.with_latest_from(source)),
    "sequence_equal": lambda source, _: ops.sequence_equal(source, flow.just(2).hide()),
    "ordered_merge": lambda source, _: ops.ordered_merge(source, failing()),
    "fork_join": lambda source, _: ops.fork_join(source, flow.empty().hide()),
    "timeout": lambda source, clock: source.pipe(ops.timeout(1, clock=clock)),
    "take_with_time": lambda source, clock: source.pipe(ops.take_with_time(1, clock=clock)),
    "sample": lambda source, clock: source.pipe(ops.sample(1, clock=clock)).take(1),
    "parallel": lambda source, _: (
        source.pipe(ops.parallel(2)).run_on(lambda task: task()).map(lambda n: n // 0).sequential()
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_end_comes_and_the_error_is_reported(shape: str, dropped: Any) -> None:
    source, clock, seen = Foreign(), VirtualClock(), TestSubscriber[Any]()
    SHAPES[shape](flow.from_publisher(source), clock).subscribe(seen)
    clock.advance_by(5)
    assert seen.terminated
    assert seen.error is not source.error
    assert source.cancels == 1
    assert dropped.errors == [source.error]
    assert clock.pending == 0


def test_the_other_inputs_are_cancelled(dropped: Any) -> None:
    source, clock = Foreign(), VirtualClock()
    handle = ops.merge(flow.from_publisher(source), ops.interval(100, clock=clock)).subscribe()
    assert clock.pending == 1
    handle.dispose()
    assert clock.pending == 0
    assert dropped.errors == [source.error]
