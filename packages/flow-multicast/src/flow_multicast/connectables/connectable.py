"""What all connectables of this package are made of."""

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
    """What connectables have in common that are made of `join` and `connect`.

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
            subscriber: who subscribes.
            last: gives the last run that there is to be, if there is one: when that is over and
                no other one has begun, the subscriber hears its end, and does not wait for the
                next.

        Returns:
            The connection that serves the subscriber, now or when `connect` is called.
        """

    @final
    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        self.join(subscriber)

    @final
    def connect_until_begun(self, callback: Callable[[Disposable], object]) -> None:
        """Connect for those who wait; again, if another one has disposed of that before it began.

        Args:
            callback: see `connect`.
        """
        connection = self.connect(callback)
        while self.current(connection) is not connection:
            connection = self.connect(callback)

    @property
    def upstreams(self) -> tuple[object, ...]:
        """What is run; for `flow explain`."""
        return ()

    @override
    def reset(self) -> None:
        """There is nothing to forget."""

    def current(self, connection: Disposable) -> Disposable:
        """What those wait for now who have waited for `connection`, if that never began."""
        return connection

    def run(self, connection: Disposable) -> object:
        """What identifies the run that those get who wait for `connection`.

        It is the same for one that was disposed of before it began, and for the one after that.
        """
        return connection

    def kept(self) -> Disposable | None:
        """The last run, if its source has ended and newcomers go to it all the same."""
        return None

    def detach(self, connection: Disposable) -> Callable[[], object]:
        """Keep newcomers from joining a connection: it is to be disposed of, or not to be `kept`.

        Called by several threads, or several times, for the same one.

        Returns:
            What disposes of it.
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
