"""The errors that flows fail with, which name the operator."""

from __future__ import annotations

from flow_core.errors import MissingBackpressureError, add_note, throw_if_fatal

__all__ = ["blamed", "combined", "no_stop", "overflow"]


def blamed(error: BaseException, label: str) -> BaseException:
    """Return the flow's error, now that a function of the operator `label` has raised `error`.

    Raises:
        BaseException: `error`, if it is fatal.
    """
    throw_if_fatal(error)
    error = no_stop(error)
    add_note(error, f"in {label}")
    return error


def no_stop(error: BaseException) -> BaseException:
    """Return `error`, or a RuntimeError in place of a StopIteration (PEP 479)."""
    if not isinstance(error, StopIteration):
        return error
    stopped = RuntimeError("a function of the flow raised StopIteration")
    stopped.__cause__ = error
    return stopped


def combined(label: str, errors: list[BaseException]) -> BaseException:
    """Return the only one of `errors`, or a group of all of them.

    The message of the group names the operator, `label`.
    """
    if len(errors) == 1:
        return errors[0]
    return BaseExceptionGroup(f"{len(errors)} errors in {label}", errors)


def overflow(
    label: str, requested: int | None = None, *, who: str = "a source"
) -> MissingBackpressureError:
    """Return the error for a source of the operator `label` that has sent more than was requested.

    Args:
        label: the operator and where it was assembled.
        requested: how many items were requested, if that is known.
        who: the name of the sender, for the message.
    """
    what = "was requested" if requested is None else f"the {requested} items that were requested"
    return MissingBackpressureError(
        f"{who} of {label} sent more than {what}; put a back-pressure operator after a source "
        "that ignores demand"
    )
