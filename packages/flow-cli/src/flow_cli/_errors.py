"""The messages of the `flow` command for errors; a traceback is shown only on request."""

from __future__ import annotations

import difflib
import linecache
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Final, cast

from flow_core.errors import FlowError, NoSuchNameError
from flow_core.plugins import plugin_host

__all__ = ["UsageError", "describe_error", "did_you_mean", "unknown_operator", "where_raised"]

_FOREIGN: Final = tuple(
    os.path.realpath(path) + os.sep
    for name, path in sysconfig.get_paths().items()
    if name in {"stdlib", "platstdlib", "purelib", "platlib"}
)
_MOST_LINKS: Final = 8
_TRACEBACK: Final = "Traceback (most recent call last):"
_FRAME: Final = re.compile(r' *File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<name>.+)')


class UsageError(FlowError):
    """The command cannot run; the text of the error is all that the user needs."""


def did_you_mean(name: str, known: Iterable[str], more: str = "") -> str:
    """Return `; did you mean …?` with similar names; an empty text if there are none."""
    near = difflib.get_close_matches(name, sorted(set(known)), 1)
    return f"; did you mean {near[0]!r}{more}?" if near else ""


def describe_error(error: BaseException, *, where: bool = True) -> list[str]:
    """Describe an error, its place in the user's code, its notes and its causes, line by line."""
    lines: list[str] = []
    for depth, link in enumerate(_chain(error)):
        text = _without_traceback(f"{type(link).__name__}: {link}".rstrip(": ").splitlines())
        lines.append(f"caused by {text[0]}" if depth else text[0])
        lines += [f"  {line}" for line in text[1:]]
        place = where_raised(link) if where else None
        if place is not None:
            lines.append(f"  raised at {place}")
        for note in getattr(link, "__notes__", ()):
            lines += [f"  {line}" for line in str(note).splitlines()]
        for part in _parts(link):
            lines += [f"  | {line}" for line in describe_error(part, where=where)]
    return lines


def _without_traceback(text: list[str]) -> list[str]:
    """Return a message without the traceback in it, such as that of an error from another process.

    Only the traceback's last line in the user's own code is kept.
    """
    begin = next((i for i, line in enumerate(text) if line.strip() == _TRACEBACK), None)
    if begin is None:
        return text
    places: list[str] = []
    for line, following in pairwise(text[begin:]):
        frame = _FRAME.match(line)
        if frame is not None and _is_users(frame["file"]):
            where = f"{_short(frame['file'])}:{frame['line']}, in {frame['name']}"
            places.append(f"there at {where}: {following.strip()}")
    return [*filter(None, text[:begin]), *places[-1:]]


def where_raised(error: BaseException) -> str | None:
    """Return ``file:line, in function: code`` of the last frame in the user's code."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        text = (error.text or "").strip()
        return f"{_short(error.filename)}:{error.lineno}" + (f": {text}" if text else "")
    found: tuple[FrameType, int] | None = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if _is_users(frame.f_code.co_filename):
            found = frame, line
    if found is None:
        return None
    code, line = found[0].f_code, found[1]
    text = linecache.getline(code.co_filename, line).strip()
    place = f"{_short(code.co_filename)}:{line}, in {code.co_name}"
    return f"{place}: {text}" if text else place


def unknown_operator(error: BaseException) -> str | None:
    """Return the message for an unknown operator, if `error` is about one; None otherwise."""
    if isinstance(error, NoSuchNameError):
        return str(error)
    if isinstance(error, ImportError) and str(error).startswith(f"{error.name} has no "):
        return str(error)  # see no_such_name
    return None


def _packages() -> set[str]:
    return {"flow_core"} | {plugin.module.partition(".")[0] for plugin in plugin_host().plugins}


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen and len(seen) < _MOST_LINKS:
        seen.add(id(link))
        yield link
        link = link.__cause__


def _parts(error: BaseException) -> tuple[BaseException, ...]:
    if not isinstance(error, BaseExceptionGroup):
        return ()
    return cast("BaseExceptionGroup[BaseException]", error).exceptions  # of any errors


def _is_users(file: str) -> bool:
    if file.startswith("<"):
        return False
    path = os.path.realpath(file)
    return not path.startswith((*_own_folders(), *_FOREIGN)) and "site-packages" not in path


def _own_folders() -> Iterator[str]:
    """Return the folders of the core and of the packages that plug into it."""
    for name in _packages():
        for folder in getattr(sys.modules.get(name), "__path__", ()):
            yield os.path.realpath(folder) + os.sep


def _short(file: str) -> str:
    """Return `file` relative to the current folder, if it is inside that folder."""
    return file.removeprefix(str(Path.cwd()) + os.sep)
