"""`UnicastProcessor`: a bounded queue between one producer side and one subscriber."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar, final

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
    MissingBackpressureError,
    ProtocolViolationError,
    late_fusion,
    none_given,
    throw_if_fatal,
)
from flow_core.introspection import Statistics
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
from flow_core.sources import fail
from flow_core.subscribers import core_subscriber
from flow_multicast.processors._hot import NEVER

__all__ = ["UnicastProcessor"]

T = TypeVar("T")

_WAKE_UP: Final[Any] = EMPTY  # Any: on_next takes it in the place of an item of any type (F26)


@final
class UnicastProcessor(
    SerialDrain, CoreSubscriber[T], QueueSubscription[T], Processor[T, T], Generic[T]
):
    """Keeps items in a bounded queue for its one subscriber, which may come late.

    A processor is fed by hand, with `offer` from any thread or `on_next` from one thread at a time,
    or by being subscribed to a publisher:

    >>> words = UnicastProcessor[str](2)
    >>> [words.offer(word) for word in ("a", "b", "c")]
    [True, True, False]
    >>> words.on_complete()
    >>> list(words.flow.map(str.upper))
    ['A', 'B']

    When the queue is full, `offer` returns False and does nothing else; `on_next`, which has no
    result, ends the flow with `MissingBackpressureError` after the items that wait. The bound holds
    for publishers, too: at first, `capacity` items are requested of the upstream; whenever 75 % of
    that number were consumed, that many are requested again. (The processor of this name in RxJava
    requests everything, and its queue grows with the items that the subscriber does not take.) If
    several threads call `offer` at the same instant, each of them may exceed the bound by one item;
    so may a thread that calls `offer` while this processor is being subscribed to a publisher.

    Demand: exact. An item that a conditional subscriber dropped does not count.
    Thread: any thread that signals; one at a time. There is no lock: a finaliser or a signal
    handler may call anything here, at any moment.
    Fusion: ASYNC, across threads, too: the subscriber polls this queue and needs none itself. SYNC,
    if it had already ended when fusion was requested: then the queue holds everything, and the flow
    ends when the queue is empty; an error is raised by the `poll` that finds the queue empty.
    Before the end, the mode cannot be SYNC: EMPTY would mean that no more items come. The processor
    does not ask its own upstream for fusion.
    Errors: the subscriber gets the same error object. A second subscriber gets
    `ProtocolViolationError`.

    Args:
        capacity: how many items may wait, at least 1; `flow_core.UNBOUNDED` for any number.
        delay_error: whether an error comes after the items that wait; otherwise it overtakes them,
            and they go to the dropped-items hook.
        on_terminate: called once, when the processor stops accepting items. The thread that
            completes, fails or cancels the processor calls it, before the subscriber gets
            on_complete or on_error. An error raised by this function goes to the dropped-errors
            hook.

    Raises:
        TypeError: if `capacity` is not an int.
        ValueError: if `capacity` is less than 1.
    """

    __slots__ = (
        "__weakref__",
        "_asked",
        "_bad",
        "_cancelled",
        "_capacity",
        "_claims",
        "_delay_error",
        "_downstream",
        "_emitted",
        "_ends",
        "_fed",
        "_halt",
        "_limit",
        "_mode",
        "_negotiable",
        "_offering",
        "_on_terminate",
        "_over",
        "_promised",
        "_queue",
        "_refill",
        "_requested",
        "_taken",
        "_upstream",
    )

    def __init__(
        self,
        capacity: int = DEFAULT_PREFETCH,
        *,
        delay_error: bool = True,
        on_terminate: Callable[[], object] | None = None,
    ) -> None:
        super().__init__()
        self._capacity = check_prefetch(capacity, "capacity")
        self._delay_error = delay_error
        self._on_terminate = on_terminate
        self._limit = replenish_limit(capacity)
        self._queue: deque[T] = deque()
        self._claims: dict[str, object] = {}
        """The first subscriber, and the first upstream."""
        self._ends: dict[int, list[BaseException | None]] = {}
        """The end, as entry 0. The first writer wins, and no item is queued after that."""
        self._upstream: Subscription | None = None
        self._offering: dict[object, None] = {}
        """Threads that are in `offer`: the end waits for them."""
        self._fed = False
        """True if an item has come that was not requested."""
        # Positions count the items that have left the queue.
        self._taken = 0
        """The number of items taken. Changed only by the thread that takes items; the attributes
        that follow, only by the drain."""
        self._promised = 0
        """The places in the queue before this position are taken, or promised to the upstream by a
        request."""
        self._refill = 0
        """The position at which to request more of the upstream."""
        self._bad: ValueError | None = None
        self._halt = False
        """True if the next item must not be delivered: the drain has to find out why."""
        self._cancelled = False
        self._over = False
        """True when no subscriber will take an item any more."""
        self._downstream: CoreSubscriber[T] | None = None
        """The subscriber to signal: set from when its on_subscribe has returned until the end
        (§1.9, §3.13)."""
        self._mode = Fusion.NONE
        self._negotiable = False
        """True while the subscriber may ask for fusion: in its on_subscribe, once (F24)."""
        self._asked: list[int] = []
        """Amounts that were requested, and that the drain has not added up yet."""
        self._requested = 0
        self._emitted = 0

    def __repr__(self) -> str:
        delayed = "" if self._delay_error else ", delay_error=False"
        return f"UnicastProcessor(capacity={self._capacity}{delayed})"

    # -- for the subscriber

    @property
    def flow(self) -> Flow[T]:
        """This processor with the operators of a `Flow`."""
        return Flow(self)

    @property
    def terminated(self) -> bool:
        """True if this has ended, and accepts nothing more; items that wait come before the end."""
        return bool(self._ends)

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """Serve `subscriber`, which gets the items that wait and all that follow.

        Only the first subscriber is served; others get `ProtocolViolationError`.

        Raises:
            NoneItemError: if `subscriber` is None.
        """
        downstream = core_subscriber(subscriber)
        first = object()
        served = self._claims.setdefault("subscriber", first) is not first
        if served or self._cancelled:
            why = "serves one subscriber, and had one" if served else "was cancelled"
            fail(
                downstream,
                ProtocolViolationError(
                    f"{self!r} {why}; use a MulticastProcessor for many, or make a new one"
                ),
            )
            return
        self._negotiable = True
        try:
            downstream.on_subscribe(self)
        except BaseException:
            self.cancel()
            raise
        finally:
            self._negotiable = False
        # No signal was sent before (§1.9). The drain below finds what came meanwhile, and also a
        # cancel, which sets its flag before it clears the subscriber (F32).
        if self._mode is not Fusion.SYNC:
            self._downstream = downstream
            if self._cancelled:
                self._downstream = None
        self.signal()

    @override
    def request(self, n: int, /) -> None:
        bad = None if n.__class__ is int and n > 0 else bad_request(n)
        # A subscriber that polls counts its demand itself.
        polled = self._mode is not Fusion.NONE and (bad is None or self._mode is Fusion.SYNC)
        if self._cancelled or self._bad is not None or polled:
            return
        if bad is not None:
            self._bad = bad
            self._halt = True
            self._finish(None, failed=True)
        elif self._requested >= UNBOUNDED:
            return
        else:
            self._asked.append(n)
        self.signal()

    @override
    def cancel(self) -> None:
        """Cancel; the items that wait go to the dropped-items hook."""
        self._cancelled = self._halt = True
        self._downstream = None
        self._finish(None, failed=True)
        self.signal()

    def statistics(self) -> Statistics:
        """Return the statistics: how many items wait, and for what.

        Thread: any. While other threads signal, the figures may be from slightly different moments.

        >>> numbers = UnicastProcessor[int](4)
        >>> numbers.offer(1)
        True
        >>> numbers.statistics().buffered, numbers.statistics().subscribers
        (1, 0)
        """
        requested = min(self._requested + sum(self._asked), UNBOUNDED)
        if requested < UNBOUNDED:
            requested -= self._emitted
        pushed, downstream = self._mode is Fusion.NONE, self._downstream
        return Statistics(
            operator=repr(self),
            requested=requested if pushed else 0,
            buffered=len(self._queue),
            capacity=self._capacity,
            cancelled=self._cancelled,
            terminated=bool(self._ends),
            fusion=self._mode,
            upstream=self._upstream,
            subscribers=int(downstream is not None),
            held_back_by=() if downstream is None or requested or not pushed else (downstream,),
            connected="subscriber" in self._claims,
        )

    # -- by hand

    def offer(self, item: T, /) -> bool:
        """Queue `item` if there is room that was not promised to an upstream; from any thread.

        Returns:
            Whether it was queued; False also if the flow has ended. A queued item comes before the
            end.

        Raises:
            NoneItemError: if `item` is None.
        """
        if item is None:
            raise none_given("UnicastProcessor.offer")
        offering, queue, mark = self._offering, self._queue, object()
        vacant = self._upstream is None or self._capacity == UNBOUNDED
        taken = False
        try:
            # Before it reads the end: a thread that ends it looks here after that.
            offering[mark] = None
            if vacant and len(queue) < self._capacity and not self._ends:
                self._fed = True
                queue.append(item)
                taken = True
        finally:
            offering.pop(mark, None)
            if taken or self._ends:
                self.signal()
        return taken

    def room(self) -> int:
        """Return how many items `offer` would take now."""
        if self._ends:
            return 0
        if self._capacity == UNBOUNDED:
            return UNBOUNDED
        return 0 if self._upstream is not None else max(self._capacity - len(self._queue), 0)

    # -- signals from the upstream

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Take the first upstream; cancel every other one."""
        if subscription is None:
            raise none_given("UnicastProcessor.on_subscribe")
        claim = [subscription]
        if not self._ends and self._claims.setdefault("upstream", claim) is claim:
            self._upstream = subscription
            if not self._ends:
                self.signal()  # it requests
                return
            self._upstream = None  # a thread that has ended it may have looked before
        subscription.cancel()

    @override
    def on_next(self, item: T, /) -> None:
        """Take an item. One thread at a time calls this; any number may call `offer`."""
        if item is None:
            raise none_given("UnicastProcessor.on_next")
        queue = self._queue
        if self._ends:
            hooks.drop_item(item)
        elif len(queue) < self._capacity or self._is_promised():
            self._fed = self._fed or self._upstream is None
            queue.append(item)
            self.signal()  # after it is queued: a fused subscriber may get only this (F31)
        else:
            self._overflow(item)

    @override
    def on_next_raised(self, error: BaseException, /) -> bool:
        """End with `error`: the upstream has ended; the subscriber gets the error."""
        self.on_error(error)
        return True

    @override
    def on_error(self, error: BaseException, /) -> None:
        """Keep the error; the items that wait come before it, if it is delayed."""
        if error is None:
            raise none_given("UnicastProcessor.on_error")
        if self._finish(error):
            self.signal()
        else:
            hooks.drop_error(error)

    @override
    def on_complete(self) -> None:
        """Note that the upstream has completed; the items that wait come first."""
        if self._finish(None):
            self.signal()

    def _is_promised(self) -> bool:
        """Return whether items fed by hand may have taken room promised to the upstream."""
        by_hand = self._upstream is None
        return self._fed and not by_hand and len(self._queue) < 2 * self._capacity

    def _overflow(self, item: T) -> None:
        hooks.drop_item(item)
        upstream = self._upstream
        error = MissingBackpressureError(
            f"{self!r} got more items than it has asked for, while {len(self._queue)} wait in it; "
            "put a back-pressure operator before it, or feed it by offer(), which says when it is "
            "full"
        )
        if self._finish(error):
            if upstream is not None:
                hooks.cancel(upstream)
            self.signal()

    def _finish(self, error: BaseException | None, *, failed: bool = False) -> bool:
        """Accept no more items; return False if that was so already.

        Args:
            error: the error of the upstream.
            failed: whether the flow ends for another reason than a terminal of the upstream: then
                the upstream has to be cancelled.
        """
        end = [error]
        first = self._ends.setdefault(0, end) is end
        upstream, self._upstream = self._upstream, None
        if not first:
            return False
        if error is not None and not self._delay_error:
            self._halt = True
        on_terminate, self._on_terminate = self._on_terminate, None
        if failed and upstream is not None:
            hooks.cancel(upstream)
        if on_terminate is not None:
            try:
                on_terminate()
            except BaseException as raised:
                throw_if_fatal(raised)
                hooks.drop_error(raised)
        return True

    # -- the drain

    @override
    def drain(self) -> None:
        if self._asked:
            self._add_up()
        downstream = self._downstream
        if self._taken >= self._refill and not self._replenish(downstream):
            return
        if self._cancelled or self._over:
            hooks.drop_waiting(self._queue)
        elif downstream is not None:
            if self._mode is Fusion.NONE:
                self._deliver(downstream)
            else:
                self._wake(downstream)

    def _add_up(self) -> None:
        """Add up the demand."""
        asked = self._asked
        while count := len(asked):
            # There is no call between these two: Ctrl-C loses and doubles nothing.
            self._requested += asked[0] if count == 1 else sum(asked[:count])
            del asked[:count]

    def _has_ended(self) -> bool:
        """Return whether all items are queued."""
        return bool(self._ends) and not self._offering

    def _wake(self, downstream: CoreSubscriber[T]) -> None:
        """Tell the subscriber that there is something to poll, or that the flow has ended.

        The end comes even if items wait: they can be polled after it (F33).
        """
        done = self._has_ended()  # read before: items from before the end can be polled by then
        if not self._halt and (done or self._queue):
            try:
                downstream.on_next(_WAKE_UP)
            except BaseException as error:
                self._raised(downstream, error)
                return
        if self._halt:
            self._stop(downstream)
        elif done:
            self._end(downstream)

    def _deliver(self, downstream: CoreSubscriber[T]) -> None:
        """Push the items that wait, on demand, in batches up to the next request."""
        emit: Callable[[T], object]
        if isinstance(downstream, ConditionalSubscriber):
            conditional, emit = True, downstream.try_on_next
        else:
            conditional, emit = False, downstream.on_next
        queue = self._queue
        while not self._halt:
            done = (
                self._has_ended()
            )  # read before the queue: items from before the end wait by then
            left = self._refill - self._taken
            batch = min(len(queue), left if left > 0 else self._limit)
            if self._asked:
                self._add_up()
            if self._requested < UNBOUNDED:
                batch = min(batch, self._requested - self._emitted)
            if not batch:
                if not done or queue:
                    return
                if self._halt:  # `done` is true because of the halt
                    break
                self._end(downstream)
                return
            taken = refused = 0
            try:
                while taken < batch and not self._halt:
                    item = queue.popleft()
                    taken += 1
                    if emit(item) is False:
                        refused += 1
            except BaseException as error:
                self._raised(downstream, error)
                return
            self._emitted += taken - refused if conditional else taken
            self._taken += taken
            if self._taken >= self._refill and not self._replenish(downstream):
                return
        self._stop(downstream)

    def _replenish(self, downstream: CoreSubscriber[T] | None) -> bool:
        """Request as many items as there is room for.

        The result is False if the upstream fails at that.
        """
        upstream = self._upstream
        if upstream is None:
            return True
        taken, capacity = self._taken, self._capacity
        if capacity == UNBOUNDED:
            room, self._refill = UNBOUNDED, NEVER
        else:
            # No thread offers while there is an upstream: the items that wait were sent by it, or
            # came before it.
            waiting = len(self._queue)
            while taken != self._taken:  # the subscriber polls
                taken, waiting = self._taken, len(self._queue)
            promised = max(self._promised, taken + waiting)
            room = max(taken + capacity - promised, 0)
            self._promised = promised + room
            self._refill = taken + self._limit
        if room and not self._ends:
            try:
                upstream.request(room)
            except BaseException as error:  # §3.16
                self._failed(downstream, error)
                return False
        return True

    def _stop(self, downstream: CoreSubscriber[T]) -> None:
        """Stop the delivery: after a cancel, a bad request, or an error that overtakes items."""
        self._over = True
        hooks.drop_waiting(self._queue)
        if not self._cancelled:
            self._end(downstream)

    def _end(self, downstream: CoreSubscriber[T]) -> None:
        """Send the terminal, the last signal."""
        error = self._bad or self._error()
        self._downstream = None
        if self._mode is Fusion.NONE:
            self._over = True
        if error is None:
            downstream.on_complete()
        else:
            downstream.on_error(error)

    def _raised(self, downstream: CoreSubscriber[T], error: BaseException) -> None:
        """End: the subscriber has raised `error` in its on_next (§2.13)."""
        if self._closed(error) or not downstream.on_next_raised(error):
            hooks.drop_error(error)

    def _error(self) -> BaseException | None:
        """Return the error of the upstream; only the first caller gets it."""
        end = self._ends[0]
        error, end[0] = end[0], None
        return error

    def _failed(self, downstream: CoreSubscriber[T] | None, error: BaseException) -> None:
        """End: the upstream has raised `error` in its `request`."""
        if downstream is None:  # there is no subscriber yet, or no longer
            upstream = self._upstream
            throw_if_fatal(error)
            if upstream is not None:
                hooks.cancel(upstream)
            if not self._finish(error):
                hooks.drop_error(error)
        elif self._closed(error):
            hooks.drop_error(error)
        else:
            downstream.on_error(error)

    def _closed(self, error: BaseException) -> bool:
        """Cancel because of `error`, and raise `error` if it is fatal.

        The result is whether this had been cancelled before.
        """
        before = self._cancelled
        self.cancel()
        hooks.drop_waiting(self._queue)
        throw_if_fatal(error)
        return before

    # -- for a subscriber that polls

    @override
    def request_fusion(self, mode: Fusion, /) -> Fusion:
        """Grant SYNC if the end has come already, otherwise ASYNC."""
        if not self._negotiable or self._requested or self._asked or self._bad is not None:
            raise late_fusion()
        self._negotiable = False
        if mode & Fusion.SYNC and self._has_ended():
            # The queue holds all items (F34). EMPTY is the end then, not "not yet".
            self._mode = Fusion.SYNC
            if self._halt:
                hooks.drop_waiting(self._queue)
        else:
            self._mode = mode & Fusion.ASYNC
        return self._mode

    @override
    def poll(self) -> T | Empty:
        """Return the next item, and request more when enough items were polled."""
        try:
            item = self._queue.popleft()
        except IndexError:
            error = None
            if self._mode is Fusion.SYNC and not self._cancelled:
                error = self._error()
        else:
            self._taken = taken = self._taken + 1
            if taken >= self._refill and self._upstream is not None:
                try:
                    self.signal()  # it requests
                except BaseException:
                    hooks.drop_item(item)
                    raise
            return item
        if error is not None:
            raise error  # outside of the handler, or it would get the IndexError as its context
        return EMPTY

    @override
    def is_empty(self) -> bool:
        """Return whether nothing is left, not even an error that is still to be raised."""
        return not self._queue and (
            self._mode is not Fusion.SYNC or self._ends[0][0] is None or self._cancelled
        )

    @override
    def clear(self) -> None:
        """Drop the items; they go to the dropped-items hook."""
        hooks.drop_waiting(self._queue)
        if self._mode is Fusion.SYNC:
            self._error()
