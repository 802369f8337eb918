"""Spark's own ways to cancel what another thread runs end a flow with an error, if they find it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

import pytest

from flow_spark import SparkJobError, from_dataframe

from ..infrastructure.places import Place

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(300)]

TIMEOUT_S = 60.0
Told = Callable[["SparkSession"], object]

INTERRUPT_ALL: tuple[Told, Told] = (lambda spark: None, lambda spark: spark.interruptAll())
INTERRUPT_TAG: tuple[Told, Told] = (
    lambda spark: spark.addTag("mine"),
    lambda spark: spark.interruptTag("mine"),
)
JOBS_WITH_TAG: tuple[Told, Told] = (
    lambda spark: spark.sparkContext.addJobTag("mine"),
    lambda spark: spark.sparkContext.cancelJobsWithTag("mine"),
)


def read_until_told(spark: SparkSession, tell: Told, cancel: Told) -> Future[None]:
    """Read a long flow in a thread, and call `cancel` here after its first item."""
    begun, left, outcome = threading.Event(), threading.Event(), Future[None]()

    def read() -> None:
        try:
            tell(spark)
            for _ in from_dataframe(spark.range(10**9)).map(lambda n: n):
                begun.set()
                if left.is_set():
                    break
        except BaseException as error:  # it is looked at below
            outcome.set_exception(error)
        else:
            outcome.set_result(None)

    threading.Thread(target=read, daemon=True).start()
    assert begun.wait(TIMEOUT_S)
    if cancel(spark) == []:
        left.set()
    return outcome


@pytest.mark.parametrize(
    ("place", "ways"),
    [
        ("local", [INTERRUPT_ALL, JOBS_WITH_TAG]),
        ("connect", [INTERRUPT_ALL, INTERRUPT_TAG]),
    ],
    indirect=["place"],
)
def test_a_flow_that_spark_cancels_fails_and_says_so(
    place: Place, ways: list[tuple[Told, Told]]
) -> None:
    for tell, cancel in ways:
        with pytest.raises(SparkJobError, match="it was cancelled: by"):
            read_until_told(place.spark, tell, cancel).result(TIMEOUT_S)


@pytest.mark.parametrize("place", ["local"], indirect=True)
def test_interrupt_tag_of_a_classic_session_finds_nothing_of_another_thread(place: Place) -> None:
    read_until_told(place.spark, *INTERRUPT_TAG).result(TIMEOUT_S)
