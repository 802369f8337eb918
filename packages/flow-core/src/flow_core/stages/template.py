"""What a synchronous operator does to an item, written once.

A `Template` is the text of an operator's inner loop; a `Stage` is a template with arguments.
The compiler (`flow_core.stages.compiler`) puts the templates of neighbours into one another and
makes one loop of them, in the form that is needed: pulled, pushed, polled or on an executor.
"""

from __future__ import annotations

import ast
import builtins
import sys
import textwrap
from dataclasses import dataclass, field
from keyword import iskeyword
from types import CodeType
from typing import Any, Final, Generic, TypeVar, final

from flow_core.errors import FlowError

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
"""No value yet; templates may use it, and None too, since None is not an item."""

_MARKERS: Final = frozenset({"EMIT", "STOP", "NOT_NONE"})
_GLOBALS: Final = frozenset({"UNSET", "x", *dir(builtins)})
SLOT: Final = "__slot__"
"""Stands in rendered lines for the position of the stage in its program."""


@final
@dataclass(frozen=True)
class Template:
    """The inner loop of one operator.

    In the texts, ``x`` is the item. ``EMIT`` (a statement of its own) is where the rest of the flow
    goes, ``STOP`` ends the flow as completed, ``NOT_NONE`` fails it if ``x`` is None. Names in
    `params` are bound to the stage's arguments; every other name that is assigned is private to the
    stage and lives as long as the subscription.

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
        on_item: what happens to each item.
        on_end: what happens after the last item, when the flow completes: may ``EMIT`` more.
        ordered: whether the outcome depends on the order of items, so that it has no meaning
            on an unordered, partitioned source.
        at_most: the param that says how many items are used at most, if there is one; no more of
            them are ever requested.
    """

    name: str
    params: tuple[str, ...] = ()
    state: str = ""
    on_item: str = "EMIT"
    on_end: str = ""
    ordered: bool = False
    at_most: str = ""
    lines: Rendered = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", _render(self))

    @property
    def expands(self) -> bool:
        """Whether one item may become several."""
        return self.lines.expands

    @property
    def drops(self) -> bool:
        """Whether an item may become none at once."""
        return self.lines.drops

    @property
    def absorbs(self) -> bool:
        """Whether nothing is emitted before the end."""
        return self.lines.absorbs

    @property
    def emits_at_end(self) -> bool:
        """Whether items may follow after the upstream has completed."""
        return self.lines.emits_at_end

    @property
    def stops(self) -> bool:
        """Whether the stage may end the flow before its upstream does."""
        return self.lines.stops

    @property
    def calls_user_code(self) -> bool:
        """Whether an argument is called: such a stage must not move to another thread (F39)."""
        return self.lines.calls_user_code

    def __reduce__(self) -> tuple[Any, ...]:  # Any: what object.__reduce__ is declared to return
        texts = (self.name, self.params, self.state, self.on_item, self.on_end)
        return (_intern, (*texts, self.ordered, self.at_most))


@final
@dataclass(frozen=True)
class Rendered:
    """The parsed texts: lines with `SLOT` in private names, and what the texts reveal."""

    state: tuple[str, ...]
    on_item: tuple[tuple[int, str], ...]
    on_end: tuple[tuple[int, str], ...]
    expands: bool
    drops: bool
    absorbs: bool
    emits_at_end: bool
    stops: bool
    calls_user_code: bool
    nesting: int
    loops: int


_interned: dict[tuple[object, ...], Template] = {}


def _intern(*texts: Any) -> Template:  # Any: the fields of a Template, as pickled
    """The one template with these texts in this process; what unpickling calls."""
    found = _interned.get(texts)
    if found is None:
        found = _interned.setdefault(texts, Template(*texts))
    return found


@final
class Stage(Generic[T_contra, R_co]):
    """A template with its arguments and the place where it was put into a flow.

    Immutable, and all that is pickled when a flow runs elsewhere.

    Args:
        template: what happens to an item.
        args: one value for each of the template's params.
    """

    __slots__ = ("args", "site", "template")

    def __init__(self, template: Template, *args: object) -> None:
        if len(args) != len(template.params):
            raise TypeError(
                f"the stage {template.name!r} takes {len(template.params)} arguments "
                f"({', '.join(template.params)}), not {len(args)}"
            )
        self.template = template
        self.args = args
        self.site: tuple[CodeType, int] | tuple[str, int] | None = None

    def located(self, depth: int = 2) -> Stage[T_contra, R_co]:
        """The same stage, knowing that it was assembled `depth` frames up."""
        frame = sys._getframe(1)
        for _ in range(depth - 1):
            frame = frame.f_back or frame
        made: Stage[T_contra, R_co] = Stage(self.template, *self.args)
        made.site = (frame.f_code, frame.f_lasti)
        return made

    @property
    def name(self) -> str:
        """The operator's name."""
        return self.template.name

    @property
    def assembled_at(self) -> str | None:
        """``file:line`` where the user put this stage into a flow."""
        site = self.site
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

    def __repr__(self) -> str:
        args = ", ".join(
            f"{name}={describe(value)}" if index or not callable(value) else describe(value)
            for index, (name, value) in enumerate(zip(self.template.params, self.args, strict=True))
        )
        return f"{self.name}({args})"

    def __reduce__(self) -> tuple[Any, ...]:  # Any: what object.__reduce__ is declared to return
        where = self.assembled_at
        site = None if where is None else (where.rpartition(":")[0], int(where.rpartition(":")[2]))
        return (_restore, (self.template, self.args, site))


def _restore(
    template: Template, args: tuple[object, ...], site: tuple[str, int] | None
) -> Stage[Any, Any]:  # Any: the types of the items do not travel with a pickle
    stage: Stage[Any, Any] = Stage(template, *args)
    stage.site = site
    return stage


def describe(value: object) -> str:
    """A short name for an argument: a function by its name and place, the rest by repr."""
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
        return getattr(value, "__name__", type(value).__name__)
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def _render(template: Template) -> Rendered:
    state = _parse(template, template.state)
    on_item = _parse(template, template.on_item)
    on_end = _parse(template, template.on_end)
    for name in template.params:
        if not name.isidentifier() or iskeyword(name) or name in _GLOBALS or name in _MARKERS:
            raise TemplateError(f"{template.name}: {name!r} cannot be the name of a parameter")
    if template.at_most and template.at_most not in template.params:
        raise TemplateError(f"{template.name}: at_most={template.at_most!r} is no parameter")
    private = set(template.params)
    for tree in (state, on_item, on_end):
        private |= {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
    private.discard("x")
    params = frozenset(template.params)
    calls = any(
        isinstance(node, ast.Call)
        and any(isinstance(part, ast.Name) and part.id in params for part in ast.walk(node.func))
        for tree in (state, on_item, on_end)
        for node in ast.walk(tree)
    )
    renamed = [_Rename(template, private).visit(tree) for tree in (state, on_item, on_end)]
    _Shape(template, "state", frozenset()).visit(renamed[0])
    shape = _Shape(template, "on_item", _MARKERS)
    shape.visit(renamed[1])
    end_shape = _Shape(template, "on_end", _MARKERS - {"STOP"})
    end_shape.visit(renamed[2])
    if shape.emits > 1 or end_shape.emits > 1:
        raise TemplateError(
            f"the template of {template.name!r} has more than one EMIT in a text: "
            "assign to x in the branches, and EMIT once after them"
        )
    texts = [list(_lines(tree.body, 0)) for tree in renamed]
    return Rendered(
        state=tuple(text for _, text in texts[0]),
        on_item=tuple(texts[1] or [(0, "pass")]),
        on_end=tuple(texts[2]),
        expands=shape.looped,
        drops=shape.emits == 0 or not shape.always,
        absorbs=shape.emits == 0,
        emits_at_end=end_shape.emits > 0,
        stops=shape.stops,
        calls_user_code=calls,
        nesting=max((depth for text in texts[1:] for depth, _ in text), default=0),
        loops=max(shape.nested_loops, end_shape.nested_loops),
    )


def _parse(template: Template, text: str) -> ast.Module:
    try:
        return ast.parse(textwrap.dedent(text).strip())
    except SyntaxError as error:
        raise TemplateError(
            f"the template of {template.name!r} is not Python: {error}\n{text}"
        ) from error


class _Rename(ast.NodeTransformer):
    """Give the stage's own names a slot, and refuse names that nobody gives a value."""

    def __init__(self, template: Template, private: set[str]) -> None:
        self._template = template
        self._private = private

    def visit_Name(self, node: ast.Name) -> ast.Name:
        if node.id in self._private:
            return ast.copy_location(ast.Name(f"{node.id}{SLOT}", node.ctx), node)
        if node.id not in _GLOBALS and node.id not in _MARKERS:
            raise TemplateError(
                f"the template of {self._template.name!r} uses {node.id!r}, which is neither one "
                f"of its params {self._template.params} nor assigned in it"
            )
        return node


class _Shape(ast.NodeVisitor):
    """Find out how often a template emits, by where its EMIT stands."""

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
                f"{self._text}: it is a statement of its own, and "
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
    """Statements as (depth, text); a loop that emits gets a named iterator and a pause point."""
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
                name = f"{SLOT}it{depth}"  # no name of the template's own looks like that
                lines.append((depth, f"{name} = iter({over})"))
                lines.append((depth, f"for {target} in {name}:"))
                lines += [*inner, (depth + 1, f"PAUSE {name}"), (depth, "LEAVE")]
            else:
                lines += [(depth, f"for {target} in {over}:"), *inner]
        else:
            lines += [(depth, line) for line in ast.unparse(statement).splitlines()]
    return lines
