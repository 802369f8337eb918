"""Arrow batches made from items, in whole columns wherever that is possible."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import functools
import itertools
import math
import numbers
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, final

from flow_spark.errors import SchemaMismatchError
from flow_spark.items.arrow import (
    ArrowArray,
    ArrowBatch,
    ArrowField,
    ArrowSchema,
    ArrowType,
    pa,
)
from flow_spark.items.kinds import inner_fields, is_binary, is_listed, is_text, is_zoned
from flow_spark.items.objects import objects_of
from flow_spark.items.schema import ItemSchema
from flow_spark.items.shapes import (
    Convert,
    class_of,
    has_fields,
    is_mapping,
    is_object,
    is_row_class,
    is_sequence,
    name_of,
    or_none,
    shorten,
)

__all__ = ["BATCH_ROWS", "PORTION", "Batching", "to_batches"]

BATCH_ROWS: Final = 10_000
"""The number of rows in the batches that are made here, as many as Spark itself puts into a
batch."""

PORTION: Final = 625
"""The number of items held at once: a part of a batch. It is less than the 700 new objects after
which Python's garbage collector runs, which costs as much as the columns themselves."""

_INT64: Final = pa.int64()
_FLOAT32: Final = pa.float32()
_UNORDERED: Final = (collections.abc.Set, collections.abc.ValuesView)

_BATCH_BYTES: Final = 32 * 2**20
"""The most bytes of a batch: ten thousand large rows would be more than Arrow can hold."""

_PORTION_BYTES: Final = _BATCH_BYTES // 8
_FIRST_PORTION: Final = 16
"""The number of items held before it is known how large they are."""

_NOT_DATES: Final = (numbers.Number, datetime.datetime)
_BYTES: Final = (bytes, bytearray, memoryview)
_NOT_LISTS: Final = (str, *_BYTES)
_FLOAT_LIMIT: Final = 2.0**128 - 2.0**103
"""From here on, the nearest float of 32 bits is infinite."""

# Any: items of any kind.
_Column = Sequence[Any]


def to_batches(
    items: Iterable[Any],
    schema: ItemSchema,
    rows: int = BATCH_ROWS,
    *,
    first: int = 0,
    tell: Callable[[Exception], object] | None = None,
) -> Iterator[ArrowBatch]:
    """Make Arrow batches from items.

    Args:
        items: tuples, dicts, Rows, dataclasses or NamedTuples; or plain values if there is only one
            column. Items with field names are matched by name, others by position.
        schema: the columns.
        rows: how many items go into a batch, unless they are so large that fewer take 32 MiB.
        first: the number of the first item, for messages.
        tell: called with an error that `items` raises, before any other code.

    Raises:
        SchemaMismatchError: if an item does not fit; the text names the item, and the field.
    """
    iterator = iter(items)
    batching = Batching(schema, rows, first=first)
    while True:
        try:
            portion = list(itertools.islice(iterator, batching.wanted))
        except Exception as error:
            if tell is not None:
                tell(error)
            raise
        if not portion:
            break
        batch = batching.add(portion)
        if batch is not None:
            yield batch
    batch = batching.rest()
    if batch is not None:
        yield batch


@final
class Batching:
    """Makes Arrow batches from items that come in portions; for the arguments, see `to_batches`.

    Attributes:
        count: the number of the next item, for messages.
        wanted: how many items the next portion should have: few if they are large, because of the
            memory besides the columns, and not more than the batch has room for.
    """

    __slots__ = ("_left", "_makers", "_portions", "_room", "_rows", "_schema", "count", "wanted")

    def __init__(self, schema: ItemSchema, rows: int = BATCH_ROWS, *, first: int = 0) -> None:
        self._schema: Final = schema
        self._makers: Final = _makers(schema.arrow)
        self._rows: Final = rows
        self._portions: list[list[ArrowArray]] = []
        self._left = rows
        self._room = _BATCH_BYTES
        self.count = first
        self.wanted = min(rows, _FIRST_PORTION)

    def add(self, items: list[Any]) -> ArrowBatch | None:
        """Add up to `wanted` items; return the batch, if they complete it.

        Raises:
            SchemaMismatchError: if an item does not fit; the text names the item, and the field.
        """
        schema = self._schema
        columns = _to_columns(items, schema.names, self._makers, self.count, bare=schema.bare)
        self._portions.append(columns)
        weight = sum(column.get_total_buffer_size() for column in columns)
        self.count += len(items)
        self._left -= len(items)
        self._room -= weight
        batch = self.rest() if self._left <= 0 or self._room <= 0 else None
        size = _PORTION_BYTES * len(items) // max(weight, 1)
        self.wanted = max(1, min(self._left, PORTION, size))
        return batch

    def rest(self) -> ArrowBatch | None:
        """Return the batch that is not full yet, if it has items."""
        portions, self._portions = self._portions, []
        if not portions:
            return None
        self._left, self._room = self._rows, _BATCH_BYTES
        columns = map(list, zip(*portions, strict=True))
        arrays = portions[0] if len(portions) == 1 else list(map(pa.concat_arrays, columns))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema.arrow)

    def clear(self) -> None:
        """Drop the items that are in no batch yet."""
        self._portions.clear()


def _to_columns(
    items: list[Any], names: tuple[str, ...], makers: tuple[_Maker, ...], first: int, *, bare: bool
) -> list[ArrowArray]:
    if len(names) == 1:
        plain = makers[0].plain(items)
        # A null is an item that is None, which the slow way reports.
        if plain is not None and not plain.null_count:
            return [plain]
    columns = [items] if bare else _take_apart(items, names, first)
    return [
        maker.array(column, items, first) for maker, column in zip(makers, columns, strict=True)
    ]


def _take_apart(items: list[Any], names: tuple[str, ...], first: int) -> list[_Column]:
    """Return the columns of `items`, which mostly are of one class."""
    cls = class_of(items[0])
    if operator.countOf(map(type, items), cls) == len(items):
        try:
            return _of_class(items, cls, names)
        except (AttributeError, KeyError, ValueError):
            pass  # below, find out which item it is
    rows = [_row(item, names, first + index) for index, item in enumerate(items)]
    return list(zip(*rows, strict=True))


def _of_class(items: list[Any], cls: type[Any], names: tuple[str, ...]) -> list[_Column]:
    if Mapping in cls.__mro__ or is_mapping(items[0]):
        if set(map(len, items)) != {len(names)}:
            raise ValueError
        return [list(map(operator.itemgetter(name), items)) for name in names]
    if has_fields(cls, names):
        return [list(map(operator.attrgetter(name), items)) for name in names]
    if is_sequence(items[0]) and not (is_row_class(cls) and hasattr(items[0], "__fields__")):
        columns: list[_Column] = list(zip(*items, strict=True))
        if len(columns) != len(names):
            raise ValueError
        return columns
    if len(names) == 1 and not dataclasses.is_dataclass(cls) and not is_row_class(cls):
        return [items]
    if is_object(cls, names):
        return [items]
    raise ValueError


def _row(item: Any, names: tuple[str, ...], index: int) -> Sequence[Any]:
    """Take one item apart in the slow way, which can report what is wrong with it."""
    cls = class_of(item)
    given: Mapping[str, Any] | None = None
    if is_mapping(item):
        given = item
    elif is_row_class(cls) and hasattr(item, "__fields__"):
        given = item.asDict() if set(item.__fields__) == set(names) else None
    elif dataclasses.is_dataclass(cls) and not is_object(cls, names):
        given = {field.name: getattr(item, field.name) for field in dataclasses.fields(cls)}
    elif has_fields(cls, names):
        given = item._asdict()
    if given is not None:
        wrong = [name for name in names if name not in given]
        extra = [str(name) for name in given if name not in names]
        if wrong or extra:
            lacks = f"lacks {', '.join(wrong)}" if wrong else ""
            has = f"has {', '.join(extra)} too" if extra else ""
            raise SchemaMismatchError(
                f"item {index}, a {name_of(cls)}, {' and '.join(filter(None, (lacks, has)))}; the "
                f"schema's columns are {', '.join(names)}",
                item_index=index,
                field=(wrong or extra)[0],
            )
        return [given[name] for name in names]
    if is_sequence(item):
        if len(item) == len(names):
            return item
        raise SchemaMismatchError(
            f"item {index}, {shorten(item)}, has {len(item)} elements; the schema has "
            f"{len(names)} columns: {', '.join(names)}",
            item_index=index,
            field=names[min(len(item), len(names) - 1)],
        )
    if len(names) == 1:
        return (item,)
    raise SchemaMismatchError(
        f"item {index}, {shorten(item)}, is a {name_of(cls)} and cannot become the columns "
        f"{', '.join(names)}; map it to a tuple, dict, dataclass or NamedTuple",
        item_index=index,
        field=names[0],
    )


@final
class _Maker:
    """Makes the arrays of one column; it determines once what the type of the column needs.

    Args:
        field: the field of the schema.
    """

    __slots__ = ("_deep", "_field", "_integers", "_is_foreign", "_loses", "_type", "_writer")

    def __init__(self, field: ArrowField) -> None:
        self._field: Final = field
        self._type: Final = field.type
        self._integers: Final = pa.types.is_integer(field.type)
        self._writer, self._is_foreign, self._loses = _rules(field)
        self._deep: Final = bool(inner_fields(field.type))

    def plain(self, values: _Column) -> ArrowArray | None:
        """Return a column of integers, if Arrow infers integers without being asked for them.

        If Arrow were asked for integers, it would accept floats and truncate them. This check costs
        half as much as looking at the type of each value. The result is None if the values are not
        integers, or might be something else as well.
        """
        if not self._integers:
            return None
        try:
            found = pa.array(values)
            if found.type == _INT64:
                return found if self._type == _INT64 else found.cast(self._type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError):
            pass  # find out which value it is
        return None

    def array(self, given: _Column, items: list[Any], first: int) -> ArrowArray:
        """Return the array of a column.

        Args:
            given: the values of the column.
            items: the items that the values were taken from.
            first: the number of the first of these items.

        Raises:
            SchemaMismatchError: if a value does not fit.
        """
        array = self.plain(given) if self._integers else None
        if array is None:
            array = self._written(given, items, first)
        if array.null_count and not self._field.nullable:
            index = next(index for index, value in enumerate(given) if value is None)
            raise SchemaMismatchError(
                f"item {first + index}, {shorten(items[index])}: field {self._field.name!r} is "
                f"None, and the schema says that it never is. Declare it as optional: "
                f"{self._type} | None",
                item_index=first + index,
                field=str(self._field.name),
            )
        if self._deep and (path := _lacking(array)):
            index = next(
                index
                for index, value in enumerate(given)
                if _lacking(self._written([value], items[index:], first + index))
            )
            raise SchemaMismatchError(
                f"item {first + index}, {shorten(items[index])}: field {self._field.name!r} has "
                f"None in {path}, and the schema says that it never is there. Declare it as "
                "optional",
                item_index=first + index,
                field=str(self._field.name),
            )
        return array

    def _written(self, given: _Column, items: list[Any], first: int) -> ArrowArray:
        writer, is_foreign, loses = self._writer, self._is_foreign, self._loses
        try:
            if is_foreign is not None and any(map(is_foreign, set(map(type, given)))):
                raise TypeError("a column holds a type that Arrow would silently change")
            if loses is not None and any(map(loses, given)):
                raise TypeError("a column holds a value that Arrow would silently change")
            column = given if writer is None else list(map(or_none(writer), given))
            return pa.array(column, self._type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise _misfit(given, self._field, items, first, error) from error


def _makers(schema: ArrowSchema) -> tuple[_Maker, ...]:
    return _makers_of(schema, bytes(memoryview(schema.serialize())))


@functools.lru_cache(maxsize=64)
def _makers_of(schema: ArrowSchema, _: bytes) -> tuple[_Maker, ...]:
    # The metadata of fields is in the bytes, and does not count where schemas are compared.
    return tuple(map(_Maker, schema))


_Rules = tuple[
    Convert | None, Callable[[type[Any]], bool] | None, Callable[[Any], str | None] | None
]


def _rules(field: ArrowField) -> _Rules:
    """Return how values of a column are prepared for Arrow, and which values it must not take."""
    if objects_of(field) is not None:
        return _writer(field), None, None
    return _writer(field), _foreign_to(field.type), _loss_of(field.type)


def _writer(field: ArrowField, *, nested: bool = False) -> Convert | None:
    """Return the function that prepares a value for Arrow, if one is needed."""
    objects = objects_of(field)
    if objects is not None:
        dump = objects.dump
        held = None if objects.held is None else _writer(objects.held, nested=True)
        return dump if held is None else lambda given: held(dump(given))
    kind = field.type
    if pa.types.is_map(kind):
        key, value = _writer(kind.key_field, nested=True), _writer(kind.item_field, nested=True)
        if key is None and value is None:
            return _pairs
        to_key, to_value = or_none(key), or_none(value)
        return lambda given: [(to_key(name), to_value(item)) for name, item in _pairs(given)]
    if is_listed(kind):
        element = _writer(kind.value_field, nested=True)
        if element is None:
            write_all: Convert = _sequence
        else:
            to_element = or_none(element)
            write_all = lambda given: [to_element(item) for item in given]  # noqa: E731
        return _checked(kind, write_all) if nested else write_all
    if pa.types.is_struct(kind):
        fields = [kind.field(index) for index in range(kind.num_fields)]
        names = tuple(str(part.name) for part in fields)
        inner = [or_none(_writer(part, nested=True)) for part in fields]
        return lambda given: {
            name: write(item)
            for name, write, item in zip(names, inner, _row(given, names, 0), strict=True)
        }
    return _checked(kind, None) if nested else None


def _checked(kind: ArrowType, write: Convert | None) -> Convert | None:
    """Return `write`, for values that `_foreign_to` and `_loss_of` accept."""
    is_foreign, loses = _foreign_to(kind), _loss_of(kind)
    if is_foreign is None and loses is None:
        return write
    harmless: set[type[Any]] = set()

    def check(value: object) -> object:
        cls = type(value)
        if cls not in harmless:  # checked once for each class
            if is_foreign is not None and is_foreign(cls):
                raise TypeError(f"{shorten(value)} would lose something")
            harmless.add(cls)
        if loses is not None and (loss := loses(value)):
            raise TypeError(f"{shorten(value)} {loss}")
        return value if write is None else write(value)

    return check


def _foreign_to(kind: ArrowType) -> Callable[[type[Any]], bool] | None:
    """Return a test for types that Arrow takes for `kind`, but with changed values."""
    if pa.types.is_integer(kind):
        return _is_fractional
    if pa.types.is_date(kind):
        return lambda cls: issubclass(cls, _NOT_DATES)
    if pa.types.is_temporal(kind):
        return lambda cls: issubclass(cls, numbers.Number)
    if is_listed(kind):
        return lambda cls: issubclass(cls, _NOT_LISTS)
    if is_text(kind):
        return lambda cls: issubclass(cls, _BYTES)
    if is_binary(kind):
        return lambda cls: issubclass(cls, str)
    return None


def _loss_of(kind: ArrowType) -> Callable[[Any], str | None] | None:
    """Return a function that reports how Arrow would change a value to fit the type `kind`."""
    if kind == _FLOAT32:
        return _overflow
    if is_zoned(kind):
        return lambda given: _lacking_zone(given) or _nanoseconds(given)
    if pa.types.is_timestamp(kind):
        return lambda given: _zone(given) or _nanoseconds(given)
    if pa.types.is_duration(kind):
        return _nanoseconds
    return None


def _overflow(given: object) -> str | None:
    if isinstance(given, numbers.Real) and _FLOAT_LIMIT <= abs(float(given)) < math.inf:
        return "would lose something: it is infinite as a float of 32 bits"
    return None


def _lacking_zone(given: object) -> str | None:
    if isinstance(given, datetime.datetime) and given.tzinfo is None:
        return (
            "has no time zone, and the column holds points in time; give it one, as "
            "replace(tzinfo=datetime.UTC) does, or astimezone() with the zone of the machine; or "
            "say that the column is a timestamp_ntz"
        )
    return None


def _zone(given: object) -> str | None:
    if getattr(given, "tzinfo", None) is not None:
        return (
            "would lose something: it has a time zone, and the column has none; take it off, as "
            "replace(tzinfo=None) does, or say that the column is a timestamp"
        )
    return None


def _nanoseconds(given: object) -> str | None:
    """Check times of pandas."""
    if getattr(given, "nanosecond", 0) or getattr(given, "nanoseconds", 0):
        return (
            "would lose something: it has nanoseconds, and the column has microseconds; round it, "
            "as floor('us') does"
        )
    return None


def _is_fractional(cls: type[Any]) -> bool:
    """Return whether `cls` is a class of numbers with a fraction, like Decimal."""
    return issubclass(cls, numbers.Number) and not issubclass(cls, numbers.Integral)


def _lacking(array: ArrowArray) -> str | None:
    """Find a null that the type does not allow in `array`, which must not be a slice."""
    kind = array.type
    if not (inner := inner_fields(kind)):
        return None
    held = array.drop_null() if array.null_count else array
    if pa.types.is_map(kind):
        parts = [held.keys, held.items]
    elif pa.types.is_struct(kind):
        parts = [held.field(index) for index in range(len(inner))]
    else:
        parts = [held.flatten()]
    for field, part in zip(inner, parts, strict=True):
        if part.null_count and not field.nullable:
            return f"its {field.name}"
        if deeper := _lacking(part):
            return f"{deeper} of its {field.name}"
    return None


def _sequence(given: Any) -> Any:
    """Return a list in place of another collection, which Arrow would not take."""
    made: Iterable[Any] = given
    return list(made) if isinstance(given, _UNORDERED) else given


def _pairs(given: Any) -> list[tuple[Any, Any]]:
    return list(given.items() if is_mapping(given) else given)


def _misfit(
    column: _Column, field: ArrowField, items: list[Any], first: int, error: BaseException
) -> SchemaMismatchError:
    writer, is_foreign, loses = _rules(field)
    for index, value in enumerate(column):
        try:
            if is_foreign is not None and is_foreign(class_of(value)):
                raise TypeError("it would lose something")
            if loses is not None and (loss := loses(value)):
                raise TypeError(f"it {loss}")
            pa.array([value if writer is None or value is None else writer(value)], field.type)
        except Exception as reason:
            return SchemaMismatchError(
                f"item {first + index}, {shorten(items[index])}: field {field.name!r} is "
                f"{shorten(value)} ({name_of(class_of(value))}), which does not fit {field.type}: "
                f"{reason}",
                item_index=first + index,
                field=str(field.name),
            )
    return SchemaMismatchError(
        f"items {first} to {first + len(items) - 1}: field {field.name!r} does not fit "
        f"{field.type}: {error}",
        item_index=first,
        field=str(field.name),
    )
