"""`switch_map`: each new inner flow replaces the one before."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from threading import get_ident
from typing import Generic, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.assembly import labelled
from flow_core.conversion import Convertible
from flow_core.demand import UNBOUNDED
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import CoreSubscriber, Publisher
from flow_core.stages import describe
from flow_ops.coordination import Coordinated, Coordinator, Listener, Mapper
from flow_ops.transform._mapping import Limits, Mapping, Outer
from flow_ops.transform._single import single

__all__ = ["switch_map", "switching"]

T = TypeVar("T")
R = TypeVar("R")


def switch_map(
    mapper: Callable[[T], Convertible[R]], *, delay_error: bool = False
) -> Operator[T, Flow[R]]:
    """Each item becomes a flow, which replaces the one before and cancels it.

    >>> import flow_core as flow
    >>> pages = flow.range(3).switch_map(lambda n: flow.just(f"page {n}").hide())
    >>> list(pages)
    ['page 0', 'page 1', 'page 2']
    >>> list(pages.iterate(prefetch=1))
    ['page 0', 'page 2']

    An inner flow sends no item once the upstream has sent its next item, so the items that it sends
    depend on its speed and on demand. The result completes when the upstream and the last inner
    flow have completed.

    Demand: exact; an inner flow is asked for all outstanding items when it begins, and for no more:
    none of its items waits here. Everything is requested of the upstream: its items never wait,
    either.
    Thread: the mapper runs in the thread of the upstream, which also subscribes to the inner flow;
    items keep the thread of their flow. An inner flow that is a constant or a function is called in
    the upstream's thread, and its item comes there, or waits for demand. If the upstream is a
    constant or a function, there is no operator at all: the subscription goes to the mapped flow.
    Fusion: none.
    Errors: the first one, of the upstream or of the current inner flow, cancels the other. An error
    of an inner flow that was cancelled goes to the dropped-errors hook.

    Args:
        mapper: called with an item; returns a flow, not None.
        delay_error: whether errors come when the upstream and the last inner flow have ended;
            several are raised as an ExceptionGroup. An error of the mapper itself ends the flow at
            once, with the errors that were delayed.

    Returns:
        An operator for `Flow.pipe`. Its flow fails with NoneItemError if the mapper returns None.

    Raises:
        TypeError: if `mapper` cannot be called.
    """
    if not callable(mapper):
        raise TypeError(f"switch_map() takes a function from an item to a Flow, not {mapper!r}")
    return switching("switch_map", describe(mapper), mapper, delay_error)


def switching(
    name: str, detail: str, mapper: Callable[[T], Convertible[R]], delay_error: bool
) -> Operator[T, Flow[R]]:
    """Return a `switch_map` under another name."""
    if delay_error:
        detail += ", delay_error=True" if detail else "delay_error=True"
    mapping = Mapper(mapper, labelled(name, detail))
    return Operator(name, partial(_switched, mapping=mapping, delay_error=delay_error), detail)


def _switched(flow: Flow[T], *, mapping: Mapper[T, R], delay_error: bool) -> Flow[R]:
    def made(downstream: CoreSubscriber[R], _: str) -> Coordinator[R]:
        return SwitchMap(flow, downstream, mapping, delay_error)

    apply = partial(_switched, mapping=mapping, delay_error=delay_error)
    one = single(flow, mapping, apply)
    return Flow(Coordinated(made, mapping.label)) if one is None else one


@final
class SwitchMap(Mapping[T, R], Generic[T, R]):
    """Runs `switch_map`.

    The upstream's thread disconnects an inner flow, makes the next one, and subscribes to it. The
    thread that has the permit makes that flow the current one, when no item of another flow is
    being sent any more: only then is the number of outstanding items known, and requested. If the
    flow is subscribed to already, the request is made without the permit: a synchronous inner flow
    then sends its items one by one.

    Args:
        source: the upstream.
        downstream: gets the signals.
        mapper: returns the inner flows.
        delay_error: whether errors come at the end.
    """

    __slots__ = ("_asked", "_asking", "_current", "_has_to_ask", "_last", "_only")

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[R],
        mapper: Mapper[T, R],
        delay_error: bool,
    ) -> None:
        every = Limits(UNBOUNDED, UNBOUNDED, delay_error)
        super().__init__(source, downstream, mapper, every, SwitchedInput)
        self._last: Listener[R] | None = None
        """The last inner flow that was made. Used by the upstream's thread."""
        self._current: Listener[R] | None = None
        """The inner flow that may be asked for items. Guarded by `_lock`, like the next
        attribute."""
        self._asked = 0
        """The part of all demand that was passed to the current flow, or that earlier flows have
        used up."""
        self._has_to_ask = False
        """True if there is a new current flow, which is already subscribed to."""
        self._asking: set[int] = set()
        """The threads that are requesting right now."""
        self._only: deque[R] = deque()
        """The item of an inner flow that was called, while it waits for demand."""

    # -- demand

    @override
    def requested(self, n: int) -> None:
        self._ask()
        if self._only:
            self.signal()

    @override
    def signal(self) -> None:
        """Drain, then request the outstanding items of a new inner flow."""
        super().signal()
        if self._has_to_ask:
            self._has_to_ask = False
            self._ask()

    def _ask(self) -> None:
        """Request the demand that the current inner flow has not got yet.

        Call this without the permit.

        A call within a call does nothing, since the same thread will look again: the stack does not
        grow, whatever the inner flows and the downstream do within a request.
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

    # -- in the upstream's thread, without the permit

    def leave(self) -> None:
        """Send nothing more of the previous inner flow: the upstream has sent a new item."""
        replaced, self._last = self._last, None
        if replaced is not None:
            self.disconnect(replaced)
            with self._lock:
                self._current = None
        hooks.drop_waiting(self._only)

    @override
    def add(self, flow: Publisher[R]) -> bool:
        inner: Listener[R] = Listener(self, self.emit, self._inner_ended)
        self._last = inner
        self.post(self._switch, inner)
        self.connect(flow, inner)
        if self.over:
            self._last = None  # `closed` may have run before
        return True

    @override
    def push(self, item: R) -> bool:
        self._only.append(item)
        self.signal()
        return True

    # -- with the permit

    def _switch(self, inner: Listener[R]) -> None:
        """Make `inner` the current flow, unless it was replaced meanwhile."""
        with self._lock:
            if inner.gone:
                return
            self._current = inner
            if inner.upstream is None:
                inner.pending = self.demand
                self._asked = self._requested
            else:
                self._asked = self._emitted
                self._has_to_ask = True

    def _inner_ended(self, error: BaseException | None) -> None:
        with self._lock:
            self._current = None
        if error is not None:
            self.keep(error)

    @override
    def step(self) -> None:
        only = self._only
        if only and self._emitted < self._requested:
            try:
                item = only.popleft()
            except IndexError:  # the upstream's thread has dropped it: there is a new item
                return
            self.emit(item)
        if self.exhausted and self._current is None and not (only or self.over):
            self.finish()

    @override
    def closed(self) -> None:
        self._last = None
        with self._lock:
            self._current = None
        hooks.drop_waiting(self._only)
        super().closed()

    # -- on any thread

    @property
    @override
    def buffered(self) -> int:
        return len(self._only)


@final
class SwitchedInput(Outer[T, R], Generic[T, R]):
    """Receives the items from which flows are made. The mapper runs in the upstream's thread."""

    __slots__ = ("_switching",)

    def __init__(self, owner: SwitchMap[T, R], mapper: Mapper[T, R], concurrency: int) -> None:
        super().__init__(owner, mapper, concurrency)
        self._switching = owner

    @override
    def on_next(self, item: T, /) -> None:
        """End the previous inner flow, whatever the mapper does, and start the next one."""
        if item is not None and not self.done:
            self._switching.leave()
        super().on_next(item)
