"""The deliberate differences between this library and RxJava, one record each.

The table in ``docs/design/oracle.md`` gives the same names and says more about the reasons. Each
record is as narrow as possible, and has a witness: a case that differs without the record. A test
checks that it still does.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, Final, final

from flow_core import UNBOUNDED
from flow_oracle.language import Node

__all__ = [
    "DECISIONS",
    "EXACT",
    "Decision",
    "Kind",
    "calm",
    "concerns",
    "healthy",
    "in_place",
    "is_exact",
    "names",
    "reference",
]


class Kind(enum.Enum):
    """The way in which a decision is taken into account."""

    REFERENCE = "other operators there"
    """RxJava's side runs other operators that together do what is decided; all is compared."""
    RULE = "rule of comparison"
    """One event may be at another place, or be a different one; all others are compared."""
    HEALTHY = "compared without failures"
    """The result depends on how far flows prefetch: both sides must agree if nothing fails."""
    CALM = "compared without back-pressure"
    """The result depends on what waits for demand: both sides must agree if nothing waits."""


@final
@dataclass(frozen=True)
class Decision:
    """One deliberate difference.

    Args:
        kind: how it is taken into account.
        reason: why this library does it so, in one line.
        witness: a case that differs without it.
        operators: the names that it concerns; empty for all.
        followed: whether it concerns them only where another operator requests from them.
    """

    kind: Kind
    reason: str
    witness: Node
    operators: frozenset[str] = frozenset()
    followed: bool = False


def _case(*pipe: Node, demand: tuple[int | str, ...] = (UNBOUNDED, 0, 0, "cancel")) -> Node:
    return ("core", ("pipe", *pipe), ("demand", *demand))


def _probe(*items: int, end: Any = "complete") -> Node:
    return ("probe", end, 0, ("items", *items))


def _words(names: str) -> frozenset[str]:
    return frozenset(names.split())


def _reference(names: str, reason: str, witness: Node) -> Decision:
    return Decision(Kind.REFERENCE, reason, witness, _words(names))


_FAILS: Final = ("error", 1)

DECISIONS: Final[dict[str, Decision]] = {
    "take-nothing": _reference(
        "take",
        "take(0) is empty: its upstream is not subscribed to, only to be cancelled",
        _case(_probe(1), ("take", 0)),
    ),
    "seed-is-no-item": _reference(
        "scan_seed",
        "each item gives one; a seed that is wanted is put before by start_with",
        _case(_probe(1), ("scan_seed", ("sum",), 5)),
    ),
    "result-not-none": _reference(
        "reduce reduce_seed",
        "what an accumulator hands to itself is its own affair; only an item must not be None",
        _case(_probe(3, 1), ("reduce_seed", ("null", 9, 3), 0)),
    ),
    "asked-before-sent": _reference(
        "take_until",
        "a predicate that fails fails the flow in the place of the item",
        _case(_probe(3), ("take_until", ("fail", 9, 3, 4))),
    ),
    "errors-in-place": _reference(
        "concat_map flat_map_iterable publish on_backpressure_buffer on_backpressure_latest",
        "what has come before an error is delivered; none of these overtakes items that wait",
        _case(
            _probe(1, 2, end=_FAILS),
            ("on_backpressure_buffer",),
            demand=(0, 0, 0, UNBOUNDED),
        ),
    ),
    "answer-as-soon-as-known": _reference(
        "sequence_equal",
        "the flows differ as soon as one has ended where the other has an item",
        _case(("sequence_equal", 1, ("pipe", _probe(1, end="never")), ("pipe", _probe()))),
    ),
    "opened-by-an-item": _reference(
        "skip_until_other",
        "completion is not an item, here and in Rx.NET and RxPY",
        _case(_probe(1), ("skip_until_other", ("pipe", ("empty",)))),
    ),
    "groups-end-in-order": _reference(
        "group_by",
        "groups end in the order in which they began, not in that of a hash table",
        _case(("just", 2, 1), ("group_by", ("modulo", 4), 128, 128, ("to_list",))),
    ),
    "iterators-are-not-asked-ahead": _reference(
        "iterable",
        "next() may block or have effects: it is called for an item that is wanted",
        _case(
            ("iterable", _FAILS, ("items", 1)),
            ("on_error_resume", ("pipe", _probe(end="never"))),
            demand=(1, 0, 0, "cancel"),
        ),
    ),
    "end-with-demand": Decision(
        Kind.RULE,
        "nothing runs without demand: an end for which no demand waits may be found later (or, "
        "where items are fetched ahead, sooner)",
        _case(("range", 0, 2), ("skip", 3), demand=(0, 0, 0, UNBOUNDED)),
    ),
    "silence-after-cancel": Decision(
        Kind.RULE,
        "a subscriber that has cancelled gets nothing more, not even the end (§2.8 would allow it)",
        _case(_probe(1), ("take", 1), demand=(1, 0, 1, "cancel")),
    ),
    "several-errors": Decision(
        Kind.RULE,
        "one error ends a flow, the others are dropped where RxJava may put them together; where "
        "they are put together, they are in the order of the items",
        _case(
            _probe(1, end=("error", 3)),
            ("concat_map_delay_error", 2, ("pipe", _probe(7, end=("error", 2)))),
            demand=(0, 0, 0, UNBOUNDED),
        ),
    ),
    "not-asked-ahead-of-the-others": Decision(
        Kind.HEALTHY,
        "what compares or joins flows asks an iterator when the others have an item for its; an "
        "error further on may never come, or later",
        _case(
            (
                "zip",
                ("list",),
                2,
                ("pipe", ("iterable", _FAILS, ("items", 1)), ("map", ("number",))),
                ("pipe", ("range", 1, 1)),
            ),
            demand=(1, 0, 0, UNBOUNDED),
        ),
        _words("zip zip_with sequence_equal"),
    ),
    "overtaken-later": Decision(
        Kind.HEALTHY,
        "an error that overtakes the items that wait is found out when it is asked for, so that "
        "fewer items may wait then",
        _case(
            ("defer_fail", 1),
            ("start_with", 0, 1),
            ("observe_on", 1, 0),
            demand=(1, 0, 0, UNBOUNDED),
        ),
        _words("observe_on concat_map_eager merge_sequential window"),
    ),
    "dropped-when-not-demanded": Decision(
        Kind.CALM,
        "what drops items drops those that come without demand, and a stage behind it asks when it "
        "is asked itself, for what it needs; RxJava's often asks for everything at once",
        _case(
            ("just", 0, 1),
            ("on_backpressure_drop",),
            ("element_at_or_default", 1, 2),
            demand=(0, 0, 0, UNBOUNDED),
        ),
        _words("on_backpressure_drop on_backpressure_latest"),
        followed=True,
    ),
    "first-come-first-served": Decision(
        Kind.CALM,
        "what waits is given in the order in which it came, not source by source; and what is not "
        "demanded does not run, so that it may come later",
        _case(
            ("merge", 128, 1, ("pipe", ("just", 1, 2)), ("pipe", ("just", 3))),
            demand=(0, 0, 0, 1, "cancel"),
        ),
        _words(
            "merge merge_all merge_with flat_map flat_map_delay_error group_by switch_latest "
            "switch_map amb amb_with combine_latest with_latest_from "
            "take_until_other skip_until_other"
        ),
    ),
}

EXACT: Final = _words(
    "probe range just iterable callable empty never error defer defer_fail "
    "given_probe given_range given_just concat map map_optional filter take "
    "take_while take_until take_last skip_while distinct distinct_until_changed "
    "scan scan_seed reduce reduce_seed count all some contains to_list sort "
    "last_or_error last_or_default ignore_elements on_error_complete hide retry "
    "repeat subscribe_on concat_with start_with_flows switch_if_empty "
    "on_error_resume amb amb_with observe_on on_backpressure_buffer "
    "on_backpressure_drop on_backpressure_latest zip_with_iterable skip_last do_on_next"
)
"""Operators that request the same items at the same moments on both sides; see the design note."""

_PREFETCH: Final = {
    "concat_map": 1, "concat_map_delay_error": 1, "concat_map_eager": 2, "flat_map": 2,
    "flat_map_delay_error": 2, "flat_map_iterable": 1, "switch_map": 1, "merge_with": 1,
    "zip_with": 2, "group_by": 2, "publish": 1, "merge": 2, "zip": 2, "combine_latest": 2,
    "merge_all": 2, "merge_sequential": 2, "switch_latest": 1,
    "sequence_equal": 1, "observe_on": 1, "rebatch_requests": 1,
}  # fmt: skip
"""The index of the part of a node that is a prefetch."""

_OPERATORS: Final = {"pipe": 1, "publish": 2, "group_by": 4, "window": 3}
"""The index of the first part of a node that is a source or an operator."""


# Any: parts of nodes.
def reference(part: Any, without: frozenset[str] = frozenset(), *, replaced: bool = True) -> Any:
    """Return what RxJava's side runs for `part`.

    Args:
        part: a part of a case.
        without: names of decisions to ignore.
        replaced: whether a queue that fails is replaced by another one. RxJava's flatMap forgets to
            do so if errors are delayed: no more items arrive once all queues have failed. So no
            queue is shared within it.
    """
    if not isinstance(part, tuple):
        return part
    replaced = replaced and part[:1] != ("flat_map_delay_error",)
    made = tuple(reference(inner, without, replaced=replaced) for inner in part)
    if part[:1] == ("pipe",) and not replaced:
        made = (*made[:2], ("hide",), *made[2:])
    for name, decision in DECISIONS.items():
        if (
            decision.kind is Kind.REFERENCE
            and name not in without
            and part
            and part[0] in decision.operators
        ):
            return (f"{part[0]}_decided", *made[1:])
    return made


def in_place(part: Any) -> Any:  # Any: parts of nodes
    """Return what RxJava's side runs, with the compared flows' errors in the items' places.

    Whether the answer or the error comes first depends on how far the flows prefetch.
    """
    if not isinstance(part, tuple):
        return part
    made = tuple(map(in_place, part))
    if part[:1] == ("sequence_equal_decided",):
        return ("sequence_equal_in_place", *made[1:])
    return made


def concerns(name: str, case: Node) -> bool:
    """Return whether `case` has an operator that a decision concerns."""
    decision, pipe = DECISIONS[name], case[1]
    if decision.followed and pipe[-1][0] in decision.operators:
        pipe = pipe[:-1]
    return not decision.operators.isdisjoint(names(pipe))


def calm(case: Node) -> Node:
    """Return `case` with demand and room for everything."""
    kind, pipe, demand = case
    _, _, _, last, *steps = demand
    return (kind, _roomy(pipe), ("demand", UNBOUNDED, 0, last, steps[-1]))


def healthy(part: Any) -> Any:  # Any: parts of nodes
    """Return `part` without anything that fails, even for having too few or too many items."""
    if not isinstance(part, tuple):
        return part
    match part:
        case ("first_or_error" | "single_or_error",):
            return ("take", 1)
        case ("last_or_error",):
            return ("take_last", 1)
        case ("element_at", n):
            return ("element_at_or_default", n, 0)
        case ("map_optional", ("null", *_)):
            return part  # it omits items
        case ("fail" | "null" as word, modulus, _, *rest):
            return (word, modulus, modulus, *rest)  # no number has this remainder
        case ("probe" | "given_probe" | "iterable" as word, ("error", _), *rest):
            return (word, "complete", *rest)
        case ("callable", ("error", _)):
            return ("callable", "null")
        case ("error" | "defer_fail", _):
            return ("empty",)
    return tuple(map(healthy, part))


def _roomy(part: Any) -> Any:
    if not isinstance(part, tuple):
        return part
    made = [_roomy(inner) for inner in part]
    place = _PREFETCH.get(made[0]) if made else None
    if place is not None:
        made[place] = 128
    return tuple(made)


def is_exact(case: Node) -> bool:
    """Return whether the signals that sources see are compared, too."""
    found = names(case[1])
    # A first flow that emits nothing runs when an item is requested; RxJava runs it, and subscribes
    # to the flow that follows it, without any demand.
    runs_first = {"start_with_flows", "ignore_elements"} <= found
    return found <= EXACT and not runs_first and not _asks(case[1])


def _asks(part: Any) -> bool:
    """Return whether a source uses conditional subscribers: more operators are conditional here."""
    if not isinstance(part, tuple):
        return False
    if part[0] in ("probe", "given_probe"):
        return bool(part[2])
    return any(map(_asks, part))


def names(part: Any) -> set[str]:  # Any: parts of nodes
    """Return the names of the operators and sources of a pipe."""
    found: set[str] = set()
    if isinstance(part, tuple):
        begin = _OPERATORS.get(part[0])
        if begin is not None:
            found = {inner[0] for inner in part[begin:]}
        for inner in part:
            found |= names(inner)
    return found
