"""What the type checkers must infer about Agera, signals and the converters. Never run."""

from __future__ import annotations

from typing import assert_type

import flow_core as flow
from flow_core import Flow
from flow_rxcompat.agera import (
    Condition,
    Function,
    MutableRepository,
    Predicate,
    RConfig,
    Repository,
    Reservoir,
    Result,
    RFlow,
    RFrequency,
    RSyncFlow,
    RTermination,
    RTerminationOrContinue,
    Supplier,
    conditions,
    functions,
    predicates,
    repositories,
    reservoirs,
    suppliers,
)
from flow_rxcompat.converters import (
    FlowRepository,
    from_agera,
    from_repository,
    from_reservoir,
    to_repository,
    to_reservoir,
    to_signals,
)
from flow_rxcompat.signals import Dispatcher, Observable, Removable, Signal
from flow_rxcompat.signals import MutableRepository as Values

numbers = repositories.mutable_repository(1)
assert_type(numbers, MutableRepository[int])
assert_type(numbers.get(), int)
numbers.accept("1")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
assert_type(reservoirs.reservoir_of(str), Reservoir[str])
assert_type(reservoirs.reservoir_of(str).get(), Result[str])

# -- the builder: each state knows its value's type, lambdas included

start = repositories.repository_with_initial_value("?").observe(numbers)
assert_type(start, RFrequency[str, str])
directives = start.on_updates_per_loop()
assert_type(directives, RFlow[str, str])
assert_type(directives.get_from(numbers), RFlow[str, int])
assert_type(directives.get_from(lambda: 1.5), RFlow[str, float])
assert_type(directives.transform(lambda text: len(text)), RFlow[str, int])
assert_type(directives.transform(len).transform(lambda n: n / 2), RFlow[str, float])
assert_type(
    directives.transform(len).merge_in(numbers, lambda a, b: (a, b)), RFlow[str, tuple[int, int]]
)
assert_type(
    directives.transform(len).check(lambda n: n > 1),
    RTermination[str, int, RFlow[str, int]],
)
assert_type(directives.transform(len).check(lambda n: n > 1).or_skip(), RFlow[str, int])
assert_type(
    directives.check(lambda text: len(text), lambda n: n > 1),
    RTermination[str, int, RFlow[str, str]],
)
assert_type(
    directives.transform(len).check(lambda n: n > 1).or_end(lambda n: str(n)), RFlow[str, int]
)
assert_type(directives.send_to(print).bind_with(numbers, lambda text, n: text * n), RFlow[str, str])


def parse(text: str) -> Result[int]:
    return Result.success(int(text))


assert_type(directives.attempt_transform(parse), RTermination[str, BaseException, RFlow[str, int]])
assert_type(directives.attempt_transform(parse).or_end(lambda error: repr(error)), RFlow[str, int])
assert_type(directives.go_lazy(), RSyncFlow[str, str])
assert_type(directives.go_lazy().transform(len), RSyncFlow[str, int])


def name(n: int) -> Result[str]:
    return Result.success(str(n))


last = directives.transform(len).then_attempt_transform(name)
assert_type(
    last, RTerminationOrContinue[str, BaseException, RConfig[str], RFlow[str, BaseException]]
)
assert_type(last.or_continue(), RFlow[str, BaseException])
assert_type(last.or_skip(), RConfig[str])
end = directives.transform(len).then_transform(lambda n: str(n))
assert_type(end, RConfig[str])
assert_type(end.notify_if(lambda old, new: old < new), RConfig[str])
assert_type(end.compile(), Repository[str])
assert_type(end.compile_into_repository_with_initial_value(0), RFrequency[int, str])
directives.then_transform(len)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# -- results

one = Result.success(1)
assert_type(one, Result[int])
assert_type(one.if_succeeded_map(lambda n: str(n)), Result[str])
assert_type(one.if_succeeded_attempt_map(lambda n: Result.success(n / 2)), Result[float])
assert_type(one.if_succeeded_merge("x", lambda n, text: n * text), Result[str])
assert_type(one.or_else(0), int)
assert_type(one.or_else("none"), int | str)
assert_type(one.recover(lambda error: repr(error)), int | str)
assert_type(one.as_list(), list[int])
failed: Result[int] = Result.failure(ValueError())
absent: Result[int] = Result.absent()

# -- functions

shout = functions.function_from(str).apply(len).then_apply(lambda n: n / 2)
assert_type(shout, Function[str, float])
words = functions.function_from(str).unpack(str.split).map(lambda word: len(word))
assert_type(words.filter(lambda n: n > 1).then_limit(1), Function[str, list[int]])
assert_type(
    functions.function_from_list_of(int).then_map(lambda n: str(n)), Function[list[int], list[str]]
)
assert_type(suppliers.static_supplier(1), Supplier[int])
assert_type(conditions.any(lambda: True, conditions.true_condition()), Condition)
long: Predicate[str] = predicates.not_(predicates.empty_string())

# -- converters

assert_type(from_agera(numbers), Flow[Signal])
assert_type(from_repository(numbers, strategy="buffer", capacity=10), Flow[int])
assert_type(from_repository(end.compile()).map(lambda text: len(text)), Flow[int])
assert_type(from_reservoir(reservoirs.reservoir_of(str)), Flow[str])
assert_type(to_repository(flow.range(3), 0), FlowRepository[int])
assert_type(to_repository(flow.range(3), 0).get(), int)
assert_type(to_reservoir(flow.just("a")).get(), Result[str])
assert_type(to_signals(flow.range(3)), Observable)
from_repository(numbers, strategy="all")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# -- signals

dispatcher = Dispatcher()
assert_type(dispatcher.register(lambda: None), Removable)
assert_type(dispatcher.register_with_remover(lambda remover: remover.remove()), Removable)
assert_type(dispatcher.take(1).filter(lambda: True), Observable)
assert_type(dispatcher.flat_map(lambda: Dispatcher()), Observable)
assert_type(dispatcher.map(lambda: 1), Flow[int])
assert_type(dispatcher.flow, Flow[Signal])
assert_type(Values(0).values(strategy="latest"), Flow[int])
dispatcher.register(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
