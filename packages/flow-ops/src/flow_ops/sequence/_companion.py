"""The base of `repeat_when` and `retry_when`: another flow decides when the source runs again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from typing_extensions import override

from flow_core.conversion import as_flow
from flow_core.flow import Flow
from flow_core.protocols import CoreSubscriber, Publisher
from flow_core.sources import Emitter, create
from flow_ops.arbiters import SwitchArbiter
from flow_ops.coordination import Listener

__all__ = ["Companioned"]

T = TypeVar("T")
S = TypeVar("S")


class Companioned(SwitchArbiter[T], Generic[T, S]):
    """Runs a source, then again for each item that another flow, the companion, emits.

    The companion's items count only after a run has ended. A subclass calls `ask` then.

    Args:
        source: the flow to run.
        handler: makes the companion from the flow of the values passed to `ask`.
        downstream: gets the signals.
        label: the operator and its place, for messages.
    """

    __slots__ = ("_companion", "_emitters", "_handler", "_paused", "_source")

    def __init__(
        self,
        source: Flow[T],
        handler: Callable[[Flow[S]], Publisher[object]],
        downstream: CoreSubscriber[T],
        label: str,
    ) -> None:
        super().__init__(downstream, label)
        self._source = source
        self._handler = handler
        self._companion: Listener[object] | None = Listener(self, self._again, self.end)
        self._emitters: tuple[Emitter[S], ...] = ()
        """The emitters that send the values passed to `ask` to the companion: one for each
        subscriber of their flow. Written under `_lock`."""
        self._paused = False
        """True when a run has ended, and the companion has not sent the item that starts the next
        run."""

    @override
    def open(self) -> None:
        self.post(self.outside, self._begin)

    def ask(self, signal: S) -> None:
        """Report that a run has ended, and wait for the companion's item.

        The caller must hold the permit.
        """
        self._paused = True
        self.outside(self._tell, signal)

    @override
    def closed(self) -> None:
        super().closed()
        self._companion = None
        with self._lock:
            self._emitters = ()

    def _begin(self, _: object) -> None:
        made = self._handler(create(self._connected, overflow="latest"))
        told = as_flow(made, "the handler")
        companion = self._companion
        if companion is not None:
            self.connect(told, companion)
        if not self.over:
            self.switch_to(self._source)

    def _connected(self, emitter: Emitter[S]) -> None:
        with self._lock:
            if not self.over:  # `closed` may have been here before
                left = [one for one in self._emitters if not one.cancelled]
                self._emitters = (*left, emitter)

    def _tell(self, signal: S) -> None:
        companion = self._companion
        if companion is not None:
            companion.request(1)
        for emitter in self._emitters:
            if not emitter.cancelled:
                emitter.next(signal)

    def _again(self, _: object) -> None:
        if self._paused:
            self._paused = False
            self._switch(self._source)
