"""Results that are combined in this process while they are few, and on the cluster otherwise."""

from __future__ import annotations

import logging
import math
import threading
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Final, Protocol, final

from typing_extensions import override

from flow_spark.jobs.frames import size_of
from flow_spark.jobs.intake import Stop
from flow_spark.jobs.origin import Job, Opened

__all__ = ["FEW", "DistinctFirst", "FewFirst", "Shared"]

_log: Final = logging.getLogger("flow.spark")

FEW: Final = 10_000
"""The most results by key that are combined in this process."""

_MOST_KEYS: Final = 2**20
"""The most keys that `DistinctFirst` holds."""

_SMALL: Final = 64 * 1024 * 1024
"""The most bytes of rows, as Spark estimates them, of which there may be few results. If there turn
out to be many, the rows are read again."""

_MOST_BYTES: Final = 64 * 1024 * 1024
"""The most bytes of pickled items that are received before they count as many."""

# Any: items of any type.
_Opening = AbstractContextManager[Opened | None]


class _ManyError(Exception):
    """There are too many rows, or too many results."""


class _Measured(Job, Protocol):
    """A job that counts what it receives."""

    received: int
    """The bytes of the items so far, pickled."""


@final
class Shared:
    """Rows for several jobs, one after the other: they are made once.

    The maker of this object uses the rows, too, until it calls `release`.

    Args:
        make: makes the rows, and then removes what it had to make.
    """

    __slots__ = ("_lock", "_make", "_opened", "_rows", "_users")

    def __init__(self, make: Callable[[Stop], _Opening]) -> None:
        self._make: Final = make
        self._lock: Final = threading.Lock()
        self._rows: ExitStack | None = None
        self._opened: Opened | None = None
        self._users = 1

    @contextmanager
    def opened(self, stop: Stop) -> Generator[Opened | None, None, None]:
        """Use the rows in this block: the first block makes them."""
        with self._lock:
            self._users += 1
        try:
            if self._rows is None:
                self._rows = ExitStack()
                self._opened = self._rows.enter_context(self._make(stop))
            yield None if stop() else self._opened
        finally:
            self.release()

    @contextmanager
    def small(self, stop: Stop) -> Generator[Opened | None, None, None]:
        """Use the rows; fail with what `FewFirst` expects if they are not known to be few."""
        with self.opened(stop) as opened:
            if opened is not None and not _is_small(opened):
                raise _ManyError
            yield opened

    def changed(self, change: Callable[[Opened], Opened]) -> Callable[[Stop], _Opening]:
        """Return a function like `opened`, for the rows that `change` makes of these."""

        @contextmanager
        def opened(stop: Stop) -> Generator[Opened | None, None, None]:
            with self.opened(stop) as rows:
                yield None if rows is None else change(rows)

        return opened

    def release(self) -> None:
        """End a use of the rows: the last use removes what was made."""
        with self._lock:
            self._users -= 1
            rows = None if self._users else self._rows
        if rows is not None:
            rows.close()


class _TwoJobs(Job):
    """A job that gives the results, and another one, in case they are many.

    Args:
        first: gives the results of partitions.
        then: gives all results.
        rows: the rows of both jobs.
    """

    __slots__ = ("_first", "_rows", "_stop", "_then")

    def __init__(self, first: _Measured, then: Job, rows: Shared) -> None:
        self._first: Final = first
        self._then: Final = then
        self._rows: Final = rows
        self._stop: Final = Stop()

    @override
    def __iter__(self) -> Iterator[Iterable[Any]]:
        try:
            yield from self._results()
        finally:
            self._first.cancel()
            self._rows.release()

    def _are_many(self, count: int, most: float) -> bool:
        """Return whether `count` items are more than `most`, or large."""
        return count > most or (most < math.inf and self._first.received > _MOST_BYTES)

    @abstractmethod
    def _results(self) -> Iterator[Iterable[Any]]:
        """Yield the results in lists or other iterables."""

    @override
    def cancel(self) -> None:
        self._stop.set()
        self._first.cancel()
        self._then.cancel()


@final
class FewFirst(_TwoJobs):
    """Combines the results of partitions here; the other job combines them if they are many.

    Args:
        first: gives the results of partitions.
        then: gives the combined results.
        rows: the rows of both jobs.
        combine: combines results of `first`.
        most: how many of them at most.
    """

    __slots__ = ("_combine", "_most")

    def __init__(
        self,
        first: _Measured,
        then: Job,
        rows: Shared,
        combine: Callable[[Iterator[Any]], Iterator[Any]],
        most: int,
    ) -> None:
        super().__init__(first, then, rows)
        self._combine: Final = combine
        self._most: Final = most

    @override
    def _results(self) -> Iterator[Iterable[Any]]:
        few = self._few()
        if few is None:
            yield from self._then
        elif not self._stop():
            yield self._combine(iter(few))

    def _few(self) -> list[Any] | None:
        """Return the results of partitions; None if they are many."""
        few: list[Any] = []
        try:
            for batch in self._first:
                few += batch
                if self._are_many(len(few), self._most):
                    return None
        except _ManyError:
            return None
        finally:
            self._first.cancel()
        return few


@final
class DistinctFirst(_TwoJobs):
    """Gives one item for each key as they come; those that follow very many come from the other.

    Args:
        first: gives items, of which several may have the same key.
        then: gives one item for each key.
        rows: the rows of both jobs.
        key: returns the key of an item.
        repeats: whether the rows and so their items are the same in both jobs. If not, all keys are
            held here.
    """

    __slots__ = ("_key", "_repeats")

    def __init__(
        self,
        first: _Measured,
        then: Job,
        rows: Shared,
        key: Callable[[Any], object],
        repeats: Callable[[], bool],
    ) -> None:
        super().__init__(first, then, rows)
        self._key: Final = key
        self._repeats: Final = repeats

    @override
    def _results(self) -> Iterator[Iterable[Any]]:
        seen = set[object]()
        most = float(_MOST_KEYS)
        for batch in self._first:
            yield self._new(batch, seen)
            if self._are_many(len(seen), most):
                if self._repeats():
                    break
                most = math.inf
        else:
            return
        self._first.cancel()
        _log.info("there are more than %d different items: a shuffle finds them", len(seen))
        for batch in self._then:
            yield [item for item in batch if self._key(item) not in seen]

    def _new(self, batch: Iterable[Any], seen: set[object]) -> list[Any]:
        """Return the items of `batch` with keys that are not in `seen`; add the keys."""
        new: list[Any] = []
        for item in batch:
            key = self._key(item)
            if key not in seen:
                seen.add(key)
                new.append(item)
        return new


def _is_small(opened: Opened) -> bool:
    sizes = [size_of(rows.df) for rows in (opened, *opened.others)]
    return sum(_SMALL + 1 if size is None else size for size in sizes) <= _SMALL
