"""The fields of a record that a function can read, found in its byte code.

A record reaches a function by its first parameter. If each instruction that loads this parameter is
followed at once by one that takes a field out of it, then nothing else ever reaches the record, on
whichever path the function runs. For any other use, and for any instruction that is not known here,
the answer is that all fields may be read.
"""

from __future__ import annotations

import dis
import inspect
import operator
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any, Final

__all__ = ["CONSTANTS", "GivenUpError", "Record", "code_of", "fields_read"]

_NEWEST: Final = (3, 15)
"""The last Python whose instructions are known here."""

CONSTANTS: Final = frozenset({"LOAD_CONST", "LOAD_SMALL_INT", "LOAD_COMMON_CONSTANT"})

_LOADS: Final = frozenset({"LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK"})
_LOADS_OF_TWO: Final = frozenset(
    {"LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW", "STORE_FAST_LOAD_FAST"}
)
"""Their second variable is the one that the next instruction uses."""

_OTHER_LOCALS: Final = frozenset(
    {
        *("STORE_FAST", "STORE_FAST_STORE_FAST", "STORE_FAST_MAYBE_NULL", "DELETE_FAST"),
        *("LOAD_FAST_AND_CLEAR", "LOAD_CLOSURE"),
    }
)
"""Instructions with a variable; the record may only be one that they store or delete."""

_STORES: Final = frozenset({"STORE_FAST", "STORE_FAST_STORE_FAST", "DELETE_FAST"})

_WITHOUT_LOCALS: Final = frozenset(
    """
    LOAD_CONST LOAD_SMALL_INT LOAD_COMMON_CONSTANT LOAD_ASSERTION_ERROR LOAD_GLOBAL LOAD_DEREF
    LOAD_ATTR LOAD_METHOD BINARY_OP BINARY_SUBSCR BINARY_SLICE COMPARE_OP CONTAINS_OP IS_OP
    UNARY_INVERT UNARY_NEGATIVE UNARY_NOT UNARY_POSITIVE TO_BOOL GET_LEN
    STORE_ATTR STORE_SUBSCR STORE_SLICE STORE_GLOBAL STORE_DEREF DELETE_ATTR DELETE_SUBSCR
    BUILD_CONST_KEY_MAP BUILD_INTERPOLATION BUILD_LIST BUILD_MAP BUILD_SET BUILD_SLICE
    BUILD_STRING BUILD_TEMPLATE BUILD_TUPLE DICT_MERGE DICT_UPDATE LIST_APPEND LIST_EXTEND
    LIST_TO_TUPLE MAP_ADD SET_ADD SET_UPDATE UNPACK_EX UNPACK_SEQUENCE
    CONVERT_VALUE FORMAT_SIMPLE FORMAT_VALUE FORMAT_WITH_SPEC

    CALL CALL_FUNCTION_EX CALL_INTRINSIC_1 CALL_KW KW_NAMES PRECALL PUSH_NULL
    MAKE_FUNCTION SET_FUNCTION_ATTRIBUTE IMPORT_NAME IMPORT_FROM

    RESUME CACHE NOP NOT_TAKEN EXTENDED_ARG COPY SWAP COPY_FREE_VARS POP_TOP POP_ITER
    FOR_ITER END_FOR GET_ITER JUMP_FORWARD JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT
    JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP POP_JUMP_IF_FALSE POP_JUMP_IF_TRUE
    POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_TRUE
    POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE POP_JUMP_BACKWARD_IF_FALSE
    POP_JUMP_BACKWARD_IF_TRUE POP_JUMP_BACKWARD_IF_NONE POP_JUMP_BACKWARD_IF_NOT_NONE
    RETURN_CONST RETURN_VALUE

    RAISE_VARARGS RERAISE PUSH_EXC_INFO POP_EXCEPT CHECK_EXC_MATCH CHECK_EG_MATCH
    BEFORE_WITH WITH_EXCEPT_START LOAD_SPECIAL
    MATCH_CLASS MATCH_KEYS MATCH_MAPPING MATCH_SEQUENCE
    """.split()  # noqa: SIM905  # a hundred lines otherwise
)
"""Instructions without a local variable: values and operations, calls, jumps, errors. Any other one
may be new, and do more than it seems."""

_SEES_VARIABLES: Final = frozenset(
    {
        *("locals", "vars", "dir", "eval", "exec", "currentframe", "stack", "getinnerframes"),
        *("_getframe", "_getframemodulename", "f_locals", "f_back", "tb_frame", "__traceback__"),
        *("exc_info", "settrace", "setprofile"),
    }
)
"""Names by which code reaches the variables of a function that runs."""

_REFUSED: Final = (
    inspect.CO_VARARGS
    | inspect.CO_VARKEYWORDS
    | inspect.CO_GENERATOR
    | inspect.CO_COROUTINE
    | inspect.CO_ITERABLE_COROUTINE
    | inspect.CO_ASYNC_GENERATOR
)


class GivenUpError(Exception):
    """It is not known which fields are read; the text says why, for a user."""


@dataclass(frozen=True, slots=True)
class Record:
    """The ways to take fields out of a record.

    Attributes:
        by_name: the fields that ``record.name`` takes.
        by_index: the fields that ``record[0]``, ``record[1]`` and so on take.
    """

    by_name: frozenset[str]
    by_index: tuple[str, ...]


def fields_read(function: object, record: Record) -> frozenset[str]:
    """Return the fields that `function` can read of `record`, which is its only argument.

    It is not called.

    Raises:
        GivenUpError: if it may do something else with the record.
    """
    names = {name: name for name in record.by_name}
    count = len(record.by_index)
    indexes = {index: record.by_index[index] for index in range(-count, count)}
    if type(function) is operator.attrgetter:
        paths = _arguments(function.__reduce__())
        return _known([str(path).partition(".")[0] for path in paths], names)
    if type(function) is operator.itemgetter:
        return _known(_arguments(function.__reduce__()), indexes)
    code = code_of(function)
    return frozenset(_loaded(code, names, indexes))


def _arguments(reduced: Any) -> tuple[object, ...]:  # Any: a class and what it was called with
    arguments: tuple[object, ...] = reduced[1]
    return arguments


def _known(asked: Sequence[object], fields: Mapping[Any, str]) -> frozenset[str]:
    # True is found where 1 is, and a list cannot be looked up.
    unknown = [one for one in asked if type(one) not in (int, str) or one not in fields]
    if unknown:
        raise GivenUpError(f"it takes {unknown[0]!r}, which is not a field")
    return frozenset(fields[one] for one in asked)


def code_of(function: object) -> CodeType:
    """Return the code of a plain function that can be called with one argument."""
    if type(function) is not FunctionType:
        raise GivenUpError(f"it is not a plain function, but a {type(function).__name__}")
    if sys.version_info[:2] > _NEWEST:
        raise GivenUpError("the instructions of this Python are not known here")
    code = function.__code__
    if code.co_flags & _REFUSED:
        raise GivenUpError("it is a generator or a coroutine function, or takes *args or **kwargs")
    required = code.co_argcount - len(function.__defaults__ or ())
    if code.co_argcount < 1 or required > 1 or code.co_kwonlyargcount:
        raise GivenUpError("it takes more than the record")
    if code.co_varnames[0] in code.co_cellvars:
        raise GivenUpError(f"a function within it uses {code.co_varnames[0]}")
    for name in _names_in(code):
        if name in _SEES_VARIABLES:
            raise GivenUpError(f"{name} can see its variables")
    return code


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def _loaded(code: CodeType, names: Mapping[str, str], indexes: Mapping[int, str]) -> Iterator[str]:
    """Yield the fields that the code loads.

    Raises:
        GivenUpError: if it loads the record for anything else.
    """
    record = code.co_varnames[0]
    steps = list(dis.get_instructions(code))
    for at, step in enumerate(steps):
        if step.opname in _WITHOUT_LOCALS:
            continue
        argument: Any = step.argval  # Any: a variable, or a pair of them
        variables: tuple[str, ...] = (argument,) if isinstance(argument, str) else argument
        if step.opname in _LOADS or step.opname in _LOADS_OF_TWO:
            below, top = variables[:-1], variables[-1]
            if record in below and not step.opname.startswith("STORE"):
                raise _used(step, record)  # it is not on top of the stack, where a field is taken
            if top == record:
                yield _field(steps[at + 1 : at + 3], step, record, names, indexes)
        elif step.opname not in _OTHER_LOCALS:
            raise GivenUpError(f"it has the instruction {step.opname}, which is not known here")
        elif record in variables and step.opname not in _STORES:
            raise _used(step, record)


def _field(
    after: Sequence[dis.Instruction],
    step: dis.Instruction,
    record: str,
    names: Mapping[str, str],
    indexes: Mapping[int, str],
) -> str:
    """Return the field that the instructions after a load of the record take out of it."""
    user = after[0]
    if user.opname == "LOAD_ATTR":
        is_method = sys.version_info >= (3, 12) and bool((user.arg or 0) & 1)
        if user.argval in names and not is_method:
            return names[user.argval]
    elif user.opname in CONSTANTS and type(user.argval) is int:
        then = after[1]
        subscript = then.opname == "BINARY_SUBSCR" or (
            then.opname == "BINARY_OP" and then.argrepr == "[]"
        )
        if subscript and user.argval in indexes:
            return indexes[user.argval]
    raise _used(step, record)


def _used(step: dis.Instruction, record: str) -> GivenUpError:
    line = step.positions.lineno if step.positions else None
    where = "" if line is None else f" in line {line}"
    return GivenUpError(f"it uses {record}{where} for something else than one of its fields")
