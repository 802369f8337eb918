"""What `flat_map` and `concat_map_eager` share: an upstream whose items become flows."""

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
"""How many inner flows run at a time, unless the user says."""


@final
@dataclass(frozen=True, slots=True)
class Limits:
    """How inner flows run.

    Args:
        concurrency: how many of them at a time.
        prefetch: items to request of each ahead, and the most of each that wait.
        delay_error: whether errors come when all have ended.

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
        """`detail` with what is not as usual, for messages."""
        if self.concurrency != DEFAULT_CONCURRENCY:
            detail += f", concurrency={self.concurrency}"
        if self.prefetch != DEFAULT_PREFETCH:
            detail += f", prefetch={self.prefetch}"
        if self.delay_error:
            detail += ", delay_error=True"
        return detail


_Make = Callable[
    # Any: the type of the items is between the upstream and the mapper.
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
    """An operator that runs the flows that `mapper` makes.

    Args:
        name: what it is called.
        mapper: the user's.
        limits: how they run.
        make: makes a coordinator for a subscriber.
        iterated: the source behind an upstream that is an iterator, if not `Mapped`.

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
    """The flows that `mapping` makes of the items of `flow`, as one flow."""
    apply = partial(mapped, mapping=mapping, limits=limits, make=make, iterated=iterated)
    one = single(flow, mapping, apply)
    if one is not None:
        return one
    kind: type[Mapped[R]] = Mapped
    if iterated is not None and isinstance(source_of(flow), IterableSource):
        kind = iterated
    return Flow(kind(flow, mapping, limits, make))


class Mapped(Publisher[R]):
    """A publisher that makes a `Mapping` for each subscriber.

    Args:
        upstream: where the items come from.
        mapping: makes flows of them.
        limits: how these run.
        make: makes the coordinator.
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
        """The inner flows, if they are known beforehand; for `flow explain`."""
        return known_inners(self.upstream)

    @property
    def inner_flows(self) -> str | None:
        """Where they come from, for `flow explain`."""
        told = self._mapping.told(self.upstream)
        return told and f"{told}, at most {self.limits.concurrency} at a time"

    @override
    def subscribe(self, subscriber: Subscriber[R], /) -> None:
        downstream = core_subscriber(subscriber)
        self.make(self.upstream, downstream, self._mapping, self.limits).start()

    def __repr__(self) -> str:
        return self._mapping.label


class Mapping(Coordinator[R], Generic[T, R]):
    """Runs the flows that a mapper makes of the upstream's items, up to so many at a time.

    Demand for the upstream is `Concurrency`: as many as may run, and one more for each that is free
    again. A subclass says what an inner flow is connected to, and what becomes of their items.

    Args:
        source: the upstream.
        downstream: gets the signals.
        mapper: makes the flows.
        limits: how they run.
        outer: what receives the upstream's items, if it does more than `Outer`.
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
        """No flow will be added any more."""

    # -- for subclasses to say

    @abstractmethod
    def add(self, flow: Publisher[R]) -> bool:
        """Run an inner flow. In the upstream's thread, without the permit.

        Returns:
            Whether its slot is free again; if not, `slots.freed` counts it when it is.
        """

    @abstractmethod
    def push(self, item: R) -> bool:
        """Take the only item of an inner flow. In the upstream's thread, without the permit.

        Returns:
            Whether its slot is free again; if not, it is when the item was given on.
        """

    # -- running

    @override
    def open(self) -> None:
        outer, source = self._outer, self._source
        if outer is not None and source is not None:
            self.connect(source, outer)

    @override
    def signal(self) -> None:
        """Slots that were freed are filled without the permit."""
        super().signal()
        slots = self.slots
        if slots.freed != slots.seen:
            slots.signal()

    def outer_ended(self, error: BaseException | None) -> None:
        """The upstream has ended, or the mapper has failed. With the permit."""
        self.exhausted = True
        if error is not None:
            self.keep(error)

    def keep(self, error: BaseException) -> None:
        """Something has failed: the flow does, now or when all have ended. With the permit."""
        self._errors.append(error)
        if not self._delay_error:
            self.finish()

    def finish(self) -> None:
        """All have ended. With the permit."""
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
    """Receives the items of which flows are made. The mapper runs in its thread.

    Args:
        owner: runs the flows.
        mapper: makes them.
        concurrency: items to request at first.
    """

    __slots__ = ("gate", "mapper", "mapping", "slots")

    def __init__(self, owner: Mapping[T, R], mapper: Mapper[T, R], concurrency: int) -> None:
        super().__init__(owner, concurrency)
        self.mapping = owner
        self.mapper = mapper
        self.slots = owner.slots
        self.gate = Gate()
        """Of the inner flow that runs in place: closed when the flow is over."""
        owner.slots.outer = self

    @override
    def cut(self) -> None:
        self.gate.cancelled = True

    @override
    def on_next(self, item: T, /) -> None:
        """Makes a flow of it, and starts that."""
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
        function = mapper.function  # a call of a slot's value at once costs CPython 3.11 twice this
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
        """The only item of an inner flow had to wait, and was given on. With the permit."""
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
    """Where inner flows run: asks the upstream for as many items as are free.

    It asks without the operator's permit, in one thread at a time, and never within itself: an
    upstream that sends within ``request`` runs in a loop, whatever its flows do.

    What the upstream's thread frees by itself, by inner flows that end at once, is asked for when
    it comes to 75 %, or when the upstream has sent all that was requested; a slot that an inner
    flow has held is asked for at once.

    Args:
        count: how many there are.
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
        """Items that were requested so far. Written here."""
        self.arrived = 0
        """Items that came so far. Written by the upstream's thread."""
        self.spare = 0
        """Slots that were free again at once. Written by the upstream's thread."""
        self.freed = 0
        """Slots that are free again. Written with the operator's permit."""
        self.seen = 0
        """`freed`, when this has asked last."""
        self.look_at = self._limit
        """The upstream's thread signals from the item of this number on; never above `asked`."""

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
    """The only item of an inner flow that was called, as a `BufferedInput`.

    Args:
        item: waits for its turn.
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
        """How many items wait: one, or none."""
        return 0 if self._item is EMPTY else 1
