"""`nox -s changed` runs the tests that concern what has changed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parent / "changed.py"


def _load() -> Any:  # Any: a script, not a module of a package
    spec = importlib.util.spec_from_file_location("changed_script", SCRIPT)
    if spec is None or spec.loader is None:
        raise ImportError("tests/changed.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


changed = _load()
OPS = "packages/flow-ops/src/flow_ops"
FILES = {
    f"{OPS}/__init__.py": '__all__ = ["debounce", "merge", "merge_map"]',
    f"{OPS}/time/debounce.py": '__all__ = ["debounce"]',
    f"{OPS}/combine/merge.py": '__all__ = ["Merging", "merge", "merge_map"]',
    f"{OPS}/time/_timed.py": '__all__ = ["Timed"]',
    "packages/flow-ops/tests/time/test_debounce.py": "",
    "packages/flow-ops/tests/time/helpers.py": "",
    "packages/flow-core/src/flow_core/__init__.py": '__all__ = ["just"]',
    "packages/flow-core/src/flow_core/sources.py": '__all__ = ["just"]',
    "packages/flow-spark/src/flow_spark/__init__.py": '__all__ = ["write"]',
    "packages/flow-spark/src/flow_spark/_spool.py": "",
    "docs/testing.md": "",
    "tests/test_flights.py": "",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def selected(tree: Path, *paths: str) -> list[list[str]]:
    """The runs for some changed files, without the options and the checks that each ends with."""
    *runs, last = changed.selections(tree, paths)
    assert last[-len(changed.ALWAYS) :] == changed.ALWAYS
    rest = last[: -len(changed.ALWAYS)]
    told = [[a for a in run if a not in changed.FILE_BY_FILE] for run in runs]
    return [*told, rest] if rest else told


def test_for_an_operator_all_tests_that_name_it_run(tree: Path) -> None:
    wanted = [["packages/flow-ops/tests", "-k", "debounce"]]
    assert selected(tree, f"{OPS}/time/debounce.py") == wanted


def test_a_name_of_several_words_is_looked_for_in_names_of_classes_too(tree: Path) -> None:
    (run,) = selected(tree, f"{OPS}/combine/merge.py")
    assert run[-1] == "merge or merge_map or mergemap"


def test_operators_of_several_modules_are_one_run(tree: Path) -> None:
    (run,) = selected(tree, f"{OPS}/combine/merge.py", f"{OPS}/time/debounce.py")
    assert run[-1] == "debounce or merge or merge_map or mergemap"


@pytest.mark.parametrize("module", ["time/_timed.py", "__init__.py", "time/gone.py"])
def test_for_what_operators_are_made_of_the_package_runs(tree: Path, module: str) -> None:
    wanted = [["packages/flow-ops/tests", "--quick"]]
    assert selected(tree, f"{OPS}/{module}", f"{OPS}/time/debounce.py") == wanted


def test_for_the_engine_what_is_built_on_it_runs_too(tree: Path) -> None:
    plain = ["--quick", "-m", "not tck and not interleave"]
    assert selected(tree, "packages/flow-core/src/flow_core/sources.py") == [
        ["packages/flow-core/tests", "--quick"],
        ["packages/flow-ops/tests", *plain],
        ["packages/flow-multicast/tests", *plain],
    ]


def test_tests_of_a_package_on_spark_are_not_spread_over_virtual_machines(tree: Path) -> None:
    run, _ = changed.selections(tree, ["packages/flow-spark/src/flow_spark/_spool.py"])
    assert run == [*changed.FILE_BY_FILE, "packages/flow-spark/tests", "--quick"]


def test_a_changed_test_runs_and_a_helper_runs_its_folder(tree: Path) -> None:
    tests = "packages/flow-ops/tests/time"
    assert selected(tree, f"{tests}/test_debounce.py") == [[f"{tests}/test_debounce.py"]]
    assert selected(tree, f"{tests}/helpers.py") == [[tests]]
    assert selected(tree, f"{tests}/test_gone.py") == []


def test_pages_run_and_other_files_ask_for_nothing(tree: Path) -> None:
    notes = "packages/flow-ops/changelog.d/+x.added.md"
    changes = ["docs/testing.md", "tests/test_flights.py", notes, "noxfile.py", "docs/gone.md"]
    assert selected(tree, *changes) == [["docs/testing.md", "tests/test_flights.py"]]


def test_files_that_are_new_or_not_committed_have_changed(tree: Path) -> None:
    def git(*arguments: str) -> None:
        who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
        subprocess.run(["git", *who, *arguments], cwd=tree, check=True, capture_output=True)

    git("init")
    git("add", ".")
    git("commit", "-m", "all")
    assert changed.changed(tree, "HEAD") == []
    (tree / "docs" / "testing.md").write_text("# Testing")
    (tree / "docs" / "new.md").write_text("# New")
    assert changed.changed(tree, "HEAD") == ["docs/new.md", "docs/testing.md"]


def test_a_commit_that_git_does_not_know_is_named(tree: Path) -> None:
    subprocess.run(["git", "init"], cwd=tree, check=True, capture_output=True)
    with pytest.raises(SystemExit, match=r"git cannot compare with nowhere: .*nowhere"):
        changed.changed(tree, "nowhere")


def test_every_operator_of_the_packages_is_found_in_its_module() -> None:
    for package in ("flow-ops", "flow-multicast"):
        folder = changed.ROOT / "packages" / package / "src" / package.replace("-", "_")
        modules = [path for path in folder.rglob("*.py") if path.name != "__init__.py"]
        found = {
            name for path in modules for name in changed.operators_of(changed.ROOT, package, path)
        }
        core = changed.ROOT / "packages" / "flow-core" / "src" / "flow_core"
        types = [core / f"{name}.py" for name in ("backoff", "connectable", "results")]
        of_the_core = {name for path in types for name in changed.exported(path)}
        assert changed.exported(folder / "__init__.py") - of_the_core <= found
