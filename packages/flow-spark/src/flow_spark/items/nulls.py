"""Nulls where a record does not allow them."""

from __future__ import annotations

import dataclasses
import types
import typing
from abc import abstractmethod
from collections.abc import Collection, Iterator
from typing import Any, Final, Literal, Protocol, TypeVar, Union, final

from flow_spark.errors import SchemaMismatchError
from flow_spark.items.arrow import ArrowArray, ArrowBatch, ArrowField, ArrowSchema, pa
from flow_spark.items.fitting import checks_itself, chosen
from flow_spark.items.kinds import is_listed
from flow_spark.items.objects import objects_of
from flow_spark.items.shapes import TypeHint, is_class, name_of, record_fields, unwrapped

__all__ = ["Nulls"]


@final
class Nulls:
    """Finds rows with None where the fields of a record do not allow it.

    It counts the nulls, of a column and of the fields in it, and looks at no value. Where Spark
    knows that there are none, it does not even count.

    Args:
        schema: the schema of the batches.
        as_: the type of an item; see `RowReader`.
        names: the columns that batches have.
    """

    __slots__ = ("_as", "_columns")

    def __init__(self, schema: ArrowSchema, as_: TypeHint, names: Collection[str]) -> None:
        self._as: Final = as_
        parts = _required_parts(schema, as_)
        self._columns: Final = {name: part for name, part in parts if name in names}

    @property
    def looks(self) -> bool:
        """Return whether there may be such nulls at all."""
        return bool(self._columns)

    def first_row(self, batch: ArrowBatch) -> int | None:
        """Return the first row of `batch` with such a null; None if there is none."""
        if not any(part.null_in(batch.column(name)) for name, part in self._columns.items()):
            return None
        good, bad = 0, batch.num_rows
        while bad - good > 1:
            middle = (good + bad) // 2
            if self.first_row(batch.slice(0, middle)) is None:
                good = middle
            else:
                bad = middle
        return good

    def error(self, batch: ArrowBatch, row: int) -> SchemaMismatchError:
        """Return the error for a row that `first_row` has found."""
        for name, part in self._columns.items():
            where = part.null_in(batch.column(name).slice(row, 1))
            if where is not None:
                return SchemaMismatchError(
                    f"{name_of(self._as)}.{name}{where.place} is {name_of(where.hint)}, and here "
                    "it is None; say that it may be None, or leave such rows out, as "
                    f"df.dropna(subset=[{name!r}]) does",
                    field=name,
                )
        raise AssertionError(f"row {row} has no such null")


@final
@dataclasses.dataclass(frozen=True, slots=True)
class _Part:
    """A column, or a part of one.

    Attributes:
        hint: the type of its values.
        required: whether None is not allowed, though Spark may have it.
        place: its place within its column.
        inner: its own parts, and how to get to each from values that are not nulls.
    """

    hint: TypeHint
    required: bool
    place: str
    inner: tuple[tuple[_Step, _Part], ...]

    def null_in(self, values: ArrowArray) -> _Part | None:
        """Return the part whose `values` have a null that is not allowed; None if there is none."""
        if values.null_count:
            if self.required:
                return self
            if self.inner:
                values = values.drop_null()
        for step, part in self.inner:
            found = part.null_in(step(values))
            if found is not None:
                return found
        return None


class _Step(Protocol):
    @abstractmethod
    def __call__(self, values: ArrowArray, /) -> ArrowArray: ...


def _required_parts(schema: ArrowSchema, as_: TypeHint) -> Iterator[tuple[str, _Part]]:
    for name, hint in _record_parts(as_):
        if name in schema.names:
            part = _part(schema.field(name), hint, "")
            if part is not None:
                yield name, part


def _record_parts(record: TypeHint) -> Iterator[tuple[str, TypeHint]]:
    """Yield the fields that a record gets, except those that are None by default."""
    fields = record_fields(record)
    if fields is None or checks_itself(record):
        return
    nones = {name for name, default in _defaults(record) if default is None}
    for name, hint in fields:
        yield name, Any if name in nones else hint


def _defaults(record: TypeHint) -> Iterator[tuple[str, object]]:
    if is_class(record) and dataclasses.is_dataclass(record):
        for field in dataclasses.fields(record):
            yield field.name, field.default
    defaults: dict[str, object] = getattr(record, "_field_defaults", {})
    yield from defaults.items()


def _part(field: ArrowField, hint: TypeHint, place: str) -> _Part | None:
    kind = field.type
    inner = chosen(field, hint)
    arguments = (*typing.get_args(inner), None, None)
    found: list[tuple[_Step, _Part | None]] = []
    if objects_of(field) is not None:
        pass  # its contents are not checked
    elif pa.types.is_map(kind):
        found.append((_map_values, _part(kind.item_field, arguments[1], f"{place}, values")))
    elif is_listed(kind):
        found.append((_elements, _part(kind.value_field, arguments[0], f"{place}, elements")))
    elif pa.types.is_struct(kind):
        hints = dict(_record_parts(inner))
        for index in range(kind.num_fields):
            one = kind.field(index)
            if typing.get_origin(inner) is tuple:
                part = _part(one, arguments[index], f"{place}.{one.name}")
            else:
                # A dict of fields, all of one type, has two arguments.
                part = _part(one, hints.get(one.name, arguments[1]), f"{place}.{one.name}")
            found.append((_field(index), part))
    parts = tuple((step, part) for step, part in found if part is not None)
    required = field.nullable and not _may_be_none(hint)
    return _Part(inner, required, place, parts) if required or parts else None


def _map_values(values: ArrowArray) -> ArrowArray:
    offsets = values.offsets
    [start] = offsets.slice(0, 1).to_pylist()
    [stop] = offsets.slice(len(values), 1).to_pylist()
    return values.items.slice(start, stop - start)


def _elements(values: ArrowArray) -> ArrowArray:
    return values.flatten()


def _field(index: int) -> _Step:
    return lambda values: values.field(index)


def _may_be_none(hint: TypeHint) -> bool:
    inner, optional = unwrapped(hint)
    if optional or inner in (None, Any, object, types.NoneType) or isinstance(inner, TypeVar):
        return True
    if typing.get_origin(inner) in (Union, types.UnionType):
        return any(map(_may_be_none, typing.get_args(inner)))
    return typing.get_origin(inner) is Literal and None in typing.get_args(inner)
