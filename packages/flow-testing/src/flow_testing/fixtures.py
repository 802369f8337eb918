"""Fixtures for pytest, available to every test if this package is installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from flow_testing.drops import Drops
    from flow_testing.virtual_clock import VirtualClock

__all__ = ["drops", "frequent_switches", "virtual_clock"]

# Every run of pytest imports these modules: also one that tests no flow.


@pytest.fixture
def drops() -> Iterator[Drops]:
    """Record signals that no subscriber can receive; see `recorded_drops`.

    If an error was dropped and the test does not take it, the test fails.
    """
    from flow_testing.drops import recorded_drops

    with recorded_drops() as recorded:
        yield recorded
    recorded.assert_no_errors()


@pytest.fixture
def frequent_switches() -> Iterator[None]:
    """Make Python switch between threads as often as possible, to expose races."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.fixture
def virtual_clock() -> VirtualClock:
    """Return a new clock whose time advances only when the test says so."""
    from flow_testing.virtual_clock import VirtualClock

    return VirtualClock()
