"""Stages that give one item for all items."""

from __future__ import annotations

from typing import Final

from flow_core.stages.template import Template

REDUCE: Final = Template(
    "reduce",
    params=("accumulator", "seed"),
    state="total = seed",
    on_item="total = x if total is UNSET else accumulator(total, x)",
    on_end="""
    if total is not UNSET:
        x = total
        NOT_NONE
        EMIT
    """,
    ordered=True,
)

COLLECT: Final = Template(
    "collect",
    params=("supplier", "collector"),
    state="container = supplier()",
    on_item="collector(container, x)",
    on_end="""
    x = container
    NOT_NONE
    EMIT
    """,
    ordered=True,
)

TO_LIST: Final = Template(
    "to_list",
    state="items = []",
    on_item="items.append(x)",
    on_end="""
    x = items
    EMIT
    """,
)

COUNT: Final = Template(
    "count",
    state="seen = 0",
    on_item="seen += 1",
    on_end="""
    x = seen
    EMIT
    """,
)
