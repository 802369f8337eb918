"""One event loop for the flows that have none: made when needed, ended with the process."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from flow_core.homes import current_home, library_loop
from flow_testing import TIMEOUT_S


def done(coroutine: Any) -> Any:
    return asyncio.run_coroutine_threadsafe(coroutine, library_loop()).result(TIMEOUT_S)


def script(text: str) -> subprocess.CompletedProcess[str]:
    """Run a program to its end."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        capture_output=True,
        encoding="utf-8",
        timeout=12 * TIMEOUT_S,
        check=False,
    )


HEAD = """
import asyncio, os, sys, threading, time
from flow_core.homes import current_home, library_loop
def start(coroutine):
    return asyncio.run_coroutine_threadsafe(coroutine, library_loop())
started = threading.Semaphore(0)
"""


def test_there_is_one_for_all_threads() -> None:
    gate = threading.Barrier(8)

    def made() -> asyncio.AbstractEventLoop:
        gate.wait(TIMEOUT_S)
        return library_loop()

    with ThreadPoolExecutor(8) as pool:
        loops = {future.result(TIMEOUT_S) for future in [pool.submit(made) for _ in range(8)]}
    assert loops == {library_loop()}


def test_it_runs_in_a_daemon_thread_with_a_name() -> None:
    async def thread() -> threading.Thread:
        return threading.current_thread()

    found = done(thread())
    assert (found.name, found.daemon) == ("flow-loop", True)


def test_it_is_a_home_to_coroutines_only() -> None:
    async def home() -> asyncio.AbstractEventLoop | None:
        found = current_home()
        return None if found is None else found.loop

    called: Future[object] = Future()
    library_loop().call_soon_threadsafe(lambda: called.set_result(current_home()))
    assert called.result(TIMEOUT_S) is None
    assert done(home()) is library_loop()


@pytest.mark.parametrize("fatal", [SystemExit, KeyboardInterrupt])
def test_a_fatal_error_of_one_coroutine_ends_no_other(
    fatal: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[object] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: told.append(args.exc_type))

    async def failing() -> None:
        raise fatal

    async def fine() -> int:
        return 7

    with pytest.raises(fatal):
        done(failing())
    assert done(fine()) == 7
    assert told == [fatal]


def test_the_end_of_the_process_cancels_and_awaits_what_runs() -> None:
    ended = script(
        HEAD
        + """
async def sleeping():
    started.release()
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(0)
        print("left", flush=True)

async def generator():
    try:
        while True:
            yield 1
    finally:
        print("closed", flush=True)

async def opened():
    items = generator()
    await anext(items)
    kept.append(items)
    started.release()

kept = []
for made in [*(sleeping() for _ in range(10)), opened()]:
    start(made)
for _ in range(11):
    assert started.acquire(timeout=10)
"""
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert sorted(ended.stdout.split()) == ["closed", *["left"] * 10]


def test_a_coroutine_that_does_not_end_is_reported_once_and_does_not_block_the_exit() -> None:
    ended = script(
        HEAD
        + """
import flow_core.homes
flow_core.homes._CLEAN_UP_S = 0.1

async def deaf():
    started.release()
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass

for _ in range(2):
    start(deaf())
for _ in range(2):
    assert started.acquire(timeout=10)
"""
    )
    assert ended.returncode == 0
    assert ended.stderr.count("2 coroutines of flow_core swallowed their cancellation") == 1
    assert "destroyed" not in ended.stderr


def test_a_function_that_holds_the_loop_does_not_hold_the_process() -> None:
    ended = script(
        HEAD
        + """
import flow_core.homes
flow_core.homes._CLEAN_UP_S = flow_core.homes._BLOCKED_S = 0.1
never = threading.Event()
async def blocked():
    started.release()
    never.wait()
start(blocked())
assert started.acquire(timeout=10)
"""
    )
    assert ended.returncode == 0
    assert "is held by a function" in ended.stderr


def test_at_the_very_end_of_the_process_the_loop_is_refused() -> None:
    ended = script(
        """
        import atexit
        def late():
            from flow_core.homes import library_loop
            try:
                library_loop()
            except RuntimeError as error:
                print(error)
        atexit.register(late)  # runs after what is registered later
        from flow_core.homes import library_loop
        library_loop()
        """
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "the process ends" in ended.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="os.fork")
def test_a_forked_child_has_its_own_and_the_parent_keeps_its() -> None:
    ended = script(
        HEAD
        + """
import gc
async def later(n):
    await asyncio.sleep(0.01)
    return n
loop = library_loop()
assert start(later(1)).result(10) == 1
child = os.fork()
if child == 0:
    gc.collect()
    assert library_loop() is not loop
    assert start(later(2)).result(10) == 2
    os._exit(7)
_, status = os.waitpid(child, 0)
assert os.waitstatus_to_exitcode(status) == 7, status
for n in range(3):
    assert start(later(n)).result(10) == n
assert library_loop() is loop
print("both")
"""
    )
    assert (ended.returncode, ended.stdout) == (0, "both\n"), ended.stderr


def test_it_needs_no_lock_when_a_signal_comes_while_it_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A handler that wants the loop, too, gets the same one."""
    made: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    within: list[asyncio.AbstractEventLoop] = []
    libraries: dict[int, Any] = {}
    monkeypatch.setattr("flow_core.homes._library", libraries)

    def interrupted() -> asyncio.AbstractEventLoop:
        monkeypatch.setattr(asyncio, "new_event_loop", made)
        within.append(library_loop())
        return made()

    monkeypatch.setattr(asyncio, "new_event_loop", interrupted)
    loop = library_loop()
    assert within == [loop]
    libraries[0].end()
    assert loop.is_closed()
