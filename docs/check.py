"""Check the parts of the source that users read: docstrings, signatures, slots, typing tests.

    python docs/check.py    print the problems, as path:line, and fail if there are any

Files are parsed and nothing is imported, so it needs only Python. A name is public if `__all__`
lists it in a package, or in a module directly below one, as are the members that public classes
have or inherit.
"""

from __future__ import annotations

import ast
import builtins
import itertools
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent
FLOW: Final = "flow_core.flow.Flow"
OPERATORS: Final = "flow_core.operators"
SOURCES: Final = "flow_core.sources"
FLUENT: Final = "packages/flow-core/typing_tests/stages.py"
PLUGGED: Final = "packages/flow-core/typing_tests/surface.py"
PLUGGED_SPARK: Final = "packages/flow-core/typing_tests/surface_spark.py"
SURFACE: Final = "flow_core.surface."
"""The modules of the methods that other packages execute; those packages have the functions."""

ALSO_PUBLIC: Final = frozenset({"flow_core.sources.files"})
"""Modules at a deeper level that users import from."""

OTHER_STAGES: Final = frozenset({"stage"})
"""Functions of `flow_core.operators` that return a stage without a template of that name."""

PLAIN_SOURCES: Final = frozenset(
    {
        *("defer", "empty", "from_callable", "from_iterable", "just", "range", "repeat_value"),
        *("read_csv", "read_json_lines", "read_lines", "zip"),
        *("from_dataframe", "from_stream", "union"),
    }
)
"""Sources that only iterate: the requesting thread makes each item when it is requested."""

OPEN: Final = frozenset({"EmittingObserver", "ProcessorSubject"})
"""Classes whose instances have a `__dict__`, because their bases in reactivex have one."""

SLOTTED: Final = frozenset({"ABC", "Generic", "NamedTuple", "Protocol", "object"})
"""Bases from the standard library that do not give an instance a `__dict__`."""

ROLES: Final = ({"request", "cancel"}, {"on_next", "on_error"}, {"dispose", "disposed"})
"""Sets of methods: a class that exists per subscription has all methods of one of them."""

GIVES_FLOW: Final = re.compile(r"(Operator\[.*)?\b(\w*Flow|Connectable)\[")
"""Matches the return annotation of functions that make a flow or an operator, not a sink."""

ENUMS: Final = frozenset({"Enum", "Flag", "IntEnum", "IntFlag", "StrEnum"})

MIN_SUMMARY: Final = len("The value.")
"""The least number of characters of a summary."""

SPOKEN_OF: Final = {"demand": "demand|request", "threads": "thread|loop", "fusion": "fus(e|ion)"}
"""The topics that an operator's documentation must mention, and the words that do so."""

RULE: Final = re.compile(r"§\d+\.\d+|\b[ACFMOPX]\d\d\b")
"""Matches the id of a rule: a section of the specification, or an article."""

MENTIONING: Final = ("packages", "tests", "tck", "oracle")
"""Folders whose files may mention rules."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Finding(NamedTuple):
    """A problem, its location, and what to do about it."""

    path: Path
    line: int
    text: str


@dataclass(eq=False)
class Module:
    """A parsed file, and the meaning of its names."""

    name: str
    path: Path
    defined: dict[str, ast.stmt] = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for statement in self.statements:
            match statement:
                case ast.ImportFrom(module=str(module), level=0):
                    for alias in statement.names:
                        self.imported[alias.asname or alias.name] = f"{module}.{alias.name}"
                case ast.Assign(targets=[ast.Name(id=name)]):
                    self.defined[name] = statement
                case ast.AnnAssign(target=ast.Name(id=name)):
                    self.defined[name] = statement
        self.defined |= defined_in(self.statements)

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text("utf-8"), str(self.path))

    @cached_property
    def statements(self) -> list[ast.stmt]:
        return list(unconditioned(self.tree.body))

    @cached_property
    def public(self) -> list[str]:
        """The names in `__all__`."""
        listed = getattr(self.defined.get("__all__"), "value", None)
        elements = listed.elts if isinstance(listed, ast.List | ast.Tuple) else []
        return [str(each.value) for each in elements if isinstance(each, ast.Constant)]

    @property
    def is_public(self) -> bool:
        """True if users import from this module."""
        _, *path = self.name.split(".")
        private = any(part.startswith("_") for part in path)
        is_package = self.path.name == "__init__.py"
        return self.name in ALSO_PUBLIC or (not private and (len(path) < 2 or is_package))


@dataclass(eq=False)
class Thing:
    """A function or class, or a member of a class."""

    module: Module
    node: ast.ClassDef | Function
    owner: Thing | None = None

    @property
    def name(self) -> str:
        return f"{self.owner.name}.{self.node.name}" if self.owner else self.node.name

    def finding(self, text: str) -> Finding:
        return Finding(self.module.path, self.node.lineno, f"{self.name} {text}")


class Library:
    """The sources of all packages below a folder.

    Args:
        root: the folder that contains `packages`.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.modules: dict[str, Module] = {}
        for source in sorted(root.glob("packages/*/src")):
            for path in sorted(source.rglob("*.py")):
                parts = path.relative_to(source).with_suffix("").parts
                name = ".".join(part for part in parts if part != "__init__")
                self.modules[name] = Module(name, path)
        self._bases: dict[ast.ClassDef, list[Thing]] = {}

    def find(self, path: str) -> Thing | Module | None:
        """Return the object that ``package.module.name`` names, wherever it is defined."""
        if path in self.modules:
            return self.modules[path]
        before, _, name = path.rpartition(".")
        holder = self.find(before) if before else None
        if isinstance(holder, Thing):
            return self.members(holder).get(name)
        return self.named(holder, name) if holder else None

    def named(self, module: Module, name: str) -> Thing | Module | None:
        """Return the object for which a name, possibly with dots, stands in a module."""
        first, _, rest = name.partition(".")
        node = module.defined.get(first)
        found: Thing | Module | None = None
        if isinstance(node, ast.ClassDef | Function):
            found = Thing(module, node)
        elif first in module.imported:
            found = self.find(module.imported[first])
        if not rest or found is None:
            return found
        if isinstance(found, Module):
            return self.named(found, rest)
        return self.members(found).get(rest)

    def bases(self, cls: Thing) -> list[Thing]:
        """Return the class itself, and its bases that are defined in the packages."""
        assert isinstance(cls.node, ast.ClassDef)
        if cls.node not in self._bases:
            found: dict[ast.AST, Thing] = {cls.node: cls}
            for name in base_names(cls.node):
                base = self.named(cls.module, name)
                if isinstance(base, Thing) and isinstance(base.node, ast.ClassDef):
                    found |= {each.node: each for each in self.bases(base)}
            self._bases[cls.node] = list(found.values())
        return self._bases[cls.node]

    def foreign(self, cls: Thing) -> set[str]:
        """Return the names of the bases that are defined elsewhere."""
        return {
            name
            for each in self.bases(cls)
            for name in base_names(each.node)
            if self.named(each.module, name) is None
        }

    def members(self, cls: Thing) -> dict[str, Thing]:
        """Return the methods and properties of a class, including inherited ones."""
        found: dict[str, Thing] = {}
        for base in self.bases(cls):
            for name, node in defined_in(base.node.body).items():
                if isinstance(node, Function):
                    found.setdefault(name, Thing(base.module, node, base))
        return found

    def public_members(self, cls: Thing) -> dict[str, Thing]:
        """Return the methods and properties that users call."""
        members = self.members(cls)
        return {name: member for name, member in members.items() if not name.startswith("_")}

    @cached_property
    def things(self) -> list[Thing]:
        """All public functions, classes and members."""
        found: dict[ast.stmt, Thing] = {}
        for module in self.modules.values():
            for name in module.public if module.is_public else ():
                thing = self.named(module, name)
                if not isinstance(thing, Thing):
                    continue  # a constant, or a module
                found[thing.node] = thing
                if isinstance(thing.node, ast.ClassDef):
                    found |= {member.node: member for member in self.public_members(thing).values()}
        return list(found.values())

    @cached_property
    def classes(self) -> list[Thing]:
        """All classes, including private ones."""
        return [
            Thing(module, node)
            for module in self.modules.values()
            for node in module.statements
            if isinstance(node, ast.ClassDef)
        ]

    @cached_property
    def methods(self) -> dict[str, Thing]:
        """The public methods and properties of `Flow`."""
        flow = self.find(FLOW)
        return self.public_members(flow) if isinstance(flow, Thing) else {}

    def text(self, thing: Thing) -> str:
        """Return the documentation, which may be inherited."""
        alike = [thing]
        if thing.owner:
            every = (defined_in(base.node.body) for base in self.bases(thing.owner))
            found = [members.get(thing.node.name) for members in every]
            alike += [Thing(thing.module, node) for node in found if isinstance(node, Function)]
        elif isinstance(thing.node, ast.ClassDef):
            alike = self.bases(thing)
        return next(filter(None, (ast.get_docstring(each.node) for each in alike)), "")

    def referred(self, thing: Thing) -> list[str]:
        """Return the texts of the objects to which the documentation refers."""
        text = self.text(thing)
        names = re.findall(r"\b(?:[Ss]ee|[Aa]s|[Aa]s with|It is) `([\w.]+)`", text)
        holders = self.members(thing.owner) if thing.owner else {}
        found = [
            each
            for name in names
            for each in (holders.get(name), self.named(thing.module, name))
            if isinstance(each, Thing) and each.node is not thing.node
        ]
        return [self.text(each) for each in found]


def unconditioned(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a body, including those under `if` and `try`."""
    for statement in body:
        yield statement
        match statement:
            case ast.If():
                yield from unconditioned([*statement.body, *statement.orelse])
            case ast.Try():
                handled = [part for handler in statement.handlers for part in handler.body]
                yield from unconditioned([*statement.body, *handled, *statement.orelse])


def defined_in(body: Iterable[ast.stmt]) -> dict[str, ast.ClassDef | Function]:
    """Return the functions and classes of a body by name; for overloads, the implementation."""
    found: dict[str, ast.ClassDef | Function] = {}
    for node in body:
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                found[node.name] = found[node.name] if is_setter(node) else node
            case ast.Assign(targets=[ast.Name(id=alias)], value=ast.Name(id=name)) if name in found:
                found[alias] = found[name]
    return found


def is_setter(node: ast.ClassDef | Function) -> bool:
    names = {each.attr for each in node.decorator_list if isinstance(each, ast.Attribute)}
    return bool(names & {"setter", "deleter"})


def decorators(node: ast.ClassDef | Function) -> dict[str, ast.expr]:
    """Return the decorators of a function or a class, by the last part of their names."""
    called = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    names = [ast.unparse(each).rpartition(".")[2] for each in called]
    return dict(zip(names, node.decorator_list, strict=True))


def base_names(node: ast.AST) -> list[str]:
    bases = node.bases if isinstance(node, ast.ClassDef) else []
    return [ast.unparse(base.value if isinstance(base, ast.Subscript) else base) for base in bases]


def overloads(thing: Thing) -> list[Function]:
    """Return the signatures from which type checkers choose."""
    body = thing.owner.node.body if thing.owner else thing.module.statements
    return [
        node
        for node in body
        if isinstance(node, Function)
        and node.name == thing.node.name
        and "overload" in decorators(node)
    ]


# -- docstrings


def no_summary(library: Library) -> Iterator[Finding]:
    """Check that each public object says its purpose in one line."""
    for thing in library.things:
        first = library.text(thing).partition("\n")[0]
        if len(first) < MIN_SUMMARY:
            yield thing.finding("has no docstring; say in one line what it is for")
        elif first[-1] not in ".:?":
            yield thing.finding(
                f"has a first line that is not a sentence: {first!r}; end it with a full stop"
            )


def rules_by_their_ids(library: Library) -> Iterator[Finding]:
    """Check that public docstrings name no rules by their ids; only the testing kit's may."""
    for thing in library.things:
        if not thing.module.name.startswith("flow_testing"):
            for rule in RULE.findall(library.text(thing)):
                yield thing.finding(f"names {rule}; say in words what holds, or leave it out")


def untold_parameters(library: Library) -> Iterator[Finding]:
    """Check that each parameter is under ``Args:``, or that the text mentions its name."""
    for thing in library.things:
        text = library.text(thing)
        if is_told_elsewhere(thing, text) or text.startswith("`Flow"):
            continue
        told = [text, *library.referred(thing)]
        if isinstance(thing.node, ast.ClassDef):
            if is_described_otherwise(library, thing):
                continue
            told += [ast.get_docstring(base.node) or "" for base in library.bases(thing)]
            told += described_fields(thing.node)
        elif thing.owner:
            told.append(library.text(thing.owner))
        for name in parameters(library, thing):
            if not any(re.search(rf"\b{name}\b", said) for said in told):
                yield thing.finding(f"does not say what {name!r} is; add it under Args:")


def is_told_elsewhere(thing: Thing, text: str) -> bool:
    """Return whether another docstring has the rest: a referenced or an overridden one."""
    overrides = isinstance(thing.node, Function) and "override" in decorators(thing.node)
    return overrides or re.match(r"(As|See) `", text) is not None


def is_described_otherwise(library: Library, cls: Thing) -> bool:
    """Return whether users never call the class, or its bases say how: protocol, enum, error."""
    foreign = library.foreign(cls)
    return (
        "Protocol" in base_names(cls.node)
        or any(name.rpartition(".")[2] in ENUMS for name in foreign)
        or any(isinstance(getattr(builtins, name, None), type) for name in foreign - {"object"})
    )


def described_fields(cls: ast.ClassDef) -> list[str]:
    """Return the fields that have their own docstring beneath them."""
    return [
        ast.unparse(annotated.target)
        for annotated, text in itertools.pairwise(cls.body)
        if isinstance(annotated, ast.AnnAssign) and isinstance(text, ast.Expr)
    ]


def parameters(library: Library, thing: Thing) -> list[str]:
    """Return the parameters that a caller may name; the text describes the others in words."""
    names: Iterable[str] = ()
    if isinstance(thing.node, Function):
        names = parameters_of(thing.node)
    else:
        for base in library.bases(thing):
            made_by = defined_in(base.node.body)
            if isinstance(maker := made_by.get("__new__") or made_by.get("__init__"), Function):
                names = parameters_of(maker)
                break
            if "dataclass" in decorators(base.node) or "NamedTuple" in base_names(base.node):
                names = [name for each in library.bases(base) for name in fields(each.node)]
                break
    return [name for name in names if name[0] != "_" and name not in {"self", "cls"}]


def parameters_of(function: Function) -> list[str]:
    return [each.arg for each in [*function.args.args, *function.args.kwonlyargs]]


def fields(cls: ast.AST) -> list[str]:
    """Return the fields that a dataclass or a named tuple takes."""
    return [
        each.target.id
        for each in (cls.body if isinstance(cls, ast.ClassDef) else ())
        if isinstance(each, ast.AnnAssign)
        and isinstance(each.target, ast.Name)
        and "ClassVar" not in ast.unparse(each.annotation)
        and not (each.value and "init=False" in ast.unparse(each.value))
    ]


def unnamed_errors(library: Library) -> Iterator[Finding]:
    """Check that docstrings name the errors, except TypeError and those of the kit's tests."""
    for thing in library.things:
        text = library.text(thing)
        if not isinstance(thing.node, Function) or is_told_elsewhere(thing, text):
            continue
        if thing.node.name.startswith("test_"):
            continue  # a test of the kit
        if thing.owner:
            text += library.text(thing.owner)
        errors = raised(thing.node) - {"TypeError", "AssertionError", "NotImplementedError"}
        for error in sorted(errors):
            if error[0].isupper() and error not in text:
                yield thing.finding(f"raises {error} and does not say when; add it under Raises:")


def raised(function: Function) -> set[str]:
    """Return the names of the errors that a function itself raises, not those it passes on."""
    inner = [
        node
        for node in ast.walk(function)
        if node is not function and isinstance(node, Function | ast.Lambda)
    ]
    nested = {part for function_ in inner for part in ast.walk(function_)}
    return {
        node.exc.func.id
        for node in ast.walk(function)
        if isinstance(node, ast.Raise)
        and node not in nested
        and isinstance(node.exc, ast.Call)
        and isinstance(node.exc.func, ast.Name)
    }


def silent_about_stages(library: Library) -> Iterator[Finding]:
    """Check that the package of the stages describes what is the same for all of them."""
    if module := library.modules.get("flow_core.stages"):
        text = ast.get_docstring(module.tree) or ""
        for word in ("Demand:", "Thread:", "Fusion:", "Errors:"):
            if word not in text:
                yield Finding(
                    module.path,
                    1,
                    f"does not say {word!r} for all stages; add it to this docstring",
                )


def silent_operators(library: Library) -> Iterator[Finding]:
    """Check that other operators, and sources that do not only iterate, cover each topic."""
    for thing in operators_and_sources(library):
        told = [library.text(thing), *library.referred(thing)]
        text = "\n".join(told).lower()
        for what, words in SPOKEN_OF.items():
            if not re.search(words, text):
                yield thing.finding(f"says nothing about {what}; add it to the docstring")


def operators_and_sources(library: Library) -> Iterator[Thing]:
    """Yield the operators and sources whose documentation must cover demand, threads and fusion."""
    ours = {OPERATORS, SOURCES}
    names = {
        name for module in ours & library.modules.keys() for name in library.modules[module].public
    }
    for module in library.modules.values():
        if "flow_operators" in module.defined or "flow_sources" in module.defined:
            # A record names its function, or refers to it.
            for each in ast.walk(module.tree):
                match each:
                    case ast.Constant(value=str(name)) | ast.Attribute(attr=name):
                        names.add(name)
    names -= {*stage_names(library), *OTHER_STAGES, *PLAIN_SOURCES}
    for name, method in library.methods.items():
        if name in names and not method.module.name.startswith(SURFACE):
            yield method
    for thing in library.things:
        name, returns = thing.node.name, getattr(thing.node, "returns", None)
        gives_flow = returns and GIVES_FLOW.match(ast.unparse(returns))
        if name in names and gives_flow and not thing.owner:
            yield thing


def stage_names(library: Library) -> Iterator[str]:
    """Yield the names of the templates."""
    for module in library.modules.values():
        if module.name.startswith("flow_core.stages."):
            for node in ast.walk(module.tree):
                match node:
                    case ast.Call(
                        func=ast.Name(id="Template"), args=[ast.Constant(value=str(name)), *_]
                    ):
                        yield name


# -- signatures


def vague_parameters(library: Library) -> Iterator[Finding]:
    """Check for vague Any parameters: a TOML pipeline only knows the function itself."""
    methods = [
        method
        for method in library.methods.values()
        if method.node.name != "pipe" and not method.module.name.startswith(SURFACE)
    ]
    for thing in [*(each for each in library.things if not each.owner), *methods]:
        if not isinstance(thing.node, Function):
            continue
        said = {
            name
            for overload in overloads(thing)
            for name, annotation in annotated(overload)
            if annotation != "Any" and not is_type_variable(library, thing.module, annotation)
        }
        for name, annotation in annotated(thing.node):
            if annotation == "Any" and name in said:
                yield thing.finding(
                    f"declares {name!r} as Any, and its overloads say more; annotate it as they do"
                )


def annotated(function: Function) -> Iterator[tuple[str, str]]:
    given = function.args
    for each in [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]:
        if each and each.annotation:
            yield each.arg, ast.unparse(each.annotation)
    if function.returns:
        yield "return", ast.unparse(function.returns)


def is_type_variable(library: Library, module: Module, name: str) -> bool:
    while name in module.imported:
        path, _, name = module.imported[name].rpartition(".")
        if path not in library.modules:
            return False
        module = library.modules[path]
    node = module.defined.get(name)
    return isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("TypeVar(")


# -- typing tests


def unasserted_types(library: Library) -> Iterator[Finding]:
    """Check that the typing tests assert the type of each method of `Flow`."""
    for name, method in library.methods.items():
        module = method.module.name
        plugged = PLUGGED_SPARK if module == f"{SURFACE}spark" else PLUGGED
        tests = library.root / (plugged if module.startswith(SURFACE) else FLUENT)
        if name not in asserted(tests):
            yield method.finding(f"is in no assert_type; add one to typing_tests/{tests.name}")


@cache
def asserted(file: Path) -> set[str]:
    """Return the names used within assert_type as an attribute of a flow."""
    return {
        part.attr
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "assert_type"
        for part in ast.walk(node.args[0])
        if isinstance(part, ast.Attribute)
    }


def unseen_mistakes(library: Library) -> Iterator[Finding]:
    """Check that both type checkers find each mistake of the typing tests."""
    path = library.root / FLUENT
    lines = path.read_text("utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("def mistakes("))
    for number, line in enumerate(lines[start + 1 :], start + 2):
        if not line.startswith("    "):
            continue
        if "# type: ignore[" not in line or "# pyright: ignore[" not in line:
            text = "is not a mistake for both mypy and pyright; ignore both findings, by name"
            yield Finding(path, number, text)


# -- classes that exist per subscription


def open_classes(library: Library) -> Iterator[Finding]:
    """Check that classes that exist per subscription have only slots and are final or extended."""
    extended = {base.node for cls in library.classes for base in library.bases(cls)[1:]}
    for cls in per_subscription(library):
        for base in library.bases(cls):
            if not has_slots(base.node) and base.node.name not in OPEN:
                where = "" if base.node is cls.node else f", for {cls.name}"
                yield base.finding(
                    f"has no __slots__, and exists per subscription{where}; add them"
                )
        if cls.name not in OPEN and (foreign := library.foreign(cls) - SLOTTED):
            yield cls.finding(
                f"gets a __dict__ from {', '.join(sorted(foreign))}, and exists per subscription; "
                "derive it from classes with slots"
            )
        if "final" not in decorators(cls.node) and cls.node not in extended:
            yield cls.finding("is not @final, and exists per subscription; decorate it")


def per_subscription(library: Library) -> Iterator[Thing]:
    """Yield the classes of subscribers and subscriptions that have instances."""
    for cls in library.classes:
        if cls.module.name.startswith("flow_testing"):
            continue  # made to be extended
        members = library.members(cls)
        abstract = any("abstractmethod" in decorators(each.node) for each in members.values())
        takes_part = any(role <= set(members) for role in ROLES)
        if takes_part and not abstract and "Protocol" not in base_names(cls.node):
            yield cls


def has_slots(cls: ast.AST) -> bool:
    assert isinstance(cls, ast.ClassDef)
    made = decorators(cls).get("dataclass")
    return (
        any(
            ast.unparse(each.targets[0]) == "__slots__"
            for each in cls.body
            if isinstance(each, ast.Assign)
        )
        or (made is not None and "slots=True" in ast.unparse(made))
        or "NamedTuple" in base_names(cls)
    )


# -- rules by their ids


def unknown_rules(library: Library) -> Iterator[Finding]:
    """Check that docs/rules.md defines each rule that a file mentions by its id."""
    page = library.root / "docs" / "rules.md"
    text = page.read_text("utf-8") if page.exists() else ""
    defined = set(re.findall(r"^\| (\S+) \|", text, re.MULTILINE))
    for folder in MENTIONING:
        for path in sorted((library.root / folder).rglob("*.py")):
            for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
                for rule in RULE.findall(line):
                    if rule not in defined:
                        text = f"mentions {rule}, which has no line in docs/rules.md; add it there"
                        yield Finding(path, number, text)


CHECKS: Final[tuple[Callable[[Library], Iterator[Finding]], ...]] = (
    no_summary,
    rules_by_their_ids,
    untold_parameters,
    unnamed_errors,
    silent_about_stages,
    silent_operators,
    vague_parameters,
    unasserted_types,
    unseen_mistakes,
    open_classes,
    unknown_rules,
)


def findings(root: Path) -> list[str]:
    """Return the problems in the packages below a folder, as lines for a reader."""
    library = Library(root)
    found = sorted({finding for check in CHECKS for finding in check(library)})
    return [f"{each.path.relative_to(root)}:{each.line}: {each.text}" for each in found]


def main() -> int:
    """Print the problems; return 1 if there are any."""
    found = findings(ROOT)
    print(*found, sep="\n") if found else print("Nothing is wrong with docstrings and signatures.")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
