"""Which stage an error came from: each line of a loop knows the stage that it was made for."""

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

_AnyStage = Stage[Any, Any]  # Any: the types of neighbouring stages only fit each other

OWNERS: dict[str, tuple[tuple[int, ...], tuple[Template, ...]]] = {}
"""By the file of a loop: the stage that each line was made for, and their templates."""


class Raised(enum.Enum):
    """Who raised an error that came out of a generated loop."""

    UPSTREAM = "the source"
    STAGE = "a stage"
    DOWNSTREAM = "the subscriber"


class Staged(Protocol):
    """What a loop was made of, which is asked for its stages when one of them fails."""

    def _staged(self) -> Program[Any, Any]: ...  # Any: whatever the items are


def none_item(made: Staged, index: int) -> NoneItemError:
    stage = made._staged().stages[index]
    return errors.none_item(str(stage.args[0]) if stage.template is CHECK else repr(stage))


def no_item(prepared: Any) -> NoItemError:  # Any: a `Prepared`, of whatever items
    return NoItemError(
        f"{prepared.__name__}.first(): the flow has no item; first_or_default(item) at its end "
        "gives one instead"
    )


def annotate(error: Exception, made: Staged) -> None:
    """Called by a pulled loop that fails: say in a note which stage it was.

    Raises:
        RuntimeError: for a StopIteration, which Python would make one of, too, without a note.
    """
    owner, _ = owner_of(error.__traceback__, made)
    shown = caught(error)
    if owner >= 0:
        note_stage(shown, made, owner)
    if shown is not error:
        raise shown


def owner_of(trace: TracebackType | None, made: Staged) -> tuple[int, TracebackType | None]:
    """The stage whose line an error passed in the loop of `made`, and the trace from there on.

    It is `HEAD`, with the whole trace, if the error did not pass that loop.
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
    """What the stages see of an error: as it would come out of a generator (PEP 479)."""
    if not isinstance(error, StopIteration):
        return error
    shown = RuntimeError("a function of the flow raised StopIteration")
    shown.__cause__ = error
    return shown.with_traceback(error.__traceback__)


def handler_of(error: BaseException, made: Staged, handlers: tuple[int, ...], last: int) -> int:
    """The first of the `handlers` that `error` meets on its way down after the `last`, or -1."""
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
        return  # the compiler's own, which nobody counts
    note, where = f"in stage {place} of {count}: {stage!r}", stage.assembled_at
    if where is not None:
        note += f", assembled at {where}"
    add_note(error, note)
