"""The used part of pyarrow, with types; the package itself has none."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Final, Protocol, cast

import pyarrow
from typing_extensions import Buffer

__all__ = ["ArrowArray", "ArrowBatch", "ArrowField", "ArrowSchema", "ArrowTable", "ArrowType", "pa"]


class ArrowType(Protocol):
    """A ``pyarrow.DataType``. Most of its attributes exist for some types only."""

    @property
    def tz(self) -> str | None:
        """The zone of a timestamp."""
        ...

    @property
    def key_type(self) -> ArrowType:
        """The type of a map's keys."""
        ...

    @property
    def item_type(self) -> ArrowType:
        """The type of a map's values."""
        ...

    @property
    def key_field(self) -> ArrowField:
        """The field of a map's keys."""
        ...

    @property
    def item_field(self) -> ArrowField:
        """The field of a map's values."""
        ...

    @property
    def value_type(self) -> ArrowType:
        """The type of a list's elements."""
        ...

    @property
    def value_field(self) -> ArrowField:
        """The field of a list's elements."""
        ...

    @property
    def num_fields(self) -> int:
        """The number of a struct's fields."""
        ...

    @abstractmethod
    def field(self, index: int, /) -> ArrowField:
        """Return a field of a struct."""
        ...


class ArrowField(Protocol):
    """A ``pyarrow.Field``."""

    @property
    def name(self) -> str:
        """The name of the column."""
        ...

    @property
    def type(self) -> ArrowType:
        """The type of the column's values."""
        ...

    @property
    def nullable(self) -> bool:
        """True if the column may have nulls."""
        ...

    @property
    def metadata(self) -> dict[bytes, bytes] | None:
        """The metadata of the field."""
        ...

    @abstractmethod
    def with_type(self, kind: ArrowType, /) -> ArrowField:
        """Return the same field with another type."""
        ...

    @abstractmethod
    def with_nullable(self, nullable: bool, /) -> ArrowField:
        """Return the same field, in which nulls are allowed, or not."""
        ...

    @abstractmethod
    def with_metadata(self, metadata: Mapping[bytes, bytes], /) -> ArrowField:
        """Return the same field with other metadata."""
        ...


class ArrowSchema(Protocol):
    """A ``pyarrow.Schema``."""

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        ...

    @abstractmethod
    def field(self, name: str, /) -> ArrowField:
        """Return the column of that name."""
        ...

    @abstractmethod
    def serialize(self) -> bytes:
        """Return the schema as an IPC message, in a buffer."""
        ...

    @abstractmethod
    def __iter__(self) -> Iterator[ArrowField]: ...

    @abstractmethod
    def __hash__(self) -> int: ...


class ArrowArray(Protocol):
    """A ``pyarrow.Array``."""

    @property
    def type(self) -> ArrowType:
        """The type of the values."""
        ...

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    def null_count(self) -> int:
        """The number of nulls; it is counted once and kept."""
        ...

    @property
    def keys(self) -> ArrowArray:
        """The keys of maps; all of them, also outside of a slice."""
        ...

    @property
    def items(self) -> ArrowArray:
        """The values of maps; all of them, also outside of a slice."""
        ...

    @property
    def offsets(self) -> ArrowArray:
        """The offsets of maps: where each begins in `items`, and where the last one ends."""
        ...

    @abstractmethod
    def field(self, index: int, /) -> ArrowArray:
        """Return the values of a field of structs, also those under a null."""
        ...

    @abstractmethod
    def flatten(self) -> ArrowArray:
        """Return all elements of lists."""
        ...

    @abstractmethod
    def slice(self, offset: int, length: int | None = None, /) -> ArrowArray:
        """Return some of the values, without copying."""
        ...

    @abstractmethod
    def get_total_buffer_size(self) -> int:
        """Return how many bytes the buffers take as a whole, even if the array uses only a part."""
        ...

    @abstractmethod
    def drop_null(self) -> ArrowArray:
        """Return the values that are not nulls."""
        ...

    @abstractmethod
    def to_pylist(self) -> list[Any]:  # Any: values of any type
        """Return the values as Python objects."""
        ...

    @abstractmethod
    def cast(self, target: ArrowType, /) -> ArrowArray:
        """Return the values as another type."""
        ...

    @abstractmethod
    def unique(self) -> ArrowArray:
        """Return each value once, in the order in which they come."""
        ...

    @abstractmethod
    def buffers(self) -> list[Buffer | None]:
        """Return the buffers of the values, also of nested values; None where there is none.

        For a slice, they are those of the whole array.
        """
        ...


class ArrowBatch(Protocol):
    """A ``pyarrow.RecordBatch``."""

    @property
    def schema(self) -> ArrowSchema:
        """The names and types of the columns."""
        ...

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        ...

    @property
    def nbytes(self) -> int:
        """The number of bytes of the values; for a slice, only those of the slice."""
        ...

    @property
    def columns(self) -> list[ArrowArray]:
        """All columns."""
        ...

    @abstractmethod
    def column(self, name: str | int, /) -> ArrowArray:
        """Return the column of that name or position."""
        ...

    @abstractmethod
    def select(self, names: list[str], /) -> ArrowBatch:
        """Return some of the columns, without copying."""
        ...

    def rename_columns(self, names: list[str], /) -> ArrowBatch:
        """Return the same columns by other names, without copying."""
        ...

    @abstractmethod
    def slice(self, offset: int, length: int | None = None, /) -> ArrowBatch:
        """Return some of the rows, without copying."""
        ...

    @abstractmethod
    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows, by the names of the columns."""
        ...

    @abstractmethod
    def serialize(self) -> bytes:
        """Return the batch as an IPC message without the schema, in a buffer."""
        ...


class ArrowTable(Protocol):
    """A ``pyarrow.Table``."""

    @property
    def schema(self) -> ArrowSchema:
        """The names and types of the columns."""
        ...

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        ...

    def cast(self, target_schema: ArrowSchema, /) -> ArrowTable:
        """Return the same values with other types, or other metadata of the fields."""
        ...

    def to_batches(self) -> list[ArrowBatch]:
        """Return the rows in batches."""
        ...


class _Types(Protocol):
    def is_map(self, kind: ArrowType, /) -> bool: ...
    def is_list(self, kind: ArrowType, /) -> bool: ...
    def is_large_list(self, kind: ArrowType, /) -> bool: ...
    def is_fixed_size_list(self, kind: ArrowType, /) -> bool: ...
    def is_list_view(self, kind: ArrowType, /) -> bool: ...
    def is_large_list_view(self, kind: ArrowType, /) -> bool: ...
    def is_struct(self, kind: ArrowType, /) -> bool: ...
    def is_dictionary(self, kind: ArrowType, /) -> bool: ...
    def is_boolean(self, kind: ArrowType, /) -> bool: ...
    def is_integer(self, kind: ArrowType, /) -> bool: ...
    def is_floating(self, kind: ArrowType, /) -> bool: ...
    def is_decimal(self, kind: ArrowType, /) -> bool: ...
    def is_string(self, kind: ArrowType, /) -> bool: ...
    def is_large_string(self, kind: ArrowType, /) -> bool: ...
    def is_string_view(self, kind: ArrowType, /) -> bool: ...
    def is_binary(self, kind: ArrowType, /) -> bool: ...
    def is_large_binary(self, kind: ArrowType, /) -> bool: ...
    def is_fixed_size_binary(self, kind: ArrowType, /) -> bool: ...
    def is_binary_view(self, kind: ArrowType, /) -> bool: ...
    def is_date(self, kind: ArrowType, /) -> bool: ...
    def is_time(self, kind: ArrowType, /) -> bool: ...
    def is_temporal(self, kind: ArrowType, /) -> bool: ...
    def is_timestamp(self, kind: ArrowType, /) -> bool: ...
    def is_duration(self, kind: ArrowType, /) -> bool: ...
    def is_null(self, kind: ArrowType, /) -> bool: ...


class _StreamWriter(Protocol):
    def write_batch(self, batch: ArrowBatch, /) -> None: ...
    def close(self) -> None: ...


class _Ipc(Protocol):
    def new_stream(self, sink: IO[bytes], schema: ArrowSchema, /) -> _StreamWriter: ...
    def open_stream(self, source: IO[bytes], /) -> Iterable[ArrowBatch]: ...
    def read_schema(self, message: object, /) -> ArrowSchema: ...
    def read_record_batch(self, message: object, schema: ArrowSchema, /) -> ArrowBatch: ...


class _RecordBatches(Protocol):
    def from_arrays(self, arrays: list[ArrowArray], *, schema: ArrowSchema) -> ArrowBatch: ...


class _Tables(Protocol):
    def from_batches(self, batches: Iterable[ArrowBatch], schema: ArrowSchema) -> ArrowTable: ...


class _Arrow(Protocol):
    """The part of the module pyarrow that is used."""

    @property
    def types(self) -> _Types: ...
    @property
    def ipc(self) -> _Ipc: ...
    @property
    def RecordBatch(self) -> _RecordBatches: ...  # noqa: N802 - its name
    @property
    def Table(self) -> _Tables: ...  # noqa: N802 - its name
    @property
    def Schema(self) -> type: ...  # noqa: N802 - its name
    @property
    def ArrowException(self) -> type[Exception]: ...  # noqa: N802 - its name

    def bool_(self) -> ArrowType: ...
    def int32(self) -> ArrowType: ...
    def int64(self) -> ArrowType: ...
    def float32(self) -> ArrowType: ...
    def float64(self) -> ArrowType: ...
    def string(self) -> ArrowType: ...
    def binary(self) -> ArrowType: ...
    def date32(self) -> ArrowType: ...
    def decimal128(self, precision: int, scale: int) -> ArrowType: ...
    def time64(self, unit: str) -> ArrowType: ...
    def timestamp(self, unit: str, tz: str | None = None) -> ArrowType: ...
    def duration(self, unit: str) -> ArrowType: ...
    def list_(self, value: ArrowField | ArrowType) -> ArrowType: ...
    def map_(self, key: ArrowField | ArrowType, item: ArrowField | ArrowType) -> ArrowType: ...
    def struct(self, fields: Sequence[ArrowField]) -> ArrowType: ...
    def field(self, name: str, kind: ArrowType, nullable: bool = True) -> ArrowField: ...
    def schema(self, fields: Sequence[ArrowField | tuple[str, ArrowType]]) -> ArrowSchema: ...
    def array(self, values: Sequence[Any], kind: ArrowType | None = None) -> ArrowArray: ...
    def concat_arrays(self, arrays: list[ArrowArray]) -> ArrowArray: ...
    def record_batch(self, columns: list[list[Any]], *, schema: ArrowSchema) -> ArrowBatch: ...
    def py_buffer(self, data: object) -> object: ...


pa: Final[_Arrow] = cast("Any", pyarrow)  # Any: the module has no types; these are its own
