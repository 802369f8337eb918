"""`explore_reentry` finds what a finaliser or a signal handler can break, and nothing else."""

from __future__ import annotations

import dis
from collections import deque
from collections.abc import Callable
from functools import partial
from threading import Lock, RLock

import pytest

from flow_core.serial import SerialDrain
from flow_testing.reentry import Reentry, ReentryFailure, explore_reentry

HANGS_S = 0.2


class Locked:
    """Adds up under a lock."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.total = 0

    def add(self, n: int) -> None:
        with self.lock:
            self.total += n


class Rewritten(Locked):
    """The same thread may take this lock twice, and adds to an old total."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = RLock()  # type: ignore[assignment]

    def add(self, n: int) -> None:
        with self.lock:
            total = self.total
            self.total = total + n


class Mailed(Locked):
    """Leaves word, and no thread holds anything."""

    def __init__(self) -> None:
        super().__init__()
        self.mail: list[int] = []

    def add(self, n: int) -> None:
        self.mail.append(n)

    def sum(self) -> int:
        return self.total + sum(self.mail)


class Sending:
    """Takes items one after the other to a list."""

    def __init__(self) -> None:
        self.waiting: deque[int] = deque()
        self.sent: list[int] = []
        self.busy = False

    def send(self, item: int) -> None:
        raise NotImplementedError


class SendsTwice(Sending):
    """Takes an item off when it has been sent."""

    def send(self, item: int) -> None:
        self.waiting.append(item)
        while self.waiting:
            self.sent.append(self.waiting[0])
            self.waiting.popleft()


class LooksOnce(Sending):
    """Does not look again when it is no longer busy."""

    def send(self, item: int) -> None:
        self.waiting.append(item)
        if self.busy:
            return
        self.busy = True
        while self.waiting:
            self.sent.append(self.waiting.popleft())
        self.busy = False


class Drains(SerialDrain, Sending):
    """Does it right."""

    def __init__(self) -> None:
        SerialDrain.__init__(self)
        Sending.__init__(self)

    def send(self, item: int) -> None:
        self.waiting.append(item)
        self.signal()

    def drain(self) -> None:
        while self.waiting:
            self.sent.append(self.waiting.popleft())


class EndsTwice:
    """Asks whether it has ended before it says so."""

    def __init__(self) -> None:
        self.over = False
        self.ends = 0

    def end(self) -> None:
        if not self.over:
            self.over = True
            self.ends += 1


class Members:
    """Walks over its members."""

    def __init__(self) -> None:
        self.members = {1: "one", 2: "two"}

    def names(self) -> list[str]:
        return [name for name in self.members.values()]  # noqa: C416 - C would do it in one step


def adding(make: Callable[[], Locked]) -> Callable[[], Reentry]:
    def body() -> Reentry:
        counter = make()

        def check() -> None:
            assert (counter.sum() if isinstance(counter, Mailed) else counter.total) == 3

        return Reentry(lambda: counter.add(1), lambda: counter.add(2), check)

    return body


def sending(make: Callable[[], Sending]) -> Callable[[], Reentry]:
    def body() -> Reentry:
        sender = make()

        def check() -> None:
            assert sorted(sender.sent) == [1, 2]

        return Reentry(lambda: sender.send(1), lambda: sender.send(2), check)

    return body


def ending() -> Reentry:
    end = EndsTwice()

    def check() -> None:
        assert end.ends == 1

    return Reentry(end.end, end.end, check)


def leaving() -> Reentry:
    members = Members()
    return Reentry(members.names, lambda: members.members.pop(2))


@pytest.mark.parametrize(
    ("body", "harm"),
    [
        pytest.param(adding(Locked), "it hangs", id="a lock"),
        pytest.param(adding(Rewritten), "the check failed: AssertionError", id="an old total"),
        pytest.param(sending(SendsTwice), "what was at work raised", id="an item taken off late"),
        pytest.param(sending(LooksOnce), "the check failed", id="an item nobody sends"),
        pytest.param(ending, "the check failed", id="an end told twice"),
        pytest.param(leaving, "what was at work raised: RuntimeError", id="a dict that changes"),
    ],
)
def test_a_fault_is_found(body: Callable[[], Reentry], harm: str) -> None:
    with pytest.raises(ReentryFailure, match=harm) as failed:
        explore_reentry(body, modules=[__name__], timeout_s=HANGS_S)
    assert "test_reentry.py" in str(failed.value)


@pytest.mark.parametrize("body", [adding(Mailed), sending(Drains)], ids=["mail", "a drain"])
def test_a_correct_body_passes_at_each_moment(body: Callable[[], Reentry]) -> None:
    assert explore_reentry(body, modules=[__name__, "flow_core.serial"]) > 5


def test_there_is_a_moment_before_each_instruction() -> None:
    instructions = [found.opname for found in dis.get_instructions(Mailed.add)]

    def body() -> Reentry:
        return Reentry(partial(Mailed().add, 1), lambda: None)

    assert explore_reentry(body, modules=[__name__]) == len(instructions) - 1
    assert instructions[0] == "RESUME"  # which is no moment


def test_a_call_that_raises_is_a_failure() -> None:
    def body() -> Reentry:
        return Reentry(Drains().signal, lambda: 1 // 0)

    with pytest.raises(ReentryFailure, match="the call raised: ZeroDivisionError") as failed:
        explore_reentry(body, modules=["flow_core.serial"])
    assert "SerialDrain.signal, serial.py" in str(failed.value)


def test_a_body_that_raises_is_a_failure() -> None:
    with pytest.raises(ReentryFailure, match="the body raised: ZeroDivisionError"):
        explore_reentry(lambda: 1 // 0)  # type: ignore[return-value, arg-type]
