"""Stages that look at items and leave them as they are."""

from __future__ import annotations

from typing import Final

from flow_core.stages.template import Template

DO_ON_NEXT: Final = Template(
    "do_on_next",
    params=("action",),
    on_item="""
    action(x)
    EMIT
    """,
)
