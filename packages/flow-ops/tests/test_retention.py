"""`observe_on` keeps nothing alive when the flow has ended."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow
from flow_ops import observe_on
from flow_testing import ENDINGS, Ending, Payloads, VirtualClock, assert_released

UPSTREAMS: dict[str, Any] = {
    "iterable": flow.from_iterable,
    "hidden": lambda payloads: flow.from_iterable(payloads).hide(),
    "publisher": Payloads.pushed,
    "stage": lambda payloads: payloads.pushed().filter(lambda _: True),
}

# Ends that the test reaches by waiting need an executor that works while it waits.
WAITING = ("completed", "failed")


def only(ending: Ending) -> Any:
    return lambda name: name == ending.name


def each_ending() -> list[Any]:
    return [
        pytest.param(
            upstream,
            ending,
            id=f"{upstream}-{ending.name}",
        )
        for upstream in UPSTREAMS
        for ending in ENDINGS
    ]


@pytest.mark.parametrize(("upstream", "ending"), each_ending())
@pytest.mark.parametrize("delay_error", [True, False])
def test_inline_it_lets_go_of_everything(upstream: str, ending: Ending, delay_error: bool) -> None:
    def make(payloads: Payloads) -> Flow[Any]:
        operator = observe_on(lambda task: task(), prefetch=2, delay_error=delay_error)
        return UPSTREAMS[upstream](payloads).pipe(operator)

    assert_released(make, only=only(ending))


@pytest.mark.parametrize(("upstream", "ending"), each_ending())
def test_on_a_pool_it_lets_go_of_everything(upstream: str, ending: Ending) -> None:
    with ThreadPoolExecutor(1) as pool:

        def make(payloads: Payloads) -> Flow[Any]:
            return UPSTREAMS[upstream](payloads).pipe(observe_on(pool, prefetch=2))

        def settle() -> None:
            # The second task runs when the pool has forgotten the one before the first.
            for _ in range(2):
                pool.submit(int).result()

        assert_released(make, settle=settle, only=only(ending))


@pytest.mark.parametrize(
    "ending",
    [ending for ending in ENDINGS if not ending.name.startswith(WAITING)],
    ids=lambda ending: ending.name,
)
@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_a_task_that_was_not_run_yet_keeps_nothing(upstream: str, ending: Ending) -> None:
    """The executor holds the cancelled task, and with it nothing of the flow."""
    clock = VirtualClock()

    def make(payloads: Payloads) -> Flow[Any]:
        return UPSTREAMS[upstream](payloads).pipe(observe_on(clock, prefetch=2))

    if ending.name in {"cancelled in on_next", "a wrong request"}:
        assert_released(make, settle=clock.run, only=only(ending))
    else:
        assert_released(make, only=only(ending))
