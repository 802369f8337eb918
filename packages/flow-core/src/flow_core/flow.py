"""`Flow`: a description of where items come from and what happens to them on their way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from inspect import CO_COROUTINE
from sys import _getframe
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    TypeGuard,
    TypeVar,
    cast,
    overload,
)

from flow_core import hooks, late
from flow_core.assembly import assembled, subscribed
from flow_core.boundaries._methods import Bounding
from flow_core.demand import DEFAULT_PREFETCH, check_prefetch
from flow_core.errors import (
    NoItemError,
    NoneItemError,
    add_note,
    no_such_name,
    throw_if_fatal,
)
from flow_core.held import watched_items
from flow_core.homes import Home, current_home
from flow_core.hooks import on_assembly
from flow_core.operator import Operator
from flow_core.protocols import (
    CallableSource,
    CoreSubscriber,
    IterableSource,
    Publisher,
    ScalarSource,
    Subscriber,
)
from flow_core.sources._idle import fail
from flow_core.sources._items import ConstantSource, FailedSource, ItemsSource, RangeSource
from flow_core.stages._aggregate import Aggregating
from flow_core.stages._chain import StageChain
from flow_core.stages._closing import PLAIN, Failing, close_iterator, closer_of
from flow_core.stages._codegen import Form
from flow_core.stages._combining import Combining
from flow_core.stages._direct import put_directly
from flow_core.stages._effects import Observing
from flow_core.stages._filtering import Filtering
from flow_core.stages._program import Program
from flow_core.stages._pulled import IteratorSubscription
from flow_core.stages._pushed import subscribe_stages
from flow_core.stages._recovery import Recovering
from flow_core.stages._shape import ROOT
from flow_core.stages._template import (
    NEVER_AWAITED,
    UNSET,
    Site,
    Stage,
    Template,
    check_function,
    describe,
    line_of,
    outside,
    portable,
    refuse_coroutine_function,
    user_site,
)
from flow_core.stages._transform import Transforming
from flow_core.structure import AbsorbingSource, DeferredSource, boundary_of, stages_of
from flow_core.subscribers._awaiting import AsyncItems, iterate_async
from flow_core.subscribers._blocking import iterate_blocking
from flow_core.subscribers._callbacks import CallbackSubscriber
from flow_core.subscribers._running import Running
from flow_core.subscribers._strict import core_subscriber
from flow_core.surface.factories import KNOWN, factory_of
from flow_core.surface.multicast import MulticastMethods
from flow_core.surface.ops import OpsMethods
from flow_core.surface.spark import SparkMethods

__all__ = ["NAMESPACES", "Flow", "check_order"]

T = TypeVar("T")
V = TypeVar("V")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")
A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")
D = TypeVar("D")
E = TypeVar("E")
F = TypeVar("F")
G = TypeVar("G")
H = TypeVar("H")
I = TypeVar("I")  # noqa: E741 - the ninth
J = TypeVar("J")

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    _Last = Operator[A, B] | Callable[["Flow[A]"], B]
    _Step = Operator[A, "Flow[B]"] | Callable[["Flow[A]"], "Flow[B]"]

NAMESPACES: Final[dict[str, Callable[[Flow[Any]], object]]] = {}  # Any: items of any type
"""The namespaces that `register_namespace` has registered, by name."""

_FUNCTIONS: Final = frozenset({FunctionType, BuiltinFunctionType, MethodType})
"""Types that are certainly functions, and not subscribers."""

_SUBSCRIBE_WAY: Final = (
    "for_each() and for_each_async() await one for each item, as in "
    "`await flow.for_each_async(function)`"
)

_AnySource = Publisher[Any] | IterableSource[Any]  # Any: the type of the first item
_AnyStage = Stage[Any, Any]  # Any: the types of neighbouring stages need only fit each other

_PLAIN_SOURCES: Final = frozenset[type]({ConstantSource, ItemsSource, RangeSource})
"""Sources whose iterator runs in the thread that iterates, and that can be used in no other way."""

_FIRST: Final = Form.FIRST
_PULL: Final = Form.PULL
"""A constant, since each run of a flow needs it, and the enum's own lookup is slow."""

_new: Callable[[type], Any] = object.__new__  # Any: an instance of that class
"""Makes a flow without calling its `__init__`, which would check a source that is already known."""


class Flow(
    StageChain[T_co],
    Running[T_co],
    Transforming[T_co],
    Filtering[T_co],
    Aggregating[T_co],
    Combining[T_co],
    Recovering[T_co],
    Observing[T_co],
    Bounding[T_co],
    MulticastMethods[T_co],
    OpsMethods[T_co],
    SparkMethods[T_co],
    Publisher[T_co],
    Generic[T_co],
):
    """A description of items: their source, and the operators they pass. Immutable; runs on demand.

    >>> import flow_core as flow
    >>> squares = flow.range(10).filter(lambda n: n % 2 == 1).map(lambda n: n * n)
    >>> list(squares)
    [1, 9, 25, 49, 81]

    Each subscriber runs a flow again. Run it by iterating over it, with ``async for``, or by
    `subscribe`. Neighbouring synchronous operators (one class per theme in `flow_core.stages`,
    which describes what they have in common) are compiled into one loop. The methods that change
    threads, wait, or combine several flows come with other packages (one class each in
    `flow_core.surface`); their text names the package. Pass your own `Operator` to `pipe`.

    Args:
        source: a publisher or an `IterableSource`; functions like `flow_core.range` make one.
    """

    __slots__ = ("__weakref__",)

    if not TYPE_CHECKING:  # for type checkers, any name would be an attribute then

        def __getattr__(self, name: str) -> object:
            """Return a namespace that a package has registered.

            For a missing name, raise an error that says what it is called in this library.
            """
            namespace = NAMESPACES.get(name)
            if namespace is None:
                no_such_name(type(self).__name__, name)
            return namespace(self)

        def __or__(self, other: object) -> object:
            """Raise an error: what `repr` shows as ``|`` is the method `pipe`."""
            raise TypeError(f"flows have no operator |: write flow.pipe({describe(other)})")

        def __add__(self, other: object) -> object:
            """Raise an error: ``+`` could mean several things."""
            raise TypeError(
                "flows have no operator +: a.concat(b) is one after the other, a.merge(b) both at "
                "once, a.zip(b) in pairs"
            )

        def __dir__(self) -> list[str]:
            """List all names, including those of the registered namespaces."""
            return sorted({*super().__dir__(), *NAMESPACES})

    # -- assembly

    @overload
    def pipe(self) -> Flow[T_co]: ...

    @overload
    def pipe(self, a: _Last[T_co, A], /) -> A: ...

    @overload
    def pipe(
        self,
        a: _Step[T_co, A],
        b: _Last[A, B],
        /,
    ) -> B: ...

    @overload
    def pipe(
        self,
        a: _Step[T_co, A],
        b: _Step[A, B],
        c: _Last[B, C],
        /,
    ) -> C: ...

    @overload
    def pipe(
        self,
        a: _Step[T_co, A],
        b: _Step[A, B],
        c: _Step[B, C],
        d: _Last[C, D],
        /,
    ) -> D: ...

    @overload
    def pipe(
        self,
        a: _Step[T_co, A],
        b: _Step[A, B],
        c: _Step[B, C],
        d: _Step[C, D],
        e: _Last[D, E],
        /,
    ) -> E: ...

    @overload
    def pipe(
        self,
        a: _Step[T_co, A],
        b: _Step[A, B],
        c: _Step[B, C],
        d: _Step[C, D],
        e: _Step[D, E],
        f: _Last[E, F],
        /,
    ) -> F: ...

    @overload
    def pipe(
        self,
        a: _Step[T_co, A],
        b: _Step[A, B],
        c: _Step[B, C],
        d: _Step[C, D],
        e: _Step[D, E],
        f: _Step[E, F],
        g: _Last[F, G],
        /,
    ) -> G: ...

    @overload
    def pipe(
        self,
        a: _Step[T_co, A],
        b: _Step[A, B],
        c: _Step[B, C],
        d: _Step[C, D],
        e: _Step[D, E],
        f: _Step[E, F],
        g: _Step[F, G],
        h: _Last[G, H],
        /,
    ) -> H: ...

    @overload
    def pipe(
        self,
        a: _Step[T_co, A],
        b: _Step[A, B],
        c: _Step[B, C],
        d: _Step[C, D],
        e: _Step[D, E],
        f: _Step[E, F],
        g: _Step[F, G],
        h: _Step[G, H],
        i: _Last[H, I],
        /,
    ) -> I: ...

    @overload
    def pipe(
        self,
        a: _Step[T_co, A],
        b: _Step[A, B],
        c: _Step[B, C],
        d: _Step[C, D],
        e: _Step[D, E],
        f: _Step[E, F],
        g: _Step[F, G],
        h: _Step[G, H],
        i: _Step[H, I],
        j: _Last[I, J],
        /,
    ) -> J: ...

    # Any: the overloads for what a type checker does not follow, but accepts.
    @overload
    def pipe(
        self,
        a: Any,
        b: Any,
        c: Any,
        d: Any,
        e: Any,
        f: Any,
        g: Any,
        h: Any,
        i: Any,
        j: Any,
        k: Any,
        /,
        *more: Any,
    ) -> Any: ...

    def pipe(self, *operators: Any) -> Any:  # Any: see the overloads
        """Apply operators or functions one after the other, and return the result of the last one.

        >>> import flow_core as flow
        >>> def halves(numbers: flow.Flow[int]) -> flow.Flow[float]:
        ...     return numbers.map(lambda n: n / 2)
        >>> list(flow.range(3).pipe(halves, lambda numbers: numbers.skip(1)))
        [0.5, 1.0]

        A type checker follows functions and operators with types, up to ten of them; for more than
        ten, it infers Any. mypy infers the type of a lambda's argument only if the lambda comes
        first: ``pipe(a).pipe(b)`` helps.

        Args:
            operators: functions of a flow, stages, or the results of a factory like
                ``flow_cli.progress.progress()``. All but the last one return a flow.

        Raises:
            TypeError: if one of `operators` is not one of these, or if one that is not the last
                does not return a flow.
        """
        made: Any = self
        for operator in operators:
            if not isinstance(made, Flow):
                raise TypeError(f"pipe(): {operator!r} follows {made!r}, which is not a flow")
            made = made._piped(operator)
        return made

    def _piped(
        self, operator: Operator[Any, Any] | _AnyStage | Callable[[Flow[Any]], Any]
    ) -> Any:  # Any: see pipe
        if isinstance(operator, Operator):
            return self._applied(operator)
        if not callable(operator):
            raise TypeError(f"pipe() takes functions of a flow, and operators, not {operator!r}")
        name = describe(operator)
        try:
            made = self._applied(Operator(name, operator))
        except TypeError as error:
            way = f"what makes operators is called first: pipe({name}(...))"
            add_note(error, f"pipe() has called {name} with a flow; {way}")
            raise
        if isinstance(made, Operator):
            raise TypeError(f"pipe({name}): it makes an operator; call it: pipe({name}(...))")
        return made

    def _applied(self, operator: Operator[Any, R]) -> R:  # Any: see _then
        if isinstance(self._source, AbsorbingSource):
            _check_behind(self, operator)
        made = operator.apply(self)
        if isinstance(made, Flow):
            # R is a Flow here, of a type that only the operator knows.
            return cast("R", self._made(cast("Flow[Any]", made), operator))
        return made

    def _plugged(
        self, target: str, /, *args: object, **options: object
    ) -> Any:  # Any: see Fluent._plugged
        return self._applied((KNOWN.get(target) or factory_of(target))(*args, **options))

    def _combined(
        self, target: str, /, *others: object, **options: object
    ) -> Any:  # Any: see Fluent._plugged
        source = KNOWN.get(target) or factory_of(target)
        together: Operator[Any, Flow[Any]] = Operator(
            source.__name__,
            lambda flow: source(flow, *others, **options),
            f"{1 + len(others)} flows",
        )
        if isinstance(self._source, AbsorbingSource):
            _check_behind(self, together)
        # Not by the operator: each frame between here and the user's would slow the search for
        # that.
        return self._made(source(self, *others, **options), together)

    def _then(self, stage: Stage[Any, R]) -> Flow[R]:  # Any: the public methods check it
        return self._add(stage.template, *stage.args, site=stage.site)

    def _made(self, made: Flow[R], operator: Operator[Any, Any]) -> Flow[R]:  # Any: see _then
        if made._stems_from(self):
            return made  # made of stages, each of which was shown to the hook
        bounded = made._over(made._source)
        bounded._boundary = self, operator, user_site()
        return bounded if on_assembly.call is None else assembled(bounded)

    def _over(self, source: Publisher[Any] | IterableSource[Any]) -> Flow[T_co]:
        """Put this flow's last stages behind another source, which may give None if its own may."""
        made: Flow[T_co] = _new(Flow)
        made._source = source
        made._boundary = made._program = None
        made._node, made._args, made._parent = self._node, self._args, self._parent
        made._code = self._code
        if self._code is not None:
            made._at = self._at
        return made

    def _add(
        self, template: Template, *args: object, site: Site | None = None
    ) -> Flow[Any]:  # Any: see _then
        node = self._node or self._placed()
        try:
            node = node.after[id(template)]
        except KeyError:
            node = node.then(template)
        for index in node.called:
            function = args[index]
            if type(function) is FunctionType:
                if function.__code__.co_flags & CO_COROUTINE:
                    check_function(template, index, function)
            elif type(function) not in NEVER_AWAITED:
                check_function(template, index, function)
        if site is None:
            try:
                frame = _getframe(2)
            except ValueError:
                frame = _getframe(1)  # of a method that is all that a thread runs
            code: CodeType | str = frame.f_code
            if code is not self._code:  # of the stage before, which most often is the same
                frame = outside(frame)
                code = frame.f_code
            at = frame.f_lasti
        else:
            code, at = site
        made: Flow[Any] = _new(Flow)
        made._source = self._source
        made._node = node
        before = self._args
        made._args = before + args if before and node.few else args
        made._parent = self
        made._boundary = made._program = None
        made._code = code
        made._at = at
        if node.absorbs and isinstance(source := self._source, AbsorbingSource):
            source.check(made._stages())
        return made if on_assembly.call is None else assembled(made)

    def __reduce__(self) -> tuple[Any, ...]:  # Any: the declared result of object.__reduce__
        boundary = self._boundary
        if boundary is not None:
            boundary = *boundary[:2], portable(boundary[2])
        return _restored, (self._source, self._parent, self._stage, boundary)

    def _pipe(self, operator: Operator[Any, Any]) -> Flow[Any]:  # Any: see Fluent._pipe
        return self._made(operator.apply(self), operator)

    def _where(self) -> str:
        return line_of(user_site()) or "an unknown place"

    def _whole(self) -> Flow[T_co]:
        return self

    def _just(self, item: R | None) -> Flow[R]:
        return Flow(ConstantSource(item))

    @staticmethod
    def _of(source: Publisher[R] | IterableSource[R]) -> Flow[R]:
        """Return a flow for a boundary; the boundary's module cannot import this class."""
        return Flow(source)

    def _constant(self) -> ScalarSource[T_co] | None:
        source = self._source
        if self._args is None and isinstance(source, ScalarSource):
            return source
        return None

    # -- running

    @overload
    def subscribe(self, subscriber: Subscriber[T_co], /) -> None: ...

    @overload
    def subscribe(
        self,
        on_next: Callable[[T_co], object] = ...,
        on_error: Callable[[BaseException], object] | None = None,
        on_complete: Callable[[], object] | None = None,
        *,
        prefetch: int | None = None,
    ) -> CallbackSubscriber[T_co]: ...

    def subscribe(
        self,
        on_next: Subscriber[T_co] | Callable[[T_co], object] | object = UNSET,
        on_error: Callable[[BaseException], object] | None = None,
        on_complete: Callable[[], object] | None = None,
        *,
        prefetch: int | None = None,
    ) -> CallbackSubscriber[T_co] | None:
        """Run the flow for a subscriber, or for functions.

        >>> import flow_core as flow
        >>> handle = flow.just(1, 2).subscribe(print)
        1
        2
        >>> handle.disposed
        True

        Thread: the functions are called in the thread in which the signals come. If this method is
        called in the thread of a running event loop, they are called in that loop, whichever thread
        signals; behind ``observe_on``, they are called on its executor.

        Args:
            on_next: a subscriber; or a function that gets each item.
            on_error: called with the error. Without it, the error goes to the dropped-errors hook,
                which logs it. In either case, the handle's ``wait()`` raises the error, and the
                handle's ``error`` holds it.
            on_complete: called when the flow has completed.
            prefetch: items to request at a time, refilled at 75 %; None requests without bound.

        Returns:
            If functions were passed: a `Disposable` that cancels the flow, also as a context
            manager. A synchronous flow has already ended when this method returns.

        Raises:
            NoneItemError: if the subscriber is None.
        """
        if type(on_next) not in _FUNCTIONS:
            if isinstance(on_next, CoreSubscriber):
                # With items of this flow: see above.
                self._run(cast("CoreSubscriber[T_co]", on_next))
                return None
            if on_next is None:
                raise NoneItemError("subscribe(None): a subscriber is needed")
            if hasattr(on_next, "on_subscribe"):
                # It is meant to be a subscriber; core_subscriber checks the rest.
                self._run(core_subscriber(cast("Subscriber[T_co]", on_next)))
                return None
            if on_next is not UNSET and not callable(on_next):
                raise TypeError(
                    "subscribe() takes a subscriber or a function (a subscriber has on_subscribe, "
                    f"on_next, on_error and on_complete), not {on_next!r}"
                )
        function: Any = None if on_next is UNSET else on_next  # Any: a function, by now
        for each in (function, on_error, on_complete):
            if each is not None:
                refuse_coroutine_function("subscribe", each, _SUBSCRIBE_WAY)
        home = current_home()
        if prefetch is None and home is not None and _keeps_latest(self._source):
            prefetch = 1  # an item that waits for the loop is not yet out of date
        # By position: a keyword argument costs a short flow as much as a frame.
        subscriber: CallbackSubscriber[T_co] = CallbackSubscriber(
            function, on_error, on_complete, prefetch, self, home
        )
        self._run(subscriber, home)
        if not subscriber._ended:
            subscriber.watch()
        return subscriber

    def _run(self, subscriber: CoreSubscriber[T_co], home: Home | None = None) -> None:
        """Run the flow.

        Args:
            subscriber: gets the signals.
            home: where the subscriber has to be called; None to call it where the signals come.
        """
        if hooks.on_subscribe.call is not None:
            try:
                subscriber = subscribed(subscriber)
            except BaseException as error:
                throw_if_fatal(error)
                fail(subscriber, error)
                return
        items: Iterator[Any] | None = None  # Any, here and below: the type of the first item
        publisher: Publisher[Any] | None = None
        program: Program[Any, T_co] | None = None
        pinned = False
        try:
            source, known = self._source, self._program
            if known is not None and type(known) is Program and not hooks.debugging:
                program = known
            else:
                # Deferred and absorbing sources never keep a program: it is looked up for the
                # others.
                flow = _resolved(self) if isinstance(source, DeferredSource) else self
                source, program = flow._compiled()
            if isinstance(source, CallableSource):
                item = source.call()
                items = iter(() if item is None else (item,))
            elif isinstance(source, IterableSource) and not hasattr(source, "subscribe"):
                pinned = source.calls_user_code
                items = source.iterate()
            else:
                # An object that is not an iterator is a publisher; a source that is both is
                # subscribed to.
                if not hasattr(source, "subscribe"):
                    raise TypeError(
                        f"Flow({describe(source)}): that is not a publisher; from_() makes a flow "
                        "of almost anything"
                    )
                publisher = cast("Publisher[Any]", source)
        except BaseException as error:
            throw_if_fatal(error)
            program = Program(stages_of(self)) if program is None else program
            shape = program.shape
            if not shape.hears:
                fail(subscriber, error)
                return
            items = Failing(error)  # the stages handle the error, or have items before it
        if publisher is not None:
            if home is not None and not _moves(self):
                from flow_core.subscribers._homing import HomingSubscriber  # it imports the sources

                subscriber = HomingSubscriber(subscriber, home)
            publisher.subscribe(subscribe_stages(program, subscriber))
        elif items is not None:
            IteratorSubscription(program, items, subscriber, pinned).start()

    def __iter__(self) -> Iterator[T_co]:
        source: Any = self._source  # Any, from here on: a source that can be iterated over
        if type(source) in _PLAIN_SOURCES and not hooks.debugging:
            if self._args is None and source.none_free:  # flat_map_iterable checks each item itself
                plain: Iterator[T_co] = source.iterate()
                return plain
            node = self._node or self._placed()
            if not node.deep and (shape := node.shape or node.shaped()).single:
                try:
                    items = source.iterate()
                except Exception as error:
                    if not shape.hears:
                        raise
                    items = Failing(error)
                close = None if type(items) in PLAIN else closer_of(items)
                try:
                    loop = shape._loops[_PULL]
                except KeyError:
                    loop = shape.loop(_PULL)
                return loop(items, close, self, self._arguments())
        return self.iterate()

    def iterate(self, *, prefetch: int | None = None) -> Iterator[T_co]:
        """Iterate, with a limit on the items that wait if the flow is asynchronous.

        >>> import flow_core as flow
        >>> list(flow.range(3).iterate(prefetch=1))
        [0, 1, 2]

        Leaving the loop early cancels the flow. Items that waited then go to the dropped-items
        hook; errors that come later are not raised.

        Args:
            prefetch: how many items are requested ahead; refilled at 75 %. None stands for 128; but
                if the source keeps only its latest item, as ``create(…, overflow="latest")`` does,
                each item is requested when the loop needs it.

        Raises:
            BlockingInEventLoopError: raised by the iterator in the thread of a running event loop
                or of all timers: when it has to wait there, or when another thread has sent it a
                signal.
        """
        if prefetch is not None:
            check_prefetch(prefetch)
        if isinstance(self._source, DeferredSource):
            return _resolved_later(self, prefetch)
        source, program = self._compiled()
        if isinstance(source, IterableSource):
            return _iterated(source, program)
        return iterate_blocking(self, _ahead(source, prefetch))

    def first(self) -> T_co:
        """Return the first item, and cancel the flow; blocks.

        >>> import flow_core as flow
        >>> flow.range(3).first()
        0

        Raises:
            NoItemError: if the flow completes without an item.
        """
        source: Any = self._source  # Any: a source that can be iterated over, if it is pulled
        node = self._node or self._placed()
        item: T_co | None
        plain = type(source) in _PLAIN_SOURCES and hooks.on_subscribe.call is None
        if hooks.debugging or not (plain or _is_pulled(source)):
            items = iter(self.take(1))
            try:
                item = next(items, None)
            finally:
                close_iterator(items)
        elif node is not ROOT and not node.deep and (shape := node.shape or node.shaped()).single:
            try:
                items = source.iterate()
            except Exception as error:
                if not shape.hears:
                    raise
                items = Failing(error)
            close = None if type(items) in PLAIN else closer_of(items)
            try:
                loop = shape._loops[_FIRST]
            except KeyError:
                loop = shape.loop(_FIRST)
            found: Any = loop(items, close, self, self._arguments())
            item = found  # Any: it is not a generator
        else:
            program = self._compiled()[1]
            item = program.first(_begun(source, program))
        if item is None:
            raise NoItemError(
                "first(): the flow has no item; first_or_default(item).first() gives one instead"
            )
        return item

    def _pulled(self) -> tuple[Flow[T_co], Iterator[T_co] | None]:
        """Resolve this flow; also return its items if pulling them cannot block here."""
        flow = _resolved(self) if isinstance(self._source, DeferredSource) else self
        source = flow._source
        if not _is_pulled(source):
            return flow, None
        items = _iterated(source, flow._compiled()[1])
        return flow, watched_items(items, flow._told()) if hooks.debugging else items

    def _ahead(self, prefetch: int | None) -> int | None:
        return _ahead(self._source, prefetch)

    def __aiter__(self) -> AsyncIterator[T_co]:
        return iterate_async(self, None)

    def aiterate(self, *, prefetch: int | None = None) -> AsyncItems[T_co]:
        """Iterate in an event loop, with a limit for the items that wait, and a way to leave early.

        >>> import asyncio
        >>> import flow_core as flow
        >>> async def main() -> list[int]:
        ...     async with flow.range(3).aiterate(prefetch=1) as items:
        ...         return [item async for item in items]
        >>> asyncio.run(main())
        [0, 1, 2]

        Args:
            prefetch: see `iterate`.

        Returns:
            An async iterator, which is also an async context manager: leaving its block waits until
            the flow has cleaned up.
        """
        if prefetch is not None:
            check_prefetch(prefetch)
        return AsyncItems(iterate_async(self, prefetch))

    def _told(self) -> str:
        """Describe this flow, and where its last operator was assembled, for messages."""
        place = line_of(self._site)
        return f"{self!r}, assembled at {place}" if place else repr(self)

    def _repr_mimebundle_(self, **_: object) -> dict[str, str]:
        """Return what a notebook shows: the flow's text, and what installed displays draw."""
        shown = {"text/plain": repr(self)}
        for display in late.plugin_host().each_display():
            shown.update(display.drawn(self))
        return shown

    def __repr__(self) -> str:
        parts = [repr(stage) for stage in stages_of(self)]
        before = boundary_of(self)
        head = repr(self._source) if before is None else f"{before[0]!r} | {before[1]!r}"
        return " | ".join([head, *parts])


def check_order(flow: Publisher[Any], what: str) -> None:  # Any: items of any type
    """Raise FlowError if the items of `flow` have no order, and `what` depends on their order.

    Raises:
        FlowError: if that is the case; its text lists the ways out.
    """
    if not isinstance(flow, Flow):
        return
    of: Flow[Any] = flow
    source = of._source
    if isinstance(source, AbsorbingSource):
        where = line_of(user_site())
        source.check(stages_of(of), f"{what}, assembled at {where}," if where else what)


def _moves(flow: Flow[Any]) -> bool:
    """Return whether an operator decides in which thread the end of this flow runs."""
    boundary = boundary_of(flow)
    while boundary is not None:
        before, operator = boundary
        if operator.moves:
            return True
        boundary = boundary_of(before)
    return False


def _check_behind(flow: Flow[Any], operator: Operator[Any, Any]) -> None:
    if late.plugin_host().refuses(operator.name):
        check_order(flow, repr(operator))


put_directly(Flow)


def _restored(
    source: _AnySource,
    parent: Flow[Any] | None,
    stage: _AnyStage | None,
    boundary: tuple[Flow[Any], Operator[Any, Any], Site | None] | None,
) -> Flow[Any]:
    """Return the flow that was pickled."""
    made: Flow[Any] = Flow(source)
    if parent is not None and stage is not None:
        made._node = node = parent._placed().then(stage.template)
        made._args = (parent._args or ()) + stage.args if node.few else stage.args
        made._parent = parent
        made._code, made._at = stage.site or (None, 0)
    made._boundary = boundary
    return made


def _resolved(flow: Flow[T]) -> Flow[T]:
    """Replace a deferred source by the flow that it makes, so that the stages of both fuse.

    If the source raises an error instead, the stages behind it handle that error, even if it is the
    source of a flow within another deferred flow.
    """
    while _is_deferred(source := flow._source):
        made: Flow[Any]  # Any: the type of the first item
        try:
            made = source.resolve()
        except Exception as error:
            throw_if_fatal(error)
            made = Flow(FailedSource(error))
        for stage in stages_of(flow):
            made = made._then(stage)
        flow = made
    return flow


# Any: the type of the first item.
def _is_pulled(source: _AnySource) -> TypeGuard[IterableSource[Any]]:
    """Return whether the items are pulled and pulling them cannot block, and no hook is set."""
    return (
        isinstance(source, IterableSource)
        and not isinstance(source, AbsorbingSource)
        and not hasattr(source, "subscribe")  # it is both, and its iterator waits for others
        and hooks.on_subscribe.call is None
    )


def _iterated(source: IterableSource[Any], program: Program[Any, T]) -> Iterator[T]:
    """Return the items of `source` through the stages of `program`."""
    return program.iterate(_begun(source, program))


def _begun(source: IterableSource[T], program: Program[T, Any]) -> Iterator[T]:
    """Return the items of `source`, to be sent through all stages."""
    try:
        return source.iterate()
    except Exception as error:
        if not program.shape.hears:
            raise
        return Failing(error)


def _keeps_latest(source: object) -> bool:
    """Return whether `source` says that it keeps only its latest item for a slow subscriber."""
    return getattr(source, "keeps_latest", False) is True


def _ahead(source: object, prefetch: int | None) -> int | None:
    """Return how many items an iteration requests ahead; None for none. See `Flow.iterate`."""
    if prefetch is None and not _keeps_latest(source):
        return DEFAULT_PREFETCH
    return prefetch


def _resolved_later(flow: Flow[T], prefetch: int | None) -> Iterator[T]:
    """Yield the items of a deferred flow; the flow is made when the first item is requested."""
    yield from _resolved(flow).iterate(prefetch=prefetch)


def _is_deferred(source: object) -> TypeIs[DeferredSource[Any]]:  # Any: the type of the first item
    return isinstance(source, DeferredSource)
