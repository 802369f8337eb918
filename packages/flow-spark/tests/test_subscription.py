"""A job as a publisher, with a job that needs no Spark: demand, threads, ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

import pytest

from flow_core import hooks
from flow_core.demand import UNBOUNDED
from flow_core.errors import ProtocolViolationError
from flow_core.flow import Flow
from flow_core.protocols import (
    EMPTY,
    ConditionalSubscriber,
    CoreSubscriber,
    Fusion,
    Publisher,
    QueueSubscription,
    Subscriber,
    Subscription,
)
from flow_core.stages import Program
from flow_core.subscribers import core_subscriber
from flow_spark.jobs.origin import Job, Runs
from flow_spark.jobs.publisher import JobSource, JobSubscription
from flow_testing import assert_result

TIMEOUT_S = 10.0
ON_EXECUTOR = Fusion.SYNC | Fusion.THREAD_BOUNDARY


class FakeJob:
    """Gives batches; waits like a job for more until it is cancelled, if asked to."""

    def __init__(
        self, batches: Iterable[list[Any]], *, waits: bool = False, error: Exception | None = None
    ) -> None:
        self.batches = batches
        self.waits = waits
        self.error = error
        self.read = 0
        self.cancelled = threading.Event()
        self.started = threading.Event()

    def __iter__(self) -> Iterator[list[Any]]:
        self.started.set()
        try:
            for batch in self.batches:
                if self.cancelled.is_set():
                    return
                self.read += 1
                yield batch
            if self.waits:
                assert self.cancelled.wait(TIMEOUT_S)
            elif self.error is not None:
                raise self.error
        finally:
            self.cancelled.set()

    def cancel(self) -> None:
        self.cancelled.set()


class Recorder(CoreSubscriber[Any]):
    def __init__(self, request: int = 0) -> None:
        self.first = request
        self.subscription: Subscription | None = None
        self.items: list[Any] = []
        self.threads: set[threading.Thread] = set()
        self.error: BaseException | None = None
        self.ended = threading.Event()
        self.arrived = threading.Semaphore(0)
        self.inside = threading.Lock()

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription
        if self.first:
            subscription.request(self.first)
        assert not self.items, "a signal came before on_subscribe had returned (§1.9)"

    def on_next(self, item: Any, /) -> None:
        assert self.inside.acquire(blocking=False), "two signals at once (§1.3)"
        self.items.append(item)
        self.threads.add(threading.current_thread())
        self.inside.release()
        self.arrived.release()

    def on_error(self, error: BaseException, /) -> None:
        assert not self.ended.is_set(), "two terminals (§1.7)"
        self.error = error
        self.ended.set()

    def on_complete(self) -> None:
        assert not self.ended.is_set(), "two terminals (§1.7)"
        self.ended.set()

    def wait_for(self, count: int) -> None:
        for _ in range(count):
            assert self.arrived.acquire(timeout=TIMEOUT_S)

    @property
    def link(self) -> Subscription:
        assert self.subscription is not None
        return self.subscription


class FakeSource(Publisher[Any]):
    """A publisher of a new job for each subscriber."""

    def __init__(
        self, batches: list[list[Any]], error: Exception | None = None, *, exact: bool = False
    ) -> None:
        self.batches = batches
        self.error = error
        self.exact = exact

    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        job = FakeJob(self.batches, error=self.error)
        run(job, core_subscriber(subscriber), exact=self.exact)


def wait_until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + TIMEOUT_S
    pause = threading.Event()
    while not condition() and time.monotonic() < deadline:
        pause.wait(0.005)
    return condition()


def run(
    job: FakeJob, subscriber: CoreSubscriber[Any], *, exact: bool = False
) -> JobSubscription[Any]:
    # A stand-in: the subscription only iterates over it and cancels it.
    subscription: JobSubscription[Any] = JobSubscription(cast("Job", job), subscriber, exact=exact)
    subscription.start()
    return subscription


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda f: f, [1, 2, 3, 4, 5]),
        (lambda f: f.map(lambda n: n * 2).filter(lambda n: n != 4), [2, 6, 8, 10]),
        (lambda f: f.flat_map_iterable(lambda n: [n] * (n % 3)), [1, 2, 2, 4, 5, 5]),
        (lambda f: f.take(3), [1, 2, 3]),
        (lambda f: f.count(), [5]),
    ],
)
def test_a_flow_behind_a_job_gives_the_same_in_every_form(build: Any, expected: list[Any]) -> None:
    assert_result(lambda: build(Flow(FakeSource([[1, 2], [], [3, 4, 5]]))), expected)


def test_a_job_that_fails_does_so_in_every_form() -> None:
    error = KeyError("identical")

    assert_result(lambda: Flow(FakeSource([[1, 2]], error)).map(str), ["1", "2"], error)


def test_everything_arrives_from_one_thread_that_is_not_the_callers() -> None:
    subscriber = Recorder(UNBOUNDED)
    run(FakeJob([[1, 2], [], [3]]), subscriber)

    assert subscriber.ended.wait(TIMEOUT_S)
    assert subscriber.items == [1, 2, 3]
    assert subscriber.error is None
    assert len(subscriber.threads) == 1
    assert threading.current_thread() not in subscriber.threads


def test_demand_is_exact_and_nothing_starts_without_it() -> None:
    subscriber = Recorder()
    job = FakeJob([[1, 2, 3], [4, 5, 6], [7, 8, 9]])
    run(job, subscriber)
    assert not job.started.is_set()

    subscriber.link.request(2)
    subscriber.wait_for(2)
    subscriber.link.request(1)
    subscriber.link.request(1)
    subscriber.wait_for(2)

    assert subscriber.items == [1, 2, 3, 4]
    assert not subscriber.arrived.acquire(timeout=0.1)
    assert job.read == 2

    subscriber.link.request(UNBOUNDED)
    subscriber.link.request(UNBOUNDED)
    assert subscriber.ended.wait(TIMEOUT_S)
    assert subscriber.items == list(range(1, 10))


def test_completion_needs_no_demand() -> None:
    subscriber = Recorder(2)
    run(FakeJob([[1, 2]]), subscriber)

    assert subscriber.ended.wait(TIMEOUT_S)
    assert subscriber.error is None


def test_an_error_comes_behind_the_items_before_it_as_the_identical_object() -> None:
    error = KeyError("identical")
    subscriber = Recorder(UNBOUNDED)
    run(FakeJob([[1]], error=error), subscriber)

    assert subscriber.ended.wait(TIMEOUT_S)
    assert subscriber.items == [1]
    assert subscriber.error is error


def test_cancel_wakes_a_thread_that_waits_for_spark_and_nothing_follows() -> None:
    subscriber = Recorder(UNBOUNDED)
    job = FakeJob([[1]], waits=True)
    run(job, subscriber)
    subscriber.wait_for(1)
    subscriber.link.cancel()
    subscriber.link.cancel()

    assert job.cancelled.is_set()
    (thread,) = subscriber.threads
    thread.join(TIMEOUT_S)
    assert not thread.is_alive()
    assert not subscriber.ended.is_set()


def test_cancel_wakes_a_thread_that_waits_for_demand() -> None:
    subscriber = Recorder(1)
    job = FakeJob([[1, 2]])
    run(job, subscriber)
    subscriber.wait_for(1)
    subscriber.link.cancel()

    (thread,) = subscriber.threads
    thread.join(TIMEOUT_S)
    assert not thread.is_alive()
    assert subscriber.items == [1]
    assert job.cancelled.is_set()


def test_request_after_cancel_does_nothing() -> None:
    subscriber = Recorder()
    job = FakeJob([[1]])
    run(job, subscriber)
    subscriber.link.cancel()
    subscriber.link.request(1)

    assert not job.started.is_set()
    assert subscriber.items == []


@pytest.mark.parametrize("amount", [0, -1])
@pytest.mark.parametrize("running", [False, True])
def test_a_request_that_is_not_positive_ends_in_an_error(amount: int, running: bool) -> None:
    subscriber = Recorder(1 if running else 0)
    job = FakeJob([[1, 2]], waits=True)
    run(job, subscriber)
    if running:
        subscriber.wait_for(1)
    subscriber.link.request(amount)

    assert subscriber.ended.wait(TIMEOUT_S)
    assert isinstance(subscriber.error, ValueError)
    assert "3.9" in str(subscriber.error)
    assert "non-positive subscription request" in str(subscriber.error)
    assert job.cancelled.is_set()


def test_a_request_that_is_not_an_int_raises() -> None:
    subscriber = Recorder()
    run(FakeJob([[1]]), subscriber)

    with pytest.raises(TypeError):
        subscriber.link.request(cast("int", 1.5))


def test_items_that_a_conditional_subscriber_drops_cost_no_demand() -> None:
    class Odd(Recorder, ConditionalSubscriber[Any]):
        def try_on_next(self, item: Any, /) -> bool:
            if item % 2:
                self.on_next(item)
                return True
            return False

    subscriber = Odd(2)
    run(FakeJob([[0, 1, 2, 3, 4, 5]]), subscriber)
    subscriber.wait_for(2)

    assert not subscriber.arrived.acquire(timeout=0.1)
    assert subscriber.items == [1, 3]
    subscriber.link.cancel()


def test_a_subscriber_that_raises_ends_the_job_and_gets_nothing_more() -> None:
    class Raises(Recorder):
        def on_next(self, item: Any, /) -> None:
            super().on_next(item)
            raise KeyError(item)

    subscriber = Raises(UNBOUNDED)
    job = FakeJob([[1, 2]], waits=True)
    dropped: list[BaseException] = []
    told = threading.Event()
    with hooks.dropped_errors.scoped("test", lambda error: (dropped.append(error), told.set())):
        run(job, subscriber)
        assert told.wait(TIMEOUT_S)

    assert subscriber.items == [1]
    assert not subscriber.ended.is_set()
    assert [type(error) for error in dropped] == [KeyError]
    assert job.cancelled.wait(TIMEOUT_S)


def test_polling_on_an_executor_takes_items_without_a_thread() -> None:
    answers: list[Fusion] = []

    class Polls(Recorder):
        def on_subscribe(self, subscription: Subscription, /) -> None:
            self.subscription = subscription
            assert isinstance(subscription, QueueSubscription)
            answers.append(subscription.request_fusion(ON_EXECUTOR))

    subscriber = Polls()
    job = FakeJob([[1], [2, 3]])
    link = run(job, subscriber)

    assert answers == [Fusion.SYNC]
    assert not link.is_empty()
    assert [link.poll(), link.poll(), link.poll()] == [1, 2, 3]
    assert link.is_empty()
    assert link.poll() is EMPTY
    with pytest.raises(ProtocolViolationError):
        link.request_fusion(ON_EXECUTOR)


def test_cancel_and_clear_end_a_job_that_is_polled() -> None:
    for end in ("cancel", "clear"):
        job = FakeJob([[1, 2]], waits=True)
        link: JobSubscription[Any] = JobSubscription(cast("Job", job), Recorder())
        link.request_fusion(ON_EXECUTOR)
        assert link.poll() == 1
        getattr(link, end)()
        assert job.cancelled.is_set()


@pytest.mark.parametrize("mode", [Fusion.SYNC, Fusion.ASYNC, Fusion.ANY, Fusion.NONE])
def test_a_subscriber_that_polls_in_the_requesting_thread_gets_no_fusion(mode: Fusion) -> None:
    """Polling blocks while Spark works: that is for executors only."""
    link: JobSubscription[Any] = JobSubscription(cast("Job", FakeJob([])), Recorder())

    assert link.request_fusion(mode) is Fusion.NONE


def test_a_subscriber_that_raises_in_on_subscribe_ends_the_job() -> None:
    class Raises(Recorder):
        def on_subscribe(self, subscription: Subscription, /) -> None:
            subscription.request(1)
            raise KeyError("on_subscribe")

    job = FakeJob([[1]])
    with pytest.raises(KeyError, match="on_subscribe"):
        run(job, Raises())

    assert job.cancelled.is_set()
    assert not job.started.is_set()


class FakeRuns:
    """Makes one job."""

    def __init__(self, batches: list[list[Any]]) -> None:
        self.job_made = FakeJob(batches)

    def job(self, *_: object) -> FakeJob:
        return self.job_made

    def flow(self) -> Flow[Any]:
        return Flow(JobSource[Any](cast("Runs", self), Program(())))


def test_iterating_gives_all_items_and_reads_batch_by_batch() -> None:
    runs = FakeRuns([[1, 2], [], [3]])

    items = iter(runs.flow())
    assert not runs.job_made.started.is_set()

    assert (next(items), runs.job_made.read) == (1, 1)
    assert list(items) == [2, 3]
    assert runs.job_made.cancelled.is_set()


@pytest.mark.parametrize(
    "build",
    [
        lambda flow: flow,
        lambda flow: flow.map(lambda n: n + 1),
        lambda flow: flow.flat_map_iterable(lambda n: [n, n]).skip(1),
    ],
)
@pytest.mark.parametrize("leave", [lambda items: items.close(), lambda items: None])
def test_closing_or_leaving_an_iterator_ends_the_job(
    build: Callable[[Flow[Any]], Flow[Any]], leave: Callable[[Any], None]
) -> None:
    runs = FakeRuns([[1, 2], [3]])
    items = iter(build(runs.flow()))
    next(items)
    assert not runs.job_made.cancelled.is_set()

    leave(items)
    del items

    assert runs.job_made.cancelled.is_set()
    assert runs.job_made.read == 1


class Receives(Recorder):
    def __init__(self) -> None:
        super().__init__(UNBOUNDED)
        self.received: list[Any] = []

    def receiver(self) -> Callable[[Any], object]:
        return self.received.append


def test_a_subscriber_says_what_is_called_for_each_item() -> None:
    subscriber = Receives()
    run(FakeJob([[1, 2], [3]]), subscriber)

    assert subscriber.ended.wait(TIMEOUT_S)
    assert (subscriber.received, subscriber.items) == ([1, 2, 3], [])


class Effects:
    """Batches of one item each, and the items that were asked for."""

    def __init__(self, count: int) -> None:
        self.batches: Any = [self.batch(number) for number in range(count)]
        self.done: list[int] = []

    def batch(self, number: int) -> Iterator[int]:
        self.done.append(number)
        yield number


def test_an_item_that_takes_effect_is_not_asked_for_without_demand() -> None:
    effects, recorder = Effects(3), Recorder(request=1)
    job = FakeJob(effects.batches)
    run(job, recorder, exact=True)

    recorder.wait_for(1)
    # The next batch is known of, and nothing was asked of it.
    assert wait_until(lambda: job.read == 2)
    assert not recorder.arrived.acquire(timeout=0.1)
    assert (recorder.items, effects.done) == ([0], [0])
    recorder.link.request(2)

    assert recorder.ended.wait(TIMEOUT_S)  # without another request
    assert (recorder.items, effects.done, recorder.error) == ([0, 1, 2], [0, 1, 2], None)


def test_cancel_wakes_a_thread_that_waits_before_an_item_that_takes_effect() -> None:
    effects, recorder = Effects(3), Recorder(request=1)
    job = FakeJob(effects.batches)
    run(job, recorder, exact=True)
    recorder.wait_for(1)
    assert wait_until(lambda: job.read == 2)

    recorder.link.cancel()

    (thread,) = recorder.threads
    thread.join(TIMEOUT_S)
    assert not thread.is_alive()
    assert effects.done == [0]
    assert not recorder.ended.is_set()


def test_dropped_items_cost_no_demand_where_items_take_effect() -> None:
    effects, recorder = Effects(4), Recorder(request=2)
    source = FakeSource(effects.batches, exact=True)

    Flow(source).filter(lambda number: number % 2).subscribe(recorder)

    assert recorder.ended.wait(TIMEOUT_S)
    assert (recorder.items, effects.done) == ([1, 3], [0, 1, 2, 3])


def test_a_subscriber_that_polls_gets_no_fusion_where_items_take_effect() -> None:
    answers: list[Fusion] = []

    class Polls(Recorder):
        def on_subscribe(self, subscription: Subscription, /) -> None:
            super().on_subscribe(subscription)
            assert isinstance(subscription, QueueSubscription)
            answers.append(subscription.request_fusion(ON_EXECUTOR))

    recorder = Polls()
    run(FakeJob(Effects(1).batches), recorder, exact=True)

    assert answers == [Fusion.NONE]
    recorder.link.request(1)
    assert recorder.ended.wait(TIMEOUT_S)
    assert recorder.items == [0]
