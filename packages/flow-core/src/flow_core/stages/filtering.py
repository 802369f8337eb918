"""Stages that let some items pass."""

from __future__ import annotations

from typing import Final

from flow_core.stages.template import Template

CHECK: Final = Template(
    "source",
    on_item="""
    NOT_NONE
    EMIT
    """,
)
"""Put between a loop and a source that may give None by mistake (§2.13)."""

FILTER: Final = Template(
    "filter",
    params=("predicate",),
    on_item="""
    if predicate(x):
        EMIT
    """,
)

TAKE: Final = Template(
    "take",
    params=("count",),
    state="left = count",
    on_item="""
    left -= 1
    EMIT
    if left == 0:
        STOP
    """,
    ordered=True,
    at_most="count",
)

SKIP: Final = Template(
    "skip",
    params=("count",),
    state="left = count",
    on_item="""
    if left:
        left -= 1
    else:
        EMIT
    """,
    ordered=True,
)

TAKE_WHILE: Final = Template(
    "take_while",
    params=("predicate",),
    on_item="""
    if predicate(x):
        EMIT
    else:
        STOP
    """,
    ordered=True,
)

SKIP_WHILE: Final = Template(
    "skip_while",
    params=("predicate",),
    state="skipping = True",
    on_item="""
    if skipping:
        skipping = predicate(x)
    if not skipping:
        EMIT
    """,
    ordered=True,
)

DISTINCT: Final = Template(
    "distinct",
    state="seen = set()",
    on_item="""
    if x not in seen:
        seen.add(x)
        EMIT
    """,
)

DISTINCT_BY: Final = Template(
    "distinct",
    params=("key",),
    state="seen = set()",
    on_item="""
    k = key(x)
    if k not in seen:
        seen.add(k)
        EMIT
    """,
)

DISTINCT_UNTIL_CHANGED: Final = Template(
    "distinct_until_changed",
    params=("key", "same"),
    state="last = UNSET",
    on_item="""
    k = key(x)
    if last is UNSET or not same(last, k):
        last = k
        EMIT
    """,
    ordered=True,
)
