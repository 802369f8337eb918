"""A package that knows flow-core only: built into a wheel, installed, listed, used, and run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from flow_testing import TIMEOUT_S

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def command(acme: Path, tmp_path: Path) -> Command:
    """The `flow` command of an environment that has acme-flow."""

    def run(*args: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-W", "error", "-m", "flow_cli", *args],
            env={**os.environ, "PYTHONPATH": str(acme), **environ},
            cwd=tmp_path,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=12 * TIMEOUT_S,
        )

    return run


def test_a_wheel_of_a_third_party_registers_end_to_end(acme: Path) -> None:
    script = (
        "import flow_core as flow\n"
        "from flow_core.plugins import plugin_host\n"
        "host = plugin_host()\n"
        "assert host.operators['every'].plugin.version == '3.1.4'\n"
        "countdown, every = host.source('countdown'), host.operator('every')\n"
        "print(list(countdown(9).pipe(every(3))), *host.problems)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env={**os.environ, "PYTHONPATH": str(acme), "FLOW_LOAD_PLUGINS": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=12 * TIMEOUT_S,
    )
    assert (done.stdout, done.stderr) == ("[7, 4, 1]\n", "")


def test_its_registrations_are_listed_under_its_distribution_and_version(command: Command) -> None:
    document = json.loads(command("plugins", "--json").stdout)
    (every,) = (record for record in document["operators"] if record["name"] == "every")
    assert (every["distribution"], every["version"]) == ("acme-flow", "3.1.4")
    assert (every["kind"], every["answers"]) == ("stage", ["SYNC", "ASYNC", "THREAD_BOUNDARY"])
    assert "acme" in {record["name"] for record in document["engines"]}
    assert "acme-flow" not in {problem["distribution"] for problem in document["problems"]}


def test_it_is_gone_when_it_is_disabled(command: Command) -> None:
    listed = command("plugins", FLOW_DISABLE_PLUGINS="acme").stdout
    assert "acme" not in listed
    assert "flow-core" in listed


def test_its_operator_fuses_with_those_of_the_core(command: Command, tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text(
        "import flow_core\n"
        "from acme_flow.operators import countdown, every\n"
        "thirds = countdown(9).map(lambda n: n + 1).pipe(every(3)).map(str)\n"
    )
    assert command("run", "jobs.py:thirds").stdout == "8\n5\n2\n"
    assert "map | every | map" in command("explain", "jobs.py:thirds").stdout


def test_its_engine_runs_a_job_that_was_written_for_any_engine(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "jobs.py").write_text(
        dedent("""
        import flow_core
        from flow_core.engine import Engine

        def job(engine: Engine, *, stop: int = 3) -> flow_core.Flow[int]:
            return engine.place(flow_core.range(stop).map(lambda n: n + 1))
        """)
    )
    here = command("run", "jobs.py:job", "--", "--stop", "2")
    assert (here.returncode, here.stdout, here.stderr) == (0, "1\n2\n", "")
    there = command("run", "jobs.py:job", "--on", "acme", "--master", "m://1", "--", "--stop", "2")
    assert (there.returncode, there.stdout) == (0, "1\n11\n")
    assert there.stderr == "opened m://1 for flow run jobs.py:job\nclosed\n"


def test_its_converter_is_used_by_from_and_only_if_it_is_installed(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "jobs.py").write_text(
        "import flow_core\n"
        "from acme_flow.ledger import Ledger\n"
        "amounts = flow_core.from_(Ledger(rent=3, food=4))\n"
    )
    assert command("run", "jobs.py:amounts").stdout == "3\n4\n"
    without = command("run", "jobs.py:amounts", FLOW_DISABLE_PLUGINS="acme-flow")
    assert without.stdout == "rent\nfood\n"


PIPELINE = """
[parameters]
start = 9
label = "sum"

[source]
use = "countdown"
start = { parameter = "start" }

[[operators]]
use = "every"
n = 3

[[operators]]
use = "append"
other = { source = { object = "acme_flow.ledger:BOOK" }, operators = [{ use = "skip", count = 1 }] }

[sink]
use = "tally"
label = { parameter = "label" }
"""


def test_all_that_it_registers_can_be_named_in_a_pipeline(command: Command, tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(PIPELINE)
    done = command("run", "job.toml")
    assert (done.returncode, done.stdout, done.stderr) == (0, "sum: 16\n", "")  # 7 + 4 + 1 + 4
    given = command("run", "job.toml", "--", "--start", "3", "--label", "all")
    assert given.stdout == "all: 5\n"
    drawn = command("explain", "job.toml").stdout
    assert "boundary append(" in drawn
    assert "sink tally('sum')" in drawn


@pytest.mark.parametrize("how", ["file", "command"])
def test_its_engine_runs_a_pipeline(command: Command, tmp_path: Path, how: str) -> None:
    simple = 'source = { use = "countdown", start = 3 }\n'
    engine = '[engine]\non = "acme"\nmaster = "m://1"\n' if how == "file" else ""
    (tmp_path / "job.toml").write_text(simple + engine)
    done = command("run", "job.toml", *(() if engine else ("--on", "acme", "--master", "m://1")))
    assert (done.returncode, done.stdout) == (0, "30\n20\n10\n")
    assert done.stderr == "opened m://1 for flow run job.toml\nclosed\n"
    assert command("run", "job.toml", "--on", "local").stdout == "3\n2\n1\n"


def test_a_pipeline_that_needs_it_says_so_where_it_is_missing(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "job.toml").write_text(PIPELINE)
    done = command("run", "job.toml", FLOW_DISABLE_PLUGINS="acme")
    assert (done.returncode, done.stdout) == (2, "")
    assert "job.toml:6: [source] use: no source 'countdown' is installed" in done.stderr
    assert "job.toml:10: [[operators]] 1 (every) use: no operator 'every'" in done.stderr
    assert "job.toml:18: [sink] use: no sink 'tally' is installed" in done.stderr


def test_its_methods_are_under_its_name_once_it_is_imported(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "jobs.py").write_text(
        "import flow_core\n"
        "def early(): return flow_core.range(1, 9).acme.every(2)\n"
        "def late():\n"
        "    import acme_flow.namespace\n"
        "    return flow_core.range(1, 9).acme.every(2).acme.smooth()\n"
    )
    assert command("run", "jobs.py:late").stdout == "4.0\n6.0\n"
    early = command("run", "jobs.py:early")
    assert early.returncode == 2
    says = (
        "Flow has no 'acme'; acme-flow, which is installed, brings it: import acme_flow.namespace"
    )
    assert says in early.stderr


def test_its_methods_are_named_in_a_pipeline(command: Command, tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(
        'source = { use = "countdown", start = 6 }\noperators = ["acme.smooth"]\n'
    )
    assert command("run", "job.toml").stdout == "5.0\n4.0\n3.0\n2.0\n"
    (tmp_path / "job.toml").write_text(
        'source = { use = "countdown", start = 6 }\noperators = ["acme.smoth", "acne.smooth"]\n'
    )
    done = command("run", "job.toml")
    assert done.returncode == 2
    assert "the namespace 'acme' (acme_flow.namespace:Acme) has no 'smoth'" in done.stderr
    assert "no namespace 'acne' is installed; did you mean 'acme'?" in done.stderr


def test_its_namespace_is_listed(command: Command) -> None:
    (found,) = json.loads(command("plugins", "--json").stdout)["namespaces"]
    assert (found["name"], found["distribution"]) == ("acme", "acme-flow")
    assert "flow.acme" in command("plugins").stdout
