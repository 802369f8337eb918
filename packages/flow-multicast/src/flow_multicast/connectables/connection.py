"""One run of a connectable: the waiting subscribers, the processor, and the link to the source."""

from __future__ import annotations

import enum
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.demand import UNBOUNDED, add_demand, bad_request
from flow_core.errors import FlowError, none_given
from flow_core.homes import Home, current_home
from flow_core.introspection import Scannable, Statistics
from flow_core.protocols import (
    EMPTY,
    ConditionalSubscriber,
    CoreSubscriber,
    Disposable,
    Empty,
    Processor,
    Subscriber,
    Subscription,
)
from flow_core.serial import BUSY, SerialDrain
from flow_multicast.connectables.inlet import Link
from flow_multicast.processors._hot import MANY, HotProcessor
from flow_multicast.processors.multicast import MulticastProcessor

if TYPE_CHECKING:
    from flow_multicast.connectables.multicast import MulticastConnectable

__all__ = [
    "COMPLETED",
    "Completed",
    "ConditionalMember",
    "Connection",
    "DisconnectedError",
    "Feeder",
    "Member",
    "State",
]

T = TypeVar("T")
R = TypeVar("R")


class DisconnectedError(FlowError):
    """The connection of a subscriber was disposed of, while its source ran."""


@final
class Completed:
    """Stands for the completion of a run, where an error would stand for its failure."""

    __slots__ = ()


COMPLETED: Final = Completed()


class State(enum.Enum):
    """The states of a connection."""

    GATHERING = "subscribers wait for connect()"
    STARTING = "connect() is at work"
    RUNNING = "the source runs"
    OVER = "it has ended, or was disposed of"


@final
class Connection(Disposable, Generic[T, R]):
    """The result of `connect`: disposing of it stops the source.

    If a connection is disposed of before it begins, a new one replaces it and takes over its
    waiting subscribers. Both belong to the same epoch.

    Args:
        owner: the connectable.
        before: the connection before this one; None for the first.
        begun: whether the run of the connection before this one has begun.
    """

    __slots__ = ("__weakref__", "_ends", "_owner", "epoch", "members", "trace")

    def __init__(
        self,
        owner: MulticastConnectable[T, R],
        before: Connection[T, R] | None = None,
        *,
        begun: bool = False,
    ) -> None:
        # The connectable refers to this; while this runs, its feeder refers to the connectable.
        self._owner = weakref.ref(owner)
        self._ends: dict[int, list[BaseException | Completed]] = {}
        """The outcome, as entry 0. The first writer wins."""
        self.epoch: Final[int] = 0 if before is None else before.epoch + begun
        self.members: Final[dict[Member[R], None]] = (
            # The same dict and not a copy: a subscriber that the old connection has let in waits
            # for this one.
            {} if before is None or begun else before.members
        )
        """The subscribers that wait for a processor; the thread that removes a subscriber serves
        it."""
        self.trace: TracebackType | Empty | None = EMPTY
        """The traceback of an `outcome` that is an error, when the processor has sent it."""

    @property
    def outcome(self) -> BaseException | Completed | None:
        """Return the outcome, for subscribers that come too late and have no run to wait for."""
        ends = self._ends.get(0)
        return None if ends is None else ends[0]

    def close(self, outcome: BaseException | Completed) -> bool:
        """Set the outcome; return whether no other thread has set it before."""
        mine = [outcome]
        return self._ends.setdefault(0, mine) is mine

    @property
    def state(self) -> State:
        """The state."""
        owner = self._owner()
        if owner is None or self.outcome is not None:
            return State.OVER
        return owner.state_of(self)

    @property
    @override
    def disposed(self) -> bool:
        """True if the connection was disposed of, or the source has ended."""
        return self.state is State.OVER

    def dispose(self) -> None:
        """Cancel the source. The connectable decides what that means for subscribers."""
        owner = self._owner()
        if owner is not None:
            owner.disconnect(self)

    def statistics(self) -> Statistics:
        """See `Scannable.statistics`."""
        owner = self._owner()
        if owner is None:
            return Statistics(operator="connection", terminated=True)
        return replace(owner.statistics_of(self), operator=owner.name, inners=())

    def __enter__(self) -> Connection[T, R]:
        return self

    def __exit__(self, *_: object) -> None:
        self.dispose()


class Member(CoreSubscriber[R], Subscription, Scannable, Generic[R]):
    """A subscriber that came before its processor, and has this as its subscription already (C24).

    Its requests add up until the processor comes; a cancel removes the member from the list.

    Args:
        downstream: the subscriber.
        owner: the connectable, which has the list of waiting members.
        subscriber: the user's subscriber, for statistics.
    """

    __slots__ = (
        "__weakref__",
        "_asked",
        "_bad",
        "_downstream",
        "_introduced",
        "_link",
        "_owner",
        "connection",
        "subscriber",
    )

    def __init__(
        self,
        downstream: CoreSubscriber[R],
        owner: MulticastConnectable[Any, R],  # Any: the source's items, which do not pass here
        subscriber: Subscriber[R],
    ) -> None:
        self._downstream: CoreSubscriber[R] | None = downstream
        self._owner = weakref.ref(owner)
        self._introduced = False
        """True when on_subscribe has returned, so that other signals may follow (§1.9)."""
        self._asked: list[int] = []
        """Amounts that were requested before there was a processor."""
        self._link: dict[int, Subscription] = {}
        """The processor's subscription, or an `_Ended`, as entry 0: whichever comes first."""
        self._bad: list[ValueError] = []
        """The error of a bad request; the thread that removes it from here sends it."""
        self.subscriber: Subscriber[R] | None = subscriber
        self.connection: weakref.ref[Connection[Any, R]] | None = None
        """The connection that serves this subscriber, or will serve it; for statistics."""

    @property
    def gone(self) -> bool:
        """Return whether the subscriber has cancelled, or made a bad request."""
        return isinstance(self._link.get(0), _Ended)

    @override
    def home(self) -> Home | None:
        downstream = self._downstream
        return None if downstream is None else downstream.home()

    def introduce(self) -> None:
        """Hand this object to the subscriber as its subscription."""
        downstream = self._downstream
        if downstream is not None:
            downstream.on_subscribe(self)
        self._introduced = True
        self._tell()

    def _tell(self) -> None:
        """Send the error of a bad request, as soon as that is allowed."""
        # Both `introduce` and a bad request call this; the `pop` gives the error to one of them.
        if self._introduced:
            try:
                bad = self._bad.pop()
            except IndexError:
                return
            downstream = self._taken()
            if downstream is not None:
                downstream.on_error(bad)

    def _taken(self) -> CoreSubscriber[R] | None:
        """Drop the subscriber (§3.13), and return it."""
        downstream, self._downstream = self._downstream, None
        self.subscriber = None
        return downstream

    def turn_away(self, run: Connection[Any, R]) -> None:
        """Send the end of `run`, which has ended; no other run will come."""
        mark = _Ended()
        if self._link.setdefault(0, mark) is not mark:
            return  # it has cancelled
        downstream, end = self._taken(), run.outcome
        if downstream is None:
            return
        if isinstance(end, DisconnectedError):
            downstream.on_error(DisconnectedError(*end.args))
        elif isinstance(end, BaseException):
            if run.trace is not EMPTY:
                end.__traceback__ = run.trace  # earlier raises have added frames to it (X14)
            downstream.on_error(end)
        else:
            downstream.on_complete()

    @override
    def statistics(self) -> Statistics:
        upstream, connection = self._link.get(0), self.connection
        return Statistics(
            operator="waits for connect()" if upstream is None else "served",
            requested=min(sum(self._asked), UNBOUNDED) if upstream is None else None,
            terminated=self._downstream is None,
            upstream=None if connection is None or self.gone else connection(),
        )

    def _leave(self) -> None:
        """Remove this member from the list of waiting ones."""
        owner = self._owner()
        if owner is not None:
            owner.leave(self)

    # -- for the downstream

    @override
    def request(self, n: int, /) -> None:
        upstream = self._link.get(0)
        if upstream is not None:
            upstream.request(n)  # it also handles a bad request
            return
        bad = bad_request(n)
        if bad is None:
            asked = self._asked
            asked.append(n)
            if len(asked) > MANY:
                asked.append(self._added_up())
            # Read after that: `on_subscribe` does it in the other order.
            upstream = self._link.get(0)
            if upstream is not None:
                self._forward(upstream)
            return
        # From now on no processor is let in, so the error is the only signal (§1.3).
        mark = _Ended()
        upstream = self._link.setdefault(0, mark)
        if upstream is not mark:
            upstream.request(n)
            return
        self._bad.append(bad)
        self._leave()
        self._tell()

    def _added_up(self) -> int:
        """Return the sum of the requested amounts that wait.

        The thread that removes an amount passes it on.
        """
        n = 0
        while self._asked:
            try:
                # Two threads may add up at once. Each amount is popped once, so none is requested
                # twice.
                n = add_demand(n, self._asked.pop())
            except IndexError:
                break
        return n

    def _forward(self, upstream: Subscription) -> None:
        """Request the demand so far from `upstream`."""
        n = self._added_up()
        if n:
            upstream.request(n)

    @override
    def cancel(self) -> None:
        mark = _Ended()
        upstream = self._link.setdefault(0, mark)
        self._ended()
        self._leave()
        if upstream is not mark:
            hooks.cancel(upstream)

    # -- for the processor

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Keep the subscription: the downstream has had its own."""
        if subscription is None:
            raise none_given("on_subscribe")
        # The first entry wins. Later requests go straight to that subscription. Earlier ones are in
        # `_asked`, and `request` reads the link after its append, so one of the two threads
        # forwards them.
        if self._link.setdefault(0, subscription) is not subscription:
            subscription.cancel()
        else:
            self._forward(subscription)

    @override
    def on_next(self, item: R, /) -> None:
        downstream = self._downstream
        if downstream is None:
            hooks.drop_item(item)
        else:
            downstream.on_next(item)

    @override
    def receiver(self) -> Callable[[R], object]:
        """Return the downstream's function: it is called without a frame of this object."""
        downstream = self._downstream
        return self.on_next if downstream is None else downstream.receiver()

    @override
    def on_error(self, error: BaseException, /) -> None:
        downstream = self._ended()
        if downstream is None:
            hooks.drop_error(error)
        else:
            downstream.on_error(error)

    @override
    def on_complete(self) -> None:
        downstream = self._ended()
        if downstream is not None:
            downstream.on_complete()

    @override
    def on_next_raised(self, error: BaseException, /) -> bool:
        downstream = self._ended()
        return downstream is not None and downstream.on_next_raised(error)

    def _ended(self) -> CoreSubscriber[R] | None:
        """Drop everything: the processor has ended this member, which others may keep longer."""
        self._link[0] = _Ended()
        self.connection = None
        return self._taken()


@final
class _Ended(Subscription):
    """A subscription that has ended."""

    __slots__ = ()

    @override
    def request(self, n: int, /) -> None:
        """Do nothing: the subscription has ended (§3.6)."""

    @override
    def cancel(self) -> None:
        """Do nothing: the subscription has ended (§3.7)."""


@final
class ConditionalMember(Member[R], ConditionalSubscriber[R]):
    """A `Member` for a conditional subscriber."""

    __slots__ = ()

    @override
    def try_on_next(self, item: R, /) -> bool:
        downstream = self._downstream
        if isinstance(downstream, ConditionalSubscriber):
            return downstream.try_on_next(item)
        hooks.drop_item(item)
        return True


@final
class Feeder(SerialDrain, CoreSubscriber[T], Subscription, Scannable, Generic[T, R]):
    """Links the source and the processor of one connection, and notices when the run has ended.

    The connection is given up before the processor gets the end (C16, C31): a subscriber that
    subscribes or connects because of the end is part of the next run. The processor is called by
    one thread at a time, also when the connection is disposed of while it takes an item.

    Args:
        owner: the connectable.
        connection: the run.
        processor: the processor to feed.
    """

    __slots__ = (
        "__weakref__",
        "_connection",
        "_ends",
        "_home",
        "_inbox",
        "_owner",
        "_processor",
        "_stopped",
        "_vacant",
        "upstream",
    )

    def __init__(
        self,
        owner: MulticastConnectable[T, R],
        connection: Connection[T, R],
        processor: CoreSubscriber[T] | Processor[T, R],
    ) -> None:
        super().__init__()
        self._owner = owner
        self._connection = connection
        self._processor: CoreSubscriber[T] | Processor[T, R] | None = processor
        self._vacant = [True]
        """Not empty until there is an upstream: the upstream whose call pops the entry is taken."""
        self.upstream: Subscription | None = None
        self._inbox: deque[T] = deque()
        """Items with which the source answers requests made within an on_next. There are never more
        than were requested."""
        self._ends: dict[int, list[BaseException | Completed | None]] = {}
        """The reason why no more items are taken from the source, as entry 0: the end that the
        processor gets after the items in the inbox. The first writer wins."""
        self._stopped = False
        """True if the reason in `_ends` is not the end of the source: then the inbox is dropped,
        too."""
        self._home: Home | None = None

    @property
    def over(self) -> bool:
        """Return whether the source has ended, or is no longer needed."""
        return bool(self._ends)

    @override
    def statistics(self) -> Statistics:
        return Statistics(
            operator=self._owner.name,
            buffered=len(self._inbox),
            cancelled=self._stopped,
            terminated=self.over,
            upstream=self.upstream,
        )

    def belong(self, members: Iterable[Member[R]]) -> None:
        """Use the home of the first waiting subscriber; if there is none, use that of this thread.

        The feeder gets a separate home in the same loop or thread: a subscriber that leaves does
        not wait for tasks that run for the others.
        """
        first = next((member for member in members if not member.gone), None)
        home = current_home() if first is None else first.home()
        self._home = None if home is None else Home(home.loop, home.context)

    @override
    def home(self) -> Home | None:
        return self._home

    # -- for the source

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Keep the source's subscription: it is never forwarded (F35)."""
        if subscription is None:
            raise none_given("on_subscribe")
        try:
            del self._vacant[0]
        except IndexError:
            subscription.cancel()  # §2.5
            return
        self.upstream = subscription
        processor = self._processor
        if self._ends or processor is None:  # it was disposed of before it began (C13)
            self.upstream = None
            subscription.cancel()
        else:
            processor.on_subscribe(self)

    @override
    def on_next(self, item: T, /) -> None:
        if item is None:
            raise none_given("on_next")
        if self._ends:
            hooks.drop_item(item)
            return
        # An item goes past the inbox only if nothing waits there, or it would overtake.
        if self._inbox or self.alone(self._feed, item) is BUSY:
            self._inbox.append(item)
            self.signal()

    def receiver(self) -> Callable[[T], object]:
        """Return the function that takes items; see `CoreSubscriber.receiver`.

        Processors that allow an end while they take an item need no guard in front of them.
        """
        processor = self._processor
        if isinstance(processor, (HotProcessor, MulticastProcessor)):
            return processor.receiver()
        return self.on_next

    @override
    def on_error(self, error: BaseException, /) -> None:
        if error is None:
            raise none_given("on_error")
        if not self._finish(error):
            hooks.drop_error(error)

    @override
    def on_complete(self) -> None:
        self._finish(COMPLETED)

    @override
    def on_next_raised(self, error: BaseException, /) -> bool:
        self.on_error(error)
        return True

    def _finish(self, end: BaseException | Completed) -> bool:
        """Note that the source has ended; return False if an end, or a cancel, was noted before.

        The processor gets the end after the items in the inbox.
        """
        mine: list[BaseException | Completed | None] = [end]
        if self._ends.setdefault(0, mine) is not mine:
            return False
        self.upstream = None
        self.signal()
        return True

    def _feed(self, item: T) -> None:
        processor = self._processor
        if processor is None or self._stopped:
            hooks.drop_item(item)
        else:
            processor.on_next(item)

    # -- for the processor

    @override
    def request(self, n: int, /) -> None:
        upstream = self.upstream
        if upstream is not None:
            upstream.request(n)

    @override
    def cancel(self) -> None:
        """Cancel the source: the processor needs no more items, so this run has ended."""
        self._stopped = True
        self._ends.setdefault(0, [None])
        upstream, self.upstream = self.upstream, None
        self._processor = None
        if upstream is not None:
            hooks.cancel(upstream)
        self._owner.ended(self._connection, None)

    # -- for the connection

    def disconnect(self, error: BaseException | None) -> None:
        """Cancel the source; then send `error` to the processor, when its on_next has returned."""
        mine: list[BaseException | Completed | None] = [error]
        if self._ends.setdefault(0, mine) is not mine:
            return  # the source has ended, and its end is on the way
        self._stopped = True
        upstream, self.upstream = self.upstream, None
        processor = self._processor
        if error is None:
            self._processor = None
            if isinstance(processor, Link):
                processor.pull()
        if upstream is not None:
            hooks.cancel(upstream)
        self.signal()

    @override
    def drain(self) -> None:
        inbox = self._inbox
        while inbox:
            self._feed(inbox.popleft())
        ends = self._ends.get(0)
        if ends is None or ends[0] is None:
            return
        end, ends[0] = ends[0], None
        processor, self._processor = self._processor, None
        # The connection is given up before the end is sent: a subscriber that subscribes again from
        # within its `on_complete` starts the next run (C16, C31).
        self._owner.ended(self._connection, end)
        if processor is None:  # the processor has cancelled just before
            if isinstance(end, BaseException) and not self._stopped:
                hooks.drop_error(end)
        elif isinstance(end, BaseException):
            processor.on_error(end)
        else:
            processor.on_complete()
        self._owner.told(self._connection)
