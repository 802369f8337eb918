"""The subjects that RxJava tries its kit of rules on, and what they are called here."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import flow_core
from flow_core import Flow
from flow_core.plugins import _builtin
from flow_ops import _plugin

SUBJECTS = {
    "All": "all",
    "AmbArray": "amb",
    "Amb": "amb",
    "Any": "some",
    "BufferBoundary": "buffer_boundary",
    "BufferExactSize": "buffer_with_count",
    "Collect": "collect",
    "CombineLatestArrayDelayError": "combine_latest",
    "CombineLatestArray": "combine_latest",
    "CombineLatestIterableDelayError": "combine_latest",
    "CombineLatestIterable": "combine_latest",
    "ConcatArrayEager": "merge_sequential",
    "ConcatIterableEager": "merge_sequential",
    "ConcatMapIterable": "flat_map_iterable",
    "ConcatMap": "concat_map",
    "ConcatPublisherEager": "concat_map_eager",
    "ConcatPublisher": "concat_map",
    "Concat": "concat",
    "Create": "create",
    "DefaultIfEmpty": "default_if_empty",
    "Defer": "defer",
    "DelaySubscription": "delay_subscription",
    "Delay": "delay",
    "Distinct": "distinct",
    "DistinctUntilChanged": "distinct_until_changed",
    "DoAfterNext": "do_after_next",
    "DoFinally": "finally_action",
    "DoOnNext": "do_on_next",
    "ElementAt": "element_at",
    "Empty": "empty",
    "Filter": "filter",
    "First": "first",
    "FlatMap": "flat_map",
    "FromArray": "from_iterable",
    "FromCallable": "from_callable",
    "FromFuture": "from_future",
    "FromIterable": "from_iterable",
    "FromSupplier": "from_callable",
    "Generate": "generate",
    "GroupBy": "group_by",
    "Hide": "hide",
    "IgnoreElements": "ignore_elements",
    "IntervalRange": "interval_range",
    "Interval": "interval",
    "IsEmpty": "is_empty",
    "Just": "just",
    "Last": "last",
    "Limit": "take",
    "Map": "map",
    "MergeIterable": "merge",
    "MergePublisher": "merge_all",
    "Merge": "merge",
    "ObserveOn": "observe_on",
    "OnBackpressureBuffer": "on_backpressure_buffer",
    "OnErrorResumeWith": "on_error_resume",
    "OnErrorReturnItem": "on_error_return",
    "Range": "range",
    "RebatchRequests": "rebatch_requests",
    "Reduce": "reduce",
    "ReduceWith": "reduce",
    "Repeat": "repeat",
    "Retry": "retry",
    "Scan": "scan",
    "SequenceEqual": "sequence_equal",
    "Single": "single",
    "SkipLast": "skip_last",
    "Skip": "skip",
    "SkipUntil": "skip_until_other",
    "SkipWhile": "skip_while",
    "Sorted": "sort",
    "SubscribeOn": "subscribe_on",
    "SwitchIfEmpty": "switch_if_empty",
    "SwitchMapDelayError": "switch_map",
    "SwitchMap": "switch_map",
    "SwitchOnNext": "switch_latest",
    "TakeLast": "take_last",
    "Take": "take",
    "TakeUntil": "take_until_other",
    "TakeWhile": "take_while",
    "TimeInterval": "time_interval",
    "Timeout": "timeout",
    "Timer": "timer",
    "Timestamp": "timestamp",
    "ToList": "to_list",
    "ToMap": "to_dict",
    "ToMultimap": "to_multidict",
    "ToSortedList": "sort",
    "UnsubscribeOn": "cancel_on",
    "Using": "using",
    "WindowBoundary": "window_boundary",
    "WindowExactSize": "window_with_count",
    "WithLatestFrom": "with_latest_from",
    "ZipIterable": "zip",
    "Zip": "zip",
    "ZipWithIterable": "zip_with_iterable",
    "ZipWith": "zip_with",
}
"""Each is a source, an operator, or a method of `Flow`."""

ONE_ITEM = "a flow of one item or none is a Flow here"
MULTICAST = "flow-multicast has it"

ELSEWHERE = {
    "AsyncProcessorAsPublisher": MULTICAST,
    "BehaviorProcessorAsPublisher": MULTICAST,
    "Cache": MULTICAST,
    "CompletableAndThenPublisher": ONE_ITEM,
    "ConcatMapMaybe": ONE_ITEM,
    "ConcatMapSingle": ONE_ITEM,
    "ConcatWithCompletable": ONE_ITEM,
    "ConcatWithMaybeEmpty": ONE_ITEM,
    "ConcatWithMaybe": ONE_ITEM,
    "ConcatWithSingle": ONE_ITEM,
    "MaybeFlatMapPublisher": ONE_ITEM,
    "MergeWithCompletable": ONE_ITEM,
    "MergeWithMaybeEmpty": ONE_ITEM,
    "MergeWithMaybe": ONE_ITEM,
    "MergeWithSingle": ONE_ITEM,
    "MulticastProcessorAsPublisher": MULTICAST,
    "MulticastProcessorRefCounted": MULTICAST,
    "MulticastProcessor": MULTICAST,
    "PublishProcessorAsPublisher": MULTICAST,
    "PublishSelector": MULTICAST,
    "Publish": MULTICAST,
    "ReplayProcessorSizeBoundAsPublisher": MULTICAST,
    "ReplayProcessorTimeBoundAsPublisher": MULTICAST,
    "ReplayProcessorUnboundedAsPublisher": MULTICAST,
    "ReplaySelector": MULTICAST,
    "Replay": MULTICAST,
    "Share": MULTICAST,
    "SingleFlatMapFlowable": ONE_ITEM,
    "UnicastProcessorAsPublisher": MULTICAST,
    "UnicastProcessor": MULTICAST,
}
"""Why the others are not found here."""


def records() -> dict[str, Any]:
    """The operators and sources that flow-core and flow-ops register, by name."""
    plugins = (_builtin, _plugin)
    return {
        record.name: record
        for plugin in plugins
        for record in itertools.chain(plugin.flow_operators(), plugin.flow_sources())
    }


def test_each_subject_is_here_or_says_why_not() -> None:
    assert len(SUBJECTS) + len(ELSEWHERE) == 126
    assert not set(SUBJECTS) & set(ELSEWHERE)


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_subject_has_an_operator_or_a_source(subject: str) -> None:
    name = SUBJECTS[subject]
    assert name in records() or callable(getattr(Flow, name, None)) or hasattr(flow_core, name)


def test_each_registered_name_can_be_loaded() -> None:
    found = {name: record.load() for name, record in records().items()}
    assert [name for name, thing in found.items() if not callable(thing)] == []


def test_an_operator_is_in_the_file_of_its_name_or_of_how_that_begins() -> None:
    elsewhere = [
        record.target
        for record in itertools.chain(_plugin.flow_operators(), _plugin.flow_sources())
        if not f"{record.name}_".startswith(f"{record.target.partition(':')[0].split('.')[-1]}_")
    ]
    assert elsewhere == []
