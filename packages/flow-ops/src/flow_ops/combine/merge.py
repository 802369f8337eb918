"""`merge`: the items of several flows, as they come."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TypeVar, final

from flow_core import hooks
from flow_core.demand import DEFAULT_PREFETCH, check_prefetch, replenish_limit
from flow_core.errors import none_given
from flow_core.flow import Flow
from flow_core.protocols import CoreSubscriber, Publisher
from flow_ops.coordination import Coordinator, Input, coordinated_source
from flow_ops.transform._inner import combined

__all__ = ["MergedInput", "Merging", "merge"]

T = TypeVar("T")

MAX_CONCURRENCY = 128
"""How many inner flows run at a time, unless the user says."""


def merge(
    *sources: Publisher[T],
    max_concurrency: int = MAX_CONCURRENCY,
    prefetch: int = DEFAULT_PREFETCH,
    delay_error: bool = False,
) -> Flow[T]:
    """The items of several flows, as they come; completes when all have.

    >>> import flow_core as flow
    >>> list(merge(flow.range(2), flow.just("a")))
    [0, 1, 'a']

    Demand: exact; `prefetch` items are requested of each source, and 75 % of that again whenever as
    many were taken. What waits is given in the order in which it came.
    Thread: items come on the threads of the sources, one at a time; what waited for demand or for
    another thread's item, on whichever thread is at work. Fusion: none.
    Errors: the first one cancels the others, and overtakes what waits.

    Args:
        sources: what to merge. They are subscribed in this order.
        max_concurrency: how many of them run at a time; the others follow as these complete.
        prefetch: items to request of each ahead, and the most of each that wait.
        delay_error: whether errors come when all sources have ended; several as an ExceptionGroup.

    Raises:
        TypeError: if `max_concurrency` or `prefetch` is no int.
        ValueError: if one of them is less than 1.
    """
    check_prefetch(max_concurrency, "max_concurrency")
    check_prefetch(prefetch)
    detail = f"{len(sources)} flows"
    return coordinated_source(
        "merge",
        detail,
        lambda downstream, label: Merge(
            sources,
            downstream,
            label,
            max_concurrency=max_concurrency,
            prefetch=prefetch,
            delay_error=delay_error,
        ),
        prefetch,
    )


class Merging(Coordinator[T]):
    """Gives the items of inner flows as they come. A subclass says which flows: by `add`.

    Args:
        downstream: gets the signals.
        label: the operator and its place, for messages.
        prefetch: items to request of each ahead.
        delay_error: whether errors come at the end.
    """

    __slots__ = ("_delay_error", "_errors", "_prefetch", "_waiting", "exhausted")

    def __init__(
        self, downstream: CoreSubscriber[T], label: str, *, prefetch: int, delay_error: bool
    ) -> None:
        super().__init__(downstream, label)
        self._prefetch = prefetch
        self._delay_error = delay_error
        self._errors: list[BaseException] = []
        self._waiting: deque[tuple[MergedInput[T], T]] = deque()
        """Items that came when there was no demand, or when another one was on its way."""
        self.exhausted = False
        """No further flow will be added: it ends when all inputs have. Signal when it is set."""

    def add(self, source: Publisher[T]) -> None:
        """Run an inner flow. Better without the permit: with it, all that comes at once waits."""
        self.connect(source, MergedInput(self, self._prefetch))

    def ended(self) -> None:
        """An inner flow has completed, or failed and that is delayed. With the permit."""

    def keep(self, error: BaseException) -> None:
        """An inner flow has failed: the flow fails, now or at the end. With the permit."""
        self._errors.append(error)
        if not self._delay_error:
            self._finish_all()

    def step(self) -> None:
        """See `Coordinator.step`."""
        waiting = self._waiting
        while waiting and self.demand and not self.over:
            source, item = waiting.popleft()
            self.emit(item)
            source.taken()
        if self.exhausted and not (waiting or self.active or self.over):
            self._finish_all()

    def closed(self) -> None:
        """See `Coordinator.closed`."""
        waiting = self._waiting
        while waiting:
            _, item = waiting.popleft()
            hooks.drop_item(item)
        errors, self._errors = self._errors, []
        for error in errors:
            hooks.drop_error(error)

    @property
    def buffered(self) -> int:
        """See `Coordinator.buffered`."""
        return len(self._waiting)

    def _finish_all(self) -> None:
        errors, self._errors = self._errors, []
        if errors:
            self.fail(combined(self.label, errors))
        else:
            self.complete()

    def _ended(self, error: BaseException | None) -> None:
        if error is not None:
            self.keep(error)
        if not self.over:
            self.ended()


@final
class MergedInput(Input[T]):
    """One of the flows that are merged.

    Args:
        owner: merges.
        prefetch: items to request ahead, and the most that wait.
    """

    __slots__ = ("_came", "_limit", "_prefetch", "_taken", "merging")

    def __init__(self, owner: Merging[T], prefetch: int) -> None:
        super().__init__(owner, prefetch)
        self.merging = owner
        self._prefetch = prefetch
        self._limit = replenish_limit(prefetch)
        self._came = 0
        """Items that had to wait. Written by the source's thread."""
        self._taken = 0
        """Items that were given on. Written with the permit."""

    def on_next(self, item: T, /) -> None:
        """See `Subscriber.on_next`. Given on at once if nobody else is at work."""
        if item is None:
            raise none_given("on_next")
        owner = self.merging
        if self.done:
            hooks.drop_item(item)
            return
        waiting, permit = owner._waiting, owner._permit
        if waiting or not permit.pop(0, False):
            self._wait(item)
            owner.signal()
            return
        try:
            if owner.over:
                hooks.drop_item(item)
            elif waiting or owner._emitted >= owner._requested:
                self._wait(item)
            else:
                owner.emit(item)
                self.taken()
        except BaseException as error:
            owner._failed(error)
        finally:
            permit[0] = True
            if owner._missed or owner.over:
                owner.signal()

    def _wait(self, item: T) -> None:
        owner = self.merging
        self._came += 1
        owner._waiting.append((self, item))

    def taken(self) -> None:
        """An item was given on: request more when enough were. With the permit."""
        self._taken += 1
        if self._taken == self._limit:
            self._taken = 0
            upstream = self.upstream
            if upstream is not None:
                upstream.request(self._limit)

    def on_error(self, error: BaseException, /) -> None:
        """See `Subscriber.on_error`."""
        if error is None:
            raise none_given("on_error")
        if self.done:
            hooks.drop_error(error)
            return
        self.done = True
        self.owner.post(self._end, error, hooks.drop_error)

    def on_complete(self) -> None:
        """See `Subscriber.on_complete`."""
        if not self.done:
            self.done = True
            self.owner.post(self._end, None)

    def _end(self, error: BaseException | None) -> None:
        self.owner.release(self)
        self.merging._ended(error)


@final
class Merge(Merging[T]):
    """See `merge`."""

    __slots__ = ("_filled", "_left", "_max_concurrency")

    def __init__(
        self,
        sources: Iterable[Publisher[T]],
        downstream: CoreSubscriber[T],
        label: str,
        *,
        max_concurrency: int,
        prefetch: int,
        delay_error: bool,
    ) -> None:
        super().__init__(downstream, label, prefetch=prefetch, delay_error=delay_error)
        self._left: Iterator[Publisher[T]] = iter(sources)
        self._max_concurrency = max_concurrency
        self._filled = False
        """`open` is done with `_left`."""

    def open(self) -> None:
        """See `Coordinator.open`."""
        self._fill()
        self._filled = True
        self.post(self._fill_again, None)

    def ended(self) -> None:
        """See `Merging.ended`."""
        if self._filled:
            self._fill()

    def _fill_again(self, _: object) -> None:
        self._fill()

    def _fill(self) -> None:
        """Start flows; first by `open`, and with the permit from then on."""
        while not (self.over or self.exhausted) and self.active < self._max_concurrency:
            source = next(self._left, None)
            if source is None:
                self.exhausted = True
            else:
                self.add(source)
