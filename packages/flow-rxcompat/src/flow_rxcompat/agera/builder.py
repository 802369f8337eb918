"""The states of a repository's description: a class for each, so that types show what may follow.

==========================  =====================================================================
`REventSource`              which observables begin a flow
`RFrequency`                more of them, or how often a flow may begin
`RFlow`                     the directives; `RSyncFlow` after ``go_lazy``
`RTermination`              what becomes of a failed check or attempt
`RTerminationOrContinue`    the same of a last attempt, which may be followed by a recovery
`RConfig`                   when to tell, what to cancel, and ``compile()``
==========================  =====================================================================

All states share one description, which only goes forward. A state that is no longer the current one
raises IllegalStateError, and so does every state after ``compile()``.
"""

from __future__ import annotations

import enum
from typing import Any, Generic, TypeVar, final, overload

from typing_extensions import override

from flow_core.executors import Executor
from flow_core.protocols import EMPTY
from flow_rxcompat.agera._static import NULL
from flow_rxcompat.agera.compiled import (
    BindWith,
    Check,
    CompiledRepository,
    Directive,
    End,
    FilterFailure,
    FilterSuccess,
    GetFrom,
    GoLazy,
    GoTo,
    MergeIn,
    SendTo,
    Transform,
)
from flow_rxcompat.agera.config import RepositoryConfig
from flow_rxcompat.agera.errors import check_state, not_none
from flow_rxcompat.agera.loops import loop_needed
from flow_rxcompat.agera.mergers import objects_unequal
from flow_rxcompat.agera.observables import per_millisecond_observable
from flow_rxcompat.agera.protocols import (
    BinderLike,
    FunctionLike,
    MergerLike,
    Observable,
    PredicateLike,
    ReceiverLike,
    Repository,
    SupplierLike,
    called,
)
from flow_rxcompat.agera.result import Result

__all__ = [
    "RConfig",
    "REventSource",
    "RFlow",
    "RFrequency",
    "RSyncFlow",
    "RTermination",
    "RTerminationOrContinue",
    "compiling",
]

V = TypeVar("V")
P = TypeVar("P")
S = TypeVar("S")
C = TypeVar("C")
A = TypeVar("A")
W = TypeVar("W")
Failed = TypeVar("Failed")
Next_co = TypeVar("Next_co", covariant=True)
Continued_co = TypeVar("Continued_co", covariant=True)


class _Expect(enum.Enum):
    NOTHING = 0
    FIRST_EVENT_SOURCE = 1
    FREQUENCY_OR_MORE_EVENT_SOURCE = 2
    FLOW = 3
    TERMINATE_THEN_FLOW = 4
    TERMINATE_THEN_END = 5
    CONFIG = 6


@final
class _Compiler:
    """The description that all states share, with values of any type."""

    __slots__ = (
        "_case",
        "_deactivation",
        "_directives",
        "_discard",
        "_event_sources",
        "_expect",
        "_initial",
        "_lazy",
        "_notify",
        "_on_concurrent",
        "_window_ms",
    )

    def __init__(self, initial: object) -> None:
        self._expect = _Expect.NOTHING
        self._begin(initial)

    def _begin(self, initial: object) -> None:
        self._check(_Expect.NOTHING)
        self._expect = _Expect.FIRST_EVENT_SOURCE
        self._initial: object = not_none(initial, "an initial value")
        self._event_sources: list[Observable] = []
        self._window_ms = 0
        self._directives: list[Directive] = []
        self._case: tuple[Any, Any] | None = None  # Any: the functions of a check
        self._lazy = False
        self._notify = called(objects_unequal(), "merge")
        self._deactivation = RepositoryConfig.CONTINUE_FLOW
        self._on_concurrent = RepositoryConfig.CONTINUE_FLOW
        self._discard = called(NULL, "accept")

    def _check(self, *expected: _Expect) -> None:
        check_state(self._expect in expected, "Unexpected compiler state")

    def observe(self, observables: tuple[Observable, ...]) -> None:
        self._check(_Expect.FIRST_EVENT_SOURCE, _Expect.FREQUENCY_OR_MORE_EVENT_SOURCE)
        self._event_sources += [not_none(each, "observe()") for each in observables]
        self._expect = _Expect.FREQUENCY_OR_MORE_EVENT_SOURCE

    def on_updates_per(self, millis: int) -> None:
        self._check(_Expect.FREQUENCY_OR_MORE_EVENT_SOURCE)
        self._window_ms = max(0, millis)
        self._expect = _Expect.FLOW

    def add(self, directive: Directive, expect: _Expect = _Expect.FLOW) -> None:
        self._check(_Expect.FLOW)
        if isinstance(directive, (GoTo, GoLazy)):
            check_state(not self._lazy, "Unexpected occurrence of async directive after goLazy()")
            self._lazy = isinstance(directive, GoLazy)
        self._directives.append(directive)
        self._expect = expect

    def end(self, directive: Directive) -> None:
        self.add(directive)
        self.add(End(skip=False), _Expect.CONFIG)

    def check(self, case: Any, holds: Any) -> None:  # Any: see `called`
        self._check(_Expect.FLOW)
        if holds is EMPTY:  # a predicate alone
            case, holds = NULL, case
        self._case = (called(case, "apply"), called(holds, "apply"))
        self._expect = _Expect.TERMINATE_THEN_FLOW

    def terminate(self, end_with: Any) -> None:  # Any: see `called`
        self._check(_Expect.TERMINATE_THEN_FLOW, _Expect.TERMINATE_THEN_END)
        make = None if end_with is None else called(end_with, "apply")
        if self._case is None:
            self._directives.append(FilterSuccess(make))
        else:
            self._directives.append(Check(*self._case, make))
            self._case = None
        ends = self._expect is _Expect.TERMINATE_THEN_END
        self._expect = _Expect.FLOW
        if ends:
            self.add(End(skip=False), _Expect.CONFIG)

    def or_continue(self) -> None:
        self._check(_Expect.TERMINATE_THEN_END)
        self._directives.append(FilterFailure())
        self._expect = _Expect.FLOW

    def notify_if(self, checker: object) -> None:
        self._check(_Expect.CONFIG)
        self._notify = called(checker, "merge")

    def on_deactivation(self, config: RepositoryConfig) -> None:
        self._check(_Expect.CONFIG)
        self._deactivation = RepositoryConfig(config)

    def on_concurrent_update(self, config: RepositoryConfig) -> None:
        self._check(_Expect.CONFIG)
        self._on_concurrent = RepositoryConfig(config)

    def send_discarded_values_to(self, receiver: object) -> None:
        self._check(_Expect.CONFIG)
        self._discard = called(receiver, "accept")

    def compile(self) -> CompiledRepository[Any]:  # Any: the state that compiles knows
        self._check(_Expect.CONFIG)
        made: CompiledRepository[Any] = CompiledRepository(
            self._initial,
            per_millisecond_observable(self._window_ms, *self._event_sources),
            self._directives,
            notify=self._notify,
            deactivation=self._deactivation,
            on_concurrent=self._on_concurrent,
            discard=self._discard,
        )
        self._expect = _Expect.NOTHING
        return made

    def compile_into(self, initial: object) -> None:
        first = self.compile()
        self._begin(initial)
        self.observe((first,))
        self._directives.append(GetFrom(first.get))


class _State:
    """A step of a description. `repository_with_initial_value` returns the first step.

    Args:
        compiler: the description so far.
    """

    __slots__ = ("_compiler",)

    def __init__(self, compiler: _Compiler) -> None:
        self._compiler = compiler


class REventSource(_State, Generic[V, S]):
    """The observables whose updates begin a flow.

    `V` is the type of the repository's value, `S` that of the value with which a flow begins.
    """

    __slots__ = ()

    def observe(self, *observables: Observable) -> RFrequency[V, S]:
        """Begin a flow with each update of these observables; there may be none."""
        self._compiler.observe(observables)
        return RFrequency(self._compiler)


@final
class RFrequency(REventSource[V, S]):
    """The step that sets how often a flow may begin."""

    __slots__ = ()

    def on_updates_per(self, millis: int) -> RFlow[V, S]:
        """Begin a flow at most once in `millis` milliseconds; less than 0 counts as 0."""
        self._compiler.on_updates_per(millis)
        return RFlow(self._compiler)

    def on_updates_per_loop(self) -> RFlow[V, S]:
        """Begin a flow at most once in a turn of the loop."""
        return self.on_updates_per(0)


class RTermination(_State, Generic[V, Failed, Next_co]):
    """The treatment of a failed check or attempt.

    `Failed` is the type of what failed: the checked value, or the failure of the attempt.

    Args:
        compiler: the description so far.
        next_: the class of the step that follows.
    """

    __slots__ = ("_next",)

    def __init__(self, compiler: _Compiler, next_: type[Any]) -> None:  # Any: of `Next_co`
        super().__init__(compiler)
        self._next = next_

    def or_skip(self) -> Next_co:
        """End the flow, without an update."""
        self._compiler.terminate(None)
        state: Next_co = self._next(self._compiler)
        return state

    def or_end(self, function: FunctionLike[Failed, V], /) -> Next_co:
        """End the flow with the result of `function` for what failed.

        Updatables are updated if the result differs from the present value.
        """
        self._compiler.terminate(not_none(function, "or_end()"))
        state: Next_co = self._next(self._compiler)
        return state


@final
class RTerminationOrContinue(
    RTermination[V, Failed, Next_co], Generic[V, Failed, Next_co, Continued_co]
):
    """The treatment of a failed last attempt.

    Args:
        compiler: the description so far.
        next_: the class of the step that follows `or_skip` and the like.
        continued: the class of the step that follows `or_continue`.
    """

    __slots__ = ("_continued",)

    def __init__(
        self, compiler: _Compiler, next_: type[Any], continued: type[Any]
    ) -> None:  # Any: of `Next_co` and `Continued_co`
        super().__init__(compiler, next_)
        self._continued = continued

    def or_continue(self) -> Continued_co:
        """After a failure, continue with the failure as the value; after a success, end the flow.

        After a success, its value is the new value of the repository.
        """
        self._compiler.or_continue()
        state: Continued_co = self._continued(self._compiler)
        return state


class RSyncFlow(_State, Generic[V, P]):
    """The directives that may run within ``get()``. `P` is the type of the value so far."""

    __slots__ = ()

    def get_from(self, supplier: SupplierLike[C], /) -> RSyncFlow[V, C]:
        """Continue with the value of `supplier`, instead of the value so far."""
        self._compiler.add(GetFrom(called(supplier, "get")))
        return RSyncFlow(self._compiler)

    def merge_in(
        self, supplier: SupplierLike[A], merger: MergerLike[P, A, C], /
    ) -> RSyncFlow[V, C]:
        """Continue with the result of `merger` for the value so far and the supplier's value."""
        self._compiler.add(MergeIn(called(supplier, "get"), called(merger, "merge")))
        return RSyncFlow(self._compiler)

    def transform(self, function: FunctionLike[P, C], /) -> RSyncFlow[V, C]:
        """Continue with the result of `function` for the value so far."""
        self._compiler.add(Transform(called(function, "apply")))
        return RSyncFlow(self._compiler)

    def attempt_get_from(
        self, supplier: SupplierLike[Result[C]], /
    ) -> RTermination[V, BaseException, RSyncFlow[V, C]]:
        """Do as `get_from`, with a `Result`: continue with its value, or handle its failure."""
        self._compiler.add(GetFrom(called(supplier, "get")), _Expect.TERMINATE_THEN_FLOW)
        return RTermination(self._compiler, RSyncFlow)

    def attempt_merge_in(
        self, supplier: SupplierLike[A], merger: MergerLike[P, A, Result[C]], /
    ) -> RTermination[V, BaseException, RSyncFlow[V, C]]:
        """Do as `merge_in`, with a `Result`: continue with its value, or handle its failure."""
        self._compiler.add(
            MergeIn(called(supplier, "get"), called(merger, "merge")), _Expect.TERMINATE_THEN_FLOW
        )
        return RTermination(self._compiler, RSyncFlow)

    def attempt_transform(
        self, function: FunctionLike[P, Result[C]], /
    ) -> RTermination[V, BaseException, RSyncFlow[V, C]]:
        """Do as `transform`, with a `Result`: continue with its value, or handle its failure."""
        self._compiler.add(Transform(called(function, "apply")), _Expect.TERMINATE_THEN_FLOW)
        return RTermination(self._compiler, RSyncFlow)

    @overload
    def check(self, predicate: PredicateLike[P], /) -> RTermination[V, P, RSyncFlow[V, P]]: ...

    @overload
    def check(
        self, function: FunctionLike[P, C], predicate: PredicateLike[C], /
    ) -> RTermination[V, C, RSyncFlow[V, P]]: ...

    def check(
        self, function: Any, predicate: Any = EMPTY, /
    ) -> RTermination[V, Any, RSyncFlow[V, P]]:  # Any: see the overloads
        """Continue if a predicate holds for the value, or for a function's result for it.

        The function that ends the flow gets the value that the predicate got.
        """
        self._compiler.check(function, predicate)
        return RTermination(self._compiler, RSyncFlow)

    def send_to(self, receiver: ReceiverLike[P], /) -> RSyncFlow[V, P]:
        """Pass the value to `receiver`, and continue with it."""
        self._compiler.add(SendTo(called(receiver, "accept")))
        return RSyncFlow(self._compiler)

    def bind_with(self, supplier: SupplierLike[A], binder: BinderLike[P, A], /) -> RSyncFlow[V, P]:
        """Pass the value, and that of `supplier`, to `binder`; continue with the value."""
        self._compiler.add(BindWith(called(supplier, "get"), called(binder, "bind")))
        return RSyncFlow(self._compiler)

    def then_attempt_get_from(
        self, supplier: SupplierLike[Result[V]], /
    ) -> RTerminationOrContinue[V, BaseException, RConfig[V], RSyncFlow[V, BaseException]]:
        """Do as `attempt_get_from`; the value of a success is the new value of the repository."""
        self._compiler.add(GetFrom(called(supplier, "get")), _Expect.TERMINATE_THEN_END)
        return RTerminationOrContinue(self._compiler, RConfig, RSyncFlow)

    def then_attempt_merge_in(
        self, supplier: SupplierLike[A], merger: MergerLike[P, A, Result[V]], /
    ) -> RTerminationOrContinue[V, BaseException, RConfig[V], RSyncFlow[V, BaseException]]:
        """Do as `attempt_merge_in`; the value of a success is the new value of the repository."""
        self._compiler.add(
            MergeIn(called(supplier, "get"), called(merger, "merge")), _Expect.TERMINATE_THEN_END
        )
        return RTerminationOrContinue(self._compiler, RConfig, RSyncFlow)

    def then_attempt_transform(
        self, function: FunctionLike[P, Result[V]], /
    ) -> RTerminationOrContinue[V, BaseException, RConfig[V], RSyncFlow[V, BaseException]]:
        """Do as `attempt_transform`; the value of a success is the new value of the repository."""
        self._compiler.add(Transform(called(function, "apply")), _Expect.TERMINATE_THEN_END)
        return RTerminationOrContinue(self._compiler, RConfig, RSyncFlow)

    def then_skip(self) -> RConfig[V]:
        """End the flow without a new value, and without an update."""
        self._compiler.add(End(skip=True), _Expect.CONFIG)
        return RConfig(self._compiler)

    def then_get_from(self, supplier: SupplierLike[V], /) -> RConfig[V]:
        """End the flow with the value of `supplier`."""
        self._compiler.end(GetFrom(called(supplier, "get")))
        return RConfig(self._compiler)

    def then_merge_in(
        self, supplier: SupplierLike[A], merger: MergerLike[P, A, V], /
    ) -> RConfig[V]:
        """End the flow with the result of `merger` for the value and the supplier's value."""
        self._compiler.end(MergeIn(called(supplier, "get"), called(merger, "merge")))
        return RConfig(self._compiler)

    def then_transform(self, function: FunctionLike[P, V], /) -> RConfig[V]:
        """End the flow with the result of `function` for the value."""
        self._compiler.end(Transform(called(function, "apply")))
        return RConfig(self._compiler)


@final
class RFlow(RSyncFlow[V, P]):
    """The directives. `P` is the type of the value so far."""

    __slots__ = ()

    @override
    def get_from(self, supplier: SupplierLike[C], /) -> RFlow[V, C]:
        self._compiler.add(GetFrom(called(supplier, "get")))
        return RFlow(self._compiler)

    @override
    def merge_in(self, supplier: SupplierLike[A], merger: MergerLike[P, A, C], /) -> RFlow[V, C]:
        self._compiler.add(MergeIn(called(supplier, "get"), called(merger, "merge")))
        return RFlow(self._compiler)

    @override
    def transform(self, function: FunctionLike[P, C], /) -> RFlow[V, C]:
        self._compiler.add(Transform(called(function, "apply")))
        return RFlow(self._compiler)

    @override
    def attempt_get_from(
        self, supplier: SupplierLike[Result[C]], /
    ) -> RTermination[V, BaseException, RFlow[V, C]]:
        self._compiler.add(GetFrom(called(supplier, "get")), _Expect.TERMINATE_THEN_FLOW)
        return RTermination(self._compiler, RFlow)

    @override
    def attempt_merge_in(
        self, supplier: SupplierLike[A], merger: MergerLike[P, A, Result[C]], /
    ) -> RTermination[V, BaseException, RFlow[V, C]]:
        self._compiler.add(
            MergeIn(called(supplier, "get"), called(merger, "merge")), _Expect.TERMINATE_THEN_FLOW
        )
        return RTermination(self._compiler, RFlow)

    @override
    def attempt_transform(
        self, function: FunctionLike[P, Result[C]], /
    ) -> RTermination[V, BaseException, RFlow[V, C]]:
        self._compiler.add(Transform(called(function, "apply")), _Expect.TERMINATE_THEN_FLOW)
        return RTermination(self._compiler, RFlow)

    @overload
    def check(self, predicate: PredicateLike[P], /) -> RTermination[V, P, RFlow[V, P]]: ...

    @overload
    def check(
        self, function: FunctionLike[P, C], predicate: PredicateLike[C], /
    ) -> RTermination[V, C, RFlow[V, P]]: ...

    @override
    def check(
        self, function: Any, predicate: Any = EMPTY, /
    ) -> RTermination[V, Any, RFlow[V, P]]:  # Any: see the overloads
        self._compiler.check(function, predicate)
        return RTermination(self._compiler, RFlow)

    @override
    def send_to(self, receiver: ReceiverLike[P], /) -> RFlow[V, P]:
        self._compiler.add(SendTo(called(receiver, "accept")))
        return RFlow(self._compiler)

    @override
    def bind_with(self, supplier: SupplierLike[A], binder: BinderLike[P, A], /) -> RFlow[V, P]:
        self._compiler.add(BindWith(called(supplier, "get"), called(binder, "bind")))
        return RFlow(self._compiler)

    @override
    def then_attempt_get_from(
        self, supplier: SupplierLike[Result[V]], /
    ) -> RTerminationOrContinue[V, BaseException, RConfig[V], RFlow[V, BaseException]]:
        self._compiler.add(GetFrom(called(supplier, "get")), _Expect.TERMINATE_THEN_END)
        return RTerminationOrContinue(self._compiler, RConfig, RFlow)

    @override
    def then_attempt_merge_in(
        self, supplier: SupplierLike[A], merger: MergerLike[P, A, Result[V]], /
    ) -> RTerminationOrContinue[V, BaseException, RConfig[V], RFlow[V, BaseException]]:
        self._compiler.add(
            MergeIn(called(supplier, "get"), called(merger, "merge")), _Expect.TERMINATE_THEN_END
        )
        return RTerminationOrContinue(self._compiler, RConfig, RFlow)

    @override
    def then_attempt_transform(
        self, function: FunctionLike[P, Result[V]], /
    ) -> RTerminationOrContinue[V, BaseException, RConfig[V], RFlow[V, BaseException]]:
        self._compiler.add(Transform(called(function, "apply")), _Expect.TERMINATE_THEN_END)
        return RTerminationOrContinue(self._compiler, RConfig, RFlow)

    def go_to(self, executor: Executor, /) -> RFlow[V, P]:
        """Run the steps that follow in `executor`: those up to the next ``go_to``, in one task.

        Args:
            executor: a pool, or a callable that gets a task to run.
        """
        self._compiler.add(GoTo(executor))
        return RFlow(self._compiler)

    def go_lazy(self) -> RSyncFlow[V, P]:
        """Announce an update, and run the rest within ``get()``, at its first call."""
        self._compiler.add(GoLazy())
        return RSyncFlow(self._compiler)


@final
class RConfig(_State, Generic[V]):
    """The last steps: when a new value is announced, and what happens to running flows."""

    __slots__ = ()

    def notify_if(self, checker: MergerLike[V, V, bool], /) -> RConfig[V]:
        """Announce a new value if `checker` returns true for the old and the new one.

        Without a checker, a new value is announced if it does not equal the old one.
        """
        self._compiler.notify_if(checker)
        return self

    def on_deactivation(self, config: RepositoryConfig, /) -> RConfig[V]:
        """Set what happens to a running flow when the last updatable is removed."""
        self._compiler.on_deactivation(config)
        return self

    def on_concurrent_update(self, config: RepositoryConfig, /) -> RConfig[V]:
        """Set what happens to a running flow when there is another update."""
        self._compiler.on_concurrent_update(config)
        return self

    def send_discarded_values_to(self, receiver: ReceiverLike[Any], /) -> RConfig[V]:  # Any:
        # values of every directive
        """Pass discarded values to `receiver`, except the current value of the repository."""
        self._compiler.send_discarded_values_to(receiver)
        return self

    def compile(self) -> Repository[V]:
        """Make the repository.

        Raises:
            IllegalStateError: if this thread runs no loop, or the repository was made already.
        """
        return self._compiler.compile()

    def compile_into_repository_with_initial_value(self, value: W, /) -> RFrequency[W, V]:
        """Make the repository, and describe a second one, which observes it.

        A flow of the second repository begins with the value of the first one.

        Args:
            value: the initial value of the second repository.
        """
        self._compiler.compile_into(value)
        return RFrequency(self._compiler)


def compiling(value: V) -> REventSource[V, V]:
    """Begin to describe a repository of initial value `value`."""
    loop_needed("compiled")
    return REventSource(_Compiler(value))
