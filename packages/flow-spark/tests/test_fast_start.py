"""The archive of classes that makes sessions start faster."""

from __future__ import annotations

from pathlib import Path

import pytest

from flow_spark import fast_start
from flow_spark.driver.archive import archives, options_for
from flow_spark.driver.java import Java


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Java:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    home = tmp_path / "jdk"
    home.mkdir()
    (home / "release").write_text("17")
    found = Java(home, 17, has_vector=True, origin="JAVA_HOME")
    monkeypatch.setattr(fast_start, "find_java", lambda: found)
    return found


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """A JVM that writes an archive of four bytes."""
    made: list[Path] = []

    def record(path: Path) -> None:
        path.write_bytes(b"jsa!")
        made.append(path)

    monkeypatch.setattr(fast_start, "_record", record)
    return made


def test_without_an_archive_nothing_changes(java: Java) -> None:
    assert options_for(java) == ""


def test_an_archive_is_used_once_it_is_complete(
    java: Java, recorded: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert fast_start.main([]) == 0

    path = Path(capsys.readouterr().out.rpartition(" (")[0])
    assert path.read_bytes() == b"jsa!"
    assert f"-XX:SharedArchiveFile={path} -Xshare:auto" in options_for(java)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_an_archive_that_was_cut_off_is_not_used(java: Java, recorded: list[Path]) -> None:
    """A JVM would crash on it."""
    fast_start.main([])
    (archive,) = archives(java)
    archive.write_bytes(b"j")

    assert options_for(java) == ""


def test_an_archive_of_another_java_is_not_used(
    java: Java, recorded: list[Path], tmp_path: Path
) -> None:
    fast_start.main([])
    other = tmp_path / "other"
    other.mkdir()
    (other / "release").write_text("21")

    assert options_for(Java(other, 21, has_vector=True, origin="PATH")) == ""


def test_an_archive_can_be_made_again_and_removed(java: Java, recorded: list[Path]) -> None:
    fast_start.main([])
    fast_start.main([])
    assert len(archives(java)) == 1

    assert fast_start.main(["--remove"]) == 0
    assert options_for(java) == ""


def test_a_jvm_that_writes_no_archive_is_reported(
    java: Java, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fast_start, "_record", lambda path: None)

    assert fast_start.main([]) == 1
    assert "wrote no archive" in capsys.readouterr().err
