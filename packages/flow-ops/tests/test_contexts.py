"""Context variables, statistics and assembly traces across an executor's threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from threading import Event
from typing import Any

import pytest

import flow_core as flow
from flow_core import UNBOUNDED, Flow, Fusion, hooks
from flow_core.cli.explain import explain
from flow_core.introspection import Statistics, links, report
from flow_core.operators import context_capture, context_write
from flow_core.testing import TIMEOUT_S, TestPublisher, TestSubscriber, observe, race
from flow_ops import concat_map, observe_on

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


@pytest.mark.checklist("X11")
def test_a_pools_thread_knows_nothing_of_the_context_unless_it_is_captured(
    pool: ThreadPoolExecutor,
) -> None:
    made = flow.range(3).pipe(observe_on(pool))
    observe(made.map(user)).await_terminal().assert_result(*["nobody"] * 3)
    captured = made.pipe(context_capture()).map(user)
    observe(captured).await_terminal().assert_on_thread("pool").assert_result(*["Ada"] * 3)


@pytest.mark.checklist("X11")
def test_two_subscribers_on_one_pool_keep_their_contexts_apart(pool: ThreadPoolExecutor) -> None:
    made = flow.range(200).hide().pipe(observe_on(pool)).pipe(context_capture()).map(user)
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
    assert without.items == ["Ada"] * 4 + ["nobody"] * 296, "the executor requests most of it"
    made = upstream.pipe(context_write({})).pipe(observe_on(pool, prefetch=4))
    observe(made).await_terminal().assert_result(*["Ada"] * 300)
    written = upstream.pipe(context_write(USER, "root")).pipe(observe_on(pool, prefetch=4))
    captured = written.pipe(context_capture()).map(both)
    observe(captured).await_terminal().assert_result(*[("root", "Ada")] * 300)


@pytest.mark.checklist("X11")
def test_inner_flows_see_the_context_of_the_link_that_is_above_or_below_them() -> None:
    def inner(n: int) -> Flow[tuple[str, str]]:
        below = USER.get()
        return flow.just(n).hide().map(lambda _: (below, USER.get()))

    made = flow.range(2).hide().pipe(concat_map(inner)).pipe(context_write(USER, "root"))
    assert list(made) == [("root", "root")] * 2
    outside = flow.range(2).hide().pipe(context_write(USER, "root")).pipe(concat_map(inner))
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
            .pipe(context_capture())
            .map(both)
        )
        return [item async for item in made]

    assert asyncio.run(main()) == [("nobody", "the task")] * 5


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
    pool.shutdown()  # the task is over
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
    lines = explain(made).splitlines()
    assert [line.rpartition("; ")[2] for line in lines if "boundary" in line] == [
        "prefetch 16",
        "prefetch 128",
    ]


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
