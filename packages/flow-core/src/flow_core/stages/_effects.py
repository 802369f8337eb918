"""Stages that observe signals and do not change them, and the methods that add them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, final

from flow_core.boundaries._hidden import observing_requests
from flow_core.errors import add_note, is_fatal
from flow_core.stages._fluent import Fluent
from flow_core.stages._template import UNSET, Stage, Template

if TYPE_CHECKING:
    from flow_core.flow import Flow

__all__ = ["Observing", "labels"]

T_co = TypeVar("T_co", covariant=True)

DO_ON_NEXT: Final = Template(
    "do_on_next",
    params=("action",),
    on_item="""
    action(x)
    EMIT
    """,
)

DO_AFTER_NEXT: Final = Template(
    "do_after_next",
    params=("action",),
    on_item="""
    item = x
    EMIT
    action(item)
    """,
)

DO_ON_SUBSCRIBE: Final = Template("do_on_subscribe", params=("action",), on_start="action()")

DO_ON_COMPLETE: Final = Template("do_on_complete", params=("action",), on_end="action()")


def told(action: Callable[..., object], error: BaseException, *, alone: bool = False) -> None:
    """Call `action` with `error`, or without arguments; if it fails too, raise both errors."""
    try:
        if alone:
            action()
        else:
            action(error)
    except BaseException as raised:
        if is_fatal(raised) or not isinstance(raised, Exception):
            raise
        if raised is error or not isinstance(error, Exception):
            raise
        raise ExceptionGroup("the flow failed, and so did its callback", [error, raised]) from None


DO_ON_ERROR: Final = Template(
    "do_on_error", params=("action",), on_error="told(action, error)", helpers=(told,)
)

DO_ON_TERMINATE: Final = Template(
    "do_on_terminate",
    params=("action",),
    on_end="action()",
    on_error="told(action, error, alone=True)",
    helpers=(told,),
)

DO_AFTER_TERMINATE: Final = Template(
    "do_after_terminate",
    params=("action",),
    state="ended = False",
    on_end="ended = True",
    on_error="ended = True",
    on_close="""
    if ended:
        action()
    """,
)

DO_ON_CANCEL: Final = Template(
    "do_on_cancel",
    params=("action",),
    state="ended = False",
    on_end="ended = True",
    on_error="ended = True",
    on_close="""
    if not ended:
        action()
    """,
)

FINALLY_ACTION: Final = Template("finally_action", params=("action",), on_close="action()")


@final
class SignalLog:
    """Writes signals to a logger.

    Args:
        name: the name of the flow in the log lines.
        logger: the name of the logger.
        level: the level of the lines, as in the module `logging`.
    """

    __slots__ = ("_level", "_logger", "_name")

    def __init__(self, name: str, logger: str, level: int) -> None:
        self._name = name
        self._logger = logger
        self._level = level

    def __call__(self, signal: str, value: object = UNSET) -> None:
        """Write one line for a signal."""
        logger = logging.getLogger(self._logger)
        if logger.isEnabledFor(self._level):
            shown = "" if value is UNSET else repr(value)
            logger.log(self._level, "%s: %s(%s)", self._name, signal, shown)

    def __repr__(self) -> str:
        return repr(self._name)


LOG: Final = Template(
    "log",
    params=("log",),
    state="ended = False",
    on_start="log('on_subscribe')",
    on_item="""
    log('on_next', x)
    EMIT
    """,
    on_end="""
    ended = True
    log('on_complete')
    """,
    on_error="""
    ended = True
    log('on_error', error)
    """,
    on_close="""
    if not ended:
        log('cancel')
    """,
)


CHECKPOINT: Final = Template(
    "checkpoint",
    params=("note",),
    on_error="add_note(error, note)",
    helpers=(add_note,),
)

NAME: Final = Template("name", params=("name",))

TAG: Final = Template("tag", params=("key", "value"))


class Observing(Fluent[T_co], Generic[T_co]):
    """The methods that observe signals and do not change them."""

    __slots__ = ()

    def do_on_next(self, action: Callable[[T_co], object]) -> Flow[T_co]:
        """Call `action` with each item before it is passed on.

        >>> import flow_core as flow
        >>> list(flow.range(2).do_on_next(print))
        0
        1
        [0, 1]
        """
        return self._add(DO_ON_NEXT, action)

    def do_after_next(self, action: Callable[[T_co], object]) -> Flow[T_co]:
        """Call `action` with each item after it was passed on.

        >>> import flow_core as flow
        >>> list(flow.range(2).do_after_next(print).map(str))
        0
        1
        ['0', '1']
        """
        return self._add(DO_AFTER_NEXT, action)

    def do_on_subscribe(self, action: Callable[[], object]) -> Flow[T_co]:
        """Call `action` for each subscriber, before the first item is requested.

        >>> import flow_core as flow
        >>> list(flow.just(1).do_on_subscribe(lambda: print("subscribed")))
        subscribed
        [1]
        """
        return self._add(DO_ON_SUBSCRIBE, action)

    def do_on_request(self, action: Callable[[int], object]) -> Flow[T_co]:
        """Call `action` with each amount that the downstream requests, in the requesting thread.

        >>> import flow_core as flow
        >>> list(flow.range(2).do_on_request(print).iterate(prefetch=4))
        4
        [0, 1]

        Iterating over a synchronous flow requests nothing; behind this operator, it requests 128
        items at a time. An error raised by `action` goes to the dropped-errors hook. Demand: passed
        on unchanged.
        Thread: items come on the upstream's thread. Fusion: none, as behind `hide`.
        """
        return self._pipe(observing_requests(action))

    def do_on_complete(self, action: Callable[[], object]) -> Flow[T_co]:
        """Call `action` when the flow completes, before the subscriber gets on_complete.

        >>> import flow_core as flow
        >>> list(flow.just(1).do_on_complete(lambda: print("complete")))
        complete
        [1]
        """
        return self._add(DO_ON_COMPLETE, action)

    def do_on_error(self, action: Callable[[BaseException], object]) -> Flow[T_co]:
        """Call `action` with the error when the flow fails, before the subscriber gets the error.

        >>> import flow_core as flow
        >>> list(flow.just(0).map(lambda n: 1 / n).do_on_error(print).on_error_complete())
        division by zero
        []

        Args:
            action: called with the error; if it fails too, the flow fails with an ExceptionGroup of
                both.
        """
        return self._add(DO_ON_ERROR, action)

    def do_on_terminate(self, action: Callable[[], object]) -> Flow[T_co]:
        """Call `action` when the flow ends, before the subscriber gets on_complete or on_error.

        >>> import flow_core as flow
        >>> list(flow.just(1).do_on_terminate(lambda: print("ends")))
        ends
        [1]
        """
        return self._add(DO_ON_TERMINATE, action)

    def do_after_terminate(self, action: Callable[[], object]) -> Flow[T_co]:
        """Call `action` after the subscriber has got on_complete or on_error.

        >>> import flow_core as flow
        >>> list(flow.just(1).do_after_terminate(lambda: print("over")))
        over
        [1]

        An error raised by `action` goes to the dropped-errors hook.
        """
        return self._add(DO_AFTER_TERMINATE, action)

    def do_on_cancel(self, action: Callable[[], object]) -> Flow[T_co]:
        """Call `action` when the flow is cancelled from downstream: by the subscriber or a stage.

        >>> import flow_core as flow
        >>> list(flow.range(9).do_on_cancel(lambda: print("enough")).take(2))
        enough
        [0, 1]

        Args:
            action: called by the thread that cancels, or by the loop that was running then. An
                error raised by `action` goes to the dropped-errors hook.
        """
        return self._add(DO_ON_CANCEL, action)

    def finally_action(self, action: Callable[[], object]) -> Flow[T_co]:
        """Call `action` once when the flow has ended: completed, failed or cancelled.

        >>> import flow_core as flow
        >>> handle = flow.just("item").finally_action(lambda: print("end")).subscribe(print)
        item
        end

        Args:
            action: called after the subscriber has got on_complete or on_error, if it gets one of
                them. An error raised by `action` goes to the dropped-errors hook.
        """
        return self._add(FINALLY_ACTION, action)

    def do_action(
        self,
        on_next: Callable[[T_co], object] | None = None,
        on_error: Callable[[BaseException], object] | None = None,
        on_complete: Callable[[], object] | None = None,
        *,
        on_subscribe: Callable[[], object] | None = None,
        on_cancel: Callable[[], object] | None = None,
        on_close: Callable[[], object] | None = None,
    ) -> Flow[T_co]:
        """Call functions for several signals: the methods named ``do_…`` in one.

        >>> import flow_core as flow
        >>> ended = flow.just(1).do_action(on_next=print, on_complete=lambda: print("end"))
        >>> list(ended)
        1
        end
        [1]

        Args:
            on_next: see `do_on_next`.
            on_error: see `do_on_error`.
            on_complete: see `do_on_complete`.
            on_subscribe: see `do_on_subscribe`.
            on_cancel: see `do_on_cancel`.
            on_close: see `finally_action`.
        """
        made = self._whole()
        for template, action in (
            (DO_ON_SUBSCRIBE, on_subscribe),
            (DO_ON_NEXT, on_next),
            (DO_ON_ERROR, on_error),
            (DO_ON_COMPLETE, on_complete),
            (DO_ON_CANCEL, on_cancel),
            (FINALLY_ACTION, on_close),
        ):
            if action is not None:
                made = made._add(template, action)
        return made

    tap = do_action

    def log(
        self, name: str = "flow", *, logger: str = "flow", level: int = logging.INFO
    ) -> Flow[T_co]:
        """Log each signal that passes this operator.

        >>> import flow_core as flow
        >>> list(flow.range(2).log("numbers"))
        [0, 1]

        Args:
            name: the name of the flow in the log lines.
            logger: the name of the logger.
            level: the level of the lines, as in the module `logging`.
        """
        return self._add(LOG, SignalLog(name, logger, level))

    def checkpoint(self, description: str = "") -> Flow[T_co]:
        """Add a note to each error that passes this operator: the line that calls `checkpoint`.

        >>> import flow_core as flow
        >>> try:
        ...     list(flow.error(KeyError(1)).checkpoint("orders"))
        ... except KeyError as error:
        ...     print(error.__notes__[0].partition(",")[0])
        passed the checkpoint 'orders'

        It costs nothing until there is an error.

        Args:
            description: what this part of the flow is for.
        """
        what = f" {description!r}" if description else ""
        return self._add(CHECKPOINT, f"passed the checkpoint{what}, assembled at {self._where()}")

    def name(self, name: str) -> Flow[T_co]:
        """Name the flow up to this point; `flow explain`, statistics and notes on errors show it.

        >>> import flow_core as flow
        >>> flow.range(3).name("numbers")
        range(0, 3) | name(name='numbers')
        """
        return self._add(NAME, name)

    def tag(self, key: str, value: str) -> Flow[T_co]:
        """Tag the flow up to this point; `flow explain` and statistics show the tag.

        >>> import flow_core as flow
        >>> list(flow.range(2).tag("kind", "numbers"))
        [0, 1]

        Args:
            key: the name of the tag.
            value: the value of the tag.
        """
        return self._add(TAG, key, value)


def labels(stages: Iterable[Stage[Any, Any]]) -> tuple[str | None, tuple[tuple[str, str], ...]]:
    """Return the name and the tags that `Flow.name` and `Flow.tag` have put among stages."""
    name: str | None = None
    tags: list[tuple[str, str]] = []
    for stage in stages:
        if stage.template is NAME:
            name = str(stage.args[0])
        elif stage.template is TAG:
            key, value = stage.args
            tags.append((str(key), str(value)))
    return name, tuple(tags)
