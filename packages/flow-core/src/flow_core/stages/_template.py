"""Stage templates: the code that a synchronous operator runs for each item, written once.

A `Template` is the text of an operator's inner loop; a `Stage` is a template with arguments. The
compiler (`flow_core.stages._program`) nests the templates of neighbouring stages and makes one loop
of them, in the form that is needed: pulled, pushed, polled or on an executor.
"""

from __future__ import annotations

import ast
import builtins
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from inspect import CO_COROUTINE
from keyword import iskeyword
from types import BuiltinFunctionType, CodeType, FrameType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar, final

from flow_core.errors import FlowError

if TYPE_CHECKING:
    from flow_core.flow import Flow

__all__ = ["UNSET", "Stage", "Template", "TemplateError", "describe"]

T_contra = TypeVar("T_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


class TemplateError(FlowError, ValueError):
    """The text of a stage template cannot be compiled; the message quotes it."""


@final
class _Unset:
    __slots__ = ()

    def __repr__(self) -> str:
        return "UNSET"

    def __reduce__(self) -> str:
        return "UNSET"


UNSET: Final = _Unset()
"""Stands for a value that is not there yet. Templates may use it, or None, since None is not an
item."""

Site: TypeAlias = tuple[CodeType | str, int]
"""A place in the user's code: a code object and an instruction in it, or (once it was pickled) a
file and a line."""

_OTHERS: Final = (
    "flow_ops.",
    "flow_multicast.",
    "flow_rxcompat.",
    "flow_spark.",
    "flow_cli.",
    "flow_testing.",
)
"""The first parts of the module names of this project's packages, which are not user's code,
either."""

NEVER_AWAITED: Final = frozenset({BuiltinFunctionType, type})
"""Types whose objects can be called, and are not coroutine functions."""

_INSIDE: Final[dict[str, bool]] = {}
"""The modules that have called this library, by name. True for modules of the library itself."""
_MOST_NAMES: Final = 1024

Helper: TypeAlias = Callable[..., object]
"""A function or class of the template's author that the template's texts call by name."""

_MARKERS: Final = frozenset({"EMIT", "STOP", "NOT_NONE"})
_GLOBALS: Final = frozenset({"UNSET", "x", *dir(builtins)})
SLOT: Final = "__slot__"
"""Stands in rendered lines for the position of the stage in its program."""


@final
@dataclass(frozen=True)
class Template:
    """The code of one operator, as texts that become part of a loop.

    In the texts, ``x`` is the item. ``EMIT`` (a separate statement) passes ``x`` to the next stage,
    ``STOP`` completes the flow, ``NOT_NONE`` fails the flow if ``x`` is None. Names in `params`
    stand for the stage's arguments, names of `helpers` for these functions and classes; every other
    name that is assigned is private to the stage and lives as long as the subscription. A mistake
    in the texts is reported when the first stage is made of the template.

    >>> EVERY = Template(
    ...     "every",
    ...     params=("n",),
    ...     state="i = 0",
    ...     on_item='''
    ...     i += 1
    ...     if i % n == 0:
    ...         EMIT
    ... ''',
    ... )
    >>> EVERY.drops, EVERY.expands, EVERY.calls_user_code
    (True, False, False)

    Args:
        name: the operator's name in messages and in `flow explain`.
        params: the names of the stage's arguments.
        state: assignments that run once per subscription, before the first item.
        on_start: runs before the first item is requested. It may ``EMIT`` items that come before
            that one, or ``STOP``.
        on_item: runs for each item.
        on_end: runs after the last item, when the upstream completes. It may ``EMIT`` more items.
        on_error: runs for ``error``, with which the source or a stage before this one has failed.
            It may ``EMIT`` items, and then ``STOP`` to complete instead; without ``STOP``, the flow
            fails with the error.
        on_close: runs once when the flow has ended, however it ended: after the terminal was sent
            to a subscriber, or as soon as the flow was cancelled. An error that it raises goes to
            the dropped-errors hook.
        helpers: functions and classes that the texts call; they are pickled by reference.
        ordered: whether the result depends on the order of items. If so, the stage has no meaning
            behind an unordered, partitioned source.
        at_most: how many items the stage uses at most, or the name of the param that says it; no
            more are requested.
        watches: whether `state` only serves to find mistakes of the user. If so, the result for an
            item depends on that item alone.
    """

    name: str
    params: tuple[str, ...] = ()
    state: str = ""
    on_start: str = ""
    on_item: str = "EMIT"
    on_end: str = ""
    on_error: str = ""
    on_close: str = ""
    helpers: tuple[Helper, ...] = ()
    ordered: bool = False
    at_most: str | int = ""
    watches: bool = False

    @cached_property
    def lines(self) -> Rendered:
        """Return the texts, parsed when first needed: a program uses few of many templates.

        Raises:
            TemplateError: if one of the texts cannot be compiled.
        """
        return _render(self)

    @property
    def expands(self) -> bool:
        """True if one item may become several."""
        return self.lines.expands

    @property
    def drops(self) -> bool:
        """True if an item may be dropped as soon as it comes."""
        return self.lines.drops

    @property
    def absorbs(self) -> bool:
        """True if nothing is emitted before the end."""
        return self.lines.absorbs

    @property
    def alone(self) -> bool:
        """True if the result for an item depends on that item alone."""
        lines = self.lines
        ends = lines.on_start or lines.on_end or lines.on_error or lines.on_close
        return not (self.ordered or self.remembers or lines.stops or ends)

    @property
    def remembers(self) -> bool:
        """True if the result for an item may depend on the items before it."""
        return bool(self.lines.state) and not self.watches

    @property
    def emits_at_end(self) -> bool:
        """True if items may follow after the upstream has completed."""
        return self.lines.emits_at_end

    @property
    def emits_at_start(self) -> bool:
        """True if items may be emitted before the first item of the upstream."""
        return self.lines.emits_at_start

    @property
    def recovers(self) -> bool:
        """True if the flow may complete although its upstream has failed."""
        return self.lines.recovers

    @property
    def stops(self) -> bool:
        """True if the stage may end the flow before its upstream does."""
        return self.lines.stops

    @property
    def calls_user_code(self) -> bool:
        """True if a param is called, so that such a stage must not move to another thread."""
        return self.lines.calls_user_code

    def __reduce__(self) -> tuple[Any, ...]:  # Any: the declared result of object.__reduce__
        texts = (self.name, self.params, self.state, self.on_start, self.on_item, self.on_end)
        rest = (self.on_error, self.on_close, self.helpers, self.ordered, self.at_most)
        return (_intern, (*texts, *rest, self.watches))


Lines: TypeAlias = tuple[tuple[int, str], ...]
"""Lines of code, each with its depth of indentation."""


@final
@dataclass(frozen=True)
class Rendered:
    """The parsed texts: lines with `SLOT` in the names of variables, and what the texts reveal."""

    state: tuple[str, ...]
    on_start: Lines
    on_item: Lines
    on_end: Lines
    on_error: Lines
    on_close: Lines
    closing_names: tuple[str, ...]
    """The names that `on_close` assigns."""
    kept: tuple[str, ...]
    """The names that `on_item` or `on_end` assigns and that are read again for later items, or for
    the end."""
    expands: bool
    drops: bool
    absorbs: bool
    emits_at_start: bool
    emits_at_end: bool
    recovers: bool
    stops: bool
    calls_user_code: bool
    called: tuple[int, ...]
    """The positions of the params that the texts call themselves."""
    nesting: int
    loops: int


_interned: dict[tuple[object, ...], Template] = {}


def _intern(*texts: Any) -> Template:  # Any: the fields of a Template, as pickled
    """Return this process's only template with these texts; unpickling calls this."""
    found = _interned.get(texts)
    if found is None:
        found = _interned.setdefault(texts, Template(*texts))
    return found


@final
class Stage(Generic[T_contra, R_co]):
    """A template, its arguments, and the place where the stage was put into a flow.

    Immutable. When a flow runs elsewhere, only its stages are pickled.

    Args:
        template: the code that the stage runs for an item.
        args: one value for each of the template's params.

    Raises:
        TypeError: if there are more or fewer `args` than params, or if one that is called is not a
            function.
        TemplateError: if a text of the template cannot be compiled.
    """

    __slots__ = ("args", "site", "template")

    def __init__(self, template: Template, *args: object) -> None:
        if len(args) != len(template.params):
            raise TypeError(
                f"the stage {template.name!r} takes {len(template.params)} arguments "
                f"({', '.join(template.params)}), not {len(args)}"
            )
        for index in template.lines.called:
            check_function(template, index, args[index])
        self.template = template
        self.args = args
        self.site: Site | None = None

    @classmethod
    def at(
        cls, template: Template, args: tuple[object, ...], site: Site | None
    ) -> Stage[Any, Any]:  # Any: items of any type
        """Return a stage at the place `site`, with arguments that were checked before."""
        made: Stage[Any, Any] = object.__new__(cls)
        made.template = template
        made.args = args
        made.site = site
        return made

    def __call__(self, flow: Flow[T_contra], /) -> Flow[R_co]:
        """Return `flow` with this stage at its end; `Flow.pipe` calls this."""
        return flow._then(self.located())

    def located(self) -> Stage[T_contra, R_co]:
        """Return the same stage, with the place of the user's code that called this library."""
        return Stage.at(self.template, self.args, user_site())

    @property
    def name(self) -> str:
        """The operator's name."""
        return self.template.name

    @property
    def assembled_at(self) -> str | None:
        """The place ``file:line`` where the user put this stage into a flow.

        It is None if the place is not known.
        """
        return line_of(self.site)

    def __repr__(self) -> str:
        args = ", ".join(
            f"{name}={describe(value)}" if index or not callable(value) else describe(value)
            for index, (name, value) in enumerate(zip(self.template.params, self.args, strict=True))
        )
        return f"{self.name}({args})"

    def __reduce__(self) -> tuple[Any, ...]:  # Any: the declared result of object.__reduce__
        return (Stage.at, (self.template, self.args, portable(self.site)))


def check_function(template: Template, index: int, function: object) -> None:
    """Refuse an argument that is not a function, or a function whose result has to be awaited."""
    if not callable(function):
        other = "; take_until_other() takes a flow" if template.name == "take_until" else ""
        raise TypeError(
            f"{template.name}() takes a function as {template.params[index]!r}, not {function!r}"
            f"{other if hasattr(function, 'subscribe') else ''}"
        )
    refuse_coroutine_function(
        template.name,
        function,
        "map_concurrent() awaits one for each item, and a lambda around it gives the coroutines "
        "themselves",
    )


def refuse_coroutine_function(name: str, function: object, way: str) -> None:
    """Refuse a coroutine function where its result would not be awaited.

    Args:
        name: the name of the operator that got the function.
        function: the user's function.
        way: what the user can do instead, for the message.

    Raises:
        TypeError: if `function` is a coroutine function.
    """
    code = getattr(function, "__code__", None)
    if isinstance(code, CodeType) and code.co_flags & CO_COROUTINE:
        raise TypeError(
            f"{name}() takes a function that gives its result at once; {describe(function)} is a "
            f"coroutine function, and nothing would await it: {way}"
        )


def user_site() -> Site:
    """Return the place in the user's code that has called this library."""
    try:
        frame = sys._getframe(3)  # a function that a method of Flow calls has called this
    except ValueError:
        # By `Flow` itself at the top of a script, or by a method that is all that a thread runs.
        frame = sys._getframe(2)
    frame = outside(frame)
    return frame.f_code, frame.f_lasti


def outside(frame: FrameType) -> FrameType:
    """Return `frame`, or its nearest caller that is not in this library."""
    while True:
        name: str = frame.f_globals.get("__name__", "")
        inside = _INSIDE.get(name)
        if inside is None:
            inside = _is_inside(name)
        # The caller is looked at only if needed: Python has to make a frame object for it.
        if not inside or (back := frame.f_back) is None:
            return frame
        frame = back


def _is_inside(name: str) -> bool:
    inside = name[:10] == "flow_core." or name.startswith(_OTHERS)
    if len(_INSIDE) < _MOST_NAMES:
        _INSIDE[name] = inside
    return inside


def line_of(site: Site | None) -> str | None:
    """Return the place `site` as ``file:line``.

    Args:
        site: the place; None gives None.
    """
    if site is None:
        return None
    code, position = site
    if isinstance(code, str):
        return f"{code}:{position}"
    line = next(
        (line for start, end, line in code.co_lines() if start <= position < end),
        code.co_firstlineno,
    )
    return f"{code.co_filename}:{line}"


def portable(site: Site | None) -> Site | None:
    """Return the same place without the code object, so that it can be pickled."""
    where = line_of(site)
    if where is None:
        return None
    file, _, line = where.rpartition(":")
    return file, int(line)


def describe(value: object) -> str:
    """Return a short text for an argument: the name and place of a function, or else the repr.

    Args:
        value: the argument.
    """
    code = getattr(value, "__code__", None)
    if isinstance(code, CodeType):
        name = getattr(value, "__qualname__", "function").rpartition("<locals>.")[2]
        if name == "<lambda>":
            file = code.co_filename.replace("\\", "/").rpartition("/")[2]
            return f"<lambda {file}:{code.co_firstlineno}>"
        return name
    if isinstance(value, type):
        return value.__name__
    if callable(value):
        name = getattr(value, "__name__", None)  # of an object with any attribute: not a text
        return name if isinstance(name, str) else type(value).__name__
    try:
        text = repr(value)
    except Exception:  # of the user's class, which this text must not fail for
        text = object.__repr__(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _render(template: Template) -> Rendered:
    names = ("state", "on_start", "on_item", "on_end", "on_error", "on_close")
    trees = {name: _parse(template, name) for name in names}
    helpers = [getattr(helper, "__name__", repr(helper)) for helper in template.helpers]
    assigned = set[str]().union(*map(_stored, trees.values()))
    for name in template.params:
        reserved = name in _GLOBALS or name in _MARKERS or name == "error"
        if not name.isidentifier() or iskeyword(name) or reserved:
            raise TemplateError(f"{template.name}: {name!r} cannot be the name of a parameter")
    for name in helpers:
        reserved = name in _MARKERS or name in ("x", "error", "UNSET")
        if not name.isidentifier() or name in template.params or reserved or name in assigned:
            raise TemplateError(f"{template.name}: {name!r} cannot be the name of a helper")
    if len({*helpers}) < len(helpers):
        raise TemplateError(f"{template.name}: two helpers have the same name: {helpers}")
    at_most = template.at_most
    if at_most and isinstance(at_most, str) and at_most not in template.params:
        raise TemplateError(f"{template.name}: at_most={template.at_most!r} is not a parameter")
    private = set[str]().union(template.params, helpers, *map(_stored, trees.values()))
    private -= {"x", "error"}
    # A class is a helper that keeps its arguments; it does not call them.
    functions = [
        name
        for name, helper in zip(helpers, template.helpers, strict=True)
        if not isinstance(helper, type)
    ]
    calls = any(
        _calls(node, frozenset(template.params), _CALLING.union(functions))
        for tree in trees.values()
        for node in ast.walk(tree)
    )
    shapes: dict[str, _Shape] = {}
    for name, tree in trees.items():
        known = _GLOBALS | {"error"} if name == "on_error" else _GLOBALS
        trees[name] = _Rename(template, private, known).visit(tree)
        shape = shapes[name] = _Shape(template, name, _ALLOWED_MARKERS[name])
        shape.visit(trees[name])
        if shape.emits > 1:
            raise TemplateError(
                f"the template of {template.name!r} has more than one EMIT in a text: "
                "assign to x in the branches, and EMIT once after them"
            )
    texts = {name: tuple(_lines(tree.body, 0)) for name, tree in trees.items()}
    on_item = shapes["on_item"]
    starts = shapes["on_start"].emits > 0
    return Rendered(
        state=tuple(text for _, text in texts["state"]),
        on_start=texts["on_start"],
        on_item=texts["on_item"] or ((0, "pass"),),
        on_end=texts["on_end"],
        on_error=texts["on_error"],
        on_close=texts["on_close"],
        closing_names=tuple(sorted(_stored(trees["on_close"]) & _shared(template, trees))),
        kept=tuple(sorted(_kept(template, trees))),
        expands=on_item.looped,
        drops=on_item.emits == 0 or not on_item.always,
        absorbs=on_item.emits == 0 and not starts,
        emits_at_start=starts,
        emits_at_end=shapes["on_end"].emits + shapes["on_error"].emits > 0,
        recovers=shapes["on_error"].stops,
        stops=on_item.stops or shapes["on_start"].stops,
        calls_user_code=calls,
        called=tuple(
            index
            for index, name in enumerate(template.params)
            if any(_is_call_of(node, name) for tree in trees.values() for node in ast.walk(tree))
        ),
        nesting=max(depth for text in texts.values() for depth, _ in (*text, (0, ""))),
        loops=max(shape.nested_loops for shape in shapes.values()),
    )


def _stored(tree: ast.AST) -> set[str]:
    """Return the names that are assigned in `tree`."""
    return {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _shared(template: Template, trees: dict[str, ast.Module]) -> set[str]:
    """Return the names that the loop itself assigns, as opposed to `on_close` alone."""
    loop = [tree for name, tree in trees.items() if name != "on_close"]
    return {f"{name}{SLOT}" for name in template.params}.union(*map(_stored, loop)) - {"x", "error"}


def _kept(template: Template, trees: dict[str, ast.Module]) -> set[str]:
    """Return the names that an item or the end assigns, unless each item assigns them again."""
    anew = set[str]()
    seen = set[str]()
    for statement in trees["on_item"].body:
        names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        if isinstance(statement, ast.Assign):
            read = {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)}
            anew |= _stored(statement) - read - seen
        seen |= names
    elsewhere = {f"{name}{SLOT}" for name in template.params}
    for name in ("state", "on_start", "on_end", "on_error"):
        elsewhere |= {node.id for node in ast.walk(trees[name]) if isinstance(node, ast.Name)}
    items = _stored(trees["on_item"]) - (anew - elsewhere)
    return (items | (_stored(trees["on_end"]) & elsewhere)) - {"x", "error"}


def _is_call_of(node: ast.AST, name: str) -> bool:
    """Return whether `node` calls the param `name`, to which the slot was added already."""
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Name) and called.id == f"{name}{SLOT}"


_CALLING: Final = frozenset({"filter", "iter", "map", "max", "min", "sorted"})
"""Builtins that call their arguments."""


def _calls(node: ast.AST, params: frozenset[str], callers: frozenset[str]) -> bool:
    """Return whether `node` calls a param, or (perhaps) one of `callers` does."""
    if not isinstance(node, ast.Call):
        return False
    called = [part.id for part in ast.walk(node.func) if isinstance(part, ast.Name)]
    if callers.intersection(called):
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        called += [part.id for part in given if isinstance(part, ast.Name)]
    return not params.isdisjoint(called)


def _parse(template: Template, name: str) -> ast.Module:
    text = textwrap.dedent(getattr(template, name)).strip()
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise TemplateError(
            f"{name} of the template of {template.name!r} is not Python: {error.msg}, "
            f"in its line {error.lineno}\n{text}"
        ) from error


class _Rename(ast.NodeTransformer):
    """Adds the slot to the names of the stage's variables, and refuses names without a value."""

    def __init__(self, template: Template, private: set[str], known: frozenset[str]) -> None:
        self._template = template
        self._private = private
        self._known = known

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id in self._private:
            return ast.copy_location(ast.Name(f"{node.id}{SLOT}", node.ctx), node)
        if node.id not in self._known and node.id not in _MARKERS:
            raise TemplateError(
                f"the template of {self._template.name!r} uses {node.id!r}, which is neither one "
                f"of its params {self._template.params} or helpers, nor assigned in it"
            )
        return node


class _Shape(ast.NodeVisitor):
    """Finds out how many items a template may emit, by where its EMIT is."""

    def __init__(self, template: Template, text: str, markers: frozenset[str]) -> None:
        self._template = template
        self._text = text
        self._markers = markers
        self._depth = 0
        self._loops = 0
        self.nested_loops = 0
        self.emits = 0
        self.always = False
        self.looped = False
        self.stops = False

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Name) or node.value.id not in self._markers:
            self.generic_visit(node)
        elif node.value.id == "EMIT":
            self.emits += 1
            self.always = self.always or self._depth == 0
            self.looped = self.looped or self._loops > 0
        elif node.value.id == "STOP":
            self.stops = True

    def visit_Name(self, node: ast.Name) -> None:
        marker = node.id.removesuffix(SLOT)
        if marker in _MARKERS:
            raise TemplateError(
                f"the template of {self._template.name!r} cannot have {marker} at this place of "
                f"{self._text}: it is a separate statement, and "
                f"{' or '.join(sorted(self._markers)) or 'none of that kind'} may stand there"
            )

    def visit_If(self, node: ast.If) -> None:
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1

    def visit_For(self, node: ast.For) -> None:
        if node.orelse:
            raise TemplateError(f"the template of {self._template.name!r}: no else on a loop")
        self._depth += 1
        self._loops += 1
        self.nested_loops = max(self.nested_loops, self._loops)
        self.generic_visit(node)
        self._loops -= 1
        self._depth -= 1

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, _REFUSED) or (
            isinstance(node, ast.stmt) and not isinstance(node, _ALLOWED)
        ):
            raise TemplateError(
                f"the template of {self._template.name!r} uses {type(node).__name__}: "
                "only assignments, calls, if and for may stand in a template"
            )
        super().visit(node)


_ALLOWED_MARKERS: Final = {
    "state": frozenset[str](),
    "on_start": _MARKERS,
    "on_item": _MARKERS,
    "on_end": _MARKERS - {"STOP"},
    "on_error": _MARKERS,
    "on_close": frozenset[str](),
}
_REFUSED: Final = (ast.Lambda, ast.Yield, ast.YieldFrom, ast.Await)
_ALLOWED: Final = (
    ast.Assign,
    ast.AnnAssign,
    ast.AugAssign,
    ast.Assert,
    ast.Delete,
    ast.Expr,
    ast.For,
    ast.If,
    ast.Pass,
    ast.Raise,
)


def _lines(body: list[ast.stmt], depth: int) -> list[tuple[int, str]]:
    """Return statements as pairs of depth and text.

    A loop with an EMIT gets an iterator with a name, and a point where it can pause.
    """
    lines: list[tuple[int, str]] = []
    for statement in body:
        if isinstance(statement, ast.If):
            lines.append((depth, f"if {ast.unparse(statement.test)}:"))
            lines += _lines(statement.body, depth + 1)
            if statement.orelse:
                lines.append((depth, "else:"))
                lines += _lines(statement.orelse, depth + 1)
        elif isinstance(statement, ast.For):
            target, over = ast.unparse(statement.target), ast.unparse(statement.iter)
            inner = _lines(statement.body, depth + 1)
            if any(text in ("EMIT", "STOP") for _, text in inner):
                name = f"{SLOT}it{depth}"  # no name of the template looks like that
                lines.append((depth, f"{name} = iter({over})"))
                lines.append((depth, f"for {target} in {name}:"))
                lines += [*inner, (depth + 1, f"PAUSE {name}"), (depth, "LEAVE")]
            else:
                lines += [(depth, f"for {target} in {over}:"), *inner]
        else:
            simple: ast.stmt = statement
            if isinstance(statement, ast.AnnAssign) and statement.value is not None:
                # A name with an annotation cannot belong to the function around it.
                simple = ast.Assign([statement.target], statement.value, lineno=0)
            lines += [(depth, line) for line in ast.unparse(simple).splitlines()]
    return lines
