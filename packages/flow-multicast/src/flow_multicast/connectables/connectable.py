"""The base of all connectables of this package."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar, final

from typing_extensions import override

from flow_core import Flow
from flow_core.clocks import Clock, Seconds
from flow_core.connectable import Connectable
from flow_core.protocols import Disposable, Subscriber
from flow_multicast.connectables.auto_connect import auto_connected
from flow_multicast.connectables.ref_count import ref_counted

__all__ = ["ConnectableBase"]

T = TypeVar("T")


class ConnectableBase(Connectable[T], Generic[T]):
    """The base of connectables that are built on `join` and `connect`.

    >>> import flow_core as flow
    >>> numbers = flow.range(1, 4).publish()
    >>> first = numbers.flow.subscribe(lambda n: print("first", n))
    >>> second = numbers.flow.map(lambda n: n * n).subscribe(lambda n: print("second", n))
    >>> connection = numbers.connect()
    first 1
    second 1
    first 2
    second 4
    first 3
    second 9
    """

    __slots__ = ()

    @abstractmethod
    def join(
        self,
        subscriber: Subscriber[T],
        /,
        last: Callable[[], Disposable | None] = lambda: None,
    ) -> Disposable:
        """Subscribe; before, during or after a run.

        Args:
            subscriber: the subscriber.
            last: returns the connection whose run is the last one, if that is known. When that run
                has ended and no other one has begun, the subscriber gets the terminal of that run,
                and does not wait for another run.

        Returns:
            The connection that serves the subscriber, now or when `connect` is called.
        """

    @final
    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        self.join(subscriber)

    @final
    def connect_until_begun(self, callback: Callable[[Disposable], object]) -> None:
        """Connect for the waiting subscribers, and again until a run has begun.

        It connects again if another thread has disposed of the connection before its run began.

        Args:
            callback: see `connect`.
        """
        connection = self.connect(callback)
        while self.current(connection) is not connection:
            connection = self.connect(callback)

    @property
    def upstreams(self) -> tuple[object, ...]:
        """The source; for `flow explain`."""
        return ()

    @property
    def shared(self) -> object:
        """The identity of the run that all subscribers share; for `flow explain`."""
        return self

    @override
    def reset(self) -> None:
        """Do nothing: by default, there is nothing to forget."""

    def current(self, connection: Disposable) -> Disposable:
        """Return `connection`, or the one that has replaced it before its run began."""
        return connection

    def run(self, connection: Disposable) -> object:
        """Return the identity of the run that subscribers of `connection` get or wait for.

        A connection that was disposed of before its run began, and the connection that replaces it,
        have the same one.
        """
        return connection

    def kept(self) -> Disposable | None:
        """Return the last run, if its source has ended but new subscribers still join it."""
        return None

    def detach(self, connection: Disposable) -> Callable[[], object]:
        """Keep newcomers from joining `connection`: it will be disposed of, or must not be `kept`.

        This may be called by several threads, or several times, for the same connection.

        Returns:
            A function that disposes of the connection.
        """
        return connection.dispose

    @final
    def auto_connect(
        self, subscribers: int = 1, on_connect: Callable[[Disposable], object] | None = None
    ) -> Flow[T]:
        """See `Connectable.auto_connect`.

        >>> import flow_core as flow
        >>> both = flow.range(2).publish().auto_connect(2)
        >>> first = both.subscribe(lambda n: print("first", n))
        >>> second = both.subscribe(lambda n: print("second", n))
        first 0
        second 0
        first 1
        second 1
        """
        return auto_connected(self, subscribers, on_connect)

    @final
    def ref_count(
        self, min_subscribers: int = 1, *, grace: Seconds = 0.0, clock: Clock | None = None
    ) -> Flow[T]:
        """See `Connectable.ref_count`.

        >>> import flow_core as flow
        >>> shared = flow.never().finally_action(lambda: print("over")).publish().ref_count()
        >>> first, second = shared.subscribe(print), shared.subscribe(print)
        >>> first.dispose()
        >>> second.dispose()
        over
        """
        return ref_counted(self, min_subscribers, grace, clock)
