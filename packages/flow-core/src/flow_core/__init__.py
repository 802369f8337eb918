"""Reactive Streams for Python: describe a flow of items once, and run it anywhere.

>>> import flow_core as flow
>>> list(flow.range(5).filter(lambda n: n % 2 == 0).map(lambda n: n * n))
[0, 4, 16]
"""

from typing import TYPE_CHECKING

from flow_core.errors import (
    BlockingInEventLoopError,
    FlowError,
    FlowTimeoutError,
    LoopEndedError,
    MissingBackpressureError,
    NoConverterError,
    NoItemError,
    NoneItemError,
    NoSuchNameError,
    NotInstalledError,
    OnErrorNotImplementedError,
    PluginError,
    ProtocolViolationError,
    RejectedExecutionError,
    TooManyItemsError,
    UnknownOperatorError,
)
from flow_core.exports import exported
from flow_core.late import fill_in

if TYPE_CHECKING:
    from types import ModuleType

    from flow_core import hooks, operators
    from flow_core.backoff import Backoff
    from flow_core.clocks import Clock, Seconds, system_clock
    from flow_core.conversion import from_
    from flow_core.demand import UNBOUNDED
    from flow_core.flow import Flow
    from flow_core.namespaces import register_namespace
    from flow_core.notifications import Notification, OnComplete, OnError, OnNext
    from flow_core.operator import Operator
    from flow_core.plugins import PluginHost
    from flow_core.prepared import Prepared, prepare
    from flow_core.protocols import (
        EMPTY,
        CallableSource,
        ConditionalSubscriber,
        CoreSubscriber,
        Disposable,
        Empty,
        Fusion,
        IterableSource,
        Processor,
        Publisher,
        QueueSubscription,
        ScalarSource,
        Subscriber,
        Subscription,
    )
    from flow_core.shutdown import Shutdown
    from flow_core.sources import (
        create,
        defer,
        empty,
        error,
        from_async_iterable,
        from_callable,
        from_future,
        from_iterable,
        from_publisher,
        generate,
        just,
        never,
        range,
        repeat_callable,
        repeat_value,
        using,
        using_when,
    )
    from flow_core.sources._emitter import Emitter
    from flow_core.stages import UNSET, SingleSink, Stage, Template
    from flow_core.structure import AbsorbingSource
    from flow_core.surface.functions import (
        amb,
        combine_latest,
        concat,
        fork_join,
        interval,
        interval_range,
        merge,
        merge_sequential,
        ordered_merge,
        sequence_equal,
        timer,
        zip,
    )

__all__ = [
    "EMPTY",
    "UNBOUNDED",
    "UNSET",
    "AbsorbingSource",
    "Backoff",
    "BlockingInEventLoopError",
    "CallableSource",
    "Clock",
    "ConditionalSubscriber",
    "CoreSubscriber",
    "Disposable",
    "Emitter",
    "Empty",
    "Flow",
    "FlowError",
    "FlowTimeoutError",
    "Fusion",
    "IterableSource",
    "LoopEndedError",
    "MissingBackpressureError",
    "NoConverterError",
    "NoItemError",
    "NoSuchNameError",
    "NoneItemError",
    "NotInstalledError",
    "Notification",
    "OnComplete",
    "OnError",
    "OnErrorNotImplementedError",
    "OnNext",
    "Operator",
    "PluginError",
    "Prepared",
    "Processor",
    "ProtocolViolationError",
    "Publisher",
    "QueueSubscription",
    "RejectedExecutionError",
    "ScalarSource",
    "Seconds",
    "Shutdown",
    "SingleSink",
    "Stage",
    "Subscriber",
    "Subscription",
    "Template",
    "TooManyItemsError",
    "UnknownOperatorError",
    "amb",
    "combine_latest",
    "concat",
    "create",
    "defer",
    "empty",
    "error",
    "fork_join",
    "from_",
    "from_async_iterable",
    "from_callable",
    "from_future",
    "from_iterable",
    "from_publisher",
    "generate",
    "hooks",
    "interval",
    "interval_range",
    "just",
    "merge",
    "merge_sequential",
    "never",
    "operators",
    "ordered_merge",
    "prepare",
    "range",
    "register_namespace",
    "repeat_callable",
    "repeat_value",
    "sequence_equal",
    "system_clock",
    "timer",
    "using",
    "using_when",
    "zip",
]


def _hints() -> "ModuleType":
    from flow_core import hints

    return hints


def _plugin_host() -> "PluginHost":
    from flow_core.plugins import plugin_host

    fill_in(_hints, plugin_host)  # later calls have no import to pass
    return plugin_host()


fill_in(_hints, _plugin_host)

_PLACES = {
    ".backoff": ("Backoff",),
    ".clocks": ("Clock", "Seconds", "system_clock"),
    ".conversion": ("from_",),
    ".demand": ("UNBOUNDED",),
    ".flow": ("Flow",),
    ".namespaces": ("register_namespace",),
    ".prepared": ("Prepared", "prepare"),
    ".notifications": ("Notification", "OnComplete", "OnError", "OnNext"),
    ".operator": ("Operator",),
    ".protocols": (
        "EMPTY",
        "CallableSource",
        "ConditionalSubscriber",
        "CoreSubscriber",
        "Disposable",
        "Empty",
        "Fusion",
        "IterableSource",
        "Processor",
        "Publisher",
        "QueueSubscription",
        "ScalarSource",
        "Subscriber",
        "Subscription",
    ),
    ".shutdown": ("Shutdown",),
    ".sources": (
        "create",
        "defer",
        "empty",
        "error",
        "from_async_iterable",
        "from_callable",
        "from_future",
        "from_iterable",
        "from_publisher",
        "generate",
        "just",
        "never",
        "range",
        "repeat_callable",
        "repeat_value",
        "using",
        "using_when",
    ),
    ".sources._emitter": ("Emitter",),
    ".stages": ("UNSET", "SingleSink", "Stage", "Template"),
    ".structure": ("AbsorbingSource",),
    ".surface.functions": (
        "amb",
        "combine_latest",
        "concat",
        "fork_join",
        "interval",
        "interval_range",
        "merge",
        "merge_sequential",
        "ordered_merge",
        "sequence_equal",
        "timer",
        "zip",
    ),
}
"""Names that are loaded when they are first used; errors are not: an `except` may name one at the
very end."""

_MODULES = (
    "boundaries",
    "clocks",
    "executors",
    "hooks",
    "operators",
    "protocols",
    "sources",
    "stages",
    "subscribers",
)

if not TYPE_CHECKING:  # for type checkers, any name would be an attribute then
    __getattr__, __dir__ = exported(__name__, _PLACES, _MODULES)
