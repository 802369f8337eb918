"""Methods of your own package, under a name on each flow: ``flow.acme.smooth()``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from flow_core.errors import FlowError
from flow_core.flow import NAMESPACES, Flow

__all__ = ["register_namespace"]

N = TypeVar("N", bound=type)


def register_namespace(name: str) -> Callable[[N], N]:
    """Register a class whose methods every flow gets, under a name.

    >>> import flow_core as flow
    >>> from typing import Generic, TypeVar
    >>> T = TypeVar("T")
    >>> @register_namespace("docs")
    ... class Docs(Generic[T]):
    ...     def __init__(self, made: flow.Flow[T]) -> None:
    ...         self._made = made
    ...
    ...     def twice(self) -> flow.Flow[T]:
    ...         return self._made.flat_map_iterable(lambda item: (item, item))
    >>> list(flow.range(2).docs.twice())
    [0, 0, 1, 1]
    >>> list(flow.range(2).pipe(Docs).twice())
    [0, 0, 1, 1]

    The second form in the example is for type checkers, which cannot know what was registered. The
    class is registered when its module is imported.

    Args:
        name: a lower-case name that is not an attribute of `Flow`; usually the name of the package.

    Returns:
        A decorator for the class. The class is called with the flow.

    Raises:
        ValueError: if `Flow` has an attribute `name` already, or if `name` is not a valid name.
        FlowError: if another class is registered under `name`.
    """
    if not name.isidentifier() or name.startswith("_") or name != name.lower():
        raise ValueError(f"{name!r} is not a namespace: take a lower-case word, such as 'acme'")
    if hasattr(Flow, name):
        raise ValueError(f"a flow has {name!r} already")

    def register(cls: N) -> N:
        found = NAMESPACES.setdefault(name, cls)
        if _place(found) != _place(cls):  # the same class may come again, when it is reloaded
            raise FlowError(f"the namespace {name!r} belongs to {_place(found)}, not {_place(cls)}")
        NAMESPACES[name] = cls
        return cls

    return register


def _place(cls: object) -> str:
    return f"{getattr(cls, '__module__', '')}.{getattr(cls, '__qualname__', cls)}"
