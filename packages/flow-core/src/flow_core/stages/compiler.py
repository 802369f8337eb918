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
"""

from __future__ import annotations

import enum
import linecache
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from operator import length_hint
from threading import Lock
from types import CodeType, GeneratorType, TracebackType
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast, final

from flow_core.demand import UNBOUNDED
from flow_core.errors import NoneItemError
from flow_core.stages.filtering import CHECK
from flow_core.stages.template import SLOT, UNSET, Stage, Template

__all__ = ["END", "PAUSED", "Form", "Gate", "Program", "Raised"]

T_contra = TypeVar("T_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)

# Any: a program is a run of stages whose types only fit each other, and the generated loop is
# untyped by nature; `Program[T, R]` is the typed face.
_AnyStage = Stage[Any, Any]
_Loop: TypeAlias = "Callable[..., GeneratorType[Any, Any, None]]"

PAUSED: Final = -1
"""What a pushing loop yields when it wants demand before it can go on."""

END: Final = object()
"""What is sent to a `FEED` loop after the last item."""

_MAX_DEPTH: Final = 60
_MAX_LOOPS: Final = 8
_MAX_STAGES: Final = 1000
_MAX_CACHED: Final = 512

_PLAIN: Final = frozenset(
    type(iterator)
    for iterator in (iter([]), iter(()), iter(range(0)), iter(range(2**70)), iter(""), iter(b""))
)


class Form(enum.Enum):
    """How a generated loop gets its items and gives them on."""

    PULL = "pull"
    POLL = "poll"
    PUSH = "push"
    PUSH_IF = "push, conditional"
    FEED = "feed"
    FEED_IF = "feed, conditional"


class Raised(enum.Enum):
    """Who raised an error that came out of a generated loop."""

    UPSTREAM = "the source"
    STAGE = "a stage"
    DOWNSTREAM = "the subscriber"


@final
class Gate:
    """What a running loop looks at and others may change; it holds no reference to either."""

    __slots__ = ("cancelled", "done")

    def __init__(self) -> None:
        self.cancelled = False
        self.done = False
        """The upstream has completed, and no item waits to be fed."""


@final
@dataclass(frozen=True, eq=False)
class _Code:
    """One generated function and what is known of its lines."""

    loop: _Loop
    code: CodeType
    owners: tuple[int, ...]
    templates: tuple[Template, ...]
    """Kept alive, since the cache knows them by id."""


_HEAD: Final = -1
_TAIL: Final = -2


@final
class Program(Generic[T_contra, R_co]):
    """A run of stages, compiled when it is first needed. Pickles as its stages alone.

    Args:
        stages: the stages, upstream first; may be none.
    """

    __slots__ = (
        "_segments",
        "absorbs",
        "accounts",
        "args",
        "calls_user_code",
        "demand_cap",
        "limit",
        "stages",
        "stops",
    )

    def __init__(self, stages: Iterable[_AnyStage]) -> None:
        self.stages = tuple(stages)
        self._segments: tuple[Program[Any, Any], ...] | None = None
        calls = absorbs = accounts = stops = False
        limit = cap = UNBOUNDED
        args: list[object] = []
        one_to_one = True
        for stage in self.stages:
            lines = stage.template.lines
            args += stage.args
            calls = calls or lines.calls_user_code
            absorbs = absorbs or lines.absorbs
            accounts = accounts or lines.expands or lines.emits_at_end
            stops = stops or lines.stops
            if stage.template.at_most:
                count = stage.args[stage.template.params.index(stage.template.at_most)]
                if isinstance(count, int):
                    cap = min(cap, count)
                    limit = min(limit, count) if one_to_one else limit
            one_to_one = one_to_one and not lines.expands and not lines.drops
        self.args = tuple(args)
        self.calls_user_code = calls
        """Whether the loop must not move to another thread."""
        self.absorbs = absorbs
        """Whether nothing is emitted before the upstream completes (or a stage stops)."""
        self.accounts = accounts
        """Whether downstream's demand differs from upstream's: items expand, or come at the end."""
        self.stops = stops
        """Whether a stage may end the flow before its upstream does."""
        self.limit = limit
        """The most items of the upstream that can be used, if a leading ``take`` says so."""
        self.demand_cap = cap
        """The most items that can come out, if a ``take`` says so and nothing expands after it."""

    def __reduce__(self) -> tuple[Any, ...]:  # Any: what object.__reduce__ is declared to return
        return (Program, (self.stages,))

    def __repr__(self) -> str:
        return " | ".join(map(repr, self.stages)) or "(no stage)"

    @property
    def segments(self) -> tuple[Program[Any, Any], ...]:  # Any: the types between segments
        """Parts that each fit into one function; Python bounds how deep a function may nest."""
        if self._segments is None:
            parts: list[list[_AnyStage]] = [[]]
            depth = loops = 0
            for stage in self.stages:
                lines = stage.template.lines
                depth += lines.nesting
                loops += lines.loops
                if depth > _MAX_DEPTH or loops > _MAX_LOOPS or len(parts[-1]) >= _MAX_STAGES:
                    parts.append([])
                    depth, loops = lines.nesting, lines.loops
                parts[-1].append(stage)
            whole = len(parts) == 1
            self._segments = (self,) if whole else tuple(Program(part) for part in parts)
        return self._segments

    def iterate(self, source: Iterator[T_contra]) -> Iterator[R_co]:
        """Items through all stages, pulled. A generator given as `source` is closed at the end.

        A fatal or failing stage raises where the consumer asks for the next item; the error has a
        note that names the stage.
        """
        if not self.stages:
            return cast("Iterator[R_co]", source)  # no stage changes the type: R is T then
        items: Iterator[Any] = source  # Any: between segments
        for part in self.segments:
            loop = _compiled(Form.PULL, part.stages).loop
            items = loop(items, _closer(items), part.stages, part.args)
        return items

    def poll(self, source: Iterator[T_contra], gate: Gate) -> GeneratorType[R_co, None, None]:
        """As `iterate`, but the loop ends soon when ``gate.cancelled`` is set."""
        items: Iterator[Any] = source  # Any: between segments
        for part in self.segments:
            loop = _compiled(Form.POLL, part.stages).loop
            items = loop(items, _closer(items), gate, part.stages, part.args)
        # `segments` is never empty, so that the last loop made a generator.
        return cast("GeneratorType[R_co, None, None]", items)

    def push(
        self,
        source: Iterator[T_contra],
        on_next: Callable[[R_co], object],
        gate: Gate,
        demand: int,
        *,
        conditional: bool,
    ) -> Generator[int, int, None]:
        """A loop that pushes: it yields `PAUSED` when `demand` is used up, and takes more by send.

        With `conditional`, `on_next` answers whether the item counts against the demand.
        """
        items: Iterator[Any] = source  # Any: between segments
        for part in self.segments[:-1]:
            loop = _compiled(Form.POLL, part.stages).loop
            items = loop(items, _closer(items), gate, part.stages, part.args)
        last = self.segments[-1]
        form = Form.PUSH_IF if conditional else Form.PUSH
        loop = _compiled(form, last.stages).loop
        return loop(items, _closer(items), on_next, gate, demand, last.stages, last.args)

    def feed(
        self, on_next: Callable[[R_co], object], gate: Gate, demand: int, *, conditional: bool
    ) -> GeneratorType[int, Any, None]:  # Any: items and grants of demand are both sent in
        """A loop that takes items by send and pushes. Only for a program of one segment.

        It yields the demand that is left when it wants the next item (or `END`), and `PAUSED`
        when it wants demand. It is started by ``next``.
        """
        form = Form.FEED_IF if conditional else Form.FEED
        loop = _compiled(form, self.stages).loop
        return loop(on_next, gate, demand, self.stages, self.args)

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


def _closer(iterator: object) -> Callable[[], object] | None:
    if type(iterator) is GeneratorType or isinstance(iterator, Generator):
        return iterator.close
    return None


def _none_item(stage: _AnyStage) -> NoneItemError:
    who = "the source" if stage.template == CHECK else repr(stage)
    return NoneItemError(
        f"{who} gave None, which is not an item (§2.13); leave such items out, or stand for them "
        "with an object of your own"
    )


def _annotate(error: Exception, stages: tuple[_AnyStage, ...]) -> None:
    """Called by a pulled loop that fails: say in a note which stage it was."""
    owner, _ = _owner(error.__traceback__, stages)
    if owner >= 0:
        _note(error, stages, owner)


def _owner(
    trace: TracebackType | None, stages: tuple[_AnyStage, ...]
) -> tuple[int, TracebackType | None]:
    """The stage whose line an error passed in the loop of `stages`, and the trace from there on.

    It is `_HEAD`, with the whole trace, if the error did not pass that loop.
    """
    wanted = tuple(map(id, (stage.template for stage in stages)))
    inner = trace
    while inner is not None:
        owners = _owners.get(inner.tb_frame.f_code)
        if owners is not None and owners[1] == wanted:
            return owners[0][inner.tb_lineno - 1], inner.tb_next
        inner = inner.tb_next
    return _HEAD, trace


def _note(error: BaseException, stages: tuple[_AnyStage, ...], index: int) -> None:
    stage = stages[index]
    where = stage.assembled_at
    checks = stages[0].template == CHECK  # the compiler's own, which nobody counts
    note = f"in stage {index + 1 - checks} of {len(stages) - checks}: {stage!r}"
    if checks and index == 0:
        return
    if where is not None:
        note += f", assembled at {where}"
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


_cache: dict[tuple[Form, tuple[int, ...]], _Code] = {}
_owners: dict[CodeType, tuple[tuple[int, ...], tuple[int, ...]]] = {}
_caching: Final = Lock()


def _compiled(form: Form, stages: tuple[_AnyStage, ...]) -> _Code:
    """The loop for stages of this shape. Threads may compile the same at once; the first wins."""
    shape = tuple([id(stage.template) for stage in stages])
    found = _cache.get((form, shape))
    if found is None:
        made = _generate(form, tuple(stage.template for stage in stages))
        with _caching:
            found = _cache.setdefault((form, shape), made)
            _owners[found.code] = (found.owners, shape)
            while len(_cache) > _MAX_CACHED:
                oldest = _cache.pop(next(iter(_cache)))
                _owners.pop(oldest.code, None)
                linecache.cache.pop(oldest.code.co_filename, None)
    return found


@final
class _Writer:
    """Lines of generated source, each with the index of the stage that it was made for."""

    __slots__ = ("owners", "text")

    def __init__(self) -> None:
        self.text: list[str] = []
        self.owners: list[int] = []

    def put(self, depth: int, line: str, owner: int = _HEAD) -> None:
        self.text.append(f"{' ' * depth}{line}\n")
        self.owners.append(owner)


@final
class _Generator:
    """Writes one function."""

    __slots__ = ("_emits", "_form", "_out", "_parts", "_pushes", "_rendered", "_stops")

    def __init__(self, form: Form, templates: tuple[Template, ...]) -> None:
        self._form = form
        self._rendered = [template.lines for template in templates]
        self._pushes = form not in (Form.PULL, Form.POLL)
        self._out = _Writer()
        self._emits = not any(template.absorbs for template in templates)
        """Whether the loop that is being written reaches the subscriber, so that demand matters."""
        last_stop = -1
        for index, lines in enumerate(self._rendered):
            if lines.stops:
                last_stop = index
        self._stops = last_stop
        """The last stage that may stop; a loop needs to look for a stop only before it."""
        self._parts = [template.params for template in templates]

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
        for index, lines in enumerate(self._rendered):
            for line in lines.state:
                out.put(1, line.replace(SLOT, f"_{index}"), index)
        if self._stops >= 0:
            out.put(1, "stop = -1")
        if self._form in (Form.FEED, Form.FEED_IF):
            self._fed(1)
        else:
            out.put(1, "try:")
            out.put(2, "for x in it:")
            self._body(0, 3)
            self._pause(3, "it")
            self._ends(2)
            if not self._pushes:
                if _TAIL not in out.owners:  # no stage emits, but a generator it must be
                    out.put(2, "yield from ()")
                out.put(1, "except Exception as error:")
                out.put(2, "annotate(error, stages)")
                out.put(2, "raise")
            out.put(1, "finally:")
            out.put(2, "if close is not None:")
            out.put(3, "close()")
        return out

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
        out.put(depth + 1, "x = yield n")
        self._ends(depth)

    def _body(self, first: int, depth: int) -> None:
        """The stages from `first` on, each in the place of its predecessor's EMIT."""
        after: list[tuple[int, int, list[tuple[int, str]]]] = []
        for index in range(first, len(self._rendered)):
            lines = self._rendered[index].on_item
            emit = next((i for i, (_, text) in enumerate(lines) if text == "EMIT"), None)
            self._put_lines(index, depth, lines[:emit])
            if emit is None:
                break
            after.append((index, depth, list(lines[emit + 1 :])))
            depth += lines[emit][0]
        else:
            self._tail(depth)
        for index, outer, lines_after in reversed(after):
            self._put_lines(index, outer, lines_after)

    def _put_lines(
        self,
        index: int,
        depth: int,
        lines: list[tuple[int, str]] | tuple[tuple[int, str], ...],
        *,
        at_end: bool = False,
    ) -> None:
        out = self._out
        for inner, template_line in lines:
            line = template_line.replace(SLOT, f"_{index}")
            if line == "NOT_NONE":
                out.put(depth + inner, "if x is None:", index)
                out.put(depth + inner + 1, f"raise none_item(stages[{index}])", index)
            elif line == "STOP":
                out.put(depth + inner, f"stop = {index}", index)
                out.put(depth + inner, "break", index)
            elif line == "LEAVE":
                # A stage in the loop has stopped. At the end, a stop by this very stage is past.
                first = index + at_end
                if self._stops >= first:
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
        for index, lines in enumerate(self._rendered):
            if not lines.on_end:
                continue
            at = depth
            if any(part.stops for part in self._rendered[index + 1 :]):
                out.put(at, f"if stop <= {index}:", index)
                at += 1
                out.put(at, "for _ in (None,):", index)
                at += 1
            emit = next((i for i, (_, text) in enumerate(lines.on_end) if text == "EMIT"), None)
            self._put_lines(index, at, lines.on_end[:emit], at_end=True)
            if emit is None:
                continue
            inner = at + lines.on_end[emit][0]
            self._emits = not any(part.absorbs for part in self._rendered[index + 1 :])
            if self._pushes and self._emits:
                out.put(inner, "while not n or gate.cancelled:")
                out.put(inner + 1, "n = yield -1")
            self._body(index + 1, inner)
            self._put_lines(index, at, lines.on_end[emit + 1 :], at_end=True)


_NAMESPACE: Final = {
    "UNSET": UNSET,
    "END": END,
    "annotate": _annotate,
    "exhausted": exhausted,
    "none_item": _none_item,
}
_serial: Final = iter(range(2**63))


def _generate(form: Form, templates: tuple[Template, ...]) -> _Code:
    out = _Generator(form, templates).write()
    source = "".join(out.text)
    names = "|".join(template.name for template in templates[:8])
    if len(templates) > 8:
        names += f"|… {len(templates)} stages"
    filename = f"<flow {form.value}: {names or 'no stage'} #{next(_serial)}>"
    module = compile(source, filename, "exec", dont_inherit=True)
    namespace: dict[str, Any] = dict(_NAMESPACE)  # Any: exec's own type
    exec(module, namespace)
    loop: _Loop = namespace["flow"]
    code: CodeType = namespace["flow"].__code__
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    return _Code(loop, code, tuple(out.owners), templates)


def generated_source(form: Form, program: Program[Any, Any]) -> str:  # Any: any program
    """The source of `program`'s loop in this form, for documentation and debugging."""
    parts: list[str] = []
    for part in program.segments:
        code = _compiled(form, part.stages).code
        parts.append("".join(linecache.getlines(code.co_filename)))
    return "\n".join(parts)
