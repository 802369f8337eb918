"""The bridge from code that pushes to subscribers that request."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Final, Generic, Literal, TypeAlias, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.demand import UNBOUNDED, add_demand, bad_request
from flow_core.errors import (
    FlowError,
    MissingBackpressureError,
    NoneItemError,
    is_fatal,
    late_fusion,
    throw_if_fatal,
)
from flow_core.introspection import Scannable, Statistics
from flow_core.protocols import (
    EMPTY,
    ConditionalSubscriber,
    CoreSubscriber,
    Disposable,
    Empty,
    Fusion,
    QueueSubscription,
)
from flow_core.serial import SerialDrain

__all__ = ["OVERFLOWS", "Emitter", "EmitterSubscription", "Overflow"]

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)

Overflow: TypeAlias = Literal["buffer", "error", "drop", "latest", "missing"]
"""The treatment of an item that is not requested yet; see `create`."""

OVERFLOWS: Final[tuple[Overflow, ...]] = ("buffer", "error", "drop", "latest", "missing")


class Emitter(Generic[T_contra]):
    """The object with which the function of `create` pushes items, from any thread at any time."""

    __slots__ = ()

    @abstractmethod
    def next(self, item: T_contra, /) -> None:
        """Send `item`; if it is not requested, the overflow policy of `create` applies.

        After the end of the flow, or after a cancel, the item goes to the dropped-items hook.

        Raises:
            NoneItemError: if `item` is None.
        """

    @abstractmethod
    def error(self, error: BaseException, /) -> None:
        """Fail the flow after the items sent so far; if it has ended, pass `error` to the hook.

        Raises:
            TypeError: if `error` is not an exception.
            BaseException: `error` itself, if it is fatal; the flow then fails with a FlowError
                whose cause is `error`.
        """

    @abstractmethod
    def complete(self) -> None:
        """Complete the flow after the items sent so far; if it has ended already, do nothing."""

    @property
    @abstractmethod
    def requested(self) -> int:
        """The number of items that would be delivered if sent now; `UNBOUNDED` for any number."""

    @property
    @abstractmethod
    def cancelled(self) -> bool:
        """True if items are of no use any more: the flow was cancelled, has failed or completed."""

    @abstractmethod
    def on_cancel(self, action: Callable[[], object] | Disposable, /) -> None:
        """Call (or dispose) `action` if the subscriber cancels before the flow was ended."""

    @abstractmethod
    def on_dispose(self, action: Callable[[], object] | Disposable, /) -> None:
        """Call (or dispose) `action` once, when the flow has ended or was cancelled.

        If this has already happened, `action` is called at once. An error raised by `action` goes
        to the dropped-errors hook. Actions run in the order in which they were added.
        """

    @abstractmethod
    def on_request(self, action: Callable[[int], object], /) -> None:
        """Call `action` with each amount that is requested, beginning with the present demand.

        When an operator downstream, such as a filter, drops an item, `action` is asked for another
        item. There is one call at a time, and none from within an ``on_next``. Items that `action`
        sends during its call are delivered at once and need no room. If `action` raises an error,
        the flow fails with it. Only the last function that was set is called.
        """


@final
class EmitterSubscription(SerialDrain, Emitter[T], QueueSubscription[T], Scannable, Generic[T]):
    """Both ends of `create`: the end for the emitter, and the end for the subscriber.

    Work is published and then drained (see `SerialDrain`). Items are published under `_lock`, which
    also ensures that nothing is queued after the end.

    Demand: as `overflow` says. Thread: items and terminals come on the emitting thread, or on the
    requester's if they had to wait. Fusion: ASYNC if there is a buffer, also across threads. The
    subscriber may poll as many items as it has requested; the terminal says that there are no more.

    Args:
        downstream: gets the signals.
        overflow: what happens to items that are not requested.
        capacity: how many items may wait.
        label: the source, for messages.
    """

    __slots__ = (
        "_actions",
        "_asked",
        "_bad",
        "_cancel_actions",
        "_capacity",
        "_closed",
        "_conditional",
        "_counts",
        "_done",
        "_downstream",
        "_error",
        "_fused",
        "_heeds",
        "_label",
        "_listener",
        "_lock",
        "_negotiable",
        "_overflow",
        "_queue",
        "_requested",
        "_used",
    )

    def __init__(
        self, downstream: CoreSubscriber[T], overflow: Overflow, capacity: int, label: str
    ) -> None:
        super().__init__()
        self._downstream: CoreSubscriber[T] | None = downstream
        self._conditional = isinstance(downstream, ConditionalSubscriber)
        self._overflow = overflow
        self._capacity = capacity
        self._label = label
        self._heeds = overflow in ("buffer", "latest")
        """True if items wait for demand, which the drain uses up. Otherwise, items are accepted
        only if there is demand (`_counts`), or regardless of demand, and wait only for a thread
        that delivers them."""
        self._counts = overflow in ("error", "drop")
        self._queue: deque[T] = deque()
        self._lock = Lock()
        self._requested = 0
        self._used = 0
        """The part of `_requested` that is used up. It is changed under `_lock` if `_counts`;
        otherwise with the permit or, with fusion, by the thread that polls."""
        self._closed = False
        """True when no item is accepted any more."""
        self._done = False
        """True when the emitter has ended the flow: `_error` was set before this, and no item is
        queued afterwards."""
        self._error: BaseException | None = None
        self._bad: ValueError | None = None
        self._fused = False
        self._negotiable = False
        """True while on_subscribe runs, as long as fusion was not requested."""
        self._actions: list[Callable[[], object]] | None = []
        self._cancel_actions: list[Callable[[], object]] | None = []
        self._listener: _RequestListener | None = None
        self._asked = 0
        """The demand, including the demand for dropped items, that was not reported to the
        `on_request` function yet."""

    def start(self) -> None:
        """Hand this over as the subscription."""
        downstream = self._downstream
        # We hold the permit, so that no signal comes before on_subscribe has returned.
        if downstream is not None and self.try_enter():
            self._negotiable = True
            try:
                downstream.on_subscribe(self)
            except BaseException:
                self._closed = True
                self._downstream = None
                self.leave()
                raise
            self._negotiable = False
            self.run_entered()

    # -- the emitter's end

    @override
    def next(self, item: T, /) -> None:
        if item is None:
            raise NoneItemError(f"{self._label}: next(None), but None is not an item")
        queue, permit = self._queue, self._permit
        # The short way, past the queue, for a requested item when no other waits.
        if not queue:
            try:
                del permit[0]
            except KeyError:
                pass  # another caller has the permit
            else:
                sent = False
                try:
                    downstream = self._downstream
                    if (
                        downstream is not None
                        and not (self._closed or self._fused)
                        and self._claim()
                    ):
                        sent = True
                        if self._conditional:
                            self._deliver(downstream, item)
                        else:
                            try:
                                downstream.on_next(item)
                            except BaseException as error:
                                self._raised(downstream, error)
                finally:
                    permit[0] = True
                if sent:
                    # A request that came meanwhile found the permit taken, so we report it.
                    if self._missed or self._asked:
                        self.signal()
                    return
        self._enqueue(item)

    def _claim(self) -> bool:
        """Use up one requested item, if there is one. Called with the permit."""
        if self._counts:
            with self._lock:
                if self._used < self._requested:
                    self._used += 1
                    return True
            return False
        if self._used < self._requested:
            self._used += 1
            return True
        return not self._heeds

    def _enqueue(self, item: T) -> None:
        queue = self._queue
        lost: T | Empty = item
        full = False
        with self._lock:
            if self._closed:
                pass
            elif self._overflow == "latest":
                try:
                    lost = queue.popleft()
                except IndexError:
                    lost = EMPTY
                queue.append(item)
            elif (self._counts and self._used >= self._requested) or (len(queue) >= self._capacity):
                full = self._overflow != "drop"
                if full:
                    self._error = MissingBackpressureError(self._why())
                    self._closed = self._done = True
            else:
                if self._counts:
                    self._used += 1
                lost = EMPTY
                queue.append(item)
        if lost is not EMPTY:
            hooks.drop_item(lost)
        try:
            self.signal()
        finally:
            if full:
                self._dispose()

    def _why(self) -> str:
        if self._counts and self._used >= self._requested:
            return (
                f"{self._label} emitted an item that was not requested; look at emitter.requested, "
                'use emitter.on_request(), or choose overflow="buffer", "drop" or "latest"'
            )
        return (
            f"{self._label} emitted items faster than they are taken: {self._capacity} wait and "
            "there is no room for more; look at emitter.requested, use emitter.on_request(), raise "
            'capacity=, or choose overflow="drop" or "latest"'
        )

    @override
    def error(self, error: BaseException, /) -> None:
        if not isinstance(error, BaseException):
            raise TypeError(f"{self._label}: error() takes an exception, not {error!r}")
        if is_fatal(error):
            failure = FlowError(f"{self._label} was ended by {type(error).__name__}")
            failure.__cause__ = error
            self._end(failure)  # subscribers that wait elsewhere get an error, too
            raise error
        if not self._end(error):
            hooks.drop_error(error)

    @override
    def complete(self) -> None:
        self._end(None)

    def _end(self, error: BaseException | None) -> bool:
        with self._lock:
            if self._closed:
                return False
            self._error = error
            self._closed = self._done = True
        try:
            self.signal()
        finally:
            self._dispose()
        return True

    @property
    @override
    def requested(self) -> int:
        if self._closed:
            return 0
        requested = self._requested
        if requested == UNBOUNDED:
            return UNBOUNDED
        return max(0, requested - self._used - (len(self._queue) if self._heeds else 0))

    @property
    @override
    def cancelled(self) -> bool:
        return self._closed

    @override
    def on_cancel(self, action: Callable[[], object] | Disposable, /) -> None:
        function = _function(action, "on_cancel")
        with self._lock:
            if self._done:
                return
            actions = self._cancel_actions
            if actions is not None:
                actions.append(function)
                return
        _run(function)

    @override
    def on_dispose(self, action: Callable[[], object] | Disposable, /) -> None:
        function = _function(action, "on_dispose")
        with self._lock:
            actions = self._actions
            if actions is not None:
                actions.append(function)
                return
        _run(function)

    @override
    def on_request(self, action: Callable[[int], object], /) -> None:
        if not callable(action):
            raise TypeError(f"{self._label}: on_request() takes a function, not {action!r}")
        with self._lock:
            if self._closed:
                return
            self._asked = self.requested
            self._listener = _RequestListener(self.tell, action)
        self.signal()

    def tell(self, action: Callable[[int], object]) -> None:
        """Call the function of `on_request` with the demand since its last call.

        Args:
            action: that function.
        """
        with self._lock:
            asked, self._asked = self._asked, 0
            if self._closed or not asked:
                return
        try:
            action(asked)
        except BaseException as error:
            throw_if_fatal(error)
            self.error(error)

    def _dispose(self) -> None:
        with self._lock:
            actions, self._actions = self._actions, None
            self._listener = None
        for action in actions or ():
            _run(action)

    def _cancelled(self) -> None:
        """Call the owner's actions: the subscriber has cancelled, or sent a bad request (§3.9)."""
        with self._lock:
            actions, self._cancel_actions = self._cancel_actions, None
        if not self._done:
            for action in actions or ():
                _run(action)
        self._dispose()

    # -- the subscriber's end

    @override
    def request(self, n: int, /) -> None:
        bad = bad_request(n)
        if self._downstream is None or (bad is None and self._requested == UNBOUNDED):
            return
        lost: BaseException | None = None
        with self._lock:
            if bad is None:
                self._requested = add_demand(self._requested, n)
                if self._listener is not None:
                    self._asked = add_demand(self._asked, n)
            else:
                lost, self._error = self._error, None
                self._bad = bad
                self._closed = True
        self.signal()
        if bad is not None:
            if lost is not None:
                hooks.drop_error(lost)
            self._cancelled()

    @override
    def cancel(self) -> None:
        with self._lock:
            if self._downstream is None:
                return
            self._closed = True
            self._downstream = self._bad = None
            lost, self._error = self._error, None
        self.signal()
        if lost is not None:
            hooks.drop_error(lost)
        self._cancelled()

    @override
    def signal(self) -> None:
        """Drain; when this is not called from within a drain, also report the demand.

        If another thread holds the permit, it reports the demand when it gives the permit back. It
        then sees the demand of this thread, too, which is stored before this method is called.
        """
        super().signal()
        teller = self._listener
        if teller is not None and self._asked and 0 in self._permit:
            teller.signal()

    @override
    def drain(self) -> None:
        queue = self._queue
        while True:
            downstream, bad = self._downstream, self._bad
            if downstream is None:
                hooks.drop_waiting(self._queue)
                return
            if bad is not None:
                self._downstream = None
                hooks.drop_waiting(self._queue)
                downstream.on_error(bad)
                return
            done = self._done  # read before the queue: items from before the end are queued by then
            wanted = not self._heeds or self._used < self._requested
            if not queue:
                if done:
                    self._terminate(downstream)
                return
            if not wanted:
                return
            if self._fused:
                self._wake(downstream)
                if queue or not self._done:
                    return
                continue
            try:
                item = queue.popleft()
            except IndexError:
                continue  # a cancel has dropped it
            if not self._counts and self._used < self._requested:
                self._used += 1
            self._deliver(downstream, item)
            del item

    def _deliver(self, downstream: CoreSubscriber[T], item: T) -> None:
        try:
            if not isinstance(downstream, ConditionalSubscriber):
                downstream.on_next(item)
            elif not downstream.try_on_next(item):
                with self._lock:
                    if self._used:
                        self._used -= 1
                        # A function that is asked for items has to send another one in its place.
                        if self._listener is not None and self._requested != UNBOUNDED:
                            self._asked = add_demand(self._asked, 1)
        except BaseException as error:
            self._raised(downstream, error)

    def _wake(self, downstream: CoreSubscriber[T]) -> None:
        try:
            # The protocol of ASYNC fusion: not an item, but the news that there is one (F26).
            downstream.on_next(EMPTY)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - see above
        except BaseException as error:
            self._raised(downstream, error)

    def _raised(self, downstream: CoreSubscriber[T], error: BaseException) -> None:
        """End the flow, because the downstream has raised `error` in its on_next (§2.13)."""
        with self._lock:
            left = self._downstream is None
            self._closed = True
            self._downstream = None
            lost, self._error = self._error, None
        hooks.drop_waiting(self._queue)
        if lost is not None:
            # The emitter has failed, too, and that error waited for its turn.
            hooks.drop_error(lost)
        try:
            throw_if_fatal(error)
            if left or not downstream.on_next_raised(error):
                hooks.drop_error(error)
        finally:
            self._cancelled()

    def _terminate(self, downstream: CoreSubscriber[T]) -> None:
        with self._lock:
            # A bad request has taken the error away; its own follows in the next round (§3.9).
            if self._downstream is None or self._bad is not None:
                return
            self._downstream = None
            error, self._error = self._error, None
        if error is None:
            downstream.on_complete()
        else:
            downstream.on_error(error)

    # -- fusion

    @override
    def request_fusion(self, mode: Fusion, /) -> Fusion:
        """Grant ASYNC, if it is asked for and there is a buffer."""
        if not self._negotiable or self._requested or self._bad is not None:
            raise late_fusion()
        self._negotiable = False
        if not mode & Fusion.ASYNC or self._overflow != "buffer":
            return Fusion.NONE
        self._fused = True
        return Fusion.ASYNC

    @override
    def poll(self) -> T | Empty:
        """Take the next item. EMPTY means that there is none right now."""
        if self._used >= self._requested:
            return EMPTY
        try:
            item = self._queue.popleft()
        except IndexError:
            return EMPTY
        self._used += 1
        if self._done and not self._queue:
            self.signal()  # the terminal follows the last item, whichever thread has taken it
        return item

    @override
    def is_empty(self) -> bool:
        return not self._queue or self._used >= self._requested

    @override
    def clear(self) -> None:
        hooks.drop_waiting(self._queue)

    @override
    def statistics(self) -> Statistics:
        requested, waiting = self._requested, len(self._queue)
        if requested != UNBOUNDED:
            # Used up when an item is accepted, or when it is delivered.
            requested = max(0, requested - self._used + (waiting if self._counts else 0))
        return Statistics(
            operator=self._label,
            requested=requested,
            buffered=waiting,
            capacity=1 if self._overflow == "latest" else self._capacity,
            cancelled=self._closed and not self._done,
            terminated=self._downstream is None,
            error=self._bad if self._error is None else self._error,
            fusion=Fusion.ASYNC if self._fused else Fusion.NONE,
        )


@final
class _RequestListener(SerialDrain):
    """Calls the function of `on_request`, one call at a time."""

    __slots__ = ("_action", "_tell")

    def __init__(
        self, tell: Callable[[Callable[[int], object]], None], action: Callable[[int], object]
    ) -> None:
        super().__init__()
        self._tell = tell
        self._action = action

    @override
    def drain(self) -> None:
        self._tell(self._action)


def _function(action: Callable[[], object] | Disposable, method: str) -> Callable[[], object]:
    dispose: object = getattr(action, "dispose", None)
    if callable(dispose):
        return dispose
    if callable(action):
        return action
    raise TypeError(f"{method}() takes a function or something with dispose(), not {action!r}")


def _run(action: Callable[[], object]) -> None:
    try:
        action()
    except BaseException as error:
        throw_if_fatal(error)
        hooks.drop_error(error)
