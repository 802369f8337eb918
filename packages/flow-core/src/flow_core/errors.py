"""What can go wrong, each as a class of its own below `FlowError`."""

from __future__ import annotations

from typing import Final

__all__ = [
    "BlockingInEventLoopError",
    "FlowError",
    "FlowTimeoutError",
    "MissingBackpressureError",
    "NoConverterError",
    "NoItemError",
    "NoneItemError",
    "OnErrorNotImplementedError",
    "PluginError",
    "ProtocolViolationError",
    "RejectedExecutionError",
    "TooManyItemsError",
    "UnknownOperatorError",
    "is_fatal",
    "none_given",
    "throw_if_fatal",
]


class FlowError(Exception):
    """The root of the errors that this library raises or signals itself.

    Errors of user functions are never wrapped: they travel as the identical object, with a note
    that says in which stage they were raised.
    """


class NoneItemError(FlowError, TypeError):
    """None was given where an item must be: None is not an item (§2.13)."""


class MissingBackpressureError(FlowError):
    """An upstream sent more than was requested, and there is no room for the rest."""


class RejectedExecutionError(FlowError):
    """An executor refused a task, mostly because it was shut down."""


class FlowTimeoutError(FlowError, TimeoutError):
    """A flow gave nothing within the time that it was given."""


class OnErrorNotImplementedError(FlowError):
    """A flow failed and its subscriber was given no ``on_error``. The cause is the failure."""


class ProtocolViolationError(FlowError):
    """A publisher or a subscriber broke a rule of Reactive Streams; the text names the rule."""


class BlockingInEventLoopError(FlowError, RuntimeError):
    """A blocking call in the thread of a running event loop, which it would stop."""


class NoItemError(FlowError, LookupError):
    """One item was wanted and the flow had none."""


class TooManyItemsError(FlowError, LookupError):
    """One item was wanted and the flow had more."""


class PluginError(FlowError):
    """A plugin cannot be loaded, or gives records that cannot be used."""


class UnknownOperatorError(FlowError, LookupError):
    """A name that no installed package registers."""


class NoConverterError(UnknownOperatorError, TypeError):
    """`flow_core.from_` was given what no installed package makes a flow of."""


def none_given(method: str) -> NoneItemError:
    """What a `method` of a subscriber raises when it is called with None (§2.13)."""
    return NoneItemError(f"{method}(None): None is no item, no error and no subscription (§2.13)")


_FATAL: Final = (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError)


def is_fatal(error: BaseException) -> bool:
    """Whether `error` must propagate and may never become ``on_error`` (X10)."""
    return isinstance(error, _FATAL)


def throw_if_fatal(error: BaseException) -> None:
    """Raise `error` again if it is fatal.

    Raises:
        BaseException: `error` itself, when `is_fatal` says so.
    """
    if isinstance(error, _FATAL):
        raise error
