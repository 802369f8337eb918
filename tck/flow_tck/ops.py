"""Recipes to get n items out of flow-ops' operators: they use its own cases, on real threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import flow_core as flow
import flow_ops as ops
from flow_core import Flow
from flow_core.clocks import system_clock
from flow_ops._plugin import flow_sources
from flow_ops.testing import OPERATOR_CASES
from flow_tck.threads import event_loop, pool
from flow_testing import HastyClock, OperatorCase, Surroundings, VirtualClock

__all__ = ["EXEMPT", "OPERATORS", "SOURCES"]

# Any: of all types of items.
AnyFlow = Flow[Any]

EXEMPT: Final[Mapping[str, str]] = {
    "on_backpressure_drop": "what comes without demand is gone, so that no number is sure",
    "on_backpressure_error": "what comes without demand ends it, so that no number is sure",
}
"""Names of operators that cannot be made to emit n items, with the reason."""

_NAMES_OF_SOURCES: Final = {record.name for record in flow_sources()}


def _chosen() -> dict[str, OperatorCase]:
    """Return a case for each name: one whose flows are hidden, or else the first."""
    found: dict[str, OperatorCase] = {}
    for case in OPERATOR_CASES:
        if "uncounted" in case.kinds or case.registered in EXEMPT:
            continue
        if case.registered not in found or "hidden" in case.name:
            found[case.registered] = case
    return found


def _around(case: OperatorCase) -> Surroundings:
    """Return surroundings in which a time that nothing waits for never passes."""
    if case.kinds.isdisjoint(("timed", "delayed")):
        return Surroundings(pool(), VirtualClock(), 1e9, event_loop())
    if "selective" in case.kinds:  # items that arrive at once would be too early
        return Surroundings(pool(), HastyClock(), 1, event_loop())
    return Surroundings(pool(), system_clock(), 0.001, event_loop())


def _behind(case: OperatorCase, source: AnyFlow) -> AnyFlow:
    return case.apply(source, _around(case))


def _applied(case: OperatorCase, source: AnyFlow, _: int) -> AnyFlow:
    return _behind(case, source)


def _most(case: OperatorCase) -> Any:
    return case.facts.get("max_items")


_Apply = Callable[[AnyFlow, int], AnyFlow]

OPERATORS: Final[Mapping[str, tuple[_Apply, int | None]]] = {
    name: (partial(_applied, case), _most(case))
    for name, case in _chosen().items()
    if name not in _NAMES_OF_SOURCES
}
"""Operators by their registered names: how to apply each to ints, and the most items it emits."""

_Make = Callable[[int], AnyFlow]
_Fail = Callable[[AnyFlow], AnyFlow]


def _made(case: OperatorCase, n: int) -> AnyFlow:
    gives_always = case.facts.get("min_items")
    return flow.empty() if gives_always and not n else _behind(case, flow.range(n))


SOURCES: Final[Mapping[str, tuple[_Make, _Fail | None, int | None]]] = {
    "interval": (lambda n: ops.interval(0.001, overflow="buffer").take(n), None, None),
    "interval_range": (
        lambda n: ops.interval_range(0, n, 0.001, overflow="buffer"),
        None,
        None,
    ),
    "timer": (lambda n: ops.timer(0.001) if n else flow.empty(), None, 1),
    **{
        name: (partial(_made, case), partial(_behind, case), _most(case))
        for name, case in _chosen().items()
        if name in _NAMES_OF_SOURCES
    },
}
"""Sources by their registered names: of n items, a failing one, and the most items it emits."""
