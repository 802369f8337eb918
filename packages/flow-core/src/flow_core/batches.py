"""What is told of the micro-batches of a stream, and where that is remembered."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeVar, final

__all__ = ["BatchStore", "MicroBatch"]

C_co = TypeVar("C_co", covariant=True)


class BatchStore(Protocol[C_co]):
    """Remembers the last micro-batch that a subscriber has dealt with."""

    @abstractmethod
    def begin(
        self, subscriber: str, query_id: str, batch_id: int, digest: str
    ) -> AbstractContextManager[C_co | None]:
        """A transaction for one micro-batch.

        Args:
            subscriber: who deals with it.
            query_id: Spark's id of the query; it goes with the checkpoint.
            batch_id: the number of the micro-batch.
            digest: what tells its rows from those of another one with the same number.

        Returns:
            A context manager. It gives None if this very micro-batch was the last that was dealt
            with. Otherwise it gives what the subscriber works with; and when its block ends without
            an error, it commits that work, the number and the digest at once, and with an error
            nothing.

        Raises:
            CheckpointConflictError: on entering, if the number is that of the last one and the
                digest is not, or if the number is smaller.
        """


@final
@dataclass(frozen=True, slots=True)
class MicroBatch:
    """What became of a micro-batch.

    Attributes:
        batch_id: its number; a replayed one has the same.
        items: how many items were read of it.
        repeated: whether it had been dealt with before, so that nothing was done.
    """

    batch_id: int
    items: int
    repeated: bool = False
