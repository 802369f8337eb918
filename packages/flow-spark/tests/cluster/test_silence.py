"""A fault of a Spark Connect server is reported within seconds, with the way out."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

import flow_spark
from flow_spark import SparkJobError, from_dataframe, from_stream, session
from flow_spark.driver.reach import check_master, check_remote
from flow_spark.errors import SessionConflictError, SessionStartError

from ..infrastructure.connect import ConnectServer
from ..infrastructure.drop import Drop
from ..infrastructure.fixtures import Runtimes
from ..infrastructure.places import Place

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

LIMIT_S = 11.0
connect = pytest.mark.parametrize("place", ["connect"], indirect=True)


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a process that takes connections and says nothing."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]


@connect
@pytest.mark.parametrize("option", ["use_ssl=true", "token=hidden"])
def test_a_request_for_tls_to_a_server_without_it_is_an_error_that_says_so(
    place: Place, option: str
) -> None:
    assert place.server is not None
    began = time.monotonic()

    opened = session(remote=f"{place.server.url}/;{option}")
    with pytest.raises(SessionStartError, match=r"(?s)with TLS .*leave both") as caught, opened:
        pass

    assert time.monotonic() - began < LIMIT_S
    assert "hidden" not in str(caught.value)


def test_a_port_with_another_service_is_an_error_that_says_so(silent: int) -> None:
    began = time.monotonic()

    with pytest.raises(SessionStartError, match=rf"(?s)not as a Spark Connect server.*{silent}"):
        check_remote(f"sc://127.0.0.1:{silent}")

    assert time.monotonic() - began < LIMIT_S


def test_the_address_of_a_server_is_refused_as_a_master() -> None:
    with pytest.raises(SessionStartError, match="give it as remote") as caught:
        check_master("sc://127.0.0.1:15002/;token=hidden")
    assert "hidden" not in str(caught.value)


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
def test_a_server_that_is_killed_while_a_flow_is_read_is_reported(
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


@connect
def test_each_use_of_a_session_that_has_ended_says_so(place: Place, drop: Drop) -> None:
    assert place.server is not None
    with session(remote=place.server.url) as spark:
        rows = from_dataframe(spark.range(3))
        stream = from_stream(drop.stream(spark))
        running = iter(from_dataframe(spark.range(10_000_000)).map(lambda n: n))
        next(running)
        spark.client.release_session()  # as the server does with one that nobody uses

        for use in (
            lambda: list(running),
            lambda: list(rows),
            lambda: rows.map(lambda n: n).count().first(),
            lambda: list(stream),
            lambda: from_dataframe(spark.range(3)),
            lambda: from_stream(drop.stream(spark)),
            lambda: rows.to_arrow(),
            lambda: list(rows.count_by_key(lambda n: n)),
        ):
            with pytest.raises(SparkJobError, match="Open a new session") as caught:
                use()
            assert str(caught.value).count("The way out") == 1
            assert "stacktrace" not in str(caught.value)


@connect
def test_a_job_that_is_cancelled_or_too_large_to_send_is_reported_with_the_way_out(
    place: Place,
) -> None:
    assert place.server is not None
    large = os.urandom(140_000_000)  # which nothing makes smaller
    with session(remote=place.server.url) as spark:
        with pytest.raises(SparkJobError, match=r"(?s)larger than max.*128 MB"):
            list(from_dataframe(spark.range(3)).map(lambda _: len(large)))
        running = iter(from_dataframe(spark.range(10_000_000)).map(lambda n: n))
        next(running)
        spark.interruptAll()
        with pytest.raises(SparkJobError, match="it was cancelled: by") as caught:
            list(running)
        assert "stacktrace" not in str(caught.value)
