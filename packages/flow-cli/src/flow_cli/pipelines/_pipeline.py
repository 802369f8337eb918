"""Loads a pipeline's file: looks up all names, checks all arguments, and only then runs it."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias, cast, final

from flow_cli.pipelines._arguments import Bound, Context, Given, Misfit, Nested, bind, fitted
from flow_cli.pipelines._document import (
    MISSING,
    Document,
    PipelineError,
    Place,
    Step,
    as_list,
    is_a,
    near,
    read,
    step_of,
    steps_of,
)
from flow_core.conversion import from_
from flow_core.engine import OPTIONS, Engine, EngineOptions
from flow_core.errors import PluginError, UnknownOperatorError, add_note
from flow_core.flow import Flow
from flow_core.operator import Operator
from flow_core.plugins import plugin_host
from flow_core.sinks import print_items
from flow_core.stages import line_of, user_site
from flow_core.structure import placed, stages_of

__all__ = ["Pipeline", "load", "load_document"]

_Applied: TypeAlias = Operator[object, object] | Callable[[Flow[object]], object]
"""The types of the arguments that `Flow.pipe` takes."""


@final
@dataclass(frozen=True)
class _Plan:
    """A source and its operators, looked up and checked."""

    source: Bound
    operators: Sequence[Bound]

    def flow(self) -> Flow[object]:
        """Assemble the flow."""
        made = _flow(_called(self.source), self.source.step.place, "is not a source")
        for bound in self.operators:
            place = bound.step.place
            operator = _called(bound)
            if bound.step.name and not isinstance(operator, Operator):
                raise PipelineError([f"{place}: it did not make an Operator, but {operator!r}"])
            known = len(stages_of(made))
            with _noted(place):
                piped = made.pipe(cast("Operator[object, object]", operator))
            made = _flow(piped, place, "can only be the sink, for no operator can follow")
            _locate(made, known, place)
        return made


@final
class Pipeline:
    """A flow with its sink and its engine, as a file describes them; checked, but not yet run.

    `load` makes one.

    Args:
        plan: makes the flow, not yet placed on an engine.
        sink: the sink; None to print the items.
        engine: the name of the engine, and its options.
        limit: the most items to take; None for all.
        description: the text in the file that describes the pipeline.
    """

    __slots__ = ("_engine", "_limit", "_options", "_place", "_plan", "_sink", "description")

    def __init__(
        self,
        plan: _Plan,
        sink: Bound | None,
        engine: tuple[str, EngineOptions],
        limit: int | None,
        description: str,
    ) -> None:
        self._plan = plan
        self._sink = sink
        self._engine, self._options = engine
        self._limit = limit
        self.description: Final = description

    @property
    def engine(self) -> str:
        """Return the name of the engine in the file; ``local`` if the file names none."""
        return self._engine

    @property
    def engine_options(self) -> EngineOptions:
        """Return the options of the engine in the file."""
        return self._options

    @property
    def has_sink(self) -> bool:
        """Return whether the file names a sink; without one, the items are printed."""
        return self._sink is not None

    def flow(self) -> Flow[object]:
        """Return the flow before the sink. Each call assembles it again, without running it.

        Raises:
            PipelineError: if the result of an operator is not a flow.
            Exception: an error that a source or an operator raises, with a note that names its
                table.
        """
        flow = self._plan.flow()
        return flow if self._limit is None else flow.take(self._limit)

    def sink(self) -> Operator[object, object]:
        """Return the sink: an operator that runs the flow when the flow is piped into it.

        Raises:
            PipelineError: if the result of the sink's factory is not an operator.
        """
        if self._sink is None:
            return print_items()
        made = _called(self._sink)
        if not isinstance(made, Operator):
            raise PipelineError(
                [f"{self._sink.step.place}: it did not make an Operator, but {made!r}"]
            )
        return cast("Operator[object, object]", made)

    def run(self, engine: Engine | None = None) -> object:
        """Run the pipeline to its end, in the calling thread.

        Args:
            engine: an open engine to run on; None to open the engine that the file names, and to
                close it at the end.

        Returns:
            The result of the sink; for the core's sinks, the number of items.

        Raises:
            Exception: the error with which the flow has failed.
        """
        flow, sink = self.flow(), self.sink()
        with contextlib.ExitStack() as stack:
            if engine is None:
                engine = stack.enter_context(plugin_host().engine(self._engine)(self._options))
            return engine.place(flow).pipe(sink)


def load(path: str | os.PathLike[str], parameters: Mapping[str, object] | None = None) -> Pipeline:
    """Return the pipeline of a file, after looking up all names and checking all arguments.

    While the file is loaded, its folder is first on ``sys.path``, so that it can name objects of
    modules beside it.

    Args:
        path: a TOML file; `flow_cli.pipelines` has an example.
        parameters: values for the file's ``[parameters]``. A relative path among these values
            begins in the current folder; a relative path in the file begins in the file's folder.

    Raises:
        PipelineError: if the file has errors; the message lists all of them, by file, table and
            key.
        OSError: if the file cannot be read.
    """
    return load_document(read(Path(path)), parameters or {})


def load_document(
    document: Document, parameters: Mapping[str, object], *, with_engine: bool = True
) -> Pipeline:
    """Do the same as `load`, for a file that was read already.

    Args:
        document: the tables of the file.
        parameters: values for its parameters.
        with_engine: whether the file's ``[engine]`` is used; False if the user has asked for
            another engine.
    """
    problems: list[str] = []
    with _importing(document.folder):
        loader = _Loader(document, _given(document, parameters, problems), problems)
        plan = loader.plan(document.source, document.operators)
        sink = None if document.sink is None else loader.bound(document.sink, "sink")
        engine = loader.engine(document.engine if with_engine else {})
        limit = loader.limit()
    if problems or plan is None:
        raise PipelineError(problems)
    return Pipeline(plan, sink, engine, limit, document.description)


@final
class _Loader:
    """Looks up the names, and collects the errors."""

    __slots__ = ("_context", "_document", "_problems")

    def __init__(self, document: Document, given: Mapping[str, Given], problems: list[str]) -> None:
        self._document = document
        self._problems = problems
        self._context = Context(document.folder, given, self._nested, self._named)

    def plan(self, source: Step | None, operators: Sequence[Step]) -> _Plan | None:
        first = None
        if source is not None:
            first = self.bound(source, "source") if source.name else self._object(source, from_)
        found = [
            self.bound(step, "operator") if step.name else self._object(step, _itself, _Applied)
            for step in operators
        ]
        good = [bound for bound in found if bound is not None]
        return None if first is None or len(good) < len(found) else _Plan(first, good)

    def bound(self, step: Step, category: str) -> Bound | None:
        host = plugin_host()
        factories: Mapping[str, Callable[[str], Callable[..., object]]] = {
            "source": host.source,
            "operator": host.operator,
            "sink": host.sink,
            "executor": host.executor,
            "clock": host.clock,
        }
        try:
            factory = factories[category](step.name)
        except (UnknownOperatorError, PluginError) as error:
            self._problems.append(f"{step.place} use: {error}")
            return None
        return bind(factory, step, self._context, self._problems)

    def engine(self, table: Mapping[str, object]) -> tuple[str, EngineOptions]:
        place = self._document.place("engine")
        found = {key: self._fitted(value, str, place, key) for key, value in table.items()}
        texts = {key: value for key, value in found.items() if isinstance(value, str)}
        on = texts.get("on", "local")
        host = plugin_host()
        try:
            host.engine(on)
        except (UnknownOperatorError, PluginError) as error:
            self._problems.append(f"{place} on: {error}")
        else:
            heeded = host.engines[on].spec.options
            self._problems += [
                f"{place} {key}: the engine {on!r} takes no {key}"
                for key in OPTIONS
                if key in texts and key not in heeded
            ]
        name = texts.get("name", f"flow run {self._document.file}")
        master, remote, spool = map(texts.get, OPTIONS)
        return on, EngineOptions(master, remote, spool, name)

    def limit(self) -> int | None:
        value = self._document.options.get("limit")
        place = self._document.place("options")
        limit = None if value is None else self._fitted(value, int, place, "limit")
        if isinstance(limit, int) and limit < 0:
            self._problems.append(f"{place} limit: {limit} is not a number of items, 0 or more")
        return limit if isinstance(limit, int) else None

    def _object(
        self, step: Step, make: Callable[[object], object], kind: object = object
    ) -> Bound | None:
        known = len(self._problems)
        value = self._fitted({"object": step.target}, kind, step.place, "object")
        return Bound(step, make, (value,), {}) if len(self._problems) == known else None

    def _nested(self, place: Place, table: Mapping[str, object]) -> Nested:
        """Check a flow among the arguments, and return it."""
        problems = self._problems
        known = ("source", "operators")
        problems += [
            f"{place} {key}: a flow among the arguments has no such key{near(key, known)}"
            for key in table
            if key not in known
        ]
        source = step_of(place.inside("source"), table.get("source"), "source", problems)
        values = as_list(table.get("operators", []))
        if values is None:
            problems.append(f"{place} operators: {table['operators']!r} is not a list")
        steps = steps_of(
            values or [],
            lambda number: place.inside(f"operators {number}"),
            problems,
        )
        plan = self.plan(source, steps)

        def make() -> Flow[object]:
            if plan is None:  # errors are among the problems, so that nothing is made
                raise PipelineError(problems)
            return plan.flow()

        return Nested(make)

    def _named(self, place: Place, table: Mapping[str, object], category: str) -> Nested:
        """Check an executor or a clock among the arguments, and return it."""
        problems = self._problems
        step = step_of(place, table, category, problems)
        bound = None if step is None else self.bound(step, category)

        def make() -> object:
            if bound is None:  # see _nested
                raise PipelineError(problems)
            return _called(bound)

        return Nested(make)

    def _fitted(self, value: object, kind: object, place: Place, key: str) -> object:
        try:
            return fitted(value, kind, self._context, place.inside(key))
        except Misfit as misfit:
            self._problems.append(f"{place} {key}: {misfit}")
            return None


def _given(
    document: Document, parameters: Mapping[str, object], problems: list[str]
) -> Mapping[str, Given]:
    """Return the value of each parameter, with the folder in which its relative paths begin."""
    place = document.place("parameters")
    problems += [
        f"{place} {name}: there is no such parameter{near(name, document.parameters)}"
        for name in parameters
        if name not in document.parameters
    ]
    given: dict[str, Given] = {}
    for name, declared in document.parameters.items():
        if name not in parameters:
            if declared.default is MISSING:
                kind = declared.kind.__name__
                problems.append(f"{place} {name}: it needs a value: -- --{name} {kind.upper()}")
            # Even without a value it is a parameter, so references to it are not reported as
            # errors, too.
            given[name] = Given(declared.default, document.folder)
            continue
        value = parameters[name]
        if not is_a(value, declared.kind):
            problems.append(f"{place} {name}: {value!r} is not of type {declared.kind.__name__}")
        given[name] = Given(value, Path.cwd())
    return given


@contextlib.contextmanager
def _importing(folder: Path) -> Generator[None, None, None]:
    """Make modules in this folder importable, as they are for a script in it."""
    before = list(sys.path)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path[:] = before


@contextlib.contextmanager
def _noted(place: Place) -> Generator[None, None, None]:
    try:
        yield
    except Exception as error:
        add_note(error, f"in {place}")
        raise


def _itself(value: object) -> object:
    return value


def _called(bound: Bound) -> object:
    with _noted(bound.step.place):
        return bound()


def _flow(made: object, place: Place, problem: str) -> Flow[object]:
    if not isinstance(made, Flow):
        # An object that is not a flow may have advice.
        advice: object = getattr(made, "advice", None)
        problem = advice if isinstance(advice, str) else f"it {problem}"
        raise PipelineError([f"{place}: it did not make a Flow, but {made!r}; {problem}"])
    return cast("Flow[object]", made)  # of any items


def _locate(flow: Flow[object], known: int, place: Place) -> None:
    """Set the place of the stages that an operator has added: it is in the pipeline's file."""
    if place.line is None:
        return
    # The caller of this library, where `Flow` thinks that they were assembled, except for those of
    # a user's own function.
    called = line_of(user_site())
    count = len(stages_of(flow))
    if called is not None:
        placed(flow, called, place.file, place.line, since=known if count > known else 0)
