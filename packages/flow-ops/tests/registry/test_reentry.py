"""Each operator at work, and at each moment a call in the same thread, as a finaliser's is.

Some of what operators are made of takes a lock. At the moments at which the call waits for a lock
that its own thread holds, it hangs: `KNOWN` says whose locks those are. At all others it does no
harm.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, Final

import pytest

import flow_core as flow
from flow_core.errors import MissingBackpressureError
from flow_testing import OperatorCase, Surroundings, TestSubscriber, VirtualClock
from flow_testing.reentry import LIBRARY, Reentry, ReentryFailure, explore_reentry

pytestmark = pytest.mark.nightly

ITEMS: Final = 2
MODULES: Final = (
    "flow_core.boundaries",
    "flow_core.serial",
    "flow_core.sources",
    "flow_core.stages._pulled",
    "flow_core.stages._pushed",
    "flow_core.subscribers",
    "flow_ops",
)
"""The modules through which signals go; those that assemble flows are left out."""
HANGS_S: Final = 2.0
"""The time to wait, twice, for a call that is known to hang."""
UNCERTAIN: Final = frozenset(("endless", "selective", "closing"))
"""Kinds of operators of which it depends on demand and time what they give."""
CUT_BY_TIME: Final = frozenset(("take_with_time", "take_until_with_time"))
PREFETCHING: Final = frozenset(("sequence_equal", "zip_with, a hidden flow", "zip, hidden flows"))
"""Those that take hundreds of items while they are being subscribed, which has too many moments."""

KNOWN: Final = {
    "ConcatMapSubscriber": ("concat_map", "request", "adds up requests; whose turn it is"),
    "Coordinator": ("merge", "request", "adds up requests; which flows there are"),
    "Dispatcher": ("parallel", "early cancel", "which rails there are; the subscription"),
    "EmitterSubscription": ("repeat_when", "cancel", "adds up requests; the end; the queue"),
    "IteratorSubscription": ("concat_map, hidden flows", "request", "adds up requests"),
    "ObserveOnSubscriber": ("observe_on", "request", "adds up requests; the task that runs"),
    "Rest": ("switch_on_first", "request", "adds up requests; whether the first has passed"),
    "Splitting": ("batch, of one", "cancel", "adds up what it may ask the upstream for"),
    "StageSubscriber": ("timestamp", "request", "adds up requests; the subscription"),
    "Unicast": ("batch", "request", "adds up requests; who subscribes"),
}
"""Owners of locks that the thread that holds them may wait for: a case and a call for which that
happens, and what is guarded. A fix of one takes it out."""


class WaitsForItselfError(BaseException):
    """A thread wants a lock that it holds."""


class Watched:
    """A lock of one thread, which does not hang where another does.

    Args:
        owner: the class that made it.
        waits: gets that name whenever the thread would wait for itself.
    """

    def __init__(self, owner: str, waits: list[str]) -> None:
        self.owner = owner
        self.waits = waits
        self.held = False

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        if self.held and blocking:
            self.waits.append(self.owner)
            raise WaitsForItselfError(self.owner)
        free, self.held = not self.held, True
        return free

    def release(self) -> None:
        self.held = False

    def locked(self) -> bool:
        return self.held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


def watch_locks(monkeypatch: pytest.MonkeyPatch, *, hangs: str = "") -> list[str]:
    """Let the library make watched locks; say whose were waited for by the thread that held them.

    Args:
        hangs: a class whose locks stay as they are.
    """
    waits: list[str] = []

    def lock() -> Any:
        owner = sys._getframe(1).f_code.co_qualname.partition(".")[0]
        return threading.Lock() if owner == hangs else Watched(owner, waits)

    for name, module in list(sys.modules.items()):
        ours = name.partition(".")[0] in LIBRARY and not name.startswith("flow_testing")
        if ours and getattr(module, "Lock", None) is threading.Lock:
            monkeypatch.setattr(module, "Lock", lock)
    return waits


class Source:
    """A publisher that sends requested items when the test says so, and holds no lock."""

    def __init__(self) -> None:
        self.subscriber: Any = None
        self.requests: list[int] = []
        self.sent = 0
        self.over = True
        """It has ended, or was cancelled, or has no subscriber."""

    def subscribe(self, subscriber: Any, /) -> None:
        self.subscriber = subscriber
        self.requests = [self.sent]  # the number it has had
        self.over = False
        subscriber.on_subscribe(self)

    def request(self, n: int, /) -> None:
        self.requests.append(n)

    def cancel(self) -> None:
        self.over = True

    def send(self) -> None:
        """Send as much as was requested, and the end after the last item."""
        while not self.over and self.sent < min(ITEMS, sum(self.requests)):
            self.sent += 1
            self.subscriber.on_next(self.sent - 1)
        if not self.over and self.sent == ITEMS:
            self.over = True
            self.subscriber.on_complete()


class Run:
    """An operator behind a source that sends what is requested, and all in one thread."""

    def __init__(self, case: OperatorCase) -> None:
        self.case = case
        self.clock = VirtualClock()
        self.source = Source()
        self.subscriber = TestSubscriber[Any](1)
        surroundings = Surroundings(lambda task: task(), self.clock)
        self.flow = case.apply(flow.from_publisher(self.source), surroundings)

    def subscribe(self) -> None:
        self.flow.subscribe(self.subscriber)

    def feed(self) -> None:
        """Send all, to a subscriber that requests an item at a time."""
        self.source.send()
        self.subscriber.request(1)
        self.send_the_rest()

    def send_the_rest(self) -> None:
        for _ in range(ITEMS):
            self.source.send()
            self.clock.advance_by(9)

    def end(self) -> TestSubscriber[Any]:
        """Ask for more than there is."""
        self.subscriber.request(9)
        self.send_the_rest()
        return self.subscriber.assert_rules_kept()

    @property
    def certain(self) -> bool:
        """Return whether it gives the same items each time."""
        return UNCERTAIN.isdisjoint(self.case.kinds) and self.case.registered not in CUT_BY_TIME

    def check_request(self, expected: list[Any]) -> None:
        ended = self.end()
        assert ended.terminated, "it does not end"
        assert ended.completed or "closing" in self.case.kinds, ended.error
        self.check_items(expected)
        if self.certain:
            ended.assert_items(*expected)

    def check_cancel(self, expected: list[Any]) -> None:
        before = len(self.subscriber.signals)
        assert self.end().signals[before:] == [], "a signal to one who has gone"
        assert self.source.over, "the upstream runs"
        self.check_items(expected)
        if self.certain:
            assert self.subscriber.items == expected[: len(self.subscriber.items)]

    def check_items(self, expected: list[Any]) -> None:
        assert self.clock.pending == 0, "a timer is left"
        if distinct(expected):
            assert distinct(self.subscriber.items), f"doubled: {self.subscriber.items}"


def distinct(items: list[Any]) -> bool:
    """Return whether each of `items`, or of the lists in it, is there once."""
    flat = [repr(one) for item in items for one in (item if isinstance(item, list) else [item])]
    return len(flat) == len(set(flat))


def alone(case: OperatorCase) -> list[Any]:
    """Return the items that it gives if nothing comes in between."""
    run = Run(case)
    run.subscribe()
    run.feed()
    return run.end().items


CALLS: Final = ("request", "cancel", "early cancel")
"""Calls that come in between; an early one comes during subscribe."""


def reentry(case: OperatorCase, call: str, expected: list[Any]) -> Reentry:
    run = Run(case)
    if call == "early cancel":
        work = run.subscribe
    else:
        run.subscribe()
        work = run.feed
    if call == "request":
        return Reentry(work, lambda: run.subscriber.request(1), lambda: run.check_request(expected))
    return Reentry(work, run.subscriber.cancel, lambda: run.check_cancel(expected))


def unless_waiting(scenario: Reentry, waits: list[str]) -> Reentry:
    """The same, but what happens after a thread has waited for itself does not matter."""
    before = len(waits)

    def guarded(function: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            try:
                if len(waits) == before:
                    function()
            except BaseException:
                if len(waits) == before:
                    raise

        return run

    assert scenario.check is not None
    return Reentry(guarded(scenario.work), guarded(scenario.call), guarded(scenario.check))


def check_known(waits: list[str], dropped: Any, *due: type[BaseException]) -> None:
    """No other lock was waited for, and no other error dropped."""
    assert set(waits) <= KNOWN.keys()
    expected = (WaitsForItselfError, *due)
    assert [error for error in dropped.errors if not isinstance(error, expected)] == []


@pytest.mark.parametrize("call", CALLS)
def test_a_call_at_any_moment_does_no_harm(
    monkeypatch: pytest.MonkeyPatch, dropped: Any, case: OperatorCase, call: str
) -> None:
    if call == "early cancel" and case.name in PREFETCHING:
        return
    expected = alone(case)  # and all is imported, where locks are made
    waits = watch_locks(monkeypatch)

    def body() -> Reentry:
        return unless_waiting(reentry(case, call, expected), waits)

    assert explore_reentry(body, modules=MODULES) > 20
    check_known(waits, dropped, *([MissingBackpressureError] if "closing" in case.kinds else []))


def test_a_signal_of_a_second_flow_at_any_moment_does_no_harm(
    monkeypatch: pytest.MonkeyPatch, dropped: Any, make: Callable[..., Any]
) -> None:
    make().check()  # and all is imported
    waits = watch_locks(monkeypatch)

    def body() -> Reentry:
        flows = make(1)

        def work() -> None:
            flows.up.send()
            flows.subscriber.request(1)
            flows.up.send()

        return unless_waiting(Reentry(work, flows.other.send, flows.check), waits)

    assert explore_reentry(body, modules=MODULES) > 20
    check_known(waits, dropped)


@pytest.mark.parametrize("owner", KNOWN)
def test_calls_that_are_known_to_hang_do_so(
    monkeypatch: pytest.MonkeyPatch, dropped: Any, cases: dict[str, OperatorCase], owner: str
) -> None:
    name, call, _ = KNOWN[owner]
    expected = alone(cases[name])
    waits = watch_locks(monkeypatch, hangs=owner)

    def body() -> Reentry:
        return unless_waiting(reentry(cases[name], call, expected), waits)

    with pytest.raises(ReentryFailure, match="it hangs"):
        explore_reentry(body, modules=MODULES, timeout_s=HANGS_S)
    check_known(waits, dropped)
