"""The methods that short flows use most, done in one frame instead of two."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from inspect import CO_COROUTINE
from sys import _getframe
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

from flow_core.assembly import assembled
from flow_core.hooks import on_assembly
from flow_core.stages._filtering import FILTER, SKIP_WHILE, TAKE_WHILE
from flow_core.stages._template import NEVER_AWAITED, Template, check_function, outside
from flow_core.stages._transform import FLAT_MAP_ITERABLE, MAP, MAP_OPTIONAL, STARMAP
from flow_core.structure import AbsorbingSource

if TYPE_CHECKING:
    from flow_core.flow import Flow

__all__ = ["put_directly"]

_METHODS: Final = {
    "filter": FILTER,
    "flat_map_iterable": FLAT_MAP_ITERABLE,
    "map": MAP,
    "map_optional": MAP_OPTIONAL,
    "skip_while": SKIP_WHILE,
    "starmap": STARMAP,
    "take_while": TAKE_WHILE,
}
"""The methods that add a stage whose only argument is a function to the end of a flow."""


def put_directly(kind: type[Flow[Any]]) -> None:
    """Give `kind` new versions of these methods, which do the work of `Flow._add` themselves.

    A flow of a few items takes longer to assemble than to run, and the frame of `_add` takes a
    quarter of that time.

    Args:
        kind: the class of flows.
    """
    for name, template in _METHODS.items():
        setattr(kind, name, _direct(kind, template, getattr(kind, name)))


def _direct(
    kind: type[Flow[Any]], template: Template, method: Callable[..., Flow[Any]]
) -> Callable[..., Flow[Any]]:
    key, new = id(template), object.__new__

    def put(self: Flow[Any], function: object) -> Flow[Any]:
        node = self._node or self._placed()
        try:
            node = node.after[key]
        except KeyError:
            node = node.then(template)
        if type(function) is FunctionType:
            if function.__code__.co_flags & CO_COROUTINE:
                check_function(template, 0, function)
        elif type(function) not in NEVER_AWAITED:
            check_function(template, 0, function)
        try:
            frame = _getframe(1)
        except ValueError:
            frame = _getframe(0)  # it is all that a thread runs
        code = frame.f_code
        if code is not self._code:  # of the stage before, which most often is the same
            frame = outside(frame)
            code = frame.f_code
        made = new(kind)
        made._source = self._source
        made._node = node
        before = self._args
        made._args = before + (function,) if before and node.few else (function,)  # noqa: RUF005 - a list
        made._parent = self
        made._boundary = made._program = None
        made._code = code
        made._at = frame.f_lasti
        if node.absorbs and isinstance(source := self._source, AbsorbingSource):
            source.check(made._stages())
        return made if on_assembly.call is None else assembled(made)

    # For tracebacks, profilers and callers that give the argument by name.
    named, code = method.__code__, put.__code__
    code = code.replace(
        co_name=named.co_name,
        co_qualname=named.co_qualname,
        co_varnames=(*named.co_varnames[:2], *code.co_varnames[2:]),
    )
    return update_wrapper(FunctionType(code, globals(), None, None, put.__closure__), method)
