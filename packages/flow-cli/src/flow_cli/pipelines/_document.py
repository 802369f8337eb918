"""A pipeline's file as tables, each with the place in the file that messages name."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from pathlib import Path
from typing import Final, cast, final

from flow_core.engine import OPTIONS
from flow_core.errors import FlowError

__all__ = [
    "MISSING",
    "Document",
    "Parameter",
    "PipelineError",
    "Place",
    "Step",
    "is_a",
    "near",
    "read",
    "step_of",
    "steps_of",
]

_TABLES: Final = ("description", "parameters", "source", "operators", "sink", "engine", "options")
_TYPES: Final[Mapping[str, type]] = {"int": int, "float": float, "str": str, "bool": bool}
_DECLARATION: Final = ("type", "default", "help")
_IDENTIFIER: Final = re.compile(r"[a-z][a-z0-9_]*")
_HEADER: Final = re.compile(r"^\s*(\[\[?)\s*([A-Za-z]+)\s*\]", re.MULTILINE)

_INLINE: Final = re.compile(r"^\s*operators\s*=", re.MULTILINE)

MISSING: Final = object()
"""Stands for a default that is missing."""


class PipelineError(FlowError, ValueError):
    """A pipeline's file cannot be used; each line of the text names the place and the key.

    Args:
        problems: the errors, in the order of the file.
    """

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


@final
@dataclass(frozen=True)
class Place:
    """A table in the file, as messages name it.

    Args:
        file: the file, as the user named it.
        table: the table, such as ``[source]``.
        line: the line of the table's header, if it has one.
    """

    file: str
    table: str
    line: int | None = None

    def __str__(self) -> str:
        where = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{where}: {self.table}"

    def inside(self, table: str) -> Place:
        """Return a table within this one."""
        return Place(self.file, f"{self.table} {table}", self.line)


@final
@dataclass(frozen=True)
class Step:
    """A source, an operator or a sink, as it stands in the file.

    Args:
        place: the place of the step in the file.
        name: the name under which a plugin registers it; empty if `target` names an object.
        target: names the object from which the source is made, or the object that is the operator;
            empty if there is a `name`.
        args: the arguments by position.
        arguments: the arguments by name.
    """

    place: Place
    name: str
    target: str
    args: Sequence[object]
    arguments: Mapping[str, object]


@final
@dataclass(frozen=True)
class Parameter:
    """A parameter that the user of a pipeline may set.

    Args:
        name: the parameter's name, an identifier.
        kind: the type of its values.
        default: the default value; `MISSING` if the user must set the parameter.
        help: a description.
    """

    name: str
    kind: type
    default: object = MISSING
    help: str = ""


@final
@dataclass(frozen=True)
class Document:
    """The tables of the file. Their keys were checked, but no name was looked up yet."""

    file: str
    folder: Path
    description: str
    parameters: Mapping[str, Parameter]
    source: Step
    operators: Sequence[Step]
    sink: Step | None
    engine: Mapping[str, object]
    options: Mapping[str, object]
    lines: Mapping[str, int]

    def place(self, table: str) -> Place:
        """Return the place of a table that can be in the file only once."""
        return Place(self.file, f"[{table}]", self.lines.get(table))


def as_table(value: object) -> dict[str, object] | None:
    """Return `value` if it is a table; None otherwise."""
    return cast("dict[str, object]", value) if isinstance(value, dict) else None  # as in TOML


def as_list(value: object) -> list[object] | None:
    """Return `value` if it is a list; None otherwise."""
    return cast("list[object]", value) if isinstance(value, list) else None  # of any type


def near(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean …?` with similar names; if there are none, the known names."""
    names = sorted(set(known))
    found = difflib.get_close_matches(name, names, 1)
    if found:
        return f"; did you mean {found[0]!r}?"
    return f"; there is {', '.join(names)}" if names else ""


def read(path: Path) -> Document:
    """Return the tables of a file.

    Raises:
        PipelineError: if the file is not TOML, or its tables have wrong keys.
        OSError: if the file cannot be read.
    """
    file = str(path)
    try:
        text = path.read_text("utf-8-sig")
        tables = cast("dict[str, object]", tomllib.loads(text))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PipelineError([f"{file}: it is not TOML: {error}"]) from error
    return _Reader(file, path.resolve().parent, text).document(tables)


@final
class _Reader:
    """Reads the tables, and collects the errors, so that a user sees all of them at once."""

    __slots__ = ("_file", "_folder", "_lines", "_operators", "_problems")

    def __init__(self, file: str, folder: Path, text: str) -> None:
        self._file = file
        self._folder = folder
        self._problems: list[str] = []
        self._lines: dict[str, int] = {}
        self._operators: list[int] = []
        for header in _HEADER.finditer(text):
            line = text.count("\n", 0, header.start(1)) + 1
            if header[1] == "[[" and header[2] == "operators":
                self._operators.append(line)
            else:
                self._lines.setdefault(header[2], line)
        inline = list(_INLINE.finditer(text))
        if len(inline) == 1 and not self._operators:
            line = text.count("\n", 0, inline[0].end()) + 1
            self._lines.setdefault("operators", line)

    def document(self, tables: Mapping[str, object]) -> Document:
        for key in tables:
            if key not in _TABLES:
                self._wrong(Place(self._file, f"[{key}]", self._lines.get(key)), near(key, _TABLES))
        source = self._step(self._place("source"), tables.get("source"), "source")
        if "source" not in tables:
            self._problems.append(f"{self._file}: there is no [source], where the items come from")
        document = Document(
            self._file,
            self._folder,
            self._text(tables.get("description", "")),
            self._parameters(tables.get("parameters")),
            source or Step(self._place("source"), "", "", (), {}),
            self._steps(tables.get("operators")),
            self._step(self._place("sink"), tables["sink"], "sink") if "sink" in tables else None,
            self._table("engine", tables.get("engine"), ("on", *OPTIONS, "name"), "on"),
            self._table("options", tables.get("options"), ("limit",)),
            self._lines,
        )
        if self._problems:
            raise PipelineError(self._problems)
        return document

    def _place(self, table: str) -> Place:
        return Place(self._file, f"[{table}]", self._lines.get(table))

    def _wrong(self, place: Place, hint: str) -> None:
        self._problems.append(f"{place}: there is no such table{hint}")

    def _say(self, place: Place, text: str, key: str = "") -> None:
        self._problems.append(f"{place} {key}: {text}" if key else f"{place}: {text}")

    def _text(self, value: object) -> str:
        if isinstance(value, str):
            return value
        self._say(Place(self._file, "description"), f"{value!r} is not text")
        return ""

    def _steps(self, value: object) -> Sequence[Step]:
        if value is None:
            return ()
        values = as_list(value)
        if values is None:
            self._say(
                self._place("operators"), "operators is a list: begin each with [[operators]]"
            )
            return ()
        return steps_of(
            values,
            lambda number: Place(
                self._file,
                f"[[operators]] {number}",
                # A header inside a text would shift the line numbers: rather no numbers than wrong
                # ones.
                self._operators[number - 1]
                if len(self._operators) == len(values)
                else self._lines.get("operators"),
            ),
            self._problems,
        )

    def _step(self, place: Place, value: object, category: str) -> Step | None:
        return None if value is None else step_of(place, value, category, self._problems)

    def _table(
        self, name: str, value: object, known: Sequence[str], short: str = ""
    ) -> Mapping[str, object]:
        if isinstance(value, str) and short:
            return {short: value}
        if value is None:
            return {}
        place = self._place(name)
        table = as_table(value)
        if table is None:
            self._say(place, f"{value!r} is not a table")
            return {}
        for key in table:
            if key not in known:
                self._say(place, f"there is no such key{near(key, known)}", key)
        return table

    def _parameters(self, value: object) -> Mapping[str, Parameter]:
        place = self._place("parameters")
        if value is None:
            return {}
        table = as_table(value)
        if table is None:
            self._say(place, f"{value!r} is not a table")
            return {}
        found: dict[str, Parameter] = {}
        for name, declared in table.items():
            if not _IDENTIFIER.fullmatch(name):
                self._say(place, "a name is lower-case letters, digits and underscores", name)
                continue
            if iskeyword(name) or name == "help":  # --help prints the parameters
                self._say(place, "this name is taken; call it otherwise", name)
                continue
            parameter = self._parameter(place, name, declared)
            if parameter is not None:
                found[name] = parameter
        return found

    def _parameter(self, place: Place, name: str, declared: object) -> Parameter | None:
        table = as_table(declared)
        if table is None:
            return Parameter(name, type(declared), declared)
        for key in table:
            if key not in _DECLARATION:
                self._say(place, f"there is no such key{near(key, _DECLARATION)}", f"{name}.{key}")
        default = table.get("default", MISSING)
        kind = table.get("type", None if default is MISSING else type(default).__name__)
        if not isinstance(kind, str) or kind not in _TYPES:
            self._say(place, f"type is one of {', '.join(_TYPES)}, not {kind!r}", name)
            return None
        if default is not MISSING and not is_a(default, _TYPES[kind]):
            self._say(place, f"the default {default!r} is not of type {kind}", name)
        text = table.get("help", "")
        return Parameter(name, _TYPES[kind], default, text if isinstance(text, str) else "")


def is_a(value: object, kind: type) -> bool:
    """Return whether `value` is of a simple type.

    A bool does not count as an int, and an int counts as a float, too.
    """
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def steps_of(
    values: Sequence[object], place: Callable[[int], Place], problems: list[str]
) -> Sequence[Step]:
    """Return the operators in a list.

    Args:
        values: the operators; each is a name, or a table.
        place: returns the place of an operator by its number, counted from 1.
        problems: gets the errors.
    """
    found = [
        step_of(place(number), value, "operator", problems)
        for number, value in enumerate(values, 1)
    ]
    return [step for step in found if step is not None]


def step_of(place: Place, value: object, category: str, problems: list[str]) -> Step | None:
    """Return one source, operator or sink.

    Args:
        place: the place of the step in the file.
        value: a name, or a table.
        category: which of the three it is.
        problems: gets the errors.
    """
    found = {"use": value} if isinstance(value, str) else as_table(value)
    if found is None:
        problems.append(f"{place}: {value!r} is neither a name nor a table")
        return None
    table = dict(found)
    name = table.pop("use", "")
    target: object = ""
    given = table.pop("args", [])
    args = as_list(given)
    objects = category in ("source", "operator")
    if objects and not name:
        target = table.pop("object", "")
        if target and (table or args):
            problems.append(f"{place}: an object takes no arguments; name one that does by `use`")
    if not isinstance(name, str) or not isinstance(target, str) or not (name or target):
        also = ' or object = "package.module:name"' if objects else ""
        problems.append(f'{place}: which {category}? write use = "NAME"{also}')
        return None
    if args is None:
        problems.append(f"{place} args: {given!r} is not a list of arguments by position")
        return None
    if category == "operator":
        place = Place(place.file, f"{place.table} ({name or target})", place.line)
    return Step(place, name, target, args, table)
