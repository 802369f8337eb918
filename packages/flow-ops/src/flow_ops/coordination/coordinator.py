"""One downstream, several things that happen: all of them one at a time.

An operator with more than one source, or with a source and a clock, is a `Coordinator` with
`Input`s. Whatever happens (an item, an end, a request, a timer) is handled under one permit, so
that an operator is written as if there were one thread. What has to be true under every
interleaving is true of this class, and proved once, here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any, Final, Generic, TypeVar, final

from flow_core import hooks
from flow_core.clocks import Clock
from flow_core.demand import UNBOUNDED, add_demand, bad_request
from flow_core.errors import NoneItemError, is_fatal, none_given, throw_if_fatal
from flow_core.introspection import Statistics
from flow_core.protocols import (
    ConditionalSubscriber,
    CoreSubscriber,
    Disposable,
    Publisher,
    Subscription,
)
from flow_core.serial import SerialDrain

__all__ = ["Coordinator", "Input", "Listener"]

T = TypeVar("T")
R = TypeVar("R")

_Drop = Callable[[Any], object] | None
# Any: what a handler takes is between it and who posts it.
_Task = tuple[Callable[[Any], object], Any, _Drop]


class Coordinator(SerialDrain, Generic[R]):
    """The subscription of one downstream to an operator with several inputs.

    A subclass connects its inputs in `open`, and works in `step` and in the handlers that it gives
    to a `Listener`, to `post` and to `after`. All of these run with the permit, one at a time, and
    may call `emit`, `complete`, `fail`, `connect`, `disconnect`. `open` and `requested` run without
    the permit, as the thread that subscribes or requests comes.

    What a handler or `step` raises fails the flow, with a note of the operator's place.

    The flow is over, for good, when `over` is set: by cancel, by a bad request, or by a terminal.
    Then the inputs are cancelled, and `closed` is called with the permit, once or more often: there
    a subclass lets go of timers and of items that wait.

    Args:
        downstream: gets the signals.
        label: the operator and its place, for messages.
    """

    __slots__ = (
        "__weakref__",
        "_bad",
        "_conditional",
        "_downstream",
        "_emitted",
        "_inputs",
        "_lock",
        "_receive",
        "_requested",
        "_tasks",
        "label",
        "over",
    )

    def __init__(self, downstream: CoreSubscriber[R], label: str) -> None:
        super().__init__()
        self.label: Final = label
        self.over = False
        """Nothing is emitted any more."""
        self._downstream: CoreSubscriber[R] | None = downstream
        self._conditional = isinstance(downstream, ConditionalSubscriber)
        """Whether False from `_receive` means that the item does not count."""
        self._receive: Callable[[R], object] = hooks.drop_item
        """Takes an item: the downstream, from when it was introduced until the flow is over."""
        self._lock = Lock()
        """Guards `_requested`, `_inputs`, and each input's upstream. Nothing is called under it."""
        self._requested = 0
        self._emitted = 0
        """Written with the permit."""
        self._bad: ValueError | None = None
        self._inputs: dict[Input[Any], None] = {}  # Any: inputs are of many types
        self._tasks: deque[_Task] = deque()

    # -- for subclasses to say

    @abstractmethod
    def open(self) -> None:
        """Connect to the sources. After the downstream's on_subscribe, without the permit."""

    def step(self) -> None:
        """Do what can be done now: inputs have items or have ended, or there is new demand."""

    def requested(self, n: int) -> None:
        """The downstream has requested `n` more. Without the permit, in its thread."""
        self.signal()

    def closed(self) -> None:
        """The flow is over: let go of timers and waiting items (give those to `hooks`)."""

    # -- running

    def start(self) -> None:
        """Introduce this to the downstream, then open."""
        downstream = self._downstream
        # The permit is held, so that nothing is signalled before on_subscribe has returned (§1.9).
        if downstream is None or not self.try_enter():
            return
        try:
            downstream.on_subscribe(self)
        except BaseException:
            self._downstream = None
            self._halt()
            self.run_entered()
            raise
        if isinstance(downstream, ConditionalSubscriber):
            self._receive = downstream.try_on_next
        else:
            self._receive = downstream.receiver()
        if self.over:  # cancelled meanwhile, by a thread that saw no receiver yet
            self._receive = hooks.drop_item
        self.run_entered()
        try:
            if not self.over:
                self.open()
        except BaseException as error:
            if is_fatal(error):
                self.cancel()
                raise
            self.post(self.fail, error, hooks.drop_error)

    def connect(self, source: Publisher[T], to: Input[T]) -> None:
        """Subscribe an input to a source. With the permit or without."""
        with self._lock:
            if self.over:
                return
            self._inputs[to] = None
        try:
            source.subscribe(to)
        except BaseException as error:
            if is_fatal(error):
                self.cancel()
                raise
            to.on_error(error)

    def disconnect(self, gone: Input[Any]) -> None:  # Any: see `_inputs`
        """Cancel an input. What it has sent and was not handled yet is dropped."""
        with self._lock:
            self._inputs.pop(gone, None)
            upstream, gone.upstream = gone.upstream, None
            gone.gone = True
        if upstream is not None:
            upstream.cancel()

    def post(self, handler: Callable[[T], object], argument: T, drop: _Drop = None) -> None:
        """Have `handler(argument)` run with the permit, after what was posted before.

        Args:
            handler: not called if the flow is over by then.
            argument: passed to it.
            drop: gets the argument then.
        """
        self._tasks.append((handler, argument, drop))
        self.signal()

    def after(
        self, clock: Clock, delay_s: float, handler: Callable[[T], object], argument: T
    ) -> Disposable:
        """Have `handler(argument)` run with the permit in `delay_s` seconds.

        Returns:
            The handle to stop it with, which `closed` has to do.
        """
        return clock.schedule(delay_s, partial(self.post, handler, argument))

    @property
    def active(self) -> int:
        """How many inputs have not ended."""
        return len(self._inputs)

    @property
    def demand(self) -> int:
        """How many items may be emitted now."""
        requested = self._requested
        return requested if requested == UNBOUNDED else requested - self._emitted

    def emit(self, item: R) -> bool:
        """Send `item`. With the permit, and only if there is demand for it.

        Returns:
            Whether it counts against the demand; if not, another one is wanted.

        Raises:
            NoneItemError: for None.
        """
        if item is None:
            raise NoneItemError(f"{self.label}: a function gave None, which is not an item (§2.13)")
        try:
            if self._receive(item) is False and self._conditional:
                return False
            self._emitted += 1
        except BaseException as error:
            self._raised(error)
        return True

    def complete(self) -> None:
        """Cancel what runs, and send on_complete. With the permit."""
        self._finish(None)

    def fail(self, error: BaseException) -> None:
        """Cancel what runs, and send on_error. With the permit."""
        self._finish(error)

    def blame(self, error: BaseException) -> BaseException:
        """What the flow fails with when a function of the operator has raised `error`.

        Raises:
            BaseException: `error`, if it is fatal.
        """
        throw_if_fatal(error)
        if isinstance(error, StopIteration):  # never a silent end (PEP 479)
            stopped = RuntimeError("a function of the flow raised StopIteration")
            stopped.__cause__ = error
            error = stopped
        note = f"in {self.label}"
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        return error

    # -- signals from the downstream

    @final
    def request(self, n: int, /) -> None:
        """See `Subscription.request`."""
        bad = bad_request(n)
        if self.over:
            return
        if bad is not None:
            self._bad = bad
            self._halt()
            self.signal()
            return
        if self._requested != UNBOUNDED:
            with self._lock:
                self._requested = add_demand(self._requested, n)
        self.requested(n)

    @final
    def cancel(self) -> None:
        """See `Subscription.cancel`. A running handler ends first; nothing is emitted after it."""
        self._bad = None
        self._downstream = None
        self._halt()
        self.signal()

    # -- with the permit

    @final
    def drain(self) -> None:
        """See `SerialDrain.drain`."""
        tasks = self._tasks
        try:
            while tasks and not self.over:
                handler, argument, _ = tasks.popleft()
                handler(argument)
            if not self.over:
                self.step()
        except BaseException as error:
            self._failed(error)
        if self.over:
            self._clean()

    def _failed(self, error: BaseException) -> None:
        """A handler or `step` has raised `error`."""
        if is_fatal(error):
            self._downstream = None
            self._halt()
            self._clean()
            raise error
        self._finish(self.blame(error))

    def _finish(self, error: BaseException | None) -> None:
        downstream = self._downstream
        if self.over or downstream is None:
            if error is not None:
                hooks.drop_error(error)
            return
        self._downstream = None
        self._halt()
        self._clean()
        if error is None:
            downstream.on_complete()
        else:
            downstream.on_error(error)

    def _raised(self, error: BaseException) -> None:
        """The downstream let `error` escape from its on_next (§2.13)."""
        downstream, self._downstream = self._downstream, None
        was_over = self.over
        self._halt()
        throw_if_fatal(error)
        if was_over or downstream is None or not downstream.on_next_raised(error):
            hooks.drop_error(error)

    def _clean(self) -> None:
        """The flow is over: let everything go. Only a bad request (§3.9) is left to tell."""
        tasks = self._tasks
        while tasks:
            _, argument, drop = tasks.popleft()
            if drop is not None:
                drop(argument)
        self.closed()
        downstream, self._downstream = self._downstream, None
        if downstream is not None and self._bad is not None:
            downstream.on_error(self._bad)

    def _halt(self) -> None:
        """The flow is over. Any thread."""
        with self._lock:
            self.over = True
            self._receive = hooks.drop_item
            inputs, self._inputs = self._inputs, {}
            upstreams = [one.upstream for one in inputs if one.upstream is not None]
        for upstream in upstreams:
            upstream.cancel()

    # -- for inputs

    def admit(self, one: Input[Any], subscription: Subscription) -> int:  # Any: see `_inputs`
        """Take the subscription of an input.

        Returns:
            What to request of it; -1 if it is to be cancelled.
        """
        with self._lock:
            if self.over or one.upstream is not None or one not in self._inputs:
                return -1
            one.upstream = subscription
            pending, one.pending = one.pending, 0
            return pending

    def release(self, ended: Input[Any]) -> None:  # Any: see `_inputs`
        """An input has ended by itself."""
        with self._lock:
            self._inputs.pop(ended, None)
            ended.upstream = None

    def request_of(self, one: Input[Any], n: int) -> None:  # Any: see `_inputs`
        """Request `n` items of an input, now or when it has its subscription."""
        with self._lock:
            upstream = one.upstream
            if upstream is None:
                one.pending = add_demand(one.pending, n)
        if upstream is not None:
            upstream.request(n)

    def statistics(self) -> Statistics:
        """See `Scannable.statistics`."""
        with self._lock:
            running = tuple(one.upstream for one in self._inputs if one.upstream is not None)
        return Statistics(
            operator=self.label.partition(", assembled at ")[0],
            requested=self.demand,
            buffered=self.buffered,
            cancelled=self.over,
            terminated=self._downstream is None,
            error=self._bad,
            upstream=running[0] if running else None,
            inners=running[1:],
        )

    @property
    def buffered(self) -> int:
        """How many items wait; for `statistics`."""
        return len(self._tasks)


class Input(CoreSubscriber[T], Generic[T]):
    """Receives one of the sources of a `Coordinator`.

    Args:
        owner: handles what comes.
        demand: what to request as soon as there is a subscription; 0 for nothing.
    """

    __slots__ = ("__weakref__", "done", "gone", "owner", "pending", "upstream")

    def __init__(self, owner: Coordinator[Any], demand: int) -> None:  # Any: whatever it emits
        self.owner: Final = owner
        self.upstream: Subscription | None = None
        self.pending = demand
        """Requested before there was a subscription."""
        self.done = False
        """Its terminal has come."""
        self.gone = False
        """Disconnected: what still comes is dropped."""

    def request(self, n: int) -> None:
        """Request `n` items of the source."""
        self.owner.request_of(self, n)

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """See `Subscriber.on_subscribe`. The upstream's subscription is never forwarded (F35)."""
        if subscription is None:
            raise none_given("on_subscribe")
        pending = self.owner.admit(self, subscription)
        if pending < 0:
            subscription.cancel()  # §2.5, or the flow is over
        elif pending:
            subscription.request(pending)

    def on_next_raised(self, error: BaseException, /) -> bool:
        """See `CoreSubscriber.on_next_raised`."""
        if self.done:
            return False
        self.on_error(error)
        return True


@final
class Listener(Input[T], ConditionalSubscriber[T]):
    """An input whose signals are handled one by one, as they come; no item waits by itself.

    Args:
        owner: handles what comes.
        on_item: gets each item, with the permit. If it returns False, another one is requested in
            its place (so that `Coordinator.emit` can be given as it is).
        on_end: gets the error, or None for completion, with the permit.
        demand: what to request as soon as there is a subscription; 0 for nothing.
    """

    __slots__ = ("_on_end", "_on_item")

    def __init__(
        self,
        owner: Coordinator[Any],  # Any: whatever it emits
        on_item: Callable[[T], object],
        on_end: Callable[[BaseException | None], object],
        demand: int = 0,
    ) -> None:
        super().__init__(owner, demand)
        self._on_item = on_item
        self._on_end = on_end

    def on_next(self, item: T, /) -> None:
        """See `Subscriber.on_next`."""
        if not self.try_on_next(item):
            self.request(1)

    def try_on_next(self, item: T, /) -> bool:
        """See `ConditionalSubscriber.try_on_next`. Handled at once if nobody else is at work."""
        if item is None:
            raise none_given("on_next")
        if self.done:
            hooks.drop_item(item)
            return True
        owner = self.owner
        permit = owner._permit
        if owner._tasks or not permit.pop(0, False):
            owner.post(self._take, item, hooks.drop_item)
            return True
        used: object = True
        try:
            if owner.over or self.gone:
                hooks.drop_item(item)
            else:
                used = self._on_item(item)
        except BaseException as error:
            owner._failed(error)
        finally:
            permit[0] = True
            if owner._missed or owner.over:
                owner.signal()
        return used is not False

    def on_error(self, error: BaseException, /) -> None:
        """See `Subscriber.on_error`."""
        if error is None:
            raise none_given("on_error")
        if self.done:
            hooks.drop_error(error)
            return
        self.done = True
        self.owner.post(self._end, error, hooks.drop_error)

    def on_complete(self) -> None:
        """See `Subscriber.on_complete`."""
        if not self.done:
            self.done = True
            self.owner.post(self._end, None)

    def _take(self, item: T) -> None:
        if self.gone:
            hooks.drop_item(item)
        elif self._on_item(item) is False:
            self.request(1)

    def _end(self, error: BaseException | None) -> None:
        self.owner.release(self)
        if not self.gone:
            self._on_end(error)
        elif error is not None:
            hooks.drop_error(error)
