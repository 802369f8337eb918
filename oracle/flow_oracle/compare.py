"""Compares two runs of a case, and allows for the deliberate differences."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import groupby, pairwise, zip_longest
from typing import Final, final

from flow_oracle.decisions import (
    DECISIONS,
    Kind,
    calm,
    concerns,
    healthy,
    in_place,
    is_exact,
    names,
    reference,
)
from flow_oracle.language import Node
from flow_oracle.orders import Order, everything, fails, is_part, may_lack, muted, order

__all__ = ["Comparison", "Oracle", "Run"]

Run = Callable[[Node], list[str]]

_CHANGES: Final = {Kind.HEALTHY: healthy, Kind.CALM: calm}
"""Functions that change a case into one for which both sides must produce the same."""

TOO_LONG: Final = ["too long"]
_OVER: Final = ("cancel", "complete", "error")


@final
@dataclass
class Comparison:
    """The result of running a case on both sides.

    Args:
        ours: this library's events.
        theirs: RxJava's events.
        difference: a description of what differs; empty if nothing does.
        decided: the names of the decisions that were needed.
        exact: whether the signals that sources see were compared, too.
        endless: whether both sides were stopped, and therefore not compared.
        broken: whether this library breaks a rule, which no decision excuses.
        known: if a changed case was compared instead, what must still hold for this one.
    """

    ours: list[str]
    theirs: list[str]
    difference: str = ""
    decided: set[str] = field(default_factory=set[str])
    exact: bool = False
    endless: bool = False
    broken: bool = False
    known: Order | None = None


@final
class Oracle:
    """Runs cases on both sides.

    Args:
        here: this library.
        there: RxJava.
        without: names of decisions to ignore.
    """

    def __init__(self, here: Run, there: Run, without: frozenset[str] = frozenset()) -> None:
        self._here = here
        self._there = there
        self._without = without

    def compare(self, case: Node) -> Comparison:
        """Run `case` on both sides, and compare."""
        made = self._either(case)
        concerned = [
            (name, _CHANGES[decision.kind])
            for name, decision in DECISIONS.items()
            if decision.kind in _CHANGES and concerns(name, case) and name not in self._without
        ]
        for chosen in (*([one] for one in concerned), concerned):  # each, then all together
            if not made.difference or made.broken:
                break
            changed = case
            for _, change in chosen:
                changed = change(changed)
            again = self._either(changed)
            if again.difference or again.endless:
                continue
            made.decided = {name for name, _ in chosen} | again.decided
            made.difference = self._lost(case, made)
            break
        return made

    def _either(self, case: Node) -> Comparison:
        """Compare a case with its reference, or with both where it has two."""
        made = self._compared(case)
        if made.difference and "sequence_equal" in names(case[1]):
            other = self._compared(case, in_place)
            return made if other.difference else other
        return made

    def _compared(self, case: Node, also: Callable[[Node], Node] = lambda case: case) -> Comparison:
        ours, theirs = self._here(case), self._there(also(reference(case, self._without)))
        made = Comparison(ours, theirs)
        if TOO_LONG in (ours, theirs):
            made.endless = ours == theirs == TOO_LONG
            made.broken = not made.endless
            made.difference = "" if made.endless else "only one side ends"
            return made
        made.difference = _seen(ours).trouble or _left_running(ours)
        made.broken = bool(made.difference)
        if not made.broken:
            made.difference = self._downstream(_seen(ours), _seen(theirs), made)
        if not made.difference:
            made.difference = self._upstream(case, made)
        return made

    def _lost(self, case: Node, made: Comparison) -> str:
        """Return which property that holds for any demand does not hold for a case, if any.

        The items are part of those that arrive if all are requested and nothing fails. If nothing
        fails, as many arrive at each moment as in RxJava. Otherwise, the flow fails if RxJava's
        does, and if it completes, it does the same when its failing sources are silent.
        """
        made.known = known = order(case)
        whole = self._there(reference(everything(case), self._without))
        if known is Order.UNKNOWN or whole == TOO_LONG:
            return ""
        ours, theirs = _seen(made.ours), _seen(made.theirs)
        if not is_part(ours.items, _seen(whole).items, known):
            return "items that are not there"
        if not fails(case):
            return self._downstream(_seen(_blank(made.ours)), _seen(_blank(made.theirs)), made)
        if not may_lack(case) and ours.kind != theirs.kind:
            return "the end"
        if ours.end == "complete" and _only_sources_fail(case):
            silent = _seen(self._here(muted(case)))
            if (silent.items, silent.end) != (ours.items, ours.end):
                return "a failure that is lost"
        return ""

    def _downstream(self, ours: _Seen, theirs: _Seen, made: Comparison) -> str:
        if ours.events != theirs.events:
            return "items"
        end = theirs.end
        if end and theirs.ended_after_cancel:
            if "silence-after-cancel" in self._without:
                return "the end after cancel"
            made.decided.add("silence-after-cancel")
            end = ""
        if ours.end == end:
            if not end or ours.end_at == theirs.end_at:
                return ""
        elif ours.end and end:
            if not _same_errors(ours, end):
                return "the end"
            if "several-errors" in self._without:
                return "several errors"
            made.decided.add("several-errors")
        if ours.end and end and ours.end_at == theirs.end_at:
            return ""
        # One side knows that it has ended, and the other one does not yet.
        first = not end or (ours.end and ours.end_at < theirs.end_at)
        sooner = ours if first else theirs
        if sooner.ended_with_demand or (not (ours.end and end) and "cancel" not in ours.events):
            return "the end"
        if "end-with-demand" in self._without:
            return "the moment of the end"
        made.decided.add("end-with-demand")
        return ""

    def _upstream(self, case: Node, made: Comparison) -> str:
        if made.decided or not is_exact(case):
            return ""
        made.exact = True
        demanded = bool(case[2][1])
        ours, theirs = (_in_order(trace, demanded) for trace in (made.ours, made.theirs))
        return "" if ours == theirs else "what sources see"


@final
@dataclass
class _Seen:
    """The signals and the actions of the subscriber."""

    events: list[str] = field(default_factory=list[str])
    """All events except the end."""
    end: str = ""
    end_at: int = 0
    ended_with_demand: bool = False
    ended_after_cancel: bool = False
    dropped: list[str] = field(default_factory=list[str])
    trouble: str = ""

    @property
    def items(self) -> list[str]:
        """Return only the items."""
        return [event.partition(" ")[2] for event in self.events if event.startswith("next ")]

    @property
    def kind(self) -> str:
        """Return the kind of end: 'error' for any error, or 'complete'; empty if there was none."""
        return self.end.partition(" ")[0]


def _seen(trace: list[str]) -> _Seen:
    seen = _Seen()
    requested = received = 0
    for event in trace:
        word, _, rest = event.partition(" ")
        if word.isdigit() or word == "subscribed":
            continue
        if word == "dropped":
            seen.dropped.append(rest)
            continue
        if word in ("complete", "error"):
            if seen.end:
                seen.trouble = "a second end"
            seen.end = event
            seen.end_at = len(seen.events)
            seen.ended_with_demand = requested > received
            seen.ended_after_cancel = "cancel" in seen.events
            if seen.ended_after_cancel:
                seen.trouble = "a signal after cancel"
            continue
        if word == "raised":
            seen.trouble = event
        elif word == "request":
            requested += int(rest)
        elif word == "next":
            received += 1
            if seen.end:
                seen.trouble = "an item after the end"
            elif received > requested:
                seen.trouble = "more than was requested"
            elif "cancel" in seen.events:
                seen.trouble = "a signal after cancel"
        seen.events.append(event)
    return seen


def _blank(trace: list[str]) -> list[str]:
    """Return the events with all items replaced by the same placeholder."""
    return ["next" if event.startswith("next ") else event for event in trace]


def _only_sources_fail(case: Node) -> bool:
    """Return whether all that fails in a case are sources, which can be made silent instead."""
    return not fails(muted(case))


def _same_errors(ours: _Seen, theirs: str) -> bool:
    """Return whether RxJava's error combines the error here and the ones dropped here."""
    wanted, inner = sorted(_leaves(theirs)), _leaves(ours.end)
    if "several(" not in theirs or not inner:
        return False
    # Only an error that ends the flow alone leaves others behind, which are then dropped.
    return wanted == sorted(inner + (ours.dropped if len(inner) == 1 else []))


def _leaves(end: str) -> list[str]:
    """Return the errors that an end stands for, including those of nested groups."""
    return [name for name in re.findall(r"[\w-]+", end) if name not in ("error", "several")]


def _left_running(trace: list[str]) -> str:
    """Report a source that continues after the subscriber has cancelled or seen the end."""
    running: set[str] = set()
    over = False
    for event in trace:
        name, _, what = event.partition(" ")
        if not name.isdigit():
            over = over or name in _OVER
        elif what == "subscribe":
            running.add(name)
        elif what in ("complete", "error", "cancel"):
            running.discard(name)
    return f"source {min(running)} is left running" if over and running else ""


def _too_late(events: list[str]) -> set[str]:
    """Return the events of sources that are subscribed to after the end and cancelled at once."""
    ends = [at for at, event in enumerate(events) if event.split()[0] in _OVER]
    late = events[ends[0] :] if ends else []
    return {
        event
        for pair in pairwise(late)
        if pair[0].endswith(" subscribe") and pair[1] == f"{pair[0].split()[0]} cancel"
        for event in pair
    }


def _in_order(trace: list[str], demanded: bool) -> list[str]:
    """Return the events, with cancels at one moment sorted by the sources' names.

    The result leaves out three things: a request to a source that is cancelled before it answers; a
    source that is subscribed to after the end, only to be cancelled; and the subscription with its
    first request, because it comes first here, but in RxJava often only after a first source has
    been subscribed to.
    """
    made: list[str] = []
    begins = trace.index("subscribed") if "subscribed" in trace else len(trace)
    rest = trace[begins + (2 if demanded else 1) :]
    events = [event for event in trace[:begins] + rest if not event.startswith("dropped")]
    events = [
        event
        for event, following in zip_longest(events, events[1:], fillvalue="")
        if not (" request " in event and following == f"{event.split()[0]} cancel")
    ]
    late = _too_late(events)
    for cancels, run in groupby(
        (event for event in events if event not in late), lambda event: event.endswith(" cancel")
    ):
        at_once = [*run]
        made += sorted(at_once) if cancels else at_once
    return made
