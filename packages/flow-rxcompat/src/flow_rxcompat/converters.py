"""Converters between Agera, signals and flows.

=======================  ============================  ======================================
from                     to                            by
=======================  ============================  ======================================
Agera ``Observable``     ``Flow[Signal]``              `from_agera`
Agera ``Repository``     ``Flow`` of its values        `from_repository`
Agera ``Reservoir``      ``Flow`` of its values        `from_reservoir`
``Flow``                 Agera ``Observable``          `to_agera`
``Flow``                 Agera ``Repository``          `to_repository`
``Flow``                 Agera ``Reservoir``           `to_reservoir`
a processor              Agera ``UpdateDispatcher``    `to_update_dispatcher`
Agera ``Updatable``      a subscriber                  `to_subscriber`
Agera ``Observable``     signals                       `agera_to_signals`
signals                  Agera ``Observable``          `to_agera`
``Flow``                 signals                       `to_signals`
signals                  ``Flow[Signal]``              ``observable.flow``
=======================  ============================  ======================================

`flow_core.from_` knows the converters that return a flow. Agera has no interface for an error, for
an end, or for each single value; these still pass through Agera if both ends were made by this
package.
"""

from __future__ import annotations

from flow_core import Flow, from_
from flow_core.protocols import Publisher
from flow_rxcompat._from_agera import from_agera, from_repository, from_reservoir
from flow_rxcompat._to_agera import (
    FlowObservable,
    FlowRepository,
    FlowReservoir,
    to_agera,
    to_repository,
    to_reservoir,
    to_subscriber,
    to_update_dispatcher,
)
from flow_rxcompat.agera.loops import Loop
from flow_rxcompat.agera.protocols import Observable
from flow_rxcompat.signals.observable import Observable as Signals
from flow_rxcompat.signals.updatables import UPDATE, Signal

__all__ = [
    "FlowObservable",
    "FlowRepository",
    "FlowReservoir",
    "agera_to_signals",
    "from_agera",
    "from_repository",
    "from_reservoir",
    "from_signals",
    "to_agera",
    "to_repository",
    "to_reservoir",
    "to_signals",
    "to_subscriber",
    "to_update_dispatcher",
]


def from_signals(observable: Signals) -> Flow[Signal]:
    """The signals as a flow; also ``observable.flow``."""
    return observable.flow


def agera_to_signals(observable: Observable, *, loop: Loop | None = None) -> Signals:
    """The updates of an observable of Agera, with handles; see `from_agera`."""
    return Signals(from_agera(observable, loop=loop))


def to_signals(flow: Flow[object] | Publisher[object]) -> Signals:
    """Return an update for each item of `flow`, and its error or end.

    Demand: passed on. Thread: that of the flow.

    Args:
        flow: an object with ``subscribe``, or anything else that `flow_core.from_` converts.
    """
    return Signals(from_(flow).map(lambda _: UPDATE))
