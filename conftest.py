"""The parts that all tests share: tiers, blocks of the docs as tests, and marks that skip.

``pytest --quick`` runs the quick tier. A test falls into it by what it is:

* Tests that are marked ``nightly`` or ``cluster`` are left out.
* Of those that explore interleavings, of the rules of the kit, of what is tried with ``many``
  inputs (or with each operator), of ``slow`` ones, and of the ``essential`` ones on Spark, a
a new sample is drawn for each commit: see `ONE_IN`.
* Others on Spark are left out.
* All other tests run. With ``--one-in 3`` it is a third of them: another Python runs them all.

``pytest --part 1/2`` runs every other test. Two of these take two cores, and no third process hands
out the tests.

``pytest --patience 4`` waits four times as long for what must come, on a machine that is busy.
"""

from __future__ import annotations

import doctest
import gc
import os
import signal
import subprocess
import sys
import zlib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

ONE_IN = {"interleave": 96, "essential": 24, "tck": 24, "many": 24, "spark": 8, "slow": 6}
"""For each mark, the number of tests of which the quick tier draws one. Of those that explore,
the essential ones count as such: those of primitives, and of what operators are made of. Of those
on Spark, only the essential ones are drawn from."""

ON_SPARK = ("packages/flow-spark/README.md", "docs/tutorials/spark.md")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # So it is in what a shell starts in the background. Tests send Ctrl-C, to themselves as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Only nox's `examples` session installs Sybil: a package's own tests have no need of it.
if find_spec("sybil"):
    from sybil import Sybil
    from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

    blocks = [PythonCodeBlockParser(doctest_optionflags=doctest.ELLIPSIS), SkipParser()]
    here = Sybil(blocks, patterns=["*.md"], excludes=ON_SPARK)
    on_spark = Sybil(blocks, patterns=ON_SPARK, fixtures=["one_jvm"])
    pytest_collect_file = (here + on_spark).pytest()


@pytest.fixture(scope="session")
def one_jvm() -> Iterator[None]:
    """Hold a Spark session that all `session("local[2]")` share: a JVM takes ten seconds."""
    from flow_spark import session

    with session("local[2]", conf={"spark.sql.shuffle.partitions": 2}):
        yield


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--quick``, ``--one-in``, ``--part`` and ``--patience``."""
    parser.addoption(
        "--quick", action="store_true", help="leave out what is nightly; draw a sample of the rest"
    )
    parser.addoption(
        "--one-in", type=int, default=1, metavar="N", help="draw one in N tests of the quick tier"
    )
    parser.addoption("--part", default="1/1", metavar="K/N", help="run the K-th of N parts")
    parser.addoption(
        "--patience", type=float, default=1, metavar="N", help="time limits are N times as long"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Decide about sample and patience, for this process and the workers that it starts."""
    if config.option.patience != 1:
        os.environ["FLOW_PATIENCE"] = str(config.option.patience)  # `flow_testing` reads it
    if config.option.quick:
        os.environ.setdefault("FLOW_SAMPLE", _commit())


def _commit() -> str:
    command = ("git", "rev-parse", "--short=12", "HEAD")
    try:
        found = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "no commit"
    return found.stdout.decode().strip()


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say how to draw the same sample again."""
    if not config.option.quick:
        return []
    sample = os.environ["FLOW_SAMPLE"]
    drawn = ", ".join(f"{mark} 1 in {n}" for mark, n in ONE_IN.items())
    return [f"quick tier: drawn are {drawn}; FLOW_SAMPLE={sample} repeats it"]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Skip tests that explore interleavings where Python cannot."""
    if sys.version_info < (3, 12) and item.get_closest_marker("interleave"):
        item.add_marker(pytest.mark.skip(reason="needs sys.monitoring, which Python 3.12 brings"))
    if (patience := item.config.option.patience) != 1:
        own = item.get_closest_marker("timeout")
        limit = own.args[0] if own else item.config.option.timeout or item.config.getini("timeout")
        item.add_marker(pytest.mark.timeout(patience * float(limit)), append=False)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not in the tier; ``-m`` that speaks of ``cluster`` takes those in."""
    part, _, parts = config.option.part.partition("/")
    wanted = [item for item in items if _is_wanted(item, config)]
    wanted = wanted[int(part) - 1 :: int(parts)]
    left_out = set(items).difference(wanted)
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = wanted


def pytest_collection_finish() -> None:
    """Keep what is there now from the collector: it would look at thousands of tests, many times.

    Those that ask whether anything is kept alive collect all garbage, and would take a tenth of a
    second each.
    """
    if "hypothesis.core" in sys.modules:
        _have_random_numbers()
    gc.collect()
    gc.freeze()


def _have_random_numbers() -> None:
    """Have Hypothesis make its generator now: it warns if no visible reference holds it."""
    from hypothesis import given, settings, strategies

    @settings(max_examples=1, database=None)
    @given(strategies.none())
    def draw(_: None) -> None:
        pass

    draw()


def _is_wanted(item: pytest.Item, config: pytest.Config) -> bool:
    if item.get_closest_marker("cluster") and "cluster" not in config.option.markexpr:
        return False
    if not config.option.quick:
        return True
    marks = {mark.name for mark in item.iter_markers()}
    if "nightly" in marks:
        return False
    if "spark" in marks and "essential" not in marks:
        return False
    if item.path.as_posix().endswith(ON_SPARK):
        return False
    if {"case", "tried"}.intersection(getattr(item, "fixturenames", ())):
        marks.add("many")  # each stage, or each operator
    if {"interleave", "essential"} <= marks:
        marks.remove("interleave")
    elif "interleave" not in marks:
        marks.discard("essential")
    one_in = max([ONE_IN[mark] for mark in marks & ONE_IN.keys()], default=1)
    one_in *= int(config.option.one_in)
    return zlib.crc32(f"{os.environ['FLOW_SAMPLE']} {item.nodeid}".encode()) % one_in == 0
