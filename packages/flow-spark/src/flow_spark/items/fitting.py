"""The check of a DataFrame's columns against the types of the fields that they become."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import decimal
import enum
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, TypeVar, Union

from flow_spark.errors import SchemaMismatchError
from flow_spark.items.arrow import ArrowField, ArrowSchema, ArrowType, pa
from flow_spark.items.kinds import inner_fields, is_binary, is_listed, is_text
from flow_spark.items.objects import objects_of
from flow_spark.items.shapes import (
    Fields,
    TypeHint,
    class_of,
    is_class,
    is_row_class,
    name_of,
    record_fields,
    unwrapped,
)

__all__ = [
    "check_fit",
    "checks_itself",
    "chosen",
    "filled_alone",
    "has_default",
]


# Any: any class in an annotation.
_KINDS: Final[Mapping[type[Any], Callable[[ArrowType], bool]]] = {
    bool: pa.types.is_boolean,
    int: pa.types.is_integer,
    float: lambda kind: pa.types.is_floating(kind) or pa.types.is_integer(kind),
    str: is_text,
    bytes: is_binary,
    bytearray: is_binary,
    decimal.Decimal: pa.types.is_decimal,
    datetime.datetime: pa.types.is_timestamp,
    datetime.date: pa.types.is_date,
    datetime.time: pa.types.is_time,
    datetime.timedelta: pa.types.is_duration,
    types.NoneType: pa.types.is_null,
}
_LISTS: Final = (list, tuple, set, frozenset)


def check_fit(schema: ArrowSchema, as_: TypeHint) -> None:
    """Refuse columns from which a record would get values of other types.

    Types of fields may be wider than those of the columns: a float takes integers, which become
    floats. Dataclasses of pydantic check and convert their values themselves. Nulls are not
    checked.

    Args:
        schema: the schema of the DataFrame.
        as_: the type of an item; see `RowReader`.

    Raises:
        SchemaMismatchError: for the first column that does not fit.
    """
    fields = record_fields(as_)
    if fields is None or checks_itself(as_):
        return
    names = set(schema.names)
    for name, hint in fields:
        if name not in names or name in filled_alone(as_):
            continue
        for where, field, wanted in _misfits(schema.field(name), hint, name):
            column = "the column" if where == name else f"what is there in column {name!r}"
            given = f"{column} is of type {_spark_name(field)}"
            if isinstance(wanted, str):
                raise SchemaMismatchError(f"{name_of(as_)}.{where} {wanted}: {given}", field=name)
            raise SchemaMismatchError(
                f"{name_of(as_)}.{where} is {name_of(wanted)}, and {given}; cast the column, or "
                "give the field the type that it has",
                field=name,
            )


def chosen(field: ArrowField, hint: TypeHint) -> TypeHint:
    """Return the type, among those that `hint` allows, that values of `field` become.

    The result is without Optional.
    """
    inner, _ = unwrapped(hint)
    if typing.get_origin(inner) in (Union, types.UnionType):
        for part in typing.get_args(inner):
            if _fits(field, part):
                return chosen(field, part)
        return None
    return inner


def filled_alone(as_: TypeHint) -> frozenset[str]:
    """Return the fields that a dataclass fills itself (``init=False``), not from arguments."""
    if not (is_class(as_) and dataclasses.is_dataclass(as_)):
        return frozenset()
    return frozenset(field.name for field in dataclasses.fields(as_) if not field.init)


def has_default(as_: TypeHint, name: str) -> bool:
    """Return whether a record can be made without the field `name`."""
    if is_class(as_) and dataclasses.is_dataclass(as_):
        field = next(field for field in dataclasses.fields(as_) if field.name == name)
        return (
            field.default is not dataclasses.MISSING
            or field.default_factory is not dataclasses.MISSING
        )
    if typing.is_typeddict(as_):
        optional: frozenset[str] = getattr(as_, "__optional_keys__", frozenset())
        return name in optional
    return name in getattr(as_, "_field_defaults", {})


_Misfit = tuple[str, ArrowField, TypeHint]
"""The place, the field that is there, and what it should be: a type, or a text about the
problem."""


def _misfits(field: ArrowField, hint: TypeHint, where: str) -> Iterator[_Misfit]:
    inner, _ = unwrapped(hint)
    if pa.types.is_dictionary(field.type):
        field = field.with_type(field.type.value_type)
    if inner is Any or inner is object or isinstance(inner, TypeVar):
        return
    origin = typing.get_origin(inner)
    if origin in (Union, types.UnionType):
        if not any(_fits(field, part) for part in typing.get_args(inner)):
            yield where, field, inner
    elif (objects := objects_of(field)) is not None:
        if not objects.fits(inner):
            yield where, field, inner
    elif origin is Literal:
        if not any(_fits(field, class_of(value)) for value in typing.get_args(inner)):
            yield where, field, inner
    elif is_class(inner) and issubclass(inner, enum.Enum):
        if not any(_fits(field, class_of(member.value)) for member in inner):
            yield where, field, inner
    elif is_class(inner) and inner in _KINDS:
        if not _KINDS[inner](field.type):
            yield where, field, inner
    elif (fields := record_fields(inner)) is not None:
        yield from _struct_misfits(field, inner, fields, where)
    else:
        yield from _nested_misfits(field, inner, where)


def _struct_misfits(
    given: ArrowField, record: TypeHint, fields: Fields, where: str
) -> Iterator[_Misfit]:
    if checks_itself(record):
        return
    if not pa.types.is_struct(given.type):
        yield where, given, record
        return
    parts = {field.name: field for field in inner_fields(given.type)}
    for name, hint in fields:
        if name in filled_alone(record):
            continue
        if name in parts:
            yield from _misfits(parts[name], hint, f"{where}.{name}")
        elif not has_default(record, name):
            yield where, given, f"needs a field {name!r}, and there is none"


def _nested_misfits(given: ArrowField, hint: TypeHint, where: str) -> Iterator[_Misfit]:
    kind = given.type
    base: TypeHint = typing.get_origin(hint) or hint
    arguments = typing.get_args(hint)
    if not is_class(base):
        yield where, given, "is of a type that no column has"
    elif base is tuple and arguments and arguments[-1] is not Ellipsis:
        if not pa.types.is_struct(kind) or kind.num_fields != len(arguments):
            yield where, given, hint
            return
        for field, part in zip(inner_fields(kind), arguments, strict=True):
            yield from _misfits(field, part, f"{where}.{field.name}")
    elif is_listed(kind) and any(issubclass(one, base) for one in _LISTS):
        if arguments:
            yield from _misfits(kind.value_field, arguments[0], f"{where}, elements")
    elif pa.types.is_map(kind) and issubclass(dict, base):
        if len(arguments) == 2:
            yield from _misfits(kind.key_field, arguments[0], f"{where}, keys")
            yield from _misfits(kind.item_field, arguments[1], f"{where}, values")
    elif pa.types.is_struct(kind) and (base is tuple or is_row_class(base)):
        return
    elif pa.types.is_struct(kind) and issubclass(dict, base):
        if len(arguments) == 2:
            for field in inner_fields(kind):
                yield from _misfits(field, arguments[1], f"{where}.{field.name}")
    elif _can_come(base):
        yield where, given, hint
    else:
        yield where, given, f"is {name_of(hint)}, which no column gives; make it of one in map()"


def _fits(field: ArrowField, hint: TypeHint) -> bool:
    return next(_misfits(field, hint, ""), None) is None


def _can_come(base: type[Any]) -> bool:  # Any: see `_KINDS`
    """Return whether values of some type of column become instances of `base`."""
    if base.__module__ == "pyspark.sql.types" or hasattr(base, "__UDT__"):
        return True
    return issubclass(base, (*_LISTS, dict, collections.abc.Iterable))


def checks_itself(record: TypeHint) -> bool:
    """Return whether a class of pydantic converts its arguments, and refuses the rest."""
    return hasattr(record, "__pydantic_validator__")


def _spark_name(field: ArrowField) -> str:
    """Return Spark's name for the type of `field`, or else Arrow's name."""
    objects = objects_of(field)
    if objects is not None and objects.held is not None:
        return objects.name
    kind = field.type
    from flow_spark.jobs.frames import spark_schema  # the executors do not need it

    try:
        return spark_schema(pa.schema([pa.field("_", kind)]))[0].dataType.simpleString()
    except Exception:  # it has no counterpart there
        return str(kind)
