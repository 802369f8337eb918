"""Several processes that verify, each with a virtual machine, fed from one queue."""

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
    """Hears what happens, from several threads."""

    def running(self, subject: str, test: str) -> None:
        """A test has begun."""

    def repeated(self, subject: str, test: str) -> None:
        """A test has failed, and is tried again."""

    def verified(self, subject: str, results: dict[str, Result], seconds: float) -> None:
        """All tests of a subject have ended."""

    def crashed(self, subject: str, test: str, log: str, seconds: float) -> None:
        """The process that verified has ended in the midst of it."""

    def unclean(self, log: str) -> None:
        """A process had nothing left to verify, and has not ended as it should."""


def verify(
    names: Sequence[str],
    classpath: Sequence[str],
    timeouts_ms: tuple[int, int],
    jobs: int,
    listener: Listener,
) -> None:
    """Verify the subjects, and return when all have been.

    Args:
        names: full names; one that is repeated is verified as often.
        classpath: what the virtual machine loads.
        timeouts_ms: how long the kit waits for a signal, and for none.
        jobs: how many processes to use.
        listener: hears what happens.
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
    """One worker after the other, as long as there are names: each serves until it crashes."""
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
    """Hand out names until there are none; False if the worker has ended before."""
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
