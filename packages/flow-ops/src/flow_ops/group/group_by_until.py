"""`group_by_until`: a flow for each key, which ends when another flow says so."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar, final, overload

from typing_extensions import override

from flow_core.conversion import Convertible, as_flow
from flow_core.demand import DEFAULT_PREFETCH
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import CoreSubscriber
from flow_core.results import GroupedFlow
from flow_core.sources import Emitter, create
from flow_core.stages import describe, refuse_coroutine_function
from flow_core.structure import source_of
from flow_ops.coordination import Listener, coordinated
from flow_ops.group.group_by import MAX_GROUPS, Group, GroupBy, checked

__all__ = ["group_by_until"]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


@overload
def group_by_until(
    key: Callable[[T], K],
    until: Callable[[GroupedFlow[K, T]], Convertible[object]],
    *,
    max_groups: int = MAX_GROUPS,
    prefetch: int = DEFAULT_PREFETCH,
    delay_error: bool = False,
) -> Operator[T, Flow[GroupedFlow[K, T]]]: ...


@overload
def group_by_until(
    key: Callable[[T], K],
    until: Callable[[GroupedFlow[K, V]], Convertible[object]],
    *,
    value: Callable[[T], V],
    max_groups: int = MAX_GROUPS,
    prefetch: int = DEFAULT_PREFETCH,
    delay_error: bool = False,
) -> Operator[T, Flow[GroupedFlow[K, V]]]: ...


def group_by_until(
    key: Callable[[T], K],
    until: Callable[[GroupedFlow[K, Any]], Convertible[object]],  # Any: the overloads say
    *,
    value: Callable[[T], Any] | None = None,  # Any: as above
    max_groups: int = MAX_GROUPS,
    prefetch: int = DEFAULT_PREFETCH,
    delay_error: bool = False,
) -> Operator[T, Flow[GroupedFlow[K, Any]]]:
    """A flow of flows, one for each key, each of which ends when another flow says so.

    >>> import flow_core as flow
    >>> words = flow.just("to", "be", "or", "not", "to", "be")
    >>> pairs = words.group_by_until(len, lambda group: group.skip(1))
    >>> list(pairs.flat_map(lambda group: group.to_list()))
    [['to', 'be'], ['or', 'to'], ['not'], ['be']]

    As `group_by`; and when the flow that `until` makes of a group gives an item, or completes, the
    group ends. The next item of its key opens a new one. `until` gets a flow of the key and of the
    items as they come, which it may use or not: ``lambda group: group.debounce(5)`` ends a group
    when nothing has come for its key in five seconds, ``lambda group: flow.timer(60)`` after a
    minute. That flow is no more than a look at the group: what it does not request it does not see.

    Items of a group that nobody refers to any more are dropped. When groups that are held and not
    read take all of the prefetch, and nothing has moved for a second, the flow fails with
    `MissingBackpressureError`.
    While a group is being read that `until` may end, this is logged instead.

    Demand, fusion: as with `group_by`. One item is requested of the flow that ends a group.
    Thread: that of the upstream; groups end where the flow says so that ends them.
    Errors: as with `group_by`; those of `until` and of its flows end all groups, too.

    Args:
        key: what to group by; hashable. None is a key like others.
        until: makes, of each group when it begins, the flow that ends it.
        value: what a group gets of an item; the item itself by default.
        max_groups: how many groups may be open at a time.
        prefetch: items to request ahead, and the most that wait in all groups together.
        delay_error: whether errors come after the items, and groups, that wait. Otherwise they
            overtake them, and what waits is dropped.

    Returns:
        An operator for `Flow.pipe`. Its flow fails with NoneItemError if `value` gives None.

    Raises:
        TypeError: if `key`, `until` or `value` cannot be called, or a number is not an int.
        ValueError: if a number is less than 1.
    """
    more = checked("group_by_until", key, value, max_groups, prefetch, delay_error)
    if not callable(until):
        raise TypeError(f"group_by_until() takes a function from a group to a flow, not {until!r}")
    refuse_coroutine_function("group_by_until", until, "flow.from_future() makes a flow of one")
    return coordinated(
        "group_by_until",
        f"{describe(key)}, {describe(until)}{more}",
        lambda flow, downstream, label: GroupByUntil(
            flow,
            downstream,
            label,
            until=until,
            key=key,
            value=value,
            max_groups=max_groups,
            prefetch=prefetch,
            delay_error=delay_error,
        ),
        prefetch,
    )


@final
class WatchedGroup(Group[V]):
    """A group that the flow which ends it may look at.

    Args:
        hub: gives the items.
        key: theirs.
        overtakes: whether an error comes before them.
    """

    __slots__ = ("_watching",)

    def __init__(self, hub: GroupBy[Any, Any, V], key: object, overtakes: bool) -> None:
        super().__init__(hub, key, overtakes)
        self._watching: list[Emitter[V]] = []

    def watch(self, emitter: Emitter[V]) -> None:
        """Give `emitter` the items, too."""
        self._watching.append(emitter)

    @override
    def offer(self, item: V) -> None:
        super().offer(item)
        for emitter in self._watching:
            emitter.next(item)

    def closed(self) -> None:
        """It has ended: nobody looks any more."""
        self._watching.clear()


@final
class GroupByUntil(GroupBy[T, K, V], Generic[T, K, V]):
    """Runs `group_by_until`."""

    __slots__ = ("_ends", "_until")

    ends_parts = True

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[GroupedFlow[K, V]],
        label: str,
        *,
        until: Callable[[GroupedFlow[K, V]], Convertible[object]],
        key: Callable[[T], K],
        value: Callable[[T], V] | None,
        max_groups: int,
        prefetch: int,
        delay_error: bool,
    ) -> None:
        super().__init__(
            source,
            downstream,
            label,
            key=key,
            value=value,
            max_groups=max_groups,
            prefetch=prefetch,
            delay_error=delay_error,
        )
        self._until = until
        self._ends: dict[Group[V], Listener[object]] = {}

    @override
    def begin(self, key: K) -> Group[V]:
        group: WatchedGroup[V] = WatchedGroup(self, key, self._overtakes)
        watched: Flow[V] = create(group.watch, overflow="drop")
        until = as_flow(self._until(GroupedFlow(key, source_of(watched))), "until")
        self._ends[group] = listener = Listener(
            self, partial(self._over, group), partial(self._ended, group), 1
        )
        self.connect(until, listener)
        return group

    @override
    def group_left(self, group: Group[V]) -> None:
        self._forget(group)
        super().group_left(group)

    @override
    def ended(self, error: BaseException | None) -> bool:
        for group in list(self._ends):
            self._forget(group)
        return super().ended(error)

    @override
    def closed(self) -> None:
        super().closed()
        self._ends.clear()

    def _over(self, group: Group[V], _: object) -> None:
        """The flow that ends a group has given an item."""
        self._forget(group)
        key: Any = group.key  # a K: its own
        if self.groups.get(key) is group:
            del self.groups[key]
        group.finish(None)
        self.check_over()

    def _ended(self, group: Group[V], error: BaseException | None) -> None:
        if error is None:
            self._over(group, None)
        else:
            self.fail(error)

    def _forget(self, group: Group[V]) -> None:
        listener = self._ends.pop(group, None)
        if listener is not None:
            self.disconnect(listener)
        if isinstance(group, WatchedGroup):
            group.closed()
