"""Where tasks are told to find the driver."""

from __future__ import annotations

import socket
from typing import Any

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

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    session: Any = Session()

    assert cluster_of(session).addresses() == ("127.0.0.1", "127.0.0.1")
    assert asked == ["spark.example"]
