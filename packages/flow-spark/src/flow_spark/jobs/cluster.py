"""How tasks find the driver, and how jobs are run and cancelled: classic Spark or Connect."""

from __future__ import annotations

import socket
from abc import abstractmethod
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol, final

from flow_spark.errors import SparkJobError
from flow_spark.jobs.frames import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Cluster", "answering", "cluster_of"]

_LOOPBACK: Final = "127.0.0.1"
_HOST: Final = "spark.flow.driver.host"
"""The setting that says by which name or address tasks reach this process."""

_ANY_PORT: Final = 15002


class Cluster(Protocol):
    """What differs between a driver in this process and a Spark Connect server."""

    @abstractmethod
    def addresses(self) -> tuple[str, str]:
        """Where to listen, and what to tell the tasks."""

    @abstractmethod
    def speculates(self) -> bool:
        """Whether it runs copies of tasks that take long."""

    @abstractmethod
    def collect(self, df: DataFrame, tag: str, name: str) -> list[tuple[int, int, int, int]]:
        """The rows of `df`, from a job that `cancel` finds by `tag`. Blocks."""

    @abstractmethod
    def cancel(self, tag: str) -> None:
        """Cancel what runs under `tag` now."""


@final
class _Classic:
    __slots__ = ("_session",)

    def __init__(self, session: SparkSession) -> None:
        self._session: Final = session

    def addresses(self) -> tuple[str, str]:
        # Not SparkContext.getConf(): it asks the JVM for each of a hundred settings.
        if str(self._session.sparkContext.master).startswith("local"):
            return _LOOPBACK, _LOOPBACK
        conf = self._session.conf
        told = str(conf.get(_HOST, ""))
        if told:
            return _bound_for(told), told
        advertised = str(conf.get("spark.driver.host", socket.gethostname()))
        return str(conf.get("spark.driver.bindAddress", advertised)), advertised

    def speculates(self) -> bool:
        return _speculates(self._session)

    def collect(self, df: DataFrame, tag: str, name: str) -> list[tuple[int, int, int, int]]:
        # Tags belong to a thread of the JVM, which goes with this thread and ends with it.
        context = self._session.sparkContext
        context.addJobTag(tag)
        context.setJobDescription(name)
        return [(row[0], row[1], row[2], row[3]) for row in df.collect()]

    def cancel(self, tag: str) -> None:
        self._session.sparkContext.cancelJobsWithTag(tag)


@final
class _Connect:
    __slots__ = ("_session",)

    def __init__(self, session: SparkSession) -> None:
        self._session: Final = session

    def addresses(self) -> tuple[str, str]:
        """What the session says; else the address by which this machine reaches the server."""
        told = str(self._session.conf.get(_HOST, ""))
        if told:
            return _bound_for(told), told
        host: str = self._session.client.host  # its setting spark.remote is not there to be read
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, _ANY_PORT, type=socket.SOCK_DGRAM
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(address)  # which sends nothing
            own = str(probe.getsockname()[0])
        return own, own

    def speculates(self) -> bool:
        return _speculates(self._session)

    def collect(self, df: DataFrame, tag: str, name: str) -> list[tuple[int, int, int, int]]:
        self._session.addTag(tag)
        return [(row[0], row[1], row[2], row[3]) for row in df.collect()]

    def cancel(self, tag: str) -> None:
        self._session.interruptTag(tag)


def cluster_of(session: SparkSession) -> Cluster:
    """How the cluster behind `session` is reached."""
    if is_connect(session):
        return _Connect(session)
    return _Classic(session)


def _bound_for(host: str) -> str:
    """Where to listen so that `host` leads here: at all addresses, if it is not one of ours.

    It is another machine's where ports are forwarded, or addresses translated. Whoever connects
    has to prove that it belongs to the job.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.bind(address)
    except OSError:
        return "::" if ":" in host else "0.0.0.0"
    return host


def _speculates(session: SparkSession) -> bool:
    return str(session.conf.get("spark.speculation", "false")).lower() == "true"


@contextmanager
def answering(what: str) -> Generator[None, None, None]:
    """Say what has happened if Spark does not answer a call in this block.

    Args:
        what: is lost then.

    Raises:
        SparkJobError: in the place of an error of a connection.
    """
    from py4j.protocol import Py4JNetworkError

    try:
        yield
    except (ConnectionError, Py4JNetworkError) as error:
        raise SparkJobError(
            f"{what} is lost: nothing answers for Spark any more ({error}); its JVM has ended. "
            "What it said last, or the log of the machine, may tell why (out of memory?). Run the "
            "flow in a new session; a stream goes on at its checkpoint"
        ) from error
