"""The parts of a flow as a tree, for terminals."""

from __future__ import annotations

from rich.syntax import Syntax
from rich.text import Text
from rich.tree import Tree

from flow_cli.drawing.parts import Kind, Part
from flow_cli.drawing.words import head_of

__all__ = ["tree"]


def tree(title: str, parts: tuple[Part, ...]) -> Tree:
    """Return the parts as a tree.

    Args:
        title: the text at the root.
        parts: the parts of a flow.
    """
    root = Tree(Text(title, "bold"))
    _add(root, parts)
    return root


def _add(root: Tree, parts: tuple[Part, ...]) -> None:
    for part in parts:
        made = root.add(_placed(_head(part), part.place))
        for step in part.steps:
            made.add(_placed(Text(step.text), step.place))
        if part.kind is Kind.PLAN:
            for line in part.text.splitlines():
                made.add(Text(line))
        if part.inner:
            made.add(Text.assemble(("inner flows: ", "dim"), part.inner))
        if part.code:
            made.add(Syntax(part.code, "python", background_color="default", line_numbers=True))
        for branch in part.branches:
            _add(root.add(Text(branch.label, "dim")), branch.parts)


def _head(part: Part) -> Text:
    match part.kind:
        case Kind.SOURCE:
            said = "; ".join((part.how, *part.facts))
            return Text.assemble(
                ("source ", "dim"), (part.text, "bold green"), (f": {said}", "dim")
            )
        case Kind.BOUNDARY:
            said = "; ".join(part.facts)
            return Text.assemble(
                ("boundary ", "dim"), (part.text, "bold yellow"), (f": {said}", "dim")
            )
        case Kind.ABSORBED:
            return Text.assemble(
                (f"{part.how} ", "dim"), (part.where, "bold green"), f": {part.text}"
            )
        case Kind.LOOP:
            head = Text.assemble((f"{head_of(part)}: ", "dim"), (part.text, "bold cyan"))
            return head.append("".join(f"; {fact}" for fact in part.facts), "dim")
        case Kind.REFUSED:
            return Text.assemble(("refused ", "bold red"), part.text)
        case Kind.SHARED:
            return Text.assemble(
                ("the same ", "dim"), (part.text, "bold yellow"), (" as above", "dim")
            )
        case Kind.SINK:
            return Text.assemble(("sink ", "dim"), (part.text, "bold green"))
        case Kind.PLAN:
            return Text("plan", "dim")


def _placed(text: Text, place: str | None) -> Text:
    return text if place is None else text.append(f"  {place}", "dim")
