"""Opening a session where all slots are in use logs that, and does not wait for one."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

import pytest

from flow_spark import from_dataframe, session
from flow_spark.driver import existing

from ..infrastructure.places import Place

if TYPE_CHECKING:
    from pandas import DataFrame

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(300)]

SLOTS = 2


@contextmanager
def full(place: Place) -> Iterator[None]:
    """All slots hold a task of Spark's own until the end of the block."""
    with ExitStack() as stack:
        gate = stack.enter_context(closing(socket.create_server(("127.0.0.1", 0))))
        port = gate.getsockname()[1]

        def hold(frames: Iterator[DataFrame]) -> Iterator[DataFrame]:
            with socket.create_connection(("127.0.0.1", port)) as held:
                held.recv(1)
            yield from frames

        rows = place.spark.range(0, SLOTS, 1, SLOTS).mapInPandas(hold, "id long")
        holder = threading.Thread(target=rows.collect)
        holder.start()
        stack.callback(holder.join)
        for _ in range(SLOTS):
            task, _ = gate.accept()
            stack.callback(task.close)
        yield


@pytest.mark.parametrize("place", ["connect"], indirect=True)
def test_a_session_opens_on_a_full_server_and_the_log_says_that_it_was_not_checked(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert place.server is not None
    monkeypatch.setattr(existing, "_LOOKS_FOR_S", 1.0)
    began = time.monotonic()

    with caplog.at_level(logging.WARNING, "flow.spark"), ExitStack() as stack:
        with full(place):
            spark = stack.enter_context(session(remote=place.server.url))
            assert time.monotonic() - began < 30
        assert sorted(from_dataframe(spark.range(3)).map(lambda n: n + 1)) == [1, 2, 3]

    said = [record.getMessage() for record in caplog.records]
    assert any(
        text.startswith(f"the server at {place.server.url} has not run a small job within 1 s")
        for text in said
    ), said
