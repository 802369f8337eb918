"""Finds the names that the modules under test store: only loads of these can see a change.

A field that only a constructor stores is final, because no other thread sees an object before it is
constructed. Loads of such a field, of methods and of constants need no decision point. The rule
goes by the name alone, whatever the class is, so it finds too many names rather than too few.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, final

__all__ = ["Names", "files_of", "scan"]

_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SETTERS: Final = frozenset({"setattr", "delattr", "__setattr__", "__delattr__"})


@final
@dataclass(slots=True)
class Names:
    """The names that are stored after construction.

    Args:
        attributes: names that are stored as an attribute, except by a constructor on its own
            object.
        variables: names that are stored by a function which declares them global or nonlocal.
    """

    attributes: set[str] = field(default_factory=set[str])
    variables: set[str] = field(default_factory=set[str])

    def add(self, other: Names) -> None:
        """Add the names of `other` to these."""
        self.attributes |= other.attributes
        self.variables |= other.variables


def files_of(module: str) -> tuple[str, ...]:
    """Return the source files of `module`; if it is a package, also those of everything in it.

    Raises:
        ValueError: if `module` is not imported, or has no source.
    """
    imported = sys.modules.get(module)
    file = getattr(imported, "__file__", None)
    if not isinstance(file, str) or not file.endswith(".py"):
        raise ValueError(f"the module {module!r} is not imported, or has no source file")
    path = Path(file)
    if path.name != "__init__.py":
        return (file,)
    return tuple(sorted(str(found) for found in path.parent.rglob("*.py")))


_scanned: dict[tuple[str, int], Names] = {}


def scan(files: Iterable[str]) -> Names:
    """Return the names that any of `files` stores."""
    names = Names()
    for file in files:
        path = Path(file)
        try:
            key = (file, path.stat().st_mtime_ns)
            if key not in _scanned:
                found = Names()
                _walk(ast.parse(path.read_bytes()), found, None)
                _scanned[key] = found
        except (OSError, SyntaxError):
            continue  # it cannot be imported either
        names.add(_scanned[key])
    return names


def _walk(node: ast.AST, names: Names, constructed: str | None) -> None:
    """Collect the names that are stored in `node`.

    `constructed` is what the constructor around `node` calls its object; None outside of one.
    """
    for child in ast.iter_child_nodes(node):
        inner = constructed
        if isinstance(child, _FUNCTIONS):
            inner = None
            arguments = child.args.posonlyargs + child.args.args
            if isinstance(child, ast.FunctionDef) and child.name == "__init__" and arguments:
                inner = arguments[0].arg
        elif isinstance(child, ast.Attribute) and not isinstance(child.ctx, ast.Load):
            if not (isinstance(child.value, ast.Name) and child.value.id == constructed):
                names.attributes.add(child.attr)
        elif isinstance(child, ast.Global):
            names.variables.update(child.names)
            names.attributes.update(child.names)  # used in another module
        elif isinstance(child, ast.Nonlocal):
            names.variables.update(child.names)
        elif isinstance(child, ast.Call):
            called = child.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in _SETTERS:
                names.attributes.update(
                    argument.value
                    for argument in child.args
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
                )
        _walk(child, names, inner)
