"""The parts of a flow as a Mermaid flowchart, which Markdown pages of many hosts draw."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

from flow_cli.drawing.parts import Kind, Part
from flow_cli.drawing.words import lines_of

__all__ = ["mermaid"]

_SHAPES: Final = {
    Kind.SOURCE: ("([", "])"),
    Kind.BOUNDARY: ("{{", "}}"),
    Kind.ABSORBED: ("[[", "]]"),
    Kind.SINK: ("[/", "/]"),
}
_SPECIAL: Final = re.compile(r"[^\w .,:;()|=+*/'…-]")


def mermaid(title: str, parts: tuple[Part, ...]) -> str:
    """Return the parts as the text of a Mermaid flowchart.

    Args:
        title: the title of the chart.
        parts: the parts of a flow.
    """
    body = [f"    {line}" for line in _lines(parts)]
    refused = "    classDef refused stroke:#d33,stroke-width:3px"
    return "\n".join(
        [
            "---",
            f"title: {json.dumps(title, ensure_ascii=False)}",
            "---",
            "flowchart TD",
            *body,
            refused,
        ]
    )


def _lines(parts: tuple[Part, ...]) -> Iterator[str]:
    """Yield the nodes and the arrows of parts."""
    before: int | None = None
    for part in parts:
        if part.kind is Kind.PLAN:
            continue
        if part.same is not None:
            before = part.same
            continue
        left, right = _SHAPES.get(part.kind, ("[", "]"))
        label = "<br/>".join(_escaped(line) for line in lines_of(part))
        style = ":::refused" if part.kind is Kind.REFUSED else ""
        yield f'n{part.id}{left}"{label}"{right}{style}'
        if before is not None:
            yield f"n{before} --> n{part.id}"
        for branch in part.branches:
            yield from _lines(branch.parts)
            arrow = "-->" if branch.is_read else f'-. "{_escaped(branch.label)}" .->'
            yield f"n{_end(branch.parts)} {arrow} n{part.id}"
        before = part.id


def _end(parts: tuple[Part, ...]) -> int:
    """Return the number of the last node of a branch."""
    last = next(part for part in reversed(parts) if part.kind is not Kind.PLAN)
    return last.id if last.same is None else last.same


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda found: f"#{ord(found[0])};", text)
