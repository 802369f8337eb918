"""The package without `reactivex`, which is an extra."""

from __future__ import annotations

import subprocess
import sys
import textwrap

from flow_testing import TIMEOUT_S


def run_without(names: str, program: str) -> str:
    """Run a program in a Python that cannot import the modules `names`."""
    blocked = f"""
        import sys

        class Blocked:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] in {names.split()!r}:
                    raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
                return None

        sys.meta_path.insert(0, Blocked())
    """
    code = textwrap.dedent(blocked) + textwrap.dedent(program)
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=12 * TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_package_and_its_plugin_need_no_reactivex() -> None:
    program = """
        import flow_core as flow
        import flow_rxcompat
        from flow_core.plugins import plugin_host

        assert "reactivex-observable" in plugin_host().converters
        assert not plugin_host().problems
        print(list(flow.from_([1, 2])))
    """
    assert run_without("reactivex", program) == "[1, 2]\n"


def test_the_bridge_says_what_to_install() -> None:
    program = """
        try:
            import flow_rxcompat.rx
        except ImportError as error:
            print(error)
    """
    printed = run_without("reactivex", program)
    assert printed == "flow_rxcompat.rx needs reactivex: pip install 'flow-rxcompat[rx]'\n"


def test_importing_the_package_does_not_import_reactivex() -> None:
    program = """
        import flow_core as flow
        import flow_rxcompat
        from flow_core.plugins import plugin_host

        plugin_host().converters
        list(flow.from_([1]))
        assert not [name for name in sys.modules if name.startswith("reactivex")]
    """
    run_without("nothing", program)
