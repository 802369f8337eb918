"""The main job, against the figures that others have published for its data."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType

import pytest

import flow_core as flow
from flow_core.engine import Engine, EngineOptions, local_engine
from flow_core.plugins import plugin_host
from flow_testing import TIMEOUT_S

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
JOB = ROOT / "examples" / "flights.py"
HEADER = (
    "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,"
    "carrier,flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour\n"
)
GOOD = "2013,1,1,517,515,2,830,819,11,UA,1545,N14228,EWR,IAH,227,1400,5,15,2013-01-01T10:00:00Z\n"


@pytest.fixture(scope="module")
def flights() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("flights", JOB)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["flights"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["flights"]


def engine_named(name: str) -> AbstractContextManager[Engine]:
    options = EngineOptions(master="local[2]" if name == "spark" else None)
    return plugin_host().engine(name)(options)


@pytest.fixture(scope="module", params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with engine_named(request.param) as opened:
        yield opened


def rows(flights: ModuleType) -> flow.Flow[tuple[int, str]]:
    return flow.from_iterable(flights.FlightRows(flights.data_file()))


def test_the_file_has_as_many_rows_and_cancelled_flights_as_published(
    flights: ModuleType, engine: Engine
) -> None:
    parsed = engine.place(rows(flights).map(flights.parse))
    assert parsed.count().single() == 336_776
    assert parsed.filter(lambda flight: flight.dep_delay is None).count().single() == 8_255


def test_the_means_are_the_published_ones(flights: ModuleType, engine: Engine) -> None:
    found = flights.report(engine.place(flights.delays(rows(flights))))
    everyone = [carrier.departure for carrier in found.carriers.values()]
    count = sum(mean.count for mean in everyone)
    assert count == 328_521
    assert f"{sum(mean.total for mean in everyone) / count:.2f}" == "12.64"
    means = {code: f"{found.carriers[code].departure.value:.2f}" for code in ("F9", "US", "HA")}
    assert means == {"F9": "20.22", "US": "3.78", "HA": "4.90"}
    assert max(found.worst) == (1_272, "2013-01-09 HA51 JFK-HNL")


@pytest.mark.essential
@pytest.mark.spark
@pytest.mark.usefixtures("one_jvm")
def test_here_and_on_spark_the_reports_are_equal(flights: ModuleType) -> None:
    reports = []
    for name in ("local", "spark"):
        with engine_named(name) as opened:
            found = flights.report(opened.place(flights.delays(rows(flights))))
            reports.append((found.carriers, sorted(found.worst), found.hours))
    assert reports[0] == reports[1]


def run(*args: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "flow_cli", "run", *map(str, args)]
    return subprocess.run(
        command, cwd=cwd, text=True, capture_output=True, timeout=20 * TIMEOUT_S, check=False
    )


def data_with(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "flights.csv.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("flights.csv", HEADER + "".join(lines))
    return path


def test_the_command_prints_three_tables_and_draws_a_picture(tmp_path: Path) -> None:
    done = run(f"{JOB}:pipeline", "--", "--data", data_with(tmp_path, GOOD), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for title in ("Punctuality per carrier", "The ten worst arrivals", "Mean departure delay"):
        assert title in done.stdout
    assert (tmp_path / "delays.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("2013,1,1\n", "not enough values"),
        (GOOD.replace(",517,515,2,", ",517,515,two,"), "invalid literal for int()"),
        (GOOD.rstrip() + ",more\n", "too many values"),
    ],
)
@pytest.mark.parametrize(
    "where", [[], pytest.param(["--on", "spark", "--master", "local[2]"], marks=pytest.mark.spark)]
)
def test_a_malformed_row_is_named_by_its_line_and_the_stage_that_met_it(
    tmp_path: Path, line: str, cause: str, where: list[str]
) -> None:
    data = data_with(tmp_path, GOOD, line, GOOD)
    done = run(f"{JOB}:pipeline", *where, "--", "--data", data, cwd=tmp_path)
    assert done.returncode == 1
    assert f"MalformedRowError: line 3 of the data is not a flight ({cause}" in done.stderr
    assert "map(parse), assembled at" in done.stderr
    assert "Traceback (most" not in done.stderr
    assert done.stdout == ""


def processes_below(pid: int) -> set[int]:
    """The processes that `pid` has started, and theirs."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            parents[int(stat.parent.name)] = int(fields[1])
    found: set[int] = set()
    while more := {child for child, parent in parents.items() if parent in {pid, *found}} - found:
        found |= more
    return found


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc to look for what is left")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    "where", [[], pytest.param(["--on", "spark", "--master", "local[2]"], marks=pytest.mark.spark)]
)
def test_an_interrupted_job_ends_within_two_seconds_and_leaves_nothing(
    tmp_path: Path, where: list[str], sent: signal.Signals
) -> None:
    job = tmp_path / "endless.py"
    job.write_text(
        "import flow_core as flow\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from flow_core.engine import Engine\n"
        "from flow_ops import observe_on\n"
        "def pipeline(engine: Engine) -> None:\n"
        "    numbers = engine.place(flow.range(10**12).map(lambda n: n + 1))\n"
        "    with ThreadPoolExecutor(1) as pool:\n"
        "        for n in numbers.pipe(observe_on(pool)):\n"
        "            if n % 1000 == 1:\n"
        "                print('running', flush=True)\n"
    )
    command = [sys.executable, "-m", "flow_cli", "run", f"{job}:pipeline", *where]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    (tmp_path / "tmp").mkdir()
    with subprocess.Popen(
        command, cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        started = processes_below(process.pid)
        process.send_signal(sent)
        # The rest of the output has to be read, or the process might wait for room to print.
        _, said = process.communicate(timeout=2)
    assert process.returncode == 128 + sent, said
    assert "Traceback (most" not in said
    left = {pid for pid in started if Path(f"/proc/{pid}").exists()}
    assert {pid: Path(f"/proc/{pid}/cmdline").read_text() for pid in left} == {}
    assert list((tmp_path / "tmp").iterdir()) == []


def test_the_local_engine_leaves_a_flow_where_it_is() -> None:
    numbers = flow.range(3)
    with local_engine() as engine:
        assert engine.place(numbers) is numbers
