"""Servers that tests start, each in a separate process group; none of them outlives the tests."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from flow_testing import TIMEOUT_S

__all__ = [
    "Server",
    "ServerError",
    "ancestors",
    "processes_of_group",
    "processes_with",
    "wait_until",
]

GUARD = Path(__file__).with_name("guard.py")
PATIENCE_S = 5.0
START_TIMEOUT_S = 120.0


class ServerError(Exception):
    """A server did not start, with the end of what it printed."""


def wait_until(condition: Callable[[], object], within_s: float) -> bool:
    """Return whether `condition` becomes true within `within_s` seconds, times the patience."""
    deadline = time.monotonic() + within_s * (TIMEOUT_S / 5)
    pause = threading.Event()
    while not condition():
        if time.monotonic() > deadline:
            return False
        pause.wait(0.02)
    return True


def processes_of_group(group: int) -> dict[int, str]:
    """The command lines of the processes in a group, by their ids."""
    found: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            # Behind the name, which is in parentheses: the state, the parent and the group.
            state, _, found_group, *_ = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(found_group) == group and state != "Z":
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(entry.name)] = command.decode(errors="replace")
    return found


def processes_with(mark: str) -> list[int]:
    """The processes that have inherited an environment variable of this value."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def ancestors(pid: int) -> Iterator[int]:
    """The parent of a process, the parent of that one, and so on."""
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        yield pid


class Server:
    """One process, what it prints, and whatever it starts.

    A guard stands between: when this process ends, however that happens, the guard's standard
    input is closed, and it ends the server and its group.

    Args:
        name: for messages.
        command: what to run.
        folder: for its output; private.
        variables: its environment, over this process's.
    """

    def __init__(
        self, name: str, command: Sequence[str], folder: Path, variables: Mapping[str, str]
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._pid_file = folder / f"{name}.pid"
        self._pid_file.unlink(missing_ok=True)
        guarded = [sys.executable, "-S", "-E", str(GUARD), str(PATIENCE_S), str(self._pid_file)]
        with self.log.open("wb") as log:
            self._guard = subprocess.Popen(
                [*guarded, *command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **variables},
            )

    @property
    def group(self) -> int:
        """The process group."""
        return self._guard.pid

    @property
    def pid(self) -> int:
        """The server itself."""
        return int(self._pid_file.read_text())

    def text(self) -> str:
        """The text that it has printed."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Wait until it prints something, and return that.

        Raises:
            ServerError: if it ends before, or takes too long.
        """
        found: list[re.Match[str]] = []

        def look() -> bool:
            found.extend(re.finditer(pattern, self.text()))
            return bool(found) or not self.runs()

        in_time = wait_until(look, START_TIMEOUT_S)
        if not found:
            why = "has ended" if in_time else f"is not ready after {START_TIMEOUT_S:.0f} s"
            last = "\n".join(self.text().splitlines()[-30:])
            self.stop()
            raise ServerError(f"the {self.name} {why}. It printed:\n{last}")
        return found[0]

    def runs(self) -> bool:
        """Return whether it has not ended."""
        if not self._pid_file.exists() or not self._pid_file.read_text():
            return self._guard.poll() is None
        try:
            state = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        return state != "Z"

    def kill(self) -> None:
        """kill -9 of the server alone; what it has started has to notice by itself."""
        os.kill(self.pid, signal.SIGKILL)

    def stop(self) -> None:
        """End it and its group. Idempotent."""
        guard = self._guard
        if guard.stdin is not None:
            with contextlib.suppress(OSError):
                guard.stdin.close()
        try:
            guard.wait(2 * PATIENCE_S)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(guard.pid, signal.SIGKILL)
            guard.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
