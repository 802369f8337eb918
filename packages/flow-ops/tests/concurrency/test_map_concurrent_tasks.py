"""`map_concurrent` in a running loop, in a given one, and in a separate one."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from importlib import import_module
from typing import Any, TypeVar

import pytest

import flow_core as flow
from flow_core.errors import FlowError, LoopEndedError
from flow_core.homes import library_loop
from flow_ops import map_concurrent, observe_on
from flow_testing import (
    DOWNSTREAMS,
    ENDINGS,
    TIMEOUT_S,
    Ending,
    Payloads,
    TestPublisher,
    TestSubscriber,
    assert_released,
    assert_result,
    observe,
)

T = TypeVar("T")

USER: ContextVar[str] = ContextVar("user", default="nobody")


def in_loop(main: Callable[[], Coroutine[Any, Any, T]], *, debug: bool = True) -> T:
    """Return the result of `main`, in time; then no task is left, and no thread."""

    async def whole() -> T:
        result = await asyncio.wait_for(main(), TIMEOUT_S)
        await turns(5)
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return result

    threads = set(threading.enumerate())
    result = asyncio.run(whole(), debug=debug)
    for thread in set(threading.enumerate()) - threads:
        thread.join(TIMEOUT_S)  # it has to end, and may be about to
    assert set(threading.enumerate()) <= threads
    return result


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def later(item: T) -> T:
    await asyncio.sleep(0)
    return item


async def at_once(item: T) -> T:
    return item


Work = Callable[[int], Coroutine[Any, Any, int]]


class Desk:
    """Coroutines that end when the test says so."""

    def __init__(self) -> None:
        self.waiting: dict[Any, asyncio.Future[Any]] = {}
        self.cancelled: list[Any] = []
        self.most = 0

    async def __call__(self, item: Any) -> Any:
        future = asyncio.get_running_loop().create_future()
        self.waiting[item] = future
        self.most = max(self.most, len(self.waiting))
        try:
            return await future
        except asyncio.CancelledError:
            self.cancelled.append(item)
            raise
        finally:
            del self.waiting[item]

    async def answer(self, item: Any, result: Any) -> None:
        if isinstance(result, BaseException):
            self.waiting[item].set_exception(result)
        else:
            self.waiting[item].set_result(result)
        await turns(3)


# -- the beginning


@pytest.mark.skipif(sys.version_info < (3, 12), reason="needs asyncio's eager tasks")
@pytest.mark.parametrize("ordered", [True, False])
def test_a_coroutine_begins_as_soon_as_its_item_is_there(
    ordered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("flow_ops.concurrency._tasks"), "_HOLD_S", 3600)
    begun: list[int] = []

    async def odd_later(item: int) -> int:
        begun.append(item)
        return await later(item) if item % 2 else item

    async def main() -> None:
        items = flow.range(5).pipe(map_concurrent(odd_later, 2, ordered=ordered))
        subscriber = observe(items)
        assert begun == [0, 1, 2, 3]
        subscriber.assert_items(*([0] if ordered else [0, 2]))
        await turns(6)
        subscriber.assert_result(*([0, 1, 2, 3, 4] if ordered else [0, 2, 1, 3, 4]))

    in_loop(main)


@pytest.mark.parametrize("concurrency", [1, 10])
def test_coroutines_that_never_wait_leave_others_their_turn(concurrency: int) -> None:
    async def main() -> None:
        endless = flow.range(10**12).map_concurrent(at_once, concurrency)
        subscriber = observe(endless)
        await turns(3)
        subscriber.cancel()
        assert subscriber.items == list(range(len(subscriber.items)))

        other = asyncio.create_task(turns(3))
        async for _ in endless:
            if other.done():
                break

    in_loop(main, debug=False)


def test_a_task_factory_of_the_loop_is_respected() -> None:
    made: list[asyncio.Task[Any]] = []

    async def main() -> list[int]:
        def factory(
            loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **more: Any
        ) -> asyncio.Task[Any]:
            task = asyncio.Task(work, loop=loop, **more)
            made.append(task)
            return task

        asyncio.get_running_loop().set_task_factory(factory)
        return await flow.range(2).map_concurrent(at_once, 1).to_list()

    assert asyncio.run(main()) == [0, 1]
    names = [task.get_name() for task in made]
    assert sum(name.startswith("map_concurrent(at_once, 1) test_map_") for name in names) == 2


@pytest.mark.skipif(sys.version_info < (3, 14), reason="for Python 3.14, where tasks tell")
def test_the_call_graph_of_each_task_shows_the_task_that_runs_the_flow() -> None:
    async def main() -> None:
        waiters: list[Any] = []
        tasks: list[Any] = []

        async def seen(number: int) -> int:
            await asyncio.sleep(0)
            tasks.append(asyncio.current_task())
            graph: Any = vars(asyncio)["capture_call_graph"](tasks[-1])
            waiters.extend(caller.future for caller in graph.awaited_by)
            return number

        async def generated() -> AsyncIterator[int]:
            yield await seen(0)

        await flow.range(2).map_concurrent(seen, 2).to_list()
        await flow.from_async_iterable(generated()).to_list()
        await turns(3)  # callbacks of the last task come now
        assert waiters == [asyncio.current_task()] * 3
        assert [vars(asyncio)["capture_call_graph"](task).awaited_by for task in tasks] == [()] * 3

    in_loop(main)


# -- results


@pytest.mark.parametrize("concurrency", [1, 2, 16])
def test_results_keep_the_order(concurrency: int) -> None:
    async def backwards(n: int) -> int:
        await turns(10 - n)
        return n

    async def main() -> list[int]:
        made = flow.range(9).pipe(map_concurrent(backwards, concurrency))
        return await made.to_list()

    assert in_loop(main) == list(range(9))


def test_results_come_as_they_are_ready_if_order_does_not_matter() -> None:
    async def main() -> None:
        desk = Desk()
        made = flow.range(3).pipe(map_concurrent(desk, 3, ordered=False))
        subscriber = observe(made)
        await turns(1)
        for n in (1, 2, 0):
            await desk.answer(n, f"<{n}>")
        subscriber.assert_result("<1>", "<2>", "<0>")

    in_loop(main)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_every_form_gives_the_same(concurrency: int) -> None:
    operator: flow.Operator[int, flow.Flow[int]] = map_concurrent(later, concurrency)
    assert_result(lambda: flow.range(5).pipe(operator), range(5))
    assert_result(lambda: flow.empty().pipe(operator), [])
    error = ValueError("upstream")
    leaving = tuple(form.name for form in DOWNSTREAMS if form.cancels)
    assert_result(
        lambda: flow.error(error).pipe(operator),
        [],
        error,
        # A subscriber that leaves early finds the error in the hook; later, in another form.
        only=lambda name: not name.endswith(leaving),
    )


def test_anything_that_can_be_awaited_will_do() -> None:
    async def main() -> list[int]:
        loop = asyncio.get_running_loop()

        def future(n: int) -> asyncio.Future[int]:
            made = loop.create_future()
            loop.call_soon(made.set_result, n)
            return made

        return await flow.range(3).pipe(map_concurrent(future, 1, loop=loop)).to_list()

    assert in_loop(main) == [0, 1, 2]


def test_twenty_thousand_items_in_constant_stack() -> None:
    async def now(n: int) -> int:
        return n

    async def main() -> int:
        made = flow.range(20_000).pipe(map_concurrent(now, 64))
        return await made.count()

    async def plain() -> int:
        return await asyncio.wait_for(main(), TIMEOUT_S)

    assert asyncio.run(plain()) == 20_000


# -- where it runs


def test_in_a_running_loop_no_thread_is_used() -> None:
    async def main() -> set[int]:
        seen: set[int] = set()

        async def here(n: int) -> int:
            seen.add(threading.get_ident())
            return n

        async for _ in flow.range(3).pipe(map_concurrent(here, 1)):
            seen.add(threading.get_ident())
        return seen

    assert in_loop(main) == {threading.get_ident()}


@pytest.mark.checklist("X12")
def test_items_of_another_thread_come_on_the_loops() -> None:
    async def main() -> None:
        source = TestPublisher[int]()
        made = flow.Flow(source).pipe(map_concurrent(later, 4))
        here = threading.current_thread()
        subscriber = observe(made)

        def send() -> None:
            source.next(1, 2, 3)
            source.complete()

        await asyncio.to_thread(send)
        while not subscriber.terminated:
            await asyncio.sleep(0)
        subscriber.assert_on_thread(here).assert_result(1, 2, 3)
        await asyncio.get_running_loop().shutdown_default_executor()

    in_loop(main)


def test_without_a_loop_the_coroutines_of_all_flows_run_in_one() -> None:
    loops: set[asyncio.AbstractEventLoop] = set()

    async def seen(n: int) -> int:
        loops.add(asyncio.get_running_loop())
        return n

    subscriber = observe(flow.range(3).map_concurrent(seen, 1)).await_terminal()
    subscriber.assert_on_thread("flow-loop").assert_result(0, 1, 2)
    inner = flow.range(9).flat_map(lambda n: flow.just(n).map_concurrent(seen, 1))
    assert sorted(inner.map_concurrent(seen, 2)) == list(range(9))
    assert loops == {library_loop()}


@pytest.mark.parametrize("slots", [1, 2, 5, 128])
@pytest.mark.parametrize("items", [3, 5, 20])
@pytest.mark.parametrize("running", [False, True])
def test_each_item_may_have_a_separate_flow_with_coroutines(
    items: int, slots: int, running: bool
) -> None:
    made = flow.range(items).flat_map(
        lambda n: flow.just(n).map_concurrent(later, 1).map_concurrent(later, 1), concurrency=slots
    )

    async def main() -> list[int]:
        return [n async for n in made]

    assert sorted(asyncio.run(main()) if running else made) == list(range(items))


def test_an_inner_flow_on_another_thread_has_the_loop_that_runs_the_flow() -> None:
    async def main() -> None:
        loops: set[asyncio.AbstractEventLoop] = set()

        async def seen(n: int) -> int:
            loops.add(asyncio.get_running_loop())
            return n

        with ThreadPoolExecutor(1) as pool:
            moved = flow.range(3).hide().observe_on(pool)
            made = moved.concat_map(lambda n: flow.just(n).map_concurrent(seen, 1))
            assert [n async for n in made] == [0, 1, 2]
        assert loops == {asyncio.get_running_loop()}

    in_loop(main)


def test_a_cancel_ends_what_runs_in_the_loop_of_the_library() -> None:
    started, finished = threading.Event(), threading.Event()

    async def forever(_: int) -> int:
        started.set()
        try:
            return await asyncio.get_running_loop().create_future()
        finally:
            finished.set()

    subscriber = observe(flow.range(3).pipe(map_concurrent(forever, 1)))
    assert started.wait(TIMEOUT_S)
    subscriber.cancel()
    assert finished.wait(TIMEOUT_S)
    subscriber.assert_silent_after_cancel()


def test_it_runs_in_the_loop_that_was_given() -> None:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="given")
    thread.start()
    try:
        made = flow.range(3).pipe(map_concurrent(later, 2, loop=loop))
        observe(made).await_terminal().assert_on_thread("given").assert_result(0, 1, 2)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
    observe(made).assert_failure(FlowError).assert_error_message("closed")


def test_a_task_has_a_copy_of_the_subscribers_context() -> None:
    async def user(n: int) -> str:
        before = USER.get()
        USER.set(str(n))
        return before

    async def main() -> list[str]:
        USER.set("Ada")
        return await flow.range(2).pipe(map_concurrent(user, 1)).to_list()

    assert in_loop(main) == ["Ada", "Ada"]


# -- demand


def test_no_more_run_than_allowed_and_results_that_wait_count() -> None:
    async def main() -> None:
        desk = Desk()
        source = TestPublisher[int]()
        subscriber = TestSubscriber[str](0)
        made = flow.Flow(source).pipe(map_concurrent(desk, 2))
        made.subscribe(subscriber)
        source.assert_requests(2)
        source.next(0, 1)
        await turns(2)
        assert sorted(desk.waiting) == [0, 1]
        assert source.outstanding == 2
        source.next(2, 3)
        await desk.answer(0, "a")
        await desk.answer(1, "b")
        assert not desk.waiting
        subscriber.request(1)
        await turns(2)
        assert sorted(desk.waiting) == [2]
        subscriber.assert_items("a")
        source.complete()
        subscriber.request(9)
        await turns(2)
        await desk.answer(3, "d")
        await desk.answer(2, "c")
        subscriber.assert_result("a", "b", "c", "d")
        assert desk.most == 2

    in_loop(main)


# -- errors and cancellation


def test_a_failed_task_fails_the_flow_and_cancels_the_others() -> None:
    async def main() -> None:
        desk, error = Desk(), ValueError("task")
        source = TestPublisher[int]()
        subscriber = observe(flow.Flow(source).pipe(map_concurrent(desk, 3)))
        source.next(0, 1, 2)
        await turns(2)
        await desk.answer(1, error)
        subscriber.assert_not_terminated()  # the result before it is not there
        await desk.answer(0, "a")
        subscriber.assert_failure(error, "a")
        assert any("map_concurrent" in note for note in error.__notes__)
        source.assert_cancelled()
        await turns(2)
        assert desk.cancelled == [2]

    in_loop(main)


def test_the_consumers_task_gets_the_error() -> None:
    async def fails(n: int) -> int:
        await asyncio.sleep(0)
        raise KeyError(n)

    async def main() -> None:
        with pytest.raises(KeyError):
            await flow.just(1).pipe(map_concurrent(fails, 1))
        with pytest.raises(KeyError):
            async for _ in flow.just(1).pipe(map_concurrent(fails, 1)):
                pass

    in_loop(main)


@pytest.mark.checklist("O26", "X06")
@pytest.mark.parametrize("consume", ["async for", "await"])
def test_a_consumer_that_is_cancelled_cancels_the_tasks(consume: str) -> None:
    async def main() -> None:
        desk = Desk()
        made = flow.range(9).pipe(map_concurrent(desk, 3))

        async def iterate() -> None:
            if consume == "await":
                await made.to_list()
            async for _ in made:
                pass

        task = asyncio.create_task(iterate())
        await turns(5)
        assert sorted(desk.waiting) == [0, 1, 2]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await turns(3)
        assert sorted(desk.cancelled) == [0, 1, 2]

    in_loop(main)


def test_leaving_the_loop_cancels_the_tasks() -> None:
    async def main() -> None:
        desk = Desk()
        made = flow.range(9).pipe(map_concurrent(desk, 3))
        first = asyncio.create_task(take_one(made))
        await turns(5)
        await desk.answer(0, "a")
        assert await first == "a"
        await turns(5)
        assert not desk.waiting

    in_loop(main)


async def take_one(made: flow.Flow[Any]) -> Any:
    async for item in made:
        return item
    return None


def test_a_task_that_is_cancelled_from_outside_fails_the_flow() -> None:
    async def main() -> None:
        tasks: list[Any] = []

        async def leave(_: int) -> int:
            tasks.append(asyncio.current_task())
            tasks[0].cancel()
            await asyncio.sleep(0)
            return 1

        subscriber = observe(flow.just(1).pipe(map_concurrent(leave, 1)))
        await turns(4)
        subscriber.assert_failure(FlowError).assert_error_message("cancelled from outside")

    in_loop(main)


class Connection:
    """Replies that coroutines await, and of which another task cancels the first ones."""

    def __init__(self, breaks: int) -> None:
        self.breaks = breaks

    async def ask(self, item: int) -> int:
        reply = asyncio.ensure_future(later(item))
        if self.breaks:
            self.breaks -= 1
            reply.cancel()
        return await reply


@pytest.mark.parametrize("plain", [True, False], ids=["a coroutine function", "a lambda"])
@pytest.mark.parametrize("timeout", [None, 60])
def test_a_cancellation_of_an_awaited_future_is_an_error_like_others(
    plain: bool, timeout: float | None
) -> None:
    if not plain and timeout:
        return  # which is for coroutine functions

    async def main() -> None:
        def asked(breaks: int) -> Callable[[int], Any]:
            connection = Connection(breaks)
            return connection.ask if plain else lambda n: connection.ask(n)

        more: dict[str, Any] = {"timeout": timeout} if timeout else {}
        retried = flow.range(3).map_concurrent(asked(2), 1, retry=2, **more)
        assert await retried.to_list() == [0, 1, 2]

        failed: list[Exception] = []
        instead = flow.range(3).map_concurrent(
            asked(1), 1, fallback=lambda n, error: failed.append(error) or -1, **more
        )
        assert await instead.to_list() == [-1, 1, 2]
        assert isinstance(failed[0].__cause__, asyncio.CancelledError)

        with pytest.raises(FlowError, match="what it awaits was cancelled") as raised:
            await flow.range(3).map_concurrent(asked(1), 1, **more).to_list()
        assert not isinstance(raised.value, LoopEndedError)
        assert isinstance(raised.value.__cause__, asyncio.CancelledError)
        with pytest.raises(FlowError, match="what it awaits was cancelled"):
            await flow.range(3).do_concurrent(asked(1), 1).run_async()
        if plain:
            with pytest.raises(FlowError, match="what it awaits was cancelled"):
                await flow.range(3).for_each_async(asked(1))
            await flow.range(3).for_each_async(asked(1), concurrency=2, retry=1)

    in_loop(main)


def test_a_consumer_that_is_cancelled_is_not_tried_again() -> None:
    async def main() -> None:
        desk = Desk()
        answers = flow.range(3).map_concurrent(desk, 3, retry=5, fallback=lambda n, error: n)
        consumer = asyncio.create_task(answers.run_async())
        await turns(3)
        assert len(desk.waiting) == 3
        consumer.cancel()
        await asyncio.wait([consumer])
        assert consumer.cancelled()
        assert sorted(desk.cancelled) == [0, 1, 2]
        assert not desk.waiting

    in_loop(main)


def test_a_task_that_cleans_up_after_a_cancel_is_not_cancelled_again() -> None:
    async def main() -> None:
        works: list[Any] = []
        cleaned: list[int] = []
        may_end = asyncio.Event()

        async def slow_to_leave(n: int) -> int:
            works.append(asyncio.current_task())
            try:
                await asyncio.sleep(3600)
            finally:
                await may_end.wait()
                cleaned.append(n)
            return n

        consumer = asyncio.create_task(flow.range(2).map_concurrent(slow_to_leave, 2).run_async())
        await turns(3)
        for task in works:
            task.cancel()  # as a loop does that ends
        await turns(2)
        consumer.cancel()
        await turns(2)
        may_end.set()
        await asyncio.wait([consumer])
        assert sorted(cleaned) == [0, 1]

    in_loop(main)


def test_behind_a_slow_head_others_begin_as_soon_as_there_is_room() -> None:
    async def main() -> None:
        desk = Desk()
        answers = flow.range(6).map_concurrent(desk, 2)
        subscriber = observe(answers)
        await turns(3)
        assert sorted(desk.waiting) == [0, 1]
        await desk.answer(1, "b")
        assert sorted(desk.waiting) == [0, 2], "nothing begins behind a slow head"
        await desk.answer(2, "c")
        assert sorted(desk.waiting) == [0, 3]
        subscriber.assert_no_items()
        await desk.answer(0, "a")
        subscriber.assert_items("a", "b", "c")
        subscriber.cancel()
        await turns(3)

    in_loop(main)


@pytest.mark.parametrize("ordered", [True, False])
def test_of_tasks_that_fail_together_the_first_one_tells_of_the_others(
    ordered: bool, dropped: Any
) -> None:
    async def main() -> None:
        begun, ready = asyncio.Event(), asyncio.Event()

        async def fail(n: int) -> int:
            if n == 9:
                begun.set()
            await ready.wait()
            raise ValueError(n)

        consumer = asyncio.create_task(
            flow.range(10).map_concurrent(fail, 10, ordered=ordered).run_async()
        )
        await begun.wait()
        ready.set()
        with pytest.raises(ValueError) as raised:
            await consumer
        assert raised.value.args == (0,)
        (note,) = [note for note in raised.value.__notes__ if "same time" in note]
        assert note == (
            "at the same time failed: ValueError(1), ValueError(2), ValueError(3) and 6 more"
        )

    in_loop(main)
    assert dropped.errors == []


def test_the_error_or_result_of_a_cancelled_task_goes_to_the_hook(dropped: Any) -> None:
    async def stubborn(n: int) -> int:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            if n:
                raise ValueError(n) from None
        return n

    async def main() -> None:
        subscriber = observe(flow.range(2).pipe(map_concurrent(stubborn, 2)))
        await turns(2)
        subscriber.cancel()
        await turns(3)
        subscriber.assert_silent_after_cancel()

    in_loop(main)
    assert dropped.items == [0]
    assert [error.args for error in dropped.errors] == [(1,)]


def test_a_result_that_is_not_awaitable_or_is_none_fails_the_flow() -> None:
    async def nothing(_: int) -> None:
        pass

    async def main() -> None:
        wrong: Any = str
        one = observe(flow.just(1).pipe(map_concurrent(wrong, 1, timeout=60)))
        none = observe(flow.just(1).pipe(map_concurrent(nothing, 1)))
        await turns(4)
        one.assert_failure(TypeError).assert_error_message("cannot be awaited")
        none.assert_failure(flow.NoneItemError)

    in_loop(main)


@pytest.mark.parametrize("first", [later, at_once])
def test_a_fatal_error_propagates_through_the_loop_and_fails_the_flow(first: Work) -> None:
    async def leave(item: int) -> int:
        await first(item)
        raise SystemExit(3)

    subscriber = TestSubscriber[int]()

    async def main() -> None:
        flow.just(1).pipe(map_concurrent(leave, 1)).subscribe(subscriber)
        await turns(5)

    with pytest.raises(SystemExit):
        asyncio.run(main())
    subscriber.assert_failure(FlowError).assert_error_message("ended by SystemExit")


def test_arguments_are_checked() -> None:
    with pytest.raises(TypeError, match="coroutine function"):
        map_concurrent(None, 1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="concurrency"):
        map_concurrent(later, 0)
    with pytest.raises(TypeError, match="concurrency"):
        map_concurrent(later, "1")  # type: ignore[arg-type]


# -- retention


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
@pytest.mark.parametrize("ordered", [True, False])
def test_it_lets_go_of_everything(ordered: bool, ending: Ending) -> None:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def same(item: Any) -> Any:
        return item

    def make(payloads: Payloads) -> flow.Flow[Any]:
        operator: flow.Operator[Any, flow.Flow[Any]] = map_concurrent(
            same, 2, ordered=ordered, loop=loop
        )
        return flow.from_iterable(payloads).pipe(operator)

    def settle() -> None:
        asyncio.run_coroutine_threadsafe(turns(10), loop).result()
        asyncio.run_coroutine_threadsafe(turns(1), loop).result()

    try:
        assert_released(make, settle=settle, only=lambda name: name == ending.name)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


# -- coroutine functions where none belongs


async def is_even(n: int) -> bool:
    return n % 2 == 0


@pytest.mark.parametrize(
    "apply",
    [
        lambda made: made.map(is_even),
        lambda made: made.filter(is_even),
        lambda made: made.do_on_next(is_even),
        lambda made: made.take_while(is_even),
        lambda made: made.reduce(is_even),
    ],
)
def test_a_coroutine_function_is_refused_where_it_is_not_awaited(
    apply: Callable[[Any], Any],
) -> None:
    with pytest.raises(TypeError, match="map_concurrent"):
        apply(flow.range(3))


# -- loops as executors, and wake-ups between threads


@pytest.fixture
def loop_thread() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="loop")
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.mark.checklist("O15", "X12")
@pytest.mark.parametrize("prefetch", [1, 3, 128])
def test_a_producing_thread_loses_no_wake_up(prefetch: int) -> None:
    async def main() -> int:
        loop = asyncio.get_running_loop()
        demand, sent = threading.Semaphore(0), 500

        class Thread(flow.Publisher[int]):
            def subscribe(self, subscriber: Any, /) -> None:
                subscriber.on_subscribe(self)
                self.thread = threading.Thread(target=self.run, args=(subscriber,))
                self.thread.start()

            def run(self, subscriber: Any) -> None:
                for n in range(sent):
                    assert demand.acquire(timeout=TIMEOUT_S)
                    subscriber.on_next(n)
                subscriber.on_complete()

            def request(self, n: int, /) -> None:
                demand.release(min(n, sent))

            def cancel(self) -> None: ...

        source = Thread()
        observed = flow.Flow(source).pipe(observe_on(loop.call_soon_threadsafe, prefetch=prefetch))
        made = observed.pipe(map_concurrent(later, prefetch))
        expected = 0
        async for item in made:
            assert item == expected
            expected += 1
        source.thread.join()
        return expected

    assert in_loop(main, debug=False) == 500


def test_requests_of_another_thread_lose_no_wake_up(
    loop_thread: asyncio.AbstractEventLoop,
) -> None:
    made = flow.range(500).pipe(map_concurrent(later, 3, loop=loop_thread))
    for expected, item in enumerate(made.iterate(prefetch=2)):
        assert item == expected
