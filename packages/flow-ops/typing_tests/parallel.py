"""What the type checkers must infer about `parallel` and `on_processes`. Never run."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import assert_type

import flow_core as flow
from flow_core import Flow, Operator
from flow_ops import FailureHandling, ParallelFlow, on_processes, parallel

pool = ThreadPoolExecutor()
processes = ProcessPoolExecutor()
numbers = flow.range(3)
rails = numbers.pipe(parallel(2))

assert_type(rails, ParallelFlow[int])
assert_type(numbers.pipe(parallel()), ParallelFlow[int])
assert_type(rails.rails, int)

# Lambdas are inferred, and so is what they make.
assert_type(rails.run_on(pool).map(lambda n: n / 2), ParallelFlow[float])
assert_type(rails.run_on(processes).map(str).sequential(), Flow[str])
assert_type(rails.map(lambda n: str(n), on_error=FailureHandling.SKIP), ParallelFlow[str])
assert_type(
    rails.map(
        str, on_error=lambda tries, _: FailureHandling.RETRY if tries < 3 else FailureHandling.STOP
    ),
    ParallelFlow[str],
)
assert_type(rails.filter(lambda n: n > 1), ParallelFlow[int])
assert_type(rails.flat_map_iterable(lambda n: [str(n)]), ParallelFlow[str])
assert_type(rails.flat_map(lambda n: flow.just(str(n))), ParallelFlow[str])
assert_type(rails.concat_map(lambda n: flow.just(str(n)), prefetch=2), ParallelFlow[str])
assert_type(rails.do_on_next(lambda n: print(n + 1)), ParallelFlow[int])
assert_type(rails.pairwise(), ParallelFlow[tuple[int, int]])
assert_type(rails.reduce(lambda a, b: a + b), Flow[int])
assert_type(rails.reduce(lambda text, n: text + str(n), ""), ParallelFlow[str])
assert_type(rails.collect(list[int], lambda items, n: items.append(n)), ParallelFlow[list[int]])
assert_type(rails.sequential(delay_error=True), Flow[int])
assert_type(rails.sorted(), Flow[int])
assert_type(rails.sorted(key=lambda n: -n, reverse=True), Flow[int])

assert_type(numbers.pipe(on_processes(processes, batch=8)).map(str), Flow[str])


# It is an operator of its own.
def halves() -> Operator[str, ParallelFlow[str]]:
    return parallel(2)


assert_type(flow.just("a").pipe(halves()), ParallelFlow[str])

# Mistakes.
rails.map(lambda n: n.upper())  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownLambdaType, reportUnknownMemberType]
rails.flat_map(lambda n: n)  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType]
rails.pipe_rails(parallel(2))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
flow.just(object()).pipe(parallel(2)).sorted()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
on_processes(len)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
