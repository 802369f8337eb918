"""The subscription without items, for `never` and failures."""

from __future__ import annotations

from typing import Any, final

from typing_extensions import override

from flow_core.demand import bad_request
from flow_core.introspection import Scannable, Statistics
from flow_core.protocols import CoreSubscriber, Subscription
from flow_core.serial import SerialDrain

__all__ = ["IdleSubscription", "fail"]


@final
class IdleSubscription(SerialDrain, Subscription, Scannable):
    """A subscription that has no items to send. It still checks the amounts requested (§3.9).

    Args:
        downstream: gets the signals.
        error: signalled once on_subscribe has returned; with `on_request`, at the first request.
        on_request: whether the error waits for the first request.
    """

    __slots__ = ("_downstream", "_error", "_requested")

    def __init__(
        self,
        downstream: CoreSubscriber[Any],  # Any: no item is ever sent
        error: BaseException | None = None,
        *,
        on_request: bool = False,
    ) -> None:
        super().__init__()
        self._downstream: CoreSubscriber[Any] | None = downstream
        self._error = error
        self._requested = not on_request

    def start(self) -> None:
        """Hand this over as the subscription, then signal the error, if there is one (§1.9)."""
        downstream = self._downstream
        # We hold the permit, so that no signal comes before on_subscribe has returned.
        if downstream is not None and self.try_enter():
            try:
                downstream.on_subscribe(self)
            except BaseException:
                self._downstream = None
                self.leave()
                raise
            self.run_entered()

    @override
    def request(self, n: int, /) -> None:
        bad = bad_request(n)
        if not self._requested:
            if bad is not None:
                self._error = bad
            self._requested = True
            self.signal()
        elif bad is not None and self._error is None:
            self._error = bad
            self.signal()

    @override
    def cancel(self) -> None:
        self._downstream = self._error = None

    @override
    def drain(self) -> None:
        error = self._error
        if error is not None and self._requested:
            downstream, self._downstream = self._downstream, None
            self._error = None
            if downstream is not None:
                downstream.on_error(error)

    @override
    def statistics(self) -> Statistics:
        """Report the state. Requests are checked, but not counted."""
        error = self._error
        return Statistics(
            operator="never" if error is None else "error",
            terminated=self._downstream is None,
            error=error,
        )


def fail(downstream: CoreSubscriber[Any], error: BaseException) -> None:  # Any: no item is sent
    """Give `downstream` a subscription, and then send it `error`."""
    IdleSubscription(downstream, error).start()
