"""What every test of the core gets: no error may be dropped unnoticed."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from flow_core.testing import Drops, recorded_drops


@pytest.fixture(autouse=True)
def drops() -> Iterator[Drops]:
    """What no subscriber could receive. A test that expects dropped errors takes them."""
    with recorded_drops() as drops:
        yield drops
    drops.assert_no_errors()


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    """Threads that race are switched as often as can be."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)
