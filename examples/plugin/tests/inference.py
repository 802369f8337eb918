"""The types that checkers infer for acme-flow; checked by mypy and pyright, never run."""

from typing import assert_type

from acme_flow.namespace import Acme
from acme_flow.operators import append, every, smoothed

import flow_core as flow
from flow_core import Flow


def chains() -> None:
    numbers = flow.range(9)
    assert_type(numbers.pipe(every(2)), Flow[int])
    assert_type(numbers.pipe(every(2)).pipe(smoothed), Flow[float])
    assert_type(numbers.pipe(Acme).smooth(), Flow[float])
    assert_type(numbers.pipe(Acme).every(2), Flow[int])
    assert_type(numbers.pipe(append(flow.just(1))), Flow[int])


def mistakes() -> None:
    flow.just("a").pipe(smoothed)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
