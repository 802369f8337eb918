"""Stages made into one loop.

A `Program` is a run of stages between two boundaries. Its loop is generated from the stages'
templates, in the form that the place needs, and cached by shape; the user's functions are arguments
of the generated function, so that a thousand flows of one shape share one code object.

========  ==========================  ==========================================================
form      where items come from       where they go
========  ==========================  ==========================================================
`PULL`    an iterator                 to whoever iterates: ``for x in flow``, executors of a cluster
`POLL`    an iterator                 to `QueueSubscription.poll` (SYNC fusion); heeds cancel
`PUSH`    an iterator                 to ``on_next``, as far as the demand goes
`FEED`    ``send(item)``, one by one  to ``on_next``, as far as the demand goes
========  ==========================  ==========================================================

The generated source is in `linecache`, so that tracebacks and debuggers show it; each of its lines
knows the stage it was made for, so that an error is traced to its stage at no cost until it fails.
Profilers, which may look from another process and then see no source, tell the loops apart by the
functions' names, which are those of the stages.
"""

from __future__ import annotations

import enum
import linecache
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial
from inspect import CO_GENERATOR
from itertools import count, repeat
from operator import length_hint
from threading import Lock
from types import CodeType, GeneratorType, TracebackType
from typing import Any, Final, Generic, Protocol, TypeVar, cast, final
from weakref import finalize

from flow_core import hooks
from flow_core.demand import UNBOUNDED
from flow_core.errors import NoneItemError, add_note, is_fatal, throw_if_fatal
from flow_core.protocols import ConditionalSubscriber, CoreSubscriber
from flow_core.stages.exclusive import exclusive
from flow_core.stages.filtering import CHECK
from flow_core.stages.template import SLOT, UNSET, Lines, Stage, Template

__all__ = ["END", "PAUSED", "Form", "Gate", "Program", "Raised"]

T_contra = TypeVar("T_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)

# Any: a program is a run of stages whose types only fit each other, and the generated loop is
# untyped by nature; `Program[T, R]` is the typed face.
_AnyStage = Stage[Any, Any]


class _Loop(Protocol):
    """A generated function."""

    __code__: CodeType

    def __call__(self, *args: Any) -> GeneratorType[Any, Any, None]: ...


PAUSED: Final = -1
"""What a pushing loop yields when it wants demand before it can go on."""

END: Final = object()
"""What is sent to a `FEED` loop after the last item."""

_MAX_DEPTH: Final = 60
_MAX_LOOPS: Final = 8
_MAX_STAGES: Final = 1000
_MAX_CACHED: Final = 512


@final
class Failing(Iterator[Any]):  # Any: of no item
    """What a source that could not even begin gives: its error, for which nobody needs demand.

    Args:
        error: raised instead of the first item.
    """

    __slots__ = ("_error",)

    def __init__(self, error: BaseException) -> None:
        self._error: BaseException | None = error

    def __next__(self) -> Any:
        error, self._error = self._error, None
        if error is None:
            raise StopIteration
        try:
            raise error
        finally:
            del error  # or it would be part of a cycle, with the frame in its traceback

    def __length_hint__(self) -> int:
        return 0


_PLAIN: Final = frozenset(
    type(iterator)
    for iterator in (
        *(iter([]), iter(()), iter(range(0)), iter(range(2**70)), iter(""), iter(b"")),
        *(iter(deque[object]()), iter(set[object]()), iter(dict[object, object]())),
        *(repeat(0), Failing(StopIteration())),
    )
)


class Form(enum.Enum):
    """How a generated loop gets its items and gives them on."""

    PULL = "pull"
    POLL = "poll"
    PUSH = "push"
    PUSH_IF = "push, conditional"
    FEED = "feed"
    FEED_IF = "feed, conditional"

    # A loop is looked up by its form whenever a flow runs; members are singletons.
    __hash__ = object.__hash__


_PUSH: Final = Form.PUSH
_PUSH_IF: Final = Form.PUSH_IF
"""Looked up whenever a flow runs; an enum's own lookup takes several times as long."""


class Raised(enum.Enum):
    """Who raised an error that came out of a generated loop."""

    UPSTREAM = "the source"
    STAGE = "a stage"
    DOWNSTREAM = "the subscriber"


class Gate:
    """What a running loop looks at and others may change; it holds no reference to either."""

    __slots__ = ("cancelled", "closers")

    def __init__(self) -> None:
        self.cancelled = False
        self.closers: list[Callable[[], object]] | None = None
        """What the stages want to be called when it is over, downstream first."""

    def opened(self) -> list[Callable[[], object]]:
        """`closers`, to be added to by a loop that starts."""
        if self.closers is None:
            self.closers = []
        return self.closers

    def close(self) -> None:
        """Call `closers`, each once, whichever threads come; what they raise is dropped."""
        if self.closers is not None:
            close_all(self.closers)


@final
class FeedGate(Gate):
    """A `Gate` for a loop that is fed, item by item."""

    __slots__ = ("done", "ending")

    def __init__(self) -> None:
        super().__init__()
        self.done = False
        """The upstream has completed, and no item waits to be fed."""
        self.ending = False
        """The loop wants no more items, and what it emits now is the stages' rest."""


_HEAD: Final = -1
_TAIL: Final = -2
_AGAIN: Final = -3
"""Lines that raise an error again which has its owner already."""


@final
class Shape:
    """What all programs of the same templates have in common: facts, and compiled loops.

    Args:
        templates: the templates, upstream first.
    """

    __slots__ = (
        "__weakref__",
        "_loops",
        "absorbs",
        "accounts",
        "bounds",
        "calls_user_code",
        "caps",
        "closes",
        "ends",
        "files",
        "handles",
        "single",
        "starts",
        "stops",
        "templates",
    )

    def __init__(self, templates: tuple[Template, ...]) -> None:
        self.templates = templates
        self._loops: dict[Form, _Loop] = {}
        self.files: list[str] = []
        """The names under which `linecache` knows the loops."""
        rendered = [template.lines for template in templates]
        self.calls_user_code = any(lines.calls_user_code for lines in rendered)
        """Whether the loop must not move to another thread."""
        self.accounts = any(
            lines.expands or lines.emits_at_end or lines.emits_at_start for lines in rendered
        )
        """Whether downstream's demand differs from upstream's: items expand, or come at the end."""
        self.stops = any(lines.stops for lines in rendered)
        """Whether a stage may end the flow before its upstream does."""
        self.starts = any(lines.on_start for lines in rendered)
        """Whether a stage has something to do before the first item."""
        self.ends = any(lines.on_end for lines in rendered)
        """Whether a stage has something to do when the flow completes, if only to fail."""
        self.handles = any(lines.on_error for lines in rendered)
        """Whether a stage wants to know what the upstream fails with."""
        self.closes = any(lines.on_close for lines in rendered)
        """Whether a stage wants to know when it is over, however it ends."""
        absorbs, one_to_one = False, True
        caps: list[tuple[int, str | int, bool]] = []
        bounds = [0]
        depth = loops = 0
        for index, (template, lines) in enumerate(zip(templates, rendered, strict=True)):
            absorbs = lines.absorbs or (absorbs and not lines.emits_at_start)
            if template.at_most:
                caps.append((index, template.at_most, one_to_one))
            one_to_one = one_to_one and not (lines.expands or lines.drops or lines.emits_at_start)
            depth += lines.nesting
            loops += lines.loops
            if depth > _MAX_DEPTH or loops > _MAX_LOOPS or index - bounds[-1] >= _MAX_STAGES:
                bounds.append(index)
                depth, loops = lines.nesting, lines.loops
        self.absorbs = absorbs
        """Whether nothing is emitted before the upstream completes (or a stage stops)."""
        self.caps = caps
        """Stages that bound how many items pass: which, by how many, and whether of the source."""
        self.bounds = bounds
        """Where the parts begin that each fit into one function."""
        self.single = len(bounds) == 1
        """Whether all of it fits into one function."""

    def limits(self, stages: tuple[_AnyStage, ...]) -> tuple[int, int]:
        """How many items of the upstream can be used at most, and how many can come out."""
        limit = cap = UNBOUNDED
        for index, at_most, one_to_one in self.caps:
            stage = stages[index]
            count: object = at_most
            if isinstance(count, str):
                count = stage.args[stage.template.params.index(count)]
            if isinstance(count, int):
                cap = min(cap, count)
                limit = min(limit, count) if one_to_one else limit
        return limit, cap

    def loop(self, form: Form) -> _Loop:
        """The generated function of this form."""
        try:
            return self._loops[form]
        except KeyError:
            return self._compiled(form)

    def _compiled(self, form: Form) -> _Loop:
        out = _Generator(form, self.templates).write()
        source = "".join(out.text)
        names = "|".join(template.name for template in self.templates[:8]) or "no stage"
        if len(self.templates) > 8:
            names += f"|… {len(self.templates)} stages"
        filename = f"<flow {form.value}: {names} #{next(_serial)}>"
        module = compile(source, filename, "exec", dont_inherit=True)
        namespace: dict[str, Any] = dict(_NAMESPACE)  # Any: exec's own type
        for index, template in enumerate(self.templates):
            for helper in template.helpers:
                namespace[f"{helper.__name__}_{index}"] = helper
        exec(module, namespace)
        loop: _Loop = namespace["flow"]
        loop.__code__ = loop.__code__.replace(co_name=names, co_qualname=names)
        # Threads may compile the same at once; the first one wins, and the other stays unused.
        _owners[filename] = (tuple(out.owners), self.templates)
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        self.files.append(filename)
        return self._loops.setdefault(form, loop)


def _shape(key: tuple[int, ...], stages: tuple[_AnyStage, ...]) -> Shape:
    """The one shape of stages with these templates, which had none when it was looked for."""
    made = Shape(tuple([stage.template for stage in stages]))
    with _caching:
        shape = _shapes.setdefault(key, made)
        if len(_shapes) > _MAX_CACHED:
            _shapes.pop(next(iter(_shapes)))
    if shape is made:
        # Its loops are known for as long as there is a program that may run them.
        finalize(made, _forget, made.files)
    return shape


def _forget(files: list[str]) -> None:
    for filename in files:
        _owners.pop(filename, None)
        linecache.cache.pop(filename, None)


@final
class _Part(tuple[_AnyStage, ...]):  # noqa: SLOT001 - which a tuple cannot have
    """The stages of one loop of several: a note on an error counts those of all."""

    start: int
    """How many are before them."""
    whole: tuple[_AnyStage, ...]


@final
class Program(Generic[T_contra, R_co]):
    """A run of stages, compiled when it is first needed. Pickles as its stages alone.

    Args:
        stages: the stages, upstream first; may be none.
    """

    __slots__ = ("_segments", "args", "demand_cap", "limit", "shape", "stages")

    def __init__(self, stages: Iterable[_AnyStage]) -> None:
        self.stages = stages = tuple(stages)
        self.args: tuple[object, ...]
        """The arguments of all stages."""
        key: tuple[int, ...]
        if len(stages) == 1:  # by itself: half of what two comprehensions cost
            stage = stages[0]
            self.args = stage.args
            key = (id(stage.template),)
        else:
            self.args = tuple([arg for stage in stages for arg in stage.args])
            key = tuple([id(stage.template) for stage in stages])
        found: Shape | None
        # By index: without the GIL, `get` of 3.13 locks the dict twice, and waits for itself.
        try:
            found = _shapes[key]
        except KeyError:
            found = None
        self.shape = shape = found or _shape(key, stages)
        """What it has in common with all programs of these templates."""
        self.limit = self.demand_cap = UNBOUNDED
        """The most items of the upstream that can be used, if a leading ``take`` says so; and the
        most that can come out."""
        if shape.caps:
            self.limit, self.demand_cap = shape.limits(stages)
        self._segments: tuple[Program[Any, Any], ...] | None = None

    @property
    def calls_user_code(self) -> bool:
        """Whether the loop must not move to another thread."""
        return self.shape.calls_user_code

    def __reduce__(self) -> tuple[Any, ...]:  # Any: what object.__reduce__ is declared to return
        return (Program, (self.stages,))

    def __repr__(self) -> str:
        return " | ".join(map(repr, self.stages)) or "(no stage)"

    @property
    def segments(self) -> tuple[Program[Any, Any], ...]:  # Any: the types between segments
        """Parts that each fit into one function; Python bounds how deep a function may nest."""
        if self._segments is None:
            bounds = self.shape.bounds
            if len(bounds) == 1:
                return (self,)  # not kept: it would be a cycle
            ends = (*bounds[1:], None)
            parts: list[Program[Any, Any]] = []
            for start, end in zip(bounds, ends, strict=True):
                part: Program[Any, Any] = Program(self.stages[start:end])
                part.stages = stages = _Part(part.stages)
                stages.start, stages.whole = start, self.stages
                parts.append(part)
            self._segments = tuple(parts)
        return self._segments

    def iterate(self, source: Iterator[T_contra]) -> Iterator[R_co]:
        """Items through all stages, pulled. A generator given as `source` is closed at the end.

        A fatal or failing stage raises where the consumer asks for the next item; the error has a
        note that names the stage.
        """
        if not self.stages:
            return cast("Iterator[R_co]", source)  # no stage changes the type: R is T then
        if self.shape.closes and len(self.segments) > 1:
            return _pulled(self, source)
        items: Iterator[Any] = source  # Any: between segments
        for part in self.segments:
            loop = part.shape.loop(Form.PULL)
            items = loop(items, _closer(items), part.stages, part.args)
        return items

    def poll(self, source: Iterator[T_contra], gate: Gate) -> GeneratorType[R_co, None, None]:
        """As `iterate`, but the loop ends soon when ``gate.cancelled`` is set.

        What the stages do when it is over is left to ``gate.close()``.
        """
        loop, _ = _chained(self.segments, source, gate)
        # `segments` is never empty, so that the last loop made a generator.
        return exclusive(cast("GeneratorType[R_co, None, None]", loop))

    def push(
        self,
        source: Iterator[T_contra],
        downstream: CoreSubscriber[R_co],
        gate: Gate,
        demand: int,
    ) -> GeneratorType[int, int, None]:
        """A loop that pushes: it yields `PAUSED` when `demand` is used up, and takes more by send.

        Args:
            source: what is pulled; a generator is closed at the end.
            downstream: gets each item; a conditional one answers whether it counts.
            gate: what stops the loop. What the stages do when it is over is left to its `close`.
            demand: items that may be pushed at first.
        """
        on_next: Callable[[R_co], object]
        if isinstance(downstream, ConditionalSubscriber):
            form, on_next = _PUSH_IF, downstream.try_on_next
        else:
            form, on_next = _PUSH, downstream.receiver()
        shape = self.shape
        if shape.single:
            try:
                loop = shape._loops[form]
            except KeyError:
                loop = shape._compiled(form)
            close = None if type(source) in _PLAIN else _closer(source)
            return loop(source, close, on_next, gate, demand, self.stages, self.args)
        items, close = _chained(self.segments[:-1], source, gate)
        last = self.segments[-1]
        return last.shape.loop(form)(items, close, on_next, gate, demand, last.stages, last.args)

    def begins(self, source: Iterator[T_contra]) -> bool:
        """Whether a loop that pushes may be started without demand: it then sends nothing yet.

        A loop without an `on_start` does not look for demand before its first item, which the loops
        before it may have even if `source` has none.
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
        """A loop that takes items by send and pushes. Only for a program of one segment.

        It yields the demand that is left when it wants the next item (or `END`), and `PAUSED`
        when it wants demand. It is started by ``next``.

        Args:
            on_next: gets each item; with `conditional` it answers whether the item counts.
            gate: what stops the loop. What the stages do when it is over is left to its `close`.
            demand: items that may be pushed at first.
            conditional: whether `on_next` answers.
        """
        form = Form.FEED_IF if conditional else Form.FEED
        loop = self.shape.loop(form)
        return exclusive(loop(on_next, gate, demand, self.stages, self.args))

    def blame(self, error: BaseException) -> Raised:
        """Who raised `error`, which came out of one of this program's loops.

        If a stage did, the error gets a note that says which, and where it was assembled.
        """
        traces = [error.__traceback__]
        if isinstance(error, RuntimeError) and isinstance(error.__cause__, StopIteration):
            # PEP 479: if it was the loop that turned it into a RuntimeError, only the cause passed.
            traces.insert(0, error.__cause__.__traceback__)
        for start in traces:
            trace = start
            for part in reversed(self.segments):
                owner, trace = _owner(trace, part.stages)
                if owner == _TAIL:
                    return Raised.DOWNSTREAM
                if owner != _HEAD:
                    _note(error, part.stages, owner)
                    return Raised.STAGE
        return Raised.UPSTREAM


def exhausted(iterator: object) -> bool:
    """Whether it is certain, without asking for an item, that `iterator` has no more."""
    return type(iterator) in _PLAIN and length_hint(iterator, 1) == 0


def close_iterator(iterator: object) -> None:
    """Close a generator, whose ``finally`` blocks then run (X09); other iterators stay open."""
    close = _closer(iterator)
    if close is not None:
        close()


def close_loop(loop: GeneratorType[Any, Any, None], gate: Gate) -> None:  # Any: of any form
    """Close a loop of a cancelled flow that does not run right now.

    One that never ran is started first, so that its stages hear of the end; the gate keeps it from
    asking for an item.
    """
    if gate.cancelled and loop.gi_frame is not None and not loop.gi_suspended:
        next(loop, None)
    loop.close()


def overlapped(error: BaseException) -> bool:
    """Whether `error` says that a loop runs in another thread, so that it could not be entered.

    What comes from within a loop has passed a frame of it. Whether the loop runs right now says
    nothing: it may have paused since.
    """
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_flags & CO_GENERATOR:
            return False
        trace = trace.tb_next
    return isinstance(error, ValueError)


def _close_part(loop: GeneratorType[Any, Any, None], gate: Gate) -> None:  # Any: see close_loop
    """Close the loop that another one of the same program is fed by; it does not run right now.

    One that never ran is started first, so that its stages hear of the end.
    """
    if loop.gi_frame is not None and not loop.gi_suspended and not loop.gi_running:
        # Whoever cancels just now is too late: the loop that closes this one has ended.
        cancelled, gate.cancelled = gate.cancelled, True
        try:
            next(loop, None)
        finally:
            gate.cancelled = cancelled
    loop.close()


def _pulled(program: Program[Any, R_co], source: Iterator[Any]) -> Iterator[R_co]:
    """`Program.iterate` where stages of several loops want to hear of the end."""
    gate = Gate()
    loop = program.poll(source, gate)
    try:
        yield from loop
    finally:
        try:
            loop.close()
        finally:
            gate.close()


def close_all(closers: list[Callable[[], object]]) -> None:
    """Call and forget each of `closers`, in order; what they raise goes to the hook."""
    while closers:
        try:
            close = closers.pop(0)
        except IndexError:  # another thread closes, too
            return
        try:
            close()
        except BaseException as error:
            throw_if_fatal(error)
            hooks.drop_error(error)


def _closer(iterator: object) -> Callable[[], object] | None:
    if type(iterator) in _PLAIN:
        return None
    if type(iterator) is GeneratorType or isinstance(iterator, Generator):
        return iterator.close
    return None


def _chained(
    parts: tuple[Program[Any, Any], ...], source: Iterator[Any], gate: Gate
) -> tuple[Iterator[Any], Callable[[], object] | None]:  # Any: between segments
    """A loop of `POLL` form for each part, and what closes the last of them."""
    items, close, closes = source, _closer(source), False
    for part in parts:
        made = part.shape.loop(Form.POLL)
        loop = made(items, close, gate, part.stages, part.args)
        closes = closes or part.shape.closes
        close = partial(_close_part, loop, gate) if closes else loop.close
        items = loop
    return items, close


def _none_item(stage: _AnyStage) -> NoneItemError:
    who = str(stage.args[0]) if stage.template is CHECK else repr(stage)
    return NoneItemError(
        f"{who} gave None, which is not an item (§2.13); leave such items out, or stand for them "
        "with an object of your own"
    )


def _annotate(error: Exception, stages: tuple[_AnyStage, ...]) -> None:
    """Called by a pulled loop that fails: say in a note which stage it was.

    Raises:
        RuntimeError: for a StopIteration, which Python would make one of, too, without a note.
    """
    owner, _ = _owner(error.__traceback__, stages)
    shown = _caught(error)
    if owner >= 0:
        _note(shown, stages, owner)
    if shown is not error:
        raise shown


def _owner(
    trace: TracebackType | None, stages: tuple[_AnyStage, ...]
) -> tuple[int, TracebackType | None]:
    """The stage whose line an error passed in the loop of `stages`, and the trace from there on.

    It is `_HEAD`, with the whole trace, if the error did not pass that loop.
    """
    inner = trace
    while inner is not None:
        owners = _owners.get(inner.tb_frame.f_code.co_filename)
        if owners is not None and _is_shape(owners[1], stages):
            owner = owners[0][inner.tb_lineno - 1]
            if owner != _AGAIN:
                return owner, inner.tb_next
        inner = inner.tb_next
    return _HEAD, trace


def _is_shape(templates: tuple[Template, ...], stages: tuple[_AnyStage, ...]) -> bool:
    return len(templates) == len(stages) and all(
        template is stage.template for template, stage in zip(templates, stages, strict=True)
    )


def _caught(error: BaseException) -> BaseException:
    """What the stages see of an error: as it would come out of a generator (PEP 479)."""
    if not isinstance(error, StopIteration):
        return error
    shown = RuntimeError("a function of the flow raised StopIteration")
    shown.__cause__ = error
    return shown.with_traceback(error.__traceback__)


def _handler(
    error: BaseException, stages: tuple[_AnyStage, ...], handlers: tuple[int, ...], last: int
) -> int:
    """The first of the `handlers` that `error` meets on its way down after the `last`, or -1."""
    if is_fatal(error):
        return -1
    owner, _ = _owner(error.__traceback__, stages)
    if owner == _TAIL:
        return -1
    if owner >= 0:
        _note(error, stages, owner)
    return next((index for index in handlers if index > max(owner, last)), -1)


def _note(error: BaseException, stages: tuple[_AnyStage, ...], index: int) -> None:
    stage = stages[index]
    where = stage.assembled_at
    if isinstance(stages, _Part):
        index += stages.start
        stages = stages.whole
    checks = stages[0].template == CHECK  # the compiler's own, which nobody counts
    note = f"in stage {index + 1 - checks} of {len(stages) - checks}: {stage!r}"
    if checks and index == 0:
        return
    if where is not None:
        note += f", assembled at {where}"
    add_note(error, note)


_shapes: dict[tuple[int, ...], Shape] = {}
_owners: dict[str, tuple[tuple[int, ...], tuple[Template, ...]]] = {}
"""By the file of a loop: the stage that each line was made for, and their templates."""
_caching: Final = Lock()


@final
class _Writer:
    """Lines of generated source, each with the index of the stage that it was made for.

    Args:
        names: of the stages.
    """

    __slots__ = ("_names", "owners", "text")

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self.text: list[str] = []
        self.owners: list[int] = []

    def put(self, depth: int, line: str, owner: int = _HEAD) -> None:
        if line.startswith("while ") and line != "while True:":
            condition = line.removeprefix("while ").removesuffix(":")
            self.put(depth, "while True:", owner)
            depth, line = depth + 1, f"if not ({condition}): break"
        stage = f"  # {owner + 1} {self._names[owner]}" if owner >= 0 else ""
        self.text.append(f"{' ' * depth}{line}{stage}\n")
        self.owners.append(owner)

    def end_loops(self) -> None:
        """End each loop's body with a simple statement.

        Ctrl-C may raise where a loop jumps back. If that is the jump of a condition, CPython 3.13
        takes it to be outside of the `try` around the loop, which then closes nothing; 3.14 still
        does so for an ``if`` at the end of the body. For ``while`` see `put`.
        """
        depths = [len(line) - len(line.lstrip()) for line in self.text]
        for start in reversed(range(len(depths))):
            depth = depths[start]
            if not self.text[start].lstrip().startswith(("for ", "while ")):
                continue
            rest = range(start + 1, len(depths))
            end = next((index for index in rest if depths[index] <= depth), len(depths))
            if depths[end - 1] > depth + 1:
                depths.insert(end, depth + 1)
                self.text.insert(end, f"{' ' * (depth + 1)}pass\n")
                self.owners.insert(end, _HEAD)


@final
class _Generator:
    """Writes one function."""

    __slots__ = (
        "_after",
        "_closing",
        "_emits",
        "_form",
        "_handlers",
        "_out",
        "_over",
        "_parts",
        "_pushes",
        "_rendered",
        "_stops",
    )

    def __init__(self, form: Form, templates: tuple[Template, ...]) -> None:
        self._form = form
        self._rendered = [template.lines for template in templates]
        self._pushes = form not in (Form.PULL, Form.POLL)
        self._out = _Writer([" ".join(template.name.split()) for template in templates])
        self._emits = not any(template.absorbs for template in templates)
        """Whether the loop that is being written reaches the subscriber, so that demand matters."""
        self._stops = max((i for i, lines in enumerate(self._rendered) if lines.stops), default=-1)
        """The last stage that may stop; a loop needs to look for a stop only before it."""
        self._handlers = [i for i, lines in enumerate(self._rendered) if lines.on_error]
        self._closing = [i for i, lines in enumerate(self._rendered) if lines.on_close]
        self._parts = [template.params for template in templates]
        self._after: list[tuple[int, Lines]] = []
        """What the stages around the present place do after their EMIT, even if one stops there."""
        resumed = next((i for i, lines in enumerate(self._rendered) if _after(lines.on_item)), None)
        self._over = resumed is not None and any(
            resumed < handler < self._stops for handler in self._handlers
        )
        """Whether that may fail, and be handled before the stage that has stopped."""

    def write(self) -> _Writer:
        out = self._out
        head = {
            Form.PULL: "def flow(it, close, stages, args):",
            Form.POLL: "def flow(it, close, gate, stages, args):",
            Form.PUSH: "def flow(it, close, on_next, gate, n, stages, args):",
            Form.PUSH_IF: "def flow(it, close, on_next, gate, n, stages, args):",
            Form.FEED: "def flow(on_next, gate, n, stages, args):",
            Form.FEED_IF: "def flow(on_next, gate, n, stages, args):",
        }[self._form]
        out.put(0, head)
        names = [f"{param}_{index}" for index, params in enumerate(self._parts) for param in params]
        if names:
            out.put(1, f"({', '.join(names)},) = args")
        if self._stops >= 0 or self._handlers:
            out.put(1, "stop = over = -1" if self._over else "stop = -1")
        if self._closing:
            pulled = self._form is Form.PULL
            out.put(1, "closers = []" if pulled else "closers = gate.opened()")
        fed = self._form in (Form.FEED, Form.FEED_IF)
        # Also where nothing is left to do: from outside of any `try`, CPython 3.13 lets `close` end
        # a generator that another thread has just resumed, which then goes on.
        out.put(1, "try:")
        if self._handlers:
            self._handled(2)
        else:
            self._run(2)
        if not self._pushes:
            if _TAIL not in out.owners:  # no stage emits, but a generator it must be
                out.put(2, "yield from ()")
            out.put(1, "except Exception as error:")
            out.put(2, "annotate(error, stages)")
            out.put(2, "raise")
        out.put(1, "finally:")
        if self._handlers:
            # An error refers to this frame by its traceback: nothing here may refer to it.
            out.put(2, "x = error = failure = None")
        if self._closing and self._form is Form.PULL:
            out.put(2, "close_all(closers)")
        if not fed:
            out.put(2, "if close is not None:")
            out.put(3, "close()")
        elif not self._handlers:
            out.put(2, "pass")
        out.end_loops()
        return out

    def _states(self, depth: int) -> None:
        """What the stages begin with and end with, downstream first.

        If one fails, the stages after it are there to hear of it, and those before it never were.
        """
        out = self._out
        for index in reversed(range(len(self._rendered))):
            lines = self._rendered[index]
            for line in lines.state:
                out.put(depth, line.replace(SLOT, f"_{index}"), index)
            if not lines.on_close:
                continue
            # No name of a template ends in a digit that no underscore is before.
            out.put(depth, f"def closer{index}():", index)
            if lines.closing_names:
                names = ", ".join(lines.closing_names).replace(SLOT, f"_{index}")
                out.put(depth + 1, f"nonlocal {names}")
            self._put_lines(index, depth + 1, lines.on_close)
            out.put(depth, f"closers.append(closer{index})")

    def _handled(self, depth: int) -> None:
        """The loop, in which a failure is a jump to the next stage that handles errors."""
        out = self._out
        out.put(depth, "at = -1")
        out.put(depth, "while True:")
        out.put(depth + 1, "try:")
        out.put(depth + 2, "if at < 0:")
        self._run(depth + 3, ends=False)
        for index in self._handlers:
            out.put(depth + 2, f"elif at == {index}:")
            out.put(depth + 3, "for _ in (None,):")
            out.put(depth + 4, "error = failure")
            lines = self._rendered[index].on_error
            self._block(index, depth + 4, lines, at_end=index + 1, handles=True)
            out.put(depth + 3, f"if stop <= {index}:")
            out.put(depth + 4, "raise failure", _AGAIN)
        self._ends(depth + 2)
        out.put(depth + 2, "break")
        out.put(depth + 1, "except BaseException as caught_error:")
        out.put(depth + 2, "failure = caught(caught_error)")
        out.put(depth + 2, f"at = handler(failure, stages, {tuple(self._handlers)}, at)")
        out.put(depth + 2, "if at < 0:")
        out.put(depth + 3, "raise failure", _AGAIN)

    def _run(self, depth: int, *, ends: bool = True) -> None:
        """Start, take items until there are no more, and end."""
        out = self._out
        self._states(depth)
        started = self._starts(depth)
        at = depth
        if started and self._stops >= 0:
            out.put(depth, "if stop < 0:")
            at += 1
        if self._form in (Form.FEED, Form.FEED_IF):
            self._fed(at)
        else:
            if started or self._closing or self._form is Form.POLL:
                self._pause(at, "it")  # whoever closes a loop that never ran starts it first
            out.put(at, "for x in it:")
            self._body(0, at + 1)
            self._pause(at + 1, "it")
        if ends:
            self._ends(depth)

    def _starts(self, depth: int) -> bool:
        """What the stages do before the first item, downstream first."""
        out, emits = self._out, self._emits
        started = False
        for index in reversed(range(len(self._rendered))):
            lines = self._rendered[index].on_start
            if not lines:
                continue
            at = depth
            if self._stops >= 0:
                if started:
                    out.put(at, "if stop < 0:")
                    at += 1
                out.put(at, "for _ in (None,):", index)
                at += 1
            self._block(index, at, lines, at_end=index)
            started = True
        self._emits = emits
        return started

    def _fed(self, depth: int) -> None:
        out = self._out
        if self._emits:
            out.put(depth, "while not n and not gate.done:")
            out.put(depth + 1, "n = yield -1")
        out.put(depth, "x = yield n")
        out.put(depth, "while x is not END:")
        self._body(0, depth + 1)
        if self._emits:
            out.put(depth + 1, "while gate.cancelled or (not n and not gate.done):")
            out.put(depth + 2, "n = yield -1")
        out.put(depth + 1, "x = None")  # while it waits it holds nothing
        out.put(depth + 1, "x = yield n")

    def _body(self, first: int, depth: int) -> None:
        """The stages from `first` on, each in the place of its predecessor's EMIT."""
        after: list[tuple[int, int, Lines]] = []
        for index in range(first, len(self._rendered)):
            lines = self._rendered[index].on_item
            emit = _emit(lines)
            self._put_lines(index, depth, lines[:emit])
            if emit is None:
                break
            after.append((index, depth, lines[emit + 1 :]))
            self._after.append((index, _rest(lines, emit)))
            depth += lines[emit][0]
        else:
            self._tail(depth)
        for index, outer, lines_after in reversed(after):
            self._after.pop()
            self._put_lines(index, outer, lines_after)

    def _block(
        self, index: int, depth: int, lines: Lines, *, at_end: int, handles: bool = False
    ) -> None:
        """Lines outside of the loop over items; what they emit meets the later stages."""
        out = self._out
        emit = _emit(lines)
        self._put_lines(index, depth, lines[:emit], at_end=at_end)
        if emit is None:
            return
        inner = depth + lines[emit][0]
        if handles and self._over:
            out.put(inner, f"if over > {index}:", index)
            out.put(inner + 1, "stop = over", index)
            out.put(inner + 1, "break", index)
        self._emits = not any(part.absorbs for part in self._rendered[index + 1 :])
        if self._pushes and self._emits:
            out.put(inner, "while not n or gate.cancelled:")
            out.put(inner + 1, "n = yield -1")
        elif self._form is Form.POLL and at_end == index:
            # Who cancels before the first poll starts the loop, to close it.
            out.put(inner, "if gate.cancelled:")
            out.put(inner + 1, "return")
        self._body(index + 1, inner)
        self._put_lines(index, depth, lines[emit + 1 :], at_end=at_end)

    def _put_lines(
        self, index: int, depth: int, lines: Lines, *, at_end: int | None = None
    ) -> None:
        """The lines of a stage. `at_end`: what `stop` means outside of the loop over items."""
        out = self._out
        first = index if at_end is None else at_end
        for inner, template_line in lines:
            line = template_line.replace(SLOT, f"_{index}")
            if line == "NOT_NONE":
                out.put(depth + inner, "if x is None:", index)
                out.put(depth + inner + 1, f"raise none_item(stages[{index}])", index)
            elif line == "STOP":
                if self._over and at_end is None:
                    out.put(depth + inner, f"over = {first}", index)
                for earlier, lines_after in reversed(self._after):
                    self._put_lines(earlier, depth + inner, lines_after)
                stop = f"max(over, {first})" if self._over and at_end is not None else f"{first}"
                out.put(depth + inner, f"stop = {stop}", index)
                out.put(depth + inner, "break", index)
            elif line == "LEAVE":
                # A stage in the loop has stopped. At the end, a stop by this very stage is past.
                if self._stops >= first or self._rendered[index].recovers:
                    out.put(depth + inner, f"if stop >= {first}:", index)
                    out.put(depth + inner + 1, "break", index)
            elif line.startswith("PAUSE "):
                self._pause(depth + inner, line.removeprefix("PAUSE "))
            else:
                out.put(depth + inner, line, index)

    def _tail(self, depth: int) -> None:
        out = self._out
        if not self._pushes:
            out.put(depth, "yield x", _TAIL)
        elif self._form in (Form.PUSH_IF, Form.FEED_IF):
            out.put(depth, "if on_next(x):", _TAIL)
            out.put(depth + 1, "n -= 1", _TAIL)
        else:
            out.put(depth, "on_next(x)", _TAIL)
            out.put(depth, "n -= 1", _TAIL)

    def _pause(self, depth: int, iterator: str) -> None:
        """At the end of a loop's body: stop for want of demand, unless the loop is over anyway."""
        out = self._out
        if self._form is Form.PULL:
            return
        if self._form is Form.POLL:
            out.put(depth, "if gate.cancelled:")
            out.put(depth + 1, "return")
            return
        if not self._emits:
            out.put(depth, "while gate.cancelled:")
            out.put(depth + 1, "n = yield -1")
            return
        out.put(depth, "if not n or gate.cancelled:")
        out.put(depth + 1, f"while gate.cancelled or (not n and not exhausted({iterator})):")
        out.put(depth + 2, "n = yield -1")

    def _ends(self, depth: int) -> None:
        """What the stages emit after the last item, upstream first."""
        out = self._out
        if any(lines.on_end for lines in self._rendered):
            # A loop before this one, of the same program, returns when the flow is cancelled.
            if self._form is Form.POLL:
                out.put(depth, "if gate.cancelled:")
                out.put(depth + 1, "return")
            elif self._form is not Form.PULL:
                out.put(depth, "while gate.cancelled:")
                out.put(depth + 1, "n = yield -1")
            if self._form in (Form.FEED, Form.FEED_IF) and self._stops >= 0:
                out.put(depth, "gate.ending = True")
        for index, lines in enumerate(self._rendered):
            if not lines.on_end:
                continue
            at = depth
            later = any(part.stops for part in self._rendered[index + 1 :])
            if later or any(part.recovers for part in self._rendered[index:]):
                out.put(at, f"if stop <= {index}:", index)
                at += 1
            if later:
                out.put(at, "for _ in (None,):", index)
                at += 1
            self._block(index, at, lines.on_end, at_end=index + 1)


def _emit(lines: Lines) -> int | None:
    """Which of the lines is EMIT."""
    return next((i for i, (_, text) in enumerate(lines) if text == "EMIT"), None)


def _after(lines: Lines) -> Lines:
    """What follows the EMIT of `lines`, see `_rest`."""
    emit = _emit(lines)
    return () if emit is None else _rest(lines, emit)


def _rest(lines: Lines, emit: int) -> Lines:
    """What follows an EMIT in its own block, if that does not decide how the flow goes on."""
    depth = lines[emit][0]
    rest: list[tuple[int, str]] = []
    for inner, line in lines[emit + 1 :]:
        if inner < depth or line.startswith("PAUSE ") or line == "LEAVE":
            break
        if line == "STOP":
            return ()
        rest.append((inner - depth, line))
    return tuple(rest)


_NAMESPACE: Final = {
    "UNSET": UNSET,
    "END": END,
    "annotate": _annotate,
    "caught": _caught,
    "close_all": close_all,
    "exhausted": exhausted,
    "handler": _handler,
    "none_item": _none_item,
}
_serial: Final = count()


def generated_source(form: Form, program: Program[Any, Any]) -> str:  # Any: any program
    """The source of `program`'s loop in this form, for documentation and debugging."""
    parts: list[str] = []
    for part in program.segments:
        loop = part.shape.loop(form)
        parts.append("".join(linecache.getlines(loop.__code__.co_filename)))
    return "\n".join(parts)
