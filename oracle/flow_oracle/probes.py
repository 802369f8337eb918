"""Both ends of a pipeline: a source and a subscriber that record the signals they see.

Their counterparts are ``Probe.java`` and ``Consumer.java``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

from flow_core import UNBOUNDED, ConditionalSubscriber, CoreSubscriber, Subscriber, Subscription
from flow_oracle.functions import OracleError
from flow_oracle.language import Node, Part
from flow_oracle.trace import Trace, shown_error, shown_item

__all__ = ["Consumer", "CoreConsumer", "Probe"]

Item = Any  # an int, or a list of items


@final
class Probe:
    """A source that follows the rules, and signals in the requester's thread.

    Args:
        trace: receives the events.
        items: the items it sends on demand.
        end: ``"complete"``, ``"never"`` or ``("error", n)``: follows the items, without demand.
        conditional: whether it uses `try_on_next` of conditional subscribers.
    """

    def __init__(self, trace: Trace, items: Sequence[Item], end: Part, conditional: bool) -> None:
        self.trace = trace
        self.items = items
        self.end = end
        self.conditional = conditional

    def subscribe(self, subscriber: Subscriber[Item], /) -> None:
        """See `flow_core.Publisher.subscribe`."""
        run = _Run(self, subscriber)
        run.note("subscribe")
        subscriber.on_subscribe(run)
        run.busy = False
        run.drain()


@final
class _Run:
    def __init__(self, probe: Probe, subscriber: Subscriber[Item]) -> None:
        self._probe = probe
        self._subscriber = subscriber
        self._name = probe.trace.probe()
        self._next = 0
        self._demand = 0
        self._over = False
        self.busy = True
        """True while nothing may be sent: before on_subscribe has returned, and within on_next."""

    def note(self, event: str) -> None:
        self._probe.trace.add(f"{self._name} {event}")

    def request(self, n: int, /) -> None:
        if self._over or self._demand == UNBOUNDED:
            return  # it changes nothing
        self.note(f"request {n}")
        if n <= 0:
            self._over = True
            self._subscriber.on_error(ValueError(f"§3.9 violated: request({n})"))
            return
        self._demand = min(self._demand + n, UNBOUNDED)
        self.drain()

    def cancel(self) -> None:
        if not self._over:
            self.note("cancel")
            self._over = True

    def drain(self) -> None:
        if self.busy:
            return
        self.busy = True
        items, end = self._probe.items, self._probe.end
        while not self._over:
            if self._next == len(items):
                if end == "never":
                    break
                self._over = True
                if end == "complete":
                    self.note("complete")
                    self._subscriber.on_complete()
                else:
                    self.note("error")
                    self._subscriber.on_error(OracleError(end[1]))
            elif self._demand == 0:
                break
            else:
                self._next += 1
                if self._given(items[self._next - 1]) and self._demand != UNBOUNDED:
                    self._demand -= 1
        self.busy = False

    def _given(self, item: Item) -> bool:
        self.note(f"next {shown_item(item)}")
        subscriber = self._subscriber
        if self._probe.conditional and isinstance(subscriber, ConditionalSubscriber):
            return subscriber.try_on_next(item)
        subscriber.on_next(item)
        return True


class Consumer:
    """The subscriber at the end, which requests and cancels as its `demand` says.

    Args:
        trace: receives the events.
        demand: see `language`.
    """

    def __init__(self, trace: Trace, demand: Node) -> None:
        self._trace = trace
        self._demand: Any = demand[1:]
        self._subscription: Subscription | None = None
        self._items = 0

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """See `flow_core.Subscriber.on_subscribe`."""
        self._subscription = subscription
        self._trace.add("subscribed")
        self._request(self._demand[0])

    def on_next(self, item: Item, /) -> None:
        """See `flow_core.Subscriber.on_next`."""
        self._trace.add(f"next {shown_item(item)}")
        self._items += 1
        if self._items == self._demand[2]:
            self._cancel()
        else:
            self._request(self._demand[1])

    def on_error(self, error: BaseException, /) -> None:
        """See `flow_core.Subscriber.on_error`."""
        self._trace.add(f"error {shown_error(error)}")

    def on_complete(self) -> None:
        """See `flow_core.Subscriber.on_complete`."""
        self._trace.add("complete")

    def steps(self) -> None:
        """Perform the steps that remain when subscribe has returned."""
        for step in self._demand[3:]:
            if self._subscription is None:
                self._trace.add("no subscription")
            elif step == "cancel":
                self._cancel()
            else:
                self._trace.add(f"request {step}")
                self._subscription.request(step)

    def _request(self, n: int) -> None:
        if n != 0 and self._subscription is not None:
            self._trace.add(f"request {n}")
            self._subscription.request(n)

    def _cancel(self) -> None:
        self._trace.add("cancel")
        if self._subscription is not None:
            self._subscription.cancel()


@final
class CoreConsumer(Consumer, CoreSubscriber[Item]):
    """A consumer that gets no guard in front of it."""
