"""The errors of the library, each a class below `FlowError`."""

from __future__ import annotations

import opcode
import sys
from collections.abc import Callable
from types import FrameType
from typing import Final, Never, Protocol, final

from flow_core import late

__all__ = [
    "BlockingInEventLoopError",
    "FlowError",
    "FlowTimeoutError",
    "LoopEndedError",
    "MissingBackpressureError",
    "NoConverterError",
    "NoItemError",
    "NoSuchNameError",
    "NoneItemError",
    "NotInstalledError",
    "OnErrorNotImplementedError",
    "PluginError",
    "ProtocolViolationError",
    "RejectedExecutionError",
    "TooManyItemsError",
    "UnknownOperatorError",
    "add_note",
    "cancelled_inside",
    "explanations",
    "is_fatal",
    "late_fusion",
    "leave",
    "none_given",
    "none_item",
    "tell_left",
    "throw_if_fatal",
]


class _Ended(Protocol):
    """The method of a subscriber that receives an error."""

    def on_error(self, error: BaseException, /) -> None:
        """See `Subscriber.on_error`."""
        ...


class FlowError(Exception):
    """The base of the errors that this library raises or signals itself.

    Errors of user functions are never wrapped: they travel as the same object, with a note of the
    stage in which they were raised.
    """


class NoneItemError(FlowError, TypeError):
    """None was given in place of an item."""


class MissingBackpressureError(FlowError):
    """An upstream sent more than was requested, and there is no room for the rest."""


class RejectedExecutionError(FlowError):
    """An executor refused a task, mostly because it was shut down."""


class FlowTimeoutError(FlowError, TimeoutError):
    """A flow sent no item, and did not end, within its time limit."""


class OnErrorNotImplementedError(FlowError):
    """A flow failed and its subscriber has no ``on_error``. The cause is the failure."""


class ProtocolViolationError(FlowError):
    """A publisher or a subscriber broke a rule of Reactive Streams; the text names the rule."""


class BlockingInEventLoopError(FlowError, RuntimeError):
    """A blocking call in the thread of an event loop or of all timers, which it would stop."""


class LoopEndedError(FlowError):
    """The event loop in which a flow waits is closed, or cancels its tasks at its end.

    An operator that tries again does so only in another loop.
    """


class NoItemError(FlowError, LookupError):
    """One item was expected and the flow had none."""


class TooManyItemsError(FlowError, LookupError):
    """One item was expected and the flow had more."""


class PluginError(FlowError):
    """A plugin cannot be loaded, or its records cannot be used."""


class NoSuchNameError(FlowError, AttributeError):
    """A name that a flow or a module of the library does not have.

    The text gives the name it has here.

    The text is made when it is read: `hasattr` raises this often, and does not read it.

    Args:
        owner: the object without such a name.
        name: the name.
    """

    def __init__(self, owner: str, name: str) -> None:
        # Otherwise Python would suggest names of `obj`, which are unlikely to be meant.
        super().__init__(owner, name, name=name, obj=_NAMELESS)

    def __str__(self) -> str:
        owner, name = self.args
        return f"{owner} has no {name!r}{late.hints().hint(name, owner)}"


class _Nameless:
    """An object without names, so that Python suggests none."""

    __slots__ = ()

    def __dir__(self) -> list[str]:
        return []


_NAMELESS: Final = _Nameless()
_IMPORT_FROM: Final = opcode.opmap["IMPORT_FROM"]


class NotInstalledError(FlowError, ModuleNotFoundError):
    """A method needs a package that is not installed, or a newer version of it."""


class UnknownOperatorError(FlowError, LookupError):
    """A name that no installed package registers."""


class NoConverterError(UnknownOperatorError, TypeError):
    """`flow_core.from_` was given an object that no installed package converts to a flow."""


def no_such_name(owner: str, name: str) -> Never:
    """Raise the error of a ``__getattr__`` of the library, which calls this itself.

    Args:
        owner: the name of a class that has operators, or the full name of a module.
        name: the name that was looked up.

    Raises:
        ImportError: for a ``from`` import, which would hide the text of another error.
        AttributeError: a `NoSuchNameError`; a plain one for private names, which tools look up.
    """
    if name.startswith("_"):
        raise AttributeError(f"{owner} has no attribute {name!r}")
    # No variable may refer to the error or a frame: with the traceback, that would be a cycle.
    if _imports(sys._getframe(2)):
        raise ImportError(str(NoSuchNameError(owner, name)), name=owner)
    raise NoSuchNameError(owner, name)


def _imports(frame: FrameType) -> bool:
    return frame.f_code.co_code[frame.f_lasti] == _IMPORT_FROM


def none_given(method: str) -> NoneItemError:
    """Return the error that a `method` of a subscriber raises when it is called with None."""
    return NoneItemError(f"{method}(None): None cannot be an item, an error or a subscription")


def none_item(who: str) -> NoneItemError:
    """Return the error of a flow when `who`, a source or a function of the user, gives None."""
    return NoneItemError(
        f"{who} gave None, which is not an item; leave such items out, or use another "
        "object in their place"
    )


def cancelled_inside(who: str, cancelled: BaseException) -> FlowError:
    """Return an error in place of a CancelledError that a coroutine got from something it awaits.

    The CancelledError itself would end the task that runs the flow, as if that had been cancelled.

    Args:
        who: the function, or the operator that has called it, for the message.
        cancelled: the error that it let through.
    """
    told = FlowError(f"{who}: what it awaits was cancelled, and the flow was not")
    told.__cause__ = cancelled
    return told


def late_fusion() -> ProtocolViolationError:
    """Return the error of `request_fusion` when it is called a second time, or too late."""
    return ProtocolViolationError("request_fusion comes once, in on_subscribe, before any request")


_FATAL: Final = (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError)

_LEFT: Final = "__flow_left__"
"""The attribute of a fatal error with a `_Left`."""


@final
class _Left:
    """The subscribers that a fatal error has left without an end."""

    __slots__ = ("owners", "waiting")

    def __init__(self) -> None:
        self.waiting: list[_Ended] = []
        self.owners: list[object] = []
        """The operators that have dropped them, and others before."""


explanations: Final[list[Callable[[BaseException], str | None]]] = []
"""Functions that may return a second note for an error of a user's function, with its likely cause;
packages add theirs."""


def add_note(error: BaseException, note: str) -> None:
    """Add `note` to `error`, once. An error that cannot be changed stays as it is.

    Args:
        error: an error that a function of the user has raised.
        note: where it was raised.
    """
    try:
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
            for explain in explanations:
                said = explain(error)
                if said is not None and said not in error.__notes__:
                    error.add_note(said)
    except Exception:  # such as a frozen dataclass, which takes no notes
        return


def is_fatal(error: BaseException) -> bool:
    """Return whether `error` must propagate and may not become ``on_error`` on its way.

    A RecursionError is fatal if the stack is full of operators, so that there is no room for
    signals either. If a function of the user raises it with a shallow stack, it is an error like
    any other, for example for a text that is nested too deep for a parser.
    """
    return isinstance(error, _FATAL) or (isinstance(error, RecursionError) and _too_deep(error))


def throw_if_fatal(error: BaseException) -> None:
    """Raise `error` again if it is fatal.

    Raises:
        BaseException: `error` itself, if `is_fatal` returns True.
    """
    if is_fatal(error):
        raise error


def _is_deep() -> bool:
    """Return whether a third of the stack is in use."""
    try:
        sys._getframe(sys.getrecursionlimit() // 3)
    except ValueError:
        return False
    return True


def _too_deep(error: RecursionError) -> bool:
    """Return whether `error` is due to flows that are nested too deep; if so, note that in it.

    The answer stays the same while it propagates, though the stack gets shallow; and for errors
    that are raised while it is handled.
    """
    if _LEFT in error.__dict__:
        return True
    left = _left_by(error)
    if left is None and not _is_deep():
        return False
    error.__dict__[_LEFT] = left or _Left()
    error.add_note(
        "too many operators are nested for Python's stack: let some of them run in another "
        "thread, by observe_on(executor) or subscribe_on(executor); give many flows to one "
        "operator, as concat(*flows) or merge(*flows), instead of one operator to another in a "
        "loop; or raise the limit with sys.setrecursionlimit"
    )
    return True


def _left_by(error: BaseException) -> _Left | None:
    """Return the subscribers that `error`, or an error before it, has left."""
    known: BaseException | None = error
    while known is not None:
        left = known.__dict__.get(_LEFT)
        if isinstance(left, _Left):
            return left
        known = known.__context__
    return None


def leave(error: BaseException, subscriber: _Ended | None, owner: object) -> None:
    """Remember that because of a fatal `error` nothing more is sent to `subscriber`.

    An operator calls this when it drops its downstream as `error` propagates, before it does so:
    this may raise another RecursionError. Where `error` ends in a thread in which no caller waits
    for it, `tell_left` sends the subscriber its end.

    Args:
        error: propagates after this.
        subscriber: has had no terminal; None if there is no subscriber.
        owner: what drops it: a subscriber, or the attribute ``owner`` of several. They pass nothing
            on any more, and need no end.
    """
    left = _left_by(error)
    if left is None:
        left = error.__dict__[_LEFT] = _Left()
    waiting = [one for one in left.waiting if not _belongs(one, owner)]
    if subscriber is not None and not any(_belongs(subscriber, gone) for gone in left.owners):
        waiting.append(subscriber)
    left.waiting = waiting
    left.owners.append(owner)  # last, so that nothing is lost if the stack had no room for this


def _belongs(subscriber: object, owner: object) -> bool:
    return subscriber is owner or getattr(subscriber, "owner", None) is owner


def tell_left(error: BaseException, *, heard: bool = False) -> None:
    """Send a fatal `error` to the subscribers that it has left without an end.

    For the bottom of a thread of an executor or a clock, before `error` is raised on: otherwise
    subscribers that wait elsewhere would wait for ever. A subscriber for whose signal the stack is
    too short leaves those after it, which get theirs from here. An error that ends a thread or the
    program is never sent itself: it is the cause of a FlowError.

    Args:
        error: the error that has come to the bottom.
        heard: whether it propagates to the code that caused it, so that an error that ends a
            program needs no signal.
    """
    if _is_deep():
        return  # the code at the bottom does so
    left = _left_by(error)
    told = error
    if left is not None and left.waiting and isinstance(error, _FATAL):
        if heard:
            left.waiting, left.owners = [], []
            return
        told = FlowError(f"the task that ran this flow was ended by {type(error).__name__}")
        told.__cause__ = error
    while left is not None:
        # A future may refer to the error, but should not keep a flow alive by it.
        waiting, left.waiting, left.owners = left.waiting, [], []
        again: BaseException | None = None
        for one in waiting:
            try:
                one.on_error(told)
            except BaseException as raised:
                again = raised
        left = None if again is None else _left_by(again)
