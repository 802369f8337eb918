"""Stages that turn the end of a flow into something else, and the methods that add them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar, cast

from flow_core.notifications import Notification, OnComplete, OnError, OnNext
from flow_core.stages._fluent import Fluent, given_items
from flow_core.stages._template import Template, describe

if TYPE_CHECKING:
    from flow_core.flow import Flow

__all__ = ["ErrorFilter", "Recovering"]

T_co = TypeVar("T_co", covariant=True)
D = TypeVar("D")
R = TypeVar("R")

ErrorFilter: TypeAlias = (
    type[BaseException] | tuple[type[BaseException], ...] | Callable[[BaseException], object]
)
"""Selects errors: by their class, or by a function that returns something true for them."""


def matches(when: ErrorFilter, error: BaseException) -> bool:
    """Return whether `when` selects `error`.

    If `when` is a function and raises another error, that error has `error` as its context.

    Args:
        when: selects the errors.
        error: the error of the flow.
    """
    if isinstance(when, type | tuple):
        return isinstance(error, when)
    try:
        return bool(when(error))
    except BaseException as raised:
        in_context(raised, error)
        raise


def in_context(raised: BaseException, error: BaseException) -> None:
    """Make `error` the context of `raised`, as Python does in an ``except`` block."""
    if raised is not error and raised.__context__ is None and raised.__cause__ is None:
        with suppress(Exception):  # of an error that cannot be changed
            raised.__context__ = error


def error_filter(operator: str, when: ErrorFilter) -> ErrorFilter:
    """Return `when` itself, if it selects errors.

    Args:
        operator: the name of the operator, for messages.
        when: the user's argument.

    Raises:
        TypeError: if `when` is neither a class of exceptions, nor a tuple of them, nor a function.
    """
    given: object = when  # this is where the type is checked
    classes: tuple[object, ...] = (given,)
    if isinstance(given, tuple):
        # Isinstance does not know the type of its items.
        classes = cast("tuple[object, ...]", given)
    if all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in classes):
        return when
    if isinstance(when, type | tuple) or not callable(when):
        raise TypeError(
            f"{operator}(when) takes a class of exceptions, a tuple of them or a function, "
            f"not {when!r}"
        )
    return when


ON_ERROR_RETURN: Final = Template(
    "on_error_return",
    params=("item", "when"),
    on_error="""
    if matches(when, error):
        x = item
        EMIT
        STOP
    """,
    helpers=(matches,),
)

ON_ERROR_COMPLETE: Final = Template(
    "on_error_complete",
    params=("when",),
    on_error="""
    if matches(when, error):
        STOP
    """,
    helpers=(matches,),
)


def map_error(
    mapper: Callable[[BaseException], BaseException], when: ErrorFilter, error: BaseException
) -> None:
    """Raise what `mapper` returns for `error`, with `error` as its cause."""
    if not matches(when, error):
        return
    try:
        made = mapper(error)
    except BaseException as raised:
        in_context(raised, error)
        raise
    if not isinstance(made, BaseException):
        raise TypeError(f"on_error_map({describe(mapper)}) gave {made!r}, not an exception")
    if made is not error:
        try:
            raise made from (error if made.__cause__ is None else made.__cause__)
        finally:
            del made, error  # or they would be part of a cycle, with the frame in the traceback


ON_ERROR_MAP: Final = Template(
    "on_error_map",
    params=("mapper", "when"),
    on_error="map_error(mapper, when, error)",
    helpers=(map_error,),
)

MATERIALIZE: Final = Template(
    "materialize",
    on_item="""
    x = OnNext(x)
    EMIT
    """,
    on_end="""
    x = OnComplete()
    EMIT
    """,
    on_error="""
    x = OnError(error)
    EMIT
    STOP
    """,
    helpers=(OnNext, OnComplete, OnError),
)


def signalled(last: list[object]) -> bool:
    """Return whether the only item in `last`, a signal, completes the flow.

    If the item stands for an error, that error is raised.

    The list does not refer to the item any more then: with the frames in the error's traceback, it
    would be part of a cycle.
    """
    item = last.pop()
    if isinstance(item, OnError):
        error = item.error
        del item
        try:
            raise error
        finally:
            del error
    if isinstance(item, OnComplete):
        return True
    raise TypeError(f"dematerialize() takes notifications, as materialize() gives, not {item!r}")


DEMATERIALIZE: Final = Template(
    "dematerialize",
    on_item="""
    if isinstance(x, OnNext):
        x = x.item
        NOT_NONE
        EMIT
    else:
        last = [x]
        x = None
        if signalled(last):
            STOP
    """,
    helpers=(OnNext, signalled),
)


class Recovering(Fluent[T_co], Generic[T_co]):
    """The methods that turn the end of a flow into something else."""

    __slots__ = ()

    def on_error_return(self, item: D, when: ErrorFilter = Exception) -> Flow[T_co | D]:
        """Send `item` and complete, if the flow fails.

        >>> import flow_core as flow
        >>> list(flow.just(1, 0).map(lambda n: 1 // n).on_error_return(-1))
        [1, -1]

        Args:
            item: the last item, sent in place of the error.
            when: selects the errors to handle; other errors pass.
        """
        return self._add(
            ON_ERROR_RETURN,
            *given_items("on_error_return", item),
            error_filter("on_error_return", when),
        )

    def on_error_complete(self, when: ErrorFilter = Exception) -> Flow[T_co]:
        """Complete instead of failing with an error.

        >>> import flow_core as flow
        >>> list(flow.just(1, 0).map(lambda n: 2 // n).on_error_complete(ZeroDivisionError))
        [2]

        Args:
            when: selects the errors to handle; other errors pass.
        """
        return self._add(ON_ERROR_COMPLETE, error_filter("on_error_complete", when))

    def on_error_map(
        self,
        mapper: Callable[[BaseException], BaseException],
        when: ErrorFilter = Exception,
    ) -> Flow[T_co]:
        """Fail with another error, whose cause is the error with which the flow fails.

        >>> import flow_core as flow
        >>> failing = flow.error(KeyError("id")).on_error_map(lambda error: ValueError("no id"))
        >>> handle = failing.subscribe(
        ...     print, lambda error: print(repr(error), repr(error.__cause__))
        ... )
        ValueError('no id') KeyError('id')

        Args:
            mapper: called with the error; returns the other error.
            when: selects the errors to handle; other errors pass.
        """
        return self._add(ON_ERROR_MAP, mapper, error_filter("on_error_map", when))

    def materialize(self) -> Flow[Notification[T_co]]:
        """Each signal as an item: `OnNext`, and at the end `OnError` or `OnComplete`.

        >>> import flow_core as flow
        >>> list(flow.just(1).materialize())
        [OnNext(item=1), OnComplete()]
        """
        return self._add(MATERIALIZE)

    def dematerialize(self: Recovering[Notification[R]]) -> Flow[R]:
        """The signals that the items stand for: `materialize` in reverse.

        >>> import flow_core as flow
        >>> list(flow.just(flow.OnNext(1), flow.OnComplete(), flow.OnNext(2)).dematerialize())
        [1]
        """
        return self._add(DEMATERIALIZE)
