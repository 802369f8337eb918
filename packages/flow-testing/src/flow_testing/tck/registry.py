"""The verifications, run for all operators and sources that a package registers.

A recipe makes a flow of a given number of items with an operator or a source. If an operator has a
`StageCase`, its recipe is made from that case and its results for lists. For all others, a line is
added to `OPERATORS` or `SOURCES`, or to `EXEMPT` with the reason. `without_recipe` names operators
and sources with neither; they fail the core's tests. Other packages do the same with their own
tables.
"""

from __future__ import annotations

import atexit
import re
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import Future
from contextlib import asynccontextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from types import MappingProxyType
from typing import Any, ClassVar, Final, final

import pytest
from typing_extensions import override

from flow_core import hooks, sources
from flow_core.boundaries import lift, serialize
from flow_core.demand import UNBOUNDED
from flow_core.errors import none_given
from flow_core.flow import Flow
from flow_core.homes import Home
from flow_core.plugins import PluginHost
from flow_core.protocols import CoreSubscriber, Fusion, Publisher, Subscriber, Subscription
from flow_core.sources import Emitter, files
from flow_core.stages import SingleSink
from flow_core.structure import stages_of
from flow_testing.cases import STAGE_CASES, OperatorCase, StageCase, Surroundings
from flow_testing.subscriber import TestSubscriber
from flow_testing.tck.operator import OperatorVerification
from flow_testing.tck.publisher import PublisherVerification
from flow_testing.tck.rules import Verification, needs_of
from flow_testing.tck.subscriber import SubscriberVerification

__all__ = [
    "EXEMPT",
    "OPERATORS",
    "SOURCES",
    "OperatorRecipe",
    "OperatorsAsSubscribersVerification",
    "OperatorsVerification",
    "SourceRecipe",
    "SourcesVerification",
    "operator_recipes",
    "recipes_of",
    "without_recipe",
]

# Any: the rules do not look at the items.
_AnyFlow = Flow[Any]


@final
@dataclass(frozen=True)
class OperatorRecipe:
    """A way to make a flow of a given number of items with an operator.

    Args:
        name: the name of the operator's record; for a second recipe, followed by a blank and a
            suffix.
        apply: puts the operator behind a flow of ints. If `upstream` is not given, the operator
            makes one item from each int.
        upstream: returns the ints from which the operator makes a given number of items.
        hidden: whether to test the operator also behind a source that is not an iterator.
        hidden_fusable: the fusion that the operator grants behind that source, if it is not the one
            in `facts`.
        facts: other attributes of `OperatorVerification`, such as ``max_items`` or ``quiet_s``.
        settle: see `Verification.settle`; None for its default.
    """

    name: str
    apply: Callable[[Flow[int]], _AnyFlow] = field(repr=False)
    upstream: Callable[[int], Iterable[int]] = field(default=range, repr=False)
    hidden: bool = True
    hidden_fusable: Fusion = Fusion.NONE
    facts: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)
    settle: Callable[[], object] | None = field(default=None, repr=False)


@final
@dataclass(frozen=True)
class SourceRecipe:
    """A way to make a flow of a given number of items with a source.

    Args:
        name: the name of the source's record; for a second recipe, followed by a blank and a
            suffix.
        create: makes a flow of a given number of items; None if the source has no items.
        fail: makes a flow that fails with a given error, without demand; None if the source cannot.
        facts: other attributes of `PublisherVerification`, such as ``max_items`` or ``quiet_s``.
        settle: see `Verification.settle`; None for its default.
    """

    name: str
    create: Callable[[int], Publisher[Any]] | None = field(default=None, repr=False)
    fail: Callable[[BaseException], Publisher[Any]] | None = field(default=None, repr=False)
    facts: Mapping[str, object] = field(default_factory=dict[str, object], repr=False)
    settle: Callable[[], object] | None = field(default=None, repr=False)


# -- the tables


def _raising(error: BaseException) -> Callable[[], Any]:
    def function() -> Any:
        raise error

    return function


def _counting_to(count: int) -> Callable[[int, SingleSink[int]], int]:
    def step(n: int, sink: SingleSink[int]) -> int:
        if n < count:
            sink.next(n)
        else:
            sink.complete()
        return n + 1

    return step


def _sending(count: int) -> Callable[[Emitter[int]], None]:
    def send(emitter: Emitter[int]) -> None:
        for n in range(count):
            emitter.next(n)
        emitter.complete()

    return send


def _future(result: int | None, error: BaseException | None = None) -> Future[int | None]:
    future = Future[int | None]()
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
    return future


@final
class _AsyncInts:
    """Ints for ``async for``, which start from the first one for each iteration."""

    def __init__(self, count: int) -> None:
        self._count = count

    async def __aiter__(self) -> AsyncIterator[int]:
        for n in range(self._count):
            yield n


@asynccontextmanager
async def _resource() -> AsyncGenerator[str]:
    yield "resource"


_IN_A_LOOP: Final[Mapping[str, object]] = MappingProxyType(
    {"synchronous": False, "quiet_s": 0.02, "chain": 2_000, "refcounted": False}
)
"""Settings for a source that uses a loop in a separate thread for each subscriber."""

_NEW: Final[Mapping[str, object]] = MappingProxyType({"deterministic": False})
"""Settings for a source whose items are made again for each subscriber."""


@final
class _Foreign(Publisher[Any]):
    """A publisher that is not a flow."""

    def __init__(self, flow: _AnyFlow) -> None:
        self._flow = flow

    @override
    def subscribe(self, subscriber: Subscriber[Any], /) -> None:
        self._flow.subscribe(subscriber)


@cache
def _folder() -> Path:
    """Return a folder that is removed when the process ends."""
    folder = TemporaryDirectory(prefix="flow-tck-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


def _file(lines: Iterable[str]) -> Path:
    """Return a new text file with these lines."""
    file = Path(mkdtemp(dir=_folder()), "lines.txt")
    file.write_text("".join(lines), "utf-8")
    return file


@final
class _Passing(CoreSubscriber[Any], Subscription):
    """A subscriber for `lift` that passes everything on, except fusion."""

    def __init__(self, downstream: CoreSubscriber[Any]) -> None:
        self._downstream: CoreSubscriber[Any] | None = downstream
        self._upstream: Subscription | None = None

    @override
    def home(self) -> Home | None:
        return None if self._downstream is None else self._downstream.home()

    @override
    def on_subscribe(self, subscription: Subscription, /) -> None:
        if subscription is None:
            raise none_given("on_subscribe")
        if self._upstream is not None or self._downstream is None:
            subscription.cancel()
            return
        self._upstream = subscription
        self._downstream.on_subscribe(self)

    @override
    def on_next(self, item: Any, /) -> None:
        if item is None:
            raise none_given("on_next")
        if self._downstream is None:
            hooks.drop_item(item)
        else:
            self._downstream.on_next(item)

    @override
    def on_error(self, error: BaseException, /) -> None:
        if error is None:
            raise none_given("on_error")
        downstream, self._downstream = self._downstream, None
        if downstream is None:
            hooks.drop_error(error)
        else:
            downstream.on_error(error)

    @override
    def on_complete(self) -> None:
        downstream, self._downstream = self._downstream, None
        if downstream is not None:
            downstream.on_complete()

    @override
    def request(self, n: int, /) -> None:
        if self._upstream is not None:
            self._upstream.request(n)

    @override
    def cancel(self) -> None:
        self._downstream = None
        if self._upstream is not None:
            self._upstream.cancel()


_VARIABLE: Final[ContextVar[int]] = ContextVar("flow_testing.tck")

OPERATORS: Final[Sequence[OperatorRecipe]] = (
    OperatorRecipe("hide", lambda flow: flow.hide(), hidden=False),
    OperatorRecipe("do_on_request", lambda flow: flow.do_on_request(bool), hidden=False),
    OperatorRecipe("context_capture", lambda flow: flow.context_capture()),
    OperatorRecipe("context_write", lambda flow: flow.context_write(_VARIABLE, 1)),
    OperatorRecipe("lift", lambda flow: flow.pipe(lift("passing", _Passing)), hidden=False),
    OperatorRecipe("serialize", lambda flow: flow.pipe(serialize())),
)
"""The recipes for the core's operators that have no `StageCase`. One line each."""

SOURCES: Final[Sequence[SourceRecipe]] = (
    SourceRecipe("range", sources.range),
    SourceRecipe("just", lambda count: sources.just(*range(count))),
    SourceRecipe("empty", lambda _: sources.empty(), facts={"max_items": 0}),
    SourceRecipe("from_iterable", lambda count: sources.from_iterable([*range(count)])),
    SourceRecipe(
        "from_iterable generator",
        lambda count: sources.from_iterable(n for n in range(count)),
        facts={"cold": False, "max_subscribers": 1},
    ),
    SourceRecipe(
        "from_callable",
        lambda count: sources.from_callable(lambda: count or None),
        lambda error: sources.from_callable(_raising(error)),
        facts={"max_items": 1},
    ),
    SourceRecipe(
        "defer",
        lambda count: sources.defer(lambda: sources.range(count)),
        lambda error: sources.defer(_raising(error)),
    ),
    SourceRecipe(
        "from_publisher",
        lambda count: sources.from_publisher(_Foreign(sources.range(count))),
        lambda error: sources.from_publisher(_Foreign(sources.error(error))),
    ),
    SourceRecipe("error", fail=sources.error),
    SourceRecipe(
        "read_lines",
        lambda count: files.read_lines(_file(f"{n}\n" for n in range(count))),
    ),
    SourceRecipe(
        "read_csv",
        lambda count: files.read_csv(_file(f"{n}\n" for n in ["n", *range(count)])),
    ),
    SourceRecipe(
        "read_json_lines",
        lambda count: files.read_json_lines(_file(f"{n}\n" for n in range(count))),
    ),
    SourceRecipe("repeat_value", lambda count: sources.repeat_value("again", count)),
    SourceRecipe(
        "repeat_callable", lambda count: sources.repeat_callable(object, count), facts=_NEW
    ),
    SourceRecipe("generate", lambda count: sources.generate(lambda: 0, _counting_to(count))),
    SourceRecipe(
        "using",
        lambda count: sources.using(nullcontext, lambda _: sources.range(count)),
        lambda error: sources.using(_raising(error), lambda _: sources.empty(), bool),
    ),
    SourceRecipe(
        "create",
        lambda count: sources.create(_sending(count), capacity=count + 1),
        lambda error: sources.create(lambda emitter: emitter.error(error)),
    ),
    SourceRecipe(
        "from_future",
        lambda count: sources.from_future(_future(count or None)),
        lambda error: sources.from_future(_future(None, error)),
        facts={"max_items": 1},
    ),
    SourceRecipe(
        "from_async_iterable",
        lambda count: sources.from_async_iterable(_AsyncInts(count)),
        facts=_IN_A_LOOP,
    ),
    SourceRecipe(
        "using_when",
        lambda count: sources.using_when(_resource, lambda _: sources.range(count)),
        facts=_IN_A_LOOP,
    ),
)
"""The recipes for the core's sources: one line each, or more for several ways to use a source."""

EXEMPT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "local": "puts nothing between a flow of this process and its subscriber",
        "never": "has neither items nor an end, which is what the rules are about",
    }
)
"""The core's operators and sources that need no recipe, each with the reason."""

FACTS: Final[Mapping[str, Mapping[str, object]]] = MappingProxyType(
    {
        "materialize": {"passes_errors": False},
        "on_error_complete": {"passes_errors": False},
        "on_error_map": {"passes_errors": False},
        "on_error_return": {"passes_errors": False},
        "zip_with_iterable": {"max_items": 4},  # the other iterable ends
    }
)
"""Facts that the `StageCase` of an operator does not show, by the operator's name. If an operator
does not fail with its upstream's error, it has ``passes_errors`` False here."""


# -- recipes out of cases

_STARTS: Final = ((0, 1), (0, 2), (1, 4), (4, 1), (1, 0), (0, 0))
"""The ints that are tried as input of a case: the first one, and the step between them."""

_WINDOW: Final = 25
_FAR: Final = 1_200


@final
@dataclass(frozen=True)
class _Fit:
    """Ints from which a case makes any number of items, within limits."""

    start: int
    step: int
    lengths: Mapping[int, int]
    """The smallest number of ints from which each number of items is made, as far as these were
    counted."""
    period: int
    """The number of further ints that make one more item; 0 if none do."""

    @property
    def most(self) -> int:
        return UNBOUNDED if self.period else max(self.lengths)

    def ints(self, count: int) -> Iterable[int]:
        """Return the ints from which the case makes `count` items."""
        known = max(self.lengths)
        length = self.lengths.get(count, self.lengths[known] + (count - known) * self.period)
        if self.step:
            return range(self.start, self.start + length * self.step, self.step)
        return [self.start] * length

    def worth(self) -> tuple[bool, int, int]:
        """Return how well these ints serve: one item from each, many items, few ints at least."""
        return self.period == 1, self.most, -min(self.lengths)


def _fit(case: StageCase, start: int, step: int) -> _Fit | None:
    """Return the fit of a case for ints of this kind; None if some number of items never comes."""

    def made(length: int) -> int:
        return len(case.model([start + n * step for n in range(length)]))

    lengths: dict[int, int] = {}
    before = made(0)
    for length in range(_WINDOW):
        count = made(length)
        if not 0 <= count - before <= 1:
            return None
        lengths.setdefault(count, length)
        before = count
    known = sorted(lengths.items())
    # The last two numbers of items tell the period, and a far number checks it.
    period = known[-1][1] - known[-2][1] if len(known) > 2 else 0
    fit = _Fit(start, step, lengths, period)
    length = lengths[max(lengths)] + _FAR * period
    return fit if period and made(length) == max(lengths) + _FAR else _Fit(start, step, lengths, 0)


def _recipe(name: str, cases: Iterable[StageCase]) -> OperatorRecipe | None:
    """Return the recipe made from the case that serves best."""
    fits = [
        (fit, case)
        for case in cases
        for start, step in _STARTS
        if (fit := _fit(case, start, step)) is not None
    ]
    if not fits:
        return None
    fit, case = max(fits, key=lambda found: found[0].worth())
    facts: dict[str, object] = {"min_items": min(fit.lengths), "max_items": fit.most}
    stages = stages_of(case.apply(sources.empty()))
    if any(callable(value) for stage in stages for value in stage.args):
        facts["fusable"] = Fusion.SYNC  # but not across threads, where user code would move (F39)
    return OperatorRecipe(name, case.apply, fit.ints, facts=facts | dict(FACTS.get(name, {})))


def _shape(recipe: OperatorRecipe) -> object:
    """Return what decides how stages work with an upstream that is not an iterator.

    Stages of one shape share everything but their own text, so only one of them is tried with such
    an upstream.
    """
    templates = [stage.template for stage in stages_of(recipe.apply(sources.empty()))]
    if not templates:
        return recipe.name
    return tuple((t.drops, t.expands, t.absorbs, t.emits_at_end) for t in templates)


def operator_recipes(
    distribution: str = "flow-core",
    table: Iterable[OperatorRecipe] = OPERATORS,
    cases: Iterable[StageCase] = STAGE_CASES,
) -> list[OperatorRecipe]:
    """Return a recipe for each operator of `distribution` that has a case or a line in `table`.

    Args:
        distribution: the distribution that registers the operators.
        table: the recipes that are written by hand; they count before `cases`.
        cases: examples; the name of each begins with an operator's name.
    """
    recipes = list(table)
    written = {_operator_of(recipe.name) for recipe in recipes}
    by_name: dict[str, list[StageCase]] = {}
    shapes: set[object] = set()
    for case in cases:
        by_name.setdefault(_operator_of(case.name), []).append(case)
    for name in _registered(distribution)[0]:
        if name not in written and name in by_name:
            made = _recipe(name, by_name[name])
            if made is not None:
                shape = _shape(made)
                recipes.append(replace(made, hidden=shape not in shapes))
                shapes.add(shape)
    return recipes


def recipes_of(
    cases: Iterable[OperatorCase],
    at: Callable[[OperatorCase], Surroundings],
    settle: Callable[[], object] | None = None,
) -> list[OperatorRecipe]:
    """Return the recipes of all cases whose items can be counted.

    Args:
        cases: cases of operators, and of sources of other flows.
        at: the executor, the clock and the loop that the cases use.
        settle: for cases in an event loop; see `Verification.settle`.
    """

    def made(case: OperatorCase) -> OperatorRecipe:
        around = at(case)
        return OperatorRecipe(
            case.name,
            lambda upstream: case.apply(upstream, around),
            facts=case.facts,
            settle=settle if "loop" in case.kinds else None,
        )

    return [made(case) for case in cases if "uncounted" not in case.kinds]


def without_recipe(
    distribution: str,
    recipes: Iterable[OperatorRecipe | SourceRecipe],
    exempt: Iterable[str] = (),
) -> list[str]:
    """Return the operators and sources of `distribution` that no recipe checks.

    Args:
        distribution: the distribution that registers them.
        recipes: the recipes.
        exempt: the names of operators and sources that need no recipe.
    """
    known = {_operator_of(recipe.name) for recipe in recipes} | set(exempt)
    return sorted(name for kind in _registered(distribution) for name in kind if name not in known)


def _registered(distribution: str) -> tuple[list[str], list[str]]:
    """Return the names of the operators and of the sources of `distribution`."""
    host = PluginHost()
    return (
        [n for n, found in host.operators.items() if found.plugin.distribution == distribution],
        [n for n, found in host.sources.items() if found.plugin.distribution == distribution],
    )


def _operator_of(name: str) -> str:
    match = re.match(r"\w+", name)
    return name if match is None else match.group()


# -- classes of tests


class _ByRecipe(Verification):
    """Repeats each test for each recipe to which the test applies.

    Attributes:
        known_bugs: the reasons why a test must fail today, by ``test_name[recipe]``, in which ``*``
            and ``?`` are wildcards.
    """

    quiet_s: float = 0
    known_bugs: ClassVar[Mapping[str, str]] = {}
    _settle: Callable[[], object] | None = None

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Called by pytest for each test that it collects; `metafunc` describes the test."""
        test = metafunc.function.__name__
        parameters: list[Any] = []  # Any: pytest does not type the result of pytest.param
        for name, use in self.variants():
            tried = type(self)()
            use(tried)
            if tried.lacks(needs_of(test)) is not None:
                continue
            reasons = [
                reason
                for pattern, reason in self.known_bugs.items()
                if fnmatchcase(f"{test}({name})", pattern.replace("[", "(").replace("]", ")"))
            ]
            marks = [pytest.mark.xfail(reason=reasons[0], strict=True)] if reasons else []
            parameters.append(pytest.param(use, id=name, marks=marks))
        if not parameters:
            nothing = pytest.mark.skip(reason="the rule says nothing about any of the recipes")
            parameters.append(pytest.param(None, id="none", marks=nothing))
        metafunc.parametrize("_recipe", parameters, indirect=True)

    @pytest.fixture(autouse=True)
    def _recipe(self, request: pytest.FixtureRequest) -> None:
        request.param(self)

    def variants(self) -> Iterator[tuple[str, Callable[[Any], None]]]:
        """Return the names of the recipes, and functions that put a recipe into a test object."""
        raise NotImplementedError

    @override
    def settle(self) -> None:
        if self._settle is None:
            super().settle()
        else:
            self._settle()

    def _take(self, facts: Mapping[str, object], settle: Callable[[], object] | None) -> None:
        for name, value in facts.items():
            if not hasattr(type(self), name):
                raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
            setattr(self, name, value)
        self._settle = settle


class OperatorsVerification(_ByRecipe, OperatorVerification[Any]):
    """The rules of `OperatorVerification`, checked for each of `recipes`.

    >>> class TestOurs(OperatorsVerification):
    ...     recipes = [OperatorRecipe("map", lambda flow: flow.map(abs))]
    """

    recipes: ClassVar[Iterable[OperatorRecipe]] = ()
    chain: int = 2_000  # a small number, as there are many recipes
    refcounted: bool = True
    _operator: OperatorRecipe
    _hides: bool = False

    def variants(self) -> Iterator[tuple[str, Callable[[Any], None]]]:
        """Return each recipe twice: as it is, and behind a source that is not an iterator."""
        for recipe in self.recipes:
            for hides in (False, True) if recipe.hidden else (False,):
                yield (
                    f"{recipe.name} behind a hidden source" if hides else recipe.name,
                    partial(OperatorsVerification.use, recipe=recipe, hides=hides),
                )

    def use(self, recipe: OperatorRecipe, hides: bool) -> None:
        """Check `recipe` from now on; if `hides`, behind a hidden source."""
        self._operator, self._hides = recipe, hides
        self._take(recipe.facts, recipe.settle)
        if hides and "fusable" in recipe.facts:
            self.fusable = recipe.hidden_fusable

    @override
    def apply(self, flow: Flow[int]) -> _AnyFlow:
        return self._operator.apply(flow.hide() if self._hides else flow)

    @override
    def upstream(self, count: int) -> Flow[int]:
        return sources.from_iterable(self._operator.upstream(count))


@final
class _Captured(Publisher[int]):
    """An upstream that keeps the subscriber it gets, so that the test can call it."""

    subscriber: Subscriber[int] | None = None

    @override
    def subscribe(self, subscriber: Subscriber[int], /) -> None:
        self.subscriber = subscriber


class OperatorsAsSubscribersVerification(_ByRecipe, SubscriberVerification[int]):
    """The rules of `SubscriberVerification`, checked for the operator of each of `recipes`.

    The subscriber behind the operator requests everything.
    """

    recipes: ClassVar[Iterable[OperatorRecipe]] = ()
    _operator: OperatorRecipe

    def variants(self) -> Iterator[tuple[str, Callable[[Any], None]]]:
        """Return each recipe."""
        for recipe in self.recipes:
            yield recipe.name, partial(OperatorsAsSubscribersVerification.use, recipe=recipe)

    def use(self, recipe: OperatorRecipe) -> None:
        """Check `recipe` from now on."""
        self._operator = recipe
        known = {name: fact for name, fact in recipe.facts.items() if hasattr(type(self), name)}
        self._take(known, recipe.settle)

    @override
    def create_subscriber(self) -> Subscriber[int]:
        upstream = _Captured()
        self._operator.apply(Flow(upstream)).subscribe(TestSubscriber[Any]())
        if upstream.subscriber is None:
            raise AssertionError(f"{self._operator.name} does not subscribe to its upstream")
        return upstream.subscriber


class SourcesVerification(_ByRecipe, PublisherVerification[Any]):
    """The rules of `PublisherVerification`, checked for each of `recipes`."""

    recipes: ClassVar[Iterable[SourceRecipe]] = ()
    chain: int = 2_000  # a small number, as there are many recipes
    refcounted: bool = True
    failure: BaseException | None = LookupError("the source's error")
    _source: SourceRecipe

    def variants(self) -> Iterator[tuple[str, Callable[[Any], None]]]:
        """Return each recipe."""
        for recipe in self.recipes:
            yield recipe.name, partial(SourcesVerification.use, recipe=recipe)

    def use(self, recipe: SourceRecipe) -> None:
        """Check `recipe` from now on."""
        self._source = recipe
        self._take(recipe.facts, recipe.settle)
        if recipe.create is None:
            self.min_items, self.max_items = 0, -1

    @override
    def create_publisher(self, count: int) -> Publisher[Any]:
        create = self._source.create
        if create is None:
            raise LookupError(f"{self._source.name} has no items")
        return create(count)

    @override
    def create_failed_publisher(self) -> Publisher[Any] | None:
        fail = self._source.fail
        return None if fail is None or self.failure is None else fail(self.failure)
