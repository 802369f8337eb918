"""Rails, pools of processes and coroutines behind a source that breaks the rules."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from typing import Any

import pytest

from flow_ops import map_concurrent, on_processes, parallel
from flow_testing import BAD_SOURCES, BadSource, check_bad_source

pytestmark = pytest.mark.usefixtures("dropped")  # which the check looks at itself

each_bad_source = pytest.mark.parametrize("bad", BAD_SOURCES, ids=lambda bad: bad.name)


class Inline(Executor):
    """Runs at once what it is given."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@each_bad_source
@pytest.mark.parametrize("rails", [1, 2])
def test_rails_keep_the_rules(bad: BadSource, rails: int) -> None:
    check_bad_source(
        lambda source: source.pipe(parallel(rails, prefetch=4)).sequential(prefetch=1),
        bounded=True,
        only=lambda name: name == bad.name,
    )


@each_bad_source
def test_processes_keep_the_rules(bad: BadSource) -> None:
    check_bad_source(
        lambda source: source.pipe(on_processes(Inline(), prefetch=4)).map(int),
        only=lambda name: name == bad.name,
    )


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


async def same(item: Any) -> Any:
    return item


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@each_bad_source
def test_coroutines_keep_the_rules(bad: BadSource, loop: asyncio.AbstractEventLoop) -> None:
    check_bad_source(
        lambda source: source.pipe(map_concurrent(same, 4, loop=loop)),
        settle=lambda: asyncio.run_coroutine_threadsafe(turns(10), loop).result(),
        only=lambda name: name == bad.name,
    )
