"""The progress bar: what it shows, and that it ends whenever the flow does."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import flow_core as flow
from flow_cli.progress import progress
from flow_cli.testing import Screen, recorded_screen
from flow_core import CoreSubscriber, Flow, Fusion, QueueSubscription, Subscription, structure
from flow_core.counting import counting
from flow_testing import TIMEOUT_S, assert_result


@pytest.fixture
def screen() -> Iterator[Screen]:
    with recorded_screen() as screen:
        yield screen
    assert "flow-progress" not in [thread.name for thread in threading.enumerate()]


def asynchronous(source: Flow[Any]) -> Flow[Any]:
    """The same items, from what is not an iterator."""
    return source.hide()


sources = pytest.mark.parametrize(
    "kind", [lambda source: source, asynchronous], ids=["sync", "async"]
)


@sources
def test_the_items_pass_and_the_last_count_is_shown(screen: Screen, kind: Any) -> None:
    counted = kind(flow.range(2500)).pipe(progress("numbers", total=5000))
    assert list(counted) == list(range(2500))
    assert re.search(r"^numbers .* 2,500 rows  [\d,]+ rows/s  0:0\d\.\d$", screen.last)


@sources
def test_a_subscriber_gets_what_it_requests_and_no_more(screen: Screen, kind: Any) -> None:
    seen: list[int] = []
    handle = kind(flow.range(5)).pipe(progress("numbers")).subscribe(seen.append, prefetch=2)
    assert handle.disposed
    assert seen == [0, 1, 2, 3, 4]
    assert "5 rows" in screen.last


@sources
def test_a_bar_ends_when_the_flow_fails(screen: Screen, kind: Any) -> None:
    failing = kind(flow.range(9).map(lambda n: 1 // (3 - n))).pipe(progress("numbers"))
    with pytest.raises(ZeroDivisionError) as caught:
        list(failing)
    assert screen.last.endswith("failed")
    assert " 3 rows" in screen.last
    assert caught.value.__notes__


@sources
def test_a_bar_ends_when_the_flow_is_cancelled(screen: Screen, kind: Any) -> None:
    counted = kind(flow.range(1000)).pipe(progress("numbers"))
    assert list(counted.take(3)) == [0, 1, 2]
    assert screen.last.endswith("stopped")
    assert " 3 rows" in screen.last


@sources
def test_a_bar_ends_when_an_iteration_is_left(screen: Screen, kind: Any) -> None:
    items = iter(kind(flow.range(1000)).pipe(progress("numbers")))
    next(items)
    items.close()  # type: ignore[attr-defined]
    assert screen.last.endswith("stopped")


@sources
def test_a_subscription_that_never_requests_leaves_nothing_behind(
    screen: Screen, kind: Any
) -> None:
    class Silent(CoreSubscriber[Any]):
        def on_subscribe(self, subscription: Subscription, /) -> None:
            self.subscription = subscription

        def on_next(self, item: Any, /) -> None: ...
        def on_error(self, error: BaseException, /) -> None: ...
        def on_complete(self) -> None: ...

    silent = Silent()
    kind(flow.range(9)).pipe(progress("numbers")).subscribe(silent)
    silent.subscription.cancel()
    silent.subscription.cancel()


def test_a_subscriber_that_raises_ends_the_bar(screen: Screen) -> None:
    errors: list[BaseException] = []

    def fail(item: object) -> None:
        raise ValueError(item)

    asynchronous(flow.range(9)).pipe(progress("numbers")).subscribe(fail, errors.append)
    assert [str(error) for error in errors] == ["0"]
    assert screen.last.endswith("stopped")  # from below, as by a cancel


def test_a_subscriber_whose_function_returns_false_has_taken_the_item(screen: Screen) -> None:
    seen: list[int] = []

    def take(item: int) -> bool:
        seen.append(item)
        return False

    asynchronous(flow.range(4)).pipe(progress("numbers")).subscribe(take)
    assert seen == [0, 1, 2, 3]
    assert "4 rows" in screen.last


@pytest.mark.checklist("F12")
def test_an_item_that_a_filter_behind_drops_costs_no_request(screen: Screen) -> None:
    dropped = asynchronous(flow.range(6)).pipe(progress("numbers")).filter(lambda n: n > 3)
    seen: list[int] = []
    dropped.subscribe(seen.append, prefetch=1)
    assert seen == [4, 5]
    assert "6 rows" in screen.last


@pytest.mark.checklist("F11")
def test_every_form_of_a_flow_is_the_same_with_a_bar(screen: Screen) -> None:
    assert_result(lambda: flow.range(7).pipe(progress("n")), list(range(7)))
    assert_result(
        lambda: flow.range(7).map(lambda n: n + 1).pipe(progress("n")).filter(lambda n: n % 2),
        [1, 3, 5, 7],
    )
    assert_result(
        lambda: flow.range(9).map(lambda n: 6 // (3 - n)).pipe(progress("n")),
        [2, 3, 6],
        ZeroDivisionError,
    )


@pytest.mark.checklist("F39")
def test_stages_before_the_bar_do_not_change_their_thread(screen: Screen) -> None:
    class Asking(CoreSubscriber[Any]):
        def on_subscribe(self, subscription: Subscription, /) -> None:
            assert isinstance(subscription, QueueSubscription)
            self.answer = subscription.request_fusion(Fusion.SYNC | Fusion.THREAD_BOUNDARY)
            subscription.cancel()

        def on_next(self, item: Any, /) -> None: ...
        def on_error(self, error: BaseException, /) -> None: ...
        def on_complete(self) -> None: ...

    def answer(source: Flow[Any]) -> Fusion:
        asking = Asking()
        source.pipe(progress("numbers")).subscribe(asking)
        return asking.answer

    assert answer(flow.range(3)) is Fusion.SYNC
    assert answer(flow.range(3).map(str)) is Fusion.NONE


def test_a_generator_before_the_bar_is_closed(screen: Screen) -> None:
    closed: list[bool] = []

    def items() -> Iterator[int]:
        try:
            yield from range(9)
        finally:
            closed.append(True)

    assert flow.from_iterable(items()).pipe(progress("numbers")).first() == 0
    assert closed == [True]


def test_several_bars_share_the_screen(screen: Screen) -> None:
    with counting("outer [x] {y}") as outer:
        outer.count = 7
        with counting("inner", total=3) as inner:
            inner.count = 3
        assert "3 rows" in screen.text
        assert "flow-progress" in [thread.name for thread in threading.enumerate()]
    assert "outer [x] {y}" in screen.text
    assert " 7 rows" in screen.text


def test_each_subscriber_has_a_separate_bar(screen: Screen) -> None:
    counted = flow.range(3).pipe(progress("numbers"))
    assert list(counted) == list(counted) == [0, 1, 2]
    assert screen.text.count("rows/s") >= 2


def test_a_block_that_raises_or_is_left_says_so(screen: Screen) -> None:
    with pytest.raises(ValueError, match="x"), counting("rows"):
        raise ValueError("x")
    assert screen.last.endswith("failed")
    with pytest.raises(KeyboardInterrupt), counting("rows"):
        raise KeyboardInterrupt
    assert screen.last.endswith("stopped")
    with pytest.raises(ValueError, match="x"), counting("told to end") as rows:
        rows.stopped = True
        raise ValueError("x")
    assert screen.last.endswith("stopped")


def test_an_empty_flow_has_a_bar_that_is_full(screen: Screen) -> None:
    with counting("nothing"):
        pass
    assert " 0 rows" in screen.last


def test_the_display_shows_the_count_while_the_flow_runs(screen: Screen) -> None:
    with counting("rows") as rows:
        rows.count = 12345
        assert screen.shows("12,345 rows")


def test_a_count_has_a_unit_a_note_and_a_total_that_may_change(screen: Screen) -> None:
    with pytest.raises(ValueError, match="x"), counting("job", unit="tasks") as tasks:
        assert tasks.shown
        tasks.total, tasks.count, tasks.note = 12, 9, " of 12, 1 of 2 stages"
        assert screen.shows("9 tasks of 12, 1 of 2 stages")
        raise ValueError("x")
    assert screen.last.count("━") == 30  # three quarters of a bar
    assert re.search(r" 9 tasks of 12, 1 of 2 stages  \d+ tasks/s  0:0\d\.\d  failed$", screen.last)


def test_a_terminal_that_goes_away_stops_no_flow(screen: Screen) -> None:
    with counting("rows"):
        screen.close()
        assert list(flow.range(3).pipe(progress("numbers"))) == [0, 1, 2]


def test_without_a_terminal_nothing_is_shown_or_started(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with recorded_screen(terminal=False) as screen:
        assert list(flow.range(3).pipe(progress("numbers"))) == [0, 1, 2]
        assert list(flow.range(3).hide().pipe(progress("numbers"))) == [0, 1, 2]
        with counting("rows") as rows:
            rows.count += 1
            assert not rows.shown
            assert "flow-progress" not in [thread.name for thread in threading.enumerate()]
    assert (screen.text, *capsys.readouterr()) == ("", "", "")


def test_an_engine_that_moves_the_source_keeps_the_bar_here(screen: Screen) -> None:
    counted = flow.range(3).map(lambda n: n + 1).pipe(progress("numbers")).map(str)
    moved = structure.moved(counted, lambda source: source.map(lambda n: n * 10).hide())
    assert list(moved) == ["1", "11", "21"]
    assert " 3 rows" in screen.last


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo terminal")
@pytest.mark.parametrize("own_bar", [False, True])
def test_the_command_shows_one_bar_on_stderr_and_keeps_stdout_clean(
    write: Any, own_bar: bool
) -> None:
    bar = ".pipe(progress('own bar'))" if own_bar else ""
    write(
        "jobs.py",
        f"""
        import flow_core
        from flow_cli.progress import progress

        numbers = flow_core.range(3).map(str){bar}
        """,
    )
    master, slave = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "flow_cli", "run", "jobs.py:numbers"],
        stdout=subprocess.PIPE,
        stderr=slave,
        text=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1"},
    )
    os.close(slave)
    out, _ = process.communicate(timeout=12 * TIMEOUT_S)
    drawn = b""
    while select.select([master], [], [], 5)[0]:
        try:
            chunk = os.read(master, 65536)
        except OSError:  # Linux reports the end of a pseudo terminal so
            break
        if not chunk:
            break
        drawn += chunk
    os.close(master)
    text = drawn.decode()
    assert (process.returncode, out) == (0, "0\n1\n2\n")
    assert " 3 rows" in text
    assert ("own bar" in text, "numbers" in text) == (own_bar, not own_bar)
