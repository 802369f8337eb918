"""`group_by`: a flow for each key."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar, overload

from typing_extensions import override

from flow_core import hooks
from flow_core.demand import DEFAULT_PREFETCH, check_prefetch
from flow_core.errors import MissingBackpressureError, NoneItemError
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import CoreSubscriber
from flow_core.results import GroupedFlow
from flow_core.stages import describe, refuse_coroutine_function
from flow_core.structure import source_of
from flow_ops.coordination import coordinated
from flow_ops.group._splitting import Splitting
from flow_ops.group._unicast import Part, Unicast

__all__ = ["group_by"]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")

MAX_GROUPS = 128
"""The number of groups that may be open at a time, unless the user sets it: as many as `flat_map`
runs."""


@overload
def group_by(
    key: Callable[[T], K],
    *,
    max_groups: int = MAX_GROUPS,
    prefetch: int = DEFAULT_PREFETCH,
    delay_error: bool = False,
) -> Operator[T, Flow[GroupedFlow[K, T]]]: ...


@overload
def group_by(
    key: Callable[[T], K],
    *,
    value: Callable[[T], V],
    max_groups: int = MAX_GROUPS,
    prefetch: int = DEFAULT_PREFETCH,
    delay_error: bool = False,
) -> Operator[T, Flow[GroupedFlow[K, V]]]: ...


def group_by(
    key: Callable[[T], K],
    *,
    value: Callable[[T], Any] | None = None,  # Any: the overloads say
    max_groups: int = MAX_GROUPS,
    prefetch: int = DEFAULT_PREFETCH,
    delay_error: bool = False,
) -> Operator[T, Flow[GroupedFlow[K, Any]]]:
    """A flow of flows, one for each key, with the items of that key.

    >>> import flow_core as flow
    >>> words = flow.just("to", "be", "or", "not", "to", "be")
    >>> lengths = words.group_by(len)
    >>> lengths.subscribe(lambda group: group.to_list().subscribe(print)).disposed
    ['to', 'be', 'or', 'to', 'be']
    ['not']
    True

    A group begins with the first item of its key. It has one subscriber, which may come late; a
    second one gets `ProtocolViolationError`. All groups end when the upstream does. When a group is
    cancelled, the next item of its key opens a new group. When the flow of groups is cancelled, the
    groups that have a subscriber continue, and the upstream is cancelled when the last of these is
    cancelled. Items of other keys are dropped, and so are items that wait in groups without a
    subscriber: subscribers that come later get `ProtocolViolationError`.

    When there is no reference to a group any more, its items are dropped. When there are references
    to groups that are not read, these groups hold all of the prefetch, and nothing has moved for a
    second, the flow fails with `MissingBackpressureError`.

    Demand: exact, for groups and for the items of each. `prefetch` items are requested. For each
    item that its group's subscriber has consumed (or that was dropped), another one is requested;
    these requests are made 75 % of the prefetch at a time, if enough items are still to come.
    Groups and their items wait for demand: at most `prefetch` items altogether. So read all groups
    at the same time, with ``flat_map(…, concurrency=max_groups)``: with ``concat_map``, a first
    group that does not end keeps the others waiting.
    Thread: that of the upstream; an item that waited comes on the thread that requests it.
    Fusion: the flow of groups and each group grant ASYNC, even to a subscriber that polls on
    another thread. The upstream is not asked for fusion.
    Errors: those of the upstream, of `key` and of `value` end all groups and then the flow of
    groups. If more than `max_groups` groups are open, the flow fails, too, with
    `MissingBackpressureError`.

    Args:
        key: returns the key of an item; it must be hashable, and may be None.
        value: returns the item of a group for an item; the item itself by default.
        max_groups: how many groups may be open at a time: groups that have begun and were not
            cancelled, even if they were dropped. Pass the same number to the ``flat_map`` that runs
            the groups.
        prefetch: items to request ahead, and the most that wait in all groups together.
        delay_error: whether errors come after the items and groups that wait. Otherwise errors
            overtake these items and groups, which are dropped.

    Returns:
        An operator for `Flow.pipe`. Its flow fails with NoneItemError if `value` returns None.

    Raises:
        TypeError: if `key` or `value` cannot be called, or a number is not an int.
        ValueError: if a number is less than 1.
    """
    more = checked("group_by", key, value, max_groups, prefetch, delay_error)
    detail = describe(key) + more
    return coordinated(
        "group_by",
        detail,
        lambda flow, downstream, label: GroupBy(
            flow,
            downstream,
            label,
            key=key,
            value=value,
            max_groups=max_groups,
            prefetch=prefetch,
            delay_error=delay_error,
        ),
        prefetch,
    )


def checked(  # noqa: PLR0917 - they are those of the operators, in their order
    name: str,
    key: object,
    value: object,
    max_groups: int,
    prefetch: int,
    delay_error: bool,
) -> str:
    """Check the arguments; return their description for messages, without the key."""
    if not callable(key):
        raise TypeError(f"{name}() takes a function from an item to its key, not {key!r}")
    if value is not None and not callable(value):
        raise TypeError(f"{name}(): value is a function from an item to a value, not {value!r}")
    for function in (key, value):
        refuse_coroutine_function(name, function, "map_concurrent() before it awaits one")
    check_prefetch(max_groups, "max_groups")
    check_prefetch(prefetch)
    detail = ""
    if value is not None:
        detail += f", value={describe(value)}"
    if max_groups != MAX_GROUPS:
        detail += f", max_groups={max_groups}"
    if prefetch != DEFAULT_PREFETCH:
        detail += f", prefetch={prefetch}"
    if delay_error:
        detail += ", delay_error=True"
    return detail


class Group(Unicast[V]):
    """The items of one key that wait for their subscriber.

    Args:
        hub: the `GroupBy`.
        key: the key of the items.
        overtakes: whether an error comes before the items.
    """

    __slots__ = ("_hub", "key")

    # Any, twice: the types of the upstream's items and of the keys, which do not matter here.
    def __init__(self, hub: GroupBy[Any, Any, V], key: object, overtakes: bool) -> None:
        super().__init__(f"the group {key!r} of {hub.label}", hub, overtakes)
        self._hub = hub
        self.key = key

    @override
    def taken(self, item: V) -> None:
        self._hub.credit(1)

    @override
    def left(self) -> None:
        self._hub.post(self._hub.group_left, self)


class GroupBy(Splitting[T, GroupedFlow[K, V]], Generic[T, K, V]):
    """Runs `group_by`."""

    __slots__ = ("_key", "_max_groups", "_overtakes", "_value", "groups")

    names = "groups"

    def __init__(
        self,
        source: Flow[T],
        downstream: CoreSubscriber[GroupedFlow[K, V]],
        label: str,
        *,
        key: Callable[[T], K],
        value: Callable[[T], V] | None,
        max_groups: int,
        prefetch: int,
        delay_error: bool,
    ) -> None:
        super().__init__(source, downstream, label, prefetch, overtakes=not delay_error)
        self._key = key
        self._value = value
        self._max_groups = max_groups
        self._overtakes = not delay_error
        self.groups: dict[K, Group[V]] = {}

    @override
    def open_parts(self) -> Iterable[Unicast[Any]]:  # Any: see `Splitting`
        return self.groups.values()

    def begin(self, key: K) -> Group[V]:
        """Begin a group. The caller must hold the permit."""
        return Group(self, key, self._overtakes)

    @override
    def handle(self, item: T) -> bool:
        key = self._key(item)
        function = self._value
        # Without a function, the items are the values.
        value: Any = item if function is None else function(item)
        if value is None:
            raise NoneItemError("value gave None, which is not an item")
        groups = self.groups
        group: Group[V] | None
        # By index: without the GIL, `get` of Python 3.13 locks the dict twice, and waits for
        # itself.
        try:
            group = groups[key]
        except KeyError:
            group = None
        if group is not None and not group.gone:
            self._received += 1
            group.offer(value)
            return True
        if self.main_gone:
            hooks.drop_item(item)
            return False
        if group is None and len(groups) >= self._max_groups:
            raise MissingBackpressureError(
                f"item {item!r} begins a group, and {self._max_groups} are open; raise max_groups, "
                "and the concurrency of what runs them, or cancel groups that are done, by "
                "take() for example"
            )
        groups[key] = group = self.begin(key)
        self.unsubscribed[group] = None
        self._received += 1
        group.offer(value)
        self.send(GroupedFlow(key, Part(group)))
        return True

    def group_left(self, group: Group[V]) -> None:
        """Note that a group was cancelled. The caller must hold the permit."""
        self.unsubscribed.pop(group, None)
        key: Any = group.key  # a K: its own
        if self.groups.get(key) is group:
            del self.groups[key]
        self.check_over()

    @override
    def running(self) -> bool:
        return bool(self.groups)

    @override
    def ended(self, error: BaseException | None) -> bool:
        groups = self.groups
        for group in groups.values():  # which only changes with the permit
            group.finish(error)
        self.groups = {}
        return bool(groups)

    @override
    def part_dropped(self, part: GroupedFlow[K, V]) -> None:
        source = source_of(part)
        if isinstance(source, Part):
            source.queue.close_unread()

    @override
    def forsake(self, error: BaseException) -> None:
        for group in self.groups.values():
            group.forsake(error)
        super().forsake(error)

    @override
    def closed(self) -> None:
        super().closed()
        self.groups.clear()
