"""One Spark session for all tests of this package."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import flow_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A session on two threads that retries lost Python workers, as a cluster does."""
    with flow_spark.session("local[2,4]", app_name="flow-spark-tests") as session:
        yield session
