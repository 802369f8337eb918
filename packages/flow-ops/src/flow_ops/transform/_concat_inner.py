"""The subscriber with which `concat_map` subscribes to an inner flow."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.errors import none_given
from flow_core.homes import Home
from flow_core.protocols import ConditionalSubscriber, Subscription
from flow_core.serial import BUSY
from flow_ops.transform._ending import EndsInDrain

if TYPE_CHECKING:
    from flow_ops.transform._concat import ConcatMapSubscriber

__all__ = ["InnerSubscriber"]

R = TypeVar("R")


@final
class InnerSubscriber(EndsInDrain[R], ConditionalSubscriber[R], Generic[R]):
    """Receives one inner flow.

    Items go straight to the downstream, under a permit: it is taken while an item is being sent. If
    a publisher answers a request made within on_next by calling on_next again, it finds the permit
    taken, and its item waits in a queue. This keeps the items in order, and the stack bounded.

    Args:
        owner: the subscriber whose downstream gets the items.
        conditional: whether the downstream reports which items use up demand.
    """

    __slots__ = (
        "__weakref__",
        "_conditional",
        "_inbox",
        "_owner",
        "produced",
        "receive",
        "upstream",
    )

    # Any: only R matters here.
    def __init__(self, owner: ConcatMapSubscriber[Any, R], conditional: bool) -> None:
        super().__init__()
        self._owner = owner
        self._conditional = conditional
        self.receive: Callable[[R], object] = hooks.drop_item
        """Takes an item: the downstream's function, while this flow has its turn."""
        self._inbox: deque[R] = deque()
        self.upstream: Subscription | None = None
        self.produced = 0
        """The number of items that have used up demand."""

    @override
    def home(self) -> Home | None:
        return self._owner.home()

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        if subscription is None:
            raise none_given("on_subscribe")
        demand = self._owner.admit(self, subscription)
        if demand > 0:
            subscription.request(demand)
        elif demand < 0:
            subscription.cancel()  # §2.5, or its turn has passed

    @override
    def on_next(self, item: R, /) -> None:
        if not self.try_on_next(item) and self.upstream is not None:
            self.upstream.request(1)

    @override
    def try_on_next(self, item: R, /) -> bool:
        if item is None:
            raise none_given("on_next")
        used = self.alone(self._accept, item)
        if used is BUSY:
            self._inbox.append(item)
            self.signal()
            return True
        return used

    def _accept(self, item: R) -> bool:
        if not self._inbox:
            return self._emit(item)
        self._inbox.append(item)
        self._missed = True
        return True

    @override
    def drain(self) -> None:
        inbox = self._inbox
        while inbox:
            if not self._emit(inbox.popleft()) and self.upstream is not None:
                self.upstream.request(1)
        if self._done or self._owner.gate.cancelled:
            error, self._error = self._error, None
            self._owner.leave_turn(self, error)

    def _emit(self, item: R) -> bool:
        try:
            if self.receive(item) is False and self._conditional:
                return False
            self.produced += 1
        except BaseException as error:
            self._owner.raised_within(error)
        return True
