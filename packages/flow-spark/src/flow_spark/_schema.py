"""Schemas: from Python types, from DDL, and between Arrow and Spark."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final, Literal, Union, final

from flow_spark._arrow import ArrowField, ArrowSchema, ArrowType, pa
from flow_spark.errors import UnsupportedTypeError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["ItemSchema", "TypeHint", "is_namedtuple", "record_fields", "schema_of"]

TypeHint = object
"""What may stand in an annotation; `typing` has no better name for it."""

DECIMAL_PRECISION: Final = 38
DECIMAL_SCALE: Final = 18
SCALAR_COLUMN: Final = "value"
"""The name of the only column of a flow of plain values, as Spark itself names it."""

_SCALARS: Final[Mapping[TypeHint, ArrowType]] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    bytes: pa.binary(),
    bytearray: pa.binary(),
    decimal.Decimal: pa.decimal128(DECIMAL_PRECISION, DECIMAL_SCALE),
    datetime.datetime: pa.timestamp("us", tz="UTC"),
    datetime.date: pa.date32(),
    datetime.timedelta: pa.duration("us"),
}


@final
@dataclass(frozen=True, slots=True)
class ItemSchema:
    """The columns that items become. Picklable.

    Attributes:
        arrow: names, types and nullability.
        item_type: the class or annotation that it was made from, if it was.
    """

    arrow: ArrowSchema
    item_type: TypeHint = None

    @staticmethod
    def of(given: TypeHint) -> ItemSchema:
        """From whatever a user may give: DDL, a Spark or an Arrow schema, or a Python type.

        Args:
            given: ``"id bigint, name string"``, a StructType, a `pyarrow.Schema`, or a type as
                for `schema_of`. DDL needs a running session, whose parser reads it.

        Raises:
            UnsupportedTypeError: if it has no counterpart in Spark.
        """
        if isinstance(given, ItemSchema):
            return given
        if isinstance(given, pa.Schema):
            return ItemSchema(given)
        from pyspark.sql.types import DataType, StructType

        if isinstance(given, str):
            given = DataType.fromDDL(given)
        if isinstance(given, DataType):
            if not isinstance(given, StructType):
                given = StructType().add(SCALAR_COLUMN, given)
            return ItemSchema(_spark_to_arrow(given))
        return schema_of(given)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(str(name) for name in self.arrow.names)

    def spark(self) -> StructType:
        """The same as Spark says it."""
        from pyspark.sql.pandas.types import from_arrow_schema

        try:
            return from_arrow_schema(self.arrow, prefer_timestamp_ntz=True)
        except Exception as error:
            raise UnsupportedTypeError(f"Spark has no type for a column of {self}") from error

    def ddl(self) -> str:
        """The same as text, for people and for Spark."""
        return self.spark().toDDL()

    def __str__(self) -> str:
        return ", ".join(f"{field.name}: {field.type}" for field in self.arrow)


def schema_of(hint: TypeHint) -> ItemSchema:
    """The schema for items of a Python type.

    >>> from typing import NamedTuple
    >>> class Point(NamedTuple):
    ...     x: int
    ...     label: str | None
    >>> print(schema_of(Point))
    x: int64, label: string
    >>> schema_of(Point).arrow.field("label").nullable
    True

    Args:
        hint: a dataclass, NamedTuple or TypedDict, whose fields become columns; ``tuple[int, str]``,
            whose columns are ``_1``, ``_2``; or a plain type, which becomes the column ``value``.

    Raises:
        UnsupportedTypeError: if a type in it has no counterpart in Spark; the text says where.
    """
    inner, optional = _unwrap(hint)
    fields = record_fields(inner)
    if fields is not None:
        where = getattr(inner, "__qualname__", str(inner))
        columns = [_field(name, part, f"{where}.{name}") for name, part in fields]
    elif typing.get_origin(inner) is tuple and (parts := _fixed_parts(inner)) is not None:
        columns = [
            _field(f"_{index}", part, f"element {index} of {inner}")
            for index, part in enumerate(parts, 1)
        ]
    else:
        columns = [pa.field(SCALAR_COLUMN, _arrow(inner, str(inner)), nullable=optional)]
    if not columns:
        raise UnsupportedTypeError(f"{hint} has no fields, and Spark no rows without columns")
    return ItemSchema(pa.schema(columns), hint)


def record_fields(hint: TypeHint) -> list[tuple[str, TypeHint]] | None:
    """Names and types of the fields of a dataclass, NamedTuple or TypedDict; None for the rest."""
    if not isinstance(hint, type):
        return None
    if dataclasses.is_dataclass(hint):
        names = [field.name for field in dataclasses.fields(hint)]
    elif is_namedtuple(hint):
        names = list(hint._fields)  # type: ignore[attr-defined]  # is_namedtuple has seen it
    elif typing.is_typeddict(hint):
        names = list(hint.__annotations__)
    else:
        return None
    hints = typing.get_type_hints(hint, include_extras=False)
    missing = [name for name in names if name not in hints]
    if missing:
        raise UnsupportedTypeError(
            f"{hint.__qualname__} does not say the types of {', '.join(missing)}; use "
            "typing.NamedTuple or a dataclass, or give a schema"
        )
    return [(name, hints[name]) for name in names]


def is_namedtuple(cls: type) -> bool:
    """Whether `cls` is what ``NamedTuple`` or ``namedtuple`` makes."""
    return issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


def _field(name: str, hint: TypeHint, where: str) -> ArrowField:
    inner, optional = _unwrap(hint)
    return pa.field(name, _arrow(inner, where), nullable=optional)


def _arrow(hint: TypeHint, where: str) -> ArrowType:
    inner, _ = _unwrap(hint)
    found = _SCALARS.get(inner) if isinstance(inner, type) else None
    if found is not None:
        return found
    fields = record_fields(inner)
    if fields is not None:
        return pa.struct([_field(name, part, f"{where}.{name}") for name, part in fields])
    origin, parts = typing.get_origin(inner), typing.get_args(inner)
    if origin is Literal:
        kinds = {type(value) for value in parts}
        if len(kinds) == 1:
            return _arrow(kinds.pop(), where)
    elif origin is tuple:
        fixed = _fixed_parts(inner)
        if fixed is None:
            return _list(parts[0], where)
        return pa.struct(
            [_field(f"_{index}", part, f"{where}._{index}") for index, part in enumerate(fixed, 1)]
        )
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        key, value = parts
        plain, optional = _unwrap(value)
        item = pa.field("value", _arrow(plain, f"{where}, values"), nullable=optional)
        return pa.map_(_arrow(key, f"{where}, keys"), item)
    elif isinstance(origin, type) and issubclass(origin, (Sequence, Iterable)):
        return _list(parts[0], where)
    raise UnsupportedTypeError(
        f"{where}: {_name(inner)} has no counterpart in a Spark schema; use one of "
        f"{', '.join(_name(kind) for kind in _SCALARS)}, lists and dicts of them, dataclasses, "
        "NamedTuples, or give a schema"
    )


def _list(hint: TypeHint, where: str) -> ArrowType:
    inner, optional = _unwrap(hint)
    return pa.list_(pa.field("element", _arrow(inner, f"{where}, elements"), nullable=optional))


def _fixed_parts(hint: TypeHint) -> tuple[TypeHint, ...] | None:
    """The types of ``tuple[A, B]``; None for ``tuple[A, ...]``."""
    parts = typing.get_args(hint)
    return None if len(parts) == 2 and parts[1] is Ellipsis else parts


def _unwrap(hint: TypeHint) -> tuple[TypeHint, bool]:
    """`hint` without Optional, Annotated, NewType and aliases, and whether it may be None."""
    optional = False
    while True:
        origin = typing.get_origin(hint)
        if origin is Annotated:
            hint = typing.get_args(hint)[0]
        elif origin in (Union, types.UnionType):
            parts = [part for part in typing.get_args(hint) if part is not types.NoneType]
            if len(parts) != 1:
                return hint, optional
            hint, optional = parts[0], True
        elif isinstance(hint, typing.NewType):
            hint = hint.__supertype__
        elif hasattr(hint, "__value__"):  # type X = ..., since Python 3.12
            hint = hint.__value__
        else:
            return hint, optional


def _spark_to_arrow(struct: StructType) -> ArrowSchema:
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        schema: ArrowSchema = to_arrow_schema(struct, timezone="UTC")
    except Exception as error:
        raise UnsupportedTypeError(
            f"a column of {struct.simpleString()} cannot be sent as Arrow: {error}"
        ) from error
    return schema


def _name(hint: TypeHint) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint)
