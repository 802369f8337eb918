"""Build the files of a release twice, and check them; `nox -s release_check` calls this.

    python tools/release.py FOLDER    leave sdists and wheels in FOLDER, if nothing is wrong

It takes the last commit, and nothing that is not committed. For each package:

* the fragments have names and texts that fit, and towncrier makes notes of all of them;
* sdist and wheel, built again from a copy in another folder, with another umask, other times of
  files and another time zone, are the same bytes, and so is a wheel that is built from the sdist;
* twine finds nothing in the metadata, which says what pyproject.toml says; LICENSE is in both
  files, and py.typed in the wheel;
* in an environment with nothing else, the package is installed from these wheels, and from the
  index what others publish. It is imported and used, alone and then beside flow-cli.

It stops after the first of these steps that finds something, and prints all that the step has
found, each with the name of the file or of the package.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesParser
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent
COMMAND: Final = "flow-cli"
"""The package of the `flow` command, which looks at the plugins of the others."""

FRAGMENT: Final = re.compile(r"\+[a-z0-9-]+\.([a-z]+)\.md")
"""The name of a file in changelog.d; the group is its kind."""

ELSEWHERE: Final = MappingProxyType({"TZ": "Pacific/Kiritimati", "PYTHONHASHSEED": "7"})
"""Variables of the second build."""

A_DAY: Final = 86_400
"""By how many seconds the files of the second copy are older."""

SHOWN: Final = 10
"""The most members of an archive to name."""

CORE: Final = "import flow_core; assert list(flow_core.range(3).map(str)) == ['0', '1', '2']"
USES: Final = MappingProxyType(
    {
        "flow-multicast": """
import flow_core
numbers, seen = flow_core.range(2).publish(), []
numbers.flow.subscribe(seen.append)
numbers.flow.map(str).subscribe(seen.append)
numbers.connect()
assert seen == [0, "0", 1, "1"]
""",
        "flow-ops": """
import flow_core
assert sorted(flow_core.range(3).delay(0.01).merge(flow_core.just(7))) == [0, 1, 2, 7]
""",
        "flow-rxcompat": """
from flow_rxcompat.signals import Dispatcher
door, heard = Dispatcher(), []
with door.register(lambda: heard.append("ding"), on_complete=lambda: heard.append("closed")):
    door.update()
    door.complete()
assert heard == ["ding", "closed"]
""",
        "flow-spark": """
import flow_core
assert "on_spark" in repr(flow_core.range(3).on_spark(None))  # the sessions of Spark run it
""",
        "flow-testing": """
import flow_core
from flow_testing import observe
observe(flow_core.range(3).map(str)).assert_result("0", "1", "2")
""",
    }
)
"""Short programs, by the package that they need; the others run `CORE`."""

EXTRAS: Final = MappingProxyType({"flow-rxcompat": "[rx]"})
"""Extras of packages, for what their plugins name and `flow plugins --check` loads."""

JOBS: Final = "import flow_core\n\nnumbers = flow_core.range(3)\n"
"""A file that `flow run` is given."""


class CommandError(Exception):
    """The error for a command that fails; it says which, and what the command printed."""


class Member(NamedTuple):
    """A file in an archive."""

    content: bytes
    mode: int
    time: object


def run(*command: str | Path, **options: Any) -> str:
    """Return the output of a command.

    Raises:
        CommandError: if it fails.
    """
    options = {"cwd": ROOT, "stderr": subprocess.STDOUT, "stdout": subprocess.PIPE, **options}
    options["env"] = {**os.environ, **options.get("env", {})}
    done = subprocess.run(list(map(str, command)), text=True, check=False, **options)
    if done.returncode:
        raise CommandError(f"{shlex.join(map(str, command))}\n{done.stdout.rstrip()}")
    return str(done.stdout)


def settings(package: Path) -> dict[str, Any]:
    """Return what the pyproject.toml of a package says."""
    return tomllib.loads((package / "pyproject.toml").read_text("utf-8"))


def project(package: Path) -> dict[str, Any]:
    """Return the table `project` of a package."""
    return dict(settings(package)["project"])


# --- Notes --------------------------------------------------------------------------------------


def fragments(package: Path) -> list[Path]:
    """Return the files in changelog.d, but for the hidden one that keeps the folder in git."""
    return sorted(package.glob("changelog.d/[!.]*"))


def version_problems(package: Path) -> Iterator[str]:
    """Check that a version has either fragments or, once it is released, notes in CHANGELOG.md."""
    version, found = project(package)["version"], fragments(package)
    notes = (package / "CHANGELOG.md").read_text("utf-8")
    has_notes = re.search(rf"^## {re.escape(version)} ", notes, re.MULTILINE) is not None
    if has_notes and found:
        yield f"{package.name}: CHANGELOG.md has {version} already; raise the version"
    if not has_notes and not found:
        yield f"{package.name}: changelog.d has no fragment for {version}"


def fragment_problems(package: Path) -> Iterator[str]:
    """Find fragments of which towncrier would make nothing, or nothing that one can read."""
    kinds = settings(package)["tool"]["towncrier"]["fragment"]
    for path in fragments(package):
        where = f"{package.name}/changelog.d/{path.name}"
        name = FRAGMENT.fullmatch(path.name)
        if name is None:
            yield f"{where}: a fragment has a name such as +some-words.added.md"
        elif name[1] not in kinds:
            yield f"{where}: there is no kind {name[1]!r}; the kinds are {', '.join(kinds)}"
        try:
            text = path.read_text("utf-8").strip()
        except UnicodeDecodeError as error:
            yield f"{where}: {error}"
            continue
        if not text.endswith("."):
            yield f"{where}: a fragment is a sentence, and ends with a full stop"


def missing_notes(package: Path, draft: str) -> Iterator[str]:
    """Find fragments that are not in the notes that towncrier has drafted."""
    words = " ".join(draft.split())
    for path in fragments(package):
        if " ".join(path.read_text("utf-8").split()) not in words:
            yield f"{package.name}/changelog.d/{path.name}: not in the notes that towncrier makes"


# --- Archives -----------------------------------------------------------------------------------


def members(archive: Path) -> dict[str, Member]:
    """Return the files in a wheel or an sdist by name, in their order."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return {
                each.filename: Member(wheel.read(each), each.external_attr >> 16, each.date_time)
                for each in wheel.infolist()
            }
    with tarfile.open(archive) as sdist:
        return {
            each.name: Member(content.read(), each.mode, (each.mtime, each.uid, each.gid))
            for each in sdist
            if (content := sdist.extractfile(each)) is not None
        }


def differences(one: Path, other: Path) -> Iterator[str]:
    """Find the members in which two archives differ, or nothing if they are the same bytes."""
    if one.read_bytes() == other.read_bytes():
        return
    first, second = members(one), members(other)
    found = [f"{name} is in one of them only" for name in sorted(first.keys() ^ second.keys())]
    for name in first.keys() & second.keys():
        mine, its = first[name], second[name]
        parts = zip(Member._fields, mine, its, strict=True)
        if differing := [part for part, here, there in parts if here != there]:
            found.append(f"{name} differs in {' and '.join(differing)}")
    found = sorted(found) or ["the same members, in another order or otherwise packed"]
    yield from (f"{one.name}: {each}" for each in found[:SHOWN])
    if len(found) > SHOWN:
        yield f"{one.name}: {len(found) - SHOWN} more differ"


def metadata(archive: Path) -> Message:
    """Return the metadata of a wheel or an sdist."""
    name = "METADATA" if archive.suffix == ".whl" else "PKG-INFO"
    (path,) = (path for path in members(archive) if re.fullmatch(rf"[^/]+/{name}", path))
    return BytesParser().parsebytes(members(archive)[path].content)


def content_problems(archive: Path, table: Mapping[str, Any], licence: bytes) -> Iterator[str]:
    """Find what is missing in a wheel or an sdist, or is not what its pyproject.toml says."""
    said, found = metadata(archive), members(archive)
    expected = {
        "Name": table["name"],
        "Version": table["version"],
        "Requires-Python": table["requires-python"],
        "License-Expression": table["license"],
        "License-File": "LICENSE",
    }
    for field, value in expected.items():
        if said[field] != value:
            yield f"{archive.name}: {field} is {said[field]!r}, and pyproject.toml says {value!r}"
    module = table["name"].replace("-", "_")
    stem = f"{module}-{table['version']}"
    if archive.suffix == ".whl":
        paths = {"LICENSE": f"{stem}.dist-info/licenses/LICENSE", "py.typed": f"{module}/py.typed"}
    else:
        paths = {"LICENSE": f"{stem}/LICENSE", "py.typed": f"{stem}/src/{module}/py.typed"}
    for name, path in paths.items():
        if path not in found:
            yield f"{archive.name}: {path} is missing"
        elif name == "LICENSE" and found[path].content != licence:
            yield f"{archive.name}: {path} is not the LICENSE of the repository"


# --- Steps --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Release:
    """The steps, each of which finds the problems of one package.

    Args:
        uv: the program that builds and installs.
        find_links: a folder with wheels that the index does not have, if there are any.
        folder: an empty folder to work in.
    """

    uv: str
    find_links: str | None
    folder: Path

    @property
    def first(self) -> Path:
        """The folder of the first copy."""
        return self.folder / "tree"

    @property
    def second(self) -> Path:
        """The folder of the second copy, in another depth."""
        return self.folder / "another" / "folder"

    @property
    def built(self) -> Path:
        """The folder of the sdists and wheels of the first copy."""
        return self.folder / "built"

    def copy(self) -> None:
        """Copy the last commit twice: the second time with older files, for their owner alone."""
        archive = self.folder / "commit.tar"
        run("git", "archive", f"--output={archive}", "HEAD")
        for tree in (self.first, self.second):
            with tarfile.open(archive) as tar:
                tar.extractall(tree, filter="data")
        for path in (self.second, *self.second.rglob("*")):
            path.chmod(0o700 if path.is_dir() else 0o600)
            os.utime(path, (path.stat().st_mtime - A_DAY,) * 2)

    def notes(self, package: str) -> Iterator[str]:
        """Check the fragments, and the notes that towncrier makes of them."""
        source = self.first / "packages" / package
        found = [*version_problems(source), *fragment_problems(source)]
        yield from found
        if not found and fragments(source):
            options = (f"--config={source / 'pyproject.toml'}", f"--name={package}")
            version = f"--version={project(source)['version']}"
            draft = (sys.executable, "-m", "towncrier", "build", "--draft", *options, version)
            yield from missing_notes(source, run(*draft))

    def builds(self, package: str) -> Iterator[str]:
        """Build three times, the last time from the sdist, compare, and look what is in there."""
        again, unpacked = self.folder / "again", self.folder / "from sdists"
        source = self.first / "packages" / package
        mine = self.folder / "mine" / package
        self.build(source, mine, "--sdist", "--wheel")
        elsewhere = {"env": ELSEWHERE, "umask": 0o077}
        self.build(self.second / "packages" / package, again, "--sdist", "--wheel", **elsewhere)
        (sdist,), (wheel,) = mine.glob("*.tar.gz"), mine.glob("*.whl")
        self.build(sdist, unpacked, "--wheel")
        for path in (sdist, wheel):
            yield from (f"built twice: {each}" for each in differences(path, again / path.name))
            licence = (self.first / "LICENSE").read_bytes()
            yield from content_problems(path, project(source), licence)
            shutil.copy(path, self.built)
        yield from (f"from the sdist: {each}" for each in differences(wheel, unpacked / wheel.name))

    def metadata(self, package: str) -> Iterator[str]:
        """Check with twine that an index would take both files, and show their README."""
        files = sorted(self.built.glob(f"{package.replace('-', '_')}-*"))
        run(sys.executable, "-m", "twine", "--no-color", "check", "--strict", *files)
        yield from ()

    def uses(self, package: str) -> Iterator[str]:
        """Install from the wheels in an environment with nothing else, and use what is there."""
        place = self.folder / "environments" / package
        run(self.uv, "venv", f"--python={sys.executable}", place)
        programs = place / ("Scripts" if os.name == "nt" else "bin")
        (place / "jobs.py").write_text(JOBS)
        python = (programs / "python", "-I")
        self.install(place, package, extras=False)
        run(*python, "-W", "error", "-c", f"import {package.replace('-', '_')}", cwd=place)
        run(*python, "-c", USES.get(package, CORE), cwd=place)
        self.install(place, package, COMMAND)
        run(programs / "flow", "plugins", "--check", cwd=place)
        printed = run(programs / "flow", "run", "jobs.py:numbers", cwd=place).split()
        if printed != ["0", "1", "2"]:
            yield f"{package}: flow run has printed {' '.join(printed)!r} for 0, 1 and 2"

    def build(self, source: Path, into: Path, *kinds: str, **options: Any) -> None:
        """Build distributions of a folder or an sdist; `kinds` are options, as ``--wheel``."""
        build = (self.uv, "build", *kinds, f"--python={sys.executable}")
        run(*build, f"--out-dir={into}", source, **options)

    def install(self, place: Path, *packages: str, extras: bool = True) -> None:
        """Install packages and what they need, and check that all versions fit."""
        wheels = {path.name.partition("-")[0]: path.as_uri() for path in self.built.glob("*.whl")}
        names = {module.replace("_", "-"): wheel for module, wheel in wheels.items()}
        # No sibling comes from an index, where a stranger may have taken the name.
        constraints = place / "constraints.txt"
        constraints.write_text("".join(f"{name} @ {wheel}\n" for name, wheel in names.items()))
        options = [f"--python={place}", f"--constraint={constraints}"]
        options += [] if self.find_links is None else [f"--find-links={self.find_links}"]
        wanted = ((name, EXTRAS.get(name, "") if extras else "") for name in packages)
        needed = [f"{name}{extra} @ {names[name]}" for name, extra in wanted]
        run(self.uv, "pip", "install", *options, *needed)
        run(self.uv, "pip", "check", f"--python={place}")


def problems(step: Callable[[str], Iterator[str]], packages: Sequence[str]) -> list[str]:
    """Return what a step finds in all packages, of which each core has one at a time."""

    def of(package: str) -> list[str]:
        try:
            return list(step(package))
        except CommandError as error:
            return [f"{package}: {error}"]

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return [problem for found in pool.map(of, packages) for problem in found]


def main(arguments: Sequence[str] | None = None) -> int:
    """Take the steps, and leave the files; return 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="receives the sdists and wheels")
    parser.add_argument("--uv", default="uv", help="the path of uv (uv)")
    parser.add_argument("--find-links", help="a folder with wheels that the index does not have")
    options = parser.parse_args(arguments)
    if changed := run("git", "status", "--porcelain").rstrip():
        print(f"Not committed, so not in what is built:\n{changed}")
    os.environ["SOURCE_DATE_EPOCH"] = run("git", "log", "-1", "--format=%ct").strip()
    os.environ.pop("PYTHONPATH", None)
    with tempfile.TemporaryDirectory(prefix="flow-release-") as folder:
        release = Release(options.uv, options.find_links, Path(folder))
        release.copy()
        release.built.mkdir()
        sources = sorted(path.parent for path in release.first.glob("packages/*/pyproject.toml"))
        steps = {
            "notes of towncrier": release.notes,
            "sdists and wheels, built again and compared": release.builds,
            "metadata": release.metadata,
            "packages, installed and used": release.uses,
        }
        for title, step in steps.items():
            begun = time.monotonic()
            found = problems(step, [source.name for source in sources])
            verdict = f"{len(found)} wrong" if found else "fine"
            print(f"{title}: {verdict}, {time.monotonic() - begun:.0f} s")
            print(*found, sep="\n", end="\n" if found else "", flush=True)
            if found:
                return 1
        shutil.rmtree(options.folder, ignore_errors=True)
        shutil.copytree(release.built, options.folder)
        if bare := [source.name for source in sources if "urls" not in project(source)]:
            print(f"No [project.urls] yet, as the project has no address: {', '.join(bare)}")
    print(f"The files are in {options.folder}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
