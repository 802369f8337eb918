"""The base of operators over the last items before the end, in a length of time."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from typing import TypeVar

from typing_extensions import override

from flow_core import hooks
from flow_core.clocks import Clock
from flow_core.flow import Flow
from flow_core.protocols import CoreSubscriber
from flow_ops.coordination import Coordinator, Listener

__all__ = ["Last"]

T = TypeVar("T")


class Last(Coordinator[T]):
    """Keeps items with the times at which they came."""

    __slots__ = ("_clock", "_completed", "_duration_s", "_main", "_source", "_waiting")

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[T],
        label: str,
        *,
        duration_s: float,
        clock: Clock | None,
        demand: int,
    ) -> None:
        super().__init__(downstream, label)
        self._source = source
        self._duration_s = duration_s
        self._clock = self.clock_for(clock)
        self._main: Listener[T] | None = Listener(self, self._on_item, self._on_end, demand)
        self._waiting: deque[tuple[float, T]] = deque()
        self._completed = False

    @override
    def open(self) -> None:
        main = self._main
        if main is not None:
            self.connect(self._source, main)

    @override
    def closed(self) -> None:
        self._main = None
        waiting = self._waiting
        while waiting:
            _, item = waiting.popleft()
            hooks.drop_item(item)

    @property
    @override
    def buffered(self) -> int:
        return len(self._waiting)

    @abstractmethod
    def _on_item(self, item: T) -> bool:
        """Take an item; return False if one more has to be requested in its place."""

    @abstractmethod
    def _on_completed(self, time_s: float) -> None:
        """Keep only the items that are to be sent: the source has completed at this time."""

    def _on_end(self, error: BaseException | None) -> None:
        if error is not None:
            self.fail(error)
            return
        self._completed = True
        self._on_completed(self._clock.now())
