"""Whether somebody answers where a session is to be opened.

Asked first, because Spark itself keeps trying: a client of Spark Connect for ten minutes, a driver
for one.
"""

from __future__ import annotations

import os
import socket
from typing import Final
from urllib.parse import urlsplit

from flow_spark.errors import SessionStartError
from flow_spark.jobs.redaction import without_secrets_of

__all__ = ["check_master", "check_remote"]

_TIMEOUT_S: Final = 10.0
_CONNECT_PORT: Final = 15002
_MASTER_PORT: Final = 7077

_PROXIES: Final = ("grpc_proxy", "https_proxy", "http_proxy", "HTTPS_PROXY", "HTTP_PROXY")
"""Where one of these is set, gRPC reaches servers that this process does not."""


def check_remote(remote: str) -> None:
    """Try to reach a Spark Connect server.

    Args:
        remote: its address, ``sc://host:port/;options``.

    Raises:
        SessionStartError: if nothing answers there within ten seconds.
    """
    try:
        server = urlsplit(remote)
        host, port = server.hostname, server.port or _CONNECT_PORT
    except ValueError:
        return  # PySpark says what is wrong with it
    if server.scheme != "sc" or host is None or any(map(os.environ.get, _PROXIES)):
        return
    error = _try(host, port)
    if error is not None:
        shown = without_secrets_of(remote, remote)
        raise SessionStartError(
            f"no session at {shown}: nothing answers at {host}, port {port} ({error}). Check the "
            "address, and that a Spark Connect server runs there: it is started by "
            "sbin/start-connect-server.sh of Spark, and listens on port "
            f"{_CONNECT_PORT} unless spark.connect.grpc.binding.port says otherwise."
        ) from error


def check_master(master: str) -> None:
    """Try to reach the master of a standalone cluster; other kinds are not looked at.

    Args:
        master: its URL, ``spark://host:port``, or those of several, ``spark://a:1,b:2``.

    Raises:
        SessionStartError: if nothing answers at any of them, within ten seconds each.
    """
    scheme, _, addresses = master.partition("://")
    if scheme != "spark":
        return
    failures: list[OSError] = []
    for address in addresses.split(","):
        try:
            server = urlsplit(f"//{address}")
            host, port = server.hostname, server.port or _MASTER_PORT
        except ValueError:
            return  # Spark says what is wrong with it
        error = None if host is None else _try(host, port)
        if error is None:
            return
        failures.append(error)
    raise SessionStartError(
        f"Spark did not start on {master}: nothing answers at {addresses} ({failures[-1]}). Check "
        "the address, and that the master runs there: it prints its URL when it starts, and shows "
        f"it on its web page. Its port is {_MASTER_PORT} unless it was given another one."
    ) from failures[-1]


def _try(host: str, port: int) -> OSError | None:
    try:
        socket.create_connection((host, port), _TIMEOUT_S).close()
    except OSError as error:
        return error
    return None
