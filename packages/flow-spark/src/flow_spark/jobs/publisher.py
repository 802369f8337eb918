"""The items of a Spark job as a publisher: pulled by iterating, pushed by a thread."""

from __future__ import annotations

import itertools
import threading
from abc import ABCMeta
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Self, TypeVar, cast, final

from typing_extensions import override

from flow_core import hooks
from flow_core.demand import add_demand, bad_request
from flow_core.errors import is_fatal, late_fusion
from flow_core.protocols import (
    EMPTY,
    ConditionalSubscriber,
    CoreSubscriber,
    Empty,
    Fusion,
    IterableSource,
    Publisher,
    QueueSubscription,
    Subscriber,
)
from flow_core.sources import ErrorSource
from flow_core.stages import Program, close_iterator
from flow_core.subscribers import check_may_block, core_subscriber
from flow_spark.jobs.origin import Job, Runs

__all__ = ["JobSource", "JobSubscription"]

T = TypeVar("T")

_names: Final = itertools.count(1)
_get_ident: Final = threading.get_ident


@final
class JobSource(IterableSource[T], Publisher[Any]):
    """Runs a Spark job for each subscriber.

    Iterating reads in the iterating thread. A subscriber gets its items from a thread of the
    subscription, which starts the job at the first request.

    Args:
        origin: the rows, or an operator over them.
        program: the stages that run where the rows are.
        exact: whether a batch of the job is one item that takes effect when it is requested: then
            it must not be requested without demand.
    """

    __slots__ = ("_exact", "_origin", "_program")

    none_free: ClassVar[bool] = True

    def __init__(self, origin: Runs, program: Program[Any, T], *, exact: bool = False) -> None:
        self._origin: Final = origin
        self._program: Final = program
        self._exact: Final = exact

    @override
    def iterate(self) -> Iterator[T]:
        """Iterate over the items; closing the iterator ends the job.

        Raises:
            BlockingInEventLoopError: in the thread of a running event loop.
            NotPicklableError: if the stages cannot be sent to the cluster.
        """
        check_may_block("iterating over a Spark job")
        return _flattened(self._job()) if self._exact else _Items[T].of(self._job())

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        downstream = core_subscriber(subscriber)
        try:
            job = self._job()
        except Exception as error:
            ErrorSource[T](error).subscribe(downstream)  # §1.9: subscribing does not raise
            return
        JobSubscription(job, downstream, exact=self._exact).start()

    def _job(self) -> Job:
        stages = self._program.stages
        name = " | ".join(["flow", *(stage.name for stage in stages[:8])])
        return self._origin.job(self._program if stages else None, name)

    def __repr__(self) -> str:
        return f"one mapInArrow over {self._origin!r}"


def _flattened(job: Iterable[Iterable[T]]) -> Iterator[T]:
    batches = iter(job)
    try:
        for batch in batches:
            yield from batch
    finally:
        close_iterator(batches)


if TYPE_CHECKING:

    class _Chain(Iterator[T]):
        """The part of ``itertools.chain`` that typeshed lacks: constructors return subclasses."""

        @classmethod
        def from_iterable(cls, iterables: Iterable[Iterable[T]], /) -> Self: ...
        def __next__(self) -> T: ...

else:
    _Chain = itertools.chain


@final
class _Items(_Chain[T]):
    """The items, as from `_flattened`, but without a Python step per item; for complete batches.

    It is closed as a generator is, or when the iteration is left. After that, it still yields the
    remaining items of a batch that has come already: dropping them would need a step per item.
    """

    __slots__ = ("_batches",)

    _batches: Iterator[Iterable[T]]

    @classmethod
    def of(cls, job: Iterable[Iterable[T]]) -> Self:
        """Return the items of `job`, which starts when the first item is requested."""
        batches = iter(job)
        items = cls.from_iterable(batches)
        items._batches = batches
        return items

    def close(self) -> None:
        """End the job."""
        close_iterator(self._batches)


cast("ABCMeta", Generator).register(_Items)  # typeshed says that it is a protocol


@final
class JobSubscription(QueueSubscription[T], Generic[T]):
    """One subscriber's run of a job.

    Demand: exact towards the subscriber. Towards the cluster, one item is read ahead of the demand,
    since only then it is known whether there is one; without demand, tasks block.
    Thread: a separate one, started by the first request, which sends all signals.
    Fusion: grants SYNC, if polling happens on an executor (THREAD_BOUNDARY); a poll blocks while
    Spark works.

    Args:
        job: the job, not yet started.
        downstream: gets the signals.
        exact: see `JobSource`; then nothing is read ahead of demand, and fusion is not granted,
            since a subscriber that polls looks ahead.
    """

    __slots__ = (
        "_ahead",
        "_bad",
        "_cancelled",
        "_change",
        "_downstream",
        "_emitter",
        "_exact",
        "_fused",
        "_job",
        "_open",
        "_requested",
        "_requested_here",
        "_running",
    )

    def __init__(self, job: Job, downstream: CoreSubscriber[T], *, exact: bool = False) -> None:
        self._job: Final = job
        self._exact: Final = exact
        self._downstream: CoreSubscriber[T] | None = downstream
        self._change: Final = threading.Condition()
        self._requested = 0
        # The thread that emits: requests from within its own `on_next` take no lock.
        self._emitter = 0
        self._requested_here = 0
        self._bad: ValueError | None = None
        self._cancelled = self._open = self._running = False
        self._fused: Iterator[T] | None = None
        self._ahead: T | Empty = EMPTY

    @property
    def job(self) -> Job:
        """The job."""
        return self._job

    def start(self) -> None:
        """Hand this object over as the subscription, then serve the demand so far (§1.9)."""
        downstream = self._downstream
        if downstream is None:
            return
        try:
            downstream.on_subscribe(self)
        except BaseException:
            self.cancel()
            raise
        with self._change:
            self._open = True
        self._run_if_needed()

    @override
    def request(self, n: int, /) -> None:
        if _get_ident() == self._emitter and type(n) is int and n > 0:
            self._requested_here += n
            return
        bad = bad_request(n)
        with self._change:
            if self._cancelled:
                return
            if bad is None:
                self._requested = add_demand(self._requested, n)
            else:
                self._bad = bad
                self._cancelled = True
            self._change.notify()
        if bad is not None:
            self._job.cancel()
        self._run_if_needed()

    @override
    def cancel(self) -> None:
        """Cancel the job. If a thread or a polling subscriber waits for Spark, wake it."""
        with self._change:
            self._cancelled = True
            self._bad = None
            self._downstream = None
            self._change.notify()
        self._job.cancel()

    def _run_if_needed(self) -> None:
        with self._change:
            downstream = self._downstream
            wanted = self._requested or self._bad is not None
            if not self._open or self._running or not wanted or downstream is None:
                return
            if self._fused is not None:
                return
            self._running = True
        threading.Thread(
            target=self._emit, args=(downstream,), name=f"flow-spark-{next(_names)}", daemon=True
        ).start()

    def _emit(self, downstream: CoreSubscriber[T]) -> None:
        """Send all signals of the subscriber, from one thread (§1.3)."""
        if not self._exact:
            self._emitter = threading.get_ident()
        batches = self._wanted() if self._exact else iter(self._job)
        try:
            self._send(batches, downstream)
        except Exception as error:
            with self._change:
                ended, self._cancelled = self._cancelled, True
                self._downstream = None
            if not ended:
                downstream.on_error(error)
            elif self._bad is None:
                hooks.drop_error(error)
        else:
            with self._change:
                ended, self._cancelled = self._cancelled, True
                self._downstream = None
            if not ended:
                downstream.on_complete()
        finally:
            close_iterator(batches)
            self._job.cancel()
        bad = self._bad
        if bad is not None:
            downstream.on_error(bad)  # §3.9

    def _wanted(self) -> Iterator[Iterable[T]]:
        """Yield the batches of the job, each when there is demand for its item."""
        batches = iter(self._job)
        try:
            for batch in batches:
                with self._change:
                    while not self._requested and not self._cancelled:
                        self._change.wait()
                if self._cancelled:
                    return
                yield batch
        finally:
            close_iterator(batches)

    def _send(self, batches: Iterator[Iterable[T]], downstream: CoreSubscriber[T]) -> None:
        granted = self._granted(0)
        # No item is None: neither rows, nor results of stages, which check for it themselves.
        conditional = isinstance(downstream, ConditionalSubscriber)
        on_next: Callable[[T], object] = (
            downstream.try_on_next
            if isinstance(downstream, ConditionalSubscriber)
            else downstream.receiver()
        )
        for item in itertools.chain.from_iterable(batches):
            while not granted:
                granted, self._requested_here = self._requested_here, 0
                if not granted:
                    granted = self._granted(1)
            if self._cancelled:
                return
            try:
                used = on_next(item)
            except BaseException as error:
                self.cancel()
                if is_fatal(error):
                    raise
                if not downstream.on_next_raised(error):
                    hooks.drop_error(error)
                return
            if used or not conditional:
                granted -= 1
            elif self._exact:
                with self._change:  # demand that was not used up lets the next batch come
                    self._requested = add_demand(self._requested, granted)
                granted = 0

    def _granted(self, at_least: int) -> int:
        """Take over the demand; wait until it is at least `at_least`, or the end has come."""
        with self._change:
            while self._requested < at_least and not self._cancelled:
                self._change.wait()
            granted = min(self._requested, at_least) if self._exact else self._requested
            self._requested -= granted
        return granted or at_least

    @override
    def request_fusion(self, mode: Fusion, /) -> Fusion:
        """Grant SYNC, for a subscriber that polls on an executor."""
        if self._open or self._fused is not None or self._requested:
            raise late_fusion()
        if self._exact or not (mode & Fusion.SYNC and mode & Fusion.THREAD_BOUNDARY):
            return Fusion.NONE
        self._fused = _Items[T].of(self._job)
        return Fusion.SYNC

    @override
    def poll(self) -> T | Empty:
        """Take the next item; block while Spark works. EMPTY means completed."""
        ahead = self._ahead
        if ahead is not EMPTY:
            self._ahead = EMPTY
            return ahead
        fused = self._fused
        return EMPTY if fused is None else next(fused, EMPTY)

    @override
    def is_empty(self) -> bool:
        """Return whether no item is left; this looks one item ahead."""
        if self._ahead is EMPTY:
            self._ahead = self.poll()
        return self._ahead is EMPTY

    @override
    def clear(self) -> None:
        """End the job."""
        self._ahead = EMPTY
        self._job.cancel()
