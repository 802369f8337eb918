"""A Spark Connect server whose executors have another Python is reported when a session opens."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from flow_spark import from_dataframe, session
from flow_spark.errors import SessionConflictError

from ..infrastructure.connect import ConnectServer
from ..infrastructure.fixtures import Runtimes

pytestmark = [pytest.mark.spark, pytest.mark.cluster, pytest.mark.timeout(300)]


@contextmanager
def server_with(python: Path, runtime: Runtimes, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server whose executors run `python`."""
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    server = ConnectServer(runtime(python.parent.parent.name), "local[2]")
    try:
        yield server.url
    finally:
        server.stop()


def bare(folder: Path, *packages: str) -> Path:
    """A Python of this version with nothing but `packages`, as they are installed here."""
    venv.create(folder)
    installed = next((folder / "lib").glob("python3*")) / "site-packages"
    for name in packages:
        found = find_spec(name)
        assert found is not None
        assert found.origin is not None
        home = Path(found.origin).parent
        for kind in (home, home.with_name(f"{name}.libs")):
            if kind.exists():
                (installed / kind.name).symlink_to(kind)
    return folder / "bin" / "python"


def other() -> Path:
    """A Python of another version."""
    mine = "{}.{}".format(*sys.version_info)
    for name in ("python3", *(f"python3.{minor}" for minor in range(9, 20))):
        for folder in os.get_exec_path():
            found = shutil.which(name, path=folder)
            say = "import sys; print('{}.{}'.format(*sys.version_info))"
            if found is None:
                continue
            said = subprocess.run([found, "-c", say], capture_output=True, text=True, check=False)
            if said.returncode == 0 and said.stdout.strip() != mine:
                return Path(found)
    pytest.skip("needs a Python of another version")


def refused(url: str) -> str:
    """The message on opening a session there."""
    with pytest.raises(SessionConflictError) as caught, session(remote=url):
        pass
    return str(caught.value)


def test_a_server_with_another_version_of_python_is_refused(
    runtime: Runtimes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server_with(other(), runtime, monkeypatch) as url:
        said = refused(url)

    assert said.startswith(f"the server at {url} cannot run functions of this process: ")
    assert "this process runs Python {}.{}, and".format(*sys.version_info) in said
    assert "PYSPARK_PYTHON" in said


def test_a_server_without_the_packages_of_others_is_refused(
    runtime: Runtimes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with server_with(bare(tmp_path / "empty"), runtime, monkeypatch) as url:
        said = refused(url)

    assert "the executors' Python has no pyarrow. Install flow-spark there" in said
    assert "Traceback" not in said


def test_a_server_on_this_machine_is_sent_the_packages_that_it_lacks(
    runtime: Runtimes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    python = bare(tmp_path / "lacking", "pyarrow", "numpy", "pandas")
    with server_with(python, runtime, monkeypatch) as url, session(remote=url) as spark:
        assert sorted(from_dataframe(spark.range(3)).map(lambda n: n + 1)) == [1, 2, 3]
