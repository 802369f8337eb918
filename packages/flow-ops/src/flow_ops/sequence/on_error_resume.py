"""`on_error_resume`: another flow takes over where one has failed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar, cast, final, overload

from typing_extensions import override

from flow_core import hooks
from flow_core.conversion import as_flow
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.protocols import CoreSubscriber, Publisher
from flow_core.sources import from_publisher
from flow_core.stages import ErrorFilter, describe, error_filter, in_context, matches
from flow_ops.arbiters import SwitchArbiter
from flow_ops.coordination import coordinated

__all__ = ["on_error_resume"]

T = TypeVar("T")
D = TypeVar("D")


# Two overloads: mypy finds the union of both types only by the second one, pyright only by the
# first.
@overload
def on_error_resume(
    fallback: Flow[T] | Callable[[BaseException], Flow[T]], when: ErrorFilter = ...
) -> Operator[T, Flow[T]]: ...


@overload
def on_error_resume(
    fallback: Publisher[D] | Callable[[BaseException], Publisher[D]], when: ErrorFilter = ...
) -> Operator[T, Flow[T | D]]: ...


# Any: the overloads give its type.
def on_error_resume(
    fallback: Publisher[Any] | Callable[[BaseException], Publisher[Any]],
    when: ErrorFilter = Exception,
) -> Operator[Any, Flow[Any]]:
    """The items of this flow, and if it fails, those of another flow instead of the error.

    >>> import flow_core as flow
    >>> shares = flow.just(2, 1, 0).map(lambda n: 4 // n)
    >>> list(shares.on_error_resume(flow.just("cake")))
    [2, 4, 'cake']
    >>> list(shares.on_error_resume(lambda error: flow.just(type(error).__name__)))
    [2, 4, 'ZeroDivisionError']

    (`Flow.on_error_return` takes an item instead of a flow, `Flow.on_error_complete` nothing.)

    Demand: exact; the other flow gets the demand that was not used.
    Thread: that of the flow whose items they are; the function runs where the failure came.
    Fusion: none.
    Errors: those of this flow that `when` does not select, those of the other flow, and an error
    that the function raises, whose context is the failure.

    Args:
        fallback: the flow that follows; or a function that makes that flow from the error.
        when: selects the errors to handle; other errors pass.

    Raises:
        TypeError: if `fallback` is neither a flow nor a function, or `when` is not a filter of
            errors.
    """
    error_filter("on_error_resume", when)
    function: Callable[[BaseException], Publisher[Any]]
    if hasattr(fallback, "subscribe"):
        # An object with `subscribe` is a publisher, even if it can be called, too.
        other = from_publisher(cast("Publisher[Any]", fallback))
        function, detail = partial(_always, other), "a flow"
    elif callable(fallback):
        function, detail = fallback, describe(fallback)
    else:
        raise TypeError(f"on_error_resume() takes a Flow or a function, not {fallback!r}")
    if when is not Exception:
        detail += f", when={describe(when)}"
    return coordinated(
        "on_error_resume",
        detail,
        lambda flow, downstream, label: OnErrorResume[Any](flow, function, when, downstream, label),
    )


def _always(flow: Flow[T], _: BaseException) -> Flow[T]:
    return flow


@final
class OnErrorResume(SwitchArbiter[T]):
    """Runs `on_error_resume`."""

    __slots__ = ("_function", "_source", "_when")

    def __init__(
        self,
        source: Publisher[T],
        function: Callable[[BaseException], Publisher[T]],
        when: ErrorFilter,
        downstream: CoreSubscriber[T],
        label: str,
    ) -> None:
        super().__init__(downstream, label)
        self._source = source
        self._function: Callable[[BaseException], Publisher[T]] | None = function
        """Makes the other flow. None once it was called: errors of the other flow pass."""
        self._when = when

    @override
    def open(self) -> None:
        self.switch_to(self._source)

    @override
    def ended(self, error: BaseException | None) -> None:
        if error is None or self._function is None:
            self.end(error)
        else:
            self.outside(self._resume, error, hooks.drop_error)

    def _resume(self, error: BaseException) -> None:
        function, self._function = self._function, None
        if function is None or not matches(self._when, error):
            self.post(self.fail, error, hooks.drop_error)
            return
        try:
            made = as_flow(function(error), f"the function of {self.label}")
        except BaseException as raised:
            in_context(raised, error)
            raise
        self.switch_to(made)
