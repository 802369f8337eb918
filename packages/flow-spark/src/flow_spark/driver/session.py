"""A Spark session with settings that suit a flow, which leaves nothing behind."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import re
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final, cast, final
from urllib.parse import urlsplit

from flow_spark.driver.archive import options_for
from flow_spark.driver.gateway import DriverJvm, environment
from flow_spark.driver.java import find_java
from flow_spark.driver.reach import check_master, check_remote, is_loopback
from flow_spark.driver.shipping import packed
from flow_spark.errors import SessionConflictError, SessionStartError
from flow_spark.jobs.advice import INSTALL_CONNECT
from flow_spark.jobs.cluster import close_lifeline
from flow_spark.jobs.redaction import (
    is_redacted,
    redacted,
    redacted_setting,
    without_secrets_of,
)
from flow_spark.jobs.running_jobs import showing
from flow_spark.pickling.modules import own_paths
from flow_spark.platforms import check_platform

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["cores_of", "session", "sockets_in"]

Setting = str | int | float | bool

_FAST_START: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_NO_FILES: Final = "-XX:-UsePerfData"
_HERE: Final = "local[*]"
_DAEMON: Final = "flow_spark.jobs.daemon"
_NAME: Final = "flow"
_WAYS: Final = {
    False: "its JVM compiles as Spark's does; fast_start=True starts sooner, for a small job",
    True: "fast start, so that its JVM runs slower; fast_start=False is for large jobs",
}
"""The text in the log about a session on this machine: with a fast start, and without."""

_LONGEST_FOLDER: Final = 50
"""The most bytes that the name of a folder with sockets may have: a socket's whole name may have
104."""

_STOP_TIMEOUT_S: Final = 10.0
_FEWEST_PARTITIONS: Final = 8
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"

_THROWN: Final = re.compile(r"^(: |Caused by: )\S+")
_PORT: Final = re.compile(
    r"BindException: .*Service '([\w.]+)' failed after (\d+) retries \(starting from (\d+)\)"
)
_PORT_SETTINGS: Final = {
    "sparkDriver": "spark.driver.port",
    "SparkUI": "spark.ui.port",
    "org.apache.spark.network.netty.NettyBlockTransferService": "spark.driver.blockManager.port",
}

_RETRIES: Final = 6
"""The retries of calls to a server of Spark Connect that does not answer: about ten seconds, with
the waits between them."""

_log: Final = logging.getLogger("flow.spark")
_lock: Final = threading.RLock()


@contextlib.contextmanager
def session(
    master: str | None = None,
    *,
    remote: str | None = None,
    app_name: str | None = None,
    existing: SparkSession | None = None,
    log_level: str = "ERROR",
    conf: Mapping[str, Setting] | None = None,
    progress: bool = False,
    fast_start: bool = False,
) -> Generator[SparkSession, None, None]:
    """Open a Spark session for a ``with`` block.

    A session that is started here is stopped here, together with its JVM, its Python workers and
    its temporary folder, however the block ends. A session that is passed as `existing` is only
    yielded. Nested blocks share one session, since a process can hold only one JVM.

    The session's time zone is UTC, whatever the machine's is, so that the same flow has the same
    rows everywhere: a Spark ``TIMESTAMP`` arrives as a datetime aware of UTC. Such a column refuses
    a naive datetime, which is not a point in time.

    On this machine a shuffle has two partitions for each core, and at least 8, where Spark would
    make 200: a streaming query with state has a store for each of them. To have another number, set
    ``spark.sql.shuffle.partitions``.

    With `fast_start`, the JVM of a session on this machine compiles its code sooner and less well:
    a first item came after 7.8 s instead of 8.9 s, and jobs in Spark's own engine took 1.6 times as
    long. The log ``flow.spark``, level INFO, says how the session was started. For a cluster,
    `fast_start` changes nothing.

    Under ``spark-submit`` the session is in the JVM that ``spark-submit`` has started, and its
    options, such as ``--master``, ``--name`` and ``--conf``, hold unless the arguments here say
    otherwise.

    In a session that was made elsewhere, and in a Spark Connect server, a small job checks whether
    the executors have the Python, the packages and the versions of this process. A Spark Connect
    server is sent the packages of this library that its executors lack. If no executor runs that
    job within ten seconds, all slots may be in use: the session opens, and the log ``flow.spark``
    says that nothing was checked.

    A call to a Spark Connect server that does not answer is tried again for about ten seconds, and
    fails then.

    Args:
        master: where to run: ``local[N]``, ``local[*]``, ``spark://host:port`` … None for what
            ``spark-submit`` says, or else ``local[*]``.
        remote: the address of a Spark Connect server, ``sc://host:port``, instead of a master.
        app_name: the name that Spark's tools show. None for what ``spark-submit`` says, or else
            ``flow``.
        existing: a session made elsewhere, which is used and not stopped.
        log_level: how much of the JVM's log goes to stderr: OFF, ERROR, WARN, INFO …
        conf: Spark settings, which override those chosen here: ``conf={"spark.driver.memory":
            "2g"}``.
        progress: whether jobs that begin in the block are shown as bars on stderr, if that is a
            terminal; a bar counts the finished tasks, of all that Spark has planned. ``flow run``
            shows these bars.
        fast_start: whether to start sooner and run slower: for tests, and for a first look.

    Yields:
        The session.

    Raises:
        NoJavaError: if there is no Java runtime for a local driver.
        SessionStartError: if the JVM or Spark does not start; the text contains their output; or if
            no Spark Connect server answers at `remote`.
        SessionConflictError: if another session, with other settings, runs in this process; or if
            `existing`, or the server at `remote`, does not have what a flow needs: the right
            version of Spark, and the right Python on the executors.
        UnsupportedPlatformError: on Windows, which has no groups of processes.
    """
    check_platform()
    with contextlib.ExitStack() as stack:
        if existing is not None:
            spark = existing
            if _current is None or _current.spark is not spark:
                from flow_spark.driver.existing import check_existing

                check_existing(spark)
        elif remote is not None:
            spark = stack.enter_context(_connect(remote, app_name or _NAME, conf or {}))
        else:
            started = _classic(master, app_name, log_level, conf or {}, fast_start)
            spark = stack.enter_context(started)
        if progress:
            stack.enter_context(showing(spark))
        yield spark


@contextlib.contextmanager
def _classic(
    master: str | None,
    app_name: str | None,
    log_level: str,
    conf: Mapping[str, Setting],
    fast_start: bool,
) -> Generator[SparkSession, None, None]:
    """Open the one session of this process that has its own JVM."""
    with _lock:
        shared = _acquire(master, app_name, log_level, conf, fast_start)
    try:
        yield shared.spark
    except BaseException as error:
        _keep_texts(error)
        raise
    finally:
        _release(shared)


@contextlib.contextmanager
def _connect(
    remote: str, app_name: str, conf: Mapping[str, Setting]
) -> Generator[SparkSession, None, None]:
    """Open a client of a Spark Connect server.

    The session ends with the block; the server does not.
    """
    from pyspark.sql import SparkSession

    from flow_spark.driver.existing import check_release, differing

    version, server = check_remote(remote), f"the server at {without_secrets_of(remote, remote)}"
    if version is not None:
        check_release(server, version, remote=True)
    builder = SparkSession.builder.remote(remote).appName(app_name)
    builder = builder.config("spark.sql.session.timeZone", "UTC")
    for key, value in conf.items():
        builder = builder.config(key, _text(value))
    # PySpark makes this process a client for good; the time of the block is enough.
    with environment(SPARK_CONNECT_MODE_ENABLED="1"), tempfile.TemporaryDirectory() as folder:
        try:
            spark = builder.create()
        except (ImportError, SystemExit) as error:
            # PySpark takes `python -c` and workers of pytest for doctests, and ends the process.
            missing = _first_line(error) if isinstance(error, ImportError) else "see above"
            raise SessionStartError(
                f"a client of Spark Connect needs packages that are not installed here: "
                f"{missing.rstrip('.')}. Install them: {INSTALL_CONNECT}"
            ) from error
        except Exception as error:
            said = without_secrets_of(remote, f"no session at {remote}: {_first_line(error)}")
            shown = without_secrets_of(remote, str(error)) == str(error)
            raise SessionStartError(said) from (error if shown else None)
        try:
            _lose_patience(spark)
            is_near = is_loopback(urlsplit(remote).hostname)
            if not is_near:
                _send_packages(spark, folder)
            if differing(server, spark) and is_near:  # a container shows there
                _send_packages(spark, folder)
            yield spark
        finally:
            try:
                spark.stop()
            finally:
                close_lifeline(spark)


def _lose_patience(spark: SparkSession) -> None:
    """Let calls to a server that does not answer fail after ten seconds, not ten minutes."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    policy = DefaultPolicy(max_retries=_RETRIES, initial_backoff=50, max_backoff=2_000)
    cast("Any", spark).client.set_retry_policies([policy])


def _send_packages(spark: SparkSession, folder: str) -> None:
    spark.addArtifacts(str(packed(Path(folder))), pyfile=True)


@final
class _Shared:
    """The one session of this process, and how many ``with`` blocks use it."""

    __slots__ = ("_restore_sigint", "conf", "jvm", "master", "spark", "users")

    def __init__(
        self,
        spark: SparkSession,
        master: str,
        conf: Mapping[str, Setting],
        jvm: DriverJvm | None,
        restore_sigint: Callable[[], None],
    ) -> None:
        self.spark: Final = spark
        self.master: Final = master
        self.conf: Final = dict(conf)
        self.users = 1
        self.jvm: Final = jvm
        self._restore_sigint: Final = restore_sigint

    def stop(self) -> None:
        # A KeyboardInterrupt may have interrupted a call to the JVM on this thread, so we call the
        # JVM from a new thread, which has its own connection. Reports of a task that the end cuts
        # short are not needed.
        silent = self.jvm is not None and self.jvm.terse
        farewell = threading.Thread(
            target=_stop_quietly, args=(self.spark, silent), name="flow-spark-stop", daemon=True
        )
        try:
            farewell.start()
            farewell.join(_STOP_TIMEOUT_S)
        finally:
            try:
                if self.jvm is not None:
                    self.jvm.stop()
            finally:
                if self.jvm is not None:
                    _forget(self.jvm.workspace)
                self._restore_sigint()


_current: _Shared | None = None


def _acquire(
    master: str | None,
    app_name: str | None,
    log_level: str,
    conf: Mapping[str, Setting],
    fast_start: bool,
) -> _Shared:
    global _current
    if _current is not None:
        _check_compatible(_current, master, conf)
        _current.users += 1
        return _current
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        raise SessionConflictError(
            "a Spark session runs in this process already, and it was not made by "
            "flow_spark.session(). Pass it: session(existing=spark), or stop it first."
        )
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit runs us: the JVM is its own
        _current = _join(master, app_name, conf)
    else:
        _current = _start(master or _HERE, app_name or _NAME, log_level, conf, fast_start)
    return _current


def _check_compatible(shared: _Shared, master: str | None, conf: Mapping[str, Setting]) -> None:
    different = [
        redacted_setting(key, value) for key, value in conf.items() if shared.conf.get(key) != value
    ]
    if master is not None and master != shared.master:
        different.insert(0, f"master={master}")
    if different:
        raise SessionConflictError(
            f"a session on {shared.master} is open in this process, and a process can hold only "
            f"one; these settings differ from it: {', '.join(different)}. Close the outer "
            "session() first, or ask for the same settings."
        )


def _release(shared: _Shared) -> None:
    global _current
    with _lock:
        shared.users -= 1
        if shared.users > 0 or _current is not shared:
            return
        _current = None
        shared.stop()


def be_patient(seconds: float) -> None:
    """Give the JVM of the running session this much time to end by itself."""
    with _lock:
        if _current is not None and _current.jvm is not None:
            _current.jvm.patience_s = seconds


@atexit.register
def _stop_at_exit() -> None:
    global _current
    with _lock:
        shared, _current = _current, None
        if shared is not None:
            shared.stop()


def _join(master: str | None, app_name: str | None, conf: Mapping[str, Setting]) -> _Shared:
    """Make a session in the JVM that ``spark-submit`` has started."""
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    told = SparkConf()
    master = master or told.get("spark.master", _HERE)
    chosen = _settings(master, None, "", conf)
    settings = {key: chosen[key] for key in chosen if key in conf or not told.contains(key)}
    name = app_name or told.get("spark.app.name", _NAME)
    shared = _open(None, master, name, settings, conf)
    _log.info("Spark %s on %s, in the JVM of spark-submit", shared.spark.version, master)
    return shared


def _start(
    master: str, app_name: str, log_level: str, conf: Mapping[str, Setting], fast_start: bool
) -> _Shared:
    java = find_java()
    check_master(master)
    jvm = DriverJvm()
    try:
        options = f"{_NO_FILES} {options_for(java)}"
        if fast_start:
            options = f"{_FAST_START} {options}"
        settings = _settings(master, jvm.workspace, options, conf)
        settings["spark.master"] = master
        settings["spark.app.name"] = app_name
        jvm.start(java, settings, _variables(master), log_level)
        shared = _open(jvm, master, app_name, settings, conf)
    except BaseException:
        jvm.stop()
        _forget(jvm.workspace)
        raise
    way = f": {_WAYS[fast_start]}" if _same_machine(master) else ""
    _log.info("Spark %s on %s%s", shared.spark.version, master, way)
    return shared


def _open(
    jvm: DriverJvm | None,
    master: str,
    app_name: str,
    settings: Mapping[str, str],
    conf: Mapping[str, Setting],
) -> _Shared:
    from pyspark import SparkConf, SparkContext
    from pyspark.sql import SparkSession

    restore = _sigint_keeper()
    gateway = None if jvm is None else jvm.gateway
    try:
        with environment(PYSPARK_PYTHON=_worker_python(master)):
            if gateway is not None:
                SparkContext._ensure_initialized(gateway=gateway)
            configured = SparkConf().setMaster(master).setAppName(app_name)
            for key, value in settings.items():
                configured.set(key, value)
            context = SparkContext(conf=configured)
        if jvm is not None and not _same_machine(master):
            context.addPyFile(str(packed(jvm.workspace)))
        spark = SparkSession(context)
    except Exception as error:
        restore()
        _keep_texts(error)  # while the JVM, which knows them, is there
        printed = "" if jvm is None else jvm.printed()
        said = redacted(f"Spark did not start on {master}: {_reason(error, printed)}")
        raise SessionStartError(said) from (None if is_redacted(str(error)) else error)
    except BaseException:
        restore()
        raise
    # PySpark's own handler talks to the JVM inside the signal; a plain KeyboardInterrupt unwinds
    # through our blocks instead, and these cancel the job and stop the session.
    restore()
    return _Shared(spark, master, conf, jvm, restore)


def _settings(
    master: str, workspace: Path | None, java_options: str, conf: Mapping[str, Setting]
) -> dict[str, str]:
    given = {key: _text(value) for key, value in conf.items()}
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        # How long a cancelled task may continue inside a user's function before its worker is
        # killed.
        "spark.python.task.killTimeout": "1s",
    }
    if _same_machine(master):
        settings["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(own_paths())
        settings["spark.python.daemon.module"] = _DAEMON
        partitions = max(_FEWEST_PARTITIONS, 2 * cores_of(master))
        settings["spark.sql.shuffle.partitions"] = str(partitions)
        settings["spark.driver.host"] = "127.0.0.1"
        settings["spark.driver.bindAddress"] = "127.0.0.1"
    options = ""
    if workspace is not None:
        options = (
            f"-Dlog4j2.configurationFile={(workspace / 'log4j2.properties').as_uri()} "
            f"-Djava.io.tmpdir={workspace} -XX:ErrorFile={workspace / 'jvm-error.log'}"
        )
        settings["spark.sql.warehouse.dir"] = (workspace / "warehouse").as_uri()
        if _same_machine(master):
            settings.update(sockets_in(workspace))
            settings["spark.local.dir"] = str(workspace)
            options = f"{java_options} {options}"
    settings.update(given)
    if options:
        settings[_JAVA_OPTIONS] = f"{options} {given.get(_JAVA_OPTIONS, '')}".strip()
    return settings


def sockets_in(folder: Path) -> dict[str, str]:
    """Return settings with which Spark talks to Python workers through sockets in `folder`.

    With TCP sockets, a message may wait some 30 ms for the acknowledgement of the one before it.
    """
    if len(os.fsencode(folder)) > _LONGEST_FOLDER:
        return {}
    setting = "spark.python.unix.domain.socket"
    return {f"{setting}.enabled": "true", f"{setting}.dir": str(folder)}


def _variables(master: str) -> dict[str, str]:
    given = os.environ.get("SPARK_LAUNCHER_OPTS", "")
    variables = {
        "PYSPARK_PYTHON": _worker_python(master),
        "SPARK_LAUNCHER_OPTS": f"{_FAST_START} {_NO_FILES} {given}",
    }
    if _same_machine(master):
        variables["SPARK_LOCAL_IP"] = "127.0.0.1"
        variables["PYTHONPATH"] = os.pathsep.join(own_paths())
    return variables


def _worker_python(master: str) -> str:
    if _same_machine(master):
        return sys.executable
    return os.environ.get("PYSPARK_PYTHON", sys.executable)


def _same_machine(master: str) -> bool:
    return master.startswith("local")


def cores_of(master: str) -> int:
    """Return how many tasks run at once on this machine."""
    cluster = re.match(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)", master)
    if cluster is not None:
        return int(cluster[1]) * int(cluster[2])
    threads = re.match(r"local\[\s*(\d+)", master)
    if threads is not None:
        return int(threads[1])
    return (os.cpu_count() or 1) if "*" in master else 1


def _text(value: Setting) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _sigint_keeper() -> Callable[[], None]:
    """Return a function that restores the present SIGINT handler.

    Off the main thread, the returned function does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    handler: Callable[[int, FrameType | None], object] | int | None = signal.getsignal(
        signal.SIGINT
    )

    def restore() -> None:
        if handler is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)

    return restore


def _stop_quietly(spark: SparkSession, silent: bool) -> None:
    if silent:
        with contextlib.suppress(Exception):
            spark.sparkContext.setLogLevel("OFF")
    with contextlib.suppress(Exception):  # also of a JVM that has ended: PySpark forgets it
        spark.stop()


def _keep_texts(error: BaseException) -> None:
    """Let PySpark's exceptions be printed even when the JVM, which has their text, is gone."""
    from py4j.protocol import Py4JError
    from pyspark.errors.exceptions.captured import CapturedException

    pending: list[BaseException | None] = [error]
    seen: set[int] = set()
    while pending:
        link = pending.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        pending += [link.__cause__, link.__context__]
        if isinstance(link, (CapturedException, Py4JError)):
            with contextlib.suppress(Exception):
                # Any: the class of an object changes to a subclass of it, which no type can
                # express.
                cast("Any", link).__class__ = _texted(type(link), str(link))


def _texted(cls: type[BaseException], text: str) -> type[BaseException]:
    """Return `cls` with a fixed text."""

    def fixed(_: BaseException) -> str:
        return text

    return type(cls.__name__, (cls,), {"__str__": fixed, "__module__": cls.__module__})


def _forget(workspace: Path) -> None:
    """Let PySpark start with a new JVM next time; PySpark has no public way for this."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None
    # PySpark leaves the files that it was sent on the module path. If an archive there is missing,
    # the lookup of any module that is not found before it on the path fails.
    sys.path[:] = [path for path in sys.path if not Path(path).is_relative_to(workspace)]


def _reason(error: BaseException, printed: str) -> str:
    """Return the JVM's exception and its first cause, a line each, or else its output.

    The text ends with advice.
    """
    text = str(error)
    thrown = [line.strip(": ") for line in text.splitlines() if _THROWN.match(line)]
    if thrown:
        reason = "\n".join(dict.fromkeys([thrown[0], thrown[-1]]))
    else:
        reason, text = f"{_first_line(error)}. The JVM printed:\n{printed}", printed
    taken = _PORT.search(text)
    if taken is None:
        return reason
    service, tried, port = taken.groups()
    return (
        f"{reason}\nThe way out: port {port} is in use, and so are {tried} more that were tried. "
        f"Leave {_PORT_SETTINGS.get(service, f'the port of {service}')} unset or set it to 0, so "
        "that a free one is taken; or let more be tried: spark.port.maxRetries."
    )


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
