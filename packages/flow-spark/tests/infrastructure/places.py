"""Places where flows run in tests: the modes of Spark that a user may have."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import flow_spark

from .connect import ConnectServer
from .runtime import Runtime
from .standalone import EXECUTORS, StandaloneCluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["PLACES", "Place"]

AT_ONCE: dict[str, str | int] = {"spark.ui.liveUpdate.period": 0}
"""Spark's status shows each task when it begins and ends, and not every tenth of a second."""

PLACES = ("local", "standalone", "local-cluster", "connect", "connect-standalone")


@dataclass(frozen=True)
class Place:
    """A session, and what it runs on.

    Attributes:
        name: one of `PLACES`.
        spark: the session.
        cluster: the workers, if they are ours to kill.
        server: the Connect server, if there is one.
    """

    name: str
    spark: SparkSession
    cluster: StandaloneCluster | None = None
    server: ConnectServer | None = None

    def running_tasks(self) -> int:
        """The number of tasks on executors now: Spark knows of those, too, whose job has ended."""
        if self.server is not None:
            return self.server.running_tasks()
        jvm_context: Any = self.spark.sparkContext._jsc.sc()
        executors = jvm_context.statusTracker().getExecutorInfos()
        return sum(executor.numRunningTasks() for executor in executors)


@contextlib.contextmanager
def opened(
    name: str, runtime: Runtime, cluster: StandaloneCluster | None
) -> Generator[Place, None, None]:
    """A mode of Spark; what it needs is started and stopped.

    Args:
        name: one of `PLACES`.
        runtime: what to run.
        cluster: for the kinds that need one.
    """
    with contextlib.ExitStack() as stack:
        url = "" if cluster is None else cluster.url
        server: ConnectServer | None = None
        if name.startswith("connect"):
            on, conf = ("local[2]", AT_ONCE) if cluster is None else (url, {**EXECUTORS, **AT_ONCE})
            server = ConnectServer(runtime, on, conf)
            stack.callback(server.stop)
            session = flow_spark.session(remote=server.url)
        elif name == "standalone":
            session = flow_spark.session(url, conf={**EXECUTORS, **AT_ONCE}, fast_start=True)
        elif name == "local-cluster":
            session = flow_spark.session("local-cluster[2,1,1024]", conf=AT_ONCE, fast_start=True)
        else:
            session = flow_spark.session("local[2]", conf=AT_ONCE, fast_start=True)
        yield Place(name, stack.enter_context(session), cluster, server)
