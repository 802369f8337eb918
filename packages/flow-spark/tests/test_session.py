"""Sessions: their settings, sharing them, and that nothing is left of them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from flow_spark import SessionConflictError, session
from flow_spark.driver import existing
from flow_spark.driver.existing import check_existing
from flow_spark.driver.session import cores_of, sockets_in
from flow_spark.driver.workspace import sweep
from flow_testing import TIMEOUT_S

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_a_session_is_quiet_local_and_in_utc(spark: SparkSession) -> None:
    conf = spark.sparkContext.getConf()

    assert conf.get("spark.ui.enabled") == "false"
    assert conf.get("spark.ui.showConsoleProgress") == "false"
    assert conf.get("spark.driver.host") == "127.0.0.1"
    assert conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_a_local_shuffle_has_a_few_partitions_for_each_core(spark: SparkSession) -> None:
    """Spark's 200 are for a cluster; each costs a task, or a state store, however few the rows."""
    assert spark.conf.get("spark.sql.shuffle.partitions") == "8"


@pytest.mark.parametrize(
    ("master", "cores"),
    [
        ("local", 1),
        ("local[3]", 3),
        ("local[3,4]", 3),
        ("local-cluster[2,3,1024]", 6),
        ("local[*]", os.cpu_count()),
        ("local[*,4]", os.cpu_count()),
    ],
)
def test_a_local_master_says_how_many_cores_there_are(master: str, cores: int) -> None:
    assert cores_of(master) == cores


def test_the_handler_of_ctrl_c_is_not_sparks(spark: SparkSession) -> None:
    handler = signal.getsignal(signal.SIGINT)

    assert "pyspark" not in getattr(handler, "__module__", "")


def test_modules_that_a_flow_needs_are_loaded_before_workers_begin(spark: SparkSession) -> None:
    def look(_: object) -> Iterator[tuple[str, list[str]]]:
        ps = ["ps", "-o", "command=", "-p", str(os.getppid())]
        yield subprocess.check_output(ps, text=True), list(sys.modules)

    ((daemon, loaded),) = spark.sparkContext.parallelize([1], 1).mapPartitions(look).collect()

    assert "flow_spark.jobs.daemon" in daemon
    needed = ["importlib.metadata", "encodings.idna", "pyspark.worker", "flow_spark.jobs.task"]
    assert max(needed, key=loaded.index) == "flow_spark.jobs.task", "the last one, here"


def test_workers_are_talked_to_through_files_if_their_names_are_short_enough(
    spark: SparkSession,
) -> None:
    conf = spark.sparkContext.getConf()
    setting = "spark.python.unix.domain.socket."
    assert conf.get(setting + "enabled") == "true"
    folder = Path(conf.get(setting + "dir") or "")

    assert sockets_in(folder)
    assert not sockets_in(folder / ("x" * 60)), "Spark could not start"


def test_workers_run_the_same_python_and_find_what_this_process_finds(
    spark: SparkSession,
) -> None:
    def look(_: object) -> Iterator[tuple[str, list[str]]]:
        yield sys.executable, sys.path

    (executable, path), *_ = spark.sparkContext.parallelize([1], 1).mapPartitions(look).collect()

    assert Path(executable).resolve() == Path(sys.executable).resolve()
    import flow_core

    assert str(Path(flow_core.__file__).parent.parent) in path


def test_a_nested_block_shares_the_session_and_leaves_it_running(spark: SparkSession) -> None:
    with session("local[2,4]") as inner:
        assert inner is spark

    assert spark.range(3).count() == 3


@pytest.mark.parametrize(
    ("master", "conf"), [("local[1]", {}), ("local[2,4]", {"spark.sql.ansi.enabled": False})]
)
def test_another_session_with_other_settings_is_refused(
    spark: SparkSession, master: str, conf: dict[str, bool]
) -> None:
    with (
        pytest.raises(SessionConflictError, match=r"local\[2,4\] is open.*differ"),
        session(master, conf=conf),
    ):
        pytest.fail("two sessions in one process")


def test_a_session_that_was_made_elsewhere_is_looked_at_once_and_passed_through(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flow_spark.driver.session._current", None)  # as if it was made elsewhere

    with session(existing=spark) as same:
        assert same is spark

    assert spark.range(3).count() == 3


def test_a_session_made_elsewhere_with_another_spark_is_refused(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pyspark, "__version__", "3.5.1")

    with pytest.raises(
        SessionConflictError, match=r"runs Spark .*has PySpark 3\.5\.1.*pip install"
    ):
        check_existing(spark)


def test_a_session_made_elsewhere_with_other_packages_is_refused(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(existing, "_version", lambda name: "77.0")

    with pytest.raises(
        SessionConflictError, match=r"flow-core 77\.0 here, .* there.*PYSPARK_PYTHON"
    ):
        check_existing(spark)


def test_a_session_of_this_package_is_passed_through(spark: SparkSession) -> None:
    with session(existing=spark) as same:
        assert same is spark

    assert spark.range(3).count() == 3


# --- In processes of their own -------------------------------------------------------------------


def processes_of(folder: Path) -> list[int]:
    """The JVMs that work in `folder`."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        if str(folder).encode() in command and b"java" in command:
            found.append(int(entry.name))
    return found


def run(
    script: str, folder: Path, **variables: str
) -> tuple[subprocess.Popen[str], threading.Thread]:
    """Run `script` with `folder` for temporary files; a watchdog ends it in the end."""
    # What runs in a shell's background inherits that SIGINT is ignored, and Python leaves it so.
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    process = subprocess.Popen(
        [sys.executable, "-c", heeding + script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder), **variables},
    )
    watchdog = threading.Timer(12 * TIMEOUT_S, process.kill)
    watchdog.daemon = True
    watchdog.start()
    return process, watchdog


def wait_gone(folder: Path, within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    pause = threading.Event()
    while processes_of(folder):
        if time.monotonic() > deadline:
            return False
        pause.wait(0.05)
    return True


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/cmdline").exists(), reason="needs /proc to see other processes"
)


@needs_proc
def test_nothing_is_left_of_a_session_and_one_as_spark_makes_it_can_follow(tmp_path: Path) -> None:
    process, _ = run(
        """
import logging
import sys
import threading
from pyspark.errors import AnalysisException
from flow_spark import session

log = logging.getLogger("flow.spark")
log.setLevel(logging.INFO)
log.addHandler(logging.StreamHandler(sys.stdout))

def own_options(spark):
    bean = spark.sparkContext._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
    return [option for option in bean.getInputArguments() if option.startswith("-XX:+Use")
            or option.startswith("-XX:TieredStopAtLevel")]

try:
    with session("local[1]", fast_start=True) as spark:
        spark.range(3).mapInArrow(lambda batches: batches, "id bigint").collect()
        print(own_options(spark))
        spark.table("missing")
except AnalysisException as error:
    print("still readable:", "missing" in str(error))
with session("local[2]") as spark:
    print(own_options(spark))
    print("another one:", spark.sparkContext.master, spark.range(3).count())
print("threads:", [thread.name for thread in threading.enumerate() if not thread.daemon])
print("paths:", [path for path in sys.path if "userFiles" in path])
""",
        tmp_path,
    )
    said, complained = process.communicate()

    assert process.returncode == 0, complained
    spark, lines = f"Spark {pyspark.__version__} on", said.splitlines()
    assert lines.pop(0).startswith(f"{spark} local[1]: fast start")
    assert lines.pop(2).startswith(f"{spark} local[2]: its JVM compiles as Spark's does")
    assert lines == [
        "['-XX:TieredStopAtLevel=1', '-XX:+UseSerialGC']",
        "still readable: True",
        "[]",
        "another one: local[2] 3",
        "threads: ['MainThread']",
        "paths: []",
    ]
    assert complained == ""
    assert wait_gone(tmp_path, 0)
    assert list(tmp_path.iterdir()) == []


JOB = """
import time
import flow_core as flow
from flow_spark import on_spark, session

def slow(n):
    time.sleep(0.001)
    return n

conf = {"spark.hadoop.fs.s3a.secret.key": "hush-hush"}
with session("local[2]", conf=conf, fast_start=True) as spark:
    for n in flow.range(10**9).pipe(on_spark(spark)).map(slow):
        if n == 100:
            print("running", flush=True)
"""


@needs_proc
def test_ctrl_c_stops_the_job_the_session_and_the_jvm(tmp_path: Path) -> None:
    process, _ = run(JOB, tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    assert len(processes_of(tmp_path)) == 1
    process.send_signal(signal.SIGINT)
    asked = time.monotonic()
    _, complained = process.communicate()

    assert time.monotonic() - asked < TIMEOUT_S
    assert process.returncode != 0
    assert complained.rstrip().endswith("KeyboardInterrupt")
    assert "spark ERROR" not in complained
    assert wait_gone(tmp_path, 0)
    assert list(tmp_path.iterdir()) == []


@needs_proc
def test_when_its_process_is_killed_the_jvm_ends_and_the_next_session_removes_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, _ = run(JOB, tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    for path in tmp_path.rglob("*"):
        with contextlib.suppress(OSError):  # a folder, or a file that Spark has removed
            assert b"hush-hush" not in path.read_bytes(), path
    process.kill()
    process.communicate()

    assert wait_gone(tmp_path, 10)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    sweep()
    assert list(tmp_path.glob("flow-spark-*")) == []


@needs_proc
def test_a_jvm_that_does_not_start_is_reported_with_its_output(tmp_path: Path) -> None:
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'the machine is on fire' >&2\nexit 3\n")
    java.chmod(0o755)
    (tmp_path / "jdk" / "release").write_text(
        'JAVA_VERSION="17.0.1"\nMODULES="jdk.incubator.vector"\n'
    )
    folder = tmp_path / "temporary"
    folder.mkdir()
    process, _ = run(
        """
from flow_spark import SessionStartError, session
try:
    with session("local[1]", fast_start=True):
        pass
except SessionStartError as error:
    print(error)
""",
        folder,
        JAVA_HOME=str(tmp_path / "jdk"),
    )
    said, complained = process.communicate()

    assert "the JVM for Spark ended with code" in said, complained
    assert "the machine is on fire" in said
    assert list(folder.iterdir()) == []


@needs_proc
def test_settings_are_not_in_the_list_of_processes_and_reach_spark_as_they_are(
    tmp_path: Path,
) -> None:
    (tmp_path / "conf").mkdir()
    defaults = "spark.flow.default kept\nspark.driver.memory 600m\nspark.sql.ansi.enabled true\n"
    (tmp_path / "conf" / "spark-defaults.conf").write_text(defaults)
    process, _ = run(
        r"""
from pathlib import Path
from flow_spark import session
secret = "hu" + "sh"  # this script is in the list of processes itself
conf = {"spark.flow.password": f"{secret}=\\ #ä\U0001f600: x", "spark.sql.ansi.enabled": False}
seen = ""
with session("local[1]", conf=conf, fast_start=True) as spark:
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            seen += entry.read_bytes().decode(errors="replace")
        except OSError:
            pass
    given = spark.sparkContext.getConf()
    memory = spark._jvm.java.lang.Runtime.getRuntime().maxMemory() / 2**20
    print(secret in seen, given.get("spark.flow.password") == conf["spark.flow.password"])
    print(given.get("spark.flow.default"), given.get("spark.sql.ansi.enabled"), memory < 700)
""",
        tmp_path,
        SPARK_CONF_DIR=str(tmp_path / "conf"),
    )
    said, complained = process.communicate()

    assert said.splitlines() == ["False True", "kept false True"], complained


@needs_proc
def test_ctrl_c_while_the_jvm_starts_leaves_nothing(tmp_path: Path) -> None:
    process, _ = run(
        """
from flow_spark import session
print("starting", flush=True)
with session("local[1]", fast_start=True):
    print("started", flush=True)
""",
        tmp_path,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "starting\n"
    deadline = time.monotonic() + 20
    while not processes_of(tmp_path) and time.monotonic() < deadline:
        threading.Event().wait(0.02)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate()

    assert "started" not in said
    assert process.returncode != 0
    assert wait_gone(tmp_path, 0)
    assert list(tmp_path.iterdir()) == []


def test_settings_that_spark_refuses_are_reported(tmp_path: Path) -> None:
    process, _ = run(
        """
from flow_spark import SessionStartError, session
try:
    with session("local[nonsense]"):
        pass
except SessionStartError as error:
    print(error)
""",
        tmp_path,
    )
    said, complained = process.communicate()

    assert "Spark did not start on local[nonsense]" in said, complained
    assert list(tmp_path.iterdir()) == []
