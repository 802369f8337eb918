"""Items in pickled batches that are bounded in bytes and, if items come slowly, in time."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from flow_spark._codec import Sender, encode
from flow_spark._wire import Kind

__all__ = ["FRAME_BYTES", "Chunk", "chunks"]

FRAME_BYTES: Final = 512 * 1024
"""What a batch is to have at most, in bytes; one large item may have more."""

_FIRST_ROWS: Final = 64
_MOST_ROWS: Final = 8192
_PATIENCE_S: Final = 0.05


class Chunk(NamedTuple):
    """Some items, encoded."""

    kind: Kind
    rows: int
    payload: bytes


def chunks(items: Iterator[Any], sender: Sender) -> Iterator[Chunk]:
    """Encode `items`, in order. What comes before an item that fails is given before the error.

    Args:
        items: of any type that can be pickled.
        sender: how they are pickled.

    Raises:
        NotPicklableError: if an item cannot be pickled.
    """
    size = _FIRST_ROWS
    while True:
        chunk: list[Any] = []
        failed: Exception | None = None
        begun = time.monotonic()
        try:
            chunk.extend(itertools.islice(items, size))
        except Exception as error:  # what was taken before it is in the chunk
            failed = error
        waited = time.monotonic() - begun
        if chunk:
            whole = Chunk(*_encoded(chunk, sender))
            large = len(whole.payload)
            if large <= 2 * FRAME_BYTES or len(chunk) == 1:
                yield whole
            else:
                part = max(1, len(chunk) * FRAME_BYTES // large)
                for start in range(0, len(chunk), part):
                    yield Chunk(*_encoded(chunk[start : start + part], sender))
            if large > FRAME_BYTES or waited > _PATIENCE_S:
                size = max(1, size // 2)
            elif size < _MOST_ROWS and large < FRAME_BYTES // 2 and waited < _PATIENCE_S / 4:
                size *= 2
        if failed is not None:
            raise failed
        if not chunk:
            return


def _encoded(items: list[Any], sender: Sender) -> tuple[Kind, int, bytes]:
    kind, payload = encode(items, sender)
    return kind, len(items), payload
