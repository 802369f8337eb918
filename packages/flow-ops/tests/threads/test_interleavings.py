"""Every interleaving of schedule, run and cancel, over a model of their atomic steps.

The model has one producer, one requester, one canceller, and an executor that may start a task at
any time or never. `OURS` follows `ObserveOnSubscriber` step by step; `ARTICLE` is the listing it
replaces, with a field for the future that is changed by compare-and-set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

State = dict[str, Any]
Step = Callable[[State, str], object]
"""Changes the state and returns the actor's next step, or None at its end."""

SIGNALLERS = ("produce", "request")
TASKS = ("task1", "task2", "task3")
CANCELLED = "CANCELLED"


def start_task(s: State, task: str, first: str) -> str:
    """The executor's thread takes the task, unless it was cancelled."""
    s[task] = "running"
    return first


def end_task(s: State, task: str) -> None:
    s[task] = "ended"


def cancel_task(s: State, task: str | None) -> bool:
    """`Future.cancel`: True if the task had not started."""
    if task is None or s[task] != "pending":
        return False
    s[task] = "cancelled"
    return True


def submit_task(s: State, me: str) -> None:
    s[me + ".task"] = task = next(task for task in TASKS if s[task] == "unused")
    s[task] = "pending"


# --- the article


def article_signal(s: State, me: str) -> str | None:
    match s[me]:
        case "publish":
            s["queue"] += me == "produce"
            return "increment"
        case "increment":
            s["wip"] += 1
            return "read" if s["wip"] == 1 else None
        case "read":
            s[me + ".old"] = s["future"]
            return None if s["future"] == CANCELLED else "submit"
        case "submit":
            submit_task(s, me)
            return "store"
        case "store":
            if s["future"] == s[me + ".old"]:
                s["future"] = s[me + ".task"]
                return None
            return "reread"
        case "reread":
            return "cancel" if s["future"] == CANCELLED else None
        case "cancel":
            cancel_task(s, s[me + ".task"])
            return None


def article_task(s: State, me: str) -> str | None:
    match s[me + ".pc"]:
        case "start":
            s["drains"] += 1
            s[me + ".missed"] = 1
            return start_task(s, me, "drain")
        case "drain":
            s["queue"] = 0
            return end_task(s, me) if s["cancelled"] else "subtract"
        case "subtract":
            s["wip"] -= s[me + ".missed"]
            s[me + ".missed"] = s["wip"]
            if s["wip"]:
                return "drain"
            s["drains"] -= 1
            return end_task(s, me)


def article_cancel(s: State, me: str) -> str | None:
    match s[me]:
        case "publish":
            s["cancelled"] = True
            return "swap"
        case "swap":
            s[me + ".old"], s["future"] = s["future"], CANCELLED
            return "cancel"
        case "cancel":
            cancel_task(s, s[me + ".old"])
            return "increment"
        case "increment":
            s["wip"] += 1
            if s["wip"] == 1:
                s["queue"] = 0
            return None


# --- flow_ops.threads.observe_on


def take_permit(s: State) -> bool:
    taken, s["permit"] = s["permit"], False
    return taken


def our_signal(s: State, me: str) -> str | None:
    match s[me]:
        case "publish":  # on_next appends; request adds
            s["queue"] += me == "produce"
            return "look" if me == "produce" else "miss"
        case "look":  # on_next: the short cut
            return None if s["missed"] else "miss"
        case "miss":  # _schedule, try_enter
            s["missed"] = True
            return "enter"
        case "enter":
            return "look at downstream" if take_permit(s) else None
        case "look at downstream":  # _submit
            return "enter: clear" if s["cancelled"] else "count"
        case "count":
            s["run"] += 1
            s[me + ".run"] = s["run"]
            return "submit"
        case "submit":
            submit_task(s, me)
            return "look at started"
        case "look at started":
            return None if s["started"] >= s[me + ".run"] else "store"
        case "store":  # with the lock
            if s["cancelled"]:
                return "cancel"
            if s["started"] < s[me + ".run"]:
                s["handle"] = s[me + ".task"]
            return None
        case "cancel":
            return "enter: clear" if cancel_task(s, s[me + ".task"]) else None
        case step:
            return our_drain(s, step)


def our_drain(s: State, step: str) -> str | None:
    """run_entered, with the permit."""
    match step.removeprefix("enter: "):
        case "clear":
            s["drains"] += 1
            s["missed"] = False
            return "enter: drain"
        case "drain":  # delivers or discards: either way the queue is empty then
            s["queue"] = 0
            return "enter: leave"
        case "leave":
            s["drains"] -= 1
            s["permit"] = True
            return "enter: look again"
        case "look again":
            return "enter: enter again" if s["missed"] else None
        case "enter again":
            return "enter: clear" if take_permit(s) else None
    raise AssertionError(step)


def our_task(s: State, me: str) -> str | None:
    match s[me + ".pc"]:
        case "start":  # ScheduledTask takes the task
            return start_task(s, me, "begin")
        case "begin":  # __call__, with the lock
            s["started"] = s["run"]
            s["handle"] = None
            return "enter: clear"
        case step:
            following = our_drain(s, step)
            return following or end_task(s, me)


def our_cancel(s: State, me: str) -> str | None:
    match s[me]:
        case "publish":
            s["cancelled"] = True
            return "swap"
        case "swap":  # with the lock
            s[me + ".old"], s["handle"] = s["handle"], None
            return "cancel"
        case "cancel":
            return "enter: clear" if cancel_task(s, s[me + ".old"]) else "miss"
        case "miss":  # signal
            s["missed"] = True
            return "enter: look again"
        case step:
            return our_drain(s, step)


def our_signal_without_the_run_number(s: State, me: str) -> str | None:
    if s[me] != "store" or s["cancelled"]:
        return our_signal(s, me)
    s["handle"] = s[me + ".task"]
    return None


def our_signal_without_a_second_look(s: State, me: str) -> str | None:
    """Does not look for a cancel after it has submitted."""
    if s[me] != "store":
        return our_signal(s, me)
    if s["started"] < s[me + ".run"]:
        s["handle"] = s[me + ".task"]
    return None


ARTICLE: tuple[Step, Step, Step] = (article_signal, article_task, article_cancel)
OURS: tuple[Step, Step, Step] = (our_signal, our_task, our_cancel)


# --- the explorer


def initial() -> State:
    state: State = dict.fromkeys((*SIGNALLERS, "cancel"), "publish")
    state |= dict.fromkeys(TASKS, "unused")
    state |= {f"{task}.pc": "start" for task in TASKS}
    return state | {
        "queue": 0,
        "cancelled": False,
        "drains": 0,
        "wip": 0,  # the article
        "future": None,
        "permit": True,  # ours
        "missed": False,
        "run": 0,
        "started": 0,
        "handle": None,
    }


def successors(state: State, steps: tuple[Step, Step, Step]) -> Iterator[State]:
    signal, task, cancel = steps
    for name in (*SIGNALLERS, "cancel"):
        if state[name] is not None:
            after = dict(state)
            after[name] = (cancel if name == "cancel" else signal)(after, name)
            yield after
    for name in TASKS:
        if state[name] in ("pending", "running"):
            after = dict(state)
            after[name + ".pc"] = task(after, name)
            yield after


class Explored:
    """All states that can be reached, and in how many interleavings."""

    def __init__(self, steps: tuple[Step, Step, Step]) -> None:
        self._steps = steps
        self._paths: dict[tuple[tuple[str, Any], ...], tuple[int, int]] = {}
        self.lost: list[State] = []
        """No thread is at work, the flow is cancelled, and a task still waits to be started."""
        self.kept: list[State] = []
        """All has ended, and the queue still holds an item, or the flow the handle of a task."""
        self.double: list[State] = []
        """Two drains run at a time."""
        self.interleavings, self.lossy = self._explore(initial(), False)

    def _explore(self, state: State, missed: bool) -> tuple[int, int]:
        callers_ended = all(state[name] is None for name in (*SIGNALLERS, "cancel"))
        waiting = any(state[task] == "pending" for task in TASKS)
        if callers_ended and waiting and not missed:
            self.lost.append(state)
            missed = True
        key = (("missed a future", missed), *sorted(state.items(), key=lambda item: item[0]))
        known = self._paths.get(key)
        if known is not None:
            return known
        if state["drains"] > 1:
            self.double.append(state)
        total = lossy = 0
        for after in successors(state, self._steps):
            paths, bad = self._explore(after, missed)
            total += paths
            lossy += bad
        if not total:
            total, lossy = 1, int(missed)
            if state["queue"] or state["handle"]:
                self.kept.append(state)
        self._paths[key] = (total, lossy)
        return total, lossy


@pytest.mark.essential
@pytest.mark.interleave
@pytest.mark.checklist("O14", "O24", "O25", "O27", "O28", "O29")
def test_no_interleaving_loses_a_task_or_keeps_an_item():
    ours = Explored(OURS)
    assert ours.interleavings > 1_000_000
    assert ours.lossy == 0
    assert ours.lost == []
    assert ours.kept == []
    assert ours.double == []


@pytest.mark.essential
@pytest.mark.interleave
@pytest.mark.checklist("O25")
@pytest.mark.parametrize(
    "signal", [our_signal_without_the_run_number, our_signal_without_a_second_look]
)
def test_the_model_finds_what_is_planted(signal):
    assert Explored((signal, our_task, our_cancel)).lost


@pytest.mark.essential
@pytest.mark.interleave
@pytest.mark.checklist("O25")
def test_the_compare_and_set_of_the_article_loses_tasks():
    article = Explored(ARTICLE)
    assert 0 < article.lossy < article.interleavings
    # The order of the checklist: the field holds a task that has ended, while a later one waits.
    assert any(
        state["cancel.old"] == "task1" and state["task1"] == "ended" and state["task2"] == "pending"
        for state in article.lost
    )


@pytest.mark.essential
@pytest.mark.interleave
@pytest.mark.checklist("O27", "O28")
def test_the_cancel_of_the_article_keeps_items():
    article = Explored(ARTICLE)
    assert any("cancelled" in (state[task] for task in TASKS) for state in article.kept), "O27"
    assert any(state["task1"] == "unused" for state in article.kept), "O28"
