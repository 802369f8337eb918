"""Sorting more items than the memory of a task holds: sorted runs in a file, merged as they are."""

from __future__ import annotations

import heapq
import itertools
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import IO, Any, Final, NamedTuple, cast, final

from typing_extensions import override

from flow_core.stages import Program, Stage
from flow_spark.channel.wire import Kind
from flow_spark.jobs.task import RemoteProgram
from flow_spark.jobs.translations import SORTS
from flow_spark.pickling.chunks import FRAME_BYTES
from flow_spark.pickling.codec import decode, encode
from flow_spark.pickling.pickles import TaskSender

__all__ = ["sorting"]

_MOST: Final = 2**17
"""The most items of a run, and so that are in memory before the merge."""

_RUN_BYTES: Final = 64 * 1024 * 1024
"""The most bytes of a run, as the first items of it tell."""

_CHUNK: Final = 256
"""The most items of a run that are in memory during the merge; fewer if they are large."""

_FIRST: Final = 32
"""The number of items that tell the size of the others."""

# Any: items of any type.
_Key = Callable[[Any], Any]


def sorting(stages: tuple[Stage[Any, Any], ...]) -> RemoteProgram:
    """Return `stages`, for the items of all partitions: if the first one sorts, it uses a file."""
    if not stages or stages[0].template not in SORTS:
        return Program[Any, Any](stages)
    *keys, reverse = stages[0].args
    key = cast("_Key | None", keys[0] if keys else None)  # as declared
    return _Sorted(key, bool(reverse), Program(stages[1:]))


@final
@dataclass(frozen=True, slots=True)
class _Sorted(RemoteProgram):
    """Sorts items, and runs stages over them.

    Items that compare equal stay in the order in which they came.

    Attributes:
        key: returns what is compared; None for the item itself.
        reverse: whether the largest comes first.
        rest: the stages behind.
    """

    key: _Key | None
    reverse: bool
    rest: Program[Any, Any]

    @override
    def iterate(self, source: Iterator[Any], /) -> Iterator[Any]:
        return self.rest.iterate(self._sorted(source))

    def _sorted(self, source: Iterator[Any]) -> Iterator[Any]:
        with closing(_Runs()) as runs:
            while len(run := list(itertools.islice(source, _FIRST))) == _FIRST:
                _, first = encode(run, TaskSender())
                most = min(_MOST, _FIRST * _RUN_BYTES // len(first))
                run += itertools.islice(source, max(0, most - _FIRST))
                run.sort(key=self.key, reverse=self.reverse)
                if len(run) < most:
                    break
                runs.add(run, max(1, min(_CHUNK, _FIRST * FRAME_BYTES // len(first))))
            else:
                run.sort(key=self.key, reverse=self.reverse)
            yield from heapq.merge(*runs, run, key=self.key, reverse=self.reverse)


@final
class _Runs:
    """Sorted items in a file, which is there when the first of them are."""

    __slots__ = ("_file", "_runs")

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._runs: list[list[_Place]] = []

    def add(self, run: list[Any], at_a_time: int) -> None:
        """Write a run, of which that many items are read at a time."""
        file = self._file
        if file is None:
            file = tempfile.TemporaryFile(prefix="flow-spark-")  # noqa: SIM115  # see `close`
            self._file = file
        places: list[_Place] = []
        for start in range(0, len(run), at_a_time):
            kind, payload = encode(run[start : start + at_a_time], TaskSender())
            places.append(_Place(kind, file.tell(), len(payload)))
            file.write(payload)
        file.flush()
        self._runs.append(places)

    def __iter__(self) -> Iterator[Iterator[Any]]:
        """Yield the items of each run."""
        for places in self._runs:
            yield itertools.chain.from_iterable(map(self._read, places))

    def _read(self, place: _Place) -> Iterable[Any]:
        assert self._file is not None
        return decode(place.kind, os.pread(self._file.fileno(), place.size, place.offset))

    def close(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.close()


class _Place(NamedTuple):
    """Some items of a run in the file."""

    kind: Kind
    offset: int
    size: int
