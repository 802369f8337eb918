"""Engines: they run a flow in this process, or at a place to which they move its source."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar, final

from typing_extensions import override

from flow_core.flow import Flow

__all__ = ["OPTIONS", "Engine", "EngineOptions", "LocalEngine", "local_engine"]

T = TypeVar("T")

OPTIONS: Final = ("master", "remote", "spool")
"""The options of `EngineOptions` that an engine need not support; every engine supports `name` and
`brief`."""


@final
@dataclass(frozen=True)
class EngineOptions:
    """The user's options for an engine. An engine never gets an option that it does not support.

    Args:
        master: the address of a cluster's master, for example ``local[*]``.
        remote: the address of a server that keeps the session, for example ``sc://host:15002``.
        spool: a folder or address that both this process and the cluster can reach, through which
            data is sent to the cluster.
        name: the name that the cluster's own tools show for the job.
        brief: whether the job is small: a fast start then matters more than a fast run.
    """

    master: str | None = None
    remote: str | None = None
    spool: str | None = None
    name: str = "flow"
    brief: bool = False


class Engine(Protocol):
    """A place that flows can be moved to; its session, if it needs one, is open.

    A program that takes an engine as an argument runs unchanged on each of them:

    >>> import flow_core as flow
    >>> def squares(engine: Engine) -> Flow[int]:
    ...     return engine.place(flow.range(4).map(lambda n: n * n))
    >>> with local_engine() as engine:
    ...     list(squares(engine))
    [0, 1, 4, 9]
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the engine, for ``flow run --on``."""

    @property
    @abstractmethod
    def facts(self) -> Mapping[str, str]:
        """Facts about the session for the user, such as the cluster's master and version."""

    @abstractmethod
    def place(self, flow: Flow[T], /) -> Flow[T]:
        """Return `flow`, with its first source, and the stages that can run here, moved here."""


@final
class LocalEngine(Engine):
    """This process: a flow stays where it is, in the thread that runs it."""

    __slots__ = ()

    @property
    @override
    def name(self) -> str:
        return "local"

    @property
    @override
    def facts(self) -> Mapping[str, str]:
        """Return an empty mapping: there is no session."""
        return {}

    @override
    def place(self, flow: Flow[T], /) -> Flow[T]:
        """Return `flow` itself."""
        return flow


@contextmanager
def local_engine(options: EngineOptions | None = None) -> Generator[Engine, None, None]:
    """Return the engine ``local``, which has no session to open or close.

    Args:
        options: the user's options; this engine needs none of them.
    """
    yield LocalEngine()
