"""What type checkers infer of sources and the functions given to them; checked, never run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from concurrent.futures import Future
from contextlib import asynccontextmanager, closing, contextmanager
from typing import Never, assert_type

import flow_core as flow
from flow_core import Emitter, Flow, SingleSink


async def lines() -> AsyncIterator[str]:
    yield "line"


async def five() -> int:
    return 5


async def perhaps() -> int | None:
    return None


@contextmanager
def numbers() -> Generator[list[int]]:
    yield [1]


class Connection:
    def rows(self) -> list[bytes]:
        return []

    def close(self) -> None: ...


def generated() -> None:
    def fibonacci(pair: tuple[int, int], sink: SingleSink[int]) -> tuple[int, int]:
        sink.next(pair[0])
        return pair[1], pair[0] + pair[1]

    def letters(text: str, sink: SingleSink[str]) -> str:
        sink.next(text[0])
        return text[1:]

    assert_type(flow.generate(lambda: (0, 1), fibonacci), Flow[int])
    assert_type(flow.generate(lambda: "text", letters, on_end=lambda left: len(left)), Flow[str])
    flow.generate(lambda: 0, letters)  # type: ignore[misc]  # pyright: ignore[reportArgumentType] - the state is a text
    assert_type(flow.repeat_value("a"), Flow[str])
    assert_type(flow.repeat_value("a", 3), Flow[str])
    assert_type(flow.repeat_callable(lambda: 1.5, 3), Flow[float])


def created() -> None:
    def push(emitter: Emitter[int]) -> None:
        emitter.on_dispose(flow.never().subscribe())
        emitter.on_cancel(lambda: None)
        emitter.on_request(lambda n: emitter.next(n + 1))
        emitter.next(1)
        emitter.next("a")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - an emitter of ints

    assert_type(flow.create(push), Flow[int])
    assert_type(flow.create(push, overflow="latest", capacity=8), Flow[int])
    made: Flow[str] = flow.create(lambda emitter: emitter.next("a"))
    del made
    flow.create(push, overflow="other")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - no such policy


def futures(loop: asyncio.AbstractEventLoop) -> None:
    concurrent: Future[int] = Future()
    optional: Future[int | None] = Future()
    assert_type(flow.from_future(concurrent), Flow[int])
    assert_type(flow.from_future(optional), Flow[int])
    assert_type(flow.from_future(loop.create_task(five())), Flow[int])
    assert_type(flow.from_future(five(), loop=loop, cancel=True), Flow[int])
    assert_type(flow.from_future(perhaps()), Flow[int])
    flow.from_future(5)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue] - no future


def async_iterables(loop: asyncio.AbstractEventLoop) -> None:
    assert_type(flow.from_async_iterable(lines()), Flow[str])
    assert_type(flow.from_async_iterable(flow.range(3), loop=loop), Flow[int])
    flow.from_async_iterable([1])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - not async


def resources() -> None:
    assert_type(flow.using(numbers, flow.from_iterable), Flow[int])
    assert_type(flow.using(numbers, lambda items: flow.from_iterable(items).map(str)), Flow[str])
    assert_type(flow.using(Connection, rows, Connection.close), Flow[bytes])
    assert_type(flow.using(lambda: closing(Connection()), rows, eager=False), Flow[bytes])
    assert_type(flow.using(Connection, flow.just, lambda made: made.close()), Flow[Connection])
    flow.using(Connection, rows)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - nobody closes it


@asynccontextmanager
async def connected() -> AsyncGenerator[list[int]]:
    yield [1]


def async_resources() -> None:
    assert_type(flow.using_when(connected, flow.from_iterable), Flow[int])
    assert_type(flow.using_when(connected, flow.just, prefetch=8), Flow[list[int]])
    flow.using_when(numbers, flow.from_iterable)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - not async


def rows(connection: Connection) -> Flow[bytes]:
    return flow.from_iterable(connection.rows())


def failures() -> None:
    assert_type(flow.error(ValueError(), when="request"), Flow[Never])
    flow.error(ValueError(), when="later")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - no such time
