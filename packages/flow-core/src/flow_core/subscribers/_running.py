"""The methods that run a flow to its end, or for its first, last or only item."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from flow_core.errors import NoItemError, TooManyItemsError
from flow_core.stages._filtering import Filtering
from flow_core.stages._template import UNSET
from flow_core.subscribers._awaiting import await_single, iterate_async, run_to_end
from flow_core.subscribers._each import do_each, do_each_async
from flow_core.surface.ops import OpsMethods

if TYPE_CHECKING:
    from concurrent.futures import Future

    from flow_core.backoff import Backoff
    from flow_core.clocks import Clock, Seconds
    from flow_core.executors import Executor

__all__ = ["Running"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Running(Filtering[T_co], OpsMethods[T_co], Generic[T_co]):
    """The methods that run a flow to its end, or for its first, last or only item."""

    __slots__ = ()

    @abstractmethod
    def __iter__(self) -> Iterator[T_co]:
        """Run the flow, and yield its items."""

    def last(self) -> T_co:
        """Return the last item; blocks until the flow has completed.

        >>> import flow_core as flow
        >>> flow.range(3).last()
        2

        Raises:
            NoItemError: if there is no item.
        """
        found: Any = UNSET  # Any: an item, or UNSET
        for found in self:  # noqa: B007 - the last one is wanted
            pass
        if found is UNSET:
            raise NoItemError(
                "last(): the flow has no item; last_or_default(item).last() gives one instead"
            )
        return cast("T_co", found)  # it is not UNSET

    def single(self) -> T_co:
        """Return the only item; blocks until the flow has completed.

        >>> import flow_core as flow
        >>> flow.range(3).sum().single()
        3

        Raises:
            NoItemError: if there is no item.
            TooManyItemsError: if there is more than one item.
        """
        found: Any = UNSET  # Any: an item, or UNSET
        for item in _closing(iter(self)):
            if found is not UNSET:
                raise TooManyItemsError("single(): the flow has more than one item")
            found = item
        if found is UNSET:
            raise NoItemError("single(): the flow has no item")
        return cast("T_co", found)  # it is not UNSET

    def run(self) -> None:
        """Run the flow to its end, for its effects; its items are dropped. Blocks.

        >>> import flow_core as flow
        >>> flow.range(2).do_on_next(print).run()
        0
        1

        Raises:
            Exception: the error with which the flow has failed.
            BlockingInEventLoopError: in the thread of a running event loop, or of all timers.
        """
        items = iter(self)
        try:
            deque(items, maxlen=0)
        finally:
            close = getattr(items, "close", None)
            if close is not None:
                close()

    def run_async(self) -> Coroutine[Any, Any, None]:  # Any: the types that the loop sends and gets
        """Run the flow to its end, as `run` does, but in an event loop.

        >>> import asyncio
        >>> import flow_core as flow
        >>> asyncio.run(flow.range(2).do_on_next(print).run_async())
        0
        1

        When it returns, raises, or is cancelled, all tasks of the flow have ended.

        Raises:
            Exception: the error with which the flow has failed.
        """
        return run_to_end(iterate_async(self._whole(), None))

    def for_each(
        self,
        action: Callable[[T_co], object],
        concurrency: int = 1,
        *,
        executor: Executor | None = None,
        retry: int | Backoff = 0,
        backoff: Backoff | Seconds | None = None,
        timeout: Seconds | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Run the flow to its end, and call a function for each item. Blocks.

        >>> import flow_core as flow
        >>> flow.range(2).for_each(print)
        0
        1

        Without other arguments, this is a ``for`` loop: the function is called in this thread, for
        one item after the other. If it is a coroutine function, each of its coroutines is awaited,
        in one event loop for the process. With any other argument, `do_concurrent` calls the
        function; items may then be done in any order.

        Args:
            action: called with an item; its result is not used. It may be a coroutine function.
            concurrency: how many items are worked on at the same time.
            executor: see `do_concurrent`; the arguments that follow are also explained there.
            retry: how often a failed item is tried again: at once, or as `backoff` says.
            backoff: how long to wait before an item is tried again: a time in seconds, which grows,
                or a `Backoff`.
            timeout: how long each try of a coroutine function may take, in seconds.
            clock: the clock that measures `timeout` and `backoff`.

        Raises:
            TypeError: if `action` cannot be called.
            Exception: the error of the flow, or of `action`; the latter cancels the flow.
            BlockingInEventLoopError: in the thread of a running event loop, or of all timers.
        """
        if not callable(action):
            raise TypeError(f"for_each() takes a function, not {action!r}")
        plain = retry == 0 and backoff is None and timeout is None
        if concurrency == 1 and executor is None and plain:
            do_each(self._whole(), action)
        else:
            self.do_concurrent(
                action,
                concurrency,
                executor=executor,
                ordered=False,
                retry=retry,
                backoff=backoff,
                timeout=timeout,
                clock=clock,
            ).run()

    def for_each_async(
        self,
        action: Callable[[T_co], object],
        concurrency: int = 1,
        *,
        executor: Executor | None = None,
        retry: int | Backoff = 0,
        backoff: Backoff | Seconds | None = None,
        timeout: Seconds | None = None,
        clock: Clock | None = None,
    ) -> Coroutine[Any, Any, None]:  # Any: the types that the loop sends and gets
        """Do the same as `for_each`, but in an event loop: ``await flow.for_each_async(send, 10)``.

        >>> import asyncio
        >>> import flow_core as flow
        >>> async def send(n: int) -> None:
        ...     await asyncio.sleep(0)
        ...     print(n)
        >>> asyncio.run(flow.range(2).for_each_async(send))
        0
        1

        When it returns, raises, or is cancelled, all tasks of the flow have ended.

        Args:
            action: called with an item; if it is a coroutine function, its coroutine is awaited.
            concurrency: how many items are worked on at the same time.
            executor: see `do_concurrent`; the arguments that follow are also explained there.
            retry: how often a failed item is tried again: at once, or as `backoff` says.
            backoff: how long to wait before an item is tried again: a time in seconds, which grows,
                or a `Backoff`.
            timeout: how long each try of a coroutine function may take, in seconds.
            clock: the clock that measures `timeout` and `backoff`.

        Raises:
            TypeError: if `action` cannot be called; raised at once, and not when the result is
                awaited.
            Exception: the error of the flow, or of `action`.
        """
        if not callable(action):
            raise TypeError(f"for_each_async() takes a function, not {action!r}")
        plain = retry == 0 and backoff is None and timeout is None
        if concurrency == 1 and executor is None and plain:
            return do_each_async(self._whole(), action)
        return self.do_concurrent(
            action,
            concurrency,
            executor=executor,
            ordered=False,
            retry=retry,
            backoff=backoff,
            timeout=timeout,
            clock=clock,
        ).run_async()

    def to_future(self) -> Future[T_co]:
        """Run the flow, and return a `concurrent.futures.Future` of its only item.

        Cancelling the future cancels the flow.

        >>> import flow_core as flow
        >>> flow.range(3).sum().to_future().result()
        3
        """
        from flow_core.subscribers._futures import single_future

        return single_future(self._whole())

    def __await__(self) -> Generator[Any, Any, T_co]:  # Any: the types that the loop sends and gets
        return await_single(self._whole()).__await__()


def _closing(iterator: Iterator[T]) -> Iterator[T]:
    """Yield from `iterator`, and close it if this generator is left early."""
    try:
        yield from iterator
    finally:
        close = getattr(iterator, "close", None)
        if close is not None:
            close()
