"""Reduces a case that differs to a smaller one, so that the reason is visible."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from flow_oracle.language import Node, text

__all__ = ["reduced"]

_REMOVABLE: Final = {
    "pipe": 2, "publish": 2, "group_by": 4, "window": 3, "items": 1, "demand": 4, "concat": 2,
    "amb": 2, "merge": 4, "merge_sequential": 4, "zip": 4,
    "combine_latest": 4, "just": 2, "start_with": 2, "end_with": 2,
}  # fmt: skip
"""The index of the first part that may be left out."""
_TRIALS: Final = 1500
_LARGE: Final = 2**60


def reduced(case: Node, differs: Callable[[Node], bool]) -> Node:
    """Return a smaller case for which `differs` is still true, and no part can be left out."""
    trials = 0
    smaller = True
    while smaller:
        smaller = False
        for candidate in sorted(_simpler(case), key=lambda made: len(text(made))):
            trials += 1
            if trials > _TRIALS:
                return case
            if differs(candidate):
                case = candidate
                smaller = True
                break
    return case


def _simpler(case: Node) -> Iterator[Node]:
    kind, pipe, demand = case
    if kind == "foreign":
        yield ("core", pipe, demand)
    for part in _parts(pipe):
        yield (kind, part, demand)
    for part in _parts(demand):
        yield (kind, pipe, part)


def _parts(node: Any) -> Iterator[Any]:  # Any: parts of nodes
    """Yield versions of `node` with one thing less."""
    if isinstance(node, int):
        yield from (n for n in (1, 2) if n < node < _LARGE)
        return
    if not isinstance(node, tuple):
        if node == "never":
            yield "complete"
        return
    word = node[0]
    if word == "error":
        yield "complete"
    steps = word == "demand"  # the last part says how it ends
    for place in range(_REMOVABLE.get(word, len(node)), len(node) - steps):
        yield node[:place] + node[place + 1 :]
    for place in range(1, len(node) - steps):
        inner = node[place]
        if word == "pipe" and isinstance(inner, tuple):
            yield from (
                ("pipe", *part[1:], *node[place + 1 :])
                for part in inner
                if isinstance(part, tuple) and part[0] == "pipe" and "given" not in str(part)
            )
        if word == "group_by" and place == 3:
            continue  # if fewer groups may be open than there are, both sides stall
        yield from (
            (*node[:place], part, *node[place + 1 :])
            for part in _parts(inner)
            if isinstance(part, tuple) or word != "pipe"  # an end is not a source
        )
