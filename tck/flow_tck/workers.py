"""Runs several worker processes, each with a virtual machine, fed from one queue."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, Protocol

from flow_tck.expected import Result

__all__ = ["Listener", "verify"]

ROOT: Final = Path(__file__).parents[1]


class Listener(Protocol):
    """Receives the workers' events, from several threads."""

    def running(self, subject: str, test: str) -> None:
        """Receive that a test has begun."""

    def repeated(self, subject: str, test: str) -> None:
        """Receive that a test has failed and is tried again."""

    def verified(self, subject: str, results: dict[str, Result], seconds: float) -> None:
        """Receive that all tests of a subject have ended."""

    def crashed(self, subject: str, test: str, log: str, seconds: float) -> None:
        """Receive that the worker process ended before it had verified the subject."""

    def unclean(self, log: str) -> None:
        """Receive that a process with nothing left to verify has not ended as it should."""


def verify(
    names: Sequence[str],
    classpath: Sequence[str],
    timeouts_ms: tuple[int, int],
    jobs: int,
    listener: Listener,
) -> None:
    """Verify the subjects, and return when all are verified.

    Args:
        names: full names; a repeated name is verified as often as it occurs.
        classpath: the folders and jars that the virtual machine loads.
        timeouts_ms: how long the kit waits for a signal, and to see that none comes.
        jobs: the number of processes to use.
        listener: receives the events.
    """
    waiting: SimpleQueue[str] = SimpleQueue()
    for name in names:
        waiting.put(name)
    command = [
        sys.executable,
        *("-m", "flow_tck.worker"),
        os.pathsep.join(classpath),
        *map(str, timeouts_ms),
    ]
    crew = [
        threading.Thread(target=_work, args=(waiting, command, listener), name=f"crew {i}")
        for i in range(jobs)
    ]
    for member in crew:
        member.start()
    for member in crew:
        member.join()


def _work(waiting: SimpleQueue[str], command: list[str], listener: Listener) -> None:
    """Run one worker after another while names remain: each serves until it crashes."""
    while not waiting.empty():
        with (
            tempfile.TemporaryFile() as log,
            subprocess.Popen(
                command,
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                encoding="utf-8",
            ) as worker,
        ):
            if _serve(waiting, worker, log, listener):
                if worker.stdin is not None:
                    worker.stdin.close()
                if worker.wait() != 0:
                    listener.unclean(_text(log))


def _serve(
    waiting: SimpleQueue[str],
    worker: subprocess.Popen[str],
    log: Any,  # Any: a file of bytes, for which there is no public type
    listener: Listener,
) -> bool:
    """Hand out names until none remain; return False if the worker ends before that."""
    while True:
        try:
            name = waiting.get_nowait()
        except Empty:
            return True
        begun = time.monotonic()
        results: dict[str, Result] = {}
        test = "the start"
        try:
            _write(worker, name)
            for event in _events(worker):
                if "started" in event:
                    if not results:
                        begun = time.monotonic()  # the start of the process is not counted
                    test = event["started"]
                    listener.running(name, test)
                elif "repeated" in event:
                    listener.repeated(name, event["repeated"])
                elif "ended" in event:
                    test = event.pop("ended")
                    results[test] = Result(**event)
                else:
                    break
            else:
                raise BrokenPipeError
        except BrokenPipeError:
            worker.wait()
            listener.crashed(name, test, _text(log), time.monotonic() - begun)
            return False
        listener.verified(name, results, time.monotonic() - begun)


def _text(log: Any) -> str:  # Any: see _serve
    log.seek(0)
    return str(log.read(), "utf-8", "replace").strip()


def _write(worker: subprocess.Popen[str], line: str) -> None:
    if worker.stdin is not None:
        worker.stdin.write(f"{line}\n")
        worker.stdin.flush()


def _events(worker: subprocess.Popen[str]) -> Any:  # Any: lines of JSON
    return map(json.loads, worker.stdout or ())
