"""`Connectable`: a flow whose subscribers gather first, and which runs once for all of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from flow_core.clocks import Clock, Seconds
from flow_core.errors import no_such_name
from flow_core.flow import Flow
from flow_core.introspection import Statistics
from flow_core.protocols import Disposable, Publisher

__all__ = ["Connectable"]

T = TypeVar("T")


class Connectable(Publisher[T], Generic[T]):
    """A publisher that does nothing for its subscribers until `connect` is called.

    Subscribers come when they like, and whatever they have requested counts. The
    operator that has made this says what late, slow and leaving ones get. For all of them holds:

    Order: those who wait for `connect` are let in in the order in which they have come, before the
    source runs. One who subscribes just then may be let in before some of them; nobody misses an
    item by that.
    Re-entering: who subscribes or connects from within a signal is served like any other. A run
    gives up its place before its end is told, so that who subscribes and connects because of the
    end is in the next run.
    """

    __slots__ = ()

    advice: ClassVar = (
        "such a Connectable waits for connect(): use share, cache, or publish or replay with a "
        "selector"
    )
    """What to do where a flow is needed; pipelines say it."""

    if not TYPE_CHECKING:  # for whom anything would be an attribute then

        def __getattr__(self, name: str) -> object:
            """What is missing, and where operators are found."""
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            if not name.startswith("_"):
                if not hasattr(Flow, name):
                    no_such_name(type(self).__name__, name)
                message += (
                    "; it waits for connect(), and is not a flow: go on with "
                    f".ref_count().{name}, .auto_connect().{name} or .flow.{name}"
                )
            raise AttributeError(message, name=name, obj=self)

        def __iter__(self) -> object:
            """Refused: what to do first."""
            raise TypeError(
                f"a {type(self).__name__} waits for connect(), and is not a flow to iterate over: "
                "iterate over .ref_count() or .auto_connect()"
            )

    @abstractmethod
    def connect(self, callback: Callable[[Disposable], object] | None = None) -> Disposable:
        """Run the source for all subscribers, unless it runs already.

        Args:
            callback: gets the connection before the source is subscribed to: with a source that
                does not return before it has ended, this is the only way to stop it.

        Returns:
            The connection. Disposing of it cancels the source; of a connection that is over, it
            does nothing, whatever runs by then.
        """

    @abstractmethod
    def reset(self) -> None:
        """Forget how the last run has ended, so that who subscribes now waits for the next one."""

    @abstractmethod
    def statistics(self) -> Statistics:
        """Who waits, who is served, and who holds the others back. Any thread."""

    @property
    def flow(self) -> Flow[T]:
        """This connectable with the operators of a `Flow`."""
        return Flow(self)

    @abstractmethod
    def auto_connect(
        self, subscribers: int = 1, on_connect: Callable[[Disposable], object] | None = None
    ) -> Flow[T]:
        """A flow that connects when so many have subscribed, and never again.

        Late, slow and leaving subscribers: as the connectable has it; the run goes on when all have
        left. Who subscribes when it is over, from within its end too, hears how it has ended; from
        `replay` he gets the items as well.

        Args:
            subscribers: how many; they need not be there at the same time. 0 connects at once.
            on_connect: gets the connection, before the source is subscribed to.

        Raises:
            TypeError: if `subscribers` is not an int.
            ValueError: if it is negative.
        """

    @abstractmethod
    def ref_count(
        self, min_subscribers: int = 1, *, grace: Seconds = 0.0, clock: Clock | None = None
    ) -> Flow[T]:
        """A flow that connects when there are subscribers, and disconnects when all have left.

        Late and slow subscribers: as the connectable has it. One that leaves is no longer counted;
        one who comes as the last one leaves is served, by the same run or the next one. When the
        source has ended and all who were there have heard of it, the next subscriber starts a new
        run, from within its own end too; who comes before, as somebody is slow, is part of the old
        one.

        Args:
            min_subscribers: how many it takes to connect.
            grace: how long to go on without subscribers; one who comes meanwhile joins.
            clock: what these are measured by; None for that of the loop of the first subscriber,
                or else of the process.

        Raises:
            TypeError: if `min_subscribers` is not an int, or `grace` no time.
            ValueError: if `min_subscribers` is less than 1, or `grace` NaN.
        """
