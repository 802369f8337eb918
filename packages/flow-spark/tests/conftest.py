"""One Spark session for all tests of this package, but for those on clusters."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import flow_spark

from .infrastructure.fixtures import *  # noqa: F403 - its __all__ are the fixtures
from .infrastructure.places import PLACES
from .infrastructure.required import *  # noqa: F403 - its __all__ are hooks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from .infrastructure.sessions import Sessions

CLUSTER = Path(__file__).parent / "cluster"


def pytest_configure(config: pytest.Config) -> None:
    """Let PySpark 4.1 leave the sockets to the collector by which it gets rows."""
    import pyspark

    if pyspark.__version__.startswith("4.1."):
        config.addinivalue_line("filterwarnings", "ignore:unclosed <socket:ResourceWarning")
        ignored = "ignore:Exception ignored in.*socket:pytest.PytestUnraisableExceptionWarning"
        config.addinivalue_line("filterwarnings", ignored)


@pytest.fixture
def collections() -> Iterator[Callable[[], int]]:
    """The number of runs of Python's collector since the test began, with its usual threshold.

    It looks at what there is after 700 new objects, and now and then at all of a large process.
    """
    before, found = gc.get_threshold(), itertools.count()

    def told(phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            next(found)

    gc.collect()
    gc.set_threshold(700, *before[1:])
    gc.callbacks.append(told)
    yield lambda: next(found)
    gc.callbacks.remove(told)
    gc.set_threshold(*before)


@pytest.fixture(scope="session")
def spark(sessions: Sessions) -> SparkSession:
    """A session on two threads that retries lost Python workers, as a cluster does."""
    return sessions.switch(
        flow_spark.session("local[2,4]", app_name="flow-spark-tests", fast_start=True)
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Put tests on other sessions than the common one last, mode by mode: each is opened once."""
    yield
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    if CLUSTER not in item.path.parents:
        return -1
    params = getattr(getattr(item, "callspec", None), "params", {})
    return PLACES.index(params["place"]) if "place" in params else len(PLACES)
