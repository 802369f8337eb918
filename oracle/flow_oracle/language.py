"""Pipelines as data: nested tuples here, text like ``(map (add 3))`` for Java.

A node is a tuple whose first item is a word: ``("take", 3)``. Parts that are words or numbers stand
for themselves.

=============================== ===================================================================
``(kind PIPE DEMAND)``          a whole case; `kind` is the subscriber's kind: ``core`` (one that
                                vouches for the rules) or ``foreign``
``(pipe SOURCE OPERATOR…)``     a flow
``(demand FIRST EACH LAST …)``  requested in on_subscribe and in each on_next, 0 for nothing;
                                cancelled in the on_next of item number LAST, 0 for never; then, one
                                by one, what is requested when subscribe has returned, or ``cancel``
=============================== ===================================================================

`pipelines` lists the operators and sources, and `strategies` the choices they are drawn from.
"""

from __future__ import annotations

from typing import Any, TypeAlias

__all__ = ["Node", "Part", "text"]

Part: TypeAlias = Any  # an int, a word or a node, depending on the node's word
Node: TypeAlias = tuple[Any, ...]


def text(part: Part) -> str:
    """Return `part` as text that Java reads."""
    if isinstance(part, tuple):
        return f"({' '.join(map(text, part))})"
    return str(part)
