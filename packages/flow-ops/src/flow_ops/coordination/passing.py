"""A coordinator that passes the signals of one source on."""

from __future__ import annotations

from typing import TypeVar

from typing_extensions import override

from flow_core.protocols import CoreSubscriber, Publisher
from flow_ops.coordination.coordinator import Coordinator, Listener

__all__ = ["Passing"]

T = TypeVar("T")


class Passing(Coordinator[T]):
    """Passes the signals of one source on; a subclass calls `follow` with the source.

    Args:
        downstream: gets the signals.
        label: the operator and where it was assembled, for messages.
    """

    __slots__ = ("_main",)

    def __init__(self, downstream: CoreSubscriber[T], label: str) -> None:
        super().__init__(downstream, label)
        self._main: Listener[T] | None = Listener(self, self.emit, self.end)

    def follow(self, source: Publisher[T]) -> None:
        """Subscribe to `source`, and request the demand so far. Call this once."""
        main = self._main
        if main is not None:
            self.connect(source, main)

    @override
    def requested(self, n: int) -> None:
        main = self._main
        if main is not None:
            main.request(n)

    @override
    def closed(self) -> None:
        self._main = None
