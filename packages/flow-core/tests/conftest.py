"""What every test of the core gets: no error may be dropped unnoticed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flow_core.testing import Drops, recorded_drops


@pytest.fixture(autouse=True)
def drops() -> Iterator[Drops]:
    """What no subscriber could receive. A test that expects dropped errors takes them."""
    with recorded_drops() as drops:
        yield drops
    drops.assert_no_errors()
