"""The address at which tasks find the driver."""

from __future__ import annotations

import socket
from typing import Any, ClassVar

import pytest

from flow_spark.jobs.cluster import cluster_of


def test_a_client_of_connect_listens_where_it_can_reach_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []
    find = socket.getaddrinfo

    def look_up(host: str, *more: Any, **named: Any) -> Any:
        asked.append(host)
        return find("127.0.0.1", *more, **named)

    class Client:
        host = "spark.example"

    class Session:
        __module__ = "pyspark.sql.connect.session"
        client = Client()
        conf: ClassVar[dict[str, str]] = {}

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    session: Any = Session()

    assert cluster_of(session).addresses() == ("127.0.0.1", "127.0.0.1")
    assert asked == ["spark.example"]


class Classic:
    """As a session of a cluster has it."""

    class sparkContext:  # noqa: N801 - PySpark's name
        master = "spark://spark.example:7077"

    def __init__(self, conf: dict[str, str]) -> None:
        self.conf = conf


class Connected:
    """As a client of Spark Connect has it."""

    __module__ = "pyspark.sql.connect.session"

    def __init__(self, conf: dict[str, str]) -> None:
        self.conf = conf


@pytest.mark.parametrize("kind", [Classic, Connected])
def test_the_session_may_say_where_the_driver_is(kind: Any) -> None:
    session = kind({"spark.flow.driver.host": "127.0.0.1", "spark.driver.host": "10.9.8.7"})

    assert cluster_of(session).addresses() == ("127.0.0.1", "127.0.0.1")


@pytest.mark.parametrize("kind", [Classic, Connected])
def test_an_address_of_another_machine_is_advertised_and_all_local_ones_are_bound(
    kind: Any,
) -> None:
    """A user that forwards ports, or translates addresses, says which one leads here."""
    elsewhere = "203.0.113.7"  # an address for documentation, which no machine has
    session = kind({"spark.flow.driver.host": elsewhere})

    bind, advertised = cluster_of(session).addresses()

    assert advertised == elsewhere
    assert bind == "0.0.0.0"


@pytest.mark.parametrize("kind", [Classic, Connected])
@pytest.mark.parametrize(
    ("conf", "expected"),
    [({}, False), ({"spark.speculation": "false"}, False), ({"spark.speculation": "true"}, True)],
)
def test_it_is_known_whether_tasks_are_copied(
    kind: Any, conf: dict[str, str], expected: bool
) -> None:
    assert cluster_of(kind(conf)).speculates() is expected
