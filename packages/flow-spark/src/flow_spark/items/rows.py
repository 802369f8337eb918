"""Items made from Arrow batches, in whole columns wherever that is possible."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import enum
import itertools
import typing
import zlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, final

from flow_core.errors import NoneItemError, explanations
from flow_spark.errors import SchemaMismatchError, UnsupportedTypeError
from flow_spark.items.arrow import ArrowArray, ArrowBatch, ArrowField, ArrowSchema, ArrowType, pa
from flow_spark.items.fitting import chosen, filled_alone, has_default
from flow_spark.items.kinds import inner_fields, is_listed, is_zoned, with_inner
from flow_spark.items.nulls import Nulls
from flow_spark.items.objects import Objects, known_in, marked_as, marks_of, objects_of
from flow_spark.items.objects import know as know_types
from flow_spark.items.records import maker_in_c
from flow_spark.items.shapes import (
    Convert,
    Fields,
    TypeHint,
    all_fields,
    is_class,
    is_row_class,
    know,
    name_of,
    or_none,
    record_fields,
    shorten,
)
from flow_spark.items.unread import UNREAD
from flow_spark.items.zones import zone_of

if TYPE_CHECKING:
    from pyspark.sql.types import UserDefinedType

__all__ = ["RowReader", "asks_for_items", "items_of"]

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_INT64: Final = pa.int64()

# Any: items of the type that the user asked for; `from_dataframe` has overloads.
_Column = Sequence[Any]


@final
class RowReader:
    """Makes items from Arrow batches. It can be pickled, since executors use it, too.

    Args:
        schema: the schema of the batches.
        as_: the type of an item. None: the bare value of an only column, or a tuple. `tuple` or
            `dict`. ``pyspark.sql.Row``. A dataclass or NamedTuple, made of the columns with the
            names of its fields; further columns are left out. ``"scalar"``: the bare value, or an
            error.
        verify: whether None is refused where the fields of a record do not allow it.
        read: the columns that batches have; the other values of `schema` are `UNREAD`. None for
            all of them.

    Attributes:
        names: the columns from which an item is made.
        read: the ones among `names` that batches have.

    Raises:
        SchemaMismatchError: if the columns do not fit `as_`.
    """

    __slots__ = (
        "_as",
        "_hints",
        "_make",
        "_nulls",
        "_readers",
        "_schema",
        "_timed",
        "names",
        "read",
    )

    def __init__(
        self,
        schema: ArrowSchema,
        as_: TypeHint = None,
        *,
        verify: bool = False,
        read: frozenset[str] | None = None,
    ) -> None:
        self._schema = schema
        self._as = as_
        self.names: Final = _columns(schema, as_)
        self.read: Final = tuple(name for name in self.names if read is None or name in read)
        self._nulls = Nulls(schema, as_, self.read) if verify else None
        self._hints: Final = dict(record_fields(as_) or ())
        timed = [name for name in self.read if _zone_in(schema.field(name).type) is not None]
        self._timed: Final = timed[0] if timed else None
        self._readers = self._columns_of(schema)
        self._make = _maker(as_, self.names)

    def __call__(self, batch: ArrowBatch) -> Iterable[Any]:
        """Return the items of `batch`, in its order."""
        row = self.first_null(batch)
        return self._items(batch) if row is None else self._until(batch, row)

    def first_null(self, batch: ArrowBatch) -> int | None:
        """Return the first row of `batch` with None where it is not allowed.

        None if there is none.
        """
        return None if self._nulls is None else self._nulls.first_row(batch)

    def null_error(self, batch: ArrowBatch, row: int) -> SchemaMismatchError:
        """Return the error for a row that `first_null` has found."""
        assert self._nulls is not None
        return self._nulls.error(batch, row)

    def _until(self, batch: ArrowBatch, row: int) -> Iterator[Any]:
        yield from self._items(batch.slice(0, row))
        raise self.null_error(batch, row)

    def _columns_of(self, schema: ArrowSchema) -> _Readers:
        """Return the readers of the columns, for times in the zone of `schema`."""
        zone = None if self._timed is None else _zone_in(schema.field(self._timed).type)
        return zone, {
            name: _reader(schema.field(name), self._hints.get(name)) for name in self.read
        }

    def _items(self, batch: ArrowBatch) -> Iterable[Any]:
        zone, readers = self._readers
        # The zone is that of the session when it runs.
        if self._timed is not None and zone != _zone_in(batch.column(self._timed).type):
            _, readers = self._readers = self._columns_of(self.schema_of(batch))
        unread = [UNREAD] * batch.num_rows if len(readers) < len(self.names) else []
        columns = [
            readers[name](batch.column(name)) if name in readers else unread for name in self.names
        ]
        if self._make is _scalars:
            nulls: int = batch.column(self.names[0]).null_count
            if nulls:
                raise NoneItemError(
                    f"column {self.names[0]!r} holds {nulls} nulls, and None is not an item. "
                    "Drop them: df.dropna(); or read rows: as_=tuple"
                )
        return self._make(columns)

    def schema_of(self, batch: ArrowBatch) -> ArrowSchema:
        """Return the schema of `batch`, with the marks of the objects in its columns."""
        return marked_as(batch.schema, self._schema)

    def item(self, batch: ArrowBatch, index: int) -> Any:
        """Return one of the items of `batch` again; raises the same error as the first time.

        Raises:
            StopIteration: if there is none with this index.
        """
        return next(iter(self(batch.slice(index, 1))))

    def checksums(self, batch: ArrowBatch) -> Iterable[int]:
        """Yield a checksum of all values of `batch`, in order: another shuffle may give another."""
        found = 0
        for column in batch.columns:
            for buffer in column.buffers():
                if buffer is not None:
                    found = zlib.crc32(buffer, found)
        return (found,)

    def is_like(self, other: RowReader) -> bool:
        """Return whether `other` makes the same items from the same batches."""
        marks = [list(marks_of(one._schema)) for one in (self, other)]
        return self.__reduce__() == other.__reduce__() and marks[0] == marks[1]

    @property
    def is_scalar(self) -> bool:
        """True if an item is the value of the only column."""
        return self._make is _scalars

    @property
    def unchanged(self) -> frozenset[str]:
        """The columns whose values become parts of items as pyarrow makes them."""
        _, readers = self._readers
        return frozenset(name for name, read in readers.items() if read is _plain)

    def reading(self, names: Iterable[str]) -> RowReader:
        """Return a reader of batches that have only the columns `names`."""
        verify = self._nulls is not None
        return RowReader(self._schema, self._as, verify=verify, read=frozenset(names))

    def __reduce__(
        self,
    ) -> tuple[
        Callable[[ArrowSchema, TypeHint, bool, tuple[str, ...], _Classes], RowReader],
        tuple[ArrowSchema, TypeHint, bool, tuple[str, ...], _Classes],
    ]:
        """Pickle by its arguments."""
        verify = self._nulls is not None
        classes = all_fields(self._as), known_in(self._schema)
        return _remade, (self._schema, self._as, verify, self.read, classes)


_Classes = tuple[dict[type[Any], Fields], "dict[bytes, UserDefinedType]"]
"""The records and the user-defined types that this process knows."""


def _remade(
    schema: ArrowSchema, as_: TypeHint, verify: bool, read: tuple[str, ...], classes: _Classes
) -> RowReader:
    fields, types = classes
    know(fields)
    know_types(types)
    return RowReader(schema, as_, verify=verify, read=frozenset(read))


def _columns(schema: ArrowSchema, as_: TypeHint) -> tuple[str, ...]:
    names = tuple(str(name) for name in schema.names)
    if len(set(names)) != len(names):
        raise SchemaMismatchError(
            f"two columns have the same name, so that rows are ambiguous: {', '.join(names)}. "
            "Rename one: df.withColumnRenamed, or df.toDF(...)"
        )
    if as_ == "scalar" and len(names) != 1:
        raise SchemaMismatchError(
            f"as_='scalar' needs one column, and there are {len(names)}: {', '.join(names)}. "
            "Select one, or use as_=tuple"
        )
    if not names:
        raise SchemaMismatchError(
            "there are no columns, and Spark hands no rows over without any: select one, or let "
            "df.count() say how many there are"
        )
    fields = record_fields(as_)
    if fields is None:
        return names
    own = filled_alone(as_)
    needed = [
        name
        for name, _ in fields
        if name not in own and (name in names or not has_default(as_, name))
    ]
    missing = [name for name in needed if name not in names]
    if missing:
        raise SchemaMismatchError(
            f"{name_of(as_)} needs the columns {', '.join(missing)}, and the DataFrame has only "
            f"{', '.join(names)}",
            field=missing[0],
        )
    if not needed:
        raise SchemaMismatchError(
            f"{name_of(as_)} takes none of the columns {', '.join(names)}, and Spark hands no rows "
            "over without any: rename one, or select one and map it"
        )
    return tuple(needed)


def _maker(as_: TypeHint, names: tuple[str, ...]) -> Callable[[list[_Column]], Iterable[Any]]:
    if as_ == "scalar" or (as_ is None and len(names) == 1):
        return _scalars
    if as_ is None or as_ is tuple:
        return _tuples
    if not is_class(as_):
        raise TypeError(
            f"as_ takes tuple, dict, Row, 'scalar', a dataclass or a NamedTuple, not {as_!r}"
        )
    if as_ is dict:
        # No Python frame for a row, and one dict at a time: the collector looks at all kept
        # objects.
        return lambda columns: map(dict, map(zip, itertools.repeat(names), _tuples(columns)))
    if is_row_class(as_):
        return _rows_of(names)
    fields = record_fields(as_)
    if fields is None:
        raise TypeError(
            f"as_ takes tuple, dict, Row, 'scalar', a dataclass or a NamedTuple, not {name_of(as_)}"
        )
    in_c = maker_in_c(as_, names)
    if in_c is not None:
        return in_c
    cls: Callable[..., Any] = as_
    positional = (
        [field.name for field in dataclasses.fields(as_) if field.init and not field.kw_only]
        if dataclasses.is_dataclass(as_)
        else [name for name, _ in fields]
    )
    if tuple(positional[: len(names)]) == names:
        return lambda columns: map(cls, *columns)
    return lambda columns: (cls(**dict(zip(names, row, strict=True))) for row in _tuples(columns))


def _without_names(error: BaseException) -> str | None:
    """Return what to do about ``row.amount``, where a row is a tuple."""
    if not isinstance(error, AttributeError) or type(error.obj) is not tuple:
        return None
    return (
        "a row is a tuple if nothing else is said: from_dataframe(df, as_=pyspark.sql.Row) gives "
        f"it names, and a dataclass with {error.name!r} as as_= types as well"
    )


explanations.append(_without_names)


def _scalars(columns: list[_Column]) -> Iterable[Any]:
    return columns[0]


def _tuples(columns: list[_Column]) -> Iterable[Any]:
    return zip(*columns, strict=True)


def _rows_of(names: tuple[str, ...]) -> Callable[[list[_Column]], Iterable[Any]]:
    from pyspark.sql import Row

    make = Row(*names)
    return lambda columns: map(make, *columns)


def _row_of(**values: Any) -> object:
    from pyspark.sql import Row

    return Row(*values)(*values.values())  # any name may be that of a field, also `cls`


class _Read(Protocol):
    """Reads a column."""

    @abstractmethod
    def __call__(self, column: ArrowArray, /) -> _Column: ...


_Readers = tuple[str | None, dict[str, _Read]]
"""The zone of all times, and the reader of each column that is read."""


def _zone_in(kind: ArrowType) -> str | None:
    """Return the zone of times in `kind`. All times of a batch have one: that of the session."""
    if is_zoned(kind):
        return kind.tz
    zones = (_zone_in(field.type) for field in inner_fields(kind))
    return next(filter(None, zones), None)


def _reader(field: ArrowField, hint: TypeHint) -> _Read:
    kind = field.type
    convert = _converter(field, hint)
    if convert is None:
        return _plain
    is_moment = is_zoned(kind) and objects_of(field) is None
    read = _moments(kind) if is_moment else partial(_converted, convert)
    if _zone_in(kind) is None:
        return read
    if _holds_void(kind):
        raise UnsupportedTypeError(
            f"column {field.name!r} has times, and void beside them: Spark hands over another "
            "number of those than it says. Cast them to a type that has values"
        )
    counted = _counted(kind)

    def read_times(column: ArrowArray) -> _Column:
        try:
            return read(column.cast(counted))
        except _NoDatetimeError as error:
            raise SchemaMismatchError(
                f"column {field.name!r} holds a time outside of the years 1 to 9999, which "
                "datetime does not have; leave such rows out, or cast the column to string",
                field=field.name,
            ) from error

    return read_times


def asks_for_items(field: ArrowField) -> bool:
    """Return whether a column has more than plain values: objects, or maps with such keys."""
    if objects_of(field) is not None:
        return True
    inner = inner_fields(field.type)
    by_nested = pa.types.is_map(field.type) and bool(inner_fields(inner[0].type))
    return by_nested or any(map(asks_for_items, inner))


def items_of(field: ArrowField, column: ArrowArray) -> Sequence[Any]:
    """Return the values of a column of the type of `field`, as items have them."""
    return _reader(field, None)(column)


def _holds_void(kind: ArrowType) -> bool:
    return pa.types.is_null(kind) or any(_holds_void(field.type) for field in inner_fields(kind))


def _plain(column: ArrowArray) -> _Column:
    return column.to_pylist()


def _converted(convert: Convert, column: ArrowArray) -> _Column:
    return [None if value is None else convert(value) for value in column.to_pylist()]


def _counted(kind: ArrowType) -> ArrowType:
    """Return `kind` with microseconds since 1970 for times.

    ``to_pylist`` looks the zone up for each value, and knows only half of Spark's zones.
    """
    if is_zoned(kind):
        return _INT64
    # Behind a null of a struct there are others, whatever its fields allow.
    inner = [pa.field(field.name, _counted(field.type)) for field in inner_fields(kind)]
    if pa.types.is_map(kind):
        return pa.map_(inner[0].type, inner[1])
    return with_inner(kind, inner)


def _moments(kind: ArrowType) -> _Read:
    zone = zone_of(kind.tz or "UTC")
    if not isinstance(zone, datetime.timezone):
        return partial(_converted, _moment(kind))
    epoch, delta = _EPOCH.astimezone(zone), datetime.timedelta

    def read(column: ArrowArray) -> _Column:
        numbers = column.to_pylist()
        try:
            if column.null_count:
                return [None if n is None else epoch + delta(0, 0, n) for n in numbers]
            return [epoch + delta(0, 0, number) for number in numbers]
        except OverflowError as error:
            raise _NoDatetimeError from error

    return read


class _NoDatetimeError(Exception):
    """A time that no datetime can represent."""


def _moment(kind: ArrowType) -> Callable[[int], datetime.datetime]:
    """Return a function that makes a time from microseconds since 1970."""
    zone, epoch, delta = zone_of(kind.tz or "UTC"), _EPOCH, datetime.timedelta

    def moment(number: int) -> datetime.datetime:
        try:
            return (epoch + delta(0, 0, number)).astimezone(zone)
        except OverflowError as error:
            raise _NoDatetimeError from error

    return moment


_Structs = Literal["dicts", "rows", "keys"]
"""The form of structs and lists if the user has not chosen one: dicts and lists; rows and lists, as
user-defined types take them; or rows and tuples, as in keys of a dict."""


def _converter(
    field: ArrowField, hint: TypeHint = None, structs: _Structs = "dicts"
) -> Convert | None:
    """Return the function to apply to a value after ``to_pylist``, if one is needed.

    Args:
        field: the column, or a part of it.
        hint: the type that the value becomes, where the user has chosen one.
        structs: the type that it becomes otherwise.
    """
    objects = objects_of(field)
    if objects is not None:
        return _object_converter(objects)
    kind = field.type
    hint = chosen(field, hint)
    parts = (*typing.get_args(hint), None, None)
    if pa.types.is_map(kind):
        key = _converter(kind.key_field, parts[0], "keys")
        value = _converter(kind.item_field, parts[1], "rows" if structs == "rows" else "dicts")
        if key is None and value is None:
            return dict
        to_key, to_value = or_none(key), or_none(value)
        return lambda pairs: {to_key(k): to_value(v) for k, v in pairs}
    if is_listed(kind):
        return _list_converter(kind, hint, structs)
    if pa.types.is_struct(kind):
        return _struct_converter(kind, hint, structs)
    if is_zoned(kind):
        return _moment(kind)
    if hint is float and pa.types.is_integer(kind):
        return _float
    if is_class(hint) and issubclass(hint, enum.Enum):
        return lambda value: _member(hint, value)
    return bytearray if hint is bytearray else None


def _object_converter(objects: Objects) -> Convert:
    load = objects.load
    held = None if objects.held is None else _converter(objects.held, None, "rows")
    return load if held is None else lambda value: load(held(value))


def _list_converter(kind: ArrowType, hint: TypeHint, structs: _Structs) -> Convert | None:
    base: object = typing.get_origin(hint) or hint
    element = _converter(kind.value_field, (*typing.get_args(hint), None)[0], structs)
    hashable = structs == "keys"
    # Any: sets and tuples of any type.
    make: Callable[..., Any] | None = None
    if base is tuple or hashable:
        make = tuple
    if is_class(base) and issubclass(base, collections.abc.Set):
        make = frozenset if base is frozenset or hashable else set
    if element is None:
        return make
    return _each(or_none(element), make or list)


def _each(element: Convert, make: Callable[..., Any]) -> Convert:
    return lambda values: make(map(element, values))


def _float(value: int) -> float:
    made = float(value)
    if made != value:
        raise SchemaMismatchError(f"{value} is not a float: the nearest is {made:.0f}")
    return made


def _member(kind: type[enum.Enum], value: object) -> enum.Enum:
    try:
        return kind(value)
    except ValueError as error:
        raise SchemaMismatchError(f"{shorten(value)} is not of type {kind.__qualname__}") from error


def _struct_converter(kind: ArrowType, hint: TypeHint, structs: _Structs) -> Convert | None:
    fields = [kind.field(index) for index in range(kind.num_fields)]
    hints = dict(record_fields(hint) or ())
    parts = typing.get_args(hint)
    base: object = typing.get_origin(hint) or hint
    as_tuple = base is tuple and len(parts) in (0, len(fields))
    make: Callable[..., Any] | None = hint if is_class(hint) and hints else None
    kept: frozenset[str] | None = None
    if make is not None:
        kept = frozenset(hints) - filled_alone(hint)
    elif as_tuple and parts:
        hints = {f.name: part for f, part in zip(fields, parts, strict=True)}
    elif len(parts) == 2:  # a dict of fields, all of one type
        hints = {f.name: parts[1] for f in fields}
    elif not as_tuple and (structs != "dicts" or (is_class(hint) and is_row_class(hint))):
        make = _row_of
    inner: dict[str, Convert] = {}
    for field in fields:
        part = _converter(field, hints.get(field.name), structs)
        if part is not None:
            inner[field.name] = or_none(part)
    if make is None and not inner and not as_tuple:
        return None

    def convert(values: dict[str, Any]) -> object:
        for name, to_value in inner.items():
            values[name] = to_value(values[name])
        if as_tuple:
            return tuple(values.values())
        if kept is not None:
            values = {name: value for name, value in values.items() if name in kept}
        return values if make is None else make(**values)

    return convert
