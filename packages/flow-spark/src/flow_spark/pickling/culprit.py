"""The search for the part of a function or an object that cannot be pickled."""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final

from typing_extensions import TypeIs

from flow_core.stages import Program, Stage

__all__ = ["culprit"]

_DEPTH: Final = 12


def culprit(obj: object, what: str, dump: Callable[[object], object]) -> str:
    """Return sentences that lead from `obj` down to the part that cannot be pickled.

    Args:
        obj: the object that could not be pickled.
        what: its name for the user.
        dump: raises for an object that cannot be pickled.
    """
    seen = {id(obj)}
    trail: list[str] = []
    holder = obj
    while len(trail) < _DEPTH:
        found = next(
            (
                (how, part)
                for how, part in _parts(holder)
                if id(part) not in seen and not _can(part, dump)
            ),
            None,
        )
        if found is None:
            break
        how, part = found
        seen.add(id(part))
        # Our own frames tell a user nothing.
        if not _is_program(holder):
            trail.append(f"{_describe(holder)} {how} {_show(part)}")
        holder = part
    if not trail:
        return f"{what} cannot be sent to Spark: {_show(holder)} cannot be pickled"
    return "\n  ".join([f"{what} cannot be sent to Spark:", *trail])


def _can(obj: object, dump: Callable[[object], object]) -> bool:
    try:
        dump(obj)
    except Exception:
        return False
    return True


def _parts(holder: object) -> Iterator[tuple[str, object]]:
    """Yield the objects that are pickled with `holder`, each with how `holder` refers to it."""
    if _is_program(holder):
        for stage in holder.stages:
            yield "runs", stage
    elif _is_stage(holder):
        for name, value in zip(holder.template.params, holder.args, strict=True):
            yield f"has as {name!r}", value
    elif isinstance(holder, types.FunctionType):
        yield from _parts_of_function(holder)
    elif isinstance(holder, types.MethodType):
        yield "is a method of", holder.__self__
        yield "is", holder.__func__
    elif _is_partial(holder):
        yield "calls", holder.func
        for value in holder.args:
            yield "binds", value
        for name, value in holder.keywords.items():
            yield f"binds {name!r},", value
    elif _is_dict(holder):
        for key, value in holder.items():
            yield f"holds under {key!r}", value
    elif _is_collection(holder):
        for value in holder:
            yield "holds", value
    elif not isinstance(holder, (type, types.ModuleType)):
        for name in _attributes(holder):
            if hasattr(holder, name):
                yield f"has in {name!r}", getattr(holder, name)


# The checks by isinstance, with Any for type arguments that are not known.


def _is_program(obj: object) -> TypeIs[Program[Any, Any]]:
    return isinstance(obj, Program)


def _is_stage(obj: object) -> TypeIs[Stage[Any, Any]]:
    return isinstance(obj, Stage)


def _is_partial(obj: object) -> TypeIs[functools.partial[Any]]:
    return isinstance(obj, functools.partial)


def _is_dict(obj: object) -> TypeIs[dict[Any, Any]]:
    return isinstance(obj, dict)


def _is_collection(
    obj: object,
) -> TypeIs[list[Any] | tuple[Any, ...] | set[Any] | frozenset[Any]]:
    return isinstance(obj, (list, tuple, set, frozenset))


def _parts_of_function(function: types.FunctionType) -> Iterator[tuple[str, object]]:
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        try:
            yield f"captures the variable {name!r},", cell.cell_contents
        except ValueError:  # it has no value yet
            continue
    for name in _global_names(function.__code__):
        if name in function.__globals__:
            yield f"uses the global {name!r},", function.__globals__[name]
    for value in function.__defaults__ or ():
        yield "has the default", value
    keywords: Mapping[str, object] = function.__kwdefaults__ or {}
    for name, value in keywords.items():
        yield f"has the default {name!r},", value


def _attributes(obj: object) -> list[str]:
    names: list[str] = []
    if dataclasses.is_dataclass(obj):
        names += [field.name for field in dataclasses.fields(obj)]
    for cls in type(obj).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else slots
    names += getattr(obj, "__dict__", {})
    return list(dict.fromkeys(names))


def _global_names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _global_names(constant)


def _describe(obj: object) -> str:
    if _is_stage(obj):
        where = f", assembled at {obj.assembled_at}," if obj.assembled_at else ""
        return f"the stage {obj!r}{where}"
    if isinstance(obj, types.FunctionType):
        name = "the lambda" if obj.__name__ == "<lambda>" else f"the function {obj.__name__!r}"
        code = obj.__code__
        return f"{name} ({PurePath(code.co_filename).name}:{code.co_firstlineno})"
    return f"the {type(obj).__qualname__}"


def _show(obj: object) -> str:
    if isinstance(obj, types.FunctionType):
        return _describe(obj)
    kind = f"{type(obj).__module__}.{type(obj).__qualname__}".removeprefix("builtins.")
    return f"a {kind}"
