"""Finds the object that ``path/to/file.py:attribute`` or ``module:attribute`` names."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, final

from flow_cli._errors import UsageError, describe_error, did_you_mean, unknown_operator
from flow_core.flow import Flow
from flow_core.prepared import Prepared

__all__ = ["Target", "as_flow", "target"]


@final
@dataclass(frozen=True)
class Target:
    """An object in a file or module of the user.

    Args:
        text: the text with which the user has named the object.
        name: the name of the attribute.
        value: the object: a `Flow`, or a function.
    """

    text: str
    name: str
    value: object


def as_flow(value: object) -> Flow[Any] | None:  # Any: of any items, as a user's flow
    """Return `value` if it is a flow; of a prepared flow, the flow over an input without items."""
    if isinstance(value, Prepared):
        prepared: Prepared[Any, Any] = value  # pyright: ignore[reportUnknownVariableType]  # as below
        return prepared.flow
    if not isinstance(value, Flow):
        return None
    flow: Flow[Any] = value  # pyright: ignore[reportUnknownVariableType]  # of whatever items
    return flow


@contextlib.contextmanager
def target(text: str) -> Generator[Target, None, None]:
    """Load the object that `text` names, within a ``with`` block.

    While the block runs, the object's folder (for a module: the current folder) is first on
    ``sys.path``, as for a script.

    Args:
        text: ``path/to/file.py:attribute`` or ``module:attribute``.

    Raises:
        UsageError: if the object cannot be found or loaded; the message names it, and similar
            names.
    """
    where, colon, attribute = text.rpartition(":")
    if not colon or attribute.endswith(".py") or "/" in attribute or "\\" in attribute:
        where, attribute = text, ""
    path = list(sys.path)
    known = set(sys.modules)
    try:
        module = _load_file(Path(where)) if _is_path(where) else _load_module(where)
        if not attribute:
            raise UsageError(
                f"{text} names no flow or function: write {where}:NAME{_candidates(module)}"
            )
        yield Target(text, attribute, _attribute(module, where, attribute))
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - known:
            if getattr(sys.modules[name], "__flow_target__", False):
                del sys.modules[name]


def _is_path(where: str) -> bool:
    return where.endswith(".py") or "/" in where or "\\" in where or Path(where).exists()


def _load_file(path: Path) -> ModuleType:
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name a Python file in it, as path/to/file.py:NAME")
    if not path.is_file():
        folder = path.parent
        if not folder.is_dir():
            raise UsageError(f"there is no folder {folder}, and so no file {path}")
        near = did_you_mean(path.name, [other.name for other in folder.glob("*.py")])
        raise UsageError(f"there is no file {path}{near}")
    path = path.resolve()
    sys.path.insert(0, str(path.parent))
    # A script's name must not hide a module that other code imports under this name.
    taken = path.stem in sys.modules or path.stem in sys.stdlib_module_names
    name = f"target_{path.stem}" if taken or not path.stem.isidentifier() else path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    module.__dict__["__flow_target__"] = True
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise _cannot_load(str(path), error) from error
    return module


def _load_module(name: str) -> ModuleType:
    sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise _cannot_load(name, error) from error
        names = [path.stem for path in Path.cwd().glob("*.py")]
        near = did_you_mean(name, [*names, *sys.stdlib_module_names])
        file = Path(*name.split(".")).with_suffix(".py")
        raise UsageError(
            f"there is no module {error.name!r} in the current folder or among the installed ones"
            f"{near or f'; a file is named with its ending, as {file}:NAME'}"
        ) from error
    except ValueError as error:
        raise UsageError(f"{name!r} is neither a file nor the name of a module") from error
    except (Exception, SystemExit) as error:
        raise _cannot_load(name, error) from error


def _cannot_load(what: str, error: BaseException) -> UsageError:
    unknown = unknown_operator(error)
    lines = describe_error(error)
    if unknown is not None:
        lines[0] = unknown
    return UsageError("\n".join([f"{what} cannot be loaded: {lines[0]}", *lines[1:]]))


def _attribute(module: ModuleType, where: str, attribute: str) -> object:
    value: object = module
    for part in attribute.split("."):
        try:
            value = getattr(value, part)
        except AttributeError as error:
            near = did_you_mean(attribute, _public(module))
            raise UsageError(f"{where} has no {attribute!r}{near}{_candidates(module)}") from error
    return value


def _public(module: ModuleType) -> list[str]:
    """Return the names of the flows in the module, and of the functions that are defined in it."""
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (
            isinstance(value, Flow)
            or (inspect.isfunction(value) and value.__module__ == module.__name__)
        )
    ]


def _candidates(module: ModuleType) -> str:
    names = [
        name if isinstance(getattr(module, name), Flow) else f"{name}()" for name in _public(module)
    ]
    return f". It has: {', '.join(names)}" if names else ". It has no flow and no function"
