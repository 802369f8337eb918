"""The state of one subscription to `concat_map`."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, get_ident
from typing import Generic, TypeVar, cast, final

from typing_extensions import override

from flow_core import hooks
from flow_core.assembly import operator_of
from flow_core.demand import UNBOUNDED, add_demand, bad_request
from flow_core.errors import is_fatal, leave, none_given, throw_if_fatal
from flow_core.flow import Flow
from flow_core.homes import Home, task_context
from flow_core.introspection import Scannable, Statistics
from flow_core.protocols import (
    EMPTY,
    ConditionalSubscriber,
    CoreSubscriber,
    Fusion,
    QueueSubscription,
    Subscription,
)
from flow_core.stages import GRANT, Gate
from flow_core.structure import call_of
from flow_ops.coordination import Mapper, combined, no_stop, overflow
from flow_ops.transform._concat_inner import InnerSubscriber
from flow_ops.transform._ending import EndsInDrain
from flow_ops.transform._inner import Polled, Pulled, Queued, none_item, pulled, pushed
from flow_ops.transform._single import resolved

__all__ = ["ConcatMapSubscriber"]

T = TypeVar("T")
R = TypeVar("R")


@final
class ConcatMapSubscriber(EndsInDrain[T], Subscription, Scannable, Generic[T, R]):
    """Runs one inner flow at a time, between the upstream and the downstream.

    The thread that drains takes items, maps them, and runs the inner flows that are iterators or
    functions. An inner flow that has to be subscribed to stays in `_inner` until it has ended.
    Meanwhile that flow alone sends items, and draining does nothing. So items never overlap, and a
    drain that finds `_inner` None is the only one to call the downstream. Inner flows that end
    within ``subscribe`` do so under the permit, and the loop continues: there is no recursion,
    however many follow.

    Only a drain sends terminals. For a bad request (§3.9) during an inner flow, the error waits
    until an on_next of that flow has returned and the flow has left its turn.

    Args:
        downstream: gets the signals.
        mapper: returns a flow for each item.
        prefetch: items to request ahead, of an upstream that pushes.
        delay_error: whether errors of inner flows come at the end.
        ask: the fusion to ask the upstream for.
        eager: whether an inner flow is started without demand, so that its end is known.
    """

    __slots__ = (
        "__weakref__",
        "_ask",
        "_asynchronous",
        "_bad",
        "_conditional",
        "_context",
        "_current",
        "_delay_error",
        "_downstream",
        "_eager",
        "_emitted",
        "_errors",
        "_home",
        "_inner",
        "_lock",
        "_mapper",
        "_outer",
        "_prefetch",
        "_requested",
        "_thread",
        "_upstream",
        "gate",
    )

    def __init__(
        self,
        downstream: CoreSubscriber[R],
        mapper: Mapper[T, R],
        prefetch: int,
        delay_error: bool,
        ask: Fusion,
        *,
        eager: bool = False,
    ) -> None:
        super().__init__()
        self.gate = Gate()
        """Is cancelled, for good, when the flow has ended for whatever reason."""
        self._downstream: CoreSubscriber[R] | None = downstream
        self._home = downstream.home()
        """The downstream's home. It is kept, since inner flows are subscribed to on any thread."""
        self._context = task_context(self._home) if eager else None
        """The context in which flows follow one another: the subscriber's, on whichever thread an
        inner flow ends."""
        self._thread = get_ident()
        self._conditional = isinstance(downstream, ConditionalSubscriber)
        self._mapper = mapper
        self._prefetch = prefetch
        self._delay_error = delay_error
        self._ask = ask
        self._eager = eager
        self._upstream: Subscription | None = None
        self._outer: Pulled[T] | Polled[T] | Queued[T] | None = None
        self._asynchronous = False
        """True if this polls the upstream's queue: on_next is only a wake-up then."""
        self._errors: list[BaseException] = []
        """The delayed errors of inner flows."""
        self._bad: ValueError | None = None
        self._current: Pulled[R] | None = None
        """The inner flow that is an iterator, while it waits for demand."""
        self._inner: InnerSubscriber[R] | None = None
        self._lock = Lock()
        """Guards `_requested`, and `_inner` with its upstream. Never held while calling out."""
        self._requested = 0
        self._emitted = 0
        """The number of items sent. Written by drains, and by the inner flow when it ends."""

    def start(self, outer: Pulled[T]) -> None:
        """Start with an iterator, without an upstream to subscribe to."""
        self._outer = outer
        self._done = True
        self._begin()

    def _begin(self) -> None:
        downstream = self._downstream
        # We hold the permit, so that no signal comes before on_subscribe has returned (§1.9).
        if downstream is not None and self.try_enter():
            try:
                downstream.on_subscribe(self)
            except BaseException as error:
                if is_fatal(error):
                    leave(error, downstream, self)
                self._downstream = None
                self._halt()
                self.run_entered()
                raise
            self.run_entered()

    # -- signals from the upstream

    @override
    def home(self) -> Home | None:
        return self._home

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Keep the upstream's subscription: it is never forwarded (F35)."""
        if subscription is None:
            raise none_given("on_subscribe")
        if self._upstream is not None or self.gate.cancelled:
            subscription.cancel()  # §2.5
            return
        # Stored as a plain Subscription, even if it is a queue.
        self._upstream = upstream = subscription
        granted = Fusion.NONE
        if isinstance(subscription, QueueSubscription):
            # A subscription does not say the type of its items: it is the upstream's.
            queue = cast("QueueSubscription[T]", subscription)
            granted = queue.request_fusion(self._ask)
            if granted & Fusion.SYNC:
                self._outer = Polled(queue)
                self._done = True
            elif granted & Fusion.ASYNC:
                self._asynchronous = True
                self._outer = Queued(queue, self._prefetch, queue)
        if not granted:
            self._outer = Queued(upstream, self._prefetch)
        self._begin()
        if not granted & Fusion.SYNC and not self.gate.cancelled:
            subscription.request(self._prefetch)

    @override
    def on_next(self, item: T, /) -> None:
        """Have the item wait for its turn."""
        if self._asynchronous:
            self.signal()
            return
        if item is None:
            raise none_given("on_next")
        outer = self._outer
        if self._done or self.gate.cancelled or not isinstance(outer, Queued):
            hooks.drop_item(item)
        elif outer.offer(item):
            self.signal()
        else:
            hooks.drop_item(item)
            if self._upstream is not None:
                hooks.cancel(self._upstream)
            self.on_error(overflow(self._mapper.label, self._prefetch, who="the upstream"))

    @property
    @override
    def _is_deaf(self) -> bool:
        return self.gate.cancelled

    @override
    def on_complete(self) -> None:
        """End the upstream's part, unless the flow has ended already: see `statistics`."""
        if not (self._done or self.gate.cancelled):
            self._done = True
            self.signal()

    # -- signals from the downstream

    @override
    def request(self, n: int, /) -> None:
        """Pass the demand to the current inner flow. Any thread may call this."""
        bad = bad_request(n)
        if self.gate.cancelled:
            return
        if bad is not None:
            self._bad = bad
            self._halt()
            self.signal()
            return
        if self._requested == UNBOUNDED:
            return
        with self._lock:
            self._requested = add_demand(self._requested, n)
            inner = self._inner
            upstream = None if inner is None else inner.upstream
        # A subscription that has ended meanwhile ignores it. Nothing is lost: the thread that
        # clears `_inner` looks at `_requested` after that.
        if upstream is not None:
            upstream.request(n)
        elif inner is None:
            self.signal()

    @override
    def cancel(self) -> None:
        """Cancel; if a thread is draining, that thread closes the generators."""
        self._bad = None
        self._downstream = None
        if not self.gate.cancelled:
            self._halt()
        self.signal()

    def _halt(self) -> None:
        """Tell the running code to stop; the next drain cleans up."""
        with self._lock:
            inner = self._inner
            running = None if inner is None else inner.upstream
            if inner is not None:
                # Before any other thread can see that the flow has ended, and send the end.
                inner.receive = hooks.drop_item
            self.gate.cancelled = True
        upstream = self._upstream
        if upstream is not None:
            hooks.cancel(upstream)
        if running is not None:
            hooks.cancel(running)

    # -- signals from the inner flow

    def admit(self, inner: InnerSubscriber[R], subscription: Subscription) -> int:
        """Take the subscription of the current inner flow, and return the demand for it.

        Returns:
            What to request of the inner flow; -1 to cancel it, since its turn has passed.
        """
        with self._lock:
            if self._inner is not inner or inner.upstream is not None or self.gate.cancelled:
                return -1
            inner.upstream = subscription
            requested = self._requested
            return UNBOUNDED if requested == UNBOUNDED else requested - self._emitted

    def leave_turn(self, inner: InnerSubscriber[R], error: BaseException | None) -> None:
        """Note that the inner flow has ended, or left its turn because the whole flow has ended."""
        with self._lock:
            turn = self._inner is inner
            if error is not None and turn and not self.gate.cancelled:
                # First: a thread that sees the turn end looks for errors.
                self._errors.append(error)
                error = None
            if turn:
                self._inner = None
                self._emitted += inner.produced
            inner.receive = hooks.drop_item
        if error is not None:
            hooks.drop_error(error)
        if not turn:
            return
        context = self._context
        if context is None or (get_ident() == self._thread and self._home is None):
            self.signal()
        else:
            context.copy().run(self.signal)

    def raised_within(self, error: BaseException) -> None:
        """Call `raised`; if the flow was cancelled, drop `error`, or raise it if it is fatal."""
        downstream = self._downstream
        if downstream is None:  # it was cancelled, and raises all the same
            throw_if_fatal(error)
            hooks.drop_error(error)
        else:
            self.raised(downstream, error)

    def raised(self, downstream: CoreSubscriber[R], error: BaseException) -> None:
        """End the flow: the downstream has raised `error` in its on_next (§2.13)."""
        over = self.gate.cancelled
        if is_fatal(error):
            leave(error, downstream, self)
        self._downstream = None
        self._halt()
        self.signal()
        throw_if_fatal(error)
        if over or not downstream.on_next_raised(error):
            hooks.drop_error(error)

    # -- draining, with the permit

    @override
    def drain(self) -> None:
        try:
            self._drain()
        except BaseException as error:
            if is_fatal(error):
                leave(error, self._downstream, self)
            self._downstream = None
            self._halt()
            self._stop()
            raise

    def _drain(self) -> None:
        gate = self.gate
        while not gate.cancelled:
            downstream, outer = self._downstream, self._outer
            if self._inner is not None or downstream is None or outer is None:
                return
            if self._errors and not self._delay_error:
                self._finish()
                continue
            grant = GRANT
            if self._requested != UNBOUNDED:
                grant = min(self._requested - self._emitted, GRANT)
            if grant == 0:
                if not (self._find_end(outer) or (self._eager and self._start_next(outer))):
                    return
            elif self._run(downstream, outer, grant):
                return
        self._stop()

    def _run(
        self, downstream: CoreSubscriber[R], outer: Pulled[T] | Polled[T] | Queued[T], grant: int
    ) -> bool:
        """Map items and send the items of their flows, until `grant` items are sent.

        Returns:
            Whether nothing can be done before the next signal.
        """
        gate, mapper, conditional = self.gate, self._mapper, self._conditional
        function = mapper.function
        emit = (
            downstream.try_on_next
            if isinstance(downstream, ConditionalSubscriber)
            else downstream.receiver()
        )
        left = grant
        everything = self._requested == UNBOUNDED
        current = self._current
        if current is not None:
            left = self._push(downstream, current, left)
            if left == 0 or self._current is not None or gate.cancelled:
                self._emitted += grant - left
                return False
        done = self._done  # read before taking: items from before the end wait by then
        try:
            for value in outer.items:
                if value is None:
                    raise none_item(mapper.label)
                try:
                    flow = function(value)
                    if not isinstance(flow, Flow):
                        flow = mapper.flow_of(flow)
                except BaseException as error:
                    self._fail(mapper.failed(error))
                    return False
                called = call_of(flow)
                if called is not None:
                    try:
                        item: R | None = called.call()
                    except BaseException as error:
                        item = None
                        self._keep(error)
                    if item is not None:
                        try:
                            used = emit(item)
                        except BaseException as error:
                            self.raised(downstream, error)
                            return False
                        if used or not conditional:
                            left -= 1
                            if not left:
                                break
                elif not (everything and self._push_all(downstream, flow, emit)):
                    inner = self._open(flow)
                    if isinstance(inner, Flow):
                        # From now on, the inner flow writes `_emitted`.
                        self._emitted += grant - left
                        self._subscribe(inner)
                        return False
                    if inner is not None:
                        self._current = inner
                        left = self._push(downstream, inner, left)
                        if not left:
                            break
                if gate.cancelled:
                    return False
            else:
                if not done:
                    self._emitted += grant - left
                    return True
                if not gate.cancelled:
                    self._finish(self._error, ended=True)
        except BaseException as error:
            self._fail(error)
        self._emitted += grant - left
        return False

    def _open(self, flow: Flow[R]) -> Pulled[R] | Flow[R] | None:
        """Return `flow` as an iterator, or as a flow to subscribe to.

        The result is None if this raises an error, which is then kept as the flow's.
        """
        try:
            flow = resolved(flow)
            return pulled(flow, self.gate) or flow
        except BaseException as error:
            self._keep(error)
            return None

    def _push_all(
        self, downstream: CoreSubscriber[R], flow: Flow[R], emit: Callable[[R], object]
    ) -> bool:
        """Send all items of an inner flow by its own loop, since the demand is unbounded.

        Returns:
            True if the flow could be sent in this way.
        """
        loop = None
        try:
            loop = pushed(flow, emit, self.gate)
            if loop is not None and next(loop, None) is not None:
                loop.close()
        except BaseException as error:
            if loop is not None and flow._by_subscriber(error):
                self.raised(downstream, error)
            else:
                self._keep(error)
            return True
        return loop is not None

    def _push(self, downstream: CoreSubscriber[R], current: Pulled[R], left: int) -> int:
        """Send up to `left` items of `current`, which stays in `_current` while it may have more.

        Returns:
            The rest of `left`.
        """
        gate, conditional = self.gate, self._conditional
        emit = (
            downstream.try_on_next
            if isinstance(downstream, ConditionalSubscriber)
            else downstream.receiver()
        )
        try:
            for item in current.items:
                if item is None:
                    raise none_item(self._mapper.label)
                try:
                    used = emit(item)
                except BaseException as error:
                    self.raised(downstream, error)
                    return left
                if used or not conditional:
                    left -= 1
                    if not left:
                        return 0
                if gate.cancelled:
                    return left
        except BaseException as error:
            self._current = None
            current.close()
            self._keep(error)
            return left
        if not gate.cancelled:
            self._current = None
        return left

    def _subscribe(self, flow: Flow[R]) -> None:
        inner = InnerSubscriber(self, self._conditional)
        with self._lock:
            self._inner = inner
            downstream = self._downstream
            if downstream is not None and not self.gate.cancelled:
                inner.receive = (
                    downstream.try_on_next
                    if isinstance(downstream, ConditionalSubscriber)
                    else downstream.receiver()
                )
        try:
            flow.subscribe(inner)
        except BaseException as error:
            throw_if_fatal(error)
            inner.on_error(error)

    def _find_end(self, outer: Pulled[T] | Polled[T] | Queued[T]) -> bool:
        """End the flow if its end needs no demand; return whether it has ended."""
        current = self._current
        if current is not None:
            if not current.ended():
                return False
            self._current = None
        done = self._done  # read before looking, as in _run
        try:
            ended = done and outer.ended()
        except BaseException as error:
            self._fail(error)
            return True
        if ended:
            self._finish(self._error, ended=True)
        return ended

    def _start_next(self, outer: Pulled[T] | Polled[T] | Queued[T]) -> bool:
        """Start an inner flow without demand; return whether anything has changed."""
        if self._current is not None:
            return False
        mapper = self._mapper
        try:
            value = next(outer.items, EMPTY)
        except BaseException as error:
            self._fail(error)
            return True
        if value is EMPTY:
            return False
        try:
            flow = mapper.flow_of(mapper.function(value))
        except BaseException as error:
            self._fail(mapper.failed(error))
            return True
        inner = self._open(flow)
        if isinstance(inner, Flow):
            self._subscribe(inner)
        else:
            self._current = inner
        return True

    def _keep(self, error: BaseException) -> None:
        """Note an error of an inner flow: the flow fails now, or once the others have ended."""
        throw_if_fatal(error)
        self._errors.append(no_stop(error))
        if not self._delay_error:
            self._finish()

    def _fail(self, error: BaseException) -> None:
        """End the flow: the upstream or the mapper has failed."""
        throw_if_fatal(error)
        self._finish(error)

    def _finish(self, error: BaseException | None = None, *, ended: bool = False) -> None:
        """Send the terminal, unless the flow has ended.

        Args:
            error: the last error; it is reported after the delayed ones.
            ended: whether the upstream has ended, so that it need not be cancelled.
        """
        errors = self._errors
        if error is not None:
            errors.append(error)
            if error is self._error:
                self._error = None
        downstream = self._downstream
        if self.gate.cancelled or downstream is None:
            return  # `_stop` cleans up
        self._errors = []
        self._downstream = None
        if ended:
            self.gate.cancelled = True
        else:
            self._halt()
        self._discard()
        try:
            if errors:
                downstream.on_error(combined(self._mapper.label, errors))
            else:
                downstream.on_complete()
        except BaseException as raised:
            if is_fatal(raised):
                leave(raised, downstream, self)
            raise

    def _stop(self) -> None:
        """Clean up: the flow has ended, and only a bad request (§3.9) may have to be reported."""
        inner = self._inner
        if inner is not None:
            inner.signal()  # it leaves now, or when its on_next has returned, and then signals us
            if self._inner is not None:
                return
        downstream, self._downstream = self._downstream, None
        self._discard()
        if downstream is not None and self._bad is not None:
            downstream.on_error(self._bad)

    def _discard(self) -> None:
        """Close iterators, and pass items that wait to the dropped-items hook."""
        current, self._current = self._current, None
        if current is not None:
            current.close()
        outer = self._outer
        if outer is not None:
            outer.close()
            if not isinstance(outer, Queued):  # where an item may still arrive late
                self._outer = None
        errors, self._errors = self._errors, []
        if self._error is not None:
            errors.append(self._error)
            self._error = None
        for error in errors:
            hooks.drop_error(error)

    @override
    def statistics(self) -> Statistics:
        """Report the state. `requested` is updated after each run over items of an inner flow."""
        requested, inner, outer = self._requested, self._inner, self._outer
        if requested != UNBOUNDED:
            requested -= self._emitted
            if inner is not None:
                requested -= inner.produced
        waiting = outer.waiting if isinstance(outer, Queued) else None
        running = None if inner is None else inner.upstream
        return Statistics(
            operator=operator_of(self._mapper.label),
            requested=requested,
            buffered=waiting or 0,
            capacity=None if waiting is None else self._prefetch,
            cancelled=self.gate.cancelled and not self._done,
            terminated=self._downstream is None,
            error=self._error or self._bad,
            upstream=self._upstream,
            inners=() if running is None else (running,),
        )
