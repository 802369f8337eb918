"""The part that all flows and programs with the same templates share, in a tree of templates."""

from __future__ import annotations

import linecache
from collections import deque
from collections.abc import Sequence
from itertools import count
from types import CodeType, FunctionType, GeneratorType
from typing import Any, Final, Protocol, TypeAlias, final
from weakref import finalize

from flow_core import hooks
from flow_core.demand import UNBOUNDED
from flow_core.stages._blame import OWNERS, Staged, annotate, caught, handler_of, no_item, none_item
from flow_core.stages._closing import ITERATED, close_all, exhausted
from flow_core.stages._codegen import Form, LoopWriter
from flow_core.stages._filtering import CHECK
from flow_core.stages._template import UNSET, Template

__all__ = [
    "ABSORBED",
    "CHECKED",
    "END",
    "MAX_DEPTH",
    "MAX_NODES",
    "MAX_SHAPES",
    "ROOT",
    "Node",
    "Shape",
    "node_of",
]


class _Loop(Protocol):
    """A generated function."""

    __code__: CodeType

    def __call__(self, *args: Any) -> GeneratorType[Any, Any, None]: ...


END: Final = object()
"""The object that a `FEED` loop gets after the last item."""


_FEW: Final = 5
_MAX_DEPTH: Final = 60
_MAX_LOOPS: Final = 8
_MAX_STAGES: Final = 1000
_Key: TypeAlias = int | tuple[int, ...]
MAX_DEPTH: Final = 64
MAX_NODES: Final = 4096
MAX_SHAPES: Final = 512


@final
class Shape:
    """The part that all programs with the same templates share: facts, and compiled loops.

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
        "hears",
        "single",
        "starts",
        "stops",
        "templates",
    )

    def __init__(self, templates: tuple[Template, ...]) -> None:
        self.templates = templates
        self._loops: dict[Form, _Loop] = {}
        self.files: list[str] = []
        """The names under which `linecache` has the loops."""
        rendered = [template.lines for template in templates]
        self.calls_user_code = any(lines.calls_user_code for lines in rendered)
        """True if a stage calls user code, so that the loop must not move to another thread."""
        self.accounts = any(
            lines.expands or lines.emits_at_end or lines.emits_at_start for lines in rendered
        )
        """True if the demand of the downstream is not that of the upstream: an item becomes
        several, or some come at the end."""
        self.stops = any(lines.stops for lines in rendered)
        """True if a stage may end the flow before its upstream does."""
        self.starts = any(lines.on_start for lines in rendered)
        """True if a stage does something before the first item."""
        self.ends = any(lines.on_end for lines in rendered)
        """True if a stage does something when the flow completes, even if only to fail."""
        self.handles = any(lines.on_error for lines in rendered)
        """True if a stage handles errors of the upstream."""
        self.closes = any(lines.on_close for lines in rendered)
        """True if a stage does something when the flow has ended, however it ended."""
        self.hears = self.starts or self.handles or self.closes
        """True if it matters to a stage that the source failed to start."""
        absorbs, one_to_one = False, True
        caps: list[tuple[int | None, int, bool]] = []
        bounds = [0]
        depth = loops = count = 0
        for index, (template, lines) in enumerate(zip(templates, rendered, strict=True)):
            absorbs = lines.absorbs or (absorbs and not lines.emits_at_start)
            at_most = template.at_most
            if isinstance(at_most, int):
                if at_most:
                    caps.append((None, at_most, one_to_one))
            elif at_most:
                caps.append((count + template.params.index(at_most), 0, one_to_one))
            count += len(template.params)
            one_to_one = one_to_one and not (lines.expands or lines.drops or lines.emits_at_start)
            depth += lines.nesting
            loops += lines.loops
            if depth > _MAX_DEPTH or loops > _MAX_LOOPS or index - bounds[-1] >= _MAX_STAGES:
                bounds.append(index)
                depth, loops = lines.nesting, lines.loops
        self.absorbs = absorbs
        """True if nothing is emitted before the upstream completes (or a stage ends the flow)."""
        self.caps = caps
        """The limits on the number of items: the index of the argument that gives it, or the number
        itself; and whether it also limits the source's items."""
        self.bounds = bounds
        """The positions at which the parts begin that each fit into one function."""
        self.single = len(bounds) == 1
        """True if all stages fit into one function."""

    def limits(self, args: tuple[object, ...]) -> tuple[int, int]:
        """Return how many upstream items can be used at most, and how many can come out."""
        limit = cap = UNBOUNDED
        for index, fixed, one_to_one in self.caps:
            count = fixed if index is None else args[index]
            if isinstance(count, int):
                cap = min(cap, count)
                limit = min(limit, count) if one_to_one else limit
        return limit, cap

    def loop(self, form: Form) -> _Loop:
        """Return the generated function in this form."""
        try:
            return self._loops[form]
        except KeyError:
            return self._compiled(form)

    def called(self, form: Form, made: Staged, args: tuple[object, ...]) -> FunctionType:
        """Return the generated function that a prepared flow calls with its items.

        Args:
            form: says whether the function returns the first result, or a list of all.
            made: the prepared flow.
            args: the arguments of all stages.
        """
        bind: Any = self.loop(form)  # Any: not a loop, but a function that makes one
        function: FunctionType = bind(made, args)
        return function

    def _compiled(self, form: Form) -> _Loop:
        out = LoopWriter(form, self.templates).write()
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
        loop.__code__ = _named(loop.__code__, names)
        # Threads may compile the same at once; the first one wins, and the other is not used.
        OWNERS[filename] = (tuple(out.owners), self.templates)
        linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
        self.files.append(filename)
        return self._loops.setdefault(form, loop)


@final
class Node:
    """A place in the tree of templates, shared by all flows with these templates in this order.

    The tree grows where flows are assembled, in any thread, even in a finaliser. Its size is
    bounded: if there are too many nodes, the oldest node leaves the tree, and is made again when it
    is needed. Flows keep their own node, and those before it. Flows of more than `MAX_DEPTH` stages
    share one node with all others that end in the same stage: this node knows its last template
    only.

    Args:
        before: the node of the templates before the last one; None at a root.
        templates: the last template; for the first node behind the root, also all templates of a
            long program.
        depth: the depth at which a root begins.
        absorbs: for a root: whether the sources of its flows are, or may be, an `AbsorbingSource`.
    """

    __slots__ = (
        "absorbs",
        "after",
        "before",
        "called",
        "checks",
        "deep",
        "depth",
        "few",
        "shape",
        "templates",
    )

    def __init__(
        self,
        before: Node | None = None,
        templates: tuple[Template, ...] = (),
        depth: int = 0,
        *,
        absorbs: bool = False,
    ) -> None:
        self.before: Final = before
        self.templates: Final = templates
        self.depth: Final[int] = depth if before is None else before.depth + 1
        self.checks: Final[bool] = CHECK in templates[:1] or (before is not None and before.checks)
        """True if the first stage is the check for None that the compiler has added."""
        self.called: tuple[int, ...] = ()
        """The indices of the arguments of its last stage that have to be functions."""
        self.absorbs: Final[bool] = absorbs if before is None else before.absorbs
        self.after: dict[_Key, Node]
        """The nodes with one template more, by the id of that template; each of these nodes keeps
        its template alive."""
        self.after = {} if before is None or self.depth < MAX_DEPTH else _DEEP.after
        self.deep: Final[bool] = self.depth > MAX_DEPTH
        """True if this node knows its last template only."""
        self.few: Final[bool] = self.depth <= _FEW
        """True if the flows of this node hold the arguments of all stages, not only of the last."""
        self.shape: Shape | None = None
        """The shape of the templates, once `shaped` has been called."""

    def then(self, template: Template) -> Node:
        """Return the node of these templates and one more."""
        # By index: without the GIL, `get` of Python 3.13 locks the dict twice, and waits for
        # itself.
        try:
            return self.after[id(template)]
        except KeyError:
            before = self if self.depth < MAX_DEPTH else _DEEP
            return before._grown((template,))

    def _grown(self, templates: tuple[Template, ...]) -> Node:
        made, key = Node(self, templates), _key_of(templates)
        if len(templates) == 1:
            made.called = templates[0].lines.called
        # The first of the threads that come here at once wins.
        node = self.after.setdefault(key, made)
        if node is made:
            _note(_grown, MAX_NODES, self, key)
        return node

    def shaped(self) -> Shape:
        """Return the shape of the templates: what all flows with these templates share.

        It is made when a flow first runs through all of them.
        """
        if self.shape is not None:
            return self.shape
        templates: list[Template] = []
        node: Node | None = self
        while node is not None:
            templates += reversed(node.templates)
            node = node.before
        made = Shape(tuple(reversed(templates)))
        # Its loops are known for as long as there is a program that may run them.
        finalize(made, _forget, made.files)
        # Threads may come here at once: each of their shapes is right, and the last one stays.
        self.shape = made
        if self.before is not None:
            _note(_shaped, MAX_SHAPES, self.before, _key_of(self.templates))
        return made


def node_of(templates: list[Template]) -> Node:
    """Return the node of these templates, however many there are."""
    node = ROOT
    if len(templates) <= MAX_DEPTH:
        for template in templates:
            node = node.then(template)
        return node
    try:
        return node.after[_key_of(templates)]
    except KeyError:
        return node._grown(tuple(templates))


def _key_of(templates: Sequence[Template]) -> _Key:
    if len(templates) == 1:
        return id(templates[0])
    return tuple([id(template) for template in templates])


def _note(places: deque[tuple[Node, _Key]], most: int, before: Node, key: _Key) -> None:
    """Note the place of a new node; if there are too many, the oldest one leaves the tree."""
    places.append((before, key))
    if len(places) > most:
        node, oldest = places.popleft()
        node.after.pop(oldest, None)


def _named(code: CodeType, name: str) -> CodeType:
    """Return the code under this name, for profilers; the function made of it has the same name."""
    consts = tuple(
        [
            _named(const, name) if isinstance(const, CodeType) and const.co_argcount else const
            for const in code.co_consts
        ]
    )
    return code.replace(co_name=name, co_qualname=name, co_consts=consts)


def _forget(files: list[str]) -> None:
    for filename in files:
        OWNERS.pop(filename, None)
        linecache.cache.pop(filename, None)


ROOT: Final = Node()
"""The node without a template."""

CHECKED: Final = Node(ROOT, (CHECK,))
"""The node of flows whose source may emit None: their first stage checks for None."""

ABSORBED: Final = Node(absorbs=True)
"""The node without a template behind an `AbsorbingSource`; such a source runs the stages elsewhere
if it can."""

_DEEP: Final = Node(depth=MAX_DEPTH, absorbs=True)
"""The root of the nodes for chains that are too long for the tree, behind any source."""

_grown: Final = deque[tuple[Node, _Key]]()
"""The nodes in the tree, oldest first, each as the node before it and its key there."""
_shaped: Final = deque[tuple[Node, _Key]]()
"""Those of the nodes in the tree that have a shape."""

_NAMESPACE: Final = {
    "UNSET": UNSET,
    "END": END,
    "annotate": annotate,
    "caught": caught,
    "close_all": close_all,
    "exhausted": exhausted,
    "handler": handler_of,
    "hooks": hooks,
    "iterated": ITERATED,
    "no_item": no_item,
    "none_item": none_item,
}
_serial: Final = count()
