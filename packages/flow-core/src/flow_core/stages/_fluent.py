"""The base class of the methods of `Flow`, which are in one class per theme and per package."""

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
    """The base of the methods, which add a stage or an operator to the end of this flow."""

    __slots__ = ()

    @abstractmethod
    # Any: the items that the stage makes.
    def _add(self, template: Template, *args: object) -> Flow[Any]:
        """Return a flow with this stage at its end.

        Its place is where the user's code called us.
        """

    @abstractmethod
    # Any: the items that the operator makes.
    def _pipe(self, operator: Operator[Any, Any]) -> Flow[Any]:
        """Return a flow with the boundary `operator` at its end."""

    @abstractmethod
    def _plugged(
        self, target: str, /, *args: object, **options: object
    ) -> Any:  # Any: the methods give the type
        """Apply the operator of another package to this flow.

        Args:
            target: the factory of the operator, as ``package.module:function``.
            args: the arguments of the factory.
            options: the keyword arguments of the factory.

        Raises:
            NotInstalledError: if the package is not installed, or has no such function.
        """

    @abstractmethod
    def _combined(
        self, target: str, /, *others: object, **options: object
    ) -> Any:  # Any: as in _plugged
        """Combine this flow with others, by a function of another package that makes a source.

        Args:
            target: the function that makes the source, as ``package.module:function``.
            others: the arguments of the function after the first one, which is this flow.
            options: the keyword arguments of the function.

        Raises:
            NotInstalledError: if the package is not installed, or has no such function.
        """

    @abstractmethod
    def _where(self) -> str:
        """Return ``file:line`` of the user's code that called this library."""

    @abstractmethod
    def _whole(self) -> Flow[T_co]:
        """Return this very flow."""

    @abstractmethod
    def _just(self, item: D | None) -> Flow[D]:
        """Return a flow of this one item, or of no item if it is None."""

    @abstractmethod
    def _constant(self) -> ScalarSource[T_co] | None:
        """Return the constant source, if this flow is a constant without stages (F03).

        The result is None otherwise.
        """


class Ender:
    """An object that ends flows when it begins: the base of `flow_core.Shutdown`."""

    __slots__ = ()

    @abstractmethod
    def _ended(self, flow: Flow[D]) -> Flow[D]:
        """Return `flow`, ended when this begins."""


class Words(Generic[T_co]):
    """The base class for a package's methods that have the package's name, such as ``flow.spark``.

    Args:
        flow: the flow that the methods apply to.
    """

    __slots__ = ("_flow",)

    def __init__(self, flow: Fluent[T_co]) -> None:
        self._flow = flow

    def _plugged(
        self, target: str, /, *args: object, **options: object
    ) -> Any:  # Any: see Fluent._plugged
        return self._flow._plugged(target, *args, **options)


class Rails(Generic[T_co]):
    """The base of those methods of a `ParallelFlow` that apply a method of `Flow` to each rail."""

    __slots__ = ()

    @abstractmethod
    def _each(
        self, name: str, /, *args: object, **options: object
    ) -> ParallelFlow[Any]:  # Any: the type that the method makes
        """Call a method of `Flow` on each rail of this parallel flow.

        Args:
            name: the name of the method, which returns a flow.
            args: the arguments of the method.
            options: the keyword arguments of the method.
        """


def count_of(operator: str, count: int, least: int = 0, name: str = "count") -> int:
    """Return `count` itself, after checking that it is an int of at least `least`.

    Raises:
        TypeError: if `count` is not an int.
        ValueError: if `count` is less than `least`.
    """
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"{operator}({name}) takes an int, not {count!r}")
    if count < least:
        raise ValueError(f"{operator}({name}) takes {least} or more, not {count}")
    return count


def given_items(operator: str, *items: D) -> tuple[D, ...]:
    """Return `items` themselves, after checking that none of them is None (§2.13).

    Raises:
        NoneItemError: if one of them is None.
    """
    for item in items:
        if item is None:
            raise NoneItemError(f"{operator}(None): None is not an item")
    return items


def identity(item: D) -> D:
    """Return the item itself."""
    return item


def equal(left: object, right: object) -> bool:
    """Return whether the two items are equal by ``==``."""
    return bool(left == right)


def comparing(
    key: Callable[[Any], Any] | None, same: Callable[[Any, Any], object] | None
) -> tuple[Callable[[Any], Any], Callable[[Any, Any], object]]:  # Any: items, and their keys
    """Return the functions that compare neighbours: `key` and `same`, or else items by ``==``."""
    return identity if key is None else key, equal if same is None else same
