"""Bridges to ReactiveX for Python (`reactivex`, 4 to 6): observables, subjects and operators.

This needs an extra: ``pip install flow-rxcompat[rx]``.

>>> import flow_core as flow
>>> import reactivex
>>> from reactivex import operators as ops
>>> list(from_rx(reactivex.of(1, 2, 3)).map(str))
['1', '2', '3']
>>> to_rx(flow.range(3)).pipe(ops.map(lambda n: n * n), ops.sum()).run()
5
"""

from importlib import import_module

try:
    import_module("reactivex")
except ModuleNotFoundError as _error:
    raise ImportError(
        "flow_rxcompat.rx needs reactivex: pip install 'flow-rxcompat[rx]'"
    ) from _error

from flow_rxcompat.rx.connectables import from_rx_connectable, to_rx_connectable
from flow_rxcompat.rx.flows import to_rx
from flow_rxcompat.rx.observables import from_rx
from flow_rxcompat.rx.operators import rx, via_flow
from flow_rxcompat.rx.subjects import SubjectProcessor, from_rx_subject, to_rx_subject

__all__ = [
    "SubjectProcessor",
    "from_rx",
    "from_rx_connectable",
    "from_rx_subject",
    "rx",
    "to_rx",
    "to_rx_connectable",
    "to_rx_subject",
    "via_flow",
]
