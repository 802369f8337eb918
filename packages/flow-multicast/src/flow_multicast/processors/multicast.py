"""`MulticastProcessor`: the items of one upstream to many subscribers, in lock-step."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from operator import length_hint
from types import TracebackType
from typing import Any, Final, Generic, TypeVar, cast, final

from typing_extensions import override

from flow_core import Flow, hooks
from flow_core.demand import (
    DEFAULT_PREFETCH,
    UNBOUNDED,
    bad_request,
    check_prefetch,
    replenish_limit,
)
from flow_core.errors import (
    FlowError,
    MissingBackpressureError,
    NoneItemError,
    ProtocolViolationError,
    leave,
    throw_if_fatal,
)
from flow_core.introspection import Scannable, Statistics
from flow_core.protocols import (
    EMPTY,
    ConditionalSubscriber,
    CoreSubscriber,
    Empty,
    Fusion,
    Processor,
    QueueSubscription,
    Subscriber,
    Subscription,
)
from flow_core.serial import SerialDrain
from flow_core.stored import release_frames
from flow_core.subscribers import core_subscriber
from flow_multicast.processors._hot import MANY, NEVER, ignore

__all__ = ["MulticastProcessor"]

T = TypeVar("T")


@final
class _Standalone(Subscription):
    """The upstream of a processor that is fed by hand."""

    __slots__ = ("capacity",)

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity

    @override
    def request(self, n: int, /) -> None:
        """Do nothing: code that feeds by hand goes by the result of `MulticastProcessor.offer`."""

    @override
    def cancel(self) -> None:
        pass


@final
class _MulticastSubscription(Subscription, Scannable, Generic[T]):
    """One subscriber's place among the others.

    Positions count the items that the processor has sent since it began. In lock-step all
    subscribers stand at the same position, and none needs a separate count (M12): a subscriber may
    get items up to the position ``start + requested``.
    """

    __slots__ = (
        "__weakref__",
        "_place",
        "_processor",
        "announced",
        "asked",
        "bad",
        "conditional",
        "deliver",
        "downstream",
        "requested",
        "start",
        "subscriber",
        "taken",
    )

    def __init__(
        self,
        processor: MulticastProcessor[T],
        subscriber: Subscriber[T],
        downstream: CoreSubscriber[T],
    ) -> None:
        self._processor = processor
        self.subscriber: Subscriber[T] | None = subscriber
        self.downstream: CoreSubscriber[T] | None = downstream
        self.conditional = isinstance(downstream, ConditionalSubscriber)
        self.deliver: Callable[[T], object] = (
            downstream.try_on_next
            if isinstance(downstream, ConditionalSubscriber)
            else downstream.on_next
        )
        self._place: tuple[list[Callable[[T], object]], int] | None = None
        self.asked: list[int] = []
        """Amounts that were requested, and that the drain has not added up yet."""
        self.requested = 0
        """All demand so far; changed by the drain only."""
        self.start = 0
        """The position where the subscriber joined, plus the number of items that it dropped;
        changed by the drain only."""
        self.bad: ValueError | None = None
        self.announced = False
        """True when on_subscribe has returned, so that other signals may follow."""
        self.taken = False
        """True when the drain has taken notice of this subscriber."""

    def introduced(self) -> None:
        """Note that the subscriber has its subscription, and get its function for items."""
        downstream = self.downstream
        if downstream is not None and self.bad is None and not self.conditional:
            self.deliver = downstream.receiver()
            if self.downstream is None or self.bad is not None:
                self.mute()

    @override
    def request(self, n: int, /) -> None:
        bad = None if n.__class__ is int and n > 0 else bad_request(n)
        if self.downstream is None or self.bad is not None:
            return
        processor = self._processor
        if bad is None:
            if self.requested >= UNBOUNDED:
                return
            asked = self.asked
            asked.append(n)
            if self.announced:
                if len(asked) > MANY:
                    processor._changes[self] = None
                processor.signal()
        else:
            self.bad = bad
            self.leave()

    @override
    def cancel(self) -> None:
        """Cancel; the others get at once the items that only this subscriber held back (M10)."""
        if self.downstream is None:
            return
        self.release()
        self.leave()

    def leave(self) -> None:
        """Ask the drain to remove this. If it is not announced yet, `subscribe` asks later."""
        self.mute()
        processor = self._processor
        if self.announced:  # read after it was muted: `subscribe` does the same in the other order
            processor._note(self)
            processor.signal()

    def add_up(self) -> None:
        """Add up the demand. Only the drain calls this."""
        asked = self.asked
        while count := len(asked):
            # There is no call between these two: Ctrl-C loses and doubles nothing.
            self.requested += asked[0] if count == 1 else sum(asked[:count])
            del asked[:count]

    def release(self) -> CoreSubscriber[T] | None:
        """Drop the subscriber (§3.13), and return it, or None if it was dropped before."""
        downstream, self.downstream = self.downstream, None
        self.mute()
        self.subscriber = None
        return downstream

    def disown(self) -> None:
        """Let go of the processor: after the end, this must not keep its items alive (§3.13).

        A processor without subscribers takes its place. Calls that another thread still makes on
        this object, such as a request that began earlier, change nothing in that processor.
        """
        self._processor = _NOBODY

    @override
    def statistics(self) -> Statistics:
        over = self.downstream is None
        left = UNBOUNDED
        requested = self.requested + sum(self.asked)
        if requested < UNBOUNDED:
            left = max(self.start + requested - self._processor._sent, 0)
        return Statistics(
            operator="served",
            requested=0 if over else left,
            terminated=over,
            error=self.bad,
            upstream=None if over else self._processor,
        )

    def place(self, calls: list[Callable[[T], object]], index: int) -> None:
        """Set the place of `deliver` among the functions that the drain calls with each item."""
        # `mute` does this in the opposite order: it finds this place, or we see here that it has
        # run. If it has found the place before this one, it clears this one: we see that here, too.
        self._place = (calls, index)
        if self.deliver is ignore:
            calls[index] = ignore
            self._place = None

    def mute(self) -> None:
        """Stop sending items; an item that is just being sent skips this subscriber (M34)."""
        self.deliver = ignore
        # Two threads may do this at a time: a thread that finds no place relies on no item being
        # sent there.
        place = self._place
        if place is not None:
            calls, index = place
            calls[index] = ignore
            self._place = None


@final
class MulticastProcessor(SerialDrain, CoreSubscriber[T], Processor[T, T], Generic[T]):
    """Sends the items of one upstream to all its subscribers, in lock-step.

    An item goes out when every current subscriber has requested it. So all get the same items in
    the same order, the slowest sets the pace, and none misses an item from its subscription on.
    Subscribers may come and go at any time. A subscriber that leaves no longer holds the others
    back; without subscribers, items wait for the next subscriber.

    A processor is fed by being subscribed to a publisher, or by hand:

    >>> import flow_core as flow
    >>> numbers = MulticastProcessor[int](prefetch=4)
    >>> squares = numbers.flow.map(lambda n: n * n).subscribe(lambda n: print("square", n))
    >>> halves = numbers.flow.map(lambda n: n / 2).subscribe(lambda n: print("half", n))
    >>> flow.range(1, 3).subscribe(numbers)
    square 1
    half 0.5
    square 4
    half 1.0

    Demand: the smallest demand of all subscribers; an item that a conditional subscriber dropped
    (such as a filter) does not use up its demand. Upstream: `prefetch` items at first, then 75 % of
    that whenever as many were sent.
    Thread: any thread that signals; one at a time. No lock is held while a subscriber is called.
    Fusion: asks its upstream for SYNC or ASYNC across threads, and needs no queue then; grants
    none.
    Errors: a subscriber that raises is cancelled, and the others continue.

    Args:
        prefetch: how many items may wait in the processor, at least 1. More items of a publisher
            fail the flow with `MissingBackpressureError`, after the items that wait.
        ref_count: whether the processor cancels its upstream and ends when its last subscriber
            leaves while it has an upstream. If not, it keeps running, and waits for the next
            subscriber.

    Raises:
        TypeError: if `prefetch` is not an int.
        ValueError: if `prefetch` is less than 1.
    """

    __slots__ = (
        "__weakref__",
        "_abandoned",
        "_calls",
        "_capacity",
        "_changes",
        "_common",
        "_conditionals",
        "_direct",
        "_ends",
        "_fed",
        "_fused",
        "_holder",
        "_lines",
        "_member",
        "_members",
        "_prefetch",
        "_promised",
        "_queue",
        "_ref_count",
        "_refill",
        "_sent",
        "_stopped",
        "_sync",
        "_terminated",
        "_trace",
        "_upstream",
    )

    def __init__(self, prefetch: int = DEFAULT_PREFETCH, *, ref_count: bool = False) -> None:
        super().__init__()
        self._prefetch = check_prefetch(prefetch)
        self._capacity = prefetch
        self._ref_count = ref_count
        self._queue: deque[T] = deque()
        self._member: dict[int, object] = {}
        """The first upstream (`setdefault`), for good."""
        self._upstream: Subscription | None = None
        self._fused: QueueSubscription[T] | None = None
        self._sync = False
        self._fed = False
        """True if an item was fed by hand, and may have waited."""
        self._ends: dict[int, list[BaseException | None]] = {}
        """The first end (`setdefault`): with an error or None (M06)."""
        self._changes: dict[_MulticastSubscription[T] | None, None] = {}
        """Subscriptions that want to join or leave, in order. The drain looks at them after every
        item. None stands for all subscriptions that have come and gone meanwhile."""

        # The following belong to the drain.
        self._promised = 0
        """The places in the queue before this position are taken, or promised to the upstream by a
        request. Items that are fed by on_next without an upstream are not counted."""
        self._terminated = self._abandoned = False
        self._stopped = False
        """True if a fatal error passed through, and the members still have to get the end."""
        self._trace: TracebackType | None = None
        self._members: dict[_MulticastSubscription[T], None] = {}
        self._conditionals = 0
        self._lines: list[_MulticastSubscription[T]] = []
        """The members in their order, and some that have left: `_line_up` removes these."""
        self._calls: list[Callable[[T], object]] = []
        """The functions of the members in `_lines`. A member that leaves puts a function that does
        nothing in its place."""
        self._sent = 0
        """The position: how many items were sent."""
        self._common = 0
        """As far as is known, all members want the items up to this position."""
        self._direct = 0
        """`on_next` may send items itself up to this position; only without fusion."""
        self._holder: int | None = None
        """The member that is known to hold the others back: an index into `_lines`."""
        self._refill = NEVER
        """The position at which to request more of the upstream; 0 when an upstream has just
        come."""

    def __repr__(self) -> str:
        counted = ", ref_count=True" if self._ref_count else ""
        return f"MulticastProcessor(prefetch={self._prefetch}{counted})"

    # -- for the subscribers

    @property
    def flow(self) -> Flow[T]:
        """This processor with the operators of a `Flow`."""
        return Flow(self)

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """Serve `subscriber` too, from the next item on, or send it the end.

        Raises:
            NoneItemError: if `subscriber` is None.
        """
        downstream = core_subscriber(subscriber)
        line = _MulticastSubscription(self, subscriber, downstream)
        # It joins when on_subscribe has returned: a terminal needs no demand, and could come before
        # it or in the midst of it (§1.9, M20). A subscriber that has cancelled there joins and
        # leaves in one step, and is not kept (M21).
        try:
            downstream.on_subscribe(line)
        except BaseException:
            line.release()
            line.disown()
            raise
        line.introduced()
        line.announced = True
        self._note(line)
        self.signal()

    def _note(self, line: _MulticastSubscription[T]) -> None:
        """Let the drain look at `line`, unless that is never needed."""
        changes = self._changes
        if (
            line.taken
            or line.downstream is not None
            or line.bad is not None
            or changes.pop(line, EMPTY) is EMPTY
        ):
            changes[line] = None
        else:
            # It has gone before it was served: it is not kept until a slow drain looks.
            changes[None] = None
            line.disown()

    @property
    def has_subscribers(self) -> bool:
        """True if there is a subscriber now."""
        return any(line.downstream is not None for line in self._members.copy())

    @property
    def terminated(self) -> bool:
        """True if this has received the end, and accepts nothing more.

        Items that wait come before the end.
        """
        return bool(self._ends)

    def statistics(self) -> Statistics:
        """Return the statistics: subscribers, items that wait, and the slowest subscribers.

        Thread: any. While another thread serves the subscribers, the figures may be from slightly
        different moments.

        >>> from flow_core.subscribers import CallbackSubscriber
        >>> numbers = MulticastProcessor[int]()
        >>> quick, slow = CallbackSubscriber[int](), CallbackSubscriber[int](prefetch=1)
        >>> for subscriber in (quick, slow):
        ...     numbers.subscribe(subscriber)
        >>> numbers.statistics().requested
        1
        """
        sent, upstream = self._sent, self._upstream
        demand = UNBOUNDED
        count = 0
        holders: list[Subscriber[T]] = []
        for line in self._members.copy():
            subscriber = line.subscriber
            if subscriber is None:
                continue
            count += 1
            requested = line.requested + sum(line.asked)
            if requested >= UNBOUNDED:
                continue
            left = max(line.start + requested - sent, 0)
            demand = min(demand, left)
            if left == 0:
                holders.append(subscriber)
        return Statistics(
            operator=repr(self),
            requested=demand if count else 0,
            buffered=len(self._queue),
            capacity=self._capacity,
            cancelled=self._abandoned,
            terminated=self._terminated,
            upstream=None if isinstance(upstream, _Standalone) else upstream,
            subscribers=count,
            held_back_by=tuple(holders),
        )

    # -- by hand

    def start(self) -> None:
        """Work without an upstream: the processor is fed by `offer`, or by `on_next`.

        The call counts as an upstream: with `ref_count`, the processor ends when the last
        subscriber leaves, and if it is subscribed to a publisher later, that subscription is
        cancelled.

        >>> numbers = MulticastProcessor[int](prefetch=2)
        >>> numbers.start()
        >>> [numbers.offer(n) for n in (1, 2, 3)]
        [True, True, False]

        Raises:
            ProtocolViolationError: if the processor has an upstream, or was started by
                `start_unbounded`.
        """
        self._start(self._prefetch)

    def start_unbounded(self) -> None:
        """Work without an upstream, like `start`, but with room for any number of items.

        Items wait for the slowest subscriber, so the slower it is, the more memory is needed.

        Raises:
            ProtocolViolationError: if the processor has an upstream, or was started by `start`.
        """
        self._start(UNBOUNDED)

    def _start(self, capacity: int) -> None:
        mine = _Standalone(capacity)
        before = self._member.setdefault(0, mine)
        if before is mine:
            self._capacity = capacity
            self._upstream = mine
        elif not isinstance(before, _Standalone):
            raise ProtocolViolationError(
                f"{self!r} is fed already, by {self._upstream!r}; start a new one, before anything "
                "else"
            )
        elif before.capacity != capacity:
            raise ProtocolViolationError(
                f"{self!r} was started already, with another capacity; start it once"
            )

    def offer(self, item: T) -> bool:
        """Send `item`, if there is room for it that was not promised to an upstream.

        A later upstream gets all the room that is left, and keeps it. So offer items before there
        is an upstream, or without one.

        Thread: any; items that are offered at the same time are sent in some order. Several threads
        may find the same free place: each of them may then exceed `prefetch` by one item.

        Returns:
            False if `prefetch` items wait, if there is an upstream, or if the flow has ended.

        Raises:
            NoneItemError: if `item` is None.
        """
        if item is None:
            raise _none("offer")
        self._fed = True
        if self.room() == 0:
            return False
        self._queue.append(item)
        self.signal()
        return True

    def room(self) -> int:
        """Return how many items `offer` would take now, if no subscriber requested any."""
        upstream = self._upstream
        if self._ends or not (upstream is None or isinstance(upstream, _Standalone)):
            return 0
        return max(self._capacity - len(self._queue), 0)

    # -- signals from the upstream

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Take the first upstream; cancel every other one."""
        if subscription is None:
            raise _none("on_subscribe")
        mine = object()
        if self._member.setdefault(0, mine) is not mine:
            subscription.cancel()
            return
        self._upstream = subscription
        if self._ends:  # read now: a thread that ends it later finds the upstream
            self._upstream = None
            subscription.cancel()
            return
        fused: QueueSubscription[T] | None = None
        # Items that were fed by hand before come first, and wait in the queue.
        if isinstance(subscription, QueueSubscription) and not self._queue:
            # The thread that requests may be the one that polls: functions of the user stay out
            # (F39).
            mode = subscription.request_fusion(Fusion.ANY | Fusion.THREAD_BOUNDARY)
            if mode == Fusion.SYNC:
                self._sync = True
                self._fused = subscription
                self._ends.setdefault(0, [None])
                self.signal()
                return
            if mode == Fusion.ASYNC:
                # isinstance knows the class, but not the type of its items.
                fused = cast("QueueSubscription[T]", subscription)
        # If no item was ever fed by hand, all places are free. Otherwise only the drain knows.
        room = 0 if self._fed or self._sent else self._capacity
        self._promised = room
        self._refill = 0  # the drain reads that before it polls
        self._fused = fused
        self.signal()
        if room:
            subscription.request(room)

    @override
    def on_next(self, item: T, /) -> None:
        """Take an item. One thread at a time calls this; any number may call `offer`."""
        if item is None:
            raise _none("on_next")
        queue, permit = self._queue, self._permit
        # The fast path, if no other item waits and all members are known to want this one: the item
        # is sent under the drain's permit, but bypasses the queue. `_missed` first means that there
        # is earlier work, which comes first; later, that another thread did not get the permit.
        if self._fused is None and not queue:
            try:
                del permit[0]
            except KeyError:
                pass  # another caller has the permit: the item waits
            else:
                # Up to the next `try` there is no call: Ctrl-C cannot take the permit away.
                if self._sent < self._direct and not self._missed:
                    try:
                        self._sent += 1
                        if self._conditionals:
                            self._send_conditionally(item)
                        else:
                            serving = iter(self._calls)
                            for deliver in serving:
                                try:
                                    deliver(item)
                                except BaseException as error:
                                    self._raised(self._lines[~length_hint(serving)], error)
                    except BaseException as escaped:
                        self._stop(escaped)
                        raise
                    finally:
                        permit[0] = True
                    if self._missed:
                        self.signal()
                    return
                permit[0] = True
        if self._ends or self._fused is not None:
            if item is not EMPTY:  # EMPTY means that there is something to poll
                hooks.drop_item(item)
        elif len(queue) < self._capacity or self._is_promised():
            self._fed = self._fed or self._upstream is None
            queue.append(item)
        else:
            self._overflow(item)
        self.signal()

    @override
    def on_next_raised(self, error: BaseException, /) -> bool:
        """End with `error`: the upstream has ended; the subscribers get the error."""
        self.on_error(error)
        return True

    @override
    def on_error(self, error: BaseException, /) -> None:
        """Keep the error; the items that wait are sent before it."""
        if error is None:
            raise _none("on_error")
        if self._end(error):
            self.signal()
        elif self._stopped:  # by the cause of this one; see `leave`
            self._stopped = False
            self._ends[0] = [error]
            self.signal()
        else:
            hooks.drop_error(error)

    @override
    def on_complete(self) -> None:
        """Note that the upstream has completed; the items that wait are sent first."""
        if self._end(None):
            self.signal()

    def _end(self, error: BaseException | None) -> bool:
        """Accept no more items; return False if that was so already (M25)."""
        end = [error]
        return self._ends.setdefault(0, end) is end

    def _is_promised(self) -> bool:
        """Return whether items fed by hand may have taken room promised to the upstream."""
        upstream = self._upstream
        by_hand = upstream is None or isinstance(upstream, _Standalone)
        return self._fed and not by_hand and len(self._queue) < 2 * self._capacity

    def _overflow(self, item: T) -> None:
        hooks.drop_item(item)
        now = self.statistics()
        error = MissingBackpressureError(
            f"{self!r} got more items than it has asked for, while {now.buffered} wait in it: "
            f"{len(now.held_back_by)} of its {now.subscribers} subscribers have not requested. Put "
            "a back-pressure operator before it, or feed it by offer(), which says when it is full"
        )
        if self._end(error) and self._upstream is not None:
            hooks.cancel(self._upstream)

    # -- the drain

    @override
    def drain(self) -> None:
        try:
            self._drain()
        except BaseException as escaped:
            self._stop(escaped)
            raise

    def _drain(self) -> None:
        changes, queue = self._changes, self._queue
        item: T | Empty = EMPTY
        while True:
            if self._sent >= self._refill and not self._replenish():
                return
            # The end is read before the queue, or it could overtake the last item (M33); and the
            # queue before the changes: a subscriber that joined before an item was sent gets it.
            done, fused, sent = bool(self._ends), self._fused, self._sent
            until = sent + len(queue)
            if changes:
                self._reconcile()
            if self._terminated:
                self._terminate()
                return
            take: Callable[[], T | Empty] = queue.popleft
            if fused is not None:
                until = NEVER
                take = fused.poll
            elif until == sent:
                if done:
                    self._terminate()
                return
            if sent >= self._common and not self._everybody_wants(sent):
                if done and fused is not None and self._exhausted(fused):
                    self._terminate()
                return
            self._direct = min(self._common, self._refill - 1)
            until = min(until, self._common, self._refill)
            calls = self._calls
            while sent < until:
                try:
                    item = take()
                except BaseException as error:
                    throw_if_fatal(error)
                    self._fail(error)
                    return
                if item is EMPTY:
                    break
                self._sent = sent = sent + 1
                if self._conditionals:
                    self._send_conditionally(item)
                else:
                    serving = iter(calls)
                    for deliver in serving:
                        try:
                            deliver(item)
                        except BaseException as error:
                            self._raised(self._lines[~length_hint(serving)], error)
                # A subscriber joined, left, or was cancelled: continue with the others (M32).
                if changes:
                    break
            if item is EMPTY:
                if done:
                    self._terminate()
                return

    def _replenish(self) -> bool:
        """Request as many items as there is room for.

        The result is False if the upstream fails at that.
        """
        sent, upstream = self._sent, self._upstream
        kept = sent + len(self._queue)
        promised = max(self._promised, kept)
        room = max(sent + self._capacity - promised, 0)
        coming = self._refill == 0 and promised > kept  # the request of `on_subscribe`
        self._promised = promised + room
        self._refill = refill = sent + (replenish_limit(self._prefetch) if room or coming else 1)
        self._direct = min(self._direct, refill - 1)
        if room and upstream is not None and not self._ends:
            try:
                upstream.request(room)
            except BaseException as error:  # §3.16
                throw_if_fatal(error)
                self._fail(error)
                return False
        return True

    def _everybody_wants(self, position: int) -> bool:
        """Return whether there are members, which all want the item at `position`.

        This also finds out up to which position all of them want items.

        While no item is sent, demand only grows, and members that leave count as wanting
        everything: a member that was found to want the item still does, and the search continues at
        the member that held the item back. So each member is checked only a few times per item,
        however many requests, joins and leaves there are.
        """
        lines, holder = self._lines, self._holder
        if not self._members:
            return False
        if holder is not None:
            for index in range(holder, len(lines)):
                line = lines[index]
                if line.asked:
                    line.add_up()
                if line.start + line.requested <= position:
                    self._holder = index
                    return False
        for line in lines:
            if line.asked:
                line.add_up()
        wanted = [line.start + line.requested for line in lines]
        self._common = common = min(wanted)
        if common > position:
            self._holder = None
            return True
        self._holder = wanted.index(common)
        return False

    def _reconcile(self) -> None:
        """Let subscriptions join and leave."""
        changes, members = self._changes, self._members
        left = False
        while changes:
            for line in list(changes):
                if line is not None:
                    line.taken = True  # before it is removed: see `_note`
                if changes.pop(line, EMPTY) is not EMPTY:
                    left |= line is None or self._settle(line)
        if left and (not members or len(self._lines) > 2 * len(members) + 4):
            self._line_up()
        if left and self._ref_count and not members and not self._terminated:
            self._abandon()

    def _settle(self, line: _MulticastSubscription[T]) -> bool:
        """Let a subscription join or leave; return whether it has left."""
        if line.start >= NEVER:
            return False  # it has left already: two threads have noted that
        if line.downstream is None or line.bad is not None:
            line.start = NEVER  # it holds no other subscriber back
            if line in self._members:
                del self._members[line]
                self._conditionals -= line.conditional
            downstream = line.release()
            line.disown()
            if line.bad is not None and downstream is not None:
                _signal_error(downstream, line.bad)  # §3.9, serial with on_next (M14)
            return True
        if self._terminated:
            self._finish(line, late=True)
        elif line in self._members:
            line.add_up()
        else:
            self._join(line)
        return False

    def _join(self, line: _MulticastSubscription[T]) -> None:
        """Make a subscription a member, the last one in order."""
        members, calls = self._members, self._calls
        line.add_up()
        line.start = sent = self._sent
        common = sent + line.requested
        if not members:
            self._common = common
            self._direct = min(common, self._refill - 1)
        elif common < self._common:
            self._common = common
            self._direct = min(common, self._direct)
        members[line] = None
        self._conditionals += line.conditional
        self._lines.append(line)
        calls.append(line.deliver)
        line.place(calls, len(calls) - 1)

    def _line_up(self) -> None:
        """Drop the members that have left. No place in `_calls` is used twice: see `mute`."""
        self._holder = None
        self._members = members = self._members.copy()  # a dict never shrinks by itself
        self._lines = lines = list(members)
        self._calls = calls = [line.deliver for line in lines]
        for index, line in enumerate(lines):
            line.place(calls, index)
        if not lines:
            self._common = self._direct = -1

    def _send_conditionally(self, item: T) -> None:
        """Send `item`, if some subscribers are conditional: these say whether they used it."""
        for line in self._lines:
            try:
                if not line.conditional:
                    line.deliver(item)
                elif not line.deliver(item):
                    line.start += 1
            except BaseException as error:
                self._raised(line, error)

    def _raised(self, line: _MulticastSubscription[T], error: BaseException) -> None:
        """Cancel a subscriber that has raised `error` (§2.13); the others continue (M39)."""
        downstream = line.release()
        self._changes[line] = None
        self._missed = True
        throw_if_fatal(error)
        try:
            handled = downstream is not None and downstream.on_next_raised(error)
        except BaseException as raised:
            throw_if_fatal(raised)
            hooks.drop_error(raised)
            handled = False
        if not handled:
            hooks.drop_error(error)

    def _fail(self, error: BaseException) -> None:
        """Fail with `error`, which the upstream raised instead of signalling it (F46)."""
        self._ends[0] = [error]
        upstream, fused = self._upstream, self._fused
        if upstream is not None:
            hooks.cancel(upstream)
        if fused is not None:
            fused.clear()
        self._terminate()

    def _exhausted(self, fused: QueueSubscription[T]) -> bool:
        """Return whether a fused upstream has ended, without taking an item (M38)."""
        try:
            return bool(self._members) and fused.is_empty()
        except BaseException as error:
            throw_if_fatal(error)
            self._fail(error)
            return False

    def _stop(self, escaped: BaseException) -> None:
        """Stop because of a fatal error that passes through: call no subscriber now.

        The next drain ends the members.

        If the error ends a task of an executor or a clock, our `on_error` leads to that drain.
        """
        if self._terminated:
            return
        leave(escaped, self, self)
        self._stopped = True
        error = FlowError(f"{self!r} was stopped in the midst of its work by {escaped!r}")
        end = self._ends.setdefault(0, [error])
        end[0] = end[0] or error
        upstream = self._upstream
        self._direct = -1
        self._upstream = self._fused = None
        self._discard()
        if upstream is not None:
            hooks.cancel(upstream)

    def _abandon(self) -> None:
        """End: all have left, and `ref_count` is set (M40, M42)."""
        upstream, fused = self._upstream, self._fused
        if upstream is None:
            return  # subscribers may come and go until there is an upstream
        self._abandoned = True
        ended = not self._end(None) and not self._sync
        self._terminated = True
        self._direct = -1
        self._upstream = self._fused = None
        self._discard()
        if not ended:
            hooks.cancel(upstream)
        if fused is not None:
            fused.clear()

    def _terminate(self) -> None:
        """Send all members the end; `_reconcile` sends it to those that come later (M37)."""
        first = not self._terminated
        self._terminated = True
        self._stopped = False
        self._direct = -1
        self._upstream = self._fused = None
        for line in tuple(self._members):
            self._finish(line)
        self._members.clear()
        self._lines, self._calls = [], []
        self._discard()
        error = self._ends[0][0]
        if first and error is not None:
            self._trace = release_frames(error)

    def _finish(self, line: _MulticastSubscription[T], *, late: bool = False) -> None:
        downstream = line.release()
        line.disown()
        error = self._ends[0][0]
        if downstream is None:
            return
        if error is None:
            _signal_complete(downstream)
            return
        if late:
            error.__traceback__ = self._trace  # earlier raises have added frames to it (X14)
        _signal_error(downstream, error)

    def _discard(self) -> None:
        hooks.drop_waiting(self._queue)


_NOBODY: Final[MulticastProcessor[Any]] = MulticastProcessor()  # Any: it never has an item
"""Takes the place of the processor in subscriptions that have ended; see
`_MulticastSubscription.disown`. The subscriptions of all flows share it, and must not wait for each
other: so it never has a member."""


def _none(method: str) -> NoneItemError:
    return NoneItemError(f"MulticastProcessor.{method}(None): None is not a signal")


def _signal_complete(downstream: CoreSubscriber[T]) -> None:
    try:
        downstream.on_complete()
    except BaseException as raised:
        throw_if_fatal(raised)
        hooks.drop_error(raised)


def _signal_error(downstream: CoreSubscriber[T], error: BaseException) -> None:
    try:
        downstream.on_error(error)
    except BaseException as raised:
        throw_if_fatal(raised)
        hooks.drop_error(raised)
