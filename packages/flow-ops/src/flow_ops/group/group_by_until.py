"""`group_by_until`: a flow for each key, which another flow ends."""

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
    """A flow of flows, one for each key, each of which ends when another flow emits an item.

    >>> import flow_core as flow
    >>> words = flow.just("to", "be", "or", "not", "to", "be")
    >>> pairs = words.group_by_until(len, lambda group: group.skip(1))
    >>> list(pairs.flat_map(lambda group: group.to_list()))
    [['to', 'be'], ['or', 'to'], ['not'], ['be']]

    This is like `group_by`, but a group also ends when the flow that `until` returns for it emits
    an item or completes. The next item of its key opens a new group. `until` gets a flow with the
    key and the items as they come, which it may use or not: ``lambda group: group.debounce(5)``
    ends a group when no item of its key has come for five seconds, ``lambda group: flow.timer(60)``
    after a minute. That flow only watches the group: it does not see items that it does not
    request.

    When there is no reference to a group any more, its items are dropped. When there are references
    to groups that are not read, these groups hold all of the prefetch, and nothing has moved for a
    second, the flow fails with `MissingBackpressureError`. If a group that `until` may end is being
    read, this is logged instead.

    Demand, fusion: as with `group_by`. One item is requested of the flow that ends a group.
    Thread: that of the upstream; groups end on the thread of the flow that ends them.
    Errors: as with `group_by`; those of `until` and of its flows end all groups, too.

    Args:
        key: returns the key of an item; it must be hashable, and may be None.
        until: called with each group when it begins; returns the flow that ends it.
        value: returns the item of a group for an item; the item itself by default.
        max_groups: how many groups may be open at a time.
        prefetch: items to request ahead, and the most that wait in all groups together.
        delay_error: whether errors come after the items and groups that wait. Otherwise errors
            overtake these items and groups, which are dropped.

    Returns:
        An operator for `Flow.pipe`. Its flow fails with NoneItemError if `value` returns None.

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
    """A group whose items are also sent to the flow that ends it.

    Args:
        hub: the `GroupByUntil`.
        key: the key of the items.
        overtakes: whether an error comes before the items.
    """

    __slots__ = ("_watching",)

    def __init__(self, hub: GroupBy[Any, Any, V], key: object, overtakes: bool) -> None:
        super().__init__(hub, key, overtakes)
        self._watching: list[Emitter[V]] = []

    def watch(self, emitter: Emitter[V]) -> None:
        """Send the items to `emitter`, too."""
        self._watching.append(emitter)

    @override
    def offer(self, item: V) -> None:
        super().offer(item)
        for emitter in self._watching:
            emitter.next(item)

    def closed(self) -> None:
        """Stop watching: the group has ended."""
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
        """End a group: the flow that ends it has emitted an item."""
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
