"""What a predicate says of an item, the type checker knows of the flow."""

from typing import Any, TypeGuard, assert_type

from typing_extensions import TypeIs

import flow_core as flow
from flow_core import Flow
from flow_core.parallel import ParallelFlow
from flow_core.results import FailureHandling


def is_text(item: object) -> TypeGuard[str]:
    return isinstance(item, str)


def is_number(item: object) -> TypeIs[int]:
    return isinstance(item, int)


mixed: Flow[int | str] = flow.just(1, "a")
assert_type(mixed.filter(is_text), Flow[str])
assert_type(mixed.filter(is_number), Flow[int])
assert_type(mixed.take_while(is_text), Flow[str])
assert_type(mixed.take_while(is_number), Flow[int])
assert_type(mixed.filter(lambda item: item != 1), Flow[int | str])
assert_type(mixed.take_while(lambda item: bool(item)), Flow[int | str])
assert_type(flow.range(3).filter(lambda n: n.bit_length()), Flow[int])
rails = mixed.parallel(2)
assert_type(rails.filter(is_text), ParallelFlow[str])
assert_type(rails.filter(is_number, on_error=FailureHandling.SKIP), ParallelFlow[int])
assert_type(rails.filter(lambda item: item != 1), ParallelFlow[int | str])


def same(numbers: Flow[int]) -> Flow[int]:
    return numbers


def text(numbers: Flow[int]) -> Flow[str]:
    return numbers.map(str)


numbers = flow.range(3)
assert_type(numbers.pipe(same, same, same, same, same, same, same, same, text), Flow[str])
assert_type(numbers.pipe(same, same, same, same, same, same, same, same, same, text), Flow[str])
eleven: Any = numbers.pipe(same, same, same, same, same, same, same, same, same, same, text)
numbers.pipe(same, same, same, text, same)  # type: ignore[misc]  # pyright: ignore[reportArgumentType] - a flow of texts is none of ints

one, word = flow.just(1), flow.just("a")
assert_type(flow.zip(one, word, one, word, one, word), Flow[tuple[int, str, int, str, int, str]])
assert_type(
    one.zip(word, one, word, one, word, one, word),
    Flow[tuple[int, str, int, str, int, str, int, str]],
)
assert_type(
    flow.combine_latest(one, word, one, word, one, word, one),
    Flow[tuple[int, str, int, str, int, str, int]],
)
assert_type(
    flow.fork_join(one, word, one, word, one, word),
    Flow[tuple[int, str, int, str, int, str]],
)
