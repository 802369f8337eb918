"""Items made of Arrow batches, in whole columns wherever that is possible."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import typing
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, final

from flow_core.errors import NoneItemError, explanations
from flow_spark.errors import SchemaMismatchError
from flow_spark.items.arrow import ArrowArray, ArrowBatch, ArrowSchema, ArrowType, pa
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
    unwrapped,
)

__all__ = ["RowReader"]

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND: Final = datetime.timedelta(microseconds=1)

# Any: items of whatever kind the user asked for; `from_dataframe` has overloads.
_Column = Sequence[Any]


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

    def item(self, batch: ArrowBatch, index: int) -> Any:
        """One of the items of `batch` again; raises what making it raises.

        Raises:
            StopIteration: if there is none with this index.
        """
        return next(iter(self(batch.slice(index, 1))))

    def checksums(self, batch: ArrowBatch) -> Iterable[int]:
        """One of all values of `batch`, in their order: another shuffle may give another one."""
        found = 0
        for column in batch.columns:
            for buffer in column.buffers():
                if buffer is not None:
                    found = zlib.crc32(buffer, found)
        return (found,)

    def __reduce__(
        self,
    ) -> tuple[
        Callable[[ArrowSchema, TypeHint, dict[type[Any], Fields]], RowReader],
        tuple[ArrowSchema, TypeHint, dict[type[Any], Fields]],
    ]:
        """Pickle by what it was made of."""
        return _remade, (self._schema, self._as, all_fields(self._as))


def _remade(schema: ArrowSchema, as_: TypeHint, fields: dict[type[Any], Fields]) -> RowReader:
    know(fields)
    return RowReader(schema, as_)


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
    own = _own_fields(as_)
    needed = [
        name
        for name, _ in fields
        if name not in own and (name in names or not _has_default(as_, name))
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


def _own_fields(as_: TypeHint) -> frozenset[str]:
    """The fields that a dataclass fills itself (``init=False``): it does not take them."""
    if not (is_class(as_) and dataclasses.is_dataclass(as_)):
        return frozenset()
    return frozenset(field.name for field in dataclasses.fields(as_) if not field.init)


def _has_default(as_: TypeHint, name: str) -> bool:
    if is_class(as_) and dataclasses.is_dataclass(as_):
        field = next(field for field in dataclasses.fields(as_) if field.name == name)
        return (
            field.default is not dataclasses.MISSING
            or field.default_factory is not dataclasses.MISSING
        )
    return name in getattr(as_, "_field_defaults", {})


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
        # No frame of Python for a row, and one dict at a time: the collector looks at what is held.
        return lambda columns: map(dict, map(zip, itertools.repeat(names), _tuples(columns)))
    if is_row_class(as_):
        return _rows_of(names)
    fields = record_fields(as_)
    if fields is None:
        raise TypeError(
            f"as_ takes tuple, dict, Row, 'scalar', a dataclass or a NamedTuple, not {name_of(as_)}"
        )
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
    """What to do about ``row.amount``, where a row is a tuple."""
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

    return Row(*values)(*values.values())  # any name is right for a field, also `cls`


def _values(column: ArrowArray, convert: Convert | None) -> _Column:
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


def _converter(kind: ArrowType, hint: TypeHint = None, *, hashable: bool = False) -> Convert | None:
    """What remains to be done to a value of a nested type after ``to_pylist``, if anything.

    Args:
        kind: the type of the column, or of a part of it.
        hint: what the value becomes, where the user has said so.
        hashable: whether it is a key of a dict, or a part of one: a list then becomes a tuple, and
            a struct becomes a ``Row``.
    """
    hint, _ = unwrapped(hint)
    parts = (*typing.get_args(hint), None, None)
    if pa.types.is_map(kind):
        key = _converter(kind.key_type, parts[0], hashable=True)
        value = _converter(kind.item_type, parts[1])
        if key is None and value is None:
            return dict
        to_key, to_value = or_none(key), or_none(value)
        return lambda pairs: {to_key(k): to_value(v) for k, v in pairs}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        element = _converter(kind.value_type, parts[0], hashable=hashable)
        if element is None:
            return tuple if hashable else None
        to_element = or_none(element)
        if hashable:
            return lambda values: tuple(to_element(value) for value in values)
        return lambda values: [to_element(value) for value in values]
    if pa.types.is_struct(kind):
        return _struct_converter(kind, hint, hashable=hashable)
    return None


def _struct_converter(kind: ArrowType, hint: TypeHint, *, hashable: bool) -> Convert | None:
    fields = [kind.field(index) for index in range(kind.num_fields)]
    hints = dict(record_fields(hint) or ())
    as_tuple = typing.get_origin(hint) is tuple and len(typing.get_args(hint)) == len(fields)
    if as_tuple:
        hints = {f.name: part for f, part in zip(fields, typing.get_args(hint), strict=True)}
    inner: dict[str, Convert] = {}
    for field in fields:
        part = _converter(field.type, hints.get(field.name), hashable=hashable)
        if part is not None:
            inner[field.name] = or_none(part)
    make: Callable[..., Any] | None = hint if is_class(hint) and hints else None
    if hashable and make is None and not as_tuple:
        make = _row_of
    own = frozenset[str]() if make is None else _own_fields(hint)
    if make is None and not inner and not as_tuple:
        return None

    def convert(values: dict[str, Any]) -> object:
        for name, to_value in inner.items():
            values[name] = to_value(values[name])
        if as_tuple:
            return tuple(values.values())
        for name in own:
            values.pop(name, None)
        return values if make is None else make(**values)

    return convert
