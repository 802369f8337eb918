"""The page on the web, with clients that come and go, and one that reads slowly."""

from __future__ import annotations

import asyncio
import gc
import re
import sys
import tracemalloc
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.routing import Route
from websockets.asyncio.server import ServerConnection, serve

import flow_core as flow
from flow_testing import TIMEOUT_S

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parent.parent / "docs" / "web.md"
WAITS_S = 4 * TIMEOUT_S
CLIENTS = pytest.mark.parametrize(
    "clients", [100, pytest.param(1_000, marks=[pytest.mark.nightly, pytest.mark.timeout(600)])]
)


@pytest.fixture(scope="module")
def page() -> SimpleNamespace:
    """The names that the blocks of the page define, but for the last one, which runs them."""
    *blocks, _ = re.findall(r"(?ms)^```python\n(.*?)^```", PAGE.read_text("utf-8"))
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    return SimpleNamespace(**names)


async def until(wanted: Callable[[], object]) -> None:
    """Wait for something that no event tells of."""
    async with asyncio.timeout(WAITS_S):
        while not wanted():
            await asyncio.sleep(0.01)


async def still(count: Callable[[], int]) -> int:
    """Wait until a count stays what it is, and return it."""
    before = -1
    async with asyncio.timeout(WAITS_S):
        while (now := count()) != before:
            before = now
            await asyncio.sleep(0.2)
    return now


@CLIENTS
def test_no_client_is_left_of_many_and_memory_stays_flat(
    page: SimpleNamespace, clients: int
) -> None:
    random = Random(clients)

    async def visit(client: httpx.AsyncClient, port: int, number: int) -> None:
        count = random.randrange(1, 20)
        if number % 3 == 0:
            came = page.lines(client, "/rows/10000")
        elif number % 3 == 1:
            came = page.events_of(client, "/events")
        else:  # some leave when they have got all, others in the middle
            words = flow.range(random.choice([count, 1_000])).map(str)
            came = page.answers(f"ws://127.0.0.1:{port}/shout", words)
        assert await came.take(count).count() == count

    async def memory_after(client: httpx.AsyncClient, port: int, visits: int) -> int:
        """Return the number of blocks of memory in use after visits, ten at a time."""
        await flow.range(visits).for_each_async(lambda n: visit(client, port, n), 10)
        await until(lambda: asyncio.all_tasks() == idle)
        gc.collect()
        return sys.getallocatedblocks()

    idle: set[asyncio.Task[Any]] = set()

    async def main() -> None:
        limits = httpx.Limits(max_keepalive_connections=0)
        async with page.serving(page.app) as port:
            idle.update(asyncio.all_tasks())
            base = f"http://127.0.0.1:{port}"
            async with httpx.AsyncClient(base_url=base, limits=limits) as client:
                before = await memory_after(client, port, clients)  # what is kept once is there
                after = await memory_after(client, port, clients)
        # One client that is left has about a hundred blocks. Some hundred of them wait for a timer
        # that was cancelled: asyncio forgets these when they are many.
        assert after - before < 5_000

    asyncio.run(main())


def test_a_client_that_reads_slowly_holds_the_source_back_and_one_that_leaves_ends_it(
    page: SimpleNamespace,
) -> None:
    made = 0
    ended: list[str] = []

    def row(_: int) -> bytes:
        nonlocal made
        made += 1
        return b"x" * 10_000

    async def rows(_: object) -> StreamingResponse:
        return StreamingResponse(
            flow.range(10**9).map(row).finally_action(lambda: ended.append("ended"))
        )

    async def main() -> None:
        async with page.serving(Starlette(routes=[Route("/", rows)])) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await reader.readexactly(100_000)
            waiting = await still(lambda: made)
            assert waiting * 10_000 < 50_000_000  # what sockets and protocols keep, no more
            assert not ended
            await reader.readexactly(waiting * 10_000)
            await until(lambda: made > waiting)
            writer.close()
            await writer.wait_closed()
            await until(lambda: ended == ["ended"])

    asyncio.run(main())


def test_a_websocket_client_that_reads_slowly_holds_its_own_questions_back(
    page: SimpleNamespace,
) -> None:
    asked = 0

    def question(_: int) -> str:
        nonlocal asked
        asked += 1
        return random.randbytes(5_000).hex()  # which no compression makes small

    random = Random(1)

    async def main() -> None:
        async with page.serving(page.app) as port:
            questions = flow.range(10**9).map(question)
            answers = page.answers(f"ws://127.0.0.1:{port}/shout", questions)
            async with aclosing(aiter(answers)) as heard:
                assert len(await anext(heard)) == 10_000
                waiting = await still(lambda: asked)
                assert waiting * 10_000 < 50_000_000  # what sockets and protocols keep, no more
                for _ in range(waiting):
                    await anext(heard)
                await until(lambda: asked > waiting)

    asyncio.run(main())


def test_a_websocket_that_is_read_slowly_keeps_memory_flat_and_loses_nothing(
    page: SimpleNamespace,
) -> None:
    messages, size = 2_000, 65_536
    sent = 0

    async def send(socket: ServerConnection) -> None:
        nonlocal sent
        for number in range(messages):
            await socket.send(f"{number:{size}}")
            sent += 1

    async def main() -> None:
        async with serve(send, "127.0.0.1", 0, ping_interval=None) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            tracemalloc.start()
            async with aclosing(aiter(page.answers(f"ws://127.0.0.1:{port}", flow.empty()))) as it:
                assert int(await anext(it)) == 0
                waiting = await still(lambda: sent)
                _, peak = tracemalloc.get_traced_memory()
                tracemalloc.stop()
                assert waiting < messages / 2
                assert peak < messages * size / 4
                assert [int(text) async for text in it] == list(range(1, messages))

    asyncio.run(main())


def test_all_clients_share_one_source_which_ends_with_the_last_of_them(
    page: SimpleNamespace,
) -> None:
    begun = 0
    log: list[str] = []

    def begin() -> flow.Flow[int]:
        nonlocal begun
        begun += 1
        return flow.interval(0.001).finally_action(lambda: log.append("ended"))

    shared = flow.defer(begin).share()

    async def events(_: object) -> StreamingResponse:
        return StreamingResponse(shared.on_backpressure_latest().map(page.event))

    async def main() -> None:
        async with (
            page.serving(Starlette(routes=[Route("/", events)])) as port,
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client,
        ):

            async def listen(_: int) -> int:
                return await page.events_of(client, "/").take(5).count()

            heard = await flow.range(10).map_concurrent(listen, 10).to_list()
            assert heard == [5] * 10
            await until(lambda: len(log) == begun)

    asyncio.run(main())
    assert begun <= 10  # one, if they all come before the first one leaves
