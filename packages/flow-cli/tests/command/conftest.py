"""The `flow` command in this process and in a separate one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

from flow_cli import main

TIMEOUT_S = 30


@dataclass(frozen=True)
class Done:
    """The output and the exit code of a command."""

    code: int
    out: str
    err: str


class Running:
    """A command in a separate process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def line(self) -> str:
        """The next line of its output; waits for it."""
        assert self.process.stdout is not None
        watch = threading.Timer(TIMEOUT_S, self.process.kill)
        watch.start()
        try:
            return self.process.stdout.readline().rstrip("\n")
        finally:
            watch.cancel()

    def stop(self, signum: signal.Signals) -> tuple[Done, float]:
        """Send a signal; what it printed from then on, and how many seconds it took to end."""
        begin = time.monotonic()
        self.process.send_signal(signum)
        out, err = self.process.communicate(timeout=TIMEOUT_S)
        return Done(self.process.returncode, out, err), time.monotonic() - begin


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's folder, which is the current one."""
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def write(project: Path) -> Callable[[str, str], Path]:
    """A function that writes a Python file there."""

    def write(name: str, code: str) -> Path:
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(code), "utf-8")
        return path

    return write


@pytest.fixture
def flow(capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Run the command in this process."""

    def run(*args: str) -> Done:
        code = main(args)
        printed = capsys.readouterr()
        return Done(code, printed.out, printed.err)

    return run


@pytest.fixture
def start() -> Callable[..., object]:
    """Run the command in a separate process: ``with start("run", "file.py:flow") as running``."""

    @contextmanager
    def start(*args: str, **environ: str) -> Iterator[Running]:
        process = subprocess.Popen(
            [sys.executable, "-m", "flow_cli", *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **environ},
        )
        try:
            yield Running(process)
        finally:
            process.kill()
            process.communicate()

    return start
