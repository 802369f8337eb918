"""The loops on which updates are delivered."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from flow_rxcompat.agera import (
    AsyncioLoop,
    IllegalStateError,
    MutableRepository,
    TestLoop,
    ThreadLoop,
    current_loop,
    observables,
    repositories,
)
from flow_rxcompat.agera.handlers import IdentityMultimap, Message, WorkerHandler, worker_handler
from flow_testing import Drops


def test_a_thread_without_a_loop_has_none() -> None:
    assert current_loop() is None


def test_the_innermost_block_is_the_current_loop() -> None:
    with TestLoop() as outer:
        with TestLoop() as inner:
            assert current_loop() is inner
            assert not outer.is_current
        assert outer.is_current
    assert current_loop() is None


def test_a_test_loop_runs_posted_messages_in_order_and_only_on_demand() -> None:
    loop, seen = TestLoop(), list[str]()

    def first() -> None:
        seen.append("first")
        assert loop.is_current
        loop.post(lambda: seen.append("posted within"))

    loop.post(first)
    loop.post(lambda: seen.append("second"))
    assert (seen, loop.pending) == ([], 2)
    loop.drain()
    assert (seen, loop.pending) == (["first", "second", "posted within"], 0)


def test_a_turn_runs_one_message() -> None:
    loop, seen = TestLoop(), list[int]()
    loop.post(lambda: seen.append(1))
    loop.post(lambda: seen.append(2))
    assert loop.turn()
    assert seen == [1]
    assert loop.turn()
    assert not loop.turn()


def test_a_message_that_was_taken_back_takes_no_turn() -> None:
    with TestLoop() as loop:
        source, calls = observables.update_dispatcher(), list[int]()

        def update() -> None:
            calls.append(1)

        source.add_updatable(update)
        source.remove_updatable(update)
        source.add_updatable(update)  # takes back that the last one was removed
        source.update()
        assert loop.turn()
        assert loop.turn()  # the update, and the call that it makes
        assert calls == [1]
        assert not loop.turn()


def test_a_delay_passes_when_the_time_is_advanced() -> None:
    loop, seen = TestLoop(), list[float]()
    loop.post(lambda: seen.append(loop.now()), 0.2)
    loop.post(lambda: seen.append(loop.now()), 0.1)
    loop.drain()
    assert seen == []
    loop.advance_by(0.15)
    assert seen == [0.1]
    loop.advance_by(1)
    assert (seen, loop.now()) == ([0.1, 0.2], 1.15)
    with pytest.raises(ValueError, match="forward"):
        loop.advance_by(-1)


def test_an_error_of_a_message_is_raised_by_the_drain_and_the_other_messages_stay() -> None:
    loop, seen = TestLoop(), list[int]()

    def fails() -> None:
        raise LookupError("in the loop")

    loop.post(fails)
    loop.post(lambda: seen.append(1))
    with pytest.raises(LookupError, match="in the loop"):
        loop.drain()
    assert current_loop() is None
    loop.drain()
    assert seen == [1]


def test_an_asyncio_loop_is_the_loop_of_its_thread_and_always_the_same() -> None:
    async def main() -> list[str]:
        first = current_loop()
        assert isinstance(first, AsyncioLoop)
        assert first is current_loop()
        seen: list[str] = []
        over = asyncio.Event()
        numbers = repositories.mutable_repository(0)
        assert numbers.get() == 0

        def update() -> None:
            assert current_loop() is first
            seen.append(f"{numbers.get()}")
            over.set()

        numbers.add_updatable(update)
        other = threading.Thread(target=lambda: numbers.accept(1))
        other.start()
        await asyncio.wait_for(over.wait(), 5)
        other.join()
        numbers.remove_updatable(update)
        return seen

    assert asyncio.run(main()) == ["1"]


def test_a_delay_on_an_asyncio_loop() -> None:
    async def main() -> None:
        loop = current_loop()
        assert loop is not None
        over = asyncio.Event()
        before = loop.now()
        loop.post(over.set, 0.01)
        await asyncio.wait_for(over.wait(), 5)
        assert loop.now() - before >= 0.009

    asyncio.run(main())


def test_a_message_to_a_loop_that_is_closed_is_lost() -> None:
    async def main() -> MutableRepository[int]:
        numbers = repositories.mutable_repository(0)
        numbers.add_updatable(lambda: pytest.fail("there is no loop"))
        return numbers

    numbers = asyncio.run(main())
    numbers.accept(1)
    assert numbers.get() == 1


def test_a_thread_loop_runs_in_its_own_thread() -> None:
    with ThreadLoop("mine") as loop:
        assert loop.call(lambda: threading.current_thread().name) == "mine"
        assert loop.call(lambda: current_loop() is loop)
        done = threading.Event()
        loop.post(done.set, 0.001)
        assert done.wait(5)


def test_a_message_posted_to_a_thread_loop_after_its_stop_never_runs() -> None:
    loop, ran, stopped = ThreadLoop(), list[str](), threading.Event()

    def first() -> None:
        ran.append("first")
        loop.post(lambda: ran.append("due"))
        loop.stop()
        loop.post(lambda: ran.append("late"))
        stopped.set()

    loop.post(first)
    assert stopped.wait(5)
    loop.stop()
    assert ran == ["first", "due"]


def test_a_thread_loop_passes_on_what_a_call_raises_and_drops_what_a_message_raises(
    drops: Drops,
) -> None:
    def fails() -> None:
        raise LookupError("there")

    with ThreadLoop() as loop:
        with pytest.raises(LookupError, match="there"):
            loop.call(fails)
        loop.post(fails)
        assert loop.call(lambda: "it goes on") == "it goes on"
        with pytest.raises(IllegalStateError, match="its thread"):
            loop.call(lambda: loop.call(lambda: None))
    assert [str(error) for error in drops.take_errors()] == ["there"]
    with pytest.raises(IllegalStateError, match="stopped"):
        loop.call(lambda: None)


@pytest.mark.parametrize(
    "make",
    [
        lambda: repositories.mutable_repository(0),
        lambda: repositories.repository(0),
        lambda: repositories.repository_with_initial_value(0),
        observables.update_dispatcher,
        observables.composite_observable,
        lambda: observables.conditional_observable(lambda: True),
        lambda: observables.per_loop_observable(),
        lambda: observables.per_millisecond_observable(1),
        worker_handler,
    ],
)
def test_nothing_is_made_without_a_loop(make: Callable[[], object]) -> None:
    with pytest.raises(IllegalStateError, match="on a Looper thread"):
        make()


def test_a_loop_has_one_handler_as_long_as_it_is_used() -> None:
    with TestLoop() as loop:
        first = worker_handler()
        assert first is worker_handler()
        assert first.loop is loop
    with TestLoop():
        assert worker_handler() is not first


def test_a_message_is_taken_back_for_one_target_only() -> None:
    loop, seen = TestLoop(), list[str]()
    handler = WorkerHandler(loop)
    one, other = object(), object()
    handler.send(Message.UPDATE, one, lambda: seen.append("one"))
    handler.send(Message.UPDATE, other, lambda: seen.append("other"))
    handler.send(Message.FIRST_ADDED, one, lambda: seen.append("added"))
    handler.remove(Message.UPDATE, one)
    assert not handler.has(Message.UPDATE, one)
    assert handler.has(Message.UPDATE, other)
    loop.drain()
    assert seen == ["other", "added"]
    assert not handler.has(Message.UPDATE, other)


def test_a_message_that_is_sent_twice_arrives_twice() -> None:
    loop, seen = TestLoop(), list[str]()
    handler, one = WorkerHandler(loop), object()
    for _ in range(2):
        handler.send(Message.UPDATE, one, lambda: seen.append("one"))
    assert loop.turn()
    assert handler.has(Message.UPDATE, one)
    loop.drain()
    assert seen == ["one", "one"]


def test_a_multimap_knows_keys_and_values_by_identity() -> None:
    pairs: IdentityMultimap[list[int], list[int]] = IdentityMultimap()
    one, equal, token = [1], [1], [2]
    assert pairs.add(one, token)
    assert not pairs.add(one, [2])
    assert pairs.add(equal, token)
    pairs.remove_pair(one, token)
    assert pairs.remove_key(one)
    assert not pairs.remove_key(one)
    pairs.remove_pair(equal, token)
    assert not pairs.remove_key(equal)
