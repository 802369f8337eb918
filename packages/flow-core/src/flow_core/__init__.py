"""Reactive Streams for Python: describe a flow of items once, run it wherever it should run.

>>> import flow_core as flow
>>> list(flow.range(5).filter(lambda n: n % 2 == 0).map(lambda n: n * n))
[0, 4, 16]
"""

from flow_core import hooks, operators
from flow_core.demand import UNBOUNDED
from flow_core.errors import (
    BlockingInEventLoopError,
    FlowError,
    MissingBackpressureError,
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
    defer,
    empty,
    error,
    from_callable,
    from_iterable,
    from_publisher,
    just,
    never,
    range,
)
from flow_core.stages import UNSET, Stage, Template

__all__ = [
    "EMPTY",
    "UNBOUNDED",
    "UNSET",
    "AbsorbingSource",
    "BlockingInEventLoopError",
    "CallableSource",
    "ConditionalSubscriber",
    "CoreSubscriber",
    "Disposable",
    "Empty",
    "Flow",
    "FlowError",
    "Fusion",
    "IterableSource",
    "MissingBackpressureError",
    "NoItemError",
    "NoneItemError",
    "OnErrorNotImplementedError",
    "Operator",
    "PluginError",
    "Processor",
    "ProtocolViolationError",
    "Publisher",
    "QueueSubscription",
    "RejectedExecutionError",
    "ScalarSource",
    "Stage",
    "Subscriber",
    "Subscription",
    "Template",
    "TooManyItemsError",
    "UnknownOperatorError",
    "defer",
    "empty",
    "error",
    "from_callable",
    "from_iterable",
    "from_publisher",
    "hooks",
    "just",
    "never",
    "operators",
    "range",
]
