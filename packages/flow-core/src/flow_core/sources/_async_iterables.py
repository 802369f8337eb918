"""`from_async_iterable`, `using_when`: flows of async generators and asynchronous resources."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.assembly import labelled, task_name
from flow_core.conversion import Convertible, as_flow
from flow_core.demand import DEFAULT_PREFETCH, UNBOUNDED, add_demand, bad_request, check_prefetch
from flow_core.errors import FlowError, LoopEndedError, NoneItemError, is_fatal, throw_if_fatal
from flow_core.flow import Flow
from flow_core.held import watched
from flow_core.homes import Home, home_loop, task_context
from flow_core.introspection import Scannable, Statistics
from flow_core.late import later
from flow_core.once import AsyncOnce
from flow_core.protocols import (
    ConditionalSubscriber,
    CoreSubscriber,
    Publisher,
    Subscriber,
    Subscription,
)
from flow_core.sources._loops import LoopWatch, closed_loop, in_loop
from flow_core.stages._template import describe
from flow_core.subscribers._awaiting import iterate_async
from flow_core.subscribers._strict import core_subscriber

if TYPE_CHECKING:
    import asyncio
else:
    asyncio = later("asyncio", globals())

__all__ = ["from_async_iterable", "using_when"]

T = TypeVar("T")
A = TypeVar("A")


@final
class AsyncIterableSource(Publisher[T], Generic[T]):
    """The items of an async iterable, which runs in an asyncio loop."""

    __slots__ = ("_iterable", "_label", "_loop")

    def __init__(
        self, iterable: AsyncIterable[T], loop: asyncio.AbstractEventLoop | None, label: str
    ) -> None:
        self._iterable = iterable
        self._loop = loop
        self._label = label

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        downstream = core_subscriber(subscriber)
        home = downstream.home()
        loop = self._loop or home_loop(home)
        AsyncIterableSubscription(self._iterable, downstream, loop, self._label, home).start()

    def __repr__(self) -> str:
        return self._label


@final
class AsyncIterableSubscription(Subscription, Scannable, Generic[T]):
    """One task that takes an item when there is demand, delivers the item, and waits for demand.

    All signals come from the task, so they are serial (§1.3) without a permit. If the loop was
    closed, so that the task can never run again, they come from the thread that notices this.

    No wake-up is lost: the task sets `_waiter` and looks at the demand again before it awaits; a
    request adds the demand before it looks for `_waiter`. A cancel does the same with its flag.

    Args:
        iterable: the async iterable.
        downstream: gets the signals.
        loop: the event loop that the task runs in.
        label: the source, for messages.
        home: the home of the flow.
    """

    __slots__ = (
        "_abandoned",
        "_bad",
        "_context",
        "_downstream",
        "_home",
        "_interrupted",
        "_iterable",
        "_label",
        "_lock",
        "_loop",
        "_open",
        "_pulling",
        "_requested",
        "_started",
        "_stopped",
        "_task",
        "_used",
        "_waiter",
        "_watch",
    )

    def __init__(
        self,
        iterable: AsyncIterable[T],
        downstream: CoreSubscriber[T],
        loop: asyncio.AbstractEventLoop,
        label: str,
        home: Home | None,
    ) -> None:
        self._home = home
        self._context = task_context(home)
        self._iterable: AsyncIterable[T] | None = iterable
        self._downstream: CoreSubscriber[T] | None = downstream
        self._loop = loop
        self._label = label
        self._lock = Lock()
        """Guards `_requested`, the start of the task, and the sending of the terminal."""
        self._requested = 0
        self._used = 0
        self._bad: ValueError | None = None
        self._open = self._started = False
        self._stopped = False
        """True if the flow was cancelled, or ended by a bad request."""
        # From here on: used in the loop's thread.
        self._task: asyncio.Task[None] | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._watch: LoopWatch | None = None
        self._interrupted = self._abandoned = False
        self._pulling = False
        """True while the task awaits an item: only then may it be interrupted."""

    def start(self) -> None:
        """Hand this over as the subscription, then serve the demand that came meanwhile (§1.9)."""
        downstream = self._downstream
        if downstream is not None:
            try:
                downstream.on_subscribe(self)
            except BaseException:
                self.cancel()
                raise
            with self._lock:
                self._open = True
            self._wake()

    # -- signals from the downstream

    @override
    def request(self, n: int, /) -> None:
        """Add to the demand; the first request starts the task."""
        bad = bad_request(n)
        if self._downstream is None or (bad is None and self._requested == UNBOUNDED):
            return
        if bad is not None:
            self._bad = bad
            self._stopped = True
        else:
            with self._lock:
                self._requested = add_demand(self._requested, n)
        self._wake()

    @override
    def cancel(self) -> None:
        """Have the iterable closed soon, in its own loop (X09)."""
        with self._lock:
            if self._downstream is None:
                return
            self._downstream = self._bad = None
            self._stopped = True
        self._wake()

    def _wake(self) -> None:
        """Have the task look at the new state: start it, end its waiting, or interrupt it."""
        with self._lock:
            starts = self._open and not self._started and (self._requested > 0 or self._stopped)
            if starts:
                self._started = True
            elif not self._started:
                return
        loop, reached = self._loop, True
        if not starts:
            if self._stopped or self._waiter is not None:
                reached = in_loop(loop, self._resume)
            else:
                reached = not loop.is_closed()
        elif self._downstream is None:
            self._iterable = None  # cancelled before any item was requested
        else:
            reached = in_loop(loop, self._begin, self._lost)
        if not reached:
            self._lost()

    def _lost(self) -> None:
        """End the flow from here, because the loop is closed and the task cannot do it."""
        downstream, self._iterable = self._take(), None
        if downstream is not None:
            downstream.on_error(self._bad or closed_loop(self._label))

    def _take(self) -> CoreSubscriber[T] | None:
        """Return the subscriber, but only to the first caller, which may send it the terminal."""
        with self._lock:
            downstream, self._downstream = self._downstream, None
        return downstream

    # -- in the loop's thread

    def _begin(self) -> None:
        # Before the task runs: a loop that is ending may never run its first step.
        self._watch = LoopWatch(self._loop, self._lost)
        self._task = task = self._loop.create_task(
            self._run_all(), name=task_name(self._label), context=self._context.copy()
        )
        home = self._home
        if home is not None and home.loop is self._loop:
            home.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if self._home is not None:
            self._home.discard(task)
        watch, self._watch = self._watch, None
        if watch is not None:  # cancelled before its first step
            watch.end()
            self._task = self._iterable = None
            self._signal(self._bad or self._cancelled_outside())

    def _resume(self) -> None:
        waiter, task = self._waiter, self._task
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
        # A task that is cancelled already cleans up, which must not be interrupted.
        if self._stopped and self._pulling and task is not None and not task.cancelling():
            if task is asyncio.current_task():
                # This runs within a step of the task itself, which may end without an await. Before
                # Python 3.13, an interruption that met no await would hit an await of the clean-up.
                asyncio.get_running_loop().call_soon(self._resume)
                return
            self._pulling = False
            self._interrupted = True
            task.cancel()

    async def _run_all(self) -> None:
        iterable, self._iterable = self._iterable, None
        iterator: AsyncIterator[T] | None = None
        self._task = asyncio.current_task()
        watch, self._watch = self._watch, None
        try:
            if iterable is not None and not self._stopped:
                iterator = aiter(iterable)
                del iterable
                await self._send_all(iterator)
        except BaseException as error:
            self._failed(error)
        finally:
            if watch is not None:
                watch.end()
            bad, downstream = self._bad, self._take()
            if bad is not None and downstream is not None:
                downstream.on_error(bad)
            task, self._task = self._task, None
            if self._interrupted and task is not None:
                task.uncancel()
            if iterator is not None and not self._abandoned:
                await self._close(iterator)

    async def _send_all(self, iterator: AsyncIterator[T]) -> None:
        while self._is_wanted() or await self._becomes_wanted():
            self._pulling = True
            try:
                next_one = anext(iterator)
                item = await (watched(next_one, self._label) if hooks.debugging else next_one)
            except StopAsyncIteration:
                downstream = None if self._stopped else self._take()
                if downstream is not None:
                    downstream.on_complete()
                return
            finally:
                self._pulling = False
            downstream = self._downstream
            if downstream is None or self._stopped:
                hooks.drop_item(item)
                return
            if item is None:
                raise NoneItemError(
                    f"{self._label} gave None, which is not an item; leave such items out, "
                    "or use another object in their place"
                )
            self._used += 1
            try:
                if not isinstance(downstream, ConditionalSubscriber):
                    downstream.on_next(item)
                elif not downstream.try_on_next(item):
                    self._used -= 1
            except BaseException as error:
                left = self._take() is None
                throw_if_fatal(error)
                if left or not downstream.on_next_raised(error):
                    hooks.drop_error(error)
                return
            del item, downstream

    def _is_wanted(self) -> bool:
        return self._used < self._requested and not self._stopped

    async def _becomes_wanted(self) -> bool:
        """Wait for demand. Return False if the flow was cancelled instead."""
        loop = asyncio.get_running_loop()
        while not self._stopped:
            self._waiter = waiter = loop.create_future()
            try:
                if self._used < self._requested:
                    return True
                if not self._stopped:
                    await waiter
            finally:
                self._waiter = None
        return False

    def _failed(self, error: BaseException) -> None:
        """End the flow, because the iterable has raised an error or the task was cancelled."""
        task = self._task
        if isinstance(error, asyncio.CancelledError):
            if self._interrupted:
                return
            if task is not None and task.cancelling():
                self._signal(self._cancelled_outside(), error)
                raise error
        if not is_fatal(error):
            if self._stopped or not self._signal(error):
                hooks.drop_error(error)
            return
        if isinstance(error, GeneratorExit):
            # There is no reference to the flow any more, and nothing can be awaited.
            self._abandoned = True
        else:
            # It propagates through the loop. Subscribers that wait elsewhere get an error, too.
            self._signal(FlowError(f"{self._label} was ended by {type(error).__name__}"), error)
        raise error

    def _cancelled_outside(self) -> LoopEndedError:
        return LoopEndedError(
            f"{self._label}: its task was cancelled from outside, as an ending loop does; end "
            "the flow before its loop"
        )

    def _signal(self, error: BaseException, cause: BaseException | None = None) -> bool:
        downstream = self._take()
        if downstream is None:
            return False
        if cause is not None:
            error.__cause__ = cause
        downstream.on_error(error)
        return True

    async def _close(self, iterator: AsyncIterator[T]) -> None:
        if isinstance(iterator, AsyncGenerator):
            try:
                await iterator.aclose()
            except asyncio.CancelledError:
                raise
            except Exception as error:  # a `finally` of the user's generator
                throw_if_fatal(error)
                hooks.drop_error(error)

    @override
    def statistics(self) -> Statistics:
        requested = self._requested
        return Statistics(
            operator=self._label,
            requested=requested if requested == UNBOUNDED else requested - self._used,
            cancelled=self._stopped,
            terminated=self._downstream is None,
            error=self._bad,
        )


@final
class _Leased(AsyncIterable[T], Generic[A, T]):
    """The items of a flow within an async context manager, which each subscriber enters."""

    __slots__ = ("_prefetch", "_resource", "_use")

    def __init__(
        self,
        resource: Callable[[], AbstractAsyncContextManager[A, bool | None]],
        use: Callable[[A], Convertible[T]],
        prefetch: int,
    ) -> None:
        self._resource = resource
        self._use = use
        self._prefetch = prefetch

    async def __aiter__(self) -> AsyncGenerator[T, None]:
        async with self._resource() as entered:
            flow = as_flow(self._use(entered), f"{self!r}: {describe(self._use)}")
            # An async generator, which has to be closed here, not whenever it is collected.
            made = iterate_async(flow, self._prefetch)
            async with aclosing(made) as items:
                async for item in items:
                    yield item
                    del item

    def __repr__(self) -> str:
        return f"using_when({describe(self._resource)}, {describe(self._use)})"


def from_async_iterable(
    iterable: AsyncIterable[T], *, loop: asyncio.AbstractEventLoop | None = None
) -> Flow[T]:
    """The items of an async iterable, mostly an async generator.

    >>> async def ticks() -> AsyncIterator[int]:
    ...     for tick in (1, 2, 3):
    ...         await asyncio.sleep(0)
    ...         yield tick
    >>> list(from_async_iterable(ticks()).map(lambda tick: tick * 10))
    [10, 20, 30]

    The iterable runs in the given loop. Without a given loop, it runs in the loop in which the flow
    was subscribed to, whichever thread subscribes to this source. If no loop ran there, it runs in
    one loop for the process, in a daemon thread.

    Demand: exact; the next item, or the end, is awaited only when an item was requested. Thread:
    all signals come from the loop's thread. With unbounded demand, an iterable that never has to
    wait keeps its loop busy: in that case, request items in portions, as ``async for`` does.
    Fusion: none.

    Args:
        iterable: each run takes a new iterator of it, in the loop. An async generator, or another
            async iterator, yields its items only once: a second run fails with `FlowError`. When
            the flow is cancelled, a generator is closed in the loop: its pending await is
            cancelled, and its ``finally`` block runs.
        loop: the loop to run in; needed, for example, if the iterable uses queues of that loop.
            Another thread may start the loop later.

    Returns:
        A flow. It fails with FlowError if the loop cancels its task, or if the loop is closed.

    Raises:
        TypeError: if `iterable` is not an async iterable.
    """
    if not isinstance(iterable, AsyncIterable):
        raise TypeError(
            f"from_async_iterable() takes an async iterable, not {iterable!r}; from_iterable() "
            "takes others, and an async function has to be called first"
        )
    name = getattr(iterable, "__name__", type(iterable).__name__)
    if isinstance(iterable, AsyncIterator):
        iterable = AsyncOnce(iterable, labelled("from_async_iterable", name))
    return Flow(AsyncIterableSource(iterable, loop, f"from_async_iterable({name})"))


def using_when(
    resource: Callable[[], AbstractAsyncContextManager[A, bool | None]],
    use: Callable[[A], Convertible[T]],
    *,
    loop: asyncio.AbstractEventLoop | None = None,
    prefetch: int = DEFAULT_PREFETCH,
) -> Flow[T]:
    """The items of a flow of an asynchronous resource: ``async with resource() as r``, ``use(r)``.

    >>> from contextlib import asynccontextmanager
    >>> from flow_core import from_iterable
    >>> @asynccontextmanager
    ... async def transaction():
    ...     print("begin")
    ...     yield ["a", "b"]
    ...     print("commit")
    >>> list(using_when(transaction, from_iterable))
    begin
    commit
    ['a', 'b']

    The context manager is entered with the first request, and left before the subscriber gets the
    end. If the flow has failed, it is left with the error; if it suppresses that error, the flow
    completes. If the flow was cancelled, it is left with a CancelledError or GeneratorExit. If the
    context manager raises an error itself, the flow fails with that error.

    Demand: `prefetch` items are requested of the flow that `use` returns; whenever 75 % of that
    number were used, that many are requested again. Thread, loop and fusion: as for
    `from_async_iterable`.

    Args:
        resource: returns the context manager, once per subscriber.
        use: called with the result of entering the context manager; returns a flow.
        loop: the loop to run in; see `from_async_iterable`.
        prefetch: how many items may wait, at least 1.

    Raises:
        TypeError: if `prefetch` is not an int.
        ValueError: if `prefetch` is less than 1.
    """
    leased: _Leased[A, T] = _Leased(resource, use, check_prefetch(prefetch))
    return Flow(AsyncIterableSource(leased, loop, repr(leased)))
