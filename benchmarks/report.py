"""Run all benchmarks, and write the results: pages, pictures, and every figure as JSON.

    python benchmarks/report.py                       everything; the pages in docs/benchmarks
    python benchmarks/report.py bench_ops.py          tables on the terminal, no pages
    python benchmarks/report.py --from results.json   the pages again, from recorded results

RxJava is measured if java, javac and mvn are present, and Spark if its script and java are.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pages
import pictures
import rxjava

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs" / "benchmarks"
CACHE = HERE.parent / ".nox" / ".cache" / "bench"

ONCE: tuple[tuple[str, ...], ...] = ((),)
SCRIPTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "bench_sync.py": ONCE,
    "bench_inner.py": ONCE,
    "bench_short.py": ONCE,
    "bench_async.py": ONCE,
    "bench_ops.py": ONCE,
    "bench_multicast.py": ONCE,
    "bench_growth.py": ONCE,
    "bench_memory.py": ONCE,
    "bench_core.py": ONCE,
    "bench_spark.py": (
        ("stages", "--rows", "1000000", "--rounds", "45"),
        ("flights", "in", "out", "--rows", "2000000", "--rounds", "9"),
        ("growth", "--rows", "2000000", "--rounds", "7"),
    ),
}
"""The scripts of a full run, each run once for each of its lists of arguments."""

Entry = dict[str, Any]  # Any: what JSON holds; rounds.py says what that is


def main() -> int:
    """Run the command; see the module's docstring."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scripts", nargs="*", help="scripts to run; all if none")
    parser.add_argument("--output", type=Path, default=DOCS, help="the folder of the pages")
    parser.add_argument("--cache", type=Path, default=CACHE, help="a folder for what Java needs")
    parser.add_argument("--rounds", type=int, help="rounds of each table, for a quick look")
    parser.add_argument("--without-java", action="store_true", help="skip RxJava and Spark")
    parser.add_argument("--from", type=Path, dest="recorded", help="render this file, run nothing")
    options = parser.parse_args()
    if options.recorded:
        results = json.loads(options.recorded.read_text("utf-8"))
        write(results, options.output)
        return 0
    if options.scripts:
        names = [Path(script).name for script in options.scripts]
        _, failed = run(names, options.rounds)
        return 1 if failed else 0
    names = [name for name in SCRIPTS if not options.without_java or "spark" not in name]
    facts = machine()
    start = time.monotonic()
    tables, failed = run(names, options.rounds)
    java: list[dict[str, object]] = []
    if options.without_java or (lacking := rxjava.missing()):
        why = "not asked for" if options.without_java else f"missing: {', '.join(lacking)}"
        print(f"RxJava is not measured, {why}", file=sys.stderr)
    else:
        try:
            java = rxjava.measure(options.cache.resolve(), options.rounds or 7)
        except subprocess.SubprocessError as error:
            print(f"RxJava: {error}", file=sys.stderr)
            failed.append("RxJava")
    facts["minutes"] = f"{(time.monotonic() - start) / 60:.0f}"
    results = {"facts": facts, "failed": failed, "tables": in_order(tables), "rxjava": java}
    results["pythons"] = known_of_pythons(options.output)
    write(results, options.output)
    return 1 if failed else 0


def run(names: list[str], rounds: int | None) -> tuple[list[Entry], list[str]]:
    """Run each script in its own process; a script that fails does not stop the others.

    Returns:
        The tables of the scripts, and the runs that failed.
    """
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "tables.jsonl"
        record.touch()
        env = os.environ | {"FLOW_BENCH_RECORD": str(record)}
        if rounds:
            env["FLOW_BENCH_ROUNDS"] = str(rounds)
        runs = [(name, arguments) for name in names for arguments in SCRIPTS.get(name, ONCE)]
        for name, arguments in runs:
            start = time.monotonic()
            # One after the other: the figures are worthless if two run at the same time.
            done = subprocess.run(
                (sys.executable, str(HERE / name), *arguments), check=False, env=env
            )
            called = " ".join((name, *arguments))
            if done.returncode:
                failed.append(called)
            print(f"{called}: {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
        return [json.loads(line) for line in record.read_text("utf-8").splitlines()], failed


def known_of_pythons(folder: Path) -> Entry:
    """Return what `pythons.py` has measured, which a run of this script keeps."""
    recorded = folder / "results.json"
    known: Entry = json.loads(recorded.read_text("utf-8")) if recorded.exists() else {}
    return dict(known.get("pythons", {}))


def in_order(tables: list[Entry]) -> list[Entry]:
    """Return the tables in their order, but `multicast-4` before `multicast-16`."""
    first: dict[str, int] = {}

    def place(index: int) -> tuple[int, int]:
        name, _, number = (tables[index]["key"] or "").rpartition("-")
        if not name or not number.isdigit():
            return index, 0
        return first.setdefault(name, index), int(number)

    return [tables[index] for index in sorted(range(len(tables)), key=place)]


def write(results: Entry, folder: Path) -> None:
    """Write the pages, the pictures and the figures."""
    write_pages(results, folder)
    pictures.ratios(results["tables"], results["rxjava"], folder / "ratios.svg")
    pictures.growth(results["tables"], folder / "growth.svg")


def write_pages(results: Entry, folder: Path) -> None:
    """Write the figures, and the pages that result from the written figures."""
    folder.mkdir(parents=True, exist_ok=True)
    kept: Any = pages.rounded(results)
    text = json.dumps(kept, ensure_ascii=False, indent=1) + "\n"
    (folder / "results.json").write_text(text, "utf-8")
    (folder / "README.md").write_text(pages.overview(kept), "utf-8")
    (folder / "details.md").write_text(pages.details(kept), "utf-8")


def machine() -> dict[str, str]:
    """Return what a reader has to know about the machine, but nothing about its owner."""
    facts = {
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "memory": _memory(),
        "load at the start": f"{os.getloadavg()[0]:.1f}",
        "system": platform.system(),
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
    }
    for name in ("reactivex", "aiostream", "streamable", "streamz", "pyspark", "pyarrow"):
        try:
            facts[name] = version(name)
        except PackageNotFoundError:
            facts[name] = "not installed"
    if java := shutil.which("java"):
        said = subprocess.run((java, "--version"), check=True, capture_output=True, text=True)
        facts["Java"] = " ".join(said.stdout.split()[:2])
    return facts


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
    except (OSError, ValueError):
        return "unknown"


if __name__ == "__main__":
    sys.exit(main())
