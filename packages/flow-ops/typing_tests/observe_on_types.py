"""What the type checkers must infer about `observe_on`. Never run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import assert_type

import flow_core as flow
from flow_core import Flow, Operator
from flow_core.executors import Runner, ScheduledTask, as_runner
from flow_ops import observe_on

pool = ThreadPoolExecutor()
loop = asyncio.new_event_loop()
numbers = flow.range(3)

# The item type goes through, and lambdas on both sides are inferred.
assert_type(numbers.pipe(observe_on(pool)), Flow[int])
assert_type(
    numbers.map(lambda n: n / 2).pipe(observe_on(pool)).map(lambda x: x.is_integer()), Flow[bool]
)
assert_type(
    numbers.map(lambda n: (n, str(n)))
    .pipe(observe_on(pool, prefetch=8, delay_error=False))
    .filter(lambda pair: pair[1].isdigit())
    .pipe(observe_on(loop.call_soon_threadsafe))
    .map(lambda pair: pair[0] + 1),
    Flow[int],
)
assert_type(numbers.pipe(observe_on(pool)).scan(lambda total, n: total + n, 0.5), Flow[float])
assert_type(list(numbers.pipe(observe_on(pool)).to_list()), list[list[int]])


# It is an operator of its own, too.
def hop() -> Operator[str, Flow[str]]:
    return observe_on(pool)


assert_type(flow.just("a").pipe(hop()), Flow[str])


# Every kind of executor.
class OwnExecutor:
    def submit(self, fn: Callable[[], object], /) -> Future[object]:
        future: Future[object] = Future()
        future.set_result(fn())
        return future


class OwnCallable:
    def __call__(self, task: Callable[[], object], /) -> None:
        task()


def invoke_later(task: Callable[[], object]) -> str:
    task()
    return "handle"


def any_pool(executor: Executor) -> Flow[int]:
    return numbers.pipe(observe_on(executor))


observe_on(ProcessPoolExecutor())
observe_on(OwnExecutor())
observe_on(OwnCallable())
observe_on(invoke_later)
observe_on(lambda task: task())
observe_on(loop.call_soon_threadsafe)
assert_type(as_runner(pool), Runner)
assert_type(as_runner(pool).execute(lambda: print()), ScheduledTask)
assert_type(as_runner(pool).execute(lambda: print()).cancel(), bool)

# Mistakes.
observe_on(None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
observe_on(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
observe_on(loop)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
observe_on(pool, 8)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
observe_on(pool, prefetch="8")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
numbers.pipe(observe_on(pool)).map(lambda n: n.upper())  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownLambdaType, reportUnknownMemberType]
numbers.pipe(hop())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
