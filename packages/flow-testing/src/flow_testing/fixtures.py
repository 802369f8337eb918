"""Fixtures of pytest, there for every test where this package is installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from flow_testing.drops import Drops
    from flow_testing.virtual_clock import VirtualClock

__all__ = ["drops", "frequent_switches", "virtual_clock"]

# What is imported here, every run of pytest imports: also one that tests no flow.


@pytest.fixture
def drops() -> Iterator[Drops]:
    """Record what no subscriber can receive, see `recorded_drops`.

    An error that the test does not take out fails it.
    """
    from flow_testing.drops import recorded_drops

    with recorded_drops() as recorded:
        yield recorded
    recorded.assert_no_errors()


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    """Have Python switch between threads as often as it can, so that races show."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.fixture
def virtual_clock() -> VirtualClock:
    """A new clock whose time passes only when the test says so."""
    from flow_testing.virtual_clock import VirtualClock

    return VirtualClock()
