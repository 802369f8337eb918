"""Repositories that hold a value, and reservoirs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from threading import RLock
from typing import Any

import pytest

from flow_core.errors import NoneItemError
from flow_rxcompat.agera import Repository, Result, TestLoop, repositories, reservoirs
from flow_rxcompat.agera.protocols import Observable


def counted(observable: Observable) -> list[None]:
    updates: list[None] = []
    observable.add_updatable(lambda: updates.append(None))
    return updates


def test_a_static_repository_holds_its_value_and_never_updates() -> None:
    with TestLoop() as loop:
        fixed: Repository[int] = repositories.repository(42)
        updates = counted(fixed)
        loop.drain()
        assert (fixed.get(), updates) == (42, [])


@pytest.mark.checklist("A12")
def test_an_equal_value_is_not_a_change() -> None:
    with TestLoop() as loop:
        first, equal = [1], [1]
        lists = repositories.mutable_repository(first)
        updates = counted(lists)
        lists.accept(equal)
        loop.drain()
        assert updates == []
        assert lists.get() is first
        lists.accept([2])
        loop.drain()
        assert len(updates) == 1


class Curious:
    """A value whose equality looks at what holds it."""

    def __init__(self, look: Callable[[], object]) -> None:
        self.look = look

    def __eq__(self, other: object) -> bool:
        self.look()
        return False

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.checklist("A12")
def test_equality_may_look_at_the_repository() -> None:
    with TestLoop():
        values = repositories.mutable_repository(object())
        first, seen = values.get(), list[object]()
        curious = Curious(lambda: seen.append(values.get()))
        values.accept(curious)
        assert seen == [first]
        assert values.get() is curious


@pytest.mark.checklist("A12", "A14")
def test_three_accepts_in_one_turn_are_one_update_and_the_last_value() -> None:
    with TestLoop() as loop:
        numbers = repositories.mutable_repository(0)
        updates = counted(numbers)
        for n in (1, 2, 3):
            numbers.accept(n)
        loop.drain()
        assert (len(updates), numbers.get()) == (1, 3)


def test_there_and_back_in_one_turn_is_still_an_update() -> None:
    with TestLoop() as loop:
        names = repositories.mutable_repository("A")
        updates = counted(names)
        names.accept("B")
        names.accept("A")
        loop.drain()
        assert (len(updates), names.get()) == (1, "A")


def test_none_is_not_a_value() -> None:
    nothing: Any = None
    with TestLoop():
        with pytest.raises(NoneItemError):
            repositories.repository(nothing)
        with pytest.raises(NoneItemError):
            repositories.mutable_repository(nothing)
        with pytest.raises(NoneItemError):
            repositories.repository_with_initial_value(nothing)
        with pytest.raises(NoneItemError):
            repositories.mutable_repository(0).accept(nothing)
        with pytest.raises(NoneItemError):
            reservoirs.reservoir().accept(nothing)


def test_a_reservoir_gives_each_value_once_first_in_first_out() -> None:
    with TestLoop():
        words = reservoirs.reservoir_of(str)
        words.accept("one")
        words.accept("one")
        words.accept("two")
        got = [words.get().get() for _ in range(3)]
        assert got == ["one", "one", "two"]
        assert words.get() is Result.absent()


def test_a_reservoir_tells_of_the_first_value_of_what_is_left_and_not_of_being_empty() -> None:
    with TestLoop() as loop:
        numbers = reservoirs.reservoir_of(int)
        updates = counted(numbers)
        numbers.accept(1)
        loop.drain()
        assert len(updates) == 1
        numbers.accept(2)
        loop.drain()
        assert len(updates) == 1  # it was not empty
        assert numbers.get() == Result.success(1)
        loop.drain()
        assert len(updates) == 2  # one is left
        assert numbers.get() == Result.success(2)
        loop.drain()
        assert len(updates) == 2
        assert numbers.get().is_absent
        loop.drain()
        assert len(updates) == 2


def test_a_reservoir_that_is_not_empty_tells_when_it_is_activated() -> None:
    with TestLoop() as loop:
        numbers = reservoirs.reservoir_of(int)
        numbers.accept(1)
        loop.drain()
        updates = counted(numbers)
        loop.drain()
        assert len(updates) == 1


class Held:
    """A lock that knows whether it is held."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.times = 0
        self.held = False

    def __enter__(self) -> None:
        self.lock.acquire()
        self.times += 1
        self.held = True

    def __exit__(self, *_: object) -> None:
        self.held = False
        self.lock.release()


class Smallest:
    """Another queue: the smallest first, and no negative ones."""

    def __init__(self, lock: Held) -> None:
        self.heap: list[int] = []
        self.lock = lock

    def offer(self, value: int, /) -> bool:
        assert self.lock.held
        if value < 0:
            return False
        heappush(self.heap, value)
        return True

    def poll(self) -> int | None:
        assert self.lock.held
        return heappop(self.heap) if self.heap else None

    def is_empty(self) -> bool:
        assert self.lock.held
        return not self.heap


def test_a_queue_decides_what_it_takes_and_in_which_order_and_is_used_under_its_lock() -> None:
    lock = Held()
    with TestLoop() as loop:
        queue = Smallest(lock)
        numbers = reservoirs.reservoir(queue, lock=lock)
        updates = counted(numbers)
        numbers.accept(-1)
        loop.drain()
        assert updates == []
        for n in (3, 1, 2):
            numbers.accept(n)
        assert deque(numbers.get().get() for _ in range(3)) == deque([1, 2, 3])
