"""What this package registers; see `flow_core.plugins`."""

from __future__ import annotations

from collections.abc import Iterator

from flow_core.plugins import Backpressure, Kind, OperatorSpec, Placement, SourceSpec, hookimpl
from flow_core.protocols import Fusion

__all__ = ["flow_operators", "flow_sources"]


@hookimpl
def flow_operators() -> Iterator[OperatorSpec]:
    """The operators of this package."""
    yield OperatorSpec(
        "amb_with",
        "flow_ops.combine.amb:amb_with",
        summary="This flow or another one, whichever is the first to give an item or to end.",
        backpressure=Backpressure.PASS,
        conditional=True,
    )
    yield OperatorSpec(
        "and_then",
        "flow_ops.sequence.and_then:and_then",
        summary="Only the items of another flow, when this one has completed.",
        backpressure=Backpressure.UNBOUNDED_IN,
        conditional=True,
        method="and_then",
    )
    yield OperatorSpec(
        "batch",
        "flow_ops.group.batch:batch",
        summary="Lists of so many items, or of what comes within a time of the first.",
        backpressure=Backpressure.FULL,
        answers=Fusion.ASYNC | Fusion.THREAD_BOUNDARY,
        conditional=True,
        method="batch",
    )
    yield OperatorSpec(
        "buffer_boundary",
        "flow_ops.group.buffer:buffer_boundary",
        summary="Lists of what comes between the items of another flow.",
        backpressure=Backpressure.FULL,
        answers=Fusion.ASYNC | Fusion.THREAD_BOUNDARY,
        placement=Placement.REFUSED,
        method="buffer_boundary",
    )
    yield OperatorSpec(
        "buffer_toggle",
        "flow_ops.group.buffer:buffer_toggle",
        summary="Lists that begin with items of another flow, each with a flow that ends it.",
        backpressure=Backpressure.FULL,
        answers=Fusion.ASYNC | Fusion.THREAD_BOUNDARY,
        placement=Placement.REFUSED,
        method="buffer_toggle",
    )
    yield OperatorSpec(
        "buffer_when",
        "flow_ops.group.buffer:buffer_when",
        summary="Lists that each end with a flow of their own.",
        backpressure=Backpressure.FULL,
        answers=Fusion.ASYNC | Fusion.THREAD_BOUNDARY,
        placement=Placement.REFUSED,
        method="buffer_when",
    )
    yield OperatorSpec(
        "buffer_with_time",
        "flow_ops.group.buffer:buffer_with_time",
        summary="Lists of what comes within a length of time.",
        backpressure=Backpressure.FULL,
        answers=Fusion.ASYNC | Fusion.THREAD_BOUNDARY,
        conditional=True,
        placement=Placement.REFUSED,
        method="buffer_with_time",
    )
    yield OperatorSpec(
        "buffer_with_time_or_count",
        "flow_ops.group.buffer:buffer_with_time_or_count",
        summary="Lists of so many items, or of what has come after a while.",
        backpressure=Backpressure.FULL,
        answers=Fusion.ASYNC | Fusion.THREAD_BOUNDARY,
        conditional=True,
        placement=Placement.REFUSED,
        method="buffer_with_time_or_count",
    )
    yield OperatorSpec(
        "cancel_on",
        "flow_ops.threads.cancel_on:cancel_on",
        summary="The upstream is cancelled on an executor.",
        backpressure=Backpressure.PASS,
        conditional=True,
        method="cancel_on",
    )
    yield OperatorSpec(
        "concat_all",
        "flow_ops.transform.concat_all:concat_all",
        summary="The items of the flows that a flow gives, one flow after the other.",
        backpressure=Backpressure.FULL,
        asks=Fusion.ANY | Fusion.THREAD_BOUNDARY,
        method="concat_all",
    )
    yield OperatorSpec(
        "concat_map",
        "flow_ops.transform.concat_map:concat_map",
        summary="Each item becomes a flow; they follow one another.",
        backpressure=Backpressure.FULL,
        asks=Fusion.ANY | Fusion.THREAD_BOUNDARY,
        method="concat_map",
    )
    yield OperatorSpec(
        "concat_map_eager",
        "flow_ops.transform.concat_map_eager:concat_map_eager",
        summary="Each item becomes a flow; they run at once, and come in order.",
        backpressure=Backpressure.FULL,
        method="concat_map_eager",
    )
    yield OperatorSpec(
        "concat_with",
        "flow_ops.sequence.concat:concat_with",
        summary="The items of this flow, then those of others.",
        backpressure=Backpressure.PASS,
        conditional=True,
    )
    yield OperatorSpec(
        "debounce",
        "flow_ops.time.debounce:debounce",
        summary="Items that are not followed by another one for a while.",
        backpressure=Backpressure.UNBOUNDED_IN,
        placement=Placement.REFUSED,
        method="debounce",
    )
    yield OperatorSpec(
        "delay",
        "flow_ops.time.delay:delay",
        summary="Everything comes later.",
        backpressure=Backpressure.PASS,
        method="delay",
    )
    yield OperatorSpec(
        "delay_elements",
        "flow_ops.time.delay:delay_elements",
        summary="Each item a while after the one before it.",
        backpressure=Backpressure.FULL,
        asks=Fusion.ANY | Fusion.THREAD_BOUNDARY,
        method="delay_elements",
    )
    yield OperatorSpec(
        "delay_subscription",
        "flow_ops.time.delay:delay_subscription",
        summary="The upstream is subscribed to later.",
        backpressure=Backpressure.PASS,
        conditional=True,
        method="delay_subscription",
    )
    yield OperatorSpec(
        "delay_until",
        "flow_ops.transform.delay_until:delay_until",
        summary="Each item when a flow made of it has completed.",
        backpressure=Backpressure.FULL,
        asks=Fusion.ANY | Fusion.THREAD_BOUNDARY,
        method="delay_until",
    )
    yield OperatorSpec(
        "delay_with_mapper",
        "flow_ops.time.delay_with_mapper:delay_with_mapper",
        summary="Each item when a flow made of it gives one, or completes.",
        backpressure=Backpressure.FULL,
        method="delay_with_mapper",
    )
    yield OperatorSpec(
        "do_concurrent",
        "flow_ops.concurrency.do_concurrent:do_concurrent",
        summary="An action for each item, for many items at a time; the items go on.",
        backpressure=Backpressure.FULL,
        asks=Fusion.ANY | Fusion.THREAD_BOUNDARY,
        method="do_concurrent",
    )
    yield OperatorSpec(
        "exhaust_map",
        "flow_ops.transform.exhaust_map:exhaust_map",
        summary="A flow for each item, but for those that come while one runs: they are dropped.",
        backpressure=Backpressure.UNBOUNDED_IN,
        placement=Placement.REFUSED,
        method="exhaust_map",
    )
    yield OperatorSpec(
        "expand",
        "flow_ops.transform.expand:expand",
        summary="Each item becomes a flow, and so does each item of that: a tree, walked.",
        backpressure=Backpressure.FULL,
        conditional=True,
        method="expand",
    )
    yield OperatorSpec(
        "filter_when",
        "flow_ops.transform.filter_when:filter_when",
        summary="Items for which a flow made of them says so.",
        backpressure=Backpressure.FULL,
        asks=Fusion.ANY | Fusion.THREAD_BOUNDARY,
        method="filter_when",
    )
    yield OperatorSpec(
        "flat_map",
        "flow_ops.transform.flat_map:flat_map",
        summary="Each item becomes a flow; they run at the same time.",
        backpressure=Backpressure.FULL,
        method="flat_map",
    )
    yield OperatorSpec(
        "group_by",
        "flow_ops.group.group_by:group_by",
        summary="A flow of flows, one for each key.",
        backpressure=Backpressure.FULL,
        answers=Fusion.ASYNC | Fusion.THREAD_BOUNDARY,
        conditional=True,
        method="group_by",
    )
    yield OperatorSpec(
        "group_by_until",
        "flow_ops.group.group_by_until:group_by_until",
        summary="A flow of flows, one for each key, which end when another flow says so.",
        backpressure=Backpressure.FULL,
        answers=Fusion.ASYNC | Fusion.THREAD_BOUNDARY,
        conditional=True,
        method="group_by_until",
    )
    yield OperatorSpec(
        "map_concurrent",
        "flow_ops.concurrency.map_concurrent:map_concurrent",
        summary="A function of each item, for many items at a time: in threads, or as coroutines.",
        backpressure=Backpressure.FULL,
        asks=Fusion.ANY | Fusion.THREAD_BOUNDARY,
        method="map_concurrent",
    )
    yield OperatorSpec(
        "map_when",
        "flow_ops.transform.map_when:map_when",
        summary="The first item of a flow made of each item.",
        backpressure=Backpressure.FULL,
        asks=Fusion.ANY | Fusion.THREAD_BOUNDARY,
        method="map_when",
    )
    yield OperatorSpec(
        "merge_all",
        "flow_ops.combine.merge:merge_all",
        summary="The items of the flows that a flow gives, as they come.",
        backpressure=Backpressure.FULL,
        method="merge_all",
    )
    yield OperatorSpec(
        "merge_with",
        "flow_ops.combine.merge:merge_with",
        summary="Items of the flow and of others, as they come.",
        backpressure=Backpressure.FULL,
        placement=Placement.CLUSTER,
    )
    yield OperatorSpec(
        "observe_on",
        "flow_ops.threads.observe_on:observe_on",
        summary="Everything downstream runs on an executor, with a bounded queue in between.",
        backpressure=Backpressure.FULL,
        asks=Fusion.ANY | Fusion.THREAD_BOUNDARY,
        answers=Fusion.ASYNC | Fusion.THREAD_BOUNDARY,
        method="observe_on",
    )
    yield OperatorSpec(
        "on_backpressure_buffer",
        "flow_ops.demand.on_backpressure_buffer:on_backpressure_buffer",
        summary="Items that nobody has requested wait, up to a capacity.",
        backpressure=Backpressure.UNBOUNDED_IN,
        answers=Fusion.ASYNC | Fusion.THREAD_BOUNDARY,
        method="on_backpressure_buffer",
    )
    yield OperatorSpec(
        "on_backpressure_drop",
        "flow_ops.demand.on_backpressure_drop:on_backpressure_drop",
        summary="Items that nobody has requested are dropped.",
        backpressure=Backpressure.UNBOUNDED_IN,
        method="on_backpressure_drop",
    )
    yield OperatorSpec(
        "on_backpressure_error",
        "flow_ops.demand.on_backpressure_error:on_backpressure_error",
        summary="An item that nobody has requested fails the flow.",
        backpressure=Backpressure.ERROR,
        method="on_backpressure_error",
    )
    yield OperatorSpec(
        "on_backpressure_latest",
        "flow_ops.demand.on_backpressure_latest:on_backpressure_latest",
        summary="Of items that nobody has requested, the last one waits.",
        backpressure=Backpressure.UNBOUNDED_IN,
        method="on_backpressure_latest",
    )
    yield OperatorSpec(
        "on_backpressure_reduce",
        "flow_ops.demand.on_backpressure_reduce:on_backpressure_reduce",
        summary="Items that nobody has requested are made one.",
        backpressure=Backpressure.UNBOUNDED_IN,
        method="on_backpressure_reduce",
    )
    yield OperatorSpec(
        "on_error_resume",
        "flow_ops.sequence.on_error_resume:on_error_resume",
        summary="Another flow goes on where this one has failed.",
        backpressure=Backpressure.PASS,
        conditional=True,
        method="on_error_resume",
    )
    yield OperatorSpec(
        "on_processes",
        "flow_ops.threads.on_processes:on_processes",
        summary="The stages that follow run in the processes of a pool.",
        backpressure=Backpressure.FULL,
        asks=Fusion.ANY | Fusion.THREAD_BOUNDARY,
        method="on_processes",
    )
    yield OperatorSpec(
        "parallel",
        "flow_ops.parallel.parallel:parallel",
        summary="The items are dealt out to rails that may run at the same time.",
        backpressure=Backpressure.FULL,
        asks=Fusion.ANY | Fusion.THREAD_BOUNDARY,
        method="parallel",
    )
    yield OperatorSpec(
        "rate_limit",
        "flow_ops.time.rate_limit:rate_limit",
        summary="No more than so many items in a length of time; the others wait.",
        backpressure=Backpressure.FULL,
        asks=Fusion.ANY | Fusion.THREAD_BOUNDARY,
        method="rate_limit",
    )
    yield OperatorSpec(
        "rebatch_requests",
        "flow_ops.demand.rebatch_requests:rebatch_requests",
        summary="The upstream is asked for batches of a fixed size.",
        backpressure=Backpressure.FULL,
        asks=Fusion.ANY | Fusion.THREAD_BOUNDARY,
        method="rebatch_requests",
    )
    yield OperatorSpec(
        "repeat",
        "flow_ops.sequence.repeat:repeat",
        summary="The flow several times, or for ever.",
        backpressure=Backpressure.PASS,
        conditional=True,
        method="repeat",
    )
    yield OperatorSpec(
        "repeat_until",
        "flow_ops.sequence.repeat:repeat_until",
        summary="The flow again, until a function says stop.",
        backpressure=Backpressure.PASS,
        conditional=True,
        method="repeat_until",
    )
    yield OperatorSpec(
        "repeat_when",
        "flow_ops.sequence.repeat:repeat_when",
        summary="The flow again, whenever another flow says so.",
        backpressure=Backpressure.PASS,
        conditional=True,
        method="repeat_when",
    )
    yield OperatorSpec(
        "retry",
        "flow_ops.sequence.retry:retry",
        summary="The flow again when it has failed.",
        backpressure=Backpressure.PASS,
        conditional=True,
        method="retry",
    )
    yield OperatorSpec(
        "retry_when",
        "flow_ops.sequence.retry:retry_when",
        summary="The flow again when it has failed, later or when another flow says so.",
        backpressure=Backpressure.PASS,
        conditional=True,
        method="retry_when",
    )
    yield OperatorSpec(
        "sample",
        "flow_ops.time.sample:sample",
        summary="The newest item of each period, or when a flow says so.",
        backpressure=Backpressure.UNBOUNDED_IN,
        placement=Placement.REFUSED,
        method="sample",
    )
    yield OperatorSpec(
        "session_buffer",
        "flow_ops.group.session:session_buffer",
        summary="Lists of items with no long pause between them.",
        backpressure=Backpressure.FULL,
        answers=Fusion.ASYNC | Fusion.THREAD_BOUNDARY,
        conditional=True,
        placement=Placement.REFUSED,
        method="session_buffer",
    )
    yield OperatorSpec(
        "session_window",
        "flow_ops.group.session:session_window",
        summary="Flows of items with no long pause between them.",
        backpressure=Backpressure.FULL,
        answers=Fusion.ASYNC | Fusion.THREAD_BOUNDARY,
        conditional=True,
        placement=Placement.REFUSED,
        method="session_window",
    )
    yield OperatorSpec(
        "skip_last_with_time",
        "flow_ops.time.skip:skip_last_with_time",
        summary="All items but those of a length of time before the end.",
        backpressure=Backpressure.PASS,
        conditional=True,
        placement=Placement.REFUSED,
        method="skip_last_with_time",
    )
    yield OperatorSpec(
        "skip_until_other",
        "flow_ops.combine.skip_until_other:skip_until_other",
        summary="Items from when another flow gives its first one.",
        backpressure=Backpressure.PASS,
        conditional=True,
        placement=Placement.REFUSED,
        method="skip_until_other",
    )
    yield OperatorSpec(
        "skip_until_with_time",
        "flow_ops.time.skip:skip_until_with_time",
        summary="Items from a time on.",
        backpressure=Backpressure.PASS,
        conditional=True,
        placement=Placement.REFUSED,
        method="skip_until_with_time",
    )
    yield OperatorSpec(
        "skip_with_time",
        "flow_ops.time.skip:skip_with_time",
        summary="Items after a length of time.",
        backpressure=Backpressure.PASS,
        conditional=True,
        placement=Placement.REFUSED,
        method="skip_with_time",
    )
    yield OperatorSpec(
        "start_with_flows",
        "flow_ops.sequence.start_with_flows:start_with_flows",
        summary="The items of others, then those of this flow.",
        backpressure=Backpressure.PASS,
        conditional=True,
        method="start_with_flows",
    )
    yield OperatorSpec(
        "subscribe_on",
        "flow_ops.threads.subscribe_on:subscribe_on",
        summary="The upstream is subscribed to, and requested, on an executor.",
        backpressure=Backpressure.PASS,
        conditional=True,
        method="subscribe_on",
    )
    yield OperatorSpec(
        "switch_if_empty",
        "flow_ops.sequence.switch_if_empty:switch_if_empty",
        summary="Another flow in the place of one without items.",
        backpressure=Backpressure.PASS,
        conditional=True,
        method="switch_if_empty",
    )
    yield OperatorSpec(
        "switch_latest",
        "flow_ops.transform.switch_latest:switch_latest",
        summary="Each flow that comes takes the place of the one before.",
        backpressure=Backpressure.UNBOUNDED_IN,
        placement=Placement.REFUSED,
        method="switch_latest",
    )
    yield OperatorSpec(
        "switch_map",
        "flow_ops.transform.switch_map:switch_map",
        summary="Each item becomes a flow, which takes the place of the one before.",
        backpressure=Backpressure.UNBOUNDED_IN,
        placement=Placement.REFUSED,
        method="switch_map",
    )
    yield OperatorSpec(
        "switch_on_first",
        "flow_ops.transform.switch_on_first:switch_on_first",
        summary="The first signal decides what becomes of the whole flow.",
        backpressure=Backpressure.PASS,
        placement=Placement.REFUSED,
        method="switch_on_first",
    )
    yield OperatorSpec(
        "take_last_with_time",
        "flow_ops.time.take:take_last_with_time",
        summary="Items of a length of time before the end.",
        backpressure=Backpressure.UNBOUNDED_IN,
        conditional=True,
        placement=Placement.REFUSED,
        method="take_last_with_time",
    )
    yield OperatorSpec(
        "take_until_other",
        "flow_ops.combine.take_until_other:take_until_other",
        summary="Items until another flow gives one, or completes.",
        backpressure=Backpressure.PASS,
        conditional=True,
        method="take_until_other",
    )
    yield OperatorSpec(
        "take_until_with_time",
        "flow_ops.time.take:take_until_with_time",
        summary="Items up to a time.",
        backpressure=Backpressure.PASS,
        conditional=True,
        method="take_until_with_time",
    )
    yield OperatorSpec(
        "take_with_time",
        "flow_ops.time.take:take_with_time",
        summary="Items of a length of time; then it completes.",
        backpressure=Backpressure.PASS,
        conditional=True,
        method="take_with_time",
    )
    yield OperatorSpec(
        "throttle_first",
        "flow_ops.time.throttle:throttle_first",
        summary="An item, and then none for a while.",
        kind=Kind.STAGE,
        backpressure=Backpressure.PASS,
        asks=Fusion.ANY,
        answers=Fusion.ANY,
        conditional=True,
        placement=Placement.REFUSED,
        method="throttle_first",
    )
    yield OperatorSpec(
        "throttle_last",
        "flow_ops.time.throttle:throttle_last",
        summary="The newest item of each period; another name of sample.",
        backpressure=Backpressure.UNBOUNDED_IN,
        placement=Placement.REFUSED,
        method="throttle_last",
    )
    yield OperatorSpec(
        "throttle_latest",
        "flow_ops.time.throttle:throttle_latest",
        summary="An item at once, and then the newest of each period.",
        backpressure=Backpressure.UNBOUNDED_IN,
        placement=Placement.REFUSED,
        method="throttle_latest",
    )
    yield OperatorSpec(
        "time_interval",
        "flow_ops.time.time_interval:time_interval",
        summary="Each item with the time since the one before it.",
        kind=Kind.STAGE,
        backpressure=Backpressure.PASS,
        asks=Fusion.ANY,
        answers=Fusion.ANY,
        conditional=True,
        placement=Placement.REFUSED,
        method="time_interval",
    )
    yield OperatorSpec(
        "timeout",
        "flow_ops.time.timeout:timeout",
        summary="Fails, or goes on with another flow, when an item is late.",
        backpressure=Backpressure.PASS,
        conditional=True,
        method="timeout",
    )
    yield OperatorSpec(
        "timestamp",
        "flow_ops.time.timestamp:timestamp",
        summary="Each item with the time at which it came.",
        kind=Kind.STAGE,
        backpressure=Backpressure.PASS,
        asks=Fusion.ANY,
        answers=Fusion.ANY,
        conditional=True,
        placement=Placement.CLUSTER,
        method="timestamp",
    )
    yield OperatorSpec(
        "window_boundary",
        "flow_ops.group.window:window_boundary",
        summary="Flows of what comes between the items of another flow.",
        backpressure=Backpressure.FULL,
        answers=Fusion.ASYNC | Fusion.THREAD_BOUNDARY,
        placement=Placement.REFUSED,
        method="window_boundary",
    )
    yield OperatorSpec(
        "window_toggle",
        "flow_ops.group.window:window_toggle",
        summary="Flows that begin with items of another flow, each with a flow that ends it.",
        backpressure=Backpressure.FULL,
        answers=Fusion.ASYNC | Fusion.THREAD_BOUNDARY,
        placement=Placement.REFUSED,
        method="window_toggle",
    )
    yield OperatorSpec(
        "window_when",
        "flow_ops.group.window:window_when",
        summary="Flows that each end with a flow of their own.",
        backpressure=Backpressure.FULL,
        answers=Fusion.ASYNC | Fusion.THREAD_BOUNDARY,
        placement=Placement.REFUSED,
        method="window_when",
    )
    yield OperatorSpec(
        "window_with_count",
        "flow_ops.group.window:window_with_count",
        summary="Flows of so many items each.",
        backpressure=Backpressure.FULL,
        answers=Fusion.ASYNC | Fusion.THREAD_BOUNDARY,
        conditional=True,
        placement=Placement.REFUSED,
        method="window_with_count",
    )
    yield OperatorSpec(
        "window_with_time",
        "flow_ops.group.window:window_with_time",
        summary="Flows of what comes within a length of time.",
        backpressure=Backpressure.FULL,
        answers=Fusion.ASYNC | Fusion.THREAD_BOUNDARY,
        conditional=True,
        placement=Placement.REFUSED,
        method="window_with_time",
    )
    yield OperatorSpec(
        "window_with_time_or_count",
        "flow_ops.group.window:window_with_time_or_count",
        summary="Flows that end after so many items, or after a while.",
        backpressure=Backpressure.FULL,
        answers=Fusion.ASYNC | Fusion.THREAD_BOUNDARY,
        conditional=True,
        placement=Placement.REFUSED,
        method="window_with_time_or_count",
    )
    yield OperatorSpec(
        "with_latest_from",
        "flow_ops.combine.with_latest_from:with_latest_from",
        summary="Each item with the latest ones of other flows.",
        backpressure=Backpressure.PASS,
        conditional=True,
        placement=Placement.REFUSED,
        method="with_latest_from",
    )
    yield OperatorSpec(
        "zip_with",
        "flow_ops.combine.zip:zip_with",
        summary="Each item with the one of another flow that has the same place.",
        backpressure=Backpressure.FULL,
        asks=Fusion.ANY | Fusion.THREAD_BOUNDARY,
        answers=Fusion.SYNC | Fusion.THREAD_BOUNDARY,
        placement=Placement.REFUSED,
    )


@hookimpl
def flow_sources() -> Iterator[SourceSpec]:
    """The sources of this package."""
    yield SourceSpec(
        "amb",
        "flow_ops.combine.amb:amb",
        summary="The first of several flows to give an item or to end.",
        backpressure=Backpressure.PASS,
        method="amb",
    )
    yield SourceSpec(
        "combine_latest",
        "flow_ops.combine.combine_latest:combine_latest",
        summary="The latest items of several flows, whenever one has another.",
        backpressure=Backpressure.FULL,
        answers=Fusion.ASYNC | Fusion.THREAD_BOUNDARY,
        method="combine_latest",
    )
    yield SourceSpec(
        "concat",
        "flow_ops.sequence.concat:concat",
        summary="The items of several flows, one flow after the other.",
        backpressure=Backpressure.PASS,
        method="concat",
    )
    yield SourceSpec(
        "fork_join",
        "flow_ops.combine.fork_join:fork_join",
        summary="The last items of several flows, when all have completed.",
        backpressure=Backpressure.UNBOUNDED_IN,
        method="fork_join",
    )
    yield SourceSpec(
        "interval",
        "flow_ops.time.interval:interval",
        summary="0, 1, 2 and so on, one each period.",
        backpressure=Backpressure.ERROR,
    )
    yield SourceSpec(
        "interval_range",
        "flow_ops.time.interval:interval_range",
        summary="Some ints, one each period.",
        backpressure=Backpressure.ERROR,
    )
    yield SourceSpec(
        "merge",
        "flow_ops.combine.merge:merge",
        summary="The items of several flows, as they come.",
        backpressure=Backpressure.FULL,
        method="merge",
    )
    yield SourceSpec(
        "merge_sequential",
        "flow_ops.combine.merge:merge_sequential",
        summary="The items of several flows that run at once, one after the other.",
        backpressure=Backpressure.FULL,
        method="merge_sequential",
    )
    yield SourceSpec(
        "ordered_merge",
        "flow_ops.combine.ordered_merge:ordered_merge",
        summary="The items of several sorted flows, in order.",
        backpressure=Backpressure.FULL,
        method="ordered_merge",
    )
    yield SourceSpec(
        "sequence_equal",
        "flow_ops.combine.sequence_equal:sequence_equal",
        summary="Whether two flows give the same items.",
        backpressure=Backpressure.FULL,
        method="sequence_equal",
    )
    yield SourceSpec(
        "timer",
        "flow_ops.time.timer:timer",
        summary="0, after a while.",
        backpressure=Backpressure.FULL,
    )
    yield SourceSpec(
        "zip",
        "flow_ops.combine.zip:zip",
        summary="The items of several flows that have the same place.",
        backpressure=Backpressure.FULL,
        answers=Fusion.SYNC | Fusion.THREAD_BOUNDARY,
        method="zip",
    )
