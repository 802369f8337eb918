"""`SqliteBatchStore`: the numbers of finished micro-batches, in a SQLite database."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, final

from typing_extensions import override

from flow_core.batches import BatchStore
from flow_spark.errors import CheckpointConflictError

__all__ = ["SqliteBatchStore"]


@final
class SqliteBatchStore(BatchStore[sqlite3.Connection]):
    """Keeps the numbers of micro-batches in a SQLite database, in one transaction with the data.

    >>> store = SqliteBatchStore(":memory:")
    >>> with store.begin("totals", "query", 7, "digest") as db:
    ...     _ = db.execute("CREATE TABLE totals (amount INTEGER)")
    >>> with store.begin("totals", "query", 7, "digest") as db:
    ...     print(db)
    None
    >>> store.close()

    Args:
        path: the database file.
    """

    __slots__ = ("_connection", "_lock", "_path")

    def __init__(self, path: str | Path) -> None:
        self._path: Final = str(path)
        # Subscriptions have separate threads; the lock lets in one of them at a time.
        self._connection: Final = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False
        )
        self._connection.execute(
            "CREATE TABLE IF NOT EXISTS flow_batches (subscriber TEXT, query_id TEXT, "
            "batch_id INTEGER NOT NULL, digest TEXT, PRIMARY KEY (subscriber, query_id))"
        )
        with suppress(sqlite3.OperationalError):  # only old databases lack this column
            self._connection.execute("ALTER TABLE flow_batches ADD COLUMN digest TEXT")
        self._lock: Final = threading.Lock()

    @contextmanager
    @override
    def begin(
        self, subscriber: str, query_id: str, batch_id: int, digest: str
    ) -> Generator[sqlite3.Connection | None, None, None]:
        """Yield the connection to a ``with`` block, within a transaction."""
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                last: tuple[int, str | None] = self._connection.execute(
                    "SELECT batch_id, digest FROM flow_batches "
                    "WHERE subscriber = ? AND query_id = ?",
                    (subscriber, query_id),
                ).fetchone() or (-1, None)
                if batch_id < last[0] or (batch_id == last[0] and last[1] not in (None, digest)):
                    raise CheckpointConflictError(
                        f"{self!r} has dealt with micro-batch {last[0]} of this query already, and "
                        f"micro-batch {batch_id} has other rows or comes before it"
                    )
                done = batch_id == last[0]
                yield None if done else self._connection
                if not done:
                    self._connection.execute(
                        "INSERT OR REPLACE INTO flow_batches VALUES (?, ?, ?, ?)",
                        (subscriber, query_id, batch_id, digest),
                    )
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # a full disk has rolled it back already
                    self._connection.execute("ROLLBACK")
                raise

    def __repr__(self) -> str:
        return f"SqliteBatchStore({self._path!r})"

    def close(self) -> None:
        """Close the database."""
        self._connection.close()
