"""`AtomicReference`: a value that is replaced as a whole."""

from __future__ import annotations

import weakref

import pytest

from flow_multicast.connectables.atomic_reference import AtomicReference
from flow_testing.interleave import Scenario, explore_all
from flow_testing.reentry import Reentry, explore_reentry


@pytest.mark.interleave
def test_of_changes_at_the_same_time_none_is_lost_and_all_befores_differ() -> None:
    def body() -> Scenario:
        count = AtomicReference(0)
        seen: list[int] = []

        def add() -> None:
            before, after = count.update(lambda n: n + 1)
            assert after == before + 1
            seen.append(before)

        def check() -> None:
            assert count.get() == 3
            assert sorted(seen) == [0, 1, 2]

        return Scenario(add, add, add, check=check)

    assert explore_all(body, modules=[AtomicReference.__module__, __name__]).exhausted


def test_a_change_that_comes_in_the_midst_of_another_is_not_lost() -> None:
    def body() -> Reentry:
        names = AtomicReference[tuple[str, ...]](())

        def add(name: str) -> None:
            names.update(lambda all_: (*all_, name))

        return Reentry(
            lambda: add("at work"),
            lambda: add("in between"),
            lambda: None if {*names.get()} == {"at work", "in between"} else pytest.fail("lost"),
        )

    assert explore_reentry(body, modules=[AtomicReference.__module__, __name__]) > 10


def test_an_update_that_returns_the_same_object_changes_nothing() -> None:
    value = [1]
    atom = AtomicReference(value)
    before, after = atom.update(lambda same: same)
    assert before is after is value is atom.get()


def test_values_that_were_replaced_are_let_go_of() -> None:
    class Value:
        pass

    atom = AtomicReference(Value())
    first = weakref.ref(atom.get())
    atom.update(lambda _: Value())
    assert first() is None
