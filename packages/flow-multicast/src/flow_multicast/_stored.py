"""Errors that are kept for subscribers who come later."""

from __future__ import annotations

from typing import cast

__all__ = ["release_frames"]


def release_frames(error: BaseException) -> None:
    """Let go of what the tracebacks of `error`, and of its causes, hold on to.

    A traceback keeps its frames and these keep their variables, the items among them (§3.13). The
    variables of the frames that have ended are cleared; frames that still run are left out of the
    traceback, since nobody could clear them later. The lines that raised stay readable.
    """
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    while waiting:
        error = waiting.pop()
        if id(error) in seen:
            continue
        seen.add(id(error))
        kept = trace = error.__traceback__
        while trace is not None:
            try:
                trace.tb_frame.clear()
            except RuntimeError:
                kept = trace.tb_next
            trace = trace.tb_next
        error.__traceback__ = kept
        if error.__cause__ is not None:
            waiting.append(error.__cause__)
        if error.__context__ is not None:
            waiting.append(error.__context__)
        if isinstance(error, BaseExceptionGroup):
            # isinstance knows the class, but not what it is a group of.
            waiting.extend(cast("BaseExceptionGroup[BaseException]", error).exceptions)
