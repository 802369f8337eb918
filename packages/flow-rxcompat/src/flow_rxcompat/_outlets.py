"""Signals that wait for one subscriber, and signals for many subscribers."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Final, Generic, Literal, TypeAlias, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.demand import add_demand, bad_request, check_prefetch
from flow_core.errors import MissingBackpressureError, RejectedExecutionError, throw_if_fatal
from flow_core.executors import Runner
from flow_core.introspection import Scannable, Statistics
from flow_core.protocols import EMPTY, CoreSubscriber, Empty, Subscription
from flow_core.serial import SerialDrain

__all__ = [
    "Counted",
    "Flagged",
    "Lines",
    "Outlet",
    "Polled",
    "Queued",
    "Store",
    "Strategy",
    "check_strategy",
]

T = TypeVar("T")

Strategy: TypeAlias = Literal["buffer", "latest", "drop", "error"]
"""The treatment of values that are not requested yet.

``buffer``: they wait, at most `capacity` of them; one more fails the flow, after the values that
wait. ``latest``: the newest one waits. ``drop``: they go to the dropped-items hook. ``error``: the
flow fails.
"""

_STRATEGIES: Final = ("buffer", "latest", "drop", "error")


def check_strategy(strategy: Strategy, capacity: int) -> None:
    """Refuse an unknown strategy, or a wrong capacity.

    Raises:
        TypeError: if `capacity` is not an int.
        ValueError: if `capacity` is less than 1, or there is no such strategy.
    """
    if strategy not in _STRATEGIES:
        raise ValueError(f"strategy= takes one of {', '.join(_STRATEGIES)}, not {strategy!r}")
    check_prefetch(capacity, "capacity")


class Store(Generic[T]):
    """The items that wait for one subscriber.

    Used under the lock of its `Outlet`, except for `make`.
    """

    __slots__ = ()

    @abstractmethod
    def put(self, item: T, room: int) -> tuple[T | Empty, str | None]:
        """Keep `item`.

        Args:
            item: the new item.
            room: how many requested items are still missing, beyond the items that wait.

        Returns:
            The item that is lost because of `item`, and the text of the flow's error if the flow
            fails.
        """

    @abstractmethod
    def take(self) -> T | Empty:
        """Remove and return the first item."""

    @property
    @abstractmethod
    def waiting(self) -> int:
        """Return how many items wait."""

    def make(self, item: T) -> T | Empty:
        """Return what the subscriber gets for `item`; called without the lock, and may raise."""
        return item

    def clear(self) -> list[T]:
        """Remove the items that wait; return the items that have to be dropped."""
        items: list[T] = []
        while (item := self.take()) is not EMPTY:
            items.append(item)
        return items

    def drop(self, item: T) -> None:
        """Drop an item that no subscriber gets any more."""
        hooks.drop_item(item)


@final
class Queued(Store[T]):
    """The items that wait, treated as a `Strategy` says."""

    __slots__ = ("_capacity", "_items", "_label", "_strategy")

    def __init__(self, strategy: Strategy, capacity: int, label: str) -> None:
        self._strategy = strategy
        self._capacity = capacity
        self._label = label
        self._items: deque[T] = deque()

    @override
    def put(self, item: T, room: int) -> tuple[T | Empty, str | None]:
        items = self._items
        if self._strategy == "latest":
            lost: T | Empty = items.popleft() if items else EMPTY
            items.append(item)
            return lost, None
        # Requested items wait, too, while another thread delivers.
        full = len(items) >= self._capacity
        if not full and (self._strategy == "buffer" or room > 0):
            items.append(item)
            return EMPTY, None
        if self._strategy == "drop":
            return item, None
        if full:
            return item, (
                f"{self._label}: {self._capacity} values wait and there is no room for more; "
                'raise capacity=, or choose strategy="latest" or "drop"'
            )
        return item, (
            f"{self._label} gave a value that was not requested; choose "
            'strategy="buffer", "latest" or "drop"'
        )

    @override
    def take(self) -> T | Empty:
        return self._items.popleft() if self._items else EMPTY

    @property
    @override
    def waiting(self) -> int:
        return len(self._items)


@final
class Counted(Store[T]):
    """Equal items, kept as a number: none is lost, and nothing grows."""

    __slots__ = ("_count", "_item", "_most")

    def __init__(self, item: T, most: int | None = None) -> None:
        self._item = item
        self._most = most
        self._count = 0

    @override
    def put(self, item: object, room: int) -> tuple[T | Empty, str | None]:
        if self._most is None or self._count < self._most:
            self._count += 1
        return EMPTY, None

    @override
    def take(self) -> T | Empty:
        if not self._count:
            return EMPTY
        self._count -= 1
        return self._item

    @property
    @override
    def waiting(self) -> int:
        return self._count

    @override
    def clear(self) -> list[T]:
        """Forget the number: no item has to be dropped."""
        self._count = 0
        return []

    @override
    def drop(self, item: T) -> None:
        pass


@final
class Flagged(Store[T]):
    """A flag for a value, which is read when it is delivered."""

    __slots__ = ("_flag", "_get")

    def __init__(self, get: Callable[[], T]) -> None:
        self._get = get
        self._flag: object = EMPTY

    @override
    def put(self, item: object, room: int) -> tuple[T | Empty, str | None]:
        self._flag = item
        return EMPTY, None

    @override
    def take(self) -> T | Empty:
        flag, self._flag = self._flag, EMPTY
        return flag  # type: ignore[return-value]  # pyright: ignore[reportReturnType] - see `make`

    @property
    @override
    def waiting(self) -> int:
        return int(self._flag is not EMPTY)

    @override
    def make(self, item: object) -> T | Empty:
        return self._get()

    @override
    def drop(self, item: object) -> None:
        """Do nothing: the value was not read."""


@final
class Polled(Store[T]):
    """A flag for values, which are taken from elsewhere, one at a time.

    Args:
        poll: takes a value.
        left: returns whether there may be a value. It is called under a lock, and takes no value.
    """

    __slots__ = ("_flag", "_left", "_poll")

    def __init__(self, poll: Callable[[], T | Empty], left: Callable[[], bool]) -> None:
        self._poll = poll
        self._left = left
        self._flag = False

    @override
    def put(self, item: object, room: int) -> tuple[T | Empty, str | None]:
        self._flag = True
        return EMPTY, None

    @override
    def take(self) -> T | Empty:
        flag, self._flag = self._flag, False
        return True if flag else EMPTY  # type: ignore[return-value]  # pyright: ignore[reportReturnType] - see `make`

    @property
    @override
    def waiting(self) -> int:
        return int(self._flag and self._left())

    @override
    def make(self, item: object) -> T | Empty:
        """Return the value, and note that another one may follow."""
        value = self._poll()
        if value is not EMPTY:
            self._flag = True
        return value

    @override
    def drop(self, item: object) -> None:
        """Do nothing: the value was not taken."""


@final
class Outlet(SerialDrain, Subscription, Scannable, Generic[T]):
    """The subscription of one subscriber to a source that pushes.

    Work is published and then drained (`SerialDrain`): items by `put`, an end by `end`, each
    followed by `signal`. The store decides about items after an end or a cancel.

    Demand: depends on the store. Thread: the one on which the source signals, the requester's, or
    that of `runner`.
    Fusion: none.

    Args:
        downstream: gets the signals.
        store: the items that wait.
        label: the source, for messages.
        runner: runs the delivery; None for the thread that signals or requests.
    """

    __slots__ = (
        "_bad",
        "_done",
        "_downstream",
        "_error",
        "_label",
        "_leave",
        "_lock",
        "_lost",
        "_over",
        "_requested",
        "_runner",
        "_store",
        "_used",
    )

    def __init__(
        self,
        downstream: CoreSubscriber[T],
        store: Store[T],
        label: str,
        runner: Runner | None = None,
    ) -> None:
        super().__init__()
        self._downstream: CoreSubscriber[T] | None = downstream
        self._store = store
        self._label = label
        self._runner = runner
        self._lock = Lock()
        self._requested = 0
        self._used = 0
        self._done = False
        self._error: BaseException | None = None
        self._bad: ValueError | None = None
        self._leave: list[Callable[[], object]] = []
        self._over = False
        """True when the functions in `_leave` were called."""
        self._lost: deque[T] = deque()

    def start(self) -> None:
        """Hand this object to the downstream as its subscription (§1.9)."""
        downstream = self._downstream
        # We hold the permit, so that no signal comes before on_subscribe has returned.
        if downstream is not None and self.try_enter():
            try:
                downstream.on_subscribe(self)
            except BaseException:
                self._downstream = None
                self._finish_up()
                raise
            finally:
                self.leave()
            self.signal()

    @property
    def over(self) -> bool:
        """Return whether items are of no use any more."""
        return self._downstream is None or self._done

    def attach(self, leave: Callable[[], object]) -> None:
        """Call `leave` once, when no more items are needed; at once if that is so already."""
        with self._lock:
            over = self._over
            if not over:
                self._leave.append(leave)
        if over:
            leave()

    def put(self, item: T, /) -> None:
        """Publish `item`. This calls no other code, so it may be done under a lock."""
        with self._lock:
            if self._downstream is None or self._done:
                self._lost.append(item)
                return
            room = self._requested - self._used - self._store.waiting
            lost, why = self._store.put(item, room)
            if why is not None:
                self._error = MissingBackpressureError(why)
                self._done = True
            if lost is not EMPTY:
                self._lost.append(lost)

    def end(self, error: BaseException | None, /) -> None:
        """Publish the end, and signal it; an error that comes after another end is dropped."""
        with self._lock:
            late = self._done or self._downstream is None
            if not late:
                self._error = error
                self._done = True
        if late:
            if error is not None:
                hooks.drop_error(error)
        else:
            self.signal()

    # -- for the subscriber

    @override
    def request(self, n: int, /) -> None:
        bad = bad_request(n)
        with self._lock:
            if self._downstream is None:
                return
            if bad is None:
                self._requested = add_demand(self._requested, n)
            elif self._bad is None:
                self._bad = bad
        self.signal()

    @override
    def cancel(self) -> None:
        with self._lock:
            if self._downstream is None:
                return
            self._downstream = self._bad = None
            lost, self._error = self._error, None
        self.signal()
        if lost is not None:
            hooks.drop_error(lost)
        self._finish_up()

    def _finish_up(self) -> None:
        with self._lock:
            self._over = True
            actions, self._leave = self._leave, []
        for leave in actions:
            leave()

    # -- draining

    def signal(self) -> None:
        """Drain, as `SerialDrain.signal` does; with a runner, drain there."""
        runner = self._runner
        if runner is None:
            super().signal()
        elif self.try_enter():
            try:
                runner.execute(self.run_entered, self._rejected)
            except RejectedExecutionError as error:
                self._rejected(error)

    def _rejected(self, error: RejectedExecutionError) -> None:
        # The permit is held: the executor, which should have given it back, does not run.
        downstream, self._downstream = self._downstream, None
        self._discard()
        self._finish_up()
        if downstream is not None:  # a subscriber that has cancelled gets no signal
            downstream.on_error(error)
        self.leave()

    @override
    def drain(self) -> None:
        while True:
            self._drop_lost()
            downstream, bad = self._downstream, self._bad
            if downstream is None:
                self._discard()
                return
            if bad is not None:
                self._downstream = None
                self._discard()
                self._finish_up()
                downstream.on_error(bad)
                return
            done = self._done  # read before the store: items from before the end are there by then
            if done:
                self._finish_up()
            item: T | Empty = EMPTY
            with self._lock:
                wanted = self._used < self._requested
                if wanted:
                    item = self._store.take()
                    if item is not EMPTY:
                        self._used += 1
                waiting = self._store.waiting
            if item is EMPTY:
                if done and not waiting:
                    self._terminate(downstream)
                return
            try:
                made = self._store.make(item)
            except BaseException as error:
                self._broken(downstream, error)
                return
            del item
            if made is EMPTY:
                with self._lock:
                    self._used -= 1
                continue
            self._deliver(downstream, made)
            del made

    def _deliver(self, downstream: CoreSubscriber[T], item: T) -> None:
        try:
            downstream.on_next(item)
        except BaseException as error:
            self._downstream = None
            self._discard()
            try:
                throw_if_fatal(error)
                if not downstream.on_next_raised(error):
                    hooks.drop_error(error)
            finally:
                self._finish_up()

    def _broken(self, downstream: CoreSubscriber[T], error: BaseException) -> None:
        self._downstream = None
        self._discard()
        self._finish_up()
        throw_if_fatal(error)
        downstream.on_error(error)

    def _terminate(self, downstream: CoreSubscriber[T]) -> None:
        with self._lock:
            # A bad request has a separate error, which follows in the next round (§3.9).
            if self._downstream is None or self._bad is not None:
                return
            self._downstream = None
            error, self._error = self._error, None
        if error is None:
            downstream.on_complete()
        else:
            downstream.on_error(error)

    def _discard(self) -> None:
        with self._lock:
            items = self._store.clear()
            error, self._error = self._error, None
        for item in items:
            self._store.drop(item)
        self._drop_lost()
        if error is not None:
            hooks.drop_error(error)

    def _drop_lost(self) -> None:
        while self._lost:
            try:
                self._store.drop(self._lost.popleft())
            except IndexError:
                return

    @override
    def statistics(self) -> Statistics:
        return Statistics(
            operator=self._label,
            requested=max(0, self._requested - self._used),
            buffered=self._store.waiting,
            terminated=self._downstream is None,
            error=self._bad if self._error is None else self._error,
        )


@final
class Lines(Generic[T]):
    """The outlets of a hot source: each gets the items that come after it has joined, and the end.

    An outlet that joins after the end gets the end. `lock` puts items in one order for all.
    """

    __slots__ = ("_error", "_outlets", "ended", "lock")

    def __init__(self) -> None:
        self.lock = Lock()
        self._outlets: tuple[Outlet[T], ...] = ()
        self.ended = False
        self._error: BaseException | None = None

    @property
    def error(self) -> BaseException | None:
        """The error that the source has ended with, if there is one."""
        return self._error

    def __len__(self) -> int:
        return len(self._outlets)

    def join(self, outlet: Outlet[T], first: Callable[[], T] | None = None) -> None:
        """Pass signals to `outlet` from now on, first the result of `first`, under the lock."""
        with self.lock:
            ended = self.ended
            if not ended:
                self._outlets = (*self._outlets, outlet)
                if first is not None:
                    outlet.put(first())
        if ended:
            outlet.end(self._error)
        else:
            # A subscriber that has cancelled by now is removed again at once.
            outlet.attach(lambda: self.part(outlet))
            outlet.signal()

    def part(self, outlet: Outlet[T]) -> None:
        """Pass no more signals to `outlet`."""
        with self.lock:
            self._outlets = tuple(each for each in self._outlets if each is not outlet)

    def put_locked(self, item: T) -> tuple[Outlet[T], ...]:
        """Publish `item`, under `lock`; return the outlets to signal when the lock is released."""
        outlets = self._outlets
        for outlet in outlets:
            outlet.put(item)
        return outlets

    def put(self, item: T) -> bool:
        """Send `item` to all outlets; return False if the end has come."""
        with self.lock:
            if self.ended:
                return False
            outlets = self.put_locked(item)
        for outlet in outlets:
            outlet.signal()
        return True

    def end_locked(self, error: BaseException | None) -> tuple[Outlet[T], ...]:
        """End all outlets, under `lock`; return the outlets to signal when it is released."""
        self.ended = True
        self._error = error
        outlets, self._outlets = self._outlets, ()
        return outlets

    def end(self, error: BaseException | None) -> bool:
        """End all outlets; return False if the end had come already: then `error` is dropped."""
        with self.lock:
            late = self.ended
            outlets = () if late else self.end_locked(error)
        if late and error is not None:
            hooks.drop_error(error)
        for outlet in outlets:
            outlet.end(error)
        return not late
