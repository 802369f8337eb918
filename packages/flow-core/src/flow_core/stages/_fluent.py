"""The base of the methods of `Flow`: one class per theme, and one per package."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from flow_core.errors import NoneItemError
from flow_core.stages._template import Template

if TYPE_CHECKING:
    from flow_core.flow import Flow
    from flow_core.operator import Operator
    from flow_core.parallel import ParallelFlow
    from flow_core.protocols import ScalarSource

__all__ = [
    "Ender",
    "Fluent",
    "Rails",
    "Words",
    "comparing",
    "count_of",
    "equal",
    "given_items",
    "identity",
]

T_co = TypeVar("T_co", covariant=True)
D = TypeVar("D")


class Fluent(Generic[T_co]):
    """The base of the methods: it puts a stage or an operator behind a flow."""

    __slots__ = ()

    @abstractmethod
    # Any: the items that the stage makes.
    def _add(self, template: Template, *args: object) -> Flow[Any]:
        """Return a flow with this stage at its end, assembled where the user's code called us."""

    @abstractmethod
    # Any: the items that the operator makes.
    def _pipe(self, operator: Operator[Any, Any]) -> Flow[Any]:
        """Return a flow with this boundary at its end."""

    @abstractmethod
    def _plugged(
        self, target: str, /, *args: object, **options: object
    ) -> Any:  # Any: the methods give the type
        """Apply the operator of a package to this flow.

        Args:
            target: the factory of the operator, as ``package.module:function``.
            args: its arguments.
            options: its arguments by name.

        Raises:
            NotInstalledError: if there is no such package here, or no such function in it.
        """

    @abstractmethod
    def _combined(
        self, target: str, /, *others: object, **options: object
    ) -> Any:  # Any: as in _plugged
        """Apply a source of several flows, of a package, to this flow and others.

        Args:
            target: the function that makes the source, as ``package.module:function``.
            others: its arguments, except the first one, which is this flow.
            options: its arguments by name.

        Raises:
            NotInstalledError: as for `_plugged`.
        """

    @abstractmethod
    def _where(self) -> str:
        """Return ``file:line`` of the user's code that called us."""

    @abstractmethod
    def _whole(self) -> Flow[T_co]:
        """Return this very flow."""

    @abstractmethod
    def _just(self, item: D | None) -> Flow[D]:
        """Return a flow of this one item; of none, if it is None."""

    @abstractmethod
    def _constant(self) -> ScalarSource[T_co] | None:
        """Return the constant that this flow is, if it is one and nothing more (F03)."""


class Ender:
    """An object that ends flows when it begins: the base of `flow_core.Shutdown`."""

    __slots__ = ()

    @abstractmethod
    def _ended(self, flow: Flow[D]) -> Flow[D]:
        """Return `flow` until this begins."""


class Words(Generic[T_co]):
    """The base of the methods of a package under its name, such as ``flow.spark``.

    Args:
        flow: the flow of the methods.
    """

    __slots__ = ("_flow",)

    def __init__(self, flow: Fluent[T_co]) -> None:
        self._flow = flow

    def _plugged(
        self, target: str, /, *args: object, **options: object
    ) -> Any:  # Any: see Fluent._plugged
        return self._flow._plugged(target, *args, **options)


class Rails(Generic[T_co]):
    """The base of the methods of a `ParallelFlow` that are those of each rail."""

    __slots__ = ()

    @abstractmethod
    def _each(
        self, name: str, /, *args: object, **options: object
    ) -> ParallelFlow[Any]:  # Any: the type that the method makes
        """Call a method of `Flow` on each rail.

        Args:
            name: the name of the method, which returns a flow.
            args: its arguments.
            options: its arguments by name.
        """


def count_of(operator: str, count: int, least: int = 0, name: str = "count") -> int:
    """Return `count` itself, if it is an int of at least `least`.

    Raises:
        TypeError: if `count` is not an int.
        ValueError: if `count` is less.
    """
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"{operator}({name}) takes an int, not {count!r}")
    if count < least:
        raise ValueError(f"{operator}({name}) takes {least} or more, not {count}")
    return count


def given_items(operator: str, *items: D) -> tuple[D, ...]:
    """Return `items` themselves, if none of them is None (§2.13).

    Raises:
        NoneItemError: if one is.
    """
    for item in items:
        if item is None:
            raise NoneItemError(f"{operator}(None): None is not an item")
    return items


def identity(item: D) -> D:
    """Return the item itself."""
    return item


def equal(left: object, right: object) -> bool:
    """Return whether the items say that they are equal."""
    return bool(left == right)


def comparing(
    key: Callable[[Any], Any] | None, same: Callable[[Any, Any], object] | None
) -> tuple[Callable[[Any], Any], Callable[[Any, Any], object]]:  # Any: items, and their keys
    """Return how neighbours are compared by default: themselves, by ``==``."""
    return identity if key is None else key, equal if same is None else same
