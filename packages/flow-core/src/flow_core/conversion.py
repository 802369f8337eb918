"""`from_`: a flow of anything that the installed packages can make one of."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Iterable
from concurrent.futures import Future
from typing import Never, TypeVar, overload

from flow_core.flow import Flow
from flow_core.protocols import Publisher

__all__ = ["from_"]

T = TypeVar("T")


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
    from flow_core.plugins import plugin_host

    return plugin_host().convert(value)
