"""Turns a function's parameters into options of the command line."""

from __future__ import annotations

import argparse
import inspect
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, Union, final, get_args, get_origin

from typing_extensions import override

from flow_cli._errors import UsageError, did_you_mean
from flow_core.engine import Engine
from flow_core.signatures import resolved, signature_of

__all__ = ["Call", "Parser", "prepare"]

_NO_VALUE: Final = inspect.Parameter.empty
_SIMPLE: Final[dict[str, type]] = {kind.__name__: kind for kind in (int, float, str, bool, Path)}
_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})
_NO_OPTION: Final = "which no option can give; options are int, float, str, bool or Path"


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are messages of the `flow` command."""

    @override
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (`{self.prog} --help` shows how it is used)")


@final
@dataclass(frozen=True)
class Call:
    """A function, together with the arguments from the command line.

    Args:
        function: the function to call.
        takes_engine: whether the function's first parameter is an `Engine`.
        options: the other arguments, by name.
    """

    function: Callable[..., object]
    takes_engine: bool
    options: dict[str, object]

    def __call__(self, engine: Engine) -> object:
        """Call the function, with `engine` as its first argument if it takes one."""
        positional = (engine,) if self.takes_engine else ()
        return self.function(*positional, **self.options)


def prepare(
    function: Callable[..., object], name: str, given: Sequence[str], *, shown: str = ""
) -> Call:
    """Match the user's options to the parameters of `function`.

    Args:
        function: the target; a first parameter that is annotated `Engine` is not an option.
        name: what the user calls the function.
        given: ``--name value`` for each parameter that is set; for a bool, also ``--name`` and
            ``--no-name``.
        shown: what messages call it, if it is not a function.

    Raises:
        UsageError: if an option is unknown, missing or of another type.
        SystemExit: for ``--help``, which prints the parameters.
    """
    shown = shown or f"{name}()"
    try:
        parameters = list(signature_of(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name} has no signature to take options from: {error}") from error
    takes_engine = bool(parameters) and _is_engine(parameters[0], function)
    parser = Parser(
        prog=f"flow run {name} --",
        description=inspect.getdoc(function),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    known: list[str] = []
    barred: dict[str, str] = {}
    needed: list[str] = []
    for parameter in parameters[takes_engine:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        required = parameter.default is _NO_VALUE
        if parameter.kind is parameter.POSITIONAL_ONLY:
            if required:
                raise UsageError(
                    f"{name}() needs {parameter.name!r} by position, which no option can give"
                )
            continue
        annotation = resolved(parameter.annotation, function)
        option = f"--{parameter.name.replace('_', '-')}"
        if not _add(parser, parameter, annotation, name):
            barred[option] = f"{parameter.name!r}: {annotation}, {_NO_OPTION}"
            continue
        known.append(option)
        if required:
            needed.append(option)
    parsed, unknown = parser.parse_known_args(list(given))
    if unknown:
        option = unknown[0].partition("=")[0]
        if (dashed := option.replace("_", "-")) in barred:
            raise UsageError(f"{shown} has {barred[dashed]}")
        takes = f"it takes {', '.join(known)}" if known else "it takes no option"
        raise UsageError(
            f"{shown} has no parameter for {unknown[0]!r}{did_you_mean(option, known)}; {takes}"
        )
    found = vars(parsed)
    missing = [option for option in needed if option[2:].replace("-", "_") not in found]
    if missing:
        raise UsageError(
            f"{shown} needs {' and '.join(missing)}: flow run ... -- {missing[0]} VALUE"
        )
    return Call(function, takes_engine, found)


def _add(
    parser: Parser,
    parameter: inspect.Parameter,
    annotation: object,
    function: str,
) -> bool:
    """Add a parameter's option. Return False if no option can set it, and none is required."""
    dashed = parameter.name.replace("_", "-")
    flags = list(dict.fromkeys([f"--{dashed}", f"--{parameter.name}"]))
    required = parameter.default is _NO_VALUE
    shown = "needed" if required else f"default: {parameter.default}"
    # A parameter that is not given keeps the function's own default.
    settings: dict[str, Any] = {  # Any: argparse has another type for each
        "dest": parameter.name,
        "default": argparse.SUPPRESS,
        "help": shown.replace("%", "%%"),
    }
    kind, choices = _kind(annotation, parameter.default)
    if kind is None:
        if required:
            raise UsageError(f"{function}() needs {parameter.name!r}: {annotation}, {_NO_OPTION}")
        return False
    if kind is bool:
        parser.add_argument(*flags, nargs="?", const=True, type=_bool, metavar="BOOL", **settings)
        parser.add_argument(
            *(f"--no-{flag[2:]}" for flag in flags),
            dest=parameter.name,
            action="store_false",
            default=argparse.SUPPRESS,
            help=argparse.SUPPRESS,
        )
        return True
    parser.add_argument(
        *flags,
        type=kind,
        choices=choices,
        metavar=None if choices else kind.__name__.upper(),
        **settings,
    )
    return True


def _kind(annotation: object, default: object) -> tuple[type | None, list[object] | None]:
    """Return the type of an option's values; and the values themselves, if there are few."""
    if annotation is _NO_VALUE:
        return (type(default) if type(default) in _SIMPLE.values() else str), None
    if get_origin(annotation) in (Union, types.UnionType):
        parts = [part for part in get_args(annotation) if part is not type(None)]
        kinds = [_kind(part, default) for part in parts]
        return kinds[0] if len(kinds) == 1 else (None, None)
    if get_origin(annotation) is Literal:
        choices: list[object] = list(get_args(annotation))
        kind: type = type(choices[0])
        return (kind, choices) if all(type(choice) is kind for choice in choices) else (None, None)
    if isinstance(annotation, str):
        return _SIMPLE.get(annotation.rpartition(".")[2].removesuffix(" | None").strip()), None
    if isinstance(annotation, type) and annotation in _SIMPLE.values():
        return annotation, None
    return None, None


def _bool(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise argparse.ArgumentTypeError(f"{text!r} is not true or false")


def _is_engine(parameter: inspect.Parameter, function: Callable[..., object]) -> bool:
    annotation = resolved(parameter.annotation, function)
    if isinstance(annotation, str):  # imported for type checkers only
        return annotation.partition("|")[0].strip().rpartition(".")[2] == "Engine"
    parts = get_args(annotation) or (annotation,)
    return any(isinstance(part, type) and Engine in part.__mro__ for part in parts)
