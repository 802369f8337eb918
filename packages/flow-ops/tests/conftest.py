"""Executors of every kind, and publishers and subscribers that write down what they see."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

import flow_core as flow
from flow_core import hooks
from flow_core.protocols import (
    ConditionalSubscriber,
    CoreSubscriber,
    Fusion,
    QueueSubscription,
    Subscription,
)

WAIT_S = 20
"""The time a test waits for signals that must come; never for those that must not come."""


# --- executors


class Outstanding:
    """Counts tasks that an executor has taken and not finished."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = threading.Condition()

    def add(self, by: int) -> None:
        with self._changed:
            self._count += by
            self._changed.notify_all()

    def wait(self) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._count == 0, WAIT_S), self._count


@dataclass
class Place:
    """An executor and the threads that are its own."""

    name: str
    executor: Any
    is_here: Callable[[], bool]
    settle: Callable[[], None]
    """Return when all tasks that were submitted have ended."""


def called(call: Callable[[Callable[[], object]], object], outstanding: Outstanding) -> Any:
    """`call` as an executor whose tasks are counted."""

    def execute(task: Callable[[], object]) -> None:
        def counted() -> None:
            try:
                task()
            finally:
                outstanding.add(-1)

        outstanding.add(1)
        call(counted)

    return execute


class Submitting:
    """A pool whose tasks are counted."""

    def __init__(self, pool: ThreadPoolExecutor, outstanding: Outstanding) -> None:
        self._pool = pool
        self._outstanding = outstanding

    def submit(self, fn: Callable[[], object]) -> Future[Any]:
        self._outstanding.add(1)
        future = self._pool.submit(fn)
        future.add_done_callback(lambda _: self._outstanding.add(-1))
        return future


class CountingExecutor:
    """Counts what is submitted to a pool, and keeps the futures weakly or not at all."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self.pool = pool
        self.futures: list[Future[Any]] = []

    def submit(self, fn: Callable[[], object]) -> Future[Any]:
        future = self.pool.submit(fn)
        self.futures.append(future)
        return future


class Steps:
    """An executor whose tasks run when the test says so, in its own thread."""

    def __init__(self) -> None:
        self.tasks: list[Callable[[], object]] = []
        self.submitted = 0
        self.refuses: Exception | None = None

    def __call__(self, task: Callable[[], object]) -> None:
        if self.refuses is not None:
            raise self.refuses
        self.submitted += 1
        self.tasks.append(task)

    def run(self) -> int:
        """Run what waits, and what is submitted meanwhile; say how many tasks that were."""
        count = 0
        while self.tasks:
            self.tasks.pop(0)()
            count += 1
        return count


def _inline() -> Iterator[Place]:
    tasks = Outstanding()
    yield Place("inline", called(lambda task: task(), tasks), lambda: True, tasks.wait)


def _pool(size: int) -> Iterator[Place]:
    prefix = f"pool{size}"
    tasks = Outstanding()
    with ThreadPoolExecutor(size, thread_name_prefix=prefix) as pool:
        yield Place(
            prefix,
            Submitting(pool, tasks),
            lambda: threading.current_thread().name.startswith(prefix),
            tasks.wait,
        )


def _loop() -> Iterator[Place]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="loop")
    thread.start()
    tasks = Outstanding()
    try:
        yield Place(
            "loop",
            called(loop.call_soon_threadsafe, tasks),
            lambda: threading.current_thread() is thread,
            tasks.wait,
        )
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(WAIT_S)
        loop.close()


PLACES: dict[str, Callable[[], Iterator[Place]]] = {
    "inline": _inline,
    "pool1": lambda: _pool(1),
    "pool8": lambda: _pool(8),
    "loop": _loop,
}


@pytest.fixture(params=list(PLACES))
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Each kind of executor."""
    yield from PLACES[request.param]()


@pytest.fixture(params=[name for name in PLACES if name != "inline"])
def elsewhere(request: pytest.FixtureRequest) -> Iterator[Place]:
    """Each kind of executor that has separate threads."""
    yield from PLACES[request.param]()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1, thread_name_prefix="pool") as pool:
        yield pool


@pytest.fixture
def steps() -> Steps:
    return Steps()


@pytest.fixture
def counting(pool: ThreadPoolExecutor) -> CountingExecutor:
    return CountingExecutor(pool)


class Blocker:
    """Keeps a pool of one thread busy until it is released."""

    def __init__(self, pool: ThreadPoolExecutor) -> None:
        self._go = threading.Event()
        started = threading.Event()

        def block() -> None:
            started.set()
            self._go.wait(WAIT_S)

        self._future = pool.submit(block)
        assert started.wait(WAIT_S)
        self._pool = pool

    def release(self) -> None:
        """Let the pool continue, and return when all tasks that were submitted so far have run."""
        self._go.set()
        self._pool.submit(int).result(WAIT_S)


@pytest.fixture
def blocker(pool: ThreadPoolExecutor) -> Iterator[Blocker]:
    blocker = Blocker(pool)
    yield blocker
    blocker._go.set()


# --- publishers


class Source:
    """A publisher that the test plays: it sends the given items, on any thread."""

    def __init__(self) -> None:
        self.subscriber: Any = None
        self.requests: list[int] = []
        self.cancels = 0
        self.requested = threading.Semaphore(0)
        self.cancelled = threading.Event()

    def subscribe(self, subscriber: Any, /) -> None:
        self.subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None:
        self.requests.append(n)
        self.requested.release()

    def cancel(self) -> None:
        self.cancels += 1
        self.cancelled.set()

    def send(self, *items: Any) -> None:
        for item in items:
            self.subscriber.on_next(item)

    def complete(self) -> None:
        self.subscriber.on_complete()

    def fail(self, error: BaseException) -> None:
        self.subscriber.on_error(error)

    @property
    def flow(self) -> flow.Flow[Any]:
        return flow.Flow(self)


class FusedSource(QueueSubscription[Any]):
    """A publisher that grants SYNC, whose items are polled; an exception among them is raised."""

    def __init__(self, *items: Any) -> None:
        self.items = list(items)
        self.requests: list[int] = []
        self.asked: list[Fusion] = []
        self.cancels = self.clears = 0
        self.poll_threads: set[int] = set()

    def subscribe(self, subscriber: Any, /) -> None:
        subscriber.on_subscribe(self)

    def request_fusion(self, mode: Fusion, /) -> Fusion:
        self.asked.append(mode)
        return mode & Fusion.SYNC

    def request(self, n: int, /) -> None:
        self.requests.append(n)

    def cancel(self) -> None:
        self.cancels += 1

    def poll(self) -> Any:
        self.poll_threads.add(threading.get_ident())
        if not self.items:
            return flow.EMPTY
        item = self.items.pop(0)
        if isinstance(item, BaseException):
            raise item
        return item

    def is_empty(self) -> bool:
        return not self.items

    def clear(self) -> None:
        self.clears += 1
        self.items.clear()

    @property
    def flow(self) -> flow.Flow[Any]:
        return flow.Flow(self)


class PacedSource:
    """A publisher with a separate thread, which sends ints as far as they were requested."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._credits = threading.Semaphore(0)
        self._cancelled = False
        self._subscriber: Any = None

    def subscribe(self, subscriber: Any, /) -> None:
        self._subscriber = subscriber
        subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None:
        self._credits.release(min(n, self.count))

    def cancel(self) -> None:
        self._cancelled = True
        self._credits.release()

    def run(self) -> None:
        for n in range(self.count):
            assert self._credits.acquire(timeout=WAIT_S)
            if self._cancelled:
                return
            self._subscriber.on_next(n)
        self._subscriber.on_complete()

    @property
    def flow(self) -> flow.Flow[int]:
        return flow.Flow(self)


# --- subscribers


@dataclass(eq=False)
class Recorder(CoreSubscriber[Any]):
    """Writes down what it gets and where, and notices what overlaps or comes after the end."""

    request: int = flow.UNBOUNDED
    """The amount to request in on_subscribe; 0 for nothing, below for a wrong amount."""
    on_item: Callable[[Any], object] = lambda _: None
    here: Callable[[], bool] = lambda: True
    """Return whether this is a thread where signals belong."""

    items: list[Any] = field(default_factory=list)
    ends: list[BaseException | None] = field(default_factory=list)
    """Each terminal: the error, or None."""
    wrong: list[str] = field(default_factory=list)
    """Violations of the rules."""
    subscription: Any = None
    ended: threading.Event = field(default_factory=threading.Event)
    _inside: bool = False
    _subscribed: bool = False
    _more: threading.Condition = field(default_factory=threading.Condition)

    def on_subscribe(self, subscription: Subscription, /) -> None:
        self.subscription = subscription
        if self.request:
            subscription.request(self.request)
        self._subscribed = True

    def _enter(self, what: str) -> None:
        if self._inside:
            self.wrong.append(f"{what} overlaps")
        if not self._subscribed:
            self.wrong.append(f"{what} before on_subscribe returned")
        if self.ends:
            self.wrong.append(f"{what} after the end")
        if not self.here():
            self.wrong.append(f"{what} on {threading.current_thread().name}")
        self._inside = True

    def on_next(self, item: Any, /) -> None:
        self._enter(f"on_next({item!r})")
        try:
            with self._more:
                self.items.append(item)
                self._more.notify_all()
            self.on_item(item)
        finally:
            self._inside = False

    def on_error(self, error: BaseException, /) -> None:
        self._enter(f"on_error({error!r})")
        self._inside = False
        self.ends.append(error)
        self.ended.set()

    def on_complete(self) -> None:
        self._enter("on_complete")
        self._inside = False
        self.ends.append(None)
        self.ended.set()

    def wait(self) -> Recorder:
        """Return when the flow has ended."""
        assert self.ended.wait(WAIT_S), f"no end after {len(self.items)} items"
        assert self.wrong == []
        return self

    def wait_items(self, count: int) -> None:
        """Return when `count` items are there."""
        with self._more:
            assert self._more.wait_for(lambda: len(self.items) >= count, WAIT_S), self.items

    @property
    def error(self) -> BaseException | None:
        """The error that ended the flow."""
        assert len(self.ends) == 1, self.ends
        return self.ends[0]


class ConditionalRecorder(Recorder, ConditionalSubscriber[Any]):
    """As `Recorder`, but accepts even items only."""

    def try_on_next(self, item: Any, /) -> bool:
        if item % 2:
            return False
        self.on_next(item)
        return True


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def fused() -> type[FusedSource]:
    return FusedSource


@pytest.fixture
def paced() -> type[PacedSource]:
    return PacedSource


@pytest.fixture
def record() -> type[Recorder]:
    return Recorder


@pytest.fixture
def record_even() -> type[ConditionalRecorder]:
    return ConditionalRecorder


# --- hooks


@dataclass
class Dropped:
    """The items and errors without a receiver."""

    errors: list[BaseException]
    items: list[object]


@pytest.fixture
def dropped() -> Iterator[Dropped]:
    seen = Dropped([], [])
    with (
        hooks.dropped_errors.scoped("test", seen.errors.append),
        hooks.dropped_items.scoped("test", seen.items.append),
    ):
        yield seen


@pytest.fixture(autouse=True)
def _nothing_is_dropped_unseen(request: pytest.FixtureRequest) -> Iterator[None]:
    """An error that reaches the hook fails the test, unless it asked for `dropped`."""
    if "dropped" in request.fixturenames:
        yield
        return
    errors: list[BaseException] = []
    with hooks.dropped_errors.scoped("test", errors.append):
        yield
    assert errors == []
