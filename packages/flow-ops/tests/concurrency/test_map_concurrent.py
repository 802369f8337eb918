"""`map_concurrent`: by tasks, by separate threads, and by those of an executor."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import partial
from typing import Any

import pytest

import flow_core as flow
from flow_core.errors import FlowTimeoutError, RejectedExecutionError
from flow_core.homes import library_loop
from flow_ops import Backoff, map_concurrent
from flow_testing import (
    ENDINGS,
    TIMEOUT_S,
    Ending,
    Payloads,
    TestPublisher,
    TestSubscriber,
    VirtualClock,
    assert_released,
    assert_result,
    observe,
)

USER: ContextVar[str] = ContextVar("user", default="nobody")

BACKOFF = Backoff(1, factor=2, jitter=0, max_attempts=2)


def own_threads() -> list[str]:
    return [one.name for one in threading.enumerate() if "flow-map_concurrent" in one.name]


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    gc.collect()
    for thread in threading.enumerate():
        if "flow-map_concurrent" in thread.name:
            thread.join(TIMEOUT_S)
    assert not own_threads()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(10) as pool:
        # Later the pool may take a busy thread for an idle one, and start one too few.
        meet(pool)
        yield pool


def meet(pool: ThreadPoolExecutor) -> None:
    """Return once each thread of the pool has ended what it did, and has forgotten it."""
    barrier = threading.Barrier(11)
    for _ in range(10):
        pool.submit(barrier.wait, TIMEOUT_S)
    barrier.wait(TIMEOUT_S)


class Work:
    """Counts the calls for each item, and how many are at work at a time; some calls fail."""

    def __init__(self, fails: Callable[[int, int], bool] = lambda item, tries: False) -> None:
        self.calls = Counter[int]()
        self.most = self.now = 0
        self._fails = fails
        self._lock = threading.Lock()

    def enter(self, item: int) -> int:
        with self._lock:
            self.calls[item] += 1
            self.now += 1
            self.most = max(self.most, self.now)
            return self.calls[item]

    def leave(self) -> None:
        with self._lock:
            self.now -= 1

    def result(self, item: int, tries: int) -> int:
        if self._fails(item, tries):
            raise OSError(f"{item} has failed {tries} times")
        return 10 * item

    def call(self, item: int) -> int:
        tries = self.enter(item)
        self.leave()
        return self.result(item, tries)

    async def wait(self, item: int) -> int:
        tries = self.enter(item)
        try:
            await turns(item % 4)
        finally:
            self.leave()
        return self.result(item, tries)

    def give(self, item: int) -> Any:
        """As a lambda does that calls a coroutine function."""
        return self.wait(item)


WAYS = ("wait", "call", "give")
"""A coroutine function, one that blocks, and one that gives a coroutine."""


def third_fails_twice(item: int, tries: int) -> bool:
    return item % 3 == 0 and tries <= 2


# -- what is made of all items


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_of_a_thousand_items_that_fail_now_and_then_none_is_lost_or_doubled(
    way: str, ordered: bool
) -> None:
    work = Work(third_fails_twice)
    made = flow.range(1000).map_concurrent(getattr(work, way), 10, retry=2, ordered=ordered)
    results = list(made)
    expected = [10 * n for n in range(1000)]
    assert (results if ordered else sorted(results)) == expected
    assert work.calls == Counter({n: 3 if n % 3 == 0 else 1 for n in range(1000)})
    assert work.most <= 10


@pytest.mark.parametrize("way", ["call", "await"])
def test_as_many_calls_run_as_the_limit_allows(way: str) -> None:
    meeting, met = threading.Barrier(10), asyncio.Barrier(10)

    def call(n: int) -> int:
        meeting.wait(TIMEOUT_S)
        return n

    async def wait(n: int) -> int:
        await met.wait()
        return n

    function: Any = call if way == "call" else wait
    assert list(flow.range(30).map_concurrent(function, 10)) == list(range(30))


@pytest.mark.parametrize("way", WAYS)
def test_in_a_running_loop_it_is_the_same(way: str) -> None:
    work = Work(third_fails_twice)

    async def main() -> list[int]:
        made = flow.range(100).map_concurrent(getattr(work, way), 10, retry=2)
        return [n async for n in made]

    assert asyncio.run(main()) == [10 * n for n in range(100)]
    assert work.most <= 10


@pytest.mark.parametrize("way", WAYS)
def test_when_cancelled_in_the_middle_it_leaves_no_thread_and_no_task_running(way: str) -> None:
    work = Work()

    async def main() -> None:
        before = asyncio.all_tasks()  # wait_for() of Python 3.11 has one of its own
        made = flow.range(10**9).map_concurrent(getattr(work, way), 10)
        async for n in made:
            if n == 1000:
                break
        while own_threads() or asyncio.all_tasks() - before:
            await asyncio.sleep(0)
        assert work.now == 0

    asyncio.run(asyncio.wait_for(main(), TIMEOUT_S))


@pytest.mark.parametrize("ordered", [True, False])
def test_every_form_gives_the_same_from_an_executor(
    ordered: bool, pool: ThreadPoolExecutor
) -> None:
    operator: flow.Operator[int, flow.Flow[int]] = map_concurrent(
        lambda n: n, 1, executor=pool, ordered=ordered
    )
    assert_result(lambda: flow.range(5).pipe(operator), range(5))
    assert_result(lambda: flow.empty().pipe(operator), [])


def test_a_slow_item_at_the_head_does_not_hold_up_those_behind_it() -> None:
    others_are_done, done = threading.Event(), Counter[str]()

    def head_last(n: int) -> int:
        if n == 0:
            assert others_are_done.wait(TIMEOUT_S)
        else:
            done["others"] += 1
            if done["others"] == 49:
                others_are_done.set()
        return n

    assert list(flow.range(50).map_concurrent(head_last, 2)) == list(range(50))


def test_results_that_wait_for_an_earlier_one_are_bounded() -> None:
    async def main() -> None:
        head = asyncio.get_running_loop().create_future()
        begun: list[int] = []

        async def work(n: int) -> int:
            begun.append(n)
            return n or await head

        made = flow.range(50).map_concurrent(work, 2, prefetch=5)
        subscriber = observe(made)
        await turns(20)
        assert begun == [0, 1, 2, 3, 4]
        assert subscriber.items == []
        head.set_result(0)
        await turns(80)
        subscriber.assert_result(*range(50))

    asyncio.run(main())


def test_no_more_calls_begin_than_were_requested_or_may_run() -> None:
    async def main() -> None:
        begun: list[int] = []

        async def work(n: int) -> int:
            begun.append(n)
            return n

        subscriber = TestSubscriber[int](0)
        flow.range(50).map_concurrent(work, 3).subscribe(subscriber)
        await turns(20)
        assert begun == [0, 1, 2]
        subscriber.request(1)
        await turns(20)
        assert begun == [0, 1, 2, 3]
        subscriber.assert_items(0).cancel()

    asyncio.run(main())


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


# -- where functions run


def test_functions_run_in_threads_of_the_flow_that_end_with_it() -> None:
    names = set(flow.range(20).map_concurrent(lambda n: threading.current_thread().name, 3))
    assert 1 <= len(names) <= 3
    assert all(name.startswith("flow-map_concurrent") for name in names)


def test_functions_run_in_the_executor_which_stays_open(pool: ThreadPoolExecutor) -> None:
    def here(_: int) -> str:
        return threading.current_thread().name

    for _ in range(2):
        names = set(flow.range(20).map_concurrent(here, 3, executor=pool))
        assert all(name.startswith("ThreadPoolExecutor") for name in names)


def test_a_coroutine_that_a_function_gives_is_awaited_where_the_flow_is_at_home() -> None:
    loops: set[asyncio.AbstractEventLoop] = set()

    async def work(n: int) -> int:
        loops.add(asyncio.get_running_loop())
        return n

    async def main() -> None:
        made = flow.range(9).map_concurrent(lambda n: work(n), 3)
        assert await made.to_list() == list(range(9))
        assert loops == {asyncio.get_running_loop()}

    asyncio.run(main())
    loops.clear()
    assert list(flow.range(9).map_concurrent(lambda n: work(n), 3)) == list(range(9))
    assert loops == {library_loop()}


def test_methods_partials_and_objects_with_a_coroutine_for_a_call_are_coroutine_functions() -> None:
    class Client:
        async def get(self, n: int) -> str:
            return threading.current_thread().name

        async def __call__(self, n: int) -> str:
            return threading.current_thread().name

    for function in (Client().get, partial(Client.get, Client()), Client()):
        assert set(flow.range(3).map_concurrent(function, 2)) == {"flow-loop"}


@pytest.mark.parametrize("way", ["call", "await"])
def test_the_context_is_that_of_the_subscriber(way: str) -> None:
    def user(n: int) -> str:
        before = USER.get()
        USER.set(str(n))
        return before

    async def awaited(n: int) -> str:
        return user(n)

    function: Any = user if way == "call" else awaited
    USER.set("Ada")
    assert list(flow.range(9).map_concurrent(function, 2)) == ["Ada"] * 9


# -- failures


@pytest.mark.parametrize("way", WAYS)
def test_an_error_of_the_last_try_fails_the_flow(way: str) -> None:
    work = Work(lambda item, _: item == 5)
    made = flow.range(10**9).map_concurrent(getattr(work, way), 3, retry=4)
    subscriber = observe(made).await_terminal()
    subscriber.assert_failure(OSError, 0, 10, 20, 30, 40).assert_error_message("5 times")
    assert any("map_concurrent" in note for note in subscriber.error.__notes__)
    assert work.calls[5] == 5


def test_when_an_item_has_failed_no_other_begins() -> None:
    async def main() -> None:
        head = asyncio.get_running_loop().create_future()
        begun: list[int] = []

        async def work(n: int) -> int:
            begun.append(n)
            await (asyncio.sleep(0) if n else head)
            return 1 // (1 - n)

        subscriber = observe(flow.range(50).map_concurrent(work, 2))
        await turns(20)
        assert begun == [0, 1]
        subscriber.assert_not_terminated()
        head.set_result(0)
        await turns(5)
        subscriber.assert_failure(ZeroDivisionError, 1)
        assert begun == [0, 1]

    asyncio.run(main())


@pytest.mark.parametrize("way", WAYS)
def test_a_fallback_stands_for_what_has_failed(way: str) -> None:
    work = Work(third_fails_twice)
    made = flow.range(5).map_concurrent(
        getattr(work, way), 2, retry=1, fallback=lambda item, error: f"{item}: {error}"
    )
    assert list(made) == ["0: 0 has failed 2 times", 10, 20, "3: 3 has failed 2 times", 40]


@pytest.mark.parametrize("way", WAYS)
def test_an_error_of_the_fallback_fails_the_flow(way: str) -> None:
    def fallback(item: int, error: Exception) -> int:
        raise KeyError(item)

    work = Work(lambda *_: True)
    made = flow.just(7).map_concurrent(getattr(work, way), 2, fallback=fallback)
    with pytest.raises(KeyError, match="7"):
        list(made)


@pytest.mark.parametrize("way", WAYS)
def test_a_backoff_delays_the_next_try_of_an_item_while_others_continue(way: str) -> None:
    work = Work(lambda item, tries: item == 0 and tries <= 2)
    with VirtualClock() as clock:
        made = flow.range(9).map_concurrent(getattr(work, way), 2, retry=BACKOFF, ordered=False)
        subscriber = observe(made)
        settle(lambda: len(subscriber.items) == 8 and clock.pending)
        assert work.calls[0] == 1
        clock.advance_by(0.5)
        settle()
        assert work.calls[0] == 1
        clock.advance_by(0.5)
        settle(lambda: work.calls[0] == 2 and clock.pending)
        clock.advance_by(2)
        subscriber.await_terminal().assert_result(10, 20, 30, 40, 50, 60, 70, 80, 0)


def settle(until: Callable[[], object] = lambda: True) -> None:
    """Wait for what threads do, until it is true; the library's loop has had some turns by then."""

    async def enough() -> None:
        while not until():
            await asyncio.sleep(0)
        await turns(5)

    waits = asyncio.wait_for(enough(), TIMEOUT_S)
    asyncio.run_coroutine_threadsafe(waits, library_loop()).result()


@pytest.mark.parametrize("way", WAYS)
def test_a_backoff_that_gives_up_passes_the_error_itself_on(way: str) -> None:
    work = Work(lambda *_: True)
    backoff = Backoff(0, jitter=0, max_attempts=3)
    made = flow.just(1).map_concurrent(getattr(work, way), 2, retry=backoff)
    with pytest.raises(OSError, match="4 times"):
        list(made)
    only = Backoff(0, max_attempts=3, when=KeyError)
    with pytest.raises(OSError, match="5 times"):
        list(flow.just(1).map_concurrent(getattr(work, way), 2, retry=only))


@pytest.mark.parametrize("way", WAYS)
def test_a_cancel_ends_the_wait_for_the_next_try(way: str) -> None:
    work = Work(lambda *_: True)
    with VirtualClock() as clock:
        subscriber = observe(flow.just(1).map_concurrent(getattr(work, way), 2, retry=BACKOFF))
        settle(lambda: clock.pending)
        subscriber.cancel()
        settle(lambda: not clock.pending)
        clock.advance_by(9)
        settle()
        subscriber.assert_silent_after_cancel()
        assert work.calls[1] == 1


def test_each_try_has_its_own_time() -> None:
    tries = Counter[int]()

    async def slow_first(n: int) -> int:
        tries[n] += 1
        if tries[n] == 1:
            await asyncio.get_running_loop().create_future()
        return n

    with VirtualClock() as clock:
        subscriber = observe(flow.range(3).map_concurrent(slow_first, 3, timeout=5, retry=1))
        settle(lambda: tries.total() == 3)
        clock.advance_by(4.9)
        settle()
        assert tries.total() == 3
        clock.advance_by(0.2)
        subscriber.await_terminal().assert_result(0, 1, 2)
        assert not clock.pending


@pytest.mark.parametrize("clock", [None, VirtualClock()])
def test_a_call_that_takes_too_long_is_cancelled_and_fails(clock: VirtualClock | None) -> None:
    cancelled = asyncio.Event()

    async def for_ever(_: int) -> int:
        try:
            return await asyncio.get_running_loop().create_future()
        finally:
            cancelled.set()

    made = flow.just(1).map_concurrent(for_ever, 3, timeout=0.001, clock=clock)
    subscriber = observe(made)
    if clock is not None:
        settle(lambda: clock.pending)
        clock.advance_by(1)
    subscriber.await_terminal().assert_failure(FlowTimeoutError)
    subscriber.assert_error_message("for_ever took longer than 0.001 s")
    assert cancelled.is_set()
    assert list(made.on_error_return(9)) == [9] if clock is None else True


def test_a_timeout_of_the_function_itself_stays_what_it_is() -> None:
    async def late(_: int) -> int:
        raise TimeoutError("mine")

    with pytest.raises(TimeoutError, match="mine"):
        list(flow.just(1).map_concurrent(late, 1, timeout=60))


def test_a_lambda_with_a_timeout_gives_a_coroutine() -> None:
    assert list(flow.range(3).map_concurrent(lambda n: later(n), 2, timeout=60)) == [0, 1, 2]
    wrong: Any = str
    with pytest.raises(TypeError, match="leave them out, and it runs in threads"):
        list(flow.range(3).map_concurrent(wrong, 2, timeout=60))


async def later(item: int) -> int:
    await asyncio.sleep(0)
    return item


@pytest.mark.parametrize("way", ["call", "await"])
def test_none_is_not_an_item(way: str) -> None:
    async def nothing(_: int) -> None: ...

    function: Any = (lambda _: None) if way == "call" else nothing
    with pytest.raises(flow.NoneItemError, match="map_concurrent"):
        list(flow.just(1).map_concurrent(function, 1))


def test_an_executor_that_is_shut_down_fails_the_flow() -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(RejectedExecutionError):
        list(flow.range(3).map_concurrent(lambda n: n, 2, executor=pool))


def test_functions_that_an_executor_drops_fail_the_flow(dropped: Any) -> None:
    pool, entered, leave = ThreadPoolExecutor(1), threading.Event(), threading.Event()

    def work(n: int) -> int:
        entered.set()
        assert leave.wait(TIMEOUT_S)
        return n

    subscriber = observe(flow.range(3).map_concurrent(work, 2, executor=pool))
    assert entered.wait(TIMEOUT_S)
    pool.shutdown(wait=False, cancel_futures=True)
    subscriber.await_terminal().assert_failure(RejectedExecutionError)
    leave.set()
    settle(lambda: dropped.items)  # or another test would see it
    assert dropped.items == [0]


def test_a_fatal_error_of_a_thread_fails_the_flow_and_goes_to_the_hook(dropped: Any) -> None:
    def leave(_: int) -> int:
        raise SystemExit(3)

    subscriber = observe(flow.just(1).map_concurrent(leave, 1)).await_terminal()
    subscriber.assert_failure(flow.FlowError).assert_error_message("ended by SystemExit")
    settle(lambda: dropped.errors)
    assert [type(error) for error in dropped.errors] == [SystemExit]


def test_the_result_of_a_function_that_outlives_a_cancel_goes_to_the_hook(
    dropped: Any,
) -> None:
    entered, leave = threading.Semaphore(0), threading.Event()

    def work(n: int) -> int:
        entered.release()
        assert leave.wait(TIMEOUT_S)
        if n:
            raise ValueError(n)
        return n

    subscriber = observe(flow.range(2).map_concurrent(work, 2))
    for _ in range(2):
        assert entered.acquire(timeout=TIMEOUT_S)
    subscriber.cancel()
    leave.set()
    settle(lambda: dropped.items and dropped.errors)
    assert dropped.items == [0]
    assert [error.args for error in dropped.errors] == [(1,)]
    subscriber.assert_silent_after_cancel()


def test_a_call_that_waits_for_a_thread_when_the_flow_is_cancelled_never_runs(dropped: Any) -> None:
    waiting: list[Callable[[], object]] = []
    ran: list[int] = []
    subscriber = observe(flow.range(9).map_concurrent(ran.append, 2, executor=waiting.append))
    assert len(waiting) == 2
    subscriber.cancel()
    for task in waiting:
        task()
    assert not ran
    assert dropped.items == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ((None, 1), TypeError, "a function or a coroutine function"),
        ((len, 0), ValueError, "concurrency"),
        ((len, "2"), TypeError, "concurrency"),
        ((len, 2, {"prefetch": 0}), ValueError, "prefetch"),
        ((len, 2, {"retry": -1}), ValueError, "at least 0"),
        ((len, 2, {"retry": 1.5}), TypeError, "a number of times or a Backoff"),
        ((len, 2, {"retry": True}), TypeError, "a number of times or a Backoff"),
        ((len, 2, {"fallback": 3}), TypeError, "a function of an item and its error"),
        ((len, 2, {"fallback": later}), TypeError, "let the function itself catch the error"),
        ((len, 2, {"executor": 3}), TypeError, "an executor has submit"),
        ((later, 2, {"executor": print}), TypeError, "later is a coroutine function"),
        ((len, 2, {"executor": print, "timeout": 1}), TypeError, "are for coroutine functions"),
        ((later, 2, {"timeout": -1}), ValueError, "timeout"),
        ((later, 2, {"clock": 3}), TypeError, "a Clock"),
    ],
)
def test_arguments_are_checked(arguments: Any, error: type[Exception], says: str) -> None:
    function, concurrency, *more = arguments
    with pytest.raises(error, match=says):
        map_concurrent(function, concurrency, **(more[0] if more else {}))


# -- retention


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
@pytest.mark.parametrize("ordered", [True, False])
def test_it_lets_go_of_everything(ordered: bool, ending: Ending, pool: ThreadPoolExecutor) -> None:
    def make(payloads: Payloads) -> flow.Flow[Any]:
        operator: flow.Operator[Any, flow.Flow[Any]] = map_concurrent(
            lambda item: item, 2, ordered=ordered, executor=pool
        )
        return flow.from_iterable(payloads).pipe(operator)

    assert_released(make, settle=lambda: meet(pool), only=lambda name: name == ending.name)


def test_statistics_count_results_that_wait() -> None:
    async def main() -> None:
        source, head = TestPublisher[int](), asyncio.get_running_loop().create_future()

        async def work(n: int) -> int:
            return n or await head

        subscriber = observe(flow.Flow(source).map_concurrent(work, 3))
        source.next(0, 1, 2)
        await turns(3)
        assert subscriber.subscription.statistics().buffered == 2
        head.set_result(0)
        await turns(3)
        assert subscriber.subscription.statistics().buffered == 0
        subscriber.cancel()

    asyncio.run(main())


def test_after_a_cancel_neither_the_fallback_nor_the_retry_predicate_is_called(
    dropped: Any,
) -> None:
    entered, leave, asked = threading.Event(), threading.Event(), list[object]()

    def work(_: int) -> int:
        entered.set()
        assert leave.wait(TIMEOUT_S)
        raise OSError("late")

    backoff = Backoff(0, when=lambda error: asked.append(error) or True)
    made = flow.just(1).map_concurrent(
        work, 1, retry=backoff, fallback=lambda _, error: asked.append(error) or 2
    )
    subscriber = observe(made)
    assert entered.wait(TIMEOUT_S)
    subscriber.cancel()
    leave.set()
    settle(lambda: dropped.errors)
    assert [type(error) for error in dropped.errors] == [OSError]
    assert not asked
