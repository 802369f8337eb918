"""`SwitchArbiter`: items, requests and changes of the source, one at a time."""

from __future__ import annotations

from threading import get_ident
from typing import Final, TypeVar

from typing_extensions import override

from flow_core.demand import UNBOUNDED
from flow_core.errors import is_fatal
from flow_core.homes import task_context
from flow_core.protocols import CoreSubscriber, Publisher
from flow_ops.coordination import Coordinator, Listener

__all__ = ["SwitchArbiter"]

T = TypeVar("T")


class SwitchArbiter(Coordinator[T]):
    """Sends the items of one source at a time to a downstream; the source may change at any time.

    >>> import flow_core as flow
    >>> from flow_testing import TestSubscriber
    >>> subscriber = TestSubscriber(3)
    >>> arbiter = SwitchArbiter(subscriber)
    >>> arbiter.start()
    >>> arbiter.switch_to(flow.never())
    >>> arbiter.switch_to(flow.range(5))
    >>> subscriber.items
    [0, 1, 2]

    This is the producer-observer arbiter: items go through it, and it handles one item or one
    change at a time. Therefore two sources never send at once, no item of a replaced source follows
    its replacement, and the next source is asked for exactly the outstanding items: an item that is
    being sent when the source changes is either delivered before the change, and counted, or
    dropped.

    A subclass decides what follows when a source has `ended`. It subscribes to sources without the
    permit, one after the other in a loop: however many end at once, there is no recursion.

    Demand: exact; the next source gets the demand that the previous one has not used. A request
    goes straight to the current source. Items are counted under the permit, without a lock.
    Thread: items keep that of their source. `switch_to` subscribes in the calling thread, unless
    another thread is just subscribing: then that thread subscribes to this source, too. The context
    variables are the subscriber's.

    Args:
        downstream: gets the signals. `start` introduces it.
        label: the operator and where it was assembled, for messages.
    """

    __slots__ = ("_asked", "_context", "_current", "_following", "_thread")

    def __init__(self, downstream: CoreSubscriber[T], label: str = "SwitchArbiter") -> None:
        super().__init__(downstream, label)
        self._context: Final = task_context(self.home)
        self._thread: Final = get_ident()
        self._following: Publisher[T] | None = None
        """The source to subscribe to next. Guarded by `_lock`, like the next two attributes."""
        self._current: Listener[T] | None = None
        """Receives the signals of the current source."""
        self._asked = 0
        """The part of all demand that was passed to the current source, or that earlier sources
        have used up."""

    # -- methods that subclasses define

    @override
    def open(self) -> None:
        """Set the first source, by `switch_to`; by default, there is none."""
        self.signal()

    received = Coordinator[T].emit
    """Take an item of the current source; like `emit`. The caller must hold the permit."""

    def ended(self, error: BaseException | None) -> None:
        """Handle the end of the current source. The caller must hold the permit.

        By default, the flow ends in the same way: it completes if `error` is None, and fails with
        it otherwise.

        A subclass does not call the user's functions here, but in an action, by `outside`.
        """
        self.end(error)

    # -- running

    def switch_to(self, source: Publisher[T]) -> None:
        """Replace the source; the one before is cancelled.

        The caller may hold the permit, or not.
        """
        self.post(self._switch, source)

    @override
    def requested(self, n: int) -> None:
        """Pass on the demand that the current source has not got yet.

        That may be less than `n`: if the source was replaced just now, the new source may already
        have got a part of it.
        """
        with self._lock:
            current = self._current
            if current is None:
                return  # the next one is asked for all outstanding items
            asked, self._asked = self._asked, self._requested
            if self._requested != UNBOUNDED:
                n = self._requested - asked
            elif asked == UNBOUNDED:
                n = 0
            else:
                n = UNBOUNDED
        if n:
            current.request(n)

    @override
    def closed(self) -> None:
        with self._lock:
            self._current = self._following = None

    def _switch(self, source: Publisher[T]) -> None:
        """Drop the current source, and subscribe to the next. The caller must hold the permit."""
        with self._lock:
            replaced, self._current = self._current, None
            self._following = source
        if replaced is not None:
            self.disconnect(replaced)
        self.outside(self._follow)

    def _follow(self, _: object) -> None:
        with self._lock:
            source, self._following = self._following, None
            if source is None or self.over:
                return  # a later one is subscribed to already
            # Nothing is emitted between `_switch` and this: only a request can change the demand,
            # and it finds `_current` after that.
            self._current = current = Listener(self, self.received, self._ended, self.demand)
            self._asked = self._requested
        if get_ident() == self._thread and self.home is None:  # in a loop, tasks share a thread
            self.connect(source, current)
        else:
            self._context.copy().run(self.connect, source, current)

    def _ended(self, error: BaseException | None) -> None:
        with self._lock:
            self._current = None
        if error is not None and is_fatal(error):
            self.fail(error)  # which must not be retried or resumed
        else:
            self.ended(error)
