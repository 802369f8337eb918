"""`from_`: a flow of anything that the installed packages can make one of."""

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
"""What functions of the user may give where a flow is wanted: what `from_` takes, but for text."""

_ITERABLES: Final = frozenset[type]({list, tuple, range})
"""What no package has a converter of its own for."""


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
    """A flow of `value`, made by the converter that knows its class best.

    >>> list(from_([1, 2, 3]).map(str))
    ['1', '2', '3']

    The core converts flows, iterables (a dict gives its keys, as in a ``for`` loop), async
    iterables, futures, awaitables and publishers; packages add their own, such as a Spark DataFrame
    (flow-spark). `flow plugins` lists them. The first call looks for installed plugins.

    Args:
        value: anything but None. A str or bytes is refused, since it may stand for one item or for
            its characters: `just` and `from_iterable` say which. What is a class of its own wins
            over what is merely alike: a list of a plugin's own class is the plugin's.

    Returns:
        What the converter makes: its documentation says what happens to demand, on which thread,
        and which fusion there is.

    Raises:
        NoConverterError: if there is none; says what is accepted, and which package would bring it.
        PluginError: if the converter cannot be imported, or makes no flow.
    """
    return late.plugin_host().convert(value)


def as_flow(made: Convertible[T], who: str) -> Flow[T]:
    """What a function of the user has given, as a flow.

    Args:
        made: a flow or another publisher, or whatever `from_` takes.
        who: has given it, for messages.

    Raises:
        NoneItemError: for None.
        TypeError: for anything else that no flow can be made of.
    """
    if isinstance(made, Flow):
        return made
    from flow_core.sources import from_iterable, from_publisher

    given: object = made  # whatever the types say
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
