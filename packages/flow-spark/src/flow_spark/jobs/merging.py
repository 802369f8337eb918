"""The results of a key, combined behind a shuffle while the rows come in the order of keys."""

from __future__ import annotations

import array
from collections.abc import Iterable, Iterator
from typing import Any, Final, final

from typing_extensions import override

from flow_spark.channel.wire import Kind
from flow_spark.items.arrow import ArrowBatch
from flow_spark.jobs.runs import END, HASHES
from flow_spark.jobs.task import Reader, RemoteProgram, unpacked
from flow_spark.pickling.codec import decode

__all__ = ["MergeReader"]

_FEW: Final = 8192
_FEW_BYTES: Final = 16 * 1024 * 1024
"""The number of bytes of items to collect before any of them are combined."""


@final
class MergeReader(Reader):
    """Reads the rows of a `RunsTask`, sorted by ``low``, and yields the items that stages combine.

    A row says that no key with a smaller hash will come. So the items of such keys are combined,
    and their results are yielded and forgotten. The results come in the order of the hashes,
    whatever the rows are: a retried task yields them in the same order.

    Args:
        combine: the stages that combine items. They may run over the items of some keys at a time.
        needs: objects that have to be unpickled before the items can be unpickled; see
            `ChunkReader`.
    """

    __slots__ = ("_bytes", "_combine", "_hashes", "_items", "_most", "_most_bytes", "_needs")

    def __init__(self, combine: RemoteProgram, needs: tuple[object, ...]) -> None:
        self._combine: Final = combine
        self._needs: Final = needs
        self._hashes: list[int] = []
        self._items: list[Any] = []  # Any: results of stages
        self._bytes = 0
        self._most, self._most_bytes = _FEW, _FEW_BYTES

    @override
    def __call__(self, batch: ArrowBatch, /) -> Iterator[Any]:
        names = ("low", "hashes", "kind", "payload")
        columns = [batch.column(name).to_pylist() for name in names]
        for low, hashes, kind, payload in zip(*columns, strict=True):
            if low == END or len(self._items) >= self._most or self._bytes >= self._most_bytes:
                yield from self._combined(low)
            self._hashes += array.array(HASHES, hashes)
            self._items += decode(Kind(kind), payload)
            self._bytes += len(payload)

    def _combined(self, low: int) -> Iterator[Any]:
        """Return the results for all keys with a smaller hash than `low`; forget their items."""
        hashes, items = self._hashes, self._items
        order = sorted(range(len(items)), key=hashes.__getitem__)
        kept = [place for place in order if hashes[place] >= low]
        done = [items[place] for place in order[: len(order) - len(kept)]]
        self._bytes = self._bytes * len(kept) // max(1, len(items))
        self._hashes = [hashes[place] for place in kept]
        self._items = [items[place] for place in kept]
        # If much is left, higher limits keep us from looking at all of it again and again.
        self._most = max(_FEW, 2 * len(kept))
        self._most_bytes = max(_FEW_BYTES, 2 * self._bytes)
        return self._combine.iterate(iter(done))

    @override
    def item(self, batch: ArrowBatch, index: int, /) -> object:
        """Raise StopIteration: an item is made from several rows."""
        raise StopIteration

    @override
    def checksums(self, batch: ArrowBatch, /) -> Iterable[int]:
        """Return the checksums of the rows that the items were made from."""
        return unpacked(batch)

    def __reduce__(self) -> tuple[type[MergeReader], tuple[RemoteProgram, tuple[object, ...]]]:
        """Pickle this reader by its arguments."""
        return MergeReader, (self._combine, self._needs)
