"""Sources of signals: sent by hand, and from a value that changes."""

from __future__ import annotations

from typing import Generic, TypeVar, final

from typing_extensions import override

from flow_core import Flow, hooks
from flow_core.demand import DEFAULT_PREFETCH
from flow_core.errors import NoneItemError, none_given
from flow_core.protocols import Publisher, Subscriber
from flow_core.subscribers import core_subscriber
from flow_rxcompat._outlets import (
    Counted,
    Lines,
    Outlet,
    Queued,
    Strategy,
    check_strategy,
)
from flow_rxcompat.signals.observable import Observable
from flow_rxcompat.signals.updatables import UPDATE, Signal

__all__ = ["Dispatcher", "MutableRepository"]

T = TypeVar("T")


@final
class _Signals(Publisher[Signal]):
    """The signals of `Lines`; signals that wait for a subscriber are only counted."""

    __slots__ = ("_label", "_lines")

    def __init__(self, lines: Lines[Signal], label: str) -> None:
        self._lines = lines
        self._label = label

    @override
    def subscribe(self, subscriber: Subscriber[Signal], /) -> None:
        outlet: Outlet[Signal] = Outlet(core_subscriber(subscriber), Counted(UPDATE), self._label)
        outlet.start()
        self._lines.join(outlet)

    def __repr__(self) -> str:
        return self._label


@final
class Dispatcher(Observable):
    """Sends signals by hand, from any threads.

    >>> dispatcher = Dispatcher()
    >>> handle = dispatcher.register(lambda: print("changed"))
    >>> dispatcher.update()
    changed

    Demand: updates that are not requested wait, and are only counted. Thread: the caller's (G10).
    """

    __slots__ = ("_lines",)

    def __init__(self) -> None:
        self._lines: Lines[Signal] = Lines()
        super().__init__(_Signals(self._lines, "Dispatcher()"))

    @property
    def has_updatables(self) -> bool:
        """True if there is a registration."""
        return len(self._lines) > 0

    @property
    def terminated(self) -> bool:
        """True if this has failed or completed."""
        return self._lines.ended

    def update(self) -> None:
        """Send an update. After the end, do nothing."""
        self._lines.put(UPDATE)

    def error(self, error: BaseException, /) -> None:
        """Fail: all updatables get `error` itself, even those that come later."""
        if error is None:
            raise none_given("error")
        self._lines.end(error)

    def complete(self) -> None:
        """Complete: no update follows."""
        self._lines.end(None)


@final
class _Values(Publisher[T]):
    """The values of a repository, sent to each subscriber as a strategy says."""

    __slots__ = ("_capacity", "_current", "_repository", "_strategy")

    def __init__(
        self,
        repository: MutableRepository[T],
        strategy: Strategy,
        capacity: int,
        *,
        current: bool,
    ) -> None:
        self._repository = repository
        self._strategy: Strategy = strategy
        self._capacity = capacity
        self._current = current

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        store: Queued[T] = Queued(self._strategy, self._capacity, repr(self))
        outlet: Outlet[T] = Outlet(core_subscriber(subscriber), store, repr(self))
        outlet.start()
        self._repository.join(outlet, current=self._current)

    def __repr__(self) -> str:
        return f"values({self._strategy!r})"


@final
class MutableRepository(Observable, Generic[T]):
    """A value that changes. Subscribers get a signal of each change or, by `values`, all values.

    >>> numbers = MutableRepository(0)
    >>> handle = numbers.register(lambda: print("changed to", numbers.get()))
    >>> numbers.accept(1)
    changed to 1
    >>> seen = numbers.values(strategy="buffer", current=False).subscribe(print)
    >>> numbers.accept(2)
    changed to 2
    2

    A value that is equal to the last one is not a change. Thread: the caller's (G10).

    Args:
        value: the first value.

    Raises:
        NoneItemError: if `value` is None.
    """

    __slots__ = ("_lines", "_signals", "_value")

    def __init__(self, value: T) -> None:
        if value is None:
            raise NoneItemError("MutableRepository(None): None is not a value")
        self._value = value
        self._signals: Lines[Signal] = Lines()
        self._lines: Lines[T] = Lines()
        super().__init__(_Signals(self._signals, "MutableRepository()"))

    def get(self) -> T:
        """Return the value."""
        return self._value

    def accept(self, value: T, /) -> None:
        """Replace the value. If this has ended, `value` goes to the dropped-items hook."""
        if value is None:
            raise none_given("accept")
        lines = self._lines
        while not lines.ended:
            known = self._value
            if value == known:  # without the lock, as it calls out
                return
            with lines.lock:
                if self._value is not known or lines.ended:
                    continue  # another thread was faster: compare with its value
                self._value = value
                outlets = lines.put_locked(value)
            self._signals.put(UPDATE)
            for outlet in outlets:
                outlet.signal()
            return
        hooks.drop_item(value)

    def error(self, error: BaseException, /) -> None:
        """Fail: all updatables get `error` itself, even those that come later."""
        if error is None:
            raise none_given("error")
        if self._lines.end(error):
            self._signals.end(error)

    def complete(self) -> None:
        """Complete: no other value will come."""
        if self._lines.end(None):
            self._signals.end(None)

    def values(
        self,
        *,
        strategy: Strategy = "latest",
        capacity: int = DEFAULT_PREFETCH,
        current: bool = True,
    ) -> Flow[T]:
        """Return a flow of the values, none of which is lost unless the strategy allows it (G7).

        Demand: as `strategy` says. Thread: that of ``accept``, or of the requester.

        Args:
            strategy: what happens to values that are not requested: see `Strategy`.
            capacity: how many values wait at most, in ``buffer``.
            current: whether the flow begins with the present value.
        """
        check_strategy(strategy, capacity)
        return Flow(_Values(self, strategy, capacity, current=current))

    def join(self, outlet: Outlet[T], *, current: bool) -> None:
        """Pass the values to `outlet`; used by `values`."""
        self._lines.join(outlet, self.get if current else None)
