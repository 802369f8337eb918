"""The number of subscribers of a run, and the grace period when all of them have left."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import flow_core as flow
from flow_core.clocks import Clock
from flow_core.executors import Task
from flow_core.protocols import CoreSubscriber, Disposable, Subscription
from flow_multicast import MulticastProcessor
from flow_testing import TIMEOUT_S, Drops, TestPublisher, TestSubscriber, VirtualClock


class Interrupted(Clock):
    """A clock in whose `schedule` something else happens, as in a finaliser."""

    def __init__(self, clock: VirtualClock, during: Callable[[], object]) -> None:
        self.clock = clock
        self.during = during

    def now(self) -> float:
        return self.clock.now()

    def schedule(self, delay_s: float, task: Task, /) -> Disposable:
        self.during()
        return self.clock.schedule(delay_s, task)

    def schedule_periodically(self, delay_s: float, period_s: float, task: Task, /) -> Disposable:
        return self.clock.schedule_periodically(delay_s, period_s, task)


def test_a_subscriber_that_comes_while_the_timer_is_set_leaves_no_timer_running() -> None:
    source, clock = TestPublisher[int](), VirtualClock()
    late = TestSubscriber[int]()
    interrupted = Interrupted(clock, lambda: shared.subscribe(late))
    shared = flow.Flow(source).publish().ref_count(grace=5, clock=interrupted)
    first = TestSubscriber[int]()
    shared.subscribe(first)
    first.cancel()
    assert clock.pending == 0
    clock.advance_by(60)
    source.assert_not_cancelled()
    source.next(1)
    late.assert_items(1)


def test_it_is_measured_where_the_first_subscriber_belongs() -> None:
    stopped: list[str] = []
    told = threading.Event()

    def stop() -> None:
        stopped.append(threading.current_thread().name)
        told.set()

    async def main() -> None:
        shared = flow.never().do_on_cancel(stop).publish().ref_count(grace=0.01)
        first = shared.subscribe(print)
        # A subscriber in another thread has no loop.
        second = await asyncio.to_thread(shared.subscribe, print)
        first.dispose()
        await asyncio.to_thread(second.dispose)
        await asyncio.to_thread(told.wait, TIMEOUT_S)

    asyncio.run(main())
    assert stopped == [threading.current_thread().name]


def test_a_timer_that_rings_while_a_subscriber_joins_stops_nothing() -> None:
    source, clock = TestPublisher[int](), VirtualClock()
    shared = flow.Flow(source).publish().ref_count(grace=5, clock=clock)
    first = TestSubscriber[int]()
    shared.subscribe(first)
    first.cancel()

    class Late(CoreSubscriber[int]):
        def __init__(self) -> None:
            self.items: list[int] = []

        def on_subscribe(self, subscription: Subscription, /) -> None:
            clock.advance_by(5)
            subscription.request(9)

        def on_next(self, item: int, /) -> None:
            self.items.append(item)

        def on_error(self, error: BaseException, /) -> None:
            raise error

        def on_complete(self) -> None: ...

    late = Late()
    shared.subscribe(late)
    source.assert_not_cancelled()
    source.next(1)
    assert late.items == [1]
    assert clock.pending == 0


def test_a_run_that_has_ended_serves_newcomers_while_a_subscriber_remains() -> None:
    runs: list[int] = []

    def run() -> flow.Flow[int]:
        runs.append(len(runs))
        return flow.range(3)

    shared = flow.defer(run).replay().ref_count()
    slow, late = TestSubscriber[int](1), TestSubscriber[int]()
    shared.subscribe(slow)
    shared.subscribe(late)
    late.assert_result(0, 1, 2)
    assert runs == [0]
    slow.request(9)
    slow.assert_result(0, 1, 2)
    anew = TestSubscriber[int]()
    shared.subscribe(anew)
    anew.assert_result(0, 1, 2)
    assert runs == [0, 1]


def test_a_subscriber_that_failed_to_connect_does_not_count_for_the_next_try() -> None:
    made: list[MulticastProcessor[int]] = []
    tries: list[int] = []

    def make() -> MulticastProcessor[int]:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("not yet")
        made.append(MulticastProcessor())
        return made[0]

    shared = flow.never().multicast(make).ref_count(2)
    waiting, failing, late = (TestSubscriber[int]() for _ in range(3))
    shared.subscribe(waiting)
    shared.subscribe(failing)
    failing.assert_failure(ValueError)
    assert len(tries) == 1, "one subscriber is too few to try again"
    waiting.assert_not_terminated()
    shared.subscribe(late)
    assert len(tries) == 2


def test_a_subscriber_that_left_before_the_connection_failed_is_not_subtracted_again(
    drops: Drops,
) -> None:
    made: list[MulticastProcessor[int]] = []
    tries: list[int] = []
    waiting, leaving, late = (TestSubscriber[int]() for _ in range(3))

    def make() -> MulticastProcessor[int]:
        tries.append(1)
        if len(tries) == 1:
            leaving.cancel()
            shared.subscribe(late)
            raise ValueError("not yet")
        made.append(MulticastProcessor())
        return made[0]

    shared = flow.never().multicast(make).ref_count(2)
    shared.subscribe(waiting)
    shared.subscribe(leaving)
    assert len(tries) == 2, "two are there: the one that waited, and the one that came meanwhile"
    waiting.assert_not_terminated()
    late.assert_not_terminated()
    assert [str(error) for error in drops.take_errors()] == ["not yet"]
