"""Reactive Streams for Python: describe a flow of items once, run it wherever it should run.

>>> import flow_core as flow
>>> list(flow.range(5).filter(lambda n: n % 2 == 0).map(lambda n: n * n))
[0, 4, 16]
"""

from flow_core import hooks, operators
from flow_core.clocks import Clock, system_clock
from flow_core.conversion import from_
from flow_core.demand import UNBOUNDED
from flow_core.errors import (
    BlockingInEventLoopError,
    FlowError,
    MissingBackpressureError,
    NoConverterError,
    NoItemError,
    NoneItemError,
    OnErrorNotImplementedError,
    PluginError,
    ProtocolViolationError,
    RejectedExecutionError,
    TooManyItemsError,
    UnknownOperatorError,
)
from flow_core.flow import AbsorbingSource, Flow
from flow_core.notifications import Notification, OnComplete, OnError, OnNext
from flow_core.operator import Operator
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
from flow_core.sources.emitter import Emitter
from flow_core.stages import UNSET, SingleSink, Stage, Template

__all__ = [
    "EMPTY",
    "UNBOUNDED",
    "UNSET",
    "AbsorbingSource",
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
    "Fusion",
    "IterableSource",
    "MissingBackpressureError",
    "NoConverterError",
    "NoItemError",
    "NoneItemError",
    "Notification",
    "OnComplete",
    "OnError",
    "OnErrorNotImplementedError",
    "OnNext",
    "Operator",
    "PluginError",
    "Processor",
    "ProtocolViolationError",
    "Publisher",
    "QueueSubscription",
    "RejectedExecutionError",
    "ScalarSource",
    "SingleSink",
    "Stage",
    "Subscriber",
    "Subscription",
    "Template",
    "TooManyItemsError",
    "UnknownOperatorError",
    "create",
    "defer",
    "empty",
    "error",
    "from_",
    "from_async_iterable",
    "from_callable",
    "from_future",
    "from_iterable",
    "from_publisher",
    "generate",
    "hooks",
    "just",
    "never",
    "operators",
    "range",
    "repeat_callable",
    "repeat_value",
    "system_clock",
    "using",
    "using_when",
]
