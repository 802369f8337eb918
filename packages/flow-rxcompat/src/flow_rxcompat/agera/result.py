"""`Result`: what an attempt gave, or why it failed."""

from __future__ import annotations

from typing import Final, Generic, Never, TypeVar, cast, final

from flow_rxcompat.agera.errors import (
    AbsentValueError,
    AttemptFailedError,
    FailedResultError,
    IllegalStateError,
    not_none,
)
from flow_rxcompat.agera.protocols import (
    BinderLike,
    FunctionLike,
    MergerLike,
    ReceiverLike,
    SupplierLike,
    called,
)

__all__ = ["Result"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")
R = TypeVar("R")

_GENERIC_FAILURE: Final = AttemptFailedError("Attempt failed")
_ABSENT_FAILURE: Final = AbsentValueError("Value is absent")


@final
class Result(Generic[T_co]):
    """Either a value or a failure, never both and never none of them.

    >>> Result.success(20).if_succeeded_map(lambda n: n + 1).or_else(0)
    21
    >>> Result.failure(ValueError("no number")).or_else(0)
    0

    Where a method takes a function, an object with the method of the interface does, too. What a
    function raises is not caught: one that may fail returns a result.

    Raises:
        ValueError: if it is not given exactly one of both.
    """

    __slots__ = ("_failure", "_value")

    def __init__(self, value: T_co | None, failure: BaseException | None) -> None:
        if (value is None) is (failure is None):
            raise ValueError("Illegal Result arguments: it has either a value or a failure")
        self._value = value
        self._failure = failure

    # -- making

    @staticmethod
    def success(value: T, /) -> Result[T]:
        """The result of an attempt that gave `value`.

        Raises:
            NoneItemError: if it is None.
        """
        return Result(not_none(value, "Result.success()"), None)

    @staticmethod
    def present(value: T, /) -> Result[T]:
        """As `success`: the value is there."""
        return Result.success(value)

    @staticmethod
    def failure(failure: BaseException = _GENERIC_FAILURE, /) -> Result[Never]:
        """The result of an attempt that failed.

        Args:
            failure: why. Without it, this is one result for all; with that of `absent`, it is
                `absent`.

        Raises:
            NoneItemError: if it is None.
        """
        if failure is _GENERIC_FAILURE:
            return _FAILURE
        if failure is _ABSENT_FAILURE:
            return _ABSENT
        return Result(None, not_none(failure, "Result.failure()"))

    @staticmethod
    def absent() -> Result[Never]:
        """The one result that stands for a missing value."""
        return _ABSENT

    @staticmethod
    def absent_if_null(value: T | None, /) -> Result[T]:
        """`value` if it is not None, else `absent`."""
        return _ABSENT if value is None else Result(value, None)

    # -- asking

    @property
    def succeeded(self) -> bool:
        """Whether there is a value."""
        return self._failure is None

    @property
    def failed(self) -> bool:
        """Whether there is a failure."""
        return self._failure is not None

    @property
    def is_present(self) -> bool:
        """As `succeeded`."""
        return self._failure is None

    @property
    def is_absent(self) -> bool:
        """Whether this is `absent`; other failures are not."""
        return self is _ABSENT

    def contains(self, value: object, /) -> bool:
        """Whether the value is there, and equal to `value`."""
        return self._value is not None and bool(self._value == value)

    def get(self) -> T_co:
        """The value.

        Raises:
            FailedResultError: if there is none; the cause is the failure.
        """
        if self._value is None:
            raise FailedResultError("Cannot get() from a failed result") from self._failure
        return self._value

    def get_failure(self) -> BaseException:
        """The failure.

        Raises:
            IllegalStateError: if there is none.
        """
        return self._failed()

    def or_null(self) -> T_co | None:
        """The value, or None."""
        return self._value

    def failure_or_null(self) -> BaseException | None:
        """The failure, or None."""
        return self._failure

    def as_list(self) -> list[T_co]:
        """A list of the value, or an empty one."""
        return [] if self._value is None else [self._value]

    # -- side effects; each returns this, and asks no supplier in vain

    def if_succeeded_send_to(self, receiver: ReceiverLike[T_co], /) -> Result[T_co]:
        """Give the value to `receiver`, if there is a value."""
        if self._value is not None:
            called(receiver, "accept")(self._value)
        return self

    def if_failed_send_to(self, receiver: ReceiverLike[BaseException], /) -> Result[T_co]:
        """Give the failure to `receiver`, if there is a failure."""
        if self._failure is not None:
            called(receiver, "accept")(self._failure)
        return self

    def if_absent_failure_send_to(self, receiver: ReceiverLike[BaseException], /) -> Result[T_co]:
        """Give the failure to `receiver`, if this is `absent`."""
        if self._failure is _ABSENT_FAILURE:
            called(receiver, "accept")(self._failure)
        return self

    def if_non_absent_failure_send_to(
        self, receiver: ReceiverLike[BaseException], /
    ) -> Result[T_co]:
        """Give the failure to `receiver`, unless it is `absent`'s."""
        if self._failure is not None and self._failure is not _ABSENT_FAILURE:
            called(receiver, "accept")(self._failure)
        return self

    def if_succeeded_bind(self, value: U, binder: BinderLike[T_co, U], /) -> Result[T_co]:
        """Give the value and `value` to `binder`, if there is a value."""
        if self._value is not None:
            called(binder, "bind")(self._value, value)
        return self

    def if_failed_bind(self, value: U, binder: BinderLike[BaseException, U], /) -> Result[T_co]:
        """Give the failure and `value` to `binder`, if there is a failure."""
        if self._failure is not None:
            called(binder, "bind")(self._failure, value)
        return self

    def if_absent_failure_bind(
        self, value: U, binder: BinderLike[BaseException, U], /
    ) -> Result[T_co]:
        """Give the failure and `value` to `binder`, if this is `absent`."""
        if self._failure is _ABSENT_FAILURE:
            called(binder, "bind")(self._failure, value)
        return self

    def if_non_absent_failure_bind(
        self, value: U, binder: BinderLike[BaseException, U], /
    ) -> Result[T_co]:
        """Give the failure and `value` to `binder`, unless it is `absent`'s."""
        if self._failure is not None and self._failure is not _ABSENT_FAILURE:
            called(binder, "bind")(self._failure, value)
        return self

    def if_succeeded_bind_from(
        self, supplier: SupplierLike[U], binder: BinderLike[T_co, U], /
    ) -> Result[T_co]:
        """Give the value and the supplier's value to `binder`, if there is a value."""
        if self._value is not None:
            called(binder, "bind")(self._value, called(supplier, "get")())
        return self

    def if_failed_bind_from(
        self, supplier: SupplierLike[U], binder: BinderLike[BaseException, U], /
    ) -> Result[T_co]:
        """Give the failure and the supplier's value to `binder`, if there is a failure."""
        if self._failure is not None:
            called(binder, "bind")(self._failure, called(supplier, "get")())
        return self

    def if_absent_failure_bind_from(
        self, supplier: SupplierLike[U], binder: BinderLike[BaseException, U], /
    ) -> Result[T_co]:
        """Give the failure and the supplier's value to `binder`, if this is `absent`."""
        if self._failure is _ABSENT_FAILURE:
            called(binder, "bind")(self._failure, called(supplier, "get")())
        return self

    def if_non_absent_failure_bind_from(
        self, supplier: SupplierLike[U], binder: BinderLike[BaseException, U], /
    ) -> Result[T_co]:
        """Give the failure and the supplier's value to `binder`, unless it is `absent`'s."""
        if self._failure is not None and self._failure is not _ABSENT_FAILURE:
            called(binder, "bind")(self._failure, called(supplier, "get")())
        return self

    # -- going on

    def same_failure(self) -> Result[Never]:
        """This failure, as a result of any type.

        Raises:
            IllegalStateError: if this is none.
        """
        self._failed()
        # It has no value whose type could be wrong.
        return self  # type: ignore[return-value]  # pyright: ignore[reportReturnType]

    def if_succeeded_map(self, function: FunctionLike[T_co, R], /) -> Result[R]:
        """A success of what `function` makes of the value; or this failure."""
        if self._value is None:
            return self.same_failure()
        return Result.success(called(function, "apply")(self._value))

    def if_succeeded_attempt_map(self, function: FunctionLike[T_co, Result[R]], /) -> Result[R]:
        """The result that `function` makes of the value; or this failure."""
        if self._value is None:
            return self.same_failure()
        attempt: Result[R] = called(function, "apply")(self._value)
        return attempt

    def if_succeeded_merge(self, value: U, merger: MergerLike[T_co, U, R], /) -> Result[R]:
        """A success of what `merger` makes of both values; or this failure."""
        if self._value is None:
            return self.same_failure()
        return Result.success(called(merger, "merge")(self._value, value))

    def if_succeeded_attempt_merge(
        self, value: U, merger: MergerLike[T_co, U, Result[R]], /
    ) -> Result[R]:
        """The result that `merger` makes of both values; or this failure."""
        if self._value is None:
            return self.same_failure()
        attempt: Result[R] = called(merger, "merge")(self._value, value)
        return attempt

    def if_succeeded_merge_from(
        self, supplier: SupplierLike[U], merger: MergerLike[T_co, U, R], /
    ) -> Result[R]:
        """As `if_succeeded_merge`, with what `supplier` gives; it is not asked after a failure."""
        if self._value is None:
            return self.same_failure()
        return Result.success(called(merger, "merge")(self._value, called(supplier, "get")()))

    def if_succeeded_attempt_merge_from(
        self, supplier: SupplierLike[U], merger: MergerLike[T_co, U, Result[R]], /
    ) -> Result[R]:
        """As `if_succeeded_attempt_merge`, with what `supplier` gives."""
        if self._value is None:
            return self.same_failure()
        attempt: Result[R] = called(merger, "merge")(self._value, called(supplier, "get")())
        return attempt

    # -- falling back

    def or_else(self, other: R, /) -> T_co | R:
        """The value, or `other`, which is not None."""
        return not_none(other, "or_else()") if self._value is None else self._value

    def or_get_from(self, supplier: SupplierLike[R], /) -> T_co | R:
        """The value, or what `supplier` gives, which is not None."""
        if self._value is not None:
            return self._value
        other: R = called(supplier, "get")()
        return not_none(other, "or_get_from()")

    def or_attempt_get_from(self, supplier: SupplierLike[Result[R]], /) -> Result[T_co | R]:
        """This success, or the result that `supplier` gives."""
        if self._value is not None:
            return self
        attempt: Result[R] = called(supplier, "get")()
        return not_none(attempt, "or_attempt_get_from()")

    def recover(self, function: FunctionLike[BaseException, R], /) -> T_co | R:
        """The value, or what `function` makes of the failure."""
        if self._value is not None:
            return self._value
        other: R = called(function, "apply")(self._failure)
        return other

    def attempt_recover(
        self, function: FunctionLike[BaseException, Result[R]], /
    ) -> Result[T_co | R]:
        """This success, or the result that `function` makes of the failure."""
        if self._value is not None:
            return self
        attempt: Result[R] = called(function, "apply")(self._failure)
        return attempt

    def _failed(self) -> BaseException:
        if self._failure is None:  # its class may define a truth of its own
            raise IllegalStateError("Not a failure")
        return self._failure

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Result):
            return NotImplemented
        other = cast("Result[object]", other)  # of whatever it is
        value, failure = other.or_null(), other.failure_or_null()
        return self is other or (bool(self._value == value) and self._failure == failure)

    def __hash__(self) -> int:
        return hash((self._value, self._failure))

    def __repr__(self) -> str:
        if self is _ABSENT:
            return "Result{Absent}"
        if self is _FAILURE:
            return "Result{Failure}"
        if self._failure is None:
            return f"Result{{Success; value={self._value!r}}}"
        return f"Result{{Failure; failure={self._failure!r}}}"


_FAILURE: Final[Result[Never]] = Result(None, _GENERIC_FAILURE)
_ABSENT: Final[Result[Never]] = Result(None, _ABSENT_FAILURE)
