"""The base of `flat_map` and `concat_map_eager`: an upstream whose items become flows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.assembly import labelled
from flow_core.conversion import Convertible
from flow_core.demand import DEFAULT_PREFETCH, check_prefetch, replenish_limit
from flow_core.errors import is_fatal, none_given
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import (
    EMPTY,
    CoreSubscriber,
    Empty,
    IterableSource,
    Publisher,
    Subscriber,
)
from flow_core.serial import SerialDrain
from flow_core.stages import Gate, describe
from flow_core.structure import call_of, source_of
from flow_core.subscribers import core_subscriber
from flow_ops.coordination import Coordinator, Input, Mapper, combined, no_stop, overflow
from flow_ops.transform._inner import known_inners
from flow_ops.transform._single import single

__all__ = [
    "DEFAULT_CONCURRENCY",
    "Limits",
    "Mapping",
    "One",
    "Outer",
    "mapped",
    "mapping_operator",
]

T = TypeVar("T")
R = TypeVar("R")

DEFAULT_CONCURRENCY = 128
"""The number of inner flows that run at a time, unless the user sets it."""


@final
@dataclass(frozen=True, slots=True)
class Limits:
    """Limits for inner flows: how many run at a time, and how much they prefetch.

    Args:
        concurrency: how many inner flows run at a time.
        prefetch: items to request of each inner flow ahead, and the most of each that wait.
        delay_error: whether errors come when all inner flows have ended.

    Raises:
        TypeError: if `concurrency` or `prefetch` is not an int.
        ValueError: if one of them is less than 1.
    """

    concurrency: int
    prefetch: int
    delay_error: bool

    def __post_init__(self) -> None:
        check_prefetch(self.concurrency, "concurrency")
        check_prefetch(self.prefetch)

    def told(self, detail: str) -> str:
        """Return `detail` with the limits that are not the default, for messages."""
        if self.concurrency != DEFAULT_CONCURRENCY:
            detail += f", concurrency={self.concurrency}"
        if self.prefetch != DEFAULT_PREFETCH:
            detail += f", prefetch={self.prefetch}"
        if self.delay_error:
            detail += ", delay_error=True"
        return detail


_Make = Callable[
    # Any: only the upstream and the mapper know the type of the items.
    [Flow[Any], CoreSubscriber[R], Mapper[Any, R], Limits],
    Coordinator[R],
]


def mapping_operator(
    name: str,
    mapper: Callable[[T], Convertible[R]],
    limits: Limits,
    make: _Make[R],
    iterated: type[Mapped[R]] | None = None,
) -> Operator[T, Flow[R]]:
    """Return an operator that runs the flows that `mapper` returns.

    Args:
        name: the name of the operator.
        mapper: the user's function.
        limits: how many flows run at a time, and how much they prefetch.
        make: creates a coordinator for a subscriber.
        iterated: the class of the source behind an upstream that is an iterator, if it is not
            `Mapped`.

    Raises:
        TypeError: if `mapper` cannot be called.
    """
    if not callable(mapper):
        raise TypeError(f"{name}() takes a function from an item to a Flow, not {mapper!r}")
    detail = limits.told(describe(mapper))
    mapping = Mapper(mapper, labelled(name, detail))

    def apply(flow: Flow[T]) -> Flow[R]:
        return mapped(flow, mapping, limits, make, iterated)

    return Operator(name, apply, detail)


def mapped(
    flow: Flow[Any],  # Any: see _Make
    mapping: Mapper[Any, R],
    limits: Limits,
    make: _Make[R],
    iterated: type[Mapped[R]] | None = None,
) -> Flow[R]:
    """Return one flow of the items of all flows that `mapping` makes from the items of `flow`."""
    apply = partial(mapped, mapping=mapping, limits=limits, make=make, iterated=iterated)
    one = single(flow, mapping, apply)
    if one is not None:
        return one
    kind: type[Mapped[R]] = Mapped
    if iterated is not None and isinstance(source_of(flow), IterableSource):
        kind = iterated
    return Flow(kind(flow, mapping, limits, make))


class Mapped(Publisher[R]):
    """A publisher that creates a `Mapping` for each subscriber.

    Args:
        upstream: the flow whose items are mapped.
        mapping: makes a flow from each item.
        limits: how many of these flows run at a time, and how much they prefetch.
        make: creates the coordinator.
    """

    __slots__ = ("_mapping", "limits", "make", "prefetch", "upstream")

    # Any: see _Make
    def __init__(
        self,
        upstream: Flow[Any],
        mapping: Mapper[Any, R],
        limits: Limits,
        make: _Make[R],
    ) -> None:
        self.upstream = upstream
        self._mapping = mapping
        self.limits = limits
        self.make: _Make[R] = make
        self.prefetch = limits.prefetch

    @property
    def upstreams(self) -> tuple[object, ...]:
        """Return the inner flows, if they are known beforehand; for `flow explain`."""
        return known_inners(self.upstream)

    @property
    def inner_flows(self) -> str | None:
        """Describe where the inner flows come from, for `flow explain`."""
        told = self._mapping.told(self.upstream)
        return told and f"{told}, at most {self.limits.concurrency} at a time"

    @override
    def subscribe(self, subscriber: Subscriber[R], /) -> None:
        downstream = core_subscriber(subscriber)
        self.make(self.upstream, downstream, self._mapping, self.limits).start()

    def __repr__(self) -> str:
        return self._mapping.label


class Mapping(Coordinator[R], Generic[T, R]):
    """Runs the flows that a mapper makes from the upstream's items, up to a number at a time.

    `Concurrency` makes the requests to the upstream: as many items as inner flows may run, and one
    more for each slot that is free again. A subclass defines what an inner flow is connected to,
    and what happens to its items.

    Args:
        source: the upstream.
        downstream: gets the signals.
        mapper: returns the flows.
        limits: how many run at a time, and how much they prefetch.
        outer: the class that receives the upstream's items; None for `Outer`.
    """

    __slots__ = ("_delay_error", "_errors", "_outer", "_source", "exhausted", "prefetch", "slots")

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[R],
        mapper: Mapper[T, R],
        limits: Limits,
        outer: type[Outer[T, R]] | None = None,
    ) -> None:
        super().__init__(downstream, mapper.label)
        self._source: Flow[T] | None = source
        self._delay_error = limits.delay_error
        self._errors: list[BaseException] = []
        self.prefetch = limits.prefetch
        self.slots = Concurrency(limits.concurrency)
        kind = outer or Outer
        self._outer: Outer[T, R] | None = kind(self, mapper, limits.concurrency)
        self.exhausted = False
        """True when no flow will be added any more."""

    # -- methods that subclasses define

    @abstractmethod
    def add(self, flow: Publisher[R]) -> bool:
        """Run an inner flow. The upstream's thread calls this, without the permit.

        Returns:
            True if the slot is free again; if not, `slots.freed` counts it once it is.
        """

    @abstractmethod
    def push(self, item: R) -> bool:
        """Take the only item of an inner flow.

        The upstream's thread calls this, without the permit.

        Returns:
            True if the slot is free again; if not, it is free once the item was sent.
        """

    # -- running

    @override
    def open(self) -> None:
        outer, source = self._outer, self._source
        if outer is not None and source is not None:
            self.connect(source, outer)

    @override
    def signal(self) -> None:
        """Drain, then fill the slots that were freed, without the permit."""
        super().signal()
        slots = self.slots
        if slots.freed != slots.seen:
            slots.signal()

    def outer_ended(self, error: BaseException | None) -> None:
        """Note that the upstream has ended, or the mapper has failed.

        The caller must hold the permit.
        """
        self.exhausted = True
        if error is not None:
            self.keep(error)

    def keep(self, error: BaseException) -> None:
        """Note an error, with which the flow fails now, or when all inner flows have ended.

        The caller must hold the permit.
        """
        self._errors.append(error)
        if not self._delay_error:
            self.finish()

    def finish(self) -> None:
        """Send the end: all inner flows have ended. The caller must hold the permit."""
        errors, self._errors = self._errors, []
        if errors:
            self.fail(combined(self.label, errors))
        else:
            self.complete()

    @override
    def closed(self) -> None:
        self.slots.outer = self._outer = self._source = None
        errors, self._errors = self._errors, []
        for error in errors:
            hooks.drop_error(error)


class Outer(Input[T], Generic[T, R]):
    """Receives the items from which flows are made. The mapper runs in the upstream's thread.

    Args:
        owner: the coordinator that runs the flows.
        mapper: returns the flows.
        concurrency: items to request at first.
    """

    __slots__ = ("gate", "mapper", "mapping", "slots")

    def __init__(self, owner: Mapping[T, R], mapper: Mapper[T, R], concurrency: int) -> None:
        super().__init__(owner, concurrency)
        self.mapping = owner
        self.mapper = mapper
        self.slots = owner.slots
        self.gate = Gate()
        """The gate of the inner flow that runs in place. It is closed when the whole flow has
        ended."""
        owner.slots.outer = self

    @override
    def cut(self) -> None:
        self.gate.cancelled = True

    @override
    def on_next(self, item: T, /) -> None:
        """Map the item, and start its flow."""
        if item is None:
            raise none_given("on_next")
        owner, slots = self.mapping, self.slots
        if self.done or owner.over:
            hooks.drop_item(item)
            return
        arrived = slots.arrived + 1
        if arrived > slots.asked:
            hooks.drop_item(item)
            self._stop(overflow(owner.label, slots.asked, who="the upstream"))
            return
        slots.arrived = arrived
        mapper = self.mapper
        # A call of a slot's value at once costs twice this on CPython 3.11.
        function = mapper.function
        try:
            flow = function(item)
            if not isinstance(flow, Flow):
                flow = mapper.flow_of(flow)
        except BaseException as error:
            if is_fatal(error):
                owner.give_up(error)
                raise
            self._stop(mapper.failed(error))
            return
        called = call_of(flow)
        if called is None:
            if owner.add(flow):
                slots.spare += 1
        else:
            try:
                value = called.call()
            except BaseException as error:
                if is_fatal(error):
                    owner.give_up(error)
                    raise
                slots.spare += 1
                owner.post(owner.keep, no_stop(error), hooks.drop_error)
            else:
                if value is None or owner.push(value):
                    slots.spare += 1
        if arrived >= slots.look_at:
            slots.signal()

    def taken(self) -> None:
        """Count an inner flow whose only item had to wait, and has been sent now.

        The caller must hold the permit.
        """
        self.slots.freed += 1

    def _stop(self, error: BaseException) -> None:
        upstream = self.upstream
        if upstream is not None:
            hooks.cancel(upstream)
        self.on_error(error)

    def _end(self, error: BaseException | None) -> None:
        self.owner.release(self)
        self.slots.outer = None
        self.mapping.outer_ended(error)


@final
class Concurrency(SerialDrain):
    """The slots of inner flows: requests an item of the upstream for each free slot.

    It makes the requests without the operator's permit, in one thread at a time, and never a
    request within a request: an upstream that sends within ``request`` runs in a loop, whatever its
    flows do.

    Slots that the upstream's thread frees itself, by inner flows that end at once, are refilled by
    a request when they are 75 % of all slots, or when the upstream has sent all that was requested;
    a slot that a running inner flow has held is refilled at once.

    Args:
        count: the number of slots.
    """

    __slots__ = (
        "_count",
        "_limit",
        "arrived",
        "asked",
        "freed",
        "look_at",
        "outer",
        "seen",
        "spare",
    )

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count
        self._limit = replenish_limit(count)
        # Any: only requests are made.
        self.outer: Outer[Any, Any] | None = None
        self.asked = count
        """The number of items requested so far. Written by this object."""
        self.arrived = 0
        """The number of items that came so far. Written by the upstream's thread."""
        self.spare = 0
        """The number of slots that were free again at once, since their inner flow ended at once.
        Written by the upstream's thread."""
        self.freed = 0
        """The number of slots that are free again. Written with the operator's permit."""
        self.seen = 0
        """The value of `freed` at the last request."""
        self.look_at = self._limit
        """From the item with this number on, the upstream's thread signals. Never above `asked`."""

    @override
    def drain(self) -> None:
        freed, outer = self.freed, self.outer
        urgent = freed != self.seen
        self.seen = freed
        if outer is None:
            return
        arrived = self.arrived
        owed = self._count + freed + self.spare - self.asked
        if owed and (urgent or owed >= self._limit or arrived >= self.asked):
            self.asked += owed
            self.look_at = min(self.asked, arrived + self._limit)
            outer.request(owed)
        else:
            self.look_at = min(self.asked, arrived + self._limit - owed)


@final
class One(Generic[R]):
    """The only item of an inner flow that was called, with the methods of a `BufferedInput`.

    Args:
        item: the item; it waits for its turn.
    """

    __slots__ = ("_item",)

    def __init__(self, item: R) -> None:
        self._item: R | Empty = item

    def poll(self) -> R | Empty:
        """Return the item, once."""
        item, self._item = self._item, EMPTY
        return item

    def ended(self) -> bool:
        """Return whether the item was polled."""
        return self._item is EMPTY

    def close(self) -> None:
        """Drop the item."""
        item = self.poll()
        if item is not EMPTY:
            hooks.drop_item(item)

    @property
    def waiting(self) -> int:
        """Return the number of items that wait: one or none."""
        return 0 if self._item is EMPTY else 1
