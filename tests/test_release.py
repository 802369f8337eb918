"""`nox -s release_check`: the parts that build and install nothing, and what packages announce."""

from __future__ import annotations

import importlib.util
import io
import re
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "tools" / "release.py"
PACKAGES = sorted(path.parent for path in ROOT.glob("packages/*/pyproject.toml"))
SETTINGS = """
[project]
name = "flow-new"
version = "0.2.0"
requires-python = ">=3.11"
license = "MIT"
[tool.towncrier.fragment.added]
[tool.towncrier.fragment.fixed]
"""
METADATA = b"""\
Name: flow-new
Version: 0.2.0
Requires-Python: >=3.11
License-Expression: MIT
License-File: LICENSE

# The README
"""
WHEEL = {
    "flow_new/__init__.py": b"",
    "flow_new/py.typed": b"",
    "flow_new-0.2.0.dist-info/METADATA": METADATA,
    "flow_new-0.2.0.dist-info/licenses/LICENSE": b"MIT",
}
SDIST = {
    "flow_new-0.2.0/LICENSE": b"MIT",
    "flow_new-0.2.0/PKG-INFO": METADATA,
    "flow_new-0.2.0/src/flow_new/py.typed": b"",
}


def _load() -> Any:  # Any: a script, not a module of a package
    spec = importlib.util.spec_from_file_location("release_script", SCRIPT)
    if spec is None or spec.loader is None:
        raise ImportError("tools/release.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


release = _load()
PROJECT = tomllib.loads(SETTINGS)["project"]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with one fragment, as it should be."""
    folder = tmp_path / "flow-new"
    (folder / "changelog.d").mkdir(parents=True)
    (folder / "pyproject.toml").write_text(SETTINGS)
    (folder / "CHANGELOG.md").write_text("# Changes of flow-new\n\n## 0.1.0 (2026-12-01)\n")
    (folder / "changelog.d" / "+first.added.md").write_text("`first` is new.\n")
    return folder


def wheel(folder: Path, files: dict[str, bytes], mode: int = 0o644) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "flow_new-0.2.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            member = zipfile.ZipInfo(name)
            member.external_attr = mode << 16
            archive.writestr(member, content)
    return path


def sdist(folder: Path, files: dict[str, bytes], mode: int = 0o644, time: int = 0) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "flow_new-0.2.0.tar"
    with tarfile.open(path, "w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.mtime = len(content), mode, time
            archive.addfile(member, io.BytesIO(content))
    return path


make_one = pytest.mark.parametrize(("make", "files"), [(wheel, WHEEL), (sdist, SDIST)])


@make_one
def test_archives_of_the_same_bytes_do_not_differ(
    make: Callable[..., Path], files: dict[str, bytes], tmp_path: Path
) -> None:
    assert [*release.differences(make(tmp_path / "a", files), make(tmp_path / "b", files))] == []


@make_one
def test_the_members_in_which_archives_differ_are_named(
    make: Callable[..., Path], files: dict[str, bytes], tmp_path: Path
) -> None:
    licence = next(name for name in files if "LICENSE" in name)
    typed = next(name for name in files if "py.typed" in name)
    others = {**files, licence: b"GPL", "more": b""}
    del others[typed]
    one, other = make(tmp_path / "a", files), make(tmp_path / "b", others)
    assert {*release.differences(one, other)} == {
        f"{one.name}: {licence} differs in content",
        f"{one.name}: {typed} is in one of them only",
        f"{one.name}: more is in one of them only",
    }


@make_one
def test_a_difference_of_modes_is_named(
    make: Callable[..., Path], files: dict[str, bytes], tmp_path: Path
) -> None:
    one, other = make(tmp_path / "a", files), make(tmp_path / "b", files, mode=0o600)
    assert [*release.differences(one, other)] == [
        f"{one.name}: {name} differs in mode" for name in sorted(files)
    ]


def test_a_difference_of_times_is_named(tmp_path: Path) -> None:
    one, other = sdist(tmp_path / "a", SDIST), sdist(tmp_path / "b", SDIST, time=1)
    assert [*release.differences(one, other)] == [
        f"{one.name}: {name} differs in time" for name in sorted(SDIST)
    ]


@make_one
def test_another_order_of_the_same_members_is_a_difference(
    make: Callable[..., Path], files: dict[str, bytes], tmp_path: Path
) -> None:
    turned = dict(reversed(files.items()))
    one, other = make(tmp_path / "a", files), make(tmp_path / "b", turned)
    (found,) = release.differences(one, other)
    assert "another order" in found


def test_ten_differences_are_named_and_the_rest_is_counted(tmp_path: Path) -> None:
    many = {f"{n:02}": b"" for n in range(25)}
    one, other = sdist(tmp_path / "a", {}), sdist(tmp_path / "b", many)
    *named, rest = release.differences(one, other)
    assert len(named) == 10
    assert rest == f"{one.name}: 15 more differ"


@make_one
def test_an_archive_that_holds_what_it_should_has_no_problem(
    make: Callable[..., Path], files: dict[str, bytes], tmp_path: Path
) -> None:
    assert [*release.content_problems(make(tmp_path, files), PROJECT, b"MIT")] == []


@make_one
def test_what_an_archive_lacks_or_says_otherwise_is_named(
    make: Callable[..., Path], files: dict[str, bytes], tmp_path: Path
) -> None:
    kept = {name: content for name, content in files.items() if "py.typed" not in name}
    path = make(tmp_path, kept)
    other = {**PROJECT, "requires-python": ">=3.12"}
    python, licence, typed = sorted(release.content_problems(path, other, b"other"))
    assert "Requires-Python is '>=3.11', and pyproject.toml says '>=3.12'" in python
    assert licence.endswith("LICENSE is not the LICENSE of the repository")
    assert typed.endswith("flow_new/py.typed is missing")


def test_a_fragment_that_is_as_it_should_be_has_no_problem(package: Path) -> None:
    assert [*release.fragment_problems(package), *release.version_problems(package)] == []


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("first.added.md", b"Text.", "a fragment has a name such as +some-words.added.md"),
        ("+first.added.txt", b"Text.", "a fragment has a name such as +some-words.added.md"),
        ("+first.new.md", b"Text.", "there is no kind 'new'; the kinds are added, fixed"),
        ("+empty.fixed.md", b"\n", "a fragment is a sentence, and ends with a full stop"),
        ("+title.fixed.md", b"A title", "a fragment is a sentence, and ends with a full stop"),
        ("+latin.fixed.md", b"caf\xe9.", "'utf-8' codec can't decode"),
    ],
)
def test_a_malformed_fragment_is_named(package: Path, name: str, content: bytes, said: str) -> None:
    (package / "changelog.d" / name).write_bytes(content)
    (found,) = release.fragment_problems(package)
    assert found.startswith(f"flow-new/changelog.d/{name}: {said}")


def test_a_new_version_needs_a_fragment(package: Path) -> None:
    (package / "changelog.d" / "+first.added.md").rename(package / "changelog.d" / ".gitkeep")
    (found,) = release.version_problems(package)
    assert found == "flow-new: changelog.d has no fragment for 0.2.0"


def test_a_version_with_notes_has_no_fragment_left(package: Path) -> None:
    with (package / "CHANGELOG.md").open("a") as notes:
        notes.write("\n## 0.2.0 (2026-12-02)\n")
    (found,) = release.version_problems(package)
    assert found == "flow-new: CHANGELOG.md has 0.2.0 already; raise the version"
    (package / "changelog.d" / "+first.added.md").unlink()
    assert [*release.version_problems(package)] == []


def test_a_fragment_that_the_notes_lack_is_named(package: Path) -> None:
    assert [*release.missing_notes(package, "## 0.2.0\n\n- `first`\n  is new.\n")] == []
    (found,) = release.missing_notes(package, "## 0.2.0\n")
    assert found.startswith("flow-new/changelog.d/+first.added.md: ")


def test_a_step_names_the_package_whose_command_has_failed() -> None:
    def step(package: str) -> list[str]:
        release.run(sys.executable, "-c", f"print('said'); raise SystemExit({package == 'bad'})")
        return []

    (found,) = release.problems(step, ["good", "bad"])
    assert found.startswith("bad: ")
    assert found.endswith("\nsaid")


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_the_fragments_of_each_package_are_as_they_should_be(package: Path) -> None:
    assert [*release.fragment_problems(package)] == []


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_a_package_announces_the_pythons_that_it_is_tested_on(package: Path) -> None:
    support = (ROOT / "docs" / "support.md").read_text("utf-8")
    tested = re.findall(r"^\| (3\.\d+) \|", support, re.MULTILINE)
    announced = "\n".join(release.project(package)["classifiers"])
    assert (
        re.findall(r"^Programming Language :: Python :: (3\.\d+)$", announced, re.MULTILINE)
        == tested
    )
    assert release.project(package)["requires-python"] == f">={tested[0]}"
    assert "Operating System :: POSIX :: Linux" in announced
    assert ("Free Threading" in announced) == (package.name != "flow-spark")
