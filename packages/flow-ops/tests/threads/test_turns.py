"""observe_on: a task gives its thread back though items wait, and another one continues."""

from __future__ import annotations

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

import pytest

import flow_core as flow
from flow_core import RejectedExecutionError
from flow_ops import observe_on
from flow_testing import TIMEOUT_S

observing = sys.modules["flow_ops.threads.observe_on"]


@pytest.fixture
def no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task ends as soon as it looks at the time."""
    monkeypatch.setattr(observing, "_TURN_S", 0.0)


@pytest.fixture
def much_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observing, "_TURN_S", float("inf"))


SOURCES = {
    "fused": lambda count: flow.range(count),
    "pushed": lambda count: flow.range(count).hide(),
}


@pytest.mark.usefixtures("no_time")
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("prefetch", [1, 4, 128])
def test_items_and_the_end_come_in_order_over_several_tasks(steps, record, source, prefetch):
    seen = record()
    SOURCES[source](100).pipe(observe_on(steps, prefetch=prefetch)).subscribe(seen)
    assert steps.run() >= 4
    assert (seen.items, seen.ends, seen.wrong) == (list(range(100)), [None], [])


@pytest.mark.usefixtures("much_time")
@pytest.mark.parametrize("source", SOURCES)
def test_one_task_continues_while_there_is_time(steps, record, source):
    seen = record()
    SOURCES[source](10_000).pipe(observe_on(steps)).subscribe(seen)
    assert steps.run() == 1
    assert seen.ends == [None]


@pytest.mark.usefixtures("no_time")
def test_a_flow_that_is_cancelled_between_two_tasks_sends_nothing_more(steps, record, dropped):
    seen = record()
    flow.range(100).hide().pipe(observe_on(steps)).subscribe(seen)
    steps.tasks.pop(0)()
    before = list(seen.items)
    assert 0 < len(before) < 100
    seen.subscription.cancel()
    steps.run()
    assert (seen.items, seen.ends) == (before, [])
    assert dropped.items == list(range(len(before), 100))


@pytest.mark.slow
@pytest.mark.usefixtures("no_time")
def test_an_inline_task_continues_until_the_end(record):
    seen = record()
    flow.range(100_000).hide().pipe(observe_on(lambda task: task())).subscribe(seen)
    assert (len(seen.items), seen.ends) == (100_000, [None])


@pytest.mark.usefixtures("no_time")
@pytest.mark.parametrize("source", SOURCES)
def test_a_pool_can_be_shut_down_though_items_never_cease(source):
    pool, begun, errors, ended = ThreadPoolExecutor(1), Event(), list[BaseException](), Event()

    def fail(error: BaseException) -> None:
        errors.append(error)
        ended.set()

    made = SOURCES[source](10**12).pipe(observe_on(pool))
    handle = made.subscribe(lambda _: begun.set(), fail)
    assert begun.wait(TIMEOUT_S)
    stopping = Thread(target=pool.shutdown, daemon=True)
    stopping.start()
    try:
        stopping.join(TIMEOUT_S)
        assert not stopping.is_alive()
        assert ended.wait(TIMEOUT_S)
    finally:
        handle.dispose()
    (error,) = errors
    assert isinstance(error, RejectedExecutionError)


@pytest.mark.usefixtures("no_time")
def test_others_have_their_turn_in_a_loop():
    async def main() -> list[str]:
        loop, said, done = asyncio.get_running_loop(), list[str](), asyncio.Event()

        def seen(n: int) -> None:
            if n == 0:
                loop.call_soon(said.append, "another")
            if n == 99:
                said.append("last")

        made = flow.range(100).pipe(observe_on(loop.call_soon_threadsafe))
        made.subscribe(seen, said.append, done.set)
        await asyncio.wait_for(done.wait(), TIMEOUT_S)
        return said

    assert asyncio.run(main()) == ["another", "last"]
