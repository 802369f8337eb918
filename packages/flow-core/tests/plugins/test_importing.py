"""Imports by time: no plugin before it is asked for, and no target of a record at all."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from flow_testing import TIMEOUT_S


def modules_after(code: str, *options: str, **environ: str) -> set[str]:
    """The modules that a fresh interpreter holds after `code`."""
    script = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, *options, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        timeout=12 * TIMEOUT_S,
        env=None if "-I" in options else environ,
    )
    return set(json.loads(done.stdout))


def test_importing_the_core_scans_nothing_and_imports_neither_pluggy_nor_rich() -> None:
    modules = modules_after("import flow_core; list(flow_core.range(3).map(str))", "-I")
    assert "flow_core" in modules
    for name in ("pluggy", "rich", "tomllib", "importlib.metadata"):
        assert name not in modules
    for name in ("plugins", "sinks", "sources.files"):
        assert f"flow_core.{name}" not in modules
    assert "flow_cli" not in modules


def test_importing_the_plugins_module_scans_nothing_either() -> None:
    modules = modules_after("import flow_core.plugins", "-I")
    assert "flow_core.plugins._builtin" not in modules


def test_listing_imports_none_of_the_objects_that_records_name(
    install: Callable[..., Path],
) -> None:
    plugin = """
    from flow_core.plugins import OperatorSpec, hookimpl

    @hookimpl
    def flow_operators():
        yield OperatorSpec("every", "acme_flow_operators:every")
    """
    site = install("acme-flow", plugin)
    (site / "acme_flow_operators.py").write_text("raise SystemExit('it was imported')")
    code = (
        "from flow_core.plugins import plugin_host; host = plugin_host(); "
        "assert host.operators['every'].spec.target == 'acme_flow_operators:every'; "
        "assert host.operators['every'].plugin.distribution == 'acme-flow'; "
        "list(host.sources.items())"
    )
    modules = modules_after(code, PYTHONPATH=str(site))
    assert "acme_flow_plugin" in modules
    assert "acme_flow_operators" not in modules
