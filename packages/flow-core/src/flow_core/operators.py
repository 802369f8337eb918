"""The synchronous operators as functions, for `Flow.pipe` and for pipelines that name them.

What each does is told by the method of `Flow` that has its name.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, overload

from flow_core.boundaries.contexts import context_capture, context_write
from flow_core.boundaries.lifting import lift, serialize
from flow_core.flow import Flow
from flow_core.notifications import Notification
from flow_core.operator import Operator
from flow_core.stages.aggregate import C, Comparable, N
from flow_core.stages.combining import pair
from flow_core.stages.recovery import ErrorFilter
from flow_core.stages.sink import SingleSink
from flow_core.stages.template import UNSET, Stage

__all__ = [
    "all",
    "average",
    "buffer_split",
    "buffer_until",
    "buffer_until_changed",
    "buffer_while",
    "buffer_with_count",
    "cast",
    "checkpoint",
    "collect",
    "contains",
    "context_capture",
    "context_write",
    "count",
    "count_by_key",
    "default_if_empty",
    "dematerialize",
    "distinct",
    "distinct_until_changed",
    "do_action",
    "do_after_next",
    "do_after_terminate",
    "do_on_cancel",
    "do_on_complete",
    "do_on_error",
    "do_on_next",
    "do_on_request",
    "do_on_subscribe",
    "do_on_terminate",
    "element_at",
    "element_at_or_default",
    "end_with",
    "filter",
    "filter_indexed",
    "finally_action",
    "first_or_default",
    "first_or_error",
    "flat_map_iterable",
    "handle",
    "hide",
    "ignore_elements",
    "is_empty",
    "last_or_default",
    "last_or_error",
    "lift",
    "log",
    "map",
    "map_indexed",
    "map_optional",
    "materialize",
    "max",
    "min",
    "name",
    "of_type",
    "on_error_complete",
    "on_error_map",
    "on_error_return",
    "pairwise",
    "reduce",
    "reduce_by_key",
    "scan",
    "serialize",
    "single_or_default",
    "single_or_error",
    "skip",
    "skip_last",
    "skip_while",
    "slice",
    "some",
    "sort",
    "stage",
    "start_with",
    "sum",
    "tag",
    "take",
    "take_last",
    "take_until",
    "take_while",
    "tap",
    "to_dict",
    "to_list",
    "to_multidict",
    "to_set",
    "zip_with_iterable",
]

T = TypeVar("T")
A = TypeVar("A")
D = TypeVar("D")
F = TypeVar("F", int, float)
K = TypeVar("K")
R = TypeVar("R")
V = TypeVar("V")


def stage(made: Stage[T, R]) -> Operator[T, Flow[R]]:
    """`made` as an operator: the last line of a user-defined stage's factory.

    >>> import flow_core as flow
    >>> EVERY = flow.Template(
    ...     "every",
    ...     params=("n",),
    ...     state="i = 0",
    ...     on_item='''
    ...     i += 1
    ...     if i % n == 0:
    ...         EMIT
    ... ''',
    ... )
    >>> def every(n: int) -> Operator[T, Flow[T]]:
    ...     return stage(flow.Stage(EVERY, n))
    >>> list(flow.range(10).pipe(every(3)))
    [2, 5, 8]
    """
    return Operator(made.name, lambda flow: flow.then(made), repr(made))


def map(mapper: Callable[[T], R]) -> Operator[T, Flow[R]]:
    """`Flow.map` as an operator."""
    return Operator("map", lambda flow: flow.map(mapper))


def map_optional(mapper: Callable[[T], R | None]) -> Operator[T, Flow[R]]:
    """`Flow.map_optional` as an operator."""
    return Operator("map_optional", lambda flow: flow.map_optional(mapper))


def map_indexed(mapper: Callable[[T, int], R]) -> Operator[T, Flow[R]]:
    """`Flow.map_indexed` as an operator."""
    return Operator("map_indexed", lambda flow: flow.map_indexed(mapper))


def cast(kind: type[R]) -> Operator[object, Flow[R]]:
    """`Flow.cast` as an operator."""
    return Operator("cast", lambda flow: flow.cast(kind))


def handle(handler: Callable[[T, SingleSink[R]], object]) -> Operator[T, Flow[R]]:
    """`Flow.handle` as an operator."""
    return Operator("handle", lambda flow: flow.handle(handler))


def flat_map_iterable(mapper: Callable[[T], Iterable[R]]) -> Operator[T, Flow[R]]:
    """`Flow.flat_map_iterable` as an operator."""
    return Operator("flat_map_iterable", lambda flow: flow.flat_map_iterable(mapper))


@overload
def scan(accumulator: Callable[[T, T], T]) -> Operator[T, Flow[T]]: ...


@overload
def scan(accumulator: Callable[[A, T], A], seed: A) -> Operator[T, Flow[A]]: ...


def scan(accumulator: Callable[[Any, Any], Any], seed: Any = UNSET) -> Operator[Any, Flow[Any]]:
    """`Flow.scan` as an operator."""
    return Operator("scan", lambda flow: flow.scan(accumulator, seed))


def pairwise() -> Operator[T, Flow[tuple[T, T]]]:
    """`Flow.pairwise` as an operator."""
    return Operator("pairwise", lambda flow: flow.pairwise())


def buffer_with_count(count: int, skip: int | None = None) -> Operator[T, Flow[list[T]]]:
    """`Flow.buffer_with_count` as an operator."""
    return Operator("buffer_with_count", lambda flow: flow.buffer_with_count(count, skip))


def buffer_until(
    predicate: Callable[[T], object], *, cut_before: bool = False
) -> Operator[T, Flow[list[T]]]:
    """`Flow.buffer_until` as an operator."""
    return Operator(
        "buffer_until", lambda flow: flow.buffer_until(predicate, cut_before=cut_before)
    )


def buffer_while(predicate: Callable[[T], object]) -> Operator[T, Flow[list[T]]]:
    """`Flow.buffer_while` as an operator."""
    return Operator("buffer_while", lambda flow: flow.buffer_while(predicate))


def buffer_split(predicate: Callable[[T], object]) -> Operator[T, Flow[list[T]]]:
    """`Flow.buffer_split` as an operator."""
    return Operator("buffer_split", lambda flow: flow.buffer_split(predicate))


@overload
def buffer_until_changed(
    key: None = None, same: Callable[[T, T], object] | None = None
) -> Operator[T, Flow[list[T]]]: ...


@overload
def buffer_until_changed(
    key: Callable[[T], A], same: Callable[[A, A], object] | None = None
) -> Operator[T, Flow[list[T]]]: ...


def buffer_until_changed(
    key: Callable[[Any], Any] | None = None, same: Callable[[Any, Any], object] | None = None
) -> Operator[Any, Flow[list[Any]]]:
    """`Flow.buffer_until_changed` as an operator."""
    return Operator("buffer_until_changed", lambda flow: flow.buffer_until_changed(key, same))


def filter(predicate: Callable[[T], object]) -> Operator[T, Flow[T]]:
    """`Flow.filter` as an operator."""
    return Operator("filter", lambda flow: flow.filter(predicate))


def filter_indexed(predicate: Callable[[T, int], object]) -> Operator[T, Flow[T]]:
    """`Flow.filter_indexed` as an operator."""
    return Operator("filter_indexed", lambda flow: flow.filter_indexed(predicate))


def of_type(kind: type[R]) -> Operator[object, Flow[R]]:
    """`Flow.of_type` as an operator."""
    return Operator("of_type", lambda flow: flow.of_type(kind))


def ignore_elements() -> Operator[T, Flow[T]]:
    """`Flow.ignore_elements` as an operator."""
    return Operator("ignore_elements", lambda flow: flow.ignore_elements())


def take(count: int) -> Operator[T, Flow[T]]:
    """`Flow.take` as an operator."""
    return Operator("take", lambda flow: flow.take(count))


def take_last(count: int) -> Operator[T, Flow[T]]:
    """`Flow.take_last` as an operator."""
    return Operator("take_last", lambda flow: flow.take_last(count))


def take_while(predicate: Callable[[T], object]) -> Operator[T, Flow[T]]:
    """`Flow.take_while` as an operator."""
    return Operator("take_while", lambda flow: flow.take_while(predicate))


def take_until(predicate: Callable[[T], object]) -> Operator[T, Flow[T]]:
    """`Flow.take_until` as an operator."""
    return Operator("take_until", lambda flow: flow.take_until(predicate))


def skip(count: int) -> Operator[T, Flow[T]]:
    """`Flow.skip` as an operator."""
    return Operator("skip", lambda flow: flow.skip(count))


def skip_last(count: int) -> Operator[T, Flow[T]]:
    """`Flow.skip_last` as an operator."""
    return Operator("skip_last", lambda flow: flow.skip_last(count))


def skip_while(predicate: Callable[[T], object]) -> Operator[T, Flow[T]]:
    """`Flow.skip_while` as an operator."""
    return Operator("skip_while", lambda flow: flow.skip_while(predicate))


def slice(
    start: int | None = None, stop: int | None = None, step: int | None = None
) -> Operator[T, Flow[T]]:
    """`Flow.slice` as an operator."""
    return Operator("slice", lambda flow: flow.slice(start, stop, step))


def element_at(index: int) -> Operator[T, Flow[T]]:
    """`Flow.element_at` as an operator."""
    return Operator("element_at", lambda flow: flow.element_at(index))


def element_at_or_default(index: int, default: D) -> Operator[T, Flow[T | D]]:
    """`Flow.element_at_or_default` as an operator."""
    return Operator(
        "element_at_or_default", lambda flow: flow.element_at_or_default(index, default)
    )


def first_or_error() -> Operator[T, Flow[T]]:
    """`Flow.first_or_error` as an operator."""
    return Operator("first_or_error", lambda flow: flow.first_or_error())


def first_or_default(default: D) -> Operator[T, Flow[T | D]]:
    """`Flow.first_or_default` as an operator."""
    return Operator("first_or_default", lambda flow: flow.first_or_default(default))


def last_or_error() -> Operator[T, Flow[T]]:
    """`Flow.last_or_error` as an operator."""
    return Operator("last_or_error", lambda flow: flow.last_or_error())


def last_or_default(default: D) -> Operator[T, Flow[T | D]]:
    """`Flow.last_or_default` as an operator."""
    return Operator("last_or_default", lambda flow: flow.last_or_default(default))


def single_or_error() -> Operator[T, Flow[T]]:
    """`Flow.single_or_error` as an operator."""
    return Operator("single_or_error", lambda flow: flow.single_or_error())


def single_or_default(default: D) -> Operator[T, Flow[T | D]]:
    """`Flow.single_or_default` as an operator."""
    return Operator("single_or_default", lambda flow: flow.single_or_default(default))


def distinct(key: Callable[[T], object] | None = None) -> Operator[T, Flow[T]]:
    """`Flow.distinct` as an operator."""
    return Operator("distinct", lambda flow: flow.distinct(key))


@overload
def distinct_until_changed(
    key: None = None, same: Callable[[T, T], object] | None = None
) -> Operator[T, Flow[T]]: ...


@overload
def distinct_until_changed(
    key: Callable[[T], A], same: Callable[[A, A], object] | None = None
) -> Operator[T, Flow[T]]: ...


def distinct_until_changed(
    key: Callable[[Any], Any] | None = None, same: Callable[[Any, Any], object] | None = None
) -> Operator[Any, Flow[Any]]:
    """`Flow.distinct_until_changed` as an operator."""
    return Operator("distinct_until_changed", lambda flow: flow.distinct_until_changed(key, same))


@overload
def reduce(accumulator: Callable[[T, T], T]) -> Operator[T, Flow[T]]: ...


@overload
def reduce(accumulator: Callable[[A, T], A], seed: A) -> Operator[T, Flow[A]]: ...


def reduce(accumulator: Callable[[Any, Any], Any], seed: Any = UNSET) -> Operator[Any, Flow[Any]]:
    """`Flow.reduce` as an operator."""
    return Operator("reduce", lambda flow: flow.reduce(accumulator, seed))


def collect(
    supplier: Callable[[], A],
    collector: Callable[[A, T], object],
    combiner: Callable[[A, A], object] | None = None,
) -> Operator[T, Flow[A]]:
    """`Flow.collect` as an operator."""
    return Operator("collect", lambda flow: flow.collect(supplier, collector, combiner))


def to_list() -> Operator[T, Flow[list[T]]]:
    """`Flow.to_list` as an operator."""
    return Operator("to_list", lambda flow: flow.to_list())


def to_set() -> Operator[T, Flow[set[T]]]:
    """`Flow.to_set` as an operator."""
    return Operator("to_set", lambda flow: flow.to_set())


@overload
def to_dict(key: Callable[[T], K]) -> Operator[T, Flow[dict[K, T]]]: ...


@overload
def to_dict(key: Callable[[T], K], value: Callable[[T], V]) -> Operator[T, Flow[dict[K, V]]]: ...


def to_dict(
    key: Callable[[Any], Any], value: Callable[[Any], Any] | None = None
) -> Operator[Any, Flow[dict[Any, Any]]]:
    """`Flow.to_dict` as an operator."""
    if value is None:
        return Operator("to_dict", lambda flow: flow.to_dict(key))
    return Operator("to_dict", lambda flow: flow.to_dict(key, value))


@overload
def to_multidict(key: Callable[[T], K]) -> Operator[T, Flow[dict[K, list[T]]]]: ...


@overload
def to_multidict(
    key: Callable[[T], K], value: Callable[[T], V]
) -> Operator[T, Flow[dict[K, list[V]]]]: ...


def to_multidict(
    key: Callable[[Any], Any], value: Callable[[Any], Any] | None = None
) -> Operator[Any, Flow[dict[Any, list[Any]]]]:
    """`Flow.to_multidict` as an operator."""
    if value is None:
        return Operator("to_multidict", lambda flow: flow.to_multidict(key))
    return Operator("to_multidict", lambda flow: flow.to_multidict(key, value))


@overload
def reduce_by_key(
    key: Callable[[T], K], accumulator: Callable[[T, T], T]
) -> Operator[T, Flow[tuple[K, T]]]: ...


@overload
def reduce_by_key(
    key: Callable[[T], K], accumulator: Callable[[V, V], V], value: Callable[[T], V]
) -> Operator[T, Flow[tuple[K, V]]]: ...


def reduce_by_key(
    key: Callable[[Any], Any],
    accumulator: Callable[[Any, Any], Any],
    value: Callable[[Any], Any] | None = None,
) -> Operator[Any, Flow[tuple[Any, Any]]]:
    """`Flow.reduce_by_key` as an operator."""
    if value is None:
        return Operator("reduce_by_key", lambda flow: flow.reduce_by_key(key, accumulator))
    return Operator("reduce_by_key", lambda flow: flow.reduce_by_key(key, accumulator, value))


def count_by_key(key: Callable[[T], K]) -> Operator[T, Flow[tuple[K, int]]]:
    """`Flow.count_by_key` as an operator."""
    return Operator("count_by_key", lambda flow: flow.count_by_key(key))


def count() -> Operator[object, Flow[int]]:
    """`Flow.count` as an operator."""
    return Operator("count", lambda flow: flow.count())


@overload
def sum() -> Operator[F, Flow[F]]: ...


@overload
def sum(start: N) -> Operator[N, Flow[N]]: ...


def sum(start: Any = 0) -> Operator[Any, Flow[Any]]:
    """`Flow.sum` as an operator."""
    return Operator("sum", lambda flow: flow.sum(start))


def average() -> Operator[float, Flow[float]]:
    """`Flow.average` as an operator."""
    return Operator("average", lambda flow: flow.average())


@overload
def min() -> Operator[C, Flow[C]]: ...


@overload
def min(key: Callable[[T], Comparable]) -> Operator[T, Flow[T]]: ...


def min(key: Callable[[Any], Any] | None = None) -> Operator[Any, Flow[Any]]:
    """`Flow.min` as an operator."""
    return Operator("min", lambda flow: flow.min() if key is None else flow.min(key))


@overload
def max() -> Operator[C, Flow[C]]: ...


@overload
def max(key: Callable[[T], Comparable]) -> Operator[T, Flow[T]]: ...


def max(key: Callable[[Any], Any] | None = None) -> Operator[Any, Flow[Any]]:
    """`Flow.max` as an operator."""
    return Operator("max", lambda flow: flow.max() if key is None else flow.max(key))


@overload
def sort(*, reverse: bool = ...) -> Operator[C, Flow[C]]: ...


@overload
def sort(key: Callable[[T], Comparable], *, reverse: bool = ...) -> Operator[T, Flow[T]]: ...


def sort(
    key: Callable[[Any], Any] | None = None, *, reverse: bool = False
) -> Operator[Any, Flow[Any]]:
    """`Flow.sort` as an operator."""
    if key is None:
        return Operator("sort", lambda flow: flow.sort(reverse=reverse))
    return Operator("sort", lambda flow: flow.sort(key, reverse=reverse))


def all(predicate: Callable[[T], object]) -> Operator[T, Flow[bool]]:
    """`Flow.all` as an operator."""
    return Operator("all", lambda flow: flow.all(predicate))


def some(predicate: Callable[[T], object]) -> Operator[T, Flow[bool]]:
    """`Flow.some` as an operator."""
    return Operator("some", lambda flow: flow.some(predicate))


def is_empty() -> Operator[object, Flow[bool]]:
    """`Flow.is_empty` as an operator."""
    return Operator("is_empty", lambda flow: flow.is_empty())


def contains(item: object) -> Operator[object, Flow[bool]]:
    """`Flow.contains` as an operator."""
    return Operator("contains", lambda flow: flow.contains(item))


def start_with(*items: D) -> Operator[T, Flow[T | D]]:
    """`Flow.start_with` as an operator."""
    return Operator("start_with", lambda flow: flow.start_with(*items))


def end_with(*items: D) -> Operator[T, Flow[T | D]]:
    """`Flow.end_with` as an operator."""
    return Operator("end_with", lambda flow: flow.end_with(*items))


def default_if_empty(default: D) -> Operator[T, Flow[T | D]]:
    """`Flow.default_if_empty` as an operator."""
    return Operator("default_if_empty", lambda flow: flow.default_if_empty(default))


@overload
def zip_with_iterable(other: Iterable[D]) -> Operator[T, Flow[tuple[T, D]]]: ...


@overload
def zip_with_iterable(other: Iterable[D], zipper: Callable[[T, D], R]) -> Operator[T, Flow[R]]: ...


def zip_with_iterable(
    other: Iterable[Any], zipper: Callable[[Any, Any], Any] = pair
) -> Operator[Any, Flow[Any]]:
    """`Flow.zip_with_iterable` as an operator."""
    return Operator("zip_with_iterable", lambda flow: flow.zip_with_iterable(other, zipper))


def on_error_return(item: D, when: ErrorFilter = Exception) -> Operator[T, Flow[T | D]]:
    """`Flow.on_error_return` as an operator."""
    return Operator("on_error_return", lambda flow: flow.on_error_return(item, when))


def on_error_complete(when: ErrorFilter = Exception) -> Operator[T, Flow[T]]:
    """`Flow.on_error_complete` as an operator."""
    return Operator("on_error_complete", lambda flow: flow.on_error_complete(when))


def on_error_map(
    mapper: Callable[[BaseException], BaseException], when: ErrorFilter = Exception
) -> Operator[T, Flow[T]]:
    """`Flow.on_error_map` as an operator."""
    return Operator("on_error_map", lambda flow: flow.on_error_map(mapper, when))


def materialize() -> Operator[T, Flow[Notification[T]]]:
    """`Flow.materialize` as an operator."""
    return Operator("materialize", lambda flow: flow.materialize())


def dematerialize() -> Operator[Notification[T], Flow[T]]:
    """`Flow.dematerialize` as an operator."""
    return Operator("dematerialize", lambda flow: flow.dematerialize())


def do_on_next(action: Callable[[T], object]) -> Operator[T, Flow[T]]:
    """`Flow.do_on_next` as an operator."""
    return Operator("do_on_next", lambda flow: flow.do_on_next(action))


def do_after_next(action: Callable[[T], object]) -> Operator[T, Flow[T]]:
    """`Flow.do_after_next` as an operator."""
    return Operator("do_after_next", lambda flow: flow.do_after_next(action))


def do_on_subscribe(action: Callable[[], object]) -> Operator[T, Flow[T]]:
    """`Flow.do_on_subscribe` as an operator."""
    return Operator("do_on_subscribe", lambda flow: flow.do_on_subscribe(action))


def do_on_request(action: Callable[[int], object]) -> Operator[T, Flow[T]]:
    """`Flow.do_on_request` as an operator."""
    return Operator("do_on_request", lambda flow: flow.do_on_request(action))


def do_on_complete(action: Callable[[], object]) -> Operator[T, Flow[T]]:
    """`Flow.do_on_complete` as an operator."""
    return Operator("do_on_complete", lambda flow: flow.do_on_complete(action))


def do_on_error(action: Callable[[BaseException], object]) -> Operator[T, Flow[T]]:
    """`Flow.do_on_error` as an operator."""
    return Operator("do_on_error", lambda flow: flow.do_on_error(action))


def do_on_terminate(action: Callable[[], object]) -> Operator[T, Flow[T]]:
    """`Flow.do_on_terminate` as an operator."""
    return Operator("do_on_terminate", lambda flow: flow.do_on_terminate(action))


def do_after_terminate(action: Callable[[], object]) -> Operator[T, Flow[T]]:
    """`Flow.do_after_terminate` as an operator."""
    return Operator("do_after_terminate", lambda flow: flow.do_after_terminate(action))


def do_on_cancel(action: Callable[[], object]) -> Operator[T, Flow[T]]:
    """`Flow.do_on_cancel` as an operator."""
    return Operator("do_on_cancel", lambda flow: flow.do_on_cancel(action))


def finally_action(action: Callable[[], object]) -> Operator[T, Flow[T]]:
    """`Flow.finally_action` as an operator."""
    return Operator("finally_action", lambda flow: flow.finally_action(action))


def do_action(
    on_next: Callable[[T], object] | None = None,
    on_error: Callable[[BaseException], object] | None = None,
    on_complete: Callable[[], object] | None = None,
    *,
    on_subscribe: Callable[[], object] | None = None,
    on_cancel: Callable[[], object] | None = None,
    on_close: Callable[[], object] | None = None,
) -> Operator[T, Flow[T]]:
    """`Flow.do_action` as an operator."""
    return Operator(
        "do_action",
        lambda flow: flow.do_action(
            on_next,
            on_error,
            on_complete,
            on_subscribe=on_subscribe,
            on_cancel=on_cancel,
            on_close=on_close,
        ),
    )


tap = do_action


def log(
    name: str = "flow", *, logger: str = "flow", level: int = logging.INFO
) -> Operator[T, Flow[T]]:
    """`Flow.log` as an operator."""
    return Operator("log", lambda flow: flow.log(name, logger=logger, level=level))


def checkpoint(description: str = "") -> Operator[T, Flow[T]]:
    """`Flow.checkpoint` as an operator."""
    return Operator("checkpoint", lambda flow: flow.checkpoint(description))


def name(name: str) -> Operator[T, Flow[T]]:
    """`Flow.name` as an operator."""
    return Operator("name", lambda flow: flow.name(name))


def tag(key: str, value: str) -> Operator[T, Flow[T]]:
    """`Flow.tag` as an operator."""
    return Operator("tag", lambda flow: flow.tag(key, value))


def hide() -> Operator[T, Flow[T]]:
    """`Flow.hide` as an operator."""
    return Operator("hide", lambda flow: flow.hide())
