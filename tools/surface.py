"""Write the methods of `Flow` that other packages execute, from the factories of those packages.

    python tools/surface.py            write packages/flow-core/src/flow_core/surface
    python tools/surface.py --check    fail if a file is not what would be written

A record whose ``method`` is a name becomes a method of that name. Its signature, overloads,
defaults and text are those of the factory; its body is one line that calls the factory. The script
parses files and imports nothing, and ruff formats the result.

A record of a source becomes a function of `flow_core`, with its own signature.

The methods of a rail of a `ParallelFlow` are made from those of `Flow`: from each one that returns
a flow, except those in `NOT_OF_RAILS` and those that `ParallelFlow` itself defines.

In the signature of a method:

* the item type of the factory's `Operator`, its ``T``, becomes ``T_co`` of the class; the result
  type is the operator's;
* a parameter of type ``T`` itself gets a separate type, ``D``, and the items are ``T_co | D``;
* an operator of ``Flow[T]``, such as `merge_all`, annotates ``self`` with that type;
* for a source of several flows, such as `zip`, the first flow is ``self`` and the rest are
  ``others``; overloads of one flow, or of an iterable of flows, are omitted;
* an overload has the defaults of the implementation, so that editors show them;
* a name of another package is refused, except for an alias, which is expanded.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import copy
import difflib
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent
FOLDER: Final = "packages/flow-core/src/flow_core/surface"
PACKAGES: Final = ("flow-multicast", "flow-ops", "flow-spark")
"""Packages whose operators become methods; the class of each is named after its package."""

NO_FUNCTIONS: Final = ("flow-spark",)
"""Packages whose sources do not become functions of `flow_core`."""

THEMES: Final = ("transform", "filtering", "aggregate", "combining", "recovery", "effects")
"""The modules that hold the core's own methods of `Flow`."""

NOT_OF_RAILS: Final = frozenset(
    {
        "delay_subscription",
        "observe_on",  # this and the next one correspond to run_on()
        "on_processes",
        "repeat",
        "repeat_until",
        "repeat_when",
        "retry",
        "retry_when",
        "start_with_flows",
        "subscribe_on",
        "zip_with_iterable",
    }
)
"""Methods that make no sense in a rail, which has one subscription, made at once."""

CLASS: Final = "T_co"
"""The type variable of the items in the class of the methods."""

OTHER: Final = "D"
"""The type variable of the items of other flows."""


class RefusedError(Exception):
    """The error for a factory that cannot become a method; it says why, and what to do."""


class Record(NamedTuple):
    """The record of an operator or source: the name of its method, and the path of its factory."""

    method: str | None
    target: str
    is_source: bool


@dataclass(eq=False)
class Module:
    """A parsed file, and the meaning of its names."""

    name: str
    tree: ast.Module
    defined: dict[str, ast.expr | ast.ClassDef] = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)
    functions: dict[str, list[ast.FunctionDef]] = field(default_factory=dict)

    def functions_of(self, name: str) -> list[ast.FunctionDef]:
        """Return a function after its overloads; for an alias, the function that it names."""
        match self.defined.get(name):
            case ast.Name(id=called):
                name = called
        return self.functions.get(name, [])

    def __post_init__(self) -> None:
        for node in flattened(self.tree.body):
            match node:
                case ast.Import():
                    for alias in node.names:
                        self.imported[alias.asname or alias.name] = alias.name
                case ast.ImportFrom(module=str(module)):
                    for alias in node.names:
                        self.imported[alias.asname or alias.name] = f"{module}:{alias.name}"
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self.defined[name] = value
                case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                    self.defined[name] = value
                case ast.ClassDef():
                    self.defined[node.name] = node
                case ast.FunctionDef():
                    self.functions.setdefault(node.name, []).append(node)


class Library:
    """The sources of all packages below a folder.

    Args:
        root: the folder that contains `packages`.
    """

    def __init__(self, root: Path) -> None:
        self._paths: dict[str, Path] = {}
        self._modules: dict[str, Module] = {}
        for source in sorted(root.glob("packages/*/src")):
            for path in sorted(source.rglob("*.py")):
                if path.parent == root / FOLDER:
                    continue  # files that this script writes
                parts = path.relative_to(source).with_suffix("").parts
                self._paths[".".join(part for part in parts if part != "__init__")] = path

    def module(self, name: str) -> Module | None:
        """Return a module of the packages, parsed; None if no package here has it."""
        if name not in self._modules and name in self._paths:
            tree = ast.parse(self._paths[name].read_text("utf-8"))
            self._modules[name] = Module(name, tree)
        return self._modules.get(name)

    def add(self, name: str, text: str) -> Module:
        """Add a module that is not on disk, and return it."""
        return self._modules.setdefault(name, Module(name, ast.parse(text)))

    def records(self, package: str) -> list[Record]:
        """Return a package's records of its operators and sources, in alphabetical order."""
        plugin = self.module(f"{package}._plugin")
        found: dict[str, Record] = {}
        for node in ast.walk(plugin.tree) if plugin else ():
            if not isinstance(node, ast.Call):
                continue
            given = {each.arg: constant(each.value) for each in node.keywords}
            match node:
                case ast.Call(
                    func=ast.Name(id="OperatorSpec" | "SinkSpec" | "SourceSpec" as kind),
                    args=[ast.Constant(value=str(name)), ast.Constant(value=str(target))],
                ):
                    method = given.get("method")
                case ast.Call(
                    func=ast.Attribute(
                        value=ast.Name(id="OperatorSpec" | "SinkSpec" | "SourceSpec" as kind),
                        attr="of",
                    ),
                    args=[ast.Attribute(attr=name)],
                ) if target := given.get("target"):
                    method = given.get("method")
                case ast.Call(
                    func=ast.Name(id="_operator" | "_source" as kind),
                    args=[ast.Constant(value=str(name)), _],
                ):
                    method = given.get("method", name)
                    target = self._target(package, name)
                case _:
                    continue
            found[method or name] = Record(method, target, kind in {"SourceSpec", "_source"})
        return [record for _, record in sorted(found.items())]

    def _target(self, package: str, name: str) -> str:
        """Return the path of a function that a package exports."""
        module = self.module(package)
        while module is not None and name not in module.functions:
            path, _, name = module.imported[name].partition(":")
            module = self.module(path)
        if module is None:
            raise RefusedError(f"{package} has no function {name!r}")
        return f"{module.name}:{name}"

    def home(self, module: Module, name: str) -> tuple[Module, str] | str | None:
        """Return the origin of a name: a module here and a name, a path elsewhere, or None."""
        while name not in module.defined and name in module.imported:
            path, _, attribute = module.imported[name].partition(":")
            there = self.module(path)
            if there is None or not attribute:
                return module.imported[name]
            module, name = there, attribute
        return (module, name) if name in module.defined else None


class Page:
    """One file of the methods of one package.

    Args:
        library: the sources that contain the factories.
        package: the name of the package's distribution.
    """

    def __init__(self, library: Library, package: str) -> None:
        self._library = library
        self._package = package
        self._variables: dict[str, str] = {}
        self._imports: dict[str, set[str]] = {}
        self._homes: dict[str, str] = {}
        self._modules: set[str] = set()
        self._at_run_time: dict[str, set[str]] = {}
        self._names: list[str] = []
        self._class = package.removeprefix("flow-").capitalize() + "Methods"

    def text(self) -> str:
        """Return the text of the file, not formatted."""
        short = self._package.removeprefix("flow-")
        records = self._library.records(self._package.replace("-", "_"))
        methods = [self._method(each) for each in records if "." not in (each.method or ".")]
        words = [self._method(each) for each in records if "." in (each.method or "")]
        made: list[str] = []
        if words:
            cls = f"{short.capitalize()}Words"
            methods.append(
                f"@property\ndef {short}(self) -> {cls}[{CLASS}]:\n"
                f'    """What else {self._package} does with a flow: `{cls}`."""\n'
                f"    return {cls}(self)"
            )
            about = f"The methods of ``flow.{short}``, for flows that {self._package} runs."
            made = self._class_of(cls, "Words", about, words)
        about = f"The methods of `Flow` that {self._package} executes."
        made = [*self._class_of(self._class, "Fluent", about, methods), *made]
        return self._file(f"What {self._package} does with a flow", made)

    def _class_of(self, name: str, base: str, about: str, methods: Sequence[str]) -> list[str]:
        """Return the lines of a class that has these methods."""
        self._variables[CLASS] = f'TypeVar("{CLASS}", covariant=True)'
        self._at_run_time.setdefault("flow_core.stages._fluent", set()).add(base)
        self._names.append(name)
        return [
            f"class {name}({base}[{CLASS}], Generic[{CLASS}]):",
            f'    """{about}"""',
            *([f'    _package: ClassVar[str] = "{self._package}"'] * (self._package in PACKAGES)),
            "    __slots__ = ()",
            *(textwrap.indent(each, "    ") for each in methods),
        ]

    def _file(self, what: str, made: Sequence[str]) -> str:
        """Return the file that contains the generated code."""
        self._import("flow_core.flow", "Flow", "Flow", self._package)
        lines = [
            f'"""{what}; written by tools/surface.py."""',
            '# mypy: disable-error-code="no-any-return, import-untyped"',
            "from __future__ import annotations",
            "from typing import TYPE_CHECKING, ClassVar, Final, Generic, TypeVar, overload",
            *imports(self._at_run_time),
            "if TYPE_CHECKING:",
            *(f"    import {name}" for name in sorted(self._modules)),
            *(f"    {line}" for line in imports(self._imports)),
            "",
            f"__all__ = {sorted(self._names)}",
            "",
            *(f"{name} = {value}" for name, value in sorted(self._variables.items())),
            *made,
        ]
        return "\n".join(lines) + "\n"

    def _method(self, record: Record) -> str:
        path, _, name = record.target.partition(":")
        module = self._library.module(path)
        functions = module.functions_of(name) if module else ()
        if module is None or not functions:
            raise RefusedError(f"{record.target} is not a function of the packages")
        *overloads, factory = functions
        if record.is_source:
            where = record.target
            overloads = [each for node in overloads if (each := method_of_several(node, where))]
            factory = method_of_several(factory, where) or factory
        said = [
            self._signature(module, each, factory, record)
            for each in overloads
            if not any(is_part_of(each, other) for other in overloads if other is not each)
        ]
        whole = self._signature(module, factory, factory, record)
        if len(said) == 1:
            whole = said.pop()  # there is only one overload
        chosen = [f"@overload\n{each}: ..." for each in said]
        how = "_combined" if record.is_source else "_plugged"
        body = f'    return self.{how}("{record.target}"{"".join(passed_on(factory.args))})'
        text = documentation(factory, self._package, record)
        return "\n".join([*chosen, f"{whole}:", textwrap.indent(text, "    "), body])

    def _signature(
        self, module: Module, node: ast.FunctionDef, factory: ast.FunctionDef, record: Record
    ) -> str:
        """Return ``def name(self, …) -> …``, on one line."""
        where = f"{record.target}"
        takes, gives = taken_and_given(node.returns, where)
        given = copy.deepcopy(node.args)
        of_self: ast.expr | None = None
        renamed: dict[str, ast.expr] = {}
        other = OTHER
        match takes:
            case ast.Name(id="Any" | "object"):
                pass
            case ast.Name(id=variable):
                renamed[variable] = ast.Name(CLASS)
                bound = self._bound(module, variable)
                if bound is not None:
                    # Expanded, since mypy does not check a type variable's bound here.
                    of_self = ast.Subscript(ast.Name(self._class), bound)
                    other = variable
            case ast.Subscript():
                of_self = ast.Subscript(ast.Name(self._class), takes)
            case _:
                raise RefusedError(f"{where} takes {ast.unparse(takes)}: not known how to say")
        result = dict(renamed)
        for each in parameters(given):
            if each.annotation is None:
                raise RefusedError(f"{where}: {each.arg} has no type")
            of_flows = published(each.annotation) if each is given.vararg else None
            items = of_flows or each.annotation
            if isinstance(items, ast.Name) and items.id in renamed:
                result[items.id] = either(ast.Name(CLASS), ast.Name(other))
                its: ast.expr = ast.Name(other)
                if of_flows:
                    its = ast.Subscript(ast.Name("Publisher"), its)
                    renamed = result  # a function receives the items of all flows
                each.annotation = self._said(module, its, {}, where)
            else:
                each.annotation = self._said(module, each.annotation, renamed, where)
        self._set_defaults(given, factory.args, module, where)
        me = ast.arg("self", of_self and self._said(module, of_self, {}, where))
        (given.posonlyargs or given.args).insert(0, me)
        given_back = self._said(module, gives, result, where)
        return signature((record.method or "").rpartition(".")[2], given, given_back)

    def _said(
        self, module: Module, annotation: ast.expr, renamed: Mapping[str, ast.expr], where: str
    ) -> ast.expr:
        """Return an annotation with its names as in the file; record the imports they need."""
        page = self

        class Names(ast.NodeTransformer):
            def visit_Name(self, node: ast.Name) -> ast.expr:
                if node.id in renamed:
                    return renamed[node.id]
                return page._name(module, node.id, where)

            def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
                first = ast.unparse(node).partition(".")[0]
                page._modules.add(module.imported.get(first, first))
                return node

        said: ast.expr = Names().visit(copy.deepcopy(annotation))
        return said

    def _name(self, module: Module, name: str, where: str) -> ast.expr:
        if name == OTHER:
            self._variables[OTHER] = f'TypeVar("{OTHER}")'
        if name in {CLASS, OTHER, self._class}:
            return ast.Name(name)
        home = self._library.home(module, name)
        if home is None:
            if hasattr(builtins, name):
                return ast.Name(name)
            raise RefusedError(f"{where} names {name}, which is nowhere")
        if isinstance(home, str):
            path, _, attribute = home.partition(":")
            self._import(path, attribute, name, where)
            return ast.Name(name)
        there, called = home
        meaning = there.defined[called]
        if isinstance(meaning, ast.Call) and ast.unparse(meaning.func) == "TypeVar":
            bound = self._bound(there, called)
            if bound is not None:
                named = ast.unparse(self._said(there, bound, {}, where))
                meaning = copy.deepcopy(meaning)
                meaning.keywords = [ast.keyword("bound", ast.Constant(named))]
            made = ast.unparse(meaning)
            if self._variables.setdefault(called, made) != made:
                raise RefusedError(
                    f"{where}: {called} is {made} there, and {self._variables[called]} elsewhere; "
                    "give it another name"
                )
            return ast.Name(called)
        if there.name.partition(".")[0] == "flow_core":
            self._import(there.name, called, called, where)
            return ast.Name(called)
        if isinstance(meaning, ast.ClassDef):
            raise RefusedError(
                f"{where} names {called} of {there.name}, which the core does not know: move it "
                "to the core"
            )
        if isinstance(meaning, ast.Constant) and isinstance(meaning.value, str):
            meaning = ast.parse(meaning.value, mode="eval").body
        return self._said(there, meaning, {}, where)

    def _import(self, path: str, attribute: str, name: str, where: str) -> None:
        """Record that the file needs a name of another module."""
        home = f"{path}.{attribute}"
        if self._homes.setdefault(name, home) != home:
            raise RefusedError(
                f"{where}: {name} is {home} there, and {self._homes[name]} elsewhere; import one "
                "of them under another name"
            )
        said = attribute if name == attribute else f"{attribute} as {name}"
        self._imports.setdefault(path, set()).add(said)

    def _bound(self, module: Module, variable: str) -> ast.expr | None:
        """Return the bound of a type variable."""
        home = self._library.home(module, variable)
        match home[0].defined[home[1]] if isinstance(home, tuple) else None:
            case ast.Call(keywords=[*keywords]):
                return next((each.value for each in keywords if each.arg == "bound"), None)
        return None

    def _set_defaults(
        self, given: ast.arguments, factory: ast.arguments, module: Module, where: str
    ) -> None:
        known = defaults(factory)
        for name, default in defaults(given).items():
            if isinstance(default, ast.Constant) and default.value is ...:
                default = known[name]  # noqa: PLW2901 - of the implementation
            if isinstance(default, ast.Name) and not hasattr(builtins, default.id):
                home = self._library.home(module, default.id)
                constant = home[0].defined[home[1]] if isinstance(home, tuple) else None
                if isinstance(constant, ast.Constant):
                    default = constant  # noqa: PLW2901 - its value, for readers
                elif isinstance(home, tuple) and home[0].name.startswith("flow_core."):
                    self._at_run_time.setdefault(home[0].name, set()).add(home[1])
                else:
                    raise RefusedError(f"{where}: the default of {name} is not a plain value")
            elif isinstance(default, ast.Attribute):
                self._at_run_time.setdefault("", set()).add(ast.unparse(default.value))
            set_default(given, name, default)


class RailsPage(Page):
    """The file of the methods of a rail of a `ParallelFlow`.

    Args:
        library: the sources that contain the methods of `Flow`.
        pages: the texts generated for packages, by the names of their modules.
    """

    def __init__(self, library: Library, pages: Mapping[str, str]) -> None:
        super().__init__(library, "flow-rail")
        self._modules_of_flow = [
            *(library.module(f"flow_core.stages._{theme}") for theme in THEMES),
            *(library.add(name, text) for name, text in pages.items()),
        ]
        parallel = library.module("flow_core.parallel")
        written = parallel.defined.get("ParallelFlow") if parallel else None
        self._own = {
            node.name
            for node in (written.body if isinstance(written, ast.ClassDef) else ())
            if isinstance(node, ast.FunctionDef)
        }

    def text(self) -> str:
        """Return the text of the file, not formatted."""
        methods: dict[str, str] = {}
        for module in self._modules_of_flow:
            for cls in module.defined.values() if module else ():
                if module and isinstance(cls, ast.ClassDef):
                    methods |= dict(self._methods(module, cls))
        about = "The methods of `ParallelFlow` that are those of `Flow`, in each rail."
        texts = [text for _, text in sorted(methods.items())]
        made = self._class_of(self._class, "Rails", about, texts)
        return self._file("What a rail of a `ParallelFlow` does", made)

    def _methods(self, module: Module, cls: ast.ClassDef) -> Iterator[tuple[str, str]]:
        """Yield the methods of a class whose base is `Fluent`, with their names."""
        if not any(ast.unparse(base).startswith("Fluent[") for base in cls.bases):
            return
        functions: dict[str, list[ast.FunctionDef]] = {}
        for node in cls.body:
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                functions.setdefault(node.name, []).append(node)
        for name, (*overloads, whole) in functions.items():
            if name in self._own or name in NOT_OF_RAILS or "self._combined(" in ast.unparse(whole):
                continue
            if not isinstance(of_flow(whole.returns), ast.expr):
                continue
            said = [self._said_of_rails(module, cls, each, whole) for each in [*overloads, whole]]
            given = copy.deepcopy(whole.args)
            del (given.posonlyargs or given.args)[0]
            first = (ast.get_docstring(whole) or "").partition("\n\n")[0]
            yield (
                name,
                "\n".join(
                    [
                        *(f"@overload\n{each}: ..." for each in said[:-1]),
                        f"{said[-1]}:",
                        f'    """{first}\n\n    In each rail; see `Flow.{name}`.\n    """',
                        f'    return self._each("{name}"{"".join(passed_on(given))})',
                    ]
                ),
            )

    def _said_of_rails(
        self, module: Module, cls: ast.ClassDef, node: ast.FunctionDef, whole: ast.FunctionDef
    ) -> str:
        """Return the signature of a method of a flow, adapted to rails."""
        where = f"Flow.{node.name}"
        renamed: dict[str, ast.expr] = {cls.name: ast.Name(self._class)}
        given = copy.deepcopy(node.args)
        for each in parameters(given):
            if each.annotation:
                each.annotation = self._said(module, each.annotation, renamed, where)
        self._set_defaults(given, whole.args, module, where)
        items = of_flow(node.returns)
        if items is None:
            raise RefusedError(f"{where} gives a flow, and {ast.unparse(node)} does not")
        self._import("flow_core.parallel", "ParallelFlow", "ParallelFlow", where)
        made = ast.Subscript(ast.Name("ParallelFlow"), self._said(module, items, {}, where))
        return signature(node.name, given, made)


class FunctionsPage(Page):
    """The file of the sources that packages execute, as functions of `flow_core`.

    Args:
        library: the sources that contain the functions.
        packages: the names of the packages' distributions.
    """

    def __init__(self, library: Library, packages: Sequence[str]) -> None:
        super().__init__(library, "flow-core")
        self._packages = packages

    def text(self) -> str:
        """Return the text of the file, not formatted."""
        self._at_run_time["flow_core.surface.factories"] = {"factory_of"}
        made: dict[str, str] = {}
        packages: dict[str, str] = {}
        for package in self._packages:
            for record in self._library.records(package.replace("-", "_")):
                if record.is_source and package not in NO_FUNCTIONS:
                    name = record.target.partition(":")[2]
                    made[name] = self._function(package, record)
                    packages[name] = package
        self._names = ["PACKAGES", *made]
        what = "The functions of `flow_core` that other packages execute"
        whose = f"PACKAGES: Final = {dict(sorted(packages.items()))}"
        about = '"""Which one executes which."""'
        return self._file(what, [whose, about, *(text for _, text in sorted(made.items()))])

    def _function(self, package: str, record: Record) -> str:
        path, _, name = record.target.partition(":")
        module = self._library.module(path)
        if module is None or not module.functions_of(name):
            raise RefusedError(f"{record.target} is not a function of the packages")
        *overloads, factory = module.functions_of(name)
        said = [self._as_it_is(module, each, factory, record) for each in [*overloads, factory]]
        chosen = [f"@overload\n{each}: ..." for each in said[:-1]]
        text = textwrap.indent(documentation(factory, package, record), "    ")
        given = "".join(passed_on(factory.args)).removeprefix(", ")
        body = f'    return factory_of("{record.target}")({given})'
        return "\n".join([*chosen, f"{said[-1]}:", text, body])

    def _as_it_is(
        self, module: Module, node: ast.FunctionDef, factory: ast.FunctionDef, record: Record
    ) -> str:
        """Return the signature of a function, with its names as in the file."""
        where = record.target
        if node.returns is None:
            raise RefusedError(f"{where} does not say what it returns")
        given = copy.deepcopy(node.args)
        for each in parameters(given):
            if each.annotation is None:
                raise RefusedError(f"{where}: {each.arg} has no type")
            each.annotation = self._said(module, each.annotation, {}, where)
        self._set_defaults(given, factory.args, module, where)
        return signature(node.name, given, self._said(module, node.returns, {}, where))


def imports(names: Mapping[str, set[str]]) -> Iterator[str]:
    """Yield an import line for each module; the empty name lists modules to import."""
    for module, those in sorted(names.items()):
        yield f"{f'from {module} ' * bool(module)}import {', '.join(sorted(those))}"


def signature(name: str, given: ast.arguments, gives: ast.expr) -> str:
    """Return ``def name(…) -> …``, on one line."""
    body: list[ast.stmt] = [ast.Expr(ast.Constant(...))]
    made = ast.FunctionDef(name, given, body, [], gives, type_params=[])
    return ast.unparse(ast.fix_missing_locations(made)).partition(":\n")[0]


def of_flow(annotation: ast.expr | None) -> ast.expr | None:
    """Return the type of the items of a flow."""
    match annotation:
        case ast.Subscript(value=ast.Name(id="Flow"), slice=items):
            return items
    return None


def flattened(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a body, including those under ``if``."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from flattened([*node.body, *node.orelse])


def taken_and_given(returned: ast.expr | None, where: str) -> tuple[ast.expr, ast.expr]:
    """Return the type arguments of the `Operator` of a factory; of two, the union of results."""
    match returned:
        case ast.Subscript(value=ast.Name(id="Operator"), slice=ast.Tuple(elts=[takes, gives])):
            return takes, gives
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            takes, first = taken_and_given(left, where)
            _, second = taken_and_given(right, where)
            return takes, either(first, second)
    raise RefusedError(f"{where} does not say that it returns an Operator[…, …]")


def constant(node: ast.expr) -> str | None:
    """Return the string that a node is, or None."""
    match node:
        case ast.Constant(value=str(text)):
            return text
    return None


def method_of_several(node: ast.FunctionDef, where: str) -> ast.FunctionDef | None:
    """Turn a source of several flows into the factory of an operator on the first of them.

    Returns:
        The factory, or None if there is no other flow.
    """
    made = copy.deepcopy(node)
    given = made.args
    first = (given.posonlyargs or given.args or [given.vararg])[0]
    takes = published(first.annotation if first else None)
    if first is None or takes is None:
        return None
    for positional in (given.posonlyargs, given.args):
        if first in positional:
            positional.remove(first)
            if not given.posonlyargs and not given.args:
                return None
            break
    else:
        first.arg = "others"
        first.annotation = ast.Subscript(ast.Name("Publisher"), takes)
    if given.vararg:
        given.vararg.arg = "others"
    if made.returns is None:
        raise RefusedError(f"{where} does not say what it returns")
    made.returns = ast.Subscript(ast.Name("Operator"), ast.Tuple([takes, made.returns]))
    text = ast.get_docstring(made)
    if text:
        made.body[0] = ast.Expr(ast.Constant(text_of_several(text, made.name, first.arg)))
    return made


def published(annotation: ast.expr | None) -> ast.expr | None:
    """Return the type of the items of a publisher."""
    match annotation:
        case ast.Subscript(value=ast.Name(id="Publisher"), slice=items):
            return items
        case ast.BinOp(left=left, op=ast.BitOr()):
            return published(left)
    return None


def text_of_several(text: str, name: str, first: str) -> str:
    """Return the text of a source of several flows, adapted to one flow and others."""
    text = re.sub(rf"^    {first}:.*\n(     .*\n)*", "", text, flags=re.MULTILINE)
    text = re.sub(r"^    sources:", "    others:", text, flags=re.MULTILINE)
    text = re.sub(r"(?<=\.)\s+Without flows it is empty\.", "", text)
    text = re.sub(r"; also one iterable of flows[^.]*", "", text).replace("`sources`", "`others`")
    return "\n".join(
        line[:4] + with_method(line[4:], name) if line.startswith((">>> ", "... ")) else line
        for line in text.splitlines()
    )


def with_method(line: str, name: str) -> str:
    """Return a line of code with ``flow.name(first, more)`` as ``first.name(more)``."""
    for node in ast.walk(ast.parse(line)):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="flow"), attr=called) as function,
                args=[first, second, *_],
            ):
                if called == name:
                    whole = line[first.col_offset : first.end_col_offset]
                    rest = line[second.col_offset :]
                    return f"{line[: function.col_offset]}{whole}.{name}({rest}"
    return line


def is_part_of(node: ast.FunctionDef, other: ast.FunctionDef) -> bool:
    """Return whether an overload takes flows of the operator's item type, and `other` any flows."""
    takes, _ = taken_and_given(node.returns, node.name)
    own = ast.unparse(node.args).replace(f"Flow[{ast.unparse(takes)}]", f"Publisher[{OTHER}]")
    return own == ast.unparse(other.args)


def either(left: ast.expr, right: ast.expr) -> ast.expr:
    """Return ``left | right``."""
    return ast.BinOp(left, ast.BitOr(), right)


def parameters(given: ast.arguments) -> list[ast.arg]:
    """Return all parameters, in the order of the signature."""
    found = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
    return [each for each in found if each]


def defaults(given: ast.arguments) -> dict[str, ast.expr]:
    """Return the default of each parameter that has one."""
    positional = [*given.posonlyargs, *given.args]
    last = positional[len(positional) - len(given.defaults) :]
    found = {each.arg: default for each, default in zip(last, given.defaults, strict=True)}
    for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        if default:
            found[each.arg] = default
    return found


def set_default(given: ast.arguments, name: str, default: ast.expr) -> None:
    """Replace the default of a parameter that has one."""
    positional = [each.arg for each in [*given.posonlyargs, *given.args]]
    if name in positional:
        given.defaults[positional.index(name) - len(positional)] = default
    else:
        given.kw_defaults[[each.arg for each in given.kwonlyargs].index(name)] = default


def passed_on(given: ast.arguments) -> Iterator[str]:
    """Yield the arguments with which a method calls its factory, each after a comma."""
    for each in [*given.posonlyargs, *given.args]:
        yield f", {each.arg}"
    if given.vararg:
        yield f", *{given.vararg.arg}"
    for each in given.kwonlyargs:
        yield f", {each.arg}={each.arg}"


def documentation(factory: ast.FunctionDef, package: str, record: Record) -> str:
    """Return the text of a factory, adapted to its method, in quotes.

    Raises:
        RefusedError: if the text does not fit the method.
    """
    text = ast.get_docstring(factory) or ""
    where = record.target
    name = where.partition(":")[2]
    if re.search(rf"^(>>>|\.\.\.).*(?<![.\w]){name}\(", text, re.MULTILINE):
        raise RefusedError(f"{where} has an example with the factory; write it with the method")
    if found := re.search(r"\((?:§\d|[A-Z]\d\d)[^)]*\)", text):
        raise RefusedError(f"{where} names a rule, {found[0]}, which tells its readers nothing")
    told = told_arguments(text)
    names = [each.arg for each in parameters(factory.args)]
    if told and told != names:
        raise RefusedError(
            f"{where} takes {', '.join(names)}, and its text tells of {', '.join(told)}; write "
            "each, in this order, under Args:"
        )
    if record.method not in {None, factory.name}:  # the method has another name
        text = text.replace(f"Also called `{record.method}`.", f"Another name of `{factory.name}`.")
    text = text.replace("An operator for `Flow.pipe`. Its flow", "A flow that")
    text = re.sub(r"^Source: .*(\n(?!\n).*)*\n?", "", text, flags=re.MULTILINE).rstrip()
    text = f"{text}\n\nExecuted by {package}: `{package.replace('-', '_')}.{name}`.\n"
    mark = 'r"""' if "\\" in text else '"""'
    return f'{mark}{text}"""'


def told_arguments(text: str) -> list[str]:
    """Return the names under ``Args:``."""
    section = re.search(r"^Args:\n((?: .*\n|\n)*)", text + "\n", re.MULTILINE)
    return re.findall(r"^    (\w+):", section[1], re.MULTILINE) if section else []


def pages(root: Path) -> dict[str, str]:
    """Return the texts to write, by their paths below `root`; not formatted."""
    library = Library(root)
    made = {package.removeprefix("flow-"): Page(library, package).text() for package in PACKAGES}
    # Only flow-ops' methods: a connectable of a rail would wait for ever.
    made["rails"] = RailsPage(library, {"flow_core.surface.ops": made["ops"]}).text()
    made["functions"] = FunctionsPage(library, PACKAGES).text()
    return {f"{FOLDER}/{name}.py": text for name, text in made.items()}


def formatted(text: str, root: Path) -> str:
    """Return the text of a module as ruff formats it."""
    for command in (["check", "--fix", "--select=I,F401,UP037", "--quiet"], ["format"]):
        made = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--stdin-filename=surface.py", "-"],
            input=text,
            capture_output=True,
            cwd=root,
            encoding="utf-8",
            check=False,
        )
        if made.returncode:
            raise RefusedError(f"ruff {command[0]}: {made.stdout}{made.stderr}")
        text = made.stdout
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or check that they are up to date."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    check = parser.parse_args(arguments).check
    stale = ""
    try:
        for name, made in pages(ROOT).items():
            path, text = ROOT / name, formatted(made, ROOT)
            old = path.read_text("utf-8") if path.exists() else ""
            lines = old.splitlines(True), text.splitlines(True)
            stale += "".join(difflib.unified_diff(*lines, name, "generated", n=0))
            if not check:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, "utf-8")
    except RefusedError as error:
        print(f"tools/surface.py: {error}", file=sys.stderr)
        return 1
    if check and stale:
        print(stale, "The methods are not what the packages say.", sep="\n")
        print("Run: python tools/surface.py")
    return int(check and bool(stale))


if __name__ == "__main__":
    raise SystemExit(main())
