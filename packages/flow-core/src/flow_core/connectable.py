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

    Subscribers may come at any time, and their requests count from then on. The operator that has
    made the connectable describes what late, slow and leaving subscribers get. All connectables
    have this in common:

    Order: subscribers that wait for `connect` are admitted in the order in which they have come,
    before the source runs. A subscriber that comes while they are being admitted may be admitted
    before some of them; no subscriber misses an item because of this. Re-entering: a subscriber
    that subscribes or connects from within a signal is served like any other. A run makes room for
    the next one before it sends on_complete or on_error, so a subscriber that subscribes and
    connects from within one of these is in the next run.
    """

    __slots__ = ()

    advice: ClassVar = (
        "such a Connectable waits for connect(): use share, cache, or publish or replay with a "
        "selector"
    )
    """The advice that pipelines show where a flow is needed and this was given."""

    if not TYPE_CHECKING:  # for type checkers, any name would be an attribute then

        def __getattr__(self, name: str) -> object:
            """Raise an error that says what is missing, and where the operators are found."""
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            if not name.startswith("_"):
                if not hasattr(Flow, name):
                    no_such_name(type(self).__name__, name)
                message += (
                    "; it waits for connect(), and is not a flow: continue with "
                    f".ref_count().{name}, .auto_connect().{name} or .flow.{name}"
                )
            raise AttributeError(message, name=name, obj=self)

        def __iter__(self) -> object:
            """Raise an error that says what to do before iterating."""
            raise TypeError(
                f"a {type(self).__name__} waits for connect(), and is not a flow to iterate over: "
                "iterate over .ref_count() or .auto_connect()"
            )

    @abstractmethod
    def connect(self, callback: Callable[[Disposable], object] | None = None) -> Disposable:
        """Run the source for all subscribers, unless it runs already.

        Args:
            callback: gets the connection before the source is subscribed to. If the source's
                ``subscribe`` does not return before the flow has ended, this is the only way to
                stop it.

        Returns:
            The connection. Disposing of it cancels the source; if that source has already ended,
            disposing does nothing, even if another run is under way.
        """

    @abstractmethod
    def reset(self) -> None:
        """Forget the end of the last run, so that new subscribers wait for the next run."""

    @abstractmethod
    def statistics(self) -> Statistics:
        """Return how many subscribers wait, are served, or are slow. Callable from any thread."""

    @property
    def flow(self) -> Flow[T]:
        """Return this connectable with the operators of a `Flow`."""
        return Flow(self)

    @abstractmethod
    def auto_connect(
        self, subscribers: int = 1, on_connect: Callable[[Disposable], object] | None = None
    ) -> Flow[T]:
        """A flow that connects when it has `subscribers` subscribers, and never again.

        Late, slow and leaving subscribers get what the connectable gives them; the run continues
        when all have left. A subscriber that comes after the end, or while the end is being sent,
        gets the end; from `replay` it gets the items as well.

        Args:
            subscribers: how many subscribers are needed; they need not be there at the same time. 0
                connects at once.
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

        Late and slow subscribers get what the connectable gives them. A subscriber that leaves is
        no longer counted; one that comes as the last one leaves is served, by the same run or by
        the next one. When the source has ended and all subscribers have got the end, the next
        subscriber starts a new run, even if it comes from within the end of the old one. A
        subscriber that comes earlier, while a slow one has not got the end yet, belongs to the old
        run.

        Args:
            min_subscribers: how many subscribers it takes to connect.
            grace: how long the run continues without subscribers, in seconds; a subscriber that
                comes during that time joins the run.
            clock: the clock that measures `grace`; None for the clock of the event loop of the
                first subscriber, or of the process if there is no loop.

        Raises:
            TypeError: if `min_subscribers` is not an int, or `grace` is not a time.
            ValueError: if `min_subscribers` is less than 1, or `grace` is NaN.
        """
