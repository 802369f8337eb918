"""Builds flows from descriptions. Each operator has a counterpart in ``Pipelines.java``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, final

import flow_core as flow
import flow_ops as ops
from flow_core import Flow, hooks
from flow_multicast import publish
from flow_oracle.functions import OracleError, accumulator, combiner, key, mapper, number, predicate
from flow_oracle.language import Node
from flow_oracle.probes import Consumer, CoreConsumer, Probe
from flow_oracle.trace import TooLongError, Trace, shown_error

__all__ = ["run"]

Items = Flow[Any]  # Any: ints, and lists of items


def run(case: Node) -> list[str]:
    """Run `case`, see `language`, and return its events."""
    kind, pipe, demand = case
    trace = Trace()
    hooks.dropped_errors.add("oracle", lambda error: trace.add(f"dropped {shown_error(error)}"))
    try:
        made = Pipelines(trace).flow(pipe, None)
        consumer = (CoreConsumer if kind == "core" else Consumer)(trace, demand)
        made.subscribe(consumer)
        consumer.steps()
    except TooLongError:
        return ["too long"]
    except Exception as error:
        trace.events.append(f"raised {shown_error(error)}")
    finally:
        hooks.dropped_errors.remove("oracle")
    return trace.events


@final
class Pipelines:
    """Builds flows from descriptions.

    Args:
        trace: receives the events of sources.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def flow(self, node: Any, given: Any) -> Items:
        """Build the flow of ``(pipe source operator…)``.

        Args:
            node: the description.
            given: the item from which an inner flow is made, or None.
        """
        _, source, *operators = node
        return self.behind(SOURCES[source[0]](self, given, *source[1:]), given, operators)

    def flows(self, nodes: Any, given: Any) -> list[Items]:
        """Build one flow for each node."""
        return [self.flow(node, given) for node in nodes]

    def behind(self, made: Items, given: Any, operators: Any) -> Items:
        """Apply operators to a flow."""
        for name, *parts in operators:
            made = OPERATORS[name](self, made, given, *parts)
        return made

    def inner(self, node: Any) -> Callable[[Any], Items]:
        """Return a function from an item to an inner flow."""
        return lambda item: self.flow(node, item)

    def probe(self, items: list[Any], end: Any, conditional: int) -> Items:
        """See `Probe`."""
        return flow.from_publisher(Probe(self._trace, items, end, bool(conditional)))


def _items(node: Any) -> list[int]:
    """Return the parts of a node as items."""
    return list(node[1:])


def counted(item: Any, modulus: int) -> list[int]:
    """Return up to ``modulus - 1`` numbers, beginning with the item's."""
    first = number(item)
    return [first + n for n in range(first % modulus)]


def _called(self: Pipelines, result: Any) -> Items:
    def function() -> int | None:
        if isinstance(result, tuple):
            raise OracleError(result[1])
        return None if result == "null" else result

    return flow.from_callable(function)


def _iterated(end: Any, items: Any) -> Items:
    def generator() -> Iterator[int]:
        yield from _items(items)
        if isinstance(end, tuple):
            raise OracleError(end[1])

    return flow.from_iterable(_Iterable(generator))


@final
class _Iterable:
    """An iterable that makes a new iterator each time."""

    def __init__(self, make: Callable[[], Iterator[int]]) -> None:
        self._make = make

    def __iter__(self) -> Iterator[int]:
        return self._make()


def _deferred_failure(number: int) -> Items:
    def factory() -> Items:
        raise OracleError(number)

    return flow.defer(factory)


def _now(task: Callable[[], object]) -> None:
    """Run a task at once, as an executor."""
    task()


# Any: parts of descriptions.
SOURCES: Final[dict[str, Callable[..., Items]]] = {
    "probe": lambda self, given, end, conditional, items: self.probe(
        _items(items), end, conditional
    ),
    "given_probe": lambda self, given, end, conditional, modulus: self.probe(
        counted(given, modulus), end, conditional
    ),
    "range": lambda self, given, start, count: flow.range(start, start + count),
    "given_range": lambda self, given, modulus: flow.range(number(given) % modulus),
    "just": lambda self, given, *items: flow.just(*items),
    "given_just": lambda self, given: flow.just(given),
    "iterable": lambda self, given, end, items: _iterated(end, items),
    "callable": lambda self, given, result: _called(self, result),
    "empty": lambda self, given: flow.empty(),
    "never": lambda self, given: flow.never(),
    "error": lambda self, given, number: flow.error(OracleError(number)),
    "defer": lambda self, given, pipe: flow.defer(lambda: self.flow(pipe, given)),
    "defer_fail": lambda self, given, number: _deferred_failure(number),
    "concat": lambda self, given, *pipes: ops.concat(*self.flows(pipes, given)),
    "merge": lambda self, given, concurrency, prefetch, *pipes: ops.merge(
        *self.flows(pipes, given), concurrency=concurrency, prefetch=prefetch
    ),
    "merge_sequential": lambda self, given, concurrency, prefetch, *pipes: ops.merge_sequential(
        *self.flows(pipes, given), concurrency=concurrency, prefetch=prefetch
    ),
    "zip": lambda self, given, f, prefetch, *pipes: ops.zip(
        *self.flows(pipes, given), prefetch=prefetch
    ).starmap(combiner(f)),
    "combine_latest": lambda self, given, f, prefetch, *pipes: ops.combine_latest(
        *self.flows(pipes, given), prefetch=prefetch
    ).starmap(combiner(f)),
    "amb": lambda self, given, *pipes: ops.amb(*self.flows(pipes, given)),
    "sequence_equal": lambda self, given, prefetch, a, b: ops.sequence_equal(
        self.flow(a, given), self.flow(b, given), prefetch=prefetch
    ).map(int),
}

OPERATORS: Final[dict[str, Callable[..., Items]]] = {
    "map": lambda self, up, given, f: up.map(mapper(f)),
    "map_optional": lambda self, up, given, f: up.map_optional(mapper(f)),
    "do_on_next": lambda self, up, given, f: up.do_on_next(mapper(f)),
    "filter": lambda self, up, given, p: up.filter(predicate(p)),
    "take": lambda self, up, given, n: up.take(n),
    "take_while": lambda self, up, given, p: up.take_while(predicate(p)),
    "take_until": lambda self, up, given, p: up.take_until(predicate(p)),
    "take_last": lambda self, up, given, n: up.take_last(n),
    "skip": lambda self, up, given, n: up.skip(n),
    "skip_while": lambda self, up, given, p: up.skip_while(predicate(p)),
    "skip_last": lambda self, up, given, n: up.skip_last(n),
    "distinct": lambda self, up, given, f: up.distinct(key(f)),
    "distinct_until_changed": lambda self, up, given, f: up.distinct_until_changed(key(f)),
    "scan": lambda self, up, given, f: up.scan(accumulator(f)),
    "scan_seed": lambda self, up, given, f, seed: up.scan(accumulator(f), seed),
    "reduce": lambda self, up, given, f: up.reduce(accumulator(f)),
    "reduce_seed": lambda self, up, given, f, seed: up.reduce(accumulator(f), seed),
    "count": lambda self, up, given: up.count(),
    "all": lambda self, up, given, p: up.all(predicate(p)).map(int),
    "some": lambda self, up, given, p: up.some(predicate(p)).map(int),
    "is_empty": lambda self, up, given: up.is_empty().map(int),
    "contains": lambda self, up, given, n: up.contains(n).map(int),
    "to_list": lambda self, up, given: up.to_list(),
    "sort": lambda self, up, given: up.sort(number),
    "buffer": lambda self, up, given, n, skip: up.buffer_with_count(n, skip),
    "pairwise": lambda self, up, given: up.pairwise().map(list),
    "element_at": lambda self, up, given, n: up.element_at(n),
    "element_at_or_default": lambda self, up, given, n, d: up.element_at_or_default(n, d),
    "first_or_error": lambda self, up, given: up.first_or_error(),
    "first_or_default": lambda self, up, given, d: up.first_or_default(d),
    "last_or_error": lambda self, up, given: up.last_or_error(),
    "last_or_default": lambda self, up, given, d: up.last_or_default(d),
    "single_or_error": lambda self, up, given: up.single_or_error(),
    "single_or_default": lambda self, up, given, d: up.single_or_default(d),
    "ignore_elements": lambda self, up, given: up.ignore_elements(),
    "start_with": lambda self, up, given, *items: up.start_with(*items),
    "end_with": lambda self, up, given, *items: up.end_with(*items),
    "default_if_empty": lambda self, up, given, d: up.default_if_empty(d),
    "on_error_return": lambda self, up, given, item: up.on_error_return(item),
    "on_error_complete": lambda self, up, given: up.on_error_complete(),
    "flat_map_iterable": lambda self, up, given, prefetch, modulus: up.flat_map_iterable(
        lambda item: counted(item, modulus)
    ),
    "zip_with_iterable": lambda self, up, given, f, items: up.zip_with_iterable(
        _items(items), combiner(f)
    ),
    "hide": lambda self, up, given: up.hide(),
    "concat_map": lambda self, up, given, prefetch, pipe: up.pipe(
        ops.concat_map(self.inner(pipe), prefetch=prefetch)
    ),
    "concat_map_delay_error": lambda self, up, given, prefetch, pipe: up.pipe(
        ops.concat_map(self.inner(pipe), prefetch=prefetch, delay_error=True)
    ),
    "concat_map_eager": lambda self, up, given, concurrency, prefetch, pipe: up.pipe(
        ops.concat_map_eager(self.inner(pipe), concurrency=concurrency, prefetch=prefetch)
    ),
    "flat_map": lambda self, up, given, concurrency, prefetch, pipe: up.pipe(
        ops.flat_map(self.inner(pipe), concurrency=concurrency, prefetch=prefetch)
    ),
    "flat_map_delay_error": lambda self, up, given, concurrency, prefetch, pipe: up.pipe(
        ops.flat_map(self.inner(pipe), concurrency=concurrency, prefetch=prefetch, delay_error=True)
    ),
    "merge_all": lambda self, up, given, concurrency, prefetch, pipe: up.map(self.inner(pipe)).pipe(
        ops.merge_all(concurrency=concurrency, prefetch=prefetch)
    ),
    "switch_latest": lambda self, up, given, prefetch, pipe: up.map(self.inner(pipe)).pipe(
        ops.switch_latest()
    ),
    "and_then": lambda self, up, given, pipe: up.pipe(ops.and_then(self.flow(pipe, given))),
    "switch_map": lambda self, up, given, prefetch, pipe: up.pipe(ops.switch_map(self.inner(pipe))),
    "concat_with": lambda self, up, given, pipe: up.pipe(ops.concat_with(self.flow(pipe, given))),
    "start_with_flows": lambda self, up, given, pipe: up.pipe(
        ops.start_with_flows(self.flow(pipe, given))
    ),
    "merge_with": lambda self, up, given, prefetch, pipe: up.pipe(
        ops.merge_with(self.flow(pipe, given), prefetch=prefetch)
    ),
    "zip_with": lambda self, up, given, f, prefetch, pipe: up.pipe(
        ops.zip_with(self.flow(pipe, given), prefetch=prefetch)
    ).starmap(combiner(f)),
    "with_latest_from": lambda self, up, given, f, pipe: up.pipe(
        ops.with_latest_from(self.flow(pipe, given))
    ).starmap(combiner(f)),
    "amb_with": lambda self, up, given, pipe: up.pipe(ops.amb_with(self.flow(pipe, given))),
    "switch_if_empty": lambda self, up, given, pipe: up.pipe(
        ops.switch_if_empty(self.flow(pipe, given))
    ),
    "on_error_resume": lambda self, up, given, pipe: up.pipe(
        ops.on_error_resume(lambda error: self.flow(pipe, given))
    ),
    "retry": lambda self, up, given, times: up.pipe(ops.retry(times)),
    "repeat": lambda self, up, given, times: up.pipe(ops.repeat(times)),
    "take_until_other": lambda self, up, given, pipe: up.pipe(
        ops.take_until_other(self.flow(pipe, given))
    ),
    "skip_until_other": lambda self, up, given, pipe: up.pipe(
        ops.skip_until_other(self.flow(pipe, given))
    ),
    "observe_on": lambda self, up, given, prefetch, delay_error: up.pipe(
        ops.observe_on(_now, prefetch=prefetch, delay_error=bool(delay_error))
    ),
    "subscribe_on": lambda self, up, given: up.pipe(ops.subscribe_on(_now)),
    "rebatch_requests": lambda self, up, given, prefetch: up.pipe(ops.rebatch_requests(prefetch)),
    "on_backpressure_buffer": lambda self, up, given: up.pipe(ops.on_backpressure_buffer(2**20)),
    "on_backpressure_drop": lambda self, up, given: up.pipe(ops.on_backpressure_drop()),
    "on_backpressure_latest": lambda self, up, given: up.pipe(ops.on_backpressure_latest()),
    "group_by": lambda self, up, given, f, prefetch, concurrency, *operators: up.pipe(
        ops.group_by(key(f), prefetch=prefetch)
    ).pipe(
        ops.flat_map(
            lambda group: self.behind(group, None, operators),
            concurrency=concurrency,
            prefetch=prefetch,
        )
    ),
    "window": lambda self, up, given, n, skip, *operators: up.pipe(
        ops.window_with_count(n, skip)
    ).pipe(ops.concat_map_eager(lambda window: self.behind(window, None, operators))),
    "publish": lambda self, up, given, prefetch, *operators: up.pipe(
        publish(lambda shared: self.behind(shared, given, operators), prefetch=prefetch)
    ),
}
