"""Where a flow runs: in this process, or wherever an installed engine moves its source."""

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
"""What an engine may heed of `EngineOptions`; all of them have the name and `brief`."""


@final
@dataclass(frozen=True)
class EngineOptions:
    """What the user asked of an engine; one that has no use for an option is never given it.

    Args:
        master: the address of a cluster's master, for example ``local[*]``.
        remote: the address of a server that keeps the session, for example ``sc://host:15002``.
        spool: a folder or address that this process and the cluster reach, for what is sent there.
        name: what the job is called in the cluster's own tools.
        brief: whether little is to run, so that starting soon counts more than running fast.
    """

    master: str | None = None
    remote: str | None = None
    spool: str | None = None
    name: str = "flow"
    brief: bool = False


class Engine(Protocol):
    """A place that flows can be moved to, with whatever session it needs already open.

    A program that takes one runs unchanged on each of them:

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
        """The name that ``flow run --on`` knows it by."""

    @property
    @abstractmethod
    def facts(self) -> Mapping[str, str]:
        """What a user may want to know about the session, such as its master and version."""

    @abstractmethod
    def place(self, flow: Flow[T], /) -> Flow[T]:
        """The same flow with its first source, and the stages that can follow it, moved here."""


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
        """There are none."""
        return {}

    @override
    def place(self, flow: Flow[T], /) -> Flow[T]:
        """Returns `flow` itself."""
        return flow


@contextmanager
def local_engine(options: EngineOptions | None = None) -> Generator[Engine, None, None]:
    """The engine ``local``, which has no session to open or close.

    Args:
        options: as every engine gets them; there is nothing in them to heed.
    """
    yield LocalEngine()
