"""`zip` and `zip_with`: the n-th items of several flows together."""

from __future__ import annotations

import builtins
from collections import deque
from collections.abc import Iterator
from typing import Any, Final, TypeVar, final, overload

from typing_extensions import override

from flow_core import hooks
from flow_core.assembly import labelled
from flow_core.demand import DEFAULT_PREFETCH, check_prefetch
from flow_core.flow import Flow, check_order
from flow_core.operator import Operator
from flow_core.protocols import (
    EMPTY,
    CoreSubscriber,
    Empty,
    IterableSource,
    Publisher,
    Subscription,
)
from flow_core.sources import empty
from flow_core.stages import Program, close_iterator, exhausted
from flow_core.structure import stages_of
from flow_ops.combine._sources import check_sources, described, take_errors
from flow_ops.coordination import BufferedInput, Coordinated, Coordinator, Input, combined
from flow_ops.transform._inner import inline_source

__all__ = ["zip", "zip_with"]

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")
G = TypeVar("G")
H = TypeVar("H")

_AnyFlow = Flow[Any]  # Any, here and below: the flows are of many types


@overload
def zip(
    a: Publisher[A],
    b: Publisher[B],
    /,
    *,
    prefetch: int = ...,
    delay_error: bool = ...,
) -> Flow[tuple[A, B]]: ...


@overload
def zip(
    a: Publisher[A],
    b: Publisher[B],
    c: Publisher[C],
    /,
    *,
    prefetch: int = ...,
    delay_error: bool = ...,
) -> Flow[tuple[A, B, C]]: ...


@overload
def zip(
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
def zip(
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
def zip(
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
def zip(
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
def zip(
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
def zip(
    *sources: Publisher[T], prefetch: int = ..., delay_error: bool = ...
) -> Flow[tuple[T, ...]]: ...


def zip(
    *sources: Publisher[Any],
    prefetch: int = DEFAULT_PREFETCH,
    delay_error: bool = False,
) -> Flow[Any]:
    """The first items of all flows together, then the second ones, and so on.

    >>> import flow_core as flow
    >>> list(flow.zip(flow.range(3), flow.just("a", "b", "c")))
    [(0, 'a'), (1, 'b'), (2, 'c')]
    >>> list(flow.zip(flow.range(9), flow.just("a", "b")).starmap(lambda n, letter: letter * n))
    ['', 'b']

    The result completes as soon as one of the flows has ended and its last item was used; the
    others are cancelled then. Without flows the result is empty.

    Demand: exact. `prefetch` items are requested of a source that pushes, and 75 % of that again
    whenever as many were used. Without demand no item is taken.
    Thread: that of the source whose item was the last one missing, or of the requester. Iteration:
    when all sources are synchronous iterables, they are iterated over side by side, in one loop,
    which ``for`` or the subscription compiles from them and the stages that follow. In such a loop,
    a cancel from another thread takes effect between two rows.
    Fusion: such a loop grants SYNC, and not across threads if it calls functions of the user.
    Otherwise sources with SYNC or ASYNC are polled; an asynchronous one learns that it may be
    polled on another thread.
    Errors: the first one cancels the other flows and overtakes the items that wait, except that an
    iterable fails after its items. An item without a partner is dropped.

    Args:
        sources: the flows to take items from. They are subscribed in this order.
        prefetch: items to request of each ahead, and the most of each that wait.
        delay_error: whether the error of a flow comes after its items; several are raised as an
            ExceptionGroup.

    Raises:
        TypeError: if a source is not a publisher, or `prefetch` is not an int.
        ValueError: if `prefetch` is less than 1.
    """
    for source in sources:
        check_order(source, "zip()")
    _check("zip", sources, prefetch)
    if not sources:
        return empty()
    label = labelled("zip", described(len(sources), None))
    return _assembled(sources, prefetch, delay_error, label)


def zip_with(
    other: Publisher[B], *, prefetch: int = DEFAULT_PREFETCH, delay_error: bool = False
) -> Operator[A, Flow[tuple[A, B]]]:
    """Each item together with the item of `other` at the same place; see `zip`.

    >>> import flow_core as flow
    >>> list(flow.just("a", "b").pipe(zip_with(flow.range(9))))
    [('a', 0), ('b', 1)]

    Args:
        other: the second flow; it is subscribed second.
        prefetch: items to request of each ahead, and the most of each that wait.
        delay_error: whether the error of a flow comes after its items.

    Raises:
        TypeError: if `other` is not a publisher, or `prefetch` is not an int.
        ValueError: if `prefetch` is less than 1.
    """
    _check("zip_with", (other,), prefetch)
    check_order(other, "zip_with()")
    detail = described(2, None)
    label = labelled("zip_with", detail)

    def apply(flow: Flow[A]) -> Flow[tuple[A, B]]:
        made: Flow[Any] = _assembled((flow, other), prefetch, delay_error, label)
        return made

    return Operator("zip_with", apply, detail)


def _check(name: str, sources: tuple[Publisher[Any], ...], prefetch: int) -> None:
    check_sources(name, sources)
    check_prefetch(prefetch)


def _assembled(
    sources: tuple[Publisher[Any], ...], prefetch: int, delay_error: bool, label: str
) -> Flow[tuple[Any, ...]]:
    def make(downstream: CoreSubscriber[tuple[Any, ...]], label: str) -> Zip:
        return Zip(sources, downstream, label, prefetch=prefetch, delay_error=delay_error)

    flows = tuple(source for source in sources if isinstance(source, Flow))
    if len(flows) < len(sources) or not all(map(_iterated, flows)):
        return Flow(Coordinated(make, label, prefetch, sources))
    return Flow(IterableZip(flows, label))


def _iterated(flow: _AnyFlow) -> bool:
    """Return whether `flow` can be iterated over beside others.

    A flow with a stage that has to see the end cannot: a loop that has not begun would not run that
    stage.
    """
    return inline_source(flow) is not None and not Program[Any, Any](stages_of(flow)).shape.closes


@final
class IterableZip(IterableSource[tuple[Any, ...]]):
    """Flows that are iterated over side by side.

    Args:
        flows: flows whose sources are iterables.
        label: the operator and where it was assembled, for messages.
    """

    __slots__ = ("_label", "calls_user_code", "upstreams")

    none_free = True

    def __init__(self, flows: tuple[_AnyFlow, ...], label: str) -> None:
        self.upstreams = flows
        self._label = label
        self.calls_user_code = any(map(_calls_user_code, flows))

    @override
    def iterate(self) -> Iterator[tuple[Any, ...]]:
        iterators: list[Iterator[Any]] = []
        try:
            for flow in self.upstreams:
                iterators.append(flow.iterate())  # noqa: PERF401 - those that are open are closed
        except BaseException:
            _close_all(iterators)
            raise
        if any(map(exhausted, iterators)):  # known without an item, so demand is not needed
            _close_all(iterators)
            return iter(())
        rows = _tuples(iterators)
        next(rows)  # it has begun: from now on, closing it closes the iterators
        return rows

    def __repr__(self) -> str:
        return self._label


def _calls_user_code(flow: _AnyFlow) -> bool:
    source = inline_source(flow)
    return (source is not None and source.calls_user_code) or any(
        stage.template.calls_user_code for stage in stages_of(flow)
    )


def _tuples(iterators: list[Iterator[Any]]) -> Iterator[Any]:
    """Yield rows; first yield something that is not a row, so that the generator has begun."""
    try:
        yield EMPTY
        yield from builtins.zip(*iterators)  # noqa: B905 - ends with the shortest
    finally:
        _close_all(iterators)


def _close_all(iterators: list[Iterator[Any]]) -> None:
    """Close all iterators that are generators, even if a ``finally`` block of one raises."""
    failure: BaseException | None = None
    while iterators:
        try:
            close_iterator(iterators.pop())
        except BaseException as error:
            if failure is not None:
                hooks.drop_error(failure)
            failure = error
    if failure is not None:
        try:
            raise failure
        finally:
            del failure  # so that there is no cycle with this frame


@final
class Zip(Coordinator[tuple[Any, ...]]):
    """Runs `zip`.

    The cost of an item depends only on the sources that become ready by it, not on the number of
    sources.
    """

    __slots__ = (
        "_all",
        "_delay_error",
        "_ending",
        "_ends",
        "_flows",
        "_nothing",
        "_open",
        "_places",
        "_row",
        "_sources",
        "wanted",
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
        self._sources: tuple[ZippedInput, ...] = tuple(
            ZippedInput(self, prefetch, place) for place in range(len(flows))
        )
        if len(flows) == 2:
            one, other = self._sources
            one.other, other.other = other, one
        self._places: dict[Input[Any], int] = {one: one.place for one in self._sources}
        self.wanted: ZippedInput | None = None
        """The source that the row waits for, if there is demand; this source reports its next
        item."""
        self._nothing: Final[list[Any | Empty]] = [EMPTY] * len(flows)
        self._row: list[Any | Empty] = self._nothing[:]
        """The items that wait for the missing ones of their row; at least one is missing."""
        self._all: Final = [*range(len(flows) - 1, -1, -1)]
        self._open = self._all[:]
        """The places of the missing items; the last place of the list is looked at first."""
        self._ends: deque[Input[Any]] = deque()
        """Sources that have ended, and were not looked at yet."""
        self._ending: list[int] = []
        """The places of the sources that have ended, except for items that wait."""

    @override
    def open(self) -> None:
        for source, one in builtins.zip(self._flows, self._sources, strict=False):
            if self.over:
                return
            self.connect(source, one)

    @override
    def ending(self, one: Input[Any]) -> None:
        self._ends.append(one)

    @override
    def step(self) -> None:
        ends, row = self._ends, self._row
        while ends:
            place = self._places[ends.popleft()]
            if self._is_last(place, overtakes=not self._delay_error):
                self._end()
                return
            self._ending.append(place)
        sent = False
        while self._emitted < self._requested and not self.over and self._fill():
            self._send(row)
            sent = True
        if sent and not self.over and any(map(self._is_last, self._ending)):
            self._end()

    @override
    def closed(self) -> None:
        sources, self._sources = self._sources, ()
        row, self._row = self._row, []
        self._places = {}
        self.wanted = None
        self._ends.clear()
        for item in row:
            if item is not EMPTY:
                hooks.drop_item(item)
        for one in sources:
            one.other = None
            one.close()

    @property
    @override
    def buffered(self) -> int:
        return sum(one.waiting for one in self._sources) + sum(
            item is not EMPTY for item in self._row
        )

    def _fill(self) -> bool:
        """Take the missing items of the row, up to the first one that has not come."""
        places, row, sources = self._open, self._row, self._sources
        while places:
            place = places[-1]
            one = sources[place]
            item: Any = one.poll()
            if item is EMPTY:
                known = one is self.wanted
                if not known:
                    # A source that sends looks at `wanted` afterwards, so an item that came just
                    # before is found below.
                    self.wanted = one
                    continue
                if one.ended():
                    self._end()
                return False
            row[place] = item
            places.pop()
        return True

    def take(self, one: ZippedInput, item: Any) -> bool:
        """Take an item of a source that pushes, if the row waits for it.

        The caller must hold the permit.

        Returns:
            True if the item was taken, and all was done that it made possible.
        """
        if self.over or self._emitted >= self._requested or self._tasks or self._ends:
            return False
        row, places = self._row, self._open
        if not places or places[-1] != one.place or one.waiting:
            return False
        row[places.pop()] = item
        one._consumed += 1
        if one._consumed == one._limit:
            one.replenish()
        if places or self._ending:
            self.step()
        else:  # and takes no item of the next row, so that the queue is found empty
            self._send(row)
        return True

    def _send(self, row: list[Any]) -> None:
        items = tuple(row)
        row[:] = self._nothing
        self._open = self._all[:]
        self.emit(items)

    def _is_last(self, place: int, *, overtakes: bool = False) -> bool:
        """Return whether the source at `place` has ended, and its last item was used.

        Args:
            place: the place of the source.
            overtakes: whether an error is reported before the last item was used.
        """
        one = self._sources[place]
        if overtakes and one.error is not None:
            return True
        return self._row[place] is EMPTY and one.ended()

    def _end(self) -> None:
        """Note that a source has ended, or failed."""
        errors = take_errors(self._sources, every=self._delay_error)
        if errors:
            self.fail(combined(self.label, errors))
        else:
            self.complete()


@final
class ZippedInput(BufferedInput[Any]):
    """Holds the waiting items of one source; reports an item only if the row waits for it.

    Args:
        owner: the `Zip`.
        prefetch: see `BufferedInput`.
        place: the place of its items in a row.
    """

    __slots__ = ("other", "place", "pushed", "zipping")

    def __init__(self, owner: Zip, prefetch: int, place: int) -> None:
        super().__init__(owner, prefetch)
        self.other: ZippedInput | None = None
        """The other input, if there are two."""
        self.pushed = False
        """True while items come by `on_next`: until the end or a cancel."""
        self.zipping: Final = owner
        self.place: Final = place

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        """Keep the upstream's subscription: it is never forwarded (F35)."""
        super().on_subscribe(subscription)
        with self.zipping._lock:
            self.pushed = not (self.gone or self.done or self.fused) and self.upstream is not None

    @override
    def cut(self) -> None:
        self.pushed = False

    def _ended(self) -> None:
        self.pushed = False
        super()._ended()

    @override
    def on_next(self, item: Any, /) -> None:
        """Put the item into the row at once if the row waits for it."""
        owner, waiting = self.zipping, self._waiting
        if self.pushed and owner.wanted is not self and item is not None:
            if len(waiting) < self.prefetch:
                waiting.append(item)
                if owner.wanted is self:
                    owner.signal()
                if not self.pushed and (self.gone or owner.over):
                    self.drop_waiting()  # `close` may have looked before
                return
        elif self.pushed and not waiting and item is not None:
            permit = owner._permit
            try:
                del permit[0]
            except KeyError:
                pass  # another caller has the permit
            else:
                try:
                    other = self.other
                    if (
                        other is not None
                        and other.pushed
                        and other._waiting
                        and len(owner._open) == 2
                        and owner._emitted < owner._requested
                    ):
                        # As `poll` and `emit`, written out: the calls would cost a third of a pair.
                        try:
                            partner = other._waiting.popleft()
                        except IndexError:  # the flow has ended, and the item was dropped
                            hooks.drop_item(item)
                            return
                        consumed = other._consumed = other._consumed + 1
                        if consumed == other._limit:
                            other.replenish()
                        consumed = self._consumed = self._consumed + 1
                        if consumed == self._limit:
                            self.replenish()
                        receive = owner._receive
                        try:
                            used = receive((partner, item) if self.place else (item, partner))
                        except BaseException as error:
                            owner._raised(error)
                        else:
                            if used is not False or not owner._conditional:
                                owner._emitted += 1
                        return
                    if owner.take(self, item):
                        return
                except BaseException as error:
                    owner._failed(error)
                    return
                finally:
                    permit[0] = True
                    if owner._missed or owner.over:
                        owner.signal()
        super().on_next(item)
