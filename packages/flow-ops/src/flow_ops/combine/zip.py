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

    It completes as soon as one of the flows has ended and its last item is used up; the others are
    cancelled then. Without flows it is empty.

    Demand: exact; of a source that pushes `prefetch` items are requested, and 75 % of that again
    whenever as many were used. Without demand no item is taken.
    Thread: that of the source whose item was the last one missing, or of the requester.
    Iteration: when all sources are synchronous iterables, they are iterated over side by side, in
    the one loop that ``for`` or the subscription compiles them into with the stages that follow. A
    cancel from another thread is seen between two rows then.
    Fusion: such a loop grants SYNC, and not across threads if it calls functions of the user.
    Otherwise sources with SYNC or ASYNC are polled; an asynchronous one is told that this may be on
    another thread.
    Errors: the first one cancels the other flows and overtakes what waits, except that an iterable
    fails in its place. An item that has no partner is dropped.

    Args:
        sources: what to take items from. They are subscribed in this order.
        prefetch: items to request of each ahead, and the most of each that wait.
        delay_error: whether the error of a flow comes after its items; several as an
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
    """Each item together with the one of `other` that has the same place; see `zip`.

    >>> import flow_core as flow
    >>> list(flow.just("a", "b").pipe(zip_with(flow.range(9))))
    [('a', 0), ('b', 1)]

    Args:
        other: subscribed second.
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
    """Whether `flow` can be iterated over beside others.

    Not if a stage is to hear of the end: that of a loop which has not begun would not.
    """
    return inline_source(flow) is not None and not Program[Any, Any](stages_of(flow)).shape.closes


@final
class IterableZip(IterableSource[tuple[Any, ...]]):
    """Flows that are iterated over side by side.

    Args:
        flows: have iterables as their sources.
        label: the operator and its place, for messages.
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
        if any(map(exhausted, iterators)):  # known without an item, thus without demand
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
    """Yields something first that is not an item, so that it has begun."""
    try:
        yield EMPTY
        yield from builtins.zip(*iterators)  # noqa: B905 - ends with the shortest
    finally:
        _close_all(iterators)


def _close_all(iterators: list[Iterator[Any]]) -> None:
    """Close what are generators, all of them whatever their ``finally`` blocks raise."""
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
            del failure  # no cycle with this frame


@final
class Zip(Coordinator[tuple[Any, ...]]):
    """Runs `zip`.

    Whatever comes costs no more than the sources that become ready by it, however many there are.
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
        """The source that is waited for, if there is demand: its next item is told of."""
        self._nothing: Final[list[Any | Empty]] = [EMPTY] * len(flows)
        self._row: list[Any | Empty] = self._nothing[:]
        """The items that wait for the missing ones of their row; never all of them."""
        self._all: Final = [*range(len(flows) - 1, -1, -1)]
        self._open = self._all[:]
        """The places of those that are missing; the last one is looked at first."""
        self._ends: deque[Input[Any]] = deque()
        """Sources that have ended, which was not looked at yet."""
        self._ending: list[int] = []
        """The places of those that have ended, but for items that wait."""

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
        """Take the items that are missing in the row, up to the first one that is not there."""
        places, row, sources = self._open, self._row, self._sources
        while places:
            place = places[-1]
            one = sources[place]
            item: Any = one.poll()
            if item is EMPTY:
                known = one is self.wanted
                if not known:
                    # Whoever sends looks at this afterwards: what came just before is found now.
                    self.wanted = one
                    continue
                if one.ended():
                    self._end()
                return False
            row[place] = item
            places.pop()
        return True

    def take(self, one: ZippedInput, item: Any) -> bool:
        """The item of a source that pushes, as it comes, if the row waits for it. With the permit.

        Returns:
            Whether it was taken, and what could be done with it then was.
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
        else:  # and takes none of the next row, so that it is found empty
            self._send(row)
        return True

    def _send(self, row: list[Any]) -> None:
        items = tuple(row)
        row[:] = self._nothing
        self._open = self._all[:]
        self.emit(items)

    def _is_last(self, place: int, *, overtakes: bool = False) -> bool:
        """Whether the source at `place` has ended, and its last item is used up.

        Args:
            place: the source's.
            overtakes: whether an error does not wait for that.
        """
        one = self._sources[place]
        if overtakes and one.error is not None:
            return True
        return self._row[place] is EMPTY and one.ended()

    def _end(self) -> None:
        """One of the sources has ended, or failed."""
        errors = take_errors(self._sources, every=self._delay_error)
        if errors:
            self.fail(combined(self.label, errors))
        else:
            self.complete()


@final
class ZippedInput(BufferedInput[Any]):
    """The items of one source wait here, and nobody is told of one that the row does not wait for.

    Args:
        owner: zips.
        prefetch: see `BufferedInput`.
        place: of its items in a row.
    """

    __slots__ = ("other", "place", "pushed", "zipping")

    def __init__(self, owner: Zip, prefetch: int, place: int) -> None:
        super().__init__(owner, prefetch)
        self.other: ZippedInput | None = None
        """The other one, of two."""
        self.pushed = False
        """Items come by `on_next`, until the end or a cancel."""
        self.zipping: Final = owner
        self.place: Final = place

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        """The upstream's subscription is never forwarded (F35)."""
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
        """Goes into the row at once if that waits for it."""
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
                        # As `poll` and `emit`: calls would cost a third of a pair.
                        try:
                            partner = other._waiting.popleft()
                        except IndexError:  # the flow is over: it was dropped
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
