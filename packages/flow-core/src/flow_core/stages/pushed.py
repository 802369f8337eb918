"""Stages after an asynchronous upstream: one subscriber for a whole run of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from threading import Lock
from types import GeneratorType
from typing import Any, Generic, TypeVar, final

from typing_extensions import TypeIs

from flow_core import hooks
from flow_core.demand import DEFAULT_PREFETCH, UNBOUNDED, add_demand, bad_request, replenish_limit
from flow_core.errors import MissingBackpressureError, is_fatal, none_given
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
from flow_core.stages.compiler import END, PAUSED, Gate, Program, Raised
from flow_core.stages.pulled import GRANT

__all__ = ["StageSubscriber", "subscribe_stages"]

T = TypeVar("T")
R = TypeVar("R")


def subscribe_stages(
    program: Program[Any, R], downstream: CoreSubscriber[R]
) -> CoreSubscriber[Any]:  # Any: what the upstream gives is the program's own affair
    """The subscriber that stands for all stages of `program` before `downstream`."""
    subscriber: CoreSubscriber[Any] = downstream
    if program.stages:
        for part in reversed(program.segments):
            subscriber = StageSubscriber(part, subscriber)
    return subscriber


@final
class StageSubscriber(
    SerialDrain, ConditionalSubscriber[Any], QueueSubscription[R], Generic[R]
):  # Any: see subscribe_stages
    """Applies a run of stages to each item that an upstream pushes.

    How demand travels depends on what the stages do:

    * each item becomes at most one: requests pass through (an item dropped by a filter is asked for
      again, or answered by False to a conditional upstream);
    * nothing comes out before the end (reduce, count, to_list): everything is requested;
    * an item may become several, or some come at the end: a bounded inbox of `prefetch` items,
      refilled at 75 %, and a loop that pauses when the demand is used up.

    Thread: items on the upstream's thread; what waited for demand, on the requester's.
    Fusion: conditional; SYNC if the upstream answers SYNC and no user code would change thread.
    """

    __slots__ = (
        "_again",
        "_asked",
        "_bad",
        "_bounded",
        "_consumed",
        "_done",
        "_downstream",
        "_error",
        "_flushed",
        "_fused",
        "_gate",
        "_granted",
        "_inbox",
        "_left",
        "_lock",
        "_loop",
        "_open",
        "_paused",
        "_prefetch",
        "_program",
        "_queues",
        "_requested",
        "_upstream",
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
        self._gate = Gate()
        self._lock = Lock()
        self._upstream: Subscription | None = None
        self._fused: Iterator[R] | None = None
        self._prefetch = min(prefetch, program.limit)
        self._inbox: deque[Any] = deque()  # Any: see subscribe_stages
        self._asked = 0
        self._requested = 0
        self._granted = 0
        self._consumed = 0
        self._done = self._flushed = self._paused = self._again = self._open = False
        self._bounded = self._queues = program.accounts and not program.absorbs
        self._bad: ValueError | None = None
        self._error: BaseException | None = None
        on_next: Callable[[R], object]
        if isinstance(downstream, ConditionalSubscriber):
            conditional, on_next = True, downstream.try_on_next
        else:
            conditional, on_next = False, downstream.on_next
        self._left = 0 if program.accounts else GRANT
        self._loop: GeneratorType[int, Any, None] | None = program.feed(  # Any: see Program.feed
            on_next,
            self._gate,
            self._left,
            conditional=conditional,
        )

    # -- signals from the upstream

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """See `Subscriber.on_subscribe`. The upstream's subscription is never forwarded (F35)."""
        if subscription is None:
            raise none_given("on_subscribe")
        downstream = self._downstream
        if self._upstream is not None or downstream is None:
            subscription.cancel()  # §2.5
            return
        self._upstream = subscription
        # The permit is held, so that nothing is signalled before on_subscribe has returned (§1.9).
        if self.try_enter():
            try:
                downstream.on_subscribe(self)
            except BaseException:
                self._release()
                self.leave()
                subscription.cancel()
                raise
            self.run_entered()
        loop = self._loop
        if loop is None or self._fused is not None:
            return
        try:
            self._paused = next(loop) == PAUSED
        except StopIteration:
            return  # closed, for a bad request
        except BaseException as error:  # a stage's state is made by user code
            self._raised(error)
            return
        if self._program.absorbs:
            self._ask(self._program.limit)
        # Demand goes up only now: an upstream may answer request() with on_next at once (§1.9).
        with self._lock:
            self._open = True
            requested = self._requested
        if requested:
            self._forward(0, requested)

    def on_next(self, item: Any, /) -> None:
        """See `Subscriber.on_next`."""
        if not self.try_on_next(item):
            self._ask(1)

    def try_on_next(self, item: Any, /) -> bool:
        """See `ConditionalSubscriber.try_on_next`."""
        loop = self._loop
        if item is None:
            raise none_given("on_next")
        if loop is None or self._done:
            hooks.drop_item(item)
            return True
        if self._queues:
            self._inbox.append(item)
            self.signal()
            return True
        try:
            left = loop.send(item)
        except StopIteration:
            self._stopped()
            return True
        except BaseException as error:
            if isinstance(error, ValueError) and loop.gi_running:
                # An upstream that answers request() by calling on_next within on_next: from now on
                # its items wait in the inbox, which keeps their order and bounds the stack.
                self._inbox.append(item)
                self._queues = self._again = True
            else:
                self._raised(error)
            return True
        used = True
        if left != PAUSED:
            used = left != self._left
            self._left = left
        else:
            self._used_up(loop)
        if self._again:
            self._again = False
            self.signal()
        return used or self._program.absorbs

    def _used_up(self, loop: GeneratorType[int, Any, None]) -> None:  # Any: see Program.feed
        """The loop of stages that do not count demand has paused all the same."""
        if self._program.accounts:
            # A stage has ended the flow, and a later one waits for demand to emit its result.
            self._paused = self._done = self._again = True
            if self._upstream is not None:
                self._upstream.cancel()
        elif not self._gate.cancelled:
            self._left = loop.send(GRANT)

    def on_error(self, error: BaseException, /) -> None:
        """See `Subscriber.on_error`. Items in the inbox come first; stages emit no rest."""
        if error is None:
            raise none_given("on_error")
        if self._done or self._loop is None:
            hooks.drop_error(error)
            return
        self._error = error
        self._done = True
        self.signal()

    def on_complete(self) -> None:
        """See `Subscriber.on_complete`. The stages may emit a rest first, as demand allows."""
        if not self._done and self._loop is not None:
            self._done = True
            self.signal()

    # -- signals from the downstream

    def request(self, n: int, /) -> None:
        """See `Subscription.request`."""
        bad = bad_request(n)
        if self._gate.cancelled or self._downstream is None:
            return
        if bad is not None:
            upstream = self._upstream
            self._bad = bad
            self._gate.cancelled = True
            if upstream is not None:
                upstream.cancel()
            self.signal()
            return
        with self._lock:
            before = self._requested
            self._requested = requested = add_demand(before, n)
            if not self._open:
                return
        self._forward(before, requested)

    def _forward(self, before: int, requested: int) -> None:
        """Ask the upstream for what demand raised from `before` to `requested` makes needed."""
        program = self._program
        if not program.accounts:
            cap = program.demand_cap
            if requested == UNBOUNDED == cap:
                self._ask(UNBOUNDED)
            else:
                self._ask(min(requested, cap) - min(before, cap))
            return
        if before == 0 and not program.absorbs:
            self._ask(UNBOUNDED if requested == UNBOUNDED else self._prefetch)
        self.signal()

    def _ask(self, n: int) -> None:
        """Request `n` more of the upstream, never more in all than a leading take lets through."""
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

    def cancel(self) -> None:
        """See `Subscription.cancel`."""
        self._bad = None
        upstream = self._upstream
        if not self._gate.cancelled:
            self._gate.cancelled = True
            if upstream is not None:
                upstream.cancel()
        self._downstream = None
        self.signal()

    # -- the drain: terminals, and items of the stages that keep account of demand

    def drain(self) -> None:
        """See `SerialDrain.drain`."""
        loop, gate = self._loop, self._gate
        if loop is None:
            self._discard()
            return
        downstream = self._downstream
        if gate.cancelled or downstream is None:
            if self._bad is not None:
                # on_error must not overlap a running on_next (§1.3): a closed loop sends no more.
                self._again = True
                try:
                    loop.close()
                except ValueError:
                    return  # It runs; its caller looks at _again after that, and signals.
            self._cancelled()
            return
        if loop.gi_running:
            self._again = True  # signalled from within on_next: the loop's caller goes on with it
            return
        program, inbox = self._program, self._inbox
        if self._bounded and len(inbox) > self._prefetch and self._asked != UNBOUNDED:
            self._overflow()
            return
        try:
            while not gate.cancelled:
                if self._paused:
                    grant = self._requested - self._granted
                    if grant <= 0 and (not self._done or inbox or self._flushed):
                        return
                    if self._requested == UNBOUNDED:
                        grant = GRANT
                    else:
                        grant = min(grant, GRANT)
                        self._granted += grant
                    if self._done and not inbox:
                        gate.done = self._flushed = True
                    self._paused = loop.send(grant) == PAUSED
                elif inbox and self._bounded:
                    self._paused = loop.send(inbox.popleft()) == PAUSED
                    self._replenish()
                elif inbox:
                    left = loop.send(inbox.popleft())
                    if left == PAUSED:
                        self._used_up(loop)
                    elif left != self._left or program.absorbs:
                        self._left = left
                    else:
                        self._ask(1)
                elif not self._done:
                    return
                elif self._error is not None:
                    error = self._error
                    self._release()
                    downstream.on_error(error)
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
            upstream.cancel()
        if downstream is not None:
            downstream.on_error(
                MissingBackpressureError(
                    f"the upstream of {self._program!r} sent more than the {self._prefetch} items "
                    "it was asked for; put a back-pressure operator after a source that ignores "
                    "demand"
                )
            )

    def _stopped(self) -> None:
        """The loop has returned: the upstream had completed, or a stage ended the flow."""
        if self._gate.cancelled:
            self._cancelled()
            return
        if self._upstream is not None and not self._done:
            self._upstream.cancel()
        downstream = self._release()
        if downstream is not None:
            downstream.on_complete()

    def _raised(self, error: BaseException) -> None:
        if self._upstream is not None and not self._done:
            self._upstream.cancel()
        downstream = self._release()
        if is_fatal(error):
            raise error
        by_downstream = self._program.blame(error) is Raised.DOWNSTREAM
        if downstream is None or (by_downstream and not downstream.on_next_raised(error)):
            hooks.drop_error(error)
        elif not by_downstream:
            downstream.on_error(error)

    def _cancelled(self) -> None:
        """The flow was cancelled: by its subscriber, or for a bad request (§3.9)."""
        bad, downstream = self._bad, self._release()
        if bad is not None and downstream is not None:
            downstream.on_error(bad)

    def _release(self) -> CoreSubscriber[R] | None:
        """Let go of everything (§3.13).

        Returns:
            The subscriber, to the first caller only, which may send it the terminal.
        """
        with self._lock:
            downstream, self._downstream = self._downstream, None
        self._gate.cancelled = True
        self._loop = None
        self._error = None
        self._discard()
        return downstream

    def _discard(self) -> None:
        inbox = self._inbox
        while inbox:
            try:
                item = inbox.popleft()
            except IndexError:  # another thread releases, too
                return
            hooks.drop_item(item)

    # -- fusion

    @property
    def _queue(self) -> QueueSubscription[Any] | None:  # Any: see subscribe_stages
        upstream = self._upstream
        return upstream if _is_queue(upstream) else None

    def request_fusion(self, mode: Fusion, /) -> Fusion:
        """See `QueueSubscription.request_fusion`: SYNC, if the upstream grants it."""
        upstream = self._queue
        if upstream is None or not mode & Fusion.SYNC:
            return Fusion.NONE
        if mode & Fusion.THREAD_BOUNDARY and self._program.calls_user_code:
            return Fusion.NONE
        granted = upstream.request_fusion(mode & ~Fusion.ASYNC)
        if granted:
            self._fused = self._program.poll(_polled(upstream), self._gate)
        return granted

    def poll(self) -> R | Empty:
        """See `QueueSubscription.poll`; EMPTY means completed."""
        fused = self._fused
        return EMPTY if fused is None else next(fused, EMPTY)

    def is_empty(self) -> bool:
        """See `QueueSubscription.is_empty`."""
        upstream, program = self._queue, self._program
        # The upstream is not asked beyond where a stage may have ended the flow.
        if upstream is None or program.accounts or program.stops:
            return False
        return upstream.is_empty()

    def clear(self) -> None:
        """See `QueueSubscription.clear`."""
        self._fused = None
        if self._queue is not None:
            self._queue.clear()


def _polled(queue: QueueSubscription[T]) -> Iterator[T]:
    # Not iter(poll, EMPTY), which compares by ==, and calls what the items say to that (X13).
    poll = queue.poll
    while (item := poll()) is not EMPTY:
        yield item


def _is_queue(subscription: object) -> TypeIs[QueueSubscription[Any]]:  # Any: see subscribe_stages
    return isinstance(subscription, QueueSubscription)
