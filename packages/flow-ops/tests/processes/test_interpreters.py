"""`on_processes` and rails on a pool of interpreters, in separate scripts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from flow_testing import TIMEOUT_S

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 14), reason="for Python 3.14, which has InterpreterPoolExecutor"
)

SCRIPT = """
    import threading
    from concurrent.futures import InterpreterPoolExecutor, ThreadPoolExecutor
    import flow_core as flow

    def squared(n: int) -> int:
        return n * n

    def inverted(n: int) -> float:
        return 1 / n

    if __name__ == "__main__":
        with InterpreterPoolExecutor(2) as pool:
"""


def run(source: str, *, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = ["-c", source]
    if path is not None:
        path.write_text(source)
        command = [str(path)]
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        timeout=12 * TIMEOUT_S,
        check=False,
    )


def script(*lines: str) -> str:
    return dedent(SCRIPT) + "".join(f"        {line}\n" for line in lines)


@pytest.mark.slow
def test_functions_of_the_script_run_in_interpreters(tmp_path: Path) -> None:
    done = run(
        script(
            "print(list(flow.range(5).on_processes(pool).map(squared)))",
            "print(list(flow.range(5).on_processes(pool).map(squared)))",
        ),
        path=tmp_path / "job.py",
    )
    assert done.stdout == "[0, 1, 4, 9, 16]\n" * 2, done.stderr


@pytest.mark.nightly
def test_so_do_those_of_a_module_beside_it(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("def cubed(n): return n ** 3\n")
    done = run(
        script("import beside", "print(list(flow.range(3).on_processes(pool).map(beside.cubed)))"),
        path=tmp_path / "job.py",
    )
    assert done.stdout == "[0, 1, 8]\n", done.stderr


@pytest.mark.nightly
def test_rails_run_on_interpreters(tmp_path: Path) -> None:
    done = run(
        script(
            "rails = flow.range(9).parallel(2).run_on(pool)",
            "print(sorted(rails.map(squared).sequential()))",
        ),
        path=tmp_path / "job.py",
    )
    assert done.stdout == "[0, 1, 4, 9, 16, 25, 36, 49, 64]\n", done.stderr


@pytest.mark.nightly
def test_an_error_of_a_stage_comes_with_the_traceback_of_the_interpreter(tmp_path: Path) -> None:
    done = run(
        script(
            "try:",
            "    list(flow.range(3).on_processes(pool).map(inverted))",
            "except ZeroDivisionError as error:",
            "    print(*error.__notes__)",
        ),
        path=tmp_path / "job.py",
    )
    assert "in inverted" in done.stdout, done.stderr
    assert "map(inverted)" in done.stdout


@pytest.mark.slow
def test_functions_given_to_python_c_are_refused_with_a_hint_where_to_put_them() -> None:
    done = run(script("print(list(flow.range(3).on_processes(pool).map(squared)))"))
    assert done.stdout == ""
    assert "put the functions of the stages into a module" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("moved", ["observe_on", "subscribe_on"])
def test_a_subscription_does_not_continue_in_an_interpreter(tmp_path: Path, moved: str) -> None:
    done = run(script(f"flow.range(3).{moved}(pool)"), path=tmp_path / "job.py")
    assert "TypeError: a subscription cannot move to another process or interpreter" in done.stderr
    assert "on_processes(pool) runs the stages that follow there" in done.stderr
