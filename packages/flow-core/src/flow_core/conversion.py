"""`from_`: makes a flow of any object for which an installed package has a converter."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Iterable
from concurrent.futures import Future
from typing import Final, Never, TypeAlias, TypeVar, cast, overload

from flow_core import late
from flow_core.errors import NoConverterError, NoneItemError
from flow_core.flow import Flow
from flow_core.protocols import Publisher
from flow_core.stages._template import describe

__all__ = ["Convertible", "as_flow", "from_"]

T = TypeVar("T")

Convertible: TypeAlias = Publisher[T] | Iterable[T] | AsyncIterable[T] | Awaitable[T]
"""The types that functions of the user may return in place of a flow: those that `from_` takes,
except text."""

_ITERABLES: Final = frozenset[type]({list, tuple, range})
"""Classes for which no package has its own converter."""


@overload
def from_(value: str | bytes | bytearray | memoryview, /) -> Never: ...
@overload
def from_(value: Flow[T], /) -> Flow[T]: ...
@overload
def from_(value: Future[T], /) -> Flow[T]: ...
@overload
def from_(value: AsyncIterable[T], /) -> Flow[T]: ...
@overload
def from_(value: Awaitable[T], /) -> Flow[T]: ...
@overload
def from_(value: Iterable[T], /) -> Flow[T]: ...
@overload
def from_(value: Publisher[T], /) -> Flow[T]: ...
@overload
def from_(value: object, /) -> Flow[object]: ...


def from_(value: object, /) -> Flow[object]:
    """Convert `value` to a flow, with the converter that fits its class best.

    >>> list(from_([1, 2, 3]).map(str))
    ['1', '2', '3']

    The core converts flows, iterables (a dict gives its keys, as in a ``for`` loop), async
    iterables, futures, awaitables and publishers; packages add further converters, such as that of
    flow-spark for a DataFrame. `flow plugins` lists them. The first call looks for installed
    plugins.

    Args:
        value: anything but None. A str or bytes is refused, since it may stand for one item or for
            its characters: use `just` or `from_iterable`. A converter for the exact class of
            `value` is preferred: if a plugin has a converter for its own list class, that converter
            is used.

    Returns:
        A flow. The converter's documentation describes demand, thread
        and fusion.

    Raises:
        NoConverterError: if there is no converter; the text says what is accepted, and which
            package would bring a converter.
        PluginError: if the converter cannot be imported, or does not return a flow.
    """
    return late.plugin_host().convert(value)


def as_flow(made: Convertible[T], who: str) -> Flow[T]:
    """Return the result of a user's function as a flow.

    Args:
        made: a flow or another publisher, or anything that `from_` takes.
        who: the user's function, for messages.

    Raises:
        NoneItemError: if `made` is None.
        TypeError: if `made` cannot become a flow for another reason.
    """
    if isinstance(made, Flow):
        return made
    from flow_core.sources import from_iterable, from_publisher

    given: object = made  # the types may be wrong
    if given is None:
        raise NoneItemError(f"{who} gave None, not a Flow; return empty() for none")
    if type(given) in _ITERABLES:
        return from_iterable(cast("Iterable[T]", given))
    if hasattr(given, "subscribe"):
        return from_publisher(cast("Publisher[T]", given))
    try:
        return cast("Flow[T]", from_(given))
    except NoConverterError as error:
        raise TypeError(f"{who} gave {describe(given)}, not a Flow: {error}") from None
