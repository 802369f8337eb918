"""An input that the owner polls for items and the end."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, TypeVar

from typing_extensions import override

from flow_core import hooks
from flow_core.errors import none_given
from flow_ops.coordination.coordinator import Coordinator, Input

__all__ = ["PolledInput"]

T = TypeVar("T")


class PolledInput(Input[T]):
    """The base of inputs that keep items until the owner takes them, in `step`.

    They keep the end, too: `done` is True then, and `error` is set if there is one.

    Args:
        owner: the coordinator; it does a `step` for each signal.
        demand: how much to request as soon as there is a subscription.
    """

    __slots__ = ("error",)

    def __init__(self, owner: Coordinator[Any], demand: int) -> None:  # Any: the type that it emits
        super().__init__(owner, demand)
        self.error: BaseException | None = None
        """The error of the source, once this is `done`. The owner sets it to None when it takes the
        error."""

    @abstractmethod
    def drop_waiting(self) -> None:
        """Drop the items that wait.

        Any thread may call this, when the flow has ended or this input is disconnected.
        """

    @override
    def on_error(self, error: BaseException, /) -> None:
        """Keep the error; the owner gets it after the items that wait."""
        if error is None:
            raise none_given("on_error")
        owner = self.owner
        with owner._lock:  # the flow ends under it: `close` came before, or will find the error
            late = self.done or self.gone or owner.over
            if not late:
                self.error = error
        if late:
            self.late(error)
        else:
            self._ended()

    @override
    def on_complete(self) -> None:
        if not self.done:
            self._ended()

    def close(self) -> None:
        """Drop the items that wait, and the error if there is one.

        The caller must hold the permit; the flow has ended, or this input is disconnected.
        """
        self.drop_waiting()
        error, self.error = self.error, None
        if error is not None:
            hooks.drop_error(error)

    def _ended(self) -> None:
        """Note that the source has ended: its subscription is not called any more (§2.4)."""
        self.done = True
        self.owner.forget(self)
        self.owner.ending(self)
        self.owner.signal()
