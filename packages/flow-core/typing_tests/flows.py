"""What type checkers infer of flows and lambdas; checked by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from typing import Never, TypeVar, assert_type

import flow_core as flow
from flow_core import Flow, Operator, Publisher, Stage, Template
from flow_core.subscribers import CallbackSubscriber

T = TypeVar("T")


class Animal:
    name = "animal"


class Cat(Animal):
    lives = 9


def sources() -> None:
    assert_type(flow.range(3), Flow[int])
    assert_type(flow.just("a"), Flow[str])
    assert_type(flow.just(1, 2), Flow[int])
    assert_type(flow.empty(), Flow[Never])
    assert_type(flow.never(), Flow[Never])
    assert_type(flow.error(ValueError()), Flow[Never])
    assert_type(flow.from_iterable(["a"]), Flow[str])
    assert_type(flow.from_callable(lambda: 1), Flow[int])
    assert_type(flow.defer(lambda: flow.range(3)), Flow[int])
    assert_type(flow.from_publisher(flow.range(3)), Flow[int])


def lambdas() -> None:
    ints = flow.range(3)
    assert_type(ints.map(lambda n: n / 2), Flow[float])
    assert_type(ints.filter(lambda n: n > 1), Flow[int])
    assert_type(ints.map(str).flat_map_iterable(lambda text: text.split()), Flow[str])
    assert_type(ints.take(1).skip(1), Flow[int])
    assert_type(ints.take_while(lambda n: n < 2).skip_while(lambda n: n < 1), Flow[int])
    assert_type(ints.scan(lambda total, n: total + n), Flow[int])
    assert_type(ints.scan(lambda text, n: text + str(n), ""), Flow[str])
    assert_type(ints.reduce(lambda total, n: total + n), Flow[int])
    assert_type(ints.reduce(lambda total, n: total + n / 2, 0.0), Flow[float])
    assert_type(ints.collect(list[int], lambda items, n: items.append(n)), Flow[list[int]])
    assert_type(ints.to_list(), Flow[list[int]])
    assert_type(ints.count(), Flow[int])
    assert_type(ints.distinct(lambda n: n % 2), Flow[int])
    assert_type(ints.distinct_until_changed(lambda n: str(n), lambda a, b: a < b), Flow[int])
    assert_type(ints.do_on_next(lambda n: print(n + 1)), Flow[int])
    assert_type(ints.pairwise(), Flow[tuple[int, int]])
    assert_type(ints.pairwise().map(lambda pair: pair[1] - pair[0]), Flow[int])
    assert_type(ints.buffer_with_count(2), Flow[list[int]])
    assert_type(ints.hide(), Flow[int])


def piped() -> None:
    def doubled() -> Operator[int, Flow[int]]:
        return Operator("doubled", lambda ints: ints.map(lambda n: 2 * n))

    def total() -> Operator[int, int]:
        return Operator("total", lambda ints: sum(ints))

    assert_type(flow.range(3).pipe(doubled()).map(str), Flow[str])
    assert_type(flow.range(3).pipe(total()), int)
    flow.just("a").pipe(doubled())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - an operator on ints refuses strings


def user_stage() -> None:
    every = Template("every", params=("n",), state="i = 0", on_item="i += 1\nif i % n == 0: EMIT")

    def every_nth(n: int) -> Operator[T, Flow[T]]:
        stage: Stage[T, T] = Stage(every, n)
        return flow.operators.stage(stage)

    assert_type(flow.just("a").pipe(every_nth(2)), Flow[str])


def consumption() -> None:
    ints = flow.range(3)
    assert_type(ints.subscribe(lambda n: print(n + 1)), CallbackSubscriber[int])
    assert_type(iter(ints), Iterator[int])
    assert_type(ints.__aiter__(), AsyncIterator[int])
    assert_type(ints.first(), int)
    assert_type(ints.last(), int)
    assert_type(ints.single(), int)
    assert_type(ints.to_future(), Future[int])


async def awaited() -> None:
    assert_type(await flow.range(3).count(), int)
    async for n in flow.range(3):
        assert_type(n, int)


def variance() -> None:
    cats: Flow[Cat] = flow.just(Cat())
    animals: Flow[Animal] = cats
    published: Publisher[Animal] = animals
    nothing: Flow[Cat] = flow.empty()
    del published, nothing


def mistakes() -> None:
    flow.range(3).map(lambda n: n.upper())  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownLambdaType, reportUnknownMemberType] - ints have no upper
    flow.range(3).pipe(3)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType] - no operator
