"""`prepare`: a flow that is assembled once, without its items, for many short runs."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Iterator, Sized
from functools import cached_property, partial, update_wrapper
from gc import get_referents
from sys import modules
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any, Final, Generic, Never, TypeGuard, TypeVar, cast, final

from typing_extensions import override

from flow_core.conversion import Convertible, as_flow
from flow_core.errors import FlowError
from flow_core.flow import Flow
from flow_core.once import once
from flow_core.protocols import IterableSource
from flow_core.sources._items import ItemsSource
from flow_core.stages._closing import ITERATED
from flow_core.stages._codegen import Form
from flow_core.stages._program import Program
from flow_core.stages._shape import Shape, node_of
from flow_core.stages._template import Template, describe, line_of, refuse_coroutine_function
from flow_core.structure import boundary_of, moved, source_of

__all__ = ["Prepared", "Spliced", "prepare"]

T = TypeVar("T")
R = TypeVar("R")

_CONTAINERS: Final = (dict, list, tuple)
_HOLDERS: Final = (CellType, MethodType, partial)
_FEW: Final = 100
"""The search for a flow in a function's data stops after this number of objects."""

_INNER: Final = ".__wrapped__"

_PULL: Final = Form.PULL
_FORMS: Final = (("first", Form.CALL), ("list", Form.LIST))
"""The methods of `Prepared` that are one function each, if one loop does everything."""


@final
class OpenSource(IterableSource[Never]):
    """Stands for items that will be given later.

    Args:
        name: the name of the function that was prepared.
    """

    __slots__ = ("_name", "traced")

    def __init__(self, name: str) -> None:
        self._name = name
        self.traced = False
        """True when the function was called and its result is known."""

    @override
    def iterate(self) -> Iterator[Never]:
        if self.traced:
            raise FlowError(
                f"prepare({self._name}): its input is only a placeholder; call what prepare() "
                "gave with items, or its first(items); within the function, the input is used once"
            )
        raise FlowError(
            f"prepare({self._name}): there are no items while a flow is prepared; return the flow "
            "itself, and call first(items), list(items), last(items) or single(items) of what "
            "prepare() gives"
        )

    def __repr__(self) -> str:
        return f"input of {self._name}"


@final
class Prepared(Generic[T, R]):
    """The result of `prepare`: a flow for items that are given later.

    Called with items, or with a flow of items, it returns the flow of the results. So it can be
    used in place of a function of a flow, as in `Flow.pipe`, and in place of a function that
    returns a flow, as in ``flat_map``. When it is pickled, only the function that was prepared is
    pickled.

    Args:
        function: the function that was prepared.
        flow: the result of the function for an `OpenSource`.
    """

    def __init__(self, function: Callable[[Flow[T]], Flow[R]], flow: Flow[R]) -> None:
        update_wrapper(self, function)
        self.__name__ = _named(function)
        self.__wrapped__: Final = function
        self.flow: Final = flow
        """The prepared flow, whose source stands for the items."""
        self._shape: Shape | None = None
        """The shape of its stages (what flows of the same templates share), if one loop does
        everything."""
        self._args: tuple[object, ...] = ()
        if isinstance(flow._source, OpenSource) and flow._args is not None:
            node = flow._placed()
            if not node.deep and (shape := node.shaped()).single:
                self._shape, self._args = shape, flow._arguments()
                for name, form in _FORMS:
                    called = shape.called(form, flow, self._args)
                    called.__name__, called.__qualname__ = name, f"{self.__name__}.{name}"
                    vars(self)[name] = MethodType(called, self)

    def __call__(self, items: Convertible[T]) -> Flow[R]:
        """Return the flow of the results for `items`.

        Args:
            items: a flow, or anything that `from_` converts; a str gives its characters.
        """
        if type(items) in ITERATED:
            source = ItemsSource(once(cast("Iterable[T]", items), "from_iterable"))
            if self._shape is not None:
                return self.flow._over(source)
            given = Flow(source)
        else:
            given = as_flow(items, self.__name__)
        return _behind(given, self.flow)

    def first(self, items: Iterable[T]) -> R:
        """Return the first of the results for `items`, and cancel the rest; blocks.

        >>> import flow_core as flow
        >>> longest = flow.prepare(lambda words: words.map(len).max())
        >>> longest.first(["to", "be", "or", "not"])
        3

        Args:
            items: see `__call__`.

        Raises:
            NoItemError: if there is no result.
        """
        return self(items).first()  # unless all of it is one function, see __init__

    def list(self, items: Iterable[T]) -> builtins.list[R]:
        """Return all results for `items`; blocks.

        >>> import flow_core as flow
        >>> lengths = flow.prepare(lambda words: words.map(len))
        >>> lengths.list(["to", "be", "or", "not"])
        [2, 2, 2, 3]

        Args:
            items: see `__call__`.
        """
        return list(self(items))  # see first

    @cached_property
    def spliced(self) -> Spliced[R] | None:
        """Return the stages for the loop of an operator that calls this for each of its items.

        The result is None unless the stages make at most one result of each item, and do so
        independently of the items before.
        """
        shape = self._shape
        if shape is None or not all(one.alone and not one.expands for one in shape.templates):
            return None
        made: Spliced[R] = Spliced(self.flow, shape, self._args)
        return made if made.single else None

    def last(self, items: Iterable[T]) -> R:
        """Return the last of the results for `items`; blocks. See `Flow.last`.

        Args:
            items: see `__call__`.
        """
        return self(items).last()

    def single(self, items: Iterable[T]) -> R:
        """Return the only result for `items`; blocks. See `Flow.single`.

        Args:
            items: see `__call__`.
        """
        return self(items).single()

    def __reduce__(self) -> tuple[Any, ...]:  # Any: the declared result of object.__reduce__
        function = self.__wrapped__
        name = getattr(function, "__qualname__", "")
        if _found(function, name) is self:
            # As a decorator it has replaced the function under the name where picklers look for it.
            function.__qualname__ = name + _INNER
        return prepare, (function,)

    def __repr__(self) -> str:
        return f"prepare({self.__name__}: {self.flow!r})"


_OPENED: Final = Template(
    "opened",
    params=("plain", "most", "others"),
    on_item="""
    if type(x) in plain and len(x) <= most:
        for x in x:
            EMIT
    else:
        others.append(x)
        STOP
    """,
)


@final
class Spliced(Generic[R]):
    """The stages of a prepared function, in a loop over the items that it would be called with.

    Args:
        flow: the prepared flow.
        shape: the shape of its stages.
        args: the arguments of all stages.
    """

    def __init__(self, flow: Flow[R], shape: Shape, args: tuple[object, ...]) -> None:
        self._flow = flow
        self._args = args
        self._shape = node_of([_OPENED, *shape.templates]).shaped()

    @property
    def single(self) -> bool:
        """Return True if all of the stages fit into one loop."""
        return self._shape.single

    def iterate(
        self, outer: Iterator[Any], most: int, others: builtins.list[Any]
    ) -> Iterator[R]:  # Any: the type that it would be called with
        """Yield the results for the items of all inputs in `outer`, up to an unsuitable input.

        Args:
            outer: the inputs; it is not closed.
            most: how many items an input may have.
            others: gets the first input that is not a list, a tuple or the like, or that has more
                than `most` items; the loop ends then.
        """
        args = (ITERATED, most, others, *self._args)
        loop: Iterator[R] = self._shape.loop(_PULL)(outer, None, self, args)
        return loop

    def _staged(self) -> Program[Any, Any]:
        """Return the program that is run; see `Staged`.

        Its first stage, and the stage that checks for None, are not stages of the user.
        """
        stages = self._flow._stages()
        own = len(self._shape.templates) - len(stages)
        program = Program.of(self._shape, (ITERATED, 0, None, *self._args), ())
        program._whole = stages, -own
        return program


def prepare(function: Callable[[Flow[T]], Flow[R]]) -> Prepared[T, R]:
    """Assemble a flow once, to run it many times with different items. Also a decorator.

    >>> import flow_core as flow
    >>> @flow.prepare
    ... def longest(words: flow.Flow[str]) -> flow.Flow[str]:
    ...     return words.reduce(lambda a, b: a if len(a) >= len(b) else b)
    >>> longest.first(["to", "be", "or", "not"])
    'not'
    >>> sentences = flow.just("the cat sat", "a small step").map(str.split)
    >>> list(sentences.flat_map_iterable(longest))
    ['the', 'small']
    >>> list(flow.just("a", "bc").pipe(longest))
    ['bc']

    `prepare` calls the function at once, with a flow that has no items yet; the function applies
    operators to that flow, and returns the result. A run then neither calls the function again nor
    assembles anything; if there are only synchronous operators, a run is one call of a compiled
    loop.

    Args:
        function: called only once, with a flow that has no items yet, its input; returns the flow
            to run, which is that input with operators.

    Returns:
        An object that runs the prepared flow: its methods ``first``, ``list``, ``last`` and
        ``single`` take items; called with items or with a flow, the object returns a flow.

    Raises:
        TypeError: if `function` does not return a flow.
        FlowError: if the function asks its input for items; if the flow that it returns does not
            begin at its input; or if that flow uses the input more than once.
    """
    way = "it assembles a flow, which may have steps that await: map_concurrent(), for one"
    refuse_coroutine_function("prepare", function, way)
    name = _named(function)
    source = OpenSource(name)
    made: object = function(Flow(source))
    if not isinstance(made, Flow):
        raise TypeError(
            f"prepare({name}): it gives {describe(made)}, not a flow; return what the operators "
            "make of its argument"
        )
    start: Flow[Any] = made
    while (before := boundary_of(start)) is not None:
        start = before[0]
    source.traced = True
    other = _other_use(_behind(Flow(OpenSource(name)), made), source)
    constant = start._constant()
    empty = constant is not None and constant.call() is None  # as of take(0)
    if source_of(start) is not source and not (empty and other is None):
        raise FlowError(
            f"prepare({name}): it gives {made._told()}, which does not begin at its argument; put "
            "the operators behind that, and bring other flows in by merge(), zip() and their like"
        )
    if other is not None:
        place = line_of(other._site) or _place(function)
        where = f" at {place}" if place else ""
        raise FlowError(
            f"prepare({name}): its input is used a second time{where}; publish(lambda shared: …) "
            "gives it to several flows, or leave prepare() out: then each call makes its own "
            "flows"
        )
    return Prepared(function, made)


def _behind(flow: Flow[Any], prepared: Flow[R]) -> Flow[R]:
    """Put the prepared operators behind `flow`.

    `flow` replaces the `OpenSource`. If the prepared flow has another source, such as the source of
    take(0), that source stays.
    """
    return moved(prepared, lambda first: flow if isinstance(first._source, OpenSource) else first)


def _place(function: Callable[..., object]) -> str | None:
    code = getattr(function, "__code__", None)
    return line_of((code.co_filename, code.co_firstlineno)) if isinstance(code, CodeType) else None


def _other_use(flow: Flow[Any], source: OpenSource) -> Flow[Any] | None:
    """Return another flow over `source` that an operator or a user's function has kept, or None.

    Args:
        flow: the flow after it was put together again over another source.
        source: the source that the flow had before that.
    """
    known: set[int] = set()
    held: list[object] = [flow]
    while held:
        one = held.pop()
        if _is_over(one, source):
            return one
        if id(one) not in known:
            known.add(id(one))
            held += _held(one)
    return None


def _is_over(one: object, source: OpenSource) -> TypeGuard[Flow[Any]]:
    return isinstance(one, Flow) and one._source is source


def _held(one: object) -> list[Any]:  # Any: as get_referents returns them
    """Return what a function of the user, or an object of this library, refers to."""
    if isinstance(one, FunctionType):
        return [one.__closure__, one.__defaults__]  # not the globals of its module
    if isinstance(one, _CONTAINERS):
        return get_referents(one) if len(cast("Sized", one)) <= _FEW else []
    ours = not isinstance(one, type) and type(one).__module__.startswith("flow_")
    return get_referents(one) if ours or isinstance(one, _HOLDERS) else []


def _named(function: Callable[..., object]) -> str:
    return describe(function).removesuffix(_INNER)


def _found(function: Callable[..., object], name: str) -> object:
    """Return the object that picklers find under the name of a function."""
    found: object = modules.get(getattr(function, "__module__", None) or "")
    for part in name.split("."):
        found = getattr(found, part, None)
    return found
