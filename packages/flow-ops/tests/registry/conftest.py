"""Fixtures that the tests of this folder share: they run with all operators and sources.

A test that takes ``case`` runs with each that needs no process and no event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

import flow_core as flow
import flow_ops as ops
from flow_core import Flow, hooks
from flow_ops.testing import OPERATOR_CASES
from flow_testing import OperatorCase, TestSubscriber

CASES = [case for case in OPERATOR_CASES if case.kinds.isdisjoint(("loop", "processes"))]
"""Those in loops and processes have separate tests."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes ``case`` with each of them."""
    if "case" in metafunc.fixturenames:
        wanted: set[str] = set(getattr(metafunc.function, "kinds", ()))
        chosen = [each for each in CASES if wanted <= each.kinds]
        metafunc.parametrize("case", chosen, ids=str)


@pytest.fixture
def cases() -> dict[str, OperatorCase]:
    """All of them, by name."""
    return {str(case): case for case in CASES}


Made = Callable[[Flow[Any], Flow[Any]], Flow[Any]]


def _itself(made: Any) -> Any:
    return made


def _two_levels(other: Flow[Any]) -> Callable[[int], Flow[Any]]:
    return lambda n: other if n < OTHERS else flow.empty()


ITEMS = 2
"""The number of items of the first flow; the second has one."""
OTHERS = 10
"""The first item of the second flow."""
JOINED: dict[str, Made] = {
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


@pytest.fixture(params=sorted(JOINED))
def joined(request: pytest.FixtureRequest) -> Made:
    """A function that makes one flow of two."""
    return JOINED[request.param]


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
    """A source for any number of subscribers, which sends when the test says so."""

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


class TwoFlows:
    """Two flows that send when the test says so, an operator that joins them, and a subscriber."""

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


@pytest.fixture(params=JOINED)
def make(request: pytest.FixtureRequest) -> Callable[..., TwoFlows]:
    """A way to join two flows, with each operator that listens to a second one."""
    return partial(TwoFlows, JOINED[request.param])


class Refusing:
    """An executor that runs tasks inline, until it is shut down."""

    def __init__(self) -> None:
        self.open = True
        self.tasks = 0

    def submit(self, task: Callable[[], object]) -> Future[Any]:
        if not self.open:
            raise RuntimeError("cannot schedule new futures after shutdown")
        self.tasks += 1
        future: Future[Any] = Future()
        task()
        future.set_result(None)
        return future


@pytest.fixture
def refusing() -> Refusing:
    """An executor that can be shut down."""
    return Refusing()


@pytest.fixture
def dropped_unseen(dropped: object) -> Iterator[None]:
    """For tests that are about something else than what is dropped, and must not keep it."""
    with (
        hooks.dropped_errors.scoped("test", lambda _: None),
        hooks.dropped_items.scoped("test", lambda _: None),
    ):
        yield
