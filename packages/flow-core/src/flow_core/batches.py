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
            query_id: Spark's id of the query; it goes with the checkpoint.
            batch_id: the number of the micro-batch.
            digest: a digest that distinguishes its rows from those of another one with the same
                number.

        Returns:
            A context manager. It gives None if this very micro-batch was the last that was handled.
            Otherwise it gives the object that the subscriber works with; and when its block ends
                without
            an error, it commits that work, the number and the digest at once, and with an error
            nothing.

        Raises:
            CheckpointConflictError: on entering, if the number is that of the last one and the
                digest is not, or if the number is smaller.
        """


@final
@dataclass(frozen=True, slots=True)
class MicroBatch:
    """The outcome of a micro-batch.

    Attributes:
        batch_id: its number; a replayed one has the same.
        items: how many items of it were read.
        repeated: whether it had been handled before, so that nothing was done.
    """

    batch_id: int
    items: int
    repeated: bool = False
