"""Show how far a flow has come: a bar with rows/s on stderr, if that is a terminal."""

from __future__ import annotations

import contextlib
import enum
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, final

from flow_core import hooks
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import (
    ConditionalSubscriber,
    CoreSubscriber,
    IterableSource,
    Publisher,
    Subscriber,
    Subscription,
)
from flow_core.stages.compiler import Program, close_iterator
from flow_core.stages.template import Stage, Template
from flow_core.subscribers.strict import core_subscriber

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

__all__ = ["Counter", "counting", "progress"]

T = TypeVar("T")

_REFRESH_S: Final = 0.1
_TERMINAL_GONE: Final = (OSError, ValueError)


@final
class Counter:
    """What is counted, in items: raised by one thread, read now and then by the display's."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Outcome(enum.Enum):
    """How something that was counted has ended."""

    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


def progress(label: str, total: int | None = None) -> Operator[T, Flow[T]]:
    """Show the number of items that pass here, and items per second, while the flow runs.

    >>> import flow_core as flow
    >>> list(flow.range(3).pipe(progress("counting", total=3)))
    [0, 1, 2]

    Every subscriber has a bar of its own. Without a terminal nothing is shown or counted. It is a
    boundary: it stays in this process when what is before it runs elsewhere. Demand: passed on.
    Thread: the upstream's. Fusion: SYNC if the upstream is an iterator.

    Args:
        label: what the items are.
        total: how many items are expected; None if nobody knows.
    """
    detail = repr(label) if total is None else f"{label!r}, total={total}"
    counted: Operator[Any, Flow[Any]] = Operator(  # Any: T, in a variable
        "progress",
        lambda flow: Flow(
            _CountedItems(flow, label, total)
            if isinstance(flow.source, IterableSource)
            else _CountedSource(flow, label, total)
        ),
        detail,
    )

    def apply(flow: Flow[T]) -> Flow[T]:
        made: Flow[T] = flow.pipe(counted)
        if Program[Any, Any](flow.stages).calls_user_code:
            return made.then(Stage(_SAME_THREAD, user_code_before_progress))
        return made

    return Operator("progress", apply, detail)


@contextlib.contextmanager
def counting(label: str, total: int | None = None) -> Generator[Counter, None, None]:
    """Show a count that a ``with`` block raises, as `progress` does for items of a flow.

    >>> with counting("rows") as rows:
    ...     for row in "abc":
    ...         rows.count += 1
    >>> rows.count
    3

    Args:
        label: what is counted.
        total: how many are expected; None if nobody knows.
    """
    counter = Counter()
    display = _display
    display.add(counter, label, total)
    outcome = Outcome.DONE
    try:
        yield counter
    except Exception:
        outcome = Outcome.FAILED
        raise
    except BaseException:
        outcome = Outcome.STOPPED
        raise
    finally:
        display.end(counter, outcome)


_SAME_THREAD: Final = Template("same_thread", params=("because",), state="_ = because()")
"""Leaves items alone, but counts as user code: what is before it must not change thread (F39)."""


def user_code_before_progress() -> bool:
    """Why a flow has to stay on its thread."""
    return True


@final
class _CountedItems(IterableSource[T]):
    """The items of a synchronous flow, counted on their way through a generator."""

    __slots__ = ("_flow", "_label", "_total")

    none_free: ClassVar[bool] = True

    def __init__(self, flow: Flow[T], label: str, total: int | None) -> None:
        self._flow = flow
        self._label = label
        self._total = total

    def iterate(self) -> Iterator[T]:
        """See `IterableSource.iterate`."""
        items = iter(self._flow)
        return _counted(items, self._label, self._total) if _display.visible() else items

    def __repr__(self) -> str:
        return f"progress({self._label!r})"


def _counted(items: Iterator[T], label: str, total: int | None) -> Iterator[T]:
    # The bar begins with the first item: a generator that was not started is not closed either.
    with counting(label, total) as counter:
        try:
            for item in items:
                counter.count += 1
                yield item
        finally:
            close_iterator(items)


@final
class _CountedSource(Publisher[T]):
    """The items of any other flow, counted as they are signalled."""

    __slots__ = ("_flow", "_label", "_total")

    def __init__(self, flow: Flow[T], label: str, total: int | None) -> None:
        self._flow = flow
        self._label = label
        self._total = total

    def subscribe(self, subscriber: Subscriber[T], /) -> None:
        """See `Publisher.subscribe`."""
        downstream = core_subscriber(subscriber)
        if _display.visible():
            self._flow.subscribe(_CountingSubscriber(downstream, self._label, self._total))
        else:
            self._flow.subscribe(downstream)

    def __repr__(self) -> str:
        return f"progress({self._label!r})"


@final
class _CountingSubscriber(ConditionalSubscriber[T]):
    """Counts each item and passes every signal on. Takes no part in queue fusion."""

    __slots__ = ("_conditional", "_counter", "_downstream", "_offer", "_upstream")

    def __init__(self, downstream: CoreSubscriber[T], label: str, total: int | None) -> None:
        self._downstream: CoreSubscriber[T] | None = downstream
        self._conditional = isinstance(downstream, ConditionalSubscriber)
        self._offer: Callable[[T], object] = (
            downstream.try_on_next
            if isinstance(downstream, ConditionalSubscriber)
            else downstream.on_next
        )
        self._upstream: Subscription | None = None
        self._counter = Counter()
        _display.add(self._counter, label, total)

    def on_subscribe(self, subscription: Subscription, /) -> None:
        """See `Subscriber.on_subscribe`."""
        if self._upstream is not None or self._downstream is None:
            subscription.cancel()  # §2.5
            return
        self._upstream = subscription
        try:
            self._downstream.on_subscribe(self)
        except BaseException:
            self._end(Outcome.FAILED)
            raise

    def on_next(self, item: T, /) -> None:
        """See `Subscriber.on_next`. What the downstream raises travels on to the upstream."""
        if not self.try_on_next(item) and self._upstream is not None:
            self._upstream.request(1)

    def try_on_next(self, item: T, /) -> bool:
        """See `ConditionalSubscriber.try_on_next`."""
        self._counter.count += 1
        used = self._offer(item)
        return bool(used) if self._conditional else True

    def on_next_raised(self, error: BaseException, /) -> bool:
        """See `CoreSubscriber.on_next_raised`."""
        downstream = self._end(Outcome.FAILED)
        return downstream is not None and downstream.on_next_raised(error)

    def on_error(self, error: BaseException, /) -> None:
        """See `Subscriber.on_error`."""
        downstream = self._end(Outcome.FAILED)
        if downstream is not None:
            downstream.on_error(error)

    def on_complete(self) -> None:
        """See `Subscriber.on_complete`."""
        downstream = self._end(Outcome.DONE)
        if downstream is not None:
            downstream.on_complete()

    def request(self, n: int, /) -> None:
        """See `Subscription.request`."""
        if self._upstream is not None:
            self._upstream.request(n)

    def cancel(self) -> None:
        """See `Subscription.cancel`."""
        self._end(Outcome.STOPPED)
        if self._upstream is not None:
            self._upstream.cancel()

    def _end(self, outcome: Outcome) -> CoreSubscriber[T] | None:
        downstream, self._downstream = self._downstream, None
        self._offer = hooks.drop_item  # §3.13
        _display.end(self._counter, outcome)
        return downstream


@final
class _Bar:
    """One counter on the screen, and its speed over the last second."""

    __slots__ = ("_marked_at", "_marked_count", "_speed", "_started_at", "counter", "task")

    def __init__(self, counter: Counter, task: TaskID) -> None:
        self.counter = counter
        self.task = task
        self._started_at = self._marked_at = time.monotonic()
        self._marked_count = 0
        self._speed = 0.0

    def text(self, outcome: Outcome | None = None) -> str:
        count, now = self.counter.count, time.monotonic()
        elapsed = max(now - self._started_at, 1e-9)
        since = now - self._marked_at
        if outcome is not None or elapsed < 1:
            self._speed = count / elapsed
        elif since >= 1:
            self._speed = (count - self._marked_count) / since
            self._marked_at, self._marked_count = now, count
        minutes, seconds = divmod(elapsed, 60)
        text = f"{count:,} rows  {self._speed:,.0f} rows/s  {minutes:.0f}:{seconds:04.1f}"
        return text if outcome in (None, Outcome.DONE) else f"{text}  {outcome.value}"


@final
class Display:
    """All bars of this process, in one region of the terminal, kept fresh by one thread.

    The thread reads the counters ten times a second, so that an item costs one addition. It lives
    while there is a bar that has not ended. A terminal that goes away stops no flow.

    Args:
        visible: whether there is a terminal to draw on.
        console: makes the console for it, when the first bar appears.
    """

    __slots__ = ("_bars", "_console", "_lock", "_progress", "_stopped", "_thread", "visible")

    def __init__(self, visible: Callable[[], bool], console: Callable[[], Console]) -> None:
        self.visible = visible
        self._console = console
        self._lock = threading.Lock()
        self._progress: Progress | None = None
        self._bars: dict[Counter, _Bar] = {}
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()

    def add(self, counter: Counter, label: str, total: int | None) -> None:
        """Show `counter`; the first one starts the display."""
        if not self.visible():
            return
        with self._lock, contextlib.suppress(*_TERMINAL_GONE):
            progress = self._progress or self._start()
            task = progress.add_task(label, total=total, text="0 rows")
            self._bars[counter] = _Bar(counter, task)

    def _start(self) -> Progress:
        self._progress = progress = _new_progress(self._console())
        progress.start()
        self._stopped = threading.Event()
        self._thread = threading.Thread(
            target=self._refresh, args=(self._stopped,), name="flow-progress", daemon=True
        )
        self._thread.start()
        return progress

    def end(self, counter: Counter, outcome: Outcome) -> None:
        """Draw the last count of `counter`; the last one stops the display. Idempotent."""
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
                progress.update(bar.task, total=counter.count)
            progress.update(bar.task, completed=counter.count, text=bar.text(outcome))
            if thread is not None:
                progress.stop()
            else:
                progress.refresh()
        if thread is not None:
            thread.join()

    def _refresh(self, stopped: threading.Event) -> None:
        while not stopped.wait(_REFRESH_S):
            with self._lock, contextlib.suppress(*_TERMINAL_GONE):
                progress = self._progress
                if stopped.is_set() or progress is None:
                    return
                for bar in self._bars.values():
                    progress.update(bar.task, completed=bar.counter.count, text=bar.text())
                progress.refresh()


def _new_progress(console: Console) -> Progress:
    from rich.progress import BarColumn, Progress, TextColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[text]}", markup=False),
        console=console,
        auto_refresh=False,
        # Redirected, what a program prints goes above the bars; but never into the terminal when
        # it is meant for a file.
        redirect_stdout=sys.stdout.isatty(),
    )


def _stderr_is_a_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _stderr() -> Console:
    from rich.console import Console

    return Console(stderr=True)


_display = Display(_stderr_is_a_terminal, _stderr)
