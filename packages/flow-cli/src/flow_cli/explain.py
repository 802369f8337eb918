"""Draws the structure of a flow: its sources, the loops of its stages, its boundaries."""

from __future__ import annotations

import io
import json
from dataclasses import asdict
from typing import Any, Final, Literal, get_args

from rich.console import Console

from flow_cli.drawing.mermaid import mermaid
from flow_cli.drawing.parts import Part, parts_of
from flow_cli.drawing.svg import svg
from flow_cli.drawing.tree import tree
from flow_core.flow import Flow
from flow_core.prepared import Prepared

__all__ = ["FORMATS", "Format", "explain"]

Format = Literal["text", "mermaid", "svg", "json"]

FORMATS: Final[tuple[str, ...]] = get_args(Format)
"""The forms of a drawing."""

_WIDE: Final = 1000

_VERSION: Final = 1
"""The version of the JSON. New keys do not change it; any other change increments it."""

_Shown = Flow[Any] | Prepared[Any, Any]  # Any: an explanation takes flows of any items


def explain(
    flow: _Shown,
    *,
    format: Format = "text",  # noqa: A002 - the option of the command
    title: str = "flow",
    source: bool = False,
    plan: bool = False,
) -> str:
    """Return a drawing of `flow`. This does not run the flow.

    >>> import flow_core
    >>> print(explain(flow_core.range(4).map(str).hide().count()))  # doctest: +ELLIPSIS
    flow
    ├── source range(0, 4): an iterator
    ├── loop 1, pushed: map
    │   └── map(str)  ...
    ├── boundary hide(): passes demand on; no fusion  ...
    └── loop 2, fed: count; requests everything at once
        └── count()  ...

    Args:
        flow: any flow, or a result of `flow_core.prepare`.
        format: ``"text"``; ``"mermaid"``, for Markdown; ``"svg"``, a picture; ``"json"``, for
            programs.
        title: the name of the flow.
        source: whether to show the code that was generated for each loop; pictures have no room
            for it.
        plan: whether to show, in the engine's own words, how it will run the stages that it
            absorbs; pictures have no room for it.

    Raises:
        ValueError: if `format` is something else.
    """
    made = flow.flow if isinstance(flow, Prepared) else flow
    return drawn(parts_of(made, source=source, plan=plan), format, title)


def drawn(given: tuple[Part, ...], format: str, title: str) -> str:  # noqa: A002 - as for explain
    """Return the drawing of the parts of a flow; see `explain`."""
    match format:
        case "text":
            console = Console(file=io.StringIO(), width=_WIDE, color_system=None, highlight=False)
            with console.capture() as capture:
                console.print(tree(title, given))
            return "\n".join(line.rstrip() for line in capture.get().splitlines())
        case "mermaid":
            return mermaid(title, given)
        case "svg":
            return svg(title, given)
        case "json":
            document = {"format": _VERSION, "name": title, "parts": _plain(given)}
            return json.dumps(document, indent=2, ensure_ascii=False)
        case _:
            raise ValueError(f"explain(format={format!r}): it is one of {', '.join(FORMATS)}")


def _plain(given: tuple[Part, ...]) -> list[dict[str, Any]]:  # Any: what JSON can hold
    """Return the parts as JSON has them: what is empty is left out."""
    made: list[dict[str, Any]] = []
    for part in given:
        plain = {key: value for key, value in asdict(part).items() if value}
        plain["kind"] = part.kind.value
        if part.pieces == 1:
            del plain["pieces"]
        if part.branches:
            plain["branches"] = [
                {"label": branch.label, "parts": _plain(branch.parts)} for branch in part.branches
            ]
        made.append(plain)
    return made
