"""An asyncio loop that is closed under a running flow: one error, and no thread waits for ever."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow, FlowError, LoopEndedError, RejectedExecutionError
from flow_ops import map_concurrent, observe_on, subscribe_on
from flow_testing import TestPublisher, TestSubscriber

pytestmark = pytest.mark.usefixtures("nothing_left")

WAIT_S = 20
CLOSED = "event loop is closed"


class Loop:
    """A loop whose turns the test makes; it is closed in the end."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        # What is destroyed while it waits is logged by asyncio as an error; that is its right.
        self.loop.set_exception_handler(lambda _, __: None)

    def turn(self, *coroutines: Any) -> None:
        """Let the loop run until nothing more happens at once."""

        async def turns() -> None:
            for _ in range(20):
                await asyncio.sleep(0)

        self.started = [self.loop.create_task(one) for one in coroutines]
        self.loop.run_until_complete(turns())
        del self.started

    def close(self) -> None:
        self.loop.close()


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop()
    yield made
    if not made.loop.is_closed():
        made.close()
    del made
    gc.collect()


def until(condition: Callable[[], object]) -> bool:
    done = threading.Event()
    for _ in range(WAIT_S * 100):
        if condition():
            return True
        done.wait(0.01)
    return False


# -- consumers in the loop


async def take(source: Flow[int], into: list[int]) -> None:
    async for n in source:
        into.append(n)  # noqa: PERF401 - what came before a failure counts


async def only(source: Flow[int], into: list[int]) -> None:
    into.append(await source)


@pytest.mark.parametrize("consume", [take, only], ids=["async for", "await"])
def test_the_upstream_of_a_consumer_in_a_loop_is_cancelled(
    consume: Any, loop: Loop, drops: Any
) -> None:
    """The error can go to the hook only, and that happens without another signal."""
    source = TestPublisher[int]()
    got: list[int] = []
    loop.turn(consume(Flow(source), got))
    source.assert_subscribed()
    source.next(1)
    loop.turn()
    loop.close()
    assert until(lambda: source.cancelled)
    assert until(lambda: drops.errors)
    assert [type(error) for error in drops.errors] == [LoopEndedError]
    assert CLOSED in str(drops.errors[0])


def test_items_that_wait_for_a_consumer_in_a_closed_loop_go_to_the_hook(
    loop: Loop, drops: Any
) -> None:
    source = Heedless()
    got: list[int] = []
    loop.turn(take(Flow(source), got))
    source.subscriber.on_next(1)
    source.subscriber.on_next(2)
    loop.close()
    assert until(lambda: source.cancels)
    source.subscriber.on_next(3)
    late = ValueError("late")
    source.subscriber.on_error(late)
    assert until(lambda: len(drops.errors) == 2)
    assert got == []
    assert drops.items == [1, 2, 3]
    assert sorted(type(error).__name__ for error in drops.errors) == [
        "LoopEndedError",
        "ValueError",
    ]


class Heedless:
    """A source that continues when it is cancelled, as one on its way may."""

    def __init__(self) -> None:
        self.subscriber: Any = None
        self.cancels = 0

    def subscribe(self, subscriber: Any, /) -> None:
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, _: int, /) -> None: ...

    def cancel(self) -> None:
        self.cancels += 1


def test_a_consumer_whose_loop_ends_properly_reports_no_error(drops: Any) -> None:
    source = TestPublisher[int]()

    async def main() -> None:
        task = asyncio.ensure_future(take(Flow(source), []))
        await asyncio.sleep(0)
        source.next(1)
        del task

    asyncio.run(main())  # which cancels what still runs
    source.assert_cancelled()
    assert drops.errors == []


# -- sources in the loop


def test_a_thread_that_waits_for_an_async_iterable_gets_the_error(loop: Loop) -> None:
    """It would wait for ever, as the iterable can never continue."""
    waiting = threading.Event()

    async def items() -> AsyncIterator[int]:
        yield 1
        waiting.set()
        await asyncio.Event().wait()

    raised: list[BaseException] = []
    got: list[int] = []

    def iterate() -> None:
        try:
            got.extend(flow.from_async_iterable(items(), loop=loop.loop))
        except FlowError as error:
            raised.append(error)

    thread = threading.Thread(target=iterate)
    thread.start()
    while not waiting.is_set():
        loop.turn()
    loop.close()
    thread.join(WAIT_S)
    assert not thread.is_alive()
    assert CLOSED in str(raised.pop())


@pytest.mark.parametrize("when", ["before it has begun", "while it waits for demand"])
def test_a_flow_of_an_async_iterable_fails(loop: Loop, when: str) -> None:
    async def items() -> AsyncIterator[int]:
        yield 1
        yield 2

    subscriber = TestSubscriber[int](1)
    flow.from_async_iterable(items(), loop=loop.loop).subscribe(subscriber)
    if when == "while it waits for demand":
        loop.turn()
        subscriber.assert_items(1)
    loop.close()
    subscriber.await_terminal(WAIT_S)
    assert isinstance(subscriber.error, FlowError)
    subscriber.assert_error_message(CLOSED)
    subscriber.request(5)
    subscriber.cancel()
    subscriber.assert_rules_kept()


# -- operators in the loop


async def for_ever(_: int) -> int:
    await asyncio.Event().wait()
    return 0


async def later(n: int) -> int:
    await asyncio.sleep(0)
    return n


@pytest.mark.parametrize("when", ["before it has begun", "while coroutines wait"])
def test_map_concurrent_fails(loop: Loop, when: str) -> None:
    source = TestPublisher[int]()
    subscriber = TestSubscriber[int]()
    Flow(source).pipe(map_concurrent(for_ever, 3, loop=loop.loop)).subscribe(subscriber)
    if when == "while coroutines wait":
        loop.turn()
    source.next(1, 2)
    if when == "while coroutines wait":
        loop.turn()
    loop.close()
    subscriber.await_terminal(WAIT_S)
    assert isinstance(subscriber.error, FlowError)
    subscriber.assert_error_message(CLOSED)
    subscriber.assert_no_items()
    source.assert_cancelled()


def test_results_that_wait_in_map_concurrent_go_to_the_hook(loop: Loop, drops: Any) -> None:
    source = TestPublisher[int]()
    subscriber = TestSubscriber[int](1)
    Flow(source).pipe(map_concurrent(later, 3, loop=loop.loop)).subscribe(subscriber)
    loop.turn()
    source.next(1, 2)
    loop.turn()
    subscriber.assert_items(1)
    loop.close()
    subscriber.await_terminal(WAIT_S).assert_error_message(CLOSED)
    assert drops.items == [2]
    assert drops.errors == []


@pytest.mark.parametrize("operator", [observe_on, subscribe_on])
def test_an_operator_whose_task_the_loop_throws_away_fails(operator: Any, loop: Loop) -> None:
    """The task was taken, and will never run: nothing else would report it."""
    subscriber = TestSubscriber[int]()
    flow.range(5).hide().pipe(operator(loop.loop.call_soon_threadsafe)).subscribe(subscriber)
    subscriber.assert_no_items()
    loop.close()
    subscriber.await_terminal(WAIT_S).assert_failure(RejectedExecutionError)
    subscriber.assert_error_message("as a closed event loop does")


def test_an_operator_that_was_cancelled_before_says_nothing(loop: Loop, drops: Any) -> None:
    subscriber = TestSubscriber[int]()
    call = loop.loop.call_soon_threadsafe
    flow.range(5).hide().pipe(observe_on(call)).subscribe(subscriber)
    subscriber.cancel()
    loop.close()
    assert not subscriber.terminated
    assert drops.errors == []


def test_observe_on_a_loop_that_was_closed_in_the_middle_fails_with_the_next_item(
    loop: Loop, drops: Any
) -> None:
    source = TestPublisher[int]()
    subscriber = TestSubscriber[int]()
    Flow(source).pipe(observe_on(loop.loop.call_soon_threadsafe)).subscribe(subscriber)
    source.next(1)
    loop.turn()
    subscriber.assert_items(1)
    loop.close()
    source.next(2)
    subscriber.await_terminal(WAIT_S).assert_failure(RejectedExecutionError, 1)
    source.assert_cancelled()
    assert drops.items == [2]
