"""Stages that let some items pass, and the methods of `Flow` that add them."""

from __future__ import annotations

import builtins
import sys
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Generic, TypeGuard, TypeVar, overload

from flow_core.errors import NoItemError, TooManyItemsError
from flow_core.stages._fluent import Ender, Fluent, comparing, count_of, given_items
from flow_core.stages._template import Template

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from flow_core.flow import Flow
    from flow_core.shutdown import Shutdown

__all__ = ["Filtering"]

T_co = TypeVar("T_co", covariant=True)
A = TypeVar("A")
D = TypeVar("D")
R = TypeVar("R")

CHECK: Final = Template(
    "source",
    params=("source",),
    on_item="""
    NOT_NONE
    EMIT
    """,
)
"""Put between a loop and a source that may emit None by mistake (§2.13)."""

FILTER: Final = Template(
    "filter",
    params=("predicate",),
    on_item="""
    if predicate(x):
        EMIT
    """,
)

FILTER_INDEXED: Final = Template(
    "filter_indexed",
    params=("predicate",),
    state="index = -1",
    on_item="""
    index += 1
    if predicate(x, index):
        EMIT
    """,
    ordered=True,
)

OF_TYPE: Final = Template(
    "of_type",
    params=("kind",),
    on_item="""
    if isinstance(x, kind):
        EMIT
    """,
)

IGNORE_ELEMENTS: Final = Template("ignore_elements", on_item="pass")

TAKE: Final = Template(
    "take",
    params=("count",),
    state="left = count",
    on_item="""
    left -= 1
    EMIT
    if left == 0:
        STOP
    """,
    ordered=True,
    at_most="count",
)

TAKE_LAST: Final = Template(
    "take_last",
    params=("count",),
    state="items = deque(maxlen=count)",
    on_item="items.append(x)",
    on_end="""
    for x in items:
        EMIT
    """,
    helpers=(deque,),
    ordered=True,
)

TAKE_UNTIL: Final = Template(
    "take_until",
    params=("predicate",),
    on_item="""
    last = predicate(x)
    EMIT
    if last:
        STOP
    """,
    ordered=True,
)

SLICE: Final = Template(
    "slice",
    params=("step",),
    state="left = 0",
    on_item="""
    if left:
        left -= 1
    else:
        left = step - 1
        EMIT
    """,
    ordered=True,
)

SKIP_LAST: Final = Template(
    "skip_last",
    params=("count",),
    state="items = deque()",
    on_item="""
    items.append(x)
    if len(items) > count:
        x = items.popleft()
        EMIT
    """,
    helpers=(deque,),
    ordered=True,
)

SKIP: Final = Template(
    "skip",
    params=("count",),
    state="left = count",
    on_item="""
    if left:
        left -= 1
    else:
        EMIT
    """,
    ordered=True,
)

TAKE_WHILE: Final = Template(
    "take_while",
    params=("predicate",),
    on_item="""
    if predicate(x):
        EMIT
    else:
        STOP
    """,
    ordered=True,
)

SKIP_WHILE: Final = Template(
    "skip_while",
    params=("predicate",),
    state="skipping = True",
    on_item="""
    if skipping:
        skipping = predicate(x)
    if not skipping:
        EMIT
    """,
    ordered=True,
)

DISTINCT: Final = Template(
    "distinct",
    state="seen = set()",
    on_item="""
    if x not in seen:
        seen.add(x)
        EMIT
    """,
)

DISTINCT_BY: Final = Template(
    "distinct",
    params=("key",),
    state="seen = set()",
    on_item="""
    k = key(x)
    if k not in seen:
        seen.add(k)
        EMIT
    """,
)

DISTINCT_UNTIL_CHANGED: Final = Template(
    "distinct_until_changed",
    params=("key", "same"),
    state="last = UNSET",
    on_item="""
    k = key(x)
    if last is UNSET or not same(last, k):
        last = k
        EMIT
    """,
    ordered=True,
)


def _no_item(what: str) -> NoItemError:
    return NoItemError(f"{what}: the flow has no such item")


def _too_many(what: str) -> TooManyItemsError:
    return TooManyItemsError(f"{what}: the flow has more than one item")


FIRST_OR_ERROR: Final = Template(
    "first_or_error",
    state="found = False",
    on_item="""
    found = True
    EMIT
    STOP
    """,
    on_end="""
    if not found:
        raise _no_item('first_or_error()')
    """,
    helpers=(_no_item,),
    ordered=True,
    at_most=1,
)

FIRST_OR_DEFAULT: Final = Template(
    "first_or_default",
    params=("default",),
    state="found = False",
    on_item="""
    found = True
    EMIT
    STOP
    """,
    on_end="""
    if not found:
        x = default
        EMIT
    """,
    ordered=True,
    at_most=1,
)

LAST_OR_ERROR: Final = Template(
    "last_or_error",
    state="last = UNSET",
    on_item="last = x",
    on_end="""
    if last is UNSET:
        raise _no_item('last_or_error()')
    x = last
    EMIT
    """,
    helpers=(_no_item,),
    ordered=True,
)

LAST_OR_DEFAULT: Final = Template(
    "last_or_default",
    params=("default",),
    state="last = default",
    on_item="last = x",
    on_end="""
    x = last
    EMIT
    """,
    ordered=True,
)

SINGLE_OR_ERROR: Final = Template(
    "single_or_error",
    state="only = UNSET",
    on_item="""
    if only is not UNSET:
        raise _too_many('single_or_error()')
    only = x
    """,
    on_end="""
    if only is UNSET:
        raise _no_item('single_or_error()')
    x = only
    EMIT
    """,
    helpers=(_no_item, _too_many),
    at_most=2,
)

SINGLE_OR_DEFAULT: Final = Template(
    "single_or_default",
    params=("default",),
    state="only = UNSET",
    on_item="""
    if only is not UNSET:
        raise _too_many('single_or_default()')
    only = x
    """,
    on_end="""
    x = default if only is UNSET else only
    EMIT
    """,
    helpers=(_too_many,),
    at_most=2,
)

ELEMENT_AT: Final = Template(
    "element_at",
    params=("index",),
    state="left = index",
    on_item="""
    if left == 0:
        left = -1
        EMIT
        STOP
    left -= 1
    """,
    on_end="""
    if left >= 0:
        raise _no_item(f'element_at({index})')
    """,
    helpers=(_no_item,),
    ordered=True,
)

ELEMENT_AT_OR_DEFAULT: Final = Template(
    "element_at_or_default",
    params=("index", "default"),
    state="left = index",
    on_item="""
    if left == 0:
        left = -1
        EMIT
        STOP
    left -= 1
    """,
    on_end="""
    if left >= 0:
        x = default
        EMIT
    """,
    ordered=True,
)


class Filtering(Fluent[T_co], Generic[T_co]):
    """The methods that let some items pass."""

    __slots__ = ()

    @overload
    def filter(self, predicate: Callable[[T_co], TypeIs[R]]) -> Flow[R]: ...

    @overload
    def filter(self, predicate: Callable[[T_co], TypeGuard[R]]) -> Flow[R]: ...

    @overload
    def filter(self, predicate: Callable[[T_co], object]) -> Flow[T_co]: ...

    def filter(self, predicate: Callable[[T_co], object]) -> Flow[Any]:
        """The items for which ``predicate(item)`` is true; other items cost no demand.

        >>> import flow_core as flow
        >>> list(flow.range(5).filter(lambda n: n % 2 == 0))
        [0, 2, 4]

        Args:
            predicate: its result counts as true or false. If it is declared to return a TypeGuard
                or a TypeIs, the flow has the type that this declares.
        """
        return self._add(FILTER, predicate)

    @overload
    def filter_indexed(self, predicate: Callable[[T_co, int], TypeIs[R]]) -> Flow[R]: ...

    @overload
    def filter_indexed(self, predicate: Callable[[T_co, int], TypeGuard[R]]) -> Flow[R]: ...

    @overload
    def filter_indexed(self, predicate: Callable[[T_co, int], object]) -> Flow[T_co]: ...

    def filter_indexed(self, predicate: Callable[[T_co, int], object]) -> Flow[Any]:
        """The items for which ``predicate(item, index)`` is true; the index counts from 0.

        >>> import flow_core as flow
        >>> list(flow.just("a", "b", "c").filter_indexed(lambda _, i: i != 1))
        ['a', 'c']
        """
        return self._add(FILTER_INDEXED, predicate)

    def of_type(self, kind: type[R]) -> Flow[R]:
        """The items that are instances of a class.

        >>> import flow_core as flow
        >>> list(flow.just(1, "a", 2).of_type(int))
        [1, 2]

        Args:
            kind: the class.
        """
        return self._add(OF_TYPE, kind)

    def ignore_elements(self) -> Flow[T_co]:
        """No item, only the end of the flow. All items are requested of the upstream.

        >>> import flow_core as flow
        >>> list(flow.range(3).do_on_next(print).ignore_elements())
        0
        1
        2
        []
        """
        return self._add(IGNORE_ELEMENTS)

    def take(self, count: int) -> Flow[T_co]:
        """The first `count` items; then the upstream is cancelled, and no more is requested of it.

        >>> import flow_core as flow
        >>> list(flow.range(10**9).take(2))
        [0, 1]

        Args:
            count: the number of items, at least 0.
        """
        if count_of("take", count) == 0:
            return self._just(None)
        return self._add(TAKE, count)

    def take_last(self, count: int) -> Flow[T_co]:
        """The last `count` items, when the upstream has completed. All items are requested of it.

        >>> import flow_core as flow
        >>> list(flow.range(10).take_last(2))
        [8, 9]

        Args:
            count: the number of items, at least 0; that many items are kept in memory.
        """
        # No more items than a deque can hold are possible.
        return self._add(TAKE_LAST, min(count_of("take_last", count), sys.maxsize))

    @overload
    def take_while(self, predicate: Callable[[T_co], TypeIs[R]]) -> Flow[R]: ...

    @overload
    def take_while(self, predicate: Callable[[T_co], TypeGuard[R]]) -> Flow[R]: ...

    @overload
    def take_while(self, predicate: Callable[[T_co], object]) -> Flow[T_co]: ...

    def take_while(self, predicate: Callable[[T_co], object]) -> Flow[Any]:
        """The items before the first one for which `predicate` is false.

        >>> import flow_core as flow
        >>> list(flow.range(10).take_while(lambda n: n < 3))
        [0, 1, 2]
        """
        return self._add(TAKE_WHILE, predicate)

    def take_until(self, predicate: Callable[[T_co], object] | Shutdown) -> Flow[T_co]:
        """The items up to the first for which `predicate` is true, with it; or until a shutdown.

        >>> import flow_core as flow
        >>> list(flow.range(10).take_until(lambda n: n == 2))
        [0, 1, 2]

        Args:
            predicate: called with each item; or a `Shutdown`, which ends the flow when it begins:
                at once, or with the next item if the source is an iterator, because that is not
                interrupted.
        """
        if isinstance(predicate, Ender):
            return predicate._ended(self._whole())
        return self._add(TAKE_UNTIL, predicate)

    def skip(self, count: int) -> Flow[T_co]:
        """All but the first `count` items.

        >>> import flow_core as flow
        >>> list(flow.range(4).skip(2))
        [2, 3]

        Args:
            count: the number of items, at least 0.
        """
        return self._add(SKIP, count_of("skip", count))

    def skip_last(self, count: int) -> Flow[T_co]:
        """All but the last `count` items; each waits until `count` more have come.

        >>> import flow_core as flow
        >>> list(flow.range(5).skip_last(2))
        [0, 1, 2]

        Args:
            count: the number of items, at least 0; that many items are kept in memory.
        """
        return self._add(SKIP_LAST, count_of("skip_last", count))

    def skip_while(self, predicate: Callable[[T_co], object]) -> Flow[T_co]:
        """All items from the first one on for which `predicate` is false.

        >>> import flow_core as flow
        >>> list(flow.just(1, 5, 2).skip_while(lambda n: n < 3))
        [5, 2]
        """
        return self._add(SKIP_WHILE, predicate)

    def slice(
        self, start: int | None = None, stop: int | None = None, step: int | None = None
    ) -> Flow[T_co]:
        """The items that ``list(flow)[start:stop:step]`` would contain.

        ``flow[start:stop:step]`` is the same.

        >>> import flow_core as flow
        >>> list(flow.range(20).slice(2, 10, 3)), list(flow.range(5)[-2:])
        ([2, 5, 8], [3, 4])

        Args:
            start: the index of the first item; a negative one counts from the end, which keeps as
                many items in memory and emits nothing before the end.
            stop: the index of the first item that is left out; a negative one counts from the end,
                which makes as many items wait.
            step: the difference between the indices of neighbours, at least 1.
        """
        return _sliced(self, start, stop, 1 if step is None else step)

    @overload
    def __getitem__(self, key: int) -> Flow[T_co]: ...

    @overload
    def __getitem__(self, key: builtins.slice) -> Flow[T_co]: ...

    def __getitem__(self, key: int | builtins.slice) -> Flow[T_co]:
        if isinstance(key, builtins.slice):
            return self.slice(key.start, key.stop, key.step)
        return self.element_at(key)

    def element_at(self, index: int) -> Flow[T_co]:
        """The item at `index`, counted from 0; then the upstream is cancelled.

        >>> import flow_core as flow
        >>> list(flow.just("a", "b", "c").element_at(1)), list(flow.just("a", "b")[1])
        (['b'], ['b'])

        If there is no such item, the flow fails with a NoItemError.

        Raises:
            ValueError: if `index` is negative.
        """
        if isinstance(index, int) and index < 0:
            raise ValueError(
                f"element_at({index}): the end is not known before it is there; flow[{index}:] and "
                "take_last() give the last items, last_or_error() the last one"
            )
        return self._add(ELEMENT_AT, count_of("element_at", index, name="index"))

    def element_at_or_default(self, index: int, default: D) -> Flow[T_co | D]:
        """The item at `index`, counted from 0, or `default` if there is no such item.

        >>> import flow_core as flow
        >>> flow.just("a").element_at_or_default(3, "none").single()
        'none'
        """
        given_items("element_at_or_default", default)
        count_of("element_at_or_default", index, name="index")
        return self._add(ELEMENT_AT_OR_DEFAULT, index, default)

    def first_or_error(self) -> Flow[T_co]:
        """The first item; then the upstream is cancelled. Fails with a NoItemError without one.

        >>> import flow_core as flow
        >>> flow.range(3).first_or_error().single()
        0
        """
        return self._add(FIRST_OR_ERROR)

    def first_or_default(self, default: D) -> Flow[T_co | D]:
        """The first item, or `default` if there is none; then the upstream is cancelled.

        >>> import flow_core as flow
        >>> list(flow.empty().first_or_default("nothing"))
        ['nothing']
        """
        return self._add(FIRST_OR_DEFAULT, *given_items("first_or_default", default))

    def last_or_error(self) -> Flow[T_co]:
        """The last item, when the upstream has completed. Fails with a NoItemError without one.

        >>> import flow_core as flow
        >>> flow.range(3).last_or_error().single()
        2
        """
        return self._add(LAST_OR_ERROR)

    def last_or_default(self, default: D) -> Flow[T_co | D]:
        """The last item, or `default` if there is none, when the upstream has completed.

        >>> import flow_core as flow
        >>> flow.empty().last_or_default(7).single()
        7
        """
        return self._add(LAST_OR_DEFAULT, *given_items("last_or_default", default))

    def single_or_error(self) -> Flow[T_co]:
        """The only item, when the upstream has completed.

        >>> import flow_core as flow
        >>> flow.just(3).single_or_error().single()
        3

        Without an item the flow fails with a NoItemError; with a second one it fails at once with a
        TooManyItemsError.
        """
        return self._add(SINGLE_OR_ERROR)

    def single_or_default(self, default: D) -> Flow[T_co | D]:
        """The only item, or `default` if there is none, when the upstream has completed.

        >>> import flow_core as flow
        >>> flow.empty().single_or_default(7).single()
        7

        With a second item the flow fails at once with a TooManyItemsError.
        """
        return self._add(SINGLE_OR_DEFAULT, *given_items("single_or_default", default))

    def distinct(self, key: Callable[[T_co], object] | None = None) -> Flow[T_co]:
        """Each item that has not come before. Memory grows with the number of different items.

        >>> import flow_core as flow
        >>> list(flow.just(1, 2, 1, 3).distinct())
        [1, 2, 3]

        Args:
            key: returns the value to compare; it must be hashable. Without it, the items are
                compared.
        """
        if key is None:
            return self._add(DISTINCT)
        return self._add(DISTINCT_BY, key)

    @overload
    def distinct_until_changed(
        self, key: None = None, same: Callable[[T_co, T_co], object] | None = None
    ) -> Flow[T_co]: ...

    @overload
    def distinct_until_changed(
        self, key: Callable[[T_co], A], same: Callable[[A, A], object] | None = None
    ) -> Flow[T_co]: ...

    def distinct_until_changed(
        self,
        key: Callable[[T_co], Any] | None = None,
        same: Callable[[Any, Any], object] | None = None,
    ) -> Flow[T_co]:
        """Items that differ from the item that was sent before them.

        >>> import flow_core as flow
        >>> list(flow.just(1, 1, 2, 2, 1).distinct_until_changed())
        [1, 2, 1]

        Args:
            key: returns the value to compare; without it, the items are compared.
            same: returns whether two keys count as the same; without it, they are compared by
                ``==``.
        """
        return self._add(DISTINCT_UNTIL_CHANGED, *comparing(key, same))


def _sliced(flow: Fluent[D], start: int | None, stop: int | None, step: int) -> Flow[D]:
    """Return `flow` with the stages of a slice behind it; see `Filtering.slice`."""
    count_of("slice", step, 1, "step")
    for name, bound in (("start", start), ("stop", stop)):
        if bound is not None:
            count_of("slice", abs(bound) if isinstance(bound, int) else bound, 0, name)
    begin = start or 0
    whole = flow._whole()
    if begin < 0 and stop is not None and stop >= 0:
        # The index tells which of the last items lie before `stop`.
        made = (
            whole.map_indexed(lambda item, index: (index, item))
            .take_last(-begin)
            .take_while(lambda pair: pair[0] < stop)
            .map(lambda pair: pair[1])
        )
    else:
        made = whole
        if stop is not None and stop >= 0:
            made = made.take(stop if stop > begin else 0)
        if begin > 0:
            made = made.skip(begin)
        elif begin < 0:
            made = made.take_last(-begin)
        if stop is not None and stop < 0:
            made = made.skip_last(-stop)
    return made if step == 1 else made._add(SLICE, step)
