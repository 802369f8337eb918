"""`on_processes`: the stages that follow run in other processes."""

from __future__ import annotations

import os
import pickle
import traceback
from collections import deque
from concurrent.futures import BrokenExecutor, CancelledError, Future
from concurrent.futures import Executor as Pool
from functools import lru_cache
from threading import Thread
from time import perf_counter
from typing import Any, Final, TypeAlias, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.assembly import labelled
from flow_core.demand import DEFAULT_PREFETCH, check_prefetch
from flow_core.errors import FlowError, RejectedExecutionError, is_fatal, throw_if_fatal
from flow_core.executors import runs_interpreters
from flow_core.flow import Flow
from flow_core.homes import task_context
from flow_core.operator import Operator
from flow_core.protocols import EMPTY, CoreSubscriber, Publisher, Subscriber
from flow_core.stages import Program, Stage, Template
from flow_core.structure import AbsorbingSource
from flow_ops.coordination import BufferedInput, Coordinated, Coordinator

__all__ = ["on_processes"]

T = TypeVar("T")
R = TypeVar("R")

# Any: the types of neighbouring stages need only fit each other.
_AnyStage: TypeAlias = Stage[Any, Any]

MAX_BATCH: Final = 64
"""The number of items that are sent at a time, at most, unless the user sets it."""

_QUICK_S: Final = 0.01
"""The time, in seconds, below which a batch is mostly overhead: the next one is twice as long."""


def on_processes(
    pool: Pool,
    *,
    concurrency: int | None = None,
    batch: int = MAX_BATCH,
    prefetch: int = DEFAULT_PREFETCH,
) -> Operator[T, Flow[T]]:
    """Run the stages that follow in the processes or interpreters of `pool`, in order.

    A function that computes holds the GIL, so threads do not help. Processes do, and from Python
    3.14 on the interpreters of an InterpreterPoolExecutor, which share one process:

    >>> import math
    >>> from concurrent.futures import ProcessPoolExecutor
    >>> import flow_core as flow
    >>> def digits(numbers: flow.Flow[int], pool: ProcessPoolExecutor) -> flow.Flow[int]:
    ...     return numbers.on_processes(pool).map(math.factorial).map(str).map(len)

    A subscription cannot cross to another process. A sequence of stages can, since its description
    is pickled. So the stages that directly follow and work on each item by itself (`map`, `filter`,
    `flat_map_iterable`, `do_on_next` …) run in the worker, as one loop for a batch of items. From
    the first stage on that counts or collects (`scan`, `take`, `reduce` …), or the next boundary,
    the flow continues in this process, with the results.

    Batches begin with one item, and double in size while one takes less than 10 ms. An item waits
    for a batch to fill up only if as many batches are under way as are allowed.

    Demand: exact; `prefetch` items are requested of the upstream, and 75 % of that again whenever
    as many were sent to workers. No more than `concurrency` batches are under way or have results
    that wait; all results of `flat_map_iterable` for an item are sent back together.
    Thread: results come on the thread on which the pool receives them from its workers, or on that
    of the upstream or the requester; if the subscriber takes long, put ``observe_on(threads)``
    behind `on_processes`. If the pool fails, the error comes on a separate thread. Cancelling the
    flow cancels the batches that have not begun.
    Fusion: polls an upstream that grants SYNC or ASYNC across threads; absorbs stages (see the
    glossary).
    Errors: an error of a stage comes after the results before it, with the worker's traceback as a
    note. The error of an item that cannot be pickled comes after them, too, without a note. If a
    stage's error cannot be pickled, a FlowError describes it. A worker that dies fails the flow
    with BrokenProcessPool; a pool that was shut down, with RejectedExecutionError.

    Args:
        pool: a `concurrent.futures.ProcessPoolExecutor`, an `InterpreterPoolExecutor`, or another
            pool with the same ``submit``. Keep it open as long as the flow runs.
        concurrency: how many batches are under way; None for two batches per processor.
        batch: how many items are sent at a time, at most.
        prefetch: items to request ahead, and the most that wait to be sent.

    Returns:
        An operator for `Flow.pipe`. Its flow fails with FlowError if no stage follows that can run
        elsewhere, or one cannot be pickled: lambdas and functions within functions cannot.

    Raises:
        TypeError: if `pool` has no ``submit``, or one of the other arguments is not an int.
        ValueError: if one of the other arguments is less than 1.
    """
    if isinstance(pool, type) or not callable(getattr(pool, "submit", None)):
        raise TypeError(
            "on_processes() takes a ProcessPoolExecutor or an InterpreterPoolExecutor, not "
            f"{pool!r}"
        )
    many = 2 * (os.cpu_count() or 1)
    if concurrency is not None:
        many = check_prefetch(concurrency, "concurrency")
    check_prefetch(batch, "batch")
    check_prefetch(prefetch)
    detail = type(pool).__name__
    label = labelled("on_processes", detail)

    def apply(flow: Flow[T]) -> Flow[T]:
        return Flow(ProcessSource(flow, pool, many, batch, prefetch, label))

    return Operator("on_processes", apply, detail)


@final
class ProcessSource(AbsorbingSource[T]):
    """A `flow` whose following stages run in a pool of processes.

    Args:
        flow: the flow that the items come from.
        pool: runs batches.
        concurrency: how many batches are under way.
        batch: how many items are sent at a time.
        prefetch: items to request ahead.
        label: the operator and where it was assembled, for messages.
    """

    __slots__ = ("_batch", "_concurrency", "_flow", "_label", "_pool", "prefetch")

    def __init__(  # noqa: PLR0917 - made by `on_processes` alone
        self,
        flow: Flow[T],
        pool: Pool,
        concurrency: int,
        batch: int,
        prefetch: int,
        label: str,
    ) -> None:
        self._flow = flow
        self._pool = pool
        self._concurrency = concurrency
        self._batch = batch
        self._label = label
        self.prefetch = prefetch

    @override
    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """Signal an error: without stages there is nothing to run in the pool."""
        alone: Flow[T] = Flow(self)
        alone.subscribe(subscriber)

    def absorb(
        self, stages: tuple[_AnyStage, ...]
    ) -> tuple[Publisher[Any], tuple[_AnyStage, ...]]:  # Any: the type of the last absorbed stage
        """Return a publisher that runs `stages` in the pool; see `AbsorbingSource.absorb`.

        Raises:
            FlowError: if no stage can run in a worker, or one cannot be pickled.
        """
        count = 0
        while count < len(stages) and _is_stateless(stages[count].template):
            count += 1
        if not count:
            what = f"{stages[0]!r} works on all items together" if stages else "no stage follows"
            raise FlowError(
                f"{self._label} has nothing to run: {what}; put map(), filter() or another stage "
                "that takes items one by one directly behind it"
            )
        program = _dumped(
            Program(stages[:count]), self._label, for_interpreters=runs_interpreters(self._pool)
        )
        flow, pool, batch, prefetch = self._flow, self._pool, self._batch, self.prefetch

        def made(downstream: CoreSubscriber[Any], label: str) -> OnProcesses[Any]:
            return OnProcesses(
                flow,
                pool,
                program,
                downstream,
                label,
                concurrency=self._concurrency,
                batch=batch,
                prefetch=prefetch,
            )

        return Coordinated(made, self._label, prefetch), stages[count:]

    def __repr__(self) -> str:
        return self._label


@final
class OnProcesses(Coordinator[R]):
    """Sends batches to a pool, and sends the results in the order of the items.

    Args:
        source: the flow that the items come from.
        pool: runs batches.
        program: the stages, pickled.
        downstream: gets the signals.
        label: the operator and where it was assembled, for messages.
        concurrency: how many batches are under way, or have results that wait.
        batch: how many items are sent at a time.
        prefetch: items to request ahead.
    """

    __slots__ = (
        "_batch",
        "_concurrency",
        "_context",
        "_failure",
        "_input",
        "_pool",
        "_program",
        "_results",
        "_size",
        "_source",
        "_under_way",
    )

    def __init__(
        self,
        source: Flow[Any],  # Any, here and below: the types of the stages
        pool: Pool,
        program: bytes,
        downstream: CoreSubscriber[R],
        label: str,
        *,
        concurrency: int,
        batch: int,
        prefetch: int,
    ) -> None:
        super().__init__(downstream, label)
        self._source: Flow[Any] | None = source
        self._pool = pool
        self._program = program
        self._concurrency = concurrency
        self._batch = batch
        self._context: Final = task_context(self.home)
        self._size = 1
        """The number of items that the next batch has, at most."""
        self._input: BufferedInput[Any] | None = BufferedInput(self, prefetch)
        self._under_way: deque[Future[_Outcome]] = deque()
        """Batches whose results were not looked at yet; the oldest one first."""
        self._results: deque[R] = deque()
        """The results of the last batch that was looked at, which wait for demand."""
        self._failure: BaseException | None = None
        """The error of the last batch that was looked at, which comes after its results."""

    @override
    def open(self) -> None:
        source, self._source = self._source, None
        items = self._input
        if source is not None and items is not None:
            self.connect(source, items)

    @override
    def step(self) -> None:
        self._give()
        items = self._input
        if self.over or items is None:
            return
        self._send(items)
        if not (self._under_way or self._results or self._failure or self.over) and items.ended():
            error, items.error = items.error, None
            self.end(error)

    @override
    def closed(self) -> None:
        under_way, results = self._under_way, self._results
        while under_way:
            under_way.popleft().cancel()
        hooks.drop_waiting(results)
        failure, self._failure = self._failure, None
        if failure is not None:
            hooks.drop_error(failure)
        items = self._input
        if items is not None:
            items.close()
            self._input = None
        self._source = None

    @property
    @override
    def buffered(self) -> int:
        items = self._input  # read once: the end clears it
        return len(self._results) + (0 if items is None else items.waiting)

    def _give(self) -> None:
        """Emit the results that have come back, as far as there is demand."""
        results, under_way = self._results, self._under_way
        while not self.over:
            while results and self.demand and not self.over:
                self.emit(results.popleft())
            if results or self.over:
                return
            failure, self._failure = self._failure, None
            if failure is not None:
                self.fail(failure)
                return
            if not under_way or not under_way[0].done():
                return
            self._look_at(under_way.popleft())

    def _look_at(self, future: Future[_Outcome]) -> None:
        try:
            data, failure, seconds = future.result()
        except CancelledError as cancelled:
            raise RejectedExecutionError(
                "the pool dropped a batch without running it, as shutdown(cancel_futures=True) "
                "does; end the flows that use a pool before it is shut down"
            ) from cancelled
        except BrokenExecutor:
            # The pool fails the others itself; a batch that is cancelled meanwhile would stop it.
            self._under_way.clear()
            raise
        self._results.extend(pickle.loads(data))
        if failure is not None:
            self._failure = self.blame(_loaded_error(failure))
        if seconds < _QUICK_S and self._size < self._batch:
            self._size = min(2 * self._size, self._batch)

    def _send(self, items: BufferedInput[Any]) -> None:
        under_way = self._under_way
        while (
            len(under_way) + bool(self._results) < self._concurrency
            and self._failure is None
            and not self.over
        ):
            batch: list[Any] = []
            while len(batch) < self._size and (item := items.poll()) is not EMPTY:
                batch.append(item)
            if not batch:
                return
            try:
                data, refused = _dumped_items(batch)
                future = self._submitted(data) if batch else None
            except BaseException:
                for item in batch:
                    hooks.drop_item(item)
                raise
            if future is not None:
                under_way.append(future)
                future.add_done_callback(self._heard)
            if refused is not None:
                self._refuse(items, refused)
                return

    def _refuse(self, items: BufferedInput[Any], error: BaseException) -> None:
        """End the flow with `error`, after the results so far: an item cannot be sent."""
        self._input = None
        self.disconnect(items)
        items.close()
        last: Future[_Outcome] = Future()
        last.set_exception(error)
        self._under_way.append(last)
        self.signal()  # the permit's holder looks at it after this

    def _submitted(self, batch: bytes) -> Future[_Outcome]:
        try:
            return self._pool.submit(run_batch, self._program, batch)
        except BrokenExecutor:
            raise
        except RuntimeError as error:
            raise RejectedExecutionError(
                f"{type(self._pool).__name__} took no task ({error}); end the flows that use a "
                "pool before it is shut down"
            ) from error

    def _heard(self, future: Future[_Outcome]) -> None:
        """Handle the end of a batch: it has results, has failed, or was dropped by the pool."""
        try:
            if self.over or self._under_way[0] is not future:
                return  # it is looked at together with the one before it
        except IndexError:  # by another thread, just now
            return
        if not future.cancelled() and future.exception() is None:
            self._look()
            return
        # From Python 3.12 on, a pool holds its lock while it fails or cancels batches, and a signal
        # from here may submit to that pool again, as a retry does. A separate thread may wait for
        # that lock, and for whatever else a retry does; the clock's thread may not, and others
        # serve a loop. This takes one thread, once in the life of a flow.
        try:
            Thread(target=self._look, name="flow-on-processes", daemon=True).start()
        except RuntimeError:  # no thread can start any more: the process is ending
            self._look()

    def _look(self) -> None:
        try:
            self._context.copy().run(self.signal)
        except BaseException as error:
            # On the pool's own thread, which must not end.
            hooks.drop_error(error)


# -- messages between the processes

_Failure: TypeAlias = tuple[bytes | None, str, str]
"""An exception: its pickle (None if it cannot be pickled), its text in one line, and its
traceback."""

_Outcome: TypeAlias = tuple[bytes, _Failure | None, float]
"""The pickled results of a batch, the error that ended it early, and the seconds that it took."""


def run_batch(program: bytes, batch: bytes) -> _Outcome:
    """Run the stages in a worker.

    Results are pickled here, in the worker, where an error can still be reported.
    """
    began = perf_counter()
    results: list[object] = []
    failure: _Failure | None = None
    try:
        results.extend(_loaded(program).iterate(iter(pickle.loads(batch))))
    except BaseException as error:  # SystemExit, too: the worker also serves other flows
        failure = _dumped_error(error)
    try:
        data = pickle.dumps(results)
    except Exception:
        data, failure = _dumped_prefix(results)
    return data, failure, perf_counter() - began


def _dumped_items(batch: list[Any]) -> tuple[bytes, Exception | None]:
    """Pickle a batch up to the first item that fails, and return the error of that item, too.

    That item and those after it are removed from the batch.
    """
    try:
        return pickle.dumps(batch), None
    except Exception as error:
        throw_if_fatal(error)
    for count, item in enumerate(batch):  # noqa: B007 - used after the loop
        refused = _refused(item)
        if refused is not None:
            break
    else:
        count, refused = 0, FlowError("items that can be pickled one by one, but not together")
    for item in batch[count:]:
        hooks.drop_item(item)
    del batch[count:]
    return pickle.dumps(batch), refused


def _refused(item: object) -> Exception | None:
    try:
        pickle.dumps(item)
    except Exception as error:
        error.add_note(f"an item of type {type(item).__name__} cannot be sent to a process")
        return error
    return None


@lru_cache(maxsize=16)
def _loaded(program: bytes) -> Program[Any, Any]:  # Any: the types of the stages
    main, dumped = pickle.loads(program)
    if main is not None:
        from multiprocessing import spawn

        spawn.prepare(main)
    try:
        loaded: Program[Any, Any] = pickle.loads(dumped)
    except AttributeError as error:
        if "__main__" in str(error):
            error.add_note(
                "what was typed in, or given to python -c, is in that process alone: put the "
                "functions of the stages into a module"
            )
        raise
    return loaded


def _main() -> dict[str, object]:
    """Return what an interpreter needs to import the script, as a spawned process does."""
    from multiprocessing import spawn

    data: dict[str, object] = spawn.get_preparation_data("flow")
    return {name: data[name] for name in data if name.startswith(("init_main", "sys_path"))}


def _dumped_prefix(results: list[object]) -> tuple[bytes, _Failure]:
    for count, result in enumerate(results):
        try:
            pickle.dumps(result)
        except Exception as error:
            error.add_note(f"{result!r} cannot be sent back from a process")
            return pickle.dumps(results[:count]), _dumped_error(error)
    raise FlowError("results that can be pickled one by one, but not together")


def _dumped_error(error: BaseException) -> _Failure:
    text = "".join(traceback.format_exception(error))
    data: bytes | None = None
    if not is_fatal(error):
        try:
            data = pickle.dumps(error)
            pickle.loads(data)  # an __init__ with other arguments only fails here
        except Exception:
            data = None
    return data, traceback.format_exception_only(error)[0].strip(), text


def _loaded_error(failure: _Failure) -> BaseException:
    data, line, text = failure
    loaded: object = None
    if data is not None:
        try:
            loaded = pickle.loads(data)
        except Exception:  # of a module that only the worker has
            loaded = None
    error: BaseException
    if isinstance(loaded, BaseException):
        error = loaded
    else:
        error = FlowError(f"a worker of the pool raised {line}")
    error.add_note(f"in a worker of the pool:\n{text}")
    return error


def _is_stateless(template: Template) -> bool:
    """Return whether a stage may handle each batch as if it were all there is."""
    lines = template.lines
    return not (
        template.remembers
        or lines.on_start
        or lines.on_end
        or lines.on_error
        or lines.on_close
        or lines.stops
    )


def _dumped(
    program: Program[Any, Any],  # Any: see _loaded
    label: str,
    *,
    for_interpreters: bool,
) -> bytes:
    """Pickle the stages, with what an interpreter has to import.

    Processes import that themselves.
    """
    main = _main() if for_interpreters else None
    try:
        return pickle.dumps((main, pickle.dumps(program)))
    except Exception as error:
        refused = next((stage for stage in program.stages if not _can_be_dumped(stage)), program)
        raise FlowError(
            f"{refused!r} cannot be sent to another process ({error}), behind {label}; give it a "
            "function of a module, or a functools.partial of one: lambdas, and functions within "
            "functions, cannot be pickled"
        ) from error


def _can_be_dumped(stage: _AnyStage) -> bool:
    try:
        pickle.dumps(stage)
    except Exception:
        return False
    return True
