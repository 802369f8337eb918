"""`combine_latest`: the latest items of several flows together."""

from __future__ import annotations

import builtins
from collections import deque
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar, final, overload

from typing_extensions import override

from flow_core import hooks
from flow_core.demand import DEFAULT_PREFETCH, check_prefetch, replenish_limit
from flow_core.errors import late_fusion
from flow_core.flow import Flow
from flow_core.introspection import Statistics
from flow_core.protocols import (
    EMPTY,
    CoreSubscriber,
    Empty,
    Fusion,
    Publisher,
    QueueSubscription,
)
from flow_core.sources import empty
from flow_ops.combine._sources import check_sources, described
from flow_ops.coordination import Coordinator, Listener, combined, coordinated_source, overflow

__all__ = ["combine_latest"]

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")
G = TypeVar("G")
H = TypeVar("H")


_WAKE_UP: Final[Any] = EMPTY  # Any: on_next takes it in the place of an item of any type (F26)


@overload
def combine_latest(
    a: Publisher[A],
    b: Publisher[B],
    /,
    *,
    prefetch: int = ...,
    delay_error: bool = ...,
) -> Flow[tuple[A, B]]: ...


@overload
def combine_latest(
    a: Publisher[A],
    b: Publisher[B],
    c: Publisher[C],
    /,
    *,
    prefetch: int = ...,
    delay_error: bool = ...,
) -> Flow[tuple[A, B, C]]: ...


@overload
def combine_latest(
    a: Publisher[A],
    b: Publisher[B],
    c: Publisher[C],
    d: Publisher[D],
    /,
    *,
    prefetch: int = ...,
    delay_error: bool = ...,
) -> Flow[tuple[A, B, C, D]]: ...


@overload
def combine_latest(
    a: Publisher[A],
    b: Publisher[B],
    c: Publisher[C],
    d: Publisher[D],
    e: Publisher[E],
    /,
    *,
    prefetch: int = ...,
    delay_error: bool = ...,
) -> Flow[tuple[A, B, C, D, E]]: ...


@overload
def combine_latest(
    a: Publisher[A],
    b: Publisher[B],
    c: Publisher[C],
    d: Publisher[D],
    e: Publisher[E],
    f: Publisher[F],
    /,
    *,
    prefetch: int = ...,
    delay_error: bool = ...,
) -> Flow[tuple[A, B, C, D, E, F]]: ...


@overload
def combine_latest(
    a: Publisher[A],
    b: Publisher[B],
    c: Publisher[C],
    d: Publisher[D],
    e: Publisher[E],
    f: Publisher[F],
    g: Publisher[G],
    /,
    *,
    prefetch: int = ...,
    delay_error: bool = ...,
) -> Flow[tuple[A, B, C, D, E, F, G]]: ...


@overload
def combine_latest(
    a: Publisher[A],
    b: Publisher[B],
    c: Publisher[C],
    d: Publisher[D],
    e: Publisher[E],
    f: Publisher[F],
    g: Publisher[G],
    h: Publisher[H],
    /,
    *,
    prefetch: int = ...,
    delay_error: bool = ...,
) -> Flow[tuple[A, B, C, D, E, F, G, H]]: ...


@overload
def combine_latest(
    *sources: Publisher[T], prefetch: int = ..., delay_error: bool = ...
) -> Flow[tuple[T, ...]]: ...


def combine_latest(
    *sources: Publisher[Any],  # Any, here and below: the flows are of many types
    prefetch: int = DEFAULT_PREFETCH,
    delay_error: bool = False,
) -> Flow[Any]:
    """Each item of any flow, together with the latest items of all the others.

    >>> import flow_core as flow
    >>> list(flow.combine_latest(flow.just(1, 2), flow.just("a", "b")))
    [(2, 'a'), (2, 'b')]

    Nothing comes until each flow has emitted an item. The result completes when all flows have, or
    as soon as one completes without an item. Without flows the result is empty.

    Demand: exact; `prefetch` items are requested of each source, and 75 % of that again whenever as
    many of its items were delivered. Combinations that are not requested yet wait, in the order in
    which they arose.
    Thread: that of the source whose item it is; a combination that had to wait comes on whichever
    thread is at work.
    Fusion: grants ASYNC, across threads, too. Then all combinations wait until the downstream polls
    them. The end comes as soon as the last combination was polled. The sources are not asked for
    fusion.
    Errors: the first one cancels the others, and overtakes the items that wait.

    Args:
        sources: the flows to combine. They are subscribed in this order.
        prefetch: items to request of each ahead, and the most of each that wait.
        delay_error: whether errors come when all flows have ended; several are raised as an
            ExceptionGroup.

    Returns:
        A flow that fails with MissingBackpressureError if a source sends more than was requested
        and there is no room.

    Raises:
        TypeError: if a source is not a publisher, or `prefetch` is not an int.
        ValueError: if `prefetch` is less than 1.
    """
    check_sources("combine_latest", sources)
    check_prefetch(prefetch)
    if not sources:
        return empty()
    return coordinated_source(
        "combine_latest",
        described(len(sources), None),
        lambda downstream, label: CombineLatest(
            sources, downstream, label, prefetch=prefetch, delay_error=delay_error
        ),
        prefetch,
        sources,
    )


@final
class _Latest:
    """One of the flows: its latest item, and the demand for its items.

    Args:
        owner: the operator that combines the items.
        prefetch: items to request ahead, and the most that wait.
    """

    __slots__ = ("_limit", "_taken", "began", "item", "left", "listener", "prefetch")

    def __init__(self, owner: CombineLatest, prefetch: int) -> None:
        self.item: Any | Empty = EMPTY
        self.prefetch = prefetch
        self._limit = replenish_limit(prefetch)
        self._taken = 0
        """Items taken since the last request. Written by the thread that takes them."""
        self.began = 0
        """The number of this flow's items whose combinations had to wait. Written with
        the permit."""
        self.left = 0
        """The number of these items that no longer wait. Written by the thread that takes them."""
        self.listener: Listener[Any] | None = Listener(
            owner, partial(owner._on_item, self), partial(owner._on_end, self), prefetch
        )

    def taken(self) -> None:
        """Count a delivered item, and request more items when enough were delivered."""
        self._taken += 1
        if self._taken == self._limit:
            self._taken = 0
            listener = self.listener  # read once: the downstream may poll while the flow ends
            if listener is not None:
                listener.request(self._limit)

    def close(self) -> None:
        """Drop the references, so that no cycle is left when the flow has ended."""
        self.item = EMPTY
        self.listener = None


@final
class CombineLatest(Coordinator[tuple[Any, ...]], QueueSubscription[tuple[Any, ...]]):
    """Runs `combine_latest`.

    A combination that waits is one entry of the queue: the row of the items that were the latest
    when an item came. The end comes when no combination waits.
    """

    __slots__ = (
        "_delay_error",
        "_errors",
        "_flows",
        "_latest",
        "_left",
        "_missing",
        "_negotiable",
        "_shared",
        "_waiting",
    )

    def __init__(
        self,
        flows: tuple[Publisher[Any], ...],
        downstream: CoreSubscriber[tuple[Any, ...]],
        label: str,
        *,
        prefetch: int,
        delay_error: bool,
    ) -> None:
        super().__init__(downstream, label)
        self._flows = flows
        self._delay_error = delay_error
        self._errors: list[BaseException] = []
        self._left = self._missing = len(flows)
        """The number of flows that have not ended, and of flows that have not emitted an item
        yet."""
        self._waiting: deque[tuple[_Latest, tuple[Any, ...]]] = deque()
        self._latest = tuple(_Latest(self, prefetch) for _ in flows)
        self._negotiable = True
        """True while the downstream may ask for fusion: in its on_subscribe, once (F24)."""
        self._shared = False
        """True if the downstream polls."""

    @override
    def introduced(self) -> None:
        self._negotiable = False
        super().introduced()

    @override
    def open(self) -> None:
        for source, latest in builtins.zip(self._flows, self._latest, strict=False):
            listener = latest.listener
            if self.over or listener is None:
                return
            self.connect(source, listener)

    @override
    def step(self) -> None:
        waiting = self._waiting
        while waiting and not self._shared and self.demand and not self.over:
            latest, row = waiting.popleft()
            latest.left += 1
            self.emit(row)
            latest.taken()
        if not (self._left or waiting or self.over):
            self._end()

    @override
    def closed(self) -> None:
        self.clear()
        every, self._latest = self._latest, ()
        for latest in every:
            latest.close()
        errors, self._errors = self._errors, []
        for error in errors:
            hooks.drop_error(error)

    @property
    @override
    def buffered(self) -> int:
        return len(self._waiting)

    def _on_item(self, latest: _Latest, item: Any) -> bool:
        """Take the next item of a flow; return False if a further item is wanted in its place."""
        if latest.item is EMPTY:
            self._missing -= 1
        latest.item = item
        if self._missing:
            return False
        row = tuple(each.item for each in self._latest)
        if self.demand and not (self._waiting or self._shared):
            self.emit(row)
            latest.taken()
        elif latest.began - latest.left < latest.prefetch:
            latest.began += 1
            self._waiting.append((latest, row))
            if self._shared:
                self._wake()
        else:
            hooks.drop_item(row)
            self.fail(overflow(self.label, latest.prefetch))
        return True

    def _on_end(self, latest: _Latest, error: BaseException | None) -> None:
        self._left -= 1
        if error is not None:
            self._errors.append(error)
            if not self._delay_error:
                self._end()
                return
        if latest.item is EMPTY:
            self._end()
        # If it was the last one, `step` comes next.

    def _end(self) -> None:
        errors, self._errors = self._errors, []
        if errors:
            self.fail(combined(self.label, errors))
        else:
            self.complete()

    def _wake(self) -> None:
        """Tell the downstream that there is something to poll. The caller must hold the permit."""
        downstream = self._downstream
        if downstream is None:
            return
        try:
            downstream.on_next(_WAKE_UP)
        except BaseException as error:
            self._raised(error)

    # -- towards a downstream that polls

    @override
    def request_fusion(self, mode: Fusion, /) -> Fusion:
        """Grant ASYNC, across threads, too."""
        if not self._negotiable or self._requested or self._bad is not None:
            raise late_fusion()
        self._negotiable = False
        granted = mode & Fusion.ASYNC
        self._shared = bool(granted)
        return granted

    @override
    def poll(self) -> tuple[Any, ...] | Empty:
        """Return the next combination, and request more of the source whose item completed it.

        A request is made whenever 75 % of the prefetch were taken from that source.
        """
        waiting = self._waiting
        if not waiting or self.over:
            return EMPTY  # the downstream polls until it finds nothing
        try:
            latest, row = waiting.popleft()
        except IndexError:  # emptied by a cancel or an error meanwhile
            return EMPTY
        latest.left += 1
        latest.taken()
        if not (self._left or waiting):
            self.signal()  # the end waits for it: the last input looks at `_waiting` after `_left`
        return row

    @override
    def is_empty(self) -> bool:
        return self.over or not self._waiting

    @override
    def clear(self) -> None:
        """Drop the combinations that wait. An item may be part of several combinations."""
        waiting = self._waiting
        while True:
            try:
                _, row = waiting.popleft()
            except IndexError:  # the downstream may be polling at the same time
                return
            hooks.drop_item(row)

    @override
    def statistics(self) -> Statistics:
        told = super().statistics()
        return replace(told, requested=None, fusion=Fusion.ASYNC) if self._shared else told
