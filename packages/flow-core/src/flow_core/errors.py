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
    """The part of a subscriber that receives an error."""

    def on_error(self, error: BaseException, /) -> None:
        """See `Subscriber.on_error`."""
        ...


class FlowError(Exception):
    """The base of the errors that this library raises or signals itself.

    Errors of user functions are never wrapped: the flow passes on the same error object, with a
    note that names the stage in which it was raised.
    """


class NoneItemError(FlowError, TypeError):
    """None was given where an item is needed."""


class MissingBackpressureError(FlowError):
    """An upstream has sent more than was requested, and there is no room for the rest."""


class RejectedExecutionError(FlowError):
    """An executor refused a task, mostly because it was shut down."""


class FlowTimeoutError(FlowError, TimeoutError):
    """A flow sent no item, and did not end, within its time limit."""


class OnErrorNotImplementedError(FlowError):
    """A flow failed and its subscriber has no ``on_error``. The cause is the failure."""


class ProtocolViolationError(FlowError):
    """A publisher or a subscriber broke a rule of Reactive Streams; the text names the rule."""


class BlockingInEventLoopError(FlowError, RuntimeError):
    """A call would block the thread of an event loop, or the thread that runs all timers."""


class LoopEndedError(FlowError):
    """The event loop in which a flow waits is closed, or cancels its tasks at its end.

    An operator that tries again after this error does so only in another loop.
    """


class NoItemError(FlowError, LookupError):
    """An item was expected, and the flow had none."""


class TooManyItemsError(FlowError, LookupError):
    """One item was expected, and the flow had more than one."""


class PluginError(FlowError):
    """A plugin cannot be loaded, or its records cannot be used."""


class NoSuchNameError(FlowError, AttributeError):
    """A flow, or a module of the library, does not have the name that was looked up.

    The text of the error says what the name is called in this library.

    The text is made only when it is read, because `hasattr` raises this error often and does not
    read its text.

    Args:
        owner: the object that does not have the name.
        name: the name that was looked up.
    """

    def __init__(self, owner: str, name: str) -> None:
        # Otherwise Python would suggest names of `obj`, which are unlikely to be meant.
        super().__init__(owner, name, name=name, obj=_NAMELESS)

    def __str__(self) -> str:
        owner, name = self.args
        return f"{owner} has no {name!r}{late.hints().hint(name, owner)}"


class _Nameless:
    """An object without attributes, so that Python suggests no name of it."""

    __slots__ = ()

    def __dir__(self) -> list[str]:
        return []


_NAMELESS: Final = _Nameless()
_IMPORT_FROM: Final = opcode.opmap["IMPORT_FROM"]


class NotInstalledError(FlowError, ModuleNotFoundError):
    """A method needs a package that is not installed, or a newer version of it."""


class UnknownOperatorError(FlowError, LookupError):
    """No installed package registers the name that was looked up."""


class NoConverterError(UnknownOperatorError, TypeError):
    """`flow_core.from_` was given an object that no installed package converts to a flow."""


def no_such_name(owner: str, name: str) -> Never:
    """Raise the error for a missing name. A ``__getattr__`` of the library calls this directly.

    Args:
        owner: the name of a class that has operators, or the full name of a module.
        name: the name that was looked up.

    Raises:
        ImportError: if the name is looked up by a ``from`` import, which would hide the text of any
            other error.
        AttributeError: a `NoSuchNameError`; for private names, which tools look up, a plain
            AttributeError.
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
    """Return the error for a None that came from `who`, a source or a function of the user."""
    return NoneItemError(
        f"{who} gave None, which is not an item; leave such items out, or use another "
        "object in their place"
    )


def cancelled_inside(who: str, cancelled: BaseException) -> FlowError:
    """Return an error in place of a CancelledError that a coroutine got from what it awaits.

    The CancelledError itself would end the task that runs the flow, as if that task had been
    cancelled.

    Args:
        who: the user's coroutine function, or the operator that has called it, for the message.
        cancelled: the CancelledError that the coroutine let through.
    """
    told = FlowError(f"{who}: what it awaits was cancelled, and the flow was not")
    told.__cause__ = cancelled
    return told


def late_fusion() -> ProtocolViolationError:
    """Return the error that `request_fusion` raises if it is called twice, or too late."""
    return ProtocolViolationError("request_fusion comes once, in on_subscribe, before any request")


_FATAL: Final = (KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError)

_LEFT: Final = "__flow_left__"
"""The attribute under which a fatal error keeps its `_Left`."""


@final
class _Left:
    """The subscribers that a fatal error has left without an end."""

    __slots__ = ("owners", "waiting")

    def __init__(self) -> None:
        self.waiting: list[_Ended] = []
        self.owners: list[object] = []
        """The operators that have dropped these subscribers, and operators that had dropped others
        earlier."""


explanations: Final[list[Callable[[BaseException], str | None]]] = []
"""Functions that may return a second note, with the likely cause, for an error of a user's
function; packages add theirs to this list."""


def add_note(error: BaseException, note: str) -> None:
    """Add `note` to `error`, once. Do nothing if the error cannot be changed.

    Args:
        error: an error that a function of the user has raised.
        note: says where the error was raised.
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
    """Return True if `error` must propagate, and must not be turned into ``on_error``.

    A RecursionError is fatal if the stack is full of operators: there is no room for signals then
    either. If a function of the user raises a RecursionError while the stack is shallow, it is an
    error like any other; a parser, for example, raises it for a text that is nested too deep.
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
    """Return whether more than a third of the stack is in use."""
    try:
        sys._getframe(sys.getrecursionlimit() // 3)
    except ValueError:
        return False
    return True


def _too_deep(error: RecursionError) -> bool:
    """Return whether flows that are nested too deep caused `error`; if so, add a note that says so.

    The answer for an error stays the same while the error propagates, though the stack gets
    shallower. Errors that are raised while it is handled get the same answer.
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
    """Return the subscribers that were left without an end by `error`, or by an error before it."""
    known: BaseException | None = error
    while known is not None:
        left = known.__dict__.get(_LEFT)
        if isinstance(left, _Left):
            return left
        known = known.__context__
    return None


def leave(error: BaseException, subscriber: _Ended | None, owner: object) -> None:
    """Remember that nothing more is sent to `subscriber`, because of the fatal `error`.

    An operator that drops its downstream because `error` propagates calls this before it does so,
    since this call may raise another RecursionError. Where `error` ends in a thread in which no
    caller waits for it, `tell_left` sends the subscriber its end.

    Args:
        error: the fatal error, which propagates after this call.
        subscriber: a subscriber that has had no terminal yet; None if there is no subscriber.
        owner: the subscriber that drops `subscriber`; or an object that several such subscribers
            have as their attribute ``owner``. They pass on no further signals, and need no on_error
            themselves.
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

    The code at the bottom of a thread of an executor or a clock calls this before it raises `error`
    again: otherwise, subscribers that wait elsewhere would wait for ever. If there is too little
    room on the stack to signal one subscriber, the subscribers downstream of it are left without an
    end in turn; this call then signals those, too. An error that ends a thread or the program is
    not sent itself: subscribers get a FlowError, whose cause it is.

    Args:
        error: the fatal error that has reached the bottom of the thread.
        heard: whether `error` propagates to the code that caused it. If so, an error that ends a
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
