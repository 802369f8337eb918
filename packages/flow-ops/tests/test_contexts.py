"""Context variables, statistics and assembly traces across an executor's threads."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, wait
from contextvars import Context, ContextVar, copy_context
from threading import Event, Thread
from time import sleep
from typing import Any
from weakref import ref

import pytest

import flow_core as flow
from flow_cli.explain import explain
from flow_core import UNBOUNDED, Emitter, Flow, Fusion, hooks
from flow_core.introspection import Statistics, links, report
from flow_ops import concat_map, observe_on
from flow_testing import TIMEOUT_S, TestPublisher, TestSubscriber, observe, race

USER: ContextVar[str] = ContextVar("user", default="nobody")


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2, thread_name_prefix="pool") as pool:
        yield pool


@pytest.fixture(autouse=True)
def as_ada() -> Iterator[None]:
    token = USER.set("Ada")
    yield
    USER.reset(token)


def user(_: object) -> str:
    return USER.get()


def both(above: str) -> tuple[str, str]:
    return above, USER.get()


# -- contexts


# What moves a flow to another thread, or to later, takes the context of the subscriber along. Each
# of these is given a source and a pool.

Moved = Callable[[Flow[int], ThreadPoolExecutor], Flow[Any]]


def started(emitter: Emitter[int]) -> None:
    """Send three items from a thread that was started by hand, and knows no context."""

    def send() -> None:
        for n in range(3):
            emitter.next(n)
        emitter.complete()

    Thread(target=lambda: Context().run(send)).start()


class Once:
    """Fails for the first item of all."""

    def __init__(self) -> None:
        self.failed = False

    def __call__(self, item: int) -> int:
        if not self.failed:
            self.failed = True
            raise OSError("the first item")
        return item


async def awaited(item: int) -> int:
    await asyncio.sleep(0)
    return item


MOVED: dict[str, Moved] = {
    "observe_on": lambda made, pool: made.observe_on(pool),
    "subscribe_on": lambda made, pool: made.subscribe_on(pool),
    "cancel_on": lambda made, pool: made.observe_on(pool).cancel_on(pool).take(2),
    "parallel": lambda made, pool: made.parallel(2).run_on(pool).map(user_too).sequential(),
    "sorted rails": lambda made, pool: flow.ordered_merge(made, made, executor=pool),
    "map_concurrent, threads": lambda made, pool: made.map_concurrent(user_too, 2, executor=pool),
    "map_concurrent, coroutines": lambda made, _: made.map_concurrent(awaited, 2),
    "do_concurrent": lambda made, pool: made.do_concurrent(user, 2, executor=pool),
    "delay": lambda made, _: made.delay(0.001),
    "delay_subscription": lambda made, _: made.delay_subscription(0.001),
    "interval": lambda _, __: flow.interval(0.001).take(3),
    "timer": lambda _, __: flow.timer(0.001),
    "timeout": lambda made, _: flow.just(1).delay(9).timeout(0.001, fallback=made),
    "batch": lambda made, _: made.concat(flow.never()).buffer_with_time(0.001).take(1),
    "rate_limit": lambda made, _: made.rate_limit(1000),
    "sample": lambda _, __: flow.interval(0.001).sample(0.002).take(2),
    "throttle": lambda _, __: flow.interval(0.001).throttle_latest(0.002).take(2),
    "retry": lambda made, _: made.map(Once()).retry(1),
    "retry with a pause": lambda made, _: made.map(Once()).retry(1, backoff=0.001),
    "retry behind a pool": lambda made, pool: made.observe_on(pool).map(Once()).retry(1),
    "retry of a thread": lambda made, _: flow.create(started).map(Once()).retry(1).observe_on(now),
    "repeat of a thread": lambda made, _: flow.create(started).ignore_elements().concat(made),
    "resume": lambda made, _: flow.create(started).map(Once()).on_error_resume(lambda _: made),
    "inner flows": lambda made, _: made.flat_map(lambda n: flow.just(n).delay(0.001)),
    "groups": lambda made, pool: made.observe_on(pool).group_by(bool).flat_map(lambda part: part),
    "merge": lambda made, pool: made.observe_on(pool).merge(flow.timer(0.001)),
    "zip": lambda made, pool: made.observe_on(pool).zip(made.delay(0.001)),
    "a future": lambda _, pool: flow.from_future(pool.submit(one, 0.001)),
    "an async iterable": lambda _, __: flow.from_async_iterable(flow.range(3)),
}


def one(wait_s: float) -> int:
    sleep(wait_s)
    return 1


def now(task: Callable[[], object]) -> None:
    """An executor that runs tasks at once."""
    task()


def user_too(item: int) -> tuple[int, str]:
    return item, USER.get()


@pytest.mark.checklist("X11")
@pytest.mark.parametrize("moved", MOVED.values(), ids=MOVED)
def test_an_operator_that_moves_a_flow_takes_the_context_of_the_subscriber_along(
    moved: Moved, pool: ThreadPoolExecutor
) -> None:
    wait([pool.submit(Context().run, user, None) for _ in range(2)])  # it has no user
    seen: list[str] = []

    def note(_: object = None) -> None:
        seen.append(USER.get())

    source = flow.range(3).do_on_next(note).hide()
    made = moved(source, pool).do_on_next(note).do_on_terminate(note)
    subscriber = observe(made).await_terminal()
    assert subscriber.completed
    assert {*seen} == {"Ada"}
    for item in subscriber.items:
        if isinstance(item, tuple):
            assert item[1] in {"Ada", *range(3)}


FOLLOWED: dict[str, Callable[[Flow[int], Flow[int]], Flow[int]]] = {
    "concat": lambda first, second: first.concat(second),
    "repeat": lambda first, _: first.repeat(2),
    "retry": lambda first, _: first.map(Once()).retry(1),
    "on_error_resume": lambda first, second: first.map(Once()).on_error_resume(lambda _: second),
    "switch_if_empty": lambda first, second: first.ignore_elements().switch_if_empty(second),
}


@pytest.mark.checklist("X11")
@pytest.mark.parametrize("followed", FOLLOWED.values(), ids=FOLLOWED)
def test_the_next_flow_is_subscribed_to_in_the_context_of_the_subscriber(
    followed: Callable[[Flow[int], Flow[int]], Flow[int]],
) -> None:
    seen: list[str] = []
    emitters: list[Emitter[int]] = []

    def begin(emitter: Emitter[int]) -> None:
        seen.append(USER.get())
        emitters.append(emitter)

    def end() -> None:
        emitters[0].next(1)
        emitters[0].complete()

    made = followed(flow.create(begin), flow.create(begin))
    observe(made)
    thread = Thread(target=lambda: Context().run(end))
    thread.start()
    thread.join(TIMEOUT_S)
    assert seen == ["Ada", "Ada"]


@pytest.mark.checklist("X11")
@pytest.mark.parametrize("moved", MOVED.values(), ids=MOVED)
def test_it_does_so_in_an_event_loop(moved: Moved, pool: ThreadPoolExecutor) -> None:
    wait([pool.submit(Context().run, user, None) for _ in range(2)])
    seen: list[str] = []

    def note(_: object = None) -> None:
        seen.append(USER.get())

    async def main() -> None:
        USER.set("the task")
        source = flow.range(3).do_on_next(note).hide()
        made = moved(source, pool).do_on_next(note).do_on_terminate(note)
        await asyncio.wait_for(made.run_async(), TIMEOUT_S)

    asyncio.run(main())
    assert {*seen} == {"the task"}


@pytest.mark.checklist("X11")
def test_items_of_a_user_thread_have_its_context_until_moved_or_captured(
    pool: ThreadPoolExecutor,
) -> None:
    def seen(made: Flow[int]) -> set[str]:
        return {*observe(made.map(user)).await_terminal().items}

    made = flow.create(started)
    assert seen(made) == {"nobody"}
    assert seen(made.context_capture()) == {"Ada"}
    assert seen(made.observe_on(pool)) == {"Ada"}


FED: dict[str, Moved] = {
    "observe_on": lambda made, pool: made.observe_on(pool),
    "coroutines": lambda made, _: made.map_concurrent(awaited, 2),
    "coroutines that need not wait": lambda made, _: made.map_concurrent(at_once, 2),
    "threads": lambda made, pool: made.map_concurrent(abs, 2, executor=pool),
    "ordered_merge": lambda made, pool: flow.ordered_merge(made, made, executor=pool),
    "inner flows": lambda made, _: made.flat_map(lambda n: flow.from_async_iterable(user_of(n))),
}


async def at_once(item: int) -> int:
    return item


async def user_of(_: int) -> AsyncIterator[str]:
    yield USER.get()


@pytest.mark.checklist("X11")
@pytest.mark.parametrize("moved", FED.values(), ids=FED)
def test_items_of_a_thread_without_the_context_have_it_after_the_flow_is_moved(
    moved: Moved, pool: ThreadPoolExecutor
) -> None:
    wait([pool.submit(Context().run, user, None) for _ in range(2)])
    made = moved(flow.create(started), pool)

    async def main() -> list[Any]:
        USER.set("the task")
        return [item async for item in made.map(seen_there)]

    def seen_there(item: object) -> object:
        return item if isinstance(item, str) else USER.get()

    assert {*asyncio.run(main())} == {"the task"}
    if moved is not FED["inner flows"]:  # outside of a loop, these are subscribed to by the thread
        assert {*observe(made.map(user)).await_terminal().items} == {"Ada"}


@pytest.mark.checklist("X11")
def test_results_of_coroutines_have_the_context_of_the_subscriber_whichever_task_brings_items() -> (
    None
):
    emitters: list[Emitter[int]] = []

    async def another_task() -> None:
        for n in range(9):
            emitters[0].next(n)
            await asyncio.sleep(0)
        emitters[0].complete()

    async def main() -> list[tuple[int, str]]:
        USER.set("the task")
        made = flow.create(emitters.append)
        results = made.map_concurrent(awaited, 2).map(user_too).to_list()
        running = asyncio.ensure_future(results)
        await asyncio.sleep(0)
        await asyncio.create_task(another_task(), context=Context())
        return await running

    assert asyncio.run(main()) == [(n, "the task") for n in range(9)]


@pytest.mark.checklist("X11")
def test_items_another_thread_requests_come_in_the_context_of_the_subscriber(
    pool: ThreadPoolExecutor,
) -> None:
    subscriber = observe(flow.range(3).hide().map(user).subscribe_on(pool), request=0)
    race(lambda: Context().run(subscriber.request, 3))
    subscriber.await_terminal().assert_result("Ada", "Ada", "Ada")


@pytest.mark.checklist("X11")
def test_functions_that_are_called_in_the_loop_see_the_context_of_the_subscriber() -> None:
    seen: list[str] = []

    async def main() -> None:
        USER.set("the task")
        ended = asyncio.get_running_loop().create_future()

        def end() -> None:
            seen.append(USER.get())
            ended.set_result(None)

        flow.create(started).subscribe(lambda _: seen.append(USER.get()), on_complete=end)
        await ended

    asyncio.run(main())
    assert seen == ["the task"] * 4


@pytest.mark.slow
@pytest.mark.checklist("X11")
def test_results_of_processes_come_in_the_context_of_the_subscriber() -> None:
    with ProcessPoolExecutor(1) as processes:
        made = flow.range(3).hide().on_processes(processes).map(abs).hide().map(user)
        observe(made).await_terminal().assert_result("Ada", "Ada", "Ada")


@pytest.mark.checklist("X11")
def test_a_function_that_a_pool_calls_changes_no_context_but_its_own(
    pool: ThreadPoolExecutor,
) -> None:
    def becomes_root(_: int) -> str:
        before = USER.get()
        USER.set("root")
        return before

    made = flow.range(5).map_concurrent(becomes_root, 2, executor=pool).map(both)
    observe(made).await_terminal().assert_result(*[("Ada", "Ada")] * 5)


@pytest.mark.checklist("X11")
def test_a_timer_that_is_disposed_of_keeps_no_context() -> None:
    class Request:
        pass

    variable: ContextVar[Request | None] = ContextVar("request", default=None)

    def waits() -> ref[Request]:
        request = Request()
        variable.set(request)
        observe(flow.timer(3600)).cancel()
        return ref(request)

    gone = copy_context().run(waits)
    gc.collect()
    assert gone() is None


@pytest.mark.checklist("X11")
def test_two_subscribers_on_one_pool_keep_their_contexts_apart(pool: ThreadPoolExecutor) -> None:
    made = flow.range(200).hide().pipe(observe_on(pool)).map(user)
    subscribers: list[TestSubscriber[str]] = []
    for name in ("Grace", "Barbara"):
        token = USER.set(name)
        subscribers.append(observe(made))
        USER.reset(token)
    for subscriber, name in zip(subscribers, ("Grace", "Barbara"), strict=True):
        subscriber.await_terminal().assert_result(*[name] * 200)


@pytest.mark.checklist("X11")
def test_the_executor_requests_above_a_write_and_what_runs_there_sees_the_values(
    pool: ThreadPoolExecutor,
) -> None:
    upstream = flow.range(300).hide().map(user)
    tasks: list[Callable[[], object]] = []
    without = observe(upstream.pipe(observe_on(tasks.append, prefetch=4)))
    race(lambda: tasks.pop()())
    assert without.items == ["Ada"] * 300, "the executor requests most of it"
    made = upstream.context_write({}).pipe(observe_on(pool, prefetch=4))
    observe(made).await_terminal().assert_result(*["Ada"] * 300)
    written = upstream.context_write(USER, "root").pipe(observe_on(pool, prefetch=4))
    observe(written.map(both)).await_terminal().assert_result(*[("root", "Ada")] * 300)


@pytest.mark.checklist("X11")
def test_inner_flows_see_the_context_of_the_link_that_is_above_or_below_them() -> None:
    def inner(n: int) -> Flow[tuple[str, str]]:
        below = USER.get()
        return flow.just(n).hide().map(lambda _: (below, USER.get()))

    made = flow.range(2).hide().pipe(concat_map(inner)).context_write(USER, "root")
    assert list(made) == [("root", "root")] * 2
    outside = flow.range(2).hide().context_write(USER, "root").pipe(concat_map(inner))
    assert list(outside) == [("Ada", "Ada")] * 2


@pytest.mark.checklist("X11")
def test_from_a_pool_back_into_an_event_loop(pool: ThreadPoolExecutor) -> None:
    async def main() -> list[tuple[str, str]]:
        USER.set("the task")
        loop = asyncio.get_running_loop()
        made = (
            flow.range(5)
            .pipe(observe_on(pool))
            .map(user)
            .pipe(observe_on(loop.call_soon_threadsafe))
            .map(both)
        )
        return [item async for item in made]

    assert asyncio.run(main()) == [("the task", "the task")] * 5


@pytest.mark.checklist("X11")
def test_operators_above_a_context_write_see_its_values_wherever_they_run(
    pool: ThreadPoolExecutor,
) -> None:
    async def seen(item: int) -> str:
        await asyncio.sleep(0)
        return user(item)

    numbers = flow.range(3).hide()
    ways = (
        numbers.map_concurrent(seen, 2),
        numbers.map_concurrent(user, 2, executor=pool),
        numbers.observe_on(pool).map(user),
        flow.from_async_iterable(numbers).map(user),
    )

    async def main() -> None:
        USER.set("the task")
        for made in ways:
            written = made.context_write(USER, "root")
            for moved in (written, written.subscribe_on(pool)):
                assert [both(name) async for name in moved] == [("root", "the task")] * 3

    asyncio.run(main())


@pytest.mark.checklist("X11")
def test_an_inner_flow_has_the_context_of_the_task_that_subscribes_to_it() -> None:
    async def inner() -> AsyncIterator[str]:
        yield USER.get()

    async def outer() -> AsyncIterator[int]:
        USER.set("the source")
        yield 1

    async def main() -> list[str]:
        USER.set("the task")
        made = flow.from_async_iterable(outer())
        return [name async for name in made.flat_map(lambda _: flow.from_async_iterable(inner()))]

    assert asyncio.run(main()) == ["the source"]


@pytest.mark.checklist("X11")
def test_a_retry_in_a_loop_has_the_context_of_the_task_that_runs_the_flow() -> None:
    seen: list[str] = []
    emitters: list[Emitter[int]] = []

    def source() -> Flow[int]:
        seen.append(USER.get())
        return flow.create(emitters.append)

    def another_task() -> None:
        emitters[0].error(OSError("lost"))
        emitters[1].complete()

    async def main() -> None:
        USER.set("the task")
        running = asyncio.ensure_future(flow.defer(source).retry(1).run_async())
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon(another_task, context=Context())
        await running

    asyncio.run(main())
    assert seen == ["the task", "the task"]


# -- statistics


def test_a_chain_across_a_thread_is_walked_to_its_source(pool: ThreadPoolExecutor) -> None:
    inside, go_on = Event(), Event()

    def wait(n: int) -> None:
        inside.set()
        assert go_on.wait(TIMEOUT_S)

    publisher = TestPublisher[int]()
    made = Flow(publisher).name("numbers").pipe(observe_on(pool, prefetch=8)).do_on_next(wait)
    subscriber = observe(made.hide(), request=5)
    publisher.next(1, 2, 3, 4)
    assert inside.wait(TIMEOUT_S)
    found = list(links(subscriber.subscription))
    go_on.set()
    assert [each.operator.partition("(")[0] for each in found[:4]] == [
        "hide",
        "do_on_next",
        "observe_on",
        "name",
    ]
    queue = found[2]
    assert (queue.buffered, queue.capacity, queue.requested) == (3, 8, 5)
    assert found[3].name == "numbers"
    assert found[3].requested == 4
    subscriber.await_items(4)
    pool.shutdown()  # the task has ended
    queue = list(links(subscriber.subscription))[2]
    assert (queue.buffered, queue.requested) == (0, 1)
    subscriber.cancel()
    queue = list(links(subscriber.subscription))[2]
    assert queue.cancelled
    assert queue.terminated


def test_a_fused_upstream_of_observe_on_holds_the_items_itself(pool: ThreadPoolExecutor) -> None:
    subscriber = observe(flow.range(9).pipe(observe_on(pool)), request=0)
    queue, source = links(subscriber.subscription)
    assert (queue.capacity, queue.requested, queue.fusion) == (None, 0, Fusion.NONE)
    assert (source.operator, source.fusion) == ("range_iterator", Fusion.SYNC)
    shared = TestSubscriber[int](0, fusion=Fusion.ASYNC)
    flow.range(9).hide().pipe(observe_on(pool)).subscribe(shared)
    found = next(links(shared.subscription))
    assert (found.requested, found.fusion) == (None, Fusion.ASYNC)
    shared.cancel()
    subscriber.cancel()


def test_concat_map_tells_of_waiting_items_and_of_the_inner_flow() -> None:
    outer, inner = TestPublisher[int](), TestPublisher[str]()
    made = Flow(outer).pipe(concat_map(lambda _: Flow(inner).map(str), prefetch=8))
    subscriber = observe(made, request=5)
    outer.next(1, 2, 3)
    inner.next("a").next("b")
    found = next(links(subscriber.subscription))
    assert found.operator.startswith("concat_map(")
    assert "assembled at" not in found.operator
    assert (found.requested, found.buffered, found.capacity) == (3, 2, 8)
    (running,) = found.inners
    assert next(links(running)).operator == "map(str)"
    assert next(links(running)).requested == 3
    lines = report(subscriber.subscription).splitlines()
    assert lines[2].startswith("  map(str)")
    subscriber.request(UNBOUNDED)
    assert next(links(subscriber.subscription)).requested == UNBOUNDED
    subscriber.cancel()
    found = next(links(subscriber.subscription))
    assert (found.terminated, found.buffered) == (True, 0)


def test_a_flow_on_a_pool_is_read_while_it_runs(pool: ThreadPoolExecutor) -> None:
    made = flow.range(5_000).hide().pipe(observe_on(pool, prefetch=16)).map(abs)
    subscriber = observe(made)
    seen: list[Statistics] = []
    while not subscriber.terminated:
        seen += links(subscriber.subscription)
    subscriber.assert_result(*range(5_000))
    assert all(each.buffered <= 16 for each in seen)


def test_explain_shows_the_prefetch_of_boundaries(pool: ThreadPoolExecutor) -> None:
    made = flow.range(3).pipe(observe_on(pool, prefetch=16)).pipe(concat_map(flow.range))
    boundaries = [line for line in explain(made).splitlines() if "boundary" in line]
    assert ["; prefetch 16" in line for line in boundaries] == [True, False]
    assert ["; prefetch 128" in line for line in boundaries] == [False, True]


# -- debug mode


def failing(_: object) -> Any:
    raise LookupError("failed")


def test_an_error_on_a_pool_says_every_line_of_the_assembly(pool: ThreadPoolExecutor) -> None:
    with hooks.debug():
        made = flow.range(3).map(abs).pipe(observe_on(pool)).map(failing).filter(bool)
        subscriber = observe(made).await_terminal()
    subscriber.assert_failure(LookupError)
    assert subscriber.error is not None
    (note,) = [note for note in subscriber.error.__notes__ if "assembled from" in note]
    lines = [line.strip() for line in note.splitlines()[1:]]
    assert [line.partition("(")[0] for line in lines] == [
        "range",
        "map",
        "observe_on",
        "map",
        "filter",
    ]
    assert all(", at " in line for line in lines)


def test_an_error_of_an_inner_flow_names_its_own_lines_and_those_of_the_outer() -> None:
    with hooks.debug():
        made = (
            flow.range(2)
            .hide()
            .pipe(concat_map(lambda _: flow.range(1).hide().map(failing)))
            .map(abs)
        )
        subscriber = observe(made)
    subscriber.assert_failure(LookupError)
    assert subscriber.error is not None
    inner, outer = [note for note in subscriber.error.__notes__ if "assembled from" in note]
    assert "map(failing)" in inner
    assert "concat_map" not in inner
    assert [line.strip().partition("(")[0] for line in outer.splitlines()[1:]] == [
        "range",
        "hide",
        "concat_map",
        "map",
    ]
