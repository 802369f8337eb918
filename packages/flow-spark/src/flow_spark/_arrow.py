"""What is used of pyarrow, with types; the package itself has none."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Final, Protocol

import pyarrow

__all__ = ["ArrowArray", "ArrowBatch", "ArrowField", "ArrowSchema", "ArrowType", "pa"]

pa: Final[Any] = pyarrow  # Any: an untyped module; what it makes is given a type where it is used


class ArrowType(Protocol):
    """A ``pyarrow.DataType``. Most attributes exist for some types only."""

    @property
    def tz(self) -> str | None:
        """Of a timestamp."""

    @property
    def key_type(self) -> ArrowType:
        """Of a map."""

    @property
    def item_type(self) -> ArrowType:
        """Of a map."""

    @property
    def value_type(self) -> ArrowType:
        """Of a list."""

    @property
    def num_fields(self) -> int:
        """Of a struct."""

    @abstractmethod
    def field(self, index: int, /) -> ArrowField:
        """Of a struct."""


class ArrowField(Protocol):
    """A ``pyarrow.Field``."""

    @property
    def name(self) -> str:
        """The name of the column."""

    @property
    def type(self) -> ArrowType:
        """The type of its values."""

    @property
    def nullable(self) -> bool:
        """Whether there may be nulls."""


class ArrowSchema(Protocol):
    """A ``pyarrow.Schema``."""

    @property
    def names(self) -> list[str]:
        """The names of the columns."""

    @abstractmethod
    def field(self, name: str, /) -> ArrowField:
        """The column of that name."""

    @abstractmethod
    def serialize(self) -> bytes:
        """As an IPC message; a buffer."""

    @abstractmethod
    def __iter__(self) -> Iterator[ArrowField]: ...


class ArrowArray(Protocol):
    """A ``pyarrow.Array``."""

    @property
    def type(self) -> ArrowType:
        """The type of its values."""

    @property
    def null_count(self) -> int:
        """How many nulls there are; counted once and remembered."""

    @abstractmethod
    def to_pylist(self) -> list[Any]:  # Any: values of whatever type
        """The values as Python objects."""

    @abstractmethod
    def cast(self, target: ArrowType, /) -> ArrowArray:
        """The values as another type."""


class ArrowBatch(Protocol):
    """A ``pyarrow.RecordBatch``."""

    @property
    def schema(self) -> ArrowSchema:
        """Names and types of the columns."""

    @property
    def num_rows(self) -> int:
        """How many rows there are."""

    @property
    def nbytes(self) -> int:
        """How many bytes the values take; of a slice, only its own."""

    @abstractmethod
    def column(self, name: str | int, /) -> ArrowArray:
        """The column of that name or position."""

    @abstractmethod
    def select(self, names: list[str], /) -> ArrowBatch:
        """Some of the columns, without copying."""

    @abstractmethod
    def slice(self, offset: int, length: int | None = None, /) -> ArrowBatch:
        """Some of the rows, without copying."""

    @abstractmethod
    def serialize(self) -> bytes:
        """As an IPC message without the schema; a buffer."""
