"""`Connectable`: a flow whose subscribers gather first, and which runs once for all of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar, final

from flow_core import Flow
from flow_core.clocks import Clock, Seconds
from flow_core.protocols import Disposable, Publisher, Subscriber

__all__ = ["Connectable", "ConnectableStatistics"]

T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True)
class ConnectableStatistics(Generic[T]):
    """A look at a connectable at one moment.

    Args:
        connected: whether it runs.
        waiting: the subscribers that wait for the next connection.
        served: how many subscribers the connection has.
        held_back_by: those of them that have no demand: who the others, or the source, wait for.
        buffered: items that the processor keeps.
        capacity: how many it can keep; 0 if it does not say.
        demand: the smallest demand among those who are served.
        terminated: whether the source of the last run has ended, and that run is still there for
            newcomers, as that of `replay` is.
        processor: what serves the subscribers, whose own ``statistics()`` tells more; None if
            nothing runs.
        upstream: the link to the source, for `flow_core.introspection.links`.
    """

    connected: bool
    waiting: tuple[Subscriber[T], ...]
    served: int
    held_back_by: tuple[Subscriber[T], ...]
    buffered: int
    capacity: int
    demand: int
    terminated: bool
    processor: object | None
    upstream: object | None


class Connectable(Publisher[T], Generic[T]):
    """A publisher that does nothing for its subscribers until `connect` is called.

    >>> import flow_core as flow
    >>> from flow_multicast import publish
    >>> numbers = flow.range(1, 4).pipe(publish())
    >>> first = numbers.flow.subscribe(lambda n: print("first", n))
    >>> second = numbers.flow.map(lambda n: n * n).subscribe(lambda n: print("second", n))
    >>> connection = numbers.connect()
    first 1
    second 1
    first 2
    second 4
    first 3
    second 9

    Subscribers come when they like (C04), and whatever they have requested counts (C24). The
    operator that has made this says what late, slow and leaving ones get. For all of them holds:

    Order: those who wait for `connect` are let in in the order in which they have come, before the
    source runs. One who subscribes just then may be let in before some of them; nobody misses an
    item by that (C25).
    Re-entering: who subscribes or connects from within a signal is served like any other. A run
    gives up its place before its end is told, so that who subscribes and connects because of the
    end is in the next run (C16, C31).
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
            if not name.startswith("_") and hasattr(Flow, name):
                message += (
                    "; it waits for connect(), and is no flow: go on with "
                    f".ref_count().{name}, .auto_connect().{name} or .flow.{name}"
                )
            raise AttributeError(message, name=name, obj=self)

    @abstractmethod
    def join(
        self,
        subscriber: Subscriber[T],
        /,
        last: Callable[[], Disposable | None] = lambda: None,
    ) -> Disposable:
        """Subscribe; before, during or after a run (C04).

        Args:
            subscriber: who subscribes.
            last: gives the last run that there is to be, if there is one: when that is over and
                no other one has begun, the subscriber hears its end, and does not wait for the
                next. Called under a lock: it must not call out.

        Returns:
            The connection that serves the subscriber, now or when `connect` is called.
        """

    @final
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """See `Publisher.subscribe`."""
        self.join(subscriber)

    @abstractmethod
    def connect(self, callback: Callable[[Disposable], object] | None = None) -> Disposable:
        """Run the source for all subscribers, unless it runs already (C08).

        Args:
            callback: gets the connection before the source is subscribed to: with a source that
                does not return before it has ended, this is the only way to stop it (C05).

        Returns:
            The connection. Disposing of it cancels the source; of a connection that is over, it
            does nothing, whatever runs by then (C09).
        """

    @final
    def connect_until_begun(self, callback: Callable[[Disposable], object]) -> None:
        """Connect for those who wait; again, if another one has disposed of that before it began.

        Args:
            callback: see `connect`.
        """
        connection = self.connect(callback)
        while self.current(connection) is not connection:
            connection = self.connect(callback)

    def reset(self) -> None:
        """Forget how the last run has ended, so that who subscribes now waits for the next one."""

    def current(self, connection: Disposable) -> Disposable:
        """What those wait for now who have waited for `connection`, if that never began."""
        return connection

    def kept(self) -> Disposable | None:
        """The last run, if its source has ended and newcomers go to it all the same.

        Called under a lock: it must not call out.
        """
        return None

    def detach(self, connection: Disposable) -> Callable[[], object]:
        """Keep newcomers from joining a connection: it is to be disposed of, or not to be `kept`.

        Called under a lock: it must not call out.

        Returns:
            What disposes of it.
        """
        return connection.dispose

    @abstractmethod
    def statistics(self) -> ConnectableStatistics[T]:
        """Who waits, who is served, and who holds the others back. Any thread."""

    @property
    def flow(self) -> Flow[T]:
        """This connectable with the operators of a `Flow`."""
        return Flow(self)

    @final
    def auto_connect(
        self, subscribers: int = 1, on_connect: Callable[[Disposable], object] | None = None
    ) -> Flow[T]:
        """A flow that connects when so many have subscribed, and never again.

        Late, slow and leaving subscribers: as the connectable has it; the run goes on when all have
        left. Who subscribes when it is over, from within its end too, hears how it has ended; from
        `replay` he gets the items as well.

        >>> import flow_core as flow
        >>> from flow_multicast import publish
        >>> both = flow.range(2).pipe(publish()).auto_connect(2)
        >>> first = both.subscribe(lambda n: print("first", n))
        >>> second = both.subscribe(lambda n: print("second", n))
        first 0
        second 0
        first 1
        second 1

        Args:
            subscribers: how many; they need not be there at the same time. 0 connects at once.
            on_connect: gets the connection, before the source is subscribed to.

        Raises:
            TypeError: if `subscribers` is no int.
            ValueError: if it is negative.
        """
        from flow_multicast.connectables.auto_connect import auto_connected

        return auto_connected(self, subscribers, on_connect)

    @final
    def ref_count(
        self, min_subscribers: int = 1, *, grace: Seconds = 0.0, clock: Clock | None = None
    ) -> Flow[T]:
        """A flow that connects when there are subscribers, and disconnects when all have left.

        >>> import flow_core as flow
        >>> from flow_multicast import publish
        >>> shared = flow.never().finally_action(lambda: print("over")).pipe(publish()).ref_count()
        >>> first, second = shared.subscribe(print), shared.subscribe(print)
        >>> first.dispose()
        >>> second.dispose()
        over

        Late and slow subscribers: as the connectable has it. One that leaves is no longer counted;
        one who comes as the last one leaves is served, by the same run or the next one. When the
        source has ended and all who were there have heard of it, the next subscriber starts a new
        run, from within its own end too; who comes before, as somebody is slow, is part of the old
        one.

        Args:
            min_subscribers: how many it takes to connect.
            grace: how long to go on without subscribers; one who comes meanwhile joins.
            clock: what these are measured by; None is the clock of the process.

        Raises:
            TypeError: if `min_subscribers` is no int, or `grace` no time.
            ValueError: if `min_subscribers` is less than 1, or `grace` NaN.
        """
        from flow_multicast.connectables.ref_count import ref_counted

        return ref_counted(self, min_subscribers, grace, clock)
