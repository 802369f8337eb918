"""The explorer: outcomes, failures, tokens, time, and leaving everything as it was."""

from __future__ import annotations

import _thread
import io
import queue
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Condition, Event, Lock, RLock, Semaphore, Thread
from typing import Any

import pytest

from flow_core.errors import FlowError
from flow_testing import publisher as kit_publisher
from flow_testing import subscriber as kit_subscriber
from flow_testing.interleave import (
    Body,
    Exhaustive,
    InterleavingFailure,
    InterleavingUnsupportedError,
    Kind,
    NondeterminismError,
    Random,
    Report,
    Scenario,
    bound,
    explore,
    explore_all,
    replay,
    search,
    step,
    thread_per_task,
)
from flow_testing.interleave.explorer import KIT
from flow_testing.interleave.strategies import BOUND_VARIABLE

pytestmark = pytest.mark.essential


class Cell:
    """A field that two threads change."""

    def __init__(self) -> None:
        self.value = 0

    def increment(self) -> None:
        self.value += 1


def look(body: Body, **more: Any) -> Report:
    return search(body, modules=[__name__], **more)


def two_increments() -> Scenario:
    cell = Cell()
    return Scenario(cell.increment, cell.increment, outcome=lambda: cell.value)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="for Python 3.11, without sys.monitoring")
def test_before_python_3_12_it_says_which_version_it_needs() -> None:
    with pytest.raises(InterleavingUnsupportedError, match=r"3\.12") as raised:
        explore(two_increments, modules=[__name__])
    assert isinstance(raised.value, FlowError)


class TestOutcomes:
    pytestmark = pytest.mark.interleave

    def test_are_counted(self) -> None:
        report = look(two_increments)

        assert report.failure is None
        assert report.exhausted
        assert set(report.outcomes) == {1, 2}
        assert sum(report.outcomes.values()) == report.schedules

    def test_that_are_not_allowed_are_failures(self) -> None:
        with pytest.raises(InterleavingFailure, match="1 is not one of") as raised:
            explore(two_increments, modules=[__name__], expect={2})
        failure = raised.value.report.failure
        assert failure is not None
        assert failure.kind is Kind.OUTCOME

    def test_that_are_allowed_and_did_not_come_are_named(self) -> None:
        assert look(two_increments, expect={1, 2, 3}).unseen == {3}

    def test_without_a_preemption_are_those_of_the_orders_of_threads(self) -> None:
        assert set(look(two_increments, strategy=Exhaustive(0)).outcomes) == {2}


class TestNothingIsLeftOut:
    pytestmark = pytest.mark.interleave

    def test_all_schedules_and_all_outcomes_pass(self) -> None:
        report = explore_all(two_increments, modules=[__name__], expect={1, 2})

        assert report.exhausted
        assert set(report.outcomes) == {1, 2}

    def test_an_expected_outcome_that_does_not_come_fails(self) -> None:
        with pytest.raises(AssertionError, match=r"no schedule has the outcomes \['3'\]"):
            explore_all(two_increments, modules=[__name__], expect={1, 2, 3})

    def test_a_scenario_with_one_schedule_shows_nothing_and_fails(self) -> None:
        with pytest.raises(AssertionError, match="only one schedule"):
            explore_all(lambda: Scenario(Cell().increment), modules=[__name__])

    def test_a_run_without_time_for_all_schedules_fails(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv(BOUND_VARIABLE, raising=False)
        with pytest.raises(AssertionError, match=r"0 schedules .* and there are more"):
            explore_all(two_increments, modules=[__name__], timeout_s=0)

    def test_with_more_than_two_preemptions_a_run_need_not_be_exhaustive(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(BOUND_VARIABLE, "3")
        report = explore_all(two_increments, modules=[__name__], strategy=Random(9, seed=1))

        assert not report.exhausted


class TestFailures:
    pytestmark = pytest.mark.interleave

    def test_a_deadlock_is_reported_with_the_stacks_of_all_threads(self) -> None:
        def body() -> Scenario:
            first, second = Lock(), Lock()

            def lock(one: Lock, other: Lock) -> None:
                with one, other:
                    pass

            return Scenario(lambda: lock(first, second), lambda: lock(second, first))

        failure = look(body).failure

        assert failure is not None
        assert failure.kind is Kind.DEADLOCK
        assert failure.message.count("with one, other:") == 2

    def test_a_thread_that_raises_fails_the_run_with_its_error(self) -> None:
        error = ValueError("wrong")

        def fail() -> None:
            raise error

        failure = look(lambda: Scenario(fail, lambda: None)).failure

        assert failure is not None
        assert failure.kind is Kind.RAISED
        assert failure.error is error

    def test_a_loop_without_an_end_is_a_livelock(self) -> None:
        def body() -> Scenario:
            cell = Cell()

            def spin() -> None:
                while not cell.value:
                    pass

            return Scenario(spin, cell.increment)

        failure = look(body, max_steps=500).failure

        assert failure is not None
        assert failure.kind is Kind.LIVELOCK

    def test_a_lock_that_the_scheduler_does_not_know_is_reported_and_not_waited_for(self) -> None:
        real = threading.Lock()
        real.acquire()

        def body() -> Scenario:
            return Scenario(lambda: real.acquire(timeout=2), lambda: None)

        failure = look(body, stuck_s=0.2).failure

        assert failure is not None
        assert failure.kind is Kind.STUCK

    def test_a_thread_that_swallows_everything_cannot_keep_a_run_from_ending(self) -> None:
        def body() -> Scenario:
            event = Event()

            def wait() -> None:
                while not event.is_set():
                    try:
                        event.wait()
                    except BaseException:
                        pass

            return Scenario(wait, lambda: None)

        failure = look(body, max_steps=200).failure

        assert failure is not None
        assert failure.kind is Kind.LOST_WAKE_UP

    def test_a_body_that_is_not_deterministic_is_refused(self) -> None:
        runs: list[int] = []

        def body() -> Scenario:
            runs.append(1)
            cell = Cell()

            def work() -> None:
                for _ in range(1 if len(runs) > 6 else 4):
                    cell.increment()

            return Scenario(work, work)

        with pytest.raises(NondeterminismError, match="depend on nothing but the schedule"):
            look(body)

    def test_steps_that_fill_a_cache_in_some_schedule_do_not_disturb_the_search(self) -> None:
        cached: list[int] = []

        def body() -> Scenario:
            cell = Cell()

            def fill() -> None:
                cached.append(1)
                for _ in range(4):
                    cell.increment()
                cell.value = 0

            def second() -> None:
                if cell.value == 0 and not cached:
                    fill()
                cell.increment()

            return Scenario(cell.increment, second, outcome=lambda: cell.value)

        report = look(body, expect={1, 2})

        assert cached
        assert report.failure is None
        assert report.exhausted
        assert sum(report.outcomes.values()) == report.schedules


class TestTokens:
    pytestmark = pytest.mark.interleave

    def test_bring_the_run_back_and_write_its_trace_down(self) -> None:
        failure = look(two_increments, expect={2}).failure
        assert failure is not None
        out = io.StringIO()

        report = replay(two_increments, failure.token, modules=[__name__], expect={2}, out=out)

        assert report.failure is not None
        assert report.failure.trace == failure.trace
        assert set(report.outcomes) == {1}
        assert "self.value += 1" in out.getvalue()
        assert "store value" in out.getvalue()
        assert "takes over from" in out.getvalue()

    @pytest.mark.parametrize("token", ["", "12>1", "2.7:1>1", "{here}:x", "{here}:1>"])
    def test_that_are_none_are_refused(self, token: str) -> None:
        here = f"{sys.version_info.major}.{sys.version_info.minor}"
        with pytest.raises(ValueError, match="token"):
            replay(two_increments, token.format(here=here), modules=[__name__])

    def test_of_another_body_are_refused(self) -> None:
        here = f"{sys.version_info.major}.{sys.version_info.minor}"
        with pytest.raises(NondeterminismError, match="cannot"):
            replay(two_increments, f"{here}:0>1,1>7", modules=[__name__])


class TestPrimitives:
    pytestmark = pytest.mark.interleave

    def test_a_lock_keeps_others_out(self) -> None:
        def body() -> Scenario:
            cell, lock = Cell(), Lock()

            def increment() -> None:
                with lock:
                    cell.increment()

            return Scenario(increment, increment, outcome=lambda: cell.value)

        assert set(look(body).outcomes) == {2}

    def test_a_reentrant_lock_lets_its_owner_in_again(self) -> None:
        def body() -> Scenario:
            cell, lock = Cell(), RLock()

            def increment() -> None:
                with lock, lock:
                    cell.increment()

            return Scenario(increment, increment, outcome=lambda: cell.value)

        report = look(body)
        assert report.failure is None
        assert set(report.outcomes) == {2}

    def test_a_semaphore_lets_at_most_its_count_in(self) -> None:
        def body() -> Scenario:
            inside = Cell()
            most: list[int] = []
            semaphore = Semaphore(2)

            def enter() -> None:
                with semaphore:
                    inside.increment()
                    most.append(inside.value)
                    step()
                    inside.value -= 1

            return Scenario(enter, enter, enter, outcome=lambda: max(most))

        assert max(look(body, strategy=Exhaustive(1)).outcomes) == 2

    def test_a_condition_wakes_as_many_as_are_notified(self) -> None:
        def body() -> Scenario:
            condition = Condition()
            woken: list[bool] = []

            def wait() -> None:
                with condition:
                    woken.append(condition.wait(10))

            def notify() -> None:
                with condition:
                    condition.notify()

            return Scenario(wait, wait, notify, outcome=lambda: sum(woken))

        assert set(look(body, strategy=Exhaustive(1)).outcomes) == {0, 1}

    def test_a_simple_queue_wakes_a_waiting_thread(self) -> None:
        def body() -> Scenario:
            items: queue.SimpleQueue[int] = queue.SimpleQueue()
            got: list[int] = []
            return Scenario(
                lambda: got.append(items.get()), lambda: items.put(7), outcome=lambda: got[0]
            )

        report = look(body)
        assert report.failure is None
        assert set(report.outcomes) == {7}

    def test_a_queue_of_the_standard_library_works_in_it(self) -> None:
        def body() -> Scenario:
            items: queue.Queue[int] = queue.Queue(1)

            def put() -> None:
                items.put(1)
                items.put(2)

            return Scenario(
                put, lambda: None, lambda: [items.get(), items.get()].sort(), outcome=items.empty
            )

        report = look(body, strategy=Exhaustive(1))
        assert report.failure is None
        assert set(report.outcomes) == {True}

    def test_time_passes_when_no_thread_can_run(self) -> None:
        def body() -> Scenario:
            order: list[str] = []

            def sleep(seconds: float, name: str) -> None:
                time.sleep(seconds)
                order.append(name)

            return Scenario(
                lambda: sleep(3600, "late"),
                lambda: sleep(60, "early"),
                outcome=lambda: tuple(order),
            )

        report = look(body)
        assert set(report.outcomes) == {("early", "late")}
        assert report.elapsed_s < 60

    def test_a_wait_with_a_timeout_ends_only_when_no_thread_can_wake_it(self) -> None:
        def body() -> Scenario:
            event = Event()
            seen: list[bool] = []
            return Scenario(
                lambda: seen.append(event.wait(1)), event.set, outcome=lambda: tuple(seen)
            )

        assert set(look(body).outcomes) == {(True,)}

    def test_a_thread_that_is_started_within_joins_in(self) -> None:
        def body() -> Scenario:
            cell = Cell()

            def start() -> None:
                thread = Thread(target=cell.increment)
                thread.start()
                thread.join()
                assert not thread.is_alive()

            return Scenario(start, cell.increment, outcome=lambda: cell.value)

        report = look(body)
        assert report.failure is None
        assert set(report.outcomes) == {1, 2}

    def test_a_thread_pool_works_in_it(self) -> None:
        def body() -> Scenario:
            results: list[int] = []

            def work() -> None:
                with ThreadPoolExecutor(1) as pool:
                    results.append(pool.submit(int, "42").result())

            return Scenario(work, lambda: None, outcome=lambda: tuple(results))

        report = look(body, strategy=Exhaustive(1))
        assert report.failure is None
        assert set(report.outcomes) == {(42,)}

    def test_daemons_may_wait_for_ever(self) -> None:
        def body() -> Scenario:
            event = Event()
            return Scenario(lambda: None, daemons=[event.wait])

        report = look(body)
        assert report.failure is None
        assert report.exhausted

    def test_an_executor_of_threads_of_the_scenario(self) -> None:
        def body() -> Scenario:
            cell = Cell()
            return Scenario(
                lambda: thread_per_task(cell.increment), cell.increment, outcome=lambda: cell.value
            )

        assert set(look(body).outcomes) == {1, 2}


class TestAfterwards:
    pytestmark = pytest.mark.interleave

    def test_everything_is_as_it_was(self) -> None:
        before = (
            threading.Lock,
            threading.Event,
            threading.Thread.start,
            _thread.allocate_lock,
            time.sleep,
            queue.SimpleQueue,
            Lock,
        )
        look(two_increments)
        after = (
            threading.Lock,
            threading.Event,
            threading.Thread.start,
            _thread.allocate_lock,
            time.sleep,
            queue.SimpleQueue,
            Lock,
        )
        assert before == after
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        assert all(monitoring.get_tool(tool) != "flow_testing.interleave" for tool in range(6))

    def test_threads_that_are_not_of_the_scenario_have_real_locks(self) -> None:
        kinds: list[type] = []
        go, done = threading.Event(), threading.Event()

        def stranger() -> None:
            go.wait(5)
            kinds.append(type(threading.Lock()))
            done.set()

        outside = Thread(target=stranger, daemon=True)
        outside.start()
        real = type(threading.Lock())

        def body() -> Scenario:
            def work() -> None:
                go.set()
                done.wait(5)

            return Scenario(work, lambda: None)

        look(body)
        outside.join(5)
        assert kinds == [real]

    def test_the_locks_with_which_real_threads_come_and_go_stay(self) -> None:
        def locks() -> dict[str, Any]:
            kinds = (type(threading.Lock()), type(threading.RLock()))
            return {name: each for name, each in vars(threading).items() if type(each) in kinds}

        before = locks()
        within: list[dict[str, Any]] = []

        def body() -> Scenario:
            within.append(vars(threading).copy())
            return two_increments()

        look(body)
        assert before
        assert all(each[name] is lock for each in within for name, lock in before.items())

    def test_real_threads_end(self) -> None:
        before = threading.active_count()
        look(two_increments)
        deadline = time.monotonic() + 5
        while threading.active_count() > before and time.monotonic() < deadline:
            time.sleep(0.001)
        assert threading.active_count() <= before


@pytest.mark.parametrize(
    ("text", "expected"), [("", 2), ("3", 3), ("0", 0)], ids=["unset", "3", "0"]
)
def test_the_bound_comes_from_the_environment(
    text: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLOW_INTERLEAVE_BOUND", text)
    assert bound() == expected


def test_a_bound_that_is_not_a_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOW_INTERLEAVE_BOUND", "many")
    with pytest.raises(ValueError, match="FLOW_INTERLEAVE_BOUND"):
        bound()


def test_the_steps_of_the_testing_kit_are_functions_that_exist() -> None:
    classes: dict[str, Callable[..., object]] = {
        "subscriber.py": kit_subscriber.TestSubscriber,
        "publisher.py": kit_publisher.TestPublisher,
    }
    assert set(KIT) == set(classes)
    for file, functions in KIT.items():
        assert all(hasattr(classes[file], name) for name in functions)
