"""The decisions of a predicate as a tree, found in its byte code without running it.

The code is followed on all paths, with expressions in place of values. A path ends as unknown at
the first instruction that is not known here, or that may do more than compute a value.
"""

from __future__ import annotations

import builtins
import dis
import sys
from dataclasses import dataclass, field
from types import FunctionType, NoneType
from typing import Any, Final, TypeAlias

from flow_spark.narrowing.fields_read import CONSTANTS, Record, code_of
from flow_spark.pickling.by_value import is_sent_by_reference

__all__ = [
    "Asked",
    "Constant",
    "Expression",
    "Field",
    "Needed",
    "Operation",
    "Returned",
    "Tree",
    "Unknown",
    "decisions",
]

_MOST_PATHS: Final = 16
_MOST_CONSTANTS: Final = 100
"""In one collection."""
_MOST_OPERATIONS: Final = 30
"""In one expression."""


@dataclass(frozen=True, slots=True)
class Field:
    """The value of a column, which may be None."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A value that is known."""

    value: object

    def __eq__(self, other: object) -> bool:
        """Return whether it is the same value of the same type: 1 is not True, nor 0.0 -0.0."""
        return isinstance(other, Constant) and repr(self.value) == repr(other.value)

    def __hash__(self) -> int:
        return hash(repr(self.value))


@dataclass(frozen=True, slots=True)
class Operation:
    """A value that Python computes from others. The computation may raise, but has no other effect.

    Attributes:
        symbol: an operator as it is written, ``bool``, ``len``, or the name of a method of `str`.
        operands: the values that it is computed from.
        size: the number of operations in it.
    """

    symbol: str
    operands: tuple[Expression, ...]
    size: int = field(default=1, compare=False)


@dataclass(frozen=True, slots=True)
class _Method:
    name: str


Expression: TypeAlias = Record | Field | Constant | Operation | _Method
"""Stands for a value."""


@dataclass(frozen=True, slots=True)
class Returned:
    """The predicate returns this."""

    value: Expression


@dataclass(frozen=True, slots=True)
class Asked:
    """The predicate continues depending on the truth of `condition`."""

    condition: Expression
    if_true: Tree
    if_false: Tree


@dataclass(frozen=True, slots=True)
class Needed:
    """The predicate computes `value`, and continues unless that raises."""

    value: Expression
    then: Tree


@dataclass(frozen=True, slots=True)
class Unknown:
    """It is not known what the predicate does from here; `why` says it to a user."""

    why: str


Tree: TypeAlias = Returned | Asked | Needed | Unknown


def decisions(predicate: object, item: Record | Field) -> Tree:
    """Return what `predicate` decides about `item`, which is its only argument.

    Raises:
        GivenUpError: if nothing of it is known.
    """
    code_of(predicate)
    assert isinstance(predicate, FunctionType)
    return _Walk(predicate).start(item)


class _UnknownError(Exception):
    """It is not known what an instruction does; the text says which, for a user."""


_NULL: Final = Constant(Unknown)
"""Stands beside a function on the stack of a call."""

_FUNCTIONS: Final = (builtins.len, builtins.bool)
_METHODS: Final = frozenset({"startswith", "endswith"})

_NOTHING: Final = frozenset(
    "RESUME NOP CACHE PRECALL NOT_TAKEN EXTENDED_ARG COPY_FREE_VARS".split()  # noqa: SIM905
)
_LOADS: Final = frozenset(
    """
    LOAD_FAST LOAD_FAST_BORROW LOAD_FAST_CHECK
    LOAD_FAST_LOAD_FAST LOAD_FAST_BORROW_LOAD_FAST_BORROW
    """.split()  # noqa: SIM905
)
_JUMPS: Final = frozenset(
    """
    POP_JUMP_IF_FALSE POP_JUMP_IF_TRUE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE
    POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_TRUE
    POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE
    """.split()  # noqa: SIM905
)
_COLLECTIONS: Final = (tuple, list, set, frozenset)
_PLAIN: Final = (NoneType, bool, int, float, str)
_ARITHMETIC: Final = frozenset({"+", "-", "*", "/", "%"})


@dataclass(slots=True)
class _State:
    """The state of a path.

    Attributes:
        at: the index of the next instruction.
        stack: the values on the stack, the top one last.
        variables: the values of local variables.
        known: the truth of what has been asked before.
    """

    at: int
    stack: list[Expression]
    variables: dict[str, Expression]
    known: dict[Expression, bool]

    def copy(self) -> _State:
        return _State(self.at, self.stack[:], self.variables.copy(), self.known.copy())

    def pop(self, count: int) -> list[Expression]:
        found = self.stack[len(self.stack) - count :]
        del self.stack[len(self.stack) - count :]
        return found


class _Walk:
    """Walks through the instructions of a predicate, on each path."""

    def __init__(self, predicate: FunctionType) -> None:
        self._predicate = predicate
        self._steps = list(dis.get_instructions(predicate))
        self._at = {step.offset: index for index, step in enumerate(self._steps)}
        self._paths = 1

    def start(self, item: Record | Field) -> Tree:
        first, *others = self._predicate.__code__.co_varnames
        defaults = zip(others, self._predicate.__defaults__ or (), strict=False)
        variables = {name: Constant(value) for name, value in defaults if _is_known(value)}
        return self._tree(_State(0, [], {first: item, **variables}, {}))

    def _tree(self, state: _State) -> Tree:
        """Return what is decided from `state` on."""
        while True:
            step = self._steps[state.at]
            state.at += 1
            try:
                found = self._step(step, state)
            except _UnknownError as error:
                line = step.positions.lineno if step.positions else None
                return Unknown(f"{error}" if line is None else f"{error} in line {line}")
            if found is not None:
                return found

    def _step(self, step: dis.Instruction, state: _State) -> Tree | None:
        """Follow one instruction; return the rest of the tree if it is not the next one."""
        name, argument, stack = step.opname, step.argval, state.stack
        if name in _NOTHING:
            return None
        if name in _LOADS:
            variables = (argument,) if isinstance(argument, str) else argument
            stack += [self._variable(state, one) for one in variables]
        elif name == "STORE_FAST":
            return self._stored(state, argument)
        elif name == "STORE_FAST_STORE_FAST":
            return self._stored(state, *argument)
        elif name == "STORE_FAST_LOAD_FAST":
            return self._stored(state, argument[0], load=argument[1])
        elif name == "RETURN_VALUE":
            return self._returned(stack.pop(), state)
        elif name == "RETURN_CONST":
            return Returned(_constant(argument))
        elif name in _JUMPS:
            return self._branch(step, state)
        elif name in ("JUMP_IF_FALSE_OR_POP", "JUMP_IF_TRUE_OR_POP"):
            return self._branch_or_pop(step, state)
        elif name == "JUMP_FORWARD":
            state.at = self._target(step)
        elif name == "POP_TOP":
            return self._need(stack.pop(), state)
        else:
            self._value(step, state)
        return None

    def _value(self, step: dis.Instruction, state: _State) -> None:
        """Follow an instruction that only changes the stack."""
        name, argument, stack = step.opname, step.argval, state.stack
        bits: int = step.arg or 0
        if name in CONSTANTS:
            stack.append(_constant(argument))
        elif name == "LOAD_DEREF":
            stack.append(_constant(self._cell(argument), argument))
        elif name == "PUSH_NULL":
            stack.append(_NULL)
        elif name == "LOAD_GLOBAL":
            stack += [_NULL] * (bits & 1)
            stack.append(_constant(self._global(argument), argument))
        elif name in ("LOAD_ATTR", "LOAD_METHOD"):
            is_method = name == "LOAD_METHOD" or (sys.version_info >= (3, 12) and bits & 1)
            stack += _attribute(stack.pop(), argument, is_method=bool(is_method))
        elif name == "CALL":
            stack.append(_called(state.pop(bits + 2)))
        elif name == "COMPARE_OP":
            symbol = step.argrepr.removeprefix("bool(").removesuffix(")")
            stack.append(_operation(symbol, *state.pop(2)))
        elif name == "IS_OP":
            stack.append(_negated(_is_none(*state.pop(2)), bits))
        elif name == "CONTAINS_OP":
            stack.append(_negated(_operation("in", *state.pop(2)), bits))
        elif name == "BINARY_SUBSCR" or (name == "BINARY_OP" and step.argrepr == "[]"):
            stack.append(_subscript(*state.pop(2)))
        elif name == "BINARY_OP" and step.argrepr in _ARITHMETIC:
            stack.append(_operation(step.argrepr, *state.pop(2)))
        elif name == "UNARY_NEGATIVE":
            stack.append(_operation("-", Constant(0), stack.pop()))
        elif name == "UNARY_NOT":
            stack.append(_operation("not", stack.pop()))
        elif name == "TO_BOOL":
            stack.append(_operation("bool", stack.pop()))
        elif name == "COPY":
            stack.append(stack[-bits])
        elif name == "SWAP":
            stack[-1], stack[-bits] = stack[-bits], stack[-1]
        else:
            raise _UnknownError(f"it does more than compare: {step.argrepr or name}")

    def _target(self, step: dis.Instruction) -> int:
        """Return the index of the instruction that a jump goes to."""
        index = self._at.get(step.argval, 0)
        if index <= self._at[step.offset]:
            raise _UnknownError("it has a loop")
        return index

    def _branch(self, step: dis.Instruction, state: _State) -> Tree:
        kind = step.opname.rpartition("_IF_")[2]
        asked = state.stack.pop()
        if kind in ("NONE", "NOT_NONE"):
            asked = _is_none(asked, Constant(None))
        jumped = state.copy()
        jumped.at = self._target(step)
        return self._asked(asked, state, jumped, jumps_if=kind in ("TRUE", "NONE"))

    def _branch_or_pop(self, step: dis.Instruction, state: _State) -> Tree:
        asked = state.stack[-1]
        jumped = state.copy()
        jumped.at = self._target(step)
        state.stack.pop()
        return self._asked(asked, state, jumped, jumps_if="TRUE" in step.opname)

    def _asked(self, asked: Expression, stays: _State, jumped: _State, *, jumps_if: bool) -> Tree:
        condition, is_negated = _plain(asked)
        jumps = jumps_if is not is_negated
        truth = _truth(condition, stays.known)
        if truth is not None:
            return self._tree(jumped if truth is jumps else stays)
        self._paths += 1
        if self._paths > _MOST_PATHS:
            return Unknown(f"it has more than {_MOST_PATHS} paths")
        jumped.known[condition], stays.known[condition] = jumps, not jumps
        first, second = self._tree(jumped), self._tree(stays)
        return Asked(condition, *((first, second) if jumps else (second, first)))

    def _returned(self, value: Expression, state: _State) -> Tree:
        condition, is_negated = _plain(value)
        truth = _truth(condition, state.known)
        return Returned(value if truth is None else Constant(truth is not is_negated))

    def _need(self, value: Expression, state: _State) -> Tree | None:
        """Forget a value that may have raised when it was computed."""
        if isinstance(value, Operation) and _plain(value)[0] not in state.known:
            return Needed(value, self._tree(state))
        return None

    def _stored(self, state: _State, *names: str, load: str | None = None) -> Tree | None:
        values = [state.stack.pop() for _ in names]
        state.variables.update(zip(names, values, strict=True))
        if load is not None:
            state.stack.append(self._variable(state, load))
        computed = [value for value in values if isinstance(value, Operation)]
        if not computed:
            return None
        tree = self._tree(state)
        for value in computed:
            tree = Needed(value, tree)
        return tree

    def _variable(self, state: _State, name: str) -> Expression:
        if name not in state.variables:
            raise _UnknownError(f"it uses {name}, whose value is not known")
        return state.variables[name]

    def _cell(self, name: str) -> object:
        names = self._predicate.__code__.co_freevars
        try:
            return (self._predicate.__closure__ or ())[names.index(name)].cell_contents
        except ValueError:  # a variable of this function, or an empty one
            raise _UnknownError(f"it uses {name}, whose value is not known") from None

    def _global(self, name: str) -> object:
        scope = self._predicate.__globals__
        if name not in scope and hasattr(builtins, name):
            return getattr(builtins, name)
        if name not in scope or is_sent_by_reference(self._predicate):
            raise _UnknownError(f"it uses {name}, which may have another value where tasks run")
        return scope[name]


def _plain(asked: Expression) -> tuple[Expression, bool]:
    """Return what is asked without ``not`` and ``bool``, and whether it is the opposite."""
    is_negated = False
    while isinstance(asked, Operation) and asked.symbol in ("not", "bool"):
        is_negated ^= asked.symbol == "not"
        [asked] = asked.operands
    return asked, is_negated


def _truth(condition: Expression, known: dict[Expression, bool]) -> bool | None:
    """Return the truth of `condition` where it is known already."""
    return bool(condition.value) if isinstance(condition, Constant) else known.get(condition)


def _negated(value: Expression, is_negated: int) -> Expression:
    return _operation("not", value) if is_negated else value


def _operation(symbol: str, *operands: Expression) -> Operation:
    size = 1 + sum(one.size for one in operands if isinstance(one, Operation))
    if size > _MOST_OPERATIONS:
        raise _UnknownError(f"it has more than {_MOST_OPERATIONS} operations")
    return Operation(symbol, operands, size)


def _constant(value: object, name: str = "") -> Constant:
    if not _is_known(value):
        raise _UnknownError(f"it uses the {type(value).__name__} {name}".rstrip())
    return Constant(value)


def _is_known(value: object) -> bool:
    """Return whether it is a plain value, or some of them, or a function that is known here."""
    parts: Any = value if type(value) in _COLLECTIONS else (value,)  # Any: of any elements
    if len(parts) <= _MOST_CONSTANTS and all(type(part) in _PLAIN for part in parts):
        return True
    return any(value is one for one in _FUNCTIONS)


def _is_none(one: Expression, other: Expression) -> Expression:
    if one == Constant(None):
        one, other = other, one
    if other != Constant(None) or not isinstance(one, Field):
        raise _UnknownError("it asks whether a value is another one")
    return _operation("is None", one)


def _attribute(of: Expression, name: str, *, is_method: bool) -> list[Expression]:
    if not is_method and isinstance(of, Record) and name in of.by_name:
        return [Field(name)]
    if is_method and isinstance(of, Field) and name in _METHODS:
        return [_Method(name), of]
    raise _UnknownError(f"it takes .{name} of a value")


def _subscript(of: Expression, index: Expression) -> Expression:
    if isinstance(of, Record) and isinstance(index, Constant) and type(index.value) is int:
        count = len(of.by_index)
        if -count <= index.value < count:
            return Field(of.by_index[index.value])
    raise _UnknownError("it takes an element of a value")


def _called(values: list[Expression]) -> Expression:
    """Return the result of a call whose function and arguments are `values`, from the stack."""
    first, second, *arguments = values
    if isinstance(first, _Method) and len(arguments) == 1:
        return _operation(first.name, second, *arguments)
    for called in (first, second):
        for function in _FUNCTIONS:
            if isinstance(called, Constant) and called.value is function and len(arguments) == 1:
                return _operation(function.__name__, *arguments)
    raise _UnknownError("it calls a function")
