"""The points at which the explorer lets other threads come between, on each Python."""

from __future__ import annotations

import dis
import queue
import sys
import threading
from collections import Counter
from collections.abc import Callable
from threading import get_ident
from typing import Any, cast

import pytest

from flow_testing import TestSubscriber, publisher
from flow_testing.interleave import primitives, tracing
from flow_testing.interleave.scheduler import Point, Scheduler
from flow_testing.interleave.tracing import Tracer

pytestmark = [pytest.mark.interleave, pytest.mark.essential]

ONLY = {"BINARY_SUBSCR": range(14), "TO_BOOL": range(13, 99)}
"""Instructions that only these minor versions of Python have."""


class Recorded:
    """Stands for the scheduler, and counts where it would let others go first."""

    containers = None

    def __init__(self) -> None:
        self.ident = get_ident()
        self.seen: Counter[str] = Counter()

    def location(self, key: object, name: str, *, container: bool = False) -> object:
        return key

    def dynamic(self, operation: str, location: Any, *, writes: bool) -> Point:
        return Point(operation, location, writes=writes)

    def point(self, point: Point) -> None:
        self.seen[f"{'write' if point.writes else 'read'}: {point.operation}"] += 1


def points_of(action: Callable[[], object], *entries: str) -> dict[str, int]:
    """The points that `action` passes, and how often; `entries` are functions of the kit."""
    recorded = Recorded()
    of = {str(publisher.__file__): frozenset(entries)}
    tracer = Tracer(cast("Scheduler", recorded), frozenset({__file__}), "no file", of)
    tracer.start()
    try:
        action()
    finally:
        tracer.stop()
    return dict(recorded.seen)


class Shared:
    def __init__(self) -> None:
        self.field = 0  # of an object that nobody else has yet


shared = Shared()
total = 0


def accept(*items: object, **named: object) -> None:
    """Take anything."""


def by_index(box: list[int], low: int) -> None:
    accept(box[0])
    accept(box[low:])
    box[0] = 1
    box[low:] = [2, 3]
    del box[0]


def by_content(box: list[int], named: dict[str, int]) -> None:
    accept(1 in box, 2 not in box)
    for item in box:
        accept(item)
    accept([*box, 1], {*box, 1}, {**named})
    accept(*box)
    accept(b=1, **named)


def by_truth(box: list[int]) -> None:
    if box:
        accept()
    accept(not box)
    while not box:
        accept()


def by_field() -> None:
    shared.field = 1
    accept(shared.field)
    shared.field += 1
    del shared.field
    shared.__init__()  # type: ignore[misc]


def by_variable() -> None:
    global total
    cell = 0

    def increment() -> None:
        nonlocal cell
        cell += 1

    total = 1
    accept(total)
    total += 1
    increment()
    accept(cell)


def by_method(box: list[int]) -> None:
    box.append(1)
    box.pop()
    accept(len(box), list(box))


def by_generator() -> None:
    items = (item for item in (1, 2))
    next(items)
    items.send(None)
    items.close()


@pytest.mark.parametrize(
    ("action", "wanted"),
    [
        (
            lambda: by_index([0], 0),
            {
                "read: binary subscr": 1,
                "read: binary slice": 1,
                "write: store subscr": 1,
                "write: store slice": 1,
                "write: delete subscr": 1,
            },
        ),
        (
            lambda: by_content([0, 1], {"a": 1}),
            {
                "read: contains op": 2,
                "read: for iter": 3,
                "read: list extend": 1,
                "read: set update": 1,
                "read: dict update": 1,
                "read: call function ex": 2,
                "read: dict merge": 1,
            },
        ),
        (lambda: by_truth([1]), {"read: truth": 3}),
        (by_field, {"write: store field": 2, "read: load field": 2, "write: delete field": 1}),
        (
            by_variable,
            {
                "write: store total": 2,
                "read: load total": 2,
                "write: store cell": 2,
                "read: load cell": 2,
            },
        ),
        (
            lambda: by_method([0]),
            {"write: list.append": 1, "write: list.pop": 1, "read: len()": 1, "read: list()": 1},
        ),
        (
            by_generator,
            {
                "write: next()": 1,
                "read: for iter": 2,
                "write: generator.send": 1,
                "write: generator.close": 1,
            },
        ),
    ],
    ids=["index", "content", "truth", "field", "variable", "method", "generator"],
)
def test_an_effect_that_other_threads_can_see_is_a_point(
    action: Callable[[], object], wanted: dict[str, int]
) -> None:
    assert points_of(action) == wanted


def test_to_enter_a_function_of_the_kit_is_a_point() -> None:
    source, subscriber = publisher.TestPublisher[int](), TestSubscriber[int](0)
    source.subscribe(subscriber)
    seen = points_of(lambda: subscriber.request(1), "_requested")
    assert seen == {"write: enter _requested": 1}


@pytest.mark.parametrize(
    "name",
    sorted({*tracing._NAMED, *tracing._ON_CONTAINERS, *tracing._TESTS, "RESUME", "BINARY_OP"}),
)
def test_an_instruction_that_is_looked_for_exists(name: str) -> None:
    known = sys.version_info.minor in ONLY.get(name, range(99))
    assert (name in dis.opmap) == known, f"look for what has taken the place of {name}"


@pytest.mark.parametrize(
    "name",
    ["Lock", "RLock", "Event", "Condition", "Semaphore", "BoundedSemaphore", "SimpleQueue"],
)
def test_a_substitute_for_a_primitive_has_its_methods(name: str) -> None:
    original = vars(queue if name == "SimpleQueue" else threading)[name]()
    known = {method for method in dir(original) if not method.startswith("_")}
    of_old = {"acquire_lock", "release_lock", "locked_lock", "isSet", "notifyAll"}
    assert known - of_old <= set(dir(vars(primitives)[name]))
