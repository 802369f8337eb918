"""The records that this package registers; see `flow_core.plugins`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import flow_ops
from flow_core.plugins import (
    Backpressure,
    Kind,
    OperatorSpec,
    Placement,
    SourceSpec,
    Thread,
    hookimpl,
)
from flow_core.protocols import Fusion

__all__ = ["flow_operators", "flow_sources"]

_ALL: Final = Fusion.ANY | Fusion.THREAD_BOUNDARY
_QUEUED: Final = Fusion.ASYNC | Fusion.THREAD_BOUNDARY
_PULLED: Final = Fusion.SYNC | Fusion.THREAD_BOUNDARY
_REFUSED: Final = Placement.REFUSED
_STAGE: Final[dict[str, Any]] = {  # Any: arguments of a record
    "kind": Kind.STAGE,
    "asks": Fusion.ANY,
    "answers": Fusion.ANY,
    "conditional": True,
}


@hookimpl
def flow_operators() -> Iterator[OperatorSpec]:
    """Yield the records of the operators of this package."""
    yield _operator("amb_with", Backpressure.PASS, conditional=True, method=None)
    yield _operator("and_then", Backpressure.UNBOUNDED_IN, conditional=True)
    yield _operator(
        "batch", Backpressure.FULL, answers=_QUEUED, conditional=True, thread=Thread.CLOCK
    )
    yield _operator("buffer_boundary", Backpressure.FULL, answers=_QUEUED, placement=_REFUSED)
    yield _operator("buffer_toggle", Backpressure.FULL, answers=_QUEUED, placement=_REFUSED)
    yield _operator("buffer_when", Backpressure.FULL, answers=_QUEUED, placement=_REFUSED)
    yield _operator(
        "buffer_with_time",
        Backpressure.FULL,
        answers=_QUEUED,
        conditional=True,
        placement=_REFUSED,
        thread=Thread.CLOCK,
    )
    yield _operator(
        "buffer_with_time_or_count",
        Backpressure.FULL,
        answers=_QUEUED,
        conditional=True,
        placement=_REFUSED,
        thread=Thread.CLOCK,
    )
    yield _operator("cancel_on", Backpressure.PASS, conditional=True)
    yield _operator("concat_all", Backpressure.FULL, asks=_ALL)
    yield _operator("concat_map", Backpressure.FULL, asks=_ALL)
    yield _operator("concat_map_eager", Backpressure.FULL)
    yield _operator("concat_with", Backpressure.PASS, conditional=True, method=None)
    yield _operator("debounce", Backpressure.UNBOUNDED_IN, placement=_REFUSED, thread=Thread.CLOCK)
    yield _operator("delay", Backpressure.PASS, thread=Thread.CLOCK)
    yield _operator("delay_elements", Backpressure.FULL, asks=_ALL, thread=Thread.CLOCK)
    yield _operator("delay_subscription", Backpressure.PASS, conditional=True)
    yield _operator("delay_until", Backpressure.FULL, asks=_ALL)
    yield _operator("delay_with_mapper", Backpressure.FULL)
    yield _operator("do_concurrent", Backpressure.FULL, asks=_ALL, thread=Thread.WORKERS)
    yield _operator("exhaust_map", Backpressure.UNBOUNDED_IN, placement=_REFUSED)
    yield _operator("expand", Backpressure.FULL, conditional=True)
    yield _operator("filter_when", Backpressure.FULL, asks=_ALL)
    yield _operator("flat_map", Backpressure.FULL)
    yield _operator("group_by", Backpressure.FULL, answers=_QUEUED, conditional=True)
    yield _operator("group_by_until", Backpressure.FULL, answers=_QUEUED, conditional=True)
    yield _operator("map_concurrent", Backpressure.FULL, asks=_ALL, thread=Thread.WORKERS)
    yield _operator("map_when", Backpressure.FULL, asks=_ALL)
    yield _operator("merge_all", Backpressure.FULL)
    yield _operator("merge_with", Backpressure.FULL, placement=Placement.CLUSTER, method=None)
    yield _operator(
        "observe_on", Backpressure.FULL, asks=_ALL, answers=_QUEUED, thread=Thread.EXECUTOR
    )
    yield _operator("on_backpressure_buffer", Backpressure.UNBOUNDED_IN, answers=_QUEUED)
    yield _operator("on_backpressure_drop", Backpressure.UNBOUNDED_IN)
    yield _operator("on_backpressure_error", Backpressure.ERROR)
    yield _operator("on_backpressure_latest", Backpressure.UNBOUNDED_IN)
    yield _operator("on_backpressure_reduce", Backpressure.UNBOUNDED_IN)
    yield _operator("on_error_resume", Backpressure.PASS, conditional=True)
    yield _operator("on_processes", Backpressure.FULL, asks=_ALL, thread=Thread.WORKERS)
    yield _operator("parallel", Backpressure.FULL, asks=_ALL)
    yield _operator("rate_limit", Backpressure.FULL, asks=_ALL, thread=Thread.CLOCK)
    yield _operator("rebatch_requests", Backpressure.FULL, asks=_ALL)
    yield _operator("repeat", Backpressure.PASS, conditional=True)
    yield _operator("repeat_until", Backpressure.PASS, conditional=True)
    yield _operator("repeat_when", Backpressure.PASS, conditional=True)
    yield _operator("retry", Backpressure.PASS, conditional=True)
    yield _operator("retry_when", Backpressure.PASS, conditional=True)
    yield _operator("sample", Backpressure.UNBOUNDED_IN, placement=_REFUSED, thread=Thread.CLOCK)
    yield _operator(
        "session_buffer",
        Backpressure.FULL,
        answers=_QUEUED,
        conditional=True,
        placement=_REFUSED,
        thread=Thread.CLOCK,
    )
    yield _operator(
        "session_window", Backpressure.FULL, answers=_QUEUED, conditional=True, placement=_REFUSED
    )
    yield _operator("skip_last_with_time", Backpressure.PASS, conditional=True, placement=_REFUSED)
    yield _operator("skip_until_other", Backpressure.PASS, conditional=True, placement=_REFUSED)
    yield _operator("skip_until_with_time", Backpressure.PASS, conditional=True, placement=_REFUSED)
    yield _operator("skip_with_time", Backpressure.PASS, conditional=True, placement=_REFUSED)
    yield _operator("start_with_flows", Backpressure.PASS, conditional=True)
    yield _operator("subscribe_on", Backpressure.PASS, conditional=True, thread=Thread.UPSTREAM)
    yield _operator("switch_if_empty", Backpressure.PASS, conditional=True)
    yield _operator("switch_latest", Backpressure.UNBOUNDED_IN, placement=_REFUSED)
    yield _operator("switch_map", Backpressure.UNBOUNDED_IN, placement=_REFUSED)
    yield _operator("switch_on_first", Backpressure.PASS, placement=_REFUSED)
    yield _operator(
        "take_last_with_time", Backpressure.UNBOUNDED_IN, conditional=True, placement=_REFUSED
    )
    yield _operator("take_until_other", Backpressure.PASS, conditional=True)
    yield _operator("take_until_with_time", Backpressure.PASS, conditional=True)
    yield _operator("take_with_time", Backpressure.PASS, conditional=True)
    yield _operator("throttle_first", Backpressure.PASS, **_STAGE, placement=_REFUSED)
    yield _operator(
        "throttle_last", Backpressure.UNBOUNDED_IN, placement=_REFUSED, thread=Thread.CLOCK
    )
    yield _operator(
        "throttle_latest", Backpressure.UNBOUNDED_IN, placement=_REFUSED, thread=Thread.CLOCK
    )
    yield _operator("time_interval", Backpressure.PASS, **_STAGE, placement=_REFUSED)
    yield _operator("timeout", Backpressure.PASS, conditional=True)
    yield _operator("timestamp", Backpressure.PASS, **_STAGE, placement=Placement.CLUSTER)
    yield _operator("window_boundary", Backpressure.FULL, answers=_QUEUED, placement=_REFUSED)
    yield _operator("window_toggle", Backpressure.FULL, answers=_QUEUED, placement=_REFUSED)
    yield _operator("window_when", Backpressure.FULL, answers=_QUEUED, placement=_REFUSED)
    yield _operator(
        "window_with_count",
        Backpressure.FULL,
        answers=_QUEUED,
        conditional=True,
        placement=_REFUSED,
    )
    yield _operator(
        "window_with_time", Backpressure.FULL, answers=_QUEUED, conditional=True, placement=_REFUSED
    )
    yield _operator(
        "window_with_time_or_count",
        Backpressure.FULL,
        answers=_QUEUED,
        conditional=True,
        placement=_REFUSED,
    )
    yield _operator("with_latest_from", Backpressure.PASS, conditional=True, placement=_REFUSED)
    yield _operator(
        "zip_with", Backpressure.FULL, asks=_ALL, answers=_PULLED, placement=_REFUSED, method=None
    )


@hookimpl
def flow_sources() -> Iterator[SourceSpec]:
    """Yield the records of the sources of this package: of several flows, and of time."""
    yield _source("amb", Backpressure.PASS)
    yield _source("combine_latest", Backpressure.FULL, answers=_QUEUED)
    yield _source("concat", Backpressure.PASS)
    yield _source("fork_join", Backpressure.UNBOUNDED_IN)
    yield _source("interval", Backpressure.ERROR, method=None, thread=Thread.CLOCK)
    yield _source("interval_range", Backpressure.ERROR, method=None, thread=Thread.CLOCK)
    yield _source("merge", Backpressure.FULL)
    yield _source("merge_sequential", Backpressure.FULL)
    yield _source("ordered_merge", Backpressure.FULL)
    yield _source("sequence_equal", Backpressure.FULL)
    yield _source("timer", Backpressure.FULL, method=None, thread=Thread.CLOCK)
    yield _source("zip", Backpressure.FULL, answers=_PULLED)


def _operator(name: str, backpressure: Backpressure, **facts: Any) -> OperatorSpec:
    """Return the record of a function of this package; the method of `Flow` has its name."""
    facts = {"method": name, "backpressure": backpressure} | facts
    return OperatorSpec.of(getattr(flow_ops, name), **facts)


def _source(name: str, backpressure: Backpressure, **facts: Any) -> SourceSpec:
    """Return the record of a source function; see `_operator`."""
    facts = {"method": name, "backpressure": backpressure} | facts
    return SourceSpec.of(getattr(flow_ops, name), **facts)
