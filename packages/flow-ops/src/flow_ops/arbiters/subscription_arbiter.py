"""`SubscriptionArbiter`: one subscription for a downstream whose upstreams follow one another."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import final

from typing_extensions import override

from flow_core import hooks
from flow_core.demand import UNBOUNDED, add_demand, bad_request
from flow_core.errors import ProtocolViolationError
from flow_core.protocols import Subscription

__all__ = ["SubscriptionArbiter"]


@final
class SubscriptionArbiter(Subscription):
    """The subscription to hand to a downstream; `set` puts each upstream's subscription into it.

    A subscriber between the upstreams and the downstream counts the items that it passes on, and
    calls `produced` before the next `set`:

    >>> import flow_core as flow
    >>> from flow_core import CoreSubscriber
    >>> class Then(CoreSubscriber):
    ...     def __init__(self, downstream, arbiter, *others):
    ...         self.downstream, self.arbiter, self.others = downstream, arbiter, others
    ...         self.on_subscribe, self.on_error = arbiter.set, downstream.on_error
    ...         self.count = 0
    ...
    ...     def on_next(self, item):
    ...         self.count += 1
    ...         self.downstream.on_next(item)
    ...
    ...     def on_complete(self):
    ...         if self.count:
    ...             self.arbiter.produced(self.count)
    ...         if not self.others:
    ...             return self.downstream.on_complete()
    ...         other, *rest = self.others
    ...         other.subscribe(Then(self.downstream, self.arbiter, *rest))
    >>> from flow_testing import TestSubscriber
    >>> subscriber, arbiter = TestSubscriber(3), SubscriptionArbiter()
    >>> subscriber.on_subscribe(arbiter)
    >>> flow.range(2).subscribe(Then(subscriber, arbiter, flow.range(2, 5)))
    >>> subscriber.items
    [0, 1, 2]

    Calls may come from any thread. Subscriptions are called without a lock, by the calling thread;
    a cancel does not wait for a request that is being answered.

    Items do not pass through the arbiter, so it has the limit of `ProducerArbiter`: call `set` only
    when the upstream before will send nothing more. `SwitchArbiter` has no such limit.

    Args:
        cancel_on_replace: whether `set` cancels the subscription that it replaces.
        on_bad_request: called with the error of ``request(n <= 0)``, after everything was
            cancelled; the function has to send that error. Without a function, the error goes to
            the dropped-errors hook.
    """

    __slots__ = (
        "_cancel_on_replace",
        "_cancelled",
        "_current",
        "_lock",
        "_on_bad_request",
        "_outstanding",
    )

    def __init__(
        self,
        *,
        cancel_on_replace: bool = False,
        on_bad_request: Callable[[ValueError], object] | None = None,
    ) -> None:
        self._cancel_on_replace = cancel_on_replace
        self._on_bad_request = on_bad_request
        self._lock = Lock()
        """Guards the fields below. Never held while calling out."""
        self._current: Subscription | None = None
        self._outstanding = 0
        self._cancelled = False

    @property
    def cancelled(self) -> bool:
        """True if this was cancelled; then a subscription that is `set` is cancelled, too."""
        return self._cancelled

    @property
    def outstanding(self) -> int:
        """The number of items requested and not produced yet; `UNBOUNDED` for any number."""
        return self._outstanding

    @property
    def unbounded(self) -> bool:
        """True if demand never runs out, so that `produced` need not be called any more."""
        return self._outstanding == UNBOUNDED

    @override
    def request(self, n: int, /) -> None:
        """Request of the current subscription, or of the next one."""
        bad = bad_request(n)
        if bad is not None:
            if self._cancelled:
                return
            self.cancel()
            tell, self._on_bad_request = self._on_bad_request, None
            (tell or hooks.drop_error)(bad)
            return
        with self._lock:
            if self._cancelled or self._outstanding == UNBOUNDED:
                return
            self._outstanding = add_demand(self._outstanding, n)
            current = self._current
        if current is not None:
            current.request(n)

    def produced(self, n: int, /) -> None:
        """Note that `n` of the requested items were delivered.

        More than were requested is an upstream's mistake: the demand is 0 then, and the
        dropped-errors hook gets an error.

        Raises:
            TypeError: if `n` is not an int.
            ValueError: if `n` is less than 1.
        """
        if bad_request(n) is not None:
            raise ValueError(f"produced(n) takes at least 1 item, not {n}")
        with self._lock:
            before = self._outstanding
            if before != UNBOUNDED:
                self._outstanding = max(0, before - n)
        if n > before:
            hooks.drop_error(
                ProtocolViolationError(
                    f"{n} items were produced and only {before} requested: the upstream "
                    "ignores demand, or items were counted twice"
                )
            )

    def set(self, subscription: Subscription | None, /) -> None:
        """Replace the subscription: all outstanding items are requested of `subscription`.

        Args:
            subscription: the next one; None to drop the current one. The next one is cancelled at
                once if this was cancelled.
        """
        with self._lock:
            cancelled = self._cancelled
            replaced: Subscription | None = None
            if not cancelled:
                replaced, self._current = self._current, subscription
            outstanding = self._outstanding
        if replaced is not None and self._cancel_on_replace:
            hooks.cancel(replaced)
        if subscription is None:
            return
        if cancelled:
            subscription.cancel()
        elif outstanding:
            subscription.request(outstanding)

    @override
    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            current, self._current = self._current, None
        if current is not None:
            hooks.cancel(current)
