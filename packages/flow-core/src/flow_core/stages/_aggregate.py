"""Stages that combine all items into one, and the methods of `Flow` that add them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar, overload

from flow_core.errors import NoItemError
from flow_core.stages._fluent import Fluent
from flow_core.stages._template import UNSET, Template

if TYPE_CHECKING:
    from flow_core.flow import Flow

__all__ = ["Aggregating"]

T_co = TypeVar("T_co", covariant=True)
A = TypeVar("A")
K = TypeVar("K")
V = TypeVar("V")


class Addable(Protocol):
    """Items that support ``+``, which `sum` needs."""

    def __add__(self, other: Any, /) -> Any: ...  # Any: a class decides what can be added to it


class Comparable(Protocol):
    """Items that support ``<``, which `sort`, `min` and `max` need."""

    def __lt__(self, other: Any, /) -> Any: ...  # Any: a class decides what it can be compared to


N = TypeVar("N", bound=Addable)
C = TypeVar("C", bound=Comparable)

REDUCE: Final = Template(
    "reduce",
    params=("accumulator",),
    state="total = UNSET",
    on_item="total = x if total is UNSET else accumulator(total, x)",
    on_end="""
    if total is not UNSET:
        x = total
        NOT_NONE
        EMIT
    """,
    ordered=True,
)

REDUCE_FROM: Final = Template(
    "reduce",
    params=("accumulator", "seed"),
    state="total = seed",
    on_item="total = accumulator(total, x)",
    on_end="""
    x = total
    NOT_NONE
    EMIT
    """,
    ordered=True,
)

COLLECT: Final = Template(
    "collect",
    params=("supplier", "collector"),
    state="container = supplier()",
    on_item="collector(container, x)",
    on_end="""
    x = container
    NOT_NONE
    EMIT
    """,
    ordered=True,
)

COLLECT_PARTS: Final = replace(COLLECT, params=("supplier", "collector", "combiner"))

_GIVE_ITEMS: Final = """
    x = items
    EMIT
    """
_GIVE_RESULT: Final = """
    x = result
    EMIT
    """
"""Emits the variable ``result`` at the end."""

TO_LIST: Final = Template(
    "to_list",
    state="items = []",
    on_item="items.append(x)",
    on_end=_GIVE_ITEMS,
)

COUNT: Final = Template(
    "count",
    state="seen = 0",
    on_item="seen += 1",
    on_end="""
    x = seen
    EMIT
    """,
)

TO_SET: Final = Template(
    "to_set",
    state="items = set()",
    on_item="items.add(x)",
    on_end=_GIVE_ITEMS,
)

TO_DICT: Final = Template(
    "to_dict",
    params=("key",),
    state="items = {}",
    on_item="items[key(x)] = x",
    on_end=_GIVE_ITEMS,
    ordered=True,
)

TO_DICT_OF: Final = Template(
    "to_dict",
    params=("key", "value"),
    state="items = {}",
    on_item="items[key(x)] = value(x)",
    on_end=_GIVE_ITEMS,
    ordered=True,
)

TO_MULTIDICT: Final = Template(
    "to_multidict",
    params=("key",),
    state="items = {}",
    on_item="items.setdefault(key(x), []).append(x)",
    on_end=_GIVE_ITEMS,
)

TO_MULTIDICT_OF: Final = Template(
    "to_multidict",
    params=("key", "value"),
    state="items = {}",
    on_item="items.setdefault(key(x), []).append(value(x))",
    on_end=_GIVE_ITEMS,
)

_GIVE_PAIRS: Final = """
    for x in totals.items():
        EMIT
    """

REDUCE_BY_KEY: Final = Template(
    "reduce_by_key",
    params=("key", "accumulator"),
    state="totals = {}",
    on_item="""
    k = key(x)
    totals[k] = accumulator(totals[k], x) if k in totals else x
    """,
    on_end=_GIVE_PAIRS,
)

REDUCE_BY_KEY_OF: Final = Template(
    "reduce_by_key",
    params=("key", "accumulator", "value"),
    state="totals = {}",
    on_item="""
    k = key(x)
    totals[k] = accumulator(totals[k], value(x)) if k in totals else value(x)
    """,
    on_end=_GIVE_PAIRS,
)

COUNT_BY_KEY: Final = Template(
    "count_by_key",
    params=("key",),
    state="totals = {}",
    on_item="""
    k = key(x)
    totals[k] = totals.get(k, 0) + 1
    """,
    on_end=_GIVE_PAIRS,
)

SUM: Final = Template(
    "sum",
    params=("start",),
    state="total = start",
    on_item="total = total + x",
    on_end="""
    x = total
    NOT_NONE
    EMIT
    """,
)


def _no_average() -> NoItemError:
    return NoItemError(
        "average(): the flow has no item; average().on_error_return(...) gives one instead"
    )


AVERAGE: Final = Template(
    "average",
    state="""
    total = 0
    seen = 0
    """,
    on_item="""
    total = total + x
    seen += 1
    """,
    on_end="""
    if not seen:
        raise _no_average()
    x = total / seen
    EMIT
    """,
    helpers=(_no_average,),
)

MIN: Final = Template(
    "min",
    state="best = UNSET",
    on_item="""
    if best is UNSET or x < best:
        best = x
    """,
    on_end="""
    if best is not UNSET:
        x = best
        EMIT
    """,
)

MIN_BY: Final = Template(
    "min",
    params=("key",),
    state="""
    best = UNSET
    least = UNSET
    """,
    on_item="""
    k = key(x)
    if best is UNSET or k < least:
        best = x
        least = k
    """,
    on_end="""
    if best is not UNSET:
        x = best
        EMIT
    """,
)

MAX: Final = Template(
    "max",
    state="best = UNSET",
    on_item="""
    if best is UNSET or best < x:
        best = x
    """,
    on_end="""
    if best is not UNSET:
        x = best
        EMIT
    """,
)

MAX_BY: Final = Template(
    "max",
    params=("key",),
    state="""
    best = UNSET
    most = UNSET
    """,
    on_item="""
    k = key(x)
    if best is UNSET or most < k:
        best = x
        most = k
    """,
    on_end="""
    if best is not UNSET:
        x = best
        EMIT
    """,
)

SORT: Final = Template(
    "sort",
    params=("reverse",),
    state="items = []",
    on_item="items.append(x)",
    on_end="""
    items.sort(reverse=reverse)
    for x in items:
        EMIT
    """,
)


def in_order(items: list[Any], key: Callable[[Any], Any], *, reverse: bool) -> list[Any]:
    """Sort `items` in place and return them."""
    items.sort(key=key, reverse=reverse)
    return items


SORT_BY: Final = Template(
    "sort",
    params=("key", "reverse"),
    state="items = []",
    on_item="items.append(x)",
    on_end="""
    for x in in_order(items, key, reverse=reverse):
        EMIT
    """,
    helpers=(in_order,),
)

ALL: Final = Template(
    "all",
    params=("predicate",),
    state="result = True",
    on_item="""
    if not predicate(x):
        result = False
        STOP
    """,
    on_end=_GIVE_RESULT,
)

SOME: Final = Template(
    "some",
    params=("predicate",),
    state="result = False",
    on_item="""
    if predicate(x):
        result = True
        STOP
    """,
    on_end=_GIVE_RESULT,
)

IS_EMPTY: Final = Template(
    "is_empty",
    state="result = True",
    on_item="""
    result = False
    STOP
    """,
    on_end=_GIVE_RESULT,
    at_most=1,
)

CONTAINS: Final = Template(
    "contains",
    params=("item",),
    state="result = False",
    on_item="""
    if x is item or x == item:
        result = True
        STOP
    """,
    on_end=_GIVE_RESULT,
)


def _called(combiner: Callable[[A, A], object]) -> Callable[[A, A], object]:
    """Check that `combiner` is a function, and return it.

    The loop does not call it, so no other code would check it.
    """
    if not callable(combiner):
        raise TypeError(f"collect() takes a function as 'combiner', not {combiner!r}")
    return combiner


class Aggregating(Fluent[T_co], Generic[T_co]):
    """The methods that combine all items into one, or put all items in another order."""

    __slots__ = ()

    @overload
    def reduce(self, accumulator: Callable[[T_co, T_co], T_co]) -> Flow[T_co]: ...

    @overload
    def reduce(self, accumulator: Callable[[A, T_co], A], seed: A) -> Flow[A]: ...

    def reduce(self, accumulator: Callable[[Any, Any], Any], seed: Any = UNSET) -> Flow[Any]:
        """One item: all items accumulated. No item, if the flow has none and there is no seed.

        >>> import flow_core as flow
        >>> list(flow.range(5).reduce(lambda total, n: total + n))
        [10]

        Args:
            accumulator: ``(accumulated, item) -> accumulated``; the result must not be None.
            seed: the first accumulated value; all runs share it, so the accumulator must not change
                it. Use `collect` to fill a container.
        """
        if seed is UNSET:
            return self._add(REDUCE, accumulator)
        return self._add(REDUCE_FROM, accumulator, seed)

    def collect(
        self,
        supplier: Callable[[], A],
        collector: Callable[[A, T_co], object],
        combiner: Callable[[A, A], object] | None = None,
    ) -> Flow[A]:
        """One item: a container into which all items were put.

        >>> import flow_core as flow
        >>> list(flow.just("b", "a").collect(set, set.add, set.update).map(sorted))
        [['a', 'b']]

        Args:
            supplier: returns the container, once per subscriber.
            collector: ``(container, item)``; puts the item into the container.
            combiner: ``(container, other)``; adds the contents of another container. Only a cluster
                calls it, where each partition fills its own container; without it, a cluster sends
                all items to one place.
        """
        if combiner is None:
            return self._add(COLLECT, supplier, collector)
        return self._add(COLLECT_PARTS, supplier, collector, _called(combiner))

    def to_list(self) -> Flow[list[T_co]]:
        """One item: the list of all items. Memory grows with the flow.

        >>> import flow_core as flow
        >>> flow.range(3).to_list().single()
        [0, 1, 2]
        """
        return self._add(TO_LIST)

    def to_set(self) -> Flow[set[T_co]]:
        """One item: the set of all items, which must be hashable. Memory grows with the set.

        >>> import flow_core as flow
        >>> flow.just(1, 2, 1).to_set().single()
        {1, 2}
        """
        return self._add(TO_SET)

    @overload
    def to_dict(self, key: Callable[[T_co], K]) -> Flow[dict[K, T_co]]: ...

    @overload
    def to_dict(self, key: Callable[[T_co], K], value: Callable[[T_co], V]) -> Flow[dict[K, V]]: ...

    def to_dict(
        self, key: Callable[[T_co], Any], value: Callable[[T_co], Any] | None = None
    ) -> Flow[dict[Any, Any]]:
        """One item: a dict of all items. If several items have the same key, the last one counts.

        >>> import flow_core as flow
        >>> flow.just("a", "bb").to_dict(len).single()
        {1: 'a', 2: 'bb'}

        Args:
            key: returns the key of an item; it must be hashable.
            value: returns the value that is stored for an item; without it, the item itself is
                stored.
        """
        return self._add(TO_DICT, key) if value is None else self._add(TO_DICT_OF, key, value)

    @overload
    def to_multidict(self, key: Callable[[T_co], K]) -> Flow[dict[K, list[T_co]]]: ...

    @overload
    def to_multidict(
        self, key: Callable[[T_co], K], value: Callable[[T_co], V]
    ) -> Flow[dict[K, list[V]]]: ...

    def to_multidict(
        self, key: Callable[[T_co], Any], value: Callable[[T_co], Any] | None = None
    ) -> Flow[dict[Any, list[Any]]]:
        """One item: a dict with the list of all items of each key.

        >>> import flow_core as flow
        >>> flow.just("a", "bb", "c").to_multidict(len).single()
        {1: ['a', 'c'], 2: ['bb']}

        Args:
            key: returns the key of an item; it must be hashable.
            value: returns the value that is stored for an item; without it, the item itself is
                stored.
        """
        if value is None:
            return self._add(TO_MULTIDICT, key)
        return self._add(TO_MULTIDICT_OF, key, value)

    @overload
    def reduce_by_key(
        self, key: Callable[[T_co], K], accumulator: Callable[[T_co, T_co], T_co]
    ) -> Flow[tuple[K, T_co]]: ...

    @overload
    def reduce_by_key(
        self,
        key: Callable[[T_co], K],
        accumulator: Callable[[V, V], V],
        value: Callable[[T_co], V],
    ) -> Flow[tuple[K, V]]: ...

    def reduce_by_key(
        self,
        key: Callable[[Any], Any],
        accumulator: Callable[[Any, Any], Any],
        value: Callable[[Any], Any] | None = None,
    ) -> Flow[tuple[Any, Any]]:
        """One pair for each key: the key, and its items, accumulated.

        The pairs come when the upstream has completed, in the order in which the keys first came.
        Memory grows with the number of keys. On a cluster, the items of each partition are
        accumulated there, and the results are then accumulated by key, so `accumulator` has to be
        associative and commutative.

        >>> import flow_core as flow
        >>> words = flow.just("to", "be", "or", "not")
        >>> list(words.reduce_by_key(len, max))
        [(2, 'to'), (3, 'not')]
        >>> list(words.reduce_by_key(len, lambda a, b: a + b, value=lambda word: word.count("o")))
        [(2, 2), (3, 1)]

        Args:
            key: returns the key of an item; it must be hashable.
            accumulator: ``(accumulated, value) -> accumulated``.
            value: returns the value of an item that is accumulated; without it, the item itself is.
        """
        if value is None:
            return self._add(REDUCE_BY_KEY, key, accumulator)
        return self._add(REDUCE_BY_KEY_OF, key, accumulator, value)

    def count_by_key(self, key: Callable[[T_co], K]) -> Flow[tuple[K, int]]:
        """One pair for each key: the key, and how many items have it.

        As with `reduce_by_key`, the pairs come when the upstream has completed, in the order in
        which the keys first came.

        >>> import flow_core as flow
        >>> list(flow.just("to", "be", "or", "not").count_by_key(len))
        [(2, 3), (3, 1)]

        Args:
            key: returns the key of an item; it must be hashable.
        """
        return self._add(COUNT_BY_KEY, key)

    def count(self) -> Flow[int]:
        """One item: the number of items.

        >>> import flow_core as flow
        >>> flow.just("a", "b").count().single()
        2
        """
        constant = self._constant()
        if constant is not None:
            return self._just(0 if constant.call() is None else 1)  # macro-fusion (F05)
        return self._add(COUNT)

    @overload
    def sum(self: Aggregating[int]) -> Flow[int]: ...

    @overload
    def sum(self: Aggregating[float]) -> Flow[float]: ...

    @overload
    def sum(self: Aggregating[N], start: N) -> Flow[N]: ...

    def sum(self, start: Any = 0) -> Flow[Any]:
        """One item: all items added up; only `start`, if there are no items.

        >>> import flow_core as flow
        >>> list(flow.range(5).sum())
        [10]

        Args:
            start: the first value of the sum; needed if the items are not numbers.
        """
        return self._add(SUM, start)

    def average(self: Aggregating[float]) -> Flow[float]:
        """One item: the arithmetic mean. Without items, the flow fails with a NoItemError.

        >>> import flow_core as flow
        >>> list(flow.just(1, 2, 6).average())
        [3.0]
        """
        return self._add(AVERAGE)

    @overload
    def min(self: Aggregating[Comparable]) -> Flow[T_co]: ...

    @overload
    def min(self, key: Callable[[T_co], Comparable]) -> Flow[T_co]: ...

    def min(self, key: Callable[[Any], Any] | None = None) -> Flow[Any]:
        """One item: the least; of equal ones, the first. No item, if the flow has none.

        >>> import flow_core as flow
        >>> list(flow.just("bb", "a", "c").min(len))
        ['a']

        Args:
            key: returns the value to compare by ``<``; without it, the items are compared.
        """
        return self._add(MIN) if key is None else self._add(MIN_BY, key)

    @overload
    def max(self: Aggregating[Comparable]) -> Flow[T_co]: ...

    @overload
    def max(self, key: Callable[[T_co], Comparable]) -> Flow[T_co]: ...

    def max(self, key: Callable[[Any], Any] | None = None) -> Flow[Any]:
        """One item: the greatest; of equal ones, the first. No item, if the flow has none.

        >>> import flow_core as flow
        >>> list(flow.just(1, 3, 2).max())
        [3]

        Args:
            key: returns the value to compare by ``<``; without it, the items are compared.
        """
        return self._add(MAX) if key is None else self._add(MAX_BY, key)

    @overload
    def sort(self: Aggregating[Comparable], *, reverse: bool = ...) -> Flow[T_co]: ...

    @overload
    def sort(self, key: Callable[[T_co], Comparable], *, reverse: bool = ...) -> Flow[T_co]: ...

    def sort(self, key: Callable[[Any], Any] | None = None, *, reverse: bool = False) -> Flow[Any]:
        """All items in order, when the upstream has completed; stable. Memory grows with the flow.

        >>> import flow_core as flow
        >>> list(flow.just(3, 1, 2).sort(reverse=True))
        [3, 2, 1]

        Args:
            key: returns the value to compare; without it, the items are compared.
            reverse: whether the greatest item comes first.
        """
        return self._add(SORT, reverse) if key is None else self._add(SORT_BY, key, reverse)

    def all(self, predicate: Callable[[T_co], object]) -> Flow[bool]:
        """One item: True if `predicate` is true for all items, and False otherwise.

        False is sent as soon as `predicate` is false for an item.

        >>> import flow_core as flow
        >>> list(flow.range(3).all(lambda n: n < 3))
        [True]
        """
        return self._add(ALL, predicate)

    def some(self, predicate: Callable[[T_co], object]) -> Flow[bool]:
        """One item: True if `predicate` is true for at least one item, and False otherwise.

        True is sent as soon as `predicate` is true for an item.

        >>> import flow_core as flow
        >>> list(flow.range(10**9).some(lambda n: n == 2))
        [True]
        """
        return self._add(SOME, predicate)

    def is_empty(self) -> Flow[bool]:
        """One item: True if the flow has no item. False is sent with the first item.

        >>> import flow_core as flow
        >>> flow.empty().is_empty().single()
        True
        """
        return self._add(IS_EMPTY)

    def contains(self, item: object) -> Flow[bool]:
        """One item: True as soon as an item equals `item`; False if the flow completes without one.

        >>> import flow_core as flow
        >>> list(flow.just("a", "b").contains("b"))
        [True]
        """
        return self._add(CONTAINS, item)
