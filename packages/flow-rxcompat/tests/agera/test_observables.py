"""Observables: which updatables are notified, when and on which loop, as by the Agera code."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flow_core.errors import NoneItemError
from flow_rxcompat.agera import (
    BaseObservable,
    IllegalStateError,
    TestLoop,
    UpdateDispatcher,
    current_loop,
    observables,
    repositories,
)


class Recorded(BaseObservable):
    """Knows when it was activated, and where."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[str] = []
        self.loops: list[object] = []

    def observable_activated(self) -> None:
        self.events.append("activated")
        self.loops.append(current_loop())

    def observable_deactivated(self) -> None:
        self.events.append("deactivated")
        self.loops.append(current_loop())


class Counter:
    """An updatable that counts."""

    def __init__(self) -> None:
        self.updates = 0

    def update(self) -> None:
        self.updates += 1


def watched() -> tuple[Recorded, Counter]:
    """An observable and the updatable that was added to it."""
    source, counter = Recorded(), Counter()
    source.add_updatable(counter)
    return source, counter


def update(loop: TestLoop, *sources: BaseObservable) -> None:
    """An update of each, in this turn; and then all turns that come of it."""
    for source in sources:
        source.dispatch_update()
    loop.drain()


@pytest.mark.checklist("A01")
def test_an_updatable_is_notified_of_an_update_in_a_later_turn() -> None:
    with TestLoop() as loop:
        source, counter = watched()
        source.dispatch_update()
        assert counter.updates == 0
        loop.drain()
        assert counter.updates == 1
        source.remove_updatable(counter)
        update(loop, source)
        assert counter.updates == 1


@pytest.mark.checklist("A01")
def test_updates_of_one_turn_are_one() -> None:
    with TestLoop() as loop:
        source, counter = watched()
        update(loop, *[source] * 1000)
        assert counter.updates == 1
        update(loop, source)
        assert counter.updates == 2


def test_an_updatable_that_two_observables_tell_in_one_turn_is_called_once() -> None:
    with TestLoop() as loop:
        (one, counter), other = watched(), Recorded()
        other.add_updatable(counter)
        update(loop, one, other)
        assert counter.updates == 1


def test_of_two_that_tell_it_one_may_be_removed_and_it_is_still_called() -> None:
    with TestLoop() as loop:
        (one, counter), other = watched(), Recorded()
        other.add_updatable(counter)
        one.dispatch_update()
        other.dispatch_update()
        assert loop.turn()  # UPDATE of one
        assert loop.turn()  # UPDATE of other
        one.remove_updatable(counter)
        loop.drain()
        assert counter.updates == 1


def test_one_that_is_removed_before_the_loop_runs_is_not_called() -> None:
    with TestLoop() as loop:
        source, counter, stays = Recorded(), Counter(), Counter()
        source.add_updatable(stays)
        source.add_updatable(counter)
        source.dispatch_update()
        loop.turn()  # it is about to be called
        source.remove_updatable(counter)
        loop.drain()
        assert (counter.updates, stays.updates) == (0, 1)


def test_the_last_removal_drops_the_update_that_is_pending() -> None:
    with TestLoop() as loop:
        source, counter = watched()
        source.dispatch_update()
        source.remove_updatable(counter)
        source.add_updatable(counter)
        loop.drain()
        assert counter.updates == 0
        update(loop, source)
        assert counter.updates == 1


def test_the_first_one_activates_at_once_on_its_own_loop() -> None:
    with TestLoop() as loop:
        source = Recorded()
        assert not source.is_active
        source.add_updatable(lambda: None)
        assert source.is_active
        assert source.events == ["activated"]
        assert source.loops == [loop]
        source.add_updatable(lambda: None)
        assert source.events == ["activated"]


def test_the_first_one_activates_by_a_message_from_another_loop() -> None:
    with TestLoop() as own:
        source = Recorded()
    with TestLoop() as other:
        source.add_updatable(lambda: None)
        other.drain()
        assert source.events == []
    own.drain()
    assert source.events == ["activated"]
    assert source.loops == [own]
    assert source.loop is own


def test_the_last_removal_deactivates_by_a_message() -> None:
    with TestLoop() as loop:
        source, counter = watched()
        source.remove_updatable(counter)
        assert source.events == ["activated"]
        loop.drain()
        assert source.events == ["activated", "deactivated"]


def test_add_remove_add_in_one_turn_activates_once_and_deactivates_never() -> None:
    with TestLoop() as loop:
        source, counter = watched()
        source.remove_updatable(counter)
        source.add_updatable(counter)
        loop.drain()
        assert source.events == ["activated"]
        source.remove_updatable(counter)
        loop.drain()
        assert source.events == ["activated", "deactivated"]


@pytest.mark.checklist("A06")
def test_the_same_updatable_cannot_be_added_twice() -> None:
    with TestLoop():
        source, counter = watched()
        with pytest.raises(IllegalStateError, match="already added"):
            source.add_updatable(counter)


@pytest.mark.checklist("A07")
def test_one_that_is_not_there_cannot_be_removed() -> None:
    with TestLoop():
        source, counter = Recorded(), Counter()
        with pytest.raises(IllegalStateError, match="not added"):
            source.remove_updatable(counter)
        source.add_updatable(counter)
        source.remove_updatable(counter)
        with pytest.raises(IllegalStateError, match="not added"):
            source.remove_updatable(counter)


@pytest.mark.checklist("A09", "X07")
def test_updatables_are_known_by_identity_not_equality() -> None:
    class Equal(Counter):
        def __eq__(self, other: object) -> bool:
            return isinstance(other, Equal)

        def __hash__(self) -> int:
            return 1

    with TestLoop() as loop:
        source, one, other = Recorded(), Equal(), Equal()
        source.add_updatable(one)
        source.add_updatable(other)
        source.remove_updatable(one)
        update(loop, source)
        assert (one.updates, other.updates) == (0, 1)


def test_both_need_a_loop() -> None:
    with TestLoop():
        source, counter = Recorded(), Counter()
    with pytest.raises(IllegalStateError, match="Can only be added on a Looper thread"):
        source.add_updatable(counter)
    with pytest.raises(IllegalStateError, match="Can only be removed on a Looper thread"):
        source.remove_updatable(counter)


def test_none_is_not_an_updatable() -> None:
    nothing: Any = None
    with TestLoop():
        source = Recorded()
        with pytest.raises(NoneItemError):
            source.add_updatable(nothing)
        with pytest.raises(NoneItemError):
            source.remove_updatable(nothing)
        with pytest.raises(TypeError, match="update"):
            source.add_updatable(nothing or 42)


def test_an_update_may_come_from_any_thread_and_is_called_on_the_loop_of_each() -> None:
    with TestLoop() as own:
        source = Recorded()
    seen: list[object] = []
    loops = [TestLoop(), TestLoop()]
    for loop in loops:
        with loop:
            source.add_updatable(lambda: seen.append(current_loop()))
    own.drain()
    thread = threading.Thread(target=source.dispatch_update)
    thread.start()
    thread.join()
    own.drain()
    assert seen == []
    loops[1].drain()
    loops[0].drain()
    assert seen == [loops[1], loops[0]]


# -- what is made of observables


def test_a_dispatcher_passes_updates_on() -> None:
    with TestLoop() as loop:
        dispatcher, counter = observables.update_dispatcher(), Counter()
        dispatcher.add_updatable(counter)
        thread = threading.Thread(target=dispatcher.update)
        thread.start()
        thread.join()
        loop.drain()
        assert counter.updates == 1


def test_an_activation_handler_is_called_for_both_edges_with_the_dispatcher() -> None:
    class Handler:
        def __init__(self) -> None:
            self.heard: list[tuple[str, UpdateDispatcher, object]] = []

        def observable_activated(self, caller: UpdateDispatcher, /) -> None:
            self.heard.append(("activated", caller, current_loop()))

        def observable_deactivated(self, caller: UpdateDispatcher, /) -> None:
            self.heard.append(("deactivated", caller, current_loop()))

    with TestLoop() as own:
        handler = Handler()
        dispatcher = observables.update_dispatcher(handler)
    one, other = Counter(), Counter()
    with TestLoop():
        dispatcher.add_updatable(one)
        dispatcher.add_updatable(other)
    own.drain()
    with TestLoop():
        dispatcher.remove_updatable(one)
        dispatcher.remove_updatable(other)
    own.drain()
    assert handler.heard == [("activated", dispatcher, own), ("deactivated", dispatcher, own)]


def test_an_active_composite_is_added_to_all_and_notified_by_all() -> None:
    with TestLoop() as loop:
        one, other, counter = Recorded(), Recorded(), Counter()
        both = observables.composite_observable(one, other)
        both.add_updatable(counter)
        assert (one.events, other.events) == (["activated"], ["activated"])
        update(loop, one)
        update(loop, other)
        assert counter.updates == 2
        both.remove_updatable(counter)
        loop.drain()
        assert (one.events[-1], other.events[-1]) == ("deactivated", "deactivated")


def test_nested_composites_are_flattened_and_what_is_there_twice_is_there_once() -> None:
    with TestLoop() as loop:
        one, other = Recorded(), Recorded()
        inner = observables.composite_observable(one, other)
        whole = observables.composite_observable(one, inner, one, other)
        whole.add_updatable(lambda: None)  # twice the same would raise
        assert one.events == ["activated"]
        assert not inner.is_active
        single = observables.composite_observable(inner)
        single.add_updatable(lambda: None)
        assert not inner.is_active
        loop.drain()


def test_a_composite_with_a_window_is_not_flattened() -> None:
    with TestLoop():
        one = Recorded()
        slow = observables.per_millisecond_observable(200, one)
        observables.composite_observable(slow, one).add_updatable(lambda: None)
        assert slow.is_active


def test_a_composite_of_nothing_is_never_updated() -> None:
    with TestLoop() as loop:
        counter = Counter()
        observables.composite_observable().add_updatable(counter)
        loop.drain()
        assert counter.updates == 0


def test_a_condition_drops_updates_that_come_while_it_does_not_apply() -> None:
    with TestLoop() as loop:
        source, counter, open_ = Recorded(), Counter(), [False]
        guarded = observables.conditional_observable(lambda: open_[0], source)
        guarded.add_updatable(counter)
        update(loop, source)
        assert counter.updates == 0
        open_[0] = True
        update(loop, source)
        assert counter.updates == 1
        guarded.remove_updatable(counter)
        loop.drain()
        assert source.events == ["activated", "deactivated"]


def test_three_updates_in_a_window_are_one_at_once_and_one_at_its_end() -> None:
    with TestLoop() as loop:
        source, counter = Recorded(), Counter()
        slow = observables.per_millisecond_observable(200, source)
        slow.add_updatable(counter)
        update(loop, source)
        assert counter.updates == 1
        for _ in range(2):
            loop.advance_by(0.05)
            update(loop, source)
        assert counter.updates == 1
        loop.advance_by(0.099)
        assert counter.updates == 1
        loop.advance_by(0.001)
        assert counter.updates == 2
        loop.advance_by(10)
        assert counter.updates == 2


def test_per_loop_coalesces_as_all_do() -> None:
    with TestLoop() as loop:
        source, counter = Recorded(), Counter()
        observables.per_loop_observable(source).add_updatable(counter)
        update(loop, source, source)
        assert counter.updates == 1


@pytest.mark.checklist("A13")
def test_created_on_one_loop_and_accepted_on_another_thread_it_updates_on_the_first() -> None:
    with TestLoop() as loop:
        numbers = repositories.mutable_repository(0)
        seen: list[object] = []
        numbers.add_updatable(lambda: seen.append((numbers.get(), current_loop())))
    thread = threading.Thread(target=lambda: numbers.accept(1))
    thread.start()
    thread.join()
    assert seen == []
    loop.drain()
    assert seen == [(1, loop)]


@given(st.lists(st.sampled_from(["add 0", "add 1", "remove 0", "remove 1", "update", "drain"])))
def test_whatever_is_done_it_is_as_a_plain_model_says(actions: list[str]) -> None:
    there: set[int] = set()
    called = [0, 0]
    edges: list[str] = []
    active = pending = False
    with TestLoop() as loop:
        source, counters = Recorded(), [Counter(), Counter()]
        for action in [*actions, "drain"]:
            what, _, number = action.partition(" ")
            if what == "update":
                source.dispatch_update()
                pending = True
            elif what == "drain":
                loop.drain()
                for index in there if pending else ():
                    called[index] += 1
                pending = False
                if active and not there:
                    active = False
                    edges.append("deactivated")
            else:
                index = int(number)
                adding = what == "add"
                act = source.add_updatable if adding else source.remove_updatable
                if adding is (index in there):
                    with pytest.raises(IllegalStateError):
                        act(counters[index])
                    continue
                act(counters[index])
                there ^= {index}
                if adding and not active:
                    active = True
                    edges.append("activated")
                pending = pending and bool(there)
        assert [counter.updates for counter in counters] == called
        assert source.events == edges
        assert source.is_active is bool(there)
