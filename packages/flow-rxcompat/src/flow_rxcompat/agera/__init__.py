"""Agera 1.4 in Python names, with its semantics, including its weaknesses.

Updatables learn that something has changed, and then read the value: values between two reads are
lost, and there is no interface for errors and ends. `flow_rxcompat.signals` shows what Agera could
have been.

The factories are in modules named as in Agera: `observables`, `repositories`, `reservoirs`,
`functions`, `predicates`, `conditions`, `suppliers`, `receivers`, `mergers`, `binders`.
"""

from flow_rxcompat.agera import (
    binders,
    conditions,
    functions,
    mergers,
    observables,
    predicates,
    receivers,
    repositories,
    reservoirs,
    suppliers,
)
from flow_rxcompat.agera.builder import (
    RConfig,
    REventSource,
    RFlow,
    RFrequency,
    RSyncFlow,
    RTermination,
    RTerminationOrContinue,
)
from flow_rxcompat.agera.compiled import RunState, interrupted
from flow_rxcompat.agera.config import RepositoryConfig
from flow_rxcompat.agera.errors import (
    AbsentValueError,
    AttemptFailedError,
    FailedResultError,
    IllegalStateError,
)
from flow_rxcompat.agera.loops import AsyncioLoop, Loop, TestLoop, ThreadLoop, current_loop
from flow_rxcompat.agera.observables import BaseObservable
from flow_rxcompat.agera.protocols import (
    ActivationHandler,
    Binder,
    Condition,
    Function,
    Merger,
    MutableRepository,
    Observable,
    Predicate,
    Receiver,
    Repository,
    Supplier,
    Updatable,
    UpdateDispatcher,
)
from flow_rxcompat.agera.reservoirs import Queue, Reservoir
from flow_rxcompat.agera.result import Result

__all__ = [
    "AbsentValueError",
    "ActivationHandler",
    "AsyncioLoop",
    "AttemptFailedError",
    "BaseObservable",
    "Binder",
    "Condition",
    "FailedResultError",
    "Function",
    "IllegalStateError",
    "Loop",
    "Merger",
    "MutableRepository",
    "Observable",
    "Predicate",
    "Queue",
    "RConfig",
    "REventSource",
    "RFlow",
    "RFrequency",
    "RSyncFlow",
    "RTermination",
    "RTerminationOrContinue",
    "Receiver",
    "Repository",
    "RepositoryConfig",
    "Reservoir",
    "Result",
    "RunState",
    "Supplier",
    "TestLoop",
    "ThreadLoop",
    "Updatable",
    "UpdateDispatcher",
    "binders",
    "conditions",
    "current_loop",
    "functions",
    "interrupted",
    "mergers",
    "observables",
    "predicates",
    "receivers",
    "repositories",
    "reservoirs",
    "suppliers",
]
