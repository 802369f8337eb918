"""Operators that listen to a second flow, when both flows signal at once.

As in `test_interleave`: every schedule within one preemption fewer than other tests have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flow_testing.interleave import Body, Exhaustive, Scenario, bound, explore_all

pytestmark = [pytest.mark.interleave, pytest.mark.usefixtures("dropped")]

Make = Callable[..., Any]  # Any: of what the fixture makes


def exhaust(body: Body) -> None:
    modules = ["flow_core.serial", "flow_ops"]
    explore_all(body, strategy=Exhaustive(max(1, bound() - 1)), modules=modules)


@pytest.mark.checklist("X06")
def test_both_send(make: Make) -> None:
    def body() -> Scenario:
        run = make()
        return Scenario(run.up.send, run.other.send, check=run.check)

    exhaust(body)


@pytest.mark.checklist("X06")
def test_the_second_flow_fails_while_the_first_sends(make: Make) -> None:
    def body() -> Scenario:
        run = make()
        return Scenario(run.up.send, run.other.fail, check=run.check)

    exhaust(body)


@pytest.mark.checklist("X06")
def test_the_first_flow_fails_while_the_second_sends(make: Make) -> None:
    def body() -> Scenario:
        run = make()
        return Scenario(run.up.fail, run.other.send, check=run.check)

    exhaust(body)


@pytest.mark.checklist("X06")
def test_demand_comes_while_the_second_flow_sends(make: Make) -> None:
    def body() -> Scenario:
        run = make(1)
        run.up.send()
        return Scenario(run.other.send, lambda: run.subscriber.request(20), check=run.check)

    exhaust(body)


@pytest.mark.checklist("X06")
def test_a_cancel_while_the_second_flow_sends_cancels_both(make: Make) -> None:
    def body() -> Scenario:
        run = make()
        run.up.send()

        def check() -> None:
            run.subscriber.assert_rules_kept()
            assert run.up.over, "the upstream runs"
            assert run.other.over, "the second flow runs"

        return Scenario(run.other.send, run.subscriber.cancel, check=check)

    exhaust(body)
