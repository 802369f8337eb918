"""What the tests of this package share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flow_core.testing import Drops, recorded_drops


@pytest.fixture(autouse=True)
def drops() -> Iterator[Drops]:
    """Record what goes to the hooks; an error that a test does not take there fails it."""
    with recorded_drops() as recorded:
        yield recorded
        recorded.assert_no_errors()
