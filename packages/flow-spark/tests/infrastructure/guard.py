"""Runs a command until it is stopped, or until the process that started it is gone.

``python guard.py PATIENCE_S PID_FILE COMMAND...`` stops at the end of its standard input, which
the system closes too when the process at the other end is killed. It runs nothing but the standard
library, so that it can be started with ``-S``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path


def main() -> None:
    """Start the command; stop it, and all that is left of its process group, in the end."""
    patience_s, pid_file, *command = sys.argv[1:]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    Path(pid_file).write_text(str(child.pid))
    try:
        sys.stdin.buffer.read()
        child.terminate()
        child.wait(float(patience_s))
    except subprocess.TimeoutExpired:
        pass
    finally:
        os.killpg(0, signal.SIGKILL)  # with this process in it


if __name__ == "__main__":
    main()
