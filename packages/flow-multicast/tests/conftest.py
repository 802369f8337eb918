"""Fixtures that the tests of this package share."""

from __future__ import annotations

import pytest

from flow_testing import Drops


@pytest.fixture(autouse=True)
def no_error_is_dropped_unseen(drops: Drops) -> None:
    """An error that reaches the hooks fails the test that does not take it out of `drops`."""
