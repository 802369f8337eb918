"""The modules that `import flow_core` imports, and when."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import flow_core
from flow_core import sources


def run(code: str) -> str:
    """The output of a fresh interpreter."""
    command = (sys.executable, "-c", code)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize("package", [flow_core, sources])
def test_the_names_loaded_late_are_those_that_type_checkers_see(package: ModuleType) -> None:
    tree = ast.parse(Path(str(package.__file__)).read_text(encoding="utf-8"))
    (seen,) = (node.body for node in tree.body if ast.unparse(node).startswith("if TYPE_CHECKING"))
    imported = {
        name.name: node.module
        for node in seen
        if isinstance(node, ast.ImportFrom) and node.module != "types"
        for name in node.names
        if name.name in package.__all__
    }
    late = {
        name: f"{package.__name__}{module}"
        for module, names in package._PLACES.items()
        for name in names
    }
    modules = {name for name in imported if name not in late}
    assert {name: imported[name] for name in late} == late
    assert modules <= set(getattr(package, "_MODULES", ()))
    for name in package.__all__:
        assert getattr(package, name) is not None
        assert name in dir(package)


def test_modules_are_imported_when_they_are_first_used() -> None:
    code = """
import sys
import flow_core as flow
print(sorted(name for name in sys.modules if name.startswith(("flow_core.", "asyncio"))))
print(list(flow.range(3).map(lambda n: n + 1)))
print("flow_core.flow" in sys.modules)
"""
    loaded = "['flow_core.errors', 'flow_core.exports', 'flow_core.late']"
    assert run(code).splitlines() == [loaded, "[1, 2, 3]", "True"]


def test_a_flow_without_coroutines_or_futures_loads_nothing_for_them() -> None:
    code = """
import sys
import flow_core as flow
seen = []
flow.range(9).filter(bool).map(str).take(2).subscribe(seen.append)
flow.range(2).for_each(seen.append)
print(seen, flow.just(1).first())
print([name for name in ("asyncio", "concurrent.futures", "socket") if name in sys.modules])
"""
    assert run(code).splitlines() == ["['1', '2', 0, 1] 1", "[]"]


def test_asyncio_is_loaded_by_the_flow_that_needs_it() -> None:
    code = """
import sys
import flow_core as flow
made = flow.range(3).map(str)
before = "asyncio" in sys.modules
import asyncio
async def main():
    return [text async for text in made]
print(before, asyncio.run(main()), made.count().to_future().result())
"""
    assert run(code).splitlines() == ["False ['0', '1', '2'] 3"]


def test_the_package_loads_few_modules() -> None:
    code = "import sys; before = set(sys.modules); {}; print(len(set(sys.modules) - before))"
    assert int(run(code.format("import flow_core"))) <= 40


def test_no_template_is_parsed_before_a_flow_uses_it() -> None:
    code = """
import ast
parsed, parse = [], ast.parse
ast.parse = lambda *args, **kwargs: parsed.append(args) or parse(*args, **kwargs)
import flow_core as flow
flow.Flow
print(len(parsed))
flow.range(3).map(str)
print(len(parsed) > 0)
"""
    assert run(code).splitlines() == ["0", "True"]
