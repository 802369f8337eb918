"""The numbers of micro-batches that were dealt with, beside what was written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from flow_spark import SqliteBatchStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteBatchStore]:
    store = SqliteBatchStore(tmp_path / "store.db")
    yield store
    store.close()


def begun(store: SqliteBatchStore, batch_id: int, who: str = "me", query: str = "q") -> bool:
    with store.begin(who, query, batch_id) as db:
        return db is not None


def test_a_number_counts_once_and_so_do_those_before_it(store: SqliteBatchStore) -> None:
    assert [begun(store, batch) for batch in (3, 3, 2, 4, 4)] == [True, False, False, True, False]


def test_subscribers_and_queries_have_numbers_of_their_own(store: SqliteBatchStore) -> None:
    assert begun(store, 0)
    assert begun(store, 0, who="you")
    assert begun(store, 0, query="another checkpoint")


def test_an_error_takes_back_what_was_written_and_the_number(store: SqliteBatchStore) -> None:
    with store.begin("me", "q", 0) as db:
        assert db is not None
        db.execute("CREATE TABLE amounts (amount)")
    with pytest.raises(KeyError), store.begin("me", "q", 1) as db:
        assert db is not None
        db.execute("INSERT INTO amounts VALUES (1)")
        raise KeyError("no")

    with store.begin("me", "q", 1) as db:
        assert db is not None
        assert db.execute("SELECT * FROM amounts").fetchall() == []


def test_the_numbers_survive_the_process(tmp_path: Path) -> None:
    first = SqliteBatchStore(tmp_path / "store.db")
    assert begun(first, 7)
    first.close()

    second = SqliteBatchStore(tmp_path / "store.db")
    assert not begun(second, 7)
    second.close()
