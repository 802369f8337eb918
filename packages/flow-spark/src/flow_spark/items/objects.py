"""Values that are objects of special classes, of which Spark holds only the parts.

These are Variants, geometries and geographies, which have their own Arrow types, and user-defined
types such as vectors of MLlib, which have no Arrow type: a mark in the metadata of the field names
them.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast, final

from flow_spark.items.arrow import ArrowField, ArrowSchema, ArrowTable, ArrowType, pa
from flow_spark.items.kinds import inner_fields, with_inner
from flow_spark.items.shapes import Convert, TypeHint, is_class, shorten

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType, UserDefinedType

__all__ = [
    "Objects",
    "know",
    "known_in",
    "marked",
    "marked_as",
    "marks_of",
    "objects_of",
    "spark_type_of",
    "unmarked",
    "without_marks",
]

_UDT: Final = b"flow:udt"
"""The key of a field's metadata for the mark of its user-defined type."""

_known: Final[dict[bytes, UserDefinedType]] = {}
"""The user-defined types by their marks. Other processes get them together with marked fields."""

_CLASSES: Final[Mapping[bytes, str]] = {
    b"variant": "VariantVal",
    b"geometry": "Geometry",
    b"geography": "Geography",
}
"""The classes of PySpark, by PySpark's mark in the metadata of a field within the struct."""

_MODULE: Final = "pyspark.sql.types"
_TYPES: Final[Mapping[str, tuple[str, ...]]] = {
    "VariantVal": ("VariantType",),
    "Geometry": ("GeometryType", "ANY"),
    "Geography": ("GeographyType", "ANY"),
}
"""The types of columns for these classes. Each value has its own coordinate system."""

# Any: classes of PySpark, and values of any class.


@final
@dataclass(frozen=True, slots=True)
class Objects:
    """Describes the objects that are the values of a field.

    Attributes:
        name: the name of these objects, for messages.
        held: the form in which Spark holds them, if that has to be converted, too.
        load: makes an object from Spark's form.
        dump: takes an object apart.
        fits: returns whether an object fits an annotation, as far as is known.
    """

    name: str
    held: ArrowField | None
    load: Convert
    dump: Convert
    fits: Callable[[TypeHint], bool]


def objects_of(field: ArrowField) -> Objects | None:
    """Return what kind of objects the values of `field` are; None for Arrow's plain values."""
    udt = _udt_of(field)
    if udt is not None:
        return _user_defined(field, udt)
    if pa.types.is_struct(field.type):
        for part in inner_fields(field.type):
            for mark in part.metadata or ():
                if mark in _CLASSES:
                    return _of_pyspark(_CLASSES[mark], field.type)
    return None


def _udt_of(field: ArrowField) -> UserDefinedType | None:
    """Return the user-defined type of a field that is marked with one."""
    found = (field.metadata or {}).get(_UDT)
    return None if found is None else _known[found]


def spark_type_of(hint: TypeHint) -> DataType | None:
    """Return the type of Spark whose values are instances of a class; None for most classes."""
    if not is_class(hint):
        return None
    own: DataType | None = getattr(hint, "__UDT__", None)
    if own is not None:
        return own
    if hint.__module__ != _MODULE or hint.__name__ not in _TYPES:
        return None
    name, *arguments = _TYPES[hint.__name__]
    found: DataType = getattr(importlib.import_module(_MODULE), name)(*arguments)
    return found


def marked(schema: ArrowSchema, struct: StructType) -> ArrowSchema:
    """Return `schema`, with a mark on each field that has a user-defined type in `struct`.

    `struct` is the same schema in Spark's types.
    """
    fields = [_marked(field, given.dataType) for field, given in zip(schema, struct, strict=True)]
    return pa.schema(fields) if any(map(_is_marked, fields)) else schema


def marked_as(schema: ArrowSchema, other: ArrowSchema) -> ArrowSchema:
    """Return `schema` with the marks of `other`: the same columns, perhaps in other zones."""
    if not any(map(_is_marked, other)):
        return schema
    known = set(other.names)  # there may be more columns, which are not read
    return pa.schema(
        [
            _marked_as(field, other.field(field.name)) if field.name in known else field
            for field in schema
        ]
    )


def marks_of(fields: Iterable[ArrowField]) -> Iterator[tuple[ArrowField, bytes]]:
    """Yield the marked ones of `fields`, and of the fields within them, each with its mark."""
    for field in fields:
        mark = (field.metadata or {}).get(_UDT)
        if mark is not None:
            yield field, mark
        yield from marks_of(inner_fields(field.type))


def known_in(schema: ArrowSchema) -> dict[bytes, UserDefinedType]:
    """Return the user-defined types of `schema`, for another process to `know`."""
    return {mark: _known[mark] for _, mark in marks_of(schema)}


def know(found: Mapping[bytes, UserDefinedType]) -> None:
    """Take over user-defined types by their marks from another process."""
    _known.update(found)


def unmarked(struct: StructType, schema: ArrowSchema) -> StructType:
    """Return `struct` with UDTs where `schema`, the same in Arrow, has marks."""
    return cast("StructType", _unmarked(struct, pa.field("", pa.struct(list(schema)))))


def without_marks(table: ArrowTable) -> ArrowTable:
    """Return `table` for a user, without the marks that only this package understands."""
    plain = [_without_marks(field) for field in table.schema]
    return table.cast(pa.schema(plain)) if any(map(_is_marked, table.schema)) else table


def _is_marked(field: ArrowField) -> bool:
    return any(True for _ in marks_of([field]))


def _noted(udt: UserDefinedType) -> bytes:
    mark = f"{udt.module()}.{type(udt).__name__} {udt.sqlType().simpleString()}".encode()
    _known[mark] = udt
    return mark


def _with_mark(field: ArrowField, mark: bytes | None) -> ArrowField:
    return field if mark is None else field.with_metadata({**(field.metadata or {}), _UDT: mark})


def _without_marks(field: ArrowField) -> ArrowField:
    inner = [_without_marks(part) for part in inner_fields(field.type)]
    changed = field.with_type(with_inner(field.type, inner)) if inner else field
    return changed.with_metadata(_without_mark(field))


def _without_mark(field: ArrowField) -> dict[bytes, bytes]:
    return {key: value for key, value in (field.metadata or {}).items() if key != _UDT}


def _marked(field: ArrowField, given: DataType) -> ArrowField:
    from pyspark.sql.types import UserDefinedType

    mark = None
    if isinstance(given, UserDefinedType):
        mark, given = _noted(given), given.sqlType()
    parts = zip(inner_fields(field.type), _inner_types(given), strict=False)
    inner = [_marked(part, kind) for part, kind in parts]
    changed = (
        field.with_type(with_inner(field.type, inner)) if any(map(_is_marked, inner)) else field
    )
    return _with_mark(changed, mark)


def _marked_as(field: ArrowField, other: ArrowField) -> ArrowField:
    if not _is_marked(other):
        return field
    parts = zip(inner_fields(field.type), inner_fields(other.type), strict=True)
    inner = [_marked_as(part, marks) for part, marks in parts]
    changed = field.with_type(with_inner(field.type, inner)) if inner else field
    return _with_mark(changed, (other.metadata or {}).get(_UDT))


def _unmarked(given: DataType, field: ArrowField) -> DataType:
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    udt = _udt_of(field)
    if udt is not None:
        return udt
    inner = inner_fields(field.type)
    if isinstance(given, ArrayType):
        return ArrayType(_unmarked(given.elementType, inner[0]), given.containsNull)
    if isinstance(given, MapType):
        key, value = _unmarked(given.keyType, inner[0]), _unmarked(given.valueType, inner[1])
        return MapType(key, value, given.valueContainsNull)
    if isinstance(given, StructType):
        return StructType(
            [
                StructField(part.name, _unmarked(part.dataType, one), part.nullable, part.metadata)
                for part, one in zip(given, inner, strict=False)
            ]
        )
    return given


def _inner_types(given: DataType) -> Iterator[DataType]:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(given, ArrayType):
        yield given.elementType
    elif isinstance(given, MapType):
        yield given.keyType
        yield given.valueType
    elif isinstance(given, StructType):
        for field in given:
            yield field.dataType


def _user_defined(field: ArrowField, udt: UserDefinedType) -> Objects:
    own: Any = udt

    def fits(hint: TypeHint) -> bool:
        other = getattr(hint, "__UDT__", None)
        return is_class(hint) and (hint.__module__ != "builtins" if other is None else other == udt)

    def dump(value: object) -> object:
        try:
            return own.serialize(value)
        except Exception as error:
            raise TypeError(f"{shorten(value)} is not a {type(udt).__name__}: {error}") from error

    held = field.with_metadata(_without_mark(field))
    return Objects(type(udt).__name__, held, own.deserialize, dump, fits)


def _of_pyspark(name: str, kind: ArrowType) -> Objects:
    cls: type[Any] = getattr(importlib.import_module(_MODULE), name)
    parts = [part.name for part in inner_fields(kind)]
    taken_apart = operator.attrgetter(*parts)

    def dump(value: object) -> object:
        if not isinstance(value, cls):
            raise TypeError(f"{shorten(value)} is not of type {_MODULE}.{name}")
        return dict(zip(parts, taken_apart(value), strict=True))

    def fits(hint: TypeHint) -> bool:
        return is_class(hint) and issubclass(cls, hint)

    return Objects(name, None, lambda values: cls(**values), dump, fits)
