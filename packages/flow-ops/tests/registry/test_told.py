"""Each waiting subscriber gets the end, whatever fails around an operator.

Each operator meets each of five hazards. The end comes, the source is cancelled, what was raised
is in no one's way, and no timer and no thread is left. An operator that is registered is in this
table by itself.
"""

from __future__ import annotations

import sys
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from typing import Any

import pytest

import flow_core as flow
from flow_core import FlowError, hooks, system_clock
from flow_core.clocks import Clock
from flow_core.protocols import Disposable
from flow_ops import observe_on
from flow_testing import (
    TIMEOUT_S,
    OperatorCase,
    Surroundings,
    TestPublisher,
    TestSubscriber,
    VirtualClock,
)

FEW = 9
"""The number of items that a source sends."""


def inline(task: Any) -> None:
    task()


def of_few() -> TestPublisher[int]:
    """A source that sends what is requested, up to `FEW` items, and does not end."""
    left = iter(range(FEW))

    def send(source: TestPublisher[int], n: int) -> None:
        for item in islice(left, min(n, FEW)):
            if source.cancelled or source.terminated:
                return
            source.next(item)

    return TestPublisher[int](on_request=send)


class Uncancellable:
    """A publisher of someone else, whose `cancel` raises."""

    def __init__(self) -> None:
        self.error = RuntimeError("of cancel")
        self.sent = 0
        self.cancels = 0
        self.subscriber: Any = None

    def subscribe(self, subscriber: Any) -> None:
        if self.subscriber is not None:  # repeated or tried again
            flow.never().subscribe(subscriber)
            return
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int) -> None:
        while n > 0 and self.sent < FEW and not self.cancels:
            n, self.sent = n - 1, self.sent + 1
            self.subscriber.on_next(self.sent)

    def cancel(self) -> None:
        self.cancels += 1
        raise self.error


@pytest.mark.parametrize("leave", ["cancels", "requests badly"])
def test_the_cancel_of_the_upstream_raises(case: OperatorCase, dropped: Any, leave: str) -> None:
    source, clock, seen = Uncancellable(), VirtualClock(), TestSubscriber[Any](2)
    made = case.apply(flow.from_publisher(source), Surroundings(inline, clock))
    made.subscribe(seen)
    clock.advance_by(3)
    if leave == "cancels":
        seen.cancel()
    elif not seen.terminated:
        seen.request(-1)
        clock.advance_by(10)
        assert isinstance(seen.error, ValueError)
    clock.advance_by(10)
    assert clock.pending == 0
    assert source.cancels <= 1
    assert [one for one in dropped.errors if one is source.error] == [source.error] * source.cancels


def test_the_downstream_raises_a_fatal_error_on_a_worker(
    case: OperatorCase, dropped_unseen: Any
) -> None:
    fatal, before = MemoryError("too much"), threading.active_count()

    def fail(_: object) -> int:
        raise fatal

    heard: list[BaseException] = []
    with ThreadPoolExecutor(2) as pool:
        at = Surroundings(pool, system_clock(), period_s=0.001)
        source = flow.range(FEW).pipe(observe_on(pool))
        future: Future[int] | None = None
        try:
            future = case.apply(source, at).map(fail).count().to_future()
        except MemoryError as error:  # out of what this thread has requested
            heard.append(error)
        told = None if future is None else future.exception(TIMEOUT_S)
    if told is not None:
        assert isinstance(told, FlowError)
        assert told.__cause__ is fatal
    else:
        assert heard or (future is not None and future.result() == 0)
    assert threading.active_count() <= before + 1  # that of all timers


@pytest.mark.parametrize("leave", ["fails", "completes", "is cancelled"])
def test_the_hook_of_dropped_items_raises(case: OperatorCase, leave: str) -> None:
    def fail(item: object) -> None:
        raise OSError("cannot close", item)

    source, clock, seen = of_few(), VirtualClock(), TestSubscriber[Any](1)
    error = ValueError("of the source")
    errors: list[BaseException] = []
    with (
        hooks.dropped_items.scoped("test", fail),
        hooks.dropped_errors.scoped("test", errors.append),
    ):
        case.apply(flow.Flow(source), Surroundings(inline, clock)).subscribe(seen)
        if leave == "is cancelled":
            seen.cancel()
            assert source.cancelled or not source.subscribed
        else:
            if not source.subscribed:  # before its time
                clock.advance_by(1)
            if source.subscribed and not source.cancelled:
                source.error(error) if leave == "fails" else source.complete()
            clock.advance_by(100)
            if not seen.terminated:
                seen.request(1000)
            clock.advance_by(100)
            assert seen.terminated
    assert clock.pending == 0
    assert [one for one in errors if isinstance(one, OSError)] == []


class Failing(Clock):
    """A clock that takes a number of tasks, and no more.

    Args:
        takes: how many.
    """

    def __init__(self, takes: int) -> None:
        self.clock = VirtualClock()
        self.takes = takes
        self.error = OSError("no time")
        self.failed = False

    def now(self) -> float:
        return self.clock.now()

    def _take(self) -> None:
        self.takes -= 1
        if self.takes < 0:
            self.failed = True
            raise self.error

    def schedule(self, delay_s: float, task: Any, /) -> Disposable:
        self._take()
        return self.clock.schedule(delay_s, task)

    def schedule_periodically(self, delay_s: float, period_s: float, task: Any, /) -> Disposable:
        self._take()
        return self.clock.schedule_periodically(delay_s, period_s, task)


@pytest.mark.parametrize("takes", [0, 1, 2])
def test_the_clock_takes_no_more_tasks(case: OperatorCase, dropped: Any, takes: int) -> None:
    source, clock, seen = of_few(), Failing(takes), TestSubscriber[Any]()
    case.apply(flow.Flow(source), Surroundings(inline, clock)).subscribe(seen)
    clock.clock.advance_by(5)
    if not seen.terminated and source.subscribed and not source.cancelled:
        source.complete()
    clock.clock.advance_by(100)
    assert seen.terminated
    assert clock.clock.pending == 0
    assert source.cancelled or source.terminated or not source.subscribed
    if clock.failed:
        assert seen.error is not None or clock.error in dropped.errors


class Once:
    """An executor that takes a number of tasks, which run when the test says so, and no more."""

    def __init__(self, takes: int) -> None:
        self.takes = takes
        self.tasks: list[Any] = []

    def submit(self, task: Any, /) -> Future[Any]:
        if self.takes == 0:
            raise RuntimeError("no more")
        self.takes -= 1
        self.tasks.append(task)
        return Future()

    def run(self) -> None:
        while self.tasks:
            self.tasks.pop(0)()


@pytest.mark.parametrize("takes", [0, 1, 2])
def test_the_executor_takes_no_more_tasks(case: OperatorCase, dropped: Any, takes: int) -> None:
    if "executor" not in case.kinds:
        return
    source, executor, seen = of_few(), Once(takes), TestSubscriber[Any](2)
    clock = VirtualClock()
    case.apply(flow.Flow(source), Surroundings(executor, clock)).subscribe(seen)
    executor.run()
    for _ in range(FEW):
        if not seen.terminated:
            seen.request(1)
        executor.run()
    if not seen.terminated and source.subscribed and not source.cancelled:
        source.complete()
    executor.run()
    if case.registered == "cancel_on":  # it needs the executor to cancel, and not before
        seen.cancel()
    else:
        assert seen.terminated
    assert source.cancelled or source.terminated or not source.subscribed
    del dropped


# -- the table finds what it is for


def _cancels_openly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "cancel", lambda subscription: subscription.cancel())


def _raises_what_a_hook_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    def folded(_: object, functions: tuple[Any, ...]) -> Any:
        return functions[-1]

    monkeypatch.setattr(hooks.Hook, "_folded", folded)


def _tells_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flow_core.executors.tell_left", lambda _, heard: None)
    monkeypatch.setattr(sys.modules[__name__], "TIMEOUT_S", 0.1)


def _forgets_a_refused_task(monkeypatch: pytest.MonkeyPatch) -> None:
    observing = sys.modules["flow_ops.threads.observe_on"]

    def reject(self: Any, _: BaseException) -> None:
        self._over()
        self.run_entered()

    monkeypatch.setattr(observing.ObserveOnSubscriber, "_reject", reject)


def _forgets_a_clock_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    timed = sys.modules["flow_ops.time._timed"].Timed
    wake_at = timed.wake_at

    def wake_or_not(self: Any, time_s: float) -> None:
        with suppress(OSError):
            wake_at(self, time_s)

    monkeypatch.setattr(timed, "wake_at", wake_or_not)


@pytest.mark.parametrize(
    ("plant", "test", "name", "arguments"),
    [
        (_cancels_openly, test_the_cancel_of_the_upstream_raises, "merge", ["requests badly"]),
        (_raises_what_a_hook_raises, test_the_hook_of_dropped_items_raises, "merge", ["fails"]),
        (_tells_nobody, test_the_downstream_raises_a_fatal_error_on_a_worker, "merge", []),
        (_forgets_a_clock_that_fails, test_the_clock_takes_no_more_tasks, "debounce", [0]),
        (_forgets_a_refused_task, test_the_executor_takes_no_more_tasks, "observe_on", [1]),
    ],
)
def test_a_planted_fault_is_found(
    monkeypatch: pytest.MonkeyPatch,
    cases: Any,
    dropped: Any,
    plant: Any,
    test: Any,
    name: str,
    arguments: list[Any],
) -> None:
    case = cases[name]
    plant(monkeypatch)
    unseen = [] if test is test_the_hook_of_dropped_items_raises else [dropped]
    with pytest.raises((AssertionError, TimeoutError, OSError, RuntimeError)):
        test(case, *unseen, *arguments)
