"""What processors have in common whose subscribers do not wait for each other."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar, final

from flow_core import Flow, hooks
from flow_core.demand import UNBOUNDED, add_demand, bad_request
from flow_core.errors import none_given, throw_if_fatal
from flow_core.protocols import (
    ConditionalSubscriber,
    CoreSubscriber,
    Processor,
    Subscriber,
    Subscription,
)
from flow_core.serial import SerialDrain
from flow_core.subscribers import core_subscriber
from flow_multicast._stored import release_frames

__all__ = ["HotProcessor", "Line", "ProcessorStatistics"]

T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True)
class ProcessorStatistics(Generic[T]):
    """A look at a processor at one moment.

    Args:
        subscribers: how many it serves now.
        buffered: items that it keeps.
        demand: the smallest demand among the subscribers, and 0 without subscribers.
        held_back: the subscribers without demand.
        terminated: whether it has ended, and tells every subscriber so.
    """

    subscribers: int
    buffered: int
    demand: int
    held_back: tuple[Subscriber[T], ...]
    terminated: bool


class Line(SerialDrain, Generic[T]):
    """One subscriber of a `HotProcessor`. Made with the permit taken.

    Args:
        owner: the processor.
        subscriber: who subscribed, for statistics.
        downstream: gets the signals.
    """

    __slots__ = (
        "__weakref__",
        "_bad",
        "_conditional",
        "_lock",
        "_receive",
        "downstream",
        "emitted",
        "owner",
        "requested",
        "subscriber",
    )

    def __init__(
        self,
        owner: HotProcessor[T],
        subscriber: Subscriber[T],
        downstream: CoreSubscriber[T],
    ) -> None:
        super().__init__()
        self.owner = owner
        self.subscriber: Subscriber[T] | None = subscriber
        self.downstream: CoreSubscriber[T] | None = downstream
        self._conditional = isinstance(downstream, ConditionalSubscriber)
        self._receive: Callable[[T], object] = (
            downstream.try_on_next
            if isinstance(downstream, ConditionalSubscriber)
            else downstream.on_next
        )
        self._lock = Lock()
        """Guards `requested`, `downstream` and `_receive`. No signal is sent under it."""
        self.requested = 0
        self.emitted = 0
        """Written with the permit."""
        self._bad: ValueError | None = None

    def introduced(self) -> None:
        """The subscriber has its subscription: ask what to call with items."""
        with self._lock:
            downstream = self.downstream
            if downstream is not None and self._bad is None and not self._conditional:
                self._receive = downstream.receiver()

    # -- from the subscriber

    def request(self, n: int, /) -> None:
        """See `Subscription.request`."""
        bad = bad_request(n)
        if self.downstream is None:
            return
        with self._lock:
            if bad is not None:
                self._bad = bad
                self._receive = hooks.drop_item
            else:
                self.requested = add_demand(self.requested, n)
        self.signal()

    def cancel(self) -> None:
        """See `Subscription.cancel`."""
        self.release()
        self.owner.leave(self)
        self.signal()

    def release(self) -> CoreSubscriber[T] | None:
        """Let go of the subscriber (§3.13), and return it to the first caller."""
        with self._lock:
            downstream, self.downstream = self.downstream, None
            self.subscriber = None
            self._receive = hooks.drop_item
        return downstream

    # -- with the permit

    @abstractmethod
    def deliver(self) -> None:
        """Send what there is, as far as the demand goes; `finish` when that was all."""

    def released(self) -> None:
        """The subscriber is gone: let go of what was kept for it."""

    def send(self, item: T) -> bool:
        """Send an item, if there is demand for it. With the permit.

        Returns:
            Whether the subscriber is still there.
        """
        try:
            if self._receive(item) is not False or not self._conditional:
                self.emitted += 1
        except BaseException as error:
            self._raised(error)
        return self.downstream is not None

    def _raised(self, error: BaseException) -> None:
        """The subscriber let `error` escape from its on_next (§2.13): it is out."""
        downstream = self.release()
        self.owner.leave(self)
        throw_if_fatal(error)
        if downstream is None or not downstream.on_next_raised(error):
            hooks.drop_error(error)

    def send_all(self, items: list[T]) -> int:
        """Send items, for which there is demand. With the permit.

        Returns:
            How many were sent, before the subscriber left if it has.
        """
        if self._conditional:
            sent = 0
            for item in items:
                sent += 1
                if not self.send(item) or not self.wanted:
                    break
            return sent
        receive, sent = self._receive, 0
        try:
            for item in items:
                sent += 1
                receive(item)
                if self.downstream is None or self._bad is not None:
                    break
        except BaseException as error:
            self._raised(error)
        self.emitted += sent
        return sent

    def finish(self, error: BaseException | None) -> None:
        """Send the terminal. With the permit."""
        downstream = self.release()
        self.owner.leave(self)
        if downstream is None:
            return
        if error is None:
            downstream.on_complete()
        else:
            downstream.on_error(error)

    @final
    def drain(self) -> None:
        """See `SerialDrain.drain`."""
        if self.downstream is not None:
            bad = self._bad
            if bad is None:
                self.deliver()
            else:
                self.finish(bad)
        if self.downstream is None:
            self.released()

    @property
    def wanted(self) -> bool:
        """Whether the subscriber is there, and has not requested what cannot be (§3.9)."""
        return self.downstream is not None and self._bad is None

    @property
    def demand(self) -> int:
        """How many items may be sent."""
        requested = self.requested
        return requested if requested == UNBOUNDED else requested - self.emitted


class HotProcessor(CoreSubscriber[T], Processor[T, T], Generic[T]):
    """Takes all that its upstream has, and gives it to each subscriber on its own.

    A subclass makes the `Line` of a subscriber, and says what becomes of an item (`accept`).
    """

    __slots__ = ("__weakref__", "_done", "_error", "_lines", "_lock", "_snapshot", "_upstream")

    def __init__(self) -> None:
        self._lock = Lock()
        """Guards all that follows. Nothing is called under it."""
        self._lines: dict[Line[T], None] = {}
        self._snapshot: tuple[Line[T], ...] | None = ()
        """The lines; None if some have joined or left since it was taken."""
        self._done = False
        self._error: BaseException | None = None
        self._upstream: Subscription | None = None

    # -- for subclasses

    @abstractmethod
    def line(self, subscriber: Subscriber[T], downstream: CoreSubscriber[T]) -> Line[T]:
        """The line of a new subscriber."""

    @abstractmethod
    def accept(self, item: T) -> None:
        """An item has come."""

    def begin(self, upstream: Subscription) -> None:
        """There is an upstream: request of it."""
        upstream.request(UNBOUNDED)

    def joins(self, line: Line[T]) -> None:
        """A line joins now, and gets what comes from now on. Under the lock."""

    @property
    def ended(self) -> bool:
        """Whether nothing more will be accepted."""
        return self._done

    @property
    def error(self) -> BaseException | None:
        """What it has ended with."""
        return self._error

    @property
    def lines(self) -> tuple[Line[T], ...]:
        """The lines of all subscribers at this moment."""
        snapshot = self._snapshot
        if snapshot is None:
            with self._lock:
                snapshot = self._snapshot = tuple(self._lines)
        return snapshot

    # -- towards the subscribers

    @property
    def flow(self) -> Flow[T]:
        """This processor with the operators of a `Flow`."""
        return Flow(self)

    @property
    def has_subscribers(self) -> bool:
        """Whether somebody is subscribed now."""
        return bool(self._lines)

    def left(self) -> None:
        """Some line has left. Without the lock."""

    @final
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """See `Publisher.subscribe`."""
        downstream = core_subscriber(subscriber)
        line = self.line(subscriber, downstream)
        # The permit is held, so that nothing is signalled before on_subscribe has returned (§1.9).
        line.try_enter()
        try:
            downstream.on_subscribe(line)
        except BaseException:
            line.release()
            line.run_entered()
            raise
        line.introduced()
        with self._lock:
            if line.downstream is not None and not self._done:  # who leaves later is found here
                self._lines[line] = None
                self._snapshot = None
            self.joins(line)
        line.run_entered()

    def leave(self, line: Line[T]) -> None:
        """A subscriber has cancelled, or has got its terminal."""
        with self._lock:
            known = self._lines.pop(line, line) is None
            if known:
                self._snapshot = None
        if known:
            self.left()

    def statistics(self) -> ProcessorStatistics[T]:
        """Who is served, and what waits. Any thread."""
        demand, held_back = UNBOUNDED, list[Subscriber[T]]()
        lines = self.lines
        for line in lines:
            subscriber, left = line.subscriber, max(line.demand, 0)
            demand = min(demand, left)
            if not left and subscriber is not None:
                held_back.append(subscriber)
        return ProcessorStatistics(
            subscribers=len(lines),
            buffered=self.buffered,
            demand=demand if lines else 0,
            held_back=tuple(held_back),
            terminated=self._done,
        )

    @property
    def buffered(self) -> int:
        """How many items it keeps."""
        return 0

    # -- from whoever feeds it

    def full(self) -> bool:
        """Whether an item that came now would be too much for a subscriber."""
        return False

    @final
    def offer(self, item: T) -> bool:
        """Take `item`, unless it would be too much for a subscriber. One call at a time (§1.3).

        Returns:
            False if it would, or if the processor has ended: nobody has got it.

        Raises:
            NoneItemError: if it is None (§2.13).
        """
        if item is not None and (self._done or self.full()):
            return False
        self.on_next(item)
        return True

    @final
    def on_subscribe(self, subscription: Subscription, /) -> None:
        """See `Subscriber.on_subscribe`. Takes one upstream, and cancels every other (§2.5)."""
        if subscription is None:
            raise none_given("on_subscribe")
        with self._lock:
            taken = self._upstream is None and not self._done
            if taken:
                self._upstream = subscription
        if taken:
            self.begin(subscription)
        else:
            subscription.cancel()

    @final
    def on_next(self, item: T, /) -> None:
        """See `Subscriber.on_next`. One call at a time (§1.3)."""
        if item is None:
            raise none_given("on_next")
        if self._done:
            hooks.drop_item(item)
        else:
            self.accept(item)

    @final
    def on_error(self, error: BaseException, /) -> None:
        """See `Subscriber.on_error`."""
        if error is None:
            raise none_given("on_error")
        if not self._end(error):
            hooks.drop_error(error)

    @final
    def on_complete(self) -> None:
        """See `Subscriber.on_complete`."""
        self._end(None)

    @final
    def on_next_raised(self, error: BaseException, /) -> bool:
        """See `CoreSubscriber.on_next_raised`: the upstream is over; the subscribers hear why."""
        self.on_error(error)
        return True

    def _end(self, error: BaseException | None) -> bool:
        """Tell all subscribers; False if that was done before."""
        with self._lock:
            if self._done:
                return False
            self._error = error
            self._done = True
            self._upstream = None
            lines = tuple(self._lines)
        raised: BaseException | None = None
        for line in lines:
            try:
                line.signal()
            except BaseException as fatal:
                raised = raised or fatal
        if error is not None:
            release_frames(error)
        if raised is not None:
            raise raised
        return True
