"""A flow that has ended lets go of everything, by reference counting alone."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from flow_core.protocols import CoreSubscriber, QueueSubscription
from flow_core.serial import SerialDrain
from flow_testing import (
    ENDINGS,
    OperatorCase,
    Payloads,
    Surroundings,
    VirtualClock,
    assert_released,
)


def inline(task: Any) -> None:
    task()


@contextmanager
def garbage() -> Iterator[list[object]]:
    """Return the objects of flows that only the garbage collector would find."""
    gc.collect(0)
    gc.freeze()  # to look at nothing else
    gc.disable()
    found: list[object] = []
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        gc.set_debug(0)
        found += [
            one
            for one in gc.garbage
            if isinstance(one, (CoreSubscriber, QueueSubscription, SerialDrain))
            and type(one).__module__.startswith("flow_")
            and ".testing" not in type(one).__module__
        ]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.unfreeze()
        gc.enable()


@pytest.mark.usefixtures("dropped_unseen")
def test_an_operator_lets_go_of_everything(case: OperatorCase) -> None:
    at = Surroundings(inline, VirtualClock())
    waits = "delayed" in case.kinds  # for a clock that stands still here

    def reached(ending: str) -> bool:
        return not (waits and ending.startswith(("completed", "failed", "cancelled in on_next")))

    assert_released(lambda payloads: case.apply(payloads.pushed(), at), only=reached)


@pytest.mark.usefixtures("dropped_unseen")
def test_an_operator_leaves_no_cycle(case: OperatorCase) -> None:
    with garbage() as found:
        for ending in ENDINGS:
            subscriber = ending.make()
            at = Surroundings(inline, VirtualClock())
            case.apply(Payloads(6, ending.fails).pushed(), at).subscribe(subscriber)
            if ending.name.startswith(("completed", "failed")):
                subscriber.request(100)
            else:
                ending.end(subscriber)
            if subscriber.error is not None:
                subscriber.error.__traceback__ = None
            if not subscriber.terminated:
                subscriber.cancel()
            del subscriber, at
    assert sorted({type(one).__name__ for one in found}) == []
