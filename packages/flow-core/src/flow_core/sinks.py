"""Sinks: print the items, or write them to a file that is either complete or not there.

A sink is an operator; applying it runs the flow:

>>> import flow_core as flow
>>> flow.range(3).map(str).pipe(print_items())
0
1
2
3

The last line of the output is the result of the sink: the number of items.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import json
import os
import secrets
import stat
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Final, TypeVar, cast, final

from flow_core.flow import Flow
from flow_core.operator import Operator

__all__ = ["print_items", "write_csv", "write_json_lines", "write_lines"]

T = TypeVar("T")

FilePath = str | os.PathLike[str]

_CRLF: Final = "\r\n"


def print_items() -> Operator[object, int]:
    """Prints each item on a separate line.

    Returns:
        An operator that runs the flow to its end, in the calling thread, and returns the number of
        items. Demand: bounded, refilled as items are printed.
    """

    def run(flow: Flow[object]) -> int:
        count = 0
        for item in _iterated(flow):
            sys.stdout.write(f"{item}\n")
            count += 1
        return count

    return Operator("print", run)


def write_lines(path: FilePath, *, encoding: str = "utf-8") -> Operator[object, int]:
    """Writes each item as a line of text; the file is replaced when the flow completes.

    Args:
        path: the file. It is written under another name beside its final place, and moved there at
            the end: if the flow fails, the old file stays. Anything but a regular file, such as a
            terminal or a pipe, is written to directly; so is the standard output, for which `path`
            is ``-``.
        encoding: the encoding of the text.

    Returns:
        An operator that runs the flow to its end, in the calling thread, and returns the number of
        lines. Demand: bounded, refilled as items are written. The operator raises the flow's error;
        OSError if the file cannot be written, before the flow runs if this is known by then; and
        ValueError for an item whose text has several lines.
    """

    def line(item: object) -> str:
        text = str(item)
        if "\n" in text or "\r" in text:
            raise ValueError(f"write_lines(): an item has more than one line: {text!r}")
        return f"{text}\n"

    return _writer("write_lines", path, lambda flow, file: _written(flow, file, line), encoding)


def write_json_lines(path: FilePath, *, encoding: str = "utf-8") -> Operator[object, int]:
    """Writes each item as JSON on a line; the file is replaced when the flow completes.

    Args:
        path: the file; see `write_lines`.
        encoding: the encoding of the text.

    Returns:
        An operator like that of `write_lines`. Dataclasses become JSON objects. The operator raises
        TypeError for types that JSON does not have. It raises ValueError for NaN and infinities,
        which JSON does not have either, and for keys that become the same text, like 1 and ``"1"``,
        because a reader would lose one of the values.
    """
    encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_jsonable)

    def line(item: object) -> str:
        _check_keys(item)
        return f"{encoder.encode(item)}\n"

    return _writer(
        "write_json_lines", path, lambda flow, file: _written(flow, file, line), encoding
    )


def write_csv(
    path: FilePath,
    *,
    columns: Sequence[str] | None = None,
    delimiter: str = ",",
    encoding: str = "utf-8",
) -> Operator[Mapping[str, object], int]:
    """Writes each mapping as a row of CSV; the file is replaced when the flow completes.

    Args:
        path: the file; see `write_lines`.
        columns: the names in the header; None takes the keys of the first item.
        delimiter: the character between fields.
        encoding: the encoding of the text.

    Returns:
        An operator like that of `write_lines`; its result is the number of rows without the header.
        The operator raises TypeError for an item that is not a mapping, and ValueError for a
        mapping whose keys are not the columns. None becomes an empty field.
    """

    def rows(flow: Flow[Mapping[str, object]], file: IO[str]) -> int:
        # Before Python 3.13 it quotes only the line ends that it writes itself.
        writer = csv.writer(_Rows(file), delimiter=delimiter, lineterminator=_CRLF)
        names = None if columns is None else list(columns)
        if names is not None:
            writer.writerow(names)
        count = 0
        for item in _iterated(flow):
            if not isinstance(item, Mapping):
                raise TypeError(f"write_csv() takes mappings such as dicts, not {item!r}")
            if names is None:
                names = list(item)
                writer.writerow(names)
            if len(item) != len(names) or any(name not in item for name in names):
                raise ValueError(
                    f"write_csv(): an item has the keys {', '.join(map(str, item))} where the "
                    f"columns are {', '.join(map(str, names))}"
                )
            writer.writerow([item[name] for name in names])
            count += 1
        return count

    return _writer("write_csv", path, rows, encoding)


@final
class _Rows:
    """The file of a CSV writer: rows end like lines on Unix, whatever line ends items contain."""

    __slots__ = ("_file",)

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, row: str) -> None:
        self._file.write(f"{row.removesuffix(_CRLF)}\n")


def _writer(
    name: str, path: FilePath, write: Callable[[Flow[T], IO[str]], int], encoding: str
) -> Operator[T, int]:
    def run(flow: Flow[T]) -> int:
        with _replaced(path, encoding) as file:
            return write(flow, file)

    return Operator(name, run, repr(os.fspath(path)))


def _written(flow: Flow[object], file: IO[str], line: Callable[[object], str]) -> int:
    count = 0
    for item in _iterated(flow):
        file.write(line(item))
        count += 1
    return count


def _iterated(flow: Flow[T]) -> Iterator[T]:
    """Iterate over the flow, and cancel it if the loop is left early."""
    items = iter(flow)
    try:
        yield from items
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()


@contextlib.contextmanager
def _replaced(path: FilePath, encoding: str) -> Generator[IO[str], None, None]:
    """Open a text file that replaces `path` if the block ends well, and is removed otherwise."""
    if os.fspath(path) == "-":
        yield sys.stdout
        sys.stdout.flush()
        return
    given = Path(path)
    mode = given.stat().st_mode if given.exists() else None
    if mode is not None and not stat.S_ISREG(mode):
        # A device or a pipe cannot be replaced.
        with given.open("w", encoding=encoding, newline="") as file:
            yield file
        return
    final = Path(os.path.realpath(path))  # a symbolic link stays one
    beside = final.with_name(f".{final.name}.{secrets.token_hex(4)}.part")
    try:
        with beside.open("x", encoding=encoding, newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            beside.chmod(stat.S_IMODE(mode))
        beside.replace(final)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _check_keys(value: object) -> None:
    """Raise ValueError if two keys of a dict become the same text."""
    if isinstance(value, dict):
        fields = cast("dict[object, object]", value)
        if any(type(key) is not str for key in fields):
            texts = [key if isinstance(key, str) else json.dumps(key) for key in fields]
            if len(set(texts)) < len(texts):
                twice = next(text for text in texts if texts.count(text) > 1)
                raise ValueError(
                    f"write_json_lines(): two keys of {value!r} become {twice!r}, and only one of "
                    "their values would be read again; make them different"
                )
        for each in fields.values():
            _check_keys(each)
    elif isinstance(value, (list, tuple)):
        for each in cast("Sequence[object]", value):
            _check_keys(each)


def _jsonable(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    raise TypeError(f"write_json_lines() cannot write {value!r} as JSON")
