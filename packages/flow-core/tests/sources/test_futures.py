"""`from_future`: results of futures, tasks and coroutines."""

from __future__ import annotations

import asyncio
import gc
import traceback
import weakref
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from concurrent import futures
from concurrent.futures import Future
from contextlib import asynccontextmanager
from threading import Event, Thread, get_ident
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow, Fusion
from flow_core.errors import BlockingInEventLoopError, FlowError
from flow_core.homes import library_loop
from flow_testing import TIMEOUT_S, Drops, TestSubscriber, assert_result, race


class FailureError(Exception):
    pass


def resolved(item: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(item)
    return future


def failed(error: BaseException) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_exception(error)
    return future


def soon(item: Any) -> Flow[Any]:
    """The flow of a future that another thread resolves."""
    future: Future[Any] = Future()
    Thread(target=future.set_result, args=(item,), daemon=True).start()
    return flow.from_future(future)


@pytest.fixture
def other_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop that runs in another thread."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join(TIMEOUT_S)
    loop.close()


def in_loop(loop: asyncio.AbstractEventLoop, function: Callable[[], Any]) -> Any:
    async def run() -> Any:
        return function()

    return asyncio.run_coroutine_threadsafe(run(), loop).result(TIMEOUT_S)


# -- concurrent.futures


def test_from_future_gives_the_result() -> None:
    assert_result(lambda: flow.from_future(resolved(5)), [5])
    assert_result(lambda: soon(5), [5])
    assert_result(lambda: soon(5).map(str), ["5"])
    assert_result(lambda: flow.from_future(resolved(0)), [0])
    assert repr(flow.from_future(resolved(1))) == "from_future(Future)"


def test_a_result_of_none_completes_without_an_item() -> None:
    assert_result(lambda: flow.from_future(resolved(None)), [])
    assert_result(lambda: soon(None), [])


def test_the_error_of_the_future_is_the_error_of_the_flow() -> None:
    error = FailureError()
    assert_result(lambda: flow.from_future(failed(error)), [], error)


def test_a_cancelled_future_fails_the_flow() -> None:
    future: Future[int] = Future()
    future.cancel()
    assert_result(lambda: flow.from_future(future), [], futures.CancelledError)
    waiting: Future[int] = Future()
    subscriber = TestSubscriber[int]()
    flow.from_future(waiting).subscribe(subscriber)
    waiting.cancel()
    waiting.set_running_or_notify_cancel()
    subscriber.assert_failure(futures.CancelledError)


def test_the_item_waits_for_demand_and_the_end_for_the_item() -> None:
    future: Future[int] = Future()
    subscriber = TestSubscriber[int](0)
    flow.from_future(future).subscribe(subscriber)
    future.set_result(1)
    subscriber.assert_items().assert_not_terminated().request(1)
    subscriber.assert_result(1)


def test_each_subscriber_gets_the_result() -> None:
    future: Future[int] = Future()
    made = flow.from_future(future)
    early = [TestSubscriber[int](), TestSubscriber[int]()]
    for subscriber in early:
        made.subscribe(subscriber)
    future.set_result(1)
    late = TestSubscriber[int]()
    made.subscribe(late)
    for subscriber in (*early, late):
        subscriber.assert_result(1)


@pytest.mark.parametrize("cancel", [False, True])
def test_cancelling_the_flow_cancels_the_future_if_wished(cancel: bool) -> None:
    future: Future[int] = Future()
    subscriber = TestSubscriber[int]()
    flow.from_future(future, cancel=cancel).subscribe(subscriber)
    subscriber.cancel()
    assert future.cancelled() is cancel
    subscriber.assert_silent_after_cancel()
    at_once: Future[int] = Future()
    subscriber = TestSubscriber[int]()
    subscriber.cancel()
    flow.from_future(at_once, cancel=cancel).subscribe(subscriber)
    assert at_once.cancelled() is cancel


def test_a_future_that_fails_after_a_cancel_still_has_its_error() -> None:
    future: Future[int] = Future()
    subscriber = TestSubscriber[int]()
    flow.from_future(future).subscribe(subscriber)
    subscriber.cancel()
    future.set_exception(error := FailureError())
    subscriber.assert_silent_after_cancel()
    assert future.exception() is error


@pytest.mark.checklist("X10")
def test_a_fatal_error_is_reported_as_the_cause_of_a_flow_error() -> None:
    error = SystemExit(3)
    future: Future[int] = Future()
    subscriber = TestSubscriber[int]()
    flow.from_future(future).subscribe(subscriber)
    future.set_exception(error)
    subscriber.assert_failure(FlowError)
    assert subscriber.error is not None
    assert subscriber.error.__cause__ is error
    assert_result(lambda: flow.from_future(failed(error)), [], FlowError)


@pytest.mark.checklist("X14")
def test_the_traceback_of_a_shared_error_does_not_grow() -> None:
    def fail() -> int:
        raise FailureError

    with futures.ThreadPoolExecutor(1) as pool:
        future = pool.submit(fail)
    made = flow.from_future(future).map(str)
    lengths = set()
    for _ in range(100):
        with pytest.raises(FailureError) as caught:
            list(made)
        lengths.add(len(traceback.extract_tb(caught.value.__traceback__)))
    assert max(lengths) < 15
    assert "fail" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]


def test_a_cancel_races_with_the_result(drops: Drops) -> None:
    for _ in range(100):
        future: Future[int] = Future()
        subscriber = TestSubscriber[int]()
        flow.from_future(future).subscribe(subscriber)
        race(lambda future=future: future.set_result(1), subscriber.cancel)
        subscriber.assert_rules_kept()
        assert len(subscriber.items) + len(drops.take_items()) <= 1


@pytest.mark.checklist("F23")
@pytest.mark.parametrize("mode", [Fusion(mask) for mask in range(8)])
def test_from_future_grants_async_when_asked(mode: Fusion) -> None:
    subscriber = TestSubscriber[int](fusion=mode)
    flow.from_future(resolved(1)).subscribe(subscriber)
    assert subscriber.fused == mode & Fusion.ASYNC
    subscriber.assert_result(1)


def test_a_future_does_not_keep_a_subscriber_that_is_done() -> None:
    future: Future[int] = Future()
    subscriber = TestSubscriber[int]()
    flow.from_future(future).subscribe(subscriber)
    seen = weakref.ref(subscriber)
    subscriber.cancel()
    del subscriber
    gc.collect()
    assert seen() is None
    assert not future.done()


def test_subscriptions_that_were_cancelled_leave_nothing_in_the_future() -> None:
    future: Future[int] = Future()
    kept = TestSubscriber[int]()
    flow.from_future(future).subscribe(kept)
    callbacks = len(future._done_callbacks)  # type: ignore[attr-defined]
    made, alive = flow.from_future(future), list[weakref.ref[TestSubscriber[int]]]()
    for n in range(100):
        subscriber = TestSubscriber[int]()
        (made if n % 2 else flow.from_future(future)).subscribe(subscriber)
        subscriber.cancel()
        alive.append(weakref.ref(subscriber))
    del subscriber
    gc.collect()
    assert [each() for each in alive] == [None] * 100
    assert len(future._done_callbacks) == callbacks  # type: ignore[attr-defined]
    future.set_result(1)
    kept.assert_result(1)


def test_a_subscriber_that_raises_does_not_keep_the_result_from_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    future: Future[int] = Future()
    made = flow.from_future(future)

    def fail(_: int) -> None:
        raise MemoryError

    before, after = TestSubscriber[int](), TestSubscriber[int]()
    made.subscribe(before)
    made.subscribe(fail)
    made.subscribe(after)
    future.set_result(1)
    before.assert_result(1)
    after.assert_result(1)
    assert "MemoryError" in caplog.text


def test_a_future_without_attributes_can_be_waited_for() -> None:
    class Slotted:
        __slots__ = ("future",)

        def __init__(self) -> None:
            self.future: Future[int] = Future()

        def __getattr__(self, name: str) -> Any:
            return getattr(self.future, name)

    future, seen = Slotted(), TestSubscriber[int]()
    given: Any = future
    flow.from_future(given).subscribe(seen)
    future.future.set_result(1)
    seen.assert_result(1)


def test_a_value_that_is_not_a_future_is_refused() -> None:
    for wrong in (5, None, len, [1]):
        with pytest.raises(TypeError, match="takes a future, a task or an awaitable"):
            flow.from_future(wrong)  # type: ignore[call-overload]  # the mistake


# -- asyncio


def test_an_asyncio_future_in_its_own_loop() -> None:
    async def main() -> None:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        subscriber = TestSubscriber[int]()
        flow.from_future(future).subscribe(subscriber)
        asyncio.get_running_loop().call_soon(future.set_result, 5)
        assert await flow.from_future(future).map(str) == "5"
        subscriber.assert_result(5)
        assert [item async for item in flow.from_future(future)] == [5]

    asyncio.run(main())


def test_an_asyncio_task_is_waited_for_by_another_thread(
    other_loop: asyncio.AbstractEventLoop,
) -> None:
    go = asyncio.Event()
    ident = in_loop(other_loop, get_ident)

    async def work() -> int:
        await go.wait()
        return 5

    task = in_loop(other_loop, lambda: other_loop.create_task(work()))
    subscriber = TestSubscriber[int]()
    flow.from_future(task).subscribe(subscriber)
    subscriber.assert_items()
    other_loop.call_soon_threadsafe(go.set)
    subscriber.await_terminal().assert_result(5)
    assert subscriber.threads == {ident}
    # It is done now: no need to ask its loop.
    assert_result(lambda: flow.from_future(task), [5])


def test_an_asyncio_future_that_fails_or_is_cancelled(
    other_loop: asyncio.AbstractEventLoop,
) -> None:
    error = FailureError()
    future = in_loop(other_loop, other_loop.create_future)
    subscriber = TestSubscriber[int]()
    flow.from_future(future).subscribe(subscriber)
    in_loop(other_loop, lambda: future.set_exception(error))
    subscriber.await_terminal().assert_failure(error)
    future = in_loop(other_loop, other_loop.create_future)
    subscriber = TestSubscriber[int]()
    flow.from_future(future).subscribe(subscriber)
    in_loop(other_loop, future.cancel)
    subscriber.await_terminal().assert_failure(asyncio.CancelledError)


@pytest.mark.checklist("X12")
@pytest.mark.parametrize("cancel", [False, True])
def test_a_cancel_from_another_thread_reaches_the_future_in_its_loop(
    other_loop: asyncio.AbstractEventLoop, cancel: bool
) -> None:
    other_loop.set_debug(True)  # complains of calls from the wrong thread
    future = in_loop(other_loop, other_loop.create_future)
    subscriber = TestSubscriber[int]()
    flow.from_future(future, cancel=cancel).subscribe(subscriber)
    subscriber.cancel()
    assert in_loop(other_loop, future.cancelled) is cancel
    assert not future._callbacks
    subscriber.assert_silent_after_cancel()


def test_blocking_in_the_futures_own_loop_is_refused() -> None:
    async def main() -> None:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        with pytest.raises(BlockingInEventLoopError):
            list(flow.from_future(future))
        with pytest.raises(BlockingInEventLoopError):
            flow.from_future(future).first()

    asyncio.run(main())


def test_a_future_of_a_closed_loop_fails_the_flow() -> None:
    loop = asyncio.new_event_loop()
    future = loop.create_future()
    loop.close()
    subscriber = TestSubscriber[int]()
    flow.from_future(future).subscribe(subscriber)
    subscriber.assert_failure(FlowError)
    assert "its event loop is closed" in str(subscriber.error)


@pytest.mark.parametrize("began", [False, True])
def test_a_loop_that_is_closed_before_its_future_is_done_fails_the_flow(began: bool) -> None:
    loop = asyncio.new_event_loop()
    future = loop.create_future()
    subscribers = [TestSubscriber[int](), TestSubscriber[int]()]
    made = flow.from_future(future)
    for subscriber in subscribers:
        made.subscribe(subscriber)
    if began:
        loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    for subscriber in subscribers:
        subscriber.await_terminal().assert_failure(FlowError)
        assert "its event loop is closed" in str(subscriber.error)


def test_a_result_that_a_closed_loop_has_not_passed_on_is_not_lost() -> None:
    loop = asyncio.new_event_loop()
    future = loop.create_future()
    subscriber = TestSubscriber[int]()
    flow.from_future(future).subscribe(subscriber)
    loop.run_until_complete(asyncio.sleep(0))
    future.set_result(5)
    loop.close()
    subscriber.await_terminal().assert_result(5)


@pytest.mark.parametrize("ends", ["result", "cancel"])
def test_nothing_is_left_in_the_loop_of_a_flow_that_has_ended(ends: str, drops: Drops) -> None:
    loop = asyncio.new_event_loop()
    future = loop.create_future()
    subscriber = TestSubscriber[int]()
    flow.from_future(future).subscribe(subscriber)
    loop.run_until_complete(asyncio.sleep(0))
    seen = weakref.ref(subscriber)
    if ends == "result":
        future.set_result(5)
    else:
        subscriber.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    del subscriber
    gc.collect()
    assert seen() is None
    loop.close()
    assert drops.take_errors() == []


# -- coroutines


async def five() -> int:
    return 5


class Later:
    """An awaitable that is not a coroutine."""

    def __await__(self) -> Generator[Any, Any, int]:
        yield from asyncio.sleep(0).__await__()
        return 5


def test_a_coroutine_runs_in_the_running_loop_once_for_all_subscribers() -> None:
    runs = 0

    async def work() -> int:
        nonlocal runs
        runs += 1
        return runs

    async def main() -> None:
        made = flow.from_future(work())
        assert runs == 0
        assert await made == 1
        assert await made == 1
        assert repr(made) == "from_future(work)"

    asyncio.run(main())
    assert runs == 1


def test_a_coroutine_runs_in_the_given_loop(other_loop: asyncio.AbstractEventLoop) -> None:
    ident = in_loop(other_loop, get_ident)

    async def where() -> int:
        return get_ident()

    assert list(flow.from_future(where(), loop=other_loop)) == [ident]
    assert_result(lambda: flow.from_future(Later(), loop=other_loop).map(str), ["5"])


def test_an_awaitable_is_awaited() -> None:
    async def main() -> None:
        assert await flow.from_future(Later()) == 5
        assert await flow.from_future(flow.just(6)) == 6

    asyncio.run(main())


def test_a_coroutine_without_a_loop_runs_in_that_of_the_library() -> None:
    async def where() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    assert flow.from_future(where()).single() is library_loop()


def test_a_coroutine_for_a_closed_loop_fails_the_flow() -> None:
    loop = asyncio.new_event_loop()
    loop.close()
    coroutine = five()
    subscriber = TestSubscriber[int]()
    flow.from_future(coroutine, loop=loop).subscribe(subscriber)
    subscriber.assert_failure(FlowError)
    coroutine.close()


@pytest.mark.parametrize("began", [False, True])
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_a_loop_that_is_closed_before_its_coroutine_is_done_fails_the_flow(began: bool) -> None:
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)  # of a task that was destroyed

    async def never() -> int:
        return await loop.create_future()

    subscribers = [TestSubscriber[int](), TestSubscriber[int]()]
    made = flow.from_future(never(), loop=loop)
    for subscriber in subscribers:
        made.subscribe(subscriber)
    if began:
        loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    made.subscribe(late := TestSubscriber[int]())
    for subscriber in (*subscribers, late):
        subscriber.await_terminal().assert_failure(FlowError)
        assert "its event loop is closed" in str(subscriber.error)
    gc.collect()


@pytest.mark.parametrize("cancel", [False, True])
def test_cancelling_the_flow_cancels_the_coroutine_if_wished(
    other_loop: asyncio.AbstractEventLoop, cancel: bool
) -> None:
    started, ended = Event(), Event()
    go = asyncio.Event()
    outcome: list[str] = []

    @asynccontextmanager
    async def noting() -> AsyncIterator[None]:
        started.set()
        try:
            yield
            outcome.append("done")
        except asyncio.CancelledError:
            outcome.append("cancelled")
            raise
        finally:
            ended.set()

    async def work() -> int:
        async with noting():
            await go.wait()
        return 5

    subscriber = TestSubscriber[int]()
    flow.from_future(work(), loop=other_loop, cancel=cancel).subscribe(subscriber)
    assert started.wait(TIMEOUT_S)
    subscriber.cancel()
    other_loop.call_soon_threadsafe(go.set)
    assert ended.wait(TIMEOUT_S)
    assert outcome == ["cancelled" if cancel else "done"]
    subscriber.assert_silent_after_cancel()
