"""Stages after an asynchronous upstream: one subscriber for a whole run of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from threading import Lock
from types import GeneratorType, TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.demand import DEFAULT_PREFETCH, UNBOUNDED, add_demand, bad_request, replenish_limit
from flow_core.errors import (
    MissingBackpressureError,
    ProtocolViolationError,
    is_fatal,
    late_fusion,
    leave,
    none_given,
    throw_if_fatal,
)
from flow_core.homes import Home
from flow_core.introspection import Scannable, Statistics
from flow_core.protocols import (
    EMPTY,
    ConditionalSubscriber,
    CoreSubscriber,
    Empty,
    Fusion,
    QueueSubscription,
    Subscription,
)
from flow_core.serial import SerialDrain
from flow_core.stages._blame import Raised
from flow_core.stages._closing import FeedGate, close_loop, overlapped
from flow_core.stages._codegen import PAUSED
from flow_core.stages._effects import labels
from flow_core.stages._filtering import CHECK
from flow_core.stages._program import Program
from flow_core.stages._pulled import GRANT
from flow_core.stages._shape import END

if TYPE_CHECKING:
    from typing_extensions import TypeIs

__all__ = ["StageSubscriber", "subscribe_stages"]

T = TypeVar("T")
R = TypeVar("R")

_WAKE_UP: Final[Any] = EMPTY  # Any: on_next takes it in the place of an item of any type (F26)


def subscribe_stages(
    program: Program[Any, R], downstream: CoreSubscriber[R]
) -> CoreSubscriber[Any]:  # Any: the program knows the items of the upstream
    """Return the subscriber that does the work of all stages of `program` before `downstream`."""
    subscriber: CoreSubscriber[Any] = downstream
    templates = program.shape.templates
    # A subscriber that checks for None itself needs no stage that does only that.
    checked = len(templates) == 1 and templates[0] is CHECK
    if templates and not (checked and downstream.checks(str(program.args[0]))):
        for part in reversed(program.segments):
            subscriber = StageSubscriber(part, subscriber)
    return subscriber


@final
class StageSubscriber(
    SerialDrain, ConditionalSubscriber[Any], QueueSubscription[R], Scannable, Generic[R]
):  # Any: see subscribe_stages
    """Applies neighbouring stages to each item that an upstream pushes.

    Demand travels in one of three ways, depending on what the stages do:

    * each item becomes at most one: requests pass through (an item dropped by a filter is requested
      again, or answered by False to a conditional upstream);
    * nothing comes out before the end (reduce, count, to_list): everything is requested;
    * an item may become several, or some come at the end: a bounded inbox of `prefetch` items,
      refilled at 75 %, and a loop that pauses when the demand is used up.

    If no item has to wait for demand, as in the first two cases or when everything is requested at
    once, a function takes the items, and there is no loop.

    Thread: items come on the upstream's thread; items that waited for demand, on the requester's.
    Fusion: conditional; otherwise what the upstream grants, if no user code would move to another
    thread. With SYNC and ASYNC, `poll` applies the stages. ASYNC is granted only if each item
    becomes at most one, and the stages do nothing before the first item or at the end: the end may
    be signalled while items wait to be polled (F33), so no stage may have to come between them.
    """

    __slots__ = (
        "_again",
        "_asked",
        "_bad",
        "_bounded",
        "_consumed",
        "_done",
        "_downstream",
        "_end",
        "_error",
        "_flushed",
        "_fused",
        "_gate",
        "_granted",
        "_halt",
        "_inbox",
        "_left",
        "_lock",
        "_loop",
        "_open",
        "_out",
        "_over",
        "_paused",
        "_prefetch",
        "_program",
        "_queues",
        "_receive",
        "_requested",
        "_started",
        "_thrown",
        "_upstream",
        "_woken",
    )

    def __init__(
        self,
        program: Program[Any, R],  # Any: see subscribe_stages
        downstream: CoreSubscriber[R],
        prefetch: int = DEFAULT_PREFETCH,
    ) -> None:
        super().__init__()
        self._program = program
        self._downstream: CoreSubscriber[R] | None = downstream
        self._gate = FeedGate()
        self._lock = Lock()
        self._upstream: Subscription | None = None
        self._fused: GeneratorType[R, None, None] | None = None
        self._out: list[R] | None = None
        """With ASYNC fusion: where the loop puts the item that `poll` returns. None otherwise."""
        self._woken = False
        self._prefetch = min(prefetch, program.limit)
        self._inbox: deque[Any] = deque()  # Any: see subscribe_stages
        self._asked = 0
        self._requested = 0
        self._granted = 0
        self._consumed = 0
        self._done = self._flushed = self._paused = self._again = self._open = False
        self._started = self._over = False
        self._receive: Callable[[Any], int | None] | None = None  # Any: see subscribe_stages
        """The function that takes the items in place of a loop; see `Program.receive`."""
        self._halt: Callable[[bool], bool] | None = None
        self._end: Callable[[], object] | None = None
        self._bounded = self._queues = program.shape.accounts and not program.shape.absorbs
        self._bad: ValueError | None = None
        self._error: BaseException | None = None
        self._thrown: tuple[BaseException, TracebackType | None] | None = None
        self._left = 0 if program.shape.accounts else GRANT
        self._loop: GeneratorType[int, Any, None] | None = None  # Any: see Program.feed
        """The loop, if no function takes the items. It is made when it begins; but at once if a
        stage handles the end, which may come before the first item."""
        if program.shape.closes:
            self._loop = self._fed(downstream)

    def _fed(
        self, downstream: CoreSubscriber[R]
    ) -> GeneratorType[int, Any, None]:  # Any: see Program.feed
        """Return the loop, which has not started yet."""
        on_next: Callable[[R], object]
        if isinstance(downstream, ConditionalSubscriber):
            conditional, on_next = True, downstream.try_on_next
        else:
            conditional, on_next = False, downstream.receiver()
        return self._program.feed(on_next, self._gate, self._left, conditional=conditional)

    @override
    def home(self) -> Home | None:
        downstream = self._downstream
        return None if downstream is None else downstream.home()

    # -- signals from the upstream

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Keep the upstream's subscription: it is never forwarded (F35)."""
        if subscription is None:
            raise none_given("on_subscribe")
        downstream = self._downstream
        if self._upstream is not None or downstream is None:
            subscription.cancel()  # §2.5
            return
        self._upstream = subscription
        # We hold the permit, so that no signal comes before on_subscribe has returned (§1.9).
        if self.try_enter():
            try:
                downstream.on_subscribe(self)
            except BaseException as error:
                if is_fatal(error):
                    leave(error, downstream, self)
                self._release()
                self.leave()
                subscription.cancel()
                self._gate.close()
                raise
            try:
                self._start()
            except BaseException:
                self.leave()
                raise
            self.run_entered()
        if self._over or self._fused is not None:
            return
        if self._program.shape.absorbs and not self._done:
            self._ask(self._program.limit)
        # Pass demand up only now: an upstream may answer request() with on_next at once (§1.9).
        with self._lock:
            self._open = True
            requested = self._requested
        if requested:
            self._forward(0, requested)
        if self._out is not None:  # a poll before `_open` was set got nothing
            self._woken = True
            self.signal()

    def _start(self) -> None:
        """Run the loop up to where it waits; with the permit, as a cancel may have to start it."""
        downstream, program, loop = self._downstream, self._program, self._loop
        if downstream is None or self._fused is not None or self._gate.cancelled:
            return
        try:
            everything = self._requested == UNBOUNDED and program.receives(everything=True)
            if self._out is None and (everything or program.receives(everything=False)):
                self._receive, self._halt, self._end = program.receive(
                    downstream,
                    self._gate,
                    UNBOUNDED if everything else GRANT,
                    beside=self._beside,
                    raised=self._raised,
                    stopped=self._stopped,
                    attend=self.signal,
                )
                self._bounded = self._queues = False
                return
            if loop is None:
                self._loop = loop = self._fed(downstream)
            self._paused = next(loop) == PAUSED
            self._started = True
        except StopIteration:
            self._stopped()  # nothing to wait for
            return
        except BaseException as error:  # user code makes a stage's state
            self._raised(error)
            return
        if self._paused and (self._gate.ending or self._program.shape.absorbs):
            self._ended_early()

    @override
    def on_next(self, item: Any, /) -> None:
        receive = self._receive
        if receive is None or item is None:
            if not self.try_on_next(item):
                self._ask(1)
            return
        left = receive(item)
        if left == self._left:
            self._ask(1)
        elif left is not None and left != PAUSED:
            self._left = left

    @override
    def receiver(self) -> Callable[[Any], object]:
        """Return `on_next`: dropped items need not be requested again."""
        if self._asked != UNBOUNDED:
            return self.on_next
        return self._receive or self.try_on_next

    @override
    def try_on_next(self, item: Any, /) -> bool:
        receive, loop = self._receive, self._loop
        if item is None:
            raise none_given("on_next")
        if receive is not None:
            return self._used(receive(item))
        if self._over or self._done:
            if self._out is None:
                hooks.drop_item(item)
            return True
        if self._queues:
            if self._out is not None:
                self._woken = True  # it says only that, whatever it carries (F26)
            elif self._upstream is not None:
                self._inbox.append(item)
            else:
                hooks.drop_item(item)  # it came before on_subscribe (§1.9)
            self.signal()
            return True
        if loop is None:
            hooks.drop_item(item)  # it came before on_subscribe, or within it (§1.9)
            return True
        try:
            left = loop.send(item)
        except StopIteration:
            self._stopped()
            return True
        except BaseException as error:
            if overlapped(error):
                # An upstream that answers request() by calling on_next within on_next: from now on
                # its items wait in the inbox, which keeps their order and bounds the stack. Or,
                # without a GIL, another thread closes the loop, and drops the waiting items.
                self._inbox.append(item)
                self._queues = self._again = True
                self.signal()
            elif self._upstream is None:
                hooks.drop_item(item)  # it came before on_subscribe (§1.9)
            else:
                self._raised(error)
            return True
        if left == PAUSED:
            self._used_up(loop)
            used = True
        elif left == self._left:
            used = self._program.shape.absorbs
        else:
            self._left = left
            used = True
        if self._again:
            self._again = False
            self.signal()
        return used

    def _used(self, left: int | None) -> bool:
        """Return whether the item for which `_receive` has returned `left` passed the stages."""
        if left == self._left:
            return False
        if left is not None and left != PAUSED:
            self._left = left
        return True

    def _beside(self, item: Any) -> int:  # Any: see subscribe_stages
        """Take an item sent from within the downstream's on_next, while `_receive` runs."""
        if self._over or self._done:
            hooks.drop_item(item)
        else:
            self._inbox.append(item)
        self.signal()
        return PAUSED

    def _used_up(self, loop: GeneratorType[int, Any, None]) -> None:  # Any: see Program.feed
        """Handle a pause of a loop whose stages do not count demand."""
        if self._program.shape.accounts:
            # A stage has ended the flow, and a later one waits for demand to emit its result.
            self._paused = self._done = self._again = True
            if self._upstream is not None:
                hooks.cancel(self._upstream)
        elif not self._gate.cancelled:
            self._left = loop.send(GRANT)

    @override
    def on_error(self, error: BaseException, /) -> None:
        """Keep the error until the inbox is empty; the stages emit nothing that they still hold."""
        if error is None:
            raise none_given("on_error")
        if self._done or self._over or self._upstream is None:
            if self._done and is_fatal(error):
                self.signal()  # its permit may have kept the end from being drained
            hooks.drop_error(error)
            return
        self._error = error
        self._done = True
        self.signal()

    @override
    def on_complete(self) -> None:
        """Keep the end; before it, the stages may emit what they still hold, on demand."""
        if not (self._done or self._over or self._upstream is None):
            self._done = True
            self.signal()

    # -- signals from the downstream

    @override
    def request(self, n: int, /) -> None:
        bad = bad_request(n)
        if self._gate.cancelled or self._downstream is None:
            return
        if bad is not None:
            upstream = self._upstream
            self._bad = bad
            self._gate.cancelled = True
            if upstream is not None:
                hooks.cancel(upstream)
            self.signal()
            return
        with self._lock:
            before = self._requested
            self._requested = requested = add_demand(before, n)
            if not self._open:
                return
        self._forward(before, requested)

    def _forward(self, before: int, requested: int) -> None:
        """Request what the upstream has to send when demand rises from `before` to `requested`."""
        program = self._program
        if not program.shape.accounts:
            cap = program.demand_cap
            if requested == UNBOUNDED == cap:
                self._ask(UNBOUNDED)
            else:
                self._ask(min(requested, cap) - min(before, cap))
            return
        if before == 0 and not program.shape.absorbs and not self._done:
            self._ask(UNBOUNDED if requested == UNBOUNDED else self._prefetch)
        self.signal()

    def _ask(self, n: int) -> None:
        """Request `n` more items, but in all never more than a leading take lets through."""
        upstream = self._upstream
        if upstream is None or n <= 0 or self._gate.cancelled:
            return
        limit = self._program.limit
        if limit != UNBOUNDED:
            with self._lock:
                n = min(n, limit - self._asked)
                self._asked += n
            if n <= 0:
                return
        elif self._asked == UNBOUNDED:
            return
        elif n == UNBOUNDED:
            self._asked = UNBOUNDED
        upstream.request(n)

    @override
    def cancel(self) -> None:
        self._bad = None
        upstream = self._upstream
        if not self._gate.cancelled:
            self._gate.cancelled = True
            if upstream is not None:
                hooks.cancel(upstream)
        self._downstream = None
        self.signal()

    # -- the drain: terminals, and items of the stages that count demand

    @override
    def drain(self) -> None:
        loop, gate = self._loop, self._gate
        if self._over:
            hooks.drop_waiting(self._inbox)
            return
        if self._out is not None:
            self._wake()
            return
        receive, halt = self._receive, self._halt
        if receive is not None and halt is not None:
            self._attend(receive, halt)
            return
        downstream = self._downstream
        if gate.cancelled or downstream is None:
            if self._bad is not None and self._started and loop is not None:
                # on_error must not overlap a running on_next (§1.3): a closed loop sends nothing.
                self._again = True
                try:
                    loop.close()
                except ValueError:
                    return  # It runs; its caller reads _again after that, and signals.
            self._cancelled()
            return
        if loop is None:
            return  # it is polled
        if loop.gi_running:
            self._again = True  # signalled from within on_next: the loop's caller continues it
            return
        program, inbox = self._program, self._inbox
        if self._bounded and len(inbox) > self._prefetch and self._asked != UNBOUNDED:
            self._overflow()
            return
        try:
            while not gate.cancelled:
                done = self._done  # before the inbox: items from before the end are in it
                if self._paused and not done and gate.ending:
                    self._ended_early()
                    continue
                if self._paused:
                    grant = self._requested - self._granted
                    if grant <= 0 and (not done or inbox or self._flushed):
                        return
                    if self._requested == UNBOUNDED:
                        grant = GRANT
                    else:
                        grant = min(grant, GRANT)
                        self._granted += grant
                    if done and not inbox:
                        gate.done = self._flushed = True
                    self._paused = loop.send(grant) == PAUSED
                elif inbox and self._bounded:
                    self._paused = loop.send(inbox.popleft()) == PAUSED
                    self._replenish()
                elif inbox and not self._bounded:  # it may have got an item since the last look
                    left = loop.send(inbox.popleft())
                    if left == PAUSED:
                        self._used_up(loop)
                    elif left != self._left or program.shape.absorbs:
                        self._left = left
                    else:
                        self._ask(1)
                elif not done:
                    return  # a thread that has added an item since then signals, too
                elif self._error is not None and program.shape.handles:
                    # Pass it without a local name: the traceback keeps this frame alive.
                    self._thrown = (self._error, self._error.__traceback__)
                    self._paused = loop.throw(self._taken_error()) == PAUSED
                    self._as_it_came()
                elif self._error is not None:
                    self._failed(downstream)
                    return
                else:
                    gate.done = True
                    self._paused = loop.send(END) == PAUSED
        except StopIteration:
            self._stopped()
            return
        except BaseException as error:
            self._raised(error)
            return
        self._missed = True  # cancelled meanwhile: release in the next round

    def _attend(
        self, receive: Callable[[Any], int | None], halt: Callable[[bool], bool]
    ) -> None:  # Any: see subscribe_stages
        """Handle what came meanwhile, and the terminal. Used if a function takes the items."""
        gate, end = self._gate, self._end
        done = self._done  # before the inbox: items from before the end are in it
        downstream = self._downstream
        cancelled = gate.cancelled or downstream is None
        if not (cancelled or done or self._inbox):
            return
        if halt(True):
            return  # it runs, and signals after that
        if downstream is None or cancelled:
            self._cancelled()
            return
        while self._inbox and not gate.cancelled:
            halt(False)
            left = receive(self._inbox.popleft())
            halt(True)
            if not self._used(left):
                self._ask(1)
        if gate.cancelled:
            self._missed = True  # release in the next round
        elif done and self._error is not None:
            self._failed(downstream)
        elif done:
            try:
                if end is not None:
                    end()
            except BaseException as error:
                self._raised(error)
                return
            self._stopped()
        else:
            halt(False)

    def _failed(self, downstream: CoreSubscriber[R]) -> None:
        """Fail, because the upstream has failed and no stage handles the error."""
        error = self._taken_error()
        self._release()
        try:
            downstream.on_error(error)
        except BaseException as raised:
            if is_fatal(raised):
                leave(raised, downstream, self)
            raise
        finally:
            self._gate.close()

    def _ended_early(self) -> None:
        """Wait for demand: a stage has ended the flow, and a later one still holds items."""
        self._done = True
        if self._upstream is not None:
            hooks.cancel(self._upstream)
        hooks.drop_waiting(self._inbox)

    def _taken_error(self) -> BaseException:
        """Take the upstream's error, so that this refers to it no longer."""
        error, self._error = self._error, None
        return ProtocolViolationError("there is no error") if error is None else error

    def _wake(self) -> None:
        """Pass on wake-ups and the terminal, one at a time; items are polled. With ASYNC fusion.

        The loop is kept after the terminal, for items that the downstream still has to poll (F33).
        """
        downstream = self._downstream
        if self._gate.cancelled:
            self._cancelled()
            return
        if downstream is None:
            return
        done = self._done  # read before: items from before the end can be polled by then
        if self._woken:
            self._woken = False
            try:
                downstream.on_next(_WAKE_UP)
            except BaseException as error:
                self.cancel()
                self._release()
                throw_if_fatal(error)
                if not downstream.on_next_raised(error):
                    hooks.drop_error(error)
                return
        if not done or self._gate.cancelled:
            return
        with self._lock:
            ended, self._downstream = self._downstream, None
        failure, self._error = self._error, None
        if ended is None:
            return
        if failure is None:
            ended.on_complete()
        else:
            ended.on_error(failure)

    def _replenish(self) -> None:
        if self._asked == UNBOUNDED or self._done:
            return
        self._consumed += 1
        limit = replenish_limit(self._prefetch)
        if self._consumed >= limit:
            self._consumed = 0
            self._ask(limit)

    def _overflow(self) -> None:
        upstream = self._upstream
        downstream = self._release()
        if upstream is not None:
            hooks.cancel(upstream)
        if downstream is not None:
            downstream.on_error(
                MissingBackpressureError(
                    f"the upstream of {self._program!r} sent more than the {self._prefetch} items "
                    "it was asked for; put a back-pressure operator after a source that ignores "
                    "demand"
                )
            )
        self._gate.close()

    def _stopped(self) -> None:
        """End the flow, because the loop has returned: the upstream or a stage has ended it."""
        if self._gate.cancelled:
            self._cancelled()
            return
        if self._upstream is not None and not self._done:
            hooks.cancel(self._upstream)
        downstream = self._release()
        try:
            if downstream is not None:
                downstream.on_complete()
        except BaseException as error:
            if is_fatal(error):
                leave(error, downstream, self)
            raise
        finally:
            self._gate.close()

    def _raised(self, error: BaseException) -> None:
        if self._upstream is not None and not self._done:
            hooks.cancel(self._upstream)
        thrown, self._thrown = self._thrown, None
        downstream = self._release()
        try:
            if is_fatal(error):
                leave(error, downstream, self)
                raise error
            by_downstream = self._program.blame(error) is Raised.DOWNSTREAM
            if thrown is not None and thrown[0] is error:
                # With its first traceback: later frames refer to those that keep it.
                error.with_traceback(thrown[1])
            thrown = None
            if downstream is None or (by_downstream and not downstream.on_next_raised(error)):
                hooks.drop_error(error)
            elif not by_downstream:
                downstream.on_error(error)
        finally:
            self._gate.close()

    def _cancelled(self) -> None:
        """Clean up, because the subscriber has cancelled, or sent a bad request (§3.9)."""
        bad, downstream = self._bad, self._release()
        if bad is not None and downstream is not None:
            downstream.on_error(bad)
        self._gate.close()

    def _release(self) -> CoreSubscriber[R] | None:
        """Drop everything (§3.13).

        Returns:
            The subscriber, but only to the first caller, which may send it the terminal.
        """
        with self._lock:
            downstream, self._downstream = self._downstream, None
        self._gate.cancelled = self._over = True
        loop, self._loop = self._loop if self._fused is None else self._fused, None
        halt = self._halt
        if halt is not None:
            halt(True)
            # After `_over`: code that finds no function any more knows that the flow has ended.
            self._receive = self._halt = self._end = None
        waits = loop is not None and self._program.shape.closes and not loop.gi_running
        if loop is not None and waits and not loop.gi_suspended:
            try:
                close_loop(loop, self._gate)  # it never ran
            except BaseException as error:  # of a stage that begins only to get the end
                throw_if_fatal(error)
                if not overlapped(error):  # otherwise the thread that polls has begun it meanwhile
                    hooks.drop_error(error)
        self._error = None
        self._as_it_came()
        hooks.drop_waiting(self._inbox)
        return downstream

    def _as_it_came(self) -> None:
        """Remove frames from an error that a stage has handled, because they refer to this flow."""
        thrown, self._thrown = self._thrown, None
        if thrown is not None:
            thrown[0].with_traceback(thrown[1])

    # -- fusion

    @property
    def _queue(self) -> QueueSubscription[Any] | None:  # Any: see subscribe_stages
        upstream = self._upstream
        return upstream if _is_queue(upstream) else None

    @override
    def request_fusion(self, mode: Fusion, /) -> Fusion:
        """Grant the fusion that the upstream grants, with two exceptions.

        NONE is granted across threads if a stage calls a function of the user (F39). ASYNC is not
        granted if a stage does anything but turn each item into at most one item.
        """
        if self._fused is not None or self._out is not None or self._requested or self._open:
            raise late_fusion()
        upstream, program = self._queue, self._program
        if mode & Fusion.ASYNC and not _item_by_item(program):
            mode &= ~Fusion.ASYNC
        if upstream is None or not mode & Fusion.ANY:
            return Fusion.NONE
        if mode & Fusion.THREAD_BOUNDARY and program.calls_user_code:
            return Fusion.NONE
        granted = upstream.request_fusion(mode) & Fusion.ANY
        if granted & Fusion.SYNC:
            self._fused = program.poll(_polled(upstream), self._gate)
        elif granted:
            self._out = []
            self._queues = True
            self._loop = program.feed(self._out.append, self._gate, GRANT, conditional=False)
        return granted

    def poll(self) -> R | Empty:
        """Take the next item, see `QueueSubscription.poll`; with SYNC, EMPTY means completed."""
        fused = self._fused
        if fused is None:
            return EMPTY if self._out is None else self._poll_shared(self._out)
        try:
            item = next(fused, EMPTY)
        except BaseException as error:
            if self._gate.cancelled and overlapped(error):
                return EMPTY  # cancelled by another thread, which closes the loop right now
            self._polled_out()
            raise
        if item is EMPTY or self._gate.cancelled:  # a cancel could not close what ran
            self._polled_out()
        return item

    def _polled_out(self) -> None:
        """Drop everything, because the polled loop has ended."""
        self._downstream = self._loop = self._fused = None
        self._gate.cancelled = self._over = True
        if self._upstream is not None:
            hooks.cancel(self._upstream)  # a stage may have ended the flow before its upstream does
        self._gate.close()

    def _poll_shared(self, out: list[R]) -> R | Empty:
        """Return the result for the next item that the stages let through. With ASYNC fusion.

        Dropped items are requested again, several at once: when the upstream has nothing more, or
        when many were dropped (F40). An error of a stage cancels the upstream, and is raised.
        """
        loop, upstream, gate = self._loop, self._queue, self._gate
        if loop is None or upstream is None or not self._open:
            return EMPTY
        while not gate.cancelled:
            try:
                item = upstream.poll()
            except BaseException:
                self._give_up(upstream)
                raise
            if item is EMPTY:
                if self._consumed:
                    self._ask_again()
                return EMPTY
            try:
                if loop.send(item) == PAUSED and not gate.cancelled:
                    loop.send(GRANT)
            except BaseException as error:
                self._give_up(upstream)
                self._program.blame(error)
                raise
            if out:
                return out.pop()
            self._consumed += 1
            if self._consumed >= replenish_limit(self._prefetch):
                self._ask_again()
        return EMPTY

    def _ask_again(self) -> None:
        dropped, self._consumed = self._consumed, 0
        if not self._done:
            self._ask(dropped)

    def _give_up(self, upstream: QueueSubscription[Any]) -> None:  # Any: see subscribe_stages
        """Clean up: the poll fails, and the subscriber that polls signals it and cancels (F46)."""
        self._release()
        hooks.cancel(upstream)

    @override
    def is_empty(self) -> bool:
        if (self._fused if self._out is None else self._loop) is None:
            return True  # polled to its end, cancelled, or failed
        upstream, program = self._queue, self._program
        shape = program.shape
        # Do not ask the upstream beyond where a stage may have ended the flow, nor for an error or
        # an end that a stage must see first.
        if upstream is None or shape.accounts or shape.stops or shape.handles or shape.closes:
            return False
        try:
            return upstream.is_empty()
        except BaseException:
            self._polled_out()
            raise

    @override
    def clear(self) -> None:
        self._fused = None
        if self._queue is not None:
            self._queue.clear()

    @override
    def statistics(self) -> Statistics:
        known = self._requested
        requested: int | None = None  # polled; or a loop has a part of it
        fusion = Fusion.NONE
        if self._fused is not None:
            fusion = Fusion.SYNC
        elif self._out is not None:
            fusion = Fusion.ASYNC
        elif known == UNBOUNDED:
            requested = known
        elif not self._program.shape.accounts:
            # The loop counts the items down, and begins again after that many.
            requested = known - (GRANT - self._left) if known < GRANT else None
        elif self._paused or not self._granted:
            requested = known - self._granted
        name, tags = labels(self._program.stages)
        return Statistics(
            operator=repr(self._program),
            requested=requested,
            buffered=len(self._inbox),
            capacity=self._prefetch if self._bounded else None,
            cancelled=self._gate.cancelled and not self._done,
            terminated=self._downstream is None,
            error=self._bad if self._error is None else self._error,
            fusion=fusion,
            name=name,
            tags=tags,
            upstream=self._upstream,
        )


def _item_by_item(program: Program[Any, Any]) -> bool:  # Any: any program
    """Return whether each stage does nothing but turn each item into at most one item."""
    shape = program.shape
    if shape.accounts or shape.absorbs or shape.stops or shape.hears:
        return False
    return not any(stage.template.lines.on_end for stage in program.stages)


def _polled(queue: QueueSubscription[T]) -> Iterator[T]:
    # Not iter(poll, EMPTY): that compares by ==, which calls code of the items (X13).
    poll = queue.poll
    while (item := poll()) is not EMPTY:
        yield item


def _is_queue(subscription: object) -> TypeIs[QueueSubscription[Any]]:  # Any: see subscribe_stages
    return isinstance(subscription, QueueSubscription)
