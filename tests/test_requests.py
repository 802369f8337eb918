"""Requests with one shared client, ten at a time, to a server that fails a third of the time."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Awaitable, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast

import httpx
import pytest

import flow_core as flow
from flow_core.backoff import Backoff

AT_A_TIME = 10


class Server(ThreadingHTTPServer):
    """Answers with the path, and every third time with an error."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.numbers = itertools.count(1)

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        body = self.path.removeprefix("/").encode()
        failing = next(cast("Server", self.server).numbers) % 3 == 0
        self.send_response(503 if failing else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


Fetch = Callable[[int], Awaitable[int]]
SOON = Backoff(0.001, max=0.01, when=httpx.HTTPStatusError)

FORMS: dict[str, Callable[[int, Fetch], flow.Flow[int]]] = {
    "retry": lambda n, fetch: flow.just(n).map_concurrent(fetch, 1).retry(),
    "retry_when": lambda n, fetch: flow.just(n).map_concurrent(fetch, 1).retry_when(SOON),
    "defer": lambda n, fetch: flow.defer(lambda: flow.from_future(fetch(n))).retry(),
    "defer and retry_when": lambda n, fetch: flow.defer(
        lambda: flow.from_future(fetch(n))
    ).retry_when(SOON),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("requests", [100, pytest.param(1_000, marks=pytest.mark.nightly)])
def test_requests_with_a_retry_each_stay_in_one_loop_and_none_is_lost(
    requests: int, form: str, server: Server
) -> None:
    async def main() -> None:
        places = set[tuple[asyncio.AbstractEventLoop, int]]()
        running, most = 0, 0

        async with httpx.AsyncClient(base_url=server.url) as client:

            async def fetch(n: int) -> int:
                nonlocal running, most
                running += 1
                most = max(most, running)
                try:
                    response = await client.get(f"/{n}")
                finally:
                    running -= 1
                    places.add((asyncio.get_running_loop(), threading.get_ident()))
                return int(response.raise_for_status().text)

            fetched = flow.range(requests).flat_map(
                lambda n: FORMS[form](n, fetch), concurrency=AT_A_TIME
            )
            assert sorted([n async for n in fetched]) == list(range(requests))
        assert places == {(asyncio.get_running_loop(), threading.get_ident())}
        assert most == AT_A_TIME

    asyncio.run(main())
    assert next(server.numbers) > requests * 1.4, "the server did not fail a third of the time"
