"""The end of a job, on a cluster that only pretends: what is asked of it, and when."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import pytest

from flow_spark.channel.backlog import Backlog
from flow_spark.channel.receiver import BatchReceiver
from flow_spark.jobs import job as jobs
from flow_spark.jobs import run as runs
from flow_spark.jobs.job import PushedJob

TIMEOUT_S = 10.0


class Cluster:
    """Ends a job at once, or when it is cancelled."""

    def __init__(self, *, waits: bool = False) -> None:
        self.entered = threading.Event()
        self.cancelled = threading.Event()
        self.waits = waits

    def addresses(self) -> tuple[str, str]:
        return "127.0.0.1", "127.0.0.1"

    def speculates(self) -> bool:
        return False

    def backlog(self) -> Backlog:
        return Backlog()

    def handed_on(self) -> Callable[[], None]:
        return lambda: None

    @contextmanager
    def tagged(self, *_: object) -> Iterator[None]:
        self.entered.set()
        if self.waits:
            assert self.cancelled.wait(TIMEOUT_S)
        yield

    def answering(self, _: str) -> AbstractContextManager[None]:
        return nullcontext()

    def cancel(self, _: str) -> None:
        self.cancelled.set()

    def parts(self, _: object) -> None: ...

    def others_wait(self, _: str) -> bool:
        return False

    def holders(self, _: str) -> None: ...


class Rows:
    """An origin, what it opens, and a DataFrame of no rows."""

    session = None
    as_ = None
    others = ()

    @contextmanager
    def opened(self, _: object, *, resumed: bool) -> Iterator[Rows]:
        yield self

    def mapped(self, *_: object) -> Rows:
        return self

    def collect(self) -> list[tuple[int, int, int, int]]:
        return []


def job_on(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> PushedJob:
    monkeypatch.setattr(jobs, "cluster_of", lambda _: cluster)
    origin: Any = Rows()  # a stand-in: only what a job without rows needs
    return PushedJob(origin, None)


def test_a_cluster_does_not_cancel_a_job_that_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would cost a thread, and a call over the gateway, at the end of each job."""
    cluster, heard = Cluster(), threading.Event()
    finish = BatchReceiver.finish

    def finish_late(receiver: BatchReceiver, results: Any) -> None:
        finish(receiver, results)
        assert heard.wait(TIMEOUT_S)

    monkeypatch.setattr(BatchReceiver, "finish", finish_late)
    job = job_on(cluster, monkeypatch)
    others = set(threading.enumerate())  # of jobs that were cancelled before
    try:
        assert list(job) == []
        assert job.join(0.0)
        new = {thread.name for thread in set(threading.enumerate()) - others}
        assert "flow-spark-cancel" not in new
        assert not cluster.cancelled.is_set()
    finally:
        heard.set()


def test_a_cluster_cancels_a_job_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(waits=True)
    job = job_on(cluster, monkeypatch)
    submitted = threading.Thread(target=lambda: list(job))
    submitted.start()
    assert cluster.entered.wait(TIMEOUT_S)

    job.cancel()

    assert cluster.cancelled.wait(TIMEOUT_S)
    assert job.join(TIMEOUT_S)
    submitted.join(TIMEOUT_S)
    assert not submitted.is_alive()


def test_an_interrupted_wait_for_a_sink_cancels_its_job_and_lasts_until_it_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster(waits=True)
    session: Any = None
    ended: list[bool] = []
    monkeypatch.setattr(runs, "cluster_of", lambda _: cluster)
    main = threading.main_thread().ident
    assert main is not None

    def interrupt() -> None:
        assert cluster.entered.wait(TIMEOUT_S)
        signal.pthread_kill(main, signal.SIGINT)

    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        runs.run(session, "write", lambda: ended.append(cluster.cancelled.is_set()))

    assert ended == [True]
    interrupter.join(TIMEOUT_S)
