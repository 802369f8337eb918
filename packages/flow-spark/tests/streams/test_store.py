"""The numbers of micro-batches that were dealt with, beside what was written."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from flow_spark import CheckpointConflictError, SqliteBatchStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteBatchStore]:
    store = SqliteBatchStore(tmp_path / "store.db")
    yield store
    store.close()


def begun(
    store: SqliteBatchStore, batch_id: int, digest: str = "d", *, who: str = "me", query: str = "q"
) -> bool:
    with store.begin(who, query, batch_id, digest) as db:
        return db is not None


def test_a_number_counts_once(store: SqliteBatchStore) -> None:
    assert [begun(store, batch) for batch in (3, 3, 4, 4)] == [True, False, True, False]


@pytest.mark.parametrize(("batch_id", "digest"), [(4, "others"), (3, "d")])
def test_other_rows_under_a_number_that_it_knows_are_refused(
    store: SqliteBatchStore, batch_id: int, digest: str
) -> None:
    assert begun(store, 4)
    with pytest.raises(
        CheckpointConflictError, match=r"SqliteBatchStore\('.*store.db'\) has dealt"
    ):
        begun(store, batch_id, digest)
    assert not begun(store, 4)


def test_the_numbers_of_an_earlier_version_are_known(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "old.db") as db:
        db.execute(
            "CREATE TABLE flow_batches (subscriber TEXT, query_id TEXT, "
            "batch_id INTEGER NOT NULL, PRIMARY KEY (subscriber, query_id))"
        )
        db.execute("INSERT INTO flow_batches VALUES ('me', 'q', 5)")
    db.close()
    store = SqliteBatchStore(tmp_path / "old.db")
    assert [begun(store, batch) for batch in (5, 6, 6)] == [False, True, False]
    store.close()


def test_subscribers_and_queries_have_separate_numbers(store: SqliteBatchStore) -> None:
    assert begun(store, 0)
    assert begun(store, 0, who="you")
    assert begun(store, 0, query="another checkpoint")


def test_an_error_takes_back_what_was_written_and_the_number(store: SqliteBatchStore) -> None:
    with store.begin("me", "q", 0, "d") as db:
        assert db is not None
        db.execute("CREATE TABLE amounts (amount)")
    with pytest.raises(KeyError), store.begin("me", "q", 1, "d") as db:
        assert db is not None
        db.execute("INSERT INTO amounts VALUES (1)")
        raise KeyError("no")

    with store.begin("me", "q", 1, "d") as db:
        assert db is not None
        assert db.execute("SELECT * FROM amounts").fetchall() == []


def test_the_numbers_survive_the_process(tmp_path: Path) -> None:
    first = SqliteBatchStore(tmp_path / "store.db")
    assert begun(first, 7)
    first.close()

    second = SqliteBatchStore(tmp_path / "store.db")
    assert not begun(second, 7)
    second.close()
