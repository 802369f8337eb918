"""Items in pickled batches that are bounded in bytes and, if items come slowly, in time."""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from flow_spark.channel.wire import Kind
from flow_spark.pickling.codec import Sender, encode

__all__ = ["FRAME_BYTES", "Chunk", "chunks"]

FRAME_BYTES: Final = 512 * 1024
"""The most bytes of a batch; one large item may have more."""

_FIRST_ROWS: Final = 64
_MOST_ROWS: Final = 2048
_MOST_OBJECTS: Final = 200
"""The most objects of a batch that Python's garbage collector has to look at. While an item is
encoded or decoded, it takes two more of these objects: so a batch stays below the 700 new objects
after which the collector runs."""
_MOST_AT_ONCE: Final = 64
_PATIENCE_S: Final = 0.05


class Chunk(NamedTuple):
    """Some items, encoded."""

    kind: Kind
    rows: int
    payload: bytes


def chunks(
    items: Iterator[Any], sender: Sender, tell: Callable[[Exception], object] | None = None
) -> Iterator[Chunk]:
    """Encode `items`, in order. Items before one that fails are yielded before the error.

    Args:
        items: items of any type that can be pickled.
        sender: pickles the items.
        tell: called with an error that `items` raises, before any other code.

    Raises:
        NotPicklableError: if an item cannot be pickled.
    """
    size = _FIRST_ROWS
    step = 1
    while True:
        chunk: list[Any] = []
        failed: Exception | None = None
        begun = now = time.monotonic()
        while len(chunk) < size and now - begun < _PATIENCE_S:
            before, since = len(chunk), now
            try:
                chunk.extend(itertools.islice(items, min(step, size - before)))
            except Exception as error:  # the items before it are in the chunk
                failed = error
                if tell is not None:
                    tell(error)
                break
            if len(chunk) == before:
                break
            now = time.monotonic()
            # The clock is not read for each item, but often enough to notice that items are slow.
            step = min(2 * step, _MOST_AT_ONCE) if now - since < _PATIENCE_S / 8 else 1
        if chunk:
            whole = _encoded(chunk, sender)
            large = len(whole.payload)
            if large <= 2 * FRAME_BYTES or len(chunk) == 1:
                yield whole
            else:
                part = max(1, len(chunk) * FRAME_BYTES // large)
                for start in range(0, len(chunk), part):
                    yield _encoded(chunk[start : start + part], sender)
            if large > FRAME_BYTES:
                size = max(1, size // 2)
            elif len(chunk) == size and large < FRAME_BYTES // 2:
                size = min(2 * size, _MOST_OBJECTS if gc.is_tracked(chunk[-1]) else _MOST_ROWS)
        if failed is not None:
            raise failed
        if not chunk:
            return


def _encoded(items: list[Any], sender: Sender) -> Chunk:
    kind, payload = encode(items, sender)
    return Chunk(kind, len(items), payload)
