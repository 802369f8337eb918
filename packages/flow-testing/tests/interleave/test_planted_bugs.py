"""Each of five classic mistakes is found, and each right version is exhausted without a finding."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Condition, Event, Lock

import pytest

from flow_testing import TIMEOUT_S
from flow_testing.interleave import (
    PCT,
    Body,
    Exhaustive,
    InterleavingFailure,
    Kind,
    Random,
    Report,
    Scenario,
    Strategy,
    explore,
    replay,
    search,
)

pytestmark = [pytest.mark.interleave, pytest.mark.essential]


# -- 1: a counter of work in progress that is not atomic


class Wip:
    def __init__(self, lock: Lock | None) -> None:
        self.wip = 0
        self.lock = lock

    def increment(self) -> None:
        if self.lock is None:
            self.wip += 1
        else:
            with self.lock:
                self.wip += 1


def counting(right: bool) -> Body:
    def body() -> Scenario:
        wip = Wip(Lock() if right else None)

        def check() -> None:
            assert wip.wip == 2

        return Scenario(wip.increment, wip.increment, check=check)

    return body


# -- 2: a drain that does not look again after it has given its permit back


class Drain:
    def __init__(self, right: bool) -> None:
        self.right = right
        self.permit = Lock()
        self.work: deque[int] = deque()
        self.done: list[int] = []

    def publish(self, n: int) -> None:
        self.work.append(n)
        while self.permit.acquire(blocking=False):
            while self.work:
                self.done.append(self.work.popleft())
            self.permit.release()
            if not (self.right and self.work):
                return


def draining(right: bool) -> Body:
    def body() -> Scenario:
        drain = Drain(right)

        def check() -> None:
            assert sorted(drain.done) == [1, 2]

        return Scenario(lambda: drain.publish(1), lambda: drain.publish(2), check=check)

    return body


# -- 3: a wake-up that nobody waits for yet


class Mailbox:
    def __init__(self, right: bool) -> None:
        self.right = right
        self.ready = Condition()
        self.items: deque[int] = deque()

    def put(self, item: int) -> None:
        if self.right:
            with self.ready:
                self.items.append(item)
                self.ready.notify()
        else:
            self.items.append(item)
            with self.ready:
                self.ready.notify()

    def take(self) -> int:
        if self.right:
            with self.ready:
                while not self.items:
                    self.ready.wait()
        elif not self.items:
            with self.ready:
                self.ready.wait()
        return self.items.popleft()


def waiting_for_a_condition(right: bool) -> Body:
    def body() -> Scenario:
        box = Mailbox(right)
        return Scenario(box.take, lambda: box.put(1))

    return body


class Doorbell:
    def __init__(self, right: bool) -> None:
        self.right = right
        self.event = Event()
        self.items: deque[int] = deque()

    def put(self, item: int) -> None:
        self.items.append(item)
        self.event.set()

    def take(self) -> int:
        if self.right:
            self.event.clear()
            while not self.items:
                self.event.wait()
                self.event.clear()
        while not self.items:
            self.event.clear()  # forgets a ring between the look and this
            self.event.wait()
        return self.items.popleft()


def waiting_for_an_event(right: bool) -> Body:
    def body() -> Scenario:
        bell = Doorbell(right)
        return Scenario(bell.take, lambda: bell.put(1))

    return body


# -- 4: two threads that replace the same array of subscribers


class Subscribers:
    def __init__(self, right: bool) -> None:
        self.lock = Lock() if right else None
        self.array: tuple[str, ...] = ()

    def add(self, name: str) -> None:
        if self.lock is None:
            self.array = (*self.array, name)
        else:
            with self.lock:
                self.array = (*self.array, name)

    def remove(self, name: str) -> None:
        if self.lock is None:
            self.array = tuple(other for other in self.array if other != name)
        else:
            with self.lock:
                self.array = tuple(other for other in self.array if other != name)


def copying_on_write(right: bool) -> Body:
    def body() -> Scenario:
        subscribers = Subscribers(right)
        subscribers.add("a")

        def come_back() -> None:
            subscribers.remove("a")
            subscribers.add("a")

        def check() -> None:
            assert sorted(subscribers.array) == ["a", "b"]

        return Scenario(come_back, lambda: subscribers.add("b"), check=check)

    return body


# -- 5: a subscriber that comes while the flow completes


class Subject:
    def __init__(self, right: bool) -> None:
        self.right = right
        self.lock = Lock()
        self.done = False
        self.subscribers: list[Callable[[], None]] = []

    def subscribe(self, on_complete: Callable[[], None]) -> None:
        if self.right:
            with self.lock:
                if not self.done:
                    self.subscribers.append(on_complete)
                    return
        elif not self.done:
            with self.lock:
                self.subscribers.append(on_complete)
            return
        on_complete()

    def complete(self) -> None:
        with self.lock:
            self.done = True
            subscribers = self.subscribers.copy()
        for on_complete in subscribers:
            on_complete()


def subscribing_while_it_completes(right: bool) -> Body:
    def body() -> Scenario:
        subject = Subject(right)
        ends: list[str] = []

        def check() -> None:
            assert ends == ["end"]

        return Scenario(
            lambda: subject.subscribe(lambda: ends.append("end")), subject.complete, check=check
        )

    return body


BUGS = [
    pytest.param(counting, Kind.CHECK, id="counter"),
    pytest.param(draining, Kind.CHECK, id="drain"),
    pytest.param(waiting_for_a_condition, Kind.LOST_WAKE_UP, id="condition"),
    pytest.param(waiting_for_an_event, Kind.LOST_WAKE_UP, id="event"),
    pytest.param(copying_on_write, Kind.CHECK, id="copy-on-write"),
    pytest.param(subscribing_while_it_completes, Kind.CHECK, id="subscribe-versus-complete"),
]


def look(body: Body, strategy: Strategy | None = None) -> Report:
    return search(body, strategy=strategy or Exhaustive(3), modules=[__name__])


@pytest.mark.parametrize(("make", "kind"), BUGS)
def test_a_planted_bug_is_found(make: Callable[[bool], Body], kind: Kind) -> None:
    report = look(make(False))

    assert report.failure is not None
    assert report.failure.kind is kind
    assert report.elapsed_s < 2 * TIMEOUT_S


@pytest.mark.parametrize(("make", "kind"), BUGS)
def test_the_right_version_is_exhausted(make: Callable[[bool], Body], kind: Kind) -> None:
    report = explore(make(True), strategy=Exhaustive(2), modules=[__name__])

    assert report.exhausted
    assert report.schedules > 1


@pytest.mark.parametrize("strategy", [PCT(runs=2000), Random(runs=2000)], ids=["pct", "random"])
@pytest.mark.parametrize(("make", "kind"), BUGS)
def test_sampling_finds_a_planted_bug_too(
    make: Callable[[bool], Body], kind: Kind, strategy: Strategy
) -> None:
    report = look(make(False), strategy)

    assert report.failure is not None
    assert report.failure.kind is kind
    again = replay(make(False), report.failure.token, modules=[__name__])
    assert again.failure is not None
    assert again.failure.kind is kind


@pytest.mark.parametrize(("make", "kind"), BUGS)
def test_a_finding_is_raised_with_its_token_and_its_trace_and_can_be_had_again(
    make: Callable[[bool], Body], kind: Kind, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InterleavingFailure) as raised:
        explore(make(False), strategy=Exhaustive(3), modules=[__name__])

    failure = raised.value.report.failure
    assert failure is not None
    assert repr(failure.token) in str(raised.value)
    assert "test_planted_bugs.py:" in str(raised.value)

    again = replay(make(False), failure.token, modules=[__name__])
    assert again.failure is not None
    assert again.failure.kind is kind
    assert again.failure.trace == failure.trace
    assert "test_planted_bugs.py:" in capsys.readouterr().out
