"""A flow that nobody reads holds nothing up: two slots, which its own tasks need."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from .infrastructure.processes import wait_until
from .infrastructure.slots import WAITING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.essential, pytest.mark.timeout(60)]


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("flow-spark")]


@pytest.mark.parametrize("wait", WAITING.values(), ids=WAITING)
def test_who_waits_for_a_slot_gets_one(
    spark: SparkSession, wait: Callable[[SparkSession], None]
) -> None:
    before = threads()
    wait(spark)
    assert wait_until(lambda: len(threads()) <= len(before), 20)
    assert not [*spark.sparkContext.statusTracker().getActiveJobsIds()]
