"""One downstream and several kinds of events, which are handled one at a time.

An operator with more than one source, or with a source and a clock, is a `Coordinator` with
`Input`s. Every event (an item, an end, a request, a timer) is handled under one permit, so that an
operator is written as if there were one thread. What has to hold under every interleaving of
threads is proved once, for this class.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any, Final, Generic, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.assembly import operator_of
from flow_core.clocks import AsyncioClock, Clock, home_clock
from flow_core.demand import UNBOUNDED, add_demand, bad_request
from flow_core.errors import LoopEndedError, NoneItemError, is_fatal, leave, none_given
from flow_core.homes import Home
from flow_core.introspection import Scannable, Statistics
from flow_core.protocols import (
    ConditionalSubscriber,
    CoreSubscriber,
    Disposable,
    Publisher,
    Subscription,
)
from flow_core.serial import HAS_GIL, SerialDrain
from flow_core.sources import LoopWatch, closed_loop
from flow_ops.coordination.failures import blamed

__all__ = ["Coordinator", "Input", "Listener"]

T = TypeVar("T")
R = TypeVar("R")

_Drop = Callable[[Any], object] | None
# Any: only a handler and the code that posts to it know the type.
_Task = tuple[Callable[[Any], object], Any, _Drop]


class Coordinator(SerialDrain, Subscription, Scannable, Generic[R]):
    """The subscription of one downstream to an operator with several inputs.

    A subclass connects its inputs in `open`, and works in `step` and in the handlers that it passes
    to a `Listener`, to `post` and to `after`. `step` and the handlers run with the permit, one at a
    time, and may call `emit`, `complete`, `fail`, `connect`, `disconnect`. `open` and `requested`
    run without the permit, in the thread that subscribes or requests.

    An error raised by a handler or by `step` fails the flow, with a note of the place where the
    operator was assembled.

    The flow has ended, for good, when `over` is set: by cancel, by a bad request, or by a terminal.
    Then the inputs are cancelled, and `closed` is called with the permit, at least once: there, a
    subclass drops timers and items that wait.

    Args:
        downstream: gets the signals.
        label: the operator and where it was assembled, for messages.
    """

    __slots__ = (
        "__weakref__",
        "_bad",
        "_conditional",
        "_downstream",
        "_emitted",
        "_inputs",
        "_later",
        "_later_permit",
        "_lock",
        "_receive",
        "_requested",
        "_tasks",
        "_watch",
        "home",
        "label",
        "over",
    )

    def __init__(self, downstream: CoreSubscriber[R], label: str) -> None:
        super().__init__()
        self.label: Final = label
        self.home: Final = downstream.home()
        """The home of the subscription. It is kept, since inputs are connected on any thread."""
        self.over = False
        """True when the flow has ended, and nothing is emitted any more."""
        self._downstream: CoreSubscriber[R] | None = downstream
        self._conditional = isinstance(downstream, ConditionalSubscriber)
        """True if False from `_receive` means that the item does not use up demand."""
        self._receive: Callable[[R], object] = hooks.drop_item
        """Takes an item: the downstream's function, from its on_subscribe until the flow has
        ended."""
        self._lock = Lock()
        """Guards `_requested`, `_inputs`, and each input's upstream. Never held while calling
        out."""
        self._requested = 0
        self._emitted: int = 0
        """The number of items emitted. Written with the permit."""
        self._bad: BaseException | None = None
        """The error for the downstream if something other than a terminal has ended the flow, such
        as a bad request."""
        self._inputs: dict[Input[Any], None] = {}  # Any: inputs are of many types
        self._tasks: deque[_Task] = deque()
        self._later: deque[_Task] | None = None
        """Calls to make without the permit, by one thread at a time."""
        self._later_permit: dict[int, bool] | None = None
        """The permit for these calls; see `SerialDrain`."""
        self._watch: LoopWatch | None = None
        """Notices when the event loop of the clock is closed."""

    # -- methods that subclasses define

    @abstractmethod
    def open(self) -> None:
        """Connect to the sources.

        Called without the permit, after the downstream's on_subscribe.
        """

    def step(self) -> None:
        """Do all that can be done now: inputs have items or have ended, or there is new demand."""

    def requested(self, n: int) -> None:
        """Note that the downstream has requested `n` more items.

        Called without the permit, in the thread that requests.
        """
        self.signal()

    def introduced(self) -> None:
        """Do what follows the downstream's on_subscribe.

        Called with the permit, which this method has to give back.
        """
        self.run_entered()

    def ending(self, one: Input[Any]) -> None:  # Any: see `_inputs`
        """Note that a `PolledInput` gets nothing more; items may wait in it.

        Called without the permit.
        """

    def closed(self) -> None:
        """Drop timers, and pass items that wait to `hooks`: the flow has ended."""

    # -- running

    def start(self) -> None:
        """Hand this to the downstream as its subscription, then call `open`."""
        downstream = self._downstream
        # We hold the permit, so that no signal comes before on_subscribe has returned (§1.9).
        if downstream is None or not self.try_enter():
            return
        try:
            downstream.on_subscribe(self)
        except BaseException as error:
            if is_fatal(error):
                leave(error, downstream, self)
            self._downstream = None
            self._halt()
            self.run_entered()
            raise
        if self._requested == UNBOUNDED:
            self._conditional = False
        receive = (
            downstream.try_on_next
            if isinstance(downstream, ConditionalSubscriber) and self._conditional
            else downstream.receiver()
        )
        with self._lock:
            if not self.over:
                self._receive = receive
        self.introduced()
        try:
            if not self.over:
                self.open()
        except BaseException as error:
            if is_fatal(error):
                self.give_up(error)
                raise
            self.post(self.fail, error, hooks.drop_error)
        if self.over:
            self.signal()  # `closed` may have run before `open` was done

    def connect(self, source: Publisher[T], to: Input[T]) -> None:
        """Subscribe an input to a source. The caller may hold the permit, or not."""
        with self._lock:
            if self.over or to.gone:
                return
            self._inputs[to] = None
        try:
            source.subscribe(to)
        except BaseException as error:
            if is_fatal(error):
                self.give_up(error)
                raise
            to.on_error(error)

    def connect_later(self, source: Publisher[T], to: Input[T]) -> None:
        """Subscribe an input to a source as soon as the permit is given back.

        The caller must hold the permit.

        The items of a synchronous source are then handled as they come; if `connect` is called with
        the permit, all requested items have to wait. The input counts as `active` at once. Several
        sources follow one another without recursion, however many complete while they are
        subscribed to.
        """
        with self._lock:
            if self.over or to.gone:
                return
            self._inputs[to] = None
        self.outside(partial(self.connect, source), to)

    def outside(
        self,
        action: Callable[[Any], object],  # Any: see _Task
        argument: object = None,
        drop: _Drop = None,
    ) -> None:
        """Run `action(argument)` as soon as the permit is given back.

        The caller must hold the permit.

        An error that `action` raises fails the flow, with a note of the place where the operator
        was assembled.

        Args:
            action: runs after the actions put off earlier, one at a time; not if the flow has
                ended.
            argument: passed to `action`.
            drop: called with the argument in place of `action` if the flow has ended.
        """
        if self._later is None:
            self._later_permit = {0: True}
            self._later = deque()
        self._later.append((action, argument, drop))
        self._missed = True  # so that the thread that gives the permit back signals

    def _act_outside(self) -> None:
        """Make the calls that `outside` put off, unless another thread does.

        Called without the permit.

        No call is left behind: a thread that adds a call runs this afterwards, and a thread that
        gives `_later_permit` back looks again afterwards.
        """
        later, permit = self._later, self._later_permit
        while later and permit:
            try:
                del permit[0]
            except KeyError:
                return
            try:
                while True:
                    try:
                        action, argument, drop = later.popleft()
                    except IndexError:
                        break
                    act = drop if self.over else action
                    if act is None:
                        continue
                    act(argument)
            except BaseException as error:
                if is_fatal(error):
                    self.give_up(error)
                    raise
                self.post(self.fail, self.blame(error), hooks.drop_error)
            finally:
                permit[0] = True

    def disconnect(self, gone: Input[Any]) -> None:  # Any: see `_inputs`
        """Cancel the input `gone`. Its signals that were not handled yet are dropped."""
        with self._lock:
            self._inputs.pop(gone, None)
            upstream, gone.upstream = gone.upstream, None
            gone.gone = True
            gone.cut()
        if upstream is not None:
            hooks.cancel(upstream)

    def post(self, handler: Callable[[T], object], argument: T, drop: _Drop = None) -> None:
        """Run `handler(argument)` with the permit, after everything that was posted before.

        Args:
            handler: not called if the flow has ended by then.
            argument: passed to `handler`.
            drop: called with the argument in place of `handler`, if the flow has ended by then.
        """
        self._tasks.append((handler, argument, drop))
        self.signal()

    def put_off(self, handler: Callable[[T], object], argument: T, drop: _Drop = None) -> None:
        """Do as `post` without a signal: the caller holds the permit, and its release signals."""
        self._tasks.append((handler, argument, drop))
        self._missed = True

    def after(
        self, clock: Clock, delay_s: float, handler: Callable[[T], object], argument: T
    ) -> Disposable:
        """Run `handler(argument)` with the permit in `delay_s` seconds of `clock`.

        Returns:
            The handle of the timer; `closed` has to stop it.
        """
        return clock.schedule(delay_s, partial(self.post, handler, argument))

    def clock_for(self, clock: Clock | None) -> Clock:
        """Return the clock of this subscription.

        If the clock is that of an event loop, the flow ends with the loop.

        Args:
            clock: the clock that the operator was given; see `home_clock`.
        """
        found = home_clock(clock, self.home)
        if isinstance(found, AsyncioClock):
            self._watch = LoopWatch(found.loop, self._stopped)
        return found

    @property
    def forsaken(self) -> bool:
        """Return whether the loop of this subscription is ending: nothing may begin any more."""
        return self.home is not None and self.home.forsaken

    def hopeless(self, error: BaseException) -> bool:
        """Return whether nothing may begin after `error`, because the event loop is ending."""
        home = self.home
        if home is None:
            return False
        # Of the cancelled tasks, the last one may have been this flow's.
        return home.forsaken or (
            isinstance(error, LoopEndedError) and not asyncio.all_tasks(home.loop)
        )

    def _stopped(self) -> None:
        """End the flow: the loop of the clock is closed."""
        self.post(self.fail, closed_loop(self.label, "clock"))

    @property
    def active(self) -> int:
        """The number of inputs that have not ended."""
        return len(self._inputs)

    @property
    def demand(self) -> int:
        """The number of items that may be emitted now."""
        requested = self._requested
        return requested if requested == UNBOUNDED else requested - self._emitted

    def emit(self, item: R) -> bool:
        """Send `item`. The caller must hold the permit, and there must be demand.

        Returns:
            Whether the item uses up demand; if not, another item is wanted.

        Raises:
            NoneItemError: if `item` is None.
        """
        if item is None:
            raise NoneItemError(f"{self.label}: a function gave None, which is not an item")
        try:
            if self._receive(item) is False and self._conditional:
                return False
            self._emitted += 1
        except BaseException as error:
            self._raised(error)
        return True

    def complete(self) -> None:
        """Cancel all inputs, and send on_complete. The caller must hold the permit."""
        self._finish(None)

    def fail(self, error: BaseException) -> None:
        """Cancel all inputs, and send on_error with `error`. The caller must hold the permit."""
        self._finish(error)

    def end(self, error: BaseException | None) -> None:
        """Complete, or fail if there is an error. The caller must hold the permit."""
        self._finish(error)

    def blame(self, error: BaseException) -> BaseException:
        """Return the error that the flow gets when a function of the operator has raised `error`.

        Raises:
            BaseException: `error`, if it is fatal.
        """
        return blamed(error, self.label)

    # -- signals from the downstream

    @final
    @override
    def request(self, n: int, /) -> None:
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
    @override
    def cancel(self) -> None:
        """Cancel. A running handler ends first; nothing is emitted after it."""
        self._bad = None
        self._downstream = None
        self._halt()
        self.signal()

    @override
    def signal(self) -> None:
        """Signal as `SerialDrain` does; it is repeated here, to save a call for each item."""
        self._missed = True
        permit = self._permit
        while self._missed:
            if HAS_GIL and 0 not in permit:  # `del` without its KeyError
                break
            try:
                del permit[0]
            except KeyError:
                break
            self._missed = False
            try:
                self.drain()
            finally:
                permit[0] = True
        if self._later:
            self._act_outside()

    @override
    def run_entered(self) -> None:
        super().run_entered()
        if self._later:
            self._act_outside()

    # -- with the permit

    @final
    @override
    def drain(self) -> None:
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
        """End the flow: a handler or `step` has raised `error`."""
        if is_fatal(error):
            self.forsake(error)
            self._downstream = None
            self._halt()
            self._clean()
            raise error
        self._finish(self.blame(error))

    def forsake(self, error: BaseException) -> None:
        """Note that a fatal `error` propagates, and `leave` the downstream, which gets no terminal.

        The caller must hold the permit, and must not have dropped anything yet: the stack may have
        no room for more calls.
        """
        leave(error, self._downstream, self)

    def give_up(self, error: BaseException) -> None:
        """Note that a fatal `error` propagates past this. The caller must not hold the permit."""
        leave(error, self._downstream, self)
        self.cancel()

    def told_late(self, error: BaseException) -> None:
        """Send a fatal `error`, if the downstream has got no terminal yet.

        The caller must not hold the permit.
        """
        if not self.over:
            self.post(self.fail, error, hooks.drop_error)
        elif self._downstream is None:
            hooks.drop_error(error)
        else:
            self._bad = error
            self.signal()

    def _finish(self, error: BaseException | None) -> None:
        downstream = self._downstream
        if self.over or downstream is None:
            if error is not None:
                hooks.drop_error(error)
            return
        self._downstream = None
        try:
            self._halt()
            self._clean()
            if error is None:
                downstream.on_complete()
            else:
                downstream.on_error(error)
        except BaseException:
            self._downstream = downstream  # so that `_failed` finds it, if the error is fatal
            raise

    def _raised(self, error: BaseException) -> None:
        """End the flow: the downstream has raised `error` in its on_next (§2.13)."""
        if is_fatal(error):
            self._failed(error)
        downstream, self._downstream = self._downstream, None
        was_over = self.over
        self._halt()
        if was_over or downstream is None or not downstream.on_next_raised(error):
            hooks.drop_error(error)

    def _clean(self) -> None:
        """Drop everything: the flow has ended, and only the error in `_bad` may still be sent."""
        for tasks in (self._tasks, self._later):
            while tasks:
                try:
                    _, argument, drop = tasks.popleft()
                except IndexError:  # the thread that makes the calls was faster
                    break
                if drop is not None:
                    drop(argument)
        self.closed()
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.end()
        downstream, self._downstream = self._downstream, None
        bad = self._bad  # read once: a cancel sets it to None
        if downstream is not None and bad is not None:
            downstream.on_error(bad)

    def _halt(self) -> None:
        """Stop: the flow has ended. Any thread may call this."""
        with self._lock:
            self._receive = hooks.drop_item
            inputs = self._inputs
            upstreams = [one.upstream for one in inputs if one.upstream is not None]
            for one in inputs:
                one.upstream = None
                one.cut()
            # After that: a thread that sees it may send the terminal and call `closed` at once, and
            # then no item may be sent and no handler may run.
            self.over = True
            self._inputs = {}  # not before: the flow is complete when it has no input left
            self._missed = True  # the holder of the permit cleans up
        for upstream in upstreams:
            hooks.cancel(upstream)

    # -- methods that inputs use

    def admit(self, one: Input[Any], subscription: Subscription) -> int:  # Any: see `_inputs`
        """Take the subscription of an input.

        Returns:
            How many items to request; -1 if the subscription has to be cancelled.
        """
        with self._lock:
            if self.over or one.done or one.upstream is not None or one not in self._inputs:
                return -1
            one.upstream = subscription
            pending, one.pending = one.pending, 0
            return pending

    def release(self, ended: Input[Any]) -> None:  # Any: see `_inputs`
        """Note that an input has ended by itself, and does not count as `active` any more."""
        with self._lock:
            self._inputs.pop(ended, None)
            ended.upstream = None

    def forget(self, ended: Input[Any]) -> Subscription | None:  # Any: see `_inputs`
        """Note that an input has ended by itself: its subscription is not called any more."""
        with self._lock:
            upstream, ended.upstream = ended.upstream, None
        return upstream

    def request_of(self, one: Input[Any], n: int) -> None:  # Any: see `_inputs`
        """Request `n` items of an input, now or when it has its subscription."""
        with self._lock:
            upstream = one.upstream
            if upstream is None:
                one.pending = add_demand(one.pending, n)
        if upstream is not None:
            upstream.request(n)

    @override
    def statistics(self) -> Statistics:
        with self._lock:
            running = tuple(one.upstream for one in self._inputs if one.upstream is not None)
        return Statistics(
            operator=operator_of(self.label),
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
        """The number of items that wait; for `statistics`."""
        return len(self._tasks)


class Input(CoreSubscriber[T], Generic[T]):
    """Receives one of the sources of a `Coordinator`.

    Args:
        owner: the coordinator, which handles the signals.
        demand: how much to request as soon as there is a subscription; 0 for nothing.
    """

    __slots__ = ("__weakref__", "done", "gone", "owner", "pending", "upstream")

    def __init__(self, owner: Coordinator[Any], demand: int) -> None:  # Any: the type that it emits
        self.owner: Final = owner
        self.upstream: Subscription | None = None
        self.pending = demand
        """The demand that came before there was a subscription."""
        self.done = False
        """True when the terminal of the source has come."""
        self.gone = False
        """True when the input was disconnected: later signals are dropped."""

    @override
    def home(self) -> Home | None:
        return self.owner.home

    def request(self, n: int) -> None:
        """Request `n` items of the source."""
        self.owner.request_of(self, n)

    def cut(self) -> None:
        """Disconnect this input, or note that the flow has ended.

        Called under the owner's lock.
        """

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Keep the upstream's subscription: it is never forwarded."""
        if subscription is None:
            raise none_given("on_subscribe")
        pending = self.owner.admit(self, subscription)
        if pending < 0:
            subscription.cancel()  # §2.5, or the flow has ended
        elif pending:
            subscription.request(pending)

    @override
    def on_error(self, error: BaseException, /) -> None:
        if error is None:
            raise none_given("on_error")
        if self.done or self.owner.over:
            self.late(error)
            return
        self.done = True
        self.owner.post(self._end, error, hooks.drop_error)

    @override
    def on_complete(self) -> None:
        if not self.done:
            self.done = True
            self.owner.post(self._end, None)

    def late(self, error: BaseException) -> None:
        """Drop an error after the end of the source or of the flow, unless it is fatal.

        If a fatal error has kept the downstream from getting a terminal, the downstream gets the
        error.
        """
        if self.gone or not is_fatal(error):
            hooks.drop_error(error)
        else:
            self.owner.told_late(error)

    def _end(self, error: BaseException | None) -> None:
        """Handle the end of the source: completed, or failed with `error`.

        The caller must hold the permit.
        """
        self.owner.release(self)

    @override
    def on_next_raised(self, error: BaseException, /) -> bool:
        if self.done:
            return False
        self.on_error(error)
        return True


@final
class Listener(Input[T], ConditionalSubscriber[T]):
    """An input whose signals are handled one by one, as they come; it keeps no items.

    Args:
        owner: the coordinator, which handles the signals.
        on_item: gets each item, with the permit. If it returns False, another item is requested in
            its place (so that `Coordinator.emit` itself can be passed).
        on_end: gets the error, or None for completion, with the permit.
        demand: how much to request as soon as there is a subscription; 0 for nothing.
    """

    __slots__ = ("_direct", "_on_end", "_on_item")

    def __init__(
        self,
        owner: Coordinator[Any],  # Any: the type that it emits
        on_item: Callable[[T], object],
        on_end: Callable[[BaseException | None], object],
        demand: int = 0,
    ) -> None:
        super().__init__(owner, demand)
        self._on_item = on_item
        self._on_end = on_end
        self._direct = on_item
        """`on_item`, or a function that drops items: so no check is needed for each item."""

    @override
    def cut(self) -> None:
        self._direct = hooks.drop_item

    @override
    def on_next(self, item: T, /) -> None:
        if not self.try_on_next(item):
            self.request(1)

    @override
    def try_on_next(self, item: T, /) -> bool:
        """Handle the item at once if no other thread is at work."""
        if item is None:
            raise none_given("on_next")
        owner = self.owner
        permit = owner._permit
        try:
            del permit[0]
        except KeyError:
            pass  # another caller has the permit
        else:
            used: object = True
            try:
                # An earlier item of this source that waits is among the tasks, or is handled with
                # the permit: no item overtakes it.
                if not owner._tasks:
                    used = self._direct(item)
                elif self.done:
                    hooks.drop_item(item)
                else:
                    owner.put_off(self._take, item, hooks.drop_item)
            except BaseException as error:
                owner._failed(error)
            finally:
                permit[0] = True
                if owner._missed:
                    owner.signal()
            return used is not False
        if self.done:
            hooks.drop_item(item)
        else:
            owner.post(self._take, item, hooks.drop_item)
        return True

    @override
    def on_error(self, error: BaseException, /) -> None:
        self._direct = hooks.drop_item
        super().on_error(error)

    @override
    def on_complete(self) -> None:
        self._direct = hooks.drop_item
        super().on_complete()

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
