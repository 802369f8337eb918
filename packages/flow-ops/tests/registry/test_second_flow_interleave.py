"""Operators that listen to a second flow, when both flows signal at once.

As in `test_interleave`: every schedule within one preemption fewer than other tests have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

import flow_core as flow
import flow_ops as ops
from flow_core import Flow
from flow_core.testing import TestSubscriber
from flow_core.testing.interleave import Body, Exhaustive, Scenario, bound, explore_all

pytestmark = pytest.mark.interleave

Made = Callable[[Flow[Any], Flow[Any]], Flow[Any]]


def _itself(made: Any) -> Any:
    return made


def _two_levels(other: Flow[Any]) -> Callable[[int], Flow[Any]]:
    return lambda n: other if n < OTHERS else flow.empty()


ITEMS = 2
OTHERS = 10
"""The first item of the second flow."""
OPERATORS: dict[str, Made] = {
    "amb": ops.amb,
    "buffer_boundary": lambda up, other: up.pipe(ops.buffer_boundary(other, max_size=9)),
    "buffer_toggle, opened": lambda up, other: up.pipe(
        ops.buffer_toggle(other, lambda _: flow.never(), max_size=9)
    ),
    "buffer_toggle, closed": lambda up, other: up.pipe(
        ops.buffer_toggle(flow.just(1), lambda _: other, max_size=9)
    ),
    "buffer_when": lambda up, other: up.pipe(ops.buffer_when(lambda: other, max_size=9)),
    "combine_latest": ops.combine_latest,
    "concat": ops.concat,
    "concat_map": lambda up, other: up.pipe(ops.concat_map(lambda _: other)),
    "concat_map_eager": lambda up, other: up.pipe(ops.concat_map_eager(lambda _: other)),
    "delay_subscription": lambda up, other: up.pipe(ops.delay_subscription(other)),
    "delay_until": lambda up, other: up.pipe(ops.delay_until(lambda _: other)),
    "delay_with_mapper": lambda up, other: up.pipe(ops.delay_with_mapper(lambda _: other)),
    "expand": lambda up, other: up.pipe(ops.expand(_two_levels(other))),
    "expand, depth first": lambda up, other: up.pipe(
        ops.expand(_two_levels(other), depth_first=True)
    ),
    "filter_when": lambda up, other: up.pipe(ops.filter_when(lambda _: other.map(bool))),
    "flat_map": lambda up, other: up.pipe(ops.flat_map(lambda _: other)),
    "flat_map, one by one": lambda up, other: up.pipe(ops.flat_map(lambda _: other, concurrency=1)),
    "fork_join": ops.fork_join,
    "group_by": lambda up, other: up.pipe(ops.group_by(lambda n: n % 2)).pipe(
        ops.flat_map(lambda group: group.pipe(ops.take_until_other(other)))
    ),
    "map_when": lambda up, other: up.pipe(ops.map_when(lambda _: other)),
    "merge": ops.merge,
    "merge_sequential": ops.merge_sequential,
    "on_error_resume": lambda up, other: up.pipe(ops.on_error_resume(lambda _: other)),
    "ordered_merge": ops.ordered_merge,
    "repeat_when": lambda up, other: up.pipe(
        ops.repeat_when(lambda runs: runs.pipe(ops.zip_with(other)))
    ),
    "sample": lambda up, other: up.pipe(ops.sample(other)),
    "sequence_equal": ops.sequence_equal,
    "skip_until_other": lambda up, other: up.pipe(ops.skip_until_other(other)),
    "switch_if_empty": lambda up, other: up.pipe(ops.switch_if_empty(other)),
    "switch_map": lambda up, other: up.pipe(ops.switch_map(lambda _: other)),
    "switch_on_first": lambda up, other: up.pipe(
        ops.switch_on_first(lambda _, whole: whole.pipe(ops.merge_with(other)))
    ),
    "take_until_other": lambda up, other: up.pipe(ops.take_until_other(other)),
    "timeout": lambda up, other: up.pipe(ops.timeout(selector=lambda _: other)),
    "window_boundary": lambda up, other: up.pipe(ops.window_boundary(other)).pipe(
        ops.concat_map(_itself)
    ),
    "window_toggle, opened": lambda up, other: up.pipe(
        ops.window_toggle(other, lambda _: flow.never())
    ).pipe(ops.concat_map(_itself)),
    "window_toggle, closed": lambda up, other: up.pipe(
        ops.window_toggle(flow.just(1), lambda _: other)
    ).pipe(ops.concat_map(_itself)),
    "window_when": lambda up, other: up.pipe(ops.window_when(lambda: other)).pipe(
        ops.concat_map(_itself)
    ),
    "with_latest_from": lambda up, other: up.pipe(ops.with_latest_from(other)),
    "zip": ops.zip,
}


@dataclass(eq=False)
class Link:
    """A subscription to `Sending`, which sends as much as is requested."""

    first: int
    count: int
    to: Any
    requested: int = 0
    sent: int = 0
    over: bool = False
    """It has ended, or was cancelled."""

    def request(self, n: int, /) -> None:
        self.requested += n

    def cancel(self) -> None:
        self.over = True

    def send(self) -> None:
        while not self.over and self.sent < min(self.requested, self.count):
            self.sent += 1
            self.to.on_next(self.first + self.sent - 1)
        if self.sent == self.count and not self.over:
            self.over = True
            self.to.on_complete()

    def fail(self) -> None:
        if not self.over:
            self.over = True
            self.to.on_error(ValueError("planned"))


@dataclass
class Sending:
    """A source for any number of subscribers, told when to send."""

    first: int
    count: int
    links: list[Link] = field(default_factory=list)

    def subscribe(self, subscriber: Any, /) -> None:
        link = Link(self.first, self.count, subscriber)
        self.links.append(link)
        subscriber.on_subscribe(link)

    def send(self) -> None:
        for link in tuple(self.links):
            link.send()

    def fail(self) -> None:
        for link in tuple(self.links):
            link.fail()

    @property
    def over(self) -> bool:
        return all(link.over for link in self.links)


class Run:
    def __init__(self, make: Made, request: int = 20) -> None:
        self.up = Sending(0, ITEMS)
        self.other = Sending(OTHERS, 1)
        self.subscriber = TestSubscriber[Any](request)
        made = make(flow.from_publisher(self.up), flow.from_publisher(self.other))
        made.subscribe(self.subscriber)

    def check(self) -> None:
        """All ends, and then nothing is left running."""
        for _ in range(2 * ITEMS + 2):
            self.up.send()
            self.other.send()
            self.subscriber.request(20)
        self.subscriber.assert_rules_kept()
        if self.subscriber.terminated:
            assert self.up.over, "the upstream runs"
            assert self.other.over, "the second flow runs"
        else:
            assert not (self.up.over and self.other.over), "it hangs"


@pytest.fixture(params=OPERATORS)
def make(request: pytest.FixtureRequest, dropped: object) -> Made:
    """How the two flows are joined. What comes too late is dropped."""
    del dropped
    return OPERATORS[request.param]


def exhaust(body: Body) -> None:
    modules = ["flow_core.serial", "flow_ops"]
    explore_all(body, strategy=Exhaustive(max(1, bound() - 1)), modules=modules)


@pytest.mark.checklist("X06")
def test_both_send(make: Made) -> None:
    def body() -> Scenario:
        run = Run(make)
        return Scenario(run.up.send, run.other.send, check=run.check)

    exhaust(body)


@pytest.mark.checklist("X06")
def test_the_second_flow_fails_while_the_first_sends(make: Made) -> None:
    def body() -> Scenario:
        run = Run(make)
        return Scenario(run.up.send, run.other.fail, check=run.check)

    exhaust(body)


@pytest.mark.checklist("X06")
def test_the_first_flow_fails_while_the_second_sends(make: Made) -> None:
    def body() -> Scenario:
        run = Run(make)
        return Scenario(run.up.fail, run.other.send, check=run.check)

    exhaust(body)


@pytest.mark.checklist("X06")
def test_demand_comes_while_the_second_flow_sends(make: Made) -> None:
    def body() -> Scenario:
        run = Run(make, 1)
        run.up.send()
        return Scenario(run.other.send, lambda: run.subscriber.request(20), check=run.check)

    exhaust(body)


@pytest.mark.checklist("X06")
def test_who_cancels_while_the_second_flow_sends_cancels_both(make: Made) -> None:
    def body() -> Scenario:
        run = Run(make)
        run.up.send()

        def check() -> None:
            run.subscriber.assert_rules_kept()
            assert run.up.over, "the upstream runs"
            assert run.other.over, "the second flow runs"

        return Scenario(run.other.send, run.subscriber.cancel, check=check)

    exhaust(body)
