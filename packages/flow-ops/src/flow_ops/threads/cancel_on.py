"""`cancel_on`: cancels the upstream on an executor."""

from __future__ import annotations

from typing import Any, TypeVar, final

from typing_extensions import override

from flow_core.errors import RejectedExecutionError
from flow_core.executors import Executor, Runner, as_runner
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import CoreSubscriber, Subscription
from flow_ops.coordination import Input, Passing, coordinated

__all__ = ["cancel_on"]

T = TypeVar("T")


def cancel_on(executor: Executor) -> Operator[T, Flow[T]]:
    """Cancel the upstream on `executor`, if its cancel blocks or must run on a certain thread.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from threading import current_thread
    >>> import flow_core as flow
    >>> pool, places = ThreadPoolExecutor(1, thread_name_prefix="closer"), []
    >>> ticks = flow.never().do_on_cancel(lambda: places.append(current_thread().name))
    >>> ticks.cancel_on(pool).subscribe(print).dispose()
    >>> pool.shutdown()  # waits until the cancel has run
    >>> places
    ['closer_0']

    After a cancel no more items come, though the upstream is cancelled a little later: until then,
    its items go to the dropped-items hook.

    Demand: passed on. Thread: that of the upstream; only the cancel moves to another thread. If the
    executor refuses the task, the upstream is cancelled on the thread that cancels; if the executor
    drops the task later, on a separate thread.
    Fusion: none. It is conditional (see the glossary).

    Args:
        executor: see `subscribe_on`.

    Raises:
        TypeError: if `executor` is not an executor.
    """
    runner = as_runner(executor)
    return coordinated(
        "cancel_on",
        repr(runner),
        lambda flow, downstream, label: CancelOn(flow, runner, downstream, label),
    )


@final
class CancelOn(Passing[T]):
    """Runs `cancel_on`."""

    __slots__ = ("_runner", "_source")

    def __init__(
        self, source: Flow[T], runner: Runner, downstream: CoreSubscriber[T], label: str
    ) -> None:
        super().__init__(downstream, label)
        self._source = source
        self._runner = runner

    @override
    def open(self) -> None:
        self.follow(self._source)

    @override
    def admit(self, one: Input[Any], subscription: Subscription) -> int:  # Any: see Coordinator
        elsewhere = _CancelledElsewhere(subscription, self._runner)
        pending = super().admit(one, elsewhere)
        if pending < 0:
            elsewhere.cancel()
            return 0
        return pending


@final
class _CancelledElsewhere(Subscription):
    """A subscription whose cancel runs on a runner."""

    __slots__ = ("_runner", "_subscription")

    def __init__(self, subscription: Subscription, runner: Runner) -> None:
        self._subscription = subscription
        self._runner = runner

    @override
    def request(self, n: int, /) -> None:
        self._subscription.request(n)

    @override
    def cancel(self) -> None:
        cancel = self._subscription.cancel
        try:
            self._runner.execute(cancel, lambda _: cancel())
        except RejectedExecutionError:
            cancel()
