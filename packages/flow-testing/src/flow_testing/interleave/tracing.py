"""Finds the instructions of the code under test whose effects other threads can see.

Each code object is decoded once, into a table of the offsets that matter; `sys.monitoring` is then
switched off for all other offsets, so that they cost nothing. Calls are checked when they happen:
only then is it known whether a method of a C container is called, and of which container.
"""

from __future__ import annotations

import builtins
import dis
import re
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import get_ident
from types import (
    BuiltinFunctionType,
    CodeType,
    GeneratorType,
    MethodDescriptorType,
    WrapperDescriptorType,
)
from typing import Any, Final, cast, final

from flow_testing.interleave.names import Names, scan
from flow_testing.interleave.report import InterleavingUnsupportedError
from flow_testing.interleave.scheduler import Point, Scheduler

__all__ = ["GENERATED", "Tracer", "check_supported"]

GENERATED: Final = "<flow "
"""The prefix of the file names of generated loops."""

_VOLATILE: Final = frozenset({"gi_running", "gi_suspended", "gi_frame", "cr_running", "ag_running"})
"""The attributes of generators that change while a generator runs."""

_CONTAINERS: Final[frozenset[type]] = frozenset(
    {list, dict, set, deque, bytearray, OrderedDict, defaultdict, Counter}
)
_READS: Final = frozenset(
    {"copy", "count", "get", "index", "items", "keys", "values", "isdisjoint"}
)
_READ_BY: Final = frozenset(
    {dict, enumerate, filter, frozenset, list, map, reversed, set, tuple, zip, deque, bool, bytes}
)
_RESUMES: Final = frozenset({"send", "throw", "close", "__next__"})

_C_NAMES: Final = frozenset(
    name for kind in (*_CONTAINERS, GeneratorType) for name in dir(kind)
) | frozenset(dir(builtins))
"""The names of relevant functions in C that are called other than by a local variable."""

# The effect of an instruction on an unknown container; True if it writes.
_ON_CONTAINERS: Final = {
    "BINARY_SUBSCR": False,  # from Python 3.14 on, a BINARY_OP
    "BINARY_SLICE": False,
    "STORE_SUBSCR": True,
    "STORE_SLICE": True,
    "DELETE_SUBSCR": True,
    "CONTAINS_OP": False,
    "FOR_ITER": False,
    "LIST_EXTEND": False,
    "SET_UPDATE": False,
    "DICT_UPDATE": False,
    "DICT_MERGE": False,
    "CALL_FUNCTION_EX": False,
    "TO_BOOL": False,  # from Python 3.13 on
}
_TESTS: Final = frozenset({"POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE", "UNARY_NOT"})
_NAMED: Final = {
    "LOAD_ATTR": False,
    "STORE_ATTR": True,
    "DELETE_ATTR": True,
    "LOAD_GLOBAL": False,
    "LOAD_NAME": False,
    "STORE_GLOBAL": True,
    "DELETE_GLOBAL": True,
    "LOAD_DEREF": False,
    "STORE_DEREF": True,
    "DELETE_DEREF": True,
}


def _monitoring() -> Any:  # Any: for the type checker of Python 3.11 there is no sys.monitoring
    return vars(sys)["monitoring"]


def check_supported() -> None:
    """Raise an error if this Python has no `sys.monitoring`.

    Raises:
        InterleavingUnsupportedError: before Python 3.12.
    """
    if sys.version_info < (3, 12):
        raise InterleavingUnsupportedError(
            "exploring interleavings needs sys.monitoring, which is in Python 3.12 and later; this "
            f"is Python {sys.version_info.major}.{sys.version_info.minor}"
        )


@final
class Tracer:
    """Calls the scheduler before each instruction under test that other threads can see.

    Args:
        scheduler: gets the points at which threads may be switched.
        files: the files under test.
        exclude: the prefixes of file names that are left out, even if they are in `files`.
        entries: functions in excluded files whose calls nevertheless count as steps.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        files: frozenset[str],
        exclude: str,
        entries: Mapping[str, frozenset[str]],
    ) -> None:
        self._entries = entries
        self._calls: dict[int, frozenset[int]] = {}
        self._scheduler = scheduler
        self._files = frozenset(file for file in files if not file.startswith(exclude))
        self._names: Names = scan(sorted(self._files))
        self._tables: dict[int, dict[int, Point]] = {}
        self._codes: list[CodeType] = []
        self._tool = -1
        self.entered = False
        """Set when a thread of a run enters a function for the first time."""

    def under_test(self, code: CodeType) -> bool:
        """Return whether the instructions in `code` are traced."""
        file = code.co_filename
        if code.co_name in self._entries.get(file, ()):
            return True
        return file in self._files or file.startswith(GENERATED)

    def decode(self, code: CodeType) -> dict[int, Point]:
        """Return the points in `code`, by offset, whose effects other threads can see."""
        scheduler, names = self._scheduler, self._names
        points: dict[int, Point] = {}
        file = code.co_filename
        if file in self._entries:
            entry = scheduler.location(("entry", file), f"signals of {Path(file).name}")
            instructions = dis.get_instructions(code)
            next(found for found in instructions if found.opname == "RESUME")
            points[next(instructions).offset] = Point(f"enter {code.co_name}", entry, writes=True)
            return points
        constructed = (
            code.co_varnames[0] if code.co_name == "__init__" and code.co_argcount else None
        )
        before: dis.Instruction | None = None
        earlier: dis.Instruction | None = None
        for instruction in dis.get_instructions(code):
            name = instruction.opname
            if name in {"CACHE", "EXTENDED_ARG", "NOP"}:
                continue
            if name == "BINARY_OP" and instruction.argrepr == "[]":
                name = "BINARY_SUBSCR"
            offset = instruction.offset
            if name in _NAMED:
                what = str(instruction.argval)
                attribute = name.endswith("_ATTR")
                if (
                    what in names.attributes | _VOLATILE if attribute else what in names.variables
                ) and not (attribute and _pushes(before) == constructed is not None):
                    verb = name.partition("_")[0].lower()
                    points[offset] = Point(
                        f"{verb} {what}",
                        scheduler.location(
                            "generator" if what in _VOLATILE else ("name", what), what
                        ),
                        writes=_NAMED[name],
                    )
            elif name in _ON_CONTAINERS:
                if name != "TO_BOOL" or _may_be_container(before, names):
                    operation = "truth" if name == "TO_BOOL" else name.lower().replace("_", " ")
                    points[offset] = Point(
                        operation,
                        scheduler.containers,
                        writes=_ON_CONTAINERS[name],
                        operand=_path(earlier, before) if name == "TO_BOOL" else (),
                    )
            elif name in _TESTS and _may_be_container(before, names):
                # From Python 3.13 on, TO_BOOL comes before it.
                points[offset] = Point(
                    "truth", scheduler.containers, writes=False, operand=_path(earlier, before)
                )
            earlier, before = before, instruction
        return points

    def start(self) -> None:
        """Begin to trace."""
        check_supported()
        monitoring = _monitoring()
        for tool in (3, 4, 0, 2, 5, 1):
            if monitoring.get_tool(tool) is None:
                break
        else:
            raise InterleavingUnsupportedError("all tool ids of sys.monitoring are in use")
        monitoring.use_tool_id(tool, "flow_testing.interleave")
        self._tool = tool
        events = monitoring.events
        monitoring.register_callback(tool, events.PY_START, self._on_start(monitoring))
        monitoring.register_callback(tool, events.INSTRUCTION, self._on_instruction(monitoring))
        monitoring.register_callback(tool, events.CALL, self._on_call(monitoring))
        monitoring.restart_events()
        monitoring.set_events(tool, events.PY_START)

    def stop(self) -> None:
        """Stop tracing, and remove all that `start` has installed."""
        monitoring = _monitoring()
        tool, events = self._tool, monitoring.events
        monitoring.set_events(tool, 0)
        for code in self._codes:
            monitoring.set_local_events(tool, code, 0)
        for event in (events.PY_START, events.INSTRUCTION, events.CALL):
            monitoring.register_callback(tool, event, None)
        monitoring.free_tool_id(tool)
        self._codes.clear()
        self._tables.clear()
        self._calls.clear()

    def _on_start(self, monitoring: Any) -> Callable[[CodeType, int], object]:
        disable, events, tool = monitoring.DISABLE, monitoring.events, self._tool
        wanted = events.INSTRUCTION | events.CALL

        def on_start(code: CodeType, offset: int) -> object:
            if id(code) not in self._tables and self.under_test(code):
                self._tables[id(code)] = self.decode(code)
                self._calls[id(code)] = boring_calls(code)
                self._codes.append(code)
                self.entered |= get_ident() == self._scheduler.ident
                entry = code.co_filename in self._entries
                monitoring.set_local_events(tool, code, events.INSTRUCTION if entry else wanted)
            return disable

        return on_start

    def _on_instruction(self, monitoring: Any) -> Callable[[CodeType, int], object]:
        disable = monitoring.DISABLE
        tables, scheduler, step = self._tables, self._scheduler, self._scheduler.point

        def on_instruction(code: CodeType, offset: int) -> object:
            table = tables.get(id(code))
            point = None if table is None else table.get(offset)
            if point is None:
                return disable
            if get_ident() == scheduler.ident:
                step(point)
            return None

        return on_instruction

    def _on_call(self, monitoring: Any) -> Callable[[CodeType, int, object, object], object]:
        scheduler, step = self._scheduler, self._scheduler.point
        kinds = {
            kind: scheduler.location(("container", kind), kind.__name__, container=True)
            for kind in _CONTAINERS
        }
        generators = scheduler.location("generator", "generator")
        iterators = scheduler.location("iterator", "iterator")
        dynamic = scheduler.dynamic
        calls, disable = self._calls, monitoring.DISABLE

        def on_call(code: CodeType, offset: int, called: Any, first: object) -> object:
            boring = calls.get(id(code))
            if boring is None or offset in boring:
                return disable
            if get_ident() != scheduler.ident:
                return None
            kind = cast("type[object]", type(called))  # for Any it is not known
            if kind is BuiltinFunctionType:
                target: object = called.__self__
            elif kind is MethodDescriptorType or kind is WrapperDescriptorType:
                target = first
            elif kind is type and called in _READ_BY:
                target = None
            else:
                return None
            of: type = type(target)
            if of in kinds:
                name = called.__name__
                step(dynamic(f"{of.__name__}.{name}", kinds[of], writes=name not in _READS))
            elif of is GeneratorType:
                if called.__name__ in _RESUMES:
                    step(dynamic(f"generator.{called.__name__}", generators, writes=True))
            elif type(first) in kinds:
                step(dynamic(f"{called.__name__}()", kinds[type(first)], writes=False))
            elif called is next:
                where = generators if type(first) is GeneratorType else iterators
                step(dynamic("next()", where, writes=True))
            return None

        return on_call


def boring_calls(code: CodeType) -> frozenset[int]:
    """Return the offsets of calls that certainly do not call a function in C on a container.

    To find what is called, this follows the stack from instruction to instruction. If the result is
    not certain, the call is checked when it happens.
    """
    found: set[int] = set()
    stack: list[str | None] = []
    for instruction in dis.get_instructions(code):
        name, argument = instruction.opname, instruction.arg
        if name == "CACHE":
            continue
        if instruction.is_jump_target or name == "PUSH_EXC_INFO":
            stack = []
        if name in {"CALL", "CALL_KW"} and argument is not None:
            size = argument + (2 if name == "CALL" else 3)
            if len(stack) >= size:
                called = {name for name in stack[-size : -size + 2] if name is not None}
                if len(called) == 1 and not called & _C_NAMES and "" not in called:
                    found.add(instruction.offset)
        pushed: str | None = None
        if name in {"LOAD_ATTR", "LOAD_GLOBAL", "LOAD_NAME"}:
            pushed = str(instruction.argval)
        elif name != "PUSH_NULL":
            pushed = ""
        effect = dis.stack_effect(instruction.opcode, argument, jump=False)
        if name == "LOAD_ATTR":
            stack[-1:] = [pushed] * (effect + 1)
        elif effect >= 0:
            if name not in {
                "PUSH_NULL",
                "LOAD_GLOBAL",
                "LOAD_NAME",
                "COPY",
            } and not name.startswith(
                ("LOAD_CONST", "LOAD_FAST", "LOAD_DEREF", "LOAD_CLOSURE", "RETURN_GENERATOR")
            ):
                stack[-1:] = [""]
            stack.extend([pushed] * effect)
        else:
            del stack[effect:]
            if stack:
                stack[-1] = ""
    return frozenset(found)


def _pushes(instruction: dis.Instruction | None) -> str | None:
    """Return the local variable that `instruction` leaves on top of the stack."""
    if instruction is None or not instruction.opname.startswith("LOAD_FAST"):
        return None
    # Some instructions push two, and the last is on top.
    return re.split(r"\W+", instruction.argrepr)[-1]


def _path(earlier: dis.Instruction | None, last: dis.Instruction | None) -> tuple[str, ...]:
    """Return the path to the object that two instructions push: a local variable, or its field."""
    local = _pushes(last)
    if local is not None:
        return (local,)
    owner = _pushes(earlier)
    if last is not None and last.opname == "LOAD_ATTR" and owner is not None:
        return (owner, str(last.argval))
    return ()


def _may_be_container(tested: dis.Instruction | None, names: Names) -> bool:
    """Return whether `tested` pushes what may be a shared container, tested for its length.

    A field that is stored again after construction holds a plain value, or a container that is
    replaced as a whole. In both cases, the load itself is the step that other threads can see.
    """
    if tested is None:
        return False
    if tested.opname == "LOAD_ATTR":
        return str(tested.argval) not in names.attributes
    return tested.opname.startswith(("LOAD_FAST", "LOAD_DEREF"))
