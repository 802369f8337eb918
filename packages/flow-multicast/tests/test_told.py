"""Each waiting subscriber gets the end, whatever fails around a connectable.

Each operator that is registered, and each processor, meets each hazard with two subscribers.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow, FlowError, hooks
from flow_core.clocks import Clock
from flow_core.executors import as_runner
from flow_core.protocols import Disposable
from flow_multicast import (
    AsyncProcessor,
    BehaviorProcessor,
    DirectProcessor,
    MulticastProcessor,
    ReplayProcessor,
    SerializedProcessor,
    cache,
    multicast,
    publish,
    publish_value,
    replay,
    share,
)
from flow_multicast._plugin import flow_operators
from flow_testing import TIMEOUT_S, Drops, TestPublisher, TestSubscriber, VirtualClock

FEW = 9
"""The number of items that a source sends."""

Way = Callable[[Flow[Any], Any], Flow[Any]]
"""Shares a flow among two subscribers, on a clock."""


def _itself(shared: Flow[Any]) -> Flow[Any]:
    return shared


def _through(processor: Callable[[], Any]) -> Way:
    return lambda up, clock: up.pipe(multicast(processor)).ref_count(2)


WAYS: dict[str, Way] = {
    "cache": lambda up, clock: up.pipe(cache()),
    "multicast, async": _through(AsyncProcessor),
    "multicast, behavior": _through(lambda: BehaviorProcessor(0)),
    "multicast, direct": _through(DirectProcessor),
    "multicast, lock-step": _through(MulticastProcessor),
    "multicast, one for all": lambda up, clock: up.pipe(multicast(MulticastProcessor())).ref_count(
        2
    ),
    "multicast, replay": _through(lambda: ReplayProcessor(size=3)),
    "multicast, serialized": _through(lambda: SerializedProcessor(DirectProcessor())),
    "publish": lambda up, clock: up.pipe(publish(prefetch=4)).ref_count(2),
    "publish, auto_connect": lambda up, clock: up.pipe(publish()).auto_connect(2),
    "publish, selector": lambda up, clock: up.pipe(publish(_itself)),
    "publish_value": lambda up, clock: up.pipe(publish_value(0)).ref_count(2),
    "replay": lambda up, clock: up.pipe(replay(size=3)).ref_count(2),
    "replay, of an age": lambda up, clock: up.pipe(replay(ttl=5, clock=clock)).ref_count(
        2, grace=3, clock=clock
    ),
    "replay, selector": lambda up, clock: up.pipe(replay(_itself, size=3)),
    "share": lambda up, clock: up.pipe(share()),
    "share, grace": lambda up, clock: up.pipe(share(grace=3, clock=clock)),
}

each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def test_each_operator_that_is_registered_is_in_this_table() -> None:
    assert {way.partition(",")[0] for way in WAYS} == {spec.name for spec in flow_operators()}


class Sources:
    """A flow of which each run has a separate publisher, which does not end."""

    def __init__(self) -> None:
        self.runs: list[TestPublisher[int]] = []

    def _begin(self) -> Flow[int]:
        self.runs.append(TestPublisher())
        return Flow(self.runs[-1])

    @property
    def flow(self) -> Flow[int]:
        return flow.defer(self._begin)

    @property
    def over(self) -> bool:
        """True if none of them has a subscriber to send to."""
        return all(one.cancelled or one.terminated for one in self.runs)

    def send(self) -> None:
        for source in self.runs:
            send(source)

    def end(self, error: BaseException | None = None) -> None:
        for source in self.runs:
            end(source, error)


def send(source: TestPublisher[int]) -> None:
    """Send what is requested, at most `FEW` items."""
    for item in range(min(FEW, source.outstanding)):
        if not source.cancelled:
            source.next(item)


def end(source: TestPublisher[int], error: BaseException | None = None) -> None:
    """End it, unless it has ended."""
    if source.subscribed and not source.cancelled and not source.terminated:
        source.complete() if error is None else source.error(error)


class Uncancellable:
    """A publisher of someone else, whose `cancel` raises."""

    def __init__(self) -> None:
        self.error = RuntimeError("of cancel")
        self.cancels = 0
        self.subscriber: Any = None

    def subscribe(self, subscriber: Any) -> None:
        if self.subscriber is not None:  # a second run
            flow.never().subscribe(subscriber)
            return
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int) -> None:
        """See `Subscription.request`; it never answers."""

    def cancel(self) -> None:
        self.cancels += 1
        raise self.error


@each_way
@pytest.mark.parametrize("leave", ["cancel", "request badly"])
def test_the_cancel_of_the_upstream_raises(way: Way, leave: str, drops: Drops) -> None:
    source, clock = Uncancellable(), VirtualClock()
    made = way(flow.from_publisher(source), clock)
    both = TestSubscriber[Any](2), TestSubscriber[Any](2)
    for seen in both:
        made.subscribe(seen)
    source.subscriber.on_next(1)
    for seen in both:
        if leave == "cancel":
            seen.cancel()
        else:
            seen.request(-1)
            assert isinstance(seen.error, ValueError)
    clock.advance_by(10)
    assert clock.pending == 0
    assert source.cancels <= 1
    assert drops.take_errors() == [source.error] * source.cancels


@each_way
@pytest.mark.parametrize("first", [True, False], ids=["first", "second"])
def test_one_of_them_raises_a_fatal_error_on_a_worker(way: Way, first: bool, drops: Drops) -> None:
    fatal, sources = MemoryError("too much"), Sources()

    def fail(item: int) -> int:
        if item == 3:
            raise fatal
        return item

    made = way(sources.flow.map(lambda n: n), VirtualClock())
    both = (made.map(fail), made) if first else (made, made.map(fail))
    futures = [one.count().to_future() for one in both]

    def run(source: TestPublisher[int]) -> None:
        send(source)
        end(source)

    with ThreadPoolExecutor(1) as pool:
        for source in sources.runs:
            as_runner(pool).execute(partial(run, source))
        told = [future.exception(TIMEOUT_S) for future in futures]
    for error in told:
        assert error is None or (isinstance(error, FlowError) and error.__cause__ is fatal)
    assert set(drops.take_errors()) <= {fatal}
    assert sources.over


@each_way
@pytest.mark.parametrize("leave", ["fails", "completes", "is cancelled"])
def test_the_hook_of_dropped_items_raises(way: Way, leave: str, drops: Drops) -> None:
    def fail(item: object) -> None:
        raise OSError("cannot close", item)

    sources, clock, error = Sources(), VirtualClock(), ValueError("of the source")
    made = way(sources.flow, clock)
    both = TestSubscriber[Any](1), TestSubscriber[Any](0)
    with hooks.dropped_items.scoped("test", fail):
        for seen in both:
            made.subscribe(seen)
        sources.send()
        for seen in both:
            if leave == "is cancelled":
                seen.cancel()
                continue
            sources.end(error if leave == "fails" else None)
            seen.request(1000)
        clock.advance_by(100)
    assert clock.pending == 0
    if leave != "is cancelled":
        assert all(seen.terminated for seen in both)
        assert sources.over


class Failing(Clock):
    """A clock that takes no task."""

    def __init__(self) -> None:
        self.error = OSError("no time")
        self.failed = False

    def now(self) -> float:
        return 0.0

    def schedule(self, delay_s: float, task: Any, /) -> Disposable:
        self.failed = True
        raise self.error

    def schedule_periodically(self, delay_s: float, period_s: float, task: Any, /) -> Disposable:
        self.failed = True
        raise self.error


@each_way
def test_the_clock_takes_no_task(way: Way, drops: Drops) -> None:
    sources, clock = Sources(), Failing()
    made = way(sources.flow, clock)
    both = TestSubscriber[Any](1), TestSubscriber[Any](1)
    for seen in both:
        made.subscribe(seen)
    sources.send()
    for seen in both:
        seen.cancel()
    if clock.failed:  # there is no subscriber to notify
        assert drops.take_errors() == [clock.error]
        assert sources.over
    later = TestSubscriber[Any]()
    made.subscribe(later)
    sources.send()
    sources.end()
    made.subscribe(TestSubscriber[Any]())  # without whom some wait
    sources.end()
    assert later.terminated


def test_a_planted_fault_is_found(monkeypatch: pytest.MonkeyPatch, drops: Drops) -> None:
    monkeypatch.setattr("flow_multicast.processors.multicast.leave", lambda *_: None)
    monkeypatch.setattr(f"{__name__}.TIMEOUT_S", 0.1)
    with pytest.raises(TimeoutError):
        test_one_of_them_raises_a_fatal_error_on_a_worker(WAYS["share"], True, drops)
    drops.take_errors()
