"""Rails keep nothing alive when the flow has ended."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import flow_core as flow
from flow_core import Flow
from flow_ops import parallel
from flow_testing import ENDINGS, Ending, Payloads, assert_released

UPSTREAMS: dict[str, Any] = {
    "iterable": flow.from_iterable,
    "hidden": lambda payloads: flow.from_iterable(payloads).hide(),
    "publisher": Payloads.pushed,
}


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
@pytest.mark.parametrize("rails", [1, 3])
@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_it_lets_go_of_everything(upstream: str, rails: int, ending: Ending) -> None:
    def make(payloads: Payloads) -> Flow[Any]:
        dealt = UPSTREAMS[upstream](payloads).pipe(parallel(rails, prefetch=2))
        made: Flow[Any] = dealt.filter(lambda _: True).sequential(prefetch=1)
        return made

    assert_released(make, only=lambda name: name == ending.name)


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
def test_across_threads_it_lets_go_of_everything(ending: Ending) -> None:
    with ThreadPoolExecutor(1) as pool:

        def make(payloads: Payloads) -> Flow[Any]:
            dealt = flow.from_iterable(payloads).pipe(parallel(2, prefetch=2))
            made: Flow[Any] = dealt.run_on(pool, prefetch=2).sequential(prefetch=1)
            return made

        def settle() -> None:
            for _ in range(6):  # a task of one rail submits one of the other
                pool.submit(int).result()

        assert_released(make, settle=settle, only=lambda name: name == ending.name)
