"""What `import flow_core` imports, and when."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import flow_core


def run(code: str) -> str:
    """What a fresh interpreter prints."""
    command = (sys.executable, "-c", code)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_all_but_errors_and_what_is_filled_in_is_named_as_lazy() -> None:
    tree = ast.parse(Path(flow_core.__file__).read_text(encoding="utf-8"))
    imported = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
    assert imported - {"typing", "flow_core.errors", "flow_core.late"} == set(
        flow_core.__lazy_modules__
    )


@pytest.mark.skipif(sys.version_info < (3, 15), reason="for Python 3.15, with lazy imports")
def test_modules_are_imported_when_they_are_first_used() -> None:
    code = """
import sys
import flow_core as flow
print([name for name in sys.modules if name.startswith("flow_core.") or name == "asyncio"])
print(list(flow.range(3).map(lambda n: n + 1)))
print("flow_core.flow" in sys.modules)
"""
    assert run(code).splitlines() == ["['flow_core.late', 'flow_core.errors']", "[1, 2, 3]", "True"]


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
