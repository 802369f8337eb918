"""Functions as a subscriber, and the handle to stop the flow."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any

import pytest

import flow_core as flow
from flow_core import (
    UNBOUNDED,
    BlockingInEventLoopError,
    Emitter,
    Flow,
    OnErrorNotImplementedError,
    hooks,
    system_clock,
)
from flow_core.subscribers import _blocking as blocking
from flow_core.subscribers import _callbacks as callbacks
from flow_core.subscribers import _queued as queued
from flow_testing import TIMEOUT_S, Drops, TestPublisher, Violation, race


class FailureError(Exception):
    pass


def test_without_prefetch_everything_is_requested_at_once() -> None:
    publisher = TestPublisher[int]()
    Flow(publisher).subscribe(lambda _: None)
    publisher.assert_requests(UNBOUNDED)


def test_with_prefetch_75_percent_are_requested_again() -> None:
    publisher = TestPublisher[int]()
    seen: list[int] = []
    Flow(publisher).subscribe(seen.append, prefetch=4)
    publisher.assert_requests(4).next(1, 2).assert_requests(4).next(3).assert_requests(4, 3)
    publisher.next(4, 5).assert_requests(4, 3).next(6).assert_requests(4, 3, 3).complete()
    assert seen == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("prefetch", [None, 1, 2, 3, 128])
def test_all_items_come_with_any_prefetch(prefetch: int | None) -> None:
    for made in (flow.range(1000), flow.range(1000).hide().map(lambda n: n)):
        seen: list[int] = []
        ends: list[bool] = []
        made.subscribe(seen.append, None, lambda ends=ends: ends.append(True), prefetch=prefetch)
        assert seen == list(range(1000))
        assert ends == [True]


def test_dispose_cancels_and_is_idempotent() -> None:
    publisher = TestPublisher[int]()
    handle = Flow(publisher).subscribe(lambda _: None)
    assert not handle.disposed
    handle.dispose()
    handle.dispose()
    assert handle.disposed
    assert publisher.cancels == 1


def test_a_with_block_disposes() -> None:
    publisher = TestPublisher[int]()
    with suppress(FailureError), Flow(publisher).subscribe(lambda _: None) as handle:
        assert not handle.disposed
        raise FailureError
    publisher.assert_cancelled()


def test_dispose_from_within_the_function_stops_an_endless_flow() -> None:
    publisher = TestPublisher[int](on_request=lambda p, _: p.next(*range(100)))
    seen: list[int] = []
    handles: list[Any] = []

    def take(n: int) -> None:
        seen.append(n)
        if n == 2:
            handles[0].dispose()

    started = TestPublisher[int]()
    handles.append(Flow(started).subscribe(take))
    started.next(1, 2, 3)
    assert seen == [1, 2]
    started.assert_cancelled()
    assert publisher.subscribed == 0


def test_signals_after_dispose_are_dropped(drops: Drops) -> None:
    publisher = TestPublisher[int](Violation.IGNORED_CANCEL | Violation.AFTER_TERMINAL)
    seen: list[Any] = []
    handle = Flow(publisher).subscribe(seen.append, seen.append, lambda: seen.append("|"))
    handle.dispose()
    publisher.next(1).complete()
    publisher.error(error := FailureError())
    assert seen == []
    assert drops.take_errors() == [error]
    assert drops.take_items() == [1]


def test_only_the_first_terminal_counts(drops: Drops) -> None:
    publisher = TestPublisher[int](Violation.AFTER_TERMINAL)
    seen: list[Any] = []
    Flow(publisher).subscribe(seen.append, seen.append, lambda: seen.append("|"))
    first, second = FailureError(1), FailureError(2)
    publisher.error(first)
    publisher.complete()
    publisher.error(second)
    assert seen == [first]
    assert drops.take_errors() == [second]


def test_an_error_without_a_function_for_it_is_dropped_with_its_cause(drops: Drops) -> None:
    error = FailureError()
    assert flow.error(error).subscribe(lambda _: None).disposed
    (dropped,) = drops.take_errors()
    assert isinstance(dropped, OnErrorNotImplementedError)
    assert dropped.__cause__ is error
    assert "on_error" in str(dropped)


def test_a_second_upstream_is_cancelled() -> None:
    publisher = TestPublisher[int]()
    Flow(publisher).subscribe(lambda _: None)
    assert publisher.subscribe_again().cancelled
    publisher.assert_not_cancelled()


def test_wait_blocks_until_the_end() -> None:
    publisher = TestPublisher[int]()
    handle = Flow(publisher).subscribe(lambda _: None)
    assert not handle.wait(0)
    thread = Thread(target=publisher.complete)
    thread.start()
    assert handle.wait(TIMEOUT_S)
    thread.join(TIMEOUT_S)
    assert flow.range(3).subscribe().wait(0)


def test_waiting_in_a_running_event_loop_is_refused() -> None:
    async def main() -> None:
        handle = Flow(TestPublisher[int]()).subscribe(lambda _: None)
        with pytest.raises(BlockingInEventLoopError, match=r"`await flow.to_list\(\)`"):
            handle.wait(1)
        assert not handle.wait(0)
        handle.dispose()
        assert handle.wait(1)

    asyncio.run(main())


def on_the_clocks_thread(function: Callable[[], object]) -> object:
    """The exception that `function` raises there, or its result."""
    result: SimpleQueue[object] = SimpleQueue()

    def task() -> None:
        try:
            result.put(function())
        except Exception as error:
            result.put(error)

    system_clock().schedule(0, task)
    return result.get(timeout=TIMEOUT_S)


@pytest.mark.parametrize(
    "block",
    [
        Flow.first,
        Flow.last,
        Flow.single,
        list,
        lambda made: next(iter(made)),
        lambda made: made.subscribe().wait(),
    ],
    ids=["first", "last", "single", "list", "for", "wait"],
)
def test_blocking_on_the_clocks_thread_is_refused(block: Callable[[Flow[int]], object]) -> None:
    """Else it would hang for ever, and all timers with it."""
    refused = on_the_clocks_thread(lambda: block(flow.never()))
    assert isinstance(refused, BlockingInEventLoopError)
    assert "all timers" in str(refused)
    assert "observe_on" in str(refused)


def test_a_call_that_does_not_have_to_wait_is_allowed_on_the_clocks_thread() -> None:
    assert on_the_clocks_thread(flow.range(1, 3).first) == 1
    assert on_the_clocks_thread(lambda: list(flow.range(3))) == [0, 1, 2]
    assert on_the_clocks_thread(lambda: flow.just(1).subscribe().wait(1)) is True
    assert on_the_clocks_thread(lambda: flow.never().subscribe().wait(0)) is False


def waits_by_handle() -> tuple[Callable[[], object], Callable[[], object]]:
    emitters: list[Emitter[int]] = []
    handle = flow.create(emitters.append).subscribe()
    return handle.wait, emitters[0].complete


def waits_in_a_loop() -> tuple[Callable[[], object], Callable[[], object]]:
    emitters: list[Emitter[int]] = []

    def push(emitter: Emitter[int]) -> None:
        emitters.append(emitter)
        emitter.next(1)

    items = iter(flow.create(push))
    assert next(items) == 1
    return lambda: list(items), emitters[0].complete


@pytest.mark.slow
@pytest.mark.parametrize("made", [waits_by_handle, waits_in_a_loop])
def test_a_signal_handler_may_end_the_flow_at_any_bytecode_of_waiting(
    interruption: Callable[..., Any],
    made: Callable[[], tuple[Callable[[], object], Callable[[], object]]],
) -> None:
    files = {callbacks.__file__, blocking.__file__, queued.__file__, threading.__file__}
    number, woken = 0, True
    while woken:
        number += 1
        wait, end = made()
        ending = interruption(files, number, end)

        def run(wait: Any = wait, ending: Any = ending) -> None:
            with ending:
                wait()

        thread = Thread(target=run, daemon=True)
        thread.start()
        thread.join(1)
        woken = not thread.is_alive()
        if not woken:  # it blocks before it comes to as many bytecodes
            assert not ending.happened, f"it hangs when the flow ends before {number}"
            end()
            thread.join(TIMEOUT_S)
            assert not thread.is_alive()
    assert number > 10


def test_all_waiting_threads_are_woken() -> None:
    for _ in range(50):
        publisher = TestPublisher[int]()
        handle = Flow(publisher).subscribe(lambda _: None)
        woken: list[bool] = []

        def wait(handle: Any = handle, woken: list[bool] = woken) -> None:
            woken.append(handle.wait(TIMEOUT_S))

        race(wait, wait, publisher.complete)
        assert woken == [True, True]


def test_a_subscription_may_be_disposed_by_another_thread_while_items_come() -> None:
    entered = Event()
    seen: list[int] = []

    def take(n: int) -> None:
        seen.append(n)
        entered.set()

    closed = Event()

    def endless() -> Iterator[int]:
        try:
            yield from count()
        finally:
            closed.set()

    class Handle:
        disposable: Any = None

    publisher = flow.from_iterable(endless())

    class Keeping(flow.CoreSubscriber[int]):
        def on_subscribe(self, subscription: Any, /) -> None:
            Handle.disposable = subscription
            subscription.request(UNBOUNDED)

        def on_next(self, item: int, /) -> None:
            take(item)

        def on_error(self, error: BaseException, /) -> None:
            raise error

        def on_complete(self) -> None:
            raise AssertionError

    thread = Thread(target=lambda: publisher.subscribe(Keeping()))
    thread.start()
    assert entered.wait(TIMEOUT_S)
    Handle.disposable.cancel()
    assert closed.wait(TIMEOUT_S)
    thread.join(TIMEOUT_S)
    assert seen == list(range(len(seen)))


# -- the handle


@pytest.mark.parametrize("handled", [False, True])
def test_waiting_raises_what_the_flow_has_failed_with(handled: bool, drops: Drops) -> None:
    error = FailureError()
    seen: list[BaseException] = []
    publisher = TestPublisher[int]()
    handle = Flow(publisher).subscribe(on_error=seen.append if handled else None)
    assert handle.error is None
    thread = Thread(target=publisher.error, args=(error,))
    thread.start()
    for _ in range(2):
        with pytest.raises(FailureError) as raised:
            handle.wait(TIMEOUT_S)
        assert raised.value is handle.error is error
    thread.join(TIMEOUT_S)
    assert seen == ([error] if handled else [])
    drops.take_errors()


def test_a_flow_that_has_completed_or_was_disposed_of_has_no_error() -> None:
    assert flow.range(3).subscribe().error is None
    handle = flow.never().subscribe()
    handle.dispose()
    assert handle.wait(1)
    assert handle.error is None


def test_an_interrupt_during_a_wait_cancels_the_flow() -> None:
    log: list[str] = []
    made = flow.never().finally_action(lambda: log.append("cleaned up"))
    handle = made.subscribe()
    me = threading.get_ident()
    heard = Event()

    def once(*_: object) -> None:
        if not heard.is_set():
            heard.set()
            raise KeyboardInterrupt

    def interrupt() -> None:
        while handle._bell is None:  # until it waits, or is about to
            pass
        while not heard.wait(0.001):  # Python does not see a signal just before it waits
            signal.pthread_kill(me, signal.SIGINT)

    before = signal.signal(signal.SIGINT, once)
    thread = Thread(target=interrupt)
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            handle.wait(TIMEOUT_S)
        thread.join(TIMEOUT_S)
    finally:
        signal.signal(signal.SIGINT, before)
    assert log == ["cleaned up"]
    assert handle.disposed


@pytest.mark.parametrize(
    "waits",
    [
        lambda made: made.subscribe().wait(),
        lambda made: list(made),
        lambda made: made.for_each(asyncio.sleep),
    ],
    ids=["wait", "iterated", "for_each"],
)
def test_a_signal_that_another_thread_receives_interrupts_waiting(
    waits: Callable[[flow.Flow[object]], object],
) -> None:
    log: list[str] = []
    me = threading.get_ident()

    def receive() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        while sys._current_frames()[me].f_code is not blocking.wait_for.__code__:
            pass
        signal.raise_signal(signal.SIGINT)

    made = flow.never().finally_action(lambda: log.append("cleaned up"))
    thread = Thread(target=receive)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            waits(made)
        thread.join(TIMEOUT_S)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    assert log == ["cleaned up"]


def test_an_error_without_a_function_for_it_is_one_record_with_name_and_place(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks.dropped_errors, "call", None)
    flow.range(1).map(lambda n: 1 // n).subscribe()
    (record,) = caplog.records
    message = record.getMessage()
    assert message.startswith("range(0, 1) | map(")
    assert f"{__file__}:" in message
    assert "failed with ZeroDivisionError" in message
    assert "\n" not in message
    assert record.exc_info
    assert record.exc_info[0] is ZeroDivisionError


SCRIPTS = {
    "dies": (
        "flow.never().map(str).subscribe()",
        "1 of its flows with it: never() | map(str), assembled at <string>:2; wait",
    ),
    "is many": (
        "handles = [flow.never().subscribe() for _ in range(5)]",
        "5 of its flows with it: never()",
    ),
    "has ended": ("flow.range(3).subscribe()", ""),
    "was disposed of": ("flow.never().subscribe().dispose()", ""),
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_flow_that_dies_with_the_program_says_so(script: str) -> None:
    code, told = SCRIPTS[script]
    command = [sys.executable, "-c", f"import flow_core as flow\n{code}"]
    ended = subprocess.run(
        command, capture_output=True, text=True, timeout=12 * TIMEOUT_S, check=True
    )
    assert told in ended.stderr
    assert bool(ended.stderr) == bool(told)
    assert ended.stderr.count("\n") == bool(told)


def test_a_handle_says_what_runs_and_whether_it_has_ended() -> None:
    handle = flow.never().map(str).subscribe(print)
    assert re.fullmatch(
        r"<running subscription of never\(\) \| map\(str\), assembled at .*>", repr(handle)
    )
    handle.dispose()
    assert repr(handle) == "<ended subscription of the flow>"
