"""Finds the stage that an error came from: each line of a loop knows its stage."""

from __future__ import annotations

import enum
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from flow_core import errors
from flow_core.errors import NoItemError, NoneItemError, add_note, is_fatal
from flow_core.stages._codegen import AGAIN, HEAD, TAIL
from flow_core.stages._filtering import CHECK
from flow_core.stages._template import Stage, Template

if TYPE_CHECKING:
    from flow_core.stages._program import Program

__all__ = [
    "OWNERS",
    "Raised",
    "Staged",
    "annotate",
    "caught",
    "handler_of",
    "no_item",
    "none_item",
    "note_stage",
    "owner_of",
]

_AnyStage = Stage[Any, Any]  # Any: the types of neighbouring stages need only fit each other

OWNERS: dict[str, tuple[tuple[int, ...], tuple[Template, ...]]] = {}
"""The stage of each line, and the templates of all stages; by the file name of a loop."""


class Raised(enum.Enum):
    """The place where an error that came out of a generated loop was raised."""

    UPSTREAM = "the source"
    STAGE = "a stage"
    DOWNSTREAM = "the subscriber"


class Staged(Protocol):
    """The object that a loop was made from; it returns its stages when one of them fails."""

    def _staged(self) -> Program[Any, Any]: ...  # Any: items of any type


def none_item(made: Staged, index: int) -> NoneItemError:
    stage = made._staged().stages[index]
    return errors.none_item(str(stage.args[0]) if stage.template is CHECK else repr(stage))


def no_item(prepared: Any) -> NoItemError:  # Any: a `Prepared`, of items of any type
    return NoItemError(
        f"{prepared.__name__}.first(): the flow has no item; first_or_default(item) at its end "
        "gives one instead"
    )


def annotate(error: Exception, made: Staged) -> None:
    """Add a note that names the stage which failed; called by a pulled loop.

    Raises:
        RuntimeError: for a StopIteration, because Python would turn that into a RuntimeError
            without a note.
    """
    owner, _ = owner_of(error.__traceback__, made)
    shown = caught(error)
    if owner >= 0:
        note_stage(shown, made, owner)
    if shown is not error:
        raise shown


def owner_of(trace: TracebackType | None, made: Staged) -> tuple[int, TracebackType | None]:
    """Return the stage whose line in the loop of `made` raised an error, and the trace from there.

    If the error did not pass that loop, the stage is `HEAD`, with the whole trace.
    """
    inner, stages = trace, made._staged().stages
    while inner is not None:
        owners = OWNERS.get(inner.tb_frame.f_code.co_filename)
        if owners is not None and _is_shape(owners[1], stages):
            owner = owners[0][inner.tb_lineno - 1]
            if owner != AGAIN:
                return owner, inner.tb_next
        inner = inner.tb_next
    return HEAD, trace


def _is_shape(templates: tuple[Template, ...], stages: tuple[_AnyStage, ...]) -> bool:
    return len(templates) == len(stages) and all(
        template is stage.template for template, stage in zip(templates, stages, strict=True)
    )


def caught(error: BaseException) -> BaseException:
    """Return an error as the stages get it: as it would come out of a generator (PEP 479)."""
    if not isinstance(error, StopIteration):
        return error
    shown = RuntimeError("a function of the flow raised StopIteration")
    shown.__cause__ = error
    return shown.with_traceback(error.__traceback__)


def handler_of(error: BaseException, made: Staged, handlers: tuple[int, ...], last: int) -> int:
    """Return the first of `handlers` that `error` meets on its way down after `last`, or -1."""
    if is_fatal(error):
        return -1
    owner, _ = owner_of(error.__traceback__, made)
    if owner == TAIL:
        return -1
    if owner >= 0:
        note_stage(error, made, owner)
    return next((index for index in handlers if index > max(owner, last)), -1)


def note_stage(error: BaseException, made: Staged, index: int) -> None:
    program = made._staged()
    stage = program.stages[index]
    place, count = program.placed(index)
    if not place:
        return  # the compiler's own stage, which is not counted
    note, where = f"in stage {place} of {count}: {stage!r}", stage.assembled_at
    if where is not None:
        note += f", assembled at {where}"
    add_note(error, note)
