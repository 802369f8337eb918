"""What type checkers infer of the kit; checked by mypy and pyright, never run."""

from __future__ import annotations

from typing import assert_type

import flow_core as flow
from flow_core import Flow
from flow_testing import TestPublisher, TestSubscriber, observe

NUMBERS: Flow[int] = flow.range(3)

assert_type(observe(NUMBERS), TestSubscriber[int])
assert_type(observe(NUMBERS.map(lambda n: str(n))), TestSubscriber[str])
assert_type(observe(NUMBERS).items, list[int])
assert_type(observe(NUMBERS, request=1).assert_items(0), TestSubscriber[int])
assert_type(Flow(TestPublisher[int]()).map(lambda n: n / 2), Flow[float])
