"""The JVM that holds a Spark driver, from its start to its end, which is certain."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, cast, final

from flow_spark.driver.java import Java, usable_home
from flow_spark.driver.workspace import Workspace, sweep
from flow_spark.errors import SessionStartError, SparkJobError
from flow_spark.jobs.redaction import redacted

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

__all__ = ["DriverJvm", "environment", "write_settings"]

_START_TIMEOUT_S: Final = 120.0
_STOP_TIMEOUT_S: Final = 5.0
_KEPT_LINES: Final = 40

_NOISE: Final = (
    "WARNING: ",
    "Using Spark's default log4j profile",
    "Setting default log level to",
    "To adjust logging level use",
)
"""The beginnings of lines that the JVM itself and Spark's shell print although logging is off."""

_LOG4J: Final = """\
status = error
rootLogger.level = {level}
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = spark %p %c{{1}}: %m%n%ex{{short}}
"""

_REPORTED_ANYWAY: Final = (
    "org.apache.spark.SparkContext",
    "org.apache.spark.executor.Executor",
    "org.apache.spark.scheduler.TaskSetManager",
    "org.apache.spark.sql.execution.datasources.v2",
    "org.apache.spark.util.Utils",
    "org.apache.spark.api.python",
    "org.apache.spark.network",
    "org.sparkproject",
)
"""Loggers whose errors also reach the user as exceptions."""

_ERRORS_ALONE: Final = frozenset({"ERROR", "FATAL"})

_MAIN: Final = "org.apache.spark.api.python.PythonGatewayServer"


@final
class DriverJvm:
    """One JVM process, its private folder and all its output.

    It runs in a separate process group: Ctrl-C in a terminal does not reach it, and `stop` can end
    the launcher's shell as well as the JVM. If this process dies without `stop`, the JVM ends by
    itself, because its standard input is closed.
    """

    __slots__ = ("_kept", "_process", "_pump", "_workspace", "gateway", "patience_s", "terse")

    def __init__(self) -> None:
        self._workspace: Final = Workspace()
        self.gateway: JavaGateway | None = None
        self.patience_s = _STOP_TIMEOUT_S
        """The time, in seconds, that the JVM may take to end by itself."""
        self.terse = True
        """True if only errors are logged."""
        self._process: subprocess.Popen[str] | None = None
        self._pump: threading.Thread | None = None
        self._kept: deque[str] = deque(maxlen=_KEPT_LINES)

    @property
    def workspace(self) -> Path:
        """The private folder of the JVM."""
        return self._workspace.path

    def start(
        self, java: Java, conf: Mapping[str, str], variables: Mapping[str, str], log_level: str
    ) -> None:
        """Run the JVM and connect to it.

        Args:
            java: the runtime to use.
            conf: Spark settings, given to the launcher in a file that only this user can read,
                which is removed once the JVM has read it.
            variables: environment variables for the JVM, and for the Python workers that it starts.
            log_level: the level of the JVM's log on stderr: OFF, ERROR, WARN, INFO …

        Raises:
            SessionStartError: if the JVM ends, or is not ready within two minutes.
        """
        from pyspark.find_spark_home import _find_spark_home

        script = Path(_find_spark_home()) / "bin" / "spark-submit"
        facts = self.workspace / "gateway"
        log4j = self.workspace / "log4j2.properties"
        log4j.write_text(_log4j(log_level), encoding="utf-8")
        self.terse = log_level.upper() in _ERRORS_ALONE
        settings = self.workspace / "spark.properties"
        write_settings(settings, conf)
        # Not as arguments: all users of the machine can read these, and settings hold passwords.
        given = ["--properties-file", str(settings), "--load-spark-defaults"]
        process = subprocess.Popen(
            [str(script), *given, "pyspark-shell"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            env={
                **os.environ,
                **variables,
                "JAVA_HOME": str(usable_home(java, self.workspace)),
                "SPARK_CONNECT_MODE": "0",
                "_PYSPARK_DRIVER_CONN_INFO_PATH": str(facts),
            },
        )
        self._process = process
        output = process.stdout
        if output is None:  # never, with PIPE; the type cannot say so
            raise SessionStartError("the JVM's output is not connected")
        self._pump = threading.Thread(
            target=self._forward, args=(output,), name="flow-spark-jvm-output", daemon=True
        )
        self._pump.start()
        # The JVM takes seconds. Meanwhile, remove the folders that ended processes have left, and
        # import what Arrow jobs need.
        sweep()
        with contextlib.suppress(ImportError):
            importlib.import_module("pandas")
        self._await(process, facts)
        self._connect(facts)
        for secret in (settings, facts):
            secret.unlink(missing_ok=True)

    def stop(self) -> None:
        """End the JVM and everything it started, and remove the private folder.

        Calling this twice is harmless.
        """
        gateway, self.gateway = self.gateway, None
        process, self._process = self._process, None
        try:
            if gateway is not None:
                with contextlib.suppress(Exception):
                    gateway.shutdown()
            if process is not None:
                _end(process, self.patience_s)
            pump, self._pump = self._pump, None
            if pump is not None:
                pump.join(_STOP_TIMEOUT_S)
            if process is not None and process.stdout is not None:
                process.stdout.close()
        finally:
            if process is not None:
                _kill(process)
            self._workspace.remove()

    def _await(self, process: subprocess.Popen[str], facts: Path) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not facts.is_file():
            if process.poll() is not None:
                pump = self._pump
                if pump is not None:
                    pump.join(_STOP_TIMEOUT_S)
                raise SessionStartError(
                    f"the JVM for Spark ended with code {process.returncode} before it was "
                    f"ready. It printed:\n{self.printed()}"
                )
            if time.monotonic() > deadline:
                raise SessionStartError(
                    f"the JVM for Spark was not ready after {_START_TIMEOUT_S:.0f} s. "
                    f"It printed:\n{self.printed()}"
                )
            time.sleep(0.02)

    def _connect(self, facts: Path) -> None:
        from pyspark import java_gateway

        written = facts.read_bytes()
        port, length = struct.unpack_from(">ii", written)
        secret = written[8 : 8 + length].decode()
        launch: Callable[[], JavaGateway] = cast("Any", java_gateway).launch_gateway  # untyped
        # With these two variables, PySpark itself finds a JVM that already runs.
        with environment(PYSPARK_GATEWAY_PORT=str(port), PYSPARK_GATEWAY_SECRET=secret):
            self.gateway = launch()
        for name in _LOUD:
            logging.getLogger(name).addFilter(_is_news)  # for good: threads outlive the JVM

    def printed(self) -> str:
        """Return the last lines that the JVM and its processes have printed, without secrets."""
        return redacted("".join(self._kept).strip()) or "(nothing)"

    def _forward(self, output: IO[str]) -> None:
        """Pass on the output of workers and the log; keep the last lines for error messages."""
        quiet = _Quiet(sys.stderr)
        with contextlib.suppress(ValueError, OSError):
            for line in output:
                self._kept.append(line)
                if self.gateway is not None:
                    quiet.write(line)


_LOUD: Final = (None, "py4j.clientserver")
"""The loggers that py4j logs to: the root logger is one of them; see `_is_news`."""


def _is_news(record: logging.LogRecord) -> bool:
    """Return whether a record says more than an exception does.

    When the JVM is lost during a call, or a micro-batch fails with an error, the error reaches the
    user; py4j logs a traceback as well, which is left out. Other records stay.
    """
    from py4j.protocol import Py4JNetworkError

    error = record.exc_info[1] if record.exc_info else None
    place = (record.module, record.funcName)
    lost = place == ("java_gateway", "send_command") and isinstance(error, Py4JNetworkError)
    failed = place == ("clientserver", "_call_proxy") and isinstance(error, SparkJobError)
    return not (lost or failed)


@final
class _Quiet:
    """Leaves out output that reports trouble although nothing is wrong.

    A worker whose task has ended before its output was read (after a limit, or on cancel) makes
    PySpark's daemon print a traceback about the broken pipe.
    """

    __slots__ = ("_held", "_stream")

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._held: list[str] = []

    def write(self, line: str) -> None:
        held = self._held
        if held and line.startswith(" "):
            held.append(line)
            return
        if held:
            self._held = []
            ours = [text for text in held if text.lstrip().startswith("File ")]
            daemon = all("daemon.py" in text for text in ours)
            if daemon and line.startswith(("BrokenPipeError", "ConnectionResetError")):
                return
            self._stream.writelines(held)
        if line.startswith("Traceback (most recent"):
            self._held = [line]
        elif not line.startswith(_NOISE):
            self._stream.write(line)


def write_settings(file: Path, conf: Mapping[str, str]) -> None:
    """Write a properties file of Java that only this user can read.

    Args:
        file: the file to make.
        conf: keys and values of any text.
    """
    lines = [f"{_escaped(key)}={_escaped(value)}\n" for key, value in conf.items()]
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as writing:
        writing.writelines(lines)


def _escaped(text: str) -> str:
    """Escape text as ``java.util.Properties`` reads it; in UTF-16, as Java holds text."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    return "".join(_escaped_unit(unit) for (unit,) in struct.iter_unpack(">H", encoded))


def _escaped_unit(unit: int) -> str:
    char = chr(unit)
    return char if char.isascii() and (char.isalnum() or char in "._-/") else f"\\u{unit:04x}"


@contextlib.contextmanager
def environment(**variables: str) -> Generator[None, None, None]:
    """Set environment variables for a ``with`` block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _log4j(level: str) -> str:
    lines = [_LOG4J.format(level=level.lower())]
    if level.upper() in _ERRORS_ALONE:
        for index, name in enumerate(_REPORTED_ANYWAY):
            lines.append(f"logger.q{index}.name = {name}\nlogger.q{index}.level = off\n")
        # The level of this one becomes a threshold for all of Spark's loggers.
        lines.append(f"logger.main.name = {_MAIN}\nlogger.main.level = {level.lower()}\n")
    return "".join(lines)


def _end(process: subprocess.Popen[str], patience_s: float) -> None:
    """Ask the process to end, wait, then kill it.

    The JVM exits when its standard input ends.
    """
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(patience_s)
    _kill(process)


def _kill(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
