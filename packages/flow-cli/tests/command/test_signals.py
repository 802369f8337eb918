"""Ctrl-C, SIGTERM and a reader that goes away, in separate processes."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

from flow_core.serial import HAS_GIL
from flow_testing import TIMEOUT_S

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")

JOBS = """
    import contextlib
    import signal
    import sys
    import threading
    import flow_core

    def count():
        n = 0
        try:
            while True:
                n += 1
                yield n
        finally:
            print("closed", file=sys.stderr)

    endless = flow_core.from_iterable(count())
    fed = flow_core.from_iterable(count()).hide().map(lambda n: n)

    def waits():
        print("ready", flush=True)
        threading.Event().wait()

    def never():
        print("ready", flush=True)
        return flow_core.never()

    def stuck():
        blocked = threading.Event()
        threading.Thread(target=blocked.wait, name="stuck-worker").start()
        print("ready", flush=True)
        threading.Event().wait()

    class Signalled:
        def __del__(self):
            signal.raise_signal(signal.SIGTERM)

    class Waiting:
        def __del__(self):
            threading.Event().wait()

    def finalised():
        Signalled()
        Waiting()
        print("ready", flush=True)
        threading.Event().wait()

    def stubborn():
        while True:
            with contextlib.suppress(KeyboardInterrupt):
                print("ready", flush=True)
                threading.Event().wait()
"""


at_once = pytest.mark.skipif(
    not HAS_GIL and sys.version_info < (3, 14),
    reason="for a CPython that does not lose a signal that comes as the main thread begins to wait",
)


@pytest.mark.parametrize(
    "job",
    [
        "endless",
        "fed",
        pytest.param("waits", marks=at_once),
        pytest.param("never", marks=at_once),
    ],
)
@pytest.mark.parametrize(
    ("signum", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "sigterm"]
)
def test_a_signal_stops_the_job_within_two_seconds(start, write, job, signum, code) -> None:
    write("jobs.py", JOBS)
    with start("run", f"jobs.py:{job}") as running:
        assert running.line() in ("1", "ready")
        done, seconds = running.stop(signum)
    assert done.code == code
    assert seconds < 0.4 * TIMEOUT_S
    assert "Traceback" not in done.err
    assert "flow: stopped" in done.err
    assert ("closed" in done.err) == (job in ("endless", "fed"))


@at_once
def test_a_signal_that_comes_in_a_finaliser_comes_again(start, write) -> None:
    write("jobs.py", JOBS)
    with start("run", "jobs.py:finalised") as running:
        assert running.line() == "ready"
        out, err = running.process.communicate(timeout=6 * TIMEOUT_S)
    assert running.process.returncode == 143
    assert (out, err) == ("", "flow: stopped\n")


@at_once
@pytest.mark.parametrize(("job", "who"), [("stuck", "stuck-worker"), ("stubborn", "the program")])
def test_a_flow_that_does_not_stop_is_ended_by_force_and_named(start, write, job, who) -> None:
    write("jobs.py", JOBS)
    with start("run", f"jobs.py:{job}") as running:
        assert running.line() == "ready"
        done, seconds = running.stop(signal.SIGINT)
    assert done.code == 130
    assert seconds < 2.5
    assert who in done.err
    assert "ended by force" in done.err


@at_once
def test_a_second_signal_ends_the_process_at_once(start, write) -> None:
    write("jobs.py", JOBS)
    with start("run", "jobs.py:stubborn") as running:
        assert running.line() == "ready"
        running.process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        while running.process.poll() is None and time.monotonic() - begin < 2 * TIMEOUT_S:
            running.process.send_signal(signal.SIGTERM)
            try:
                running.process.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
        assert running.process.returncode == 143
        assert time.monotonic() - begin < 0.2 * TIMEOUT_S


def test_a_session_of_an_engine_is_closed_on_the_way_out(start, write, project) -> None:
    write("jobs.py", JOBS)
    write(
        "engine_x.py",
        """
        import contextlib
        import sys
        from flow_core.engine import LocalEngine
        from flow_core.plugins import EngineSpec, hookimpl

        @contextlib.contextmanager
        def open_engine(options):
            try:
                yield LocalEngine()
            finally:
                print("session closed", file=sys.stderr)

        @hookimpl
        def flow_engines():
            yield EngineSpec("session", "engine_x:open_engine")
        """,
    )
    plugins = {"FLOW_LOAD_PLUGINS": "engine_x", "PYTHONPATH": str(project)}
    with start("run", "jobs.py:endless", "--on", "session", **plugins) as running:
        assert running.line() == "1"
        done, _ = running.stop(signal.SIGINT)
    assert done.code == 130
    assert done.err.index("closed\n") < done.err.index("session closed")


def test_a_reader_that_goes_away_stops_the_flow_without_an_error(start, write) -> None:
    write("jobs.py", JOBS)
    with start("run", "jobs.py:endless") as running:
        assert running.line() == "1"
        running.process.stdout.close()
        code = running.process.wait(30)
        err = running.process.stderr.read()
    assert code == 141
    assert err == "closed\n"


def test_items_appear_at_once_and_not_only_when_a_buffer_is_full(start, write) -> None:
    write(
        "jobs.py",
        """
        import sys
        import flow_core

        def lines():
            yield "first"
            yield sys.stdin.readline()

        asked = flow_core.from_iterable(lines())
        """,
    )
    with start("run", "jobs.py:asked") as running:
        assert running.line() == "first"  # while the second is still waited for
        done, _ = running.stop(signal.SIGINT)
    assert done.code == 130


def test_the_exit_code_of_a_flow_that_fails_is_that_of_the_process(start, write) -> None:
    write("jobs.py", "import flow_core\nf = flow_core.range(1).map(lambda n: 1 / n)")
    with start("run", "jobs.py:f") as running:
        out, err = running.process.communicate(timeout=6 * TIMEOUT_S)
    assert running.process.returncode == 1
    assert out == ""
    assert "ZeroDivisionError" in err
