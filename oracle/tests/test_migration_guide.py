"""The Java of the migration guide gives what the guide says, and does so when the Python does."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PROJECT: Final = ROOT / "oracle"
CACHE: Final = Path(os.environ.get("FLOW_ORACLE_CACHE", ROOT / ".nox" / ".cache" / "oracle"))

sys.path.append(str(ROOT / "jvm"))

from flow_jvm import missing_tools, prepare  # noqa: E402 - see above

pytestmark = pytest.mark.skipif(
    bool(missing_tools()), reason=f"this machine lacks {', '.join(missing_tools())}"
)


def python_side() -> ModuleType:
    """The test of the Python, which reads the rows."""
    spec = util.spec_from_file_location("migration", ROOT / "tests" / "test_migration.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


GUIDE: Final[Any] = python_side()  # Any: a module of tests has no types to check against
RXJAVA: Final = [row for row in GUIDE.ROWS if row.head[0] == "RxJava"]
JAVA_FLOW: Final = [row for row in GUIDE.ROWS if row.head[0] == "Java Flow"]
NAMES: Final = [row for row in GUIDE.ROWS if row.head[0] == "Java"]

ERRORS: Final = {"TimeoutException": "FlowTimeoutError"}
"""Those that have another name there."""

SOURCE: Final = """
package flow.guide;

import static java.util.concurrent.TimeUnit.*;

import io.reactivex.rxjava3.core.*;
import java.util.*;
import java.util.concurrent.*;
import org.reactivestreams.FlowAdapters;

final class Rows extends Guide {{
    {blocks}
    {methods}

    public static void main(String[] arguments) {{
        {calls}
    }}
}}
"""


@cache
def outcomes() -> Sequence[object]:
    """The results of each row in Java, of `RXJAVA`, `JAVA_FLOW` and `NAMES` one after another."""
    snippets = [row.cells[row.head[0]] for row in (*RXJAVA, *JAVA_FLOW)]
    methods = [
        f"Object row{index}() {snippet if snippet.startswith('{') else f'{{ return {snippet}; }}'}"
        for index, snippet in enumerate(snippets)
    ]
    shows = [
        f"{{ Rows rows = new Rows(); rows.show(rows::row{n}); }}" for n in range(len(snippets))
    ]
    finds = [f'find("{row.cells["Java"]}");' for row in NAMES]
    blocks = re.findall(r"^```java\n(.*?)^```", GUIDE.TEXT, re.DOTALL | re.MULTILINE)
    folder = CACHE / "guide"
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / "Rows.java"
    source.write_text(
        SOURCE.format(
            blocks="\n".join(blocks),
            methods="\n    ".join(methods),
            calls="\n        ".join([*shows, *finds]),
        ),
        "utf-8",
    )
    path = os.pathsep.join(prepare(PROJECT, CACHE).classpath)
    subprocess.run(
        ["javac", "-encoding", "UTF-8", "-cp", path, "-d", str(folder), str(source)], check=True
    )
    ran = subprocess.run(
        ["java", "-cp", f"{folder}{os.pathsep}{path}", "flow.guide.Rows"],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return [ast.literal_eval(line) for line in ran.stdout.splitlines()]


def shown(index: int) -> Any:  # Any: an `Outcome`
    items, end = outcomes()[index]  # type: ignore[misc] - of a row with items
    return GUIDE.Outcome(items, ERRORS.get(end, end))


def numbered(rows: Sequence[object], first: int = 0) -> pytest.MarkDecorator:
    pairs = [pytest.param(first + index, row, id=str(row)) for index, row in enumerate(rows)]
    return pytest.mark.parametrize(("index", "row"), pairs)


@numbered(RXJAVA)
def test_rxjava_gives_what_is_said(index: int, row: Any) -> None:
    shown(index).check(row.gives[0])


@numbered(RXJAVA)
def test_and_does_so_at_the_same_time_as_the_python(index: int, row: Any) -> None:
    theirs, ours = shown(index), GUIDE.run(row.cells["Flow"])
    assert theirs.items == ours.items
    assert theirs.end == ours.end


@numbered(JAVA_FLOW, len(RXJAVA))
def test_java_flow_gives_what_is_said(index: int, row: Any) -> None:
    shown(index).check(row.gives[0])


@numbered(NAMES, len(RXJAVA) + len(JAVA_FLOW))
def test_java_has_the_name(index: int, row: Any) -> None:
    assert outcomes()[index] is True
