"""`Result`: the value of an attempt, or the reason why it failed."""

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
    """Either a value or a failure, never both and never neither.

    >>> Result.success(20).if_succeeded_map(lambda n: n + 1).or_else(0)
    21
    >>> Result.failure(ValueError("no number")).or_else(0)
    0

    Where a method takes a function, it also takes an object with the method of the interface. An
    error raised by a function is not caught: a function that may fail returns a result instead.

    Raises:
        ValueError: if not exactly one of the two is given.
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
        """Return the result of an attempt with the value `value`.

        Raises:
            NoneItemError: if `value` is None.
        """
        return Result(not_none(value, "Result.success()"), None)

    @staticmethod
    def present(value: T, /) -> Result[T]:
        """Return the result of a value that is there; the same as `success`."""
        return Result.success(value)

    @staticmethod
    def failure(failure: BaseException = _GENERIC_FAILURE, /) -> Result[Never]:
        """Return the result of an attempt that failed.

        Args:
            failure: the reason. Without it, the same result is returned each time; with the failure
                of `absent`, `absent` is returned.

        Raises:
            NoneItemError: if `failure` is None.
        """
        if failure is _GENERIC_FAILURE:
            return _FAILURE
        if failure is _ABSENT_FAILURE:
            return _ABSENT
        return Result(None, not_none(failure, "Result.failure()"))

    @staticmethod
    def absent() -> Result[Never]:
        """Return the one result that stands for a missing value."""
        return _ABSENT

    @staticmethod
    def absent_if_null(value: T | None, /) -> Result[T]:
        """Return a result of `value` if it is not None, else `absent`."""
        return _ABSENT if value is None else Result(value, None)

    # -- asking

    @property
    def succeeded(self) -> bool:
        """True if there is a value."""
        return self._failure is None

    @property
    def failed(self) -> bool:
        """True if there is a failure."""
        return self._failure is not None

    @property
    def is_present(self) -> bool:
        """True if there is a value."""
        return self._failure is None

    @property
    def is_absent(self) -> bool:
        """True if this is `absent`; False for other failures."""
        return self is _ABSENT

    def contains(self, value: object, /) -> bool:
        """Return whether this has a value, and it equals `value`."""
        return self._value is not None and bool(self._value == value)

    def get(self) -> T_co:
        """Return the value.

        Raises:
            FailedResultError: if there is no value; the cause is the failure.
        """
        if self._value is None:
            raise FailedResultError("Cannot get() from a failed result") from self._failure
        return self._value

    def get_failure(self) -> BaseException:
        """Return the failure.

        Raises:
            IllegalStateError: if there is no failure.
        """
        return self._failed()

    def or_null(self) -> T_co | None:
        """Return the value, or None if this has failed."""
        return self._value

    def failure_or_null(self) -> BaseException | None:
        """Return the failure, or None if there is a value."""
        return self._failure

    def as_list(self) -> list[T_co]:
        """Return a list with the value as its only item; without a value, an empty list."""
        return [] if self._value is None else [self._value]

    # -- side effects; each returns this, and calls a supplier only if needed

    def if_succeeded_send_to(self, receiver: ReceiverLike[T_co], /) -> Result[T_co]:
        """Pass the value to `receiver`, if there is a value."""
        if self._value is not None:
            called(receiver, "accept")(self._value)
        return self

    def if_failed_send_to(self, receiver: ReceiverLike[BaseException], /) -> Result[T_co]:
        """Pass the failure to `receiver`, if there is a failure."""
        if self._failure is not None:
            called(receiver, "accept")(self._failure)
        return self

    def if_absent_failure_send_to(self, receiver: ReceiverLike[BaseException], /) -> Result[T_co]:
        """Pass the failure to `receiver`, if this is `absent`."""
        if self._failure is _ABSENT_FAILURE:
            called(receiver, "accept")(self._failure)
        return self

    def if_non_absent_failure_send_to(
        self, receiver: ReceiverLike[BaseException], /
    ) -> Result[T_co]:
        """Pass the failure to `receiver`, if this has failed and is not `absent`."""
        if self._failure is not None and self._failure is not _ABSENT_FAILURE:
            called(receiver, "accept")(self._failure)
        return self

    def if_succeeded_bind(self, value: U, binder: BinderLike[T_co, U], /) -> Result[T_co]:
        """Pass the value and `value` to `binder`, if there is a value."""
        if self._value is not None:
            called(binder, "bind")(self._value, value)
        return self

    def if_failed_bind(self, value: U, binder: BinderLike[BaseException, U], /) -> Result[T_co]:
        """Pass the failure and `value` to `binder`, if there is a failure."""
        if self._failure is not None:
            called(binder, "bind")(self._failure, value)
        return self

    def if_absent_failure_bind(
        self, value: U, binder: BinderLike[BaseException, U], /
    ) -> Result[T_co]:
        """Pass the failure and `value` to `binder`, if this is `absent`."""
        if self._failure is _ABSENT_FAILURE:
            called(binder, "bind")(self._failure, value)
        return self

    def if_non_absent_failure_bind(
        self, value: U, binder: BinderLike[BaseException, U], /
    ) -> Result[T_co]:
        """Pass the failure and `value` to `binder`, if this has failed and is not `absent`."""
        if self._failure is not None and self._failure is not _ABSENT_FAILURE:
            called(binder, "bind")(self._failure, value)
        return self

    def if_succeeded_bind_from(
        self, supplier: SupplierLike[U], binder: BinderLike[T_co, U], /
    ) -> Result[T_co]:
        """Pass the value and the supplier's value to `binder`, if there is a value."""
        if self._value is not None:
            called(binder, "bind")(self._value, called(supplier, "get")())
        return self

    def if_failed_bind_from(
        self, supplier: SupplierLike[U], binder: BinderLike[BaseException, U], /
    ) -> Result[T_co]:
        """Pass the failure and the supplier's value to `binder`, if there is a failure."""
        if self._failure is not None:
            called(binder, "bind")(self._failure, called(supplier, "get")())
        return self

    def if_absent_failure_bind_from(
        self, supplier: SupplierLike[U], binder: BinderLike[BaseException, U], /
    ) -> Result[T_co]:
        """Pass the failure and the supplier's value to `binder`, if this is `absent`."""
        if self._failure is _ABSENT_FAILURE:
            called(binder, "bind")(self._failure, called(supplier, "get")())
        return self

    def if_non_absent_failure_bind_from(
        self, supplier: SupplierLike[U], binder: BinderLike[BaseException, U], /
    ) -> Result[T_co]:
        """Pass the failure and the supplier's value to `binder`, if failed and not `absent`."""
        if self._failure is not None and self._failure is not _ABSENT_FAILURE:
            called(binder, "bind")(self._failure, called(supplier, "get")())
        return self

    # -- continuing

    def same_failure(self) -> Result[Never]:
        """Return this failure, as a result of any type.

        Raises:
            IllegalStateError: if this is not a failure.
        """
        self._failed()
        # It has no value whose type could be wrong.
        return self  # type: ignore[return-value]  # pyright: ignore[reportReturnType]

    def if_succeeded_map(self, function: FunctionLike[T_co, R], /) -> Result[R]:
        """Return a success with the result of `function` for the value; or this failure."""
        if self._value is None:
            return self.same_failure()
        return Result.success(called(function, "apply")(self._value))

    def if_succeeded_attempt_map(self, function: FunctionLike[T_co, Result[R]], /) -> Result[R]:
        """Return the result that `function` returns for the value; or this failure."""
        if self._value is None:
            return self.same_failure()
        attempt: Result[R] = called(function, "apply")(self._value)
        return attempt

    def if_succeeded_merge(self, value: U, merger: MergerLike[T_co, U, R], /) -> Result[R]:
        """Return a success with the result of `merger` for both values; or this failure."""
        if self._value is None:
            return self.same_failure()
        return Result.success(called(merger, "merge")(self._value, value))

    def if_succeeded_attempt_merge(
        self, value: U, merger: MergerLike[T_co, U, Result[R]], /
    ) -> Result[R]:
        """Return the result that `merger` returns for both values; or this failure."""
        if self._value is None:
            return self.same_failure()
        attempt: Result[R] = called(merger, "merge")(self._value, value)
        return attempt

    def if_succeeded_merge_from(
        self, supplier: SupplierLike[U], merger: MergerLike[T_co, U, R], /
    ) -> Result[R]:
        """Do as `if_succeeded_merge` with the value of `supplier`, called only after a success."""
        if self._value is None:
            return self.same_failure()
        return Result.success(called(merger, "merge")(self._value, called(supplier, "get")()))

    def if_succeeded_attempt_merge_from(
        self, supplier: SupplierLike[U], merger: MergerLike[T_co, U, Result[R]], /
    ) -> Result[R]:
        """Do as `if_succeeded_attempt_merge` with the value of `supplier`."""
        if self._value is None:
            return self.same_failure()
        attempt: Result[R] = called(merger, "merge")(self._value, called(supplier, "get")())
        return attempt

    # -- falling back

    def or_else(self, other: R, /) -> T_co | R:
        """Return the value, or `other`, which must not be None."""
        return not_none(other, "or_else()") if self._value is None else self._value

    def or_get_from(self, supplier: SupplierLike[R], /) -> T_co | R:
        """Return the value, or the value of `supplier`, which must not be None."""
        if self._value is not None:
            return self._value
        other: R = called(supplier, "get")()
        return not_none(other, "or_get_from()")

    def or_attempt_get_from(self, supplier: SupplierLike[Result[R]], /) -> Result[T_co | R]:
        """Return this success, or the result that `supplier` returns."""
        if self._value is not None:
            return self
        attempt: Result[R] = called(supplier, "get")()
        return not_none(attempt, "or_attempt_get_from()")

    def recover(self, function: FunctionLike[BaseException, R], /) -> T_co | R:
        """Return the value, or the result of `function` for the failure."""
        if self._value is not None:
            return self._value
        other: R = called(function, "apply")(self._failure)
        return other

    def attempt_recover(
        self, function: FunctionLike[BaseException, Result[R]], /
    ) -> Result[T_co | R]:
        """Return this success, or the result that `function` returns for the failure."""
        if self._value is not None:
            return self
        attempt: Result[R] = called(function, "apply")(self._failure)
        return attempt

    def _failed(self) -> BaseException:
        if self._failure is None:  # its class may define its own truth
            raise IllegalStateError("Not a failure")
        return self._failure

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Result):
            return NotImplemented
        other = cast("Result[object]", other)  # of any type
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
