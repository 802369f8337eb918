"""Sources that read files: lines, CSV, JSON lines, each of them also compressed by gzip.

A gzip file is recognised by its first bytes, whatever its name is. The file is opened when the
first item is requested, and closed when the flow completes, fails or is cancelled. Items are read
as they are requested, in the requester's thread.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import sys
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import BinaryIO, ClassVar, Final, TypeVar, cast, final

from typing_extensions import override

from flow_core.demand import check_prefetch
from flow_core.errors import FlowError
from flow_core.flow import Flow
from flow_core.protocols import IterableSource

__all__ = ["MalformedInputError", "read_csv", "read_json_lines", "read_lines"]

T = TypeVar("T")

FilePath = str | os.PathLike[str]

_GZIP: Final = b"\x1f\x8b"
_FIELD_LIMIT: Final = 1 << 16
"""A field of at most this length need not be checked against the limit of the csv module."""
_NO_ROW: Final[tuple[int, list[str]]] = (1, [])
_UNDECODED: Final = re.compile("[\udc80-\udcff]")
_BOOLS: Final[Mapping[str, bool]] = {"true": True, "false": False, "1": True, "0": False}


class MalformedInputError(FlowError, ValueError):
    """A line of a file is malformed; the text of the error begins with ``file:line``.

    Args:
        path: the file.
        line: its line, counted from 1.
        problem: what is wrong in that line.
    """

    def __init__(self, path: FilePath, line: int, problem: str) -> None:
        super().__init__(path, line, problem)
        self.path = path
        self.line = line
        self.problem = problem

    def __str__(self) -> str:
        return f"{os.fspath(self.path)}:{self.line}: {self.problem}"


@final
class FileSource(IterableSource[T]):
    """The items that a function reads from a file, in the subscriber's own thread."""

    __slots__ = ("_name", "_path", "_read")

    none_free: ClassVar[bool] = True

    def __init__(self, name: str, path: FilePath, read: Callable[[FilePath], Iterator[T]]) -> None:
        self._name = name
        self._path = path
        self._read = read

    @override
    def iterate(self) -> Iterator[T]:
        """Open the file when the first item is requested."""
        return self._read(self._path)

    def __repr__(self) -> str:
        return f"{self._name}({os.fspath(self._path)!r})"


def read_lines(path: FilePath, *, encoding: str = "utf-8-sig") -> Flow[str]:
    r"""The lines of a text file, without their ends.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp(), "words.txt")
    >>> _ = file.write_text("one\ntwo\n")
    >>> list(read_lines(file).map(str.upper))
    ['ONE', 'TWO']

    Args:
        path: the file, opened again for each run; ``-`` is the standard input. A gzip file is
            unpacked.
        encoding: the encoding of the text. The default is UTF-8 with or without a byte order mark.

    Returns:
        A flow with back-pressure that holds one line at a time. At a line that cannot be decoded,
        it fails with `MalformedInputError`, after the lines before. If the file cannot be opened,
        it fails with OSError. Fusion: SYNC, also across threads.
    """

    def read(path: FilePath) -> Iterator[str]:
        for _, line in _numbered(path, encoding, None):
            yield line.removesuffix("\n")

    return Flow(FileSource("read_lines", path, read))


def read_csv(
    path: FilePath,
    *,
    delimiter: str = ",",
    types: Mapping[str, str | type] | None = None,
    encoding: str = "utf-8-sig",
    field_limit: int = 1 << 26,
) -> Flow[dict[str, object]]:
    r"""The rows of a CSV file, as dicts by the names in its first line.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp(), "delays.csv")
    >>> _ = file.write_text("carrier,delay\nUA,12\nB6,-3\n")
    >>> list(read_csv(file, types={"delay": int}))
    [{'carrier': 'UA', 'delay': 12}, {'carrier': 'B6', 'delay': -3}]

    Args:
        path: the file, opened again for each run; ``-`` is the standard input. A gzip file is
            unpacked.
        delimiter: the character between fields.
        types: the type of each column, by its name: ``int``, ``float``, ``bool`` (true, false, 1,
            0) or ``str``, as the class or the class's name; a column that is not in `types` stays
            text. An empty field of a type other than ``str`` becomes None in its row.
        encoding: the encoding of the text. The default is UTF-8 with or without a byte order mark.
        field_limit: the most characters that a field may have, and so a row, too. If
            `csv.field_size_limit` is less, that limit of the process is raised to this value.

    Returns:
        A flow with back-pressure that holds one row at a time. It fails with `MalformedInputError`,
        after the rows before, at a row that has more or fewer fields than the header, at a field
        that is not of its column's type, at a quote that is not closed, and at bytes that cannot be
        decoded. If the file cannot be opened, it fails with OSError. Empty lines are skipped.
        Fusion: SYNC, also across threads.

    Raises:
        TypeError: if `field_limit` is not an int.
        ValueError: if one of `types` is not one of these, or `field_limit` is less than 1.
    """
    check_prefetch(field_limit, "field_limit")
    wanted = {
        column: kind.__name__ if isinstance(kind, type) else kind
        for column, kind in (types or {}).items()
    }
    for column, kind in wanted.items():
        if kind not in _FIELDS:
            raise ValueError(
                f"read_csv(): the type of the column {column!r} is {kind!r}; "
                f"there are {', '.join(_FIELDS)}"
            )

    def read(path: FilePath) -> Iterator[dict[str, object]]:
        rows = _csv_rows(path, delimiter, encoding, field_limit)
        line, header = next(rows, _NO_ROW)
        if not header:
            raise MalformedInputError(path, 1, "there is no header with the names of the columns")
        twice = sorted({name for name in header if header.count(name) > 1})
        if twice:
            raise MalformedInputError(path, line, f"the header has {twice[0]!r} more than once")
        for column in wanted:
            if column not in header:
                known = ", ".join(header)
                raise MalformedInputError(
                    path, line, f"there is no column {column!r}; there are {known}"
                )
        fields = [_FIELDS[wanted.get(name, "str")] for name in header]
        plain = not wanted
        for line, row in rows:
            if len(row) != len(header):
                raise MalformedInputError(
                    path, line, f"{len(row)} fields where the header has {len(header)}"
                )
            yield (
                dict(zip(header, row, strict=True))
                if plain
                else _typed(path, line, header, row, fields)
            )

    return Flow(FileSource("read_csv", path, read))


def read_json_lines(path: FilePath, *, encoding: str = "utf-8-sig") -> Flow[object]:
    r"""The values of a file with one JSON value on each line.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp(), "points.jsonl")
    >>> _ = file.write_text('{"x": 1}\n[2, 3]\n')
    >>> list(read_json_lines(file))
    [{'x': 1}, [2, 3]]

    Args:
        path: the file, opened again for each run; ``-`` is the standard input. A gzip file is
            unpacked.
        encoding: the encoding of the text. The default is UTF-8 with or without a byte order mark.

    Returns:
        A flow with back-pressure that holds one value at a time. It fails with
        `MalformedInputError`, after the values before, at a line that is not JSON, or is ``null``
        (None is not an item). If the file cannot be opened, it fails with OSError. Blank lines are
        skipped. Fusion: SYNC, also across threads.
    """

    def read(path: FilePath) -> Iterator[object]:
        for number, line in _numbered(path, encoding, None):
            if not line or line.isspace():
                continue
            try:
                value = cast("object", json.loads(line))
            except json.JSONDecodeError as error:
                where = f"{error.msg} at column {error.colno}"
                raise MalformedInputError(path, number, f"no JSON: {where}") from error
            except ValueError as error:  # such as an int of more digits than Python converts
                raise MalformedInputError(path, number, f"no JSON: {error}") from error
            except RecursionError as error:
                raise MalformedInputError(path, number, "JSON that is nested too deep") from error
            if value is None:
                raise MalformedInputError(path, number, "null is not an item")
            yield value

    return Flow(FileSource("read_json_lines", path, read))


def _numbered(path: FilePath, encoding: str, newline: str | None) -> Iterator[tuple[int, str]]:
    """Yield lines with their numbers.

    If a line cannot be decoded, raise an error when that line is reached.
    """
    number = 0
    # A strict decoder would fail for a whole buffer, and lose the good lines in it.
    with (
        _opened(path) as raw,
        io.TextIOWrapper(raw, encoding, errors="surrogateescape", newline=newline) as file,
    ):
        try:
            for number, line in enumerate(file, 1):
                if not line.isascii() and (bad := _UNDECODED.search(line)):
                    byte = ord(bad[0]) - 0xDC00
                    raise MalformedInputError(
                        path, number, f"the byte 0x{byte:02x} is not {encoding} text"
                    )
                yield number, line
        except UnicodeDecodeError as error:  # of an encoding that cannot escape
            raise MalformedInputError(path, number + 1, str(error)) from error
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise MalformedInputError(path, number + 1, f"broken gzip: {error}") from error


@contextmanager
def _opened(path: FilePath) -> Generator[BinaryIO]:
    """Open a file for its bytes; a gzip file is unpacked, whatever its name is."""
    standard = os.fspath(path) == "-"
    with open(sys.stdin.fileno() if standard else path, "rb", closefd=not standard) as file:
        if file.peek(2)[:2] != _GZIP:
            yield file
            return
        with gzip.GzipFile(fileobj=file) as unpacked:
            yield cast("BinaryIO", unpacked)


def _csv_rows(
    path: FilePath, delimiter: str, encoding: str, field_limit: int
) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not empty, each with the number of the line on which it begins."""
    lines = _numbered(path, encoding, "")
    begin = taken = 0

    def texts() -> Iterator[str]:
        nonlocal taken
        for _, line in lines:
            taken += len(line)
            if taken > _FIELD_LIMIT:
                if taken > field_limit:
                    raise MalformedInputError(
                        path,
                        begin,
                        f"a row has more than {field_limit} characters; if no quote is missing, "
                        "give read_csv() a larger field_limit",
                    )
                if taken > csv.field_size_limit():
                    csv.field_size_limit(field_limit)
            yield line

    try:
        reader = csv.reader(texts(), delimiter=delimiter, strict=True)
        while True:
            begin, taken = reader.line_num + 1, 0
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise MalformedInputError(path, begin, f"no CSV: {error}") from error
            if not row:
                continue
            yield begin, row
    finally:
        lines.close()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]  # a generator


def _typed(
    path: FilePath,
    line: int,
    header: Sequence[str],
    row: Sequence[str],
    fields: Sequence[Callable[[str], object]],
) -> dict[str, object]:
    made: dict[str, object] = {}
    for name, text, field in zip(header, row, fields, strict=True):
        try:
            made[name] = field(text)
        except (ValueError, KeyError) as error:
            kind = next(kind for kind, known in _FIELDS.items() if known is field)
            raise MalformedInputError(path, line, f"{name} is {text!r}, not {kind}") from error
    return made


_FIELDS: Final[Mapping[str, Callable[[str], object]]] = {
    "str": lambda text: text,
    "int": lambda text: int(text) if text else None,
    "float": lambda text: float(text) if text else None,
    "bool": lambda text: _BOOLS[text.lower()] if text else None,
}
