"""The interfaces of Agera.

Each has one method; wherever one is expected, a plain function will do, too.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Final, Protocol, TypeAlias, TypeVar, runtime_checkable

from flow_core.errors import NoneItemError

__all__ = [
    "ActivationHandler",
    "Binder",
    "BinderLike",
    "Condition",
    "ConditionLike",
    "Function",
    "FunctionLike",
    "Merger",
    "MergerLike",
    "MutableRepository",
    "Observable",
    "Predicate",
    "PredicateLike",
    "Receiver",
    "ReceiverLike",
    "Repository",
    "Supplier",
    "SupplierLike",
    "Updatable",
    "UpdatableLike",
    "UpdateDispatcher",
    "called",
]

T = TypeVar("T")
U = TypeVar("U")
R = TypeVar("R")
T_co = TypeVar("T_co", covariant=True)
R_co = TypeVar("R_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)
U_contra = TypeVar("U_contra", contravariant=True)


class Updatable(Protocol):
    """Learns that something has changed, but not what."""

    __slots__ = ()

    @abstractmethod
    def update(self) -> object:
        """Handle a change. It is called on the loop from which the updatable was added."""


class Supplier(Protocol[T_co]):
    """Returns a value."""

    __slots__ = ()

    @abstractmethod
    def get(self) -> T_co:
        """Return a value, never None."""


class Receiver(Protocol[T_contra]):
    """Takes a value."""

    __slots__ = ()

    @abstractmethod
    def accept(self, value: T_contra, /) -> object:
        """Take `value`, which is not None."""


class Function(Protocol[T_contra, R_co]):
    """Maps one value to another."""

    __slots__ = ()

    @abstractmethod
    def apply(self, value: T_contra, /) -> R_co:
        """Return the result for `value`; neither is None."""


class Merger(Protocol[T_contra, U_contra, R_co]):
    """Maps two values to one."""

    __slots__ = ()

    @abstractmethod
    def merge(self, first: T_contra, second: U_contra, /) -> R_co:
        """Return the result for both values. None of the three is None."""


class Binder(Protocol[T_contra, U_contra]):
    """Takes two values."""

    __slots__ = ()

    @abstractmethod
    def bind(self, first: T_contra, second: U_contra, /) -> object:
        """Take both values, which are not None."""


class Predicate(Protocol[T_contra]):
    """Decides about a value."""

    __slots__ = ()

    @abstractmethod
    def apply(self, value: T_contra, /) -> bool:
        """Return whether the predicate holds for `value`."""


class Condition(Protocol):
    """Decides whether something applies."""

    __slots__ = ()

    @abstractmethod
    def applies(self) -> bool:
        """Return whether the condition applies now."""


UpdatableLike: TypeAlias = Updatable | Callable[[], object]
SupplierLike: TypeAlias = Supplier[T] | Callable[[], T]
ReceiverLike: TypeAlias = Receiver[T] | Callable[[T], object]
FunctionLike: TypeAlias = Function[T, R] | Callable[[T], R]
MergerLike: TypeAlias = Merger[T, U, R] | Callable[[T, U], R]
BinderLike: TypeAlias = Binder[T, U] | Callable[[T, U], object]
PredicateLike: TypeAlias = Predicate[T] | Callable[[T], bool]
ConditionLike: TypeAlias = Condition | Callable[[], bool]


@runtime_checkable
class Observable(Protocol):
    """Announces changes to updatables, which are compared by identity, not equality.

    A lambda that is written twice is two objects, and so is a bound method that is looked up twice.
    So keep the object that you add: you need it to remove it.
    """

    __slots__ = ()

    @abstractmethod
    def add_updatable(self, updatable: UpdatableLike, /) -> None:
        """Announce changes to `updatable` from now on.

        Raises:
            IllegalStateError: if `updatable` was added already, or this thread has no loop.
            NoneItemError: if `updatable` is None.
        """

    @abstractmethod
    def remove_updatable(self, updatable: UpdatableLike, /) -> None:
        """Announce no more changes to `updatable`.

        Raises:
            IllegalStateError: if `updatable` was not added, or this thread has no loop.
            NoneItemError: if `updatable` is None.
        """


@runtime_checkable
class UpdateDispatcher(Observable, Updatable, Protocol):
    """Passes each `update`, from any thread, on to its updatables."""

    __slots__ = ()


class ActivationHandler(Protocol):
    """Learns when a dispatcher gets its first updatable and when it has lost its last one."""

    __slots__ = ()

    @abstractmethod
    def observable_activated(self, caller: UpdateDispatcher, /) -> object:
        """Handle the first updatable. It is called on the loop that made `caller`."""

    @abstractmethod
    def observable_deactivated(self, caller: UpdateDispatcher, /) -> object:
        """Handle the loss of the last updatable. It is called on the loop that made `caller`."""


@runtime_checkable
class Repository(Observable, Supplier[T_co], Protocol[T_co]):
    """Holds a value, and announces its changes."""

    __slots__ = ()


@runtime_checkable
class MutableRepository(Repository[T], Receiver[T], Protocol[T]):
    """A repository whose value is the one that it accepted last."""

    __slots__ = ()


_PLAIN: Final = (FunctionType, BuiltinFunctionType, MethodType, type)
"""Types whose objects are called directly, whatever attributes they have."""


def called(value: object, method: str) -> Callable[..., Any]:  # Any: as the interface says
    """Return the function to call for `value`: its `method`, or `value` itself.

    Raises:
        NoneItemError: if `value` is None.
        TypeError: if `value` is neither an implementation nor a function.
    """
    if value is None:
        raise NoneItemError(f"None was given where something with {method}() is needed")
    if not isinstance(value, _PLAIN):
        bound: object = getattr(value, method, None)
        if callable(bound):
            return bound
    if callable(value):
        return value
    raise TypeError(f"a function or something with {method}() is needed, not {value!r}")
