"""Stages that add items, and the methods of `Flow` that add these stages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, overload

from flow_core.once import once
from flow_core.stages._fluent import Fluent, given_items
from flow_core.stages._template import Template

if TYPE_CHECKING:
    from flow_core.flow import Flow

__all__ = ["Combining"]

T_co = TypeVar("T_co", covariant=True)
D = TypeVar("D")
R = TypeVar("R")

START_WITH: Final = Template(
    "start_with",
    params=("items",),
    on_start="""
    for x in items:
        EMIT
    """,
)

END_WITH: Final = Template(
    "end_with",
    params=("items",),
    on_end="""
    for x in items:
        EMIT
    """,
)

DEFAULT_IF_EMPTY: Final = Template(
    "default_if_empty",
    params=("default",),
    state="found = False",
    on_item="""
    found = True
    EMIT
    """,
    on_end="""
    if not found:
        x = default
        EMIT
    """,
)

ZIP_WITH_ITERABLE: Final = Template(
    "zip_with_iterable",
    params=("other", "zipper"),
    state="""
    others = iter(other)
    y = UNSET
    """,
    on_start="""
    y = next(others, UNSET)
    if y is UNSET:
        STOP
    """,
    on_item="""
    x = zipper(x, y)
    NOT_NONE
    EMIT
    y = next(others, UNSET)
    if y is UNSET:
        STOP
    """,
    ordered=True,
)


def pair(left: Any, right: Any) -> tuple[Any, Any]:  # Any: items of any type
    """Return both items as a tuple."""
    return left, right


class Combining(Fluent[T_co], Generic[T_co]):
    """The methods that add items."""

    __slots__ = ()

    def start_with(self, *items: D) -> Flow[T_co | D]:
        """The given `items`, then those of this flow.

        >>> import flow_core as flow
        >>> list(flow.just(2, 3).start_with(0, 1))
        [0, 1, 2, 3]
        """
        return self._add(START_WITH, given_items("start_with", *items))

    def end_with(self, *items: D) -> Flow[T_co | D]:
        """The items of this flow; if it completes, then the given `items`.

        >>> import flow_core as flow
        >>> list(flow.just(0, 1).end_with(2, 3))
        [0, 1, 2, 3]
        """
        return self._add(END_WITH, given_items("end_with", *items))

    def default_if_empty(self, default: D) -> Flow[T_co | D]:
        """The items of this flow; `default`, if it completes without any.

        >>> import flow_core as flow
        >>> list(flow.empty().default_if_empty(0))
        [0]
        """
        return self._add(DEFAULT_IF_EMPTY, *given_items("default_if_empty", default))

    @overload
    def zip_with_iterable(self, other: Iterable[D]) -> Flow[tuple[T_co, D]]: ...

    @overload
    def zip_with_iterable(self, other: Iterable[D], zipper: Callable[[T_co, D], R]) -> Flow[R]: ...

    def zip_with_iterable(
        self, other: Iterable[D], zipper: Callable[[T_co, D], Any] = pair
    ) -> Flow[Any]:
        """Each item, combined with the next item of an iterable; ends with the shorter of the two.

        >>> import flow_core as flow
        >>> list(flow.just("a", "b", "c").zip_with_iterable([1, 2]))
        [('a', 1), ('b', 2)]

        Args:
            other: the iterable; each run iterates over it again, one item ahead, so that the flow
                completes with the last pair and requests no item of its upstream in vain. An
                iterator serves one run only; see `from_iterable`.
            zipper: combines two items into one; must not return None. Without it, the pair is a
                tuple.
        """
        return self._add(ZIP_WITH_ITERABLE, once(other, "zip_with_iterable"), zipper)
