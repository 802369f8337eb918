"""`switch_map` and `switch_latest`: each new inner flow takes the place of the one before."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from threading import get_ident
from typing import Generic, TypeVar, final

from flow_core import hooks
from flow_core.demand import UNBOUNDED
from flow_core.errors import is_fatal, none_given
from flow_core.flow import DeferredSource, Flow
from flow_core.operator import Operator
from flow_core.protocols import CallableSource, CoreSubscriber
from flow_core.stages.template import describe
from flow_ops.coordination import (
    Coordinated,
    Coordinator,
    Input,
    Listener,
    combined,
    labelled,
    no_stop,
)
from flow_ops.transform._inner import Mapper, itself
from flow_ops.transform.concat_map import DeferredConcatMap, MappedCall

__all__ = ["switch_latest", "switch_map"]

T = TypeVar("T")
R = TypeVar("R")


def switch_map(
    mapper: Callable[[T], Flow[R]], *, delay_error: bool = False
) -> Operator[T, Flow[R]]:
    """Each item becomes a flow, which takes the place of the one before: that is cancelled.

    >>> import flow_core as flow
    >>> from flow_ops import switch_map
    >>> pages = flow.range(3).pipe(switch_map(lambda n: flow.just(f"page {n}").hide()))
    >>> list(pages)
    ['page 0', 'page 1', 'page 2']
    >>> list(pages.iterate(prefetch=1))
    ['page 0', 'page 2']

    Which items of an inner flow still come depends on how fast they are, and on demand: when an
    item of the upstream has come, no more of them do. It completes with the last inner flow, when
    the upstream has completed, too.

    Demand: exact; an inner flow is asked for all that is outstanding when it begins, and for no
    more, so that none of its items waits here. Everything is requested of the upstream: its items
    never wait, either.
    Thread: the mapper runs in that of the upstream, where the inner flow is subscribed to as well;
    items keep the thread of their flow. An inner flow that is a constant or a function is called
    there, and its item comes there, or waits for demand. An upstream that is one makes no operator
    at all: the mapped flow is what is subscribed to (F06).
    Fusion: none.
    Errors: the first one, of the upstream or of the current inner flow, cancels the other. What an
    inner flow fails with when it was cancelled goes to the dropped-errors hook.
    Source: checklist F02, F06, P07, P17, P19, P28.

    Args:
        mapper: makes a flow of an item; not None.
        delay_error: whether errors come when the upstream and the last inner flow have ended;
            several as an ExceptionGroup. What the mapper itself raises ends the flow at once, with
            the errors that were delayed.

    Returns:
        An operator for `Flow.pipe`. Its flow fails with NoneItemError if the mapper gives None.

    Raises:
        TypeError: if `mapper` cannot be called.
    """
    if not callable(mapper):
        raise TypeError(f"switch_map() takes a function from an item to a Flow, not {mapper!r}")
    return _switching("switch_map", describe(mapper), mapper, delay_error)


def switch_latest(*, delay_error: bool = False) -> Operator[Flow[T], Flow[T]]:
    """The items of the last flow that has come: each one takes the place of the one before.

    >>> import flow_core as flow
    >>> from flow_ops import switch_latest
    >>> list(flow.just(flow.never(), flow.range(3)).pipe(switch_latest()))
    [0, 1, 2]

    It is `switch_map` for flows that are there already: see there.

    Args:
        delay_error: see `switch_map`.
    """
    return _switching("switch_latest", "", itself, delay_error)


def _switching(
    name: str, detail: str, mapper: Callable[[T], Flow[R]], delay_error: bool
) -> Operator[T, Flow[R]]:
    if delay_error:
        detail += ", delay_error=True" if detail else "delay_error=True"
    mapping = Mapper(mapper, labelled(name, detail))
    return Operator(name, partial(_switched, mapping=mapping, delay_error=delay_error), detail)


def _switched(flow: Flow[T], *, mapping: Mapper[T, R], delay_error: bool) -> Flow[R]:
    source = flow.source
    if not flow.stages:
        if isinstance(source, CallableSource):
            return Flow(MappedCall(source, mapping))
        if isinstance(source, DeferredSource):
            # Not a closure that refers to itself: flows die by reference count alone.
            apply = partial(_switched, mapping=mapping, delay_error=delay_error)
            return Flow(DeferredConcatMap(flow, apply, mapping.label))

    def made(downstream: CoreSubscriber[R], _: str) -> Coordinator[R]:
        return SwitchMap(flow, downstream, mapping, delay_error)

    return Flow(Coordinated(made, mapping.label))


@final
class SwitchMap(Coordinator[R], Generic[T, R]):
    """See `switch_map`.

    The upstream's thread disconnects an inner flow, makes the next one, and subscribes to it. Who
    has the permit makes that one the current one, when no other's item is on its way any more:
    only then it is known what is outstanding, and asked for. Who does so has left the permit, so
    that a synchronous inner flow sends its items one by one.

    Args:
        source: the upstream.
        downstream: gets the signals.
        mapper: makes the inner flows.
        delay_error: whether errors come at the end.
    """

    __slots__ = (
        "_asked",
        "_asking",
        "_current",
        "_delay_error",
        "_errors",
        "_has_to_ask",
        "_is_exhausted",
        "_mapper",
        "_source",
        "only",
    )

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[R],
        mapper: Mapper[T, R],
        delay_error: bool,
    ) -> None:
        super().__init__(downstream, mapper.label)
        self._source = source
        self._mapper = mapper
        self._delay_error = delay_error
        self._errors: list[BaseException] = []
        self._is_exhausted = False
        """The upstream has ended."""
        self._current: Listener[R] | None = None
        """The inner flow that may be asked for items. Like the next one, guarded by `_lock`."""
        self._asked = 0
        """How much of all that was ever requested the current one knows, or others have sent."""
        self._has_to_ask = False
        """There is a new current one."""
        self._asking: set[int] = set()
        """The threads that ask right now."""
        self.only: deque[R] = deque()
        """The item of an inner flow that was called, if it waits for demand."""

    def open(self) -> None:
        """See `Coordinator.open`."""
        self.connect(self._source, SwitchedInput(self, self._mapper))

    # -- demand

    def requested(self, n: int) -> None:
        """See `Coordinator.requested`."""
        self._ask()
        if self.only:
            self.signal()

    def signal(self) -> None:
        """See `SerialDrain.signal`. Then asks a new inner flow for what is outstanding."""
        super().signal()
        if self._has_to_ask:
            self._has_to_ask = False
            self._ask()

    def _ask(self) -> None:
        """Request what the current inner flow does not know of yet. Without the permit.

        Within itself it does nothing, since the same thread will come to look again: the stack does
        not grow, whatever the inner flows and the downstream do within a request.
        """
        asking, thread = self._asking, get_ident()
        if thread in asking:
            return
        asking.add(thread)
        try:
            while True:
                with self._lock:
                    current = self._current
                    asked, requested = self._asked, self._requested
                    if current is None or asked == requested:
                        return
                    self._asked = requested
                current.request(UNBOUNDED if requested == UNBOUNDED else requested - asked)
        finally:
            asking.discard(thread)

    # -- with the permit

    def switch(self, inner: Listener[R] | None) -> None:
        """Have `inner` go on; the one before was disconnected."""
        with self._lock:
            self._current = inner
            self._asked = self._emitted
        self._has_to_ask = inner is not None

    def step(self) -> None:
        """See `Coordinator.step`."""
        only = self.only
        if only and self._emitted < self._requested:
            try:
                item = only.popleft()
            except IndexError:  # the upstream's thread has dropped it: there is a new item
                return
            self.emit(item)
        if self._is_exhausted and self._current is None and not (only or self.over):
            self._finish_all()

    def inner_ended(self, error: BaseException | None) -> None:
        """The current inner flow has ended."""
        with self._lock:
            self._current = None
        if error is not None:
            self.keep(error)

    def outer_ended(self, error: BaseException | None) -> None:
        """The upstream has ended, or the mapper has failed."""
        self._is_exhausted = True
        if error is not None:
            self.keep(error)

    def keep(self, error: BaseException) -> None:
        """Something has failed: the flow does, now or at the end."""
        self._errors.append(error)
        if not self._delay_error:
            self._finish_all()

    def _finish_all(self) -> None:
        errors, self._errors = self._errors, []
        if errors:
            self.fail(combined(self.label, errors))
        else:
            self.complete()

    def closed(self) -> None:
        """See `Coordinator.closed`."""
        with self._lock:
            self._current = None
        self.drop_only()
        errors, self._errors = self._errors, []
        for error in errors:
            hooks.drop_error(error)

    # -- on any thread

    def drop_only(self) -> None:
        """Drop the item that waits for demand, if there is one."""
        only = self.only
        while only:
            try:
                item = only.popleft()
            except IndexError:
                return
            hooks.drop_item(item)

    @property
    def buffered(self) -> int:
        """See `Coordinator.buffered`."""
        return len(self.only)


@final
class SwitchedInput(Input[T], Generic[T, R]):
    """Receives the items of which flows are made. The mapper runs in its thread.

    Args:
        owner: gives their items.
        mapper: makes the flows.
    """

    __slots__ = ("_inner", "_mapper", "_switching")

    def __init__(self, owner: SwitchMap[T, R], mapper: Mapper[T, R]) -> None:
        super().__init__(owner, UNBOUNDED)
        self._switching = owner
        self._mapper = mapper
        self._inner: Listener[R] | None = None
        """The last inner flow."""

    def on_next(self, item: T, /) -> None:
        """See `Subscriber.on_next`. The inner flow before ends here, whatever the mapper does."""
        if item is None:
            raise none_given("on_next")
        owner = self._switching
        if self.done or owner.over:
            hooks.drop_item(item)
            return
        replaced, self._inner = self._inner, None
        if replaced is not None:
            owner.disconnect(replaced)
        owner.drop_only()
        mapper = self._mapper
        only: R | None = None
        try:
            flow = mapper.function(item)
            if type(flow) is not Flow:
                flow = mapper.flow_of(flow)
        except BaseException as error:
            if is_fatal(error):
                owner.cancel()
                raise
            owner.post(owner.switch, None)
            upstream = self.upstream  # read once: a cancel takes it away
            if upstream is not None:
                upstream.cancel()
            self.on_error(mapper.failed(error))
            return
        source = flow.source
        if not isinstance(source, CallableSource) or flow.stages:
            inner: Listener[R] = Listener(owner, owner.emit, owner.inner_ended)
            self._inner = inner
            owner.post(owner.switch, inner)
            owner.connect(flow, inner)
            return
        try:
            only = source.call()
        except BaseException as error:
            if is_fatal(error):
                owner.cancel()
                raise
            owner.post(owner.switch, None)
            owner.post(owner.keep, no_stop(error), hooks.drop_error)
            return
        if only is not None:
            owner.only.append(only)
        owner.post(owner.switch, None)

    def _end(self, error: BaseException | None) -> None:
        self.owner.release(self)
        self._switching.outer_ended(error)
