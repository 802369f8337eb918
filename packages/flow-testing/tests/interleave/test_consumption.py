"""The consumers of items of a flow, under every schedule within the bound."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine, Generator, Hashable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any

import pytest

import flow_core as flow
from flow_core.protocols import Subscriber
from flow_core.subscribers import CallbackSubscriber
from flow_core.subscribers import _futures as futures
from flow_core.subscribers._awaiting import LoopSubscriber
from flow_core.subscribers._blocking import iterate_blocking
from flow_testing import Drops, TestPublisher
from flow_testing.interleave import Body, Report, Scenario, explore_all, step

pytestmark = [pytest.mark.interleave, pytest.mark.essential]


def exhaust(body: Body, expect: Collection[Hashable] | None = None) -> Report:
    return explore_all(body, modules=["flow_core", __name__], expect=expect)


def until(wanted: Callable[[], object]) -> None:
    """Wait, virtual second after virtual second: until no other thread can continue."""
    while not wanted():
        time.sleep(1)


# -- blocking iteration


@pytest.mark.parametrize("prefetch", [None, 1, 4])
def test_an_iterating_thread_asks_for_more_and_gets_all(prefetch: int | None) -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        seen: list[int] = []

        def send() -> None:
            for item in (1, 2, 3):
                until(lambda: source.outstanding)
                source.next(item)
            source.complete()

        def check() -> None:
            assert seen == [1, 2, 3]

        return Scenario(lambda: seen.extend(iterate_blocking(source, prefetch)), send, check=check)

    exhaust(body)


def test_an_iterating_thread_that_leaves_cancels_whatever_is_sent() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()

        def leave() -> None:
            iterator: Any = flow.Flow(source).iterate(prefetch=2)
            assert next(iterator) == 1
            iterator.close()

        def send() -> None:
            until(lambda: source.outstanding)
            source.next(1, 2)

        return Scenario(leave, send, check=source.assert_cancelled)

    exhaust(body)


def test_an_iterating_thread_gets_what_came_before_the_error() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        error = ValueError("lost")
        seen: list[object] = []

        def iterate() -> None:
            try:
                for item in flow.Flow(source).iterate(prefetch=4):
                    seen.append(item)
                    step()
            except ValueError as raised:
                seen.append(raised)

        def send() -> None:
            until(lambda: source.outstanding)
            source.next(1)
            source.error(error)

        def check() -> None:
            assert seen == [1, error]

        return Scenario(iterate, send, check=check)

    exhaust(body)


# -- asyncio


class Loop:
    """As much of an event loop as runs one coroutine, in the thread that calls `run`."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], object]] = SimpleQueue()

    def get_debug(self) -> bool:
        return False

    def create_future(self) -> asyncio.Future[Any]:
        loop: Any = self  # the part of a loop that is used
        return asyncio.Future[Any](loop=loop)

    def call_soon(self, call: Callable[..., object], *arguments: object, context: object) -> None:
        self._calls.put(lambda: call(*arguments))

    def call_soon_threadsafe(self, call: Callable[..., object], *arguments: object) -> None:
        self._calls.put(lambda: call(*arguments))

    def run(self, coroutine: Coroutine[Any, None, Any]) -> Any:
        while True:
            try:
                waited: Any = coroutine.send(None)
            except StopIteration as stop:
                return stop.value
            while not waited.done():
                self._calls.get()()


def awaiting(prefetch: int | None) -> tuple[Loop, LoopSubscriber[int]]:
    loop: Any = Loop()
    return loop, LoopSubscriber(loop, prefetch)


async def take_all(subscriber: LoopSubscriber[int]) -> list[int]:
    items: list[int] = []
    while (item := await subscriber.take()) is not None:
        items.append(item)
    return items


@pytest.mark.parametrize("prefetch", [None, 1, 4])
def test_a_coroutine_is_woken_for_each_item_and_for_the_end(prefetch: int | None) -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        loop, subscriber = awaiting(prefetch)
        source.subscribe(subscriber)
        items: list[int] = []

        def send() -> None:
            for item in (1, 2):
                until(lambda: source.outstanding)
                source.next(item)
            source.complete()

        def check() -> None:
            assert items == [1, 2]

        return Scenario(lambda: items.extend(loop.run(take_all(subscriber))), send, check=check)

    exhaust(body)


def test_a_coroutine_is_woken_for_an_error() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        loop, subscriber = awaiting(4)
        source.subscribe(subscriber)
        error = ValueError("lost")
        raised: list[Exception] = []

        def take() -> None:
            try:
                loop.run(subscriber.take())
            except ValueError as caught:
                raised.append(caught)

        def check() -> None:
            assert raised == [error]

        return Scenario(take, lambda: source.error(error), check=check)

    exhaust(body)


def test_a_coroutine_is_woken_by_a_loop_that_pushes() -> None:
    def body() -> Scenario:
        loop, subscriber = awaiting(2)
        items: list[int] = []
        pushed = flow.range(3).hide()

        def check() -> None:
            assert items == [0, 1, 2]

        return Scenario(
            lambda: items.extend(loop.run(take_all(subscriber))),
            lambda: pushed.subscribe(subscriber),
            check=check,
        )

    exhaust(body)


def test_an_item_that_a_loop_pushes_against_a_cancel_is_taken_or_dropped(drops: Drops) -> None:
    def body() -> Scenario:
        drops.take_items()
        _, subscriber = awaiting(2)
        TestPublisher[int]().subscribe(subscriber)
        receive = subscriber.receiver()

        def check() -> None:
            assert drops.take_items() == [1]
            assert not subscriber.queue

        return Scenario(lambda: receive(1), subscriber.cancel, check=check)

    exhaust(body)


@pytest.mark.checklist("X06")
def test_a_coroutine_that_is_cancelled_while_it_is_being_subscribed_cancels_the_flow() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        _, subscriber = awaiting(4)
        return Scenario(
            lambda: source.subscribe(subscriber), subscriber.cancel, check=source.assert_cancelled
        )

    exhaust(body)


# -- a future


class Later:
    """A source whose subscribers hear of it when another thread says so."""

    def __init__(self, source: TestPublisher[int]) -> None:
        self._source = source
        self.start: Callable[[], object] = list

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        self.start = lambda: self._source.subscribe(subscriber)


@pytest.mark.checklist("X06")
def test_a_future_that_is_cancelled_while_it_is_being_subscribed_cancels_the_flow() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        later = Later(source)
        future = futures.single_future(later)
        return Scenario(later.start, future.cancel, check=source.assert_cancelled)

    exhaust(body)


@pytest.mark.parametrize("how", ["complete", "error"])
def test_a_future_is_resolved_or_cancelled_never_both(how: str, drops: Drops) -> None:
    error = ValueError("lost")

    def body() -> Scenario:
        drops.take_errors()
        source = TestPublisher[int]()
        future: Future[int] = flow.Flow(source).to_future()
        cancelled: list[bool] = []

        def send() -> None:
            source.next(1)
            if how == "complete":
                source.complete()
            else:
                source.error(error)

        def outcome() -> bool:
            assert future.done()
            assert future.cancelled() == cancelled[0]
            assert cancelled[0] or not drops.errors
            if not cancelled[0]:
                assert future.exception() is error if how == "error" else future.result() == 1
            drops.take_errors()
            return cancelled[0]

        return Scenario(send, lambda: cancelled.append(future.cancel()), outcome=outcome)

    exhaust(body, {True, False})


# -- callbacks


def test_callbacks_ask_for_more_until_they_are_disposed(drops: Drops) -> None:
    def body() -> Scenario:
        drops.take_items()
        source = TestPublisher[int]()
        seen: list[int] = []
        ends: list[str] = []

        def on_next(item: int) -> None:
            step()
            seen.append(item)

        subscriber = CallbackSubscriber[int](
            on_next, on_complete=lambda: ends.append("complete"), prefetch=1
        )
        source.subscribe(subscriber)

        def send() -> None:
            source.next(1)
            if source.outstanding and not source.cancelled:
                source.next(2)
            source.complete()

        def outcome() -> Hashable:
            assert [*seen, *drops.items] == list(range(1, 1 + len(seen) + len(drops.items)))
            assert subscriber.disposed
            assert len(ends) <= 1
            assert ends or source.cancelled or source.terminated
            return tuple(seen), tuple(ends)

        return Scenario(send, subscriber.dispose, outcome=outcome)

    exhaust(body)


def test_an_error_against_dispose_is_reported_or_dropped(drops: Drops) -> None:
    error = ValueError("lost")

    def body() -> Scenario:
        drops.take_errors()
        source = TestPublisher[int]()
        told: list[BaseException] = []
        subscriber = CallbackSubscriber[int](on_error=told.append, prefetch=1)
        source.subscribe(subscriber)

        def check() -> None:
            errors = [*told, *drops.take_errors()]
            assert errors == [error] or (not errors and source.cancelled)
            assert subscriber.disposed

        return Scenario(lambda: source.error(error), subscriber.dispose, check=check)

    exhaust(body)


def test_disposing_lets_the_subscription_go_whatever_comes() -> None:
    def body() -> Scenario:
        source = TestPublisher[int]()
        subscriber = CallbackSubscriber[int](prefetch=1)

        def check() -> None:
            source.assert_cancelled()
            assert subscriber.statistics().upstream is None

        return Scenario(lambda: source.subscribe(subscriber), subscriber.dispose, check=check)

    exhaust(body)


def generated(log: list[str]) -> Generator[int, None, None]:
    log.append("began")
    try:
        yield from (0, 1)
    finally:
        log.append("closed")


def test_disposing_against_a_loop_that_runs_closes_its_source() -> None:
    def body() -> Scenario:
        log: list[str] = []
        subscriber = CallbackSubscriber[int](lambda _: step(), prefetch=1)
        source = flow.from_iterable(generated(log)).map(abs)

        def check() -> None:
            assert log in ([], ["began", "closed"])
            assert subscriber.disposed

        return Scenario(lambda: source.subscribe(subscriber), subscriber.dispose, check=check)

    exhaust(body)
