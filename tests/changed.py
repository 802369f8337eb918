"""Run the tests that concern what has changed; `nox -s changed` calls this.

python tests/changed.py             what is not committed yet
python tests/changed.py main        what differs from the commit, branch or tag
python tests/changed.py --show      only print what would run

A changed test file runs whole. For the module of an operator, all tests that name the operator run,
its rules and explorations with them. For any other module, the quick tier of its package runs; and
for one of flow-core, the plain tests of the packages that are built on it run, too. Last come the
checks that a new or renamed operator breaks first: the pages of docs, and the architecture.
"""

from __future__ import annotations

import argparse
import ast
import shlex
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
ENGINE: Final = "flow-core"
KIT: Final = "flow-testing"
BESIDE: Final = ("flow-ops", "flow-multicast")  # what is built on the engine, and needs no Spark
ALWAYS: Final = [f"tests/test_{name}.py" for name in ("architecture", "docs")]
PARALLEL: Final = ["--numprocesses=auto"]
FILE_BY_FILE: Final = [*PARALLEL, "--dist=loadfile", "--no-loadscope-reorder"]  # those on Spark


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("ref", nargs="?", default="HEAD", help="what to compare with (HEAD)")
    parser.add_argument("--show", action="store_true", help="print the commands, run nothing")
    options = parser.parse_args()
    paths = changed(ROOT, options.ref)
    if not paths:
        print(f"Nothing differs from {options.ref}; name another commit to compare with.")
        return 0
    status = 0
    for arguments in selections(ROOT, paths):
        print("+ pytest", shlex.join(arguments), flush=True)
        if not options.show:
            command = [sys.executable, "-m", "pytest", *arguments]
            code = subprocess.run(command, cwd=ROOT, check=False).returncode
            if code == pytest_found_nothing():
                code = 0
            status = status or code
    return status


def pytest_found_nothing() -> int:
    """Return the exit code of pytest for a selection without tests."""
    import pytest

    return int(pytest.ExitCode.NO_TESTS_COLLECTED)


def changed(root: Path, ref: str) -> list[str]:
    """Return the files below a folder that differ from a commit, and new ones.

    Raises:
        SystemExit: if git knows no such commit.
    """
    diff = ("git", "diff", "--name-only", "--relative", ref, "--")
    new = ("git", "ls-files", "--others", "--exclude-standard")
    found: set[str] = set()
    for command in (diff, new):
        ran = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise SystemExit(f"git cannot compare with {ref}: {ran.stderr.strip()}")
        found.update(ran.stdout.splitlines())
    return sorted(found)


def selections(root: Path, paths: Iterable[str]) -> list[list[str]]:
    """Return the arguments of pytest for each of its runs.

    Args:
        root: the folder with the packages.
        paths: the changed files, relative to it.
    """
    tests: dict[str, list[str]] = {}  # by package: changed test files
    names: dict[str, set[str]] = {}  # by package: operators
    whole: set[str] = set()  # packages
    pages: list[str] = []
    for path in map(Path, paths):
        match path.parts:
            case ("packages", package, "tests", *_) if path.suffix == ".py":
                # What is not a test may concern any of its neighbours.
                chosen = path if path.name.startswith("test_") else path.parent
                if (root / chosen).exists():
                    tests.setdefault(package, []).append(chosen.as_posix())
            case ("packages", package, "src", *_) if path.suffix == ".py":
                operators = operators_of(root, package, path)
                if operators and package not in {ENGINE, KIT}:
                    names.setdefault(package, set()).update(operators)
                else:
                    whole.add(package)
            case ("tests", *_) if path.name.startswith("test_") and (root / path).exists():
                pages.append(path.as_posix())
            case _ if path.suffix == ".md" and "changelog.d" not in path.parts:
                if (root / path).exists():
                    pages.append(path.as_posix())
            case _:
                pass
    runs: dict[str, list[list[str]]] = {}  # by package
    for package in sorted(tests.keys() - whole):
        runs.setdefault(package, []).append(tests[package])
    for package in sorted(names.keys() - whole):
        named = [f"packages/{package}/tests", "-k", keywords(names[package])]
        runs.setdefault(package, []).append(named)
    for package in sorted(whole):
        runs[package] = [[f"packages/{package}/tests", "--quick"]]
    if ENGINE in whole:
        for package in BESIDE:
            plain = [f"packages/{package}/tests", "--quick", "-m", "not tck and not interleave"]
            runs.setdefault(package, [plain])
    found = [
        [*(FILE_BY_FILE if package == "flow-spark" else PARALLEL), *arguments]
        for package, each in runs.items()
        for arguments in each
    ]
    return [*found, list(dict.fromkeys([*pages, *ALWAYS]))]


def operators_of(root: Path, package: str, path: Path) -> set[str]:
    """Return what a module exports, if the package exports it, too: its operators."""
    top = root / "packages" / package / "src" / package.replace("-", "_") / "__init__.py"
    if not (root / path).exists() or not top.exists() or path.name == "__init__.py":
        return set()
    return exported(root / path) & exported(top)


def exported(path: Path) -> set[str]:
    """Return the names in the `__all__` of a file."""
    for node in ast.parse(path.read_text("utf-8")).body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                return {name for name in ast.literal_eval(value) if isinstance(name, str)}
            case _:
                pass
    return set()


def keywords(names: set[str]) -> str:
    """Return an expression for what names an operator: in a function, an id, or a class."""
    forms = {form for name in names for form in (name, name.replace("_", ""))}
    return " or ".join(sorted(forms))


if __name__ == "__main__":
    raise SystemExit(main())
