"""Signals without values: what Agera could have been.

`Observable.register` returns a handle (R1) and may pass it to the updatable first (R2), there are
errors and an end (R3), the thread changes only on request (R4), and a ``Publisher[Signal]`` is
underneath (R5).
"""

from flow_rxcompat._outlets import Strategy
from flow_rxcompat.signals.handles import Removable, Removables, register_with
from flow_rxcompat.signals.observable import Observable, merge
from flow_rxcompat.signals.sources import Dispatcher, MutableRepository
from flow_rxcompat.signals.updatables import UPDATE, Signal, Updatable

__all__ = [
    "UPDATE",
    "Dispatcher",
    "MutableRepository",
    "Observable",
    "Removable",
    "Removables",
    "Signal",
    "Strategy",
    "Updatable",
    "merge",
    "register_with",
]
