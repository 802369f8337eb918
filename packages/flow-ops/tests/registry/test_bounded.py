"""Everything is bounded: an operator holds few items, however slow its subscriber is."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

import flow_core as flow
from flow_ops import _plugin
from flow_ops.testing import OPERATOR_CASES, WITHOUT_CASE
from flow_testing import TIMEOUT_S, OperatorCase, Surroundings, TestSubscriber, VirtualClock

ITEMS = 5_000
"""Items of a flow whose subscriber takes one at a time."""
PUSHED = int(os.environ.get("FLOW_SOAK_ITEMS", "100000"))
"""Items of a source that does not wait; ``nox -s soak`` takes more."""


class Item:
    """An item that is counted as long as it lives."""

    __slots__ = ("_living", "n")

    living: ClassVar[dict[int, int]] = {}
    """Those of the present test, by their id."""
    most = made = 0

    def __init__(self, n: int) -> None:
        self.n = n
        self._living = Item.living
        self._living[id(self)] = n
        Item.made += 1
        Item.most = max(Item.most, len(Item.living))

    def __del__(self) -> None:  # in any thread
        self._living.pop(id(self), None)

    def __int__(self) -> int:
        return self.n

    __index__ = __int__


@pytest.fixture(autouse=True)
def _count_anew() -> None:
    Item.living = {}
    Item.most = Item.made = 0


def items(count: int) -> Iterator[Item]:
    for n in range(count):  # no name here holds an item
        yield Item(n)


def inline(task: Any) -> None:
    task()


@pytest.mark.usefixtures("dropped_unseen")
@pytest.mark.parametrize("hidden", [False, True], ids=["fused", "hidden"])
def test_a_subscriber_that_takes_one_at_a_time_makes_nothing_pile_up(
    case: OperatorCase, hidden: bool
) -> None:
    upstream = flow.from_iterable(items(ITEMS))
    if hidden:
        upstream = upstream.hide()
    made = case.apply(upstream, Surroundings(inline, VirtualClock()))
    subscriber = Forgetting(1)
    made.subscribe(subscriber)
    for _ in range(ITEMS):
        if subscriber.ended:
            break
        subscriber.subscription.request(1)
    assert Item.most <= case.holds
    subscriber.subscription.cancel()
    if subscriber.error is not None:
        subscriber.error.__traceback__ = None  # its frames lead to all that was at work
    del made, upstream, subscriber
    given_up_s = time.monotonic() + TIMEOUT_S
    while len(Item.living) > 1 and time.monotonic() < given_up_s:
        time.sleep(0.001)  # a thread that has just looked at the flow lets go of it
    assert len(Item.living) <= 1  # the last one, which a frame of the source may hold


class Forgetting(TestSubscriber[Any]):
    """Keeps no item."""

    __slots__ = ("count",)

    def __init__(self, request: int) -> None:
        super().__init__(request)
        self.count = 0

    def on_next(self, item: Any, /) -> None:
        self.count += 1

    @property
    def ended(self) -> bool:
        return self.terminated


@pytest.mark.usefixtures("dropped_unseen")
def test_a_subscriber_that_takes_nothing_makes_nothing_pile_up(case: OperatorCase) -> None:
    upstream = flow.from_iterable(items(PUSHED)).hide()
    made = case.apply(upstream, Surroundings(inline, VirtualClock()))
    subscriber = Forgetting(0)
    made.subscribe(subscriber)
    assert Item.most <= case.holds
    if "endless" in case.kinds and not subscriber.ended:
        assert Item.made == PUSHED, "it takes all that comes, or should not be called endless"
    subscriber.subscription.cancel()


def test_every_operator_and_source_has_a_case_or_says_why_not() -> None:
    plugin = _plugin
    registered = {
        record.name for record in itertools.chain(plugin.flow_operators(), plugin.flow_sources())
    }
    tried = {case.registered for case in OPERATOR_CASES}
    assert sorted(registered - tried - WITHOUT_CASE.keys()) == [], "add it to flow_ops/testing.py"
    assert sorted(WITHOUT_CASE.keys() & tried) == []
    assert sorted(tried - registered) == [], "not registered"
