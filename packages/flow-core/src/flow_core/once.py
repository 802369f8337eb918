"""Iterators yield their items once; flows run once for each subscription."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from types import AsyncGeneratorType, GeneratorType
from typing import Final, Generic, TypeVar, cast, final

from flow_core.assembly import labelled
from flow_core.errors import FlowError
from flow_core.stages._template import describe

__all__ = ["AsyncOnce", "Once", "once", "refuse_again", "spent"]

T = TypeVar("T")


def once(items: Iterable[T], name: str) -> Iterable[T]:
    """Return `items`; an iterator is wrapped: it serves one run, and raises an error in the next.

    Args:
        items: any iterable.
        name: the operator that takes `items`, for the message.
    """
    if not hasattr(items, "__next__"):
        return items
    return Once(cast("Iterator[T]", items), labelled(name, type(items).__name__))


def spent(label: str, iterator: object) -> FlowError:
    """Return the error for a run whose iterator was already used by an earlier run.

    Args:
        label: the operator or source, and where it was assembled, for the message.
        iterator: the iterator whose items an earlier run has taken.
    """
    kind = type(iterator).__name__
    return FlowError(
        f"{label}: this {kind} was iterated over before, and an iterator gives its items only "
        "once; to run a flow several times, give it a list, or make a new iterator for each run "
        "by flow_core.defer(lambda: …)"
    )


def refuse_again(made: object, mapper: object) -> None:
    """Raise FlowError if `made`, which `mapper` has returned twice in a row, is an iterator."""
    if hasattr(made, "__next__"):
        raise spent(f"{describe(mapper)} gave the same object for two items", made)


def _has_ended(iterator: object) -> bool:
    """Return whether `iterator` is a generator that has ended: one without a frame."""
    if isinstance(iterator, GeneratorType):
        return iterator.gi_frame is None
    return isinstance(iterator, AsyncGeneratorType) and iterator.ag_frame is None


@final
class Once(Iterable[T], Generic[T]):
    """An iterator for one run: the first run gets it, and each further one fails.

    Args:
        iterator: the iterator that the first run gets.
        label: the operator and where it was assembled, for the error in the other runs.
    """

    __slots__ = ("_first", "_label", "iterator")

    def __init__(self, iterator: Iterator[T], label: str) -> None:
        self.iterator: Final = iterator
        self._label = label
        self._first = [True]

    def __iter__(self) -> Iterator[T]:
        iterator = self.iterator
        made = iter(iterator)
        if made is not iterator:
            return made  # it has a __next__, and still returns a new iterator
        if _has_ended(iterator):
            raise spent(self._label, iterator)
        try:
            del self._first[0]
        except IndexError:
            raise spent(self._label, iterator) from None
        return iterator

    def __repr__(self) -> str:
        return repr(self.iterator)


@final
class AsyncOnce(AsyncIterable[T], Generic[T]):
    """An asynchronous iterator for one run; see `Once`.

    Args:
        iterator: the iterator that the first run gets.
        label: the operator and where it was assembled, for the error in the other runs.
    """

    __slots__ = ("_first", "_iterator", "_label")

    def __init__(self, iterator: AsyncIterator[T], label: str) -> None:
        self._iterator = iterator
        self._label = label
        self._first = [True]

    def __aiter__(self) -> AsyncIterator[T]:
        iterator = self._iterator
        made = aiter(iterator)
        if made is not iterator:
            return made
        if _has_ended(iterator):
            raise spent(self._label, iterator)
        try:
            del self._first[0]
        except IndexError:
            raise spent(self._label, iterator) from None
        return iterator
