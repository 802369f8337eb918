"""Several neighbouring stages, compiled into one loop.

A `Program` is a run of stages between two boundaries. Its loop is generated from the stages'
templates, in the form that is needed where it runs, and cached by shape; the user's functions are
arguments of the generated function, so that a thousand flows of one shape share one code object.

========  ==========================  ==========================================================
form      where items come from       where they go
========  ==========================  ==========================================================
`PULL`    an iterator                 to a loop: ``for x in flow``, executors of a cluster
`FIRST`   an iterator                 the first is returned, to `Flow.first`; or None
`CALL`    a list, a str, …            the first is returned, to `Prepared.first`; or None
`POLL`    an iterator                 to `QueueSubscription.poll` (SYNC fusion); heeds cancel
`PUSH`    an iterator                 to ``on_next``, as far as the demand goes; `PUSH_ALL` does
                                      not count it, for a subscriber that has requested everything
`FEED`    ``send(item)``, one by one  to ``on_next``, as far as the demand goes
`RECEIVE` a call for each             to ``on_next``; nothing waits for demand. `RECEIVE_ALL`, for a
                                      subscriber that has requested everything, does not count it
========  ==========================  ==========================================================

The generated source is in `linecache`, so that tracebacks and debuggers show it. Each of its lines
knows its stage, so that finding the stage of an error costs nothing until it is raised. Profilers,
which may look from another process and then see no source, distinguish the loops by the functions'
names, which are those of the stages.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import CodeType, GeneratorType
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast, final

from flow_core.demand import UNBOUNDED
from flow_core.protocols import ConditionalSubscriber, CoreSubscriber
from flow_core.stages._blame import Raised, note_stage, owner_of
from flow_core.stages._closing import (
    PLAIN,
    FeedGate,
    Gate,
    close_iterator,
    close_part,
    closer_of,
    exhausted,
)
from flow_core.stages._codegen import HEAD, TAIL, Form
from flow_core.stages._exclusive import exclusive
from flow_core.stages._filtering import CHECK
from flow_core.stages._shape import ROOT, Shape, node_of
from flow_core.stages._template import Stage

__all__ = ["Program", "generated_source"]

T_contra = TypeVar("T_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)

# Any: a program is a run of stages whose types need only fit each other, and the generated loop has
# no types; `Program[T, R]` is the typed interface.
_AnyStage = Stage[Any, Any]

Receiving: TypeAlias = tuple[
    Callable[[Any], int | None], Callable[[bool], bool], Callable[[], object] | None
]
"""The three functions that `Program.receive` returns."""

_Sites: TypeAlias = tuple[CodeType | str | int | None, ...]
"""The two parts of each stage's `Site`, one after the other: a tuple per stage would take 56 bytes
more."""

_PUSH: Final = Form.PUSH
_PUSH_ALL: Final = Form.PUSH_ALL
_PUSH_IF: Final = Form.PUSH_IF
"""A constant, because it is looked up whenever a flow runs; the enum's own lookup takes several
times as long."""


@final
class Program(Generic[T_contra, R_co]):
    """Neighbouring stages, compiled when the loop is first needed. Pickled as its stages alone.

    Args:
        stages: the stages, upstream first; there may be none.
    """

    __slots__ = (
        "_segments",
        "_sites",
        "_stages",
        "_whole",
        "args",
        "demand_cap",
        "limit",
        "shape",
    )

    def __init__(self, stages: Iterable[_AnyStage]) -> None:
        stages = tuple(stages)
        self._stages: tuple[_AnyStage, ...] | None = stages
        self._sites: _Sites = ()
        if len(stages) == 1:  # separately: half the cost of two comprehensions
            stage = stages[0]
            self._begin(ROOT.then(stage.template).shaped(), stage.args)
        else:
            node = node_of([stage.template for stage in stages])
            self._begin(node.shaped(), tuple([arg for stage in stages for arg in stage.args]))

    @classmethod
    def of(
        cls, shape: Shape, args: tuple[object, ...], sites: _Sites
    ) -> Program[Any, Any]:  # Any: items of any type
        """Return the program of a flow; its stages are made only when they are needed.

        The program does not keep the flow alive, since the flow's source may have items that are
        not needed any more.

        Args:
            shape: the shape of all stages.
            args: the arguments of all stages.
            sites: two values for each stage, those of its `Site`; none for the stage that checks
                for None.
        """
        made: Program[Any, Any] = object.__new__(cls)
        made._stages = None
        made._sites = sites
        made._begin(shape, args)
        return made

    def _begin(self, shape: Shape, args: tuple[object, ...]) -> None:
        self.shape = shape
        """The part that all programs with these templates share."""
        self.args = args
        """The arguments of all stages."""
        self.limit = self.demand_cap = UNBOUNDED
        """The most items of the upstream that can be used, if a leading ``take`` limits them; and
        the most items that can come out."""
        if shape.caps:
            self.limit, self.demand_cap = shape.limits(args)
        self._segments: tuple[Program[Any, Any], ...] | None = None
        self._whole: tuple[tuple[_AnyStage, ...], int] | None = None
        """For a segment of a program: all stages of the program, and how many of them come before
        the segment. Otherwise None."""

    @property
    def stages(self) -> tuple[_AnyStage, ...]:
        """The stages, upstream first."""
        stages = self._stages
        if stages is None:
            stages = self._stages = self._written()
        return stages

    def _written(self) -> tuple[_AnyStage, ...]:
        """The stages; if the compiler has added the first one, it has no place."""
        stages: list[_AnyStage] = []
        templates = self.shape.templates
        sites = iter((None, 0) * (len(templates) - len(self._sites) // 2) + self._sites)
        first = 0
        for template in templates:
            end = first + len(template.params)
            code, at = next(sites), next(sites)
            site: Any = None if code is None else (code, at)  # Any: see `_Sites`
            stages.append(Stage.at(template, self.args[first:end], site))
            first = end
        return tuple(stages)

    @property
    def calls_user_code(self) -> bool:
        """True if a stage calls user code, so that the loop must stay in its thread."""
        return self.shape.calls_user_code

    def __reduce__(self) -> tuple[Any, ...]:  # Any: the declared result of object.__reduce__
        return (Program, (self.stages,))

    def __repr__(self) -> str:
        return " | ".join(map(repr, self.stages)) or "(no stage)"

    @property
    def segments(self) -> tuple[Program[Any, Any], ...]:  # Any: the types between segments
        """The parts that fit into one function each; Python limits how deep a function may nest."""
        if self._segments is None:
            bounds = self.shape.bounds
            if len(bounds) == 1:
                return (self,)  # not kept: it would be a cycle
            ends = (*bounds[1:], None)
            parts: list[Program[Any, Any]] = []
            for start, end in zip(bounds, ends, strict=True):
                part: Program[Any, Any] = Program(self.stages[start:end])
                part._whole = self.stages, start
                parts.append(part)
            self._segments = tuple(parts)
        return self._segments

    def _staged(self) -> Program[T_contra, R_co]:
        """See `Staged`."""
        return self

    def placed(self, index: int) -> tuple[int, int]:
        """Return the position of a stage among all stages of the flow, and how many there are.

        The stage that checks for None is not counted, because the compiler has added it.

        Args:
            index: the position of the stage in this program.
        """
        stages, before = self._whole or (self.stages, 0)
        checks = stages[0].template == CHECK  # the compiler's own
        return index + before + 1 - checks, len(stages) - checks

    def iterate(self, source: Iterator[T_contra]) -> Iterator[R_co]:
        """Return the items of `source` after all stages, as an iterator.

        A generator given as `source` is closed at the end.

        If a stage fails, the error is raised where the consumer takes the next item, with a note
        that names the stage.
        """
        if not self.shape.templates:
            return cast("Iterator[R_co]", source)  # no stage changes the type: R is T then
        if self.shape.closes and len(self.segments) > 1:
            return _pulled(self, source)
        items: Iterator[Any] = source  # Any: between segments
        for part in self.segments:
            loop = part.shape.loop(Form.PULL)
            items = loop(items, closer_of(items), part, part.args)
        return items

    def first(self, source: Iterator[T_contra]) -> R_co | None:
        """Return the first item that `iterate` would yield, or None; close all that is open.

        Args:
            source: the items; if this is a generator, it is closed.
        """
        if self.shape.templates and self.shape.single:
            loop = self.shape.loop(Form.FIRST)
            found: Any = loop(source, closer_of(source), self, self.args)  # Any: not a generator
            return cast("R_co | None", found)
        items = self.iterate(source)
        try:
            return next(items, None)
        finally:
            close_iterator(items)

    def poll(self, source: Iterator[T_contra], gate: Gate) -> GeneratorType[R_co, None, None]:
        """Do as `iterate`, but end the loop soon after ``gate.cancelled`` was set.

        ``gate.close()`` runs what the stages do at the end.
        """
        loop, _ = _chained(self.segments, source, gate)
        # `segments` is never empty, so the last loop made a generator.
        return exclusive(cast("GeneratorType[R_co, None, None]", loop))

    def push(
        self,
        source: Iterator[T_contra],
        downstream: CoreSubscriber[R_co],
        gate: Gate,
        demand: int,
    ) -> GeneratorType[int, int, None]:
        """Return a loop that pushes: it yields `PAUSED` without demand, and gets demand by send.

        Args:
            source: the items; if this is a generator, it is closed at the end.
            downstream: gets each item; a conditional one answers whether the item uses up demand.
            gate: its flag stops the loop. Its `close` runs what the stages do at the end.
            demand: how many items may be pushed at first; `UNBOUNDED` if everything was requested.
        """
        on_next: Callable[[R_co], object]
        if isinstance(downstream, ConditionalSubscriber):
            form, on_next = _PUSH_IF, downstream.try_on_next
        else:
            form, on_next = _PUSH, downstream.receiver()
        if demand == UNBOUNDED:
            form = _PUSH_ALL
        shape = self.shape
        if shape.single:
            try:
                loop = shape._loops[form]
            except KeyError:
                loop = shape._compiled(form)
            close = None if type(source) in PLAIN else closer_of(source)
            return loop(source, close, on_next, gate, demand, self, self.args)
        items, close = _chained(self.segments[:-1], source, gate)
        last = self.segments[-1]
        return last.shape.loop(form)(items, close, on_next, gate, demand, last, last.args)

    def begins(self, source: Iterator[T_contra]) -> bool:
        """Return whether a loop that pushes may start without demand, because it sends nothing.

        A loop without an `on_start` does not check the demand before its first item, and the loops
        of earlier segments may make an item even if `source` has none.
        """
        *before, last = self.segments
        if last.shape.starts:
            return True
        return exhausted(source) and not any(
            template.emits_at_start or template.emits_at_end
            for part in before
            for template in part.shape.templates
        )

    def feed(
        self, on_next: Callable[[R_co], object], gate: FeedGate, demand: int, *, conditional: bool
    ) -> GeneratorType[int, Any, None]:  # Any: items and grants of demand are both sent in
        """Return a loop that gets items by ``send``, and pushes; for one-segment programs only.

        When the loop needs the next item (or `END`), it yields the demand that is left; when it
        needs demand, it yields `PAUSED`. ``next`` starts it.

        Args:
            on_next: called with each item; if `conditional`, its result says whether the item uses
                up demand.
            gate: its flag stops the loop. Its `close` runs what the stages do at the end.
            demand: how many items may be pushed at first.
            conditional: whether the result of `on_next` counts.
        """
        form = Form.FEED_IF if conditional else Form.FEED
        loop = self.shape.loop(form)
        return exclusive(loop(on_next, gate, demand, self, self.args))

    def receive(
        self,
        downstream: CoreSubscriber[R_co],
        gate: Gate,
        demand: int,
        *,
        beside: Callable[[Any], object],
        raised: Callable[[BaseException], object],
        stopped: Callable[[], object],
        attend: Callable[[], object],
    ) -> Receiving:
        """Return a function that takes one item per call; see `receives`.

        It does not check for None.

        If the function is called from within itself, or while it is halted, it passes the item to
        `beside`; such items are handled when `attend` is called.

        Args:
            downstream: gets each item.
            gate: its flag stops stages that emit several items.
            demand: how many items may come out; the function counts this down for each of them, and
                returns the rest. It does not count if this is `UNBOUNDED`, which the subscriber has
                requested then.
            beside: called with each item that comes while the function runs or is halted; its
                result is returned.
            raised: called with the error, if a stage or the subscriber raises one.
            stopped: called when a stage has ended the flow, after the stages have emitted what they
                still hold.
            attend: called when the function has run, if it was halted meanwhile.

        Returns:
            Three functions: the one that takes the items; one that halts it or lets it continue,
            and returns whether it runs right now; and one that emits what the stages emit at the
            end, or None if they emit nothing.
        """
        on_next: Callable[[R_co], object]
        if isinstance(downstream, ConditionalSubscriber):
            form, on_next = Form.RECEIVE_IF, downstream.try_on_next
        else:
            form, on_next = Form.RECEIVE, downstream.receiver()
        if demand == UNBOUNDED:
            form = Form.RECEIVE_ALL
        bind: Any = self.shape.loop(form)  # Any: not a loop, but a function that makes functions
        made: Receiving = bind(
            on_next, gate, demand, beside, raised, stopped, attend, self, self.args
        )
        return made

    def receives(self, *, everything: bool) -> bool:
        """Return whether `receive` can be used.

        It cannot be used if a stage handles the start, errors or the close, or has to wait for
        demand; nor, if everything was requested, when dropped items have to be requested again.

        Args:
            everything: whether the subscriber has requested everything.
        """
        shape = self.shape
        if shape.hears:
            return False
        if everything:
            return shape.accounts or self.demand_cap == UNBOUNDED
        return not (shape.accounts or shape.absorbs)

    def blame(self, error: BaseException) -> Raised:
        """Return where an `error` that came out of one of this program's loops was raised.

        If a stage has raised it, the error gets a note with the stage, and the place where the
        stage was assembled.
        """
        traces = [error.__traceback__]
        if isinstance(error, RuntimeError) and isinstance(error.__cause__, StopIteration):
            # PEP 479: if the loop turned it into a RuntimeError, only the cause passed.
            traces.insert(0, error.__cause__.__traceback__)
        for start in traces:
            trace = start
            # Each segment pulls from the one before it, so the frame of the last one is the
            # outermost.
            for part in reversed(self.segments):
                owner, trace = owner_of(trace, part)
                if owner == TAIL:
                    return Raised.DOWNSTREAM
                if owner != HEAD:
                    note_stage(error, part, owner)
                    return Raised.STAGE
        return Raised.UPSTREAM


def _pulled(program: Program[Any, R_co], source: Iterator[Any]) -> Iterator[R_co]:
    """Iterate like `Program.iterate`, where several loops have stages with code for the end."""
    gate = Gate()
    loop = program.poll(source, gate)
    try:
        yield from loop
    finally:
        try:
            loop.close()
        finally:
            gate.close()


def _chained(
    parts: tuple[Program[Any, Any], ...], source: Iterator[Any], gate: Gate
) -> tuple[Iterator[Any], Callable[[], object] | None]:  # Any: the types between segments
    """Return a loop in `POLL` form for each part, chained.

    Also return the function that closes the last of them.
    """
    items, close, closes = source, closer_of(source), False
    for part in parts:
        made = part.shape.loop(Form.POLL)
        loop = made(items, close, gate, part, part.args)
        closes = closes or part.shape.closes
        close = partial(close_part, loop, gate) if closes else loop.close
        items = loop
    return items, close


def generated_source(form: Form, program: Program[Any, Any]) -> str:  # Any: any program
    """Return the source text of `program`'s loop in this form, for documentation and debugging."""
    parts: list[str] = []
    for part in program.segments:
        loop = part.shape.loop(form)
        parts.append("".join(linecache.getlines(loop.__code__.co_filename)))
    return "\n".join(parts)
