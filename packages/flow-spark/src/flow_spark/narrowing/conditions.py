"""Conditions of Spark's SQL for the decisions of a predicate about a row.

A condition may be vague: it says where a predicate *may* hold, and where it *may* raise. So it is
true for each row that the predicate keeps or fails for, and for some others as well. Conditions are
put together by AND and OR alone; where one is null, it counts as false.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, cast

from typing_extensions import override

from flow_spark.items.spelling import quoted
from flow_spark.narrowing.decisions import (
    Asked,
    Constant,
    Expression,
    Field,
    Needed,
    Operation,
    Returned,
    Tree,
    Unknown,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["FALSE", "TRUE", "Conditions", "Kind", "Where", "all_of", "any_of", "kinds_of"]

Kind: TypeAlias = Literal["int", "float", "str", "bool"]
"""The type of a value. That of an int has 64 bits."""

_KINDS: Final[dict[str, Kind]] = {
    "byte": "int",
    "short": "int",
    "integer": "int",
    "long": "int",
    "float": "float",
    "double": "float",
    "string": "str",
    "boolean": "bool",
}
_BY_BYTES: Final = "UTF8_BINARY"

TRUE: Final = "TRUE"
FALSE: Final = "FALSE"

_EXACT: Final = 2**53
"""Up to here each int is a float."""
_LEAST, _GREATEST = -(2**63), 2**63 - 1

_LONGEST: Final = 1024
"""The length of the text of a value, in characters."""

_OPPOSITE: Final = {"<": ">=", ">=": "<", ">": "<=", "<=": ">", "==": "!=", "!=": "=="}
_TURNED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}
_OF_INTS: Final = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}
"""They give null where the result has more than 64 bits."""
_READABLE: Final = frozenset(" _-./:,+@")


def kinds_of(schema: StructType, names: Container[str]) -> dict[str, Kind]:
    """Return the types of those columns among `names` that Spark compares as Python does."""
    found: dict[str, Kind] = {}
    for field in schema:
        kind = _KINDS.get(field.dataType.typeName())
        # Other collations ignore case, or accents.
        by_bytes = getattr(field.dataType, "collation", _BY_BYTES) == _BY_BYTES
        # A session may put a variable in the place of ${…}, also within the name of a column.
        if kind is not None and by_bytes and field.name in names and "$" not in field.name:
            found[field.name] = kind
    return found


@dataclass(frozen=True, slots=True)
class Joined:
    """Several conditions, joined by AND or OR.

    Attributes:
        symbol: the word between them.
        parts: the conditions; none is joined by the same word.
    """

    symbol: str
    parts: tuple[Where, ...]

    @override
    def __str__(self) -> str:
        return f" {self.symbol} ".join(
            f"({part})" if isinstance(part, Joined) else part for part in self.parts
        )


Where: TypeAlias = str | Joined
"""A condition."""


class Condition(NamedTuple):
    """The conditions for an expression to be true, to be false, and to raise.

    Attributes:
        holds: true where the expression may be true or raise.
        fails: true where it may be false or raise.
        raises: true where it may raise.
    """

    holds: Where
    fails: Where
    raises: Where


class _UnsaidError(Exception):
    """There is no condition for it; the text says why, for a user."""


class _Value(NamedTuple):
    """A value, null where it is None, and where Python raises.

    Attributes:
        kind: its type.
        text: an expression of SQL.
        undefined: true where it is null.
        raises: true where it may raise.
    """

    kind: Kind
    text: str
    undefined: Where
    raises: Where

    @property
    def nan(self) -> Where:
        """True where it is not a number; a constant is one."""
        may_be = self.kind == "float" and self.undefined != FALSE
        return f"isnan({self.text})" if may_be else FALSE


class Conditions:
    """Writes expressions as conditions.

    Args:
        kinds: the types of the columns that conditions may use.

    Attributes:
        why: the reasons why parts have no condition, for a user.
    """

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self._kinds: Final = kinds
        self.why: Final[list[str]] = []

    def of_tree(self, tree: Tree) -> tuple[Where, Where]:
        """Return where `tree` may return a true value or raise, and where it may raise."""
        match tree:
            case Unknown(why):
                self.why.append(why)
                return TRUE, TRUE
            case Returned(value):
                condition = self.of(value)
                return condition.holds, condition.raises
            case Needed(value, then):
                raises = self._raises(value)
                holds, later = self.of_tree(then)
                return any_of(raises, holds), any_of(raises, later)
            case Asked(asked, if_true, if_false):
                condition = self.of(asked)
                return _either(condition, self.of_tree(if_true), self.of_tree(if_false))

    def of(self, expression: Expression) -> Condition:
        """Return where `expression` is true, false and raises, as Python evaluates it."""
        try:
            return self._truth(expression)
        except _UnsaidError as error:
            self.why.append(str(error))
            return Condition(TRUE, TRUE, TRUE)

    def _raises(self, expression: Expression) -> Where:
        """Return where computing `expression` may raise."""
        try:
            return self._value(expression).raises
        except _UnsaidError:
            return self.of(expression).raises

    def _truth(self, expression: Expression) -> Condition:
        match expression:
            case Constant(value):
                return Condition(*(TRUE, FALSE) if value else (FALSE, TRUE), FALSE)
            case Operation("bool", (operand,)):
                return self._truth(operand)
            case Operation("not", (operand,)):
                holds, fails, raises = self._truth(operand)
                return Condition(fails, holds, raises)
            case Operation("is None", (Field(name),)):
                column = quoted(name)
                return Condition(f"{column} IS NULL", f"{column} IS NOT NULL", FALSE)
            case Operation("in", (element, Constant(elements))):
                return self._in(element, elements)
            case Operation("in", (part, whole)):
                return self._of_strings("contains", whole, part)
            case Operation("startswith" | "endswith" as name, (whole, part)):
                return self._of_strings(name, whole, part)
            case Operation(symbol, (left, right)) if symbol in _OPPOSITE:
                return self._compared(symbol, left, right)
            case _:
                return _truth_of(self._value(expression))

    def _in(self, element: Expression, elements: object) -> Condition:
        value = self._value(element)
        if not isinstance(elements, (tuple, list, set, frozenset)):
            raise _UnsaidError("it asks for a part of a value")
        parts = cast("Collection[object]", elements)
        found = [self._value(Constant(part)) for part in parts]
        if not found or value.kind == "float" or any(one.kind != value.kind for one in found):
            raise _UnsaidError("it asks for an element of another type")
        texts = sorted(one.text for one in found)
        holds = f"{value.text} IN ({', '.join(texts)})"
        return Condition(
            any_of(holds, value.raises), any_of(f"NOT {holds}", value.undefined), value.raises
        )

    def _of_strings(self, name: str, whole: Expression, part: Expression) -> Condition:
        one, other = self._value(whole), self._value(part)
        if one.kind != "str" or other.kind != "str":
            raise _UnsaidError("it asks for a part of what is not text")
        holds = f"{name}({one.text}, {other.text})"
        raises = any_of(one.undefined, other.undefined)
        return Condition(any_of(holds, raises), any_of(f"NOT {holds}", raises), raises)

    def _compared(self, symbol: str, left: Expression, right: Expression) -> Condition:
        if isinstance(left, Constant):
            symbol, left, right = _TURNED[symbol], right, left
        symbol, one, other = self._comparable(symbol, left, right)
        if symbol == "!=":
            holds, fails, raises = _equal(one, other)
            return Condition(fails, holds, raises)
        if symbol == "==":
            return _equal(one, other)
        raises = any_of(one.undefined, other.undefined)
        fails = f"{one.text} {_OPPOSITE[symbol]} {other.text}"
        return Condition(
            any_of(f"{one.text} {symbol} {other.text}", raises),
            any_of(fails, one.nan, other.nan, raises),  # for Spark, NaN is the greatest
            raises,
        )

    def _comparable(
        self, symbol: str, left: Expression, right: Expression
    ) -> tuple[str, _Value, _Value]:
        """Return a comparison of values that Spark compares as Python does."""
        one = self._value(left)
        if one.kind == "int" and isinstance(right, Constant) and type(right.value) is float:
            symbol, right = _as_int(symbol, right.value)
        other = self._value(right)
        if one.kind == "float" and isinstance(right, Constant) and type(right.value) is int:
            other = _exact_constant(right.value)
        if {one.kind, other.kind} == {"int", "float"}:
            return symbol, _exact(one), _exact(other)
        if one.kind != other.kind or one.kind == "bool":
            raise _UnsaidError(f"it compares {one.kind} with {other.kind}")
        return symbol, one, other

    def _value(self, expression: Expression) -> _Value:
        match expression:
            case Field(name):
                if name not in self._kinds:
                    raise _UnsaidError(f"it uses the column {name}, of another type")
                column = quoted(name)
                return _Value(self._kinds[name], column, f"{column} IS NULL", FALSE)
            case Constant(value):
                return _constant(value)
            case Operation("len", (operand,)):
                of = self._value(operand)
                if of.kind == "str":
                    return _computed("int", f"char_length({of.text})")
            case Operation(symbol, (left, right)) if symbol in ("+", "-", "*", "/", "%"):
                return self._arithmetic(symbol, left, right)
            case _:
                pass
        raise _UnsaidError("it computes more than numbers and comparisons")

    def _arithmetic(self, symbol: str, left: Expression, right: Expression) -> _Value:
        one, other = self._value(left), self._value(right)
        if not {one.kind, other.kind} <= {"int", "float"}:
            raise _UnsaidError(f"it has {one.kind} {symbol} {other.kind}")
        if one.kind == other.kind == "int":
            if symbol in _OF_INTS:
                return _computed("int", f"{_OF_INTS[symbol]}({_long(one)}, {_long(other)})")
            if symbol == "/":
                return _computed("float", f"try_divide({_exact(one).text}, {_exact(other).text})")
            if isinstance(right, Constant) and isinstance(right.value, int) and right.value > 0:
                return _computed("int", f"pmod({_long(one)}, {_long(other)})")
        elif symbol == "/":
            return _computed("float", f"try_divide({_double(one)}, {_double(other)})")
        elif symbol in _OF_INTS:
            return _computed("float", f"({_double(one)} {symbol} {_double(other)})")
        raise _UnsaidError(f"it has {one.kind} {symbol} {other.kind}")


def any_of(*conditions: Where) -> Where:
    """Return a condition that is true where one of `conditions` is."""
    return _joined("OR", conditions, neutral=FALSE, strongest=TRUE)


def all_of(*conditions: Where) -> Where:
    """Return a condition that is true where all of `conditions` are."""
    return _joined("AND", conditions, neutral=TRUE, strongest=FALSE)


def _joined(symbol: str, conditions: tuple[Where, ...], *, neutral: str, strongest: str) -> Where:
    parts: dict[Where, None] = {}  # in their order, and each once
    for one in conditions:
        inner = one.parts if isinstance(one, Joined) and one.symbol == symbol else (one,)
        parts.update(dict.fromkeys(part for part in inner if part != neutral))
    if strongest in parts:
        return strongest
    if len(parts) < 2:
        return next(iter(parts), neutral)
    return Joined(symbol, tuple(parts))


def _either(
    condition: Condition, if_true: tuple[Where, Where], if_false: tuple[Where, Where]
) -> tuple[Where, Where]:
    (holds_true, raises_true), (holds_false, raises_false) = if_true, if_false
    raises = any_of(condition.raises, raises_true, raises_false)
    if holds_false == FALSE:
        return all_of(condition.holds, any_of(condition.raises, holds_true)), raises
    if holds_true == FALSE:
        return all_of(condition.fails, any_of(condition.raises, holds_false)), raises
    holds = all_of(any_of(condition.fails, holds_true), any_of(condition.holds, holds_false))
    return holds, raises


def _truth_of(value: _Value) -> Condition:
    text = value.text
    tests = {"bool": (text, f"NOT {text}"), "str": (f"{text} != ''", f"{text} = ''")}
    holds, fails = tests.get(value.kind, (f"{text} != 0", f"{text} = 0"))
    return Condition(any_of(holds, value.raises), any_of(fails, value.undefined), value.raises)


def _equal(one: _Value, other: _Value) -> Condition:
    raises = any_of(one.raises, other.raises)
    if other.undefined == FALSE:
        holds: Where = f"{one.text} = {other.text}"
        fails = any_of(f"{one.text} != {other.text}", one.undefined)
    else:
        holds = f"{one.text} <=> {other.text}"
        fails = any_of(f"NOT ({holds})", one.nan, other.nan)  # for Spark, NaN = NaN
    return Condition(any_of(holds, raises), any_of(fails, raises), raises)


def _as_int(symbol: str, limit: float) -> tuple[str, Constant]:
    """Return the same comparison of an int, with an int."""
    if not math.isfinite(limit):
        raise _UnsaidError(f"it compares int with {limit}")
    if symbol in ("==", "!=") and not limit.is_integer():
        raise _UnsaidError(f"it compares int with {limit}")
    return symbol, Constant(math.floor(limit) if symbol in (">", "<=") else math.ceil(limit))


def _exact_constant(limit: int) -> _Value:
    """Return the same number as a float."""
    if abs(limit) > _EXACT:
        raise _UnsaidError(f"it compares float with {limit}")
    return _constant(float(limit))


def _computed(kind: Kind, text: str) -> _Value:
    if len(text) > _LONGEST:
        raise _UnsaidError("it computes too much")
    return _Value(kind, text, f"{text} IS NULL", f"{text} IS NULL")


def _exact(value: _Value) -> _Value:
    """Return `value` as a float, where that is the same number."""
    if value.kind == "float":
        return value
    text = value.text
    limits = f"BETWEEN -{_EXACT} AND {_EXACT}"
    return _computed("float", f"CASE WHEN {text} {limits} THEN CAST({text} AS DOUBLE) END")


def _long(value: _Value) -> str:
    return f"{value.text}L" if _is_int(value.text) else f"CAST({value.text} AS BIGINT)"


def _is_int(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def _double(value: _Value) -> str:
    return f"CAST({value.text} AS DOUBLE)"


def _constant(value: object) -> _Value:
    if type(value) is int and _LEAST <= value <= _GREATEST:
        return _Value("int", str(value), FALSE, FALSE)
    if type(value) is float and not math.isnan(value):
        text = f"{value!r}D" if math.isfinite(value) else f"CAST('{value!r}' AS DOUBLE)"
        return _Value("float", text, FALSE, FALSE)
    if type(value) is str:
        return _Value("str", _string(value), FALSE, FALSE)
    raise _UnsaidError(f"it uses {value!r}")


def _string(value: str) -> str:
    """Return a literal that has the same value however a session is configured."""
    if all(one.isascii() and (one.isalnum() or one in _READABLE) for one in value):
        return f"'{value}'"
    try:
        encoded = value.encode().hex()
    except UnicodeEncodeError:
        raise _UnsaidError(f"it uses {value!r}") from None
    return f"CAST(X'{encoded}' AS STRING)"
