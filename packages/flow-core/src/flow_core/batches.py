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
            digest: a digest of the rows, which differs from that of another micro-batch with the
                same number.

        Returns:
            A context manager. Its ``__enter__`` returns None if this micro-batch is the last one
            that was handled. Otherwise, it returns the object that the subscriber works with. If
            the block then ends without an error, the context manager commits the work, the number
            and the digest in one step; if it ends with an error, it commits nothing.

        Raises:
            CheckpointConflictError: on entering the context manager, if the last micro-batch that
                was handled has the same number but another digest, or a greater number.
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
