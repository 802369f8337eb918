"""SIGTERM and Ctrl-C: sources end, what is on its way is done, and then the program ends."""

from __future__ import annotations

import asyncio
import signal
import socket
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

import flow_core as flow
from flow_testing import TIMEOUT_S, race

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals"),
]

Start = Callable[..., "Program"]


class Program:
    """A program in a separate process, which says ``ready`` when it may be signalled."""

    def __init__(self, command: list[str], folder: Path) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=folder)

    def await_line(self, text: str) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.strip() == text:
                return
        raise AssertionError(self.process.communicate()[1])

    def send(self, signum: int) -> None:
        self.process.send_signal(signum)

    def end(self) -> tuple[int, list[str], str]:
        """The exit code, the lines that were not read, and the text about errors."""
        out, err = self.process.communicate(timeout=TIMEOUT_S)
        return self.process.returncode, out.splitlines(), err


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Program] = []

    def start(text: str, *command: str) -> Program:
        path = tmp_path / "program.py"
        path.write_text(textwrap.dedent(text))
        made = Program([sys.executable, *(command or (str(path),))], tmp_path)
        started.append(made)
        return made

    yield start
    for each in started:
        each.process.kill()
        each.process.communicate()


WORK = """
    import asyncio, signal, threading, time
    import flow_core as flow

    begun, done = [], []

    def every():
        return flow.interval(0.01, overflow="drop")

    def work(n):
        begun.append(n)
        if n == 2:
            print("ready", flush=True)
        time.sleep(0.2)
        done.append(n)

    async def work_too(n):
        begun.append(n)
        if n == 2:
            print("ready", flush=True)
        await asyncio.sleep(0.2)
        done.append(n)

    async def never(n):
        print("ready", flush=True)
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            print("cancelled", flush=True)
            raise
"""

BLOCKING = """
    with flow.Shutdown() as stop:
        every().take_until(stop).do_concurrent(work, 4).run()
    print("all" if sorted(begun) == sorted(done) else (begun, done))
"""

IN_A_LOOP = """
    async def main():
        async with flow.Shutdown() as stop:
            await every().take_until(stop).do_concurrent(work_too, 4).run_async()
        print("all" if sorted(begun) == sorted(done) else (begun, done))

    asyncio.run(main())
"""

IN_A_THREAD = """
    def runs(stop):
        every().take_until(stop).do_concurrent(work, 3).run()

    # Three: the last thread that is started says "ready". Linux may give a signal to a thread that
    # is about to start another one, and then join() does not hear it.
    with flow.Shutdown() as stop:
        thread = threading.Thread(target=runs, args=(stop,))
        thread.start()
        thread.join()
    print("all" if sorted(begun) == sorted(done) else (begun, done))
"""

SUBSCRIBED = """
    with flow.Shutdown() as stop:
        source = every().take_until(stop).do_concurrent(work, 4)
        with source.subscribe(lambda n: None) as handle:
            handle.wait()
    print("all" if sorted(begun) == sorted(done) else (begun, done))
"""

SEVERAL = """
    with flow.Shutdown() as stop:
        ticks = every().take_until(stop).do_concurrent(work, 2)
        pulled = flow.from_iterable(iter(int, 1)).take_until(stop).do_concurrent(work, 2)
        ticks.merge(pulled).run()
    print("all" if len(begun) == len(done) else (begun, done))
"""


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    "program",
    [BLOCKING, IN_A_LOOP, IN_A_THREAD, SUBSCRIBED, SEVERAL],
    ids=["blocking", "in a loop", "in a thread", "subscribed", "several"],
)
def test_items_that_have_begun_are_done_before_the_program_ends(
    start: Start, program: str, signum: int
) -> None:
    running = start(WORK + program)
    running.await_line("ready")
    running.send(signum)
    assert running.end() == (0, ["all"], "")


LATE = """
    with flow.Shutdown(limit=0.2) as stop:
        every().take_until(stop).map_concurrent(never, 1).run()
"""

LATE_IN_A_LOOP = """
    async def main():
        async with flow.Shutdown(limit=0.2) as stop:
            await every().take_until(stop).map_concurrent(never, 1).run_async()

    asyncio.run(main())
"""

LATE_ITERATOR = """
    def waits():
        try:
            yield 1
            print("ready", flush=True)
            time.sleep(3600)
        finally:
            print("cancelled", flush=True)

    with flow.Shutdown(limit=0.2) as stop:
        flow.from_iterable(waits()).take_until(stop).run()
"""


LATE_AT_THE_END = """
    def stores(numbers):
        time.sleep(3600)

    def begun(n):
        if n == 2:
            print("ready", flush=True)

    try:
        with flow.Shutdown(limit=0.2) as stop:
            every().do_on_next(begun).take_until(stop).batch(10**6).do_on_next(stores).run()
    finally:
        print("cancelled", flush=True)
"""


@pytest.mark.parametrize(
    "program",
    [LATE, LATE_IN_A_LOOP, LATE_ITERATOR, LATE_AT_THE_END],
    ids=["blocking", "in a loop", "an iterator", "what the end sets off"],
)
def test_items_that_take_too_long_are_cancelled_and_reported(start: Start, program: str) -> None:
    running = start(WORK + program)
    running.await_line("ready")
    running.send(signal.SIGTERM)
    code, lines, error = running.end()
    assert (code, lines) == (1, ["cancelled"])
    assert "FlowTimeoutError: items on their way were not done 0.2 s after the shutdown" in error
    assert "During handling" not in error


TWICE = """
    with flow.Shutdown() as stop:
        stop.subscribe(flow_testing.TestSubscriber())
        flow.from_(stop).subscribe(on_complete=lambda: print("begun", flush=True))
        every().take_until(stop).map_concurrent(never, 1).run()
"""

TWICE_IN_A_LOOP = """
    async def main():
        async with flow.Shutdown() as stop:
            flow.from_(stop).subscribe(on_complete=lambda: print("begun", flush=True))
            await every().take_until(stop).map_concurrent(never, 1).run_async()

    asyncio.run(main())
"""


@pytest.mark.parametrize("program", [TWICE, TWICE_IN_A_LOOP], ids=["blocking", "in a loop"])
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_does_what_it_would_do_without_the_block(
    start: Start, program: str, second: int
) -> None:
    running = start(WORK + "    import flow_testing\n" + program)
    running.await_line("ready")
    running.send(signal.SIGTERM)
    running.await_line("begun")
    running.send(second)
    code, lines, error = running.end()
    if second == signal.SIGTERM:
        assert (code, lines, error) == (-signal.SIGTERM, [], "")
    else:
        assert (code, lines) == (-signal.SIGINT, ["cancelled"])
        assert "KeyboardInterrupt" in error


# -- flow run

JOBS = """
    import asyncio
    import itertools
    import time
    import flow_core as flow

    def every():
        return flow.interval(0.01, overflow="drop")

    begun = itertools.count()

    async def slow(_):
        n = next(begun)  # of those that are not dropped
        if n == 2:
            print("ready", flush=True)
        await asyncio.sleep(0.2)
        return f"{n} is done"

    async def never(n):
        print("ready", flush=True)
        await asyncio.sleep(3600)

    def by_itself():
        with flow.Shutdown() as stop:
            every().take_until(stop).map_concurrent(slow, 4).for_each(print)
        print("left")

    ticks = every().map_concurrent(slow, 4)
    pulled = flow.from_iterable(iter(range(10**9))).map_concurrent(slow, 4)
    def counted():
        for n in range(10**9):
            if n == 2:
                print("ready", flush=True)
            time.sleep(0.01)
            yield f"{n} is done"

    numbers = flow.from_iterable(counted())
    stuck = every().map_concurrent(never, 1)
"""


@pytest.mark.parametrize("job", ["ticks", "pulled"])
def test_a_flow_that_the_command_runs_ends_at_its_source(start: Start, job: str) -> None:
    running = start(JOBS, "-m", "flow_cli", "run", f"program.py:{job}")
    running.await_line("ready")
    running.send(signal.SIGTERM)
    code, lines, error = running.end()
    assert code == 128 + signal.SIGTERM
    assert [*lines[-3:]] == [f"{n} is done" for n in range(len(lines) - 3, len(lines))]
    assert len(lines) >= 3, "the third was on its way"
    assert "SIGTERM: 8 s for what is on its way; a second one stops at once" in error


@pytest.mark.parametrize("options", [["--drain", "0.2"], ["--drain", "0"], []])
def test_a_flow_that_does_not_end_is_stopped_by_the_limit_or_a_second_signal(
    start: Start, options: list[str]
) -> None:
    running = start(JOBS, "-m", "flow_cli", "run", "program.py:stuck", *options)
    running.await_line("ready")
    running.send(signal.SIGTERM)
    if not options:
        assert running.process.stderr is not None
        assert "a second one" in running.process.stderr.readline()
        running.send(signal.SIGTERM)
    code, _, error = running.end()
    assert code == 128 + signal.SIGTERM
    assert "flow: stopped" in error or "ended by force" in error, "where 1.7 s were not enough"
    assert "Traceback" not in error


def test_a_function_that_the_command_calls_has_its_own_shutdown(start: Start) -> None:
    running = start(JOBS, "-m", "flow_cli", "run", "program.py:by_itself")
    running.await_line("ready")
    running.send(signal.SIGTERM)
    code, lines, error = running.end()
    assert (code, lines[-1], error) == (0, "left", "")
    assert lines[:-1] == [f"{n} is done" for n in range(len(lines) - 1)]


PIPELINE = """
    [source]
    object = "program:{source}"

    [sink]
    use = "write_json_lines"
    path = "out.jsonl"
"""


@pytest.mark.parametrize("source", ["ticks", "numbers"])
def test_a_pipeline_writes_what_was_on_its_way(start: Start, source: str, tmp_path: Path) -> None:
    (tmp_path / "pipeline.toml").write_text(textwrap.dedent(PIPELINE.format(source=source)))
    command = ("from flow_cli import main", "raise SystemExit(main())")
    running = start(JOBS, "-c", "; ".join(command), "run", "pipeline.toml")
    running.await_line("ready")
    running.send(signal.SIGTERM)
    code, _, error = running.end()
    assert code == 128 + signal.SIGTERM, error
    written = (tmp_path / "out.jsonl").read_text().splitlines()
    assert written == [f'"{n} is done"' for n in range(len(written))]
    assert len(written) >= 3


# -- a web server

SERVER = """
    from contextlib import asynccontextmanager
    import uvicorn
    from starlette.applications import Starlette
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    @asynccontextmanager
    async def lifespan(app):
        async with flow.Shutdown() as app.state.stop:
            app.state.ticks = every().take_until(app.state.stop)
            working = asyncio.ensure_future(app.state.ticks.do_concurrent(work_too, 4).run_async())
            yield
            await working
        print("all" if sorted(begun) == sorted(done) else (begun, done))

    async def events(request):
        each = request.app.state.ticks.map(lambda n: f"data: {n}\\n\\n")
        return StreamingResponse(each.concat(flow.just("data: end\\n\\n")))

    app = Starlette(routes=[Route("/events", events)], lifespan=lifespan)
    uvicorn.run(app, port=PORT, log_level="warning")
"""


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_web_server_ends_its_streams_and_its_work(start: Start, signum: int) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = start(WORK + SERVER.replace("PORT", str(port)))
    running.await_line("ready")
    with httpx.stream("GET", f"http://127.0.0.1:{port}/events", timeout=TIMEOUT_S) as response:
        events = response.iter_lines()
        assert next(events) == "data: 0"
        running.send(signum)
        assert [*events][-2] == "data: end"
    code, lines, error = running.end()
    assert lines == ["all"]
    assert code in {0, -signum}, "uvicorn raises the signal again at its end"
    assert "Traceback" not in error or signum == signal.SIGINT


# -- in this process


def handlers() -> list[object]:
    return [signal.getsignal(signum) for signum in (signal.SIGTERM, signal.SIGINT)]


def test_leaving_the_block_restores_the_handlers_of_before() -> None:
    before = handlers()
    with flow.Shutdown(), flow.Shutdown(signals=[signal.SIGTERM]):
        assert handlers() != before
    assert handlers() == before

    async def main() -> list[object]:
        in_the_loop = handlers()
        async with flow.Shutdown():
            assert handlers() != in_the_loop
        assert handlers() == in_the_loop
        return in_the_loop

    asyncio.run(main())
    assert handlers() == before


def test_a_block_within_a_block_begins_with_it_and_a_users_handler_is_called() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda signum, _: heard.append(signum))
    try:
        with flow.Shutdown() as outer, flow.Shutdown() as inner:
            signal.raise_signal(signal.SIGTERM)
            for stop in (outer, inner):
                flow.Flow(stop).run()  # until it begins
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [signal.SIGTERM]


def test_a_program_may_begin_it_itself_and_the_limit_holds() -> None:
    with pytest.raises(flow.FlowTimeoutError), flow.Shutdown(limit=0.01) as stop:
        stop.begin()
        flow.never().run()
    assert stop.late

    async def main() -> None:
        async with flow.Shutdown(limit=0.01) as stop:
            race(stop.begin)  # in another thread
            await flow.never().run_async()

    with pytest.raises(flow.FlowTimeoutError):
        asyncio.run(main())


def test_without_a_limit_there_is_any_time() -> None:
    with flow.Shutdown(limit=None) as stop:
        stop.begin()
        assert flow.timer(0.02).first() == 0
    assert not stop.late


def test_in_another_thread_a_block_watches_no_signals() -> None:
    before = handlers()

    def elsewhere() -> None:
        with flow.Shutdown(limit=0) as stop:
            assert handlers() == before
            stop.begin()
            flow.timer(0.01).run()

    race(elsewhere)


def test_an_error_of_the_block_is_that_of_the_block() -> None:
    with pytest.raises(LookupError), flow.Shutdown() as stop:
        stop.begin()
        raise LookupError
    assert not stop.late


def test_a_plain_block_is_refused_in_an_event_loop() -> None:
    async def main() -> None:
        with pytest.raises(flow.FlowError, match="async with"), flow.Shutdown():
            pass

    asyncio.run(main())


@pytest.mark.parametrize(("limit", "error"), [(-1, ValueError), ("8", TypeError)])
def test_a_limit_is_a_time(limit: float, error: type[Exception]) -> None:
    with pytest.raises(error, match="limit"):
        flow.Shutdown(limit)


def test_flows_end_at_their_source_and_not_below() -> None:
    stop = flow.Shutdown()
    go_on = threading.Event()
    seen: list[int] = []

    def slow(n: int) -> int:
        if n == 2:
            stop.begin()
            go_on.set()
        assert go_on.wait(TIMEOUT_S)
        return n

    for source in (flow.from_iterable(range(10**9)), flow.range(10**9).hide()):
        stop, go_on = flow.Shutdown(), threading.Event()
        seen = source.take_until(stop).map_concurrent(slow, 3).to_list().first()
        assert seen[:3] == [0, 1, 2]
        assert len(seen) < 10_000
        assert list(source.take_until(stop)) in ([], [0])
