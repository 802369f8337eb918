"""Shows the progress of a flow: a bar with items per second, on a terminal or in a notebook."""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, final

from typing_extensions import override

from flow_core.counting import Counter, Display, Outcome
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import IterableSource
from flow_core.stages import Program, Stage, Template
from flow_core.structure import source_of, stages_of

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

__all__ = ["RichDisplay", "display", "progress"]

T = TypeVar("T")

_REFRESH_S: Final = 0.1
_TERMINAL_GONE: Final = (OSError, ValueError)


def progress(label: str, total: int | None = None) -> Operator[T, Flow[T]]:
    """Show how many items pass this operator, and how many per second, while the flow runs.

    >>> import flow_core as flow
    >>> list(flow.range(3).pipe(progress("counting", total=3)))
    [0, 1, 2]

    Every subscriber has its own bar. Without a terminal or a notebook, nothing is shown or counted.
    This is a boundary: it stays in this process if the operators before it run elsewhere. Demand:
    passed on.
    Thread: the upstream's. Fusion: SYNC if the upstream is an iterator.

    Args:
        label: the text beside the bar.
        total: how many items are expected; None if that is not known.
    """
    detail = repr(label) if total is None else f"{label!r}, total={total}"

    def apply(flow: Flow[T]) -> Flow[T]:
        pulled = isinstance(source_of(flow), IterableSource)
        shown: Stage[T, T] = Stage(PROGRESS, label, total)
        return Flow(_Items(flow) if pulled else flow)._then(shown.located())

    return Operator("progress", apply, detail)


@final
class _Items(IterableSource[T]):
    """The items of a synchronous flow, which stays where it is."""

    __slots__ = ("_flow", "calls_user_code")

    none_free: ClassVar[bool] = True

    def __init__(self, flow: Flow[T]) -> None:
        self._flow = flow
        program: Program[Any, Any] = Program(stages_of(flow))  # Any: the types do not matter
        self.calls_user_code = program.calls_user_code

    @override
    def iterate(self) -> Iterator[T]:
        return iter(self._flow)

    def __repr__(self) -> str:
        return repr(self._flow)


@final
class _Shown(Counter):
    """A counter with a bar, for the operator `progress`."""

    __slots__ = ("outcome",)

    def __init__(self, label: str, total: int | None) -> None:
        super().__init__(total)
        self.outcome = Outcome.STOPPED
        _display.add(self, label)

    def end(self, *, done: bool) -> None:
        self.outcome = Outcome.DONE if done else Outcome.FAILED

    def close(self) -> None:
        _display.end(self, self.outcome)


PROGRESS: Final = Template(
    "progress",
    params=("label", "total"),
    state="shown = _Shown(label, total)",
    on_item="""
    shown.count += 1
    EMIT
    """,
    on_end="shown.end(done=True)",
    on_error="shown.end(done=False)",
    on_close="shown.close()",
    helpers=(_Shown,),
)


@final
class _Bar:
    """The bar of one counter, with its speed over the last second."""

    __slots__ = ("_marked_at", "_marked_count", "_speed", "_started_at", "counter", "task")

    def __init__(self, counter: Counter, task: TaskID) -> None:
        self.counter = counter
        self.task = task
        self._started_at = self._marked_at = time.monotonic()
        self._marked_count = 0
        self._speed = 0.0

    def draw(self, progress: Progress, outcome: Outcome | None = None) -> None:
        text, counter = self._text(outcome), self.counter
        if counter.total is not None:
            progress.update(self.task, total=counter.total)
        progress.update(self.task, completed=counter.count, text=text)

    def _text(self, outcome: Outcome | None) -> str:
        counter = self.counter
        count, unit, now = counter.count, counter.unit, time.monotonic()
        elapsed = max(now - self._started_at, 1e-9)
        since = now - self._marked_at
        if outcome is not None or elapsed < 1:
            self._speed = count / elapsed
        elif since >= 1:
            self._speed = (count - self._marked_count) / since
            self._marked_at, self._marked_count = now, count
        minutes, seconds = divmod(elapsed, 60)
        amount = f"{count:,} {unit}{counter.note}"
        text = f"{amount}  {self._speed:,.0f} {unit}/s  {minutes:.0f}:{seconds:04.1f}"
        return text if outcome in (None, Outcome.DONE) else f"{text}  {outcome.value}"


@final
class RichDisplay(Display):
    """All bars of this process, in one region of the terminal; one thread updates them.

    The thread reads the counters ten times a second, so that an item costs one addition. It runs as
    long as there is a bar that has not ended. If the terminal goes away, no flow stops.

    Args:
        visible: returns whether there is a terminal to draw on.
        console: makes the console to draw on, when the first bar appears.
    """

    __slots__ = ("_bars", "_lock", "_progress", "_stopped", "_thread", "console", "visible")

    def __init__(self, visible: Callable[[], bool], console: Callable[[], Console]) -> None:
        self.visible = visible
        self.console = console
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._bars: dict[Counter, _Bar] = {}
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()

    @override
    def add(self, counter: Counter, label: str) -> None:
        """Show a counter; the first one starts the thread."""
        if not self.visible():
            return
        with self._lock, contextlib.suppress(*_TERMINAL_GONE):
            progress = self._progress or self._start()
            task = progress.add_task(label, total=counter.total, text=f"0 {counter.unit}")
            self._bars[counter] = _Bar(counter, task)
            counter.shown = True

    def _start(self) -> Progress:
        self._progress = progress = _new_progress(self.console())
        progress.start()
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=self._refresh, args=(self._stopped,), name="flow-progress", daemon=True
        )
        self._thread.start()
        return progress

    @override
    def end(self, counter: Counter, outcome: Outcome) -> None:
        """End a counter's bar; the last one stops the thread."""
        thread: threading.Thread | None = None
        with self._lock, contextlib.suppress(*_TERMINAL_GONE):
            bar = self._bars.pop(counter, None)
            progress = self._progress
            if bar is None or progress is None:
                return
            if not self._bars:
                self._stopped.set()
                thread, self._thread, self._progress = self._thread, None, None
            if outcome is Outcome.DONE:
                counter.total = counter.count
            bar.draw(progress, outcome)
            if thread is not None:
                progress.stop()
            else:
                progress.refresh()
        if thread is not None:
            thread.join()

    @override
    def drawn(self, flow: Flow[Any]) -> Mapping[str, str]:  # Any: of any items
        from flow_cli.explain import explain  # rich, which is slow to import

        return {"text/html": explain(flow, format="svg", title=type(flow).__name__)}

    def _refresh(self, stopped: threading.Event) -> None:
        while not stopped.wait(_REFRESH_S):
            with self._lock, contextlib.suppress(*_TERMINAL_GONE):
                progress = self._progress
                if stopped.is_set() or progress is None:
                    return
                for bar in self._bars.values():
                    bar.draw(progress)
                progress.refresh()


def _new_progress(console: Console) -> Progress:
    from rich.progress import BarColumn, Progress, TextColumn

    kind = _cell_progress() if console.record else Progress
    return kind(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[text]}", markup=False),
        console=console,
        auto_refresh=False,
        # Redirected, the output of a program goes above the bars; but output that is meant for a
        # file never goes to the terminal.
        redirect_stdout=sys.stdout.isatty(),
    )


def _cell_progress() -> type[Progress]:
    """Return a class of `Progress` that draws below the cell of a notebook, without widgets."""
    from rich.progress import Progress

    # Any: this package does not require it.
    handle: Any = importlib.import_module("IPython.display").DisplayHandle

    class CellProgress(Progress):
        """The bars are a single output of the cell, which is replaced each time."""

        def start(self) -> None:
            self._cell = handle()
            self._cell.display(self._drawn(), raw=True)

        def refresh(self) -> None:
            cell = getattr(self, "_cell", None)  # rich refreshes before it starts
            if cell is not None:
                cell.update(self._drawn(), raw=True)

        def stop(self) -> None:
            self.refresh()

        def _drawn(self) -> dict[str, str]:
            console = self.console
            console.print(self.get_renderable())
            shown = console.export_html(
                inline_styles=True, code_format="<pre>{code}</pre>", clear=False
            )
            return {"text/plain": console.export_text(), "text/html": shown}

    return CellProgress


def _in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook, which can display objects."""
    python = sys.modules.get("IPython")
    return python is not None and hasattr(python.get_ipython(), "kernel")


def _is_seen() -> bool:
    return (sys.stderr is not None and sys.stderr.isatty()) or _in_notebook()


def _console() -> Console:
    from rich.console import Console

    if _in_notebook():
        return Console(file=io.StringIO(), width=100, record=True, force_jupyter=False)
    return Console(stderr=True)


_display: Final = RichDisplay(_is_seen, _console)


def display() -> RichDisplay:
    """Return the display that all bars of this process are drawn on."""
    return _display
