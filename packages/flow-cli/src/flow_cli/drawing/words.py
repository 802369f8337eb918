"""The lines with which a picture names a part."""

from __future__ import annotations

import textwrap
from typing import Final

from flow_cli.drawing.parts import Kind, Part

__all__ = ["head_of", "lines_of", "short"]

_LONG: Final = 64
"""The number of letters after which a line is cut."""


def head_of(part: Part) -> str:
    """Return the small line above the text of a part."""
    match part.kind:
        case Kind.LOOP:
            pieces = f", in {part.pieces} parts" if part.pieces > 1 else ""
            thread = f" {part.thread}" if part.thread else ""
            return f"loop {part.number}{pieces}, {part.how}{thread}"
        case Kind.ABSORBED:
            return f"{part.how} {part.where}"
        case Kind.SHARED:
            return "the same as above"
        case _:
            return str(part.kind.value)


def lines_of(part: Part) -> list[str]:
    """Return the text of a part, line by line: its head, its stages, and what is known of it."""
    if part.kind is Kind.REFUSED:
        return [head_of(part), *textwrap.wrap(_printable(part.text), _LONG)]
    lines = [head_of(part), *([step.text for step in part.steps] or [part.text])]
    if part.kind is Kind.SOURCE:
        lines.append(part.how)
    lines += part.facts
    if part.place is not None:
        lines.append(part.place)
    if part.inner:
        lines.append(f"inner flows: {part.inner}")
    return [short(line) for line in lines]


def short(text: str) -> str:
    """Return a text that fits on a line: cut if it is long, and of letters that can be seen."""
    text = _printable(text)
    return text if len(text) <= _LONG else f"{text[: _LONG - 1]}…"


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)
