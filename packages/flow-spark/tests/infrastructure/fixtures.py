"""The fixtures of this folder; ``conftest.py`` takes them over for all tests of the package."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

import flow_core as flow
from flow_spark import on_spark

from .drop import Drop, committed_in
from .kafka import KafkaBroker, source_jars
from .places import PLACES, Place, opened
from .processes import wait_until
from .runtime import Runtime
from .sessions import Sessions
from .standalone import StandaloneCluster

__all__ = [
    "cluster",
    "committed",
    "drop",
    "each_place",
    "kafka",
    "kafka_source",
    "place",
    "runtime",
    "sessions",
    "standalone",
]

Runtimes = Callable[[str], Runtime]

EXECUTORS_WITHIN_S = 120.0


@pytest.fixture
def drop(tmp_path: Path) -> Drop:
    """An empty stream."""
    folder = tmp_path / "in"
    folder.mkdir()
    return Drop(folder)


@pytest.fixture
def committed(tmp_path: Path) -> Callable[[], set[int]]:
    """The micro-batches that the checkpoint ``tmp_path / "state"`` says are done."""
    return lambda: committed_in(tmp_path / "state")


@pytest.fixture(scope="session")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Runtimes:
    """Makes a `Runtime` in a separate folder."""
    return lambda name: Runtime(tmp_path_factory.mktemp(name))


@pytest.fixture(scope="session")
def sessions() -> Iterator[Sessions]:
    """The holder of the open session."""
    made = Sessions()
    with contextlib.closing(made):
        yield made


@pytest.fixture(scope="session")
def standalone(runtime: Runtimes) -> Iterator[StandaloneCluster]:
    """A master and two workers."""
    cluster = StandaloneCluster(runtime("standalone"))
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def kafka(runtime: Runtimes) -> Iterator[KafkaBroker]:
    """A Kafka broker."""
    broker = KafkaBroker(runtime("kafka"))
    try:
        yield broker
    finally:
        broker.stop()


@pytest.fixture(scope="session")
def kafka_source(runtime: Runtimes) -> str:
    """The setting ``spark.jars`` with which Spark can read from Kafka."""
    return source_jars(runtime("kafka-source"))


def each_place(here: str) -> list[ParameterSet]:
    """All modes; those but `here` are for the session `spark` of nox."""
    return [
        pytest.param(name, marks=[] if name == here else pytest.mark.cluster) for name in PLACES
    ]


@pytest.fixture(scope="session", params=each_place("connect"))
def place(request: pytest.FixtureRequest, runtime: Runtimes, sessions: Sessions) -> Iterator[Place]:
    """Each mode of Spark in turn, with a session; one at a time."""
    name: str = request.param
    cluster: StandaloneCluster | None = None
    if "standalone" in name:
        cluster = request.getfixturevalue("standalone")
        assert cluster is not None
        cluster.repair()
    yield sessions.switch(opened(name, runtime(name), cluster))
    sessions.close()


@pytest.fixture
def cluster(place: Place) -> StandaloneCluster:
    """Two workers, with what was killed before replaced, and an executor on each."""
    cluster = place.cluster
    assert cluster is not None
    cluster.repair()
    assert flow.range(2).pipe(on_spark(place.spark, partitions=2)).count().single() == 2
    assert wait_until(lambda: len(cluster.executors()) == 2, EXECUTORS_WITHIN_S)
    return cluster
