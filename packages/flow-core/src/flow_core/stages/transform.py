"""Stages that make other items of items."""

from __future__ import annotations

from typing import Final

from flow_core.stages.template import Template

MAP: Final = Template(
    "map",
    params=("mapper",),
    on_item="""
    x = mapper(x)
    NOT_NONE
    EMIT
    """,
)

FLAT_MAP_ITERABLE: Final = Template(
    "flat_map_iterable",
    params=("mapper",),
    on_item="""
    for x in mapper(x):
        NOT_NONE
        EMIT
    """,
)

SCAN: Final = Template(
    "scan",
    params=("accumulator", "seed"),
    state="total = seed",
    on_item="""
    total = x = x if total is UNSET else accumulator(total, x)
    NOT_NONE
    EMIT
    """,
    ordered=True,
)

PAIRWISE: Final = Template(
    "pairwise",
    state="previous = UNSET",
    on_item="""
    pair = (previous, x)
    previous = x
    if pair[0] is not UNSET:
        x = pair
        EMIT
    """,
    ordered=True,
)

BUFFER_WITH_COUNT: Final = Template(
    "buffer_with_count",
    params=("count",),
    state="buffer = []",
    on_item="""
    buffer.append(x)
    if len(buffer) == count:
        x = buffer
        buffer = []
        EMIT
    """,
    on_end="""
    if buffer:
        x = buffer
        EMIT
    """,
    ordered=True,
)

BUFFER_WITH_COUNT_SKIP: Final = Template(
    "buffer_with_count",
    params=("count", "skip"),
    state="""
    buffers = []
    index = 0
    """,
    on_item="""
    if index % skip == 0:
        buffers.append([])
    index += 1
    for buffer in buffers:
        buffer.append(x)
    if buffers and len(buffers[0]) == count:
        x = buffers.pop(0)
        EMIT
    """,
    on_end="""
    for x in buffers:
        EMIT
    """,
    ordered=True,
)
