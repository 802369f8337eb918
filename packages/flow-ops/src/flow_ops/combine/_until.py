"""The base of operators that pass a flow on until, or after, another flow emits an item."""

from __future__ import annotations

from typing import TypeVar

from typing_extensions import override

from flow_core.flow import Flow
from flow_core.protocols import CoreSubscriber, Publisher
from flow_ops.coordination import Listener, Passing

__all__ = ["Until"]

T = TypeVar("T")


class Until(Passing[T]):
    """Passes the signals of a flow on, and listens to another one."""

    __slots__ = ("_other", "_source", "_until")

    def __init__(
        self,
        source: Flow[T],
        other: Publisher[object],
        downstream: CoreSubscriber[T],
        label: str,
    ) -> None:
        super().__init__(downstream, label)
        self._source = source
        self._other = other
        self._until: Listener[object] | None = Listener(self, self._on_other, self._on_other_end, 1)

    @override
    def open(self) -> None:
        if self._until is not None:
            self.connect(self._other, self._until)
        self.follow(self._source)

    @override
    def closed(self) -> None:
        super().closed()
        self._until = None

    def _on_other(self, _: object) -> None:
        """Called when the other flow emits an item."""

    def _on_other_end(self, error: BaseException | None) -> None:
        if error is not None:
            self.fail(error)
