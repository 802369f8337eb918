"""Results that are combined in this process while they are few, and behind a shuffle otherwise."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Final, final

from typing_extensions import override

from flow_spark.jobs.frames import size_of
from flow_spark.jobs.intake import Stop
from flow_spark.jobs.origin import Job, Opened

__all__ = ["FEW", "FewFirst", "Shared"]

FEW: Final = 10_000
"""The most results of partitions that are combined in this process."""

_SMALL: Final = 64 * 1024 * 1024
"""The most bytes of rows, as Spark estimates them, of which there may be few results. If there turn
out to be many, the rows are read again."""

# Any: items of any type.
_Opening = AbstractContextManager[Opened | None]


class _ManyError(Exception):
    """There are too many rows, or too many results."""


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

    def release(self) -> None:
        """End a use of the rows: the last use removes what was made."""
        with self._lock:
            self._users -= 1
            rows = None if self._users else self._rows
        if rows is not None:
            rows.close()


@final
class FewFirst(Job):
    """A job that combines the results of partitions here, or begins again if they are many.

    Args:
        first: gives the results of partitions.
        then: gives all combined results, if there are more than `FEW` results of partitions.
        combine: combines those of `first`.
        rows: the rows of both jobs.
    """

    __slots__ = ("_combine", "_first", "_rows", "_stop", "_then")

    def __init__(
        self,
        first: Job,
        then: Job,
        combine: Callable[[Iterator[Any]], Iterator[Any]],
        rows: Shared,
    ) -> None:
        self._first: Final = first
        self._then: Final = then
        self._combine: Final = combine
        self._rows: Final = rows
        self._stop: Final = Stop()

    @override
    def __iter__(self) -> Iterator[Iterable[Any]]:
        try:
            few = self._few()
            if few is None:
                yield from self._then
            elif not self._stop():
                yield self._combine(iter(few))
        finally:
            self._rows.release()

    def _few(self) -> list[Any] | None:
        """Return the results of partitions; None if they are many."""
        few: list[Any] = []
        try:
            for batch in self._first:
                few += batch
                if len(few) > FEW:
                    return None
        except _ManyError:
            return None
        finally:
            self._first.cancel()
        return few

    @override
    def cancel(self) -> None:
        self._stop.set()
        self._first.cancel()
        self._then.cancel()


def _is_small(opened: Opened) -> bool:
    sizes = [size_of(rows.df) for rows in (opened, *opened.others)]
    return sum(_SMALL + 1 if size is None else size for size in sizes) <= _SMALL
