"""``flow run`` and ``flow explain``: load the target, open the engine, then run or explain."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, final

from flow_cli import _pipelines
from flow_cli._arguments import Call, prepare
from flow_cli._errors import UsageError, describe_error
from flow_cli._stopping import Stop, Stopped
from flow_cli._targets import Target, as_flow, target
from flow_core import hooks
from flow_core.connectable import Connectable
from flow_core.counting import counting
from flow_core.engine import OPTIONS, Engine, EngineOptions
from flow_core.errors import FlowTimeoutError, NotInstalledError, OnErrorNotImplementedError
from flow_core.flow import Flow
from flow_core.plugins import plugin_host
from flow_core.protocols import IterableSource
from flow_core.shutdown import Shutdown
from flow_core.signatures import signature_of
from flow_core.structure import boundary_of, moved, source_of

__all__ = ["FAILED", "explain_target", "run_target"]

FAILED: Final = 1
"""The exit code of a command whose flow has failed, or that cannot run."""

_FLUSH_S: Final = 0.05
_FLUSH_LINES: Final = 512
_MOST_NOTES: Final = 5
_WIDE: Final = 1000

_AnyFlow = Flow[Any]  # Any: of any items, as a user's flow


def run_target(options: argparse.Namespace, given: Sequence[str], stop: Stop) -> None:
    """Run the target; if it is a flow, print its items.

    Raises:
        UsageError: if the target, the engine or an option is wrong.
    """
    if _pipelines.is_pipeline(options.target):
        _run_pipeline(options, given, stop)
        return
    _check_engine(options)
    with target(options.target) as found:
        call = _call(found, given)
        with _engine(_settings(options, found.text), options.on, stop) as engine, _dropped():
            flow = _flow(found, call, engine)
            if flow is None:
                if options.limit is not None:
                    _note(f"{found.name}() returned no flow that --limit could have ended")
                if options.on != "local" and call is not None and not call.takes_engine:
                    _note(
                        f"{found.name}() takes no Engine, so that nothing of it ran on "
                        f"{options.on}; annotate its first parameter: (engine: Engine)"
                    )
                return
            if options.limit is not None:
                flow = flow.take(options.limit)
            with _drained(flow, engine, options) as (running, ending):
                _print(running, found.name, options.limit, ending)


def explain_target(options: argparse.Namespace, given: Sequence[str], stop: Stop) -> None:
    """Print the structure of the target's flow.

    Raises:
        UsageError: as for `run_target`.
    """
    for option in ("source", "plan"):
        if getattr(options, option) and options.format in {"svg", "mermaid"}:
            raise UsageError(
                f"--format {options.format} has no room for what --{option} shows; text and json do"
            )
    if _pipelines.is_pipeline(options.target):
        _explain_pipeline(options, given, stop)
        return
    _check_engine(options)
    with target(options.target) as found:
        if isinstance(found.value, Connectable):
            shared: Connectable[Any] = found.value  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # Any: of whatever items
            found = replace(found, value=shared.flow)  # noqa: PLW2901 - what it gives
        call = _call(found, given)
        if call is not None and _returns_nothing(call):
            raise UsageError(
                f"{found.name}() returns None: it would run its flow, and has none to explain; "
                "let a function return the Flow"
            )
        with _engine(_settings(options, found.text), options.on, stop) as engine:
            flow = _flow(found, call, engine)
            if flow is None:
                raise UsageError(f"{found.name}() returned None, which is not a flow to explain")
            _explain(flow, found.name, options)


def _explain(flow: _AnyFlow, title: str, options: argparse.Namespace, sink: str = "") -> None:
    """Print the structure of a flow, and of the sink behind it; exit if the flow is refused."""
    from flow_cli.drawing.parts import parts_of, refused, with_sink
    from flow_cli.drawing.tree import tree
    from flow_cli.explain import drawn

    parts = parts_of(flow, source=options.source, plan=options.plan)
    if sink:
        parts = with_sink(parts, sink)
    if options.format == "text":
        _console().print(tree(title, parts))
    else:
        print(drawn(parts, options.format, title))  # noqa: T201 - the command's output
    if refused(parts):
        sys.exit(FAILED)


def _run_pipeline(options: argparse.Namespace, given: Sequence[str], stop: Stop) -> None:
    """Run a pipeline's flow into its sink; without a sink, print the items."""
    pipeline = _pipelines.load(options, given)
    _check_engine(options)
    flow, sink = pipeline.flow(), pipeline.sink()
    if options.limit is not None:
        flow = flow.take(options.limit)
    settings = _settings(options, options.target, pipeline.engine_options.name)
    with _engine(settings, options.on, stop) as engine, _dropped():
        with _drained(engine.place(flow), engine, options) as (running, ending):
            if not pipeline.has_sink:
                _print(running, Path(options.target).stem, options.limit, ending)
                return
            if _is_one(running):
                running = running.take_until(ending)  # noqa: PLW2901 - the sink takes its items
            result: object = running.pipe(sink)
        if result is not None and not isinstance(result, int):
            _note(f"the sink {sink.name!r} gave {_kind(result)}, which nothing has used")


def _explain_pipeline(options: argparse.Namespace, given: Sequence[str], stop: Stop) -> None:
    pipeline = _pipelines.load(options, given)
    _check_engine(options)
    flow, sink = pipeline.flow(), pipeline.sink()
    settings = _settings(options, options.target, pipeline.engine_options.name)
    with _engine(settings, options.on, stop) as engine:
        _explain(engine.place(flow), Path(options.target).stem, options, repr(sink))


def _check_engine(options: argparse.Namespace) -> None:
    """Raise UsageError if ``--on`` is wrong, before any of the user's code is loaded."""
    if options.on is None:
        options.on = "local"
    host = plugin_host()
    host.engine(options.on)
    heeded = host.engines[options.on].spec.options
    for name in OPTIONS:
        if getattr(options, name) is not None and name not in heeded:
            able = [other for other, found in host.engines.items() if name in found.spec.options]
            hint = f"; --on {able[0]} does" if able else ""
            raise UsageError(f"the engine {options.on!r} takes no --{name}{hint}")


def _settings(options: argparse.Namespace, text: str, name: str = "") -> EngineOptions:
    given = {option: getattr(options, option) for option in OPTIONS}
    brief = options.command == "explain" or options.brief or options.limit is not None
    return EngineOptions(**given, name=name or f"flow run {text}", brief=brief)


@contextlib.contextmanager
def _engine(settings: EngineOptions, on: str, stop: Stop) -> Generator[Engine, None, None]:
    factory = plugin_host().engine(on)
    with contextlib.ExitStack() as stack:
        stack.callback(stop.leave_engine)
        stop.enter_engine()
        engine = stack.enter_context(factory(settings))
        stop.leave_engine()
        try:
            yield engine
        finally:
            stop.enter_engine()


@contextlib.contextmanager
def _drained(
    flow: _AnyFlow, engine: Engine, options: argparse.Namespace
) -> Generator[tuple[_AnyFlow, Shutdown], None, None]:
    """Return the flow to run.

    SIGTERM ends the flow's source; the items on their way are still handled.

    If the whole flow is one iterator, SIGTERM cannot end its source: the caller has to stop it.

    Raises:
        Stopped: when the flow has ended after SIGTERM, or did not end in time.
    """
    if not options.drain or engine.name != "local":
        yield flow, Shutdown()
        return
    ending = Shutdown(options.drain, signals=(signal.SIGTERM,))
    running = flow
    if not _is_one(flow):
        try:
            running = moved(flow, lambda source: source.take_until(ending))
        except NotInstalledError:  # without flow-ops only iterators can be ended
            yield flow, Shutdown()
            return
    said = f"SIGTERM: {options.drain:g} s for what is on its way; a second one stops at once"
    try:
        with Flow(ending).subscribe(on_complete=lambda: _note(said)), ending:
            yield running, ending
    except FlowTimeoutError:
        if not ending.late:
            raise
    if ending.begun:
        raise Stopped(signal.SIGTERM)


def _is_one(flow: _AnyFlow) -> bool:
    """Return whether the whole flow is one iterator."""
    return boundary_of(flow) is None and isinstance(source_of(flow), IterableSource)


def _call(found: Target, given: Sequence[str]) -> Call | None:
    """Return the target as a function with its arguments; None if the target is a flow."""
    value = found.value
    if as_flow(value) is not None:
        if given:
            raise UsageError(f"{found.name} is a flow and takes no options, such as {given[0]!r}")
        return None
    if not callable(value) or isinstance(value, type):
        raise UsageError(f"{found.text} is neither a Flow nor a function, but {_kind(value)}")
    return prepare(value, found.name, given)


def _flow(found: Target, call: Call | None, engine: Engine) -> _AnyFlow | None:
    """Return the flow to run, placed on the engine; None if a function has done all the work."""
    if call is None:
        flow = as_flow(found.value)
        return None if flow is None else engine.place(flow)
    made = call(engine)
    flow = as_flow(made)
    if flow is not None:
        # A function that takes the engine has placed its flows there.
        return flow if call.takes_engine else engine.place(flow)
    if made is not None:
        raise UsageError(f"{found.name}() returned a value that is not a Flow: {_kind(made)}")
    return None


def _kind(value: object) -> str:
    text = f"a {type(value).__name__}: {value!r}"
    text = text if len(text) <= 100 else f"{text[:97]}..."
    if hasattr(value, "__iter__") and not isinstance(value, str):
        text += "; flow_core.from_iterable() makes a flow of an iterable"
    if hasattr(value, "connect"):
        text += "; a connectable is started by connect(), its flow is what it gives subscribers"
    return text


def _returns_nothing(call: Call) -> bool:
    return signature_of(call.function).return_annotation in (None, "None")


def _print(flow: _AnyFlow, label: str, total: int | None, ending: Shutdown) -> None:
    """Print the items, one per line, with a bar on stderr, unless the flow has its own bar."""
    with contextlib.ExitStack() as stack:
        shows_itself = _has_progress(flow)
        counter = None if shows_itself else stack.enter_context(counting(label, total))
        lines = stack.enter_context(_Lines())
        items = iter(flow)
        close = getattr(items, "close", None)
        if close is not None:
            stack.callback(close)
        if _is_one(flow):
            items = _until_begun(items, ending)
        if counter is None:
            for item in items:
                lines.put(item)
        else:
            for item in items:
                counter.count += 1
                lines.put(item)


def _until_begun(items: Iterator[Any], ending: Shutdown) -> Iterator[Any]:
    """Yield `items` until `ending` has begun.

    ``take_until(ending)`` would add a stage to the flow, as if the user had written it.
    """
    for item in items:
        yield item
        if ending.begun:
            return


def _has_progress(flow: _AnyFlow) -> bool:
    boundary = boundary_of(flow)
    while boundary is not None:
        before, operator = boundary
        if operator.name == "progress":
            return True
        boundary = boundary_of(before)
    return False


@final
class _Lines:
    """Lines for stdout, written in batches, but no later than 1/20 s after they came.

    A reader that is slower than the flow slows the flow down: when a batch is full, `put` itself
    writes it.
    """

    __slots__ = ("_closed", "_failure", "_lock", "_thread", "_waiting")

    def __init__(self) -> None:
        self._waiting: deque[str] = deque()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._flush_often, name="flow-print", daemon=True)

    def put(self, item: object) -> None:
        if self._failure is not None:
            raise self._failure
        self._waiting.append(f"{item}\n")
        if len(self._waiting) >= _FLUSH_LINES:
            self._flush()

    def _flush(self) -> None:
        waiting = self._waiting
        with self._lock:
            lines = [waiting.popleft() for _ in range(len(waiting))]
            if not lines:
                return
            try:
                sys.stdout.write("".join(lines))
            except UnicodeEncodeError:
                # Nothing of the text was written: now write up to the line that cannot be encoded.
                for line in lines:
                    sys.stdout.write(line)
            finally:
                sys.stdout.flush()

    def _flush_often(self) -> None:
        while not self._closed.wait(_FLUSH_S):
            try:
                self._flush()
            except Exception as error:  # such as an error of the encoding; `put` raises it
                self._failure = error
                return

    def __enter__(self) -> _Lines:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closed.set()
        self._thread.join()
        if self._failure is None:
            self._flush()
        elif error is None:
            raise self._failure


@contextlib.contextmanager
def _dropped() -> Generator[None, None, None]:
    """Print the errors that no subscriber got; fail if one of them has ended a flow."""
    dropped: list[BaseException] = []
    with hooks.dropped_errors.scoped("flow run", dropped.append):
        yield
    failed = next((one for one in dropped if isinstance(one, OnErrorNotImplementedError)), None)
    others = [one for one in dropped if one is not failed]
    for one in others[:_MOST_NOTES]:
        text = "\n  ".join(describe_error(one))
        _note(f"an error that no subscriber could receive: {text}")
    if len(others) > _MOST_NOTES:
        _note(f"and {len(others) - _MOST_NOTES} more errors that no subscriber could receive")
    if failed is not None:
        raise failed.__cause__ or failed


def _note(text: str) -> None:
    print(f"flow: note: {text}", file=sys.stderr)  # noqa: T201 - the command's own output


def _console() -> Any:  # Any: rich's Console, which is imported only for drawing
    from rich.console import Console

    # Nothing is cut off without a terminal.
    return Console(width=None if sys.stdout.isatty() else _WIDE, highlight=False)
