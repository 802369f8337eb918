"""Schemas: from Python types, from DDL, and between Arrow and Spark."""

from __future__ import annotations

import datetime
import decimal
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, final

from typing_extensions import TypeIs

from flow_spark.errors import UnsupportedTypeError
from flow_spark.items.arrow import ArrowField, ArrowSchema, ArrowType, pa
from flow_spark.items.kinds import inner_fields, is_binary, is_listed, is_text, with_inner
from flow_spark.items.objects import know, known_in, marked, spark_type_of, unmarked
from flow_spark.items.shapes import TypeHint, is_class, name_of, record_fields, unwrapped
from flow_spark.jobs.frames import arrow_schema, spark_schema, without_lengths

if TYPE_CHECKING:
    from pyspark.sql.types import StructField, StructType, UserDefinedType

__all__ = ["ItemSchema", "schema_of"]

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
    """The columns that items become. It can be pickled.

    Attributes:
        arrow: names, types and nullability, as Spark itself has them in batches.
        item_type: the class, annotation or Spark type of items that it was made from, if any.
        struct: Spark's form, where that has more: collations, user-defined types, metadata.
    """

    arrow: ArrowSchema
    item_type: TypeHint = None
    struct: StructType | None = None

    @staticmethod
    def of(given: TypeHint) -> ItemSchema:
        """Make a schema from DDL, a Spark or an Arrow schema, or a Python type.

        Args:
            given: ``"id bigint, name string"``, a StructType, a `pyarrow.Schema`, or a type as for
                `schema_of`. DDL needs a running session, whose parser reads it.

        Raises:
            UnsupportedTypeError: if `given` has no counterpart in Spark.
        """
        if isinstance(given, ItemSchema):
            return given
        if _is_arrow(given):
            return ItemSchema(_spark_to_arrow(_arrow_to_spark(given)))
        from pyspark.sql.types import DataType, StructType

        if isinstance(given, str):
            given = DataType.fromDDL(given)
        if isinstance(given, DataType):
            columns = (
                given if isinstance(given, StructType) else StructType().add(SCALAR_COLUMN, given)
            )
            struct = without_lengths(columns)
            return ItemSchema(_spark_to_arrow(struct), None if columns is given else given, struct)
        return schema_of(given)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(str(name) for name in self.arrow.names)

    @property
    def bare(self) -> bool:
        """Return whether a list or a dict is the value of the only column, and not a row."""
        inner, _ = unwrapped(self.item_type)
        if inner is None or record_fields(inner) is not None:
            return False
        if typing.get_origin(inner) is tuple and _fixed_parts(inner) is not None:
            return False
        (column,) = self.arrow
        return is_listed(column.type) or pa.types.is_map(column.type)

    def spark(self) -> StructType:
        """Return the columns as a schema of Spark."""
        return _arrow_to_spark(self.arrow) if self.struct is None else self.struct

    def __reduce__(self) -> tuple[Callable[..., ItemSchema], tuple[object, ...]]:
        """Pickle the schema with the user-defined types that its marks stand for."""
        return _remade, (known_in(self.arrow), self.arrow, self.item_type, self.struct)

    def __str__(self) -> str:
        return ", ".join(f"{field.name}: {field.type}" for field in self.arrow)


def _remade(
    types: dict[bytes, UserDefinedType],
    arrow: ArrowSchema,
    item_type: TypeHint,
    struct: StructType | None,
) -> ItemSchema:
    know(types)
    return ItemSchema(arrow, item_type, struct)


def schema_of(hint: TypeHint) -> ItemSchema:
    """Return the schema for items of a Python type.

    >>> from typing import NamedTuple
    >>> class Point(NamedTuple):
    ...     x: int
    ...     label: str | None
    >>> print(schema_of(Point))
    x: int64, label: string
    >>> schema_of(Point).arrow.field("label").nullable
    True

    Args:
        hint: a dataclass, NamedTuple or TypedDict, whose fields become columns;
            ``tuple[int, str]``, whose columns are ``_1``, ``_2``; or a plain type, which becomes
            the column ``value``.

    Raises:
        UnsupportedTypeError: if a type in it has no counterpart in Spark; the text says where it
            is.
    """
    inner, _ = unwrapped(hint)
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
        columns = [_field(SCALAR_COLUMN, hint, str(inner))]
    if not columns:
        raise UnsupportedTypeError(f"{hint} has no fields, and Spark no rows without columns")
    return ItemSchema(pa.schema(columns), hint)


def _field(name: str, hint: TypeHint, where: str) -> ArrowField:
    inner, optional = unwrapped(hint)
    own = spark_type_of(inner)
    if own is not None:
        from pyspark.sql.types import StructType

        (column,) = _spark_to_arrow(StructType().add(name, own, optional))
        return column
    return pa.field(name, _arrow(inner, where), nullable=optional)


def _arrow(hint: TypeHint, where: str) -> ArrowType:
    inner, _ = unwrapped(hint)
    found = _SCALARS.get(inner) if is_class(inner) else None
    if found is not None:
        return found
    fields = record_fields(inner)
    if fields is not None:
        return pa.struct([_field(name, part, f"{where}.{name}") for name, part in fields])
    origin, parts = typing.get_origin(inner), typing.get_args(inner)
    if origin is Literal:
        kinds: set[type[Any]] = {type(value) for value in parts}
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
        return pa.map_(_arrow(key, f"{where}, keys"), _field("value", value, f"{where}, values"))
    elif isinstance(origin, type) and issubclass(origin, (Sequence, Iterable)):
        return _list(parts[0], where)
    raise UnsupportedTypeError(
        f"{where}: {name_of(inner)} has no counterpart in a Spark schema; use one of "
        f"{', '.join(name_of(kind) for kind in _SCALARS)}, lists and dicts of them, dataclasses, "
        "NamedTuples, or give a schema"
    )


def _list(hint: TypeHint, where: str) -> ArrowType:
    return pa.list_(_field("element", hint, f"{where}, elements"))


def _fixed_parts(hint: TypeHint) -> tuple[TypeHint, ...] | None:
    """Return the types of ``tuple[A, B]``; None for ``tuple[A, ...]``."""
    parts = typing.get_args(hint)
    return None if len(parts) == 2 and parts[1] is Ellipsis else parts


def _spark_to_arrow(struct: StructType) -> ArrowSchema:
    try:
        return marked(arrow_schema(struct), struct)
    except _refusals() as error:
        refused = next(field for field in struct if not _has_arrow(field))
        raise UnsupportedTypeError(
            f"column {refused.name!r} is of type {refused.dataType.simpleString()}, which PySpark "
            f"does not hand over as Arrow: {error} Cast it, as "
            f'df["{refused.name}"].cast("string") does'
        ) from error


def _refusals() -> tuple[type[Exception], ...]:
    """Return the errors that PySpark raises for a type without a counterpart."""
    from pyspark.errors import PySparkException

    return PySparkException, ValueError  # for a decimal with too many digits


def _has_arrow(field: StructField) -> bool:
    from pyspark.sql.types import StructType

    try:
        arrow_schema(StructType([field]))
    except _refusals():
        return False
    return True


def _arrow_to_spark(schema: ArrowSchema) -> StructType:
    try:
        return unmarked(spark_schema(pa.schema([_spelled(field) for field in schema])), schema)
    except _refusals() as error:
        columns = ", ".join(f"{field.name}: {field.type}" for field in schema)
        raise UnsupportedTypeError(f"Spark has no type for a column of {columns}") from error


def _spelled(field: ArrowField) -> ArrowField:
    """Return `field` with a type that PySpark knows, if it knows one for the same values."""
    return field.with_type(_spelled_type(field.type))


def _spelled_type(kind: ArrowType) -> ArrowType:
    if pa.types.is_dictionary(kind):
        return _spelled_type(kind.value_type)
    if is_text(kind):
        return pa.string()
    if is_binary(kind):
        return pa.binary()
    if pa.types.is_time(kind):
        return pa.time64("us")
    if pa.types.is_date(kind):
        return pa.date32()
    return with_inner(kind, [_spelled(field) for field in inner_fields(kind)])


def _is_arrow(given: object) -> TypeIs[ArrowSchema]:
    return isinstance(given, pa.Schema)
