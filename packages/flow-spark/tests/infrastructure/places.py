"""Where flows run in tests: the modes of Spark that a user may have."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import flow_spark

from .connect import ConnectServer
from .runtime import Runtime
from .standalone import EXECUTORS, StandaloneCluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PLACES", "Place"]

PLACES = ("local", "standalone", "local-cluster", "connect", "connect-standalone")


@dataclass(frozen=True)
class Place:
    """A session, and what it runs on.

    Attributes:
        name: one of `PLACES`.
        spark: the session.
        cluster: the workers, if they are ours to kill.
    """

    name: str
    spark: SparkSession
    cluster: StandaloneCluster | None = None


@contextlib.contextmanager
def server(
    runtime: Runtime, master: str, conf: dict[str, str | int] | None = None
) -> Generator[str, None, None]:
    """A Connect server for the time of a ``with`` block; gives its URL."""
    running = ConnectServer(runtime, master, conf)
    try:
        yield running.url
    finally:
        running.stop()


@contextlib.contextmanager
def opened(
    name: str, runtime: Runtime, cluster: StandaloneCluster | None
) -> Generator[SparkSession, None, None]:
    """A session of the kind that `name` says; what it needs is started and stopped.

    Args:
        name: one of `PLACES`.
        runtime: what to run.
        cluster: for the kinds that need one.
    """
    with contextlib.ExitStack() as stack:
        url = "" if cluster is None else cluster.url
        if name == "standalone":
            session = flow_spark.session(url, conf=EXECUTORS)
        elif name == "connect":
            session = flow_spark.session(remote=stack.enter_context(server(runtime, "local[2]")))
        elif name == "connect-standalone":
            remote = stack.enter_context(server(runtime, url, EXECUTORS))
            session = flow_spark.session(remote=remote)
        elif name == "local-cluster":
            session = flow_spark.session("local-cluster[2,1,1024]")
        else:
            session = flow_spark.session("local[2]")
        yield stack.enter_context(session)
