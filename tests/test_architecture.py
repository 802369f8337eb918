"""The shape of the repository: which way imports point, and what every package has."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = sorted(path.parent for path in ROOT.glob("packages/*/pyproject.toml"))
IMPORT_NAMES = {package.name.replace("-", "_") for package in PACKAGES}

each_package = pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)


class Import(NamedTuple):
    """One imported name: the dotted path, the place, and whether it is for type checkers only."""

    path: str
    where: str
    for_checkers: bool

    @property
    def parts(self) -> list[str]:
        return self.path.split(".")


def project(package: Path) -> dict[str, Any]:
    text = (package / "pyproject.toml").read_text("utf-8")
    table: dict[str, Any] = tomllib.loads(text)["project"]
    return table


def source(package: Path) -> Path:
    return package / "src" / package.name.replace("-", "_")


@cache
def imports_of(file: Path, source_root: Path) -> list[Import]:
    """Return every name that a file imports, wherever the statement stands, as an absolute path."""
    found: list[Import] = []
    module = file.relative_to(source_root).with_suffix("").parts
    tree = ast.parse(file.read_text("utf-8"), str(file))
    guarded = set(for_checkers(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            anchor = module[: len(module) - node.level] if node.level else ()
            base = [*anchor, *filter(None, [node.module])]
            names = [".".join([*base, alias.name]) for alias in node.names]
        else:
            continue
        where = f"{file.relative_to(ROOT)}:{node.lineno}"
        found += [Import(name, where, node in guarded) for name in names]
    return found


def for_checkers(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield what stands below ``if TYPE_CHECKING``."""
    for node in ast.walk(tree):
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=body):
                yield from chain.from_iterable(map(ast.walk, body))
            case _:
                pass


def imports_in(package: Path) -> list[Import]:
    files = sorted(source(package).rglob("*.py"))
    assert files, f"{source(package)} holds no Python"
    return [found for file in files for found in imports_of(file, package / "src")]


def siblings_imported(package: Path) -> list[Import]:
    others = IMPORT_NAMES - {source(package).name}
    return [found for found in imports_in(package) if found.parts[0] in others]


def trees(package: Path, word: str) -> Iterator[tuple[Path, ast.Module]]:
    """Yield each file of a package that has `word` in it, with its syntax tree."""
    for file in sorted(source(package).rglob("*.py")):
        text = file.read_text("utf-8")
        if word in text:
            yield file, ast.parse(text)


def names_in(nodes: Iterable[ast.AST]) -> set[str]:
    """The names in some expressions, with those of their parts."""
    return {part.id for node in nodes for part in ast.walk(node) if isinstance(part, ast.Name)}


@each_package
def test_a_package_imports_only_the_siblings_that_it_declares(package: Path) -> None:
    declared = {
        re.split(r"[^\w-]", requirement, maxsplit=1)[0].replace("-", "_")
        for requirement in chain(
            project(package)["dependencies"],
            *project(package).get("optional-dependencies", {}).values(),
        )
    }
    assert [found for found in siblings_imported(package) if found.parts[0] not in declared] == []


@each_package
def test_a_package_imports_only_what_is_public_in_its_siblings(package: Path) -> None:
    private = [
        found
        for found in siblings_imported(package)
        if any(re.match(r"_(?!_)", part) for part in found.parts)
    ]
    assert private == []


BELOW = {"flow_core.sources.files", "flow_core.surface"}
"""Modules that are public in a package of the core, and not exports of it."""


@each_package
def test_a_package_imports_packages_of_the_core_and_not_the_modules_below(package: Path) -> None:
    core = source(ROOT / "packages" / "flow-core")
    packages = {folder.parent.name for folder in core.glob("*/__init__.py")}
    below = [
        found
        for found in siblings_imported(package)
        if len(found.parts) > 3 and found.parts[0] == "flow_core" and found.parts[1] in packages
    ]
    assert [each for each in below if not each.path.startswith(tuple(BELOW))] == []


def test_the_core_imports_no_sibling() -> None:
    assert siblings_imported(ROOT / "packages" / "flow-core") == []


@each_package
def test_imports_form_no_circle_not_even_those_within_functions(package: Path) -> None:
    """A module imports the packages that hold it, too; of those only the names are checked here."""
    modules = {module_of(file, package): file for file in source(package).rglob("*.py")}
    arrows = {
        name: {
            known
            for found in imports_of(file, package / "src")
            for known in held_by(found.path, modules)
            if not found.for_checkers and known != name and not name.startswith(f"{known}.")
        }
        for name, file in modules.items()
    }
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


def module_of(file: Path, package: Path) -> str:
    parts = file.relative_to(package / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def held_by(path: str, modules: Iterable[str]) -> Iterator[str]:
    """Yield the module that a dotted path names, or a name in, and the packages that hold it."""
    while path and path not in modules:
        path = path.rpartition(".")[0]
    while "." in path:
        yield path
        path = path.rpartition(".")[0]


def test_the_protocols_import_nothing_of_the_core_but_where_subscribers_are_at_home() -> None:
    core = source(ROOT / "packages" / "flow-core")
    files = [
        core / "homes.py",
        *core.glob("protocols.py"),
        *core.glob("protocols/**/*.py"),
    ]
    assert len(files) > 1, "flow_core.protocols is gone"
    inward = [
        found
        for file in files
        for found in imports_of(file, core.parent)
        if found.parts[0] == "flow_core" and found.parts[1] not in {"homes", "late", "protocols"}
    ]
    assert inward == []


@each_package
def test_a_package_has_types_licence_readme_changelog_tests_and_version(package: Path) -> None:
    needed = ["LICENSE", "README.md", "CHANGELOG.md"]
    assert [name for name in needed if not (package / name).read_text("utf-8").strip()] == []
    assert (source(package) / "py.typed").is_file()
    assert list(package.glob("tests/**/test_*.py"))
    assert list(package.glob("typing_tests/*.py"))
    assert re.fullmatch(r"\d+\.\d+\.\d+", project(package)["version"])
    assert (package / "LICENSE").read_text("utf-8") == (ROOT / "LICENSE").read_text("utf-8")


@each_package
def test_a_package_registers_one_plugin_module_that_exists(package: Path) -> None:
    plugins = project(package)["entry-points"].get("flow", {})
    assert len(plugins) == (package.name != "flow-testing")
    for module in plugins.values():
        path = package.joinpath("src", *module.split("."))
        assert path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


TAKERS = {
    "flow-core/serial",
    "flow-core/sources/_emitter",
    "flow-core/stages/_pulled",
    "flow-multicast/processors/_hot",
    "flow-multicast/processors/multicast",
    "flow-ops/combine/zip",
    "flow-ops/coordination/coordinator",
    "flow-ops/group/_unicast",
    "flow-ops/transform/_flat",
}
"""Modules that name a permit, to save a call per item; others use `Exclusive`, `SerialDrain`."""


def test_few_take_a_permit_and_none_by_a_call_after_which_a_signal_may_come() -> None:
    """`del` takes it without a call: Ctrl-C finds no place between that and the `try` behind it."""
    takers: set[str] = set()
    popped: list[str] = []
    for package in PACKAGES:
        for file, tree in trees(package, "permit"):
            place = file.relative_to(source(package)).with_suffix("").as_posix()
            for node in ast.walk(tree):
                if isinstance(node, ast.Attribute) and node.attr == "_permit":
                    takers.add(f"{package.name}/{place}")
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    holder = ast.unparse(node.func.value)
                    if node.func.attr == "pop" and holder.endswith("permit"):
                        popped.append(f"{file.relative_to(ROOT)}:{node.lineno}")
    assert takers == TAKERS
    assert popped == []


def test_a_protocol_that_extends_one_for_isinstance_is_one_itself() -> None:
    trees_of_all = chain.from_iterable(trees(package, "Protocol") for package in PACKAGES)
    nodes = [node for _, tree in trees_of_all for node in ast.walk(tree)]
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    bases = {node.name: names_in(node.bases) for node in classes}
    checked = {
        node.name for node in classes if "runtime_checkable" in names_in(node.decorator_list)
    }
    extending = {name for name in bases if "Protocol" in bases[name] and bases[name] & checked}
    assert extending
    assert extending <= checked


def test_no_file_of_the_core_that_is_written_by_hand_is_long() -> None:
    core = source(ROOT / "packages" / "flow-core")
    files = [file for file in core.rglob("*.py") if file.parent.name != "surface"]
    lines = {file.name: len(file.read_text("utf-8").splitlines()) for file in files}
    assert {name: count for name, count in lines.items() if count > 900} == {}


@pytest.mark.parametrize("name", ["flow-ops", "flow-spark"])
def test_a_function_that_a_package_exports_is_in_a_file_of_its_name_or_of_how_it_begins(
    name: str,
) -> None:
    package = source(ROOT / "packages" / name)
    said = (package / "__init__.py").read_text("utf-8")
    exported = re.search(r"^__all__ = (\[.*?\])", said, re.DOTALL | re.MULTILINE)
    assert exported is not None
    functions = [each for each in ast.literal_eval(exported[1]) if each.islower()]
    assert len(functions) > 10
    defined = {
        (file.stem, function)
        for file in package.rglob("*.py")
        for function in re.findall(r"^def (\w+)\(", file.read_text("utf-8"), re.MULTILINE)
    }

    def is_found(function: str) -> bool:
        words = function.split("_")
        stems = ["_".join(words[:count]) for count in range(1, len(words) + 1)]
        return any((stem, function) in defined for stem in stems)

    assert [function for function in functions if not is_found(function)] == []


def test_the_settings_of_the_type_checkers_know_every_package() -> None:
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    sources = {f"packages/{package.name}/src" for package in PACKAGES}
    assert set(tools["pyright"]["extraPaths"]) == sources
    known = {path.partition("/")[2] for path in tools["mypy"]["mypy_path"]}
    assert known == sources | {"benchmarks", "jvm"}  # what is here and no package


def files_of_the_repository() -> list[Path]:
    """Return what git tracks or would track; outside of git, what is not hidden or ignored."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listing.returncode == 0:
        found = [ROOT / name for name in listing.stdout.split("\0") if name]
    else:
        found = [
            path
            for path in ROOT.rglob("*")
            if not any(
                part.startswith(".") or part == "__pycache__"
                for part in path.relative_to(ROOT).parts
            )
        ]
    return [path for path in found if path.is_file()]


def test_no_file_names_a_local_path_of_a_machine() -> None:
    places = "home|root|tmp|Users|work|opt|mnt"
    machine_path = re.compile(rf"(?<![\w.~>)}}\]/-])/(?:{places})/[\w.]|\b[A-Z]:\\Users\b")
    found = []
    for path in files_of_the_repository():
        try:
            lines = path.read_text("utf-8").splitlines()
        except UnicodeDecodeError:
            continue  # a picture, or other data
        found += [
            f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
            for number, line in enumerate(lines, 1)
            if machine_path.search(line)
        ]
    assert found == []
