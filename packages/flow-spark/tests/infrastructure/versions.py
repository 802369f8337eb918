"""Tests of what older versions of PySpark, which are supported, do not have."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

import pytest

__all__ = ["WITH_LIMITS"]

WITH_LIMITS: Final = pytest.mark.skipif(
    find_spec("pyspark.sql.streaming.datasource") is None,
    reason="needs pyspark.sql.streaming.datasource, which came with PySpark 4.2",
)
"""For tests of `stream_source`."""
