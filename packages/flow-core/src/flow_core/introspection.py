"""A look at the running flow: at each link between a subscriber and its source.

The links of a running flow (its subscriptions and subscribers) describe themselves by a method
``statistics()``. `links` walks them upstream, and `report` makes a table of them.

>>> import flow_core as flow
>>> [each.operator for each in links(flow.never().map(str).subscribe(prefetch=4))]
['subscriber', 'map(str)', 'never']
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar, final, runtime_checkable

from flow_core.demand import UNBOUNDED
from flow_core.protocols import Fusion

__all__ = ["Scannable", "Statistics", "links", "report", "snapshot"]

T = TypeVar("T")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """The state of one link of a running flow, at one moment.

    As long as it is kept, it refers to the next link upstream, and to nothing downstream.

    Args:
        operator: the operator, the stages or the source, as text.
        requested: items that the downstream has requested and not got yet; `UNBOUNDED` for any
            number. None if they are not counted: because the link only passes requests on, because
            the items are polled, or because a loop that is running, or is waiting for items, has
            taken a part of the demand.
        buffered: how many items wait in this link.
        capacity: how many items may wait in this link: the prefetch. None if there is no such
            limit.
        cancelled: whether the link was stopped before its upstream has ended: from downstream, by a
            failure, or because a stage needs no more items.
        terminated: whether the link has ended: its downstream gets nothing more.
        error: the error that the link still has to signal.
        fusion: the fusion that the link has granted to its downstream, which then polls.
        name: the name from `Flow.name`; if a loop has several, the last one.
        tags: the tags from `Flow.tag`, each as key and value.
        upstream: the next link upstream; None if this is the first one, or if the next link was
            dropped at the end.
        inners: the links of the inner flows that run right now; for a connectable, its processor.
        subscribers: for a processor or a connectable, how many subscribers it serves. `requested`
            is then the smallest demand among them, or 0 without subscribers.
        held_back_by: how many of these subscribers have no demand, and so hold the others or the
            source back.
        waiting: how many subscribers wait for the next connection.
        connected: whether a connectable runs; for a processor with one subscriber, whether this
            subscriber has come, even if it has gone again. None for all other links.
        flow: for a subscriber, the flow that it has subscribed to.
    """

    operator: str
    requested: int | None = None
    buffered: int = 0
    capacity: int | None = None
    cancelled: bool = False
    terminated: bool = False
    error: BaseException | None = None
    fusion: Fusion = Fusion.NONE
    name: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    upstream: object | None = None
    inners: tuple[object, ...] = ()
    subscribers: int = 0
    held_back_by: tuple[object, ...] = ()
    waiting: tuple[object, ...] = ()
    connected: bool | None = None
    flow: str | None = None


@runtime_checkable
class Scannable(Protocol):
    """An object that describes its state while it runs: a link of a flow, or a processor.

    ``statistics()`` may be called from any thread at any time. It takes no lock and calls no other
    code, so that it disturbs nothing; while other threads work, the figures may be from slightly
    different moments.
    """

    __slots__ = ()

    @abstractmethod
    def statistics(self) -> Statistics:
        """Return the state at this moment."""
        ...


def links(handle: object) -> Iterator[Statistics]:
    """Yield the links of a running flow, from `handle` upstream.

    >>> import flow_core as flow
    >>> handle = flow.never().subscribe(prefetch=4)
    >>> [(each.operator, each.requested) for each in links(handle)]
    [('subscriber', 4), ('never', None)]

    Thread: any.

    Args:
        handle: the result of `Flow.subscribe`, a subscription, or a processor. An object that does
            not describe itself yields only its name.
    """
    at: object | None = handle
    seen: set[int] = set()
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        found = _look(at)
        yield found
        at = found.upstream


def report(handle: object) -> str:
    """Return a table of the links of a running flow, downstream first.

    >>> import flow_core as flow
    >>> handle = flow.never().name("quiet").subscribe(prefetch=4)
    >>> print(report(handle))
    operator            requested  buffered  state    name
    subscriber                  4       0/4  running  never() | name(name='quiet')
    name(name='quiet')          4         0  running  quiet
    never                       -         0  running

    Thread: any.

    Args:
        handle: see `links`.
    """
    rows = [("operator", "requested", "buffered", "state", "name"), *_rows(handle, "")]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines: list[str] = []
    for operator, requested, buffered, state, name in rows:
        cells = (
            operator.ljust(widths[0]),
            requested.rjust(widths[1]),
            buffered.rjust(widths[2]),
            state.ljust(widths[3]),
            name,
        )
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def snapshot(items: Collection[T]) -> tuple[T, ...]:
    """Return the items of a deque at one moment, while other threads change it.

    Args:
        items: the deque. Without a GIL, copying fails while another thread changes it; the copy is
            then tried again.
    """
    while True:
        try:
            return tuple(items)
        except RuntimeError:
            continue


def _look(at: object) -> Statistics:
    if not isinstance(at, Scannable):
        return Statistics(operator=type(at).__name__)
    return at.statistics()


_LONGEST: Final = 60


def _rows(handle: object, indent: str) -> Iterator[tuple[str, str, str, str, str]]:
    for found in links(handle):
        operator = found.operator
        if len(operator) > _LONGEST:
            operator = f"{operator[: _LONGEST - 1]}…"
        requested = "-" if found.requested is None else _amount(found.requested)
        buffered = str(found.buffered)
        if found.capacity is not None:
            buffered += f"/{_amount(found.capacity)}"
        label = " ".join(
            part for part in (found.flow, found.name, *(f"{k}={v}" for k, v in found.tags)) if part
        )
        yield indent + operator, requested, buffered, _state(found), label
        for inner in found.inners:
            yield from _rows(inner, f"{indent}  ")


def _amount(n: int) -> str:
    return "unbounded" if n == UNBOUNDED else str(n)


def _state(found: Statistics) -> str:
    state = "cancelled" if found.cancelled else "ended" if found.terminated else "running"
    if found.fusion & Fusion.ANY:
        state += f", {found.fusion.name}"
    if found.error is not None:
        state += f", failing with {type(found.error).__name__}"
    return state
