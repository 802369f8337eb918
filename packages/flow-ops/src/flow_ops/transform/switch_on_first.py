"""`switch_on_first`: the first signal decides what the flow becomes."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any, Generic, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.conversion import as_flow
from flow_core.demand import UNBOUNDED, add_demand
from flow_core.errors import ProtocolViolationError, is_fatal, none_given
from flow_core.flow import Flow
from flow_core.notifications import Notification, OnComplete, OnError, OnNext
from flow_core.operator import Operator
from flow_core.protocols import EMPTY, CoreSubscriber, Empty, Publisher, Subscriber, Subscription
from flow_core.serial import SerialDrain
from flow_core.sources import fail
from flow_core.stages import describe
from flow_core.subscribers import core_subscriber
from flow_ops.coordination import Coordinator, Input, Passing, coordinated, overflow

__all__ = ["switch_on_first"]

T = TypeVar("T")
R = TypeVar("R")


def switch_on_first(
    transformer: Callable[[Notification[T], Flow[T]], Flow[R]],
) -> Operator[T, Flow[R]]:
    """Let the first signal decide what the whole flow becomes.

    >>> import flow_core as flow
    >>> from flow_core.notifications import OnNext
    >>> def scaled(first, whole):
    ...     match first:
    ...         case OnNext(unit):
    ...             return whole.skip(1).map(lambda n: n * unit)
    ...     return whole
    >>> list(flow.just(10, 1, 2).switch_on_first(scaled))
    [10, 20]

    The transformer gets the first signal and the whole flow, including the first item; the
    downstream gets the flow that the transformer returns. The whole flow can be subscribed to once,
    by the transformer or later, or not at all: its source is cancelled when the returned flow has
    ended.

    Demand: one item is requested of the upstream at first, for the decision; what follows depends
    on the flow that was returned. If that is the whole flow, demand is passed on: apart from the
    first item, no more items are requested than the downstream requests.
    Thread: the transformer runs in the thread of the upstream, which also subscribes to the
    returned flow.
    Fusion: none.
    Errors: those of the returned flow, and those that the transformer raises. An error of the
    upstream may be the first signal; otherwise it comes in the whole flow or, if the whole flow has
    no subscriber, goes to the dropped-errors hook.

    Args:
        transformer: called once for each subscriber, with the first signal (`OnNext`, `OnError` or
            `OnComplete`) and the whole flow; returns a flow.

    Returns:
        An operator for `Flow.pipe`. Its flow fails with NoneItemError if the transformer returns
        None.

    Raises:
        TypeError: if `transformer` cannot be called.
    """
    if not callable(transformer):
        raise TypeError(
            "switch_on_first() takes a function of the first signal and the whole flow, not "
            f"{transformer!r}"
        )

    def make(flow: Flow[T], downstream: CoreSubscriber[R], label: str) -> Coordinator[R]:
        return SwitchOnFirst(flow, transformer, downstream, label)

    return coordinated("switch_on_first", describe(transformer), make)


@final
class SwitchOnFirst(Passing[R], Generic[T, R]):
    """Runs `switch_on_first`. Its upstream is the flow that the transformer has returned.

    Args:
        source: the upstream.
        transformer: the user's function.
        downstream: gets the signals.
        label: the operator and where it was assembled, for messages.
    """

    __slots__ = ("_head", "_source", "_transformer")

    def __init__(
        self,
        source: Flow[T],
        transformer: Callable[[Notification[T], Flow[T]], Flow[R]],
        downstream: CoreSubscriber[R],
        label: str,
    ) -> None:
        super().__init__(downstream, label)
        self._source = source
        self._transformer = transformer
        self._head: Head[T] | None = Head(self)

    @override
    def open(self) -> None:
        head = self._head
        if head is not None:
            self.connect(self._source, head)

    def begin(self, first: Notification[T], rest: Rest[T]) -> None:
        """Call the transformer with the first signal, and follow the flow that it returns.

        The upstream's thread calls this, without the permit.
        """
        try:
            made = as_flow(
                self._transformer(first, Flow(Whole(rest, self.label))), "the transformer"
            )
        except BaseException as error:
            if is_fatal(error):
                self.give_up(error)
                raise
            self.post(self.fail, self.blame(error), hooks.drop_error)
            return
        self.follow(made)

    @override
    def closed(self) -> None:
        super().closed()
        head, self._head = self._head, None
        if head is not None:
            head.close()


@final
class Head(Input[T]):
    """Receives the signals of the upstream.

    The transformer gets the first signal; the whole flow, which the transformer gets too, emits all
    signals, including the first.

    Args:
        owner: the operator, with the transformer.
    """

    __slots__ = ("_deciding", "_rest")

    def __init__(self, owner: SwitchOnFirst[T, Any]) -> None:  # Any: whatever it returns
        super().__init__(owner, 1)
        self._deciding = owner
        self._rest: Rest[T] | None = None

    @override
    def on_next(self, item: T, /) -> None:
        if item is None:
            raise none_given("on_next")
        if self.done or self.gone or self.owner.over:
            hooks.drop_item(item)
            return
        rest = self._rest
        if rest is not None:
            rest.next(item)
        else:
            self._rest = rest = Rest(self, item)
            self._deciding.begin(OnNext(item), rest)

    @override
    def on_error(self, error: BaseException, /) -> None:
        if error is None:
            raise none_given("on_error")
        if self.done or self.gone or self.owner.over:
            hooks.drop_error(error)
            return
        self._end(error)

    @override
    def on_complete(self) -> None:
        if not (self.done or self.gone or self.owner.over):
            self._end(None)

    def _end(self, error: BaseException | None) -> None:
        self.done = True
        self.owner.release(self)
        rest = self._rest
        if rest is not None:
            rest.end(error)
            return
        self._rest = rest = Rest(self, EMPTY)
        rest.end(error)
        self._deciding.begin(OnComplete() if error is None else OnError(error), rest)

    def close(self) -> None:
        """Stop: the flow has ended. The caller must hold the permit."""
        rest, self._rest = self._rest, None
        if rest is not None:
            rest.close()


@final
class Rest(SerialDrain, Publisher[T], Subscription, Generic[T]):
    """The subscription to the whole flow: the first item, and then those that the upstream sends.

    More items are requested of the upstream when the first item was delivered: until then the
    upstream can only end. Demand that comes earlier waits here.

    Args:
        head: the input to request of.
        first: the first item; EMPTY if there is none.
    """

    __slots__ = (
        "_end",
        "_first",
        "_free",
        "_has_passed",
        "_head",
        "_is_news",
        "_is_over",
        "_lock",
        "_owed",
        "_target",
    )

    def __init__(self, head: Head[T], first: T | Empty) -> None:
        super().__init__()
        self._head: Head[T] | None = head
        self._first = first
        self._free = [True]
        """Not empty while there is no subscriber: the thread that pops the entry subscribes."""
        self._lock = Lock()
        """Guards the next two attributes. Never held while calling out."""
        self._has_passed = first is EMPTY
        """True when the first item was delivered: requests are passed on."""
        self._owed = 0
        """The demand that came before the first item was delivered."""
        self._end: tuple[BaseException | None] | None = None
        """The end of the upstream, if it has ended."""
        self._is_news = first is not EMPTY
        """True if the end is not the first signal: the transformer has not seen it then."""
        self._is_over = False
        """True when this was cancelled: nothing is delivered any more."""
        self._target: CoreSubscriber[T] | None = None

    # -- from the upstream

    def next(self, item: T) -> None:
        """Take an item after the first one."""
        target = self._target
        if self._has_passed and target is not None:
            target.on_next(item)
            return
        hooks.drop_item(item)
        head = self._head
        if head is not None and not self._is_over:
            upstream = head.upstream  # read once: a cancel clears it
            if upstream is not None:
                hooks.cancel(upstream)
            head.on_error(overflow(head.owner.label, who="the upstream"))

    def end(self, error: BaseException | None) -> None:
        """Note that the upstream has ended."""
        self._end = (error,)
        self.signal()

    # -- from the downstream

    def take(self) -> bool:
        """Return whether the caller may subscribe: only the first one may, while the flow runs."""
        try:
            return self._free.pop() and not self._is_over
        except IndexError:
            return False

    @override
    def subscribe(self, target: Subscriber[T], /) -> None:
        """Subscribe `target`, once: the input of a `Following`, which follows the rules."""
        downstream = core_subscriber(target)
        downstream.on_subscribe(self)
        # Not before: nothing is delivered before on_subscribe has returned (§1.9). The permit is
        # not enough: the upstream's thread may have it, with the end.
        self._target = downstream
        self.signal()

    @override
    def request(self, n: int, /) -> None:
        with self._lock:
            if not self._has_passed:
                self._owed = add_demand(self._owed, n)
                n = 0
        head = self._head
        if not n:
            self.signal()
        elif head is not None:
            head.request(n)

    @override
    def cancel(self) -> None:
        head = self._head
        self.close()
        if head is not None:
            head.owner.disconnect(head)

    def close(self) -> None:
        """Deliver nothing any more."""
        self._is_over = True
        self.signal()

    @override
    def drain(self) -> None:
        if self._is_over:
            self._target = self._head = None
            self._first = EMPTY
            end, self._end = self._end, None
            if end is not None and end[0] is not None and self._is_news:
                hooks.drop_error(end[0])
            return
        target = self._target
        if target is None:
            return
        if not self._has_passed:
            first = self._first
            if first is EMPTY or not self._owed:
                return
            self._first = EMPTY
            target.on_next(first)
            del first
            with self._lock:
                self._has_passed = True
                more = self._owed if self._owed == UNBOUNDED else self._owed - 1
            head = self._head
            if more and head is not None:
                head.request(more)
        end = self._end
        if end is not None and not self._is_over:
            self._target = self._head = self._end = None
            self._is_over = True
            error = end[0]
            if error is None:
                target.on_complete()
            else:
                target.on_error(error)


@final
class Whole(Publisher[T]):
    """The whole flow, for one subscriber.

    Args:
        rest: the subscription with its items.
        label: the operator and where it was assembled, for messages.
    """

    __slots__ = ("_label", "_rest")

    def __init__(self, rest: Rest[T], label: str) -> None:
        self._rest = rest
        self._label = label

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        downstream = core_subscriber(subscriber)
        if self._rest.take():
            Following(self._rest, downstream, self._label).start()
        else:
            fail(
                downstream,
                ProtocolViolationError(
                    f"{self._label}: the whole flow can be subscribed to once, and as long as the "
                    "flow runs; share it (flow-multicast) if several are to have it"
                ),
            )

    def __repr__(self) -> str:
        return f"the whole flow of {self._label}"


@final
class Following(Passing[T]):
    """A subscription to the whole flow."""

    __slots__ = ("_rest",)

    def __init__(self, rest: Rest[T], downstream: CoreSubscriber[T], label: str) -> None:
        super().__init__(downstream, label)
        self._rest = rest

    @override
    def open(self) -> None:
        self.follow(self._rest)
