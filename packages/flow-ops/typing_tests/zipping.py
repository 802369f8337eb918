"""What the type checkers must infer about `zip`, `combine_latest` and their kin. Never run."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import assert_type

import flow_core as flow
from flow_core import Flow, Operator
from flow_ops import (
    amb,
    amb_with,
    combine_latest,
    fork_join,
    ordered_merge,
    sequence_equal,
    skip_until_other,
    take_until_other,
    with_latest_from,
    zip_with,
)
from flow_ops import zip as zip_flows

pool = ThreadPoolExecutor()
numbers = flow.range(3)
words = flow.just("a", "b")
halves = flow.just(0.5)
flags = flow.just(True)
data = flow.just(b"x")

# Tuples of two to five flows.
assert_type(zip_flows(numbers, words), Flow[tuple[int, str]])
assert_type(zip_flows(numbers, words, halves), Flow[tuple[int, str, float]])
assert_type(zip_flows(numbers, words, halves, flags), Flow[tuple[int, str, float, bool]])
assert_type(
    zip_flows(numbers, words, halves, flags, data), Flow[tuple[int, str, float, bool, bytes]]
)
assert_type(combine_latest(numbers, words), Flow[tuple[int, str]])
assert_type(combine_latest(numbers, words, halves), Flow[tuple[int, str, float]])
assert_type(combine_latest(numbers, words, halves, flags), Flow[tuple[int, str, float, bool]])
assert_type(
    combine_latest(numbers, words, halves, flags, data, prefetch=4),
    Flow[tuple[int, str, float, bool, bytes]],
)
assert_type(fork_join(numbers, words), Flow[tuple[int, str]])
assert_type(fork_join(numbers, words, halves, flags), Flow[tuple[int, str, float, bool]])

# More of one type.
nine = (numbers, numbers, numbers, numbers, numbers, numbers, numbers, numbers, numbers)
assert_type(zip_flows(*nine), Flow[tuple[int, ...]])
assert_type(zip_flows(*[numbers, numbers]), Flow[tuple[int, ...]])
assert_type(combine_latest(*[words]), Flow[tuple[str, ...]])
assert_type(fork_join(*[words]), Flow[tuple[str, ...]])
assert_type(zip_flows(*[numbers]).starmap(lambda *row: len(row)), Flow[int])

# Lambdas are inferred.
assert_type(zip_flows(numbers, words).starmap(lambda n, word: word.upper() * n), Flow[str])
assert_type(
    zip_flows(numbers, words, halves).starmap(lambda n, word, half: (word, n * half)),
    Flow[tuple[str, float]],
)
assert_type(
    zip_flows(numbers, words, halves, flags).starmap(lambda n, w, h, flag: n if flag else len(w)),
    Flow[int],
)
assert_type(
    zip_flows(numbers, words, halves, flags, data).starmap(lambda n, w, h, f, d: d.hex() + w),
    Flow[str],
)
assert_type(combine_latest(numbers, words).starmap(lambda n, word: word.upper() * n), Flow[str])
assert_type(
    combine_latest(numbers, words, halves).starmap(lambda n, w, h: n * h).map(lambda x: x.hex()),
    Flow[str],
)

# Operators.
assert_type(numbers.pipe(zip_with(words)), Flow[tuple[int, str]])
assert_type(numbers.pipe(zip_with(words)).starmap(lambda n, word: word.upper() * n), Flow[str])
assert_type(numbers.pipe(with_latest_from(words)), Flow[tuple[int, str]])
assert_type(numbers.pipe(with_latest_from(words, halves)), Flow[tuple[int, str, float]])
assert_type(
    numbers.pipe(with_latest_from(words)).starmap(lambda n, word: word.upper() * n), Flow[str]
)
assert_type(
    numbers.pipe(with_latest_from(words, halves)).starmap(lambda n, word, half: n * half),
    Flow[float],
)
assert_type(numbers.pipe(amb_with(words)), Flow[int | str])
assert_type(numbers.pipe(amb_with(numbers)), Flow[int])
assert_type(numbers.pipe(take_until_other(words)), Flow[int])
assert_type(numbers.pipe(skip_until_other(words)).map(lambda n: n + 0.5), Flow[float])


def numbered() -> Operator[str, Flow[tuple[str, int]]]:
    return zip_with(flow.range(10**9))


assert_type(words.pipe(numbered()), Flow[tuple[str, int]])

# Sources.
assert_type(amb(numbers, numbers), Flow[int])
assert_type(sequence_equal(numbers, words), Flow[bool])
assert_type(sequence_equal(words, words, key=lambda word: word.upper()), Flow[bool])
assert_type(sequence_equal(numbers, words, equals=lambda n, word: n == len(word)), Flow[bool])
assert_type(ordered_merge(numbers, numbers), Flow[int])
assert_type(ordered_merge(words, words, key=lambda word: -len(word)), Flow[str])
assert_type(ordered_merge(words, executor=pool, prefetch=8, delay_error=True), Flow[str])
assert_type(ordered_merge(words, executor=lambda task: task()), Flow[str])

# Mistakes.
zip_flows(numbers, [1])  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
zip_flows(numbers, words).starmap(lambda n, word: n.upper())  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownLambdaType, reportUnknownMemberType]
zip_with(words, 3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
ordered_merge(flow.just(object()))  # type: ignore[type-var]  # pyright: ignore[reportArgumentType]
ordered_merge(words, executor=3)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
amb(numbers, 3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
sequence_equal(words, words, key=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
take_until_other(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

assert_type(
    numbers.pipe(with_latest_from(words, halves, words, halves, words, halves, words)),
    Flow[tuple[int, str, float, str, float, str, float, str]],
)
