"""`map_concurrent` under every schedule within the bound (two preemptions, or more).

Its loop is played by one of the explorer's threads, which runs callbacks one by one.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Hashable
from functools import partial
from typing import Any

import pytest

import flow_core as flow
from flow_ops import map_concurrent
from flow_testing import TestPublisher, TestSubscriber
from flow_testing.interleave import Body, Report, Scenario, explore_all, step

pytestmark = pytest.mark.interleave


def exhaust(body: Body, expect: Collection[Hashable] | None = None) -> Report:
    return explore_all(
        body,
        modules=["flow_core.serial", "flow_ops.concurrency", "flow_core.sources._loops", __name__],
        expect=expect,
    )


class Loop:
    """As much of an event loop as the operator needs."""

    def __init__(self, *, eager: bool = False) -> None:
        self.eager = eager
        """True if tasks begin at once, and end so if they need not wait."""
        self.ready: deque[Callable[[], object]] = deque()
        self.others = 1
        """The number of threads that still have something to do."""
        self.timers: list[Timer] = []

    def call_later(self, _: float, callback: Callable[[], object]) -> Timer:
        self.timers.append(Timer(self, callback))
        return self.timers[-1]

    def call_soon_threadsafe(self, callback: Callable[[], object]) -> None:
        self.ready.append(callback)

    def get_task_factory(self) -> object:
        """Of its own, so that it is asked for its tasks."""
        return self.create_task

    def create_task(self, work: Coroutine[Any, Any, Any], *, name: str, context: object) -> Task:
        task = Task(self, work)
        if self.eager:
            task.step()
        else:
            self.ready.append(task.step)
        return task

    def run(self) -> None:
        """Run callbacks until there are none, and no thread is left that could add one."""
        before = asyncio._get_running_loop()
        asyncio._set_running_loop(self)  # type: ignore[arg-type]  # it plays one
        try:
            while self.others or self.ready:  # in this order: nothing is added later
                if self.ready:
                    self.ready.popleft()()
                else:
                    time.sleep(1)  # virtual: until no other thread can continue
        finally:
            asyncio._set_running_loop(before)

    def beside(self, action: Callable[[], object]) -> Callable[[], None]:
        """Return `action` as the work of another thread."""

        def run() -> None:
            action()
            self.others -= 1

        return run


class Timer:
    """One whose time does not come."""

    def __init__(self, loop: Loop, callback: Callable[[], object]) -> None:
        self.loop = loop
        self.callback = callback

    def cancel(self) -> None:
        self.loop.timers.remove(self)


class Task:
    """As much of a task as the operator needs."""

    def __init__(self, loop: Loop, work: Coroutine[Any, Any, Any]) -> None:
        self._loop = loop
        self._work = work
        self._callbacks: list[Callable[[Any], object]] = []
        self._is_cancelled = self._to_be_cancelled = False
        self._result: Any = None
        self._is_done = False

    def step(self) -> None:
        try:
            if self._to_be_cancelled:
                self._work.throw(asyncio.CancelledError())
            self._work.send(None)
        except StopIteration as stop:
            self._result = stop.value
        except asyncio.CancelledError:
            self._is_cancelled = True
        else:
            self._loop.ready.append(self.step)
            return
        self._is_done = True
        for callback in self._callbacks:
            self._loop.ready.append(partial(callback, self))

    def add_done_callback(self, callback: Callable[[Any], object], *, context: object) -> None:
        self._callbacks.append(callback)

    def cancel(self) -> None:
        self._to_be_cancelled = True

    def done(self) -> bool:
        return self._is_done

    def cancelling(self) -> int:
        return int(self._to_be_cancelled)

    def cancelled(self) -> bool:
        return self._is_cancelled

    def exception(self) -> None:
        return None

    def result(self) -> Any:
        return self._result


async def later(item: int) -> int:
    await asyncio.sleep(0)
    return item


async def odd_later(item: int) -> int:
    return await later(item) if item % 2 else item


Work = Callable[[int], Coroutine[Any, Any, int]]

WAYS = pytest.mark.parametrize(
    ("eager", "work"), [(False, later), (True, later), (True, odd_later)]
)
"""The ways in which tasks begin, and if they have to wait."""


def mapped(
    loop: Any, work: Work, request: int, concurrency: int = 1, **more: Any
) -> tuple[TestPublisher[int], TestSubscriber[int]]:
    source = TestPublisher[int]()
    subscriber = TestSubscriber[int](request, on_item=lambda *_: step())
    flow.Flow(source).pipe(map_concurrent(work, concurrency, loop=loop, **more)).subscribe(
        subscriber
    )
    return source, subscriber


@WAYS
@pytest.mark.parametrize("ordered", [True, False])
def test_items_and_the_end_of_another_thread_wake_the_loop(
    ordered: bool, eager: bool, work: Work
) -> None:
    def body() -> Scenario:
        loop = Loop(eager=eager)
        source, subscriber = mapped(loop, work, 9, concurrency=2, ordered=ordered)

        def send() -> None:
            source.next(2)
            source.complete()

        return Scenario(loop.run, loop.beside(send), check=lambda: subscriber.assert_result(2))

    exhaust(body)


@WAYS
def test_a_request_of_another_thread_wakes_the_loop(eager: bool, work: Work) -> None:
    def body() -> Scenario:
        loop = Loop(eager=eager)
        source, subscriber = mapped(loop, work, 0)
        source.next(2)
        source.complete()
        return Scenario(
            loop.run,
            loop.beside(lambda: subscriber.request(1)),
            check=lambda: subscriber.assert_result(2),
        )

    exhaust(body)


@WAYS
def test_a_cancel_of_another_thread_leaves_nothing_behind(eager: bool, work: Work) -> None:
    def body() -> Scenario:
        loop = Loop(eager=eager)
        source, subscriber = mapped(loop, work, 9, concurrency=2)
        source.next(1, 2)

        def check() -> None:
            subscriber.assert_rules_kept().assert_not_terminated()
            source.assert_cancelled()
            subscription: Any = subscriber.subscription
            assert not subscription.running
            assert subscription.items is None
            assert subscription._downstream is None
            assert subscription._permit, "the permit is lost"

        return Scenario(loop.run, loop.beside(subscriber.cancel), check=check)

    exhaust(body)


@WAYS
def test_statistics_can_be_read_while_another_thread_cancels(eager: bool, work: Work) -> None:
    def body() -> Scenario:
        loop = Loop(eager=eager)
        source, subscriber = mapped(loop, work, 9)
        subscription: Any = subscriber.subscription  # a cancel takes it away
        source.next(2)
        told: list[int] = []

        def check() -> None:
            assert told in ([0], [1])

        return Scenario(
            loop.run,
            loop.beside(subscriber.cancel),
            lambda: told.append(subscription.statistics().buffered),
            check=check,
        )

    exhaust(body)


@WAYS
def test_a_bad_request_of_another_thread_fails_once(eager: bool, work: Work) -> None:
    def body() -> Scenario:
        loop = Loop(eager=eager)
        source, subscriber = mapped(loop, work, 9)
        source.next(2)

        def check() -> None:
            subscriber.assert_failure(ValueError, *subscriber.items)
            source.assert_cancelled()

        return Scenario(
            loop.run, loop.beside(lambda: subscriber.subscription.request(0)), check=check
        )

    exhaust(body)


@WAYS
def test_an_error_against_an_item_comes_after_its_result(eager: bool, work: Work) -> None:
    error = ValueError("upstream")

    def body() -> Scenario:
        loop = Loop(eager=eager)
        source, subscriber = mapped(loop, work, 9)
        source.next(2)
        return Scenario(
            loop.run,
            loop.beside(lambda: source.error(error)),
            check=lambda: subscriber.assert_failure(error, 2),
        )

    exhaust(body)
