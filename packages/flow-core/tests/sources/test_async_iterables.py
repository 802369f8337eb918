"""`from_async_iterable`: items of async iterables, wherever their loop runs."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextvars import ContextVar
from threading import Event, Thread, get_ident, main_thread
from typing import Any

import pytest

import flow_core as flow
from flow_core import UNBOUNDED, Flow, Fusion
from flow_core.errors import BlockingInEventLoopError, FlowError, NoneItemError
from flow_core.homes import library_loop
from flow_testing import (
    TIMEOUT_S,
    ConditionalTestSubscriber,
    Drops,
    TestSubscriber,
    assert_result,
    race,
)


class FailureError(Exception):
    pass


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


async def ended() -> set[asyncio.Task[Any]]:
    """The tasks of the loop that do not end."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    return (await asyncio.wait(others, timeout=TIMEOUT_S))[1] if others else set()


def settle() -> None:
    """Wait until the loop of the library has ended all tasks."""
    assert asyncio.run_coroutine_threadsafe(ended(), library_loop()).result() == set()


@pytest.fixture(autouse=True)
def no_task_is_left() -> Iterator[None]:
    yield
    settle()


async def counted(*items: Any) -> AsyncGenerator[Any, None]:
    for item in items:
        await asyncio.sleep(0)
        yield item


def to_the_end(form: str) -> bool:
    """The forms that do not leave early, when an error that comes then finds no subscriber."""
    return not any(word in form for word in ("partly", "cancelled"))


class Tap:
    """An async generator that is driven and watched by the test, from any thread."""

    def __init__(self) -> None:
        self.started = Event()
        self.waiting = Event()
        self.closed = Event()
        self.thread = 0
        self.pulls = 0
        self.go: asyncio.Event | None = None

    async def items(self) -> AsyncGenerator[int, None]:
        """Items without end; a third one never comes."""
        self.thread = get_ident()
        try:
            while True:
                self.started.set()
                self.pulls += 1
                if self.pulls == 3:
                    self.waiting.set()
                    await asyncio.Event().wait()
                yield self.pulls
        finally:
            self.thread_closed = get_ident()
            # Awaits, as the closing of a connection does.
            await asyncio.sleep(0)
            self.closed.set()


# -- items and ends, on a private thread


def test_the_items_of_an_async_generator() -> None:
    assert_result(lambda: flow.from_async_iterable(counted(1, 2, 3)), [1, 2, 3])
    assert_result(lambda: flow.from_async_iterable(counted()), [])
    assert_result(
        lambda: flow.from_async_iterable(counted(*range(9))).filter(lambda n: n % 2).map(str),
        ["1", "3", "5", "7"],
    )
    assert_result(lambda: flow.from_async_iterable(counted(*range(9))).take(2), [0, 1])
    assert repr(flow.from_async_iterable(counted())) == "from_async_iterable(counted)"


def test_a_generator_that_never_waits() -> None:
    async def ready() -> AsyncGenerator[int, None]:
        for item in range(5):
            yield item

    assert_result(lambda: flow.from_async_iterable(ready()), [0, 1, 2, 3, 4])


def test_an_async_iterable_serves_each_subscriber() -> None:
    class Numbers:
        def __aiter__(self) -> AsyncIterator[int]:
            return counted(1, 2)

    made = flow.from_async_iterable(Numbers())
    assert list(made) == [1, 2]
    assert list(made) == [1, 2]


def test_a_flow_is_an_async_iterable() -> None:
    assert_result(lambda: flow.from_async_iterable(flow.range(3)), [0, 1, 2])


def test_an_error_of_the_generator_is_the_error_of_the_flow() -> None:
    error = FailureError()

    async def failing() -> AsyncGenerator[int, None]:
        yield 1
        raise error

    assert_result(lambda: flow.from_async_iterable(failing()), [1], error, only=to_the_end)


def test_an_error_of_aiter_is_the_error_of_the_flow() -> None:
    error = FailureError()

    class Broken:
        def __aiter__(self) -> AsyncIterator[int]:
            raise error

    assert_result(lambda: flow.from_async_iterable(Broken()), [], error, only=to_the_end)


def test_none_is_refused() -> None:
    assert_result(
        lambda: flow.from_async_iterable(counted(1, None)), [1], NoneItemError, only=to_the_end
    )


def test_a_cancelled_error_of_the_generators_own_is_the_error_of_the_flow() -> None:
    async def gives_up() -> AsyncGenerator[int, None]:
        yield 1
        raise asyncio.CancelledError("own")

    assert_result(
        lambda: flow.from_async_iterable(gives_up()), [1], asyncio.CancelledError, only=to_the_end
    )


@pytest.mark.checklist("X10")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fatal_error_is_reported_as_the_cause_of_a_flow_error() -> None:
    async def exits() -> AsyncGenerator[int, None]:
        yield 1
        raise SystemExit(3)

    subscriber = TestSubscriber[int]()
    flow.from_async_iterable(exits()).subscribe(subscriber)
    subscriber.await_terminal().assert_failure(FlowError, 1)
    assert subscriber.error is not None
    assert isinstance(subscriber.error.__cause__, SystemExit)


def test_a_value_that_is_not_an_async_iterable_is_refused() -> None:
    for wrong in ([1], 5, counted):
        with pytest.raises(TypeError, match="takes an async iterable"):
            flow.from_async_iterable(wrong)  # type: ignore[arg-type]  # the mistake


# -- demand


def test_an_item_is_asked_for_when_it_was_requested() -> None:
    tap = Tap()
    subscriber = TestSubscriber[int](0)
    flow.from_async_iterable(tap.items()).subscribe(subscriber)
    assert not tap.started.is_set()
    subscriber.request(1)
    subscriber.await_items(1).assert_items(1)
    subscriber.request(1)
    subscriber.await_items(2).assert_items(1, 2)
    assert tap.pulls == 2
    subscriber.cancel()
    assert tap.closed.wait(TIMEOUT_S)


def test_no_wake_up_is_lost() -> None:
    for _ in range(20):
        subscriber = TestSubscriber[int](0)
        flow.from_async_iterable(counted(*range(30))).subscribe(subscriber)

        def request(subscriber: TestSubscriber[int] = subscriber) -> None:
            for _ in range(16):
                subscriber.request(1)

        race(request, request)
        subscriber.await_terminal().assert_result(*range(30))


def test_requests_within_on_next() -> None:
    subscriber = TestSubscriber[int](1, on_item=lambda self, _: self.request(1))
    flow.from_async_iterable(counted(*range(3_000))).subscribe(subscriber)
    subscriber.await_terminal().assert_result(*range(3_000))


@pytest.mark.checklist("F12")
def test_an_item_that_is_turned_down_costs_no_demand() -> None:
    subscriber = ConditionalTestSubscriber[int](lambda n: n % 2, 2)
    flow.from_async_iterable(counted(*range(9))).subscribe(subscriber)
    subscriber.await_items(2).assert_items(1, 3)
    subscriber.request(UNBOUNDED)
    subscriber.await_terminal().assert_result(1, 3, 5, 7)


@pytest.mark.parametrize("at", ["start", "waiting", "pulling"])
def test_a_bad_request_ends_the_flow(at: str) -> None:
    tap = Tap()
    subscriber = TestSubscriber[int](0)
    flow.from_async_iterable(tap.items()).subscribe(subscriber)
    count = {"start": 0, "waiting": 2, "pulling": 3}[at]
    if count:
        subscriber.request(count)
        subscriber.await_items(2)
    if at == "pulling":
        assert tap.waiting.wait(TIMEOUT_S)
    subscriber.request(-1)
    subscriber.await_terminal().assert_failure(ValueError, *range(1, min(count, 2) + 1))
    assert at == "start" or tap.closed.wait(TIMEOUT_S)


# -- cancel


@pytest.mark.checklist("X09", "X12")
@pytest.mark.parametrize("at", ["waiting", "pulling"])
@pytest.mark.parametrize("where", ["private", "given"])
def test_a_cancelled_generator_is_closed_in_its_own_thread(
    at: str, where: str, other_loop: asyncio.AbstractEventLoop
) -> None:
    other_loop.set_debug(True)  # complains of calls from the wrong thread
    tap = Tap()
    subscriber = TestSubscriber[int](2 if at == "waiting" else UNBOUNDED)
    loop = other_loop if where == "given" else None
    flow.from_async_iterable(tap.items(), loop=loop).subscribe(subscriber)
    subscriber.await_items(2)
    if at == "pulling":
        assert tap.waiting.wait(TIMEOUT_S)
    subscriber.cancel()
    subscriber.cancel()
    subscriber.request(5)
    assert tap.closed.wait(TIMEOUT_S)
    assert tap.thread_closed == tap.thread != get_ident()
    subscriber.assert_items(1, 2).assert_silent_after_cancel()


@pytest.mark.checklist("X09")
def test_a_cancel_from_within_on_next_closes_the_generator() -> None:
    tap = Tap()
    subscriber = TestSubscriber[int](on_item=lambda self, _: self.cancel())
    flow.from_async_iterable(tap.items()).subscribe(subscriber)
    assert tap.closed.wait(TIMEOUT_S)
    subscriber.assert_items(1).assert_silent_after_cancel()


def test_a_cancel_before_any_request_starts_nothing() -> None:
    tap = Tap()
    subscriber = TestSubscriber[int](0)
    generator = tap.items()
    flow.from_async_iterable(generator).subscribe(subscriber)
    subscriber.cancel()
    subscriber.request(1)
    assert not tap.started.is_set()


def test_a_cancel_races_with_items() -> None:
    for _ in range(50):
        closed = Event()

        async def items(closed: Event = closed) -> AsyncGenerator[int, None]:
            try:
                for item in range(1_000_000):
                    await asyncio.sleep(0)
                    yield item
            finally:
                closed.set()

        subscriber = TestSubscriber[int](1)
        flow.from_async_iterable(items()).subscribe(subscriber)
        subscriber.await_items(1)
        race(lambda subscriber=subscriber: subscriber.request(UNBOUNDED), subscriber.cancel)
        assert closed.wait(TIMEOUT_S)
        subscriber.assert_items(*range(len(subscriber.items)))


@pytest.mark.checklist("X09")
@pytest.mark.parametrize("waits", [False, True])
def test_a_cancel_from_within_the_generator_lets_it_clean_up(waits: bool, drops: Drops) -> None:
    closed = Event()
    log: list[str] = []
    subscriber = TestSubscriber[int]()

    async def items() -> AsyncGenerator[int, None]:
        try:
            await asyncio.sleep(0)
            yield 1
            subscriber.cancel()
            if waits:
                await asyncio.Event().wait()
            yield 2
        except asyncio.CancelledError:
            log.append("cancelled")
            raise
        finally:
            try:
                await asyncio.sleep(0)
                log.append("cleaned up")
            finally:
                closed.set()

    flow.from_async_iterable(items()).subscribe(subscriber)
    assert closed.wait(TIMEOUT_S)
    settle()
    assert log == (["cancelled", "cleaned up"] if waits else ["cleaned up"])
    subscriber.assert_items(1).assert_silent_after_cancel()
    assert drops.take_items() == ([] if waits else [2])


def test_a_task_that_is_cancelled_from_outside_as_well_is_cancelled() -> None:
    subscriber = TestSubscriber[int]()
    log: list[str] = []

    async def items() -> AsyncGenerator[int, None]:
        try:
            subscriber.cancel()
            yield 1
        finally:
            log.append("closing")
            await asyncio.Event().wait()

    async def main() -> None:
        flow.from_async_iterable(items()).subscribe(subscriber)
        (task,) = asyncio.all_tasks() - {asyncio.current_task()}
        while not log:
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    asyncio.run(main())
    subscriber.assert_items().assert_silent_after_cancel()


def test_a_generator_that_does_not_want_to_be_cancelled(drops: Drops) -> None:
    waiting, closed = Event(), Event()
    cancelling: list[int] = []

    async def stubborn() -> AsyncGenerator[int, None]:
        try:
            try:
                waiting.set()
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass
            yield 1
        finally:
            task = asyncio.current_task()
            assert task is not None
            cancelling.append(task.cancelling())
            closed.set()

    subscriber = TestSubscriber[int]()
    flow.from_async_iterable(stubborn()).subscribe(subscriber)
    assert waiting.wait(TIMEOUT_S)
    subscriber.cancel()
    assert closed.wait(TIMEOUT_S)
    subscriber.assert_items().assert_silent_after_cancel()
    assert drops.take_items() == [1]
    # The task is not taken for cancelled any more while it closes the generator.
    assert cancelling == [0]


@pytest.mark.parametrize("at", ["waiting", "pulling"])
def test_an_error_that_a_generator_raises_when_it_is_closed_goes_to_the_hook(
    at: str, drops: Drops
) -> None:
    error = FailureError()
    waiting = Event()

    async def failing() -> AsyncGenerator[int, None]:
        try:
            yield 1
            waiting.set()
            await asyncio.Event().wait()
        finally:
            raise error

    subscriber = TestSubscriber[int](1 if at == "waiting" else 2)
    flow.from_async_iterable(failing()).subscribe(subscriber)
    subscriber.await_items(1)
    if at == "pulling":
        assert waiting.wait(TIMEOUT_S)
    subscriber.cancel()
    settle()
    subscriber.assert_silent_after_cancel()
    assert drops.take_errors() == [error]


def test_an_async_iterator_without_aclose() -> None:
    class Forever:
        def __aiter__(self) -> AsyncIterator[int]:
            return self

        async def __anext__(self) -> int:
            return 1

    assert list(flow.from_async_iterable(Forever()).take(3)) == [1, 1, 1]


def test_a_subscriber_that_raises_ends_the_flow(drops: Drops) -> None:
    error = FailureError()

    def fail(_: TestSubscriber[int], item: int) -> None:
        raise error

    tap = Tap()
    subscriber = TestSubscriber[int](on_item=fail)
    flow.from_async_iterable(tap.items()).subscribe(subscriber)
    assert tap.closed.wait(TIMEOUT_S)
    assert subscriber.items == [1]
    assert drops.take_errors() == [error]


# -- loops


def test_it_runs_in_the_running_loop() -> None:
    async def main() -> None:
        ident = get_ident()

        async def where() -> AsyncGenerator[int, None]:
            while True:
                await asyncio.sleep(0)
                yield get_ident()

        made = flow.from_async_iterable(where()).take(3)
        assert [item async for item in made] == [ident] * 3
        assert await flow.from_async_iterable(counted(1, 2)).to_list() == [1, 2]
        with pytest.raises(BlockingInEventLoopError):
            list(flow.from_async_iterable(counted(1)))

    asyncio.run(main())
    assert main_thread() is not None


@pytest.mark.checklist("X09")
def test_leaving_async_for_closes_the_generator_in_the_same_loop() -> None:
    async def main() -> None:
        closed = asyncio.Event()

        async def items() -> AsyncGenerator[int, None]:
            try:
                while True:
                    await asyncio.sleep(0)
                    yield 1
            finally:
                closed.set()

        stream = aiter(flow.from_async_iterable(items()))
        assert await anext(stream) == 1
        await stream.aclose()  # type: ignore[attr-defined]  # it is an async generator
        await asyncio.wait_for(closed.wait(), TIMEOUT_S)

    asyncio.run(main())


def test_it_runs_in_the_given_loop(other_loop: asyncio.AbstractEventLoop) -> None:
    other_loop.set_debug(True)
    queue: asyncio.Queue[int] = asyncio.Queue()
    other_loop.call_soon_threadsafe(queue.put_nowait, 5)

    async def received() -> AsyncGenerator[tuple[int, bool], None]:
        while True:
            item = await queue.get()
            yield item, asyncio.get_running_loop() is other_loop

    subscriber = TestSubscriber[tuple[int, bool]](1)
    flow.from_async_iterable(received(), loop=other_loop).subscribe(subscriber)
    subscriber.await_items(1).assert_items((5, True))
    subscriber.request(1)
    other_loop.call_soon_threadsafe(queue.put_nowait, 6)
    subscriber.await_items(2).assert_items((5, True), (6, True))
    subscriber.cancel()


def test_the_given_loop_may_start_later() -> None:
    loop = asyncio.new_event_loop()
    subscriber = TestSubscriber[int]()
    flow.from_async_iterable(counted(1, 2), loop=loop).subscribe(subscriber)
    subscriber.assert_items()

    async def wait() -> None:
        while not subscriber.terminated:
            await asyncio.sleep(0)

    loop.run_until_complete(asyncio.wait_for(wait(), TIMEOUT_S))
    loop.close()
    subscriber.assert_result(1, 2)


@pytest.mark.checklist("X11")
def test_the_generator_sees_the_context_of_its_requester() -> None:
    variable = ContextVar("variable", default="none")

    async def items() -> AsyncGenerator[str, None]:
        yield variable.get()

    variable.set("mine")
    assert list(flow.from_async_iterable(items())) == ["mine"]


def test_a_loop_that_ends_under_a_running_flow_fails_it() -> None:
    tap = Tap()
    subscriber = TestSubscriber[int]()

    async def main() -> None:
        flow.from_async_iterable(tap.items()).subscribe(subscriber)
        while not tap.waiting.is_set():
            await asyncio.sleep(0)

    asyncio.run(main())
    subscriber.assert_failure(FlowError, 1, 2)
    assert "cancelled from outside" in str(subscriber.error)
    assert tap.closed.is_set()


def test_a_loop_that_is_closed_before_the_first_step_fails_the_flow() -> None:
    loop = asyncio.new_event_loop()
    subscriber = TestSubscriber[int]()
    flow.from_async_iterable(counted(1), loop=loop).subscribe(subscriber)
    loop.call_soon(loop.stop)
    loop.run_forever()  # makes the task, and does not come to its first step
    task = subscriber.subscription._task  # type: ignore[attr-defined]  # to keep it quiet
    task._log_destroy_pending = False
    task.get_coro().close()
    loop.close()
    subscriber.await_terminal().assert_failure(FlowError)
    assert "its event loop is closed" in str(subscriber.error)


def test_a_run_that_ends_before_the_first_step_fails_the_flow() -> None:
    subscriber = TestSubscriber[int]()

    async def main() -> None:
        made = flow.from_async_iterable(counted(1), loop=asyncio.get_running_loop())
        thread = Thread(target=made.subscribe, args=(subscriber,))
        thread.start()
        thread.join(TIMEOUT_S)

    asyncio.run(main())
    subscriber.await_terminal().assert_failure(FlowError)
    assert "cancelled from outside" in str(subscriber.error)


def test_a_task_that_is_cancelled_before_its_first_step_fails_the_flow() -> None:
    async def main() -> None:
        tap = Tap()
        subscriber = TestSubscriber[int]()
        flow.from_async_iterable(tap.items()).subscribe(subscriber)
        (task,) = asyncio.all_tasks() - {asyncio.current_task()}
        task.cancel()
        await asyncio.wait([task])
        await asyncio.sleep(0)
        subscriber.assert_failure(FlowError)
        assert "cancelled from outside" in str(subscriber.error)
        assert not tap.started.is_set()

    asyncio.run(main())


def closed_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.close()
    return loop


def test_a_closed_loop_fails_the_flow_when_something_is_requested() -> None:
    tap = Tap()
    subscriber = TestSubscriber[int](0)
    flow.from_async_iterable(tap.items(), loop=closed_loop()).subscribe(subscriber)
    subscriber.assert_not_terminated().request(1)
    subscriber.assert_failure(FlowError)
    assert "its event loop is closed" in str(subscriber.error)
    subscriber.request(1)
    subscriber.cancel()


def test_a_loop_that_was_closed_under_a_waiting_flow_fails_it_once() -> None:
    loop = asyncio.new_event_loop()
    subscriber = TestSubscriber[int](1)
    flow.from_async_iterable(counted(1, 2), loop=loop).subscribe(subscriber)

    async def wait() -> None:
        while not subscriber.items:
            await asyncio.sleep(0)
        await asyncio.sleep(0)

    loop.run_until_complete(asyncio.wait_for(wait(), TIMEOUT_S))
    task = subscriber.subscription._task  # type: ignore[attr-defined]  # to keep it quiet
    task._log_destroy_pending = False
    loop.close()
    race(lambda: subscriber.request(1), lambda: subscriber.request(1))
    subscriber.assert_failure(FlowError, 1)
    assert "its event loop is closed" in str(subscriber.error)


def test_a_cancel_after_the_loop_was_closed_is_quiet() -> None:
    subscriber = TestSubscriber[int](0)
    flow.from_async_iterable(counted(1), loop=closed_loop()).subscribe(subscriber)
    subscriber.cancel()
    subscriber.assert_silent_after_cancel()


# -- fusion, retention


@pytest.mark.checklist("F23")
@pytest.mark.parametrize("mode", [Fusion(mask) for mask in range(8)])
def test_it_does_not_fuse(mode: Fusion) -> None:
    subscriber = TestSubscriber[int](0, fusion=mode)
    flow.from_async_iterable(counted(1)).subscribe(subscriber)
    assert subscriber.fused is Fusion.NONE
    subscriber.cancel()


def finished(subscriber: TestSubscriber[int]) -> None:
    subscriber.await_terminal()


def left(subscriber: TestSubscriber[int]) -> None:
    subscriber.await_items(1)
    subscriber.cancel()


@pytest.mark.parametrize("end", [finished, left])
def test_a_subscription_that_is_kept_does_not_keep_the_subscriber(
    end: Callable[[TestSubscriber[int]], None],
) -> None:
    subscriber = TestSubscriber[int](on_item=lambda *_: None)
    flow.from_async_iterable(counted(1, 2)).subscribe(subscriber)
    subscription, seen = subscriber.subscription, weakref.ref(subscriber)
    end(subscriber)
    settle()
    del subscriber
    gc.collect()
    assert seen() is None
    assert subscription is not None


# -- using_when


class Connection:
    """An async context manager that notes what is done to it."""

    def __init__(self, log: list[Any], *, suppresses: bool = False) -> None:
        self.log = log
        self.suppresses = suppresses
        self.closed = Event()

    async def __aenter__(self) -> list[int]:
        await asyncio.sleep(0)
        self.log.append("open")
        return [1, 2, 3]

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        await asyncio.sleep(0)
        self.log.append("close" if error is None else error)
        self.closed.set()
        return self.suppresses


def test_using_when_gives_the_items_within_the_context_manager() -> None:
    log: list[Any] = []
    assert_result(lambda: flow.using_when(lambda: Connection(log), flow.from_iterable), [1, 2, 3])
    assert_result(
        lambda: flow.using_when(
            lambda: Connection([]), lambda items: flow.from_iterable(items).hide(), prefetch=1
        ),
        [1, 2, 3],
    )


def test_using_when_opens_with_the_first_request_and_closes_before_the_end() -> None:
    log: list[Any] = []
    made = flow.using_when(lambda: Connection(log), flow.from_iterable)
    subscriber = TestSubscriber[int](0)
    made.subscribe(subscriber)
    assert log == []
    subscriber.request(3)
    subscriber.await_items(3).assert_items(1, 2, 3)
    assert log == ["open"]
    subscriber.request(1)
    subscriber.await_terminal().assert_result(1, 2, 3)
    assert log == ["open", "close"]


def test_using_when_closes_with_the_error_of_the_flow() -> None:
    error = FailureError()
    log: list[Any] = []
    with pytest.raises(FailureError):
        list(flow.using_when(lambda: Connection(log), lambda _: flow.error(error)))
    assert log == ["open", error]
    suppressing = flow.using_when(
        lambda: Connection(log, suppresses=True), lambda _: flow.error(error)
    )
    assert list(suppressing) == []


def test_using_when_closes_when_it_is_cancelled_between_items() -> None:
    log: list[Any] = []
    connection = Connection(log)
    subscriber = TestSubscriber[int](1)
    flow.using_when(lambda: connection, flow.from_iterable).subscribe(subscriber)
    subscriber.await_items(1).cancel()
    assert connection.closed.wait(TIMEOUT_S)
    assert [type(entry) for entry in log] == [str, GeneratorExit]
    subscriber.assert_items(1).assert_silent_after_cancel()


def test_using_when_closes_when_it_is_cancelled_while_it_waits() -> None:
    log: list[Any] = []
    connection = Connection(log)
    waiting = Event()

    def never(_: list[int]) -> Flow[int]:
        waiting.set()
        return flow.never()

    subscriber = TestSubscriber[int]()
    flow.using_when(lambda: connection, never).subscribe(subscriber)
    assert waiting.wait(TIMEOUT_S)
    subscriber.cancel()
    assert connection.closed.wait(TIMEOUT_S)
    assert [type(entry) for entry in log] == [str, asyncio.CancelledError]
    subscriber.assert_silent_after_cancel()


def test_using_when_closes_when_it_is_cancelled_by_its_own_flow(drops: Drops) -> None:
    log: list[Any] = []
    connection = Connection(log)
    subscriber = TestSubscriber[int]()
    made = flow.using_when(
        lambda: connection,
        lambda items: flow.from_iterable(items).do_on_next(lambda _: subscriber.cancel()),
    )
    made.subscribe(subscriber)
    assert connection.closed.wait(TIMEOUT_S)
    assert [type(entry) for entry in log] == [str, GeneratorExit]
    subscriber.assert_items().assert_silent_after_cancel()
    drops.take_items()


def test_using_when_fails_with_what_the_context_manager_raises() -> None:
    error = FailureError()

    class Broken:
        async def __aenter__(self) -> int:
            raise error

        async def __aexit__(self, *_: object) -> None: ...

    assert_result(lambda: flow.using_when(Broken, flow.just), [], error, only=to_the_end)


def test_using_when_checks_what_it_is_given() -> None:
    with pytest.raises(ValueError, match="prefetch must be at least 1"):
        flow.using_when(lambda: Connection([]), flow.from_iterable, prefetch=0)
    made = flow.using_when(lambda: Connection([]), len)  # type: ignore[arg-type,var-annotated]  # the mistake
    with pytest.raises(TypeError, match=r"len gave 3, not a Flow"):
        list(made)
    assert repr(flow.using_when(Connection, flow.just)) == "using_when(Connection, just)"  # type: ignore[arg-type]  # never run
