"""Whoever speaks to a Spark Connect server that does not answer hears of it within seconds."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

import flow_spark
from flow_spark import SparkJobError, from_dataframe, session
from flow_spark.driver.reach import check_remote
from flow_spark.errors import SessionConflictError, SessionStartError

from ..infrastructure.connect import ConnectServer
from ..infrastructure.fixtures import Runtimes
from ..infrastructure.places import Place

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

LIMIT_S = 11.0
connect = pytest.mark.parametrize("place", ["connect"], indirect=True)


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of somebody who takes connections and says nothing."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]


@connect
@pytest.mark.parametrize("option", ["use_ssl=true", "token=hidden"])
def test_who_asks_a_server_without_tls_for_it_is_told_so(place: Place, option: str) -> None:
    assert place.server is not None
    began = time.monotonic()

    opened = session(remote=f"{place.server.url}/;{option}")
    with pytest.raises(SessionStartError, match=r"(?s)with TLS .*leave both") as caught, opened:
        pass

    assert time.monotonic() - began < LIMIT_S
    assert "hidden" not in str(caught.value)


def test_who_finds_something_else_at_a_port_is_told_so(silent: int) -> None:
    began = time.monotonic()

    with pytest.raises(SessionStartError, match=rf"(?s)not as a Spark Connect server.*{silent}"):
        check_remote(f"sc://127.0.0.1:{silent}")

    assert time.monotonic() - began < LIMIT_S


@connect
def test_an_older_server_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    assert place.server is not None
    monkeypatch.setattr("pyspark.__version__", "99.0.1")

    told = pytest.raises(SessionConflictError, match=r"server at sc://.* runs Spark .*99\.0\.1")
    with told, session(remote=place.server.url):
        pass


@connect
def test_a_server_is_asked_for_its_version_and_keeps_nothing_of_it(place: Place) -> None:
    assert place.server is not None
    assert check_remote(place.server.url) == place.spark.version


@pytest.mark.cluster
@pytest.mark.filterwarnings("ignore:.RETRIES_EXCEEDED.:UserWarning")  # PySpark's
def test_a_server_that_is_killed_while_a_flow_is_read_is_told_of(
    runtime: Runtimes,
) -> None:
    server = ConnectServer(runtime("killed"), "local[2]")
    try:
        with flow_spark.session(remote=server.url) as spark:
            items = iter(from_dataframe(spark.range(10_000_000)).map(lambda n: n))
            next(items)
            server.server.kill()
            began = time.monotonic()
            with pytest.raises(SparkJobError, match=r"The way out: the Spark Connect server has"):
                list(items)
            assert time.monotonic() - began < LIMIT_S
            began = time.monotonic()
        assert time.monotonic() - began < LIMIT_S
    finally:
        server.stop()
