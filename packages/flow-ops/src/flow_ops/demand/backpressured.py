"""The base of the back-pressure operators: they request everything, and send items on demand."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.demand import UNBOUNDED
from flow_core.errors import is_fatal, none_given
from flow_core.flow import Flow
from flow_core.protocols import CoreSubscriber
from flow_ops.coordination import Coordinator, Input

__all__ = ["Backpressured", "UnboundedInput"]

T = TypeVar("T")


class Backpressured(Coordinator[T]):
    """Requests all items of an upstream.

    An item for which there is demand passes; a subclass decides about the others.

    Items wait in `waiting`. The upstream's thread appends, and may remove an item to replace it;
    the thread that has the permit takes items from the left, and delivers them. Each of the two may
    find the deque empty, because the other one was faster.

    Args:
        source: the upstream.
        downstream: gets the signals.
        label: the operator and where it was assembled, for messages.
    """

    __slots__ = ("_error", "_has_ended", "_source", "waiting")

    def __init__(self, source: Flow[T], downstream: CoreSubscriber[T], label: str) -> None:
        super().__init__(downstream, label)
        self._source = source
        self._has_ended = False
        """True when the upstream has ended; the end follows the items that wait. Written with the
        permit."""
        self._error: BaseException | None = None
        self.waiting: deque[Any] = deque()  # Any: items, or entries of a subclass

    @abstractmethod
    def surplus(self, item: T) -> BaseException | None:
        """Take an item that cannot pass at once.

        The upstream's thread calls this, without the permit.

        Returns:
            The error to end the flow with, after all items that wait; None to continue.

        Raises:
            BaseException: an error raised by the user's function. It fails the flow at once.
        """

    @override
    def open(self) -> None:
        self.connect(self._source, UnboundedInput(self))

    @override
    def step(self) -> None:
        waiting = self.waiting
        while waiting and self._emitted < self._requested and not self.over:
            try:
                item: T = waiting.popleft()
            except IndexError:  # the upstream's thread has removed it, to replace it
                break
            self.emit(item)
            del item
        if self._has_ended and not (waiting or self.over):
            self.finish()

    def ended(self, error: BaseException | None) -> None:
        """Note that the upstream has ended.

        The caller must hold the permit, and have handled all items that the upstream has sent.
        """
        self._has_ended = True
        self._error = error

    def finish(self) -> None:
        """Send the end of the upstream downstream. The caller must hold the permit."""
        error, self._error = self._error, None
        self.end(error)

    @override
    def closed(self) -> None:
        self.discard()
        error, self._error = self._error, None
        if error is not None:
            hooks.drop_error(error)

    def discard(self) -> None:
        """Drop all items that wait."""
        hooks.drop_waiting(self.waiting)

    def lose(self, item: T, tell: Callable[[T], object] | None) -> None:
        """Drop an item, and call the user's function, as long as the flow has a subscriber."""
        hooks.drop_item(item)
        if tell is not None and not self.over:
            tell(item)

    @property
    @override
    def buffered(self) -> int:
        return len(self.waiting)


@final
class UnboundedInput(Input[T]):
    """Requests everything. An item for which there is demand goes straight to the downstream.

    Args:
        owner: takes the other items.
        straight: False if no item may go straight, since the downstream polls.
    """

    __slots__ = ("_backpressured", "_is_cut", "_straight")

    def __init__(self, owner: Backpressured[T], *, straight: bool = True) -> None:
        super().__init__(owner, UNBOUNDED)
        self._backpressured = owner
        self._straight = straight
        self._is_cut = False
        """True when no further item is accepted."""

    @override
    def cut(self) -> None:
        self._straight = False
        self._is_cut = True

    @override
    def on_next(self, item: T, /) -> None:
        if item is None:
            raise none_given("on_next")
        owner = self._backpressured
        # Only this thread makes items wait: if none waits, no item comes before this one. If one is
        # being sent, the permit is taken. When the flow has ended, `emit` drops the item.
        if self._straight and not owner.waiting and owner.alone(self._pass, item) is True:
            return
        if self._is_cut or owner.over:
            hooks.drop_item(item)
            return
        try:
            failure = owner.surplus(item)
        except BaseException as error:
            if is_fatal(error):
                owner.give_up(error)
                raise
            owner.disconnect(self)
            owner.post(owner.fail, owner.blame(error), hooks.drop_error)
            return
        if failure is not None:
            owner.disconnect(self)
            owner.post(owner.ended, failure, hooks.drop_error)

    def _pass(self, item: T) -> bool:
        """Send `item`, if there is demand. The caller must hold the permit.

        The result is whether it was sent.
        """
        owner = self._backpressured
        try:
            if owner._emitted >= owner._requested:
                return False
            owner.emit(item)
        except BaseException as error:
            owner._failed(error)
        return True

    @override
    def on_error(self, error: BaseException, /) -> None:
        if error is None:
            raise none_given("on_error")
        if self.done or self.gone:
            hooks.drop_error(error)
            return
        self.cut()
        self.done = True
        self.owner.post(self._end, error, hooks.drop_error)

    @override
    def on_complete(self) -> None:
        if not (self.done or self.gone):
            self.cut()
            self.done = True
            self.owner.post(self._end, None)

    def _end(self, error: BaseException | None) -> None:
        self.owner.release(self)
        self._backpressured.ended(error)


class NothingWaits(Backpressured[T]):
    """The base of operators in which no item waits: an item is sent at once, or never."""

    __slots__ = ()

    @override
    def requested(self, n: int) -> None:
        pass
