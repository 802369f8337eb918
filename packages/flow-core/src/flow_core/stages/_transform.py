"""Stages that turn items into other items, and the methods of `Flow` that add them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    TypeVar,
    TypeVarTuple,
    overload,
)

from flow_core.once import refuse_again
from flow_core.stages._fluent import Fluent, comparing, count_of
from flow_core.stages._sink import SingleSink
from flow_core.stages._template import UNSET, Template

if TYPE_CHECKING:
    from flow_core.flow import Flow

__all__ = ["Transforming"]

T_co = TypeVar("T_co", covariant=True)
A = TypeVar("A")
R = TypeVar("R")
Parts = TypeVarTuple("Parts")

MAP: Final = Template(
    "map",
    params=("mapper",),
    on_item="""
    x = mapper(x)
    NOT_NONE
    EMIT
    """,
)

STARMAP: Final = Template(
    "starmap",
    params=("function",),
    on_item="""
    x = function(*x)
    NOT_NONE
    EMIT
    """,
)

FLAT_MAP_ITERABLE: Final = Template(
    "flat_map_iterable",
    params=("mapper",),
    state="made = None",
    on_item="""
    last = made
    made = mapper(x)
    if made is last:
        refuse_again(made, mapper)
    for x in made:
        NOT_NONE
        EMIT
    """,
    helpers=(refuse_again,),
    watches=True,
)

MAP_OPTIONAL: Final = Template(
    "map_optional",
    params=("mapper",),
    on_item="""
    x = mapper(x)
    if x is not None:
        EMIT
    """,
)

MAP_INDEXED: Final = Template(
    "map_indexed",
    params=("mapper",),
    state="index = -1",
    on_item="""
    index += 1
    x = mapper(x, index)
    NOT_NONE
    EMIT
    """,
    ordered=True,
)


def _not_castable(item: object, kind: type | tuple[type, ...]) -> TypeError:
    wanted = kind.__name__ if isinstance(kind, type) else " or ".join(k.__name__ for k in kind)
    return TypeError(
        f"cast({wanted}): got {item!r}, which is of {type(item).__name__}; "
        "of_type() leaves such items out"
    )


CAST: Final = Template(
    "cast",
    params=("kind",),
    on_item="""
    if not isinstance(x, kind):
        raise _not_castable(x, kind)
    EMIT
    """,
    helpers=(_not_castable,),
)

HANDLE: Final = Template(
    "handle",
    params=("handler",),
    state="sink = SingleSink('handle')",
    on_item="""
    handler(x, sink)
    x = sink.taken()
    if x is not UNSET:
        EMIT
    if sink.done:
        sink.rethrow()
        STOP
    """,
    helpers=(SingleSink,),
    ordered=True,
)

SCAN: Final = Template(
    "scan",
    params=("accumulator", "seed"),
    state="total = seed",
    on_item="""
    total = x = x if total is UNSET else accumulator(total, x)
    NOT_NONE
    EMIT
    """,
    ordered=True,
)

PAIRWISE: Final = Template(
    "pairwise",
    state="previous = UNSET",
    on_item="""
    pair = (previous, x)
    previous = x
    if pair[0] is not UNSET:
        x = pair
        EMIT
    """,
    ordered=True,
)

_REST_OF_BUFFER: Final = """
    if buffer:
        x = buffer
        EMIT
    """
"""The text with which buffering stages emit the last list at the end, which is not full."""

BUFFER_WITH_COUNT: Final = Template(
    "buffer_with_count",
    params=("count",),
    state="buffer = []",
    on_item="""
    buffer.append(x)
    if len(buffer) == count:
        x = buffer
        buffer = []
        EMIT
    """,
    on_end=_REST_OF_BUFFER,
    ordered=True,
)

BUFFER_WITH_COUNT_SKIP: Final = Template(
    "buffer_with_count",
    params=("count", "skip"),
    state="""
    buffers = []
    index = 0
    """,
    on_item="""
    if index % skip == 0:
        buffers.append([])
    index += 1
    for buffer in buffers:
        buffer.append(x)
    if buffers and len(buffers[0]) == count:
        x = buffers.pop(0)
        EMIT
    """,
    on_end="""
    for x in buffers:
        EMIT
    """,
    ordered=True,
)

SLIDING: Final = Template(
    "sliding",
    params=("size", "step"),
    state="""
    window = deque(maxlen=size)
    wanted = size
    """,
    on_item="""
    window.append(x)
    wanted -= 1
    if not wanted:
        wanted = step
        x = list(window)
        EMIT
    """,
    helpers=(deque,),
    ordered=True,
)

BUFFER_UNTIL: Final = Template(
    "buffer_until",
    params=("predicate",),
    state="buffer = []",
    on_item="""
    buffer.append(x)
    if predicate(x):
        x = buffer
        buffer = []
        EMIT
    """,
    on_end=_REST_OF_BUFFER,
    ordered=True,
)

BUFFER_UNTIL_BEFORE: Final = Template(
    "buffer_until",
    params=("predicate", "cut_before"),
    state="buffer = []",
    on_item="""
    full = buffer
    if predicate(x):
        buffer = [x]
    else:
        buffer.append(x)
        full = None
    if full:
        x = full
        EMIT
    """,
    on_end=_REST_OF_BUFFER,
    ordered=True,
)

BUFFER_WHILE: Final = Template(
    "buffer_while",
    params=("predicate",),
    state="buffer = []",
    on_item="""
    full = None
    if predicate(x):
        buffer.append(x)
    else:
        full = buffer
        buffer = []
    if full:
        x = full
        EMIT
    """,
    on_end=_REST_OF_BUFFER,
    ordered=True,
)

BUFFER_SPLIT: Final = Template(
    "buffer_split",
    params=("predicate",),
    state="buffer = []",
    on_item="""
    if predicate(x):
        x = buffer
        buffer = []
        EMIT
    else:
        buffer.append(x)
    """,
    on_end=_REST_OF_BUFFER,
    ordered=True,
)

BUFFER_UNTIL_CHANGED: Final = Template(
    "buffer_until_changed",
    params=("key", "same"),
    state="""
    buffer = []
    last = UNSET
    """,
    on_item="""
    k = key(x)
    full = None
    if last is not UNSET and not same(last, k):
        full = buffer
        buffer = []
    last = k
    buffer.append(x)
    if full is not None:
        x = full
        EMIT
    """,
    on_end=_REST_OF_BUFFER,
    ordered=True,
)


class Transforming(Fluent[T_co], Generic[T_co]):
    """The methods that turn items into other items."""

    __slots__ = ()

    def map(self, mapper: Callable[[T_co], R]) -> Flow[R]:
        """The result of ``mapper(item)`` for each item.

        >>> import flow_core as flow
        >>> list(flow.range(3).map(str))
        ['0', '1', '2']

        Args:
            mapper: must not return None.
        """
        return self._add(MAP, mapper)

    def starmap(self: Transforming[tuple[*Parts]], function: Callable[[*Parts], R]) -> Flow[R]:
        """The result of ``function(*item)`` for each item, which is a tuple.

        >>> import flow_core as flow
        >>> list(flow.just((2, 5), (3, 2)).starmap(pow))
        [32, 9]

        Args:
            function: takes as many arguments as the tuple has parts; must not return None.
        """
        return self._add(STARMAP, function)

    def map_optional(self, mapper: Callable[[T_co], R | None]) -> Flow[R]:
        """The result of ``mapper(item)`` for each item; if the result is None, there is no item.

        >>> import flow_core as flow
        >>> list(flow.just("a", "b").map_optional({"a": 1}.get))
        [1]
        """
        return self._add(MAP_OPTIONAL, mapper)

    def map_indexed(self, mapper: Callable[[T_co, int], R]) -> Flow[R]:
        """The result of ``mapper(item, index)`` for each item; the index counts from 0.

        >>> import flow_core as flow
        >>> list(flow.just("a", "b").map_indexed(lambda letter, i: f"{i}{letter}"))
        ['0a', '1b']

        Args:
            mapper: must not return None.
        """
        return self._add(MAP_INDEXED, mapper)

    def cast(self, kind: type[R]) -> Flow[R]:
        """The same items, typed as instances of a class.

        >>> import flow_core as flow
        >>> list(flow.just(1, 2).cast(int))
        [1, 2]

        Args:
            kind: the class. If an item is not an instance of it, the flow fails with a TypeError.
        """
        return self._add(CAST, kind)

    def handle(self, handler: Callable[[T_co, SingleSink[R]], object]) -> Flow[R]:
        """Map, filter, complete and fail in one function: `handler` gets an item and a sink.

        >>> import flow_core as flow
        >>> def until_stop(word: str, sink: flow.SingleSink[int]) -> None:
        ...     if word == "stop":
        ...         sink.complete()
        ...     elif word.isdigit():
        ...         sink.next(int(word))
        >>> list(flow.just("1", "x", "2", "stop", "3").handle(until_stop))
        [1, 2]

        Args:
            handler: ``(item, sink)``; calls ``sink.next`` at most once, then perhaps
                ``sink.complete`` or ``sink.error``. If it calls none of them, the item is left out.
        """
        return self._add(HANDLE, handler)

    def flat_map_iterable(self, mapper: Callable[[T_co], Iterable[R]]) -> Flow[R]:
        """The items of ``mapper(item)``, one iterable after the other, each read as far as needed.

        >>> import flow_core as flow
        >>> list(flow.just("ab", "c").flat_map_iterable(list))
        ['a', 'b', 'c']

        Args:
            mapper: returns any iterable, which may be a synchronous Flow, and may be infinite.
        """
        return self._add(FLAT_MAP_ITERABLE, mapper)

    @overload
    def scan(self, accumulator: Callable[[T_co, T_co], T_co]) -> Flow[T_co]: ...

    @overload
    def scan(self, accumulator: Callable[[A, T_co], A], seed: A) -> Flow[A]: ...

    def scan(self, accumulator: Callable[[Any, Any], Any], seed: Any = UNSET) -> Flow[Any]:
        """The accumulated value after each item.

        >>> import flow_core as flow
        >>> list(flow.range(1, 5).scan(lambda total, n: total + n))
        [1, 3, 6, 10]

        Args:
            accumulator: ``(accumulated, item) -> accumulated``; must not return None.
            seed: the first accumulated value; it is not sent itself. Without a seed, the first item
                is that value, and is sent.
        """
        return self._add(SCAN, accumulator, seed)

    def pairwise(self) -> Flow[tuple[T_co, T_co]]:
        """Pairs of neighbours: from the second item on, each item with the one before it.

        >>> import flow_core as flow
        >>> list(flow.just("a", "b", "c").pairwise())
        [('a', 'b'), ('b', 'c')]
        """
        return self._add(PAIRWISE)

    def buffer_with_count(self, count: int, skip: int | None = None) -> Flow[list[T_co]]:
        """Lists of `count` items; the last list may be shorter.

        >>> import flow_core as flow
        >>> list(flow.range(5).buffer_with_count(2))
        [[0, 1], [2, 3], [4]]

        Args:
            count: how many items a list has, at least 1.
            skip: how many items are between the start of one list and the start of the next; by
                default `count`. If it is less than `count`, the lists overlap; if it is more, items
                are left out.
        """
        count_of("buffer_with_count", count, 1)
        if skip is None or skip == count:
            return self._add(BUFFER_WITH_COUNT, count)
        return self._add(
            BUFFER_WITH_COUNT_SKIP, count, count_of("buffer_with_count", skip, 1, "skip")
        )

    def sliding(self, size: int, step: int = 1) -> Flow[list[T_co]]:
        """Lists of `size` neighbours, which overlap: each begins `step` items after the one before.

        >>> import flow_core as flow
        >>> list(flow.range(5).sliding(3))
        [[0, 1, 2], [1, 2, 3], [2, 3, 4]]

        No list is shorter: items that are left over at the end are in no list.
        (`buffer_with_count(size, step)` makes shorter lists of them.)

        Args:
            size: how many items a list has, at least 1.
            step: how many items are between the start of one list and the start of the next, at
                least 1; if it is more than `size`, items are left out.
        """
        count_of("sliding", size, 1, "size")
        return self._add(SLIDING, size, count_of("sliding", step, 1, "step"))

    def buffer_until(
        self, predicate: Callable[[T_co], object], *, cut_before: bool = False
    ) -> Flow[list[T_co]]:
        """Lists that each end with an item for which `predicate` is true; the last may lack it.

        >>> import flow_core as flow
        >>> list(flow.just("a", ".", "b", "c", ".", "d").buffer_until(lambda s: s == "."))
        [['a', '.'], ['b', 'c', '.'], ['d']]

        A list grows until `predicate` is true for an item, so memory grows with the longest list.

        Args:
            predicate: returns whether an item is the last of its list.
            cut_before: if True, such an item begins a new list instead of ending one.
        """
        if cut_before:
            return self._add(BUFFER_UNTIL_BEFORE, predicate, cut_before)
        return self._add(BUFFER_UNTIL, predicate)

    def buffer_while(self, predicate: Callable[[T_co], object]) -> Flow[list[T_co]]:
        """Lists of neighbours for which `predicate` is true; others end a list, and are left out.

        >>> import flow_core as flow
        >>> list(flow.just(1, 2, -1, -2, 3).buffer_while(lambda n: n > 0))
        [[1, 2], [3]]
        """
        return self._add(BUFFER_WHILE, predicate)

    def buffer_split(self, predicate: Callable[[T_co], object]) -> Flow[list[T_co]]:
        """Lists of the items between separators; the separators are left out. A list may be empty.

        >>> import flow_core as flow
        >>> list(flow.from_iterable("ab,,c").buffer_split(lambda s: s == ","))
        [['a', 'b'], [], ['c']]

        Args:
            predicate: returns whether an item is a separator.
        """
        return self._add(BUFFER_SPLIT, predicate)

    @overload
    def buffer_until_changed(
        self, key: None = None, same: Callable[[T_co, T_co], object] | None = None
    ) -> Flow[list[T_co]]: ...

    @overload
    def buffer_until_changed(
        self, key: Callable[[T_co], A], same: Callable[[A, A], object] | None = None
    ) -> Flow[list[T_co]]: ...

    def buffer_until_changed(
        self,
        key: Callable[[T_co], Any] | None = None,
        same: Callable[[Any, Any], object] | None = None,
    ) -> Flow[list[T_co]]:
        """Lists of neighbours that have the same key.

        >>> import flow_core as flow
        >>> list(flow.just(1, 3, 2, 4, 5).buffer_until_changed(lambda n: n % 2))
        [[1, 3], [2, 4], [5]]

        Args:
            key: returns the value to compare; without it, the items are compared.
            same: returns whether two keys count as the same; without it, they are compared by
                ``==``.
        """
        return self._add(BUFFER_UNTIL_CHANGED, *comparing(key, same))
