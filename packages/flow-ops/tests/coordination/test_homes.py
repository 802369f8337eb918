"""A flow that an operator subscribes to later, on any thread, has the home of its subscriber."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Thread, get_ident
from typing import Any

import pytest

import flow_core as flow
from flow_core.backoff import Backoff
from flow_core.executors import Executor
from flow_core.homes import Home
from flow_core.protocols import CoreSubscriber, Publisher, Subscriber
from flow_testing import TIMEOUT_S, TestSubscriber


class Inner(Publisher[int]):
    """Sends one item, or fails at first, and records the homes and threads of its subscribers."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.homes: list[Home | None] = []
        self.threads: set[int] = set()

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        assert isinstance(subscriber, CoreSubscriber)
        self.homes.append(subscriber.home())
        self.threads.add(get_ident())
        self.failures -= 1
        source = flow.error(OSError()) if self.failures >= 0 else flow.just(1)
        source.subscribe(subscriber)


class AtHome(TestSubscriber[Any]):
    def __init__(self, at: Home) -> None:
        super().__init__()
        self.at = at

    def home(self) -> Home | None:
        return self.at


@pytest.fixture
def home() -> Iterator[Home]:
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    yield Home(loop)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(TIMEOUT_S)
    loop.close()


SOON = Backoff(0.001, max_attempts=3)
LATER: dict[str, Callable[[flow.Flow[int], flow.Flow[int], Executor], flow.Flow[Any]]] = {
    "flat_map": lambda moved, inner, _: moved.flat_map(lambda n: inner),
    "concat_map": lambda moved, inner, _: moved.concat_map(lambda n: inner),
    "concat_map_eager": lambda moved, inner, _: moved.concat_map_eager(lambda n: inner),
    "switch_map": lambda moved, inner, _: moved.switch_map(lambda n: inner),
    "and_then": lambda moved, inner, _: moved.and_then(inner),
    "concat": lambda moved, inner, _: moved.concat(inner),
    "switch_if_empty": lambda moved, inner, _: moved.ignore_elements().switch_if_empty(inner),
    "on_error_resume": lambda moved, inner, _: moved.map(lambda n: 1 // n).on_error_resume(
        inner, ZeroDivisionError
    ),
    "retry": lambda moved, inner, _: moved.flat_map(lambda n: inner).retry(1),
    "retry_when": lambda moved, inner, _: moved.flat_map(lambda n: inner.retry_when(SOON)),
    "group_by": lambda moved, inner, _: moved.group_by(abs).flat_map(
        lambda group: group.concat_map(lambda n: inner)
    ),
    "delay_subscription": lambda moved, inner, _: inner.delay_subscription(moved),
    "subscribe_on": lambda _, inner, pool: inner.subscribe_on(pool),
    "timeout": lambda moved, inner, _: moved.concat_map(lambda n: inner.timeout(60)),
}


@pytest.mark.parametrize("name", LATER)
def test_a_flow_that_is_subscribed_to_on_another_thread_has_the_same_home(
    name: str, home: Home
) -> None:
    inner = Inner(failures="retry" in name)
    tasks: list[Callable[[], object]] = []
    moved = flow.just(0).hide().observe_on(tasks.append)
    subscriber = AtHome(home)
    LATER[name](moved, flow.Flow(inner), tasks.append).subscribe(subscriber)
    with ThreadPoolExecutor(1) as pool:
        while tasks:
            pool.submit(tasks.pop(0)).result(TIMEOUT_S)
        subscriber.await_terminal()
    assert subscriber.items[-1:] == [1]
    assert set(inner.homes) == {home}
    assert get_ident() not in inner.threads
