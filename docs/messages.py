"""Collect the texts of the errors that the packages raise, and write them to `messages.md`.

    python docs/messages.py    write the page

The texts are read from the source files, without running them. Text that an expression gives is
shown in braces: the last name of the expression, or an ellipsis.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "messages.md"
ERRORS: Final = re.compile(r"[A-Z]\w*(Error|Exception|Failure|Warning)$")
"""The names of classes whose calls make an error. What begins with an underscore is not seen by
users."""

LEFT_OUT: Final = re.compile(r"(Assertion|Lookup|NotImplemented|Runtime|Unpicklin|Picklin|OS)")
"""Errors that tests raise, or that a user never sees as they are written."""

INTRODUCTION: Final = """\
# Messages

The texts of the errors that the packages raise, by package and class, for a search. A name in
braces stands for a value: an operator, a line of your code, a number. Most errors of a flow also
have a note that names the operator that failed, and where it was put together: see
[debugging.md](debugging.md).

`python docs/messages.py` writes this page out of the source files.
"""


class Message(NamedTuple):
    """The text of an error, and where it is raised.

    Args:
        package: the distribution, as "flow-core".
        error: the name of the class.
        text: the text, with the names of its variable parts in braces.
        place: the file and line.
    """

    package: str
    error: str
    text: str
    place: str


def messages(root: Path = ROOT) -> list[Message]:
    """Return all texts, by package, class and text."""
    found = []
    for path in sorted(root.glob("packages/*/src/**/*.py")):
        package = path.relative_to(root).parts[1]
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and (name := _error_of(node)) and (text := _text(node)):
                place = f"{path.relative_to(root).as_posix()}:{node.lineno}"
                found.append(Message(package, name, text, place))
    return sorted(found)


def page(found: Sequence[Message]) -> str:
    """Return the page of `found`."""
    text = INTRODUCTION
    for package, errors in _grouped(found).items():
        text += f"\n## {package}\n\n| Error | Message |\n| --- | --- |\n"
        for error, texts in errors.items():
            for number, message in enumerate(texts):
                name = "" if number else f"`{error}`"
                text += f"| {name} | {_cell(message)} |\n"
    return text


def _grouped(found: Sequence[Message]) -> Mapping[str, Mapping[str, Sequence[str]]]:
    groups: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for message in found:
        texts = groups[message.package][message.error]
        if message.text not in texts:
            texts.append(message.text)
    return groups


def _cell(text: str) -> str:
    for symbol in ("&", "<", ">", "*", "_", "`", "|", "[", "]"):
        escape = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}.get(symbol, f"\\{symbol}")
        text = text.replace(symbol, escape)
    return "<br>".join(text.splitlines())


def _error_of(call: ast.Call) -> str | None:
    """Return the name of the class of errors that `call` makes, or None if it makes none."""
    name = ast.unparse(call.func).rpartition(".")[2]
    return name if ERRORS.match(name) and not LEFT_OUT.match(name) else None


def _text(call: ast.Call) -> str:
    """Return the longest text among the arguments of `call`; empty if it has none in words."""
    texts = ("".join(_parts(value)) for value in (*call.args, *(n.value for n in call.keywords)))
    return max((text for text in texts if " " in text), key=len, default="")


def _parts(node: ast.expr) -> Iterator[str]:
    match node:
        case ast.Constant(str(text)):
            yield text
        case ast.JoinedStr(values):
            for value in values:
                yield from _parts(value)
        case ast.List([element]):
            yield from _parts(element)
        case ast.FormattedValue(value) if not isinstance(value, ast.Constant):
            yield f"{{{_last_name(value)}}}"
        case ast.BinOp(left, ast.Add(), right):
            for side in (left, right):
                yield from _parts(side) if _in_words(side) else (f"{{{_last_name(side)}}}",)
        case _:
            pass


def _in_words(node: ast.expr) -> bool:
    return any(_parts(node))


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(name):
            return name.strip("_")
        case ast.Attribute(ast.Call(ast.Name("type")), "__name__"):
            return "class"
        case ast.Attribute(_, name):
            return name.strip("_")
        case ast.Call(_, [*_, argument]):
            return _last_name(argument)
        case ast.Subscript(value):
            return _last_name(value)
        case _:
            return "…"


if __name__ == "__main__":
    PAGE.write_text(page(messages()), "utf-8")
