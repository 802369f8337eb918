"""Spark as the place where a flow runs: the engine of ``flow run --on spark``."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar, final

from typing_extensions import override

from flow_core.engine import Engine, EngineOptions
from flow_core.flow import Flow
from flow_core.structure import moved
from flow_spark.driver.session import session
from flow_spark.jobs.redaction import without_secrets_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SparkEngine", "spark_engine"]

T = TypeVar("T")


@final
class SparkEngine(Engine):
    """An open Spark session, to which flows can be moved.

    Args:
        spark: the session.
        master: the master that it runs on.
        spool: see `on_spark`.
    """

    __slots__ = ("_master", "_spool", "spark")

    def __init__(self, spark: SparkSession, master: str, spool: str | None = None) -> None:
        self.spark: Final = spark
        self._master: Final = master
        self._spool: Final = spool

    @property
    @override
    def name(self) -> str:
        return "spark"

    @property
    @override
    def facts(self) -> Mapping[str, str]:
        return {"master": self._master, "version": self.spark.version}

    @override
    def place(self, flow: Flow[T], /) -> Flow[T]:
        """Return `flow` with its first source on Spark, where that runs the stages behind it."""
        return moved(flow, lambda source: source.on_spark(self.spark, spool=self._spool))


@contextmanager
def spark_engine(options: EngineOptions) -> Generator[Engine, None, None]:
    """Open a session for a ``with`` block.

    Args:
        options: ``master`` (see `session`), ``remote``, ``spool``, ``name``, and
            ``brief`` for a session with a fast start.

    Raises:
        NoJavaError: if there is no Java runtime for a local driver.
        SessionStartError: if Spark does not start.
    """
    with session(
        options.master,
        remote=options.remote,
        app_name=options.name,
        progress=True,
        fast_start=options.brief,
    ) as spark:
        remote = options.remote and without_secrets_of(options.remote, options.remote)
        yield SparkEngine(spark, remote or str(spark.sparkContext.master), options.spool)
