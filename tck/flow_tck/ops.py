"""How to get n items out of what flow-ops registers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, final

import flow_core as flow
import flow_ops as ops
from flow_core import Flow
from flow_core.clocks import Clock
from flow_core.protocols import Disposable
from flow_core.testing import VirtualClock
from flow_tck.threads import event_loop, pool

__all__ = ["EXEMPT", "OPERATORS", "SOURCES"]

# Any: of all types of items.
AnyFlow = Flow[Any]


@final
class _Hasty(Clock):
    """A clock whose time has passed whenever somebody looks, and whenever somebody waits."""

    def __init__(self) -> None:
        self._passed_s = 0.0

    def now(self) -> float:
        self._passed_s += 2
        return self._passed_s

    def schedule(self, delay_s: float, task: Callable[[], object], /) -> Disposable:
        self._passed_s += delay_s
        task()
        return VirtualClock().schedule(0, task)

    def schedule_periodically(
        self, delay_s: float, period_s: float, task: Callable[[], object], /
    ) -> Disposable:
        raise NotImplementedError("nothing periodic runs in haste")


_HASTY: Final = _Hasty()
_STILL: Final = VirtualClock()
"""Its time never passes."""

_LONG_S: Final = 1e9


def _itself(made: Any) -> Any:
    return made


async def _later(item: Any) -> Any:
    return item


_Apply = Callable[[AnyFlow, int], AnyFlow]

OPERATORS: Final[Mapping[str, tuple[_Apply, int | None]]] = {
    "amb_with": (lambda f, _: f.pipe(ops.amb_with(flow.never())), None),
    "and_then": (lambda f, _: flow.empty().pipe(ops.and_then(f)), None),
    "buffer_boundary": (lambda f, _: f.pipe(ops.buffer_boundary(flow.never())), 1),
    "buffer_toggle": (
        lambda f, _: f.pipe(ops.buffer_toggle(flow.just(0), lambda _: flow.never())),
        1,
    ),
    "buffer_when": (lambda f, _: f.pipe(ops.buffer_when(flow.never)), 1),
    "buffer_with_time": (lambda f, _: f.pipe(ops.buffer_with_time(_LONG_S, clock=_STILL)), 1),
    "buffer_with_time_or_count": (
        lambda f, _: f.pipe(ops.buffer_with_time_or_count(_LONG_S, 1, clock=_STILL)),
        None,
    ),
    "cancel_on": (lambda f, _: f.pipe(ops.cancel_on(pool())), None),
    "concat_map_eager": (lambda f, _: f.pipe(ops.concat_map_eager(flow.just)), None),
    "concat_with": (lambda f, _: f.pipe(ops.concat_with(flow.empty())), None),
    "debounce": (lambda f, _: f.pipe(ops.debounce(_LONG_S, clock=_STILL)), 1),
    "delay": (lambda f, _: f.pipe(ops.delay(0.001)), None),
    "delay_elements": (lambda f, _: f.pipe(ops.delay_elements(0.001)), None),
    "delay_subscription": (lambda f, _: f.pipe(ops.delay_subscription(0.001)), None),
    "delay_until": (lambda f, _: f.pipe(ops.delay_until(lambda _: flow.empty())), None),
    "delay_with_mapper": (
        lambda f, _: f.pipe(ops.delay_with_mapper(lambda _: flow.just(0))),
        None,
    ),
    "expand": (lambda f, _: f.pipe(ops.expand(lambda _: flow.empty())), None),
    "filter_when": (lambda f, _: f.pipe(ops.filter_when(lambda _: flow.just(True))), None),
    "flat_map": (lambda f, _: f.pipe(ops.flat_map(lambda n: flow.just(n).hide())), None),
    "group_by": (
        lambda f, _: f.pipe(ops.group_by(lambda n: n % 3)).pipe(ops.flat_map(_itself)),
        None,
    ),
    "map_async": (lambda f, _: f.pipe(ops.map_async(_later, loop=event_loop())), None),
    "map_when": (lambda f, _: f.pipe(ops.map_when(flow.just)), None),
    "merge_all": (lambda f, _: flow.just(f).pipe(ops.merge_all()), None),
    "merge_with": (lambda f, _: f.pipe(ops.merge_with(flow.empty())), None),
    "on_backpressure_buffer": (
        lambda f, n: f.pipe(ops.on_backpressure_buffer(n or 1)),
        None,
    ),
    "on_backpressure_latest": (lambda f, _: f.pipe(ops.on_backpressure_latest()), 1),
    "on_backpressure_reduce": (
        lambda f, _: f.pipe(ops.on_backpressure_reduce(lambda _, n: n)),
        1,
    ),
    "on_error_resume": (lambda f, _: f.pipe(ops.on_error_resume(flow.empty(), KeyError)), None),
    "on_processes": (lambda f, _: f.map(int).pipe(ops.on_processes(pool())).map(int), None),
    # One rail: of several the kit would compare an order that they do not promise.
    "parallel": (lambda f, _: f.pipe(ops.parallel(1)).run_on(pool()).sequential(), None),
    "rebatch_requests": (lambda f, _: f.pipe(ops.rebatch_requests(4)), None),
    "repeat": (lambda f, _: f.pipe(ops.repeat(1)), None),
    "repeat_until": (lambda f, _: f.pipe(ops.repeat_until(lambda: True)), None),
    "repeat_when": (lambda f, _: f.pipe(ops.repeat_when(lambda runs: runs.take(1))), None),
    "retry": (lambda f, _: f.pipe(ops.retry(3, when=KeyError)), None),
    "retry_when": (lambda f, _: f.pipe(ops.retry_when(ops.Backoff(1, when=KeyError))), None),
    "sample": (lambda f, _: f.pipe(ops.sample(flow.never(), emit_last=True)), 1),
    "skip_last_with_time": (
        lambda f, _: f.pipe(ops.skip_last_with_time(0, clock=_STILL)),
        None,
    ),
    "skip_until_other": (lambda f, _: f.pipe(ops.skip_until_other(flow.just(0))), None),
    "skip_until_with_time": (
        lambda f, _: f.pipe(ops.skip_until_with_time(1, clock=_HASTY)),
        None,
    ),
    "skip_with_time": (lambda f, _: f.pipe(ops.skip_with_time(1, clock=_HASTY)), None),
    "start_with_flows": (lambda f, _: f.pipe(ops.start_with_flows(flow.empty())), None),
    "subscribe_on": (lambda f, _: f.pipe(ops.subscribe_on(pool())), None),
    "switch_if_empty": (lambda f, _: flow.empty().pipe(ops.switch_if_empty(f)), None),
    "switch_latest": (lambda f, _: flow.just(f).pipe(ops.switch_latest()), None),
    "switch_map": (lambda f, _: flow.just(0).pipe(ops.switch_map(lambda _: f)), None),
    "switch_on_first": (lambda f, _: f.pipe(ops.switch_on_first(lambda _, rest: rest)), None),
    "take_last_with_time": (
        lambda f, _: f.pipe(ops.take_last_with_time(_LONG_S, clock=_STILL)),
        None,
    ),
    "take_until_other": (lambda f, _: f.pipe(ops.take_until_other(flow.never())), None),
    "take_until_with_time": (
        lambda f, _: f.pipe(ops.take_until_with_time(_LONG_S, clock=_STILL)),
        None,
    ),
    "take_with_time": (lambda f, _: f.pipe(ops.take_with_time(_LONG_S, clock=_STILL)), None),
    "throttle_first": (lambda f, _: f.pipe(ops.throttle_first(1, clock=_HASTY)), None),
    "throttle_last": (lambda f, _: f.pipe(ops.throttle_last(flow.never(), emit_last=True)), 1),
    "throttle_latest": (
        lambda f, _: f.pipe(ops.throttle_latest(_LONG_S, emit_last=True, clock=_STILL)),
        1,
    ),
    "time_interval": (lambda f, _: f.pipe(ops.time_interval(clock=_STILL)), None),
    "timeout": (lambda f, _: f.pipe(ops.timeout(60)), None),
    "timestamp": (lambda f, _: f.pipe(ops.timestamp(clock=_STILL)), None),
    "window_boundary": (
        lambda f, _: f.pipe(ops.window_boundary(flow.never())).pipe(ops.concat_map(_itself)),
        None,
    ),
    "window_toggle": (
        lambda f, _: f.pipe(ops.window_toggle(flow.just(0), lambda _: flow.never())).pipe(
            ops.concat_map(_itself)
        ),
        None,
    ),
    "window_when": (
        lambda f, _: f.pipe(ops.window_when(flow.never)).pipe(ops.concat_map(_itself)),
        None,
    ),
    "window_with_count": (
        lambda f, _: f.pipe(ops.window_with_count(3)).pipe(ops.concat_map(_itself)),
        None,
    ),
    "window_with_time": (
        lambda f, _: f.pipe(ops.window_with_time(_LONG_S, clock=_STILL)).pipe(
            ops.concat_map(_itself)
        ),
        None,
    ),
    "window_with_time_or_count": (
        lambda f, _: f.pipe(ops.window_with_time_or_count(_LONG_S, 3, clock=_STILL)).pipe(
            ops.concat_map(_itself)
        ),
        None,
    ),
    "with_latest_from": (lambda f, _: f.pipe(ops.with_latest_from(flow.just(0))), None),
    "zip_with": (lambda f, _: f.pipe(ops.zip_with(flow.range(2**62).hide())), None),
}
"""Operators by their registered names: how to put each behind ints, and the most items it gives."""

_Make = Callable[[int], AnyFlow]
_Fail = Callable[[AnyFlow], AnyFlow]


def _one_at_most(source: AnyFlow, n: int) -> AnyFlow:
    return source if n else flow.empty()


SOURCES: Final[Mapping[str, tuple[_Make, _Fail | None, int | None]]] = {
    "amb": (lambda n: ops.amb(flow.never(), flow.range(n)), ops.amb, None),
    "combine_latest": (
        lambda n: ops.combine_latest(flow.just(0), flow.range(n)),
        lambda failing: ops.combine_latest(flow.never(), failing),
        None,
    ),
    "concat": (
        lambda n: ops.concat(flow.range(n // 2), flow.range(n // 2, n)),
        lambda failing: ops.concat(flow.empty(), failing),
        None,
    ),
    "fork_join": (
        lambda n: ops.fork_join(flow.just(0), flow.range(n)),
        lambda failing: ops.fork_join(flow.never(), failing),
        1,
    ),
    "interval": (lambda n: ops.interval(0.001, overflow="buffer").take(n), None, None),
    "interval_range": (
        lambda n: ops.interval_range(0, n, 0.001, overflow="buffer"),
        None,
        None,
    ),
    "merge": (
        # From one thread: each of several subscribers has to see the same order.
        lambda n: ops.merge(flow.range(n // 2), flow.range(n // 2, n).hide()),
        lambda failing: ops.merge(flow.never(), failing),
        None,
    ),
    "merge_sequential": (
        lambda n: ops.merge_sequential(flow.range(n // 2), flow.range(n // 2, n).hide()),
        lambda failing: ops.merge_sequential(flow.never(), failing),
        None,
    ),
    "ordered_merge": (
        lambda n: ops.ordered_merge(flow.range(0, n, 2), flow.range(1, n, 2).hide()),
        lambda failing: ops.ordered_merge(flow.never(), failing),
        None,
    ),
    "sequence_equal": (
        lambda n: _one_at_most(ops.sequence_equal(flow.range(9), flow.range(9).hide()), n),
        lambda failing: ops.sequence_equal(flow.never(), failing),
        1,
    ),
    "timer": (lambda n: _one_at_most(ops.timer(0.001), n), None, 1),
    "zip": (
        lambda n: ops.zip(flow.range(n), flow.range(n).hide()),
        lambda failing: ops.zip(flow.never(), failing),
        None,
    ),
}
"""Sources by their registered names: of n items, one that fails, and the most items it gives."""

EXEMPT: Final[Mapping[str, str]] = {
    "on_backpressure_drop": "what comes without demand is gone, so that no number is sure",
    "on_backpressure_error": "what comes without demand ends it, so that no number is sure",
}
"""What cannot be asked for n items, with the reason."""
