"""The check whether a server answers where a session will be opened.

The check comes first, because Spark itself keeps trying: a client of Spark Connect for ten minutes,
a driver for one minute.
"""

from __future__ import annotations

import importlib
import os
import socket
import time
import uuid
from typing import Any, Final, cast
from urllib.parse import urlsplit

from flow_spark.errors import SessionStartError
from flow_spark.jobs.redaction import without_secrets_of

__all__ = ["check_master", "check_remote", "is_loopback"]

_TIMEOUT_S: Final = 10.0
_ANSWERS_WITHIN_S: Final = 9.0
_CONNECT_PORT: Final = 15002
_MASTER_PORT: Final = 7077

_UNREACHED: Final = "failed to connect to all addresses"
"""The message of gRPC if there was no connection over which a server could have answered."""

_PROXIES: Final = ("grpc_proxy", "https_proxy", "http_proxy", "HTTPS_PROXY", "HTTP_PROXY")
"""If one of these is set, gRPC reaches servers that this process does not."""


def is_loopback(host: str | None) -> bool:
    """Return whether `host` is this machine.

    A container or a forwarded port may answer there, too.
    """
    return host in {"localhost", "127.0.0.1", "::1"}


def check_remote(remote: str) -> str | None:
    """Try to reach a Spark Connect server.

    Args:
        remote: its address, ``sc://host:port/;options``.

    Returns:
        The version of Spark that it runs; None if it does not answer at once, for example because
        it is just being started, or if PySpark has to report what is wrong with the address.

    Raises:
        SessionStartError: if no such server answers there within ten seconds.
    """
    try:
        server = urlsplit(remote)
        host, port = server.hostname, server.port or _CONNECT_PORT
    except ValueError:
        return None
    if server.scheme != "sc" or host is None:
        return None
    began, shown = time.monotonic(), without_secrets_of(remote, remote)
    error = None
    if not any(map(os.environ.get, _PROXIES)):
        error = _try(host, port, _ANSWERS_WITHIN_S)
    if error is not None:
        raise SessionStartError(
            f"no session at {shown}: nothing answers at {host}, port {port} ({error}). Check the "
            "address, and that a Spark Connect server runs there: it is started by "
            "sbin/start-connect-server.sh of Spark, and listens on port "
            f"{_CONNECT_PORT} unless spark.connect.grpc.binding.port says otherwise."
        ) from error
    try:
        return _asked(remote, _ANSWERS_WITHIN_S - (time.monotonic() - began))
    except _SilentError as silent:
        way_out = _WAYS_OUT[silent.secure].format(port=port)
        said = f"no session at {shown}: {host} answers at port {port}, but not as a Spark Connect "
        said += f"server{' with TLS' if silent.secure else ''} ({silent}). {way_out}"
        raise SessionStartError(without_secrets_of(remote, said)) from None


_WAYS_OUT: Final = {
    True: "With use_ssl=true or a token in the address, a client speaks TLS, and Spark's own "
    "server does not: leave both out, or use the port of the proxy that speaks it.",
    False: "Check the port: a server listens on 15002 unless spark.connect.grpc.binding.port says "
    "otherwise, and {port} may be another service's. If a proxy that speaks TLS stands before it, "
    "say so: ;use_ssl=true.",
}


class _SilentError(Exception):
    """Something listens at the address, but does not use the protocol of a Spark Connect server.

    Args:
        reason: the message of gRPC.
        secure: whether TLS was used.
    """

    def __init__(self, reason: str, secure: bool) -> None:
        super().__init__(reason)
        self.secure: Final = secure


def _asked(remote: str, timeout_s: float) -> str | None:
    """Ask a Spark Connect server for its version.

    Raises:
        _SilentError: if gRPC made no connection, or nothing came over it in time.
    """
    try:
        grpc: Any = importlib.import_module("grpc")  # it has no types
        from pyspark.sql.connect import proto
        from pyspark.sql.connect.client import DefaultChannelBuilder
        from pyspark.sql.connect.proto.base_pb2_grpc import SparkConnectServiceStub
    except (ImportError, SystemExit):
        return None  # opening the session reports it
    try:
        builder: Any = DefaultChannelBuilder(remote)
    except Exception:
        return None  # so does this
    session: dict[str, Any] = {
        "session_id": str(uuid.uuid4()),
        "user_context": proto.UserContext(user_id=builder.userId or "flow"),
    }
    asked: Any = proto.AnalyzePlanRequest(**session)
    asked.spark_version.SetInParent()
    channel: Any = builder.toChannel()
    try:
        stub: Any = cast("Any", SparkConnectServiceStub)(channel)  # it has no types
        options = {"timeout": max(timeout_s, 1.0), "metadata": builder.metadata()}
        answer = stub.AnalyzePlan(asked, **options)
        stub.ReleaseSession(proto.ReleaseSessionRequest(**session), **options)
    except grpc.RpcError as error:
        said = str(error.details()).strip()
        if error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED and _UNREACHED not in said:
            return None  # it may be busy, or may not know this user: opening the session reports it
        raise _SilentError(said, builder.secure) from None
    finally:
        channel.close()
    return str(answer.spark_version.version)


def check_master(master: str) -> None:
    """Try to reach the master of a standalone cluster; other kinds are not checked.

    Args:
        master: its URL, ``spark://host:port``, or the URLs of several masters, ``spark://a:1,b:2``.

    Raises:
        SessionStartError: if nothing answers at any of the addresses, within ten seconds each; or
            if anything but a master answers.
    """
    scheme, _, addresses = master.partition("://")
    if scheme == "sc":
        shown = without_secrets_of(master, master)
        raise SessionStartError(
            f"{shown} is the address of a Spark Connect server, not a master: give it as remote, "
            "session(remote='sc://…') or flow run --remote sc://…"
        )
    if scheme != "spark":
        return
    failures: list[OSError] = []
    for address in addresses.split(","):
        try:
            server = urlsplit(f"//{address}")
            host, port = server.hostname, server.port or _MASTER_PORT
        except ValueError:
            return  # Spark reports what is wrong with it
        error = None if host is None else _try(host, port)
        if error is None:
            return
        failures.append(error)
    raise SessionStartError(
        f"Spark did not start on {master}: nothing answers at {addresses} ({failures[-1]}). Check "
        "the address, and that the master runs there: it prints its URL when it starts, and shows "
        f"it on its web page. Its port is {_MASTER_PORT} unless it was given another one."
    ) from failures[-1]


def _try(host: str, port: int, timeout_s: float = _TIMEOUT_S) -> OSError | None:
    try:
        socket.create_connection((host, port), timeout_s).close()
    except OSError as error:
        return error
    return None
