"""The micro-batches of a stream, and the store that remembers them."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeVar, final

__all__ = ["BatchStore", "MicroBatch"]

C_co = TypeVar("C_co", covariant=True)


class BatchStore(Protocol[C_co]):
    """Remembers the last micro-batch that a subscriber has handled."""

    @abstractmethod
    def begin(
        self, subscriber: str, query_id: str, batch_id: int, digest: str
    ) -> AbstractContextManager[C_co | None]:
        """Return a transaction for one micro-batch.

        Args:
            subscriber: the name of the subscriber.
            query_id: Spark's id of the query, which Spark stores in the query's checkpoint.
            batch_id: the number of the micro-batch.
            digest: a digest of the rows, which tells them from those of another micro-batch with
                the same number.

        Returns:
            A context manager. Entering it gives None if this very micro-batch was the last that was
            handled. Otherwise, it gives the object that the subscriber works with. If the block
            then ends without an error, the context manager commits the work, the number and the
            digest in one step; if it ends with an error, it commits nothing.

        Raises:
            CheckpointConflictError: on entering the context manager, if the number is that of the
                last micro-batch but the digest is not, or if the number is smaller.
        """


@final
@dataclass(frozen=True, slots=True)
class MicroBatch:
    """The outcome of a micro-batch.

    Attributes:
        batch_id: the number of the micro-batch; when it is replayed, it has the same number.
        items: how many of its items were read.
        repeated: whether the micro-batch had already been handled, so that nothing was done this
            time.
    """

    batch_id: int
    items: int
    repeated: bool = False
