"""Between Arrow batches and Python items, in whole columns wherever that is possible."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, final

from flow_core.errors import NoneItemError

from flow_spark._arrow import ArrowArray, ArrowBatch, ArrowField, ArrowSchema, ArrowType, pa
from flow_spark._schema import ItemSchema, TypeHint, is_namedtuple, record_fields
from flow_spark.errors import SchemaMismatchError

__all__ = ["BATCH_ROWS", "RowReader", "to_batches"]

BATCH_ROWS: Final = 10_000
"""Rows in the batches that are made here, as many as Spark itself puts into one."""

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)

# Any: items of whatever kind the user asked for; the public functions have overloads.
_Column = Sequence[Any]
_Convert = Callable[[Any], Any]


@final
class RowReader:
    """Makes items of Arrow batches. Picklable, since executors read too.

    Args:
        schema: of the batches.
        as_: what an item is. None: the bare value of an only column, or a tuple. `tuple` or `dict`.
            ``pyspark.sql.Row``. A dataclass or NamedTuple, made of the columns named as its fields;
            further columns are left out. ``"scalar"``: the bare value, or an error.

    Raises:
        SchemaMismatchError: if the columns do not fit `as_`.
    """

    __slots__ = ("_as", "_converts", "_make", "_schema", "names")

    def __init__(self, schema: ArrowSchema, as_: TypeHint = None) -> None:
        self._schema = schema
        self._as = as_
        self.names: Final = _columns(schema, as_)
        hints = dict(record_fields(as_) or ())
        self._converts = [
            _converter(schema.field(name).type, hints.get(name)) for name in self.names
        ]
        self._make = _maker(as_, self.names)

    def __call__(self, batch: ArrowBatch) -> Iterable[Any]:
        """The items of `batch`, in its order."""
        columns = [
            _values(batch.column(name), convert)
            for name, convert in zip(self.names, self._converts, strict=True)
        ]
        if self._make is _scalars:
            nulls: int = batch.column(self.names[0]).null_count
            if nulls:
                raise NoneItemError(
                    f"column {self.names[0]!r} holds {nulls} nulls, and None is not an item "
                    "(§2.13). Drop them: df.dropna(); or read rows: as_=tuple"
                )
        return self._make(columns)

    def __reduce__(self) -> tuple[type[RowReader], tuple[ArrowSchema, TypeHint]]:
        """Pickle by what it was made of."""
        return RowReader, (self._schema, self._as)


def to_batches(
    items: Iterable[Any], schema: ItemSchema, rows: int = BATCH_ROWS, *, first: int = 0
) -> Iterator[ArrowBatch]:
    """Make Arrow batches of items.

    Args:
        items: tuples, dicts, Rows, dataclasses or NamedTuples; or plain values for an only column.
            What has field names is matched by name, the rest by position.
        schema: the columns.
        rows: how many items go into a batch.
        first: the number of the first item, for messages.

    Raises:
        SchemaMismatchError: if an item does not fit; says which, and which field of it.
    """
    iterator = iter(items)
    while chunk := list(itertools.islice(iterator, rows)):
        yield _to_batch(chunk, schema, first)
        first += len(chunk)


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
    fields = record_fields(as_)
    if fields is None:
        return names
    needed = [
        name
        for name, _ in fields
        if name in names or not _has_default(as_, name)
    ]
    missing = [name for name in needed if name not in names]
    if missing:
        raise SchemaMismatchError(
            f"{_name(as_)} needs the columns {', '.join(missing)}, and the DataFrame has only "
            f"{', '.join(names)}",
            field=missing[0],
        )
    return tuple(needed)


def _has_default(as_: TypeHint, name: str) -> bool:
    if isinstance(as_, type) and dataclasses.is_dataclass(as_):
        field = next(field for field in dataclasses.fields(as_) if field.name == name)
        return (
            field.default is not dataclasses.MISSING
            or field.default_factory is not dataclasses.MISSING
            or not field.init
        )
    return name in getattr(as_, "_field_defaults", {})


def _maker(as_: TypeHint, names: tuple[str, ...]) -> Callable[[list[_Column]], Iterable[Any]]:
    if as_ == "scalar" or (as_ is None and len(names) == 1):
        return _scalars
    if as_ is None or as_ is tuple:
        return _tuples
    if not isinstance(as_, type):
        raise TypeError(
            f"as_ takes tuple, dict, Row, 'scalar', a dataclass or a NamedTuple, not {as_!r}"
        )
    if as_ is dict:
        return lambda columns: [dict(zip(names, row, strict=True)) for row in zip(*columns)]
    if _is_row(as_):
        return _rows_of(names)
    fields = record_fields(as_)
    if fields is None:
        raise TypeError(
            f"as_ takes tuple, dict, Row, 'scalar', a dataclass or a NamedTuple, not {_name(as_)}"
        )
    cls: Callable[..., Any] = as_
    positional = [
        field.name
        for field in dataclasses.fields(as_)
        if field.init and not field.kw_only
    ] if dataclasses.is_dataclass(as_) else [name for name, _ in fields]
    if tuple(positional[: len(names)]) == names:
        return lambda columns: map(cls, *columns)
    return lambda columns: [cls(**dict(zip(names, row, strict=True))) for row in zip(*columns)]


def _scalars(columns: list[_Column]) -> Iterable[Any]:
    return columns[0]


def _tuples(columns: list[_Column]) -> Iterable[Any]:
    return zip(*columns, strict=True)


def _is_row(cls: type) -> bool:
    return cls.__name__ == "Row" and cls.__module__.startswith("pyspark.sql")


def _rows_of(names: tuple[str, ...]) -> Callable[[list[_Column]], Iterable[Any]]:
    from pyspark.sql import Row

    make = Row(*names)
    return lambda columns: map(make, *columns)


def _values(column: ArrowArray, convert: _Convert | None) -> _Column:
    if pa.types.is_timestamp(column.type) and column.type.tz == "UTC":
        return _utc(column)
    values: list[Any] = column.to_pylist()
    if convert is not None:
        values = [None if value is None else convert(value) for value in values]
    return values


def _utc(column: ArrowArray) -> _Column:
    """As ``to_pylist``, at a third of the time: it looks the time zone up for each value."""
    epoch, unit, delta = _EPOCH, _MICROSECOND, datetime.timedelta
    numbers: list[Any] = column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_pylist()
    if column.null_count:
        return [None if number is None else epoch + number * unit for number in numbers]
    return [epoch + delta(0, 0, number) for number in numbers]


def _converter(kind: ArrowType, hint: TypeHint = None) -> _Convert | None:
    """What remains to be done to a value of a nested type after ``to_pylist``, if anything."""
    if pa.types.is_map(kind):
        key, value = _converter(kind.key_type), _converter(kind.item_type)
        if key is None and value is None:
            return dict
        to_key, to_value = _or_none(key), _or_none(value)
        return lambda pairs: {to_key(k): to_value(v) for k, v in pairs}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        element = _converter(kind.value_type)
        if element is None:
            return None
        to_element = _or_none(element)
        return lambda values: [to_element(value) for value in values]
    if pa.types.is_struct(kind):
        return _struct_converter(kind, hint)
    return None


def _struct_converter(kind: ArrowType, hint: TypeHint) -> _Convert | None:
    fields = [kind.field(index) for index in range(kind.num_fields)]
    hints = dict(record_fields(hint) or ())
    inner = {
        str(field.name): _or_none(convert)
        for field in fields
        if (convert := _converter(field.type, hints.get(field.name))) is not None
    }
    make: Callable[..., Any] | None = hint if isinstance(hint, type) and hints else None
    if make is None and not inner:
        return None

    def convert(values: dict[str, Any]) -> object:
        for name, to_value in inner.items():
            values[name] = to_value(values[name])
        return values if make is None else make(**values)

    return convert


def _or_none(convert: _Convert | None) -> _Convert:
    if convert is None:
        return _same
    return lambda value: None if value is None else convert(value)


def _same(value: object) -> object:
    return value


def _to_batch(items: list[Any], schema: ItemSchema, first: int) -> ArrowBatch:
    names = schema.names
    columns = _take_apart(items, names, first)
    arrays = [
        _array(column, field, items, first)
        for column, field in zip(columns, schema.arrow, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema.arrow)


def _take_apart(items: list[Any], names: tuple[str, ...], first: int) -> list[_Column]:
    """The columns of `items`, which mostly are of one class."""
    classes = set(map(type, items))
    if len(classes) == 1:
        cls = classes.pop()
        try:
            return _of_class(items, cls, names)
        except (AttributeError, KeyError, ValueError):
            pass  # find out below which item it is
    rows = [_row(item, names, first + index) for index, item in enumerate(items)]
    return list(zip(*rows, strict=True))


def _of_class(items: list[Any], cls: type, names: tuple[str, ...]) -> list[_Column]:
    if issubclass(cls, Mapping):
        if set(map(len, items)) != {len(names)}:
            raise ValueError
        return [list(map(operator.itemgetter(name), items)) for name in names]
    if _by_name(cls, names):
        return [list(map(operator.attrgetter(name), items)) for name in names]
    if issubclass(cls, (tuple, list)) and not (_is_row(cls) and hasattr(items[0], "__fields__")):
        columns: list[_Column] = list(zip(*items, strict=True))
        if len(columns) != len(names):
            raise ValueError
        return columns
    if len(names) == 1 and not dataclasses.is_dataclass(cls) and not _is_row(cls):
        return [items]
    raise ValueError


def _by_name(cls: type, names: tuple[str, ...]) -> bool:
    """Whether items of `cls` have just the fields `names`, in whatever order."""
    if dataclasses.is_dataclass(cls):
        return {field.name for field in dataclasses.fields(cls)} == set(names)
    return is_namedtuple(cls) and set(getattr(cls, "_fields", ())) == set(names)


def _row(item: Any, names: tuple[str, ...], index: int) -> Sequence[Any]:
    """One item taken apart, the slow way, which can say what is wrong with it."""
    cls = type(item)
    given: Mapping[str, Any] | None = None
    if isinstance(item, Mapping):
        given = item
    elif _is_row(cls) and hasattr(item, "__fields__"):
        given = item.asDict() if set(item.__fields__) == set(names) else None
    elif dataclasses.is_dataclass(cls):
        given = {field.name: getattr(item, field.name) for field in dataclasses.fields(cls)}
    elif _by_name(cls, names):
        given = item._asdict()
    if given is not None:
        wrong = [name for name in names if name not in given]
        extra = [str(name) for name in given if name not in names]
        if wrong or extra:
            lacks = f"lacks {', '.join(wrong)}" if wrong else ""
            has = f"has {', '.join(extra)} too" if extra else ""
            raise SchemaMismatchError(
                f"item {index}, a {_name(cls)}, {' and '.join(filter(None, (lacks, has)))}; the "
                f"schema's columns are {', '.join(names)}",
                item_index=index,
                field=(wrong or extra)[0],
            )
        return [given[name] for name in names]
    if isinstance(item, (tuple, list)):
        if len(item) == len(names):
            return item
        raise SchemaMismatchError(
            f"item {index}, {_shorten(item)}, has {len(item)} elements; the schema has "
            f"{len(names)} columns: {', '.join(names)}",
            item_index=index,
            field=names[min(len(item), len(names) - 1)],
        )
    if len(names) == 1:
        return (item,)
    raise SchemaMismatchError(
        f"item {index}, {_shorten(item)}, is a {_name(cls)} and cannot become the columns "
        f"{', '.join(names)}; map it to a tuple, dict, dataclass or NamedTuple",
        item_index=index,
        field=names[0],
    )


def _array(column: _Column, field: ArrowField, items: list[Any], first: int) -> ArrowArray:
    try:
        array = pa.array(column, field.type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise _misfit(column, field, items, first, error) from error
    if array.null_count and not field.nullable:
        index = next(index for index, value in enumerate(column) if value is None)
        raise SchemaMismatchError(
            f"item {first + index}, {_shorten(items[index])}: field {field.name!r} is None, and "
            f"the schema says that it never is. Declare it as optional: {field.type} | None",
            item_index=first + index,
            field=str(field.name),
        )
    return array


def _misfit(
    column: _Column, field: ArrowField, items: list[Any], first: int, error: BaseException
) -> SchemaMismatchError:
    for index, value in enumerate(column):
        try:
            pa.array([value], field.type)
        except Exception as reason:
            return SchemaMismatchError(
                f"item {first + index}, {_shorten(items[index])}: field {field.name!r} is "
                f"{_shorten(value)} ({_name(type(value))}), which does not fit {field.type}: "
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


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _name(hint: TypeHint) -> str:
    return hint.__qualname__ if isinstance(hint, type) else str(hint)
