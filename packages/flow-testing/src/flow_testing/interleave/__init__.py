"""Deterministic exploration of thread interleavings, for tests. Needs Python 3.12 or later.

The threads of a scenario are real threads, but only one of them runs at a time. They are switched
only before operations that other threads can see. So a scenario has a finite number of schedules,
which are run one after the other, those with the fewest preemptions first. A schedule that fails
has a short token, with which it can be repeated.

>>> import sys
>>> from flow_testing.interleave import Scenario, explore
>>> def two_appends() -> Scenario:
...     seen: list[str] = []
...     return Scenario(
...         lambda: seen.append("a"), lambda: seen.append("b"), outcome=lambda: "".join(seen)
...     )
>>> if sys.version_info >= (3, 12):
...     report = explore(two_appends, expect={"ab", "ba"})
...     assert report.exhausted and not report.unseen, report
"""

from flow_testing.interleave.explorer import (
    LIBRARY,
    Body,
    Scenario,
    explore,
    explore_all,
    replay,
    search,
)
from flow_testing.interleave.oracles import Call, History, Model, assert_linearizable
from flow_testing.interleave.primitives import step, thread_per_task
from flow_testing.interleave.report import (
    Deviations,
    Failure,
    InterleavingFailure,
    InterleavingUnsupportedError,
    Kind,
    NondeterminismError,
    Report,
    TraceLine,
)
from flow_testing.interleave.scheduler import Chooser, Plan, Run, Task
from flow_testing.interleave.strategies import (
    PCT,
    Exhaustive,
    Random,
    Search,
    Strategy,
    bound,
)

__all__ = [
    "LIBRARY",
    "PCT",
    "Body",
    "Call",
    "Chooser",
    "Deviations",
    "Exhaustive",
    "Failure",
    "History",
    "InterleavingFailure",
    "InterleavingUnsupportedError",
    "Kind",
    "Model",
    "NondeterminismError",
    "Plan",
    "Random",
    "Report",
    "Run",
    "Scenario",
    "Search",
    "Strategy",
    "Task",
    "TraceLine",
    "assert_linearizable",
    "bound",
    "explore",
    "explore_all",
    "replay",
    "search",
    "step",
    "thread_per_task",
]
