"""Errors that are kept, to be raised later."""

from __future__ import annotations

from collections.abc import Generator
from types import CodeType, FunctionType, TracebackType
from typing import Final, cast

__all__ = ["release_frames"]


def release_frames(error: BaseException) -> TracebackType | None:
    """Drop what the tracebacks of `error`, and of its causes, keep alive.

    A traceback refers to its frames. These refer to their variables, the items among them, and to
    the frames that called them, which may still run: clearing the frames would not help. So the
    tracebacks are replaced by others that show the same files, lines and functions, and keep
    nothing alive.

    Returns:
        The new traceback of `error`. Raising the error adds to its traceback: set this one again
        before the error is raised elsewhere.
    """
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        each.__traceback__ = _imitated(each.__traceback__)
        if each.__cause__ is not None:
            waiting.append(each.__cause__)
        if each.__context__ is not None:
            waiting.append(each.__context__)
        if isinstance(each, BaseExceptionGroup):
            # isinstance knows the class, but not the type of its errors.
            waiting.extend(cast("BaseExceptionGroup[BaseException]", each).exceptions)
    return error.__traceback__


def _nothing() -> Generator[None]:
    yield


_NOTHING: Final[CodeType] = _nothing.__code__


def _imitated(trace: TracebackType | None) -> TracebackType | None:
    entries: list[tuple[CodeType, int]] = []
    while trace is not None:
        entries.append((trace.tb_frame.f_code, trace.tb_lineno))
        trace = trace.tb_next
    made: TracebackType | None = None
    for code, line in reversed(entries):
        imitation = _NOTHING.replace(
            co_filename=code.co_filename,
            co_name=code.co_name,
            co_qualname=code.co_qualname,
            co_firstlineno=code.co_firstlineno,
        )
        # A generator that was not started has a frame without variables and without a caller.
        frame = FunctionType(imitation, {})().gi_frame
        made = TracebackType(made, frame, -1, line)
    return made
