"""Code that the operators over several flows share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, final

from typing_extensions import override

from flow_core import hooks
from flow_core.demand import UNBOUNDED
from flow_core.errors import none_given
from flow_core.protocols import EMPTY, Empty, Publisher
from flow_core.stages import describe
from flow_ops.coordination import BufferedInput, Coordinator, Input

__all__ = [
    "LatestInput",
    "check_function",
    "check_sources",
    "described",
    "take_errors",
]

T = TypeVar("T")
R = TypeVar("R")

_AnyInput = BufferedInput[Any]  # Any: inputs are of many types


def check_sources(name: str, sources: tuple[Publisher[T], ...]) -> None:
    """Check that all `sources` can be subscribed to.

    Raises:
        TypeError: if a source is not a publisher.
    """
    for source in sources:
        if not callable(getattr(source, "subscribe", None)):
            raise TypeError(
                f"{name}() takes flows, not {source!r}; flow_core.from_iterable() makes one of an "
                "iterable, flow_core.from_() one of other things"
            )


def check_function(name: str, parameter: str, function: object) -> None:
    """Check that `function` can be called, or is None.

    Raises:
        TypeError: if it cannot.
    """
    if function is not None and not callable(function):
        raise TypeError(f"{name}() takes a function as {parameter!r}, not {function!r}")


def described(count: int, function: object) -> str:
    """Describe the number of flows and the function, for messages."""
    detail = f"{count} flows"
    return detail if function is None else f"{detail}, {describe(function)}"


def take_errors(inputs: tuple[_AnyInput, ...], *, every: bool) -> list[BaseException]:
    """Return the errors of the inputs that have failed, and clear them there.

    With `every`, these are all errors, otherwise only the first one.
    """
    errors: list[BaseException] = []
    for one in inputs:
        error = one.error
        if error is not None:
            one.error = None
            errors.append(error)
            if not every:
                break
    return errors


@final
class LatestInput(Input[T]):
    """Takes everything that comes, and keeps only the last item.

    The source's thread writes `value` without the permit, so the source never has to wait.

    Args:
        owner: reads `value`.
        on_end: called when this input ends, with the permit; it gets the input and the error, or
            None for completion.
    """

    __slots__ = ("_on_end", "value")

    def __init__(
        self,
        owner: Coordinator[Any],  # Any: whatever it emits
        on_end: Callable[[LatestInput[T], BaseException | None], object],
    ) -> None:
        super().__init__(owner, UNBOUNDED)
        self._on_end = on_end
        self.value: T | Empty = EMPTY
        """The last item so far."""

    @override
    def on_next(self, item: T, /) -> None:
        if item is None:
            raise none_given("on_next")
        if self.done or self.gone or self.owner.over:
            hooks.drop_item(item)
        else:
            self.value = item

    def _end(self, error: BaseException | None) -> None:
        self.owner.release(self)
        self._on_end(self, error)
