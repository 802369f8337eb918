"""`ordered_merge`: several sorted flows as one sorted flow."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from heapq import heappop, heappush, heapreplace
from typing import Any, Final, TypeVar, final, overload

from typing_extensions import override

from flow_core import hooks
from flow_core.demand import DEFAULT_PREFETCH, check_prefetch
from flow_core.errors import RejectedExecutionError
from flow_core.executors import Executor, Runner, ScheduledTask, as_runner
from flow_core.flow import Flow, check_order
from flow_core.homes import task_context
from flow_core.protocols import EMPTY, CoreSubscriber, Publisher
from flow_core.sources import empty
from flow_core.stages import Comparable
from flow_ops.combine._sources import check_function, check_sources, described, take_errors
from flow_ops.coordination import BufferedInput, Coordinator, Input, combined, coordinated_source

__all__ = ["ordered_merge"]

T = TypeVar("T")


S = TypeVar("S", bound=Comparable)


@overload
def ordered_merge(
    *sources: Publisher[S],
    key: None = None,
    executor: Executor | None = ...,
    prefetch: int = ...,
    delay_error: bool = ...,
) -> Flow[S]: ...


@overload
def ordered_merge(
    *sources: Publisher[T],
    key: Callable[[T], Comparable],
    executor: Executor | None = ...,
    prefetch: int = ...,
    delay_error: bool = ...,
) -> Flow[T]: ...


def ordered_merge(
    *sources: Publisher[Any],  # Any: the overloads say more
    key: Callable[[Any], Any] | None = None,
    executor: Executor | None = None,
    prefetch: int = DEFAULT_PREFETCH,
    delay_error: bool = False,
) -> Flow[Any]:
    """The items of several sorted flows, in order.

    >>> import flow_core as flow
    >>> list(flow.ordered_merge(flow.just(1, 4, 5), flow.just(2, 3, 6)))
    [1, 2, 3, 4, 5, 6]
    >>> list(flow.ordered_merge(flow.just("b", "A"), flow.just("C"), key=lambda s: -ord(s)))
    ['b', 'C', 'A']

    An item is sent when each flow has an item waiting or has ended, and no waiting item is less. Of
    equal items, the one of the earlier flow comes first. If a flow is not sorted, its items still
    keep their order, and none is lost. Comparing costs O(log n) for each item of n flows. Without
    flows the result is empty.

    Demand: exact. `prefetch` items are requested of a source that pushes, and 75 % of that again
    whenever as many were taken. Without demand no item is taken.
    Thread: that of the source whose item was missing, or of the requester. With an `executor`
    everything downstream runs there, as behind `observe_on`: items, the end, and errors. Sources
    keep their threads, but the requests to them are made on the executor. A task is submitted when
    there is something to do and no task is pending. A cancel removes a task that has not begun. It
    does not interrupt a downstream that blocks, but no further item follows. If the executor
    refuses a task, or drops it, the RejectedExecutionError comes on the thread that signalled.
    Fusion: sources with SYNC or ASYNC are polled. Those that call functions of the user, or are
    asynchronous, learn that they may be polled on another thread.
    Errors: the first one cancels the other flows, and overtakes the items that wait.

    Args:
        sources: sorted flows, smallest item first. They are subscribed in this order.
        key: returns the value by which an item is compared, called once for each item; values are
            compared by ``<`` alone.
        executor: runs the merge; see `observe_on`. With None, the merge runs on the threads that
            the items come on.
        prefetch: items to request of each ahead, and the most of each that wait.
        delay_error: whether errors come when all flows have ended; several are raised as an
            ExceptionGroup.

    Returns:
        A flow that fails with MissingBackpressureError if a source sends more than was requested
        and there is no room, and with any error that a comparison raises.

    Raises:
        TypeError: if a source is not a publisher, `key` cannot be called, `executor` is not an
            executor, or `prefetch` is not an int.
        ValueError: if `prefetch` is less than 1.
    """
    check_sources("ordered_merge", sources)
    for source in sources:
        check_order(source, "ordered_merge()")
    check_function("ordered_merge", "key", key)
    check_prefetch(prefetch)
    runner = None if executor is None else as_runner(executor)
    if not sources:
        return empty()

    def make(downstream: CoreSubscriber[Any], label: str) -> Coordinator[Any]:
        if runner is None:
            return OrderedMerge(
                sources, key, downstream, label, prefetch=prefetch, delay_error=delay_error
            )
        return ExecutedOrderedMerge(
            sources,
            key,
            downstream,
            label,
            prefetch=prefetch,
            delay_error=delay_error,
            runner=runner,
        )

    detail = described(len(sources), key)
    if runner is not None:
        detail += f", executor={runner!r}"
    return coordinated_source("ordered_merge", detail, make, prefetch, sources)


@final
class _Head:
    """The next item of an input, as an entry of a heap of such items.

    Entries are compared by ``<`` of their keys alone: a user's ``==`` may mean anything (X13).
    """

    __slots__ = ("item", "key", "place")

    def __init__(self, key: Any, place: int, item: Any) -> None:
        self.key = key
        self.place = place
        self.item = item

    def __lt__(self, other: _Head) -> bool:
        if self.place < other.place:
            return not other.key < self.key
        return bool(self.key < other.key)


class _Merging(Coordinator[T]):
    """Keeps the next item of each input in a heap, and sends the smallest of them.

    Args:
        flows: the sorted flows.
        key: see `ordered_merge`.
        downstream: gets the signals.
        label: the operator and where it was assembled, for messages.
        prefetch: items to request of each ahead.
        delay_error: whether errors come at the end.
    """

    __slots__ = (
        "_delay_error",
        "_errors",
        "_flows",
        "_heads",
        "_hurries",
        "_key",
        "_open",
        "_sources",
    )

    def __init__(
        self,
        flows: tuple[Publisher[T], ...],
        key: Callable[[T], Any] | None,
        downstream: CoreSubscriber[T],
        label: str,
        *,
        prefetch: int,
        delay_error: bool,
    ) -> None:
        super().__init__(downstream, label)
        self._flows = flows
        self._key = key
        self._delay_error = delay_error
        self._errors: list[BaseException] = []
        self._sources: tuple[BufferedInput[T], ...] = tuple(
            BufferedInput[T](self, prefetch) for _ in flows
        )
        self._open = list(range(len(flows)))[::-1]
        """The inputs that have no item in `_heads`, and may get one; the last input of the list is
        polled first."""
        self._heads: list[_Head] = []
        self._hurries = False
        """True when a source has failed and its error overtakes the items that wait."""

    @override
    def open(self) -> None:
        for source, one in builtins.zip(self._flows, self._sources, strict=False):
            if self.over:
                return
            self.connect(source, one)

    @override
    def ending(self, one: Input[Any]) -> None:
        if isinstance(one, BufferedInput) and one.error is not None and not self._delay_error:
            self._hurries = True

    @override
    def step(self) -> None:
        sources, heads, key = self._sources, self._heads, self._key
        while not self.over:
            wanted = self.demand > 0
            if self._hurries:
                self._finish_with(take_errors(sources, every=False))
                return
            if self._open and not self._fill(wanted):
                return
            if not heads:
                self._finish_with(self._errors)
                return
            if not wanted:
                return
            head = heads[0]
            item, head.item = head.item, EMPTY
            self.emit(item)
            if self.over:
                return
            item = sources[head.place].poll() if self.demand else EMPTY
            if item is EMPTY:
                heappop(heads)
                self._open.append(head.place)
            else:
                head.item = item
                head.key = item if key is None else key(item)
                heapreplace(heads, head)

    @override
    def closed(self) -> None:
        heads, self._heads = self._heads, []
        for head in heads:
            if head.item is not EMPTY:
                hooks.drop_item(head.item)
        sources, self._sources = self._sources, ()
        for one in sources:
            one.close()
        errors, self._errors = self._errors, []
        for error in errors:
            hooks.drop_error(error)

    @property
    @override
    def buffered(self) -> int:
        return len(self._heads) + sum(one.waiting for one in self._sources)

    def _fill(self, wanted: bool) -> bool:
        """Take the next item of each open input, if `wanted`.

        The result is whether no input is open any more.

        This stops at the first input that has nothing, so it costs no more than the inputs that
        become ready, however many inputs there are.
        """
        places, key = self._open, self._key
        while places:
            place = places[-1]
            one = self._sources[place]
            item: Any = one.poll() if wanted else EMPTY
            if item is not EMPTY:
                heappush(self._heads, _Head(item if key is None else key(item), place, item))
            elif not one.ended():
                return False
            elif one.error is not None:
                self._errors.append(one.error)
                one.error = None
                if not self._delay_error:
                    self._finish_with(self._errors)
                    return False
            places.pop()
        return True

    def _finish_with(self, errors: list[BaseException]) -> None:
        self._errors = []
        if errors:
            self.fail(combined(self.label, errors))
        else:
            self.complete()


@final
class OrderedMerge(_Merging[T]):
    """Runs `ordered_merge` on the threads of its sources."""

    __slots__ = ()


@final
class ExecutedOrderedMerge(_Merging[T]):
    """Runs `ordered_merge` on an executor, and is itself the executor's task.

    The thread that takes the permit submits this object, and the task gives the permit back when
    there is nothing left to do. So at most one task exists at a time, whether it has started or not
    (O14).

    Once the flow has ended and the end was sent, `_downstream` stays None. Later drains only drop
    references; they call no user code, so they may run on any thread.

    Args:
        flows: the sorted flows.
        key: see `ordered_merge`.
        downstream: gets the signals.
        label: the operator and where it was assembled, for messages.
        prefetch: items to request of each ahead.
        delay_error: whether errors come at the end.
        runner: where to run the tasks.
    """

    __slots__ = ("_context", "_handle", "_run", "_runner", "_started")

    def __init__(
        self,
        flows: tuple[Publisher[T], ...],
        key: Callable[[T], Any] | None,
        downstream: CoreSubscriber[T],
        label: str,
        *,
        prefetch: int,
        delay_error: bool,
        runner: Runner,
    ) -> None:
        super().__init__(flows, key, downstream, label, prefetch=prefetch, delay_error=delay_error)
        self._runner = runner
        self._context: Final = task_context(self.home)
        self._run = 0
        """The number of the run that holds the permit or held it last."""
        self._started = 0
        """The number of the last run that has begun on the executor."""
        self._handle: ScheduledTask | None = None
        """The task of run `_run`, until the task begins. `_lock` guards this and `_run`."""

    @override
    def introduced(self) -> None:
        """Do nothing yet, unless the flow has ended already."""
        self._missed = False
        self.leave()
        if self.over:
            self.signal()

    @override
    def signal(self) -> None:
        """Submit a task, unless one is pending or running."""
        if self._downstream is not None:
            if self.try_enter():
                self._submit()
            return
        with self._lock:
            handle, self._handle = self._handle, None
        if handle is not None and handle.cancel():
            self.run_entered()  # the task will never run, so its permit is ours now (O27)
        else:
            super().signal()

    def _submit(self) -> None:
        """Submit this object to the executor; its task holds the permit that was taken here."""
        if self._downstream is None:
            self.run_entered()  # the end was sent already: only drop references (O28)
            return
        self._run = run = self._run + 1  # no other thread writes it: the permit is held
        try:
            handle = self._runner.execute(self, self._reject, self._context.copy())
        except RejectedExecutionError as error:
            self._reject(error)
            return
        except BaseException:
            self._downstream = None
            self._halt()
            if self._started < run:
                self.run_entered()
            else:
                self.signal()  # from within a drain that ran inline and has given the permit back
            raise
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
        self.run_entered()

    def _reject(self, error: RejectedExecutionError) -> None:
        """End the flow: the executor refuses or drops the task, which holds the permit (O30)."""
        downstream = self._downstream
        self._downstream = None
        self._halt()
        with self._lock:
            self._handle = None
        self.run_entered()
        if downstream is not None:
            downstream.on_error(error)
        else:
            hooks.drop_error(error)
