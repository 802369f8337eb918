"""`local()`: what follows runs in this process."""

from __future__ import annotations

from typing import Any

import flow_core as flow
from flow_core.flow import Flow
from flow_core.protocols import Publisher, Subscriber
from flow_core.stages import Stage
from flow_core.structure import AbsorbingSource, source_of
from flow_testing import assert_result


class Far(AbsorbingSource[int]):
    """Three numbers that are elsewhere, where all stages can run."""

    def __init__(self) -> None:
        self.took: list[str] = []

    def absorb(
        self, stages: tuple[Stage[Any, Any], ...]
    ) -> tuple[Publisher[Any], tuple[Stage[Any, Any], ...]]:
        self.took = [stage.name for stage in stages]
        there: Flow[int] = flow.range(3)
        for stage in stages:
            there = there._then(stage)
        return there, ()

    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        Flow(self).map(int).subscribe(subscriber)


def test_a_flow_of_this_process_stays_as_it_is() -> None:
    for made in (flow.range(3), flow.range(3).map(str), flow.range(3).hide()):
        assert made.local() is made


def test_stages_before_local_go_to_the_source_and_those_behind_it_stay_here() -> None:
    far = Far()
    made = Flow(far).map(lambda n: n + 1).local().filter(lambda n: n > 1).map(str)
    assert_result(lambda: made, ["2", "3"])
    assert list(made) == ["2", "3"]
    assert far.took == ["map"]
    assert not isinstance(source_of(made), Far)
    again = Flow(far).local().local().map(str)
    assert_result(lambda: again, ["0", "1", "2"])
    assert far.took == []


def test_it_is_seen_where_a_flow_is_drawn() -> None:
    assert repr(Flow(Far()).local().map(str)).endswith("| local() | map(str)")
