"""An operator is let go of by reference count alone, and its mapper with it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import flow_core as flow
import flow_ops as ops


class Mapped:
    """A mapper that can be watched."""

    def __call__(self, item: int) -> flow.Flow[int]:
        return flow.just(item)


@pytest.mark.parametrize("operator", [ops.concat_map, ops.flat_map, ops.switch_map])
@pytest.mark.parametrize("upstream", [lambda: flow.range(3), lambda: flow.defer(flow.empty)])
def test_a_mapper_dies_with_the_flow(
    operator: Callable[..., Any], upstream: Callable[[], flow.Flow[int]]
) -> None:
    mapper = Mapped()
    watched = weakref.ref(mapper)
    gc.disable()
    try:
        made = upstream().pipe(operator(mapper))
        list(made)
        del made, mapper
        assert watched() is None
    finally:
        gc.enable()
