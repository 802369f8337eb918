"""The records say on which thread items come; `flow explain` repeats it for each loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import current_thread, main_thread

import pytest

import flow_core as flow
from flow_cli.explain import explain
from flow_core import Flow
from flow_core.plugins import OperatorSpec, SourceSpec, Thread, plugin_host
from flow_core.signatures import signature_of

KEEP = {
    "cache": "the clock only says how old an item is",
    "cancel_on": "only the cancel moves",
    "delay_subscription": "items keep the upstream's thread",
    "on_backpressure_buffer": "the clock only says how old an item is",
    "ordered_merge": "only if it is given an executor",
    "replay": "the clock only says how old an item is",
    "session_window": "windows are flows: only their end comes on the clock",
    "share": "the clock only ends a run",
    "skip_last_with_time": "the clock only says how old an item is",
    "skip_until_with_time": "the clock only says when",
    "skip_with_time": "the clock only says when",
    "take_last_with_time": "the clock only says how old an item is",
    "take_until_with_time": "only the end comes on the clock",
    "take_with_time": "only the end comes on the clock",
    "throttle_first": "the clock only says when",
    "time_interval": "the clock only says when",
    "timeout": "only the error comes on the clock",
    "timestamp": "the clock only says when",
    "window_with_time": "windows are flows: they begin and end on the clock",
    "window_with_time_or_count": "windows are flows: they begin and end on the clock",
}
"""Why an operator that takes a clock, a loop or an executor leaves items on their thread."""


def records() -> Iterator[OperatorSpec | SourceSpec]:
    host = plugin_host()
    for found in (*host.operators.values(), *host.sources.values()):
        yield found.spec


def test_what_is_given_a_thread_says_that_items_come_there_or_why_they_do_not() -> None:
    silent = set[str]()
    for spec in records():
        loaded = spec.load()
        assert callable(loaded)
        takes = {"executor", "clock", "loop", "pool"} & set(signature_of(loaded).parameters)
        if spec.thread is not Thread.SAME:
            assert takes, spec.name
        elif takes:
            silent.add(spec.name)
    assert silent == set(KEEP)


async def ticks() -> AsyncIterator[int]:
    for number in range(3):
        yield number


async def same(item: int) -> int:
    await asyncio.sleep(0)
    return item


def blocking(item: int) -> int:
    return item


MOVED: dict[str, Callable[[ThreadPoolExecutor], Flow[int]]] = {
    "on the executor of observe_on": lambda pool: flow.range(3).hide().observe_on(pool),
    "on the executor of subscribe_on": lambda pool: flow.range(3).hide().subscribe_on(pool),
    "on the clock of interval": lambda _: flow.interval(0.001).take(3),
    "on the clock of delay": lambda _: flow.range(3).delay(0.001),
    "on the workers of map_concurrent": lambda _: flow.range(3).map_concurrent(same, 2),
    "in the event loop of from_async_iterable": lambda _: flow.from_async_iterable(ticks()),
    "": lambda _: flow.range(3).hide().merge(flow.range(2).hide()),
}


@pytest.mark.parametrize("told", MOVED)
def test_a_loop_runs_where_explain_says(told: str) -> None:
    names: list[str] = []
    with ThreadPoolExecutor(1, thread_name_prefix="pool") as pool:
        made = MOVED[told](pool).hide().map(lambda _: names.append(current_thread().name) or 0)
        (loop,) = [
            part
            for part in json.loads(explain(made, format="json"))["parts"]
            if any("test_threads_told" in step["text"] for step in part.get("steps", ()))
        ]
        assert loop.get("thread", "") == told
        list(made)
    assert names
    for name in names:
        assert (name == main_thread().name) == (not told)
        assert name.startswith("pool") == ("executor" in told)
