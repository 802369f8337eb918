"""An example of every operator and source of this package, for its tests, rules and explorers.

`OPERATOR_CASES` makes those general: a test that is parametrised over it covers all that is
registered. An operator without a case fails the tests of the package.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import flow_core as flow
import flow_ops as ops
from flow_core import Flow
from flow_core.demand import UNBOUNDED
from flow_testing import OperatorCase, Surroundings

__all__ = ["OPERATOR_CASES", "WITHOUT_CASE"]

# The type of the items that an operator gives in the end is not known where it is made.
# pyright: reportUnknownLambdaType=false

# Any: of all types of items.
_AnyFlow = Flow[Any]
_ONE: Final = {"max_items": 1}


def _case(
    name: str,
    apply: Callable[[_AnyFlow, Surroundings], _AnyFlow],
    kinds: str = "",
    *,
    holds: int = OperatorCase.holds,
    **facts: object,
) -> OperatorCase:
    return OperatorCase(name, apply, frozenset(kinds.split()), holds, facts)


def _piped(
    name: str, operator: Callable[[Surroundings], Any], *kinds: str, **more: Any
) -> OperatorCase:
    """Return a case in which the upstream is the flow itself."""
    return _case(name, lambda up, at: up.pipe(operator(at)), *kinds, **more)


def _itself(made: Any) -> Any:
    return made


def _of_three(item: Any) -> int:
    return int(item) % 3


def _reraise(error: BaseException) -> _AnyFlow:
    return flow.error(error)


def _raised(error: BaseException) -> object:
    raise error


async def _later(item: Any) -> Any:
    await asyncio.sleep(0)
    return item


OPERATOR_CASES: Final = (
    _piped("amb_with", lambda at: ops.amb_with(flow.never())),
    _piped("and_then", lambda at: ops.and_then(flow.range(9)), "uncounted selective"),
    _case("and_then, what follows", lambda up, at: flow.empty().pipe(ops.and_then(up))),
    # Without an end of the buffer, the upstream waits when that many items are in it.
    _piped(
        "buffer_boundary",
        lambda at: ops.buffer_boundary(flow.never(), max_size=5_000),
        holds=5_001,
        **_ONE,
    ),
    _piped(
        "buffer_toggle",
        lambda at: ops.buffer_toggle(flow.just(1), lambda _: flow.never(), max_size=5_000),
        "selective",
        holds=5_001,
        **_ONE,
    ),
    _piped(
        "buffer_when",
        lambda at: ops.buffer_when(flow.never, max_size=5_000),
        holds=5_001,
        **_ONE,
    ),
    _piped(
        "buffer_with_time",
        lambda at: ops.buffer_with_time(at.period_s, clock=at.clock, max_size=5_000),
        holds=5_001,
        **_ONE,
    ),
    _piped(
        "batch",
        lambda at: ops.batch(5, within=at.period_s, clock=at.clock),
        "uncounted",
    ),
    _piped(
        "batch, of one",
        lambda at: ops.batch(1, within=10**6 * at.period_s, clock=at.clock),
    ),
    _piped(
        "session_buffer",
        lambda at: ops.session_buffer(at.period_s, clock=at.clock),
        holds=65_536 + 300,
        **_ONE,
    ),
    _piped(
        "buffer_with_time_or_count",
        lambda at: ops.buffer_with_time_or_count(at.period_s, 5, clock=at.clock, max_waiting=20),
        "uncounted",
    ),
    _piped(
        "buffer_with_time_or_count, of one",
        lambda at: ops.buffer_with_time_or_count(
            10**6 * at.period_s, 1, clock=at.clock, max_waiting=20
        ),
    ),
    _piped("cancel_on", lambda at: ops.cancel_on(at.executor), "executor"),
    _piped("concat_map", lambda at: ops.concat_map(flow.just)),
    _piped("concat_map, hidden flows", lambda at: ops.concat_map(lambda n: flow.just(n).hide())),
    _piped("concat_map_eager", lambda at: ops.concat_map_eager(flow.just)),
    _piped(
        "concat_map_eager, hidden flows",
        lambda at: ops.concat_map_eager(lambda n: flow.just(n).hide(), concurrency=16),
    ),
    _piped("concat_with", lambda at: ops.concat_with(flow.empty())),
    _case(
        "concat_with, what follows",
        lambda up, at: flow.empty().hide().pipe(ops.concat_with(up, flow.empty())),
    ),
    _piped("debounce", lambda at: ops.debounce(at.period_s, clock=at.clock), "selective", **_ONE),
    _piped(
        "debounce, by flows",
        lambda at: ops.debounce(lambda _: ops.timer(at.period_s, clock=at.clock)),
        "selective",
        **_ONE,
    ),
    # Items that were requested are on their way.
    _piped(
        "delay",
        lambda at: ops.delay(at.period_s, clock=at.clock),
        "timed delayed",
        holds=5_001,
    ),
    _piped("delay, by nothing", lambda at: ops.delay(0, clock=at.clock)),
    _piped(
        "delay, errors too",
        lambda at: ops.delay(at.period_s, delay_error=True, clock=at.clock),
        "timed delayed",
        holds=5_001,
    ),
    _piped(
        "delay_elements",
        lambda at: ops.delay_elements(at.period_s, clock=at.clock),
        "timed delayed",
        chain=5_000,
    ),
    _piped(
        "delay_elements, by nothing",
        lambda at: ops.delay_elements(0, clock=at.clock),
        "delayed",
        chain=5_000,
    ),
    _piped(
        "delay_subscription",
        lambda at: ops.delay_subscription(at.period_s, clock=at.clock),
        "timed delayed",
    ),
    _piped("delay_subscription, by a flow", lambda at: ops.delay_subscription(flow.just("go"))),
    _piped("delay_until", lambda at: ops.delay_until(lambda _: flow.empty())),
    _piped("delay_with_mapper", lambda at: ops.delay_with_mapper(lambda _: flow.empty())),
    _piped(
        "delay_with_mapper, by timers",
        lambda at: ops.delay_with_mapper(lambda _: ops.timer(at.period_s, clock=at.clock)),
        "timed delayed",
    ),
    # It walks level by level, and the items are the first level.
    _piped("expand", lambda at: ops.expand(lambda _: flow.empty()), holds=65_536),
    _piped("expand, depth first", lambda at: ops.expand(lambda _: flow.empty(), depth_first=True)),
    _piped("filter_when", lambda at: ops.filter_when(lambda _: flow.just(True))),
    _piped("flat_map", lambda at: ops.flat_map(flow.just)),
    _piped("flat_map, hidden flows", lambda at: ops.flat_map(lambda n: flow.just(n).hide())),
    _case(
        "group_by",
        lambda up, at: up.pipe(ops.group_by(lambda n: int(n) % 3)).pipe(ops.flat_map(_itself)),
        holds=600,
    ),
    _case(
        "group_by, each item a group",
        lambda up, at: up.pipe(ops.group_by(_itself, prefetch=1)).pipe(
            ops.flat_map(lambda group: group.take(1))
        ),
    ),
    _case(
        "group_by_until",
        lambda up, at: up.pipe(ops.group_by_until(_of_three, lambda group: group.skip(4))).pipe(
            ops.flat_map(_itself)
        ),
        holds=800,
    ),
    _piped("group_by, the groups", lambda at: ops.group_by(_itself), "selective", **_ONE),
    _piped(
        "map_concurrent",
        lambda at: ops.map_concurrent(_later, 4, loop=at.loop),
        "loop",
        synchronous=False,
        chain=200,
    ),
    _piped(
        "map_concurrent, in threads",
        lambda at: ops.map_concurrent(_itself, 4, executor=at.executor),
        "executor",
        synchronous=False,
        chain=200,
    ),
    _piped(
        "do_concurrent",
        lambda at: ops.do_concurrent(_later, 4, loop=at.loop),
        "loop",
        synchronous=False,
        chain=200,
    ),
    _piped("map_when", lambda at: ops.map_when(flow.just)),
    _case("concat_all", lambda up, at: up.map(flow.just).pipe(ops.concat_all())),
    _case("merge_all", lambda up, at: up.map(flow.just).pipe(ops.merge_all())),
    _piped("merge_with", lambda at: ops.merge_with(flow.empty())),
    _piped("observe_on", lambda at: ops.observe_on(at.executor), "executor"),
    _piped(
        "observe_on, prefetch 1", lambda at: ops.observe_on(at.executor, prefetch=1), "executor"
    ),
    _piped(
        "observe_on, errors overtake",
        lambda at: ops.observe_on(at.executor, delay_error=False),
        "executor selective",
    ),
    _piped(
        "on_backpressure_buffer",
        lambda at: ops.on_backpressure_buffer(100, overflow="drop_oldest"),
        "uncounted endless selective",
    ),
    _piped(
        "on_backpressure_buffer, all",
        lambda at: ops.on_backpressure_buffer(100_000),
        holds=100_001,  # and one item for which there is no room
    ),
    _piped(
        "on_backpressure_buffer, timed",
        lambda at: ops.on_backpressure_buffer(100_000, timeout=60, clock=at.clock),
        "selective",
        holds=100_001,
    ),
    # Items that are not requested yet are lost.
    _piped(
        "on_backpressure_drop",
        lambda at: ops.on_backpressure_drop(),
        "endless selective",
        max_items=0,
    ),
    _piped(
        "on_backpressure_error",
        lambda at: ops.on_backpressure_error(),
        "closing selective",
        max_items=0,
    ),
    _piped(
        "on_backpressure_latest",
        lambda at: ops.on_backpressure_latest(),
        "endless selective",
        **_ONE,
    ),
    _piped(
        "on_backpressure_reduce",
        lambda at: ops.on_backpressure_reduce(lambda _, b: b),
        "endless selective",
        **_ONE,
    ),
    _piped("on_error_resume", lambda at: ops.on_error_resume(_reraise, KeyError)),
    _case(
        "on_processes",
        lambda up, at: up.map(int).pipe(ops.on_processes(at.executor)).map(int),
        "processes",
    ),
    # One rail: the order of several is not defined.
    _case(
        "parallel, one rail",
        lambda up, at: up.pipe(ops.parallel(1)).run_on(at.executor).sequential(),
        "executor",
        holds=600,
    ),
    _case(
        "parallel",
        lambda up, at: up.pipe(ops.parallel(2, prefetch=4)).sequential(prefetch=2),
        holds=600,
    ),
    _case(
        "parallel, run_on",
        lambda up, at: up.pipe(ops.parallel(2)).run_on(at.executor).sequential(),
        "executor selective",
        holds=900,
    ),
    _piped("rebatch_requests", lambda at: ops.rebatch_requests(64)),
    _piped("repeat", lambda at: ops.repeat(1)),
    _piped("repeat_until", lambda at: ops.repeat_until(lambda: True)),
    _piped("repeat_when", lambda at: ops.repeat_when(lambda runs: runs.take(1))),
    _piped(
        "rate_limit",
        lambda at: ops.rate_limit(1, at.period_s, clock=at.clock),
        "timed delayed",
        chain=5_000,
    ),
    _piped("retry", lambda at: ops.retry(2, when=KeyError)),
    _piped("retry_when", lambda at: ops.retry_when(ops.Backoff(1, when=KeyError))),
    _piped("retry_when, by a flow", lambda at: ops.retry_when(lambda errors: errors.map(_raised))),
    _piped(
        "sample",
        lambda at: ops.sample(at.period_s, emit_last=True, clock=at.clock),
        "endless selective",
        **_ONE,
    ),
    _piped(
        "sample, by a flow",
        lambda at: ops.sample(ops.timer(at.period_s, clock=at.clock), emit_last=True),
        "endless selective",
        **_ONE,
    ),
    _piped("skip_last_with_time", lambda at: ops.skip_last_with_time(0, clock=at.clock)),
    _piped("skip_until_other", lambda at: ops.skip_until_other(flow.just("go"))),
    _piped(
        "skip_until_with_time",
        lambda at: ops.skip_until_with_time(at.period_s, clock=at.clock),
        "timed selective",
    ),
    _piped(
        "skip_with_time",
        lambda at: ops.skip_with_time(at.period_s, clock=at.clock),
        "timed selective",
    ),
    _piped("start_with_flows", lambda at: ops.start_with_flows(flow.empty())),
    _piped("subscribe_on", lambda at: ops.subscribe_on(at.executor), "executor"),
    _piped("switch_if_empty", lambda at: ops.switch_if_empty(flow.empty())),
    _case(
        "switch_if_empty, what follows",
        lambda up, at: flow.empty().pipe(ops.switch_if_empty(up)),
    ),
    _case(
        "switch_latest",
        lambda up, at: up.map(flow.just).pipe(ops.switch_latest()),
        "uncounted endless selective",
    ),
    _case(
        "switch_latest, the last",
        lambda up, at: flow.just(flow.never(), up).pipe(ops.switch_latest()),
    ),
    _piped("exhaust_map", lambda at: ops.exhaust_map(flow.just), "uncounted endless selective"),
    _case(
        "exhaust_map, the only one",
        lambda up, at: flow.just(0).hide().pipe(ops.exhaust_map(lambda _: up)),
    ),
    _piped("switch_map", lambda at: ops.switch_map(flow.just), "uncounted endless selective"),
    _case(
        "switch_map, the only one",
        lambda up, at: flow.just(0).hide().pipe(ops.switch_map(lambda _: up)),
    ),
    _piped("switch_on_first", lambda at: ops.switch_on_first(lambda _, whole: whole)),
    _piped(
        "take_last_with_time",
        lambda at: ops.take_last_with_time(at.period_s, max_items=10, clock=at.clock),
        "endless selective",
        max_items=10,
    ),
    _piped(
        "take_last_with_time, all",
        lambda at: ops.take_last_with_time(at.period_s, clock=at.clock),
        "selective",
        holds=UNBOUNDED,  # as many as come in a time that stands still here
    ),
    _piped("take_until_other", lambda at: ops.take_until_other(flow.never())),
    _piped(
        "take_until_with_time", lambda at: ops.take_until_with_time(at.period_s, clock=at.clock)
    ),
    _piped("take_with_time", lambda at: ops.take_with_time(at.period_s, clock=at.clock)),
    _piped(
        "throttle_first",
        lambda at: ops.throttle_first(at.period_s, clock=at.clock),
        "timed selective",
    ),
    _piped(
        "throttle_last",
        lambda at: ops.throttle_last(flow.never(), emit_last=True),
        "endless selective",
        **_ONE,
    ),
    _piped(
        "throttle_latest",
        lambda at: ops.throttle_latest(at.period_s, emit_last=True, clock=at.clock),
        "endless selective",
        **_ONE,
    ),
    _case(
        "time_interval",
        lambda up, at: up.pipe(ops.time_interval(clock=at.clock)).map(lambda timed: timed.item),
    ),
    _piped("timeout", lambda at: ops.timeout(10**6 * at.period_s, clock=at.clock)),
    _piped(
        "timeout, by flows",
        lambda at: ops.timeout(selector=lambda _: ops.timer(10**6 * at.period_s, clock=at.clock)),
    ),
    _case(
        "timeout, the fallback",
        lambda up, at: flow.never().pipe(
            ops.timeout(selector=flow.just, first=at.period_s, fallback=up, clock=at.clock)
        ),
        "timed delayed selective",
    ),
    _case(
        "timestamp",
        lambda up, at: up.pipe(ops.timestamp(clock=at.clock)).map(lambda timed: timed.item),
    ),
    _case(
        "window_boundary",
        lambda up, at: up.pipe(ops.window_boundary(flow.never())).pipe(ops.concat_map(_itself)),
    ),
    _case(
        "window_toggle",
        lambda up, at: up.pipe(
            ops.window_toggle(
                flow.just(1).pipe(ops.concat_with(flow.never())), lambda _: flow.never()
            )
        ).pipe(ops.concat_map(_itself)),
    ),
    _case(
        "window_when",
        lambda up, at: up.pipe(ops.window_when(flow.never)).pipe(ops.concat_map(_itself)),
    ),
    _case(
        "window_with_count",
        lambda up, at: up.pipe(ops.window_with_count(3)).pipe(ops.concat_map(_itself)),
    ),
    _case(
        "window_with_count, overlapping",
        lambda up, at: up.pipe(ops.window_with_count(3, 2)).pipe(ops.concat_map(_itself)),
        "uncounted",
    ),
    _case(
        "window_with_count, the first of each",
        lambda up, at: up.pipe(ops.window_with_count(2, 1)).pipe(
            ops.flat_map(lambda window: window.take(1))
        ),
    ),
    _case(
        "window_with_time",
        lambda up, at: up.pipe(ops.window_with_time(at.period_s, clock=at.clock)).pipe(
            ops.concat_map(_itself)
        ),
    ),
    _case(
        "session_window",
        lambda up, at: up.pipe(ops.session_window(at.period_s, clock=at.clock)).pipe(
            ops.concat_map(_itself)
        ),
    ),
    _case(
        "window_with_time_or_count",
        lambda up, at: up.pipe(ops.window_with_time_or_count(at.period_s, 3, clock=at.clock)).pipe(
            ops.concat_map(_itself)
        ),
    ),
    _piped("with_latest_from", lambda at: ops.with_latest_from(flow.just("x"))),
    _piped("zip_with", lambda at: ops.zip_with(flow.range(10**9))),
    _piped("zip_with, a hidden flow", lambda at: ops.zip_with(flow.range(10**9).hide())),
    # -- sources, with a flow among theirs
    _case("amb", lambda up, at: ops.amb(flow.never(), up)),
    _case("combine_latest", lambda up, at: ops.combine_latest(flow.just("x"), up)),
    _case("concat", lambda up, at: ops.concat(flow.empty(), up)),
    _case("concat, hidden flows", lambda up, at: ops.concat(flow.empty().hide(), up.hide())),
    _case(
        "fork_join",
        lambda up, at: ops.fork_join(flow.just("x"), up),
        "endless selective",
        **_ONE,
    ),
    _case("merge", lambda up, at: ops.merge(flow.empty(), up)),
    _case("merge_sequential", lambda up, at: ops.merge_sequential(flow.empty(), up)),
    _case("ordered_merge", lambda up, at: ops.ordered_merge(up.map(int), flow.empty().hide())),
    _case(
        "ordered_merge, on an executor",
        lambda up, at: ops.ordered_merge(up.map(int), flow.empty(), executor=at.executor),
        "executor",
    ),
    _case(
        "sequence_equal",
        lambda up, at: ops.sequence_equal(up.map(int), flow.range(10**9).hide()),
        "selective",
        min_items=1,
        max_items=1,
    ),
    _case("zip", lambda up, at: ops.zip(up, flow.range(10**9))),
    _case("zip, hidden flows", lambda up, at: ops.zip(up.hide(), flow.range(10**9).hide())),
)
"""Cases behind ints; see `OperatorCase`."""

WITHOUT_CASE: Final = {
    "interval": "has no upstream",
    "interval_range": "has no upstream",
    "timer": "has no upstream",
}
"""Names that are registered and have no case, with the reason."""
