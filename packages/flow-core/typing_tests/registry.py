"""What type checkers infer of converted values and of the host; checked, never run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Never, assert_type

import flow_core as flow
from flow_core import Flow, Operator, Publisher, sinks
from flow_core.engine import Engine, EngineOptions
from flow_core.plugins import OperatorSpec, PluginHost, Registered
from flow_core.sources import files


class Opaque:
    """What only a plugin could convert."""


def converted(
    numbers: Flow[int],
    published: Publisher[str],
    future: Future[bytes],
    task: asyncio.Task[int],
    coroutine: Coroutine[object, object, str],
    stream: AsyncIterator[float],
    iterator: Iterator[str],
) -> None:
    assert_type(flow.from_(numbers), Flow[int])
    assert_type(flow.from_([1, 2]), Flow[int])
    assert_type(flow.from_({"a": 1}), Flow[str])
    assert_type(flow.from_(iterator), Flow[str])
    assert_type(flow.from_(stream), Flow[float])
    assert_type(flow.from_(future), Flow[bytes])
    assert_type(flow.from_(task), Flow[int])
    assert_type(flow.from_(coroutine), Flow[str])
    assert_type(flow.from_(published), Flow[str])
    assert_type(flow.from_(Opaque()), Flow[object])
    assert_type(flow.from_([1]).map(lambda n: n / 2), Flow[float])


def refused() -> None:
    assert_type(flow.from_("text"), Never)


def hosted(host: PluginHost) -> None:
    assert_type(host.operators, Mapping[str, Registered[OperatorSpec]])
    assert_type(host.operators["map"].spec.conditional, bool)
    assert_type(host.convert(object()), Flow[object])
    opened: Callable[[EngineOptions], AbstractContextManager[Engine]] = host.engine("local")
    # Any: what a name of the registry stands for is known when it is looked up.
    made: Flow[Any] = host.source("range")(3)
    mapped: Operator[Any, Any] = host.operator("map")(str)
    ended: Operator[Any, Any] = host.sink("print")()
    del opened, made, mapped, ended


def reading_and_writing() -> None:
    assert_type(files.read_lines("x"), Flow[str])
    assert_type(files.read_csv(Path("x")), Flow[dict[str, object]])
    assert_type(files.read_json_lines("x"), Flow[object])
    assert_type(flow.range(3).pipe(sinks.print_items()), int)
    assert_type(flow.range(3).pipe(sinks.write_lines("x")), int)
    assert_type(files.read_csv("x").pipe(sinks.write_csv("y")), int)
    flow.range(3).pipe(sinks.write_csv("x"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - ints are not rows
