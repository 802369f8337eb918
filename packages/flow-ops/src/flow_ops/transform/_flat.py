"""The state of one subscription to `flat_map` or `merge`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, ClassVar, Generic, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.demand import UNBOUNDED, replenish_limit
from flow_core.errors import is_fatal, none_given, none_item
from flow_core.flow import Flow
from flow_core.protocols import (
    EMPTY,
    CoreSubscriber,
    Empty,
    IterableSource,
    Publisher,
)
from flow_core.serial import Busy
from flow_core.stages import Gate, close_iterator
from flow_core.structure import call_of
from flow_ops.coordination import Input, Mapper, itself, overflow
from flow_ops.transform._inner import Pulled, inline_source, pulled, pushed
from flow_ops.transform._mapping import Limits, Mapped, Mapping, Outer

__all__ = ["FlatMap", "IterableFlatMap", "MergedInput"]

T = TypeVar("T")
R = TypeVar("R")


@final
class IterableFlatMap(Mapped[R], IterableSource[R]):
    """A `Mapped` over a synchronous upstream, which can be iterated over without a subscription.

    An inner flow is pulled in that loop if it can be, and ends within `prefetch` items. As soon as
    one cannot be pulled, or has more items, the inner flows run at the same time.
    """

    __slots__ = ()

    none_free: ClassVar[bool] = True

    @override
    def iterate(self) -> Iterator[R]:
        outer = self.upstream.iterate()
        items: Iterator[R] = iter(())
        values: Iterator[Any] = outer  # Any, here and below: the type that the mapper takes
        others: list[Any] = []
        try:
            spliced = self._mapping.spliced
            if spliced is not None and not _watched():
                yield from spliced.iterate(outer, self.prefetch, others)
                if not others:
                    return
                values = chain((others.pop(),), outer)
            flows = self._flows(values)
            for flow in flows:
                called = call_of(flow)
                if called is not None:
                    item = called.call()
                    if item is not None:
                        yield item
                    continue
                if inline_source(flow) is None or _watched():
                    yield from self._together(flow, flows)
                    return
                items = iter(flow)
                yield from islice(items, self.prefetch)
                more = next(items, EMPTY)
                if not isinstance(more, Empty):
                    left = chain((more,), items)
                    yield from self._together(Flow(Pulled(left, left)), flows)
                    return
        finally:
            try:
                close_iterator(items)
            finally:
                close_iterator(outer)

    # Any: the type that the mapper takes.
    def _flows(self, outer: Iterator[Any]) -> Iterator[Flow[R]]:
        mapper = self._mapping
        function = mapper.function
        for value in outer:
            try:
                flow = function(value)
                if not isinstance(flow, Flow):
                    flow = mapper.flow_of(flow)
            except BaseException as error:
                raise mapper.failed(error)  # noqa: B904 - the same error, with a note
            yield flow

    def _together(self, first: Flow[R], others: Iterator[Flow[R]]) -> Iterator[R]:
        flows = Pulled(chain((first,), others), others)
        mapper: Mapper[Flow[R], R] = Mapper(itself, self._mapping.label)
        return Flow(Mapped(Flow(flows), mapper, self.limits, self.make)).iterate()


@final
class FlatMap(Mapping[T, R], Generic[T, R]):
    """Sends the items of inner flows as they come.

    An item goes straight to the downstream if no other thread is at work, nothing waits, and there
    is demand. Otherwise the item waits in one queue for all inner flows, which keeps the order in
    which items came. Each inner flow has no more items there than were requested of it.

    Args:
        source: the upstream.
        downstream: gets the signals.
        mapper: returns the inner flows.
        limits: how many run at a time, and how much they prefetch.
    """

    __slots__ = ("_waiting", "limit")

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[R],
        mapper: Mapper[T, R],
        limits: Limits,
    ) -> None:
        super().__init__(source, downstream, mapper, limits)
        self.limit = replenish_limit(limits.prefetch)
        """The number of sent items of an inner flow after which as many items are requested
        again."""
        self._waiting: deque[tuple[MergedInput[R] | Outer[Any, R], R]] = deque()

    @override
    def add(self, flow: Publisher[R]) -> bool:
        given = 0
        if len(self._inputs) < 2 and isinstance(flow, Flow):  # only the upstream
            done = self.alone(self._in_place, flow)
            if done is None:
                return True
            if not isinstance(done, Busy):
                flow, given = done
        inner = MergedInput(self, given)
        self.connect(flow, inner)
        return inner.added()

    def _in_place(self, flow: Flow[R]) -> tuple[Flow[R], int] | None:
        """Send the items of an inner flow that can be pulled, as long as none has to wait.

        The caller must hold the permit. No other inner flow wants it, since none is running.

        Returns:
            The flow to subscribe to, and how many of its items were sent; None if it has
            ended, or the whole flow has.
        """
        outer, given = self._outer, 0
        if outer is None or self._tasks or self._waiting or self.over:
            return flow, 0
        if (
            self._emitted >= self._requested
            or hooks.debugging
            or hooks.on_subscribe.call is not None
        ):
            return flow, 0
        conditional = self._conditional
        items: Pulled[R] | None = None
        left: Flow[R] | None = None
        try:
            if self._requested == UNBOUNDED and self._all_in_place(flow, outer.gate):
                return None
            items = pulled(flow, outer.gate, checked=True)
            if items is None:
                return flow, 0
            waiting = self._waiting
            for item in items.items:
                given += 1
                # self.send(item), written out: a call would cost.
                receive = self._receive
                try:
                    used = receive(item)
                except BaseException as error:
                    self._raised(error)
                else:
                    if used is not False or not conditional:
                        self._emitted += 1
                if self._emitted >= self._requested or waiting or self.over:
                    break
            else:
                return None
            if self.over or items.ended():
                return None
            left = Flow(items)
            return left, given
        except BaseException as error:
            if is_fatal(error):
                if not self.over:
                    self._failed(error)
                raise
            if self.over:
                hooks.drop_error(error)
            else:
                self.keep(error)
            return None
        finally:
            if items is not None and left is None:
                items.close()

    def _all_in_place(self, flow: Flow[R], gate: Gate) -> bool:
        """Send all items of an inner flow by its own loop, since the demand is unbounded.

        Returns:
            True if the flow could be sent in this way.
        """
        loop = pushed(flow, self._receive, gate)
        if loop is None:
            return False
        try:
            if next(loop, None) is not None:
                loop.close()
        except BaseException as error:
            if is_fatal(error) or not flow._by_subscriber(error):
                raise
            self._raised(error)
        return True

    @override
    def push(self, item: R) -> bool:
        permit = self._permit
        try:
            del permit[0]
        except KeyError:
            pass  # another caller has the permit
        else:
            try:
                if self._emitted < self._requested and not self._waiting:
                    # self.send(item), written out: a call would cost.
                    receive = self._receive
                    try:
                        used = receive(item)
                    except BaseException as error:
                        self._raised(error)
                    else:
                        if used is not False or not self._conditional:
                            self._emitted += 1
                    return True
                self._keep_waiting(item)
                return False
            finally:
                permit[0] = True
                if self._missed or self.over:
                    self.signal()
        self._keep_waiting(item)
        self.signal()
        return False

    def send(self, item: R) -> None:
        """Send an item, as `Coordinator.emit` does; the item must not be None.

        When the flow has ended, drop it.
        """
        try:
            used = self._receive(item)
        except BaseException as error:
            self._raised(error)
        else:
            if used is not False or not self._conditional:
                self._emitted += 1

    def _keep_waiting(self, item: R) -> None:
        outer = self._outer
        if outer is None:  # the flow has ended
            hooks.drop_item(item)
        else:
            self._waiting.append((outer, item))

    @override
    def step(self) -> None:
        waiting = self._waiting
        while waiting and self._emitted < self._requested and not self.over:
            source, item = waiting.popleft()
            self.send(item)
            source.taken()
        if self.exhausted and not (waiting or self.active or self.over):
            self.finish()

    @override
    def closed(self) -> None:
        waiting = self._waiting
        while waiting:
            _, item = waiting.popleft()
            hooks.drop_item(item)
        super().closed()

    @property
    @override
    def buffered(self) -> int:
        return len(self._waiting)


@final
class MergedInput(Input[R]):
    """Receives one of the flows that are merged.

    The flow keeps its slot until it has ended and its last item was sent: otherwise more and more
    items would wait. If it has ended before `added` is called, `added` tells the upstream's thread
    so; if it ends later, it is counted as `freed`. The owner's lock decides which.

    Args:
        owner: the operator that merges.
        given: how many of the flow's items were sent before it was subscribed to.
    """

    __slots__ = ("_adding", "_at_once", "_came", "_checked", "_ended", "_left", "_taken", "merging")

    def __init__(self, owner: FlatMap[Any, R], given: int) -> None:  # Any: only R matters here
        taken = given % owner.limit
        super().__init__(owner, owner.prefetch - taken)
        self.merging = owner
        self._adding = True
        """True while the upstream's thread subscribes to the flow."""
        self._came = 0
        """The number of items that had to wait. Written by the source's thread."""
        self._left = 0
        """The number of these items that were sent. Written with the permit."""
        self._taken = taken
        """The number of items that were sent since the last request. Written with the permit."""
        self._ended = False
        """True when a drain, which has the permit, has seen the end of the flow."""
        self._at_once = False
        """True if the flow has ended while `_adding` was True, and no item waits."""
        self._checked: str | None = None
        """The name of the source, if no other code checks that it does not emit None."""

    def added(self) -> bool:
        """Return whether the flow has ended already, right after the subscription to it.

        The upstream's thread calls this.
        """
        with self.merging._lock:
            self._adding = False
            return self._at_once

    @override
    def on_next(self, item: R, /) -> None:
        """Send the item at once if no other thread is at work."""
        if item is None:
            self._got_none()
            return
        owner = self.merging
        permit = owner._permit
        try:
            del permit[0]
        except KeyError:
            pass  # another caller has the permit
        else:
            try:
                if owner._emitted < owner._requested and not (owner._waiting or self.done):
                    # owner.emit(item), written out: a call would cost. When the flow has ended,
                    # this drops it.
                    receive = owner._receive
                    try:
                        used = receive(item)
                    except BaseException as error:
                        owner._raised(error)
                    else:
                        if used is not False or not owner._conditional:
                            owner._emitted += 1
                    taken = self._taken = self._taken + 1
                    if taken == owner.limit:
                        self._taken = 0
                        self.request(taken)
                else:
                    self._wait(item)
            except BaseException as error:
                owner._failed(error)
            finally:
                permit[0] = True
                if owner._missed or owner.over:
                    owner.signal()
            return
        self._wait(item)
        owner.signal()

    @override
    def checks(self, who: str) -> bool:
        self._checked = who
        return True

    def _got_none(self) -> None:
        if self._checked is None:
            raise none_given("on_next")
        upstream = self.upstream
        if upstream is not None:
            hooks.cancel(upstream)
        self.on_error(none_item(self._checked))

    @override
    def on_complete(self) -> None:
        """Handle the end at once if no other thread is at work."""
        if self.done:
            return
        self.done = True
        owner = self.merging
        permit = owner._permit
        try:
            del permit[0]
        except KeyError:
            pass  # another caller has the permit
        else:
            try:
                if owner._tasks:
                    owner.put_off(self._end, None)
                else:
                    self._end(None)
                    if owner.exhausted:
                        owner.step()
            except BaseException as error:
                owner._failed(error)
            finally:
                permit[0] = True
                slots = owner.slots
                if owner._missed or owner.over or slots.freed != slots.seen:
                    owner.signal()
            return
        owner.post(self._end, None)

    def taken(self) -> None:
        """Count an item that had to wait and was sent. The caller must hold the permit."""
        self._left += 1
        if self._ended:
            if self._left == self._came:
                self.merging.slots.freed += 1
            return
        self._taken += 1
        if self._taken == self.merging.limit:
            taken, self._taken = self._taken, 0
            self.request(taken)

    def _wait(self, item: R) -> None:
        if self.done:
            hooks.drop_item(item)
            return
        owner = self.merging
        if self._came - self._left < owner.prefetch:
            self._came += 1
            owner._waiting.append((self, item))
            return
        hooks.drop_item(item)
        upstream = self.upstream
        if upstream is not None:
            hooks.cancel(upstream)
        self.on_error(overflow(owner.label, owner.prefetch))

    def _end(self, error: BaseException | None) -> None:
        owner = self.merging
        over = self._left == self._came
        with owner._lock:
            owner._inputs.pop(self, None)
            self.upstream = None
            self._ended = True
            self._at_once = at_once = over and self._adding
        if over and not at_once:
            owner.slots.freed += 1
        if error is not None:
            owner.keep(error)


def _watched() -> bool:
    """Return whether a hook wants to see each subscription, or each signal."""
    return hooks.debugging or hooks.on_subscribe.call is not None
