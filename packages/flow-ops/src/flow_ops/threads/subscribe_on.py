"""`subscribe_on`: subscribes to the upstream, and requests, on an executor."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread, current_thread
from typing import Final, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.demand import add_demand
from flow_core.errors import RejectedExecutionError
from flow_core.executors import Executor, Runner, ScheduledTask, as_runner
from flow_core.flow import Flow
from flow_core.homes import task_context
from flow_core.operator import Operator
from flow_core.protocols import CoreSubscriber
from flow_ops.coordination import Passing, coordinated

__all__ = ["subscribe_on"]

T = TypeVar("T")


def subscribe_on(executor: Executor, *, request_on: bool = True) -> Operator[T, Flow[T]]:
    """Subscribe to the upstream on `executor`, and request there, so that a source works there.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from threading import current_thread
    >>> import flow_core as flow
    >>> pool = ThreadPoolExecutor(1, thread_name_prefix="reader")
    >>> lines = flow.defer(lambda: flow.just(current_thread().name))
    >>> list(lines.subscribe_on(pool))
    ['reader_0']
    >>> pool.shutdown()

    This affects the whole flow upstream of the operator, up to an operator with its own threads. To
    move the downstream, use `observe_on`.

    Demand: passed on. Demand that comes before the upstream is subscribed to is requested with the
    subscription. Later requests wait for the executor; at most one task waits there, which requests
    their sum. A request from the executor's own thread, where the upstream was last subscribed to
    or requested, needs no task: it is passed on at once.
    Thread: items come on the thread on which the upstream sends them, which is the executor's if it
    sends within `subscribe` or `request`. If the executor refuses a task, the
    RejectedExecutionError comes on the thread that has subscribed or requested; if the executor
    drops the task later, the error comes on a separate thread. A cancel stops a task that has not
    begun; the upstream is cancelled on the thread that cancels: see `cancel_on`.
    Fusion: none. It is conditional (see the glossary).
    Errors: the upstream's, and RejectedExecutionError, which cancels the upstream.

    Args:
        executor: an object with ``submit``, like a `concurrent.futures.ThreadPoolExecutor`, or a
            callable that gets a task to run: ``loop.call_soon_threadsafe``, ``lambda task:
            task()``. Keep it open as long as the flow runs.
        request_on: False to pass requests on in the thread that requests. Use this for a source
            that keeps its thread busy as long as it sends, and counts its demand meanwhile: with an
            executor of one thread, requests would wait until the source is done.

    Raises:
        TypeError: if `executor` is not an executor.
    """
    runner = as_runner(executor)
    detail = repr(runner)
    if not request_on:
        detail += ", request_on=False"
    return coordinated(
        "subscribe_on",
        detail,
        lambda flow, downstream, label: SubscribeOn(flow, runner, request_on, downstream, label),
    )


@final
class SubscribeOn(Passing[T]):
    """Runs `subscribe_on`.

    There is at most one task at a time that has not begun: the one that subscribes, or one that
    requests the demand that has come since the last task began. Tasks are numbered: so the handle
    of a task that has begun, or ended, never replaces the handle of a later task (O25).
    """

    __slots__ = (
        "_asked",
        "_context",
        "_handle",
        "_is_pending",
        "_request_on",
        "_run",
        "_runner",
        "_source",
        "_started",
        "_thread",
    )

    def __init__(
        self,
        source: Flow[T],
        runner: Runner,
        request_on: bool,
        downstream: CoreSubscriber[T],
        label: str,
    ) -> None:
        super().__init__(downstream, label)
        self._source = source
        self._runner = runner
        self._context: Final = task_context(self.home)
        self._request_on = request_on
        self._thread: Thread | None = None
        """The thread in which the last task runs, or has run."""
        # Guarded by the lock:
        self._asked = 0
        """The demand that the pending task passes on."""
        self._is_pending = False
        """True when a task was made and has not begun."""
        self._run = 0
        """The number of the last task that was made."""
        self._started = 0
        """The number of the last task that has begun."""
        self._handle: ScheduledTask | None = None
        """The pending task, once the executor has it."""

    @override
    def open(self) -> None:
        with self._lock:
            self._is_pending = True
        self._submit(self._subscribe)

    @override
    def requested(self, n: int) -> None:
        main = self._main
        if main is None:
            return
        if not self._request_on or self._thread is current_thread():
            main.request(n)
            return
        with self._lock:
            if main.upstream is None:  # the task that subscribes requests it
                main.pending = add_demand(main.pending, n)
                return
            self._asked = add_demand(self._asked, n)
            if self._is_pending:
                return
            self._is_pending = True
        self._submit(self._request)

    @override
    def closed(self) -> None:
        super().closed()
        with self._lock:
            handle, self._handle = self._handle, None
        if handle is not None:
            handle.cancel()

    def _submit(self, task: Callable[[], None]) -> None:
        """Have a task run. Only the thread that has set `_is_pending` calls this."""
        self._run = run = self._run + 1
        try:
            handle = self._runner.execute(task, self._rejected, self._context.copy())
        except RejectedExecutionError as error:
            self._rejected(error)
            return
        with self._lock:
            if self.over:
                pass
            elif self._started < run:
                self._handle = handle
                return
            else:
                return  # it has begun
        handle.cancel()

    def _begin(self) -> int:
        """Note that a task begins, in this thread.

        Return the demand that the task has to request.
        """
        self._thread = current_thread()
        with self._lock:
            self._started = self._run
            self._handle = None
            self._is_pending = False
            asked, self._asked = self._asked, 0
        return asked

    def _subscribe(self) -> None:
        """Run the task that subscribes."""
        self._begin()
        self.follow(self._source)

    def _request(self) -> None:
        """Run the task that requests."""
        asked = self._begin()
        main = self._main
        if main is not None and asked:
            main.request(asked)

    def _rejected(self, error: RejectedExecutionError) -> None:
        """Fail the flow: the executor refuses or drops a task (O30)."""
        if self.over:
            hooks.drop_error(error)
            return
        main = self._main
        self.post(self.fail, error, hooks.drop_error)
        if main is not None:
            self.disconnect(main)  # at once, though the downstream may be busy with an item
