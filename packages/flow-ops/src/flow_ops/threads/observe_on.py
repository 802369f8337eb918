"""`observe_on`: everything downstream runs on an executor."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from math import inf
from threading import Lock, get_ident
from typing import Any, Final, Generic, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.assembly import labelled, operator_of
from flow_core.demand import (
    DEFAULT_PREFETCH,
    UNBOUNDED,
    add_demand,
    bad_request,
    check_prefetch,
    replenish_limit,
)
from flow_core.errors import RejectedExecutionError, is_fatal, late_fusion, leave, none_given
from flow_core.executors import Executor, Runner, ScheduledTask, as_runner
from flow_core.flow import Flow
from flow_core.homes import Home, task_context
from flow_core.introspection import Scannable, Statistics
from flow_core.operator import Operator
from flow_core.protocols import (
    EMPTY,
    ConditionalSubscriber,
    CoreSubscriber,
    Empty,
    Fusion,
    Publisher,
    QueueSubscription,
    Subscriber,
    Subscription,
)
from flow_core.serial import SerialDrain
from flow_core.subscribers import core_subscriber
from flow_ops.coordination import overflow

__all__ = ["observe_on"]

T = TypeVar("T")

_BATCH: Final = 1 << 29
"""The number of items to poll at a time when no more of them need to be requested."""

_FEW: Final = 16
_MANY: Final = 1 << 10
"""Each time a task has handled this many items, it checks how long it has run."""

_TURN_S: Final = 0.1
"""After this time, in seconds, a task gives its thread back, and another task continues."""

_WAKE_UP: Final[Any] = EMPTY  # Any: on_next takes it in the place of an item of any type (F26)

_NO_QUEUE: Final[deque[Any]] = deque(maxlen=0)  # Any: it never holds an item
"""Stands for a queue until one is needed; with a fused upstream, no queue is ever needed."""


def observe_on(
    executor: Executor, *, prefetch: int = DEFAULT_PREFETCH, delay_error: bool = True
) -> Operator[T, Flow[T]]:
    """Run everything downstream on `executor`: items, the end, and errors.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from threading import current_thread
    >>> import flow_core as flow
    >>> pool = ThreadPoolExecutor(1, thread_name_prefix="worker")
    >>> list(flow.range(2).observe_on(pool).map(lambda n: (n, current_thread().name)))
    [(0, 'worker_0'), (1, 'worker_0')]
    >>> pool.shutdown()

    The order of items is kept, and they come one at a time, however many threads the executor has.
    A task is submitted when there is work and no task is pending. It continues while there are
    items and demand for them, for a tenth of a second, after which it submits the next task: so
    other tasks of the executor get their turn, and a pool can be shut down.

    Demand: `prefetch` items are requested of the upstream, and 75 % of that again whenever as many
    were delivered; the downstream's demand only decides when they are delivered.
    Thread: the upstream keeps its thread, but requests to it are made on the executor's, so a
    source that works when it is requested continues there. A cancel does not interrupt a downstream
    that blocks, but no further item follows. If the executor is an event loop, it does nothing else
    for the tenth of a second that a task may take: there, subscribe with a prefetch, or use ``async
    for``. If the executor refuses a task, the RejectedExecutionError comes on the thread that
    submitted it, the upstream's or the requester's; if the executor drops the task later, the error
    comes on a separate thread.
    Fusion: polls an upstream that grants SYNC or ASYNC across threads, and needs no queue then. It
    is conditional if the downstream is. It grants ASYNC itself, also with a fused upstream: then
    the downstream polls the one queue there is, on its own thread, and the executor only brings
    wake-ups and the end. No function of the user runs on another thread because of that.

    Args:
        executor: an object with ``submit``, like a `concurrent.futures.ThreadPoolExecutor`, or a
            callable that gets a task to run: ``loop.call_soon_threadsafe``, ``lambda task:
            task()``. Keep it open as long as the flow runs.
        prefetch: items to request ahead, and the most that wait for the executor.
        delay_error: whether an error of the upstream comes after the items that came before it;
            otherwise it overtakes the items that wait, which go to the dropped-items hook.

    Returns:
        An operator for `Flow.pipe`. Its flow fails with MissingBackpressureError if the upstream
        sends more than was requested and there is no room.

    Raises:
        TypeError: if `executor` is not an executor, or `prefetch` is not an int.
        ValueError: if `prefetch` is less than 1.
    """
    runner = as_runner(executor)
    check_prefetch(prefetch)
    detail = repr(runner)
    if prefetch != DEFAULT_PREFETCH:
        detail += f", prefetch={prefetch}"
    if not delay_error:
        detail += ", delay_error=False"
    label = labelled("observe_on", detail)

    def apply(flow: Flow[T]) -> Flow[T]:
        return Flow(ObserveOnSource(flow, runner, prefetch, delay_error, label))

    return Operator("observe_on", apply, detail, moves=True)


@final
class ObserveOnSource(Publisher[T]):
    """The items of `upstream`, received on a runner's threads.

    Args:
        upstream: the flow that the items come from.
        runner: runs the downstream.
        prefetch: items to request ahead.
        delay_error: whether an error is sent only after the items that came before it.
        label: the operator and where it was assembled, for messages.
    """

    __slots__ = ("_delay_error", "_label", "_prefetch", "_runner", "_upstream")

    def __init__(
        self, upstream: Publisher[T], runner: Runner, prefetch: int, delay_error: bool, label: str
    ) -> None:
        self._upstream = upstream
        self._runner = runner
        self._prefetch = prefetch
        self._delay_error = delay_error
        self._label = label

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        downstream = core_subscriber(subscriber)
        self._upstream.subscribe(
            ObserveOnSubscriber(
                downstream, self._runner, self._prefetch, self._delay_error, self._label
            )
        )

    @property
    def prefetch(self) -> int:
        """The number of items that are requested ahead, for `flow explain`."""
        return self._prefetch

    def __repr__(self) -> str:
        return self._label


@final
class ObserveOnSubscriber(
    SerialDrain, CoreSubscriber[T], QueueSubscription[T], Scannable, Generic[T]
):
    """The queue between the upstream's thread and the executor's; it is itself the executor's task.

    Work is published first and then scheduled (`SerialDrain`): the thread that takes the permit
    submits this object, and the task gives the permit back when there is nothing left to do. So at
    most one task exists at a time, whether it has started or not.

    Items come from one place: our own queue, or that of a fused upstream. They leave in one way:
    the drain delivers them, or, if ASYNC was granted, the downstream polls them and the drain only
    signals. The thread that takes items also counts them, to request as many again.

    Once the flow has ended (by a cancel, by a terminal, or because a call of ours raised),
    `_downstream` is None for good. Later drains only empty the queue; they call no user code and
    run on any thread. A downstream that polls still gets the items that waited when the terminal
    came (F33).

    Args:
        downstream: gets the signals.
        runner: runs the tasks that drain.
        prefetch: items to request ahead, and the capacity of the queue.
        delay_error: whether an error is sent only after the items that came before it.
        label: the operator and where it was assembled, for messages.
    """

    __slots__ = (
        "_bad",
        "_cancelled",
        "_consumed",
        "_context",
        "_delay_error",
        "_done",
        "_downstream",
        "_emitted",
        "_error",
        "_fused",
        "_giver",
        "_halt",
        "_handle",
        "_label",
        "_left",
        "_limit",
        "_lock",
        "_mode",
        "_negotiable",
        "_prefetch",
        "_queue",
        "_requested",
        "_room",
        "_run",
        "_runner",
        "_shared",
        "_started",
        "_turn_ends",
        "_upstream",
        "_yields",
    )

    def __init__(
        self,
        downstream: CoreSubscriber[T],
        runner: Runner,
        prefetch: int,
        delay_error: bool,
        label: str,
    ) -> None:
        super().__init__()
        self._downstream: CoreSubscriber[T] | None = downstream
        self._runner = runner
        self._context: Final = task_context(downstream.home())
        self._prefetch = prefetch
        self._delay_error = delay_error
        self._label = label
        self._limit = replenish_limit(prefetch)
        self._upstream: Subscription | None = None
        self._fused: QueueSubscription[T] | None = None
        self._mode = Fusion.NONE
        """The mode that the upstream granted."""
        self._negotiable = False
        """True while the downstream may ask for fusion: in its on_subscribe, once (F24)."""
        self._shared = False
        """True if the downstream polls."""
        self._left = False
        """True when the terminal was signalled, and the downstream polls the rest (F33)."""
        self._cancelled = False
        """True when this was cancelled. It is a separate flag, since a cancel may race with the
        end."""
        self._queue: deque[T] = _NO_QUEUE
        self._room = 0
        """The number of items that may wait: `prefetch`, or 0 when no item is accepted."""
        self._done = False
        """True when the upstream has ended; `_error` is set first, and no item is queued
        afterwards."""
        self._error: BaseException | None = None
        self._bad: ValueError | None = None
        self._halt = False
        """True if the next item must not be delivered: the drain has to find out why."""
        self._lock = Lock()
        """Guards `_requested`, and `_handle` with `_started`. Never held while calling out."""
        self._requested = 0
        self._emitted = 0
        self._consumed = 0
        self._run = 0
        """The number of the run that holds the permit or held it last."""
        self._started = 0
        """The number of the last run that has begun on the executor."""
        self._handle: ScheduledTask | None = None
        """The task of run `_run`, until it begins."""
        self._giver = 0
        """The thread that is just submitting this object to the executor, which may run it right in
        that call."""
        self._turn_ends = inf
        """The time at which the running task gives its thread back, even if items wait."""
        self._yields = False
        """True when the running task has given its thread back early; another task continues."""

    # -- signals from the upstream

    @override
    def home(self) -> Home | None:
        downstream = self._downstream
        return None if downstream is None else downstream.home()

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
        mode = Fusion.NONE
        if isinstance(subscription, QueueSubscription):
            granted = subscription.request_fusion(Fusion.ANY | Fusion.THREAD_BOUNDARY)
            mode = Fusion.SYNC if granted & Fusion.SYNC else granted & Fusion.ASYNC
            if mode:
                self._mode = mode
                self._fused = subscription
        if not mode:
            self._queue = deque()
            self._room = self._prefetch
        elif mode is Fusion.SYNC:
            self._done = True  # EMPTY is the end, and no item is requested (F25)
            self._limit = _BATCH
        # We hold the permit, so that no signal comes before on_subscribe has returned (§1.9).
        self.try_enter()
        self._negotiable = True
        try:
            downstream.on_subscribe(self)
        except BaseException as error:
            self._abandon(error)
            raise
        finally:
            self._negotiable = False
        if mode is Fusion.SYNC:
            self._submit()  # an empty source completes without demand (O17)
            return
        self._missed = False
        self.leave()
        # Another thread may have signalled before `leave` published its work, which is looked for
        # here; a thread that signals after it gets the permit. A request that came meanwhile has
        # set `_missed`, so `on_next` knows that a drain comes.
        if (
            self._missed
            or self._halt
            or self._done
            or (self._queue and (self._requested or self._shared))
        ):
            self._schedule()
        if not self._halt:
            subscription.request(self._prefetch)

    @override
    def on_next(self, item: T, /) -> None:
        """Queue the item; the executor delivers it. With ASYNC, the call is only a wake-up."""
        if item is None:
            raise none_given("on_next")
        queue = self._queue
        if len(queue) >= self._room:
            self._refuse(item)
            return
        queue.append(item)
        # No wake-up is lost (O15). `_missed` is set before every attempt to take the permit, and
        # cleared only when a drain starts (and in on_subscribe, which then looks at the queue). If
        # it is set here, after the append, a drain has yet to start, and will find the item: that
        # of the thread which set it, or that of the holder of the permit, which looks at `_missed`
        # after giving the permit back. If it is not set, the last drain may have popped for the
        # last time already, so we signal. (Without a GIL, the deque's own lock orders the append
        # and the pops, and with them the reads and writes of `_missed`.)
        if not self._missed:
            self._schedule()

    def _refuse(self, item: T) -> None:
        """Handle `item`, for which there is no room.

        There are three possible reasons: the call is only a wake-up, whose argument does not matter
        (F26); the flow has ended; or the upstream ignores demand (O09).
        """
        if self._mode is Fusion.ASYNC:
            if not self._missed:
                self._schedule()
            return
        hooks.drop_item(item)
        if self._done or self._halt:
            return
        upstream = self._upstream
        if upstream is not None:
            hooks.cancel(upstream)
        self.on_error(overflow(self._label, self._prefetch, who="the upstream"))

    @override
    def on_error(self, error: BaseException, /) -> None:
        """Keep the error; the executor delivers it (O10)."""
        if error is None:
            raise none_given("on_error")
        if self._done or self._halt:
            if self._done and is_fatal(error):
                self._schedule()  # its permit may have kept the end from being scheduled
            hooks.drop_error(error)
            return
        self._error = error
        self._done = True
        if not self._delay_error:
            self._halt = True
        self._room = 0
        self._schedule()

    @override
    def on_complete(self) -> None:
        """Keep the end; the executor delivers it (O10)."""
        if not (self._done or self._halt):
            self._done = True
            self._room = 0
            self._schedule()

    @override
    def on_next_raised(self, error: BaseException, /) -> bool:
        if self._done or self._halt:
            return False
        self.on_error(error)
        return True

    # -- signals from the downstream

    @override
    def request(self, n: int, /) -> None:
        """Add up the demand; the executor reports a wrong amount (§3.9, O12)."""
        bad = None if n.__class__ is int and n > 0 else bad_request(n)
        upstream = self._upstream
        if self._downstream is None or upstream is None:
            return
        if bad is not None:
            self._bad = bad
            self._halt = True
            self._room = 0
            hooks.cancel(upstream)
        elif self._shared or self._requested == UNBOUNDED:
            return  # a subscriber that polls counts its demand itself
        else:
            with self._lock:
                self._requested = add_demand(self._requested, n)
        self._schedule()

    @override
    def cancel(self) -> None:
        """Cancel; a running drain stops before its next item (O22)."""
        upstream = self._upstream
        self._cancelled = True
        if self._downstream is None:
            if self._left:
                self._discard()
            return
        self._over()
        if upstream is not None:
            hooks.cancel(upstream)
        with self._lock:
            handle, self._handle = self._handle, None
        if handle is not None and handle.cancel():
            self.run_entered()  # the task will never run, so its permit is ours now (O27)
        else:
            self.signal()

    # -- scheduling

    def _schedule(self) -> None:
        """Have the published work drained: by a new task, unless one is pending or running."""
        if self.try_enter():
            self._submit()

    def _submit(self) -> None:
        """Give this object to the executor, together with the permit that was taken."""
        if self._downstream is None:
            self.run_entered()  # there is nothing left to deliver: only empty the queue (O28)
            return
        self._run = run = self._run + 1  # no other thread writes it: the permit is held
        self._giver = get_ident()
        try:
            handle = self._runner.execute(self, self._reject, self._context.copy())
        except RejectedExecutionError as error:
            self._reject(error)
            return
        except BaseException as error:
            # Fatal, or from a drain that has run inline.
            self._abandon(error)
            raise
        finally:
            self._giver = 0
        if self._started >= run:
            return  # it has begun, so there is nothing to cancel
        # The task may begin right now, end, and give the permit back, and a later run may be
        # pending. So keep the handle only if its own run has not begun: it never replaces the
        # handle of a later run (O25), and it is never kept after its task has begun (O29).
        with self._lock:
            cancelled = self._downstream is None
            if not cancelled and self._started < run:
                self._handle = handle
        if cancelled and handle.cancel():
            self.run_entered()

    def __call__(self) -> None:
        """Run the task, on the executor."""
        with self._lock:
            self._started = self._run
            self._handle = None
        self._turn_ends = time.monotonic() + _TURN_S
        self.run_entered()
        if self._yields:
            self._yields = False
            self._schedule()

    def _reject(self, error: RejectedExecutionError) -> None:
        """End the flow: the executor refuses or drops the task, which holds the permit (O30)."""
        downstream, upstream = self._downstream, self._upstream
        lost = self._error
        self._over()
        if upstream is not None:
            hooks.cancel(upstream)
        self.run_entered()
        if lost is not None:
            hooks.drop_error(lost)
        if downstream is not None:
            downstream.on_error(error)
        else:
            hooks.drop_error(error)

    def _abandon(self, error: BaseException) -> None:
        """End the flow: a call made with the permit has raised `error`, mostly a fatal one."""
        upstream = self._upstream
        if is_fatal(error):
            leave(error, self._downstream, self)
        self._over()
        if upstream is not None:
            hooks.cancel(upstream)
        self.run_entered()

    def _over(self) -> None:
        """Stop sending, accepting and submitting (O19), and drop the subscriber (§3.13)."""
        self._downstream = None
        self._halt = True
        self._room = 0  # after `_halt`: a producer that finds no room looks for the reason

    # -- draining, with the permit

    @override
    def drain(self) -> None:
        downstream, upstream = self._downstream, self._upstream
        if downstream is None or upstream is None:
            if self._cancelled or not self._left:
                self._discard()
        elif self._yields:
            return  # the task that follows continues
        elif self._shared:
            self._wake(downstream, upstream)
        else:
            self._deliver(downstream, upstream)

    def _wake(self, downstream: CoreSubscriber[T], upstream: Subscription) -> None:
        """Tell a downstream that polls that there are items, or that the flow has ended."""
        done = self._done  # read before: items from before the end can be polled by then
        if not self._halt:
            try:
                downstream.on_next(_WAKE_UP)
            except BaseException as error:
                self._raised(downstream, upstream, error)
                return
        if self._halt:
            self._stop(downstream)
        elif done:
            self._left = True
            self._end(downstream, self._error)

    def _deliver(self, downstream: CoreSubscriber[T], upstream: Subscription) -> None:
        """Deliver the items that wait, on demand, in batches up to the next request.

        When it is empty, our own queue raises IndexError, and a fused upstream returns EMPTY; any
        other error of a fused upstream ends the flow (F46).
        """
        source, queue, limit = self._fused, self._queue, self._limit
        emit, conditional = _receiver(downstream, source is None)
        take: Callable[[], T | Empty] = queue.popleft if source is None else source.poll
        nothing_left = (IndexError,) if source is None else ()
        emitted, consumed = self._emitted, self._consumed
        ended = empty = False
        failure: BaseException | None = None
        few = left = _FEW
        while not (self._halt or empty or failure or self._yields):
            done = self._done  # read before the items: those from before the end wait by then
            requested = self._requested
            batch = limit - consumed
            if batch > few:  # noqa: PLR1730 - min() would cost a call
                batch = few
            if requested != UNBOUNDED:
                batch = min(batch, requested - emitted)
                if not batch:
                    try:  # the end needs no demand (O17)
                        ended = done and (not queue if source is None else source.is_empty())
                    except BaseException as error:
                        failure = error
                    break
            refused = 0
            try:
                for taken in range(batch):  # noqa: B007 - used after the loop
                    if self._halt:
                        break
                    try:
                        item = take()
                    except nothing_left:
                        empty = True
                        break
                    except BaseException as error:
                        failure = error
                        break
                    if item is EMPTY:
                        empty = True
                        break
                    if emit(item) is False:
                        refused += 1
                else:
                    taken = batch
            except BaseException as error:
                self._raised(downstream, upstream, error)
                return
            emitted += taken - refused if conditional else taken
            consumed += taken
            ended = empty and done
            if consumed == limit:
                consumed = 0
                if not (done or self._halt):
                    try:
                        upstream.request(limit)
                    except BaseException as error:
                        failure = error
            left -= taken
            if left <= 0:
                if few < _MANY:
                    few += few
                left = few
                # A drain that runs inline has no thread to give back: the stack would only grow.
                if time.monotonic() >= self._turn_ends and self._giver != get_ident():
                    self._yields = not (failure or self._halt)
        self._emitted, self._consumed = emitted, consumed
        if failure is not None:
            try:
                self._failed(downstream, upstream, failure)
            finally:
                failure = None  # its traceback refers to this frame
        elif self._halt:
            self._stop(downstream)
        elif ended:
            self._end(downstream, self._error)

    def _stop(self, downstream: CoreSubscriber[T]) -> None:
        """Stop the delivery: after a cancel, a bad request, or an error that overtakes items."""
        if self._downstream is None:
            self._discard()
            return
        error = self._bad or self._error
        self._discard()
        self._end(downstream, error)

    def _end(self, downstream: CoreSubscriber[T], error: BaseException | None) -> None:
        self._error = None
        self._over()
        try:
            if error is None:
                downstream.on_complete()
            else:
                downstream.on_error(error)
        except BaseException as raised:
            if is_fatal(raised):
                leave(raised, downstream, self)
            raise

    def _raised(
        self, downstream: CoreSubscriber[T], upstream: Subscription, error: BaseException
    ) -> None:
        """End the flow: the downstream has raised `error` in its on_next (§2.13, O32)."""
        if self._closed(upstream, error) or not downstream.on_next_raised(error):
            hooks.drop_error(error)

    def _failed(
        self, downstream: CoreSubscriber[T], upstream: Subscription, error: BaseException
    ) -> None:
        """End the flow: the upstream has raised `error` while it was polled or requested."""
        if self._closed(upstream, error):
            hooks.drop_error(error)
        else:
            downstream.on_error(error)

    def _closed(self, upstream: Subscription, error: BaseException) -> bool:
        """End the flow for `error`, and raise it if it is fatal.

        The result is whether the flow had ended before.
        """
        before = self._downstream
        fatal = is_fatal(error)
        if fatal:
            leave(error, before, self)
        self._over()
        hooks.cancel(upstream)
        self._discard()
        if fatal:
            raise error
        return before is None

    def _discard(self) -> None:
        """Empty the queue, the upstream's or our own."""
        fused, self._fused = self._fused, None
        if fused is not None:
            if self._shared:
                # The downstream may be polling, and only the thread that polls may clear.
                hooks.cancel(fused)
            else:
                fused.clear()
        hooks.drop_waiting(self._queue)

    # -- towards a downstream that polls

    @override
    def request_fusion(self, mode: Fusion, /) -> Fusion:
        """Grant ASYNC, if it is asked for; across threads, too.

        `poll` runs no function of the user: an upstream that would call one has refused to be fused
        with this operator, which is a boundary itself (F39).
        """
        if not self._negotiable or self._requested or self._bad is not None:
            raise late_fusion()
        self._negotiable = False
        if not mode & Fusion.ASYNC:
            return Fusion.NONE
        self._shared = True
        return Fusion.ASYNC

    @override
    def poll(self) -> T | Empty:
        """Return the next item, and request more when enough items were polled."""
        source = self._fused
        item: T | Empty
        if source is not None:
            item = source.poll()
            if item is EMPTY:
                return EMPTY
        else:
            queue = self._queue
            if not queue:
                return EMPTY  # the downstream polls until it finds nothing
            try:
                item = queue.popleft()
            except IndexError:  # emptied by a cancel meanwhile
                return EMPTY
        self._consumed += 1
        limit, upstream = self._limit, self._upstream
        if self._consumed == limit and upstream is not None:
            self._consumed = 0
            if not (self._done or self._halt):
                try:
                    upstream.request(limit)
                except BaseException:
                    hooks.drop_item(item)
                    raise
        return item

    @override
    def is_empty(self) -> bool:
        source = self._fused
        return not self._queue if source is None else source.is_empty()

    @override
    def clear(self) -> None:
        """Empty the queue; after a cancel as well, which leaves that to the thread that polls."""
        source = self._upstream
        if self._mode and isinstance(source, QueueSubscription):
            source.clear()
        hooks.drop_waiting(self._queue)

    @override
    def statistics(self) -> Statistics:
        """Report the state. `requested` is updated after each batch of items."""
        requested: int | None = self._requested
        if self._shared:
            requested = None
        elif requested != UNBOUNDED:
            requested = self._requested - self._emitted
        return Statistics(
            operator=operator_of(self._label),
            requested=requested,
            buffered=len(self._queue),
            capacity=self._prefetch if self._fused is None else None,
            cancelled=self._halt and not self._done,
            terminated=self._downstream is None,
            error=self._error or self._bad,
            fusion=Fusion.ASYNC if self._shared else Fusion.NONE,
            upstream=self._upstream,
        )


def _receiver(downstream: CoreSubscriber[T], none_free: bool) -> tuple[Callable[[T], object], bool]:
    """Return the function that takes an item, and whether False from it means "not used" (F12).

    Args:
        downstream: the subscriber that takes the items.
        none_free: whether None is never among the items.
    """
    if isinstance(downstream, ConditionalSubscriber):
        return downstream.try_on_next, True
    return downstream.receiver() if none_free else downstream.on_next, False
