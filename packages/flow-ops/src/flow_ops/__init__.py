"""Flow operators that cross threads, time or several sources.

By theme: `transform` (items become flows), `combine` (several flows), `sequence` (one after
another, again, on error), `group` (parts of a flow), `time`, `demand` (back-pressure), `threads`,
`parallel`, `coroutines`. Your own operators can build on `coordination` (one permit, several
inputs) and `arbiters` (a source that changes).

Each operator is a method of `flow_core.Flow`:

>>> from concurrent.futures import ThreadPoolExecutor
>>> import flow_core as flow
>>> with ThreadPoolExecutor(1) as pool:
...     print(list(flow.range(3).map(str).observe_on(pool)))
['0', '1', '2']
"""

from typing import TYPE_CHECKING

from flow_core.backoff import Backoff, RetryExhaustedError
from flow_core.errors import no_such_name
from flow_core.results import FailureHandling, GroupedFlow, TimeInterval, Timestamped
from flow_ops.arbiters import ProducerArbiter, SubscriptionArbiter, SwitchArbiter
from flow_ops.combine.amb import amb, amb_with
from flow_ops.combine.combine_latest import combine_latest
from flow_ops.combine.fork_join import fork_join
from flow_ops.combine.merge import merge, merge_all, merge_sequential, merge_with
from flow_ops.combine.ordered_merge import ordered_merge
from flow_ops.combine.sequence_equal import sequence_equal
from flow_ops.combine.skip_until_other import skip_until_other
from flow_ops.combine.take_until_other import take_until_other
from flow_ops.combine.with_latest_from import with_latest_from
from flow_ops.combine.zip import zip, zip_with
from flow_ops.concurrency.do_concurrent import do_concurrent
from flow_ops.concurrency.map_concurrent import map_concurrent
from flow_ops.demand.on_backpressure_buffer import on_backpressure_buffer
from flow_ops.demand.on_backpressure_drop import on_backpressure_drop
from flow_ops.demand.on_backpressure_error import on_backpressure_error
from flow_ops.demand.on_backpressure_latest import on_backpressure_latest
from flow_ops.demand.on_backpressure_reduce import on_backpressure_reduce
from flow_ops.demand.rebatch_requests import rebatch_requests
from flow_ops.group.batch import batch
from flow_ops.group.buffer import (
    buffer_boundary,
    buffer_toggle,
    buffer_when,
    buffer_with_time,
    buffer_with_time_or_count,
)
from flow_ops.group.group_by import group_by
from flow_ops.group.group_by_until import group_by_until
from flow_ops.group.session import session_buffer, session_window
from flow_ops.group.window import (
    window_boundary,
    window_toggle,
    window_when,
    window_with_count,
    window_with_time,
    window_with_time_or_count,
)
from flow_ops.parallel.parallel import ParallelFlow, parallel
from flow_ops.sequence.and_then import and_then
from flow_ops.sequence.concat import concat, concat_with
from flow_ops.sequence.on_error_resume import on_error_resume
from flow_ops.sequence.repeat import repeat, repeat_until, repeat_when
from flow_ops.sequence.retry import retry, retry_when
from flow_ops.sequence.start_with_flows import start_with_flows
from flow_ops.sequence.switch_if_empty import switch_if_empty
from flow_ops.threads.cancel_on import cancel_on
from flow_ops.threads.observe_on import observe_on
from flow_ops.threads.on_processes import on_processes
from flow_ops.threads.subscribe_on import subscribe_on
from flow_ops.time.debounce import debounce
from flow_ops.time.delay import delay, delay_elements, delay_subscription
from flow_ops.time.delay_with_mapper import delay_with_mapper
from flow_ops.time.interval import interval, interval_range
from flow_ops.time.rate_limit import rate_limit
from flow_ops.time.sample import sample
from flow_ops.time.skip import skip_last_with_time, skip_until_with_time, skip_with_time
from flow_ops.time.take import take_last_with_time, take_until_with_time, take_with_time
from flow_ops.time.throttle import throttle_first, throttle_last, throttle_latest
from flow_ops.time.time_interval import time_interval
from flow_ops.time.timeout import timeout
from flow_ops.time.timer import timer
from flow_ops.time.timestamp import timestamp
from flow_ops.transform.concat_all import concat_all
from flow_ops.transform.concat_map import concat_map
from flow_ops.transform.concat_map_eager import concat_map_eager
from flow_ops.transform.delay_until import delay_until
from flow_ops.transform.exhaust_map import exhaust_map
from flow_ops.transform.expand import expand
from flow_ops.transform.filter_when import filter_when
from flow_ops.transform.flat_map import flat_map
from flow_ops.transform.map_when import map_when
from flow_ops.transform.switch_latest import switch_latest
from flow_ops.transform.switch_map import switch_map
from flow_ops.transform.switch_on_first import switch_on_first

__all__ = [
    "Backoff",
    "FailureHandling",
    "GroupedFlow",
    "ParallelFlow",
    "ProducerArbiter",
    "RetryExhaustedError",
    "SubscriptionArbiter",
    "SwitchArbiter",
    "TimeInterval",
    "Timestamped",
    "amb",
    "amb_with",
    "and_then",
    "batch",
    "buffer_boundary",
    "buffer_toggle",
    "buffer_when",
    "buffer_with_time",
    "buffer_with_time_or_count",
    "cancel_on",
    "combine_latest",
    "concat",
    "concat_all",
    "concat_map",
    "concat_map_eager",
    "concat_with",
    "debounce",
    "delay",
    "delay_elements",
    "delay_subscription",
    "delay_until",
    "delay_with_mapper",
    "do_concurrent",
    "exhaust_map",
    "expand",
    "filter_when",
    "flat_map",
    "fork_join",
    "group_by",
    "group_by_until",
    "interval",
    "interval_range",
    "map_concurrent",
    "map_when",
    "merge",
    "merge_all",
    "merge_sequential",
    "merge_with",
    "observe_on",
    "on_backpressure_buffer",
    "on_backpressure_drop",
    "on_backpressure_error",
    "on_backpressure_latest",
    "on_backpressure_reduce",
    "on_error_resume",
    "on_processes",
    "ordered_merge",
    "parallel",
    "rate_limit",
    "rebatch_requests",
    "repeat",
    "repeat_until",
    "repeat_when",
    "retry",
    "retry_when",
    "sample",
    "sequence_equal",
    "session_buffer",
    "session_window",
    "skip_last_with_time",
    "skip_until_other",
    "skip_until_with_time",
    "skip_with_time",
    "start_with_flows",
    "subscribe_on",
    "switch_if_empty",
    "switch_latest",
    "switch_map",
    "switch_on_first",
    "take_last_with_time",
    "take_until_other",
    "take_until_with_time",
    "take_with_time",
    "throttle_first",
    "throttle_last",
    "throttle_latest",
    "time_interval",
    "timeout",
    "timer",
    "timestamp",
    "window_boundary",
    "window_toggle",
    "window_when",
    "window_with_count",
    "window_with_time",
    "window_with_time_or_count",
    "with_latest_from",
    "zip",
    "zip_with",
]

if not TYPE_CHECKING:  # for type checkers, any name would be an attribute then

    def __getattr__(name: str) -> object:
        no_such_name(__name__, name)
